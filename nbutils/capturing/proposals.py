"""Which layers of a model to look at where nobody says: what activation functions and recurrent layers give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from nbutils.capturing.batches import Feeder, stream
from nbutils.capturing.calls import ACTIVATIONS, activation_calls
from nbutils.capturing.hooks import as_written, evaluating, leaf_modules, matching_layers, use_label
from nbutils.capturing.layouts import read_layers

RECURRENT = (nn.RNN, nn.LSTM, nn.GRU)
# Activation functions that make gates or shares of what other layers give, and are no neurons where there are others.
GATES = ("sigmoid", "hardsigmoid", "softmax", "softmin", "softmax2d", "logsoftmax", "logsigmoid")
UNITS = tuple(
    getattr(nn, name)
    for name in nn.modules.activation.__all__
    if name not in ("MultiheadAttention", "GLU") and hasattr(nn, name)
)
# What leaves every value where it is, so that its output is laid out as its input.
FOLLOWING = (*UNITS, nn.Dropout, nn.AlphaDropout, nn.Identity)
SUMS = {
    getattr(home, word): "+"
    for home in (torch, torch.Tensor)
    for word in ("add", "add_", "__add__", "__iadd__", "__radd__", "contiguous")
    if hasattr(home, word)
} | {nn.functional.dropout: "dropout"}
EXAMPLES, FEWER = 3, 2  # of the pass that shows what there is, and of one that shows where the examples are


@dataclass(frozen=True)
class Proposal:
    """One layer of a model, and whether its output is worth looking at.

    Attributes:
        name: as :func:`nbutils.capturing.hooks.capture_activations` calls it.
        kind: type of the module, or "a called function".
        shape: of its output for one example.
        neurons: how many there are.
        layout: how its output is read, see :func:`nbutils.capturing.layouts.read_layers`.
        chosen: whether it is proposed.
        why: the reason, in words.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    neurons: int
    layout: str
    chosen: bool
    why: str


@dataclass
class _Seen:
    """An output of a pass."""

    name: str
    kind: str
    output: torch.Tensor
    layout: str
    follows: str
    word: str


def propose_layers(
    model: nn.Module, inputs: Any, prepare: Callable[[torch.Tensor], torch.Tensor] | None = None
) -> list[Proposal]:
    """Layers of a model whose outputs are its hidden neurons, in the order in which they run.

    What activation functions give is proposed, modules and called functions alike, modules of a user's own that call
    one among them, and what recurrent layers give; where there are none of them, what hidden layers with weights give.
    A sigmoid or softmax beside other activation functions is taken for a gate, and what the model itself returns is no
    hidden layer. How an output is laid out follows from the layer before it through activation functions, dropout and
    sums, and where the examples are from a second pass with fewer of them.

    Args:
        model: any PyTorch module.
        inputs: examples, as :func:`nbutils.capturing.hooks.capture_activations` takes them; three are passed.
        prepare: as there.

    Returns:
        One :class:`Proposal` for each output that was considered, at least one of them chosen.

    Raises:
        ValueError: nothing can be proposed; says why.
        RuntimeError: the model fails on the examples, which is told with the shapes it was given.

    Examples:
        >>> model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
        >>> [(one.name, one.neurons, one.why) for one in propose_layers(model, torch.zeros(5, 4))]
        [('1', 6, 'what ReLU makes of 0')]
    """
    matching_layers(model)  # refuses what is no model, or cannot be looked into
    whole = next(stream(inputs))
    few = whole.rows([place % len(whole) for place in range(EXAMPLES)])
    feed = Feeder(model, prepare)
    seen, given = _passed(model, feed, few)
    if any(_unclear(one.output.shape) for one in seen):
        fewer = {one.name: one.output.shape for one in _passed(model, feed, few.rows(slice(FEWER)))[0]}
        seen = [replace(one, layout="steps-first") if _steps_first(one, fewer) else one for one in seen]
    found = [_proposed(one, given) for one in seen if one.word != "weights"]
    if not any(one.chosen for one in found):
        found += [_proposed(one, given) for one in seen if one.word == "weights"]
    gates = [one.name for one in seen if one.word == "gate"]
    if any(one.chosen and one.name not in gates for one in found):
        found = [
            replace(one, chosen=False, why="a gate, beside other activation functions") if one.name in gates else one
            for one in found
        ]
    if not any(one.chosen for one in found):
        reasons = "; ".join(f"{one.name or 'the model'}: {one.why}" for one in found) or "it runs no layer"
        raise ValueError(f"no layer of the model can be proposed ({reasons}); name some with layers")
    return found


