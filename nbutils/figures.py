"""The book's figures: each takes a table of results and returns a matplotlib figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nbutils.comparisons import BASELINES
from nbutils.correlations import correlation
from nbutils.datasets import Dataset
from nbutils.display import INK, VERDICT_COLOURS, figure_style
from nbutils.evidence import Evidence
from nbutils.graphs import to_networkx

__all__ = [
    "CONDITION_NAMES",
    "community_classes",
    "forest",
    "graph_drawing",
    "learning_curves",
    "noise_scatter",
    "nulls",
    "pairings",
    "sample_images",
    "series",
]

CONDITION_NAMES = {"true": "true labels", "mixed:0.5": "half redrawn", "random": "random labels"}
CONDITION_COLOURS = {"true": "#3b82c4", "mixed:0.5": "#d97a1a", "random": "#a35cc4"}
GREY = "#8a8f98"


def _conditions(table: pd.DataFrame) -> list[str]:
    return [c for c in CONDITION_NAMES if (table["labels"] == c).any()]


def sample_images(data: Dataset, per_class: int = 2) -> Figure:
    """The first training images of each class, one column per class."""
    with figure_style():
        classes = len(data.classes)
        fig, axes = plt.subplots(per_class, classes, figsize=(0.72 * classes, 0.78 * per_class + 0.2), squeeze=False)
        for column, name in enumerate(data.classes):
            images = data.train_inputs[data.train_true == column][:per_class]
            for ax, image in zip(axes[:, column], images, strict=True):
                ax.imshow(image.reshape(data.image_shape), cmap="gray_r", interpolation="nearest")
                ax.set_axis_off()
            axes[0, column].set_title(name, loc="center")
        plt.close(fig)
    return fig


def learning_curves(table: pd.DataFrame) -> Figure:
    """Training and test accuracy over epochs, one panel per label condition; band: 95 % interval over seeds."""
    long = table.melt(["labels", "epoch", "seed"], ["train_accuracy", "test_accuracy"], "set", "accuracy")
    long["set"] = long["set"].map(
        {"train_accuracy": "training (labels as given)", "test_accuracy": "test (true labels)"}
    )
    with figure_style():
        names = _conditions(table)
        fig, axes = plt.subplots(1, len(names), figsize=(7.6, 2.7), sharey=True, squeeze=False)
        for ax, condition in zip(axes[0], names, strict=True):
            data = long[long["labels"] == condition]
            palette = [CONDITION_COLOURS[condition], GREY]
            sns.lineplot(data, x="epoch", y="accuracy", hue="set", style="set", palette=palette, ax=ax, seed=0)
            ax.set(title=CONDITION_NAMES[condition], ylim=(0, 1.02), xlabel="epoch")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.get_legend().remove()
        handles, labels = axes[0][0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=2)
        plt.close(fig)
    return fig


def nulls(table: pd.DataFrame) -> Figure:
    """Modularity before and after training, beside its null models, one panel per label condition."""
    names = {
        "modularity": "real firing",
        "null_within": "within-class shuffle",
        "null_circular": "circular shift",
    }
    ends = table[table["epoch"].isin([0, table["epoch"].max()])]
    long = ends.melt(["labels", "epoch", "seed"], list(names), "graph", "Q")
    with figure_style():
        conditions = _conditions(table)
        fig, axes = plt.subplots(1, len(conditions), figsize=(7.6, 3.2), sharey=True, squeeze=False)
        for ax, condition in zip(axes[0], conditions, strict=True):
            for place, column in enumerate(names):
                colour = CONDITION_COLOURS[condition] if column == "modularity" else GREY
                values = long[(long["labels"] == condition) & (long["graph"] == column)]
                wide = values.pivot(index="seed", columns="epoch", values="Q").to_numpy()
                x = np.array([-0.3, 0.3]) + place
                ax.plot(x, wide.T, color=colour, alpha=0.35, lw=1)
                ax.plot(x, wide.mean(axis=0), color=colour, lw=2.4)
                ax.plot(x[1], wide[:, 1].mean(), color=colour, marker="o", ms=6)
            ax.set(title=CONDITION_NAMES[condition], xticks=range(3), xlim=(-0.6, 2.6), ylim=(0, None))
            ax.set_xticklabels(
                [name.replace(" ", "\n").replace("-", "-\n", 1) for name in names.values()], fontsize=8.5
            )
            ax.grid(axis="x", visible=False)
        axes[0][0].set_ylabel("modularity Q")
        plt.close(fig)
    return fig


def community_classes(fired: np.ndarray, labels: np.ndarray, communities: np.ndarray, classes: Sequence[str]) -> Figure:
    """How often the neurons of each community fire on each class, relative to their mean rate."""
    found = [c for c in np.unique(communities) if c >= 0]
    rates = np.array([[fired[labels == k][:, communities == c].mean() for k in np.unique(labels)] for c in found])
    relative = rates / np.maximum(rates.mean(axis=1, keepdims=True), 1e-12)
    sizes = [int((communities == c).sum()) for c in found]
    with figure_style():
        fig, ax = plt.subplots(figsize=(6.4, 0.34 * len(found) + 1.3))
        rows = [f"{c + 1}  ({n} neurons)" for c, n in zip(found, sizes, strict=True)]
        options = {"vmin": 0, "vmax": max(2.0, relative.max()), "cmap": "viridis", "annot": True, "fmt": ".1f"}
        sns.heatmap(
            relative,
            ax=ax,
            xticklabels=list(classes),
            yticklabels=rows,
            annot_kws={"size": 8},
            cbar_kws={"label": "firing, relative to mean"},
            **options,
        )
        ax.set(xlabel="class of the image", ylabel="community")
        ax.tick_params(axis="y", rotation=0)
        plt.close(fig)
    return fig


def graph_drawing(graph: Any, communities: np.ndarray, layers: np.ndarray) -> Figure:
    """The graph drawn by force: colour is the community, shape the layer; isolated neurons are left out."""
    shown = nx.Graph(to_networkx(graph))
    shown.remove_nodes_from([node for node in list(shown) if communities[node] < 0])
    place = _layout(shown)
    colours = sns.color_palette("husl", max(int(communities.max()) + 1, 1))
    with figure_style():
        fig, ax = plt.subplots(figsize=(6.4, 4.6))
        nx.draw_networkx_edges(shown, place, ax=ax, edge_color=GREY, alpha=0.35, width=0.7)
        for layer, marker in zip(np.unique(layers), "os^Dv", strict=False):
            nodes = [n for n in shown if layers[n] == layer]
            points = np.array([place[n] for n in nodes]).reshape(-1, 2)
            tint = [colours[communities[n]] for n in nodes]
            ax.scatter(*points.T, c=tint, marker=marker, s=46, label=f"hidden layer {layer}", zorder=3, linewidths=0)
        legend = ax.legend(loc="best")
        for handle in legend.legend_handles:
            handle.set_color(GREY)
        ax.set_axis_off()
        plt.close(fig)
    return fig


def _layout(graph: nx.Graph) -> dict[int, np.ndarray]:
    """Positions by force; a faint pull between all neurons keeps separate parts of the graph in one picture."""
    heaviest = max((weight for *_, weight in graph.edges(data="weight")), default=1.0)
    pulled = nx.complete_graph(list(graph))
    for a, b, attributes in pulled.edges(data=True):
        attributes["weight"] = 0.01 + (graph[a][b]["weight"] / heaviest if graph.has_edge(a, b) else 0.0)
    return nx.spring_layout(pulled, seed=1, iterations=300) if len(graph) else {}


def series(table: pd.DataFrame, measure: str, ylabel: str) -> Figure:
    """A measure and the training accuracy over epochs, one column per label condition, one thin line per network."""
    with figure_style():
        names = _conditions(table)
        fig, axes = plt.subplots(2, len(names), figsize=(7.6, 4.2), sharex=True, sharey="row", squeeze=False)
        for column, condition in enumerate(names):
            runs = table[table["labels"] == condition]
            for ax, value in zip(axes[:, column], (measure, "train_accuracy"), strict=True):
                wide = runs.pivot(index="epoch", columns="seed", values=value)
                ax.plot(wide.index, wide, color=CONDITION_COLOURS[condition], alpha=0.35, lw=0.9)
                ax.plot(wide.index, wide.mean(axis=1), color=CONDITION_COLOURS[condition], lw=2.4)
            axes[0, column].set_title(CONDITION_NAMES[condition])
            axes[1, column].set_xlabel("epoch")
            axes[1, column].xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[0, 0].set_ylabel(ylabel)
        axes[1, 0].set_ylabel("training accuracy")
        plt.close(fig)
    return fig


def pairings(table: pd.DataFrame, measure: str) -> Figure:
    """Spearman's rho of each network's measure with its own training accuracy, and with every other network's."""
    rows = []
    for condition in _conditions(table):
        runs = table[(table["labels"] == condition) & (table["epoch"] > 0)]
        wide = [runs.pivot(index="seed", columns="epoch", values=v).to_numpy() for v in (measure, "train_accuracy")]
        for i, m in enumerate(wide[0]):
            for j, a in enumerate(wide[1]):
                rows.append((CONDITION_NAMES[condition], "own" if i == j else "another's", correlation(m, a)))
    long = pd.DataFrame(rows, columns=["condition", "accuracy series", "rho"])
    with figure_style():
        fig, ax = plt.subplots(figsize=(7.2, 2.9))
        palette = {"own": "#3b82c4", "another's": GREY}
        options = {"hue_order": list(palette), "palette": palette, "dodge": True, "ax": ax}
        sns.stripplot(long, x="rho", y="condition", hue="accuracy series", size=4, alpha=0.6, jitter=0.25, **options)
        ax.axvline(0, color=INK, lw=0.8, alpha=0.5)
        ax.set(xlim=(-1.05, 1.05), xlabel="Spearman's ρ over epochs 1, 2, …", ylabel="")
        sns.move_legend(ax, "upper center", bbox_to_anchor=(0.5, -0.22), ncols=2, title="with accuracy of the network:")
        plt.close(fig)
    return fig


