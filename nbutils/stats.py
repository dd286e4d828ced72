"""Statistics of runs: intervals, corrections for many tests, and correlations that respect runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
from scipy import stats

from nbutils.support.checks import (
    as_count,
    as_groups,
    as_numpy,
    as_rng,
    as_series,
    as_table,
    is_among,
    ordinary,
    require_level,
    shown,
)

ALTERNATIVES = ("greater", "less", "two-sided")
MOST_DRAWS = 1_000_000
LEAST_SPREAD = 1e-100  # below it, cubes of differences vanish


@dataclass(frozen=True)
class Permutation:
    """Result of a permutation test.

    Attributes:
        statistic: the observed value.
        p_value: share of permutations at least as extreme, the observed one counted in.
        null: the statistic of every permutation, shape (permutations,).
    """

    statistic: float
    p_value: float
    null: np.ndarray

    @property
    def expected(self) -> float:
        """Mean of the statistic over the permutations."""
        return float(self.null.mean())


def sign_flip(
    differences: Any, rng: np.random.Generator | int, *, alternative: str = "greater", flips: int = 9999
) -> Permutation:
    """Paired test of a mean difference: were there no effect, each difference could have had either sign.

    Args:
        differences: one per pair, shape (pairs,), at least 1.
        rng: source of randomness, a generator or a seed; unused when all sign patterns are few enough to be listed.
        alternative: "greater", "less" or "two-sided".
        flips: number of random sign patterns, from 1 to a million; up to that many, all are listed and the test is
            exact.

    Returns:
        A :class:`Permutation` of the mean difference.

    Raises:
        ValueError: no differences, values that are not finite, or an option is out of range.

    Examples:
        >>> sign_flip([1.0, 2.0, 3.0], np.random.default_rng(0)).p_value
        0.125

    References:
        Fisher (1935), "The Design of Experiments"; Winkler et al. (2014), doi:10.1016/j.neuroimage.2014.01.060.
    """
    d = as_series(differences, "differences")
    if not len(d):
        raise ValueError("differences must be at least one finite number in a row, received none")
    check_alternative(alternative)
    flips, rng = as_count(flips, "flips", most=MOST_DRAWS), as_rng(rng)
    if 2 ** len(d) <= flips:
        signs = 1 - 2 * ((np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1)
    else:
        signs = np.vstack([np.ones(len(d)), rng.choice([-1, 1], size=(flips, len(d)))])
    return permutation_result(d.mean(), (signs * d).mean(axis=1), alternative)


def bootstrap_interval(
    values: Any,
    rng: np.random.Generator | int,
    *,
    level: float = 0.95,
    draws: int = 9999,
) -> tuple[float, float]:
    """Bootstrap confidence interval of the mean over independent values (bias-corrected and accelerated).

    Args:
        values: one per run, shape (runs,).
        rng: source of randomness: a generator, or a seed.
        level: confidence, in (0, 1).
        draws: number of resamples, from 100 to a million.

    Returns:
        (low, high). For values that are all equal, that value twice; for fewer than two values, (nan, nan): one run
        says nothing about the spread between runs.

    Raises:
        ValueError: values are not finite, or differ by next to nothing, or an option is out of range.

    Examples:
        >>> low, high = bootstrap_interval([1.0, 2.0, 3.0, 4.0], np.random.default_rng(0))
        >>> 1 <= low < 2.5 < high <= 4
        True

    References:
        Efron (1987), doi:10.1080/01621459.1987.10478410; computed by SciPy.
    """
    array, level, rng = as_series(values), require_level(level), as_rng(rng)
    draws = as_count(draws, "draws", 100, MOST_DRAWS)
    if len(array) < 2:
        return float("nan"), float("nan")
    if np.ptp(array) == 0:
        return float(array[0]), float(array[0])
    if np.ptp(array) < LEAST_SPREAD:
        raise ValueError(f"values must differ by at least {LEAST_SPREAD:g} or not at all; use another unit")

    def interval(values: np.ndarray) -> np.ndarray:
        found = stats.bootstrap((values,), np.mean, confidence_level=level, n_resamples=draws, rng=rng)
        return np.array(found.confidence_interval)

    found = interval(array)
    if np.isnan(found).any():  # means of values far from 0 round to one
        middle = math.fsum(array) / len(array)
        found = interval(array - middle) + middle
    return float(found[0]), float(found[1])


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm's adjustment: p values that stay valid when several tests are made together.

    Args:
        p_values: shape (tests,), in [0, 1]; NaN marks a test that could not be made: it stays NaN but counts in the
            number of tests.

    Returns:
        Adjusted p values, shape (tests,), in [0, 1].

    Raises:
        ValueError: `p_values` are no numbers in a row, or one lies outside [0, 1].

    Examples:
        >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
        [0.03, 0.06, 0.06]

    References:
        Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    p = as_numpy(p_values, "p_values").astype(float)
    if p.ndim != 1:
        raise ValueError(f"p_values must be numbers in a row, received shape {p.shape}")
    known = p[~np.isnan(p)]
    if ((known < 0) | (known > 1)).any():
        raise ValueError(f"p_values must lie in [0, 1], received {shown(p_values)}")
    order = np.argsort(p)  # NaN sorts last, so untested hypotheses keep the multipliers of the others large
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p)))), 1)
    return adjusted


# Not SciPy's `permutation_test`: from one seed it draws other permutations than those that committed values rest on,
# and its two-sided p value is twice the smaller tail. Where all orders are listed, one-sided p values are the same.
def permuted_orders(count: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """All orders of `count` items if there are at most `most`, else the identity and `most` random ones."""
    if factorial(count) <= most:
        return np.array(list(permutations(range(count))))
    return np.vstack([np.arange(count), rng.permuted(np.tile(np.arange(count), (most, 1)), axis=1)])


def permutation_result(statistic: float, null: np.ndarray, alternative: str) -> Permutation:
    """A permutation test from its parts.

    Args:
        statistic: the observed value.
        null: the statistic under every permutation, the identity among them, shape (permutations,).
        alternative: "greater", "less" or "two-sided" (distance from the mean of `null`).

    Returns:
        A :class:`Permutation`.

    Raises:
        ValueError: unknown alternative.

    Examples:
        >>> permutation_result(3.0, np.array([3.0, 1.0, 2.0, 0.0]), "greater").p_value
        0.25
    """
    check_alternative(alternative)
    centre = null.mean() if alternative == "two-sided" else 0.0
    sign = -1.0 if alternative == "less" else 1.0
    score = sign * (null - centre)
    observed = sign * (statistic - centre)
    if alternative == "two-sided":
        score, observed = np.abs(score), abs(observed)
    # Equal values may differ in the last digits after summing in another order: they count as ties.
    rounding = 1e-12 * np.abs(null).max(initial=abs(statistic))
    return Permutation(float(statistic), float((score >= observed - rounding).mean()), null)


def check_alternative(alternative: str) -> None:
    """Refuse a word that is no alternative of a test, before any work is done."""
    if not is_among(alternative, ALTERNATIVES):
        raise ValueError(f"alternative must be one of {ALTERNATIVES}, received {shown(alternative)}")


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
    return counted_spearman(x, y, times_drawn(resamples, len(x))) if len(resamples) else np.zeros(0)


def counted_spearman(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """As :func:`resampled_spearman`, where it is known how often each pair is in each resample.

    Args:
        x: values, shape (n,).
        y: values, shape (n,).
        counts: shape (n, resamples).

    Returns:
        Shape (resamples,).

    Examples:
        >>> counted_spearman(np.arange(3), np.array([2, 1, 5]), np.array([[1, 1], [1, 1], [0, 1]])).tolist()
        [-1.0, 0.5]
    """
    first, second = (resampled_ranks(values, counts) for values in (x, y))
    weighted = counts * first
    scale = np.sqrt((weighted * first).sum(axis=0) * (counts * second**2).sum(axis=0))
    return np.clip((weighted * second).sum(axis=0) / np.where(scale > 0, scale, 1), -1, 1)


def times_drawn(resamples: Sequence[np.ndarray], n: int) -> np.ndarray:
    """How often each of n things is in each resample.

    Args:
        resamples: indices of each resample, at least one; their lengths may differ.
        n: how many things there are.

    Returns:
        Shape (n, resamples).

    Examples:
        >>> times_drawn([np.array([0, 0, 2]), np.array([1])], 3).tolist()
        [[2, 0], [0, 1], [1, 0]]
    """
    column = np.repeat(np.arange(len(resamples)), [len(r) for r in resamples])
    cells = np.bincount(np.concatenate(resamples) * len(resamples) + column, minlength=n * len(resamples))
    return cells.reshape(n, len(resamples))


def resampled_ranks(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Centred ranks of values in resamples that hold each of them so often; values are sorted once for all resamples.

    Args:
        values: shape (n,).
        counts: how often each value is in each resample, shape (n, resamples).

    Returns:
        Shape (n, resamples): ranks, the mean of its places for a value that is there more than once, minus their mean
        in the resample. NaN throughout for a resample that holds a NaN.

    Examples:
        >>> resampled_ranks(np.array([5.0, 7.0, 7.0]), np.array([[1, 2], [1, 0], [1, 1]])).T.tolist()
        [[-1.0, 0.5, 0.5], [-0.5, 1.0, 1.0]]
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    new = np.r_[True, ordered[1:] != ordered[:-1]]
    each = np.add.reduceat(counts[order], np.flatnonzero(new), axis=0)  # how often each different value is there
    last = np.cumsum(each, axis=0)
    place = np.empty(len(order), dtype=int)  # of each value among the different ones
    place[order] = np.cumsum(new) - 1
    ranks = (last - (each + last[-1]) / 2)[place]
    ranks[:, counts[np.isnan(values)].any(axis=0)] = np.nan
    return ranks


def runs_by_epochs(measures: Any, accuracies: Any, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Two tables of one shape, (runs, epochs), with at least so many of each."""
    m = as_table(measures, "measures", "(runs, epochs)")
    a = as_table(accuracies, "accuracies", "(runs, epochs)")
    if m.shape != a.shape or min(m.shape) < least:
        wanted = f"(runs >= {least}, epochs >= {least})"
        raise ValueError(f"measures and accuracies must both be {wanted}, received {m.shape} and {a.shape}")
    return m, a


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
    m, a = runs_by_epochs(measures, accuracies, least=2)
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
        draws: number of permutations, from 1 to a million, and of resamples, of which 1,999 are enough.
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
    test, (interval,) = between_at_levels(measure, accuracy, condition, rng, (level,), alternative, draws)
    return test, interval


