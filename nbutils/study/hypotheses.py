"""The tests fixed in advance: their rules, what the runs say about each, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from nbutils.entropy import entropy_bits
from nbutils.stats import (
    between_conditions,
    bootstrap_interval,
    correlation,
    holm,
    pairwise_correlation,
    session_permutation,
    sign_flip,
)
from nbutils.study.results import CONDITIONS, Results, as_studies
from nbutils.support.arguments import checked
from nbutils.support.checks import as_frame, shown

__all__ = [
    "RULES",
    "TESTS",
    "Evidence",
    "Rules",
    "between_evidence",
    "collect_evidence",
    "evaluate_test",
    "evidence_table",
    "h1_evidence",
    "headline",
    "is_between",
    "is_prespecified",
    "rows_of",
    "saturation",
    "series_evidence",
    "verdict",
]


@dataclass(frozen=True)
class Rules:
    """Every number that a verdict depends on.

    Attributes:
        excess: H1a asks for Q - Q_null above this.
        alpha: largest adjusted p value that counts.
        seeds: networks per condition that a verdict needs.
        noise_levels: label-noise levels that H2b and H3b need.
        room: bits that pattern entropy must stay below its ceiling for a verdict on H3, see :func:`saturation`.
        level: confidence of all intervals.
        seed: of all resampling.
    """

    excess: float = 0.05
    alpha: float = 0.05
    seeds: int = 10
    noise_levels: int = 8
    room: float = 0.1
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
        saturated: how near the measure is to its ceiling where it cannot tell networks apart, in words; else empty.

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
    saturated: str = ""

    def __post_init__(self) -> None:
        if self.direction not in (1, -1):
            raise ValueError(f"direction must be 1 or -1, received {shown(self.direction)}")

    @property
    def effect(self) -> str:
        """The estimate with its interval, such as "0.25 (0.12 to 0.38)"; a dash where there is none."""
        from nbutils.drawing.display import interval_text  # loads matplotlib, which no test needs

        return interval_text(self.estimate, self.low, self.high)

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
        "not measurable" if the measure is at its ceiling (:func:`saturation`), whatever the tests say; "inconclusive"
        if a test lacks its planned runs; else "supported" if all tests pass, "refuted" if the interval of any lies
        wholly on the wrong side of its threshold, "not supported" otherwise. Where one of the tests was not planned,
        the others can speak against a hypothesis, but not support it: "inconclusive" if they pass.

    Raises:
        ValueError: no evidence.

    Examples:
        >>> test = Evidence("digits", "true", "H1", "H1a", "Q above its null", 0.5, 0.4, 0.6)
        >>> verdict([test]), verdict([Evidence("digits", "true", "H1", "H1a", "the same", -0.15, -0.2, -0.1)])
        ('supported', 'refuted')
    """
    if not len(evidence):
        raise ValueError("evidence must hold at least one test, received none")
    if any(item.saturated for item in evidence):
        return "not measurable"
    outcomes = {item.outcome for item in evidence}
    if "too few runs" in outcomes or outcomes in ({"not planned"}, {"passes", "not planned"}):
        return "inconclusive"
    if outcomes == {"passes"}:
        return "supported"
    return "refuted" if "opposite" in outcomes else "not supported"


@checked
def is_prespecified(evidence: Evidence) -> bool:
    """Whether a test belongs to those fixed in advance that decide a verdict."""
    return evidence.condition in ("true", "all")


def headline(evidence: Sequence[Evidence], dataset: str, hypothesis: str) -> tuple[str, str, Evidence | None]:
    """A hypothesis on a data set in short: its verdict, the tests it misses, and the test whose effect says most.

    Args:
        evidence: all tests of a study, adjusted.
        dataset: name of the data set.
        hypothesis: key of `MAIN_TESTS`.

    Returns:
        The verdict ("inconclusive" without any test); words such as " (misses H1b)", empty if it misses none, or why
        nothing can be measured; and the first main test that has an effect, None if none has.

    Examples:
        >>> test = Evidence("digits", "true", "H1", "H1a null", "Q above its null", 0.5, 0.4, 0.6)
        >>> missed = Evidence("digits", "true", "H1", "H1b", "more communities", 0.5, -0.5, 1.5)
        >>> word, misses, main = headline([test, missed], "digits", "H1")
        >>> word, misses, main.estimate
        ('not supported', ' (misses H1b)', 0.5)
    """
    own = [e for e in evidence if (e.dataset, e.hypothesis) == (dataset, hypothesis) and is_prespecified(e)]
    shown = [e for test in MAIN_TESTS[hypothesis] for e in own if e.test == test and np.isfinite(e.estimate)]
    missed = ", ".join(e.test for e in own if e.outcome in ("fails", "opposite"))
    saturated = next((e.saturated for e in own if e.saturated), "")
    misses = f" ({saturated})" if saturated else f" (misses {missed})" if missed else ""
    return verdict(own) if own else "inconclusive", misses, shown[0] if shown else None


