"""Training one network, or several of one kind side by side, with the state after every epoch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch.optim.adam import adam

from nbutils.data.datasets import Dataset
from nbutils.runs.models import stack_size
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, is_number, shown

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
        margin: 10th percentile over the training set of :func:`nbutils.runs.weights.margins`, in logits.
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
            see :class:`nbutils.runs.training.Stack`.
        data: what each network trains on: `train_labels`, the labels as given, and images that all share.
        settings: optimiser and length.
        seeds: seed of each network's order of examples and of its dropout; drawn on the processor whatever the device.

    Yields:
        The number of finished epochs: 0, 1, ..., `settings.epochs`.

    Raises:
        ValueError: models, data and seeds are not equally many, the models differ, or the images do.

    Examples:
        >>> from nbutils.data.datasets import load_dataset
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
            chosen = pixels.index_select(0, batch.reshape(-1))
            inputs = chosen.float().div_(data[0].levels / settings.input_scale).view(*batch.shape, -1)
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


threshold_backward = torch.ops.aten.threshold_backward  # the slope where a ReLU let its input through, else 0
ALIGNED = 16  # numbers: libraries round alike only where every matrix begins at a multiple of 64 bytes


class Stack:
    """Fully connected ReLU networks of one shape; one step of Adam on cross-entropy for all of them at once.

    The models' parameters become views of the stack's, so that each model is up to date after every step.

    Args:
        models: made of `Linear`, `ReLU` and `Dropout` in sequence, the last layer linear; all alike, on one device.
        learning_rate: of Adam.

    Raises:
        ValueError: the models differ, or hold other layers.

    Examples:
        >>> models = [nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)) for _ in range(2)]
        >>> stack = Stack(models, learning_rate=0.001)
        >>> stack.step(torch.rand(2, 5, 3), torch.zeros(2, 5, dtype=torch.int64))
    """

    def __init__(self, models: Sequence[nn.Module], learning_rate: float) -> None:
        layers = [_layers(model) for model in models]
        kinds = {tuple((linear.weight.shape, dropout) for linear, dropout in one) for one in layers}
        if len(kinds) != 1:
            raise ValueError(f"models that are trained side by side must be alike, received {len(kinds)} kinds")
        self.dropout = [dropout for _, dropout in layers[0][:-1]]
        self.widths = [linear.out_features for linear, _ in layers[0][:-1]]
        shared = [[one[depth][0] for one in layers] for depth in range(len(layers[0]))]
        shapes = [(len(models), *p.shape) for same in shared for p in (same[0].weight, same[0].bias)]
        places = [shape[0] * _padded(prod(shape[1:])) for shape in shapes]
        first = next(models[0].parameters())
        values = torch.zeros(sum(places), dtype=first.dtype, device=first.device)
        slopes = torch.zeros_like(values)
        views = [_views(flat.split(places), shapes) for flat in (values, slopes)]
        for same, weights, biases in zip(shared, views[0][::2], views[0][1::2], strict=True):
            for number, linear in enumerate(same):
                for parameter, view in ((linear.weight, weights[number]), (linear.bias, biases[number])):
                    view.copy_(parameter.detach())
                    parameter.data = view
        self.weights, self.biases = views[0][::2], views[0][1::2]
        self._weight_slopes, self._bias_slopes = views[1][::2], views[1][1::2]
        moments = torch.zeros_like(values), torch.zeros_like(values), torch.zeros((), device=first.device)
        # The optimiser's own function: its class asks, at every step, what cannot have changed since the one before.
        self._adam = partial(
            adam,
            [values],
            [slopes],
            [moments[0]],
            [moments[1]],
            [],
            [moments[2]],
            fused=True,
            lr=learning_rate,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            weight_decay=0.0,
            amsgrad=False,
            maximize=False,
        )

    @torch.no_grad()
    def step(self, inputs: torch.Tensor, labels: torch.Tensor, kept: Sequence[torch.Tensor] = ()) -> None:
        """One step of every network on its own batch.

        Batches are filled up to a multiple of 16 examples that do not count, so that every matrix is aligned.

        Args:
            inputs: shape (networks, batch, values).
            labels: classes, shape (networks, batch), int64.
            kept: which outputs of each hidden layer dropout spares, boolean, shape (networks, batch, width); needed
                where the models have dropout.
        """
        batch = labels.shape[1]
        inputs, labels, *kept = (_filled(part) for part in (inputs, labels, *kept))
        outputs = [inputs]
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            output = torch.baddbmm(bias[:, None], outputs[-1], weight.transpose(1, 2))
            if depth < len(self.dropout):
                output.relu_()
                if share := self.dropout[depth]:
                    output.mul_(kept[depth]).div_(1 - share)
            outputs.append(output)
        # Backwards: the slope of mean cross-entropy at the outputs is (softmax - one-hot) / batch.
        slope = torch.softmax(outputs.pop(), dim=2)
        slope.scatter_add_(2, labels[:, :, None], slope.new_full((*labels.shape, 1), -1.0))
        slope /= batch
        if batch < slope.shape[1]:
            slope[:, batch:] = 0
        for depth in reversed(range(len(self.weights))):
            torch.bmm(slope.transpose(1, 2), outputs[depth], out=self._weight_slopes[depth])
            torch.sum(slope, dim=1, out=self._bias_slopes[depth])
            if depth:
                slope = threshold_backward(torch.bmm(slope, self.weights[depth]), outputs[depth], 0)
                if share := self.dropout[depth - 1]:
                    slope.div_(1 - share)
        self._adam()


def _layers(model: nn.Module) -> list[tuple[nn.Linear, float]]:
    """Linear layers in order, each with the dropout that follows it."""
    leaves = [module for module in model.modules() if not any(True for _ in module.children())]
    letters = "".join({nn.Linear: "L", nn.ReLU: "R", nn.Dropout: "D"}.get(type(leaf), "?") for leaf in leaves)
    if not re.fullmatch("(LRD?)*L", letters) or any(isinstance(x, nn.Linear) and x.bias is None for x in leaves):
        names = ", ".join(type(leaf).__name__ for leaf in leaves)
        raise ValueError(f"a model must be Linear, ReLU, perhaps Dropout, ..., Linear with biases; this has {names}")
    found = []
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, nn.Linear):
            after = leaves[place + 2] if letters[place + 2 : place + 3] == "D" else None
            found.append((leaf, after.p if after else 0.0))
    return found


def _filled(part: torch.Tensor) -> torch.Tensor:
    """(networks, batch, ...) with zeros up to the next multiple of 16 examples."""
    missing = -part.shape[1] % ALIGNED
    return torch.cat([part, part.new_zeros(len(part), missing, *part.shape[2:])], dim=1) if missing else part


def _padded(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


def _views(parts: Sequence[torch.Tensor], shapes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
    """Each part as (networks, ...), without the gaps that keep matrices aligned."""
    return [
        part.view(shape[0], -1)[:, : prod(shape[1:])].unflatten(1, shape[1:])
        for part, shape in zip(parts, shapes, strict=True)
    ]
