"""Two series of one run: what is left of a correlation when time, trend and slow change are taken into account."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

from nbutils.arrays import LARGEST, as_numpy, as_series, is_among, is_number, is_whole, ordinary, require_level, shown
from nbutils.correlations import as_pair, correlation

__all__ = [
    "autocorrelation",
    "correlation_test",
    "detrended_correlation",
    "difference_correlation",
    "effective_sample_size",
    "partial_correlation",
    "partial_from",
    "saturating_curve",
]

LEAST_CONSTANT = 1e-100  # an epoch divided by less would overflow


def saturating_curve(time: Any, constant: float = 4.0) -> np.ndarray:
    """A curve that rises fast, then slowly, and knows nothing but the time: 1 - exp(-t / constant).

    Args:
        time: epochs, shape (n,), at least 0.
        constant: epochs after which 63 % of the rise is done, above 0.

    Returns:
        Shape (n,), from 0 at time 0 towards 1.

    Raises:
        ValueError: times are not finite or below 0, or `constant` is not above 0.

    Examples:
        >>> saturating_curve([0, 4, 8]).round(2).tolist()
        [0.0, 0.63, 0.86]
    """
    if not is_number(constant) or constant < LEAST_CONSTANT:
        raise ValueError(f"constant must be above 0, received {shown(constant)}")
    epochs = as_series(time, "time")
    if epochs.min(initial=0) < 0:
        raise ValueError(f"time must be at least 0, received {epochs.min():g}")
    return -np.expm1(-epochs / float(constant))


def difference_correlation(x: Any, y: Any, method: str = "pearson") -> float:
    """Correlation of the steps x_t - x_(t-1) with the steps y_t - y_(t-1).

    Two series that only share a slow drift have large values in common and small steps that are not.

    Args:
        x: values, shape (n,).
        y: values, shape (n,).
        method: "pearson" or "spearman".

    Returns:
        In [-1, 1]; 0.0 when a series moves by equal steps; NaN for fewer than three values.

    Raises:
        ValueError: shapes disagree, values are not finite, or the method is unknown.

    Examples:
        >>> round(difference_correlation([1, 2, 4, 5], [1, 0, -2, -3]), 12)
        -1.0
    """
    a, b = as_pair(x, y)
    return correlation(np.diff(a), np.diff(b), method)


def detrended_correlation(x: Any, y: Any, trend: Any) -> float:
    """Pearson's r of what a trend leaves unexplained: the residuals of two least-squares fits.

    With a single trend z this is the partial correlation (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2)).

    Args:
        x: values, shape (n,).
        y: values, shape (n,).
        trend: what is taken out, together with the mean; shape (n,) or (n, trends).

    Returns:
        In [-1, 1]; NaN when the trend explains x or y completely, or there are fewer than two values, and nothing is
        left to correlate.

    Raises:
        ValueError: shapes disagree or values are not finite.

    Examples:
        >>> time = np.arange(6)
        >>> wiggle = np.array([0, 1, 0, 0, 1, 0])
        >>> round(detrended_correlation(time + wiggle, 2 * time - wiggle, time), 12)
        -1.0
    """
    a, b = as_pair(x, y)
    columns = as_numpy(trend, "trend").astype(float)
    if columns.ndim not in (1, 2) or len(columns) != len(a) or not np.isfinite(columns).all():
        raise ValueError(f"trend must be finite with one row per value, received shape {columns.shape} for {len(a)}")
    if len(a) < 2:
        return float("nan")
    if np.abs(columns).max(initial=0) > LARGEST:
        raise ValueError(f"trend must lie within {LARGEST:g} of 0; use another unit")
    design = np.column_stack([np.ones(len(a)), columns])
    both = np.column_stack([a, b])
    left = both - design @ np.linalg.lstsq(design, both)[0]
    if (np.linalg.norm(left, axis=0) <= 1e-9 * np.linalg.norm(both, axis=0)).any():
        return float("nan")
    return correlation(*left.T, "pearson")


def partial_correlation(x: Any, y: Any, given: Any) -> float:
    """Spearman correlation of two series with a third held fixed.

    r_xy.z = (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2) (1 - r_yz^2)).

    Args:
        x: values, shape (n,).
        y: values, shape (n,).
        given: values, shape (n,).

    Returns:
        In [-1, 1]; NaN when `given` determines the order of x or of y completely, or there are fewer than two values:
        nothing is left to correlate.

    Raises:
        ValueError: shapes disagree or values are not finite.

    Examples:
        >>> time = np.arange(6)
        >>> wiggle = np.array([0, 1, 0, 1, 0, 1])
        >>> bool(partial_correlation(time + 3 * wiggle, time - 3 * wiggle, time) < 0)
        True
    """
    (a, b), c = as_pair(x, y), as_series(given, "given")
    if a.shape != c.shape:
        raise ValueError(f"x and given must be series of one length, received shapes {a.shape} and {c.shape}")
    a, b, c = (stats.rankdata(values) for values in (a, b, c))
    return float(partial_from(*(correlation(*pair, "pearson") for pair in ((a, b), (a, c), (b, c)))))


def partial_from(r_xy: Any, r_xz: Any, r_yz: Any) -> np.ndarray:
    """Partial correlations from plain ones, see :func:`partial_correlation`; any shapes that broadcast.

    Examples:
        >>> partial_from([0.5, 0.5], [0.0, 1.0], [0.0, 0.3]).tolist()
        [0.5, nan]
    """
    xy, xz, yz = np.broadcast_arrays(*(np.asarray(r, dtype=float) for r in (r_xy, r_xz, r_yz)))
    left = (1 - xz**2) * (1 - yz**2)
    known = left >= 1e-12
    return np.where(known, np.clip((xy - xz * yz) / np.sqrt(np.where(known, left, 1)), -1, 1), np.nan)


def autocorrelation(values: Any, lags: int) -> np.ndarray:
    """How much a series resembles itself some steps later.

    r(j) = sum_t (x_t - m)(x_(t+j) - m) / sum_t (x_t - m)^2, with m the mean of all values.

    Args:
        values: shape (n,).
        lags: the largest j, from 0 to n - 1.

    Returns:
        r(1) to r(lags), shape (lags,), in [-1, 1]; zeros for a constant series.

    Raises:
        ValueError: values are no finite series, or `lags` is out of range.

    Examples:
        >>> autocorrelation([1, -1, 1, -1], 2).tolist()
        [-0.75, 0.5]
    """
    series = as_series(values)
    if not is_whole(lags) or not 0 <= lags < max(len(series), 1):
        raise ValueError(
            f"lags must lie between 0 and {len(series) - 1}, one less than the values, received {shown(lags)}"
        )
    if np.ptp(series) == 0:
        return np.zeros(lags)
    centred = ordinary(series) - ordinary(series).mean()
    products = [centred[:-lag] @ centred[lag:] for lag in range(1, lags + 1)]
    return np.array(products) / (centred @ centred)


def effective_sample_size(x: Any, y: Any, lags: int | None = None, *, method: str = "bayley-hammersley") -> float:
    """How many independent pairs tell as much about a correlation as n pairs of two slowly changing series.

    1 / n* = 1 / n + (2 / n) sum_(j = 1..lags) (1 - j / n) r_x(j) r_y(j), r the :func:`autocorrelation`. Pyper and
    Peterman prefer to leave the weights (1 - j / n) out and to scale r(j) by n / (n - j), which gives a smaller number.
    Both hold for series that vary about a *constant* mean. A trend breaks that, and then neither is small enough.

    Args:
        x: values, shape (n,).
        y: values, shape (n,).
        lags: where the sum ends; None means n // 5, beyond which autocorrelations are mostly noise.
        method: "bayley-hammersley" or "pyper-peterman".

    Returns:
        Above 0 and at most n; n when a series is constant, or when the sum is below 0, as for series that alternate.

    Raises:
        ValueError: shapes disagree, values are none or not finite, `lags` is out of range, or the method is unknown.

    Examples:
        >>> climb = np.arange(20)
        >>> round(effective_sample_size(climb, climb), 1)
        4.9
        >>> effective_sample_size(climb, [1, -1] * 10)
        20.0

    References:
        Bayley and Hammersley (1946), doi:10.2307/2983560; Pyper and Peterman (1998), doi:10.1139/f98-104.
    """
    a, b = as_pair(x, y)
    n = len(a)
    if not n:
        raise ValueError("x and y must hold at least one value, received none")
    lags = n // 5 if lags is None else lags
    products = autocorrelation(a, lags) * autocorrelation(b, lags)
    share = 1 - np.arange(1, lags + 1) / n
    if not is_among(method, ("bayley-hammersley", "pyper-peterman")):
        raise ValueError(f"method must be 'bayley-hammersley' or 'pyper-peterman', received {shown(method)}")
    total = products @ share if method == "bayley-hammersley" else (products / share**2).sum()
    return float(n / (1 + 2 * max(total, 0.0)))


def correlation_test(r: float, pairs: float, level: float = 0.95) -> tuple[float, tuple[float, float]]:
    """P value and interval of a correlation from a number of independent pairs, by Fisher's z.

    artanh(r) is close to normal with standard deviation 1 / sqrt(pairs - 3).

    Args:
        r: a correlation, in [-1, 1].
        pairs: independent pairs it rests on, need not be whole; less one for every variable held fixed.
        level: confidence of the interval, in (0, 1).

    Returns:
        (two-sided p value of "no correlation", (low, high)). With three pairs or fewer, when nothing is known, 1.0 and
        (-1.0, 1.0). NaN throughout when r is NaN.

    Raises:
        ValueError: `r`, `pairs` or `level` is no number, or out of range.

    Examples:
        >>> p, (low, high) = correlation_test(0.5, 28)
        >>> round(p, 4), round(low, 2), round(high, 2)
        (0.006, 0.16, 0.74)

    References:
        Fisher (1921), "On the probable error of a coefficient of correlation deduced from a small sample".
    """
    level, unknown = require_level(level), isinstance(r, float | np.floating) and bool(np.isnan(r))
    if not unknown and (not is_number(r) or abs(r) > 1 + 1e-12):
        raise ValueError(f"r must lie between -1 and 1, received {shown(r)}")
    if not is_number(pairs) or pairs < 0:
        raise ValueError(f"pairs must be a finite number >= 0, received {shown(pairs)}")
    if unknown:
        return float("nan"), (float("nan"), float("nan"))
    if not pairs > 3:
        return 1.0, (-1.0, 1.0)
    with np.errstate(divide="ignore"):
        z = np.arctanh(np.clip(float(r), -1, 1))
    scale = np.sqrt(float(pairs) - 3)
    half = ndtri((1 + level) / 2) / scale
    return float(2 * ndtr(-abs(z) * scale)), (float(np.tanh(z - half)), float(np.tanh(z + half)))
