"""The one series that the paper's first author published, tested again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nbutils.drawing.display import INK, figure_style
from nbutils.drawing.palette import GREY, MEASURES
from nbutils.series import (
    correlation_test,
    detrended_correlation,
    difference_correlation,
    effective_sample_size,
    partial_correlation,
    saturating_curve,
)
from nbutils.stats import correlation
from nbutils.support.arguments import checked
from nbutils.support.checks import shown
from nbutils.support.files import is_file

# Pearson's r with the network entropy, as the authors give it at the end of their file.
PUBLISHED_PEARSON = {"train_accuracy": -0.873961562, "test_accuracy": -0.793526166}
ACCURACIES = {"train_accuracy": "training accuracy", "test_accuracy": "test accuracy"}
COLUMNS = ("epoch", "entropy_bits", *ACCURACIES)
# Pairs of simulated series: what moves the first, what moves the second, whether they are linked.
SCENARIOS = ("noise", "random walks", "same curve", "same curve, linked")
NOISE = 0.06  # about a curve that rises from 0 to 1


@checked
def read_series(path: Path | str) -> pd.DataFrame:
    """The published figures, one row per epoch.

    Args:
        path: a CSV file, seen from the project's folder or one level below it.

    Returns:
        Columns `epoch`, `entropy_bits`, `train_accuracy` and `test_accuracy`, ordered by epoch.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it lacks a column, holds something else than numbers, or fewer than five epochs.
    """
    given = Path(path)
    found = next((place for place in (given, Path("..") / given) if is_file(place)), None)
    if found is None:
        raise FileNotFoundError(f"path must be a file; there are no published figures at {shown(str(given), 200)}")
    try:
        table = pd.read_csv(found)[list(COLUMNS)].astype(float)
    except (KeyError, ValueError) as error:
        raise ValueError(f"{given} must hold numbers in columns {', '.join(COLUMNS)}: {error}") from None
    if len(table) < 5 or not np.isfinite(table.to_numpy()).all():
        raise ValueError(f"{given} must hold at least five epochs without gaps, received {len(table)} rows")
    return table.sort_values("epoch", ignore_index=True)


def series_tests(x: np.ndarray, y: np.ndarray, time: np.ndarray, constant: float = 4.0) -> Iterator[tuple]:
    """Six ways to ask whether two series of one run go together, from the naive one to those that allow for time.

    Args:
        x: values, shape (n,).
        y: values, shape (n,).
        time: epochs, shape (n,).
        constant: time constant of the curve that the last test takes out.

    Yields:
        (what is asked, correlation, effective number of pairs). One pair less where a variable is held fixed.
    """
    n, r = len(x), correlation(x, y, "pearson")
    yield "all epochs as independent", r, n
    yield "effective number of pairs", r, effective_sample_size(x, y)
    yield "the same, after Pyper and Peterman", r, effective_sample_size(x, y, method="pyper-peterman")
    steps = difference_correlation(x, y)
    yield "first differences", steps, effective_sample_size(np.diff(x), np.diff(y))
    yield "ranks, given the epoch", partial_correlation(x, y, time), n - 1
    yield "beside the curve", detrended_correlation(x, y, saturating_curve(time, constant)), n - 1


def simulated_pairs(
    scenario: str, count: int, epochs: int, rng: np.random.Generator, constant: float = 4.0
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of series whose truth is known.

    "noise" does not drift; "random walks" wander, each by itself; in "same curve" one series falls and the other
    rises along 1 - exp(-t / constant), each with noise of its own; in "same curve, linked" four fifths of the
    noise's variance is shared too, with opposite sign.

    Args:
        scenario: one of `SCENARIOS`.
        count: number of pairs.
        epochs: length of a series.
        rng: source of randomness.
        constant: time constant of the curve, in epochs.

    Returns:
        Two arrays of shape (count, epochs).

    Raises:
        ValueError: unknown scenario.
    """
    if scenario not in SCENARIOS:
        raise ValueError(f"scenario must be one of {', '.join(SCENARIOS)}, received {scenario!r}")
    x, y, shared = rng.normal(size=(3, count, epochs))
    if scenario == "noise":
        return x, y
    if scenario == "random walks":
        return x.cumsum(axis=1), y.cumsum(axis=1)
    weight = 0.8 if scenario == "same curve, linked" else 0.0
    x, y = (np.sqrt(weight) * shared + np.sqrt(1 - weight) * own for own in (x, y))
    curve = saturating_curve(np.arange(1, epochs + 1), constant)
    return -curve - NOISE * x, curve + NOISE * y


