"""Training one network, or several of one kind side by side, with the state after every epoch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy
from torch.optim.adamw import adamw

from nbutils.data.datasets import Dataset
from nbutils.runs.conditions import ACTIVATIONS, CLIPPINGS, OPTIMISERS, SCHEDULES, raised, read_rule
from nbutils.runs.models import stack_size
from nbutils.runs.penalties import PENALTIES
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, is_number, shown

SHAKES = 3  # draws of the noise of `sharpness`
RULES = {"optimiser": OPTIMISERS, "schedule": SCHEDULES, "clipping": CLIPPINGS, "penalty": PENALTIES}
SLOWER = 0.1  # of the rate, with which layers go on that were frozen


@checked
@dataclass(frozen=True)
class TrainingSettings:
    """How a network is trained: Adam with a fixed learning rate, and nothing else, if nothing else is asked for.

    The paper uses batches of 32 and Keras' default rate of 0.001.

    Attributes:
        epochs: passes over the training set.
        batch_size: examples per step.
        learning_rate: of the optimiser; where a schedule changes it, the first one.
        input_scale: multiplies the images as the data set prepares them.
        weight_decay: w takes lr w of every parameter away before each step, apart from Adam's own slopes (AdamW,
            Loshchilov and Hutter 2019, arXiv:1711.05101).
        optimiser: "adam"; "sgd:<momentum>"; or "sam:<radius>", sharpness-aware minimisation on SGD with momentum 0.9
            (Foret et al. 2021, arXiv:2010.01412).
        schedule: of the learning rate at epoch t: "constant"; "power:<s>:<c>", eta / (1 + t / s)^c;
            "exponential:<s>", eta 0.1^(t / s); both go on with every step; "performance:<d>:<n>", divided by d whenever
            a validation metric has not risen for n epochs.
        clipping: of slopes: "none"; "value:<v>", each cut to [-v, v]; "norm:<v>", all made shorter together where
            their Euclidean norm exceeds v.
        l1: times the sum of all weights' sizes, added to the loss; biases and normalisations are left alone.
        l2: times half the sum of their squares, likewise.
        penalty: "none", or a measure of firing and the coefficient with which it is pushed up (positive) or down, such
            as "modularity:-0.3", see :mod:`nbutils.runs.penalties`.
        frozen_epochs: for so many epochs only the last layer learns; afterwards the last hidden one, too, both at a
            tenth of the rate. 0 means that all layers learn from the start.

    Raises:
        ValueError: a number is out of range or not finite, or no such optimiser, schedule, clipping or penalty.
    """

    epochs: int = 10
    batch_size: int = 32
    learning_rate: float = 0.001
    input_scale: float = 1.0
    weight_decay: float = 0.0
    optimiser: str = "adam"
    schedule: str = "constant"
    clipping: str = "none"
    l1: float = 0.0
    l2: float = 0.0
    penalty: str = "none"
    frozen_epochs: int = 0

    def __post_init__(self) -> None:
        as_count(self.epochs, "epochs", 0)
        as_count(self.batch_size, "batch_size")
        as_count(self.frozen_epochs, "frozen_epochs", 0)
        for name, rules in RULES.items():
            read_rule(getattr(self, name), rules, name)
        for name in ("learning_rate", "input_scale"):
            value = getattr(self, name)
            if not is_number(value) or value <= 0:
                raise ValueError(f"{name} must be a finite number above 0, received {shown(value)}")
        for name in ("weight_decay", "l1", "l2"):
            value = getattr(self, name)
            if not is_number(value) or value < 0:
                raise ValueError(f"{name} must be a finite number of at least 0, received {shown(value)}")

    @property
    def plain(self) -> bool:
        """Whether this is Adam with a fixed rate and nothing else, which networks can share side by side."""
        own = ("epochs", "batch_size", "learning_rate", "input_scale", "weight_decay")
        return self == TrainingSettings(**{name: getattr(self, name) for name in own})


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
    models: Sequence[nn.Module],
    data: Sequence[Dataset],
    settings: TrainingSettings | Sequence[TrainingSettings],
    seeds: Sequence[int],
    leaves: Callable[[int], bool] | None = None,
    metric: Callable[[int], float] | None = None,
    watch: Callable[[torch.Tensor, torch.Tensor], None] | None = None,
) -> Iterator[tuple[int, ...]]:
    """Train networks of one shape side by side, in place, each as if it were alone.

    Yields before training and whenever a network has finished an epoch, so that the caller can look inside. Networks
    may differ in all but the sizes of their layers and batches; one that has finished its epochs leaves the others.

    Args:
        models: networks from (examples, pixels) to (examples, classes) on one device: fully connected ones with ReLU,
            alike but for their dropout, see :class:`nbutils.runs.training.Stack`; or one of any other kind, or with
            settings that are not plain, see :class:`nbutils.runs.training.Single`.
        data: what each network trains on: `train_labels`, the labels as given, and images that are prepared alike.
        settings: optimiser and length, of all or of each, with batches of one size. Where training sets differ in size,
            each must be made of whole batches.
        seeds: seed of each network's order of examples and of its dropout; drawn on the processor whatever the device.
        leaves: asked after every yield whether a network, by its number from 0, ends before it has finished its epochs;
            None means that none does.
        metric: asked after every epoch of a network, by its number, for what the schedule "performance" watches; the
            larger the better.
        watch: called after every step with what it learned from: inputs, shape (networks, batch, values), and labels,
            shape (networks, batch), of the networks that still train; a small one that trains alone comes twice.

    Yields:
        How many epochs each network has finished: (0, 0), (1, 1), ..., or (0, 0), (1, 0), ... where they differ.

    Raises:
        ValueError: models, data, settings and seeds are not equally many, they differ in what must be alike, there is
            more than one of another kind, or a schedule watches a metric and there is none.

    Examples:
        >>> from nbutils.data.datasets import load_dataset
        >>> list(train([nn.Linear(64, 10)], [load_dataset("digits")], TrainingSettings(epochs=2), seeds=[0]))
        [(0,), (1,), (2,)]
    """
    models, data, seeds = list(models), list(data), list(seeds)
    each = [settings] * len(models) if isinstance(settings, TrainingSettings) else list(settings)
    if not len(models) == len(data) == len(seeds) == len(each) > 0:
        found = f"{len(models)} models, {len(data)} data sets, {len(each)} settings and {len(seeds)} seeds"
        raise ValueError(f"models, data, settings and seeds must be equally many, received {found}")
    size, device = _batch_size(data, each), next(models[0].parameters()).device
    images, finished = _Images(data, each, device), [0] * len(models)
    courses = [_Course(*one) for one in zip(data, each, seeds, images.first, strict=True)]
    # A batch of one matrix would be multiplied in another way, with other roundings: a twin keeps it company.
    company = stack_size(sum(p.numel() for p in models[0].parameters()), device.type) > 1
    stack: Stack | Single
    if _stackable(models[0]) and all(one.plain for one in each):
        stack = Stack(models, [one.learning_rate for one in each], [one.weight_decay for one in each])
    elif len(models) == 1:
        stack, company = Single(models[0], each[0], seeds[0], courses[0].steps_left), False
        if stack.needs_metric and metric is None:
            raise ValueError(f"metric must be given for schedule {each[0].schedule!r}, which watches it")
    else:
        raise ValueError(
            f"models of other layers than {STACKED}, or with more than Adam at a fixed rate, are trained one at a "
            f"time, received {len(models)} side by side"
        )
    there = list(range(len(models)))
    yield tuple(finished)

    def goes_on(number: int) -> bool:
        return finished[number] < each[number].epochs and not (leaves and leaves(number))

    while going := list(filter(goes_on, range(len(models)))):
        if (going := going * 2 if len(going) == 1 and company else going) != there:
            stack.keep([there.index(number) for number in going])
            there = going
        steps = min(courses[number].steps_left for number in going)
        taken = {number: courses[number].take(steps) for number in dict.fromkeys(going)}
        places, labels = (torch.stack([taken[number][part] for number in going]).to(device) for part in (0, 1))
        luck = [courses[number].luck for number in dict.fromkeys(going)]
        with stack.training(luck):
            for batch, given in zip(places.split(size, dim=1), labels.split(size, dim=1), strict=True):
                inputs = images.prepared(batch)
                stack.step(inputs, given, _kept(stack, luck, batch))
                if watch:
                    watch(inputs, given)
        over = [number for number in taken if not courses[number].steps_left]
        for number in over:
            finished[number] += 1
            courses[number].begin()
            if isinstance(stack, Single):
                stack.end_epoch(metric(number) if stack.needs_metric else None)
        if over:
            yield tuple(finished)


def _batch_size(data: Sequence[Dataset], settings: Sequence[TrainingSettings]) -> int:
    """The one that all share."""
    if len(found := {one.batch_size for one in settings}) > 1:
        raise ValueError(
            f"networks that are trained side by side must share their batch_size, received {sorted(found)}"
        )
    sizes = sorted({len(one.train_labels) for one in data})
    if len(sizes) > 1 and any(size % settings[0].batch_size for size in sizes):
        raise ValueError(
            "networks that are trained side by side on different numbers of images must take whole batches, received "
            f"{shown(sizes)} images and batches of {settings[0].batch_size}"
        )
    return settings[0].batch_size


class _Images:
    """The images of all networks, each of them once, and where those of a network begin."""

    def __init__(self, data: Sequence[Dataset], settings: Sequence[TrainingSettings], device: torch.device) -> None:
        prepared = {(one.levels, id(one.standard), each.input_scale) for one, each in zip(data, settings, strict=True)}
        if len(prepared) > 1 or len({one.train_pixels.shape[1:] for one in data}) > 1:
            raise ValueError(
                "networks that are trained side by side must share how images are prepared, and their size"
            )
        different = {id(one.train_pixels): torch.from_numpy(one.train_pixels).to(device) for one in data}
        parts = list(different.values())
        self._pixels = parts[0] if len(parts) == 1 else torch.cat(parts)
        begins = dict(zip(different, np.cumsum([0, *map(len, parts)]).tolist(), strict=False))
        self.first = [begins[id(one.train_pixels)] for one in data]
        self._divisor = data[0].levels / settings[0].input_scale
        self._standard = [torch.from_numpy(part).to(device) for part in data[0].standard or ()]

    def prepared(self, batch: torch.Tensor) -> torch.Tensor:
        """Inputs of a batch of each network: shape (networks, batch, pixels)."""
        chosen = self._pixels.index_select(0, batch.reshape(-1)).float()
        if self._standard:
            gain, offset = self._standard
            chosen.mul_(gain).add_(offset)
        else:
            chosen.div_(self._divisor)
        return chosen.view(*batch.shape, -1)


class _Course:
    """One network's way through its training set: order of examples, and luck of dropout, anew every epoch."""

    def __init__(self, data: Dataset, settings: TrainingSettings, seed: int, first: int) -> None:
        self._labels, self._size, self._seed, self._first = data.train_labels, settings.batch_size, seed, first
        self._orders, self._epoch = torch.Generator().manual_seed(seed), 0
        self._labels = torch.from_numpy(data.train_labels)
        self.begin()

    def begin(self) -> None:
        """The next epoch."""
        self._epoch += 1
        self._order = torch.randperm(len(self._labels), generator=self._orders)
        self.luck = np.random.default_rng([self._seed, self._epoch])

    @property
    def steps_left(self) -> int:
        """Batches until the end of the epoch."""
        return -(-len(self._order) // self._size)

    def take(self, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Places of the examples of the next batches among all images, and their labels."""
        taken, self._order = self._order.tensor_split([steps * self._size])
        return taken + self._first, self._labels[taken]


def _kept(stack: Stack | Single, luck: Sequence[np.random.Generator], batch: torch.Tensor) -> list[torch.Tensor]:
    """Which outputs of each hidden layer each network keeps under dropout, from that network's own luck."""
    if isinstance(stack, Single) or not stack.drops:
        return []
    kept = []
    for width, shares in zip(stack.widths, stack.dropout, strict=True):
        drawn = np.ones((len(batch), batch.shape[1], width), bool)
        for number, (rng, share) in enumerate(zip(luck, shares, strict=False)):
            if share:
                np.greater_equal(rng.random(drawn.shape[1:], np.float32), share, out=drawn[number])
        drawn[len(luck) :] = drawn[0]  # a twin has the luck of its network
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


def worst_sharpness(
    model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, share: float = 0.05, steps: int = 10
) -> float:
    """How much the loss can rise when no parameter is disturbed by more than a share of its size.

    The largest L(w + e) - L(w) where no abs(e_i) exceeds share abs(w_i), sought by gradient ascent: each step moves
    every parameter by 2 share abs(w_i) / steps along the sign of its slope, and back into its range. A lower bound.

    Args:
        model: any network; it is left as it is, and runs in its present mode.
        inputs: examples.
        labels: class per example, shape (examples,).
        share: largest disturbance relative to each parameter.
        steps: of the ascent.

    Returns:
        Nats, at least 0.

    Examples:
        >>> worst_sharpness(nn.Linear(3, 2), torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64), share=0.0)
        0.0

    References:
        Keskar et al. (2017), arXiv:1609.04836; relative to each parameter's size: Jiang et al. (2020),
        arXiv:1912.02178.
    """
    start = {name: values.detach() for name, values in model.named_parameters()}
    moved = {name: values.clone().requires_grad_() for name, values in start.items()}
    found = []
    for step in range(steps + 1):
        loss = cross_entropy(functional_call(model, moved, (inputs,)), labels)
        found.append(loss.item())
        if step < steps:
            slopes = torch.autograd.grad(loss, list(moved.values()))
            with torch.no_grad():
                for (name, values), slope in zip(moved.items(), slopes, strict=True):
                    room = share * start[name].abs()
                    values.add_(slope.sign() * room * 2 / steps)
                    values.copy_(torch.clamp(values, start[name] - room, start[name] + room))
    return max(found) - found[0]


threshold_backward = torch.ops.aten.threshold_backward  # the slope where a ReLU let its input through, else 0
ALIGNED = 16  # numbers: libraries round alike only where every matrix begins at a multiple of 64 bytes


class Stack:
    """Fully connected ReLU networks of one shape; one step of Adam on cross-entropy for all of them at once.

    The models' parameters become views of the stack's, so that each model is up to date after every step.

    Args:
        models: made of `Linear`, `ReLU` and `Dropout` in sequence, the last layer linear; all alike but for the share
            that they drop, on one device.
        learning_rate: of Adam, of all or of each.
        weight_decay: of all or of each, see :class:`nbutils.runs.training.TrainingSettings`.

    Raises:
        ValueError: the models differ, or hold other layers.

    Examples:
        >>> models = [nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)) for _ in range(2)]
        >>> stack = Stack(models, learning_rate=0.001)
        >>> stack.step(torch.rand(2, 5, 3), torch.zeros(2, 5, dtype=torch.int64))
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        learning_rate: float | Sequence[float],
        weight_decay: float | Sequence[float] = 0.0,
    ) -> None:
        layers = [_layers(model) for model in models]
        if len(kinds := {tuple(linear.weight.shape for linear, _ in one) for one in layers}) != 1:
            raise ValueError(f"models that are trained side by side must be alike, received {len(kinds)} kinds")
        self._linears = [[linear for linear, _ in one] for one in layers]
        self._shares = [[share for _, share in one[:-1]] for one in layers]
        self._rates, self._decays = _one_each(learning_rate, len(models)), _one_each(weight_decay, len(models))
        self.widths, self._steps = [linear.out_features for linear, _ in layers[0][:-1]], 0
        own = [[p for linear in one for p in (linear.weight, linear.bias)] for one in self._linears]
        values = [torch.stack([p.detach() for p in same]) for same in zip(*own, strict=True)]
        self._lay_out([values, *([torch.zeros_like(part) for part in values] for _ in range(3))])

    def keep(self, numbers: Sequence[int]) -> None:
        """Go on with some of the networks only; one that is named twice gets a twin that belongs to no model.

        Args:
            numbers: of the networks, in the order that they are to have from now on.
        """
        for linear in (linear for one in self._linears for linear in one):
            linear.weight.data, linear.bias.data = linear.weight.data.clone(), linear.bias.data.clone()
        chosen, unnamed = torch.tensor(numbers, device=self.weights[0].device), []
        for place, number in enumerate(numbers):
            unnamed.append([] if number in numbers[:place] else self._linears[number])
        kept = [[part.index_select(0, chosen) for part in parts] for parts in self._parts]
        self._linears, self._shares = unnamed, [self._shares[number] for number in numbers]
        self._rates, self._decays = ([values[number] for number in numbers] for values in (self._rates, self._decays))
        self._lay_out(kept)

    @contextmanager
    def training(self, _luck: Sequence[np.random.Generator]) -> Iterator[None]:
        """Around steps; nothing has to be done, for dropout is decided by what :meth:`step` is given."""
        yield

    def _lay_out(self, parts: Sequence[Sequence[torch.Tensor]]) -> None:
        """Weights, their slopes and two moments, each in one row of numbers that the optimiser runs through."""
        shapes = [tuple(part.shape) for part in parts[0]]
        places = [shape[0] * _padded(prod(shape[1:])) for shape in shapes]
        rows = [parts[0][0].new_zeros(sum(places)) for _ in parts]
        self._parts = [_views(row.split(places), shapes) for row in rows]
        for views, old in zip(self._parts, parts, strict=True):
            for view, part in zip(views, old, strict=True):
                view.copy_(part)
        (self.weights, self.biases), slopes = ((views[::2], views[1::2]) for views in self._parts[:2])
        self._weight_slopes, self._bias_slopes = slopes
        for number, linears in enumerate(self._linears):
            for linear, weights, biases in zip(linears, self.weights, self.biases, strict=False):
                linear.weight.data, linear.bias.data = weights[number], biases[number]
        self.dropout = [list(shares) for shares in zip(*self._shares, strict=True)]
        self.drops = any(map(any, self.dropout))
        self._spared = [1 - rows[0].new_tensor(shares).view(-1, 1, 1) for shares in self.dropout]
        # By network, with the gaps: a matrix that ends within a group of 16 numbers could be rounded otherwise there.
        own = [[part.view(len(self._rates), -1).unbind() for part in row.split(places)] for row in rows]
        settings = list(zip(self._rates, self._decays, strict=True))
        if len(set(settings)) == 1:
            groups = [(*settings[0], [[row] for row in rows])]
        else:
            groups = [(*one, [[part[n] for part in kind] for kind in own]) for n, one in enumerate(settings)]
        self._updates = [_adam(rate, decay, *tensors, self._steps) for rate, decay, tensors in groups]

    @torch.no_grad()
    def step(self, inputs: torch.Tensor, labels: torch.Tensor, kept: Sequence[torch.Tensor] = ()) -> None:
        """One step of every network on its own batch.

        Batches are filled up to a multiple of 16 examples that do not count, so that every matrix is aligned.

        Args:
            inputs: shape (networks, batch, values).
            labels: classes, shape (networks, batch), int64.
            kept: which outputs of each hidden layer dropout spares, boolean, shape (networks, batch, width); needed
                where a model has dropout.
        """
        batch = labels.shape[1]
        inputs, labels, *kept = (_filled(part) for part in (inputs, labels, *kept))
        outputs = [inputs]
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            output = torch.baddbmm(bias[:, None], outputs[-1], weight.transpose(1, 2))
            if depth < len(self.widths):
                output.relu_()
                if self.drops:
                    output.mul_(kept[depth]).div_(self._spared[depth])
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
                if self.drops:
                    slope.div_(self._spared[depth - 1])
        for update in self._updates:
            update()
        self._steps += 1


class Single:
    """One network of any kind, trained in any way, by PyTorch's own slopes and optimisers.

    Args:
        model: from (examples, pixels) to (examples, classes).
        settings: how it is trained.
        seed: of what a penalty draws.
        steps: per epoch, by which schedules count.

    Raises:
        ValueError: there are layers to be frozen but fewer than two with weights, or a penalty and no activation
            function.

    Examples:
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2))
        >>> one = Single(model, TrainingSettings(schedule="exponential:2"), steps=10)
        >>> with one.training([np.random.default_rng(0)]):
        ...     one.step(torch.rand(1, 5, 3), torch.zeros(1, 5, dtype=torch.int64))
    """

    def __init__(self, model: nn.Module, settings: TrainingSettings, seed: int = 0, steps: int = 1) -> None:
        self.model, self._settings, self._epoch = model, settings, 0
        self._weighted = [one for one in model.modules() if isinstance(one, nn.Linear | nn.Conv2d)]
        rule, numbers = read_rule(settings.clipping, CLIPPINGS, "clipping")
        self._clip = lambda parameters: rule.make(parameters, *numbers)
        made, self._coefficient = read_rule(settings.penalty, PENALTIES, "penalty")
        self._penalty, self._hidden = made.make(seed), _activation_functions(model)
        if self._penalty and not self._hidden:
            raise ValueError(f"penalty {settings.penalty!r} needs a model with activation functions, received none")
        if settings.frozen_epochs:
            if len(self._weighted) < 2:
                raise ValueError("frozen_epochs must be 0 for a model with fewer than two layers of weights")
            self._learn(1)
        self._start(settings.learning_rate, steps)

    def _learn(self, last: int) -> None:
        """Let only the last layers learn."""
        self.model.requires_grad_(False)
        for layer in self._weighted[-last:]:
            layer.requires_grad_(True)

    def _start(self, rate: float, steps: int) -> None:
        settings = self._settings
        self._parameters = [one for one in self.model.parameters() if one.requires_grad]
        rule, numbers = read_rule(settings.optimiser, OPTIMISERS, "optimiser")
        self._optimiser = rule.make(self._parameters, rate, settings.weight_decay, *numbers)
        rule, numbers = read_rule(settings.schedule, SCHEDULES, "schedule")
        self._schedule, self._steps = rule.make(self._optimiser, steps, *numbers), steps

    @property
    def needs_metric(self) -> bool:
        """Whether :meth:`end_epoch` must be told a validation metric."""
        return self._schedule.by_metric

    def keep(self, _numbers: Sequence[int]) -> None:
        """One network goes on with itself."""

    @contextmanager
    def training(self, luck: Sequence[np.random.Generator]) -> Iterator[None]:
        """In training mode, with dropout from the network's own luck; afterwards in evaluation mode."""
        with torch.random.fork_rng():
            torch.manual_seed(int(luck[0].integers(2**62)))
            self.model.train()
            try:
                yield
            finally:
                self.model.eval()

    def step(self, inputs: torch.Tensor, labels: torch.Tensor, _kept: Sequence[torch.Tensor] = ()) -> None:
        """Slopes of one batch, then one step.

        Args:
            inputs: shape (1, batch, values).
            labels: classes, shape (1, batch), int64.
        """
        self._slopes(inputs[0], labels[0])
        if radius := getattr(self._optimiser, "radius", None):
            with raised(self._parameters, radius):
                self._slopes(inputs[0], labels[0])
        self._optimiser.step()
        if self._schedule.scheduler and not self._schedule.by_metric:
            self._schedule.scheduler.step()

    def _slopes(self, inputs: torch.Tensor, labels: torch.Tensor) -> None:
        self._optimiser.zero_grad()
        if self._penalty is None:
            loss = cross_entropy(self.model(inputs), labels)
        else:
            with _outputs(self._hidden) as layers:
                loss = cross_entropy(self.model(inputs), labels)
            if len(labels) > 1:  # a neuron has no distribution on one image
                loss = loss - self._coefficient[0] * self._penalty(layers, labels)
        if self._settings.l1:
            loss = loss + self._settings.l1 * sum(layer.weight.abs().sum() for layer in self._weighted)
        if self._settings.l2:
            loss = loss + self._settings.l2 / 2 * sum(layer.weight.square().sum() for layer in self._weighted)
        loss.backward()
        self._clip(self._parameters)

    def end_epoch(self, metric: float | None = None) -> None:
        """What is done between epochs: the schedule looks at a metric, frozen layers are let go."""
        self._epoch += 1
        if self._schedule.by_metric:
            self._schedule.scheduler.step(metric)
        if self._epoch == self._settings.frozen_epochs:
            self._learn(2)
            self._start(self._settings.learning_rate * SLOWER, self._steps)


