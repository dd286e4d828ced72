"""The same tasks on a Dask cluster: workers on other machines, or processes here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from nbutils.cores import default_jobs
from nbutils.workers import Lost, run_tasks

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
    from distributed import Client, LocalCluster

    local = address == LOCAL
    cluster = (
        LocalCluster(n_workers=jobs or default_jobs(), threads_per_worker=1, processes=True, dashboard_address=None)
        if local
        else None
    )
    try:
        try:
            client = Client(cluster or address, timeout=PATIENCE[0])
        except (OSError, ValueError) as error:
            raise ValueError(f"scheduler: no Dask scheduler answers at {address!r} ({error})") from None
        with client:
            try:
                client.wait_for_workers(1, timeout=PATIENCE[1])
            except TimeoutError:
                raise ValueError(f"scheduler: {address} has no worker; start one with: dask worker {address}") from None
            yield partial(_run, client), sum(client.ncores().values())
    finally:
        if cluster:
            cluster.close()


def _run(client: Any, task: Callable, items: Sequence[Any], **options: Any) -> Iterator[tuple[Any, Any]]:
    """Keep every worker busy with a short queue: a stop leaves little behind, and new workers get their share."""
    from distributed import KilledWorker, as_completed

    waiting, doing = iter(items), {}
    finished = as_completed()

    def submit_some() -> None:
        while len(doing) < max(2, 2 * sum(client.ncores().values())):
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
            error = future.exception()
            submit_some()
            if isinstance(error, KilledWorker):
                yield item, Lost("its workers died, one after the other (out of memory?)")
            elif error is not None:
                raise error
            else:
                yield item, future.result()
    finally:
        client.cancel(list(doing))


def _in_a_process(task: Callable, item: Any, options: dict[str, Any]) -> Any:
    """On a worker: the task in a fresh process of its own, as on one machine."""
    return next(iter(run_tasks(task, [item], 1, **{**options, "fresh": True, "threads": 1})))[1]
