"""Figures of a sweep: heat maps over the grid, marginal effects, all metrics at once, time spent."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from nbutils.drawing.display import figure_style, in_figure
from nbutils.drawing.palette import GREY, RED, SUBJECT
from nbutils.sweeps.tables import axes_of, marginal_means, one_metric

CHARACTERS = 20  # of tick labels side by side in a small panel
PANELS = 12  # more small multiples than this are no longer readable


def heat_maps(measured: pd.DataFrame) -> Figure:
    """Mean of a metric over the first two parameters, one panel per combination of the others; mean over seeds.

    Args:
        measured: see :func:`nbutils.sweeps.tables.one_metric`.
    """
    axes = axes_of(measured)
    nothing = {axis: measured[axis].astype(object).where(measured[axis].notna(), "null") for axis in axes}
    measured = measured.assign(**nothing)  # which no grouping leaves out
    # What is the same in all rows stands in for a missing axis.
    (rows, columns), others = [*axes, "sweep", "notebook"][:2], axes[2:]
    groups = list(measured.groupby(others, sort=False)) if others else [((), measured)]
    groups = groups[:PANELS]
    low, high = measured["value"].min(), measured["value"].max()
    with panels(len(groups), 1.1 + 0.36 * measured[rows].nunique()) as (fig, grid):
        for ax, (values, group) in zip(grid, groups, strict=True):
            means = group.pivot_table(index=rows, columns=columns, values="value", sort=False)
            means = means.rename(index=_in_figure, columns=_in_figure)
            means = means.rename_axis(index=in_figure(rows), columns=in_figure(columns))
            options = {"vmin": low, "vmax": high, "cmap": "viridis", "annot": means.size <= 80, "fmt": ".2f"}
            sns.heatmap(means, ax=ax, cbar=False, annot_kws={"size": 8}, **options)
            ax.set_title(in_figure(", ".join(f"{k} = {v}" for k, v in zip(others, values, strict=True))))
            ax.tick_params(axis="y", rotation=0)
    return fig


def marginals(measured: pd.DataFrame) -> Figure:
    """A metric over each parameter in turn: dots are runs, the line their means with 95 % intervals.

    Args:
        measured: see :func:`nbutils.sweeps.tables.one_metric`.
    """
    axes = axes_of(measured) or ["sweep"]
    with panels(len(axes), 2.9, sharey=True) as (fig, grid):
        for ax, axis in zip(grid, axes, strict=True):
            _marginal(ax, measured, axis)
        grid[0].set_ylabel(in_figure(measured["metric"].iloc[0]))
    return fig


def all_metrics(table: pd.DataFrame, axis: str) -> Figure:
    """Every metric over one parameter, one small panel each, scales of their own."""
    numbers = table[(table["status"] == "done") & table["value"].notna()]
    metrics = list(dict.fromkeys(numbers["metric"]))[:PANELS]
    with panels(len(metrics), 2.3) as (fig, grid):
        for ax, metric in zip(grid, metrics, strict=True):
            _marginal(ax, one_metric(table, metric), axis)
            ax.set_title(in_figure(textwrap.fill(metric, 26)))
    return fig


def time_spent(table: pd.DataFrame) -> Figure:
    """Seconds per notebook, over the first parameter: one dot a run."""
    runs = table.drop_duplicates("run")
    axis = (axes_of(runs) or ["sweep"])[0]
    with panels(1, 2.6) as (fig, (ax,)):
        order = list(dict.fromkeys(runs[axis]))
        for status, colour in (("done", SUBJECT), ("failed", RED)):
            some = runs[runs["status"] == status]
            places = np.array([order.index(v) for v in some[axis]], dtype=float)
            if len(some):
                ax.scatter(places + _spread(len(some)), some["seconds"], s=14, color=colour, alpha=0.7, label=status)
        ax.set_xticks(range(len(order)), map(in_figure, order))
        ax.set(xlabel=in_figure(axis), ylabel="seconds", ylim=(0, None))
        if (runs["status"] == "failed").any():
            fig.legend(loc="outside lower center", ncols=2)
    return fig


@contextmanager
def panels(count: int, height: float, across: int = 3, **options: Any) -> Iterator[tuple[Figure, np.ndarray]]:
    """A figure with so many panels of that height, some in a row; notebooks show it only where they are told to."""
    wide = min(count, across)
    tall = -(-count // wide)
    with figure_style():
        fig, axes = plt.subplots(tall, wide, figsize=(7.6, height * tall), squeeze=False, **options)
        for ax in axes.flat[count:]:
            ax.set_axis_off()
        yield fig, axes.flat[:count]
        plt.close(fig)


def _marginal(ax: plt.Axes, measured: pd.DataFrame, axis: str) -> None:
    means = marginal_means(measured, axis)
    places = {value: place for place, value in enumerate(means[axis])}
    at = measured[axis].map(places).to_numpy(dtype=float)
    ax.scatter(at + _spread(len(at)), measured["value"], s=10, color=GREY, alpha=0.5)
    x = np.arange(len(means))
    ends = np.abs(np.array([means["mean"] - means["low"], means["high"] - means["mean"]]))
    ax.errorbar(x, means["mean"], np.nan_to_num(ends), color=SUBJECT, marker="o", ms=5, lw=1.6, capsize=3)
    crowded = sum(len(str(value)) for value in means[axis]) > CHARACTERS
    ax.set(xticks=x, xlabel=in_figure(axis), xlim=(-0.5, len(x) - 0.5))
    ax.set_xticklabels(map(in_figure, means[axis]), rotation=30 if crowded else 0, ha="right" if crowded else "center")


def _in_figure(value: object) -> object:
    return in_figure(value) if isinstance(value, str) else value


def _spread(count: int) -> np.ndarray:
    """Small sideways shifts, the same every time, so that dots do not hide each other."""
    return np.random.default_rng(0).uniform(-0.12, 0.12, count)
