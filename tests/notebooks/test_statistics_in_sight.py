"""The lines of a page that compute the statistic of its verdict agree with the verdict, and only as they stand."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import nbformat
import pytest

from nbutils.study.hypotheses import TESTS

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
# What the page reads: committed tables of a data set with all tests and ten networks.
GIVEN = {"dataset": "digits", "source": "tables", "seeds": 10, "epochs": 10}
# Page -> changes to its visible lines, each of which computes something else.
CHANGES = {
    "h1_communities": [
        ('trained["modularity"] - trained["null_circular"]', 'trained["modularity"] - trained["null_within"]'),
        ("excess - before", "excess"),
        ('trained["well_defined"] - first["well_defined"]', 'trained["well_defined"]'),
        ("nb.sign_flip(more", "nb.sign_flip(-more"),
        ('table["labels"] == "true"', 'table["labels"] == "random"'),
    ],
    "h2_modularity": [
        ('wide["train_accuracy"]', 'wide["test_accuracy"]'),
        ('table["epoch"] > 0', 'table["epoch"] >= 0'),
        ("(len(pairs) - 1)", "len(pairs)"),
        ("nb.session_permutation(q, accuracy", "nb.session_permutation(q, accuracy[::-1]"),
        ('ends["modularity"], ends["test_accuracy"]', 'ends["modularity"], ends["train_accuracy"]'),
    ],
    "h3_entropy": [
        ("ceiling - bits < nb.RULES.room", "ceiling - bits < 99"),
        ('wide["pattern_entropy"]', 'wide["binned_entropy"]'),
        ('accuracy, rng=0, alternative="less"', 'accuracy, rng=0, alternative="greater"'),
        ('ends["pattern_entropy"], ends["test_accuracy"]', 'ends["firing_entropy"], ends["test_accuracy"]'),
        ('level, 0, alternative="less"', 'level, 0, alternative="greater"'),
    ],
}


@cache
def executed(name: str) -> tuple[list[str], dict]:
    """The visible code cells of a page that lead to its statistics, and their variables."""
    cells = [c for c in nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4).cells if c.cell_type == "code"]
    visible = [c for c in cells if "hide-input" not in c.metadata.get("tags", [])]
    last = max(i for i, cell in enumerate(visible) if "assert np." in cell.source)
    chosen, variables = [cell.source for cell in visible[: last + 1]], {}
    for cell in visible[: last + 1]:
        run(cell.source, variables)
        if "parameters" in cell.metadata.get("tags", []):
            variables |= GIVEN
    return chosen, variables


def run(source: str, variables: dict) -> None:
    exec(compile(source, "cell", "exec"), variables)


@pytest.fixture(autouse=True)
def in_the_project(root, monkeypatch):
    monkeypatch.chdir(root)


@pytest.mark.parametrize("name", CHANGES)
def test_visible_lines_compute_every_test_of_the_verdict(name):
    cells, variables = executed(name)
    for test in (test for test in TESTS if test.startswith(name[:2].upper())):
        assert any(f'"{test}"' in source for source in cells), f"{test} is not compared"
        assert variables["page"].test(test).outcome in ("passes", "fails", "opposite")


@pytest.mark.parametrize(("name", "old", "new"), [(name, *pair) for name, pairs in CHANGES.items() for pair in pairs])
def test_another_computation_contradicts_the_verdict(name, old, new):
    cells, variables = executed(name)[0], dict(executed(name)[1])
    changed = [i for i, source in enumerate(cells) if old in source]
    assert len(changed) == 1, "the change is to one place"
    altered = "\n".join(cells[changed[0] :]).replace(old, new)
    with pytest.raises(AssertionError):
        run(altered, variables)
