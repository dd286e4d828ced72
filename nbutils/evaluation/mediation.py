"""How much of a penalty's effect on performance goes through what it pushes: an estimate that rests on assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nbutils.evaluation.words import two_way_residuals
from nbutils.support.checks import as_count, as_rng, as_table, require_level, shown

__all__ = ["Mediation", "mediate"]

LEAST = 4  # networks of each dose, and doses


@dataclass(frozen=True)
class Mediation:
    """Effects of a dose, each as (estimate, low, high).

    Attributes:
        total: mean difference of the outcome between the dose and none.
        indirect: the part of it that goes through the mediator.
        direct: the rest.
        slope: of the outcome on the mediator, dose and seed held fixed.
    """

    total: tuple[float, float, float]
    indirect: tuple[float, float, float]
    direct: tuple[float, float, float]
    slope: tuple[float, float, float]


def mediate(
    mediator: Any, outcome: Any, dose: int, none: int, draws: int = 2000, level: float = 0.95, rng: Any = 0
) -> Mediation:
    """Split the effect of a dose into what goes through a mediator and the rest.

    Networks of one seed get every dose. The slope b is that of the two-way residuals of the outcome on those of the
    mediator (means of doses and of seeds removed), so that it comes from networks that differ by luck, not by their
    penalty. Total effect: mean of outcome(dose) - outcome(none); indirect: b times the same of the mediator; direct:
    the difference. Intervals resample seeds, of which at least two must differ. They are a little narrow: simulated,
    those of 95 % hold the truth in 90 to 94 of 100 cases with ten seeds, in 83 to 89 with six, in 78 to 90 with four.

    It is right only if, dose and seed held fixed, nothing moves mediator and outcome together but the one through the
    other; if the slope is the same at every dose; and if effects are linear.

    Args:
        mediator: what is pushed, such as modularity, shape (seeds, doses), at least 4 of each.
        outcome: performance, same shape.
        dose: column of the dose.
        none: column of the networks without a penalty.
        draws: resamples of seeds, from 100 to 100,000.
        level: confidence of the intervals.
        rng: source of randomness: a generator, or a seed.

    Returns:
        A :class:`Mediation`, in units of the outcome (the slope, of it per unit of the mediator).

    Raises:
        ValueError: shapes disagree, too few seeds or doses, a value that is not finite, or a number out of range.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> q = np.array([0.2, 0.4, 0.6, 0.8]) + rng.normal(0, 0.05, (12, 4))
        >>> found = mediate(q, 0.5 * q, dose=3, none=0)  # all of it goes through q
        >>> round(found.slope[0], 6), round(found.direct[0], 6)
        (0.5, 0.0)

    References:
        Baron and Kenny (1986), doi:10.1037/0022-3514.51.6.1173; what has to be assumed: Imai, Keele and Tingley (2010),
        doi:10.1037/a0020761.
    """
    pushed = as_table(mediator, "mediator", "(seeds, doses)")
    gained = as_table(outcome, "outcome", "(seeds, doses)")
    if pushed.shape != gained.shape or min(pushed.shape) < LEAST:
        raise ValueError(
            f"mediator and outcome must have one shape (seeds, doses) with at least {LEAST} of each, received "
            f"{pushed.shape} and {gained.shape}"
        )
    if dose == none:
        raise ValueError(f"dose and none must be different columns, received {shown(dose)} for both")
    places = [as_count(place, name, 0, pushed.shape[1] - 1) for place, name in ((dose, "dose"), (none, "none"))]
    draws, level, source = as_count(draws, "draws", 100, 100_000), require_level(level), as_rng(rng)
    seeds = len(pushed)
    chosen = source.integers(seeds, size=(draws, seeds))
    several = np.ptp(chosen, axis=1) > 0  # one seed over and over has no residuals, and no slope
    found = [_parts(pushed, gained, *places)]
    found += [_parts(pushed[one], gained[one], *places) for one in chosen[several]]
    ends = np.quantile(found[1:], [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Mediation(*((float(value), *map(float, end)) for value, end in zip(found[0], ends.T, strict=True)))


def _parts(pushed: np.ndarray, gained: np.ndarray, dose: int, none: int) -> tuple[float, float, float, float]:
    x, y = two_way_residuals(pushed), two_way_residuals(gained)
    spread = (x * x).sum()
    slope = (x * y).sum() / spread if spread > 0 else np.nan
    total = (gained[:, dose] - gained[:, none]).mean()
    indirect = slope * (pushed[:, dose] - pushed[:, none]).mean()
    return total, indirect, total - indirect, slope
