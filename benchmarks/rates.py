"""What this machine can do at best: the limits that figures are held against, measured and never looked up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numba import njit

from benchmarks.harness import Comparison, seconds
from nbutils.support import loops
from nbutils.support.machine import compute_threads, in_threads

KINDS = {"words": "words_per_s", "bytes": "bytes_per_s", "flops": "flops_per_s"}
IN_CACHE = 1024  # words of 64 bits, 8 KiB: two arrays of so many stay in any first-level cache


@njit(nogil=True)
def _count_ones(a: np.ndarray, b: np.ndarray, rounds: int) -> int:
    total = np.uint64(0)
    for round_ in range(rounds):
        for w in range(a.size):
            total += loops.count_ones(a[w] & (b[w] + np.uint64(round_)))
    return total


@njit(nogil=True)
def _count_patches(words: np.ndarray, counts: np.ndarray, rounds: int) -> None:
    """All pairs of the 64 neurons of one tile with themselves, by the patches that pairs are counted in."""
    number = words.size // loops.TILE
    for _round in range(rounds):
        for j in range(0, loops.TILE, loops.COLUMNS * loops.LANES):
            for i in range(0, loops.TILE, loops.ROWS):
                loops._count_patch(
                    loops._pointer(words, i),
                    loops._pointer(words, j),
                    number,
                    loops._pointer(counts, i * loops.TILE + j),
                    False,
                )


@njit(nogil=True)
def _copy(source: np.ndarray, target: np.ndarray, rounds: int) -> None:
    """Every number once a round; the round is added, or all but the last could be left out."""
    for round_ in range(rounds):
        for i in range(source.size):
            target[i] = source[i] + np.float32(round_)


def rates(quick: bool) -> dict[str, float]:
    """Best of several tries, with all threads that computing here uses.

    Returns:
        `words_per_s`: 64-bit words whose AND has its ones counted, all data in the first-level cache: by a simple loop
        that the compiler puts into vectors, or by the patches that pairs of neurons are counted in, the faster of both;
        `bytes_per_s`: memory read and written by a copy too large for any cache, see :func:`copying` for what fits one;
        `flops_per_s`: additions and multiplications of a float32 matrix product.
    """
    threads = compute_threads()
    torch.set_num_threads(threads)
    size = 1 << (24 if quick else 27)
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    half = np.array_split(np.arange(size), threads)
    parts = [slice(int(part[0]), int(part[-1]) + 1) for part in half]
    square = torch.rand(256 if quick else 2048, 256 if quick else 2048)
    return {
        "words_per_s": counting(quick),
        "bytes_per_s": 2 * size / _best(lambda: in_threads(lambda p: np.copyto(target[p], source[p]), parts)),
        "flops_per_s": 2 * len(square) ** 3 / _best(lambda: square @ square),
    }


def counting(quick: bool) -> float:
    """Words counted a second by all threads, by the faster of both loops; see :func:`rates`."""
    threads, rounds = compute_threads(), 20_000 if quick else 100_000
    words = np.random.default_rng(0).integers(2**63, size=(2, IN_CACHE), dtype=np.uint64)
    tile = np.resize(words, loops.WORDS * loops.TILE)  # 16 KiB
    counts, sweeps = np.zeros((threads, loops.TILE, loops.TILE), np.uint32), max(1, rounds // 128)
    _count_ones(*words, 1)
    _count_patches(tile, counts[0], 1)
    by_loop = _best(lambda: in_threads(lambda _: _count_ones(*words, rounds), range(threads)))
    by_patches = _best(lambda: in_threads(lambda t: _count_patches(tile, counts[t], sweeps), range(threads)))
    return threads * max(IN_CACHE * rounds / by_loop, tile.size * loops.TILE * sweeps / by_patches)


def copying(held: float, quick: bool) -> float:
    """Bytes read and written a second by all threads, each of which copies one half of `held` bytes to the other.

    Data that is used again and again, such as the weights of networks in training, stays in a cache if it fits one, and
    there it is read faster than main memory is. So its limit is a copy that has as much in use.
    """
    threads, numbers = compute_threads(), max(1, int(held) // 8)  # float32: half of the bytes, 4 each
    rounds = max(2, (1 << (25 if quick else 28)) // (8 * numbers))
    halves = [(np.ones(numbers, np.float32), np.zeros(numbers, np.float32)) for _ in range(threads)]
    _copy(*halves[0], 1)
    return threads * 8 * numbers * rounds / _best(lambda: in_threads(lambda h: _copy(*h, rounds), halves))


def least(found: Comparison, rates: dict[str, float], quick: bool = False) -> float | None:
    """The time or memory that our side needs at least: its work, counted on paper, at this machine's best rates.

    Args:
        found: a comparison; work on `held` bytes is done at the rate of a copy that has as many in use, or of main
            memory if that is faster; work of some `cores` at their part of the rates.
        rates: see :func:`rates`.
        quick: whether rates of copies are measured briefly.

    Returns:
        In the comparison's unit; None where nothing was counted.
    """
    if not found.work:
        return None
    if "MiB" in found.work:
        return found.work["MiB"]
    part = 1.0 if found.cores is None else min(1.0, found.cores / compute_threads())
    best = {kind: rates[name] for kind, name in KINDS.items()}
    if found.held is not None:
        best["bytes"] = max(best["bytes"], copying(found.held, quick))
    return sum(amount / (best[kind] * part) for kind, amount in found.work.items())


def _best(action: Callable[[], object]) -> float:
    return min(seconds(action) for _ in range(7))
