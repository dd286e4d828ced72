"""What one asks of the causal table to refute its answer, on simulated truth."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbutils.experiments.causes import CAUSE_RULES, PUSHED, cause_verdicts
from nbutils.experiments.refutations import (
    SEEN,
    WAITING,
    answer_table,
    at_equal_training,
    by_products,
    changes_from_none,
    control_effects,
    farthest_at_equal_accuracy,
    finished_seeds,
    mediations,
    moved_elsewhere,
    plainly,
    shares_elsewhere,
    side_by_side,
    spans,
    told_elsewhere,
    verdicts_so_far,
)
from nbutils.second.elsewhere import CHOICES

TRUE, MIXED = ("mnist-10k", "true"), ("mnist-10k", "mixed:0.4")
WHERE = {TRUE: "A", MIXED: "B"}
RANK = ["labels", "penalty", "direction"]


def test_a_seed_is_finished_when_all_its_networks_are(cause_world):
    table = cause_world(seeds=3)
    assert finished_seeds(table).to_dict() == {TRUE: 3, MIXED: 3}
    assert finished_seeds(table[:-1]).to_dict() == {TRUE: 3, MIXED: 2}


def test_a_whole_table_gets_the_verdicts_of_the_rules(cause_world):
    table = cause_world(slope=0.3)
    pd.testing.assert_frame_equal(verdicts_so_far(table), cause_verdicts(table))


def test_too_few_networks_conclude_nothing_and_correct_nothing(cause_world):
    """The other label condition, which has enough, is told as if it were alone."""
    whole = cause_world(slope=0.3)
    early = whole[(whole["labels"] == "true") | (whole["seed"] < 7)]
    found, alone = verdicts_so_far(early), cause_verdicts(whole[whole["labels"] == "true"])
    waiting = found[found["labels"] == "mixed:0.4"]
    assert set(waiting["word"]) | set(waiting["verdict"]) == {WAITING}
    assert waiting[["dose", "effect", "low", "high", "adjusted"]].isna().all(axis=None)
    assert set(waiting["networks"]) == {7}
    done = found[found["labels"] == "true"]
    assert done["adjusted"].tolist() == alone["adjusted"].tolist()
    assert done["word"].tolist() == alone["word"].tolist()
    assert len(waiting) == len(done) == 2 * len(PUSHED)


def test_sentences_follow_the_verdicts(cause_world):
    told = plainly(verdicts_so_far(cause_world(strong=0.02)), WHERE)
    names = "modularity of communities, modularity of a learned partition and entropy of firing"
    assert told == f"No penalty moves {names} far enough for an answer on A and B."
    verdicts = verdicts_so_far(cause_world(slope=-0.3))
    first, second, third = plainly(verdicts[verdicts["penalty"] != "learned"], WHERE).split(". ")
    assert first == "Accuracy does not follow entropy of firing on A and B, pushed up or down: a by-product"
    assert second == "No verdict on modularity of communities on A and B (up: contradicted; down: contradicted)"
    assert third == "Of gains with redrawn labels, 1 of 1 exceed usual regularisers; none is mere regularisation."


def test_both_directions_stand_side_by_side(cause_world):
    found = verdicts_so_far(cause_world(slope=0.3))
    shown = answer_table(found)
    assert shown[["labels", "penalty"]].apply(tuple, axis=1).tolist() == [
        (labels, name) for labels in ("true", "mixed:0.4") for name in PUSHED
    ]
    first = found.iloc[1]
    assert first[["labels", "penalty", "direction"]].tolist() == ["true", "modularity", "down"]
    assert shown["down"][0].startswith(f"−{-first['effect']:.3f} (")
    assert shown["up"][0].endswith("**supported**")
    assert shown["verdict"][0] == "a cause"
    assert answer_table(verdicts_so_far(cause_world(slope=-0.3)))["verdict"][0] == "none"
    assert set(answer_table(verdicts_so_far(cause_world(seeds=2)))["up"]) == {f"–, **{WAITING}**"}


def test_changes_are_those_of_a_seed():
    rows = [("d", "p", 0, 0.0, 0.5), ("d", "p", 0, 1.0, 0.75), ("d", "p", 1, 1.0, 0.5), ("d", "q", 0, 0.0, 0.25)]
    doses = pd.DataFrame(rows, columns=["dataset", "condition", "seed", "dose", "accuracy"])
    changes = changes_from_none(doses, ["accuracy"])["accuracy"]
    assert changes.isna().tolist() == [False, False, True, False]
    assert changes.dropna().tolist() == [0, 0.25, 0]


def test_controls_are_told_at_their_own_dose(cause_world):
    rows = control_effects(cause_world(control=0.2)).set_index(["labels", "condition", "direction"]).sort_index()
    up, down = rows.loc[("true", "activity", "up")], rows.loc[("true", "activity", "down")]
    assert (up["dose"], down["dose"]) == (1.0, -1.0)
    assert (up["effect"], down["effect"]) == pytest.approx((0.2, -0.2), abs=0.005)
    assert up["low"] < up["effect"] < up["high"]
    assert np.isnan(rows.loc[("true", "random", "up"), "dose"])
    assert rows.loc[("mixed:0.4", "dropout 0.5", ""), "effect"] == pytest.approx(0, abs=0.005)
    assert rows.loc[("mixed:0.4", "dropout 0.5", ""), "within"]
    assert not up["within"]
    assert not rows.loc[("true", "random", "up"), "within"]  # it has no dose
    assert control_effects(cause_world(seeds=7))["effect"].isna().all()


def test_accuracy_is_compared_among_networks_that_fit_their_labels_alike():
    names = ["condition", "dose", "seed", "train_accuracy", "accuracy"]
    rows = [("dropout 0.3", np.nan, seed, 0.7, 0.9 + seed / 100) for seed in range(8)]
    rows += [("modularity", 1.0, seed, 0.71, 0.85 + seed / 100) for seed in range(8)]
    rows += [("modularity", 3.0, seed, 0.6, 0.95) for seed in range(8)]  # fits them less well
    rows += [("random", 1.0, seed, 0.75, 0.5) for seed in range(8)]  # nowhere near
    rows += [("activity", 1.0, seed, 0.7, 0.5) for seed in range(7)]  # too few
    table = pd.DataFrame(rows, columns=names).assign(dataset="d", labels="mixed:0.4", reason="", degenerate=0.0)
    (row,) = at_equal_training(table).to_dict("records")
    assert (row["penalty"], row["dose"], row["networks"]) == ("modularity", 1.0, 8)
    numbers = [row[k] for k in ("train_accuracy", "usual_train", "accuracy", "usual_accuracy", "difference")]
    assert numbers == pytest.approx([0.71, 0.7, 0.885, 0.935, -0.05])
    assert row["low"] <= row["difference"] <= row["high"]
    assert at_equal_training(table, slack=0.005).empty
    assert at_equal_training(table, usual="early stopping").empty


def test_accuracy_held_equal_where_it_does_not_follow(cause_world):
    far = farthest_at_equal_accuracy(cause_world()).set_index(RANK)
    down, up = (far.loc[("true", "modularity", way)] for way in ("down", "up"))
    assert (down["before"], down["after"], up["after"]) == pytest.approx((0.6, 0.35, 0.85), abs=0.02)
    assert (far["low"] > -0.01).all()
    assert (far["high"] < 0.01).all()
    assert spans(far.reset_index(), WHERE).startswith(f"A from {down['after']:.2f} to {up['after']:.2f} (0.6")


def test_accuracy_held_equal_where_it_follows(cause_world):
    """A full dose changes accuracy by 0.075, a tenth of it by 0.0075: far too much, and too near to the bound."""
    far = farthest_at_equal_accuracy(cause_world(slope=0.3)).set_index(RANK).sort_index()
    assert not (far.loc[("true", "modularity")]["dose"].abs() >= 0.1).any()
    assert far.loc[("true", "entropy", "up"), "dose"] >= 1
    assert spans(farthest_at_equal_accuracy(cause_world(seeds=7)), WHERE) == ""


def test_doses_that_are_merely_not_significant_are_not_equal(cause_world):
    table = cause_world()
    noise = np.random.default_rng(0).normal(0, 0.05, len(table))
    far = farthest_at_equal_accuracy(table.assign(accuracy=table["accuracy"] + noise))
    assert far["dose"].isna().all()


def test_a_by_product_stays_only_where_its_equivalence_survives_the_correction(cause_world):
    calm = cause_world()
    kept = by_products(calm, verdicts_so_far(calm))
    assert set(zip(kept["labels"], kept["penalty"], strict=True)) == {
        (k, p) for k in ("true", "mixed:0.4") for p in PUSHED
    }
    assert kept["stays"].all()
    noise = np.random.default_rng(0).normal(0, 0.006, len(calm))
    restless = calm.assign(accuracy=calm["accuracy"] + noise)
    kept = by_products(restless, verdicts_so_far(restless))
    assert len(kept) >= 3
    assert not kept["stays"].all()
    wide = by_products(restless, verdicts_so_far(restless), replace(CAUSE_RULES, bound=0.1))
    assert wide["stays"].all()


@pytest.mark.parametrize("seen", [1.0, 0.6, 0.0])
def test_what_is_hidden_from_other_measures_shows(cause_world, seen):
    table = cause_world(seen=seen)
    moved = moved_elsewhere(table, verdicts_so_far(table))
    own = moved.query("labels == 'true' and penalty == 'modularity' and direction == 'down'").set_index("choice")
    assert own.loc[SEEN, "moved"] == pytest.approx(-0.25, abs=0.02)
    assert own.loc["density 2 %", "moved"] == pytest.approx(seen * own.loc[SEEN, "moved"])
    assert own.loc["density 2 %", "before"] == pytest.approx(0.6, abs=0.01)
    assert own.loc[SEEN, "low"] < own.loc[SEEN, "moved"] < own.loc[SEEN, "high"]
    assert set(moved["penalty"]) == {"modularity", "learned"}
    wide = side_by_side(moved[moved["penalty"] == "modularity"], {"true": "T", "mixed:0.4": "M"})
    assert wide.columns.tolist() == ["choice", "before", "T, up", "T, down", "M, up", "M, down"]
    assert wide["choice"].tolist() == [SEEN, *(one.title for one in CHOICES.values())]
    assert wide["T, down"][0].startswith(f"−{-own.loc[SEEN, 'moved']:.2f} (")
    beyond = moved_elsewhere(table, verdicts_so_far(table), "excess")
    assert beyond["moved"].tolist() == pytest.approx(moved["moved"].tolist())
    shares = shares_elsewhere(moved)
    assert shares.index.tolist() == [one.title for one in CHOICES.values()]
    assert shares["least"].tolist() == pytest.approx([seen] * len(CHOICES))
    assert shares["most"].tolist() == pytest.approx([seen] * len(CHOICES))
    told = told_elsewhere(shares)
    assert told.startswith(f"{6 if seen > 0.5 else 0} of 6")
    assert ("density 2 % (0% to 0% of it; Q 0.60 before)" in told) == (seen == 0)


def test_nothing_moved_has_no_shares(cause_world):
    table = cause_world(strong=0.02)
    moved = moved_elsewhere(table, verdicts_so_far(table))
    assert len(moved) == len(shares_elsewhere(moved)) == 0
    assert told_elsewhere(shares_elsewhere(moved)) == "no dose moves Q far enough yet"


def test_mediation_follows_the_path(cause_world):
    """Q follows luck by 0.01, and accuracy follows Q: all of the effect goes through it."""
    table = cause_world()
    table["accuracy"] = 0.5 + 0.3 * table["modularity"]
    found = mediations(table, verdicts_so_far(table), draws=100)
    one = found[*TRUE, "modularity", "up"]
    assert one.slope[0] == pytest.approx(0.3)
    assert one.indirect[0] == pytest.approx(one.total[0])
    assert one.total[0] == pytest.approx(0.075, abs=0.01)


def test_doses_with_a_degenerate_network_are_left_out_of_mediation(cause_world):
    table = cause_world()
    verdicts = verdicts_so_far(table)
    table.loc[(table["condition"] == "modularity") & (table["dose"] == 1) & (table["seed"] == 0), "degenerate"] = 1.0
    found = mediations(table, verdicts, draws=100)
    ends = {key[3] for key in found if key[:3] == (*TRUE, "modularity")}
    assert verdicts["dose"][0] == 1
    assert ends == {"down"}
