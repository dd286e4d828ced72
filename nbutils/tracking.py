"""How communities change: identities over time, and events such as splits and merges."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from nbutils.communities import ISOLATED
from nbutils.entropy import class_selectivity
from nbutils.support.checks import as_count, as_fired, as_labels, as_partitions, as_rng, is_number, shown

SAME = 1 / 3  # above it, one of two communities has more than half of its neurons in the other


def track_communities(partitions: Any, minimum: float = SAME) -> np.ndarray:
    """Give every community of a sequence of partitions an identity that it keeps.

    Snapshot by snapshot, communities are matched with those of the snapshot before. The overlap of two is the Jaccard
    index J(A, B), neurons in both over neurons in either; a pair can be matched only if J > `minimum`, and among all
    one-to-one matchings of such pairs the one with the largest sum of J is taken. A matched community keeps its
    identity; any other is new and gets the next free number. An identity that is gone does not come back.

    Why a third: if J(A, B) > 1/3, then more than half of A is in B, or more than half of B in A. For two communities of
    equal size it says that they share more than half of their neurons. Halves of two unrelated halvings reach 1/3 by
    chance, communities of finer partitions less.

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
        Greene, Doyle and Cunningham (2010), doi:10.1109/ASONAM.2010.17; assignment: Kuhn (1955),
        doi:10.1002/nav.3800020109, computed by SciPy.
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


