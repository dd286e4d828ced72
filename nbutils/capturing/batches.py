"""What a model is shown: arrays, several of them, or batches that arrive one by one, as the model takes them.

Activations as they come, pass by pass, and whether they are those of the examples: the same in any batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import nn
from torch.utils.data import Dataset

from nbutils.capturing.layouts import Layout, Reading, read_call
from nbutils.support.checks import as_numpy, shown
from nbutils.support.messages import cut

ALLOWED = "a tensor or an array, a tuple or list that begins with one, or a dict of them"


@dataclass(frozen=True)
class Batch:
    """Arguments of a forward pass, all with the same number of examples.

    Attributes:
        args: arguments by position, arrays or tensors.
        named: arguments by name.

    Examples:
        >>> len(Batch((np.zeros((5, 2)),))), len(Batch((np.zeros((5, 2)),)).rows(slice(3)))
        (5, 3)
    """

    args: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(chain(self.args, self.named.values())))

    def rows(self, which: slice | list[int]) -> Batch:
        """Some of the examples."""
        return Batch(tuple(a[which] for a in self.args), {name: a[which] for name, a in self.named.items()})


def as_batch(inputs: Any, name: str = "inputs") -> Batch:
    """The arguments that inputs stand for.

    Args:
        inputs: an array, a tensor or nested lists, the model's only argument; a tuple of arrays, its arguments; or a
            dict of arrays, its arguments by name. The first dimension is the examples.
        name: of the inputs, for messages.

    Returns:
        A :class:`Batch` of arrays and tensors of real numbers.

    Raises:
        ValueError: no real numbers, no examples, or arrays of different lengths.

    Examples:
        >>> len(as_batch({"x": [[1.0], [2.0]], "mask": [True, False]}))
        2
    """
    if isinstance(inputs, Mapping):
        if not inputs or not all(isinstance(key, str) for key in inputs):
            raise ValueError(f"{name} must name the model's arguments, received the keys {shown(list(inputs))}")
        batch = Batch(named={key: _array(values, f"{name}[{key!r}]") for key, values in inputs.items()})
    elif isinstance(inputs, tuple) and inputs and all(map(_is_array, inputs)):
        batch = Batch(tuple(_array(values, f"{name}[{place}]") for place, values in enumerate(inputs)))
    else:
        batch = Batch((_array(inputs, name),))
    lengths = [len(values) for values in chain(batch.args, batch.named.values())]
    if len(set(lengths)) > 1:
        raise ValueError(f"{name} must hold arrays with equally many examples, received {lengths}")
    return batch


def stream(inputs: Any) -> Iterator[Batch]:
    """Inputs, whole or as their batches arrive.

    Args:
        inputs: what :func:`as_batch` takes; or a torch `DataLoader` or any other iterable of batches, each an array, a
            tuple or list of which the first element is the input or, itself a tuple, several (labels after it are
            ignored), or a dict.

    Yields:
        One :class:`Batch` for arrays, else one for each batch.

    Raises:
        ValueError: a batch is none of these, or there are none.

    Examples:
        >>> [len(batch) for batch in stream(iter([(np.zeros((4, 2)), "labels"), (np.zeros((3, 2)), "labels")]))]
        [4, 3]
    """
    if isinstance(inputs, Batch):
        yield inputs
        return
    if isinstance(inputs, Dataset):
        raise ValueError(f"inputs is a {type(inputs).__name__}, which gives single examples; wrap it in a DataLoader")
    if not _holds_batches(inputs):
        yield as_batch(inputs)
        return
    place = -1
    for place, item in enumerate(inputs):
        name, first = f"batch {place} of inputs", item
        if isinstance(item, tuple | list):
            first = item[0] if item else None
            if isinstance(first, list) and first and all(map(_is_array, first)):
                first = tuple(first)  # several inputs: a DataLoader turns the tuples inside a batch into lists
        if not (_is_array(first) or isinstance(first, Mapping | tuple)):
            raise ValueError(f"{name} must be {ALLOWED}, received {type(item).__name__}")
        yield as_batch(first, name)
    if place < 0:
        raise ValueError("inputs must hold at least one example, received no batch")


def gather(inputs: Any) -> Batch:
    """Inputs of any kind, held together.

    Args:
        inputs: see :func:`stream`.

    Raises:
        ValueError: as there, or batches whose shapes disagree.

    Examples:
        >>> len(gather(iter([np.zeros((4, 2)), np.zeros((3, 2))])))
        7
    """
    batches = list(stream(inputs))
    if len(batches) == 1:
        return batches[0]
    shapes = {(*(a.shape[1:] for a in b.args), *((k, a.shape[1:]) for k, a in b.named.items())) for b in batches}
    if len(shapes) > 1:
        raise ValueError(f"batches of inputs must agree in shape, received {sorted(map(str, shapes))[:3]}")
    joined = [
        torch.cat([torch.as_tensor(a) for a in column]) for column in zip(*(b.args for b in batches), strict=True)
    ]
    named = {key: torch.cat([torch.as_tensor(b.named[key]) for b in batches]) for key in batches[0].named}
    return Batch(tuple(joined), named)


def require_values(model: nn.Module) -> None:
    """Refuse a model whose tensors have no values.

    Raises:
        ValueError: a parameter or a buffer lies on the device "meta".
    """
    if any(t.is_meta for t in chain(model.parameters(), model.buffers())):
        raise ValueError("model lies on the device 'meta', where tensors have no values; load its weights first")


class Feeder:
    """Runs a model on batches: on its device and in its floating dtype, and never on the caller's own memory.

    What the model raises is told with the shapes that it was given; memory that ran out, and errors of this package,
    stay as they are. Real numbers are cast to the model's dtype. Integers stay what they are where the model holds an
    embedding, for they may be token numbers, but bytes of more than two dimensions, which are images; booleans among
    several inputs stay too, for they may be masks.

    Args:
        model: any PyTorch module.
        prepare: what turns the only input, on the model's device, into what the model takes; nothing is cast then.

    Raises:
        ValueError: `prepare` cannot be called, or the model holds no values (it lies on the device "meta").

    Examples:
        >>> Feeder(nn.Linear(2, 3))(as_batch(np.zeros((5, 2), np.uint8)))
    """

    def __init__(self, model: nn.Module, prepare: Callable[[torch.Tensor], torch.Tensor] | None = None) -> None:
        if prepare is not None and not callable(prepare):
            raise ValueError(f"prepare must be a function of a batch, or None, received {shown(prepare)}")
        require_values(model)
        self.model, self.prepare = model, prepare
        self.device = next((p.device for p in model.parameters()), None)
        held = (t.dtype for t in chain(model.parameters(), model.buffers()) if t.is_floating_point())
        self.dtype = next(held, torch.get_default_dtype())
        self.has_ids = any(isinstance(part, nn.Embedding | nn.EmbeddingBag) for part in model.modules())

    def __call__(self, batch: Batch) -> None:
        several = len(batch.args) + len(batch.named) > 1
        if self.prepare is None:
            named = {name: self._tensor(values, several) for name, values in batch.named.items()}
            self._run(*(self._tensor(values, several) for values in batch.args), **named)
        elif several or batch.named:
            raise ValueError("prepare takes the model's only input; with several, prepare them before")
        else:
            self._run(self.prepare(_own(batch.args[0], self.device)))

    def _run(self, *args: Any, **named: Any) -> None:
        try:
            self.model(*args, **named)
        except Exception as error:
            if isinstance(error, MemoryError | torch.OutOfMemoryError) or _is_ours(error):
                raise
            given = ", ".join([*map(_told, args), *(f"{name}={_told(value)}" for name, value in named.items())])
            reason = cut(" ".join(str(error).split()) or type(error).__name__, 300)
            raise RuntimeError(f"model failed on inputs {given}: {reason}") from error

    def _tensor(self, values: Any, several: bool) -> torch.Tensor:
        tensor = _own(values, self.device)
        if tensor.dtype == torch.bool and (several or self.has_ids):
            return tensor
        pictures = tensor.dtype == torch.uint8 and tensor.ndim > 2
        if self.has_ids and not tensor.is_floating_point() and not pictures:
            return tensor.long()
        return tensor.to(self.dtype)


def _is_ours(error: BaseException) -> bool:
    """Whether an error was raised in this package, as by what looks at a layer's output."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    file = Path("" if place is None else place.tb_frame.f_code.co_filename)
    return Path(__file__).parents[1] in file.parents and file.name != "calls.py"  # which calls what the model does


