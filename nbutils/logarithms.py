"""Logarithms that are the same on every processor, compiled like the loops of :mod:`nbutils.bits`.

NumPy takes another logarithm on processors with AVX-512, which differs in the last digit now and then. The C library's,
one number at a time, does not.
"""

from __future__ import annotations

import math

import numpy as np

from nbutils.bits import loop

__all__ = ["log2_of_each"]


@loop
def log2_of_each(values: np.ndarray, out: np.ndarray) -> None:
    """The base-2 logarithm of every value of a flat array; 0 where the value is not positive."""
    for place in range(values.size):
        value = values[place]
        out[place] = math.log2(value) if value > 0 else 0.0
