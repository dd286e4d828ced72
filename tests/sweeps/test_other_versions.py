"""Sweeps in an environment with another version of a library, really started in processes of their own."""

from __future__ import annotations

import json
from importlib.metadata import version

import nbformat
import pytest
from sweep_helpers import RECORD, executed, log

from nbutils.sweeps.tables import read_results


def test_rows_of_another_torch_are_not_served(
    write_notebook, write_sweep, nbutils_cli, tmp_path, own_store, monkeypatch, pretend_torch
):
    write_notebook(log(tmp_path), RECORD)
    file = write_sweep(grid={"x": [1, 2]}, fixed={"y": 0.5})

    def torches() -> set[str]:
        rows = read_results(tmp_path / "runs/sweep/results.parquet")["versions"]
        return {json.loads(row)["torch"] for row in rows}

    with monkeypatch.context() as patch:
        pretend_torch("2.12.0", patch)
        first = nbutils_cli("sweep", file)
        assert "2 finished, 0 cached" in first.stdout, first.stdout + first.stderr
        assert "computed again" not in first.stdout
        assert torches() == {"2.12.0"}
    second = nbutils_cli("sweep", file)
    here = version("torch")
    told = f"2 results were made with torch 2.12.0; here is torch {here}, so they are computed again."
    assert told in second.stdout.splitlines()
    assert "2 finished, 0 cached" in second.stdout
    assert torches() == {here}
    assert len(executed(tmp_path)) == 4
    with monkeypatch.context() as patch:
        pretend_torch("2.12.0", patch)
        back = nbutils_cli("sweep", file)
        assert "0 finished, 2 cached" in back.stdout, "back there, its own are found"
        assert torches() == {"2.12.0"}
    assert len(executed(tmp_path)) == 4


@pytest.mark.release
def test_runs_of_another_torch_are_listed_as_such(nbutils_cli, tmp_path, own_store, monkeypatch, pretend_torch):
    small = ["run", "--datasets", "digits", "--seeds", "1", "--epochs", "1", "--jobs", "1"]
    with monkeypatch.context() as patch:
        pretend_torch("2.12.0", patch)
        assert nbutils_cli(*small).returncode == 0
    listed = nbutils_cli("runs").stdout
    assert listed.count("other versions torch 2.12.0") == 8
    again = nbutils_cli(*small).stdout
    assert "8 results were made with torch 2.12.0; here is torch" in again
    assert "8 computed, 0 failed" in again
    listed = nbutils_cli("runs").stdout
    assert listed.count(" done ") == listed.count("other versions torch 2.12.0") == 8
    pruned = nbutils_cli("runs", "--prune").stdout
    assert "torch 2.12.0" not in pruned
    assert pruned.count(" done ") == 8


@pytest.mark.usefixtures("warm_server")
def test_an_edit_of_text_reaches_the_notebooks_of_a_sweep_without_a_kernel(
    write_notebook, write_sweep, command, tmp_path, own_store
):
    notebook = write_notebook(log(tmp_path), RECORD)
    file = write_sweep(grid={"x": [1, 2]}, fixed={"y": 0.5})
    command("sweep", file)
    table = read_results(tmp_path / "runs/sweep/results.parquet")
    template = nbformat.read(notebook, as_version=4)
    template.cells.insert(0, nbformat.v4.new_markdown_cell("What this is about.", id="about"))
    nbformat.write(template, notebook)
    again = command("sweep", file)
    assert "0 finished, 2 cached" in again.stdout
    assert len(executed(tmp_path)) == 2
    for x in (1, 2):
        page = nbformat.read(tmp_path / f"runs/sweep/x={x}/small.ipynb", as_version=4)
        nbformat.validate(page)
        assert page.cells[0].source == "What this is about."
        assert [cell.cell_type for cell in page.cells] == ["markdown", "code", "code", "code", "code"]
    assert read_results(tmp_path / "runs/sweep/results.parquet").equals(table)
