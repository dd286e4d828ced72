"""Which weights a network can do without: rules that score weights, pruning by a score, retraining with the rest.

A rule is a function that scores every weight of a network, the larger the longer it is kept, and an entry of
`PRUNINGS`. Weights are those of linear layers and convolutions; biases and normalisations are never pruned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from nbutils.support.checks import is_number, shown

if TYPE_CHECKING:
    import torch
    from torch import nn

    from nbutils.data.datasets import Dataset
    from nbutils.runs.training import TrainingSettings

__all__ = ["PRUNINGS", "Pruning", "Seen", "pruned", "retrained", "surviving_shares", "weight_scores"]


@dataclass(frozen=True)
class Seen:
    """All that a rule may look at.

    Attributes:
        network: in evaluation mode.
        inputs: training images as the network takes them, shape (examples, values).
        labels: their labels as given, shape (examples,).
        rng: source of randomness.
    """

    network: nn.Module
    inputs: torch.Tensor
    labels: torch.Tensor
    rng: np.random.Generator

    @property
    def weights(self) -> list[nn.Parameter]:
        """What can be pruned, a tensor per layer."""
        return [layer.weight for layer in _layers(self.network)]


@dataclass(frozen=True)
class Pruning:
    """A rule by which weights are pruned.

    Attributes:
        title: what a page calls it.
        formula: its score, in symbols.
        about: what it keeps, in one sentence.
        scores: of every weight, at least 0, a tensor for each of :attr:`Seen.weights`.
    """

    title: str
    formula: str
    about: str
    scores: Callable[[Seen], Sequence[torch.Tensor]]


def _layers(network: nn.Module) -> list[nn.Module]:
    from torch import nn

    return [layer for layer in network.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]


def _magnitude(seen: Seen) -> list[torch.Tensor]:
    return [weight.detach().abs() for weight in seen.weights]


def _layer_adaptive(seen: Seen) -> list[torch.Tensor]:
    return [_lamp(weight.detach()) for weight in seen.weights]


def _lamp(weight: torch.Tensor) -> torch.Tensor:
    """Each squared weight as a share of its own and all larger ones of the layer."""
    squares, order = weight.double().square().flatten().sort()
    at_least = squares.flip(0).cumsum(0).flip(0)
    scores = squares.new_zeros(squares.shape)
    scores[order] = squares / at_least.clamp_min(1e-300)  # a layer of zeros scores 0
    return scores.view(weight.shape)


def _gradient_flow(seen: Seen) -> list[torch.Tensor]:
    """The slope of half the squared norm of all slopes is H g."""
    import torch

    loss = torch.nn.functional.cross_entropy(seen.network(seen.inputs), seen.labels)
    slopes = torch.autograd.grad(loss, list(seen.network.parameters()), create_graph=True)
    weights = seen.weights
    changes = torch.autograd.grad(sum(slope.square().sum() for slope in slopes) / 2, weights)
    return [(weight * change).detach().abs() for weight, change in zip(weights, changes, strict=True)]


def _random(seen: Seen) -> list[torch.Tensor]:
    import torch

    return [torch.from_numpy(seen.rng.random(tuple(weight.shape))) for weight in seen.weights]


PRUNINGS: Mapping[str, Pruning] = {
    "magnitude": Pruning(
        "size, all layers",
        "|w|",
        "The largest weights of the whole network are kept.",
        _magnitude,
    ),
    "layer-adaptive": Pruning(
        "size within layers",
        "w^2 / sum of v^2 over the layer's weights v with |v| >= |w|",
        "A weight counts by its share of what it and the larger ones of its layer make, so that no layer is emptied.",
        _layer_adaptive,
    ),
    "gradient flow": Pruning(
        "gradient flow",
        "|w (H g)|",
        "Weights are kept whose loss would change the norm of all slopes, to first order, the most.",
        _gradient_flow,
    ),
    "random": Pruning(
        "random",
        "uniform in [0, 1)",
        "Weights are kept by lot.",
        _random,
    ),
}


def weight_scores(
    rule: str, network: nn.Module, inputs: np.ndarray, labels: np.ndarray, seed: int = 0
) -> list[torch.Tensor]:
    """Scores of all weights of a network: those with the smallest are pruned first.

    - `magnitude`: abs(w).
    - `layer-adaptive`: w^2 divided by the sum of v^2 over the weights v of the layer with abs(v) >= abs(w).
    - `gradient flow`: abs(w (H g)), with g the slopes of the mean cross-entropy over the images with respect to all
      parameters, biases too, and H their slopes: by how much half the squared norm of g would change without w, to
      first order.
    - `random`: uniform.

    A new rule is a function of :class:`Seen` and a line of `PRUNINGS`, such as the size of w times its slope::

        +def _slope(seen: Seen) -> list[torch.Tensor]:
        +    import torch
        +
        +    loss = torch.nn.functional.cross_entropy(seen.network(seen.inputs), seen.labels)
        +    slopes = torch.autograd.grad(loss, seen.weights)
        +    return [(weight * slope).detach().abs() for weight, slope in zip(seen.weights, slopes, strict=True)]

         PRUNINGS: Mapping[str, Pruning] = {
        +    "slope": Pruning("slope", "|w g|", "Weights are kept without which the loss would change most.", _slope),

    Args:
        rule: key of `PRUNINGS`.
        network: with linear layers or convolutions; it is left as it is.
        inputs: training images as the network takes them, float32, shape (examples, values).
        labels: their labels as given, integers, shape (examples,).
        seed: of what is drawn.

    Returns:
        A tensor for each layer with weights, in order, of their shape, at least 0.

    Raises:
        ValueError: there is no such rule, the network has no weights, or a score is no finite number.

    Examples:
        >>> from torch import nn
        >>> network = nn.Linear(2, 1)
        >>> _ = nn.init.constant_(network.weight, -0.5)
        >>> weight_scores("magnitude", network, np.ones((3, 2), "f4"), np.zeros(3, int))[0].tolist()
        [[0.5, 0.5]]

    References:
        Layer-adaptive magnitude: Lee et al. (2021), arXiv:2010.07611; gradient flow: Wang et al. (2020),
        arXiv:2002.07376, and with the absolute value Lubana and Dick (2021), arXiv:2009.11839.
    """
    import torch

    if rule not in PRUNINGS:
        raise ValueError(f"rule must be one of {', '.join(PRUNINGS)}, received {shown(rule)}")
    if not _layers(network):
        raise ValueError("network must have a linear layer or a convolution, received none")
    images = torch.from_numpy(np.ascontiguousarray(inputs)), torch.from_numpy(np.ascontiguousarray(labels))
    found = list(PRUNINGS[rule].scores(Seen(network, *images, np.random.default_rng(seed))))
    if not all(bool(torch.isfinite(score).all()) for score in found):
        raise ValueError(f"scores of rule {rule!r} must be finite numbers; the slopes of this network are not")
    return found


def pruned(network: nn.Module, scores: Sequence[torch.Tensor], sparsity: float) -> nn.Module:
    """A copy of a network in which the weights with the smallest scores are 0.

    Exactly round(sparsity x weights) of all weights, over all layers together, by PyTorch's own global pruning.

    Args:
        network: it is left as it is.
        scores: see :func:`weight_scores`.
        sparsity: share of the weights that is pruned, from 0 to below 1.

    Raises:
        ValueError: the sparsity is out of range, or scores are not those of the network's weights.

    Examples:
        >>> import torch
        >>> network = torch.nn.Linear(4, 1)
        >>> one = pruned(network, [torch.tensor([[3.0, 1.0, 2.0, 4.0]])], 0.5)
        >>> (one.weight != 0).tolist()
        [[True, False, False, True]]
    """
    import torch
    from torch.nn.utils import prune

    shapes = [tuple(layer.weight.shape) for layer in _layers(network)]
    if not is_number(sparsity) or not 0 <= sparsity < 1:
        raise ValueError(f"sparsity must be from 0 to below 1, received {shown(sparsity)}")
    if shapes != (received := [tuple(score.shape) for score in scores]):
        raise ValueError(f"scores must have the shapes of the weights, {shapes}, received {received}")
    marked, found = deepcopy(network), deepcopy(network)
    places = [(layer, "weight") for layer in _layers(marked)]
    count = round(sparsity * sum(score.numel() for score in scores))
    prune.global_unstructured(places, prune.L1Unstructured, dict(zip(places, scores, strict=True)), amount=count)
    with torch.no_grad():
        for layer, other in zip(_layers(found), _layers(marked), strict=True):
            layer.weight.mul_(other.weight_mask)
    return found


def retrained(network: nn.Module, data: Dataset, settings: TrainingSettings, seed: int) -> nn.Module:
    """A copy of a network that is trained further while its weights that are 0 stay 0.

    The mask is a parametrisation of each layer's weights, so that slopes, optimiser and penalties are those of
    :func:`nbutils.runs.training.train` and see nothing of what is gone. The optimiser starts afresh.

    Args:
        network: in evaluation mode; it is left as it is.
        data: see :func:`nbutils.runs.training.train`.
        settings: how it is trained, and for how many epochs.
        seed: of the order of examples, and of dropout.

    Returns:
        The copy, in evaluation mode, its weights plain parameters again.

    Examples:
        >>> import torch
        >>> from nbutils.data.datasets import load_dataset
        >>> from nbutils.runs.training import TrainingSettings
        >>> network = torch.nn.Linear(64, 10)
        >>> half = pruned(network, [network.weight.abs()], 0.5)
        >>> more = retrained(half, load_dataset("digits"), TrainingSettings(epochs=1), seed=0)
        >>> bool(((more.weight == 0) == (half.weight == 0)).all()), bool((more.weight == half.weight).all())
        (True, False)
    """
    from torch.nn.utils import parametrize

    from nbutils.runs.training import one_thread, train

    learning, found = deepcopy(network), deepcopy(network)
    for layer in _layers(learning):
        parametrize.register_parametrization(layer, "weight", _held(layer.weight != 0))
    with one_thread():
        for _ in train([learning], [data], settings, [seed]):
            pass
    # Into a copy that never was parametrised: taking that off would change the order of a layer's parameters.
    found.load_state_dict({name: attrgetter(name)(learning).detach() for name in found.state_dict()})
    return found.eval()


def _held(mask: torch.Tensor) -> nn.Module:
    """A parametrisation that keeps weights outside a mask at 0."""
    from torch import nn

    class Held(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", mask)

        def forward(self, weight: torch.Tensor) -> torch.Tensor:
            return weight * self.mask

    return Held()


def surviving_shares(network: nn.Module) -> np.ndarray:
    """Share of the incoming and outgoing weights of each hidden neuron that are not 0.

    (incoming + outgoing weights that are not 0) / (incoming + outgoing weights), of a fully connected network.

    Args:
        network: whose linear layers follow one another.

    Returns:
        Shape (hidden neurons,), first layer first, in [0, 1].

    Raises:
        ValueError: there are fewer than two layers, one is a convolution, or one does not take what the one before
            gives.

    Examples:
        >>> import torch
        >>> network = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.ReLU(), torch.nn.Linear(1, 2))
        >>> with torch.no_grad():
        ...     _ = network[0].weight.copy_(torch.tensor([[0.0, 2.0, 0.0]]))
        >>> surviving_shares(network).tolist()
        [0.6]
    """
    there = [(layer.weight != 0).detach().numpy() for layer in _layers(network)]
    shapes = [one.shape for one in there]
    chained = all(a[0] == b[1] for a, b in pairwise(shapes)) if len(shapes) > 1 else False
    if not chained or any(len(shape) != 2 for shape in shapes):
        raise ValueError(f"network must have linear layers that follow one another, received weights of {shapes}")
    shares = [(into.sum(axis=1) + out.sum(axis=0)) / (into.shape[1] + out.shape[0]) for into, out in pairwise(there)]
    return np.concatenate(shares)
