"""Is firing only hidden from the measure? Q of one network under other choices than those by which it was pushed.

A penalty sees one firing rule, one density and one set of images. If it makes Q fall there and nowhere else, it has
hidden structure from the measure, not removed it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from nbutils.measures import MeasureSpec, measure_matched
from nbutils.runs.looks import Look
from nbutils.second.questions import PROTOCOL

__all__ = ["CHOICES", "Choice", "modularity_elsewhere"]

DRAWS = 5


@dataclass(frozen=True)
class Choice:
    """Another way to measure Q.

    Attributes:
        title: what a page calls it.
        spec: density, resolution and null models.
        fired: which activations count as firing.
        training: whether the images are those of the training probe, in place of the held-out one.
    """

    title: str
    spec: MeasureSpec
    fired: Callable[[Look], np.ndarray] = lambda look: look.fired
    training: bool = False


def _spec(density: float = PROTOCOL.density, resolution: float = 1.0) -> MeasureSpec:
    return MeasureSpec(density=density, resolution=resolution, seeds=1, null_draws=1)


# Suffix of the columns -> how it is measured.
CHOICES: Mapping[str, Choice] = {
    "sparse": Choice("density 2 %", _spec(density=0.02)),
    "dense": Choice("density 10 %", _spec(density=0.1)),
    "coarse": Choice("resolution 0.5", _spec(resolution=0.5)),
    "fine": Choice("resolution 2", _spec(resolution=2.0)),
    "positive": Choice("firing at any activation above 0", _spec(), lambda look: look.positive),
    "training": Choice("on training images", _spec(), training=True),
}


def modularity_elsewhere(held_out: Look, training: Look) -> dict[str, float]:
    """Q and Q beyond chance of a network under every other choice.

    Args:
        held_out: a look at the network through the held-out probe.
        training: the same through the training probe.

    Returns:
        `modularity_<choice>` and `excess_<choice>` for every key of `CHOICES`, means over five draws of neurons; NaN
        where fewer neurons fire than are to be drawn.

    Examples:
        >>> from nbutils.runs.looks import look_at
        >>> from nbutils.runs.run import run_once
        >>> from nbutils.runs.spec import RunSpec
        >>> run = run_once(RunSpec(epochs=1, model="mlp:16", every_epoch=False))
        >>> found = modularity_elsewhere(look_at(run), look_at(run, probe="training"))
        >>> len(found), -0.5 <= found["modularity_fine"] <= 1
        (12, True)
    """
    found = {}
    for name, choice in CHOICES.items():
        look = training if choice.training else held_out
        fired = choice.fired(look)
        q = excess = float("nan")
        if fired.any(axis=0).sum() >= look.neurons:
            values = measure_matched(fired, look.cells, look.seed, look.neurons, choice.spec, DRAWS)
            q, excess = values["modularity"], values["modularity"] - values["null_circular"]
        found |= {f"modularity_{name}": q, f"excess_{name}": excess}
    return found
