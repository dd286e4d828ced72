"""What a condition changes: differences from what it is held against, network by network of the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from nbutils.drawing.display import interval_text
from nbutils.evaluation.words import ALPHA, Estimate, t_interval
from nbutils.experiments.conditions import conditions_of
from nbutils.experiments.trials import OUTCOMES
from nbutils.stats import holm

__all__ = [
    "SHOWN",
    "condition_effects",
    "estimate_of",
    "holm_adjusted",
    "paired",
    "paired_p_value",
    "sound_trials",
    "told_effects",
]

# What an effect is told of: performance, communities and the two parts of Q, the entropies of H3.
SHOWN = ("accuracy", "modularity", "class_part", "remainder", "active_entropy", "block_entropy")
LEAST = 5  # pairs of networks without which there is no interval


def sound_trials(table: pd.DataFrame) -> pd.DataFrame:
    """Networks that finished and are not degenerate; the others are counted, and decide nothing."""
    return table[(table["reason"] == "") & (table["degenerate"] == 0)]


def paired(table: pd.DataFrame, condition: str, against: str, column: str) -> np.ndarray:
    """Differences between networks of the same seed with and without a condition.

    Args:
        table: trials on one data set.
        condition: name in the column `condition`; `against` likewise.
        column: what is compared.

    Returns:
        One difference per seed that both have, in the order of seeds; those that are not defined are left out.

    Examples:
        >>> table = pd.DataFrame({"condition": ["a", "b", "a"], "seed": [0, 0, 1], "accuracy": [0.5, 0.25, 0.5]})
        >>> paired(table, "a", "b", "accuracy").tolist()
        [0.25]
    """
    return _differences(*(_by_seed(table[table["condition"] == name], [column]) for name in (condition, against)))[0]


def _by_seed(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    return table[["seed", *columns]].set_index("seed")


def _differences(there: pd.DataFrame, without: pd.DataFrame) -> list[np.ndarray]:
    """Those of each column, by seed."""
    both = (there - without).sort_index().to_numpy(float).T
    return [one[~np.isnan(one)] for one in both]


def condition_effects(table: pd.DataFrame, columns: Sequence[str] = SHOWN) -> pd.DataFrame:
    """Effects of all training conditions on all data sets.

    The difference of each network from that of the same seed without the condition; its mean with a 95 % t interval,
    and a two-sided t test, corrected by Holm over all conditions, data sets and columns together.

    Args:
        table: see :func:`nbutils.study.cases.compute_cases`.
        columns: of the table.

    Returns:
        One row per data set, condition and column: `dataset`, `group`, `condition`, `title`, `against`, `column`,
        `measure`, `networks` (pairs), `mean` of the condition itself, `effect`, `low`, `high`, `p_value`, `adjusted`.
        Fewer than five pairs have neither interval nor p value.
    """
    good, rows = sound_trials(table), []
    for dataset in dict.fromkeys(table["dataset"]):
        groups = good[good["dataset"] == dataset].groupby("condition")
        by_condition = {name: _by_seed(own, columns) for name, own in groups}
        nothing = _by_seed(good[:0], columns)
        for condition in (one for one in conditions_of(dataset) if one.name != "reference"):
            there, without = (by_condition.get(name, nothing) for name in (condition.name, condition.against))
            means = there.mean()
            for column, found in zip(columns, _differences(there, without), strict=True):
                enough = len(found) >= LEAST
                low, high = t_interval(found) if enough else (np.nan, np.nan)
                rows.append(
                    {
                        "dataset": dataset,
                        "group": condition.group,
                        "condition": condition.name,
                        "title": condition.title,
                        "against": condition.against,
                        "column": column,
                        "measure": OUTCOMES[column],
                        "networks": len(found),
                        "mean": float(means[column]),
                        "effect": float(found.mean()) if len(found) else np.nan,
                        "low": low,
                        "high": high,
                        "p_value": paired_p_value(found) if enough else np.nan,
                    }
                )
    effects = pd.DataFrame(rows)
    effects["adjusted"] = holm_adjusted(effects["p_value"])
    return effects


def told_effects(effects: pd.DataFrame) -> pd.DataFrame:
    """Effects on one data set as text, bold where they stay after correction.

    Args:
        effects: rows of one data set, see :func:`condition_effects`.

    Returns:
        One row per condition, `condition` its title, and a column per measure.
    """
    ends = effects[["effect", "low", "high"]].to_numpy()
    told = [interval_text(*one) for one in ends]
    told = [f"**{text}**" if p <= ALPHA else text for text, p in zip(told, effects["adjusted"], strict=True)]
    wide = effects.assign(told=told).pivot(index="title", columns="measure", values="told")
    wide = wide.loc[effects["title"].unique(), effects["measure"].unique()]
    return wide.rename_axis("condition").rename_axis(None, axis=1).reset_index()


def holm_adjusted(p_values: pd.Series) -> pd.Series:
    """Adjusted by Holm's method over those that are defined; the others stay NaN and do not count.

    Examples:
        >>> holm_adjusted(pd.Series([0.01, np.nan, 0.5])).tolist()
        [0.02, nan, 0.5]
    """
    adjusted = pd.Series(np.nan, index=p_values.index)
    if (tested := p_values.notna()).any():
        adjusted[tested] = holm(p_values[tested].tolist())
    return adjusted


def estimate_of(row: Any) -> Estimate:
    """The estimate in a row of a table of verdicts.

    Args:
        row: with `effect`, `low`, `high`, `inner_low`, `inner_high` and `p_value`, such as one of `itertuples`.
    """
    return Estimate(row.effect, row.low, row.high, (row.inner_low, row.inner_high), row.p_value)


def paired_p_value(values: np.ndarray) -> float:
    """Of "no difference", by a two-sided t test; for differences that are all equal 0, or 1 where they are 0.

    Examples:
        >>> round(paired_p_value(np.array([1.0, 2.0, 3.0])), 3), paired_p_value(np.zeros(5))
        (0.074, 1.0)
    """
    if np.ptp(values) == 0:
        return 1.0 if values[0] == 0 else 0.0
    return float(stats.ttest_1samp(values, 0).pvalue)
