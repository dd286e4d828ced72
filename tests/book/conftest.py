"""Books built by `make book`, each once for all workers: a small one, and before a release the whole one; a browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, sync_playwright

from nbutils.study.archive import RESULTS

ROOT = Path(__file__).resolve().parents[2]
# Data sets whose networks are trained for a book, and folders of committed tables that are not in it.
LEFT_OUT = (
    *("fashion-mnist", "cifar10", "plantvillage", "architectures/cifar10-vit"),
    *(f"second/{name}" for name in ("mnist", "fashion-mnist", "cifar10", "plantvillage")),
)
# Data sets, options of `make`, and what is left out; the whole one is the one that a reader makes.
BOOKS = {
    "small": (("digits",), ("DATASETS=digits", "SEEDS=2", "EPOCHS=2"), LEFT_OUT),
    "whole": (("digits", "mnist-5k"), (), ()),
}
HIGH = "cli|pages|own|experiments|truth|motifs"  # rooms that no docstring of others refers to: these are above them
KINDS = ["small", pytest.param("whole", marks=pytest.mark.release)]


@dataclass(frozen=True)
class Book:
    """A copy of the tracked files with a book built by `make book`, and what was built, put aside for reading.

    The small one is what somebody gets who has no data set but those that come with packages.
    """

    project: Path
    built: Path
    datasets: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def small(self) -> bool:
        """Whether it is the small one."""
        return len(self.datasets) == 1

    def make(self, *more: str) -> subprocess.CompletedProcess:
        """`make book` in the copy, one after the other."""
        command = ["make", "book", *self.options, *more]
        own = {**os.environ, **({"NBUTILS_DATA": str(self.built / "no data")} if self.small else {})}
        with FileLock(self.built / ".lock"):
            return subprocess.run(command, cwd=self.project, env=own, capture_output=True, text=True, timeout=1200)


def without_high_rooms(api: str) -> str:
    """A page of the API that does not document them, which takes a sixth of a build."""
    few = re.sub(r"(?<=^```{rooms} ).*", lambda rooms: re.sub(rf"\b({HIGH})\b ?", "", rooms[0]), api, flags=re.M)
    return few.replace("```{rooms} \n```", "")


@pytest.fixture(scope="session", params=KINDS)
def book(request, made_once) -> Book:
    """One for all workers of this session."""
    datasets, options, without = BOOKS[request.param]

    def build(folder: Path) -> None:
        book = Book(folder / "a folder", folder / "built", datasets, options)
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, listed.split("\0")):
            left_out = any(Path(name).is_relative_to(RESULTS / folder) for folder in without)
            if (ROOT / name).exists() and not left_out:
                (book.project / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, book.project / name)
        for page in (book.project / "book/api").glob("*.md") if book.small else ():
            page.write_text(without_high_rooms(page.read_text("utf-8")), "utf-8")
        (book.project / ".venv").symlink_to(sys.prefix)  # the environment of the tests, under the name `make` expects
        (book.project / ".venv/ready").touch()
        book.built.mkdir()
        done = book.make()
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert "Open book/_build/html/index.html" in done.stdout
        shutil.copytree(book.project / "book/_build/html", book.built / "html")
        shutil.copytree(book.project / "book/pages", book.built / "pages")

    folder = made_once(f"book-{request.param}", build)
    return Book(folder / "a folder", folder / "built", datasets, options)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, where there is one."""
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        names = ("chromium", "chromium-browser", "google-chrome")
        path = own if Path(own).exists() else next(filter(None, map(shutil.which, names)), None)
        if path is None:
            pytest.skip("no Chromium here; python -m playwright install chromium")
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


class Shown:
    """A page as one reader sees it."""

    def __init__(self, browser: Browser) -> None:
        self.context = browser.new_context()
        self.tab, self.trouble = self.context.new_page(), []
        self.tab.on("console", lambda said: self.trouble.append(said.text) if said.type == "error" else None)
        self.tab.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.tab.on("request", lambda asked: self.trouble.append(asked.url) if "file:" not in asked.url else None)

    def open(self, file: Path, width: int = 1200, height: int = 1000, **media: str) -> None:
        """A file in a window of that size, for someone who wants `media`, such as `reduced_motion="reduce"`."""
        self.tab.set_viewport_size({"width": width, "height": height})
        self.tab.emulate_media(**media)
        self.tab.goto(file.as_uri())

    def ask(self, expression: str) -> Any:
        """The value of an expression in JavaScript."""
        return self.tab.evaluate(expression)


@pytest.fixture
def shown(browser) -> Iterator[Shown]:
    one = Shown(browser)
    yield one
    one.context.close()
