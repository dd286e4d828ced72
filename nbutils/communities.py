"""Communities: modularity, Leiden searches, and what several searches agree on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from nbutils.support.ahead import compile_ahead, wait_for_compiled
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_graph, as_labels, as_partitions, is_number, shown, spare_exponent
from nbutils.support.machine import in_threads

compile_ahead("nbutils._leiden", "_search")  # while graphs are made, of an installation that is new

ISOLATED = -1
LEAST = 3  # neurons of a community that is followed, as of a well-defined one


def consensus_partition(seed_labels: Any) -> np.ndarray:
    """Groups of neurons that most searches put together.

    Two neurons are together in some share of the searches. Groups are joined, those with the largest mean share over
    all pairs between them first, as long as it is above one half (average linkage of the co-association matrix). Chains
    in which each neuron goes with the next but the first not with the last do not become one group.

    Args:
        seed_labels: the partition of each search, shape (searches, neurons); -1 for a neuron in no community.

    Returns:
        Group per neuron, shape (neurons,), numbered from 0 by falling size; a neuron that goes with no other is a group
        of its own; -1 where the first search has -1.

    Raises:
        ValueError: `seed_labels` is not integers of shape (searches, neurons).

    Examples:
        >>> consensus_partition([[0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 1, 1]]).tolist()
        [0, 0, 1, 1]

    References:
        Fred and Jain (2005), doi:10.1109/TPAMI.2005.113.
    """
    searches = as_partitions(seed_labels, "seed_labels")
    labels, placed = np.full(searches.shape[1], ISOLATED, dtype=np.int64), searches[0] != ISOLATED
    if not placed.any():
        return labels
    known = searches[:, placed]
    known = np.where(known == ISOLATED, -1 - np.arange(known.shape[1]), known)  # two in no community are not together
    # Neurons that agree in every search form one atom, so the pairwise table stays small.
    atoms, atom, size = np.unique(known, axis=1, return_inverse=True, return_counts=True)
    share = (atoms[:, :, None] == atoms[:, None, :]).mean(axis=0)
    np.fill_diagonal(share, -1)
    group, size = np.arange(size.size), size.astype(np.float64)
    while share.size and share.max() > 0.5:
        i, j = np.unravel_index(share.argmax(), share.shape)
        share[i] = share[:, i] = (size[i] * share[i] + size[j] * share[j]) / (size[i] + size[j])
        share[j] = share[:, j] = share[i, i] = -1
        size[i] += size[j]
        group[group == j] = i
    labels[placed] = by_size(group[atom.ravel()])
    return labels


def agreed_communities(seed_labels: Any) -> np.ndarray:
    """The consensus of several searches without groups of fewer than three neurons, which become -1.

    Args:
        seed_labels: the partition of each search, shape (searches, neurons).

    Returns:
        Community per neuron, shape (neurons,); -1 for a neuron in none.

    Examples:
        >>> agreed_communities([[0, 0, 0, 1, 1, -1], [0, 0, 0, 1, 2, -1]]).tolist()
        [0, 0, 0, -1, -1, -1]
    """
    labels = consensus_partition(seed_labels)
    size = np.bincount(labels[labels >= 0], minlength=1)
    return np.where((labels >= 0) & (size[labels] >= LEAST), labels, ISOLATED)


def by_size(labels: np.ndarray) -> np.ndarray:
    """Number communities from 0, largest first; equal sizes in order of their first neuron."""
    _, first, index, size = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(len(size), dtype=np.int64)
    rank[np.lexsort((first, -size))] = np.arange(len(size))
    return rank[index]


MOST_SEEDS = 100_000
PASSES = 2  # of Leiden, the second from what the first found; more gain next to nothing


@checked
@dataclass(frozen=True)
class Communities:
    """The communities of one graph, and how far the random seeds of the search agree on them.

    Attributes:
        labels: community per neuron from the best seed, shape (neurons,); numbered from 0 by falling size; -1 for a
            neuron without any edge, which is no community.
        modularity: median over seeds of Newman's Q, dimensionless.
        connected_share: share of neurons that have at least one edge, in [0, 1].
        modularity_per_seed: Q of each seed, shape (seeds,).
        seed_labels: the partition of each seed, shape (seeds, neurons).
    """

    labels: np.ndarray
    modularity: float
    connected_share: float
    modularity_per_seed: np.ndarray = field(repr=False)
    seed_labels: np.ndarray = field(repr=False)

    @property
    def count(self) -> int:
        """Number of communities of the best seed; isolated neurons are not counted."""
        return int(self.labels.max(initial=ISOLATED)) + 1

    @cached_property
    def agreement(self) -> float:
        """Mean adjusted mutual information between the seeds' partitions of the neurons that have edges.

        1.0 when the partitions are equal, when there is one seed, and when no neuron has an edge.
        """
        connected = self.seed_labels[:, self.seed_labels[0] != ISOLATED]
        if len(connected) < 2 or connected.shape[1] == 0:
            return 1.0
        from sklearn.metrics import adjusted_mutual_info_score

        return float(np.mean([adjusted_mutual_info_score(a, b) for a, b in combinations(connected, 2)]))

    @cached_property
    def consensus(self) -> np.ndarray:
        """What the searches agree on, see :func:`consensus_partition`; -1 for an isolated neuron."""
        return consensus_partition(self.seed_labels)


def modularity(graph: Any, labels: Any, resolution: float = 1.0) -> float:
    """Edge weight inside communities beyond what the configuration model expects.

    Q = (1 / 2m) sum_ij [A_ij - resolution k_i k_j / 2m] 1[c_i = c_j], computed in the equivalent form
    Q = sum_c [W_c / m - resolution (K_c / 2m)^2] with W_c the weight inside community c and K_c its total strength.

    Args:
        graph: weights, shape (neurons, neurons), dense or SciPy sparse; symmetric, non-negative, zero diagonal.
        labels: community per neuron, shape (neurons,), any integers, of which -1 is one like the others. Neurons
            without edges do not matter.
        resolution: above 1 favours small communities, must be finite and > 0; dimensionless.

    Returns:
        Q, dimensionless, at most 1; 0.0 for a graph without weight.

    Raises:
        ValueError: shapes disagree, weights are asymmetric, negative or on the diagonal, or `resolution` is not finite
            and above 0.

    Examples:
        >>> two_triangles = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
        >>> modularity(two_triangles, [0, 0, 0, 1, 1, 1])
        0.5

    References:
        Newman (2006), doi:10.1073/pnas.0601602103; resolution: Reichardt and Bornholdt (2006),
        doi:10.1103/PhysRevE.74.016110.
    """
    matrix = _ordinary(as_graph(graph))
    return _modularity(matrix, as_labels(labels, matrix.shape[0]), _as_resolution(resolution))


def detect_communities(graph: Any, resolution: float = 1.0, seeds: int = 5) -> Communities:
    """Find communities with Leiden, from several random seeds, because one run alone is degenerate.

    Args:
        graph: weights, shape (neurons, neurons), dense or SciPy sparse; symmetric, non-negative, zero diagonal.
        resolution: above 1 favours small communities, must be finite and > 0.
        seeds: number of independent searches, from 1 to 100,000; search s uses seed s, so the result is reproducible.

    Returns:
        A :class:`Communities`. Of a graph without edges: all labels -1, modularity 0.0, agreement 1.0,
        connected_share 0.0.

    Raises:
        ValueError: the graph is not a valid adjacency, `seeds` is no whole number in its range, or `resolution` is not
            finite and above 0.

    Examples:
        >>> two_triangles = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
        >>> found = detect_communities(two_triangles)
        >>> found.labels.tolist(), found.modularity
        ([0, 0, 0, 1, 1, 1], 0.5)

    References:
        Traag, Waltman and van Eck (2019), doi:10.1038/s41598-019-41695-z; degeneracy: Good, de Montjoye and Clauset
        (2010), doi:10.1103/PhysRevE.81.046106.
    """
    matrix = _ordinary(as_graph(graph))
    seeds, resolution = as_count(seeds, "seeds", most=MOST_SEEDS), _as_resolution(resolution)
    connected = np.diff(matrix.indptr) > 0
    seed_labels = np.full((seeds, matrix.shape[0]), ISOLATED, dtype=np.int64)
    scores = np.zeros(seeds)

    def search(seed: int) -> None:
        labels = seed_labels[seed]
        labels[connected] = by_size(_leiden(matrix, resolution, seed)[connected])
        lowest = labels.min()
        scores[seed] = _quality(matrix, labels - lowest, labels.max() - lowest + 1, resolution)

    if connected.any():
        wait_for_compiled("nbutils._leiden")
        in_threads(search, range(seeds))
    return Communities(
        labels=seed_labels[int(scores.argmax())].copy(),
        modularity=float(np.median(scores)),
        connected_share=float(connected.mean()) if connected.size else 0.0,
        modularity_per_seed=scores,
        seed_labels=seed_labels,
    )


def well_defined_communities(graph: Any, labels: Any) -> np.ndarray:
    """Communities of at least three neurons that hold more weight inside than across their border.

    Community c is well defined when it has >= 3 non-isolated neurons and 2 w_in > w_cut, where w_in is the weight
    of the edges inside it and w_cut that of the edges leaving it: a weak community in Radicchi's sense, and the same as
    conductance w_cut / (2 w_in + w_cut) < 1/2.

    Args:
        graph: weights, shape (neurons, neurons), dense or SciPy sparse; symmetric, non-negative, zero diagonal.
        labels: community per neuron, shape (neurons,); integers, negative ones mean "in no community".

    Returns:
        The labels of the well-defined communities, sorted; its length is their number, 0 for an empty graph.

    Raises:
        ValueError: shapes disagree, or the graph is not a valid adjacency.

    Examples:
        >>> triangle_and_pair = np.zeros((5, 5))
        >>> triangle_and_pair[:3, :3] = 1 - np.eye(3)
        >>> triangle_and_pair[3, 4] = triangle_and_pair[4, 3] = 1
        >>> well_defined_communities(triangle_and_pair, [7, 7, 7, 8, 8])
        array([7])

    References:
        Radicchi et al. (2004), doi:10.1073/pnas.0400054101.
    """
    matrix = _ordinary(as_graph(graph))
    groups = as_labels(labels, matrix.shape[0])
    members = (groups >= 0) & (np.diff(matrix.indptr) > 0)
    if not members.any():
        return np.zeros(0, dtype=np.int64)
    index = np.full(groups.size, ISOLATED, dtype=np.int64)
    names, index[members] = np.unique(groups[members], return_inverse=True)
    inside, total = _inside_and_total(matrix, index, len(names))
    # `inside` is what the members' strength keeps within; the rest of the strength crosses the border.
    return names[(np.bincount(index[members]) >= 3) & (inside > total - inside)]


def _as_resolution(resolution: float) -> float:
    if not is_number(resolution) or resolution <= 0:
        raise ValueError(f"resolution must be above 0 and finite, received {shown(resolution)}")
    return float(resolution)


def _ordinary(matrix: sp.csr_array) -> sp.csr_array:
    """The graph with weights that can be summed and divided: huge and tiny ones times a power of two.

    Modularity does not depend on the scale of the weights, and a power of two changes no digit of them.
    """
    exponent = spare_exponent(matrix.data)
    if exponent:
        scaled = np.ldexp(matrix.data, -exponent)
        matrix = sp.csr_array((scaled, matrix.indices, matrix.indptr), shape=matrix.shape, copy=True)
        matrix.eliminate_zeros()  # next to nothing beside the largest
    return matrix


def _inside_and_total(matrix: sp.csr_array, index: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Weight inside each community (each edge twice), and its total strength; index -1 is in no community."""
    from nbutils.support import loops

    inside, total = np.zeros(count), np.zeros(count)
    loops.inside_weights(matrix.indptr, matrix.indices, matrix.data, index, inside, total)
    return inside, total


def _modularity(matrix: sp.csr_array, labels: np.ndarray, resolution: float) -> float:
    names, index = np.unique(labels, return_inverse=True)
    return _quality(matrix, index, len(names), resolution)


def _quality(matrix: sp.csr_array, index: np.ndarray, count: int, resolution: float) -> float:
    inside, total = _inside_and_total(matrix, index, count)
    twice_total = total.sum()
    if twice_total == 0:
        return 0.0
    return float((inside / twice_total - resolution * (total / twice_total) ** 2).sum())


def _leiden(matrix: sp.csr_array, resolution: float, seed: int) -> np.ndarray:
    from nbutils._leiden import leiden

    labels = np.arange(matrix.shape[0])
    for part in range(PASSES):
        labels = leiden(matrix.indptr, matrix.indices, matrix.data, resolution, PASSES * seed + part, labels)
    return labels
