from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef

from nbutils.cofiring import cofiring_counts, pack_firing
from nbutils.graphs import (
    activation_pattern_graph,
    disparity_graph,
    layered_graph,
    pearson_graph,
    phi_graph,
    ppmi_graph,
    within_layer_graph,
)

LAYERS = np.repeat([3, 5, 9], [8, 10, 12])
BUILDERS = {
    "phi": phi_graph,
    "pearson": lambda fired: pearson_graph(fired.astype(float)),
    "ppmi": ppmi_graph,
    "disparity": lambda fired: disparity_graph(fired, alpha=0.3),
    "disparity, share": lambda fired: disparity_graph(fired, density=0.1),
    "layered": lambda fired: layered_graph(fired, np.arange(fired.shape[1]) // 10),
    "within layers": lambda fired: within_layer_graph(fired, np.arange(fired.shape[1]) // 10),
}


@pytest.fixture
def fired(rng):
    """30 neurons in three groups that fire together, on 200 examples; a dead and a constant one among them."""
    groups = rng.random((200, 3)) < 0.3
    matrix = np.where(rng.random((200, 30)) < 0.7, groups[:, np.arange(30) % 3], rng.random((200, 30)) < 0.3)
    matrix[:, 7], matrix[:, 20] = False, True
    return matrix


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_every_graph_is_an_adjacency(build, fired):
    graph = build(fired)
    dense = graph.toarray()
    assert graph.shape == (30, 30)
    assert graph.nnz > 0
    assert (dense == dense.T).all()
    assert (graph.data > 0).all()
    assert not dense.diagonal().any()
    assert not dense[7].any()  # dead


@pytest.mark.parametrize("name", ["phi", "ppmi", "disparity", "disparity, share"])
def test_order_of_neurons_does_not_matter(name, fired, rng):
    order = rng.permutation(30)
    graph, shuffled = (BUILDERS[name](f).toarray() for f in (fired, fired[:, order]))
    assert (graph[np.ix_(order, order)] == shuffled).all()


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
@pytest.mark.parametrize("shape", [(5, 0), (5, 1), (1, 4), (6, 3)])
def test_nothing_to_join(build, shape):
    assert build(np.zeros(shape, bool)).nnz == 0
    assert build(np.zeros(shape, bool)).shape == (shape[1], shape[1])


def test_packed_firing_gives_the_same(fired):
    packed = pack_firing(fired)
    for build in (phi_graph, ppmi_graph, disparity_graph):
        assert (build(packed) != build(fired)).nnz == 0
    assert (within_layer_graph(packed, LAYERS) != within_layer_graph(fired, LAYERS)).nnz == 0


def test_phi_equals_scikit_learn_and_pearson(fired):
    found = phi_graph(fired, neighbours=29).toarray()
    for i, j in [(0, 3), (1, 2), (4, 10), (5, 29)]:
        assert found[i, j] == pytest.approx(max(0, matthews_corrcoef(fired[:, i], fired[:, j])))
    same = pearson_graph(fired.astype(float), neighbours=29).toarray()
    assert same == pytest.approx(found)


def test_pearson_equals_numpy(rng):
    values = rng.normal(size=(60, 9)) @ rng.normal(size=(9, 9))
    wanted = np.corrcoef(values, rowvar=False) - np.eye(9)
    assert pearson_graph(values, neighbours=8).toarray() == pytest.approx(np.maximum(wanted, 0))


@pytest.mark.parametrize("neighbours", [1, 3, 10])
def test_either_of_two_neighbours_makes_an_edge(fired, neighbours):
    everything = phi_graph(fired, neighbours=29).toarray()
    wanted = np.zeros_like(everything)
    for i, row in enumerate(everything):
        limit = np.sort(row)[::-1][neighbours - 1]
        for j in np.flatnonzero((row >= limit) & (row > 0)):
            wanted[i, j] = wanted[j, i] = row[j]
    assert (phi_graph(fired, neighbours=neighbours).toarray() == wanted).all()


def test_neighbours_follow_from_the_density(fired):
    assert (phi_graph(fired, density=0.2) != phi_graph(fired, neighbours=3)).nnz == 0  # ceil(0.2 * 29 / 2)
    assert phi_graph(fired, density=0.2).nnz <= 0.21 * 30 * 29


def test_neurons_that_avoid_each_other_are_no_neighbours():
    fired = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], bool)
    assert phi_graph(fired, neighbours=1).nnz == 0
    assert pearson_graph(fired.astype(float), neighbours=1).nnz == 0
    assert ppmi_graph(fired, density=1.0).nnz == 0


