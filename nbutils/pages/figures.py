"""Figures of a study: each takes a table of results and returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nbutils.data.datasets import title_of
from nbutils.drawing.display import INK, figure_style, in_figure
from nbutils.drawing.palette import GREY, LABELS, VERDICTS
from nbutils.stats import correlation
from nbutils.study.comparisons import BASELINES
from nbutils.study.hypotheses import Evidence

__all__ = [
    "CONDITION_NAMES",
    "conditions_in",
    "forest",
    "networks",
    "noise_scatter",
    "nulls",
    "series",
    "thin_lines",
]

CONDITION_NAMES = {"true": "true labels", "mixed:0.5": "50 % label noise", "random": "random labels"}
# Outcome of a test -> colour, marker, area in points.
OUTCOMES = {
    "passes": (VERDICTS["supported"], "o", 42),
    "fails": (VERDICTS["not supported"], "D", 26),
    "opposite": (VERDICTS["refuted"], "X", 52),
    "too few runs": (VERDICTS["inconclusive"], ".", 36),
}
WIDTH = 7.6  # inches of a figure, however many panels it has


def conditions_in(table: pd.DataFrame) -> list[str]:
    """Label conditions of a table, in the order in which they are shown."""
    return [c for c in CONDITION_NAMES if (table["labels"] == c).any()]


def nulls(table: pd.DataFrame) -> Figure:
    """Modularity before and after training, beside its null models, one panel per label condition."""
    names = {
        "modularity": "real firing",
        "null_within": "within-class shuffle",
        "null_circular": "circular shift",
    }
    ends = table[table["epoch"].isin([0, table["epoch"].max()])]
    long = ends.melt(["labels", "epoch", "seed"], list(names), "graph", "Q")
    with figure_style():
        conditions = conditions_in(table)
        fig, axes = plt.subplots(1, len(conditions), figsize=(WIDTH, 3.2), sharey=True, squeeze=False)
        for ax, condition in zip(axes[0], conditions, strict=True):
            for place, column in enumerate(names):
                colour = LABELS[condition] if column == "modularity" else GREY
                values = long[(long["labels"] == condition) & (long["graph"] == column)]
                wide = values.pivot(index="seed", columns="epoch", values="Q").to_numpy()
                x = np.array([-0.3, 0.3]) + place
                ax.plot(x, wide.T, color=colour, alpha=0.35, lw=1)
                ax.plot(x, wide.mean(axis=0), color=colour, lw=2.4)
                ax.plot(x[1], wide[:, 1].mean(), color=colour, marker="o", ms=6)
            ax.set(title=CONDITION_NAMES[condition], xticks=range(3), xlim=(-0.6, 2.6), ylim=(0, None))
            ax.set_xticklabels(
                [name.replace(" ", "\n").replace("-", "-\n", 1) for name in names.values()], fontsize=8.5
            )
            ax.grid(axis="x", visible=False)
        axes[0][0].set_ylabel("modularity Q")
        plt.close(fig)
    return fig


def networks(
    table: pd.DataFrame, measures: Mapping[str, str], key: str = "seed", height: float = 4.2
) -> tuple[Figure, np.ndarray]:
    """Measures over epochs, a row each, one column per label condition; one thin line per network, and their mean.

    Args:
        table: rows per network and epoch.
        measures: column -> what its axis is called.
        key: column that tells the networks of a condition apart.
        height: inches.

    Returns:
        The figure and its axes, shape (measures, conditions).
    """
    with figure_style():
        names = conditions_in(table)
        options = {"sharex": True, "sharey": "row", "squeeze": False}
        fig, axes = plt.subplots(len(measures), len(names), figsize=(WIDTH, height), **options)
        for column, condition in zip(axes.T, names, strict=True):
            runs = table[table["labels"] == condition]
            for ax, measure in zip(column, measures, strict=True):
                thin_lines(ax, runs.pivot(index="epoch", columns=key, values=measure), LABELS[condition])
            column[0].set_title(CONDITION_NAMES[condition])
            column[-1].set_xlabel("epoch")
        for ax, label in zip(axes[:, 0], measures.values(), strict=True):
            ax.set_ylabel(label)
        plt.close(fig)
    return fig, axes


def thin_lines(ax: plt.Axes, wide: pd.DataFrame, colour: str, label: str | None = None) -> None:
    """One thin line per network, and their mean; `wide` has a row per epoch and a column per network."""
    ax.plot(wide.index, wide, color=colour, alpha=0.35, lw=0.9)
    ax.plot(wide.index, wide.mean(axis=1), color=colour, lw=2.4, label=label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def series(table: pd.DataFrame, measure: str, ylabel: str) -> Figure:
    """A measure and the training accuracy over epochs, see :func:`networks`."""
    return networks(table, {measure: ylabel, "train_accuracy": "training accuracy"})[0]


def noise_scatter(grid: pd.DataFrame, measures: Sequence[str]) -> Figure:
    """Final measures against test accuracy, one point per network, colour by the level of label noise."""
    last = grid[grid["epoch"] == grid["epoch"].max()]
    with figure_style():
        fig, axes = plt.subplots(1, len(measures), figsize=(WIDTH, 3.1), sharey=True, squeeze=False)
        for ax, measure in zip(axes[0], measures, strict=True):
            options = {"c": last["noise"], "cmap": "plasma", "vmin": -0.4, "vmax": 1.1, "s": 26, "linewidths": 0}
            points = ax.scatter(last[measure], last["test_accuracy"], **options)
            ax.set_xlabel(BASELINES[measure])
            ax.set_title(f"ρ = {correlation(last[measure], last['test_accuracy']):.2f}")
        axes[0][0].set_ylabel("test accuracy")
        bar = fig.colorbar(points, ax=axes, label="symmetric label noise", shrink=0.85)
        bar.ax.set_ylim(0, 1)
        plt.close(fig)
    return fig


def forest(evidence: Sequence[Evidence]) -> Figure:
    """Estimates and intervals; the dotted line is the threshold, the colour the outcome (grey: not measurable)."""
    tests = list(dict.fromkeys(e.test for e in evidence))
    names = list(dict.fromkeys(e.dataset for e in evidence))
    with figure_style():
        size = (max(WIDTH, 1.1 * len(tests) + 1.4), 0.42 * len(names) + 1.2)
        fig, axes = plt.subplots(1, len(tests), figsize=size, sharey=True, squeeze=False)
        for ax, test in zip(axes[0], tests, strict=True):
            for item in (e for e in evidence if e.test == test and e.planned):
                y = names.index(item.dataset)
                colour = GREY if item.saturated else OUTCOMES[item.outcome][0]
                ax.plot([item.low, item.high], [y, y], color=colour, lw=2.4)
                ax.plot(item.estimate, y, "o", color=colour, ms=6)
                ax.axvline(item.threshold, color=INK, lw=0.9, alpha=0.6, ls=":")
            ax.set(ylim=(len(names) - 0.5, -0.5))
            ax.set_title(test, fontsize=8.5)
            ax.tick_params(axis="x", labelsize=8)
            ax.xaxis.set_major_locator(MaxNLocator(3))
        axes[0][0].set_yticks(range(len(names)), [in_figure(title_of(name)) for name in names])
        plt.close(fig)
    return fig
