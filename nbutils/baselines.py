"""Simple measures of the same firing that every community measure must beat to be called useful."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.arrays import as_activations, as_fired, ordinary

__all__ = ["class_selectivity", "dead_share"]


def class_selectivity(means: Any) -> np.ndarray:
    """How far a neuron prefers one class over the rest.

    s_i = (mu_max - mu_rest) / (mu_max + mu_rest), with mu_max the largest class-mean activation of neuron i and mu_rest
    the mean of the others: 0 for equal classes, 1 for a neuron active in one class only.

    Args:
        means: class-mean activations, shape (classes, neurons), non-negative; see
            :func:`nbutils.activations.class_means`.

    Returns:
        Selectivity per neuron, shape (neurons,), in [0, 1]; 0 for a dead neuron, and for a single class.

    Raises:
        ValueError: `means` is not a finite matrix, or holds negative values.

    Examples:
        >>> class_selectivity([[3.0, 1.0, 0.0], [1.0, 1.0, 0.0]]).tolist()
        [0.5, 0.0, 0.0]

    References:
        Leavitt and Morcos (2020), arXiv:2003.01262.
    """
    table = as_activations(means, "means")
    table = ordinary(table.astype(np.float64) if table.dtype.itemsize < 4 else table, axis=0)  # sums need digits
    if table.min(initial=0.0) < 0:
        raise ValueError("means must be non-negative; selectivity is defined for rectified activations")
    if table.shape[0] < 2:
        return np.zeros(table.shape[1])
    top = table.max(axis=0)
    rest = (table.sum(axis=0) - top) / (table.shape[0] - 1)
    scale = top + rest
    return np.where(scale > 0, (top - rest) / np.where(scale > 0, scale, 1), 0.0)


def dead_share(fired: Any) -> float:
    """Share of neurons that fire on no example.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; best with the rule 'positive'.

    Returns:
        In [0, 1]; 0.0 for no neurons.

    Raises:
        ValueError: `fired` is not boolean.

    Examples:
        >>> dead_share([[1, 0], [0, 0]])
        0.5
    """
    matrix = as_fired(fired)
    return float((~matrix.any(axis=0)).mean()) if matrix.shape[1] else 0.0
