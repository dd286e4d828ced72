"""What is left over within classes: firing in which it was planted or was not, and the other path."""

import numpy as np
import pytest

from nbutils.nulls import within_class_null
from nbutils.truth.detection import CONDITIONAL, Subject, detection_rows
from nbutils.truth.remainders import left_over, plant_cofiring, rates_in_cells


def preferring(rng: np.random.Generator, neurons: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Firing of neurons that each prefer one of four classes, and have nothing else in common."""
    cells = np.repeat(np.arange(4), 250)
    rates = 0.05 + 0.6 * (np.arange(neurons) % 4 == cells[:, None])
    return rng.random((1000, neurons)) < rates, cells


def test_preference_for_classes_leaves_nothing_over():
    rng = np.random.default_rng(0)
    fired, cells = preferring(rng)
    assert abs(left_over(fired, cells, rng, 60, draws=10)["left"]) < 0.03


@pytest.mark.parametrize("strength", [0.1, 0.3, 1.0])
def test_groups_across_classes_are_left_over(strength):
    rng = np.random.default_rng(1)
    fired, cells = preferring(rng)
    groups = np.arange(80) // 4 % 4  # each holds neurons of all preferences
    planted = plant_cofiring(fired, cells, groups, strength, rng)
    assert np.allclose(rates_in_cells(planted, cells), rates_in_cells(fired, cells))
    pairs = 4 * 20 * 19 / 2  # within groups
    found = left_over(planted, cells, rng, density=pairs / (80 * 79 / 2), draws=10)
    assert found["left"] > (0.03 if strength == 0.1 else 0.15)
    if strength == 1:
        assert found["conditional"] == pytest.approx(0.75, abs=0.01)  # four equal groups, no edge between them
        assert found["groups"] == 4


def test_shuffled_firing_has_nothing_left():
    rng = np.random.default_rng(2)
    fired, cells = preferring(rng)
    planted = plant_cofiring(fired, cells, np.arange(80) % 5, 1.0, rng)
    shuffled = within_class_null(planted, cells, rng)
    assert abs(left_over(shuffled, cells, rng, 60, draws=10)["left"]) < 0.03


def test_all_neurons_at_once_are_the_construction_of_planted_tasks():
    """The other path goes through a table of constructions, with searches and shuffles of its own."""
    rng = np.random.default_rng(3)
    fired, cells = preferring(rng)
    planted = plant_cofiring(fired, cells, np.arange(80) % 5, 0.5, rng)
    subject = Subject(planted.astype(np.float32), cells, np.ones(80, int), np.full(80, 0.5), rng)
    subject.known["top-decile", "", 0] = planted
    (row,) = detection_rows(subject, [CONDITIONAL], resolutions=(1.0,))
    found = left_over(planted, cells, rng)
    assert found["conditional"] == pytest.approx(row["modularity"], abs=0.01)
    assert found["left"] == pytest.approx(row["remainder"], abs=0.08)  # one shuffle each


def test_neurons_that_never_fire_are_not_drawn():
    rng = np.random.default_rng(4)
    fired, cells = preferring(rng)
    dead = np.hstack([fired, np.zeros((1000, 30), bool)])
    assert left_over(dead, cells, 0, 40, draws=3) == left_over(fired, cells, 0, 40, draws=3)
    with pytest.raises(ValueError, match=r"neurons must be at most the number of active neurons, 80, received 81"):
        left_over(dead, cells, 0, 81)
    with pytest.raises(ValueError, match="draws"):
        left_over(fired, cells, 0, 40, draws=0)
    with pytest.raises(ValueError, match="cells"):
        left_over(fired, cells[:-1], 0)
