from __future__ import annotations

import numpy as np
import pytest
import torch

from nbutils.cofiring import cofiring_counts
from nbutils.counter import CofiringCounter
from nbutils.graphs import activation_pattern_graph


def fed(fired, sizes, labels=None, **options) -> CofiringCounter:
    counter, start = CofiringCounter(**options), 0
    for size in sizes:
        part = slice(start, start + size)
        counter.update(fired[part], None if labels is None else labels[part])
        start += size
    assert start >= len(fired)
    return counter


@pytest.mark.parametrize("sizes", [[5000], [1] * 100 + [4900], [32] * 157, [2048, 2049, 903], [3000, 2000]])
def test_any_batches_give_the_counts_of_all_at_once(rng, sizes):
    fired = rng.random((5000, 70)) < 0.3
    counter = fed(fired, sizes)
    assert counter.examples == 5000
    assert (counter.counts() == cofiring_counts(fired)).all()
    assert (counter.graph(0.1) != activation_pattern_graph(fired, 0.1)).nnz == 0
    counter.update(fired[:10])  # it goes on after having been read
    assert (counter.counts() == cofiring_counts(fired) + cofiring_counts(fired[:10])).all()


def test_classes(rng):
    fired, labels = rng.random((3000, 20)) < 0.4, rng.integers(0, 3, 3000)
    counter = fed(fired, [100] * 30, labels, classes=4)
    for label in range(3):
        assert (counter.counts(label) == cofiring_counts(fired[labels == label])).all()
    assert not counter.counts(3).any()
    assert (counter.counts() == cofiring_counts(fired)).all()


def test_counters_add_up_in_any_order(rng, tmp_path):
    fired = rng.random((900, 33)) < 0.5
    parts = [fed(fired[i : i + 300], [300]) for i in (0, 300, 600)]
    for total in (parts[0] + parts[1] + parts[2], parts[2] + (parts[1] + parts[0]), sum(parts, CofiringCounter())):
        assert (total.counts() == cofiring_counts(fired)).all()
        assert total.examples == 900
    assert parts[0].examples == 300, "parts stay as they are"


def test_saved_and_loaded(rng, tmp_path):
    fired, labels = rng.random((100, 9)) < 0.5, rng.integers(0, 2, 100)
    counter = fed(fired, [100], labels, classes=2)
    counter.save(tmp_path / "counter.npz")
    again = CofiringCounter.load(tmp_path / "counter.npz")
    assert (again.neurons, again.classes, again.examples) == (9, 2, 100)
    again.update(fired, labels)
    assert (again.counts(1) == 2 * counter.counts(1)).all()
    CofiringCounter(classes=3).save(tmp_path / "empty.npz")
    assert CofiringCounter.load(tmp_path / "empty.npz").classes == 3


@pytest.mark.parametrize("damage", ["cut", "other", "pickle", "shape"])
def test_damaged_files_are_refused(rng, tmp_path, damage):
    path = tmp_path / "counter.npz"
    fed(rng.random((10, 4)) < 0.5, [10]).save(path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:200])
    elif damage == "other":
        np.savez(path, something=1)
    elif damage == "pickle":
        np.savez(path, upper=np.array([object()]), seen=np.zeros(1), classes=0)
    else:
        np.savez(path, upper=np.zeros((1, 3, 4), np.int32), seen=np.zeros(1, np.int64), classes=0)
    with pytest.raises(ValueError, match="holds no counter"):
        CofiringCounter.load(path)


def test_more_examples_than_32_bits_hold(rng, monkeypatch):
    monkeypatch.setattr("nbutils.counter.LARGEST", 150)
    fired = rng.random((100, 5)) < 0.5
    counter = fed(fired, [100])
    assert counter.counts().dtype == np.int32
    assert (counter + counter).counts().dtype == np.int64
    counter.update(fired)
    assert counter.counts().dtype == np.int64
    assert (counter.counts() == 2 * cofiring_counts(fired)).all()


def test_tensors_are_taken_and_bad_batches_refused_without_a_trace(rng):
    counter = CofiringCounter(classes=2)
    counter.update(torch.ones(3, 2, dtype=torch.bool), torch.tensor([0, 1, 1]))
    for fired, labels, words in (
        (np.ones((1, 3), bool), [0], "2 neurons like the batches before, received 3"),
        (np.ones((1, 2), bool), None, "labels are needed with classes"),
        (np.ones((1, 2), bool), [2], "from 0 to 1, received 2 to 2"),
        (np.full((1, 2), 0.5), [0], "must be boolean"),
    ):
        with pytest.raises(ValueError, match=words):
            counter.update(fired, labels)
    assert counter.examples == 3
    assert counter.counts(1).tolist() == [[2, 2], [2, 2]]
    with pytest.raises(ValueError, match="label must be a class of 0 to 1, received 5"):
        counter.counts(5)
    with pytest.raises(ValueError, match="nothing was counted yet"):
        CofiringCounter().counts()
    with pytest.raises(ValueError, match="must agree to be added"):
        counter + CofiringCounter(3, 2)
    with pytest.raises(ValueError, match="neurons must be a whole number"):
        CofiringCounter(0)


def test_counts_made_elsewhere():
    fired = np.random.default_rng(3).random((90, 20)) < 0.3
    labels = np.arange(90) % 3
    whole, parts = CofiringCounter(classes=3), CofiringCounter(classes=3)
    whole.update(fired, labels)
    parts.update(fired[:30], labels[:30])
    for k in range(3):
        later = fired[30:][labels[30:] == k]
        parts.add_counts(cofiring_counts(later), len(later), k)
    assert parts.examples == whole.examples
    assert all((parts.counts(k) == whole.counts(k)).all() for k in (None, 0, 1, 2))
    for counts, label, message in (
        (np.zeros((20, 19), int), 0, "square matrix of whole numbers"),
        (np.zeros((20, 20)), 0, "square matrix of whole numbers"),
        (np.zeros((20, 20), int), 3, "label must be a class"),
        (np.zeros((20, 20), int), None, "label must be a class"),
        (np.zeros((21, 21), int), 0, "must have 20 neurons"),
    ):
        with pytest.raises(ValueError, match=message):
            parts.add_counts(counts, 1, label)
    assert parts.examples == whole.examples


@pytest.mark.parametrize(
    ("counts", "examples", "message"),
    [
        ([[2, 1], [0, 2]], 3, "counts must be symmetric"),
        ([[2, -1], [-1, 2]], 3, "counts must be from 0 to 3, the number of examples"),
        ([[2, 1], [1, 2]], 1, "counts must be from 0 to 1, the number of examples"),
        ([[2, 1], [1, 2]], 2.5, "examples must be a whole number"),
    ],
)
def test_what_cannot_be_counts_is_refused(counts, examples, message):
    counter = CofiringCounter()
    with pytest.raises(ValueError, match=message):
        counter.add_counts(counts, examples)
    assert counter.examples == 0
    counter.add_counts([[2, 1], [1, 2]], 2)
    assert counter.counts().tolist() == [[2, 1], [1, 2]]


@pytest.mark.parametrize("label", [0.5, "0", True, 2, -1])
def test_what_is_no_class_is_refused(label):
    counter = CofiringCounter(classes=2)
    counter.update([[1, 0]], [0])
    with pytest.raises(ValueError, match="label must be a class"):
        counter.counts(label)
    with pytest.raises(ValueError, match="label must be a class"):
        counter.add_counts([[1, 0], [0, 1]], 2, label)
