"""Information between neurons and the class, and among neurons, in bits: the strongest simple baselines beside Q."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.arrays import as_count, as_fired, as_labels, as_rng
from nbutils.entropy import entropy_bits, firing_entropy

__all__ = ["mutual_information", "total_correlation"]

MOST_BLOCKS = 10_000


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
    names, size = np.unique(classes, return_counts=True)
    on = np.stack([np.count_nonzero(matrix[classes == name], axis=0) for name in names])
    joint = np.concatenate([on, size[:, None] - on])
    return firing_entropy(matrix, correction) + entropy_bits(size, correction) - entropy_bits(joint, correction)


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
        blocks: number of random blocks to average over, from 1 to 10,000.
        correction: "miller-madow" on every entropy, or None.

    Returns:
        Bits per block, >= 0 plug-in; with fewer varying neurons than `block` one block of all of them; 0.0 when fewer
        than two neurons vary.

    Raises:
        ValueError: `fired` is not boolean, the correction is unknown, or `block`, `blocks` or `seed` is out of range.

    Examples:
        >>> total_correlation([[1, 1], [0, 0]], block=2, correction=None)
        1.0

    References:
        Watanabe (1960), doi:10.1147/rd.41.0066.
    """
    block = as_count(block, "block", least=2, most=16)
    blocks = as_count(blocks, "blocks", most=MOST_BLOCKS)
    matrix, rng = as_fired(fired), as_rng(seed, "seed")
    varying = matrix[:, matrix.any(axis=0) & ~matrix.all(axis=0)]
    neurons = varying.shape[1]
    if neurons < 2:
        return 0.0
    size = min(block, neurons)
    single = firing_entropy(varying, correction)
    chosen = (
        [np.arange(neurons)] if size == neurons else [rng.choice(neurons, size, replace=False) for _ in range(blocks)]
    )
    by_neuron = np.ascontiguousarray(varying.T).astype(np.uint16)
    codes = sum(by_neuron[members] << bit for bit, members in enumerate(np.transpose(chosen)))
    counts = np.stack([np.bincount(code, minlength=1 << size) for code in codes], axis=1)
    joint = entropy_bits(counts, correction)
    return float(np.mean([single[members].sum() for members in chosen] - joint))
