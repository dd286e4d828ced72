"""Committed tables for pages of the reference study: tiny networks on the digits, under the names of its data sets."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nbutils.data.datasets import load_dataset
from nbutils.measures import MeasureSpec
from nbutils.study.archive import RESULTS, write_archive
from nbutils.study.study import Study, Task, about_data, collect, compute_missing


@pytest.fixture(scope="session")
def reference_tables(made_once: Callable[[str, Callable[[Path], None]], Path]) -> Path:
    """A folder with `book/results`: the published figures, and tables of three data sets.

    MNIST has everything, plantvillage neither a grid of label noise nor the released code.
    """
    return made_once("reference-tables", write_tables)


def write_tables(folder: Path) -> None:
    study, light = Study(seeds=2, epochs=4, model="mlp:16-12"), MeasureSpec(null_draws=0)
    tasks = [_with_extras(task) for task in study.tasks()]
    memorising = Task(study.run_spec(labels="random", epochs=12, stop_at=0.95), light, "memorising")
    bright = [study.run_spec(seed=seed, input_scale=255.0, checkpoints=True) for seed in range(study.seeds)]
    released = [Task(run, light, "released", ("reconstruction",)) for run in bright]
    compute_missing([*tasks, memorising, *released], jobs=1)
    alone = [replace(task, parts="conditions") for task in tasks if task.run.labels == "true"]
    about = about_data(load_dataset("digits"))
    shutil.copytree(Path(__file__).parents[2] / RESULTS / "published", folder / RESULTS / "published")
    kept = {"mnist": [*tasks, memorising, *released], "fashion-mnist": [*tasks, memorising], "plantvillage": alone}
    for name, chosen in kept.items():
        write_archive(folder / RESULTS / name, collect(name, chosen, about, 0))


@pytest.fixture
def tables_here(reference_tables: Path, tmp_path: Path) -> Callable[[], None]:
    """Puts the tables where a notebook that runs in the test's folder looks for them."""
    return lambda: shutil.copytree(reference_tables, tmp_path, dirs_exist_ok=True)


def _with_extras(task: Task) -> Task:
    extras = [*(("evolution", "selectivity") if "conditions" in task.parts else ())]
    extras += ["specifications"] if "noise" in task.parts else []
    if task.run.labels != "true":
        return replace(task, extras=tuple(extras))
    run = task.run.model_copy(update={"checkpoints": True})
    return replace(task, run=run, extras=(*extras, "reconstruction"))
