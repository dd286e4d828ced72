"""Capture: what every hidden neuron of a PyTorch model did on every example."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.utils.parametrize import is_parametrized
from torch.nn.utils.rnn import PackedSequence

from nbutils.capturing.batches import Batch, Feeder, Rows, stream
from nbutils.capturing.calls import activation_calls
from nbutils.capturing.layouts import FeaturesLast, Layout, Reading, read_layers
from nbutils.support.checks import as_count, is_among, shown

MOST = 1024  # examples per forward pass, unless told
BYTES = 256 * 2**20  # that the outputs of all layers take in one forward pass, unless told
_ONE = threading.RLock()  # threads that capture the same model would see each other's passes


def matching_layers(model: nn.Module, layers: str | Collection[str] = "*") -> list[str]:
    """Names of the model's leaf modules that match a wildcard, in the model's own order.

    Args:
        model: any PyTorch module.
        layers: shell-style wildcard over the names of `model.named_modules()`, several separated by spaces or in a
            list. Only leaf modules (those that hold no other) are matched, attention among them, for it never runs the
            module that it holds; a model without submodules is its own leaf, named "".

    Returns:
        The matching names, at least one.

    Raises:
        ValueError: a wildcard matches nothing; the message names the nearest and lists the layers there are. Or an
            argument is of another kind.

    Examples:
        >>> matching_layers(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), "1")
        ['1']
    """
    patterns, leaves = _patterns(model, layers), list(leaf_modules(model))
    _require_matches(layers, leaves, patterns)
    return _matched(leaves, patterns)


@dataclass(frozen=True)
class Wanted:
    """What a capture is asked for: layers, activation functions that the model calls without a module, uses of either.

    Attributes:
        names: of leaf modules, in the model's order.
        patterns: wildcards over what ran, `layer`, `function()`, or `layer#2` for the second use in a pass; without a
            number all uses. Which functions there are, and how often a layer runs, shows in a pass only.
    """

    names: list[str]
    patterns: list[str]

    @classmethod
    def exactly(cls, labels: Collection[str]) -> Wanted:
        """Modules, functions or uses by their names, in this order.

        Examples:
            >>> Wanted.exactly(["relu#2", "relu()"]).names
            ['relu']
        """
        names = dict.fromkeys(label.partition("#")[0] for label in labels if not _is_call(label))
        return cls(list(names), [as_pattern(label) for label in labels])

    @property
    def calls(self) -> bool:
        """Whether functions are asked for."""
        return any(_is_call(pattern) for pattern in self.patterns)

    def __contains__(self, label: str) -> bool:
        return any(_fits(label, pattern) for pattern in self.patterns)

    def require_met(self, ran: Collection[str], called: Collection[str]) -> None:
        """Refuse a pass in which nothing ran that a pattern asks for.

        Args:
            ran: what was taken, named by use.
            called: names of all functions that the model called.

        Raises:
            ValueError: tells the nearest spelling, or how often the layer ran.
        """
        for pattern in self.patterns:
            name, _, use = pattern.partition("#")
            if any(_fits(label, pattern) for label in ran) or not (use or _is_call(pattern)):
                continue
            there = [one for one in dict.fromkeys((*self.names, *called)) if _fits(one, name)]
            if not there:
                listed = f": {', '.join(map(repr, called))}" if called else ", which calls none"
                told = f"layers: {shown(pattern)} matches no activation function that the model calls"
                raise ValueError(f"{told}{_nearest(name, called)}{listed}")
            raise ValueError(f"layers: {shown(pattern)} names a use that is not there; {there[0]!r} runs less often")


def wanted_layers(model: nn.Module, layers: str | Collection[str] = "*") -> Wanted:
    """What a capture is asked for, as far as the model shows it before it runs.

    Args:
        model: any PyTorch module.
        layers: see :func:`capture`.

    Raises:
        ValueError: as :func:`matching_layers`.

    Examples:
        >>> wanted = wanted_layers(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), "1#2 *relu()")
        >>> wanted.names, "1" in wanted, "1#2" in wanted, "block.relu()" in wanted
        (['1'], False, True, True)
    """
    patterns, leaves = _patterns(model, layers), list(leaf_modules(model))
    modules = [pattern.partition("#")[0] for pattern in patterns if not _is_call(pattern)]
    if modules or not patterns:
        _require_matches(layers, leaves, modules)
    return Wanted(_matched(leaves, modules), patterns)


def as_pattern(name: str) -> str:
    """A wildcard that fits one name alone.

    Examples:
        >>> as_pattern("blocks[0]")
        'blocks[[]0]'
    """
    return name.replace("[", "[[]")


def _is_call(name: str) -> bool:
    """Whether a name or pattern is of a function that is called, or of a use of one."""
    return name.partition("#")[0].endswith("()")


def _fits(label: str, pattern: str) -> bool:
    """Whether what ran is asked for by a pattern."""
    (name, _, use), (names, _, uses) = label.partition("#"), pattern.partition("#")
    return _is_call(label) == _is_call(pattern) and fnmatchcase(name, names) and fnmatchcase(use or "1", uses or "*")


def _matched(names: Collection[str], patterns: Collection[str]) -> list[str]:
    return [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _nearest(pattern: str, there: Collection[str]) -> str:
    """A hint at the nearest spelling, also of a wildcard: of a name, of what it begins with, or of its last part."""
    asked, parts = pattern.strip("*."), [name.split(".") for name in there]
    begin = [".".join(own[:count]) for own in parts for count in range(1, len(own) + 1)]
    near = get_close_matches(asked, dict.fromkeys([*there, *begin, *(own[-1] for own in parts)]), n=1)
    return f" (did you mean {pattern.replace(asked, near[0])!r}?)" if asked and near else ""


def _require_matches(layers: Any, there: Collection[str], patterns: Collection[str]) -> None:
    unmet = [pattern for pattern in patterns if not _matched(there, [pattern])]
    if patterns and not unmet:
        return
    hint = next(filter(None, (_nearest(pattern, there) for pattern in unmet)), "")
    listed = ", ".join(map(repr, there))
    told = f"layers={shown(layers)}" if len(unmet) == len(patterns) else f"layers: {shown(unmet[0])}"
    raise ValueError(f"{told} matches none of the model's layers{hint}: {listed}")


def _patterns(model: nn.Module, layers: str | Collection[str]) -> list[str]:
    if not isinstance(model, nn.Module):
        raise ValueError(f"model must be a PyTorch module, received {type(model).__name__}")
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
        raise ValueError("model is TorchScript, which cannot be looked into; pass the module that it was made from")
    if any(isinstance(module, torch.fx.GraphModule) and "train" in vars(module) for module in model.modules()):
        raise ValueError(
            "model is an exported program, which runs without layers; pass the module that it was made from, or "
            "torch.export.unflatten(...) of the program"
        )
    if not isinstance(layers, str | list | tuple) or not all(isinstance(one, str) for one in layers):
        raise ValueError(
            f"layers must be wildcards over layer names, a string or a list of strings, received {shown(layers)}"
        )
    return layers.split() if isinstance(layers, str) else list(layers)


def leaf_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Modules that hold no other which runs as a layer."""
    parts: set[int] = set()
    for module in model.modules():
        if type(module).forward is nn.MultiheadAttention.forward:
            parts |= {id(part) for part in module.children()}
        if ".quantized." in type(module).__module__:  # its weights are held by modules
            parts |= {id(part) for part in module.modules() if part is not module}
        if is_parametrized(module):  # its weights are computed by modules
            parts |= {id(part) for part in module.parametrizations.modules()}
    return {
        name: module
        for name, module in model.named_modules()
        if id(module) not in parts and all(id(part) in parts for part in module.children())
    }


