"""Measure two sides of a comparison in turn, in processes of their own where need be, and say what came out."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nbutils.pages.speed import is_met


@dataclass(frozen=True)
class Comparison:
    """Figures of one comparison, one per repeat.

    Attributes:
        name: name of the comparison.
        about: what the two sides do, in one sentence.
        unit: of the figures; smaller is better.
        ours: figures of this project.
        other: figures of what it is held against.
        work: what has to be done at least, counted on paper: "words", "bytes", "flops" (see :mod:`benchmarks.rates`),
            or "MiB" that the result itself takes.
        held: bytes that a core has in use all the while, so that they may stay in its caches; None means main memory.
        cores: how many of them our side works on; None means all.
        parts: where the time of our side goes, in seconds by what is done: a profile, measured beside it.

    What we want to reach stands in `benchmarks/bars.yml`, by the name.
    """

    name: str
    about: str
    unit: str
    ours: list[float]
    other: list[float]
    work: dict[str, float] = field(default_factory=dict)
    held: float | None = None
    cores: int | None = None
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def ratios(self) -> list[float]:
        """The other side over ours, repeat by repeat, so that a drifting machine cancels out."""
        return [theirs / mine for mine, theirs in zip(self.ours, self.other, strict=True)]

    @property
    def overhead(self) -> float:
        """How much more our side costs, as a share of the other: the median over repeats."""
        return statistics.median(1 / ratio for ratio in self.ratios) - 1

    def figures(self, least: float | None) -> dict[str, Any]:
        """Medians, as bars speak of them; `least` is the time or memory that is needed at least, if that is known."""
        ours = statistics.median(self.ours)
        return {
            "ours": ours,
            "other": statistics.median(self.other),
            "ratio": statistics.median(self.ratios),
            "overhead": self.overhead,
            "least": least,
            "share": None if least is None else least / ours,
        }


@dataclass(frozen=True)
class Curve:
    """How a cost grows: one measured value per size.

    Attributes:
        name: name of the curve.
        about: what was measured, in a few words.
        size: what the sizes are of: "neurons" or "examples".
        unit: of the values.
        sizes: rising sizes.
        values: the cost at each.
        bar: largest exponent that we want.
    """

    name: str
    about: str
    size: str
    unit: str
    sizes: Sequence[int]
    values: Sequence[float]
    bar: float

    @property
    def exponent(self) -> float:
        """Slope of the straight line through log value over log size: cost grows as size to this power."""
        return statistics.linear_regression(
            [math.log(size) for size in self.sizes], [math.log(value) for value in self.values]
        ).slope


def seconds(action: Callable[[], Any]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def run_python(*words: str, folder: Path | None = None, surroundings: Mapping[str, str] | None = None) -> str:
    """What `python WORDS` prints, in a new process.

    Args:
        words: arguments of the interpreter.
        folder: where it starts; None means the project's folder, so that a script can import this package.
        surroundings: environment variables beside or in place of this process's own.

    Raises:
        RuntimeError: it failed; the message holds what it printed.
    """
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder or Path(__file__).parents[1],
        env={**os.environ, **(surroundings or {})},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"a measured process ended with exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def run_script(script: str, *arguments: object, surroundings: Mapping[str, str] | None = None) -> Any:
    """The one JSON value that a script prints, in a new process; the arguments come to its `sys.argv` as text."""
    return json.loads(run_python("-c", script, *map(str, arguments), surroundings=surroundings))


def compare(
    name: str,
    about: str,
    ours: Callable[[], float],
    other: Callable[[], float],
    *,
    unit: str,
    repeats: int,
    work: dict[str, float] | None = None,
    held: float | None = None,
) -> Comparison:
    """Call both sides in turn, ours first in every other repeat; each returns its figure."""
    figures: dict[str, list[float]] = {"ours": [], "other": []}
    for repeat in range(repeats):
        sides = [("ours", ours), ("other", other)]
        for side, call in sides if repeat % 2 == 0 else reversed(sides):
            figures[side].append(call())
    return Comparison(name, about, unit, figures["ours"], figures["other"], work or {}, held)


def table(
    found: Sequence[Comparison],
    curves: Sequence[Curve] = (),
    leasts: Mapping[str, float | None] | None = None,
    bars: Mapping[str, str] | None = None,
) -> str:
    """Medians, spreads, ratios, shares of the limit with verdicts, and exponents of growth, as text.

    Args:
        found: comparisons.
        curves: curves of growth.
        leasts: the time or memory that our side needs at least, by names.
        bars: conditions as :func:`nbutils.pages.speed.is_met` reads them, by names; a comparison may have none.
    """
    lines = [f"{'name':32} {'ours':>24} {'other':>24} {'ratio':>20} {'limit':>6}  bar"]
    for c in found:
        sides = [f"{statistics.median(x):.3g} ({min(x):.3g} to {max(x):.3g})" for x in (c.ours, c.other, c.ratios)]
        figures, bar = c.figures((leasts or {}).get(c.name)), (bars or {}).get(c.name)
        share = "-" if figures["share"] is None else f"{figures['share']:.0%}"
        verdict = "no bar" if bar is None else f"{bar}: {'met' if is_met(bar, figures) else 'MISSED'}"
        if bar is not None and "overhead" in bar:
            verdict = f"{verdict} ({c.overhead:.1%})"
        lines.append(f"{c.name:32} {sides[0]:>24} {sides[1]:>24} {sides[2]:>20} {share:>6}  {verdict}")
        lines.append(f"    [{c.unit}] {c.about}")
    for curve in curves:
        values = ", ".join(f"{size:,}: {value:.3g}" for size, value in zip(curve.sizes, curve.values, strict=True))
        mark = "met" if curve.exponent <= curve.bar else "MISSED"
        lines.append(f"{curve.name:32} exponent {curve.exponent:.2f}, at most {curve.bar:g}: {mark}")
        lines.append(f"    [{curve.unit} by {curve.size}] {curve.about}: {values}")
    return "\n".join(lines)


def write_json(
    found: Sequence[Comparison],
    curves: Sequence[Curve],
    machine: dict[str, Any],
    rates: dict[str, float],
    leasts: Mapping[str, float | None],
    path: Path,
) -> None:
    """Write all figures with where they were measured, and what that machine can do at best.

    Figures of other comparisons that the file holds already stay, each with the commit and time of its own, if they
    were measured on a machine like this one.
    """
    content: dict[str, Any] = _earlier(machine, path) | {"_machine": machine, "_rates": rates}
    if curves:
        origin = {name: machine[name] for name in ("commit", "time")}
        measured = {c.name: {**asdict(c), "exponent": round(c.exponent, 3), **origin} for c in curves}
        content["_growth"] = content.get("_growth", {}) | measured
    for c in found:
        sides = {"ours": c.ours, "other": c.other, "ratio": c.ratios}
        rounded = {
            name: None if value is None else float(f"{value:.5g}")
            for name, value in c.figures(leasts.get(c.name)).items()
        }
        content[c.name] = {
            **rounded,
            "unit": c.unit,
            "repeats": len(c.ours),
            "spread": {side: [min(x), max(x)] for side, x in sides.items()},
            "work": c.work,
            "held": c.held,
            "cores": c.cores,
            "parts": {what: float(f"{took:.3g}") for what, took in c.parts.items()},
            "about": c.about,
            "commit": machine["commit"],
            "time": machine["time"],
        }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def _earlier(machine: dict[str, Any], path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    content = json.loads(path.read_text("utf-8"))
    before = content.pop("_machine")
    if any(before[name] != machine[name] for name in ("processor", "cores", "quick")):
        return {}
    return content
