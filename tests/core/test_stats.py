from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from nbutils.stats import bootstrap_interval, holm, permutation_result, permuted_orders, sign_flip


def test_sign_flip_by_hand():
    # All of 1, 2, 3 positive is the largest of the 8 sums; two-sided, its mirror image is as extreme.
    assert sign_flip([1, 2, 3], np.random.default_rng(0)).p_value == 1 / 8
    assert sign_flip([1, 2, 3], np.random.default_rng(0), alternative="two-sided").p_value == 2 / 8
    assert sign_flip([1, 2, 3], np.random.default_rng(0), alternative="less").p_value == 1.0
    assert sign_flip([0.0, 0.0], np.random.default_rng(0)).p_value == 1.0


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_sign_flip_equals_scipy(rng, alternative):
    for _ in range(5):
        d = rng.normal(0.3, 1, size=8)
        mine = sign_flip(d, rng, alternative=alternative).p_value
        options = {"permutation_type": "samples", "alternative": alternative, "n_resamples": np.inf, "vectorized": True}
        other = scipy_stats.permutation_test((d,), lambda x, axis: x.mean(axis=axis), **options).pvalue
        assert mine == pytest.approx(other)


def test_many_pairs_are_sampled_with_the_observed_one_counted(rng):
    found = sign_flip(np.ones(40), rng, flips=999)
    assert len(found.null) == 1000
    assert found.p_value == 1 / 1000


def test_interval_equals_scipy_and_covers(rng):
    values = rng.normal(size=20)
    mine = bootstrap_interval(values, np.random.default_rng(1), draws=999)
    other = scipy_stats.bootstrap((values,), np.mean, n_resamples=999, rng=np.random.default_rng(1))
    assert mine == (other.confidence_interval.low, other.confidence_interval.high)
    hits = [
        low <= 0 <= high for low, high in (bootstrap_interval(rng.normal(size=30), rng, draws=499) for _ in range(200))
    ]
    assert 0.88 <= np.mean(hits) <= 0.99


def test_interval_of_equal_and_of_single_values(rng):
    assert bootstrap_interval([2.0, 2.0, 2.0], rng) == (2.0, 2.0)
    assert all(np.isnan(bootstrap_interval([2.0], rng)))
    with pytest.raises(ValueError, match="finite"):
        bootstrap_interval([1.0, np.nan], rng)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        bootstrap_interval([1.0, 2.0], rng, level=95)


def test_holm_by_hand():
    assert holm([0.01, 0.02, 0.03]).tolist() == pytest.approx([0.03, 0.04, 0.04])
    assert holm([0.5, 0.9]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


def test_holm_counts_tests_that_could_not_be_made():
    adjusted = holm([0.01, np.nan])
    assert adjusted[0] == pytest.approx(0.02)
    assert np.isnan(adjusted[1])
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        holm([1.2])


def test_orders_are_all_or_sampled(rng):
    assert len({tuple(o) for o in permuted_orders(4, 24, rng)}) == 24
    sampled = permuted_orders(9, 50, rng)
    assert sampled.shape == (51, 9)
    assert sampled[0].tolist() == list(range(9))
    assert all(sorted(o) == list(range(9)) for o in sampled)


def test_rounding_does_not_break_ties():
    assert permutation_result(0.3, np.array([0.1 + 0.2, 0.1]), "greater").p_value == 0.5
    with pytest.raises(ValueError, match="alternative must be one of"):
        permutation_result(0.3, np.array([0.1]), "larger")


@pytest.mark.filterwarnings("ignore:The BCa confidence interval")
def test_an_interval_of_values_far_from_0_is_that_of_their_differences(rng):
    for offset in (0.0, 1e15, -1e15):
        values = offset + np.random.default_rng(5).normal(size=23) / 4
        low, high = bootstrap_interval(values, 0, draws=200)
        assert values.min() <= low <= values.mean() <= high <= values.max()


def test_a_p_value_does_not_hang_on_the_unit():
    values = np.array([0.3, -0.1, 0.4, 0.2, 0.6, -0.2])
    expected = sign_flip(values, 0, alternative="two-sided").p_value
    for unit in (1e-13, 1e-6, 1e6, 1e13):
        assert sign_flip(unit * values, 0, alternative="two-sided").p_value == expected
    assert sign_flip([0.1] * 6, 0).p_value == 1 / 64


def test_too_few_resamples_are_refused():
    with pytest.raises(ValueError, match="draws must be a whole number from 100 to 1000000, received 1"):
        bootstrap_interval([1.0, 2.0, 4.0], 0, draws=1)
