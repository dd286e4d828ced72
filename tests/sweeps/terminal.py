"""A command in a terminal of its own: keys are pressed, and what stands on the screen is read."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psutil

CTRL_C = b"\x03"
HIDE = "\x1b[?25l"  # the cursor
BAR = " running, "


class Terminal:
    """`python -m nbutils` in the foreground of a terminal; a key reaches the whole process group, as a person's."""

    def __init__(self, folder: Path, temporary: Path, arguments: Sequence[object]) -> None:
        self.tag, self.screen = uuid4().hex, ""
        self.master, slave = pty.openpty()

        def own_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell are born deaf to it
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and what `nohup` started to this

        self.process = subprocess.Popen(
            [sys.executable, "-m", "nbutils", *map(str, arguments)],
            cwd=folder,
            env={**os.environ, "TERM": "xterm", "SWEEP_TAG": self.tag, "TMPDIR": str(temporary)},
            start_new_session=True,
            preexec_fn=own_terminal,
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)

    def press(self, key: bytes) -> None:
        """Press a key."""
        os.write(self.master, key)

    def read(self, until: Callable[[], object], seconds: float = 120) -> bool:
        """Take in what appears, until something is true or the terminal is left; whether it came true in time."""
        deadline = time.monotonic() + seconds
        while not until() and time.monotonic() < deadline:
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.screen += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:  # everybody has left it
                    break
        return bool(until())

    def finish(self, seconds: float = 60) -> int:
        """Wait for the end; the exit code."""
        self.read(lambda: self.process.poll() is not None, seconds)
        code = self.process.wait(seconds)
        self.read(lambda: False, 0.5)
        os.close(self.master)
        return code

    def family(self) -> list[psutil.Process]:
        """Every living process that the command started, wherever it hangs in the tree."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("SWEEP_TAG") == self.tag and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found
