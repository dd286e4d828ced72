from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbutils.pages.robustness import simulated_study
from nbutils.study.conclusions import active_sentence, active_verdicts, baseline_ranks, held_fixed
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


def test_ranks_of_measures():
    ranks = baseline_ranks([results("x", 1, 1), results("y", 1, -1)])
    assert ranks["measure"][0] == "modularity Q (H2)"
    row = ranks.set_index("measure").loc["modularity Q (H2)"]
    assert row["x"] == pytest.approx(1)
    assert row["y"] == pytest.approx(-1)
    assert row["mean"] == pytest.approx(1)
    assert ranks["measure"].tolist() == ["modularity Q (H2)", "margin"]
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
    same = "given the noise level"
    assert rho["modularity", "x", same] > 0.7
    assert abs(rho["modularity", "y", same]) < 0.4
    assert rho["modularity", "y", "given mean co-firing"] > 0.9  # which has nothing to do with either
    low = held.set_index(["measure", "dataset", "given"])["low"]
    assert low["modularity", "x", same] > 0
    assert (low[["positive control"]].xs(same, level="given") > 0).all(), "what should be left is left"
    assert list(dict.fromkeys(held["measure"])) == ["modularity", "pattern entropy", "positive control"]


def test_the_paper_s_entropy_stands_beside_the_hypotheses_measures():
    study = noisy("x", 1.0)
    both = replace(study, table=study.table.assign(binned_entropy=study.table["modularity"]))
    held = held_fixed([both]).set_index(["measure", "given"])[["rho", "low", "high"]]
    pd.testing.assert_frame_equal(held.loc["paper's entropy"], held.loc["modularity"])


def with_extra(study: Results, **changes: object) -> Results:
    """A study whose networks were measured on active neurons alone, too, with other values there."""
    rows = study.table[study.table["parts"].str.contains("conditions")]
    table = rows.assign(run=rows["labels"] + rows["seed"].astype(str), dead_share=0.25)
    active = table[["run", "epoch", "modularity", "null_circular", "well_defined"]]
    return replace(study, table=table, extras={"active": active.assign(**changes)})


def test_verdicts_on_active_neurons():
    study = simulated_study("performance", np.random.default_rng(0))
    same = with_extra(study)
    flat = replace(with_extra(study, modularity=same.table["null_circular"]), dataset="flat")
    both = collect_evidence([same, flat])
    table = active_verdicts([same, flat, study], both)
    (word,) = {headline(both, name, "H1")[0] for name in (study.dataset, "flat")}
    expected = [[study.dataset, 0.25, word, word], ["flat", 0.25, word, "refuted"]]
    assert table.to_numpy().tolist() == expected, "without the extra there is no row"
    said = active_sentence(table)
    assert said.startswith(f"Neurons that never fire after training: 25% on {study.dataset} and 25% on flat. ")
    assert f"**H1** would be {word} on {study.dataset}; refuted on flat;" in said
    assert said.endswith(f"that is another verdict on flat (pre-specified: {word}).")
    assert active_sentence(table.iloc[:1]).endswith("on none.")
    assert active_sentence(active_verdicts([study], [])) == ""


def test_active_neurons_share_the_correction_with_all_other_tests():
    study = with_extra(simulated_study("performance", np.random.default_rng(0)))
    table = study.table
    ends = table["epoch"].isin([0, table["epoch"].max()]) & (table["seed"] < 6)
    fewer = table.assign(well_defined=np.where(ends & (table["epoch"] > 0), 3, 2))  # six of ten gain one: p = 1/64
    active = fewer[["run", "epoch", "modularity", "null_circular", "well_defined"]]
    same = replace(study, extras={"active": active})

    def word(evidence: list[Evidence]) -> str:
        return active_verdicts([same], evidence)["active neurons"].item()

    alone = [e for e in collect_evidence([same]) if e.test in ("H1a null", "H1a untrained", "H1b")]
    assert word(alone) == "supported"
    many = [*alone, *(replace(GOOD, p_value=0.001, dataset=str(k)) for k in range(9))]
    assert word(many) == "supported", "those that pass cost nothing"
    assert word([*alone, *(replace(GOOD, p_value=0.9, dataset=str(k)) for k in range(9))]) == "not supported"
