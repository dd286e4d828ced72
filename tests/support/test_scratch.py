from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from nbutils.support.files import clear_stale, scratch_folder


@pytest.fixture
def own_temp(monkeypatch):
    with tempfile.TemporaryDirectory() as folder:  # short, unlike tmp_path: long ones are passed over
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield Path(folder)


def age(folder, seconds=60):
    then = time.time() - seconds
    os.utime(folder, (then, then))


def test_folders_disappear_even_after_an_exception(own_temp):
    def fail() -> None:
        with scratch_folder() as folder:
            assert folder.stat().st_mode & 0o077 == 0, "for this user alone"
            (folder / "file").write_text("x")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not list(own_temp.iterdir())


def test_folders_in_use_stay_and_those_of_killed_owners_go(own_temp):
    code = "import os, signal\nfrom nbutils.support.files import scratch_folder\n"
    code += "with scratch_folder() as f: print(f, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip()
    assert os.path.isdir(left)
    with scratch_folder() as mine:
        age(mine)
        assert clear_stale() == 0, "too young to tell"
        age(left)
        assert clear_stale() == 1
        assert mine.exists()
        assert not os.path.exists(left)


def test_a_folder_of_somebody_else_is_refused(own_temp):
    target = own_temp / "theirs"
    target.mkdir()
    (own_temp / f"nbutils-{os.getuid()}").symlink_to(target)
    with pytest.raises(PermissionError, match="belongs to somebody else"), scratch_folder():
        pass


def test_a_long_temporary_folder_is_passed_over_because_sockets_need_short_paths(tmp_path, monkeypatch):
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with scratch_folder() as folder:
        assert len(str(folder)) < 95


@pytest.mark.parametrize("length", range(40, 100, 4))
def test_a_socket_fits_into_the_folder_whatever_the_length_of_the_temporary_one(length, monkeypatch):
    with tempfile.TemporaryDirectory(prefix="", dir="/tmp") as parent:
        temporary = Path(parent) / ("t" * (length - len(parent) - 1))
        temporary.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        with scratch_folder() as folder, socket.socket(socket.AF_UNIX) as listening:
            longest = len(f"{2**22}-") - len(f"{os.getpid()}-")  # of a process with the highest number
            listening.bind(str(folder / ("listener-" + "x" * (8 + longest))))


def test_a_folder_is_removed_although_others_still_write(monkeypatch, own_temp):
    """Processes that are being ended: the last one of three files comes after two attempts."""
    remove, late = shutil.rmtree, ["second", "third"]

    def race(folder, **options):
        remove(folder, **options)
        if late:
            folder.mkdir()
            (folder / late.pop()).touch()

    monkeypatch.setattr("shutil.rmtree", race)
    with scratch_folder() as folder:
        (folder / "first").touch()
    assert not late
    assert not folder.exists()
