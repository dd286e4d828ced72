from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from nbutils.__main__ import main
from nbutils.sweeps.execute import Outcome
from nbutils.sweeps.grid import load_sweep
from nbutils.sweeps.tables import ResultsTable, pivot, read_results

# What a spreadsheet would take for a formula, what a reader would take for a number, and what needs quotes.
TEXTS = [
    *("=1+1", "+1", "-5", "@x", "\tx", "\rx", "-", "'=1", "''=", "'tis", "'5", "plain", "", " =1", "ünï"),
    *("5", "007", "1e3", "nan", "inf", "-inf", "True", "None", "NA", "null", "a\rb", "a\nb", 'q"q', "a,b"),
]
NUMBERS = [-0.1 - i / 3 for i in range(len(TEXTS))]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Tables of a sweep whose parameters and measurements are all of it."""
    parameters = (
        "word: str = ''\nnumber: float = 0.0\nwhole: int = 0\nflag: bool = True\nany = None\nhuge = 0\nclose = 0"
    )
    cell = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})
    notebook = nbformat.v4.new_notebook(cells=[cell])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "small.ipynb")
    count = len(TEXTS)
    group = {
        "word": TEXTS,
        "number": NUMBERS,
        "whole": [-i for i in range(count)],
        "flag": [i % 2 == 0 for i in range(count)],
    }
    group |= {
        "any": [[1, "=a", None, True, [1]][i % 5] for i in range(count)],
        "huge": [2**70 + i for i in range(count)],
    }
    group["close"] = [(2**53 + 1, 0.5)[i % 2] for i in range(count)]
    (tmp_path / "s.yml").write_text(json.dumps({"notebook": "small.ipynb", "zip": [group]}))
    sweep = load_sweep(tmp_path / "s.yml")
    table = ResultsTable(sweep, tmp_path)
    for job, text, number in zip(sweep.jobs(), TEXTS, NUMBERS, strict=True):
        row = {"metric": text or "m", "value": number, "text": text, "unit": text, "low": None, "high": -number}
        table.add(replace(Outcome.failure(job, text), status="done", measurements=[row]))
    table.write()
    return tmp_path


@pytest.fixture
def rows() -> pd.DataFrame:
    """Two rows of a sweep over density."""
    texts = dict.fromkeys(("sweep", "notebook", "text", "unit", "reason", "commit", "time", "versions"), "")
    numbers = {"density": [0.02, 0.05], "value": [1.0, 2.0], "low": math.nan, "high": math.nan, "seconds": 1.0}
    return pd.DataFrame({"run": ["a", "b"], **texts, "metric": "q", **numbers, "status": "done"})


def test_a_csv_file_is_harmless_in_a_spreadsheet(written):
    with (written / "results.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert len(rows) == len(TEXTS)
    numbers = {header.index(name) for name in ("number", "whole", "value", "low", "high", "seconds")}
    for row in rows:
        for column, cell in enumerate(row):
            assert not cell.startswith(("=", "+", "@", "\t", "\r"))
            assert not cell.startswith("-") or column in numbers, "only numbers may begin with a minus sign"
    assert [float(row[header.index("number")]) for row in rows] == NUMBERS
    assert [row[header.index("word")] for row in rows][:3] == ["'=1+1", "'+1", "'-5"]


def test_a_csv_file_is_read_back_as_it_was(written):
    table, exact = read_results(written / "results.csv"), read_results(written / "results.parquet")
    pd.testing.assert_frame_equal(table, exact, check_dtype=False, check_exact=True)
    assert table["word"].tolist() == table["text"].tolist() == TEXTS
    assert table["number"].tolist() == NUMBERS
    assert table["whole"].tolist() == [-i for i in range(len(TEXTS))]
    assert table["flag"].tolist() == [i % 2 == 0 for i in range(len(TEXTS))]


def test_numbers_that_no_column_holds_exactly_are_text(written):
    table = read_results(written / "results.parquet")
    assert table["huge"].tolist() == [str(2**70 + i) for i in range(len(TEXTS))]
    assert table["close"].tolist()[:2] == ["9007199254740993", "0.5"]


def test_a_mean_over_infinity_and_nan_says_so():
    """They are recorded as text, and a mean without them would be of other runs than one thinks."""
    rows = [(1, "a", 1.0, ""), (1, "a", None, "inf"), (1, "b", 2.0, ""), (2, "a", None, "nan"), (2, "a", 3.0, "")]
    table = pd.DataFrame(rows, columns=["x", "y", "value", "text"]).assign(metric="m")
    means = pivot(table, "x", "y")
    assert means.loc[1].tolist() == [math.inf, 2.0]
    assert math.isnan(means.loc[2, "a"])
    assert math.isnan(means.loc[2, "b"])


def test_runs_without_a_value_of_the_parameter_stay_in_the_pivot():
    table = pd.DataFrame({"x": [1, 1], "y": [None, "a"], "value": [1.0, 2.0], "text": "", "metric": "m"})
    assert sorted(pivot(table, "x", "y").loc[1].tolist()) == [1.0, 2.0]


def test_a_table_without_rows_stays_a_table(tmp_path, monkeypatch, capsys, rows):
    monkeypatch.chdir(tmp_path)
    rows.iloc[:0].to_csv("results.csv", index=False)
    rows.iloc[:0].to_parquet("results.parquet", index=False)
    for file in ("results.csv", "results.parquet"):
        assert main(["results", file, "--where", "density=0.02"]) == 0
        assert "0 rows; 0 runs done" in capsys.readouterr().out


def test_texts_of_a_foreign_table_may_be_categories(tmp_path, rows):
    rows["unit"] = pd.Categorical(["a", None])
    rows.to_parquet(tmp_path / "results.parquet", index=False)
    assert list(read_results(tmp_path / "results.parquet")["unit"]) == ["a", ""]
