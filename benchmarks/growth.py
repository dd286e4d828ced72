"""How time and memory grow with neurons and examples, and the pairs of many neurons split over two processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import nbutils as nb
from benchmarks.graphs import words
from benchmarks.harness import Comparison, Curve, run_script, seconds
from benchmarks.memory import with_peak
from nbutils.cofiring import pack_firing
from nbutils.support.workers import run_tasks

PASSES = ("first pass, histograms", "second pass, edges", "putting the graph together")
ONE_SIZE = """
import ctypes, json, sys, time
import numpy as np
import nbutils as nb
from benchmarks.memory import forget_peak, peak
examples, neurons, step, repeats = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
rng = np.random.default_rng(0)
events = rng.random((examples, 20), dtype=np.float32) < 0.1
fired = np.empty((examples, neurons), bool)
for first in range(0, neurons, 1000):
    part = fired[:, first : first + 1000]
    part[:] = events[:, rng.integers(20, size=part.shape[1])] & (rng.random(part.shape, dtype=np.float32) < 0.5)
    part |= rng.random(part.shape, dtype=np.float32) < 0.05
nb.detect_communities(nb.activation_pattern_graph(fired[:, :100]))
times = []
for repeat in range(repeats):
    ctypes.CDLL(None).malloc_trim(0)  # what was freed must not be counted as already there
    before = forget_peak()
    start = time.perf_counter()
    graph = nb.activation_pattern_graph(fired)
    if step == "communities":
        start = time.perf_counter()
        nb.detect_communities(graph, seeds=1)
    times.append(time.perf_counter() - start)
    if repeat == 0:
        extra = peak() - before
    graph = None
print(json.dumps([sorted(times)[len(times) // 2], extra]))
"""


def growth(quick: bool) -> list[Curve]:
    """From firing to graph against neurons and against examples; the search for communities against neurons."""
    neurons = (500, 1_000) if quick else (1_000, 2_000, 4_000, 8_000, 16_000)
    examples = (500, 1_000) if quick else (4_000, 8_000, 16_000, 32_000, 64_000)
    few, many = 2_000, 4_000
    by_neurons = [_one_size(few, n, "graph") for n in neurons]
    by_examples = [_one_size(e, many if not quick else 300, "graph") for e in examples]
    search = [_one_size(few, n, "communities") for n in neurons]
    shared = f"from firing to graph at density 0.05, {few:,} examples"
    other = f"from firing to graph at density 0.05, {many:,} neurons"
    return [
        Curve("graph_time_neurons", shared, "neurons", "s", neurons, [t for t, _ in by_neurons], 2.1),
        Curve("graph_memory_neurons", shared, "neurons", "MiB", neurons, [m for _, m in by_neurons], 2.1),
        Curve("graph_time_examples", other, "examples", "s", examples, [t for t, _ in by_examples], 1.1),
        Curve("graph_memory_examples", other, "examples", "MiB", examples, [m for _, m in by_examples], 1.1),
        Curve(
            "communities_time_neurons",
            "one search for communities at density 0.05",
            "neurons",
            "s",
            neurons,
            [t for t, _ in search],
            2.1,
        ),
    ]


def _one_size(examples: int, neurons: int, step: str) -> tuple[float, float]:
    repeats = 5 if neurons <= 4_000 and examples <= 16_000 else 3
    took, extra = run_script(ONE_SIZE, examples, neurons, step, repeats)
    return took, max(extra, 0.1)


def blocks(quick: bool) -> list[Comparison]:
    """All pairs of 50,000 neurons on two processes that share nothing but the packed bits, against one."""
    neurons, density = (2_000, 0.01) if quick else (50_000, 0.005)
    rng = np.random.default_rng(0)
    fired = np.concatenate(
        [rng.random((2_000, 1_000), dtype=np.float32) < 0.1 for _ in range(neurons // 1_000)], axis=1
    )
    packed = pack_firing(fired)
    del fired
    peaks: dict[int, list[float]] = {1: [], 2: []}
    graphs: dict[int, Any] = {}
    passes: dict[int, list[float]] = {1: [], 2: []}

    def split(jobs: int) -> None:
        run = partial(_measured, peaks[jobs], passes[jobs], jobs)
        graphs[jobs] = nb.graph_in_blocks(packed, density, run=run, blocks=4)

    times = {jobs: [seconds(lambda jobs=jobs: split(jobs))] for jobs in (2, 1)}
    assert graphs[1].nnz == graphs[2].nnz
    assert (graphs[1].indices == graphs[2].indices).all()
    assert (graphs[1].data == graphs[2].data).all()
    about = f"all pairs of {neurons:,} neurons over 2,000 examples in 4 blocks, {graphs[1].nnz // 2:,} edges: "
    return [
        Comparison(
            f"blocks_{neurons}",
            f"{about}two processes against one",
            "s",
            times[2],
            times[1],
            {"words": 2 * words(neurons)},
            cores=2,
            parts=dict(zip(PASSES, [*passes[2], times[2][0] - sum(passes[2])], strict=True)),
        ),
        Comparison(
            f"blocks_{neurons}_peak_mib",
            f"{about}largest memory of a worker, two processes against one",
            "MiB",
            [max(peaks[2])],
            [max(peaks[1])],
        ),
    ]


def _measured(
    peaks: list[float], passes: list[float], jobs: int, task: Callable[[Any], Any], items: list[Any]
) -> Iterator[tuple[Any, Any]]:
    """Run the blocks in processes of one thread each; note how long, and the largest memory that each needed."""
    start = time.perf_counter()
    preload = ("nbutils.graphs", "nbutils.support.loops")
    for item, (result, most) in run_tasks(
        partial(with_peak, task), items, jobs, fresh=True, preload=preload, threads=1
    ):
        peaks.append(most)
        yield item, result
    passes.append(time.perf_counter() - start)
