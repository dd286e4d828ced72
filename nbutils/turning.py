"""Where a series stops falling and begins to rise, and whether it does so by more than its own noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from nbutils.arrays import as_numpy, as_series, as_table, is_whole, shown

__all__ = ["Turn", "left_out_rise", "series_noise", "smoothed", "turning_point", "when_reached"]

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
    least = max(CLEAR * noise, 1e-9 * float(np.abs(series).max()))
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
