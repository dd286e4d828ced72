"""Cause: communities and entropy pushed up and down by a penalty, with controls that push something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbutils.experiments.elsewhere import modularity_elsewhere
from nbutils.experiments.trials import Trial, measured, trial_facts
from nbutils.runs.looks import look_at
from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec
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
    """The row of a network: that of :func:`nbutils.experiments.trials.trial_row`, and Q under other choices.

    Args:
        trial: one network.
    """
    run = run_once(trial.run)
    row = trial_facts(run, trial)
    if run.failed:
        return [row]
    look, training = (look_at(run, probe=probe, neurons=trial.size) for probe in ("held-out", "training"))
    return [row | measured(look) | {"epoch": run.last_epoch} | modularity_elsewhere(look, training)]
