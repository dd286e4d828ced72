"""The same tasks on a Dask cluster: workers on other machines, or processes here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any

from nbutils.cores import default_jobs
from nbutils.scratch import scratch_folder
from nbutils.workers import Lost, deaf, run_tasks

__all__ = ["LOCAL", "dask_runner"]

LOCAL = "local-dask"
PATIENCE = 10, 60  # seconds to wait for a scheduler, and for its first worker


@contextmanager
def dask_runner(
    address: str, jobs: int | None = None
) -> Iterator[tuple[Callable[..., Iterator[tuple[Any, Any]]], int]]:
    """Run tasks on a Dask cluster as :func:`nbutils.workers.run_tasks` runs them here.

    Every task gets a process of its own on its worker. A worker that dies loses only what it was working on, and that
    goes to another one.

    Args:
        address: of a scheduler, such as "tcp://10.0.0.7:8786", or "local-dask" for a cluster on this machine that
            ends with this block.
        jobs: workers of the local cluster; None means one per core. A cluster elsewhere has its own number.

    Yields:
        (runner, slots): called like `run_tasks`; how many tasks run at the same time now.

    Raises:
        ValueError: no scheduler answers at `address`, or it has no worker.
    """
    from distributed import Client

    with _quiet(), _cluster(jobs) if address == LOCAL else nullcontext(address) as place:
        try:
            client = Client(place, timeout=PATIENCE[0])
        except (OSError, ValueError) as error:
            raise ValueError(f"scheduler: no Dask scheduler answers at {address!r} ({error})") from None
        with client:
            try:
                client.wait_for_workers(1, timeout=PATIENCE[1])
            except TimeoutError:
                raise ValueError(f"scheduler: {address} has no worker; start one with: dask worker {address}") from None
            yield partial(_run, client, address), sum(client.ncores().values())


@contextmanager
def _cluster(jobs: int | None) -> Iterator[Any]:
    """A cluster on this machine: deaf to the keyboard, and with all its temporary files in a folder that is removed.

    It starts and ends in a thread: an interrupt waits until it is whole, for half a cluster cannot be ended in order.
    """
    import dask
    from distributed import LocalCluster

    def start() -> LocalCluster:
        with deaf():  # its threads and processes inherit that
            return LocalCluster(
                n_workers=jobs or default_jobs(),
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                env={"TMPDIR": str(folder)},
            )

    with (
        scratch_folder() as folder,
        dask.config.set({"temporary-directory": str(folder)}),
        ThreadPoolExecutor(1) as thread,
    ):
        starting = thread.submit(start)
        try:
            yield starting.result()
        finally:
            if starting.exception() is None:
                thread.submit(starting.result().close).result()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the log of Dask's own threads: what matters to the user becomes an error's sentence."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(before)  # not after an error: those threads go on complaining until the process ends


def _run(client: Any, address: str, task: Callable, items: Sequence[Any], **options: Any) -> Iterator[tuple[Any, Any]]:
    """Keep every worker busy with a short queue: a stop leaves little behind, and new workers get their share."""
    from distributed import CancelledError, KilledWorker, as_completed

    lost = ConnectionError(f"scheduler: the Dask scheduler at {address} was lost")
    waiting, doing = iter(items), {}
    finished = as_completed()

    def submit_some() -> None:
        try:
            cores = sum(client.ncores().values())
        except (OSError, CancelledError):
            raise lost from None
        while len(doing) < max(2, 2 * cores):
            item = next(waiting, None)
            if item is None:
                return
            future = client.submit(_in_a_process, task, item, options, pure=False)
            doing[future] = item
            finished.add(future)

    try:
        submit_some()
        for future in finished:
            item = doing.pop(future)
            try:
                error = future.exception()
            except (OSError, CancelledError):
                raise lost from None
            submit_some()
            if isinstance(error, KilledWorker):
                yield item, Lost("its workers died, one after the other (out of memory?)")
            elif error is not None:
                raise error
            else:
                yield item, future.result()
    finally:
        with suppress(OSError, CancelledError):
            client.cancel(list(doing))


def _in_a_process(task: Callable, item: Any, options: dict[str, Any]) -> Any:
    """On a worker: the task in a fresh process of its own, as on one machine."""
    return next(iter(run_tasks(task, [item], 1, **{**options, "fresh": True, "threads": 1})))[1]
