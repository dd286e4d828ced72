"""Communities of one network silenced, beside sets to hold them against, and single neurons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nbutils.activations import class_means
from nbutils.data.datasets import balanced_indices, held_out_probe
from nbutils.entropy import class_selectivity
from nbutils.experiments.control_sets import (
    cut_alike,
    large_communities,
    nearest_set,
    preferred_class,
    random_set,
    shared_share,
    unit_pairs,
)
from nbutils.experiments.lesions import LESION_RULES, LesionRules
from nbutils.experiments.trials import Trial, is_degenerate, trial_facts
from nbutils.nulls import within_class_null
from nbutils.runs.looks import Look, look_at
from nbutils.runs.models import hidden_layers, takes_images
from nbutils.runs.run import Run, run_once
from nbutils.second.questions import PROTOCOL

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from nbutils.capturing.silencing import ClassAccuracy

__all__ = [
    "Subject",
    "class_group_rows",
    "class_groups",
    "class_loss_rows",
    "class_losses",
    "class_members",
    "control_sets",
    "cut_to_class_group",
    "lesion_rows",
    "same_size_rows",
    "set_rows",
    "units",
    "with_classes",
]

Sets = Mapping[str, Sequence[tuple[np.ndarray, int]]]  # kind -> draws of neurons, each with the class that it prefers
Groups = list[tuple[int, int, Sets]]  # number, preferred class, and a set of neurons with all that it is held against


@dataclass(frozen=True)
class Subject:
    """A network whose neurons are silenced.

    Attributes:
        look: at it, through the images on which communities, rates and preferences are found.
        names: of its layers, in the order of their numbers in `look.layers`.
        network: the network itself.
        inputs: other images as it takes them, on which effects are measured.
        labels: their classes, numbers of the network's outputs.
        layout: which dimension of a layer holds the neurons, see :func:`nbutils.capturing.layouts.read_layers`.
    """

    look: Look
    names: Sequence[str]
    network: Module = field(repr=False)
    inputs: Tensor = field(repr=False)
    labels: np.ndarray = field(repr=False)
    layout: Any = "auto"

    @cached_property
    def accuracy(self) -> ClassAccuracy:
        """By class, with neurons silenced."""
        from nbutils.capturing.silencing import ClassAccuracy  # loads PyTorch, which plans and tables never need

        return ClassAccuracy(self.network, self.inputs, self.labels, self.layout)

    @cached_property
    def whole(self) -> np.ndarray:
        """Accuracy on every class with no neuron silenced."""
        return self.accuracy()

    @cached_property
    def active(self) -> np.ndarray:
        """Which neurons fire on any image of the probe; the others are in no set."""
        return self.look.fired.any(axis=0)

    @cached_property
    def rates(self) -> np.ndarray:
        """Share of images on which a neuron is positive; by the rule of firing, a tenth, nearly all rates are equal."""
        return self.look.positive.mean(axis=0)

    @cached_property
    def means(self) -> np.ndarray:
        """Mean activation by class, of what is positive."""
        return class_means(np.maximum(self.look.activations, 0), self.look.labels)

    @cached_property
    def selectivity(self) -> np.ndarray:
        """Class selectivity of every neuron."""
        return class_selectivity(self.means)

    def losses(self, chosen: np.ndarray, silence: str = "zero") -> np.ndarray:
        """What accuracy on every class loses when neurons are silenced; below 0 where it gains.

        Args:
            chosen: numbers of the neurons.
            silence: "zero", or "mean": each gives its mean over the probe.
        """
        from nbutils.capturing.silencing import by_layer

        values = {"zero": 0.0, "mean": self.look.activations.mean(axis=0)}[silence]
        return self.whole - self.accuracy(by_layer(chosen, self.look.layers, self.names, values))


def control_sets(
    subject: Subject,
    chosen: np.ndarray,
    preferred: int,
    shuffles: Sequence[Sequence[tuple[np.ndarray, int]]],
    rng: np.random.Generator,
    rules: LesionRules = LESION_RULES,
) -> dict[str, list[tuple[np.ndarray, int]]]:
    """A community and all that it is held against.

    Args:
        subject: the network.
        chosen: numbers of the community's neurons.
        preferred: the class that it prefers.
        shuffles: communities of each draw of firing shuffled within cells of true x predicted class, with their
            preferred classes.
        rng: source of randomness.
        rules: numbers of draws.

    Returns:
        By kind, a list of draws, each with its preferred class: `community`; `random`; nearest in `rate`; `matched`, in
        rate and selectivity; `cut` and `shuffle`, the community and that of a shuffle with the same preferred class (of
        several, the one that shares most neurons with it) at the size of the smaller; `cut by layer` and `shuffle by
        layer`, the same with as many neurons of each layer. Kinds for which there are no neurons are left out.
    """
    look, pool = subject.look, subject.active
    matching = {"rate": subject.rates[:, None], "matched": np.column_stack([subject.rates, subject.selectivity])}
    found = {"random": [random_set(chosen, look.layers, pool, rng) for _ in range(rules.few)]}
    for kind, values in matching.items():
        nearest = nearest_set(chosen, look.layers, pool, values, rng)
        found[kind] = [] if nearest is None else [nearest]
    sets = {
        kind: [(one, preferred_class(look.fired, look.labels, one)) for one in draws] for kind, draws in found.items()
    }
    alike = [[one for one, own in draw if own == preferred] for draw in shuffles]
    partners = [max(draw, key=lambda one: shared_share(chosen, one)) for draw in alike if draw]
    for suffix, layers, draws in (("", None, rules.draws), (" by layer", look.layers, rules.few)):
        pairs = [cut_alike(chosen, one, rng, layers) for one in partners[:draws]]
        for kind, side in (("cut", 0), ("shuffle", 1)):
            sets[f"{kind}{suffix}"] = [(pair[side], preferred) for pair in pairs if len(pair[side])]
    return {"community": [(chosen, preferred)], **{kind: draws for kind, draws in sets.items() if draws}}


def units(subject: Subject, rng: np.random.Generator, rules: LesionRules = LESION_RULES) -> dict[int, Sets]:
    """By class its most selective neuron, `unit`, and its control, `unit control`.

    Args:
        subject: the network.
        rng: decides between neurons that are equally near.
        rules: how many nearest neurons are considered.
    """
    look = subject.look
    arrays = subject.means, subject.selectivity, subject.rates, look.layers, subject.active
    pairs = unit_pairs(*arrays, rng, rules.near, np.unique(look.labels).tolist())
    return {
        name: {"unit": [(np.array([unit]), name)], "unit control": [(np.array([control]), name)]}
        for name, (unit, control) in pairs.items()
    }


def set_rows(
    subject: Subject,
    rules: LesionRules = LESION_RULES,
    progress: Callable[[int, int], None] | None = None,
    made: Callable[[Subject, LesionRules], Groups] | None = None,
) -> list[dict[str, Any]]:
    """Effects of silencing every large community of a network, its controls, and single neurons.

    Args:
        subject: the network.
        rules: which sets there are, and how many draws of each.
        progress: called with (done, total) as sets are done.
        made: gives other sets than these, such as :func:`class_groups`.

    Returns:
        A row per set and way of silencing. `kind`, see :func:`control_sets` and :func:`units`, or "whole" of the
        network as it is; `number` of the community, from 0 by falling size, or class of a unit; `silence`, "zero" or
        "mean"; `draws`, over which the others are means: `size`; `preferred`, the class, -1 where draws differ;
        `loss_preferred` and `loss_others`, what accuracy on that class and the mean of the others lose; their
        difference, `specificity`; `there`, the same for the class that the community prefers; and `shared`, the share
        of the set's neurons that are in the community.
    """
    groups, communities = (made or _groups)(subject, rules), 0
    rows: list[dict[str, Any]] = []
    for done, (number, there, sets) in enumerate(groups, 1):
        communities += "community" in sets
        for silence, most in (("zero", rules.draws), ("mean", rules.few)):
            for kind, draws in sets.items():
                known = {"kind": kind, "number": number, "silence": silence}
                rows.append(known | _averaged(subject, draws[:most], sets, there, silence))
        if progress:
            progress(done, len(groups))
    return [{"kind": "whole", "number": -1, "silence": "", "communities": communities}, *rows]


def _groups(subject: Subject, rules: LesionRules) -> Groups:
    """Communities with all that they are held against, and units."""
    look = subject.look
    rng = np.random.default_rng(look.seed)
    found = _with_classes(look.fired, look.labels, rules)
    nulls = (within_class_null(look.fired, look.cells, rng) for _ in range(rules.draws))
    shuffles = [_with_classes(fired, look.labels, rules) for fired in nulls]
    groups = [
        (number, preferred, control_sets(subject, chosen, preferred, shuffles, rng, rules))
        for number, (chosen, preferred) in enumerate(found)
    ]
    return groups + [(name, name, sets) for name, sets in units(subject, rng, rules).items()]


def _with_classes(fired: np.ndarray, labels: np.ndarray, rules: LesionRules) -> list[tuple[np.ndarray, int]]:
    """Large communities, each with the class that it prefers."""
    return with_classes(large_communities(fired, PROTOCOL.density, rules.least), fired, labels)


def with_classes(sets: Sequence[np.ndarray], fired: np.ndarray, labels: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """Sets of neurons, each with the class on which its neurons fire most.

    Args:
        sets: numbers of neurons.
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,).
    """
    return [(one, preferred_class(fired, labels, one)) for one in sets]


def class_groups(subject: Subject, rules: LesionRules = LESION_RULES) -> Groups:
    """Neurons by the class that each prefers, grouped without the graph, and communities held against these groups.

    A neuron prefers the class on which its mean positive activation over the probe is largest; groups hold neurons that
    fire at all.

    Args:
        subject: the network.
        rules: the least size of a group or community, and how many draws.

    Returns:
        Triples of number, preferred class, and sets by kind. Of every class that enough neurons prefer: `class group`,
        and the neurons outside of it that are `matched` in layer, rate and selectivity, where there are enough. Of
        every large community: `community`; and where its class has a group, `cut by layer` and `class cut by layer`,
        community and group cut down to as many neurons of each layer.
    """
    look, rng, members = subject.look, np.random.default_rng(subject.look.seed), class_members(subject, rules)
    alike = np.column_stack([subject.rates, subject.selectivity])
    groups: Groups = []
    for name, own in members.items():
        nearest = nearest_set(own, look.layers, subject.active, alike, rng)
        control = [] if nearest is None else [(nearest, preferred_class(look.fired, look.labels, nearest))]
        groups.append((name, name, {"class group": [(own, name)]} | ({"matched": control} if control else {})))
    for number, (chosen, name) in enumerate(_with_classes(look.fired, look.labels, rules)):
        cut = cut_to_class_group(chosen, name, members, look.layers, rng, rules.draws)
        groups.append((number, name, {"community": [(chosen, name)], **cut}))
    return groups


def cut_to_class_group(
    chosen: np.ndarray,
    preferred: int,
    members: Mapping[int, np.ndarray],
    layers: np.ndarray,
    rng: np.random.Generator,
    draws: int,
) -> Sets:
    """A community and the class group of the class that it prefers, cut down to as many neurons of each layer.

    Args:
        chosen: numbers of the community's neurons.
        preferred: the class that it prefers.
        members: neurons of each class group, see :func:`class_members`.
        layers: layer of every neuron, shape (neurons,).
        rng: source of randomness.
        draws: how many times they are cut.

    Returns:
        `cut by layer` and `class cut by layer`; nothing where the class has no group, or no layer neurons of both.
    """
    pairs = [cut_alike(chosen, members[preferred], rng, layers) for _ in range(draws if preferred in members else 0)]
    sides = {"cut by layer": 0, "class cut by layer": 1}
    sets = {kind: [(pair[side], preferred) for pair in pairs if len(pair[side])] for kind, side in sides.items()}
    return {kind: draws for kind, draws in sets.items() if draws}


def _averaged(
    subject: Subject, draws: Sequence[tuple[np.ndarray, int]], sets: Sets, there: int, silence: str
) -> dict[str, float]:
    """Means over draws; `sets` are those that the draws are of, with the community among them."""
    own = sets["community"][0][0] if "community" in sets else None
    effects = [_effect(subject, *one, there, silence) for one in draws]
    mean = {name: float(np.mean([one[name] for one in effects])) for name in effects[0]}
    classes = {preferred for _, preferred in draws}
    shared = {} if own is None else {"shared": float(np.mean([np.isin(one, own).mean() for one, _ in draws]))}
    return {**mean, **shared, "preferred": classes.pop() if len(classes) == 1 else -1, "draws": len(draws)}


def _effect(subject: Subject, chosen: np.ndarray, preferred: int, there: int, silence: str) -> dict[str, float]:
    losses, classes = subject.losses(chosen, silence), subject.accuracy.classes
    own, others, here, elsewhere = (
        float(losses[which].mean())
        for which in (classes == preferred, classes != preferred, classes == there, classes != there)
    )
    return {
        "size": float(len(chosen)),
        "loss_preferred": own,
        "loss_others": others,
        "specificity": own - others,
        "there": here - elsewhere,
    }


def class_members(subject: Subject, rules: LesionRules = LESION_RULES) -> dict[int, np.ndarray]:
    """By class the neurons whose mean positive activation over the probe is largest on it, where they are enough.

    Args:
        subject: the network.
        rules: the least size of a group.
    """
    names = np.unique(subject.look.labels)
    preferred = names[subject.means.argmax(axis=0)]
    members = {int(name): np.flatnonzero(subject.active & (preferred == name)) for name in names}
    return {name: own for name, own in members.items() if len(own) >= rules.least}


def same_size_rows(subject: Subject, unpushed: Subject, rules: LesionRules = LESION_RULES) -> list[dict[str, Any]]:
    """Class groups of two networks of one kind, cut down to as many neurons of each layer.

    Args:
        subject: a network that something was done to.
        unpushed: one of the same layers to which it was not.
        rules: the least size of a group, also after it was cut, and how many draws.

    Returns:
        Two rows for every class with a group in both, like those of :func:`set_rows`: `same size`, of the first, and
        `same size, unpushed`.
    """
    rng, rows = np.random.default_rng(subject.look.seed), []
    ours, theirs = (class_members(one, rules) for one in (subject, unpushed))
    for name in sorted(ours.keys() & theirs.keys()):
        pairs = [cut_alike(ours[name], theirs[name], rng, subject.look.layers) for _ in range(rules.draws)]
        if len(pairs[0][0]) >= rules.least:
            for kind, one, side in (("same size", subject, 0), ("same size, unpushed", unpushed, 1)):
                found = _averaged(one, [(pair[side], name) for pair in pairs], {}, name, "zero")
                rows.append({"kind": kind, "number": name, "silence": "zero", **found})
    return rows


def class_losses(subject: Subject, rules: LesionRules = LESION_RULES) -> list[dict[str, Any]]:
    """What accuracy on each class loses when a large community is silenced to 0, and when sets like it are.

    Args:
        subject: the network.
        rules: the least size of a community, and how many draws of random sets.

    Returns:
        A row per community, kind of set and class: `number` of the community; `kind`, "community", "matched" in layer,
        rate and selectivity (left out where too few neurons are left), or "random", the mean over draws; `size`;
        `preferred`, the class on which the community fires most; `class`; and `loss`, below 0 where accuracy grows.
    """
    rng, rows = np.random.default_rng(subject.look.seed), []
    for number, (chosen, preferred) in enumerate(_with_classes(subject.look.fired, subject.look.labels, rules)):
        sets = control_sets(subject, chosen, preferred, [], rng, rules)
        for kind in ("community", "matched", "random"):
            if kind in sets:
                losses = np.mean([subject.losses(one) for one, _ in sets[kind]], axis=0)
                known = {"number": number, "kind": kind, "size": len(chosen), "preferred": preferred}
                each = zip(subject.accuracy.classes.tolist(), losses.tolist(), strict=True)
                rows += [known | {"class": name, "loss": loss} for name, loss in each]
    return rows


def class_loss_rows(trial: Trial) -> list[dict[str, Any]]:
    """The same of a network, trained where the store lacks it.

    Args:
        trial: one network.
    """
    return lesion_rows(trial, class_losses)


def class_group_rows(trial: Trial) -> list[dict[str, Any]]:
    """The same with the sets of :func:`class_groups`, and for a pushed network those of :func:`same_size_rows`.

    Args:
        trial: one network.
    """

    def rows(subject: Subject) -> list[dict[str, Any]]:
        found = set_rows(subject, made=class_groups)
        if trial.run.penalty != "none":
            unpushed = run_once(trial.run.model_copy(update={"penalty": "none"}))
            found += [] if unpushed.failed else same_size_rows(subject, _subject(unpushed))
        return found

    return lesion_rows(trial, rows)


def lesion_rows(trial: Trial, rows: Callable[[Subject], list[dict[str, Any]]] = set_rows) -> list[dict[str, Any]]:
    """The rows of a network, trained where the store lacks it.

    Args:
        trial: one network.
        rows: gives those of its sets.

    Returns:
        What :func:`nbutils.experiments.trials.trial_facts` says, `degenerate`, and `accuracy` on the `images` on which
        effects are measured, in every row; beside them a row of
        :func:`set_rows`. One row of a network that failed.
    """
    run = run_once(trial.run)
    facts = trial_facts(run, trial)
    if run.failed:
        return [facts]
    from nbutils.runs.training import one_thread

    with one_thread():
        subject = _subject(run)
        facts |= {"degenerate": float(is_degenerate(subject.look)), "images": len(subject.labels)}
        facts["accuracy"] = float(np.average(subject.whole, weights=np.bincount(subject.labels)))
        return [facts | row for row in rows(subject)]


def _subject(run: Run, rules: LesionRules = LESION_RULES) -> Subject:
    import torch

    from nbutils.capturing.hooks import matching_layers

    look, data = look_at(run), run.spec.data()
    _, others = held_out_probe(data.test_labels)
    if takes_images(run.spec.model) and len(others) > rules.images:
        others = others[balanced_indices(data.test_labels[others], rules.images)]
    hidden, layout = hidden_layers(run.spec.model, run.spec.activation)
    return Subject(
        look=look,
        names=matching_layers(look.network, hidden),
        network=look.network,
        inputs=torch.from_numpy(np.asarray(data.to_inputs(data.test_pixels[others]), dtype=np.float32)),
        labels=data.test_labels[others],
        layout=layout,
    )
