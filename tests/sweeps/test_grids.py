from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from pydantic import ValidationError

from nbutils.sweeps.grid import Range, axis_values, grid_points, is_excluded


def values(**given):
    return Range.model_validate({k.rstrip("_"): v for k, v in given.items()}).values()


def test_ranges_include_both_ends_and_have_no_rounding():
    assert values(from_=0, to=10, step=5) == [0, 5, 10]
    assert all(isinstance(x, int) for x in values(from_=1, to=9, step=2))
    tenths = values(from_=0.1, to=1.0, step=0.1)
    assert tenths == [float(Fraction(i, 10)) for i in range(1, 11)]
    assert values(from_=0, to=1, count=5) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert values(from_=1e-4, to=1e-1, count=4, scale="log") == [1e-4, 1e-3, 1e-2, 1e-1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"from_": 1, "to": 2}, "needs either 'step' or 'count'"),
        ({"from_": 1, "to": 10, "step": 5}, "which 5 does not; say to: 6 or to: 11"),
        ({"from_": 0.1, "to": 0.55, "step": 0.1}, "which 0.1 does not; say to: 0.5 or to: 0.6"),
        ({"from_": 1, "to": 2, "step": 1, "count": 2}, "needs either 'step' or 'count'"),
        ({"from_": 2, "to": 1, "step": 1}, "'to' must be greater than 'from', received from 2 to 1"),
        ({"from_": 1, "to": 2, "step": 0}, "greater than 0"),
        ({"from_": 1, "to": 2, "count": 1}, "greater than or equal to 2"),
        ({"from_": 0, "to": 2, "count": 3, "scale": "log"}, "'from' above 0"),
        ({"from_": 1, "to": 2, "step": 1, "scale": "log"}, "needs 'count'"),
        ({"from_": 1, "to": 2, "count": 3, "scale": "square"}, "linear or log, received 'square'"),
        ({"from_": 0, "to": 1, "step": 1e-9}, "at most 100000 values"),
        ({"from_": "a", "to": 1, "step": 1}, "valid"),
        ({"from_": 0, "to": 1, "steps": 1}, "Extra inputs"),
    ],
)
def test_senseless_ranges_are_refused(given, words):
    with pytest.raises(ValidationError, match=words):
        values(**given)


def test_a_grid_is_the_product_of_its_axes():
    axes = {"a": [1, 2], "b": ["x", "y", "z"]}
    expected = [dict(zip(axes, row, strict=True)) for row in itertools.product(*axes.values())]
    assert grid_points(axes) == expected
    assert grid_points({}) == [{}]
    assert axis_values([3, 1]) == [3, 1]


def test_zipped_axes_move_together():
    points = grid_points({"a": [1, 2]}, [{"m": ["s", "l"], "e": [5, 10]}, {"seed": [0, 1, 2]}])
    assert len(points) == 2 * 2 * 3
    assert {(p["m"], p["e"]) for p in points} == {("s", 5), ("l", 10)}
    with pytest.raises(ValueError, match=r"equally long, received \{'m': 1, 'e': 2\}"):
        grid_points({}, [{"m": ["s"], "e": [5, 10]}])


def test_exclusions():
    point = {"a": 1, "b": "x", "c": [1, 2]}
    assert is_excluded(point, {"a": 1, "b": ["x", "y"]})
    assert is_excluded(point, {"c": [1, 2]})
    assert not is_excluded(point, {"a": 1, "b": "z"})
    assert not is_excluded(point, {"unknown": 1})
