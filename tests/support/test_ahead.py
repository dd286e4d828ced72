"""Compiling ahead: once, in a process that ends with the work, with its parent, and not where one process computes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from nbutils.support import ahead

START = """
import sys
import nbutils.communities
from nbutils.support import ahead
process = ahead._STARTED.get("nbutils._leiden")
print(process and process.pid, flush=True)
"""
WAIT = """
ahead.wait_for_compiled("nbutils._leiden")
print(process and process.returncode, ahead.is_compiled("nbutils._leiden", "_search"))
import numpy as np
import nbutils as nb
two_triangles = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3))
print(nb.detect_communities(two_triangles).modularity)
"""


def begin(script: str, cache: object, jobs: int = 2) -> subprocess.Popen[str]:
    surroundings = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "NBUTILS_JOBS": str(jobs)}
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=surroundings)


@pytest.mark.release
@pytest.mark.slow(10)
def test_compiled_once_and_found_again(tmp_path):
    first, *rest = begin(START + WAIT, tmp_path).communicate(timeout=120)[0].split("\n")
    assert int(first)
    assert rest == ["0 True", "0.5", ""]
    assert not psutil.pid_exists(int(first))
    assert begin(START + WAIT, tmp_path).communicate(timeout=120)[0].split("\n") == ["None", "None True", "0.5", ""]
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix not in (".nbi", ".nbc")]


@pytest.mark.parametrize("way", ["done", "killed"])
def test_it_ends_with_the_process_that_began_it(tmp_path, way):
    parent = begin(START if way == "done" else f"{START}sys.stdin.read()\nwhile True: pass", tmp_path)
    other = int(parent.stdout.readline())
    if way == "killed":
        os.kill(parent.pid, signal.SIGKILL)
    parent.wait(60)
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while not is_gone(other):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_gone(process: int) -> bool:
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_not_where_one_process_should_compute(tmp_path):
    assert begin(START, tmp_path, jobs=1).communicate(timeout=60)[0] == "None\n"


def test_what_is_compiled_is_told_by_what_numba_keeps(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert ahead.is_compiled("nbutils._leiden", "_search") is False
    kept = tmp_path / "x" / f"_leiden._search-1.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    kept.parent.mkdir()
    kept.touch()
    assert ahead.is_compiled("nbutils._leiden", "_search") is True
    os.utime(kept, (0, 0))
    assert ahead.is_compiled("nbutils._leiden", "_search") is False, "the source was written since"
