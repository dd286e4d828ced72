"""Silencing: what a network says when some of its neurons say nothing, or always the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import torch
from torch import nn

from nbutils.capturing.hooks import Wanted, check_all_ran, evaluating, observed
from nbutils.capturing.layouts import Layout, read_call, read_layers
from nbutils.support.checks import as_labels

__all__ = ["ClassAccuracy", "Silence", "silenced"]

HELD = 2**27  # bytes of what goes into one part of a network, held for the next silencing
BATCH = 250  # examples per forward pass


@dataclass(frozen=True)
class Silence:
    """Neurons of one layer, and what they give instead of what they would.

    Attributes:
        neurons: numbers of units, channels or features in their layer, shape (silenced,).
        values: what each gives on every example and at every position, shape (silenced,), or one number for all.
    """

    neurons: np.ndarray
    values: np.ndarray | float = 0.0


@contextmanager
def silenced(
    model: nn.Module, silences: Mapping[str, Silence], layout: Layout = "auto"
) -> Iterator[dict[str, torch.Tensor]]:
    """Silence neurons of a model for one forward pass.

    What they give is written into their layer's own output as soon as it is there, at all positions, so that every
    later layer, and a way around it, sees nothing else. The hooks are removed when the block ends, also by an
    exception.

    Args:
        model: any PyTorch module.
        silences: by layer, named as :func:`nbutils.capturing.hooks.capture_activations` names them: leaf modules,
            functions that the model calls such as `layer1.0.relu()`, and further uses of either, `relu#2`.
        layout: which dimension of an output holds the neurons, see :func:`nbutils.capturing.layouts.read_layers`.

    Yields:
        The outputs of the layers as they were changed, after the pass.

    Raises:
        ValueError: no such layer, a neuron that its layer lacks, or an output that may be laid out in two ways.
        RuntimeError: a layer did not run in the block.

    Examples:
        >>> model = nn.Sequential(nn.Identity(), nn.ReLU())
        >>> with torch.no_grad(), silenced(model, {"1": Silence(np.array([0]))}):
        ...     print(model(torch.ones(1, 3)).tolist())
        [[0.0, 1.0, 1.0]]
    """
    bases = list(dict.fromkeys(name.partition("#")[0] for name in silences))
    modules = [name for name in bases if not name.endswith("()")]
    if missing := set(modules) - dict(model.named_modules()).keys():
        raise ValueError(f"silences names {min(missing)!r}, which is no layer of the model")
    asked = layout  # a mapping may name other layers, too
    if isinstance(layout, Mapping):
        asked = {word: way for word, way in layout.items() if any(fnmatchcase(name, word) for name in modules)}
    readings = read_layers(model, modules, asked or "auto") | {
        name: read_call(name, layout) for name in bases if name.endswith("()")
    }

    def write(label: str, output: torch.Tensor) -> torch.Tensor:
        if (one := silences.get(label)) is not None and len(one.neurons):
            reading = readings[label.partition("#")[0]]
            if output.ndim == 3 and reading.layout == "auto":
                raise reading.unclear(output)
            last = output.ndim > 2 and reading.layout == "features-last"
            places = output if last else output.movedim(1, -1)  # a view: what is written there is in the output
            if np.max(one.neurons) >= places.shape[-1] or np.min(one.neurons) < 0:
                raise ValueError(
                    f"neurons of layer {label!r} must be from 0 to {places.shape[-1] - 1}, received {max(one.neurons)}"
                )
            values = np.broadcast_to(np.asarray(one.values, dtype=np.float64), np.shape(one.neurons))
            places[..., torch.as_tensor(one.neurons)] = torch.from_numpy(values.copy()).to(output)
        return output

    with observed(model, Wanted.exactly(silences), write) as seen:
        yield seen
        check_all_ran(silences, seen)


@dataclass
class ClassAccuracy:
    """Accuracy on every class of a network with neurons silenced, on the same examples every time.

    Parts of a network that run one after the other (nested `nn.Sequential`) before the first silenced layer are run
    once, and what they give is kept.

    Attributes:
        model: any PyTorch module that returns scores, shape (examples, classes).
        inputs: as the model takes them, shape (examples, ...).
        labels: class per example, numbers of the model's outputs, shape (examples,).
        layout: see :func:`silenced`.
        batch: examples per forward pass.
        classes: the classes there are, rising.

    Examples:
        >>> model = nn.Sequential(nn.ReLU(), nn.Identity())
        >>> accuracy = ClassAccuracy(model, torch.eye(2), np.array([0, 1]))
        >>> accuracy().tolist(), accuracy({"0": Silence(np.array([1]))}).tolist()
        ([1.0, 1.0], [1.0, 0.0])
    """

    model: nn.Module
    inputs: torch.Tensor
    labels: np.ndarray
    layout: Layout = "auto"
    batch: int = BATCH
    classes: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.labels = as_labels(self.labels, len(self.inputs))
        self.classes, self._class = np.unique(self.labels, return_inverse=True)
        self._steps = list(_steps(self.model))
        self._held: dict[int, torch.Tensor] = {0: self.inputs}

    def __call__(self, silences: Mapping[str, Silence] | None = None) -> np.ndarray:
        """Share of the examples of each class that are told right, in the order of `classes`.

        Args:
            silences: see :func:`silenced`; none leaves the network whole.

        Raises:
            ValueError: see :func:`silenced`.
        """
        silences = {name: one for name, one in (silences or {}).items() if len(one.neurons)}
        with evaluating(self.model), torch.no_grad():
            first = min((self._step_of(name) for name in silences), default=len(self._steps))
            start, values = self._before(first)
            told = [
                self._rest(start, values[at : at + self.batch], silences) for at in range(0, len(values), self.batch)
            ]
        right = np.concatenate(told) == self.labels
        return np.bincount(self._class, right) / np.bincount(self._class)

    def _step_of(self, layer: str) -> int:
        fits = (at for at, (name, _) in enumerate(self._steps) if not name or f"{layer}.".startswith(f"{name}."))
        found = next(fits, None)
        if found is None:
            raise ValueError(f"silences names {layer!r}, which is no layer of the model")
        return found

    def _before(self, step: int) -> tuple[int, torch.Tensor]:
        """What goes into a step, or into the last one before it of which that was not too much to keep."""
        start = max(at for at in self._held if at <= step)
        values = self._held[start]
        for at in range(start, step):
            module = self._steps[at][1]
            values = torch.cat([module(part.clone()) for part in values.split(self.batch)])
            if values.nbytes > HELD:
                break
            self._held[at + 1], start = values, at + 1
        return start, self._held[start]

    def _rest(self, start: int, values: torch.Tensor, silences: Mapping[str, Silence]) -> np.ndarray:
        values = values.clone()  # a module may work in place
        with silenced(self.model, silences, self.layout):
            for _, module in self._steps[start:]:
                values = module(values)
        return values.argmax(dim=1).numpy()


def _steps(model: nn.Module, name: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Modules that run one after the other."""
    if type(model) is not nn.Sequential:
        yield name, model
        return
    for own, part in model.named_children():
        yield from _steps(part, f"{name}.{own}".lstrip("."))


def by_layer(
    neurons: Sequence[int] | np.ndarray, layers: np.ndarray, names: Sequence[str], values: Any = 0.0
) -> dict[str, Silence]:
    """Neurons of a whole network as silences of its layers.

    Args:
        neurons: numbers among all neurons, shape (silenced,).
        layers: layer of every neuron, numbered from 1 in the order of `names`, shape (neurons,); those of a layer stand
            together.
        names: of the layers.
        values: what every neuron of the network would give, shape (neurons,), or one number for all.

    Examples:
        >>> found = by_layer([0, 3], np.array([1, 1, 2, 2]), ["a", "b"])
        >>> {name: one.neurons.tolist() for name, one in found.items()}
        {'a': [0], 'b': [1]}
    """
    chosen, given = np.asarray(neurons, dtype=np.int64), np.broadcast_to(values, layers.shape)
    found = {}
    for number in np.unique(layers[chosen]):
        own = chosen[layers[chosen] == number]
        found[names[number - 1]] = Silence(own - np.searchsorted(layers, number), given[own])
    return found
