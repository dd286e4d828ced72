from __future__ import annotations

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbutils.pages.specification_curve import (
    agreement,
    choice_effects,
    choice_means,
    effect_list,
    effect_scatter,
    null_effects,
    one_step,
    specification_table,
)
from nbutils.study.specifications import FACTORS, PRIMARY_H2, PRIMARY_H3, specifications
from nbutils.support.display import format_number

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


def test_one_step_in_words(table):
    found = one_step({"a": table, "b": table[~table["primary"]]}, "H3").set_index("changed")
    rho = table.set_index("label")["rho"]
    primary, plug_in = (
        -rho[step.label] for step in (PRIMARY_H3, replace(PRIMARY_H3, correction="plug-in", primary=False))
    )
    assert found.loc["nothing (primary)", ["specifications", "a"]].tolist() == [1, format_number(primary, 2)]
    assert found.loc["estimate", ["specifications", "a", "b"]].tolist() == [1, format_number(plug_in, 2), ""]
    row = choice_effects(table).set_index(["hypothesis", "choice"]).loc[("H3", "rule of firing")]
    low, high = (format_number(row[end], 2) for end in ("lowest", "highest"))
    assert found.loc["rule of firing", "a"] == f"{low} to {high}"


def test_means_by_option(table):
    found = choice_means(table)
    for row in found.sample(12, random_state=0).itertuples():
        factor = next(key for key, name in FACTORS.items() if name == row.choice)
        word = "" if row.option == "does not apply" else row.option
        chosen = table[(table["hypothesis"] == row.hypothesis) & (table[factor] == word)]
        effect = chosen["predicted"] * chosen["rho"]
        assert row.specifications == len(chosen)
        assert (row.mean, row.lowest, row.highest) == pytest.approx((effect.mean(), effect.min(), effect.max()))
    for _, group in found.groupby(["hypothesis", "choice"]):
        assert group["mean"].is_monotonic_increasing
    assert choice_means(table[table["primary"]]).empty


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


def test_data_sets_that_agree_and_that_do_not(table):
    turned = table.assign(rho=-table["rho"])
    found = agreement({"a": table, "b": table, "c": turned.sample(frac=1, random_state=0)})
    assert found[["hypothesis", "first", "second"]].values.tolist() == [
        [h, *pair] for h in ("H2", "H3") for pair in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    assert found["rho"].tolist() == pytest.approx([1, -1, -1] * 2)
    assert found["same_sign"].tolist() == [1, 0, 0] * 2
    assert agreement({"a": table}).empty
    assert agreement({"a": table, "b": table[table["hypothesis"] == "H3"]})["specifications"].tolist() == [35]


def test_the_list_names_every_specification_once(table):
    found = effect_list({"a": table, "b": table[table["primary"]]}, "H3")
    assert len(found) == sum(s.hypothesis == "H3" for s in ALL)
    (primary,) = found[found["specification"].str.startswith("**")].to_dict("records")
    assert primary["specification"] == f"**{PRIMARY_H3.label.removeprefix('H3 · ')}**"
    row = table.set_index("label").loc[PRIMARY_H3.label]
    text = f"{row['rho']:.2f} ({row['low']:.2f} to {row['high']:.2f})".replace("-", "−")
    assert primary["a"] == primary["b"] == text
    assert (found["b"] != "").sum() == 1
    assert set(found["predicted"]) == {"+", "−"}


def test_effects_of_two_data_sets_side_by_side(table, rng):
    other = specification_table(pd.DataFrame({s.label: rng.random(NOISE.size) for s in ALL}), 1 - NOISE, NOISE, draws=9)
    figure = effect_scatter({"a": table, "b": other, "c": table})
    assert [(ax.get_xlabel(), ax.get_ylabel()) for ax in figure.axes] == [("a", "b"), ("a", "c"), ("b", "c")]
    effects = table["predicted"] * table["rho"]
    dots, ring, *_ = (np.asarray(c.get_offsets()) for c in figure.axes[1].collections)
    own = effects[table["hypothesis"] == "H2"].to_numpy()
    assert dots == pytest.approx(np.column_stack([own, own]))
    assert ring == pytest.approx(np.full((1, 2), effects[table["label"] == PRIMARY_H2.label].iloc[0]))
    assert not plt.get_fignums()
    with pytest.raises(ValueError, match="at least two data sets, received 1"):
        effect_scatter({"a": table})
