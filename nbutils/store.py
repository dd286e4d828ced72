"""The store: one folder per result, named by what determines it, whole or absent, never half."""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from filelock import FileLock
from platformdirs import user_cache_path

__all__ = ["Store", "store_folder"]

RECORD = "record.json"
ADDRESS = re.compile(r"[0-9a-f]{16}")


def store_folder() -> Path:
    """Where results are kept: the folder NBUTILS_STORE names, else `neuron-communities/store` in the user's cache."""
    named = os.environ.get("NBUTILS_STORE")
    return Path(named).expanduser() if named else user_cache_path("neuron-communities") / "store"


class Store:
    """Results by address: a JSON record and, beside it, arrays.

    Written to a temporary folder first and renamed when complete, so a reader never sees half of it and a crash or a
    full disk leaves nothing under an address. Arrays are read without executing code (`allow_pickle=False`).

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
        return sorted(p.parent.name for p in self.folder.glob(f"*/*/{RECORD}") if ADDRESS.fullmatch(p.parent.name))

    def read(self, address: str) -> dict[str, Any] | None:
        """The record at an address; None if there is none. A damaged result is set aside with a warning, and None."""
        path = self.path(address)
        if not path.exists():  # complete folders appear at once, by a rename
            return None
        try:
            record = json.loads((path / RECORD).read_text("utf-8"))
            for name, size in record["files"].items():
                if (path / name).stat().st_size != size:
                    raise ValueError(f"{name} has the wrong size")
            return record
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            self.discard(address, f"is damaged ({error})")
            return None

    def arrays(self, address: str, name: str) -> dict[str, np.ndarray]:
        """The arrays stored under a name at an address.

        Raises:
            OSError: they cannot be read; the result is set aside, so that asking again computes it anew.
        """
        try:
            with np.load(self.path(address) / f"{name}.npz", allow_pickle=False) as file:
                return {key: file[key] for key in file.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            self.discard(address, f"is damaged ({error})")
            raise OSError(f"stored result {address} was damaged and has been set aside; ask for it again") from error

    def write(self, address: str, record: dict[str, Any], **arrays: dict[str, np.ndarray]) -> None:
        """Store a record with its groups of arrays; a complete result that is already there is kept."""
        path = self.path(address)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f".writing-{uuid4().hex}"
        temporary.mkdir()
        try:
            for name, group in arrays.items():
                np.savez_compressed(temporary / f"{name}.npz", **group)
            files = {f.name: f.stat().st_size for f in sorted(temporary.iterdir())}
            text = json.dumps({**record, "files": files}, indent=1, allow_nan=True)
            (temporary / RECORD).write_text(text, "utf-8")
            if self.read(address) is None:
                temporary.rename(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    @contextmanager
    def lock(self, address: str) -> Iterator[None]:
        """Hold an address: a second process that wants it waits here, then finds it done. Freed if its holder dies."""
        folder = self.folder / ".locks"
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{self.path(address).name}.lock"):
            yield

    def discard(self, address: str, reason: str) -> None:
        """Take a result out of the way with a warning."""
        warnings.warn(f"stored result {address} {reason}; it will be computed again", RuntimeWarning, stacklevel=3)
        shutil.rmtree(self.path(address), ignore_errors=True)
