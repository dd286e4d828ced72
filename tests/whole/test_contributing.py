"""The four changes that CONTRIBUTING.md shows, performed on a copy of the project exactly as they stand there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import nbformat
import numpy as np
import pytest

PARTS = ("nbutils", "notebooks", "tests", "book", "benchmarks")
FILES = ("*.yml", "*.toml", "*.md", "*.txt", "*.py", "*.cff", "LICENSE", "Makefile")


@pytest.fixture
def changed(root: Path, tmp_path: Path) -> Callable[[str], Callable[..., str]]:
    """Apply the diff under a heading to a copy; what comes back runs Python in that copy."""
    copy = tmp_path / "project"

    def made(folder: str, names: list[str]) -> set[str]:
        return {"_build", "pages"} & set(names) if Path(folder) == root / "book" else set()

    def run(*arguments: str) -> str:
        folders = {"NBUTILS_STORE": str(tmp_path / "store"), "NBUTILS_DATA": str(tmp_path / "data")}
        environment = {**os.environ, **folders, "PYTHONPATH": str(copy)}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout

    def apply(heading: str) -> Callable[..., str]:
        for part in PARTS:  # with what is compiled already
            shutil.copytree(root / part, copy / part, ignore=made)
        for file in chain.from_iterable(map(root.glob, FILES)):
            shutil.copy2(file, copy / file.name)
        text = (root / "CONTRIBUTING.md").read_text("utf-8")
        diff = re.search(rf"^### {heading}\n.*?^```diff\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]
        assert len(set(re.findall(r"^\+\+\+ b/(.+)$", diff, re.MULTILINE))) <= 3
        alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)}  # whatever repository the folder lies in
        done = subprocess.run(["git", "apply", "-"], input=diff, cwd=copy, env=alone, capture_output=True, text=True)
        told = f"the diff under *{heading}* in CONTRIBUTING.md fits no more; renew the lines around its changes"
        assert done.returncode == 0, f"{told}: {done.stderr}"
        return run

    return apply


MEASURE = """
import numpy as np
from nbutils.runs.run import run_once
from nbutils.study.comparisons import between_run_table
from nbutils.study.study import Study

study = Study(seeds=1, epochs=1, model="mlp:8")
results = study.compute(jobs=1)
for labels in ("true", "random"):
    run, rows = run_once(study.run_spec(labels=labels)), results.conditions().query("labels == @labels")
    fired = [run.fired(epoch) for epoch in rows["epoch"]]
    np.testing.assert_allclose(rows["silence"], [np.mean([not any(image) for image in one]) for one in fired])
assert rows["silence"].between(0, 1, inclusive="neither").all(), "neither all images nor none"
assert "silent images" in set(between_run_table(results.noise_grid(), draws=20)["measure"])
"""


@pytest.mark.slow(10)
def test_a_new_measure_is_in_every_table(changed):
    run = changed("A new measure")
    run("-c", MEASURE)


TRAINING = """
import math
import numpy as np
import pytest
from nbutils.experiments.conditions import condition_trials
from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec

found = [one for one in condition_trials(["mnist-10k"]) if one.condition == "cosine"]
assert len(found) == 8 and found[0].run.schedule == "cosine:10"
runs = [run_once(RunSpec(model="mlp:8", epochs=2, schedule=name)) for name in ("constant", "cosine:2")]
losses = [run.history["train_loss"].iloc[-1] for run in runs]
assert not any(run.failed for run in runs)
assert math.isfinite(losses[1]) and losses[0] != losses[1]

(smooth,) = [one.run for one in condition_trials(["mnist-10k"], seeds=1) if one.condition == "softplus"]
smooth = run_once(RunSpec(model="mlp:8", epochs=2, activation=smooth.activation, initialisation=smooth.initialisation))
assert not smooth.failed and smooth.fired(2).mean() == pytest.approx(0.1, abs=0.02)

pushed = [run_once(RunSpec(model="mlp:24", epochs=4, penalty=f"together:{c}")) for c in (30, -30)]
together = [np.clip(np.cov(run.fired(4).astype(float), rowvar=False), 0, None).mean() for run in pushed]
assert together[0] > 1.2 * together[1], together
"""


@pytest.mark.slow(10)
def test_a_new_way_to_train_is_a_parameter_and_a_condition(changed):
    run = changed("A new way to train")
    run("-c", TRAINING)


DATA = """
from pathlib import Path
import nbutils as nb
from nbutils.pages.publish import book_toc, page_jobs