def check_output(name: str, output: Any, seen: Collection[str]) -> torch.Tensor:
    """The tensor that stands for a layer in this forward pass.

    Args:
        name: name of the layer that gave it.
        output: what the layer returned.
        seen: names of the layers that ran before it in the same pass.

    Returns:
        The output, or its first element where it is a tuple or a list, as of recurrent layers and attention; what is
        quantised as the numbers that it stands for.

    Raises:
        RuntimeError: the layer ran before in this pass, or returned no tensor.

    Examples:
        >>> check_output("relu", torch.zeros(5, 2), seen=["linear"]).shape
        torch.Size([5, 2])
    """
    if name in seen:
        raise RuntimeError(f"layer {name!r} ran twice in one forward pass; give each use a module of its own")
    if isinstance(output, torch.Tensor):
        return output.dequantize() if output.is_quantized else output
    several = isinstance(output, tuple | list) and not isinstance(output, PackedSequence)
    if several and output and isinstance(output[0], torch.Tensor):
        return output[0]
    raise RuntimeError(f"layer {name!r} returned {type(output).__name__}, not a tensor; choose other layers")


def check_all_ran(names: Collection[str], seen: Collection[str]) -> None:
    """Refuse a forward pass in which a layer did not run.

    Args:
        names: names of the layers that must run.
        seen: names of those that did.

    Raises:
        RuntimeError: a layer is missing.

    Examples:
        >>> check_all_ran(["linear", "relu"], seen=["relu", "linear"])
    """
    missing = [name for name in names if name not in seen]
    if missing:
        raise RuntimeError(f"layer {missing[0]!r} did not run in this forward pass; choose other layers")


