from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

import nbutils as nb
from nbutils.series import (
    autocorrelation,
    correlation_test,
    detrended_correlation,
    difference_correlation,
    effective_sample_size,
    partial_correlation,
    partial_from,
    saturating_curve,
)
from nbutils.stats import correlation


def autoregressive(rng, phi: float, length: int, count: int = 1) -> np.ndarray:
    noise = rng.normal(size=(count, length + 100))
    for t in range(1, length + 100):
        noise[:, t] += phi * noise[:, t - 1]
    return noise[:, 100:]


def test_saturating_curve_by_hand():
    assert saturating_curve([0.0, 4.0 * np.log(2), 4.0 * np.log(4)]) == pytest.approx([0, 0.5, 0.75])
    assert saturating_curve([2.0], constant=2.0) == pytest.approx([1 - 1 / np.e])
    with pytest.raises(ValueError, match=r"constant must be above 0, received 0"):
        saturating_curve([1.0], constant=0)


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_difference_correlation_equals_scipy_on_the_steps(rng, method):
    x, y = rng.normal(size=(2, 15))
    other = {"spearman": scipy_stats.spearmanr, "pearson": scipy_stats.pearsonr}[method]
    expected = other(x[1:] - x[:-1], y[1:] - y[:-1]).statistic
    assert difference_correlation(x, y, method) == pytest.approx(expected)


def test_shared_drift_is_not_in_the_steps(rng):
    drift = 5.0 * np.arange(200)
    x, y = drift + rng.normal(size=(2, 200))
    assert nb.correlation(x, y, "pearson") > 0.999
    assert abs(difference_correlation(x, y)) < 0.2
    assert difference_correlation(drift, y) == 0.0


def test_one_trend_is_the_partial_correlation_by_formula(rng):
    z = rng.normal(size=30)
    x, y = z + rng.normal(size=(2, 30))
    r = np.corrcoef([x, y, z])
    expected = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    assert detrended_correlation(x, y, z) == pytest.approx(expected)
    assert detrended_correlation(3 * x + 7, -2 * y, 5 * z - 1) == pytest.approx(-expected)


def test_several_trends_are_taken_out(rng):
    time = np.arange(25.0)
    x, y = rng.normal(size=(2, 25))
    quadratic = np.column_stack([time, time**2])
    residuals = [v - np.polyval(np.polyfit(time, v, 2), time) for v in (x, y)]
    assert detrended_correlation(x, y, quadratic) == pytest.approx(np.corrcoef(residuals)[0, 1])
    assert detrended_correlation(x + 4 * time**2, y - 3 * time, quadratic) == pytest.approx(
        detrended_correlation(x, y, quadratic)
    )
    assert np.isnan(detrended_correlation(1e6 + 3 * time, y, time)), "nothing is left of a straight line"


def test_partial_correlation_is_that_of_the_ranks(rng):
    x, y, z = rng.normal(size=(3, 40))
    ranks = [scipy_stats.rankdata(v) for v in (x, y, z)]
    assert partial_correlation(x, y, z) == pytest.approx(detrended_correlation(*ranks))
    assert partial_correlation(np.exp(x), y**3, z) == pytest.approx(partial_correlation(x, y, z))


def test_autocorrelation_by_hand():
    # Mean 2; deviations -1, 0, 1, 0; their squares sum to 2.
    assert autocorrelation([1, 2, 3, 2], 3) == pytest.approx([0, -1 / 2, 0])
    assert autocorrelation([5, 5, 5], 2).tolist() == [0, 0]
    assert autocorrelation([1, 2], 0).shape == (0,)


def test_effective_sample_size_by_hand():
    # r = (0, -1/2) at lags 1 and 2 for both; the weight of lag 2 is 1 - 2/4: sum = 1/8, n* = 4 / (1 + 1/4).
    x = [1, 2, 3, 2]
    assert effective_sample_size(x, x, lags=2) == pytest.approx(3.2)
    # Pyper and Peterman: (-1/2 * 4/2)^2 = 1, n* = 4 / (1 + 2).
    assert effective_sample_size(x, x, lags=2, method="pyper-peterman") == pytest.approx(4 / 3)
    assert effective_sample_size(x, [7, 7, 7, 7], lags=2) == 4.0
    assert effective_sample_size(x, x) == 4.0, "four values have no fifth, hence no lag"


@pytest.mark.parametrize("method", ["bayley-hammersley", "pyper-peterman"])
def test_long_autoregressive_series_have_the_known_size(rng, method):
    x, y = autoregressive(rng, 0.8, 20_000), autoregressive(rng, 0.5, 20_000)
    found = effective_sample_size(x[0], y[0], lags=40, method=method)
    assert found == pytest.approx(20_000 * (1 - 0.4) / (1 + 0.4), rel=0.05)


