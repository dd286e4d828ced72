"""Pruning: do communities survive when most weights are removed, and are the neurons of one removed together?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nbutils.activations import class_means
from nbutils.communities import detect_communities
from nbutils.drawing.display import interval_text
from nbutils.entropy import class_selectivity
from nbutils.evaluation.between import Between, between_beyond, quarters
from nbutils.experiments.causes import cause_trials
from nbutils.experiments.trials import Trial, graph_outcomes, measured, trial_facts, trial_seconds
from nbutils.graphs import activation_pattern_graph
from nbutils.runs.looks import Look, look_at
from nbutils.runs.pruning import PRUNINGS, pruned, retrained, surviving_shares, weight_scores
from nbutils.runs.run import Run, run_once
from nbutils.second.questions import PROTOCOL
from nbutils.stats import correlation
from nbutils.support.provenance import digest_of

if TYPE_CHECKING:
    from torch import nn

    from nbutils.runs.training import TrainingSettings

import pandas as pd

from nbutils.evaluation.words import equivalence_test, judge, t_interval
from nbutils.experiments.effects import LEAST, estimate_of, holm_adjusted, paired_p_value, sound_trials

__all__ = [
    "PRUNING_RULES",
    "SPARSITIES",
    "UNPRUNED",
    "PruningRules",
    "communities_of",
    "pruning_changes",
    "pruning_courses",
    "pruning_rows",
    "pruning_seconds",
    "pruning_trials",
    "pruning_verdicts",
    "q_with_and_without_tied",
    "question_values",
    "rank_correlations",
    "strata_of",
    "together",
]

SEEDS = 8
SPARSITIES = (0.5, 0.8, 0.9, 0.95, 0.98)
EPOCHS = 5  # of retraining
UNPRUNED = "none"
BEFORE, AFTER = "before", "after"  # retraining
TIED = 0.2  # share of images; the rule of firing takes a tenth, and more only where values are equal
STATES = 40.0  # seconds of all states of a network, as they were on the machine that made the table
ANOTHER = 1000  # added to a run's seed, so that retraining does not begin with the order of images of its first epochs


@dataclass(frozen=True)
class PruningRules:
    """How the verdicts are reached; fixed before the networks that they are about were looked at in this way.

    For every data set and every rule of `nbutils.runs.pruning.PRUNINGS`:

    1. *Modularity*: Q of the network pruned to `sparsity` and trained for `EPOCHS` more, minus Q of the network as it
       was, its mean over networks with a t interval. Supported where it rises by more than `threshold`, contradicted
       where it falls by more, for no sign was predicted; no association within -+ `bound`.
    2. *Pruned together*: the share of a neuron's incoming and outgoing weights that are left at `together`, before
       retraining. eta^2 between communities of the network as it was, minus its mean over `draws` permutations of
       communities among neurons of one layer, quarter of firing rate and quarter of class selectivity; its mean over
       networks with a t interval, beyond `threshold`.

    p values of all tests together are corrected by Holm. Degenerate networks decide nothing; neither do fewer than
    `least` others.

    Attributes:
        sparsity: share of weights pruned, of the first question.
        together: the same, of the second.
        draws: permutations of communities.
        threshold: size that a mean must exceed.
        bound: means within -+ bound do not matter.
        level: confidence of the intervals.
        least: networks without which nothing is concluded.
    """

    sparsity: float = 0.9
    together: float = 0.8
    draws: int = 200
    threshold: float = 0.05
    bound: float = 0.05
    level: float = 0.95
    least: int = 5

    @property
    def digest(self) -> str:
        """By which a page names the rules."""
        design = {"prunings": list(PRUNINGS), "sparsities": SPARSITIES, "epochs": EPOCHS, "seeds": SEEDS}
        return digest_of({**asdict(self), **design})


PRUNING_RULES = PruningRules()


def pruning_trials(datasets: Sequence[str] | None = None, seeds: int = SEEDS, **changes: Any) -> list[Trial]:
    """The networks that are pruned: those of the experiment on cause without a penalty and with true labels.

    Args:
        datasets: names of data sets; None takes those of the book.
        seeds: networks on each.
        **changes: parameters of a run that replace those of all.

    Examples:
        >>> [trial.run.seed for trial in pruning_trials(["digits"], seeds=2)]
        [0, 1]
    """
    found = cause_trials(datasets, seeds, **changes)
    return [one for one in found if one.condition == "none" and one.run.labels == "true"]


def pruning_seconds(trials: Sequence[Trial]) -> float:
    """About how long networks take on one processor: :func:`nbutils.experiments.trials.trial_seconds`, and all states.

    Examples:
        >>> pruning_seconds(pruning_trials(["digits"], seeds=1)) > 40
        True
    """
    return trial_seconds(trials) + STATES * len(trials)


def pruning_rows(trial: Trial) -> list[dict[str, Any]]:
    """All states of one network: as it was, and for every rule and sparsity before and after retraining.

    A rule that joins `PRUNINGS` later is in new tables; the rows of a network that a table holds stay as they are.

    Args:
        trial: see :func:`pruning_trials`.

    Returns:
        A row per state: what :func:`nbutils.experiments.trials.trial_facts` says, `rule` ("none": nothing is pruned),
        `sparsity`, `stage` ("before" or "after" retraining), `weights` that are left, what
        :func:`nbutils.experiments.trials.measured` gives, `tied` (neurons that fire on more than a fifth of the
        images, though the rule of firing takes a tenth: many images share their largest value, as those of a neuron
        without inputs do), `modularity_untied`, `class_part_untied` and `remainder_untied` without them, and of pruned
        networks `together`, eta^2 between communities,
        and `together_excess` (NaN where they have been retrained). One row for a network that failed.
    """
    run = run_once(trial.run)
    facts = trial_facts(run, trial)
    if run.failed:
        return [facts | {"rule": UNPRUNED, "sparsity": 0.0, "stage": BEFORE}]
    return [facts | row for row in _states(run, trial)]


def _states(run: Run, trial: Trial) -> Iterator[dict[str, Any]]:
    data, network = run.spec.data(), run.network()
    first = look_at(run, neurons=trial.size)
    communities = communities_of(first)
    for rule, sparsity, cut in [(UNPRUNED, 0.0, network), *_cuts(run, network)]:
        state = {"rule": rule, "sparsity": sparsity}
        found = together(cut, communities, first) if rule != UNPRUNED else Between(float("nan"), float("nan"))
        yield {**state, "stage": BEFORE, **_row(run, trial, cut, found)}
        more = retrained(cut, data, _settings(run), run.spec.seed + ANOTHER)
        yield {**state, "stage": AFTER, **_row(run, trial, more, Between(float("nan"), float("nan")))}


def _cuts(run: Run, network: nn.Module) -> Iterator[tuple[str, float, nn.Module]]:
    """The network pruned by every rule to every sparsity."""
    data = run.spec.data()
    for rule in PRUNINGS:
        scores = weight_scores(rule, network, data.train_inputs, data.train_labels, run.spec.seed)
        for sparsity in SPARSITIES:
            yield rule, sparsity, pruned(network, scores, sparsity)


def _settings(run: Run) -> TrainingSettings:
    """The run's own, for the epochs of retraining."""
    from nbutils.runs.training import TrainingSettings

    settings = TrainingSettings(**{one.name: getattr(run.spec, one.name) for one in fields(TrainingSettings)})
    return replace(settings, epochs=EPOCHS, frozen_epochs=0)


