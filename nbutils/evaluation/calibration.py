"""Whether a network is as often right as it says."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_labels, as_numpy, shown

__all__ = ["calibration_error", "negative_log_likelihood"]

LEAST = 1e-12  # smaller probabilities have this one's logarithm
ROUNDING = 1e-4


@checked
def calibration_error(probabilities: Any, labels: Any, bins: int = 15) -> float:
    """Expected calibration error: how far confidence lies from accuracy.

    Examples are sorted into equal bins of confidence, the largest probability: sum_b n_b / n abs(accuracy_b -
    confidence_b).

    Args:
        probabilities: of every class, shape (examples, classes), rows sum to 1.
        labels: true class, shape (examples,), from 0 to classes - 1.
        bins: between 0 and 1, from 1 to 10,000.

    Returns:
        From 0, always as often right as it says, to 1.

    Raises:
        ValueError: shapes disagree, rows are no probabilities, or a label is out of range.

    Examples:
        >>> round(calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 6)  # sure at 0.9, right half of the time
        0.4

    References:
        Guo et al. (2017), arXiv:1706.04599.
    """
    shares, true = _checked(probabilities, labels)
    count = as_count(bins, "bins", most=10_000)
    confidence, right = shares.max(axis=1), shares.argmax(axis=1) == true
    place = np.clip(np.ceil(confidence * count).astype(np.int64) - 1, 0, count - 1)
    gap = np.bincount(place, right, count) - np.bincount(place, confidence, count)
    return float(np.abs(gap).sum() / len(true))


@checked
def negative_log_likelihood(probabilities: Any, labels: Any) -> float:
    """Mean of -ln of the probability of the true class.

    Args:
        probabilities: of every class, shape (examples, classes), rows sum to 1.
        labels: true class, shape (examples,), from 0 to classes - 1.

    Returns:
        Nats, at least 0; probabilities below 1e-12 count as 1e-12.

    Raises:
        ValueError: shapes disagree, rows are no probabilities, or a label is out of range.

    Examples:
        >>> round(negative_log_likelihood([[0.5, 0.5]], [1]), 6)
        0.693147
    """
    shares, true = _checked(probabilities, labels)
    return float(np.log(1 / np.maximum(shares[np.arange(len(true)), true], LEAST)).mean())


def _checked(probabilities: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    shares = as_numpy(probabilities, "probabilities").astype(np.float64)
    if shares.ndim != 2 or 0 in shares.shape:
        raise ValueError(f"probabilities must have shape (examples, classes), received {shares.shape}")
    if not (shares >= 0).all() or np.abs(shares.sum(axis=1) - 1).max() > ROUNDING:
        raise ValueError("probabilities must be at least 0 and sum to 1 over the classes of every example")
    true = as_labels(labels, len(shares))
    if true.min() < 0 or true.max() >= shares.shape[1]:
        worst = true.min() if true.min() < 0 else true.max()
        raise ValueError(f"labels must be from 0 to {shares.shape[1] - 1}, received {shown(int(worst))}")
    return shares, true
