"""From templates to pages: execute each notebook of the table of contents with papermill, and make it fit for the book.

A page is executed again only when its template's code, its parameters, the data, nbutils or the libraries changed; when
only text changed, the page gets the new text. A notebook that fails is kept beside the page as `<name>.failed.ipynb`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML, YAMLError

from nbutils.data.catalogue import join_names, parse_name
from nbutils.runs.spec import known_dataset
from nbutils.second.networks import ARCHITECTURES
from nbutils.second.replication import OTHERS, committed_second, split_study
from nbutils.study.archive import REFERENCE, RESULTS, has_archive, has_tables
from nbutils.study.study import Study
from nbutils.support.files import file_digest, replace_file
from nbutils.support.provenance import digest_of
from nbutils.sweeps.engine import Runner, Summary, run_notebooks
from nbutils.sweeps.execute import NotebookJob, Outcome
from nbutils.sweeps.lean import nbformat
from nbutils.sweeps.measurements import MIME
from nbutils.sweeps.parameters import (
    KINDS,
    NotebookParameters,
    check_parameters,
    data_versions,
    kind_of,
    template_model,
)
from nbutils.sweeps.report import finding_first

__all__ = ["PageJob", "book_toc", "page_jobs", "publish", "toc_files"]

PAGES = Path("book/pages")
SWEEPS = "sweep-"  # book/pages/sweep-<name>: the report of the committed table of a sweep
ANSWERS = "second-"  # book/pages/second-<data set>: what the second study found on it
KINDS_OF = "architectures-"  # book/pages/architectures-<kind>: what other networks than fully connected ones answer
COMPARED = "compare-"  # book/pages/compare-<hypothesis>: what all data sets of the second study say about it
METRICS = {"width_and_density": "modularity above chance"}  # what a report begins with
TIMEOUT = 1800


@dataclass(frozen=True)
class PageJob:
    """One page to execute.

    Attributes:
        template: notebook in `notebooks/`.
        output: where the executed page goes.
        parameters: (name, value) pairs for papermill.
        title: what is added to the page's title, so that no two pages share one.
        first: the first page of the same template, which says once what all of them share; None on that page.
    """

    template: Path
    output: Path
    parameters: tuple[tuple[str, Any], ...]
    title: str
    first: PageJob | None = None


def book_toc(root: Path, datasets: Sequence[str]) -> dict[str, Any]:
    """The table of contents with the pages of the chosen data sets only; `_toc.yml` alone decides the order.

    Pages of the second study are there where its tables are committed.

    Args:
        root: the project's folder.
        datasets: data sets of the book.

    Returns:
        The table of contents as `jupyter-book` reads it.

    Raises:
        ValueError: a data set is unknown, or has no pages in `_toc.yml`.
    """
    try:
        toc = YAML(typ="safe", pure=True).load((root / "_toc.yml").read_text("utf-8"))
    except YAMLError as error:
        raise ValueError(f"_toc.yml is not valid YAML: {' '.join(str(error).split())}") from None
    datasets, pages = (
        [*datasets, *committed_studies(root)],
        [path for file in toc_files(toc) if _is_page(path := Path(file))],
    )
    listed = {path.parent.name for path in pages if _is_dataset(path.parent.name)}
    for name in datasets:
        known_dataset(name)
        if name not in listed:
            raise ValueError(f"_toc.yml has no pages for data set {name!r}; it has {', '.join(sorted(listed))}")
    studied = [ANSWERS + name for name in committed_second(root)]
    kinds = [KINDS_OF + ARCHITECTURES[split_study(name)[1]].kind for name in committed_second(root, OTHERS)]
    asked = {path.parent.name for path in pages if path.parent.name.startswith((ANSWERS, KINDS_OF))}
    unstudied = asked - {*studied, *kinds}
    models = {path.name: _model(root, path.name) for path in pages}
    unwanted = [name for name, model in models.items() if _offered(model, "study", datasets) == []]
    of_all = ["leaderboard", "leaderboard_checks", "compared", "claims"]
    return _without(toc, (listed - set(datasets)) | unstudied, unwanted + of_all * (not studied))


def _is_page(path: Path) -> bool:
    return path.parent.parent == PAGES


def _is_dataset(folder: str) -> bool:
    try:
        return bool(parse_name(folder).base)
    except ValueError:
        return False


def _model(root: Path, name: str) -> type[NotebookParameters]:
    return template_model(root / "notebooks" / f"{name}.ipynb")


def _offered(model: type[NotebookParameters], name: str, studies: Sequence[str]) -> list[str] | None:
    """Those of some studies that a parameter of a page takes; None if it is no choice of studies of the book."""
    kind = kind_of(model, name)
    if kind is None or kind.names is None or not kind.shared:
        return None
    return [one for one in studies if kind.reads is None or one in kind.reads]


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
    jobs: list[PageJob] = []
    firsts: dict[str, PageJob] = {}
    studies = [*datasets, *committed_studies(root)]
    for file in toc_files(book_toc(root, datasets)):
        if not _is_page(path := Path(file)):
            continue
        folder, name = path.parent.name, path.name
        model = _model(root, name)
        parameters = _page_parameters(model, folder, studies, {"seeds": seeds, "epochs": epochs, "device": device})
        title = TITLES.get(_dataset_of(folder), "")
        if folder.startswith(SWEEPS):
            title = folder.removeprefix(SWEEPS).replace("_", " ")
        if folder.startswith(KINDS_OF):
            title = f"{folder.removeprefix(KINDS_OF)} networks"
        if folder.startswith(COMPARED):
            title = folder.removeprefix(COMPARED).upper()
        check_parameters(name, parameters, model=model)
        output, template = root / path.with_suffix(".ipynb"), root / "notebooks" / f"{name}.ipynb"
        jobs.append(PageJob(template, output, tuple(parameters.items()), title, firsts.get(name)))
        firsts.setdefault(name, jobs[-1])
    return jobs


def _dataset_of(folder: str) -> str:
    """The data set that the name of a folder of pages names."""
    return folder.removeprefix(ANSWERS)


def _page_parameters(
    model: type[NotebookParameters], folder: str, studies: Sequence[str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What a page is given: of what its folder and the book's studies say, all that it declares."""
    if folder.startswith(SWEEPS):
        sweep = folder.removeprefix(SWEEPS)
        return {"results": (RESULTS / sweep / "results.parquet").as_posix(), "metric": METRICS.get(sweep, "")}
    if folder.startswith(KINDS_OF):
        return {"kind": folder.removeprefix(KINDS_OF)}
    if folder.startswith(COMPARED):
        return {"hypothesis": folder.removeprefix(COMPARED).upper()}
    dataset = _dataset_of(folder)
    found: dict[str, Any] = {"dataset": dataset} if _is_dataset(dataset) else {}
    if (names := _offered(model, "study", studies)) is not None:
        found["study"] = join_names(names)
    if "source" not in model.model_fields:
        found["device"] = settings["device"]
    elif all(name in REFERENCE or has_tables(Study(dataset=name, **settings)) for name in studies):
        found["source"] = "tables"
    else:
        found |= {"source": "mixed", **settings}
    return {name: value for name, value in found.items() if name in model.model_fields}


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
    """What a page reads beyond its parameters: data sets, files that they name, folders that its metadata name."""
    root, model, given = job.template.parents[1], template_model(job.template), dict(job.parameters)
    paths = [name for name in model.model_fields if kind_of(model, name) is KINDS["path"]]
    digests = [file_digest(root / getattr(model(**given), name)) for name in paths]
    for folder in json.loads(job.template.read_text("utf-8"))["metadata"].get("nbutils", {}).get("reads", []):
        digests += [file_digest(path) for path in sorted((root / folder).rglob("*")) if path.is_file()]
    return (*data_versions(model, given), digest_of(digests))


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
                cell.source = _titled(cell.source, job.title)
        elif cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if MIME not in output.get("data", {})]
    cells = notebook.cells if job.first is None else _without_shared(notebook.cells, job, job.first)
    notebook.cells = _without_empty_sections(finding_first(cells))
    return notebook