def _row(run: Run, trial: Trial, network: nn.Module, found: Between) -> dict[str, Any]:
    from nbutils.capturing.hooks import capture_activations
    from nbutils.runs.training import one_thread, score

    data, look = run.spec.data(), look_at(run, neurons=trial.size, network=network)
    with one_thread():
        logits = capture_activations(network, data.train_pixels, "output", prepare=data.to_inputs)["output"]
        loss, accuracy = score(logits, data.train_labels)
        state = {"train_loss": loss, "train_accuracy": accuracy, "true_accuracy": score(logits, data.train_true)[1]}
    left = sum(int((part != 0).sum()) for part in network.parameters() if part.ndim > 1)
    values = measured(replace(look, run={**look.run, **state}))
    untied = _untied(look)
    values |= {"tied": len(look.layers) - len(untied.layers)}
    graph = values if not values["tied"] else graph_outcomes(untied)
    values |= {f"{name}_untied": graph[name] for name in ("modularity", "class_part", "remainder")}
    return {"weights": left, **values, "together": found.share, "together_excess": found.excess}


def _untied(look: Look) -> Look:
    """The same network without neurons that fire on more than `TIED` of the images."""
    kept = look.fired.mean(axis=0) <= TIED
    return replace(look, preactivations=look.preactivations[:, kept], layers=look.layers[kept])


def communities_of(look: Look) -> np.ndarray:
    """Community of every neuron, by its firing on the probe.

    Args:
        look: at a network.

    Returns:
        Shape (neurons,); -1 for a neuron that never fires, or has no edge.
    """
    fires, found = look.fired.any(axis=0), np.full(len(look.layers), -1)
    found[fires] = detect_communities(activation_pattern_graph(look.fired[:, fires], PROTOCOL.density)).labels
    return found


