"""How communities change while a network trains, and which classes they are selective for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nbutils.communities import agreed_communities, detect_communities
from nbutils.data.datasheets import CONTROL
from nbutils.drawing.display import figure_style, in_figure
from nbutils.drawing.palette import LABELS
from nbutils.entropy import class_selectivity
from nbutils.graphs import activation_pattern_graph
from nbutils.pages.figures import CONDITION_NAMES, WIDTH, conditions_in
from nbutils.series import partial_from
from nbutils.stats import MOST_DRAWS as MOST_RESAMPLES
from nbutils.stats import bootstrap_interval, resampled_spearman
from nbutils.study.results import Results
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_fired, as_frame, as_labels, as_rng
from nbutils.tracking import KINDS, MOST_DRAWS, between_searches, members

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
    last = as_count(last, "last")
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
        draws: resamples for each interval, from 100 to a million.

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


def agreement_figure(followed: Mapping[str, pd.DataFrame]) -> Figure:
    """Agreement of each epoch with the one before: a panel per data set, a curve with its interval per condition.

    Args:
        followed: the extra "evolution" of each data set, by its name.
    """
    look = {"x": "epoch", "y": "agreement", "hue": "labels", "palette": LABELS, "seed": 0, "legend": False}
    with figure_style():
        fig, axes = plt.subplots(1, len(followed), figsize=(WIDTH, 2.6), sharey=True, squeeze=False)
        for ax, (name, rows) in zip(axes[0], followed.items(), strict=True):
            sns.lineplot(rows, ax=ax, **look)
            ax.set_title(in_figure(name))
        shown = conditions_in(pd.concat(dict(followed)))
        lines = [Line2D([], [], color=LABELS[labels], label=CONDITION_NAMES[labels]) for labels in shown]
        fig.legend(handles=lines, loc="outside lower center", ncols=len(lines))
        plt.close(fig)
    return fig


def search_alone(fired: Any, density: float = 0.05, seeds: int = 5, repeats: int = 4) -> pd.Series:
    """What the search alone would make of a network that stands still.

    The graph is searched several times over just as :func:`nbutils.study.measure_run.partitions_of` does it, with the
    consensus of `seeds` searches each time, and the partitions are compared as if they were successive epochs.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        density: share of neuron pairs kept as edges, in (0, 1].
        seeds: searches whose consensus is taken, at least 1.
        repeats: partitions to compare with each other, from 2 to 50.

    Returns:
        The numbers of :func:`nbutils.tracking.compare_partitions`, means over ordered pairs of partitions.

    Raises:
        ValueError: an argument is out of range.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> groups = np.repeat(rng.random((200, 3)) < 0.2, 10, axis=1)  # three groups of ten that fire as one
        >>> float(search_alone(groups, density=0.3)["continuation"])
        3.0
    """
    repeats, seeds = as_count(repeats, "repeats", 2, MOST_REPEATS), as_count(seeds, "seeds")
    found = detect_communities(activation_pattern_graph(fired, density), seeds=seeds * repeats)
    return between_searches([agreed_communities(part) for part in np.split(found.seed_labels, repeats)])


FLOATS = 2_000_000  # in memory at a time, about
LEAST = 3  # neurons that a community needs to be counted, as for well-defined ones


def classes_selected(results: Results) -> pd.DataFrame:
    """How many classes have a community, before training and at the end, beside how many would by chance.

    Args:
        results: of one data set, with the extra "selectivity".

    Returns:
        Means over networks, one row per label condition and epoch (its index): `communities`, `by chance` (classes, if
        each of m communities drew one of K at random: K (1 - (1 - 1/K)^m)), `classes` and `selectivity`.
    """
    clear, k = community_selectivity(results.extra("selectivity")), len(results.about["classes"])
    clear["by chance"] = k * (1 - (1 - 1 / k) ** clear["communities"])
    ends = clear[clear["epoch"].isin([0, clear["epoch"].max()])]
    return ends.groupby(["labels", "epoch"])[["communities", "by chance", "classes", "selectivity"]].mean()


@checked
def community_selectivity(answers: pd.DataFrame) -> pd.DataFrame:
    """How selective the communities of a network are for classes, and for how many, epoch by epoch.

    Args:
        answers: one row per run, epoch and community: `labels`, `run`, `epoch`, `neurons`, `selective_for`,
            `preference`, as in the extra "selectivity".

    Returns:
        One row per run and epoch that has communities: `labels`, `run`, `epoch`, `selectivity` (mean over communities
        weighted by their neurons, in [0, 1]), `communities` and `classes`: how many communities of at least 3 neurons
        there are, and how many classes have at least one that is selective for them.

    Raises:
        TypeError: `answers` is no table.
        ValueError: it lacks a column; names it.

    Examples:
        >>> rows = pd.DataFrame({"labels": "true", "run": "a", "epoch": 1, "neurons": [6, 4, 2]})
        >>> rows = rows.assign(selective_for=[3, 3, 5], preference=[0.5, 0.25, 1.0])
        >>> community_selectivity(rows)[["selectivity", "communities", "classes"]].values.tolist()
        [[0.5, 2.0, 1.0]]
    """
    numbers = ("neurons", "selective_for", "preference")
    counted = as_frame(answers, ("labels", "run", "epoch"), "answers", numbers=numbers)["neurons"] >= LEAST
    rows = answers.assign(
        weighted=answers["preference"] * answers["neurons"],
        counted=counted,
        answered=answers["selective_for"].where(counted & (answers["selective_for"] >= 0)),
    )
    found = rows.groupby(["labels", "run", "epoch"], sort=False, observed=True, as_index=False).agg(
        weighted=("weighted", "sum"),
        neurons=("neurons", "sum"),
        communities=("counted", "sum"),
        classes=("answered", "nunique"),
    )
    found["selectivity"] = found["weighted"] / found["neurons"]
    return found[["labels", "run", "epoch", "selectivity", "communities", "classes"]]


def shuffled_classes(
    fired: Any, labels: Any, communities: Any, rng: np.random.Generator | int, draws: int = 20
) -> float:
    """How selective communities would seem for classes that mean nothing.

    The classes are permuted among the examples, so that how often each neuron fires, and with which others, stays.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,), integers.
        communities: community per neuron, shape (neurons,), integers; negative ones are left out.
        rng: source of randomness: a generator, or a seed.
        draws: number of permutations, from 1 to 100,000.

    Returns:
        Mean over permutations of the selectivity of :func:`community_selectivity`, in [0, 1]; NaN without communities.
        It is above 0, because the largest of several rates that differ by chance is taken.

    Raises:
        ValueError: shapes disagree, `fired` is not boolean, labels are not integers, or `draws` < 1.

    Examples:
        >>> fired = np.random.default_rng(0).random((400, 6)) < 0.1
        >>> 0 < shuffled_classes(fired, np.arange(400) % 4, [0, 0, 0, 1, 1, 1], np.random.default_rng(0)) < 0.5
        True
    """
    matrix, draws, rng = as_fired(fired), as_count(draws, "draws", most=MOST_DRAWS), as_rng(rng)
    classes = as_labels(labels, matrix.shape[0])
    names, masks = members(as_labels(communities, matrix.shape[1], "communities"))
    if not len(names):
        return float("nan")
    kinds, images = np.unique(classes, return_counts=True)
    firing = matrix.astype(np.float32)  # counts of images are exact up to 16 million
    order, size = np.argsort(names), masks.sum(axis=1)
    batch = max(1, FLOATS // (len(kinds) * max(matrix.shape)))
    found = []
    for start in range(0, draws, batch):
        drawn = np.stack([rng.permutation(classes) for _ in range(min(batch, draws - start))])
        of_class = (drawn[:, None] == kinds[:, None]).astype(np.float32)  # draws, classes, examples
        rates = (of_class @ firing) / images[:, None] @ masks.T / size  # draws, classes, communities
        clear = class_selectivity(np.concatenate(rates, axis=1)).reshape(len(rates), -1)
        found.append(np.average(clear.take(order, axis=1), axis=1, weights=size[order]))
    return float(np.mean(np.concatenate(found)))


def class_names(answers: pd.DataFrame, classes: Sequence[str]) -> dict[int, str]:
    """What to write beside the communities of one network at one epoch: the class that each is selective for.

    Args:
        answers: rows of the extra "selectivity" of one run and epoch.
        classes: names of the classes.

    Returns:
        Name per identity, as :func:`short_name` writes it; "no class" for one that never fires.

    Examples:
        >>> class_names(pd.DataFrame({"community": [4, 7], "selective_for": [1, -1]}), ["cat", "sea_horse"])
        {4: 'sea horse', 7: 'no class'}
    """
    pairs = zip(answers["community"], answers["selective_for"], strict=True)
    return {int(name): short_name(classes[kind]) if kind >= 0 else "no class" for name, kind in pairs}


def short_name(name: str, most: int = 24) -> str:
    """A class name for a figure: spaces for underscores, and not too long.

    Examples:
        >>> short_name("Pepper,_bell___Bacterial_spot")
        'Pepper, bell Bacterial…'
    """
    plain = re.sub(r"_+", " ", CONTROL.sub("_", name)).strip()
    return plain if len(plain) <= most else f"{plain[: most - 1].rstrip()}…"


ALL_LABELS = "all"
LEAST_RUNS = 4  # with three, a partial correlation of ranks is 1 or -1


@checked
def early_prediction(
    table: pd.DataFrame,
    measures: Sequence[str],
    rng: np.random.Generator | int,
    *,
    early: Sequence[int] = (1, 2, 3),
    outcome: str = "test_accuracy",
    draws: int = 999,
) -> pd.DataFrame:
    """What a measure at an early epoch says about the final accuracy that accuracy at that epoch does not.

    Over runs: Spearman's rho of the measure at epoch e with the final outcome, and its partial rho given the outcome at
    epoch e (:func:`nbutils.series.partial_correlation`). Within each label condition the interval resamples runs;
    over all conditions together, where there are at least 3, it resamples whole conditions, since runs of one condition
    resemble each other.

    Args:
        table: one row per run and epoch: `dataset`, `labels`, `run`, `epoch`, the outcome and the measures, such as
            the `table` of :class:`nbutils.study.results.Results`.
        measures: columns to try.
        rng: source of randomness: a generator, or a seed.
        early: epochs to predict from.
        outcome: column to predict; its value at a run's last epoch is the final one.
        draws: resamples for each interval.

    Returns:
        One row per data set, condition, measure and early epoch: `dataset`, `labels` ("all" for all conditions
        together), `measure`, `epoch`, `runs`, `rho`, `rho_outcome` (of the early outcome with the final one),
        `partial`, `low`, `high` (95 % interval of `partial`). A run counts at an epoch that is measured, known and
        before its last. NaN with fewer than 4 runs, and where the early outcome determines the order of the measure
        or of the final outcome completely; a constant measure has 0.

    Raises:
        ValueError: the table lacks a column; names it.

    Examples:
        >>> runs = pd.DataFrame({"dataset": "d", "labels": "true", "run": list("abcde") * 2})
        >>> runs = runs.assign(epoch=np.repeat([1, 9], 5), q=[1, 2, 3, 4, 5] * 2)
        >>> runs = runs.assign(test_accuracy=[0.5, 0.4, 0.6, 0.5, 0.4, 0.91, 0.92, 0.93, 0.94, 0.95])
        >>> found = early_prediction(runs, ["q"], np.random.default_rng(0), early=[1])
        >>> found[["labels", "epoch", "runs", "rho", "partial"]].round(2).values.tolist()
        [['true', 1, 5, 1.0, 1.0]]

    References:
        The question: Jiang et al. (2020), arXiv:1912.02178, who condition on hyperparameters likewise.
    """
    rng, draws = as_rng(rng), as_count(draws, "draws", most=MOST_RESAMPLES)
    key = ("dataset", "labels", "run", "epoch")
    as_frame(table, key, "table", numbers=(outcome, *measures), finite=("epoch",), key=key)
    last = table.loc[table.groupby("run")["epoch"].idxmax(), ["run", "epoch", outcome]]
    rows = table.merge(last.set_axis(["run", "last", "final"], axis=1), on="run")
    rows = rows[(rows["epoch"] < rows["last"]) & rows["epoch"].isin(early)].dropna(subset=["final", outcome])
    found = []
    for (dataset, labels), runs in _conditions(rows):
        for measure in measures:
            for epoch, known in runs.dropna(subset=[measure]).groupby("epoch"):
                units = known["labels" if labels == ALL_LABELS else "run"]
                values = [known[column].to_numpy(float) for column in (measure, "final", outcome)]
                found.append((dataset, labels, measure, epoch, len(known), *_partial(*values, units, draws, rng)))
    columns = ["dataset", "labels", "measure", "epoch", "runs", "rho", "rho_outcome", "partial", "low", "high"]
    return pd.DataFrame(found, columns=columns)


def _conditions(rows: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """The runs of each data set and condition, and of all conditions together where there are at least 3."""
    groups = list(rows.groupby(["dataset", "labels"], sort=False))
    for dataset, runs in rows.groupby("dataset", sort=False):
        if runs["labels"].nunique() >= 3:
            groups.append(((dataset, ALL_LABELS), runs))
    return groups


def _partial(
    measure: np.ndarray, final: np.ndarray, early: np.ndarray, units: pd.Series, draws: int, rng: np.random.Generator
) -> tuple[float, ...]:
    """Rho of the measure and of the early outcome with the final one, the partial rho, and its interval."""
    if len(final) < LEAST_RUNS:
        return (np.nan,) * 5
    names, index = np.unique(units, return_inverse=True)
    parts = [np.flatnonzero(index == k) for k in range(len(names))]
    chosen = rng.integers(len(names), size=(draws, len(names)))
    resamples = [np.arange(len(final)), *(np.concatenate([parts[k] for k in row]) for row in chosen)]
    pairs = (measure, final), (measure, early), (final, early)
    rho = [resampled_spearman(x, y, resamples) for x, y in pairs]
    partial = partial_from(*rho)
    drawn = partial[1:][np.isfinite(partial[1:])]
    interval = np.quantile(drawn, [0.025, 0.975]) if np.isfinite(partial[0]) and drawn.size else (np.nan, np.nan)
    return tuple(float(value) for value in (rho[0][0], rho[2][0], partial[0], *interval))
