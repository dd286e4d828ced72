"""Errors of units against known motifs: cases made by hand, slow oracles, and bad input."""

from __future__ import annotations

from functools import cache
from itertools import permutations, product

import numpy as np
import pytest

from nbutils.motifs import motif_errors as errors
from nbutils.motifs.motif_errors import (
    Activations,
    activations_of,
    best_assignment,
    confusion_of,
    edit_distance,
    motif_errors,
    sequence_accuracy,
    touches_of,
)
from nbutils.motifs.tasks import TASKS, MotifBatch

# Two examples of ten places. Motif 0 at 0-2 and motif 1 at 6-8 of the first, motif 1 at 3-4 of the second.
LINE = MotifBatch(np.zeros((2, 10), np.uint8), [[0, 1], [1, -1]], [0, 0, 1], [0, 1, 1], [[[0, 3]], [[6, 9]], [[3, 5]]])


def at(*units: tuple[int, int, int], **windows: int) -> Activations:
    """Activations from (example, channel, position)."""
    example, channel, place = np.array(units, int).reshape(-1, 3).T
    return Activations(example, channel, place[:, None], **windows)


def perfect(batch: MotifBatch) -> Activations:
    """One activation in the middle of every stamp, in the channel of its motif."""
    return Activations(batch.example, batch.motif, batch.box.sum(axis=2) // 2)


@pytest.mark.parametrize("name", list(TASKS))
def test_perfect_permuted_and_silent_units(name):
    task = TASKS[name]
    batch, motifs = task.sample(100, 0), len(task.alphabet)
    ideal = perfect(batch)
    found = motif_errors(batch, ideal, motifs, motifs)
    assert (found.false_positive, found.false_negative, found.confusion) == (0, 0, 0)
    assert found.assignment.tolist() == list(range(motifs))
    order = np.random.default_rng(0).permutation(motifs)
    renamed = Activations(ideal.example, order[ideal.channel], ideal.position)
    again = motif_errors(batch, renamed, motifs, motifs)
    assert (again.false_positive, again.false_negative, again.confusion) == (0, 0, 0)
    assert again.assignment[order].tolist() == list(range(motifs)), "names of channels do not matter"
    silent = motif_errors(batch, at() if len(batch.space) == 1 else Activations([], [], np.empty((0, 2))), 3, motifs)
    assert silent.false_negative == 1
    assert np.isnan([silent.false_positive, silent.confusion]).all()


def test_errors_by_hand():
    # Channel 0 on motif 0, channel 1 on both stamps of motif 1, one of channel 0 there, and two beside everything.
    found = motif_errors(LINE, at((0, 0, 1), (0, 1, 6), (0, 0, 8), (1, 1, 4), (1, 0, 5), (0, 1, 9)), 2, 2)
    assert found.false_positive == 2 / 6
    assert found.false_negative == 0
    assert found.confusion == 1 / 4
    assert (found.assignment.tolist(), found.fitted_on) == ([0, 1], "these examples")
    assert (found.activations, found.stamps) == (6, 3)


def test_boxes_are_half_open_and_examples_kept_apart():
    units = at((0, 0, 0), (0, 0, 2), (0, 0, 3), (0, 0, 5), (0, 0, 6), (1, 0, 1), (1, 0, 4))
    assert touches_of(LINE, units).stamp.tolist() == [0, 0, -1, -1, 1, -1, 2]


def test_windows_reach_as_far_as_their_field():
    # Position 1 with a stride of 4, an offset of -1 and a field of 3 sees places 3, 4 and 5.
    assert at((0, 0, 1), stride=4, offset=-1, field=3).windows().tolist() == [[[3, 6]]]
    for field, stamp in ((3, -1), (4, 1)):
        assert touches_of(LINE, at((0, 0, 1), stride=4, offset=-1, field=field)).stamp == stamp
    # From 2 to 7 it touches both stamps; the nearest middle counts, and both are found.
    both = touches_of(LINE, at((0, 0, 2), field=6))
    assert both.stamp.tolist() == [1]
    assert both.touched.tolist() == [True, True, False]
    assert touches_of(LINE, at((0, 0, 0), field=9)).stamp == 0, "equally near: the first"


def test_an_assignment_of_other_examples_is_not_fitted_again():
    units = at((0, 1, 1), (0, 0, 6), (1, 0, 4))
    assert motif_errors(LINE, units, 2, 2).confusion == 0
    given = motif_errors(LINE, units, 2, 2, assignment=[0, 1])
    assert (given.confusion, given.fitted_on) == (1, "other examples")
    assert motif_errors(LINE, units, 2, 2, assignment=[1, -1]).confusion == 1 / 3


def test_two_channels_cannot_share_a_motif():
    units = at((0, 0, 6), (0, 2, 7), (1, 0, 3))
    found = motif_errors(LINE, units, 3, 2)
    assert found.assignment[0] == 1
    assert found.assignment[2] != 1
    assert found.confusion == 1 / 3


def brute_touches(batch: MotifBatch, units: Activations) -> tuple[list[int], list[bool]]:
    """Place by place, in plain Python."""
    cells = [set(product(*(range(*side) for side in box))) for box in batch.box.tolist()]
    stamp, touched = [], [False] * len(cells)
    for example, window in zip(units.example, units.windows().tolist(), strict=True):
        seen = set(product(*(range(*side) for side in window)))
        met = [k for k in range(len(cells)) if batch.example[k] == example and seen & cells[k]]
        for k in met:
            touched[k] = True
        middle = [sum(side) / 2 for side in window]
        away = {k: sum((sum(s) / 2 - m) ** 2 for s, m in zip(batch.box[k], middle, strict=True)) for k in met}
        stamp.append(min(met, key=lambda k: (away[k], k)) if met else -1)
    return stamp, touched


@pytest.mark.parametrize("chunk", [1, 7, 500_000])
def test_touching_is_that_of_a_plain_loop(monkeypatch, chunk):
    monkeypatch.setattr(errors, "CHUNK", chunk)
    rng, batch = np.random.default_rng(1), TASKS["digit_circle_small"].sample(20, 2)
    example = rng.integers(20, size=150)
    windows = {"stride": (2, 3), "offset": (-1, 0), "field": (9, 11)}
    units = Activations(example, rng.integers(4, size=150), rng.integers(13, size=(150, 2)), **windows)
    found = touches_of(batch, units)
    stamp, touched = brute_touches(batch, units)
    assert found.stamp.tolist() == stamp
    assert found.touched.tolist() == touched
    assert 0 < sum(touched) < len(touched)
    counts = confusion_of(batch, units, 4, 10)
    expected = np.zeros((4, 10), int)
    for channel, k in zip(units.channel, stamp, strict=True):
        if k >= 0:
            expected[channel, batch.motif[k]] += 1
    assert np.array_equal(counts, expected)


def test_the_best_assignment_is_the_best_of_all():
    rng = np.random.default_rng(2)
    for channels, motifs in ((4, 4), (3, 5), (5, 3)):
        counts = rng.integers(0, 9, (channels, motifs))
        found = best_assignment(counts)
        own = counts[found >= 0, found[found >= 0]].sum()
        wide = counts if channels <= motifs else counts.T
        best = max(wide[range(len(wide)), order].sum() for order in permutations(range(wide.shape[1]), len(wide)))
        assert own == best
        assert len(set(found[found >= 0])) == (found >= 0).sum() == min(channels, motifs)


def test_layers_become_activations():
    values = np.zeros((2, 3, 4, 5), np.float32)
    values[1, 2, 3, 4], values[0, 1, 0, 2] = 0.1, -2
    units = activations_of(values, stride=(2, 1), field=3)
    assert units.example.tolist() == [0, 1]
    assert units.channel.tolist() == [1, 2]
    assert units.position.tolist() == [[0, 2], [3, 4]]
    assert (units.stride, units.offset, units.field) == ((2, 1), (0, 0), (3, 3))
    assert units.windows()[1].tolist() == [[6, 9], [4, 7]]


@cache
def slow_distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """The definition, by recursion."""
    if not one or not other:
        return len(one) + len(other)
    if one[0] == other[0]:
        return slow_distance(one[1:], other[1:])
    return 1 + min(slow_distance(one[1:], other), slow_distance(one, other[1:]), slow_distance(one[1:], other[1:]))


def test_edit_distances():
    kitten, sitting = map(list, (b"kitten", b"sitting"))
    assert edit_distance(kitten, sitting) == 3
    rng = np.random.default_rng(3)
    for _ in range(100):
        one, other = (tuple(rng.integers(3, size=rng.integers(7)).tolist()) for _ in range(2))
        assert edit_distance(one, other) == edit_distance(other, one) == slow_distance(one, other)


def test_sequences():
    true = [[1, 2, 3, -1], [4, -1, -1, -1]]
    assert sequence_accuracy(true, true) == {"exact": 1, "edit": 1}
    assert sequence_accuracy([[-1], [-1]], true) == {"exact": 0, "edit": 0}
    found = sequence_accuracy([[1, 2, -1], [4, 4, 4]], true)
    assert found == {"exact": 0, "edit": pytest.approx(1 - (1 / 3 + 2 / 3) / 2)}
    assert sequence_accuracy([[-1]], [[-1, -1]]) == {"exact": 1, "edit": 1}
    assert np.isnan(list(sequence_accuracy(np.empty((0, 2)), np.empty((0, 3))).values())).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Activations([0], [0, 1], [[0]]), r"channel must have shape \(1,\), received \(2,\)"),
        (lambda: Activations([0], [0], [0]), r"position must have shape \(1, dims\), received \(1,\)"),
        (lambda: Activations([0], [-1], [[0]]), "channel and position must not be negative"),
        (lambda: Activations([0], [0], [[0.5]]), "position must be integers"),
        (lambda: Activations([0], [0], [[0]], stride=0), "stride must be at least 1, received 0"),
        (lambda: Activations([0], [0], [[0]], field=(1, 2)), "field must be a number, or 1 of them, received 2"),
        (lambda: activations_of([[0, 1]]), r"values must have shape \(examples, channels, \*positions\)"),
        (lambda: touches_of(LINE, Activations([0], [0], [[0, 1]])), "position must have 1 columns"),
        (lambda: touches_of(LINE, at((2, 0, 0))), "example must hold rows from 0 to 1, received 2, 2"),
        (lambda: motif_errors(LINE, at((0, 3, 1)), 3, 2), "channels must be above 3, which occurs, received 3"),
        (lambda: motif_errors(LINE, at((0, 0, 1)), 1, 1), "motifs must be above 1, which occurs, received 1"),
        (lambda: motif_errors(LINE, at(), 0, 2), "channels must be a whole number of at least 1, received 0"),
        (lambda: motif_errors(LINE, at(), 2, 2, [0]), r"assignment must have shape \(2,\), received \(1,\)"),
        (lambda: motif_errors(LINE, at(), 2, 2, [0, 2]), "assignment must hold motifs from -1 to 1, received 0, 2"),
        (lambda: motif_errors(None, at(), 2, 2), "batch must be of type MotifBatch, received None"),
        (lambda: best_assignment([[-1]]), "confusion must hold counts of shape"),
        (lambda: sequence_accuracy([[1]], [[1], [2]]), "predicted must have as many rows as true, 2, received 1"),
        (lambda: sequence_accuracy([[-1, 1]], [[1, 1]]), "predicted must be filled with -1 after the last word only"),
        (lambda: sequence_accuracy([1], [[1]]), r"predicted must have shape \(examples, longest\), received \(1,\)"),
    ],
)
def test_what_cannot_be_answered_is_refused(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()
