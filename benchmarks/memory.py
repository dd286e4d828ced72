"""The memory that this process used at most, as Linux keeps it; for scripts that run in a process of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def forget_peak() -> float:
    """Let :func:`peak` be of what comes from here on; returns the MiB in use now."""
    Path("/proc/self/clear_refs").write_text("5")
    return _mib("VmRSS")


def peak() -> float:
    """The most MiB that were in use at once, since the start or since :func:`forget_peak`."""
    return _mib("VmHWM")


def _mib(name: str) -> float:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) / 1024


def with_peak(task: Callable[[Any], Any], item: Any) -> tuple[Any, float]:
    """A task's result, and the largest memory of its process; here, where a worker has little to import for it."""
    return task(item), peak()
