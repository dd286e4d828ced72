"""What the studies say together: verdicts as words, baselines beside every measure, and confounds held fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from nbutils.series import correlation_test, partial_correlation, partial_from
from nbutils.stats import holm, resampled_spearman
from nbutils.study.comparisons import BASELINES, between_run_table, naive_table, selectivity_share
from nbutils.study.hypotheses import H2_MEASURE, H3_MEASURE, RULES, Evidence, h1_evidence, is_registered, verdict
from nbutils.study.results import Results
from nbutils.study.sceptic import living_only, with_living
from nbutils.support.display import format_number, interval_text

__all__ = [
    "GIVEN",
    "baseline_ranks",
    "counted",
    "held_fixed",
    "held_fixed_sentence",
    "held_fixed_table",
    "held_fixed_words",
    "hypothesis_sentence",
    "living_sentence",
    "living_table",
    "partial_between",
    "preference_sentence",
    "rank_sentence",
    "shared_sign_sentence",
    "within_levels",
]

WORDS = ("supported", "not supported", "refuted", "not measurable", "inconclusive")


def counted(names: Sequence[str]) -> str:
    """Names as a list for a sentence.

    Examples:
        >>> counted(["a"]), counted(["a", "b", "c"]), counted([])
        ('a', 'a, b and c', 'none')
    """
    if len(names) < 2:
        return names[0] if names else "none"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def hypothesis_sentence(evidence: Sequence[Evidence], hypothesis: str) -> str:
    """Where a hypothesis holds, and which of its tests it misses where it does not.

    Args:
        evidence: all tests of a study, adjusted.
        hypothesis: "H1", "H2" or "H3".

    Returns:
        One sentence or two.

    Raises:
        ValueError: no test of this hypothesis.

    Examples:
        >>> test = Evidence("digits", "true", "H1", "H1a null", "Q above its null", 0.5, 0.4, 0.6)
        >>> hypothesis_sentence([test], "H1")
        '**H1** is supported on digits.'
    """
    own = [e for e in evidence if e.hypothesis == hypothesis and is_registered(e)]
    if not own:
        raise ValueError(f"evidence holds no registered test of {hypothesis!r}")
    names = list(dict.fromkeys(e.dataset for e in own))
    words = {name: verdict([e for e in own if e.dataset == name]) for name in names}
    parts = [f"{word} on {counted([n for n in names if words[n] == word])}" for word in WORDS if word in words.values()]
    text = f"**{hypothesis}** is {counted(parts)}."
    missed = {e.test: [] for e in own if e.outcome in ("fails", "opposite")}
    for test in missed:
        missed[test] = [e.dataset for e in own if e.test == test and e.outcome in ("fails", "opposite")]
    if missed:
        reasons = [f"{test} on {counted(places)}" for test, places in missed.items()]
        text += f" Tests that did not pass: {'; '.join(reasons)}."
    return text


def preference_sentence(results: Sequence[Results]) -> str:
    """On which data sets class preference alone makes graphs as modular as real ones (H1c), with true labels.

    Args:
        results: of each data set.

    Returns:
        A sentence; a data set on which the 95 % interval of the share holds 1 is left open.
    """
    found: dict[str, list[str]] = {}
    for result in results:
        row = selectivity_share(result.conditions()).set_index("labels").loc["true"]
        word = "at least as" if row["low"] >= 1 else "less" if row["high"] < 1 else "not clearly more or less"
        found.setdefault(word, []).append(result.dataset)
    parts = [f"{word} modular on {counted(names)}" for word, names in found.items()]
    return f"Beside real firing, class preference alone makes graphs that are {'; '.join(parts)}."


def baseline_ranks(results: Sequence[Results]) -> pd.DataFrame:
    """Spearman's rho of each measure with test accuracy between networks, per data set with a grid of label noise.

    Args:
        results: of each data set; those without a grid are left out.

    Returns:
        One row per measure: `measure`, one column per data set, `mean` (of the absolute values), strongest first.

    Raises:
        ValueError: no data set has a grid.
    """
    gridded = [r for r in results if len(r.noise_grid())]
    if not gridded:
        names = counted([r.dataset for r in results])
        raise ValueError(f"study must hold a data set with a grid of label noise, received {names}")
    tables = [between_run_table(r.noise_grid(), draws=2).set_index("measure")["rho"] for r in gridded]
    found = pd.concat(tables, axis=1, keys=[r.dataset for r in gridded])
    found["mean"] = found.abs().mean(axis=1)
    return found.sort_values("mean", ascending=False).rename_axis("measure").reset_index()


def rank_sentence(ranks: pd.DataFrame, measure: str) -> str:
    """Where a measure stands among all, and what stands above it.

    Args:
        ranks: see :func:`baseline_ranks`.
        measure: column, such as "modularity".

    Returns:
        One sentence.

    Examples:
        >>> ranks = pd.DataFrame({"measure": ["margin", "modularity Q (H2)"], "mean": [0.9, 0.8]})
        >>> rank_sentence(ranks, "modularity")
        'By the strength of that correlation, modularity Q (H2) is number 2 of 2, after margin.'
    """
    name = BASELINES[measure]
    place = int(ranks.index[ranks["measure"] == name][0])
    above = list(ranks["measure"][:place])
    if place > 3:
        above = [*above[:3], f"{place - 3} others"]
    after = f", after {counted(above)}" if place else ""
    return f"By the strength of that correlation, {name} is number {place + 1} of {len(ranks)}{after}."


def shared_sign_sentence(results: Sequence[Results]) -> str:
    """How modularity goes with training accuracy within runs, which all networks may share and H2a does not count.

    Args:
        results: of each data set.
    """
    found = []
    for result in results:
        table = result.conditions()
        rho = naive_table(table[table["labels"] == "true"], H2_MEASURE)["ρ, trained"].iloc[0]
        found.append(f"{format_number(rho, 2)} on {result.dataset}")
    return (
        f"Within a run with true labels, modularity and training accuracy correlate by {counted(found)} (Spearman, "
        "trained epochs, means over networks). What networks share of this is no evidence for H2a, and none against it."
    )


def living_sentence(results: Sequence[Results], evidence: Sequence[Evidence]) -> str:
    """How many neurons died, and what the verdicts on H1 would be on graphs of living neurons only.

    The tests of H1 on living neurons take the place of the registered ones, and share the correction with all others.

    Args:
        results: of each data set; those on which living neurons were not measured alone are left out.
        evidence: all tests of the study, adjusted.

    Returns:
        Two sentences; nothing without such a data set.
    """
    dead, living = [], {}
    for result in (r for r in results if "living" in r.extras):
        table = with_living(result).conditions()
        last = table[(table["labels"] == "true") & (table["epoch"] == table["epoch"].max())]
        dead.append(f"{last['dead_share'].mean():.0%} on {result.dataset}")
        living |= {(result.dataset, e.test): e for e in h1_evidence(living_only(table), "true")}
    if not dead:
        return ""
    registered = [e for e in evidence if is_registered(e)]
    changed = [replace(living.get((e.dataset, e.test), e), dataset=e.dataset) for e in registered]
    tested = [i for i, e in enumerate(changed) if np.isfinite(e.p_value)]
    for i, p_value in zip(tested, holm([changed[i].p_value for i in tested]), strict=True):
        changed[i] = replace(changed[i], adjusted=float(p_value))
    words, moved = {}, []
    for name in dict.fromkeys(name for name, _ in living):
        was, word = (_h1_word(tests, name) for tests in (registered, changed))
        words.setdefault(word, []).append(name)
        moved += [f"{name} (registered: {was})"] if was != word else []
    found = "; ".join(f"{word} on {counted(names)}" for word, names in words.items())
    return (
        f"Neurons that never fire after training: {counted(dead)}. On graphs of living neurons only, **H1** would be "
        f"{found}; that is another verdict on {counted(moved)}."
    )


def living_table(results: Results) -> pd.DataFrame:
    """The tests of H1 on the graph of all neurons and on that of living ones.

    Args:
        results: of one data set, with the extra "living".

    Returns:
        One row per test with true labels: `test`, `effect`, and the estimates with their 95 % intervals as text.
    """
    table = with_living(results).conditions()
    pairs = zip(h1_evidence(table, "true"), h1_evidence(living_only(table), "true"), strict=True)
    rows = [(a.test, a.question, *(interval_text(e.estimate, e.low, e.high) for e in (a, b))) for a, b in pairs]
    return pd.DataFrame(rows, columns=["test", "effect", "all neurons", "living neurons"])


def _h1_word(evidence: Sequence[Evidence], dataset: str) -> str:
    return verdict([e for e in evidence if (e.dataset, e.hypothesis) == (dataset, "H1")])


# What is held fixed between networks.
GIVEN = {
    "mean_cofiring": "given mean co-firing",
    "train_loss": "given training loss",
    "train_accuracy": "given training accuracy",
    "noise": "given the noise level",
}
# What goes with test accuracy, where something else is held fixed; the last, which should, is a yardstick.
HELD = {
    H2_MEASURE: "modularity",
    H3_MEASURE: "pattern entropy",
    "true_accuracy": "yardstick",
}
YARDSTICK = "true_accuracy"


def partial_between(
    measure: Any, accuracy: Any, condition: Any, given: Any, rng: np.random.Generator, draws: int = 999
) -> tuple[float, tuple[float, float]]:
    """Do runs with more of a measure perform better, where a third quantity is the same?

    Partial Spearman correlation over all runs; the interval resamples whole conditions.

    Args:
        measure: final value per run, shape (runs,).
        accuracy: final accuracy per run, shape (runs,).
        condition: condition per run, shape (runs,).
        given: what is held fixed, shape (runs,).
        rng: source of randomness.
        draws: resamples.

    Returns:
        (correlation, its 95 % interval), in [-1, 1]; NaN where `given` orders the runs completely.

    Examples:
        >>> loss = np.repeat([0.0, 0.2, 0.5, 0.8, 1.0], 2)
        >>> wiggle = np.tile([0.0, 0.1], 5)
        >>> rho, _ = partial_between(wiggle - loss, -wiggle - loss, loss, loss, np.random.default_rng(0))
        >>> round(rho, 2)  # both fall with the loss, which hides that one falls where the other rises
        -1.0
    """
    x, y, z = (np.asarray(series, dtype=float) for series in (measure, accuracy, given))
    names, index = np.unique(np.asarray(condition), return_inverse=True)
    members = [np.flatnonzero(index == k) for k in range(len(names))]
    chosen = rng.integers(len(names), size=(draws, len(names)))
    resamples = [np.concatenate([members[k] for k in row]) for row in chosen]
    found = partial_from(*(resampled_spearman(a, b, resamples) for a, b in ((x, y), (x, z), (y, z))))
    known, tail = found[np.isfinite(found)], (1 - RULES.level) / 2
    low, high = np.quantile(known, [tail, 1 - tail]) if known.size else (np.nan, np.nan)
    return partial_correlation(x, y, z), (float(low), float(high))


def within_levels(measure: Any, accuracy: Any, level: Any) -> tuple[float, tuple[float, float]]:
    """Do runs with more of a measure perform better than others of the *same* level?

    Ranks are taken within each level and centred there, so that nothing which levels differ in is left; r is Pearson's
    correlation of these ranks over all runs, and its interval comes from Fisher's z with one run less per level. A
    partial correlation given the number of the level would not do: it removes only what is linear in ranks.

    Args:
        measure: final value per run, shape (runs,).
        accuracy: final accuracy per run, shape (runs,).
        level: level per run, shape (runs,).

    Returns:
        (correlation, its 95 % interval), in [-1, 1]; NaN where either is constant within all levels.

    Examples:
        >>> accuracy = [0.9, 0.8, 0.7, 0.3, 0.2, 0.1]
        >>> rho, _ = within_levels([5, 6, 7, 1, 2, 3], accuracy, [0, 0, 0, 1, 1, 1])
        >>> rho  # high levels have more of both, but within a level one falls as the other rises
        -1.0
    """
    level = pd.Series(np.asarray(level))
    x, y = (pd.Series(np.asarray(v, dtype=float)).groupby(level).rank() for v in (measure, accuracy))
    x, y = (ranks - ranks.groupby(level).transform("mean") for ranks in (x, y))
    size = float(np.sqrt((x**2).sum() * (y**2).sum()))
    rho = float((x * y).sum()) / size if size > 0 else float("nan")
    _, interval = correlation_test(rho, len(x) - level.nunique() + 1, RULES.level)
    return rho, interval


def held_fixed_table(grid: pd.DataFrame, measure: str) -> pd.DataFrame:
    """How a measure goes with test accuracy between runs, where something else is the same.

    Args:
        grid: rows of the noise grid of one data set.
        measure: column.

    Returns:
        One row per key of `GIVEN` that the grid has: `given`, `rho`, `low`, `high`, see :func:`partial_between`, and
        :func:`within_levels` for the noise level.
    """
    last, rows = grid[grid["epoch"] == grid["epoch"].max()], []
    for column in (name for name in GIVEN if name in last):
        series = last[measure], last["test_accuracy"], last["noise"], last[column]
        rng = np.random.default_rng(RULES.seed)
        rho, interval = within_levels(*series[:3]) if column == "noise" else partial_between(*series, rng)
        rows.append((column, rho, *interval))
    return pd.DataFrame(rows, columns=["given", "rho", "low", "high"])


def held_fixed(results: Sequence[Results]) -> pd.DataFrame:
    """How modularity, pattern entropy and a yardstick go with test accuracy where something else is the same.

    Args:
        results: of each data set; those without a grid of label noise are left out.

    Returns:
        One row per measure, data set and quantity held fixed: `measure`, `dataset`, and the columns of
        :func:`held_fixed_table`.
    """
    grids = {result.dataset: result.noise_grid() for result in results}
    tables = [
        held_fixed_table(grid, measure).assign(measure=measure, dataset=name)
        for measure in HELD
        for name, grid in grids.items()
        if len(grid)
    ]
    return pd.concat(tables, ignore_index=True)


def held_fixed_words(held: pd.DataFrame) -> pd.DataFrame:
    """A table of :func:`held_fixed` for readers: one row per measure and data set, one column per quantity."""
    named = held["measure"].map(HELD)
    words = held.assign(measure=named, text=[interval_text(*row) for row in held[["rho", "low", "high"]].to_numpy()])
    index = ["measure", "dataset"]
    wide = words.pivot_table(index=index, columns="given", values="text", aggfunc="first", sort=False).reset_index()
    return wide.rename(columns=GIVEN).rename_axis(columns=None)


def held_fixed_sentence(held: pd.DataFrame) -> str:
    """Where the predicted correlation is left between networks with the same share of redrawn labels."""
    same = held[held["given"] == "noise"]
    of = {measure: rows.set_index("dataset") for measure, rows in same.groupby("measure")}
    rising, falling = of[H2_MEASURE]["low"] > 0, of[H3_MEASURE]["high"] < 0
    clear = of[YARDSTICK]["low"] > 0
    places = [counted(list(found.index[found])) for found in (rising, falling, clear)]
    return (
        "Between networks with the same label noise, of {}, modularity still rises with test accuracy on {} (its "
        "correlations are {} on average), and pattern entropy still falls with it on {}. A yardstick that should rise "
        "with it, accuracy on the true labels of the training images, visibly does on {}."
    ).format(counted(list(rising.index)), places[0], format_number(of[H2_MEASURE]["rho"].mean(), 2), *places[1:])
