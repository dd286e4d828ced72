"""The benchmark's figures of every processor, held against bars and limits, and carried on to larger networks."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from ruamel.yaml import YAML, YAMLError

from nbutils.drawing.palette import GREY, SUBJECT
from nbutils.sweeps.sweep_figures import panels

RATES = {"words": "words_per_s", "bytes": "bytes_per_s", "flops": "flops_per_s"}
NAMES = {"words": "words of 64 examples", "bytes": "bytes of memory", "flops": "additions and multiplications"}
SECONDS = (1, "s"), (1e-3, "ms"), (1e-6, "µs")
LARGE = (1e12, "trillion"), (1e9, "billion"), (1e6, "million")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # of processors
EDGE_BYTES = 24  # of a symmetric sparse matrix: twice a weight of 8 bytes and an index of 4


def read_bars(path: Path | str) -> dict[str, str]:
    """What we want to reach, by the names of comparisons, such as `ratio >= 6 and share >= 50%`.

    Args:
        path: `benchmarks/bars.yml`, seen from the project's folder or one level below it.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it cannot be read, or a bar is none.
    """
    place = _place(Path(path), f"no bars at {path}")
    try:
        bars = YAML(typ="safe").load(place.read_text("utf-8"))
    except YAMLError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(bars, dict):
        raise ValueError(f"{path} holds no bars, one a line as in `name: ratio >= 2`")
    for bar in bars.values():
        _conditions(str(bar))
    return {str(name): str(bar) for name, bar in bars.items()}


def read_figures(path: Path | str) -> dict[str, dict[str, Any]]:
    """What `make bench` wrote on every processor.

    Args:
        path: `benchmarks/bars.yml`, as in :func:`read_bars`; the figures lie beside it, in `results/<processor>.json`.

    Returns:
        By processor, full benchmarks first, and the newest of these first: one entry per comparison, and `_machine`,
        `_rates`, `_growth`.

    Raises:
        FileNotFoundError: no such file, or no figures beside it.
        ValueError: a file there is not the benchmark's, or none is of a full benchmark.
    """
    folder = _place(Path(path), f"no bars at {path}").parent / "results"
    found = {}
    for file in sorted(folder.glob("*.json")):
        try:
            figures = json.loads(file.read_text("utf-8"))
        except ValueError as error:
            raise ValueError(f"{file.name} cannot be read: {error}") from None
        missing = {"_machine", "_rates"} - set(figures if isinstance(figures, dict) else ())
        if missing:
            raise ValueError(f"{file.name} holds no benchmark, it lacks {', '.join(sorted(missing))}; run: make bench")
        found[file.stem] = figures
    if not found:
        raise FileNotFoundError("no figures beside the bars, in results; measure them first: make bench")
    order = sorted(found, key=lambda name: ("_growth" in found[name], found[name]["_machine"]["time"]), reverse=True)
    if "_growth" not in found[order[0]]:
        raise ValueError(f"no full benchmark among {', '.join(order)}; run: make bench")
    return {name: found[name] for name in order}


def _place(path: Path, missing: str) -> Path:
    found = next((place for place in (path, Path("..") / path) if place.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"{missing}; measure first: make bench")
    return found


CONDITION = re.compile(r"(ours|ratio|overhead|share) (<=|>=) (\d+(?:\.\d+)?)(%?)")


def _conditions(bar: str) -> list[list[tuple[str, str, float]]]:
    """Ways to pass, each a list of conditions that all have to hold: (figure, sign, number)."""
    ways = []
    for way in bar.split(" or "):
        parts = [CONDITION.fullmatch(part.strip()) for part in way.split(" and ")]
        if not all(parts):
            raise ValueError(f"a bar must read like `ratio >= 6 and share >= 50%`, received {bar!r}")
        ways.append([(p[1], p[2], float(p[3]) / (100 if p[4] else 1)) for p in parts if p])
    return ways


def is_met(bar: str, row: Mapping[str, Any]) -> bool:
    """Whether figures meet a bar; a figure that was not measured meets none.

    Args:
        bar: conditions on `ours`, `ratio`, `overhead` and `share`, joined by "and", which binds closer, and "or".
        row: an entry of :func:`read_figures`.

    Raises:
        ValueError: `bar` does not read like one.

    Examples:
        >>> is_met("ratio >= 5 or share >= 75%", {"ratio": 3.7, "share": 0.8})
        True
        >>> is_met("ratio >= 6 and share >= 50%", {"ratio": 6.5, "share": 0.16})
        False
    """

    def holds(figure: str, sign: str, number: float) -> bool:
        value = row.get(figure)
        return value is not None and (value <= number if sign == "<=" else value >= number)

    return any(all(holds(*condition) for condition in way) for way in _conditions(bar))


def bar_words(bar: str, unit: str) -> str:
    """A bar in words; `unit` is that of our own figure.

    Examples:
        >>> bar_words("ratio >= 6 and share >= 50%", "s"), bar_words("ours <= 0.3", "s").replace("\xa0", " ")
        ('at least 6× and a share of at least 50%', 'at most 300 ms')
    """
    signs = {"<=": "at most", ">=": "at least"}

    def words(figure: str, sign: str, number: float) -> str:
        shown = {"ours": quantity(number, unit), "ratio": f"{number:g}×", "overhead": f"{number:+.0%}"}
        start = "a share of " if figure == "share" else ""
        return f"{start}{signs[sign]} {shown.get(figure, f'{number:.0%}')}"

    return " or ".join(" and ".join(words(*condition) for condition in way) for way in _conditions(bar))


def processors(found: Mapping[str, dict[str, Any]]) -> pd.DataFrame:
    """One row per processor: its letter, name, features, the code path that counts pairs, and the best rates.

    Args:
        found: see :func:`read_figures`.
    """
    rows = []
    for letter, figures in zip(LETTERS, found.values(), strict=False):
        machine, rates = figures["_machine"], figures["_rates"]
        best = [quantity(rates[name]) for name in RATES.values()]
        said = [machine[name] or "not recorded" for name in ("processor", "features", "path")]
        rows.append((letter, *said, machine["cores"], *best, machine["commit"]))
    columns = ["", "processor", "features", "pairs are counted in", "cores", "words/s", "bytes/s", "operations/s"]
    return pd.DataFrame(rows, columns=[*columns, "commit"])


def side_by_side(found: Mapping[str, dict[str, Any]], bars: Mapping[str, str]) -> pd.DataFrame:
    """One row per bar: on each processor the result, its share of the counted limit, and whether the bar is met.

    Args:
        found: see :func:`read_figures`.
        bars: see :func:`read_bars`; figures measured under other bars are held against these.

    Returns:
        Columns `figure`, `bar`, and for each processor A, B, ... `A`, `A share`, `A met` and `A commit`; a dash where a
        figure was not measured. Bars that no processor was held against are left out.
    """
    rows = []
    for name, bar in bars.items():
        measured = [figures.get(name) for figures in found.values()]
        unit = next((row["unit"] for row in measured if row), None)
        if unit is None:
            continue
        cells: list[str] = []
        for row in measured:
            share = None if row is None else row["share"]
            cells += (
                ["–"] * 4
                if row is None
                else [
                    _result(bar, row),
                    "–" if share is None else f"{share:.0%}",
                    "yes" if is_met(bar, row) else "no",
                    row["commit"],
                ]
            )
        rows.append((name, bar_words(bar, unit), *cells))
    letters = LETTERS[: len(found)]
    columns = [f"{letter}{what}" for letter in letters for what in ("", " share", " met", " commit")]
    return pd.DataFrame(rows, columns=["figure", "bar", *columns])


def _result(bar: str, row: Mapping[str, Any]) -> str:
    """The figure that a bar speaks of first, beside the share."""
    if bar.startswith("overhead"):
        return f"{row['overhead']:+.1%}"
    return quantity(row["ours"], row["unit"]) if bar.startswith("ours") else f"{row['ratio']:.3g}×"


def comparisons(figures: dict[str, Any], bars: Mapping[str, str]) -> pd.DataFrame:
    """One row per comparison: both sides' medians, ratio or overhead with its spread, and the bar set beforehand.

    Args:
        figures: of one processor, see :func:`read_figures`.
        bars: see :func:`read_bars`.

    Returns:
        Columns `figure`, `what`, `ours`, `other`, `result`, `bar`, `met`, all in words; a dash where there is no bar.
    """
    rows = []
    for name, row in _entries(figures):
        bar, (low, high) = bars.get(name), row["spread"]["ratio"]
        spread = "" if f"{low:.3g}" == f"{high:.3g}" else f" ({low:.3g}\xa0to\xa0{high:.3g})"
        result = f"{row['ratio']:.3g}×{spread}"
        if bar is not None and bar.startswith("overhead"):
            result = _result(bar, row)
        sides = [quantity(row[side], row["unit"]) for side in ("ours", "other")]
        verdict = ("–", "–") if bar is None else (bar_words(bar, row["unit"]), "yes" if is_met(bar, row) else "no")
        about = re.sub(r"\b1 epochs", "1 epoch", row["about"])
        rows.append((name, about, *sides, result, *verdict))
    return pd.DataFrame(rows, columns=["figure", "what", "ours", "other", "result", "bar", "met"])


def in_words(table: pd.DataFrame) -> pd.DataFrame:
    """A table of this module as a page shows it: names of figures in words, and commits, which are long, at its end."""
    commits = [name for name in table if str(name).endswith(" commit")]
    order = [name for name in table if name not in commits] + commits
    return table[order].assign(figure=[spelled(name) for name in table["figure"]])


def spelled(name: str) -> str:
    """The name of a comparison in words.

    Examples:
        >>> spelled("cofiring_20000x2000"), spelled("blocks_50000_peak_mib"), spelled("first_snapshot_s")
        ('co-firing 20,000 × 2,000', 'blocks 50,000, peak memory', 'first snapshot')
    """
    text = re.sub(r"_s$", "", name.replace("cofiring", "co-firing").replace("_peak_mib", ", peak memory"))
    text = re.sub(r"(?<=\d)x(?=\d)", " × ", text.replace("_", " "))
    return re.sub(r"\d{4,}", lambda digits: f"{int(digits[0]):,}", text)


def against_limits(figures: dict[str, Any]) -> pd.DataFrame:
    """Times and memory held against what has to be done at least, counted on paper, at the machine's best rates.

    Args:
        figures: of one processor, see :func:`read_figures`.

    Returns:
        Columns `figure`, `has to be done`, `least`, `measured`, and the number `share`, the least over the measured;
        rows of which the least is not known are left out.
    """
    rows = []
    for name, row in _entries(figures):
        if row["share"] is None:
            continue
        words = "memory of the result itself"
        if "MiB" not in row["work"]:
            words = "; ".join(f"{quantity(amount)} {NAMES[kind]}" for kind, amount in row["work"].items())
        if row["held"] is not None:
            words += f", {quantity(row['held'] / 2**20, 'MiB')} in use"
        sides = [quantity(value, row["unit"]) for value in (row["least"], row["ours"])]
        rows.append((name, words, *sides, row["share"]))
    return pd.DataFrame(rows, columns=["figure", "has to be done", "least", "measured", "share"])


def stack_ceiling(found: Mapping[str, dict[str, Any]]) -> tuple[float, float]:
    """What keeps small networks that train side by side from more.

    Args:
        found: figures by name, see :func:`read_figures`; the first that has them counts.

    Returns:
        The share of a stack's time that is PyTorch's own code (matrix products, Adam's updates), and the ratio to a
        loop over the networks that would be left with nothing else.

    Raises:
        ValueError: no processor has the figure.
    """
    for figures in found.values():
        if "zoo_small" in figures:
            parts = figures["zoo_small"]["parts"]
            library = sum(took for what, took in parts.items() if re.search("matrices|Adam", what))
            share = library / sum(parts.values())
            return share, figures["zoo_small"]["ratio"] / share
    raise ValueError("no processor has zoo_small; measure it: make bench")


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
            ax.plot(sizes, values, "o", color=SUBJECT, ms=5)
            ax.set(xscale="log", yscale="log", xlabel=curve["size"], ylabel=curve["unit"])
            what = curve["name"].partition("_")[0].replace("communities", "search")
            ax.set_title(f"{what}: exponent {curve['exponent']:.2f}")
            ax.set_xticks(sizes, [f"{size / 1000:g}k" for size in sizes])
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter("{x:g}")
            ax.minorticks_off()
    return fig


def costs_of_measuring(found: Mapping[str, dict[str, Any]]) -> pd.DataFrame:
    """What `nb.measure` took of networks of several sizes, on the processor on which that was measured last.

    Args:
        found: see :func:`read_figures`.

    Returns:
        One row per size: `neurons`, `time`, `memory`, in words, and `processor`; none if it was measured nowhere.
    """
    columns = ["neurons", "time", "memory", "processor"]
    known = [one for one in found.values() if "measure_time_neurons" in one.get("_growth", {})]
    if not known:
        return pd.DataFrame(columns=columns)
    newest = max(known, key=lambda one: one["_growth"]["measure_time_neurons"]["time"])
    times, memories = (newest["_growth"][f"measure_{what}_neurons"] for what in ("time", "memory"))
    rows = zip(times["sizes"], times["values"], memories["values"], strict=True)
    where = newest["_machine"]["processor"]
    return pd.DataFrame([(size, quantity(t, "s"), quantity(m, "MiB"), where) for size, t, m in rows], columns=columns)


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
