"""Ctrl-C in a real terminal, once and twice, and requests to end."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sweep_helpers import RECORD, executed, log, wait_for
from terminal import BAR, CTRL_C, HIDE, Terminal

from nbutils.support.store import Store
from nbutils.sweeps.tables import read_results

RELEASE = pytest.mark.release
pytestmark = pytest.mark.slow(5)
SLEEP = "import time\ntime.sleep(1.5)"


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A temporary folder, of a short path as sockets need it; nothing may be left in it."""
    with tempfile.TemporaryDirectory(prefix="t-") as name:
        yield Path(name)
        left = [path for path in Path(name).iterdir() if not path.name.startswith("torchinductor")]  # PyTorch's own
        assert not left, "temporary files left"


@pytest.fixture
def terminal(tmp_path: Path, temporary: Path) -> Iterator[Callable[..., Terminal]]:
    """Start a command in a terminal; no process may be left."""
    terminals: list[Terminal] = []

    def start(*arguments: object, folder: Path = tmp_path) -> Terminal:
        terminals.append(Terminal(folder, temporary, arguments))
        return terminals[-1]

    yield start
    for each in terminals:
        each.process.kill()  # does nothing to one that has ended
        assert wait_for(lambda each=each: not each.family(), 20), f"left over: {each.family()}"


def interrupt_twice(started: Terminal, pause: float = 0.1) -> None:
    for _ in range(2):
        started.press(CTRL_C)
        time.sleep(pause)
    assert started.finish() == 130, started.screen
    assert HIDE not in started.screen, "the cursor is hidden"
    assert started.screen.count("interrupted; everything finished so far is kept") == 1
    for word in ("Traceback", "Exception ignored", "KeyboardInterrupt"):
        assert word not in started.screen, started.screen


def sweep(write_notebook: Callable, write_sweep: Callable, folder: Path) -> Path:
    write_notebook(log(folder), SLEEP, RECORD)
    return write_sweep(grid={"x": list(range(20))}, fixed={"y": 0.5})


def test_a_sweep_is_interrupted_twice(write_notebook, write_sweep, terminal, tmp_path, own_store):
    started = terminal("sweep", sweep(write_notebook, write_sweep, tmp_path), "--jobs", 2)
    assert started.read(lambda: Store("notebooks").addresses())
    interrupt_twice(started)
    assert BAR in started.screen, "there was a bar"
    table = read_results(tmp_path / "runs/sweep/results.parquet")
    assert len(table) >= 1
    assert set(table["status"]) == {"done"}


@pytest.mark.parametrize("seconds", [pytest.param(0.4, marks=RELEASE), 1.5, pytest.param(3.0, marks=RELEASE)])
def test_a_sweep_is_interrupted_while_it_starts(seconds, write_notebook, write_sweep, terminal, tmp_path, own_store):
    """While modules are imported, by the command and by the server of its workers."""
    started = terminal("sweep", sweep(write_notebook, write_sweep, tmp_path), "--jobs", 2)
    started.read(lambda: False, seconds)
    interrupt_twice(started, 0.3)


@RELEASE
def test_training_is_interrupted_twice(terminal, own_store):
    started = terminal("run", "--datasets", "digits", "--seeds", 10, "--epochs", 300, "--jobs", 2)
    assert started.read(lambda: BAR in started.screen)
    started.read(lambda: False, 4)
    interrupt_twice(started)


@RELEASE
def test_pages_are_interrupted_twice(terminal, tmp_path, own_store, root):
    (tmp_path / "notebooks").symlink_to(root / "notebooks")
    page = "book/pages/digits/h1_communities"
    (tmp_path / "_toc.yml").write_text(f"format: jb-book\nroot: intro\nchapters:\n- file: {page}\n")
    started = terminal("pages", "--datasets", "digits", "--jobs", 2)
    assert started.read(lambda: BAR in started.screen)
    started.read(lambda: False, 1)
    interrupt_twice(started)


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, pytest.param(signal.SIGHUP, marks=RELEASE), pytest.param(signal.SIGKILL, marks=RELEASE)],
)
def test_a_sweep_ended_from_outside_leaves_nothing(
    number, write_notebook, write_sweep, terminal, temporary, tmp_path, own_store
):
    started = terminal("sweep", sweep(write_notebook, write_sweep, tmp_path), "--jobs", 2)
    assert started.read(lambda: executed(tmp_path))
    started.process.send_signal(number)
    code = started.finish()
    assert code == (-number if number == signal.SIGKILL else 128 + number), started.screen
    if number != signal.SIGKILL:
        assert "ended from outside; everything finished so far is kept" in started.screen
        assert "Traceback" not in started.screen
    assert wait_for(lambda: not started.family(), 20)
    assert not [path for path in temporary.rglob("*") if path.parent != temporary]
    for empty in temporary.iterdir():
        empty.rmdir()


def test_a_killed_worker_leaves_nothing(write_notebook, write_sweep, terminal, tmp_path, own_store):
    write_notebook(log(tmp_path), "import os, signal\nif x == 1: os.kill(os.getppid(), signal.SIGKILL)", RECORD)
    started = terminal("sweep", write_sweep(grid={"x": [1, 2]}, fixed={"y": 0.5}))
    assert started.finish(120) == 1
    assert "its process was killed by signal 9" in started.screen


def test_an_ignored_signal_stays_ignored(tmp_path):
    """As `nohup` wants it."""
    code = "import os, signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nfrom nbutils.support.interrupts import *\n"
    code += "with one_interrupt():\n    os.kill(os.getpid(), signal.SIGHUP)\nprint('still here')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "still here\n", done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_inside_a_callback_is_not_lost(number, tmp_path):
    """The interpreter prints and drops what a callback raises; the work would go on as if nobody had asked."""
    code = f"""
import os, signal, time, weakref
from nbutils.support.interrupts import *
signal.signal({number:d}, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C
class Thing: pass
def callback(_):
    os.kill(os.getpid(), {number:d})
    time.sleep(0.01)
thing = Thing()
reference = weakref.ref(thing, callback)
try:
    with one_interrupt():
        del thing
        time.sleep(30)
except KeyboardInterrupt as reason:
    raise SystemExit(stopped(reason))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=25)
    assert done.returncode == 128 + number, done.stderr
    assert done.stderr.strip().endswith("everything finished so far is kept")
    assert "ignored" not in done.stderr
