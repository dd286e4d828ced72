"""What stands beside every claim: the naive correlations of the paper, trivial predictors, and simple baselines."""

from __future__ import annotations

import numpy as np
import pandas as pd

from nbutils.correlations import between_conditions, correlation
from nbutils.series import partial_correlation, saturating_curve
from nbutils.stats import bootstrap_interval

__all__ = ["BASELINES", "between_run_table", "naive_table", "selectivity_share"]

# Column of the results table -> what it is called on a page.
BASELINES = {
    "modularity": "modularity Q (H2)",
    "pattern_entropy": "pattern entropy, last layer (H3)",
    "mutual_information": "mutual information with the class",
    "total_correlation": "total correlation",
    "class_selectivity": "class selectivity",
    "firing_entropy": "firing entropy per neuron",
    "class_conditional_entropy": "class-conditional pattern entropy",
    "binned_entropy": "binned entropy (the paper's)",
    "dead_share": "dead neurons",
    "well_defined": "well-defined communities",
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "parameter_norm": "parameter norm",
    "distance": "distance from initialisation",
}


def naive_table(table: pd.DataFrame, measure: str, accuracy: str = "train_accuracy") -> pd.DataFrame:
    """Within-run correlations with accuracy as the paper takes them, next to predictors that know nothing.

    Args:
        table: rows of one data set and one condition, all epochs.
        measure: column that the hypothesis is about.
        accuracy: column to correlate with.

    Returns:
        One row per predictor - the measure, "is it trained" 1[epoch > 0], and "time" 1 - exp(-epoch / 4) - with means
        over runs of Pearson's r and Spearman's ρ with the untrained network included (`all`) and left out (`trained`),
        and of the partial ρ of trained epochs (`ρ, given epoch`; NaN where the epoch decides everything).
    """
    predictors = {
        BASELINES.get(measure, measure): lambda run: run[measure].to_numpy(),
        "trained or not": lambda run: (run["epoch"] > 0).to_numpy(float),
        "time alone": lambda run: saturating_curve(run["epoch"]),
    }
    runs = [run.sort_values("epoch") for _, run in table.groupby("seed")]
    rows = []
    for name, predict in predictors.items():
        found = []
        for run in runs:
            x, y, epoch = predict(run), run[accuracy].to_numpy(), run["epoch"].to_numpy()
            found.append(
                (
                    correlation(x, y, "pearson"),
                    correlation(x, y),
                    correlation(x[1:], y[1:], "pearson"),
                    correlation(x[1:], y[1:]),
                    partial_correlation(x[1:], y[1:], epoch[1:]),
                )
            )
        means = [
            column[np.isfinite(column)].mean() if np.isfinite(column).any() else np.nan for column in np.array(found).T
        ]
        rows.append([name, *means])
    columns = ["r, all", "ρ, all", "r, trained", "ρ, trained", "ρ, given epoch"]
    return pd.DataFrame(rows, columns=["predictor", *columns])


def between_run_table(grid: pd.DataFrame, draws: int = 999) -> pd.DataFrame:
    """How well each measure's final value orders runs by test accuracy, over levels of label noise.

    Args:
        grid: rows of the noise grid of one data set.
        draws: resamples for each interval.

    Returns:
        One row per measure of `BASELINES`: `measure`, `rho` (Spearman over runs), `low`, `high` (95 % interval,
        resampling noise levels), strongest first.
    """
    last = grid[grid["epoch"] == grid["epoch"].max()]
    rows = []
    for column, name in BASELINES.items():
        values = last[column], last["test_accuracy"], last["noise"]
        _, (low, high) = between_conditions(*values, np.random.default_rng(0), alternative="two-sided", draws=draws)
        rows.append((name, correlation(*values[:2]), low, high))
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
