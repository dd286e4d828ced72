from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nbutils.pages.evolution import clarity, class_names, ends, short_name, shuffled_classes
from nbutils.tracking import answers_to


def answers(*rows, labels="true"):
    """A made-up extra "answers"."""
    columns = ["run", "epoch", "community", "neurons", "answers_to", "preference"]
    return pd.DataFrame(rows, columns=columns).assign(labels=labels)


TWO_EPOCHS = answers(
    ("a", 0, 0, 5, 1, 0.2),
    ("a", 0, 1, 5, 1, 0.4),
    ("a", 4, 0, 9, 2, 1.0),
    ("a", 4, 2, 3, 0, 0.5),
    ("a", 4, 3, 2, 1, 0.0),
)


def test_clarity_by_hand():
    found = clarity(TWO_EPOCHS).set_index("epoch")
    assert found.loc[0, "preference"] == pytest.approx(3 / 10)
    assert found.loc[4, "preference"] == pytest.approx((9 + 1.5) / 14)
    assert found["communities"].tolist() == [2, 2], "two neurons are too few"
    assert found["classes"].tolist() == [1, 2]


def test_a_community_that_never_fires_answers_to_no_class():
    found = clarity(answers(("a", 0, 0, 5, -1, 0.0), ("a", 0, 1, 5, 3, 1.0)))
    assert found[["communities", "classes", "preference"]].values.tolist() == [[2, 1, 0.5]]


def test_clarity_keeps_networks_apart():
    both = pd.concat([TWO_EPOCHS, TWO_EPOCHS.assign(run="b", labels="random")])
    found = clarity(both)
    assert len(found) == 4
    assert found["preference"].tolist()[:2] == found["preference"].tolist()[2:]


def test_first_and_last_epoch_with_what_drawing_classes_would_give(rng):
    table = ends(clarity(pd.concat([TWO_EPOCHS.assign(labels="random", run="b"), TWO_EPOCHS])), 4, rng)
    assert table["labels"].tolist() == ["true", "true", "random", "random"]
    assert table["epoch"].tolist() == [0, 4, 0, 4]
    assert table["by_chance"].tolist() == pytest.approx([4 * (1 - (3 / 4) ** 2)] * 4)
    assert table["classes"].tolist()[:2] == ["1.0 (–\u00a0to\u00a0–)", "2.0 (–\u00a0to\u00a0–)"], (
        "one network: no interval"
    )


def test_drawing_classes_agrees_with_a_simulation(rng):
    drawn = np.mean([len(set(rng.integers(10, size=7))) for _ in range(20_000)])
    rows = [("a", 0, k, 5, k % 10, 0.5) for k in range(7)]
    assert ends(clarity(answers(*rows)), 10, rng)["by_chance"].iloc[0] == pytest.approx(drawn, abs=0.05)


def test_shuffled_classes_remove_a_preference_and_leave_chance(rng):
    labels = np.repeat([0, 1], 500)
    communities = np.repeat([0, 1], 10)
    fired = rng.random((1000, 20)) < np.where(labels[:, None] == communities, 0.4, 0.02)
    real = np.average(answers_to(fired, labels, communities)["preference"])
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
