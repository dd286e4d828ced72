"""Where a number came from: versions, commit, machine."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from nbutils.support.machine import compute_threads, is_portable, limits, processor, processor_features

# The libraries that numbers are computed with. What was computed with other versions of them is never served.
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "networkx", "numba", "pandas")
MISSING = "missing"
UNKNOWN = "unknown"  # commit, outside of a checkout


@cache
def _commit() -> str:
    """The commit of the checkout that holds this module, with "+" if files differ; "unknown" outside a checkout."""
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        if not git("ls-files", "--", Path(__file__).name):
            return UNKNOWN
        return git("rev-parse", "HEAD")[:12] + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("nbutils", *PACKAGES):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = MISSING
    return found


def environment() -> dict[str, Any]:
    """What can change a number besides code, data and parameters; part of the address of all that is kept.

    Returns:
        {"python": "major.minor", a version for each of `PACKAGES`}, and "portable": True in that mode. Nothing is
        imported to find out.

    Examples:
        >>> environment()["numpy"] == np.__version__
        True
    """
    found: dict[str, Any] = {"python": ".".join(platform.python_version_tuple()[:2])}
    found |= {package: _versions()[package] for package in PACKAGES}
    return found | ({"portable": True} if is_portable() else {})


def digest_of(determinants: Any) -> str:
    """16 hexadecimal digits that change with anything in what JSON can hold: where a result is kept.

    Examples:
        >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1}) != digest_of({"a": 1})
        True
    """
    return hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()[:16]


def differences(there: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """How an environment differs from this one.

    Args:
        there: what :func:`environment` returned elsewhere.

    Returns:
        {name: (version there, version here)}, empty for an equal one.

    Examples:
        >>> differences(environment())
        {}
        >>> list(differences({**environment(), "torch": "1.0"}))
        ['torch']
    """
    here = environment()
    names = [name for name in {**here, **there} if there.get(name) != here.get(name)]
    return {_NAMES.get(name, name): (_value(name, there), _value(name, here)) for name in names}


def again_because(environments: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why results that exist are computed again: one sentence for each other environment.

    Args:
        environments: where the results were made, one for each of them.

    Examples:
        >>> again_because([{**environment(), "torch": "1.0"}] * 2)  # doctest: +ELLIPSIS
        ['2 results were made with torch 1.0; here is torch ..., so they are computed again.']
    """
    found: Counter[tuple[str, str]] = Counter()
    for there in environments:
        changes = differences(there)
        old, new = (", ".join(f"{name} {pair[side]}" for name, pair in changes.items()) for side in (0, 1))
        found[old, new] += 1
    return [
        f"{count} result{'s were' if count > 1 else ' was'} made with {old}; here is {new}, "
        f"so {'they are' if count > 1 else 'it is'} computed again."
        for (old, new), count in found.items()
    ]


_NAMES = {"python": "Python", "portable": "portable mode"}


def _value(name: str, where: Mapping[str, Any]) -> str:
    if name == "portable":
        return "on" if where.get(name) else "off"
    return str(where.get(name, MISSING))


def arithmetic() -> dict[str, Any]:
    """What decides how this process rounds, beyond versions: two that are equal compute the same bits.

    Returns:
        {"name", "features", "threads", "limits", "portable"}: of the processor, its instruction sets between spaces,
        compute threads, environment variables that keep libraries from some of the instruction sets, and whether
        portable mode is on (see :mod:`nbutils.support.machine`), in which the others do not matter.

    Examples:
        >>> arithmetic()["portable"]
        False
    """
    return {
        "name": processor(),
        "features": " ".join(processor_features()),
        "threads": compute_threads(),
        "limits": limits(),
        "portable": is_portable(),
    }


def provenance() -> dict[str, Any]:
    """Commit, versions, machine and time of now.

    Returns:
        {"commit", "versions", "machine", "processor", "device", "time"}; `commit` ends in "+" when tracked files were
        changed, `processor` is what :func:`arithmetic` returns, `time` is UTC in ISO 8601.

    Examples:
        >>> sorted(provenance())
        ['commit', 'device', 'machine', 'processor', 'time', 'versions']
    """
    return {
        "commit": _commit(),
        "versions": dict(_versions()),
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": arithmetic(),
        "device": "cpu",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
