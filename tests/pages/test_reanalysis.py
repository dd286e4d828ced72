from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from nbutils.pages import reanalysis
from nbutils.series import (
    detrended_correlation,
    saturating_curve,
)
from nbutils.support.code import definitions_behind
from nbutils.support.files import file_digest

FILE = "book/results/published/mnist_entropy.csv"


def test_the_published_correlations_follow_from_the_published_figures(root):
    series = reanalysis.read_series(root / FILE)
    assert series["epoch"].tolist() == list(range(1, 21))
    for column, value in reanalysis.PUBLISHED_PEARSON.items():
        found = scipy_stats.pearsonr(series["entropy_bits"], series[column]).statistic
        assert found == pytest.approx(value, abs=5e-10)


def test_published_figures_are_found_from_the_notebooks_folder(root, monkeypatch, tmp_path):
    monkeypatch.chdir(root / "notebooks")
    assert len(reanalysis.read_series(FILE)) == 20
    with pytest.raises(FileNotFoundError, match=r"no published figures at 'nothing\.csv'"):
        reanalysis.read_series("nothing.csv")
    rows = (root / FILE).read_text("utf-8").splitlines()
    for kept, words in ((rows[:4], "at least five epochs"), ([r.rpartition(",")[0] for r in rows], "test_accuracy")):
        (tmp_path / "bad.csv").write_text("\n".join(kept))
        with pytest.raises(ValueError, match=words):
            reanalysis.read_series(tmp_path / "bad.csv")


def test_a_page_over_the_figures_depends_on_their_content_and_on_the_code(root, tmp_path):
    before = file_digest(root / FILE)
    (tmp_path / "other.csv").write_text((root / FILE).read_text("utf-8").replace("0.942283", "0.942284"))
    assert file_digest(tmp_path / "other.csv") != before
    assert file_digest(root / FILE) == before
    used = {module for module, _ in definitions_behind("nbutils.pages.reanalysis")}
    assert {"nbutils.pages.reanalysis", "nbutils.series", "nbutils.stats"} <= used


def test_predictors_and_tests_of_the_published_series(root):
    series = reanalysis.read_series(root / FILE)
    table = reanalysis.predictor_table(series).set_index("predictor")
    assert table.loc["network entropy", "entropy"] == pytest.approx(1)
    by_hand = scipy_stats.pearsonr(1 - np.exp(-series["epoch"] / 4), series["train_accuracy"]).statistic
    assert table.loc["1 − exp(−t/4)", "training accuracy"] == pytest.approx(by_hand)
    tests = reanalysis.all_tests(series).set_index(["accuracy", "test"])
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


def test_time_alone_fools_only_the_naive_tests(rng):
    rates = reanalysis.rejection_rates(100, 20, rng).set_index("test")
    assert rates["same curve"].iloc[:3].min() > 0.9
    assert rates["same curve"].iloc[3:].max() < 0.35
    assert rates["noise"].max() < 0.15
    assert rates["same curve, linked"].min() > 0.8


def test_the_figures_show_what_the_tables_hold(root):
    series = reanalysis.read_series(root / FILE)
    drawn = reanalysis.series_figure(series)
    assert [len(ax.lines[1].get_xdata()) for ax in drawn.axes] == [20, 20, 20]
    table = reanalysis.predictor_table(series)
    dots = reanalysis.predictor_figure(table).axes[1].collections[-1].get_offsets()
    assert dots[:, 0].tolist() == pytest.approx(table["test accuracy"].abs().tolist())
    right = reanalysis.knob_figure(series).axes[1].lines[0]
    knob, left_over = right.get_xdata()[30], right.get_ydata()[30]
    curve = saturating_curve(series["epoch"], knob)
    assert left_over == pytest.approx(detrended_correlation(series["entropy_bits"], series["train_accuracy"], curve))


def test_an_unknown_world_is_refused_in_one_sentence(rng):
    with pytest.raises(ValueError, match=r"\Aworld must be one of noise, .*\Z"):
        reanalysis.simulated_pairs("moon", 1, 5, rng)
