from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from nbutils.cofiring import cofiring_counts
from nbutils.graphs import activation_pattern_graph, graph_from_counts, to_networkx


@pytest.mark.parametrize("density", [0.02, 0.05, 0.1, 0.5, 1.0])
def test_heaviest_pairs_are_kept_and_no_other(rng, density):
    counts = cofiring_counts(rng.random((60, 30)) < 0.3)
    graph = graph_from_counts(counts, density).toarray()
    pairs = counts[np.triu_indices(30, 1)]
    kept = graph[np.triu_indices(30, 1)]
    wanted = int(np.ceil(density * pairs.size - 1e-9))
    threshold = max(np.sort(pairs)[::-1][wanted - 1], 1)
    assert (kept == np.where(pairs >= threshold, pairs, 0)).all()
    assert (graph == graph.T).all()
    assert not graph.diagonal().any()


def test_all_ties_are_kept():
    assert activation_pattern_graph(np.ones((4, 6), bool), density=0.01).nnz == 6 * 5


def test_order_of_neurons_does_not_matter(rng):
    fired = rng.random((200, 25)) < 0.2
    order = rng.permutation(25)
    graph, shuffled = (activation_pattern_graph(f).toarray() for f in (fired, fired[:, order]))
    assert (graph[np.ix_(order, order)] == shuffled).all()


def test_nothing_fires_together():
    assert activation_pattern_graph(np.eye(5, dtype=bool), density=1.0).nnz == 0
    assert activation_pattern_graph(np.zeros((5, 4), bool)).nnz == 0
    assert activation_pattern_graph(np.ones((3, 1), bool)).shape == (1, 1)
    assert activation_pattern_graph(np.ones((1, 3), bool), density=1.0).nnz == 6


def test_networkx_gets_the_same_graph(rng):
    graph = activation_pattern_graph(rng.random((100, 12)) < 0.3, density=0.2)
    other = to_networkx(graph)
    assert len(other) == 12
    assert (nx.to_numpy_array(other) == graph.toarray()).all()


@pytest.mark.parametrize("density", [0, -0.1, 1.1, "half", True, float("nan")])
def test_bad_density_is_named(density):
    with pytest.raises(ValueError, match="density must be a number above 0 and at most 1"):
        activation_pattern_graph(np.ones((3, 3), bool), density=density)


@pytest.mark.parametrize("fired", [np.ones(3, bool), np.zeros((0, 3), bool), np.full((2, 2), 0.5)])
def test_bad_firing_is_refused(fired):
    with pytest.raises(ValueError, match="fired must"):
        cofiring_counts(fired)
