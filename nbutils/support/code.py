"""What is stale after an edit: a digest of some definitions and of every definition of this package that they use.

Neither the file in which a definition lives nor the order of definitions counts, and comments, docstrings, layout and
the words of an error may change without changing it. What is used follows from names and imports; nobody keeps a list.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbutils

Place = tuple[str, str]  # module and name of a definition
PACKAGES = (nbutils.__name__,)  # whose definitions are followed


@cache
def code_digest(*names: str) -> str:
    """Digest of what some definitions do, with all of this package that they use, at any level.

    Args:
        names: such as "nbutils.runs.training.train"; a module stands for all its definitions.

    Returns:
        12 hexadecimal digits.

    Raises:
        ModuleNotFoundError: there is no source for a name.

    Examples:
        >>> code_digest("nbutils.modularity") == code_digest("nbutils.communities.modularity")
        True
    """
    digest = hashlib.sha256()
    for skeleton in sorted({_read(module)[name].skeleton for module, name in definitions_behind(*names)}):
        digest.update(skeleton.encode())
    return digest.hexdigest()[:12]


@cache
def definitions_behind(*names: str) -> frozenset[Place]:
    """(module, name) of the definitions that some definitions use, at any level, with those themselves.

    Args:
        names: see :func:`code_digest`.

    Examples:
        >>> ("nbutils.support.checks", "as_labels") in definitions_behind("nbutils.modularity")
        True
    """
    waiting = [place for name in names for place in _places(name)]
    found: set[Place] = set()
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            waiting += _read(place[0])[place[1]].uses
    return frozenset(found)


@cache
def notebook_code(template: str) -> str:
    """Digest of the code of this package that a notebook computes with: the names that it imports, and what they use.

    Args:
        template: text of the notebook, in notebook format 4.

    Returns:
        12 hexadecimal digits.
    """
    return code_digest(*notebook_names(template))


@cache
def notebook_names(template: str) -> tuple[str, ...]:
    """The names of this package that a notebook uses, dotted and sorted.

    Args:
        template: text of the notebook, in notebook format 4. One whose cells are not plain Python, or that hands the
            package itself around, counts as using all that `import nbutils` offers.
    """
    try:
        cells = [cell for cell in json.loads(template)["cells"] if cell["cell_type"] == "code"]
        lines = [line for cell in cells for line in "".join(cell["source"]).split("\n")]
        tree = ast.parse("\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in lines))
        aliases = _aliases(tree)
        names = {f"{module}.{name}".strip(".") for module, name in _uses(tree, aliases)}
        if "nbutils" in names:
            raise ValueError("the package itself is handed around")
    except (SyntaxError, ValueError, KeyError, TypeError, IndentationError):
        names = {f"nbutils.{name}" for name in nbutils.__all__}
    return tuple(sorted(names))


@dataclass(frozen=True)
class _Definition:
    skeleton: str
    uses: frozenset[Place]


@cache
def _read(module: str) -> dict[str, _Definition]:
    """Definitions at the top of a module by name; its other statements, which all of them depend on, under ""."""
    named, aliases, others = _parsed(module)
    known = aliases | {name: (module, name) for name in named if name}
    return {
        name: _Definition(
            repr([*map(_skeleton, nodes), _meanings(nodes, others)]),
            frozenset(
                {(module, ""), *(place for node in nodes for use in _uses(node, known) for place in _resolved(use))}
            ),
        )
        for name, nodes in named.items()
    }


@cache
def _parsed(module: str) -> tuple[dict[str, list[ast.stmt]], dict[str, Place], dict[str, set[str]]]:
    """The statements that define each name of a module, others under ""; and what imported names mean in it: those of
    this package, and those of others."""
    source = _source(module)
    if source is None:
        raise ModuleNotFoundError(f"no source for module {module!r}")
    tree = ast.parse(source.read_bytes())
    named: dict[str, list[ast.stmt]] = {"": []}
    for node in tree.body:
        if not _is_apart(node):
            for name in _defined(node) or [""]:
                named.setdefault(name, []).append(node)
    return named, _aliases(tree), _foreign(tree)


def _is_apart(node: ast.stmt) -> bool:
    """Imports, docstrings, and the list of public names decide nothing by themselves."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return _defined(node) == ["__all__"]


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


