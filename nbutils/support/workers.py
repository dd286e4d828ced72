"""Tasks in worker processes that can be lost: on this machine, or on the workers of a dask cluster."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import connection, current_process, forkserver, get_context, parent_process, resource_tracker
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from nbutils.support.files import clear_after, process_folder, remove_folder, scratch_folder
from nbutils.support.machine import SHARE_VARIABLES, default_jobs, threads_each

ATTEMPTS = 3
METHOD = "spawn" if sys.platform == "win32" else "forkserver"


class TryAgain(Exception):  # noqa: N818 - an instruction, not an error
    """Raised by a task that was cut off by something from outside and deserves another attempt.

    Args:
        reason: what happened, in one sentence.
        remains: what the task could save; handed over in :class:`Lost` when no attempt is left.
    """

    def __init__(self, reason: str, remains: Any = None) -> None:
        super().__init__(reason, remains)
        self.reason, self.remains = reason, remains


@dataclass(frozen=True)
class Lost:
    """Instead of a result: every attempt at a task was cut off.

    Attributes:
        reason: what happened, in one sentence.
        remains: what the task could save, or None.
    """

    reason: str
    remains: Any = None


def run_tasks(
    task: Callable[[Any], Any],
    items: Sequence[Any],
    jobs: int | None = None,
    *,
    fresh: bool = False,
    before: Callable[[], None] | None = None,
    preload: Sequence[str] = (),
    threads: int | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Call `task(item)` for every item, `jobs` at a time, and yield (item, result) as they finish.

    A worker that dies (killed, out of memory) takes only its own item with it, and that item is tried again, three
    times in all. Closing the iterator, an interrupt, or an exception ends all workers at once.

    Args:
        task: a function importable from a module.
        items: its arguments; they and the results must pickle.
        jobs: processes; None means :func:`nbutils.support.machine.default_jobs`.
        fresh: a new process for every item, even for a single one. Otherwise workers are reused, and with one job or
            one item all happens in this process.
        before: called in each new worker while it has a single thread, so it may fork.
        preload: modules that the server process imports once, before the first worker is forked.
        threads: compute threads of each; None means :func:`nbutils.support.machine.threads_each`.

    Yields:
        (item, result); the result is :class:`Lost` if every attempt was cut off.

    Raises:
        ValueError: `jobs` < 1.
        Exception: whatever a task raised, with the worker's traceback as a note.

    Examples:
        >>> sorted(run_tasks(abs, [-1, 2], jobs=1))
        [(-1, 1), (2, 2)]
    """
    jobs = default_jobs() if jobs is None else jobs
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, received {jobs!r}")
    if not fresh and min(jobs, len(items)) <= 1:
        return ((item, task(item)) for item in items)
    environment = dict.fromkeys(SHARE_VARIABLES, str(threads_each(jobs) if threads is None else threads))
    return _Pool(task, min(jobs, len(items)), fresh, before, environment, preload).run(items)


@contextmanager
def deaf() -> Iterator[None]:
    """Threads and processes that are started inside do not hear Ctrl-C: it is for the process that started them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would lift the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    """A process and the item it works on."""

    def __init__(self, pool: _Pool) -> None:
        self.pool = pool
        self.connection, theirs = pool.context.Pipe()
        environment = {**os.environ, **pool.environment}
        with pool.surroundings():
            arguments = (theirs, pool.task, pool.fresh, pool.before, environment, pool.folder)
            self.process = pool.context.Process(target=_work, args=arguments)
            pool.workers.append(self)  # by now, so that an interrupt in between finds it
        self._start()
        theirs.close()
        self.item: Any = None
        self.attempt = 0

    def _start(self) -> None:
        """Start the process; if the server process is killed meanwhile, from another one."""
        for _ in range(ATTEMPTS):
            with suppress(EOFError, ConnectionError), self.pool.surroundings():
                return self.process.start()
            time.sleep(0.2)  # until the system knows that it is dead
        raise ChildProcessError(f"the process that starts workers was killed {ATTEMPTS} times (out of memory?)")

    def give(self, item: Any, attempt: int) -> None:
        self.item, self.attempt = item, attempt
        with suppress(BrokenPipeError):  # it died while idle; receiving will say so
            self.connection.send(item)

    def receive(self) -> tuple[str, Any]:
        """("done" | "raised" | "again", payload) from the worker, or "again" with the manner of its death."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join(10)
            code = self.process.exitcode
            how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
            return "again", (f"its process {how}{' (out of memory?)' if code == -signal.SIGKILL else ''}", None)

    def end(self) -> None:
        self.connection.close()
        if self.process.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
            self.process.join()
            clear_after(self.process.pid)
        self.pool.workers.remove(self)


