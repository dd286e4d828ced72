from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbutils.entropy import pattern_entropy
from nbutils.study.hypotheses import (
    RULES,
    Evidence,
    between_evidence,
    collect_evidence,
    evidence_table,
    h1_evidence,
    headline,
    saturation,
    series_evidence,
    verdict,
)
from nbutils.study.results import CONDITIONS, NOISE_LEVELS, Results, Specimen

GOOD = Evidence("d", "true", "H1", "t", "q", estimate=0.5, low=0.4, high=0.6, threshold=0.05)


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, "passes"),
        ({"low": 0.04}, "fails"),
        ({"low": -0.2, "high": 0.04}, "opposite"),
        ({"enough": False}, "too few runs"),
        ({"p_value": 0.01, "adjusted": 0.04}, "passes"),
        ({"p_value": 0.01, "adjusted": 0.06}, "fails"),
        ({"direction": -1}, "opposite"),
        ({"direction": -1, "low": -0.6, "high": -0.4, "threshold": 0.0}, "passes"),
        ({"low": float("nan"), "high": float("nan")}, "fails"),
    ],
)
def test_outcomes(change, outcome):
    assert replace(GOOD, **change).outcome == outcome


def test_verdict_words():
    fails, opposite, few = replace(GOOD, low=0.0), replace(GOOD, low=-1, high=0), replace(GOOD, enough=False)
    assert verdict([GOOD, GOOD]) == "supported"
    assert verdict([GOOD, fails]) == "not supported"
    assert verdict([GOOD, fails, opposite]) == "refuted"
    assert verdict([GOOD, opposite, few]) == "inconclusive"
    with pytest.raises(ValueError, match="at least one test"):
        verdict([])


def test_a_test_that_was_not_planned_cannot_be_missed_but_supports_nothing():
    missing = replace(GOOD, planned=False, estimate=float("nan"), low=float("nan"), high=float("nan"))
    assert missing.outcome == "not planned"
    assert verdict([GOOD, missing]) == verdict([missing]) == "inconclusive"
    assert verdict([replace(GOOD, low=0.0), missing]) == "not supported"
    assert verdict([replace(GOOD, low=-1, high=0), missing]) == "refuted"


def test_without_a_grid_of_noise_the_between_tests_are_not_planned(rng):
    results = world(rng)
    alone = replace(results, table=results.table[results.table["labels"] == "true"].assign(parts="conditions"))
    found = {e.test: e for e in collect_evidence([alone])}
    assert found["H2b"].outcome == found["H3b"].outcome == "not planned"
    assert found["H2a"].outcome == "passes"
    assert words(alone) == {"H1": "supported", "H2": "inconclusive", "H3": "inconclusive"}


def world(rng, *, seeds=10, epochs=6, communities=True, follows=True, noise_follows=True) -> Results:
    """A made-up study in which each hypothesis is true or false by construction."""
    rows = []
    for labels in NOISE_LEVELS:
        level = {"true": 0.0, "random": 1.0}.get(labels, float(labels.split(":")[-1]) if ":" in labels else 0)
        for seed in range(seeds if labels in CONDITIONS else 5):
            wiggle = rng.normal(0, 0.02, epochs + 1)
            for epoch in range(epochs + 1):
                trained = epoch > 0
                accuracy = 0.1 + trained * (0.6 + 0.03 * epoch) + wiggle[epoch]
                q = 0.3 + (0.3 * trained if communities else 0) + (wiggle[epoch] if follows else rng.normal(0, 0.02))
                q -= (0.2 * level if noise_follows else 0) * trained
                rows.append(
                    {
                        "dataset": "d",
                        "labels": labels,
                        "noise": level,
                        "seed": seed,
                        "epoch": epoch,
                        "train_accuracy": accuracy,
                        "test_accuracy": accuracy - 0.6 * level * trained,
                        "modularity": q,
                        "pattern_entropy": 8 - 10 * q,
                        "null_circular": 0.1,
                        "null_within": 0.2,
                        "well_defined": 4 + (3 * trained if communities else 0) + rng.integers(0, 2),
                    }
                )
    table = pd.DataFrame(rows)
    table["parts"] = np.where(table["labels"].isin(CONDITIONS), "conditions", "")
    table["parts"] += np.where(table["seed"] < 5, " noise", "")
    runs = pd.DataFrame({"labels": table["labels"], "parts": table["parts"]})
    return Results("d", table, runs, {}, {})


def words(results: Results) -> dict[str, str]:
    found = [e for e in collect_evidence([results]) if e.condition in ("true", "all")]
    return {h: verdict([e for e in found if e.hypothesis == h]) for h in ("H1", "H2", "H3")}


def test_a_world_in_which_all_is_true(rng):
    assert words(world(rng)) == dict.fromkeys(("H1", "H2", "H3"), "supported")


def test_a_world_without_communities(rng):
    assert words(world(rng, communities=False))["H1"] in ("not supported", "refuted")


def test_q_that_follows_only_the_drift_is_not_supported(rng):
    results = world(rng, follows=False)
    assert words(results)["H2"] == "not supported"
    own = series_evidence(results.conditions(), "true", "H2")[0]
    assert own.low < 0 < own.high or own.p_value > 0.05


