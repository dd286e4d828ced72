"""What several searches for communities agree on."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.arrays import as_partitions

__all__ = ["ISOLATED", "agreed_communities", "by_size", "consensus_partition"]

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
    # Neurons that agree in every search form one atom, so the pairwise table stays small.
    atoms, atom, size = np.unique(searches[:, placed], axis=1, return_inverse=True, return_counts=True)
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
