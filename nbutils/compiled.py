"""Inner loops, compiled by numba: bits of firing, counts of pairs, edges of graphs.

Nothing here checks its arguments; the public functions around do. All loops release the GIL, so several threads can
work on parts of the same arrays. Compiled code is cached beside this file, or in the user's cache folder if that
cannot be written. Bits are counted by LLVM's `ctpop`, which every processor has in some form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

__all__ = [
    "TILE",
    "add_to_histogram",
    "fill_counts",
    "heavy_pairs",
    "inside_weights",
    "is_symmetric",
    "mirror",
    "pack",
    "shift_columns",
    "shuffle_within",
    "symmetric_csr",
]

TILE = 64  # neurons on each side of a tile of pairs; also the bits of a word
WORDS = 32  # words of a tile that are counted at once: rows and columns of 64 x 32 x 8 bytes fit the first-level cache

loop = njit(cache=True, nogil=True)


@intrinsic
def _ones(_context: Any, _word: Any) -> Any:  # pragma: no cover - runs while compiling
    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.call(builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)]), arguments)

    return types.uint64(types.uint64), generate


@loop
def pack(fired: np.ndarray, packed: np.ndarray) -> None:
    """Bits of a boolean matrix, (examples, neurons), 64 examples a word, into zeroed (neurons or more, words)."""
    examples, neurons = fired.shape
    word = np.zeros(neurons, np.uint64)
    for first in range(0, examples, 64):
        word[:] = 0
        for example in range(first, min(first + 64, examples)):
            bit = np.uint64(1) << np.uint64(example - first)
            for neuron in range(neurons):
                word[neuron] |= bit * np.uint64(fired[example, neuron])
        packed[:neurons, first // 64] = word


@loop
def _count_tile(packed: np.ndarray, row: int, column: int, strip: np.ndarray) -> None:
    """Pairs of 64 neurons from `row` with 64 from `column`, into `strip[:, column : column + 64]`."""
    words = packed.shape[1]
    strip[:, column : column + 64] = 0
    for start in range(0, words, WORDS):
        stop = min(start + WORDS, words)
        for i in range(0, 64, 2):
            for j in range(column, column + 64, 4):
                # Two rows by four columns at once: six loads for eight counts.
                a = b = c = d = e = f = g = h = np.uint64(0)
                for w in range(start, stop):
                    x, y = packed[row + i, w], packed[row + i + 1, w]
                    p, q, r, s = packed[j, w], packed[j + 1, w], packed[j + 2, w], packed[j + 3, w]
                    a += _ones(x & p)
                    b += _ones(x & q)
                    c += _ones(x & r)
                    d += _ones(x & s)
                    e += _ones(y & p)
                    f += _ones(y & q)
                    g += _ones(y & r)
                    h += _ones(y & s)
                strip[i, j] += a
                strip[i, j + 1] += b
                strip[i, j + 2] += c
                strip[i, j + 3] += d
                strip[i + 1, j] += e
                strip[i + 1, j + 1] += f
                strip[i + 1, j + 2] += g
                strip[i + 1, j + 3] += h


@loop
def _count_strip(packed: np.ndarray, row: int, strip: np.ndarray) -> None:
    """Pairs of 64 neurons from `row` with all from `row` on."""
    for column in range(row, packed.shape[0], 64):
        _count_tile(packed, row, column, strip)


@loop
def fill_counts(packed: np.ndarray, row: int, counts: np.ndarray) -> None:
    """Add the counts of 64 neurons from `row` with all from `row` on to the upper triangle, with diagonal."""
    neurons = counts.shape[0]
    strip = np.empty((64, packed.shape[0]), np.uint32)
    _count_strip(packed, row, strip)
    for i in range(row, min(row + 64, neurons)):
        for j in range(i, neurons):
            counts[i, j] += strip[i - row, j]


@loop
def mirror(counts: np.ndarray) -> None:
    """Copy the upper triangle to the lower one, tile by tile."""
    neurons = counts.shape[0]
    for row in range(0, neurons, 64):
        for column in range(row, neurons, 64):
            for i in range(row, min(row + 64, neurons)):
                for j in range(max(column, i + 1), min(column + 64, neurons)):
                    counts[j, i] = counts[i, j]


@loop
def add_to_histogram(packed: np.ndarray, neurons: int, row: int, histogram: np.ndarray) -> None:
    """How often each count occurs among pairs i < j with i in the 64 neurons from `row`, added to `histogram`."""
    strip = np.empty((64, packed.shape[0]), np.uint32)
    _count_strip(packed, row, strip)
    for i in range(row, min(row + 64, neurons)):
        for j in range(i + 1, neurons):
            histogram[strip[i - row, j]] += 1


@loop
def heavy_pairs(
    packed: np.ndarray, neurons: int, row: int, threshold: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of the same rows whose count reaches the threshold: (i, j, count), sorted."""
    strip = np.empty((64, packed.shape[0]), np.uint32)
    _count_strip(packed, row, strip)
    number = 0
    for i in range(row, min(row + 64, neurons)):
        for j in range(i + 1, neurons):
            number += strip[i - row, j] >= threshold
    rows, columns, weights = np.empty(number, np.int32), np.empty(number, np.int32), np.empty(number, np.uint32)
    place = 0
    for i in range(row, min(row + 64, neurons)):
        for j in range(i + 1, neurons):
            if strip[i - row, j] >= threshold:
                rows[place], columns[place], weights[place] = i, j, strip[i - row, j]
                place += 1
    return rows, columns, weights


