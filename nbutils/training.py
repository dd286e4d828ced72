"""Training networks, epoch by epoch, the same way every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from nbutils.architectures import stack_size
from nbutils.arguments import checked
from nbutils.arrays import as_count, is_number, shown
from nbutils.datasets import Dataset
from nbutils.stacks import Stack

__all__ = ["Epoch", "TrainingSettings", "margins", "one_thread", "score", "sharpness", "train"]

SHAKES = 3  # draws of the noise of `sharpness`


@checked
@dataclass(frozen=True)
class TrainingSettings:
    """Adam with a fixed learning rate; the paper uses batches of 32 and Keras' default rate of 0.001.

    `input_scale` multiplies the images, which lie between 0 and 1.

    Raises:
        ValueError: `epochs` is negative, `batch_size` below 1, or a number not finite and above 0.
    """

    epochs: int = 10
    batch_size: int = 32
    learning_rate: float = 0.001
    input_scale: float = 1.0

    def __post_init__(self) -> None:
        as_count(self.epochs, "epochs", 0)
        as_count(self.batch_size, "batch_size")
        for name in ("learning_rate", "input_scale"):
            value = getattr(self, name)
            if not is_number(value) or value <= 0:
                raise ValueError(f"{name} must be a finite number above 0, received {shown(value)}")


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
        margin: 10th percentile over the training set of :func:`margins`, in logits.
        sharpness: rise of the loss over the probe set, see :func:`sharpness`, in nats.
        effective_rank: of the last hidden layer over the probe set, see :func:`nbutils.activations.effective_rank`.
    """

    epoch: int
    train_loss: float
    train_accuracy: float
    true_accuracy: float
    test_loss: float
    test_accuracy: float
    parameter_norm: float
    distance: float
    margin: float
    sharpness: float
    effective_rank: float


@contextmanager
def one_thread() -> Iterator[None]:
    """One compute thread inside: the order of a float sum, and so the result, must not depend on the machine's load."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@checked
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
        found = f"{len(models)} models, {len(data)} data sets and {len(seeds)} seeds"
        raise ValueError(f"models, data and seeds must be equally many, received {found}")
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
            inputs = pixels[batch].float().div_(data[0].levels / settings.input_scale)
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


@torch.no_grad()
def sharpness(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, share: float = 0.2) -> float:
    """How much the loss rises when every parameter is disturbed in proportion to its size.

    Mean over three draws of L(w (1 + share * e)) - L(w), e standard normal, one number per parameter; the same draws
    for every network of one shape, so that networks can be compared.

    Args:
        model: any network; it is left as it is, and runs in its present mode.
        inputs: examples.
        labels: class per example, shape (examples,).
        share: standard deviation of the disturbance, relative to each parameter.

    Returns:
        Nats; about 0 in a flat minimum, and negative where disturbing happens to help.

    Examples:
        >>> sharpness(nn.Linear(3, 2), torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64), share=0.0)
        0.0

    References:
        Magnitude-aware sharpness: Jiang et al. (2020), arXiv:1912.02178.
    """
    source, rises = torch.Generator().manual_seed(0), []
    before = cross_entropy(model(inputs), labels)
    for _ in range(SHAKES):
        shaken = {
            name: values * (1 + share * torch.randn(values.shape, generator=source).to(values.device))
            for name, values in model.named_parameters()
        }
        rises.append(cross_entropy(functional_call(model, shaken, (inputs,)), labels) - before)
    return float(torch.stack(rises).mean())
