"""What may differ in training beside size and length: activation functions, optimisers, schedules, clipping.

Every one has a name as a parameter takes it, such as "power:2:1" with its numbers behind colons, and an entry in one of
the registries of this module. Reading a name loads no PyTorch; making what it stands for does, by PyTorch's own means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nbutils.support.checks import is_number, shown

if TYPE_CHECKING:
    import torch
    from torch import nn

__all__ = [
    "ACTIVATIONS",
    "CLIPPINGS",
    "NORMALISATIONS",
    "OPTIMISERS",
    "SCHEDULES",
    "Activation",
    "Number",
    "Rule",
    "activation",
    "read_rule",
    "rule_name",
]

NORMALISATIONS = ("none", "before", "after")  # of the activation function


@dataclass(frozen=True)
class Activation:
    """An activation function.

    Attributes:
        module: its name in `torch.nn`.
        initialisation: of the weights before it, the one that keeps the size of signals from layer to layer.
        relative: whether it rises throughout and can be negative, or is never 0: a neuron then fires by where it lies
            in its own distribution, not by its sign. A GELU falls before it rises, so that an output just below 0 says
            nothing; a neuron with it fires where it is positive, as in a transformer.
        on: output above which its input is positive.
    """

    module: str
    initialisation: str
    relative: bool = True
    on: float = 0.0

    def make(self) -> nn.Module:
        """The function as a layer."""
        from torch import nn

        return getattr(nn, self.module)()


ACTIVATIONS: Mapping[str, Activation] = {
    "relu": Activation("ReLU", "he", relative=False),
    "leaky_relu": Activation("LeakyReLU", "he"),
    "elu": Activation("ELU", "he"),
    "selu": Activation("SELU", "lecun"),
    "gelu": Activation("GELU", "he", relative=False),
    "tanh": Activation("Tanh", "glorot"),
    "sigmoid": Activation("Sigmoid", "glorot", on=0.5),
}


def activation(name: str) -> Activation:
    """An entry of `ACTIVATIONS`.

    Raises:
        ValueError: there is none of that name; lists those that are there.

    Examples:
        >>> activation("selu").initialisation
        'lecun'
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, received {shown(name)}")
    return ACTIVATIONS[name]


@dataclass(frozen=True)
class Number:
    """A number in the name of a rule: what it is, and its range, ends included."""

    what: str
    least: float
    most: float


@dataclass(frozen=True)
class Rule:
    """Something that training may do, by name.

    Attributes:
        make: makes it, from what the registry says and the numbers of the name.
        numbers: that follow the name, each behind a colon.
    """

    make: Callable[..., Any]
    numbers: tuple[Number, ...] = ()


def read_rule(text: str, rules: Mapping[str, Rule], called: str) -> tuple[Rule, tuple[float, ...]]:
    """The rule that a name stands for, and its numbers.

    Args:
        text: a key of `rules`, and its numbers, each behind a colon.
        rules: a registry.
        called: the parameter, for errors.

    Raises:
        ValueError: no such name, or other numbers than it needs; says which.

    Examples:
        >>> read_rule("power:2:1", SCHEDULES, "schedule")[1]
        (2.0, 1.0)
        >>> read_rule("power:2", SCHEDULES, "schedule")
        Traceback (most recent call last):
        ValueError: schedule must be 'power:<epochs>:<exponent>', received 'power:2'
    """
    word, *given = text.split(":") if isinstance(text, str) else (text,)
    if not isinstance(text, str) or word not in rules:
        known = ", ".join(_form(name, rule) for name, rule in rules.items())
        raise ValueError(f"{called} must be one of {known}, received {shown(text)}")
    rule, values = rules[word], tuple(map(_number, given))
    if len(values) != len(rule.numbers) or not all(is_number(value) for value in values):
        raise ValueError(f"{called} must be '{_form(word, rule)}', received {shown(text)}")
    for value, number in zip(values, rule.numbers, strict=True):
        if not number.least <= value <= number.most:
            raise ValueError(
                f"{called} must have {number.what} from {number.least:g} to {number.most:g}, received {shown(text)}"
            )
    return rule, values


def rule_name(text: str, rules: Mapping[str, Rule], called: str) -> str:
    """The one name of a rule: numbers as short as they can be written.

    Examples:
        >>> rule_name("norm:1.00", CLIPPINGS, "clipping")
        'norm:1'
    """
    values = read_rule(text, rules, called)[1]
    return ":".join([text.partition(":")[0], *(f"{value:.12g}" for value in values)])


