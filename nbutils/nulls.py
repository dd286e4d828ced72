"""Null models of firing: each keeps something named, and destroys the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.arrays import as_fired, as_labels

__all__ = ["circular_shift_null", "within_class_null"]


def circular_shift_null(fired: Any, rng: np.random.Generator) -> np.ndarray:
    """Shift each neuron over the examples by its own random amount: rates stay, co-firing goes.

    G_ei = F_(e + s_i mod E),i with s_i uniform on 0..E-1. Each neuron fires exactly as often as before and in the same
    order around the circle; which neurons fire on the same example becomes chance. The examples must be in random
    order (probe sets are), or the shift would keep part of the class structure.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        rng: source of randomness.

    Returns:
        Boolean matrix of the same shape.

    Raises:
        ValueError: `fired` is not a boolean matrix with at least one example.

    Examples:
        >>> fired = np.array([[True, False], [False, False], [False, True]])
        >>> circular_shift_null(fired, np.random.default_rng(0)).sum(axis=0).tolist()
        [1, 1]

    References:
        Harris (2020), arXiv:2012.06862; Elber-Dorozko and Loewenstein (2018), doi:10.7554/eLife.34248.
    """
    from nbutils import compiled

    matrix = as_fired(fired)
    examples, neurons = matrix.shape
    shifted = np.empty_like(matrix)
    compiled.shift_columns(matrix, rng.integers(examples, size=neurons), shifted)
    return shifted


def within_class_null(fired: Any, labels: Any, rng: np.random.Generator) -> np.ndarray:
    """Shuffle each neuron among the examples of each class: class selectivity stays, co-firing beyond it goes.

    What is left of a graph's modularity under this null is what "these neurons like the same classes" explains.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,), integers.
        rng: source of randomness.

    Returns:
        Boolean matrix of the same shape, with every neuron's rate in every class unchanged. With one class it is a
        plain shuffle of every neuron; a class with one example stays as it is.

    Raises:
        ValueError: shapes disagree, or `fired` is not a boolean matrix.

    Examples:
        >>> fired = np.array([[True, True], [False, False], [True, False], [True, True]])
        >>> shuffled = within_class_null(fired, [0, 0, 1, 1], np.random.default_rng(0))
        >>> shuffled[:2].sum(axis=0).tolist(), shuffled[2:].sum(axis=0).tolist()
        ([1, 1], [2, 1])
    """
    from nbutils import compiled

    matrix = as_fired(fired)
    classes = as_labels(labels, matrix.shape[0])
    shuffled = np.empty_like(matrix)
    for label in np.unique(classes):
        compiled.shuffle_within(matrix, np.flatnonzero(classes == label), rng, shuffled)
    return shuffled
