from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest

from nbutils.pages import robustness
from nbutils.pages.robustness import (
    flip_map,
    outcome_matrix,
    perturbations,
    reference_tests,
    simulated_study,
)
from nbutils.series import correlation_test, partial_correlation
from nbutils.study.conclusions import partial_between, within_levels
from nbutils.study.hypotheses import TESTS, collect_evidence, evaluate_test, is_prespecified, rows_of
from nbutils.study.perturbations import PRIMARY, plan_perturbations


@pytest.fixture(scope="module")
def scenarios() -> dict:
    return {name: simulated_study(name, np.random.default_rng(0)) for name in ("performance", "noise level", "nothing")}


@pytest.fixture(scope="module")
def tables(scenarios) -> dict[str, pd.DataFrame]:
    return {name: perturbations(study).assign(dataset=name) for name, study in scenarios.items()}


def cell_of(page: str, beginning: str) -> dict:
    """What the cell of a notebook that begins like this defines."""
    cells = nbformat.read(Path(__file__).resolve().parents[2] / f"notebooks/{page}.ipynb", as_version=4).cells
    (source,) = (cell.source for cell in cells if cell.source.startswith(beginning))
    names = {"np": np, "pd": pd}
    exec(compile(source, page, "exec"), names)
    return names


def of(table: pd.DataFrame, test: str) -> pd.DataFrame:
    return table[table["test"] == test].set_index("perturbation")


def test_what_holds_by_construction_is_robust_to_every_perturbation(tables):
    own = of(tables["performance"], "H2b")
    assert len(own) == 10
    assert set(own["outcome"]) == {"passes"}
    assert not own["flipped"].any()


def test_what_follows_the_noise_alone_is_exposed_by_holding_it_fixed(tables):
    own = of(tables["noise level"], "H2b")
    assert set(own["reference"]) == {"passes"}
    assert own.loc["given the noise level", "flipped"]
    assert not own.loc["given mean co-firing", "flipped"]
    assert not own.loc["without random labels", "flipped"]


def test_noise_has_nothing_that_could_be_robust(tables):
    assert "passes" not in set(of(tables["nothing"], "H2b")["reference"])
    assert "passes" not in set(of(tables["nothing"], "H2b")["outcome"])


def test_the_reference_outcome_is_that_of_the_study_without_correction(scenarios):
    study = scenarios["noise level"]
    found = {e.test: e for e in collect_evidence([study]) if is_prespecified(e)}
    for test, e in reference_tests(study).items():
        assert (e.estimate, e.low, e.high) == (found[test].estimate, found[test].low, found[test].high)
        assert e.outcome == replace(found[test], adjusted=found[test].p_value).outcome


def test_perturbations_are_the_same_every_time(scenarios, tables):
    again = perturbations(scenarios["nothing"]).assign(dataset="nothing")
    pd.testing.assert_frame_equal(again, tables["nothing"])


def test_columns_and_flips_agree(tables):
    table = pd.concat(tables.values())
    assert not table.duplicated(["dataset", "test", "perturbation"]).any()
    assert ((table["outcome"] != table["reference"]) == table["flipped"]).all()
    assert set(table["test"]) == set(TESTS)
    assert not table.loc[~table["flipped"], "moved"].any()


def test_an_outcome_flipped_where_the_other_test_passes_moves_the_verdict(scenarios):
    study = scenarios["performance"]
    study = replace(study, table=study.table.assign(null_within=study.table["modularity"]))
    own = of(perturbations(study), "H1a null").loc["within-class shuffle as null"]
    assert (own["estimate"], own["reference"], own["outcome"]) == (0.0, "passes", "opposite")
    assert own["verdict"] == "refuted"
    assert own["moved"]


