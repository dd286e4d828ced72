"""Does a measure go with performance? Correlation within a run, across runs, and the tests that fit drifting series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from nbutils.arrays import as_count, as_groups, as_rng, as_series, as_table, is_among, ordinary, require_level, shown
from nbutils.stats import MOST_DRAWS, Permutation, check_alternative, permutation_result, permuted_orders

__all__ = [
    "as_pair",
    "between_conditions",
    "correlation",
    "pairwise_correlation",
    "resampled_spearman",
    "session_permutation",
]


def as_pair(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two finite series of one length, as arrays of floats.

    Args:
        x: values, shape (n,).
        y: values, shape (n,).

    Returns:
        (x, y), each of shape (n,).

    Raises:
        ValueError: shapes disagree or values are not finite.

    Examples:
        >>> as_pair([1, 2], [3, 4])[1].tolist()
        [3.0, 4.0]
    """
    a, b = as_series(x, "x"), as_series(y, "y")
    if a.shape != b.shape:
        raise ValueError(f"x and y must be series of one length, received shapes {a.shape} and {b.shape}")
    return a, b


def correlation(x: Any, y: Any, method: str = "spearman") -> float:
    """Correlation of two series.

    Args:
        x: values, shape (n,).
        y: values, shape (n,).
        method: "spearman" (ranks) or "pearson".

    Returns:
        In [-1, 1]; 0.0 when a series of two or more values is constant: it carries no information about the other.
        NaN for fewer than two values, of which nothing can be said.

    Raises:
        ValueError: shapes disagree, values are not finite, or the method is unknown.

    Examples:
        >>> round(correlation([1, 2, 3], [1, 4, 9]), 12)
        1.0
    """
    a, b = as_pair(x, y)
    _check_method(method)
    if len(a) < 2:
        return float("nan")
    # Summed exactly: a library's dot product rounds by processor, by memory and by the order of the runs.
    return max(-1.0, min(1.0, math.fsum(_unit(a, method) * _unit(b, method))))


def pairwise_correlation(x: Any, y: Any, method: str = "spearman") -> np.ndarray:
    """Correlation of every series of one set with every series of another.

    Args:
        x: series, shape (m, n), finite.
        y: series, shape (k, n), finite.
        method: "spearman" (ranks) or "pearson".

    Returns:
        Shape (m, k), each as :func:`correlation` has it.

    Raises:
        ValueError: shapes disagree, values are not finite, or the method is unknown.

    Examples:
        >>> pairwise_correlation([[1, 2, 3], [3, 2, 1]], [[1, 4, 9]]).round(9).tolist()
        [[1.0], [-1.0]]
    """
    a, b = as_table(x, "x", "(series, values)"), as_table(y, "y", "(series, values)")
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"x and y must be sets of series of one length, received shapes {a.shape} and {b.shape}")
    _check_method(method)
    if a.shape[1] < 2:
        return np.full((len(a), len(b)), np.nan)
    if method == "spearman":
        a, b = (stats.rankdata(series, axis=1) for series in (a, b))
    found = np.array([_unit(row, "pearson") for row in a]) @ np.array([_unit(row, "pearson") for row in b]).T
    return np.clip(found, -1, 1)


def resampled_spearman(x: np.ndarray, y: np.ndarray, resamples: Sequence[np.ndarray]) -> np.ndarray:
    """Spearman's rho of every resample of two series.

    Args:
        x: values, shape (n,).
        y: values, shape (n,).
        resamples: indices of each resample; their lengths may differ.

    Returns:
        Shape (resamples,), in [-1, 1]; 0 where a series is constant.

    Examples:
        >>> squares = np.arange(4) ** 2
        >>> resampled_spearman(np.arange(4), -squares, [np.array([0, 1, 3]), np.array([1, 1])]).round(9).tolist()
        [-1.0, 0.0]
    """
    length = np.array([len(r) for r in resamples])
    found = np.zeros(len(resamples))
    for n in np.unique(length):
        rows = np.stack([r for r in resamples if len(r) == n])
        ranks = [stats.rankdata(values[rows], axis=1) - (n + 1) / 2 for values in (x, y)]
        scale = np.sqrt((ranks[0] ** 2).sum(axis=1) * (ranks[1] ** 2).sum(axis=1))
        found[length == n] = (ranks[0] * ranks[1]).sum(axis=1) / np.where(scale > 0, scale, 1)
    return np.clip(found, -1, 1)