@contextmanager
def capture(model: nn.Module, layers: str | Collection[str] = "*") -> Iterator[dict[str, torch.Tensor]]:
    """Record the outputs of a model's layers while the block runs.

    Args:
        model: any PyTorch module; one that was compiled runs uncompiled in the block.
        layers: wildcard over layer names, see :func:`matching_layers`; one that ends in `()`, such as `*relu()`, is
            over activation functions that the model calls without a module, named after the module that calls them.
            `relu#2` is the second use of a layer in a pass, `relu#1` its first, and `relu` all of them.

    Yields:
        A dictionary that after each forward pass holds that pass's output of each layer that ran, detached, in the
        layer's own shape; of a tuple or list the first tensor. The second use of a layer `relu` is `relu#2`. It is a
        copy, which later layers that work in place leave alone. They are those of the batch as you run it: in training,
        or where a layer looks at the other examples, they depend on it. The hooks are removed when the block ends, also
        by an exception.

    Raises:
        ValueError: no layer matches.
        RuntimeError: a layer returns no tensor.

    Examples:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> with capture(model, "1") as seen:
        ...     _ = model(torch.zeros(5, 2))
        >>> tuple(seen["1"].shape)
        (5, 3)
    """
    with observed(model, wanted_layers(model, layers), lambda _name, output: output.detach().clone()) as seen:
        yield seen


def use_label(name: str, use: int) -> str:
    """What a use of a layer in a pass is called.

    Args:
        name: of the layer.
        use: 1 for its first in the pass, and so on.

    Examples:
        >>> use_label("relu", 1), use_label("relu", 3)
        ('relu', 'relu#3')
    """
    return name if use == 1 else f"{name}#{use}"


