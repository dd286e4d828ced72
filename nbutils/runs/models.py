"""Networks by name, such as "mlp:256-128-64"."""

from __future__ import annotations

import re
from collections import OrderedDict
from itertools import pairwise
from typing import TYPE_CHECKING

from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, shown

if TYPE_CHECKING:
    from torch import nn

HIDDEN_LAYERS = "hidden*.relu"  # where a hidden unit's post-non-linearity output is read
INITIALISATIONS = ("pytorch", "glorot")
MOST = 5  # networks in a stack; more gain nothing, and their weights leave the cache
MOST_ON_GPU = 32
LARGE = 300_000  # parameters from which a network keeps a core busy by itself
MOST_LAYERS = 100
MOST_NEURONS = 100_000  # in one hidden layer
MOST_PARAMETERS = 500_000_000  # of a network: 2 GB of weights, and four times that to train them


def hidden_widths(model: str) -> tuple[int, ...]:
    """Widths of the hidden layers that a model name asks for.

    Args:
        model: "mlp:<width>-<width>-...", first hidden layer first.

    Returns:
        One width per hidden layer.

    Raises:
        ValueError: the name is not of that form, a width is 0 or above 100,000, there are more than 100 layers, or the
            weights between them are more than 500 million.

    Examples:
        >>> hidden_widths("mlp:256-128-64")
        (256, 128, 64)
    """
    match = re.fullmatch(r"mlp:([0-9]+(?:-[0-9]+)*)", model) if isinstance(model, str) else None
    digits = [width.lstrip("0") for width in match[1].split("-")] if match else []
    if not all(digits) or not digits:
        raise ValueError(
            "model must be 'mlp:' and the widths of its hidden layers, such as 'mlp:256-128-64', received "
            f"{shown(model)}"
        )
    if len(digits) > MOST_LAYERS or max(map(len, digits)) > len(str(MOST_NEURONS)):
        raise ValueError(_too_large(model))
    widths = tuple(int(width) for width in digits)
    if max(widths) > MOST_NEURONS or sum((a + 1) * b for a, b in pairwise(widths)) > MOST_PARAMETERS:
        raise ValueError(_too_large(model))
    return widths


def _too_large(model: str) -> str:
    return (
        f"model must have at most {MOST_LAYERS} hidden layers of at most {MOST_NEURONS:,} neurons and at most "
        f"{MOST_PARAMETERS:,} weights, received {shown(model)}"
    )


def parameter_count(model: str, inputs: int, classes: int) -> int:
    """Number of weights and biases of a model.

    Raises:
        ValueError: a bad model name, or more than 500 million.

    Examples:
        >>> parameter_count("mlp:4", inputs=3, classes=2)
        26
    """
    widths = [inputs, *hidden_widths(model), classes]
    found = sum((a + 1) * b for a, b in pairwise(widths))
    if found > MOST_PARAMETERS:
        raise ValueError(f"{_too_large(model)}, which has {found:,} on {inputs:,} inputs")
    return found


def stack_size(parameters: int, device: str = "cpu") -> int:
    """How many networks of so many parameters are best trained side by side.

    On the processor 5 small ones, but a large one alone, for it keeps a core busy. On a GPU, many of either.

    Examples:
        >>> stack_size(109_386), stack_size(669_706), stack_size(669_706, "cuda")
        (5, 1, 32)
    """
    if device != "cpu":
        return MOST_ON_GPU
    return 1 if parameters > LARGE else MOST


@checked
def build_model(
    model: str, inputs: int, classes: int, dropout: float = 0.0, initialisation: str = "pytorch"
) -> nn.Sequential:
    """A fully connected ReLU network, not trained yet.

    Args:
        model: see :func:`nbutils.runs.models.hidden_widths`.
        inputs: number of input values per example.
        classes: number of outputs.
        dropout: share of a hidden layer's outputs dropped in training, in [0, 1).
        initialisation: "pytorch", weights and biases uniform within 1 / sqrt(inputs of the layer); or "glorot", weights
            uniform within sqrt(6 / (inputs + outputs)) and biases 0, as Keras has them.

    Returns:
        Blocks `hidden1`, `hidden2`, ..., each of `linear`, `relu` and (when asked for) `dropout`, then `output`.

    Raises:
        ValueError: a bad model name, more than 500 million weights, `dropout` outside [0, 1), or an unknown
            initialisation.

    Examples:
        >>> build_model("mlp:4", inputs=3, classes=2)[0].relu
        ReLU()

    References:
        Glorot and Bengio (2010), "Understanding the difficulty of training deep feedforward neural networks".
    """
    inputs, classes = as_count(inputs, "inputs"), as_count(classes, "classes")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, received {shown(dropout)}")
    if initialisation not in INITIALISATIONS:
        raise ValueError(
            f"initialisation must be one of {', '.join(INITIALISATIONS)}, received {shown(initialisation)}"
        )
    parameter_count(model, inputs, classes)  # refuses what no memory holds
    from torch import nn  # the other functions are about names only

    blocks: OrderedDict[str, nn.Module] = OrderedDict()
    width = inputs
    for depth, hidden in enumerate(hidden_widths(model), start=1):
        parts: OrderedDict[str, nn.Module] = OrderedDict(linear=nn.Linear(width, hidden), relu=nn.ReLU())
        if dropout:
            parts["dropout"] = nn.Dropout(dropout)
        blocks[f"hidden{depth}"] = nn.Sequential(parts)
        width = hidden
    blocks["output"] = nn.Linear(width, classes)
    network = nn.Sequential(blocks)
    if initialisation == "glorot":
        for linear in (part for part in network.modules() if isinstance(part, nn.Linear)):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
    return network
