"""Inner loops over bits, edges, histograms and logarithms, compiled by numba to a single thread; callers spread them
over cores.

Compiled code is kept beside the source, or in numba's own folder where that cannot be written.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

TILE = 64  # neurons on each side of a tile of pairs; also the bits of a word
WORDS = 32  # words of a tile that are counted at once: rows and columns of 64 x 32 x 8 bytes fit the first-level cache

loop = njit(cache=True, nogil=True)


@intrinsic
def count_ones(_context: Any, _word: Any) -> Any:  # pragma: no cover - runs while compiling
    """Number of ones in a word."""

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
                    a += count_ones(x & p)
                    b += count_ones(x & q)
                    c += count_ones(x & r)
                    d += count_ones(x & s)
                    e += count_ones(y & p)
                    f += count_ones(y & q)
                    g += count_ones(y & r)
                    h += count_ones(y & s)
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
def rotate(packed: np.ndarray, examples: int, shift: np.ndarray, rotated: np.ndarray) -> None:
    """Bit e of row i becomes bit (e + shift[i]) mod examples of the old row; `rotated` comes zeroed."""
    words = packed.shape[1]
    for i in range(shift.size):
        down, up = shift[i], examples - shift[i]
        for part, by in ((0, down), (1, up)):
            skip, bits = by // 64, np.uint64(by % 64)
            rest = np.uint64(64) - bits
            for w in range(words - skip):
                if part == 0:  # towards bit 0
                    word = packed[i, w + skip] >> bits
                    if bits and w + skip + 1 < words:
                        word |= packed[i, w + skip + 1] << rest
                    rotated[i, w] |= word
                else:  # away from it; what falls off the end of the last word is dropped
                    rotated[i, w + skip] |= packed[i, w] << bits
                    if bits and w + skip + 1 < words:
                        rotated[i, w + skip + 1] |= packed[i, w] >> rest
        if examples % 64:
            rotated[i, words - 1] &= (np.uint64(1) << np.uint64(examples % 64)) - np.uint64(1)


@loop
def count_among(packed: np.ndarray, members: np.ndarray, ones: np.ndarray) -> None:
    """How many of the examples of `members` each row has, into `ones`."""
    mask = np.zeros(packed.shape[1], np.uint64)
    for example in members:
        mask[example // 64] |= np.uint64(1) << np.uint64(example % 64)
    for i in range(ones.size):
        found = np.uint64(0)
        for w in range(mask.size):
            found += count_ones(packed[i, w] & mask[w])
        ones[i] = found


@loop
def deal(members: np.ndarray, ones: np.ndarray, draws: np.ndarray, dealt: np.ndarray) -> None:
    """`ones[i]` bits in row i at random places among `members`; takes a random uint32 of `draws` for each."""
    order = members.copy()
    draw = 0
    for i in range(ones.size):
        for place in range(ones[i]):  # a Fisher-Yates shuffle, as far as it is needed
            left = np.uint64(members.size - place)
            other = place + np.int64((np.uint64(draws[draw]) * left) >> np.uint64(32))
            draw += 1
            order[place], order[other] = order[other], order[place]
            dealt[i, order[place] // 64] |= np.uint64(1) << np.uint64(order[place] % 64)


LOOP, ASYMMETRIC = 1, 2
OUTSIDE, UNORDERED, REPEATED, UNSORTED = 1, 2, 3, 4


@loop
def first_bad_pair(rows: np.ndarray, columns: np.ndarray, nodes: int) -> tuple[int, int]:
    """(what is wrong, where) with the pairs that `symmetric_csr` trusts: OUTSIDE, UNORDERED, REPEATED, UNSORTED; or 0.

    Pairs that are only unsorted are reported last, since sorting is all that they need.
    """
    unsorted = -1
    for edge in range(rows.size):
        i, j = rows[edge], columns[edge]
        if i < 0 or j < 0 or i >= nodes or j >= nodes:
            return OUTSIDE, edge
        if i >= j:
            return UNORDERED, edge
        if edge and (i < rows[edge - 1] or (i == rows[edge - 1] and j < columns[edge - 1])):
            unsorted = edge
        elif edge and i == rows[edge - 1] and j == columns[edge - 1]:
            return REPEATED, edge
    return (0, 0) if unsorted < 0 else (UNSORTED, unsorted)


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
def first_flaw(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, tolerance: float) -> int:
    """What is wrong with an adjacency with sorted, unique indices: LOOP, ASYMMETRIC, or 0."""
    place = indptr[:-1].copy()  # of the next entry of each row that is not matched yet
    for i in range(indptr.size - 1):
        # Rows above have matched all that is left of the diagonal; what comes next must lie right of it.
        first, end = place[i], indptr[i + 1]
        if first < end and indices[first] <= i:
            return LOOP if indices[first] == i else ASYMMETRIC
        for entry in range(first, end):
            j = indices[entry]
            other = place[j]
            if other == indptr[j + 1] or indices[other] != i or abs(data[other] - data[entry]) > tolerance:
                return ASYMMETRIC
            place[j] = other + 1
    return 0


@loop
def inside_weights(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, group: np.ndarray, inside: np.ndarray, total: np.ndarray
) -> None:
    """Weight inside each group (each edge twice) and strength of its nodes, added up; group -1 is no group."""
    for i in range(indptr.size - 1):
        own = group[i]
        if own < 0:
            continue
        strength, shared = 0.0, 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            weight = data[entry]
            strength += weight
            # Without a branch, which the processor would guess wrong half the time.
            shared += weight if group[indices[entry]] == own else 0.0
        total[own] += strength
        inside[own] += shared


@loop
def count_bins(values: np.ndarray, scale: np.ndarray, counts: np.ndarray) -> None:
    """Add each positive value of column i to bin ceil(value * scale[i]) - 1 of `counts[:, i]`, kept within the bins."""
    bins = counts.shape[0]
    for example in range(values.shape[0]):
        for neuron in range(values.shape[1]):
            value = values[example, neuron]
            if value > 0:
                scaled = value * scale[neuron]  # infinite where the largest value is next to nothing
                counts[bins - 1 if scaled > bins - 1 else max(math.ceil(scaled) - 1, 0), neuron] += 1


@loop
def log2_of_each(values: np.ndarray, out: np.ndarray) -> None:
    """The base-2 logarithm of every value of a flat array; 0 where the value is not positive."""
    for place in range(values.size):
        value = values[place]
        out[place] = math.log2(value) if value > 0 else 0.0
