"""Portraits of one data set or one network: its images, its graph, its communities."""

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

from nbutils.datasets import Dataset
from nbutils.display import GREY, figure_style
from nbutils.evolution import answers_to
from nbutils.graphs import to_networkx

__all__ = ["community_classes", "graph_drawing", "sample_images", "training_curves"]


def sample_images(data: Dataset, per_class: int = 2) -> Figure:
    """The first training images of each class, one column per class."""
    with figure_style():
        classes = len(data.classes)
        fig, axes = plt.subplots(per_class, classes, figsize=(0.72 * classes, 0.78 * per_class + 0.2), squeeze=False)
        for column, name in enumerate(data.classes):
            images = data.train_pixels[np.flatnonzero(data.train_true == column)[:per_class]]
            for ax, image in zip(axes[:, column], images, strict=True):
                look = {"cmap": "gray_r", "vmin": 0, "vmax": data.levels, "interpolation": "nearest"}
                ax.imshow(image.reshape(data.image_shape), **look)
                ax.set_axis_off()
            axes[0, column].set_title(name, loc="center")
        plt.close(fig)
    return fig


def community_classes(fired: np.ndarray, labels: np.ndarray, communities: np.ndarray, classes: Sequence[str]) -> Figure:
    """How often the neurons of each community fire on each class, relative to their mean rate."""
    found = answers_to(fired, labels, communities)
    relative = found[np.unique(labels)].to_numpy()
    with figure_style():
        fig, ax = plt.subplots(figsize=(6.4, 0.34 * len(found) + 1.3))
        rows = [f"{c + 1}  ({n} neurons)" for c, n in zip(found["community"], found["neurons"], strict=True)]
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


def training_curves(table: pd.DataFrame) -> Figure:
    """What a :class:`nbutils.watching.Watch` saw, over `epoch`: `accuracy` if it was noted, and the measures."""
    names = {
        "accuracy": "test accuracy",
        "modularity": "modularity Q",
        "well_defined": "well-defined communities",
        "pattern_entropy": "pattern entropy (bits)",
    }
    found = [name for name in names if name in table]
    with figure_style():
        fig, axes = plt.subplots(
            -(-len(found) // 2), 2, figsize=(7.6, 2.1 * -(-len(found) // 2)), sharex=True, squeeze=False
        )
        for ax, name in zip(axes.flat, found, strict=False):
            ax.plot(table["epoch"], table[name], color="#3b82c4", lw=1.8, marker="o", ms=3)
            ax.set_title(names[name])
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        for ax in axes.flat[len(found) :]:
            ax.set_axis_off()
        for ax in axes[-1]:
            ax.set_xlabel("epoch")
        plt.close(fig)
    return fig


def _layout(graph: nx.Graph) -> dict[int, np.ndarray]:
    """Positions by force; a faint pull between all neurons keeps separate parts of the graph in one picture."""
    heaviest = max((weight for *_, weight in graph.edges(data="weight")), default=1.0)
    pulled = nx.complete_graph(list(graph))
    for a, b, attributes in pulled.edges(data=True):
        attributes["weight"] = 0.01 + (graph[a][b]["weight"] / heaviest if graph.has_edge(a, b) else 0.0)
    return nx.spring_layout(pulled, seed=1, iterations=300) if len(graph) else {}
