"""A run: one network trained once, and what all its hidden neurons did on the way.

A run is determined by its parameters, the data, the code that makes it and the versions of the libraries that this code
computes with. It is trained when it is first asked for and read from the store ever after, by any process.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nbutils.data.datasets import load_dataset
from nbutils.runs.models import hidden_widths
from nbutils.runs.spec import RunSpec
from nbutils.support.arguments import checked
from nbutils.support.code import code_digest
from nbutils.support.provenance import differences, digest_of, environment, provenance
from nbutils.support.store import Store

if TYPE_CHECKING:
    from torch.nn import Module


def run_address(spec: RunSpec, elsewhere: Mapping[str, Any] | None = None) -> str:
    """Where a run is kept: 16 hexadecimal digits that change with all that determines it.

    That is every parameter, the data, the code that makes runs, and the versions of the libraries it computes with: a
    run that was made with others is never served.

    Args:
        spec: the run.
        elsewhere: another environment in which it may have been made; None means this one, see
            :func:`nbutils.support.provenance.environment`.

    Examples:
        >>> run_address(RunSpec(seed=1)) == run_address(RunSpec(seed=1)) != run_address(RunSpec(seed=2))
        True
    """
    determinants = _determinants(spec)
    return digest_of(determinants if elsewhere is None else {**determinants, "environment": elsewhere})


def made_elsewhere(specs: Iterable[RunSpec], store: Store | None = None) -> list[dict[str, Any]]:
    """Environments of runs that are computed again only because versions differ: one for each such run.

    Args:
        specs: runs.
        store: where runs are kept; None means the user's store.
    """
    store = store or Store("runs")
    others = [known for known in store.environments() if differences(known)]
    missing = [spec for spec in dict.fromkeys(specs) if others and not store.path(run_address(spec)).exists()]
    found = (next((e for e in others if store.path(run_address(s, e)).exists()), None) for s in missing)
    return [known for known in found if known is not None]


def _determinants(spec: RunSpec) -> dict[str, Any]:
    start = {"start data": load_dataset(spec.start_from).version} if spec.start_from else {}
    return {
        "spec": spec.model_dump(),
        "data": load_dataset(spec.dataset).version,
        **start,
        "code": code_digest("nbutils.runs.recording.record_runs"),  # and all that it uses
        "environment": environment(),
    }


@checked
@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        spec: its parameters.
        address: its place in the store.
        record: provenance, status, reason of a failure, seconds, and the history of training.
        store: where it is kept.
    """

    spec: RunSpec
    address: str
    record: dict[str, Any]
    store: Store

    @property
    def failed(self) -> str:
        """Why the run failed, in one sentence; empty for a run that finished."""
        return self.record["reason"]

    @cached_property
    def history(self) -> pd.DataFrame:
        """The fields of :class:`nbutils.runs.training.Epoch`, one row per epoch from 0, the untrained network."""
        return pd.DataFrame(self.record["history"])

    @property
    def last_epoch(self) -> int:
        """Number of epochs trained; fewer than asked for where `stop_at` ended training."""
        return int(self.record["history"][-1]["epoch"])

    @cached_property
    def layers(self) -> np.ndarray:
        """Hidden layer of every neuron, numbered from 1, shape (neurons,)."""
        widths = hidden_widths(self.spec.model)
        return np.repeat(np.arange(1, len(widths) + 1), widths)

    @cached_property
    def _snapshots(self) -> dict[str, np.ndarray]:
        return self.store.arrays(self.address, "snapshots")

    @cached_property
    def _checkpoints(self) -> dict[str, np.ndarray]:
        return self.store.arrays(self.address, "checkpoints")

    def fired(self, epoch: int, rule: str | None = None) -> np.ndarray:
        """Activation pattern matrix over the probe set after an epoch, boolean, shape (probe, neurons).

        Args:
            epoch: 0 (untrained) up to `last_epoch`, those between only where every epoch was recorded; -1 is the last.
            rule: None for the run's own firing rule, or "positive".
        """
        key = {None: "fired", self.spec.firing: "fired", "positive": "positive"}.get(rule)
        if key is None:
            raise ValueError(
                f"rule must be {self.spec.firing!r} or 'positive', which this run stored, received {rule!r}"
            )
        return np.unpackbits(self._snapshots[key][self._place(epoch)], axis=1, count=len(self.layers)).astype(bool)

    def _place(self, epoch: int) -> int:
        """Of an epoch among those that were recorded."""
        recorded = [row["epoch"] for row in self.record["history"]]
        if epoch != -1 and epoch not in recorded:
            known = f"from 0 to {recorded[-1]}" if len(recorded) > recorded[-1] else " or ".join(map(str, recorded))
            raise ValueError(f"epoch must be {known}, or -1 for the last, received {epoch!r}")
        return -1 if epoch == -1 else recorded.index(epoch)

    def class_means(self, epoch: int) -> np.ndarray:
        """Mean activation per true class over the probe set, shape (classes, neurons)."""
        return self._snapshots["class_means"][self._place(epoch)]

    def histogram(self, epoch: int) -> np.ndarray:
        """Histogram of each neuron's positive activations over the whole training set, shape (10, neurons)."""
        return self._snapshots["histogram"][self._place(epoch)]

    def half_histograms(self, epoch: int) -> np.ndarray:
        """The same on two halves of the probe, see :func:`nbutils.data.datasets.probe_halves`; (2, 10, neurons)."""
        return self._snapshots["half_histograms"][self._place(epoch)]

    @cached_property
    def probe_labels(self) -> np.ndarray:
        """True class of each probe example, shape (probe,)."""
        return self._snapshots["probe_labels"]

    def network(self, epoch: int = -1) -> Module:
        """The trained network (-1), the untrained one (0), or with checkpoints that of any epoch; in evaluation mode.

        Raises:
            ValueError: the weights of that epoch are not stored.
        """
        if self.spec.checkpoints and not -1 <= epoch <= self.last_epoch:
            raise ValueError(f"epoch must be from 0 to {self.last_epoch}, or -1 for the last, received {epoch!r}")
        if not self.spec.checkpoints and epoch not in (0, -1):
            raise ValueError(
                f"only the first (0) and the last (-1) weights are stored, received epoch {epoch!r}; "
                "ask for a run with checkpoints=True"
            )
        import torch

        from nbutils.runs.models import build_model

        data, spec = load_dataset(self.spec.dataset), self.spec
        sizes = data.image_shape, len(data.classes)
        how = spec.dropout, spec.initialisation, spec.activation, spec.normalisation, spec.sparsity
        model = build_model(spec.model, *sizes, *how)
        if epoch in (0, -1):
            stored = self.store.arrays(self.address, "first_weights" if epoch == 0 else "last_weights")
        else:
            stored = {name: values[epoch] for name, values in self._checkpoints.items()}
        model.load_state_dict({name: torch.from_numpy(values) for name, values in stored.items()})
        return model.eval()


