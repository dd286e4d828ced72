"""Sweeps from start to table, on real kernels, through the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from PIL import Image

from nbutils.support.store import Store
from nbutils.sweeps.report import write_report
from nbutils.sweeps.tables import pivot, read_results, select

pytestmark = [pytest.mark.usefixtures("warm_server"), pytest.mark.slow(2)]

MEASURE = (
    "import nbutils as nb\nnb.record('product', x * y, 'units', low=x * y - 1, high=x * y + 1)\nnb.record('word', name)"
)


def results(folder: Path, name: str = "sweep") -> pd.DataFrame:
    return read_results(folder / "runs" / name / "results.parquet")


def test_from_file_to_table_and_back(write_notebook, write_sweep, command, tmp_path, own_store):
    write_notebook("# notes", MEASURE)
    file = write_sweep(fixed={"name": "z"}, grid={"x": [1, 2]}, zip=[{"y": [0.5, 3.0]}])
    listing = command("sweep", file, "--dry-run")
    assert listing.returncode == 0, listing.stderr
    assert "4 points of small.ipynb; nothing is run" in listing.stdout
    assert "0 done, 0 failed, 4 missing" in listing.stdout
    assert not (tmp_path / "runs").exists()
    done = command("sweep", file, "--jobs", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 at a time, 1 thread each, on" in done.stdout
    assert "4 finished, 0 cached, 0 failed, 0 not started" in done.stdout
    assert done.stderr == ""

    files = sorted(p.relative_to(tmp_path / "runs/sweep").as_posix() for p in (tmp_path / "runs").rglob("*.ipynb"))
    assert files == [f"x={x}/y={y}/small.ipynb" for x in (1, 2) for y in (0.5, 3.0)]
    notebook = nbformat.read(tmp_path / "runs/sweep/x=2/y=3.0/small.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.nbutils.status == "done"
    assert notebook.metadata.nbutils.parameters == {"name": "z", "x": 2, "y": 3.0}
    assert str(tmp_path) not in nbformat.writes(notebook), "no paths of this machine"

    table = results(tmp_path)
    assert len(table) == 8
    product = table[table["metric"] == "product"]
    assert (product["value"] == product["x"] * product["y"]).all()
    assert (product["high"] - product["low"] == 2).all()
    assert set(product["unit"]) == {"units"}
    assert set(table[table["metric"] == "word"]["text"]) == {"z"}
    assert set(table["status"]) == {"done"}
    assert (table["seconds"] > 0).all()
    assert json.loads(table["versions"][0])["python"].startswith("3.")
    assert table["commit"].str.len().min() >= 7
    assert table["run"].nunique() == 4
    csv = read_results(tmp_path / "runs/sweep/results.csv")
    pd.testing.assert_frame_equal(csv, table, check_dtype=False)

    again = command("sweep", file)
    assert "0 finished, 4 cached, 0 failed, 0 not started" in again.stdout
    assert command("sweep", file, "--dry-run").stdout.count("  done ") == 4
    pd.testing.assert_frame_equal(results(tmp_path), table)


def test_results_in_the_terminal(write_notebook, write_sweep, command, own_store):
    write_notebook(MEASURE)
    file = write_sweep(grid={"x": [1, 2], "y": [0.5, 3.0]})
    early = command("results", file)
    assert early.returncode == 2
    assert "run the sweep first: python -m nbutils sweep" in early.stderr
    command("sweep", file)
    shown = command("results", file, "--where", "metric=product", "--sort", "value", "--reverse").stdout.splitlines()
    assert shown[1].split()[:4] == ["2", "3", "product", "6"]
    assert shown[-1] == "4 rows; 4 runs done, 0 failed"
    assert "not in the table yet" not in command("results", file).stdout
    more = write_sweep(grid={"x": [1, 2, 3], "y": [0.5, 3.0]})
    assert f"2 runs are not in the table yet; python -m nbutils sweep {more} goes on" in command("results", more).stdout
    grid = command("results", "runs/sweep/results.parquet", "--pivot", "x", "y", "--metric", "product").stdout
    assert [line.split() for line in grid.splitlines()[-3:-1]] == [["1", "0.5", "3"], ["2", "1", "6"]]
    assert grid.splitlines()[-1] == "8 rows; 4 runs done, 0 failed"
    for wrong, words in (
        (["--where", "metrc=product"], "no column 'metrc' (did you mean 'metric'?)"),
        (["--where", "product"], "--where must be column=value, received 'product'"),
        (["--pivot", "x", "y", "--metric", "prodct"], "did you mean 'product'?), received 'prodct'"),
    ):
        found = command("results", file, *wrong)
        assert found.returncode == 2
        assert words in found.stderr


def test_failures_keep_a_row_and_their_notebook_and_are_tried_again(
    write_notebook, write_sweep, command, tmp_path, own_store
):
    flag = tmp_path / "flag"
    write_notebook(
        MEASURE,
        f"from pathlib import Path\nif x == 2 and not Path({str(flag)!r}).exists(): raise ValueError('no flag')",
    )
    file = write_sweep(grid={"x": [1, 2, 3]})
    done = command("sweep", file)
    assert done.returncode == 1
    assert "failed: x=2: ValueError: no flag" in done.stdout
    assert "2 finished, 0 cached, 1 failed, 0 not started" in done.stdout
    failed = tmp_path / "runs/sweep/x=2/small.failed.ipynb"
    assert "no flag" in failed.read_text()
    assert sorted(p.name for p in failed.parent.iterdir()) == ["small.failed.ipynb"]
    table = results(tmp_path)
    row = table[table["x"] == 2]
    assert row[["status", "reason", "metric"]].to_numpy().tolist() == [["failed", "ValueError: no flag", ""]]
    assert row["seconds"].item() > 0
    flag.touch()
    again = command("sweep", file)
    assert again.returncode == 0
    assert "1 finished, 2 cached, 0 failed" in again.stdout
    assert sorted(p.name for p in failed.parent.iterdir()) == ["small.ipynb"]
    assert set(results(tmp_path)["status"]) == {"done"}


def test_an_error_without_words_names_its_line(write_notebook, write_sweep, command, own_store):
    write_notebook("y = 2 * x\nassert y > 100\nz = 1")
    done = command("sweep", write_sweep(grid={"x": [1]}))
    assert "failed: x=1: AssertionError: in 'assert y > 100'" in done.stdout


def test_max_failures_stops_early(write_notebook, write_sweep, command, own_store):
    write_notebook("raise KeyError(x)")
    done = command("sweep", write_sweep(grid={"x": list(range(9))}), "--max-failures", 2, "--jobs", 1)
    assert done.returncode == 1
    assert "0 finished, 0 cached, 2 failed, 7 not started" in done.stdout


def test_only_and_force(write_notebook, write_sweep, command, tmp_path, own_store):
    write_notebook(MEASURE, "import time\nnb.record('when', time.time())")
    file = write_sweep(grid={"x": [1, 2]})
    assert "1 finished" in command("sweep", file, "--only", "x=2").stdout
    assert set(results(tmp_path)["x"]) == {2}
    assert "1 finished, 1 cached" in command("sweep", file).stdout
    before = results(tmp_path).query("metric == 'when'").set_index("x")["value"]
    assert "1 finished, 0 cached" in command("sweep", file, "--only", "x=2", "--force").stdout
    after = results(tmp_path).query("metric == 'when'").set_index("x")["value"]
    assert after[1] == before[1]
    assert after[2] > before[2]
    wrong = command("sweep", file, "--only", "x:2")
    assert wrong.returncode == 2
    assert "--only must be key=value" in wrong.stderr


def test_mistakes_stop_everything_before_a_kernel_starts(write_notebook, write_sweep, command, tmp_path, own_store):
    write_notebook(MEASURE)
    done = command("sweep", write_sweep(grid={"x": [1, "two"]}, fixed={"zz": 1}))
    assert done.returncode == 2
    assert done.stderr.startswith("error: 2 mistakes in sweep.yml:\n- ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
    assert not own_store.exists()


def test_points_that_left_the_sweep_are_mentioned_and_kept(write_notebook, write_sweep, command, tmp_path, own_store):
    write_notebook(MEASURE)
    command("sweep", write_sweep(grid={"x": [1, 2]}))
    done = command("sweep", write_sweep(grid={"x": [2, 3]}))
    assert "1 finished, 1 cached" in done.stdout
    assert "1 notebooks in runs/sweep belong to no point of the sweep any more, such as runs/sweep/x=1" in done.stdout
    assert (tmp_path / "runs/sweep/x=1/small.ipynb").exists()
    assert set(results(tmp_path)["x"]) == {2, 3}


def test_parameters_named_like_columns_and_of_mixed_types(write_notebook, write_sweep, command, tmp_path, own_store):
    write_notebook(
        "import nbutils as nb\nnb.record('m', 1)", parameters="value = None\nrun: int = 0\nlayers: list = [1]"
    )
    file = write_sweep(grid={"value": [None, 1, "a"], "layers": [[1, 2], [3]]}, fixed={"run": 4})
    assert command("sweep", file).returncode == 0
    table = results(tmp_path)
    assert set(table["parameter.value"]) == {"null", "1", '"a"'}
    assert set(table["layers"]) == {"[1, 2]", "[3]"}
    assert set(table["parameter.run"]) == {4}
    assert set(table["value"]) == {1.0}


def test_a_report_of_any_sweep(write_notebook, write_sweep, command, tmp_path, own_store, root, monkeypatch):
    """In a folder of its own: the report's notebook comes with the package."""
    write_notebook(MEASURE, "if x == 3 and seed == 1: raise ValueError('odd')")
    file = write_sweep(grid={"x": [1, 2, 3], "y": [0.5, 1.5]}, seeds=2)
    command("sweep", file)
    done = command("report", file)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "runs/sweep/report.html").read_text()
    assert "<b>10</b>" in page or "<strong>10</strong> of 12 runs" in page
    assert page.count("<svg") - page.count('nb-narrow"') == 4
    assert "2 of 12 runs failed." in page
    assert "ValueError: odd" in page
    assert "<script" not in page
    assert "<link" not in page
    assert 'src="http' not in page
    nbformat.validate(nbformat.read(tmp_path / "runs/sweep/report.ipynb", as_version=4))
    assert "How to declare a sweep is in Sweeps." in page
    assert "book/" not in page, "no link into a folder that others do not have"
    package = tmp_path / "installed/nbutils"
    shutil.copytree(root / "notebooks", package / "notebooks")
    monkeypatch.setattr("nbutils.sweeps.report.PACKAGE", package)
    monkeypatch.chdir(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nbutils.sweeps.engine.execute", lambda *_: pytest.fail("executed again"))
        page = write_report(Path("runs/sweep/results.parquet")).read_text()
    assert "How to declare a sweep is in Sweeps." in page
    wrong = command("report", file, "--metric", "prodct")
    assert wrong.returncode == 2
    assert "did you mean 'product'?" in wrong.stderr


def test_pure_functions_of_tables():
    table = pd.DataFrame({"a": [1, 2, 2], "b": ["x", "x", "y"], "metric": ["m"] * 3, "value": [1.0, 2.0, 4.0]})
    assert select(table, ["a=2", "b=y"])["value"].tolist() == [4.0]
    assert select(table, sort="value", reverse=True)["value"].tolist() == [4.0, 2.0, 1.0]
    assert pivot(table, "b", "a").loc["x"].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="no column 'c'"):
        select(table, sort="c")


