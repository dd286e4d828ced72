"""Answers to the questions of the second study: an estimate, whether it can be measured, and one word for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from nbutils.evaluation.added import added_variance
from nbutils.evaluation.reliability import Reliability, half_probe_reliability
from nbutils.evaluation.words import (
    NAN,
    Estimate,
    cluster_correlation,
    inner_level,
    judge,
    residual_correlation,
    t_interval,
    two_way_residuals,
)
from nbutils.second.networks import Tables
from nbutils.second.questions import AMENDED_STATISTICS, PROTOCOL, QUESTIONS, Question, is_confirmatory
from nbutils.stats import correlation, holm, sign_flip

__all__ = [
    "TABLE",
    "Answer",
    "answer_all",
    "answer_one",
    "answer_table",
    "course",
    "joint_answers",
    "read_answers",
    "sound",
    "values_of",
]

TABLE = "answers.csv"  # beside the tables of a data set
NOTHING = Estimate(NAN, NAN, NAN, (NAN, NAN))


@dataclass(frozen=True)
class Answer:
    """What one data set says to one question.

    Attributes:
        dataset: its name.
        question: see :class:`nbutils.second.questions.Question`.
        estimate: effect size with its intervals.
        reliability: of the measure over the networks compared; None where networks are not compared.
        networks: sound ones that it rests on.
        degenerate: how many were left out because they were degenerate or failed.
        enough: whether the planned number of sound networks was there.
        adjusted: p value after Holm's correction over all questions of its kind; NaN until that is known.
        amended: the same by the amendment to the rules, see :attr:`amended_p`.
    """

    dataset: str
    question: Question
    estimate: Estimate
    reliability: Reliability | None
    networks: int
    degenerate: int
    enough: bool
    adjusted: float = NAN
    amended: float = NAN

    @property
    def confirmatory(self) -> bool:
        """Whether the data had led to none of the rules."""
        return is_confirmatory(self.dataset, self.question.design)

    @property
    def word(self) -> str:
        """One of `nbutils.evaluation.words.WORDS`, by the rules as they were fixed."""
        return self._judged(self.adjusted)

    @property
    def amended_word(self) -> str:
        """The same by the amended rules."""
        return self._judged(self.amended)

    @property
    def told(self) -> str:
        """The word, and where the amended rules have another one, that too."""
        word, amended = self.word, self.amended_word
        return word if word == amended else f"{word}, amended: {amended}"

    @property
    def amended_p(self) -> float:
        """p value before correction by the amended rules; of a mean, that of the t test whose interval decides.

        With n networks and an interval of half-width h = t s / sqrt(n), the mean lies value t / h errors from 0.
        """
        p, half = self.estimate.p_value, (self.estimate.high - self.estimate.low) / 2
        if self.question.statistic not in AMENDED_STATISTICS or not p >= 0 or not half > 0:
            return p
        freedom = self.networks - 1
        errors = abs(self.estimate.value) / half * stats.t.ppf((1 + PROTOCOL.level) / 2, freedom)
        return float(2 * stats.t.sf(errors, freedom))

    def _judged(self, adjusted: float) -> str:
        if not self.enough:
            return "undecided"
        asked = self.question
        return judge(
            self.estimate,
            asked.threshold,
            direction=asked.direction,
            bound=asked.bound,
            adjusted=adjusted,
            one_sided=asked.statistic == "added",
            reliability=self.reliability,
        )


def sound(tables: Tables, design: str, labels: str | None = None) -> tuple[pd.DataFrame, int]:
    """Networks of a design that are neither failed nor degenerate.

    Args:
        tables: of one data set.
        design: "runs", "grid", "memorising" or a zoo.
        labels: one label condition, or None for all.

    Returns:
        (their rows, how many were left out).
    """
    rows = tables.networks
    rows = rows[rows["designs"].map(lambda words: design in words.split("+"))]
    rows = rows if labels is None else rows[rows["labels"] == labels]
    good = (rows["status"] == "done") & ~rows["degenerate"].fillna(True).astype(bool)
    return rows[good], int((~good).sum())


def values_of(tables: Tables, networks: pd.DataFrame, measures: Sequence[str], part: str = "whole") -> pd.DataFrame:
    """Measures of trained networks on the held-out probe, or a half of it.

    Args:
        tables: of one data set.
        networks: rows of `tables.networks`.
        measures: columns.
        part: "whole", "first" or "second".

    Returns:
        One row per network, in their order, a column per measure; NaN where something is not defined.
    """
    rows = tables.measures
    rows = rows[(rows["part"] == part) & (rows["epoch"] > 0) & rows["measure"].isin(list(measures))]
    wide = rows.pivot(index="run", columns="measure", values="value")
    return wide.reindex(index=networks["run"], columns=list(measures)).reset_index(drop=True)


def course(tables: Tables, networks: pd.DataFrame, measure: str, part: str = "whole", first: int = 0) -> np.ndarray:
    """A measure over the epochs of runs, on the training probe.

    Args:
        tables: of one data set.
        networks: rows of `tables.networks`.
        measure: of the table of series.
        part: "whole", "first" or "second".
        first: epoch to begin with; 1 leaves the untrained network out.

    Returns:
        Shape (runs, epochs); NaN after the end of those that ended earlier than others.
    """
    rows = tables.series[tables.series["run"].isin(networks["run"])]
    rows = rows[(rows["part"] == part) & (rows["measure"] == measure) & (rows["epoch"] >= first)]
    return rows.pivot(index="run", columns="epoch", values="value").reindex(networks["run"]).to_numpy(float)


def answer_all(
    studies: Mapping[str, Tables],
    questions: Sequence[Question] = QUESTIONS,
    progress: Callable[[int, int], None] | None = None,
    zoo: int = PROTOCOL.zoo,
) -> list[Answer]:
    """Every question put to every data set, with p values adjusted over all confirmatory ones and over all others.

    Args:
        studies: tables by name of the data set.
        questions: all of them, unless told; the fewer, the less p values are adjusted.
        progress: called with (answered, questions).
        zoo: sound networks that a question about the zoo needs.

    Returns:
        Answers, data set by data set; a question is left out where a data set has no such networks.
    """
    asked = [(name, tables, question) for name, tables in studies.items() for question in questions]
    found = []
    for number, (name, tables, question) in enumerate(asked, 1):
        if (answer := answer_one(name, tables, question, zoo)) is not None:
            found.append(answer)
        if progress:
            progress(number, len(asked))
    return _adjusted(found)


def _adjusted(found: Sequence[Answer]) -> list[Answer]:
    both = np.full((len(found), 2), NAN)
    for confirmatory in (True, False):
        own = [k for k, one in enumerate(found) if one.confirmatory == confirmatory and one.estimate.p_value >= 0]
        both[own, 0] = holm([found[k].estimate.p_value for k in own])
        both[own, 1] = holm([found[k].amended_p for k in own])
    pairs = zip(found, both.tolist(), strict=True)
    return [replace(answer, adjusted=fixed, amended=amended) for answer, (fixed, amended) in pairs]


def answer_table(answers: Sequence[Answer]) -> pd.DataFrame:
    """Answers as a table that :func:`joint_answers` reads again.

    Args:
        answers: of one data set or several.

    Returns:
        One row per data set and question: the estimate with both intervals, its p value, how many networks it rests on,
        and what is known of the measure's reliability.
    """
    rows = []
    for one in answers:
        estimate, inner = asdict(one.estimate), one.estimate.inner
        known = {name: value for name, value in estimate.items() if name != "inner"}
        known |= {"inner_low": inner[0], "inner_high": inner[1]}
        counts = {"networks": one.networks, "degenerate": one.degenerate, "enough": one.enough}
        half = asdict(one.reliability) if one.reliability else dict.fromkeys(RELIABILITY)
        rows.append({"dataset": one.dataset, "question": one.question.name, **known, **counts, **half})
    return pd.DataFrame(rows)


def read_answers(folder: Path) -> pd.DataFrame:
    """The table of answers in a folder, to the last digit."""
    return pd.read_csv(folder / TABLE, float_precision="round_trip")


RELIABILITY = tuple(field.name for field in fields(Reliability))


def joint_answers(tables: Sequence[pd.DataFrame], questions: Sequence[Question] = QUESTIONS) -> list[Answer]:
    """Answers of several data sets as one family of tests, from their tables.

    Args:
        tables: see :func:`answer_table`.
        questions: those that the tables may answer.

    Returns:
        The answers, with p values adjusted over all confirmatory ones and over all others.

    Raises:
        ValueError: a table answers something that was not asked.
    """
    asked, found = {question.name: question for question in questions}, []
    for row in (row for table in tables for row in table.to_dict("records")):
        if row["question"] not in asked:
            raise ValueError(f"question must be one of the {len(asked)} that were asked, received {row['question']!r}")
        inner = (row["inner_low"], row["inner_high"])
        estimate = Estimate(row["value"], row["low"], row["high"], inner, row["p_value"])
        half = {name: row[name] for name in RELIABILITY}
        reliability = None if pd.isna(half["whole"]) else Reliability(**half | {"reason": _text(half["reason"])})
        counts = int(row["networks"]), int(row["degenerate"]), bool(row["enough"])
        found.append(Answer(row["dataset"], asked[row["question"]], estimate, reliability, *counts))
    return _adjusted(found)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def answer_one(dataset: str, tables: Tables, question: Question, zoo: int = PROTOCOL.zoo) -> Answer | None:
    """One question put to one data set; None where it has no networks of that design."""
    design = "small" if question.design == "zoo" else question.design
    networks, left_out = sound(tables, design, "true")
    if networks.empty and not left_out:
        return None
    least = zoo if question.design == "zoo" else PROTOCOL.runs
    estimate, reliability, used = STATISTICS[question.statistic](tables, networks, question)
    left_out += len(networks) - used
    return Answer(dataset, question, estimate, reliability, used, left_out, used >= least)


Found = tuple[Estimate, Reliability | None, int]


def _about_mean(values: np.ndarray) -> Found:
    values = values[np.isfinite(values)]
    if len(values) < 2:
        return NOTHING, None, len(values)
    level, test = PROTOCOL.level, sign_flip(values, PROTOCOL.seed, alternative="two-sided")
    ends = t_interval(values, level), t_interval(values, inner_level(level))
    return Estimate(float(values.mean()), *ends[0], ends[1], test.p_value), None, len(values)


def _mean(tables: Tables, networks: pd.DataFrame, question: Question) -> Found:
    return _about_mean(values_of(tables, networks, [question.measure])[question.measure].to_numpy())


def _rise(tables: Tables, networks: pd.DataFrame, question: Question) -> Found:
    after = values_of(tables, networks, [question.measure])[question.measure].to_numpy()
    rows = tables.measures
    rows = rows[(rows["part"] == "whole") & (rows["epoch"] == 0) & (rows["measure"] == question.measure)]
    return _about_mean(after - rows.set_index("run")["value"].reindex(networks["run"]).to_numpy())


def _sign(tables: Tables, networks: pd.DataFrame, question: Question) -> Found:
    """Spearman's rho within every run: the interval goes from the smallest to the largest, so all must agree."""
    first = 0 if "included" in question.name else 1
    pairs = zip(
        *(course(tables, networks, name, first=first) for name in (question.measure, "train_accuracy")), strict=True
    )
    found = np.array([correlation(own, accuracy) for own, accuracy in pairs if np.isfinite(own).all()])
    if len(found) < 2:
        return NOTHING, None, len(found)
    ends, test = (
        (float(found.min()), float(found.max())),
        sign_flip(np.sign(found), PROTOCOL.seed, alternative="two-sided"),
    )
    return Estimate(float(found.mean()), *ends, ends, test.p_value), None, len(found)