def _told(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return f"{tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"


def _own(values: np.ndarray | torch.Tensor, device: torch.device | None) -> torch.Tensor:
    """A tensor of its own: a model may change its input in place."""
    if isinstance(values, torch.Tensor):
        return values.detach().to(values.device if device is None else device, copy=True)
    return torch.from_numpy(np.array(values, order="C")).to(device)


def _is_array(values: Any) -> bool:
    return isinstance(values, torch.Tensor) or (hasattr(values, "__array__") and getattr(values, "ndim", 0) > 0)


def _holds_batches(inputs: Any) -> bool:
    """Whether inputs are an iterable of batches, not an array themselves."""
    if isinstance(inputs, list):
        first = inputs[0] if inputs else None
        if isinstance(first, torch.Tensor) and first.ndim:
            raise ValueError(
                "inputs is a list of tensors; stack them with torch.stack if each is one example, or pass iter(inputs) "
                "if each is a batch"
            )
        begins = isinstance(first, tuple | list) and len(first) > 0 and _is_array(first[0])
        return isinstance(first, Mapping) or begins
    whole = isinstance(inputs, Mapping | tuple | str | bytes | torch.Tensor) or hasattr(inputs, "__array__")
    return isinstance(inputs, Iterable) and not whole and not sp.issparse(inputs)


def _array(values: Any, name: str) -> np.ndarray | torch.Tensor:
    """Real numbers with at least one example, as a plain tensor or array."""
    if not isinstance(values, torch.Tensor):
        array = as_numpy(values, name)
    elif values.is_nested or values.layout != torch.strided or values.is_quantized:
        raise ValueError(f"{name} must be a plain tensor, received a nested, sparse or quantised one")
    elif values.is_meta:
        raise ValueError(f"{name} must hold values, received a tensor on the device 'meta'")
    elif values.is_complex():
        raise ValueError(f"{name} must hold real numbers, received dtype {values.dtype}")
    else:
        array = values
    if array.ndim == 0 or len(array) == 0:
        raise ValueError(f"{name} must hold at least one example, received shape {tuple(array.shape)}")
    return array


ROUNDING = 1e-3  # how far an activation may move with the batch, as a share of the layer's largest value


class Rows:
    """Arrays of activations that fill up, pass by pass.

    A small pass comes before the others; what it gave is compared with the first of these.

    Args:
        readings: how each layer's output is read.
        reduce: "mean" or "max" over positions or tokens.
        layout: of activation functions that the model calls, see :func:`nbutils.capturing.layouts.read_layers`.
    """

    def __init__(self, readings: dict[str, Reading], reduce: str, layout: Layout = "auto") -> None:
        self.readings, self._reduce, self._layout = readings, reduce, layout
        self._filled: list[dict[str, torch.Tensor]] = []  # one for each stretch of examples whose length is known
        self._length, self._start, self._examples = 0, None, 0
        self._some, self._places = Batch(), [0]  # of the small pass: its examples, and which of all they are
        self._small: dict[str, np.ndarray] = {}  # its activations
        self._largest: dict[str, float] = {}  # of a layer's values in it, where they were reduced
        self._judged = False

    def reading(self, name: str) -> Reading:
        """How a layer is read, any use of it, or a called function."""
        if name not in self.readings:
            known = self.readings.get(name.partition("#")[0])
            self.readings[name] = replace(known, name=name) if known else read_call(name, self._layout)
        return self.readings[name]

    def begin(self, length: int) -> None:
        """So many examples come next."""
        self._length = length
        self._filled.append({})

    def expect_few(self, some: Batch, places: list[int]) -> None:
        """The small pass comes next, with these examples, of these places."""
        self._some, self._places = some, places
        self.expect(None, len(places))

    def expect(self, start: int | None, examples: int) -> None:
        """So many of them come in the next pass, from this one on; None is the small pass, which fills nothing."""
        self._start, self._examples = start, examples

    def take(self, name: str, output: torch.Tensor) -> None:
        """Keep a layer's output, reduced to one activation per neuron and example."""
        reading = self.reading(name)
        output = reading.batch_first(output, self._examples)
        if self._start is None:
            if output.ndim != 3 or reading.layout != "auto":  # which the next pass refuses
                # A copy, for a later layer may change it.
                self._small[name] = reading.reduced(output, self._reduce).cpu().numpy().copy()
                if output.ndim > 2:
                    self._largest[name] = output.abs().max().item()
            return
        values, into = reading.neurons(output, self._reduce), self._filled[-1]
        neurons = next((part[name].shape[1] for part in self._filled if name in part), values.shape[1])
        if values.shape[1] != neurons:
            raise ValueError(f"layer {name!r} must have {neurons} neurons as before, received {values.shape[1]}")
        if name not in into:
            into[name] = torch.empty((self._length, neurons), dtype=values.dtype)
        into[name][self._start : self._start + self._examples] = values

    def judge(self, feed: Feeder) -> None:
        """Refuse layers that gave an example other activations in the first pass than in the small one.

        Args:
            feed: what runs the model.

        Raises:
            ValueError: they differ beyond rounding; says whether by the batch or at random.
        """
        if self._judged:
            return
        self._judged, suspects = True, self._suspects()
        tolerance = _tolerance(feed) if suspects else ROUNDING
        for name, (few, found, largest) in suspects.items():
            if not _differ(few, found, tolerance * largest):
                continue
            before = self._small[name]
            self.expect(None, len(self._places))
            feed(self._some)
            if _differ(before, self._small[name], ROUNDING * largest):
                raise ValueError(
                    f"layer {name!r} gives the same examples other activations when they pass once more; in evaluation "
                    "mode the model must neither draw at random nor remember what it saw; or choose other layers"
                )
            raise ValueError(
                f"layer {name!r} gives an example other activations beside other examples, as a softmax over the "
                "first dimension does, or batch norm with track_running_stats=False; change the model so that the "
                "batch does not matter, or choose other layers"
            )

    def _suspects(self) -> dict[str, tuple[np.ndarray, np.ndarray, float]]:
        """Layers whose activations moved by more than rounding, in both passes, and the largest value.

        Few steps for all layers together, for small networks need less than a millisecond for a pass.
        """
        both = [row for row, place in enumerate(self._places) if place < self._examples]
        at = [self._places[row] for row in both]
        first = {name: rows.numpy()[at] for name, rows in self._filled[0].items() if name in self._small}
        first = {name: rows for name, rows in first.items() if rows.shape[1]}
        if not first:
            return {}
        if odd := [name for name, rows in first.items() if self._small[name].shape[1] != rows.shape[1]]:
            return {name: (self._small[name], first[name], 1.0) for name in odd}
        few, found = (np.concatenate([rows[name] for name in first], axis=1) for rows in (self._small, first))
        starts = np.cumsum([0, *(rows.shape[1] for rows in first.values())])[:-1]
        largest = np.maximum.reduceat(np.abs(few).max(axis=0), starts)
        largest = [self._largest.get(name, size) for name, size in zip(first, largest.tolist(), strict=True)]
        with np.errstate(invalid="ignore"):
            apart = np.maximum.reduceat(np.abs(few[both] - found).max(axis=0), starts).tolist()
        return {
            name: (self._small[name][both], first[name], size)
            for name, size, moved in zip(first, largest, apart, strict=True)
            if not moved <= ROUNDING * size < np.inf
        }

    def found(self, names: list[str]) -> dict[str, np.ndarray]:
        """All rows of each layer."""
        if len(self._filled) == 1:
            return {name: self._filled[0][name].numpy() for name in names}
        return {name: np.concatenate([part.pop(name).numpy() for part in self._filled]) for name in names}


def _tolerance(feed: Feeder) -> float:
    """What rounding may do in a model's arithmetic: more in half precision, TF32, under autocast and when quantised."""
    tensors = chain(feed.model.parameters(), feed.model.buffers())
    rounding = max(
        torch.finfo(dtype).eps for dtype in {feed.dtype, *(t.dtype for t in tensors if t.is_floating_point())}
    )
    off = feed.device is not None and feed.device.type != "cpu"
    if off or torch.get_float32_matmul_precision() != "highest":
        rounding = max(rounding, 2**-10)
    quantised = any(".quantized." in type(part).__module__ for part in feed.model.modules())
    if quantised or any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
        rounding = max(rounding, 2**-7)
    return max(ROUNDING, rounding**0.5)


def _differ(few: np.ndarray, found: np.ndarray, most: float) -> bool:
    """Whether more than one in a hundred of the activations that are not 0 differ; a few may jump, as signs do."""
    if few.shape != found.shape:
        return True
    with np.errstate(invalid="ignore"):
        near = np.isfinite(few) & (np.abs(few - found) <= most)
    apart = ~(near | (few == found) | (np.isnan(few) & np.isnan(found)))
    return bool(apart.sum() > 0.01 * np.count_nonzero((few != 0) | (found != 0)))
