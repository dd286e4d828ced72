"""Making runs: train networks side by side, record what their hidden neurons do before and after every epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import Any

import numpy as np
import torch

from nbutils.activations import above_least, activation_histogram, class_means, effective_rank, firing
from nbutils.capturing.hooks import capture_activations
from nbutils.capturing.layouts import NonFiniteError
from nbutils.data.datasets import probe_halves, probe_indices
from nbutils.runs.conditions import activation
from nbutils.runs.models import build_model, hidden_layers
from nbutils.runs.spec import RunSpec
from nbutils.runs.training import Epoch, TrainingSettings, one_thread, score, settle, sharpness, train
from nbutils.runs.weights import margins
from nbutils.support.checks import shown

Arrays = dict[str, dict[str, np.ndarray]]


def record_runs(
    specs: Sequence[RunSpec], starts: Sequence[Mapping[str, np.ndarray] | None] | None = None
) -> list[tuple[dict[str, Any], Arrays]]:
    """Train networks once, side by side, and record each.

    Args:
        specs: runs that are alike, see :meth:`nbutils.runs.spec.RunSpec.alike`.
        starts: weights of the network that each starts from, by name, for those that have a `start_from`.

    Returns:
        (history and failure, arrays) of each: `{"history": one dict per epoch, "reason": ""}`, where `reason` says why
        a run failed; and the groups `snapshots`, `first_weights`, `last_weights`, with checkpoints `checkpoints`.

    Raises:
        ValueError: the runs differ in more.

    Examples:
        >>> ((summary, arrays),) = record_runs([RunSpec(epochs=1, model="mlp:8")])
        >>> [row["epoch"] for row in summary["history"]], arrays["snapshots"]["fired"].shape
        ([0, 1], (2, 1437, 1))
    """
    if len({spec.alike() for spec in specs}) != 1:
        raise ValueError("runs that are made together must have the same data set, kind of network and batches")
    with one_thread(), torch.random.fork_rng(devices=[]):
        recorders = [_Recorder(*one) for one in zip(specs, starts or [None] * len(specs), strict=True)]
        models, data = [r.model for r in recorders], [r.data for r in recorders]
        settings = [_settings(spec) for spec in specs]
        seeds = [spec.seed for spec in specs]
        over, metric = (lambda n: recorders[n].over), (lambda n: recorders[n].validated())
        for epochs in train(models, data, settings, seeds, over, metric):
            for recorder, epoch in zip(recorders, epochs, strict=True):
                recorder.look(epoch)
    return [recorder.result() for recorder in recorders]


Batch = tuple[torch.Tensor, torch.Tensor]
# What may end training early, or take over weights: a look after every step knows nothing of it.
UNWATCHED = ("stop_at", "stop_loss", "patience", "validation", "start_from")


def watch_training(spec: RunSpec, look: Callable[[torch.nn.Module, Batch | None], None]) -> dict[str, np.ndarray]:
    """Train the network of a run, and look at it before training and after every step.

    It takes the same steps as the run, so that its last weights are those of the run, bit for bit, whatever is looked
    at, as long as that changes no weights.

    Args:
        spec: the run; all its epochs are trained.
        look: called with the network and the batch that it has just learned from, inputs of shape (batch, values) and
            labels of shape (batch,), or None before training. In training mode the network is as a step left it.

    Returns:
        The last weights by name.

    Raises:
        ValueError: the run may end early, holds images back, or starts from another network.

    Examples:
        >>> sizes = []
        >>> spec = RunSpec(epochs=1, model="mlp:8", batch_size=1000)
        >>> weights = watch_training(spec, lambda _, batch: sizes.append(len(batch[1]) if batch else 0))
        >>> sizes, weights["output.weight"].shape
        ([0, 1000, 437], (10, 8))
    """
    for name in UNWATCHED:
        if (value := getattr(spec, name)) != RunSpec.model_fields[name].default:
            raise ValueError(f"{name} must be left as it is for a run that is watched, received {shown(value)}")
    with one_thread(), torch.random.fork_rng(devices=[]):
        recorder = _Recorder(spec)
        model = recorder.model

        def after(inputs: torch.Tensor, labels: torch.Tensor) -> None:
            look(model, (inputs[0], labels[0]))

        for epochs in train([model], [recorder.data], _settings(spec), [spec.seed], watch=after):
            if epochs == (0,):
                look(model, None)
    return _weights(model)


def _settings(spec: RunSpec) -> TrainingSettings:
    return TrainingSettings(**{one.name: getattr(spec, one.name) for one in fields(TrainingSettings)})


class _Recorder:
    """One network, and what was seen of it so far."""

    def __init__(self, spec: RunSpec, start: Mapping[str, np.ndarray] | None = None) -> None:
        self.spec, self.data = spec, spec.data()
        self.held = spec.held_back() if spec.validation else None
        self.probe = probe_indices(self.data.train_true, spec.probe)
        self.halves = probe_halves(self.data.train_true[self.probe])
        torch.manual_seed(spec.seed)
        sizes = self.data.image_shape, len(self.data.classes)
        how = spec.dropout, spec.initialisation, spec.activation, spec.normalisation, spec.sparsity
        model = build_model(spec.model, *sizes, *how)
        self.model = model.to(spec.device).eval()  # training mode is for steps alone
        settle(self.model, self._some, len(self.data.train_true))
        if start is not None:
            _take_over(self.model, start)
        self.hidden, self.layout = hidden_layers(spec.model, spec.activation)
        self.function = activation(spec.activation)
        self.parameters = [name for name, _ in self.model.named_parameters()]
        self.first = self.last = _weights(self.model)
        self.checkpoints: list[dict[str, np.ndarray]] = []
        self.history: list[dict[str, Any]] = []
        self.reason, self.over, self.seen = "", False, -1
        if spec.start_from and start is None:
            self.reason, self.over = f"start_from: the network on {spec.start_from!r} failed", True
        self.snapshots: dict[str, list[np.ndarray]] = {}
        self.best = -1, -1.0, self.first  # epoch, validation accuracy, weights

    def look(self, epoch: int) -> None:
        """Note the state of the network after an epoch that was not seen yet; once it is over for this one, no more."""
        if self.over or epoch == self.seen:
            return
        self.seen = epoch
        if self.spec.patience is not None and epoch and self._patience_ends(epoch):
            return
        if not self.spec.every_epoch and 0 < epoch < self.spec.epochs and not self._arrived():
            return
        self._note(epoch)

    def _patience_ends(self, epoch: int) -> bool:
        """Whether training ended before or here, at its best epoch, whose weights are put back."""
        if (now := self.validated()) > self.best[1]:
            self.best = epoch, now, _weights(self.model)
        if epoch - self.best[0] < self.spec.patience and epoch < self.spec.epochs:
            return False
        if self.best[0] < 0:  # no number at all
            return False
        self.model.load_state_dict({name: torch.from_numpy(values) for name, values in self.best[2].items()})
        kept = [number for number, row in enumerate(self.history) if row["epoch"] < self.best[0]]
        for rows in (self.history, self.checkpoints, *self.snapshots.values()):
            del rows[len(kept) :]
        self._note(self.best[0])
        self.over = True
        return True

    def validated(self) -> float:
        """Accuracy on the training images that are held back, by the labels as given; -1 where it is no number."""
        try:
            logits = self._capture(self.held.train_pixels, "output")["output"]
        except NonFiniteError:
            return -1.0
        return score(logits, self.held.train_labels)[1]

    def _note(self, epoch: int) -> None:
        self.last = _weights(self.model)
        try:
            captured = self._capture(self.data.train_pixels, f"{self.hidden} output", scale=1.0)
            logits = captured.pop("output")
            if self.spec.input_scale != 1:
                logits = self._capture(self.data.train_pixels, "output")["output"]
            test_logits = self._capture(self.data.test_pixels, "output")["output"]
        except NonFiniteError as error:
            given = f"dataset={self.spec.dataset}, labels={self.spec.labels}, learning_rate={self.spec.learning_rate:g}"
            self.reason, self.over = f"training diverged: after epoch {epoch} {error} ({given})", True
            return
        layers = list(captured.values())
        state = self._state(epoch, logits, test_logits, layers[-1][self.probe])
        self.history.append(asdict(state))
        if self.spec.checkpoints:
            self.checkpoints.append(self.last)
        for name, values in self._snapshot(layers).items():
            self.snapshots.setdefault(name, []).append(values)
        self.over = self._reached(state.train_loss, state.train_accuracy)

    def _arrived(self) -> bool:
        """Whether training ends here, though the epoch is none that is recorded."""
        if self.spec.stop_at is None and self.spec.stop_loss is None:
            return False
        try:
            logits = self._capture(self.data.train_pixels, "output")["output"]
        except NonFiniteError:
            return True
        return self._reached(*score(logits, self.data.train_labels))

    def _reached(self, loss: float, accuracy: float) -> bool:
        at, below = self.spec.stop_at, self.spec.stop_loss
        return (at is not None and accuracy >= at) or (below is not None and loss <= below)

    def result(self) -> tuple[dict[str, Any], Arrays]:
        """All that is stored."""
        stacked = {name: np.stack(values) for name, values in self.snapshots.items()}
        arrays = {
            "snapshots": {**stacked, "probe_labels": self.data.train_true[self.probe]},
            "first_weights": self.first,
            "last_weights": self.last,
        }
        if self.checkpoints:
            arrays["checkpoints"] = {name: np.stack([c[name] for c in self.checkpoints]) for name in self.first}
        return {"history": self.history, "reason": self.reason}, arrays

    def _inputs(self, pixels: Any, scale: float | None = None) -> Any:
        """Images as the network takes them: as in training, or at another scale."""
        inputs, scale = self.data.to_inputs(pixels), self.spec.input_scale if scale is None else scale
        return inputs if scale == 1 else inputs * scale

    def _some(self, chosen: slice) -> torch.Tensor:
        """Training images as the network takes them."""
        return self._inputs(torch.from_numpy(self.data.train_pixels[chosen]).to(self.spec.device))

    def _capture(self, pixels: np.ndarray, layers: str, scale: float | None = None) -> dict[str, np.ndarray]:
        prepare = partial(self._inputs, scale=scale)
        return capture_activations(self.model, pixels, layers, prepare=prepare, layout=self.layout)

    def _state(self, epoch: int, train_logits: np.ndarray, test_logits: np.ndarray, last_layer: np.ndarray) -> Epoch:
        data = self.data
        train_loss, train_accuracy = score(train_logits, data.train_labels)
        test_loss, test_accuracy = score(test_logits, data.test_labels)
        now = np.concatenate([self.last[name].ravel() for name in self.parameters]).astype(np.float64)
        start = np.concatenate([self.first[name].ravel() for name in self.parameters])
        watched = self._inputs(torch.from_numpy(data.train_pixels[self.probe]).to(self.spec.device))
        given = torch.from_numpy(data.train_labels[self.probe]).to(self.spec.device)
        return Epoch(
            epoch=epoch,
            train_loss=train_loss,
            train_accuracy=train_accuracy,
            true_accuracy=score(train_logits, data.train_true)[1],
            test_loss=test_loss,
            test_accuracy=test_accuracy,
            parameter_norm=float(np.linalg.norm(now)),
            distance=float(np.linalg.norm(now - start)),
            margin=float(np.quantile(margins(train_logits, data.train_labels), 0.1)),
            sharpness=sharpness(self.model, watched, given),
            effective_rank=effective_rank(last_layer),
        )

    def _snapshot(self, layers: list[np.ndarray]) -> dict[str, np.ndarray]:
        positive = np.hstack([layer[self.probe] for layer in layers]) > self.function.on
        if self.function.relative:
            layers = [above_least(layer) for layer in layers]
        watched = np.hstack([layer[self.probe] for layer in layers])
        means = class_means(watched, self.data.train_true[self.probe])
        return {
            "fired": np.packbits(firing(watched, self.spec.firing), axis=1),
            "positive": np.packbits(positive, axis=1),
            "class_means": means.astype(np.float32),
            "histogram": np.hstack([activation_histogram(layer) for layer in layers]).astype(np.int32),
            "half_histograms": np.stack([activation_histogram(watched[half]) for half in self.halves]).astype(np.int32),
        }


def _take_over(model: torch.nn.Module, start: Mapping[str, np.ndarray]) -> None:
    """Hidden layers of a network that was trained on something else; its last layer is left alone."""
    last = [name.rpartition(".")[0] for name, part in start.items() if part.ndim > 1][-1]
    taken = {name: torch.from_numpy(part) for name, part in start.items() if name.rpartition(".")[0] != last}
    model.load_state_dict(taken, strict=False)


def _weights(model: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: values.detach().cpu().numpy().copy() for name, values in model.state_dict().items()}
