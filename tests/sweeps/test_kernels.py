"""Warm kernels give what cold ones give, and know nothing of each other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from papermill import engines

from nbutils.sweeps.execute import NotebookJob, _run
from nbutils.sweeps.grid import load_sweep
from nbutils.sweeps.tables import read_results

pytestmark = pytest.mark.usefixtures("warm_server")

EVERYTHING = """
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
np.random.seed(seed)
torch.manual_seed(seed)
print(np.random.rand(2), torch.rand(2), torch.get_num_threads() > 0)
display(pd.DataFrame({"x": [x, y]}))
plt.plot([0, x], [0, 1])
plt.show()
"""


def outputs(path: Path) -> list:
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    return [[{k: v for k, v in o.items() if k != "execution_count"} for o in c.outputs] for c in cells]


@pytest.mark.release
def test_a_warm_kernel_gives_what_plain_papermill_gives(write_notebook, write_sweep, nbutils_cli, tmp_path, own_store):
    names = "print(sorted(n for n in dir() if n[0] != '_'))\nimport os, sys\nprint(os.getcwd(), sys.path[0])\nx"
    notebook = write_notebook(EVERYTHING, names, "1 / 0 if x == 9 else None", "%pwd", "!echo from a shell")
    command = [
        sys.executable,
        "-m",
        "papermill",
        str(notebook),
        str(tmp_path / "cold.ipynb"),
        "-p",
        "x",
        "3",
        "-p",
        "seed",
        "7",
    ]
    cold = subprocess.run([*command, "-k", "python3"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert cold.returncode == 0, cold.stderr
    done = nbutils_cli("sweep", write_sweep(grid={"x": [3]}, seeds=[7]))
    assert done.returncode == 0, done.stdout
    warm = outputs(tmp_path / "runs/sweep/x=3/seed=7/small.ipynb")
    assert warm == outputs(tmp_path / "cold.ipynb")
    assert any("image/png" in o.get("data", {}) for o in warm[2]), "figures are drawn"


def test_kernels_are_isolated_from_one_another(write_notebook, write_sweep, command, tmp_path, own_store):
    dirty = """
import os, sys
import matplotlib as mpl, nbutils, numpy as np, pandas as pd
found = [hasattr(np, "poison"), hasattr(nbutils, "poison"), "POISON" in os.environ, mpl.rcParams["figure.dpi"] == 7,
         pd.get_option("display.precision") == 9, "poison" in sys.modules, "poison" in globals()]
poison = np.poison = nbutils.poison = sys.modules["poison"] = 1
os.environ["POISON"] = "1"
mpl.rcParams["figure.dpi"] = 7
pd.set_option("display.precision", 9)
nbutils.record("poisoned", sum(found))
nbutils.record("unseeded", np.random.rand())
import random
nbutils.record("unseeded too", random.random())
import debugpy
"""
    write_notebook(dirty)
    done = command("sweep", write_sweep(grid={"x": [1, 2, 3, 4]}), "--jobs", 2)
    assert done.returncode == 0, done.stdout
    table = read_results(tmp_path / "runs/sweep/results.parquet").pivot(index="x", columns="metric", values="value")
    assert (table["poisoned"] == 0).all()
    assert table["unseeded"].nunique() == 4, "a fork must not copy the state of a generator"
    assert table["unseeded too"].nunique() == 4


def test_what_a_notebook_leaves_for_its_end_is_done(write_notebook, write_sweep, command, tmp_path, own_store):
    """While nothing is undone that the process did from which the kernel was forked."""
    made, told = tmp_path / "made", tmp_path / "told"
    made.mkdir()
    write_notebook(
        f"import atexit, pathlib, tempfile\nkept = tempfile.TemporaryDirectory(dir={str(made)!r})",
        f"atexit.register(pathlib.Path({str(told)!r}).write_text, kept.name)",
    )
    done = command("sweep", write_sweep(grid={"x": [1]}, fixed={"y": 0.5}), "--jobs", 1)
    assert done.returncode == 0, done.stdout
    assert told.read_text().startswith(str(made))
    assert not list(made.iterdir())


def test_another_kernel_starts_cold(write_notebook, write_sweep, command, tmp_path, own_store, monkeypatch):
    spec = tmp_path / "jupyter/kernels/other"
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    content = {"argv": argv, "display_name": "Other", "language": "python", "env": {"OTHER": "yes"}}
    (spec / "kernel.json").write_text(json.dumps(content))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    path = write_notebook("import os\nprint(os.environ['OTHER'])")
    notebook = nbformat.read(path, as_version=4)
    for name, code, words in (("other", 0, "1 finished"), ("missing", 2, "wants the kernel 'missing'")):
        notebook.metadata["kernelspec"] = {"name": name, "display_name": name, "language": "python"}
        notebook.cells[1].source += f"\n# {name}"
        nbformat.write(notebook, path)
        done = command("sweep", write_sweep(name, grid={"x": [1]}))
        assert done.returncode == code, done.stdout
        assert words in done.stdout + done.stderr
    assert outputs(tmp_path / "runs/other/x=1/small.ipynb")[2][0]["text"] == "yes\n"


def test_a_sweep_leaves_no_history(write_notebook, write_sweep, command, tmp_path, own_store, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    write_notebook("print('a secret of this sweep')")
    assert command("sweep", write_sweep(grid={"x": [1]})).returncode == 0
    history = tmp_path / "ipython/profile_default/history.sqlite"
    assert not history.exists() or b"a secret" not in history.read_bytes()


def test_our_own_sweeps_are_valid(root):
    files = sorted((root / "notebooks/sweeps").glob("*.yml"))
    assert files
    for file in files:
        sweep = load_sweep(file)
        assert sweep.about
        assert len(sweep.points) > 1


def test_a_kernel_killed_while_it_waits_is_a_lost_attempt(write_notebook, own_store):
    """Not an error of this machine, which would end the sweep."""
    code = f"""
import os, signal
from pathlib import Path
from nbutils.sweeps import kernels
from nbutils.sweeps.execute import NotebookJob, execute
from nbutils.support.workers import TryAgain
kernels.fork_kernel()
[(waiting, _)] = kernels._waiting
os.kill(waiting, signal.SIGKILL)
os.waitid(os.P_PID, waiting, os.WEXITED | os.WNOWAIT)
try:
    execute(NotebookJob("small", Path({str(write_notebook("1"))!r}).read_text()))
except TryAgain as wish:
    print(wish.reason)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "its kernel died (killed, or out of memory?)", done.stderr


def test_a_notebook_is_written_when_it_is_over_and_not_after_each_cell(monkeypatch):
    written, write = [], engines.write_ipynb

    def counted(notebook: nbformat.NotebookNode, path: str) -> None:
        written.append(sum(bool(cell.outputs) for cell in notebook.cells))
        write(notebook, path)

    monkeypatch.setattr(engines, "write_ipynb", counted)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"{n}") for n in range(20)])
    assert _run(NotebookJob("many cells", nbformat.writes(notebook))).status == "done"
    assert written == [0, 20], "before its first cell and after its last one"
