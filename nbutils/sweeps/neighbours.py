"""Modules that lie beside a notebook and are imported by it: code of its own, which no package knows."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import nbutils
from nbutils.support.files import file_digest
from nbutils.sweeps.lean import nbformat


def neighbour_code(text: str, folder: Path) -> tuple[str, ...]:
    """Digests of the modules beside a notebook that it imports, and of those beside it that they import.

    Args:
        text: of the notebook, in notebook format 4.
        folder: where it lies, and where its kernel works.

    Returns:
        A name and a digest for each file, sorted; of a package all its files count.

    Examples:
        >>> neighbour_code('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', Path())
        ()
    """
    notebook = nbformat.reads(text, as_version=4)
    waiting = [name for cell in notebook.cells if cell.cell_type == "code" for name in _imported(cell.source)]
    seen: set[str] = set()
    found: dict[str, str] = {}
    while waiting:
        name = waiting.pop()
        if name in seen or name == nbutils.__name__:  # of which only what is used counts, wherever it lies
            continue
        seen.add(name)
        for file in _files(folder, name):
            _forget_older(file)
            found[file.relative_to(folder).as_posix()] = file_digest(file)
            waiting += _imported(file.read_text("utf-8", "replace"))
    return tuple(f"{name} {digest}" for name, digest in sorted(found.items()))


def _files(folder: Path, name: str) -> list[Path]:
    file, package = folder / f"{name}.py", folder / name
    if file.is_file():
        return [file]
    return sorted(package.rglob("*.py")) if (package / "__init__.py").is_file() else []


def _forget_older(file: Path) -> None:
    """Remove what was compiled of a module before it was last written.

    Python itself compares size and whole seconds only, and would run the old code of a module that was changed twice
    within one.
    """
    with suppress(OSError):  # nothing compiled, or not ours to remove
        compiled = Path(cache_from_source(str(file)))
        if compiled.stat().st_mtime_ns <= file.stat().st_mtime_ns:
            compiled.unlink()


def _imported(source: str) -> Iterator[str]:
    """First part of every absolute import's name; of a cell with magics, of its other lines."""
    for statement in ast.walk(_tree(source)):
        if isinstance(statement, ast.Import):
            yield from _first(alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield from _first([statement.module])


def _first(names: Iterable[str]) -> Iterator[str]:
    return (name.partition(".")[0] for name in names)


def _tree(source: str) -> ast.Module:
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()]
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.parse("\n".join(lines))
    return ast.Module(body=[], type_ignores=[])
