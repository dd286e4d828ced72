"""The points of a parameter grid: lists, ranges, axes that move together, exclusions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["Range", "axis_values", "grid_points", "is_excluded"]

LARGEST = 100_000  # points; more is a slip of the pen


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
        if (self.step is None) == (self.count is None):
            raise ValueError("a range needs either 'step' or 'count'")
        if self.to <= self.start:
            raise ValueError(f"'to' must be greater than 'from', received from {self.start} to {self.to}")
        if self.scale not in ("linear", "log"):
            raise ValueError(f"'scale' must be linear or log, received {self.scale!r}")
        if self.scale == "log" and (self.count is None or self.start <= 0):
            raise ValueError("a log range needs 'count' and a 'from' above 0")
        if self.step is not None and (self.to - self.start) / self.step > LARGEST:
            raise ValueError(f"a range may have at most {LARGEST} values")
        return self

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
        return [int(x) if whole else float(f"{x:.12g}") for x in found]


def axis_values(axis: Sequence[Any] | Range) -> list[Any]:
    """The values of an axis: a list as it is, a range spelt out."""
    return axis.values() if isinstance(axis, Range) else list(axis)


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
    return value in wanted if isinstance(wanted, list) and not isinstance(value, list) else value == wanted
