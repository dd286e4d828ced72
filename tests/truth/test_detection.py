"""Constructions on networks made by hand, and co-firing that was planted in a known way."""

import numpy as np
import pytest

from nbutils.cofiring import cofiring_counts
from nbutils.nulls import within_class_null
from nbutils.truth.detection import (
    BOOK,
    CONDITIONAL,
    Construction,
    Subject,
    constructions,
    control_rows,
    detection_rows,
)
from nbutils.truth.remainders import conditional_graph, joint_cells, plant_cofiring, rates_in_cells


def two_modules(rng, pictures=1000, neurons=60):
    """Neurons that follow one of two hidden scores, half of them each, and no class."""
    hidden = rng.normal(size=(pictures, 2))
    module = np.repeat([0, 1], neurons // 2)
    active = np.maximum(hidden[:, module] + 0.6 * rng.normal(size=(pictures, neurons)), 0)
    layers = np.tile([1, 2], neurons // 2)
    return Subject(active, rng.integers(4, size=pictures), layers, np.where(module == 0, 0.95, 0.05), rng)


def test_two_clear_modules_are_found_by_every_construction_that_can(rng):
    """At a density of 20 %, of which a module of half the neurons can hold all."""
    able = [one for one in constructions() if one.density in (0.05, 0.1, 0.2) and one.graph != "paper's"]
    for one in able:
        wide = Construction(one.graph, one.rule, 0.2, one.layer)
        (row,) = detection_rows(two_modules(rng), [wide], [1.0])
        assert row["graded"] > 0.9, wide
        if one.rule != "positive" and one.graph not in ("disparity",):
            assert row["ami"] > 0.6, wide


def test_a_network_without_modules_agrees_with_nothing(rng):
    subject = two_modules(rng)
    subject.activations = np.maximum(rng.normal(size=(1000, 60)), 0)
    rows = detection_rows(subject, [BOOK, CONDITIONAL], [1.0])
    for row in rows:
        assert abs(row["graded"]) < 0.25
        assert abs(row["remainder"]) < 0.12
    assert np.isnan(rows[1]["excess"])


def test_controls_are_the_truth_and_chance(rng):
    rows = {row["graph"]: row for row in control_rows(two_modules(rng))}
    assert rows["truth"]["ami"] == 1
    assert rows["truth"]["graded"] == pytest.approx(1)
    assert rows["layers"]["graded"] == pytest.approx(0, abs=1e-9)
    assert abs(rows["permuted"]["ami"]) < 0.2
    assert rows["truth"]["modularity"] > 0.3


def test_all_constructions_differ_and_cover_the_book():
    found = constructions()
    assert len(found) == len(set(found)) > 30
    own = {one.density for one in found if one.graph == BOOK.graph and one.rule == "top-decile" and not one.layer}
    assert own == {0.01, 0.02, 0.05, 0.1, 0.2}
    assert {one.layer for one in found} == {0, 1, 2}
    assert {one.rule for one in found} == {"top:0.05", "top-decile", "top:0.2", "positive", ""}


def test_what_is_left_over_is_the_correlation_of_residuals(rng):
    fired, cells = rng.random((300, 8)) < 0.3, rng.integers(3, size=300)
    left = fired.astype(float)
    for cell in range(3):
        left[cells == cell] -= left[cells == cell].mean(axis=0)
    expected = np.maximum(np.corrcoef(left.T) - np.eye(8), 0)
    np.testing.assert_allclose(conditional_graph(fired, cells, 1.0).toarray(), expected, atol=2e-5)


def test_neurons_that_only_prefer_a_class_are_not_joined(rng):
    cells = np.repeat(np.arange(4), 250)
    rates = np.repeat(np.eye(4), 6, axis=1)[cells] * 0.8 + 0.05
    weights = conditional_graph(rng.random(rates.shape) < rates, cells, 1.0).toarray()
    assert weights.max() < 0.15


def test_planting_keeps_every_rate_in_every_cell(rng):
    fired, cells = rng.random((400, 12)) < 0.2, rng.integers(9, size=400)
    for strength in (0.0, 0.4, 1.0):
        found = plant_cofiring(fired, cells, np.arange(12) % 3, strength, rng)
        np.testing.assert_allclose(rates_in_cells(found, cells), rates_in_cells(fired, cells))


def test_planted_strength_orders_cofiring_within_modules_only(rng):
    fired, cells, modules = rng.random((2000, 20)) < 0.3, rng.integers(5, size=2000), np.arange(20) % 2
    same = (modules[:, None] == modules) & ~np.eye(20, dtype=bool)
    within, between = [], []
    for strength in (0.0, 0.3, 0.7, 1.0):
        counts = cofiring_counts(plant_cofiring(fired, cells, modules, strength, rng)) / 2000
        within.append(counts[same].mean())
        between.append(counts[modules[:, None] != modules].mean())
    assert np.all(np.diff(within) > 0.01)
    assert np.ptp(between) < 0.01
    plain = cofiring_counts(within_class_null(fired, cells, rng)) / 2000
    assert within[0] == pytest.approx(plain[same].mean(), abs=0.005), "nothing planted is the shuffle"


def test_bad_planting_is_named(rng):
    fired = rng.random((10, 4)) < 0.5
    with pytest.raises(ValueError, match=r"strength must lie in \[0, 1\]"):
        plant_cofiring(fired, np.zeros(10, int), np.zeros(4, int), 1.5, 0)
    with pytest.raises(ValueError, match="modules must"):
        plant_cofiring(fired, np.zeros(10, int), np.zeros(5, int), 0.5, 0)
    with pytest.raises(ValueError, match="cells must"):
        conditional_graph(fired, np.zeros(9, int))


def test_cells_have_both_factors_in_common(rng):
    factors = rng.integers(3, size=(50, 2))
    cells = joint_cells(factors)
    alike = (factors[:, None] == factors[None]).all(axis=2)
    assert ((cells[:, None] == cells) == alike).all()
