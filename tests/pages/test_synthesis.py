"""What the synthesis must not hide."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from nbutils.study.archive import REFERENCE, RESULTS, SMALL, read_archive
from nbutils.study.comparisons import between_run_table
from nbutils.study.hypotheses import H3_MEASURE, between_evidence

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", [n for n, study in (SMALL | REFERENCE).items() if study.grid != ""])
def test_the_paper_s_entropy_rises_with_test_accuracy(name):
    """On every committed grid, against the sign that H3 predicts, which the page states from these numbers."""
    grid = read_archive(ROOT / RESULTS / name, name).noise_grid()
    (row,) = between_run_table(grid, ["binned_entropy"]).itertuples()
    assert 0.8 < row.rho < 1
    assert row.low > 0
    (test,) = between_evidence(grid, "H3")
    assert test.direction == -1
    last = grid[grid["epoch"] == grid["epoch"].max()]
    assert test.estimate == pytest.approx(last[H3_MEASURE].corr(last["test_accuracy"], method="spearman"))


def test_the_page_shows_it_as_a_finding():
    cells = nbformat.read(ROOT / "notebooks/synthesis.ipynb", as_version=4).cells
    text = "\n".join(cell.source for cell in cells)
    assert "## The paper's entropy has the opposite sign" in text
    (told,) = (c for c in cells if c.cell_type == "code" and "H3 predicts a negative" in c.source)
    assert "hide-input" not in told.metadata.get("tags", [])


@pytest.mark.parametrize(
    "place", ["notebooks/synthesis.ipynb", "notebooks/robustness.ipynb", "book/intro.md", "book/methods/statistics.md"]
)
def test_rules_that_came_first_come_with_the_pilot_that_chose_the_firing_rule(place):
    text = (ROOT / place).read_text("utf-8")
    if place.endswith("ipynb"):
        text = "\n\n".join(c.source for c in nbformat.reads(text, as_version=4).cells)
    (said,) = [
        part for part in re.split(r"\n\n|\n- ", text) if "pilot on" in " ".join(part.split()) or "chosen on" in part
    ]
    said = " ".join(said.split())
    for word in ("top decile", "pilot", "MNIST-5k, Fashion-MNIST and digits", "modularity followed test accuracy"):
        assert word in said, word
