"""Which choices move a specification curve, what is left of it above null models, and whether data sets agree on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from nbutils.arguments import checked
from nbutils.arrays import as_count, as_frame, is_among, shown
from nbutils.correlations import correlation, resampled_spearman
from nbutils.display import format_number
from nbutils.multiverse import noise_levels
from nbutils.specifications import ALLOWED, FACTORS, specifications, specified
from nbutils.stats import MOST_DRAWS

__all__ = ["agreement", "choice_effects", "choice_means", "effect_list", "null_effects", "one_step"]

NOT_APPLICABLE = "does not apply"


@checked
def choice_effects(table: pd.DataFrame) -> pd.DataFrame:
    r"""How much of the differences between specifications goes with each choice.

    $\eta^2 = \sum_v n_v (\bar y_v - \bar y)^2 / \sum_i (y_i - \bar y)^2$ with $y$ the effects in the predicted
    direction and $\bar y_v$ the mean of the $n_v$ specifications with option $v$. The specifications are no full grid,
    so the shares of different choices overlap.

    Args:
        table: see :func:`nbutils.curves.specification_table`.

    Returns:
        One row per hypothesis and choice that varies, largest share first: `hypothesis`, `choice`, `options` (how
        many; that the choice does not apply is one), `share` ($\eta^2$, in [0, 1]; NaN if effects never vary),
        `by_chance` (the share expected of options dealt out at random), `alone` (how many specifications differ from
        the primary one in this choice only), `lowest` and `highest` (their effects; NaN if there are none).

    Examples:
        >>> chosen = pd.DataFrame([one.choices for one in specifications()[:4]]).reindex(columns=list(FACTORS))
        >>> table = chosen.fillna("").assign(hypothesis="H2", primary=[True, False, False, False], predicted=1)
        >>> choice_effects(table.assign(rho=[0.5, 0.1, 0.1, 0.1]))["choice"].tolist()
        ['rule of firing', 'share kept']
    """
    table = _as_curve(table, "table")
    rows, factors = [], list(FACTORS)
    for hypothesis, group in table.groupby("hypothesis"):
        effect = group["predicted"] * group["rho"]
        total = float(((effect - effect.mean()) ** 2).sum())
        differs = _differences(group)
        for factor in (name for name in factors if group[name].nunique() > 1):
            parts = effect.groupby(group[factor]).agg(["size", "mean"])
            between = float((parts["size"] * (parts["mean"] - effect.mean()) ** 2).sum())
            share, chance = between / total if total else np.nan, (len(parts) - 1) / (len(group) - 1)
            alone = effect[differs[factor] & (differs.sum(axis=1) == 1)]
            ends = alone.min(), alone.max()
            rows.append((hypothesis, FACTORS[factor], len(parts), share, chance, len(alone), *ends))
    columns = ["hypothesis", "choice", "options", "share", "by_chance", "alone", "lowest", "highest"]
    found = pd.DataFrame(rows, columns=columns)
    return found.sort_values(["hypothesis", "share"], ascending=[True, False], kind="stable", ignore_index=True)


@checked
def choice_means(table: pd.DataFrame) -> pd.DataFrame:
    """Mean effect of the specifications with each option.

    Args:
        table: see :func:`nbutils.curves.specification_table`.

    Returns:
        One row per hypothesis, choice that varies, and option: `hypothesis`, `choice`, `option`, `specifications` (how
        many), `mean`, `lowest` and `highest` effect in the predicted direction; options of a choice from the lowest
        mean to the highest.

    Examples:
        >>> chosen = pd.DataFrame([one.choices for one in specifications()[:4]]).reindex(columns=list(FACTORS))
        >>> table = chosen.fillna("").assign(hypothesis="H2", predicted=1, rho=[0.5, 0.1, 0.2, 0.3])
        >>> choice_means(table).query("choice == 'share kept'")["specifications"].tolist()
        [1, 1, 2]
    """
    table = as_frame(table, ("hypothesis", *FACTORS), "table", finite=("predicted", "rho"))
    rows = []
    for hypothesis, group in table.groupby("hypothesis"):
        effect = group["predicted"] * group["rho"]
        for factor in (name for name in FACTORS if group[name].nunique() > 1):
            means = effect.groupby(group[factor].replace("", NOT_APPLICABLE)).agg(["size", "mean", "min", "max"])
            found = means.sort_values("mean").itertuples()
            rows += [(hypothesis, FACTORS[factor], *option) for option in found]
    columns = ["hypothesis", "choice", "option", "specifications", "mean", "lowest", "highest"]
    return pd.DataFrame(rows, columns=columns)


@checked
def one_step(tables: Mapping[str, pd.DataFrame], hypothesis: str) -> pd.DataFrame:
    """What it does to change one choice of the primary specification and nothing else, for people.

    Args:
        tables: see :func:`nbutils.curves.specification_table`, by data set.
        hypothesis: "H2" or "H3".

    Returns:
        The primary specification, then one row per choice that some specification changes alone: `changed`,
        `specifications` (how many do), and per data set their lowest to highest effect in the predicted direction, as
        text.

    Examples:
        >>> chosen = pd.DataFrame([one.choices for one in specifications()[:4]]).reindex(columns=list(FACTORS))
        >>> table = chosen.fillna("").assign(hypothesis="H2", primary=[True, False, False, False], predicted=1)
        >>> one_step({"digits": table.assign(rho=[0.5, 0.1, 0.2, 0.3])}, "H2").values.tolist()
        [['nothing (primary)', 1, '0.50'], ['rule of firing', 1, '0.20']]
    """
    columns, hypothesis = {}, as_hypothesis(hypothesis)
    for name, table in tables.items():
        _as_curve(table, f"tables[{name!r}]")
        rows = table[table["hypothesis"] == hypothesis]
        effect, found = (rows["predicted"] * rows["rho"])[rows["primary"]], choice_effects(rows)
        known = found[found["alone"] > 0].itertuples()
        steps = {("nothing (primary)", 1): _span(effect.min(), effect.max())} if len(effect) else {}
        columns[name] = steps | {(row.choice, row.alone): _span(row.lowest, row.highest) for row in known}
    keys = list(dict.fromkeys(key for steps in columns.values() for key in steps))
    found = {name: [steps.get(key, "") for key in keys] for name, steps in columns.items()}
    changed = {"changed": [key[0] for key in keys], "specifications": [key[1] for key in keys]}
    return pd.DataFrame(changed | found)


def null_effects(values: pd.DataFrame, accuracies: Any, noise: Any, draws: int = 999) -> pd.DataFrame:
    """What is left of modularity, and of its relation with test accuracy, above a null model.

    Args:
        values: one row per network, one column per specification, named by its label; finite.
        accuracies: test accuracy per network, shape (networks,).
        noise: level of label noise per network, shape (networks,), at least 3 different ones.
        draws: resamples for each interval.

    Returns:
        One row per specification that takes a null model off and whose plain counterpart is among the columns:
        `graph`, `null`, `Q` (mean over networks), `Q_left` (mean of Q minus the null's), `rho`, `rho_left` (Spearman
        with test accuracy of either), `change` (rho_left - rho), `low`, `high` (95 % interval of the change,
        resampling noise levels).

    Raises:
        ValueError: shapes disagree, or there are fewer than 3 noise levels.

    Examples:
        >>> noise = np.repeat([0.0, 0.5, 1.0], 2)
        >>> above = next(one for one in specifications() if one.null == "circular shift")
        >>> values = pd.DataFrame({specifications()[0].label: 1 - noise, above.label: noise})
        >>> null_effects(values, 1 - noise, noise)["change"].round(6).tolist()
        [-2.0]
    """
    specified(values)
    accuracy, members = noise_levels(accuracies, noise, len(values))
    draws = as_count(draws, "draws", most=MOST_DRAWS)
    chosen = np.random.default_rng(0).integers(len(members), size=(draws, len(members)))
    resamples = [np.concatenate([members[level] for level in row]) for row in chosen]
    rows = []
    for one in specifications():
        before, after = replace(one, null="nothing").label if one.null else "", one.label
        if one.null in ("", "nothing") or not {before, after} <= set(values):
            continue
        pair = [values[label].to_numpy(dtype=float) for label in (before, after)]
        rho = [correlation(series, accuracy) for series in pair]
        drawn = [resampled_spearman(series, accuracy, resamples) for series in pair]
        low, high = np.quantile(drawn[1] - drawn[0], [0.025, 0.975])
        change, means = rho[1] - rho[0], [series.mean() for series in pair]
        # Resamples are summed another way; where nothing varies, the interval still holds its own estimate.
        ends = min(low, change), max(high, change)
        rows.append((one.graph, one.null, *means, *rho, change, *ends))
    return pd.DataFrame(rows, columns=["graph", "null", "Q", "Q_left", "rho", "rho_left", "change", "low", "high"])


@checked
def agreement(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Do two data sets rank the specifications alike?

    Args:
        tables: see :func:`nbutils.curves.specification_table`, by data set.

    Returns:
        One row per hypothesis and pair of data sets: `hypothesis`, `first`, `second`, `specifications` (in both),
        `rho` (Spearman of the effects over specifications), `same_sign` (share of specifications whose effects have
        the same sign). Specifications share networks: neither number is a test.

    Examples:
        >>> table = pd.DataFrame({"hypothesis": "H2", "label": ["a", "b"], "predicted": 1, "rho": [0.1, 0.2]})
        >>> agreement({"one": table, "other": table.assign(rho=[0.3, -0.2])})[["rho", "same_sign"]].round(6).values
        array([[-1. ,  0.5]])
    """
    rows, names = [], ("hypothesis", "label")
    for name, table in tables.items():
        as_frame(table, names, f"tables[{name!r}]", finite=("predicted", "rho"), key=names)
    effects = {name: (t["predicted"] * t["rho"]).set_axis([t["hypothesis"], t["label"]]) for name, t in tables.items()}
    for first, second in combinations(effects, 2):
        both = pd.concat([effects[first], effects[second]], axis=1, join="inner")
        for hypothesis, group in both.groupby(level=0):
            a, b = group.to_numpy().T
            same = float((np.sign(a) == np.sign(b)).mean())
            rows.append((hypothesis, first, second, len(group), correlation(a, b), same))
    columns = ["hypothesis", "first", "second", "specifications", "rho", "same_sign"]
    return pd.DataFrame(rows, columns=columns).sort_values("hypothesis", kind="stable", ignore_index=True)


