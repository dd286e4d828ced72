from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_mutual_info_score

from nbutils.communities import consensus_partition, detect_communities, modularity, well_defined_communities


def cliques(count: int, size: int) -> np.ndarray:
    return np.kron(np.eye(count), np.ones((size, size)) - np.eye(size))


def barbell() -> np.ndarray:
    return nx.to_numpy_array(nx.barbell_graph(3, 0))


def weighted(rng, nodes: int = 40) -> np.ndarray:
    upper = np.triu(rng.integers(0, 9, (nodes, nodes)) * (rng.random((nodes, nodes)) < 0.2), 1)
    return (upper + upper.T).astype(float)


def test_barbell_of_two_triangles():
    assert modularity(barbell(), [0, 0, 0, 1, 1, 1]) == pytest.approx(float(Fraction(5, 14)))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_equal_cliques(count):
    labels = np.repeat(np.arange(count), 4)
    assert modularity(cliques(count, 4), labels) == pytest.approx(1 - 1 / count)


def test_one_community_and_singletons():
    complete = np.ones((6, 6)) - np.eye(6)
    assert modularity(complete, np.zeros(6, int)) == pytest.approx(0)
    assert modularity(complete, np.arange(6)) == pytest.approx(-1 / 6)


def test_empty_graph_has_no_modularity():
    assert modularity(np.zeros((4, 4)), [0, 1, 2, 3]) == 0.0


@pytest.mark.parametrize("resolution", [0.5, 1.0, 2.0])
def test_modularity_equals_networkx(rng, resolution):
    for _ in range(10):
        matrix = weighted(rng)
        labels = rng.integers(0, 5, 40)
        groups = [set(np.flatnonzero(labels == k)) for k in np.unique(labels)]
        other = nx.community.modularity(nx.from_numpy_array(matrix), groups, resolution=resolution)
        assert modularity(matrix, labels, resolution) == pytest.approx(other, abs=1e-12)
        assert modularity(sp.csr_matrix(matrix), labels, resolution) == pytest.approx(other, abs=1e-12)


def test_modularity_ignores_names_and_order(rng):
    matrix, labels, order = weighted(rng), rng.integers(0, 4, 40), rng.permutation(40)
    value = modularity(matrix, labels)
    assert modularity(matrix, -7 * labels) == pytest.approx(value)
    assert modularity(matrix[np.ix_(order, order)], labels[order]) == pytest.approx(value)
    assert modularity(3.5 * matrix, labels) == pytest.approx(value)


def test_leiden_is_at_least_as_good_as_networkx_louvain(rng):
    for seed in range(5):
        matrix = weighted(rng, 80)
        louvain = nx.community.louvain_communities(nx.from_numpy_array(matrix), seed=seed)
        other = nx.community.modularity(nx.from_numpy_array(matrix), louvain)
        assert detect_communities(matrix).modularity_per_seed.max() >= other - 0.02


def test_scores_belong_to_the_labels(rng):
    matrix = weighted(rng)
    found = detect_communities(matrix, seeds=4)
    for labels, score in zip(found.seed_labels, found.modularity_per_seed, strict=True):
        assert modularity(matrix, labels) == pytest.approx(score)
    assert found.modularity == pytest.approx(np.median(found.modularity_per_seed))
    assert modularity(matrix, found.labels) == pytest.approx(found.modularity_per_seed.max())


def test_planted_groups_are_found_and_noise_is_not(rng):
    truth = np.repeat(np.arange(4), 25)
    same = truth[:, None] == truth[None, :]

    def agreement(inside: float, outside: float) -> float:
        upper = np.triu(rng.random((100, 100)) < np.where(same, inside, outside), 1)
        return adjusted_mutual_info_score(truth, detect_communities((upper + upper.T).astype(float)).labels)

    assert agreement(0.5, 0.02) > 0.95
    assert abs(np.mean([agreement(0.1, 0.1) for _ in range(5)])) < 0.1


def test_isolated_neurons_are_no_community():
    matrix = np.zeros((9, 9))
    matrix[:6, :6] = cliques(2, 3)
    found = detect_communities(matrix)
    assert found.labels.tolist() == [0, 0, 0, 1, 1, 1, -1, -1, -1]
    assert found.consensus.tolist() == found.labels.tolist()
    assert found.count == 2
    assert found.connected_share == pytest.approx(6 / 9)
    assert found.agreement == 1.0


def test_empty_graph():
    found = detect_communities(np.zeros((3, 3)))
    assert (found.labels == -1).all()
    assert (found.modularity, found.agreement, found.connected_share, found.count) == (0.0, 1.0, 0.0, 0)
    assert (found.consensus == -1).all()
    assert detect_communities(np.zeros((0, 0))).connected_share == 0.0


def test_communities_are_numbered_by_size_and_reproducible(rng):
    matrix = np.zeros((9, 9))
    matrix[:3, :3], matrix[3:, 3:] = cliques(1, 3), cliques(1, 6)
    first, second = detect_communities(matrix), detect_communities(matrix)
    assert first.labels.tolist() == [1, 1, 1, 0, 0, 0, 0, 0, 0]
    assert (first.seed_labels == second.seed_labels).all()


