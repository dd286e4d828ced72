"""Which measure is worth what: every candidate judged alike on the zoo and on the grid of label noise.

Nobody predicted any of this, so it explores: false discoveries over all measures are held by the method of Benjamini
and Hochberg. The measures that H2 and H3 name stand among the others, by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from nbutils.evaluation.added import added_variance
from nbutils.evaluation.ranking import (
    accuracy_noise,
    conditional_information,
    correlation_within,
    granulated_kendall,
    kendall,
    sign_errors,
)
from nbutils.evaluation.reliability import half_probe_reliability
from nbutils.evaluation.words import NAN, cluster_correlation, shared_cluster_correlation
from nbutils.runs.models import hidden_widths
from nbutils.second.answers import FEWEST, sound, values_of
from nbutils.second.candidates import CANDIDATES, Candidate
from nbutils.second.networks import PARTS, Tables
from nbutils.second.questions import PROTOCOL, SPANS
from nbutils.second.zoo import AXES, SHAPE
from nbutils.stats import correlation, pairwise_correlation
from nbutils.support.checks import shown

__all__ = ["ALONG", "BOARD", "WRONG", "detection", "leaderboard", "mean_rhos", "refutations", "zoo_axes"]

BOARD = "leaderboard.csv"  # beside the tables of a data set
WRONG = 0.25  # share of redrawn labels from which on labels count as wrong
DRAWS = 999
ALONG = "along_"  # begins the name of a column of Kendall's tau along one axis
ONE_NUMBER = "training images only"  # end of the name of a change
JUDGED = (
    *("rho", "low", "high", "p_value", "adjusted", "images_fixed", "kendall", "granulated", "worst_axis"),
    "worst_axis_kendall",
    *("information", "sign_error", "gain", "gain_low", "gain_high"),
)


def zoo_axes(networks: pd.DataFrame) -> pd.DataFrame:
    """What networks of a zoo were trained with: one column per axis that differs between them.

    Args:
        networks: rows of `Tables.networks`.

    Returns:
        Same index; width and depth are read from the name of the model.
    """
    layers = networks["model"].map(hidden_widths)
    shape = {"width": layers.map(lambda widths: widths[0]), "depth": layers.map(len)}
    found = pd.DataFrame({name: shape[name] if name in SHAPE else networks[name] for name in AXES})
    return found.loc[:, found.nunique() > 1]


def leaderboard(
    tables: Tables,
    kind: str = "small",
    measures: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Every measure of one data set, judged alike.

    Args:
        tables: of one data set.
        kind: which zoo.
        measures: columns; None takes all but accuracy on the probe, which is performance itself.

    Returns:
        One row per measure, the strongest association first: `measure`, `called`, `family`, `needs`, `seconds` (median
        cost for one network), `networks`; `reliability` (NaN for what no probe is needed) and `measurable`; Spearman's
        `rho` with accuracy over the zoo, `low`, `high` (families resampled), `p_value` and `adjusted`; `images_fixed`,
        its mean among networks with as many training images (NaN for that number itself); `kendall`,
        `granulated` (mean of Kendall's tau along single axes), `along_` and each axis by name (that tau), `worst_axis`
        and `worst_axis_kendall` (in the direction of rho), `information` (conditional mutual information, two axes
        given), `sign_error` (worst case, in the direction of rho); `gain` in cross-validated R2 of ranks beyond
        the other baselines with `gain_low` and `gain_high`; and of the grid `noise_rho` and `detects` with their
        intervals, see :func:`detection`.

    Raises:
        ValueError: too few sound networks, or no such measure.
    """
    networks, _ = sound(tables, kind, "true")
    if networks["family"].nunique() < FEWEST:
        raise ValueError(f"tables must hold at least {FEWEST} families of sound networks, received {len(networks)}")
    found = {column: (one, called) for one in CANDIDATES for column, called in one.columns.items()}
    present = set(tables.measures["measure"])
    chosen = [name for name in found if name in present and name != "probe_accuracy"] if measures is None else measures
    if unknown := [name for name in chosen if name not in found]:
        raise ValueError(f"measures must be columns of candidates, received {shown(unknown[0])}")
    seconds = tables.costs.groupby("entry")["seconds"].median()
    halves = [values_of(tables, networks, chosen, part).set_axis(networks.index) for part in ("first", "second")]
    values = values_of(tables, networks, [*chosen, *PROTOCOL.baselines]).set_axis(networks.index)
    values = values.loc[:, ~values.columns.duplicated()]
    grid = detection(tables, chosen).set_index("measure")
    rows = []
    for name in chosen:
        one, called = found[name]
        row = {"measure": name, "called": called, "family": one.family, "needs": one.needs}
        row |= {"seconds": float(seconds.get(one.name, NAN)), **_repeated(one, name, *halves)}
        row |= _ranks(networks, values, name)
        rows.append(row | grid.loc[name].to_dict())
    board = pd.DataFrame(rows)
    tested = board["p_value"].notna()
    board.loc[tested, "adjusted"] = stats.false_discovery_control(board.loc[tested, "p_value"])
    return board.sort_values("rho", key=lambda rho: -rho.abs(), ignore_index=True)