def session_permutation(
    measures: Any,
    accuracies: Any,
    rng: np.random.Generator | int,
    *,
    method: str = "spearman",
    alternative: str = "greater",
    permutations: int = 9999,
) -> Permutation:
    """Does a measure follow its *own* run's accuracy more than another run's?

    Two series that both drift are correlated for no other reason. So the mean within-run correlation,
    mean_i r(M_i, A_i), is compared with mean_i r(M_i, A_pi(i)) over permutations pi of the runs: what all runs share
    (the drift of training) is in every pairing, what belongs to one run only in its own.

    Args:
        measures: shape (runs, epochs), at least 2 of each.
        accuracies: shape (runs, epochs).
        rng: source of randomness, a generator or a seed; unused when all permutations are few enough to be listed.
        method: "spearman" or "pearson" within a run; a constant series counts as correlation 0.
        alternative: "greater", "less" or "two-sided" (distance from the permutation mean).
        permutations: number of random permutations, from 1 to a million; up to that many, all are listed and the test
            is exact.

    Returns:
        A :class:`nbutils.stats.Permutation`; the smallest possible p value is 1 / (runs!) or 1 / (permutations + 1).

    Raises:
        ValueError: shapes disagree, values are not finite, fewer than 2 runs or epochs, or an unknown option.

    Examples:
        >>> drift = np.arange(5.0) + np.array([[0.0], [1.0], [2.0]])
        >>> result = session_permutation(drift, drift, np.random.default_rng(0))
        >>> result.statistic, result.p_value  # perfectly correlated, and no evidence at all
        (1.0, 1.0)

    References:
        Harris (2020), "Nonsense correlations in neuroscience", doi:10.1101/2020.11.29.402719.
    """
    m = as_table(measures, "measures", "(runs, epochs)")
    a = as_table(accuracies, "accuracies", "(runs, epochs)")
    if m.shape != a.shape or min(m.shape) < 2:
        raise ValueError(
            f"measures and accuracies must both be (runs >= 2, epochs >= 2), received {m.shape} and {a.shape}"
        )
    check_alternative(alternative)
    permutations, rng = as_count(permutations, "permutations", most=MOST_DRAWS), as_rng(rng)
    table = pairwise_correlation(m, a, method)
    runs = np.arange(len(table))
    orders = permuted_orders(len(table), permutations, rng)
    return permutation_result(table.diagonal().mean(), table[runs, orders].mean(axis=1), alternative)


def between_conditions(
    measure: Any,
    accuracy: Any,
    condition: Any,
    rng: np.random.Generator | int,
    *,
    alternative: str = "greater",
    draws: int = 9999,
    level: float = 0.95,
) -> tuple[Permutation, tuple[float, float]]:
    """Do runs with more of a measure perform better, across training conditions?

    The effect is Spearman's rho over all runs. Runs of one condition resemble each other, so the interval resamples
    whole conditions, and the p value permutes the conditions' mean measures against their mean accuracies. A resample
    has some conditions twice and others not at all, so that it sees less of what lies between them, and strong effects
    come out weaker; where the estimate lies outside its interval for that reason, the interval is extended to it.

    Args:
        measure: final value per run, shape (runs,).
        accuracy: final accuracy per run, shape (runs,).
        condition: condition per run, shape (runs,); at least 3 different ones.
        rng: source of randomness: a generator, or a seed.
        alternative: "greater", "less" or "two-sided".
        draws: number of resamples and of permutations, from 1 to a million.
        level: confidence of the interval, in (0, 1).

    Returns:
        (test of the condition means, interval of rho over all runs). The test's `statistic` is rho of the means.

    Raises:
        ValueError: shapes disagree, values are not finite, fewer than 3 conditions, or an option is out of range.

    Examples:
        >>> noise = np.repeat([0.0, 0.2, 0.5, 0.8, 1.0], 2)
        >>> test, interval = between_conditions(1 - noise, 1 - noise, noise, np.random.default_rng(0))
        >>> round(test.p_value, 3)  # 1 of the 120 orders of five conditions
        0.008
    """
    m, a, c = as_series(measure, "measure"), as_series(accuracy, "accuracy"), as_groups(condition, "condition")
    check_alternative(alternative)
    draws, level, rng = as_count(draws, "draws", most=MOST_DRAWS), require_level(level), as_rng(rng)
    if not m.shape == a.shape == c.shape:
        raise ValueError(
            f"measure, accuracy and condition must be one per run, received {m.shape}, {a.shape}, {c.shape}"
        )
    names, index = np.unique(c, return_inverse=True)
    if len(names) < 3:
        raise ValueError(f"condition must take at least 3 values, received {len(names)}")
    size = np.bincount(index)
    means = np.bincount(index, weights=m) / size, np.bincount(index, weights=a) / size
    ranks = _unit(means[0], "spearman"), _unit(means[1], "spearman")
    orders = permuted_orders(len(names), draws, rng)
    test = permutation_result(math.fsum(ranks[0] * ranks[1]), ranks[0][orders] @ ranks[1], alternative)
    members = [np.flatnonzero(index == k) for k in range(len(names))]
    chosen = rng.integers(len(names), size=(min(draws, 1999), len(names)))
    resamples = [np.concatenate([members[k] for k in row]) for row in chosen]
    tail = (1 - level) / 2
    low, high = np.quantile(resampled_spearman(m, a, resamples), [tail, 1 - tail])
    rho = correlation(m, a)
    return test, (min(float(low), rho), max(float(high), rho))


def _check_method(method: str) -> None:
    if not is_among(method, ("spearman", "pearson")):
        raise ValueError(f"method must be 'spearman' or 'pearson', received {shown(method)}")


def _unit(values: np.ndarray, method: str) -> np.ndarray:
    """Centred (ranks of) values with length 1, or all 0 for a constant series."""
    if len(values) < 2 or np.ptp(values) == 0:
        return np.zeros(len(values))
    ranked = stats.rankdata(values) if method == "spearman" else ordinary(values)
    centred = ranked - math.fsum(ranked) / len(ranked)
    return centred / math.sqrt(math.fsum(centred * centred))
