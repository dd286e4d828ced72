"""From templates to pages: execute each notebook of the table of contents with papermill, and make it fit for the book.

A page is executed again only when its template, its parameters or nbutils changed. Output appears under its name only
when it is complete; a notebook that fails is kept beside it as `<name>.failed.ipynb`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import yaml

from nbutils.parameters import check_parameters
from nbutils.provenance import code_digest
from nbutils.specs import known_dataset
from nbutils.workers import run_tasks

__all__ = ["PageJob", "book_toc", "execute_page", "page_jobs", "publish"]

PAGES = Path("book/pages")
SHARED_FOLDERS = {"start_here": "tour", "synthesis": "summary"}  # pages that belong to no single data set
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
    toc = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    listed = {Path(f).parent.name for f in _files(toc) if Path(f).parent.parent == PAGES} - set(SHARED_FOLDERS.values())
    for name in datasets:
        known_dataset(name)
        if name not in listed:
            raise ValueError(f"_toc.yml has no pages for data set {name!r}; it has {', '.join(sorted(listed))}")
    return _without(toc, listed - set(datasets))


def page_jobs(root: Path, datasets: Sequence[str], seeds: int, epochs: int) -> list[PageJob]:
    """Every page that the table of contents asks for, with its parameters checked.

    Args:
        root: the project's folder.
        datasets: data sets of the book; together they form one study.
        seeds: networks per label condition.
        epochs: passes over the training set.

    Returns:
        One job per page.

    Raises:
        ValueError: unknown data set or a value that a template does not accept.
    """
    from nbutils.datasets import TITLES

    jobs = []
    for file in _files(book_toc(root, datasets)):
        path = Path(file)
        if path.parent.parent != PAGES:
            continue
        folder, name = path.parent.name, path.name
        parameters: dict[str, Any] = {"epochs": epochs}
        if name != "start_here":
            parameters |= {"study": " ".join(datasets), "seeds": seeds}
        if folder not in SHARED_FOLDERS.values():
            parameters["dataset"] = folder
        check_parameters(name, parameters)
        job = PageJob(
            template=root / "notebooks" / f"{name}.ipynb",
            output=root / path.with_suffix(".ipynb"),
            parameters=tuple(parameters.items()),
            title=TITLES.get(folder, ""),
        )
        jobs.append(job)
    return jobs


def publish(jobs: Sequence[PageJob], workers: int | None, report: Callable[[str], None] = print) -> list[PageJob]:
    """Execute the pages that are missing or out of date.

    Args:
        jobs: pages of the book.
        workers: processes; None means one per core.
        report: called with one line per finished page.

    Returns:
        The pages that failed.
    """
    outdated = [job for job in jobs if not _is_current(job)]
    failed: list[PageJob] = []

    def done(job: PageJob, problem: str) -> None:
        name = f"{job.output.parent.name}/{job.output.stem}"
        report(f"  {'FAILED' if problem else 'executed'} {name}{': ' + problem if problem else ''}")
        if problem:
            failed.append(job)

    run_tasks(execute_page, outdated, workers, done)
    report(
        f"Pages: {len(jobs) - len(outdated)} up to date, {len(outdated) - len(failed)} executed, {len(failed)} failed."
    )
    return failed


def execute_page(job: PageJob) -> str:
    """Execute one page; returns "" or what went wrong, in one sentence."""
    import papermill

    job.output.parent.mkdir(parents=True, exist_ok=True)
    failed = job.output.with_suffix(".failed.ipynb")
    with tempfile.TemporaryDirectory(prefix="nb-") as folder:
        draft = Path(folder) / job.output.name
        problem = ""
        try:
            papermill.execute_notebook(
                str(job.template),
                str(draft),
                parameters=dict(job.parameters),
                kernel_name="python3",
                cwd=str(job.template.parent),
                progress_bar=False,
                execution_timeout=TIMEOUT,
                kernel_manager_class=f"{__package__}.kernels.PrivateKernelManager",
            )
        except Exception as error:  # a page's own exception, a dead kernel, a timeout: all are results to report
            problem = (
                f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else 'no message'}"
            )
            if draft.exists():
                _replace(failed, draft.read_text("utf-8"))
            return problem
        notebook = nbformat.read(draft, as_version=4)
    _replace(job.output, nbformat.writes(_finished(notebook, job)))
    failed.unlink(missing_ok=True)
    return problem


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
    notebook.metadata["nbutils"] = {"digest": _digest(job), "parameters": dict(job.parameters)}
    notebook.metadata.pop("papermill", None)  # holds this machine's paths
    return notebook


def _digest(job: PageJob) -> str:
    modules = sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem != "__main__")
    parts = [job.template.read_text("utf-8"), json.dumps(job.parameters), job.title]
    parts.append(code_digest(*(f"nbutils.{m}" if m != "__init__" else "nbutils" for m in modules)))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _is_current(job: PageJob) -> bool:
    try:
        return nbformat.read(job.output, as_version=4).metadata["nbutils"]["digest"] == _digest(job)
    except (OSError, KeyError, ValueError):
        return False


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, "utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _files(node: Any) -> list[str]:
    """All `file` entries of a table of contents, in order."""
    if isinstance(node, list):
        return [name for item in node for name in _files(item)]
    if isinstance(node, dict):
        own = [node["file"]] if "file" in node else []
        return own + [name for key, value in node.items() if key != "file" for name in _files(value)]
    return []


def _without(node: Any, datasets: set[str]) -> Any:
    """The table of contents without the pages and the parts of some data sets."""
    if isinstance(node, list):
        kept = [_without(item, datasets) for item in node]
        return [item for item in kept if item is not None]
    if isinstance(node, dict):
        if "file" in node and Path(node["file"]).parent.name in datasets and Path(node["file"]).parent.parent == PAGES:
            return None
        slim = {key: _without(value, datasets) for key, value in node.items()}
        return None if slim.get("chapters") == [] else slim
    return node
