"""The explorer of networks: data set, networks and measure are chosen, and `explore.js` draws the networks themselves.

Everything comes from the committed tables of the second study, values to a four-thousandth of their range. Without the
script, and on paper, one plot of each data set stands in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from nbutils.drawing.display import format_number, interval_text
from nbutils.drawing.palette import BLUE, GREEN, ORANGE, PINK, RED
from nbutils.drawing.points import Axis, Plot, Point, as_json
from nbutils.evaluation.words import t_interval
from nbutils.pages.answering import Found, open_all
from nbutils.second.answers import course, sound, values_of
from nbutils.second.replication import OTHERS
from nbutils.stats import correlation

__all__ = ["decoded", "encoded", "explorer_data", "explorer_html", "studies"]

# Measures of trained networks and of the courses of runs: their names in the tables -> words.
MEASURES = {
    "modularity": "modularity Q",
    "excess": "Q beyond chance",
    "remainder": "remainder of Q beyond class preference",
    "communities": "communities",
    "active_entropy": "binned entropy per active neuron",
    "block_entropy": "entropy of blocks of six",
    "mutual_information": "mutual information with the class",
    "class_selectivity": "class selectivity",
    "mean_cofiring": "mean co-firing",
    "dead_share": "dead neurons, share",
    "effective_rank": "effective rank, last layer",
    "linear_probe": "linear probe, last layer",
    "neural_collapse": "neural collapse (NC1)",
    "confidence": "mean confidence on the probe",
}
COURSES = {
    **{name: MEASURES[name] for name in ("modularity", "active_entropy", "block_entropy")},
    "test_accuracy": "test accuracy",
    "train_accuracy": "training accuracy",
    "train_loss": "training loss",
}
RUNS = (
    ("runs", "true", "true labels, epoch by epoch"),
    ("runs", "mixed:0.5", "half of the labels redrawn, epoch by epoch"),
    ("runs", "random", "random labels, epoch by epoch"),
    ("memorising", "random", "random labels until they are memorised"),
)
SETTINGS = {
    "examples": "training images",
    "model": "layers",
    "learning_rate": "learning rate",
    "batch_size": "batch size",
    "dropout": "dropout",
    "weight_decay": "weight decay",
    "epochs": "epochs",
}
COLOURS = (ORANGE, BLUE, GREEN, PINK, RED)  # of levels of a setting, as in explore.js
DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
STEPS = len(DIGITS) ** 2 - 2  # the last number of two digits is "missing"
ACCURACY = "test accuracy"


def encoded(values: Sequence[float]) -> dict[str, Any]:
    """Numbers as two letters each, 4,095 steps between the least and the most; "__" where there is none.

    Examples:
        >>> encoded([0.0, 1.0, float("nan"), 0.5])
        {'lo': 0.0, 'hi': 1.0, 'v': 'AA_-__f_'}
    """
    array = np.asarray(values, dtype=float).ravel()
    known = array[np.isfinite(array)]
    low, high = (float(f"{end:.6g}") for end in (known.min(), known.max())) if len(known) else (0.0, 0.0)
    steps = np.round(STEPS * np.clip((array - low) / ((high - low) or 1), 0, 1))
    codes = np.where(np.isfinite(array), steps, STEPS + 1).astype(int)
    return {"lo": low, "hi": high, "v": "".join(DIGITS[c // 64] + DIGITS[c % 64] for c in codes)}


def decoded(kept: dict[str, Any]) -> np.ndarray:
    """Numbers of :func:`encoded`, as the script reads them."""
    codes = [64 * DIGITS.index(a) + DIGITS.index(b) for a, b in zip(kept["v"][::2], kept["v"][1::2], strict=True)]
    values = kept["lo"] + (kept["hi"] - kept["lo"]) * np.array(codes) / STEPS
    return np.where(np.equal(codes, STEPS + 1), np.nan, values)


@cache
def studies() -> list[Found]:
    """All data sets and architectures whose tables are committed."""
    return [*open_all(), *open_all(where=OTHERS)]


def explorer_data(found: Sequence[Found]) -> dict[str, Any]:
    """All that the script draws and says.

    Args:
        found: data sets.

    Returns:
        `sets`: title and groups of each. A group has `title`, `kind` ("dots" or "lines"), `x` (label -> numbers), `y`
        (measure in words -> numbers), and for each label of `x` a sentence and by measure its estimate with interval.
    """
    sets = []
    for one in found:
        groups = [make(one) for make in (zoo_group, grid_group)] + [course_group(one, *run) for run in RUNS]
        sets.append({"title": one.title, "groups": [group for group in groups if group]})
    return {"sets": [one for one in sets if one["groups"]]}


def zoo_group(found: Found) -> dict[str, Any] | None:
    """Networks with clean labels and many settings, a dot each."""
    networks, left_out = sound(found.tables, "small", "true")
    if networks.empty or found.board.empty:
        return None
    sentence = (
        "{n} networks" + _left_out(left_out) + ": rank correlation of {measure} with " + ACCURACY + " is {estimate}."
    )
    return {
        **_dots(found, networks, "clean labels, many settings", {ACCURACY: networks["accuracy"]}),
        "said": {ACCURACY: sentence},
        "estimates": {ACCURACY: _estimates(found.board, "rho", "low", "high")},
        "colour": _levels(networks, "examples", lambda value: f"{value:,.0f} training images"),
        "settings": _settings(networks),
    }


def grid_group(found: Found) -> dict[str, Any] | None:
    """Networks with more or less of their labels redrawn, a dot each."""
    networks, left_out = sound(found.tables, "grid")
    if networks.empty or found.board.empty or found.board["noise_rho"].isna().all():
        return None
    label = "share of labels redrawn"
    sentence = (
        "{n} networks" + _left_out(left_out) + ": rank correlation of {measure} with the " + label + " is {estimate}."
    )
    return {
        **_dots(found, networks, "a grid of wrong labels", {label: networks["noise"]}),
        "said": {label: sentence},
        "estimates": {label: _estimates(found.board, "noise_rho", "noise_rho_low", "noise_rho_high")},
    }


def _left_out(count: int) -> str:
    return f" ({count} degenerate left out)" if count else ""


def _dots(found: Found, networks: pd.DataFrame, title: str, x: dict[str, pd.Series]) -> dict[str, Any]:
    values = values_of(found.tables, networks, list(MEASURES)).dropna(axis=1, how="all")
    return {
        "title": title,
        "kind": "dots",
        "n": len(networks),
        "x": {label: encoded(own) for label, own in x.items()},
        "y": {called: encoded(values[name]) for name, called in MEASURES.items() if name in values},
    }


def _estimates(board: pd.DataFrame, *columns: str) -> dict[str, str]:
    """Estimates with intervals by measure, as they stand on the leaderboard."""
    known = board[board["measure"].isin(MEASURES)].set_index("measure")
    told = {}
    for name, row in known.iterrows():
        words = _told(*(row[column] for column in columns))
        told[MEASURES[name]] = (
            words if row["measurable"] else f"{words}; not measurable, by the rules, on this data set"
        )
    return told


def _levels(networks: pd.DataFrame, column: str, words: Callable[[float], str]) -> dict[str, Any] | None:
    """A colour for each level of a setting, if there are few."""
    levels = sorted(networks[column].unique())
    if not 1 < len(levels) <= len(COLOURS):
        return None
    return {"levels": [words(level) for level in levels], "v": [levels.index(value) for value in networks[column]]}


def _settings(networks: pd.DataFrame) -> list[dict[str, Any]]:
    """What differs between networks: words of each level, and a letter of it for every network."""
    found = []
    for column, words in SETTINGS.items():
        values = networks[column].map(lambda value: f"{value:g}" if isinstance(value, float) else str(value))
        levels = list(dict.fromkeys(values))
        if 1 < len(levels) <= len(DIGITS):
            codes = "".join(DIGITS[levels.index(value)] for value in values)
            found.append({"name": words, "levels": [level.removeprefix("mlp:") for level in levels], "v": codes})
    return found


def course_group(found: Found, design: str, labels: str, title: str) -> dict[str, Any] | None:
    """Runs over their epochs, a line each."""
    networks, left_out = sound(found.tables, design, labels)
    if networks.empty or found.tables.series.empty:
        return None
    courses = {called: course(found.tables, networks, name) for name, called in COURSES.items()}
    courses = {called: values for called, values in courses.items() if values.size and np.isfinite(values).any()}
    if ACCURACY not in courses:
        return None
    accuracy = courses[ACCURACY]
    n, epochs = accuracy.shape
    start = "{n} runs" + _left_out(left_out) + ": "
    shown = np.broadcast_to(np.arange(epochs), (n, epochs))
    return {
        "title": title,
        "kind": "lines",
        "n": n,
        "epochs": epochs,
        "x": {"epoch": encoded(shown[0]), ACCURACY: encoded(accuracy)},
        "y": {called: encoded(values) for called, values in courses.items()},
        "said": {
            "epoch": start + "{measure} changes by {estimate} from before training to the end.",
            ACCURACY: start + "over the epochs of a run its rank correlation with {measure} is {estimate} on average.",
        },
        "estimates": {
            "epoch": {called: _mean(_changes(values)) for called, values in courses.items()},
            ACCURACY: {called: _mean(_within(values, accuracy)) for called, values in courses.items()},
        },
    }


def _changes(values: np.ndarray) -> np.ndarray:
    """What each run's last value is above its first."""
    ends = [row[np.isfinite(row)][[0, -1]] for row in values if np.isfinite(row).sum() > 1]
    return np.array([last - first for first, last in ends])