def _without_shared(cells: list[Any], job: PageJob, first: PageJob) -> list[Any]:
    """Cells of a page without those tagged `once`, but for their headings, with its code folded, and of its opening the
    title alone: all of that stands on the first page of the same template, to which a sentence leads.

    Pages of templates without such cells stay as they are.
    """
    if not any("once" in cell.metadata.get("tags", []) for cell in cells):
        return cells
    kept = []
    for cell in cells:
        tags, is_code = cell.metadata.get("tags", []), cell.cell_type == "code"
        if "once" in tags:
            cell.source = "" if is_code else "\n".join(x for x in cell.source.splitlines() if x.startswith("#"))
            cell.metadata["tags"] = [*tags, "if-shown"]
        elif is_code and not {"hide-input", "remove-cell"} & set(tags):
            cell.metadata["tags"] = [*tags, "hide-input"]
        kept += [cell] if cell.source else []
    there = f"../{first.output.parent.name}/{first.output.name}"
    title = kept[0].source.partition("\n")[0]
    kept[0].source = f"{title}\n\nWhat is asked, and how: [{first.title}]({there})."
    return kept


def _titled(source: str, title: str) -> str:
    """A cell whose heading says which of the template's pages this is: for *A hypothesis*, or at its end."""
    heading, line, rest = source.partition("\n")
    named = heading.replace("# A hypothesis", f"# {title}")
    return (named if named != heading else f"{heading} — {title}") + line + rest


def _without_empty_sections(cells: list[Any]) -> list[Any]:
    """Cells of a page without folded code that shows nothing, and without text tagged `if-shown` before such code."""
    starts = [i for i, cell in enumerate(cells) if cell.cell_type == "markdown"]
    kept = cells[: starts[0]] if starts else cells
    for start, end in pairwise([*starts, len(cells)]):
        shows = any(cell.outputs for cell in cells[start + 1 : end])
        if shows or "if-shown" not in cells[start].metadata.get("tags", []):
            kept += cells[start:end]
    return [cell for cell in kept if cell.get("outputs", True) or "hide-input" not in cell.metadata.get("tags", [])]


def toc_files(node: Any) -> list[str]:
    """All files of a table of contents or a part of one, in order; those below a page after it."""
    if isinstance(node, list):
        return [name for item in node for name in toc_files(item)]
    if isinstance(node, dict):
        own = [node["file"]] if "file" in node else []
        return own + [name for key, value in node.items() if key != "file" for name in toc_files(value)]
    return []


def _without(node: Any, datasets: set[str], templates: Sequence[str]) -> Any:
    """The table of contents without the pages and the parts of some data sets, and without those of some templates.

    Pages below one that is left out take its place.
    """
    if isinstance(node, list):
        kept: list[Any] = []
        for item in node:
            slim = _without(item, datasets, templates)
            kept += slim if isinstance(slim, list) else [slim]
        return kept
    if isinstance(node, dict):
        slim = {key: _without(value, datasets, templates) for key, value in node.items()}
        slim = {key: value for key, value in slim.items() if key != "sections" or value}
        page = Path(node.get("file", ""))
        if page.parent.parent == PAGES and (page.parent.name in datasets or page.name in templates):
            return slim.get("sections", [])
        return [] if slim.get("chapters") == [] else slim
    return node
