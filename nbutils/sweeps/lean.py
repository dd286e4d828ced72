"""Imports without the slow parts of packages that are of no use here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["nbformat", "without"]


@contextmanager
def without(*missing: str, forget: str = "") -> Iterator[None]:
    """Inside, some modules cannot be imported, and packages that can do without them do.

    Args:
        missing: names of modules; those that are imported already stay available.
        forget: a package that is imported again, whole, when somebody else asks for it.

    Examples:
        >>> with without("turtle"):
        ...     import turtle
        Traceback (most recent call last):
        ModuleNotFoundError: import of turtle halted; None in sys.modules
    """
    hidden = [name for name in missing if name not in sys.modules]
    before = set(sys.modules)
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None means: not to be found
    try:
        yield
    finally:
        for name in hidden:
            sys.modules.pop(name, None)
        for name in set(sys.modules) - before:
            if forget and f"{name}.".startswith(f"{forget}."):
                del sys.modules[name]


# jsonschema compiles a grammar of internationalised addresses for two seconds, which no notebook's format needs.
with without("rfc3987_syntax", forget="jsonschema"):
    import nbformat