def noise_scatter(grid: pd.DataFrame, measures: Sequence[str]) -> Figure:
    """Final measures against test accuracy, one point per network, colour by the share of redrawn labels."""
    last = grid[grid["epoch"] == grid["epoch"].max()]
    with figure_style():
        fig, axes = plt.subplots(1, len(measures), figsize=(7.6, 3.1), sharey=True, squeeze=False)
        for ax, measure in zip(axes[0], measures, strict=True):
            options = {"c": last["noise"], "cmap": "plasma", "vmin": 0, "vmax": 1.1, "s": 26, "linewidths": 0}
            points = ax.scatter(last[measure], last["test_accuracy"], **options)
            ax.set_xlabel(BASELINES[measure])
            ax.set_title(f"ρ = {correlation(last[measure], last['test_accuracy']):.2f}")
        axes[0][0].set_ylabel("test accuracy")
        fig.colorbar(points, ax=axes, label="share of labels redrawn", shrink=0.85)
        plt.close(fig)
    return fig


def forest(evidence: Sequence[Evidence]) -> Figure:
    """Estimates with their intervals; the tick marks the threshold, the colour the outcome."""
    colours = {
        "passes": VERDICT_COLOURS["supported"],
        "fails": VERDICT_COLOURS["not supported"],
        "opposite": VERDICT_COLOURS["refuted"],
        "too few runs": VERDICT_COLOURS["inconclusive"],
    }
    tests = list(dict.fromkeys(e.test for e in evidence))
    names = list(dict.fromkeys(e.dataset for e in evidence))
    with figure_style():
        fig, axes = plt.subplots(
            1, len(tests), figsize=(1.55 * len(tests) + 0.8, 0.5 * len(names) + 1.5), squeeze=False
        )
        for ax, test in zip(axes[0], tests, strict=True):
            for item in (e for e in evidence if e.test == test):
                y = names.index(item.dataset)
                ax.plot([item.low, item.high], [y, y], color=colours[item.outcome], lw=2.4)
                ax.plot(item.estimate, y, "o", color=colours[item.outcome], ms=6)
                ax.axvline(item.threshold, color=INK, lw=0.9, alpha=0.6, ls=":")
            ax.set(title=test, ylim=(len(names) - 0.5, -0.5), yticks=range(len(names)))
            ax.set_yticklabels(names if ax is axes[0][0] else [])
            ax.tick_params(axis="x", labelsize=8)
        plt.close(fig)
    return fig
