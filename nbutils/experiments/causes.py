"""Cause: communities and entropy pushed up and down by a penalty, with controls that push something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbutils.evaluation.words import equivalence_test, judge, t_interval
from nbutils.experiments.effects import estimate_of, holm_adjusted, paired_p_value, sound_trials
from nbutils.experiments.trials import Trial, measured, trial_facts
from nbutils.runs.looks import look_at
from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec
from nbutils.second.elsewhere import modularity_elsewhere
from nbutils.support.provenance import digest_of

__all__ = [
    "CAUSE_RULES",
    "COEFFICIENTS",
    "CONTROLS",
    "PUSHED",
    "REGULARISERS",
    "CauseRules",
    "cause_rows",
    "cause_trials",
    "cause_verdicts",
    "chosen_dose",
    "differences_at",
    "dose_table",
]

DATASETS = ("mnist-10k", "fashion-mnist-10k", "cifar10-10k")
COEFFICIENTS = (-3.0, -1.0, -0.3, -0.1, -0.03, 0.03, 0.1, 0.3, 1.0, 3.0)  # beside 0, which all share
SEEDS = 10
BASE: Mapping[str, Any] = {"model": "mlp:256-128", "batch_size": 128, "every_epoch": False}
# Label conditions, each with its epochs: with wrong labels networks are given the time to memorise.
LABELS: Mapping[str, int] = {"true": 10, "mixed:0.4": 20}
# What is pushed -> column of the table that says whether it moved, and the sign with which H2 or H3 predicts that test
# accuracy moves with it.
PUSHED: Mapping[str, tuple[str, int]] = {
    "modularity": ("modularity", 1),
    "learned": ("modularity", 1),
    "entropy": ("block_entropy_top", -1),
}
# Penalties that push something else, by the column that says whether it moved.
CONTROLS: Mapping[str, str] = {
    "selectivity": "class_selectivity",
    "activity": "mean_activity",
    "random": "modularity",
}
# Usual ways to make a network generalise, against which a gain is held.
REGULARISERS: Mapping[str, Mapping[str, Any]] = {
    "dropout 0.3": {"dropout": 0.3},
    "dropout 0.5": {"dropout": 0.5},
    "weight decay 1": {"weight_decay": 1.0},
    "early stopping": {"patience": 3, "validation": 0.1},
}


@dataclass(frozen=True)
class CauseRules:
    """How the verdict is reached; fixed before the networks that it is about were trained.

    For every data set, label condition, penalty of `PUSHED` and direction, up or down:

    1. The dose is the coefficient nearest to 0 in that direction at which the mean of what is pushed has moved from its
       mean at 0 by at least `shift`, in that direction, over the seeds that are sound at both. If there is none, it is
       *not moved*, and nothing is concluded. The dose is chosen by what is pushed alone, never by accuracy.
    2. The effect is the difference in test accuracy between that dose and 0 at the same seed, its mean with a t
       interval.
    3. The word is that of :func:`nbutils.evaluation.words.judge` with `threshold` and `bound`, p values of all tests
       together corrected by Holm. Predicted: accuracy moves with modularity, against entropy.
    4. What is pushed is called *a cause* of accuracy on a data set where both directions are supported, and the effect
       of each exceeds that of every control at its own dose (t interval of the paired difference above 0). It is called
       *a by-product* where both directions show no association. All else is told as the words stand.
    5. A gain under label noise counts as one of modularity or entropy only if it exceeds the best of `REGULARISERS`
       by the same paired test; otherwise it is called regularisation.

    Attributes:
        shift: by how much each column must move: twice the threshold of H1 for modularity, bits for entropy, and for
            controls about as much of their range.
        threshold: difference in accuracy that an effect must exceed.
        bound: differences within -+ bound do not matter.
        level: confidence of the intervals.
        least: sound pairs of networks without which nothing is concluded.
    """

    shift: Mapping[str, float]
    threshold: float = 0.01
    bound: float = 0.01
    level: float = 0.95
    least: int = 8

    @property
    def digest(self) -> str:
        """By which a page names the rules."""
        values = {name: getattr(self, name) for name in ("threshold", "bound", "level", "least")}
        design = {"pushed": PUSHED, "controls": CONTROLS, "usual": REGULARISERS, "labels": LABELS, "base": BASE}
        design |= {"coefficients": COEFFICIENTS, "seeds": SEEDS, "datasets": DATASETS}
        return digest_of({**values, **design, "shift": dict(self.shift)})


CAUSE_RULES = CauseRules(
    {"modularity": 0.1, "block_entropy_top": 0.3, "class_selectivity": 0.1, "mean_activity": 0.1},
)


def cause_trials(datasets: Sequence[str] | None = None, seeds: int = SEEDS, **changes: Any) -> list[Trial]:
    """All networks of the experiment *cause*.

    Args:
        datasets: names of data sets; None takes those of the book.
        seeds: networks of each dose.
        **changes: parameters of a run that replace those of all.

    Returns:
        Seed by seed; the penalties that are pushed before their controls.

    Examples:
        >>> trials = cause_trials(["digits"], seeds=1)
        >>> len(trials), trials[0].condition, trials[0].dose
        (130, 'none', 0.0)
    """
    found = []
    for seed in range(seeds):
        for dataset in DATASETS if datasets is None else datasets:
            for labels, epochs in LABELS.items():
                shared = {**BASE, "dataset": dataset, "labels": labels, "epochs": epochs, "seed": seed, **changes}
                found.append(Trial(RunSpec(**shared), "none", 0.0))
                found += [Trial(RunSpec(**{**shared, **more}), name) for name, more in REGULARISERS.items()]
                found += [
                    Trial(RunSpec(**shared, penalty=f"{name}:{dose:g}"), name, dose)
                    for name in (*PUSHED, *CONTROLS)
                    for dose in COEFFICIENTS
                ]
    return found


def cause_rows(trial: Trial) -> list[dict[str, Any]]:
    """The row of a network: that of `nbutils.experiments.trials.trial_row`, and Q under other choices.

    Args:
        trial: one network.
    """
    run = run_once(trial.run)
    row = trial_facts(run, trial)
    if run.failed:
        return [row]
    look, training = (look_at(run, probe=probe, neurons=trial.size) for probe in ("held-out", "training"))
    return [row | measured(look) | {"epoch": run.last_epoch} | modularity_elsewhere(look, training)]


DIRECTIONS = {"up": 1, "down": -1}
TABLE = ["dataset", "labels", "penalty", "direction", "dose", "moved", "networks", "effect", "low", "high", "p_value"]


def dose_table(table: pd.DataFrame) -> pd.DataFrame:
    """Trials of one data set and label condition with the shared dose 0 as a row of every penalty.

    Args:
        table: see :func:`nbutils.study.cases.compute_cases`; sound networks only.
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
    rows = (doses["condition"] == penalty) & doses["dose"].isin([dose, 0.0])
    return _differences(_by_dose(doses.loc[rows, ["condition", "dose", "seed", column]]), penalty, dose, column)