def test_the_size_is_what_the_spread_of_correlations_says(rng):
    x, y = autoregressive(rng, 0.7, 200, 1500), autoregressive(rng, 0.7, 200, 1500)
    spread = np.var([nb.correlation(a, b, "pearson") for a, b in zip(x, y, strict=True)])
    sizes = [effective_sample_size(a, b) for a, b in zip(x[:300], y[:300], strict=True)]
    assert np.median(sizes) == pytest.approx(1 / spread, rel=0.12)


def test_the_size_is_symmetric_and_ignores_units(rng):
    x, y = autoregressive(rng, 0.6, 50, 2)
    found = effective_sample_size(x, y)
    assert 1 < found < 50
    assert effective_sample_size(y, x) == pytest.approx(found)
    assert effective_sample_size(1 - 3 * x, 10 * y) == pytest.approx(found)


def test_correlation_test_equals_scipy(rng):
    x, y = rng.normal(size=(2, 30))
    other = scipy_stats.pearsonr(x, y)
    p, interval = correlation_test(other.statistic, 30)
    assert interval == pytest.approx(tuple(other.confidence_interval(0.95)))
    assert p == pytest.approx(other.pvalue, abs=0.01)
    wide = correlation_test(other.statistic, 30, level=0.99)[1]
    assert wide == pytest.approx(tuple(other.confidence_interval(0.99)))


def test_the_test_keeps_its_level_and_knows_its_limits(rng):
    pairs = rng.normal(size=(1000, 2, 20))
    p_values = [correlation_test(nb.correlation(x, y, "pearson"), 20)[0] for x, y in pairs]
    assert 0.03 < np.mean(np.array(p_values) <= 0.05) < 0.07
    assert correlation_test(0.9, 3) == (1.0, (-1.0, 1.0))
    assert correlation_test(1.0, 10) == (0.0, (1.0, 1.0))
    assert correlation_test(0.0, 10)[0] == pytest.approx(1)
    assert np.isnan(correlation_test(float("nan"), 10)[0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: difference_correlation([1, 2], [1, 2, 3]), r"received shapes \(2,\) and \(3,\)"),
        (lambda: difference_correlation([1, np.nan, 2], [1, 2, 3]), "x must be finite"),
        (lambda: detrended_correlation([1, 2], [2, 3], [1, 2, 3]), r"trend must be .* received shape \(3,\) for 2"),
        (lambda: detrended_correlation([1, 2], [2, 3], [1, np.inf]), "trend must be finite"),
        (lambda: partial_correlation([1, 2], [2, 3], [1, 2, 3]), r"received shapes \(2,\) and \(3,\)"),
        (lambda: autocorrelation([1, 2, 3], 3), "lags must lie between 0 and 2, .* received 3"),
        (lambda: effective_sample_size([1, 2, 3], [1, 2, 3], lags=-1), "lags must lie between 0 and 2, .* received -1"),
        (lambda: effective_sample_size([1, 2], [1, 2], method="guess"), "method must be 'bayley-hammersley' or"),
        (lambda: correlation_test(1.1, 10), r"r must lie between -1 and 1, received 1.1"),
        (lambda: correlation_test(0.5, 10, level=95), "level must lie between 0 and 1, received 95"),
    ],
)
def test_bad_input_ends_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_partial_correlation_stays_in_its_range(rng):
    xz, yz = rng.uniform(-0.99, 0.99, size=(2, 10_000))
    left = np.sqrt((1 - xz**2) * (1 - yz**2))
    for sign in (1, -1):
        found = partial_from(xz * yz + sign * left, xz, yz)  # all that is left agrees
        assert np.abs(found).max() <= 1
        assert found == pytest.approx(np.full(10_000, sign))


def test_units_and_levels_do_not_change_what_a_trend_leaves(rng):
    time, wiggle, other = np.arange(12.0), *rng.normal(size=(2, 12))
    x, y = time + wiggle, 2 * time + wiggle + other
    expected = detrended_correlation(x, y, time)
    for unit in (1e-12, 1e12):
        assert detrended_correlation(x, y, unit * time) == pytest.approx(expected, abs=1e-9)
        assert detrended_correlation(x, y, np.column_stack([time, unit * wiggle**2])) == pytest.approx(
            detrended_correlation(x, y, np.column_stack([time, wiggle**2])), abs=1e-9
        )
    assert detrended_correlation(x + 1e9, y - 1e9, time + 1e9) == pytest.approx(expected, abs=1e-5)
    assert np.isnan(detrended_correlation(3 * time + 1e9, y, time)), "nothing but rounding is left"
    assert detrended_correlation(x, y, np.empty((12, 0))) == pytest.approx(correlation(x, y, "pearson"))
