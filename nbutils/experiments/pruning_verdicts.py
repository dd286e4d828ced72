"""What pruning does to communities: the rules of :class:`nbutils.experiments.pruning.PruningRules`, applied."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from nbutils.evaluation.words import Estimate, equivalence_test, judge, t_interval
from nbutils.experiments.effects import LEAST, paired_p_value, sound_trials
from nbutils.experiments.pruning import AFTER, BEFORE, PRUNING_RULES, UNPRUNED, PruningRules
from nbutils.stats import holm

__all__ = ["pruning_changes", "pruning_courses", "pruning_verdicts", "question_values"]

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
    found["adjusted"] = np.nan
    tested = found["p_value"].notna()
    if tested.any():
        found.loc[tested, "adjusted"] = holm(found.loc[tested, "p_value"].tolist())
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
    estimate = Estimate(row.effect, row.low, row.high, (row.inner_low, row.inner_high), row.p_value)
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
