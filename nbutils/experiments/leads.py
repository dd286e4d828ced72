"""What comes first in the first two epochs: half-way steps, lagged correlations, and the words of both questions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.ndimage import median_filter

from nbutils.evaluation.words import Estimate, equivalence_test, inner_level, judge, t_interval, two_way_residuals
from nbutils.experiments.early import ASKED, EARLY_RULES, EarlyRules
from nbutils.experiments.effects import estimate_of, paired_p_value
from nbutils.second.questions import PROTOCOL
from nbutils.stats import (
    bootstrap_interval,
    holm,
    pairwise_correlation,
    permutation_result,
    permuted_orders,
    runs_by_epochs,
)
from nbutils.support.checks import as_count, as_rng, as_series, shown

__all__ = [
    "QUESTIONS",
    "early_verdicts",
    "half_way_step",
    "half_way_steps",
    "lagged_correlations",
    "lead_estimate",
    "series_of",
]

QUESTIONS = ("structure first", "leading")
MOST_ORDERS = 9999
NOTHING = float("nan")


def half_way_step(values: Any, rules: EarlyRules = EARLY_RULES) -> float:
    """The step at which a series has gone half of its way.

    From its first value to the mean of its last tenth; the first step from 1 on at which the running median of five has
    gone at least half of that, in that direction. At both ends the median repeats the outermost value.

    Args:
        values: one per step from 0, the untrained network, shape (steps + 1,), at least 2. NaN where a measure was not
            defined.
        rules: share, window, end, and how long a way must be.

    Returns:
        A step; NaN where the series is not finite, or goes no way: where its end differs from its start by less than
        three standard deviations of the last tenth, or not at all.

    Raises:
        ValueError: fewer than two values.

    Examples:
        >>> half_way_step([0, 0, 0, 0, 4, 8, 8, 8, 8, 8, 8, 8])
        4.0
    """
    series = np.asarray(values, dtype=float)
    if series.ndim != 1 or len(series) < 2:
        raise ValueError(f"values must hold a value before training and after each step, received {shown(values)}")
    if not np.isfinite(series).all():
        return NOTHING
    course, tail = median_filter(as_series(series), rules.window, mode="nearest"), _tail(series, rules)
    way = tail.mean() - series[0]
    spread = tail.std(ddof=1) if len(tail) > 1 else 0.0
    if way == 0 or abs(way) < rules.deviations * spread:
        return NOTHING
    gone = (course[1:] - series[0]) / way >= rules.half
    return float(np.argmax(gone) + 1) if gone.any() else NOTHING


def _tail(series: np.ndarray, rules: EarlyRules) -> np.ndarray:
    steps = len(series) - 1
    return series[-max(1, round(rules.tail * steps)) :]


def series_of(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """A measure over the steps, for every network of one kind on one data set that was trained to the end.

    Args:
        table: of the experiment *early*, rows of one data set and condition.
        column: of the table.

    Returns:
        A row per seed, a column per step.
    """
    wide = table[table["reason"] == ""].pivot(index="seed", columns="step", values=column)
    return wide.sort_index().sort_index(axis=1)


def half_way_steps(table: pd.DataFrame, rules: EarlyRules = EARLY_RULES) -> pd.DataFrame:
    """Half-way steps of accuracy and of every measure that is asked about.

    Args:
        table: of the experiment *early*.
        rules: see :func:`half_way_step`.

    Returns:
        One row per network: `dataset`, `condition`, `seed`, and the step by column of the table; NaN where it goes no
        way.
    """
    rows = []
    for (dataset, condition), own in table.groupby(["dataset", "condition"], sort=False):
        found = {name: series_of(own, name) for name in ("accuracy", *ASKED)}
        for seed in found["accuracy"].index:
            steps = {name: half_way_step(wide.loc[seed].to_numpy(), rules) for name, wide in found.items()}
            rows.append({"dataset": dataset, "condition": condition, "seed": seed, **steps})
    return pd.DataFrame(rows, columns=["dataset", "condition", "seed", "accuracy", *ASKED])


def lagged_correlations(measures: Any, accuracies: Any, lags: int = EARLY_RULES.lags) -> np.ndarray:
    """Correlations of residuals of a measure with those of accuracy some steps later, for every pair of runs.

    Residuals are two-way, see :func:`nbutils.evaluation.words.two_way_residuals`: the course that all runs share and
    each run's own level are taken out. Entry (l, i, j) correlates the measure of run i at step t with the accuracy of
    run j at step t + l.

    Args:
        measures: shape (runs, steps), at least 3 runs.
        accuracies: shape (runs, steps).
        lags: the largest lag either way, at least 1; there must be at least 3 steps more.

    Returns:
        Shape (2 lags + 1, runs, runs), lags from -lags (accuracy first) to lags (measure first).

    Raises:
        ValueError: shapes disagree, values are not finite, or there are too few runs or steps.

    Examples:
        >>> own = np.random.default_rng(0).normal(size=(4, 40))
        >>> found = lagged_correlations(own[:, 1:], own[:, :-1], lags=2)  # accuracy is what the measure was before
        >>> int(found[:, 0, 0].argmax()) - 2
        1

    References:
        Box, Jenkins, Reinsel and Ljung (2015), "Time series analysis", chapter 12, on cross-correlation.
    """
    lags = as_count(lags, "lags")
    m, a = map(two_way_residuals, runs_by_epochs(measures, accuracies, least=3))
    if m.shape[1] < lags + 3:
        raise ValueError(f"measures must have at least {lags + 3} steps for lags up to {lags}, received {m.shape[1]}")
    steps = m.shape[1]
    return np.stack(
        [
            pairwise_correlation(
                m[:, max(0, -lag) : steps - max(0, lag)], a[:, max(0, lag) : steps + min(0, lag)], "pearson"
            )
            for lag in range(-lags, lags + 1)
        ]
    )


def lead_estimate(
    measures: Any, accuracies: Any, rng: np.random.Generator | int, rules: EarlyRules = EARLY_RULES
) -> Estimate:
    """Does what is special about a run show in the measure first, or in accuracy?

    The mean over runs and lags of the correlation with the measure first, minus that with accuracy first, see
    :func:`lagged_correlations`. The p value pairs each run's measure with another run's accuracy; with up to seven
    runs all orders are listed. The intervals resample runs (BCa). They are made wider by sqrt(runs / (runs - 2)): by
    sqrt(runs / (runs - 1)) because resamples spread less than runs, and by sqrt((runs - 1) / (runs - 2)) because
    residuals of runs depend on each other, see :func:`nbutils.evaluation.words.residual_correlation`. Of few runs they
    still cover too seldom: intervals of 95 % about 93 % with ten runs, 88 % with five.

    Args:
        measures: shape (runs, steps), at least 3 runs.
        accuracies: shape (runs, steps).
        rng: source of randomness, a generator or a seed.
        rules: lags and level.

    Returns:
        An :class:`nbutils.evaluation.words.Estimate`, its value in [-2, 2]; the p value is two-sided.

    Raises:
        ValueError: see :func:`lagged_correlations`.

    Examples:
        >>> own = np.random.default_rng(0).normal(size=(6, 60)).cumsum(axis=1)
        >>> found = lead_estimate(own[:, 3:], own[:, :-3], 0)  # accuracy follows after three steps
        >>> found.value > 0, found.p_value < 0.05
        (True, True)

    References:
        Permuting runs: Harris (2020), doi:10.1101/2020.11.29.402719; intervals: Efron (1987),
        doi:10.1080/01621459.1987.10478410; their width: Hesterberg (2014), arXiv:1411.5279.
    """
    found, seed = lagged_correlations(measures, accuracies, rules.lags), int(as_rng(rng).integers(2**32))
    difference = found[rules.lags + 1 :].mean(axis=0) - found[: rules.lags].mean(axis=0)
    runs = np.arange(len(difference))
    orders = permuted_orders(len(runs), MOST_ORDERS, as_rng(seed))
    each = difference.diagonal()
    test = permutation_result(each.mean(), difference[runs, orders].mean(axis=1), "two-sided")
    wider = test.statistic + (each - test.statistic) * np.sqrt(len(runs) / (len(runs) - 2))
    outer, inner = (bootstrap_interval(wider, seed, level=level) for level in (rules.level, inner_level(rules.level)))
    return Estimate(test.statistic, *outer, inner, test.p_value)


def early_verdicts(table: pd.DataFrame, rules: EarlyRules = EARLY_RULES) -> pd.DataFrame:
    """Both questions, for every data set, kind of network and measure, with their words.

    Args:
        table: of the experiment *early*, see :func:`nbutils.experiments.early.early_rows`.
        rules: thresholds, and how it is decided.

    Returns:
        One row each: `dataset`, `condition`, `question` (of `QUESTIONS`), `measure`, `networks` (that count),
        `of` (that were trained), `effect` (octaves, or a difference of correlations) with `low` and `high`, `p_value`,
        `adjusted` by Holm over all rows, `word`.

    Examples:
        >>> from nbutils.experiments.early import early_rows, early_trials
        >>> trials = early_trials(["digits"], seeds=3, model="mlp:24", batch_size=64)
        >>> found = early_verdicts(pd.DataFrame([row for one in trials for row in early_rows(one)]))
        >>> len(found), found["measure"].tolist()[:2]
        (6, ['modularity', 'active_entropy'])
    """
    groups = [(*names, own) for names, own in table.groupby(["dataset", "condition"], sort=False)]
    ways = half_way_steps(table, rules)
    rows = [_first(ways, dataset, condition, own, name, rules) for dataset, condition, own in groups for name in ASKED]
    rows += [_leading(dataset, condition, own, name, rules) for dataset, condition, own in groups for name in ASKED]
    found = pd.DataFrame(rows)
    found["adjusted"] = holm(found["p_value"].tolist())
    found["word"] = [_word(row, rules) for row in found.itertuples()]
    return found.drop(columns=["inner_low", "inner_high"])


def _first(
    ways: pd.DataFrame, dataset: str, condition: str, own: pd.DataFrame, name: str, rules: EarlyRules
) -> dict[str, Any]:
    here = ways[(ways["dataset"] == dataset) & (ways["condition"] == condition)]
    octaves = np.log2(here[name] / here["accuracy"]).dropna().to_numpy()
    row = _row(dataset, condition, QUESTIONS[0], name, len(octaves), own["seed"].nunique())
    if len(octaves) < 2:
        return row
    inner = equivalence_test(octaves, rules.octaves, rules.level)[1]
    estimate = Estimate(octaves.mean(), *t_interval(octaves, rules.level), inner, paired_p_value(octaves))
    return row | _of(estimate)


def _leading(dataset: str, condition: str, own: pd.DataFrame, name: str, rules: EarlyRules) -> dict[str, Any]:
    both = pd.concat({one: series_of(own, one) for one in (name, "accuracy")}, axis=1).dropna()
    row = _row(dataset, condition, QUESTIONS[1], name, len(both), own["seed"].nunique())
    if len(both) < 3:
        return row
    return row | _of(lead_estimate(both[name].to_numpy(), both["accuracy"].to_numpy(), PROTOCOL.seed, rules))


def _row(dataset: str, condition: str, question: str, name: str, networks: int, of: int) -> dict[str, Any]:
    known = {"dataset": dataset, "condition": condition, "question": question, "measure": name}
    empty = dict.fromkeys(("effect", "low", "high", "inner_low", "inner_high", "p_value"), NOTHING)
    return {**known, "networks": networks, "of": of, **empty}


def _of(estimate: Estimate) -> dict[str, float]:
    ends = {"low": estimate.low, "high": estimate.high}
    inner = dict(zip(("inner_low", "inner_high"), estimate.inner, strict=True))
    return {"effect": estimate.value, **ends, **inner, "p_value": estimate.p_value}


def _word(row: Any, rules: EarlyRules) -> str:
    if row.networks < rules.least * row.of:
        return "not measurable"
    estimate = estimate_of(row)
    first = row.question == QUESTIONS[0]
    limit, direction = (rules.octaves, -1) if first else (rules.lead, ASKED[row.measure])
    return judge(estimate, limit, direction=direction, bound=limit, adjusted=row.adjusted)