def _form(name: str, rule: Rule) -> str:
    return ":".join([name, *(f"<{number.what}>" for number in rule.numbers)])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _adam(parameters: Iterable[nn.Parameter], rate: float, weight_decay: float) -> torch.optim.Optimizer:
    from torch.optim import AdamW

    return AdamW(parameters, rate, weight_decay=weight_decay, fused=True)


def _sgd(parameters: Iterable[nn.Parameter], rate: float, _decay: float, momentum: float) -> torch.optim.Optimizer:
    from torch.optim import SGD

    return SGD(parameters, rate, momentum=momentum)


def _sam(parameters: Iterable[nn.Parameter], rate: float, _decay: float, radius: float) -> torch.optim.Optimizer:
    """SGD with momentum 0.9 on slopes that are taken where the loss is highest nearby; see :func:`raised`."""
    found = _sgd(parameters, rate, 0.0, 0.9)
    found.radius = radius
    return found


# Each from parameters, learning rate, weight decay (of "adam" only) and its own numbers.
OPTIMISERS: Mapping[str, Rule] = {
    "adam": Rule(_adam),
    "sgd": Rule(_sgd, (Number("momentum", 0, 0.999),)),
    "sam": Rule(_sam, (Number("radius", 1e-6, 10),)),
}


@contextmanager
def raised(parameters: Iterable[nn.Parameter], radius: float) -> Iterator[None]:
    """Inside, parameters stand a radius further up along their slopes; afterwards where they stood.

    Args:
        parameters: with slopes.
        radius: Euclidean length of the way.

    References:
        Sharpness-aware minimisation: Foret et al. (2021), arXiv:2010.01412.
    """
    import torch

    moved = [one for one in parameters if one.grad is not None]
    before = [one.detach().clone() for one in moved]
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(one.grad) for one in moved]))
    with torch.no_grad():
        for one in moved:
            one.add_(one.grad, alpha=radius / (float(norm) + 1e-12))
    try:
        yield
    finally:
        with torch.no_grad():
            for one, old in zip(moved, before, strict=True):
                one.copy_(old)


@dataclass
class Schedule:
    """A learning-rate schedule: PyTorch's own, and when it goes on.

    Attributes:
        scheduler: None where the rate stays as it is.
        by_metric: whether it goes on after an epoch, by a validation metric; otherwise after every step.
    """

    scheduler: Any = None
    by_metric: bool = False


def _constant(_optimiser: torch.optim.Optimizer, _steps: int) -> Schedule:
    return Schedule()


def _power(optimiser: torch.optim.Optimizer, steps: int, epochs: float, exponent: float) -> Schedule:
    from torch.optim.lr_scheduler import LambdaLR

    return Schedule(LambdaLR(optimiser, lambda step: (1 + step / (epochs * steps)) ** -exponent))


def _exponential(optimiser: torch.optim.Optimizer, steps: int, epochs: float) -> Schedule:
    from torch.optim.lr_scheduler import ExponentialLR

    return Schedule(ExponentialLR(optimiser, 0.1 ** (1 / (epochs * steps))))


def _performance(optimiser: torch.optim.Optimizer, _steps: int, divisor: float, patience: float) -> Schedule:
    from torch.optim.lr_scheduler import ReduceLROnPlateau

    watch = {"mode": "max", "threshold": 0.0, "threshold_mode": "abs"}
    return Schedule(ReduceLROnPlateau(optimiser, factor=1 / divisor, patience=int(patience) - 1, **watch), True)


EPOCHS = Number("epochs", 0.01, 10_000)
# Each from an optimiser, steps per epoch and its own numbers.
SCHEDULES: Mapping[str, Rule] = {
    "constant": Rule(_constant),
    "power": Rule(_power, (EPOCHS, Number("exponent", 0.01, 10))),
    "exponential": Rule(_exponential, (EPOCHS,)),
    "performance": Rule(_performance, (Number("divisor", 1.01, 1000), Number("patience", 1, 1000))),
}


def _unclipped(_parameters: list[nn.Parameter]) -> None:
    pass


def _by_value(parameters: list[nn.Parameter], most: float) -> None:
    from torch.nn.utils import clip_grad_value_

    clip_grad_value_(parameters, most)


def _by_norm(parameters: list[nn.Parameter], most: float) -> None:
    from torch.nn.utils import clip_grad_norm_

    clip_grad_norm_(parameters, most)


MOST = Number("most", 1e-9, 1e9)
# Each from parameters with slopes and its own numbers.
CLIPPINGS: Mapping[str, Rule] = {
    "none": Rule(_unclipped),
    "value": Rule(_by_value, (MOST,)),
    "norm": Rule(_by_norm, (MOST,)),
}
