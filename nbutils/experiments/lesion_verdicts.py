"""What lesions say: the rules of :class:`nbutils.experiments.lesions.LesionRules`, applied to their table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from nbutils.evaluation.words import Estimate, equivalence_test, judge, t_interval
from nbutils.experiments.effects import paired_p_value, sound_trials
from nbutils.experiments.lesions import LESION_QUESTIONS, LESION_RULES, LesionQuestion, LesionRules
from nbutils.stats import holm, sign_flip

__all__ = ["lesion_verdicts", "network_means", "set_differences", "specificities"]

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
    table: pd.DataFrame, rules: LesionRules = LESION_RULES, silence: str = "zero", suffix: str = ""
) -> pd.DataFrame:
    """The questions about lesions, answered for every kind of network on every data set.

    Args:
        table: of the experiment.
        rules: level of the intervals, and how many networks it takes.
        silence: "zero"; "mean" for what is shown beside.
        suffix: of the sets of equal size alone, see :func:`set_differences`.

    Returns:
        One row per data set, kind of network (`condition`) and key of `LESION_QUESTIONS`: `networks` and `sets` that
        have a control, `lacking` sets that have none, `effect` with `low` and `high`, `inner_low` and `inner_high` of
        equivalence, `p_value`, `adjusted`, `word`; and `flips`, the p value of sign flips of all sets of all networks,
        in which sets of one network count as independent witnesses, which they are not.
    """
    sound, rows = sound_trials(table), []
    groups = table[GROUP].drop_duplicates().itertuples(index=False)
    for dataset, condition in groups:
        own = sound[(sound["dataset"] == dataset) & (sound["condition"] == condition)]
        for name, question in LESION_QUESTIONS.items():
            base = "community" if question.kind == "cut" else question.kind
            there = ((own["kind"] == base) & (own["silence"] == silence)).sum()
            differences = set_differences(own, question, silence, suffix if question.kind == "cut" else "")
            found = _row(differences, question.threshold, rules)
            known = {"dataset": dataset, "condition": condition, "question": name}
            rows.append({**known, **found, "lacking": there - found["sets"], "threshold": question.threshold})
    found = pd.DataFrame(rows)
    tested = found["p_value"].notna()
    found["adjusted"] = np.nan
    if tested.any():
        found.loc[tested, "adjusted"] = holm(found.loc[tested, "p_value"].tolist())
    found["word"] = [_word(row) for row in found.itertuples()]
    return found


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
    estimate = Estimate(row.effect, row.low, row.high, (row.inner_low, row.inner_high), row.p_value)
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
