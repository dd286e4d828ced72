"""Collapse, clusters inside classes and probes: truths by hand, and slower ways to the same numbers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import silhouette_samples

from nbutils.activations import participation_ratio
from nbutils.representations import (
    layer_spread,
    linear_probe,
    neural_collapse,
    neuron_spread,
    subclass_selectivity,
    subclass_silhouette,
)


@pytest.fixture
def classes(rng) -> tuple[np.ndarray, np.ndarray]:
    """Four classes of 25 examples and six neurons, classes somewhat apart."""
    labels = rng.permutation(np.repeat(np.arange(4), 25))
    return rng.standard_normal((100, 6)) + 2 * rng.standard_normal((4, 6))[labels], labels


@pytest.fixture
def hierarchy(rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pre-activations of eight neurons on two classes of three subclasses of ten examples."""
    subclasses = rng.permutation(np.repeat(np.arange(6), 10))
    return rng.standard_normal((60, 8)) + rng.standard_normal((6, 8))[subclasses], subclasses, subclasses // 3


def test_collapse_is_the_trace_over_the_classes(classes):
    values, labels = classes
    means = np.stack([values[labels == k].mean(axis=0) for k in range(4)])
    within = np.mean([np.outer(x - means[k], x - means[k]) for x, k in zip(values, labels, strict=True)], axis=0)
    between = np.mean([np.outer(m, m) for m in means - means.mean(axis=0)], axis=0)
    expected = np.trace(within @ np.linalg.pinv(between, rcond=1e-10)) / 4
    assert neural_collapse(values, labels) == pytest.approx(expected)


def test_collapse_does_not_depend_on_scale_place_and_axes(classes, rng):
    values, labels = classes
    turned = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    assert neural_collapse(1e-3 * values @ turned + 50, labels) == pytest.approx(neural_collapse(values, labels))
    assert neural_collapse(values * 1e-200, labels) == pytest.approx(neural_collapse(values, labels))


def test_collapse_by_hand():
    """Means at -d and d, examples s to either side: S_W = s^2, S_B = d^2."""
    for apart, spread in ((1.0, 1.0), (3.0, 0.5)):
        values = np.array([[-apart - spread], [-apart + spread], [apart - spread], [apart + spread]])
        assert neural_collapse(values, [0, 0, 1, 1]) == pytest.approx(spread**2 / apart**2 / 2)
    assert neural_collapse(np.eye(3)[[0, 0, 1, 1, 2, 2]], [0, 0, 1, 1, 2, 2]) == 0
    assert np.isnan(neural_collapse(np.full((4, 3), 0.1), [0, 0, 1, 1]))


def test_classes_weigh_the_same(classes):
    """Every example of a class twice or thrice changes nothing."""
    values, labels = classes
    often = 1 + labels
    assert neural_collapse(np.repeat(values, often, axis=0), np.repeat(labels, often)) == pytest.approx(
        neural_collapse(values, labels)
    )


def test_participation_ratio_by_hand(rng):
    values = rng.standard_normal((40, 7)) * np.arange(1, 8)
    eigen = np.linalg.eigvalsh(np.cov(values.T))
    assert participation_ratio(values) == pytest.approx(eigen.sum() ** 2 / (eigen**2).sum())
    assert participation_ratio(values.T) == pytest.approx(
        (spread := np.linalg.svd(values.T - values.T.mean(axis=0))[1] ** 2).sum() ** 2 / (spread**2).sum()
    )
    assert participation_ratio(values + 1000) == pytest.approx(participation_ratio(values))
    assert participation_ratio(np.outer(np.arange(5), [1.0, -2.0, 3.0])) == pytest.approx(1)
    for directions in (1, 3, 6):
        cross = np.vstack([np.eye(6)[:directions], -np.eye(6)[:directions]])
        assert participation_ratio(cross) == pytest.approx(directions)
    assert participation_ratio(np.full((5, 3), 0.1)) == 0


def test_a_probe_reads_what_is_linear_and_guesses_what_is_not(rng):
    labels = np.repeat([0, 1, 2], 100)
    assert linear_probe(np.eye(3)[labels] + 0.01 * rng.standard_normal((300, 3)), labels) == 1
    assert linear_probe(rng.standard_normal((3000, 5)), np.repeat(labels, 10)) == pytest.approx(1 / 3, abs=0.05)
    corners = rng.integers(0, 2, (400, 2))
    exclusive = corners[:, 0] ^ corners[:, 1]  # which no line separates
    assert linear_probe(corners + 0.01 * rng.standard_normal((400, 2)), exclusive) < 0.65


