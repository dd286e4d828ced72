"""Entropies of the activation pattern, in bits.

A neuron that never fires, or always does, has entropy 0: it is perfectly predictable. Count such neurons apart
(`dead_share` in :mod:`nbutils.baselines`) before reading a falling entropy as order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.activations import activation_histogram
from nbutils.arrays import as_fired, as_labels, as_numpy

__all__ = [
    "binned_entropy",
    "class_conditional_entropy",
    "firing_entropy",
    "histogram_entropy",
    "mutual_information",
    "pattern_entropy",
    "total_correlation",
    "unique_share",
]

CORRECTIONS = (None, "miller-madow")


def firing_entropy(fired: Any, correction: str | None = None) -> np.ndarray:
    """Entropy of each neuron's firing: how unpredictable it is whether it fires.

    h_i = -p_i log2 p_i - (1 - p_i) log2 (1 - p_i), with p_i the share of examples on which neuron i fires.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        correction: None, or "miller-madow" to add (states seen - 1) / (2 examples ln 2).

    Returns:
        Bits per neuron, shape (neurons,), in [0, 1] without correction; 0 for a neuron that never or always fires.

    Raises:
        ValueError: `fired` is not boolean, or the correction is unknown.

    Examples:
        >>> firing_entropy([[1, 0], [0, 0], [1, 0], [0, 0]]).tolist()
        [1.0, 0.0]

    References:
        Miller (1955), "Note on the bias of information estimates".
    """
    matrix = as_fired(fired)
    on = matrix.sum(axis=0)
    return _entropy(np.stack([on, matrix.shape[0] - on]), correction)


def pattern_entropy(fired: Any, correction: str | None = "miller-madow") -> float:
    """Entropy of the whole activation pattern: of which neurons fire together on an example.

    H = -sum_w p(w) log2 p(w) over the distinct rows w of the activation pattern matrix. Use it on one layer, and look
    at how many rows are unique: once every example has a pattern of its own the plug-in value is log2(examples) and
    says nothing more.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        correction: "miller-madow" adds (patterns seen - 1) / (2 examples ln 2); None is the plug-in estimate.

    Returns:
        Bits; plug-in in [0, min(neurons, log2 examples)], with the correction up to 1 / (2 ln 2) = 0.72 more.

    Raises:
        ValueError: `fired` is not boolean, or the correction is unknown.

    Examples:
        >>> pattern_entropy([[0, 0], [0, 1], [1, 0], [1, 1]], correction=None)
        2.0

    References:
        Miller (1955); whole patterns of a network: Hartmann et al. (2021), "Studying the evolution of neural
        activation patterns during training of feed-forward ReLU networks".
    """
    return float(_entropy(_row_counts(as_fired(fired)), correction))


def unique_share(fired: Any) -> float:
    """Share of examples whose activation pattern no other example has: near 1, pattern entropies are saturated.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.

    Returns:
        In [0, 1].

    Examples:
        >>> unique_share([[0, 0], [0, 0], [1, 0], [1, 1]])
        0.5
    """
    counts = _row_counts(as_fired(fired))
    return float((counts == 1).sum() / counts.sum())


def class_conditional_entropy(fired: Any, labels: Any, correction: str | None = "miller-madow") -> float:
    """Entropy of the whole activation pattern within a class, averaged over the classes.

    H(W | Y) = sum_y p(y) H(W | Y = y): what remains unpredictable of the pattern once the class is known.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,), integers.
        correction: as in :func:`pattern_entropy`, applied within each class.

    Returns:
        Bits; with one class the same as :func:`pattern_entropy`.

    Raises:
        ValueError: shapes disagree, `fired` is not boolean, or the correction is unknown.

    Examples:
        >>> class_conditional_entropy([[0, 1], [0, 1], [1, 0], [1, 1]], [0, 0, 1, 1], correction=None)
        0.5
    """
    matrix = as_fired(fired)
    classes = as_labels(labels, matrix.shape[0])
    names, sizes = np.unique(classes, return_counts=True)
    inside = [_entropy(_row_counts(matrix[classes == name]), correction) for name in names]
    return float(np.dot(sizes / sizes.sum(), inside))


def binned_entropy(activations: Any, bins: int = 10) -> np.ndarray:
    """The paper's entropy: of the size of a neuron's activation, over the examples on which it is positive.

    The positive activations of neuron i fall into equal bins on (0, max_i], zeros and negative values are left out;
    h_i = -sum_b p_b log2 p_b. The network's entropy in the paper is the sum over all hidden neurons, so it grows with
    width and counts dead neurons as predictable.

    Args:
        activations: post-non-linearity values, shape (examples, neurons), finite.
        bins: number of equal bins, at least 1 (the paper: 10).

    Returns:
        Bits per neuron, shape (neurons,), in [0, log2 bins]; 0 for a neuron that is never positive.

    Raises:
        ValueError: `activations` is not a finite matrix, or `bins` < 1.

    Examples:
        >>> binned_entropy([[0.0, 1.0], [5.0, 1.0], [10.0, 1.0]], bins=2).tolist()
        [1.0, 0.0]

    References:
        Mostafa and Mondal (2021), arXiv:2106.04693, as their later public code computes it.
    """
    return histogram_entropy(activation_histogram(activations, bins))


def mutual_information(fired: Any, labels: Any, correction: str | None = "miller-madow") -> np.ndarray:
    """Information that each neuron's firing carries about the class.

    I(F_i; Y) = H(F_i) + H(Y) - H(F_i, Y). The plug-in value is biased up by about (classes - 1) / (2 examples ln 2);
    the correction takes that away, so a neuron without information scatters around 0.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,), integers.
        correction: "miller-madow" on each of the three entropies, or None.

    Returns:
        Bits per neuron, shape (neurons,), at most min(1, log2 classes) plug-in; slightly below 0 is possible with the
        correction; exactly 0 for a neuron that never or always fires, and for one class.

    Raises:
        ValueError: shapes disagree, `fired` is not boolean, or the correction is unknown.

    Examples:
        >>> mutual_information([[1, 0], [1, 1], [0, 0], [0, 1]], [0, 0, 1, 1], correction=None).tolist()
        [1.0, 0.0]

    References:
        Panzeri et al. (2007), doi:10.1152/jn.00559.2007.
    """
    matrix = as_fired(fired)
    classes = as_labels(labels, matrix.shape[0])
    _, index = np.unique(classes, return_inverse=True)
    one_hot = index[:, None] == np.arange(index.max() + 1)
    on = one_hot.T.astype(np.float64) @ matrix
    size = one_hot.sum(axis=0)
    joint = np.concatenate([on, size[:, None] - on])
    return firing_entropy(matrix, correction) + _entropy(size, correction) - _entropy(joint, correction)


def total_correlation(
    fired: Any, block: int = 6, *, seed: int = 0, blocks: int = 100, correction: str | None = "miller-madow"
) -> float:
    """How far small groups of neurons are from firing independently of each other.

    TC = sum_i H(F_i) - H(F_1, ..., F_block), averaged over random blocks. Small blocks keep the joint entropy
    measurable (2^6 = 64 states), where whole layers saturate. Neurons that never or always fire
    carry none and are left out.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        block: neurons in a block, 2 to 16.
        seed: seed of the random blocks.
        blocks: number of random blocks to average over.
        correction: "miller-madow" on every entropy, or None.

    Returns:
        Bits per block, >= 0 plug-in; with fewer varying neurons than `block` one block of all of them; 0.0 when fewer
        than two neurons vary.

    Raises:
        ValueError: `fired` is not boolean, or `block` or `blocks` is out of range.

    Examples:
        >>> total_correlation([[1, 1], [0, 0]], block=2, correction=None)
        1.0

    References:
        Watanabe (1960), doi:10.1147/rd.41.0066.
    """
    if not isinstance(block, int | np.integer) or not 2 <= block <= 16:
        raise ValueError(f"block must be a whole number from 2 to 16, received {block!r}")
    if not isinstance(blocks, int | np.integer) or blocks < 1:
        raise ValueError(f"blocks must be a whole number of at least 1, received {blocks!r}")
    matrix = as_fired(fired)
    varying = matrix[:, matrix.any(axis=0) & ~matrix.all(axis=0)]
    neurons = varying.shape[1]
    if neurons < 2:
        return 0.0
    size = min(block, neurons)
    single = firing_entropy(varying, correction)
    rng = np.random.default_rng(seed)
    chosen = (
        [np.arange(neurons)] if size == neurons else [rng.choice(neurons, size, replace=False) for _ in range(blocks)]
    )
    powers = 1 << np.arange(size)
    codes = np.stack([varying[:, members] @ powers for members in chosen])
    counts = np.stack([np.bincount(code, minlength=1 << size) for code in codes], axis=1)
    joint = _entropy(counts, correction)
    return float(np.mean([single[members].sum() for members in chosen] - joint))


def histogram_entropy(counts: Any) -> np.ndarray:
    """Entropy of each neuron's histogram: `histogram_entropy(activation_histogram(a)) == binned_entropy(a)`.

    Args:
        counts: shape (bins, neurons), non-negative.

    Returns:
        Bits per neuron, shape (neurons,).

    Examples:
        >>> histogram_entropy([[1, 0], [1, 3]]).tolist()
        [1.0, 0.0]
    """
    return _entropy(as_numpy(counts), None)


def _row_counts(matrix: np.ndarray) -> np.ndarray:
    """How often each distinct row occurs."""
    packed = np.ascontiguousarray(np.packbits(matrix, axis=1))
    if packed.shape[1] == 0:
        return np.array([matrix.shape[0]])
    return np.unique(packed.view(f"V{packed.shape[1]}").ravel(), return_counts=True)[1]


def _entropy(counts: np.ndarray, correction: str | None) -> np.ndarray:
    """Entropy in bits of the counts along the first axis; 0 where all counts are 0."""
    if correction not in CORRECTIONS:
        raise ValueError(f"correction must be None or 'miller-madow', received {correction!r}")
    counts = np.asarray(counts, dtype=np.float64)
    total = counts.sum(axis=0)
    share = counts / np.where(total > 0, total, 1)
    bits = -np.sum(share * np.log2(np.where(share > 0, share, 1)), axis=0)
    if correction == "miller-madow":
        bits = bits + (np.maximum((counts > 0).sum(axis=0), 1) - 1) / (2 * np.maximum(total, 1) * np.log(2))
    return bits + 0.0  # turns -0.0 into 0.0
