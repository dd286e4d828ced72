"""Learning against memorising: networks matched by accuracy, the turning point, and when each measure notices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter
from scipy import stats

from nbutils.data.catalogue import parse_name
from nbutils.data.datasets import TITLES
from nbutils.drawing.display import figure_style, format_number, interval_text
from nbutils.drawing.palette import DATASETS, GREY, LABELS
from nbutils.pages.figures import thin_lines
from nbutils.runs.models import hidden_widths
from nbutils.series import Turn, left_out_rise, turning_point, when_reached
from nbutils.stats import bootstrap_interval
from nbutils.study.archive import MEMORISED
from nbutils.study.results import Results, as_studies
from nbutils.support.arguments import checked
from nbutils.support.checks import as_frame
from nbutils.sweeps.sweep_figures import panels

__all__ = [
    "ENTROPIES",
    "at_turn",
    "clock_table",
    "clock_words",
    "course_figure",
    "late_rise",
    "learners",
    "long_runs",
    "matched_table",
    "random_networks",
    "short_figure",
    "title_of",
    "turn_of",
    "turning_table",
]

# Column of the results -> what a panel calls it.
ENTROPIES = {
    "binned_entropy": "paper's entropy (bits)",
    "pattern_entropy": "pattern entropy (bits)",
    "class_conditional_entropy": "class-conditional (bits)",
    "firing_entropy": "firing entropy (bits)",
    "modularity": "modularity Q",
}


@checked
def long_runs(studies: Sequence[Results], part: str = "memorising") -> pd.DataFrame:
    """The memorising run of every data set, trained epochs only, as the paper's series has them.

    Args:
        studies: results of data sets.
        part: "memorising", or "hurried" for the runs that failed to memorise at the paper's learning rate.

    Returns:
        Rows of that part with `title` (of the data set), `images` (in the training set), `learning_rate`, `updates` (of
        the weights so far), `chance` (training accuracy of a guess, 1 / classes), and `active_entropy` (the paper's
        entropy divided by the number of neurons that ever fire, at least one, bits).
    """
    return _placed([(r, r.part(part)) for r in as_studies(studies)])


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


def turn_of(run: pd.DataFrame, column: str) -> Turn:
    """Where a measure of one run turns upward, see :func:`nbutils.series.turning_point`.

    Args:
        run: rows of one run, in the order of its epochs.
        column: the measure.

    Examples:
        >>> turn_of(pd.DataFrame({"epoch": [1, 2, 3, 4, 5], "q": [5, 3, 1, 3, 5]}), "q").epoch
        3.0
    """
    return turning_point(run[column].to_numpy(), run["epoch"].to_numpy())


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
        first epoch), see :class:`nbutils.series.Turn`.
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


@checked
def matched_table(studies: Sequence[Results], measures: Mapping[str, str] = ENTROPIES) -> pd.DataFrame:
    """Learning beside memorising at equal training accuracy.

    Every network that learned the true labels of the same images is compared, epoch by epoch, with the memorising run
    when that first reached the same training accuracy (:func:`nbutils.series.when_reached`), then averaged over its
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
        settings = ("batch_size", "learning_rate")
        as_frame(result.runs, ("model",), "the runs of studies", finite=settings, key=("run",))
        if not table["run"].isin(result.runs["run"]).all():
            raise ValueError("the runs of studies must hold every run of the table of results, received fewer")
        if missing := [name for name in ("train", "classes") if name not in result.about]:
            raise ValueError(f"studies must say {missing[0]!r} in what they know about their data, received none")
        fewer = parse_name(table["dataset"].iloc[0]).thousands
        images = 1000 * (fewer[1] - fewer[0]) if fewer else result.about["train"]
        placed = table.join(result.runs.set_index("run")[["model", *settings]], on="run")
        active = placed["model"].map(lambda model: sum(hidden_widths(model))) * (1 - table["dead_share"])
        placed = placed.assign(
            title=title_of(result),
            images=images,
            chance=1 / len(result.about["classes"]),
            updates=table["epoch"] * -(-images // placed["batch_size"]),
            active_entropy=table["binned_entropy"] / active.clip(lower=1),
        )
        found.append(placed[table["epoch"] > 0])
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def title_of(result: Results) -> str:
    """What readers call the data set of a study."""
    return TITLES[parse_name(result.dataset).base]


LATE = (8, 9)  # epochs from which on the paper's entropy rises with random labels
NAMES = {"epoch": "epoch", "train_accuracy": "training accuracy"}


def course_figure(runs: pd.DataFrame, measures: Mapping[str, str], x: str = "epoch", mark: str = "") -> Figure:
    """Measures of the long runs over epochs (on a logarithmic axis) or training accuracy, one colour per data set.

    Args:
        runs: see :func:`nbutils.pages.memorising.long_runs`.
        measures: column -> title of its panel.
        x: "epoch" or "train_accuracy".
        mark: column whose turning point is marked by a dot on all curves; "" marks each curve's own.
    """
    with panels(len(measures), 2.3) as (fig, axes):
        for ax, (column, name) in zip(axes, measures.items(), strict=True):
            for title, run in runs.groupby("title", sort=False):
                colour = DATASETS.get(parse_name(run["dataset"].iloc[0]).base, GREY)
                ax.plot(run[x], run[column], color=colour, lw=1.5, label=title)
                _dot(ax, run, mark or column, x, column, colour)
            ax.set(title=name, xlabel=NAMES[x])
            if x == "epoch":
                _logarithmic(ax)
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig


def short_figure(networks: pd.DataFrame, measure: str, name: str) -> Figure:
    """A measure of every network with random labels, and their mean; dots: turning points; band: the paper's epochs.

    Args:
        networks: see :func:`nbutils.pages.memorising.random_networks`.
        measure: column.
        name: what the axis calls it.
    """
    with figure_style():
        titles = networks["title"].nunique()
        fig, axes = plt.subplots(1, titles, figsize=(3.8 * max(titles, 1.4), 3.0), squeeze=False)
        for ax, (title, table) in zip(axes[0], networks.groupby("title", sort=False), strict=True):
            ax.axvspan(LATE[0] - 0.5, LATE[1] + 0.5, color=GREY, alpha=0.2, lw=0)
            for _, run in table.groupby("run", sort=False):
                _dot(ax, run, measure, "epoch", measure, LABELS["random"])
            thin_lines(ax, table.pivot(index="epoch", columns="run", values=measure), LABELS["random"])
            ax.set(title=title, xlabel="epoch")
        axes[0][0].set_ylabel(name)
        plt.close(fig)
    return fig


def _dot(ax: Axes, run: pd.DataFrame, turning: str, x: str, y: str, colour: str) -> None:
    """A dot where a measure turns upward, if it does."""
    turn = turn_of(run, turning)
    if turn.found:
        ax.plot(at_turn(run, turn, x), at_turn(run, turn, y), "o", color=colour, ms=5.5, mec="white", mew=0.8)


def _logarithmic(ax: Axes) -> None:
    ax.set_xscale("log")
    ax.set_xticks([t for t in (1, 3, 10, 30, 100, 300) if t <= ax.get_xlim()[1]])
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.minorticks_off()


CLOCKS = {"epoch": "epoch", "updates": "updates", "accuracy": "train_accuracy"}
NEAR = 0.05  # training accuracies that differ by no more count as the same
# Column of a clock table -> what readers call it, decimals.
TOLD = {
    "share": ("share of them", 2),
    "epoch": ("epoch", 1),
    "updates": ("updates", 0),
    "accuracy": ("training accuracy there", 2),
    "end": ("training accuracy at the end", 2),
    "rise": ("rise where the others turn (bits)", 1),
}


@checked
def clock_table(long: pd.DataFrame, networks: pd.DataFrame, measure: str = "binned_entropy") -> pd.DataFrame:
    """When a measure turns upward in the long run of each data set, and in its networks of few epochs.

    Args:
        long: see :func:`nbutils.pages.memorising.long_runs`.
        networks: see :func:`nbutils.pages.memorising.random_networks`.
        measure: column.

    Returns:
        One row per data set and kind of run: `data set`, `kind` ("long" or "short"), `runs`, `turn` (how many do), of
        how many of these there are `fewer dead since` then (neurons that fire again raise a sum over neurons), of how
        many runs the entropy `per active neuron` turns; the `share` that turns (exact 95 % interval); of those that
        turn, the means of `epoch`, `updates` and training `accuracy` at the turn; of all, the means of the accuracy at
        the `end` and of the `rise` (see :func:`nbutils.series.left_out_rise`; NaN for a single run). Means have 95 %
        bootstrap intervals over runs, in columns ending in ` low` and ` high`; NaN for a single run.
    """
    for name, table in (("long", long), ("networks", networks)):
        if len(table.columns):  # without any run there are no columns either
            as_trained(table, name, ("updates", "dead_share", "active_entropy", measure), ("title", "run", "epoch"))
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
    found = {"": ["runs that turn", *(told for told, _ in TOLD.values())]}
    for _, row in clocks.iterrows():
        words = [f"{row['turn']} of {row['runs']}"]
        for name, (_, digits) in TOLD.items():
            known = (row[name], row[f"{name} low"], row[f"{name} high"])
            several = np.isfinite(known[1])
            words.append(interval_text(*known, digits) if several else format_number(known[0], digits))
        found[f"{row['data set']}, {row['kind']}"] = words
    return pd.DataFrame(found)


def late_rise(clocks: pd.DataFrame) -> pd.DataFrame:
    """Whether memorising could explain a late rise of the paper's entropy, criterion by criterion.

    Args:
        clocks: see :func:`clock_table`.

    Returns:
        One row per data set: `data set`; per criterion "yes", "no" or, without short runs, "–": the long run memorises
        (training accuracy of at least 0.95), it turns upward, most short runs turn (with the interval of their `rise`
        above 0), at the same accuracy (within 0.05), they memorise on (at least 0.05 more after the turn), and most of
        them turn per active neuron; the `first reading`, without the last of these, which was added afterwards; and the
        `reading`. It is "possible" if all are met. It is "unlikely" if the long run memorises without turning; else
        "open" without a long run that memorises, or without short runs that turn; and else "unlikely".
    """
    rows = []
    for title, own in clocks.groupby("data set", sort=False):
        kinds = own.set_index("kind")
        long, short = kinds.loc["long"], kinds.reindex(["short"]).iloc[0]
        met = {
            "long run memorises": long["end"] >= MEMORISED,
            "it turns": long["turn"] > 0,
            "short runs turn": short["share"] > 0.5 and short["rise low"] > 0,
            "at the same accuracy": abs(long["accuracy"] - short["accuracy"]) <= NEAR,
            "they memorise on": short["end"] - short["accuracy"] >= NEAR,
            "active neurons turn, too": short["per active neuron"] > short["runs"] / 2,
        }
        memorises, turns, others, *rest = met.values()
        if memorises and not turns:
            reading = "unlikely"
        else:
            reading = "open" if not (memorises and others) else "possible" if all(rest) else "unlikely"
        before = "possible" if reading == "unlikely" and turns and all(rest[:-1]) else reading
        known = list(met)[: len(met) if "short" in kinds.index else 2]
        told = {name: ("yes" if met[name] else "no") if name in known else "–" for name in met}
        rows.append({"data set": title, **told, "first reading": before, "reading": reading})
    return pd.DataFrame(rows)


def _clocks(table: pd.DataFrame, measure: str) -> dict[str, float]:
    runs = [run for _, run in table.groupby("run", sort=False)]
    turns = [turn_of(run, measure) for run in runs]
    turned, several = sum(turn.found for turn in turns), len(runs) > 1
    low, high = stats.binomtest(turned, len(runs)).proportion_ci() if several else (np.nan, np.nan)
    ends = [
        (run["dead_share"].iloc[-1], at_turn(run, turn, "dead_share")) for run, turn in zip(runs, turns, strict=True)
    ]
    fewer = sum(end < there for end, there in ends)
    still = sum(turn_of(run, "active_entropy").found for run in runs)
    found = {"fewer dead since": fewer, "per active neuron": still}
    found |= {"runs": len(runs), "turn": turned, "share": turned / len(runs), "share low": low, "share high": high}
    for name, column in CLOCKS.items():
        found |= _mean(name, [at_turn(run, turn, column) for run, turn in zip(runs, turns, strict=True)])
    found |= _mean("end", [run["train_accuracy"].iloc[-1] for run in runs])
    shared = min(len(run) for run in runs)
    return found | _mean("rise", left_out_rise([run[measure].to_numpy()[:shared] for run in runs]))


def _mean(name: str, values: list[float] | np.ndarray) -> dict[str, float]:
    known = np.asarray(values)[np.isfinite(values)]
    low, high = bootstrap_interval(known, np.random.default_rng(0))
    return {name: known.mean() if len(known) else np.nan, f"{name} low": low, f"{name} high": high}