def test_a_probe_is_as_good_as_another_linear_method(classes):
    values, labels = classes
    order = np.argsort(labels, kind="stable").reshape(4, 5, 5).transpose(1, 0, 2).reshape(5, -1)
    right = []
    for left_out in order:
        rest = np.setdiff1d(np.arange(100), left_out)
        right.append(
            LinearDiscriminantAnalysis().fit(values[rest], labels[rest]).score(values[left_out], labels[left_out])
        )
    assert linear_probe(values, labels) == pytest.approx(np.mean(right), abs=0.05)


def test_a_probe_depends_on_its_seed_alone_and_not_on_units(classes):
    values, labels = classes
    assert linear_probe(values, labels, seed=3) == linear_probe(values, labels, seed=3)
    assert linear_probe(values * np.logspace(-3, 3, 6) + 7, labels) == pytest.approx(
        linear_probe(values, labels), abs=0.02
    )


def test_spread_of_neurons_is_the_mean_of_the_largest_ratios(hierarchy):
    values, _, labels = hierarchy
    for top in (1, 3, 100):
        found = []
        for k in (0, 1):
            ratios = sorted((values[labels == k, n].std() / values[:, n].std() for n in range(8)), reverse=True)
            found.append(np.mean(ratios[:top]))
        assert neuron_spread(values, labels, top) == pytest.approx(np.mean(found))


def test_neurons_that_tell_only_classes_apart_have_no_spread():
    values = np.array([[1.0, -1.0], [1.0, -1.0], [5.0, -2.0], [5.0, -2.0]])
    assert neuron_spread(values, [0, 0, 1, 1]) == 0
    inside = np.array([[0.0], [4.0], [2.0], [2.0]])  # sd 2 in the first class, 0 in the second, sqrt 2 in all
    assert neuron_spread(inside, [0, 0, 1, 1]) == pytest.approx(np.sqrt(2) / 2)


def test_spread_of_layers_is_the_mean_of_the_largest_ratios(hierarchy):
    values, _, labels = hierarchy
    layers, ratios = np.repeat([1, 2], 4), []
    for layer in (1, 2):
        own = values[:, layers == layer]
        own = (own - own.mean(axis=0)) / own.std(axis=0)
        own = np.maximum(own - np.percentile(own, 75, axis=0), 0)
        assert ((own > 0).mean(axis=0) == 0.25).all()

        def distances(rows):
            pairs = combinations(rows, 2)
            lengths = [(a @ b, np.linalg.norm(a) * np.linalg.norm(b)) for a, b in pairs]
            return np.std([1 - dot / both if both > 0 else 1.0 for dot, both in lengths])

        ratios.append([distances(own[labels == k]) / distances(own) for k in (0, 1)])
    assert layer_spread(values, labels, layers) == pytest.approx(np.max(ratios, axis=0).mean())
    assert layer_spread(values, labels, layers, top=2) == pytest.approx(np.mean(ratios))


def test_spread_does_not_depend_on_units(hierarchy):
    values, _, labels = hierarchy
    other, layers = values * np.array([1, 4, 0.25, 1, 1, 8, 1, 2]) + 100, np.repeat([1, 2], 4)
    assert neuron_spread(other, labels) == pytest.approx(neuron_spread(values, labels))
    assert layer_spread(other, labels, layers) == pytest.approx(layer_spread(values, labels, layers))