@loop
def symmetric_csr(
    rows: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
) -> None:
    """CSR of both triangles from the pairs of the upper one, sorted by row and column; `indptr` comes zeroed."""
    for edge in range(rows.size):
        indptr[rows[edge] + 1] += 1
        indptr[columns[edge] + 1] += 1
    for node in range(indptr.size - 1):
        indptr[node + 1] += indptr[node]
    place = indptr[:-1].copy()
    for edge in range(rows.size):  # in this order each node gets its smaller neighbours first
        i, j = rows[edge], columns[edge]
        indices[place[i]], data[place[i]] = j, weights[edge]
        indices[place[j]], data[place[j]] = i, weights[edge]
        place[i] += 1
        place[j] += 1


@loop
def is_symmetric(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, tolerance: float) -> bool:
    """Whether a CSR matrix with sorted, unique indices equals its transpose up to `tolerance`, in one pass."""
    place = indptr[:-1].copy()  # of the next entry of each row that is not matched yet
    for i in range(indptr.size - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            if j < i:
                continue  # matched from row j
            if place[j] == indptr[j + 1] or indices[place[j]] != i or abs(data[place[j]] - data[entry]) > tolerance:
                return False
            place[j] += 1
        if place[i] < indptr[i + 1] and indices[place[i]] < i:
            return False  # an entry left of the diagonal that nothing above it matched
    return True


@loop
def inside_weights(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, group: np.ndarray, inside: np.ndarray, total: np.ndarray
) -> None:
    """Weight inside each group (each edge twice) and strength of its nodes, added up; group -1 is no group."""
    for i in range(indptr.size - 1):
        if group[i] < 0:
            continue
        for entry in range(indptr[i], indptr[i + 1]):
            total[group[i]] += data[entry]
            if group[indices[entry]] == group[i]:
                inside[group[i]] += data[entry]


@loop
def shift_columns(fired: np.ndarray, shift: np.ndarray, shifted: np.ndarray) -> None:
    """Column i moved up by `shift[i]`, around the end."""
    examples, neurons = fired.shape
    for example in range(examples):
        for neuron in range(neurons):
            source = example + shift[neuron]
            shifted[example, neuron] = fired[source - examples if source >= examples else source, neuron]


@loop
def shuffle_within(fired: np.ndarray, members: np.ndarray, rng: np.random.Generator, shuffled: np.ndarray) -> None:
    """Each column's ones dealt anew among the rows of `members`; other rows are left alone."""
    size = members.size
    order = members.copy()
    for neuron in range(fired.shape[1]):
        ones = 0
        for row in members:
            shuffled[row, neuron] = False
            ones += fired[row, neuron]
        for dealt in range(ones):  # a Fisher-Yates shuffle, as far as it is needed
            other = rng.integers(dealt, size)
            order[dealt], order[other] = order[other], order[dealt]
            shuffled[order[dealt], neuron] = True