def test_damaged_tables_are_named(tmp_path):
    file = tmp_path / "results.parquet"
    with pytest.raises(FileNotFoundError, match="run the sweep first"):
        read_results(file)
    file.write_bytes(b"PAR1 not really")
    with pytest.raises(ValueError, match="cannot be read as a table"):
        read_results(file)
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not a table of results: it has no column run"):
        read_results(other)


def test_a_relative_folder_of_pictures_is_found_by_every_kernel(
    write_notebook, write_sweep, command, tmp_path, own_store
):
    """The sweep is started in a folder that is neither that of the notebook nor that of the sweep file."""
    for label in ("a", "b"):
        (tmp_path / "home/my letters" / label).mkdir(parents=True)
        for number in range(3):
            Image.new("L", (4, 4), number).save(tmp_path / "home/my letters" / label / f"{number}.png")
    count = "import nbutils as nb\nnb.record('images', len(nb.load_dataset(dataset).train_pixels))"
    write_notebook(count, parameters='dataset: str = "digits"')
    file = write_sweep(grid={"dataset": ["folder:my letters", "folder:my letters@2"]})
    done = command("sweep", file, "--jobs", 2, folder=tmp_path / "home")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 finished, 0 cached, 0 failed" in done.stdout
    table = results(tmp_path / "home")
    assert table["value"].tolist() == [4, 4]


