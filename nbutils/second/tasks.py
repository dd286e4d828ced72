"""Practical tasks of the second study, each against what people do now: choose an epoch, tell memorising early."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import stats

from nbutils.second.answers import course, sound
from nbutils.second.networks import Tables

__all__ = ["EARLY", "both_labels", "choose_epoch", "tell_memorising"]

EARLY = (1, 2, 3, 5, 10)  # epochs after which memorising is to be told
LABELS = ("true", "random")
SERIES = {"modularity": "modularity Q", "active_entropy": "binned entropy", "block_entropy": "entropy of blocks of six"}
USUAL = {"train_loss": "training loss", "train_accuracy": "training accuracy"}


def choose_epoch(studies: Mapping[str, Tables]) -> pd.DataFrame:
    """Test accuracy that is lost by choosing the epoch of a run without validation labels.

    For every run with true labels the epoch at which a measure on the training probe is largest, or smallest, is held
    against the epoch with the best test accuracy. Beside them what people do: take the last epoch, or the one with the
    lowest training loss; and any epoch at random.

    Args:
        studies: tables by title of the data set.

    Returns:
        One row per way of choosing, the best first: `way`, a column per data set and `mean`, in units of accuracy.
    """
    columns = {}
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
        columns[title] = {way: float(values.mean()) if len(values) else np.nan for way, values in found.items()}
    table = pd.DataFrame(columns)
    table["mean"] = table.mean(axis=1)
    return table.sort_values("mean").rename_axis("way").reset_index()


def tell_memorising(studies: Mapping[str, Tables]) -> pd.DataFrame:
    """How well a measure tells, early in training, networks that were given random labels from those with true ones.

    Args:
        studies: tables by title of the data set.

    Returns:
        One row per measure: `measure`, its predicted `direction` (random labels have "less" modularity and training
        accuracy, "more" entropy and training loss), and for every epoch of `EARLY` the area under the curve in that
        direction, mean over data sets: 1 where every pair is told apart, 0.5 for a coin, below it where the direction
        is wrong.
    """
    rows = []
    for name, called in {**SERIES, **USUAL}.items():
        less = name in ("modularity", "train_accuracy")
        areas = [_areas(tables, name, -1 if less else 1) for tables in studies.values()]
        means = pd.DataFrame(areas, columns=[f"epoch {epoch}" for epoch in EARLY]).mean()
        rows.append({"measure": called, "direction": "less" if less else "more", **means})
    return pd.DataFrame(rows)


def both_labels(studies: Mapping[str, Tables]) -> str:
    """Data sets with sound networks of true and of random labels, which :func:`tell_memorising` rests on.

    Args:
        studies: tables by title of the data set.

    Returns:
        Their titles, with commas; where there is none, "no data set".
    """
    both = [title for title, tables in studies.items() if all(len(sound(tables, "runs", kind)[0]) for kind in LABELS)]
    return ", ".join(both) or "no data set"


def _areas(tables: Tables, name: str, sign: int) -> list[float]:
    """Area under the curve at every early epoch; NaN where a series is shorter or not defined."""
    true, random = (course(tables, sound(tables, "runs", labels)[0], name) for labels in LABELS)
    found = []
    for epoch in EARLY:
        sides = [
            rows[:, epoch][np.isfinite(rows[:, epoch])] if epoch < rows.shape[1] else [] for rows in (random, true)
        ]
        told = len(sides[0]) and len(sides[1])
        pairs = stats.mannwhitneyu(sign * sides[0], sign * sides[1]).statistic if told else np.nan
        found.append(float(pairs) / (len(sides[0]) * len(sides[1])) if told else np.nan)
    return found
