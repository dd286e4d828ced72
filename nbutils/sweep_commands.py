"""The commands around sweeps: run one, look at its results, make its report."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from nbutils.files import replace_file
from nbutils.terminal import plain

if TYPE_CHECKING:
    import pandas as pd

    from nbutils.executions import NotebookJob, Outcome
    from nbutils.sweeps import Point, Sweep

__all__ = ["add_sweep_commands", "positive", "whole"]

LARGEST_NUMBER = 10_000_000  # more processes, failures or seconds are a slip of the pen


def whole(text: str) -> int:
    """A whole number in ASCII digits, for options; `int` takes digits of all scripts, blanks and underscores."""
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"must be a whole number, received {text[:100]!r}")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 on, for options."""
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:30]) <= LARGEST_NUMBER:
        raise argparse.ArgumentTypeError(
            f"must be a whole number, at least 1 and at most {LARGEST_NUMBER:,}, received {text[:100]!r}"
        )
    return int(text)


def add_sweep_commands(commands: argparse._SubParsersAction) -> None:
    """Add `sweep`, `results` and `report` to the command line."""
    sweep = commands.add_parser("sweep", help="run a notebook over a grid of parameters; run again to resume")
    sweep.add_argument("file", type=Path, help="the sweep, such as notebooks/sweeps/first.yml")
    sweep.add_argument("--jobs", type=positive, help="notebooks at the same time (default: one per core)")
    sweep.add_argument("--dry-run", action="store_true", help="check everything, list the points, run nothing")
    sweep.add_argument("--force", action="store_true", help="run finished points again")
    sweep.add_argument("--only", nargs="+", default=[], metavar="KEY=VALUE", help="only points with these values")
    sweep.add_argument("--max-failures", type=positive, metavar="N", help="stop when N points have failed")
    sweep.add_argument("--timeout", type=positive, metavar="S", help="seconds that one notebook may take")
    sweep.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler, or local-dask (default: no Dask)")
    sweep.set_defaults(command=_sweep)
    results = commands.add_parser("results", help="show the measurements of a sweep")
    results.add_argument("file", type=Path, help="the sweep's .yml, or a results.parquet or .csv")
    results.add_argument("--where", nargs="+", default=[], metavar="COLUMN=VALUE", help="only these rows")
    results.add_argument("--sort", metavar="COLUMN", help="sort by a column")
    results.add_argument("--reverse", action="store_true", help="sort in falling order")
    results.add_argument("--pivot", nargs=2, metavar=("ROWS", "COLUMNS"), help="mean of a metric over two parameters")
    results.add_argument("--metric", help="only this metric; the one of the pivot")
    results.add_argument("--all", action="store_true", help="all columns")
    results.set_defaults(command=_results)
    report = commands.add_parser("report", help="make a page of a sweep: runs/<sweep>/report.html and .ipynb")
    report.add_argument("file", type=Path, help="the sweep's .yml, or a results.parquet or .csv")
    report.add_argument("--metric", default="", help="the metric to begin with (default: the first)")
    report.set_defaults(command=_report)
    for command in (sweep, results, report):
        command.add_argument("--output", type=Path, default=Path("runs"), help="folder of all sweeps (default: runs)")


def _sweep(options: argparse.Namespace) -> int:
    from nbutils.engine import run_notebooks, runner
    from nbutils.sweeps import load_sweep
    from nbutils.tables import ResultsTable

    every = load_sweep(options.file)
    sweep = every.only(options.only)
    folder = options.output / sweep.name
    jobs = sweep.jobs(options.timeout)
    points = dict(zip(jobs, sweep.points, strict=True))
    if options.dry_run:
        return _list_points(sweep, points)

    results = ResultsTable(every, folder)

    def deliver(job: NotebookJob, outcome: Outcome) -> None:
        _deliver(sweep.notebook, folder / points[job].folder, outcome)
        results.add(outcome)

    with runner(options.scheduler, options.jobs) as where:
        folder.mkdir(parents=True, exist_ok=True)  # one that cannot be is known before anything runs
        print(f"{_title(sweep)}: {where.about}; notebooks in {folder}", flush=True)
        try:
            found = run_notebooks(jobs, where, deliver, force=options.force, max_failures=options.max_failures)
        finally:
            results.add_kept()
            results.write()
    print(
        f"{found.finished} finished, {found.cached} cached, {len(found.failed)} failed, {found.left} not started; "
        f"table: {folder / 'results.parquet'} and .csv"
    )
    _mention_strangers(every, folder)
    return 0 if found.complete else 1