def test_folders_of_the_environment_are_those_of_the_caller(
    write_notebook, write_sweep, command, tmp_path, monkeypatch
):
    """Kernels, which work beside the notebook, look for data and results where the command was started."""
    (tmp_path / "home").mkdir()
    where = "import nbutils as nb\nfrom nbutils.data.sources import data_folder\nnb.record('data', str(data_folder()))"
    write_notebook(f"{where}\nnb.run_once(nb.RunSpec(epochs=1, model='mlp:4'))")
    monkeypatch.setenv("NBUTILS_DATA", "data")
    monkeypatch.setenv("NBUTILS_STORE", "store")
    done = command("sweep", write_sweep(grid={"x": [1]}), "--jobs", 1, folder=tmp_path / "home")
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(tmp_path / "home")["text"].tolist() == [str(tmp_path / "home/data")]
    assert not (tmp_path / "store").exists()
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "home/store"))
    assert len(Store("runs").addresses()) == 1


def test_a_measurement_that_is_none_fails_its_run_only(write_notebook, write_sweep, command, tmp_path, own_store):
    row = '{"value": x} if x == 1 else {"metric": "m", "value": x}'
    write_notebook(
        f"from IPython.display import display\n"
        f"display({{'application/vnd.nbutils.measurement+json': {row}, 'text/plain': ''}}, raw=True)"
    )
    done = command("sweep", write_sweep(grid={"x": [1, 2]}))
    assert done.returncode == 1
    assert "failed: x=1: a measurement must have a 'metric'" in done.stdout
    assert "1 finished, 0 cached, 1 failed" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
