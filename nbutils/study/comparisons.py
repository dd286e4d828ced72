"""What stands beside every claim: the naive correlations of the paper, trivial predictors, and simple baselines."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter

import numpy as np
import pandas as pd

from nbutils.measures import MEASURES
from nbutils.series import partial_correlation, saturating_curve
from nbutils.stats import between_conditions, bootstrap_interval, correlation
from nbutils.study.hypotheses import DRAWS
from nbutils.support.arguments import checked
from nbutils.support.checks import as_frame

__all__ = ["BASELINES", "between_run_table", "measure_name", "naive_table", "selectivity_share"]

KINDS = ("pearson", "spearman")

# Column of the results table -> what it is called on a page: measures of firing, and what training itself recorded.
BASELINES = {column: name for measure in MEASURES for column, name in measure.names.items()} | {
    "effective_rank": "effective rank, last layer",
    "margin": "margin",
    "sharpness": "sharpness",
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "parameter_norm": "parameter norm",
    "distance": "distance from initialisation",
}


def measure_name(column: str) -> str:
    """What a column of the results is called on a page.

    Examples:
        >>> measure_name("pattern_entropy_layer2"), measure_name("pattern_entropy_positive")
        ('pattern entropy (H3), hidden layer 2', 'pattern entropy, last layer (H3), positive firing')
    """
    for ending, words in (("_positive", "positive firing"), ("_layer", "hidden layer")):
        column, found, rest = column.partition(ending)
        if found:
            name = measure_name(column)
            name = name.replace(", last layer", "") if rest else name
            return f"{name}, {words} {rest}".rstrip()
    return BASELINES.get(column, column.replace("_", " "))


@checked
def naive_table(table: pd.DataFrame, measures: str | Sequence[str], accuracy: str = "train_accuracy") -> pd.DataFrame:
    """Within-run correlations with accuracy as the paper takes them, next to time-only baselines.

    Args:
        table: rows of one data set and one condition, all epochs.
        measures: column that the hypothesis is about, or several.
        accuracy: column to correlate with.

    Returns:
        One row per predictor - the measures, "is it trained" 1[epoch > 0], and "time" 1 - exp(-epoch / 4) - with means
        over runs of Pearson's r and Spearman's ρ with the untrained network included (`all`) and left out (`trained`),
        and of the partial ρ of trained epochs (`ρ, given epoch`; NaN where the epoch decides everything). Runs in which
        a predictor stands still do not count.
    """
    measures = [measures] if isinstance(measures, str) else measures
    table = as_frame(table, ("seed",), "table", finite=("epoch", accuracy, *measures), key=("seed", "epoch"))
    predictors = {
        **{measure_name(name): itemgetter(name) for name in measures},
        "trained or not": lambda run: (run["epoch"] > 0).to_numpy(float),
        "time alone": lambda run: saturating_curve(run["epoch"]),
    }
    runs = [run.sort_values("epoch") for _, run in table.groupby("seed")]
    rows = []
    for name, predict in predictors.items():
        found = []
        for run in runs:
            x, y, epoch = np.asarray(predict(run)), run[accuracy].to_numpy(), run["epoch"].to_numpy()
            parts = ((x, y), (x[1:], y[1:]))  # a predictor that stands still has no correlation
            both = [correlation(*part, kind) if len(set(part[0])) > 1 else np.nan for part in parts for kind in KINDS]
            found.append((*both, partial_correlation(x[1:], y[1:], epoch[1:])))
        known = np.array(found).T if found else np.full((5, 1), np.nan)
        means = [column[np.isfinite(column)].mean() if np.isfinite(column).any() else np.nan for column in known]
        rows.append([name, *means])
    columns = ["r, all", "ρ, all", "r, trained", "ρ, trained", "ρ, given epoch"]
    return pd.DataFrame(rows, columns=["predictor", *columns])


@checked
def between_run_table(
    grid: pd.DataFrame, columns: Collection[str] = tuple(BASELINES), draws: int = DRAWS
) -> pd.DataFrame:
    """How well each measure's final value orders runs by test accuracy, over levels of label noise.

    Args:
        grid: rows of the noise grid of one data set.
        columns: measures; those that the grid does not have are left out.
        draws: resamples for each interval; as many as the tests take, so that a table and a test agree.

    Returns:
        One row per measure: `measure`, `rho` (Spearman over runs), `low`, `high` (95 % interval,
        resampling noise levels), strongest first.
    """
    as_frame(grid, (), "grid", finite=("epoch",))
    last = grid[grid["epoch"] == grid["epoch"].max()]
    columns, rows = [name for name in columns if name in last], []
    as_frame(last, (), "grid", finite=("test_accuracy", "noise", *columns))
    if columns and last["noise"].nunique() < 3:
        raise ValueError(f"grid must hold at least 3 levels of label noise, received {last['noise'].nunique()}")
    for column in columns:
        values = last[column], last["test_accuracy"], last["noise"]
        _, (low, high) = between_conditions(*values, np.random.default_rng(0), alternative="two-sided", draws=draws)
        rows.append((measure_name(column), correlation(*values[:2]), low, high))
    found = pd.DataFrame(rows, columns=["measure", "rho", "low", "high"])
    return found.sort_values("rho", key=abs, ascending=False, ignore_index=True)


def selectivity_share(table: pd.DataFrame) -> pd.DataFrame:
    """How much of the excess modularity is left when only each neuron's class preference is kept.

    (Q_within - Q_circular) / (Q - Q_circular) per network at the last epoch, Q_within under the within-class shuffle.

    Args:
        table: rows of one data set, one or more label conditions.

    Returns:
        One row per condition: `labels`, `share` (mean), `low`, `high` (95 % interval over networks).
    """
    last = table[table["epoch"] == table["epoch"].max()]
    shares = (last["null_within"] - last["null_circular"]) / (last["modularity"] - last["null_circular"])
    rows = []
    for condition, values in shares.groupby(last["labels"], sort=False):
        rows.append((condition, values.mean(), *bootstrap_interval(values, np.random.default_rng(0))))
    return pd.DataFrame(rows, columns=["labels", "share", "low", "high"])
