"""From firing to the activation pattern graph: who fires together, and how often."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse as sp

from nbutils.arrays import as_fired, as_graph, as_numpy, require_share, share_count

__all__ = ["activation_pattern_graph", "cofiring_counts", "graph_from_counts", "to_networkx"]

# Sums of at most 2**24 ones are exact in float32, so a block of that many examples can go through a float product.
EXACT_FLOAT32 = 1 << 24


def cofiring_counts(fired: Any) -> np.ndarray:
    """How often each pair of neurons fires on the same example.

    C_ij = sum_e F_ei F_ej, that is C = F'F; the diagonal holds how often each neuron fires.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.

    Returns:
        Counts, int64, shape (neurons, neurons), symmetric, exact for any number of examples.

    Raises:
        ValueError: `fired` is not a boolean matrix with at least one example.

    Examples:
        >>> cofiring_counts([[1, 1, 0], [1, 0, 0]])
        array([[2, 1, 0],
               [1, 1, 0],
               [0, 0, 0]])

    References:
        Mostafa and Mondal (2021), arXiv:2106.04693.
    """
    matrix = as_fired(fired)
    counts = np.zeros((matrix.shape[1], matrix.shape[1]), dtype=np.int64)
    for start in range(0, matrix.shape[0], EXACT_FLOAT32):
        block = matrix[start : start + EXACT_FLOAT32].astype(np.float32)
        counts += (block.T @ block).astype(np.int64)
    return counts


def graph_from_counts(counts: Any, density: float = 0.05) -> sp.csr_array:
    """Keep the heaviest share of neuron pairs as the edges of a graph.

    With n neurons there are P = n (n - 1) / 2 pairs. The k-th largest count, k = ceil(density * P), is the threshold;
    every pair that reaches it is kept, ties included, so the result does not depend on any order. Pairs that never
    fire together are no edges, however high the density.

    Args:
        counts: pair weights, shape (neurons, neurons), symmetric, non-negative; the diagonal is ignored.
        density: share of all pairs to keep, in (0, 1].

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal. It has more than the asked share of
        pairs when many are tied at the threshold, fewer when too few pairs ever fire together.

    Raises:
        ValueError: `counts` is not square, or `density` is outside (0, 1].

    Examples:
        >>> graph_from_counts([[9, 3, 1], [3, 9, 2], [1, 2, 9]], density=0.5).toarray()
        array([[0., 3., 0.],
               [3., 0., 2.],
               [0., 2., 0.]])
    """
    share = require_share(density, "density")
    weights = as_numpy(counts)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"counts must have shape (neurons, neurons), received {weights.shape}")
    neurons = weights.shape[0]
    rows, columns = np.triu_indices(neurons, k=1)
    pairs = weights[rows, columns]
    kept = pairs > 0
    if pairs.size:
        wanted = share_count(share, pairs.size)
        kept &= pairs >= np.partition(pairs, pairs.size - wanted)[pairs.size - wanted]
    upper = sp.coo_array((pairs[kept].astype(np.float64), (rows[kept], columns[kept])), shape=(neurons, neurons))
    return (upper + upper.T).tocsr()


def activation_pattern_graph(fired: Any, density: float = 0.05) -> sp.csr_array:
    """The activation pattern graph: neurons that fire together are joined.

    Edge weight is the co-firing count; the heaviest `density` of all pairs is kept with all ties
    (see :func:`graph_from_counts`). A neuron that never fires, or never enough with any other, is isolated.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        density: share of all pairs to keep, in (0, 1].

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal. No edges when nothing fires
        together; all pairs when all are tied.

    Raises:
        ValueError: `fired` is not a boolean matrix, or `density` is outside (0, 1].

    Examples:
        >>> graph = activation_pattern_graph([[1, 1, 0], [1, 1, 1], [0, 0, 1]], density=1 / 3)
        >>> graph.toarray()
        array([[0., 2., 0.],
               [2., 0., 0.],
               [0., 0., 0.]])

    References:
        Mostafa and Mondal (2021), arXiv:2106.04693; thresholding with ties: van den Heuvel et al. (2017),
        doi:10.1016/j.neuroimage.2017.02.005.
    """
    return graph_from_counts(cofiring_counts(fired), density=density)


def to_networkx(graph: Any) -> nx.Graph:
    """The same graph for networkx: nodes 0..n-1 (isolated ones too), attribute `weight` on each edge.

    Args:
        graph: weights, shape (neurons, neurons), dense or SciPy sparse; symmetric, non-negative, zero diagonal.

    Returns:
        An undirected `networkx.Graph`.

    Raises:
        ValueError: the matrix is not square, symmetric, non-negative and free of self-loops.

    Examples:
        >>> sorted(to_networkx([[0, 2, 0], [2, 0, 0], [0, 0, 0]]).edges(data="weight"))
        [(0, 1, 2.0)]
    """
    return nx.from_scipy_sparse_array(as_graph(graph))