def test_selectivity_is_the_median_of_the_largest(hierarchy):
    values, subclasses, labels = hierarchy
    for top in (1, 3):
        found = []
        for k in range(6):
            own, rest = values[subclasses == k], values[(subclasses != k) & (labels == k // 3)]
            scores = (own.mean(axis=0) - rest.mean(axis=0)) / (own.std(axis=0) + rest.std(axis=0))
            found.append(np.mean(sorted(scores, reverse=True)[:top]))
        assert subclass_selectivity(values, subclasses, labels, top) == pytest.approx(np.median(found))


def test_selectivity_by_hand():
    """Subclasses at 0 and 4, each 1 to either side: (4 - 0) / (1 + 1) = 2 for one neuron, -2 for its mirror."""
    line = np.array([-1.0, 1.0, 3.0, 5.0])
    values = np.column_stack([line, 4 - line])
    assert subclass_selectivity(values, [0, 0, 1, 1], np.zeros(4), top=1) == pytest.approx(2)
    assert subclass_selectivity(values, [0, 0, 1, 1], np.zeros(4), top=2) == pytest.approx(0)


def test_silhouette_is_the_median_of_the_best_layers(hierarchy):
    values, subclasses, labels = hierarchy
    active, layers, scores = np.maximum(values, 0) + 0.01, np.repeat([1, 2], 4), np.zeros((6, 2))
    for column, layer in enumerate((1, 2)):
        for whole in (0, 1):
            rows = labels == whole
            single = silhouette_samples(active[np.ix_(rows, layers == layer)], subclasses[rows], metric="cosine")
            for k in np.unique(subclasses[rows]):
                scores[k, column] = single[subclasses[rows] == k].mean()
    assert subclass_silhouette(active, subclasses, labels, layers) == pytest.approx(np.median(scores.max(axis=1)))
    assert subclass_silhouette(active, subclasses, labels, layers, top=2) == pytest.approx(
        np.median(scores.mean(axis=1))
    )


def test_cosine_distances_are_those_of_scipy(rng):
    from nbutils.representations import _cosine_distances

    values = rng.standard_normal((12, 5))
    assert _cosine_distances(values)[np.triu_indices(12, 1)] == pytest.approx(pdist(values, "cosine"))
    silent = np.vstack([values, np.zeros((2, 5))])
    assert (_cosine_distances(silent)[-1, :-1] == 1).all()


def test_planted_subclasses_are_found_and_chance_is_not(rng):
    subclasses = np.repeat(np.arange(4), 30)
    labels = subclasses // 2
    noise = rng.standard_normal((120, 40))
    planted = noise + 6 * np.eye(4, 40)[subclasses]
    assert subclass_selectivity(planted, subclasses, labels, top=1) > 2
    assert subclass_selectivity(noise, subclasses, labels, top=1) < 0.6
    layers = np.repeat([1, 2], [4, 36])
    assert subclass_silhouette(np.maximum(planted, 0), subclasses, labels, layers) > 0.5
    assert abs(subclass_silhouette(np.maximum(noise, 0), subclasses, labels, layers)) < 0.1
    assert neuron_spread(planted, labels, top=2) > neuron_spread(noise, labels, top=2)
    assert layer_spread(noise, labels, layers) == pytest.approx(1, abs=0.1)


def test_dead_neurons_count_nothing(hierarchy):
    values, subclasses, labels = hierarchy
    dead = np.hstack([values, values[:, :4] - 100])
    assert neuron_spread(dead, labels, 5) == pytest.approx(neuron_spread(values, labels, 5))
    selective = subclass_selectivity(dead, subclasses, labels, top=1)
    assert selective == pytest.approx(subclass_selectivity(values, subclasses, labels, top=1))
    layers = np.repeat([1, 2, 3], 4)
    assert layer_spread(dead, labels, layers) == pytest.approx(layer_spread(values, labels, layers[:8]))
    assert neuron_spread(values - 100, labels) == layer_spread(values - 100, labels, layers[:8]) == 0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda x, y: neural_collapse(x, np.zeros(100)), "labels must hold at least two classes, received 1"),
        (lambda x, y: linear_probe(x, y, folds=26), "folds must be at most the examples of the smallest class, 25"),
        (lambda x, y: linear_probe(x[:, :0], y), "activations must have at least one neuron"),
        (
            lambda x, y: layer_spread(x, np.arange(100), np.ones(6)),
            "labels must hold at least 2 examples of each class",
        ),
        (lambda x, y: neuron_spread(x, y, top=0), "top must be a whole number of at least 1, received 0"),
        (lambda x, y: subclass_selectivity(x, y, np.arange(100) % 2), "subclasses must each lie in one class"),
        (lambda x, y: subclass_selectivity(x, np.arange(100), y), "subclasses must hold at least two examples each"),
        (lambda x, y: subclass_silhouette(x, y, y, np.ones(6)), "subclasses must be at least two in each class"),
        (lambda x, y: subclass_silhouette(x, y, np.zeros(100), np.ones(5)), r"layers must have shape \(6,\)"),
    ],
)
def test_what_cannot_be_answered_is_refused(classes, call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(*classes)
