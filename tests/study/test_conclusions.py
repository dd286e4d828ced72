from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from nbutils.pages.robustness import made_up_study
from nbutils.study.conclusions import (
    baseline_ranks,
    held_fixed,
    held_fixed_sentence,
    held_fixed_words,
    hypothesis_sentence,
    living_sentence,
    preference_sentence,
    rank_sentence,
    shared_sign_sentence,
)
from nbutils.study.hypotheses import Evidence, collect_evidence, headline
from nbutils.study.results import Results

GOOD = Evidence("a", "true", "H2", "H2a", "q", 0.5, 0.4, 0.6)


def results(name: str, share: float, rho: float) -> Results:
    """Two conditions and a grid in which modularity follows accuracy or does not."""
    rng, rows = np.random.default_rng(0), []
    for level in range(5):
        for seed in range(3):
            accuracy = 1 - level / 5 + 0.001 * seed
            rows.append(
                {
                    **{"run": f"{level}{seed}", "parts": "conditions noise" if level == 0 else "noise"},
                    **{"labels": "true" if level == 0 else f"mixed:{level / 5}", "noise": level / 5, "seed": seed},
                    **{"epoch": 3, "test_accuracy": accuracy, "modularity": 0.6 + rho * accuracy / 10},
                    **{"margin": rng.random(), "null_circular": 0.1},
                }
            )
    table = pd.DataFrame(rows)
    table["null_within"] = 0.1 + share * (table["modularity"] - 0.1)
    runs = table[["run", "parts", "labels", "seed"]]
    return Results(name, table, runs, {}, {})


def test_a_sentence_says_where_and_why_not():
    tests = [
        GOOD,
        replace(GOOD, dataset="b"),
        replace(GOOD, dataset="c", low=-0.1),
        replace(GOOD, dataset="d", high=-0.1),
    ]
    tests[3] = replace(tests[3], low=-0.3, estimate=-0.2)
    text = hypothesis_sentence(tests, "H2")
    assert text == (
        "**H2** is supported on a and b, not supported on c and refuted on d. Tests that did not pass: H2a on c and d."
    )
    with pytest.raises(ValueError, match="no registered test of 'H1'"):
        hypothesis_sentence(tests, "H1")


def test_exploratory_tests_decide_nothing():
    text = hypothesis_sentence([GOOD, replace(GOOD, condition="random", low=-0.1)], "H2")
    assert text == "**H2** is supported on a."


def test_class_preference():
    more, less = results("x", 1.2, 1), results("y", 0.5, 1)
    assert preference_sentence([more, less]) == (
        "Beside real firing, class preference alone makes graphs that are at least as modular on x; less modular on y."
    )
    mixed = results("z", 1.0, 1)
    mixed.table.loc[mixed.table["run"] == "00", "null_within"] -= 0.1
    mixed.table.loc[mixed.table["run"] == "01", "null_within"] += 0.1
    assert preference_sentence([mixed, more]).endswith(
        "not clearly more or less modular on z; at least as modular on x."
    )


def test_ranks_of_measures():
    ranks = baseline_ranks([results("x", 1, 1), results("y", 1, -1)])
    assert ranks["measure"][0] == "modularity Q (H2)"
    row = ranks.set_index("measure").loc["modularity Q (H2)"]
    assert row["x"] == pytest.approx(1)
    assert row["y"] == pytest.approx(-1)
    assert row["mean"] == pytest.approx(1)
    assert "number 1 of 2." in rank_sentence(ranks, "modularity")
    assert "number 2 of 2, after modularity Q (H2)." in rank_sentence(ranks, "margin")
    bare = results("z", 1, 1)
    with pytest.raises(ValueError, match="a grid of label noise, received z"):
        baseline_ranks([replace(bare, table=bare.table.assign(parts="conditions"))])


def noisy(name: str, own: float) -> Results:
    """A grid in which modularity follows the noise level, and beyond it accuracy as much as `own` says."""
    rng, rows = np.random.default_rng(1), []
    for level in range(8):
        for seed in range(5):
            luck = 0.3 * rng.standard_normal()
            values = {"train_loss": level, "mean_cofiring": rng.random(), "pattern_entropy": rng.random()}
            values |= {"test_accuracy": luck - level, "modularity": own * luck - level + 0.1 * rng.standard_normal()}
            values["true_accuracy"] = luck - level
            rows.append({"run": f"{level}{seed}", "noise": level / 7, "epoch": 3, "train_accuracy": -level, **values})
    table = pd.DataFrame(rows).assign(parts="noise", labels="")
    return Results(name, table, table[["run", "parts"]], {}, {})


