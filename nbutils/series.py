"""Statistics of one series over epochs: autocorrelation, trends, time-only baselines, and turning points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import ndtr, ndtri

from nbutils.stats import as_pair, correlation
from nbutils.support.checks import (
    LARGEST,
    as_numpy,
    as_series,
    as_table,
    is_among,
    is_number,
    is_whole,
    ordinary,
    require_level,
    shown,
)

NEGLIGIBLE = 1e-13  # share of the largest number of a series below which a difference is rounding
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
    both, columns = np.column_stack([a, b]), columns.reshape(len(a), -1)
    rounding = NEGLIGIBLE * np.abs(both).max(axis=0) * np.sqrt(len(a))
    both, columns = both - both.mean(axis=0), columns - columns.mean(axis=0)
    scale = np.abs(columns).max(axis=0)
    columns = columns / np.where(scale > 0, scale, 1)  # so that no trend's unit decides what counts as rounding
    left = both - columns @ np.linalg.lstsq(columns, both)[0]
    left -= left.mean(axis=0)
    if (np.linalg.norm(left, axis=0) <= np.maximum(1e-9 * np.linalg.norm(both, axis=0), rounding)).any():
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


CLEAR = 4.0  # a valley counts from so many times the noise on


@dataclass(frozen=True)
class Turn:
    """How a series falls and rises.

    Attributes:
        epoch: of the bottom of the deepest valley; NaN where the series does not turn.
        rising_from: first epoch after it with a smoothed value clear of the bottom; NaN where the series does not turn.
        fall: from the highest smoothed value before the bottom, at least 0.
        rise: to the highest smoothed value after the bottom, at least 0.
        end: last smoothed value minus the bottom: what is left of the rise.
        noise: standard deviation of the series about its own course, see :func:`series_noise`.
    """

    epoch: float
    rising_from: float
    fall: float
    rise: float
    end: float
    noise: float

    @property
    def found(self) -> bool:
        """Whether the series falls and then rises, both by more than four times its noise."""
        return bool(np.isfinite(self.epoch))


def smoothed(values: Any, window: int = 3) -> np.ndarray:
    """Means over neighbouring values; at both ends over those that are there. A monotone series stays monotone.

    Args:
        values: shape (n,).
        window: how many values a mean is over, odd; 1 changes nothing.

    Returns:
        Shape (n,).

    Raises:
        ValueError: values are no finite series, or `window` is not odd and at least 1.

    Examples:
        >>> smoothed([3, 0, 3, 6]).tolist()
        [1.5, 2.0, 3.0, 4.5]
    """
    series = as_series(values)
    if not is_whole(window) or not 1 <= window < 2**31 or window % 2 == 0:
        raise ValueError(f"window must be an odd number of values, received {shown(window)}")
    return pd.Series(series).rolling(int(window), center=True, min_periods=1).mean().to_numpy()


def series_noise(values: Any) -> float:
    r"""How far single values lie off the course of a series: a spread that trend and slow bends hardly touch.

    1.4826 times the median of :math:`|x_{t-1} - 2 x_t + x_{t+1}| / \sqrt 6`. For independent normal noise of standard
    deviation s on a straight line this estimates s.

    Args:
        values: shape (n,).

    Returns:
        At least 0, in the unit of the values; 0.0 for a straight line, and for fewer than three values.

    Raises:
        ValueError: values are no finite series.

    Examples:
        >>> series_noise([5, 4, 3, 2]), round(series_noise([0, 1, 0, 1, 0]), 2)
        (0.0, 1.21)

    References:
        Gasser, Sroka and Jennen-Steinmetz (1986), doi:10.1093/biomet/73.3.625, on noise from second differences.
    """
    series = as_series(values)
    if len(series) < 3:
        return 0.0
    return float(np.median(np.abs(np.diff(series, n=2))) / np.sqrt(6) / stats.norm.ppf(0.75))


def turning_point(values: Any, epochs: Any = None, *, window: int = 3) -> Turn:
    """Where a series stops falling and begins to rise: the bottom of its deepest valley.

    On means over `window` neighbours, the depth of a place is min(highest before, highest after) minus its own value;
    the turning point is the deepest place, the first of several. It counts only if it is deeper than four times the
    noise of the series. A steep fall that is followed by a slow rise moves it by at most (window - 1) / 2 places.

    This describes one series. It is no test: a series that wanders without any cause has valleys as well.

    Args:
        values: shape (n,), at least one.
        epochs: when they were taken, increasing, shape (n,); None counts from 1.
        window: how many neighbours a mean is over, odd; see :func:`smoothed`.

    Returns:
        A :class:`Turn`. A series that only falls, only rises, or rises and then falls has no valley and no turning
        point; `fall` and `rise` are then those of its lowest place.

    Raises:
        ValueError: values are no finite series or none, epochs do not fit them, or `window` is not odd.

    Examples:
        >>> turning_point([5, 4, 3, 2, 3, 4, 5]).epoch, turning_point([5, 4, 3, 2]).epoch
        (4.0, nan)
    """
    series, course = as_series(values), smoothed(values, window)
    time = np.arange(1, len(series) + 1) if epochs is None else as_series(epochs, "epochs")
    if not len(series):
        raise ValueError("values must hold at least one number, received none")
    if time.shape != series.shape or not (np.diff(time) > 0).all():
        raise ValueError(f"epochs must increase, one per value, received shape {time.shape} for {len(series)} values")
    fall = np.maximum.accumulate(course) - course
    rise = np.maximum.accumulate(course[::-1])[::-1] - course
    depth, noise = np.minimum(fall, rise), series_noise(series)
    least = max(CLEAR * noise, NEGLIGIBLE * float(np.abs(series).max()))
    found = bool(depth.max() > least)
    low = int(depth.argmax() if found else course.argmin())
    sizes = (float(fall[low]), float(rise[low]), float(course[-1] - course[low]), noise)
    if not found:
        return Turn(float("nan"), float("nan"), *sizes)
    clear = np.flatnonzero(course[low:] > course[low] + least)[0]
    return Turn(float(time[low]), float(time[low + clear]), *sizes)


def left_out_rise(series: Any, window: int = 3) -> np.ndarray:
    """How far each series ends above where the *others* are lowest.

    A series is, by definition, nowhere below its own minimum; so a rise from there to the end is no evidence of one.
    Here the mean of the other series says where to look, and the series that was left out says what it does.

    Args:
        series: one row per run, shape (runs, epochs), at least one epoch.
        window: see :func:`smoothed`.

    Returns:
        Last smoothed value minus the smoothed value at the others' lowest place, shape (runs,); about 0 on average for
        series without a common course, and 0.0 for those whose others are lowest at the end. NaN for a single run.

    Raises:
        ValueError: `series` is not a finite matrix with a column.

    Examples:
        >>> left_out_rise([[2, 1, 2], [4, 3, 5], [3, 1, 4]], window=1).tolist()
        [1.0, 2.0, 3.0]
    """
    matrix = as_table(series, "series", "(runs, epochs)")
    if not matrix.shape[1]:
        raise ValueError(f"series must be finite, of shape (runs, epochs), received shape {matrix.shape}")
    if len(matrix) < 2:
        smoothed(np.zeros(matrix.shape[1]), window)  # refuses a bad window
        return np.full(len(matrix), np.nan)
    courses = np.array([smoothed(row, window) for row in matrix])
    others = (courses.sum(axis=0) - courses) / (len(courses) - 1)
    return courses[:, -1] - courses[np.arange(len(courses)), others.argmin(axis=1)]


def when_reached(levels: Any, values: Any, targets: Any) -> np.ndarray:
    """What a series was when another one first reached given levels; in between, interpolated linearly.

    Args:
        levels: what climbs, such as training accuracy, shape (n,); only values above all earlier ones matter.
        values: what is asked for, shape (n,).
        targets: levels, any shape.

    Returns:
        Values, with the shape of `targets`; NaN for a level below the first or above the highest.

    Raises:
        ValueError: `levels` and `values` are no finite series of one length, or empty, or a target is NaN.

    Examples:
        >>> when_reached([1, 3, 2, 5], [10.0, 20.0, 90.0, 40.0], [2, 4, 6]).tolist()
        [15.0, 30.0, nan]
    """
    climb, taken, wanted = as_series(levels, "levels"), as_series(values), as_numpy(targets, "targets").astype(float)
    if climb.shape != taken.shape or not len(climb):
        raise ValueError(f"levels and values must be as many, received shapes {climb.shape} and {taken.shape}")
    if np.isnan(wanted).any():
        raise ValueError("targets must be levels, received NaN")
    record = np.concatenate([[True], climb[1:] > np.maximum.accumulate(climb)[:-1]])
    return np.interp(wanted, climb[record], taken[record], left=np.nan, right=np.nan)
