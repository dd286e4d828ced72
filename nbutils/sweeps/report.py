"""A notebook as one HTML file with figures, readable without anything else: the report of a sweep, and other pages."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from nbutils.support.files import file_digest, replace_file
from nbutils.sweeps.engine import run_notebooks, runner
from nbutils.sweeps.execute import NotebookJob, Outcome
from nbutils.sweeps.lean import nbformat
from nbutils.sweeps.tables import check_metric, read_results

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


TEMPLATE = "sweep_report.ipynb"
PACKAGE = Path(__file__).parents[1]
BOOK_LINK = re.compile(r"\[([^\[\]\n]*)\]\(\.\./book/[^)\n]*\)")
SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
SHELL = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
@media (max-width: 600px) {{ .nb-wide {{ display: none }} .nb-narrow {{ display: block !important }} }}
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
h1, p, li, figcaption, .nb-callout {{ overflow-wrap: anywhere; }}
table {{ border-collapse: collapse; font-size: .92em; }}
th, td {{ padding: .25em .8em; border-bottom: 1px solid #74746855; }}
td:first-child {{ min-width: 9em; }}
blockquote {{ margin: 1em 0; padding: .3em 1em; border-left: 4px solid #747468; }}
figcaption {{ font-size: .92em; opacity: .85; }}
figure {{ margin: 1em 0; }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def packaged_template(name: str) -> Path:
    """A page's notebook: in the project's folder if this is one, else the one that came with the package."""
    here = [Path("notebooks")] if Path("_toc.yml").is_file() else []  # a folder of that name may be anybody's
    places = [*here, PACKAGE / "notebooks", PACKAGE.parent / "notebooks"]
    return next((place / name for place in places if (place / name).is_file()), places[0] / name)


def write_report(results: Path, metric: str = "", template: Path | None = None) -> Path:
    """Execute the report over a table of results and put `report.ipynb` and `report.html` beside it.

    Args:
        results: `results.parquet` of a sweep.
        metric: the metric to begin with; empty for the first.
        template: the report's notebook; None means the project's, or the package's own.

    Returns:
        Path of the HTML page; it is one file, and asks nothing of the network.

    Raises:
        FileNotFoundError: the template is not there.
        ValueError: not a table of results, no such metric, or the report failed; says why.
    """
    table = read_results(results)
    if metric:
        check_metric(table, metric)
    page, given = results.with_name("report.html"), {"results": _from_here(results), "metric": metric}
    return write_page(template or packaged_template(TEMPLATE), given, [results], page, "Report of a sweep")


def write_page(template: Path, parameters: Mapping[str, Any], reads: Sequence[Path], page: Path, title: str) -> Path:
    """Execute a notebook and put it down as one HTML file, with the notebook beside it.

    Args:
        template: the notebook.
        parameters: what it is given.
        reads: files that it reads; it is executed again when one of them changed.
        page: where the HTML file goes; the notebook has the same name and the ending .ipynb.
        title: of the page. What only the book needs, cells with the tag "book-only", is left out.

    Returns:
        `page`; it is one file, and asks nothing of the network.

    Raises:
        FileNotFoundError: the template is not there.
        ValueError: the notebook failed; says why.
    """
    if not template.is_file():
        raise FileNotFoundError(f"no {template} here; run this command in the project's folder")
    job = NotebookJob(
        name=page.stem,
        template=_as_report(template.read_text("utf-8"), title),
        parameters=tuple(parameters.items()),
        folder=str(Path.cwd()),
        inputs=tuple(file_digest(file) for file in reads),
    )

    def deliver(_job: NotebookJob, outcome: Outcome) -> None:
        if outcome.status == "failed":
            raise ValueError(f"the {page.stem} failed: {outcome.reason}")
        # Whoever is handed the page has no book beside it.
        notebook = relinked(BOOK_LINK.sub(r"\1", outcome.notebook), template.parent, page.parent)
        replace_file(page.with_suffix(".ipynb"), notebook.encode())
        replace_file(page, _html(notebook, title).encode())

    with runner(jobs=1) as where:
        run_notebooks([job], where, deliver, what="pages")
    return page


def _as_report(template: str, title: str) -> str:
    notebook = nbformat.reads(template, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if "book-only" not in cell.metadata.get("tags", [])]
    head = notebook.cells[0]
    if head.source.startswith("# "):
        head.source = "\n".join([f"# {title}", *head.source.splitlines()[1:]])
    return nbformat.writes(notebook)


def _from_here(path: Path) -> str:
    """A path as a page says it: relative where that leads into the working folder."""
    inside = path.resolve().is_relative_to(Path.cwd())
    return (Path(os.path.relpath(path)) if inside else path.resolve()).as_posix()


def finding_first(cells: list[Any]) -> list[Any]:
    """Cells with what the one tagged `finding` shows right below the title: a page begins with its answer.

    The code that computes it stays where its numbers are made.
    """
    found = [cell for cell in cells if "finding" in cell.metadata.get("tags", []) and cell.get("outputs")]
    if not found or cells[0].cell_type != "markdown":
        return cells
    title, _, rest = cells[0].source.partition("\n")
    source = "# computed below"  # a cell without code would be left out of the book
    finding = nbformat.v4.new_code_cell(source, metadata={"tags": ["remove-input"]}, outputs=found[0].outputs)
    below = nbformat.v4.new_markdown_cell(rest.strip(), id="below-the-finding")
    finding.id, cells[0].source, found[0].outputs = "finding-first", title, []
    return [cells[0], finding, below, *cells[1:]]


def _html(notebook: str, title: str) -> str:
    """One HTML file in the colours of the reader's system, without code, scripts and outside requests."""
    from nbconvert import HTMLExporter

    page = nbformat.reads(notebook, as_version=4)
    page.cells = finding_first(page.cells)
    hidden = dict.fromkeys(("input", "input_prompt", "output_prompt", "anchor_links"), True)
    exporter = HTMLExporter(template_name="basic", **{f"exclude_{part}": value for part, value in hidden.items()})
    body, _ = exporter.from_notebook_node(page)
    return SHELL.format(body=SCRIPT.sub("", body), title=escape(title))
