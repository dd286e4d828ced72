"""Everything that can go wrong, really done to a running sweep."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import nbformat
import psutil
import pytest
from sweep_helpers import RECORD, Driver, executed, log, wait_for

from nbutils.support.store import Store
from nbutils.sweeps.tables import read_results

pytestmark = pytest.mark.slow(4)
SLEEP = "import time\ntime.sleep(1.5)"


def table(folder: Path, name: str = "sweep"):
    return read_results(folder / "runs" / name / "results.parquet").sort_values(["x", "seed"], ignore_index=True)


def check_complete(folder: Path, points: int, name: str = "sweep") -> None:
    """Every point has its row and its notebook, and nothing else lies there."""
    found = table(folder, name)
    assert len(found) == points
    assert set(found["status"]) == {"done"}
    assert (found["value"] == found["x"] + found["y"] + found["seed"]).all()
    files = [p for p in (folder / "runs" / name).rglob("*") if p.is_file()]
    assert sum(p.name == "small.ipynb" for p in files) == points
    assert len(files) == points + 2, "notebooks and the two tables"
    for row in found.itertuples():
        page = nbformat.read(folder / "runs" / name / f"x={row.x}/seed={row.seed}/small.ipynb", as_version=4)
        assert page.metadata.nbutils.address == row.run
    store = Store("notebooks")
    assert not [p for p in store.folder.iterdir() if p.name.startswith(".writing-")]


@pytest.mark.parametrize("how", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.release)])
def test_a_stopped_sweep_resumes_where_it_was(how, write_notebook, write_sweep, start_sweep, tmp_path, own_store):
    write_notebook(log(tmp_path), SLEEP, RECORD)
    file = write_sweep(grid={"x": [1, 2, 3]}, seeds=2, fixed={"y": 0.5})
    driver = start_sweep(file, "--jobs", 2)
    assert wait_for(lambda: len(Store("notebooks").addresses()) >= 2 and len(executed(tmp_path)) > 2)
    os.killpg(driver.process.pid, how) if how == signal.SIGINT else driver.process.kill()
    code, text = driver.finish()
    if how == signal.SIGINT:
        assert code == 130
        assert "interrupted; everything finished so far is kept" in text
        assert "Traceback" not in text
        assert len(table(tmp_path)) >= 2
    assert wait_for(lambda: not driver.family(), 20)
    kept = len(Store("notebooks").addresses())
    assert 2 <= kept < 6
    before = len(executed(tmp_path))
    code, text = start_sweep(file, "--jobs", 2).finish()
    assert code == 0
    assert f"{6 - kept} finished, {kept} cached, 0 failed" in text
    assert len(executed(tmp_path)) == before + 6 - kept, "finished ones were not executed again"
    check_complete(tmp_path, 6)


@pytest.mark.release
@pytest.mark.parametrize("depth", [2, 3], ids=["worker", "kernel"])
def test_a_killed_worker_or_kernel_costs_one_attempt(
    depth, write_notebook, write_sweep, start_sweep, tmp_path, own_store
):
    write_notebook(log(tmp_path), SLEEP, RECORD)
    driver = start_sweep(write_sweep(grid={"x": [1, 2]}, seeds=2, fixed={"y": 0.5}), "--jobs", 2)
    assert wait_for(lambda: len(executed(tmp_path)) >= 1 and driver.below(depth))
    random.choice(driver.below(depth)).kill()
    code, text = driver.finish()
    assert code == 0, text
    assert "4 finished, 0 cached, 0 failed" in text
    check_complete(tmp_path, 4)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
            "its kernel died (killed, or out of memory?), 3 times",
        ),
        ("import os\nos.kill(os.getppid(), 9)\nimport time\ntime.sleep(60)", "its process was killed by signal 9"),
    ],
)
def test_a_notebook_that_always_dies_fails_after_three_attempts(
    cell, reason, write_notebook, write_sweep, start_sweep, tmp_path, own_store
):
    write_notebook(log(tmp_path), "if x == 1:\n    " + cell.replace("\n", "\n    "), RECORD)
    code, text = start_sweep(write_sweep(grid={"x": [1, 2]}, fixed={"y": 0.5})).finish()
    assert code == 1
    assert f"failed: x=1: {reason}" in text
    assert Counter(x for x, _ in executed(tmp_path)) == {1: 3, 2: 1}
    found = read_results(tmp_path / "runs/sweep/results.parquet").set_index("x")
    assert found["status"].to_dict() == {1: "failed", 2: "done"}
    assert reason in found["reason"][1]


def test_a_time_limit_ends_a_notebook(write_notebook, write_sweep, start_sweep, tmp_path, own_store):
    write_notebook(log(tmp_path), "print('so far')\nimport time\nif x == 1: time.sleep(300)", RECORD)
    file = write_sweep(grid={"x": [1, 2]}, fixed={"y": 0.5}, timeout=500)
    code, text = start_sweep(file, "--timeout", 3).finish()
    assert code == 1
    assert "failed: x=1: took longer than 3 s, its time limit" in text
    assert "1 finished" in text
    assert len(executed(tmp_path)) == 2, "a notebook that is too slow is not tried again in the same start"
    failed = nbformat.read(tmp_path / "runs/sweep/x=1/small.failed.ipynb", as_version=4)
    assert failed.metadata.nbutils.status == "failed"
    assert any("so far" in o.get("text", "") for cell in failed.cells for o in cell.get("outputs", ()))


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from nbutils.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_disk_that_takes_no_more(write_notebook, write_sweep, start_sweep, tmp_path, own_store):
    """Files of the process may not grow beyond a limit, which is what a full disk looks like to it."""
    write_notebook(log(tmp_path), RECORD, "if x == 2: print('many words ' * 3000)")
    file = write_sweep(grid={"x": [1, 2, 3]}, seeds=1, fixed={"y": 0.5})
    command = [sys.executable, "-c", LIMITED, "sweep", str(file), "--jobs", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stdout + done.stderr
    words = done.stdout + done.stderr
    assert "File too large" in words
    assert "Traceback" not in words
    assert len(Store("notebooks").addresses()) >= 1
    assert not (tmp_path / "runs/sweep/x=2/seed=0/small.ipynb").exists()
    code, text = start_sweep(file).finish()
    assert code == 0, text
    assert "cached" in text
    assert "0 cached" not in text
    check_complete(tmp_path, 3)


def test_damaged_outputs_are_written_again_and_damaged_results_computed_again(
    write_notebook, write_sweep, start_sweep, tmp_path, own_store
):
    write_notebook(log(tmp_path), RECORD)
    file = write_sweep(grid={"x": [1, 2, 3, 4]}, seeds=1, fixed={"y": 0.5})
    assert start_sweep(file).finish()[0] == 0
    outputs = [tmp_path / f"runs/sweep/x={x}/seed=0/small.ipynb" for x in (1, 2, 3, 4)]
    good = [path.read_bytes() for path in outputs]
    outputs[0].write_bytes(good[0][:100])
    outputs[1].unlink()
    (outputs[1].parent / ".small.ipynb.999999-abcd.part").write_bytes(b"half")
    addresses = table(tmp_path)["run"].tolist()
    store = Store("notebooks")
    third = store.path(addresses[2]) / "notebook.ipynb"
    third.write_bytes(third.read_bytes().replace(b"sum", b"mus"))  # same size, other content
    (store.path(addresses[3]) / "record.json").write_text("{")
    half = store.folder / f".writing-{os.uname().nodename}-999999-abcd"
    half.mkdir()
    code, text = start_sweep(file).finish()
    assert code == 0, text
    assert "2 finished, 2 cached" in text
    assert Counter(x for x, _ in executed(tmp_path)) == {1: 1, 2: 1, 3: 2, 4: 2}
    assert [path.read_bytes() for path in outputs[:2]] == good[:2]
    check_complete(tmp_path, 4)
    assert not half.exists()


@pytest.mark.release
def test_two_sweeps_over_overlapping_grids_at_once(write_notebook, write_sweep, start_sweep, tmp_path, own_store):
    write_notebook(log(tmp_path), SLEEP, RECORD)
    one = write_sweep("one", grid={"x": [1, 2, 3, 4]}, seeds=1, fixed={"y": 0.5})
    two = write_sweep("two", grid={"x": [3, 4, 5, 1]}, seeds=1, fixed={"y": 0.5})
    drivers = [start_sweep(file, "--jobs", 2) for file in (one, two, one)]  # one of them even twice
    for driver in drivers:
        code, text = driver.finish()
        assert code == 0, text
    assert sorted(executed(tmp_path)) == [(x, 0) for x in (1, 2, 3, 4, 5)], "each point once, whoever asked first"
    check_complete(tmp_path, 4, "one")
    check_complete(tmp_path, 4, "two")


@pytest.mark.usefixtures("warm_server")
def test_an_edited_notebook_runs_again_and_the_old_results_come_back_with_it(
    write_notebook, write_sweep, command, tmp_path, own_store
):
    write_notebook(log(tmp_path), RECORD)
    file = write_sweep(grid={"x": [1, 2]}, seeds=1, fixed={"y": 0.5})
    assert command("sweep", file).returncode == 0
    write_notebook(log(tmp_path), RECORD.replace("x + y + seed", "100 + x"))
    assert "2 finished, 0 cached" in command("sweep", file).stdout
    assert table(tmp_path)["value"].tolist() == [101, 102]
    write_notebook(log(tmp_path), RECORD)
    assert "0 finished, 2 cached" in command("sweep", file).stdout
    check_complete(tmp_path, 2)


def test_an_edited_nbutils_outdates_what_it_computes_and_nothing_else(
    write_notebook, write_sweep, start_sweep, tmp_path, own_store, root
):
    copy = tmp_path / "nbutils"  # `python -m nbutils` in this folder takes the copy
    shutil.copytree(root / "nbutils", copy)  # with what is compiled already
    write_notebook(log(tmp_path), RECORD, "import nbutils as nb\nnb.interval_text")
    file = write_sweep(grid={"x": [1, 2]}, seeds=1, fixed={"y": 0.5})
    assert "2 finished, 0 cached" in start_sweep(file).finish()[1]
    progress = copy / "support/progress.py"
    progress.write_text(progress.read_text().replace(" cached", " kept"))
    display = copy / "drawing/display.py"
    display.write_text("# a comment\n" + display.read_text() + "\nADDED = 1\n")
    assert "0 finished, 2 cached" in start_sweep(file).finish()[1], "nothing that the notebook uses has changed"
    display.write_text(display.read_text() + "\ninterval_text = interval_text\n")
    assert "2 finished, 0 cached" in start_sweep(file).finish()[1]


KILLS = ("driver", "worker", "kernel", "driver", "kernel")


def kill_one(driver: Driver, depth: int) -> None:
    """Kill one of the processes at a depth; if it ends by itself just then, another."""
    killed: list[int] = []

    def attempt() -> bool:
        with suppress(psutil.NoSuchProcess, IndexError):
            victim = random.choice(driver.below(depth))
            victim.kill()
            killed.append(victim.pid)
        return bool(killed)

    assert wait_for(attempt)


@pytest.mark.slow(20)
@pytest.mark.parametrize("seeds", [2, pytest.param(10, marks=pytest.mark.release)], ids=["40 runs", "200 runs"])
def test_many_runs_killed_five_times(seeds, write_notebook, write_sweep, start_sweep, tmp_path, own_store, monkeypatch):
    write_notebook(log(tmp_path), RECORD)
    file = write_sweep(grid={"x": list(range(20))}, seeds=seeds, fixed={"y": 0.5})
    rng = random.Random()
    driver, starts = start_sweep(file), 1
    for number, target in enumerate(KILLS):
        goal = rng.randint(number * 7 + 1, number * 7 + 7) * seeds // 2  # somewhere in this fifth of the work
        process = driver.process
        assert wait_for(
            lambda goal=goal, process=process: len(Store("notebooks").addresses()) >= goal or process.poll(), 300
        )
        assert process.poll() is None, driver.finish()
        if target == "driver":
            driver.process.kill()
            driver.finish()
            driver, starts = start_sweep(file), starts + 1
            continue
        kill_one(driver, 2 if target == "worker" else 3)
    code, text = driver.finish(900)
    assert code == 0, text
    assert starts == 3
    check_complete(tmp_path, 20 * seeds)
    times = Counter(executed(tmp_path))
    assert set(times) == {(x, seed) for x in range(20) for seed in range(seeds)}
    assert sum(times.values()) <= 20 * seeds + len(KILLS) * 2, "only what was cut off was done again"
    if seeds == 2:
        return  # before a release the whole table is held against one of a sweep that nothing disturbed

    disturbed = table(tmp_path)
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "other-store"))
    (tmp_path / "runs").rename(tmp_path / "disturbed")
    assert start_sweep(file).finish(900)[0] == 0
    same = [c for c in disturbed if c not in ("seconds", "time")]
    assert disturbed[same].equals(table(tmp_path)[same])
