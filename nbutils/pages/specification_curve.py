"""All specifications at once: which analysis choices the sign and size of an effect depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from scipy.stats import false_discovery_control, rankdata

from nbutils.data.datasets import title_of
from nbutils.drawing.display import Html, figure_style, format_number, in_figure, interval_text
from nbutils.drawing.palette import BLUE, GREY, ORANGE, RED
from nbutils.drawing.points import Axis, Plot, Point, show_points
from nbutils.stats import (
    MOST_DRAWS,
    between_conditions,
    correlation,
    permutation_result,
    permuted_orders,
    resampled_spearman,
)
from nbutils.study.results import Results, as_results
from nbutils.study.specifications import FACTORS, specifications, specified
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_frame, as_rng, as_series

__all__ = [
    "agreement_of_data_sets",
    "choice_effects",
    "curve_test",
    "grid_values",
    "noise_levels",
    "null_effects",
    "option_effects",
    "option_map",
    "readings",
    "show_curves",
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


def _as_curve(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """A table of :func:`nbutils.pages.specification_curve.specification_table`, with what was chosen."""
    return as_frame(table, ("hypothesis", *FACTORS), name, finite=("predicted", "rho"), truths=("primary",))


def _differences(group: pd.DataFrame) -> pd.DataFrame:
    """In what each specification differs from the primary one; in nothing where there is none."""
    chosen = group[list(FACTORS)]
    primary = chosen[group["primary"]]
    return chosen != primary.iloc[0] if len(primary) else chosen.astype(bool) & False


MEANINGS = ((ORANGE, "primary"), (BLUE, "interval above 0"), (RED, "interval below 0"), (GREY, "interval holds 0"))


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
    known, (accuracy, _), level = specified(values), noise_levels(accuracies, noise, len(values)), np.asarray(noise)
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


def option_effects(curves: pd.DataFrame) -> pd.DataFrame:
    """Mean effect of the specifications with each option.

    Args:
        curves: rows of :func:`specification_table` of each data set, with columns `dataset` and `effect` (rho in the
            predicted direction).

    Returns:
        One row per (choice, option) and one column per (hypothesis, data set); NaN where a hypothesis has no such
        option.
    """
    keys = ["hypothesis", "dataset"]
    chosen = curves.rename(columns=FACTORS).melt([*keys, "effect"], [*FACTORS.values()], "choice", "option")
    chosen = chosen[chosen["option"] != ""]
    means = chosen.groupby([*keys, "choice", "option"], sort=False)["effect"].mean().unstack(keys).sort_index()
    return means.sort_index(axis=1, level=0, sort_remaining=False)


def option_map(means: pd.DataFrame) -> Figure:
    """Heat map of :func:`option_effects`: blue as predicted, red the opposite."""
    with figure_style():
        fig, ax = plt.subplots(figsize=(7.6, 0.24 * len(means) + 1))
        names = [f"{hypothesis} {in_figure(title_of(name))}" for hypothesis, name in means.columns]
        options = [in_figure(f"{choice}: {option}") for choice, option in means.index]
        told = means.map(lambda value: format_number(value, 1))
        look = {"vmin": -1, "vmax": 1, "cmap": "RdBu", "annot": told, "fmt": "", "annot_kws": {"size": 8}}
        sns.heatmap(means, ax=ax, xticklabels=names, yticklabels=options, **look)
        ax.set(xlabel="", ylabel="")
        ax.tick_params(axis="x", labelsize=8, rotation=90)
        ax.tick_params(axis="y", labelsize=8)
        plt.close(fig)
    return fig


def agreement_of_data_sets(curves: pd.DataFrame) -> pd.DataFrame:
    """Whether a specification that is high on the curve of one data set is high on another's.

    Args:
        curves: as for :func:`option_effects`, with the column `label`.

    Returns:
        One row per hypothesis and pair of data sets: `hypothesis`, `first`, `second`, and `rho`, the rank correlation
        of effects over the specifications that both have.
    """
    wide, rows = curves.pivot(index=["hypothesis", "label"], columns="dataset", values="effect"), []
    for hypothesis, own in wide.groupby("hypothesis"):
        for first, second in combinations(wide, 2):
            both = own[[first, second]].dropna()
            rows.append((hypothesis, first, second, correlation(both[first], both[second])))
    return pd.DataFrame(rows, columns=["hypothesis", "first", "second", "rho"])


@checked
def specification_curve(table: pd.DataFrame) -> Plot:
    """Effects of all specifications, sorted, above what each of them chose; every one says what it is.

    Above: Spearman's rho with test accuracy, counted in the predicted direction, with its interval; blue where the
    whole interval agrees with the prediction, red where it contradicts it, grey where it holds 0, orange for the
    primary specification. Below: a mark for each choice; what all specifications share is left out.

    Args:
        table: see :func:`specification_table`; best the rows of one hypothesis.

    Returns:
        A plot, which a notebook displays.

    Raises:
        ValueError: the table has no rows.
    """
    if table.empty:
        raise ValueError("table must have at least one row, received none")
    words, truths = ("hypothesis", "label", *FACTORS), ("primary",)
    table = as_frame(table, words, "table", numbers=("low", "high"), finite=("predicted", "rho"), truths=truths)
    table = _in_predicted_direction(table).sort_values(["effect", "label"], ignore_index=True)
    rows = _rows(table)
    points = [
        Point(
            x=row.Index,
            y=row.effect,
            text=f"{row.Index + 1} of {len(table)}{', primary' * row.primary}: {_told(row)}",
            colour=_colour(row),
            low=row.lower,
            high=row.upper,
            rows=tuple(n for n, (factor, word) in enumerate(rows) if word and getattr(row, factor) == word),
        )
        for row in table.itertuples()
    ]
    x = Axis(f"{len(table)} specifications, sorted by effect", -0.7, len(table) - 0.3)
    y = Axis("ρ with test accuracy, in the predicted direction", -1.05, 1.05, (-1, -0.5, 0, 0.5, 1))
    below = tuple((word or FACTORS[factor], not word) for factor, word in rows)
    return Plot(tuple(points), x, y, _alt(table), rows=below, legend=MEANINGS)


def show_curves(curves: pd.DataFrame, source: str) -> Html:
    """The specification curves of all hypotheses and data sets as one figure; a reader chooses which to see.

    Args:
        curves: rows of :func:`specification_table` of each data set, with the column `dataset`.
        source: where the numbers come from.
    """
    plots = {
        (hypothesis, title_of(name)): specification_curve(rows)
        for (hypothesis, name), rows in curves.groupby(["hypothesis", "dataset"], sort=False)
    }
    first, own = next(iter(plots.items()))
    above = sum(point.y > 0 for point in own.points)
    caption = (
        f"{above} of {len(own.points)} specifications of {first[0]} on {first[1]} have the predicted sign. Lines are "
        f"95 % intervals, marks say what was chosen. {source}"
    )
    return show_points(plots, caption, ("hypothesis", "data set"))


def _in_predicted_direction(table: pd.DataFrame) -> pd.DataFrame:
    """The table with `effect` and the ends of its interval, `lower` and `upper`, positive where predicted."""
    sign = table["predicted"].to_numpy()
    ends = np.sort(sign[:, None] * table[["low", "high"]].to_numpy(dtype=float), axis=1)
    return table.assign(effect=sign * table["rho"].to_numpy(dtype=float), lower=ends[:, 0], upper=ends[:, 1])


def _told(row: Any) -> str:
    """Effect, interval and choices of a specification in words."""
    chosen = [f"{name}: {getattr(row, factor)}" for factor, name in FACTORS.items() if getattr(row, factor)]
    return f"effect {interval_text(row.effect, row.lower, row.upper)}; {'; '.join(chosen)}."


def _colour(row: Any) -> str:
    if row.primary:
        return ORANGE
    return BLUE if row.lower > 0 else RED if row.upper < 0 else GREY


def _alt(table: pd.DataFrame) -> str:
    """The curve in words."""
    effect = table["effect"]
    return (
        f"{len(table)} specifications, sorted: effects from {format_number(effect.min(), 2)} to "
        f"{format_number(effect.max(), 2)}, median {format_number(effect.median(), 2)}; {(effect > 0).sum()} above 0, "
        f"{(table['lower'] > 0).sum()} with their whole 95 % interval, {(table['upper'] < 0).sum()} with it below 0."
    )


def _rows(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Rows below the curve: a heading (factor, "") before the words that occur for it.

    In the order of the list, where the primary specifications come last, so that 5 % stands between 2 and 10 %.
    """
    order = [one.choices for one in sorted(specifications(), key=lambda one: one.primary)]
    found = []
    for factor in FACTORS:
        words = [word for word in dict.fromkeys(c.get(factor, "") for c in order) if word in set(table[factor]) - {""}]
        if table[factor].nunique() > 1:
            found += [(factor, ""), *((factor, word) for word in words)]
    return found
