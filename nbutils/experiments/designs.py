"""All experiments by name. A new one is a function that gives its trials, and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from nbutils.experiments.causes import cause_trials
from nbutils.experiments.conditions import condition_trials
from nbutils.experiments.trials import Trial
from nbutils.support.checks import shown

__all__ = ["EXPERIMENTS", "TABLES", "experiment_trials"]

TABLES = Path("book/results/experiments")  # one table each
EXPERIMENTS: Mapping[str, Callable[..., list[Trial]]] = {
    "conditions": condition_trials,
    "cause": cause_trials,
}


def experiment_trials(name: str, datasets: Sequence[str] | None = None, seeds: int | None = None) -> list[Trial]:
    """The networks of an experiment, those that matter first.

    Args:
        name: key of `EXPERIMENTS`.
        datasets: names of data sets; None takes those of the book.
        seeds: networks of each condition or dose; None takes as many as the book.

    Raises:
        ValueError: no such experiment, or a data set that it does not take.

    Examples:
        >>> len(experiment_trials("conditions", ["kmnist"], seeds=2))
        10
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, received {shown(name)}")
    return EXPERIMENTS[name](datasets, **({} if seeds is None else {"seeds": seeds}))
