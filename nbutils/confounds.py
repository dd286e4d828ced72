"""What is left of a correlation between networks where something else is the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from nbutils.conclusions import counted
from nbutils.correlations import resampled_spearman
from nbutils.display import format_number, interval_text
from nbutils.evidence import RULES
from nbutils.hypotheses import H2_MEASURE, H3_MEASURE
from nbutils.results import Results
from nbutils.series import correlation_test, partial_correlation, partial_from

__all__ = [
    "GIVEN",
    "held_fixed",
    "held_fixed_sentence",
    "held_fixed_table",
    "held_fixed_words",
    "partial_between",
    "within_levels",
]

# What is held fixed between networks.
GIVEN = {
    "mean_cofiring": "given mean co-firing",
    "train_loss": "given training loss",
    "train_accuracy": "given training accuracy",
    "noise": "given the noise level",
}
# What goes with test accuracy, where something else is held fixed; the last, which should, is a yardstick.
HELD = {
    H2_MEASURE: "modularity",
    H3_MEASURE: "pattern entropy",
    "true_accuracy": "yardstick",
}
YARDSTICK = "true_accuracy"


def partial_between(
    measure: Any, accuracy: Any, condition: Any, given: Any, rng: np.random.Generator, draws: int = 999
) -> tuple[float, tuple[float, float]]:
    """Do runs with more of a measure perform better, where a third quantity is the same?

    Partial Spearman correlation over all runs; the interval resamples whole conditions.

    Args:
        measure: final value per run, shape (runs,).
        accuracy: final accuracy per run, shape (runs,).
        condition: condition per run, shape (runs,).
        given: what is held fixed, shape (runs,).
        rng: source of randomness.
        draws: resamples.

    Returns:
        (correlation, its 95 % interval), in [-1, 1]; NaN where `given` orders the runs completely.

    Examples:
        >>> loss = np.repeat([0.0, 0.2, 0.5, 0.8, 1.0], 2)
        >>> wiggle = np.tile([0.0, 0.1], 5)
        >>> rho, _ = partial_between(wiggle - loss, -wiggle - loss, loss, loss, np.random.default_rng(0))
        >>> round(rho, 2)  # both fall with the loss, which hides that one falls where the other rises
        -1.0
    """
    x, y, z = (np.asarray(series, dtype=float) for series in (measure, accuracy, given))
    names, index = np.unique(np.asarray(condition), return_inverse=True)
    members = [np.flatnonzero(index == k) for k in range(len(names))]
    chosen = rng.integers(len(names), size=(draws, len(names)))
    resamples = [np.concatenate([members[k] for k in row]) for row in chosen]
    found = partial_from(*(resampled_spearman(a, b, resamples) for a, b in ((x, y), (x, z), (y, z))))
    known, tail = found[np.isfinite(found)], (1 - RULES.level) / 2
    low, high = np.quantile(known, [tail, 1 - tail]) if known.size else (np.nan, np.nan)
    return partial_correlation(x, y, z), (float(low), float(high))


def within_levels(measure: Any, accuracy: Any, level: Any) -> tuple[float, tuple[float, float]]:
    """Do runs with more of a measure perform better than others of the *same* level?

    Ranks are taken within each level and centred there, so that nothing which levels differ in is left; r is Pearson's
    correlation of these ranks over all runs, and its interval comes from Fisher's z with one run less per level. A
    partial correlation given the number of the level would not do: it removes only what is linear in ranks.

    Args:
        measure: final value per run, shape (runs,).
        accuracy: final accuracy per run, shape (runs,).
        level: level per run, shape (runs,).

    Returns:
        (correlation, its 95 % interval), in [-1, 1]; NaN where either is constant within all levels.

    Examples:
        >>> accuracy = [0.9, 0.8, 0.7, 0.3, 0.2, 0.1]
        >>> rho, _ = within_levels([5, 6, 7, 1, 2, 3], accuracy, [0, 0, 0, 1, 1, 1])
        >>> rho  # high levels have more of both, but within a level one falls as the other rises
        -1.0
    """
    level = pd.Series(np.asarray(level))
    x, y = (pd.Series(np.asarray(v, dtype=float)).groupby(level).rank() for v in (measure, accuracy))
    x, y = (ranks - ranks.groupby(level).transform("mean") for ranks in (x, y))
    size = float(np.sqrt((x**2).sum() * (y**2).sum()))
    rho = float((x * y).sum()) / size if size > 0 else float("nan")
    _, interval = correlation_test(rho, len(x) - level.nunique() + 1, RULES.level)
    return rho, interval


def held_fixed_table(grid: pd.DataFrame, measure: str) -> pd.DataFrame:
    """How a measure goes with test accuracy between runs, where something else is the same.

    Args:
        grid: rows of the noise grid of one data set.
        measure: column.

    Returns:
        One row per key of `GIVEN` that the grid has: `given`, `rho`, `low`, `high`, see :func:`partial_between`, and
        :func:`within_levels` for the noise level.
    """
    last, rows = grid[grid["epoch"] == grid["epoch"].max()], []
    for column in (name for name in GIVEN if name in last):
        series = last[measure], last["test_accuracy"], last["noise"], last[column]
        rng = np.random.default_rng(RULES.seed)
        rho, interval = within_levels(*series[:3]) if column == "noise" else partial_between(*series, rng)
        rows.append((column, rho, *interval))
    return pd.DataFrame(rows, columns=["given", "rho", "low", "high"])


def held_fixed(results: Sequence[Results]) -> pd.DataFrame:
    """How modularity, pattern entropy and a yardstick go with test accuracy where something else is the same.

    Args:
        results: of each data set; those without a grid of label noise are left out.

    Returns:
        One row per measure, data set and quantity held fixed: `measure`, `dataset`, and the columns of
        :func:`held_fixed_table`.
    """
    grids = {result.dataset: result.noise_grid() for result in results}
    tables = [
        held_fixed_table(grid, measure).assign(measure=measure, dataset=name)
        for measure in HELD
        for name, grid in grids.items()
        if len(grid)
    ]
    return pd.concat(tables, ignore_index=True)


def held_fixed_words(held: pd.DataFrame) -> pd.DataFrame:
    """A table of :func:`held_fixed` for readers: one row per measure and data set, one column per quantity."""
    named = held["measure"].map(HELD)
    words = held.assign(measure=named, text=[interval_text(*row) for row in held[["rho", "low", "high"]].to_numpy()])
    index = ["measure", "dataset"]
    wide = words.pivot_table(index=index, columns="given", values="text", aggfunc="first", sort=False).reset_index()
    return wide.rename(columns=GIVEN).rename_axis(columns=None)


def held_fixed_sentence(held: pd.DataFrame) -> str:
    """Where the predicted correlation is left between networks with the same share of redrawn labels."""
    same = held[held["given"] == "noise"]
    of = {measure: rows.set_index("dataset") for measure, rows in same.groupby("measure")}
    rising, falling = of[H2_MEASURE]["low"] > 0, of[H3_MEASURE]["high"] < 0
    clear = of[YARDSTICK]["low"] > 0
    places = [counted(list(found.index[found])) for found in (rising, falling, clear)]
    return (
        "Between networks with the same label noise, of {}, modularity still rises with test accuracy on {} (its "
        "correlations are {} on average), and pattern entropy still falls with it on {}. A yardstick that should rise "
        "with it, accuracy on the true labels of the training images, visibly does on {}."
    ).format(counted(list(rising.index)), places[0], format_number(of[H2_MEASURE]["rho"].mean(), 2), *places[1:])
