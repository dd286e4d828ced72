"""Figures of the published series: each takes its table, or one made from it, and returns a matplotlib figure."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nbutils.correlations import correlation
from nbutils.display import GREY, INK, figure_style
from nbutils.published import ACCURACIES
from nbutils.series import detrended_correlation, saturating_curve

__all__ = ["KNOBS", "knob_figure", "predictor_figure", "series_figure"]

COLOURS = {"entropy_bits": "#a35cc4", "train_accuracy": "#3b82c4", "test_accuracy": "#d97a1a"}
KNOBS = np.geomspace(1, 20, 60)  # time constants, epochs


def series_figure(series: pd.DataFrame, constant: float = 4.0) -> Figure:
    """The three series over epochs, each with the best fit of the saturating curve."""
    time = series["epoch"].to_numpy()
    design = np.column_stack([np.ones(len(time)), saturating_curve(time, constant)])
    with figure_style():
        fig, axes = plt.subplots(1, 3, figsize=(7.6, 2.7))
        for ax, name in zip(axes, COLOURS, strict=True):
            fit = design @ np.linalg.lstsq(design, series[name])[0]
            ax.plot(time, fit, color=GREY, lw=3, alpha=0.55, label="best fit of the curve")
            ax.plot(time, series[name], "o", color=COLOURS[name], ms=4)
            ax.set(title=ACCURACIES.get(name, "network entropy (bits)"), xlabel="epoch")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center")
        plt.close(fig)
    return fig


def predictor_figure(table: pd.DataFrame) -> Figure:
    """Strength of every predictor's correlation with both accuracies, the entropy's marked by a line.

    Args:
        table: see :func:`nbutils.published.predictor_table`.
    """
    places = np.arange(len(table))
    with figure_style():
        fig, axes = plt.subplots(1, 2, figsize=(7.6, 2.6), sharey=True, sharex=True)
        for ax, (name, label) in zip(axes, ACCURACIES.items(), strict=True):
            strength = table[label].abs()
            ax.axvline(strength[0], color=COLOURS["entropy_bits"], lw=1.2, ls=":")
            ax.hlines(places, 0, strength, color=GREY, lw=1, alpha=0.6)
            ax.scatter(strength, places, color=[COLOURS["entropy_bits"], *[COLOURS[name]] * (len(table) - 1)], s=36)
            ax.set(title=label, xlabel="|r|", xlim=(0, 1.03), ylim=(len(table) - 0.5, -0.5))
            ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            ax.set_yticks(places, table["predictor"])
            ax.grid(axis="y", visible=False)
        plt.close(fig)
    return fig


def knob_figure(series: pd.DataFrame, constant: float = 4.0) -> Figure:
    """What the curve's time constant decides: how well it goes with accuracy, and what the entropy adds to it."""
    time, entropy = series["epoch"].to_numpy(), series["entropy_bits"].to_numpy()
    curves = [saturating_curve(time, knob) for knob in KNOBS]
    edge = np.tanh(1.96 / np.sqrt(len(time) - 4))  # of r's that one cannot tell from 0
    with figure_style():
        fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.1))
        for name, label in ACCURACIES.items():
            accuracy, style = series[name].to_numpy(), {"color": COLOURS[name], "lw": 2}
            left.plot(KNOBS, [correlation(c, accuracy, "pearson") for c in curves], label=label, **style)
            left.axhline(abs(correlation(entropy, accuracy, "pearson")), color=COLOURS[name], lw=1.2, ls=":")
            right.plot(KNOBS, [detrended_correlation(entropy, accuracy, c) for c in curves], **style)
        right.axhspan(-edge, edge, color=GREY, alpha=0.15, lw=0)
        right.axhline(0, color=INK, lw=0.8, alpha=0.5)
        left.set(title="|r| of the curve (dotted: of the entropy)", ylim=(0.5, 1.02))
        right.set(title="r of entropy and accuracy beside the curve", ylim=(-1, 1))
        for ax in (left, right):
            ax.set(xscale="log", xlabel="time constant (epochs)")
            ax.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
            ax.minorticks_off()
            ax.axvline(constant, color=INK, lw=0.8, alpha=0.5, ls="--")
        fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(fig)
    return fig
