"""What the second study asks: its questions, thresholds and words, fixed before the networks that answer them.

Why they are as they are stands in `book/hypotheses/rules.md`; a test holds the tables there to what is written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from nbutils.support.provenance import digest_of

__all__ = ["DESIGNS", "PROTOCOL", "QUESTIONS", "Protocol", "Question", "is_confirmatory", "rules_digest"]


@dataclass(frozen=True)
class Protocol:
    """Every number that all questions share.

    Attributes:
        probe: images of a probe, at most; a held-out probe takes at most half of the test images.
        density: share of pairs of neurons that are edges.
        matched: share of the hidden neurons (of the smallest network compared) that every graph is drawn down to.
        draws: how often neurons are drawn for a graph; each draw has a search and one null of each kind of its own.
        degenerate: a network with a larger share of hidden neurons that never fire on its probe is degenerate.
        above_chance: standard errors that accuracy on a network's own training labels must lie above chance.
        reliability: least reliability of a measure over the networks of a comparison, whole probe.
        spread: least range of a measure over these networks, as a share of what it could span.
        level: confidence of intervals; those within which an effect is called negligible have 2 level - 1.
        alpha: largest adjusted p value that counts.
        runs: sound runs that a question about runs needs.
        zoo: sound networks that a question about the zoo needs.
        folds: of cross-validations.
        seed: of all resampling.
        baselines: what a measure is asked to add to, columns of the table of measures.
    """

    probe: int = 2000
    density: float = 0.05
    matched: float = 0.5
    draws: int = 20
    degenerate: float = 0.5
    above_chance: float = 2.0
    reliability: float = 0.8
    spread: float = 0.05
    level: float = 0.95
    alpha: float = 0.05
    runs: int = 8
    zoo: int = 200
    folds: int = 5
    seed: int = 0
    baselines: tuple[str, ...] = (
        "train_loss",
        "examples",
        "confidence",
        "mutual_information",
        "mean_activity",
        "effective_rank",
        "normalised_margin",
        "path_norm",
        "distance",
    )


@dataclass(frozen=True)
class Question:
    """One question that gets one word per data set.

    Attributes:
        name: such as "H2 performance".
        asks: the question in words.
        measure: column of the table of measures.
        design: key of `DESIGNS`.
        statistic: how the estimate is made: "mean" over runs, "rise" from untrained to trained, "sign" of the
            correlation within every run, "residual" correlation, "rank" correlation over networks, or "added" variance.
        threshold: size that an effect must exceed.
        bound: effects within -+ bound do not matter; None where nothing is called negligible.
        direction: predicted sign.
        span: largest minus smallest value of the measure; None where it is not bounded.
    """

    name: str
    asks: str
    measure: str
    design: str
    statistic: str
    threshold: float
    bound: float | None
    direction: int
    span: float | None = None

    @property
    def hypothesis(self) -> str:
        """ "H1", "H2" or "H3"."""
        return self.name[:2]


# Networks that a question is put to.
DESIGNS: Mapping[str, str] = {
    "runs": "ten networks with true labels that differ by their seed",
    "zoo": "networks with true labels and settings that differ in many ways",
    "grid": "networks with eight shares of redrawn labels, five of each",
}
BITS_OF_TEN_BINS = 3.321928094887362
Q, BINNED, BLOCKS = "modularity", "active_entropy", "block_entropy"
SPANS = {Q: 1.0, BINNED: BITS_OF_TEN_BINS, BLOCKS: 6.0}


def _of_three(
    kind: str, asks: str, design: str, statistic: str, threshold: float, bound: float | None
) -> list[Question]:
    """The same question about modularity (H2, predicted to rise with performance) and two entropies (H3, to fall)."""
    found = []
    for hypothesis, measure, called in (
        ("H2", Q, "modularity"),
        ("H3", BINNED, "binned entropy"),
        ("H3", BLOCKS, "block entropy"),
    ):
        sign = 1 if hypothesis == "H2" or statistic == "added" else -1
        name = f"{hypothesis} {kind}" if hypothesis == "H2" else f"{hypothesis} {kind}, {called}"
        found.append(
            Question(name, asks.format(called), measure, design, statistic, threshold, bound, sign, SPANS[measure])
        )
    return found


QUESTIONS: tuple[Question, ...] = (
    Question(
        "H1 beyond chance",
        "Is the graph of a trained network more modular than firing rates alone would make it?",
        "excess",
        "runs",
        "mean",
        0.05,
        0.05,
        1,
        1.0,
    ),
    Question("H1 by training", "Does training make it so?", "excess", "runs", "rise", 0.0, 0.05, 1, 1.0),
    Question(
        "H1 beyond class preference",
        "Do neurons fire together beyond their preference for true and predicted classes?",
        "remainder",
        "runs",
        "mean",
        0.02,
        0.02,
        1,
        1.0,
    ),
    *_of_three(
        "the paper's statistic, untrained included",
        "Within every run, does {} go with training accuracy over the epochs, from the untrained network on?",
        "runs",
        "sign",
        0.0,
        None,
    ),
    *_of_three(
        "the paper's statistic, trained only",
        "Within every run, does {} go with training accuracy over the epochs, the untrained network left out?",
        "runs",
        "sign",
        0.0,
        None,
    ),
    *_of_three(
        "within runs",
        "Where a run departs in {} from the course that all runs share, does it depart in accuracy?",
        "runs",
        "residual",
        0.3,
        0.3,
    ),
    *_of_three(
        "performance",
        "Of two networks trained on true labels with other settings, does {} tell which one is better?",
        "zoo",
        "rank",
        0.2,
        0.2,
    ),
    *_of_three(
        "added",
        "Does {} explain performance beyond what cheaper measures explain?",
        "zoo",
        "added",
        0.02,
        0.02,
    ),
)
# Data never used before these rules were committed, and what is run on them: there, words are confirmatory.
FRESH: Mapping[str, tuple[str, ...]] = {
    "kmnist": ("runs", "zoo", "grid"),
    "plantvillage": ("zoo", "grid"),
    "cifar10": ("zoo",),
}


def is_confirmatory(dataset: str, design: str) -> bool:
    """Whether a word about this data set rests on data that had led to none of the rules.

    Examples:
        >>> is_confirmatory("kmnist", "runs"), is_confirmatory("plantvillage", "runs")
        (True, False)
    """
    return design in FRESH.get(dataset, ())


PROTOCOL = Protocol()
# Amended on 23 November 2026, after the rules: statistics whose p value is that of the t test whose interval decides,
# for signs of ten runs have none below 2/1,024. The frozen rule's word stands first, this one beside it.
AMENDED_STATISTICS = ("mean", "rise")


def rules_digest() -> str:
    """Digest of all of the above: 12 hexadecimal digits that change with any question, threshold or number.

    Examples:
        >>> len(rules_digest())
        12
    """
    told = {"protocol": asdict(PROTOCOL), "questions": [asdict(one) for one in QUESTIONS], "fresh": dict(FRESH)}
    return digest_of(told)[:12]
