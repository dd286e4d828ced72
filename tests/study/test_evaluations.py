from __future__ import annotations

import numpy as np
import pytest

from nbutils.activations import activation_histogram, firing
from nbutils.communities import detect_communities
from nbutils.entropy import binned_entropy, pattern_entropy
from nbutils.graphs import activation_pattern_graph
from nbutils.measures import measure_communities, measure_entropies
from nbutils.nulls import within_class_null
from nbutils.paper import paper_graph, released_entropy, released_graph
from nbutils.study.specifications import PRIMARY_H2, PRIMARY_H3, evaluate, evaluate_all, specifications

ALL = specifications()


@pytest.fixture(scope="module")
def network():
    """120 images of 3 classes seen by 2 layers of 30 neurons that prefer a class each."""
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.repeat([0, 1, 2], 40))
    liked = np.arange(60) % 3
    values = rng.normal(size=(120, 60)) + 1.2 * (labels[:, None] == liked)
    return np.maximum(values, 0).astype(np.float32), labels, np.repeat([1, 2], 30)


@pytest.fixture(scope="module")
def found(network):
    return evaluate_all(*network)


def one(**wanted):
    """The single specification that has all this."""
    (match,) = (s for s in ALL if all(getattr(s, k) == v for k, v in wanted.items()))
    return match


def test_every_specification_has_a_finite_value(found):
    assert list(found) == [s.label for s in ALL]
    assert np.isfinite(list(found.values())).all()
    for s in ALL:
        if s.hypothesis == "H2" and s.null == "nothing" and s.resolution == 1:
            assert -0.5 <= found[s.label] < 1
        elif s.measure in ("pattern entropy", "class-conditional entropy", "firing entropy"):
            assert found[s.label] >= 0


def test_the_primary_values_are_those_of_the_measures(network, found):
    values, labels, layers = network
    fired = firing(values)
    assert found[PRIMARY_H2.label] == measure_communities(fired)["modularity"]
    entropies = measure_entropies(fired, labels, layers == 2)
    assert found[PRIMARY_H3.label] == entropies["pattern_entropy"]
    assert (
        found[one(measure="total correlation", neurons="all", firing="top-decile", correction="Miller-Madow").label]
        == (entropies["total_correlation"])
    )
    mutual = one(measure="mutual information", neurons="all", firing="top-decile", correction="Miller-Madow")
    assert found[mutual.label] == entropies["mutual_information"]


def test_one_alone_is_the_same_as_one_of_all(network, found):
    for s in ALL[::7]:
        assert evaluate(s, *network) == found[s.label]


def test_the_papers_and_the_released_graph(network, found):
    values, labels, layers = network
    plain = one(graph="paper's", share=50 / 512, resolution=1, algorithm="Leiden", firing="positive", null="nothing")
    wanted = detect_communities(paper_graph(values > 0, labels, layers)).modularity
    assert found[plain.label] == wanted
    details = ("last_class_edges", "frequency_threshold", "index_slips")
    wanted = detect_communities(released_graph(values, labels, layers)).modularity
    assert found[one(graph="released code's", details=details).label] == wanted


def test_a_layer_is_a_layer(network, found):
    values, _, layers = network
    single = one(neurons="first layer", hypothesis="H2", firing="positive")
    graph = activation_pattern_graph(values[:, layers == 1] > 0)
    assert found[single.label] == detect_communities(graph).modularity
    entropy = one(measure="pattern entropy", neurons="first layer", firing="positive")
    assert found[entropy.label] == pattern_entropy(values[:, layers == 1] > 0)


def test_class_preference_is_what_the_shuffle_takes_off(network, found):
    values, labels, _ = network
    s = one(graph="co-firing count", null="within-class shuffle")
    rng = np.random.default_rng(0)
    shuffled = [activation_pattern_graph(within_class_null(firing(values), labels, rng)) for _ in range(3)]
    null = np.mean([detect_communities(graph, seeds=1).modularity for graph in shuffled])
    assert found[s.label] == pytest.approx(found[PRIMARY_H2.label] - null)
    assert found[one(graph="co-firing count", null="circular shift").label] > found[s.label]


def test_entropies_of_sizes(network, found):
    values = network[0].copy()
    total = one(measure="binned entropy, sum", bins=10).label
    mean = one(measure="binned entropy, mean of live neurons").label
    assert found[total] == pytest.approx(binned_entropy(values).sum())
    assert found[one(measure="binned entropy, strict bins").label] == pytest.approx(released_entropy(values).sum())
    values[:, :20] = 0  # dead: predictable to the sum, left out of the mean
    dead = evaluate_all(values, *network[1:], chosen=[s for s in ALL if s.bins])
    assert dead[total] == pytest.approx(binned_entropy(network[0])[20:].sum())
    assert dead[mean] == pytest.approx(dead[total] / 40)


def test_a_histogram_of_all_images_replaces_the_probes_own(network):
    values, labels, layers = network
    other = activation_histogram(values[:50])
    chosen = [s for s in ALL if s.bins]
    with_it, without = (evaluate_all(values, labels, layers, h, chosen=chosen) for h in (other, None))
    changed = {label for label in without if with_it[label] != without[label]}
    assert changed == {s.label for s in chosen if s.bins == 10 and not s.measure.endswith("strict bins")}
    assert with_it[one(measure="binned entropy, sum", bins=10).label] == pytest.approx(
        binned_entropy(values[:50]).sum()
    )


def test_a_dead_network_has_a_value_everywhere():
    found = evaluate_all(np.zeros((20, 8)), np.repeat([0, 1], 10), np.repeat([1, 2], 4))
    assert set(found.values()) == {0.0}


def test_bad_input_is_named(network):
    values, labels, layers = network
    with pytest.raises(ValueError, match=r"histogram must have shape \(10, 60\), received \(5, 60\)"):
        evaluate_all(values, labels, layers, np.zeros((5, 60)))
    with pytest.raises(ValueError, match=r"layers must have shape \(60,\)"):
        evaluate_all(values, labels, layers[:5])
    with pytest.raises(ValueError, match="at least one neuron"):
        evaluate_all(values[:, :0], labels, [])
