"""Practical tasks of the second study, each against what people do now.

Choose an epoch without validation labels, tell random labels from true ones early, and notice that many labels are
wrong.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from nbutils.second.answers import course, sound
from nbutils.second.networks import Tables
from nbutils.second.questions import PROTOCOL

__all__ = ["EARLY", "choose_epoch", "tell_random_labels", "tell_wrong_labels"]

EARLY = (1, 2, 3, 5, 10)  # epochs after which random labels are to be told
LABELS = ("true", "random")
SERIES = {"modularity": "modularity Q", "active_entropy": "binned entropy", "block_entropy": "entropy of blocks of six"}
USUAL = {"train_loss": "training loss", "train_accuracy": "training accuracy"}
DRAWS = 2000  # resamples of networks
TAILS = ((1 - PROTOCOL.level) / 2, (1 + PROTOCOL.level) / 2)


def choose_epoch(studies: Mapping[str, Tables]) -> pd.DataFrame:
    """Test accuracy that is lost by choosing the epoch of a run without validation labels.

    For every run with true labels the epoch at which a measure on the training probe is largest, or smallest, is held
    against the epoch with the best test accuracy. Beside them what people do: take the last epoch, or the one with the
    lowest training loss; and any epoch at random.

    Args:
        studies: tables by title of the data set.

    Returns:
        One row per way of choosing, the best first: `way`, a column per data set, `mean` over them, and its 95 %
        interval `low` to `high` from resampling runs within data sets, in units of accuracy.
    """
    columns, drawn = {}, {}
    for title, tables in studies.items():
        runs, _ = sound(tables, "runs", "true")
        test = course(tables, runs, "test_accuracy", first=1)
        lost = test.max(axis=1, keepdims=True) - test
        found = {"the last epoch": lost[:, -1], "any epoch, at random": lost.mean(axis=1)}
        for name, called in {**SERIES, **USUAL}.items():
            values = course(tables, runs, name, first=1)
            known = np.isfinite(values).all(axis=1)
            for word, sign in (("largest", 1), ("smallest", -1)):
                best = (sign * values[known]).argmax(axis=1)
                found[f"{word} {called}"] = lost[known][np.arange(known.sum()), best]
        rng = np.random.default_rng(PROTOCOL.seed)
        columns[title] = {way: float(values.mean()) if len(values) else np.nan for way, values in found.items()}
        drawn[title] = {way: _resampled(values, rng) for way, values in found.items()}
    table = pd.DataFrame(columns)
    means = {way: np.nanmean([own[way] for own in drawn.values()], axis=0) for way in table.index}
    ends = pd.DataFrame({way: np.quantile(values, TAILS) for way, values in means.items()}, index=["low", "high"]).T
    table = table.assign(mean=table.mean(axis=1)).join(ends)
    return table.sort_values("mean").rename_axis("way").reset_index()


def _resampled(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Means of resamples, shape (draws,)."""
    if not len(values):
        return np.full(DRAWS, np.nan)
    return values[rng.integers(len(values), size=(DRAWS, len(values)))].mean(axis=1)


def tell_random_labels(studies: Mapping[str, Tables]) -> pd.DataFrame:
    """How well a measure tells, early in training, networks that were given random labels from those with true ones.

    All runs that finished count, degenerate ones too: how a run ends is not known early.

    Args:
        studies: tables by title of the data set.

    Returns:
        One row per measure, data set and epoch of `EARLY`: `measure`, its predicted `direction` (random labels have
        "less" modularity and training accuracy, "more" entropy and training loss), `dataset`, `epoch`, `networks` (of
        either kind), and the `area` under the curve in that direction with its 95 % interval `low` to `high` from
        resampling networks of either kind: 1 where every pair is told apart, 0.5 for a coin, below it where the
        direction is wrong; NaN where a series is shorter or not defined.
    """
    rows = []
    for name, called in {**SERIES, **USUAL}.items():
        sign, direction = (-1, "less") if name in ("modularity", "train_accuracy") else (1, "more")
        for title, tables in studies.items():
            true, random = (sign * course(tables, _finished(tables, labels), name) for labels in LABELS)
            for epoch in EARLY:
                sides = [own[:, epoch] if epoch < own.shape[1] else own.ravel()[:0] for own in (random, true)]
                sides = [own[np.isfinite(own)] for own in sides]
                rows.append((called, direction, title, epoch, min(map(len, sides)), *_area(*sides)))
    names = ["measure", "direction", "dataset", "epoch", "networks", "area", "low", "high"]
    return pd.DataFrame(rows, columns=names)


def _finished(tables: Tables, labels: str) -> pd.DataFrame:
    rows = tables.networks
    rows = rows[rows["designs"].map(lambda words: "runs" in words.split("+")) & (rows["labels"] == labels)]
    return rows[rows["status"] == "done"]


def _area(above: np.ndarray, below: np.ndarray) -> tuple[float, float, float]:
    """Share of pairs of which the first is larger, half of those that are equal, and its interval."""
    if not (len(above) and len(below)):
        return (np.nan,) * 3
    wins = (np.sign(np.subtract.outer(above, below)) + 1) / 2
    rng = np.random.default_rng(PROTOCOL.seed)
    first, second = (rng.integers(n, size=(DRAWS, n)) for n in wins.shape)
    spread = wins[first[:, :, None], second[:, None, :]].mean(axis=(1, 2))
    return float(wins.mean()), *np.quantile(spread, TAILS).tolist()


def tell_wrong_labels(boards: pd.DataFrame) -> pd.DataFrame:
    """How well a measure tells that a quarter or more of the labels are wrong, on a data set that is new to it.

    Whether more or less of a measure means wrong labels is learned from the *other* data sets: the sign that the sum of
    its rank correlations with the share of redrawn labels has there.

    Args:
        boards: leaderboards of two or more data sets, with `dataset`, `measure`, `called`, `noise_rho`, `detects`,
            `detects_low` and `detects_high`, see :func:`nbutils.second.leaderboard.detection`.

    Returns:
        One row per measure that two data sets or more have, the best first: `measure`, `called`, `datasets`, mean
        `area` under the curve, and the `worst` data set's with its interval, `low` to `high`.
    """
    rows = []
    known = boards.dropna(subset=["noise_rho", "detects"])
    for (name, called), own in known.groupby(["measure", "called"], sort=False):
        if len(own) < 2:
            continue
        others = np.sign(own["noise_rho"].sum() - own["noise_rho"])
        same = (np.sign(own["noise_rho"]) == others).to_numpy()
        ends = own[["detects", "detects_low", "detects_high"]].to_numpy(float)
        ends = np.where(same[:, None], ends, 1 - ends[:, [0, 2, 1]])
        worst = ends[:, 0].argmin()
        rows.append((name, called, len(own), ends[:, 0].mean(), *ends[worst]))
    table = pd.DataFrame(rows, columns=["measure", "called", "datasets", "area", "worst", "low", "high"])
    return table.sort_values("area", ascending=False, ignore_index=True)
