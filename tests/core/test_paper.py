from __future__ import annotations

from itertools import combinations
from math import ceil

import numpy as np
import pytest

from nbutils.cofiring import cofiring_counts
from nbutils.entropy import binned_entropy
from nbutils.graphs import to_networkx
from nbutils.paper import paper_graph, released_entropy, released_graph

OFF = {"last_class_edges": False, "frequency_threshold": False, "index_slips": False}


@pytest.fixture
def network(rng):
    """Activations of 2 layers whose neurons stand mixed, on 90 examples of 3 classes of unequal size."""
    labels = rng.permutation(np.repeat([2, 5, 7], [20, 30, 40]))
    return np.maximum(rng.normal(size=(90, 24)), 0), labels, rng.permutation(np.repeat([0, 1], [10, 14]))


def slow_graph(values, labels, layers, keep, *, last_class_edges, frequency_threshold, index_slips):
    """The definition, pair by pair and example by example."""
    weights = np.zeros((values.shape[1],) * 2)
    for name in sorted(set(labels.tolist())):
        shown = values[labels == (max(labels) if last_class_edges else name)]
        rate = [np.mean([a > 0 for a in values[labels == name, i]]) for i in range(values.shape[1])]
        for layer in set(layers.tolist()):
            ranked = sorted(np.flatnonzero(layers == layer), key=lambda i: (-rate[i], i))
            size = ceil(round(keep * len(ranked), 6)) - (2 if index_slips else 0)
            for i, j in combinations(ranked[: max(0, size)], 2):
                low_i, low_j = (rate[i], rate[j]) if frequency_threshold else (0, 0)
                share = np.mean([row[i] > low_i and row[j] > low_j for row in shown])
                weights[i, j] += share
                weights[j, i] += share
    return weights


@pytest.mark.parametrize("keep", [0.1, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("last_class_edges", [False, True])
@pytest.mark.parametrize("frequency_threshold", [False, True])
@pytest.mark.parametrize("index_slips", [False, True])
def test_every_switch_does_what_it_says(network, keep, last_class_edges, frequency_threshold, index_slips):
    switches = {
        "last_class_edges": last_class_edges,
        "frequency_threshold": frequency_threshold,
        "index_slips": index_slips,
    }
    found = released_graph(*network, keep, **switches).toarray()
    assert found == pytest.approx(slow_graph(*network, keep, **switches))
    assert (found == found.T).all()


@pytest.mark.parametrize("keep", [0.2, 50 / 512, 1.0])
def test_without_details_it_is_the_papers_graph(network, keep):
    values, labels, layers = network
    plain = paper_graph(values > 0, labels, layers, keep)
    bare = released_graph(values, labels, layers, keep, **OFF)
    assert (plain != bare).nnz == 0
    assert (released_graph(values, labels, layers, 0.5) != paper_graph(values > 0, labels, layers, 0.5)).nnz > 0


def test_everything_kept_of_one_class_and_layer_is_the_share_of_cofiring(rng):
    fired = rng.random((64, 9)) < 0.4
    found = paper_graph(fired, np.zeros(64, int), np.ones(9, int), keep=1.0).toarray()
    wanted = cofiring_counts(fired) / 64
    np.fill_diagonal(wanted, 0)
    assert (found == wanted).all()


def test_layers_stay_apart_and_only_kept_neurons_have_edges(rng):
    fired, labels = rng.random((300, 40)) < np.linspace(0.3, 0.9, 40), rng.integers(0, 3, 300)
    layers = np.repeat([1, 2], 20)
    graph = to_networkx(paper_graph(fired, labels, layers, keep=0.2))
    assert all(layers[i] == layers[j] for i, j in graph.edges)
    for layer in (1, 2):
        busy = {i for i, degree in graph.degree if degree and layers[i] == layer}
        kept = set()
        for name in range(3):
            rate = np.where(layers == layer, fired[labels == name].mean(axis=0), -1)
            kept |= set(np.argsort(-rate, kind="stable")[:4].tolist())
        assert busy == kept


def test_equal_frequencies_keep_the_lower_index():
    graph = paper_graph(np.ones((4, 6), bool), [0, 0, 1, 1], np.zeros(6, int), keep=0.5).toarray()
    wanted = np.zeros((6, 6))
    wanted[:3, :3] = 2 * (1 - np.eye(3))  # always together, in both classes
    assert (graph == wanted).all()


def test_fifty_of_five_hundred_and_twelve():
    graph = paper_graph(np.ones((2, 512), bool), [0, 0], np.zeros(512, int))
    assert graph.nnz == 50 * 49
    slips = {**OFF, "index_slips": True}
    assert released_graph(np.ones((2, 512)), [0, 0], np.zeros(512, int), **slips).nnz == 48 * 47


def test_nothing_to_join():
    labels, layers = [0, 0, 1], [0, 0, 0, 1]
    assert paper_graph(np.zeros((3, 4), bool), labels, layers, 1.0).nnz == 0
    assert paper_graph(np.ones((3, 0), bool), labels, []).shape == (0, 0)
    assert paper_graph(np.ones((3, 4), bool), labels, layers, 0.1).nnz == 0  # one neuron a layer
    assert released_graph(np.ones((3, 4)), labels, layers, 1.0).nnz == 0  # S - 2 = 1


def test_bad_input_is_named():
    fired = np.ones((3, 4), bool)
    with pytest.raises(ValueError, match=r"layers must have shape \(4,\), received \(3,\)"):
        paper_graph(fired, [0, 1, 2], [0, 0, 0])
    with pytest.raises(ValueError, match=r"labels must have shape \(3,\)"):
        paper_graph(fired, [0, 1], [0, 0, 0, 0])
    with pytest.raises(ValueError, match="keep must be a number above 0"):
        paper_graph(fired, [0, 1, 2], [0, 0, 0, 0], keep=0)
    with pytest.raises(ValueError, match="fired must be boolean"):
        paper_graph(np.full((3, 4), 0.5), [0, 1, 2], [0, 0, 0, 0])
    with pytest.raises(ValueError, match="activations must hold numbers"):
        released_graph(fired, [0, 1, 2], [0, 0, 0, 0])


def test_lenient_bins_are_those_of_the_other_module(rng):
    values = np.maximum(rng.normal(size=(200, 12)), 0).astype(np.float32)
    assert (released_entropy(values, 7, strict_bins=False) == binned_entropy(values, 7)).all()


def test_strict_bins_leave_the_maximum_out(rng):
    values = np.maximum(rng.normal(size=(200, 12)), 0)
    found = released_entropy(values, 10)
    for neuron, column in enumerate(values.T):
        counts, _ = np.histogram(column[(column > 0) & (column < column.max())], bins=10, range=(0, column.max()))
        shares = counts[counts > 0] / counts.sum()
        assert found[neuron] == pytest.approx(-(shares * np.log2(shares)).sum())
    assert (found != binned_entropy(values)).any()


def test_strict_bins_of_dead_constant_and_negative_neurons():
    values = np.column_stack([np.zeros(5), np.full(5, 2.0), -np.arange(1.0, 6.0), [1.0, 2.0, 3.0, 4.0, 4.0]])
    assert released_entropy(values, 2) == pytest.approx([0, 0, 0, -(2 / 3) * np.log2(2 / 3) - (1 / 3) * np.log2(1 / 3)])
