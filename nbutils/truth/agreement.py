"""How well a partition of neurons matches a graded truth: hard and graded agreement, each with what chance gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.support.checks import as_labels
from nbutils.truth.swaps import NEITHER

__all__ = ["explained_share", "graded_agreement", "side_agreement"]

FEW = 10  # one-sided neurons without which there is no agreement with sides


def explained_share(values: Any, groups: Any) -> np.ndarray:
    """Share of the variance of values that lies between groups (eta squared).

    Args:
        values: shape (neurons,), or (draws, neurons) for several at once.
        groups: group per neuron, shape (neurons,), integers.

    Returns:
        In [0, 1], a number for each draw; 0 where values are all equal.

    Examples:
        >>> explained_share([[0, 0, 1, 1], [0, 1, 0, 1]], [0, 0, 1, 1]).tolist()
        [1.0, 0.0]
    """
    array = np.asarray(values, float)
    index = np.unique(as_labels(groups, array.shape[-1], "groups"), return_inverse=True)[1].reshape(-1)
    size = np.bincount(index)
    centred = array - array.mean(axis=-1, keepdims=True)
    sums = centred @ (index[:, None] == np.arange(len(size))).astype(float)
    total = (centred**2).sum(axis=-1)
    between = (sums**2 / size).sum(axis=-1)
    return np.divide(between, total, out=np.zeros_like(total), where=total > 1e-12)


def graded_agreement(shares: Any, groups: Any, layers: Any) -> float:
    """How much of the dependence of neurons on a factor a partition explains, beyond chance.

    The mean of each layer is taken off, so that a partition into layers explains nothing. With eta^2 the share of the
    variance that is left between groups, and E its mean over all permutations of neurons within their layers, which
    has a closed form: (eta^2 - E) / (1 - E). Groups may be finer than the truth.

    Args:
        shares: dependence of each neuron, shape (neurons,); NaN leaves it out.
        groups: community per neuron, shape (neurons,); -1 leaves it out.
        layers: layer per neuron, shape (neurons,), integers.

    Returns:
        1 for groups within which all neurons depend alike, 0 on average for groups at random. NaN where fewer than ten
        neurons are placed; 0 where chance explains everything.

    Examples:
        >>> shares, layers = np.repeat([0.1, 0.9], 20), np.ones(40, dtype=int)
        >>> round(graded_agreement(shares, np.repeat([0, 1], 20), layers), 9)
        1.0
        >>> round(graded_agreement(shares, np.tile([0, 1], 20), layers), 3)  # eta^2 is 0, E is 1 / 39
        -0.026

    References:
        Kelley (1935), doi:10.1073/pnas.21.9.554.
    """
    values, labels = np.asarray(shares, float), as_labels(groups, len(shares), "groups")
    layer = as_labels(layers, len(values), "layers")
    kept = np.isfinite(values) & (labels >= 0)
    if kept.sum() < FEW:
        return float("nan")
    values, layer = values[kept].copy(), layer[kept]
    index = np.unique(labels[kept], return_inverse=True)[1].reshape(-1)
    expected, size = 0.0, np.bincount(index)
    for name in np.unique(layer):
        own = layer == name
        values[own] -= values[own].mean()
        inside = np.bincount(index[own], minlength=len(size))
        # Sampling without replacement: variance of a group's sum, around 0.
        spread = inside * (own.sum() - inside) / max(own.sum() - 1, 1) * values[own].var()
        expected += float((spread / size).sum())
    total = float((values**2).sum())
    chance = expected / total if total > 1e-12 else 1.0
    return float((explained_share(values, index) - chance) / (1 - chance)) if chance < 1 - 1e-9 else 0.0


def side_agreement(side: Any, groups: Any) -> float:
    """Adjusted mutual information between communities and sides, among one-sided neurons that are in a community.

    Args:
        side: see :func:`nbutils.truth.swaps.sides`.
        groups: community per neuron, shape (neurons,); -1 for none.

    Returns:
        1 where communities are the sides, about 0 for chance; finer groups cost. NaN where fewer than ten neurons are
        left, or all are of one side.

    Examples:
        >>> side_agreement(np.repeat([0, 1], 10), np.repeat([5, 3], 10))
        1.0

    References:
        Vinh, Epps and Bailey (2010), "Information theoretic measures for clusterings comparison".
    """
    from sklearn.metrics import adjusted_mutual_info_score

    truth, labels = as_labels(side), as_labels(groups, len(side), "groups")
    kept = (truth != NEITHER) & (labels >= 0)
    if kept.sum() < FEW or len(np.unique(truth[kept])) < 2:
        return float("nan")
    return float(adjusted_mutual_info_score(truth[kept], labels[kept]))
