"""Estimates, equivalence and words: by hand, against SciPy, and on simulated runs whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nbutils.evaluation.reliability import Reliability
from nbutils.evaluation.words import (
    WORDS,
    Estimate,
    cluster_correlation,
    equivalence_test,
    judge,
    residual_correlation,
    shared_cluster_correlation,
    t_interval,
    two_way_residuals,
)

RUNS, EPOCHS = 10, 20


def simulated_runs(rng: np.random.Generator, r: float) -> tuple[np.ndarray, np.ndarray]:
    """Measure and accuracy with a common course, levels of their own, and run-specific movement correlated by r."""
    course = 3 * (1 - np.exp(-np.arange(EPOCHS) / 4))
    own, other = rng.normal(size=(2, RUNS, EPOCHS))
    measure = course + rng.normal(size=(RUNS, 1)) + own
    accuracy = course + rng.normal(size=(RUNS, 1)) + r * own + np.sqrt(1 - r**2) * other
    return measure, accuracy


def word_of(found: Estimate) -> str:
    return judge(found, 0.3, adjusted=found.p_value)


def test_residuals_by_hand():
    # Rows have means 2 and 6, columns 5/2, 7/2, 6, all together 4.
    assert two_way_residuals([[1, 2, 3], [4, 5, 9]]).tolist() == [[0.5, 0.5, -1.0], [-0.5, -0.5, 1.0]]
    table = np.random.default_rng(0).normal(size=(5, 7))
    left = two_way_residuals(table)
    assert np.allclose(left.sum(axis=0), 0)
    assert np.allclose(left.sum(axis=1), 0)
    assert np.allclose(left, table - table.mean(1)[:, None] - table.mean(0) + table.mean())
    assert np.allclose(two_way_residuals(left), left), "nothing more to take out"


def test_a_course_and_levels_leave_nothing():
    """Rounding must not be taken for movement."""
    table = np.arange(4)[:, None] * 0.1 + np.sin(np.arange(9)) * 1e3
    assert not two_way_residuals(table).any()
    found = residual_correlation(table, table, 0)
    assert np.isnan([found.value, found.low, found.high, *found.inner, found.p_value]).all()
    assert judge(found, 0.3) == "undecided", "nothing varies, so that nothing is known"


def test_a_level_far_above_the_others_hides_no_movement(rng):
    small = rng.normal(size=(4, 9))
    left = two_way_residuals(small + np.array([2e9, 0, 1, 2])[:, None])
    assert np.allclose(left, two_way_residuals(small), atol=1e-5)
    assert left.any(axis=1).all()


def test_what_does_not_vary_has_no_association(rng):
    groups, moving, still = np.repeat(np.arange(10), 2), rng.normal(size=20), np.full(20, 0.7)
    for pair in ((still, moving), (moving, still)):
        found = cluster_correlation(*pair, groups, 0, draws=99)
        assert np.isnan([found.value, found.low, found.high, *found.inner, found.p_value]).all()
        assert judge(found, 0.3) == "undecided"


def test_an_interval_without_one_end_decides_nothing():
    nan = float("nan")
    for low, high in ((nan, 0.9), (0.5, nan), (nan, -0.5), (-0.9, nan)):
        for direction in (1, -1):
            for one_sided in (False, True):
                found = Estimate(0.6, low, high, (low, high))
                assert judge(found, 0.3, direction=direction, one_sided=one_sided) == "undecided"


def test_residual_correlation_by_hand():
    """Own movements of three runs, of which only the pairing as it is agrees; 1 of 3! orders."""
    own = np.array([[2.0, -1, -1], [-1, 2, -1], [-1, -1, 2]])
    found = residual_correlation(own + np.arange(3), -own, 0)
    assert found.value == pytest.approx(-1)
    assert found.p_value == pytest.approx(1 / 6)


def test_residual_correlation_ignores_drift_level_and_unit(rng):
    measure, accuracy = simulated_runs(rng, 0.5)
    found = residual_correlation(measure, accuracy, 0, permutations=99)
    drift = 100 * np.sqrt(np.arange(EPOCHS)) + rng.normal(size=(RUNS, 1))
    again = residual_correlation(7 * measure + drift, accuracy - drift, 0, permutations=99)
    assert again.value == pytest.approx(found.value)
    assert again.p_value == found.p_value
    each = [stats.pearsonr(*pair).statistic for pair in zip(*map(two_way_residuals, (measure, accuracy)), strict=True)]
    assert found.value == pytest.approx(np.mean(each))
    interval = stats.ttest_1samp(each, 0).confidence_interval(0.9)
    half = (interval.high - interval.low) / 2 * np.sqrt(9 / 8)
    assert found.inner == pytest.approx((found.value - half, found.value + half))


def test_the_residual_test_keeps_its_size_and_has_power():
    """10 runs of 20 epochs, 400 simulations: 5 % of p values up to .05 without an effect, all of them with r = .5.

    "No association" is said of 96 % of the first, "supported" of 80 % of the second; the intervals cover 95 %.
    """
    rng = np.random.default_rng(1)
    p = {
        r: [residual_correlation(*simulated_runs(rng, r), rng, permutations=199) for _ in range(400)] for r in (0, 0.5)
    }
    rejected = {r: np.mean([found.p_value <= 0.05 for found in each]) for r, each in p.items()}
    assert 0.03 <= rejected[0] <= 0.075
    assert rejected[0.5] >= 0.98
    covered = {r: np.mean([found.low <= r <= found.high for found in each]) for r, each in p.items()}
    assert 0.93 <= min(covered.values()) <= max(covered.values()) <= 0.975
    words = {r: [word_of(found) for found in each] for r, each in p.items()}
    assert words[0].count("no association") >= 0.93 * 400, "10 runs are enough to rule .3 out"
    assert words[0.5].count("supported") >= 0.74 * 400
    assert "contradicted" not in words[0.5]
    assert "no association" not in words[0.5]


def test_an_effect_at_the_bound_is_seldom_called_none():
    """What equivalence promises: at an effect as large as the bound, "no association" in at most 5 %."""
    rng = np.random.default_rng(2)
    words = [word_of(residual_correlation(*simulated_runs(rng, 0.3), rng, permutations=99)) for _ in range(400)]
    assert words.count("no association") <= 0.08 * 400
    assert words.count("supported") <= 0.05 * 400


def test_t_interval_equals_scipy_and_covers_with_ten_runs():
    rng = np.random.default_rng(3)
    values = rng.normal(size=10)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert t_interval(values) == pytest.approx((expected.low, expected.high))
    samples = rng.normal(0.7, 2, size=(2000, 10))
    hits = [low <= 0.7 <= high for low, high in map(t_interval, samples)]
    assert 0.935 <= np.mean(hits) <= 0.965
    assert t_interval([2.0, 2.0]) == (2.0, 2.0)
    assert np.isnan(t_interval([2.0])).all()


def test_equivalence_equals_scipy_and_the_inner_interval(rng):
    for shift in (-0.4, -0.1, 0.0, 0.2, 0.6):
        values = rng.normal(shift, 0.3, size=9)
        p, (low, high) = equivalence_test(values, 0.3)
        above = stats.ttest_1samp(values, -0.3, alternative="greater").pvalue
        below = stats.ttest_1samp(values, 0.3, alternative="less").pvalue
        assert p == pytest.approx(max(above, below))
        assert (p <= 0.05) == (low >= -0.3 and high <= 0.3)
    assert equivalence_test([0.1, 0.1], 0.3)[0] == 0
    assert equivalence_test([0.4, 0.4], 0.3)[0] == 1
    assert np.isnan(equivalence_test([0.1], 0.3)[0])


def test_few_runs_do_not_show_equivalence():
    """Without an effect, deviation .2: with 10 runs nearly always none, with 3 hardly ever; at the bound in 5 %."""
    rng = np.random.default_rng(4)

    def share(runs: int, effect: float) -> float:
        samples = rng.normal(effect, 0.2, size=(600, runs))
        return float(np.mean([equivalence_test(values, 0.3)[0] <= 0.05 for values in samples]))

    assert share(10, 0.0) >= 0.97
    assert share(3, 0.0) <= 0.5
    assert 0.025 <= share(10, 0.3) <= 0.075
    assert share(10, 0.5) == 0


def test_clusters_widen_the_interval(rng):
    """Two seeds that are copies tell nothing new: the interval is that of the configurations."""
    x, y = rng.normal(size=(2, 40))
    once, twice = np.arange(40), np.repeat(np.arange(40), 2)
    single = cluster_correlation(x, y, once, 0, draws=999)
    copied = cluster_correlation(np.repeat(x, 2), np.repeat(y, 2), twice, 0, draws=999)
    naive = cluster_correlation(np.repeat(x, 2), np.repeat(y, 2), np.arange(80), 0, draws=999)
    assert copied.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert (copied.low, copied.high) == pytest.approx((single.low, single.high), abs=0.02)
    assert naive.high - naive.low < 0.8 * (copied.high - copied.low)
    assert copied.low < copied.inner[0] < copied.inner[1] < copied.high


def test_the_cluster_bootstrap_covers_where_seeds_agree():
    """40 configurations of 2 seeds, no association, seeds alike (.7 of the variance): 200 simulations."""
    rng = np.random.default_rng(5)
    configuration, misses, rejected, naive = np.repeat(np.arange(40), 2), 0, 0, 0
    for _ in range(200):
        x, y = (np.sqrt(0.7) * rng.normal(size=40)[configuration] + np.sqrt(0.3) * rng.normal(size=80) for _ in "xy")
        found = cluster_correlation(x, y, configuration, rng, draws=199)
        misses += not found.low <= 0 <= found.high
        rejected += found.p_value <= 0.05
        naive += stats.spearmanr(x, y).pvalue <= 0.05
    assert misses <= 0.1 * 200
    assert 0.015 * 200 <= rejected <= 0.1 * 200
    assert naive >= 0.07 * 200, "networks taken for independent find too much"


def shared_worlds(shared):
    """Three data sets of 40 configurations, two seeds each, without association; a share of each is common."""
    rng = np.random.default_rng(8)
    configuration = np.repeat(np.arange(40), 2)
    for _ in range(200):
        common = rng.normal(size=(2, 40))
        own = [np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.normal(size=(2, 40)) for _ in range(3)]
        both = [one[:, configuration] + 0.5 * rng.normal(size=(2, 80)) for one in own]
        yield [m for m, _ in both], [p for _, p in both], [configuration] * 3


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_one_draw_of_configurations_for_all_data_sets_covers(shared):
    found = [shared_cluster_correlation(*world, seed, draws=199) for seed, world in enumerate(shared_worlds(shared))]
    assert 0.9 <= np.mean([one.low <= 0 <= one.high for one in found]) <= 0.99


def test_data_sets_that_share_configurations_are_not_independent_witnesses():
    """Intervals of data sets put together as if they were independent leave out the truth far too often."""
    missed = []
    for seed, world in enumerate(shared_worlds(0.9)):
        each = [cluster_correlation(*one, seed, draws=99) for one in zip(*world, strict=True)]
        half = np.sqrt(sum(((one.high - one.low) / 2) ** 2 for one in each)) / 3
        missed.append(abs(np.mean([one.value for one in each])) > half)
    assert np.mean(missed) > 0.15


def test_one_data_set_by_itself_has_the_interval_of_its_clusters(rng):
    x, y = rng.normal(size=(2, 60))
    groups = np.repeat(np.arange(30), 2)
    alone, shared = cluster_correlation(x, y, groups, 0), shared_cluster_correlation([x], [y], [groups], 0)
    assert shared.value == pytest.approx(alone.value)
    assert (shared.low, shared.high) == pytest.approx((alone.low, alone.high), abs=0.03)
    assert shared.low < shared.inner[0] < shared.inner[1] < shared.high


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (([], [], []), "measures, performances and configurations must be equally many, received 0, 0, 0"),
        (([[1, 2]], [[1, 2]], []), "must be equally many, received 1, 1, 0"),
        (([[1, 2]], [[1, 2, 3]], [[0, 1]]), "must be one per network"),
        (([[1, 2]], [[1, 2]], [[0, 1]]), "configurations must take at least 3 values, received 2"),
    ],
)
def test_shared_clusters_refuse_what_does_not_fit(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        shared_cluster_correlation(*given, 0)


def test_cluster_errors_name_its_own_arguments():
    with pytest.raises(ValueError, match="configuration must take at least 3 values, received 2"):
        cluster_correlation([1, 2, 3, 4], [1, 2, 3, 4], [0, 0, 1, 1], 0)
    with pytest.raises(ValueError, match="measure, performance and configuration must be one per network"):
        cluster_correlation([1, 2, 3, 4], [1, 2, 3, 4], [0, 1, 2], 0)


def test_every_word_by_hand():
    beyond, within, wide = Estimate(0.5, 0.35, 0.65, (0.4, 0.6)), Estimate(0, -0.25, 0.25, (-0.2, 0.2)), None
    wide = Estimate(0.2, -0.3, 0.7, (-0.2, 0.6))
    deaf = Reliability(0.2, 0.33, 0.5, "its reliability is 0.33")
    assert [judge(beyond, 0.3), judge(beyond, 0.3, direction=-1)] == ["supported", "contradicted"]
    assert [judge(within, 0.3), judge(wide, 0.3)] == ["no association", "undecided"]
    assert judge(beyond, 0.3, reliability=deaf) == "not measurable"
    assert {judge(beyond, 0.3, direction=d) for d in (1, -1)} | {judge(within, 0.3), judge(wide, 0.3)} < set(WORDS)
    assert judge(Estimate(0.35, 0.3, 0.4, (0.31, 0.39)), 0.3) == "undecided", "wholly beyond, not at"


def test_words_are_symmetric(rng):
    swap = {"supported": "contradicted", "contradicted": "supported"}
    for _ in range(200):
        low, inner_low, value, inner_high, high = np.sort(rng.uniform(-1, 1, 5))
        p = rng.choice([None, 0.01, 0.5, np.nan])
        found = Estimate(value, low, high, (inner_low, inner_high))
        mirrored = Estimate(-value, -high, -low, (-inner_high, -inner_low))
        word = judge(found, 0.2, adjusted=p)
        assert judge(found, 0.2, adjusted=p, direction=-1) == swap.get(word, word)
        assert judge(mirrored, 0.2, adjusted=p) == swap.get(word, word)


def test_an_adjusted_p_value_is_asked_for_on_both_sides():
    for direction in (1, -1):
        strong = Estimate(0.5, 0.35, 0.65, (0.4, 0.6))
        assert judge(strong, 0.3, direction=direction, adjusted=0.051) == "undecided"
        assert judge(strong, 0.3, direction=direction, adjusted=np.nan) == "undecided"
        assert judge(strong, 0.3, direction=direction, adjusted=0.05) != "undecided"


def test_a_gain_is_never_opposite():
    lost, gained = Estimate(-0.1, -0.2, -0.05, (-0.18, -0.06)), Estimate(0.1, 0.05, 0.2, (0.06, 0.18))
    assert judge(lost, 0.02, one_sided=True) == "no association"
    assert judge(lost, 0.02) == "contradicted"
    assert judge(gained, 0.02, one_sided=True) == "supported"


def test_bounds_may_differ_from_the_threshold():
    found = Estimate(0.02, -0.02, 0.06, (-0.01, 0.05))
    assert judge(found, 0.0) == "undecided", "where every effect counts, none is too small"
    assert judge(found, 0.0, bound=0.1) == "no association"
    nothing = Estimate(np.nan, np.nan, np.nan, (np.nan, np.nan))
    assert judge(nothing, 0.0, bound=0.1) == "undecided"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": -0.1}, "threshold must be a number of at least 0, received -0.1"),
        ({"direction": 0}, "direction must be 1 or -1, received 0"),
        ({"bound": 0.0}, "bound must be a number above 0, received 0.0"),
        ({"adjusted": 1.5}, r"adjusted must lie in \[0, 1\], received 1.5"),
    ],
)
def test_rules_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        judge(Estimate(0, -1, 1, (-1, 1)), **{"threshold": 0.3} | options)


def test_intervals_the_wrong_way_round_are_refused():
    with pytest.raises(ValueError, match=r"low must not lie above the upper end of its interval, received 2"):
        Estimate(0, 2, 1, (0, 1))
    with pytest.raises(ValueError, match=r"level must lie between 0\.5 and 1, received 0\.4"):
        equivalence_test([1, 2], 1, level=0.4)
    with pytest.raises(ValueError, match=r"\(runs >= 3, epochs >= 3\), received \(2, 5\)"):
        residual_correlation(np.ones((2, 5)), np.ones((2, 5)), 0)
