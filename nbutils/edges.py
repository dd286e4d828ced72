"""Inner loops on the edges of graphs in CSR form, compiled like those of :mod:`nbutils.bits`."""

from __future__ import annotations

import numpy as np

from nbutils.bits import loop

__all__ = [
    "ASYMMETRIC",
    "LOOP",
    "OUTSIDE",
    "REPEATED",
    "UNORDERED",
    "UNSORTED",
    "first_bad_pair",
    "first_flaw",
    "inside_weights",
    "symmetric_csr",
]

LOOP, ASYMMETRIC = 1, 2
OUTSIDE, UNORDERED, REPEATED, UNSORTED = 1, 2, 3, 4


@loop
def first_bad_pair(rows: np.ndarray, columns: np.ndarray, nodes: int) -> tuple[int, int]:
    """(what is wrong, where) with the pairs that `symmetric_csr` trusts: OUTSIDE, UNORDERED, REPEATED, UNSORTED; or 0.

    Pairs that are only unsorted are reported last, since sorting is all that they need.
    """
    unsorted = -1
    for edge in range(rows.size):
        i, j = rows[edge], columns[edge]
        if i < 0 or j < 0 or i >= nodes or j >= nodes:
            return OUTSIDE, edge
        if i >= j:
            return UNORDERED, edge
        if edge and (i < rows[edge - 1] or (i == rows[edge - 1] and j < columns[edge - 1])):
            unsorted = edge
        elif edge and i == rows[edge - 1] and j == columns[edge - 1]:
            return REPEATED, edge
    return (0, 0) if unsorted < 0 else (UNSORTED, unsorted)


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
def first_flaw(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, tolerance: float) -> int:
    """What is wrong with an adjacency with sorted, unique indices: LOOP, ASYMMETRIC, or 0."""
    place = indptr[:-1].copy()  # of the next entry of each row that is not matched yet
    for i in range(indptr.size - 1):
        # Rows above have matched all that is left of the diagonal; what comes next must lie right of it.
        first, end = place[i], indptr[i + 1]
        if first < end and indices[first] <= i:
            return LOOP if indices[first] == i else ASYMMETRIC
        for entry in range(first, end):
            j = indices[entry]
            other = place[j]
            if other == indptr[j + 1] or indices[other] != i or abs(data[other] - data[entry]) > tolerance:
                return ASYMMETRIC
            place[j] = other + 1
    return 0


@loop
def inside_weights(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, group: np.ndarray, inside: np.ndarray, total: np.ndarray
) -> None:
    """Weight inside each group (each edge twice) and strength of its nodes, added up; group -1 is no group."""
    for i in range(indptr.size - 1):
        own = group[i]
        if own < 0:
            continue
        strength, shared = 0.0, 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            weight = data[entry]
            strength += weight
            # Without a branch, which the processor would guess wrong half the time.
            shared += weight if group[indices[entry]] == own else 0.0
        total[own] += strength
        inside[own] += shared
