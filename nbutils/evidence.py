"""Evidence for a hypothesis, the numbers that judge it, and the word that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from nbutils.arguments import checked
from nbutils.arrays import shown

__all__ = ["RULES", "Evidence", "Rules", "evidence_table", "headline", "is_registered", "verdict"]


@dataclass(frozen=True)
class Rules:
    """Every number that a verdict depends on.

    Attributes:
        excess: H1a asks for Q - Q_null above this.
        alpha: largest adjusted p value that counts.
        seeds: networks per condition that a verdict needs.
        noise_levels: label-noise levels that H2b and H3b need.
        level: confidence of all intervals.
        seed: of all resampling.
    """

    excess: float = 0.05
    alpha: float = 0.05
    seeds: int = 10
    noise_levels: int = 8
    level: float = 0.95
    seed: int = 0


RULES = Rules()
# Whose effect says most, first.
MAIN_TESTS = {"H1": ("H1a untrained", "H1a null"), "H2": ("H2b", "H2a"), "H3": ("H3b", "H3a")}


@checked
@dataclass(frozen=True)
class Evidence:
    """One test of one hypothesis on one data set.

    Attributes:
        dataset: name of the data set.
        condition: label condition, or "all" for a test across conditions.
        hypothesis: "H1", "H2" or "H3".
        test: which part of the hypothesis, such as "H1a null".
        question: what is compared, in words.
        estimate: effect size.
        low: lower end of its interval.
        high: upper end.
        threshold: the estimate must lie beyond this.
        direction: +1 if beyond means above, -1 if below.
        p_value: of a permutation test; NaN for a test by interval alone.
        enough: whether the planned number of runs was there.
        adjusted: p value after correction for all tests made together; NaN until it is.
        planned: False for a test that this data set's study leaves out.

    Raises:
        ValueError: `direction` is neither 1 nor -1.
    """

    dataset: str
    condition: str
    hypothesis: str
    test: str
    question: str
    estimate: float
    low: float
    high: float
    threshold: float = 0.0
    direction: int = 1
    p_value: float = float("nan")
    enough: bool = True
    adjusted: float = float("nan")
    planned: bool = True

    def __post_init__(self) -> None:
        if self.direction not in (1, -1):
            raise ValueError(f"direction must be 1 or -1, received {shown(self.direction)}")

    @property
    def outcome(self) -> str:
        """ "passes", "opposite" (the interval lies on the wrong side), "fails", "too few runs" or "not planned"."""
        if not self.planned:
            return "not planned"
        if not self.enough:
            return "too few runs"
        near, far = sorted(self.direction * (end - self.threshold) for end in (self.low, self.high))
        by_chance = self.adjusted > RULES.alpha if np.isfinite(self.p_value) else False
        if near > 0 and not by_chance:
            return "passes"
        return "opposite" if far < 0 else "fails"


@checked
def verdict(evidence: Sequence[Evidence]) -> str:
    """One word for a hypothesis, from its tests.

    Args:
        evidence: the tests of one hypothesis on one data set, p values adjusted; at least one.

    Returns:
        "inconclusive" if a test lacks its planned runs; else "supported" if all tests pass, "refuted" if the interval
        of any lies wholly on the wrong side of its threshold, "not supported" otherwise. Where one of the tests was not
        planned, the others can speak against a hypothesis, but not support it: "inconclusive" if they pass.

    Raises:
        ValueError: no evidence.

    Examples:
        >>> test = Evidence("digits", "true", "H1", "H1a", "Q above its null", 0.5, 0.4, 0.6)
        >>> verdict([test]), verdict([Evidence("digits", "true", "H1", "H1a", "the same", -0.15, -0.2, -0.1)])
        ('supported', 'refuted')
    """
    if not len(evidence):
        raise ValueError("evidence must hold at least one test, received none")
    outcomes = {item.outcome for item in evidence}
    if "too few runs" in outcomes or outcomes in ({"not planned"}, {"passes", "not planned"}):
        return "inconclusive"
    if outcomes == {"passes"}:
        return "supported"
    return "refuted" if "opposite" in outcomes else "not supported"


@checked
def is_registered(evidence: Evidence) -> bool:
    """Whether a test belongs to those fixed in advance that decide a verdict."""
    return evidence.condition in ("true", "all")


def headline(evidence: Sequence[Evidence], dataset: str, hypothesis: str) -> tuple[str, str, Evidence | None]:
    """A hypothesis on a data set in short: its verdict, the tests it misses, and the test whose effect says most.

    Args:
        evidence: all tests of a study, adjusted.
        dataset: name of the data set.
        hypothesis: key of `MAIN_TESTS`.

    Returns:
        The verdict ("inconclusive" without any test); words such as " (misses H1b)", empty if it misses none; and the
        first main test that has an effect, None if none has.

    Examples:
        >>> test = Evidence("digits", "true", "H1", "H1a null", "Q above its null", 0.5, 0.4, 0.6)
        >>> missed = Evidence("digits", "true", "H1", "H1b", "more communities", 0.5, -0.5, 1.5)
        >>> word, misses, main = headline([test, missed], "digits", "H1")
        >>> word, misses, main.estimate
        ('not supported', ' (misses H1b)', 0.5)
    """
    own = [e for e in evidence if (e.dataset, e.hypothesis) == (dataset, hypothesis) and is_registered(e)]
    shown = [e for test in MAIN_TESTS[hypothesis] for e in own if e.test == test and np.isfinite(e.estimate)]
    missed = ", ".join(e.test for e in own if e.outcome in ("fails", "opposite"))
    misses = f" (misses {missed})" if missed else ""
    return verdict(own) if own else "inconclusive", misses, shown[0] if shown else None


@checked
def evidence_table(evidence: Sequence[Evidence]) -> pd.DataFrame:
    """The tests as a table, one row each, with their outcome."""
    rows = [
        {
            "dataset": e.dataset,
            "labels": e.condition,
            "hypothesis": e.hypothesis,
            "test": e.test,
            "question": e.question,
            "estimate": e.estimate,
            "low": e.low,
            "high": e.high,
            "threshold": e.threshold,
            "p": e.p_value,
            "p adjusted": e.adjusted,
            "outcome": e.outcome,
        }
        for e in evidence
    ]
    return pd.DataFrame(rows)