def _passed(model: nn.Module, feed: Feeder, few: Any) -> tuple[list[_Seen], Any]:
    """Outputs of one pass that may be neurons, in order, and what the model gave."""
    leaves = leaf_modules(model)
    readings = read_layers(model, list(leaves))
    own = {name for name, one in leaves.items() if name and not type(one).__module__.startswith("torch.")}
    inside: dict[str, tuple[str, torch.Tensor]] = {}  # what a module of somebody's own called last
    layouts: dict[int, tuple[torch.Tensor, str, str]] = {}  # by identity: the tensor, held; its layout; who gave it
    seen: list[_Seen] = []
    given: list[Any] = []

    def note(name: str, kind: str, args: tuple[Any, ...], output: Any, layout: str, word: str) -> None:
        output = output[0] if isinstance(output, tuple | list) and output else output
        if not isinstance(output, torch.Tensor):
            return
        before = [layouts[id(one)] for one in args if id(one) in layouts and one.shape == output.shape]
        if layout == "auto" and word in ("unit", "gate", "same") and before:
            layout = before[0][1]
        follows = next((who for _, _, who in before), "")
        before_it = sum(one.name.partition("#")[0] == name for one in seen)
        label = follows if word == "same" else use_label(name, 1 + before_it)
        layouts[id(output)] = output, layout, label
        if word in ("unit", "gate", "recurrent", "weights"):
            seen.append(_Seen(label, kind, output.detach().clone(), layout, follows, word))

    def at_leaf(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            reading = readings[name]
            if reading.time_first and isinstance(output, tuple):
                output = (output[0].transpose(0, 1), *output[1:])
            function, made = inside.pop(name, ("", None))
            word, layout = _word(module), reading.layout
            if function and (output is made or not any(True for _ in module.parameters(recurse=False))):
                # x * sigmoid(x) is an activation function, and sigmoid(x) alone a gate.
                word = "gate" if output is made and function in GATES else "unit"
            elif layout == "auto" and word == "weights":
                layout = _laid_out(args, output)
            note(name, type(module).__name__, args, output, layout, word)

        return hook

    def called(name: str, args: tuple[Any, ...], output: torch.Tensor) -> None:
        where, _, function = name.removesuffix("()").rpartition(".")
        if where in own:
            if function not in SUMS.values():
                inside[where] = function, output
            return
        word = "same" if function in SUMS.values() else "gate" if function in GATES else "unit"
        note(name, function, args, output, "auto", word)

    handles = [module.register_forward_hook(at_leaf(name)) for name, module in leaves.items()]
    handles.append(model.register_forward_hook(lambda _module, _args, output: given.append(output)))
    try:
        calls = activation_calls(model, leaves.keys() - own, called, ACTIVATIONS | SUMS)
        with as_written(), evaluating(model), torch.no_grad(), calls:
            feed(few)
    finally:
        for handle in handles:
            handle.remove()
    return seen, given[-1]


def _unclear(shape: torch.Size) -> bool:
    """Whether another dimension than the first may hold the examples."""
    return len(shape) > 2 and (shape[0] != EXAMPLES or shape[1] == EXAMPLES)


def _steps_first(one: _Seen, fewer: dict[str, torch.Size]) -> bool:
    """Whether the second dimension, and no other, has another length with fewer examples."""
    shape = one.output.shape
    return len(shape) == 3 and shape[1] == EXAMPLES and fewer.get(one.name) == (shape[0], FEWER, shape[2])


def _laid_out(args: tuple[Any, ...], output: Any) -> str:
    """What the shapes of a layer's input and output tell: its neurons are along the one dimension that it changes."""
    before = next((one.shape for one in args if isinstance(one, torch.Tensor)), ())
    after = output.shape if isinstance(output, torch.Tensor) else ()
    if len(before) != len(after) or len(after) < 3:
        return "auto"
    changed = [place for place, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    return "features-last" if changed == [len(after) - 1] else "channels-first" if changed == [1] else "auto"


def _word(module: nn.Module) -> str:
    """What a module's output may be."""
    if isinstance(module, RECURRENT):
        return "recurrent"
    if isinstance(module, UNITS):
        return "gate" if type(module).__name__.lower() in GATES else "unit"
    if isinstance(module, FOLLOWING):
        return "same"
    return "weights" if any(True for _ in module.parameters(recurse=False)) else "other"


def _proposed(one: _Seen, given: Any) -> Proposal:
    shape = tuple(one.output.shape)
    layout = one.layout if one.layout != "auto" or len(shape) == 3 else "channels-first"
    last = layout in ("features-last", "steps-first")
    neurons = 1 if len(shape) < 2 else shape[-1] if last else shape[1]
    made = f" makes of {one.follows}" if one.follows else " gives"
    why, chosen = f"what {one.kind}{made}", False
    if len(shape) < 2 or (shape[0] != EXAMPLES and layout != "steps-first"):
        why = f"gives shape {shape} for {EXAMPLES} examples: its first dimension is not the examples"
    elif layout == "auto":
        why = f"gives shape {shape}, which may be (channels, positions) or (tokens, features): say which with layout"
    elif neurons < 2:
        why = "has one neuron alone"
    elif any(_same(one.output, output) for output in _tensors(given)):
        why = "what the model itself returns"
    else:
        chosen = True
    of_one = (shape[0], *shape[2:]) if layout == "steps-first" else shape[1:]
    return Proposal(one.name, one.kind, of_one, neurons, layout, chosen, why)


def _tensors(given: Any) -> list[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        return [given]
    parts = given.values() if isinstance(given, dict) else given if isinstance(given, tuple | list) else ()
    return [part for part in parts if isinstance(part, torch.Tensor)]


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)
