"""How predictable firing is: entropies and informations in bits, dead neurons, and selectivity for classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.activations import activation_histogram
from nbutils.support.checks import (
    as_activations,
    as_count,
    as_fired,
    as_labels,
    as_numpy,
    as_rng,
    is_among,
    ordinary,
    shown,
)

CORRECTIONS = (None, "miller-madow")
MOST = 1e300  # so that sums are finite


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
    on = _on(matrix, np.zeros(len(matrix), np.int64), 1)[0]
    return entropy_bits(np.stack([on, matrix.shape[0] - on]), correction)


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
    return float(entropy_bits(_row_counts(as_fired(fired)), correction))


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

    References:
        Noise entropy of patterns and its bias: Panzeri et al. (2007), doi:10.1152/jn.00559.2007.
    """
    matrix = as_fired(fired)
    classes = as_labels(labels, matrix.shape[0])
    names, sizes = np.unique(classes, return_counts=True)
    inside = [entropy_bits(_row_counts(matrix[classes == name]), correction) for name in names]
    # Added one after another: a library's dot product rounds differently from processor to processor.
    return float(np.cumsum(sizes / sizes.sum() * inside)[-1])


def binned_entropy(activations: Any, bins: int = 10) -> np.ndarray:
    """The paper's entropy: of the size of a neuron's activation, over the examples on which it is positive.

    The positive activations of neuron i fall into equal bins on (0, max_i], zeros and negative values are left out;
    h_i = -sum_b p_b log2 p_b. The network's entropy in the paper is the sum over all hidden neurons, so it grows with
    width and counts dead neurons as predictable.

    Args:
        activations: post-non-linearity values, shape (examples, neurons), finite.
        bins: number of equal bins, from 1 to 65,536 (the paper: 10).

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


def histogram_entropy(counts: Any) -> np.ndarray:
    """Entropy of each neuron's histogram: `histogram_entropy(activation_histogram(a)) == binned_entropy(a)`.

    Args:
        counts: shape (bins, neurons), non-negative.

    Returns:
        Bits per neuron, shape (neurons,).

    Examples:
        >>> histogram_entropy([[1, 0], [1, 3]]).tolist()
        [1.0, 0.0]

    References:
        Mostafa and Mondal (2021), arXiv:2106.04693; entropy: Shannon (1948), doi:10.1002/j.1538-7305.1948.tb01338.x.
    """
    return entropy_bits(counts, None)


def active_entropy(counts: Any) -> float:
    """The paper's binned entropy per active neuron, which neither width nor dead neurons change.

    Mean over the neurons that are positive on some example of h_i, see :func:`binned_entropy`. The paper's sum over all
    neurons falls when neurons die, whatever the others do.

    Args:
        counts: histogram of every neuron's positive activations, shape (bins, neurons), non-negative; see
            :func:`nbutils.activations.activation_histogram`.

    Returns:
        Bits, in [0, log2 bins]; 0.0 where no neuron is active.

    Raises:
        ValueError: `counts` is not a matrix of finite numbers >= 0.

    Examples:
        >>> active_entropy([[1, 0, 2], [1, 0, 0]])  # 1 bit, dead, 0 bits
        0.5

    References:
        Binned entropy: Mostafa and Mondal (2021), arXiv:2106.04693.
    """
    table = as_numpy(counts, "counts")
    if table.ndim != 2:
        raise ValueError(f"counts must have shape (bins, neurons), received {table.shape}")
    bits = histogram_entropy(table)
    active = table.any(axis=0) if len(table) else np.zeros(table.shape[1], bool)
    return float(bits[active].mean()) if active.any() else 0.0


def _on(matrix: np.ndarray, index: np.ndarray, classes: int) -> np.ndarray:
    """How often each neuron fires on the examples of each class, shape (classes, neurons)."""
    from nbutils.support import loops

    counts = np.zeros((classes, matrix.shape[1]), np.int64)
    loops.count_by_class(matrix, index, counts)
    return counts


def _row_counts(matrix: np.ndarray) -> np.ndarray:
    """How often each distinct row occurs."""
    packed = np.ascontiguousarray(np.packbits(matrix, axis=1))
    if packed.shape[1] == 0:
        return np.array([matrix.shape[0]])
    return np.unique(packed.view(f"V{packed.shape[1]}").ravel(), return_counts=True)[1]


def entropy_bits(counts: Any, correction: str | None = None) -> np.ndarray:
    """Entropy of counts along the first axis.

    Args:
        counts: how often each state was seen, shape (states, ...), non-negative.
        correction: None, or "miller-madow" to add (states seen - 1) / (2 total ln 2).

    Returns:
        Bits, shape (...); 0 where all counts are 0.

    Raises:
        ValueError: the correction is unknown, or a count is negative or not finite.

    Examples:
        >>> float(entropy_bits([1, 1, 1, 1]))
        2.0
    """
    if not is_among(correction, CORRECTIONS):
        raise ValueError(f"correction must be None or 'miller-madow', received {shown(correction)}")
    from nbutils.support import loops

    counts = as_numpy(counts, "counts").astype(np.float64, copy=False)
    if counts.ndim == 0 or not (counts.min(initial=0) >= 0 and counts.max(initial=0) < MOST):
        raise ValueError(f"counts must be an array of finite numbers >= 0, received shape {counts.shape}")
    total = counts.sum(axis=0)
    share = np.ascontiguousarray(counts / np.where(total > 0, total, 1))
    logs = np.empty_like(share)
    loops.log2_of_each(share.ravel(), logs.ravel())
    bits = -np.sum(share * logs, axis=0)
    if correction == "miller-madow":
        bits = bits + (np.maximum((counts > 0).sum(axis=0), 1) - 1) / (2 * np.maximum(total, 1) * np.log(2))
    return bits + 0.0  # turns -0.0 into 0.0


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
    _, index, size = np.unique(classes, return_inverse=True, return_counts=True)
    on = _on(matrix, index, len(size))
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
    single, chosen, joint = _blocks(fired, block, seed, blocks, correction)
    if not chosen or chosen[0].size < 2:
        return 0.0
    return float(np.mean([single[members].sum() for members in chosen] - joint))


def block_entropy(
    fired: Any, block: int = 6, *, seed: int = 0, blocks: int = 100, correction: str | None = "miller-madow"
) -> float:
    """Joint entropy of small groups of neurons: how unpredictable their common firing is.

    H(F_1, ..., F_block), averaged over random blocks, the same as those of :func:`total_correlation`. A block of six
    has 64 states, which a probe set can count, where whole layers saturate. Neurons that never or always fire are left
    out.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        block: neurons in a block, 2 to 16.
        seed: seed of the random blocks.
        blocks: number of random blocks to average over, from 1 to 10,000.
        correction: "miller-madow" or None.

    Returns:
        Bits per block: plug-in in [0, min(block, log2 examples)], with the correction up to (2^block - 1) / (2 examples
        ln 2) more. With fewer varying neurons than `block` one block of all of them; 0.0 when none varies.

    Raises:
        ValueError: `fired` is not boolean, the correction is unknown, or `block`, `blocks` or `seed` is out of range.

    Examples:
        >>> block_entropy([[0, 0], [0, 1], [1, 0], [1, 1]], block=2, correction=None)
        2.0

    References:
        The correction: Miller (1955), "Note on the bias of information estimates".
    """
    *_, joint = _blocks(fired, block, seed, blocks, correction)
    return float(joint.mean()) if joint.size else 0.0


def _blocks(
    fired: Any, block: int, seed: int, blocks: int, correction: str | None
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Entropy of every neuron, neurons of random blocks, and the joint entropy of each block."""
    block = as_count(block, "block", least=2, most=16)
    blocks = as_count(blocks, "blocks", most=MOST_BLOCKS)
    matrix, rng = as_fired(fired), as_rng(seed, "seed")
    often = _on(matrix, np.zeros(len(matrix), np.int64), 1)[0]
    single = entropy_bits(np.stack([often, len(matrix) - often]), correction)
    varying = np.flatnonzero((often > 0) & (often < len(matrix)))
    neurons = varying.size
    size = min(block, neurons)
    if not size:
        return single, [], np.zeros(0)
    chosen = (
        [varying] if size == neurons else [varying[rng.choice(neurons, size, replace=False)] for _ in range(blocks)]
    )
    from nbutils.support import loops

    counts = np.zeros((1 << size, len(chosen)), np.int64)
    loops.count_codes(matrix, np.stack(chosen), counts)
    return single, chosen, entropy_bits(counts, correction)


