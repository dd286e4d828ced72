"""An alluvial figure: how the neurons of communities flow from epoch to epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from nbutils.communities import ISOLATED
from nbutils.drawing.display import figure_style, in_figure
from nbutils.drawing.palette import COMMUNITIES, GREY
from nbutils.support.checks import as_labels, as_partitions

BAR = 0.13  # width of a band, in steps between columns
GAP = 0.012  # between bands, as a share of all neurons
WRITTEN = 0.02  # share of all neurons that a band needs to get a label
SWEEPS = 6  # over the columns, forth and back, to put bands near where their neurons come from and go to


def alluvial(
    tracked: Any,
    epochs: Sequence[int],
    *,
    shown: Sequence[int] | None = None,
    names: Mapping[int, str] | None = None,
) -> Figure:
    """Communities as bands, one column per epoch, and ribbons for the neurons that go from one to the next.

    The height of a band is its number of neurons. A community keeps its colour as long as it keeps its identity; the
    grey band at the bottom holds the isolated neurons. A ribbon has the colour that its neurons come from.

    Args:
        tracked: identity per snapshot and neuron, shape (snapshots, neurons), from
            :func:`nbutils.tracking.track_communities`.
        epochs: epoch of each snapshot, shape (snapshots,).
        shown: the epochs to draw, at least 2; None means all. Ribbons then join the epochs that are drawn.
        names: what to write beside the bands of the last column; the others get their number, counted from 1.

    Returns:
        A matplotlib figure.

    Raises:
        ValueError: shapes disagree, or fewer than two epochs are to be shown, or one that is not there.
    """
    table, times = as_partitions(tracked, "tracked"), as_labels(epochs, None, "epochs").tolist()
    if len(times) != len(table):
        raise ValueError(f"epochs must have one value per snapshot, received {len(times)} for {len(table)} snapshots")
    wanted = times if shown is None else as_labels(shown, None, "shown").tolist()
    if names is not None and not isinstance(names, Mapping):
        raise TypeError(f"names must map communities to words, received {type(names).__name__}")
    if len(wanted) < 2 or not set(wanted) <= set(times):
        raise ValueError(f"shown must be at least two of the epochs {times}, received {wanted}")
    columns = np.maximum(table[[times.index(epoch) for epoch in wanted]], ISOLATED)
    bottoms = _places(columns)
    colours = _colours(columns)
    with figure_style():
        fig, ax = plt.subplots(figsize=(7.8, 4.4))
        for step in range(len(columns) - 1):
            _ribbons(ax, step, columns, bottoms, colours)
        for step, column in enumerate(columns):
            _bands(ax, step, column, bottoms[step], colours)
        _write(ax, columns, bottoms, {} if names is None else names)
        ax.set(xticks=range(len(wanted)), xticklabels=wanted, xlabel="epoch", yticks=[])
        ax.spines[:].set_visible(False)
        ax.grid(visible=False)
        ax.tick_params(length=0)
        plt.close(fig)
    return fig


def _places(columns: np.ndarray) -> list[dict[int, float]]:
    """Lower edge of every band, per column; the order of the bands follows where their neurons are next door."""
    orders = [[name for name in np.unique(column) if name != ISOLATED] for column in columns]
    orders[0].sort(key=lambda name: -(columns[0] == name).sum())
    steps = len(columns)
    for sweep in range(SWEEPS):
        forth = sweep % 2 == 0
        for step in range(1, steps) if forth else range(steps - 2, -1, -1):
            beside = step - 1 if forth else step + 1
            places = _stack(columns[beside], orders[beside])
            heights = np.array([places[name] + (columns[beside] == name).sum() / 2 for name in columns[beside]])
            heights[columns[beside] == ISOLATED] = np.nan
            orders[step].sort(key=lambda name, at=columns[step], of=heights: _mean(of[at == name]))
    return [_stack(column, order) for column, order in zip(columns, orders, strict=True)]


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else np.inf


def _stack(column: np.ndarray, order: Sequence[int]) -> dict[int, float]:
    """Lower edge of every band of a column, the neurons in no community at the bottom."""
    found, height = {}, 0.0
    for name in (ISOLATED, *order):
        if size := int((column == name).sum()):
            found[name] = height
            height += size + GAP * len(column)
    return found


def _colours(columns: np.ndarray) -> dict[int, Any]:
    """A colour per identity: the largest ones, over all columns, get those that differ most."""
    names, size = np.unique(columns[columns != ISOLATED], return_counts=True)
    tones = [*COMMUNITIES, *sns.husl_palette(max(len(names) - len(COMMUNITIES), 1), s=0.55, l=0.65)]
    return {ISOLATED: GREY, **dict(zip(names[np.argsort(-size, kind="stable")].tolist(), tones, strict=False))}


def _ribbons(
    ax: Axes, step: int, columns: np.ndarray, bottoms: Sequence[Mapping[int, float]], colours: Mapping[int, Any]
) -> None:
    left, right = columns[step], columns[step + 1]
    start, end = dict(bottoms[step]), dict(bottoms[step + 1])  # how far each band is used up on either side
    sources, targets = list(start), list(end)
    size = {(a, b): int(((left == a) & (right == b)).sum()) for a in sources for b in targets}
    low = dict.fromkeys(size, 0.0)
    for a, b in size:
        low[a, b], start[a] = start[a], start[a] + size[a, b]
    x = np.array([step + BAR / 2, step + 0.5, step + 0.5, step + 1 - BAR / 2])
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    for b in targets:
        for a in sources:
            if wide := size[a, b]:
                y = np.array([low[a, b], low[a, b], end[b], end[b]])
                end[b] += wide
                outline = np.vstack([np.c_[x, y], np.c_[x, y + wide][::-1], [(x[0], y[0])]])
                alpha = 0.22 if a == ISOLATED or b == ISOLATED else 0.5
                ax.add_patch(PathPatch(Path(outline, codes), facecolor=colours[a], alpha=alpha, linewidth=0))


def _bands(ax: Axes, step: int, column: np.ndarray, bottoms: Mapping[int, float], colours: Mapping[int, Any]) -> None:
    for name, low in bottoms.items():
        tone = 0.45 if name == ISOLATED else 1
        box = Rectangle((step - BAR / 2, low), BAR, (column == name).sum(), facecolor=colours[name], alpha=tone)
        ax.add_patch(box)


def _write(ax: Axes, columns: np.ndarray, bottoms: Sequence[Mapping[int, float]], names: Mapping[int, str]) -> None:
    """What the bands of the first and of the last column are."""
    for step, side in ((0, -1), (len(columns) - 1, 1)):
        for name, low in bottoms[step].items():
            size = int((columns[step] == name).sum())
            if size < WRITTEN * columns.shape[1]:
                continue
            number = str(name + 1)
            text = "isolated" if name == ISOLATED else names.get(name, number) if side > 0 else number
            where = (step + side * (BAR / 2 + 0.006 * len(columns)), low + size / 2)
            ax.text(
                *where, f"{in_figure(text)} ({size})", ha="left" if side > 0 else "right", va="center", fontsize=8.5
            )
    top = max(
        low + (column == name).sum() for column, b in zip(columns, bottoms, strict=True) for name, low in b.items()
    )
    ax.set(xlim=(-BAR / 2, len(columns) - 1 + BAR / 2), ylim=(-GAP * columns.shape[1], top))
