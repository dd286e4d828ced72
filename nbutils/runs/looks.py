"""A look at one network through a probe: all that any measure may use of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from nbutils.activations import above_least, activation_histogram, firing
from nbutils.data.datasets import held_out_probe, probe_indices
from nbutils.measures import class_cells
from nbutils.runs.conditions import activation
from nbutils.runs.run import Run
from nbutils.support.checks import shown

if TYPE_CHECKING:
    from torch.nn import Module

PROBES = ("held-out", "training")


@dataclass(frozen=True)
class Look:
    """One network, and what it makes of the images of a probe.

    Attributes:
        preactivations: of all hidden neurons before the ReLU, float32, shape (examples, neurons).
        layers: hidden layer of every neuron, numbered from 1, shape (neurons,).
        logits: outputs, shape (examples, classes).
        labels: true class of every example, shape (examples,).
        inputs: the images as the network takes them, shape (examples, pixels).
        weights: of a fully connected network, matrix of every layer, shape (outputs, inputs) each; `biases` likewise,
            shape (outputs,). Empty for others.
        trained_on: images of the run's own training probe as the network takes them, and their labels as given.
        run: what is known of the network's training: its last state and its parameters, by name.
        neurons: how many neurons every graph is drawn down to.
        seed: of all drawing.
        network: the network itself, in evaluation mode; None where only its activations are known.
    """

    preactivations: np.ndarray = field(repr=False)
    layers: np.ndarray = field(repr=False)
    logits: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    inputs: np.ndarray = field(repr=False)
    weights: tuple[np.ndarray, ...] = field(repr=False)
    biases: tuple[np.ndarray, ...] = field(repr=False)
    trained_on: tuple[np.ndarray, np.ndarray] = field(repr=False)
    run: Mapping[str, Any] = field(repr=False)
    neurons: int
    seed: int
    network: Module | None = field(default=None, repr=False)

    @cached_property
    def activations(self) -> np.ndarray:
        """After the ReLU, shape (examples, neurons)."""
        return np.maximum(self.preactivations, 0)

    @cached_property
    def last(self) -> np.ndarray:
        """Activations of the last hidden layer."""
        return self.activations[:, self.layers == self.layers.max()]

    @cached_property
    def fired(self) -> np.ndarray:
        """Which activations count as firing, a neuron's own strongest tenth; boolean, shape (examples, neurons)."""
        return firing(self.activations)

    @cached_property
    def positive(self) -> np.ndarray:
        """Which activations are positive, boolean, shape (examples, neurons)."""
        return self.activations > 0

    @cached_property
    def histogram(self) -> np.ndarray:
        """Histogram of each neuron's positive activations, shape (10, neurons)."""
        return activation_histogram(self.activations)

    @cached_property
    def predicted(self) -> np.ndarray:
        """Class that the network predicts, shape (examples,)."""
        return self.logits.argmax(axis=1).astype(np.int64)

    @cached_property
    def cells(self) -> np.ndarray:
        """Cell of true x predicted class, shape (examples,)."""
        return class_cells(self.labels, self.predicted)

    @property
    def dead(self) -> float:
        """Share of hidden neurons that never fire on this probe."""
        return float(1 - self.fired.any(axis=0).mean())

    def part(self, chosen: np.ndarray) -> Look:
        """The same network on some of the examples."""
        rows = {name: getattr(self, name)[chosen] for name in ("preactivations", "logits", "labels", "inputs")}
        return replace(self, **rows)


class AnyLook(Look):
    """A look at any network: what its layers gave, whatever their activation function.

    `preactivations` are the captured activations themselves, for what went before need not be one number per neuron.
    """

    @cached_property
    def activations(self) -> np.ndarray:
        """As captured, shape (examples, neurons)."""
        return self.preactivations

    def of_layer(self, number: int, neurons: int) -> AnyLook:
        """The same network, one layer of it."""
        own = self.layers == number
        return replace(
            self, preactivations=self.preactivations[:, own], layers=np.ones(own.sum(), int), neurons=neurons
        )


