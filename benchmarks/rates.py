"""What this machine can do at best: the limits that figures are held against."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numba import njit

from benchmarks.harness import seconds
from nbutils.support.loops import count_ones
from nbutils.support.machine import compute_threads, in_threads


@njit(nogil=True)
def _count_ones(a: np.ndarray, b: np.ndarray, rounds: int) -> int:
    total = np.uint64(0)
    for round_ in range(rounds):
        for w in range(a.size):
            total += count_ones(a[w] & (b[w] + np.uint64(round_)))
    return total


def rates(quick: bool) -> dict[str, float]:
    """Best of several tries, with all threads that computing here uses.

    Returns:
        `words_per_s`: 64-bit words whose AND has its ones counted, all data in the first-level cache;
        `bytes_per_s`: memory read and written by a copy too large for any cache;
        `flops_per_s`: additions and multiplications of a float32 matrix product.
    """
    threads, rounds = compute_threads(), 1_000 if quick else 100_000
    torch.set_num_threads(threads)
    words = np.random.default_rng(0).integers(2**63, size=(2, 1024), dtype=np.uint64)
    _count_ones(*words, 1)
    size = 1 << (20 if quick else 27)
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    half = np.array_split(np.arange(size), threads)
    parts = [slice(int(part[0]), int(part[-1]) + 1) for part in half]
    square = torch.rand(256 if quick else 2048, 256 if quick else 2048)
    return {
        "words_per_s": threads
        * 1024
        * rounds
        / _best(lambda: in_threads(lambda _: _count_ones(*words, rounds), range(threads))),
        "bytes_per_s": 2 * size / _best(lambda: in_threads(lambda p: np.copyto(target[p], source[p]), parts)),
        "flops_per_s": 2 * len(square) ** 3 / _best(lambda: square @ square),
    }


def _best(action: Callable[[], object]) -> float:
    return min(seconds(action) for _ in range(7))