def between_at_levels(
    measure: Any,
    accuracy: Any,
    condition: Any,
    rng: np.random.Generator | int,
    levels: Sequence[float],
    alternative: str = "greater",
    draws: int = 9999,
) -> tuple[Permutation, list[tuple[float, float]]]:
    """:func:`between_conditions` with intervals of several levels of confidence, from the same resamples.

    Args:
        measure: final value per run, shape (runs,).
        accuracy: final accuracy per run, shape (runs,).
        condition: condition per run, shape (runs,); at least 3 different ones.
        rng: source of randomness: a generator, or a seed.
        levels: confidences, each in (0, 1).
        alternative: "greater", "less" or "two-sided".
        draws: number of permutations, from 1 to a million, and of resamples, of which 1,999 are enough.

    Returns:
        (test of the condition means, an interval of rho over all runs for each level).

    Raises:
        ValueError: as :func:`between_conditions` does.
    """
    m, a, c = as_series(measure, "measure"), as_series(accuracy, "accuracy"), as_groups(condition, "condition")
    check_alternative(alternative)
    draws, rng = as_count(draws, "draws", most=MOST_DRAWS), as_rng(rng)
    levels = [require_level(level) for level in levels]
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
    chosen = rng.integers(len(names), size=(min(draws, 1999), len(names)))
    drawn, rho = counted_spearman(m, a, times_drawn(chosen, len(names))[index]), correlation(m, a)
    ends = [np.quantile(drawn, [(1 - level) / 2, 1 - (1 - level) / 2]) for level in levels]
    return test, [(min(float(low), rho), max(float(high), rho)) for low, high in ends]


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
