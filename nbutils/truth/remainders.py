"""Firing together beyond what the classes explain: a graph of it, and firing in which it was planted."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nbutils.communities import LEAST, detect_communities
from nbutils.graphs import graph_from_counts
from nbutils.nulls import within_class_null
from nbutils.support.checks import as_count, as_fired, as_labels, as_rng

__all__ = ["conditional_graph", "joint_cells", "left_over", "plant_cofiring", "rates_in_cells"]

DIGITS = 5  # decimals of weights: what differs beyond is rounding


def joint_cells(factors: Any) -> np.ndarray:
    """Number of the cell of pictures that have both factors in common, shape (pictures,).

    Args:
        factors: shape (pictures, 2), integers.

    Examples:
        >>> joint_cells([[0, 1], [2, 0], [0, 1]]).tolist()
        [0, 1, 0]
    """
    return np.unique(np.asarray(factors), axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def rates_in_cells(fired: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Of each picture, the share of its cell on which each neuron fires, shape (pictures, neurons)."""
    index = np.unique(cells, return_inverse=True)[1].reshape(-1)
    size = np.bincount(index)
    to = sp.csr_array((np.ones(len(index)), (index, np.arange(len(index)))))
    return ((to @ fired.astype(float)) / size[:, None])[index]


def conditional_graph(fired: Any, cells: Any, density: float = 0.05) -> sp.csr_array:
    """Co-firing that is left over within classes: the pairs that correlate most within cells of pictures.

    r_ij = sum_e (F_ei - f_ei) (F_ej - f_ej) / sqrt(sum_e (F_ei - f_ei)^2 sum_e (F_ej - f_ej)^2), with f_ei the rate of
    neuron i in the cell of picture e. Neurons that only prefer the same classes have r about 0. The heaviest share of
    all pairs is kept; pairs with r <= 0 are no edges.

    Args:
        fired: activation pattern matrix, shape (pictures, neurons), boolean.
        cells: cell per picture, shape (pictures,), integers.
        density: share of all pairs to keep, in (0, 1].

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal; a neuron that within no cell fires on
        some pictures and not on others is isolated.

    Raises:
        ValueError: shapes disagree, `fired` is not boolean, or `density` is outside (0, 1].

    Examples:
        >>> fired = np.array([[1, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 1]], dtype=bool)  # the third only prefers a class
        >>> conditional_graph(fired, [0, 0, 1, 1], density=1.0).toarray()
        array([[0., 1., 0.],
               [1., 0., 0.],
               [0., 0., 0.]])
    """
    matrix = as_fired(fired)
    left = (matrix - rates_in_cells(matrix, as_labels(cells, len(matrix), "cells"))).astype(np.float32)
    together = (left.T @ left).astype(float)
    spread = np.sqrt(together.diagonal())
    both = np.outer(spread, spread)
    weights = np.divide(together, both, out=np.zeros_like(together), where=both > 1e-6)
    weights = np.round(np.maximum(weights, 0), DIGITS)
    return graph_from_counts(np.maximum(weights, weights.T), density)


