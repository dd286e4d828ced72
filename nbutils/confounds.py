"""What is left of a correlation between networks where something else is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from nbutils.correlations import resampled_spearman
from nbutils.evidence import RULES
from nbutils.series import correlation_test, partial_correlation, partial_from

__all__ = ["GIVEN", "held_fixed_table", "partial_between", "within_levels"]

# What is held fixed between networks.
GIVEN = {
    "mean_cofiring": "given mean co-firing",
    "train_loss": "given training loss",
    "train_accuracy": "given training accuracy",
    "noise": "given the noise level",
}


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
