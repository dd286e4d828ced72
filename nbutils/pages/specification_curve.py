"""All specifications at once: which analysis choices the sign and size of an effect depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import false_discovery_control, rankdata

from nbutils.stats import (
    MOST_DRAWS,
    between_conditions,
    correlation,
    permutation_result,
    permuted_orders,
    resampled_spearman,
)
from nbutils.study.results import Results, as_results
from nbutils.study.specifications import ALLOWED, FACTORS, specifications, specified
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_frame, as_rng, as_series, is_among, shown
from nbutils.support.display import GREY, INK, figure_style, format_number

__all__ = [
    "agreement",
    "choice_effects",
    "choice_means",
    "curve_test",
    "effect_list",
    "effect_scatter",
    "grid_values",
    "noise_levels",
    "null_effects",
    "one_step",
    "readings",
    "sign_shares",
    "specification_curve",
    "specification_table",
]

MEDIAN, SHARE = "median effect", "share with the predicted sign"
LEVEL, MOST = 0.05, 0.9  # of a reading: largest adjusted p, smallest share with the predicted sign


@checked
def grid_values(results: Results) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Networks of the grid of label noise, trained to the end and measured in every way.

    Args:
        results: of a data set with a grid of label noise and the extra "specifications".

    Returns:
        (values, accuracies, noise), ready for :func:`specification_table`: one row per network and one column per
        specification, in the order of the list; test accuracy and level of label noise per network.

    Raises:
        ValueError: the data set has no grid, or its networks were not measured in every way.
    """
    grid = as_results(results).noise_grid()
    if grid.empty:
        raise ValueError(f"results must have a grid of label noise, received those of {results.dataset!r} without one")
    as_frame(grid, ("run",), "the table of results", finite=("epoch", "noise", "seed", "test_accuracy"))
    last = grid[grid["epoch"] == grid.groupby("run")["epoch"].transform("max")].set_index("run")
    found = results.extra("specifications").astype({"specification": str})
    as_frame(found, (), "the extra 'specifications' of results", numbers=("value",), key=("run", "specification"))
    values = found.pivot(index="run", columns="specification", values="value")
    last = last[last.index.isin(values.index)].sort_values(["noise", "seed"])
    order = [one.label for one in specifications() if one.label in values]
    return values.loc[last.index, order], last["test_accuracy"].to_numpy(), last["noise"].to_numpy()


