"""What the studies say together: baselines beside every measure, active neurons only, and confounds held fixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from nbutils.series import correlation_test, partial_correlation, partial_from
from nbutils.stats import holm, resampled_spearman
from nbutils.study.comparisons import between_run_table
from nbutils.study.hypotheses import H2_MEASURE, H3_MEASURE, RULES, Evidence, h1_evidence, headline, is_prespecified
from nbutils.study.perturbations import active_only, with_active
from nbutils.study.results import Results

__all__ = [
    "GIVEN",
    "active_sentence",
    "active_table",
    "active_verdicts",
    "baseline_ranks",
    "counted",
    "held_fixed",
    "held_fixed_table",
    "partial_between",
    "within_levels",
]


def counted(names: Sequence[str]) -> str:
    """Names as a list for a sentence.

    Examples:
        >>> counted(["a"]), counted(["a", "b", "c"]), counted([])
        ('a', 'a, b and c', 'none')
    """
    if len(names) < 2:
        return names[0] if names else "none"
    return f"{', '.join(names[:-1])} and {names[-1]}"


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
        names = ", ".join(r.dataset for r in results)
        raise ValueError(f"study must hold a data set with a grid of label noise, received {names or 'none'}")
    tables = [between_run_table(r.noise_grid(), draws=2).set_index("measure")["rho"] for r in gridded]
    found = pd.concat(tables, axis=1, keys=[r.dataset for r in gridded])
    found["mean"] = found.abs().mean(axis=1)
    return found.sort_values("mean", ascending=False).rename_axis("measure").reset_index()


def active_verdicts(results: Sequence[Results], evidence: Sequence[Evidence]) -> pd.DataFrame:
    """What the verdicts on H1 would be on graphs of active neurons only.

    The tests of H1 on active neurons take the place of the pre-specified ones and share the correction with all others.

    Args:
        results: of each data set; those on which active neurons were not measured alone are left out.
        evidence: all tests of the study, adjusted.

    Returns:
        One row per data set: `dataset`, `never fire` (share of neurons after training), and the verdicts with
        `all neurons` and with `active neurons`.
    """
    silent, alone = {}, {}
    for result in (r for r in results if "active" in r.extras):
        table = with_active(result).conditions()
        last = table[(table["labels"] == "true") & (table["epoch"] == table["epoch"].max())]
        silent[result.dataset] = last["dead_share"].mean()
        alone |= {(result.dataset, e.test): e for e in h1_evidence(active_only(table), "true")}
    decisive = [e for e in evidence if is_prespecified(e)]
    changed = [replace(alone.get((e.dataset, e.test), e), dataset=e.dataset) for e in decisive]
    tested = [i for i, e in enumerate(changed) if np.isfinite(e.p_value)]
    for i, p_value in zip(tested, holm([changed[i].p_value for i in tested]), strict=True):
        changed[i] = replace(changed[i], adjusted=float(p_value))
    rows = [(name, share, *(headline(e, name, "H1")[0] for e in (decisive, changed))) for name, share in silent.items()]
    return pd.DataFrame(rows, columns=["dataset", "never fire", "all neurons", "active neurons"])


def active_sentence(table: pd.DataFrame) -> str:
    """A table of :func:`active_verdicts` in two sentences; nothing without a row."""
    if table.empty:
        return ""
    silent = counted([f"{row['never fire']:.0%} on {row['dataset']}" for _, row in table.iterrows()])
    groups = table.groupby("active neurons", sort=False)["dataset"].agg(list)
    moved = table[table["all neurons"] != table["active neurons"]]
    others = counted([f"{row['dataset']} (pre-specified: {row['all neurons']})" for _, row in moved.iterrows()])
    words = "; ".join(f"{word} on {counted(names)}" for word, names in groups.items())
    return (
        f"Neurons that never fire after training: {silent}. On graphs of active neurons only, **H1** would be "
        f"{words}; that is another verdict on {others}."
    )


def active_table(results: Results) -> pd.DataFrame:
    """The tests of H1 on the graph of all neurons and on that of active ones.

    Args:
        results: of one data set, with the extra "active".

    Returns:
        One row per test with true labels: `test`, `effect`, and the estimates with their 95 % intervals as text.
    """
    table = with_active(results).conditions()
    pairs = zip(h1_evidence(table, "true"), h1_evidence(active_only(table), "true"), strict=True)
    rows = [(a.test, a.question, a.effect, b.effect) for a, b in pairs]
    return pd.DataFrame(rows, columns=["test", "effect", "all neurons", "active neurons"])


# What is held fixed between networks.
GIVEN = {
    "mean_cofiring": "given mean co-firing",
    "train_loss": "given training loss",
    "train_accuracy": "given training accuracy",
    "noise": "given the noise level",
}
# What may be associated with test accuracy with something else held fixed; the last should, a positive control.
HELD = {
    H2_MEASURE: "modularity",
    H3_MEASURE: "pattern entropy",
    "binned_entropy": "paper's entropy",
    "true_accuracy": "positive control",
}


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
    """How a measure is associated with test accuracy between runs, where something else is the same.

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
    """How measures are associated with test accuracy where something else is the same, on every data set.

    Args:
        results: of each data set; those without a grid of label noise are left out.

    Returns:
        One row per measure (named as in `HELD`), data set and quantity held fixed (as in `GIVEN`): `measure`,
        `dataset`, and the columns of :func:`held_fixed_table`.
    """
    grids = {result.dataset: result.noise_grid() for result in results}
    tables = [
        held_fixed_table(grid, measure).assign(measure=name, dataset=dataset)
        for measure, name in HELD.items()
        for dataset, grid in grids.items()
        if measure in grid and len(grid)
    ]
    return pd.concat(tables, ignore_index=True).replace({"given": GIVEN})
