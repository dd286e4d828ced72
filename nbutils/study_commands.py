"""`python -m nbutils study`: compute a reference study, and write its tables."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nbutils.progress import Counting, duration
from nbutils.sweep_commands import positive

if TYPE_CHECKING:
    from nbutils.study import Task

__all__ = ["add_study_command", "project_folder"]

# Data sets of the studies that have tables, known without loading those.
DATASETS = ("mnist", "fashion-mnist", "cifar10", "plantvillage", "digits", "mnist-5k")


def add_study_command(commands: argparse._SubParsersAction) -> None:
    """Add `study` to the commands of `python -m nbutils`."""
    study = commands.add_parser(
        "study",
        help="compute a reference study and write its tables",
        description="Train and measure all runs of a reference study that the store lacks, then write its tables under "
        "book/results. It can be stopped at any time and goes on where it stopped.",
    )
    study.add_argument("dataset", nargs="?", choices=DATASETS, default="mnist", help="default: mnist")
    study.add_argument("--jobs", type=positive, help="processes (default: one per core)")
    study.add_argument("--root", type=Path, default=Path.cwd(), help="the project's folder (default: here)")
    study.add_argument("--into", type=Path, help="folder to write tables into (default: book/results)")
    how = study.add_mutually_exclusive_group()
    how.add_argument("--plan", action="store_true", help="only say what is missing and how long it would take")
    how.add_argument("--finished", action="store_true", help="compute nothing, write tables of the runs that are there")
    study.set_defaults(command=_study)


def project_folder(given: Path) -> Path:
    """The folder that `--root` names.

    Raises:
        FileNotFoundError: there is none.
    """
    if not os.path.isdir(given):
        raise FileNotFoundError(f"--root must be the project's folder, received {str(given)!r}, which is no folder")
    return given.resolve()


def _study(options: argparse.Namespace) -> int:
    from nbutils.archive import RESULTS, write_archive
    from nbutils.cores import default_jobs
    from nbutils.datasets import load_dataset
    from nbutils.provenance import again_because
    from nbutils.reference import reference_study, reference_tasks
    from nbutils.runs import made_elsewhere
    from nbutils.store import store_folder
    from nbutils.study import about_data, collect, compute_missing, failures

    jobs = options.jobs or default_jobs()
    committed = (options.root.resolve() if options.into else project_folder(options.root)) / RESULTS
    folder = (options.into or committed).resolve() / options.dataset
    tasks = reference_tasks(options.dataset)
    missing = [task for task in tasks if not task.done]
    print(f"Study of {options.dataset}: {len(tasks)} runs, {len(missing)} to compute; store: {store_folder()}")
    if missing and not options.finished:
        for reason in again_because(made_elsewhere(task.run for task in missing)):
            print(reason)
        print(f"Time: {_forecast(committed / options.dataset, missing, jobs)}.", flush=True)
    if options.plan:
        return 0
    if options.finished:
        tasks = [task for task in tasks if task not in missing]
    elif missing:
        with Counting(jobs) as progress:
            compute_missing(tasks, jobs, progress)
    if not tasks:
        raise ValueError(
            f"no run of the study of {options.dataset} is in the store; without --finished they are computed"
        )
    about = about_data(load_dataset(reference_study(options.dataset).dataset))
    write_archive(folder, collect(options.dataset, tasks, about, len(missing)))
    failed = failures(tasks)
    print(f"Tables of {len(tasks)} runs, {len(failed)} of them failed: {folder}")
    return 0


def _forecast(folder: Path, missing: Sequence[Task], jobs: int) -> str:
    """How long missing runs will take, from what runs of their kind took when the committed tables were made."""
    from nbutils.archive import has_archive, read_archive

    if not has_archive(folder):
        return "unknown, there are no tables to learn it from"
    runs = read_archive(folder, folder.name).runs
    kinds = runs.groupby(["dataset", "parts"])["seconds"].mean()
    found = [kinds.get((task.run.dataset, task.parts)) for task in missing]
    known = [seconds for seconds in found if seconds is not None]
    if not known:
        return "unknown, the tables hold no runs of this kind"
    total = sum(known) * len(missing) / len(known) / min(jobs, len(missing))
    return f"about {duration(total)} with {jobs} jobs, as fast as the machine that made the tables"
