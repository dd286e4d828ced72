"""Figures of experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nbutils.experiments.trials import OUTCOMES
from nbutils.runs.pruning import PRUNINGS
from nbutils.support.display import figure_style

__all__ = ["effects_figure", "pruning_figure"]

WIDTH, ROW = 7.6, 0.19  # inches
TOLD, OPEN, INK = "#3b82c4", "#8a8f98", "#6b7280"  # an effect after correction, one that is open, lines
LINES = (("#3b82c4", "o"), ("#d97a1a", "s"), ("#a35cc4", "^"), ("#8a8f98", "D"), ("#2a9d6f", "v"))  # of rules


def effects_figure(effects: pd.DataFrame, columns: Sequence[str]) -> Figure:
    """Effects of training conditions on one data set: a row per condition, a panel per measure.

    Args:
        effects: rows of one data set, see :func:`nbutils.experiments.effects.condition_effects`.
        columns: measures, a panel each.
    """
    rows = list(dict.fromkeys(effects["condition"]))
    titles = effects.drop_duplicates("condition")["title"].tolist()
    with figure_style():
        size = (WIDTH, ROW * len(rows) + 1.1)
        fig, axes = plt.subplots(1, len(columns), figsize=size, sharey=True, squeeze=False)
        for ax, column in zip(axes[0], columns, strict=True):
            own = effects[effects["column"] == column].set_index("condition").loc[rows]
            colours = [TOLD if adjusted <= 0.05 else OPEN for adjusted in own["adjusted"]]
            ax.hlines(range(len(rows)), own["low"], own["high"], color=colours, lw=1.5)
            ax.scatter(own["effect"], range(len(rows)), color=colours, s=14, zorder=3)
            ax.axvline(0, color=INK, lw=0.8)
            ax.set_title(OUTCOMES[column], fontsize=9.5)
            ax.set(yticks=range(len(rows)), yticklabels=titles)
            ax.tick_params(labelsize=8)
        axes[0][0].set_ylim(len(rows) - 0.4, -0.6)
        plt.close(fig)
    return fig


def pruning_figure(courses: pd.DataFrame, columns: Mapping[str, str], titles: Mapping[str, str]) -> Figure:
    """Measures against the share of weights pruned: a panel per measure and data set, a line per rule and stage.

    Args:
        courses: see :func:`nbutils.experiments.pruning_verdicts.pruning_courses`.
        columns: measure -> its name, a row of panels each.
        titles: data set -> its title, a column of panels each.
    """
    names, sparsities = list(dict.fromkeys(courses["rule"])), sorted(set(courses["sparsity"]))
    with figure_style():
        size = (WIDTH, 1.8 * len(columns) + 0.9)
        fig, axes = plt.subplots(len(columns), len(titles), figsize=size, sharex=True, sharey="row", squeeze=False)
        for row, column in zip(axes, columns, strict=True):
            for ax, dataset in zip(row, titles, strict=True):
                own = courses[(courses["column"] == column) & (courses["dataset"] == dataset)]
                _pruning_panel(ax, own, names, sparsities)
            row[0].set_ylabel(columns[column], fontsize=9)
        for ax, title in zip(axes[0], titles.values(), strict=True):
            ax.set_title(title, fontsize=9.5)
        axes[-1][len(titles) // 2].set_xlabel("weights pruned, %", fontsize=9)
        fig.legend(
            *axes[0][0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=len(set(courses["rule"])),
            fontsize=7.5,
        )
        plt.close(fig)
    return fig


def _pruning_panel(ax: Axes, own: pd.DataFrame, names: Sequence[str], sparsities: Sequence[float]) -> None:
    """Dashed before retraining, solid after it; bars are intervals, drawn beside each other."""
    for number, (name, (colour, marker)) in enumerate(zip(names, cycle(LINES), strict=False)):
        for stage, line in (("before", "--"), ("after", "-")):
            part = own[(own["rule"] == name) & (own["stage"] == stage)].set_index("sparsity").reindex(sparsities)
            place = [step + 0.07 * (number - len(names) / 2) for step in range(len(sparsities))]
            bars = [part["mean"] - part["low"], part["high"] - part["mean"]]
            look = {"color": colour, "marker": marker, "ms": 3.5, "lw": 1.3, "elinewidth": 0.9}
            hollow = {"mfc": "none"} if stage == "before" else {}
            label = f"{PRUNINGS[name].title if name in PRUNINGS else name}, {stage}"
            ax.errorbar(place, part["mean"], yerr=bars, ls=line, label=label, **look, **hollow)
    ax.set(xticks=range(len(sparsities)), xticklabels=[f"{100 * one:g}" for one in sparsities])
    ax.tick_params(labelsize=8)
