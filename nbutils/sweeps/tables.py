"""Measurements of a sweep as one table, with marginal means and effects of its parameters."""

from __future__ import annotations

import csv
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbutils.support.files import read_parquet, replace_file
from nbutils.support.messages import cut, nearest, shown
from nbutils.sweeps.execute import Outcome, kept
from nbutils.sweeps.grid import Sweep, says
from nbutils.sweeps.parameters import listed

SECONDS_BETWEEN = 10
# What stands in every row, besides the sweep's parameters. A parameter of such a name becomes `parameter.<name>`.
BEFORE = ("run", "sweep", "notebook")
AFTER = ("metric", "value", "low", "high", "text", "unit", "status", "reason", "seconds", "commit", "time", "versions")
NUMBERS = ("value", "low", "high", "seconds")
TEXTS = tuple(name for name in (*BEFORE, *AFTER) if name not in NUMBERS)
MEASURED = ("metric", "value", "low", "high", "text", "unit", "reason", "seconds")  # what a pivot is not made over
RISKY = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet may take for the beginning of a formula
TRUTH = {"True": True, "False": False}
QUOTING = csv.QUOTE_NONNUMERIC  # else a carriage return within a text would end the line


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
        return _uniform(table, {name: [row[name] for row in rows] for name in names})

    def write(self) -> None:
        """Write both files, each whole or not at all."""
        table = self.table()
        replace_file(self.folder / "results.csv", _harmless(table).to_csv(index=False, quoting=QUOTING).encode())
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


