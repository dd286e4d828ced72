"""Networks that learn random labels by heart: their long runs, where measures turn, and learning beside memorising."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from nbutils.architectures import hidden_widths
from nbutils.arguments import checked
from nbutils.arrays import as_frame
from nbutils.catalogue import parse_name
from nbutils.datasets import TITLES
from nbutils.results import Results, as_studies
from nbutils.stats import bootstrap_interval
from nbutils.turning import Turn, turning_point, when_reached

__all__ = [
    "BESIDE",
    "ENTROPIES",
    "at_turn",
    "learners",
    "long_runs",
    "matched_table",
    "random_networks",
    "title_of",
    "turn_of",
    "turning_table",
    "turns_beside",
    "turns_near",
]

# Column of the results -> what a panel calls it.
ENTROPIES = {
    "binned_entropy": "paper's entropy (bits)",
    "pattern_entropy": "pattern entropy (bits)",
    "class_conditional_entropy": "class-conditional (bits)",
    "firing_entropy": "firing entropy (bits)",
    "modularity": "modularity Q",
}
BESIDE = {
    "parameter_norm": "parameter norm",
    "distance": "distance from start",
    "dead_share": "dead neurons (share)",
    "effective_rank": "effective rank",
    "sharpness": "sharpness (nats)",
    "margin": "margin",
    "mean_activity": "mean activity",
    "unique_patterns": "unique patterns (share)",
}


@checked
def long_runs(studies: Sequence[Results]) -> pd.DataFrame:
    """The memorising run of every data set, trained epochs only, as the paper's series has them.

    Args:
        studies: results of data sets.

    Returns:
        Rows of `part("memorising")` with `title` (of the data set), `images` (in the training set), `updates` (of the
        weights so far), `chance` (training accuracy of a guess, 1 / classes), and `living_entropy` (the paper's entropy
        divided by the number of living neurons, at least one, bits).
    """
    return _placed([(r, r.part("memorising")) for r in as_studies(studies)])


@checked
def random_networks(studies: Sequence[Results]) -> pd.DataFrame:
    """The networks of the condition with random labels, trained epochs only; empty where no data set has them.

    Args:
        studies: results of data sets.

    Returns:
        As :func:`long_runs`.
    """
    tables = [(r, r.conditions()) for r in as_studies(studies) if len(r.table)]
    return _placed([(r, table[table["labels"] == "random"]) for r, table in tables])


def learners(result: Results) -> pd.DataFrame:
    """Networks that learned the true labels of the images that the memorising run saw, trained epochs only.

    Args:
        result: of one data set.

    Returns:
        Rows of `result.table` from its conditions and its grid of label noise; empty without a memorising run.
    """
    table, images = result.table, result.part("memorising")["dataset"].unique()
    ours = table["parts"].str.split().map(lambda parts: bool({"conditions", "noise"} & set(parts))).astype(bool)
    return table[ours & (table["labels"] == "true") & table["dataset"].isin(images) & (table["epoch"] > 0)]


def turn_of(run: pd.DataFrame, column: str, *, downward: bool = False) -> Turn:
    """Where a measure of one run turns upward, or downward, see :func:`nbutils.turning.turning_point`.

    Args:
        run: rows of one run, in the order of its epochs.
        column: the measure.
        downward: look for the top of the highest hill instead; `fall` is then the climb before it, `rise` the descent.

    Examples:
        >>> turn_of(pd.DataFrame({"epoch": [1, 2, 3, 4, 5], "q": [1, 3, 5, 3, 1]}), "q", downward=True).epoch
        3.0
    """
    values = run[column].to_numpy()
    return turning_point(-values if downward else values, run["epoch"].to_numpy())


def at_turn(run: pd.DataFrame, turn: Turn, column: str) -> float:
    """A column of one run at its turning point.

    Args:
        run: rows of one run.
        turn: see :func:`turn_of`.
        column: what is asked for.

    Returns:
        Its value at the epoch of the turn; NaN where there is none.

    Examples:
        >>> run = pd.DataFrame({"epoch": [1, 2, 3], "q": [2, 1, 2], "accuracy": [0.1, 0.2, 0.3]})
        >>> at_turn(run, turn_of(run, "q"), "accuracy")
        nan
    """
    return float(run.loc[run["epoch"] == turn.epoch, column].iloc[0]) if turn.found else float("nan")


@checked
def turning_table(runs: pd.DataFrame, measures: Mapping[str, str] = ENTROPIES) -> pd.DataFrame:
    """Where each measure of each long run turns upward.

    Args:
        runs: see :func:`long_runs`.
        measures: column -> name.

    Returns:
        One row per data set and measure: `data set`, `measure`, `lowest at` (epoch, NaN where it does not turn),
        `accuracy there` (training), `rising from` (epoch), `fall, %`, `rise, %` and `end, %` (of the value after the
        first epoch), see :class:`nbutils.turning.Turn`.
    """
    as_trained(runs, "runs", tuple(measures), ("title", "epoch"))
    rows = []
    for title, run in runs.groupby("title", sort=False):
        for column, name in measures.items():
            turn, first = turn_of(run, column), abs(run[column].iloc[0])
            shares = (100 * size / first if first else np.nan for size in (turn.fall, turn.rise, turn.end))
            rows.append((title, name, turn.epoch, at_turn(run, turn, "train_accuracy"), turn.rising_from, *shares))
    columns = ["data set", "measure", "lowest at", "accuracy there", "rising from", "fall, %", "rise, %", "end, %"]
    return pd.DataFrame(rows, columns=columns)


def as_trained(runs: Any, name: str, measures: Sequence[str], key: Sequence[str]) -> pd.DataFrame:
    """Rows of :func:`long_runs` with at least these measures, the epochs of each run in their order."""
    found = as_frame(runs, ("run",), name, finite=("epoch", "train_accuracy", *measures), key=key)
    if found.groupby(list(key[:-1]), sort=False)["epoch"].diff().le(0).any():
        raise ValueError(f"{name} must hold the epochs of each run in their order, received another")
    return found


def turns_beside(runs: pd.DataFrame, measures: Mapping[str, str]) -> pd.DataFrame:
    """Epochs at which measures of the long runs turn, upward or downward.

    Args:
        runs: see :func:`long_runs`.
        measures: column -> name.

    Returns:
        One row per measure: `measure`, and one column of words per data set, such as "lowest 12", "highest 40", or "–".
    """
    found = {"measure": list(measures.values())}
    for title, run in runs.groupby("title", sort=False):
        found[title] = [_extremes(run, column) for column in measures]
    return pd.DataFrame(found)


def turns_near(runs: pd.DataFrame, column: str, measures: Mapping[str, str], within: int = 2) -> dict[str, list[str]]:
    """Measures that turn, upward or downward, when another one turns upward.

    Args:
        runs: see :func:`long_runs`.
        column: the measure whose turning point is looked at.
        measures: column -> name of the others.
        within: how many epochs apart two turning points may be.

    Returns:
        Title of the data set -> names; only data sets on which `column` turns.
    """
    found = {}
    for title, run in runs.groupby("title", sort=False):
        if not (own := turn_of(run, column)).found:
            continue
        both = {name: [turn_of(run, c, downward=d).epoch for d in (False, True)] for c, name in measures.items()}
        found[title] = [
            name
            for name, epochs in both.items()
            if np.nanmin([np.inf, *np.abs(np.array(epochs) - own.epoch)]) <= within
        ]
    return found


@checked
def matched_table(studies: Sequence[Results], measures: Mapping[str, str] = ENTROPIES) -> pd.DataFrame:
    """Learning beside memorising at equal training accuracy.

    Every network that learned the true labels of the same images is compared, epoch by epoch, with the memorising run
    when that first reached the same training accuracy (:func:`nbutils.turning.when_reached`), then averaged over its
    epochs.

    Args:
        studies: results of data sets.
        measures: column -> name.

    Returns:
        One row per data set and measure: `data set`, `measure`, `networks` (that could be compared), `learning`,
        `memorising` (means), `difference` (learning minus memorising), `low`, `high` (95 % interval over the networks
        that learned; of the other kind there is one run). NaN where no accuracy was reached by both. Data sets without
        a memorising run are left out.
    """
    rows = []
    for result in as_studies(studies):
        if (run := long_runs([result])).empty:
            continue
        own, title = learners(result), title_of(result)
        for table in (run, own):
            as_frame(table, ("run",), "the table of studies", finite=("train_accuracy", *measures))
        for column, name in measures.items():
            reached = when_reached(run["train_accuracy"], run[column], own["train_accuracy"])
            both = own.assign(memorising=reached)[np.isfinite(reached)]
            means = both.groupby("run")[[column, "memorising"]].mean()
            gaps = (means[column] - means["memorising"]).to_numpy()
            middle = [values.mean() for values in (means[column], means["memorising"], pd.Series(gaps))]
            rows.append((title, name, len(gaps), *middle, *bootstrap_interval(gaps, np.random.default_rng(0))))
    columns = ["data set", "measure", "networks", "learning", "memorising", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _placed(parts: Sequence[tuple[Results, pd.DataFrame]]) -> pd.DataFrame:
    """Tables of several data sets as one, each row with what it needs to be compared."""
    found = []
    for result, table in parts:
        if table.empty:
            continue
        numbers = ("epoch", "dead_share", "binned_entropy")
        as_frame(table, ("run", "dataset"), "the table of studies", finite=numbers)
        as_frame(result.runs, ("model",), "the runs of studies", finite=("batch_size",), key=("run",))
        if missing := [name for name in ("train", "classes") if name not in result.about]:
            raise ValueError(f"studies must say {missing[0]!r} in what they know about their data, received none")
        fewer = parse_name(table["dataset"].iloc[0]).thousands
        images = 1000 * fewer if fewer else result.about["train"]
        runs = result.runs.set_index("run")
        batches = -(-images // table["run"].map(runs["batch_size"]))
        neurons = table["run"].map(runs["model"].map(lambda model: sum(hidden_widths(model))))
        living = (neurons * (1 - table["dead_share"])).clip(lower=1)
        placed = table.assign(title=title_of(result), images=images, chance=1 / len(result.about["classes"]))
        placed = placed.assign(updates=table["epoch"] * batches, living_entropy=table["binned_entropy"] / living)
        found.append(placed[table["epoch"] > 0])
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def title_of(result: Results) -> str:
    """What readers call the data set of a study."""
    return TITLES[parse_name(result.dataset).base]


def _extremes(run: pd.DataFrame, column: str) -> str:
    turns = {"lowest": turn_of(run, column), "highest": turn_of(run, column, downward=True)}
    return ", ".join(f"{word} {turn.epoch:.0f}" for word, turn in turns.items() if turn.found) or "–"
