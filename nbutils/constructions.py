"""Other graphs over the same neurons: what else "firing together" can mean.

Each returns an adjacency like that of :func:`nbutils.graphs.activation_pattern_graph`. All ties are kept, so no result
depends on an order. Where a weight can be negative (phi, Pearson, mutual information of a pair) a negative one means
"fires together less than by chance"; modularity has no place for it, so only positive ones can become edges, and no
negative weight is ever turned into a positive one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nbutils.arrays import as_activations, as_count, ordinary, require_share, share_count
from nbutils.cofiring import cofiring_counts, pack_firing
from nbutils.graphs import graph_from_counts, graph_from_pairs

__all__ = ["disparity_graph", "pearson_graph", "phi_graph", "ppmi_graph"]

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
