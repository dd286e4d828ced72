"""What a sweep's parameters do to a metric: means and effects over the grid."""

from __future__ import annotations

import numpy as np
import pandas as pd

from nbutils.parameters import nearest
from nbutils.stats import bootstrap_interval
from nbutils.tables import AFTER, BEFORE

__all__ = ["axes_of", "effects", "marginal_means", "one_metric"]

REPLICATE = "seed"  # the parameter that only repeats a setting


def axes_of(table: pd.DataFrame) -> list[str]:
    """Parameters that vary in a table of results, without the seed, in the table's order.

    Examples:
        >>> axes_of(pd.DataFrame({"run": ["a", "b"], "width": [1, 2], "depth": [3, 3], "seed": [0, 1]}))
        ['width']
    """
    parameters = [c for c in table if c not in (*BEFORE, *AFTER, REPLICATE)]
    return [c for c in parameters if table[c].nunique(dropna=False) > 1]


def one_metric(table: pd.DataFrame, metric: str = "") -> pd.DataFrame:
    """Rows of finished runs with one metric; the first one if none is named.

    Raises:
        ValueError: no run measured it; lists what there is.
    """
    numbers = table[(table["status"] == "done") & table["value"].notna()]
    known = list(dict.fromkeys(numbers["metric"]))
    if not known:
        raise ValueError("no finished run recorded a number; call nbutils.record in the notebook")
    if metric and metric not in known:
        raise ValueError(f"metric must be one of {', '.join(known)}, received {metric!r}{nearest(metric, known)}")
    return numbers[numbers["metric"] == (metric or known[0])]


def marginal_means(measured: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Mean of the metric at each value of one parameter, over all other parameters and seeds.

    Args:
        measured: see :func:`one_metric`.
        axis: a parameter.

    Returns:
        One row per value: the value under the parameter's name, `mean`, `low` and `high` (95 % bootstrap interval over
        runs), `runs`.
    """
    rows = []
    for value, group in measured.groupby(axis, sort=False, dropna=False):
        low, high = bootstrap_interval(group["value"].to_numpy(), np.random.default_rng(0))
        rows.append((value, group["value"].mean(), low, high, len(group)))
    return pd.DataFrame(rows, columns=[axis, "mean", "low", "high", "runs"])


def effects(measured: pd.DataFrame) -> pd.DataFrame:
    r"""How much of the metric's variation each parameter accounts for, strongest first.

    $\eta^2 = \sum_v n_v (\bar y_v - \bar y)^2 / \sum_i (y_i - \bar y)^2$, with $\bar y_v$ the mean of the $n_v$ runs at
    value $v$. In a full grid the shares of all parameters, their interactions and the seeds add up to 1.

    Args:
        measured: see :func:`one_metric`.

    Returns:
        One row per varying parameter: `parameter`, `values`, `lowest` and `highest` (mean, and where), `share`
        ($\eta^2$, in [0, 1]; NaN if the metric never varies).
    """
    total = float(((measured["value"] - measured["value"].mean()) ** 2).sum())
    rows = []
    for axis in axes_of(measured):
        means = marginal_means(measured, axis)
        between = float((means["runs"] * (means["mean"] - measured["value"].mean()) ** 2).sum())
        extremes = means["mean"].argmin(), means["mean"].argmax()
        ends = [f"{means['mean'].iloc[i]:.3g} at {means[axis].iloc[i]}" for i in extremes]
        rows.append((axis, len(means), *ends, between / total if total > 0 else float("nan")))
    table = pd.DataFrame(rows, columns=["parameter", "values", "lowest", "highest", "share"])
    return table.sort_values("share", ascending=False, ignore_index=True)
