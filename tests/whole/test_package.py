from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

import nbutils


def modules(root):
    return sorted(p for p in (root / "nbutils").rglob("*.py") if p.stem != "__init__")


def test_every_exported_name_exists_and_is_documented():
    for name in nbutils.__all__:
        item = getattr(nbutils, name)
        if not isinstance(item, tuple):
            assert inspect.getdoc(item), name


def test_required_names_are_exported():
    wanted = [
        "capture",
        "capture_activations",
        "firing",
        "cofiring_counts",
        "activation_pattern_graph",
        "to_networkx",
        "detect_communities",
        "modularity",
        "well_defined_communities",
        "firing_entropy",
        "pattern_entropy",
        "class_conditional_entropy",
        "binned_entropy",
        "mutual_information",
        "total_correlation",
        "circular_shift_null",
        "within_class_null",
        "session_permutation",
        "bootstrap_interval",
        "verdict",
        "record",
    ]
    assert set(wanted) <= set(nbutils.__all__)
    assert all(callable(getattr(nbutils, name)) for name in wanted)


def test_unknown_names_say_what_there_is():
    with pytest.raises(AttributeError, match="nbutils has no 'modularty'"):
        nbutils.modularty  # noqa: B018


def test_no_exported_name_is_hidden_by_a_module(root):
    """Importing a module puts it on the package, over a function of the same name."""
    top = {path.stem for path in (root / "nbutils").iterdir()}
    assert not top & set(nbutils.__all__)


def test_importing_is_light_and_metrics_need_no_torch():
    code = """
import sys
import nbutils
assert "numpy" not in sys.modules and "torch" not in sys.modules
graph = nbutils.activation_pattern_graph([[1, 1], [1, 1]])
nbutils.detect_communities(graph)
nbutils.pattern_entropy([[1, 1], [1, 1]])
from nbutils.pages import figures
from nbutils.pages.page import open_page
from nbutils.study import comparisons
from nbutils.study.study import Study
assert len(Study(seeds=1).tasks()) == 8
assert "torch" not in sys.modules, "neither metrics on arrays nor pages over stored runs may load PyTorch"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_rooms_stand_on_each_other(root, monkeypatch):
    """The import contracts of pyproject.toml hold, and would notice an arrow upwards."""
    monkeypatch.chdir(root)
    assert lint_imports(config_filename="pyproject.toml", no_cache=True) == EXIT_STATUS_SUCCESS


def test_rooms_hold_a_few_files_and_functions_stay_short(root):
    rooms, lengths = Counter(path.parent for path in modules(root)), []
    assert max(rooms.values()) <= 20
    for path in modules(root):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                doc = node.body[0]
                has_doc = isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant)
                first = node.body[1].lineno if has_doc and len(node.body) > 1 else doc.lineno
                lengths.append(node.end_lineno - first + 1)
    assert sorted(lengths)[int(0.9 * len(lengths))] <= 30


def test_every_public_function_is_typed_and_documented(root):
    for path in modules(root):
        tree = ast.parse(path.read_text("utf-8"))
        assert ast.get_docstring(tree), path.name
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                assert ast.get_docstring(node), f"{path.stem}.{node.name}"
                assert node.returns is not None, f"{path.stem}.{node.name}"
                arguments = [*node.args.args, *node.args.kwonlyargs]
                assert all(a.annotation for a in arguments), f"{path.stem}.{node.name}"


def test_docstrings_of_properties_hold_no_colon(root):
    """The book's builder takes what stands before a colon for the type of the property, and fails."""
    for path in modules(root):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = {ast.unparse(d) for d in node.decorator_list} if isinstance(node, ast.FunctionDef) else set()
            if names & {"property", "cached_property"}:
                assert ": " not in (ast.get_docstring(node) or "").partition("\n")[0], f"{path.stem}.{node.name}"


def test_the_pages_of_the_api_document_every_file_by_room(root, monkeypatch):
    """Every room stands on one page, with all its files, after the words of the room."""
    monkeypatch.syspath_prepend(root / "book/_ext")
    from rooms import api

    texts = [path.read_text("utf-8") for path in sorted((root / "book/api").glob("*.md"))]
    rooms = [re.search(r"```\{rooms\} ([a-z ]+)\n```", text)[1].split() for text in texts]
    page = "\n".join(api(shown) for shown in rooms)
    documented = re.findall(r"automodule:: (\S+)\n +:members:", page)
    names = [".".join(path.relative_to(root).with_suffix("").parts) for path in modules(root)]
    assert sorted(documented) == sorted(name for name in names if "._" not in name)
    for room in ("support", "drawing", "evaluation", "data", "runs", "study", "second", "sweeps", "pages"):
        words, files = (page.index(f"automodule:: nbutils.{room}{end}") for end in ("\n   :no-index:", "."))
        assert words < files
    with pytest.raises(ValueError, match="received 'attic'"):
        api(["core", "attic"])
