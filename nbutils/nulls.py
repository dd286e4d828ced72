"""Null models of firing: each keeps something named, and destroys the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nbutils.cofiring import PackedFiring, pack_firing
from nbutils.support.checks import as_labels, as_rng


def circular_shift_null(fired: Any, rng: np.random.Generator | int) -> Any:
    """Shift each neuron over the examples by its own random amount: rates stay, co-firing goes.

    G_ei = F_(e + s_i mod E),i with s_i uniform on 0..E-1. Each neuron fires exactly as often as before and in the same
    order around the circle; which neurons fire on the same example becomes chance. The examples must be in random
    order (probe sets are), or the shift would keep part of the class structure.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; or a
            :class:`nbutils.cofiring.PackedFiring`.
        rng: source of randomness: a generator, or a seed.

    Returns:
        Boolean matrix of the same shape, or packed firing if that was given.

    Raises:
        ValueError: `fired` is not a boolean matrix with at least one example, or `rng` is neither.

    Examples:
        >>> fired = np.array([[True, False], [False, False], [False, True]])
        >>> circular_shift_null(fired, np.random.default_rng(0)).sum(axis=0).tolist()
        [1, 1]

    References:
        Harris (2020), arXiv:2012.06862; Elber-Dorozko and Loewenstein (2018), doi:10.7554/eLife.34248.
    """
    from nbutils.support import loops

    packed, rng = pack_firing(fired), as_rng(rng)
    words = np.zeros_like(packed.words)
    loops.rotate(packed.words, packed.examples, rng.integers(packed.examples, size=packed.neurons), words)
    return _as_given(fired, replace(packed, words=words))


def within_class_null(fired: Any, labels: Any, rng: np.random.Generator | int) -> Any:
    """Shuffle each neuron among the examples of each class: class selectivity stays, co-firing beyond it goes.

    What is left of a graph's modularity under this null is what "these neurons like the same classes" explains.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; or a
            :class:`nbutils.cofiring.PackedFiring`.
        labels: class per example, shape (examples,), integers.
        rng: source of randomness: a generator, or a seed.

    Returns:
        The same kind, with every neuron's rate in every class unchanged. With one class it is a plain
        shuffle of every neuron; a class with one example stays as it is.

    Raises:
        ValueError: shapes disagree, or `fired` is not a boolean matrix.

    Examples:
        >>> fired = np.array([[True, True], [False, False], [True, False], [True, True]])
        >>> shuffled = within_class_null(fired, [0, 0, 1, 1], np.random.default_rng(0))
        >>> shuffled[:2].sum(axis=0).tolist(), shuffled[2:].sum(axis=0).tolist()
        ([1, 1], [2, 1])
    """
    from nbutils.support import loops

    packed, rng = pack_firing(fired), as_rng(rng)
    classes = as_labels(labels, packed.examples)
    words, ones = np.zeros_like(packed.words), np.empty(packed.neurons, np.int64)
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        loops.count_among(packed.words, members, ones)
        loops.deal(members, ones, rng.integers(2**32, size=ones.sum(), dtype=np.uint32), words)
    return _as_given(fired, replace(packed, words=words))


def _as_given(fired: Any, null: PackedFiring) -> Any:
    return null if isinstance(fired, PackedFiring) else null.unpack()
