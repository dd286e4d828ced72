"""From templates to pages: execute each notebook of the table of contents with papermill, and make it fit for the book.

A page is executed again only when its template's code, its parameters, the data, nbutils or the libraries changed; when
only text changed, the page gets the new text. A notebook that fails is kept beside the page as `<name>.failed.ipynb`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from nbutils.runs.spec import known_dataset
from nbutils.study.archive import REFERENCE, RESULTS, has_archive
from nbutils.support.files import file_digest, replace_file
from nbutils.sweeps.engine import Runner, Summary, run_notebooks
from nbutils.sweeps.execute import NotebookJob, Outcome
from nbutils.sweeps.lean import nbformat
from nbutils.sweeps.measurements import MIME
from nbutils.sweeps.parameters import check_parameters, data_versions, template_model

__all__ = ["PageJob", "book_toc", "page_jobs", "publish"]

PAGES = Path("book/pages")
# Pages that belong to no single data set.
SHARED_FOLDERS = {
    "start_here": "tour",
    "watch_training": "watch",
    "reanalysis": "published",
    "specification_curve": "summary",
    "memorising": "summary",
    "robustness": "summary",
    "synthesis": "summary",
    "speed": "speed",
    "processors": "processors",
}
ONE_STUDY, ALL_STUDIES = ("evolution", "reconstruction"), ("specification_curve", "memorising")  # of the reference
SWEEPS = "sweep-"  # book/pages/sweep-<name>: the report of the committed table of a sweep
DATA = "data-"  # book/pages/data-<data set>: what the images are, whatever the book's study is about
METRICS = {"width_and_density": "modularity above chance"}  # what a report begins with
# What pages read beyond their parameters and the tables of their studies.
READS = {
    "reconstruction": RESULTS / "published",
    "processors": RESULTS / "processors",
}
TIMEOUT = 1800


@dataclass(frozen=True)
class PageJob:
    """One page to execute.

    Attributes:
        template: notebook in `notebooks/`.
        output: where the executed page goes.
        parameters: (name, value) pairs for papermill.
        title: what is added to the page's title, so that no two pages share one.
    """

    template: Path
    output: Path
    parameters: tuple[tuple[str, Any], ...]
    title: str


def book_toc(root: Path, datasets: Sequence[str]) -> dict[str, Any]:
    """The table of contents with the pages of the chosen data sets only; `_toc.yml` alone decides the order.

    Args:
        root: the project's folder.
        datasets: data sets of the book.

    Returns:
        The table of contents as `jupyter-book` reads it.

    Raises:
        ValueError: a data set is unknown, or has no pages in `_toc.yml`.
    """
    try:
        toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"_toc.yml is not valid YAML: {' '.join(str(error).split())}") from None
    datasets = [*datasets, *committed_studies(root)]
    listed = {Path(f).parent.name for f in _files(toc) if Path(f).parent.parent == PAGES} - set(SHARED_FOLDERS.values())
    listed = {name for name in listed if not name.startswith((SWEEPS, DATA))}
    for name in datasets:
        known_dataset(name)
        if name not in listed:
            raise ValueError(f"_toc.yml has no pages for data set {name!r}; it has {', '.join(sorted(listed))}")
    studies = committed_studies(root)
    needs = {"memorising": studies, "specification_curve": [name for name in studies if REFERENCE[name].grid]}
    unwanted = [name for name, there in needs.items() if not there]
    return _without(toc, listed - set(datasets), unwanted)


def committed_studies(root: Path) -> list[str]:
    """Data sets of the reference study whose tables are there."""
    return [name for name in REFERENCE if has_archive(root / RESULTS / name)]


def page_jobs(root: Path, datasets: Sequence[str], seeds: int, epochs: int, device: str = "cpu") -> list[PageJob]:
    """Every page that the table of contents asks for, with its parameters checked.

    Args:
        root: the project's folder.
        datasets: data sets of the book whose runs are computed here; together with those of the reference study,
            which come from committed tables, they form one study.
        seeds: networks per label condition.
        epochs: passes over the training set.
        device: where networks train.

    Returns:
        One job per page.

    Raises:
        ValueError: unknown data set or a value that a template does not accept.
    """
    from nbutils.data.datasets import TITLES

    if wrong := [name for name in datasets if name in REFERENCE]:
        raise ValueError(
            f"{wrong[0]} belongs to the reference study, whose pages are in every book; to compute its runs again: "
            f"python -m nbutils study {wrong[0]}"
        )
    jobs, studies = [], [*datasets, *committed_studies(root)]
    for file in _files(book_toc(root, datasets)):
        path = Path(file)
        if path.parent.parent != PAGES:
            continue
        folder, name = path.parent.name, path.name
        parameters = _page_parameters(folder, name, studies, seeds, epochs, device)
        title = TITLES.get(folder.removeprefix(DATA), "")
        if folder.startswith(SWEEPS):
            title = folder.removeprefix(SWEEPS).replace("_", " ")
        check_parameters(name, parameters)
        output, template = root / path.with_suffix(".ipynb"), root / "notebooks" / f"{name}.ipynb"
        jobs.append(PageJob(template, output, tuple(parameters.items()), title))
    return jobs


def _page_parameters(
    folder: str, name: str, datasets: Sequence[str], seeds: int, epochs: int, device: str
) -> dict[str, Any]:
    """What a page is given, by the folder in which it lies."""
    if folder.startswith(SWEEPS):
        sweep = folder.removeprefix(SWEEPS)
        return {"results": (RESULTS / sweep / "results.parquet").as_posix(), "metric": METRICS.get(sweep, "")}
    if folder.startswith(DATA):
        return {"dataset": folder.removeprefix(DATA)}
    if name in ONE_STUDY:
        return {"dataset": folder}
    if name in ALL_STUDIES:
        return {"study": " ".join(name for name in datasets if name in REFERENCE)}
    if name in ("watch_training", "reanalysis", "speed", "processors"):
        return dict(check_parameters(name, {}))
    parameters: dict[str, Any] = {"epochs": epochs, "device": device}
    if name != "start_here":
        parameters |= {"study": " ".join(datasets), "seeds": seeds, "source": "tables"}
    if folder not in SHARED_FOLDERS.values():
        parameters["dataset"] = folder
    return parameters


def publish(jobs: Sequence[PageJob], where: Runner) -> Summary:
    """Put every page where the table of contents expects it; execute those that are not kept in the store.

    Args:
        jobs: pages of the book.
        where: see :func:`nbutils.sweeps.engine.runner`.

    Returns:
        What was there, executed, and failed.
    """
    pages = {job: _notebook_job(job) for job in jobs}
    back = {notebook: job for job, notebook in pages.items()}
    return run_notebooks(list(back), where, lambda notebook, outcome: _deliver(back[notebook], outcome), what="pages")


def _notebook_job(job: PageJob) -> NotebookJob:
    return NotebookJob(
        name=f"{job.output.parent.name}/{job.output.stem}",
        template=job.template.read_text("utf-8"),
        parameters=job.parameters,
        folder=str(job.template.parent),
        inputs=_inputs(job),
        timeout=TIMEOUT,
    )


def _inputs(job: PageJob) -> tuple[str, ...]:
    """What a page reads beyond its parameters: data sets, or a file of results."""
    given = dict(job.parameters)
    if "results" in given:
        return (file_digest(job.template.parents[1] / given["results"]),)
    digest = sha256()
    if job.template.stem in READS:
        folder = job.template.parents[1] / READS[job.template.stem]
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(path.read_bytes())
    return (*data_versions(template_model(job.template), given), digest.hexdigest()[:12])


def _deliver(job: PageJob, outcome: Outcome) -> None:
    """Write a finished page; a failed one goes beside the page that was there."""
    failed = job.output.with_suffix(".failed.ipynb")
    if outcome.status == "failed":
        replace_file(failed, outcome.notebook.encode())
        return
    page = _finished(nbformat.reads(outcome.notebook, as_version=4), job)
    replace_file(job.output, nbformat.writes(page).encode())
    failed.unlink(missing_ok=True)


def _finished(notebook: Any, job: PageJob) -> Any:
    """The executed notebook as a page: title of its own, links that hold where it lies, no parameter cells."""
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if {"parameters", "injected-parameters"} & set(tags):
            cell.metadata["tags"] = [*tags, "remove-cell"]
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace("](../book/", "](../../")
            if job.title and cell.source.startswith("# "):
                cell.source = re.sub(r"^(# .*)$", rf"\1 — {job.title}", cell.source, count=1, flags=re.MULTILINE)
        elif cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if MIME not in output.get("data", {})]
    notebook.cells = _without_empty_sections(notebook.cells)
    return notebook


def _without_empty_sections(cells: list[Any]) -> list[Any]:
    """Cells of a page; text tagged `if-shown` goes, with the code that follows it, where that code shows nothing."""
    starts = [i for i, cell in enumerate(cells) if cell.cell_type == "markdown"]
    kept = cells[: starts[0]] if starts else cells
    for start, end in pairwise([*starts, len(cells)]):
        shows = any(cell.outputs for cell in cells[start + 1 : end])
        if shows or "if-shown" not in cells[start].metadata.get("tags", []):
            kept += cells[start:end]
    return kept


def _files(node: Any) -> list[str]:
    """All `file` entries of a table of contents, in order."""
    if isinstance(node, list):
        return [name for item in node for name in _files(item)]
    if isinstance(node, dict):
        own = [node["file"]] if "file" in node else []
        return own + [name for key, value in node.items() if key != "file" for name in _files(value)]
    return []


def _without(node: Any, datasets: set[str], templates: Sequence[str]) -> Any:
    """The table of contents without the pages and the parts of some data sets, and without those of some templates."""
    if isinstance(node, list):
        kept = [_without(item, datasets, templates) for item in node]
        return [item for item in kept if item is not None]
    if isinstance(node, dict):
        page = Path(node.get("file", ""))
        if page.parent.parent == PAGES and (page.parent.name in datasets or page.name in templates):
            return None
        slim = {key: _without(value, datasets, templates) for key, value in node.items()}
        return None if slim.get("chapters") == [] else slim
    return node