# Attribute of a test -> column of a table.
COLUMNS = {name: name for name in ("dataset", "condition", "hypothesis", "test", "question", "estimate", "low", "high")}
COLUMNS |= {"condition": "labels", "threshold": "threshold", "p_value": "p", "adjusted": "p adjusted"}


@checked
def evidence_table(evidence: Sequence[Evidence]) -> pd.DataFrame:
    """The tests as a table, one row each, with their outcome."""
    rows = pd.DataFrame([{**asdict(e), "outcome": e.outcome} for e in evidence], columns=["outcome", *COLUMNS])
    return rows[[*COLUMNS, "outcome"]].rename(columns=COLUMNS)


TESTS = ("H1a null", "H1a untrained", "H1b", "H2a", "H2b", "H3a", "H3b")  # those that decide
H2_MEASURE, H3_MEASURE = "modularity", "pattern_entropy"
DRAWS = 9999  # resamples for an interval, permutations for a p value


def h1_evidence(table: pd.DataFrame, condition: str, *, draws: int = DRAWS) -> list[Evidence]:
    """H1 on the runs of one condition: is firing more modular than chance, and more than before training?

    Args:
        table: rows of one data set (the `table` of :class:`nbutils.study.results.Results`).
        condition: label condition.
        draws: resamples for each interval.

    Returns:
        H1a against the circular-shift null, H1a against the untrained net, H1b on the number of communities.
    """
    runs = table[table["labels"] == condition]
    first, last = _at(runs, 0), _at(runs, runs["epoch"].max())
    excess = last["modularity"] - last["null_circular"]
    gain = excess - (first["modularity"] - first["null_circular"])
    more = (last["well_defined"] - first["well_defined"]).astype(float)
    p_value = sign_flip(more, _rng()).p_value
    shared = {"dataset": _name(runs), "condition": condition, "hypothesis": "H1", "enough": len(last) >= RULES.seeds}
    return [
        _interval("H1a null", "Q − Q of the circular-shift null", excess, shared, draws, threshold=RULES.excess),
        _interval("H1a untrained", "Q − Q of the circular-shift null, trained − untrained", gain, shared, draws),
        _interval("H1b", "well-defined communities, trained − untrained", more, shared, draws, p_value=p_value),
    ]


def series_evidence(
    table: pd.DataFrame, condition: str, hypothesis: str, *, method: str = "spearman", draws: int = DRAWS
) -> list[Evidence]:
    """H2 or H3 on one condition: does the measure follow its own run's training accuracy more than another run's?

    Args:
        table: rows of one data set.
        condition: label condition.
        hypothesis: "H2" (modularity, sign +) or "H3" (pattern entropy, sign -).
        method: correlation within a run, "spearman" as pre-specified or "pearson".
        draws: resamples for the interval, and permutations.

    Returns:
        One session permutation over the trained epochs (1, 2, ...); empty for fewer than two runs or such epochs.
    """
    measure, direction = _measure_of(hypothesis)
    runs = table[(table["labels"] == condition) & (table["epoch"] > 0)]
    series = [runs.pivot(index="seed", columns="epoch", values=v).to_numpy() for v in (measure, "train_accuracy")]
    if min(series[0].shape) < 2:
        return []
    alternative = "greater" if direction > 0 else "less"
    tested = session_permutation(*series, _rng(), method=method, alternative=alternative, permutations=draws)
    pairs = pairwise_correlation(*series, method)
    own = pairs.diagonal()
    others = (pairs.sum(axis=1) - own) / (len(pairs) - 1)
    beyond = np.round(own - others, 12)  # curves of one shape differ by rounding only, which must decide nothing
    shared = {
        "dataset": _name(runs),
        "condition": condition,
        "hypothesis": hypothesis,
        "enough": len(pairs) >= RULES.seeds,
    }
    question = "within-run ρ with own − with other runs' accuracy"
    extra = {"direction": direction, "p_value": tested.p_value}
    return [_interval(f"{hypothesis}a", question, beyond, shared, draws, **extra)]


