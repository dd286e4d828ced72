"""What a sweep must not pass over without a word: code and pictures beside a notebook, early ends, lost records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import cache_from_source
from pathlib import Path

import pandas as pd
import pytest

from nbutils.sweeps.neighbours import neighbour_code
from nbutils.sweeps.parameters import data_versions, template_model
from nbutils.sweeps.sweep_figures import heat_maps
from nbutils.sweeps.tables import one_metric, pivot

SAID = """
import helper
import nbutils as nb
from IPython.display import clear_output
nb.record("cleared", x)
clear_output()
print("something else")
"""
CAPTURED = "%%capture\nnb.record('captured', helper.VALUE)"


def test_records_survive_a_cleared_and_a_captured_output_and_a_module_beside_the_notebook_counts(
    write_notebook, write_sweep, command, tmp_path, own_store
):
    helper = tmp_path / "helper.py"
    helper.write_text("VALUE = 1\n", "utf-8")
    write_notebook(SAID, CAPTURED)
    file = write_sweep(grid={"x": [1]}, fixed={"y": 0.5})
    for value, word in ((1, "1 finished, 0 cached"), (1, "0 finished, 1 cached"), (7, "1 finished, 0 cached")):
        helper.write_text(f"VALUE = {value}\n", "utf-8")
        assert word in command("sweep", file).stdout
        found = pd.read_csv(tmp_path / "runs/sweep/results.csv").set_index("metric")["value"]
        assert found.to_dict() == {"cleared": 1, "captured": value}
    helper.write_text("VALUE = 8\n", "utf-8")
    said = command("results", file).stdout
    assert "1 of these runs are none of the sweep as it is now" in said
    assert "1 runs are not in the table yet" in said


def test_a_notebook_that_ends_early_has_failed(write_notebook, write_sweep, command, tmp_path, own_store):
    write_notebook("import sys\nsys.exit(0)", "print('never')")
    assert "0 finished, 0 cached, 1 failed" in command("sweep", write_sweep(grid={"x": [1]})).stdout
    table = pd.read_csv(tmp_path / "runs/sweep/results.csv")
    assert table["status"].tolist() == ["failed"]
    assert "SystemExit" in table["reason"][0] or "ended before code cell 3 of 3" in table["reason"][0]


def test_a_parameter_that_is_computed_from_another_one_is_refused(write_notebook, write_sweep, command):
    write_notebook("print(hidden)", parameters="x: int = 8\nhidden = x * 2")
    refused = command("sweep", write_sweep(grid={"x": [8, 16]}), "--dry-run")
    assert refused.returncode == 2
    assert "'hidden' is computed from 'x' in small.ipynb's cell of parameters" in refused.stderr
    both = command("sweep", write_sweep(grid={"x": [8, 16]}, fixed={"hidden": 3}), "--dry-run")
    assert both.returncode == 0, both.stderr


def test_types_with_none(write_notebook):
    notebook = write_notebook(parameters="k: int | None = 5  # [1 to 9]\nw: Optional[float] = None\nt: int | str = 1")
    model = template_model(notebook)
    assert model(k=None, w=0.5, t="a").model_dump() == {"k": None, "w": 0.5, "t": "a"}
    for wrong in ({"k": 10}, {"k": "many"}, {"w": "wide"}, {"t": None}):
        with pytest.raises(ValueError, match="validation error"):
            model(**wrong)


def test_pictures_in_a_folder_count_wherever_a_text_names_them(write_notebook, write_pictures):
    model = template_model(write_notebook(parameters="pictures: str = ''"))
    given = {"pictures": write_pictures(0)}
    before = data_versions(model, given)
    write_pictures(1)
    after = data_versions(model, given)
    assert len(before) == len(after) == 1
    assert before != after
    assert data_versions(model, {"pictures": "folder:/nowhere"}) == data_versions(model, {"pictures": "words"}) == ()


def test_modules_beside_a_notebook_at_any_level(tmp_path):
    cells = ["import one, json\n%matplotlib inline", "from pack.inner import x", "!ls", "from . import never"]
    cells = [
        {"cell_type": "code", "source": cell, "metadata": {}, "outputs": [], "id": str(n)}
        for n, cell in enumerate(cells)
    ]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    for name in ("one.py", "two.py", "unused.py", "pack/__init__.py", "pack/inner.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("import two\nimport one\n" if name == "one.py" else "", "utf-8")
    names = [one.split()[0] for one in neighbour_code(text, tmp_path)]
    assert names == ["one.py", "pack/__init__.py", "pack/inner.py", "two.py"]


def test_a_module_that_changes_twice_within_a_second_is_not_run_as_it_was(tmp_path):
    cell = {"cell_type": "code", "source": "import one", "metadata": {}, "outputs": [], "id": "a"}
    text = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    module = tmp_path / "one.py"

    def value():
        command = [sys.executable, "-c", "import one; print(one.VALUE)"]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
        return int(subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True).stdout)

    whole_second = int(time.time()) - 10
    for number, ahead in ((1, False), (7, True)):  # both within one whole second of the clock
        module.write_text(f"VALUE = {number}\n", "utf-8")
        os.utime(module, (whole_second, whole_second + 0.1 * number))
        if ahead:
            compiled = Path(cache_from_source(str(module)))
            os.utime(compiled, (whole_second, whole_second + 0.3))
            assert value() == 1  # what Python does by itself
            neighbour_code(text, tmp_path)
        assert value() == number


def test_runs_that_failed_or_gave_no_number_are_counted():
    rows = [
        (x, seed, "loss", value)
        for x, values in ((1, (1.0, 2.0)), (2, (5.0, None)))
        for seed, value in enumerate(values)
    ]
    table = pd.DataFrame(rows, columns=["x", "seed", "metric", "value"]).assign(
        status="done", run=list("abcd"), sweep="s"
    )
    table["y"] = [None, 7.0, None, 7.0]
    kept = table[table["value"].notna()]
    assert pivot(kept, "x", "sweep", "loss", "count")["s"].tolist() == [2, 1]
    labels = [text.get_text() for ax in heat_maps(one_metric(table)).axes for text in ax.get_xticklabels()]
    assert labels == ["null", "7.0"]
