"""The benchmark's figures: read, held against what the machine can do at best, and carried on to larger networks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from nbutils.support.display import GREY
from nbutils.sweeps.sweep_figures import panels

RATES = {"words": "words_per_s", "bytes": "bytes_per_s", "flops": "flops_per_s"}
NAMES = {"words": "words of 64 examples", "bytes": "bytes of memory", "flops": "additions and multiplications"}
SECONDS = (1, "s"), (1e-3, "ms"), (1e-6, "µs")
LARGE = (1e12, "trillion"), (1e9, "billion"), (1e6, "million")
EDGE_BYTES = 24  # of a symmetric sparse matrix: twice a weight of 8 bytes and an index of 4


def read_figures(path: Path | str) -> dict[str, Any]:
    """What `make bench` wrote.

    Args:
        path: `benchmarks/latest.json`, seen from the project's folder or one level below it.

    Returns:
        One entry per comparison, and `_machine`, `_rates`, `_growth`.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is not the benchmark's.
    """
    given = Path(path)
    found = next((place for place in (given, Path("..") / given) if place.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"no figures at {given}; measure them first: make bench")
    try:
        figures = json.loads(found.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{given} cannot be read: {error}") from None
    missing = {"_machine", "_rates", "_growth"} - set(figures if isinstance(figures, dict) else ())
    if missing:
        raise ValueError(f"{given} holds no full benchmark, it lacks {', '.join(sorted(missing))}; run: make bench")
    return figures


def comparisons(figures: dict[str, Any]) -> pd.DataFrame:
    """One row per comparison: both sides' medians, ratio or overhead with its spread, and the bar set beforehand.

    Args:
        figures: see :func:`read_figures`.

    Returns:
        Columns `figure`, `what`, `ours`, `other`, `result`, `bar`, `met`, all in words.
    """
    rows = []
    for name, row in _entries(figures):
        kind, limit = row["bar"]
        low, high = row["spread"]["ratio"]
        if kind == "overhead at most":
            result, bar = f"{row['overhead']:+.1%}", f"at most {limit:+.0%}"
        else:
            result, bar = f"{row['ratio']:.3g}× ({low:.3g}\xa0to\xa0{high:.3g})", f"at least {limit:g}×"
        if kind == "ours at most":
            bar = f"at most {quantity(limit, row['unit'])}"
        sides = [quantity(row[side], row["unit"]) for side in ("ours", "other")]
        rows.append((name, row["about"], *sides, result, bar, "yes" if row["met"] else "no"))
    return pd.DataFrame(rows, columns=["figure", "what", "ours", "other", "result", "bar", "met"])


def against_limits(figures: dict[str, Any]) -> pd.DataFrame:
    """Times and memory held against what has to be done at least, counted on paper, at the machine's best rates.

    Args:
        figures: see :func:`read_figures`.

    Returns:
        Columns `figure`, `has to be done`, `least`, `measured`, and the number `times the least`.
    """
    rows = []
    for name, row in _entries(figures):
        work = row["work"]
        if not work:
            continue
        if "MiB" in work:
            least, words = work["MiB"], "memory of the result itself"
        else:
            least = sum(amount / figures["_rates"][RATES[kind]] for kind, amount in work.items())
            words = "; ".join(f"{quantity(amount)} {NAMES[kind]}" for kind, amount in work.items())
        sides = [quantity(value, row["unit"]) for value in (least, row["ours"])]
        rows.append((name, words, *sides, row["ours"] / least))
    return pd.DataFrame(rows, columns=["figure", "has to be done", "least", "measured", "times the least"])


def quantity(value: float, unit: str = "") -> str:
    """A number with its unit, three significant digits, in words that fit its size.

    Examples:
        >>> quantity(0.0021, "s"), quantity(7410, "MiB"), quantity(6.4e9)
        ('2.1\xa0ms', '7,410\xa0MiB', '6.4\xa0billion')
    """
    scales = {"s": SECONDS, "": LARGE}.get(unit.split(" ")[0], ())
    factor, name = next(((f, n) for f, n in scales if value >= f), (1, ""))
    shown = float(f"{value / factor:.3g}")
    return f"{shown:,.6g} {name + unit[1:] if unit[:1] == 's' and name else name or unit}".strip().replace(
        " ", "\xa0", 1
    )


def growth_curves(figures: dict[str, Any]) -> pd.DataFrame:
    """How time and memory grow: one row per curve with its exponent and the bar set beforehand."""
    rows = [
        (c["about"], f"{'time' if c['unit'] == 's' else 'memory'} over {c['size']}", c["exponent"], c["bar"])
        for c in figures["_growth"].values()
    ]
    return pd.DataFrame(rows, columns=["step", "growth of", "exponent", "at most"])


def growth_figure(figures: dict[str, Any]) -> Figure:
    """All curves of growth on logarithmic axes, with the fitted straight lines."""
    curves = list(figures["_growth"].values())
    with panels(len(curves), 2.5) as (fig, axes):
        for ax, curve in zip(axes, curves, strict=True):
            sizes, values = np.array(curve["sizes"]), np.array(curve["values"])
            middle = np.exp(np.log(values).mean() - curve["exponent"] * np.log(sizes).mean())
            ax.plot(sizes, middle * sizes ** curve["exponent"], color=GREY, lw=1.2)
            ax.plot(sizes, values, "o", color="#3b82c4", ms=5)
            ax.set(xscale="log", yscale="log", xlabel=curve["size"], ylabel=curve["unit"])
            what = "search" if curve["name"].startswith("communities") else "graph"
            ax.set_title(f"{what}: exponent {curve['exponent']:.2f}")
            ax.set_xticks(sizes, [f"{size / 1000:g}k" for size in sizes])
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter("{x:g}")
            ax.minorticks_off()
    return fig


def larger_networks(
    figures: dict[str, Any], sizes: Sequence[int], examples: int = 2_000, neighbours: int = 1_000
) -> pd.DataFrame:
    """What larger networks would need, from counting words and the rate that the benchmark of blocks reached.

    Both passes over the pairs count n (n - 1) / 2 pairs of ceil(examples / 64) words. The graph keeps so many
    neighbours per neuron on average: a fixed share of all pairs would grow with the square.

    Args:
        figures: see :func:`read_figures`.
        sizes: numbers of neurons.
        examples: size of the probe.
        neighbours: edges per neuron, on average.

    Returns:
        One row per size: `neurons`, `bits per worker (MiB)`, `words counted`, `core seconds`, `edges`, `graph (GiB)`,
        `density`.
    """
    row = next(r for n, r in _entries(figures) if n.startswith("blocks_") and "words" in r["work"])
    rate = row["work"]["words"] / row["other"]  # of one process
    rows = []
    for size in sizes:
        words = 2 * size * (size - 1) / 2 * -(-examples // 64)
        edges = size * min(neighbours, size - 1) / 2
        graph, density = edges * EDGE_BYTES / 2**30, min(neighbours, size - 1) / (size - 1)
        bits = size * examples / 8 / 2**20
        rows.append((size, bits, quantity(words), words / rate, quantity(edges), graph, density))
    columns = ["neurons", "bits per worker (MiB)", "words counted", "core seconds", "edges", "graph (GiB)", "density"]
    return pd.DataFrame(rows, columns=columns)


def _entries(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, row) for name, row in figures.items() if not name.startswith("_")]
