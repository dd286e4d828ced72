"""Cells of a page, on tables that a test makes up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.fixture(scope="session")
def cells() -> Callable[..., dict[str, Any]]:
    """Execute cells of a notebook as they stand, by their numbers in its ids; what was given, and what they define."""
    notebooks: dict[str, dict[str, str]] = {}

    def executed(page: str, /, *numbers: str, **given: Any) -> dict[str, Any]:
        if page not in notebooks:
            read = nbformat.read(FOLDER / f"{page}.ipynb", as_version=4).cells
            notebooks[page] = {cell.id: cell.source for cell in read if cell.cell_type == "code"}
        for number in numbers:
            name = f"{page.replace('_', '-')}-{number}"
            exec(compile(notebooks[page][name], name, "exec"), given)
        return given

    return executed
