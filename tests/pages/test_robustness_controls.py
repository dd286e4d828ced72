from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binomtest

import nbutils
from nbutils.pages import robustness
from nbutils.pages.robustness import SCENARIOS, control_outcomes, simulated_study
from nbutils.study.hypotheses import RULES, TESTS, rows_of


@pytest.fixture(scope="module")
def study():
    return simulated_study("performance", np.random.default_rng(0))


def test_controls_pass_about_as_often_as_the_rules_allow(study):
    """All tests pass by construction or nearly; destroyed, they hardly ever do."""
    found = control_outcomes(study, tries=15)
    assert set(found["test"]) == set(TESTS)
    assert (found["tries"] == 15).all()
    sums = found.groupby("control")[["passes", "tries"]].sum()
    low = [binomtest(*pair).proportion_ci(RULES.level).low for pair in sums.itertuples(index=False)]
    assert max(low) <= RULES.alpha
    pd.testing.assert_frame_equal(control_outcomes(study, tries=2), control_outcomes(study, tries=2))


def test_tests_that_decide_nothing_are_left_out(study):
    few = simulated_study("performance", np.random.default_rng(0), seeds=4)
    assert control_outcomes(few, tries=1).empty
    assert control_outcomes(replace(study, table=study.table.iloc[:0]), tries=1).empty
    true = study.table[study.table["labels"] == "true"].assign(parts="conditions")
    assert {"H2b", "H3b"}.isdisjoint(control_outcomes(replace(study, table=true), tries=1)["test"])
    with pytest.raises(ValueError, match="tries must be a whole number of at least 1, received 0"):
        control_outcomes(study, tries=0)


@pytest.fixture
def shares_of(cells):
    """What the page's cells make of the outcomes of controls: sums and shares by control."""

    def run(outcomes):
        taken = SimpleNamespace(
            control_outcomes=lambda _: outcomes,
            simulated_study=lambda *_: None,
            show_table=lambda *_, **__: None,
            fold=lambda *_: None,
            RULES=nbutils.RULES,
        )
        none = SimpleNamespace(all_results=[])
        names = cells("robustness", "20", "19b", page=none, np=np, pd=pd, nb=taken, binomtest=binomtest)
        return names["sums"], names["shares"].set_index("control")

    return run


def test_shares_have_the_exact_interval(shares_of):
    table = pd.DataFrame({"dataset": ["a", "b"], "test": ["H2a", "H3a"], "control": ["c", "c"]})
    table = table.assign(tries=20, passes=[1, 2], opposite=[0, 0])
    sums, shares = shares_of(table)
    row = shares.loc["c"]
    assert (sums.loc["c", "tries"], row["tries"], row["passes"], row["opposite"]) == (40, 40, 3 / 40, 0)
    assert row["passes low"] == pytest.approx(beta.ppf(0.025, 3, 38))
    assert row["passes high"] == pytest.approx(beta.ppf(0.975, 4, 37))
    _, held = shares_of(table.astype(object))
    pd.testing.assert_frame_equal(held.astype(float), shares.astype(float))


def test_networks_get_each_other_s_accuracies_whole(study, rng):
    rows = rows_of(study, "H2a")
    wide = [
        t.pivot(index="seed", columns="epoch", values="train_accuracy").to_numpy() for t in (rows, _lent(rows, rng))
    ]
    assert sorted(map(tuple, wide[0])) == sorted(map(tuple, wide[1]))
    assert (wide[0] != wide[1]).any()


def _lent(rows, rng):
    lent = robustness._permute_networks(rows, rng)
    pd.testing.assert_frame_equal(
        lent.sort_values(["seed", "epoch"])[["modularity"]].reset_index(drop=True),
        rows.sort_values(["seed", "epoch"])[["modularity"]].reset_index(drop=True),
    )
    return lent


def test_noise_levels_get_each_other_s_accuracies_seed_by_seed(study, rng):
    rows = rows_of(study, "H2b").query("epoch == 6")
    lent = robustness._permute_levels(rows, rng)
    own, other = (t.pivot(index="noise", columns="seed", values="test_accuracy").to_numpy() for t in (rows, lent))
    assert sorted(map(tuple, own)) == sorted(map(tuple, other))
    missing = robustness._permute_levels(rows.iloc[1:], np.random.default_rng(0))
    assert len(rows) - 2 <= len(missing) <= len(rows) - 1, "who lost or lends what is missing is left out"


def test_swapped_ends_and_nulls_keep_every_value(study, rng):
    rows = rows_of(study, "H1b")
    ends = robustness._swap_ends(rows, rng)
    before = rows[rows["epoch"].isin([0, 6])]
    changed = ends["epoch"] != before["epoch"]
    assert changed.any()
    assert not changed.all()
    assert (ends["epoch"] + before["epoch"])[changed].eq(6).all()
    swapped = robustness._swap_null(rows, rng)
    np.testing.assert_allclose(
        swapped["modularity"] + swapped["null_circular"], rows["modularity"] + rows["null_circular"]
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_simulated_studies_have_the_shape_of_a_study(scenario):
    made = simulated_study(scenario, np.random.default_rng(0), seeds=4, epochs=3)
    assert made.labels == ["true", "mixed:0.5", "random"]
    assert made.noise_grid().groupby("noise")["seed"].nunique().tolist() == [2] * 8
    assert made.conditions()["seed"].nunique() == 4
    assert made.table["epoch"].max() == 3


def test_an_unknown_scenario_is_refused(rng):
    with pytest.raises(ValueError, match="scenario must be one of performance, noise level, nothing, received 'real'"):
        simulated_study("real", rng)
