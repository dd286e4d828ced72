"""Reliability: by hand, from an analysis of variance, and on simulated networks whose variances are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nbutils.evaluation.reliability import half_probe_reliability, intraclass_correlation, spearman_brown


def test_icc_by_hand():
    # Means 3/2, 7/2, 11/2: mean squares 8 between, 1/2 within.
    assert intraclass_correlation([[1, 2], [3, 4], [5, 6]]) == pytest.approx((8 - 1 / 2) / (8 + 1 / 2))
    assert intraclass_correlation([[1, 1], [2, 2]]) == 1
    assert intraclass_correlation([[1, 3], [3, 1]]) == -1
    assert intraclass_correlation([[2, 2], [2, 2]]) == 0


@pytest.mark.parametrize("k", [2, 3, 5])
def test_icc_is_that_of_the_analysis_of_variance(rng, k):
    table = rng.normal(size=(20, 1)) + rng.normal(size=(20, k))
    f = stats.f_oneway(*table).statistic  # MS_between / MS_within
    assert intraclass_correlation(table) == pytest.approx((f - 1) / (f + k - 1))
    assert spearman_brown(intraclass_correlation(table), k) == pytest.approx(1 - 1 / f)


def test_icc_does_not_depend_on_unit_origin_or_order(rng):
    table = rng.normal(size=(20, 1)) + rng.normal(size=(20, 2))
    expected = intraclass_correlation(table)
    assert intraclass_correlation(table[::-1, ::-1] * -1e-30) == pytest.approx(expected)
    assert intraclass_correlation(table + 1e6) == pytest.approx(expected)


@pytest.mark.parametrize("share", [0.3, 0.8, 0.95])
def test_icc_recovers_a_known_share_of_variance(share):
    """60 networks, 300 simulations: the mean is within .02 of the truth, and the whole probe within .02 as well."""
    rng = np.random.default_rng(6)
    found = []
    for _ in range(300):
        networks = rng.normal(scale=np.sqrt(share), size=(60, 1))
        found.append(intraclass_correlation(networks + rng.normal(scale=np.sqrt(1 - share), size=(60, 2))))
    assert np.mean(found) == pytest.approx(share, abs=0.02)
    assert spearman_brown(max(0, np.mean(found))) == pytest.approx(2 * share / (1 + share), abs=0.02)


def test_spearman_brown_by_hand():
    assert spearman_brown(2 / 3) == pytest.approx(4 / 5)
    assert spearman_brown(0.5, 3) == pytest.approx(3 / 4)
    assert spearman_brown(0.8, 1 / 2) == pytest.approx(2 / 3)
    assert [spearman_brown(r, 7) for r in (0, 1)] == [0, 1]
    assert spearman_brown(spearman_brown(0.3), 0.5) == pytest.approx(0.3), "there and back"
    with pytest.raises(ValueError, match=r"reliability must lie in \[0, 1\], received -0.5"):
        spearman_brown(-0.5)
    with pytest.raises(ValueError, match="times must be a number above 0, received 0"):
        spearman_brown(0.5, 0)


def test_not_measurable_by_either_rule(rng):
    truth = np.linspace(0, 1, 40)
    good = half_probe_reliability(truth, truth + rng.normal(scale=0.05, size=40), span=1)
    assert good.measurable
    assert good.reason == ""
    assert good.whole > good.half > 0.9
    noise = half_probe_reliability(*rng.normal(size=(2, 40)), span=1)
    assert not noise.measurable
    assert noise.reason == f"its reliability is {noise.whole:.2f}"
    ceiling = half_probe_reliability(11.6 + 0.09 * truth, 11.6 + 0.09 * truth, span=11.69)
    assert ceiling.half == pytest.approx(1)
    assert ceiling.reason == "its range is 0.8% of what it could span"
    assert half_probe_reliability(11.6 + 0.09 * truth, 11.6 + 0.09 * truth).measurable, "where no span is known"


def test_halves_that_disagree_are_not_reliable():
    found = half_probe_reliability([1, 2, 3], [3, 2, 1])
    assert (found.half, found.whole) == (-1, 0)
    assert np.isnan(found.spread)


def test_the_rule_at_its_edges():
    """A whole probe of reliability .8 is a half probe of 2/3."""
    first, second = np.array([[1, 2], [3, 4], [5, 6]]).T
    whole = 2 * (15 / 17) / (1 + 15 / 17)
    assert half_probe_reliability(first, second, least=whole - 1e-9).measurable
    assert not half_probe_reliability(first, second, least=whole + 1e-9).measurable
    assert half_probe_reliability(first, second, span=80).measurable, "a range of 4 of 80 is 5 %"
    assert not half_probe_reliability(first, second, span=81).measurable


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"second": [1, 2]}, r"first and second must be one per network, of 2 or more, received \(3,\) and \(2,\)"),
        ({"span": 0}, "span must be a number above 0, received 0"),
        ({"least": 2}, "least must be a number above 0 and at most 1, received 2"),
        ({"share": 0}, "share must be a number above 0 and at most 1, received 0"),
    ],
)
def test_nonsense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        half_probe_reliability(**{"first": [1, 2, 3], "second": [1, 2, 3]} | options)
