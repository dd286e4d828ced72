"""Figures of the released code's quirks: each takes a table and returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nbutils.arguments import checked
from nbutils.display import GREY, INK, figure_style
from nbutils.quirks import SWITCHES, as_switched
from nbutils.replication import as_compared

__all__ = ["entropy_panels", "modularity_panels", "published_panels"]

BLUE, ORANGE, PURPLE = "#3b82c4", "#d97a1a", "#a35cc4"
# Switches that touch the entropy, by what the networks were trained on: the paper's bins, then strict ones.
BINS = {"trained on 0 to 1": ("the paper's", "strict bins"), "trained on bytes": ("trained on bytes", "all five")}
ACROSS = 4  # panels side by side


@checked
def modularity_panels(rows: pd.DataFrame) -> Figure:
    """Modularity over epochs, one panel per switch; thin lines are networks, grey marks the circular-shift null.

    Args:
        rows: see :func:`nbutils.quirks.switched`.
    """
    if as_switched(rows, numbers=("modularity", "null_circular")).empty:
        raise ValueError("rows must hold at least one switch, received none")
    names = list(rows["switch"].unique())
    with figure_style():
        down = -(-len(names) // ACROSS)
        fig, axes = plt.subplots(
            down, ACROSS, figsize=(7.8, 2.05 * down + 0.4), sharex=True, sharey=True, squeeze=False
        )
        for ax, name in zip(axes.flat, names, strict=False):
            own = rows[rows["switch"] == name]
            _networks(ax, own.pivot(index="epoch", columns="seed", values="modularity"), _colour(name))
            null = own.groupby("epoch")["null_circular"].mean().dropna()
            ax.plot(null.index, null, "D", color=GREY, ms=5, label="circular-shift null")
            ax.set_title(name, fontsize=9.5)
        for ax in axes[-1]:
            ax.set_xlabel("epoch")
        for ax in axes[:, 0]:
            ax.set_ylabel("modularity Q")
        axes[0][0].set_ylim(bottom=min(0, axes[0][0].get_ylim()[0]))
        fig.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center")
        plt.close(fig)
    return fig


@checked
def entropy_panels(rows: pd.DataFrame) -> Figure:
    """The paper's entropy over epochs, with both kinds of bins, for networks trained on 0 to 1 and on bytes.

    Args:
        rows: see :func:`nbutils.quirks.switched`.
    """
    as_switched(rows, numbers=("pattern_entropy",))
    with figure_style():
        fig, axes = plt.subplots(1, len(BINS), figsize=(7.2, 2.9), sharey=True)
        for ax, (title, names) in zip(axes, BINS.items(), strict=True):
            for name, label, colour in zip(names, ("the paper's bins", "strict bins"), (BLUE, ORANGE), strict=True):
                own = rows[rows["switch"] == name]
                _networks(ax, own.pivot(index="epoch", columns="seed", values="pattern_entropy"), colour, label)
            ax.set(title=title, xlabel="epoch")
        axes[0].set_ylabel("network entropy (bits)")
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(fig)
    return fig


@checked
def published_panels(series: pd.DataFrame, ours: Mapping[str, pd.DataFrame]) -> Figure:
    """The published entropy beside ours: in bits, and as the change since the first epoch.

    Args:
        series: see :func:`nbutils.published.read_series`.
        ours: see :func:`nbutils.replication.entropy_series`; may be empty.
    """
    as_compared(series, ours)
    published = series.set_index("epoch")[["entropy_bits"]]
    with figure_style():
        fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.1))
        for ax, change in zip(axes, (False, True), strict=True):
            for (name, wide), colour in zip(ours.items(), (BLUE, ORANGE), strict=False):
                _networks(ax, wide - wide.iloc[0] if change else wide, colour, name)
            shown = published - published.iloc[0] if change else published
            ax.plot(shown.index, shown, "o", color=PURPLE, ms=4.5, label="published")
            ax.set(title="change since epoch 1 (bits)" if change else "network entropy (bits)", xlabel="epoch")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[1].axhline(0, color=INK, lw=0.8, alpha=0.5)
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(fig)
    return fig


def _networks(ax: plt.Axes, wide: pd.DataFrame, colour: str, label: str | None = None) -> None:
    ax.plot(wide.index, wide, color=colour, alpha=0.3, lw=0.8)
    ax.plot(wide.index, wide.mean(axis=1), color=colour, lw=2.4, label=label)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _colour(name: str) -> str:
    """Blue without a switch, orange with one, purple with several."""
    places = list(SWITCHES)
    return BLUE if name == places[0] else PURPLE if places.index(name) >= len(places) - 2 else ORANGE
