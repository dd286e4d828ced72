"""Lesions of a network that somebody else trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from nbutils.capturing.hooks import evaluating
from nbutils.data.datasets import held_out_probe
from nbutils.experiments.lesions import LESION_RULES
from nbutils.experiments.silenced_sets import Subject, set_rows
from nbutils.own.images import LEAST, as_inputs, shown_examples
from nbutils.own.measure import Looker, looked_at
from nbutils.own.models import as_module
from nbutils.runs.training import one_thread
from nbutils.support.checks import as_count, as_labels, shown

__all__ = ["lesion"]

MOST = 10_000_000


def lesion(
    model: nn.Module,
    images: Any,
    labels: Any,
    *,
    layers: Any = None,
    mean: Any = None,
    std: Any = None,
    examples: int = 2000,
    draws: int = 5,
    layout: Any = "auto",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Silence communities of any network, and sets to hold them against, as the experiment on lesions does.

    Half of the images, equally many of each class, are the probe on which communities, rates and preferences are found;
    on the other half effects are measured.

    Args:
        model: any PyTorch module that gives a score for every class, at least as many as there are; left as it was.
        images: shape (n, channels, height, width) or (n, features); see :func:`nbutils.own.images.as_inputs`.
        labels: class per image, integers, the number of its score, shape (n,).
        layers: wildcards, see :func:`nbutils.capturing.hooks.capture`; None takes what
            :func:`nbutils.capturing.proposals.propose_layers` proposes.
        mean: per channel, of numbers from 0 to 1, as in training; `std` likewise.
        std: see there.
        examples: images looked at, at most, equally many of each class; from 40 on.
        draws: of random sets and of shuffles; each costs three passes over half of the images for every community.
        layout: where a layer's type does not tell how its output is read, see
            :func:`nbutils.capturing.layouts.read_layers`.
        seed: of all drawing.
        progress: called with (done, total) as sets are done.

    Returns:
        A row per set, see :func:`nbutils.experiments.silenced_sets.set_rows`, each with `images`, the number of those
        on which effects are measured, and `accuracy`, the network's on these.

    Raises:
        ValueError: an argument does not fit; names it, and says what was received.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> model = nn.Sequential(nn.Linear(20, 40), nn.ReLU(), nn.Linear(40, 3))
        >>> found = lesion(model, rng.normal(size=(120, 20)), rng.integers(3, size=120), draws=1)
        >>> found["kind"].iloc[0], found["images"].iloc[0].item()
        ('whole', 60)
    """
    examples, draws = as_count(examples, "examples", 2 * LEAST, MOST), as_count(draws, "draws", most=MOST)
    own = as_module(model)
    kept, classes, _ = shown_examples(images, as_labels(labels, name="labels"), examples)
    inputs, _ = as_inputs(own, kept, mean, std)
    probe, others = held_out_probe(classes)
    with one_thread(), evaluating(own):
        looker = Looker(looked_at(own, inputs, layers, layout), classes[probe], "mean", layout, seed)
        look = looker.look(own, inputs[probe])
        if look.logits.shape[1] <= classes.max():
            raise ValueError(
                f"labels must be numbers of the model's scores, of which there are {look.logits.shape[1]}, received "
                f"{shown(int(classes.max()))}"
            )
        names = [one.name for one in looker.proposed]
        subject = Subject(look, names, own, inputs[others], classes[others], looker.layout)
        rules = replace(LESION_RULES, draws=draws, few=draws)
        rows = pd.DataFrame(set_rows(subject, rules, progress))
        accuracy = float(np.average(subject.whole, weights=np.unique(classes[others], return_counts=True)[1]))
    return rows.assign(images=len(others), accuracy=accuracy)
