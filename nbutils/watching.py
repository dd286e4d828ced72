"""Looking into a network while it trains, in any PyTorch loop: counts of every batch, and whole snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from nbutils.activations import firing
from nbutils.arrays import as_labels
from nbutils.hooks import capture_activations, matching_layers, neuron_activations
from nbutils.measures import MeasureSpec, measure_communities, measure_entropies
from nbutils.streaming import ROOM, CofiringCounter

__all__ = ["Watch", "count_cofiring"]


@contextmanager
def count_cofiring(model: nn.Module, layers: str = "*", threshold: float = 0.0) -> Iterator[CofiringCounter]:
    """Count exactly which neurons fire together in every batch that a network trains on.

    A neuron fires when its activation exceeds the threshold. Passes in evaluation mode are not counted, so scoring the
    network in between does no harm.

    Args:
        model: any PyTorch module.
        layers: wildcard over layer names, see :func:`nbutils.hooks.matching_layers`; dropout before a layer counts.
        threshold: activations above it are firing.

    Yields:
        A :class:`nbutils.streaming.CofiringCounter` over the neurons of the layers, in the model's order. The hooks
        are removed when the block ends.

    Raises:
        ValueError: no layer matches, or the layers give different numbers of examples.

    Examples:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> with count_cofiring(model, "1") as counter:
        ...     _ = model(torch.ones(5, 2))
        >>> counter.examples, counter.counts().shape
        (5, (3, 3))
    """
    modules, names = dict(model.named_modules()), matching_layers(model, layers)
    counter = CofiringCounter()
    fired: dict[str, np.ndarray] = {}

    def compare(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, output: torch.Tensor) -> None:
            if model.training:
                # At once, because a later layer may work in place; with NumPy, which takes half of PyTorch's time here.
                values = output.detach() if output.ndim == 2 else neuron_activations(output.detach(), name)
                fired[name] = values.cpu().numpy() > threshold

        return hook

    def add(*_: Any) -> None:
        if fired:
            parts = [fired[name] for name in names]
            fired.clear()
            if len({len(part) for part in parts}) > 1:
                raise ValueError(f"layers must see the same examples, these saw {[len(part) for part in parts]}")
            width = sum(part.shape[1] for part in parts)
            for start in range(0, len(parts[0]), ROOM):
                batch = [part[start : start + ROOM] for part in parts]
                np.concatenate(batch, axis=1, out=counter.room(len(batch[0]), width))
                counter.commit()

    handles = [modules[name].register_forward_hook(compare(name)) for name in names]
    try:
        handles.append(model.register_forward_hook(add))
        yield counter
    finally:
        for handle in handles:
            handle.remove()


class Watch:
    """Snapshots of a network's communities and entropies, taken whenever you like while it trains.

    Args:
        model: the network.
        inputs: probe examples, shape (examples, ...), the same at every snapshot.
        labels: their classes, shape (examples,); None leaves out the measures that need them.
        layers: wildcard over layer names, see :func:`nbutils.hooks.matching_layers`.
        rule: what firing is, see :func:`nbutils.activations.firing`.
        spec: how communities are measured.

    Raises:
        ValueError: no layer matches, or shapes disagree.

    Examples:
        >>> model = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 2))
        >>> watch = Watch(model, torch.randn(50, 4), layers="1")
        >>> row = watch.snapshot(epoch=0)
        >>> list(watch.table.columns)
        ['epoch', 'modularity', 'communities', 'well_defined', 'coverage', 'seconds']
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Any,
        labels: Any = None,
        layers: str = "*",
        rule: str = "top-decile",
        spec: MeasureSpec | None = None,
    ) -> None:
        matching_layers(model, layers)
        self.model, self.inputs, self.layers, self.rule = model, torch.as_tensor(inputs), layers, rule
        self.labels = None if labels is None else as_labels(labels, len(self.inputs))
        self.spec = spec or MeasureSpec()
        self._rows: list[dict[str, Any]] = []

    def snapshot(self, **facts: Any) -> dict[str, Any]:
        """Measure the network as it is; it gets its own mode back afterwards.

        Args:
            **facts: what to remember beside the measures, such as the epoch and the loss.

        Returns:
            The facts, the measures of :func:`nbutils.measures.measure_communities`, with labels those of
            :func:`nbutils.measures.measure_entropies` (the last matching layer is the last layer), and `seconds`: what
            this snapshot cost.
        """
        start = time.perf_counter()
        layers = list(capture_activations(self.model, self.inputs, self.layers).values())
        fired = firing(np.hstack(layers), self.rule)
        row = {**facts, **measure_communities(fired, self.spec)}
        if self.labels is not None:
            last = np.arange(fired.shape[1]) >= fired.shape[1] - layers[-1].shape[1]
            row |= measure_entropies(fired, self.labels, last)
        row["seconds"] = time.perf_counter() - start
        self._rows.append(row)
        return row

    @property
    def table(self) -> pd.DataFrame:
        """All snapshots so far, one a row."""
        return pd.DataFrame(self._rows)

    def callback(self) -> Any:
        """A callback in the manner of Lightning that takes a snapshot after every training epoch.

        It needs no Lightning; pass it in `Trainer(callbacks=[watch.callback()])`, or call its `on_train_epoch_end`.
        """
        return _Callback(self)


class _Callback:
    """Answers to every hook that Lightning may call, and acts on one."""

    state_key = "nbutils.Watch"

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:
        self._watch.snapshot(epoch=int(trainer.current_epoch) + 1)

    def state_dict(self) -> dict[str, Any]:
        return {}

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on_") or name in ("setup", "teardown", "load_state_dict"):
            return lambda *_args, **_options: None
        raise AttributeError(name)
