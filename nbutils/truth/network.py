"""The network of a planted task: two hidden layers and a head for each answer, trained with plain Adam."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

__all__ = ["WIDTHS", "Trained", "train_heads"]

WIDTHS = (256, 128)
BATCH, RATE = 128, 1e-3


@dataclass(frozen=True)
class Trained:
    """A network after training.

    Attributes:
        weights: of each layer, the heads last, side by side.
        biases: likewise.
        widths: classes of each head.
        reason: why training failed; empty if it did not.
    """

    weights: tuple[torch.Tensor, ...]
    biases: tuple[torch.Tensor, ...]
    widths: tuple[int, ...]
    reason: str

    def hidden(self, inputs: np.ndarray) -> np.ndarray:
        """Activations of all hidden neurons, shape (pictures, neurons)."""
        return np.concatenate(self._layers(inputs)[0], axis=1)

    def answers(self, inputs: np.ndarray) -> np.ndarray:
        """Answer of each head, shape (pictures, heads)."""
        scores = self._layers(inputs)[1]
        ends = np.cumsum(self.widths)
        return np.stack([part.argmax(axis=1) for part in np.split(scores, ends[:-1], axis=1)], axis=1)

    def _layers(self, inputs: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        import torch

        found, values = [], torch.from_numpy(np.ascontiguousarray(inputs))
        with torch.no_grad():
            for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
                values = torch.relu(torch.nn.functional.linear(values, weight, bias))
                found.append(values.numpy())
            return found, torch.nn.functional.linear(values, self.weights[-1], self.biases[-1]).numpy()


def train_heads(
    inputs: np.ndarray,
    targets: np.ndarray,
    seed: int,
    epochs: int = 8,
    widths: tuple[int, ...] = WIDTHS,
    first: np.ndarray | None = None,
) -> Trained:
    """Train a network with a head for each column of targets; the loss is the sum of their cross-entropies.

    Args:
        inputs: float32, shape (pictures, pixels).
        targets: class that each head should give, shape (pictures, heads), from 0.
        seed: of weights and batches.
        epochs: passes over the pictures; 0 leaves the network as it is drawn.
        widths: of the hidden layers.
        first: pixels of the first half, boolean, for a network of two halves that share no weight; each half is half
            of every layer, and has one of two heads. None wires everything with everything.

    Returns:
        A :class:`Trained`; with a `reason` if the loss was no finite number.

    Examples:
        >>> inputs = np.eye(4, dtype=np.float32)
        >>> found = train_heads(inputs, np.array([[0, 1], [1, 1], [0, 0], [1, 0]]), seed=0, epochs=200, widths=(16,))
        >>> found.answers(inputs).tolist()
        [[0, 1], [1, 1], [0, 0], [1, 0]]
    """
    import torch

    source = torch.Generator().manual_seed(seed)
    heads = tuple(int(n) + 1 for n in targets.max(axis=0))
    sizes = (inputs.shape[1], *widths, sum(heads))
    masks = _masks(sizes, heads, first)
    weights = [_drawn((b, a), a, source) for a, b in pairwise(sizes)]
    biases = [_drawn((b,), a, source) for a, b in pairwise(sizes)]
    _mask(weights, masks)
    optimiser = torch.optim.Adam([*weights, *biases], lr=RATE, fused=True)
    values, wanted, reason = torch.from_numpy(inputs), torch.from_numpy(targets.astype(np.int64)), ""
    for epoch in range(epochs):
        for batch in torch.randperm(len(values), generator=source).split(BATCH):
            optimiser.zero_grad()
            loss = _loss(values[batch], wanted[batch], weights, biases, heads)
            loss.backward()
            optimiser.step()
            _mask(weights, masks)
        if not torch.isfinite(loss):
            reason = f"the loss was {loss.item()} in epoch {epoch + 1}"
            break
    return Trained(tuple(w.detach() for w in weights), tuple(b.detach() for b in biases), heads, reason)


def _drawn(shape: tuple[int, ...], inputs: int, source: torch.Generator) -> torch.Tensor:
    """Weights as PyTorch's linear layers draw them: uniform within 1 / sqrt(inputs) of 0."""
    import torch

    bound = inputs**-0.5
    return ((torch.rand(shape, generator=source) * 2 - 1) * bound).requires_grad_()


def _loss(
    inputs: torch.Tensor,
    targets: torch.Tensor,
    weights: list[torch.Tensor],
    biases: list[torch.Tensor],
    heads: tuple[int, ...],
) -> torch.Tensor:
    import torch
    from torch.nn.functional import cross_entropy, linear

    values = inputs
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        values = torch.relu(linear(values, weight, bias))
    scores = linear(values, weights[-1], biases[-1]).split(heads, dim=1)
    return sum((cross_entropy(part, targets[:, k]) for k, part in enumerate(scores)), torch.zeros(()))


def _masks(sizes: tuple[int, ...], heads: tuple[int, ...], first: np.ndarray | None) -> list[torch.Tensor] | None:
    """Of each layer's weights, 1 where both ends lie in the same half."""
    import torch

    if first is None:
        return None
    if len(heads) != 2:
        raise ValueError(f"targets must have two columns for a network of two halves, received {len(heads)}")
    halves = [np.asarray(first, dtype=bool), *(np.arange(n) < n // 2 for n in sizes[1:-1])]
    halves.append(np.arange(sizes[-1]) < heads[0])
    return [torch.from_numpy((b[:, None] == a[None]).astype(np.float32)) for a, b in pairwise(halves)]


def _mask(weights: list[torch.Tensor], masks: list[torch.Tensor] | None) -> None:
    import torch

    if masks is not None:
        with torch.no_grad():
            for weight, mask in zip(weights, masks, strict=True):
                weight.mul_(mask)
