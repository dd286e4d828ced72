"""A whole specification curve put to the test: could chance have put all of it where it lies?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control, rankdata

from nbutils.arguments import checked
from nbutils.arrays import as_count, as_frame, as_rng, as_series
from nbutils.results import Results, as_results
from nbutils.specifications import specifications, specified
from nbutils.stats import MOST_DRAWS, permutation_result, permuted_orders

__all__ = ["curve_test", "grid_values", "noise_levels", "readings"]

MEDIAN, SHARE = "median effect", "share with the predicted sign"
LEVEL, MOST = 0.05, 0.9  # of a reading: largest adjusted p, smallest share with the predicted sign


@checked
def grid_values(results: Results) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Networks of the grid of label noise, trained to the end and measured in every way.

    Args:
        results: of a data set with a grid of label noise and the extra "specifications".

    Returns:
        (values, accuracies, noise), ready for :func:`nbutils.curves.specification_table`: one row per network and one
        column per specification, in the order of the list; test accuracy and level of label noise per network.

    Raises:
        ValueError: the data set has no grid, or its networks were not measured in every way.
    """
    grid = as_results(results).noise_grid()
    if grid.empty:
        raise ValueError(f"results must have a grid of label noise, received those of {results.dataset!r} without one")
    as_frame(grid, ("run",), "the table of results", finite=("epoch", "noise", "seed", "test_accuracy"))
    last = grid[grid["epoch"] == grid.groupby("run")["epoch"].transform("max")].set_index("run")
    found = results.extra("specifications").astype({"specification": str})
    as_frame(found, (), "the extra 'specifications' of results", numbers=("value",), key=("run", "specification"))
    values = found.pivot(index="run", columns="specification", values="value")
    last = last[last.index.isin(values.index)].sort_values(["noise", "seed"])
    order = [one.label for one in specifications() if one.label in values]
    return values.loc[last.index, order], last["test_accuracy"].to_numpy(), last["noise"].to_numpy()


