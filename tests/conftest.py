"""Shared set-up: every test session has a store of its own, so no test sees or touches the user's runs."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import pytest
from filelock import FileLock
from PIL import Image

if TYPE_CHECKING:
    from nbutils.sweeps.execute import Outcome

ROOT = Path(__file__).resolve().parents[1]


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the controlling process; its workers inherit the variable
        config.store_folder = tempfile.mkdtemp(prefix="nbutils-tests-")
        os.environ["NBUTILS_STORE"] = config.store_folder


def pytest_unconfigure(config: pytest.Config) -> None:
    if hasattr(config, "store_folder"):
        for folder in (config.store_folder, f"{config.store_folder}-shared"):
            shutil.rmtree(folder, ignore_errors=True)


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


@pytest.fixture(scope="session")
def made_once() -> Callable[[str, Callable[[Path], None]], Path]:
    """Makes a folder by its name, once for all workers of this session: others wait until it is whole."""
    base = Path(os.environ["NBUTILS_STORE"]).with_name(f"{Path(os.environ['NBUTILS_STORE']).name}-shared")

    def make(name: str, fill: Callable[[Path], None]) -> Path:
        base.mkdir(exist_ok=True)
        with FileLock(base / f"{name}.lock"):
            if not (base / f"{name}.done").exists():
                shutil.rmtree(base / name, ignore_errors=True)
                (base / name).mkdir()
                fill(base / name)
                (base / f"{name}.done").touch()
        return base / name

    return make


@pytest.fixture(scope="session")
def warm_server() -> None:
    """The server that kernels are forked from, with all that notebooks import; it lasts as long as this process."""
    from nbutils.support.workers import run_tasks
    from nbutils.sweeps.engine import SLOW

    preload = ("nbutils.sweeps._warm", *(module for modules in SLOW.values() for module in modules))
    assert list(run_tasks(abs, [-1], 1, fresh=True, preload=preload)) == [(-1, 1)]


@pytest.fixture(scope="session")
def check_outputs() -> Callable[[str, list], None]:
    """Holds the cells of an executed page against what every page must show."""

    def check(name: str, cells: list) -> None:
        outputs = [output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]]
        kinds = {output["output_type"] for output in outputs}
        assert not kinds & {"error", "stream"}, f"{name}: pages show results, not streams"
        bare = [output for output in outputs if {"image/png", "image/svg+xml"} & set(output.get("data", {}))]
        assert not bare, f"{name}: a figure needs nb.show(figure, caption, alt)"
        without = {"synthesis", "robustness", "sweep_report", "speed"}  # a box with a verdict
        assert any("nb-callout" in "".join(o.get("data", {}).get("text/html", "")) for o in outputs) or name in without

    return check


@pytest.fixture
def house(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that draws the rooms of the package and measures it."""
    monkeypatch.syspath_prepend(root / "book/_ext")
    return import_module("house")


@pytest.fixture(scope="module")
def explorer() -> Iterator[ModuleType]:
    """The module that draws the explorer of networks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "book/_ext")
        yield import_module("explorer")


@pytest.fixture
def execute_page(warm_server: None, root: Path, tmp_path: Path) -> Callable[..., Outcome]:
    """Execute a template as a sweep does, in a warm kernel that works in the test's folder."""
    from nbutils.support.workers import run_tasks
    from nbutils.sweeps.execute import NotebookJob, execute
    from nbutils.sweeps.kernels import fork_kernel

    def run(name: str, **parameters: object) -> Outcome:
        text = (root / f"notebooks/{name}.ipynb").read_text("utf-8")
        job = NotebookJob(name, text, tuple(parameters.items()), str(tmp_path), timeout=600)
        ((_, outcome),) = run_tasks(partial(execute, again=True), [job], 1, fresh=True, before=fork_kernel)
        return outcome

    return run


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess]:
    """Run `python -m nbutils` in the test's folder, in this process: its imports and the server of its workers stay."""
    from nbutils.__main__ import main

    def run(*arguments: object, folder: Path = tmp_path) -> subprocess.CompletedProcess:
        before, out, err = dict(os.environ), io.StringIO(), io.StringIO()
        shown = [contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(folder)]
        with contextlib.ExitStack() as stack, warnings.catch_warnings():
            for each in shown:
                stack.enter_context(each)
            warnings.simplefilter("default")
            warnings.showwarning = lambda message, *_, **__: print(f"warning: {message}", file=sys.stderr)
            try:
                code = main([str(argument) for argument in arguments])
            except SystemExit as end:
                code = end.code
        os.environ.clear()
        os.environ.update(before)
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture
def fresh_data() -> Iterator[Callable[[], None]]:
    """Forgets loaded data sets, when called and when the test is over: it may put files where there were none."""
    from nbutils.data.datasets import _load

    _load.cache_clear()
    yield _load.cache_clear
    _load.cache_clear()


@pytest.fixture
def write_pictures(tmp_path: Path, fresh_data: Callable[[], None]) -> Callable[[int], str]:
    """Writes a folder of pictures of 8 x 8 pixels in two classes, always at the same place, and gives its name."""

    def write(seed: int, count: int = 40) -> str:
        rng = np.random.default_rng(seed)
        for word in ("a", "b"):
            (tmp_path / "pictures" / word).mkdir(parents=True, exist_ok=True)
            for number in range(count):
                picture = Image.fromarray(rng.integers(256, size=(8, 8), dtype=np.uint8))
                picture.save(tmp_path / "pictures" / word / f"{number}.png")
        fresh_data()
        return f"folder:{tmp_path / 'pictures'}"

    return write
