"""Figures of experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from nbutils.drawing.display import figure_style
from nbutils.drawing.palette import LINE, MEASURES, NOTHING, PENALTIES, RULES, SPARSITY, SUBJECT, UNTRAINED
from nbutils.evaluation.words import t_interval
from nbutils.experiments.early import ASKED, EARLY_RULES
from nbutils.experiments.leads import half_way_steps, lagged_correlations, series_of
from nbutils.experiments.lesions import KINDS
from nbutils.experiments.trials import OUTCOMES
from nbutils.runs.pruning import PRUNINGS

__all__ = [
    "class_losses_figure",
    "dose_figure",
    "early_figure",
    "effects_figure",
    "leads_figure",
    "left_figure",
    "motif_density_figure",
    "motif_errors_figure",
    "pruning_figure",
    "sets_figure",
    "sparsity_trace_figure",
]

WIDTH, ROW = 7.6, 0.19  # inches


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
            colours = [SUBJECT if adjusted <= 0.05 else NOTHING for adjusted in own["adjusted"]]
            ax.hlines(range(len(rows)), own["low"], own["high"], color=colours, lw=1.5)
            ax.scatter(own["effect"], range(len(rows)), color=colours, s=14, zorder=3)
            ax.axvline(0, color=LINE, lw=0.8)
            ax.set_title(OUTCOMES[column], fontsize=9.5)
            ax.set(yticks=range(len(rows)), yticklabels=titles)
            ax.tick_params(labelsize=8)
        axes[0][0].set_ylim(len(rows) - 0.4, -0.6)
        plt.close(fig)
    return fig


def left_figure(runs: pd.DataFrame, zoos: Mapping[str, pd.DataFrame], threshold: float) -> Figure:
    """What is left over within classes: before and after training on every data set, and over the networks of zoos.

    Args:
        runs: one row per network and state: `title` of the data set, `epoch` and `left`.
        zoos: title of a data set -> one row per network, `left` and `accuracy`.
        threshold: of the first question, drawn as a line.
    """
    titles = list(dict.fromkeys(runs["title"]))
    with figure_style():
        widths = [1.7] + [1.0] * len(zoos)
        size = (WIDTH, 2.9)
        fig, axes = plt.subplots(1, len(widths), figsize=size, squeeze=False, width_ratios=widths)
        ax, *others = axes[0]
        for name, colour, shift, state in (("before", UNTRAINED, 0.15, False), ("after", SUBJECT, -0.15, True)):
            own = runs[(runs["epoch"] > 0) == state]
            ax.scatter([], [], color=colour, s=14, label=f"{name} training")
            for row, title in enumerate(titles):
                values = own.loc[own["title"] == title, "left"].dropna().to_numpy()
                ax.scatter(values, np.full(len(values), row - shift), color=colour, s=8, alpha=0.6, lw=0)
                ax.hlines(row - shift, *t_interval(values), color=colour, lw=2)
        ax.axvline(threshold, color=LINE, lw=0.8, ls="--")
        ax.set(yticks=range(len(titles)), yticklabels=titles, xlabel="left over", ylim=(len(titles) - 0.5, -0.5))
        ax.set_xlim(left=min(0, ax.get_xlim()[0]))
        ax.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=2, frameon=False)
        for panel, (title, own) in zip(others, zoos.items(), strict=True):
            panel.scatter(own["left"], own["accuracy"], color=SUBJECT, s=6, alpha=0.5, lw=0)
            panel.set(xlabel="left over", title=title)
            panel.title.set_fontsize(9)
        for panel in axes[0]:
            panel.tick_params(labelsize=8)
        if others:
            others[0].set_ylabel("test accuracy", fontsize=9)
        plt.close(fig)
    return fig


ROWS = (("modularity", "excess"), ("accuracy",), ("active_entropy", "block_entropy"))
NAMES = {"modularity": "Q", "excess": "Q beyond chance", "accuracy": "accuracy", "active_entropy": "binned entropy"}
NAMES |= {"block_entropy": "block entropy"}
HEIGHT = 1.6  # inches of a row


def _kinds(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Networks of one kind on one data set, with a title."""
    groups = table.groupby(["dataset", "condition"], sort=False)
    return [(f"{dataset}\n{condition}", own) for (dataset, condition), own in groups]


