"""Checks at the door: every public function turns its arguments into plain arrays here.

A wrong argument ends in one sentence that names the argument, what was received and what is allowed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["as_activations", "as_fired", "as_graph", "as_labels", "as_numpy", "require_share", "share_count"]


def as_numpy(values: Any) -> np.ndarray:
    """An array, from an array, a nested list, or a PyTorch tensor on any device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values)


def as_activations(activations: Any, name: str = "activations") -> np.ndarray:
    """Real, finite values of shape (examples, neurons) with at least one example."""
    array = as_numpy(activations)
    if array.ndim != 2 or array.shape[0] == 0:
        raise ValueError(
            f"{name} must have shape (examples, neurons) with at least one example, received {array.shape}"
        )
    if array.dtype == bool or not np.issubdtype(array.dtype, np.number):
        raise ValueError(f"{name} must hold numbers, received dtype {array.dtype}")
    if not np.isfinite(array).all():
        bad = ~np.isfinite(array)
        neuron = int(np.flatnonzero(bad.any(axis=0))[0])
        raise ValueError(f"{name} holds {int(bad.sum())} NaN or infinite values, the first in neuron {neuron}")
    return array


def as_fired(fired: Any, name: str = "fired") -> np.ndarray:
    """A boolean activation pattern matrix of shape (examples, neurons); 0/1 numbers are accepted."""
    array = as_numpy(fired)
    if array.ndim != 2 or array.shape[0] == 0:
        raise ValueError(
            f"{name} must have shape (examples, neurons) with at least one example, received {array.shape}"
        )
    if array.dtype != bool:
        if not np.isin(array, (0, 1)).all():
            raise ValueError(f"{name} must be boolean (or 0 and 1); pass activations through firing() first")
        array = array.astype(bool)
    return array


def as_labels(labels: Any, length: int, name: str = "labels") -> np.ndarray:
    """Integers of shape (length,)."""
    array = as_numpy(labels)
    if array.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), received {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        if array.dtype != bool and not np.array_equal(array, np.asarray(array, dtype=float).round()):
            raise ValueError(f"{name} must be integers, received dtype {array.dtype}")
        array = array.astype(np.int64)
    return array


def as_graph(graph: Any, name: str = "graph") -> sp.csr_array:
    """A symmetric, non-negative CSR adjacency without self-loops, from a dense or SciPy sparse one."""
    matrix = sp.csr_array(graph if sp.issparse(graph) else as_numpy(graph)).astype(np.float64, copy=False)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be square, received shape {matrix.shape}")
    if not matrix.has_canonical_format or (matrix.nnz and not matrix.data.min()):
        matrix = matrix.copy()  # the caller's stays as it is
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    if matrix.nnz == 0:
        return matrix
    from nbutils import edges

    least, largest = matrix.data.min(), matrix.data.max()
    if not -np.inf < least <= largest < np.inf:
        raise ValueError(f"{name} holds NaN or infinite weights")
    if least < 0:
        raise ValueError(f"{name} holds negative weights, the least {least:g}; weights must be >= 0")
    # Matrices of correlations are often off by one unit in the last place.
    flaw = edges.first_flaw(matrix.indptr, matrix.indices, matrix.data, 1e-12 * largest)
    if flaw == edges.LOOP:
        raise ValueError(f"{name} has {int((matrix.diagonal() != 0).sum())} self-loops; set the diagonal to zero")
    if flaw == edges.ASYMMETRIC:
        raise ValueError(f"{name} must be symmetric")
    return matrix


def require_share(value: float, name: str) -> float:
    """A share in (0, 1]."""
    if not isinstance(value, int | float | np.floating) or isinstance(value, bool) or not 0 < value <= 1:
        raise ValueError(f"{name} must be a number above 0 and at most 1, received {value!r}")
    return float(value)


def share_count(share: float, total: int) -> int:
    """How many of `total` a share is, rounded up; 10 % of 30 is 3, although 0.1 * 30 > 3 in floating point."""
    return int(np.ceil(round(share * total, 6)))
