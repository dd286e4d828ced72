"""Many independent tasks on the cores of one machine, with progress, surviving the death of a worker."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

__all__ = ["default_jobs", "run_tasks"]

ATTEMPTS = 3
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def default_jobs() -> int:
    """One job per core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tasks(
    task: Callable[[Any], Any],
    items: Sequence[Any],
    jobs: int | None = None,
    done: Callable[[Any, Any], None] | None = None,
) -> None:
    """Call `task(item)` for every item, `jobs` at a time, each job a process with one compute thread.

    A worker that dies (killed, out of memory) takes only its own item with it, and that item is tried again. What a
    task returns goes to `done`; keep results in the store, not in memory.

    Args:
        task: a function importable from a module.
        items: its arguments; they must pickle.
        jobs: processes; None means one per core. With one job or one item all happens in this process.
        done: called with (item, result) as tasks finish.

    Raises:
        ValueError: `jobs` < 1.
        RuntimeError: workers died three times in a row without finishing anything.
        Exception: whatever a task raised; tasks not yet started are dropped.

    Examples:
        >>> run_tasks(abs, [-1, 2], jobs=1, done=lambda item, result: print(item, result))
        -1 1
        2 2
    """
    jobs = default_jobs() if jobs is None else jobs
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, received {jobs!r}")
    left = list(enumerate(items))
    if min(jobs, len(left)) <= 1:
        for _, item in left:
            _report(done, item, task(item))
        return
    failures = 0
    while left:
        finished = _one_pool(task, left, jobs, done)
        failures = 0 if finished else failures + 1
        left = [entry for entry in left if entry[0] not in finished]
        if left and failures >= ATTEMPTS:
            raise RuntimeError(
                f"worker processes died {ATTEMPTS} times in a row; {len(left)} tasks are left, try --jobs 1"
            )


def _one_pool(task: Callable[[Any], Any], left: list[tuple[int, Any]], jobs: int, done: Any) -> set[int]:
    """Work with one pool until all is done or the pool breaks; returns the numbers of the finished items."""
    finished: set[int] = set()
    size = min(jobs, len(left))
    with _one_thread_each(), ProcessPoolExecutor(size, get_context("spawn"), _end_with_parent) as pool:
        futures = {pool.submit(task, item): (number, item) for number, item in left}
        try:
            for future in as_completed(futures):
                number, item = futures[future]
                _report(done, item, future.result())
                finished.add(number)
        except BrokenProcessPool:
            pass
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return finished


def _end_with_parent() -> None:
    """A worker whose parent was killed ends at once instead of waiting for work for ever."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="end-with-parent").start()


def _report(done: Callable[[Any, Any], None] | None, item: Any, result: Any) -> None:
    if done is not None:
        done(item, result)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Child processes read these variables when they start; the parent's own settings come back afterwards."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