def strata_of(look: Look, chosen: np.ndarray) -> np.ndarray:
    """Layer, quarter of firing rate and quarter of class selectivity of some neurons.

    The rate is the share of images on which a neuron is positive: by the rule of firing, its strongest tenth, nearly
    all would have the same.

    Args:
        look: at a network.
        chosen: which neurons, boolean, shape (neurons,); quarters are among these, layer by layer.

    Returns:
        Shape (chosen neurons, 3).
    """
    layers, rates = look.layers[chosen], look.positive.mean(axis=0)[chosen]
    selectivity = class_selectivity(class_means(look.activations, look.labels))[chosen]
    return np.column_stack([layers, quarters(rates, layers), quarters(selectivity, layers)])


def together(network: nn.Module, communities: np.ndarray, look: Look, draws: int = PRUNING_RULES.draws) -> Between:
    """Are the neurons of a community pruned together, beyond what layers, rates and selectivity explain?

    Args:
        network: pruned.
        communities: of the network as it was, see :func:`communities_of`.
        look: at the network as it was.
        draws: permutations of communities.
    """
    member = communities >= 0
    shares, strata = surviving_shares(network)[member], strata_of(look, member)
    return between_beyond(shares, communities[member], strata, look.seed, draws)


QUESTIONS = ("modularity", "together")
STATE = ["dataset", "rule", "stage", "sparsity"]


def _state(table: pd.DataFrame, rule: str, sparsity: float, stage: str) -> pd.DataFrame:
    """Networks in one state, by seed."""
    own = (table["rule"] == rule) & (table["sparsity"] == sparsity) & (table["stage"] == stage)
    return table[own].set_index("seed")


def question_values(table: pd.DataFrame, question: str, pruning: str, rules: PruningRules = PRUNING_RULES) -> pd.Series:
    """What a question is about, network by network.

    Args:
        table: of the experiment *pruning*, one data set.
        question: "modularity", Q at `rules.sparsity` after retraining minus Q of the network as it was; or "together",
            the excess of eta^2 at `rules.together` before retraining.
        pruning: key of `nbutils.runs.pruning.PRUNINGS`.
        rules: at which sparsities.

    Returns:
        By seed. Of the first question networks that are sound in both states, of the second those that were sound
        before they were pruned, for it is about weights.

    Raises:
        ValueError: there is no such question.
    """
    if question not in QUESTIONS:
        raise ValueError(f"question must be one of {', '.join(QUESTIONS)}, received {question!r}")
    sound = sound_trials(table)
    was = _state(sound, UNPRUNED, 0.0, BEFORE)
    if question == "modularity":
        found = _state(sound, pruning, rules.sparsity, AFTER)["modularity"] - was["modularity"]
    else:
        cut = _state(table, pruning, rules.together, BEFORE)["together_excess"]
        found = cut[cut.index.isin(was.index)]
    return found.dropna().sort_index()


def pruning_verdicts(table: pd.DataFrame, rules: PruningRules = PRUNING_RULES) -> pd.DataFrame:
    """Both questions for every data set and pruning rule, with their words.

    Args:
        table: of the experiment *pruning*.
        rules: sparsities, thresholds, and how p values are corrected.

    Returns:
        One row per question, data set and pruning rule: `question`, `dataset`, `rule`, `networks`, `effect` with `low`
        and `high`, `inner_low` and `inner_high` (the interval that must lie within the bounds), `p_value`, `adjusted`,
        `word`. Of the first question *supported* means that Q rises, *contradicted* that it falls.
    """
    rows = [
        {
            "question": question,
            "dataset": dataset,
            "rule": rule,
            **_estimate(question_values(part, question, rule, rules), rules),
        }
        for question in QUESTIONS
        for dataset, part in table.groupby("dataset", sort=False)
        for rule in dict.fromkeys(part.loc[part["rule"] != UNPRUNED, "rule"])
    ]
    found = pd.DataFrame(rows)
    found["adjusted"] = holm_adjusted(found["p_value"])
    found["word"] = [_word(row, rules) for row in found.itertuples()]
    return found


def _estimate(values: pd.Series, rules: PruningRules) -> dict[str, float]:
    names = ["low", "high", "inner_low", "inner_high", "p_value"]
    if len(values) < rules.least:
        return {"networks": len(values), "effect": values.mean(), **dict.fromkeys(names, float("nan"))}
    array = values.to_numpy()
    ends = *t_interval(array, rules.level), *equivalence_test(array, rules.bound, rules.level)[1]
    found = zip(names, (*ends, paired_p_value(array)), strict=True)
    return {"networks": len(values), "effect": values.mean(), **dict(found)}


