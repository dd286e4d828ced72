"""The one published series of network entropy beside ours: how close do networks trained in two ways come to it?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from nbutils.arguments import checked
from nbutils.arrays import as_frame
from nbutils.correlations import correlation
from nbutils.evidence import RULES
from nbutils.results import Results, as_results
from nbutils.stats import bootstrap_interval

__all__ = ["NEURONS", "compare_trainings", "entropy_series", "published_table"]

TRAININGS = {"trained on 0 to 1": "conditions", "trained on bytes": "released"}  # -> part of the study
NEURONS = 1024  # hidden neurons of the network whose entropy is published


@checked
def entropy_series(results: Results) -> dict[str, pd.DataFrame]:
    """Network entropy in the paper's definition on all training images, of networks trained on 0 to 1 and on bytes.

    Args:
        results: of a data set.

    Returns:
        For each way of training, bits per epoch from 1 on and network: index `epoch`, one column per seed. Empty where
        networks do not have the `NEURONS` hidden neurons of the published one: a sum over neurons grows with them.
    """
    if len(as_results(results).run("true").layers) != NEURONS:
        return {}
    found = {}
    for name, part in TRAININGS.items():
        own = results.part(part).query("labels == 'true' and epoch > 0")
        if not own.empty:
            found[name] = own.pivot(index="epoch", columns="seed", values="binned_entropy")
    return found


@checked
def published_table(series: pd.DataFrame, ours: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The published series, and how close ours come to it.

    Args:
        series: see :func:`nbutils.published.read_series`.
        ours: see :func:`entropy_series`.

    Returns:
        One row for the published series and one per way of training: `series`, `first`, `last` (bits, at the first and
        last shared epoch; means over networks), `change` (bits), `distance` (root mean square of the mean series minus
        the published one, bits), `r` (Pearson), `r of steps` (of the changes from epoch to epoch), `inside` (share of
        epochs at which the published value lies within the range of our networks).
    """
    as_compared(series, ours)
    published, rows = series.set_index("epoch")["entropy_bits"], []
    for name, wide in {"published": published.to_frame(), **ours}.items():
        own, theirs = wide.mean(axis=1).align(published, join="inner")
        range_ = wide.loc[own.index]
        row = {"series": name, "first": own.iloc[0], "last": own.iloc[-1], "change": own.iloc[-1] - own.iloc[0]}
        if name != "published":
            inside = (range_.min(axis=1) <= theirs) & (theirs <= range_.max(axis=1))
            row |= {"distance": _distance(own, theirs), "r": correlation(own, theirs, "pearson")}
            row |= {"r of steps": correlation(np.diff(own), np.diff(theirs), "pearson"), "inside": inside.mean()}
        rows.append(row)
    return pd.DataFrame(rows)


@checked
def compare_trainings(series: pd.DataFrame, ours: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Which of two ways of training gives series closer to the published one, networks paired by seed.

    Args:
        series: see :func:`nbutils.published.read_series`.
        ours: two ways of training, see :func:`entropy_series`.

    Returns:
        One row for `distance` (root mean square, bits) and one for `r` (Pearson): `measure`, the mean over networks for
        each way, `difference` (second minus first), `low`, `high` (95 % interval over networks), and `closer`: the way
        that the interval favours, or "neither". Empty unless there are two ways.
    """
    as_compared(series, ours)
    if len(ours) != 2:
        return pd.DataFrame()
    published, rows, names = series.set_index("epoch")["entropy_bits"], [], list(ours)
    for measure, closeness, better in (("distance", _distance, -1), ("r", _pearson, 1)):
        each = [wide.apply(lambda own, f=closeness: f(*own.align(published, join="inner"))) for wide in ours.values()]
        difference = (each[1] - each[0]).dropna()
        low, high = bootstrap_interval(difference, np.random.default_rng(RULES.seed))
        favours = 0 if not low * high > 0 else better * np.sign(low)
        closer = {-1: names[0], 0: "neither", 1: names[1]}[int(favours)]
        means = dict(zip(names, (values.mean() for values in each), strict=True))
        rows.append({"measure": measure, **means, "difference": difference.mean(), "low": low, "high": high})
        rows[-1]["closer"] = closer
    return pd.DataFrame(rows)


def as_compared(series: pd.DataFrame, ours: Mapping[str, pd.DataFrame]) -> None:
    """Refuse a published series, or series of ours, that cannot be set beside each other."""
    if as_frame(series, (), "series", finite=("epoch", "entropy_bits"), key=("epoch",)).empty:
        raise ValueError("series must hold at least one epoch, received none")
    for name, wide in ours.items():
        as_frame(wide, (), f"ours[{name!r}]", finite=list(wide))
        if wide.empty or wide.index.has_duplicates or not wide.index.isin(series["epoch"]).any():
            raise ValueError(f"ours[{name!r}] must have one row per epoch, some of those of series, received others")


def _distance(own: pd.Series, theirs: pd.Series) -> float:
    return float(np.sqrt(np.mean((own - theirs) ** 2)))


def _pearson(own: pd.Series, theirs: pd.Series) -> float:
    return correlation(own, theirs, "pearson")
