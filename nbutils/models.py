"""Models by name: today the multilayer perceptron of the paper, at any width and depth."""

from __future__ import annotations

from collections import OrderedDict

from torch import nn

from nbutils.architectures import hidden_widths, parameter_count
from nbutils.arguments import checked
from nbutils.arrays import as_count, shown

__all__ = ["build_model"]


@checked
def build_model(model: str, inputs: int, classes: int, dropout: float = 0.0) -> nn.Sequential:
    """A fully connected ReLU network with PyTorch's default initialisation.

    Args:
        model: see :func:`nbutils.architectures.hidden_widths`.
        inputs: number of input values per example.
        classes: number of outputs.
        dropout: share of a hidden layer's outputs dropped in training, in [0, 1).

    Returns:
        Blocks `hidden1`, `hidden2`, ..., each of `linear`, `relu` and (when asked for) `dropout`, then `output`.

    Raises:
        ValueError: a bad model name, more than 500 million weights, or `dropout` outside [0, 1).

    Examples:
        >>> build_model("mlp:4", inputs=3, classes=2)[0].relu
        ReLU()
    """
    inputs, classes = as_count(inputs, "inputs"), as_count(classes, "classes")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be at least 0 and below 1, received {shown(dropout)}")
    parameter_count(model, inputs, classes)  # refuses what no memory holds
    blocks: OrderedDict[str, nn.Module] = OrderedDict()
    width = inputs
    for depth, hidden in enumerate(hidden_widths(model), start=1):
        parts: OrderedDict[str, nn.Module] = OrderedDict(linear=nn.Linear(width, hidden), relu=nn.ReLU())
        if dropout:
            parts["dropout"] = nn.Dropout(dropout)
        blocks[f"hidden{depth}"] = nn.Sequential(parts)
        width = hidden
    blocks["output"] = nn.Linear(width, classes)
    return nn.Sequential(blocks)
