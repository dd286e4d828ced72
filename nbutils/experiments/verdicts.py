"""What the causal test says: the rules of :class:`nbutils.experiments.causes.CauseRules`, applied to its table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from nbutils.evaluation.words import Estimate, equivalence_test, judge, t_interval
from nbutils.experiments.causes import CAUSE_RULES, CONTROLS, PUSHED, REGULARISERS, CauseRules
from nbutils.experiments.effects import paired_p_value, sound_trials
from nbutils.stats import holm

__all__ = ["cause_verdicts", "chosen_dose", "differences_at", "dose_table"]

DIRECTIONS = {"up": 1, "down": -1}
TABLE = ["dataset", "labels", "penalty", "direction", "dose", "moved", "networks", "effect", "low", "high", "p_value"]


def dose_table(table: pd.DataFrame) -> pd.DataFrame:
    """Trials of one data set and label condition with the shared dose 0 as a row of every penalty.

    Args:
        table: see :func:`nbutils.experiments.trials.compute_trials`; sound networks only.
    """
    none = table[table["condition"] == "none"]
    zeros = [none.assign(condition=name, dose=0.0) for name in (*PUSHED, *CONTROLS)]
    return pd.concat([table[table["condition"].isin([*PUSHED, *CONTROLS])], *zeros], ignore_index=True)


def differences_at(doses: pd.DataFrame, penalty: str, dose: float, column: str) -> pd.Series:
    """Differences of a column between a dose and 0, by seed; those of seeds that both have.

    Args:
        doses: see :func:`dose_table`.
        penalty: key of `PUSHED` or `CONTROLS`.
        dose: a coefficient.
        column: of the table.
    """
    own = doses[doses["condition"] == penalty]
    at, zero = (own[own["dose"] == value].set_index("seed")[column] for value in (dose, 0.0))
    return (at - zero).dropna().sort_index()


def chosen_dose(doses: pd.DataFrame, penalty: str, direction: str, rules: CauseRules = CAUSE_RULES) -> float:
    """The coefficient nearest to 0 at which what is pushed has moved far enough; NaN if there is none.

    Args:
        doses: see :func:`dose_table`.
        penalty: key of `PUSHED` or `CONTROLS`.
        direction: "up" or "down".
        rules: how far is far enough, and how many pairs of networks it takes.
    """
    column, sign = (PUSHED[penalty][0] if penalty in PUSHED else CONTROLS[penalty]), DIRECTIONS[direction]
    there = sorted({dose for dose in doses.loc[doses["condition"] == penalty, "dose"] if sign * dose > 0}, key=abs)
    for dose in there:
        moved = differences_at(doses, penalty, dose, column)
        if len(moved) >= rules.least and sign * moved.mean() >= rules.shift[column]:
            return float(dose)
    return float("nan")


def cause_verdicts(table: pd.DataFrame, rules: CauseRules = CAUSE_RULES) -> pd.DataFrame:
    """Effects on test accuracy of what is pushed, with their words.

    Args:
        table: of the experiment *cause*.
        rules: thresholds, and how p values are corrected.

    Returns:
        One row per data set, label condition, pushed measure and direction: `dose`, by how much the measure `moved`,
        `networks` (pairs), `effect` on accuracy with `low` and `high`, `p_value`, `adjusted`, `word`, `best_control`
        (the one that the effect exceeds least surely), `beyond` (by how much it exceeds it, the interval's lower end in
        `beyond_low`), `verdict` of both directions together, and with redrawn labels `beyond_usual` and
        `beyond_usual_low`, the same for the usual regularisers.
    """
    rows, good = [], sound_trials(table)
    for (dataset, labels), part in good.groupby(["dataset", "labels"], sort=False):
        doses = dose_table(part)
        for penalty in PUSHED:
            rows += [_row(doses, part, dataset, labels, penalty, direction, rules) for direction in DIRECTIONS]
    found = pd.DataFrame(rows)
    tested = found["p_value"].notna()
    found["adjusted"] = np.nan
    if tested.any():
        found.loc[tested, "adjusted"] = holm(found.loc[tested, "p_value"].tolist())
    found["word"] = [_word(row, rules) for row in found.itertuples()]
    groups = found.groupby(["dataset", "labels", "penalty"], sort=False)
    verdicts = {key: _verdict(own) for key, own in groups}
    found["verdict"] = [verdicts[row.dataset, row.labels, row.penalty] for row in found.itertuples()]
    return found.drop(columns=["inner_low", "inner_high"])


def _row(
    doses: pd.DataFrame,
    part: pd.DataFrame,
    dataset: str,
    labels: str,
    penalty: str,
    direction: str,
    rules: CauseRules,
) -> dict[str, object]:
    dose = chosen_dose(doses, penalty, direction, rules)
    row = dict.fromkeys([*TABLE, "inner_low", "inner_high", "beyond", "beyond_low"], float("nan"))
    row |= {"dataset": dataset, "labels": labels, "penalty": penalty, "direction": direction, "best_control": ""}
    row |= {"dose": dose, "networks": 0, "beyond_usual": float("nan"), "beyond_usual_low": float("nan")}
    if np.isnan(dose):
        return row
    effect = differences_at(doses, penalty, dose, "accuracy")
    low, high = t_interval(effect.to_numpy(), rules.level)
    _, inner = equivalence_test(effect.to_numpy(), rules.bound, rules.level)
    row |= {
        "moved": differences_at(doses, penalty, dose, PUSHED[penalty][0]).mean(),
        "networks": len(effect),
        "effect": effect.mean(),
        "low": low,
        "high": high,
        "inner_low": inner[0],
        "inner_high": inner[1],
        "p_value": paired_p_value(effect.to_numpy()),
    }
    sign = PUSHED[penalty][1] * DIRECTIONS[direction]
    against = {name: _of_control(doses, name, sign, rules) for name in CONTROLS}
    row |= _beyond(effect, {name: values for name, values in against.items() if len(values)}, sign, rules)
    if labels != "true":
        base = part[part["condition"] == "none"].set_index("seed")["accuracy"]
        usual = {name: (part[part["condition"] == name].set_index("seed")["accuracy"] - base) for name in REGULARISERS}
        other = _beyond(effect, {name: values.dropna() for name, values in usual.items()}, 1, rules)
        row |= {"beyond_usual": other["beyond"], "beyond_usual_low": other["beyond_low"]}
    return row


def _of_control(doses: pd.DataFrame, name: str, sign: int, rules: CauseRules) -> pd.Series:
    """Effects of a control at its own dose, in the direction in which it changes accuracy more by `sign`."""
    found = [chosen_dose(doses, name, direction, rules) for direction in DIRECTIONS]
    effects = [differences_at(doses, name, dose, "accuracy") for dose in found if not np.isnan(dose)]
    return max(effects, key=lambda values: sign * values.mean(), default=pd.Series(dtype=float))


def _beyond(effect: pd.Series, against: dict[str, pd.Series], sign: int, rules: CauseRules) -> dict[str, object]:
    """How much further an effect goes than the one of some others that it exceeds least surely."""
    known = {name: values for name, values in against.items() if len((effect - values).dropna()) >= rules.least}
    if not known:
        return {"best_control": "", "beyond": float("nan"), "beyond_low": float("nan")}
    gaps = {name: sign * (effect - values).dropna() for name, values in known.items()}
    ends = {name: t_interval(gap.to_numpy(), rules.level)[0] for name, gap in gaps.items()}
    best = min(ends, key=ends.__getitem__)
    return {"best_control": best, "beyond": gaps[best].mean(), "beyond_low": ends[best]}


def _word(row: object, rules: CauseRules) -> str:
    if np.isnan(row.dose):
        return "not moved"
    estimate = Estimate(row.effect, row.low, row.high, (row.inner_low, row.inner_high), row.p_value)
    direction = PUSHED[row.penalty][1] * DIRECTIONS[row.direction]
    return judge(estimate, rules.threshold, direction=direction, bound=rules.bound, adjusted=row.adjusted)


def _verdict(own: pd.DataFrame) -> str:
    """Of both directions: "a cause", "a by-product", or their words."""
    words = own.set_index("direction")["word"]
    if (words == "supported").all() and (own["beyond_low"] > 0).all():
        return "a cause"
    if (words == "no association").all():
        return "a by-product"
    return "; ".join(f"{direction}: {word}" for direction, word in words.items())