def early_figure(table: pd.DataFrame) -> Figure:
    """Modularity, accuracy and entropies over the steps of training: a column per kind of network and data set.

    Lines are means over networks, bands one standard deviation either way; a marker stands at the mean half-way step
    (geometric) of those networks that have one.

    Args:
        table: of the experiment *early*; what its column `dataset` holds becomes the title.
    """
    kinds = _kinds(table)
    with figure_style():
        fig, axes = plt.subplots(
            len(ROWS), len(kinds), figsize=(WIDTH, HEIGHT * len(ROWS) + 0.6), sharex="col", sharey="row", squeeze=False
        )
        for column, (title, own) in enumerate(kinds):
            ways = half_way_steps(own)
            for ax, names in zip(axes[:, column], ROWS, strict=True):
                for name in names:
                    _course(ax, series_of(own, name), name, ways.get(name))
                ax.set_xscale("symlog", linthresh=1, linscale=0.4)
                ax.xaxis.set_major_formatter(ScalarFormatter())
                ax.tick_params(labelsize=8)
            axes[0][column].set_title(title, fontsize=9.5)
            axes[-1][column].set_xlabel("step", fontsize=9)
        for ax, label in zip(axes[:, 0], ("modularity", "accuracy", "bits"), strict=True):
            ax.set_ylabel(label, fontsize=9)
        lines = [line for ax in axes[:, 0] for line in ax.get_legend_handles_labels()[0]]
        fig.legend(handles=lines, loc="outside lower center", ncols=len(lines), fontsize=8.5)
        plt.close(fig)
    return fig


