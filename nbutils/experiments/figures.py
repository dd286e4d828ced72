"""Figures of experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nbutils.evaluation.words import t_interval
from nbutils.experiments.lesions import KINDS
from nbutils.experiments.trials import OUTCOMES
from nbutils.support.display import figure_style

__all__ = ["effects_figure", "sets_figure"]

WIDTH, ROW = 7.6, 0.19  # inches
TOLD, OPEN, INK = "#3b82c4", "#8a8f98", "#6b7280"  # an effect after correction, one that is open, lines


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


def sets_figure(values: pd.DataFrame, kinds: Sequence[str], groups: Mapping[tuple[str, str], str]) -> Figure:
    """Specificity of sets of neurons: a row per kind, a panel per kind of network and data set.

    Args:
        values: a row per network and kind, see :func:`nbutils.experiments.lesion_verdicts.specificities`.
        kinds: of sets, from top to bottom; communities themselves are drawn in colour.
        groups: (data set, condition) -> title of its panel.
    """
    with figure_style():
        size = (WIDTH, 0.34 * len(kinds) + 1.0)
        fig, axes = plt.subplots(1, len(groups), figsize=size, sharey=True, sharex=True, squeeze=False)
        for ax, ((dataset, condition), title) in zip(axes[0], groups.items(), strict=True):
            own = values[(values["dataset"] == dataset) & (values["condition"] == condition)]
            for row, kind in enumerate(kinds):
                colour = TOLD if kind in ("community", "cut") else OPEN
                _dots(ax, row, own.loc[own["kind"] == kind, "specificity"].to_numpy(), colour)
            ax.axvline(0, color=INK, lw=0.8)
            ax.set_title(title, fontsize=9.5)
            ax.set(yticks=range(len(kinds)), yticklabels=[KINDS[kind] for kind in kinds])
            ax.tick_params(labelsize=8)
        axes[0][0].set_ylim(len(kinds) - 0.5, -0.5)
        fig.supxlabel("specificity: loss on the preferred class beyond that on others", fontsize=9)
        plt.close(fig)
    return fig


def _dots(ax: Axes, row: int, values: np.ndarray, colour: str) -> None:
    """Networks as dots, above them their mean with its 95 % interval."""
    ax.scatter(values, np.full(len(values), row + 0.18), color=colour, s=6, alpha=0.6, linewidths=0)
    if len(values) > 1:
        ax.hlines(row - 0.12, *t_interval(values), color=colour, lw=2)
        ax.scatter(values.mean(), row - 0.12, color=colour, s=22, zorder=3)
