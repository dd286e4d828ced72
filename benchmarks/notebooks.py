"""What a notebook costs besides its own work: in a sweep, and with plain papermill."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import nbformat

from benchmarks.harness import Comparison, compare, run_python, seconds

CELLS = (
    "import nbutils as nb\nimport pandas\nimport seaborn\nimport torch",
    "nb.record('product', x * float(torch.ones(2).sum()))",
)


def notebook_overhead(quick: bool) -> list[Comparison]:
    """Wall seconds per notebook in a sweep of trivial notebooks against the `papermill` command line.

    The sweep's time holds everything: its own start, the imports of the process that kernels are forked from, tables.
    """
    runs, repeats = (4, 1) if quick else (20, 3)
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        _write(folder, runs)

        def sweep(jobs: int | None) -> float:
            shutil.rmtree(folder / "store", ignore_errors=True)
            shutil.rmtree(folder / "runs", ignore_errors=True)
            options = [] if jobs is None else ["--jobs", str(jobs)]
            took = seconds(lambda: _call(folder, "nbutils", "sweep", "trivial.yml", *options))
            assert len(list((folder / "runs").rglob("trivial.ipynb"))) == runs
            return took / runs

        def plain() -> float:
            command = "papermill trivial.ipynb plain.ipynb -p x 1 -k python3 --no-progress-bar"
            took = seconds(lambda: _call(folder, *command.split()))
            assert _outputs(folder / "plain.ipynb") == _outputs(next((folder / "runs").rglob("x=1/trivial.ipynb")))
            return took

        about = f"one of {runs} notebooks that import nbutils, torch, pandas and seaborn, {{}}, against plain papermill"
        shared = {"unit": "s per notebook", "repeats": repeats}
        return [
            compare("notebook_overhead", about.format("default jobs"), lambda: sweep(None), plain, **shared),
            compare("notebook_overhead_one_job", about.format("one at a time"), lambda: sweep(1), plain, **shared),
        ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(folder: Path, runs: int) -> None:
    v4 = nbformat.v4
    first = v4.new_code_cell("x: int = 0", metadata={"tags": ["parameters"]})
    notebook = v4.new_notebook(cells=[first, *map(v4.new_code_cell, CELLS)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "trivial.ipynb")
    grid = f"grid: {{x: {{from: 1, to: {runs}, step: 1}}}}\n"
    (folder / "trivial.yml").write_text(f"notebook: trivial.ipynb\n{grid}", "utf-8")


def _call(folder: Path, *words: str) -> None:
    run_python("-m", *words, folder=folder, surroundings={"NBUTILS_STORE": str(folder / "store")})


def _outputs(notebook: Path) -> list:
    return [cell.outputs for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