def test_tied_neighbours_are_all_kept():
    fired = np.repeat(np.array([[1], [0]], bool), 5, axis=1)
    assert phi_graph(fired, neighbours=1).nnz == 5 * 4
    assert ppmi_graph(fired, density=0.1).nnz == 5 * 4


def test_ppmi_by_hand():
    # 8 examples; neuron 0 fires on 4, 1 on 4, 2 on 2. Together: 0 and 1 on 3, 0 and 2 on 2, 1 and 2 on 1.
    fired = np.zeros((8, 3), bool)
    fired[[0, 1, 2, 3], 0] = fired[[1, 2, 3, 4], 1] = fired[[0, 1], 2] = True
    found = ppmi_graph(fired, density=1.0).toarray()
    assert found[0, 1] == pytest.approx(np.log2(8 * 3 / 16))
    assert found[0, 2] == pytest.approx(1)
    assert found[1, 2] == 0  # as often as by chance


def test_ppmi_keeps_the_heaviest_share(fired):
    everything, some = (ppmi_graph(fired, density).toarray() for density in (1.0, 0.1))
    pairs = np.sort(everything[np.triu_indices(30, 1)])[::-1]
    assert (some == np.where(everything >= pairs[43], everything, 0)).all()  # ceil(0.1 * 435) = 44


def disparity_by_the_book(fired) -> dict[tuple[int, int], float]:
    counts = cofiring_counts(fired).astype(float)
    np.fill_diagonal(counts, 0)
    graph, found = nx.from_numpy_array(counts), {}
    for i, j, weight in graph.edges(data="weight"):
        ends = []
        for node in (i, j):
            share = weight / graph.degree(node, weight="weight")
            ends.append((1 - share) ** (graph.degree(node) - 1) if graph.degree(node) > 1 else 1.0)
        found[i, j] = min(ends)
    return found


@pytest.mark.parametrize("alpha", [0.05, 0.2, 0.5, 1.0])
def test_disparity_equals_the_formula(fired, alpha):
    counts, graph = cofiring_counts(fired), disparity_graph(fired, alpha).toarray()
    significance = disparity_by_the_book(fired)
    wanted = np.zeros_like(graph)
    for (i, j), value in significance.items():
        if value < alpha:
            wanted[i, j] = wanted[j, i] = counts[i, j]
    assert (graph == wanted).all()


def test_disparity_keeps_the_most_significant_share(fired):
    significance = disparity_by_the_book(fired)
    limit = sorted(significance.values())[87 - 1]  # 20 % of 435 pairs
    wanted = {pair for pair, value in significance.items() if value <= limit}
    rows, columns = np.nonzero(np.triu(disparity_graph(fired, density=0.2).toarray()))
    assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == wanted


def test_a_single_partner_is_no_evidence():
    assert disparity_graph(np.ones((5, 2), bool), alpha=1.0).nnz == 0


@pytest.mark.parametrize("density", [0.05, 0.3, 1.0])
def test_layers_decide_which_pairs_may_be_joined(fired, density):
    counts = cofiring_counts(fired)
    place = np.searchsorted([3, 5, 9], LAYERS)
    for build, steps, total in ((layered_graph, 1, 8 * 10 + 10 * 12), (within_layer_graph, 0, 28 + 45 + 66)):
        found = build(fired, LAYERS, density).toarray()
        allowed = np.triu(np.abs(place[:, None] - place) == steps, k=1)
        assert allowed.sum() == total
        pairs = np.sort(counts[allowed])[::-1]
        limit = max(1, pairs[int(np.ceil(density * total - 1e-9)) - 1])
        assert (np.triu(found) == np.where(allowed & (counts >= limit), counts, 0)).all()


def test_one_layer_has_all_pairs_within_and_none_between(fired):
    one = np.zeros(30, int)
    assert layered_graph(fired, one).nnz == 0
    assert (within_layer_graph(fired, one) != activation_pattern_graph(fired)).nnz == 0


def test_bad_input_is_named(fired):
    with pytest.raises(ValueError, match="neighbours must be a whole number of at least 1, received 0"):
        phi_graph(fired, neighbours=0)
    with pytest.raises(ValueError, match="density must be a number above 0"):
        phi_graph(fired, density=0)
    with pytest.raises(ValueError, match="alpha must be a number above 0"):
        disparity_graph(fired, alpha=2)
    with pytest.raises(ValueError, match="density must be"):
        ppmi_graph(fired, density=1.5)
    with pytest.raises(ValueError, match=r"layers must have shape \(30,\), received \(2,\)"):
        layered_graph(fired, [0, 1])
    with pytest.raises(ValueError, match="activations must hold numbers"):
        pearson_graph(fired)
    with pytest.raises(ValueError, match="fired must be boolean"):
        phi_graph(np.full((2, 2), 0.5))
