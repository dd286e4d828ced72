"""Names of models: what "mlp:256-128-64" means, without loading PyTorch."""

from __future__ import annotations

import re

__all__ = ["HIDDEN_LAYERS", "hidden_widths"]

HIDDEN_LAYERS = "hidden*.relu"  # where a hidden unit's post-non-linearity output is read


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
