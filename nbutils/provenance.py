"""Where a number came from: code, versions, commit, machine."""

from __future__ import annotations

import ast
import hashlib
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["code_digest", "modules_behind", "provenance"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "networkx", "numba", "pandas")


@cache
def code_digest(*modules: str) -> str:
    """Digest of what some modules *do*: comments, docstrings and layout may change without changing it.

    Args:
        modules: names such as "nbutils.training".

    Returns:
        12 hexadecimal digits.

    Examples:
        >>> code_digest("nbutils.models") == code_digest("nbutils.models")
        True
    """
    digest = hashlib.sha256()
    for name in modules:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"no source for module {name!r}")
        digest.update(repr(_skeleton(ast.parse(Path(spec.origin).read_bytes()))).encode())
    return digest.hexdigest()[:12]


@cache
def modules_behind(*names: str) -> tuple[str, ...]:
    """Modules of this package and every module of it that they import, at any level.

    Args:
        names: module names without the package.

    Returns:
        Full names, sorted.

    Examples:
        >>> modules_behind("arrays")
        ('nbutils.arrays', 'nbutils.bits', 'nbutils.edges')
    """
    here, found, waiting = Path(__file__).parent, set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for node in ast.walk(ast.parse((here / f"{name}.py").read_bytes())):
            if not isinstance(node, ast.ImportFrom):
                continue
            if (node.module or "").startswith(f"{__package__}."):
                waiting.append((node.module or "").removeprefix(f"{__package__}."))
            elif node.module == __package__:
                waiting += [alias.name for alias in node.names if (here / f"{alias.name}.py").is_file()]
    return tuple(sorted(f"{__package__}.{name}" for name in found))


def _skeleton(node: Any) -> Any:
    """The syntax tree as nested lists, without positions, docstrings and empty fields (which vary between Pythons)."""
    if isinstance(node, ast.AST):
        fields = [(name, _skeleton(value)) for name, value in ast.iter_fields(node) if value not in (None, [])]
        return [type(node).__name__, *fields]
    if isinstance(node, list):
        kept = [n for n in node if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
        return [_skeleton(item) for item in kept]
    return repr(node)


@cache
def _commit() -> str:
    """The commit of the checkout that holds this module, with "+" if files differ; "unknown" outside a checkout."""
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        if not git("ls-files", "--", Path(__file__).name):
            return "unknown"
        return git("rev-parse", "HEAD")[:12] + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("nbutils", *PACKAGES):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "missing"
    return found


def provenance() -> dict[str, Any]:
    """Commit, versions, machine and time of now.

    Returns:
        {"commit", "versions", "machine", "device", "time"}; `commit` ends in "+" when tracked files were changed,
        `time` is UTC in ISO 8601.

    Examples:
        >>> sorted(provenance())
        ['commit', 'device', 'machine', 'time', 'versions']
    """
    return {
        "commit": _commit(),
        "versions": dict(_versions()),
        "machine": f"{platform.system()} {platform.machine()}",
        "device": "cpu",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
