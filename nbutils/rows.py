"""Activations as they come, pass by pass, and whether they are those of the examples: the same in any batch."""

from __future__ import annotations

from itertools import chain

import numpy as np
import torch

from nbutils.batches import Batch, Feeder
from nbutils.layouts import Reading

__all__ = ["Rows"]

ROUNDING = 1e-3  # how far an activation may move with the batch, as a share of the layer's largest value


class Rows:
    """Arrays of activations that fill up, pass by pass.

    A small pass comes before the others; what it gave is compared with the first of these.

    Args:
        readings: how each layer's output is read.
        reduce: "mean" or "max" over positions or tokens.
    """

    def __init__(self, readings: dict[str, Reading], reduce: str) -> None:
        self.readings, self._reduce = readings, reduce
        self._filled: list[dict[str, torch.Tensor]] = []  # one for each stretch of examples whose length is known
        self._length, self._start, self._examples = 0, None, 0
        self._some, self._places = Batch(), [0]  # of the small pass: its examples, and which of all they are
        self._small: dict[str, np.ndarray] = {}  # its activations
        self._largest: dict[str, float] = {}  # of a layer's values in it, where they were reduced
        self._judged = False

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
        reading = self.readings[name]
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
