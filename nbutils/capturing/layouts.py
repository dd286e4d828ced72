"""How a layer's output is read: which dimension holds the examples, and which the neurons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from nbutils.support.checks import is_among, shown

LAYOUTS = ("auto", "channels-first", "features-last", "steps-first")
Layout = str | Mapping[str, str]  # one of LAYOUTS, or which of them holds for which layers

# (examples, channels, positions ...), by the number of dimensions that positions have; None where any will do.
CHANNELS_FIRST: dict[type, int | None] = {
    getattr(nn, f"{kind}{size}d"): size
    for kind in (
        *("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm", "MaxPool", "MaxUnpool", "AvgPool", "LPPool"),
        *("AdaptiveMaxPool", "AdaptiveAvgPool", "FractionalMaxPool"),
    )
    for size in (1, 2, 3)
    if hasattr(nn, f"{kind}{size}d")
} | {nn.SyncBatchNorm: None, nn.GroupNorm: None}
FEATURES_LAST = (nn.Linear, nn.Bilinear, nn.Embedding, nn.EmbeddingBag)
NORMS = (nn.LayerNorm, nn.RMSNorm)  # features last where they normalise one dimension
SEQUENCES = (nn.RNN, nn.LSTM, nn.GRU, nn.MultiheadAttention)


class NonFiniteError(ValueError):
    """A layer's activations hold NaN or infinite values."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How one layer's output is read.

    Attributes:
        name: name of the layer, for messages.
        kind: name of its type, for messages.
        layout: of an output with three dimensions or more; see :func:`read_layers`.
        dims: numbers of dimensions that the layer's output has for a batch; None means any from two on.
        time_first: whether the layer gives (steps, examples, features), where it gives three dimensions or more.
    """

    name: str = ""
    kind: str = ""
    layout: str = "auto"
    dims: tuple[int, ...] | None = None
    time_first: bool = False

    def batch_first(self, output: torch.Tensor, examples: int | None = None) -> torch.Tensor:
        """The output with the examples in the first dimension.

        Args:
            output: what the layer returned.
            examples: number of examples in the batch; None if it is not known.

        Raises:
            ValueError: the output cannot be read so, or its first dimension is not the batch.
        """
        if output.is_nested or output.layout != torch.strided or output.is_complex() or output.is_quantized:
            raise ValueError(
                f"layer {self.name!r} gave a nested, sparse, complex or quantised tensor; a plain one is needed"
            )
        shape = tuple(output.shape)
        if len(shape) < 2:
            raise ValueError(f"layer {self.name!r} gave shape {shape}; (examples, neurons, ...) is needed")
        if self.dims is not None and len(shape) not in self.dims:
            wanted = " or ".join(map(str, self.dims))
            raise ValueError(
                f"layer {self.name!r} gave shape {shape}; {self.kind} gives {wanted} dimensions for a batch"
            )
        time_first = self.time_first and len(shape) > 2
        if time_first:
            output = output.transpose(0, 1)
        if examples is not None and len(output) != examples:
            where = "second" if time_first else "first"
            raise ValueError(
                f"layer {self.name!r} gave shape {shape} for a batch of {examples} examples; "
                f"its {where} dimension must be the examples"
            )
        return output

    def neurons(self, output: torch.Tensor, reduce: str = "mean") -> torch.Tensor:
        """One activation per neuron and example; a view of the output where it is (examples, neurons) in float32.

        Args:
            output: the layer's output, examples in the first dimension.
            reduce: "mean" or "max" over tokens or positions.

        Raises:
            ValueError: an output of three dimensions whose layout is not known.
            NonFiniteError: (a ValueError) an activation is NaN or infinite.
        """
        values = self.reduced(output, reduce)
        if not torch.isfinite(values).all():
            bad = int((~torch.isfinite(values)).sum())
            raise NonFiniteError(f"layer {self.name!r} holds {bad} NaN or infinite activations")
        return values

    def reduced(self, output: torch.Tensor, reduce: str = "mean") -> torch.Tensor:
        """As :meth:`neurons`, with whatever values there are."""
        if output.ndim == 3 and self.layout == "auto":
            raise self.unclear(output)
        if output.ndim > 2 and self.layout == "features-last":
            output = output.movedim(-1, 1)
        values = output.float()
        if output.ndim > 2:
            values = values.flatten(2).mean(dim=2) if reduce == "mean" else values.flatten(2).amax(dim=2)
        return values

    def unclear(self, output: torch.Tensor) -> ValueError:
        """The error of an output that may be read in two ways."""
        ways = "(examples, channels, positions) or (examples, tokens, features)"
        if output.ndim > 3:
            ways = "(examples, channels, positions, ...) or (examples, ..., features)"
        return ValueError(
            f"layer {self.name!r} ({self.kind}) gave shape {tuple(output.shape)}, which may be {ways}; say "
            f"layout='channels-first' or 'features-last', for this layer alone as layout={{{self.name!r}: ...}}"
        )


class FeaturesLast:
    """Follows outputs with their features last, or with dimensions in another order, through layers that do not tell.

    Without it, four dimensions from an activation function behind a `Linear` would be taken for channels first, as in
    ConvNeXt and Swin transformers.
    """

    def __init__(self) -> None:
        self._found: dict[int, torch.Tensor] = {}  # by identity; held, so that no other tensor gets the same

    def unclear(self, reading: Reading, inputs: tuple[Any, ...], output: Any) -> bool:
        """Whether a layer, of which nothing is said, gave four dimensions or more that may have features last."""
        if not isinstance(output, torch.Tensor) or output.ndim < 4 or reading.layout == "channels-first":
            return False
        before = next((one for one in inputs if isinstance(one, torch.Tensor)), output)
        follows = before.shape == output.shape and id(before) in self._found
        turned = sorted(before.shape) == sorted(output.shape) and before.stride() != output.stride()
        if reading.layout == "features-last" or follows or (turned and before.data_ptr() == output.data_ptr()):
            self._found[id(output)] = output
            return reading.layout == "auto"
        return False


def read_layers(model: nn.Module, names: list[str], layout: Layout = "auto", calls: bool = False) -> dict[str, Reading]:
    """How each of some layers is read: decided by its type, and where that does not tell, by `layout`.

    Convolutions, batch, instance and group norm and pooling give (examples, channels, positions ...). `Linear`,
    embeddings, layer and RMS norm over one dimension, attention and recurrent layers give (examples, ..., features);
    recurrent layers and attention with `batch_first=False` give (steps, examples, features). A subclass with a
    `forward` of its own, and any other module, such as an activation function, may give either.

    Args:
        model: any PyTorch module.
        names: names of the layers.
        layout: "channels-first" or "features-last" for outputs of three dimensions or more of layers whose type does
            not tell, "steps-first" for (steps, examples, features); "auto" takes three dimensions as an error there,
            and more as channels first (unless capture sees that they follow a layer with features last). Or a mapping
            from wildcards over layer names to these words, which decides for the layers it names (the first match
            counts), whatever their type.
        calls: whether wildcards may also name activation functions that the model calls, which show only then.

    Returns:
        A :class:`Reading` for each name, in the same order.

    Raises:
        ValueError: an unknown layout, or a wildcard in it that matches none of the names.

    Examples:
        >>> model = nn.Sequential(nn.Linear(4, 9), nn.ReLU())
        >>> [one.layout for one in read_layers(model, ["0", "1"], "channels-first").values()]
        ['features-last', 'channels-first']
    """
    chosen = layout if isinstance(layout, Mapping) else {}
    words = [layout] if not isinstance(layout, Mapping) else list(layout.values())
    if not all(is_among(word, LAYOUTS) for word in words):
        allowed = ", ".join(map(repr, LAYOUTS))
        raise ValueError(
            f"layout must be one of {allowed}, or a mapping from layer names to these, received {shown(layout)}"
        )
    for pattern in chosen:
        if calls and isinstance(pattern, str) and "()" in pattern:
            continue
        if not isinstance(pattern, str) or not any(_names(pattern, name) for name in names):
            raise ValueError(
                f"layout names {pattern!r}, which matches none of the layers {', '.join(map(repr, names))}"
            )
    modules, found = dict(model.named_modules()), {}
    for name in names:
        known, dims, time_first = _of_type(modules[name])
        asked = next((word for pattern, word in chosen.items() if _names(pattern, name)), "auto")
        if asked == "auto":
            asked = known if known != "auto" or chosen else str(layout)
        found[name] = _reading(name, type(modules[name]).__name__, asked, dims, time_first)
    return found


def _names(pattern: str, name: str) -> bool:
    """Whether a pattern names a layer, or a use of it."""
    return fnmatchcase(name, pattern.partition("#")[0])


def read_call(name: str, layout: Layout = "auto") -> Reading:
    """How the output of an activation function is read that a model calls without a module.

    Args:
        name: of the call.
        layout: see :func:`read_layers`.

    Examples:
        >>> read_call("block.relu()", {"*relu()": "features-last"}).layout
        'features-last'
    """
    words = layout if isinstance(layout, Mapping) else {"*": layout}
    tried = ((one, pattern) for one in (name, name.partition("#")[0]) for pattern in words)
    asked = next((words[pattern] for one, pattern in tried if fnmatchcase(one, pattern)), "auto")
    return _reading(name, "a called function", asked)


def _reading(
    name: str, kind: str, layout: str, dims: tuple[int, ...] | None = None, time_first: bool = False
) -> Reading:
    if layout == "steps-first":
        return Reading(name, kind, "features-last", dims, time_first=True)
    return Reading(name, kind, layout, dims, time_first)


def _of_type(module: nn.Module) -> tuple[str, tuple[int, ...] | None, bool]:
    """Layout, possible numbers of dimensions, and whether steps come first: what a module's type tells."""
    known = (*CHANNELS_FIRST, *FEATURES_LAST, *NORMS, *SEQUENCES)
    kind = next((one for one in type(module).__mro__ if one in known), None)
    if kind is None or type(module).forward is not kind.forward:
        return "auto", None, False
    if kind in CHANNELS_FIRST:
        size = CHANNELS_FIRST[kind]
        # Without the batch dimension, which PyTorch allows, examples would be taken for channels.
        dims = None if size is None else (2, 3) if kind is nn.BatchNorm1d else (size + 2,)
        return "channels-first", dims, False
    if kind in SEQUENCES:
        return "features-last", (3,), not module.batch_first
    if kind in NORMS and len(module.normalized_shape) != 1:
        return "auto", None, False
    return "features-last", None, False
