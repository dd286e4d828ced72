from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbutils.drawing.display import interval_text
from nbutils.pages.specification_curve import show_curves, specification_curve, specification_table
from nbutils.stats import between_conditions
from nbutils.study.specifications import FACTORS, PRIMARY_H2, PRIMARY_H3, specifications

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


def test_signs_by_hand(accuracy):
    labels = [s.label for s in ALL if s.hypothesis == "H2"][:4]
    rank = accuracy.argsort().argsort()
    values = pd.DataFrame(dict(zip(labels, [rank, -rank, rank * 0, rank**3], strict=True)))
    table = specification_table(values, accuracy, NOISE, draws=99).set_index("label")
    assert table.loc[labels, "rho"].tolist() == pytest.approx([1, -1, 0, 1])
    assert table.loc[labels, "agrees"].tolist() == [True, False, False, True]
    assert table.loc[labels, "clear"].tolist() == [True, False, False, True]


def test_an_entropy_that_falls_agrees(accuracy):
    values = pd.DataFrame({PRIMARY_H3.label: -accuracy})
    table = specification_table(values, accuracy, NOISE, draws=49)
    assert table["rho"].tolist() == pytest.approx([-1])
    assert table["clear"].all()


def test_bad_tables_are_refused(values, accuracy):
    with pytest.raises(ValueError, match="columns of values must be labels of specifications"):
        specification_table(values.rename(columns={PRIMARY_H2.label: "Q"}), accuracy, NOISE)
    with pytest.raises(ValueError, match="must be one per row of values"):
        specification_table(values, accuracy[:3], NOISE)
    with pytest.raises(ValueError, match="table must have at least one row"):
        specification_curve(pd.DataFrame())


@pytest.mark.parametrize("hypothesis", ["H2", "H3"])
def test_the_plot_shows_every_specification_and_choice(values, accuracy, hypothesis):
    table = specification_table(values, accuracy, NOISE, draws=49)
    table = table[table["hypothesis"] == hypothesis].reset_index(drop=True)
    plot = specification_curve(table)
    assert [point.y for point in plot.points] == pytest.approx((table["predicted"] * table["rho"]).tolist())
    varied = [factor for factor in FACTORS if table[factor].nunique() > 1]
    assert len(plot.rows) == sum(1 + len(set(table[factor]) - {""}) for factor in varied)
    marks = sum(len(point.rows) for point in plot.points)
    assert marks == sum((table[factor] != "").sum() for factor in varied)
    headings = [n for n, (_, heading) in enumerate(plot.rows) if heading]
    assert [plot.rows[n][0] for n in headings] == [FACTORS[factor] for factor in varied]
    assert not {row for point in plot.points for row in point.rows} & set(headings)
    assert f"{len(table)} specifications" in plot.alt


def test_every_point_says_its_choices_estimate_and_interval(values, accuracy):
    table = specification_table(values, accuracy, NOISE, draws=49).query("hypothesis == 'H3'").reset_index(drop=True)
    plot = specification_curve(table)
    for n, (row, point) in enumerate(zip(table.itertuples(), plot.points, strict=True), 1):
        assert point.text.startswith(f"{n} of {len(table)}, primary: " if row.primary else f"{n} of {len(table)}: ")
        ends = sorted((row.predicted * row.low, row.predicted * row.high))
        assert f"effect {interval_text(row.predicted * row.rho, *ends)};" in point.text
        assert (point.low, point.high) == pytest.approx(tuple(ends))
        for factor, name in FACTORS.items():
            word = getattr(row, factor)
            assert (f" {name}: {word}" in point.text) == bool(word)


def test_colours_say_where_the_interval_lies():
    rows = [("a", 0.5, 0.2, 0.8, True), ("b", 0.4, 0.2, 0.8, False), ("c", -0.5, -0.8, -0.2, False)]
    table = pd.DataFrame([*rows, ("d", 0.0, -1.0, 1.0, False)], columns=["label", "rho", "low", "high", "primary"])
    plot = specification_curve(table.assign(hypothesis="H2", predicted=1, **dict.fromkeys(FACTORS, "")))
    meant = dict(plot.legend)
    words = ["interval below 0", "interval holds 0", "interval above 0", "primary"]
    assert [meant[point.colour] for point in plot.points] == words


def test_one_specification_is_a_plot_too(accuracy):
    table = specification_table(pd.DataFrame({PRIMARY_H2.label: accuracy}), accuracy, NOISE, draws=49)
    plot = specification_curve(table)
    assert len(plot.points) == 1
    assert plot.rows == ()
    assert "nb-plot" in plot._repr_html_()


def test_one_chooses_between_curves(values, accuracy):
    table = specification_table(values, accuracy, NOISE, draws=49)
    shown = show_curves(pd.concat([table.assign(dataset=name) for name in ("mnist", "odd")]), "Source: here.")
    for name in ("MNIST", "odd"):
        for hypothesis in ("H2", "H3"):
            assert f"[&quot;{hypothesis}&quot;,&quot;{name}&quot;]" in shown.text
    own = table[table["hypothesis"] == "H2"]
    assert f"{own['agrees'].sum()} of {len(own)} specifications of H2 on MNIST" in shown.text
    assert "Source: here." in shown.text