Cells = Mapping[tuple[str, float], pd.DataFrame]  # (penalty, dose) -> what was measured, by seed


def _by_dose(doses: pd.DataFrame) -> Cells:
    return {key: own.set_index("seed") for key, own in doses.groupby(["condition", "dose"])}


def _differences(cells: Cells, penalty: str, dose: float, column: str) -> pd.Series:
    if not {(penalty, dose), (penalty, 0.0)} <= cells.keys():
        return pd.Series(dtype=float)
    return (cells[penalty, dose][column] - cells[penalty, 0.0][column]).dropna().sort_index()


def chosen_dose(doses: pd.DataFrame, penalty: str, direction: str, rules: CauseRules = CAUSE_RULES) -> float:
    """The coefficient nearest to 0 at which what is pushed has moved far enough; NaN if there is none.

    Args:
        doses: see :func:`dose_table`.
        penalty: key of `PUSHED` or `CONTROLS`.
        direction: "up" or "down".
        rules: how far is far enough, and how many pairs of networks it takes.
    """
    return _chosen(_by_dose(doses[doses["condition"] == penalty]), penalty, direction, rules)


def _chosen(cells: Cells, penalty: str, direction: str, rules: CauseRules) -> float:
    column, sign = (PUSHED[penalty][0] if penalty in PUSHED else CONTROLS[penalty]), DIRECTIONS[direction]
    there = sorted((dose for name, dose in cells if name == penalty and sign * dose > 0), key=abs)
    for dose in there:
        moved = _differences(cells, penalty, dose, column)
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
        cells = _by_dose(dose_table(part))
        for penalty in PUSHED:
            rows += [_row(cells, part, dataset, labels, penalty, direction, rules) for direction in DIRECTIONS]
    found = pd.DataFrame(rows)
    found["adjusted"] = holm_adjusted(found["p_value"])
    found["word"] = [_word(row, rules) for row in found.itertuples()]
    groups = found.groupby(["dataset", "labels", "penalty"], sort=False)
    verdicts = {key: _verdict(own) for key, own in groups}
    found["verdict"] = [verdicts[row.dataset, row.labels, row.penalty] for row in found.itertuples()]
    return found.drop(columns=["inner_low", "inner_high"])


