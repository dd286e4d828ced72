from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbutils.pages.specification_curve import specification_curve, specification_table
from nbutils.stats import between_conditions
from nbutils.study.specifications import FACTORS, PRIMARY_H2, PRIMARY_H3, specifications
from nbutils.support.display import show

ALL = specifications()
NOISE = np.repeat([0.0, 0.25, 0.5, 0.75, 1.0], 3)


@pytest.fixture
def accuracy(rng):
    return 1 - NOISE + rng.normal(0, 0.02, NOISE.size)


@pytest.fixture
def values(rng, accuracy):
    """H2 follows accuracy with more and more scatter; H3 likewise, downwards."""
    scatter = np.linspace(0.01, 1.5, len(ALL))
    found = {s.label: s.predicted * accuracy + rng.normal(0, w, NOISE.size) for s, w in zip(ALL, scatter, strict=True)}
    return pd.DataFrame(found)


def test_rows_hold_rho_its_interval_and_what_was_chosen(values, accuracy):
    table = specification_table(values, accuracy, NOISE, draws=99)
    assert len(table) == len(ALL)
    row = table.set_index("label").loc[PRIMARY_H3.label]
    series = values[PRIMARY_H3.label]
    assert row["rho"] == pytest.approx(stats.spearmanr(series, accuracy).statistic)
    _, (low, high) = between_conditions(series, accuracy, NOISE, np.random.default_rng(0), draws=99)
    assert (row["low"], row["high"]) == (low, high)
    assert {factor: row[factor] for factor in FACTORS if row[factor]} == PRIMARY_H3.choices
    assert row["predicted"] == -1
    assert table["primary"].sum() == 2


def test_sorted_by_effect_within_a_hypothesis(values, accuracy):
    table = specification_table(values, accuracy, NOISE, draws=49)
    assert table["hypothesis"].is_monotonic_increasing
    for _, group in table.groupby("hypothesis"):
        assert (group["predicted"] * group["rho"]).is_monotonic_increasing


@pytest.fixture
def counted(cells):
    """What the page's cells count on curves: a row per hypothesis and data set."""
    return lambda tables: cells("specification_curve", "11", tables=tables, pd=pd)["curves"]


def test_signs_by_hand(accuracy, counted):
    labels = [s.label for s in ALL if s.hypothesis == "H2"][:4]
    rank = accuracy.argsort().argsort()
    values = pd.DataFrame(dict(zip(labels, [rank, -rank, rank * 0, rank**3], strict=True)))
    table = specification_table(values, accuracy, NOISE, draws=99).set_index("label")
    assert table.loc[labels, "rho"].tolist() == pytest.approx([1, -1, 0, 1])
    assert table.loc[labels, "agrees"].tolist() == [True, False, False, True]
    assert table.loc[labels, "clear"].tolist() == [True, False, False, True]
    summary = counted({"one": table.reset_index()}).loc[("H2", "one")]
    assert summary[["agrees", "clear"]].tolist() == [0.5, 0.5]
    assert summary[["median", "primary"]].tolist() == pytest.approx([0.5, 1])


def test_an_entropy_that_falls_agrees(accuracy, counted):
    values = pd.DataFrame({PRIMARY_H3.label: -accuracy})
    table = specification_table(values, accuracy, NOISE, draws=49)
    assert table["rho"].tolist() == pytest.approx([-1])
    assert table["clear"].all()
    assert counted({"one": table})["primary"].tolist() == pytest.approx([1])


def test_without_the_primary_specification_there_is_none(accuracy, counted):
    label = next(s.label for s in ALL if not s.primary)
    table = specification_table(pd.DataFrame({label: accuracy}), accuracy, NOISE, draws=49)
    assert counted({"one": table})["primary"].isna().all()


def test_bad_tables_are_refused(values, accuracy):
    with pytest.raises(ValueError, match="columns of values must be labels of specifications"):
        specification_table(values.rename(columns={PRIMARY_H2.label: "Q"}), accuracy, NOISE)
    with pytest.raises(ValueError, match="must be one per row of values"):
        specification_table(values, accuracy[:3], NOISE)
    with pytest.raises(ValueError, match="table must have at least one row"):
        specification_curve(pd.DataFrame())


@pytest.mark.parametrize("hypothesis", ["H2", "H3"])
def test_the_figure_shows_every_specification_and_choice(values, accuracy, hypothesis):
    table = specification_table(values, accuracy, NOISE, draws=49)
    table = table[table["hypothesis"] == hypothesis]
    figure = specification_curve(table)
    top, bottom = figure.axes
    (shown,) = (c.get_offsets() for c in top.collections if len(c.get_offsets()) == len(table))
    assert np.asarray(shown)[:, 1] == pytest.approx((table["predicted"] * table["rho"]).to_numpy())
    words = [tick.get_text() for tick in bottom.get_yticklabels()]
    varied = [factor for factor in FACTORS if table[factor].nunique() > 1]
    assert len(words) == sum(1 + len(set(table[factor]) - {""}) for factor in varied)
    dots = sum(len(c.get_offsets()) for c in bottom.collections)
    assert dots == sum((table[factor] != "").sum() for factor in varied)
    assert not plt.get_fignums()
    assert "<svg" in show(figure, "A curve.", "A curve.").text


def test_one_specification_is_a_figure_too(accuracy):
    table = specification_table(pd.DataFrame({PRIMARY_H2.label: accuracy}), accuracy, NOISE, draws=49)
    assert len(specification_curve(table).axes) == 2