def _repeated(one: Candidate, name: str, first: pd.DataFrame, second: pd.DataFrame) -> dict[str, object]:
    """Whether two half probes agree about it."""
    if not one.by_halves:
        return {"reliability": NAN, "measurable": True}
    pair = pd.concat([first[name], second[name]], axis=1).dropna()
    if len(pair) < FEWEST:
        return {"reliability": NAN, "measurable": False}
    options = {"span": SPANS.get(name), "least": PROTOCOL.reliability, "share": PROTOCOL.spread}
    half = half_probe_reliability(*pair.to_numpy().T, **options)
    return {"reliability": half.whole, "measurable": half.measurable}


def _ranks(networks: pd.DataFrame, values: pd.DataFrame, name: str) -> dict[str, object]:
    """Association with accuracy over networks where the measure is defined."""
    own = networks[np.isfinite(values[name].to_numpy(float))]
    accuracy, families = own["accuracy"].to_numpy(), own["family"]
    measure = values.loc[own.index, name].to_numpy()
    found: dict[str, object] = {"networks": len(own), **dict.fromkeys(JUDGED, NAN), "worst_axis": ""}
    if families.nunique() < FEWEST:
        return found
    rho = cluster_correlation(measure, accuracy, families, PROTOCOL.seed, level=PROTOCOL.level)
    sign = 1 if rho.value >= 0 else -1
    axes = zoo_axes(own)
    along = granulated_kendall(measure, accuracy, axes).dropna()
    noise = accuracy_noise(int(own["test_images"].iloc[0]))
    wrong = sign_errors(measure, accuracy, axes, noise=noise, direction=sign)
    found |= {"rho": rho.value, "low": rho.low, "high": rho.high, "p_value": rho.p_value}
    found["images_fixed"] = correlation_within(measure, accuracy, own["examples"].fillna(0))
    found |= {"kendall": kendall(measure, accuracy), "granulated": along["kendall"].mean()}
    if len(along):
        worst = along.loc[(sign * along["kendall"]).idxmin()]
        found |= {"worst_axis": worst["axis"], "worst_axis_kendall": sign * worst["kendall"]}
        found |= {f"{ALONG}{axis}": tau for axis, tau in zip(along["axis"], along["kendall"], strict=True)}
    found["information"] = conditional_information(measure, accuracy, axes)
    found["sign_error"] = wrong["error"].iloc[0] if len(wrong) else NAN
    base = values.loc[own.index, [one for one in PROTOCOL.baselines if one != name]]
    base = base.dropna(axis=1, how="all").dropna()  # a transformer has no path norm
    if own.loc[base.index, "family"].nunique() >= 2 * PROTOCOL.folds:
        rest = own.loc[base.index]
        ranks = [table.rank() for table in (rest["accuracy"], base, values.loc[base.index, name])]
        options = {"folds": PROTOCOL.folds, "level": PROTOCOL.level}
        gain = added_variance(*ranks, rest["family"], PROTOCOL.seed, **options).gain
        found |= {"gain": gain.value, "gain_low": gain.low, "gain_high": gain.high}
    return found


def mean_rhos(
    tables: Sequence[Tables], boards: Sequence[pd.DataFrame], kind: str = "small", draws: int = 499
) -> pd.DataFrame:
    """Mean over data sets of every measurable measure's rho, with an interval that draws the same families on all.

    Zoos share their settings, so that data sets are not independent witnesses, see
    :func:`nbutils.evaluation.words.shared_cluster_correlation`.

    Args:
        tables: of each data set.
        boards: of each data set, see :func:`leaderboard`.
        kind: which zoo.
        draws: of families.

    Returns:
        By what pages call a measure: `mean`, over the data sets that measure it, `low` and `high`.
    """
    zoos = [sound(one, kind, "true")[0] for one in tables]
    usable = [board[board["measurable"] & board["rho"].notna()].set_index("measure")["called"] for board in boards]
    values = [
        values_of(one, zoo, list(names.index)).set_axis(zoo.index)
        for one, zoo, names in zip(tables, zoos, usable, strict=True)
    ]
    rows = {}
    for name, called in pd.concat(usable).drop_duplicates().items():
        pairs = []
        for zoo, table in zip(zoos, values, strict=True):
            if name in table:
                own = zoo[np.isfinite(table[name])]
                pairs.append((table.loc[own.index, name], own["accuracy"], own["family"]))
        found = shared_cluster_correlation(*zip(*pairs, strict=True), PROTOCOL.seed, level=PROTOCOL.level, draws=draws)
        rows[called] = {"mean": found.value, "low": found.low, "high": found.high}
    return pd.DataFrame(rows).T.rename_axis("called")