def _row(
    cells: Cells,
    part: pd.DataFrame,
    dataset: str,
    labels: str,
    penalty: str,
    direction: str,
    rules: CauseRules,
) -> dict[str, object]:
    dose = _chosen(cells, penalty, direction, rules)
    row = dict.fromkeys([*TABLE, "inner_low", "inner_high", "beyond", "beyond_low"], float("nan"))
    row |= {"dataset": dataset, "labels": labels, "penalty": penalty, "direction": direction, "best_control": ""}
    row |= {"dose": dose, "networks": 0, "beyond_usual": float("nan"), "beyond_usual_low": float("nan")}
    if np.isnan(dose):
        return row
    effect = _differences(cells, penalty, dose, "accuracy")
    low, high = t_interval(effect.to_numpy(), rules.level)
    _, inner = equivalence_test(effect.to_numpy(), rules.bound, rules.level)
    row |= {
        "moved": _differences(cells, penalty, dose, PUSHED[penalty][0]).mean(),
        "networks": len(effect),
        "effect": effect.mean(),
        "low": low,
        "high": high,
        "inner_low": inner[0],
        "inner_high": inner[1],
        "p_value": paired_p_value(effect.to_numpy()),
    }
    sign = PUSHED[penalty][1] * DIRECTIONS[direction]
    against = {name: _of_control(cells, name, sign, rules) for name in CONTROLS}
    row |= _beyond(effect, {name: values for name, values in against.items() if len(values)}, sign, rules)
    if labels != "true":
        base = part[part["condition"] == "none"].set_index("seed")["accuracy"]
        usual = {name: (part[part["condition"] == name].set_index("seed")["accuracy"] - base) for name in REGULARISERS}
        other = _beyond(effect, {name: values.dropna() for name, values in usual.items()}, 1, rules)
        row |= {"beyond_usual": other["beyond"], "beyond_usual_low": other["beyond_low"]}
    return row


def _of_control(cells: Cells, name: str, sign: int, rules: CauseRules) -> pd.Series:
    """Effects of a control at its own dose, in the direction in which it changes accuracy more by `sign`."""
    found = [_chosen(cells, name, direction, rules) for direction in DIRECTIONS]
    effects = [_differences(cells, name, dose, "accuracy") for dose in found if not np.isnan(dose)]
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
    estimate = estimate_of(row)
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
