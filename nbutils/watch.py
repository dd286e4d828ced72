"""Looking into a network while it trains, in any PyTorch loop: counts of every batch, and whole snapshots."""

from __future__ import annotations

import csv
import io
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, SequentialSampler

from nbutils.activations import firing, firing_share
from nbutils.capturing.batches import gather
from nbutils.capturing.hooks import (
    Wanted,
    as_written,
    capture_activations,
    check_all_ran,
    check_output,
    evaluating,
    observed,
    wanted_layers,
)
from nbutils.capturing.layouts import FeaturesLast, Layout, NonFiniteError, Reading, read_layers
from nbutils.capturing.proposals import propose_layers
from nbutils.counter import ROOM, CofiringCounter
from nbutils.measures import MeasureSpec, measure_communities, measure_entropies
from nbutils.support.checks import as_labels, is_number, shown
from nbutils.support.devices import device_counts, on_processor


@contextmanager
def count_cofiring(
    model: nn.Module, layers: str | Collection[str] = "*", threshold: float = 0.0, layout: Layout = "auto"
) -> Iterator[CofiringCounter]:
    """Count exactly which neurons fire together in every batch that a network trains on.

    A neuron fires when its activation exceeds the threshold. Whole passes through the model in training mode are
    counted, with what dropout and batch norm do to them; scoring the network in between, running a layer alone, or a
    pass that fails does no harm. The first dimension of the model's first tensor is the examples, and must be that of
    every layer's output. Where another dimension has the same length by chance, one small pass in evaluation mode,
    once, shows which it is.

    Args:
        model: any PyTorch module; one that was compiled runs uncompiled in the block.
        layers: wildcard over names of modules, see :func:`nbutils.capturing.hooks.matching_layers`; dropout before a
            layer counts. Functions that the model calls, and further uses of a layer, :class:`Watch` looks at.
        threshold: activations above it are firing, a finite number.
        layout: "channels-first", "features-last" or "steps-first" where a layer's type does not tell, or a mapping from
            layer wildcards to these words; see :func:`nbutils.capturing.layouts.read_layers`.

    Yields:
        A :class:`nbutils.counter.CofiringCounter` over the neurons of the layers, in the model's order. The model is
        as it was when the block ends.

    Raises:
        ValueError: no layer matches, the layers give other numbers of examples than the model was given, an output's
            layout is not known, or an argument is out of range.
        RuntimeError: a layer runs twice in one pass, does not run, or returns no tensor; or later layers change its
            output in place, but did not in the first pass.
        NonFiniteError: (a ValueError) activations are NaN or infinite, told when they are counted, up to 2,048 examples
            later.

    Examples:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> with count_cofiring(model, "1") as counter:
        ...     _ = model(torch.ones(5, 2))
        >>> counter.examples, counter.counts().shape
        (5, (3, 3))
    """
    wanted = wanted_layers(model, layers)
    if wanted.calls or any("#" in pattern for pattern in wanted.patterns):
        raise ValueError(
            f"layers must name modules here, which run once in a pass, received {shown(layers)}; Watch takes snapshots "
            "of functions and of further uses, too"
        )
    names = wanted.names
    if not is_number(threshold):
        raise ValueError(f"threshold must be a finite number, received {shown(threshold)}")
    modules, waiting = dict(model.named_modules()), _Waiting(model, read_layers(model, names, layout), float(threshold))
    with ExitStack() as wrapped:
        wrapped.enter_context(as_written())
        for name in names:
            wrapped.enter_context(_wrapped(modules[name], partial(waiting.run_layer, waiting.readings[name])))
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

    trying = False  # in any of them: a pass that only shows shapes

    def __init__(self, model: nn.Module, readings: dict[str, Reading], threshold: float) -> None:
        self.model, self.readings, self.threshold = model, readings, threshold
        with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is exceeded by none or by all
            self._limit = np.float32(threshold)
        self.names, self.counter = list(readings), CofiringCounter()
        self.counter.source = self.flush
        self._noted: dict[str, tuple] | None = None  # in a pass that counts: values, the whole output, its version
        self._in_place: set[str] | None = None  # layers whose output is changed later; None until a pass was seen
        self._plain: set[str] = set()  # layers whose output, if it is a plain matrix, is what counts
        self._last = FeaturesLast()  # as far as counted layers show, in the first pass
        self._unsure = set(readings)  # layers of which it is not known yet that their first dimension is the examples
        self._widths: list[int] = []
        self._room: torch.Tensor | None = None
        self._filled = 0

    def run_model(self, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """One pass through the whole model; it is counted if it succeeds."""
        if _Waiting.trying:
            return forward(*args, **kwargs)
        self._noted = {} if self.model.training else None
        try:
            output = forward(*args, **kwargs)
            if self._noted is not None:  # in a model that runs itself, the pass inside was counted
                self._end_of_pass(self._noted, args, kwargs)
            return output
        finally:
            self._noted = None

    def run_layer(self, reading: Reading, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A layer's part of a pass; alone, it is not noted."""
        output, noted, name = forward(*args, **kwargs), self._noted, reading.name
        if noted is None or _Waiting.trying:
            return output
        if name in self._plain and name not in noted and _is_plain(output):  # as nearly always: the short way
            noted[name] = output, output, output._version
            return output
        values = tensor = check_output(name, output, noted)
        if self._in_place is None and self._last.unclear(reading, args, tensor):
            raise reading.unclear(tensor)
        if tensor.ndim != 2 or tensor.dtype != torch.float32 or (reading.dims is not None and 2 not in reading.dims):
            values = reading.neurons(reading.batch_first(tensor.detach()))
        elif self._in_place is None or name in self._in_place or tensor.is_inference():
            values = tensor.detach().clone()
        noted[name] = values, tensor, _version(tensor)
        return output

    def _end_of_pass(self, noted: dict[str, tuple], args: tuple, kwargs: dict[str, Any]) -> None:
        if not self._unsure and args and type(args[0]) is torch.Tensor and self._plain.issuperset(noted):
            parts = [values for values, output, was in noted.values() if values is output and values._version == was]
            # As nearly always, the short way: plain matrices of these examples, in order, and none was changed.
            shapes, given = [part.shape for part in parts], args[0].shape[:1]
            if [*noted] == self.names and shapes == [(*given, width) for width in self._widths]:
                self._add(parts)
                return
        check_all_ran(self.names, noted)
        changed = {name for name, (_, output, was) in noted.items() if _version(output) != was}
        if self._in_place is None:
            self._in_place, self._last = changed, FeaturesLast()
            matrices = {name for name, reading in self.readings.items() if reading.dims is None or 2 in reading.dims}
            self._plain = matrices - changed
        elif not changed <= self._in_place:
            raise RuntimeError(f"layers {sorted(changed)} are changed in place in this pass, but were not in the first")
        examples = _examples(args[0] if args and isinstance(args[0], torch.Tensor) else (args, kwargs))
        parts = [noted[name][0].detach() for name in self.names]
        if any(part.shape[0] != examples for part in parts):
            if examples is not None:
                for name in self.names:
                    self.readings[name].batch_first(noted[name][1], examples)
            if len({len(part) for part in parts}) > 1:
                raise ValueError(f"layers must see the same examples, these saw {[len(part) for part in parts]}")
        if self._unsure:
            self._make_sure(noted, args, kwargs, len(parts[0]))
        self._keep(parts)

    def _make_sure(self, noted: dict[str, tuple], args: tuple, kwargs: dict[str, Any], examples: int) -> None:
        """Refuse outputs whose first dimension has the length of the batch by chance."""
        modules = dict(self.model.named_modules())
        shapes = {name: noted[name][1].shape for name in self._unsure}
        # An embedding may be one of positions, and know nothing of the examples.
        chance = {
            name
            for name, shape in shapes.items()
            if list(shape).count(examples) > 1 or isinstance(modules[name], nn.Embedding)
        }
        other = examples - 1 or 2
        try:
            if chance:
                self._try(sorted(chance), other, *_resized((args, kwargs), examples, other))
        except RuntimeError as error:
            name = min(chance)
            raise ValueError(
                f"layer {name!r} gave shape {tuple(shapes[name])} for a batch of {examples} examples; which dimension "
                f"holds them is not clear, for a pass of {other} failed: {error}"
            ) from None
        self._unsure = set()

    def _try(self, names: list[str], examples: int, args: tuple, kwargs: dict[str, Any]) -> None:
        """A pass that leaves no trace: in evaluation mode, without anyone's hooks, from the same random state."""
        device = next((p.device for p in self.model.parameters() if p.is_cuda), None)
        kept = [(m, m._forward_hooks, m._forward_pre_hooks) for m in self.model.modules()]
        _Waiting.trying = True
        try:
            for module, _, _ in kept:
                module._forward_hooks, module._forward_pre_hooks = OrderedDict(), OrderedDict()
            with evaluating(self.model), torch.no_grad(), torch.random.fork_rng([] if device is None else [device]):
                check = {name: self.readings[name] for name in names}
                with observed(
                    self.model, Wanted.exactly(names), lambda name, output: check[name].batch_first(output, examples)
                ):
                    self.model(*args, **kwargs)
        finally:
            _Waiting.trying = False
            for module, hooks, pre_hooks in kept:
                module._forward_hooks, module._forward_pre_hooks = hooks, pre_hooks

    def _keep(self, parts: list[torch.Tensor]) -> None:
        widths = [part.shape[1] for part in parts]
        if self._widths and sum(widths) != sum(self._widths):
            raise ValueError(f"layers must have {sum(self._widths)} neurons as before, received {sum(widths)}")
        self._widths = widths
        if all(part.dtype is torch.float32 and on_processor(part) for part in parts):
            self._add([part.contiguous() for part in parts])
            return
        if self._room is None:
            self._room = parts[0].new_empty(ROOM, sum(widths))
        examples = parts[0].shape[0]
        if self._filled + examples > ROOM:
            self.flush()
        if examples > ROOM:
            self._count(torch.cat(parts, dim=1))
        else:
            torch.cat(parts, dim=1, out=self._room[self._filled : self._filled + examples])
            self._filled += examples

    def _add(self, parts: list[torch.Tensor]) -> None:
        """Add a batch of contiguous float32 in this processor's memory, of the widths that were there before."""
        from nbutils.support import loops

        examples = parts[0].shape[0]
        if examples > ROOM:
            for place, part in enumerate(parts):  # all of it or nothing
                if not torch.isfinite(part).all():
                    raise self._not_finite(place, part)
            for some in zip(*(part.detach().split(ROOM) for part in parts), strict=True):
                self._add(list(some))
            return
        (bits, first), column, bad = self.counter.room(examples, sum(self._widths)), 0, -1
        for place, part in enumerate(parts):
            width = self._widths[place]
            if not loops.add_firing(part.data_ptr(), examples, width, self._limit, first, bits, column):
                bad = place
            column += width
        if bad < 0:
            self.counter.fill(examples)
            return
        for example in range(first, first + examples):
            bits[example // 64] &= ~np.uint64(1 << example % 64)
        raise self._not_finite(bad, parts[bad])

    def _not_finite(self, place: int, values: torch.Tensor) -> NonFiniteError:
        bad = int((~torch.isfinite(values)).sum())
        return NonFiniteError(f"layer {self.names[place]!r} holds {bad} NaN or infinite activations")

    def flush(self) -> None:
        """Count what waits."""
        if self._filled:
            filled, self._filled = self._filled, 0
            self._count(self._room[:filled])

    def _count(self, activations: torch.Tensor) -> None:
        if not torch.isfinite(activations.sum()):  # the sum costs less than to look at each, and may overflow
            for place, part in enumerate(activations.split(self._widths, dim=1)):
                if not torch.isfinite(part).all():
                    raise self._not_finite(place, part)
        fired = activations > self.threshold
        if on_processor(fired):
            self.counter.update(fired)
        else:
            self.counter.add_counts(device_counts(fired, fired.device), len(fired))


def _is_plain(output: Any) -> bool:
    """Whether a layer's output is an ordinary matrix of float32 in this processor's memory."""
    return (
        type(output) is torch.Tensor
        and output.ndim == 2
        and output.dtype is torch.float32
        and output.is_contiguous()
        and on_processor(output)
        and not output.is_inference()
    )


def _version(tensor: torch.Tensor) -> int:
    """Rises when a tensor is changed in place; tensors of inference mode do not count, and are copied therefore."""
    return 0 if tensor.is_inference() else tensor._version


def _examples(given: Any) -> int | None:
    """Length of the first tensor among a pass's arguments."""
    if isinstance(given, torch.Tensor):
        return given.shape[0] if given.ndim else None
    if isinstance(given, dict):
        given = tuple(given.values())
    if not isinstance(given, tuple | list):
        return None
    return next((found for found in map(_examples, given) if found is not None), None)


def _resized(given: Any, examples: int, other: int) -> Any:
    """Arguments with another number of examples, the first ones, in every tensor that has one row for each."""
    if isinstance(given, torch.Tensor):
        fits = given.ndim > 0 and len(given) == examples
        return torch.cat([given, given])[:other].clone() if fits else given
    if isinstance(given, dict):
        return {name: _resized(one, examples, other) for name, one in given.items()}
    if type(given) in (tuple, list):
        return type(given)(_resized(one, examples, other) for one in given)
    return given


class Watch:
    """Snapshots of a network's communities and entropies, taken whenever you like while it trains.

    Args:
        model: the network.
        inputs: probe examples, the same at every snapshot, as :func:`nbutils.capturing.hooks.capture_activations` takes
            them; batches are read once, and held.
        labels: their classes, shape (examples,); None leaves out the measures that need them.
        layers: wildcard over layer names and called activation functions, see :func:`nbutils.capturing.hooks.capture`;
            None takes what :func:`nbutils.capturing.proposals.propose_layers` proposes.
        rule: what firing is, see :func:`nbutils.activations.firing`.
        spec: how communities are measured.
        layout: where a layer's type does not tell how its output is read, see
            :func:`nbutils.capturing.layouts.read_layers`.
        log: where every snapshot is written at once: a path that ends in `.csv`, to which rows are added, or anything
            with TensorBoard's `add_scalar`, such as a `SummaryWriter`; None keeps them in :attr:`table` alone.

    Raises:
        ValueError: no layer matches, shapes disagree, or an argument is out of range.

    Examples:
        >>> model = nn.Sequential(nn.Linear(4, 9), nn.ReLU(), nn.Linear(9, 2))
        >>> watch = Watch(model, torch.randn(50, 4), layers="1")
        >>> row = watch.snapshot(epoch=0)
        >>> list(watch.table.columns)
        ['epoch', 'modularity', 'communities', 'well_defined', 'connected_share', 'seconds']
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Any,
        labels: Any = None,
        layers: str | Collection[str] | None = None,
        rule: str = "top-decile",
        spec: MeasureSpec | None = None,
        layout: Layout = "auto",
        log: Any = None,
    ) -> None:
        held = gather(inputs)
        if layers is None:
            layers = [one.name for one in propose_layers(model, held) if one.chosen]
        wanted = wanted_layers(model, layers)
        read_layers(model, wanted.names, layout, calls=wanted.calls)
        firing_share(rule)
        if not isinstance(spec, MeasureSpec | None):
            raise ValueError(f"spec must be a MeasureSpec, or None, received {shown(spec)}")
        if labels is not None and isinstance(inputs, DataLoader) and not _in_order(inputs):
            raise ValueError("labels do not fit inputs, a DataLoader that shuffles or draws; use shuffle=False")
        self.model, self.layers, self.rule, self.layout = model, layers, rule, layout
        self.inputs = held
        self.labels = None if labels is None else as_labels(labels, len(self.inputs))
        self.spec = spec or MeasureSpec()
        self._log = _log_of(log)
        self._rows: list[dict[str, Any]] = []

    def snapshot(self, **facts: Any) -> dict[str, Any]:
        """Measure the network as it is; each of its modules gets its own mode back afterwards.

        Args:
            **facts: what to remember beside the measures, such as the epoch and the loss.

        Returns:
            The facts, the measures of :func:`nbutils.measures.measure_communities`, with labels those of
            :func:`nbutils.measures.measure_entropies` (the last matching layer is the last layer), and `seconds`: what
            this snapshot cost.

        Raises:
            ValueError: a fact has the name of a measure; the network cannot be captured, see
                :func:`nbutils.capturing.hooks.capture_activations`; or the log has other columns.
        """
        start = time.perf_counter()
        layers = list(capture_activations(self.model, self.inputs, self.layers, layout=self.layout).values())
        fired = firing(np.hstack(layers), self.rule)
        row = measure_communities(fired, self.spec)
        if self.labels is not None:
            last = np.arange(fired.shape[1]) >= fired.shape[1] - layers[-1].shape[1]
            row |= measure_entropies(fired, self.labels, last)
        row["seconds"] = time.perf_counter() - start
        if taken := sorted(facts.keys() & row.keys()):
            raise ValueError(f"{taken[0]!r} is the name of a measure; give the fact {facts[taken[0]]!r} another name")
        row = {**facts, **row}
        self._rows.append(row)
        self._log(row, facts.get("epoch", len(self._rows) - 1))
        return row

    @property
    def table(self) -> pd.DataFrame:
        """All snapshots so far, one a row."""
        return pd.DataFrame(self._rows)

    def callback(self) -> Any:
        """A callback for Lightning's Trainer and for that of Hugging Face: a snapshot before training, one per epoch.

        Pass it in `Trainer(callbacks=[watch.callback()])` of either library; neither is needed here. Each snapshot has
        the number of finished epochs as `epoch`. Where several processes train one network, the first one looks.
        """
        return _Callback(self)


def _in_order(loader: DataLoader) -> bool:
    """Whether examples come in the order of their data set, as labels do."""
    if isinstance(loader.dataset, IterableDataset):
        return True
    return isinstance(getattr(loader.batch_sampler, "sampler", loader.sampler), SequentialSampler)


def _log_of(log: Any) -> Callable[[dict[str, Any], Any], None]:
    """What writes a row and the step that it is of."""
    if log is None:
        return lambda _row, _step: None
    if callable(getattr(log, "add_scalar", None)):
        return partial(_add_scalars, log)
    if not isinstance(log, str | Path) or Path(log).suffix != ".csv":
        raise ValueError(f"log must be a path that ends in .csv, or have add_scalar, received {shown(log)}")
    if not Path(log).parent.is_dir():
        raise ValueError(f"log must be in a folder that is there, received {shown(str(log))}")
    return partial(_add_line, Path(log))


def _add_scalars(writer: Any, row: dict[str, Any], step: Any) -> None:
    for name, value in row.items():
        if is_number(value):  # what is not defined is left out
            writer.add_scalar(f"nbutils/{name}", value, step)


def _add_line(path: Path, row: dict[str, Any], _step: Any) -> None:
    line, new = io.StringIO(), not path.exists() or not path.stat().st_size
    table = csv.DictWriter(line, list(row), lineterminator="\n")
    if new:
        table.writeheader()
    else:
        with path.open(newline="", encoding="utf-8") as there:
            if (known := next(csv.reader(there), [])) != list(row):
                raise ValueError(f"log {path} has other columns ({shown(known)}) than this snapshot; use another file")
    table.writerow(row)
    with path.open("a", encoding="utf-8") as file:  # whole lines, so that a crash leaves whole rows
        file.write(line.getvalue())


class _Callback:
    """Answers to every hook that Lightning or Hugging Face's Trainer may call, and acts on four."""

    state_key = "nbutils.Watch"

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def on_train_start(self, trainer: Any, *_: Any) -> None:
        """Of Lightning."""
        if trainer.is_global_zero:
            self._watch.snapshot(epoch=int(trainer.current_epoch))

    def on_train_epoch_end(self, trainer: Any, *_: Any) -> None:
        """Of Lightning."""
        if trainer.is_global_zero:
            self._watch.snapshot(epoch=int(trainer.current_epoch) + 1)

    def on_train_begin(self, _args: Any, state: Any, _control: Any, **_options: Any) -> None:
        """Of Hugging Face."""
        self.on_epoch_end(None, state, None)

    def on_epoch_end(self, _args: Any, state: Any, _control: Any, **_options: Any) -> None:
        """Of Hugging Face, which counts epochs in parts."""
        if state.is_world_process_zero:
            self._watch.snapshot(epoch=round(state.epoch or 0))

    def state_dict(self) -> dict[str, Any]:
        """Nothing is kept in checkpoints."""
        return {}

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("on_") or name in ("setup", "teardown", "load_state_dict"):
            return lambda *_args, **_options: None
        raise AttributeError(name)
