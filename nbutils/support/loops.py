"""Inner loops over bits, edges, histograms and logarithms, compiled by numba to a single thread; callers spread them
over cores.

Written as plain loops, without slices and NumPy's functions, which take several times as long to compile. Compiled code
is kept beside the source, or in numba's own folder where that cannot be written.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import carray, config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

TILE = 64  # neurons on each side of a tile of pairs; also the bits of a word

loop = njit(cache=True, nogil=True)
# For what is called from compiled code alone: nothing is made for Python, and nothing kept.
inner = njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")


@intrinsic
def count_ones(_context: Any, _word: Any) -> Any:  # pragma: no cover - runs while compiling
    """Number of ones in a word."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.call(builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)]), arguments)

    return types.uint64(types.uint64), generate


@loop
def pack(fired: np.ndarray, word: np.ndarray, packed: np.ndarray) -> None:
    """Bits of a boolean matrix, (examples, neurons), 64 examples a word, into zeroed (neurons or more, words).

    It works in one `word` for each neuron.
    """
    examples, neurons = fired.shape
    for first in range(0, examples, 64):
        for neuron in range(neurons):
            word[neuron] = 0
        for example in range(first, min(first + 64, examples)):
            bit = np.uint64(1) << np.uint64(example - first)
            for neuron in range(neurons):
                word[neuron] |= bit * np.uint64(fired[example, neuron])
        for neuron in range(neurons):
            packed[neuron, first // 64] = word[neuron]


# Processors with AVX-512 and VPOPCNTDQ count the ones of a vector of words in one instruction; on others those of bytes
# are counted, and bytes added up to 255 before they are widened.
FEATURES = config.CPU_FEATURES if config.CPU_FEATURES is not None else get_host_cpu_features().flatten()
WORDWISE = "+avx512vpopcntdq" in FEATURES.split(",")
PATH = "words of 64 bits in vectors" if WORDWISE else "bytes in vectors"
ROWS, COLUMNS, LANES = 2, 2, 8  # neurons of a patch: 2 by 2 vectors of 8, which 16 registers of 256 bits can hold
WORDS = 32 if WORDWISE else 31  # that are counted at once: two tiles of 64 x 32 x 8 bytes fit the first-level cache


@loop
def add_bits(fired: np.ndarray, first: int, bits: np.ndarray) -> None:
    """Add a boolean matrix, (examples, neurons), to bits of (words, neurons or more), from example `first` on."""
    for example in range(fired.shape[0]):
        word, bit = np.uint64((first + example) // 64), np.uint64((first + example) % 64)
        for neuron in range(fired.shape[1]):
            bits[word, np.uint64(neuron)] |= np.uint64(fired[example, neuron]) << bit


@intrinsic
def _floats_at(_context: Any, _address: Any) -> Any:  # pragma: no cover - runs while compiling
    """Numbers of float32 from an address on."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.FloatType().as_pointer())

    return types.CPointer(types.float32)(types.intp), generate


@loop
def add_firing(
    address: int, examples: int, neurons: int, threshold: float, first: int, bits: np.ndarray, column: int
) -> bool:
    """The same with activations of (examples, neurons), float32, contiguous, above a threshold, from `column` on.

    They are given by their address: making arrays of a batch's tensors would take longer than this does. The caller
    holds the tensor. Returns whether all are finite.
    """
    values = carray(_floats_at(address), (examples, neurons))
    most, odd = np.finfo(np.float32).max, np.uint32(0)
    for example in range(examples):
        word, bit = np.uint64((first + example) // 64), np.uint64((first + example) % 64)
        for neuron in range(neurons):
            value = values[example, neuron]
            bits[word, np.uint64(column + neuron)] |= np.uint64(value > threshold) << bit
            odd |= np.uint32(not abs(value) <= most)
    return odd == 0


@intrinsic
def _pointer(_context: Any, array: Any, _place: Any) -> Any:  # pragma: no cover - runs while compiling
    """Where a number of a contiguous array lies, counted as if the array had one dimension."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.gep(found.data, [arguments[1]])

    return types.CPointer(array.dtype)(array, types.intp), generate


@intrinsic
def _count_patch(
    _context: Any, _rows: Any, _columns: Any, _words: Any, _counts: Any, _fresh: Any
) -> Any:  # pragma: no cover - runs while compiling
    """Pairs of 2 neurons with 16 others, both from tiles, over some words, for a patch of 64-wide counts.

    They are added to what stands there, unless it is `fresh`.

    Written out in vectors, because a compiler that is left to itself adds up along the examples of one pair, and then
    spends most of its time on summing the lanes of a vector: here each lane is another pair.
    """

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        rows, columns, words, counts, fresh = arguments
        number, narrow = ir.IntType(64), ir.IntType(32)
        whole, half = ir.VectorType(number, LANES), ir.VectorType(narrow, LANES)
        counted = whole if WORDWISE else ir.VectorType(ir.IntType(8), 8 * LANES)
        name = f"llvm.ctpop.v{counted.count}i{counted.element.width}"
        ones = cgutils.get_or_insert_function(builder.module, ir.FunctionType(counted, [counted]), name)
        patch = [(row, column) for row in range(ROWS) for column in range(COLUMNS)]
        sums = {place: cgutils.alloca_once_value(builder, ir.Constant(counted, None)) for place in patch}

        def vector(source: Any, place: Any) -> Any:
            return builder.bitcast(builder.gep(source, [place]), whole.as_pointer())

        with cgutils.for_range(builder, words) as step:
            base = builder.mul(step.index, number(TILE))
            held = [
                builder.load(vector(columns, builder.add(base, number(c * LANES))), align=8) for c in range(COLUMNS)
            ]
            for row in range(ROWS):
                word = builder.load(builder.gep(rows, [builder.add(base, number(row))]))
                first = builder.insert_element(ir.Constant(whole, ir.Undefined), word, narrow(0))
                same = builder.shuffle_vector(first, first, ir.Constant(half, [0] * LANES))
                for column in range(COLUMNS):
                    both = builder.bitcast(builder.and_(same, held[column]), counted)
                    total = sums[row, column]
                    builder.store(builder.add(builder.load(total), builder.call(ones, [both])), total)
        for row, column in patch:
            found = builder.load(sums[row, column])
            if not WORDWISE:
                found = _sum_bytes(builder, builder.bitcast(found, whole))
            place = builder.gep(counts, [number(row * TILE + column * LANES)])
            place = builder.bitcast(place, half.as_pointer())
            before = builder.select(fresh, ir.Constant(half, None), builder.load(place, align=4))
            builder.store(builder.add(before, builder.trunc(found, half)), place, align=4)
        return _target.get_dummy_value()

    words = types.CPointer(types.uint64)
    return types.void(words, words, types.intp, types.CPointer(types.uint32), types.boolean), generate


def _sum_bytes(builder: Any, vector: Any) -> Any:  # pragma: no cover - runs while compiling
    """The sum of the eight bytes of each word of a vector."""

    def each(value: int) -> Any:
        return ir.Constant(vector.type, [value] * vector.type.count)

    even, odd = (builder.and_(one, each(0x00FF00FF00FF00FF)) for one in (vector, builder.lshr(vector, each(8))))
    pairs = builder.add(even, odd)
    fours = builder.add(pairs, builder.lshr(pairs, each(32)))
    return builder.and_(builder.add(fours, builder.lshr(fours, each(16))), each(0xFFFF))


@inner
def _count_tile(tiles: np.ndarray, a: int, b: int, counts: np.ndarray, at: int) -> None:
    """Pairs of the 64 neurons of tile `a` with those of tile `b`, of (tiles, words, 64), into `counts[at]`, 64 x 64."""
    words = tiles.shape[1]
    size = -(-words // -(-words // WORDS))  # of equal parts
    for start in range(0, words, size):
        number = min(size, words - start)
        for j in range(0, TILE, COLUMNS * LANES):
            for i in range(0, TILE, ROWS):
                _count_patch(
                    _pointer(tiles, (a * words + start) * TILE + i),
                    _pointer(tiles, (b * words + start) * TILE + j),
                    number,
                    _pointer(counts, (at * TILE + i) * TILE + j),
                    start == 0,
                )


@intrinsic
def _copy(_context: Any, target: Any, source: Any, _number: Any) -> Any:  # pragma: no cover - runs while compiling
    """Copy so many numbers of 32 bits to another place: a loop would ask of each whether its place is negative."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        to, source, number = arguments
        cgutils.memcpy(builder, builder.bitcast(to, source.type), source, number)
        return context.get_dummy_value()

    return types.void(target, source, types.intp), generate


@intrinsic
def _stream(_context: Any, target: Any, source: Any) -> Any:  # pragma: no cover - runs while compiling
    """Copy 64 numbers of 32 bits to a place at a multiple of 64 bytes, past the caches: nobody reads them soon."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        line = ir.VectorType(ir.IntType(32), 16).as_pointer()
        past = builder.module.add_metadata([ir.IntType(32)(1)])
        for first in range(0, TILE, 16):
            to, source = (builder.bitcast(builder.gep(one, [ir.IntType(64)(first)]), line) for one in arguments)
            builder.store(builder.load(source, align=4), to, align=64).set_metadata("nontemporal", past)
        return context.get_dummy_value()

    return types.void(target, source), generate


@loop
def write_counts(tiles: np.ndarray, a: int, counts: np.ndarray, aligned: bool) -> None:
    """The counts of the 64 neurons of tile `a` with all from there on, into both triangles of int32.

    `aligned` says that every row of `counts` begins at a multiple of 64 bytes.
    """
    neurons, rows = counts.shape[0], min(TILE, counts.shape[0] - a * TILE)
    tile, turned = np.empty((1, TILE, TILE), np.uint32), np.empty((TILE, TILE), np.uint32)
    for b in range(a, tiles.shape[0]):
        columns = min(TILE, neurons - b * TILE)
        _count_tile(tiles, a, b, tile, 0)
        for first in range(0, TILE, 8):  # parts that fit a line of the cache both ways
            for second in range(0, TILE, 8):
                for j in range(second, second + 8):
                    for i in range(first, first + 8):
                        turned[np.uint64(j), np.uint64(i)] = tile[0, np.uint64(i), np.uint64(j)]
        if aligned and rows == columns == TILE:
            for i in range(TILE):
                _stream(_pointer(counts, (a * TILE + i) * neurons + b * TILE), _pointer(tile, i * TILE))
            for j in range(TILE):
                _stream(_pointer(counts, (b * TILE + j) * neurons + a * TILE), _pointer(turned, j * TILE))
            continue
        for i in range(rows):
            _copy(_pointer(counts, (a * TILE + i) * neurons + b * TILE), _pointer(tile, i * TILE), columns)
        for j in range(columns):
            _copy(_pointer(counts, (b * TILE + j) * neurons + a * TILE), _pointer(turned, j * TILE), rows)


@loop
def add_counts(tiles: np.ndarray, a: int, counts: np.ndarray) -> None:
    """Add the counts of the 64 neurons of tile `a` with all from there on to the upper triangle, with diagonal."""
    neurons, tile = counts.shape[0], np.empty((1, TILE, TILE), np.uint32)
    for b in range(a, tiles.shape[0]):
        _count_tile(tiles, a, b, tile, 0)
        for i in range(min(TILE, neurons - a * TILE)):
            for j in range(i if a == b else 0, min(TILE, neurons - b * TILE)):
                counts[a * TILE + i, b * TILE + j] += tile[0, i, j]


@loop
def mirror(counts: np.ndarray) -> None:
    """Copy the upper triangle to the lower one, tile by tile."""
    neurons = counts.shape[0]
    for row in range(0, neurons, TILE):
        for column in range(row, neurons, TILE):
            for i in range(row, min(row + TILE, neurons)):
                for j in range(max(column, i + 1), min(column + TILE, neurons)):
                    counts[j, i] = counts[i, j]


@loop
def add_to_histogram(tiles: np.ndarray, neurons: int, a: int, histogram: np.ndarray, kept: np.ndarray) -> None:
    """How often each count occurs among pairs i < j with i in tile `a`, added to the four rows of `histogram`.

    Counts stay in `kept`, one tile for each from `a` on, or only the last of them where it has room for one. Four rows,
    because a count that comes again at once would wait until the one before was written.
    """
    for b in range(a, tiles.shape[0]):
        at = min(b - a, kept.shape[0] - 1)
        _count_tile(tiles, a, b, kept, at)
        for i in range(min(TILE, neurons - a * TILE)):
            for j in range(i + 1 if a == b else 0, min(TILE, neurons - b * TILE)):
                histogram[j & 3, kept[at, i, j]] += 1


@loop
def count_heavy(tiles: np.ndarray, neurons: int, a: int, least: np.uint32, kept: np.ndarray, counted: bool) -> int:
    """How many pairs of the same rows have a count of `least`, above 0, or more; counts them first if they are not yet.

    Their counts are in `kept`, or put there where they are not `counted`.
    """
    number = 0
    for b in range(a, tiles.shape[0]):
        if not counted:
            _count_tile(tiles, a, b, kept, b - a)
        for i in range(min(TILE, neurons - a * TILE)):
            for j in range(i + 1 if a == b else 0, TILE):
                number += kept[np.uint64(b - a), np.uint64(i), np.uint64(j)] >= least
    return number


@loop
def heavy_pairs(
    neurons: int,
    a: int,
    least: np.uint32,
    kept: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    counts: np.ndarray,
) -> None:
    """These pairs: (i, j, count), sorted. There is room for them and one more: lighter ones are written over."""
    number = np.uint64(0)
    for i in range(min(TILE, neurons - a * TILE)):
        for tile in range(kept.shape[0]):
            for start in range(0, TILE, 16):
                most = np.uint32(0)
                for j in range(start, start + 16):  # at once, in vectors: in a sparse graph nearly all are lighter
                    most = max(most, kept[np.uint64(tile), np.uint64(i), np.uint64(j)])
                if most < least:
                    continue
                for j in range(max(start, i + 1) if tile == 0 else start, start + 16):
                    count = kept[np.uint64(tile), np.uint64(i), np.uint64(j)]
                    first[number], second[number], counts[number] = a * TILE + i, (a + tile) * TILE + j, count
                    number += np.uint64(count >= least)


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
    for edge in range(rows.size):  # in this order each node gets its smaller neighbours first
        i, j = rows[edge], columns[edge]
        indices[indptr[i]], data[indptr[i]] = j, weights[edge]
        indptr[i] += 1
        indices[indptr[j]], data[indptr[j]] = i, weights[edge]
        indptr[j] += 1
    start = 0  # each row has moved to the start of the next
    for node in range(indptr.size):
        start, indptr[node] = indptr[node], start


@loop
def first_flaw(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, tolerance: float, place: np.ndarray) -> int:
    """What is wrong with an adjacency with sorted, unique indices: LOOP, ASYMMETRIC, or 0.

    `place` is that of the next entry of each row that is not matched yet, to begin with the first.
    """
    for i in range(indptr.size - 1):
        # Rows above have matched all that is left of the diagonal; what comes next must lie right of it.
        first, end = place[i], indptr[i + 1]
        if first < end and indices[first] <= i:
            return LOOP if indices[first] == i else ASYMMETRIC
        for entry in range(np.uint64(first), np.uint64(end)):
            j = np.uint64(indices[entry])
            other = np.uint64(place[j])
            if other == indptr[j + np.uint64(1)] or indices[other] != i or abs(data[other] - data[entry]) > tolerance:
                return ASYMMETRIC
            place[j] += 1
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
        for entry in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            weight = data[entry]
            strength += weight
            # Without a branch, which the processor would guess wrong half the time.
            shared += weight if group[np.uint64(indices[entry])] == own else 0.0
        total[own] += strength
        inside[own] += shared


@loop
def count_bins(values: np.ndarray, scale: np.ndarray, counts: np.ndarray) -> None:
    """Add each positive value of column i to bin ceil(value * scale[i]) - 1 of `counts[:, i]`, kept within the bins.

    `counts` has one row more than there are bins, for what is not positive: asking is dearer than adding.
    """
    bins, neurons = counts.shape[0] - 1, values.shape[1]
    most, chosen = scale.dtype.type(bins), np.empty(neurons, np.int32)
    for example in range(values.shape[0]):
        for neuron in range(neurons):
            value = values[example, neuron]
            scaled = min(value * scale[neuron], most)  # infinite where the largest value is next to nothing
            chosen[neuron] = max(np.int32(math.ceil(scaled)) - 1, 0) if value > 0 else bins
        for neuron in range(neurons):
            counts[chosen[neuron], neuron] += 1


@loop
def count_by_class(fired: np.ndarray, index: np.ndarray, counts: np.ndarray) -> None:
    """Add how often each neuron fires on examples of each class, `index` of an example, to `counts[class, neuron]`."""
    for example in range(fired.shape[0]):
        label = index[example]
        for neuron in range(fired.shape[1]):
            counts[label, neuron] += fired[example, neuron]


@loop
def count_codes(fired: np.ndarray, blocks: np.ndarray, counts: np.ndarray) -> None:
    """Add how often each pattern of the neurons of `blocks[b]` occurs to `counts[pattern, b]`; bit k is neuron k's."""
    for example in range(fired.shape[0]):
        for block in range(blocks.shape[0]):
            code = 0
            for bit in range(blocks.shape[1]):
                code |= np.int64(fired[example, blocks[block, bit]]) << bit
            counts[code, block] += 1


SIDE = 16  # columns that are read together: 64 bytes of a row


@loop
def largest_of_each(values: np.ndarray, wanted: int, least: np.ndarray) -> None:
    """The `wanted`-th largest positive value of every column, into `least`; 0 where fewer are positive."""
    examples, columns = values.shape
    rows, found = np.empty((SIDE, examples + 1), values.dtype), np.empty(SIDE, np.int64)
    for first in range(0, columns, SIDE):
        width = min(SIDE, columns - first)
        for column in range(SIDE):
            found[column] = 0
        for example in range(examples):
            for column in range(width):  # without asking: what is not positive is written over
                value = values[example, first + column]
                rows[column, found[column]] = value
                found[column] += value > 0
        for column in range(width):
            count = found[column]
            least[first + column] = _largest(rows[column, :count], wanted) if count >= wanted else 0


@loop
def _largest(values: np.ndarray, wanted: int) -> float:
    """The `wanted`-th largest of some values, which are moved around: quickselect, without asking about each value."""
    first, last, place = 0, values.size, wanted - 1  # of falling order; it lies in first to last - 1
    while last - first > 1:
        a, b, c = values[first], values[(first + last) // 2], values[last - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        above = first  # larger ones come first, then equal ones
        for here in range(first, last):
            value = values[here]
            values[here] = values[above]
            values[above] = value
            above += value > pivot
        if place < above:
            last = above
            continue
        same = above
        for here in range(above, last):
            value = values[here]
            values[here] = values[same]
            values[same] = value
            same += value == pivot
        if place < same:
            return pivot
        first = same
    return values[first]


@loop
def log2_of_each(values: np.ndarray, out: np.ndarray) -> None:
    """The base-2 logarithm of every value of a flat array; 0 where the value is not positive."""
    for place in range(values.size):
        value = values[place]
        out[place] = math.log2(value) if value > 0 else 0.0