def test_one_network_that_decides_is_named(scenarios):
    """Nine networks gain a little and one loses much: without that one, the gain is clear."""
    table = scenarios["performance"].conditions()
    last = table["epoch"] == table["epoch"].max()
    gain = np.where(table["seed"] == 7, -3.0, 1.0 + 0.01 * table["seed"])
    study = replace(scenarios["performance"], table=table.assign(null_circular=table["modularity"] - gain * last))
    own = of(perturbations(study), "H1a untrained")
    row = own.loc["any one network left out"]
    assert row["detail"] == "without seed 7"
    assert row["flipped"]
    assert row["estimate"] == pytest.approx(np.mean([1 + 0.01 * s for s in range(10) if s != 7]))
    assert own.loc["odd seeds only", "estimate"] == pytest.approx((4 + 0.01 * (1 + 3 + 5 + 9) - 3) / 5)


def test_thresholds_are_halved_and_doubled(scenarios):
    table = scenarios["performance"].conditions()
    near = table.assign(null_circular=table["modularity"] - 0.08 - 0.001 * table["seed"])
    own = of(perturbations(replace(scenarios["performance"], table=near)), "H1a null")
    assert own.loc["threshold 0.025", "outcome"] == "passes"
    assert own.loc["threshold 0.1", "outcome"] == "opposite"


def test_true_labels_against_the_rest_is_a_paired_difference(scenarios):
    study = scenarios["performance"]
    last = study.noise_grid().query("epoch == 6")
    expected = last.query("noise == 0")["modularity"].mean() - last.query("noise > 0")["modularity"].mean()
    row = of(perturbations(study), "H2b").loc["true labels against the rest"]
    assert row["estimate"] == pytest.approx(expected)
    assert row["p"] == 1 / 32


def test_without_a_grid_only_tests_within_runs_are_perturbed(scenarios):
    study = scenarios["performance"]
    true = study.table[study.table["labels"] == "true"].assign(parts="conditions")
    table = perturbations(replace(study, table=true))
    assert set(table["test"]) == {"H1a null", "H1a untrained", "H1b", "H2a", "H3a"}
    assert perturbations(replace(study, table=true.iloc[:0])).empty
    assert list(perturbations(replace(study, table=true.iloc[:0]))) == list(table)


@pytest.mark.parametrize("seeds", [1, 2, 3])
def test_too_few_networks_leave_nothing_to_perturb(seeds):
    table = perturbations(simulated_study("performance", np.random.default_rng(0), seeds=seeds, epochs=2))
    assert set(table["outcome"]) == {"too few runs"}
    assert not table["flipped"].any()
    assert set(table["reference"]) == {"too few runs"}, "no outcome: the page leaves them out"


def test_other_measures_stand_in_for_the_pre_specified_one(scenarios):
    grid = scenarios["performance"].noise_grid()
    extra = {
        "modularity_layer1": -grid["modularity"],
        "modularity_layer2": grid["modularity"],
        "modularity_paper": np.nan,
    }
    plans = {a.name: a for a in plan_perturbations("H2b", grid.assign(**extra))}
    assert "Q of layer 1" in plans
    assert "Q of layer 2" not in plans, "equal to the pre-specified measure"
    assert "Q of the paper's graph" not in plans, "nowhere measured"
    study = replace(scenarios["performance"], table=scenarios["performance"].table.assign(modularity_positive=0.5))
    flat = of(perturbations(study), "H2b").loc["Q of positive firing"]
    assert (flat["estimate"], flat["outcome"]) == (0, "fails")
    turned = evaluate_test("H2b", plans["Q of layer 1"].change(grid.assign(**extra)))
    assert turned.outcome == "opposite"


def test_changes_to_epochs(scenarios):
    rows = rows_of(scenarios["performance"], "H2a")
    plans = {a.name: a.change(rows) for a in plan_perturbations("H2a", rows)}
    assert sorted(plans["without epochs 1 to 3"]["epoch"].unique()) == [4, 5, 6]
    assert sorted(plans["first half of training"]["epoch"].unique()) == [1, 2, 3]
    assert sorted(plans["second half of training"]["epoch"].unique()) == [4, 5, 6]
    steps = plans["steps from epoch to epoch"].query("seed == 3")
    own = rows.query("seed == 3 and epoch > 0").sort_values("epoch")
    np.testing.assert_allclose(steps["modularity"], np.diff(own["modularity"]))
    np.testing.assert_allclose(steps["train_accuracy"], np.diff(own["train_accuracy"]))
    np.testing.assert_array_equal(plans["training loss"]["train_accuracy"], -rows["train_loss"])
    short = {a.name for a in plan_perturbations("H2a", rows[rows["epoch"] < 3])}
    assert not short & {"without epochs 1 to 3", "first half of training", "steps from epoch to epoch"}


