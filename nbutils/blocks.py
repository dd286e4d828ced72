"""The activation pattern graph of many neurons, computed in blocks of pairs by several processes or machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from nbutils.arrays import as_count, require_share, share_count
from nbutils.cofiring import PackedFiring, count_histogram, count_threshold, pack_firing, pairs_from
from nbutils.cores import default_jobs
from nbutils.graphs import activation_pattern_graph, graph_from_pairs
from nbutils.workers import Lost, run_tasks

if TYPE_CHECKING:
    import scipy.sparse as sp

__all__ = ["graph_in_blocks", "pair_blocks"]

MOST_BLOCKS, MOST_JOBS = 100_000, 1000
Runner = Callable[..., Iterator[tuple[Any, Any]]]


def pair_blocks(packed: PackedFiring, blocks: int) -> list[range]:
    """Split all pairs of neurons into blocks of about equal size.

    Args:
        packed: packed firing.
        blocks: how many, at least 1.

    Returns:
        At most so many ranges of `packed.strips`, in order, together all of them.

    Examples:
        >>> packed = pack_firing(np.ones((1, 64 * 8), dtype=bool))
        >>> [len(block) for block in pair_blocks(packed, 2)]  # early strips hold more pairs
        [3, 5]
    """
    blocks = min(as_count(blocks, "blocks"), MOST_BLOCKS)
    strips = packed.strips
    done = np.cumsum([packed.neurons - first for first in strips])
    ends = np.searchsorted(done, done[-1] * np.arange(1, blocks + 1) / blocks) + 1 if len(strips) else []
    bounds = np.unique([0, *np.minimum(ends, len(strips))])
    return [strips[start:stop] for start, stop in pairwise(bounds)]


def graph_in_blocks(
    fired: Any, density: float = 0.05, *, run: Runner | None = None, jobs: int | None = None, blocks: int | None = None
) -> sp.csr_array:
    """The same graph as :func:`nbutils.graphs.activation_pattern_graph`, from workers that share only the packed bits.

    First every block of pairs gives a histogram of its counts; their sum fixes the threshold. Then every block gives
    its edges. A worker holds the bits, neurons * examples / 8 bytes, and the edges of one block.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; or a
            :class:`nbutils.cofiring.PackedFiring`.
        density: share of all pairs to keep, in (0, 1].
        run: called like :func:`nbutils.workers.run_tasks`, which is the default; for a Dask cluster, what
            :func:`nbutils.clusters.dask_runner` yields first.
        jobs: local processes; None means one per core.
        blocks: number of blocks; None means four for each job.

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal.

    Raises:
        ValueError: an argument is out of range.
        TypeError: `run` is no function.
        RuntimeError: a block was lost by three workers.

    Examples:
        >>> graph_in_blocks([[1, 1, 0], [1, 1, 1]], density=1 / 3, jobs=1).nnz
        2
    """
    share, packed = require_share(density, "density"), pack_firing(fired)
    jobs = default_jobs() if jobs is None else as_count(jobs, "jobs", most=MOST_JOBS)
    if run is not None and not callable(run):
        raise TypeError(f"run must be a function like run_tasks(), or None, received {type(run).__name__}")
    run = run if run is not None else partial(run_tasks, jobs=jobs, preload=(__name__,))
    parts = pair_blocks(packed, 4 * jobs if blocks is None else blocks)
    pairs = packed.neurons * (packed.neurons - 1) // 2
    if pairs == 0:
        return activation_pattern_graph(packed, share)
    histograms = _all(run, block_histogram, [(packed, part) for part in parts])
    threshold = count_threshold(sum(histograms), share_count(share, pairs))
    found = _all(run, block_pairs, [(packed, part, threshold) for part in parts])
    return graph_from_pairs(packed.neurons, *(np.concatenate(part) for part in zip(*found, strict=True)))


def block_histogram(block: tuple[PackedFiring, range]) -> np.ndarray:
    """A worker's first task."""
    return count_histogram(*block)


def block_pairs(block: tuple[PackedFiring, range, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A worker's second task."""
    packed, strips, threshold = block
    return pairs_from(packed, threshold, strips)


def _all(run: Runner, task: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """Results in the order of the items."""
    place = {id(item): number for number, item in enumerate(items)}
    results: list[Any] = [None] * len(items)
    for item, result in run(task, items):
        if isinstance(result, Lost):
            raise RuntimeError(f"a block of pairs was lost: {result.reason}; try more blocks, or fewer jobs")
        results[place[id(item)]] = result
    return results