def refutations(tables: Tables, measures: Sequence[str], kind: str = "small", shuffles: int = 200) -> pd.DataFrame:
    """Spearman's rho with accuracy again, each time with one thing changed that ought not to matter.

    Args:
        tables: of one data set.
        measures: columns.
        kind: which zoo.
        shuffles: how often accuracies are permuted.

    Returns:
        One row per change: `change` in words, `networks`, and a column per measure. The changes: either half of the
        probe; either seed of every configuration; networks with one number of training images only; the families
        along each axis left out in turn; and accuracies permuted over networks, of which the largest rho in
        size is given.
    """
    networks, _ = sound(tables, kind, "true")
    values = {part: values_of(tables, networks, measures, part).set_axis(networks.index) for part in PARTS}
    chosen = {"as on the board": networks.index}
    rows = [
        ("half of the probe: first", networks.index, "first"),
        ("half of the probe: second", networks.index, "second"),
    ]
    seed = (
        networks.sort_values("seed").groupby("configuration").cumcount().reindex(networks.index)
    )  # rows stand by address
    chosen |= {
        f"seed {number + 1} of each configuration": networks.index[seed == number] for number in sorted(set(seed))
    }
    for images in sorted(set(networks["examples"].dropna())):
        chosen[f"{int(images):,} {ONE_NUMBER}"] = networks.index[networks["examples"] == images]
    for axis in sorted(set(networks["axis"])):
        chosen[f"families along {axis.replace('_', ' ')} left out"] = networks.index[networks["axis"] != axis]
    rows = [(change, index, "whole") for change, index in chosen.items()] + rows
    found = []
    for change, index, part in rows:
        own = values[part].loc[index]
        rho = {name: _rho(own[name], networks.loc[index, "accuracy"]) for name in measures}
        found.append({"change": change, "networks": len(index), **rho})
    rng = np.random.default_rng(PROTOCOL.seed)
    permuted = np.array([rng.permutation(networks["accuracy"]) for _ in range(shuffles)])
    luck = {name: _largest_rho(values["whole"][name].to_numpy(float), permuted) for name in measures}
    found.append({"change": f"accuracies permuted, largest of {shuffles}", "networks": len(networks), **luck})
    return pd.DataFrame(found)


def _rho(measure: pd.Series, accuracy: Sequence[float]) -> float:
    known = np.isfinite(measure.to_numpy(float))
    return correlation(measure[known], np.asarray(accuracy)[known]) if known.sum() > 1 else NAN


def _largest_rho(measure: np.ndarray, permuted: np.ndarray) -> float:
    """Largest in size of a measure's rho with each row of accuracies."""
    known = np.isfinite(measure)
    found = pairwise_correlation(measure[None, known], permuted[:, known]) if known.sum() > 1 else [[NAN]]
    return float(np.abs(found).max())


def detection(tables: Tables, measures: Sequence[str]) -> pd.DataFrame:
    """How measures follow label noise over the grid, and how well they tell that a quarter or more of labels are wrong.

    Args:
        tables: of one data set.
        measures: columns.

    Returns:
        One row per measure: `noise_rho`, Spearman's rho with the share of redrawn labels, and `detects`, the area under
        the curve of true against false alarms, in the direction of `noise_rho` (0.5 is a coin, 1 never wrong), both
        with 95 % intervals (`_low`, `_high`) from resampling seeds, whose networks at all levels go together. NaN where
        fewer than two levels or seeds are there.
    """
    networks, _ = sound(tables, "grid")
    values = values_of(tables, networks, measures)
    noise, seeds = networks["noise"].to_numpy(float), networks["seed"].to_numpy()
    rng, different = np.random.default_rng(PROTOCOL.seed), np.unique(seeds)
    drawn = [rng.choice(different, len(different)) for _ in range(DRAWS)] if len(different) > 1 else []
    picked = [np.concatenate([np.flatnonzero(seeds == seed) for seed in draw]) for draw in drawn]
    rows = []
    for name in measures:
        own = values[name].to_numpy(float)
        found = _detected(own, noise)
        spread = np.array([_detected(own[chosen], noise[chosen], found[0]) for chosen in picked])
        usable = spread[np.isfinite(spread).all(axis=1)] if len(spread) else np.empty((0, 2))
        tail = (1 - PROTOCOL.level) / 2
        low, high = np.quantile(usable, [tail, 1 - tail], axis=0) if len(usable) else np.full((2, 2), NAN)
        row: dict[str, object] = {"measure": name}
        for column, value, *ends in zip(("noise_rho", "detects"), found, low, high, strict=True):
            row |= {column: value, f"{column}_low": float(ends[0]), f"{column}_high": float(ends[1])}
        rows.append(row)
    return pd.DataFrame(rows)


def _detected(values: np.ndarray, noise: np.ndarray, direction: float | None = None) -> tuple[float, float]:
    """Rho with the noise, and the area under the curve in the direction of that rho, or of another."""
    known = np.isfinite(values)
    values, noise = values[known], noise[known]
    wrong = noise >= WRONG
    if not wrong.any() or wrong.all() or np.ptp(values) == 0:
        return NAN, NAN
    rho = correlation(values, noise)
    sign = np.sign(rho if direction is None else direction) or 1.0
    ranks = stats.rankdata(sign * values)
    area = (ranks[wrong].sum() - wrong.sum() * (wrong.sum() + 1) / 2) / (wrong.sum() * (~wrong).sum())
    return float(rho), float(area)
