"""What a notebook costs besides its own work: in a sweep, and with plain papermill."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import nbformat

from benchmarks.harness import Comparison, compare, run_python, seconds
from nbutils.support.machine import default_jobs

CELLS = (
    "import nbutils as nb\nimport pandas\nimport seaborn\nimport torch",
    "nb.record('product', x * float(torch.ones(2).sum()))",
)

# Seconds per item for the processes that a notebook gets, without the notebook: the worker ends, its kernel with it.
FORKED = """
import sys, time
from nbutils.support.workers import run_tasks
from nbutils.sweeps.kernels import fork_kernel
runs, jobs = map(int, sys.argv[1:])
preload = ("nbutils.sweeps._warm", "pandas", "seaborn", "torch")
ends = [time.perf_counter() for _ in run_tasks(
    abs, range(runs + jobs), jobs, fresh=True, before=fork_kernel, preload=preload)]
print((ends[-1] - ends[jobs - 1]) / runs)
"""


def notebook_overhead(quick: bool) -> list[Comparison]:
    """Wall seconds per notebook in a sweep of trivial notebooks against the `papermill` command line.

    The sweep's time holds everything: its own start, the imports of the process that kernels are forked from, tables.
    """
    runs, repeats = (4, 1) if quick else (20, 3)
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        _write(folder)

        def sweep(jobs: int | None, count: int = runs) -> float:
            grid = f"grid: {{x: {list(range(1, count + 1))}}}\n"
            (folder / "trivial.yml").write_text(f"notebook: trivial.ipynb\n{grid}", "utf-8")
            shutil.rmtree(folder / "store", ignore_errors=True)
            shutil.rmtree(folder / "runs", ignore_errors=True)
            options = [] if jobs is None else ["--jobs", str(jobs)]
            took = seconds(lambda: _call(folder, "nbutils", "sweep", "trivial.yml", *options))
            assert len(list((folder / "runs").rglob("trivial.ipynb"))) == count
            return took / count

        def parts(jobs: int | None, whole: float) -> dict[str, float]:
            """Of one notebook's share: what another notebook adds, and what the start and end of a sweep add."""
            another = (whole * runs - sweep(jobs, 1)) / max(1, runs - 1)
            forked = float(run_python("-c", FORKED, str(runs), str(jobs or default_jobs()), folder=folder))
            program = f"import nbutils.sweeps._warm\n{CELLS[0]}"
            imports = seconds(lambda: run_python("-c", program, folder=folder)) / runs
            return {
                "another notebook: two processes forked for it, which end at once": forked,
                "another notebook: its kernel starts, runs its cells and ends": another - forked,
                "imports, shared by all notebooks": imports,
                "the rest of the sweep's start and end, shared by all": whole - another - imports,
            }

        def plain() -> float:
            command = "papermill trivial.ipynb plain.ipynb -p x 1 -k python3 --no-progress-bar"
            took = seconds(lambda: _call(folder, *command.split()))
            assert _outputs(folder / "plain.ipynb") == _outputs(next((folder / "runs").rglob("x=1/trivial.ipynb")))
            return took

        about = f"one of {runs} notebooks that import nbutils, torch, pandas and seaborn, {{}}, against plain papermill"
        shared = {"unit": "s per notebook", "repeats": repeats}
        sides = (("notebook_overhead", "default jobs", None), ("notebook_overhead_one_job", "one at a time", 1))
        found = [
            (compare(name, about.format(how), partial(sweep, jobs), plain, **shared), jobs) for name, how, jobs in sides
        ]
        return [replace(one, parts=parts(jobs, median(one.ours))) for one, jobs in found]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(folder: Path) -> None:
    v4 = nbformat.v4
    first = v4.new_code_cell("x: int = 0", metadata={"tags": ["parameters"]})
    notebook = v4.new_notebook(cells=[first, *map(v4.new_code_cell, CELLS)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "trivial.ipynb")


def _call(folder: Path, *words: str) -> None:
    run_python("-m", *words, folder=folder, surroundings={"NBUTILS_STORE": str(folder / "store")})


def _outputs(notebook: Path) -> list:
    return [cell.outputs for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