def left_over(
    fired: Any,
    cells: Any,
    rng: np.random.Generator | int,
    neurons: int | None = None,
    density: float = 0.05,
    draws: int = 20,
) -> dict[str, float]:
    """Modularity of what is left over within classes, and how much more it is than chance makes of the same rates.

    left = Q(:func:`conditional_graph` of F) - Q(the same of F shuffled within cells): 0 where neurons have no more in
    common than their preference for classes, whichever classes a group prefers.

    Args:
        fired: activation pattern matrix, shape (pictures, neurons), boolean.
        cells: cell per picture, such as true x predicted class, shape (pictures,), integers.
        rng: source of randomness: a generator, or a seed.
        neurons: how many of the neurons that fire are drawn, for graphs of one size; None takes all of them, once.
        density: share of their pairs that are edges.
        draws: how often neurons are drawn, each with a shuffle of its own; everything is averaged over them.

    Returns:
        `conditional` (Q of the graph), `left`, and `groups` (communities of at least three neurons).

    Raises:
        ValueError: shapes disagree, `fired` is not boolean, fewer neurons fire than are to be drawn, or a number is out
            of range.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> cells, alike = np.repeat([0, 1], 100), rng.random((200, 3)) < 0.3
        >>> fired = np.repeat(alike, 10, axis=1)  # three groups of ten that fire together in either class
        >>> found = left_over(fired, cells, rng, density=0.3)
        >>> found["groups"], round(found["conditional"], 2), found["left"] > 0.3
        (3.0, 0.67, True)
    """
    matrix, source, draws = as_fired(fired), as_rng(rng), as_count(draws, "draws")
    own, groups = matrix[:, matrix.any(axis=0)], as_labels(cells, len(matrix), "cells")
    size = own.shape[1] if neurons is None else as_count(neurons, "neurons")
    if size > own.shape[1]:
        raise ValueError(f"neurons must be at most the number of active neurons, {own.shape[1]}, received {size}")
    found = []
    for _ in range(1 if size == own.shape[1] else draws):
        part = own[:, np.sort(source.choice(own.shape[1], size, replace=False))]
        graphs = [conditional_graph(one, groups, density) for one in (part, within_class_null(part, groups, source))]
        seen, null = (detect_communities(graph, seeds=1) for graph in graphs)
        members = np.bincount(seen.labels[seen.labels >= 0], minlength=1)
        found.append((seen.modularity, seen.modularity - null.modularity, (members >= LEAST).sum()))
    return dict(zip(("conditional", "left", "groups"), np.mean(found, axis=0).tolist(), strict=True))


def plant_cofiring(fired: Any, cells: Any, modules: Any, strength: float, rng: np.random.Generator | int) -> np.ndarray:
    """Firing in which neurons of a module fire together by a known amount; their preference for classes is unchanged.

    In each cell every neuron fires exactly as often as it did, on the pictures on which a score of its own is largest:
    sqrt(strength) * (score of its module) + sqrt(1 - strength) * (noise of its own), both standard normal. Two neurons
    of one module have scores that correlate by `strength`, two of different modules by 0.

    Args:
        fired: activation pattern matrix, shape (pictures, neurons), boolean.
        cells: cell per picture, shape (pictures,), integers.
        modules: module per neuron, shape (neurons,), integers.
        strength: correlation of scores, in [0, 1]; 0 plants nothing.
        rng: source of randomness: a generator, or a seed.

    Returns:
        Boolean, the shape of `fired`, every neuron's rate in every cell unchanged.

    Raises:
        ValueError: shapes disagree, or `strength` is outside [0, 1].

    Examples:
        >>> fired = np.array([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=bool)
        >>> found = plant_cofiring(fired, [0, 0, 0, 0], [7, 7], strength=1.0, rng=0)
        >>> found.sum(axis=0).tolist(), bool((found[:, 0] == found[:, 1]).all())
        ([2, 2], True)
    """
    matrix, source = as_fired(fired), as_rng(rng)
    index = np.unique(as_labels(cells, len(matrix), "cells"), return_inverse=True)[1].reshape(-1)
    module = np.unique(as_labels(modules, matrix.shape[1], "modules"), return_inverse=True)[1].reshape(-1)
    if not 0 <= strength <= 1:
        raise ValueError(f"strength must lie in [0, 1], received {strength}")
    shared = source.normal(size=(len(matrix), module.max(initial=0) + 1))
    scores = np.sqrt(strength) * shared[:, module] + np.sqrt(1 - strength) * source.normal(size=matrix.shape)
    found = np.zeros_like(matrix)
    for cell in range(index.max() + 1):
        members = np.flatnonzero(index == cell)
        rank = (-scores[members]).argsort(axis=0).argsort(axis=0)
        found[members] = rank < matrix[members].sum(axis=0)
    return found
