"""From co-firing to the activation pattern graph: the pairs of neurons that fire together most often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nbutils.arrays import as_graph, as_numpy, require_share, share_count
from nbutils.cofiring import count_histogram, count_threshold, pack_firing, pairs_from
from nbutils.devices import device_histogram, device_pairs, resolve_device

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["activation_pattern_graph", "graph_from_counts", "graph_from_pairs", "to_networkx"]


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
    return graph_from_pairs(neurons, rows[kept], columns[kept], pairs[kept].astype(np.float64))


def activation_pattern_graph(fired: Any, density: float = 0.05, device: str = "cpu") -> sp.csr_array:
    """The activation pattern graph: neurons that fire together are joined.

    Edge weight is the co-firing count; the heaviest `density` of all pairs is kept with all ties
    (see :func:`graph_from_counts`). A neuron that never fires, or never enough with any other, is isolated.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; or a
            :class:`nbutils.cofiring.PackedFiring`.
        density: share of all pairs to keep, in (0, 1].
        device: where to count, see :func:`nbutils.devices.resolve_device`; the graph is the same.

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal. No edges when nothing fires
        together; all pairs when all are tied.

    Raises:
        ValueError: `fired` is not a boolean matrix, `density` is outside (0, 1], or there is no such device.

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
    share, where = require_share(density, "density"), resolve_device(device)
    packed = pack_firing(fired)
    pairs = packed.neurons * (packed.neurons - 1) // 2
    if pairs == 0:
        return sp.csr_array((packed.neurons, packed.neurons), dtype=np.float64)
    matrix = None if where == "cpu" else packed.unpack()
    histogram = count_histogram(packed) if where == "cpu" else device_histogram(matrix, where)
    threshold = count_threshold(histogram, share_count(share, pairs))
    heavy = pairs_from(packed, threshold) if where == "cpu" else device_pairs(matrix, threshold, where)
    return graph_from_pairs(packed.neurons, *heavy)


def graph_from_pairs(neurons: int, rows: Any, columns: Any, weights: Any) -> sp.csr_array:
    """A graph from its edges.

    Args:
        neurons: number of nodes.
        rows: smaller neuron of each edge, shape (edges,), integers.
        columns: larger neuron of each edge; edges are unique and sorted by `rows`, then `columns`, as
            :func:`nbutils.cofiring.pairs_from` gives them.
        weights: weight of each edge.

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), with sorted indices.

    Examples:
        >>> graph_from_pairs(3, [0], [2], [7]).toarray()
        array([[0., 0., 7.],
               [0., 0., 0.],
               [7., 0., 0.]])
    """
    from nbutils import edges

    rows, columns = np.asarray(rows, np.int32), np.asarray(columns, np.int32)
    indptr, indices, data = np.zeros(neurons + 1, np.int64), np.empty(2 * rows.size, np.int32), np.empty(2 * rows.size)
    edges.symmetric_csr(rows, columns, np.asarray(weights), indptr, indices, data)
    if indptr[-1] < 2**31:
        indptr = indptr.astype(np.int32)  # SciPy wants both index arrays of one type
    graph = sp.csr_array((data, indices, indptr), shape=(neurons, neurons))
    graph.has_canonical_format = True  # sorted and unique, so nobody needs to look
    return graph


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
    import networkx

    return networkx.from_scipy_sparse_array(as_graph(graph))
