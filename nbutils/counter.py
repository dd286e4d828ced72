"""Exact co-firing counts of examples that arrive in batches: of sets too large to hold, and from several workers."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nbutils.cofiring import WORTH
from nbutils.graphs import graph_from_counts
from nbutils.support.checks import WHOLE, as_count, as_fired, as_labels, as_numpy, is_whole, shown
from nbutils.support.files import replace_file
from nbutils.support.machine import in_threads

if TYPE_CHECKING:
    import scipy.sparse as sp

ROOM = 2048  # examples that wait to be counted: one pass over the pairs for all of them
MOST_COUNTS = 2**40  # four terabytes of them
LARGEST = 2**31 - 1  # examples that 32-bit counts can hold


class CofiringCounter:
    """Counts which neurons fire together, batch by batch: C = sum over all examples seen of F_e F_e'.

    The result is that of :func:`nbutils.cofiring.cofiring_counts` over all examples at once, bit for bit, in memory
    that does not depend on their number: 4 bytes per pair, and the bits of 2,048 examples that wait (each for every
    class). Counters of different parts add up: `a + b`.

    Args:
        neurons: number of neurons; None means as many as the first batch has.
        classes: keep counts for each class 0..classes-1 too; None keeps only the total.

    Raises:
        ValueError: an argument is below 1.

    Examples:
        >>> counter = CofiringCounter()
        >>> counter.update([[1, 1, 0]])
        >>> counter.update([[1, 0, 0]])
        >>> counter.counts().tolist(), counter.examples
        ([[2, 1, 0], [1, 1, 0], [0, 0, 0]], 2)
    """

    def __init__(self, neurons: int | None = None, classes: int | None = None) -> None:
        for name, value in (("neurons", neurons), ("classes", classes)):
            if value is not None and (not is_whole(value) or value < 1):
                raise ValueError(f"{name} must be a whole number of at least 1, or None, received {shown(value)}")
        neurons, classes = (None if value is None else int(value) for value in (neurons, classes))
        if (classes or 1) * (neurons or 1) ** 2 > MOST_COUNTS:
            found = f"{shown(neurons)} and {shown(classes)}"
            raise ValueError(f"neurons and classes must need at most 2**40 counts, received {found}")
        self.neurons, self.classes = neurons, classes
        self._seen = np.zeros(classes or 1, np.int64)
        self._waiting = [0] * (classes or 1)  # examples of each class that wait to be counted
        self.source: Callable[[], None] | None = None  # is asked for what it still holds before anything is told
        if neurons is not None:
            self._allocate(neurons)

    def _allocate(self, neurons: int) -> None:
        self.neurons = neurons
        try:
            self._upper = np.zeros((self.classes or 1, neurons, neurons), np.int32)  # upper triangles and diagonals
            # Bit b of word w is example 64 w + b; neurons are filled up to tiles of 64.
            shape = ROOM // 64, -(-neurons // 64) * 64
            self._bits = [np.zeros(shape, np.uint64) for _ in range(self.classes or 1)]
        except MemoryError:
            raise ValueError(f"neurons must be fewer for the memory of this machine, received {neurons}") from None

    @property
    def examples(self) -> int:
        """Number of examples seen."""
        self._ask()
        return int(self._seen.sum()) + sum(self._waiting)

    def update(self, fired: Any, labels: Any = None) -> None:
        """Add a batch.

        Args:
            fired: activation pattern matrix, shape (examples, neurons), boolean; arrays, lists or tensors.
            labels: class per example, shape (examples,), where classes are kept.

        Raises:
            ValueError: the number of neurons changed, labels are missing or out of range; nothing is counted then.
        """
        matrix = as_fired(fired)
        if (labels is None) != (self.classes is None):
            raise ValueError(f"labels are needed with classes and only with them; classes is {self.classes!r}")
        chosen = np.zeros(len(matrix), np.int64) if labels is None else as_labels(labels, len(matrix))
        if labels is not None and not 0 <= chosen.min() <= chosen.max() < self.classes:
            raise ValueError(f"labels must be from 0 to {self.classes - 1}, received {chosen.min()} to {chosen.max()}")
        self._allow(matrix.shape[1])
        for label in np.unique(chosen):
            self._wait(matrix if labels is None else matrix[chosen == label], label)

    def _wait(self, fired: np.ndarray, label: int) -> None:
        """Add examples of one class to those that wait; whenever there is no room left, those are counted."""
        from nbutils.support import loops

        start = 0
        while start < len(fired):
            part = fired[start : start + ROOM - self._waiting[label]]
            loops.add_bits(np.ascontiguousarray(part), self._waiting[label], self._bits[label])
            start, self._waiting[label] = start + len(part), self._waiting[label] + len(part)
            if self._waiting[label] == ROOM:
                self._count(label)

    def room(self, examples: int, neurons: int) -> tuple[np.ndarray, int]:
        """Where whoever has examples in another form may write their bits, in a counter without classes.

        Args:
            examples: how many come next, from 1 to 2,048.
            neurons: of each; must be as many as before.

        Returns:
            Bits of shape (words, neurons or more), uint64, and the number of the first example: bit b of word w is
            example 64 w + b. They count once :meth:`fill` is called, and must be 0 beyond the last.
        """
        if neurons != self.neurons:
            self._allow(neurons)
        if examples > ROOM - self._waiting[0]:
            self._count(0)
        return self._bits[0], self._waiting[0]

    def fill(self, examples: int) -> None:
        """So many examples were written where :meth:`room` said."""
        self._waiting[0] += examples

    def add_counts(self, counts: Any, examples: int, label: int | None = None) -> None:
        """Add counts that were made elsewhere, such as on a GPU.

        Args:
            counts: co-firing counts, shape (neurons, neurons), symmetric whole numbers, from 0 to `examples`.
            examples: how many examples they are of, from 0 to 2**53.
            label: their class, where classes are kept.

        Raises:
            ValueError: shapes or classes do not fit; nothing is added then.
        """
        matrix, examples = as_numpy(counts, "counts"), as_count(examples, "examples", least=0, most=WHOLE)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.issubdtype(matrix.dtype, np.integer):
            raise ValueError(f"counts must be a square matrix of whole numbers, received {matrix.dtype} {matrix.shape}")
        if not 0 <= matrix.min(initial=0) <= matrix.max(initial=0) <= examples:
            raise ValueError(f"counts must be from 0 to {examples}, the number of examples, received others")
        if not np.array_equal(matrix, matrix.T):
            raise ValueError("counts must be symmetric, received a matrix that is not")
        if (label is None) != (self.classes is None) or (label is not None and not self._has(label)):
            raise ValueError(f"label must be a class where classes are kept, received {shown(label)} of {self.classes}")
        self._allow(matrix.shape[0])
        self._see(np.bincount([label or 0], [examples], len(self._seen)).astype(np.int64))
        self._upper[label or 0] += np.triu(matrix).astype(self._upper.dtype, copy=False)

    def _has(self, label: Any) -> bool:
        return self.classes is not None and is_whole(label) and 0 <= label < self.classes

    def _allow(self, neurons: int) -> None:
        if self.neurons is None:
            self._allocate(neurons)
        if neurons != self.neurons:
            raise ValueError(f"fired must have {self.neurons} neurons like the batches before, received {neurons}")

    def _see(self, examples: np.ndarray) -> None:
        """More examples of each class; counts are widened before they could overflow."""
        self._seen += examples
        if self._seen.sum() > LARGEST and self._upper.dtype == np.int32:
            self._upper = self._upper.astype(np.int64)

    def _ask(self) -> None:
        if self.source is not None:
            self.source()

    def _settle(self) -> None:
        """Count all that waits, here and at the source."""
        self._ask()
        for label in range(len(self._waiting)):
            self._count(label)

    def counts(self, label: int | None = None) -> np.ndarray:
        """Counts so far: symmetric, shape (neurons, neurons), int32 (int64 beyond 2**31 examples).

        Args:
            label: a class, where classes are kept; None means all examples.

        Raises:
            ValueError: nothing was counted yet, or there is no such class.
        """
        from nbutils.support import loops

        self._settle()
        if self.neurons is None:
            raise ValueError("nothing was counted yet")
        if label is not None and not self._has(label):
            raise ValueError(f"label must be a class of 0 to {(self.classes or 0) - 1}, received {shown(label)}")
        total = self._upper.sum(axis=0, dtype=self._upper.dtype) if label is None else self._upper[label].copy()
        loops.mirror(total)
        return total

    def graph(self, density: float = 0.05, label: int | None = None) -> sp.csr_array:
        """The activation pattern graph of all examples so far; see :func:`nbutils.graphs.graph_from_counts`."""
        return graph_from_counts(self.counts(label), density)

    def _count(self, label: int) -> None:
        """Count the examples of a class that wait."""
        from nbutils.support import loops

        waiting, self._waiting[label] = self._waiting[label], 0
        if not waiting:
            return
        self._see(np.bincount([label], [waiting], len(self._seen)).astype(np.int64))
        bits, target = self._bits[label][: -(-waiting // 64)], self._upper[label]
        tiles = np.array(bits.reshape(len(bits), -1, 64).transpose(1, 0, 2), order="C")
        bits[:] = 0
        worth = tiles.size * self.neurons > WORTH
        in_threads(lambda a: loops.add_counts(tiles, a, target), range(len(tiles)), worth)

    def __add__(self, other: CofiringCounter) -> CofiringCounter:
        """The counter that has seen the examples of both."""
        if not isinstance(other, CofiringCounter):
            return NotImplemented
        sizes = {one.neurons for one in (self, other)} - {None}
        if self.classes != other.classes or len(sizes) > 1:
            found = f"{self.neurons} and {other.neurons} neurons, {self.classes} and {other.classes} classes"
            raise ValueError(f"counters must agree to be added, these have {found}")
        both = CofiringCounter(self.neurons or other.neurons, self.classes)
        for one in (self, other):
            one._settle()
            if one.neurons is not None:
                both._seen += one._seen
                wide = np.int64 if both._seen.sum() > LARGEST else one._upper.dtype
                both._upper = both._upper.astype(np.promote_types(both._upper.dtype, wide), copy=False)
                both._upper += one._upper
        return both

    def save(self, path: Path | str) -> None:
        """Write the counter to a file, whole or not at all (.npz, arrays of numbers only)."""
        self._settle()
        upper = np.zeros((0, 0, 0), np.int32) if self.neurons is None else self._upper
        content = io.BytesIO()
        np.savez(content, upper=upper, seen=self._seen, classes=self.classes or 0)
        replace_file(Path(path), content.getvalue())

    @classmethod
    def load(cls, path: Path | str) -> CofiringCounter:
        """Read a counter that :meth:`save` wrote; executes nothing from the file.

        Raises:
            ValueError: the file is damaged or no counter.
        """
        try:
            with np.load(path, allow_pickle=False) as content:
                upper, seen, classes = content["upper"], content["seen"], int(content["classes"])
            shapes = upper.ndim == 3 and upper.shape[1] == upper.shape[2] and seen.shape == (max(classes, 1),)
            if not shapes or upper.shape[0] not in (0, len(seen)) or upper.dtype not in (np.int32, np.int64):
                raise ValueError("its arrays do not fit together")
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} holds no counter: {error}") from None
        counter = cls(upper.shape[1] or None, classes or None)
        if counter.neurons is not None:
            counter._upper = upper
        counter._seen = seen
        return counter