@checked
def effect_list(tables: Mapping[str, pd.DataFrame], hypothesis: str) -> pd.DataFrame:
    """Every specification of a hypothesis with its rho and interval on each data set, for people.

    Args:
        tables: see :func:`nbutils.curves.specification_table`, by data set.
        hypothesis: "H2" or "H3".

    Returns:
        One row per specification, in the order of the list, the primary one in bold: `specification`, `predicted`
        (sign), and per data set rho with test accuracy and its 95 % interval as text; empty where it was not measured.

    Examples:
        >>> facts = {"hypothesis": "H2", "label": specifications()[0].label, "rho": 0.5, "low": 0.25, "high": 0.75}
        >>> effect_list({"digits": pd.DataFrame([facts])}, "H2")["digits"].tolist()
        ['0.50 (0.25 to 0.75)']
    """
    rows, hypothesis = [], as_hypothesis(hypothesis)
    for name, table in tables.items():
        as_frame(table, ("label",), f"tables[{name!r}]", numbers=("rho", "low", "high"), key=("label",))
    found = {name: table.set_index("label") for name, table in tables.items()}
    for one in specifications():
        if one.hypothesis != hypothesis or not any(one.label in table.index for table in found.values()):
            continue
        name = one.label.removeprefix(f"{hypothesis} · ")
        row = {"specification": f"**{name}**" if one.primary else name, "predicted": "+" if one.predicted > 0 else "−"}
        for dataset, table in found.items():
            row[dataset] = _with_interval(table.loc[one.label]) if one.label in table.index else ""
        rows.append(row)
    return pd.DataFrame(rows)


def as_hypothesis(hypothesis: str) -> str:
    """A hypothesis that specifications are about."""
    if not is_among(hypothesis, ALLOWED["hypothesis"]):
        raise ValueError(f"hypothesis must be 'H2' or 'H3', received {shown(hypothesis)}")
    return hypothesis


def _as_curve(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """A table of :func:`nbutils.curves.specification_table`, with what was chosen."""
    return as_frame(table, ("hypothesis", *FACTORS), name, finite=("predicted", "rho"), truths=("primary",))


def _differences(group: pd.DataFrame) -> pd.DataFrame:
    """In what each specification differs from the primary one; in nothing where there is none."""
    chosen = group[list(FACTORS)]
    primary = chosen[group["primary"]]
    return chosen != primary.iloc[0] if len(primary) else chosen.astype(bool) & False


def _with_interval(row: pd.Series) -> str:
    rho, low, high = (format_number(row[name], 2) for name in ("rho", "low", "high"))
    return f"{rho} ({low} to {high})"


def _span(low: float, high: float) -> str:
    ends = format_number(low, 2), format_number(high, 2)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
