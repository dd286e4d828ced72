"""The points of a parameter grid: lists, ranges, axes that move together, exclusions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["LARGEST", "Range", "axis_values", "grid_points", "grid_size", "is_excluded", "says"]

LARGEST = 100_000  # points; more is a slip of the pen
FARTHEST = 1e18  # ends of a range; beyond them, neighbouring numbers are the same


class Range(BaseModel):
    """Evenly spaced values, both ends included.

    Attributes:
        start: first value; written `from`.
        to: last value.
        step: distance between neighbours; or
        count: number of values.
        scale: "linear", or "log" for equal ratios (with `count`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    start: Annotated[int | float, Field(alias="from")]
    to: int | float
    step: Annotated[int | float, Field(gt=0)] | None = None
    count: Annotated[int, Field(ge=2, le=LARGEST)] | None = None
    scale: str = "linear"

    @model_validator(mode="after")
    def _one_spacing(self) -> Range:
        for name, number in (("from", self.start), ("to", self.to), ("step", self.step)):
            if number is not None and not -FARTHEST <= number <= FARTHEST:  # NaN is not either
                raise ValueError(
                    f"{name!r} of a range must be a number from -1e18 to 1e18, received {str(number)[:30]}"
                )
        if (self.step is None) == (self.count is None):
            raise ValueError("a range needs either 'step' or 'count'")
        if self.to <= self.start:
            raise ValueError(f"'to' must be greater than 'from', received from {self.start} to {self.to}")
        if self.scale not in ("linear", "log"):
            raise ValueError(f"'scale' must be linear or log, received {self.scale!r}")
        if self.scale == "log" and (self.count is None or self.start <= 0):
            raise ValueError("a log range needs 'count' and a 'from' above 0")
        if self.size > LARGEST:
            raise ValueError(f"a range may have at most {LARGEST} values, received {Decimal(self.size):.6g}")
        return self

    @property
    def size(self) -> int:
        """Number of values."""
        if self.step is None:
            return self.count or 0
        return int((Decimal(str(self.to)) - Decimal(str(self.start))) / Decimal(str(self.step))) + 1

    def values(self) -> list[int | float]:
        """The values, free of binary rounding: a step of 0.1 gives 0.3, not 0.30000000000000004.

        Examples:
            >>> Range.model_validate({"from": 0.1, "to": 0.5, "step": 0.2}).values()
            [0.1, 0.3, 0.5]
            >>> Range.model_validate({"from": 1, "to": 100, "count": 3, "scale": "log"}).values()
            [1.0, 10.0, 100.0]
        """
        first, last = Decimal(str(self.start)), Decimal(str(self.to))
        if self.scale == "log":
            ratio = math.log(self.to / self.start) / (self.count - 1)
            return [float(f"{self.start * math.exp(i * ratio):.12g}") for i in range(self.count)]
        if self.step is not None:
            step = Decimal(str(self.step))
            found = [first + i * step for i in range(int((last - first) / step) + 1)]
        else:
            found = [first + i * (last - first) / (self.count - 1) for i in range(self.count)]
        whole = all(isinstance(x, int) for x in (self.start, self.to)) and all(x == int(x) for x in found)
        if self.step is not None:  # exact decimals
            return [int(x) if whole else float(x) for x in found]
        between = [int(x) if whole else float(f"{x:.12g}") for x in found[1:-1]]
        return [self.start if whole else float(self.start), *between, self.to if whole else float(self.to)]


def axis_values(axis: Sequence[Any] | Range) -> list[Any]:
    """The values of an axis: a list as it is, a range spelt out."""
    return axis.values() if isinstance(axis, Range) else list(axis)


def grid_size(
    axes: Mapping[str, Sequence[Any] | Range], zipped: Iterable[Mapping[str, Sequence[Any] | Range]] = ()
) -> int:
    """How many points a grid has, by arithmetic: nothing is spelt out.

    Examples:
        >>> grid_size({"x": range(1000), "y": range(1000)}, [{"z": range(900)}])
        900000000
    """
    groups = [min(map(_length, group.values()), default=1) for group in zipped]
    return math.prod([*map(_length, axes.values()), *groups])


def _length(axis: Sequence[Any] | Range) -> int:
    return axis.size if isinstance(axis, Range) else len(axis)


def grid_points(
    axes: Mapping[str, Sequence[Any]], zipped: Iterable[Mapping[str, Sequence[Any]]] = ()
) -> list[dict[str, Any]]:
    """Every combination of the axes, the last axis fastest; zipped axes move together and count as one.

    Args:
        axes: values by name.
        zipped: groups of axes of equal length.

    Returns:
        One dictionary per point.

    Raises:
        ValueError: axes of a group differ in length.

    Examples:
        >>> grid_points({"x": [1, 2]}, [{"y": ["a", "b"], "z": [7, 8]}])[1]
        {'x': 1, 'y': 'b', 'z': 8}
    """
    steps = [[{name: value} for value in values] for name, values in axes.items()]
    for group in zipped:
        lengths = {name: len(values) for name, values in group.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"zipped axes must be equally long, received {lengths}")
        steps.append([dict(zip(group, row, strict=True)) for row in zip(*group.values(), strict=True)])
    return [{name: value for part in parts for name, value in part.items()} for parts in product(*steps)]


def is_excluded(point: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    """Whether a point matches every entry of an exclusion; a list in it means any of its values.

    Examples:
        >>> is_excluded({"x": 1, "y": 2}, {"x": [1, 3]}), is_excluded({"x": 1, "y": 2}, {"x": 1, "y": 9})
        (True, False)
    """
    return all(name in point and _matches(point[name], wanted) for name, wanted in rule.items())


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list) and not isinstance(value, list):
        return any(_matches(value, one) for one in wanted)
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)  # True is 1 to Python


def says(text: str, value: Any) -> bool:
    """Whether a text from the command line means a value; numbers are compared as numbers.

    Examples:
        >>> says("0.020", 0.02), says("2e-2", 0.02), says("3.0", 3), says("true", True), says("0.020", "0.02")
        (True, True, True, True, False)
    """
    text = text.strip() if not isinstance(value, str) else text
    if str(value) == text:
        return True
    if value is None or isinstance(value, bool):
        return text.lower() == {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float) and (not text.isascii() or "_" in text):
        return False  # Python reads digits of all scripts, and underscores between them
    try:
        if isinstance(value, int):
            return Decimal(text) == value
        if isinstance(value, float):
            return float(text) == value or (math.isnan(value) and math.isnan(float(text)))
        if isinstance(value, list | dict):
            return json.loads(text) == value
    except (ValueError, ArithmeticError, RecursionError):  # what the text says is of another kind
        return False
    return False
