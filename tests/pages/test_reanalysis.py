from __future__ import annotations

import pytest
from scipy import stats as scipy_stats

from nbutils.pages import reanalysis
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


def test_an_unknown_scenario_is_refused_in_one_sentence(rng):
    with pytest.raises(ValueError, match=r"\Ascenario must be one of noise, .*\Z"):
        reanalysis.simulated_pairs("moon", 1, 5, rng)
