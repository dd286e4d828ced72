"""The activation pattern graph: neurons as nodes, an edge for each pair that fires together often enough.

Beside the graph of the study stand other constructions from the same firing (layer by layer, Pearson, phi, PPMI,
disparity filter), and a way to build the graph of very many neurons block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nbutils.cofiring import (
    PackedFiring,
    cofiring_counts,
    count_histogram,
    count_threshold,
    heaviest_pairs,
    pack_firing,
    pairs_from,
)
from nbutils.support.checks import (
    as_activations,
    as_count,
    as_graph,
    as_labels,
    as_numpy,
    ordinary,
    require_share,
    share_count,
)
from nbutils.support.devices import device_histogram, device_pairs, resolve_device
from nbutils.support.machine import default_jobs
from nbutils.support.workers import Lost, run_tasks

if TYPE_CHECKING:
    import networkx as nx

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
    kept = _heaviest(pairs, share)
    return graph_from_pairs(neurons, rows[kept], columns[kept], pairs[kept].astype(np.float64))


def _heaviest(pairs: np.ndarray, share: float) -> np.ndarray:
    """Which pairs are among the heaviest share, ties included; those that never fire together are not."""
    if not pairs.size:
        return pairs > 0
    rank = pairs.size - share_count(share, pairs.size)
    return (pairs > 0) & (pairs >= np.partition(pairs, rank)[rank])


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
        device: where to count, see :func:`nbutils.support.devices.resolve_device`; the graph is the same.

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
    wanted = share_count(share, pairs)
    if where == "cpu":
        return graph_from_pairs(packed.neurons, *heaviest_pairs(packed, wanted))
    matrix = packed.unpack()
    threshold = count_threshold(device_histogram(matrix, where), wanted)
    return graph_from_pairs(packed.neurons, *device_pairs(matrix, threshold, where))


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
    from nbutils.support import loops

    neurons = as_count(neurons, "neurons", least=0, most=MOST_NEURONS)
    rows, columns, weights = _checked_pairs(neurons, rows, columns, weights)
    indptr, indices, data = np.zeros(neurons + 1, np.int64), np.empty(2 * rows.size, np.int32), np.empty(2 * rows.size)
    loops.symmetric_csr(rows, columns, weights, indptr, indices, data)
    if indptr[-1] < 2**31:
        indptr = indptr.astype(np.int32)  # SciPy wants both index arrays of one type
    graph = sp.csr_array((data, indices, indptr), shape=(neurons, neurons))
    graph.has_canonical_format = True  # sorted and unique, so nobody needs to look
    return graph


def _checked_pairs(neurons: int, rows: Any, columns: Any, weights: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs that compiled code can trust: within bounds, i < j, sorted, unique; and as many weights above 0."""
    from nbutils.support import loops

    rows, columns, weights = _nodes(rows, "rows"), _nodes(columns, "columns"), as_numpy(weights, "weights")
    if weights.shape != rows.shape or columns.shape != rows.shape:
        shapes = f"{rows.shape}, {columns.shape} and {weights.shape}"
        raise ValueError(f"rows, columns and weights must be of one length, received shapes {shapes}")
    if rows.size and not 0 < weights.min() <= weights.max() < np.inf:
        raise ValueError("weights must be finite and above 0, received one that is not")
    flaw, place = loops.first_bad_pair(rows, columns, neurons)
    if flaw == loops.UNSORTED:
        order = np.lexsort((columns, rows))
        rows, columns, weights = rows[order], columns[order], weights[order]
        flaw, place = loops.first_bad_pair(rows, columns, neurons)
    if flaw:
        words = {
            loops.OUTSIDE: f"be of neurons 0 to {neurons - 1}",
            loops.UNORDERED: "have the smaller neuron in rows, the larger in columns",
            loops.REPEATED: "come once each",
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
    kept = _heaviest(pairs, share)
    return graph_from_pairs(len(counts), rows[kept], columns[kept], pairs[kept])


DIGITS = 12  # decimals of computed weights: what differs beyond is rounding, and ties


def phi_graph(fired: Any, density: float = 0.05, neighbours: int | None = None) -> sp.csr_array:
    """Each neuron joined to those whose firing correlates most with its own.

    phi_ij = (E C_ij - n_i n_j) / sqrt(n_i (E - n_i) n_j (E - n_j)), Pearson's correlation of two binary series, with C
    the co-firing counts, n_i how often neuron i fires, E the number of examples. Every neuron names the k neurons with
    the largest phi, all ties with the k-th included; a pair that either names is an edge of weight phi. Pairs with
    phi <= 0 are no edges: a negative phi means that one fires where the other does not.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; or a
            :class:`nbutils.cofiring.PackedFiring`.
        density: sets k = ceil(density * (neurons - 1) / 2) where `neighbours` is None, so that, ties aside, at most
            this share of all pairs is kept; pairs in which each names the other count once.
        neighbours: k itself, at least 1.

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal, weights in (0, 1]. A neuron that
        never fires, or always does, correlates with nothing and is isolated.

    Raises:
        ValueError: `fired` is not boolean, `density` is outside (0, 1], or `neighbours` < 1.

    Examples:
        >>> phi_graph([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 0, 0]], neighbours=1).toarray()
        array([[0., 1., 0.],
               [1., 0., 0.],
               [0., 0., 0.]])

    References:
        Yule (1912), doi:10.2307/2340126; negative weights: Rubinov and Sporns (2011),
        doi:10.1016/j.neuroimage.2011.03.069.
    """
    packed = pack_firing(fired)
    counts = cofiring_counts(packed).astype(np.int64)
    often = counts.diagonal()
    spread = np.sqrt((often * (packed.examples - often)).astype(np.float64))
    together = packed.examples * counts - np.outer(often, often)  # whole numbers, exact
    return _nearest(_ratio(together, np.outer(spread, spread)), density, neighbours)


def pearson_graph(activations: Any, density: float = 0.05, neighbours: int | None = None) -> sp.csr_array:
    """Each neuron joined to those whose activations correlate most with its own; no rule of firing is needed.

    As :func:`phi_graph`, with Pearson's correlation of the activations themselves in place of phi.

    Args:
        activations: post-non-linearity values, shape (examples, neurons), finite.
        density: see :func:`phi_graph`.
        neighbours: see :func:`phi_graph`.

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal, weights in (0, 1]. A neuron with the
        same activation on every example correlates with nothing and is isolated.

    Raises:
        ValueError: `activations` is not a finite matrix, `density` is outside (0, 1], or `neighbours` < 1.

    Examples:
        >>> pearson_graph([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [3.0, 6.0, 0.0]], neighbours=1).toarray()
        array([[0., 1., 0.],
               [1., 0., 0.],
               [0., 0., 0.]])

    References:
        Rubinov and Sporns (2011), doi:10.1016/j.neuroimage.2011.03.069.
    """
    values = ordinary(np.asarray(as_activations(activations), dtype=np.float64), axis=0)
    constant = np.ptp(values, axis=0) == 0
    centred = np.where(constant, 0.0, values - values.mean(axis=0))
    spread = np.sqrt((centred**2).sum(axis=0))
    return _nearest(_ratio(centred.T @ centred, np.outer(spread, spread)), density, neighbours)


def ppmi_graph(fired: Any, density: float = 0.05) -> sp.csr_array:
    """The pairs that fire together most beyond what their own rates would give.

    PPMI_ij = max(0, log2(E C_ij / (n_i n_j))), the positive pointwise mutual information of both firing: how many times
    more often than by chance, as a power of two. The heaviest share of all pairs is kept. Pairs that fire together no
    more often than by chance (PMI <= 0) are no edges. Rare firing weighs most: two neurons that fire once, together,
    reach log2 E; the rule `top-decile` equalises rates, and there the pairs are nearly those of the primary graph.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; or a
            :class:`nbutils.cofiring.PackedFiring`.
        density: share of all pairs to keep, in (0, 1].

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal, weights in (0, log2 examples]. A
        neuron that never fires, or always does, is isolated.

    Raises:
        ValueError: `fired` is not boolean, or `density` is outside (0, 1].

    Examples:
        >>> ppmi_graph([[1, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]], density=1 / 3).toarray()
        array([[0., 2., 0.],
               [2., 0., 0.],
               [0., 0., 0.]])

    References:
        Church and Hanks (1990), "Word association norms, mutual information, and lexicography"; Bullinaria and Levy
        (2007), doi:10.3758/BF03193020.
    """
    packed = pack_firing(fired)
    counts = cofiring_counts(packed).astype(np.int64)
    often = counts.diagonal()
    lift = _ratio(packed.examples * counts, np.outer(often, often).astype(np.float64))
    return graph_from_counts(np.round(np.log2(np.maximum(lift, 1)), DIGITS), density)


def disparity_graph(fired: Any, alpha: float = 0.05, density: float | None = None) -> sp.csr_array:
    """The disparity backbone: co-firing that is a surprisingly large part of all that one of the two neurons has.

    Were the strength s_i of neuron i split at random among the k_i neurons it ever fires with, a part of at least
    C_ij would fall to j with probability alpha_ij = (1 - C_ij / s_i)^(k_i - 1). A pair is kept where alpha_ij or
    alpha_ji is below `alpha`, with C_ij as its weight.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; or a
            :class:`nbutils.cofiring.PackedFiring`.
        alpha: significance, in (0, 1]; smaller keeps less. How many pairs pass depends on the network.
        density: where given, `alpha` is not used; this share of all pairs, those with the smallest
            min(alpha_ij, alpha_ji), is kept instead, so that graphs of different networks can be compared.

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal. A neuron with a single partner gives
        that pair no significance of its own (alpha_ij = 1).

    Raises:
        ValueError: `fired` is not boolean, or `alpha` or `density` is outside (0, 1].

    Examples:
        >>> fired = np.zeros((12, 4), dtype=bool)
        >>> fired[:10, :2] = fired[10, 1:3] = fired[11, [0, 2]] = fired[11, 3] = True
        >>> disparity_graph(fired, alpha=0.05).toarray()[0].tolist()  # (1 - 10 / 12)^2 = 0.03
        [0.0, 10.0, 0.0, 0.0]

    References:
        Serrano, Boguna and Vespignani (2009), doi:10.1073/pnas.0808904106.
    """
    limit = require_share(alpha, "alpha")
    counts = cofiring_counts(fired).astype(np.float64)
    np.fill_diagonal(counts, 0)
    with np.errstate(divide="ignore"):
        rest = np.log1p(-_ratio(counts, np.broadcast_to(counts.sum(axis=1)[:, None], counts.shape)))
    others = (counts > 0).sum(axis=1) - 1
    # Logarithms, because the power of a thousand is soon too small a number; with a single partner it is 1.
    surprise = np.where(others[:, None] > 0, -rest * np.maximum(others, 1)[:, None], 0.0)
    surprise = np.round(np.maximum(surprise, surprise.T), DIGITS)
    if density is None:
        return _edges_where(counts, surprise > -np.log(limit))
    return _edges_where(counts, graph_from_counts(surprise, density).toarray() > 0)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """A quotient, 0 where the divisor is."""
    return np.divide(above, below, out=np.zeros(above.shape), where=below > 0)


def _nearest(similarity: np.ndarray, density: float, neighbours: int | None) -> sp.csr_array:
    """Pairs of which either is among the other's k most similar, with positive similarity; all ties kept."""
    neurons = len(similarity)
    share = require_share(density, "density") / 2
    count = None if neighbours is None else as_count(neighbours, "neighbours")
    if neurons < 2:
        return sp.csr_array((neurons, neurons), dtype=np.float64)
    count = share_count(share, neurons - 1) if count is None else count
    similarity = np.round(similarity, DIGITS)
    np.fill_diagonal(similarity, -np.inf)
    rank = neurons - min(count, neurons - 1)
    named = similarity >= np.partition(similarity, rank, axis=1)[:, rank, None]
    return _edges_where(similarity, named | named.T)


def _edges_where(weights: np.ndarray, kept: np.ndarray) -> sp.csr_array:
    """The graph of the kept pairs with positive weight."""
    rows, columns = np.nonzero(np.triu(kept & (weights > 0), k=1))
    return graph_from_pairs(len(weights), rows, columns, weights[rows, columns])


MOST_BLOCKS, MOST_JOBS = 100_000, 1000
Runner = Callable[..., Iterator[tuple[Any, Any]]]


def pair_blocks(packed: PackedFiring, blocks: int) -> list[range]:
    """Split all pairs of neurons into blocks of about equal size.

    Args:
        packed: packed firing.
        blocks: how many, at least 1.

    Returns:
        At most so many ranges of `packed.strips`, in order, together all of them.

    Examples:
        >>> packed = pack_firing(np.ones((1, 64 * 8), dtype=bool))
        >>> [len(block) for block in pair_blocks(packed, 2)]  # early strips hold more pairs
        [3, 5]
    """
    blocks = min(as_count(blocks, "blocks"), MOST_BLOCKS)
    strips = packed.strips
    done = np.cumsum([packed.neurons - first for first in strips])
    ends = np.searchsorted(done, done[-1] * np.arange(1, blocks + 1) / blocks) + 1 if len(strips) else []
    bounds = np.unique([0, *np.minimum(ends, len(strips))])
    return [strips[start:stop] for start, stop in pairwise(bounds)]


def graph_in_blocks(
    fired: Any, density: float = 0.05, *, run: Runner | None = None, jobs: int | None = None, blocks: int | None = None
) -> sp.csr_array:
    """The same graph as :func:`nbutils.graphs.activation_pattern_graph`, from workers that share only the packed bits.

    First every block of pairs gives a histogram of its counts; their sum fixes the threshold. Then every block gives
    its edges. A worker holds the bits, neurons * examples / 8 bytes, and the edges of one block.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; or a
            :class:`nbutils.cofiring.PackedFiring`.
        density: share of all pairs to keep, in (0, 1].
        run: called like :func:`nbutils.support.workers.run_tasks`, which is the default; for a Dask cluster, what
            :func:`nbutils.support.workers.dask_runner` yields first.
        jobs: local processes; None means one per core.
        blocks: number of blocks; None means four for each job.

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal.

    Raises:
        ValueError: an argument is out of range.
        TypeError: `run` is no function.
        RuntimeError: a block was lost by three workers.

    Examples:
        >>> graph_in_blocks([[1, 1, 0], [1, 1, 1]], density=1 / 3, jobs=1).nnz
        2
    """
    share, packed = require_share(density, "density"), pack_firing(fired)
    jobs = default_jobs() if jobs is None else as_count(jobs, "jobs", most=MOST_JOBS)
    if run is not None and not callable(run):
        raise TypeError(f"run must be a function like run_tasks(), or None, received {type(run).__name__}")
    run = run if run is not None else partial(run_tasks, jobs=jobs, preload=(__name__,))
    parts = pair_blocks(packed, 4 * jobs if blocks is None else blocks)
    pairs = packed.neurons * (packed.neurons - 1) // 2
    if pairs == 0:
        return activation_pattern_graph(packed, share)
    histograms = _all(run, _block_histogram, [(packed, part) for part in parts])
    threshold = count_threshold(sum(histograms), share_count(share, pairs))
    found = _all(run, _block_pairs, [(packed, part, threshold) for part in parts])
    return graph_from_pairs(packed.neurons, *(np.concatenate(part) for part in zip(*found, strict=True)))


def _block_histogram(block: tuple[PackedFiring, range]) -> np.ndarray:
    """A worker's first task."""
    return count_histogram(*block)


def _block_pairs(block: tuple[PackedFiring, range, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A worker's second task."""
    packed, strips, threshold = block
    return pairs_from(packed, threshold, strips)


def _all(run: Runner, task: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """Results in the order of the items."""
    place = {id(item): number for number, item in enumerate(items)}
    results: list[Any] = [None] * len(items)
    for item, result in run(task, items):
        if isinstance(result, Lost):
            raise RuntimeError(f"a block of pairs was lost: {result.reason}; try more blocks, or fewer jobs")
        results[place[id(item)]] = result
    return results
