"""ROC curves against scikit-learn, exact intervals against SciPy, and words for worlds that are known."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score, roc_curve

from nbutils.drawing.palette import SUBJECT
from nbutils.truth.figures import constructions_figure
from nbutils.truth.power import Area, area_under_curve, exceeding, roc_points, share_interval
from nbutils.truth.verdicts import (
    CLAIMS,
    PLANTED_RULES,
    PlantedRules,
    area_table,
    claim_table,
    found_table,
    own_remainders,
    sound,
    word_of_areas,
    word_of_rates,
)


@pytest.fixture
def scores(rng):
    return np.round(rng.normal(0.7, 1, 25), 1), np.round(rng.normal(0, 1, 40), 1)  # with ties


def test_area_and_curve_are_those_of_scikit_learn(scores):
    truth = np.repeat([1, 0], [25, 40])
    found = area_under_curve(*scores)
    assert found.value == pytest.approx(roc_auc_score(truth, np.concatenate(scores)))
    false, power, _ = roc_curve(truth, np.concatenate(scores), drop_intermediate=False)
    own = roc_points(*scores)
    np.testing.assert_allclose(own[0], false)
    np.testing.assert_allclose(own[1], power)
    assert np.trapezoid(own[1], own[0]) == pytest.approx(found.value)


def test_power_at_a_threshold_is_a_point_of_the_curve(scores):
    false, power, at = roc_points(*scores)
    place = np.flatnonzero(at > 0.5)[-1]
    assert exceeding(scores[0], 0.5).value == pytest.approx(power[place])
    assert exceeding(scores[1], 0.5).value == pytest.approx(false[place])


def test_an_exact_interval_is_that_of_scipy():
    for count, networks in ((0, 20), (3, 20), (20, 20), (7, 9)):
        own, other = share_interval(count, networks), stats.binomtest(count, networks).proportion_ci(method="exact")
        assert (own.low, own.high) == pytest.approx((other.low, other.high))
    assert np.isnan(share_interval(0, 0).value)


def test_resampling_is_as_wide_as_theory_says(rng):
    """Normal scores one deviation apart: the error of Hanley and McNeil."""
    there, absent = rng.normal(1, 1, 60), rng.normal(0, 1, 60)
    found = area_under_curve(there, absent, draws=4000)
    area = found.value
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    error = np.sqrt((area * (1 - area) + 59 * (first - area**2) + 59 * (second - area**2)) / 3600)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.2)


def test_the_interval_of_a_clean_separation_is_not_a_point():
    assert area_under_curve(range(10, 20), range(10)) == Area(1.0, pytest.approx(0.025**0.1), 1.0)
    assert area_under_curve(range(10), range(10, 20)) == Area(0.0, 0.0, pytest.approx(1 - 0.025**0.1))


def test_bad_scores_are_named():
    with pytest.raises(ValueError, match="negative must hold at least one score"):
        area_under_curve([1.0], [])
    with pytest.raises(ValueError, match="positive"):
        roc_points([np.nan], [1.0])
    with pytest.raises(ValueError, match="count must be at most networks, 3, received 4"):
        share_interval(4, 3)


def test_a_score_that_is_missing_is_no_alarm():
    assert (exceeding([np.nan, 1.0], 0.5).count, exceeding([0.5], 0.5).count) == (1, 0)


def test_words():
    many = share_interval(58, 60)
    assert word_of_rates(many, share_interval(0, 60)) == "trusted"
    assert word_of_rates(many, share_interval(60, 60)) == "not trusted"
    assert word_of_rates(share_interval(10, 60), share_interval(0, 60)) == "not trusted"
    assert word_of_rates(share_interval(8, 10), share_interval(0, 60)) == "undecided"
    good, bad, open_ = Area(0.95, 0.9, 1.0), Area(0.5, 0.3, 0.7), Area(0.8, 0.7, 0.9)
    assert [word_of_areas(pair) for pair in ([good, good], [good, bad], [good, open_])] == [
        "trusted",
        "not trusted",
        "undecided",
    ]


def test_rules_have_a_digest_that_changes_with_them(monkeypatch):
    before = PLANTED_RULES.digest
    assert PlantedRules(power=0.7).digest != before
    monkeypatch.setattr("nbutils.truth.verdicts.CLAIMS", dict(list(CLAIMS.items())[1:]))
    assert PLANTED_RULES.digest != before


def world(rng, shift=1.0, networks=12):
    """Networks whose Q says what is planted by `shift`, and whose remainder says nothing."""
    rows = []
    for task, second in (("independent", 1), ("none", 0), ("glyph-font", 1), ("glyph", 0), ("twice", 0)):
        for seed in range(networks):
            facts = {"task": task, "seed": seed, "reason": "", "degenerate": 0.0}
            for state, groups in (("network", 1), ("shifted", 0), ("shuffled", 0), ("groups 0.3", 1), ("sides 0.3", 1)):
                noise = 0.005 * rng.normal(size=3)
                values = {
                    "excess": 0.3 * groups,
                    "remainder": 0.0,
                    "left": 0.4 * (state not in ("shifted", "shuffled")),
                }
                values = {k: v + e for (k, v), e in zip(values.items(), noise, strict=True)}
                rows.append(facts | {"kind": "state", "state": state} | values)
            one = {"graph": "co-firing", "rule": "top-decile", "density": 0.05, "layer": 0, "resolution": 1.0}
            values = {"modularity": shift * second + 0.1 * rng.normal(), "remainder": rng.normal()}
            values |= {"excess": np.nan, "communities": 2 if second else 7, "ami": 0.9 * second, "graded": 0.1}
            rows.append(facts | {"kind": "construction"} | one | values)
    return pd.DataFrame(rows)


def test_claims_of_a_known_world(rng):
    found = claim_table(world(rng)).set_index("claim")
    assert found.loc["groups, Q beyond chance", "word"] == "trusted"
    assert found.loc["random groups, remainder", ["word", "power"]].tolist() == ["not trusted", 0.0]
    assert found.loc["random groups, left over", "word"] == "trusted"
    assert found.loc["second module, Q beyond chance", ["word", "power", "false"]].tolist() == ["not trusted", 1, 1]
    assert found.loc["hidden label, left over", "word"] == "undecided", "nothing was measured"
    assert found.loc["random groups, left over", ["positive", "area"]].tolist() == [60, 1]


def test_areas_of_a_known_world(rng):
    found = area_table(world(rng)).set_index("statistic")
    assert found.loc["modularity", ["pairs", "glyphs", "word"]].tolist() == [1, 1, "undecided"], "12 networks are few"
    assert found.loc["two", "least"] == 1
    assert found.loc["remainder", "word"] != "trusted"
    assert "excess" not in found.index, "it was not measured"
    assert area_table(world(rng, networks=40)).set_index("statistic").loc["modularity", "word"] == "trusted"
    odd = area_table(world(rng, shift=0), seeds=range(1, 12, 2)).set_index("statistic")
    assert odd.loc["modularity", "least"] < 0.9


def test_curves_of_every_construction(rng):
    table = world(rng, networks=40)
    areas = area_table(table)
    axes = constructions_figure(table, areas).axes
    assert [ax.get_title(loc="left") for ax in axes[:3]] == ["Q", "remainder", "communities near two"], (
        "what was measured"
    )
    for place, (family, statistic) in enumerate(product(("pairs", "glyphs"), ("modularity", "remainder", "two"))):
        (curve,) = [line for line in axes[place].lines if line.get_linestyle() == "-"]
        x, y = curve.get_data()
        row = areas.set_index("statistic").loc[statistic]
        assert np.trapezoid(y, x) == pytest.approx(row[family]), "the area under what is drawn"
        assert (curve.get_color() == SUBJECT) == (row["word"] == "trusted")


def test_modules_found_in_a_known_world(rng):
    found = found_table(world(rng), ["independent", "none"]).set_index("task")
    assert found.loc["independent", ["mean", "two", "word"]].tolist() == [pytest.approx(0.9), 1, "trusted"]
    assert found.loc["none", ["two", "word"]].tolist() == [0, "not trusted"]
    assert found_table(world(rng), ["independent"], "graded")["word"].tolist() == ["not trusted"]


def test_degenerate_and_rare_networks_decide_nothing(rng):
    table = world(rng)
    table.loc[(table["task"] == "none") & (table["seed"] > 6), "degenerate"] = 1.0
    assert set(sound(table)["task"]) == {"independent", "glyph-font", "glyph", "twice"}
    means = own_remainders(table).set_index("task")
    assert means["networks"].tolist() == [12] * 4
    assert means.loc["twice", "left_low"] < means.loc["twice", "left"] < means.loc["twice", "left_high"]
