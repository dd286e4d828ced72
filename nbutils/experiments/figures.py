"""Figures of experiments."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from nbutils.experiments.trials import OUTCOMES
from nbutils.support.display import figure_style

__all__ = ["effects_figure"]

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
