"""From co-firing to the activation pattern graph: the pairs of neurons that fire together most often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nbutils.arrays import as_count, as_graph, as_labels, as_numpy, require_share, share_count
from nbutils.cofiring import count_histogram, count_threshold, pack_firing, pairs_from
from nbutils.devices import device_histogram, device_pairs, resolve_device

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["activation_pattern_graph", "graph_from_counts", "graph_from_pairs", "to_networkx"]

MOST_NEURONS = 10_000_000


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
        ValueError: `counts` is not square and symmetric, a weight is negative, NaN or infinite, or `density` is outside
            (0, 1].

    Examples:
        >>> graph_from_counts([[9, 3, 1], [3, 9, 2], [1, 2, 9]], density=0.5).toarray()
        array([[0., 3., 0.],
               [3., 0., 2.],
               [0., 2., 0.]])
    """
    share = require_share(density, "density")
    weights = as_numpy(counts, "counts")
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"counts must have shape (neurons, neurons), received {weights.shape}")
    neurons = weights.shape[0]
    rows, columns = np.triu_indices(neurons, k=1)
    pairs = weights[rows, columns]
    _require_counts(pairs, weights[columns, rows])
    kept = pairs > 0
    if pairs.size:
        wanted = share_count(share, pairs.size)
        kept &= pairs >= np.partition(pairs, pairs.size - wanted)[pairs.size - wanted]
    return graph_from_pairs(neurons, rows[kept], columns[kept], pairs[kept].astype(np.float64))


def _require_counts(upper: np.ndarray, lower: np.ndarray) -> None:
    """Refuse pair weights that are no finite numbers >= 0, or differ between the triangles."""
    if upper.size == 0 or upper.dtype == bool:
        least, largest = 0, 1
    else:
        least, largest = upper.min(), upper.max()
    if not (np.isfinite(least) and np.isfinite(largest)):
        raise ValueError("counts holds NaN or infinite values off the diagonal")
    if least < 0:
        raise ValueError(f"counts must be >= 0, received {least:g} off the diagonal")
    # Matrices of correlations are often off by one unit in the last place.
    if not (upper == lower).all() and not np.allclose(upper, lower, rtol=0, atol=1e-12 * float(largest)):
        raise ValueError("counts must be symmetric, received a matrix that is not")


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
        neurons: number of nodes, at most ten million.
        rows: smaller neuron of each edge, shape (edges,), integers from 0.
        columns: larger neuron of each edge. No edge comes twice; they may come in any order.
        weights: weight of each edge, finite and above 0.

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), with sorted indices.

    Raises:
        ValueError: lengths differ, a neuron does not exist, an edge comes twice or joins a neuron to itself or to a
            smaller one, or a weight is not finite and above 0.

    Examples:
        >>> graph_from_pairs(3, [0], [2], [7]).toarray()
        array([[0., 0., 7.],
               [0., 0., 0.],
               [7., 0., 0.]])
    """
    from nbutils import edges

    neurons = as_count(neurons, "neurons", least=0, most=MOST_NEURONS)
    rows, columns, weights = _checked_pairs(neurons, rows, columns, weights)
    indptr, indices, data = np.zeros(neurons + 1, np.int64), np.empty(2 * rows.size, np.int32), np.empty(2 * rows.size)
    edges.symmetric_csr(rows, columns, weights, indptr, indices, data)
    if indptr[-1] < 2**31:
        indptr = indptr.astype(np.int32)  # SciPy wants both index arrays of one type
    graph = sp.csr_array((data, indices, indptr), shape=(neurons, neurons))
    graph.has_canonical_format = True  # sorted and unique, so nobody needs to look
    return graph


def _checked_pairs(neurons: int, rows: Any, columns: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs that compiled code can trust: within bounds, i < j, sorted, unique; and as many weights above 0."""
    from nbutils import edges

    rows, columns, weights = _nodes(rows, "rows"), _nodes(columns, "columns"), as_numpy(weights, "weights")
    if weights.shape != rows.shape or columns.shape != rows.shape:
        shapes = f"{rows.shape}, {columns.shape} and {weights.shape}"
        raise ValueError(f"rows, columns and weights must be of one length, received shapes {shapes}")
    if rows.size and not 0 < weights.min() <= weights.max() < np.inf:
        raise ValueError("weights must be finite and above 0, received one that is not")
    flaw, place = edges.first_bad_pair(rows, columns, neurons)
    if flaw == edges.UNSORTED:
        order = np.lexsort((columns, rows))
        rows, columns, weights = rows[order], columns[order], weights[order]
        flaw, place = edges.first_bad_pair(rows, columns, neurons)
    if flaw:
        words = {
            edges.OUTSIDE: f"be of neurons 0 to {neurons - 1}",
            edges.UNORDERED: "have the smaller neuron in rows, the larger in columns",
            edges.REPEATED: "come once each",
        }
        raise ValueError(f"rows and columns must {words[flaw]}, received the pair ({rows[place]}, {columns[place]})")
    if weights.dtype.name not in ("float64", "int64", "int32", "uint32"):  # what the loop is compiled for
        weights = weights.astype(np.float64)
    return rows.astype(np.int32, copy=False), columns.astype(np.int32, copy=False), weights


def _nodes(values: Any, name: str) -> np.ndarray:
    array = values if isinstance(values, np.ndarray) and values.dtype == np.int32 else as_labels(values, None, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be neurons in a row, received shape {array.shape}")
    return array


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
