from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from nbutils import measures
from nbutils.measures import MEASURES, Measure, MeasureSpec, Snapshot, measure_nulls, measure_snapshot


@pytest.fixture
def snapshot() -> Snapshot:
    """Six neurons in two groups, one per class, of which each fires on its class only."""
    fired = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
    spec = MeasureSpec(density=0.4, null_draws=2)
    classes, layers = np.repeat([0, 1], 5), np.array([1, 1, 1, 1, 2, 2])
    means = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], dtype=float)
    return Snapshot(fired, fired, classes, layers, np.ones((6, 4)), means, np.random.default_rng(0), spec)


def test_every_measure_has_columns_of_its_own_and_names_only_those(snapshot):
    columns = [set(measure.columns(snapshot)) for measure in MEASURES]
    assert max(Counter(name for own in columns for name in own).values()) == 1
    assert all(set(measure.names) <= own for measure, own in zip(MEASURES, columns, strict=True))


def test_truths_of_a_snapshot(snapshot):
    found = measure_snapshot(snapshot)
    assert found["modularity"] == 0.5
    assert found["null_within"] == 0.5, "these neurons are nothing but class detectors"
    assert found["class_selectivity"] == 1
    assert found["mutual_information"] == pytest.approx(1 + 1 / (2 * 10 * np.log(2))), (
        "1 bit, corrected for 10 examples"
    )
    assert found["dead_share"] == 0
    assert found["mean_activity"] == 0.5
    assert found["agreement"] == 1


def test_costly_measures_are_made_at_the_ends_only(snapshot):
    between = Snapshot(**{**vars(snapshot), "ends": False})
    empty = {name for name, value in measure_snapshot(between).items() if np.isnan(value)}
    assert empty == {"null_circular", "null_within", "agreement"}


def test_two_measures_cannot_give_one_column(snapshot, monkeypatch):
    again = Measure(lambda at: {"modularity": 0.0})
    monkeypatch.setattr(measures, "MEASURES", (*MEASURES, again))
    with pytest.raises(ValueError, match="two measures give a column 'modularity'; name it otherwise in MEASURES"):
        measure_snapshot(snapshot)


def test_numbers_of_numpy_are_numbers():
    assert MeasureSpec(seeds=np.int64(3), density=np.float32(0.25), every_epoch=np.bool_(False)) == MeasureSpec(
        seeds=3, density=0.25, every_epoch=False
    )
    with pytest.raises(ValueError, match=r"seeds: .* received 2\.5"):
        MeasureSpec(seeds=np.float64(2.5))


def test_labels_are_checked_even_without_draws():
    with pytest.raises(ValueError, match=r"labels must have shape \(4,\)"):
        measure_nulls(np.eye(4, dtype=bool), [0, 1], MeasureSpec(null_draws=0), 0)
