"""How many jobs and threads this machine bears, and work shared between threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

JOBS_VARIABLE = "NBUTILS_JOBS"
THREADS = "nbutils-compute"
# What a job is told about its share of the cores: compute threads, and jobs that it may start itself.
SHARE_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", JOBS_VARIABLE)


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_jobs() -> int:
    """How many jobs to run at once: this process's share of the machine (`NBUTILS_JOBS`), else one per usable core."""
    share = os.environ.get(JOBS_VARIABLE, "")
    return int(share) if share.isascii() and share.isdigit() and int(share) > 0 else usable_cores()


def threads_each(jobs: int) -> int:
    """Compute threads for each of some jobs, so that together they do not exceed the cores.

    Examples:
        >>> threads_each(10_000)
        1
    """
    return max(1, default_jobs() // jobs)


def compute_threads() -> int:
    """Threads that this process computes with: `OMP_NUM_THREADS`, as for PyTorch, else one per usable core."""
    share = os.environ.get("OMP_NUM_THREADS", "")
    return int(share) if share.isascii() and share.isdigit() and int(share) > 0 else usable_cores()


def in_threads(function: Callable[[Any], Any], items: Sequence[Any], worth: bool = True) -> list[Any]:
    """Results of a function that releases the GIL, in the order of the items, computed in several threads.

    A function that is itself run in such a thread computes in that one alone, and so does work that is not `worth` it:
    starting threads takes about a millisecond.

    Examples:
        >>> in_threads(abs, [-2, 1])
        [2, 1]
    """
    threads = min(compute_threads(), len(items))
    if threads <= 1 or not worth or threading.current_thread().name.startswith(THREADS):
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads, thread_name_prefix=THREADS) as pool:
        return list(pool.map(function, items))
