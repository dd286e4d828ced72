from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import nbutils
from nbutils.pages import reconstruction
from nbutils.pages.reanalysis import read_series
from nbutils.pages.reconstruction import NEURONS, entropy_series
from nbutils.study.results import Results

SEEDS = range(3)
WAYS = ("trained on 0 to 1", "trained on bytes")


@pytest.fixture
def series(root):
    return read_series(root / "book/results/published/mnist_entropy.csv")


@pytest.fixture
def published(series):
    return series.set_index("epoch")["entropy_bits"]


def around(values, spread=1.0):
    """Three networks whose mean is the given series."""
    return pd.DataFrame({seed: values + spread * (seed - 1) for seed in SEEDS})


def study(neurons: int = NEURONS) -> Results:
    rows = [
        {"run": f"{part} {seed}", "parts": part, "labels": labels, "seed": seed, "epoch": epoch, "binned_entropy": bits}
        for part, labels, bits in (
            ("conditions", "true", 9.0),
            ("conditions", "random", 1.0),
            ("released", "true", 7.0),
        )
        for seed in SEEDS
        for epoch in range(3)
    ]
    table = pd.DataFrame(rows)
    runs = pd.DataFrame({"run": ["a"], "labels": ["true"], "status": ["done"]})
    seen = SimpleNamespace(layers=np.ones(neurons, int))
    return Results("mnist", table, runs, {"a": lambda: seen}, {})


def test_series_are_of_true_labels_from_the_first_epoch_on():
    ours = entropy_series(study())
    assert list(ours) == list(WAYS)
    for wide, bits in zip(ours.values(), (9, 7), strict=True):
        assert wide.index.tolist() == [1, 2]
        assert wide.columns.tolist() == list(SEEDS)
        assert (wide == bits).all(axis=None)


def test_sums_over_other_numbers_of_neurons_are_not_compared():
    assert entropy_series(study(neurons=160)) == {}


@pytest.fixture
def compared(cells, series):
    """What the page's cells make of series of ours: a row per series, and what is said of the closer training."""

    def run(ours):
        taken = SimpleNamespace(
            read_series=lambda path: series,
            entropy_series=lambda results: ours,
            bootstrap_interval=nbutils.bootstrap_interval,
            interval_text=nbutils.interval_text,
            published_panels=nbutils.published_panels,
        )
        page = SimpleNamespace(show=lambda drawn, *words: None)
        names = {"np": np, "pd": pd, "nb": taken, "reconstruction": reconstruction, "page": page, "results": None}
        return cells("reconstruction", "24", "25", "28", **names)

    return run


def test_the_published_series_is_close_to_itself(compared, published):
    beside = compared(dict.fromkeys(WAYS, around(published)))["beside"]
    row, own = beside.loc["published"], beside.loc[WAYS[0]]
    assert (row["first"], row["last"]) == (pytest.approx(2495.656955), pytest.approx(2275.429637))
    assert row["change"] == pytest.approx(2275.429637 - 2495.656955)
    assert np.isnan(row["inside"])
    assert own["distance"] == pytest.approx(0, abs=1e-9)
    assert (own["r"], own["r of steps"]) == (pytest.approx(1), pytest.approx(1))
    assert own["inside"] == 1


def test_a_shift_is_a_distance_and_no_difference_of_shape(compared, published):
    own = compared(dict.fromkeys(WAYS, around(published + 10)))["beside"].loc[WAYS[0]]
    assert own["distance"] == pytest.approx(10)
    assert own["r"] == pytest.approx(1)
    assert own["inside"] == 0


def test_only_shared_epochs_count(compared, published):
    own = compared(dict.fromkeys(WAYS, around(published).loc[:5]))["beside"].loc[WAYS[0]]
    assert own["last"] == pytest.approx(published[5])


def test_without_networks_of_ours_the_published_series_stands_alone(compared):
    names = compared({})
    assert names["beside"].index.tolist() == ["published"]
    assert names["said"] == []
    assert names["nearer"] == names["missing"]


@pytest.mark.parametrize("swapped", [False, True])
def test_the_closer_training_is_named(compared, published, swapped):
    noise = np.random.default_rng(0).normal(size=len(published))
    wides = [around(published + 5), around(published + 200 * noise)]
    ours = dict(zip(WAYS, wides[::-1] if swapped else wides, strict=True))
    names = compared(ours)
    for measure, said in zip(("distance", "r"), names["said"], strict=True):
        assert said.startswith(f"by {measure}, **{WAYS[swapped]}** (bytes minus 0 to 1: ")
    assert names["far"][WAYS[swapped]].mean() == pytest.approx((4 + 5 + 6) / 3)
    differences = [(each[WAYS[1]] - each[WAYS[0]]).mean() for each in (names["far"], names["shape"])]
    assert np.sign(differences).tolist() == ([-1, 1] if swapped else [1, -1])


def test_what_does_not_differ_is_closer_in_neither(compared, published):
    names = compared(dict.fromkeys(WAYS, around(published + 5)))
    assert [said.split(" (")[0] for said in names["said"]] == ["by distance, **neither**", "by r, **neither**"]
    assert (names["far"][WAYS[0]] == names["far"][WAYS[1]]).all()


def test_the_figure_shows_all_series_twice(series, published):
    drawn = reconstruction.published_panels(series, dict.fromkeys(WAYS, around(published + 5)))
    left, right = drawn.axes
    assert len(left.lines) == 2 * (len(SEEDS) + 1) + 1
    assert left.lines[-1].get_ydata() == pytest.approx(published.to_numpy())
    assert right.lines[-2].get_ydata()[0] == 0
    assert len(reconstruction.published_panels(series, {}).axes[0].lines) == 1
