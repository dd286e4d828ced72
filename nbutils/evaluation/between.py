"""How much of a value's variation lies between groups, and how much of that strata explain."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nbutils.support.checks import as_count, as_labels, as_numpy, as_rng, as_series

__all__ = ["Between", "between_beyond", "between_share", "quarters"]

MOST_DRAWS = 1_000_000
NEGLIGIBLE = 1e-26  # variance, relative to the largest square, below which values differ by rounding alone


class Between(NamedTuple):
    """Share of variance between groups.

    Attributes:
        share: eta^2, in [0, 1].
        chance: its mean with groups permuted within strata.
    """

    share: float
    chance: float

    @property
    def excess(self) -> float:
        """What the strata do not explain."""
        return self.share - self.chance


def between_share(values: Any, groups: Any) -> float:
    """Share of the variance of a value that lies between groups.

    eta^2 = sum_g n_g (mean_g - mean)^2 / sum_i (y_i - mean)^2.

    Args:
        values: one per member, shape (members,).
        groups: group of each, integers, shape (members,).

    Returns:
        In [0, 1]; NaN where values do not vary.

    Raises:
        ValueError: shapes disagree, values are not finite or there are none, or a group is no integer.

    Examples:
        >>> between_share([1.0, 1.0, 3.0, 3.0], [0, 0, 1, 1]), between_share([1.0, 3.0, 1.0, 3.0], [0, 0, 1, 1])
        (1.0, 0.0)

    References:
        Pearson (1911), "On a correction to be made to the correlation ratio eta", doi:10.2307/2331498.
    """
    y, index = _as_members(values, groups)
    return _share(y, index)


def quarters(values: Any, within: Any) -> np.ndarray:
    """Quarter of each value among those of its own kind: 0 to 3, by the quartiles.

    Args:
        values: one per member, shape (members,).
        within: kind of each, such as the layer of a neuron, integers, shape (members,).

    Returns:
        Number of quartiles that lie at or below each value, shape (members,); values that are equal are in one quarter.

    Raises:
        ValueError: shapes disagree, values are not finite, or a kind is no integer.

    Examples:
        >>> quarters([1.0, 2.0, 3.0, 4.0, 50.0, 60.0, 70.0, 80.0], [1, 1, 1, 1, 2, 2, 2, 2]).tolist()
        [0, 1, 2, 3, 0, 1, 2, 3]
    """
    y, kinds = _as_members(values, within, "within")
    found = np.zeros(len(y), np.int64)
    for kind in np.unique(kinds):
        own = kinds == kind
        found[own] = np.searchsorted(np.quantile(y[own], [0.25, 0.5, 0.75]), y[own], side="right")
    return found


def between_beyond(values: Any, groups: Any, strata: Any, rng: np.random.Generator | int, draws: int = 200) -> Between:
    """Do groups differ in a value beyond what they would with members of one stratum in each other's place?

    :func:`between_share`, and its mean over permutations of groups among the members of each stratum. Groups that
    differ only because one has more members of a stratum than another have an excess of about 0.

    Args:
        values: one per member, shape (members,).
        groups: group of each, integers, shape (members,).
        strata: stratum of each, integers, shape (members,); or one column for each of several, shape (members,
            columns), whose cells are the strata.
        rng: source of randomness, a generator or a seed.
        draws: permutations, from 1 to a million.

    Returns:
        A :class:`Between`, both NaN where values do not vary.

    Raises:
        ValueError: shapes disagree, values are not finite, a group or stratum is no integer, or `draws` is out of
            range.

    Examples:
        >>> found = between_beyond([1.0] * 50 + [3.0] * 50, [0] * 50 + [1] * 50, [0] * 100, rng=0)
        >>> found.share, found.chance < 0.05
        (1.0, True)
        >>> between_beyond([1.0, 1.0, 3.0, 3.0], [0, 0, 1, 1], [0, 0, 1, 1], rng=0).excess  # all of it is the strata's
        0.0
    """
    (y, index), source = _as_members(values, groups), as_rng(rng)
    cells, draws = _as_cells(strata, len(y)), as_count(draws, "draws", most=MOST_DRAWS)
    places = np.argsort(cells, kind="stable")
    shares = np.empty(draws)
    for draw in range(draws):
        mixed = np.empty_like(index)
        mixed[places] = index[np.lexsort((source.random(len(y)), cells))]
        shares[draw] = _share(y, mixed)
    return Between(_share(y, index), float(shares.mean()))


def _as_members(values: Any, groups: Any, name: str = "groups") -> tuple[np.ndarray, np.ndarray]:
    y = as_series(values)
    if not len(y):
        raise ValueError("values must be of at least one member, received none")
    return y, np.unique(as_labels(groups, len(y), name), return_inverse=True)[1].reshape(-1)


def _as_cells(strata: Any, members: int) -> np.ndarray:
    """One number for each combination of columns."""
    columns = as_numpy(strata, "strata")
    if columns.ndim not in (1, 2) or len(columns) != members or 0 in columns.shape:
        raise ValueError(f"strata must be one or several per member, received shape {columns.shape} for {members}")
    columns = columns.T if columns.ndim == 2 else [columns]
    table = np.stack([as_labels(column, members, "strata") for column in columns])
    return np.unique(table, axis=1, return_inverse=True)[1].reshape(-1)


def _share(y: np.ndarray, index: np.ndarray) -> float:
    left = y - y.mean()
    total = float(left @ left)
    if total <= NEGLIGIBLE * len(y) * float(np.abs(y).max()) ** 2:
        return float("nan")
    counts = np.bincount(index)
    return min(1.0, float((np.bincount(index, left) ** 2 / counts).sum() / total))
