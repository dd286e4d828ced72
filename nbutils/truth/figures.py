"""Figures of ground truth: graded truth, ROC curves with the book's thresholds on them, and planted strength."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nbutils.drawing.display import figure_style
from nbutils.drawing.palette import LINE, MEASURES, NOTHING, SUBJECT
from nbutils.evaluation.words import t_interval
from nbutils.truth.planted import TASKS
from nbutils.truth.power import exceeding, roc_points
from nbutils.truth.verdicts import CLAIMS, KEYS, claim_scores, construction_scores

__all__ = ["NAMES", "constructions_figure", "roc_figure", "strength_figure", "truth_figure"]

WIDTH = 7.6
# Statistic -> what pages call it, its colour and marker.
NAMES: Mapping[str, tuple[str, str, str]] = {
    "excess": ("Q beyond chance", *MEASURES["excess"]),
    "remainder": ("remainder", *MEASURES["remainder"]),
    "left": ("left over", *MEASURES["left"]),
}
STATISTICS = {"modularity": "Q", "excess": "Q beyond chance", "remainder": "remainder", "two": "communities near two"}
FAMILIES = {"pairs": "images", "glyphs": "letters"}  # of tasks -> what they show
STRENGTHS = (0.0, 0.1, 0.3, 1.0)


def truth_figure(table: pd.DataFrame, tasks: Sequence[str]) -> Figure:
    """How far neurons depend on the first factor: a panel per task, a line per network.

    Args:
        table: rows of sound networks.
        tasks: keys of `TASKS`.
    """
    whole = table[table["kind"] == "whole"]
    columns = [f"depends_{k}" for k in range(10)]
    rows = -(-len(tasks) // 5)
    with figure_style():
        size = (WIDTH, 1.5 * rows + 0.5)
        fig, axes = plt.subplots(rows, 5, figsize=size, sharex=True, sharey=True, squeeze=False)
        for ax, task in zip(axes.ravel(), tasks, strict=False):
            counts = whole.loc[whole["task"] == task, columns].to_numpy(float)
            for line in counts / np.maximum(counts.sum(axis=1, keepdims=True), 1):
                ax.plot(np.arange(10) / 10 + 0.05, line, color=SUBJECT, lw=0.7, alpha=0.5)
            ax.set_title(TASKS[task].title, fontsize=8)
            ax.tick_params(labelsize=7.5)
            ax.set(xticks=[0, 0.5, 1], xlim=(0, 1))
        for ax in axes.ravel()[len(tasks) :]:
            ax.set_visible(False)
        fig.supxlabel("dependence on the first factor", fontsize=9)
        fig.supylabel("share of neurons", fontsize=9)
        plt.close(fig)
    return fig


def roc_figure(table: pd.DataFrame, panels: Mapping[str, Sequence[str]]) -> Figure:
    """ROC curves of claims, with a mark where the book's threshold lies on each.

    Args:
        table: rows of sound networks.
        panels: title of each panel -> keys of `CLAIMS`.
    """
    marks: dict[str, Line2D] = {}
    with figure_style():
        fig, axes = plt.subplots(1, len(panels), figsize=(WIDTH, 3.1), sharey=True, squeeze=False)
        for ax, (title, names) in zip(axes[0], panels.items(), strict=True):
            ax.plot([0, 1], [0, 1], color=LINE, lw=0.6, ls=":")
            for name in names:
                claim, (there, absent) = CLAIMS[name], claim_scores(table, CLAIMS[name])
                if not len(there) or not len(absent):
                    continue
                word, colour, marker = NAMES[claim.statistic]
                false, power, _ = roc_points(there, absent)
                ax.plot(false, power, color=colour, lw=1.5)
                marks[word] = Line2D([], [], color=colour, marker=marker, mec=LINE, mew=0.8, label=word)
                at = [exceeding(scores, claim.threshold).value for scores in (absent, there)]
                ax.plot(*at, marker, color=colour, ms=8, mec=LINE, mew=0.8, clip_on=False, zorder=4)
            ax.set_title(title, fontsize=9)
            ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="false alarms")
            ax.tick_params(labelsize=8)
        axes[0][0].set_ylabel("power")
        fig.legend(handles=list(marks.values()), loc="outside lower center", ncols=len(marks) or 1)
        plt.close(fig)
    return fig


def _corners(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Points of a curve at which it turns, shape (corners, 2)."""
    points = np.column_stack([x, y])
    steps = np.diff(points, axis=0)
    turns = np.abs(steps[:-1, 0] * steps[1:, 1] - steps[:-1, 1] * steps[1:, 0]) > 1e-12
    return points[np.r_[True, turns, True]]