def _within(values: np.ndarray, accuracy: np.ndarray) -> np.ndarray:
    """Spearman's rho of each run over its epochs, without the untrained network."""
    pairs = [(a[1:], b[1:], np.isfinite(a[1:]) & np.isfinite(b[1:])) for a, b in zip(values, accuracy, strict=True)]
    return np.array([correlation(a[both], b[both]) for a, b, both in pairs if both.sum() > 2])


def _mean(values: np.ndarray) -> str:
    """Mean over runs with the interval of Student's t."""
    return _told(float(np.mean(values)), *t_interval(values)) if len(values) > 1 else "unknown, of too few runs"


def _told(value: float, low: float, high: float) -> str:
    """An estimate and its interval within a sentence."""
    return interval_text(value, low, high).replace("(", "(95\u00a0% interval ")


def explorer_html(found: Sequence[Found]) -> str:
    """The figure: a plot of each data set that stands still, and what the script needs to draw all others."""
    data = explorer_data(found)
    if not data["sets"]:
        return "<p>No tables of the second study are here.</p>"
    panels = [
        f'<div class="nb-panel">{_still(one)}</div>' for one in data["sets"] if one["groups"][0]["kind"] == "dots"
    ]
    rho = [one.board.set_index("measure")["rho"]["modularity"] for one in found if len(one.board)]
    low, high = (format_number(end, 2) for end in (min(rho, default=np.nan), max(rho, default=np.nan)))
    networks = sum(len(one.tables.networks) for one in found)
    caption = (
        f"<strong>With clean labels, modularity's rank correlation with {ACCURACY} is {low} to {high}.</strong> A dot "
        "is a network, a thin line a run, the thick line their mean. Trained networks are measured on the held-out "
        f"probe, runs on the training probe. Source: the committed tables of {networks:,} networks."
    )
    return (
        f'<figure class="nb-figure nb-explorer mathjax_ignore" id="picture-explorer">'
        f'<div class="nb-panels">{"".join(panels)}</div>'
        f'<script type="application/json">{as_json(data)}</script><figcaption>{caption}</figcaption></figure>'
    )


