"""What goes through a mediator, on simulated truth."""

import numpy as np
import pytest

from nbutils.evaluation.mediation import mediate

SEEDS, DOSES = 10, 6


def world(rng, through=0.0, around=0.0, hidden=0.0):
    """Every dose pushes the mediator; the outcome follows it by `through`, the dose by `around`, luck by `hidden`."""
    dose, luck = np.linspace(0, 1, DOSES), rng.normal(0, 1, (SEEDS, DOSES))
    mediator = 0.5 + 0.3 * dose + 0.02 * luck + rng.normal(0, 0.1, (SEEDS, 1))
    outcome = through * mediator + around * dose + hidden * luck + rng.normal(0, 0.1, (SEEDS, 1))
    return mediator, outcome + rng.normal(0, 0.002, (SEEDS, DOSES))


def ends(rng, **truth):
    return mediate(*world(rng, **truth), dose=DOSES - 1, none=0, draws=300)


def test_a_hand_made_case():
    mediator = np.array([[0.0, 1.0], [0.0, 3.0]]).repeat(2, axis=0).repeat(2, axis=1)
    found = mediate(mediator, 2 * mediator, dose=3, none=0, draws=100)
    assert found.slope[0] == pytest.approx(2)
    assert found.total[0] == found.indirect[0] == pytest.approx(4)  # twice the mean rise of 2
    assert found.direct[0] == pytest.approx(0)


def test_each_way_is_told_from_the_other():
    rng = np.random.default_rng(1)
    through, around = ends(rng, through=0.2), ends(rng, around=0.06)
    assert through.indirect[0] == pytest.approx(0.06, abs=0.01)
    assert through.direct[1] < 0 < through.direct[2]
    assert around.direct[0] == pytest.approx(0.06, abs=0.01)
    assert around.indirect[1] < 0 < around.indirect[2]
    for found in (through, around):
        assert found.total[0] == pytest.approx(found.direct[0] + found.indirect[0])
        assert found.total[0] == pytest.approx(0.06, abs=0.005)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(2)
    held = [low <= 0.06 <= high for _, low, high in (ends(rng, through=0.2).indirect for _ in range(100))]
    assert 0.85 <= np.mean(held) <= 1


def test_what_moves_both_is_taken_for_the_mediator():
    """The assumption that fails in silence: luck that moves mediator and outcome looks like an indirect effect."""
    found = ends(np.random.default_rng(3), hidden=0.01)
    assert found.indirect[1] > 0.05


def test_bad_input_is_refused():
    good = np.random.default_rng(0).normal(size=(5, 5))
    with pytest.raises(ValueError, match=r"one shape \(seeds, doses\) with at least 4 of each, received \(5, 5\) and"):
        mediate(good, good[:4], dose=1, none=0)
    with pytest.raises(ValueError, match=r"at least 4 of each, received \(3, 5\)"):
        mediate(good[:3], good[:3], dose=1, none=0)
    with pytest.raises(ValueError, match="dose must be"):
        mediate(good, good, dose=5, none=0)
    with pytest.raises(ValueError, match="mediator"):
        mediate(np.where(good > 1, np.nan, good) if (good > 1).any() else good * np.nan, good, dose=1, none=0)


def test_a_mediator_that_luck_does_not_move_has_no_slope():
    flat = np.tile(np.arange(5.0), (5, 1))
    found = mediate(flat, np.random.default_rng(0).normal(size=(5, 5)), dose=4, none=0, draws=100)
    assert np.isnan(found.slope[0])
    assert np.isnan(found.indirect[0])
    assert np.isfinite(found.total[0])


def test_resamples_of_one_seed_alone_do_not_undo_the_interval():
    """One in 64 of four seeds' resamples is the same seed four times, which has no residuals."""
    mediator, outcome = (table[:4] for table in world(np.random.default_rng(4), through=0.2))
    found = mediate(mediator, outcome, dose=DOSES - 1, none=0, draws=2000)
    assert all(np.isfinite(part).all() and part[1] < part[2] for part in (found.slope, found.indirect, found.direct))


def test_a_dose_is_another_one_than_none():
    with pytest.raises(ValueError, match="dose and none must be different columns, received 2 for both"):
        mediate(*world(np.random.default_rng(0)), dose=2, none=2)
