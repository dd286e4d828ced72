"""Activation pattern graphs that heed the layers: pairs of adjacent layers only, or pairs within a layer only."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nbutils.arrays import as_labels, require_share, share_count
from nbutils.cofiring import cofiring_counts
from nbutils.graphs import graph_from_pairs

__all__ = ["layered_graph", "within_layer_graph"]


def layered_graph(fired: Any, layers: Any, density: float = 0.05) -> sp.csr_array:
    """Only pairs of neurons in adjacent layers, as a network passes its signals on: the heaviest share of those.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; or a
            :class:`nbutils.cofiring.PackedFiring`.
        layers: hidden layer per neuron, shape (neurons,), integers; of the values that occur, neighbours in rising
            order are adjacent.
        density: share of the pairs in adjacent layers to keep, in (0, 1], all ties included.

    Returns:
        Symmetric CSR adjacency of co-firing counts, float64, shape (neurons, neurons), zero diagonal; no edges where
        there is one layer only.

    Raises:
        ValueError: `fired` is not boolean, shapes disagree, or `density` is outside (0, 1].

    Examples:
        >>> layered_graph([[1, 1, 1], [1, 1, 0]], layers=[1, 1, 2], density=1.0).toarray()
        array([[0., 0., 1.],
               [0., 0., 1.],
               [1., 1., 0.]])
    """
    return _between(fired, layers, 1, density)


def within_layer_graph(fired: Any, layers: Any, density: float = 0.05) -> sp.csr_array:
    """Only pairs of neurons of the same layer: the heaviest share of those.

    One threshold holds for all layers, so a layer whose neurons fire together more has more edges.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; or a
            :class:`nbutils.cofiring.PackedFiring`.
        layers: hidden layer per neuron, shape (neurons,), integers.
        density: share of the pairs within layers to keep, in (0, 1], all ties included.

    Returns:
        Symmetric CSR adjacency of co-firing counts, float64, shape (neurons, neurons), zero diagonal.

    Raises:
        ValueError: `fired` is not boolean, shapes disagree, or `density` is outside (0, 1].

    Examples:
        >>> within_layer_graph([[1, 1, 1], [1, 1, 0]], layers=[1, 1, 2], density=1.0).toarray()
        array([[0., 2., 0.],
               [2., 0., 0.],
               [0., 0., 0.]])
    """
    return _between(fired, layers, 0, density)


def _between(fired: Any, layers: Any, steps: int, density: float) -> sp.csr_array:
    """The heaviest share of the pairs whose layers are so many steps apart."""
    share = require_share(density, "density")
    counts = cofiring_counts(fired)
    layer = np.unique(as_labels(layers, len(counts), "layers"), return_inverse=True)[1]
    rows, columns = np.triu_indices(len(counts), k=1)
    allowed = np.abs(layer[rows] - layer[columns]) == steps
    rows, columns = rows[allowed], columns[allowed]
    pairs = counts[rows, columns]
    kept = pairs > 0
    if pairs.size:
        rank = pairs.size - share_count(share, pairs.size)
        kept &= pairs >= np.partition(pairs, rank)[rank]
    return graph_from_pairs(len(counts), rows[kept], columns[kept], pairs[kept])
