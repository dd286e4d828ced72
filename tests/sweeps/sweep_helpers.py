"""What tests of running sweeps share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psutil

# Records without importing nbutils, so that a notebook costs little: x + y under "sum".
RECORD = """
from IPython.display import display
row = {"metric": "sum", "value": x + y + seed, "text": "", "unit": ""}
display({"application/vnd.nbutils.measurement+json": row, "text/plain": ""}, raw=True)
"""


def log(folder: Path) -> str:
    """A cell that notes that it was executed, for which point, in which process."""
    return f"""
import os
with open({str(folder / "log.txt")!r}, "a") as file:
    file.write(f"{{x}} {{seed}} {{os.getpid()}}\\n")
"""


def executed(folder: Path) -> list[tuple[int, int]]:
    """(x, seed) of every execution so far."""
    file = folder / "log.txt"
    rows = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return [(int(x), int(seed)) for x, seed, _ in rows]


def wait_for(condition: Callable[[], object], seconds: float = 120) -> bool:
    """Whether a condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(condition())


def listen_to_interrupts() -> None:
    """Background jobs of a shell are born deaf to them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Driver:
    """A sweep in a process of its own, with the processes that belong to it."""

    def __init__(self, folder: Path, arguments: Sequence[object]) -> None:
        self.tag = uuid4().hex
        environment = {**os.environ, "SWEEP_TAG": self.tag, "TMPDIR": str(folder / "tmp")}
        (folder / "tmp").mkdir(exist_ok=True)
        command = [sys.executable, "-m", "nbutils", "sweep", *map(str, arguments)]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            start_new_session=True,
            preexec_fn=listen_to_interrupts,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def family(self) -> list[psutil.Process]:
        """Every living process that this sweep started, wherever it hangs in the tree."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                mine = process.environ().get("SWEEP_TAG") == self.tag
                if mine and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def below(self, depth: int) -> list[psutil.Process]:
        """Processes so many levels below: 2 are workers, 3 are kernels."""
        level = [psutil.Process(self.process.pid)]
        for _ in range(depth):
            level = [child for parent in level for child in _children(parent)]
        return level

    def finish(self, timeout: float = 300) -> tuple[int, str]:
        """Exit code and output."""
        text, _ = self.process.communicate(timeout=timeout)
        return self.process.returncode, text


def _children(parent: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.Error):
        return parent.children()
    return []
