"""Progress of long work: a bar that renews itself in a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from nbutils.support.messages import told


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

    Args:
        total: pieces of work.
        cached: how many of them were there already.
        slots: how many run at the same time.
        what: plural noun for the pieces.
        console: where to write; None means standard output.
    """

    def __init__(self, total: int, cached: int, slots: int, what: str = "runs", console: Console | None = None) -> None:
        self.total, self.cached, self.slots, self.what = total, cached, slots, what
        self.finished = self.failed = 0
        self._start, self._tenth = time.monotonic(), 0
        self._console = console or Console(file=sys.stdout, highlight=False, soft_wrap=True)
        columns = SpinnerColumn(), BarColumn(), TextColumn("{task.description}")
        live = self._console.is_terminal and total > cached
        self._bar = Progress(*columns, console=self._console, transient=True) if live else None
        self._task = self._bar.add_task("", total=total) if self._bar else None

    def __enter__(self) -> Reporter:
        if self._bar:
            self._bar.start()
        self._show()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()

    def one(self, name: str, problem: str = "") -> None:
        """One piece is over; `problem` says why it failed."""
        self.failed += bool(problem)
        self.finished += not problem
        if problem:
            self._console.print(told(f"  failed: {name}: {problem}"), markup=False)
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
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=self.cached + self.finished + self.failed, description=self.line)
            return
        work = self.total - self.cached
        tenth = (self.finished + self.failed) * 10 // work if work else 0
        if work and tenth > self._tenth:
            self._tenth = tenth
            self._console.print(f"  {self.line}", markup=False)


class Counting:
    """A :class:`Reporter` for work that says (finished, total): call it with them, in a `with` block.

    Args:
        slots: how many pieces run at the same time.
    """

    def __init__(self, slots: int) -> None:
        self._slots, self._reporter, self._seen = slots, None, 0

    def __enter__(self) -> Counting:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._reporter is not None:
            self._reporter.__exit__(kind, error, trace)

    def __call__(self, finished: int, total: int) -> None:
        if self._reporter is None:
            self._reporter = Reporter(total, 0, self._slots)
            self._reporter.__enter__()  # known by now, so that an interrupt in between finds it
        for _ in range(finished - self._seen):
            self._reporter.one("")
        self._seen = finished
        if finished == total:
            self.__exit__(None, None, None)
