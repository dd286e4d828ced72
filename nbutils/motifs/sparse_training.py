"""Adaptive sparsity training: the density of motif channels falls whenever a network reads well enough.

Training goes from check to check. At a check the target falls by `fall` for each sample since the last one; where the
validation accuracy exceeds it, the density is multiplied by `factor`; then the target is raised to the accuracy. So
density falls as fast as the network keeps up, and no faster. Training that is cut off goes on from its last check with
the same bits, for all that is random is drawn from the number of the step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch.utils.data import DataLoader, Dataset

from nbutils.motifs.motif_batches import MotifBatch, MotifTask
from nbutils.motifs.motif_errors import sequence_accuracy
from nbutils.motifs.motif_networks import MotifNetwork, build_motif_network
from nbutils.motifs.sparse_settings import SparseSettings, adapt
from nbutils.runs.sparsity import SpatialSparsity
from nbutils.support.devices import resolve_device
from nbutils.support.files import is_file, replace_file

__all__ = ["SparseTraining", "train_sparse"]

VALIDATION_SEED, STEP_SEEDS = 2**40, 10**6  # streams of examples: those of a seed's steps lie far below the others


class _Steps(Dataset[tuple[np.ndarray, np.ndarray]]):
    """Inputs and sequences of every step of a training, by its number."""

    def __init__(self, task: MotifTask, settings: SparseSettings) -> None:
        self.task, self.settings = task, settings

    def __getitem__(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        batch = self.task.sample(self.settings.batch, self.settings.seed * STEP_SEEDS + step)
        return batch.inputs, batch.sequences.astype(np.int64)


class SparseTraining:
    """A network that is being trained, and the trace of its checks.

    Args:
        settings: how.
        device: "cpu", "cuda" or "auto", see :func:`nbutils.support.devices.resolve_device`.
        loaders: processes that draw the examples of coming steps meanwhile; 0 draws them when they are due.

    Attributes:
        network: in evaluation mode between steps.
        steps: taken so far.
        target: accuracy that must be exceeded at the next check, but for what it falls until then.
        trace: one row for each check: `samples`, `density` and `target` after it, `accuracy` (exact sequences) and
            `edit` (edit accuracy) on validation examples, `loss` (mean since the last check, in nats).

    Examples:
        >>> from nbutils.motifs.sparse_settings import Schedule
        >>> settings = SparseSettings(samples=256, schedule=Schedule(every=128, stop=0.01), validation=8)
        >>> training = SparseTraining(settings)
        >>> training.to_next_check(), training.to_next_check(), training.over
        (128, 256, True)
        >>> training.table["density"].tolist()
        [0.5, 0.5]
    """

    def __init__(self, settings: SparseSettings, device: str = "cpu", loaders: int = 0) -> None:
        from nbutils.motifs.tasks import TASKS

        self.settings, self.task = settings, TASKS[settings.task]
        self.device, self.loaders = torch.device(resolve_device(device)), loaders
        start = settings.schedule.start
        network = build_motif_network(self.task, settings.condition, start, settings.seed, settings.parts)
        self.network: MotifNetwork = network.to(self.device).eval()
        self.optimiser = torch.optim.Adam(self.network.parameters(), settings.rate)
        self.steps, self.target = 0, 1.0
        self.trace: list[dict[str, float]] = []
        self._validation: MotifBatch | None = None
        self._coming: Iterator[list[torch.Tensor]] | None = None

    @property
    def samples(self) -> int:
        """Seen so far."""
        return self.steps * self.settings.batch

    @property
    def over(self) -> bool:
        """Whether all samples have been seen."""
        return self.samples + self.settings.batch > self.settings.samples

    @property
    def density(self) -> float:
        """The density asked for; NaN for units that are not sparse."""
        units = self.network.units
        return units.density if isinstance(units, SpatialSparsity) else float("nan")

    @property
    def table(self) -> pd.DataFrame:
        """The trace."""
        return pd.DataFrame(self.trace)

    def to_next_check(self) -> int:
        """Train up to the next check, or to the end, and check.

        Returns:
            Samples seen so far.

        Raises:
            FloatingPointError: the loss is no finite number.
        """
        due = (self.samples // self.settings.schedule.every + 1) * self.settings.schedule.every
        losses = []
        self.network.train()
        while self.samples < due and not self.over:
            losses.append(self._step())
        self.network.eval()
        loss = float(torch.stack(losses).double().mean()) if losses else float("nan")
        if losses and not np.isfinite(loss):  # asked once for many steps, for a device does not wait in between
            raise FloatingPointError(f"training diverged: the loss is {loss} before {self.samples} samples")
        self.check(loss)
        return self.samples

    def _next_examples(self) -> list[torch.Tensor]:
        if self._coming is None:
            steps = range(self.steps, self.settings.samples // self.settings.batch)
            dataset, pinned = _Steps(self.task, self.settings), self.device.type == "cuda"
            more = {"num_workers": self.loaders, "prefetch_factor": 8} if self.loaders else {}
            self._coming = iter(DataLoader(dataset, batch_size=None, sampler=steps, pin_memory=pinned, **more))
        return [one.to(self.device, non_blocking=True) for one in next(self._coming)]

    def _step(self) -> torch.Tensor:
        settings = self.settings
        inputs, sequences = self._next_examples()
        maps = self.network.maps(inputs)
        loss = self.network.head.loss(maps, sequences)
        value = loss.detach()
        if settings.penalty:
            loss = loss + settings.penalty * _penalty(maps, settings.condition, settings.schedule.stop)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.steps += 1
        return value

    def check(self, loss: float = float("nan")) -> None:
        """Measure accuracy, let the density fall if that is good enough, and add a row to the trace.

        Args:
            loss: of the samples since the last check. Before training, there is nothing to adapt.
        """
        accuracy = self.validated()
        density = self.density
        if self.steps and isinstance(self.network.units, SpatialSparsity):
            after, self.target = adapt(self.settings.schedule, density, self.target, accuracy["edit"])
            if after != density:
                self.network.units.set_density(after)
        row = {"samples": self.samples, "density": self.density, "target": self.target, "loss": loss}
        self.trace.append({**row, "accuracy": accuracy["exact"], "edit": accuracy["edit"]})

    @torch.no_grad()
    def validated(self) -> dict[str, float]:
        """Share of validation examples that are read exactly, and edit accuracy."""
        if self._validation is None:
            self._validation = self.task.sample(self.settings.validation, VALIDATION_SEED + self.settings.seed)
        read = self.network(torch.from_numpy(self._validation.inputs).to(self.device))
        return sequence_accuracy(read, self._validation.sequences)

    def save(self, path: Path) -> None:
        """Write all that training needs to go on, as safetensors, in one go.

        Args:
            path: of the checkpoint; replaced if it is there.
        """
        tensors = {f"network.{name}": values.cpu().contiguous() for name, values in self.network.state_dict().items()}
        for name, parameter in self.network.named_parameters():
            for key, values in self.optimiser.state.get(parameter, {}).items():
                tensors[f"adam.{name}.{key}"] = values.cpu().contiguous()
        known = {"settings": self.settings.identity, "steps": self.steps, "target": self.target, "trace": self.trace}
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, save(tensors, {"training": json.dumps(known)}))

    def resume(self, path: Path) -> None:
        """Go on from a checkpoint.

        Args:
            path: that :meth:`save` wrote.

        Raises:
            ValueError: it is damaged, or of other settings.
        """
        try:
            with safe_open(path, "pt") as file:
                known = json.loads((file.metadata() or {})["training"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, no mapping
        except (SafetensorError, KeyError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} is no checkpoint of sparse training: {error}") from None
        if known["settings"] != json.loads(json.dumps(self.settings.identity)):
            raise ValueError(f"{path} is a checkpoint of other settings; choose another path or remove it")
        self.network.load_state_dict(_under(tensors, "network."))
        self.optimiser.state.clear()
        for name, parameter in self.network.named_parameters():
            if state := _under(tensors, f"adam.{name}."):  # whose count of steps stays with the processor
                self.optimiser.state[parameter] = {
                    key: values if key == "step" else values.to(self.device) for key, values in state.items()
                }
        self._coming = None
        self.steps, self.target, self.trace = known["steps"], known["target"], known["trace"]


def _under(tensors: Mapping[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): one for name, one in tensors.items() if name.startswith(prefix)}


def _penalty(maps: torch.Tensor, condition: str, wanted: float) -> torch.Tensor:
    """What keeps channels sparse by the loss alone; activations are never negative."""
    if condition == "L1":
        return maps.sum() / len(maps)
    rate = maps.tanh().mean(dim=(0, 2, 3)).clamp(1e-7, 1 - 1e-7)
    return (wanted * torch.log(wanted / rate) + (1 - wanted) * torch.log((1 - wanted) / (1 - rate))).sum()


def train_sparse(
    settings: SparseSettings,
    checkpoint: Path | None = None,
    watch: Callable[[SparseTraining], Mapping[str, float]] | None = None,
    save_every: int = 5,
    device: str = "cpu",
    loaders: int = 0,
) -> SparseTraining:
    """Train a network to its end, from a checkpoint if there is one.

    Args:
        settings: how.
        checkpoint: where to write every few checks, and at the end; None keeps nothing.
        watch: called before training and after every check, with the training; what it gives is kept in that row of the
            trace, and with it in the checkpoint.
        save_every: checks between two writings.
        device: see :class:`SparseTraining`, as are `loaders`.
        loaders: processes that draw examples.

    Returns:
        The training, which is over.

    Raises:
        ValueError: the checkpoint is damaged or of other settings.
        FloatingPointError: training diverged.
    """
    from nbutils.runs.training import one_thread

    with one_thread(), torch.backends.cudnn.flags(benchmark=True):
        training = SparseTraining(settings, device, loaders)
        if checkpoint is not None and is_file(checkpoint):
            training.resume(checkpoint)
        if not training.trace:
            training.check()
            training.trace[-1] |= watch(training) if watch else {}
        while not training.over:
            training.to_next_check()
            training.trace[-1] |= watch(training) if watch else {}
            if checkpoint is not None and (training.over or len(training.trace) % save_every == 0):
                training.save(checkpoint)
    return training
