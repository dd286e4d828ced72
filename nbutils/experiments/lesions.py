"""Lesions: communities silenced, and whether their class suffers more than from silencing sets that are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from nbutils.drawing.display import format_number, interval_text
from nbutils.evaluation.words import equivalence_test, judge, t_interval
from nbutils.experiments.causes import BASE, DATASETS, LABELS, cause_trials
from nbutils.experiments.effects import estimate_of, holm_adjusted, paired_p_value, sound_trials
from nbutils.experiments.trials import Trial, trial_seconds
from nbutils.runs.spec import RunSpec
from nbutils.second.networks import ARCHITECTURE_EPOCHS, ARCHITECTURE_IMAGES, ARCHITECTURE_SEEDS, ARCHITECTURES
from nbutils.stats import sign_flip
from nbutils.support.provenance import digest_of

__all__ = [
    "CLASS_QUESTIONS",
    "KINDS",
    "LESION_QUESTIONS",
    "LESION_RULES",
    "ON_ITS_CLASS",
    "SAME_SIZE",
    "TITLES",
    "LesionQuestion",
    "LesionRules",
    "class_group_trials",
    "class_loss_matrix",
    "lesion_seconds",
    "lesion_trials",
    "lesion_verdicts",
    "network_flips",
    "network_means",
    "noisy_trials",
    "pushed_effects",
    "pushed_outcomes",
    "pushed_trials",
    "same_size_verdicts",
    "set_differences",
    "specificities",
    "ways_to_silence",
]

SEEDS = 10
FALLEN = 0.1  # of Q, from which on something was pushed away
VGG: Mapping[str, Any] = {  # as in the second study of architectures
    "dataset": "cifar10-10k",
    "model": ARCHITECTURES["vgg"].model,
    "epochs": ARCHITECTURE_EPOCHS,
    "examples": ARCHITECTURE_IMAGES,
}
MLP: Mapping[str, Any] = {**BASE, "epochs": LABELS["true"]}  # as in the experiment on cause, without a penalty
NOISE = "mixed:0.4"  # likewise


# Data set and condition of networks -> what pages call them.
TITLES: Mapping[tuple[str, str], str] = {
    ("mnist-10k", "none"): "MNIST",
    ("fashion-mnist-10k", "none"): "Fashion-MNIST",
    ("cifar10-10k", "none"): "CIFAR-10",
    ("cifar10-10k", "vgg"): "CIFAR-10, VGG-like",
    ("mnist-10k", "noise"): "MNIST, wrong labels",
    ("fashion-mnist-10k", "noise"): "Fashion-MNIST, wrong labels",
    ("cifar10-10k", "noise"): "CIFAR-10, wrong labels",
}
# Kind of sets -> what pages call it.
KINDS: Mapping[str, str] = {
    "community": "community",
    "cut": "community, cut down",
    "shuffle": "shuffle within classes",
    "matched": "matched in rate and selectivity",
    "rate": "matched in rate",
    "random": "random",
    "unit": "most selective neuron",
    "unit control": "control of a neuron",
}


@dataclass(frozen=True)
class LesionQuestion:
    """A question, put to every kind of network on every data set.

    Attributes:
        asks: the question, in words.
        kind: of the sets that it is about, see :func:`nbutils.experiments.silenced_sets.set_rows`.
        against: kind of the sets that they are held against, one for each.
        column: what is compared.
        threshold: difference that must be exceeded, and within which sets count as equivalent.
    """

    asks: str
    kind: str
    against: str
    column: str
    threshold: float


LESION_QUESTIONS: Mapping[str, LesionQuestion] = {
    "beyond matched sets": LesionQuestion(
        "Is a community more specific than a set matched in layer, rate and selectivity?",
        "community",
        "matched",
        "specificity",
        0.05,
    ),
    "beyond class preference": LesionQuestion(
        "Is it more specific than a community of the shuffle within classes?",
        "cut",
        "shuffle",
        "specificity",
        0.05,
    ),
    "single units": LesionQuestion(
        "Does the most selective neuron of a class matter more to it than a neuron that fires as often?",
        "unit",
        "unit control",
        "loss_preferred",
        0.01,
    ),
}
# Thought of after the networks had been looked at: what both sets do to the class that the community prefers.
ON_ITS_CLASS = replace(
    LESION_QUESTIONS["beyond matched sets"],
    asks="Does the class that a community prefers suffer more from it than from a matched set?",
    column="there",
)
# Of neurons grouped by the class that each prefers, see `nbutils.experiments.silenced_sets.class_groups`.
CLASS_QUESTIONS: Mapping[str, LesionQuestion] = {
    "class groups": replace(
        LESION_QUESTIONS["beyond matched sets"],
        asks="Is a group of neurons that prefer one class more specific than a set matched in rate and selectivity?",
        kind="class group",
    ),
    "beyond class groups": replace(
        LESION_QUESTIONS["beyond class preference"],
        asks="Is a community more specific than the group of neurons that prefer its class?",
        kind="cut by layer",
        against="class cut by layer",
    ),
}
# Of class groups of a pushed network, see `nbutils.experiments.silenced_sets.same_size_rows`.
SAME_SIZE = replace(
    CLASS_QUESTIONS["beyond class groups"],
    asks="Is a class group more specific than that of the unpushed network of the same seed, at the same size?",
    kind="same size",
    against="same size, unpushed",
)


@dataclass(frozen=True)
class LesionRules:
    """How sets are made and judged; fixed before the networks were looked at in this way.

    Communities are those of the graph of all active neurons on the held-out probe, as five searches agree on them;
    effects are losses of accuracy on other test images. Where a shuffle has several communities with the same preferred
    class, the one counts that shares most neurons with the community (Jaccard's index). For every question of
    `LESION_QUESTIONS`, kind of network and data set: the difference between a set and its control, its mean over the
    sets of a network, and the mean of that over networks with a t interval; the word is that of
    :func:`nbutils.evaluation.words.judge`, p values of all tests together corrected by Holm. Degenerate networks decide
    nothing; neither do fewer than `networks` of them.

    Attributes:
        least: neurons of a community, at least.
        draws: shuffles of firing, each with sets cut down to equal size anew.
        few: draws of random sets, and of all that is shown beside and gets no word.
        near: neurons nearest in rate, of which the least selective is a unit's control.
        images: test images on which effects are measured in networks that take images as such, equally many of each
            class; all other networks see all that are not in the probe.
        level: confidence of the intervals.
        networks: sound networks without which nothing is concluded.
    """

    least: int = 8
    draws: int = 20
    few: int = 5
    near: int = 10
    images: int = 1000
    level: float = 0.95
    networks: int = 8

    @property
    def class_digest(self) -> str:
        """The same of the rules about neurons that prefer a class."""
        asked = {name: asdict(one) for name, one in {**CLASS_QUESTIONS, "same size": SAME_SIZE}.items()}
        return digest_of({"rules": self.digest, "questions": asked, "fallen": FALLEN})

    @property
    def digest(self) -> str:
        """By which a page names the rules."""
        asked = {name: asdict(one) for name, one in LESION_QUESTIONS.items()}
        design = {"mlp": MLP, "vgg": VGG, "datasets": DATASETS, "seeds": SEEDS, "convolutional": ARCHITECTURE_SEEDS}
        return digest_of({**asdict(self), "questions": asked, **design})


LESION_RULES = LesionRules()


def lesion_trials(datasets: Sequence[str] | None = None, seeds: int | None = None, **changes: Any) -> list[Trial]:
    """All networks of the experiment *lesions*.

    Args:
        datasets: names of data sets; None takes those of the book. VGG-like networks stand on one of these alone.
        seeds: networks of each kind; None takes ten fully connected and eight VGG-like ones.
        **changes: parameters of a run that replace those of the fully connected networks.

    Returns:
        Fully connected networks seed by seed (`condition` "none", as in the experiment on cause), then "vgg".

    Examples:
        >>> trials = lesion_trials()
        >>> len(trials), [one.condition for one in trials][29:31]
        (38, ['none', 'vgg'])
    """
    chosen, count = DATASETS if datasets is None else datasets, SEEDS if seeds is None else seeds
    shared = {**MLP, **changes}
    found = [
        Trial(RunSpec(**{**shared, "dataset": name, "seed": seed}), "none", 0.0)
        for seed in range(count)
        for name in chosen
    ]
    if VGG["dataset"] in chosen:
        found += [Trial(RunSpec(**VGG, seed=seed), "vgg") for seed in range(count if seeds else ARCHITECTURE_SEEDS)]
    return found


def pushed_trials(datasets: Sequence[str] | None = None, seeds: int | None = None) -> list[Trial]:
    """Networks of the experiment on cause whose modularity was pushed, with true labels, to be silenced as well.

    Args:
        datasets: names of data sets; None takes those of the book.
        seeds: networks of each coefficient; None takes ten.

    Returns:
        Seed by seed; `condition` is "none" or the penalty, such as "modularity:-0.3".

    Examples:
        >>> trials = pushed_trials(["mnist-10k"], seeds=1)
        >>> len(trials), trials[0].condition, trials[1].condition
        (11, 'none', 'modularity:-3')
    """
    found = cause_trials(DATASETS if datasets is None else datasets, SEEDS if seeds is None else seeds)
    wanted = [one for one in found if one.run.labels == "true" and one.condition in ("none", "modularity")]
    return [replace(one, condition=one.run.penalty or "none") for one in wanted]


def class_group_trials(datasets: Sequence[str] | None = None, seeds: int | None = None) -> list[Trial]:
    """Networks whose neurons are silenced by the class that they prefer: those of both experiments.

    Args:
        datasets: names of data sets; None takes those of the book.
        seeds: networks of each kind; None takes as many as *lesions*.

    Returns:
        Those without a penalty, then the pushed ones.

    Examples:
        >>> len(class_group_trials())
        338
    """
    pushed = pushed_trials(datasets, seeds)
    return lesion_trials(datasets, seeds) + [one for one in pushed if one.condition != "none"]


def noisy_trials(datasets: Sequence[str] | None = None, seeds: int | None = None) -> list[Trial]:
    """Networks that learned 40 % wrong labels, given the time to memorise them; else the fully connected of *lesions*.

    Args:
        datasets: names of data sets; None takes those of the book.
        seeds: networks on each; None takes ten.

    Examples:
        >>> trials = noisy_trials(["digits"], seeds=1)
        >>> trials[0].condition, trials[0].run.labels, trials[0].run.epochs
        ('noise', 'mixed:0.4', 20)
    """
    found = lesion_trials(datasets, seeds, labels=NOISE, epochs=LABELS[NOISE])
    return [replace(one, condition="noise") for one in found if one.condition == "none"]


# Seconds of one processor that silencing takes, and what convolutions train longer.
FULLY_CONNECTED, CONVOLUTIONAL = 15.0, 600.0


def lesion_seconds(trials: Sequence[Trial]) -> float:
    """About how long trials take on one processor.

    Examples:
        >>> lesion_seconds(lesion_trials(["digits"], seeds=1)) > 15
        True
    """
    return trial_seconds(trials) + sum(CONVOLUTIONAL if one.condition == "vgg" else FULLY_CONNECTED for one in trials)


GROUP = ["dataset", "condition"]  # networks that a question is put to together
NETWORK = [*GROUP, "seed"]
NAN = float("nan")


def set_differences(
    table: pd.DataFrame, question: LesionQuestion, silence: str = "zero", suffix: str = ""
) -> pd.DataFrame:
    """Sets against their controls: one difference for every set that has one.

    Args:
        table: of the experiment, see :func:`nbutils.experiments.silenced_sets.lesion_rows`; of sound networks.
        question: which sets, and what is compared.
        silence: "zero" or "mean".
        suffix: of both kinds, such as " by layer".

    Returns:
        One row per set: `dataset`, `condition`, `seed`, `number`, `difference`.

    Examples:
        >>> kinds, values = ["community", "matched"], [0.5, 0.1]
        >>> rows = pd.DataFrame({"kind": kinds, "specificity": values, "silence": "zero", "number": 0})
        >>> rows = rows.assign(dataset="digits", condition="none", seed=0)
        >>> set_differences(rows, LESION_QUESTIONS["beyond matched sets"])["difference"].tolist()
        [0.4]
    """
    own = table[table["silence"] == silence]
    sides = [
        own[own["kind"] == f"{kind}{suffix}"].set_index([*NETWORK, "number"])[question.column]
        for kind in (question.kind, question.against)
    ]
    return (sides[0] - sides[1]).dropna().sort_index().rename("difference").reset_index()


def network_means(differences: pd.DataFrame) -> pd.Series:
    """The mean over the sets of every network, by `dataset`, `condition` and `seed`.

    Args:
        differences: see :func:`set_differences`.
    """
    return differences.groupby(NETWORK, sort=False)["difference"].mean()


def lesion_verdicts(
    table: pd.DataFrame,
    rules: LesionRules = LESION_RULES,
    silence: str = "zero",
    suffix: str = "",
    questions: Mapping[str, LesionQuestion] = LESION_QUESTIONS,
) -> pd.DataFrame:
    """The questions about lesions, answered for every kind of network on every data set.

    Args:
        table: of the experiment.
        rules: level of the intervals, and how many networks it takes.
        silence: "zero"; "mean" for what is shown beside.
        suffix: of the sets of equal size alone, see :func:`set_differences`.
        questions: which are asked.

    Returns:
        One row per data set, kind of network (`condition`) and key of `questions`: `networks` and `sets` that
        have a control, `lacking` sets that have none, `effect` with `low` and `high`, `inner_low` and `inner_high` of
        equivalence, `p_value`, `adjusted`, `word`; and `flips`, the p value of sign flips of all sets of all networks,
        in which sets of one network count as independent witnesses, which they are not.
    """
    sound, rows = sound_trials(table), []
    groups = table[GROUP].drop_duplicates().itertuples(index=False)
    for dataset, condition in groups:
        own = sound[(sound["dataset"] == dataset) & (sound["condition"] == condition)]
        for name, question in questions.items():
            base = "community" if question.kind.startswith("cut") else question.kind
            there = ((own["kind"] == base) & (own["silence"] == silence)).sum()
            differences = set_differences(own, question, silence, suffix if question.kind == "cut" else "")
            found = _row(differences, question.threshold, rules)
            known = {"dataset": dataset, "condition": condition, "question": name}
            rows.append({**known, **found, "lacking": there - found["sets"], "threshold": question.threshold})
    found = pd.DataFrame(rows)
    found["adjusted"] = holm_adjusted(found["p_value"])
    found["word"] = [_word(row) for row in found.itertuples()]
    return found


def pushed_effects(
    table: pd.DataFrame,
    rules: LesionRules = LESION_RULES,
    question: LesionQuestion = LESION_QUESTIONS["beyond matched sets"],
    silence: str = "zero",
) -> pd.DataFrame:
    """What pushing modularity does to the damage that sets do beyond matched ones, against the same seed.

    Args:
        table: of the experiment *pushed*, or of *class-groups*.
        rules: level of the intervals, and how many networks it takes.
        question: which sets: communities, or with that of `CLASS_QUESTIONS` groups of neurons that prefer one class.
        silence: "zero" or "mean".

    Returns:
        One row per data set and coefficient (`dose`), in order: `networks` that have communities with and without the
        penalty, `effect` with `low` and `high`, `inner_low` and `inner_high` of equivalence, `p_value`, `adjusted` over
        all of them, `word`.
    """
    differences = set_differences(sound_trials(table), question, silence)
    each, rows = network_means(differences).unstack("condition"), []
    for dataset, own in each.groupby("dataset"):
        for condition in own.drop(columns="none").dropna(axis="columns", how="all"):
            change = (own[condition] - own["none"]).dropna().rename("difference").reset_index()
            found = _row(change.assign(condition=condition), question.threshold, rules)
            rows.append({"dataset": dataset, "dose": float(condition.partition(":")[2]), **found})
    found = pd.DataFrame(rows).drop(columns=["sets", "flips"]).sort_values(["dataset", "dose"], ignore_index=True)
    found["adjusted"] = holm_adjusted(found["p_value"])
    return found.assign(word=[_word(row) for row in found.assign(threshold=question.threshold).itertuples()])


def pushed_outcomes(communities: pd.DataFrame, groups: pd.DataFrame, same: pd.DataFrame, q: pd.Series) -> pd.DataFrame:
    """Whether what modularity saw is gone where it was pushed away, or only hidden from the graph.

    Args:
        communities: rows of :func:`pushed_effects` of one data set.
        groups: the same of neurons grouped by the class that they prefer.
        same: verdicts on `SAME_SIZE` by `dose`, see :func:`same_size_verdicts`.
        q: mean modularity by coefficient, 0 among them.

    Returns:
        One row each, in order: `coefficient`, `Q`, the effect on all three with its interval and word, and
        `outcome`, empty where Q is not lower by 0.1 or more: "gone" where all three are contradicted; "hidden" where
        one of them is as before (no association), or supported; "undecided" where neither is so.

    Examples:
        >>> row = {"dose": -1.0, "effect": -0.5, "low": -0.6, "high": -0.4, "word": "contradicted"}
        >>> seen, same = pd.DataFrame([row]), pd.DataFrame([{**row, "word": "no association"}])
        >>> pushed_outcomes(seen, seen, same, pd.Series({-1.0: 0.3, 0.0: 0.7}))["outcome"].tolist()
        ['hidden']
    """
    tables = {"communities": communities, "class groups": groups, "class groups, same size": same}
    found = pd.DataFrame({"Q": q.drop(0)}).rename_axis("dose")
    words = {}
    for name, table in tables.items():
        own = table.set_index("dose")
        told = [f"{interval_text(row.effect, row.low, row.high)}, {row.word}" for row in own.itertuples()]
        found[name], words[name] = pd.Series(told, own.index), own["word"]
    each = pd.DataFrame(words).reindex(found.index)
    hidden = each.isin(["no association", "supported"]).any(axis=1)
    outcome = hidden.map({True: "hidden", False: "undecided"}).mask((each == "contradicted").all(axis=1), "gone")
    return found.assign(outcome=outcome.where(found["Q"] <= q[0] - FALLEN, "")).rename_axis("coefficient").reset_index()


def network_flips(table: pd.DataFrame, silence: str = "zero") -> pd.DataFrame:
    """What a permutation over networks says where communities are held against matched sets and against the shuffle.

    Were there no difference, the mean of a network could as well have the other sign; with up to thirteen networks all
    patterns of signs are listed, so that the test is exact. With n networks p is at least 2 / 2^n.

    Args:
        table: of the experiment.
        silence: "zero" or "mean".

    Returns:
        One row per data set, `condition` and question: those of `LESION_QUESTIONS` about communities, and
        `ON_ITS_CLASS`; `networks`, `effect` with `low` and `high`, and `p_flips`.
    """
    asked = {k: q for k, q in LESION_QUESTIONS.items() if not q.kind.startswith("unit")} | {"its class": ON_ITS_CLASS}
    sound, rows = sound_trials(table), []
    for name, question in asked.items():
        means = network_means(set_differences(sound, question, silence))
        for (dataset, condition), own in means.groupby(GROUP, sort=False):
            values = own.to_numpy()
            low, high = t_interval(values, LESION_RULES.level) if len(values) > 1 else (NAN, NAN)
            p = sign_flip(values, 0, alternative="two-sided").p_value
            known = {"dataset": dataset, "condition": condition, "question": name, "networks": len(values)}
            rows.append({**known, "effect": values.mean(), "low": low, "high": high, "p_flips": p})
    return pd.DataFrame(rows)


def same_size_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Verdicts on `SAME_SIZE` at every coefficient of one data set, corrected over all of them.

    Args:
        table: of the experiment *class-groups*, rows of one data set.

    Returns:
        Rows of :func:`lesion_verdicts`, with the coefficient as `dose`.
    """
    found = lesion_verdicts(table[table["condition"] != "none"], questions={"same size": SAME_SIZE})
    return found.assign(dose=found["condition"].str.partition(":")[2].astype(float)).sort_values("dose")


def ways_to_silence(table: pd.DataFrame) -> pd.DataFrame:
    """Mean difference and word of every question: silenced to 0, to the mean, and to 0 with layers of equal size.

    Args:
        table: of the experiment.
    """
    ways: dict[str, dict[str, str]] = {"0": {}, "mean": {"silence": "mean"}, "0, by layer": {"suffix": " by layer"}}
    each = {way: lesion_verdicts(table, **given) for way, given in ways.items()}
    first = each["0"]
    told = {"network": [TITLES.get(key, key[0]) for key in zip(first["dataset"], first["condition"], strict=True)]}
    told["question"] = list(first["question"])
    told |= {way: found["effect"].map(format_number) + ", " + found["word"] for way, found in each.items()}
    return pd.DataFrame(told)


def class_loss_matrix(table: pd.DataFrame, kind: str = "community") -> pd.DataFrame:
    """Mean losses by preferred class (rows) and class (columns): of communities of a network, then of networks.

    Args:
        table: of the experiment *class-losses*, networks of one kind.
        kind: of sets.

    Returns:
        Losses in shares of accuracy; no row for a class that no community prefers.

    Examples:
        >>> rows = pd.DataFrame({"preferred": 0, "class": [0, 1], "loss": [0.9, 0.1], "kind": "community"})
        >>> class_loss_matrix(rows.assign(seed=0, degenerate=0.0, reason="")).to_numpy().tolist()
        [[0.9, 0.1]]
    """
    sound = sound_trials(table)
    own = sound[sound["kind"] == kind].groupby(["seed", "preferred", "class"])["loss"].mean()
    return own.groupby(["preferred", "class"]).mean().unstack()


def _row(differences: pd.DataFrame, threshold: float, rules: LesionRules) -> dict[str, float]:
    means = network_means(differences).to_numpy()
    found = {"networks": len(means), "sets": len(differences), "effect": means.mean() if len(means) else NAN}
    if len(means) < rules.networks:
        return found | dict.fromkeys(("low", "high", "inner_low", "inner_high", "p_value", "flips"), NAN)
    low, high = t_interval(means, rules.level)
    _, inner = equivalence_test(means, threshold, rules.level)
    flips = sign_flip(differences["difference"].to_numpy(), 0, alternative="two-sided").p_value
    found |= {"low": low, "high": high, "inner_low": inner[0], "inner_high": inner[1]}
    return found | {"p_value": paired_p_value(means), "flips": flips}


def _word(row: object) -> str:
    estimate = estimate_of(row)
    return judge(estimate, row.threshold, bound=row.threshold, adjusted=row.adjusted)


def specificities(table: pd.DataFrame, kinds: list[str], silence: str = "zero") -> pd.DataFrame:
    """Mean specificity of the sets of every sound network, of each kind.

    Args:
        table: of the experiment.
        kinds: of sets, see :func:`nbutils.experiments.silenced_sets.set_rows`.
        silence: "zero" or "mean".

    Returns:
        One row per network and kind: `dataset`, `condition`, `seed`, `kind`, `specificity`.
    """
    sound = sound_trials(table)
    own = sound[sound["kind"].isin(kinds) & (sound["silence"] == silence)]
    return own.groupby([*NETWORK, "kind"], sort=False)["specificity"].mean().reset_index()
