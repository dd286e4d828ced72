"""Leiden against hand-checkable graphs, networkx, and what the algorithm promises."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

from nbutils._leiden import leiden
from nbutils.communities import detect_communities, modularity
from nbutils.graphs import activation_pattern_graph


def search(graph: sp.csr_array, seed: int = 0, resolution: float = 1.0) -> np.ndarray:
    matrix = sp.csr_array(graph, dtype=float)
    return leiden(matrix.indptr, matrix.indices, matrix.data, resolution, seed, np.arange(matrix.shape[0]))


def connected(graph: sp.csr_array, labels: np.ndarray) -> bool:
    parts = [graph[labels == name][:, labels == name] for name in np.unique(labels)]
    return all(sp.csgraph.connected_components(part)[0] == 1 for part in parts)


def planted(rng, groups: int, size: int, inside: float, across: float) -> tuple[sp.csr_array, np.ndarray]:
    truth = np.repeat(np.arange(groups), size)
    chance = np.where(truth[:, None] == truth, inside, across)
    upper = np.triu(rng.random(chance.shape) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float)), truth


@pytest.mark.parametrize("groups", [2, 3, 10])
def test_equal_cliques(groups):
    graph = sp.csr_array(np.kron(np.eye(groups), np.ones((4, 4)) - np.eye(4)))
    labels = search(graph)
    assert len(set(labels)) == groups
    assert modularity(graph, labels) == pytest.approx(1 - 1 / groups)


def test_barbell_of_two_triangles():
    graph = nx.to_scipy_sparse_array(nx.barbell_graph(3, 0)).astype(float)
    assert modularity(graph, search(graph)) == pytest.approx(5 / 14)


@pytest.mark.parametrize("seed", range(5))
def test_planted_groups_are_found(rng, seed):
    graph, truth = planted(rng, 6, 40, 0.4, 0.02)
    labels = search(graph, seed)
    assert len(set(zip(labels, truth, strict=True))) == 6 == len(set(labels))


@pytest.mark.parametrize(
    "graph",
    [
        nx.karate_club_graph(),
        nx.les_miserables_graph(),
        nx.watts_strogatz_graph(300, 6, 0.1, seed=1),
        nx.barabasi_albert_graph(300, 3, seed=1),
        nx.gnm_random_graph(200, 2000, seed=1),
        nx.path_graph(100),
        nx.star_graph(50),
        nx.complete_graph(30),
    ],
    ids=lambda graph: f"{len(graph)}-{graph.size()}",
)
def test_as_modular_as_the_louvain_of_networkx_and_connected(graph):
    matrix = sp.csr_array(nx.to_scipy_sparse_array(graph, weight="weight")).astype(float)
    names = {node: i for i, node in enumerate(graph)}
    theirs = []
    for seed in range(5):
        found = nx.community.louvain_communities(graph, seed=seed)
        label = {names[node]: k for k, group in enumerate(found) for node in group}
        theirs.append(modularity(matrix, [label[i] for i in range(len(names))]))
    ours = detect_communities(matrix, seeds=5)
    assert ours.modularity >= np.median(theirs) - 0.003
    for seed in range(5):
        assert connected(matrix, search(matrix, seed))


def test_no_single_move_improves(rng):
    """Also where many ties invite it, after the second pass."""
    graph = activation_pattern_graph(rng.random((200, 80)) < 0.2, density=0.1)
    labels = detect_communities(graph, seeds=1).labels
    best = modularity(graph, labels)
    for node in np.flatnonzero(labels >= 0):
        for name in set(labels) | {labels.max() + 1}:
            moved = labels.copy()
            moved[node] = name
            assert modularity(graph, moved) <= best + 1e-9


def test_resolution_decides_how_many(rng):
    graph, _ = planted(rng, 8, 20, 0.6, 0.1)
    counts = [len(set(search(graph, resolution=r))) for r in (0.2, 1.0, 3.0)]
    assert counts[0] < counts[1] <= counts[2]
    assert counts[0] == 1


def test_scale_of_the_weights_does_not_matter_and_seeds_are_reproducible(rng):
    graph, _ = planted(rng, 4, 30, 0.3, 0.1)
    for seed in range(3):
        assert (search(graph, seed) == search(graph * 1024, seed)).all()
        assert (search(graph, seed) == search(graph, seed)).all()
    assert len({search(graph, seed).tobytes() for seed in range(10)}) > 1


def test_isolated_nodes_and_empty_graphs():
    assert search(sp.csr_array((4, 4))).tolist() == [0, 1, 2, 3]
    assert search(sp.csr_array((0, 0))).size == 0
    graph = sp.csr_array(np.pad(np.ones((3, 3)) - np.eye(3), ((0, 2), (0, 2))))
    labels = search(graph)
    assert len(set(labels[:3])) == 1
    assert len(set(labels)) == 3