@dataclass
class _Pool:
    """Workers for one call of :func:`run_tasks`."""

    task: Callable[[Any], Any]
    size: int
    fresh: bool
    before: Callable[[], None] | None
    environment: dict[str, str]
    preload: Sequence[str]
    context: BaseContext = field(default_factory=lambda: get_context(METHOD))
    workers: list[_Worker] = field(default_factory=list)  # all that have not ended
    folder: str = ""  # for sockets, if it is ours

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """The server process, started with the first worker, reads these variables and modules."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        # Workers of a Dask cluster are daemons, which may not have children; ours end with their parent anyway.
        daemon = current_process()._config.pop("daemon", None)
        # Tasks come from modules: importing the main script again in every worker would only cost time.
        main, sys.modules["__main__"] = sys.modules["__main__"], types.ModuleType("__main__")
        try:
            if METHOD == "forkserver":
                self._start_server()
            yield
        finally:
            sys.modules["__main__"] = main
            if daemon is not None:
                current_process()._config["daemon"] = daemon
            for name, value in before.items():
                os.environ.pop(name, None) if value is None else os.environ.update({name: value})

    def _start_server(self) -> None:
        """Start the server process unless it runs; deaf to the keyboard, and listening in a folder that is removed."""
        if self.preload:
            self.context.set_forkserver_preload(list(self.preload))
        # Else multiprocessing makes a folder that stays behind when this process is killed, of too long a path maybe.
        folder = str(process_folder())
        if current_process()._config.setdefault("tempdir", folder) == folder:
            self.folder = folder
        with deaf():
            forkserver.ensure_running()

    def run(self, items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        waiting = deque((item, 1) for item in items)
        busy: dict[Any, _Worker] = {}
        idle: list[_Worker] = []

        def fill() -> None:
            while waiting and len(busy) < self.size:
                worker = idle.pop() if idle else _Worker(self)
                worker.give(*waiting.popleft())
                busy[worker.connection] = worker
            if self.fresh and waiting and not idle:  # the next one gets ready while these work
                with deaf():  # an interrupt in the middle of it would be told by the server process, too
                    idle.append(_Worker(self))

        try:
            fill()
            while busy:
                for ready in connection.wait(list(busy)):
                    worker = busy.pop(ready)
                    kind, payload = worker.receive()
                    item, attempt = worker.item, worker.attempt
                    reusable = kind == "done" and not self.fresh
                    idle.append(worker) if reusable else worker.end()
                    if kind == "raised":
                        raise payload
                    again = kind == "again" and attempt < ATTEMPTS
                    if again:
                        waiting.append((item, attempt + 1))
                    fill()  # before the result is handed over: nobody waits for who takes it
                    if not again:
                        yield item, Lost(f"{payload[0]}, {ATTEMPTS} times", payload[1]) if kind == "again" else payload
        finally:
            for worker in list(self.workers):
                worker.end()


def _work(
    pipe: Any, task: Callable, fresh: bool, before: Callable | None, environment: dict[str, str], folder: str
) -> None:
    """The life of a worker."""
    if hasattr(os, "setsid"):
        os.setsid()  # an interrupt at the keyboard is for the process that started it
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # one that came before is forgotten
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.register_at_fork(after_in_child=pipe.close)
    os.environ.clear()
    os.environ.update(environment)
    if before:
        before()
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True, name="end-with-parent").start()
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            return
        pipe.send(_attempt(task, item))
        if fresh:
            return


def _attempt(task: Callable[[Any], Any], item: Any) -> tuple[str, Any]:
    try:
        return "done", task(item)
    except TryAgain as wish:
        return "again", (wish.reason, wish.remains)
    except Exception as error:
        error.add_note(f"In a worker process:\n{traceback.format_exc()}")
        return "raised", error


def _end_with_parent(folder: str) -> None:
    """End this process and what it started when its parent is gone, and remove the folder that it left."""
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        if folder:
            remove_folder(Path(folder))
        if hasattr(os, "killpg"):
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os._exit(1)


LOCAL = "local-dask"
PATIENCE = 10, 60  # seconds to wait for a scheduler, and for its first worker


@contextmanager
def dask_runner(
    address: str, jobs: int | None = None
) -> Iterator[tuple[Callable[..., Iterator[tuple[Any, Any]]], int]]:
    """Run tasks on a Dask cluster as :func:`nbutils.support.workers.run_tasks` runs them here.

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

    started: list[LocalCluster] = []

    def start() -> LocalCluster:
        with deaf():  # its threads and processes inherit that
            cluster = LocalCluster(
                n_workers=jobs or default_jobs(),
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                env={"TMPDIR": str(folder)},
            )
        started.append(cluster)
        return cluster

    def end() -> None:
        for cluster in started:
            cluster.close()

    with (
        scratch_folder() as folder,
        dask.config.set({"temporary-directory": str(folder)}),
        ThreadPoolExecutor(1) as thread,
    ):
        thread.submit(int).result()  # the thread is there before anything that an interrupt could cut in half
        try:
            yield thread.submit(start).result()
        finally:
            thread.submit(end).result()  # by the same thread: after the start, however that was interrupted


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