def test_agreement_is_the_mean_over_pairs_of_seeds(rng):
    found = detect_communities(weighted(rng), seeds=3)
    a, b, c = found.seed_labels[:, found.labels >= 0]
    pairs = [adjusted_mutual_info_score(x, y) for x, y in ((a, b), (a, c), (b, c))]
    assert found.agreement == pytest.approx(np.mean(pairs))


def test_consensus_follows_the_majority(rng):
    found = detect_communities(cliques(3, 4))
    object.__setattr__(found, "seed_labels", np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]]))
    assert found.consensus.tolist() == [0, 0, 1, 1]


def test_consensus_makes_no_chains():
    """Each neuron goes with the next in two of three searches, the first with the last in none."""
    searches = [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1], [0, 1, 1, 2, 2, 3]]
    pairs = (np.asarray(searches)[:, :-1] == np.asarray(searches)[:, 1:]).mean(axis=0)
    assert pairs.tolist() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2 / 3, 2 / 3])
    groups = consensus_partition(searches)
    assert groups.max() > 0, "chained together, all six would be one"


def test_consensus_is_average_linkage(rng):
    """Against SciPy, on searches that make no ties."""
    planted = np.repeat([0, 1, 2], [14, 9, 7])
    searches = np.array([np.where(rng.random(30) < 0.2, rng.integers(3, size=30), planted) for _ in range(41)])
    share = (searches[:, :, None] == searches[:, None, :]).mean(axis=0)
    tree = linkage(squareform(1 - share, checks=False), "average")
    wanted = fcluster(tree, 0.5 - 1e-9, "distance")
    assert adjusted_mutual_info_score(consensus_partition(searches), wanted) == pytest.approx(1)
    assert adjusted_mutual_info_score(consensus_partition(searches), planted) == pytest.approx(1)


def test_consensus_of_equal_searches_is_each_of_them(rng):
    labels = rng.integers(5, size=40)
    labels[:4] = -1
    found = consensus_partition([labels] * 3)
    assert (found == -1).tolist() == (labels == -1).tolist()
    assert adjusted_mutual_info_score(found, labels) == pytest.approx(1)
    assert consensus_partition([[-1, -1]]).tolist() == [-1, -1]


def test_well_defined_communities_by_hand():
    # A triangle with one edge out (6 > 1), and a path a-b-c whose ends leave twice each (2 * 2 = 4 < 5).
    graph = nx.Graph([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (2, 3)])
    graph.add_weighted_edges_from([(3, 6, 2), (5, 7, 2)])
    matrix = nx.to_numpy_array(graph)
    assert well_defined_communities(matrix, [0, 0, 0, 1, 1, 1, 2, 3]).tolist() == [0]
    assert well_defined_communities(matrix, [-1] * 8).tolist() == []
    assert well_defined_communities(np.zeros((3, 3)), [0, 0, 0]).tolist() == []


def test_well_defined_means_conductance_below_one_half(rng):
    matrix = weighted(rng)
    labels = np.arange(40) // 8
    graph = nx.from_numpy_array(matrix)
    for c in range(5):
        members = set(np.flatnonzero(labels == c))
        cut = nx.cut_size(graph, members, weight="weight")
        below = cut / nx.volume(graph, members, weight="weight") < 0.5
        assert (c in well_defined_communities(matrix, labels)) == below


def test_pairs_are_too_small_to_be_well_defined():
    assert well_defined_communities(cliques(3, 2), np.repeat([0, 1, 2], 2)).tolist() == []
    assert well_defined_communities(cliques(3, 3), np.repeat([0, 1, 2], 3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.ones((2, 3)), "square"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), "symmetric"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), "negative"),
        (np.eye(2), "self-loops"),
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), "NaN"),
    ],
)
def test_bad_graphs_are_named(matrix, words):
    with pytest.raises(ValueError, match=words):
        modularity(matrix, [0, 0])


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"labels must have shape \(6,\), received \(2,\)"):
        modularity(barbell(), [0, 1])
    with pytest.raises(ValueError, match="seeds must be a whole number"):
        detect_communities(barbell(), seeds=0)
    with pytest.raises(ValueError, match="resolution must be above 0"):
        detect_communities(barbell(), resolution=0)


def test_communities_are_connected(rng):
    matrix = weighted(rng, 60)
    graph = nx.from_numpy_array(matrix)
    labels = detect_communities(matrix).labels
    for c, _ in pairwise(range(labels.max() + 2)):
        assert nx.is_connected(graph.subgraph(np.flatnonzero(labels == c)))


def test_two_neurons_in_no_community_are_not_together():
    searches = [[0, 0, 1, 1], [0, 0, -1, -1], [0, 0, -1, -1]]
    assert consensus_partition(searches).tolist() == [0, 0, 1, 2]


def test_labels_can_be_changed_without_changing_a_search():
    found = detect_communities(np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3)))
    kept = found.seed_labels.copy()
    found.labels[:] = 9
    assert (found.seed_labels == kept).all()
