"""Which tests run, in which order, with which random numbers, and names that every docstring example may use."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--release", action="store_true", help="also run what is checked before a release only")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--release"):
        config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("release")])
        items[:] = [item for item in items if not item.get_closest_marker("release")]
    items[:] = slowest_first(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


def slowest_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Items in one row, of which each worker begins with an equal part: tests marked slow come first in every part.

    Slow tests of one file stay together, for they share what was made for them.
    """
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow"):
            files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    parts: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for file in sorted(files.values(), key=seconds, reverse=True):
        min(parts, key=seconds).extend(file)
    quick = iter([item for item in items if not item.get_closest_marker("slow")])
    for number, part in enumerate(parts):
        size = len(items) * (number + 1) // workers - len(items) * number // workers
        part.extend(item for _, item in zip(range(size - len(part)), quick, strict=False))
    return [item for part in parts for item in part] + list(quick)


def seconds(items: list[pytest.Item]) -> float:
    return sum(mark.args[0] for item in items if (mark := item.get_closest_marker("slow")))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """The same random numbers for a test whatever ran before it on its worker, and for what is made for it first."""
    torch.manual_seed(0)
    np.random.seed(0)


@pytest.fixture(autouse=True)
def _example_names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["np"] = np
