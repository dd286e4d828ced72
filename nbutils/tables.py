"""The tidy table of a sweep: one measurement a row, from the outcomes in the store."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from nbutils.executions import Outcome, kept
from nbutils.files import read_parquet, replace_file
from nbutils.parameters import nearest
from nbutils.sweeps import Sweep

__all__ = ["ResultsTable", "pivot", "read_results", "select"]

SECONDS_BETWEEN = 10
# What stands in every row, besides the sweep's parameters. A parameter of such a name becomes `parameter.<name>`.
BEFORE = ("run", "sweep", "notebook")
AFTER = ("metric", "value", "low", "high", "text", "unit", "status", "reason", "seconds", "commit", "time", "versions")


class ResultsTable:
    """The growing table of a sweep, written to `results.parquet` and `results.csv` every few seconds and at the end.

    It has one row per measurement: `run` (address), `sweep`, `notebook`, one column per parameter, `metric`, `value` (a
    number) or `text`, `low` and `high` (95 % interval), `unit`, `status` ("done" or "failed"), `reason`, `seconds` (of
    the whole notebook), `commit`, `time` (UTC), `versions` (JSON). A run that failed, or recorded nothing, has one row
    without a metric. Rows stand in the order of the sweep's points.

    Args:
        sweep: the sweep.
        folder: where the files go.
    """

    def __init__(self, sweep: Sweep, folder: Path) -> None:
        self.sweep, self.folder = sweep, folder
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._order = [job.address for job in sweep.jobs()]
        self._written = time.monotonic()

    def add(self, outcome: Outcome) -> None:
        """Put the rows of one run in, in place of earlier ones."""
        self._rows[outcome.address] = _rows(self.sweep, outcome)
        if time.monotonic() - self._written > SECONDS_BETWEEN:
            self.write()

    def add_kept(self) -> None:
        """Add the points that the store has and that nobody added."""
        for address in self._order:
            if address not in self._rows and (outcome := kept(address)) is not None:
                self._rows[address] = _rows(self.sweep, outcome)

    def table(self) -> pd.DataFrame:
        """The rows so far."""
        rows = [row for address in self._order for row in self._rows.get(address, [])]
        names = list(dict.fromkeys(_column(n) for point in self.sweep.points for n in point.parameters))
        table = pd.DataFrame(rows, columns=[*BEFORE, *names, *AFTER])
        for column in ("value", "low", "high", "seconds"):
            table[column] = pd.to_numeric(table[column])
        return _uniform(table, names)

    def write(self) -> None:
        """Write both files, each whole or not at all."""
        table = self.table()
        replace_file(self.folder / "results.csv", table.to_csv(index=False).encode())
        replace_file(self.folder / "results.parquet", table.to_parquet(index=False))
        self._written = time.monotonic()


def _rows(sweep: Sweep, outcome: Outcome) -> list[dict[str, Any]]:
    parameters = {_column(name): value for name, value in outcome.parameters.items()}
    shared = {
        "run": outcome.address,
        "sweep": sweep.name,
        "notebook": sweep.notebook.stem,
        **parameters,
        "status": outcome.status,
        "reason": outcome.reason,
        "seconds": outcome.seconds,
        "commit": outcome.provenance["commit"],
        "time": outcome.provenance["time"],
        "versions": json.dumps(outcome.provenance["versions"], sort_keys=True),
    }
    nothing: list[dict[str, Any]] = [{"metric": "", "text": "", "unit": ""}]
    measured = outcome.measurements if outcome.status == "done" else []  # a failed run's numbers may be half the truth
    return [{**shared, **measurement} for measurement in measured or nothing]


def _column(name: str) -> str:
    return f"parameter.{name}" if name in (*BEFORE, *AFTER) else name


def _uniform(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Columns with values of several types, or with lists, as JSON text: a file's column has one type."""
    for name in names:
        kinds = {type(value) for value in table[name].dropna()}
        if kinds and not kinds <= {int, float} and kinds not in ({str}, {bool}):
            table[name] = [json.dumps(value) for value in table[name]]
    return table


def read_results(path: Path | str) -> pd.DataFrame:
    """A table of results from a `.parquet` or `.csv` file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a table of results.
    """
    path = given = Path(path)
    if not path.is_file() and not path.is_absolute():
        path = Path("..") / path  # a notebook's working folder is its own, one level below the project's
    if not path.is_file():
        raise FileNotFoundError(f"no results at {given}; run the sweep first: python -m nbutils sweep FILE")
    try:
        table = read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from None
    missing = [name for name in (*BEFORE, "metric", "value", "status") if name not in table]
    if missing:
        raise ValueError(f"{path} is not a table of results: it has no column {', '.join(missing)}")
    for column in ("metric", "text", "unit", "reason"):  # CSV reads an empty text as missing
        table[column] = table[column].fillna("")
    return table


def select(
    table: pd.DataFrame, conditions: Sequence[str] = (), sort: str | None = None, reverse: bool = False
) -> pd.DataFrame:
    """Rows that meet every condition "column=value", sorted by a column, falling if `reverse`.

    Raises:
        ValueError: unknown column, with the nearest spelling.
    """
    for condition in conditions:
        name, equals, value = condition.partition("=")
        if not equals:
            raise ValueError(f"--where must be column=value, received {condition!r}")
        _known(table, name)
        table = table[table[name].astype(str) == value]
    if sort:
        _known(table, sort)
        table = table.sort_values(sort, ascending=not reverse, kind="stable")
    return table


def pivot(table: pd.DataFrame, rows: str, columns: str, metric: str | None = None) -> pd.DataFrame:
    """Mean of a metric over all finished runs, by one parameter down and another one across.

    Args:
        table: results.
        rows: parameter of the rows.
        columns: parameter of the columns.
        metric: the metric; None if the table has only one.

    Raises:
        ValueError: unknown column or metric, or several metrics and none chosen.
    """
    for name in (rows, columns):
        _known(table, name)
    known = [m for m in dict.fromkeys(table["metric"]) if m]
    if metric is None and len(known) == 1:
        metric = known[0]
    if metric not in known:
        hint = nearest(metric, known) if metric else ""
        raise ValueError(f"--metric must be one of {', '.join(known) or 'none'}{hint}, received {metric!r}")
    return table[table["metric"] == metric].pivot_table(index=rows, columns=columns, values="value", aggfunc="mean")


def _known(table: pd.DataFrame, name: str) -> None:
    if name not in table:
        raise ValueError(f"no column {name!r}{nearest(name, list(table))}; the table has {', '.join(table)}")
