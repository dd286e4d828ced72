"""Fixed, class-balanced choices of examples: the probe set, and smaller versions of large data sets."""

from __future__ import annotations

import numpy as np

from nbutils.arrays import as_labels, is_whole, shown

__all__ = ["SPLIT_SEED", "balanced_indices", "probe_indices"]

SPLIT_SEED = 20210604  # one fixed choice per data set, the same for every run
PROBE_SIZE = 2000


def probe_indices(labels: np.ndarray, size: int | None = None) -> np.ndarray:
    """The fixed probe set: which training examples are watched at every snapshot.

    Args:
        labels: true label of every training example, shape (examples,).
        size: number of examples; None means 2,000, or all where there are fewer.

    Returns:
        Indices, shape (size,), in random but fixed order, equally many of every class as far as the classes allow.

    Raises:
        ValueError: `size` is below 1 or larger than the training set.

    Examples:
        >>> probe_indices(np.array([0, 0, 0, 1, 1, 1]), size=4).shape
        (4,)
    """
    labels = as_labels(labels)
    return balanced_indices(labels, min(PROBE_SIZE, len(labels)) if size is None else size, "probe")


def balanced_indices(labels: np.ndarray, size: int, name: str = "size") -> np.ndarray:
    """A fixed random choice of examples, equally many of every class as far as the classes allow.

    Args:
        labels: class of every example, shape (examples,).
        size: number of examples.
        name: what the caller's user calls the size.

    Returns:
        Indices, shape (size,), in random but fixed order.

    Raises:
        ValueError: `size` is no integer, below 1, or larger than the number of examples; or labels are no integers.

    Examples:
        >>> labels = np.array([0, 0, 0, 0, 1, 1])
        >>> np.bincount(labels[balanced_indices(labels, 4)]).tolist()
        [2, 2]
    """
    labels = as_labels(labels)
    total = len(labels)
    if not is_whole(size) or not 1 <= size <= total:
        raise ValueError(f"{name} must be from 1 to {total}, the number of training examples; received {shown(size)}")
    rng = np.random.default_rng(SPLIT_SEED)
    order = rng.permutation(total)
    # Rank of each example within its class: taking the lowest ranks first fills the classes evenly.
    by_class = np.argsort(labels[order], kind="stable")
    _, start, counts = np.unique(labels[order][by_class], return_index=True, return_counts=True)
    rank = np.empty(total, dtype=np.int64)
    rank[by_class] = np.arange(total) - np.repeat(start, counts)
    chosen = order[np.argsort(rank, kind="stable")[:size]]
    return rng.permutation(chosen)
