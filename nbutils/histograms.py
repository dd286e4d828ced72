"""Inner loop of the histogram of activations, compiled by numba; see `nbutils.bits` for how compiled code is kept."""

from __future__ import annotations

import math

import numpy as np

from nbutils.bits import loop

__all__ = ["count_bins"]


@loop
def count_bins(values: np.ndarray, scale: np.ndarray, counts: np.ndarray) -> None:
    """Add each positive value of column i to bin ceil(value * scale[i]) - 1 of `counts[:, i]`, kept within the bins."""
    bins = counts.shape[0]
    for example in range(values.shape[0]):
        for neuron in range(values.shape[1]):
            value = values[example, neuron]
            if value > 0:
                scaled = value * scale[neuron]  # infinite where the largest value is next to nothing
                counts[bins - 1 if scaled > bins - 1 else max(math.ceil(scaled) - 1, 0), neuron] += 1