def _aliases(tree: ast.AST) -> dict[str, Place]:
    """What names of this package mean in a module: (module, name), or (module, "*") for a module itself."""
    found: dict[str, Place] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PACKAGES:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found[alias.asname or alias.name] = (
                    (whole, "*") if _is_module(whole) else (node.module or "", alias.name)
                )
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in PACKAGES:
                    module = alias.name if alias.asname else nbutils.__name__
                    found[alias.asname or nbutils.__name__] = (module, "*")
    return found


def _foreign(tree: ast.AST) -> dict[str, set[str]]:
    """What names of other packages mean in a module; several things where functions import one name differently."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                if (whole := f"{module}{alias.name}").partition(".")[0] not in PACKAGES:
                    name = alias.asname or (alias.name if module else alias.name.partition(".")[0])
                    found.setdefault(name, set()).add(whole if module or alias.asname else name)
    return found


def _meanings(nodes: Sequence[ast.AST], others: dict[str, set[str]]) -> list[tuple[str, list[str]]]:
    """Names of other packages that some code uses, with what they mean: another function may come by the same name."""
    used = {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}
    return [(name, sorted(others[name])) for name in sorted(used & set(others))]


def _uses(node: ast.AST, aliases: dict[str, Place]) -> Iterator[Place]:
    """Where the names that some code uses are defined; (module, "") for a module that is handed around."""
    if isinstance(node, ast.Attribute) and (place := _module_of(node.value, aliases)):
        whole = f"{place}.{node.attr}"
        yield (whole, "") if _is_module(whole) else (place, node.attr)
        return
    if isinstance(node, ast.Name) and node.id in aliases:
        module, name = aliases[node.id]
        yield module, "" if name == "*" else name
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, aliases)


def _module_of(node: ast.AST, aliases: dict[str, Place]) -> str:
    """The module that an expression names; empty for anything else."""
    if isinstance(node, ast.Name) and aliases.get(node.id, ("", ""))[1] == "*":
        return aliases[node.id][0]
    if isinstance(node, ast.Attribute) and (outer := _module_of(node.value, aliases)):
        return whole if _is_module(whole := f"{outer}.{node.attr}") else ""
    return ""


def _places(name: str) -> Sequence[Place]:
    """Where a dotted name is defined; all definitions of a module."""
    if _is_module(name):
        return [(name, own) for own in _parsed(name)[0]]
    module, _, own = name.rpartition(".")
    if not (found := _resolved((module, own))):
        raise ModuleNotFoundError(f"no source for {name!r}")
    return found


def _resolved(place: Place) -> Sequence[Place]:
    """The definition behind a name: where it was imported from, if its module only passes it on."""
    module, name = place
    if module == nbutils.__name__:
        return _resolved((f"{module}.{nbutils.EXPORTS[name]}", name)) if name in nbutils.EXPORTS else []
    named, aliases, _ = _parsed(module)
    if not name:
        return [(module, own) for own in named]
    if name in named:
        return [place]
    return _resolved(aliases[name]) if name in aliases and aliases[name][1] != "*" else []


def _is_module(name: str) -> bool:
    return _source(name) is not None


@cache
def _source(module: str) -> Path | None:
    """File of a module, found without importing anything; None if there is no such module."""
    top, *rest = module.split(".")
    spec = find_spec(top)
    if spec is None or spec.origin is None:
        return None
    if not rest:
        return Path(spec.origin)
    inside = Path(spec.origin).parent.joinpath(*rest)
    return next((path for path in (inside.with_suffix(".py"), inside / "__init__.py") if path.is_file()), None)


def _skeleton(node: Any) -> Any:
    """The syntax tree as nested lists, without positions, docstrings, imports, words of errors and empty fields."""
    if isinstance(node, ast.Raise):
        return ["Raise"]
    if isinstance(node, ast.AST):
        fields = [(name, _skeleton(value)) for name, value in ast.iter_fields(node) if value not in (None, [])]
        return [type(node).__name__, *fields]
    if isinstance(node, list):
        return [_skeleton(item) for item in node if not _says_nothing(item)]
    return repr(node)


def _says_nothing(node: Any) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )
