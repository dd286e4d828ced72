"""Command line: `python -m nbutils run | pages | glance | runs | data | study | sweep | results | report`."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import yaml

from nbutils import portable
from nbutils.data_commands import add_data_command
from nbutils.devices import DEVICES
from nbutils.interrupts import stopped
from nbutils.needs import needed_for
from nbutils.progress import Counting
from nbutils.study_commands import add_study_command, project_folder
from nbutils.sweep_commands import add_sweep_commands, positive, whole
from nbutils.terminal import is_plain, told

if TYPE_CHECKING:
    from nbutils.study import Study

__all__ = ["main"]

# What makes a path that was given a wrong argument.
WRONG_PATH = {errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP}


class _Parser(argparse.ArgumentParser):
    """Shows what it received as all other messages do: printable, and cut off where it is long."""

    def error(self, message: str) -> NoReturn:
        from nbutils.sentences import cut

        super().error(cut(message, 300))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 for success, 1 for failed work, 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    try:
        _settle_folders(options)
        with needed_for(f"python -m nbutils {options.name}"):
            return int(options.command(options))
    except (ValueError, ModuleNotFoundError) as error:
        print(f"error: {told(error)}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read the output has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno in WRONG_PATH or isinstance(error, FileNotFoundError):
            print(f"error: {_path_error(error)}", file=sys.stderr)
            return 2
        hint = "free some space and start again; " if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else ""
        print(f"error: {told(error)}; {hint}everything finished so far is kept", file=sys.stderr)
        return 1
    except KeyboardInterrupt as reason:
        return stopped(reason)


def _settle_folders(options: argparse.Namespace) -> None:
    """Refuse folders that cannot be shown or are none, before anything starts."""
    from nbutils.parameters import shown

    for name, value in vars(options).items():
        if isinstance(value, Path) and not is_plain(str(value)):
            raise ValueError(f"{name}: a path must be free of control characters, received {shown(str(value))}")
    for name in ("NBUTILS_DATA", "NBUTILS_STORE"):
        if not (given := os.environ.get(name)):
            continue
        path = os.path.abspath(os.path.expanduser(given))
        if not is_plain(path):
            raise ValueError(f"{name} must be a folder free of control characters, received {shown(given)}")
        if os.path.lexists(path) and not os.path.isdir(path):
            raise ValueError(f"{name} must be a folder, received {shown(given)}, which is something else")
        os.environ[name] = path  # kernels and workers, which work elsewhere, look in the same place


def _path_error(error: OSError) -> str:
    """What is wrong with a path, as one sentence."""
    from nbutils.sentences import shown

    if error.filename is None or not error.strerror:
        return told(error)
    return f"{shown(str(error.filename))}: {error.strerror[0].lower()}{error.strerror[1:]}"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m nbutils", description="Train, measure and publish neuron communities.")
    commands = parser.add_subparsers(required=True, metavar="command", dest="name")
    run = commands.add_parser("run", help="train and measure all runs of a study that the store lacks")
    pages = commands.add_parser("pages", help="execute the notebooks and put the pages under book/pages")
    glance = commands.add_parser("glance", help="write the verdicts and their figure into README.md")
    runs = commands.add_parser("runs", help="list the runs in the store")
    add_sweep_commands(commands)
    add_data_command(commands)
    add_study_command(commands)
    settings = commands.add_parser("portable", help="print the environment of portable mode, for `env $(...) COMMAND`")
    settings.set_defaults(command=_portable)
    for command in (run, pages, glance):
        command.add_argument("--datasets", nargs="+", default=["digits", "mnist-5k"], help="default: digits mnist-5k")
        command.add_argument("--seeds", type=whole, default=10, help="networks per label condition (default: 10)")
        command.add_argument("--epochs", type=whole, default=10, help="passes over the training set (default: 10)")
        command.add_argument("--jobs", type=positive, help="processes (default: one per core)")
        command.add_argument("--device", choices=DEVICES, default="cpu", help="where networks train (default: cpu)")
    for command in (pages, glance):
        command.add_argument("--root", type=Path, default=Path.cwd(), help="the project's folder (default: here)")
    pages.add_argument("--plan", action="store_true", help="only check that the book has a place for every page")
    runs.add_argument("--dataset", help="only this data set")
    runs.add_argument("--prune", action="store_true", help="remove what the present code and libraries would not use")
    run.set_defaults(command=_run)
    pages.set_defaults(command=_pages)
    glance.set_defaults(command=_glance)
    runs.set_defaults(command=_runs)
    return parser


def _run(options: argparse.Namespace) -> int:
    from nbutils.cores import default_jobs
    from nbutils.provenance import again_because
    from nbutils.reference import has_tables
    from nbutils.runs import made_elsewhere
    from nbutils.store import store_folder
    from nbutils.study import compute_missing, failures

    jobs, studies = options.jobs or default_jobs(), _studies(options)
    tasks = [task for study in studies if not has_tables(study) for task in study.tasks()]
    for study in filter(has_tables, studies):
        print(f"Runs: those on {study.dataset} are in the committed tables.")
    if not tasks:
        return 0
    names = ", ".join(dict.fromkeys(task.run.dataset for task in tasks))
    print(f"Runs: {len(tasks)} on {names}; {jobs} jobs; store: {store_folder()}", flush=True)
    for reason in again_because(made_elsewhere(task.run for task in tasks)):
        print(reason, flush=True)
    with Counting(jobs) as progress:
        missing = compute_missing(tasks, jobs, progress)
    failed = failures(tasks)
    print(f"Runs: {len(tasks) - missing} were there, {missing} computed, {len(failed)} failed.")
    for run in failed:
        print(f"  failed: {run.spec.dataset}, labels={run.spec.labels}, seed={run.spec.seed}: {run.failed}")
    return 0


def _pages(options: argparse.Namespace) -> int:
    from nbutils.engine import runner
    from nbutils.publish import book_toc, page_jobs, publish

    root = _project(options)
    jobs = page_jobs(root, options.datasets, options.seeds, options.epochs, options.device)
    if options.plan:
        return 0
    with runner(jobs=options.jobs) as where:
        found = publish(jobs, where)
    print(f"Pages: {found.cached} up to date, {found.finished} executed, {len(found.failed)} failed.")
    toc, text = root / "_build" / "toc.yml", yaml.safe_dump(book_toc(root, options.datasets), sort_keys=False)
    toc.parent.mkdir(exist_ok=True)
    if not toc.exists() or toc.read_text("utf-8") != text:
        toc.write_text(text, "utf-8")
    return 0 if found.complete else 1


def _glance(options: argparse.Namespace) -> int:
    from nbutils.archive import RESULTS, read_archive
    from nbutils.cores import default_jobs
    from nbutils.glance import check_place, write_glance
    from nbutils.hypotheses import collect_evidence
    from nbutils.publish import committed_studies
    from nbutils.reference import has_tables

    root = _project(options)
    studies = _studies(options)
    check_place(root)
    live = [study for study in studies if not has_tables(study)]
    kept = [study.dataset for study in studies if has_tables(study)] + committed_studies(root)
    results = [read_archive(root / RESULTS / name, name) for name in kept]
    for study in live:
        with Counting(options.jobs or default_jobs()) as progress:
            results.append(study.compute(options.jobs, progress))
    write_glance(root, results, collect_evidence(results))
    return 0


def _portable(_options: argparse.Namespace) -> int:
    print(*(f"{name}={value}" for name, value in {portable.SWITCH: "1", **portable.settings()}.items()))
    return 0


def _runs(options: argparse.Namespace) -> int:
    from nbutils.inventory import inventory, prune
    from nbutils.store import store_folder

    if options.prune and options.dataset is not None:
        raise ValueError("--prune removes from the whole store; it does not go with --dataset")
    if options.prune:
        count, size = prune()
        print(f"Removed {count} results and left-overs, {size / 2**20:.1f} MiB.")
    table = inventory(options.dataset)
    print(table.to_string(index=False) if len(table) else "No runs yet.")
    print(f"{len(table)} runs, {table['MiB'].sum() if len(table) else 0:.1f} MiB in {store_folder()}")
    return 0


def _project(options: argparse.Namespace) -> Path:
    """The project's folder, which pages and verdicts belong into."""
    root = project_folder(options.root)
    if not (root / "_toc.yml").is_file():
        raise FileNotFoundError(
            f"{root} is not the project's folder (it has no _toc.yml); run this command there, or name it with --root"
        )
    return root


def _studies(options: argparse.Namespace) -> list[Study]:
    """The studies that the options ask for, checked."""
    from nbutils.catalogue import join_names
    from nbutils.parameters import check_parameters

    given = {"study": join_names(options.datasets), "seeds": options.seeds, "epochs": options.epochs}
    given["device"] = options.device
    return list(check_parameters("synthesis", given).studies().values())
