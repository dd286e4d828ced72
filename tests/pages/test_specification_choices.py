from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbutils.pages import specification_curve
from nbutils.pages.specification_curve import (
    agreement_of_data_sets,
    choice_effects,
    null_effects,
    option_effects,
    option_map,
)
from nbutils.study.specifications import FACTORS, PRIMARY_H2, PRIMARY_H3, specifications

ALL = specifications()
NOISE = np.repeat([0.0, 0.25, 0.5, 0.75, 1.0], 3)
NULLS = [one for one in ALL if one.null not in ("", "nothing")]


def table_of(rho) -> pd.DataFrame:
    """All specifications with given correlations."""
    rows = [
        {**dict.fromkeys(FACTORS, ""), **s.choices}
        | {"hypothesis": s.hypothesis, "label": s.label, "primary": s.primary, "predicted": s.predicted}
        for s in ALL
    ]
    return pd.DataFrame(rows).assign(rho=rho, low=np.asarray(rho) - 0.1, high=np.asarray(rho) + 0.1)


@pytest.fixture
def table(rng):
    return table_of(rng.uniform(-1, 1, len(ALL)))


def test_shares_are_those_of_an_analysis_of_variance(table):
    found = choice_effects(table).set_index(["hypothesis", "choice"])
    for hypothesis, group in table.groupby("hypothesis"):
        effect = group["predicted"] * group["rho"]
        for factor, name in FACTORS.items():
            parts = [effect[group[factor] == word] for word in set(group[factor])]
            if len(parts) == 1:
                assert (hypothesis, name) not in found.index
                continue
            f, n, k = stats.f_oneway(*parts).statistic, len(group), len(parts)
            row = found.loc[(hypothesis, name)]
            assert row["share"] == pytest.approx(f * (k - 1) / (f * (k - 1) + n - k))
            assert row["by_chance"] == pytest.approx((k - 1) / (n - 1))
            assert row["options"] == k


def test_chance_is_what_random_effects_give(rng):
    shares = [
        choice_effects(table_of(rng.normal(size=len(ALL)))).set_index(["hypothesis", "choice"]) for _ in range(60)
    ]
    mean = pd.concat(shares).groupby(level=[0, 1])[["share", "by_chance"]].mean()
    assert (mean["share"] - mean["by_chance"]).abs().max() < 0.03


def test_a_choice_that_decides_everything_has_share_one():
    table = table_of([s.predicted * (0.5 if s.firing == "positive" else -0.5) for s in ALL])
    found = choice_effects(table).groupby("hypothesis").first()
    assert found["choice"].tolist() == ["rule of firing", "rule of firing"]
    assert found["share"].tolist() == pytest.approx([1, 1])
    assert choice_effects(table_of(0.0 * np.arange(len(ALL))))["share"].isna().all()


def test_one_step_from_the_primary_specification(table):
    found = choice_effects(table).set_index(["hypothesis", "choice"])
    rho = table.set_index("label")["rho"]
    steps = [replace(PRIMARY_H2, algorithm="Louvain", primary=False)]
    steps += [replace(PRIMARY_H2, algorithm="label propagation", primary=False)]
    steps += [replace(PRIMARY_H2, resolution=resolution, primary=False) for resolution in (0.5, 2.0)]
    own = rho[[step.label for step in steps]]
    assert found.loc[("H2", "communities"), ["alone", "lowest", "highest"]].tolist() == [4, own.min(), own.max()]
    plug_in = replace(PRIMARY_H3, correction="plug-in", primary=False)
    assert found.loc[("H3", "estimate"), "lowest"] == -rho[plug_in.label]
    without = choice_effects(table[~table["primary"]])
    assert without["alone"].sum() == 0
    assert without["lowest"].isna().all()


@pytest.fixture
def page_of(cells):
    """The variables of the page's cells of these numbers, on curves by data set."""
    taken = SimpleNamespace(
        choice_effects=choice_effects,
        fold=lambda *_, **__: None,
        show_table=lambda *_, **__: None,
    )
    shown = SimpleNamespace(show=lambda *_, **__: None)
    names = {"np": np, "pd": pd, "nb": taken, "page": shown, "specification_curve": specification_curve}

    def run(tables, *numbers, **given):
        complete = {name: one.assign(agrees=one["rho"] > 0, clear=one["low"] > 0) for name, one in tables.items()}
        return cells("specification_curve", "11", *numbers, tables=complete, **names, **given)

    return run


@pytest.fixture
def found_of(page_of):
    """The variables of the page's findings, on curves by data set; without joint tests and null models."""
    answers = pd.DataFrame(columns=["hypothesis", "dataset", "reading", "adjusted"])
    plain = pd.DataFrame(columns=["dataset", "Q", "Q_left"])
    return lambda tables: page_of(tables, "23", "35", grids={}, answers=answers, plain=plain)


