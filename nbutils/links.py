"""Links of a notebook that is written elsewhere than it was read."""

from __future__ import annotations

import os
import re
from pathlib import Path

from nbutils.lean import nbformat

__all__ = ["relinked"]

TARGET = re.compile(r"(?<=\]\()([^)\s#]+)")


def relinked(notebook: str, source: Path, target: Path) -> str:
    """The notebook with its relative links to files leading to the same files from another folder.

    Args:
        notebook: text of the notebook.
        source: folder where it was written.
        target: folder where it will lie.

    Returns:
        Text of the notebook; links to other places, and to nothing, stay as they are.
    """
    page = nbformat.reads(notebook, as_version=4)

    def moved(match: re.Match[str]) -> str:
        file = source / match[1]
        return Path(os.path.relpath(file, target)).as_posix() if file.exists() else match[1]

    for cell in page.cells:
        if cell.cell_type == "markdown":
            cell.source = TARGET.sub(moved, cell.source)
    return nbformat.writes(page)
