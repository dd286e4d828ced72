"""Inner loops on the edges of graphs in CSR form, compiled like those of :mod:`nbutils.bits`."""

from __future__ import annotations

import numpy as np

from nbutils.bits import loop

__all__ = ["inside_weights", "is_symmetric", "symmetric_csr"]


@loop
def symmetric_csr(
    rows: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
) -> None:
    """CSR of both triangles from the pairs of the upper one, sorted by row and column; `indptr` comes zeroed."""
    for edge in range(rows.size):
        indptr[rows[edge] + 1] += 1
        indptr[columns[edge] + 1] += 1
    for node in range(indptr.size - 1):
        indptr[node + 1] += indptr[node]
    place = indptr[:-1].copy()
    for edge in range(rows.size):  # in this order each node gets its smaller neighbours first
        i, j = rows[edge], columns[edge]
        indices[place[i]], data[place[i]] = j, weights[edge]
        indices[place[j]], data[place[j]] = i, weights[edge]
        place[i] += 1
        place[j] += 1


@loop
def is_symmetric(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, tolerance: float) -> bool:
    """Whether a CSR matrix with sorted, unique indices equals its transpose up to `tolerance`, in one pass."""
    place = indptr[:-1].copy()  # of the next entry of each row that is not matched yet
    for i in range(indptr.size - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            if j < i:
                continue  # matched from row j
            if place[j] == indptr[j + 1] or indices[place[j]] != i or abs(data[place[j]] - data[entry]) > tolerance:
                return False
            place[j] += 1
        if place[i] < indptr[i + 1] and indices[place[i]] < i:
            return False  # an entry left of the diagonal that nothing above it matched
    return True


@loop
def inside_weights(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, group: np.ndarray, inside: np.ndarray, total: np.ndarray
) -> None:
    """Weight inside each group (each edge twice) and strength of its nodes, added up; group -1 is no group."""
    for i in range(indptr.size - 1):
        if group[i] < 0:
            continue
        for entry in range(indptr[i], indptr[i + 1]):
            total[group[i]] += data[entry]
            if group[indices[entry]] == group[i]:
                inside[group[i]] += data[entry]
