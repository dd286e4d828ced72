"""Does structure early in training say how good a network will be, beyond what its accuracy says already?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nbutils.series import partial_from
from nbutils.stats import MOST_DRAWS, resampled_spearman
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_frame, as_rng

__all__ = ["ALL_LABELS", "early_prediction"]

ALL_LABELS = "all"
LEAST_RUNS = 4  # with three, a partial correlation of ranks is 1 or -1


@checked
def early_prediction(
    table: pd.DataFrame,
    measures: Sequence[str],
    rng: np.random.Generator | int,
    *,
    early: Sequence[int] = (1, 2, 3),
    outcome: str = "test_accuracy",
    draws: int = 999,
) -> pd.DataFrame:
    """What a measure at an early epoch says about the final accuracy that accuracy at that epoch does not.

    Over runs: Spearman's rho of the measure at epoch e with the final outcome, and its partial rho given the outcome at
    epoch e (:func:`nbutils.series.partial_correlation`). Within each label condition the interval resamples runs;
    over all conditions together, where there are at least 3, it resamples whole conditions, since runs of one condition
    resemble each other.

    Args:
        table: one row per run and epoch: `dataset`, `labels`, `run`, `epoch`, the outcome and the measures, such as
            the `table` of :class:`nbutils.study.results.Results`.
        measures: columns to try.
        rng: source of randomness: a generator, or a seed.
        early: epochs to predict from.
        outcome: column to predict; its value at a run's last epoch is the final one.
        draws: resamples for each interval.

    Returns:
        One row per data set, condition, measure and early epoch: `dataset`, `labels` ("all" for all conditions
        together), `measure`, `epoch`, `runs`, `rho`, `rho_outcome` (of the early outcome with the final one),
        `partial`, `low`, `high` (95 % interval of `partial`). A run counts at an epoch that is measured, known and
        before its last. NaN with fewer than 4 runs, and where the early outcome determines the order of the measure
        or of the final outcome completely; a constant measure has 0.

    Raises:
        ValueError: the table lacks a column; names it.

    Examples:
        >>> runs = pd.DataFrame({"dataset": "d", "labels": "true", "run": list("abcde") * 2})
        >>> runs = runs.assign(epoch=np.repeat([1, 9], 5), q=[1, 2, 3, 4, 5] * 2)
        >>> runs = runs.assign(test_accuracy=[0.5, 0.4, 0.6, 0.5, 0.4, 0.91, 0.92, 0.93, 0.94, 0.95])
        >>> found = early_prediction(runs, ["q"], np.random.default_rng(0), early=[1])
        >>> found[["labels", "epoch", "runs", "rho", "partial"]].round(2).values.tolist()
        [['true', 1, 5, 1.0, 1.0]]

    References:
        The question: Jiang et al. (2020), arXiv:1912.02178, who condition on hyperparameters likewise.
    """
    rng, draws = as_rng(rng), as_count(draws, "draws", most=MOST_DRAWS)
    key = ("dataset", "labels", "run", "epoch")
    as_frame(table, key, "table", numbers=(outcome, *measures), finite=("epoch",), key=key)
    last = table.loc[table.groupby("run")["epoch"].idxmax(), ["run", "epoch", outcome]]
    rows = table.merge(last.set_axis(["run", "last", "final"], axis=1), on="run")
    rows = rows[(rows["epoch"] < rows["last"]) & rows["epoch"].isin(early)].dropna(subset=["final", outcome])
    found = []
    for (dataset, labels), runs in _groups(rows):
        for measure in measures:
            for epoch, known in runs.dropna(subset=[measure]).groupby("epoch"):
                units = known["labels" if labels == ALL_LABELS else "run"]
                values = [known[column].to_numpy(float) for column in (measure, "final", outcome)]
                found.append((dataset, labels, measure, epoch, len(known), *_partial(*values, units, draws, rng)))
    columns = ["dataset", "labels", "measure", "epoch", "runs", "rho", "rho_outcome", "partial", "low", "high"]
    return pd.DataFrame(found, columns=columns)


def _groups(rows: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """The runs of each data set and condition, and of all conditions together where there are at least 3."""
    groups = list(rows.groupby(["dataset", "labels"], sort=False))
    for dataset, runs in rows.groupby("dataset", sort=False):
        if runs["labels"].nunique() >= 3:
            groups.append(((dataset, ALL_LABELS), runs))
    return groups


def _partial(
    measure: np.ndarray, final: np.ndarray, early: np.ndarray, units: pd.Series, draws: int, rng: np.random.Generator
) -> tuple[float, ...]:
    """Rho of the measure and of the early outcome with the final one, the partial rho, and its interval."""
    if len(final) < LEAST_RUNS:
        return (np.nan,) * 5
    names, index = np.unique(units, return_inverse=True)
    parts = [np.flatnonzero(index == k) for k in range(len(names))]
    chosen = rng.integers(len(names), size=(draws, len(names)))
    resamples = [np.arange(len(final)), *(np.concatenate([parts[k] for k in row]) for row in chosen)]
    pairs = (measure, final), (measure, early), (final, early)
    rho = [resampled_spearman(x, y, resamples) for x, y in pairs]
    partial = partial_from(*rho)
    drawn = partial[1:][np.isfinite(partial[1:])]
    interval = np.quantile(drawn, [0.025, 0.975]) if np.isfinite(partial[0]) and drawn.size else (np.nan, np.nan)
    return tuple(float(value) for value in (rho[0][0], rho[2][0], partial[0], *interval))
