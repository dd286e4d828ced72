from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import nbutils
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
        correlation=nbutils.correlation,
        interval_text=nbutils.interval_text,
        show_table=lambda *_, **__: None,
    )
    names = {"np": np, "pd": pd, "nb": taken, "FACTORS": FACTORS, "product": product, "combinations": combinations}

    def run(tables, *numbers):
        complete = {name: one.assign(agrees=one["rho"] > 0, clear=one["low"] > 0) for name, one in tables.items()}
        return cells("specification_curve", "11", *numbers, tables=complete, **names)

    return run


def test_one_step_in_words(table, page_of):
    found = page_of({"a": table, "b": table[~table["primary"]]}, "13", "15")["steps"].loc["H3"]
    plug_in = -table.set_index("label")["rho"][replace(PRIMARY_H3, correction="plug-in", primary=False).label]
    assert found.loc[("estimate", 1), "a"] == f"{plug_in:.2f} to {plug_in:.2f}"
    row = choice_effects(table).set_index(["hypothesis", "choice"]).loc[("H3", "rule of firing")]
    assert found.loc[("rule of firing", row["alone"]), "a"] == f"{row['lowest']:.2f} to {row['highest']:.2f}"
    assert "b" not in found, "without the primary specification there is no step from it"


def test_means_by_option(table, page_of):
    found = page_of({"a": table}, "16")["means"]
    for row in found.sample(12, random_state=0).itertuples():
        factor = next(key for key, name in FACTORS.items() if name == row.choice)
        chosen = table[(table["hypothesis"] == row.hypothesis) & (table[factor] == row.option)]
        effect = chosen["predicted"] * chosen["rho"]
        assert row.size == len(chosen)
        assert (row.mean, row.min, row.max) == pytest.approx((effect.mean(), effect.min(), effect.max()))
    assert set(found["dataset"]) == {"a"}


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


def test_data_sets_that_agree_and_that_do_not(table, page_of):
    turned = table.assign(rho=-table["rho"])
    found = page_of({"a": table, "b": table, "c": turned.sample(frac=1, random_state=0)}, "21")["pairs"]
    assert found[["hypothesis", "first", "second"]].values.tolist() == [
        [h, *pair] for h in ("H2", "H3") for pair in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    assert found["ρ"].tolist() == pytest.approx([1, -1, -1] * 2)
    assert found["same sign"].tolist() == [1, 0, 0] * 2
    assert page_of({"a": table}, "21")["pairs"].empty
    both = page_of({"a": table, "b": table[table["hypothesis"] == "H3"]}, "21")["pairs"]
    assert both.set_index("hypothesis")["specifications"]["H3"] == 35


def test_the_list_names_every_specification_once(table, page_of):
    listing = page_of({"a": table, "b": table[table["primary"]]}, "33")["listing"].fillna("").reset_index()
    assert len(listing) == len(ALL)
    bold = listing[listing["specification"].str.startswith("**")].set_index("specification")
    assert set(bold.index) == {f"**{one.label}**" for one in (PRIMARY_H2, PRIMARY_H3)}
    row = table.set_index("label").loc[PRIMARY_H3.label]
    primary = bold.loc[f"**{PRIMARY_H3.label}**"]
    assert primary["a"] == primary["b"] == nbutils.interval_text(row["rho"], row["low"], row["high"])
    assert (listing["b"] != "").sum() == 2
    predicted = table.set_index("label")["predicted"]
    names = listing["specification"].str.strip("*")
    assert listing["predicted"].tolist() == predicted[names].tolist()


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
