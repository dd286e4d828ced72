"""Executing one notebook: what it records, where its outcome is kept, and when a kept one still counts."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from nbutils.support.code import notebook_code
from nbutils.support.files import scratch_folder
from nbutils.support.provenance import differences, digest_of, environment, provenance
from nbutils.support.store import Store
from nbutils.support.workers import TryAgain
from nbutils.sweeps.kernels import LOG, kernel_manager
from nbutils.sweeps.lean import nbformat
from nbutils.sweeps.measurements import BESIDE, read_measurements

FILE = "notebook.ipynb"
INJECTED = "injected-parameters"
# Tags that say how a cell is executed; all others say how a page shows it.
EFFECTIVE = {"parameters", INJECTED, "raises-exception", "skip-execution"}


@dataclass(frozen=True, eq=False)  # compared by identity: parameters may be lists, which have no hash
class NotebookJob:
    """A notebook to execute.

    Attributes:
        name: what people call it, such as "h1_communities dataset=digits".
        template: the notebook's text.
        parameters: (name, value) pairs.
        folder: working folder of the kernel, where it exists; elsewhere a temporary one.
        inputs: digests of what the notebook reads beyond its parameters.
        timeout: seconds that the whole notebook may take; None means no limit.
        code: digest of what it uses of nbutils, when the job was made; empty means now.
        environment: versions of the libraries then, see :func:`nbutils.support.provenance.environment`.
    """

    name: str
    template: str
    parameters: tuple[tuple[str, Any], ...] = ()
    folder: str = ""
    inputs: tuple[str, ...] = ()
    timeout: float | None = None
    code: str = ""
    environment: Mapping[str, Any] = field(default_factory=environment)

    def __post_init__(self) -> None:
        object.__setattr__(self, "code", self.code or notebook_code(self.template))

    @cached_property
    def address(self) -> str:
        """Its place in the store, 16 hexadecimal digits of code cells, kernel, parameters, inputs, code and versions.

        Text between the code cells, and tags that only say what a page shows, are none of it.
        """
        return self.address_in(self.environment)

    def address_in(self, elsewhere: Mapping[str, Any]) -> str:
        """The place that it has in another environment."""
        return digest_of([*self._determinants, elsewhere])

    @cached_property
    def _determinants(self) -> list[Any]:
        template = nbformat.reads(self.template, as_version=4)
        cells = [(c.source, sorted(_tags(c) & EFFECTIVE)) for c in template.cells if c.cell_type == "code"]
        kernel = template.metadata.get("kernelspec", {}).get("name", "python3")
        return [cells, kernel, sorted(self.parameters), self.inputs, self.code]


@dataclass(frozen=True)
class Outcome:
    """What came of a notebook.

    Attributes:
        address: its place in the store.
        status: "done" or "failed".
        reason: why it failed, in one sentence.
        seconds: how long it took.
        parameters: its parameters.
        measurements: what it recorded, see :func:`nbutils.sweeps.measurements.read_measurements`.
        provenance: commit, versions, machine and time.
        code: digest of what it used of nbutils.
        environment: versions of the libraries, see :func:`nbutils.support.provenance.environment`.
        notebook: text of the executed notebook; as far as it came, if it failed.
    """

    address: str
    status: str
    reason: str
    seconds: float
    parameters: dict[str, Any]
    measurements: list[dict[str, Any]]
    provenance: dict[str, Any]
    code: str
    environment: dict[str, Any]
    notebook: str

    @classmethod
    def failure(cls, job: NotebookJob, reason: str) -> Outcome:
        """A job that nothing is left of."""
        told = dict(job.parameters), [], provenance(), job.code, dict(job.environment), ""
        return cls(job.address, "failed", reason, 0.0, *told)


def kept(address: str, store: Store | None = None) -> Outcome | None:
    """The outcome in the store, finished or failed; None if there is none or it was damaged."""
    store = store or Store("notebooks")
    record = store.read(address)
    if record is None:
        return None
    try:
        notebook = store.text(address, FILE)
        if hashlib.sha256(notebook.encode()).hexdigest() != record.pop("sha256"):
            raise ValueError("its notebook is not the one that was written")
        record.pop("files")
        return Outcome(**record, notebook=notebook)
    except (OSError, ValueError, KeyError, TypeError) as error:
        store.discard(address, f"is damaged ({error})")
        return None


def keep(outcome: Outcome, store: Store | None = None) -> None:
    """Put an outcome into the store in place of what is there."""
    record = asdict(outcome)
    notebook = record.pop("notebook")
    record["sha256"] = hashlib.sha256(notebook.encode()).hexdigest()
    (store or Store("notebooks")).write(outcome.address, record, replace=True, texts={FILE: notebook})


def with_prose(outcome: Outcome, job: NotebookJob) -> Outcome:
    """An outcome with the text and the tags that the job's template has now.

    The same address may have been executed when the text between its code cells was another one; what the code cells
    gave is the same. Cells are those of the template, in its order; papermill's cell of parameters stays where it is.

    Args:
        outcome: of the job; one that failed stays as it is.
        job: the notebook.

    Returns:
        The same outcome if its text is that of the template.
    """
    if outcome.status != "done":
        return outcome
    page = nbformat.reads(outcome.notebook, as_version=4)
    template = nbformat.reads(job.template, as_version=4).cells
    own = [cell for cell in page.cells if INJECTED not in _tags(cell)]
    fixed = [cell for cell in template if INJECTED not in _tags(cell)]
    if [_as_written(cell) for cell in own] == [_as_written(cell) for cell in fixed]:
        return outcome
    executed = iter([cell for cell in own if cell.cell_type == "code"])
    cells = [_as_executed(cell, next(executed)) if cell.cell_type == "code" else cell for cell in fixed]
    for number, cell in enumerate(cells):
        cell.setdefault("id", f"text-{number}")  # papermill gives an identifier to cells that have none
    for cell in page.cells:
        if INJECTED in _tags(cell):
            cells.insert(_place_of_injected(template), cell)
    page.cells = cells
    return replace(outcome, notebook=nbformat.writes(page))


def _tags(cell: Any) -> set[str]:
    return set(cell.metadata.get("tags", []))


def _as_written(cell: Any) -> list[Any]:
    """A cell as its author wrote it, without what papermill adds."""
    metadata = {name: value for name, value in cell.metadata.items() if name != "papermill" and value != []}
    return [cell.cell_type, cell.source, metadata, cell.get("attachments")]


def _as_executed(cell: Any, executed: Any) -> Any:
    """A cell of a template with what its execution gave."""
    kept = {name: executed[name] for name in ("id", "outputs", "execution_count") if name in executed}
    kept["metadata"] = {**cell.metadata, "papermill": executed.metadata.get("papermill", {})}
    return type(cell)({**cell, **nbformat.from_dict(kept)})


def _place_of_injected(template: list[Any]) -> int:
    """Where papermill puts its cell of parameters: in place of an earlier one, after the defaults, or first."""
    for tag, after in ((INJECTED, 0), ("parameters", 1)):
        if found := [number for number, cell in enumerate(template) if tag in _tags(cell)]:
            return found[0] + after
    return 0


def execute(job: NotebookJob, again: bool = False) -> Outcome:
    """Execute a notebook, or read its outcome if another process has finished it meanwhile. Runs in a worker.

    Args:
        job: the notebook.
        again: execute it even if the store has it.

    Returns:
        The :class:`Outcome`; it is in the store.

    Raises:
        TryAgain: the kernel died.
        OSError: the outcome could not be stored.
    """
    store = Store("notebooks")
    if job.code != (ours := notebook_code(job.template)):
        here = f"code {ours} here, {job.code} where the sweep was started"
        return Outcome.failure(job, f"nbutils differs between machines ({here}); install the same version everywhere")
    if changes := differences(job.environment):
        both = [f"{name} {ours} here, {theirs} where the sweep was started" for name, (theirs, ours) in changes.items()]
        reason = f"libraries differ between machines ({'; '.join(both)}); install the same versions everywhere"
        return Outcome.failure(job, reason)
    with store.lock(job.address):
        found = None if again else kept(job.address, store)
        if found is None or found.status != "done":
            found = _run(job)
            keep(found, store)
    return found


def _run(job: NotebookJob) -> Outcome:
    """Execute with papermill in a folder that disappears afterwards."""
    start = time.perf_counter()
    reason = ""
    with scratch_folder() as folder:
        template = nbformat.reads(job.template, as_version=4)
        draft = folder / "draft.ipynb"
        nbformat.write(template, draft)
        (folder / BESIDE).touch()
        try:
            _papermill(job, template, draft, folder)
        except Exception as error:  # the notebook's own exception, a dead kernel, a timeout: all are results
            if isinstance(error, OSError) and not _is_late(error):
                raise  # of this machine, such as a full disk; the notebook's own arrive as another type
            reason = _one_line(job, error, folder)
            if _is_dead(error):
                raise TryAgain(reason, _outcome(job, draft, reason, start)) from None
        return _outcome(job, draft, reason, start)


def _papermill(job: NotebookJob, template: Any, draft: Path, folder: Path) -> None:
    import papermill

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # what it would say becomes the outcome's reason
    kernel = template.metadata.get("kernelspec", {})
    name = kernel.get("name", "python3")
    deadline = None if job.timeout is None else time.monotonic() + job.timeout

    def left(_cell: Any) -> float | None:
        return None if deadline is None else max(0.1, deadline - time.monotonic())

    papermill.execute_notebook(
        template,
        str(draft),
        parameters=dict(job.parameters),
        kernel_name=name,
        cwd=job.folder if job.folder and Path(job.folder).is_dir() else str(folder),
        progress_bar=False,
        engine_name=_engine(),
        kernel_manager_class=kernel_manager(folder, python=name == "python3"),
        timeout_func=left,
    )


@cache
def _engine() -> str:
    """Name of papermill's engine that writes the notebook when it is over, however it ends.

    Its own also does before and after each cell, which takes longer than short cells do, for a file nobody reads.
    """
    from papermill.engines import NBClientEngine, papermill_engines

    class WritesOnce(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, *args: Any, **kwargs: Any) -> None:
            nb_man.save = lambda **_: None
            try:
                super().execute_managed_notebook(nb_man, *args, **kwargs)
            finally:
                del nb_man.save  # what comes next is saved again

    papermill_engines.register("nbutils", WritesOnce)
    return "nbutils"


def _outcome(job: NotebookJob, draft: Path, reason: str, start: float) -> Outcome:
    notebook = nbformat.read(draft, as_version=4)
    seconds, origin = round(time.perf_counter() - start, 3), provenance()
    try:
        found = read_measurements(notebook, draft.parent / BESIDE)
    except TypeError as error:
        found, reason = [], reason or str(error)
    reason = reason or _cut_short(notebook)
    status = "failed" if reason else "done"
    papermill = notebook.metadata.get("papermill", {})
    for private in ("input_path", "output_path", "environment_variables"):  # paths of this machine
        papermill.pop(private, None)
    notebook.metadata["nbutils"] = {
        "address": job.address,
        "status": status,
        "reason": reason,
        "parameters": dict(job.parameters),
        "commit": origin["commit"],
        "versions": origin["versions"],
    }
    text = nbformat.writes(notebook)
    told = dict(job.parameters), found, origin, job.code, dict(job.environment), text
    return Outcome(job.address, status, reason, seconds, *told)


def _cut_short(notebook: Any) -> str:
    """Why a notebook that raised nothing did not come to its end, as after `sys.exit()`; empty if it did."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    for number, cell in enumerate(code, start=1):
        tags = _tags(cell)
        ended = [out for out in cell.outputs if out.output_type == "error" and "raises-exception" not in tags]
        if ended:
            return f"{ended[0].get('ename', 'an error')} in code cell {number} of {len(code)}"
        if cell.execution_count is None and "skip-execution" not in tags:
            return f"it ended before code cell {number} of {len(code)}, as sys.exit() does"
    return ""