def _title(sweep: Sweep) -> str:
    count = len(sweep.points)
    return f"Sweep {sweep.name}: {count} point{'s'[: count > 1]} of {sweep.notebook.name}"


def _list_points(sweep: Sweep, points: dict[NotebookJob, Point]) -> int:
    from nbutils.executions import kept

    print(f"{_title(sweep)}; nothing is run")
    states = []
    for job, point in points.items():
        found = kept(job.address)
        states.append("missing" if found is None else found.status)
        print(f"  {states[-1]:8} {plain(point.name)}")
    print(", ".join(f"{states.count(word)} {word}" for word in ("done", "failed", "missing")))
    return 0


def _deliver(template: Path, folder: Path, outcome: Outcome) -> None:
    """Put the executed notebook in its place; there is never a good one and a failed one at the same time."""
    from nbutils.links import relinked

    done, failed = folder / template.name, folder / f"{template.stem}.failed.ipynb"
    wanted, other = (done, failed) if outcome.status == "done" else (failed, done)
    if outcome.notebook:
        replace_file(wanted, relinked(outcome.notebook, template.parent, folder).encode())
    other.unlink(missing_ok=True)


def _mention_strangers(sweep: Sweep, folder: Path) -> None:
    """Notebooks that a former version of the sweep left: kept, and not in the table."""
    own = {folder / point.folder for point in sweep.points}
    strangers = [p for p in folder.rglob(f"{sweep.notebook.stem}*.ipynb") if p.parent not in own]
    if strangers:
        print(
            f"{len(strangers)} notebooks in {folder} belong to no point of the sweep any more, such as {strangers[0]}"
        )


def _results(options: argparse.Namespace) -> int:
    from nbutils.tables import check_metric, pivot, read_results, select

    if options.reverse and not options.sort:
        raise ValueError("--reverse is the order of --sort COLUMN, which is missing")
    table = read_results(_table_file(options))
    if options.metric is not None:
        check_metric(table, options.metric)
    table = select(table, options.where, options.sort, options.reverse)
    if options.metric is not None and not options.pivot:
        table = select(table, [f"metric={options.metric}"])
    if options.pivot:
        print(plain(pivot(table, *options.pivot, options.metric).to_string(float_format="{:.4g}".format)))
        return 0
    shown = table if options.all else _essential(table)
    rows = shown.to_string(index=False, na_rep="", float_format="{:.4g}".format) if len(shown) else "No rows."
    print(plain(rows))
    runs = table.drop_duplicates("run")["status"].value_counts()
    print(f"{len(table)} rows; {runs.get('done', 0)} runs done, {runs.get('failed', 0)} failed")
    return 0


def _table_file(options: argparse.Namespace) -> Path:
    """The table that the file argument means: itself, or the one that the sweep of that file wrote."""
    from nbutils.sentences import cut
    from nbutils.sweeps import load_sweep

    file: Path = options.file
    if file.suffix in (".yml", ".yaml"):
        file = options.output / load_sweep(file).name / "results.parquet"
    if not os.path.isfile(file):
        raise FileNotFoundError(
            f"no results at {cut(file)}; run the sweep first: python -m nbutils sweep {cut(options.file)}"
        )
    return file


def _essential(table: pd.DataFrame) -> pd.DataFrame:
    """Columns that differ between rows or say the result; `--all` shows the others."""
    hidden = {"run", "sweep", "notebook", "commit", "time", "versions"}
    told = {"metric", "value", "status", "seconds"}
    keep = [c for c in table if c in told or (c not in hidden and table[c].nunique(dropna=False) > 1)]
    return table[keep]


def _report(options: argparse.Namespace) -> int:
    from nbutils.report import write_report

    page = write_report(_table_file(options), options.metric)
    print(f"Report: {page}")
    return 0