def _still(one: dict[str, Any]) -> str:
    """Modularity over accuracy of the zoo of one data set."""
    group, measure = one["groups"][0], MEASURES["modularity"]
    x, y = decoded(group["x"][ACCURACY]), decoded(group["y"][measure])
    points = tuple(Point(a, b, "") for a, b in zip(x, y, strict=True) if np.isfinite([a, b]).all())
    told = f"{group['n']} networks, rank correlation {group['estimates'][ACCURACY][measure]}"
    axes = [Axis(words, *_round_ends(values), tuple(_ticks(values))) for words, values in ((ACCURACY, x), (measure, y))]
    title = f'<p class="nb-name"><strong>{escape(one["title"])}</strong><br>{told}</p>'
    alt = f"{one['title']}, {measure} over {ACCURACY}, a dot for each network: {told}."
    return title + Plot(points, axes[0], axes[1], alt, size=4).still


def _ticks(values: np.ndarray) -> list[float]:
    """Three or four round numbers over the range of values."""
    low, high = np.nanmin(values), np.nanmax(values)
    raw = (high - low) / 3 or 1
    step = next(m * 10 ** np.floor(np.log10(raw)) for m in (1, 2, 5, 10) if m * 10 ** np.floor(np.log10(raw)) >= raw)
    first = np.floor(low / step)
    return [float(f"{tick:.6g}") for tick in np.arange(first, max(np.ceil(high / step), first + 1) + 1) * step]


def _round_ends(values: np.ndarray) -> tuple[float, float]:
    ticks = _ticks(values)
    return ticks[0], ticks[-1]