def between_evidence(grid: pd.DataFrame, hypothesis: str, *, draws: int = DRAWS) -> list[Evidence]:
    """H2 or H3 between runs: Spearman's rho of the final measure with test accuracy over levels of label noise.

    Args:
        grid: rows of the noise grid (:meth:`nbutils.study.results.Results.noise_grid`).
        hypothesis: "H2" or "H3".
        draws: resamples for the interval, and permutations.

    Returns:
        One test; empty for fewer than three noise levels. Without any row, a test that was not planned.
    """
    measure, direction = _measure_of(hypothesis)
    test, question = f"{hypothesis}b", "ρ across runs with test accuracy, label noise varied"
    if grid.empty:
        nothing = float("nan")
        return [Evidence("", "all", hypothesis, test, question, nothing, nothing, nothing, planned=False)]
    last = grid[grid["epoch"] == grid["epoch"].max()]
    levels = last["noise"].nunique()
    if levels < 3:
        return []
    values = last[measure], last["test_accuracy"], last["noise"]
    alternative = "greater" if direction > 0 else "less"
    tested, (low, high) = between_conditions(*values, _rng(), alternative=alternative, draws=draws)
    return [
        Evidence(
            dataset=_name(last),
            condition="all",
            hypothesis=hypothesis,
            test=test,
            question=question,
            estimate=correlation(*values[:2]),
            low=low,
            high=high,
            direction=direction,
            p_value=tested.p_value,
            enough=levels >= RULES.noise_levels and last["seed"].nunique() >= RULES.seeds // 2,
        )
    ]


@checked
def collect_evidence(results: Sequence[Results]) -> list[Evidence]:
    """All tests of a study, p values adjusted: Holm over the pre-specified ones, Benjamini-Hochberg over the others.

    Pre-specified are the tests on true labels and those across noise levels, for all data sets of the study together.
    Tests on mixed and random labels are exploratory.

    Args:
        results: results of each data set.

    Returns:
        The tests, data set by data set.

    Raises:
        TypeError: `results` is no list of results.
    """
    found: list[Evidence] = []
    for result in map(as_judged, as_studies(results, "results")):
        if result.table.empty:
            continue
        start, table = len(found), result.conditions()
        present = set(table["labels"])
        for condition in (c for c in CONDITIONS if c in present):
            found += h1_evidence(table, condition)
            found += series_evidence(table, condition, "H2") + series_evidence(table, condition, "H3")
        found += between_evidence(result.noise_grid(), "H2") + between_evidence(result.noise_grid(), "H3")
        ceiling = {"H3": saturation(result)}
        named = [replace(e, dataset=result.dataset, saturated=ceiling.get(e.hypothesis, "")) for e in found[start:]]
        found = found[:start] + named
    decisive = [i for i, e in enumerate(found) if is_prespecified(e) and np.isfinite(e.p_value)]
    others = [i for i, e in enumerate(found) if not is_prespecified(e) and np.isfinite(e.p_value)]
    adjusted = dict(zip(decisive, holm([found[i].p_value for i in decisive]), strict=True))
    if others:
        adjusted |= zip(others, false_discovery_control([found[i].p_value for i in others]), strict=True)
    return [replace(e, adjusted=float(adjusted.get(i, np.nan))) for i, e in enumerate(found)]