@contextmanager
def observed(model: nn.Module, wanted: Wanted, take: Callable[[str, torch.Tensor], Any]) -> Iterator[dict[str, Any]]:
    """Call a function with each layer's output as soon as it is there, before a later layer can change it.

    Args:
        model: any PyTorch module.
        wanted: layers, functions and uses of either.
        take: is given the name and the output of a layer; of its second use in a pass the name ends in "#2".

    Yields:
        What `take` returned for what ran in the last forward pass, in the order in which it ran.

    Raises:
        RuntimeError: a layer returns no tensor.

    Examples:
        >>> with observed(nn.Sequential(nn.ReLU()), Wanted(["0"], ["0"]), lambda name, output: name) as seen:
        ...     pass
        >>> seen
        {}
    """
    modules = dict(model.named_modules())
    seen: dict[str, Any] = {}
    uses = Counter[str]()

    def begin(*_: Any) -> None:
        seen.clear()
        uses.clear()

    def note(name: str, output: Any) -> None:
        uses[name] += 1
        label = use_label(name, uses[name])
        if label in wanted:
            seen[label] = take(label, check_output(label, output, ()))

    def record(name: str):
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            note(name, output)

        return hook

    def called(name: str, _args: Any, output: torch.Tensor) -> None:
        note(name, output)

    # The pre-hook goes first: for a model that is one leaf, its own output hook must find nothing of the pass before.
    handles = [model.register_forward_pre_hook(begin)]
    try:
        handles += [modules[name].register_forward_hook(record(name)) for name in wanted.names]
        with as_written(), activation_calls(model, leaf_modules(model), called) if wanted.calls else nullcontext():
            yield seen
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def as_written() -> Iterator[None]:
    """Run models module by module meanwhile: compiled code and the short way through transformers leave hooks out.

    Examples:
        >>> with as_written():
        ...     nn.ReLU()(torch.ones(1)).item()
        1.0
    """
    short = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(short)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode while the block runs; each submodule gets its own mode back, also after an exception.

    Examples:
        >>> model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(3).eval())
        >>> with evaluating(model):
        ...     pass
        >>> [part.training for part in model]
        [True, False]
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def capture_activations(
    model: nn.Module,
    inputs: Any,
    layers: str | Collection[str] = "*",
    batch_size: int | None = None,
    reduce: str = "mean",
    prepare: Callable[[torch.Tensor], torch.Tensor] | None = None,
    layout: Layout = "auto",
) -> dict[str, np.ndarray]:
    """Activations of all neurons of some layers over a set of examples.

    The model runs in evaluation mode without gradients, and each of its modules gets its own mode back afterwards. A
    convolution's channel is one neuron, reduced over positions; of (examples, tokens, features) a feature is one
    neuron, reduced over tokens. Which of both an output is, the type of its layer decides, or `layout`. Of a layer that
    returns a tuple or list, as recurrent layers and attention do, the first tensor is taken. Outputs are taken when
    they are made, before a later layer can change them in place. A small pass comes first: it shows that the first
    dimension of every output is the examples, for that changes with their number, and that their activations do not
    depend on the batch, for they must come out the same beside other examples, but for rounding (a thousandth of the
    layer's largest value; more in low precision).

    Args:
        model: any PyTorch module.
        inputs: examples, array or tensor of any real dtype, shape (examples, ...), cast to the model's own; integers
            stay where the model holds an embedding. For a model of several arguments, a tuple or a dict of equally long
            arrays. Or an iterable of batches, such as a `DataLoader`: each an array, a tuple or list of which the first
            element is the input (labels after it are ignored), or a dict.
        layers: wildcard over layer names and called activation functions, see :func:`capture`.
        batch_size: examples per forward pass, at least 1; None takes up to 1,024, as many as the outputs of all layers
            leave room for in some 256 MiB.
        reduce: "mean" or "max" over positions or tokens.
        prepare: what turns a batch, on the model's device, into what the model takes, such as bytes into floats.
        layout: "channels-first", "features-last" or "steps-first" where a layer's type does not tell, or a mapping from
            layer wildcards to these words; see :func:`nbutils.capturing.layouts.read_layers`.

    Returns:
        A dictionary from layer name to a float array of shape (examples, neurons), in the model's order; each use of a
        layer after it (`relu`, `relu#2`), and called functions at the end, in the order in which they ran.

    Raises:
        ValueError: no layer matches, there are no examples, an argument is out of range, or an output cannot be read:
            its first dimension is not the examples, or its layout is not known; or an example's activations depend on
            the others in its batch, or are random.
        RuntimeError: a layer does not run, runs more or less often than in the first pass, or returns no tensor; or the
            model fails, which is told with the shapes it was given.
        NonFiniteError: (a ValueError) an activation is NaN or infinite; the message names the layer.

    Examples:
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        >>> {name: a.shape for name, a in capture_activations(model, np.zeros((5, 2), "f4")).items()}
        {'0': (5, 3), '1': (5, 3)}
    """
    batch_size = None if batch_size is None else as_count(batch_size, "batch_size")
    if not is_among(reduce, ("mean", "max")):
        raise ValueError(f"reduce must be 'mean' or 'max', received {shown(reduce)}")
    wanted = wanted_layers(model, layers)
    rows = Rows(read_layers(model, wanted.names, layout, calls=wanted.calls), reduce, layout)
    feed = Feeder(model, prepare)
    size, ran = 0, set()
    with _ONE, evaluating(model), torch.no_grad(), observed(model, wanted, rows.take) as seen:
        for whole in stream(inputs):
            if not size:
                size, called = _first_pass(model, feed, whole, rows, batch_size, wanted)
                wanted.require_met(seen, called)
                ran = set(seen)
            rows.begin(len(whole))
            for start in range(0, len(whole), size):
                part = whole.rows(slice(start, start + size))
                rows.expect(start, len(part))
                feed(part)
                check_all_ran(wanted.names, {label.partition("#")[0] for label in seen})
                if seen.keys() != ran:
                    odd = min(seen.keys() ^ ran)
                    raise RuntimeError(f"layer {odd!r} ran in one forward pass and not in another; choose other layers")
                rows.judge(feed)
    listed = [label for name in wanted.names for label in seen if label.partition("#")[0] == name]
    return rows.found([*listed, *(label for label in seen if label not in listed)])