def test_the_choice_that_decides_most(table, found_of):
    decided = table_of([s.predicted * (0.5 if s.firing == "positive" else -0.5) for s in ALL])
    assert found_of({"a": decided, "b": decided})["top"] == dict.fromkeys(("H2", "H3"), "rule of firing")
    found = found_of({"a": table})
    for hypothesis, rows in choice_effects(table).groupby("hypothesis"):
        beyond = (rows["share"] - rows["by_chance"]).set_axis(rows["choice"])
        assert found["top"][hypothesis] == beyond.idxmax()


def test_span_of_signs_over_data_sets(rng, found_of):
    size = rng.uniform(0.1, 1, len(ALL))
    none, all_of_them = (table_of(sign * size * [s.predicted for s in ALL]) for sign in (-1, 1))
    span = found_of({"a": none, "b": all_of_them})["span"]
    assert span[["min", "max"]].values.tolist() == [["0%", "100%"]] * 2


def test_means_by_option(table, page_of):
    found = page_of({"a": table}, "16")["means"].stack(["hypothesis", "dataset"], future_stack=True).dropna()
    for (choice, option, hypothesis, dataset), mean in found.sample(12, random_state=0).items():
        factor = next(key for key, name in FACTORS.items() if name == choice)
        chosen = table[(table["hypothesis"] == hypothesis) & (table[factor] == option)]
        assert mean == pytest.approx((chosen["predicted"] * chosen["rho"]).mean())
        assert dataset == "a"


def test_what_null_models_leave(rng):
    accuracy = 1 - NOISE
    q = 0.5 + 0.2 * accuracy
    values = pd.DataFrame({s.label: q if s.null == "nothing" else accuracy * 0 for s in ALL if s.hypothesis == "H2"})
    above = NULLS[0]
    values[above.label] = -q
    found = null_effects(values, accuracy, NOISE, draws=99)
    assert found[["graph", "null"]].values.tolist() == [[s.graph, s.null] for s in NULLS]
    assert found["Q"].tolist() == pytest.approx([q.mean()] * len(NULLS))
    assert found["rho"].tolist() == pytest.approx([1] * len(NULLS))
    assert found["rho_left"].tolist() == pytest.approx([-1, *[0] * (len(NULLS) - 1)])
    assert found["change"].tolist() == pytest.approx([-2, *[-1] * (len(NULLS) - 1)])
    assert (found["low"] <= found["change"]).all()
    assert (found["high"] >= found["change"]).all()
    assert null_effects(values.drop(columns=PRIMARY_H2.label), accuracy, NOISE)["graph"].unique().tolist() == [
        "phi",
        "paper's",
    ]
    with pytest.raises(ValueError, match="accuracies and noise must be one per row of values"):
        null_effects(values, accuracy[:4], NOISE)


def test_data_sets_that_agree_and_that_do_not(table, found_of):
    turned = table.assign(rho=-table["rho"])
    found = found_of({"a": table, "b": table, "c": turned.sample(frac=1, random_state=0)})["agree"]
    assert found[["hypothesis", "first", "second"]].values.tolist() == [
        [h, *pair] for h in ("H2", "H3") for pair in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    assert found["rho"].tolist() == pytest.approx([1, -1, -1] * 2)
    assert found_of({"a": table})["agree"].empty
    both = found_of({"a": table, "b": table[table["hypothesis"] == "H3"]})["agree"]
    assert both.set_index("hypothesis")["rho"]["H3"] == pytest.approx(1)


def test_the_map_of_options_holds_mean_effects(table):
    curves = pd.concat(
        [table.assign(dataset="a", effect=table["rho"]), table.assign(dataset="b", effect=-table["rho"])]
    )
    means = option_effects(curves)
    assert means.columns.tolist() == [("H2", "a"), ("H2", "b"), ("H3", "a"), ("H3", "b")]
    for factor, choice in FACTORS.items():
        for option, own in table[table[factor] != ""].groupby(factor):
            for hypothesis, rows in own.groupby("hypothesis"):
                found = means.loc[(choice, option), hypothesis]
                assert found.tolist() == pytest.approx([rows["rho"].mean(), -rows["rho"].mean()])
    axes = option_map(means).axes[0]
    assert len(axes.get_yticklabels()) == len(means)


def test_agreement_of_data_sets_is_a_rank_correlation(table, rng):
    other = rng.normal(size=len(table))
    curves = pd.concat([table.assign(dataset="a", effect=table["rho"]), table.assign(dataset="b", effect=other)])
    for row in agreement_of_data_sets(curves).itertuples():
        own = table["hypothesis"].to_numpy() == row.hypothesis
        assert row.rho == pytest.approx(stats.spearmanr(table["rho"][own], other[own]).statistic)
    assert agreement_of_data_sets(curves[curves["dataset"] == "a"]).empty
