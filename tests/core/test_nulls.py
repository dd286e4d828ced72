from __future__ import annotations

import numpy as np
import pytest

from nbutils.cofiring import cofiring_counts
from nbutils.nulls import circular_shift_null, within_class_null


@pytest.fixture
def planted(rng) -> tuple[np.ndarray, np.ndarray]:
    """Two groups of neurons that fire together on random images, whatever the class."""
    events = rng.random((600, 2)) < 0.2
    return np.repeat(events, 10, axis=1), rng.integers(0, 5, 600)


def test_circular_shift_keeps_each_neurons_series_up_to_rotation(planted, rng):
    fired, _ = planted
    shifted = circular_shift_null(fired, rng)
    for before, after in zip(fired.T, shifted.T, strict=True):
        assert any((np.roll(before, k) == after).all() for k in range(len(before)))


def test_circular_shift_destroys_firing_together(planted, rng):
    fired, _ = planted
    rate = fired[:, 0].mean()
    together = np.mean([cofiring_counts(circular_shift_null(fired, rng))[0, 1] for _ in range(200)])
    assert cofiring_counts(fired)[0, 1] == pytest.approx(rate * 600)
    assert together == pytest.approx(rate**2 * 600, rel=0.12)


def test_within_class_shuffle_keeps_every_rate_in_every_class(planted, rng):
    fired, labels = planted
    shuffled = within_class_null(fired, labels, rng)
    for k in range(5):
        assert (shuffled[labels == k].sum(axis=0) == fired[labels == k].sum(axis=0)).all()
    assert (shuffled != fired).any()


def test_within_class_shuffle_destroys_firing_together_but_not_class_preference(planted, rng):
    fired, labels = planted
    destroyed = cofiring_counts(within_class_null(fired, labels, rng))[0, 1]
    assert destroyed < cofiring_counts(fired)[0, 1] / 2
    detectors = np.repeat(labels[:, None] == np.arange(5), 3, axis=1)
    assert (within_class_null(detectors, labels, rng) == detectors).all()


def test_edges_of_the_definition(rng):
    one = np.array([[True, False]])
    assert (circular_shift_null(one, rng) == one).all()
    assert (within_class_null(one, [3], rng) == one).all()
    assert circular_shift_null(np.zeros((4, 0), bool), rng).shape == (4, 0)
    constant = np.array([[True, False]] * 5)
    assert (circular_shift_null(constant, rng) == constant).all()


def test_the_same_seed_draws_the_same_null(planted):
    fired, labels = planted
    for null in (circular_shift_null, lambda f, r: within_class_null(f, labels, r)):
        a, b, c = (null(fired, np.random.default_rng(s)) for s in (1, 1, 2))
        assert (a == b).all()
        assert (a != c).any()


def test_labels_of_the_wrong_length_are_refused(rng):
    with pytest.raises(ValueError, match=r"labels must have shape \(3,\), received \(2,\)"):
        within_class_null(np.ones((3, 2), bool), [0, 1], rng)
