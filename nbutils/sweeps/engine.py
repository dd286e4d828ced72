"""Many notebooks: skip those that are kept, execute the others here or on a cluster, hand each over as it ends."""

from __future__ import annotations

import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from nbutils.support.code import definitions_behind, notebook_names
from nbutils.support.files import clear_stale
from nbutils.support.machine import default_jobs, threads_each, usable_cores
from nbutils.support.progress import Reporter
from nbutils.support.provenance import again_because, differences
from nbutils.support.store import Store
from nbutils.support.workers import Lost, dask_runner, run_tasks
from nbutils.sweeps.execute import NotebookJob, Outcome, execute, keep, kept, with_prose
from nbutils.sweeps.kernels import fork_kernel

# Slow imports that start no thread and touch no device, so that processes with them can be forked.
SLOW = {
    "networkx": ("networkx",),
    "sklearn": ("sklearn",),
    "pandas": ("pandas",),
    "matplotlib": ("matplotlib.pyplot",),
    "seaborn": ("seaborn",),
    "torch": ("torch", "torch._dynamo"),  # which every optimiser imports
    "nbutils": (
        "nbutils.pages.page",
        "nbutils.pages.figures",
        "nbutils.pages.portraits",
        "nbutils.runs.recording",
        "nbutils.support.loops",
        "nbutils.sweeps._warm_code",
        "sklearn.datasets",
    ),
}
LIGHT = ("nbutils.support.", "nbutils.sweeps.")  # rooms that are imported anyway
IMPORT = re.compile(r"(?:import|from|,)\s+(\w+)")


@dataclass(frozen=True)
class Runner:
    """Where notebooks run.

    Attributes:
        run: called like :func:`nbutils.support.workers.run_tasks`.
        slots: how many run at the same time.
        about: the same for people.
    """

    run: Callable[..., Iterator[tuple[Any, Any]]]
    slots: int
    about: str


@dataclass
class Summary:
    """What became of some notebooks.

    Attributes:
        cached: how many were kept already.
        finished: how many were executed now.
        failed: names and reasons of those that failed.
        left: how many were not started, because too many had failed.
    """

    cached: int = 0
    finished: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    left: int = 0

    @property
    def complete(self) -> bool:
        """Whether every notebook is there."""
        return not self.failed and not self.left


@contextmanager
def runner(scheduler: str | None = None, jobs: int | None = None) -> Iterator[Runner]:
    """Processes on this machine, or a Dask cluster.

    Args:
        scheduler: None for local processes; see :func:`nbutils.support.workers.dask_runner`.
        jobs: how many at once; None means one per core.

    Yields:
        The :class:`Runner`.
    """
    if scheduler is None:
        slots = jobs or default_jobs()
        threads = f"{threads_each(slots)} thread{'s'[: threads_each(slots) > 1]} each"
        yield Runner(partial(run_tasks, jobs=slots), slots, f"{slots} at a time, {threads}, on {usable_cores()} cores")
    else:
        with dask_runner(scheduler, jobs) as (run, slots):
            yield Runner(run, slots, f"{slots} at a time, 1 thread each, on the Dask cluster {scheduler}")


def run_notebooks(
    jobs: Sequence[NotebookJob],
    where: Runner,
    deliver: Callable[[NotebookJob, Outcome], None],
    *,
    force: bool = False,
    max_failures: int | None = None,
    what: str = "runs",
) -> Summary:
    """Execute the notebooks that are not kept yet; each in a process and a kernel of its own.

    Args:
        jobs: the notebooks.
        where: see :func:`runner`.
        deliver: called in this process with every job and its outcome, kept ones first, failed ones too.
        force: execute kept ones again.
        max_failures: stop when so many have failed; None means never.
        what: plural noun for progress.

    Returns:
        A :class:`Summary`.
    """
    _clear()
    summary = Summary()
    wanted: dict[str, list[NotebookJob]] = defaultdict(list)
    for job in jobs:
        found = None if force else kept(job.address)
        if found is not None and found.status == "done":
            summary.cached += 1
            deliver(job, with_prose(found, job))
        else:
            wanted[job.address].append(job)
    todo = [same[0] for same in wanted.values()]
    for reason in again_because(_elsewhere(todo)):
        print(reason, flush=True)
    task = partial(execute, again=True) if force else execute
    results = where.run(task, todo, fresh=True, before=fork_kernel, preload=_preload(todo))
    with Reporter(where.slots, len(todo) + summary.cached, summary.cached, what) as reporter, closing(results):
        for job, result in results:
            outcome = _outcome(job, result)
            for same in wanted[job.address]:
                deliver(same, with_prose(outcome, same))
            if outcome.status == "done":
                summary.finished += 1
            else:
                summary.failed[job.name] = outcome.reason
            reporter.one(job.name, outcome.reason)
            if max_failures is not None and len(summary.failed) >= max_failures:
                break
    summary.left = len(todo) - summary.finished - len(summary.failed)
    return summary


def _elsewhere(jobs: Sequence[NotebookJob]) -> Iterator[dict[str, Any]]:
    """Environments of notebooks that are executed again only because versions differ."""
    store = Store("notebooks")
    others = [known for known in store.environments() if differences(known)]
    for job in jobs:
        made = (known for known in others if store.path(job.address_in(known)).exists())
        yield from islice(made, 0 if store.path(job.address).exists() else 1)


def _preload(jobs: Sequence[NotebookJob]) -> tuple[str, ...]:
    """Modules to import once for all kernels: what running takes, and the slow ones that the notebooks import."""
    templates = {job.template for job in jobs}
    imported = {name for template in templates for name in IMPORT.findall(template)}
    used = (module for template in templates for module, _ in definitions_behind(*notebook_names(template)))
    if all(module.startswith(LIGHT) for module in used):
        imported.discard("nbutils")
    return "nbutils.sweeps._warm", *(module for name in SLOW if name in imported for module in SLOW[name])


def _clear() -> None:
    """Take away what killed processes of earlier starts left behind."""
    clear_stale()
    for folder in Store("notebooks").unfinished():
        shutil.rmtree(folder, ignore_errors=True)


def _outcome(job: NotebookJob, result: Outcome | Lost) -> Outcome:
    """The outcome of a job, kept in this machine's store too, which a worker elsewhere may not share."""
    if isinstance(result, Lost):
        remains = Outcome.failure(job, "") if result.remains is None else result.remains
        result = replace(remains, reason=result.reason)
    if kept(result.address) != result:
        keep(result)
    return result
