from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nbutils.support.files import process_exists, replace_file


def test_a_file_is_replaced_whole_and_left_alone_if_equal(tmp_path):
    file = tmp_path / "deep" / "file.txt"
    replace_file(file, b"one")
    before = file.stat().st_ino
    replace_file(file, b"one")
    assert file.stat().st_ino == before
    replace_file(file, b"two")
    assert file.read_bytes() == b"two"
    assert [p.name for p in file.parent.iterdir()] == ["file.txt"]


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path, monkeypatch):
    file = tmp_path / "file.txt"
    replace_file(file, b"old")

    def full(self, _content):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


def test_parts_of_killed_writers_go_and_those_of_living_ones_stay(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    assert not process_exists(dead.pid)
    (tmp_path / f".file.txt.{dead.pid}-0123.part").touch()
    living = tmp_path / f".file.txt.{os.getppid()}-0123.part"
    living.touch()
    replace_file(tmp_path / "file.txt", b"x")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([living.name, "file.txt"])
