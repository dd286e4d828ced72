"""What a notebook measured: said inside the notebook with `record`, read from the executed file by sweeps."""

from __future__ import annotations

import json
import math
import sys
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any

from IPython.display import publish_display_data

from nbutils.support.messages import shown

MIME = "application/vnd.nbutils.measurement+json"
BESIDE = "measurements.jsonl"  # in the folder of a kernel's sockets
SCRAP_MIME = "application/scrapbook.scrap.json+json"  # notebooks that use scrapbook's `glue` work unchanged


def record(
    name: str, value: float | str, unit: str = "", *, low: float | None = None, high: float | None = None
) -> None:
    """Say that this notebook measured something; a sweep puts it into its table of results. Shows nothing on the page.

    Args:
        name: what was measured, such as "test_accuracy"; recorded twice, the later value holds.
        value: a number, a truth value, or a word such as a verdict.
        unit: its unit, such as "bits" or "s"; empty for a dimensionless number.
        low: lower end of the 95 % interval.
        high: upper end of the 95 % interval.

    Raises:
        TypeError: `value`, `low` or `high` is of another type; names what was received.
        ValueError: `low` lies above `high`, or the value outside of them.

    Examples:
        >>> record("test_accuracy", 0.93, low=0.91, high=0.95)
        >>> record("accuracy", [0.9, 0.8])
        Traceback (most recent call last):
        TypeError: value of 'accuracy' must be a number or a string, received [0.9, 0.8]
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"name must be a string that is not empty, received {shown(name)}")
    if not isinstance(unit, str):
        raise TypeError(f"unit of {name!r} must be a string, received {shown(unit)}")
    row: dict[str, Any] = {"metric": name, **_number_or_text(name, value), "unit": unit}
    for end, given in (("low", low), ("high", high)):
        if given is not None:
            if isinstance(given, str):
                raise TypeError(f"{end} of {name!r} must be a number, received {shown(given)}")
            found = _number_or_text(f"{end} end of {name}", given)["value"]
            row |= {} if found is None else {end: found}
    known = [row[key] for key in ("low", "value", "high") if row.get(key) is not None]
    if known != sorted(known):
        raise ValueError(f"low, value and high of {name!r} must rise in this order, received {known}")
    publish_display_data({MIME: row, "text/plain": ""})
    _write_beside(row)


def _write_beside(row: dict[str, Any]) -> None:
    """Keep a measurement where a cell's output can be cleared or captured: beside the sockets of a sweep's kernel."""
    if (kernel := sys.modules.get("ipykernel.connect")) is None:
        return
    with suppress(Exception):  # outside of a kernel there is no connection file
        file = Path(kernel.get_connection_file()).with_name(BESIDE)
        if file.is_file():
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")


def read_measurements(notebook: Any, beside: Path | None = None) -> list[dict[str, Any]]:
    """Measurements in the outputs of an executed notebook, in the order in which they were recorded.

    Args:
        notebook: as nbformat reads it.
        beside: file into which its kernel wrote what was recorded, also where the output was cleared or captured.

    Returns:
        One dictionary per measurement: `metric`, `value` (float or None), `text`, `unit`, `low`, `high`.

    Raises:
        TypeError: the notebook displays a measurement that is none; says which part of it.
    """
    found: dict[str, dict[str, Any]] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if MIME in data:
                row = _checked(data[MIME])
                found[row["metric"]] = row
            elif SCRAP_MIME in data and isinstance(_field(data[SCRAP_MIME], "data"), int | float | str):
                row = _checked({"metric": _field(data[SCRAP_MIME], "name"), "value": data[SCRAP_MIME]["data"]})
                found[row["metric"]] = row
    if beside is not None and beside.is_file():
        for line in beside.read_text("utf-8").splitlines():
            row = _checked(json.loads(line))
            found[row["metric"]] = row
    return list(found.values())


def _field(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, dict) else None


def _checked(given: Any) -> dict[str, Any]:
    """A measurement as a notebook holds it, which may have written it without :func:`record`."""
    name = _field(given, "metric")
    if not isinstance(name, str) or not name:
        raise TypeError(f"a measurement must have a 'metric', a string that is not empty, received {shown(given)}")
    row = {"text": "", "unit": "", "low": None, "high": None, "value": None, **given}
    for key in ("text", "unit"):
        if not isinstance(row[key], str):
            raise TypeError(f"{key} of {name!r} must be a string, received {shown(row[key])}")
    if row["value"] is not None or "text" not in given:
        row |= _number_or_text(name, row["value"])
    for key in ("low", "high"):
        if row[key] is not None:
            row[key] = _number_or_text(f"{key} end of {name}", row[key])["value"]
    return {key: row[key] for key in ("metric", "value", "text", "unit", "low", "high")}


def _number_or_text(name: str, value: Any) -> dict[str, Any]:
    """JSON has no word for infinity and NaN, so such numbers travel as text."""
    if isinstance(value, str):
        return {"value": None, "text": value}
    given = value
    try:
        if not isinstance(value, Real):  # what numbers of other libraries are
            value = value.item() if getattr(value, "ndim", 1) == 0 else None
        number = float(value)
    except (AttributeError, TypeError, ValueError, OverflowError, RuntimeError):
        raise TypeError(f"value of {name!r} must be a number or a string, received {shown(given)}") from None
    return {"value": number, "text": ""} if math.isfinite(number) else {"value": None, "text": str(number)}
