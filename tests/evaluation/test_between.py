"""Variance between groups: against SciPy, and with strata that explain all or nothing of it."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbutils.evaluation.between import between_beyond, between_share, quarters


def test_the_share_is_that_of_an_analysis_of_variance(rng):
    groups = rng.integers(4, size=60)
    values = rng.normal(groups * 0.3)
    ratio = stats.f_oneway(*(values[groups == one] for one in range(4))).statistic
    assert between_share(values, groups) == pytest.approx(ratio * 3 / (ratio * 3 + 56))
    assert between_share(5 - 3 * values, groups * 7 - 2) == pytest.approx(between_share(values, groups))


def test_the_share_is_not_defined_without_variance():
    assert np.isnan(between_share([0.1] * 6, [0, 0, 1, 1, 2, 2]))
    assert np.isnan(between_beyond([0.1] * 6, [0, 0, 1, 1, 2, 2], [0] * 6, rng=0).excess)


def test_quarters_are_those_of_pandas_within_each_kind(rng):
    values, kinds = rng.random(200), np.repeat([3, 7], 100)
    expected = np.concatenate([pd.qcut(part, 4, labels=False) for part in np.split(values, 2)])
    assert quarters(values, kinds).tolist() == expected.tolist()
    assert set(quarters([2.0] * 9, [1] * 9)) == {3}  # equal values are in one quarter


def test_groups_that_are_random_exceed_chance_by_nothing(rng):
    strata = rng.integers(8, size=300)
    values = rng.normal(strata)  # strata matter, groups do not
    found = [between_beyond(values, rng.integers(6, size=300), strata, rng).excess for _ in range(50)]
    assert abs(np.mean(found)) < 3 * np.std(found) / np.sqrt(50) + 1e-3


def test_what_strata_explain_is_no_excess(rng):
    strata = np.repeat(np.arange(5), 60)
    groups = np.where(rng.random(300) < 0.9, strata, rng.integers(5, size=300))
    found = between_beyond(strata + rng.normal(0, 0.1, 300), groups, strata, rng)
    assert found.share > 0.7
    assert abs(found.excess) < 0.01


def test_groups_that_decide_exceed_chance_by_nearly_all(rng):
    groups, strata = rng.integers(5, size=300), rng.integers(4, size=(300, 2))
    found = between_beyond(groups.astype(float), groups, strata, rng)
    assert found.share == pytest.approx(1)
    assert found.excess > 0.9


def test_two_columns_of_strata_are_their_cells(rng):
    values, groups, strata = rng.random(80), rng.integers(3, size=80), rng.integers(3, size=(80, 2))
    cells = strata[:, 0] * 3 + strata[:, 1]
    assert between_beyond(values, groups, strata, 0) == between_beyond(values, groups, cells, 0)


def test_lone_members_of_strata_stay_where_they_are():
    found = between_beyond([1.0, 2.0, 4.0], [0, 1, 1], [0, 1, 2], rng=0, draws=5)
    assert found.excess == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"values": [1.0, np.nan, 2.0]}, "values"),
        ({"values": []}, "values"),
        ({"groups": [0, 1]}, "groups"),
        ({"groups": [0.5, 1, 1]}, "groups"),
        ({"strata": [0, 1]}, "strata"),
        ({"draws": 0}, "draws"),
        ({"rng": "luck"}, "rng"),
    ],
)
def test_wrong_input_is_refused(change, words):
    given = {"values": [1.0, 2.0, 3.0], "groups": [0, 1, 1], "strata": [0, 0, 0], "rng": 0, **change}
    with pytest.raises((ValueError, TypeError), match=words):
        between_beyond(**given)
    with pytest.raises(ValueError, match="within"):
        quarters([1.0, 2.0], [1])


def test_a_shifted_value_still_varies():
    groups, values = [0, 0, 1, 1], np.array([1.0, 2.0, 3.0, 4.0])
    assert between_share(values + 1e10, groups) == pytest.approx(between_share(values, groups), abs=1e-5)


def test_strata_that_fit_no_member_are_refused():
    for strata in (np.empty((4, 0)), [[0, 1], [0], [1, 1], [0, 0]], [0, 1], 3):
        with pytest.raises(ValueError, match="strata"):
            between_beyond([1.0, 2.0, 3.0, 4.0], [0, 0, 1, 1], strata, rng=0)