run = nb.run_once(nb.RunSpec(dataset="arrows", model="mlp:8", epochs=30))
assert not run.failed
assert run.history["test_accuracy"].iloc[-1] == 1, run.history
data = run.spec.data()
assert (len(data.train_true), len(data.test_labels), data.image_shape) == (80, 20, (6, 6))
pages = {f"{job.output.parent.name}/{job.output.stem}" for job in page_jobs(Path(), ["digits", "arrows"], 1, 1)}
assert {"summary/datasets", "arrows/h1_communities", "arrows/h2_modularity", "arrows/h3_entropy"} <= pages
assert "book/pages/arrows/h1_communities" in str(book_toc(Path(), ["digits", "arrows"]))
assert "book/pages/arrows/h1_communities" not in str(book_toc(Path(), ["digits"]))
"""


@pytest.mark.slow(10)
def test_a_new_data_set_trains_and_has_pages(changed, tmp_path):
    """Arrows that anyone can tell apart: the left half is bright, or the right one."""
    run = changed("A new data set")
    save_arrows(tmp_path / "data")
    run("-c", DATA)


def save_arrows(folder: Path) -> None:
    sides = {}
    for side, size in (("train", 80), ("test", 20)):
        labels = np.arange(size) % 2
        images = np.zeros((size, 6, 6), np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[:, 3 * label : 3 * label + 3] = 200
        sides |= {side: images, f"{side}_labels": labels}
    folder.mkdir()
    np.savez(folder / "arrows.npz", **sides)


PAGE = """
from pathlib import Path
from nbutils.pages.publish import book_toc, page_jobs, publish
from nbutils.sweeps.engine import runner

if __name__ == "__main__":
    jobs = [job for job in page_jobs(Path(), ["digits"], 1, 1) if job.template.stem == "silence"]
    with runner(jobs=1) as where:
        found = publish(jobs, where)
    assert (found.finished, found.complete) == (1, True), found
    assert "book/pages/silence/silence" in str(book_toc(Path(), ["digits"]))
"""


@pytest.mark.slow(20)
def test_a_new_page_is_executed_and_in_the_book(changed, tmp_path):
    run = changed("A new page")
    (tmp_path / "publish.py").write_text(PAGE, "utf-8")
    run(str(tmp_path / "publish.py"))
    page = nbformat.read(tmp_path / "project/book/pages/silence/silence.ipynb", as_version=4)
    shown = [o for cell in page.cells if cell.cell_type == "code" for o in cell.outputs]
    assert any("Training is" in o.get("data", {}).get("text/html", "") for o in shown)


TESTS = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-k", "not tracked")  # the copy is no repository
HOUSE = ("book/_ext/house.py",)


@pytest.mark.release
@pytest.mark.slow(120)
def test_the_tests_around_a_new_measure_pass(changed):
    run = changed("A new measure")
    run(*HOUSE)
    run(*TESTS, "nbutils/measures.py", "tests/core", "tests/study", "tests/whole/test_hostile.py")


@pytest.mark.release
@pytest.mark.slow(120)
def test_the_tests_around_a_new_data_set_pass(changed, tmp_path):
    """Once what the book shows of it without its files is kept, as the text says."""
    run = changed("A new data set")
    save_arrows(tmp_path / "data")
    run("-m", "nbutils", "data", "keep", "arrows")
    run("-c", "from nbutils.study.archive import RESULTS, write_sums; write_sums(RESULTS)")
    run(*HOUSE)
    run(
        *TESTS,
        "tests/data",
        "tests/pages/test_publish.py",
        "tests/results/test_sums.py",
        "tests/book/test_documents.py",
    )
    run(*TESTS, "tests/notebooks/test_templates.py", "-k", "stands_without and arrows")


@pytest.mark.release
@pytest.mark.slow(60)
def test_the_tests_around_a_new_page_pass(changed):
    run = changed("A new page")
    run(*HOUSE)
    run(*TESTS, "tests/notebooks/test_templates.py", "-k", "silence")
    run(*TESTS, "tests/book/test_documents.py", "tests/pages/test_publish.py")
