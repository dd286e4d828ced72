"""Sparse units that stand for something: networks that read motifs, and what their motif channels stand for.

Five conditions of one network: thresholds of each channel or one for all, both with adaptive sparsity; two penalties;
and nothing. All see the same examples, as many, whatever their density.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nbutils.motifs.sparse_settings import CONDITIONS, Schedule, SparseCase, SparseSettings
from nbutils.support.checks import shown

__all__ = [
    "SMALL_STUDY",
    "full_cases",
    "sparse_cases",
    "sparse_rows",
    "sparse_seconds",
]

SEEDS = 5
# Of every task: samples, samples between checks, fall of the target for a sample, density at the end (five active units
# for every four motifs), and the coefficients of both penalties; chosen by networks with seeds from 1000 on.
SMALL_STUDY: Mapping[str, tuple[int, int, float, float, dict[str, float]]] = {
    "digit_circle_small": (163_840, 2_048, 1.25e-5, 1.1e-3, {"L1": 1e-3, "KL": 0.1}),
    "token_lines": (65_536, 1_024, 4e-5, 1.4e-3, {"L1": 1e-3, "KL": 0.1}),
    "tone_lines": (40_960, 1_024, 4e-5, 8.6e-3, {"L1": 1e-3, "KL": 0.1}),
}
FULL = "digit_circle"
FULL_SAMPLES, FULL_DENSITY = 4_000_000, 2.2e-4


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
        samples, every, fall, stop, penalties = SMALL_STUDY[task]
        schedule = Schedule(every=every, fall=fall, stop=stop)
        for seed in range(seeds):
            for condition in CONDITIONS:
                own = {"condition": condition, "seed": seed, "penalty": penalties.get(condition, 0.0)}
                found.append(SparseCase(SparseSettings(task, samples=samples, schedule=schedule, **own)))
    return found


def full_cases(datasets: Sequence[str] | None = None, seeds: int = 1) -> list[SparseCase]:
    """The published task in its published size, by the published schedule: thresholds of each channel, then one for
    all.

    Args:
        datasets: None, or the name of the task.
        seeds: networks of each of both.

    Raises:
        ValueError: another task.

    Examples:
        >>> [case.training.condition for case in full_cases()]
        ['MT', 'ST']
    """
    for task in datasets or ():
        if task != FULL:
            raise ValueError(f"datasets must be {FULL!r}, received {shown(task)}")
    schedule = Schedule(stop=FULL_DENSITY)
    return [
        SparseCase(SparseSettings(FULL, condition, seed, FULL_SAMPLES, schedule), looks=20)
        for seed in range(seeds)
        for condition in ("MT", "ST")
    ]


def sparse_rows(case: SparseCase) -> list[dict[str, Any]]:
    """Train a network and look at it on the way, see `nbutils.motifs.motif_units.rows_of`.

    Args:
        case: one network.
    """
    from nbutils.motifs.motif_units import rows_of  # loads PyTorch, which listing cases never needs

    return rows_of(case)


# Seconds of one processor for a thousand samples, and for a look, as they were on the machine that made the first
# table.
THOUSAND: Mapping[str, float] = {
    "digit_circle_small": 0.5,
    "token_lines": 0.65,
    "tone_lines": 0.9,
    "digit_circle": 12.0,
}
LOOK = 0.6


def sparse_seconds(cases: Sequence[SparseCase]) -> float:
    """About how long networks take on one processor; a guess by their samples.

    Examples:
        >>> 20 < sparse_seconds(sparse_cases(["digit_circle_small"], seeds=1)) / 5 < 90
        True
    """
    return sum(THOUSAND[one.training.task] * one.training.samples / 1000 + LOOK * one.looks for one in cases)
