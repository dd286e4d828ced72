from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nbutils.pages.evolution import class_names, community_selectivity, short_name, shuffled_classes
from nbutils.tracking import selective_for


def answers(*rows, labels="true"):
    """A made-up extra "answers"."""
    columns = ["run", "epoch", "community", "neurons", "selective_for", "preference"]
    return pd.DataFrame(rows, columns=columns).assign(labels=labels)


TWO_EPOCHS = answers(
    ("a", 0, 0, 5, 1, 0.2),
    ("a", 0, 1, 5, 1, 0.4),
    ("a", 4, 0, 9, 2, 1.0),
    ("a", 4, 2, 3, 0, 0.5),
    ("a", 4, 3, 2, 1, 0.0),
)


def test_selectivity_by_hand():
    found = community_selectivity(TWO_EPOCHS).set_index("epoch")
    assert found.loc[0, "selectivity"] == pytest.approx(3 / 10)
    assert found.loc[4, "selectivity"] == pytest.approx((9 + 1.5) / 14)
    assert found["communities"].tolist() == [2, 2], "two neurons are too few"
    assert found["classes"].tolist() == [1, 2]


def test_a_community_that_never_fires_is_selective_for_no_class():
    found = community_selectivity(answers(("a", 0, 0, 5, -1, 0.0), ("a", 0, 1, 5, 3, 1.0)))
    assert found[["communities", "classes", "selectivity"]].values.tolist() == [[2, 1, 0.5]]


def test_selectivity_keeps_networks_apart():
    both = pd.concat([TWO_EPOCHS, TWO_EPOCHS.assign(run="b", labels="random")])
    found = community_selectivity(both)
    assert len(found) == 4
    assert found["selectivity"].tolist()[:2] == found["selectivity"].tolist()[2:]


def test_shuffled_classes_remove_a_preference_and_leave_chance(rng):
    labels = np.repeat([0, 1], 500)
    communities = np.repeat([0, 1], 10)
    fired = rng.random((1000, 20)) < np.where(labels[:, None] == communities, 0.4, 0.02)
    real = np.average(selective_for(fired, labels, communities)["preference"])
    chance = shuffled_classes(fired, labels, communities, rng)
    assert real > 0.8
    assert 0 < chance < 0.15
    assert np.isnan(shuffled_classes(fired, labels, np.full(20, -1), rng))
    with pytest.raises(ValueError, match="labels"):
        shuffled_classes(fired, labels[:5], communities, rng)


def test_shuffled_classes_weigh_communities_by_their_neurons(rng):
    fired = np.zeros((40, 4), dtype=bool)
    fired[:, 3] = rng.random(40) < 0.3
    labels = np.arange(40) % 2
    alone = shuffled_classes(fired, labels, [-1, -1, -1, 0], np.random.default_rng(1))
    beside = shuffled_classes(fired, labels, [1, 1, 1, 0], np.random.default_rng(1))
    assert beside == pytest.approx(alone / 4), "three silent neurons of four"


def test_names_for_a_figure():
    rows = answers(("a", 0, 5, 9, 1, 0.5), ("a", 0, 8, 9, -1, 0.0))
    assert class_names(rows, ["x", "Tomato__Target_Spot"]) == {5: "Tomato Target Spot", 8: "no class"}
    assert short_name("abc") == "abc"
    assert short_name("a" * 24) == "a" * 24
    assert len(short_name("a" * 25)) == 24
