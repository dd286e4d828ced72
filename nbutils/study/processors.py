"""The same networks trained on other processors, beside the committed tables: for the page of that name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from nbutils.data.datasets import title_of
from nbutils.drawing.display import INK, figure_style, in_figure
from nbutils.study.archive import REFERENCE, RESULTS, SMALL, archive_folder, has_archive, read_archive
from nbutils.study.results import Results

STUDIES = (*SMALL, *REFERENCE)  # data sets whose tests are corrected together
FOLDER = RESULTS / "processors"
KEYS = ["dataset", "labels", "noise", "seed", "epoch"]  # of a row, whatever trained its network
FACTS = (*KEYS, "run", "parts")


def read_elsewhere(dataset: str) -> dict[str, Results]:
    """Tables of one study made on other processors or in portable mode.

    Args:
        dataset: "digits" or "mnist-5k".

    Returns:
        Results by where they were made, in the words of their own provenance.

    Raises:
        FileNotFoundError: there are none.

    Examples:
        >>> list(read_elsewhere("iris"))
        Traceback (most recent call last):
        FileNotFoundError: no tables of 'iris' under book/results/processors
    """
    places = sorted(path for path in _folder().glob(f"*/{dataset}") if has_archive(path))
    if not places:
        raise FileNotFoundError(f"no tables of {dataset!r} under {FOLDER.as_posix()}")
    found = {}
    for place in places:
        results = read_archive(place, dataset)
        made = json.loads(results.runs["processor"].iloc[0])
        found[f"{made['name']}{', portable mode' if made['portable'] else ''}"] = results
    return found


def side_by_side(dataset: str) -> pd.DataFrame:
    """Every measured value of a study as the committed tables have it, and as it came out elsewhere.

    Args:
        dataset: "digits" or "mnist-5k".

    Returns:
        One row per place, network, epoch and measure: `place`, `dataset`, `labels`, `noise`, `seed`, `epoch`,
        `measure`, `committed`, `value`.
    """
    committed = _long(read_archive(archive_folder(dataset), dataset)).rename(columns={"value": "committed"})
    parts = [
        committed.merge(_long(results), on=[*KEYS, "measure"], validate="one_to_one").assign(place=place)
        for place, results in read_elsewhere(dataset).items()
    ]
    return pd.concat(parts, ignore_index=True)


def with_others(results: Sequence[Results], others: Sequence[str]) -> list[Results]:
    """Results of some data sets, and the committed ones of others, so that p values are adjusted over all of them.

    Args:
        results: one per data set.
        others: data sets whose committed results are added where `results` has none of them.
    """
    known = {one.dataset for one in results}
    there = [name for name in others if name not in known and has_archive(archive_folder(name))]
    return [*results, *(read_archive(archive_folder(name), name) for name in there)]


def bits_table() -> pd.DataFrame:
    """First steps of training on each processor that tried, real or emulated, plain and in portable mode.

    Returns:
        One row per processor: `processor`, and the digest of what 20 steps on `digits` made of the first network,
        `plain` and `portable mode`.
    """
    content = json.loads((_folder() / "first_steps.json").read_text("utf-8"))
    rows = [{"processor": content["plain"]["provenance"]["processor"]["name"], **_bits(content)}]
    for name, two in content["emulated"].items():
        rows.append({"processor": f"{name.partition('-v')[0]}, emulated", **_bits(two)})
    return pd.DataFrame(rows)


def cost_table() -> pd.DataFrame:
    """What portable mode costs, as `python -m benchmarks.portable` measured it.

    Returns:
        One row per network: `network`, `plain` and `portable` (median seconds of processor time), `ratio` (median over
        neighbouring pairs), `least`, `most`, the `processor`, `commit` and `time`.
    """
    return pd.DataFrame(json.loads((_folder() / "cost.json").read_text("utf-8")))


def growth_figure(distances: pd.DataFrame, ylabel: str) -> Figure:
    """How a difference grows over epochs: one line per measure, one panel per data set.

    Args:
        distances: columns `dataset`, `epoch`, `measure` and `distance`, positive; zeros are left out of the lines.
        ylabel: what a distance is.
    """
    datasets = list(dict.fromkeys(distances["dataset"]))
    with figure_style():
        fig, axes = plt.subplots(1, len(datasets), figsize=(7.6, 3.2), sharey=True, squeeze=False)
        for ax, dataset in zip(axes[0], datasets, strict=True):
            own = distances[distances["dataset"] == dataset]
            for measure, rows in own.groupby("measure", sort=False):
                ax.plot(rows["epoch"], rows["distance"].where(rows["distance"] > 0), "o-", ms=3, label=measure)
            ax.axhline(1, color=INK, lw=0.8, ls=":")
            ax.set(title=in_figure(title_of(dataset)), xlabel="epoch", yscale="log", ylim=(None, 2))
        axes[0, 0].set_ylabel(ylabel)
        fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        plt.close(fig)
    return fig


def _folder() -> Path:
    """Seen from the project's folder or from that of the notebooks."""
    return next((place for place in (FOLDER, Path("..") / FOLDER) if place.is_dir()), FOLDER)


def _long(results: Results) -> pd.DataFrame:
    table = results.table
    measures = [name for name in table if name not in FACTS]
    return table.melt(KEYS, measures, "measure", "value").dropna(subset="value")


def _bits(two: dict[str, Any]) -> dict[str, str]:
    return {
        "plain": two["plain"]["data"]["digits"]["bits"],
        "portable mode": two["portable"]["data"]["digits"]["bits"],
    }
