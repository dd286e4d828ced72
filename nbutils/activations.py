"""From activations to firing, and the summaries that need the activations themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.support.checks import (
    as_activations,
    as_count,
    as_labels,
    ordinary,
    share_after,
    share_count,
    shown,
    spare_exponent,
)

MOST_BINS = 1 << 16
ENLARGE = 100  # powers of two that lift the least numbers of float32 and float64 well into their range
RULES = "'top-decile', 'positive' or 'top:<share>' with a share above 0 and at most 1, such as 'top:0.05'"


def firing(activations: Any, rule: str = "top-decile") -> np.ndarray:
    """Which neurons fire on which examples: the activation pattern matrix.

    `positive`: a > 0, as in the paper. `top:<share>`: a > 0 and among the neuron's own largest ceil(share * examples)
    activations over these examples, all ties at the threshold included, so that busy and quiet neurons fire about
    equally often. `top-decile` is `top:0.1`.

    Args:
        activations: post-non-linearity values, shape (examples, neurons), finite.
        rule: 'top-decile', 'positive' or 'top:<share>'.

    Returns:
        Boolean matrix, shape (examples, neurons). A neuron that is never positive never fires; one with the same
        positive value on every example always does.

    Raises:
        ValueError: the rule is unknown, or activations are not a finite matrix.

    Examples:
        >>> firing([[0.0, 3.0], [1.0, 2.0], [5.0, 0.0]], rule="top:0.34")
        array([[False,  True],
               [ True,  True],
               [ True, False]])
    """
    values = as_activations(activations)
    share = firing_share(rule)
    positive = values > 0
    if share is None:
        return positive
    wanted = share_count(share, values.shape[0])
    if values.dtype not in (np.float32, np.float64):
        rank = values.shape[0] - wanted
        return positive & (values >= np.partition(values, rank, axis=0)[rank])
    from nbutils.support import loops

    least = np.empty(values.shape[1], values.dtype)
    loops.largest_of_each(values, wanted, least)
    return positive & (values >= least)


def above_least(activations: Any) -> np.ndarray:
    """Activations counted from each neuron's least, for units that can be negative or are never 0.

    Firing is then relative to the neuron's own distribution: :func:`firing` with a share takes its largest activations
    whatever their sign, and a neuron that never changes never fires.

    Args:
        activations: shape (examples, neurons), finite.

    Returns:
        Shape (examples, neurons), at least 0, with a 0 in every column; float64 where a difference is more than the
        type of `activations` can hold.

    Raises:
        ValueError: `activations` is not a finite matrix, or a difference is more than float64 can hold.

    Examples:
        >>> above_least([[-1.0, 2.0], [3.0, 2.0]]).tolist()
        [[0.0, 0.0], [4.0, 0.0]]
    """
    values = as_activations(activations)
    values = values if np.issubdtype(values.dtype, np.floating) else values.astype(np.float64)
    with np.errstate(over="ignore"):
        found = values - values.min(axis=0)
        if np.isinf(found).any() and values.dtype != np.float64:
            return above_least(values.astype(np.float64))
    if np.isinf(found).any():
        raise ValueError(f"activations must span less than {np.finfo(np.float64).max:.1e}; use another unit")
    return found


def class_means(activations: Any, labels: Any) -> np.ndarray:
    """Mean activation of every neuron for every class.

    Args:
        activations: post-non-linearity values, shape (examples, neurons), finite.
        labels: class per example, shape (examples,), integers.

    Returns:
        Shape (classes present, neurons), classes in rising order.

    Raises:
        ValueError: shapes disagree, or values are not finite.

    Examples:
        >>> class_means([[0.0], [2.0], [5.0]], [0, 0, 1]).tolist()
        [[1.0], [5.0]]
    """
    values = as_activations(activations)
    classes = as_labels(labels, values.shape[0])
    exponent = spare_exponent(values)  # sums of numbers near the largest there is would overflow
    values = np.ldexp(values, -exponent) if exponent else values
    means = np.stack([values[classes == name].mean(axis=0, dtype=np.float64) for name in np.unique(classes)])
    return np.ldexp(means, exponent) if exponent else means


def activation_histogram(activations: Any, bins: int = 10) -> np.ndarray:
    """How the positive activations of each neuron spread between 0 and its own maximum.

    Bin b of neuron i counts the examples with (b - 1) max_i / bins < a <= b max_i / bins; zero and negative activations
    are left out, the maximum falls into the last bin. A value on the edge of two bins may fall into either, by the
    rounding of its type.

    Args:
        activations: post-non-linearity values, shape (examples, neurons), finite.
        bins: number of equal bins, from 1 to 65,536.

    Returns:
        Counts, int64, shape (bins, neurons); all 0 for a neuron that is never positive.

    Raises:
        ValueError: `activations` is not a finite matrix, or `bins` is out of range.

    Examples:
        >>> activation_histogram([[0.0, 1.0], [5.0, 1.0], [10.0, 1.0]], bins=2).tolist()
        [[1, 0], [1, 3]]
    """
    values = as_activations(activations)
    bins = as_count(bins, "bins", most=MOST_BINS)
    from nbutils.support import loops

    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    largest = values.max(axis=0)
    tiny = (largest > 0) & (largest < np.finfo(values.dtype).tiny * 2 * bins)  # their scale would be infinite
    if tiny.any():
        values = np.maximum(values, 0)
        values[:, tiny] = np.ldexp(values[:, tiny], ENLARGE)
        largest = values.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = bins / largest
    counts = np.zeros((bins + 1, values.shape[1]), np.int64)
    loops.count_bins(values, scale, counts)
    return counts[:bins]


def effective_rank(activations: Any) -> float:
    """In how many directions activations spread about evenly.

    exp(-sum_k p_k ln p_k), with p_k the singular values of the activation matrix, divided by their sum.

    Args:
        activations: shape (examples, neurons), finite.

    Returns:
        From 1 to min(examples, neurons); 0.0 where all activations are 0.

    Raises:
        ValueError: `activations` is not a finite matrix.

    Examples:
        >>> round(effective_rank([[1.0, 0.0], [0.0, 1.0]]), 12), round(effective_rank([[1.0, 1.0], [2.0, 2.0]]), 12)
        (2.0, 1.0)

    References:
        Roy and Vetterli (2007), "The effective rank: a measure of effective dimensionality".
    """
    values = ordinary(np.asarray(as_activations(activations), dtype=np.float64))
    flat = values if values.shape[0] >= values.shape[1] else values.T
    size = np.sqrt(np.clip(np.linalg.eigvalsh(flat.T @ flat), 0, None))
    # What squaring leaves of rounding is no direction.
    kept = size[size > 1e-7 * size.max(initial=0.0)]
    if not kept.size:
        return 0.0
    shares = kept / kept.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def participation_ratio(activations: Any) -> float:
    """In how many directions activations vary about equally.

    (sum_k v_k)^2 / sum_k v_k^2, with v_k the eigenvalues of the covariance of the neurons: d for the same variance in d
    directions and none in the others. Beside :func:`effective_rank` it leaves the mean out, and gives the largest
    directions more weight.

    Args:
        activations: shape (examples, neurons), finite.

    Returns:
        From 1 to min(examples - 1, neurons); 0.0 where no neuron varies.

    Raises:
        ValueError: `activations` is not a finite matrix.

    Examples:
        >>> participation_ratio([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        2.0

    References:
        Gao et al. (2017), doi:10.1101/214262.
    """
    values = ordinary(np.asarray(as_activations(activations), dtype=np.float64))
    centred = values - values[0]  # first, so that a neuron that does not vary is exactly 0
    centred = ordinary(centred - centred.mean(axis=0))
    flat = centred if centred.shape[0] >= centred.shape[1] else centred.T
    covariance = flat.T @ flat
    total = np.trace(covariance)
    return float(1 / ((covariance / total) ** 2).sum()) if total > 0 else 0.0


def firing_share(rule: str) -> float | None:
    """The share that a firing rule keeps; None for 'positive'."""
    named = {"positive": None, "top-decile": 0.1}
    if isinstance(rule, str) and rule in named:
        return named[rule]
    share = share_after(rule, "top")
    if share is None or not 0 < share <= 1:
        raise ValueError(f"rule must be {RULES}, received {shown(rule)}")
    return share