def test_q_that_does_not_order_noise_levels_is_not_supported(rng):
    assert words(world(rng, noise_follows=False))["H2"] != "supported"


def test_a_world_upside_down_is_refuted(rng):
    results = world(rng)
    results.table["modularity"] = 1 - results.table["modularity"]
    results.table["pattern_entropy"] = -results.table["pattern_entropy"]
    assert words(results)["H2"] == "refuted"
    assert words(results)["H3"] == "refuted"


def test_permuting_networks_destroys_h2a(rng):
    table = world(rng).conditions()
    runs = table[table["labels"] == "true"].sort_values(["seed", "epoch"])
    shuffled = runs.assign(modularity=np.roll(runs["modularity"].to_numpy().reshape(10, -1), 1, axis=0).ravel())
    assert series_evidence(runs, "true", "H2")[0].p_value < 0.01
    assert series_evidence(shuffled, "true", "H2")[0].p_value > 0.05


def test_too_few_networks_are_inconclusive(rng):
    assert set(words(world(rng, seeds=RULES.seeds - 1)).values()) == {"inconclusive"}
    few = h1_evidence(world(rng, seeds=1).conditions(), "true")
    assert {e.outcome for e in few} == {"too few runs"}


def at_ceiling(results: Results, bits: float, images: int = 64) -> Results:
    """The same study with networks whose pattern entropy is so many bits below its ceiling."""
    highest = float(pattern_entropy(np.eye(images, dtype=bool)))
    table = results.table.assign(run="r", unique_patterns=0.96, pattern_entropy=highest - bits)
    specimen = Specimen("r", "true", 0, np.ones(images), np.zeros(images), lambda epoch: None, lambda: None)
    return replace(results, table=table, specimens={"r": lambda: specimen})


def test_entropy_at_its_ceiling_cannot_be_measured(rng):
    results = at_ceiling(world(rng), RULES.room * 0.99)
    assert saturation(results) == "6.61 of 6.71 bits, 96.0% of patterns unique"  # log2(64) + 63 / (128 ln 2) = 6.71
    assert words(results) == {"H1": "supported", "H2": "supported", "H3": "not measurable"}
    found = collect_evidence([results])
    assert headline(found, "d", "H3")[:2] == ("not measurable", " (6.61 of 6.71 bits, 96.0% of patterns unique)")
    h3 = [e for e in found if e.hypothesis == "H3"]
    assert {e.outcome for e in h3} == {"fails"}, "the tests keep their outcomes"


def test_entropy_with_room_below_its_ceiling_is_measured(rng):
    results = at_ceiling(world(rng), RULES.room * 1.01)
    assert saturation(results) == ""
    assert words(results)["H3"] == "not supported"
    assert saturation(world(rng)) == "", "nobody counted the probe images"


def test_holm_runs_over_registered_tests_of_all_data_sets(rng):
    one = world(rng)
    alone = {e.test: e for e in collect_evidence([one]) if e.condition in ("true", "all")}
    both = [e for e in collect_evidence([one, one]) if e.condition in ("true", "all")]
    for e in both:
        if np.isfinite(e.p_value):
            assert e.adjusted >= alone[e.test].adjusted
            assert e.adjusted >= e.p_value
    assert len(both) == 2 * len(alone)


def test_missing_noise_levels(rng):
    grid = world(rng).noise_grid()
    assert between_evidence(grid[grid["labels"].isin(["true", "random"])], "H2") == []
    assert not between_evidence(grid[grid["labels"] != "mixed:0.1"], "H2")[0].enough


def test_table_has_every_test_once(rng):
    table = evidence_table(collect_evidence([world(rng)]))
    assert len(table) == 3 * (3 + 1 + 1) + 2
    assert not table.duplicated(["labels", "test"]).any()
    with pytest.raises(ValueError, match="hypothesis must be 'H2' or 'H3'"):
        series_evidence(world(rng).table, "true", "H1")


def test_hypothesis_pages_state_the_rules(root):
    pages = {h: (root / f"book/hypotheses/{h}.md").read_text("utf-8") for h in ("h1", "h2", "h3")}
    assert f"**{RULES.excess}**" in pages["h1"]
    for text in pages.values():
        assert f"**{RULES.alpha}**" in text
        assert f"**{RULES.seeds}**" in text
    for name in ("h2", "h3"):
        assert f"**{RULES.noise_levels}**" in pages[name]
    assert len(NOISE_LEVELS) == RULES.noise_levels
    assert f"less than **{RULES.room}** bit below" in pages["h3"]
    reading = (root / "book/hypotheses/first_study.md").read_text("utf-8")
    assert f"{RULES.seeds} networks per condition, {RULES.noise_levels} noise levels" in reading
    assert f"less than {RULES.room} bit below" in reading


def test_rounding_decides_nothing(rng):
    """Where all curves rise in the same order, own and others' correlations are equal: neither passes nor opposite."""
    table = world(rng).conditions()
    rising = table["epoch"] + 0.01 * table["seed"]
    table = table.assign(modularity=rising / 10, pattern_entropy=-rising / 3, train_accuracy=rising / 100)
    for hypothesis in ("H2", "H3"):
        (found,) = series_evidence(table, "true", hypothesis)
        assert (found.estimate, found.low, found.high) == (0, 0, 0)
        assert found.outcome == "fails"
