"""The same sweeps on real Dask clusters: schedulers and workers in processes and folders of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest
from sweep_helpers import RECORD, executed, log, wait_for

from nbutils.support.files import clear_stale
from nbutils.support.store import Store
from nbutils.support.workers import dask_runner
from nbutils.sweeps.tables import read_results

pytestmark = pytest.mark.slow(8)
SLEEP = "import time\ntime.sleep(1.5)"


class Cluster:
    """A scheduler and its workers, each in a working folder of its own, on the loopback interface."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        folder.mkdir()
        self.temporary = Path(tempfile.mkdtemp(prefix="c-"))  # short, as sockets need it
        file = folder / "scheduler.json"
        local = ["--host", "127.0.0.1", "--no-dashboard"]
        self.processes = [self._start("scheduler", "scheduler", *local, "--port", "0", "--scheduler-file", str(file))]
        assert wait_for(lambda: file.exists() and file.read_text().strip().endswith("}"))
        self.address = json.loads(file.read_text())["address"]
        worker = ["--nthreads", "1", "--nworkers", "1", *local]
        self.processes += [self._start(f"worker-{i}", "worker", self.address, *worker) for i in range(workers)]

    def _start(self, name: str, *command: str) -> subprocess.Popen:
        where = self.folder / name
        where.mkdir()
        environment = {**os.environ, "TMPDIR": str(self.temporary), "DASK_DISTRIBUTED__WORKER__DAEMON": "True"}
        with (self.folder / f"{name}.log").open("w") as output:
            return subprocess.Popen(
                [sys.executable, "-m", "dask", *command], cwd=where, env=environment, stdout=output, stderr=output
            )

    def family(self, index: int) -> list[psutil.Process]:
        """Processes below one of the cluster's; 1 is the first worker."""
        return psutil.Process(self.processes[index].pid).children(recursive=True)

    def close(self) -> list[psutil.Process]:
        """End everything; returns what would not go."""
        family = [child for i in range(len(self.processes)) for child in self.family(i)]
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(timeout=60)
        return psutil.wait_procs(family, timeout=30)[1]

    def left_over(self) -> list[Path]:
        """Scratch folders that a living process still holds; the others go with the next notebook on that machine."""
        for folder in self.temporary.glob("nbutils-*/*"):
            os.utime(folder, (0, 0))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(self.temporary))
            clear_stale()
        found = list(self.temporary.glob("nbutils-*/*"))
        shutil.rmtree(self.temporary, ignore_errors=True)
        return found


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    clusters: list[Cluster] = []

    def start(name: str, workers: int) -> Cluster:
        clusters.append(Cluster(tmp_path / name, workers))
        return clusters[-1]

    yield start
    for cluster in clusters:
        assert not cluster.close()
        assert not cluster.left_over()


def values(folder: Path) -> list[tuple[int, float]]:
    table = read_results(folder / "runs/sweep/results.parquet")
    assert set(table["status"]) == {"done"}
    return sorted(zip(table["x"], table["value"], strict=True))


@pytest.mark.release
def test_local_dask_gives_the_same_table(write_notebook, write_sweep, nbutils_cli, tmp_path, own_store, monkeypatch):
    write_notebook(RECORD)
    file = write_sweep(grid={"x": [1, 2, 3]})
    assert nbutils_cli("sweep", file).returncode == 0
    here = values(tmp_path)
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "other-store"))
    done = nbutils_cli("sweep", file, "--scheduler", "local-dask", "--jobs", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 at a time, 1 thread each, on the Dask cluster local-dask" in done.stdout
    assert "3 finished, 0 cached" in done.stdout
    assert values(tmp_path) == here


@pytest.mark.release
def test_a_worker_killed_in_mid_run(write_notebook, write_sweep, start_sweep, start_cluster, tmp_path, own_store):
    cluster = start_cluster("cluster", workers=2)
    write_notebook(log(tmp_path), SLEEP, RECORD)
    driver = start_sweep(write_sweep(grid={"x": [1, 2, 3, 4, 5, 6]}, fixed={"y": 0.5}), "--scheduler", cluster.address)
    assert wait_for(lambda: len(executed(tmp_path)) >= 2)
    for process in cluster.family(1):
        if "dask" in " ".join(process.cmdline()) or "spawn_main" in " ".join(process.cmdline()):
            process.kill()  # the worker itself, and what hangs on it; its nanny starts another one
    code, text = driver.finish()
    assert code == 0, text
    assert "6 finished, 0 cached, 0 failed" in text
    assert values(tmp_path) == [(x, x + 0.5) for x in range(1, 7)]
    assert set(executed(tmp_path)) == {(x, 0) for x in range(1, 7)}
    assert len(executed(tmp_path)) <= 8, "only what was cut off was done again"


@pytest.mark.release
def test_a_driver_killed_while_a_cluster_works(
    write_notebook, write_sweep, start_sweep, start_cluster, tmp_path, own_store
):
    cluster = start_cluster("cluster", workers=2)
    write_notebook(log(tmp_path), SLEEP, RECORD)
    file = write_sweep(grid={"x": [1, 2, 3, 4, 5]}, fixed={"y": 0.5})
    driver = start_sweep(file, "--scheduler", cluster.address)
    assert wait_for(lambda: len(Store("notebooks").addresses()) >= 1)
    driver.process.kill()
    driver.finish()
    code, text = start_sweep(file, "--scheduler", cluster.address).finish()
    assert code == 0, text
    assert values(tmp_path) == [(x, x + 0.5) for x in range(1, 6)]
    assert len(executed(tmp_path)) == 5, "notebooks that were running finished on their workers and were found"


@pytest.mark.release
def test_two_clusters_share_nothing_but_the_store(
    write_notebook, write_sweep, start_sweep, start_cluster, tmp_path, own_store
):
    one, two = start_cluster("one", workers=1), start_cluster("two", workers=1)
    write_notebook(log(tmp_path), "open('beside.txt', 'w').write('x')", SLEEP, RECORD)
    files = [
        write_sweep("a", grid={"x": [1, 2, 3]}, fixed={"y": 0.5}),
        write_sweep("b", grid={"x": [2, 3, 4]}, fixed={"y": 0.5}),
    ]
    drivers = [start_sweep(f, "--scheduler", c.address) for f, c in zip(files, (one, two), strict=True)]
    for driver in drivers:
        code, text = driver.finish()
        assert code == 0, text
    assert sorted(executed(tmp_path)) == [(x, 0) for x in (1, 2, 3, 4)], "what one computed the other one found"
    assert len(list((tmp_path / "runs").rglob("small.ipynb"))) == 6


@pytest.mark.release
def test_workers_with_a_store_of_their_own(
    write_notebook, write_sweep, start_sweep, start_cluster, tmp_path, own_store, monkeypatch
):
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "theirs"))
    cluster = start_cluster("cluster", workers=1)
    monkeypatch.setenv("NBUTILS_STORE", str(own_store))
    write_notebook(log(tmp_path), RECORD)
    file = write_sweep(grid={"x": [1, 2]}, fixed={"y": 0.5})
    code, text = start_sweep(file, "--scheduler", cluster.address).finish()
    assert code == 0, text
    assert values(tmp_path) == [(1, 1.5), (2, 2.5)]
    assert len(Store("notebooks").addresses()) == len(Store("notebooks", tmp_path / "theirs").addresses()) == 2
    assert "2 cached" in start_sweep(file).finish()[1], "results came home over the wire"


