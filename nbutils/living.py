"""The same graph of living neurons only, so that neurons that died do not change how dense it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.arrays import as_fired, as_labels, as_rng
from nbutils.measures import MeasureSpec, measure_communities, measure_nulls

__all__ = ["measure_living"]

SPEC = MeasureSpec(null_draws=5)


def measure_living(
    fired: Any, labels: Any, rng: np.random.Generator | int, spec: MeasureSpec = SPEC
) -> dict[str, float]:
    """Communities and null models of the neurons that fire at least once.

    The heaviest 5 % of *all* pairs are a larger share of the pairs that can be joined at all the more neurons never
    fire: 5 % / (1 - d)^2 where a share d of them is dead. Here the share is of pairs of living neurons.

    Args:
        fired: activation pattern matrix of all hidden neurons, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,).
        rng: source of randomness: a generator, or a seed.
        spec: density, resolution, seeds and draws of the null models.

    Returns:
        `living` (how many neurons fire), and of their graph `modularity`, `communities`, `well_defined`, `coverage`,
        `null_circular` and `null_within`, see :func:`nbutils.measures.measure_communities` and
        :func:`nbutils.measures.measure_nulls`. All 0 if none fires.

    Examples:
        >>> fired = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
        >>> dead = np.zeros((10, 20), dtype=bool)
        >>> found = measure_living(np.hstack([fired, dead]), np.repeat([0, 1], 5), np.random.default_rng(0))
        >>> found["living"], found["modularity"]
        (6, 0.5)
    """
    matrix, rng = as_fired(fired), as_rng(rng)
    classes = as_labels(labels, matrix.shape[0])
    own = matrix[:, matrix.any(axis=0)]
    return {
        "living": own.shape[1],
        **measure_communities(own, spec),
        **measure_nulls(own, classes, spec, rng),
    }
