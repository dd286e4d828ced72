"""What a sceptic would change about a registered test: each attack is a change to the table that the test reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pandas as pd

from nbutils.study.hypotheses import H2_MEASURE, H3_MEASURE, TESTS, is_between
from nbutils.study.results import Results

__all__ = ["PRIMARY", "Attack", "living_only", "plan_attacks", "with_living"]

PRIMARY = {"H2": H2_MEASURE, "H3": H3_MEASURE}  # column that a hypothesis is about
LAYER = {"H2": "Q of layer {}", "H3": "entropy of layer {}"}
# Other columns that measure the same idea.
OTHERS = {
    "H2": {"modularity_positive": "Q of positive firing", "modularity_paper": "Q of the paper's graph"},
    "H3": {
        "pattern_entropy_positive": "entropy of positive firing",
        "class_conditional_entropy": "entropy given the class",
        "firing_entropy": "entropy of single neurons",
        "binned_entropy": "binned entropy (the paper's)",
    },
}
LIVING = ("modularity", "null_circular", "well_defined")  # measured again on the graph of living neurons
LEARNED = 0.2  # training accuracy below which networks have learned nothing; chance is 0.1 wherever there is a grid
FEWEST = 3  # epochs that a correlation within a run needs

Change = Callable[[pd.DataFrame], pd.DataFrame]


@dataclass(frozen=True)
class Attack:
    """One thing that is changed.

    Attributes:
        kind: what it is about, such as "networks" or "measure".
        name: what is changed, in a few words.
        change: from the rows that the test reads to those that it is given.
        options: what the test's function is given beyond them.
        threshold: what the estimate must exceed; None keeps the registered one.
    """

    kind: str
    name: str
    change: Change = lambda rows: rows
    options: Mapping[str, Any] = field(default_factory=dict)
    threshold: float | None = None


def plan_attacks(test: str, rows: pd.DataFrame, threshold: float = 0.0) -> list[Attack]:
    """The attacks on one test that its table allows, of those that only change the table or an option.

    Args:
        test: one of `TESTS`.
        rows: what the test reads. An attack that needs another column, or at least three trained epochs, is left out
            where there are none; so is another measure that equals the registered one.
        threshold: the registered one; where it is not 0, half and double are tried.

    Returns:
        The attacks, in a fixed order.

    Raises:
        ValueError: there is no such test.

    Examples:
        >>> rows = pd.DataFrame({"seed": [0], "epoch": [0], "modularity": [0.1], "train_accuracy": [0.1]})
        >>> [attack.name for attack in plan_attacks("H2a", rows)]
        ['odd seeds only', 'even seeds only', "Pearson's r"]
    """
    if test not in TESTS:
        raise ValueError(f"test must be one of {', '.join(TESTS)}, received {test!r}")
    if is_between(test):
        return _between_attacks(rows, test[:2])
    halves = [
        Attack("networks", f"{word} seeds only", partial(_seeds, rest)) for word, rest in (("odd", 1), ("even", 0))
    ]
    others = _h1_attacks(test, rows) if test.startswith("H1") else _series_attacks(rows, test[:2])
    limits = [(f"threshold {factor * threshold:g}", factor * threshold) for factor in (0.5, 2.0) if threshold]
    return halves + others + [Attack("threshold", name, threshold=value) for name, value in limits]


def with_living(results: Results) -> Results:
    """The same results, with what was measured on the graph of living neurons in columns that end in `_living`.

    Args:
        results: of one data set; returned as they are where nothing was.
    """
    if "living" not in results.extras:
        return results
    living = results.extras["living"][["run", "epoch", *LIVING]]
    named = living.rename(columns={name: f"{name}_living" for name in LIVING}).astype({"run": object})
    return replace(results, table=results.table.merge(named, on=["run", "epoch"], how="left", validate="one_to_one"))


def living_only(table: pd.DataFrame) -> pd.DataFrame:
    """The measures of living neurons in place of the registered ones; at both ends of training only.

    Args:
        table: rows of results that :func:`with_living` made.
    """
    return table.assign(**{name: table[f"{name}_living"] for name in LIVING})


def _h1_attacks(test: str, rows: pd.DataFrame) -> list[Attack]:
    return [*_h1_registered_graph(test, rows), *_living(rows)]


def _h1_registered_graph(test: str, rows: pd.DataFrame) -> list[Attack]:
    swap = partial(_replacing, rows)
    if test == "H1a null":
        return swap("null", "within-class shuffle as null", "null_circular", "null_within")
    if test == "H1b":
        return [
            Attack("null", "since epoch 1, not epoch 0", _from_first_epoch),
            *swap("measure", "all communities", "well_defined", "communities"),
            *swap("measure", "the paper's graph", "well_defined", "well_defined_paper"),
        ]
    others = [a for column, name in OTHERS["H2"].items() for a in swap("measure", name, "modularity", column)]
    return [
        *swap("null", "within-class shuffle as null", "null_circular", "null_within"),
        Attack("null", "Q without a null", partial(_without_null, lambda table: table)),
        Attack("null", "since epoch 1, no null", _from_first_epoch),
        *(replace(a, name=f"{a.name}, no null", change=partial(_without_null, a.change)) for a in others),
    ]


def _series_attacks(rows: pd.DataFrame, hypothesis: str) -> list[Attack]:
    last, column = int(rows["epoch"].max()), PRIMARY[hypothesis]
    windows = {"without epochs 1 to 3": (4, last), "first half of training": (1, last // 2)}
    windows["second half of training"] = (last // 2 + 1, last)
    found = [
        Attack("epochs", name, partial(_window, first, end))
        for name, (first, end) in windows.items()
        if end - first + 1 >= FEWEST
    ]
    found.append(Attack("statistic", "Pearson's r", options={"method": "pearson"}))
    if last > FEWEST:
        found.append(Attack("statistic", "steps from epoch to epoch", partial(_steps, column)))
    return [*found, *_performance(rows, "train_accuracy", "test_accuracy"), *_other_measures(rows, hypothesis)]


def _between_attacks(rows: pd.DataFrame, hypothesis: str) -> list[Attack]:
    found = [Attack("networks", "without random labels", lambda table: table[table["noise"] < 1])]
    final = rows[rows["epoch"] == rows["epoch"].max()].groupby("noise")["train_accuracy"].mean()
    if len(learned := final.index[final >= LEARNED]) < len(final):
        name = "without levels that hardly learn"
        found.append(Attack("networks", name, lambda table: table[table["noise"].isin(learned)]))
    living = _living(rows) if hypothesis == "H2" else []
    return [
        *found,
        *_performance(rows, "test_accuracy", "train_accuracy"),
        *_other_measures(rows, hypothesis),
        *living,
    ]


def _performance(rows: pd.DataFrame, registered: str, other: str) -> list[Attack]:
    """Another accuracy, and training loss, which falls where performance rises."""
    found = _replacing(rows, "performance", other.replace("_", " ").replace("train ", "training "), registered, other)
    return found + _replacing(rows, "performance", "training loss", registered, "train_loss", -1)


def _other_measures(rows: pd.DataFrame, hypothesis: str) -> list[Attack]:
    column, found = PRIMARY[hypothesis], []
    layers = sorted(name for name in rows if re.fullmatch(rf"{column}_layer\d+", name))
    names = {name: LAYER[hypothesis].format(name.rpartition("layer")[2]) for name in layers} | OTHERS[hypothesis]
    for other, words in names.items():
        found += _replacing(rows, "measure", words, column, other)
    return found


def _replacing(rows: pd.DataFrame, kind: str, name: str, target: str, source: str, sign: int = 1) -> list[Attack]:
    """The attack that puts one column in place of another, if the table has it and it says something else."""
    same = source in rows and target != source and rows[source].equals(rows[target])
    if source not in rows or rows[source].isna().all() or same:
        return []
    return [Attack(kind, name, lambda table: table.assign(**{target: sign * table[source]}))]


def _living(rows: pd.DataFrame) -> list[Attack]:
    if not {f"{name}_living" for name in LIVING} <= set(rows):
        return []
    return [Attack("measure", "living neurons only", living_only)]


def _seeds(rest: int, table: pd.DataFrame) -> pd.DataFrame:
    return table[table["seed"] % 2 == rest]


def _window(first: int, last: int, table: pd.DataFrame) -> pd.DataFrame:
    return table[table["epoch"].between(first, last)]


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
