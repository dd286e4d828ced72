"""Files that are there whole or not at all, and temporary folders that never stay behind."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.util import Finalize
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from filelock import FileLock, Timeout

if TYPE_CHECKING:
    import pandas as pd


def read_parquet(path: Path) -> pd.DataFrame:
    """A table from a parquet file, read without pyarrow's own threads: a process that ends while they start aborts."""
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path, use_threads=False, pre_buffer=False).to_pandas(use_threads=False)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; leaves a file alone that already holds the content."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    for stale in path.parent.glob(f".{path.name}.*.part"):  # of a writer that was killed
        writer = stale.name.split(".")[-2].split("-")[0]
        if writer.isdigit() and not process_exists(int(writer)):
            stale.unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{uuid4().hex[:8]}.part")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def file_digest(path: Path) -> str:
    """16 hexadecimal digits that change with the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def process_exists(pid: int) -> bool:
    """Whether this machine has a process of that number.

    Examples:
        >>> process_exists(os.getpid())
        True
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists and belongs to somebody else
        return True
    return True


def is_file(path: Path) -> bool:
    """Whether there is a file of this name; no file has a name that no system can hold.

    Args:
        path: where it would be.

    Examples:
        >>> is_file(Path("x" * 10_000))
        False
    """
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


LOCK = ".lock"
LONGEST = 60  # characters: the path of a socket may have 103, and two names of 17 and 18 follow
FRESH_SECONDS = 10  # a folder younger than this may not have taken its lock yet

PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 0)  # seconds between attempts to remove a folder


_owned: dict[int, Path] = {}  # folder of this process, by its number: a forked child inherits the dictionary


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder, short enough a path for sockets, readable by this user alone; removed at the end.

    Yields:
        The folder. It holds a lock that dies with this process, by which :func:`clear_stale` knows it is in use.

    Examples:
        >>> with scratch_folder() as folder:
        ...     folder.is_dir()
        True
        >>> folder.exists()
        False
    """
    clear_stale()
    folder = _new_folder()
    try:
        with FileLock(folder / LOCK):
            yield folder
    finally:
        remove_folder(folder)


def process_folder() -> Path:
    """A scratch folder that lasts as long as this process; made when first asked for. Not on Windows.

    A process that ends in order removes it; the folder of a killed one goes with :func:`clear_stale`.
    """
    import fcntl

    pid = os.getpid()
    if pid not in _owned:
        clear_stale()
        folder = _new_folder()
        # Not a FileLock: a forked child that tidied up its copy would open it for the parent, too.
        fcntl.flock(os.open(folder / LOCK, os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
        _owned[pid] = folder
        Finalize(None, remove_folder, args=(folder,), exitpriority=-200)  # does nothing in a forked child
    return _owned[pid]


def clear_stale() -> int:
    """Remove folders whose owners are gone; returns how many."""
    removed, folders = 0, []
    with suppress(FileNotFoundError):  # as in `_new_folder`
        folders = list(_base().iterdir())
    for folder in folders:
        with suppress(OSError, Timeout):
            if time.time() - folder.stat().st_mtime < FRESH_SECONDS:
                continue
            with FileLock(folder / LOCK, timeout=0):
                remove_folder(folder)
                removed += 1
    _remove_if_empty()
    return removed


def clear_after(pid: int) -> None:
    """Remove the folders of a process that this one has killed, at once."""
    with suppress(OSError):
        for folder in list(_base().glob(f"{pid}-*")):
            remove_folder(folder)
    _remove_if_empty()


def remove_folder(folder: Path) -> None:
    """Remove a scratch folder, and the folder of all of them if it was the last.

    Processes that are just being ended may still write into it: it is tried again for a moment.
    """
    for pause in PAUSES:
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            break
        time.sleep(pause)
    with suppress(OSError):
        folder.parent.rmdir()


def _remove_if_empty() -> None:
    with suppress(OSError):
        _base().rmdir()


def _new_folder() -> Path:
    for _ in range(100):
        with suppress(FileNotFoundError):  # somebody else's was the last, and the parent went with it
            return Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=_base()))
    raise FileNotFoundError(f"no temporary folder can be made in {tempfile.gettempdir()}")


def _base() -> Path:
    """The parent of all scratch folders of this user; nobody else's, whatever lies in the shared temporary folder."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    base = Path(tempfile.gettempdir()) / f"nbutils-{user}"
    if len(str(base)) > LONGEST and Path("/tmp").is_dir():
        base = Path("/tmp") / base.name
    base.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and (base.is_symlink() or base.stat().st_uid != user):
        raise PermissionError(f"{base} belongs to somebody else; set TMPDIR to a folder of your own")
    return base


def project_folder(holds: Path) -> Path:
    """The project's folder, seen from itself, from its notebooks or from the package: the first that holds a folder.

    Examples:
        >>> (project_folder(Path("book/results")) / "book/results").is_dir()
        True
    """
    return next((place for place in (Path(), Path("..")) if (place / holds).is_dir()), Path(__file__).parents[2])
