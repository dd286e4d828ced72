"""Small notebooks and sweeps over them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
import yaml
from sweep_helpers import Driver, wait_for

PARAMETERS = 'x: int = 1\ny: float = 0.5\nname: str = "a"\nseed: int = 0'


@pytest.fixture
def write_notebook(tmp_path: Path) -> Callable[..., Path]:
    """Write a notebook with the given code cells after its parameters."""

    def write(*cells: str, parameters: str = PARAMETERS, name: str = "small") -> Path:
        v4 = nbformat.v4
        first = v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}, id="parameters")
        rest = [v4.new_code_cell(cell, id=f"cell-{i}") for i, cell in enumerate(cells)]
        notebook = v4.new_notebook(cells=[first, *rest])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = tmp_path / f"{name}.ipynb"
        nbformat.write(notebook, path)
        return path

    return write


@pytest.fixture
def write_sweep(tmp_path: Path) -> Callable[..., Path]:
    """Write a sweep file."""

    def write(file: str = "sweep", **content: object) -> Path:
        path = tmp_path / f"{file}.yml"
        path.write_text(yaml.safe_dump({"notebook": "small.ipynb", **content}, sort_keys=False), "utf-8")
        return path

    return write


@pytest.fixture
def pretend_torch(tmp_path: Path, root: Path) -> Callable[[str, pytest.MonkeyPatch], None]:
    """Let processes that start from now on find another version of torch installed."""

    def pretend(version: str, patch: pytest.MonkeyPatch) -> None:
        shim = tmp_path / f"shim-{version}"
        about = shim / f"torch-{version}.dist-info"
        about.mkdir(parents=True, exist_ok=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n", "utf-8")
        patch.setenv("PYTHONPATH", os.pathsep.join((str(shim), str(root))))

    return pretend


@pytest.fixture
def start_sweep(tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    """Start a sweep in the background; nothing of it may be left at the end of the test."""
    drivers: list[Driver] = []

    def start(*arguments: object) -> Driver:
        drivers.append(Driver(tmp_path, arguments))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.process.kill()  # does nothing to one that has ended, as in every test that passed
        driver.process.wait(timeout=60)
        assert wait_for(lambda driver=driver: not driver.family(), 20), f"left over: {driver.family()}"
    assert not [p for base in (tmp_path / "tmp").glob("nbutils-*") for p in base.iterdir()], "temporary files left"


@pytest.fixture
def nbutils_cli(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Run `python -m nbutils` in the test's folder."""

    def run(*arguments: object, timeout: float = 300) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "nbutils", *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=timeout)

    return run
