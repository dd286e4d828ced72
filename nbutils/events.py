"""What happens to communities between two snapshots, and what would happen if the snapshots were unrelated."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nbutils.arrays import as_count, as_partitions, as_rng, is_number, shown
from nbutils.evolution import SAME, best_matching, members, shared_neurons, two_partitions

__all__ = ["KINDS", "against_chance", "between_searches", "community_events", "compare_partitions"]

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
    continuation, growth and contraction keep the identity that :func:`nbutils.evolution.track_communities` gives.

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
