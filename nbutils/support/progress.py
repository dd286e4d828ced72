"""Progress of long work: a bar that renews itself in a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from shutil import get_terminal_size
from types import TracebackType
from typing import TextIO

from tqdm import tqdm

from nbutils.support.messages import told

tqdm.monitor_interval = 0  # no thread of its own beside workers that are started meanwhile
tqdm.set_lock(threading.RLock())  # nor a semaphore of the system


def duration(seconds: float) -> str:
    """Seconds for a reader.

    Examples:
        >>> duration(9.4), duration(75), duration(7300)
        ('9 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Reporter:
    """Tells how far some work is: finished, running, failed, cached, and the time that is left.

    In a terminal a bar renews itself; elsewhere there is a line per tenth of the work. Failures get a line at once.
    Work that counts its own pieces calls it with (finished, total).

    Args:
        slots: how many pieces run at the same time.
        total: pieces of work, if it is known.
        cached: how many of them were there already.
        what: plural noun for the pieces.
        file: where to write; None means standard output.
    """

    def __init__(
        self, slots: int, total: int = 0, cached: int = 0, what: str = "runs", file: TextIO | None = None
    ) -> None:
        self.slots, self.total, self.cached, self.what = slots, total, cached, what
        self.finished = self.failed = 0
        self._file, self._start, self._tenth = file or sys.stdout, time.monotonic(), 0
        self._bar: tqdm | None = None

    def __enter__(self) -> Reporter:
        self._show()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, finished: int, total: int) -> None:
        """So many of so many pieces are finished."""
        self.finished, self.total = finished, total
        self._show()

    def one(self, name: str, problem: str = "") -> None:
        """One piece is over; `problem` says why it failed."""
        self.failed += bool(problem)
        self.finished += not problem
        if problem:
            self._print(told(f"failed: {name}: {problem}"))
        self._show()

    @property
    def line(self) -> str:
        """Where the work stands, as one line."""
        over = self.cached + self.finished + self.failed
        left = self.total - over
        running = min(self.slots, left)
        counts = f"{over}/{self.total} {self.what}"
        details = [f"{self.finished} finished", f"{running} running", f"{self.failed} failed", f"{self.cached} cached"]
        return f"{counts}: {', '.join(details)}, {self._remaining(left)}"

    def _remaining(self, left: int) -> str:
        passed, fresh = time.monotonic() - self._start, self.finished + self.failed
        if not left:
            return f"took {duration(passed)}"
        return f"about {duration(passed / fresh * left)} left" if fresh else "starting"

    def _show(self) -> None:
        over, work = self.finished + self.failed, self.total - self.cached
        if not work:
            return
        if self._file.isatty():
            if self._bar is None:
                self._bar = tqdm(total=self.total, file=self._file, nrows=9, bar_format="{desc} {bar}", leave=False)
            self._bar.n, self._bar.ncols = self.cached + over, get_terminal_size().columns
            self._bar.set_description_str(self.line)
        elif (tenth := over * 10 // work) > self._tenth:
            self._tenth = tenth
            self._print(self.line)

    def _print(self, text: str) -> None:
        tqdm.write(f"  {text}", self._file)
        self._file.flush()
