"""Capture: what every hidden neuron of a PyTorch model did on every example."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = [
    "NonFiniteError",
    "capture",
    "capture_activations",
    "check_all_ran",
    "check_output",
    "matching_layers",
    "neuron_activations",
]


class NonFiniteError(ValueError):
    """A layer's activations hold NaN or infinite values."""


def matching_layers(model: nn.Module, layers: str = "*") -> list[str]:
    """Names of the model's leaf modules that match a wildcard, in the model's own order.

    Args:
        model: any PyTorch module.
        layers: shell-style wildcard over the names of `model.named_modules()`, several separated by spaces. Only leaf
            modules (those that hold no other) are matched; a model without submodules is its own leaf, named "".

    Returns:
        The matching names, at least one.

    Raises:
        ValueError: nothing matches; the message lists the layers there are.

    Examples:
        >>> matching_layers(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), "1")
        ['1']
    """
    leaves = [name for name, module in model.named_modules() if not any(True for _ in module.children())]
    wanted = layers.split() if isinstance(layers, str) else list(layers)
    names = [name for name in leaves if any(fnmatchcase(name, pattern) for pattern in wanted)]
    if not names:
        raise ValueError(f"layers={layers!r} matches none of the model's layers: {', '.join(map(repr, leaves))}")
    return names


def check_output(name: str, output: Any, seen: Collection[str]) -> None:
    """Refuse an output that cannot stand for its layer in this forward pass.

    Args:
        name: name of the layer that gave it.
        output: what the layer returned.
        seen: names of the layers that ran before it in the same pass.

    Raises:
        RuntimeError: the layer ran before in this pass, or returned no tensor.

    Examples:
        >>> check_output("relu", torch.zeros(5, 2), seen=["linear"])
    """
    if name in seen:
        raise RuntimeError(f"layer {name!r} ran twice in one forward pass; give each use a module of its own")
    if not isinstance(output, torch.Tensor):
        raise RuntimeError(f"layer {name!r} returned {type(output).__name__}, not a tensor; choose other layers")


def check_all_ran(names: Collection[str], seen: Collection[str]) -> None:
    """Refuse a forward pass in which a layer did not run.

    Args:
        names: names of the layers that must run.
        seen: names of those that did, all of them among `names`.

    Raises:
        RuntimeError: a layer is missing.

    Examples:
        >>> check_all_ran(["linear", "relu"], seen=["relu", "linear"])
    """
    if len(seen) < len(names):
        missing = next(name for name in names if name not in seen)
        raise RuntimeError(f"layer {missing!r} did not run in this forward pass; choose other layers")


@contextmanager
def capture(model: nn.Module, layers: str = "*") -> Iterator[dict[str, torch.Tensor]]:
    """Record the outputs of a model's layers while the block runs.

    Args:
        model: any PyTorch module.
        layers: wildcard over layer names, see :func:`matching_layers`.

    Yields:
        A dictionary that after each forward pass holds that pass's output of each layer that ran, detached, in the
        layer's own shape. The hooks are removed when the block ends, also by an exception.

    Raises:
        ValueError: no layer matches.
        RuntimeError: a layer runs twice in one forward pass (give each use its own module), or returns no tensor.

    Examples:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> with capture(model, "1") as seen:
        ...     _ = model(torch.zeros(5, 2))
        >>> tuple(seen["1"].shape)
        (5, 3)
    """
    modules = dict(model.named_modules())
    seen: dict[str, torch.Tensor] = {}

    def record(name: str):
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            check_output(name, output, seen)
            seen[name] = output.detach()

        return hook

    names = matching_layers(model, layers)
    # The pre-hook goes first: for a model that is one leaf, its own output hook must find nothing of the pass before.
    handles = [model.register_forward_pre_hook(lambda *_: seen.clear())]
    try:
        handles += [modules[name].register_forward_hook(record(name)) for name in names]
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def capture_activations(
    model: nn.Module,
    inputs: Any,
    layers: str = "*",
    batch_size: int = 1024,
    reduce: str = "mean",
    prepare: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> dict[str, np.ndarray]:
    """Activations of all neurons of some layers over a set of examples.

    The model runs in evaluation mode without gradients, and gets its own mode back afterwards. A convolution's channel
    is one neuron, reduced over positions; of (examples, tokens, features) a feature is one neuron, reduced over tokens.

    Args:
        model: any PyTorch module whose first argument is the batch.
        inputs: examples, array or tensor, shape (examples, ...).
        layers: wildcard over layer names, see :func:`matching_layers`.
        batch_size: examples per forward pass, at least 1.
        reduce: "mean" or "max" over positions or tokens.
        prepare: what turns a batch, on the model's device, into what the model takes, such as bytes into floats.

    Returns:
        A dictionary from layer name to a float array of shape (examples, neurons), in the model's order.

    Raises:
        ValueError: no layer matches, there are no examples, or an argument is out of range.
        RuntimeError: a layer runs twice in one forward pass, does not run, or returns no tensor.
        NonFiniteError: (a ValueError) an activation is NaN or infinite; the message names the layer.

    Examples:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> {name: a.shape for name, a in capture_activations(model, np.zeros((5, 2), "f4")).items()}
        {'0': (5, 3), '1': (5, 3)}
    """
    if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1:
        raise ValueError(f"batch_size must be a whole number of at least 1, received {batch_size!r}")
    if reduce not in ("mean", "max"):
        raise ValueError(f"reduce must be 'mean' or 'max', received {reduce!r}")
    examples = torch.as_tensor(inputs)
    if examples.ndim == 0 or len(examples) == 0:
        raise ValueError(f"inputs must hold at least one example, received shape {tuple(examples.shape)}")
    device = next((p.device for p in model.parameters()), examples.device)
    found: dict[str, np.ndarray] = {}
    names = matching_layers(model, layers)
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), capture(model, layers) as seen:
            for start in range(0, len(examples), batch_size):
                batch = examples[start : start + batch_size].to(device)
                model(batch if prepare is None else prepare(batch))
                check_all_ran(names, seen)
                for name in names:
                    part = neuron_activations(seen[name], name, reduce).cpu().numpy()
                    whole = found.setdefault(name, np.empty((len(examples), part.shape[1]), part.dtype))
                    whole[start : start + len(part)] = part
    finally:
        model.train(was_training)
    return found


def neuron_activations(output: torch.Tensor, name: str = "", reduce: str = "mean") -> torch.Tensor:
    """One activation per neuron and example, from a layer's output.

    Args:
        output: shape (examples, neurons), (examples, tokens, features) or (examples, channels, positions, ...).
        name: name of the layer, for messages.
        reduce: "mean" or "max" over tokens or positions.

    Returns:
        float32, shape (examples, neurons), on the output's device.

    Raises:
        ValueError: the output has fewer than two dimensions.
        NonFiniteError: (a ValueError) an activation is NaN or infinite.

    Examples:
        >>> neuron_activations(torch.ones(2, 3, 4, 4)).shape
        torch.Size([2, 3])
    """
    if output.ndim < 2:
        raise ValueError(f"layer {name!r} gave shape {tuple(output.shape)}; (examples, neurons, ...) is needed")
    if output.ndim == 3:  # (examples, tokens, features)
        output = output.transpose(1, 2)
    values = output.float()
    if output.ndim > 2:
        values = values.flatten(2).mean(dim=2) if reduce == "mean" else values.flatten(2).amax(dim=2)
    if not torch.isfinite(values).all():
        bad = int((~torch.isfinite(values)).sum())
        raise NonFiniteError(f"layer {name!r} holds {bad} NaN or infinite activations")
    return values
