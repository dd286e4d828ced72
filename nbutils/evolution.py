"""Communities followed from snapshot to snapshot: which one is which, and which neurons move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from nbutils.arguments import checked
from nbutils.arrays import as_fired, as_labels, as_partitions, is_number, shown
from nbutils.baselines import class_selectivity
from nbutils.communities import detect_communities
from nbutils.consensus import ISOLATED, agreed_communities
from nbutils.graphs import activation_pattern_graph

if TYPE_CHECKING:
    from nbutils.runs import Run

__all__ = [
    "SAME",
    "answers_to",
    "best_matching",
    "flexibility",
    "match_communities",
    "members",
    "partitions_of",
    "shared_neurons",
    "track_communities",
    "two_partitions",
]

SAME = 1 / 3  # above it, one of two communities has more than half of its neurons in the other


def match_communities(before: Any, after: Any, minimum: float = SAME) -> pd.DataFrame:
    """Which community of one partition is which of another: the one-to-one matching with the largest overlap.

    The overlap of two communities is the Jaccard index J(A, B), neurons in both over neurons in either. A pair can be
    matched only if J > `minimum`; among all one-to-one matchings of such pairs, the one with the largest sum of J is
    taken.

    Why a third: if J(A, B) > 1/3, then more than half of A is in B, or more than half of B in A. For two communities of
    equal size it says that they share more than half of their neurons. Halves of two unrelated halvings reach 1/3 by
    chance, communities of finer partitions less.

    Args:
        before: community per neuron, shape (neurons,), integers; negative ones mean "in no community".
        after: the same neurons later, shape (neurons,).
        minimum: overlap that a match must exceed, in [0, 1).

    Returns:
        One row per match, largest community of `before` first: `before`, `after` (labels), `shared` (neurons in both),
        `jaccard` in (minimum, 1]. No rows when nothing matches. Ties are broken by size, then by the first neuron.

    Raises:
        ValueError: the partitions are not integers of one length, or `minimum` is outside [0, 1).

    Examples:
        >>> match_communities([0, 0, 0, 1, 1, -1], [5, 5, 7, 7, 7, 7]).to_dict("list")
        {'before': [0, 1], 'after': [5, 7], 'shared': [2, 2], 'jaccard': [0.6666666666666666, 0.5]}

    References:
        Greene, Doyle and Cunningham (2010), doi:10.1109/ASONAM.2010.17; assignment: Kuhn (1955),
        doi:10.1002/nav.3800020109, computed by SciPy.
    """
    two = two_partitions(before, after)
    (first, a), (second, b) = members(two[0]), members(two[1])
    rows, columns, overlap = best_matching(a, b, minimum)
    return pd.DataFrame(
        {
            "before": first[rows],
            "after": second[columns],
            "shared": shared_neurons(a, b)[rows, columns],
            "jaccard": overlap,
        }
    )


def track_communities(partitions: Any, minimum: float = SAME) -> np.ndarray:
    """Give every community of a sequence of partitions an identity that it keeps.

    Snapshot by snapshot, communities are matched with those of the snapshot before as in :func:`match_communities`. A
    matched community keeps its identity; any other is new and gets the next free number. An identity that is gone
    does not come back.

    Args:
        partitions: community per snapshot and neuron, shape (snapshots, neurons), integers, negative ones mean "in no
            community". Labels of different snapshots need not correspond.
        minimum: overlap that a match must exceed, in [0, 1).

    Returns:
        Identity per snapshot and neuron, shape (snapshots, neurons); -1 in no community. Those of the first snapshot
        are numbered from 0 by falling size, new ones in order of appearance, then by falling size. They do not depend
        on what the labels were.

    Raises:
        ValueError: the partitions are not integers of shape (snapshots, neurons), or `minimum` is outside [0, 1).

    Examples:
        >>> track_communities([[4, 4, 4, 2, 2], [1, 1, 1, 3, 3], [3, 3, -1, 1, 1]]).tolist()
        [[0, 0, 0, 1, 1], [0, 0, 0, 1, 1], [0, 0, -1, 1, 1]]

    References:
        Greene, Doyle and Cunningham (2010), doi:10.1109/ASONAM.2010.17.
    """
    table = as_partitions(partitions)
    tracked = np.full(table.shape, ISOLATED, dtype=np.int64)
    names, fronts, born = [], np.zeros((0, table.shape[1]), dtype=bool), 0
    for step, labels in enumerate(table):
        _, masks = members(labels)
        rows, columns, _ = best_matching(fronts, masks, minimum)
        kept = {column: names[row] for row, column in zip(rows, columns, strict=True)}
        new = iter(range(born, born + len(masks)))
        names = [kept[column] if column in kept else next(new) for column in range(len(masks))]
        fronts, born = masks, next(new, born + len(masks))
        for name, mask in zip(names, masks, strict=True):
            tracked[step, mask] = name
    return tracked


def flexibility(tracked: Any) -> np.ndarray:
    """How often a neuron changes its community.

    f_i = (changes of i) / (steps at which i can change), where a step is a pair of successive snapshots at which the
    neuron is in a community both times.

    Args:
        tracked: identity per snapshot and neuron, shape (snapshots, neurons), from :func:`track_communities`.

    Returns:
        Share per neuron, shape (neurons,), in [0, 1]; NaN for a neuron that is never in a community twice in a row. A
        community that loses its identity counts as a change for all its neurons.

    Raises:
        ValueError: `tracked` is not integers of shape (snapshots, neurons).

    Examples:
        >>> flexibility([[0, 0, 1], [0, 1, -1], [0, 1, 1]]).tolist()
        [0.0, 0.5, nan]

    References:
        Bassett et al. (2011), doi:10.1073/pnas.1018985108.
    """
    table = as_partitions(tracked, "tracked")
    both = (table[1:] >= 0) & (table[:-1] >= 0)
    changes = (both & (table[1:] != table[:-1])).sum(axis=0)
    return np.divide(changes, both.sum(axis=0), out=np.full(table.shape[1], np.nan), where=both.any(axis=0))


def answers_to(fired: Any, labels: Any, communities: Any) -> pd.DataFrame:
    """Which class each community answers to, and how clearly.

    The firing rate of community c on class k, r_ck, is the share of (image of k, neuron of c) pairs that fire. The
    community answers to the class with the largest rate; its preference is
    (r_max - r_rest) / (r_max + r_rest) with r_rest the mean rate over the other classes, as for single neurons in
    :func:`nbutils.baselines.class_selectivity`.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,), integers.
        communities: community per neuron, shape (neurons,), integers; negative ones are left out.

    Returns:
        One row per community: `community`, `neurons`, `answers_to` (the smallest of tied classes), `preference` in
        [0, 1], and for each class a column of that name with r_ck / mean over k of r_ck, at least 0. A community that
        never fires has relative rates 0, preference 0, and answers to -1, no class.

    Raises:
        ValueError: shapes disagree, `fired` is not boolean, or labels are not integers.

    Examples:
        >>> answers_to([[1, 1, 0], [0, 0, 1], [1, 0, 1]], [3, 8, 8], [0, 0, 1]).round(2).to_dict("records")
        [{'community': 0, 'neurons': 2, 'answers_to': 3, 'preference': 0.6, 3: 1.6, 8: 0.4},
         {'community': 1, 'neurons': 1, 'answers_to': 8, 'preference': 1.0, 3: 0.0, 8: 2.0}]
    """
    matrix = as_fired(fired)
    classes = as_labels(labels, matrix.shape[0])
    names, masks = members(as_labels(communities, matrix.shape[1], "communities"))
    kinds = np.unique(classes)
    size = masks.sum(axis=1)
    by_neuron = np.array([matrix[classes == kind].mean(axis=0) for kind in kinds])
    rates = by_neuron @ masks.T / size
    mean = rates.mean(axis=0)
    best = np.where(mean > 0, kinds[rates.argmax(axis=0)], -1)
    table = pd.DataFrame(
        {"community": names, "neurons": size, "answers_to": best, "preference": class_selectivity(rates)}
    )
    relative = rates / np.where(mean > 0, mean, 1)
    return table.join(pd.DataFrame(relative.T, columns=kinds)).sort_values("community", ignore_index=True)


@checked
def partitions_of(run: Run, density: float = 0.05, seeds: int = 5) -> np.ndarray:
    """Communities of a run at every epoch, each the consensus of several searches.

    Groups of fewer than three neurons, which searches do not agree on, are no community here: they would come and go.

    Args:
        run: a finished run.
        density: share of neuron pairs kept as edges.
        seeds: searches per epoch, at least 1.

    Returns:
        Community per snapshot and neuron, shape (snapshots, neurons); -1 for a neuron in none.
    """
    graphs = (activation_pattern_graph(run.fired(int(epoch)), density) for epoch in run.history["epoch"])
    return np.array([agreed_communities(detect_communities(graph, seeds=seeds).seed_labels) for graph in graphs])


def two_partitions(before: Any, after: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two partitions of the same neurons, checked."""
    first, second = as_labels(before, None, "before"), as_labels(after, None, "after")
    if first.size != second.size:
        found = f"{first.size} and {second.size}"
        raise ValueError(f"before and after must have the same number of neurons, received {found}")
    return first, second


def members(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Communities by falling size, then by first neuron: their labels, and their neurons (communities, neurons)."""
    names, first, size = np.unique(labels, return_index=True, return_counts=True)
    order = np.lexsort((first, -size))
    names = names[order[names[order] >= 0]]
    return names, labels == names[:, None]


def shared_neurons(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """How many neurons each community shares with each: from their neurons as :func:`members` gives them."""
    return np.rint(first.astype(float) @ second.T.astype(float)).astype(np.int64)


def best_matching(first: np.ndarray, second: np.ndarray, minimum: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and columns of the best matching above `minimum`, and their Jaccard indices; from :func:`members`."""
    if not is_number(minimum) or not 0 <= minimum < 1:
        raise ValueError(f"minimum must be from 0 to below 1, received {shown(minimum)}")
    shared = shared_neurons(first, second)
    overlap = shared / (first.sum(axis=1)[:, None] + second.sum(axis=1) - shared)
    rows, columns = linear_sum_assignment(np.where(overlap > minimum, overlap, 0), maximize=True)
    kept = overlap[rows, columns] > minimum
    return rows[kept], columns[kept], overlap[rows[kept], columns[kept]]
