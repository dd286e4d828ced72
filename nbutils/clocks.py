"""When a measure turns upward, told by epochs, by updates and by training accuracy: one long run beside short ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from nbutils.arguments import checked
from nbutils.conclusions import counted
from nbutils.display import format_number
from nbutils.memorising import as_trained, at_turn, title_of, turn_of
from nbutils.reference import MEMORISED
from nbutils.results import Results
from nbutils.stats import bootstrap_interval
from nbutils.turning import left_out_rise

__all__ = ["answers", "clock_table", "clock_words", "rate_sentence", "revival_table"]

CLOCKS = {"epoch": "epoch", "updates": "updates", "accuracy": "train_accuracy"}
NEAR = 0.05  # training accuracies that differ by no more count as the same


def rate_sentence(studies: Sequence[Results]) -> str:
    """Learning rates and longest durations of the long runs, and what became of runs at the paper's rate.

    Args:
        studies: results of data sets.
    """
    titles, reached = defaultdict(list), []
    for result in studies:
        if not (run := result.part("memorising")).empty:
            settings = result.runs.set_index("run").loc[run["run"].iloc[0]]
            titles[f"{settings['learning_rate']:g} for up to {settings['epochs']:,} epochs"].append(title_of(result))
        if not (run := result.part("hurried")).empty:
            last = run.loc[run["epoch"].idxmax()]
            reached.append(f"{last['train_accuracy']:.2f} after {last['epoch']} epochs on {title_of(result)}")
    text = f"Learning rate of the long runs: {'; '.join(f'{rate} on {counted(n)}' for rate, n in titles.items())}."
    if not reached:
        return text
    return f"{text} At the paper's rate, training accuracy came no further than {'; '.join(reached)}."


@checked
def clock_table(long: pd.DataFrame, networks: pd.DataFrame, measure: str = "binned_entropy") -> pd.DataFrame:
    """When a measure turns upward in the long run of each data set, and in its networks of few epochs.

    Args:
        long: see :func:`nbutils.memorising.long_runs`.
        networks: see :func:`nbutils.memorising.random_networks`.
        measure: column.

    Returns:
        One row per data set and kind of run: `data set`, `kind` ("long" or "short"), `runs`, `turn` (how many do),
        their `share` (exact 95 % interval); of those that turn, the means of `epoch`, `updates` and training `accuracy`
        at the turn; of all, the means of the accuracy at the `end` and of the `rise` (see
        :func:`nbutils.turning.left_out_rise`; NaN for a single run). Means have 95 % bootstrap intervals over runs, in
        columns ending in ` low` and ` high`; NaN for a single run.
    """
    for name, table in (("long", long), ("networks", networks)):
        if len(table.columns):  # without any run there are no columns either
            as_trained(table, name, ("updates", measure), ("title", "run", "epoch"))
    rows = []
    for title in dict.fromkeys(long["title"] if len(long) else ()):
        for kind, table in (("long", long), ("short", networks)):
            own = table[table["title"] == title] if len(table) else table
            if len(own):
                rows.append({"data set": title, "kind": kind, **_clocks(own, measure)})
    return pd.DataFrame(rows)


def clock_words(clocks: pd.DataFrame) -> pd.DataFrame:
    """A clock table for readers: what is told down, runs across, intervals in brackets.

    Args:
        clocks: see :func:`clock_table`.

    Returns:
        A table of words, its first column empty-named.
    """
    lines = {
        "runs that turn": lambda row: f"{row['turn']} of {row['runs']}",
        "share of them": lambda row: _words(row, "share", 2),
        "epoch": lambda row: _words(row, "epoch", 1),
        "updates": lambda row: _words(row, "updates", 0),
        "training accuracy there": lambda row: _words(row, "accuracy", 2),
        "training accuracy at the end": lambda row: _words(row, "end", 2),
        "rise where the others turn (bits)": lambda row: _words(row, "rise", 1),
    }
    found = {"": list(lines)}
    for _, row in clocks.iterrows():
        found[f"{row['data set']}, {row['kind']}"] = [tell(row) for tell in lines.values()]
    return pd.DataFrame(found)


def revival_table(long: pd.DataFrame, networks: pd.DataFrame) -> pd.DataFrame:
    """How many runs turn by the paper's entropy, how many per living neuron, and how often neurons come back to life.

    The paper's entropy is a sum to which a dead neuron adds 0: it rises when dead neurons fire again.

    Args:
        long: see :func:`nbutils.memorising.long_runs`.
        networks: see :func:`nbutils.memorising.random_networks`.

    Returns:
        One row per data set and kind of run: `data set`, `kind`, `runs`, of how many of them `the sum` turns upward,
        how many of these have `fewer dead since` then, and of how many `per living neuron` turns upward.
    """
    rows = []
    for kind, table in (("long", long), ("short", networks)):
        for title, own in table.groupby("title", sort=False) if len(table) else ():
            runs = [run for _, run in own.groupby("run", sort=False)]
            turned = [(run, turn) for run in runs if (turn := turn_of(run, "binned_entropy")).found]
            fewer = sum(run["dead_share"].iloc[-1] < at_turn(run, turn, "dead_share") for run, turn in turned)
            still = sum(turn_of(run, "living_entropy").found for run in runs)
            counts = {"the sum": len(turned), "fewer dead since": fewer, "per living neuron": still}
            rows.append({"data set": title, "kind": kind, "runs": len(runs), **counts})
    return pd.DataFrame(rows)


def answers(clocks: pd.DataFrame) -> dict[str, str]:
    """Whether memorising could explain a late rise, in words, by data set.

    Args:
        clocks: see :func:`clock_table`.

    Returns:
        Title of the data set -> a sentence that begins with "possible", "unlikely" or "open". Possible means: the long
        run turns upward; so do most short ones, with the interval of their `rise` above 0; they turn at training
        accuracies that differ by at most 0.05; and the short ones memorise at least 0.05 more after the turn.
    """
    found = {}
    for title, rows in clocks.groupby("data set", sort=False):
        kinds = {row["kind"]: row for _, row in rows.iterrows()}
        found[title] = _answer(kinds["long"], kinds.get("short"))
    return found


def _clocks(table: pd.DataFrame, measure: str) -> dict[str, float]:
    runs = [run for _, run in table.groupby("run", sort=False)]
    turns = [turn_of(run, measure) for run in runs]
    turned, several = sum(turn.found for turn in turns), len(runs) > 1
    low, high = stats.binomtest(turned, len(runs)).proportion_ci() if several else (np.nan, np.nan)
    found = {"runs": len(runs), "turn": turned, "share": turned / len(runs), "share low": low, "share high": high}
    for name, column in CLOCKS.items():
        found |= _mean(name, [at_turn(run, turn, column) for run, turn in zip(runs, turns, strict=True)])
    found |= _mean("end", [run["train_accuracy"].iloc[-1] for run in runs])
    shared = min(len(run) for run in runs)
    return found | _mean("rise", left_out_rise([run[measure].to_numpy()[:shared] for run in runs]))


def _mean(name: str, values: list[float] | np.ndarray) -> dict[str, float]:
    known = np.asarray(values)[np.isfinite(values)]
    low, high = bootstrap_interval(known, np.random.default_rng(0))
    return {name: known.mean() if len(known) else np.nan, f"{name} low": low, f"{name} high": high}


def _words(row: pd.Series, name: str, digits: int) -> str:
    middle, low, high = (format_number(row[name + end], digits) for end in ("", " low", " high"))
    return f"{middle} ({low}\u00a0to\u00a0{high})" if np.isfinite(row[f"{name} low"]) else middle


def _answer(run: pd.Series, networks: pd.Series | None) -> str:
    reached, here = format_number(run["end"], 2), format_number(run["accuracy"], 2)
    if run["end"] < MEMORISED:
        return f"open; the long run reached a training accuracy of {reached} only"
    if not run["turn"]:
        return f"unlikely; the long run memorised ({reached}), but its entropy did not turn upward clearly"
    if networks is None:
        return f"open; the entropy of the long run turned at {here}, and there are no short runs with random labels"
    there, end = format_number(networks["accuracy"], 2), format_number(networks["end"], 2)
    if networks["share"] <= 0.5 or not networks["rise low"] > 0:
        return f"open; the entropy of the long run turned at {here}, that of the short runs shows no clear turn"
    if abs(run["accuracy"] - networks["accuracy"]) > NEAR:
        return f"unlikely; the entropy of the long run turned at {here}, that of the short runs at {there}"
    if networks["end"] - networks["accuracy"] < NEAR:
        return f"unlikely; after their turn at {there} the short runs memorised hardly more ({end} at the end)"
    return (
        f"possible; the entropy turned at {here} in the long run and at {there} in the short ones, which reached {end}"
    )