def selective_for(fired: Any, labels: Any, communities: Any) -> pd.DataFrame:
    """Which class each community is selective for, and how strongly.

    The firing rate of community c on class k, r_ck, is the share of (image of k, neuron of c) pairs that fire. The
    community is selective for the class with the largest rate; its preference is
    (r_max - r_rest) / (r_max + r_rest) with r_rest the mean rate over the other classes, as for single neurons in
    :func:`nbutils.entropy.class_selectivity`.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,), integers.
        communities: community per neuron, shape (neurons,), integers; negative ones are left out.

    Returns:
        One row per community: `community`, `neurons`, `selective_for` (the smallest of tied classes), `preference` in
        [0, 1], and for each class a column of that name with r_ck / mean over k of r_ck, at least 0. A community that
        never fires has relative rates 0, preference 0, and is selective for -1, no class.

    Raises:
        ValueError: shapes disagree, `fired` is not boolean, or labels are not integers.

    Examples:
        >>> selective_for([[1, 1, 0], [0, 0, 1], [1, 0, 1]], [3, 8, 8], [0, 0, 1]).round(2).to_dict("records")
        [{'community': 0, 'neurons': 2, 'selective_for': 3, 'preference': 0.6, 3: 1.6, 8: 0.4},
         {'community': 1, 'neurons': 1, 'selective_for': 8, 'preference': 1.0, 3: 0.0, 8: 2.0}]
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
        {"community": names, "neurons": size, "selective_for": best, "preference": class_selectivity(rates)}
    )
    relative = rates / np.where(mean > 0, mean, 1)
    return table.join(pd.DataFrame(relative.T, columns=kinds)).sort_values("community", ignore_index=True)


def class_agreement(fired: Any, labels: Any, communities: Any) -> float:
    """How far communities are the groups of neurons that prefer one class: their adjusted mutual information.

    A neuron prefers the class on which the largest share of examples makes it fire, the smallest of tied ones. Neurons
    that never fire, and those in no community, are left out.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,), integers; true ones, or those that the network predicts.
        communities: community per neuron, shape (neurons,), integers; negative ones mean "in no community".

    Returns:
        At most 1, which means the same grouping; about 0 by chance. NaN where no neuron is left.

    Raises:
        ValueError: shapes disagree, `fired` is not boolean, or labels or communities are not integers.

    Examples:
        >>> class_agreement([[1, 1, 0, 0], [0, 0, 1, 1]], [3, 8], [0, 0, 1, 1])
        1.0

    References:
        Vinh, Epps and Bailey (2010), "Information theoretic measures for clusterings comparison"; computed by
        scikit-learn.
    """
    from sklearn.metrics import adjusted_mutual_info_score

    matrix = as_fired(fired)
    classes = as_labels(labels, matrix.shape[0])
    groups = as_labels(communities, matrix.shape[1], "communities")
    rates = np.array([matrix[classes == kind].mean(axis=0) for kind in np.unique(classes)])
    kept = (groups >= 0) & matrix.any(axis=0)
    if not kept.any():
        return float("nan")
    return float(adjusted_mutual_info_score(rates.argmax(axis=0)[kept], groups[kept]))


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
    from scipy.optimize import linear_sum_assignment  # slow to import for a command line that needs none of it

    shared = shared_neurons(first, second)
    overlap = shared / (first.sum(axis=1)[:, None] + second.sum(axis=1) - shared)
    rows, columns = linear_sum_assignment(np.where(overlap > minimum, overlap, 0), maximize=True)
    kept = overlap[rows, columns] > minimum
    return rows[kept], columns[kept], overlap[rows[kept], columns[kept]]


KINDS = ("continuation", "growth", "contraction", "birth", "death", "merge", "split", "regrouping")
MOST_DRAWS = 100_000
NOTABLE = 0.1  # a change of size by less than a tenth is none


def community_events(before: Any, after: Any, minimum: float = SAME, change: float = NOTABLE) -> pd.DataFrame:
    """What became of every community: each takes part in exactly one event.

    A community A of `before` and a community B of `after` are **linked** if more than half of A's neurons are in B, or
    more than half of B's neurons were in A. Communities linked directly or through others form one event, and how many
    there are of each decides its kind:

    - one before, none after: **death**; none before, one after: **birth**;
    - one and one, Jaccard index above `minimum`: **growth** if B has more than (1 + change) times the neurons of A,
      **contraction** if it is the other way round, else **continuation**; with a Jaccard index of at most `minimum`
      they are not the same community: a death and a birth;
    - several before, one after: **merge**; one before, several after: **split**;
    - several and several: **regrouping**.

    Read backwards in time, births are deaths, merges are splits, growth is contraction. With `minimum` at least 1/3,
    continuation, growth and contraction keep the identity that :func:`nbutils.tracking.track_communities` gives.

    Args:
        before: community per neuron, shape (neurons,), integers; negative ones mean "in no community".
        after: the same neurons later, shape (neurons,).
        minimum: overlap that a community needs to be the same, in [0, 1).
        change: relative change of size that counts, at least 0.

    Returns:
        One row per event, in the order of `KINDS`, largest first: `kind`, `before` and `after` (tuples of labels),
        `size_before`, `size_after` (neurons in them), `shared` (neurons in one of them both times), `jaccard` (of all
        neurons before and all after; 0 for births and deaths). No rows when there is no community at all.

    Raises:
        ValueError: the partitions are not integers of one length, or an option is out of range.

    Examples:
        >>> found = community_events([0, 0, 0, 1, 1, 2, 2, -1], [3, 3, 3, 3, 3, 5, 5, 5])
        >>> found[["kind", "before", "after"]].values.tolist()
        [['growth', (2,), (5,)], ['merge', (0, 1), (3,)]]

    References:
        The kinds: Palla, Barabási and Vicsek (2007), doi:10.1038/nature05670; Greene, Doyle and Cunningham (2010),
        doi:10.1109/ASONAM.2010.17; links by majority: Asur, Parthasarathy and Ucar (2009),
        doi:10.1145/1631162.1631164.
    """
    rows = _events(*two_partitions(before, after), minimum, change)
    rows.sort(key=lambda row: (KINDS.index(row[0]), -row[3] - row[4]))
    return pd.DataFrame(rows, columns=["kind", "before", "after", "size_before", "size_after", "shared", "jaccard"])


def compare_partitions(before: Any, after: Any, minimum: float = SAME, change: float = NOTABLE) -> pd.Series:
    """Two partitions of the same neurons in numbers: events, overlap, agreement.

    Args:
        before: community per neuron, shape (neurons,), integers; negative ones mean "in no community".
        after: the same neurons later, shape (neurons,).
        minimum: see :func:`community_events`.
        change: see :func:`community_events`.

    Returns:
        The number of events of each of `KINDS`; `overlap`, the sum of Jaccard indices of the best matching without a
        minimum over the larger number of communities, in [0, 1], 1 for equal partitions; `agreement`, the adjusted
        mutual information over neurons that are in a community both times, at most 1, about 0 by chance. Overlap is NaN
        without any community, agreement without any such neuron.

    Raises:
        ValueError: the partitions are not integers of one length, or an option is out of range.

    Examples:
        >>> found = compare_partitions([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
        >>> found[found > 0].to_dict()
        {'continuation': 2.0, 'overlap': 1.0, 'agreement': 1.0}

    References:
        Vinh, Epps and Bailey (2010), "Information theoretic measures for clusterings comparison"; computed by
        scikit-learn.
    """
    from sklearn.metrics import adjusted_mutual_info_score

    first, second = two_partitions(before, after)
    placed = (first >= 0) & (second >= 0)
    agreement = adjusted_mutual_info_score(first[placed], second[placed]) if placed.any() else np.nan
    return pd.Series(_numbers(first, second, minimum, change) | {"agreement": agreement}, dtype=float)


def against_chance(
    before: Any,
    after: Any,
    rng: np.random.Generator | int,
    *,
    draws: int = 199,
    minimum: float = SAME,
    change: float = NOTABLE,
) -> pd.DataFrame:
    """Events and overlap beside those of unrelated partitions with the same sizes.

    The null deals the communities of `after` anew among the neurons that are in one: sizes stay, and so does who is in
    no community; which neurons are together becomes chance.

    Args:
        before: community per neuron, shape (neurons,), integers; negative ones mean "in no community".
        after: the same neurons later, shape (neurons,).
        rng: source of randomness: a generator, or a seed.
        draws: number of random partitions, from 1 to 100,000.
        minimum: see :func:`community_events`.
        change: see :func:`community_events`.

    Returns:
        One row per number of :func:`compare_partitions` but the agreement, which is adjusted for chance already:
        `quantity`, `observed`, `expected` (mean under the null), `low`, `high` (its 2.5 % and 97.5 % quantiles).

    Raises:
        ValueError: the partitions are not integers of one length, or an option is out of range.

    Examples:
        >>> halves = np.repeat([0, 1], 50)
        >>> found = against_chance(halves, halves, np.random.default_rng(0), draws=20).set_index("quantity")
        >>> bool(found.loc["overlap", "observed"] == 1), bool(found.loc["overlap", "high"] < 0.5)
        (True, True)
    """
    draws, rng = as_count(draws, "draws", most=MOST_DRAWS), as_rng(rng)
    first, second = two_partitions(before, after)
    observed = _numbers(first, second, minimum, change)
    placed = second >= 0
    null = []
    for _ in range(draws):
        dealt = second.copy()
        dealt[placed] = rng.permutation(second[placed])
        null.append(list(_numbers(first, dealt, minimum, change).values()))
    low, high = np.quantile(null, [0.025, 0.975], axis=0)
    columns = {"observed": list(observed.values()), "expected": np.mean(null, axis=0), "low": low, "high": high}
    return pd.DataFrame({"quantity": list(observed), **columns})


def between_searches(seed_labels: Any, minimum: float = SAME, change: float = NOTABLE) -> pd.Series:
    """Events that the search alone makes: two searches of the *same* graph, compared as if they were two snapshots.

    Args:
        seed_labels: the partition of each search, shape (seeds, neurons), such as `seed_labels` of a
            :class:`nbutils.communities.Communities`; at least 2.
        minimum: see :func:`community_events`.
        change: see :func:`community_events`.

    Returns:
        The numbers of :func:`compare_partitions`, means over all ordered pairs of searches.

    Raises:
        ValueError: fewer than 2 searches, or they are not integers of shape (seeds, neurons).

    Examples:
        >>> float(between_searches([[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0]])["continuation"])
        2.0
    """
    searches = as_partitions(seed_labels, "seed_labels")
    if len(searches) < 2:
        raise ValueError(f"seed_labels must hold at least 2 searches, received {len(searches)}")
    found = [compare_partitions(*pair, minimum, change) for pair in permutations(searches, 2)]
    return pd.concat(found, axis=1).mean(axis=1)


def _numbers(before: np.ndarray, after: np.ndarray, minimum: float, change: float) -> dict[str, float]:
    """Events of each kind, and the overlap."""
    kinds = Counter(row[0] for row in _events(before, after, minimum, change))
    (_, a), (_, b) = members(before), members(after)
    most = max(len(a), len(b))
    overlap = best_matching(a, b, 0)[2].sum() / most if most else np.nan
    return {kind: float(kinds[kind]) for kind in KINDS} | {"overlap": overlap}


def _events(before: np.ndarray, after: np.ndarray, minimum: float, change: float) -> list[tuple[Any, ...]]:
    """The rows of :func:`community_events`, in no order."""
    if not is_number(minimum) or not is_number(change) or not 0 <= minimum < 1 or change < 0:
        found = f"{shown(minimum)} and {shown(change)}"
        raise ValueError(f"minimum must be in [0, 1) and change at least 0, received {found}")
    minimum, change = float(minimum), float(change)
    (first, a), (second, b) = members(before), members(after)
    rows = []
    for old, new in _linked(a, b):
        mine, theirs = a[old].any(axis=0), b[new].any(axis=0)
        shared = int((mine & theirs).sum())
        jaccard = shared / int((mine | theirs).sum())
        sizes = int(mine.sum()), int(theirs.sum())
        names = tuple(first[old].tolist()), tuple(second[new].tolist())
        kind = _kind(len(old), len(new), *sizes, change)
        if len(old) == len(new) == 1 and jaccard <= minimum:
            rows += [("death", names[0], (), sizes[0], 0, 0, 0.0), ("birth", (), names[1], 0, sizes[1], 0, 0.0)]
        else:
            rows.append((kind, *names, *sizes, shared, jaccard))
    return rows


def _linked(first: np.ndarray, second: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Groups of communities linked by majorities: indices before and after of each."""
    from scipy.sparse.csgraph import connected_components  # slow to import as well

    shared = shared_neurons(first, second)
    links = (2 * shared > first.sum(axis=1)[:, None]) | (2 * shared > second.sum(axis=1))
    old, new = links.shape
    both = np.zeros((old + new, old + new), dtype=bool)
    both[:old, old:] = links
    count, group = connected_components(sp.csr_array(both), directed=False)
    return [(np.flatnonzero(group[:old] == k), np.flatnonzero(group[old:] == k)) for k in range(count)]


def _kind(old: int, new: int, size_before: int, size_after: int, change: float) -> str:
    if old > 1 or new > 1:
        return "merge" if new == 1 else "split" if old == 1 else "regrouping"
    if not old or not new:
        return "death" if old else "birth"
    grown = size_after > (1 + change) * size_before
    return "growth" if grown else "contraction" if size_before > (1 + change) * size_after else "continuation"
