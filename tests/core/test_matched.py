"""Graphs of the same number of active neurons, the parts of Q, and communities beside preferred classes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score

from nbutils.activations import activation_histogram
from nbutils.communities import detect_communities
from nbutils.entropy import (
    active_entropy,
    binned_entropy,
    block_entropy,
    firing_entropy,
    pattern_entropy,
    total_correlation,
)
from nbutils.graphs import activation_pattern_graph
from nbutils.measures import MeasureSpec, class_cells, measure_active, measure_matched
from nbutils.tracking import class_agreement

SPEC = MeasureSpec(density=0.2, seeds=2, null_draws=3)


def preferring(rng: np.random.Generator, shown: np.ndarray, neurons: int = 60) -> np.ndarray:
    """Neurons that fire more on one of four classes, and otherwise independently of each other."""
    own = np.arange(neurons) % 4
    return rng.random((len(shown), neurons)) < np.where(shown[:, None] == own, 0.5, 0.05)


def test_parts_add_up_and_all_active_neurons_are_those_that_live(rng):
    labels = rng.integers(0, 4, 300)
    fired = np.hstack([preferring(rng, labels), np.zeros((300, 25), bool)])
    found = measure_matched(fired, labels, rng=1, spec=SPEC)
    assert found["class_part"] + found["remainder"] == pytest.approx(found["modularity"] - found["null_circular"])
    active = measure_active(fired, labels, np.random.default_rng(1), SPEC)
    assert found["active"] == found["neurons"] == active.pop("active") == 60
    assert active.items() <= found.items()


def test_class_preference_is_the_first_part_and_what_classes_do_not_explain_the_second(rng):
    labels = rng.integers(0, 4, 800)
    found = measure_matched(preferring(rng, labels), labels, rng=0, spec=SPEC)
    assert found["class_part"] > 0.2
    assert abs(found["remainder"]) < 0.03
    hidden = rng.integers(0, 4, 800)  # groups of neurons follow this, which has nothing to do with the class
    found = measure_matched(preferring(rng, hidden), labels, rng=0, spec=SPEC)
    assert abs(found["class_part"]) < 0.03
    assert found["remainder"] > 0.2


def test_misread_images_make_a_remainder_within_true_classes_and_none_within_cells(rng):
    """Neurons follow what the network predicts; nearly half of the images are misread."""
    labels = rng.integers(0, 4, 1500)
    predicted = np.where(rng.random(1500) < 0.6, rng.integers(0, 4, 1500), labels)
    fired = preferring(rng, predicted)
    within_true, within_cells = (
        measure_matched(fired, groups, rng=0, spec=SPEC)["remainder"]
        for groups in (labels, class_cells(labels, predicted))
    )
    assert within_true > 0.1
    assert abs(within_cells) < 0.03


def test_cells_are_pairs():
    true, predicted = np.array([2, 2, 0, 0, 2]), np.array([1, 2, 0, 1, 1])
    assert class_cells(true, predicted).tolist() == [2, 3, 0, 1, 2]
    assert class_cells([], []).shape == (0,)
    with pytest.raises(ValueError, match=r"predicted must have shape \(5,\)"):
        class_cells(true, predicted[:4])


def test_lone_groups_are_told_and_stay_as_they_are(rng):
    fired = rng.random((10, 8)) < 0.4
    found = measure_matched(fired, [0, 0, 0, 0, 0, 0, 1, 2, 3, 3], rng=0, spec=SPEC)
    assert (found["lone_groups"], found["lone_examples"]) == (0.5, 0.2)
    alone = measure_matched(fired, np.arange(10), rng=0, spec=MeasureSpec(seeds=1, null_draws=1))
    assert alone["lone_groups"] == alone["lone_examples"] == 1
    assert alone["remainder"] == 0


def test_drawn_graphs_have_the_density_of_their_own_pairs(rng):
    labels = rng.integers(0, 4, 300)
    fired = np.hstack([preferring(rng, labels), np.zeros((300, 30), bool)])
    spec = MeasureSpec(seeds=1, null_draws=0)
    found = measure_matched(fired, labels, 5, neurons=20, spec=spec, draws=4)
    source, scores = np.random.default_rng(5), []
    for chosen in [np.sort(source.choice(60, 20, replace=False)) for _ in range(4)]:
        scores.append(detect_communities(activation_pattern_graph(fired[:, chosen], 0.05), seeds=1).modularity)
    assert found["modularity"] == pytest.approx(np.mean(scores))
    assert (found["active"], found["neurons"]) == (60, 20)
    assert np.isnan(found["class_part"])


def test_chance_depends_on_size_and_is_equal_at_matched_size(rng):
    """Firing without any structure has modularity, the more the fewer neurons there are."""
    small, large = (rng.random((1000, neurons)) < 0.2 for neurons in (60, 400))
    groups = np.zeros(1000)
    whole = [measure_matched(fired, groups, 0, spec=SPEC)["modularity"] for fired in (small, large)]
    same = [measure_matched(fired, groups, 0, 60, SPEC, draws=6)["modularity"] for fired in (small, large)]
    assert whole[0] > whole[1] + 0.05
    assert same[0] == pytest.approx(same[1], abs=0.02)


def test_more_neurons_than_fire_are_refused():
    with pytest.raises(ValueError, match="neurons must be at most the number of active neurons, 3, received 4"):
        measure_matched(np.eye(5, dtype=bool)[:, :3], np.arange(5), 0, neurons=4)


def test_agreement_with_preferred_classes_is_scikit_learns(rng):
    labels = rng.integers(0, 4, 500)
    fired, groups = preferring(rng, labels), rng.integers(-1, 5, 60)
    placed = groups >= 0
    expected = adjusted_mutual_info_score((np.arange(60) % 4)[placed], groups[placed])
    assert class_agreement(fired, labels, groups) == pytest.approx(expected)
    assert class_agreement(fired, labels, 7 - np.arange(60) % 4) == 1
    assert abs(class_agreement(fired, labels, rng.permutation(np.arange(60) % 4))) < 0.15
    assert np.isnan(class_agreement(fired, labels, np.full(60, -1)))


def test_silent_neurons_prefer_no_class(rng):
    labels = rng.integers(0, 4, 500)
    fired, groups = preferring(rng, labels), np.arange(60) % 4
    padded = np.hstack([fired, np.zeros((500, 20), bool)])
    assert class_agreement(padded, labels, np.r_[groups, np.arange(20)]) == class_agreement(fired, labels, groups)


def test_blocks_of_strangers_copies_and_all_states(rng):
    codes = ((np.arange(64)[:, None] >> np.arange(6)) & 1).astype(bool)
    assert block_entropy(codes, correction=None) == 6
    assert block_entropy(codes) == pytest.approx(6 + 63 / (2 * 64 * np.log(2)))
    assert block_entropy(np.repeat(codes[:, :1], 6, axis=1), correction=None) == 1
    assert block_entropy(codes[:, :4], correction=None) == pattern_entropy(codes[:, :4], correction=None) == 4
    fired = rng.random((5000, 40)) < 0.1
    bits = -0.1 * np.log2(0.1) - 0.9 * np.log2(0.9)
    assert block_entropy(fired) == pytest.approx(6 * bits, abs=0.05)


def test_a_block_is_single_entropies_without_what_they_share(rng):
    labels = rng.integers(0, 4, 400)
    fired = preferring(rng, labels, 6)  # one block
    single = firing_entropy(fired, "miller-madow").sum()
    assert block_entropy(fired) == pytest.approx(single - total_correlation(fired))


def test_blocks_leave_out_constants(rng):
    fired = rng.random((200, 30)) < 0.3
    padded = np.hstack([fired, np.zeros((200, 5), bool), np.ones((200, 5), bool)])
    assert block_entropy(padded, seed=3) == block_entropy(fired, seed=3)
    assert block_entropy(np.ones((10, 4), bool)) == 0
    assert block_entropy(np.eye(4, 1, dtype=bool), correction=None) == pytest.approx(2 - 0.75 * np.log2(3))
    with pytest.raises(ValueError, match="block must be a whole number from 2 to 16"):
        block_entropy(fired, block=1)


def test_entropy_per_active_neuron_ignores_the_dead(rng):
    values = np.maximum(rng.standard_normal((300, 12)), 0)
    padded = np.hstack([values, np.zeros((300, 20))])
    alone, among = (active_entropy(activation_histogram(one)) for one in (values, padded))
    assert alone == among == pytest.approx(binned_entropy(values).mean())
    assert active_entropy(np.zeros((10, 3))) == active_entropy(np.zeros((0, 3))) == 0
    assert active_entropy(np.ones((8, 2))) == 3
    with pytest.raises(ValueError, match=r"counts must have shape \(bins, neurons\), received \(3,\)"):
        active_entropy([1, 2, 3])