@pytest.mark.release
def test_a_worker_with_another_torch_refuses(
    write_notebook, write_sweep, start_sweep, start_cluster, tmp_path, own_store, pretend_torch
):
    with pytest.MonkeyPatch.context() as patch:
        pretend_torch("2.12.0", patch)
        cluster = start_cluster("cluster", workers=1)
    write_notebook(log(tmp_path), RECORD)
    file = write_sweep(grid={"x": [1]}, fixed={"y": 0.5})
    code, text = start_sweep(file, "--scheduler", cluster.address).finish()
    assert code == 1
    words = f"torch 2.12.0 here, {version('torch')} where the sweep was started"
    assert f"x=1: libraries differ between machines ({words}); install the same versions everywhere" in text
    assert "Traceback" not in text
    assert executed(tmp_path) == [], "nothing was computed"


def test_nobody_there_is_one_sentence(write_notebook, write_sweep, command, own_store, monkeypatch):
    monkeypatch.setattr("nbutils.support.workers.PATIENCE", (1, 1))
    write_notebook(RECORD)
    done = command("sweep", write_sweep(grid={"x": [1]}), "--scheduler", "tcp://127.0.0.1:9")
    assert done.returncode == 2
    assert "error: scheduler: no Dask scheduler answers at 'tcp://127.0.0.1:9'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.release
def test_a_lost_scheduler_is_one_line(write_notebook, write_sweep, start_sweep, start_cluster, tmp_path, own_store):
    cluster = start_cluster("cluster", workers=1)
    write_notebook(log(tmp_path), SLEEP, RECORD)
    driver = start_sweep(write_sweep(grid={"x": list(range(9))}, fixed={"y": 0.5}), "--scheduler", cluster.address)
    assert wait_for(lambda: Store("notebooks").addresses())
    cluster.processes[0].kill()
    code, text = driver.finish()
    assert code == 1
    said = [line for line in text.splitlines()[1:] if " runs: " not in line]  # progress, where there was time for it
    assert said == [
        f"error: scheduler: the Dask scheduler at {cluster.address} was lost; everything finished so far is kept"
    ]
    assert len(read_results(tmp_path / "runs/sweep/results.parquet")) >= 1


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no such signal")
def test_an_interrupt_waits_until_the_cluster_is_whole(monkeypatch, tmp_path):
    """Half a cluster cannot be ended: its processes would start after its folder is gone."""
    did, made = [], threading.Event()

    class Slow:
        def __init__(self, **_options):
            made.set()
            time.sleep(0.5)
            did.append("made")

        def close(self):
            time.sleep(0.2)
            did.append("closed")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("distributed.LocalCluster", Slow)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = signal.signal(signal.SIGUSR1, interrupt)
    sender = threading.Thread(target=lambda: made.wait() and os.kill(os.getpid(), signal.SIGUSR1))
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt), dask_runner("local-dask", 1):
            pytest.fail("there was no interrupt")
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)
    assert did == ["made", "closed"]
    assert not list(tmp_path.rglob("*"))
