"""Every construction of a graph, and what communities each finds in a network whose modules are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from nbutils.activations import firing
from nbutils.communities import LEAST, detect_communities, modularity
from nbutils.graphs import (
    activation_pattern_graph,
    disparity_graph,
    layered_graph,
    pearson_graph,
    phi_graph,
    ppmi_graph,
    within_layer_graph,
)
from nbutils.nulls import circular_shift_null, within_class_null
from nbutils.paper import paper_graph
from nbutils.truth.agreement import graded_agreement, side_agreement
from nbutils.truth.remainders import conditional_graph
from nbutils.truth.swaps import sides

__all__ = [
    "BOOK",
    "CONDITIONAL",
    "DENSITIES",
    "RESOLUTIONS",
    "Construction",
    "Subject",
    "constructions",
    "control_rows",
    "detection_rows",
]

RULES = ("top:0.05", "top-decile", "top:0.2", "positive")
DENSITIES, FEWER = (0.01, 0.02, 0.05, 0.1, 0.2), (0.02, 0.05, 0.1)
RESOLUTIONS = (0.3, 0.5, 1.0, 2.0)
PAPER = 50 / 512  # of the neurons of a layer
COUNT, LEFT = "co-firing", "left over within classes"
SEARCHES = 2


@dataclass(frozen=True)
class Construction:
    """One way to turn activations into a graph.

    Attributes:
        graph: key of `BUILDERS`.
        rule: of firing; empty where activations are used as they are.
        density: share of pairs kept; of a layer's neurons for the paper's graph.
        layer: hidden layer that it is drawn of, from 1; 0 for the whole network.
    """

    graph: str
    rule: str = "top-decile"
    density: float = 0.05
    layer: int = 0


BOOK = Construction(COUNT)
CONDITIONAL = Construction(LEFT)


@dataclass
class Subject:
    """A network whose modules are known, as constructions see it.

    Attributes:
        activations: of all hidden neurons on the probe, shape (pictures, neurons).
        cells: of pictures that have both factors in common, shape (pictures,).
        layers: layer per neuron, from 1.
        shares: dependence of each neuron on the first factor, NaN for none.
        rng: source of randomness.
    """

    activations: np.ndarray
    cells: np.ndarray
    layers: np.ndarray
    shares: np.ndarray
    rng: np.random.Generator
    known: dict[tuple[str, str, int], np.ndarray] = field(default_factory=dict)

    def values(self, rule: str, kind: str = "", layer: int = 0) -> np.ndarray:
        """Firing by a rule, or activations for none; shuffled by a null model where `kind` names one."""
        key = rule, kind, layer
        if key not in self.known:
            if layer:
                self.known[key] = self.values(rule, kind)[:, self.layers == layer]
            elif kind:
                self.known[key] = NULLS[kind](self.values(rule), self.cells, self.rng)
            else:
                self.known[key] = firing(self.activations, rule) if rule else self.activations
        return self.known[key]


def _circular(values: np.ndarray, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if values.dtype == bool:
        return circular_shift_null(values, rng)
    return np.stack([np.roll(column, rng.integers(len(column))) for column in values.T], axis=1)


def _within(values: np.ndarray, cells: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if values.dtype == bool:
        return within_class_null(values, cells, rng)
    found = np.empty_like(values)
    for cell in np.unique(cells):
        own = cells == cell
        found[own] = rng.permuted(values[own], axis=0)
    return found


NULLS: dict[str, Callable[..., np.ndarray]] = {"circular": _circular, "within": _within}
BUILDERS: dict[str, Callable[..., sp.csr_array]] = {
    COUNT: lambda values, cells, layers, share: activation_pattern_graph(values, share),
    LEFT: lambda values, cells, layers, share: conditional_graph(values, cells, share),
    "phi": lambda values, cells, layers, share: phi_graph(values, share),
    "PPMI": lambda values, cells, layers, share: ppmi_graph(values, share),
    "disparity": lambda values, cells, layers, share: disparity_graph(values, density=share),
    "Pearson": lambda values, cells, layers, share: pearson_graph(values, share),
    "adjacent layers": lambda values, cells, layers, share: layered_graph(values, layers, share),
    "within layers": lambda values, cells, layers, share: within_layer_graph(values, layers, share),
    "paper's": lambda values, cells, layers, share: paper_graph(values, cells, layers, share),
}


def constructions(layers: Sequence[int] = (1, 2)) -> tuple[Construction, ...]:
    """All constructions, the book's own first.

    Args:
        layers: hidden layers of the networks.

    Examples:
        >>> found = constructions()
        >>> len(found) == len(set(found)), found[0] == BOOK
        (True, True)
    """
    found = [BOOK, CONDITIONAL]
    found += [Construction(graph, density=share) for graph, share in product((COUNT, LEFT), DENSITIES)]
    found += [Construction(COUNT, rule, share) for rule, share in product(RULES, FEWER)]
    found += [Construction(LEFT, rule) for rule in RULES]
    found += [Construction(name) for name in ("phi", "PPMI", "disparity", "adjacent layers", "within layers")]
    found += [Construction("Pearson", ""), Construction("paper's", "positive", PAPER)]
    found += [Construction(graph, layer=layer) for graph, layer in product((COUNT, LEFT), layers)]
    return tuple(dict.fromkeys(found))


def detection_rows(
    subject: Subject, chosen: Sequence[Construction] | None = None, resolutions: Sequence[float] = RESOLUTIONS
) -> list[dict[str, Any]]:
    """What every construction finds, at every resolution.

    Args:
        subject: a network whose modules are known.
        chosen: constructions; None takes all.
        resolutions: of modularity.

    Returns:
        One row per construction and resolution: `graph`, `rule`, `density`, `layer`, `resolution`, `communities` of at
        least three neurons, `placed` share of neurons in one, `modularity`, `excess` over the circular shift,
        `class_part`, `remainder` beyond the shuffle within cells, `ami` with sides and `graded` agreement. What
        is left over within classes has no `excess` and no `class_part`: classes are out of it.
    """
    found = []
    for one in constructions() if chosen is None else chosen:
        whole = one.layer == 0
        own = np.ones(len(subject.layers), bool) if whole else subject.layers == one.layer
        layers, shares = subject.layers[own], subject.shares[own]
        kinds = ["", "within"] if one.graph == LEFT else ["", "within", "circular"]
        graphs = [_graph(subject, one, kind, layers) for kind in kinds]
        for resolution in resolutions:
            communities = detect_communities(graphs[0], resolution, SEARCHES)
            nulls = [detect_communities(graph, resolution, 1).modularity for graph in graphs[1:]]
            row = {"graph": one.graph, "rule": one.rule, "density": one.density, "layer": one.layer}
            row |= {"resolution": resolution, **_parts(communities.modularity, *nulls)}
            found.append(row | partition_facts(communities.labels, shares, layers))
    return found


def _graph(subject: Subject, one: Construction, kind: str, layers: np.ndarray) -> sp.csr_array:
    return BUILDERS[one.graph](subject.values(one.rule, kind, one.layer), subject.cells, layers, one.density)


def _parts(found: float, within: float, circular: float = float("nan")) -> dict[str, float]:
    parts = {"excess": found - circular, "class_part": within - circular, "remainder": found - within}
    return {"modularity": found, **parts}


def partition_facts(labels: np.ndarray, shares: np.ndarray, layers: np.ndarray) -> dict[str, float]:
    """How many communities a partition has, and how well it matches the truth; groups of one or two count as none.

    Examples:
        >>> shares, layers = np.repeat([0.1, 0.9], 20), np.ones(40, dtype=int)
        >>> found = partition_facts(np.repeat([0, 1], 20), shares, layers)
        >>> found["communities"], found["ami"], round(found["graded"], 9)
        (2, 1.0, 1.0)
    """
    size = np.bincount(labels[labels >= 0], minlength=1)
    kept = np.where((labels >= 0) & (size[labels] >= LEAST), labels, -1)
    return {
        "communities": int((size >= LEAST).sum()),
        "placed": float((kept >= 0).mean()),
        "ami": side_agreement(sides(shares), kept),
        "graded": graded_agreement(shares, kept, layers),
    }


def control_rows(subject: Subject) -> list[dict[str, Any]]:
    """Partitions whose agreement is known: the truth itself, the book's communities permuted among neurons, and layers.

    Returns:
        Rows like those of :func:`detection_rows`, `graph` "truth", "permuted" or "layers": `modularity` is that of the
        partition on the book's graph and, for the truth, `conditional` that on what is left over within classes.
    """
    book, left = (_graph(subject, one, "", subject.layers) for one in (BOOK, CONDITIONAL))
    labels = detect_communities(book, 1.0, 1).labels
    truth = np.where(np.isfinite(subject.shares), (subject.shares > 0.5).astype(int), -1)
    parts = {"truth": truth, "permuted": subject.rng.permutation(labels), "layers": subject.layers}
    return [
        {"graph": name, "modularity": modularity(book, part), "conditional": modularity(left, part)}
        | partition_facts(part, subject.shares, subject.layers)
        for name, part in parts.items()
    ]
