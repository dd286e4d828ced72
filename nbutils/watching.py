"""Looking into a network while it trains, in any PyTorch loop: counts of every batch, and whole snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from nbutils.activations import firing
from nbutils.arrays import as_labels
from nbutils.devices import device_counts, on_processor
from nbutils.hooks import capture_activations, check_all_ran, check_output, matching_layers, neuron_activations
from nbutils.measures import MeasureSpec, measure_communities, measure_entropies
from nbutils.streaming import ROOM, CofiringCounter

__all__ = ["Watch", "count_cofiring"]


@contextmanager
def count_cofiring(model: nn.Module, layers: str = "*", threshold: float = 0.0) -> Iterator[CofiringCounter]:
    """Count exactly which neurons fire together in every batch that a network trains on.

    A neuron fires when its activation exceeds the threshold. Whole passes through the model in training mode are
    counted; scoring the network in between, running a layer alone, or a pass that fails does no harm.

    Args:
        model: any PyTorch module.
        layers: wildcard over layer names, see :func:`nbutils.hooks.matching_layers`; dropout before a layer counts.
        threshold: activations above it are firing.

    Yields:
        A :class:`nbutils.streaming.CofiringCounter` over the neurons of the layers, in the model's order. The model is
        as it was when the block ends.

    Raises:
        ValueError: no layer matches, or the layers give different numbers of examples.
        RuntimeError: a layer runs twice in one pass, does not run, or returns no tensor; or later layers change its
            output in place, but did not in the first pass.

    Examples:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> with count_cofiring(model, "1") as counter:
        ...     _ = model(torch.ones(5, 2))
        >>> counter.examples, counter.counts().shape
        (5, (3, 3))
    """
    modules, waiting = dict(model.named_modules()), _Waiting(model, matching_layers(model, layers), threshold)
    with ExitStack() as wrapped:
        for name in waiting.names:
            wrapped.enter_context(_wrapped(modules[name], partial(waiting.run_layer, name)))
        wrapped.enter_context(_wrapped(model, waiting.run_model))  # last: a model may be its own only layer
        try:
            yield waiting.counter
            waiting.flush()
        finally:
            waiting.counter.source = None


@contextmanager
def _wrapped(module: nn.Module, run: Callable[..., Any]) -> Iterator[None]:
    """Have a function run a module, given its `forward`: cheaper than a hook, for which PyTorch leaves a short way."""
    forward, own = module.forward, vars(module).get("forward")
    module.forward = partial(run, forward)  # a copy of the model copies this too, with its own layers
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


class _Waiting:
    """Activations of the last batches, side by side on the model's own device, until a pass over the pairs is worth it.

    Few, cheap steps per batch, for they are the cost: outputs wait for the end of the pass, if no layer changes them.
    """

    def __init__(self, model: nn.Module, names: list[str], threshold: float) -> None:
        self.model, self.names, self.threshold, self.counter = model, names, threshold, CofiringCounter()
        self.counter.source = self.flush
        self._noted: dict[str, tuple] | None = None  # in a pass that counts: values, the whole output, its version
        self._in_place: set[str] | None = None  # layers whose output is changed later; None until a pass was seen
        self._room: torch.Tensor | None = None
        self._filled = 0

    def run_model(self, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """One pass through the whole model; it is counted if it succeeds."""
        self._noted = {} if self.model.training else None
        try:
            output = forward(*args, **kwargs)
            if self._noted is not None:  # in a model that runs itself, the pass inside was counted
                self._end_of_pass(self._noted)
            return output
        finally:
            self._noted = None

    def run_layer(self, name: str, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A layer's part of a pass; alone, it is not noted."""
        output = forward(*args, **kwargs)
        if self._noted is None:
            return output
        check_output(name, output, self._noted)
        values = output
        if output.ndim != 2 or output.dtype != torch.float32:
            values = neuron_activations(output.detach(), name)
        elif self._in_place is None or name in self._in_place:
            values = output.detach().clone()
        self._noted[name] = values, output, output._version
        return output

    def _end_of_pass(self, noted: dict[str, tuple]) -> None:
        check_all_ran(self.names, noted)
        changed = {name for name, (_, output, was) in noted.items() if output._version != was}
        if self._in_place is None:
            self._in_place = changed
        elif not changed <= self._in_place:
            raise RuntimeError(f"layers {sorted(changed)} are changed in place in this pass, but were not in the first")
        parts = [noted[name][0] for name in self.names]
        if len({len(part) for part in parts}) > 1:
            raise ValueError(f"layers must see the same examples, these saw {[len(part) for part in parts]}")
        with torch.no_grad():
            self._keep(parts)

    def _keep(self, parts: list[torch.Tensor]) -> None:
        examples, neurons = len(parts[0]), sum(part.shape[1] for part in parts)
        if self._room is None:
            self._room = parts[0].new_empty(ROOM, neurons)
        if neurons != self._room.shape[1]:
            raise ValueError(f"layers must have {self._room.shape[1]} neurons as before, received {neurons}")
        if self._filled + examples > ROOM:
            self.flush()
        if examples > ROOM:
            self._count(torch.cat(parts, dim=1))
        else:
            torch.cat(parts, dim=1, out=self._room[self._filled : self._filled + examples])
            self._filled += examples

    def flush(self) -> None:
        """Count what waits."""
        if self._filled:
            filled, self._filled = self._filled, 0
            self._count(self._room[:filled])

    def _count(self, activations: torch.Tensor) -> None:
        fired = activations > self.threshold
        if on_processor(fired):
            self.counter.update(fired)
        else:
            self.counter.add_counts(device_counts(fired, fired.device), len(fired))


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
