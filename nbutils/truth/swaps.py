"""Graded truth: how far each neuron follows one factor of a picture, and how far the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.support.checks import as_activations, require_share

__all__ = ["NEITHER", "dependence", "sides", "swap_effect"]

NEITHER = -1
ONE_SIDED = 0.8  # share of both effects from which on a neuron counts as one-sided


def swap_effect(activations: Any, swapped: Any) -> np.ndarray:
    """Mean squared change of each neuron's activation when something in the pictures is swapped.

    Args:
        activations: shape (pictures, neurons), finite.
        swapped: of the same pictures with another factor, shape (draws, pictures, neurons), finite.

    Returns:
        Mean over draws and pictures, shape (neurons,), in the square of the unit of activations.

    Raises:
        ValueError: shapes disagree.

    Examples:
        >>> swap_effect([[1.0, 0.0], [3.0, 0.0]], [[[2.0, 0.0], [5.0, 0.0]]]).tolist()
        [2.5, 0.0]
    """
    before, after = np.asarray(as_activations(activations), float), np.asarray(swapped, float)
    if after.ndim != 3 or after.shape[1:] != before.shape:
        raise ValueError(
            f"swapped must have shape (draws, {before.shape[0]}, {before.shape[1]}), received {after.shape}"
        )
    return ((after - before) ** 2).mean(axis=(0, 1))


def dependence(first: Any, second: Any) -> np.ndarray:
    """Share of the first factor in what swapping either one changes: 1 for the first alone, 0 for the second alone.

    Args:
        first: effect of swapping the first factor on each neuron, shape (neurons,), at least 0.
        second: likewise.

    Returns:
        first / (first + second), shape (neurons,); NaN for a neuron that neither changes.

    Raises:
        ValueError: shapes disagree, or an effect is negative or not finite.

    Examples:
        >>> dependence([3.0, 0.0, 0.0], [1.0, 2.0, 0.0]).tolist()
        [0.75, 0.0, nan]
    """
    one, two = np.asarray(first, float), np.asarray(second, float)
    if one.shape != two.shape or one.ndim != 1:
        raise ValueError(f"first and second must be one number per neuron, received {one.shape} and {two.shape}")
    for name, values in (("first", one), ("second", two)):
        if values.size and not 0 <= values.min() <= values.max() < np.inf:
            raise ValueError(f"{name} must be finite numbers >= 0, received others")
    total = one + two
    return np.divide(one, total, out=np.full(one.shape, np.nan), where=total > 0)


def sides(shares: Any, least: float = ONE_SIDED) -> np.ndarray:
    """The factor that a neuron follows nearly alone, where there is one.

    Args:
        shares: dependence of each neuron, shape (neurons,), in [0, 1] or NaN.
        least: share of both effects above which a neuron counts as one-sided, above 0.5.

    Returns:
        0 for the first factor, 1 for the second, -1 for both or neither, shape (neurons,).

    Raises:
        ValueError: `least` is at most 0.5 or above 1.

    Examples:
        >>> sides([0.9, 0.1, 0.5, float("nan")]).tolist()
        [0, 1, -1, -1]
    """
    limit, values = require_share(least, "least"), np.asarray(shares, float)
    if limit <= 0.5:
        raise ValueError(f"least must be above 0.5, received {limit:g}")
    return np.where(values > limit, 0, np.where(values < 1 - limit, 1, NEITHER))
