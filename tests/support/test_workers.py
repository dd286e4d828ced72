from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from nbutils.support.workers import Lost, TryAgain, run_tasks


def mark(folder_and_name: tuple[str, str]) -> str:
    folder, name = folder_and_name
    file = Path(folder) / name
    if name == "killer" and not file.exists():
        file.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    with file.open("a") as f:
        f.write("x")
    return name


@pytest.mark.parametrize("fresh", [True, False])
def test_a_killed_worker_costs_only_its_own_item(tmp_path, fresh):
    items = [(str(tmp_path), n) for n in ("a", "killer", "b", "c", "d")]
    done = [result for _, result in run_tasks(mark, items, jobs=2, fresh=fresh)]
    assert sorted(done) == ["a", "b", "c", "d", "killer"]
    assert all((tmp_path / n).read_text() == "x" for n in done), "nothing was done twice"


def die(item: str) -> str:
    if item == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def test_an_item_that_always_kills_its_worker_is_lost_and_the_others_are_not():
    found = dict(run_tasks(die, ["dies", "lives"], jobs=2))
    assert found["lives"] == "lives"
    assert isinstance(found["dies"], Lost)
    assert found["dies"].reason == "its process was killed by signal 9 (out of memory?), 3 times"


def again(item: str) -> str:
    raise TryAgain("cut off", remains=item.upper())


def test_an_item_that_asks_for_another_attempt_gets_three_and_keeps_what_it_saved():
    found = dict(run_tasks(again, ["x"], jobs=1, fresh=True))
    assert found["x"] == Lost("cut off, 3 times", "X")


def fail_on_two(item: int) -> int:
    if item == 2:
        raise KeyError("two")
    return item


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_exception_in_a_task_reaches_the_caller(jobs):
    with pytest.raises(KeyError, match="two") as caught:
        list(run_tasks(fail_on_two, [1, 2, 3], jobs=jobs))
    if jobs == 2:
        assert "fail_on_two" in caught.value.__notes__[0]


def pid(_item: int) -> int:
    return os.getpid()


def test_fresh_means_a_process_for_every_item():
    reused = {found for _, found in run_tasks(pid, range(6), jobs=2)}
    fresh = {found for _, found in run_tasks(pid, range(6), jobs=2, fresh=True)}
    alone = {found for _, found in run_tasks(pid, [1], jobs=1, fresh=True)}
    assert len(reused) <= 2
    assert len(fresh) == 6
    assert os.getpid() not in reused | fresh | alone
    assert [found for _, found in run_tasks(pid, [1], jobs=1)] == [os.getpid()]


def surroundings(_item: int) -> tuple[str | None, str | None, str | None, str]:
    names = ("OMP_NUM_THREADS", "NBUTILS_JOBS", "FROM_THE_PARENT")
    return *(os.environ.get(name) for name in names), os.getcwd()


def test_workers_share_the_cores_and_leave_the_parent_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("NBUTILS_JOBS", "4")
    monkeypatch.chdir(tmp_path)
    for word in ("first", "second"):  # workers see the present surroundings, not those of the first worker
        monkeypatch.setenv("FROM_THE_PARENT", word)
        found = [result for _, result in run_tasks(surroundings, [1, 2], jobs=2)]
        assert found == [("2", "2", word, str(tmp_path))] * 2
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert next(r for _, r in run_tasks(surroundings, [1], 1, fresh=True, threads=3))[:2] == ("3", "3")


def linger(folder: str) -> None:
    (Path(folder) / str(os.getpid())).touch()
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    time.sleep(120)


def wait_for(condition, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(condition())


PARENT = """
import sys
sys.path.insert(0, {here!r})
import test_workers
from nbutils.support.workers import run_tasks
list(run_tasks(test_workers.linger, [{folder!r}] * 2, jobs=2))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_the_parent(tmp_path, how):
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", PARENT.format(here=here, folder=str(tmp_path))]
    # Background jobs of a shell are born deaf to interrupts.
    parent = subprocess.Popen(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    assert wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
    assert wait_for(lambda: len(psutil.Process(parent.pid).children(recursive=True)) >= 5)
    family = psutil.Process(parent.pid).children(recursive=True)  # server, tracker, two workers, their children
    parent.send_signal(how)
    parent.wait(timeout=60)
    _, alive = psutil.wait_procs(family, timeout=15)
    assert not alive


def test_closing_the_iterator_ends_the_workers(tmp_path):
    results = run_tasks(one_lingers, [(str(tmp_path), True), (str(tmp_path), False)], jobs=2, fresh=True)
    assert next(results)[1] == "quick"
    [worker] = [int(p.name) for p in tmp_path.iterdir()]
    results.close()
    assert wait_for(lambda: not psutil.pid_exists(worker), 10)


def one_lingers(item: tuple[str, bool]) -> str:
    folder, lingers = item
    if lingers:
        linger(folder)
    assert wait_for(lambda: list(Path(folder).iterdir()))
    return "quick"


def test_jobs():
    with pytest.raises(ValueError, match="jobs must be at least 1, received 0"):
        run_tasks(pid, [1], jobs=0)
    assert list(run_tasks(pid, [], jobs=2)) == []
    assert list(run_tasks(pid, [], jobs=2, fresh=True)) == []


def test_a_temporary_folder_with_a_long_path_does_not_matter(tmp_path):
    """The path of a socket may have about a hundred characters."""
    folder = tmp_path / ("long" * 25)
    folder.mkdir()
    code = """
import tempfile
from nbutils.support.workers import run_tasks
if __name__ == "__main__":
    before = tempfile.gettempdir()
    print(sorted(result for _, result in run_tasks(str.upper, ["a", "b"], jobs=2)))
    assert tempfile.gettempdir() == before
"""
    environment = {**os.environ, "TMPDIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == "['A', 'B']\n", done.stderr


@pytest.mark.parametrize(("deaths", "words"), [(2, "['A', 'B']"), (9, "was killed 3 times (out of memory?)")])
def test_a_server_process_that_is_killed_while_it_starts_is_started_again(deaths, words, tmp_path):
    module = "import os\nwith open('deaths', 'a+') as file:\n    file.write('x')\n    count = file.tell()\n"
    (tmp_path / "deadly.py").write_text(f"{module}if count <= {deaths}:\n    os.kill(os.getpid(), 9)\n")
    code = """
from nbutils.support.workers import run_tasks
try:
    print(sorted(result for _, result in run_tasks(str.upper, ["a", "b"], jobs=2, preload=["deadly"])))
except ChildProcessError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert words in done.stdout, done.stderr
    assert done.stderr == ""
