"""Portraits of one data set or one network: its images, its graph, its communities."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nbutils.data.datasets import Dataset
from nbutils.data.datasheets import readable
from nbutils.drawing.display import figure_style, in_figure
from nbutils.drawing.palette import GREY, SUBJECT
from nbutils.graphs import to_networkx
from nbutils.tracking import selective_for


def sample_images(data: Dataset, per_class: int = 2) -> Figure:
    """The first training images of each class under its name: a narrow column each, or wide tiles for long names.

    A class may have fewer.
    """
    names = [readable(name) for name in data.classes]
    narrow = len(names) <= 12 and max(map(len, names)) <= 8
    names = names if narrow else [textwrap.fill(name, 20) for name in names]
    lines = 1 + max(name.count("\n") for name in names)
    shown = [data.train_pixels[data.train_true == k][:per_class] for k in range(len(names))]
    most, across = max(map(len, shown)), len(names) if narrow else min(5, len(names))
    down = -(-len(names) // across)
    size = (0.72 * across, 0.78 * most + 0.2) if narrow else (1.52 * across, (0.8 + 0.15 * lines) * down)
    look = {"cmap": "gray_r", "vmin": 0, "vmax": data.levels, "interpolation": "none"}
    with figure_style():
        fig, axes = plt.subplots(down, across, figsize=size, squeeze=False)
        for ax in axes.flat:
            ax.set_axis_off()
        for ax, name, images in zip(axes.flat, names, shown, strict=False):
            for step, image in zip(1.08 * np.arange(len(images)), images, strict=True):
                x, y = (0, -step) if narrow else (step, 0)
                ax.imshow(image.reshape(data.image_shape), extent=(x, x + 1, y - 1, y), **look)
            reach = 1.08 * most - 0.08
            ax.set(xlim=(0, 1 if narrow else reach), ylim=(-reach if narrow else -1, 0))
            ax.set_title(in_figure(name), loc="center", fontsize=10.5 if narrow else 8.5)
        plt.close(fig)
    return fig


def community_classes(fired: np.ndarray, labels: np.ndarray, communities: np.ndarray, classes: Sequence[str]) -> Figure:
    """How often the neurons of each community fire on each class, relative to their mean rate.

    Where no neurons fire together, there is no community, and the picture says so.
    """
    found = selective_for(fired, labels, communities)
    if found.empty:
        with figure_style():
            fig, ax = plt.subplots(figsize=(6.4, 1.3))
            ax.set_axis_off()
            ax.text(0.5, 0.5, "no communities", ha="center", va="center", transform=ax.transAxes)
            plt.close(fig)
        return fig
    relative = found[np.unique(labels)].to_numpy()
    names = [readable(name) for name in classes]
    longest = max(map(len, names))
    upright = longest * len(names) > 80  # letters that fit side by side below the map
    with figure_style():
        fig, ax = plt.subplots(figsize=(6.4, 0.34 * len(found) + 1.3 + (0.075 * longest if upright else 0)))
        sizes = zip(found["community"], found["neurons"], strict=True)
        rows = [f"{c + 1}  ({n} neuron{'s' if n > 1 else ''})" for c, n in sizes]
        options = {"vmin": 0, "vmax": max(2.0, relative.max()), "cmap": "viridis", "annot": True, "fmt": ".1f"}
        sns.heatmap(
            relative,
            ax=ax,
            xticklabels=[in_figure(name) for name in names],
            yticklabels=rows,
            annot_kws={"size": 8},
            cbar_kws={"label": "firing, relative to mean"},
            **options,
        )
        ax.set(xlabel="class of the image", ylabel="community")
        ax.tick_params(axis="y", rotation=0)
        ax.tick_params(axis="x", rotation=90 if upright else 0)
        plt.close(fig)
    return fig


def graph_drawing(graph: Any, communities: np.ndarray, layers: np.ndarray) -> Figure:
    """The graph drawn by force: colour is the community, shape the layer; isolated neurons are left out."""
    shown = nx.Graph(to_networkx(graph))
    shown.remove_nodes_from([node for node in list(shown) if communities[node] < 0])
    place = pulled_layout(shown)
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
    """What a :class:`nbutils.watch.Watch` saw, over `epoch`: `accuracy` if it was noted, and the measures."""
    names = {
        "accuracy": "test accuracy",
        "modularity": "modularity Q",
        "well_defined": "well-defined communities",
        "pattern_entropy": "pattern entropy (bits)",
    }
    found = {name: title for name, title in names.items() if name in table}
    look = {"color": SUBJECT, "lw": 1.8, "marker": "o", "ms": 3, "legend": False}
    layout = {"subplots": True, "layout": (-1, 2), "figsize": (7.6, 2.1 * -(-len(found) // 2))}
    with figure_style():
        axes = table.plot(x="epoch", y=[*found], title=[*found.values()], **layout, **look)
        for ax in axes[-1]:
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        plt.close(axes[0, 0].figure)
    return axes[0, 0].figure


def pulled_layout(graph: nx.Graph) -> dict[int, np.ndarray]:
    """Positions by force; a faint pull between all neurons keeps separate parts of the graph in one picture.

    Args:
        graph: edges without a `weight` have 1.

    Examples:
        >>> apart = pulled_layout(nx.Graph([(0, 1), (1, 2), (0, 2), (3, 4)]))
        >>> sorted(apart), bool(np.linalg.norm(apart[0] - apart[3]) < 10 * np.linalg.norm(apart[0] - apart[1]))
        ([0, 1, 2, 3, 4], True)
    """
    heaviest = max((weight for *_, weight in graph.edges(data="weight", default=1.0)), default=1.0)
    pulled = nx.complete_graph(list(graph))
    for a, b, attributes in pulled.edges(data=True):
        own = graph[a][b].get("weight", 1.0) / heaviest if graph.has_edge(a, b) else 0.0
        attributes["weight"] = 0.01 + own
    return nx.spring_layout(pulled, seed=1, iterations=300) if len(graph) else {}