def _one_line(job: NotebookJob, error: Exception, folder: Path) -> str:
    """What went wrong, in one sentence without this machine's paths."""
    kind = type(error).__name__
    if _is_late(error):
        return f"took longer than {job.timeout:g} s, its time limit"
    if _is_dead(error):
        log = folder / LOG
        said = log.read_text("utf-8", "replace").strip().splitlines() if log.exists() else []
        return f"its kernel died ({said[-1].strip() if said else 'killed, or out of memory?'})"
    if kind == "PapermillExecutionError":
        said = " ".join(str(error.evalue).split())  # type: ignore[attr-defined]
        return f"{error.ename}: {said or _failed_line(error)}"  # type: ignore[attr-defined]
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return f"{kind}: {lines[-1].strip() if lines else 'no message'}"


def _failed_line(error: Any) -> str:
    """The line of the notebook that raised an error without words."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    found = re.search(r"^-+> *\d+ (.+)$", plain, re.MULTILINE)
    return f"in {found[1].strip()!r}" if found else "no message"


def _is_late(error: Exception) -> bool:
    """Whether a time limit ended the notebook; nbclient's type for that is an OSError."""
    return type(error).__name__ == "CellTimeoutError"


def _is_dead(error: Exception) -> bool:
    """Whether the kernel died, while it ran or while it started."""
    return type(error).__name__ == "DeadKernelError" or str(error).startswith("Kernel died")