def rejection_rates(draws: int, epochs: int, rng: np.random.Generator, constant: float = 4.0) -> pd.DataFrame:
    """How often each test finds a correlation, at the 5 % level, in pairs of series whose truth is known.

    Args:
        draws: pairs per scenario.
        epochs: length of a series.
        rng: source of randomness.
        constant: time constant of the curve, in epochs.

    Returns:
        One row per test, `test` and one column per scenario, shares in [0, 1]. Large shares are right
        in the last scenario only.
    """
    time = np.arange(1, epochs + 1)
    rates = {}
    for scenario in SCENARIOS:
        pairs = zip(*simulated_pairs(scenario, draws, epochs, rng, constant), strict=True)
        found = [[(t, correlation_test(r, n)[0]) for t, r, n in series_tests(x, y, time, constant)] for x, y in pairs]
        rates[scenario] = pd.DataFrame([dict(row) for row in found]).le(0.05).mean()
    return pd.DataFrame(rates).rename_axis("test").reset_index()


NAMED = {"entropy_bits": "active_entropy", "train_accuracy": "train_accuracy", "test_accuracy": "accuracy"}
COLOURS = {name: MEASURES[of][0] for name, of in NAMED.items()}


def series_figure(series: pd.DataFrame, constant: float = 4.0) -> Figure:
    """The three series over epochs, each with the best fit of the saturating curve."""
    time = series["epoch"].to_numpy()
    design = np.column_stack([np.ones(len(time)), saturating_curve(time, constant)])
    with figure_style():
        fig, axes = plt.subplots(1, 3, figsize=(7.6, 2.7))
        for ax, name in zip(axes, COLOURS, strict=True):
            fit = design @ np.linalg.lstsq(design, series[name])[0]
            ax.plot(time, fit, color=GREY, lw=3, alpha=0.55, label="best fit of the curve")
            ax.plot(time, series[name], "o", color=COLOURS[name], ms=4)
            ax.set(title=ACCURACIES.get(name, "network entropy (bits)"), xlabel="epoch")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center")
        plt.close(fig)
    return fig


def sensitivity_figure(
    sensitivity: pd.DataFrame, published: Mapping[str, float], epochs: int, constant: float
) -> Figure:
    """What the curve's time constant decides: how closely it follows accuracy, and what the entropy adds to it.

    Args:
        sensitivity: one row per `time constant` and `accuracy`: Pearson's r of the `curve` with accuracy, and of
            entropy with accuracy `beside` the curve.
        published: r of entropy with each accuracy.
        epochs: length of the series.
        constant: the chosen time constant.
    """
    edge = np.tanh(1.96 / np.sqrt(epochs - 4))  # of r's that one cannot tell from 0
    with figure_style():
        fig, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.1))
        for name, own in sensitivity.set_index("time constant").groupby("accuracy", sort=False):
            left.plot(own["curve"], color=COLOURS[name], lw=2, label=ACCURACIES[name])
            left.axhline(abs(published[name]), color=COLOURS[name], lw=1.2, ls=":")
            right.plot(own["beside"], color=COLOURS[name], lw=2)
        right.axhspan(-edge, edge, color=GREY, alpha=0.15, lw=0)
        right.axhline(0, color=INK, lw=0.8, alpha=0.5)
        left.set(title="|r| of the curve (dotted: of the entropy)", ylim=(0.5, 1.02))
        right.set(title="r of entropy and accuracy beside the curve", ylim=(-1, 1))
        for ax in (left, right):
            ax.set(xscale="log", xlabel="time constant (epochs)")
            ax.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
            ax.minorticks_off()
            ax.axvline(constant, color=INK, lw=0.8, alpha=0.5, ls="--")
        fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(fig)
    return fig
