"""Tables that grow case by case: what is made of each, kept in the store, and the table of all.

A case is what a design lists, such as a network with a condition; it has one row of the table, or several where it is
looked at in more than one state. A table is written while cases finish, and what it holds is kept whatever machine and
code made it: a design that is interrupted, or goes on elsewhere, makes only what its table lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from nbutils.runs.run import run_together
from nbutils.study.study import run_stacks, stacks
from nbutils.support.code import code_digest
from nbutils.support.files import is_file, read_parquet, replace_file
from nbutils.support.machine import default_jobs
from nbutils.support.provenance import digest_of, environment
from nbutils.support.store import Store

__all__ = ["Case", "Rows", "compute_cases", "kept_rows", "missing_cases", "read_cases"]


class Case(Protocol):
    """One entry of a design; a frozen dataclass, for other processes are sent some."""

    @property
    def settings(self) -> str:
        """Digest by which a table knows the case."""

    @property
    def identity(self) -> dict[str, Any]:
        """By what a store knows the case, all that its rows depend on but code and environment, as JSON can hold it."""


# What makes the rows of a case, a function of a module: dictionaries of what JSON can hold, one per state that is
# looked at, with the case's `settings` in each.
Rows = Callable[[Any], list[dict[str, Any]]]


def kept_rows(case: Case, rows: Rows) -> list[dict[str, Any]]:
    """Rows of a case, from the store if it has them and the code that makes them is still the same.

    Args:
        case: one of a design.
        rows: what makes its rows.
    """
    store, where, code = Store("trials"), _address(case, rows), code_digest(_name(rows))
    record = store.read(where)
    if record is None or record["code"] != code:
        with store.lock(where):
            record = store.read(where)  # which another process may have made meanwhile
            if record is None or record["code"] != code:
                record = {"code": code, "rows": rows(case)}
                store.write(where, record, replace=True)
    return record["rows"]


def _address(case: Case, rows: Rows) -> str:
    return digest_of({**case.identity, "rows": _name(rows), "environment": environment()})


def _name(rows: Rows) -> str:
    return f"{rows.__module__}.{rows.__qualname__}"


def missing_cases(cases: Sequence[Case], path: Path) -> list[Case]:
    """Cases that a table lacks, each once.

    Args:
        cases: a design.
        path: the table; it need not be there.
    """
    there = set(read_cases(path)["settings"]) if is_file(path) else set()
    return [one for settings, one in {one.settings: one for one in cases}.items() if settings not in there]


def compute_cases(
    cases: Sequence[Case],
    path: Path,
    rows: Rows,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    design: Sequence[Case] = (),
    together: bool = False,
) -> pd.DataFrame:
    """Make what a table lacks, and write it as cases finish.

    Args:
        cases: to be made, in the order of importance.
        path: of the table. Rows of cases that are neither among these nor part of the design are refused, not dropped.
        rows: what makes the rows of a case; a table has all of them or none.
        jobs: processes; None means one per core.
        progress: called with (finished, missing).
        design: the whole of which cases are some.
        together: whether cases have the parameters of a `run`, and networks that are alike are trained side by side.

    Returns:
        The table, in the order of the design, then of cases.

    Raises:
        ValueError: the table is damaged, or holds rows that the design lacks.
        RuntimeError: a case was cut off three times; what finished is kept.
    """
    whole = list(dict.fromkeys(one.settings for one in (*design, *cases)))
    missing = missing_cases(cases, path)
    if is_file(path) and (foreign := set(read_cases(path)["settings"]) - set(whole)):
        raise ValueError(
            f"{path} holds {len(foreign)} networks that are no part of this experiment; write into another folder"
        )
    work, save = partial(_make, rows, together), partial(_write, whole, missing, path, rows)
    jobs = jobs or default_jobs()
    parts = stacks(missing, jobs) if together else [(one,) for one in missing]
    run_stacks(work, parts, jobs, rows.__module__, progress, save)
    return read_cases(path)


def _make(rows: Rows, together: bool, stack: Sequence[Any]) -> None:
    if together:
        run_together([case.run for case in stack])
    for case in stack:
        kept_rows(case, rows)


def _is_there(case: Case, rows: Rows) -> bool:
    record = Store("trials").read(_address(case, rows))
    return record is not None and record["code"] == code_digest(_name(rows))


def _write(whole: Sequence[str], missing: Sequence[Case], path: Path, rows: Rows) -> None:
    """The rows that were there, and of those that were missing what the store has by now; in the order of the whole."""
    there = [one for one in missing if _is_there(one, rows)]
    made = pd.DataFrame([row for one in there for row in kept_rows(one, rows)])
    if is_file(path):
        held = read_cases(path)
        made = pd.concat([held[~held["settings"].isin(set(made.get("settings", ())))], made], ignore_index=True)
    if made.empty:
        return
    place = {settings: number for number, settings in enumerate(whole)}
    made = made.sort_values("settings", key=lambda column: column.map(place), kind="stable", ignore_index=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, made.to_parquet(index=False, compression="zstd"))


def read_cases(path: Path) -> pd.DataFrame:
    """Read a table of cases.

    Raises:
        FileNotFoundError: it is missing; says how to make it.
        ValueError: it is damaged.
    """
    if not is_file(path):
        raise FileNotFoundError(f"{path} is missing; run python -m nbutils experiment {path.stem}")
    try:
        return read_parquet(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