def _residual(tables: Tables, networks: pd.DataFrame, question: Question) -> Found:
    whole, first, second = (
        course(tables, networks, question.measure, part, 1) for part in ("whole", "first", "second")
    )
    accuracy = course(tables, networks, "train_accuracy", first=1)
    kept = np.isfinite(np.hstack([whole, first, second])).all(axis=1)
    if kept.sum() < 3 or whole.shape[1] < 3:
        return NOTHING, None, int(kept.sum())
    estimate = residual_correlation(whole[kept], accuracy[kept], PROTOCOL.seed, level=PROTOCOL.level)
    halves = [two_way_residuals(half[kept]).ravel() for half in (first, second)]
    reliability = half_probe_reliability(*halves, least=PROTOCOL.reliability)
    return estimate, reliability, int(kept.sum())


FEWEST = 3  # networks, or families of them, without which nothing can be compared


def _compared(tables: Tables, networks: pd.DataFrame, question: Question) -> tuple[pd.Series, Reliability | None]:
    """A measure over networks where it is defined, also on both halves, and its reliability there."""
    parts = {part: values_of(tables, networks, [question.measure], part) for part in ("whole", "first", "second")}
    values = pd.concat(parts, axis=1).set_index(networks.index).dropna()
    halves = [values[part, question.measure] for part in ("first", "second")]
    if len(values) < FEWEST:
        return values["whole", question.measure], None
    options = {"span": question.span, "least": PROTOCOL.reliability, "share": PROTOCOL.spread}
    return values["whole", question.measure], half_probe_reliability(*halves, **options)


