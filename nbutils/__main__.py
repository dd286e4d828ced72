"""`python -m nbutils`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from nbutils.support.interrupts import one_interrupt, stopped


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. An interrupt ends it in order, also while modules are still imported."""
    try:
        with one_interrupt():
            from nbutils.cli import main

            return main(arguments)
    except KeyboardInterrupt as reason:
        return stopped(reason)


if __name__ == "__main__":
    warnings.formatwarning = lambda message, *_args, **_options: f"warning: {message}\n"  # without a line of code
    sys.exit(main())
