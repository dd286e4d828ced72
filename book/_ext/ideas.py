"""Pictures of the methods, small enough to count along: modularity, and the way from a network to a graph."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import drawing
import networkx as nx
import numpy as np

import nbutils as nb

__all__ = [
    "arithmetic",
    "communities_picture",
    "exact_modularity",
    "example_activations",
    "network_picture",
    "ten_neurons",
]

# Ten neurons, all edges of weight 1: seven among the first five, six among the others, two between.
LEFT = ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4))
EDGES = (*LEFT, (5, 6), (5, 7), (6, 7), (6, 8), (7, 9), (8, 9))
BRIDGES = ((4, 5), (3, 6))
PLACES = ((12, 60), (44, 18), (50, 90), (84, 38), (78, 112), (132, 112), (128, 32), (166, 92), (164, 14), (202, 58))
GROUPINGS = {
    "Two groups": (0, 0, 0, 0, 0, 1, 1, 1, 1, 1),
    "All in one group": (0,) * 10,
    "Groups against the edges": (0, 1, 0, 1, 0, 0, 1, 1, 0, 0),
}


def ten_neurons() -> np.ndarray:
    """The weights of the graph of ten neurons."""
    graph = nx.Graph([*EDGES, *BRIDGES])
    return nx.to_numpy_array(graph, nodelist=range(len(PLACES)))


def arithmetic(adjacency: np.ndarray, labels: Sequence[int]) -> tuple[list[int], list[int], int]:
    """The whole numbers that modularity is made of.

    Args:
        adjacency: weights, whole numbers, shape (neurons, neurons).
        labels: community per neuron.

    Returns:
        Weight inside each community, strength of each community, and total weight m; Q is the sum over communities of
        inside / m - (strength / 2m)².
    """
    groups = [np.flatnonzero(np.equal(labels, group)) for group in sorted(set(labels))]
    inside = [int(adjacency[np.ix_(group, group)].sum()) // 2 for group in groups]
    return inside, [int(adjacency[group].sum()) for group in groups], int(adjacency.sum()) // 2


def exact_modularity(inside: Sequence[int], strengths: Sequence[int], total: int) -> Fraction:
    """Q as a fraction."""
    return Fraction(sum(inside), total) - sum(Fraction(strength, 2 * total) ** 2 for strength in strengths)


def communities_picture() -> str:
    """One graph, three ways to group it, and the arithmetic of Q."""
    graph, panels, told = ten_neurons(), [], []
    for title, labels in GROUPINGS.items():
        parts = arithmetic(graph, labels)
        panels.append(drawing.panel(216, 240, _grouped(labels), _sums(*parts), title=title))
        told.append(f"{title.lower()}, Q = {_decimal(exact_modularity(*parts))}")
    best, one, against = (exact_modularity(*arithmetic(graph, labels)) for labels in GROUPINGS.values())
    caption = (
        "<strong>Q is the share of edges inside groups, less the share that the neurons' strengths alone would put "
        "there.</strong> The same ten neurons three times, numbered from 0 as in the code below; colour is the group, "
        f"broken lines are edges between groups. Two groups have Q = {_decimal(best)}; one group of all has "
        f"{_decimal(one)} whatever the graph; groups against the edges have {_decimal(against)}. The strength of a "
        "group is the sum of its neurons' edges, one between groups counted once for each."
    )
    alt = f"A graph of ten neurons in two clusters of five with {len(BRIDGES)} edges between them: {'; '.join(told)}."
    return drawing.figure("communities", panels, caption, alt)


def _grouped(labels: Sequence[int]) -> str:
    parts = []
    for i, j in (*EDGES, *BRIDGES):
        same = labels[i] == labels[j]
        parts.append(
            drawing.line(*PLACES[i], *PLACES[j], f"edge strong tone-{labels[i]}" if same else "edge between", 2)
        )
    for number, ((x, y), label) in enumerate(zip(PLACES, labels, strict=True)):
        kind = f"neuron tone-{label}"
        shape = drawing.rect(x - 10, y - 10, 20, 20, kind) if label else drawing.circle(x, y, 11, kind)
        parts.append(shape + drawing.text(x, y + 4.5, number, "inside", size=12))
    return "".join(parts)


def _sums(inside: Sequence[int], strengths: Sequence[int], total: int) -> str:
    """The steps from edges to Q, all over one denominator."""
    whole = (2 * total) ** 2
    share, chance = sum(inside) * whole // total, sum(strength**2 for strength in strengths)
    added = " + ".join(map(str, inside))
    added += f" = {sum(inside)}" if len(inside) > 1 else ""
    squares = " + ".join(f"{strength}²" for strength in strengths)
    squares = f"({squares})" if len(strengths) > 1 else squares
    rows = (
        f"edges inside: {added} of {total}",
        f"share inside: {sum(inside)}/{total} = {share}/{whole}",
        f"strengths: {', '.join(map(str, strengths))} of {2 * total}",
        f"by chance: {squares}/{2 * total}²",
        f"  = {chance}/{whole}",
        f"Q = ({share} − {chance})/{whole} = {_decimal(exact_modularity(inside, strengths, total))}",
    )
    return drawing.lines(0, 148, rows[:-1]) + drawing.text(0, 148 + 5 * 17 + 2, rows[-1], "title", anchor="start")


def _decimal(q: Fraction) -> str:
    return f"{float(q):.3f}".replace("-", "−")


NEURONS, IMAGES, SHARE, DENSITY = 6, 10, "top:0.3", 0.3


def example_activations(seed: int = 12) -> np.ndarray:
    """Activations of six neurons on ten images, made up: three neurons follow one feature, three another.

    Returns:
        Shape (images, neurons), 0 or more.
    """
    rng = np.random.default_rng(seed)
    features = rng.gamma(1.0, 1.0, (IMAGES, 2))
    drive = np.repeat(features, NEURONS // 2, axis=1) + rng.normal(0, 0.35, (IMAGES, NEURONS))
    return np.maximum(drive - 0.3, 0).round(2)


def network_picture() -> str:
    """Activations, firing, counts of firing together, graph: four panels."""
    activations = example_activations()
    fired = nb.firing(activations, SHARE)
    together = fired.T.astype(int) @ fired
    graph = nb.activation_pattern_graph(fired, density=DENSITY).toarray()
    found = nb.detect_communities(graph)
    upper = np.triu(graph)
    i, j = (int(one) for one in np.unravel_index(upper.argmax(), upper.shape))  # the pair that all panels point at
    panels = [
        drawing.panel(300, 190, _grid(activations.T / activations.max(), (i, j)), title="1 Activations"),
        drawing.panel(300, 190, _grid(fired.T.astype(float), (i, j)), title="2 Firing"),
        drawing.panel(300, 190, _counts(together, graph, (i, j)), title="3 Firing together"),
        drawing.panel(300, 190, _small_graph(graph, found.labels, (i, j)), title="4 Graph and communities"),
    ]
    edges, asked = int((upper > 0).sum()), NEURONS * (NEURONS - 1) // 2
    caption = (
        "<strong>From activations to a graph, in four steps.</strong> (1) How strongly six neurons respond to ten "
        f"images. (2) A neuron fires on its own strongest images, here {int(fired[:, 0].sum())} of {IMAGES}. (3) On "
        f"how many images two neurons fire together. (4) The heaviest pairs become edges, here {edges} of {asked}, and "
        f"communities are sought: {found.labels.max() + 1}, with Q = {found.modularity:.2f}. Outlined are neurons "
        f"{i + 1} and {j + 1}, which fire together on {together[i, j]} images. The activations are made up."
    )
    pairs = ", ".join(f"{a + 1} and {b + 1}" for a, b in zip(*np.nonzero(upper), strict=True))
    alt = (
        f"Four panels: a grid of activations of {NEURONS} neurons on {IMAGES} images; the same grid with the cells in "
        "which a neuron fires; a table of how often pairs fire together; and a graph with edges between neurons "
        f"{pairs}, in {found.labels.max() + 1} communities."
    )
    return drawing.figure("network", panels, caption, alt)


def _grid(values: np.ndarray, pair: tuple[int, int]) -> str:
    """A row per neuron, a column per image, cells as full as the values from 0 to 1."""
    left, top, cell = 56, 2, 24
    parts = []
    for row, line in enumerate(values):
        parts.append(drawing.text(left - 8, top + cell * row + 16, f"neuron {row + 1}", anchor="end", size=11))
        for column, value in enumerate(line):
            x, y = left + cell * column, top + cell * row
            parts.append(
                drawing.rect(x, y, cell - 2, cell - 2, "cell")
                + drawing.rect(x, y, cell - 2, cell - 2, "ink", 0.85 * value)
            )
        if row in pair:
            parts.append(drawing.rect(left - 2, top + cell * row - 2, cell * len(line) + 2, cell + 2, "mark"))
    names = drawing.text(
        left + cell * values.shape[1] / 2, top + cell * len(values) + 16, f"image 1 to {values.shape[1]}", size=11
    )
    return "".join(parts) + names


def _counts(together: np.ndarray, graph: np.ndarray, pair: tuple[int, int]) -> str:
    left, top, cell = 56, 2, 26
    parts = []
    for i in range(len(together)):
        parts.append(drawing.text(left - 8, top + cell * i + 17, f"neuron {i + 1}", anchor="end", size=11))
        parts.append(drawing.text(left + cell * i + 12, top + cell * len(together) + 14, i + 1, size=11))
        for j in range(len(together)):
            x, y = left + cell * j, top + cell * i
            if i == j:
                parts.append(drawing.rect(x, y, cell - 2, cell - 2, "cell"))
                continue
            kept = graph[i, j] > 0
            parts.append(drawing.rect(x, y, cell - 2, cell - 2, "ink", 0.22 if kept else 0.04))
            parts.append(drawing.text(x + 12, y + 16, together[i, j], "title" if kept else ""))
            if (i, j) in (pair, pair[::-1]):
                parts.append(drawing.rect(x - 1, y - 1, cell, cell, "mark"))
    return "".join(parts) + drawing.lines(left + 6 * cell + 6, 24, ("bold:", "becomes", "an edge"))


def _small_graph(graph: np.ndarray, labels: np.ndarray, pair: tuple[int, int]) -> str:
    """Neurons in a circle, one community to the left, another to the right."""
    order = np.argsort(labels, kind="stable")
    turn = np.empty(len(order))
    turn[order] = np.pi / 2 + (np.arange(len(order)) + 0.5) * 2 * np.pi / len(order)
    x, y = 150 + 110 * np.cos(turn), 86 - 66 * np.sin(turn)
    parts = []
    for i, j in zip(*np.nonzero(np.triu(graph)), strict=True):
        kind = f"edge strong tone-{labels[i]}" if labels[i] == labels[j] >= 0 else "edge between"
        if (i, j) == pair:
            parts.append(drawing.line(x[i], y[i], x[j], y[j], "halo", 9))
        parts.append(drawing.line(x[i], y[i], x[j], y[j], kind, float(graph[i, j])))
    for i, label in enumerate(labels):
        kind = f"neuron tone-{label}" if label >= 0 else "neuron tone-none"
        shape = drawing.circle(x[i], y[i], 14, kind) if label < 1 else drawing.rect(x[i] - 13, y[i] - 13, 26, 26, kind)
        parts.append(shape + drawing.text(x[i], y[i] + 4.5, i + 1, "inside", size=13))
    return "".join(parts)
