"""What a measure adds: against scikit-learn, and on simulated networks of which one knows what there is to add."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, cross_val_predict

from nbutils.evaluation.added import Added, added_variance
from nbutils.evaluation.words import judge

NETWORKS = np.repeat(np.arange(60), 2)


def simulated(rng: np.random.Generator, effect: float) -> Added:
    """120 networks of 60 configurations; performance = loss + effect * own part of the measure + noise.

    The measure follows the loss, too: by itself it is correlated with performance whatever its effect.
    """
    loss, own = (rng.normal(size=60)[NETWORKS] + 0.3 * rng.normal(size=120) for _ in range(2))
    measure, other = loss + own, rng.normal(size=120)
    performance = loss + effect * own + 0.7 * rng.normal(size=120)
    return added_variance(
        performance, np.column_stack([loss, other]), measure, NETWORKS, rng, folds=4, repeats=1, draws=499
    )


def test_what_is_explained_is_explained():
    rng = np.random.default_rng(10)
    loss, q = rng.normal(size=(2, 100))
    found = added_variance(loss + q, loss[:, None], q, np.arange(100), 0)
    assert found.full > 0.99
    assert found.baselines == pytest.approx(0.5, abs=0.15)
    assert found.gain.value == pytest.approx(found.full - found.baselines)
    assert found.gain.low < found.gain.inner[0] < found.gain.value < found.gain.inner[1] < found.gain.high
    assert found.gain.p_value < 0.001


def test_it_is_near_the_cross_validation_of_scikit_learn(rng):
    """One penalty, one way to deal: near what nested choices and five ways come to."""
    x = rng.normal(size=(120, 3))
    y = x @ [1, 0.5, 0.5] + rng.normal(size=120)
    found = added_variance(y, x[:, :2], x[:, 2], NETWORKS, 0)
    for columns, value in ((x[:, :2], found.baselines), (x, found.full)):
        predicted = cross_val_predict(Ridge(), columns, y, groups=NETWORKS, cv=GroupKFold(5))
        assert value == pytest.approx(r2_score(y, predicted), abs=0.03)


def test_a_measure_that_says_nothing_new_gains_nothing(rng):
    """Baselines alone meet the same folds, inner and outer: a constant changes not a digit."""
    base = rng.normal(size=(120, 2))
    found = added_variance(base[:, 0] + rng.normal(size=120), base, np.ones(120), NETWORKS, 0, repeats=2)
    assert found.gain.value == pytest.approx(0, abs=1e-12)
    assert found.gain.low == pytest.approx(0, abs=1e-12)
    assert found.full == pytest.approx(found.baselines)


def test_seeds_of_a_configuration_stay_together():
    """Performance and measure are the configuration's own numbers: seeds apart, one would predict the other."""
    rng = np.random.default_rng(11)
    own, measure = rng.normal(size=(2, 60))
    nothing = rng.normal(size=(120, 40))
    found = added_variance(own[NETWORKS], nothing, measure[NETWORKS], NETWORKS, 0)
    assert found.full < 0.1
    assert found.gain.value < 0.05


@pytest.mark.release
@pytest.mark.slow(4)
def test_words_on_simulated_networks():
    """50 simulations each: no gain is never supported, a gain of about .15 nearly always is."""
    rng = np.random.default_rng(12)
    found = {effect: [simulated(rng, effect) for _ in range(50)] for effect in (0.0, 0.6)}
    words = {
        k: [judge(each.gain, 0.02, one_sided=True, adjusted=each.gain.p_value) for each in v] for k, v in found.items()
    }
    assert np.mean([each.gain.p_value <= 0.05 for each in found[0.0]]) <= 0.1
    assert words[0.0].count("supported") <= 1
    assert words[0.0].count("no association") >= 0.8 * 50
    assert 0.1 < np.mean([each.gain.value for each in found[0.6]]) < 0.25
    assert words[0.6].count("supported") >= 0.8 * 50
    assert "no association" not in words[0.6]


def test_a_seed_decides_and_units_do_not(rng):
    y, m = rng.normal(size=(2, 40))
    base = rng.normal(size=(40, 2))
    found = added_variance(y, base, m, np.arange(40), 5)
    assert found == added_variance(y, base, m, np.arange(40), 5)
    again = added_variance(1e-3 * y + 7, base * [1e6, -1], -m, [f"run {n:02}" for n in range(40)], 5)
    assert (again.baselines, again.full) == pytest.approx((found.baselines, found.full))
    assert np.isnan(added_variance(np.ones(40), base, m, np.arange(40), 5).full)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"configuration": np.arange(40) % 9}, "configuration must take at least 10 values for 5 folds, received 9"),
        ({"baselines": np.ones((40, 0))}, "performance, baselines, measure, configuration must be one per network"),
        ({"measure": np.ones(39)}, "performance, baselines, measure, configuration must be one per network"),
        ({"folds": 1}, "folds must be a whole number from 2 to 100, received 1"),
        ({"level": 0.5}, r"level must lie between 0\.5 and 1, received 0\.5"),
    ],
)
def test_nonsense_is_refused(options, message):
    good = {"performance": np.arange(40), "baselines": np.ones((40, 1)), "measure": np.arange(40)}
    with pytest.raises(ValueError, match=message):
        added_variance(**good | {"configuration": np.arange(40), "rng": 0} | options)
