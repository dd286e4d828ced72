"""Committed tables for pages of the reference study, as small as can be."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nbutils.archive import RESULTS, write_archive
from nbutils.datasets import load_dataset
from nbutils.measures import MeasureSpec
from nbutils.study import Study, Task, about_data, collect, compute_missing


@pytest.fixture(scope="session")
def tiny_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `book/results`: the published figures, and a study of small networks on digits in MNIST's place."""
    study = Study(seeds=2, epochs=2, model="mlp:12-6")
    tasks = [_with_extras(task) for task in study.tasks()]
    bright = [study.run_spec(seed=seed, input_scale=255.0, checkpoints=True) for seed in range(study.seeds)]
    tasks += [Task(run, MeasureSpec(), "released", ("reconstruction",)) for run in bright]
    compute_missing(tasks, jobs=1)
    folder = tmp_path_factory.mktemp("tables")
    shutil.copytree(Path(__file__).parents[2] / RESULTS / "published", folder / RESULTS / "published")
    write_archive(folder / RESULTS / "mnist", collect("mnist", tasks, about_data(load_dataset("digits")), 0))
    return folder


@pytest.fixture
def tables_here(tiny_tables: Path, tmp_path: Path) -> Callable[[], None]:
    """Puts the small tables where a notebook that runs in the test's folder looks for them."""
    return lambda: shutil.copytree(tiny_tables, tmp_path, dirs_exist_ok=True)


def _with_extras(task: Task) -> Task:
    if task.run.labels != "true":
        return replace(task, extras=("evolution", "answers") if "conditions" in task.parts else ())
    run = task.run.model_copy(update={"checkpoints": True})
    return replace(task, run=run, extras=("evolution", "answers", "specifications", "reconstruction"))
