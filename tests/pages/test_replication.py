from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from nbutils.pages import reconstruction
from nbutils.pages.reanalysis import read_series
from nbutils.pages.reconstruction import NEURONS, compare_trainings, entropy_series, published_table
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


def test_sums_over_other_numbers_of_neurons_are_not_compared(series):
    assert entropy_series(study(neurons=160)) == {}
    assert published_table(series, {})["series"].tolist() == ["published"]
    assert compare_trainings(series, {}).empty


def test_the_published_series_is_close_to_itself(series, published):
    row, own = published_table(series, {"ours": around(published)}).to_dict("records")
    assert (row["first"], row["last"]) == (pytest.approx(2495.656955), pytest.approx(2275.429637))
    assert row["change"] == pytest.approx(2275.429637 - 2495.656955)
    assert np.isnan(row["distance"])
    assert own["distance"] == pytest.approx(0, abs=1e-9)
    assert (own["r"], own["r of steps"]) == (pytest.approx(1), pytest.approx(1))
    assert own["inside"] == 1


def test_a_shift_is_a_distance_and_no_difference_of_shape(series, published):
    own = published_table(series, {"ours": around(published + 10)}).iloc[1]
    assert own["distance"] == pytest.approx(10)
    assert own["r"] == pytest.approx(1)
    assert own["inside"] == 0


def test_only_shared_epochs_count(series, published):
    own = published_table(series, {"ours": around(published).loc[:5]}).iloc[1]
    assert own["last"] == pytest.approx(published[5])


@pytest.mark.parametrize("swapped", [False, True])
def test_the_closer_training_is_named(series, published, swapped):
    noise = np.random.default_rng(0).normal(size=len(published))
    wides = [around(published + 5), around(published + 200 * noise)]
    ours = dict(zip(WAYS, wides[::-1] if swapped else wides, strict=True))
    table = compare_trainings(series, ours).set_index("measure")
    assert set(table["closer"]) == {WAYS[swapped]}
    assert table.loc["distance", WAYS[swapped]] == pytest.approx((4 + 5 + 6) / 3)
    assert np.sign(table["difference"]).tolist() == ([-1, 1] if swapped else [1, -1])


def test_what_does_not_differ_is_closer_in_neither(series, published):
    ours = dict.fromkeys(WAYS, around(published + 5))
    table = compare_trainings(series, ours)
    assert table["closer"].tolist() == ["neither", "neither"]
    assert (table["difference"] == 0).all()


def test_the_figure_shows_all_series_twice(series, published):
    drawn = reconstruction.published_panels(series, dict.fromkeys(WAYS, around(published + 5)))
    left, right = drawn.axes
    assert len(left.lines) == 2 * (len(SEEDS) + 1) + 1
    assert left.lines[-1].get_ydata() == pytest.approx(published.to_numpy())
    assert right.lines[-2].get_ydata()[0] == 0
    assert len(reconstruction.published_panels(series, {}).axes[0].lines) == 1
