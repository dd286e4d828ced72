"""All experiments by name. A new one is a function that gives its trials, and a line here.

One that looks at each network in more than one state has a function that gives the rows of a trial, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbutils.experiments.causes import cause_rows, cause_trials
from nbutils.experiments.conditions import condition_trials
from nbutils.experiments.early import early_rows, early_seconds, early_trials
from nbutils.experiments.left_over import left_rows, left_seconds, left_trials
from nbutils.experiments.lesions import (
    class_group_trials,
    lesion_seconds,
    lesion_trials,
    noisy_trials,
    pushed_trials,
)
from nbutils.experiments.other_partitions import partition_rows, partition_seconds, partition_trials
from nbutils.experiments.planted import planted_cases, planted_rows, planted_seconds
from nbutils.experiments.pruning import pruning_rows, pruning_seconds, pruning_trials
from nbutils.experiments.silenced_sets import class_group_rows, class_loss_rows, lesion_rows
from nbutils.experiments.sparse import (
    density_cases,
    density_rows,
    full_cases,
    full_rows,
    parted_cases,
    sparse_cases,
    sparse_rows,
    sparse_seconds,
)
from nbutils.experiments.trials import trial_rows, trial_seconds
from nbutils.study.cases import Case, Rows
from nbutils.support.checks import shown

__all__ = ["EXPERIMENTS", "TABLES", "Experiment", "experiment_trials"]

TABLES = Path("book/results/experiments")  # one table each


@dataclass(frozen=True)
class Experiment:
    """An entry of `EXPERIMENTS`.

    Attributes:
        trials: its networks, from names of data sets (None takes those of the book) and a number of seeds.
        rows: the rows of a network in the experiment's table; one, if it is measured once.
        seconds: about how long some networks take on one processor.
        together: whether networks that are alike are trained side by side.
    """

    trials: Callable[..., list[Case]]
    rows: Rows = trial_rows
    seconds: Callable[[Sequence[Any]], float] = trial_seconds
    together: bool = False


EXPERIMENTS: Mapping[str, Experiment] = {
    "conditions": Experiment(condition_trials),
    "cause": Experiment(cause_trials, cause_rows),
    "early": Experiment(early_trials, early_rows, early_seconds),
    "lesions": Experiment(lesion_trials, lesion_rows, lesion_seconds),
    "pushed": Experiment(pushed_trials, lesion_rows, lesion_seconds),
    "noisy-lesions": Experiment(noisy_trials, lesion_rows, lesion_seconds),
    "class-groups": Experiment(class_group_trials, class_group_rows, lesion_seconds),
    "class-losses": Experiment(lesion_trials, class_loss_rows, lesion_seconds),
    "partitions": Experiment(partition_trials, partition_rows, partition_seconds),
    "pruning": Experiment(pruning_trials, pruning_rows, pruning_seconds),
    "left-over": Experiment(left_trials, left_rows, left_seconds, together=True),
    "planted": Experiment(planted_cases, planted_rows, planted_seconds),
    "sparse": Experiment(sparse_cases, sparse_rows, sparse_seconds),
    "sparse-places": Experiment(parted_cases, sparse_rows, sparse_seconds),
    "sparse-density": Experiment(density_cases, density_rows, sparse_seconds),
    "sparse-full": Experiment(full_cases, full_rows, sparse_seconds),
}


def experiment_trials(name: str, datasets: Sequence[str] | None = None, seeds: int | None = None) -> list[Case]:
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
    return EXPERIMENTS[name].trials(datasets, **({} if seeds is None else {"seeds": seeds}))
