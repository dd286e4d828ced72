"""The page on cause tells the words of its table, whatever world that is of, and however far it has grown."""

import contextlib
import html
import re

import nbformat
import numpy as np
import pytest

import nbutils as nb
from nbutils.experiments import refutations
from nbutils.experiments.designs import TABLES

ONE, OTHERS = "modularity of communities", "modularity of a learned partition and entropy of firing"
BOTH = "MNIST (true labels) and MNIST (40 % redrawn)"


@pytest.mark.slow(30)
@pytest.mark.parametrize(
    ("truth", "words"),
    [
        pytest.param(
            {},  # what the committed table says, of which the book has this page
            [
                f"Accuracy does not follow {ONE} on {BOTH}, pushed up or down: a by-product.",
                f"Accuracy does not follow {OTHERS} on {BOTH}, pushed up or down: a by-product.",
                "the same within one point, Q was pushed on MNIST (true labels) from 0.35 to 0.8",
                "6 of 6 other measures see at least half of every shift.",
            ],
            marks=pytest.mark.release,
        ),
        (
            {"slope": 0.3, "seen": 0.4},
            [
                f"Accuracy follows {ONE} on {BOTH}, pushed up and down: a cause.",
                f"Accuracy follows modularity of a learned partition on {BOTH}, pushed up and down: a cause.",
                f"Accuracy does not follow entropy of firing on {BOTH}",
                "0 of 6 other measures see at least half of every shift; not with density 2 % (40% to 40% of it",
                "Of gains with redrawn labels, 1 of 1 exceed usual regularisers; none is mere regularisation.",
            ],
        ),
        pytest.param(
            {"slope": 0.3, "control": 0.2},
            [f"No verdict on {ONE} on {BOTH} (up: supported; down: suppor"],
            marks=pytest.mark.release,
        ),
        pytest.param(
            {"slope": 0.3, "seeds": 7},
            [
                f"Too few networks for an answer about {ONE} on {BOTH}.",
                "Networks of each dose: MNIST (true labels) 7, MNIST (40 % redrawn) 7.",
                "No dose moves Q far enough in eight networks yet. Left out: 0 of 910 networks.",
            ],
            marks=pytest.mark.release,
        ),
        pytest.param(
            {"seeds": 1}, [f"Too few networks for an answer about {ONE} on {BOTH}."], marks=pytest.mark.release
        ),
    ],
    ids=["by-product", "cause, hidden", "controls as well", "seven seeds", "one seed"],
)
def test_the_page_tells_the_words_of_its_table(truth, words, cause_world, tmp_path, execute_page, check_outputs):
    (tmp_path / TABLES).mkdir(parents=True)
    cause_world(**truth).to_parquet(tmp_path / TABLES / "cause.parquet")
    outcome = execute_page("cause", draws=100)
    assert outcome.status == "done", outcome.reason
    cells = nbformat.reads(outcome.notebook, as_version=4).cells
    check_outputs("cause", cells)
    outputs = [output for cell in cells if cell.cell_type == "code" for output in cell.outputs]
    text = html.unescape("".join(output.get("data", {}).get("text/html", "") for output in outputs))
    text = re.sub(r"</?(strong|em)>", "", text).replace("\u00a0%", " %")
    for word in words:
        assert word in text


STEPS = ("cause-step-dose", "cause-step-assert")


@pytest.mark.parametrize(
    ("old", "new", "agrees"),
    [
        ("", "", True),
        ("mean >= 0.1", "mean >= 0.02", False),
        ("dose > 0", "dose < 0", False),
        ('at_dose - none["accuracy"]', 'at_dose - none["modularity"]', False),
        ("nb.t_interval(effect)", "nb.t_interval(effect, 0.9)", False),
    ],
)
def test_visible_lines_compute_the_effect_of_the_verdict(old, new, agrees, cause_world, root):
    cells = {cell.id: cell.source for cell in nbformat.read(root / "notebooks/cause.ipynb", as_version=4).cells}
    source = "\n".join(cells[name] for name in STEPS)
    assert old in source
    made = cause_world(slope=0.1)
    names = {"np": np, "nb": nb, "refutations": refutations, "data": "mnist-10k", "sound": made}
    names["found"] = refutations.verdicts_so_far(made)
    with contextlib.nullcontext() if agrees else pytest.raises(AssertionError):
        exec(source.replace(old, new) if old else source, names)
