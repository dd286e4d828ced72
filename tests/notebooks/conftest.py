from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def small_tables() -> Callable[[Path], None]:
    """Writes committed tables of a tiny study of the digits into a project's folder, under the name of MNIST."""

    def write(root: Path) -> None:
        from nbutils.archive import RESULTS, write_archive
        from nbutils.datasets import load_dataset
        from nbutils.study import Study, about_data, collect, compute_missing

        study = Study(seeds=2, epochs=4, model="mlp:16-12")
        extras = {True: ("evolution", "answers"), False: ()}
        tasks = [replace(task, extras=extras["conditions" in task.parts]) for task in study.tasks()]
        compute_missing(tasks, jobs=1)
        write_archive(root / RESULTS / "mnist", collect("mnist", tasks, about_data(load_dataset("digits")), 0))

    return write
