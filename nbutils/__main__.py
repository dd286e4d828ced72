"""Command line: `python -m nbutils run | pages | glance | runs`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from nbutils.study import Study

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 for success, 1 for failed work, 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except (ValueError, ModuleNotFoundError, FileNotFoundError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; everything finished so far is kept", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nbutils", description="Train, measure and publish neuron communities."
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    run = commands.add_parser("run", help="train and measure all runs of a study that the store lacks")
    pages = commands.add_parser("pages", help="execute the notebooks and put the pages under book/pages")
    glance = commands.add_parser("glance", help="write the verdicts and their figure into README.md")
    runs = commands.add_parser("runs", help="list the runs in the store")
    for command in (run, pages, glance):
        command.add_argument("--datasets", nargs="+", default=["digits", "mnist-5k"], help="default: digits mnist-5k")
        command.add_argument("--seeds", type=int, default=10, help="networks per label condition (default: 10)")
        command.add_argument("--epochs", type=int, default=10, help="passes over the training set (default: 10)")
        command.add_argument("--jobs", type=int, help="processes (default: one per core)")
    for command in (pages, glance):
        command.add_argument("--root", type=Path, default=Path.cwd(), help="the project's folder (default: here)")
    runs.add_argument("--dataset", help="only this data set")
    runs.add_argument("--prune", action="store_true", help="remove what the present code would not use any more")
    run.set_defaults(command=_run)
    pages.set_defaults(command=_pages)
    glance.set_defaults(command=_glance)
    runs.set_defaults(command=_runs)
    return parser


def _run(options: argparse.Namespace) -> int:
    from nbutils.store import store_folder
    from nbutils.study import compute_missing, failures
    from nbutils.workers import default_jobs

    jobs = _jobs(options.jobs) or default_jobs()
    tasks = [task for study in _studies(options) for task in study.tasks()]
    print(f"Runs: {len(tasks)} on {', '.join(options.datasets)}; {jobs} jobs; store: {store_folder()}", flush=True)
    missing = compute_missing(tasks, jobs, _progress())
    failed = failures(tasks)
    print(f"Runs: {len(tasks) - missing} were there, {missing} computed, {len(failed)} failed.")
    for run in failed:
        print(f"  failed: {run.spec.dataset}, labels={run.spec.labels}, seed={run.spec.seed}: {run.failed}")
    return 0


def _pages(options: argparse.Namespace) -> int:
    from nbutils.publish import book_toc, page_jobs, publish

    root = options.root.resolve()
    jobs = page_jobs(root, options.datasets, options.seeds, options.epochs)
    failed = publish(jobs, _jobs(options.jobs), lambda line: print(line, flush=True))
    toc, text = root / "_build" / "toc.yml", yaml.safe_dump(book_toc(root, options.datasets), sort_keys=False)
    toc.parent.mkdir(exist_ok=True)
    if not toc.exists() or toc.read_text("utf-8") != text:
        toc.write_text(text, "utf-8")
    return 1 if failed else 0


def _glance(options: argparse.Namespace) -> int:
    from nbutils.glance import write_glance
    from nbutils.hypotheses import collect_evidence

    results = [study.compute(_jobs(options.jobs), _progress()) for study in _studies(options)]
    write_glance(options.root.resolve(), results, collect_evidence(results))
    return 0


def _runs(options: argparse.Namespace) -> int:
    from nbutils.inventory import inventory, prune
    from nbutils.store import store_folder

    if options.prune:
        count, size = prune()
        print(f"Removed {count} results and left-overs, {size / 2**20:.1f} MiB.")
    table = inventory(options.dataset)
    print(table.to_string(index=False) if len(table) else "No runs yet.")
    print(f"{len(table)} runs, {table['MiB'].sum() if len(table) else 0:.1f} MiB in {store_folder()}")
    return 0


def _studies(options: argparse.Namespace) -> list[Study]:
    """The studies that the options ask for, checked."""
    from nbutils.parameters import check_parameters

    given = {"study": " ".join(options.datasets), "seeds": options.seeds, "epochs": options.epochs}
    return check_parameters("synthesis", given).studies()


def _jobs(jobs: int | None) -> int | None:
    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs must be at least 1, received {jobs}")
    return jobs


def _progress() -> Callable[[int, int], None]:
    """Progress on standard output: a line that renews itself in a terminal, one line per tenth elsewhere."""
    start, shown = time.monotonic(), -1

    def report(finished: int, total: int) -> None:
        nonlocal shown
        passed = time.monotonic() - start
        left = f"about {passed / finished * (total - finished):.0f} s left" if finished else "starting"
        line = f"  {finished}/{total} runs, {passed:.0f} s, {left}"
        if sys.stdout.isatty():
            print(f"\r{line:<60}", end="\n" if finished == total else "", flush=True)
        elif finished * 10 // total > shown:
            shown = finished * 10 // total
            print(line, flush=True)

    return report


if __name__ == "__main__":
    sys.exit(main())