def noise_levels(accuracies: Any, noise: Any, networks: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Accuracies, and which networks belong to each level of label noise.

    Args:
        accuracies: test accuracy per network, shape (networks,), finite.
        noise: level of label noise per network, shape (networks,), at least 3 different ones.
        networks: how many there should be.

    Returns:
        (accuracies, indices of the networks of each level, from the least noise to the most).

    Raises:
        ValueError: shapes disagree, an accuracy is not finite, or there are fewer than 3 levels.

    Examples:
        >>> [own.tolist() for own in noise_levels([0.9, 0.5, 0.1], [0.0, 0.5, 1.0], 3)[1]]
        [[0], [1], [2]]
    """
    accuracy, level = as_series(accuracies, "accuracies"), as_series(noise, "noise")
    if accuracy.shape != (networks,) or level.shape != (networks,):
        raise ValueError(
            f"accuracies and noise must be one per row of values, {networks}, received shapes {accuracy.shape} and "
            f"{level.shape}"
        )
    names = np.unique(level)
    if len(names) < 3:
        raise ValueError(f"noise must take at least 3 levels, received {len(names)}")
    return accuracy, [np.flatnonzero(level == name) for name in names]


def curve_test(
    values: pd.DataFrame, accuracies: Any, noise: Any, rng: np.random.Generator | int, permutations: int = 50_000
) -> pd.DataFrame:
    """Does the whole curve lie further from 0 than chance would put it?

    All specifications look at the same networks, so that they agree with each other is no evidence. If no measure went
    with accuracy, the levels of label noise could as well have had each other's accuracies. So the accuracies of whole
    levels are permuted, in the same way for all specifications, and the curve is computed again: what specifications
    have in common stays as it is.

    Args:
        values: one row per network, one column per specification, named by its label; finite.
        accuracies: test accuracy per network, shape (networks,).
        noise: level of label noise per network, shape (networks,), at least 3 different ones. A level with fewer
            networks than another lends some of their accuracies twice.
        rng: source of randomness, a generator or a seed; unused where all orders of the levels are few enough to be
            listed.
        permutations: from 1 to a million; up to so many orders, all are listed and the test is exact, as for eight
            levels; else so many random ones are taken.

    Returns:
        Two rows per hypothesis, for the median effect in the predicted direction and for the share of specifications
        with the predicted sign: `hypothesis`, `statistic`, `observed`, `low` and `high` (middle 95 % of the
        permutations), `p` (two-sided: twice the smaller of the shares of permutations at least as high, or at least
        as low; at most 1). A measure that is the same for all networks has effect 0 and no sign.

    Raises:
        ValueError: a column is no specification's label, values are not finite, shapes disagree, or there are fewer
            than 3 noise levels.

    Examples:
        >>> noise = np.repeat([0.0, 0.2, 0.5, 0.8, 1.0], 2)
        >>> values = pd.DataFrame({specifications()[0].label: 1 - noise})
        >>> found = curve_test(values, 1 - noise, noise, np.random.default_rng(0))
        >>> round(found["p"].iloc[0] * 120)  # of the 120 orders of five levels
        2

    References:
        Simonsohn, Simmons and Nelson (2020), doi:10.1038/s41562-020-0912-z.
    """
    known, rng = specified(values), as_rng(rng)
    permutations = as_count(permutations, "permutations", most=MOST_DRAWS)
    lent = _unit_ranks(_lent(*noise_levels(accuracies, noise, len(values)), rng, permutations))
    rows = []
    for hypothesis in sorted({known[label].hypothesis for label in values}):
        own = [label for label in values if known[label].hypothesis == hypothesis]
        sign = np.array([known[label].predicted for label in own])
        effects = (sign[:, None] * _unit_ranks(values[own].to_numpy(dtype=float).T)) @ lent.T
        for name, null in ((MEDIAN, np.median(effects, axis=0)), (SHARE, (effects > 1e-9).mean(axis=0))):
            tails = [permutation_result(null[0], null, side).p_value for side in ("greater", "less")]
            low, high = np.quantile(null, [0.025, 0.975])
            rows.append((hypothesis, name, float(null[0]), float(low), float(high), min(1.0, 2 * min(tails))))
    return pd.DataFrame(rows, columns=["hypothesis", "statistic", "observed", "low", "high", "p"])


@checked
def readings(tests: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One word per hypothesis and data set, by a rule that can be written down before any number.

    "not shown": the adjusted p of the median effect is above 0.05. Else "opposite" where the median effect is below 0;
    "holds" where at least 90 % of the specifications have the predicted sign; and "depends" where fewer have.

    Args:
        tests: see :func:`curve_test`, by data set.

    Returns:
        One row per hypothesis and data set: `hypothesis`, `dataset`, `median`, `agrees`, `adjusted` (p of the median
        effect, Benjamini-Hochberg over all rows), `reading`.

    Examples:
        >>> noise = np.repeat([0.0, 0.2, 0.5, 0.8, 1.0], 2)
        >>> values = pd.DataFrame({specifications()[0].label: noise})
        >>> readings({"digits": curve_test(values, 1 - noise, noise, np.random.default_rng(0))})["reading"].tolist()
        ['opposite']

    References:
        Benjamini and Hochberg (1995), doi:10.1111/j.2517-6161.1995.tb02031.x.
    """
    rows = []
    for dataset, table in tests.items():
        _as_tested(table, f"tests[{dataset!r}]")
        for hypothesis, group in table.groupby("hypothesis"):
            median, share = (group[group["statistic"] == name].iloc[0] for name in (MEDIAN, SHARE))
            rows.append((hypothesis, dataset, median["observed"], share["observed"], median["p"]))
    if not rows:
        raise ValueError("tests must hold at least one hypothesis, received none")
    found = pd.DataFrame(rows, columns=["hypothesis", "dataset", "median", "agrees", "adjusted"])
    found["adjusted"] = false_discovery_control(found["adjusted"])
    told = [found["adjusted"] > LEVEL, found["median"] < 0, found["agrees"] >= MOST]
    found["reading"] = np.select(told, ["not shown", "opposite", "holds"], "depends")
    return found.sort_values("hypothesis", kind="stable", ignore_index=True)


def _as_tested(table: pd.DataFrame, name: str) -> None:
    """Refuse what is no table of :func:`curve_test`."""
    key = ("hypothesis", "statistic")
    as_frame(table, key, name, finite=("observed", "p"), key=key)
    for hypothesis, group in table.groupby("hypothesis"):
        if set(group["statistic"]) != {MEDIAN, SHARE}:
            raise ValueError(f"{name} must hold {MEDIAN!r} and {SHARE!r} of {hypothesis}, received something else")
    if not table["p"].between(0, 1).all():
        raise ValueError(f"{name} must hold p values from 0 to 1, received others")


def _lent(accuracy: np.ndarray, members: list[np.ndarray], rng: np.random.Generator, permutations: int) -> np.ndarray:
    """Accuracy of every network under every order of the levels, shape (orders, networks); the first is its own."""
    size = max(map(len, members))
    lenders = np.stack([np.resize(own, size) for own in members])
    level, place = np.empty((2, len(accuracy)), dtype=np.int64)
    for number, own in enumerate(members):
        level[own], place[own] = number, np.arange(len(own))
    orders = permuted_orders(len(members), permutations, rng)
    return accuracy[lenders[orders[:, level], place]]


def _unit_ranks(rows: np.ndarray) -> np.ndarray:
    """Centred ranks of each row with length 1, or all 0 for a constant row: their products are Spearman's rho."""
    ranks = rankdata(rows, axis=1) - (rows.shape[1] + 1) / 2
    length = np.linalg.norm(ranks, axis=1, keepdims=True)
    return ranks / np.where(length > 0, length, 1)


NOT_APPLICABLE = "does not apply"


@checked
def choice_effects(table: pd.DataFrame) -> pd.DataFrame:
    r"""How much of the differences between specifications goes with each choice.

    $\eta^2 = \sum_v n_v (\bar y_v - \bar y)^2 / \sum_i (y_i - \bar y)^2$ with $y$ the effects in the predicted
    direction and $\bar y_v$ the mean of the $n_v$ specifications with option $v$. The specifications are no full grid,
    so the shares of different choices overlap.

    Args:
        table: see :func:`nbutils.pages.specification_curve.specification_table`.

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
        table: see :func:`nbutils.pages.specification_curve.specification_table`.

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
        tables: see :func:`nbutils.pages.specification_curve.specification_table`, by data set.
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
        tables: see :func:`nbutils.pages.specification_curve.specification_table`, by data set.

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
        tables: see :func:`nbutils.pages.specification_curve.specification_table`, by data set.
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
    """A table of :func:`nbutils.pages.specification_curve.specification_table`, with what was chosen."""
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


BLUE, RED, ORANGE = "#3b82c4", "#c8463c", "#d97a1a"
MEANINGS = {ORANGE: "primary", BLUE: "interval above 0", RED: "interval below 0", GREY: "interval holds 0"}
ROW, GAP = 0.152, 0.5  # height of a row of the lower panel in inches; more above a heading, in rows
UPPER = 2.5  # height of the upper panel, inches


def specification_table(values: pd.DataFrame, accuracies: Any, noise: Any, draws: int = 999) -> pd.DataFrame:
    """How each specification's value goes with test accuracy, between networks.

    Args:
        values: one row per network, one column per specification, named by its label; see
            :func:`nbutils.study.specifications.evaluate_all`.
        accuracies: test accuracy per network, shape (networks,).
        noise: level of label noise per network, shape (networks,), at least 3 different ones.
        draws: resamples for each interval.

    Returns:
        One row per specification: `hypothesis`, `label`, what was chosen (one column per factor, empty where it does
        not apply), `primary`, `predicted` (sign), `rho` (Spearman over networks), `low` and `high` (95 % interval,
        resampling noise levels), `agrees` (rho has the predicted sign), `clear` (so has the whole interval); by
        hypothesis, then from the effect most against the prediction to the one most in its favour. A value that is
        the same for all networks has rho 0.

    Raises:
        ValueError: a column is no specification's label, shapes disagree, or there are fewer than 3 noise levels.

    Examples:
        >>> noise = np.repeat([0.0, 0.5, 1.0], 2)
        >>> table = specification_table(pd.DataFrame({specifications()[0].label: 1 - noise}), 1 - noise, noise)
        >>> float(table["rho"].iloc[0].round(6)), bool(table["agrees"].iloc[0])
        (1.0, True)

    References:
        Simonsohn, Simmons and Nelson (2020), doi:10.1038/s41562-020-0912-z.
    """
    known, accuracy, level = specified(values), as_series(accuracies, "accuracies"), as_series(noise, "noise")
    if not accuracy.shape == level.shape == (len(values),):
        found = f"{accuracy.shape} and {level.shape}"
        raise ValueError(f"accuracies and noise must be one per row of values, {len(values)}, received shapes {found}")
    rows = []
    for label in values.columns:
        one, series = known[label], values[label].to_numpy(dtype=float)
        _, (low, high) = between_conditions(series, accuracy, level, np.random.default_rng(0), draws=draws)
        rho = correlation(series, accuracy)
        ends = sorted((one.predicted * low, one.predicted * high))
        rows.append(
            {"hypothesis": one.hypothesis, "label": label, **dict.fromkeys(FACTORS, ""), **one.choices}
            | {"primary": one.primary, "predicted": one.predicted, "rho": rho, "low": low, "high": high}
            | {"agrees": one.predicted * rho > 0, "clear": ends[0] > 0}
        )
    found = pd.DataFrame(rows).assign(effect=lambda table: table["predicted"] * table["rho"])
    return found.sort_values(["hypothesis", "effect", "label"], ignore_index=True).drop(columns="effect")


@checked
def sign_shares(table: pd.DataFrame) -> pd.DataFrame:
    """What the curve says in numbers.

    Args:
        table: see :func:`specification_table`.

    Returns:
        One row per hypothesis: `specifications` (how many), `agrees` (share with the predicted sign), `clear` (share
        whose whole interval has it), `against` (share whose whole interval has the other), `median` (effect in the
        predicted direction), `primary` (effect of the primary specification; NaN without it), `below` (share of
        specifications with a smaller effect than the primary one; NaN without it).

    Examples:
        >>> noise = np.repeat([0.0, 0.5, 1.0], 2)
        >>> labels = [one.label for one in specifications()[:2]]
        >>> values = pd.DataFrame({labels[0]: 1 - noise, labels[1]: noise})
        >>> sign_shares(specification_table(values, 1 - noise, noise))["agrees"].tolist()
        [0.5]
    """
    table = as_frame(
        table, ("hypothesis",), "table", numbers=("low", "high"), finite=("predicted", "rho"), truths=("primary",)
    )
    rows = []
    for hypothesis, group in table.groupby("hypothesis"):
        effect, low, high = _in_predicted_direction(group)
        primary = effect[group["primary"].to_numpy()]
        rows.append(
            {
                "hypothesis": hypothesis,
                "specifications": len(group),
                "agrees": float((effect > 0).mean()),
                "clear": float((low > 0).mean()),
                "against": float((high < 0).mean()),
                "median": float(np.median(effect)),
                "primary": float(primary[0]) if primary.size else np.nan,
                "below": float((effect < primary[0]).mean()) if primary.size else np.nan,
            }
        )
    return pd.DataFrame(rows)


@checked
def specification_curve(table: pd.DataFrame) -> Figure:
    """Effects of all specifications, sorted, above what each of them chose; the primary one in colour.

    Upper panel: Spearman's rho with test accuracy, counted in the predicted direction, with its interval; blue where
    the whole interval agrees with the prediction, red where it contradicts it, grey where it holds 0, orange for the
    primary specification. Lower panel: a dot for each choice; what all specifications share is left out.

    Args:
        table: see :func:`specification_table`; best the rows of one hypothesis.

    Returns:
        The figure.

    Raises:
        ValueError: the table has no rows.
    """
    if table.empty:
        raise ValueError("table must have at least one row, received none")
    words, truths = ("hypothesis", "label", *FACTORS), ("primary",)
    table = as_frame(table, words, "table", numbers=("low", "high"), finite=("predicted", "rho"), truths=truths)
    table = table.assign(effect=table["predicted"] * table["rho"]).sort_values(["effect", "label"], ignore_index=True)
    rows = _rows(table)
    with figure_style():
        lower = ROW * (1 + len(rows) + GAP * sum(not word for _, word in rows))
        fig, (top, bottom) = plt.subplots(
            2, 1, figsize=(7.6, UPPER + lower + 0.3), sharex=True, height_ratios=[UPPER, lower]
        )
        _effects(top, table)
        _matrix(bottom, table, rows)
        for place in np.flatnonzero(table["primary"]):
            for ax in (top, bottom):
                ax.axvspan(place - 0.5, place + 0.5, color=ORANGE, alpha=0.16, lw=0)
        plt.close(fig)
    return fig


@checked
def effect_scatter(tables: Mapping[str, pd.DataFrame]) -> Figure:
    """Effects of the same specifications on two data sets, one panel for each pair; rings mark the primary ones.

    Args:
        tables: see :func:`specification_table`, by data set; at least two.

    Returns:
        The figure: effects in the predicted direction, H2 in blue, H3 in orange; on the line both are equal.

    Raises:
        ValueError: there are fewer than two data sets.
    """
    pairs = list(combinations(tables, 2))
    if not pairs:
        raise ValueError(f"tables must hold at least two data sets, received {len(tables)}")
    for name, table in tables.items():
        words = ("hypothesis", "label")
        as_frame(table, words, f"tables[{name!r}]", finite=("predicted", "rho"), truths=("primary",), key=words)
    with figure_style():
        fig, axes = plt.subplots(1, len(pairs), figsize=(max(3.8, 2.9 * len(pairs)), 3.4), squeeze=False)
        for ax, names in zip(axes[0], pairs, strict=True):
            ax.axline((0, 0), slope=1, color=INK, lw=0.8, alpha=0.4)
            ax.axhline(0, color=INK, lw=0.6, alpha=0.3)
            ax.axvline(0, color=INK, lw=0.6, alpha=0.3)
            for colour, hypothesis in ((BLUE, "H2"), (ORANGE, "H3")):
                _pair(ax, tables[names[0]], tables[names[1]], colour, hypothesis)
            limits = {"xlim": (-1.05, 1.05), "ylim": (-1.05, 1.05), "xticks": [-1, 0, 1], "yticks": [-1, 0, 1]}
            ax.set(xlabel=names[0], ylabel=names[1], aspect="equal", **limits)
        fig.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper left", ncols=2)
        plt.close(fig)
    return fig


def _pair(ax: plt.Axes, first: pd.DataFrame, second: pd.DataFrame, colour: str, hypothesis: str) -> None:
    both = first[first["hypothesis"] == hypothesis].merge(second, on="label", suffixes=("", "_second"))
    x, y = both["predicted"] * both["rho"], both["predicted"] * both["rho_second"]
    ax.scatter(x, y, color=colour, s=13, linewidths=0, alpha=0.8, label=hypothesis)
    ax.scatter(x[both["primary"]], y[both["primary"]], s=70, facecolors="none", edgecolors=colour)


def _in_predicted_direction(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Effect and ends of its interval, positive where the hypothesis has it."""
    sign = table["predicted"].to_numpy()
    ends = np.sort(sign[:, None] * table[["low", "high"]].to_numpy(dtype=float), axis=1)
    return sign * table["rho"].to_numpy(dtype=float), ends[:, 0], ends[:, 1]


def _colours(table: pd.DataFrame) -> np.ndarray:
    _, low, high = _in_predicted_direction(table)
    return np.where(table["primary"], ORANGE, np.where(low > 0, BLUE, np.where(high < 0, RED, GREY)))


def _effects(ax: plt.Axes, table: pd.DataFrame) -> None:
    effect, low, high = _in_predicted_direction(table)
    x, colours = np.arange(len(table)), _colours(table)
    ax.axhline(0, color=INK, lw=0.9, alpha=0.6)
    ax.vlines(x, low, high, colors=colours, lw=1.6, alpha=0.45)
    ax.scatter(x, effect, c=colours, s=np.where(table["primary"], 38, 13), linewidths=0, zorder=3)
    ax.set(ylabel="ρ with test accuracy,\nin the predicted direction", ylim=(-1.05, 1.05), yticks=[-1, -0.5, 0, 0.5, 1])
    ax.yaxis.set_label_coords(-0.1, 0.5)  # beside its axis, not left of the long words below
    for colour, meaning in MEANINGS.items():
        ax.scatter([], [], color=colour, s=22, linewidths=0, label=meaning)
    ax.legend(loc="lower right", bbox_to_anchor=(1, 0.99), ncols=4, handletextpad=0.1, columnspacing=1)
    ax.grid(axis="x", visible=False)
    ax.tick_params(axis="x", length=0)


def _rows(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Rows of the lower panel: a heading (factor, "") before the words that occur for it.

    In the order of the list, where the primary specifications come last, so that 5 % stands between 2 and 10 %.
    """
    order = [one.choices for one in sorted(specifications(), key=lambda one: one.primary)]
    found = []
    for factor in FACTORS:
        words = [word for word in dict.fromkeys(c.get(factor, "") for c in order) if word in set(table[factor]) - {""}]
        if table[factor].nunique() > 1:
            found += [(factor, ""), *((factor, word) for word in words)]
    return found


def _matrix(ax: plt.Axes, table: pd.DataFrame, rows: list[tuple[str, str]]) -> None:
    colours = _colours(table)
    places = np.arange(len(rows)) + GAP * np.cumsum([not word for _, word in rows])
    for y, (factor, word) in zip(places, rows, strict=True):
        if not word:
            continue
        chosen = np.flatnonzero(table[factor] == word)
        ax.axhline(y, color=INK, lw=0.5, alpha=0.1)
        ax.scatter(chosen, np.full(chosen.size, y), c=colours[chosen], s=11, linewidths=0, zorder=3)
    ax.set(ylim=(places.max(initial=0) + 0.6, places.min(initial=0) - 0.5), xlim=(-0.8, len(table) - 0.2), xticks=[])
    ax.set_yticks(places, [word or FACTORS[factor] for factor, word in rows], fontsize=8)
    for label, (_, word) in zip(ax.get_yticklabels(), rows, strict=True):
        label.set_color(INK if word else GREY)
    ax.set_xlabel(f"{len(table)} specifications, sorted by effect")
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False)
    ax.spines[["left", "bottom"]].set_visible(False)
