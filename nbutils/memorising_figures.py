"""Figures of memorising runs: each takes tables of results and returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

from nbutils.display import GREY, INK, figure_style
from nbutils.memorising import at_turn, learners, long_runs, turn_of
from nbutils.results import Results

__all__ = ["accuracy_figure", "course_figure", "learning_figure", "short_figure"]

COLOURS = ("#3b82c4", "#d97a1a", "#2a9d6f", "#a35cc4")
ACCURACIES = {
    "train_accuracy": ("training labels as given", "#a35cc4", "-"),
    "true_accuracy": ("true labels of the training images", "#3b82c4", "-"),
    "test_accuracy": ("test images", "#d97a1a", "--"),
}
LATE = (8, 9)  # epochs from which on the paper's entropy rises with random labels
ACROSS = 3  # panels side by side
NAMES = {"epoch": "epoch", "train_accuracy": "training accuracy"}


def accuracy_figure(runs: pd.DataFrame) -> Figure:
    """Three accuracies over the epochs of each long run; dotted: chance.

    Args:
        runs: see :func:`nbutils.memorising.long_runs`.
    """
    with figure_style():
        fig, axes = _grid(runs["title"].nunique(), 2.5, sharey=True)
        for ax, (title, run) in zip(axes, runs.groupby("title", sort=False), strict=True):
            for column, (label, colour, line) in ACCURACIES.items():
                ax.plot(run["epoch"], run[column], color=colour, ls=line, lw=1.8, label=label)
            ax.axhline(run["chance"].iloc[0], color=INK, lw=1, ls=":", alpha=0.7)
            ax.set(title=title, ylim=(0, 1.02), xlabel="epoch")
            ax.xaxis.set_major_locator(MaxNLocator(4, integer=True))
        columns = 3 if len(axes) >= ACROSS else 1  # a narrow figure has no room for names side by side
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=columns)
        plt.close(fig)
    return fig


def course_figure(runs: pd.DataFrame, measures: Mapping[str, str], x: str = "epoch", mark: str = "") -> Figure:
    """Measures of the long runs over epochs (on a logarithmic axis) or training accuracy, one colour per data set.

    Args:
        runs: see :func:`nbutils.memorising.long_runs`.
        measures: column -> title of its panel.
        x: "epoch" or "train_accuracy".
        mark: column whose turning point is marked by a dot on all curves; "" marks each curve's own.
    """
    with figure_style():
        fig, axes = _grid(len(measures), 2.1)
        for ax, (column, name) in zip(axes, measures.items(), strict=True):
            for (title, run), colour in zip(runs.groupby("title", sort=False), COLOURS, strict=False):
                ax.plot(run[x], run[column], color=colour, lw=1.5, label=title)
                _dot(ax, run, mark or column, x, column, colour)
            ax.set(title=name, xlabel=NAMES[x])
            if x == "epoch":
                _logarithmic(ax)
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        plt.close(fig)
    return fig


def short_figure(networks: pd.DataFrame, measure: str, name: str) -> Figure:
    """A measure of every network with random labels, and their mean; dots: turning points; band: the paper's epochs.

    Args:
        networks: see :func:`nbutils.memorising.random_networks`.
        measure: column.
        name: what the axis calls it.
    """
    with figure_style():
        titles = networks["title"].nunique()
        fig, axes = plt.subplots(1, titles, figsize=(3.8 * max(titles, 1.4), 3.0), squeeze=False)
        for ax, (title, table) in zip(axes[0], networks.groupby("title", sort=False), strict=True):
            ax.axvspan(LATE[0] - 0.5, LATE[1] + 0.5, color=GREY, alpha=0.2, lw=0)
            for _, run in table.groupby("run", sort=False):
                ax.plot(run["epoch"], run[measure], color=COLOURS[3], alpha=0.35, lw=0.9)
                _dot(ax, run, measure, "epoch", measure, COLOURS[3])
            mean = table.groupby("epoch")[measure].mean()
            ax.plot(mean.index, mean, color=COLOURS[3], lw=2.4)
            ax.set(title=title, xlabel="epoch")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[0][0].set_ylabel(name)
        plt.close(fig)
    return fig


def learning_figure(studies: Sequence[Results], measures: Mapping[str, str]) -> Figure:
    """Measures against training accuracy: the memorising run as a line, networks with true labels as dots.

    Args:
        studies: results of data sets; those without a memorising run are left out.
        measures: column -> title of its panels.
    """
    pairs = [(run, learners(result)) for result in studies if len(run := long_runs([result]))]
    with figure_style():
        size = (2.55 * len(measures), 1.9 * len(pairs) + 0.6)
        fig, axes = plt.subplots(len(pairs), len(measures), figsize=size, sharex=True, squeeze=False)
        for row, (run, own) in zip(axes, pairs, strict=True):
            for ax, column in zip(row, measures, strict=True):
                ax.plot(run["train_accuracy"], run[column], color=COLOURS[3], lw=1.6, label="memorising, one run")
                dots = {"s": 14, "color": COLOURS[0], "alpha": 0.6, "linewidths": 0}
                ax.scatter(own["train_accuracy"], own[column], label="learning, one dot an epoch", zorder=3, **dots)
            row[0].set_ylabel(run["title"].iloc[0])
        for ax, name in zip(axes[0], measures.values(), strict=True):
            ax.set_title(name)
        for ax in axes[-1]:
            ax.set(xlabel="training accuracy", xlim=(0, 1.03))
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(fig)
    return fig


def _grid(panels: int, height: float, **options: bool) -> tuple[Figure, list[Axes]]:
    """Panels in rows of at most three; places that are left over stay empty."""
    across = min(panels, ACROSS)
    down = -(-panels // across)
    size = (2.1 + 1.85 * across, height * down + 0.5)
    fig, axes = plt.subplots(down, across, figsize=size, squeeze=False, **options)
    for ax in axes.flat[panels:]:
        ax.set_axis_off()
    return fig, list(axes.flat[:panels])


def _dot(ax: Axes, run: pd.DataFrame, turning: str, x: str, y: str, colour: str) -> None:
    """A dot where a measure turns upward, if it does."""
    turn = turn_of(run, turning)
    if turn.found:
        ax.plot(at_turn(run, turn, x), at_turn(run, turn, y), "o", color=colour, ms=5.5, mec="white", mew=0.8)


def _logarithmic(ax: Axes) -> None:
    ax.set_xscale("log")
    ax.set_xticks([t for t in (1, 3, 10, 30, 100, 300) if t <= ax.get_xlim()[1]])
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.minorticks_off()
