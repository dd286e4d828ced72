"""Estimates with intervals, equivalence, and the one word that they come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from nbutils.evaluation.reliability import Reliability
from nbutils.stats import (
    LEAST_SPREAD,
    MOST_DRAWS,
    between_at_levels,
    correlation,
    counted_spearman,
    runs_by_epochs,
    session_permutation,
    times_drawn,
)
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_groups, as_rng, as_series, as_table, is_number, require_level, shown

WORDS = ("supported", "contradicted", "no association", "undecided", "not measurable")
ALPHA = 0.05  # largest adjusted p value that counts
NEGLIGIBLE = 1e-13  # share of a table's largest number below which its residuals are rounding
NAN = float("nan")


@checked
@dataclass(frozen=True)
class Estimate:
    """An effect with the two intervals that a word rests on.

    Attributes:
        value: the estimate.
        low: lower end of the interval that must lie beyond a threshold, of 95 % by default.
        high: its upper end.
        inner: (low, high) of the interval that must lie within the bounds of equivalence, of 90 % where the other has
            95 %: two one-sided tests at 5 % each.
        p_value: of "no effect"; NaN where there is no test.

    Raises:
        ValueError: the lower end of an interval lies above its upper end.

    Examples:
        >>> Estimate(0.4, 0.25, 0.55, (0.28, 0.52)).p_value
        nan
    """

    value: float
    low: float
    high: float
    inner: tuple[float, float]
    p_value: float = NAN

    def __post_init__(self) -> None:
        for name, low, high in (("low", self.low, self.high), ("inner", *self.inner)):
            if low > high:
                raise ValueError(f"{name} must not lie above the upper end of its interval, received {shown(low)}")


def t_interval(values: Any, level: float = 0.95) -> tuple[float, float]:
    """Confidence interval of the mean over independent values, by Student's t.

    mean -+ t s / sqrt(n), with t the (1 + level) / 2 quantile with n - 1 degrees of freedom. With few runs it covers as
    often as it says, where bootstrap intervals cover less.

    Args:
        values: one per run, shape (runs,).
        level: confidence, in (0, 1).

    Returns:
        (low, high). For values that are all equal, that value twice; for fewer than two values, (nan, nan).

    Raises:
        ValueError: values are not finite, or differ by next to nothing, or `level` is out of range.

    Examples:
        >>> low, high = t_interval([1.0, 2.0, 3.0])  # 2 -+ 4.303 / sqrt(3)
        >>> round(low, 3), round(high, 3)
        (-0.484, 4.484)

    References:
        Student (1908), doi:10.1093/biomet/6.1.1.
    """
    array, level = as_series(values), require_level(level)
    if len(array) < 2:
        return NAN, NAN
    middle, error = _mean_and_error(array, "values")
    half = float(stats.t.ppf((1 + level) / 2, len(array) - 1)) * error
    return middle - half, middle + half


def equivalence_test(values: Any, bound: float, level: float = 0.95) -> tuple[float, tuple[float, float]]:
    """Is a mean so close to 0 that it does not matter? Two one-sided t tests.

    The mean is tested against -bound from above and against +bound from below; the larger p value counts. It is at most
    1 - level exactly where the interval of confidence 2 level - 1 (90 % for 95 %) lies within the bounds. A large p
    value is no evidence of an effect: it may only say that there were few runs.

    Args:
        values: one per run, shape (runs,).
        bound: smallest effect that would matter, above 0, in the unit of the values.
        level: confidence of each test, in (0.5, 1).

    Returns:
        (p value of "the effect is as large as the bound", interval of confidence 2 level - 1). NaN throughout for fewer
        than two values.

    Raises:
        ValueError: values are not finite, or an option is out of range.

    Examples:
        >>> p, (low, high) = equivalence_test([-0.1, 0.0, 0.1, 0.05, -0.05], 0.3)
        >>> p < 0.05, -0.3 < low < high < 0.3
        (True, True)

    References:
        Schuirmann (1987), doi:10.1007/BF01068419; Lakens (2017), doi:10.1177/1948550617697177.
    """
    array, inner = as_series(values), inner_level(level)
    if not is_number(bound) or bound < LEAST_SPREAD:
        raise ValueError(f"bound must be a number above 0, received {shown(bound)}")
    if len(array) < 2:
        return NAN, (NAN, NAN)
    middle, error = _mean_and_error(array, "values")
    distance = float(bound) - abs(middle)
    if error == 0:
        return (0.0 if distance > 0 else 1.0), (middle, middle)
    return float(stats.t.sf(distance / error, len(array) - 1)), t_interval(array, inner)


def two_way_residuals(table: Any) -> np.ndarray:
    """What is left of a table once the mean of every run and of every epoch is taken out.

    x_re - mean_e(x_re) - mean_r(x_re) + mean(x): neither the course that all runs share nor a run's own level is left.

    Args:
        table: shape (runs, epochs), at least one of each.

    Returns:
        Shape (runs, epochs); every row and column sums to 0. Where only rounding is left of a run, zeros.

    Raises:
        ValueError: `table` is not finite, or empty.

    Examples:
        >>> two_way_residuals([[1, 2, 3], [4, 5, 9]]).tolist()
        [[0.5, 0.5, -1.0], [-0.5, -0.5, 1.0]]

    References:
        Tukey (1949), "One degree of freedom for non-additivity", doi:10.2307/3001938.
    """
    x = as_table(table, "table", "(runs, epochs)")
    if not x.size:
        raise ValueError(f"table must hold at least one run and one epoch, received shape {x.shape}")
    left = x - x.mean(axis=1, keepdims=True)
    left = left - left.mean(axis=0)
    rounding = np.abs(left).max(axis=1) <= NEGLIGIBLE * np.abs(x).max()
    return np.where(rounding[:, None], 0.0, left)


def residual_correlation(
    measures: Any,
    accuracies: Any,
    rng: np.random.Generator | int,
    *,
    method: str = "pearson",
    level: float = 0.95,
    permutations: int = 9999,
) -> Estimate:
    """Does a run whose measure departs from the common course also depart from it in accuracy?

    The mean over runs of the correlation between the :func:`two_way_residuals` of measure and accuracy. The p value
    pairs each run's measure with another run's accuracy. The intervals are :func:`t_interval` over the runs'
    correlations, made wider by sqrt((runs - 1) / (runs - 2)): what one run has above the common course the others have
    below it, so that residuals of two runs are correlated by -1 / (runs - 1), and the runs' correlations by the square
    of that. As they are, intervals of 95 % over 10 runs would cover 94 %.

    Args:
        measures: shape (runs, epochs), at least 3 runs and 3 epochs.
        accuracies: shape (runs, epochs).
        rng: source of randomness, a generator or a seed; unused when all orders of the runs can be listed.
        method: "pearson" or "spearman" within a run; a run without residuals counts as correlation 0.
        level: confidence of the interval, in (0.5, 1); that of the inner one is 2 level - 1.
        permutations: number of random orders, from 1 to a million; up to that many, all are listed and the test is
            exact: up to 7 runs by default.

    Returns:
        An :class:`Estimate`, its value in [-1, 1] (ends of its intervals may lie beyond); the p value is two-sided. NaN
        throughout where no run's measure, or no run's accuracy, has any residual.

    Raises:
        ValueError: shapes disagree, values are not finite, fewer than 3 runs or epochs, or an unknown option.

    Examples:
        >>> own = np.array([[1.0, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1], [-1, 0, 0, 1]])
        >>> drift, level = np.arange(4.0), np.arange(4.0)[:, None]
        >>> found = residual_correlation(own + drift, own - 5 * drift + level, 0)
        >>> round(found.value, 9), round(found.p_value, 3)  # 1 of 24 orders
        (1.0, 0.042)

    References:
        Harris (2020), "Nonsense correlations in neuroscience", doi:10.1101/2020.11.29.402719, on permuting sessions.
    """
    m, a = runs_by_epochs(measures, accuracies, least=3)
    inner, own = inner_level(level), (two_way_residuals(m), two_way_residuals(a))
    test = session_permutation(*own, rng, method=method, alternative="two-sided", permutations=permutations)
    if not all(residuals.any() for residuals in own):
        return Estimate(NAN, NAN, NAN, (NAN, NAN))
    each = np.clip([correlation(*pair, method) for pair in zip(*own, strict=True)], -1, 1)
    each = test.statistic + (each - test.statistic) * np.sqrt((len(each) - 1) / (len(each) - 2))
    return Estimate(test.statistic, *t_interval(each, level), t_interval(each, inner), test.p_value)


def cluster_correlation(
    measure: Any,
    performance: Any,
    configuration: Any,
    rng: np.random.Generator | int,
    *,
    level: float = 0.95,
    draws: int = 9999,
) -> Estimate:
    """Spearman's rho over networks, of which some share a configuration and differ only by their seed.

    The intervals resample whole configurations (cluster bootstrap), so that two seeds do not count as two independent
    networks; the p value permutes the configurations' means. Both are :func:`nbutils.stats.between_conditions`.

    Args:
        measure: one value per network, shape (networks,).
        performance: shape (networks,).
        configuration: what networks that differ by their seed only have in common, shape (networks,), numbers or text;
            at least 3 different ones.
        rng: source of randomness, a generator or a seed.
        level: confidence of the interval, in (0.5, 1); that of the inner one is 2 level - 1.
        draws: number of permutations, from 1 to a million, and of resamples, of which 1,999 are enough.

    Returns:
        An :class:`Estimate`, its value in [-1, 1]; the p value is two-sided. NaN throughout where all networks have one
        measure, or one performance: nothing can be said about an association.

    Raises:
        ValueError: shapes disagree, values are not finite, fewer than 3 configurations, or an option is out of range.

    Examples:
        >>> width = np.repeat(np.arange(20.0), 2)
        >>> found = cluster_correlation(width, width**2, width, 0, draws=999)
        >>> round(found.value, 9), round(found.p_value, 3)
        (1.0, 0.001)

    References:
        Field and Welsh (2007), doi:10.1111/j.1467-9868.2007.00593.x, on bootstrapping clusters.
    """
    inner, seed = inner_level(level), int(as_rng(rng).integers(2**32))
    m, p = as_series(measure, "measure"), as_series(performance, "performance")
    c, draws = as_groups(configuration, "configuration"), as_count(draws, "draws", most=MOST_DRAWS)
    if not m.shape == p.shape == c.shape:
        shapes = f"{m.shape}, {p.shape}, {c.shape}"
        raise ValueError(f"measure, performance and configuration must be one per network, received {shapes}")
    if (count := len(np.unique(c))) < 3:
        raise ValueError(f"configuration must take at least 3 values, received {count}")
    if np.ptp(m) == 0 or np.ptp(p) == 0:
        return Estimate(NAN, NAN, NAN, (NAN, NAN))
    test, (ends, narrow) = between_at_levels(m, p, c, seed, (level, inner), "two-sided", draws)
    return Estimate(correlation(m, p), *ends, narrow, test.p_value)


@checked
def shared_cluster_correlation(
    measures: Sequence[Any],
    performances: Sequence[Any],
    configurations: Sequence[Any],
    rng: np.random.Generator | int,
    *,
    level: float = 0.95,
    draws: int = 1999,
) -> Estimate:
    """Mean over data sets of Spearman's rho, where networks on all of them share configurations.

    One draw of configurations serves every data set. Data sets with the same configurations are not independent
    witnesses: a configuration that happens to be odd is odd on all of them, and intervals that take the data sets for
    independent are too narrow.

    Args:
        measures: of each data set, one value per network, shape (networks,).
        performances: likewise.
        configurations: likewise, numbers or text; the same values are the same configuration on every data set.
        rng: source of randomness, a generator or a seed.
        level: confidence of the interval, in (0.5, 1); that of the inner one is 2 level - 1.
        draws: resamples.

    Returns:
        An :class:`Estimate` without a p value, its value in [-1, 1].

    Raises:
        ValueError: there is no data set, lists or shapes disagree, values are not finite, fewer than 3 configurations,
            or an option is out of range.

    Examples:
        >>> width = np.repeat(np.arange(20.0), 2)
        >>> found = shared_cluster_correlation([width, -width], [width, width], [width, width], 0, draws=99)
        >>> round(found.value, 9), round(found.low, 9), round(found.high, 9)  # the two cancel in every draw
        (0.0, 0.0, 0.0)

    References:
        Field and Welsh (2007), doi:10.1111/j.1467-9868.2007.00593.x, on bootstrapping clusters.
    """
    inner, draws = inner_level(level), as_count(draws, "draws", most=MOST_DRAWS)
    if not len(measures) == len(performances) == len(configurations) > 0:
        counts = f"{len(measures)}, {len(performances)}, {len(configurations)}"
        raise ValueError(f"measures, performances and configurations must be equally many, received {counts}")
    tables = []
    for one in zip(measures, performances, configurations, strict=True):
        m, p, c = as_series(one[0], "measure"), as_series(one[1], "performance"), as_groups(one[2], "configuration")
        if not m.shape == p.shape == c.shape:
            shapes = f"{m.shape}, {p.shape}, {c.shape}"
            raise ValueError(f"measure, performance and configuration must be one per network, received {shapes}")
        tables.append((m, p, c))
    names = np.unique(np.concatenate([c for _, _, c in tables]))
    if len(names) < 3:
        raise ValueError(f"configurations must take at least 3 values, received {len(names)}")
    counts = times_drawn(as_rng(rng).integers(len(names), size=(draws, len(names))), len(names))
    drawn = np.mean([counted_spearman(m, p, counts[np.searchsorted(names, c)]) for m, p, c in tables], axis=0)
    value = float(np.mean([correlation(m, p) for m, p, _ in tables]))
    low, inner_low, inner_high, high = np.quantile(
        drawn, [(1 - level) / 2, (1 - inner) / 2, (1 + inner) / 2, (1 + level) / 2]
    )
    return Estimate(value, float(low), float(high), (float(inner_low), float(inner_high)))


@checked
def judge(
    estimate: Estimate,
    threshold: float,
    *,
    direction: int = 1,
    bound: float | None = None,
    adjusted: float | None = None,
    one_sided: bool = False,
    reliability: Reliability | None = None,
) -> str:
    """One of five words for one question; the same rule for and against.

    "supported" where the interval lies wholly beyond the threshold with the predicted sign, "contradicted" where it
    lies wholly beyond it with the opposite sign, both only with an adjusted p value of at most 0.05 where one is given;
    "no association" where the inner interval lies within the bounds of equivalence; else "undecided". A measure that is
    not reliable, or does not vary, is "not measurable", whatever the estimate says.

    Args:
        estimate: value and intervals; one of which an end is NaN decides nothing.
        threshold: size that an effect must exceed, at least 0.
        direction: predicted sign, 1 or -1.
        bound: effects within -+ bound do not matter, above 0; None takes the threshold, and where that is 0 nothing is
            called "no association".
        adjusted: p value after correction for all tests made together, such as by :func:`nbutils.stats.holm`; None
            where the interval alone decides. NaN, a test that could not be made, neither supports nor contradicts.
        one_sided: for what cannot be opposite, such as a gain in explained variance: nothing is contradicted, and
            whatever lies below the bound does not matter.
        reliability: of the measure, see :func:`nbutils.evaluation.reliability.half_probe_reliability`.

    Returns:
        One of `WORDS`.

    Raises:
        TypeError: an argument is of another type.
        ValueError: `threshold`, `direction`, `bound` or `adjusted` is out of range.

    Examples:
        >>> strong, weak = Estimate(0.5, 0.35, 0.65, (0.38, 0.62)), Estimate(0.05, -0.1, 0.2, (-0.07, 0.17))
        >>> judge(strong, 0.3), judge(strong, 0.3, direction=-1), judge(weak, 0.3), judge(weak, 0.1)
        ('supported', 'contradicted', 'no association', 'undecided')
        >>> judge(strong, 0.3, adjusted=0.2)
        'undecided'
    """
    _require_rules(threshold, direction, bound, adjusted)
    if reliability is not None and not reliability.measurable:
        return "not measurable"
    ends = np.array([(estimate.low, estimate.high), estimate.inner]) * direction
    (low, least), (high, most) = ends.min(axis=1), ends.max(axis=1)  # NaN where either end is
    by_chance = adjusted is not None and not adjusted <= ALPHA
    if low > threshold and not by_chance:
        return "supported"
    if high < -threshold and not by_chance and not one_sided:
        return "contradicted"
    limit = threshold if bound is None else bound
    return "no association" if most < limit and (one_sided or least > -limit) else "undecided"


def _require_rules(threshold: float, direction: int, bound: float | None, adjusted: float | None) -> None:
    if not is_number(threshold) or threshold < 0:
        raise ValueError(f"threshold must be a number of at least 0, received {shown(threshold)}")
    if direction not in (1, -1):
        raise ValueError(f"direction must be 1 or -1, received {shown(direction)}")
    if bound is not None and (not is_number(bound) or bound <= 0):
        raise ValueError(f"bound must be a number above 0, received {shown(bound)}")
    if adjusted is not None and not (math.isnan(adjusted) or 0 <= adjusted <= 1):
        raise ValueError(f"adjusted must lie in [0, 1], received {shown(adjusted)}")


def inner_level(level: float) -> float:
    """Confidence of the interval that two one-sided tests at 1 - `level` make together: 2 level - 1."""
    level = require_level(level)
    if level <= 0.5:
        raise ValueError(f"level must lie between 0.5 and 1, received {shown(level)}")
    return 2 * level - 1


def _mean_and_error(values: np.ndarray, name: str) -> tuple[float, float]:
    """Mean and its standard error; equal values have error 0."""
    if np.ptp(values) == 0:
        return float(values[0]), 0.0
    if np.ptp(values) < LEAST_SPREAD:
        raise ValueError(f"{name} must differ by at least {LEAST_SPREAD:g} or not at all; use another unit")
    return math.fsum(values) / len(values), float(values.std(ddof=1) / math.sqrt(len(values)))
