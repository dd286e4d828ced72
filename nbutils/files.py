"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["is_file", "process_exists", "read_parquet", "replace_file"]


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
