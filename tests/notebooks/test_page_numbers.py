"""What pages compute in their own cells, against independent implementations: the cells run here as they stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from scipy import stats as scipy_stats

from nbutils.pages.evolution import community_selectivity
from nbutils.series import detrended_correlation, saturating_curve

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture(scope="module")
def page() -> Callable[[str], dict[str, Any]]:
    """The variables of a notebook after all its cells, with its own defaults; read from committed tables."""
    known: dict[str, dict[str, Any]] = {}

    def executed(name: str) -> dict[str, Any]:
        if name not in known:
            known[name] = {}
            with pytest.MonkeyPatch.context() as here:
                here.chdir(FOLDER)
                for cell in nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells:
                    if cell.cell_type == "code":
                        exec(compile(cell.source, f"{name}: {cell.id}", "exec"), known[name])
        return known[name]

    return executed


def test_predictors_and_tests_of_the_published_series(page):
    names = page("reanalysis")
    series, table, tests = names["series"], names["table"], names["tests"].set_index(["accuracy", "test"])
    assert table.loc["network entropy", "entropy"] == pytest.approx(1)
    by_hand = scipy_stats.pearsonr(1 - np.exp(-series["epoch"] / 4), series["train_accuracy"]).statistic
    assert table.loc["1 − exp(−t/4)", "training accuracy"] == pytest.approx(by_hand)
    ranks = series.rank()
    left = [
        np.polynomial.Polynomial.fit(ranks["epoch"], ranks[c], 1)(ranks["epoch"]) - ranks[c]
        for c in ("entropy_bits", "test_accuracy")
    ]
    found = tests.loc[("test accuracy", "ranks, given the epoch")]
    assert found["r"] == pytest.approx(np.corrcoef(left)[0, 1])
    assert found["r"] > 0, "the sign flips once the epoch is held fixed"
    assert found["pairs"] == 19
    sizes = tests["pairs"].xs("effective number of pairs", level="test")
    assert sizes.between(9, 11).all()
    assert (tests["low"] < tests["r"]).all()
    assert (tests["r"] < tests["high"]).all()


def test_the_figure_of_the_time_constant_shows_what_is_left(page):
    names = page("reanalysis")
    series, figures = names["series"], names["reanalysis"]
    drawn = figures.sensitivity_figure(names["sensitivity"], names["found"], len(series), 4.0)
    constant, left_over = (values[30] for values in drawn.axes[1].lines[0].get_data())
    curve = saturating_curve(series["epoch"], constant)
    assert left_over == pytest.approx(detrended_correlation(series["entropy_bits"], series["train_accuracy"], curve))


def test_the_ablation_takes_its_words_from_changes_paired_by_seed(page):
    names = page("reconstruction")
    rows, changes = names["rows"], names["changes"]
    last = rows[rows["epoch"] == 20].set_index("seed")
    plain, bits = (last.loc[last["switch"] == "the paper's", c] for c in ("modularity", "pattern_entropy"))
    for switch, own in last.groupby("switch"):
        if switch != "the paper's":
            assert changes.loc[switch, "Q"] == pytest.approx((own["modularity"] - plain).mean())
            assert changes.loc[switch, "entropy"] == pytest.approx((own["pattern_entropy"] / bits - 1).mean())
    inside = changes["Q low"].ge(-0.05) & changes["Q high"].le(0.05)
    assert not changes.loc[inside, "moves Q"].any()
    beyond = changes["entropy low"].gt(0.01) | changes["entropy high"].lt(-0.01)
    assert (changes["moves entropy"] == beyond).all()
    moved = set(changes.index[changes["moves Q"]])
    assert moved == set(names["switches"]["moves Q"].split(", "))
    assert names["low"] <= names["lost"].mean() <= names["high"]


def test_the_published_series_beside_ours(page):
    names = page("reconstruction")
    beside, bits = names["beside"], names["bits"]
    for way, wide in names["ours"].items():
        mean, row = wide.mean(axis=1).to_numpy(), beside.loc[way]
        assert row["distance"] == pytest.approx(np.sqrt(np.mean((mean - bits.to_numpy()) ** 2)))
        assert row["r"] == pytest.approx(scipy_stats.pearsonr(mean, bits).statistic)
        assert row["r of steps"] == pytest.approx(scipy_stats.pearsonr(np.diff(mean), np.diff(bits)).statistic)
        assert row["inside"] == np.mean((wide.min(axis=1) <= bits) & (bits <= wide.max(axis=1)))
        by_seed = [np.sqrt(np.mean((wide[seed] - bits) ** 2)) for seed in wide]
        assert names["far"][way].tolist() == pytest.approx(by_seed)
    assert np.sign(beside.loc["published", "change"]) == -1


def test_the_curves_in_numbers(page):
    names = page("specification_curve")
    for dataset, table in names["tables"].items():
        for hypothesis, own in table.groupby("hypothesis"):
            effect = own["predicted"] * own["rho"]
            assert names["agrees"][hypothesis, dataset] == (effect > 1e-9).mean()
            assert names["medians"][hypothesis, dataset] == pytest.approx(np.median(effect))
            clear = np.where(own["predicted"] > 0, own["low"] > 0, own["high"] < 0)
            assert own["clear"].tolist() == clear.tolist()


def test_classes_by_chance_agree_with_a_simulation(page):
    names = page("evolution")
    rng, classes = np.random.default_rng(0), names["classes"]
    clear = community_selectivity(names["example"].extra("selectivity"))
    assert classes["epoch"].tolist() == [0, 20] * classes["labels"].nunique()
    for row in classes.itertuples(index=False):
        own = clear[(clear["labels"] == row.labels) & (clear["epoch"] == row.epoch)]
        drawn = [len(set(rng.integers(10, size=m))) for m in own["communities"] for _ in range(2000)]
        assert row[4] == pytest.approx(np.mean(drawn), abs=0.05)
        assert (row.classes, row.selectivity) == pytest.approx((own["classes"].mean(), own["selectivity"].mean()))


def test_what_is_said_of_settling_follows_from_the_table(page):
    names = page("evolution")
    settled, steps = names["settled"].set_index("labels"), names["steps"]
    last = steps[(steps["labels"] == "true") & (steps["epoch"] == 20)]
    assert settled.loc["true", "last_step"] == pytest.approx(last["agreement"].mean())
    assert settled.loc["true", "reading"] == ("still changing" if names["high"] < 0 else "as still as the search")