def _course(ax: Axes, series: pd.DataFrame, name: str, ways: pd.Series | None) -> None:
    """One measure over the steps at which it was taken."""
    (colour, marker), there = MEASURES[name], series.dropna(axis=1, how="all")
    mean, spread = there.mean(), there.std(ddof=1).fillna(0)
    ax.fill_between(there.columns, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
    at = np.exp(np.log(ways.dropna()).mean()) if ways is not None and ways.notna().any() else np.nan
    ax.plot(there.columns, mean, color=colour, lw=1.4, label=NAMES[name], marker=marker, ms=5, markevery=[])
    ax.plot([at], [np.interp(at, there.columns, mean)], marker, color=colour, ms=6, mec=LINE, mew=0.8)


def leads_figure(table: pd.DataFrame, lags: int = EARLY_RULES.lags) -> Figure:
    """Correlations of residuals with those of accuracy at lags either way: a panel per kind of network and data set.

    Lines are means over networks with 95 % t intervals. To the right of 0 the measure comes first, to the left
    accuracy.

    Args:
        table: of the experiment *early*; what its column `dataset` holds becomes the title.
        lags: the largest lag, in steps.
    """
    kinds, places = _kinds(table), np.arange(-lags, lags + 1)
    with figure_style():
        fig, axes = plt.subplots(1, len(kinds), figsize=(WIDTH, 2.7), sharey=True, squeeze=False)
        for ax, (title, own) in zip(axes[0], kinds, strict=True):
            for name in ASKED:
                both = pd.concat({one: series_of(own, one) for one in (name, "accuracy")}, axis=1).dropna()
                if len(both) < 3:
                    continue
                found = lagged_correlations(both[name].to_numpy(), both["accuracy"].to_numpy(), lags)
                each, (colour, marker) = found.diagonal(axis1=1, axis2=2), MEASURES[name]
                ends = np.array([t_interval(values) for values in each])
                ax.fill_between(places, *ends.T, color=colour, alpha=0.18, lw=0)
                ax.plot(places, each.mean(axis=1), color=colour, lw=1.4, marker=marker, ms=3, label=NAMES[name])
            ax.axhline(0, color=LINE, lw=0.8)
            ax.axvline(0, color=LINE, lw=0.8, ls=":")
            ax.set_title(title, fontsize=9.5)
            ax.set_xlabel("lag, steps", fontsize=9)
            ax.tick_params(labelsize=8)
        axes[0][0].set_ylabel("correlation with accuracy", fontsize=9)
        axes[0][0].set_ylim(np.clip(axes[0][0].get_ylim(), -1, 1))
        lines = axes[0][0].get_legend_handles_labels()[0]
        fig.legend(handles=lines, loc="outside lower center", ncols=3, fontsize=8.5)
        plt.close(fig)
    return fig


def pruning_figure(courses: pd.DataFrame, columns: Mapping[str, str], titles: Mapping[str, str]) -> Figure:
    """Measures against the share of weights pruned: a panel per measure and data set, a line per rule and stage.

    Args:
        courses: see :func:`nbutils.experiments.pruning.pruning_courses`.
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
    for number, (name, (colour, marker)) in enumerate(zip(names, cycle(RULES), strict=False)):
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


LINEAR = 0.03  # coefficient up to which the axis is linear, then logarithmic


def dose_figure(
    doses: pd.DataFrame, columns: Mapping[str, str], titles: Mapping[str, str], level: float = 0.95
) -> Figure:
    """What penalties do: a row per measure, a column per data set, a line per penalty over its coefficient.

    Args:
        doses: with `dataset` and what :func:`nbutils.experiments.causes.dose_table` gives.
        columns: measure -> its name, a row each.
        titles: data set -> its title, a column each.
        level: confidence of the intervals, which are shaded.
    """
    with figure_style():
        size = (WIDTH, 1.75 * len(columns) + 0.9)
        fig, axes = plt.subplots(len(columns), len(titles), figsize=size, sharex=True, sharey="row", squeeze=False)
        for row, column in zip(axes, columns, strict=True):
            for ax, dataset in zip(row, titles, strict=True):
                _dose_panel(ax, doses[doses["dataset"] == dataset], column, level)
            row[0].set_ylabel(fill(columns[column], 20), fontsize=9)
        for ax, title in zip(axes[0], titles.values(), strict=True):
            ax.set_title(title, fontsize=9.5)
        for ax in axes[-1]:
            ax.set_xlabel("coefficient")
        handles, names = axes[0][0].get_legend_handles_labels()
        fig.legend(handles, names, ncol=3, loc="outside lower center", fontsize=8)  # more would not fit on a phone
        plt.close(fig)
    return fig


def _dose_panel(ax: Axes, doses: pd.DataFrame, column: str, level: float) -> None:
    for penalty, (colour, dashes) in PENALTIES.items():
        by_dose = doses[doses["condition"] == penalty].groupby("dose")[column]
        there = by_dose.count()[lambda counts: counts > 0].index
        if there.empty:
            continue
        means = by_dose.mean()[there]
        ends = [t_interval(by_dose.get_group(dose).dropna(), level) for dose in there]
        ax.plot(there, means, dashes, color=colour, lw=1.4, label=penalty)
        ax.fill_between(there, *zip(*ends, strict=True), color=colour, alpha=0.15, lw=0)
    ax.axvline(0, color=LINE, lw=0.6)
    ax.set_xscale("symlog", linthresh=LINEAR)
    ax.set_xticks([-1, -0.1, 0, 0.1, 1], ["-1", "-0.1", "0", "0.1", "1"])
    ax.tick_params(labelsize=8)


def sets_figure(values: pd.DataFrame, kinds: Sequence[str], groups: Mapping[tuple[str, str], str]) -> Figure:
    """Specificity of sets of neurons: a row per kind, a panel per kind of network and data set.

    Args:
        values: a row per network and kind, see :func:`nbutils.experiments.lesions.specificities`.
        kinds: of sets, from top to bottom; communities themselves are drawn in colour.
        groups: (data set, condition) -> title of its panel.
    """
    with figure_style():
        size = (WIDTH, 0.34 * len(kinds) + 1.0)
        fig, axes = plt.subplots(1, len(groups), figsize=size, sharey=True, sharex=True, squeeze=False)
        for ax, ((dataset, condition), title) in zip(axes[0], groups.items(), strict=True):
            own = values[(values["dataset"] == dataset) & (values["condition"] == condition)]
            for row, kind in enumerate(kinds):
                colour = SUBJECT if kind in ("community", "cut") else NOTHING
                _dots(ax, row, own.loc[own["kind"] == kind, "specificity"].to_numpy(), colour)
            ax.axvline(0, color=LINE, lw=0.8)
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


def class_losses_figure(matrices: Mapping[str, pd.DataFrame]) -> Figure:
    """What every class loses (columns) with a community that prefers a class (rows): a panel per data set.

    Args:
        matrices: title of a panel -> mean losses by the names of classes, NaN where no community prefers a class.
    """
    with figure_style():
        size = (WIDTH, 0.34 * WIDTH + 0.9)
        fig, axes = plt.subplots(1, len(matrices), figsize=size, squeeze=False)
        for ax, (title, matrix) in zip(axes[0], matrices.items(), strict=True):
            drawn = ax.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
            ax.set_facecolor(NOTHING)  # of rows that are not there
            ax.grid(visible=False)
            ax.set_xticks(range(len(matrix.columns)), matrix.columns, rotation=90)
            ax.set_yticks(range(len(matrix)), matrix.index)
            ax.set_title(title, fontsize=9.5)
            ax.tick_params(labelsize=8, length=0)
        bar = {"location": "bottom", "shrink": 0.5, "aspect": 30, "ticks": (-1, 0, 1), "label": "loss of accuracy"}
        fig.colorbar(drawn, ax=list(axes[0]), **bar)  # at the side, a phone would cut its letters
        axes[0][0].set_ylabel("preferred by the community", fontsize=9)
        plt.close(fig)
    return fig


def sparsity_trace_figure(traces: pd.DataFrame) -> Figure:
    """Adaptive sparsity over samples: accuracy on validation examples, its target dotted, and density, by network.

    Args:
        traces: of one task, see `nbutils.experiments.sparse_effects.trace_table`.
    """
    with figure_style():
        fig, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.6), sharex=True)
        for (condition, _), own in traces.groupby(["condition", "seed"], sort=False):
            for ax, column in zip(axes, ("edit", "density"), strict=True):
                ax.plot(own["samples"], own[column], color=SPARSITY[condition], lw=1.1, alpha=0.8)
            axes[0].plot(own["samples"], own["target"], color=SPARSITY[condition], lw=0.8, ls=":", alpha=0.8)
        axes[0].set(ylabel="edit accuracy", xlabel="samples", ylim=(0, 1.02))
        axes[1].set(ylabel="density asked for", xlabel="samples", yscale="log")
        shown = [name for name in SPARSITY if name in set(traces["condition"])]
        lines = [plt.Line2D([], [], color=SPARSITY[name]) for name in shown]
        fig.legend(lines, shown, ncol=len(shown), loc="outside lower center", fontsize=8)
        plt.close(fig)
    return fig


def motif_errors_figure(last: pd.DataFrame, published: Mapping[str, float]) -> Figure:
    """Errors of motif channels: a panel per task, a row per condition, networks as dots and their mean with its
    interval.

    Args:
        last: last looks at networks, `task` as a panel is to be titled.
        published: confusion errors by condition, drawn as bars beside the networks.
    """
    tasks = list(dict.fromkeys(last["task"]))
    with figure_style():
        fig, axes = plt.subplots(1, len(tasks), figsize=(WIDTH, 2.6), sharey=True, sharex=True, squeeze=False)
        for ax, task in zip(axes[0], tasks, strict=True):
            for row, (condition, colour) in enumerate(SPARSITY.items()):
                own = last[(last["task"] == task) & (last["condition"] == condition)]
                if len(values := own["confusion"].dropna().to_numpy()):
                    _dots(ax, row, values, colour)
                if condition in published:
                    ax.plot([published[condition]] * 2, [row - 0.35, row + 0.35], color=LINE, lw=1)
            ax.set_title(task, fontsize=9.5)
            ax.set(yticks=range(len(SPARSITY)), yticklabels=list(SPARSITY), xlim=(-0.03, 1))
        axes[0][0].set_ylim(len(SPARSITY) - 0.5, -0.5)
        fig.supxlabel("confusion error", fontsize=9)
        plt.close(fig)
    return fig


def motif_density_figure(looks: pd.DataFrame) -> Figure:
    """Communities and entropies as density falls, a line for each network: agreement, parts of Q, entropy of blocks.

    Args:
        looks: at networks of one task and condition.
    """
    panels = {
        "agreement (AMI)": {"ami_motif": "motifs", "ami_part": "parts of the picture"},
        "Q and its parts": {
            "modularity": "Q",
            "excess": "beyond chance",
            "class_part": "class preference",
            "remainder": "remainder",
        },
        "bits": {"block_entropy": "blocks of six", "block_entropy_null": "the same, shifted"},
    }
    with figure_style():
        fig, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.8), sharex=True)
        for ax, (title, columns) in zip(axes, panels.items(), strict=True):
            for (column, label), (colour, marker) in zip(columns.items(), RULES, strict=False):
                for number, (_, own) in enumerate(looks.groupby("settings", sort=False)):
                    style = {"color": colour, "marker": marker, "ms": 3, "lw": 1, "alpha": 0.8}
                    ax.plot(own["counted"], own[column], label=label if number == 0 else None, **style)
            ax.set(title=title, xscale="log", xlabel="density")
            ax.title.set_fontsize(9.5)
            ax.legend(fontsize=7)
        axes[0].invert_xaxis()
        plt.close(fig)
    return fig
