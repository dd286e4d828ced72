"""Shared set-up: every test session has a store of its own, so no test sees or touches the user's runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the controlling process; its workers inherit the variable
        config.store_folder = tempfile.mkdtemp(prefix="nbutils-tests-")
        os.environ["NBUTILS_STORE"] = config.store_folder


def pytest_unconfigure(config: pytest.Config) -> None:
    if hasattr(config, "store_folder"):
        shutil.rmtree(config.store_folder, ignore_errors=True)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store that only this test sees."""
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def fresh_data() -> Iterator[Callable[[], None]]:
    """Forgets loaded data sets, when called and when the test is over: it may put files where there were none."""
    from nbutils.data.datasets import _load

    _load.cache_clear()
    yield _load.cache_clear
    _load.cache_clear()
