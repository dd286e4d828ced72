"""How often a statistic finds what is there, and what is not: ROC curves, areas, power and false alarms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats

from nbutils.support.checks import as_count, as_rng, as_series, require_level

__all__ = ["Area", "Share", "area_under_curve", "exceeding", "roc_points", "share_interval"]

MOST_DRAWS = 100_000


@dataclass(frozen=True)
class Share:
    """How many networks of how many, with an exact interval.

    Attributes:
        count: networks of which something holds.
        networks: all of them.
        low: lower end of the interval of the share.
        high: its upper end.
    """

    count: int
    networks: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share, NaN of no networks."""
        return self.count / self.networks if self.networks else float("nan")


def share_interval(count: int, networks: int, level: float = 0.95) -> Share:
    """Clopper and Pearson's interval of a share: it covers at least as often as it says, however few networks.

    Args:
        count: networks of which something holds.
        networks: all of them.
        level: confidence, in (0, 1).

    Raises:
        ValueError: there are more than all, or a number is out of range.

    Examples:
        >>> found = share_interval(0, 20)
        >>> found.low, round(found.high, 3)  # 1 - 0.025 ** (1 / 20)
        (0.0, 0.168)

    References:
        Clopper and Pearson (1934), doi:10.1093/biomet/26.4.404.
    """
    networks, level = as_count(networks, "networks", 0), require_level(level)
    count, tail = as_count(count, "count", 0), (1 - level) / 2
    if count > networks:
        raise ValueError(f"count must be at most networks, {networks}, received {count}")
    low = float(stats.beta.ppf(tail, count, networks - count + 1)) if count else 0.0
    high = float(stats.beta.ppf(1 - tail, count + 1, networks - count)) if count < networks else 1.0
    return Share(count, networks, low, high)


def exceeding(scores: Any, threshold: float, level: float = 0.95) -> Share:
    """Share of networks whose score lies above a threshold: power where something is there, false alarms where not.

    Args:
        scores: one per network, shape (networks,); NaN counts as no alarm.
        threshold: that a score must exceed.
        level: confidence of the interval.

    Examples:
        >>> exceeding([0.1, 0.3, 0.2], 0.15).value
        0.6666666666666666
    """
    values = np.asarray(scores, float)
    return share_interval(int((values > threshold).sum()), len(values), level)


def roc_points(positive: Any, negative: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ROC curve: false alarms and power at every threshold that separates two scores.

    Args:
        positive: scores of networks in which something is, shape (networks,), finite.
        negative: of networks in which it is not.

    Returns:
        (false alarms, power, thresholds), from (0, 0) at an infinite threshold to (1, 1); an alarm is a score of at
        least the threshold.

    Raises:
        ValueError: there are no scores, or not all are finite.

    Examples:
        >>> false, power, at = roc_points([0.9, 0.4], [0.1, 0.6])
        >>> false.tolist(), power.tolist()
        ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    there, absent = _scores(positive, "positive"), _scores(negative, "negative")
    at = np.r_[np.inf, np.unique(np.r_[there, absent])[::-1]]
    return (absent[:, None] >= at).mean(axis=0), (there[:, None] >= at).mean(axis=0), at


@dataclass(frozen=True)
class Area:
    """Area under a ROC curve with an interval.

    Attributes:
        value: the area; 0.5 says nothing, 1 tells all apart, 0 tells all apart the wrong way round.
        low: lower end of the interval.
        high: its upper end.
    """

    value: float
    low: float
    high: float


def area_under_curve(
    positive: Any, negative: Any, rng: np.random.Generator | int = 0, draws: int = 999, level: float = 0.95
) -> Area:
    """Area under the ROC curve: how often a network with something scores above one without, ties as halves.

    The interval resamples networks of both kinds. Where all are told apart no resample has another area: then its inner
    end is the area at which no inversion among as many independent pairs of networks as the smaller kind has, n, would
    still be seen with probability (1 - level) / 2, that is, ((1 - level) / 2) ** (1 / n).

    Args:
        positive: scores of networks in which something is, shape (networks,), finite.
        negative: of networks in which it is not.
        rng: source of randomness: a generator, or a seed.
        draws: resamples.
        level: confidence of the interval.

    Examples:
        >>> area_under_curve([0.9, 0.4], [0.1, 0.6]).value
        0.75
        >>> round(area_under_curve(range(20, 40), range(20)).low, 3)
        0.832

    References:
        Hanley and McNeil (1982), doi:10.1148/radiology.143.1.7063747.
    """
    there, absent = _scores(positive, "positive"), _scores(negative, "negative")
    source, tail = as_rng(rng), (1 - require_level(level)) / 2
    wins = (there[:, None] > absent) + 0.5 * (there[:, None] == absent)
    draws, value = as_count(draws, "draws", most=MOST_DRAWS), float(wins.mean())
    limit = tail ** (1 / min(len(there), len(absent)))
    if value in (0.0, 1.0):
        return Area(value, limit if value else 0.0, 1.0 if value else 1 - limit)
    sizes = len(there), len(absent)
    shares = _times_drawn(source, sizes, draws) if source is rng else _of_seed(int(rng), sizes, draws)
    drawn = ((shares[0] @ wins) * shares[1]).sum(axis=1)
    return Area(value, *(float(x) for x in np.quantile(drawn, [tail, 1 - tail])))


def _times_drawn(rng: np.random.Generator | int, sizes: tuple[int, int], draws: int) -> tuple[np.ndarray, ...]:
    """How often each network of either kind is in a resample, as a share of its kind."""
    source = as_rng(rng)
    return tuple(source.multinomial(n, np.full(n, 1 / n), size=draws) / n for n in sizes)


_of_seed = lru_cache(maxsize=8)(_times_drawn)  # a table of areas asks for the same resamples again and again


def _scores(values: Any, name: str) -> np.ndarray:
    array = as_series(values, name)
    if not len(array):
        raise ValueError(f"{name} must hold at least one score, received none")
    return array
