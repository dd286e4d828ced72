from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nbutils.study import CONDITIONS, NOISE_LEVELS, NOISE_SEEDS, Study, compute_missing, failures
from nbutils.workers import default_jobs, run_tasks

TINY = {"seeds": 1, "epochs": 1, "model": "mlp:8"}


def test_the_plan():
    tasks = Study(seeds=10).tasks()
    assert len(tasks) == len({t.run for t in tasks}) == 3 * 10 + 5 * NOISE_SEEDS
    assert {t.run.labels for t in tasks} == set(CONDITIONS) | set(NOISE_LEVELS)
    for level in NOISE_LEVELS:
        assert sum(t.run.labels == level and t.run.seed < NOISE_SEEDS for t in tasks) == NOISE_SEEDS
    assert all(t.measure.null_draws for t in tasks if t.run.labels in CONDITIONS)


def test_results_hold_all_runs_and_reuse_them(own_store):
    seen = []
    study = Study(**TINY)
    first = study.compute(jobs=2, progress=lambda done, total: seen.append((done, total)))
    assert first.computed == 8
    assert seen[0] == (0, 8)
    assert seen[-1] == (8, 8)
    second = study.compute()
    assert second.computed == 0
    assert second.table.equals(first.table)
    assert len(second.table) == 8 * 2
    assert set(second.conditions()["labels"]) == set(CONDITIONS)
    assert second.run("random").spec.labels == "random"
    with pytest.raises(ValueError, match="no finished run with labels='true' and seed=9"):
        second.run("true", 9)
    assert second.failed.empty
    assert second.dataset == "digits"


def test_one_process_and_two_give_the_same_table(own_store, tmp_path, monkeypatch):
    first = Study(**TINY).compute(jobs=2).table
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "other"))
    assert Study(**TINY).compute(jobs=1).table.equals(first)


def test_a_failed_run_is_shown_and_stops_no_other(own_store, monkeypatch):
    original = Study._run

    def wild(self, labels, seed):
        spec = original(self, labels, seed)
        return spec.model_copy(update={"learning_rate": 1e30}) if labels == "random" else spec

    monkeypatch.setattr(Study, "_run", wild)
    results = Study(**TINY).compute(jobs=1)
    assert results.failed["labels"].tolist() == ["random"]
    assert "diverged" in results.failed["reason"][0]
    assert set(results.table["labels"]) == set(NOISE_LEVELS) - {"random"}
    assert len(failures(Study(**TINY).tasks())) == 1
    with pytest.raises(ValueError, match="no finished run with labels='random'"):
        results.run("random")


def mark(folder_and_name: tuple[str, str]) -> str:
    folder, name = folder_and_name
    file = Path(folder) / name
    if name == "killer" and not file.exists():
        file.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    with file.open("a") as f:
        f.write("x")
    return name


def test_a_killed_worker_costs_only_its_own_item(tmp_path):
    items = [(str(tmp_path), n) for n in ("a", "killer", "b", "c", "d")]
    done = []
    run_tasks(mark, items, jobs=2, done=lambda item, result: done.append(result))
    assert sorted(done) == ["a", "b", "c", "d", "killer"]


def die(_item: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_workers_that_always_die_end_in_a_sentence():
    with pytest.raises(RuntimeError, match="worker processes died 3 times in a row; 2 tasks are left, try --jobs 1"):
        run_tasks(die, [1, 2], jobs=2)


def fail_on_two(item: int) -> int:
    if item == 2:
        raise KeyError("two")
    return item


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_in_a_task_reaches_the_caller(jobs):
    with pytest.raises(KeyError, match="two"):
        run_tasks(fail_on_two, [1, 2, 3], jobs=jobs)


SWEEPER = """
import sys, time
from pathlib import Path
from nbutils.workers import run_tasks
sys.path.insert(0, {here!r})
import test_study
run_tasks(test_study.linger, [{folder!r}] * 2, jobs=2)
"""


def linger(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(120)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3] if Path("/proc").exists() else True


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_its_parent(tmp_path, how):
    here = str(Path(__file__).parent)
    parent = subprocess.Popen([sys.executable, "-c", SWEEPER.format(here=here, folder=str(tmp_path))])
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = [int(p.name) for p in tmp_path.iterdir()]
    assert len(workers) == 2
    parent.send_signal(how)
    if how == signal.SIGINT:
        for pid in workers:  # a terminal sends Ctrl-C to the whole group
            os.kill(pid, how)
    parent.wait(timeout=60)
    deadline = time.monotonic() + 10
    while any(map(alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not [pid for pid in workers if alive(pid)]


def threads(_item: int) -> str | None:
    return os.environ.get("OMP_NUM_THREADS")


def test_workers_use_one_thread_and_leave_the_parent_alone(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    found = []
    run_tasks(threads, [1, 2], jobs=2, done=lambda _, result: found.append(result))
    assert found == ["1", "1"]
    assert os.environ["OMP_NUM_THREADS"] == "7"


def test_jobs():
    assert 1 <= default_jobs() <= (os.cpu_count() or 1)
    with pytest.raises(ValueError, match="jobs must be at least 1, received 0"):
        run_tasks(threads, [1], jobs=0)
    run_tasks(threads, [], jobs=2)
    assert compute_missing([]) == 0