def _first_pass(
    model: nn.Module, feed: Feeder, whole: Batch, rows: Rows, batch_size: int | None, wanted: Wanted
) -> tuple[int, list[str]]:
    """A pass of two examples or three, another number than the next has: shows sizes, and where the examples are.

    Returns:
        (how many examples each of the next passes has at most, names of the functions that the model called).
    """
    few = 3 if batch_size == 1 or min(batch_size or MOST, len(whole)) == 2 else 2
    places = [(1 - place) % len(whole) for place in range(few)]  # beside others, and behind others
    some = whole.rows(places)
    rows.expect_few(some, places)
    taken, known, calls = [_bytes(some.args) + _bytes(some.named)], FeaturesLast(), dict[str, None]()
    leaves = leaf_modules(model)
    readings = read_layers(model, list(leaves)) | rows.readings

    def look(reading: Reading) -> Callable[..., None]:
        def hook(_module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
            taken.append(_bytes(output))
            if known.unclear(reading, given, output) and reading.name in rows.readings:
                raise reading.unclear(output)

        return hook

    def called(name: str, args: tuple[Any, ...], output: torch.Tensor) -> None:
        calls[name] = None
        asked = any(_fits(name, pattern.partition("#")[0]) for pattern in wanted.patterns)
        reading = rows.reading(name)
        taken.append(_bytes(output) if asked else 0)
        if known.unclear(reading, args, output) and asked:
            raise reading.unclear(output)

    handles = [module.register_forward_hook(look(readings[name])) for name, module in leaves.items()]
    try:
        with activation_calls(model, leaves, called) if wanted.calls else nullcontext():
            feed(some)
    finally:
        for handle in handles:
            handle.remove()
    if batch_size is not None:
        return batch_size, list(calls)
    size = max(1, min(MOST, BYTES * few // max(1, sum(taken))))
    return 3 if size == few else size, list(calls)


def _bytes(output: Any) -> int:
    if isinstance(output, dict):
        output = tuple(output.values())
    return sum(map(_bytes, output)) if isinstance(output, tuple | list) else getattr(output, "nbytes", 0)
