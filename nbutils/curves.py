"""Specification curves: does a verdict hang on how things were measured? The table, its summary, the figure."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbutils.arguments import checked
from nbutils.arrays import as_frame, as_series
from nbutils.correlations import between_conditions, correlation
from nbutils.display import GREY, INK, figure_style
from nbutils.specifications import FACTORS, specifications, specified

__all__ = ["effect_scatter", "sign_shares", "specification_curve", "specification_table"]

BLUE, RED, ORANGE = "#3b82c4", "#c8463c", "#d97a1a"
MEANINGS = {ORANGE: "primary", BLUE: "interval above 0", RED: "interval below 0", GREY: "interval holds 0"}
ROW, GAP = 0.152, 0.5  # height of a row of the lower panel in inches; more above a heading, in rows
UPPER = 2.5  # height of the upper panel, inches


def specification_table(values: pd.DataFrame, accuracies: Any, noise: Any, draws: int = 999) -> pd.DataFrame:
    """How each specification's value goes with test accuracy, between networks.

    Args:
        values: one row per network, one column per specification, named by its label; see
            :func:`nbutils.evaluations.evaluate_all`.
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
