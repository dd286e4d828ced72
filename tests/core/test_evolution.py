from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import adjusted_mutual_info_score

from nbutils.entropy import class_selectivity
from nbutils.series import partial_correlation, partial_from
from nbutils.stats import correlation, resampled_spearman
from nbutils.tracking import (
    SAME,
    against_chance,
    best_matching,
    between_searches,
    community_events,
    compare_partitions,
    flexibility,
    members,
    selective_for,
    track_communities,
)


def partition(*sizes):
    """Labels in a row: (label, how many), ..."""
    return np.concatenate([np.full(size, label) for label, size in sizes])


def matched(before, after, minimum):
    """Labels of the communities that belong together, before and after, and their Jaccard indices."""
    (old, a), (new, b) = members(before), members(after)
    rows, columns, overlap = best_matching(a, b, minimum)
    return old[rows].tolist(), new[columns].tolist(), overlap.tolist()


def wandering(rng, snapshots=6, neurons=40, communities=5, moves=8):
    """Partitions of which a few neurons move, some into none, at every step."""
    table = [rng.integers(-1, communities, neurons)]
    for _ in range(snapshots - 1):
        table.append(table[-1].copy())
        table[-1][rng.choice(neurons, moves)] = rng.integers(-1, communities, moves)
    return np.array(table)


def kinds(before, after, **options):
    return community_events(before, after, **options)["kind"].tolist()


# One case per kind. Communities of `before` are 0, 1, ..., of `after` 10, 11, ...
CASES = {
    "continuation": ([0] * 10, [10] * 10),
    "continuation, one neuron in twenty more": (partition((0, 20), (-1, 1)), [10] * 21),
    "growth": (partition((0, 10), (-1, 2)), [10] * 12),
    "contraction": ([0] * 12, partition((10, 10), (-1, 2))),
    "birth": ([-1] * 5, [10] * 5),
    "death": ([0] * 5, [-1] * 5),
    "merge": (partition((0, 5), (1, 5)), [10] * 10),
    "merge, one of them much smaller": (partition((0, 9), (1, 2)), [10] * 11),
    "split": ([0] * 10, partition((10, 5), (11, 5))),
    "split, in three without a majority": ([0] * 9, partition((10, 3), (11, 3), (12, 3))),
    # 0 and 1 go to 10, and 11 comes from 0.
    "regrouping": (partition((0, 10), (1, 3)), partition((10, 6), (11, 4), (10, 3))),
}


@pytest.mark.parametrize("name", CASES)
def test_each_kind_of_event(name):
    before, after = CASES[name]
    assert kinds(before, after) == [name.partition(",")[0]]


def test_half_is_no_majority_and_a_third_no_match():
    before = partition((0, 4), (1, 4))
    after = np.array([10, 10, 11, 11, 10, 10, 11, 11])
    assert kinds(before, after) == ["birth"] * 2 + ["death"] * 2
    assert matched(before, after, SAME)[2] == []
    assert matched(before, after, 0.3)[2] == [1 / 3, 1 / 3]


def test_a_weak_pair_is_a_death_and_a_birth():
    before, after = partition((0, 2), (-1, 4)), [10] * 6
    assert kinds(before, after) == ["birth", "death"]
    assert kinds(before, after, minimum=0.3) == ["growth"]


def test_what_the_rows_say():
    before = partition((0, 4), (1, 6), (-1, 2), (2, 5))
    after = partition((10, 11), (-1, 1), (12, 5))
    found = community_events(before, after).set_index("kind")
    merge = found.loc["merge"]
    assert (merge["before"], merge["after"]) == ((1, 0), (10,))
    assert merge[["size_before", "size_after", "shared"]].tolist() == [10, 11, 10]
    assert merge["jaccard"] == pytest.approx(10 / 11)
    assert found.loc["continuation", "after"] == (12,)


def test_the_threshold_of_growth():
    before, after = partition((0, 10), (-1, 1)), [0] * 11
    assert kinds(before, after) == ["continuation"]
    assert kinds(before, after, change=0.05) == ["growth"]
    assert kinds(after, before, change=0.05) == ["contraction"]


