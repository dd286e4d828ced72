"""Names of models: what "mlp:256-128-64" means, without loading PyTorch."""

from __future__ import annotations

import re
from itertools import pairwise

__all__ = ["HIDDEN_LAYERS", "hidden_widths", "parameter_count", "stack_size"]

HIDDEN_LAYERS = "hidden*.relu"  # where a hidden unit's post-non-linearity output is read
MOST = 5  # networks in a stack; more gain nothing, and their weights leave the cache
MOST_ON_GPU = 32
LARGE = 300_000  # parameters from which a network keeps a core busy by itself


def hidden_widths(model: str) -> tuple[int, ...]:
    """Widths of the hidden layers that a model name asks for.

    Args:
        model: "mlp:<width>-<width>-...", first hidden layer first.

    Returns:
        One width per hidden layer.

    Raises:
        ValueError: the name is not of that form, or a width is 0.

    Examples:
        >>> hidden_widths("mlp:256-128-64")
        (256, 128, 64)
    """
    match = re.fullmatch(r"mlp:(\d+(?:-\d+)*)", model) if isinstance(model, str) else None
    widths = tuple(int(w) for w in match[1].split("-")) if match else ()
    if not widths or 0 in widths:
        raise ValueError(
            f"model must be 'mlp:' and the widths of its hidden layers, such as 'mlp:256-128-64', received {model!r}"
        )
    return widths


def parameter_count(model: str, inputs: int, classes: int) -> int:
    """Number of weights and biases of a model.

    Examples:
        >>> parameter_count("mlp:4", inputs=3, classes=2)
        26
    """
    widths = [inputs, *hidden_widths(model), classes]
    return sum((a + 1) * b for a, b in pairwise(widths))


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
