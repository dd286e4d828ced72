"""Ctrl-C and requests to end: the first one stops the work, later ones do not disturb the tidying up."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 10  # seconds for tidying up, before another Ctrl-C ends the process at once
ANEW = 0.01  # seconds until an interrupt is tried again that nothing above could catch
ALL_KEPT = "everything finished so far is kept"
SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


class Terminated(KeyboardInterrupt):
    """A request to end that did not come from the keyboard.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Let the first Ctrl-C or request to end raise, and let later ones pass while things are put in order.

    After an interrupt the signals stay harmless, for the end of the process takes a moment, too. One that arrives in a
    callback of the interpreter (``__del__``, a weak reference's), where exceptions are printed and dropped, is raised
    again a moment later.

    Raises:
        KeyboardInterrupt: for Ctrl-C; :class:`Terminated` for a request to end.
    """
    if threading.current_thread() is not threading.main_thread():  # others cannot handle signals
        yield
        return
    first: list[float] = []
    raised: list[KeyboardInterrupt] = []
    hook = sys.unraisablehook

    def stop(number: int, _frame: Any) -> None:
        if not first:
            first.append(time.monotonic())
            raised.append(KeyboardInterrupt() if number == signal.SIGINT else Terminated(number))
            raise raised[-1]
        if time.monotonic() - first[0] > PATIENCE:
            os._exit(128 + number)

    def dropped(what: Any) -> None:
        if any(what.exc_value is each for each in raised):
            first.clear()
            number = getattr(what.exc_value, "number", signal.SIGINT)
            threading.Timer(ANEW, os.kill, (os.getpid(), number)).start()  # raised here, it would be dropped as well
        else:
            hook(what)

    sys.unraisablehook = dropped
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:  # as `nohup` wants it
            signal.signal(number, stop)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            # The interpreter gives signals back to the system at its very end, where another one would kill; not these.
            signal.signal(number, signal.SIG_IGN if first else signal.SIG_DFL if handler is None else handler)


def stopped(reason: KeyboardInterrupt, kept: str = ALL_KEPT) -> int:
    """Say that the work was stopped, and what of it is kept; return the exit code."""
    word = "ended from outside" if isinstance(reason, Terminated) else "interrupted"
    print(f"\n{word}; {kept}", file=sys.stderr)
    return 128 + (reason.number if isinstance(reason, Terminated) else signal.SIGINT)