def test_every_community_takes_part_in_one_event(rng):
    for _ in range(50):
        before, after = wandering(rng, snapshots=2, moves=30)
        found = community_events(before, after)
        for side, labels in (("before", before), ("after", after)):
            named = [name for row in found[side] for name in row]
            assert sorted(named) == sorted(set(labels[labels >= 0].tolist()))


def test_backwards_in_time(rng):
    opposite = [("growth", "contraction"), ("birth", "death"), ("merge", "split")]
    other = dict(opposite) | {b: a for a, b in opposite}
    for moves in (5, 15, 30):
        before, after = wandering(rng, snapshots=2, moves=moves)
        backwards = [other.get(kind, kind) for kind in kinds(after, before)]
        assert sorted(kinds(before, after)) == sorted(backwards)


def test_labels_do_not_matter(rng):
    table = wandering(rng)
    renamed = np.array([np.append(rng.permutation(9)[:5], -4)[row] for row in table])  # -1 becomes -4
    assert np.array_equal(track_communities(table), track_communities(renamed))
    for step in range(1, len(table)):
        assert kinds(*table[step - 1 : step + 1]) == kinds(*renamed[step - 1 : step + 1])


def test_equal_partitions_only_continue(rng):
    labels = wandering(rng)[0]
    table = [labels, np.where(labels >= 0, 9 - labels, -1), labels]
    assert set(kinds(*table[:2])) == {"continuation"}
    tracked = track_communities(table)
    assert (tracked == tracked[0]).all()
    assert set(flexibility(tracked)[labels >= 0]) == {0.0}
    found = compare_partitions(*table[:2])
    assert found["overlap"] == 1
    assert found["agreement"] == pytest.approx(1)


def test_identities_agree_with_events(rng):
    for moves in (4, 8, 16, 30):
        tracked = track_communities(wandering(rng, snapshots=8, neurons=60, moves=moves))
        for before, after in pairwise(tracked):
            for row in community_events(before, after).itertuples():
                if row.kind in ("continuation", "growth", "contraction"):
                    assert row.before == row.after
                if row.kind in ("birth", "death"):
                    assert not set(row.before) & set(after)
                    assert not set(row.after) & set(before)


def test_the_matching_is_the_best_one():
    # Greedily 0 would take 10 (J = 4/8) and 1 be left with J = 2/10; the best sum gives 10 to 1.
    before = partition((0, 6), (1, 4), (-1, 2))
    after = np.array([10, 10, 10, 11, 11, 11, 10, 10, 10, -1, -1, -1])
    assert matched(before, after, SAME) == ([0, 1], [11, 10], [3 / 6, 3 / 7])


def test_tracking_by_hand():
    table = [
        partition((7, 4), (3, 6), (-1, 2)),
        partition((0, 4), (1, 3), (2, 3), (5, 2)),  # the six split in halves, and two are new
        partition((0, 10), (1, 2)),  # all but the new ones merge
    ]
    tracked = track_communities(table)
    assert tracked[0].tolist() == [1] * 4 + [0] * 6 + [-1] * 2
    assert tracked[1].tolist() == [1] * 4 + [0] * 3 + [2] * 3 + [3] * 2  # ties go to the first neuron
    assert tracked[2].tolist() == [1] * 10 + [3] * 2


def test_flexibility_by_hand():
    found = flexibility([[0, 0, 0, -1], [0, 1, -1, 0], [0, 0, 1, -1], [0, 0, 0, 0]])
    assert found[:3].tolist() == [0.0, 2 / 3, 1.0]
    assert np.isnan(found[3])
    assert np.isnan(flexibility([[0, 1]])).all()


def test_unrelated_partitions_look_like_the_null(rng):
    labels = np.repeat(np.arange(4), 25)
    unrelated = against_chance(labels, rng.permutation(labels), rng, draws=99).set_index("quantity")
    assert (unrelated["low"] <= unrelated["observed"]).all()
    assert (unrelated["observed"] <= unrelated["high"]).all()
    same = against_chance(labels, labels, rng, draws=99).set_index("quantity")
    assert same.loc["continuation", "observed"] == 4
    assert same.loc["continuation", "high"] < 2
    assert same.loc["overlap", "expected"] < 0.35
    assert same.loc["overlap", "observed"] == 1


