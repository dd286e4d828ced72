"""Which neurons fire together, and how often: exact counts of all pairs, and no more in memory than is asked for.

Firing is packed into bits, 64 examples a word; the count of a pair is the number of ones in the AND of two rows.
For n neurons and E examples that takes n (n - 1) / 2 * E / 64 word operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nbutils.support.checks import as_count, as_fired, as_numpy, is_whole, shown
from nbutils.support.devices import device_counts, resolve_device
from nbutils.support.machine import in_threads

WORTH = 1 << 27  # words times neurons from which on counting all pairs is shared between threads: some milliseconds


@dataclass(frozen=True)
class PackedFiring:
    """An activation pattern matrix as bits.

    Attributes:
        words: shape (neurons rounded up to tiles of 64, words), uint64; bit b of word w says whether example 64 w + b
            fires; everything beyond the last neuron and example is 0.
        neurons: number of neurons.
        examples: number of examples.

    Raises:
        ValueError: `words` does not fit the numbers of neurons and examples, so that counting would leave it.
    """

    words: np.ndarray
    neurons: int
    examples: int

    def __post_init__(self) -> None:
        neurons, examples = as_count(self.neurons, "neurons", least=0), as_count(self.examples, "examples")
        shape, words = (-(-neurons // 64) * 64, -(-examples // 64)), self.words
        if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.shape != shape:
            found = (words.dtype, words.shape) if isinstance(words, np.ndarray) else type(words).__name__
            raise ValueError(f"words must be an array of uint64 of shape {shape}, received {found}")
        if words[neurons:].any() or (examples % 64 and (words[:, -1] >> np.uint64(examples % 64)).any()):
            raise ValueError("words must be 0 beyond the last neuron and example, received ones there")

    @property
    def strips(self) -> range:
        """First neurons r of the strips in which pairs are counted, each i from r to r + 63 with all j >= i."""
        return range(0, self.neurons, 64)

    @property
    def heavy(self) -> bool:
        """Whether counting all pairs is worth several threads, because one would need some milliseconds."""
        return self.words.size * self.neurons > WORTH

    @property
    def tiles(self) -> np.ndarray:
        """The words of 64 neurons side by side, shape (tiles of 64 neurons, words, 64), as pairs are counted."""
        return np.ascontiguousarray(self.words.reshape(-1, 64, self.words.shape[1]).transpose(0, 2, 1))

    def unpack(self) -> np.ndarray:
        """The activation pattern matrix again, boolean, shape (examples, neurons)."""
        by_byte = np.ascontiguousarray(self.words[: self.neurons], dtype="<u8").view(np.uint8)
        return np.unpackbits(by_byte, axis=1, bitorder="little", count=self.examples).T.astype(bool)


def pack_firing(fired: Any) -> PackedFiring:
    """Pack an activation pattern matrix into bits, an eighth of its size.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; packed firing is returned as it is.

    Returns:
        A :class:`PackedFiring`.

    Raises:
        ValueError: `fired` is not a boolean matrix with at least one example.

    Examples:
        >>> pack_firing([[1, 0], [1, 1]]).words[:2].tolist()
        [[3], [2]]
    """
    from nbutils.support import loops

    if isinstance(fired, PackedFiring):
        return fired
    matrix = as_fired(fired)
    examples, neurons = matrix.shape
    words = np.zeros((-(-neurons // loops.TILE) * loops.TILE, -(-examples // 64)), np.uint64)
    loops.pack(matrix, np.empty(neurons, np.uint64), words)
    return PackedFiring(words, neurons, examples)


def cofiring_counts(fired: Any, device: str = "cpu") -> np.ndarray:
    """How often each pair of neurons fires on the same example.

    C_ij = sum_e F_ei F_ej, that is C = F'F; the diagonal holds how often each neuron fires.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; or a :class:`PackedFiring`.
        device: where to count, see :func:`nbutils.support.devices.resolve_device`; the result is the same.

    Returns:
        Counts, int32, shape (neurons, neurons), symmetric, exact.

    Raises:
        ValueError: `fired` is not a boolean matrix with at least one example, or there is no such device.

    Examples:
        >>> cofiring_counts([[1, 1, 0], [1, 0, 0]])
        array([[2, 1, 0],
               [1, 1, 0],
               [0, 0, 0]], dtype=int32)

    References:
        Mostafa and Mondal (2021), arXiv:2106.04693.
    """
    from nbutils.support import loops

    if (where := resolve_device(device)) != "cpu":
        return device_counts(fired.unpack() if isinstance(fired, PackedFiring) else fired, where)
    packed = pack_firing(fired)
    tiles, neurons = packed.tiles, packed.neurons
    room = np.empty(neurons**2 + 16, np.int32)
    start = -room.ctypes.data % 64 // 4  # at a multiple of 64 bytes, so that whole lines can be written
    counts, aligned = room[start : start + neurons**2].reshape(neurons, neurons), neurons % 16 == 0
    in_threads(lambda tile: loops.write_counts(tiles, tile, counts, aligned), range(len(tiles)), packed.heavy)
    return counts


def count_histogram(packed: PackedFiring, strips: Sequence[int] | None = None) -> np.ndarray:
    """How many pairs of different neurons fire together 0, 1, 2, ... times.

    Args:
        packed: packed firing.
        strips: some of `packed.strips`, so that several machines can share the work; None means all.

    Returns:
        Number of pairs, int64, shape (examples + 1,). Histograms of different strips add up.

    Raises:
        ValueError: `packed` is no packed firing, or `strips` has one that it does not.

    Examples:
        >>> count_histogram(pack_firing([[1, 1, 0], [1, 1, 0]])).tolist()
        [2, 0, 1]
    """
    chosen = _strips(packed, strips)
    return _histogram(packed, packed.tiles, chosen, [None] * len(chosen))


MOST_KEPT = 2048  # neurons of which the counts of all pairs are kept between two looks at them, in 8 MiB


def _histogram(
    packed: PackedFiring, tiles: np.ndarray, strips: Sequence[int], kept: Sequence[np.ndarray | None]
) -> np.ndarray:
    from nbutils.support import loops

    def of(strip: int) -> np.ndarray:
        found = np.zeros((4, 64 * tiles.shape[1] + 1), np.int64)  # room for whatever the words hold
        counts = np.empty((1, 64, 64), np.uint32) if (room := kept[strip]) is None else room
        loops.add_to_histogram(tiles, packed.neurons, strips[strip] // 64, found, counts)
        return found.sum(axis=0)[: packed.examples + 1]

    total = np.zeros(packed.examples + 1, np.int64)
    for part in in_threads(of, range(len(strips)), packed.heavy):
        total += part
    return total


def _pairs(
    packed: PackedFiring, tiles: np.ndarray, strips: Sequence[int], kept: Sequence[np.ndarray | None], threshold: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from nbutils.support import loops

    def of(strip: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        tile = strips[strip] // 64
        counts = np.empty((len(tiles) - tile, 64, 64), np.uint32) if (counted := kept[strip]) is None else counted
        number = loops.count_heavy(tiles, packed.neurons, tile, least, counts, counted is not None)
        room = np.empty(number + 1, np.int32), np.empty(number + 1, np.int32), np.empty(number + 1, np.uint32)
        loops.heavy_pairs(packed.neurons, tile, least, counts, *room)
        return tuple(part[:number] for part in room)

    least = np.uint32(min(threshold, 2**32 - 1))
    parts = in_threads(of, range(len(strips)), packed.heavy)
    if not parts:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.uint32)
    rows, columns, weights = zip(*parts, strict=True)
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(weights)


def count_threshold(histogram: Any, wanted: int) -> int:
    """The count that the `wanted`-th heaviest pair reaches, at least 1.

    Args:
        histogram: number of pairs for each count from 0, see :func:`count_histogram`.
        wanted: number of pairs, at least 1.

    Returns:
        The threshold; keeping every pair that reaches it keeps all ties, and never a pair that does not fire together.

    Raises:
        ValueError: `histogram` holds no numbers of pairs, or `wanted` < 1.

    Examples:
        >>> count_threshold([5, 3, 2, 1], wanted=2)
        2
    """
    table = as_numpy(histogram, "histogram")
    if table.ndim != 1 or table.dtype.kind not in "iu" or table.min(initial=0) < 0:
        raise ValueError(f"histogram must be numbers of pairs in a row, received {table.dtype} of shape {table.shape}")
    at_least = np.cumsum(table[::-1])[::-1]
    return max(1, int((at_least >= as_count(wanted, "wanted")).sum()) - 1)


def pairs_from(
    packed: PackedFiring, threshold: int, strips: Sequence[int] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of neurons that fire together at least so often.

    Args:
        packed: packed firing.
        threshold: smallest count, at least 1.
        strips: some of `packed.strips` in rising order; None means all.

    Returns:
        (i, j, count) with i < j, sorted by i, then j; int32, int32, uint32.

    Raises:
        ValueError: `packed` is no packed firing, `threshold` < 1, or `strips` has one that it does not.

    Examples:
        >>> [part.tolist() for part in pairs_from(pack_firing([[1, 1, 0], [1, 1, 1]]), 2)]
        [[0], [1], [2]]
    """
    chosen, threshold = _strips(packed, strips), as_count(threshold, "threshold")
    return _pairs(packed, packed.tiles, chosen, [None] * len(chosen), threshold)


