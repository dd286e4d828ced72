"""The store: one folder per result, named by what determines it, whole or absent, never half."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import shutil
import socket
import time
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tokenize import TokenError
from typing import Any
from uuid import uuid4

import numpy as np
from filelock import FileLock
from platformdirs import user_cache_path

from nbutils.support.files import process_exists, replace_file
from nbutils.support.provenance import digest_of

RECORD = "record.json"
WRITING = ".writing-"
STALE_SECONDS = 24 * 3600  # an unfinished folder of another machine this old has no living writer
ADDRESS = re.compile(r"[0-9a-f]{16}")
ENVIRONMENTS = "environments"
# What NumPy and the zip format raise for bytes that are not those that were written.
DAMAGE = (OSError, ValueError, EOFError, RuntimeError, SyntaxError, TokenError, zipfile.BadZipFile, zlib.error)
UNSIGNED = "0" * 64  # stands in a record for its digest while that is computed
_WHOLE: set[tuple[Any, ...]] = set()  # files that this process found to be what was written


def store_folder() -> Path:
    """Where results are kept: the folder NBUTILS_STORE names, else `neuron-communities/store` in the user's cache."""
    named = os.environ.get("NBUTILS_STORE")
    return Path(named).expanduser() if named else user_cache_path("neuron-communities") / "store"


