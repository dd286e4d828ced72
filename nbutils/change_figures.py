"""Figures of how communities change: when they settle, what happens to them, which classes they answer to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from nbutils.answering import short_name
from nbutils.display import GREY, INK, figure_style, in_figure
from nbutils.events import KINDS
from nbutils.figures import CONDITION_COLOURS, CONDITION_NAMES, conditions_in
from nbutils.flows import COLOURS

__all__ = ["event_panels", "identities", "preferences", "stability"]

STABILITY = {"agreement": "agreement (AMI)", "overlap": "overlap", "flexibility": "flexibility"}
PHASE_COLOURS = ("#8a8f98", "#3fb0c4", "#3b82c4", "#a35cc4")
NARROWEST = 5.6  # inches that the legends need
LETTER = 0.0125  # width of a letter, as a share of the axis


def stability(evolution: pd.DataFrame, table: pd.DataFrame) -> Figure:
    """How far successive epochs agree, one thin line per network, beside how far two searches of one graph agree.

    Args:
        evolution: rows of the extra "evolution".
        table: rows per run and epoch; its `agreement` is that of two searches.

    Returns:
        A matplotlib figure.
    """
    names = conditions_in(evolution)
    with figure_style():
        size = (max(2.1 + 1.85 * len(names), NARROWEST), 5.4)
        fig, axes = plt.subplots(len(STABILITY), len(names), figsize=size, sharex=True, sharey="row", squeeze=False)
        for column, condition in enumerate(names):
            runs = evolution[evolution["labels"] == condition]
            for ax, measure in zip(axes[:, column], STABILITY, strict=True):
                _lines(ax, runs, measure, condition)
            control = table[table["labels"] == condition].groupby("epoch")["agreement"].mean().dropna()
            drawn = axes[0, column].plot(control.index, control, "s", color=GREY, ms=6)
            axes[0, column].set_title(CONDITION_NAMES[condition])
            axes[-1, column].set_xlabel("epoch")
            axes[-1, column].xaxis.set_major_locator(MaxNLocator(integer=True))
        for ax, label in zip(axes[:, 0], STABILITY.values(), strict=True):
            ax.set(ylabel=label, ylim=(min(0, ax.get_ylim()[0]), 1.04))
        thick = axes[0, 0].lines[-2]
        words = ["an epoch with the one before, mean", "two searches of one graph, mean"]
        fig.legend([thick, drawn[0]], words, loc="outside lower center", ncols=2)
        plt.close(fig)
    return fig


def event_panels(rates: pd.DataFrame, alone: Mapping[str, pd.Series]) -> Figure:
    """Events of each kind per step, one panel per label condition, one dot with its interval per part of training.

    Args:
        rates: from :func:`nbutils.changes.event_rates`.
        alone: events that the search alone makes, by label condition, from :func:`nbutils.changes.search_alone`.

    Returns:
        A matplotlib figure.
    """
    names, parts = conditions_in(rates), list(dict.fromkeys(rates["phase"]))
    with figure_style():
        fig, axes = plt.subplots(
            1, len(names), figsize=(max(2.6 + 1.7 * len(names), NARROWEST), 4.6), sharey=True, squeeze=False
        )
        for ax, condition in zip(axes[0], names, strict=True):
            for number, (part, colour) in enumerate(zip(parts, PHASE_COLOURS, strict=False)):
                rows = rates[(rates["labels"] == condition) & (rates["phase"] == part)].set_index("kind").loc[[*KINDS]]
                y = np.arange(len(KINDS)) + 0.18 * (number - (len(parts) - 1) / 2)
                ax.hlines(y, rows["low"], rows["high"], color=colour, lw=2)
                ax.plot(rows["mean"], y, "o", color=colour, ms=4.5, label=part)
            if condition in alone:
                style = {"color": INK, "ms": 13, "mew": 1.2, "alpha": 0.7, "label": "the search alone"}
                ax.plot(alone[condition][[*KINDS]], range(len(KINDS)), "|", **style)
            ax.set(title=CONDITION_NAMES[condition], xlabel="events per step", xlim=(0, None))
            ax.grid(axis="y", visible=False)
        axes[0][0].set(yticks=range(len(KINDS)), yticklabels=KINDS, ylim=(len(KINDS) - 0.5, -0.5))
        fig.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(fig)
    return fig


def preferences(found: pd.DataFrame, chance: float) -> Figure:
    """How clearly communities answer to classes over epochs, and to how many classes; one thin line per network.

    Args:
        found: from :func:`nbutils.answering.clarity`.
        chance: preference for shuffled classes, drawn as a dotted line.

    Returns:
        A matplotlib figure.
    """
    names = conditions_in(found)
    with figure_style():
        fig, axes = plt.subplots(
            2, len(names), figsize=(2.1 + 1.85 * len(names), 4.2), sharex=True, sharey="row", squeeze=False
        )
        for column, condition in enumerate(names):
            runs = found[found["labels"] == condition]
            for ax, measure in zip(axes[:, column], ("preference", "classes"), strict=True):
                _lines(ax, runs, measure, condition)
            axes[0, column].axhline(chance, color=GREY, ls=":", lw=1.6)
            axes[0, column].set_title(CONDITION_NAMES[condition])
            axes[1, column].set_xlabel("epoch")
            axes[1, column].xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[0, 0].set(ylabel="preference", ylim=(0, 1.02))
        axes[1, 0].set(ylabel="classes answered to", ylim=(0, None))
        plt.close(fig)
    return fig


def identities(answers: pd.DataFrame, classes: Sequence[str], most: int = 18) -> Figure:
    """The communities of one network over epochs, each cell in the colour of the class that it answers to.

    Args:
        answers: rows of the extra "answers" of one run.
        classes: names of the classes.
        most: communities shown, those with the most neurons over all epochs; in order of birth.

    Returns:
        A matplotlib figure.
    """
    weight = answers.groupby("community")["neurons"].sum().sort_values(ascending=False, kind="stable")
    rows = answers[answers["community"].isin(weight.index[:most])].sort_values("epoch", kind="stable")
    order = rows.groupby("community")["epoch"].agg(["min", "max"]).sort_values(["min", "max"]).index
    kinds = sorted(set(rows["answers_to"]) - {-1})
    tones = [*COLOURS] if len(kinds) <= len(COLOURS) else sns.husl_palette(len(kinds), s=0.6, l=0.62)
    colours = {-1: GREY, **dict(zip(kinds, tones, strict=False))}
    first, last = answers["epoch"].min(), answers["epoch"].max()
    with figure_style():
        fig, ax = plt.subplots(figsize=(7.6, 1 + 0.27 * len(order)))
        for y, name in enumerate(order):
            _stretches(ax, y, rows[rows["community"] == name], colours, classes, last - first + 1)
        ax.set(xlim=(first - 0.5, last + 0.5), ylim=(len(order) - 0.5, -0.5), xlabel="epoch", ylabel="community")
        ax.set(yticks=range(len(order)), yticklabels=[name + 1 for name in order])
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.grid(visible=False)
        plt.close(fig)
    return fig


def _stretches(
    ax: Axes, y: int, own: pd.DataFrame, colours: Mapping[int, object], classes: Sequence[str], epochs: int
) -> None:
    """One community: a cell per epoch, deeper the clearer it answers, and the class written where it has room."""
    for cell in own.itertuples():
        place = (cell.epoch - 0.5, y - 0.42)
        alpha = 0.25 + 0.65 * cell.preference
        ax.add_patch(Rectangle(place, 1, 0.84, facecolor=colours[cell.answers_to], alpha=alpha, linewidth=0))
    for _, same in own.groupby((own["answers_to"].diff() != 0).cumsum()):
        kind = same["answers_to"].iloc[0]
        text = short_name(classes[kind]) if kind >= 0 else "no class"
        if (len(text) + 1) * LETTER <= len(same) / epochs:
            ax.text(same["epoch"].mean(), y, in_figure(text), ha="center", va="center_baseline", fontsize=8.5)


def _lines(ax: Axes, runs: pd.DataFrame, measure: str, condition: str) -> None:
    """One thin line per network, and their mean."""
    wide = runs.pivot(index="epoch", columns="run", values=measure)
    ax.plot(wide.index, wide, color=CONDITION_COLOURS[condition], alpha=0.35, lw=0.9)
    ax.plot(wide.index, wide.mean(axis=1), color=CONDITION_COLOURS[condition], lw=2.4)
