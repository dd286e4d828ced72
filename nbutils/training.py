"""Training networks, epoch by epoch, the same way every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from nbutils.architectures import stack_size
from nbutils.datasets import Dataset
from nbutils.stacks import Stack

__all__ = ["Epoch", "TrainingSettings", "one_thread", "score", "train"]


@dataclass(frozen=True)
class TrainingSettings:
    """Adam with a fixed learning rate; the paper uses batches of 32 and Keras' default rate of 0.001."""

    epochs: int = 10
    batch_size: int = 32
    learning_rate: float = 0.001


@dataclass(frozen=True)
class Epoch:
    """The network's state after an epoch; epoch 0 is the untrained network. All values in evaluation mode.

    Attributes:
        epoch: number of passes over the training set so far.
        train_loss: cross-entropy in nats over the training set with the given labels.
        train_accuracy: share of the training set predicted as given.
        true_accuracy: share of the training set whose *true* label is predicted; differs under label noise.
        test_loss: cross-entropy over the test set.
        test_accuracy: share of the test set predicted right.
        parameter_norm: Euclidean norm of all parameters.
        distance: Euclidean distance of all parameters from their initial values.
    """

    epoch: int
    train_loss: float
    train_accuracy: float
    true_accuracy: float
    test_loss: float
    test_accuracy: float
    parameter_norm: float
    distance: float


@contextmanager
def one_thread() -> Iterator[None]:
    """One compute thread inside: the order of a float sum, and so the result, must not depend on the machine's load."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    models: Sequence[nn.Module], data: Sequence[Dataset], settings: TrainingSettings, seeds: Sequence[int]
) -> Iterator[int]:
    """Train networks of one shape side by side, in place, each as if it were alone.

    Yields before training and after every epoch, so that the caller can look inside.

    Args:
        models: fully connected ReLU networks from (examples, pixels) to (examples, classes), alike and on one device;
            see :class:`nbutils.stacks.Stack`.
        data: what each network trains on: `train_labels`, the labels as given, and images that all share.
        settings: optimiser and length.
        seeds: seed of each network's order of examples and of its dropout; drawn on the processor whatever the device.

    Yields:
        The number of finished epochs: 0, 1, ..., `settings.epochs`.

    Raises:
        ValueError: models, data and seeds are not equally many, the models differ, or the images do.

    Examples:
        >>> from nbutils.datasets import load_dataset
        >>> list(train([nn.Linear(64, 10)], [load_dataset("digits")], TrainingSettings(epochs=2), seeds=[0]))
        [0, 1, 2]
    """
    models, data, seeds = list(models), list(data), list(seeds)
    if not len(models) == len(data) == len(seeds) > 0:
        raise ValueError(f"received {len(models)} models, {len(data)} data sets and {len(seeds)} seeds")
    if any(one.train_pixels is not data[0].train_pixels for one in data):
        raise ValueError("networks that are trained side by side must share their images")
    device = next(models[0].parameters()).device
    if len(models) < 2 <= stack_size(sum(p.numel() for p in models[0].parameters()), device.type):
        # A batch of one matrix would be multiplied in another way, with other roundings: a twin keeps it company.
        models, data, seeds = [*models, deepcopy(models[0])], data * 2, seeds * 2
    pixels = torch.from_numpy(data[0].train_pixels).to(device)
    labels = torch.from_numpy(np.stack([one.train_labels for one in data])).to(device)
    stack, orders = Stack(models, settings.learning_rate), [torch.Generator().manual_seed(seed) for seed in seeds]
    yield 0
    for epoch in range(1, settings.epochs + 1):
        order = torch.stack([torch.randperm(len(pixels), generator=generator) for generator in orders]).to(device)
        luck = [np.random.default_rng([seed, epoch]) for seed in seeds]
        for batch in order.split(settings.batch_size, dim=1):
            inputs = pixels[batch].float().div_(data[0].levels)
            stack.step(inputs, labels.gather(1, batch), _kept(stack, luck, batch))
        yield epoch


def _kept(stack: Stack, luck: Sequence[np.random.Generator], batch: torch.Tensor) -> list[torch.Tensor]:
    """Which outputs of each hidden layer each network keeps under dropout, from that network's own luck."""
    if not any(stack.dropout):
        return []
    kept = []
    for width, share in zip(stack.widths, stack.dropout, strict=True):
        drawn = np.stack([rng.random((batch.shape[1], width), np.float32) >= share for rng in luck])
        kept.append(torch.from_numpy(drawn).to(batch.device))
    return kept


def score(logits: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean cross-entropy in nats, and accuracy, of a network's outputs.

    Args:
        logits: outputs, shape (examples, classes).
        labels: class per example, shape (examples,).

    Returns:
        (loss, accuracy).

    Examples:
        >>> score(np.array([[0.0, 0.0], [9.0, -9.0]], dtype="f4"), np.array([1, 0]))[1]
        0.5
    """
    loss = cross_entropy(torch.from_numpy(logits), torch.from_numpy(labels)).item()
    return loss, float((logits.argmax(axis=1) == labels).mean())
