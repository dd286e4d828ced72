"""Does a measure rank networks as their performance does, over all of them and along every axis by itself?

An *axis* is what networks were trained with: learning rate, width, size of the training set. A measure that merely
knows one axis can rank all networks well; what is asked here is whether it does so when other things vary.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from nbutils.stats import correlation
from nbutils.support.checks import as_count, as_groups, as_series, is_number, is_whole, require_level, shown

PAIR_COLUMNS = ("axis", "lower", "upper", "error", "pairs")


def kendall(measure: Any, performance: Any) -> float:
    """Kendall's tau-b: pairs of networks that both rank alike minus those they rank differently, as a share.

    (C - D) / sqrt((C + D + T_m) (C + D + T_p)), with C concordant and D discordant pairs and T pairs tied in one only.

    Args:
        measure: one value per network, shape (networks,).
        performance: shape (networks,).

    Returns:
        In [-1, 1]; 0.0 when one of them is constant; NaN for fewer than two networks.

    Raises:
        ValueError: shapes disagree, or values are not finite.

    Examples:
        >>> round(kendall([1, 2, 3, 4], [1, 3, 2, 4]), 3)  # 5 pairs of 6 agree
        0.667

    References:
        Kendall (1938), doi:10.1093/biomet/30.1-2.81; for networks Jiang et al. (2020), arXiv:1912.02178.
    """
    m, p = _outcomes(measure, performance)
    if len(m) < 2:
        return float("nan")
    if np.ptp(m) == 0 or np.ptp(p) == 0:
        return 0.0
    return max(-1.0, min(1.0, float(stats.kendalltau(m, p).statistic)))


def correlation_within(measure: Any, performance: Any, setting: Any) -> float:
    """Spearman's rho among networks that share a setting, mean over the setting's values.

    Args:
        measure: one value per network, shape (networks,).
        performance: shape (networks,).
        setting: shape (networks,), numbers or text, such as the number of training images.

    Returns:
        In [-1, 1]; NaN where the measure is constant, or there is one network, at any value of the setting: nothing can
        be said of a measure that is the setting itself.

    Raises:
        ValueError: shapes disagree, or values are not finite.

    Examples:
        >>> images, skill = [1, 1, 1, 2, 2, 2], [1, 2, 3, 1, 2, 3]
        >>> round(correlation_within(skill, [11, 12, 13, 21, 22, 23], images), 3)
        1.0
        >>> correlation_within(images, skill, images)
        nan
    """
    m, p = _outcomes(measure, performance)
    groups = as_groups(setting, "setting")
    if groups.shape != m.shape:
        raise ValueError(f"setting must have one value per network, received {groups.shape} and {len(m)}")
    same = [groups == value for value in np.unique(groups)]
    if any(rows.sum() < 2 or np.ptp(m[rows]) == 0 for rows in same):
        return float("nan")
    return float(np.mean([correlation(m[rows], p[rows]) for rows in same])) if same else float("nan")


def granulated_kendall(measure: Any, performance: Any, axes: Any, *, slack: int = 0) -> pd.DataFrame:
    """Kendall's tau along each axis by itself: between networks that differ in that axis and agree in all others.

    psi_axis = mean over such pairs of sign(m_1 - m_2) sign(p_1 - p_2), and Psi = mean of psi over axes. On a full grid
    this is the mean of tau over the settings of the other axes. A measure that follows one axis only has psi = 1 there
    and 0 on the others, however high its tau over all networks is. Pairs of equal performance are left out: there is
    nothing to rank; equal values of the measure count as 0.

    Args:
        measure: one value per network, shape (networks,).
        performance: shape (networks,).
        axes: name of each axis -> its value per network, shape (networks,), numbers or text; a mapping or a table.
            Only equal values agree: round, or cut into classes, what was drawn from a range.
        slack: in how many other axes the two may differ as well. 0 is the published definition; a random search has few
            pairs that agree in all others, and each one allowed lets more of the other axes in.

    Returns:
        One row per axis with `axis`, `kendall` in [-1, 1] (psi; NaN without a pair) and `pairs`. Psi is the mean of the
        column `kendall`.

    Raises:
        TypeError: `axes` is neither a mapping nor a table.
        ValueError: shapes disagree, values are not finite, there is no axis, or `slack` is out of range.

    Examples:
        >>> width, rate = [1, 1, 2, 2], [1, 2, 1, 2]
        >>> found = granulated_kendall(width, [1, 2, 4, 5], {"width": width, "rate": rate})  # the measure is the width
        >>> found["kendall"].tolist(), float(found["kendall"].mean())
        ([1.0, 0.0], 0.5)

    References:
        Jiang et al. (2020), "Fantastic generalization measures and where to find them", arXiv:1912.02178.
    """
    m, p = _outcomes(measure, performance)
    settings = as_axes(axes, len(m))
    one, two, differ = _pairs(settings, p, slack, noise=0.0)
    agree = np.sign(m[one] - m[two]) * np.sign(p[one] - p[two])
    rows = []
    for number, name in enumerate(settings):
        along = _along(differ, number, slack)
        rows.append((name, float(agree[along].mean()) if along.any() else float("nan"), int(along.sum())))
    return pd.DataFrame(rows, columns=["axis", "kendall", "pairs"])


def conditional_information(measure: Any, performance: Any, axes: Any, *, given: int = 2) -> float:
    """How much the order of a measure tells of the order of performance that the axes do not tell already.

    With V_m and V_p the signs of the differences over pairs of networks, and U_S the values of the axes S in both,

        min over S of I(V_m; V_p | U_S) / H(V_p | U_S),  S with at most `given` axes, the empty set among them,

    where p(V_m, V_p, U_S) are shares of ordered pairs. The sign of an association does not matter. Shares over few
    pairs overestimate information: sets S that leave few pairs per setting hardly ever are the least.

    Args:
        measure: one value per network, shape (networks,).
        performance: shape (networks,).
        axes: as in :func:`granulated_kendall`.
        given: how many axes are held fixed together at most, from 0; 2 in the source.

    Returns:
        In [0, 1], 0 where the measure tells nothing beyond some two axes, 1 where it determines the order; NaN where
        all networks perform alike. A set S that determines the order of performance by itself leaves nothing to tell,
        and is left out. Pairs of equal performance are left out; equal values of the measure are a sign of their own.

    Raises:
        TypeError: `axes` is neither a mapping nor a table.
        ValueError: shapes disagree, values are not finite, there is no axis, or `given` is out of range.

    Examples:
        >>> width, rate = [1, 1, 2, 2], [1, 2, 1, 2]
        >>> performance = [1, 2, 4, 5]
        >>> conditional_information(performance, performance, {"width": width, "rate": rate})
        1.0
        >>> conditional_information(width, performance, {"width": width, "rate": rate})  # the measure is the width
        0.0

    References:
        Jiang et al. (2020), arXiv:1912.02178, section 2.2.
    """
    m, p = _outcomes(measure, performance)
    settings, most = as_axes(axes, len(m)), as_count(given, "given", least=0)
    one, two = (index.ravel() for index in np.indices((len(m), len(m))))
    differs = p[one] != p[two]
    one, two = one[differs], two[differs]
    signs = (np.sign(m[one] - m[two]) + 1).astype(int), (p[one] > p[two]).astype(int)
    codes, shares = list(settings.values()), []
    for size in range(min(most, len(codes)) + 1):
        for chosen in combinations(codes, size):
            level = _joint(chosen, len(m))
            shares.append(_information_share(*signs, level[one] * (level.max(initial=0) + 1) + level[two]))
    known = [share for share in shares if not math.isnan(share)]
    return min(known) if known else float("nan")


def sign_errors(
    measure: Any,
    performance: Any,
    axes: Any,
    *,
    noise: float = 0.0,
    direction: int = 1,
    slack: int = 0,
    least: int = 10,
) -> pd.DataFrame:
    """How often a measure gets the order of two networks wrong, wherever one axis changes from one value to another.

    error = mean over pairs of (1 - direction sign(m_1 - m_2) sign(p_1 - p_2)) / 2, in each environment: pairs of which
    one network has one value of an axis, the other another, and which agree in all other axes. A measure is robust if
    its error is small in the *worst* environment, not only on average. Pairs whose performance differs by no more than
    noise are left out: nobody knows their order.

    Args:
        measure: one value per network, shape (networks,).
        performance: shape (networks,).
        axes: as in :func:`granulated_kendall`.
        noise: largest difference of performance that may be chance, at least 0, such as :func:`accuracy_noise`.
        direction: predicted sign: 1 where more of the measure means better, -1 where it means worse.
        slack: as in :func:`granulated_kendall`.
        least: pairs that an environment needs to be counted, at least 1. The worst of many small ones is bad by chance.

    Returns:
        One row per environment, the worst first, with `axis`, `lower` and `upper` (its two values), `error` in [0, 1]
        and `pairs`. The worst-case sign error is the first error; a coin has 1/2. Without an environment, no row.

    Raises:
        TypeError: `axes` is neither a mapping nor a table.
        ValueError: shapes disagree, values are not finite, there is no axis, or an option is out of range.

    Examples:
        >>> width, rate = [1, 1, 2, 2], [1, 2, 1, 2]
        >>> sign_errors(width, [1, 2, 4, 5], {"width": width, "rate": rate}, least=1)
            axis  lower  upper  error  pairs
        0   rate      1      2    0.5      2
        1  width      1      2    0.0      2

    References:
        Dziugaite et al. (2020), "In search of robust measures of generalization", arXiv:2010.11924.
    """
    m, p = _outcomes(measure, performance)
    settings, least = as_axes(axes, len(m)), as_count(least, "least")
    if not is_number(noise) or noise < 0:
        raise ValueError(f"noise must be a number of at least 0, received {shown(noise)}")
    if not is_whole(direction) or direction not in (1, -1):
        raise ValueError(f"direction must be 1 or -1, received {shown(direction)}")
    one, two, differ = _pairs(settings, p, slack, float(noise))
    wrong = (1 - direction * np.sign(m[one] - m[two]) * np.sign(p[one] - p[two])) / 2
    rows = []
    for number, (name, codes) in enumerate(settings.items()):
        along = np.flatnonzero(_along(differ, number, slack))
        values = np.unique(as_groups(_column(axes, name), name))
        ends = np.sort([codes[one[along]], codes[two[along]]], axis=0)
        for low, high in np.unique(ends, axis=1).T:
            here = wrong[along[(ends[0] == low) & (ends[1] == high)]]
            if len(here) >= least:
                rows.append((name, values[low], values[high], float(here.mean()), len(here)))
    rows.sort(key=lambda row: -row[3])
    return pd.DataFrame(rows, columns=list(PAIR_COLUMNS))


def accuracy_noise(images: int, level: float = 0.5) -> float:
    """Difference of two accuracies above which the better network is known to be the better one, by Hoeffding's bound.

    Each accuracy lies within d / 2 of the true one with probability 1 - 2 exp(-2 n (d / 2)^2); both do with the square
    of it, which is `level` at

        d = 2 sqrt(ln(2 / (1 - sqrt(level))) / (2 n)).

    Args:
        images: n, test images that each accuracy is over, at least 1.
        level: probability that the order is right, in (0, 1); the source leaves out pairs below 0.5.

    Returns:
        A difference of accuracies, in units of accuracy; above 1 where no difference is large enough.

    Raises:
        ValueError: `images` or `level` is out of range.

    Examples:
        >>> round(accuracy_noise(10_000), 4)
        0.0196

    References:
        Hoeffding (1963), doi:10.1080/01621459.1963.10500830; Dziugaite et al. (2020), arXiv:2010.11924.
    """
    images, level = as_count(images, "images", most=2**53), require_level(level)
    return 2 * math.sqrt(math.log(2 / (1 - math.sqrt(level))) / (2 * images)) if math.sqrt(level) < 1 else math.inf


def as_axes(axes: Any, networks: int, name: str = "axes") -> dict[str, np.ndarray]:
    """Axes as whole numbers that tell their values apart, in the order of the values.

    Args:
        axes: name -> value per network, a mapping or a table.
        networks: how many there are.
        name: of the argument, for errors.

    Returns:
        Name -> shape (networks,), from 0.

    Raises:
        TypeError: neither a mapping nor a table.
        ValueError: no axis, names that are no text or stand twice, values that do not fit.

    Examples:
        >>> as_axes({"rate": [0.1, 0.01, 0.1]}, 3)["rate"].tolist()
        [1, 0, 1]
    """
    if not isinstance(axes, Mapping | pd.DataFrame):
        raise TypeError(f"{name} must be a mapping of names to values, or a table, received {type(axes).__name__}")
    names = list(axes)
    if not names or len(set(names)) < len(names) or not all(isinstance(one, str) for one in names):
        raise ValueError(f"{name} must have at least one axis, each with a name of its own, received {shown(names)}")
    found = {}
    for one in names:
        values = as_groups(_column(axes, one), f"{name} {shown(one)}")
        if values.shape != (networks,):
            raise ValueError(
                f"{name} must have one value per network, received {values.shape} for {shown(one)} and {networks}"
            )
        found[one] = np.unique(values, return_inverse=True)[1]
    return found


def _column(axes: Any, name: str) -> Any:
    return axes[name].to_numpy() if isinstance(axes, pd.DataFrame) else axes[name]


def _outcomes(measure: Any, performance: Any) -> tuple[np.ndarray, np.ndarray]:
    m, p = as_series(measure, "measure"), as_series(performance, "performance")
    if m.shape != p.shape:
        raise ValueError(f"measure and performance must be one per network, received {m.shape} and {p.shape}")
    return m, p


def _pairs(settings: dict[str, np.ndarray], p: np.ndarray, slack: int, noise: float) -> tuple[np.ndarray, ...]:
    """(first, second, differ): pairs of networks worth ranking, and whether they differ in each axis, (axes, pairs)."""
    as_count(slack, "slack", least=0)
    one, two = np.triu_indices(len(p), 1)
    told = np.abs(p[one] - p[two]) > noise
    one, two = one[told], two[told]
    return one, two, np.array([codes[one] != codes[two] for codes in settings.values()])


def _along(differ: np.ndarray, axis: int, slack: int) -> np.ndarray:
    """Pairs that differ in an axis and in at most `slack` others."""
    return differ[axis] & (differ.sum(axis=0) <= slack + 1)


def _joint(codes: tuple[np.ndarray, ...], networks: int) -> np.ndarray:
    """One whole number per network for its values of several axes together."""
    joint = np.zeros(networks, int)
    for one in codes:
        joint = np.unique(joint * (one.max(initial=0) + 1) + one, return_inverse=True)[1]
    return joint


def _information_share(sign_measure: np.ndarray, sign_performance: np.ndarray, setting: np.ndarray) -> float:
    """I(measure; performance | setting) / H(performance | setting); NaN where the setting leaves nothing open."""
    group = np.unique(setting, return_inverse=True)[1]
    counts = np.bincount(group * 6 + sign_measure * 2 + sign_performance, minlength=6 * (group.max(initial=-1) + 1))
    counts = counts.reshape(-1, 3, 2).astype(float)

    def left(cells: np.ndarray) -> float:
        """Entropy of the last axis given the others, times the number of pairs."""
        total = cells.sum(axis=-1, keepdims=True)
        return float(-(cells * np.log(np.where(cells > 0, cells / np.where(total > 0, total, 1), 1))).sum())

    open_ = left(counts.sum(axis=1))
    if open_ <= 1e-9:
        return float("nan")
    return max(0.0, min(1.0, 1 - left(counts) / open_))