def class_selectivity(means: Any) -> np.ndarray:
    """How far a neuron prefers one class over the rest.

    s_i = (mu_max - mu_rest) / (mu_max + mu_rest), with mu_max the largest class-mean activation of neuron i and mu_rest
    the mean of the others: 0 for equal classes, 1 for a neuron active in one class only.

    Args:
        means: class-mean activations, shape (classes, neurons), non-negative; see
            :func:`nbutils.activations.class_means`.

    Returns:
        Selectivity per neuron, shape (neurons,), in [0, 1]; 0 for a dead neuron, and for a single class.

    Raises:
        ValueError: `means` is not a finite matrix, or holds negative values.

    Examples:
        >>> class_selectivity([[3.0, 1.0, 0.0], [1.0, 1.0, 0.0]]).tolist()
        [0.5, 0.0, 0.0]

    References:
        Leavitt and Morcos (2020), arXiv:2003.01262.
    """
    table = as_activations(means, "means")
    table = ordinary(table.astype(np.float64) if table.dtype.itemsize < 4 else table, axis=0)  # sums need digits
    if table.min(initial=0.0) < 0:
        raise ValueError("means must be non-negative; selectivity is defined for rectified activations")
    if table.shape[0] < 2:
        return np.zeros(table.shape[1])
    top = table.max(axis=0)
    rest = (table.sum(axis=0) - top) / (table.shape[0] - 1)
    scale = top + rest
    return np.where(scale > 0, np.maximum(top - rest, 0) / np.where(scale > 0, scale, 1), 0.0)


def dead_share(fired: Any) -> float:
    """Share of neurons that fire on no example.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; best with the rule 'positive'.

    Returns:
        In [0, 1]; 0.0 for no neurons.

    Raises:
        ValueError: `fired` is not boolean.

    Examples:
        >>> dead_share([[1, 0], [0, 0]])
        0.5

    References:
        Why ReLUs die: Lu et al. (2020), doi:10.4208/cicp.OA-2020-0165.
    """
    matrix = as_fired(fired)
    return float((~matrix.any(axis=0)).mean()) if matrix.shape[1] else 0.0
