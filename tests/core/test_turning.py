from __future__ import annotations

import numpy as np
import pytest

from nbutils.series import left_out_rise, series_noise, smoothed, turning_point, when_reached


@pytest.mark.parametrize(
    ("values", "epoch", "rising_from"),
    [
        ([5, 4, 3, 2, 3, 4, 5], 4, 5),
        ([9, 1, 9], None, None),  # three values, all of it noise
        ([6, 5, 4, 3, 2, 1, 2], None, None),  # one step up at the end is no turn
        ([0, 1, 2, 3, 4, 3, 2, 1, 2, 3, 4, 5], 8, 9),  # lowest at the start, but the valley is later
        ([8, 7, 6, 5, 6, 7, 6, 5, 4, 3, 2, 3, 4, 5], 11, 12),  # the deeper of two valleys
        ([5, 4, 3, 2], None, None),
        ([2, 3, 4, 5], None, None),
        ([2, 3, 4, 3, 2], None, None),  # a hill is no valley
        ([3, 3, 3], None, None),
        ([7], None, None),
    ],
)
def test_turning_points_one_can_see(values, epoch, rising_from):
    turn = turning_point(values)
    assert turn.found == (epoch is not None)
    if turn.found:
        assert (turn.epoch, turn.rising_from) == (epoch, rising_from)
    else:
        assert np.isnan([turn.epoch, turn.rising_from]).all()


def test_sizes_of_a_valley_by_hand():
    turn = turning_point([5, 4, 3, 2, 3, 4, 3], window=1)
    assert (turn.fall, turn.rise, turn.end) == (3, 2, 1)
    falling = turning_point([5, 4, 3, 2], window=1)
    assert (falling.fall, falling.rise, falling.end) == (3, 0, 0)
    assert turning_point([5, 4, 3, 2, 3, 4, 5], epochs=[10, 20, 30, 40, 50, 60, 70]).epoch == 40


def test_only_valleys_deeper_than_the_noise_count(rng):
    valley = np.abs(np.arange(20) - 8.0)
    near = [turning_point(valley * 2 + rng.normal(size=20)).epoch for _ in range(200)]
    assert np.nanmean(near) == pytest.approx(9, abs=0.3)
    assert np.isfinite(near).mean() > 0.95
    for length, most in ((20, 0.03), (100, 0.03), (300, 0.1)):
        courses = (np.zeros(length), 10 * np.exp(-np.arange(length) / 4))
        for course in courses:
            assert np.mean([turning_point(course + rng.normal(size=length)).found for _ in range(300)]) < most


def test_scale_and_shift_change_no_turning_point(rng):
    values = np.abs(np.arange(30) - 12.0) + rng.normal(size=30) / 5
    turn, other = turning_point(values), turning_point(7 - 0.01 * -values)
    assert turn.found
    assert (turn.epoch, turn.rising_from) == (other.epoch, other.rising_from)
    assert other.fall == pytest.approx(0.01 * turn.fall)


def test_smoothing_keeps_order_and_noise_is_the_standard_deviation(rng):
    falling = -np.sort(rng.normal(size=40))
    assert (np.diff(smoothed(falling, 5)) <= 0).all()
    assert smoothed([1, 5, 2], 1).tolist() == [1, 5, 2]
    assert series_noise(np.arange(9.0) * 3) == 0
    assert series_noise([1, 2]) == 0
    found = np.mean([series_noise(0.3 * np.arange(200) + 2 * rng.normal(size=200)) for _ in range(50)])
    assert found == pytest.approx(2, rel=0.05)


def test_a_rise_is_measured_where_the_others_turn(rng):
    assert left_out_rise([[2, 1, 2], [4, 3, 5], [3, 1, 4]], window=1).tolist() == [1, 2, 3]
    assert np.isnan(left_out_rise([[3, 2, 3]])).all()
    assert left_out_rise([[3, 2, 1], [4, 2, 0]]).tolist() == [0, 0]
    noise = [left_out_rise(rng.normal(size=(10, 20))).mean() for _ in range(300)]
    assert np.mean(noise) == pytest.approx(0, abs=0.05), "noise does not rise"
    naive = [turning_point(rng.normal(size=20)).rise for _ in range(300)]
    assert np.mean(naive) > 0.5, "yet above its own minimum every series ends"


def test_when_a_level_was_first_reached():
    levels, values = [0.1, 0.5, 0.3, 0.9], [1.0, 2.0, 100.0, 4.0]
    assert when_reached(levels, values, [0.1, 0.3, 0.5, 0.9]).tolist() == pytest.approx([1, 1.5, 2, 4])
    assert np.isnan(when_reached(levels, values, [0.05, 0.95])).all()
    assert when_reached([0.5, 0.5], [1.0, 9.0], 0.5) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: turning_point([]), "values must hold at least one number"),
        (lambda: turning_point([1, np.nan]), "values must be finite"),
        (lambda: turning_point([1, 2], epochs=[2, 1]), r"epochs must increase, .* received shape \(2,\) for 2"),
        (lambda: turning_point([1, 2], window=2), "window must be an odd number of values, received 2"),
        (lambda: series_noise([[1, 2]]), r"values must be finite numbers in a row, received shape \(1, 2\)"),
        (lambda: left_out_rise([1, 2]), r"series must be finite, of shape \(runs, epochs\), received shape \(2,\)"),
        (lambda: when_reached([1, 2], [1], 1), r"received shapes \(2,\) and \(1,\)"),
        (lambda: when_reached([np.inf], [1], 1), "levels must be finite"),
    ],
)
def test_bad_input_ends_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_one_diverged_epoch_does_not_hide_a_valley():
    assert (
        turning_point([1e10, 5, 4, 3, 2, 3, 4, 5], window=1).epoch == turning_point([9, 5, 4, 3, 2, 3, 4, 5]).epoch == 5
    )
