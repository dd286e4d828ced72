"""Committed tables for pages of the reference study: tiny networks on the digits, under the names of its data sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from nbutils.archive import write_archive
from nbutils.datasets import load_dataset
from nbutils.study import Study, Task, about_data, collect, compute_missing


@pytest.fixture(scope="session")
def reference_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with tables of three data sets; plantvillage has no grid of label noise."""
    folder = tmp_path_factory.mktemp("tables")
    tasks = [_with_extras(task) for task in Study(seeds=2, epochs=2, model="mlp:12-6").tasks()]
    compute_missing(tasks, jobs=1)
    alone = [replace(task, parts="conditions") for task in tasks if "conditions" in task.parts]
    for name, kept in {"mnist": tasks, "fashion-mnist": tasks, "plantvillage": alone}.items():
        write_archive(folder / name, collect(name, kept, about_data(load_dataset("digits")), 0))
    return folder


def _with_extras(task: Task) -> Task:
    own = ("evolution", "answers") if "conditions" in task.parts else ()
    return replace(task, extras=(*own, *(("specifications",) if "noise" in task.parts else ())))
