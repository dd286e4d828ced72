"""How communities change, over networks: when they settle, what happens to them, and what that foretells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from nbutils.arguments import checked
from nbutils.arrays import as_frame, as_partitions, as_rng, is_whole, shown
from nbutils.communities import detect_communities
from nbutils.comparisons import measure_name
from nbutils.consensus import agreed_communities
from nbutils.display import format_number, interval_text
from nbutils.events import KINDS, between_searches
from nbutils.figures import conditions_in
from nbutils.graphs import activation_pattern_graph
from nbutils.stats import bootstrap_interval

__all__ = ["event_rates", "phases", "prediction_table", "search_alone", "settling", "survivors"]


MOST_EPOCHS = 10_000  # of a run
MOST_REPEATS = 50  # all ordered pairs are compared


def phases(last: int) -> dict[int, str]:
    """The part of training to which each step belongs: the first step, up to epoch 3, and two halves of the rest.

    Args:
        last: last epoch, at least 1.

    Returns:
        For each epoch from 1 on, the name of the part in which the step *to* that epoch lies. The first step is apart:
        what it changes is the untrained network.

    Raises:
        ValueError: `last` is below 1.

    Examples:
        >>> phases(6)
        {1: 'epochs 0–1', 2: 'epochs 1–3', 3: 'epochs 1–3', 4: 'epochs 3–5', 5: 'epochs 3–5', 6: 'epochs 5–6'}
    """
    if not is_whole(last) or last < 1:
        raise ValueError(f"last must be at least 1, received {shown(last)}")
    groups = [[1], [2, 3], *(half.tolist() for half in np.array_split(np.arange(4, last + 1), 2))]
    inside = [[epoch for epoch in group if epoch <= last] for group in groups]
    return {epoch: f"epochs {group[0] - 1}–{group[-1]}" for group in inside for epoch in group}


@checked
def event_rates(evolution: pd.DataFrame, rng: np.random.Generator | int, draws: int = 999) -> pd.DataFrame:
    """Events of each kind per step, by part of training and label condition.

    Args:
        evolution: one row per run and epoch from 1 on: `labels`, `run`, `epoch`, and a count of events per kind, as in
            the extra "evolution".
        rng: source of randomness: a generator, or a seed.
        draws: resamples for each interval.

    Returns:
        One row per condition, part of training (:func:`phases`) and kind of event: `labels`, `phase`, `kind`, `mean`
        over networks of a network's mean number per step, `low`, `high` (95 % bootstrap interval over networks),
        `networks`.

    Raises:
        TypeError: `evolution` is no table.
        ValueError: it has no rows or lacks a column.

    Examples:
        >>> steps = pd.DataFrame({"labels": "true", "run": ["a", "a", "b", "b"], "epoch": [2, 3, 2, 3]})
        >>> found = event_rates(steps.assign(**dict.fromkeys(KINDS, [1, 2, 1, 2])), np.random.default_rng(0))
        >>> found[["phase", "kind", "mean"]].head(1).values.tolist()
        [['epochs 1–3', 'continuation', 1.5]]
    """
    rng = as_rng(rng)
    if as_frame(evolution, ("labels", "run"), "evolution", finite=("epoch", *KINDS)).empty:
        raise ValueError("evolution must have at least one row, received none")
    if not evolution["epoch"].isin(range(1, MOST_EPOCHS + 1)).all():
        raise ValueError(f"evolution must hold epochs from 1 to {MOST_EPOCHS:,}, received others")
    named = evolution.assign(phase=evolution["epoch"].map(phases(int(evolution["epoch"].max()))))
    each = named.groupby(["labels", "phase", "run"], sort=False, observed=True)[list(KINDS)].mean()
    rows = []
    for (labels, phase), runs in each.groupby(level=["labels", "phase"], sort=False):
        for kind in KINDS:
            values = runs[kind].to_numpy()
            interval = bootstrap_interval(values, rng, draws=draws)
            rows.append((labels, phase, kind, values.mean(), *interval, len(values)))
    return pd.DataFrame(rows, columns=["labels", "phase", "kind", "mean", "low", "high", "networks"])


@checked
def settling(evolution: pd.DataFrame, table: pd.DataFrame, rng: np.random.Generator | int) -> pd.DataFrame:
    """Whether communities still change in the last step, by more than the search for them wavers.

    Args:
        evolution: rows of the extra "evolution": `labels`, `run`, `epoch`, `agreement` of successive epochs.
        table: rows per run and epoch with `run`, `epoch`, `agreement` of searches of one graph at the last epoch.
        rng: source of randomness: a generator, or a seed.

    Returns:
        One row per condition: `labels`, `networks`, `first_step`, `last_step` (mean agreement of successive epochs),
        `searches` (mean agreement of two searches of the last graph), `difference` (last step minus searches, mean
        over networks), `low`, `high` (its 95 % bootstrap interval), `reading`: "still changing" if the interval lies
        below 0, "as still as the search" if it lies above or has 0 as an end, else "cannot be told".

    Raises:
        TypeError: `evolution` or `table` is no table.
        ValueError: one of them lacks a column.

    Examples:
        >>> runs = {"labels": "true", "run": list("abab"), "epoch": [1, 1, 2, 2]}
        >>> steps = pd.DataFrame(runs | {"agreement": [0.1, 0.2, 0.6, 0.8]})
        >>> found = settling(steps, pd.DataFrame(runs | {"agreement": 0.9}), np.random.default_rng(0))
        >>> found[["last_step", "searches", "reading"]].round(2).values.tolist()
        [[0.7, 0.9, 'still changing']]
    """
    columns, rng = ["run", "epoch", "agreement"], as_rng(rng)
    as_frame(
        evolution, ("labels",), "evolution", numbers=("agreement",), finite=("epoch",), key=("labels", "run", "epoch")
    )
    as_frame(table, (), "table", numbers=("agreement",), finite=("epoch",), key=("run", "epoch"))
    both = evolution.merge(table[columns], on=["run", "epoch"], suffixes=("", "_searches"))
    rows = []
    for labels in conditions_in(evolution):
        steps = evolution[evolution["labels"] == labels]
        own = both[(both["labels"] == labels) & (both["epoch"] == steps["epoch"].max())].dropna()
        if own.empty:
            raise ValueError(f"table must hold agreement at the last epoch of {labels} in evolution, received none")
        difference = (own["agreement"] - own["agreement_searches"]).to_numpy()
        low, high = bootstrap_interval(difference, rng)
        first = steps.loc[steps["epoch"] == steps["epoch"].min(), "agreement"].mean()
        means = first, own["agreement"].mean(), own["agreement_searches"].mean(), difference.mean()
        reading = "still changing" if high < 0 else "as still as the search" if low >= 0 else "cannot be told"
        rows.append((labels, len(own), *means, low, high, reading))
    names = ["labels", "networks", "first_step", "last_step", "searches", "difference", "low", "high", "reading"]
    return pd.DataFrame(rows, columns=names)


def search_alone(fired: Any, density: float = 0.05, seeds: int = 5, repeats: int = 4) -> pd.Series:
    """What the search alone would make of a network that stands still.

    The graph is searched several times over just as :func:`nbutils.evolution.partitions_of` does it, with the consensus
    of `seeds` searches each time, and the partitions are compared as if they were successive epochs.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        density: share of neuron pairs kept as edges, in (0, 1].
        seeds: searches whose consensus is taken, at least 1.
        repeats: partitions to compare with each other, from 2 to 50.

    Returns:
        The numbers of :func:`nbutils.events.compare_partitions`, means over ordered pairs of partitions.

    Raises:
        ValueError: an argument is out of range.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> groups = np.repeat(rng.random((200, 3)) < 0.2, 10, axis=1)  # three groups of ten that fire as one
        >>> float(search_alone(groups, density=0.3)["continuation"])
        3.0
    """
    if is_whole(repeats) and repeats > MOST_REPEATS:
        raise ValueError(f"repeats must be at most {MOST_REPEATS}, received {shown(repeats)}")
    if not is_whole(repeats) or not is_whole(seeds) or repeats < 2 or seeds < 1:
        found = f"{shown(repeats)} and {shown(seeds)}"
        raise ValueError(f"repeats must be at least 2 and seeds at least 1, received {found}")
    found = detect_communities(activation_pattern_graph(fired, density), seeds=seeds * repeats)
    return between_searches([agreed_communities(part) for part in np.split(found.seed_labels, repeats)])


def survivors(tracked: Any, epoch: int) -> tuple[int, int]:
    """How many communities there are at the end, and how many of them were there at an earlier snapshot already.

    Args:
        tracked: identity per snapshot and neuron, shape (snapshots, neurons), from
            :func:`nbutils.evolution.track_communities`.
        epoch: the earlier snapshot, counted from 0.

    Returns:
        (communities at the end, those of them with an identity of that snapshot).

    Raises:
        ValueError: `tracked` is not integers of shape (snapshots, neurons), or there is no such snapshot.

    Examples:
        >>> survivors([[0, 0, 1, 1], [0, 0, 2, 2]], 0)
        (2, 1)
    """
    table = as_partitions(tracked, "tracked")
    if not is_whole(epoch) or not 0 <= epoch < len(table):
        raise ValueError(f"epoch must be from 0 to {len(table) - 1}, received {shown(epoch)}")
    end, then = (set(row[row >= 0].tolist()) for row in (table[-1], table[epoch]))
    return len(end), len(end & then)


def prediction_table(found: pd.DataFrame) -> pd.DataFrame:
    """What :func:`nbutils.foresight.early_prediction` found, one column per early epoch.

    Args:
        found: its rows.

    Returns:
        For each condition a row "accuracy itself", Spearman's rho of the early outcome with the final one, and a row
        per measure, its partial rho with its 95 % interval: `labels`, `runs`, `measure`, and a column "epoch e" each.

    Examples:
        >>> row = {"labels": "true", "runs": 9, "measure": "modularity", "epoch": 1, "rho_outcome": 0.5}
        >>> prediction_table(pd.DataFrame([row | {"partial": -0.25, "low": -0.5, "high": 0.125}])).values.tolist()
        [['true', 9, 'accuracy itself', '0.50'], ['true', 9, 'modularity Q (H2)', '−0.25 (−0.50\xa0to\xa00.12)']]
    """
    rows = []
    for (labels, runs), group in found.groupby(["labels", "runs"], sort=False):
        alone = group.drop_duplicates("epoch").set_index("epoch")["rho_outcome"]
        rows.append((labels, runs, "accuracy itself", {e: format_number(rho, 2) for e, rho in alone.items()}))
        for measure, own in group.groupby("measure", sort=False):
            known = own[own["partial"].notna()]
            texts = {row.epoch: interval_text(row.partial, row.low, row.high) for row in known.itertuples()}
            rows.append((labels, runs, measure_name(measure), texts))
    epochs = sorted(found["epoch"].unique())
    filled = [(*row[:3], *(row[3].get(epoch, "–") for epoch in epochs)) for row in rows]
    return pd.DataFrame(filled, columns=["labels", "runs", "measure", *(f"epoch {epoch}" for epoch in epochs)])
