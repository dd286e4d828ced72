"""Which classes the communities of networks answer to, how clearly, and what chance would make of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from nbutils.arguments import checked
from nbutils.arrays import as_count, as_fired, as_frame, as_labels, as_rng
from nbutils.datasheets import CONTROL
from nbutils.display import interval_text
from nbutils.events import MOST_DRAWS
from nbutils.evolution import answers_to
from nbutils.figures import conditions_in
from nbutils.stats import bootstrap_interval

__all__ = ["clarity", "class_names", "ends", "short_name", "shuffled_classes"]

LEAST = 3  # neurons that a community needs to be counted, as for well-defined ones
DECIMALS = {"classes": 1, "preference": 2}


@checked
def clarity(answers: pd.DataFrame) -> pd.DataFrame:
    """How clearly the communities of a network answer to classes, and to how many, epoch by epoch.

    Args:
        answers: one row per run, epoch and community: `labels`, `run`, `epoch`, `neurons`, `answers_to`, `preference`,
            as in the extra "answers".

    Returns:
        One row per run and epoch that has communities: `labels`, `run`, `epoch`, `preference` (mean over communities
        weighted by their neurons, in [0, 1]), `communities` and `classes`: how many communities of at least 3 neurons
        there are, and how many classes have at least one that answers to them.

    Raises:
        TypeError: `answers` is no table.
        ValueError: it lacks a column; names it.

    Examples:
        >>> rows = pd.DataFrame({"labels": "true", "run": "a", "epoch": 1, "neurons": [6, 4, 2]})
        >>> rows = rows.assign(answers_to=[3, 3, 5], preference=[0.5, 0.25, 1.0])
        >>> clarity(rows)[["preference", "communities", "classes"]].values.tolist()
        [[0.5, 2.0, 1.0]]
    """
    numbers = ("neurons", "answers_to", "preference")
    counted = as_frame(answers, ("labels", "run", "epoch"), "answers", numbers=numbers)["neurons"] >= LEAST
    rows = answers.assign(
        weighted=answers["preference"] * answers["neurons"],
        counted=counted,
        answered=answers["answers_to"].where(counted & (answers["answers_to"] >= 0)),
    )
    found = rows.groupby(["labels", "run", "epoch"], sort=False, observed=True, as_index=False).agg(
        weighted=("weighted", "sum"),
        neurons=("neurons", "sum"),
        communities=("counted", "sum"),
        classes=("answered", "nunique"),
    )
    found["preference"] = found["weighted"] / found["neurons"]
    return found[["labels", "run", "epoch", "preference", "communities", "classes"]]


def shuffled_classes(
    fired: Any, labels: Any, communities: Any, rng: np.random.Generator | int, draws: int = 20
) -> float:
    """How clearly communities would seem to answer to classes that mean nothing.

    The classes are dealt anew among the examples, so that how often each neuron fires, and with which others, stays.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,), integers.
        communities: community per neuron, shape (neurons,), integers; negative ones are left out.
        rng: source of randomness: a generator, or a seed.
        draws: number of deals, from 1 to 100,000.

    Returns:
        Mean over deals of the preference of :func:`clarity`, in [0, 1]; NaN without communities. It is above 0,
        because the largest of several rates that differ by chance is taken.

    Raises:
        ValueError: shapes disagree, `fired` is not boolean, labels are not integers, or `draws` < 1.

    Examples:
        >>> fired = np.random.default_rng(0).random((400, 6)) < 0.1
        >>> 0 < shuffled_classes(fired, np.arange(400) % 4, [0, 0, 0, 1, 1, 1], np.random.default_rng(0)) < 0.5
        True
    """
    matrix, draws, rng = as_fired(fired), as_count(draws, "draws", most=MOST_DRAWS), as_rng(rng)
    classes = as_labels(labels, matrix.shape[0])
    groups = as_labels(communities, matrix.shape[1], "communities")
    if not (groups >= 0).any():
        return float("nan")
    found = (answers_to(matrix, rng.permutation(classes), groups) for _ in range(draws))
    return float(np.mean([np.average(table["preference"], weights=table["neurons"]) for table in found]))


def ends(found: pd.DataFrame, classes: int, rng: np.random.Generator) -> pd.DataFrame:
    """Communities and the classes that they answer to, before training and at the end.

    Args:
        found: from :func:`clarity`.
        classes: number of classes of the data.
        rng: source of randomness.

    Returns:
        One row per condition and epoch, the first and the last: `labels`, `epoch`, `communities`, `classes` and
        `preference`, means over networks, the last two as text with their 95 % bootstrap intervals; and `by_chance`:
        how many classes would be answered to if each community drew one at random.

    Examples:
        >>> runs = pd.DataFrame({"labels": "true", "run": list("abab"), "epoch": [0, 0, 1, 1], "communities": 2})
        >>> runs = runs.assign(preference=0.5, classes=[1, 1, 2, 2])
        >>> ends(runs, 4, np.random.default_rng(0))[["epoch", "classes", "by_chance"]].values.tolist()
        [[0, '1.0 (1.0\xa0to\xa01.0)', 1.75], [1, '2.0 (2.0\xa0to\xa02.0)', 1.75]]
    """
    rows = []
    for labels in conditions_in(found):
        runs = found[found["labels"] == labels]
        for epoch in (runs["epoch"].min(), runs["epoch"].max()):
            one = runs[runs["epoch"] == epoch]
            drawn = classes * (1 - (1 - 1 / classes) ** one["communities"]).mean()
            values = {name: one[name].to_numpy(float) for name in DECIMALS}
            texts = (
                interval_text(values[name].mean(), *bootstrap_interval(values[name], rng), digits)
                for name, digits in DECIMALS.items()
            )
            rows.append((labels, epoch, one["communities"].mean(), *texts, drawn))
    return pd.DataFrame(rows, columns=["labels", "epoch", "communities", *DECIMALS, "by_chance"])


def class_names(answers: pd.DataFrame, classes: Sequence[str]) -> dict[int, str]:
    """What to write beside the communities of one network at one epoch: the class that each answers to.

    Args:
        answers: rows of the extra "answers" of one run and epoch.
        classes: names of the classes.

    Returns:
        Name per identity, as :func:`short_name` writes it; "no class" for one that never fires.

    Examples:
        >>> class_names(pd.DataFrame({"community": [4, 7], "answers_to": [1, -1]}), ["cat", "sea_horse"])
        {4: 'sea horse', 7: 'no class'}
    """
    pairs = zip(answers["community"], answers["answers_to"], strict=True)
    return {int(name): short_name(classes[kind]) if kind >= 0 else "no class" for name, kind in pairs}


def short_name(name: str, most: int = 24) -> str:
    """A class name for a figure: spaces for underscores, and not too long.

    Examples:
        >>> short_name("Pepper,_bell___Bacterial_spot")
        'Pepper, bell Bacterial…'
    """
    plain = re.sub(r"_+", " ", CONTROL.sub("_", name)).strip()
    return plain if len(plain) <= most else f"{plain[: most - 1].rstrip()}…"