def test_since_epoch_1(scenarios):
    rows = rows_of(scenarios["performance"], "H1b")
    changed = next(a for a in plan_perturbations("H1b", rows) if a.name.startswith("since")).change(rows)
    at = {e: rows[rows["epoch"] == e].set_index("seed")["well_defined"] for e in (1, 6)}
    assert evaluate_test("H1b", changed).estimate == pytest.approx((at[6] - at[1]).mean())


def test_partial_between_is_the_partial_correlation(rng):
    noise = np.repeat([0.0, 0.2, 0.5, 0.8, 1.0], 6)
    x, y = (-noise + rng.normal(0, 0.2, noise.size) for _ in range(2))
    rho, (low, high) = partial_between(x, y, noise, noise, rng)
    assert rho == pytest.approx(partial_correlation(x, y, noise))
    assert low < rho < high
    nothing = partial_between(noise, y, noise, noise, rng)
    assert np.isnan([nothing[0], *nothing[1]]).all()


def test_within_levels_removes_all_that_levels_differ_in(rng):
    level = np.repeat(np.arange(8), 5)
    jump = np.array([0.0, 9.0, -4.0, 5.0, 5.5, 2.0, -7.0, 1.0])[level]  # no line through ranks removes this
    x, y = rng.normal(size=(2, level.size))
    rho, interval = within_levels(x, y, level)
    assert within_levels(x + jump, y + jump, level) == (rho, interval)
    centred = [(v.groupby(level).rank() - 3).to_numpy() for v in (pd.Series(x), pd.Series(y))]
    assert rho == pytest.approx(np.corrcoef(*centred)[0, 1])
    assert interval == correlation_test(rho, 33)[1]
    assert np.isnan(within_levels(jump, y, level)[0])


def test_the_interval_within_levels_covers_no_correlation(rng):
    """Accuracies of one level change places: the true correlation is 0, and 95 % of the intervals must say so."""
    level = np.repeat(np.arange(8), 5)
    inside = 0
    for _ in range(300):
        x, y = rng.normal(size=(2, level.size)) + 3 * level
        _, (low, high) = within_levels(x, y, level)
        inside += low <= 0 <= high
    assert inside >= 275, "0.917, three standard errors below 0.95"


def test_active_neurons_take_the_place_of_all(scenarios):
    study, names = scenarios["performance"], ["parts", "labels", "seed"]
    table = study.table.assign(run=study.table[names].astype(str).agg(" ".join, axis=1))
    study = replace(study, table=table)
    ends = table[table["epoch"].isin([0, table["epoch"].max()])]
    active = ends[["run", "epoch", "null_circular", "well_defined"]].assign(modularity=-ends["modularity"])
    counted = replace(study, extras={"active": active})
    found = perturbations(counted)
    assert set(found.loc[found["perturbation"] == "active neurons only", "test"]) == {
        *("H1a null", "H1a untrained", "H1b", "H2b"),
    }
    assert of(found, "H2b").loc["active neurons only", "outcome"] == "opposite"
    assert "active neurons only" not in set(perturbations(study)["perturbation"])


def test_levels_that_hardly_learn_are_left_out(scenarios):
    grid = rows_of(scenarios["performance"], "H2b")
    stuck = grid.assign(train_accuracy=np.where(grid["noise"] > 0.6, 0.11, 0.9))
    plans = {a.name: a for a in plan_perturbations("H2b", stuck)}
    assert plans["without levels that hardly learn"].change(stuck)["noise"].max() <= 0.6
    assert "without levels that hardly learn" not in {
        a.name for a in plan_perturbations("H2b", grid.assign(train_accuracy=1))
    }