def heaviest_pairs(packed: PackedFiring, wanted: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pairs of neurons that fire together most often, with all ties.

    Args:
        packed: packed firing.
        wanted: number of pairs, at least 1.

    Returns:
        What :func:`pairs_from` gives with :func:`count_threshold` of :func:`count_histogram`. The counts of up to 2,048
        neurons are kept between the two, and made twice for more, which takes less memory.

    Raises:
        ValueError: `packed` is no packed firing, or `wanted` < 1.

    Examples:
        >>> [part.tolist() for part in heaviest_pairs(pack_firing([[1, 1, 0], [1, 1, 1]]), 1)]
        [[0], [1], [2]]
    """
    strips, wanted = _strips(packed, None), as_count(wanted, "wanted")
    tiles, kept = packed.tiles, [None] * len(strips)
    if packed.neurons <= MOST_KEPT:
        kept = [np.empty((left, 64, 64), np.uint32) for left in range(len(strips), 0, -1)]
    threshold = count_threshold(_histogram(packed, tiles, strips, kept), wanted)
    return _pairs(packed, tiles, strips, kept, threshold)


def _strips(packed: PackedFiring, strips: Sequence[int] | None) -> Sequence[int]:
    """The asked strips, of which compiled code trusts that they are there."""
    if not isinstance(packed, PackedFiring):
        raise ValueError(f"packed must be packed firing, see pack_firing(), received {type(packed).__name__}")
    if strips is None:
        return packed.strips
    if not isinstance(strips, Sequence) or not all(is_whole(strip) and strip in packed.strips for strip in strips):
        raise ValueError(f"strips must be some of {packed.strips}, received {shown(strips)}")
    return strips