def _activation_functions(model: nn.Module) -> list[nn.Module]:
    kinds = tuple(getattr(nn, one.module) for one in ACTIVATIONS.values())
    return [module for module in model.modules() if isinstance(module, kinds)]


@contextmanager
def _outputs(modules: Sequence[nn.Module]) -> Iterator[list[torch.Tensor]]:
    """What modules give inside, with slopes: (examples, neurons) each, a channel's or a token's mean over positions."""
    found: list[torch.Tensor] = []

    def note(_module: nn.Module, _inputs: object, output: torch.Tensor) -> None:
        spare = (2, 3) if output.ndim == 4 else (1,) if output.ndim == 3 else ()
        found.append(output.mean(dim=spare) if spare else output)

    handles = [module.register_forward_hook(note) for module in modules]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def settle(model: nn.Module, inputs: Callable[[slice], torch.Tensor], examples: int, size: int = 500) -> None:
    """Let the batch normalisations of an untrained network know the mean and deviation of what they are given.

    Without it they would take every input for one of mean 0 and deviation 1 until training has begun.

    Args:
        model: any network; one without batch normalisation is left alone. It is in evaluation mode afterwards.
        inputs: gives the inputs of some examples.
        examples: how many there are.
        size: examples at a time.
    """
    norms = [one for one in model.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    momentum = [one.momentum for one in norms]
    if not norms:
        return
    model.eval()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches, each with the same weight
        norm.train()
    for start in range(0, examples, size):
        model(inputs(slice(start, start + size)))
    for norm, share in zip(norms, momentum, strict=True):
        norm.momentum = share
        norm.num_batches_tracked.zero_()
    model.eval()


def _one_each(value: float | Sequence[float], count: int) -> list[float]:
    return list(value) if isinstance(value, Sequence) else [value] * count


def _adam(
    rate: float,
    decay: float,
    values: list[torch.Tensor],
    slopes: list[torch.Tensor],
    first: list[torch.Tensor],
    second: list[torch.Tensor],
    steps: int,
) -> Callable[[], None]:
    """One step of Adam on some tensors, and of decay in the same pass.

    The optimiser's own function: its class asks, at every step, what cannot have changed since the one before.
    """
    taken = [values[0].new_tensor(float(steps)) for _ in values]
    options = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "amsgrad": False, "maximize": False}
    return partial(adamw, values, slopes, first, second, [], taken, fused=True, lr=rate, weight_decay=decay, **options)


STACKED = "Linear, ReLU, perhaps Dropout, ..., Linear with biases"


def _leaves(model: nn.Module) -> list[nn.Module]:
    return [module for module in model.modules() if not any(True for _ in module.children())]


def _letters(leaves: Sequence[nn.Module]) -> str:
    """L, R or D for each module of a network that can be part of a stack; else nothing."""
    letters = "".join({nn.Linear: "L", nn.ReLU: "R", nn.Dropout: "D"}.get(type(leaf), "?") for leaf in leaves)
    unbiased = any(isinstance(one, nn.Linear) and one.bias is None for one in leaves)
    return letters if re.fullmatch("(LRD?)*L", letters) and not unbiased else ""


def _stackable(model: nn.Module) -> bool:
    return bool(_letters(_leaves(model)))


def _layers(model: nn.Module) -> list[tuple[nn.Linear, float]]:
    """Linear layers in order, each with the dropout that follows it."""
    leaves = _leaves(model)
    letters = _letters(leaves)
    if not letters:
        names = ", ".join(type(leaf).__name__ for leaf in leaves)
        raise ValueError(f"a model must be {STACKED}; this has {names}")
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