def _word(row: object, rules: PruningRules) -> str:
    estimate = estimate_of(row)
    return judge(estimate, rules.threshold, bound=rules.bound, adjusted=row.adjusted)


def pruning_courses(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Means over networks at every sparsity, each rule's line beginning at the network as it was.

    Args:
        table: of the experiment *pruning*.
        columns: of the table.

    Returns:
        One row per data set, `rule`, `stage`, `sparsity` and `column`: `mean`, `low` and `high` (95 % t interval, with
        at least five networks), `networks` in which the column is defined, `degenerate` ones among them. At sparsity 0
        both stages of a rule are those of the network without pruning.
    """
    done = table[table["reason"] == ""]
    whole, rules = done[done["rule"] == UNPRUNED], [name for name in dict.fromkeys(done["rule"]) if name != UNPRUNED]
    every = pd.concat([done[done["rule"] != UNPRUNED], *(whole.assign(rule=name) for name in rules)])
    rows = []
    for column in columns:
        for key, own in every.groupby(STATE, sort=False):
            there = own.dropna(subset=column)
            values = there[column].to_numpy(float)
            ends = t_interval(values) if len(values) >= LEAST else (np.nan, np.nan)
            mean = values.mean() if len(values) else np.nan
            rows.append((*key, column, mean, *ends, len(values), int((there["degenerate"] == 1).sum())))
    names = [*STATE, "column", "mean", "low", "high", "networks", "degenerate"]
    return pd.DataFrame(rows, columns=names).sort_values("sparsity", kind="stable", ignore_index=True)


def pruning_changes(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """By how much each state differs from the same network as it was, mean over networks.

    Args:
        table: of the experiment *pruning*.
        columns: of the table.

    Returns:
        One row per data set, rule (without "none"), stage and sparsity, with a column for each of `columns`.
    """
    keys, names, done = ["dataset", "seed"], list(columns), table[table["reason"] == ""]
    was = done[(done["rule"] == UNPRUNED) & (done["stage"] == BEFORE)].set_index(keys)[names]
    cut = done[done["rule"] != UNPRUNED].set_index([*keys, *STATE[1:]])[names]
    # Subtracted by data set and seed, which all states of a network share.
    return (cut - was).groupby(level=STATE, sort=False).mean().reset_index()


def rank_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of the change of Q, with and without tied neurons, with that of accuracy.

    Args:
        table: of the experiment *pruning*.

    Returns:
        One row per data set, stage and measure: `over_all` rules and sparsities, and `within` one sparsity, over rules,
        the mean over sparsities.
    """
    measures = {"modularity": "Q", "modularity_untied": "Q without ties"}
    changes, rows = pruning_changes(table, ["accuracy", *measures]), []
    for (dataset, stage), own in changes.groupby(["dataset", "stage"], sort=False):
        for measure, called in measures.items():
            points = own[["accuracy", measure, "sparsity"]].dropna()
            each = [part for _, part in points.groupby("sparsity") if len(part) > 2]
            inside = [correlation(part["accuracy"], part[measure]) for part in each]
            whole = correlation(points["accuracy"], points[measure])
            rows.append((dataset, stage, called, whole, np.mean(inside) if inside else np.nan))
    return pd.DataFrame(rows, columns=["dataset", "stage", "measure", "over_all", "within"])


def q_with_and_without_tied(table: pd.DataFrame) -> pd.DataFrame:
    """Change of Q at 90 % after retraining by rule and data set, with tied neurons and without them.

    Args:
        table: of the experiment *pruning*.

    Returns:
        One row per data set and rule: how many neurons are `tied` on average, and both changes with their intervals.
    """
    keys, after = ["dataset", "rule"], table[(table["sparsity"] == 0.9) & (table["stage"] == AFTER)]
    found = after.groupby(keys, sort=False)["tied"].mean().to_frame()
    for name, own in (("with them", table), ("without", table.assign(modularity=table["modularity_untied"]))):
        words = pruning_verdicts(own)
        words = words[words["question"] == "modularity"].set_index(keys)
        ends = words[["effect", "low", "high"]].to_numpy(float)
        found[name] = pd.Series([interval_text(*row) for row in ends], index=words.index)
    return found.reset_index().assign(rule=[PRUNINGS[name].title for name in found.index.get_level_values("rule")])
