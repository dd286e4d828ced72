from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from nbutils.series import difference_correlation, partial_correlation
from nbutils.stats import between_conditions, correlation, pairwise_correlation, session_permutation


@pytest.mark.parametrize("method", ["spearman", "pearson"])
def test_correlation_equals_scipy(rng, method):
    other = {"spearman": scipy_stats.spearmanr, "pearson": scipy_stats.pearsonr}[method]
    for _ in range(10):
        x, y = rng.integers(0, 6, 15), rng.normal(size=15)
        assert correlation(x, y, method) == pytest.approx(other(x, y).statistic)


def test_constant_series_carry_no_information():
    assert correlation([1, 1, 1], [1, 2, 3]) == 0.0
    assert correlation([0.1] * 3, [1, 2, 3], "pearson") == 0.0


@pytest.mark.parametrize("length", [0, 1])
def test_nothing_can_be_said_of_fewer_than_two_values(length):
    assert np.isnan(correlation(np.ones(length), np.ones(length)))
    assert np.isnan(pairwise_correlation(np.ones((2, length)), np.ones((3, length)))).all()
    assert np.isnan(partial_correlation(*np.ones((3, length))))
    assert np.isnan(difference_correlation(np.ones(length + 1), np.ones(length + 1)))


def test_bad_series_are_refused():
    with pytest.raises(ValueError, match=r"received shapes \(2,\) and \(3,\)"):
        correlation([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="finite"):
        correlation([1, np.nan], [1, 2])
    with pytest.raises(ValueError, match="method must be"):
        correlation([1, 2], [1, 2], "kendall")


def test_session_permutation_equals_brute_force(rng):
    m, a = rng.normal(size=(4, 9)), rng.normal(size=(4, 9))
    found = session_permutation(m, a, rng)
    brute = [
        np.mean([scipy_stats.spearmanr(m[i], a[o[i]]).statistic for i in range(4)]) for o in permutations(range(4))
    ]
    assert found.statistic == pytest.approx(brute[0])
    assert found.p_value == pytest.approx(np.mean(np.array(brute) >= brute[0] - 1e-12))
    assert found.expected == pytest.approx(np.mean(brute))


def drifting(rng, shared: float) -> tuple[np.ndarray, np.ndarray]:
    drift = np.cumsum(rng.normal(0.3, 0.3, size=15))
    own = rng.normal(size=(8, 15))
    return drift + own, drift + shared * own + rng.normal(size=(8, 15))


def test_shared_drift_alone_is_not_significant(rng):
    found = [session_permutation(*drifting(rng, 0.0), rng, permutations=199) for _ in range(150)]
    assert np.mean([f.statistic for f in found]) > 0.4  # the naive correlation is fooled
    assert np.mean([f.p_value <= 0.05 for f in found]) < 0.1


def test_shared_wiggles_are_found(rng):
    found = [session_permutation(*drifting(rng, 1.0), rng, permutations=199).p_value for _ in range(30)]
    assert np.mean(np.array(found) <= 0.05) > 0.9


def test_session_permutation_knows_directions(rng):
    m, a = drifting(rng, 1.0)
    assert session_permutation(m, -a, rng, alternative="less").p_value < 0.05 < session_permutation(m, -a, rng).p_value
    with pytest.raises(ValueError, match="must both be"):
        session_permutation(m[:1], a[:1], rng)


def test_between_conditions(rng):
    level = np.repeat(np.arange(6), 4)
    measure, accuracy = level + rng.normal(0, 0.3, 24), level + rng.normal(0, 0.3, 24)
    test, (low, high) = between_conditions(measure, accuracy, level, rng)
    assert test.p_value == pytest.approx(1 / 720)
    rho = scipy_stats.spearmanr(measure, accuracy).statistic
    assert 0.5 < low < rho <= high + 0.05
    assert between_conditions(-measure, accuracy, level, rng)[0].p_value == 1.0


def test_many_runs_of_one_condition_are_no_evidence(rng):
    level = np.repeat([0, 1, 2], 50)
    test, _ = between_conditions(level, level, level, rng)
    assert test.p_value == pytest.approx(1 / 6)  # three conditions have six orders, however many runs
    with pytest.raises(ValueError, match="condition must take at least 3 values, received 2"):
        between_conditions(level[:100], level[:100], level[:100], rng)


def test_conditions_of_unequal_size_give_an_interval(rng):
    level = np.repeat([0, 1, 2, 3], [1, 5, 2, 7])
    _, (low, high) = between_conditions(level + 0.0, level + 0.0, level, rng, draws=200)
    assert low <= high <= 1


def test_partial_correlation_by_formula(rng):
    z = rng.normal(size=200)
    x, y = z + rng.normal(size=200), z + rng.normal(size=200)
    assert correlation(x, y) > 0.3
    assert abs(partial_correlation(x, y, z)) < 0.2
    assert np.isnan(partial_correlation(z, y, z))


@pytest.mark.parametrize("method", ["spearman", "pearson"])
def test_pairwise_correlations_are_those_of_each_pair(method, rng):
    x, y = rng.integers(0, 4, (3, 7)), rng.normal(size=(5, 7))
    x[1] = 2  # constant
    found = pairwise_correlation(x, y, method)
    assert found.shape == (3, 5)
    np.testing.assert_allclose(found, [[correlation(a, b, method) for b in y] for a in x], atol=1e-15)
    with pytest.raises(ValueError, match=r"received shapes \(3, 7\) and \(5, 6\)"):
        pairwise_correlation(x, y[:, 1:])
    with pytest.raises(ValueError, match="must be finite"):
        pairwise_correlation(x, np.full((1, 7), np.nan))
    with pytest.raises(ValueError, match="method must be 'spearman' or 'pearson', received 'kendall'"):
        pairwise_correlation(x, y, "kendall")


def test_an_interval_holds_its_estimate(rng):
    """Resamples of few levels see less of what lies between them: without care, a strong effect lies outside."""
    noise = np.repeat(np.arange(8) / 8, 5)
    measure, accuracy = (1 - noise + rng.normal(0, 0.02, noise.size) for _ in range(2))
    rho = correlation(measure, accuracy)
    _, (low, high) = between_conditions(measure, accuracy, noise, rng, draws=999)
    assert rho > 0.95
    assert 0 < low < rho <= high
    _, (low, high) = between_conditions(-measure, accuracy, noise, rng, draws=999)
    assert low <= -rho < high < 0


def test_correlations_stay_in_their_range_and_do_not_know_the_order(rng):
    for n in (3, 4, 7):
        x = rng.normal(size=(40, n)) * 10.0 ** rng.integers(-8, 8, size=(40, 1))
        assert all(abs(correlation(row, sign * row, "pearson")) <= 1 for row in x for sign in (1, -1))
        assert all(abs(correlation(row, sign * row)) <= 1 for row in x for sign in (1, -1))
        assert np.abs(pairwise_correlation(x, x, "pearson")).max() <= 1
    for _ in range(50):
        x, y, order = 1e15 + rng.normal(size=34), rng.normal(size=34), rng.permutation(34)
        assert correlation(x[order], y[order], "pearson") == correlation(x, y, "pearson")
