"""Intervals and permutation tests: the run is the unit, never the epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
from scipy import stats

from nbutils.arrays import as_count, as_numpy, as_rng, as_series, is_among, require_level, shown

__all__ = [
    "Permutation",
    "bootstrap_interval",
    "check_alternative",
    "holm",
    "permutation_result",
    "permuted_orders",
    "sign_flip",
]

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
    statistic: Callable[..., Any] = np.mean,
    level: float = 0.95,
    draws: int = 9999,
) -> tuple[float, float]:
    """Bootstrap confidence interval of a statistic over independent values (bias-corrected and accelerated).

    Args:
        values: one per run, shape (runs,).
        rng: source of randomness: a generator, or a seed.
        statistic: function of (values, axis).
        level: confidence, in (0, 1).
        draws: number of resamples, from 1 to a million.

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
    draws = as_count(draws, "draws", most=MOST_DRAWS)
    if not callable(statistic):
        raise ValueError(f"statistic must be a function of (values, axis), received {shown(statistic)}")
    if len(array) < 2:
        return float("nan"), float("nan")
    if np.ptp(array) == 0:
        return float(array[0]), float(array[0])
    if np.ptp(array) < LEAST_SPREAD:
        raise ValueError(f"values must differ by at least {LEAST_SPREAD:g} or not at all; use another unit")
    found = _bca(array, statistic, level, draws, rng)
    if statistic is np.mean and np.isnan(found).any():  # means of values far from 0 round to one
        middle = math.fsum(array) / len(array)
        found = _bca(array - middle, statistic, level, draws, rng) + middle
    return float(found[0]), float(found[1])


def _bca(
    values: np.ndarray, statistic: Callable[..., Any], level: float, draws: int, rng: np.random.Generator
) -> np.ndarray:
    found = stats.bootstrap((values,), statistic, confidence_level=level, n_resamples=draws, rng=rng)
    return np.array([found.confidence_interval.low, found.confidence_interval.high])


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
    return Permutation(float(statistic), float((score >= observed - 1e-12).mean()), null)


def check_alternative(alternative: str) -> None:
    """Refuse a word that is no alternative of a test, before any work is done."""
    if not is_among(alternative, ALTERNATIVES):
        raise ValueError(f"alternative must be one of {ALTERNATIVES}, received {shown(alternative)}")