def _rank(tables: Tables, networks: pd.DataFrame, question: Question) -> Found:
    values, reliability = _compared(tables, networks, question)
    own = networks.loc[values.index]
    if own["family"].nunique() < FEWEST:
        return NOTHING, reliability, len(values)
    estimate = cluster_correlation(values, own["accuracy"], own["family"], PROTOCOL.seed, level=PROTOCOL.level)
    return estimate, reliability, len(values)


def _added(tables: Tables, networks: pd.DataFrame, question: Question) -> Found:
    values, reliability = _compared(tables, networks, question)
    base = values_of(tables, networks, PROTOCOL.baselines).set_index(networks.index).loc[values.index]
    base = base.dropna(axis=1, how="all").dropna()  # a transformer has no path norm
    own, ranks = networks.loc[base.index], base.rank()
    if own["family"].nunique() < 2 * PROTOCOL.folds:
        return NOTHING, reliability, len(base)
    found = added_variance(
        own["accuracy"].rank(),
        ranks,
        values.loc[base.index].rank(),
        own["family"],
        PROTOCOL.seed,
        folds=PROTOCOL.folds,
        level=PROTOCOL.level,
    )
    return found.gain, reliability, len(base)


STATISTICS: Mapping[str, Callable[[Tables, pd.DataFrame, Question], Found]] = {
    "mean": _mean,
    "rise": _rise,
    "sign": _sign,
    "residual": _residual,
    "rank": _rank,
    "added": _added,
}
