"""The benchmark's figures: read, held against what the machine can do at best, and carried on to larger networks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbutils.display import GREY, figure_style

__all__ = [
    "against_limits",
    "comparisons",
    "growth_curves",
    "growth_figure",
    "larger_networks",
    "read_figures",
    "readable",
]

RATES = {"words": "words_per_s", "bytes": "bytes_per_s", "flops": "flops_per_s"}
NAMES = {"words": "words of 64 examples", "bytes": "bytes of memory", "flops": "additions and multiplications"}
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
        Columns `figure`, `what`, `ours`, `other`, `unit`, `result`, `bar`, `met`.
    """
    rows = []
    for name, row in _entries(figures):
        kind, limit = row["bar"]
        low, high = row["spread"]["ratio"]
        if kind == "overhead at most":
            result, bar = f"+{row['overhead']:.1%}", f"at most +{limit:.0%}"
        else:
            result, bar = f"{row['ratio']:.3g}× ({low:.3g} to {high:.3g})", f"{limit:g}×"
        if kind == "ours at most":
            bar = f"at most {limit:g} {row['unit']}"
        met = "yes" if row["met"] else "no"
        rows.append((name, row["about"], row["ours"], row["other"], row["unit"], result, bar, met))
    return pd.DataFrame(rows, columns=["figure", "what", "ours", "other", "unit", "result", "bar", "met"])


def against_limits(figures: dict[str, Any]) -> pd.DataFrame:
    """Times and memory held against what has to be done at least, counted on paper, at the machine's best rates.

    Args:
        figures: see :func:`read_figures`.

    Returns:
        Columns `figure`, `has to be done`, `least`, `measured`, `unit`, `times the least`.
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
            words = "; ".join(f"{amount:.2g} {NAMES[kind]}" for kind, amount in work.items())
        rows.append((name, words, least, row["ours"], row["unit"], row["ours"] / least))
    return pd.DataFrame(rows, columns=["figure", "has to be done", "least", "measured", "unit", "times the least"])


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """The table with three significant digits in every column of fractions.

    Examples:
        >>> readable(pd.DataFrame({"s": [0.0012345, 1234.5]}))["s"].tolist()
        ['0.00123', '1,230']
    """
    fractions = table.select_dtypes("float").columns
    return table.assign(**{name: [f"{float(f'{value:.3g}'):,.6g}" for value in table[name]] for name in fractions})


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
    columns = 3
    rows = -(-len(curves) // columns)
    with figure_style():
        fig, axes = plt.subplots(rows, columns, figsize=(7.8, 2.5 * rows), squeeze=False)
        for ax, curve in zip(axes.flat, curves, strict=False):
            sizes, values = np.array(curve["sizes"]), np.array(curve["values"])
            middle = np.exp(np.log(values).mean() - curve["exponent"] * np.log(sizes).mean())
            ax.plot(sizes, middle * sizes ** curve["exponent"], color=GREY, lw=1.2)
            ax.plot(sizes, values, "o", color="#3b82c4", ms=5)
            ax.set(xscale="log", yscale="log", xlabel=curve["size"], ylabel=curve["unit"])
            what = "search" if curve["name"].startswith("communities") else "graph"
            ax.set_title(f"{what}: exponent {curve['exponent']:.2f}")
            ax.set_xticks(sizes, [f"{size / 1000:g}k" for size in sizes])
            ax.minorticks_off()
        for ax in axes.flat[len(curves) :]:
            ax.set_axis_off()
        plt.close(fig)
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
        One row per size: `neurons`, `bits per worker (MiB)`, `words counted`, `core hours`, `edges`, `graph (GiB)`,
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
        rows.append((size, bits, f"{words:.1e}", words / rate / 3600, f"{edges:.1e}", graph, density))
    columns = ["neurons", "bits per worker (MiB)", "words counted", "core hours", "edges", "graph (GiB)", "density"]
    return pd.DataFrame(rows, columns=columns)


def _entries(figures: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, row) for name, row in figures.items() if not name.startswith("_")]
