"""Inner loops on the edges of graphs in CSR form, compiled like those of :mod:`nbutils.bits`."""

from __future__ import annotations

import numpy as np

from nbutils.bits import loop

__all__ = ["ASYMMETRIC", "FINITE", "LOOP", "NEGATIVE", "first_flaw", "inside_weights", "symmetric_csr"]

FINITE, NEGATIVE, LOOP, ASYMMETRIC = 1, 2, 3, 4


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
def first_flaw(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> int:
    """What is wrong with an adjacency with sorted, unique indices: FINITE, NEGATIVE, LOOP, ASYMMETRIC, or 0."""
    largest = 0.0
    for weight in data:
        if not np.isfinite(weight):
            return FINITE
        if weight < 0:
            return NEGATIVE
        largest = max(largest, weight)
    tolerance = 1e-12 * largest  # correlation matrices are often off by one unit in the last place
    place = indptr[:-1].copy()  # of the next entry of each row that is not matched yet
    for i in range(indptr.size - 1):
        for entry in range(indptr[i], indptr[i + 1]):
            j = indices[entry]
            if j == i:
                return LOOP
            if j < i:
                continue  # matched from row j
            if place[j] == indptr[j + 1] or indices[place[j]] != i or abs(data[place[j]] - data[entry]) > tolerance:
                return ASYMMETRIC
            place[j] += 1
        if place[i] < indptr[i + 1] and indices[place[i]] < i:
            return ASYMMETRIC  # an entry left of the diagonal that nothing above it matched
    return 0


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