def constructions_figure(table: pd.DataFrame, areas: pd.DataFrame) -> Figure:
    """ROC curves of every construction and resolution: a row of panels per family, a column per statistic.

    Args:
        table: of the experiment.
        areas: see :func:`nbutils.truth.verdicts.area_table`; its trusted rows are drawn in colour.
    """
    columns = [name for name in STATISTICS if name in set(areas["statistic"])]
    trusted = set(areas.loc[areas["word"] == "trusted", [*KEYS, "statistic"]].itertuples(index=False, name=None))
    with figure_style():
        size = (WIDTH, 1.9 * len(FAMILIES) + 0.3)
        fig, axes = plt.subplots(len(FAMILIES), len(columns), figsize=size, sharex=True, sharey=True, squeeze=False)
        drawn = set()  # once, what several constructions share
        for key, family, statistic, there, absent in construction_scores(table, columns):
            clear = (*key, statistic) in trusted
            curve = _corners(*roc_points(there, absent)[:2])
            if (what := (family, statistic, clear, curve.tobytes())) in drawn:
                continue
            drawn.add(what)
            look = {"color": SUBJECT, "lw": 1.2, "zorder": 3} if clear else {"color": NOTHING, "lw": 0.5, "alpha": 0.35}
            axes[list(FAMILIES).index(family)][columns.index(statistic)].plot(*curve.T, **look)
        for row, family in zip(axes, FAMILIES.values(), strict=True):
            row[0].set_ylabel(f"power, {family}")
        for ax, name in zip(axes[0], columns, strict=True):
            ax.set_title(STATISTICS[name], fontsize=9)
        for ax in axes.ravel():
            ax.plot([0, 1], [0, 1], color=LINE, lw=0.6, ls=":")
            ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
        fig.supxlabel("false alarms", fontsize=9)
        plt.close(fig)
    return fig


def strength_figure(table: pd.DataFrame, tasks: Sequence[str]) -> Figure:
    """What statistics say of firing in which groups were planted, by how strongly: means over networks, t intervals.

    Args:
        table: rows of sound networks.
        tasks: whose networks; sides are those of tasks with two modules only.
    """
    states = table[(table["kind"] == "state") & table["task"].isin(tasks)]
    two = [name for name in tasks if TASKS[name].role == "positive"]
    with figure_style():
        fig, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.7), sharey=True)
        for ax, (kind, title, chosen) in zip(
            axes, (("groups", "eight groups at random", tasks), ("sides", "two sides", two)), strict=True
        ):
            for statistic in ("remainder", "left"):
                word, colour, marker = NAMES[statistic]
                middle, ends = [], []
                for strength in STRENGTHS:
                    state = "shuffled" if strength == 0 else f"{kind} {strength:g}"
                    own = states[(states["state"] == state) & states["task"].isin(chosen)]
                    values = own.groupby(["task", "seed"])[statistic].mean().dropna().to_numpy()
                    middle.append(values.mean() if len(values) else np.nan)
                    ends.append(t_interval(values))
                ax.fill_between(range(len(STRENGTHS)), *np.transpose(ends), color=colour, alpha=0.25, lw=0)
                ax.plot(range(len(STRENGTHS)), middle, marker, ls="-", color=colour, label=word)
            ax.axhline(0.02, color=LINE, lw=0.8, ls="--", label="the book's threshold")
            ax.set(xticks=range(len(STRENGTHS)), xticklabels=[f"{s:g}" for s in STRENGTHS], xlabel="planted strength")
            ax.set_title(title, fontsize=9.5)
            ax.tick_params(labelsize=8)
        axes[0].legend(fontsize=8)
        plt.close(fig)
    return fig
