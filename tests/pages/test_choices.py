from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbutils.pages.specification_curve import (
    choice_effects,
    null_effects,
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