def test_the_null_keeps_sizes_and_who_is_isolated(rng):
    """One community before and after can only be itself, whatever the null deals."""
    before, after = partition((0, 20), (-1, 5)), partition((0, 18), (-1, 7))
    found = against_chance(before, after, rng, draws=9).set_index("quantity")
    assert found.loc["overlap", ["observed", "expected", "low", "high"]].tolist() == pytest.approx([0.9] * 4)
    assert found.loc["contraction", "low"] == 1


def test_agreement_leaves_the_isolated_out(rng):
    before, after = wandering(rng, snapshots=2)
    both = (before >= 0) & (after >= 0)
    oracle = adjusted_mutual_info_score(before[both], after[both])
    assert compare_partitions(before, after)["agreement"] == pytest.approx(oracle)


def test_searches_of_one_graph():
    halves, whole = [0, 0, 0, 1, 1, 1], [0] * 6
    found = between_searches([halves, halves, whole])
    assert found["merge"] == found["split"] == 2 / 6
    assert found["continuation"] == 2 * 2 / 6
    with pytest.raises(ValueError, match="at least 2 searches, received 1"):
        between_searches([halves])


def test_no_community_at_all(rng):
    none = np.full(4, -1)
    assert community_events(none, none).empty
    assert matched(none, np.array([0, 0, 1, 1]), SAME) == ([], [], [])
    assert kinds(none, [0, 0, 1, 1]) == ["birth", "birth"]
    assert (track_communities([none, none]) == -1).all()
    assert np.isnan(compare_partitions(none, none)[["overlap", "agreement"]]).all()
    assert np.isnan(flexibility([none, none])).all()


def test_answers(rng):
    classes = np.repeat([2, 5, 7], 20)
    communities = np.array([0, 0, 1, 1, 1, -1, 2])
    fired = rng.random((60, 7)) < np.where(classes[:, None] == np.array([2, 2, 5, 5, 5, 7, 7]), 0.9, 0.2)
    fired[:, 6] = False
    found = selective_for(fired, classes, communities)
    assert found["selective_for"].tolist() == [2, 5, -1]
    assert found["neurons"].tolist() == [2, 3, 1]
    rates = np.array([[fired[classes == k][:, communities == c].mean() for c in range(3)] for k in (2, 5, 7)])
    assert found["preference"].tolist() == pytest.approx(class_selectivity(rates).tolist())
    assert found[[2, 5, 7]].mean(axis=1).tolist() == pytest.approx([1, 1, 0])
    assert found[5][1] == pytest.approx(rates[1, 1] / rates[:, 1].mean())


def test_resampled_and_partial_correlations(rng):
    x, y, z = rng.normal(size=(3, 20))
    resamples = [rng.integers(20, size=size) for size in (20, 7, 20)]
    oracle = [correlation(x[r], y[r]) for r in resamples]
    assert resampled_spearman(x, y, resamples).tolist() == pytest.approx(oracle)
    residuals = [stats.linregress(stats.rankdata(z), stats.rankdata(v)) for v in (x, y)]
    left = [
        stats.rankdata(v) - line.intercept - line.slope * stats.rankdata(z)
        for v, line in zip((x, y), residuals, strict=True)
    ]
    assert partial_correlation(x, y, z) == pytest.approx(correlation(*left, "pearson"))
    assert np.isnan(partial_from(0.5, 1.0, 0.2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: community_events([0, 1], [0, 1, 2]), "same number of neurons"),
        (lambda: community_events([0, 1], [0.5, 1]), "must be integers"),
        (lambda: track_communities([[0, 1]], minimum=1), "minimum must be from 0 to below 1, received 1"),
        (lambda: track_communities([0, 1]), r"partitions must have shape \(snapshots, neurons\), received \(2,\)"),
        (lambda: track_communities([[0, 1]], minimum=-1), "received -1"),
        (lambda: community_events([0], [0], change=-1), "change at least 0, received .* and -1"),
        (lambda: against_chance([0], [0], None, draws=0), "draws must be a whole number from 1 to 100000, received 0"),
        (lambda: selective_for([[1, 0]], [0], [0]), r"communities must have shape \(2,\), received \(1,\)"),
    ],
)
def test_wrong_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