@checked
def run_once(spec: RunSpec, store: Store | None = None) -> Run:
    """Train and capture a run, or read it if the store has it.

    A run whose activations stop being finite numbers is stored as failed, with its reason and its history so far.

    Args:
        spec: the run.
        store: where runs are kept; None means the user's store.

    Returns:
        The :class:`Run`; look at `.failed` before using snapshots.

    Raises:
        ValueError: the probe is larger than the training set.

    Examples:
        >>> run = run_once(RunSpec(epochs=1, model="mlp:8"))
        >>> run.fired(1).shape
        (1437, 8)
    """
    return run_together([spec], store)[0]


def run_together(specs: Sequence[RunSpec], store: Store | None = None) -> list[Run]:
    """Runs that are alike, see :meth:`nbutils.runs.spec.RunSpec.alike`: what the store lacks is trained side by side.

    Each is the same, bit for bit, as if :func:`run_once` had made it.

    Args:
        specs: the runs.
        store: where runs are kept; None means the user's store.

    Returns:
        The :class:`Run` of each.

    Raises:
        ValueError: the probe is larger than the training set, or the runs differ in more.

    Examples:
        >>> [run.spec.seed for run in run_together([RunSpec(epochs=1, model="mlp:8", seed=seed) for seed in (0, 1)])]
        [0, 1]
    """
    store = store or Store("runs")
    found = {run_address(spec): spec for spec in specs}
    missing = [where for where in found if store.read(where) is None]
    for where in missing:
        found[where].check()
    bases = {where: run_once(found[where].base(), store) for where in missing if found[where].start_from}
    starts = {where: store.arrays(base.address, "last_weights") for where, base in bases.items() if not base.failed}
    with ExitStack() as locks:
        for where in sorted(missing):  # in one order, so that two processes never wait for each other
            locks.enter_context(store.lock(where))
        missing = [where for where in missing if store.read(where) is None]
        if missing:
            from threadpoolctl import threadpool_limits

            from nbutils.runs.recording import record_runs  # loads PyTorch, which reading a stored run never needs

            start = time.perf_counter()
            with threadpool_limits(1):  # NumPy's sums, too, must not depend on how many cores there are
                made = record_runs([found[where] for where in missing], [starts.get(where) for where in missing])
            seconds = round((time.perf_counter() - start) / len(missing), 3)
            for where, (summary, arrays) in zip(missing, made, strict=True):
                record = {**_determinants(found[where]), **summary, "seconds": seconds, "provenance": provenance()}
                store.write(where, record, **arrays)
    return [_stored(spec, store) for spec in specs]


def _stored(spec: RunSpec, store: Store) -> Run:
    where = run_address(spec)
    if (record := store.read(where)) is None:
        raise OSError(f"run {where} was written to {store.path(where)} but cannot be read back")
    return Run(spec, where, record, store)
