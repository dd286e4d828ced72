from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

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


def test_the_figure_shows_all_series_twice(series, published):
    drawn = reconstruction.published_panels(series, dict.fromkeys(WAYS, around(published + 5)))
    left, right = drawn.axes
    assert len(left.lines) == 2 * (len(SEEDS) + 1) + 1
    assert left.lines[-1].get_ydata() == pytest.approx(published.to_numpy())
    assert right.lines[-2].get_ydata()[0] == 0
    assert len(reconstruction.published_panels(series, {}).axes[0].lines) == 1
