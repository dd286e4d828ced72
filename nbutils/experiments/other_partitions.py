"""Do lesions hang on how communities were found? The same questions, put to groups that were found in other ways.

One entry of `WAYS` is one way to group neurons. A new one needs a function from firing to groups, and a line there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from nbutils.drawing.display import format_number
from nbutils.experiments.control_sets import clustered, large_communities
from nbutils.experiments.lesions import (
    CLASS_QUESTIONS,
    FULLY_CONNECTED,
    LESION_QUESTIONS,
    LESION_RULES,
    LesionQuestion,
    lesion_trials,
    lesion_verdicts,
)
from nbutils.experiments.silenced_sets import (
    Groups,
    Sets,
    Subject,
    class_members,
    control_sets,
    cut_to_class_group,
    lesion_rows,
    set_rows,
    with_classes,
)
from nbutils.experiments.trials import Trial, trial_seconds
from nbutils.nulls import within_class_null
from nbutils.runs.looks import Look, look_at
from nbutils.runs.run import run_once
from nbutils.second.elsewhere import CHOICES
from nbutils.second.questions import PROTOCOL
from nbutils.support.provenance import digest_of

__all__ = [
    "PARTITION_DIGEST",
    "PARTITION_QUESTIONS",
    "PARTITION_RULES",
    "USUAL",
    "WAYS",
    "Way",
    "against_usual",
    "groups_found",
    "partition_rows",
    "partition_seconds",
    "partition_table",
    "partition_trials",
    "partition_verdicts",
]

# Fewer draws than the experiment on lesions takes, for there are eight ways, whose means over sets are compared.
PARTITION_RULES = replace(LESION_RULES, draws=5, few=2)
PARTITION_QUESTIONS: Mapping[str, LesionQuestion] = {
    name: {**LESION_QUESTIONS, **CLASS_QUESTIONS}[name]
    for name in ("beyond matched sets", "beyond class preference", "beyond class groups")
}


@dataclass(frozen=True)
class Way:
    """A way to group the neurons of a network.

    Attributes:
        title: what a page calls it.
        find: from firing, boolean, shape (examples, neurons), to groups of at least eight neurons.
        fired: which activations count as firing.
        training: whether they are those on the training probe, in place of the held-out one.
    """

    title: str
    find: Callable[[np.ndarray], Sequence[np.ndarray]]
    fired: Callable[[Look], np.ndarray] = lambda look: look.fired
    training: bool = False


def _graph(density: float = PROTOCOL.density, resolution: float = 1.0) -> Callable[[np.ndarray], Sequence[np.ndarray]]:
    return partial(large_communities, density=density, least=PARTITION_RULES.least, resolution=resolution)


def _tree(fired: np.ndarray) -> Sequence[np.ndarray]:
    """Clusters without a graph, cut to as many as there are communities of the usual graph."""
    return clustered(fired, max(1, len(_graph()(fired))), PARTITION_RULES.least)


USUAL = "usual"
# Name in a table -> how groups are found; the usual graph, every other choice that Q was measured under, and clusters.
WAYS: Mapping[str, Way] = {
    USUAL: Way("as above", _graph()),
    **{
        name: Way(one.title, _graph(one.spec.density, one.spec.resolution), one.fired, one.training)
        for name, one in CHOICES.items()
    },
    "tree": Way("hierarchical clustering, no graph", _tree),
}
PARTITION_DIGEST = digest_of(
    {
        "rules": asdict(PARTITION_RULES),
        "questions": {name: asdict(one) for name, one in PARTITION_QUESTIONS.items()},
        "ways": {name: one.title for name, one in WAYS.items()},
    }
)


def partition_trials(datasets: Sequence[str] | None = None, seeds: int | None = None) -> list[Trial]:
    """The fully connected networks of the experiment on lesions.

    Args:
        datasets: names of data sets; None takes those of the book.
        seeds: networks on each; None takes ten.

    Examples:
        >>> len(partition_trials())
        30
    """
    return [one for one in lesion_trials(datasets, seeds) if one.condition == "none"]


def partition_seconds(trials: Sequence[Trial]) -> float:
    """About how long trials take on one processor.

    Examples:
        >>> partition_seconds(partition_trials(["digits"], seeds=1)) > 60
        True
    """
    return trial_seconds(trials) + len(trials) * len(WAYS) * FULLY_CONNECTED


def groups_found(subject: Subject, look: Look, way: Way) -> Groups:
    """Groups found in one way, with all that they are held against.

    Args:
        subject: the network.
        look: at the same network, through the images on which groups are found.
        way: see `WAYS`.

    Returns:
        By falling size: number, the class that the group prefers on the images of `subject`, and sets by kind:
        `community`, the group; `matched`; `cut` and `shuffle`, see
        :func:`nbutils.experiments.silenced_sets.control_sets`, the shuffle's groups being found in the same way; and
        `cut by layer` and `class cut by layer`.
    """
    rng, rules, seen = np.random.default_rng(look.seed), PARTITION_RULES, (subject.look.fired, subject.look.labels)
    fired, members = way.fired(look), class_members(subject, PARTITION_RULES)
    nulls = (within_class_null(fired, look.cells, rng) for _ in range(rules.draws))
    # A shuffle's classes are those of the shuffled firing, as in the experiment on lesions.
    shuffles = [with_classes(way.find(one), one, look.labels) for one in nulls]
    groups: Groups = []
    for number, (chosen, preferred) in enumerate(with_classes(way.find(fired), *seen)):
        every = control_sets(subject, chosen, preferred, shuffles, rng, rules)
        sets: Sets = {kind: every[kind] for kind in ("community", "matched", "cut", "shuffle") if kind in every}
        cut = cut_to_class_group(chosen, preferred, members, subject.look.layers, rng, rules.draws)
        groups.append((number, preferred, {**sets, **cut}))
    return groups


def partition_rows(trial: Trial) -> list[dict[str, Any]]:
    """The rows of a network, trained where the store lacks it.

    Args:
        trial: one network.

    Returns:
        Those of :func:`nbutils.experiments.silenced_sets.lesion_rows` for every entry of `WAYS`, with its name as
        `way`. One row of a network that failed.
    """

    def rows(subject: Subject) -> list[dict[str, Any]]:
        training, found = look_at(run_once(trial.run), probe="training"), []
        for name, way in WAYS.items():
            look = training if way.training else subject.look
            made = partial(_made, look=look, way=way)
            found += [{"way": name, **row} for row in set_rows(subject, PARTITION_RULES, made=made)]
        return found

    return lesion_rows(trial, rows)


def _made(subject: Subject, _rules: object, look: Look, way: Way) -> Groups:
    return groups_found(subject, look, way)


def partition_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """The questions of `PARTITION_QUESTIONS`, answered way by way; p values are corrected within each.

    Args:
        table: of the experiment.

    Returns:
        Rows of :func:`nbutils.experiments.lesions.lesion_verdicts` with `way`, and `communities`, the mean number of
        groups of a network.
    """
    parts = []
    for name in WAYS:
        own = table[table["way"] == name]
        found = lesion_verdicts(own, PARTITION_RULES, questions=PARTITION_QUESTIONS)
        groups = own[own["kind"] == "whole"].groupby("dataset")["communities"].mean()
        parts.append(found.assign(way=name, communities=found["dataset"].map(groups)))
    return pd.concat(parts, ignore_index=True)


def against_usual(verdicts: pd.DataFrame) -> pd.Series:
    """Whether the answers of other ways are those of the usual one, in the words of the rules.

    Args:
        verdicts: see :func:`partition_verdicts`.

    Returns:
        By way, data set and question, "holds", "undecided", or "hangs": the word is neither that of the usual way nor
        undecided.

    Examples:
        >>> rows = [(USUAL, "supported"), ("fine", "undecided"), ("tree", "contradicted")]
        >>> table = pd.DataFrame(rows, columns=["way", "word"]).assign(dataset="d", question="q")
        >>> against_usual(table).tolist()
        ['undecided', 'hangs']
    """
    words = verdicts.set_index(["way", "dataset", "question"])["word"]
    others = words.drop(USUAL, level="way")
    usual = words.xs(USUAL, level="way").reindex(others.index.droplevel("way")).to_numpy()
    told = np.select([others == usual, others == "undecided"], ["holds", "undecided"], "hangs")
    return pd.Series(told, others.index)


def partition_table(verdicts: pd.DataFrame) -> pd.DataFrame:
    """A row per way: how many groups a network has, and the range of effects over data sets with their words, as text.

    Args:
        verdicts: see :func:`partition_verdicts`.
    """

    def told(own: pd.DataFrame) -> str:
        ends = " to ".join(dict.fromkeys(format_number(value) for value in (own["effect"].min(), own["effect"].max())))
        return f"{ends}; " + ", ".join(f"{word} {count}" for word, count in own["word"].value_counts().items())

    each = {key: told(own) for key, own in verdicts.groupby(["question", "way"], sort=False)}
    rows = {
        way.title: {
            "groups": verdicts.loc[verdicts["way"] == name, "communities"].mean(),
            **{question: each[question, name] for question in PARTITION_QUESTIONS},
        }
        for name, way in WAYS.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("found").reset_index()
