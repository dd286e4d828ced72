"""Graded truth and agreement with it, on neurons that one can compute by hand."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score

from nbutils.truth.agreement import explained_share, graded_agreement, side_agreement
from nbutils.truth.swaps import dependence, sides, swap_effect


def test_a_neuron_that_reads_one_half_depends_on_it_alone(rng):
    """Linear neurons: x1, x2, x1 + x2, 2 x1 + x2, with factors of equal variance."""
    weights = np.array([[1, 0], [0, 1], [1, 1], [2, 1]], float)
    pictures, others = rng.normal(size=(4000, 2)), rng.normal(size=(4, 4000, 2))
    effects = []
    for which in (0, 1):
        swapped = np.repeat(pictures[None], 4, axis=0)
        swapped[..., which] = others[..., which]
        effects.append(swap_effect(pictures @ weights.T, swapped @ weights.T))
    assert effects[0][1] == effects[1][0] == 0
    assert effects[0][0] == pytest.approx(2, abs=0.15), "twice the variance"
    shares = dependence(*effects)
    assert shares[:2].tolist() == [1, 0]
    assert shares[2:].tolist() == pytest.approx([0.5, 0.8], abs=0.02)
    assert sides(shares[:3]).tolist() == [0, 1, -1]


def test_bad_effects_are_named():
    with pytest.raises(ValueError, match="swapped must have shape"):
        swap_effect([[1.0]], [[1.0]])
    with pytest.raises(ValueError, match="one number per neuron"):
        dependence([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="second must be finite"):
        dependence([1.0], [-1.0])
    with pytest.raises(ValueError, match=r"least must be above 0\.5"):
        sides([0.4], least=0.4)


def test_share_of_variance_is_that_of_an_analysis_of_variance(rng):
    values, groups = rng.normal(size=60), rng.integers(4, size=60)
    means = np.array([values[groups == g].mean() for g in range(4)])
    assert explained_share(values, groups) == pytest.approx(means[groups].var() / values.var())
    assert explained_share(np.ones(5), [0, 0, 1, 1, 2]) == 0


def test_chance_has_the_closed_form_of_all_permutations(rng):
    """Against 4,000 permutations of neurons within their layers."""
    layers, groups = np.repeat([1, 2], [30, 20]), rng.integers(5, size=50)
    shares = rng.random(50) + 0.2 * groups + layers
    centred = shares.copy()
    for layer in (1, 2):
        centred[layers == layer] -= centred[layers == layer].mean()
    drawn = []
    for _ in range(4000):
        order = np.r_[rng.permutation(30), 30 + rng.permutation(20)]
        drawn.append(explained_share(centred[order], groups))
    chance, found = np.mean(drawn), explained_share(centred, groups)
    assert graded_agreement(shares, groups, layers) == pytest.approx((found - chance) / (1 - chance), abs=0.01)


def test_layers_explain_nothing_and_finer_groups_everything():
    layers, shares = np.repeat([1, 2], 20), np.tile(np.repeat([0.1, 0.9], 10), 2)
    assert graded_agreement(shares + layers, layers, layers) == 0
    finer = np.tile(np.arange(20) // 5, 2)
    assert graded_agreement(shares, finer, layers) == pytest.approx(1)
    assert side_agreement(sides(shares), finer) < 0.7, "which the hard agreement makes pay"


def test_random_groups_agree_by_chance_alone(rng):
    found = [graded_agreement(rng.random(80), rng.integers(6, size=80), np.ones(80, int)) for _ in range(300)]
    assert np.mean(found) == pytest.approx(0, abs=0.01)


def test_too_few_neurons_have_no_agreement():
    assert np.isnan(graded_agreement(np.r_[0.1, np.full(20, np.nan)], np.zeros(21, int), np.ones(21, int)))
    assert np.isnan(graded_agreement(np.linspace(0, 1, 12), np.r_[0:3, [-1] * 9], np.ones(12, int)))
    assert np.isnan(side_agreement(np.zeros(30, int), np.arange(30)))


def test_hard_agreement_leaves_two_sided_neurons_out(rng):
    truth, found = rng.integers(2, size=60), rng.integers(3, size=60)
    extra = side_agreement(np.r_[truth, [-1] * 9], np.r_[found, np.arange(9)])
    assert extra == pytest.approx(adjusted_mutual_info_score(truth, found))
