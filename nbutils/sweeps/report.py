"""The report of a sweep: one HTML file with figures, readable without anything else."""

from __future__ import annotations

import os
import re
from pathlib import Path

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
<title>Report of a sweep</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }}
table {{ border-collapse: collapse; font-size: .92em; }}
th, td {{ padding: .25em .8em; border-bottom: 1px solid #8a8f9855; }}
blockquote {{ margin: 1em 0; padding: .3em 1em; border-left: 4px solid #8a8f98; }}
figcaption {{ font-size: .92em; opacity: .85; }}
figure {{ margin: 1em 0; }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def report_template() -> Path:
    """The report's notebook: in the project's folder if this is one, else the one that came with the package."""
    places = Path("notebooks"), PACKAGE / "notebooks", PACKAGE.parent / "notebooks"
    return next((place / TEMPLATE for place in places if (place / TEMPLATE).is_file()), places[0] / TEMPLATE)


def write_report(results: Path, metric: str = "", template: Path | None = None) -> Path:
    """Execute the report over a table of results and put `report.ipynb` and `report.html` beside it.

    Args:
        results: `results.parquet` of a sweep.
        metric: the metric to begin with; empty for the first.
        template: the report's notebook; None means :func:`report_template`.

    Returns:
        Path of the HTML page; it is one file, and asks nothing of the network.

    Raises:
        FileNotFoundError: the template is not there.
        ValueError: not a table of results, no such metric, or the report failed; says why.
    """
    table = read_results(results)
    if metric:
        check_metric(table, metric)
    template = template or report_template()
    if not template.is_file():
        raise FileNotFoundError(f"no {template} here; run this command in the project's folder")
    here = Path(os.path.relpath(results)) if results.resolve().is_relative_to(Path.cwd()) else results.resolve()
    job = NotebookJob(
        name="report",
        template=template.read_text("utf-8"),
        parameters=(("results", here.as_posix()), ("metric", metric)),
        folder=str(Path.cwd()),
        inputs=(file_digest(results),),
    )
    page = results.with_name("report.html")

    def deliver(_job: NotebookJob, outcome: Outcome) -> None:
        if outcome.status == "failed":
            raise ValueError(f"the report failed: {outcome.reason}")
        notebook = relinked(outcome.notebook, template.parent, page.parent)
        if not (template.parent / "../book").is_dir():  # nothing to lead to outside the project's folder
            notebook = BOOK_LINK.sub(r"\1", notebook)
        replace_file(page.with_suffix(".ipynb"), notebook.encode())
        replace_file(page, _html(notebook).encode())

    with runner(jobs=1) as where:
        run_notebooks([job], where, deliver, what="reports")
    return page


def _html(notebook: str) -> str:
    """One HTML file in the colours of the reader's system, without code, scripts and outside requests."""
    from nbconvert import HTMLExporter

    page = nbformat.reads(notebook, as_version=4)
    hidden = dict.fromkeys(("input", "input_prompt", "output_prompt", "anchor_links"), True)
    exporter = HTMLExporter(template_name="basic", **{f"exclude_{part}": value for part, value in hidden.items()})
    body, _ = exporter.from_notebook_node(page)
    return SHELL.format(body=SCRIPT.sub("", body))