def noise_levels(accuracies: Any, noise: Any, networks: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Accuracies, and which networks belong to each level of label noise.

    Args:
        accuracies: test accuracy per network, shape (networks,), finite.
        noise: level of label noise per network, shape (networks,), at least 3 different ones.
        networks: how many there should be.

    Returns:
        (accuracies, indices of the networks of each level, from the least noise to the most).

    Raises:
        ValueError: shapes disagree, an accuracy is not finite, or there are fewer than 3 levels.

    Examples:
        >>> [own.tolist() for own in noise_levels([0.9, 0.5, 0.1], [0.0, 0.5, 1.0], 3)[1]]
        [[0], [1], [2]]
    """
    accuracy, level = as_series(accuracies, "accuracies"), as_series(noise, "noise")
    if accuracy.shape != (networks,) or level.shape != (networks,):
        raise ValueError(
            f"accuracies and noise must be one per row of values, {networks}, received shapes {accuracy.shape} and "
            f"{level.shape}"
        )
    names = np.unique(level)
    if len(names) < 3:
        raise ValueError(f"noise must take at least 3 levels, received {len(names)}")
    return accuracy, [np.flatnonzero(level == name) for name in names]


def curve_test(
    values: pd.DataFrame, accuracies: Any, noise: Any, rng: np.random.Generator | int, permutations: int = 50_000
) -> pd.DataFrame:
    """Does the whole curve lie further from 0 than chance would put it?

    All specifications look at the same networks, so that they agree with each other is no evidence. If no measure went
    with accuracy, the levels of label noise could as well have had each other's accuracies. So the accuracies of whole
    levels are permuted, in the same way for all specifications, and the curve is computed again: what specifications
    have in common stays as it is.

    Args:
        values: one row per network, one column per specification, named by its label; finite.
        accuracies: test accuracy per network, shape (networks,).
        noise: level of label noise per network, shape (networks,), at least 3 different ones. A level with fewer
            networks than another lends some of their accuracies twice.
        rng: source of randomness, a generator or a seed; unused where all orders of the levels are few enough to be
            listed.
        permutations: from 1 to a million; up to so many orders, all are listed and the test is exact, as for eight
            levels; else so many random ones are taken.

    Returns:
        Two rows per hypothesis, for the median effect in the predicted direction and for the share of specifications
        with the predicted sign: `hypothesis`, `statistic`, `observed`, `low` and `high` (middle 95 % of the
        permutations), `p` (two-sided: twice the smaller of the shares of permutations at least as high, or at least
        as low; at most 1). A measure that is the same for all networks has effect 0 and no sign.

    Raises:
        ValueError: a column is no specification's label, values are not finite, shapes disagree, or there are fewer
            than 3 noise levels.

    Examples:
        >>> noise = np.repeat([0.0, 0.2, 0.5, 0.8, 1.0], 2)
        >>> values = pd.DataFrame({specifications()[0].label: 1 - noise})
        >>> found = curve_test(values, 1 - noise, noise, np.random.default_rng(0))
        >>> round(found["p"].iloc[0] * 120)  # of the 120 orders of five levels
        2

    References:
        Simonsohn, Simmons and Nelson (2020), doi:10.1038/s41562-020-0912-z.
    """
    known, rng = specified(values), as_rng(rng)
    permutations = as_count(permutations, "permutations", most=MOST_DRAWS)
    lent = _unit_ranks(_lent(*noise_levels(accuracies, noise, len(values)), rng, permutations))
    rows = []
    for hypothesis in sorted({known[label].hypothesis for label in values}):
        own = [label for label in values if known[label].hypothesis == hypothesis]
        sign = np.array([known[label].predicted for label in own])
        effects = (sign[:, None] * _unit_ranks(values[own].to_numpy(dtype=float).T)) @ lent.T
        for name, null in ((MEDIAN, np.median(effects, axis=0)), (SHARE, (effects > 1e-9).mean(axis=0))):
            tails = [permutation_result(null[0], null, side).p_value for side in ("greater", "less")]
            low, high = np.quantile(null, [0.025, 0.975])
            rows.append((hypothesis, name, float(null[0]), float(low), float(high), min(1.0, 2 * min(tails))))
    return pd.DataFrame(rows, columns=["hypothesis", "statistic", "observed", "low", "high", "p"])


@checked
def readings(tests: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """One word per hypothesis and data set, by a rule that can be written down before any number.

    "not shown": the adjusted p of the median effect is above 0.05. Else "opposite" where the median effect is below 0;
    "holds" where at least 90 % of the specifications have the predicted sign; and "depends" where fewer have.

    Args:
        tests: see :func:`curve_test`, by data set.

    Returns:
        One row per hypothesis and data set: `hypothesis`, `dataset`, `median`, `agrees`, `adjusted` (p of the median
        effect, Benjamini-Hochberg over all rows), `reading`.

    Examples:
        >>> noise = np.repeat([0.0, 0.2, 0.5, 0.8, 1.0], 2)
        >>> values = pd.DataFrame({specifications()[0].label: noise})
        >>> readings({"digits": curve_test(values, 1 - noise, noise, np.random.default_rng(0))})["reading"].tolist()
        ['opposite']

    References:
        Benjamini and Hochberg (1995), doi:10.1111/j.2517-6161.1995.tb02031.x.
    """
    rows = []
    for dataset, table in tests.items():
        _as_tested(table, f"tests[{dataset!r}]")
        for hypothesis, group in table.groupby("hypothesis"):
            median, share = (group[group["statistic"] == name].iloc[0] for name in (MEDIAN, SHARE))
            rows.append((hypothesis, dataset, median["observed"], share["observed"], median["p"]))
    if not rows:
        raise ValueError("tests must hold at least one hypothesis, received none")
    found = pd.DataFrame(rows, columns=["hypothesis", "dataset", "median", "agrees", "adjusted"])
    found["adjusted"] = false_discovery_control(found["adjusted"])
    told = [found["adjusted"] > LEVEL, found["median"] < 0, found["agrees"] >= MOST]
    found["reading"] = np.select(told, ["not shown", "opposite", "holds"], "depends")
    return found.sort_values("hypothesis", kind="stable", ignore_index=True)


def _as_tested(table: pd.DataFrame, name: str) -> None:
    """Refuse what is no table of :func:`curve_test`."""
    key = ("hypothesis", "statistic")
    as_frame(table, key, name, finite=("observed", "p"), key=key)
    for hypothesis, group in table.groupby("hypothesis"):
        if set(group["statistic"]) != {MEDIAN, SHARE}:
            raise ValueError(f"{name} must hold {MEDIAN!r} and {SHARE!r} of {hypothesis}, received something else")
    if not table["p"].between(0, 1).all():
        raise ValueError(f"{name} must hold p values from 0 to 1, received others")


def _lent(accuracy: np.ndarray, members: list[np.ndarray], rng: np.random.Generator, permutations: int) -> np.ndarray:
    """Accuracy of every network under every order of the levels, shape (orders, networks); the first is its own."""
    size = max(map(len, members))
    lenders = np.stack([np.resize(own, size) for own in members])
    level, place = np.empty((2, len(accuracy)), dtype=np.int64)
    for number, own in enumerate(members):
        level[own], place[own] = number, np.arange(len(own))
    orders = permuted_orders(len(members), permutations, rng)
    return accuracy[lenders[orders[:, level], place]]


def _unit_ranks(rows: np.ndarray) -> np.ndarray:
    """Centred ranks of each row with length 1, or all 0 for a constant row: their products are Spearman's rho."""
    ranks = rankdata(rows, axis=1) - (rows.shape[1] + 1) / 2
    length = np.linalg.norm(ranks, axis=1, keepdims=True)
    return ranks / np.where(length > 0, length, 1)
