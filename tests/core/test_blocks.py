from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from nbutils.cofiring import pack_firing
from nbutils.graphs import activation_pattern_graph, graph_in_blocks, pair_blocks
from nbutils.support.workers import LOCAL, Lost, dask_runner, run_tasks


@pytest.fixture
def fired() -> np.ndarray:
    rng = np.random.default_rng(0)
    groups = rng.random((500, 9)) < 0.1
    return groups[:, rng.integers(9, size=777)] & (rng.random((500, 777)) < 0.7)


def same(a, b) -> bool:
    return a.shape == b.shape and a.nnz == b.nnz and (a != b).nnz == 0


def test_blocks_cover_all_strips_and_are_even():
    packed = pack_firing(np.ones((1, 64 * 40 + 1), bool))
    for count in (1, 2, 7, 41, 100):
        blocks = pair_blocks(packed, count)
        assert [first for block in blocks for first in block] == list(packed.strips)
        assert len(blocks) <= count
    sizes = [sum(packed.neurons - first for first in block) for block in pair_blocks(packed, 4)]
    assert max(sizes) < 1.2 * min(sizes)
    with pytest.raises(ValueError, match="blocks must be a whole number of at least 1, received 0"):
        pair_blocks(packed, 0)


@pytest.mark.parametrize("blocks", [1, 2, 5, 99])
def test_the_graph_is_the_same_however_it_is_split(fired, blocks):
    whole = activation_pattern_graph(fired, 0.03)
    assert same(graph_in_blocks(fired, 0.03, jobs=1, blocks=blocks), whole)


def test_two_processes(fired):
    assert same(graph_in_blocks(fired, 0.03, jobs=2), activation_pattern_graph(fired, 0.03))


@pytest.mark.release
def test_a_dask_cluster(fired):
    with dask_runner(LOCAL, 2) as (run, _):
        assert same(graph_in_blocks(fired, 0.03, run=run, blocks=4), activation_pattern_graph(fired, 0.03))


@pytest.mark.parametrize(
    "fired", [np.zeros((4, 0), bool), np.ones((4, 1), bool), np.zeros((4, 130), bool), np.ones((4, 130), bool)]
)
def test_degenerate_firing(fired):
    assert same(graph_in_blocks(fired, 0.5, jobs=1), activation_pattern_graph(fired, 0.5))


def test_a_lost_block_is_an_error(fired):
    def losing(task, items):
        return ((item, Lost("killed, 3 times") if n else task(item)) for n, item in enumerate(items))

    with pytest.raises(RuntimeError, match="a block of pairs was lost: killed, 3 times; try more blocks"):
        graph_in_blocks(fired, run=losing)


def test_results_may_come_in_any_order(fired):
    def backwards(task, items):
        return partial(run_tasks, jobs=1)(task, list(reversed(items)))

    assert same(graph_in_blocks(fired, 0.03, run=backwards, blocks=6), activation_pattern_graph(fired, 0.03))
