"""Digits on a circle: the same pictures as a plain loop makes, and all that the rules promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.slow_motifs import ink, picture
from nbutils.motifs import digit_circle
from nbutils.motifs.digit_circle import LARGE, SMALL, TURN, UNIT, draw_circles, render

BOTH = pytest.mark.parametrize("rules", [LARGE, SMALL], ids=["large", "small"])


@BOTH
def test_pictures_are_those_of_a_plain_loop(rules):
    draws = draw_circles(rules, np.random.default_rng(3), 50)
    batch = render(rules, draws)
    for at in range(50):
        image, target, boxes = picture(rules, draws, at)
        mine = batch.example == at
        assert np.array_equal(image, batch.inputs[at])
        assert target == batch.motif[mine].tolist() == batch.sequences[at, : len(target)].tolist()
        assert np.array_equal(boxes, batch.box[mine])


@BOTH
def test_digits_are_distinct_and_begin_with_the_smallest(rules):
    sequences = render(rules, draw_circles(rules, np.random.default_rng(0), 500)).sequences
    rows = [row[row >= 0].tolist() for row in sequences]
    assert all(len(set(row)) == len(row) and row[0] == min(row) for row in rows)
    assert {len(row) for row in rows} == set(range(rules.fewest, rules.most + 1))


@BOTH
def test_the_target_goes_clockwise(rules):
    """Seen from the centre, with rows counted downwards; a shifted stamp may be off by some degrees."""
    draws = draw_circles(rules, np.random.default_rng(1), 300)
    batch = render(rules, draws)
    middle = batch.box.mean(axis=2) - draws.centre[batch.example]
    angle = np.degrees(np.arctan2(middle[:, 0], middle[:, 1])) % 360
    for at in range(300):
        own = angle[batch.example == at]
        steps = np.diff([*own, own[0] + 360]) % 360
        assert steps.sum() == pytest.approx(360), "once around, not twice and not the other way"


@BOTH
def test_angles_keep_their_gap_and_use_what_is_left(rules):
    draws = draw_circles(rules, np.random.default_rng(2), 2000)
    angles = digit_circle.angles_of(draws)
    for number in range(rules.fewest, rules.most + 1):
        own = np.sort(angles[draws.number == number, :number], axis=1)
        gaps = np.diff(own, axis=1, append=own[:, :1] + TURN)
        assert (gaps.sum(axis=1) == TURN).all()
        assert gaps.min() >= TURN / (2 * number)
        # The half turn beyond the least gaps is shared out evenly: each part has the mean 1 / (2 n) of a turn,
        # and is longer than a quarter of a turn with probability (1 / 2) ** (n - 1).
        spare = (gaps - TURN / (2 * number)) / TURN
        assert spare.mean() == pytest.approx(1 / (2 * number))
        share, rows = (spare > 0.25).mean(), len(own)
        expected = 0.5 ** (number - 1)
        assert abs(share - expected) < 5 * math.sqrt(expected / rows) + 1 / 100


@BOTH
def test_no_stamp_leaves_the_picture_and_circles_are_wide_enough(rules):
    draws = draw_circles(rules, np.random.default_rng(4), 2000)
    batch = render(rules, draws)
    assert batch.box.min() == 0, "some touch the border"
    assert batch.box.max() == rules.size
    assert (draws.radius.min(), draws.radius.max()) == (rules.least_radius, rules.most_radius)
    assert set(np.unique(draws.shift)) == set(range(-rules.shift, rules.shift + 1))
    height, width = rules.glyphs.shape[1:]
    assert (np.diff(batch.box, axis=2)[..., 0] == [height, width]).all()
    corner = draws.centre[batch.example] - [height // 2, width // 2]
    distance = np.hypot(*(batch.box[..., 0] - corner).T)
    assert (np.abs(distance - draws.radius[batch.example]) <= math.sqrt(2) * (rules.shift + 0.5)).all()


@BOTH
def test_boxes_hold_the_ink(rules):
    """Without noise, all ink lies in boxes, and every box holds its digit."""
    draws = draw_circles(rules, np.random.default_rng(5), 200)
    draws.noise[:] = 65535
    batch = render(rules, draws)
    left = batch.inputs.copy()
    for at, motif, (rows, columns) in zip(batch.example, batch.motif, batch.box, strict=True):
        inside = batch.inputs[at, slice(*rows), slice(*columns)]
        assert (inside >= rules.glyphs[motif]).all()
        left[at, slice(*rows), slice(*columns)] = 0
    assert not left.any()


@BOTH
def test_pixels_are_flipped_as_often_as_said(rules):
    draws = draw_circles(rules, np.random.default_rng(6), 400)
    pixels = draws.noise[0].size
    for rate, noise, chance in zip((ink(rules) / 2, rules.after), draws.noise, rules.chances, strict=True):
        found = (noise < chance).mean()
        assert abs(found - rate) < 5 * math.sqrt(rate * (1 - rate) / pixels) + 1 / 2**16
    clean = render(rules, draws)
    draws.noise[:] = 65535
    bare = render(rules, draws)
    assert bare.inputs.mean() == pytest.approx(ink(rules), rel=0.02), "stamps overlap seldom"
    background = clean.inputs[bare.inputs == 0].mean()
    before, after = ink(rules) / 2, rules.after
    expected = before * (1 - after) + (1 - before) * after
    assert abs(background - expected) < 5 * math.sqrt(expected / pixels) + 1 / 2**15
    lost = 1 - clean.inputs[bare.inputs == 1].mean()
    assert abs(lost - after) < 5 * math.sqrt(after / bare.inputs.sum()) + 1 / 2**16


def test_sizes_of_the_paper():
    """Gupta, Bastani and Solar-Lezama (2023), arXiv:2302.01976."""
    assert (LARGE.size, LARGE.fewest, LARGE.most, LARGE.least_radius, LARGE.shift) == (100, 3, 6, 20, 3)
    assert (len(LARGE.glyphs), LARGE.after) == (10, 0.05)
    assert LARGE.mean_ink == pytest.approx(ink(LARGE))


def test_sines_are_the_same_on_every_machine():
    """None lies so near a half that the last digit of a sine could decide how it is rounded."""
    exact = np.array([UNIT * math.sin(2 * math.pi * step / TURN) for step in range(TURN)])
    assert np.abs(exact - np.floor(exact) - 0.5).min() > 1e-6
    assert np.abs(digit_circle.SINE - exact).max() <= 0.5


def test_digits_differ_enough_to_be_told_apart():
    for rules in (LARGE, SMALL):
        differ = (rules.glyphs[:, None] != rules.glyphs[None]).sum(axis=(2, 3))
        assert differ[~np.eye(10, dtype=bool)].min() >= 3


def test_pictures_of_a_seed_stay_as_they_are():
    """Whole numbers that any machine must find; a NumPy that drew others would be noticed here."""
    batch = digit_circle.SMALL_CIRCLE.sample(64, 0)
    assert batch.sequences[:2].tolist() == [[0, 5, 1, 3], [1, 5, 2, -1]]
    assert int(batch.inputs.sum()) == 5878