def saturation(results: Results) -> str:
    """Why H3 cannot be measured on a data set: pattern entropy is at its ceiling.

    Where every probe image has a pattern of its own, the (corrected) pattern entropy takes the highest value that so
    many images can give, whatever the network. H3 is not measurable where the mean over trained networks with true
    labels lies less than `RULES.room` bits below it.

    Args:
        results: of one data set; without a network whose probe images can be counted there is nothing to compare with.

    Returns:
        Words such as "11.68 of 11.69 bits, 99.8% of patterns unique"; empty where there is room.
    """
    rows = rows_of(results, "H3a")
    seen = [address for address in rows["run"] if address in results.specimens] if results.specimens else []
    if not seen:
        return ""
    last = rows[rows["epoch"] == rows["epoch"].max()]
    ceiling = float(entropy_bits(np.ones(len(results.specimens[seen[0]]().probe_labels)), "miller-madow"))
    bits = last[H3_MEASURE].mean()
    if ceiling - bits >= RULES.room:
        return ""
    return f"{bits:.2f} of {ceiling:.2f} bits, {last['unique_patterns'].mean():.1%} of patterns unique"


def as_judged(results: Results, name: str = "results") -> Results:
    """Results that the pre-specified tests can read."""
    if results.table.empty:
        return results
    where, measures = f"the table of {name}", (H2_MEASURE, H3_MEASURE)
    rows, grid, key = results.conditions(), results.noise_grid(), ("labels", "seed", "epoch")
    as_frame(rows, ("dataset",), where, finite=("epoch", "train_accuracy", "well_defined", *measures), key=key)
    last, first = rows["epoch"] == rows.groupby("labels")["epoch"].transform("max"), rows["epoch"] == 0
    as_frame(rows[last | first], (), where, finite=("null_circular",))
    ends = [set(rows.loc[at, ["labels", "seed"]].itertuples(index=False, name=None)) for at in (first, last)]
    if ends[0] != ends[1]:
        raise ValueError(f"{where} must hold every network of a condition untrained (epoch 0) and trained")
    if grid.empty:
        return results
    as_frame(grid, ("dataset",), where, finite=("epoch", "noise"), key=("noise", "seed", "epoch"))
    as_frame(grid[grid["epoch"] == grid["epoch"].max()], (), where, finite=("test_accuracy", *measures))
    return results


def is_between(test: str) -> bool:
    """Whether a test compares networks over levels of label noise.

    Examples:
        >>> [test for test in TESTS if is_between(test)]
        ['H2b', 'H3b']
    """
    return test in ("H2b", "H3b")


def rows_of(results: Results, test: str) -> pd.DataFrame:
    """The rows that a pre-specified test reads, those of the noise grid or those with true labels."""
    if is_between(test):
        return results.noise_grid()
    runs = results.conditions()
    return runs[runs["labels"] == "true"]


def evaluate_test(test: str, rows: pd.DataFrame, **options: Any) -> Evidence | None:
    """One pre-specified test by name.

    Args:
        test: one of `TESTS`.
        rows: see :func:`rows_of`.
        options: of its function in :mod:`nbutils.study.hypotheses`.

    Returns:
        The test; None where it cannot be made.

    Raises:
        ValueError: there is no such test.
    """
    if test not in TESTS:
        raise ValueError(f"test must be one of {', '.join(TESTS)}, received {test!r}")
    if is_between(test):
        found = between_evidence(rows, test[:2], **options)
    elif rows.empty:
        found = []
    elif test.startswith("H1"):
        found = h1_evidence(rows, "true", **options)
    else:
        found = series_evidence(rows, "true", test[:2], **options)
    return next((e for e in found if e.test == test), None)


def _measure_of(hypothesis: str) -> tuple[str, int]:
    found = {"H2": (H2_MEASURE, 1), "H3": (H3_MEASURE, -1)}
    if hypothesis not in found:
        raise ValueError(f"hypothesis must be 'H2' or 'H3', received {hypothesis!r}")
    return found[hypothesis]


def _at(runs: pd.DataFrame, epoch: int) -> pd.DataFrame:
    return runs[runs["epoch"] == epoch].set_index("seed").sort_index()


def _interval(test: str, question: str, values: Any, shared: dict[str, Any], draws: int, **more: Any) -> Evidence:
    values = np.asarray(values, dtype=float)
    low, high = bootstrap_interval(values, _rng(), level=RULES.level, draws=draws)
    estimate = float(values.mean())
    return Evidence(**shared, test=test, question=question, estimate=estimate, low=low, high=high, **more)


def _name(runs: pd.DataFrame) -> str:
    return str(runs["dataset"].iloc[0])


def _rng() -> np.random.Generator:
    return np.random.default_rng(RULES.seed)
