"""What else might have been chosen: each perturbation is a change to the table that a pre-specified test reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pandas as pd

from nbutils.study.hypotheses import H2_MEASURE, H3_MEASURE, TESTS, is_between
from nbutils.study.results import Results

__all__ = ["PRIMARY", "Perturbation", "active_only", "plan_perturbations", "with_active"]

PRIMARY = {"H2": H2_MEASURE, "H3": H3_MEASURE}  # column that a hypothesis is about
# Other columns that measure the same idea, beside the primary measure of single layers.
OTHERS = {
    "H2": {"modularity_positive": "Q of positive firing", "modularity_paper": "Q of the paper's graph"},
    "H3": {
        "pattern_entropy_positive": "entropy of positive firing",
        "class_conditional_entropy": "entropy given the class",
        "firing_entropy": "entropy of single neurons",
        "binned_entropy": "binned entropy (the paper's)",
    },
}
SHORT = {"H2": "Q", "H3": "entropy"}
ACTIVE = ("modularity", "null_circular", "well_defined")  # measured again on the graph of active neurons
LEARNED = 0.2  # training accuracy below which networks have learned nothing; chance is 0.1 wherever there is a grid
FEWEST = 3  # epochs that a correlation within a run needs

Change = Callable[[pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Perturbation:
    """One thing that is changed.

    Attributes:
        kind: what it is about, such as "networks" or "measure".
        name: what is changed, in a few words.
        change: from the rows that the test reads to those that it is given.
        options: what the test's function is given beyond them.
        threshold: what the estimate must exceed; None keeps the pre-specified one.
    """

    kind: str
    name: str
    change: Change = lambda rows: rows
    options: Mapping[str, Any] = field(default_factory=dict)
    threshold: float | None = None


def plan_perturbations(test: str, rows: pd.DataFrame, threshold: float = 0.0) -> list[Perturbation]:
    """The perturbations of one test that its table allows, of those that only change the table or an option.

    Args:
        test: one of `TESTS`.
        rows: what the test reads. A perturbation that needs another column, or at least three trained epochs, is left
            out where there are none; so is another measure that equals the pre-specified one.
        threshold: the pre-specified one; where it is not 0, half and double are tried.

    Returns:
        The perturbations, in a fixed order.

    Raises:
        ValueError: there is no such test.

    Examples:
        >>> rows = pd.DataFrame({"seed": [0], "epoch": [0], "modularity": [0.1], "train_accuracy": [0.1]})
        >>> [one.name for one in plan_perturbations("H2a", rows)]
        ['odd seeds only', 'even seeds only', "Pearson's r"]
    """
    if test not in TESTS:
        raise ValueError(f"test must be one of {', '.join(TESTS)}, received {test!r}")
    if is_between(test):
        return _between(rows, test[:2])
    halves = [
        Perturbation("networks", f"{word} seeds only", lambda table, rest=rest: table[table["seed"] % 2 == rest])
        for word, rest in (("odd", 1), ("even", 0))
    ]
    others = _h1(test, rows) if test.startswith("H1") else _within(rows, test[:2])
    limits = [factor * threshold for factor in (0.5, 2.0) if threshold]
    return [*halves, *others, *(Perturbation("threshold", f"threshold {one:g}", threshold=one) for one in limits)]


def with_active(results: Results) -> Results:
    """The same results, with what was measured on the graph of active neurons in columns that end in `_active`.

    Args:
        results: of one data set; returned as they are where nothing was.
    """
    if "active" not in results.extras:
        return results
    named = results.extras["active"][["run", "epoch", *ACTIVE]].rename(columns={n: f"{n}_active" for n in ACTIVE})
    table = results.table.merge(named.astype({"run": object}), on=["run", "epoch"], how="left", validate="one_to_one")
    return replace(results, table=table)


def active_only(table: pd.DataFrame) -> pd.DataFrame:
    """The measures of active neurons in place of the pre-specified ones; at both ends of training only.

    Args:
        table: rows of results that :func:`with_active` made.
    """
    return table.assign(**{name: table[f"{name}_active"] for name in ACTIVE})


def _h1(test: str, rows: pd.DataFrame) -> list[Perturbation]:
    swap = partial(_replacing, rows)
    within = swap("null", "within-class shuffle as null", "null_circular", "null_within")
    if test == "H1a null":
        found = within
    elif test == "H1b":
        found = [
            Perturbation("null", "since epoch 1, not epoch 0", _from_first_epoch),
            *swap("measure", "all communities", "well_defined", "communities"),
            *swap("measure", "the paper's graph", "well_defined", "well_defined_paper"),
        ]
    else:
        others = [one for column, name in OTHERS["H2"].items() for one in swap("measure", name, H2_MEASURE, column)]
        found = [
            *within,
            Perturbation("null", "Q without a null", partial(_without_null, lambda table: table)),
            Perturbation("null", "since epoch 1, no null", _from_first_epoch),
            *(replace(a, name=f"{a.name}, no null", change=partial(_without_null, a.change)) for a in others),
        ]
    return [*found, *_active(rows)]


def _within(rows: pd.DataFrame, hypothesis: str) -> list[Perturbation]:
    last = int(rows["epoch"].max())
    windows = {
        "without epochs 1 to 3": (4, last),
        "first half of training": (1, last // 2),
        "second half of training": (last // 2 + 1, last),
    }
    found = [
        Perturbation("epochs", name, lambda table, ends=ends: table[table["epoch"].between(*ends)])
        for name, ends in windows.items()
        if ends[1] - ends[0] + 1 >= FEWEST
    ]
    found.append(Perturbation("statistic", "Pearson's r", options={"method": "pearson"}))
    if last > FEWEST:
        found.append(Perturbation("statistic", "steps from epoch to epoch", partial(_steps, PRIMARY[hypothesis])))
    return [*found, *_performance(rows, "train_accuracy", "test_accuracy"), *_other_measures(rows, hypothesis)]


def _between(rows: pd.DataFrame, hypothesis: str) -> list[Perturbation]:
    found = [Perturbation("networks", "without random labels", lambda table: table[table["noise"] < 1])]
    final = rows[rows["epoch"] == rows["epoch"].max()].groupby("noise")["train_accuracy"].mean()
    if len(learned := final.index[final >= LEARNED]) < len(final):
        name = "without levels that hardly learn"
        found.append(Perturbation("networks", name, lambda table: table[table["noise"].isin(learned)]))
    found += _performance(rows, "test_accuracy", "train_accuracy") + _other_measures(rows, hypothesis)
    return found + (_active(rows) if hypothesis == "H2" else [])


def _performance(rows: pd.DataFrame, usual: str, other: str) -> list[Perturbation]:
    """Another accuracy, and training loss, which falls where performance rises."""
    found = _replacing(rows, "performance", other.replace("_", " ").replace("train ", "training "), usual, other)
    return found + _replacing(rows, "performance", "training loss", usual, "train_loss", -1)


def _other_measures(rows: pd.DataFrame, hypothesis: str) -> list[Perturbation]:
    column, short = PRIMARY[hypothesis], SHORT[hypothesis]
    layers = sorted(name for name in rows if re.fullmatch(rf"{column}_layer\d+", name))
    names = {name: f"{short} of layer {name.rpartition('layer')[2]}" for name in layers} | OTHERS[hypothesis]
    return [one for other, words in names.items() for one in _replacing(rows, "measure", words, column, other)]


def _replacing(rows: pd.DataFrame, kind: str, name: str, target: str, source: str, sign: int = 1) -> list[Perturbation]:
    """One column in place of another, if the table has it and it says something else."""
    if source not in rows or rows[source].isna().all() or (target != source and rows[source].equals(rows[target])):
        return []
    return [Perturbation(kind, name, lambda table: table.assign(**{target: sign * table[source]}))]


def _active(rows: pd.DataFrame) -> list[Perturbation]:
    known = {f"{name}_active" for name in ACTIVE} <= set(rows)
    return [Perturbation("measure", "active neurons only", active_only)] if known else []


def _from_first_epoch(table: pd.DataFrame) -> pd.DataFrame:
    """Epoch 1 in place of the untrained network, without the nulls, which only the ends of training have."""
    trained = table[table["epoch"] > 0]
    return trained.assign(epoch=trained["epoch"] - 1, null_circular=0.0)


def _without_null(change: Change, table: pd.DataFrame) -> pd.DataFrame:
    return change(table).assign(null_circular=0.0)


def _steps(column: str, table: pd.DataFrame) -> pd.DataFrame:
    """Differences between neighbouring trained epochs of the measure and of accuracy."""
    trained, columns = table[table["epoch"] > 0].sort_values(["seed", "epoch"]), [column, "train_accuracy"]
    steps = trained.groupby("seed")[columns].diff()
    return trained.assign(**steps).dropna(subset=columns)