def test_the_page_counts_flips_and_finds_words():
    row = {"dataset": "d", "hypothesis": "H2", "test": "H2b", "kind": "measure", "perturbation": "a", "detail": ""}
    row |= {"estimate": 0.5, "low": 0.1, "high": 0.8, "p": 0.01, "outcome": "passes", "reference": "passes"}
    row |= {"flipped": False, "verdict": "supported", "moved": False}
    flipped = {"outcome": "fails", "flipped": True, "verdict": "not supported", "moved": True}
    table = pd.DataFrame(
        [
            *(row | {"perturbation": name} for name in "abc"),
            row | flipped | {"perturbation": "z"},
            row | {"dataset": "e"},
            row | flipped | {"dataset": "f", "kind": "networks", "detail": "without seed 1"},
        ]
    )
    count = cell_of("robustness", "def count")["count"]
    found = count(table, "test")
    assert found["perturbations"].tolist() == [4, 1, 1]
    assert found["flipped"].tolist() == [1, 0, 1]
    assert found["word"].tolist() == ["depends on the choice", "robust", "fragile"]
    assert found["moved"].tolist() == [1, 0, 1]
    assert count(table, "hypothesis")["word"].tolist() == found["word"].tolist()
    beyond = count(table.assign(verdict="not measurable"), "test")
    assert set(beyond["word"]) == {"not measurable"}, "at its ceiling, a measure is neither robust nor fragile"
    held = count(table.astype(object), "test")  # as pandas leaves numbers behind a table without rows
    assert held.astype(found.dtypes).equals(found)


def test_a_figure_has_a_row_for_each_perturbation(tables):
    table = pd.concat(tables.values())
    own = table[table["hypothesis"] == "H2"]
    figure = outcome_matrix(own)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    perturbed = own.drop_duplicates(["test", "perturbation"])
    assert len(labels) == len(perturbed) + 2 * own["test"].nunique()
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == list(tables)
    assert len(figure.axes[0].patches) == own["flipped"].sum()
    plt.close(figure)
    with pytest.raises(ValueError, match="at least one row"):
        outcome_matrix(own.iloc[:0])


def test_the_map_of_flips_holds_their_shares(tables):
    table = pd.concat(tables.values())
    axes = flip_map(table).axes[0]
    kinds, columns = ([text.get_text() for text in side] for side in (axes.get_yticklabels(), axes.get_xticklabels()))
    shown = np.ma.filled(axes.collections[0].get_array().astype(float), np.nan).reshape(len(kinds), len(columns))
    for kind, row in zip(kinds, shown, strict=True):
        for column, value in zip(columns, row, strict=True):
            own = table[(table["kind"] == kind) & (table["hypothesis"] + " " + table["dataset"] == column)]["flipped"]
            assert own.empty if np.isnan(value) else value == pytest.approx(own.mean())
    with pytest.raises(ValueError, match="at least one row"):
        flip_map(table.iloc[:0])


def test_what_is_at_its_ceiling_moves_no_verdict(scenarios, monkeypatch):
    monkeypatch.setattr(robustness, "saturation", lambda results: "11.69 of 11.69 bits")
    found = perturbations(scenarios["performance"])
    own = found[found["hypothesis"] == "H3"]
    assert set(own["verdict"]) == {"not measurable"}
    assert not own["moved"].any()
    assert own["flipped"].any()
    assert "not measurable" not in set(found.loc[found["hypothesis"] != "H3", "verdict"])


def test_unknown_tests_are_refused(scenarios):
    with pytest.raises(ValueError, match="test must be one of H1a null"):
        evaluate_test("H4", scenarios["nothing"].table)
    with pytest.raises(ValueError, match="test must be one of H1a null"):
        plan_perturbations("H4", scenarios["nothing"].table)
    assert set(PRIMARY) == {"H2", "H3"}
