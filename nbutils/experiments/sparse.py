"""Sparse units that stand for something: networks that read motifs, and what their motif channels stand for.

Five conditions of one network: thresholds of each channel or one for all, both with adaptive sparsity; two penalties;
and nothing. All see the same examples, as many, whatever their density.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nbutils.motifs.sparse_settings import CONDITIONS, Schedule, SparseCase, SparseSettings
from nbutils.support.checks import shown

__all__ = [
    "SMALL_STUDY",
    "density_cases",
    "density_rows",
    "full_cases",
    "full_rows",
    "parted_cases",
    "sparse_cases",
    "sparse_rows",
    "sparse_seconds",
]

SEEDS = 5


@dataclass(frozen=True)
class Plan:
    """How networks of the small study are trained on a task; chosen by networks with seeds from 1000 on.

    Attributes:
        samples: that each sees.
        schedule: of density, which ends where five units are active for every four motifs.
        rate: of Adam.
    """

    samples: int
    schedule: Schedule
    rate: float = 3e-3

    @property
    def training(self) -> dict[str, Any]:
        """What all conditions share."""
        return {"samples": self.samples, "schedule": self.schedule, "rate": self.rate}


SMALL_STUDY: Mapping[str, Plan] = {
    "digit_circle_small": Plan(131_072, Schedule(every=2_048, fall=1e-5, start=0.1, stop=1.1e-3), 5e-3),
    "token_lines": Plan(163_840, Schedule(every=2_048, fall=4e-6, start=0.1, stop=1.4e-3), 5e-3),
    "tone_lines": Plan(40_960, Schedule(every=1_024, fall=4e-5, stop=8.6e-3)),
}
PENALTIES = {"L1": 1e-3, "KL": 0.1}  # coefficients of both penalties, one each
CIRCLES, PARTS = "digit_circle_small", 3
FULL = "digit_circle"
# Chosen by networks with seed 1000 too: at a rate of 3e-3, in steps of 64 or 128, they read worse for longer.
FULL_TRAINING: Mapping[str, Any] = {
    "samples": 2_000_000,
    "schedule": Schedule(stop=2.2e-4),
    "rate": 1e-3,
    "validation": 1024,
}
FULL_LOOKS = 10
LOADERS = 2  # processes that draw examples for a device


def sparse_cases(datasets: Sequence[str] | None = None, seeds: int = SEEDS) -> list[SparseCase]:
    """All networks of the small study.

    Args:
        datasets: names of its tasks; None takes all.
        seeds: networks of each condition on each task.

    Raises:
        ValueError: another task.

    Examples:
        >>> cases = sparse_cases(seeds=5)
        >>> len(cases), cases[0].training.task, cases[0].training.condition, cases[-1].training.task
        (75, 'digit_circle_small', 'MT', 'tone_lines')
    """
    found = []
    for task in SMALL_STUDY if datasets is None else datasets:
        if task not in SMALL_STUDY:
            raise ValueError(f"datasets must be among {', '.join(SMALL_STUDY)}, received {shown(task)}")
        plan = SMALL_STUDY[task]
        for seed in range(seeds):
            for condition in CONDITIONS:
                own = {"condition": condition, "seed": seed, "penalty": PENALTIES.get(condition, 0.0)}
                found.append(SparseCase(SparseSettings(task, **own, **plan.training)))
    return found


def parted_cases(datasets: Sequence[str] | None = None, seeds: int = SEEDS) -> list[SparseCase]:
    """The circles of the small study, read by a head for which a channel can be in nine places at once.

    Args:
        datasets: None, or the name of the task.
        seeds: networks of each condition.

    Raises:
        ValueError: another task.

    Examples:
        >>> len(parted_cases()), parted_cases()[0].training.parts
        (25, 3)
    """
    for task in datasets or ():
        if task != CIRCLES:
            raise ValueError(f"datasets must be {CIRCLES!r}, received {shown(task)}")
    return [replace(one, training=replace(one.training, parts=PARTS)) for one in sparse_cases([CIRCLES], seeds)]


def density_cases(datasets: Sequence[str] | None = None, seeds: int = SEEDS) -> list[SparseCase]:
    """The networks of the small study that nothing keeps sparse; their density is imposed afterwards.

    Args:
        datasets: names of its tasks; None takes all.
        seeds: networks of each task.

    Raises:
        ValueError: another task.

    Examples:
        >>> len(density_cases()), {one.training.condition for one in density_cases()}
        (15, {'none'})
    """
    return [one for one in sparse_cases(datasets, seeds) if one.training.condition == "none"]


def full_cases(datasets: Sequence[str] | None = None, seeds: int = 3) -> list[SparseCase]:
    """The published task in its published size, by the published schedule, in the conditions of which there are
    published figures: thresholds of each channel, one for all, and a penalty.

    Args:
        datasets: None, or the name of the task.
        seeds: networks of each condition.

    Raises:
        ValueError: another task.

    Examples:
        >>> [case.training.condition for case in full_cases(seeds=1)]
        ['MT', 'ST', 'L1']
    """
    for task in datasets or ():
        if task != FULL:
            raise ValueError(f"datasets must be {FULL!r}, received {shown(task)}")
    own = {"MT": {}, "ST": {}, "L1": {"penalty": PENALTIES["L1"]}}
    return [
        SparseCase(SparseSettings(FULL, condition, seed, **more, **FULL_TRAINING), FULL_LOOKS)
        for seed in range(seeds)
        for condition, more in own.items()
    ]


def sparse_rows(case: SparseCase) -> list[dict[str, Any]]:
    """Train a network and look at it on the way, see `nbutils.motifs.motif_units.rows_of`.

    Args:
        case: one network.
    """
    from nbutils.motifs.motif_units import rows_of  # loads PyTorch, which listing cases never needs

    return rows_of(case)


def density_rows(case: SparseCase) -> list[dict[str, Any]]:
    """Communities and entropies at imposed densities, see `nbutils.motifs.imposed_density`.

    Args:
        case: one network.
    """
    from nbutils.motifs.imposed_density import density_rows

    return density_rows(case)


def full_rows(case: SparseCase) -> list[dict[str, Any]]:
    """The same of a network in its published size, on a CUDA device where there is one.

    Args:
        case: one network.
    """
    from nbutils.motifs.motif_units import rows_of
    from nbutils.support.devices import resolve_device

    device = resolve_device("auto")
    return rows_of(case, device, LOADERS if device == "cuda" else 0)


# Seconds of one processor for a thousand samples, and for a look, as they were on the machine that made the first
# table.
THOUSAND: Mapping[str, float] = {
    "digit_circle_small": 0.5,
    "token_lines": 0.55,
    "tone_lines": 0.9,
    "digit_circle": 5.0,
}
LOOK = 0.6


def sparse_seconds(cases: Sequence[SparseCase]) -> float:
    """About how long networks take on one processor; a guess by their samples.

    Examples:
        >>> 20 < sparse_seconds(sparse_cases(["digit_circle_small"], seeds=1)) / 5 < 90
        True
    """
    return sum(THOUSAND[one.training.task] * one.training.samples / 1000 + LOOK * one.looks for one in cases)
