"""Training one network, epoch by epoch, the same way every time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from nbutils.datasets import Dataset

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


def train(model: nn.Module, data: Dataset, settings: TrainingSettings, seed: int) -> Iterator[int]:
    """Train in place; yields before training and after every epoch, so that the caller can look inside.

    Args:
        model: maps (examples, pixels) to (examples, classes).
        data: training uses `train_labels`, the labels as given.
        settings: optimiser and length.
        seed: seed of the order of the examples and of dropout.

    Yields:
        The number of finished epochs: 0, 1, ..., `settings.epochs`.

    Examples:
        >>> from nbutils.datasets import load_dataset
        >>> list(train(nn.Linear(64, 10), load_dataset("digits"), TrainingSettings(epochs=2), seed=0))
        [0, 1, 2]
    """
    inputs, labels = torch.from_numpy(data.train_inputs), torch.from_numpy(data.train_labels)
    order = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate, fused=True)
    yield 0
    for epoch in range(1, settings.epochs + 1):
        model.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed((1_000_003 * seed + epoch) % 2**31)  # dropout has no generator argument of its own
            for batch in torch.randperm(len(inputs), generator=order).split(settings.batch_size):
                loss = cross_entropy(model(inputs[batch]), labels[batch])
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
        yield epoch


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