class Store:
    """Results by address: a JSON record and, beside it, arrays.

    Written to a temporary folder first and renamed when complete, so a reader never sees half of it and a crash or a
    full disk leaves nothing under an address. A record holds the digest of its own text, so damage to any field is
    noticed; one without, as versions before wrote them, counts as absent. It also holds a checksum of every array that
    is mapped; those in groups have one in their file. Arrays are read without executing code (`allow_pickle=False`).
    Environments (see :func:`nbutils.support.provenance.environment`) that records name are remembered for all kinds.

    Args:
        kind: sub-folder, such as "runs".
        root: the store's folder; None means :func:`store_folder`.
    """

    def __init__(self, kind: str, root: Path | str | None = None) -> None:
        self.folder = (Path(root) if root is not None else store_folder()) / kind

    def path(self, address: str) -> Path:
        """Folder of an address; 16 hexadecimal digits, so that no name can leave the store."""
        if not ADDRESS.fullmatch(address):
            raise ValueError(f"address must be 16 hexadecimal digits, received {address!r}")
        return self.folder / address[:2] / address

    def addresses(self) -> list[str]:
        """All complete results, sorted."""
        return sorted(
            p.parent.name for p in self.folder.glob(f"[0-9a-f][0-9a-f]/*/{RECORD}") if ADDRESS.fullmatch(p.parent.name)
        )

    def read(self, address: str) -> dict[str, Any] | None:
        """The record at an address; None if there is none. A damaged result is removed with a warning, and None.

        Raises:
            OSError: it cannot be read just now, as over a network; what is there may be whole.
        """
        path = self.path(address)
        if not path.exists():  # complete folders appear at once, by a rename
            return None
        try:
            text = (path / RECORD).read_text("utf-8")
            record = json.loads(text)
            signature = record.pop("digest", None)
            if signature is None and "files" in record:
                return None
            if _digest(text.replace(str(signature), UNSIGNED, 1)) != signature:
                raise ValueError(f"{RECORD} is not the one that was written")
            for name, size in record["files"].items():
                if (path / name).stat().st_size != size:
                    raise ValueError(f"{name} has the wrong size")
            return record
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            if not path.exists():  # removed meanwhile
                return None
            self.discard(address, f"is damaged ({error})")
            return None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self.discard(address, f"is damaged ({error})")
            return None

    def arrays(self, address: str, name: str) -> dict[str, np.ndarray]:
        """The arrays stored under a name at an address.

        Raises:
            OSError: they cannot be read; the result is set aside, so that asking again computes it anew.
        """
        with self._reading(address), np.load(self.path(address) / f"{name}.npz", allow_pickle=False) as file:
            return {key: file[key] for key in file.files}

    def mapped(self, address: str, name: str, record: dict[str, Any]) -> np.ndarray:
        """An array that was stored plain, mapped from disk: processes share it, and only what is used is read.

        Its file is read once in each process to compare its checksum, at several GB/s, and again when it changes.
        Writing to the array changes this process's copy, never the file.

        Args:
            address: of the result.
            name: of the array.
            record: what :meth:`read` gave for this address.

        Raises:
            OSError: it cannot be read, or is not what was written; the result is set aside, so that asking again
                computes it anew.
        """
        path = self.path(address) / f"{name}.npy"
        with self._reading(address):
            _require_checksum(path, record.get("checksums", {}).get(path.name))
            return np.load(path, mmap_mode="c", allow_pickle=False)

    @contextmanager
    def _reading(self, address: str) -> Iterator[None]:
        """Set a result aside whose arrays cannot be read."""
        try:
            yield
        except DAMAGE as error:
            self.discard(address, f"is damaged ({error})")
            raise OSError(f"stored result {address} was damaged and has been set aside; ask for it again") from error

    def text(self, address: str, name: str) -> str:
        """A text stored under a name at an address.

        Raises:
            OSError: it cannot be read.
        """
        return (self.path(address) / name).read_text("utf-8")

    def write(
        self,
        address: str,
        record: dict[str, Any],
        *,
        texts: dict[str, str] | None = None,
        plain: dict[str, np.ndarray] | None = None,
        replace: bool = False,
        **arrays: dict[str, np.ndarray],
    ) -> None:
        """Store a record with its texts (by file name), plain arrays and groups of arrays (by name), all or nothing.

        A complete result that is already there is kept, unless it is to be replaced.
        """
        path = self.path(address)
        _make(path.parent)
        temporary = self.folder / f"{WRITING}{socket.gethostname()}-{os.getpid()}-{uuid4().hex[:8]}"
        temporary.mkdir()
        try:
            for name, group in arrays.items():
                np.savez_compressed(temporary / f"{name}.npz", **group)
            for name, array in (plain or {}).items():
                np.save(temporary / f"{name}.npy", array, allow_pickle=False)
            for name, text in (texts or {}).items():
                (temporary / name).write_text(text, "utf-8")
            files = {f.name: f.stat().st_size for f in sorted(temporary.iterdir())}
            whole = {"digest": ""} | record | {"digest": UNSIGNED, "files": files}  # it comes first
            if plain:
                whole["checksums"] = {f"{name}.npy": _checksum(temporary / f"{name}.npy") for name in plain}
            text = json.dumps(whole, indent=1, allow_nan=True)
            (temporary / RECORD).write_text(text.replace(UNSIGNED, _digest(text), 1), "utf-8")
            if "environment" in record:
                self._remember(record["environment"])
            if replace:
                shutil.rmtree(path, ignore_errors=True)
            if self.read(address) is None:
                shutil.rmtree(path, ignore_errors=True)  # of a version before, without a digest
                temporary.rename(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def environments(self) -> list[dict[str, Any]]:
        """In which environments results of this store were made, of whatever kind."""
        found = []
        for path in sorted((self.folder.parent / ENVIRONMENTS).glob("*.json")):
            with suppress(OSError, ValueError, RecursionError):
                found.append(json.loads(path.read_text("utf-8")))
        return [known for known in found if isinstance(known, dict)]

    def _remember(self, environment: dict[str, Any]) -> None:
        path = self.folder.parent / ENVIRONMENTS / f"{digest_of(environment)}.json"
        if not path.exists():
            replace_file(path, json.dumps(environment).encode())

    @contextmanager
    def lock(self, address: str) -> Iterator[None]:
        """Hold an address: a second process that wants it waits here, then finds it done. Freed if its holder dies."""
        folder = self.folder / ".locks"
        _make(folder)
        with FileLock(folder / f"{self.path(address).name}.lock"):
            yield

    def unfinished(self) -> list[Path]:
        """Folders of writers that were killed: dead processes of this machine, or anything a day old."""
        found = []
        for path in self.folder.glob(f"{WRITING}*"):
            host, _, pid = path.name.removeprefix(WRITING).rpartition("-")[0].rpartition("-")
            here = host == socket.gethostname() and pid.isdigit()
            if not process_exists(int(pid)) if here else time.time() - path.stat().st_mtime > STALE_SECONDS:
                found.append(path)
        return found

    def discard(self, address: str, reason: str) -> None:
        """Take a result out of the way with a warning."""
        warnings.warn(f"stored result {address} {reason}; it will be computed again", RuntimeWarning, stacklevel=3)
        shutil.rmtree(self.path(address), ignore_errors=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _checksum(path: Path) -> int:
    """CRC-32 of a file that is not empty."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return zlib.crc32(content)


def _require_checksum(path: Path, expected: int | None) -> None:
    """Refuse a file that is not what was written; one that is gets read once."""
    facts = path.stat()
    known = (str(path), expected, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_dev)
    if known in _WHOLE:
        return
    if expected is None or _checksum(path) != expected:
        raise ValueError(f"{path.name} is not what was written")
    _WHOLE.add(known)


def _make(folder: Path) -> None:
    """Make a folder of the store, with a word on what to do where that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        advice = "set NBUTILS_STORE to a folder that can be written"
        raise type(error)(f"results cannot be kept in {folder} ({reason}); {advice}") from None