def _uniform(table: pd.DataFrame, parameters: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Columns with values of several types, with lists, or with huge numbers, as JSON text: a column has one type."""
    for name, values in parameters.items():
        kinds = {type(value) for value in values} - {type(None)}
        mixed = kinds and not kinds <= {int, float} and kinds not in ({str}, {bool})
        among_floats = float in kinds or None in values
        if mixed or not all(_fits(value, among_floats) for value in values if type(value) is int):
            table[name] = [json.dumps(value) for value in values]
    return table


def _fits(number: int, among_floats: bool) -> bool:
    """Whether a column of numbers holds a whole number exactly."""
    return abs(number) <= 2**53 if among_floats else -(2**63) <= number < 2**63


def _harmless(table: pd.DataFrame) -> pd.DataFrame:
    """The table for a CSV file: no spreadsheet takes its text for a formula, and all of it can be read back.

    A text that begins with =, +, -, @, a tab or a carriage return, or that reads like a number or a truth value, gets a
    single quote before it.
    """
    table = table.copy()
    for name in table:
        if any(isinstance(value, str) for value in table[name]):
            plain = name in TEXTS  # which are read as text anyway
            table[name] = [_quoted(value, plain) if isinstance(value, str) else value for value in table[name]]
    return table


def _quoted(text: str, plain: bool) -> str:
    bare = text.lstrip("'")
    risky = bare.startswith(RISKY) or (not plain and (_reads_as_number(bare) or bare in TRUTH))
    return f"'{text}" if risky else text


def _unquoted(cell: str, plain: bool) -> str:
    return cell[1:] if cell.startswith("'") and _quoted(cell, plain) != cell else cell


def _from_csv(path: Path) -> pd.DataFrame:
    """A table as :func:`_harmless` wrote it: text exactly, numbers to the last digit."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    for name in table:
        cells = [_unquoted(cell, name in TEXTS) for cell in table[name]]
        given = [cell for cell in table[name] if cell]
        if name in TEXTS:
            table[name] = cells
        elif name in NUMBERS or (given and all(_number(cell) is not None for cell in given)):
            table[name] = _numbers(name, table[name])
        elif given and all(cell in TRUTH for cell in given):
            table[name] = [TRUTH.get(cell) for cell in table[name]]
        else:
            table[name] = cells
    return table


def _number(cell: str) -> float | None:
    """The number that a cell holds in ASCII digits; Python also reads other scripts' digits, and underscores."""
    return float(cell) if cell.isascii() and "_" not in cell and _reads_as_number(cell) else None


def _reads_as_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(name: str, cells: pd.Series) -> pd.Series:
    found = [_number(cell) if cell else float("nan") for cell in cells]
    for cell, number in zip(cells, found, strict=True):
        if number is None:
            raise ValueError(f"column {name!r} holds {shown(cell)}, which is no number")
    if all(re.fullmatch(r"[-+]?[0-9]{1,18}", cell) for cell in cells):
        return cells.astype("int64")
    return pd.Series(found, index=cells.index, dtype=float)


def read_results(path: Path | str) -> pd.DataFrame:
    """A table of results from a `.parquet` or `.csv` file.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not a table of results.
    """
    path = given = Path(path)
    if not os.path.isfile(path) and not path.is_absolute():
        path = Path("..") / path  # a notebook's working folder is its own, one level below the project's
    if not os.path.isfile(path):
        raise FileNotFoundError(f"no results at {cut(given)}; run the sweep first: python -m nbutils sweep FILE")
    try:
        table = read_parquet(path) if path.suffix == ".parquet" else _from_csv(path)
    except Exception as error:  # pandas and pyarrow pass on whatever their parsers raise
        raise ValueError(f"{path} cannot be read as a table: {' '.join(str(error).split())}") from None
    missing = [name for name in (*BEFORE, *AFTER) if name not in table]
    if missing:
        raise ValueError(f"{path} is not a table of results: it has no column {', '.join(missing)}")
    if not table.columns.is_unique:
        raise ValueError(f"{path} is not a table of results: it has a column twice")
    for column in NUMBERS:
        if table[column].dtype.kind not in "fiu" and table[column].notna().any():
            raise ValueError(f"{path} is not a table of results: its column {column!r} holds no numbers")
        table[column] = table[column].astype(float)
    for column in TEXTS:  # parquet may hold an empty text as missing
        table[column] = table[column].astype(object).fillna("").astype(str)
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
            raise ValueError(f"--where must be column=value, received {shown(condition)}")
        _known(table, name)
        fitting = table.loc[[_says(value, cell) for cell in table[name]]]
        if fitting.empty and not table.empty:
            raise ValueError(f"--where {cut(condition)} leaves no row: {name} is {listed(table[name])}")
        table = fitting
    if sort is not None:
        _known(table, sort)
        table = table.sort_values(sort, ascending=not reverse, kind="stable")
    return table


def pivot(table: pd.DataFrame, rows: str, columns: str, metric: str | None = None, how: str = "mean") -> pd.DataFrame:
    """Mean of a metric over all finished runs, or their number, by one parameter down and another one across.

    Args:
        table: results.
        rows: parameter of the rows.
        columns: parameter of the columns.
        metric: the metric; None if the table has only one.
        how: "mean", or "count" for the number of runs.

    Raises:
        ValueError: unknown column or metric, or several metrics and none chosen.
    """
    for name in (rows, columns):
        _known(table, name)
    axes = [name for name in table if name not in MEASURED]
    if rows == columns or not {rows, columns} <= set(axes):
        raise ValueError(
            f"--pivot needs two different columns of {', '.join(axes)}, received {shown(rows)} and {shown(columns)}"
        )
    known = list(dict.fromkeys(table.loc[table["metric"] != "", "metric"]))
    if metric is None and len(known) == 1:
        metric = known[0]
    check_metric(table, metric)
    chosen = table[table["metric"] == metric].copy()
    texts = chosen.loc[chosen["value"].isna(), "text"] if "text" in chosen else pd.Series(dtype=str)
    for row, text in texts.items():  # infinity and NaN are recorded as text
        if _number(text) is None:
            numeric = list(dict.fromkeys(table.loc[table["value"].notna(), "metric"]))
            raise ValueError(
                f"--metric {metric} holds text, such as {shown(text)}, which has no mean; metrics with numbers are "
                f"{', '.join(numeric) or 'none'}"
            )
        chosen.loc[row, "value"] = _number(text)
    return (
        chosen.groupby([rows, columns], dropna=False)["value"]
        .agg((lambda cells: cells.mean(skipna=False)) if how == "mean" else "size")
        .unstack(columns)
    )


def check_metric(table: pd.DataFrame, metric: str | None) -> None:
    """Refuse a metric that a table does not have.

    Raises:
        ValueError: lists those that it has, with the nearest spelling.
    """
    known = [name for name in dict.fromkeys(table["metric"]) if name]
    if metric not in known:
        hint = nearest(metric, known) if metric else ""
        raise ValueError(f"--metric must be one of {', '.join(known) or 'none'}{hint}, received {shown(metric)}")


def _says(text: str, cell: Any) -> bool:
    """As :func:`nbutils.sweeps.grid.says`, for a cell of a table, where a list or a value among others is JSON text."""
    cell = cell.item() if hasattr(cell, "item") else cell
    if isinstance(cell, str):
        return text == cell or json.dumps(text) == cell or (cell in ("true", "false") and text.lower() == cell)
    return says(text, cell) or (text == "" and cell != cell)


def _known(table: pd.DataFrame, name: str) -> None:
    if name not in table:
        raise ValueError(f"no column {shown(name)}{nearest(name, list(table))}; the table has {', '.join(table)}")


REPLICATE = "seed"  # the parameter that only repeats a setting


def axes_of(table: pd.DataFrame) -> list[str]:
    """Parameters that vary in a table of results, without the seed, in the table's order.

    Examples:
        >>> axes_of(pd.DataFrame({"run": ["a", "b"], "width": [1, 2], "depth": [3, 3], "seed": [0, 1]}))
        ['width']
    """
    parameters = [c for c in table if c not in (*BEFORE, *AFTER, REPLICATE)]
    return [c for c in parameters if table[c].nunique(dropna=False) > 1]


def one_metric(table: pd.DataFrame, metric: str = "") -> pd.DataFrame:
    """Rows of finished runs with one metric; the first one if none is named.

    Raises:
        ValueError: no run measured it; lists what there is.
    """
    numbers = table[(table["status"] == "done") & table["value"].notna()]
    known = list(dict.fromkeys(numbers["metric"]))
    if not known:
        raise ValueError("no finished run recorded a number; call nbutils.record in the notebook")
    if metric and metric not in known:
        raise ValueError(f"metric must be one of {', '.join(known)}, received {metric!r}{nearest(metric, known)}")
    return numbers[numbers["metric"] == (metric or known[0])]


def marginal_means(measured: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Mean of the metric at each value of one parameter, over all other parameters and seeds.

    Args:
        measured: see :func:`one_metric`.
        axis: a parameter.

    Returns:
        One row per value: the value under the parameter's name, `mean`, `low` and `high` (95 % bootstrap interval over
        runs), `runs`.
    """
    from nbutils.stats import bootstrap_interval  # slow to import, and of no use while a sweep runs

    rows = []
    for value, group in measured.groupby(axis, sort=False, dropna=False):
        low, high = bootstrap_interval(group["value"].to_numpy(), np.random.default_rng(0))
        rows.append((value, group["value"].mean(), low, high, len(group)))
    return pd.DataFrame(rows, columns=[axis, "mean", "low", "high", "runs"])


def effects(measured: pd.DataFrame) -> pd.DataFrame:
    r"""How much of the metric's variation each parameter accounts for, strongest first.

    $\eta^2 = \sum_v n_v (\bar y_v - \bar y)^2 / \sum_i (y_i - \bar y)^2$, with $\bar y_v$ the mean of the $n_v$ runs at
    value $v$. In a full grid the shares of all parameters, their interactions and the seeds add up to 1.

    Args:
        measured: see :func:`one_metric`.

    Returns:
        One row per varying parameter: `parameter`, `values`, `lowest` and `highest` (mean, and where), `share`
        ($\eta^2$, in [0, 1]; NaN if the metric never varies).
    """
    total = float(((measured["value"] - measured["value"].mean()) ** 2).sum())
    rows = []
    for axis in axes_of(measured):
        means = marginal_means(measured, axis)
        between = float((means["runs"] * (means["mean"] - measured["value"].mean()) ** 2).sum())
        extremes = means["mean"].argmin(), means["mean"].argmax()
        ends = [f"{means['mean'].iloc[i]:.3g} at {means[axis].iloc[i]}" for i in extremes]
        rows.append((axis, len(means), *ends, between / total if total > 0 else float("nan")))
    table = pd.DataFrame(rows, columns=["parameter", "values", "lowest", "highest", "share"])
    return table.sort_values("share", ascending=False, ignore_index=True)
