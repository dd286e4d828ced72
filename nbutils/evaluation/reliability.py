"""Whether a measure can be measured: does it tell networks apart, on one half of the probe as on the other?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nbutils.stats import LEAST_SPREAD
from nbutils.support.arguments import checked
from nbutils.support.checks import as_series, as_table, is_number, ordinary, require_share, shown


@checked
@dataclass(frozen=True)
class Reliability:
    """How well a measure tells networks apart.

    Attributes:
        half: intraclass correlation of two half probes, over networks.
        whole: the same stepped up to the whole probe, in [0, 1].
        spread: range over networks as a share of what the measure could span at that probe size; NaN where that is not
            known.
        reason: why the measure is not measurable, in words; empty where it is.

    Examples:
        >>> Reliability(0.95, 0.97, 0.4, "").measurable
        True
    """

    half: float
    whole: float
    spread: float
    reason: str

    @property
    def measurable(self) -> bool:
        """Whether the measure may be judged at all."""
        return not self.reason


def intraclass_correlation(ratings: Any) -> float:
    """Share of the variance of single values that lies between networks: ICC(1), from a one-way analysis of variance.

    (MS_between - MS_within) / (MS_between + (k - 1) MS_within), with k values per network. With values
    x_ij = network_i + error_ij it estimates var(network) / (var(network) + var(error)). What one half probe has more
    than the other counts as error, so this is the strictest of the usual forms.

    Args:
        ratings: shape (networks, k), such as one column per half probe; at least 2 of each.

    Returns:
        At most 1 and at least -1 / (k - 1); 0.0 when all values are equal and nothing tells networks apart.

    Raises:
        ValueError: `ratings` are not finite, or there are fewer than 2 networks or columns.

    Examples:
        >>> intraclass_correlation([[1, 1], [2, 2], [3, 3]]), intraclass_correlation([[1, 3], [3, 1]])
        (1.0, -1.0)
        >>> round(intraclass_correlation([[1, 2], [3, 4], [5, 6]]), 3)  # MS 8 between, 1/2 within: 7.5 / 8.5
        0.882

    References:
        Shrout and Fleiss (1979), doi:10.1037/0033-2909.86.2.420.
    """
    table = as_table(ratings, "ratings", "(networks, values)")
    networks, k = table.shape
    if min(networks, k) < 2:
        raise ValueError(f"ratings must be of at least 2 networks and 2 values each, received shape {table.shape}")
    if np.ptp(table) < LEAST_SPREAD:
        return 0.0
    x = ordinary(table)
    x = ordinary((x - x[0, 0]).astype(float))  # far from 0, squares would hide what differs
    means = x.mean(axis=1)
    between = k * ((means - means.mean()) ** 2).sum() / (networks - 1)
    within = ((x - means[:, None]) ** 2).sum() / (networks * (k - 1))
    total = between + (k - 1) * within
    return float((between - within) / total) if total > 0 else 0.0


def spearman_brown(reliability: float, times: float = 2.0) -> float:
    """Reliability of a longer measurement, from that of a shorter one.

    times r / (1 + (times - 1) r).

    Args:
        reliability: r, in [0, 1].
        times: how many times as long, above 0; 2 goes from half a probe to the whole.

    Returns:
        In [0, 1].

    Raises:
        ValueError: an argument is out of range.

    Examples:
        >>> round(spearman_brown(0.5), 3), round(spearman_brown(2 / 3), 3)  # 2/3 and 4/5
        (0.667, 0.8)

    References:
        Spearman (1910), doi:10.1111/j.2044-8295.1910.tb00206.x; Brown (1910), doi:10.1111/j.2044-8295.1910.tb00207.x.
    """
    if not is_number(reliability) or not 0 <= reliability <= 1:
        raise ValueError(f"reliability must lie in [0, 1], received {shown(reliability)}")
    if not is_number(times) or not LEAST_SPREAD <= times <= 1 / LEAST_SPREAD:
        raise ValueError(f"times must be a number above 0, received {shown(times)}")
    r, longer = float(reliability), float(times)
    return longer * r / (1 - r + longer * r)


def half_probe_reliability(
    first: Any, second: Any, *, span: float | None = None, least: float = 0.8, share: float = 0.05
) -> Reliability:
    """Can a measure be measured here? Its values on two disjoint half probes, over the networks of a comparison.

    The :func:`intraclass_correlation` of the two halves, by :func:`spearman_brown` that of the whole probe. A measure
    is *not measurable* where the latter is below `least`, or where its range over networks (of the mean of both halves)
    is under `share` of what it could span: words about its association with anything would then be words about noise.

    Args:
        first: values on one half, shape (networks,), at least 2.
        second: values on the other half, shape (networks,).
        span: largest minus smallest value that the measure could take at that probe size, above 0; None where it is not
            bounded, and the range is not asked for.
        least: smallest reliability of the whole probe, in (0, 1].
        share: smallest share of the span, in (0, 1].

    Returns:
        A :class:`Reliability`.

    Raises:
        ValueError: shapes disagree, values are not finite, fewer than 2 networks, or an option is out of range.

    Examples:
        >>> half_probe_reliability([0.1, 0.5, 0.9], [0.2, 0.5, 0.8], span=1).measurable
        True
        >>> half_probe_reliability([11.60, 11.64, 11.68], [11.61, 11.65, 11.69], span=11.69).reason
        'its range is 0.7% of what it could span'

    References:
        Spearman (1910), doi:10.1111/j.2044-8295.1910.tb00206.x; Shrout and Fleiss (1979),
        doi:10.1037/0033-2909.86.2.420.
    """
    a, b = as_series(first, "first"), as_series(second, "second")
    if a.shape != b.shape or len(a) < 2:
        raise ValueError(f"first and second must be one per network, of 2 or more, received {a.shape} and {b.shape}")
    if span is not None and (not is_number(span) or span < LEAST_SPREAD):
        raise ValueError(f"span must be a number above 0, received {shown(span)}")
    least, share = require_share(least, "least"), require_share(share, "share")
    half = intraclass_correlation(np.column_stack([a, b]))
    whole = spearman_brown(min(1.0, max(0.0, half)))
    spread = float("nan") if span is None else min(float(np.ptp((a + b) / 2)) / float(span), 1.0)
    reason = f"its reliability is {whole:.2f}" if whole < least else ""
    if spread < share:
        reason = f"its range is {spread:.1%} of what it could span"
    return Reliability(half, whole, spread, reason)