def test_what_is_left_between_networks_with_the_same_noise():
    held = held_fixed([noisy("x", 1.0), noisy("y", 0.0)])
    assert len(held) == 3 * 2 * 4
    rho = held.set_index(["measure", "dataset", "given"])["rho"]
    assert rho["modularity", "x", "noise"] > 0.7
    assert abs(rho["modularity", "y", "noise"]) < 0.4
    assert rho["modularity", "y", "mean_cofiring"] > 0.9  # which has nothing to do with either
    said = held_fixed_sentence(held)
    assert said.startswith("Between networks with the same label noise, of x and y, modularity still rises")
    mean = (rho["modularity", "x", "noise"] + rho["modularity", "y", "noise"]) / 2
    assert f"with test accuracy on x (its correlations are {mean:.2f} on average), and pattern entropy still" in said
    assert "falls with it on none. A yardstick" in said
    assert said.endswith("visibly does on x and y.")
    words = held_fixed_words(held)
    assert list(words.columns[:3]) == ["measure", "dataset", "given mean co-firing"]
    assert list(words["dataset"]) == ["x", "y"] * 3
    assert list(words["measure"][1:3]) == ["modularity", "pattern entropy"]
    assert words["given the noise level"][0].startswith(f"{rho['modularity', 'x', 'noise']:.2f} (")


def test_the_words_on_living_neurons():
    study = made_up_study("performance", np.random.default_rng(0))
    table = study.table[study.table["parts"].str.contains("conditions")].assign(
        run=lambda rows: rows["labels"] + rows["seed"].astype(str), dead_share=0.25
    )
    living = table[["run", "epoch", "modularity", "null_circular", "well_defined"]]
    same = replace(study, table=table, extras={"living": living})
    flat = replace(same, dataset="flat", extras={"living": living.assign(modularity=living["null_circular"])})
    both = collect_evidence([same, flat])
    said = living_sentence([same, flat], both)
    assert said.startswith(f"Neurons that never fire after training: 25% on {study.dataset} and 25% on flat. ")
    (word,) = {headline(both, name, "H1")[0] for name in (study.dataset, "flat")}
    assert f"**H1** would be {word} on {study.dataset}; refuted on flat;" in said
    assert said.endswith(f"that is another verdict on flat (registered: {word}).")
    assert living_sentence([same], collect_evidence([same])).endswith("on none.")
    assert living_sentence([study], []) == ""


def test_living_neurons_share_the_correction_with_all_other_tests():
    study = made_up_study("performance", np.random.default_rng(0))
    table = study.table[study.table["parts"].str.contains("conditions")].assign(
        run=lambda rows: rows["labels"] + rows["seed"].astype(str), dead_share=0.25
    )
    ends = table["epoch"].isin([0, table["epoch"].max()]) & (table["seed"] < 6)
    fewer = table.assign(well_defined=np.where(ends & (table["epoch"] > 0), 3, 2))  # six of ten gain one: p = 1/64
    living = fewer[["run", "epoch", "modularity", "null_circular", "well_defined"]]
    same = replace(study, table=table, extras={"living": living})
    alone = [e for e in collect_evidence([same]) if e.test in ("H1a null", "H1a untrained", "H1b")]
    assert "would be supported" in living_sentence([same], alone)
    many = [*alone, *(replace(GOOD, p_value=0.001, dataset=str(k)) for k in range(9))]
    assert "would be supported" in living_sentence([same], many), "those that pass cost nothing"
    lost = [*alone, *(replace(GOOD, p_value=0.9, dataset=str(k)) for k in range(9))]
    assert "would be not supported" in living_sentence([same], lost)


def test_the_sign_that_all_networks_share():
    study = made_up_study("performance", np.random.default_rng(0))
    rows = study.conditions().query("labels == 'true' and epoch > 0")
    rho = np.mean([spearmanr(run["modularity"], run["train_accuracy"])[0] for _, run in rows.groupby("seed")])
    assert f"correlate by {rho:.2f} on {study.dataset} (" in shared_sign_sentence([study]).replace("−", "-")
