"""What the weights of a fully connected ReLU network say: norms, normalised margins, linear regions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from nbutils.support.checks import as_count, as_labels, as_rng, as_series, as_table, shown

TOUCH = 1e-12  # of a line: crossings that are closer are one
MOST_LINES = 1_000_000


def margins(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """By how much each example's own class beats the best other one.

    Args:
        logits: outputs, shape (examples, classes), at least 2 classes.
        labels: class per example, shape (examples,).

    Returns:
        Logit of the label minus the largest other logit, shape (examples,); negative where the network is wrong.

    Examples:
        >>> margins(np.array([[3.0, 1.0], [0.0, 4.0]]), np.array([0, 0])).tolist()
        [2.0, -4.0]
    """
    others = logits.copy()
    own = np.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
    np.put_along_axis(others, labels[:, None], -np.inf, axis=1)
    return own - others.max(axis=1)


def spectral_norms(weights: Sequence[Any]) -> np.ndarray:
    """The spectral norm of every layer: by how much it stretches its input at most.

    Their product bounds how much the network's outputs change when its input does (ReLU stretches nothing); their sum
    is a measure of its own.

    Args:
        weights: one matrix per layer, first layer first, shape (outputs, inputs) as PyTorch keeps them.

    Returns:
        Largest singular value per layer, shape (layers,), >= 0; 0 for a layer without weights.

    Raises:
        ValueError: there is no layer, a matrix is not finite, or the outputs of a layer are not the inputs of the next.

    Examples:
        >>> norms = spectral_norms([[[3.0, 0.0], [0.0, 1.0]], [[0.0, 2.0]]])
        >>> norms.tolist(), float(norms.prod()), float(norms.sum())
        ([3.0, 2.0], 6.0, 5.0)

    References:
        Bartlett, Foster and Telgarsky (2017), arXiv:1706.08498; product and sum as measures: Jiang et al. (2020),
        arXiv:1912.02178.
    """
    return np.array([np.linalg.norm(one, 2) if one.size else 0.0 for one in _as_matrices(weights)])


def path_norm(weights: Sequence[Any], biases: Sequence[Any] | None = None) -> float:
    """The l2 path norm: all ways through the network, each with the product of its squared weights.

    sqrt(sum over paths of prod over the path's weights w of w^2), from any input to any output, computed as what the
    network of squared parameters gives out for an input of ones. It does not change when a neuron's incoming weights
    (and its bias) are multiplied and its outgoing weights divided by the same positive number, which leaves a ReLU
    network's function as it is.

    Args:
        weights: one matrix per layer, first layer first, shape (outputs, inputs).
        biases: one vector per layer, shape (outputs,), each number a path that begins at its neuron; None leaves them
            out.

    Returns:
        >= 0.

    Raises:
        ValueError: shapes do not fit, a number is not finite, or the norm is too large for a float.

    Examples:
        >>> path_norm([[[3.0], [4.0]], [[1.0, 1.0]]])
        5.0

    References:
        Neyshabur, Tomioka and Srebro (2015), arXiv:1503.00036; with biases: Jiang et al. (2020), arXiv:1912.02178.
    """
    matrices = _as_matrices(weights)
    shifts = [np.zeros(len(one)) for one in matrices] if biases is None else _as_biases(biases, matrices)
    reached = np.ones(matrices[0].shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for matrix, shift in zip(matrices, shifts, strict=True):
            reached = matrix**2 @ reached + shift**2
        norm = float(np.sqrt(reached.sum()))
    if not np.isfinite(norm):
        raise ValueError("weights must have a path norm within the range of float64, received larger ones")
    return norm


def normalised_margins(logits: Any, labels: Any, weights: Sequence[Any]) -> np.ndarray:
    """Output margins over the product of the layers' spectral norms.

    gamma_e / prod_l s_l, with gamma_e the logit of example e's own class minus the largest other one and s_l the
    spectral norm of layer l. A network whose weights are all doubled has larger margins, but no larger normalised ones.

    Args:
        logits: outputs, shape (examples, classes), finite; at least two classes.
        labels: class per example, shape (examples,), integers from 0 to classes - 1.
        weights: one matrix per layer, first layer first, shape (outputs, inputs); the last has one output per class.

    Returns:
        Per example, shape (examples,), in units of the inputs; negative where the network is wrong. Usually a low
        quantile or the median is reported.

    Raises:
        ValueError: shapes do not fit, a number is not finite, a label is no class, or the product of spectral norms is
            0 or too large for a float.

    Examples:
        >>> normalised_margins([[3.0, 1.0], [0.0, 4.0]], [0, 0], [[[2.0], [0.0]]]).tolist()
        [1.0, -2.0]

    References:
        Bartlett, Foster and Telgarsky (2017), arXiv:1706.08498; their bound also has a factor of (2, 1) norms, which is
        left out here as in Jiang et al. (2020), arXiv:1912.02178.
    """
    outputs, matrices = as_table(logits, "logits", "(examples, classes)"), _as_matrices(weights)
    if outputs.shape[1] < 2 or outputs.shape[1] != len(matrices[-1]):
        found = f"{outputs.shape} for {len(matrices[-1])} outputs of the last layer"
        raise ValueError(f"logits must have one column per output, at least 2, received shape {found}")
    classes = as_labels(labels, len(outputs))
    if classes.size and not 0 <= classes.min() <= classes.max() < outputs.shape[1]:
        found = f"{classes.min()} to {classes.max()}"
        raise ValueError(f"labels must be from 0 to {outputs.shape[1] - 1}, a column of logits each, received {found}")
    with np.errstate(over="ignore", under="ignore"):
        stretch = spectral_norms(matrices).prod()
        found = margins(outputs, classes) / stretch if stretch > 0 else np.array([np.inf])
    if not (np.isfinite(stretch) and np.isfinite(found).all()):
        raise ValueError(f"weights must have a product of spectral norms that can be divided by, received {stretch:g}")
    return found


def regions_between(weights: Sequence[Any], biases: Sequence[Any], start: Any, end: Any) -> int:
    """How many activation regions of a ReLU network a straight line from one input to another goes through.

    On an activation region the same hidden neurons are active, so the network is linear there. Along a line every
    pre-activation is linear piece by piece; the pieces are followed exactly through the layers and split where a
    pre-activation crosses 0, nothing is sampled.

    Args:
        weights: one matrix per layer, first layer first, shape (outputs, inputs); ReLU follows all but the last.
        biases: one vector per layer, shape (outputs,).
        start: input at which the line begins, shape (inputs,), finite.
        end: input at which it ends, shape (inputs,).

    Returns:
        At least 1. Crossings closer than 1e-12 of the line's length count as one.

    Raises:
        ValueError: shapes do not fit, or a number is not finite or too large to be followed.

    Examples:
        >>> regions_between([[[1.0]], [[1.0]]], [[0.0], [0.0]], start=[-1.0], end=[1.0])
        2

    References:
        Hanin and Rolnick (2019), arXiv:1906.00904 (activation regions) and arXiv:1901.09021 (along lines).
    """
    matrices = _as_matrices(weights)
    shifts = _as_biases(biases, matrices)
    ends = [_as_input(one, name, matrices) for one, name in ((start, "start"), (end, "end"))]
    return _regions(matrices, shifts, *ends)


def linear_regions(
    weights: Sequence[Any], biases: Sequence[Any], inputs: Any, rng: np.random.Generator | int, lines: int = 100
) -> np.ndarray:
    """How many activation regions lie on random lines between inputs.

    Each line joins two different examples, drawn at random, see :func:`regions_between`.

    Args:
        weights: one matrix per layer, first layer first, shape (outputs, inputs); ReLU follows all but the last.
        biases: one vector per layer, shape (outputs,).
        inputs: as the network gets them, shape (examples, inputs), finite; at least two examples.
        rng: source of randomness: a generator, or a seed.
        lines: how many, from 1 to 1,000,000.

    Returns:
        Regions per line, shape (lines,), int64, at least 1.

    Raises:
        ValueError: shapes do not fit, a number is not finite or too large to be followed, there are fewer than two
            examples, or `lines` is out of range.

    Examples:
        >>> linear_regions([[[1.0]], [[1.0]]], [[0.0], [0.0]], [[-1.0], [1.0]], rng=0, lines=3).tolist()
        [2, 2, 2]

    References:
        Hanin and Rolnick (2019), arXiv:1906.00904 and arXiv:1901.09021.
    """
    matrices = _as_matrices(weights)
    shifts = _as_biases(biases, matrices)
    points, source = as_table(inputs, "inputs", "(examples, inputs)"), as_rng(rng)
    if len(points) < 2 or points.shape[1] != matrices[0].shape[1]:
        wanted = f"(examples, {matrices[0].shape[1]}) with at least two examples"
        raise ValueError(f"inputs must have shape {wanted}, received {points.shape}")
    pairs = [source.choice(len(points), 2, replace=False) for _ in range(as_count(lines, "lines", most=MOST_LINES))]
    return np.array([_regions(matrices, shifts, *points[pair]) for pair in pairs], dtype=np.int64)


def _regions(weights: list[np.ndarray], biases: list[np.ndarray], start: np.ndarray, end: np.ndarray) -> int:
    """Pieces of the line from t = 0 to 1; on each, what a layer gives out is offset + t * slope."""
    offset, slope, cuts = start[None], (end - start)[None], np.array([0.0, 1.0])
    with np.errstate(all="ignore"):
        for matrix, bias in zip(weights[:-1], biases[:-1], strict=True):
            offset, slope = offset @ matrix.T + bias, slope @ matrix.T
            if not (np.isfinite(offset).all() and np.isfinite(slope).all()):
                raise ValueError("weights and biases must give finite pre-activations, received larger ones")
            crossings = -offset / slope
            within = (crossings > cuts[:-1, None] + TOUCH) & (crossings < cuts[1:, None] - TOUCH)
            finer = np.sort(np.concatenate([cuts, crossings[within]]))
            finer = finer[np.r_[True, np.diff(finer) > TOUCH]]
            middle = (finer[1:] + finer[:-1]) / 2
            piece = np.searchsorted(cuts, middle) - 1
            offset, slope, cuts = offset[piece], slope[piece], finer
            active = offset + middle[:, None] * slope > 0
            offset, slope = offset * active, slope * active
    return len(cuts) - 1


def _as_matrices(weights: Any) -> list[np.ndarray]:
    """Matrices of layers that follow each other."""
    matrices = [as_table(one, "weights", "(outputs, inputs)") for one in _as_list(weights, "weights")]
    for number, (before, after) in enumerate(pairwise(matrices), 1):
        if after.shape[1] != len(before):
            found = f"{len(before)} outputs of layer {number} and {after.shape[1]} inputs of layer {number + 1}"
            raise ValueError(f"weights must fit together, received {found}")
    return matrices


def _as_biases(biases: Any, matrices: list[np.ndarray]) -> list[np.ndarray]:
    vectors = [as_series(one, "biases") for one in _as_list(biases, "biases")]
    wanted, found = [len(matrix) for matrix in matrices], [vector.size for vector in vectors]
    if found != wanted:
        raise ValueError(f"biases must hold vectors of {shown(wanted)} numbers, received {shown(found)}")
    return vectors


def _as_input(values: Any, name: str, matrices: list[np.ndarray]) -> np.ndarray:
    point = as_series(values, name)
    if point.size != matrices[0].shape[1]:
        raise ValueError(f"{name} must have shape ({matrices[0].shape[1]},), received {point.shape}")
    return point


def _as_list(values: Any, name: str) -> list[Any]:
    if not isinstance(values, Sequence) or isinstance(values, str | bytes) or not len(values):
        raise ValueError(f"{name} must be a list with one array per layer, received {type(values).__name__}")
    return list(values)