@dataclass(frozen=True)
class RelativeLook(AnyLook):
    """A look at units that can be negative or are never 0: they fire by where they lie in their own distribution.

    Attributes:
        on: output of the activation function above which its input is positive.
    """

    on: float = 0.0

    @cached_property
    def activations(self) -> np.ndarray:
        """Counted from each neuron's least on these images, shape (examples, neurons)."""
        return above_least(self.preactivations)

    @cached_property
    def positive(self) -> np.ndarray:
        """Where the input of the activation function is positive, as it is where a ReLU's output is."""
        return self.preactivations > self.on


def look_at(
    run: Run,
    epoch: int = -1,
    probe: str = "held-out",
    neurons: int | None = None,
    network: Module | None = None,
) -> Look:
    """Look at a network of a run.

    Args:
        run: a finished run.
        epoch: -1, the trained network, or 0, the untrained one; any other only with checkpoints.
        probe: "held-out", test images that serve nothing else, see :func:`nbutils.data.datasets.held_out_probe`; or
            "training", the run's own probe.
        neurons: how many neurons every graph is drawn down to; None means half of the network's hidden neurons.
        network: looked at in place of the run's own, such as a pruned copy of it, in evaluation mode; None means that
            of the epoch.

    Returns:
        A :class:`Look`. `run` holds the parameters and, of the run's own network, the last state of training; and
        `other_accuracy`, the accuracy on the `other_images` test images outside the held-out probe.

    Raises:
        ValueError: another probe, or an epoch whose weights are not stored.

    Examples:
        >>> from nbutils.runs.run import run_once
        >>> from nbutils.runs.spec import RunSpec
        >>> look = look_at(run_once(RunSpec(epochs=1, model="mlp:8")))
        >>> look.fired.shape, look.neurons
        ((180, 8), 4)
    """
    from nbutils.capturing.hooks import capture_activations  # loads PyTorch, which reading stored measures never needs
    from nbutils.runs.models import hidden_layers, takes_images
    from nbutils.runs.training import one_thread

    if probe not in PROBES:
        raise ValueError(f"probe must be one of {', '.join(PROBES)}, received {shown(probe)}")
    last = run.record["history"][0 if epoch == 0 else -1] if network is None else {}
    network = run.network(epoch) if network is None else network
    data, function = run.spec.data(), activation(run.spec.activation)
    usual = (run.spec.activation, run.spec.normalisation, run.spec.sparsity) == ("relu", "none", 0)
    other = takes_images(run.spec.model) or not usual
    watched, others = held_out_probe(data.test_labels)
    pixels, labels = data.test_pixels[watched], data.test_labels[watched]
    chosen = probe_indices(data.train_true, run.spec.probe)
    if probe == "training":
        pixels, labels = data.train_pixels[chosen], data.train_true[chosen]
    with one_thread():
        hidden, layout = ("hidden*.linear", "auto")
        if other:
            hidden, layout = hidden_layers(run.spec.model, run.spec.activation)
        seen = capture_activations(network, pixels, f"{hidden} output", prepare=data.to_inputs, layout=layout)
        elsewhere = capture_activations(network, data.test_pixels[others], "output", prepare=data.to_inputs)["output"]
    logits, state = seen.pop("output"), {} if other else network.state_dict()
    parameters = [value.detach().numpy().astype(np.float64) for value in state.values()]
    known = {**run.spec.model_dump(), **last, "examples": len(data.train_labels), "classes": len(data.classes)}
    known["other_accuracy"] = float((elsewhere.argmax(axis=1) == data.test_labels[others]).mean())
    known["other_images"] = len(others)
    kind = partial(RelativeLook, on=function.on) if function.relative else AnyLook if other else Look
    return kind(
        preactivations=np.hstack(list(seen.values())),
        layers=run.layers,
        logits=logits,
        labels=labels,
        inputs=data.to_inputs(pixels),
        weights=tuple(parameters[::2]),
        biases=tuple(parameters[1::2]),
        trained_on=(data.to_inputs(data.train_pixels[chosen]), data.train_labels[chosen]),
        run=known,
        neurons=len(run.layers) // 2 if neurons is None else neurons,
        seed=run.spec.seed,
        network=network,
    )
