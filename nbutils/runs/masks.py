"""Which weights of a trained network each class needs: binary masks on frozen weights, one per class left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nbutils.runs.weights import _as_biases, _as_matrices
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_labels, as_table, is_number, shown

if TYPE_CHECKING:
    import torch

FIRST = 2.0  # logit of every weight before its mask is trained: kept with probability .88
WAY = 20.0  # how far a logit could go in all steps of Adam together; the paper takes 20,000 steps of .001
NOT_NEEDED = -1
MOST_STEPS = 1_000_000
MOST_AT_ONCE = 1_000_000  # examples of a batch
LARGEST = 1e15  # what outputs may reach, so that single precision holds the squares of slopes


@checked
@dataclass(frozen=True)
class ClassMasks:
    """Masks on the weights of a network, and what they say of its neurons.

    Attributes:
        classes: the classes left out, in rising order, shape (classes,).
        reference: weights kept for all classes, boolean, one array (outputs, inputs) per layer.
        masks: weights kept with a class left out, boolean, one array (classes, outputs, inputs) per layer.
        overlap: of the masks of two classes, see :func:`mask_overlap`, shape (classes, classes).
        needed: share of each hidden neuron's weights that only a class needs, see :func:`neuron_needs`, shape
            (classes, neurons).
        partition: for each hidden neuron the class that needs it most, shape (neurons,); -1 for one that no class
            needs.
        reference_accuracy: of each class under the reference, shape (classes,).
        accuracy: of each class (column) under the mask of each class left out (row), shape (classes, classes).
    """

    classes: np.ndarray
    reference: tuple[np.ndarray, ...]
    masks: tuple[np.ndarray, ...]
    overlap: np.ndarray
    needed: np.ndarray
    partition: np.ndarray
    reference_accuracy: np.ndarray
    accuracy: np.ndarray


def class_masks(
    weights: Sequence[Any],
    biases: Sequence[Any],
    inputs: Any,
    labels: Any,
    steps: int = 300,
    strength: float = 1e-5,
    batch_size: int = 128,
    seed: int = 0,
) -> ClassMasks:
    """Find the weights that a class alone needs, by masks on frozen weights: functional modularity.

    Every weight w has a logit l. In each step it is kept, times 1, if l + noise > 0 with standard logistic noise, else
    it is 0; the slope is that of sigmoid(l + noise), the straight-through Gumbel-sigmoid. Adam lowers the mean
    cross-entropy of a batch plus `strength` times the sum of all logits, so that weights without use are removed.
    After training, weights with l > 0 are kept; biases always are.

    The paper's variant for classes, which *removes* one: a reference mask is trained on all classes, then one mask per
    class on the examples of all *other* classes. Weights that the reference keeps and a class's mask does not are those
    that this class alone needs. The output layer of every class's mask is the reference's, for there each class has its
    own weights by construction. Unlike the paper, which takes 20,000 steps and several noisy masks per batch, a few
    hundred longer steps with one each are taken, to the same total length.

    Args:
        weights: one matrix per layer, first layer first, shape (outputs, inputs); ReLU follows all but the last, and
            there is at least one hidden layer.
        biases: one vector per layer, shape (outputs,).
        inputs: as the network gets them, shape (examples, inputs), finite.
        labels: class per example, shape (examples,), integers from 0 to outputs - 1; at least two classes.
        steps: batches per mask.
        strength: of the pull on every logit, in nats, >= 0. Larger ones keep fewer weights. Compare
            `reference_accuracy` with the network's own: far below, the pull is too strong; above it, masks have learnt
            from the labels what the network had not, and its own predictions are better labels.
        batch_size: examples per step, drawn with replacement.
        seed: of batches and noise.

    Returns:
        :class:`ClassMasks`, the same for the same seed. To compare its partition with communities, use
        :func:`nbutils.tracking.compare_partitions`, whose `agreement` is the adjusted mutual information over the
        neurons that both place. A network of 784-256-128-10 takes about 25 s of one core, whatever the number of
        examples, and one of twice as many weights twice as long.

    Raises:
        ValueError: shapes do not fit, a number is not finite, a label is no output, or an option is out of range.

    Examples:
        >>> alone = np.eye(3)  # each class has an input and a hidden neuron of its own
        >>> found = class_masks([5 * alone, alone], [np.zeros(3)] * 2, alone, [0, 1, 2], strength=1e-3, batch_size=8)
        >>> found.partition.tolist()
        [0, 1, 2]

    References:
        Csordas, van Steenkiste and Schmidhuber (2021), arXiv:2010.02066. Gumbel noise: Maddison, Mnih and Teh (2017),
        arXiv:1611.00712; Jang, Gu and Poole (2017), arXiv:1611.01144.
    """
    matrices = _as_matrices(weights)
    shifts, points = _as_biases(biases, matrices), as_table(inputs, "inputs", "(examples, inputs)")
    if len(matrices) < 2:
        raise ValueError(f"weights must have at least one hidden layer, received {len(matrices)} layer")
    if not len(points) or points.shape[1] != matrices[0].shape[1]:
        wanted = f"(examples, {matrices[0].shape[1]}) with at least one example"
        raise ValueError(f"inputs must have shape {wanted}, received {points.shape}")
    given = as_labels(labels, len(points))
    if (number := len(np.unique(given))) < 2:
        raise ValueError(f"labels must hold at least two classes, received {number}")
    if given.min() < 0 or given.max() >= len(matrices[-1]):
        found = f"{given.min()} to {given.max()}"
        raise ValueError(f"labels must be from 0 to {len(matrices[-1]) - 1}, an output each, received {found}")
    if not is_number(strength) or strength < 0:
        raise ValueError(f"strength must be a finite number of at least 0, received {shown(strength)}")
    if _reach(matrices, shifts, points) > LARGEST:
        raise ValueError(f"weights, biases and inputs must give outputs within {LARGEST:g} of 0, received larger ones")
    batch_size = as_count(batch_size, "batch_size", most=MOST_AT_ONCE)
    options = as_count(steps, "steps", most=MOST_STEPS), float(strength), batch_size
    return _masks(matrices, shifts, points, given, options, as_count(seed, "seed", 0, 2**63 - 1))


def mask_overlap(masks: Sequence[np.ndarray]) -> np.ndarray:
    """How much pairs of masks share: weights kept by both, of those kept by either (intersection over union).

    Args:
        masks: boolean, one array (masks, outputs, inputs) per layer.

    Returns:
        Shape (masks, masks), in [0, 1], symmetric; 1 for two masks that both keep nothing.

    Examples:
        >>> mask_overlap([np.array([[[1, 1, 0]], [[0, 1, 1]]], bool)])[0]
        array([1.        , 0.33333333])
    """
    flat = np.concatenate([one.reshape(len(one), -1) for one in masks], axis=1).astype(np.float64)
    both, size = flat @ flat.T, flat.sum(axis=1)
    either = size[:, None] + size - both
    return np.divide(both, either, out=np.ones_like(both), where=either > 0)


def neuron_needs(reference: Sequence[np.ndarray], masks: Sequence[np.ndarray]) -> np.ndarray:
    """Share of each hidden neuron's weights that are removed when a class is left out.

    The weights of a neuron are those into it and out of it that the reference keeps. The output layer's are left out:
    all masks keep the same there.

    Args:
        reference: boolean, one array (outputs, inputs) per layer.
        masks: boolean, one array (classes, outputs, inputs) per layer.

    Returns:
        Shape (classes, hidden neurons, first layer first), in [0, 1]; 0 where the reference keeps no weight.

    Examples:
        >>> kept = np.array([[True, True], [True, False]])
        >>> lost = np.array([[[True, False], [True, False]]])
        >>> neuron_needs([kept, kept], [lost, lost]).tolist()
        [[0.5, 0.0]]
    """
    shares = []
    for layer in range(len(reference) - 1):
        whole, gone = (one(layer) for one in (reference.__getitem__, lambda n: reference[n] & ~masks[n]))
        whole, gone = whole.sum(axis=1), gone.sum(axis=2)
        if layer + 2 < len(reference):
            whole = whole + reference[layer + 1].sum(axis=0)
            gone = gone + (reference[layer + 1] & ~masks[layer + 1]).sum(axis=1)
        shares.append(np.divide(gone, whole, out=np.zeros(gone.shape), where=whole > 0))
    return np.concatenate(shares, axis=1)


def _reach(weights: list[np.ndarray], biases: list[np.ndarray], inputs: np.ndarray) -> float:
    """The largest output that any mask could give, or more; infinite beyond the range of floats."""
    reached = np.abs(inputs).max(axis=0, initial=0)
    with np.errstate(over="ignore", invalid="ignore"):
        for matrix, shift in zip(weights, biases, strict=True):
            reached = np.abs(matrix) @ reached + np.abs(shift)
        return float(np.nan_to_num(reached, nan=np.inf).max(initial=0))


def _masks(
    weights: list[np.ndarray],
    biases: list[np.ndarray],
    inputs: np.ndarray,
    labels: np.ndarray,
    options: tuple[int, float, int],
    seed: int,
) -> ClassMasks:
    import torch

    from nbutils.runs.training import one_thread

    with one_thread():
        luck = torch.Generator().manual_seed(seed)
        parts = [[torch.from_numpy(one).float() for one in several] for several in (weights, biases)]
        network = _Masked(*parts, luck)
        points, given = torch.from_numpy(inputs).float(), torch.from_numpy(labels)
        names = np.unique(labels)
        reference = network.train(points, given, *options)
        found = [network.train(points[given != k], given[given != k], *options, last=reference[-1]) for k in names]
        right = [network.right(points, given, masks) for masks in (reference, *found)]
    rates = np.array([[one[labels == k].mean() for k in names] for one in right])
    kept = tuple(one.numpy() for one in reference)
    masks = tuple(np.stack([one[layer].numpy() for one in found]) for layer in range(len(weights)))
    needed = neuron_needs(kept, masks)
    partition = np.where(needed.max(axis=0) > 0, names[needed.argmax(axis=0)], NOT_NEEDED)
    return ClassMasks(names, kept, masks, mask_overlap(masks[:-1]), needed, partition, rates[0], rates[1:])


class _Masked:
    """A network whose weights stay as they are, and masks on them."""

    def __init__(self, weights: list[torch.Tensor], biases: list[torch.Tensor], luck: torch.Generator) -> None:
        self._weights, self._biases, self._luck = weights, biases, luck

    def train(
        self,
        inputs: torch.Tensor,
        labels: torch.Tensor,
        steps: int,
        strength: float,
        batch_size: int,
        last: torch.Tensor | None = None,
    ) -> list[torch.Tensor]:
        """One mask per layer; that of the output layer may be given."""
        import torch
        from torch.nn.functional import cross_entropy

        trained = self._weights if last is None else self._weights[:-1]
        logits = [torch.full_like(one, FIRST).requires_grad_() for one in trained]
        given = [] if last is None else [last]
        optimiser = torch.optim.Adam(logits, lr=WAY / steps)
        for _ in range(steps):
            batch = torch.randint(len(inputs), (batch_size,), generator=self._luck)
            outputs = self._outputs(inputs[batch], [*map(self._drawn, logits), *given])
            loss = cross_entropy(outputs, labels[batch]) + strength * sum(one.sum() for one in logits)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return [one.detach() > 0 for one in logits] + given

    def right(self, inputs: torch.Tensor, labels: torch.Tensor, masks: list[torch.Tensor]) -> np.ndarray:
        """Which examples are classified as labelled under masks."""
        return (self._outputs(inputs, masks).argmax(dim=1) == labels).numpy()

    def _drawn(self, logits: torch.Tensor) -> torch.Tensor:
        """Ones and zeros, with the slope of a sigmoid."""
        import torch

        # The difference of two Gumbel variables is logistic, which takes one uniform number instead of two.
        noise = torch.rand(logits.shape, generator=self._luck).logit_(eps=1e-7)
        soft = torch.sigmoid(logits + noise)
        return (soft.detach() > 0.5).float() + (soft - soft.detach())

    def _outputs(self, values: torch.Tensor, masks: list[torch.Tensor]) -> torch.Tensor:
        from torch.nn.functional import linear, relu

        for number, (weight, bias, mask) in enumerate(zip(self._weights, self._biases, masks, strict=True), 1):
            values = linear(values, weight * mask, bias)
            values = relu(values) if number < len(self._weights) else values
        return values
