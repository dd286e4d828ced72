from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from nbutils.support.store import Store

A, B = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture
def store(tmp_path) -> Store:
    return Store("things", tmp_path)


def test_what_goes_in_comes_out(store, rng):
    values = {"x": rng.normal(size=(3, 4)), "y": np.arange(5)}
    store.write(A, {"n": 1, "nan": float("nan")}, group=values, other={"z": np.ones(2)})
    record = store.read(A)
    assert record["n"] == 1
    assert set(record["files"]) == {"group.npz", "other.npz"}
    found = store.arrays(A, "group")
    assert all((found[k] == values[k]).all() for k in values)
    assert store.addresses() == [A]
    assert store.read(B) is None


def test_first_writer_wins_and_nothing_is_left_over(store):
    store.write(A, {"n": 1})
    store.write(A, {"n": 2})
    assert store.read(A)["n"] == 1
    assert not list(store.folder.glob(".writing-*"))


@pytest.mark.parametrize("address", ["../../etc/passwd", "x" * 16, A.upper(), A + "0", "", "0123456789abcde/"])
def test_an_address_cannot_leave_the_store(store, address):
    with pytest.raises(ValueError, match="16 hexadecimal digits"):
        store.read(address)


def damage_truncate(path):
    file = path / "group.npz"
    file.write_bytes(file.read_bytes()[:-20])


def damage_flip(path):
    file = path / "group.npz"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


def damage_missing(path):
    (path / "group.npz").unlink()


def damage_record(path):
    (path / "record.json").write_text('{"n": 1, "fil')


def damage_empty_record(path):
    (path / "record.json").write_text("[]")


@pytest.mark.parametrize("damage", [damage_truncate, damage_flip, damage_missing, damage_record, damage_empty_record])
def test_damage_is_noticed_and_set_aside(store, rng, damage):
    store.write(A, {"n": 1}, group={"x": rng.normal(size=1000)})
    damage(store.path(A))
    with pytest.warns(RuntimeWarning, match=f"stored result {A} is damaged"):  # noqa: PT031
        if store.read(A) is not None:
            with pytest.raises(OSError, match="has been set aside; ask for it again"):
                store.arrays(A, "group")
    assert store.read(A) is None
    store.write(A, {"n": 2}, group={"x": np.ones(3)})
    assert store.arrays(A, "group")["x"].sum() == 3


@pytest.mark.filterwarnings("ignore:stored result")
def test_a_flipped_bit_is_never_an_error_of_a_library(store, rng):
    values = {"x": rng.normal(size=(30, 4)), "y": np.arange(50)}
    store.write(A, {"n": 1}, group=values, plain={"plain": values["x"]})
    good = {path.name: path.read_bytes() for path in store.path(A).iterdir()}
    record, noticed = store.read(A), 0
    for name, last in (
        ("group.npz", len(good["group.npz"])),
        ("plain.npy", 128),
        ("plain.npy", len(good["plain.npy"])),
    ):
        for place in rng.integers(last, size=150):
            store.path(A).mkdir(parents=True, exist_ok=True)
            for file, content in good.items():
                (store.path(A) / file).write_bytes(content)
            bad = bytearray(good[name])
            bad[place] ^= 1 << int(rng.integers(8))
            (store.path(A) / name).write_bytes(bytes(bad))
            try:
                found = store.arrays(A, "group") if name == "group.npz" else {"x": store.mapped(A, "plain", record)}
            except OSError:
                noticed += 1
            else:
                assert all(np.array_equal(found[key], values[key]) for key in found)
    assert noticed > 350


def test_pickles_are_not_executed(store, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "boom"),))

    store.write(A, {"n": 1}, group={"x": np.ones(2)})
    np.savez(store.path(A) / "group.npz", x=np.array([Bomb()], dtype=object))
    with pytest.raises(OSError, match="damaged"), pytest.warns(RuntimeWarning, match="damaged"):
        store.arrays(A, "group")
    assert not (tmp_path / "boom").exists()


def test_a_record_nested_without_end_is_damaged(store):
    store.write(A, {"n": 1})
    (store.path(A) / "record.json").write_text("[" * 100_000)
    with pytest.warns(RuntimeWarning, match="is damaged"):
        assert store.read(A) is None


def test_a_failed_write_leaves_nothing(store, monkeypatch):
    def full_disk(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="No space left"):
        store.write(A, {"n": 1}, group={"x": np.ones(2)})
    assert store.read(A) is None
    assert not list(store.folder.glob(".writing-*"))


HOLDER = """
    import sys, time
    from nbutils.support.store import Store
    with Store("things", sys.argv[1]).lock("{address}"):
        print("held", flush=True)
        time.sleep(60)
"""


def test_a_lock_waits_for_its_holder_and_is_freed_when_that_dies(store, tmp_path):
    code = textwrap.dedent(HOLDER.format(address=A))
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with store.lock(B):  # another address is free
            pass
        waiter = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        time.sleep(1.5)
        assert waiter.poll() is None
        holder.send_signal(signal.SIGKILL)
        assert waiter.stdout.readline() == "held\n"
        waiter.kill()
        waiter.wait()
    finally:
        holder.kill()
        holder.wait()


def test_records_are_plain_json(store):
    store.write(A, {"spec": {"seed": 3}})
    assert json.loads((store.path(A) / "record.json").read_text())["spec"] == {"seed": 3}


def test_the_folder_can_be_named(monkeypatch, tmp_path):
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "a folder"))
    assert Store("runs").folder == tmp_path / "a folder" / "runs"


@pytest.mark.parametrize("where", ["a file", "a file/below"])
def test_a_folder_that_cannot_be_made_is_named_with_what_to_do(tmp_path, where):
    (tmp_path / "a file").write_text("")
    store, advice = Store("things", tmp_path / where), "results cannot be kept in .*set NBUTILS_STORE to a folder"
    with pytest.raises(OSError, match=advice):
        store.write(A, {})
    with pytest.raises(OSError, match=advice), store.lock(A):
        pass


def test_a_result_that_cannot_be_read_just_now_is_kept(store, monkeypatch):
    store.write(A, {"n": 1})

    def refused(path):
        raise OSError(errno.EIO, "Input/output error", str(path))

    with monkeypatch.context() as patched:
        for name in ("read_bytes", "read_text", "open"):
            patched.setattr(Path, name, lambda path, *_, **__: refused(path))
        with pytest.raises(OSError, match="Input/output error"):
            store.read(A)
    assert store.read(A)["n"] == 1
