from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbutils.pages import memorising as figures
from nbutils.pages.memorising import (
    ENTROPIES,
    at_turn,
    clock_table,
    clock_words,
    late_rise,
    learners,
    long_runs,
    matched_table,
    random_networks,
    turn_of,
    turning_table,
)
from nbutils.study.results import Results

LONG, SHORT = np.arange(31), np.arange(21)  # epochs


def rows(run, parts, dataset, labels, seed, accuracy, entropy):
    """One simulated run: all measures are the same, but the modularity is the entropy upside down."""
    epochs = np.arange(len(accuracy))
    measures = {**dict.fromkeys(ENTROPIES, entropy), "modularity": 100 - entropy}
    known = {"run": run, "parts": parts, "dataset": dataset, "labels": labels, "seed": seed}
    shown = {"train_accuracy": accuracy, "true_accuracy": 0.1, "test_accuracy": 0.1, "dead_share": 0.5}
    return pd.DataFrame({**known, "epoch": epochs, **shown, **measures})


def simulated(lowest=12, short_lowest=9, reached=0.96, speed=1.0, short=True, dataset="mnist"):
    """A data set whose long run turns at one epoch, and whose networks of 20 epochs turn at another."""
    climb = np.linspace(0.1, reached, len(LONG))
    frames = [rows("long", "memorising", "mnist-10k", "random", 0, climb, 50.0 + np.abs(LONG - lowest))]
    for seed in range(4):
        accuracy, entropy = 0.1 + 0.03 * speed * SHORT, 50.0 + seed + np.abs(SHORT - short_lowest)
        if short:
            frames.append(rows(f"random{seed}", "conditions", "mnist", "random", seed, accuracy, entropy))
        true = np.full(21, 0.525)  # what the long run reaches at epoch 15 if it ends at 0.95
        frames.append(rows(f"true{seed}", "noise", "mnist-10k", "true", seed, true, np.full(21, 40.0 + seed)))
        frames.append(rows(f"whole{seed}", "conditions", "mnist", "true", seed, true, np.full(21, 0.0)))
    table = pd.concat(frames, ignore_index=True)
    runs = table.drop_duplicates("run")[["run", "parts", "dataset", "labels", "seed"]].assign(
        batch_size=32, learning_rate=0.001, epochs=1500, model="mlp:512-512"
    )
    about = {"classes": list(range(10)), "train": 60_000}
    return Results(dataset, table, runs, {}, about, None)


def test_runs_know_their_clock_and_leave_the_untrained_network_out():
    result = simulated()
    long, short = long_runs([result]), random_networks([result])
    assert long["epoch"].tolist() == LONG[1:].tolist()
    assert long["updates"].iloc[-1] == 30 * 313, "10,000 images in batches of 32, the last one smaller"
    assert short.groupby("run")["updates"].max().unique().tolist() == [20 * 1875]
    assert set(long["title"]) == {"MNIST"}
    assert set(long["chance"]) == {0.1}
    assert set(short["labels"]) == {"random"}
    assert random_networks([simulated(short=False)]).empty


def test_where_measures_turn():
    long = long_runs([simulated(lowest=12)])
    table = turning_table(long).set_index("measure")
    row = table.loc["firing entropy (bits)"]
    assert (row["lowest at"], row["rising from"]) == (12, 13)
    assert row["accuracy there"] == pytest.approx(0.1 + 12 * 0.86 / 30)
    assert row["fall, %"] == pytest.approx(100 * (10.5 - 2 / 3) / 61)
    assert np.isnan(table.loc["modularity Q", "lowest at"]), "a hill is no turn upward"
    turn = turn_of(long, "binned_entropy")
    assert at_turn(long, turn, "updates") == 12 * 313


def test_three_clocks_and_networks_that_agree():
    result = simulated(lowest=12, short_lowest=9)
    table = clock_table(long_runs([result]), random_networks([result]))
    long, short = (table[table["kind"] == kind].iloc[0] for kind in ("long", "short"))
    assert (long["runs"], long["turn"], long["epoch"], long["updates"]) == (1, 1, 12, 12 * 313)
    assert np.isnan([long["share low"], long["epoch low"], long["rise"]]).all(), "one run has no interval"
    assert (short["runs"], short["turn"], short["epoch"]) == (4, 4, 9)
    assert (short["epoch low"], short["epoch high"]) == (9, 9)
    assert short["share low"] == pytest.approx(0.025 ** (1 / 4)), "Clopper and Pearson, all of four"
    assert short["rise"] == pytest.approx(10.5 - 2 / 3)
    words = clock_words(table).set_index("")
    assert words.loc["runs that turn"].tolist() == ["1 of 1", "4 of 4"]
    assert words.loc["epoch"].tolist() == ["12.0", "9.0 (9.0\u00a0to\u00a09.0)"]


def test_a_sum_that_rises_because_dead_neurons_come_back():
    result = simulated(lowest=12, short_lowest=9)
    counts = ["data set", "kind", "runs", "turn", "fewer dead since", "per active neuron"]
    found = clock_table(long_runs([result]), random_networks([result]))[counts]
    assert found.values.tolist() == [["MNIST", "long", 1, 1, 0, 1], ["MNIST", "short", 4, 4, 0, 4]]
    short = random_networks([result])
    assert short["active_entropy"].to_numpy() == pytest.approx(short["binned_entropy"].to_numpy() / 512)
    extinct = replace(result, table=result.table.assign(dead_share=1.0, binned_entropy=0.0))
    assert (random_networks([extinct])["active_entropy"] == 0).all(), "nothing alive has no entropy"
    fading = 80.0 - result.table["epoch"]  # bits, if all neurons lived
    table = result.table.assign(dead_share=1 - result.table["binned_entropy"] / fading)
    reborn = replace(result, table=table)
    found = clock_table(long_runs([reborn]), random_networks([reborn])).set_index("kind")
    assert found.loc["short", ["turn", "fewer dead since", "per active neuron"]].tolist() == [4, 4, 0]


CRITERIA = [
    "long run memorises",
    "it turns",
    "short runs turn",
    "at the same accuracy",
    "they memorise on",
    "active neurons turn, too",
]


def reading(result: Results) -> dict[str, str]:
    clocks = clock_table(long_runs([result]), random_networks([result]))
    (row,) = late_rise(clocks).to_dict("records")
    assert list(row) == ["data set", *CRITERIA, "first reading", "reading"]
    return row


@pytest.mark.parametrize(
    ("options", "word", "missed"),
    [
        ({"lowest": 12, "short_lowest": 11}, "possible", []),
        ({"lowest": 12, "short_lowest": 5}, "unlikely", ["at the same accuracy"]),
        ({"lowest": 3, "short_lowest": 12, "speed": 0.15}, "unlikely", ["they memorise on"]),
        ({"lowest": 40, "short_lowest": 12}, "unlikely", ["it turns", "at the same accuracy"]),
        ({"lowest": 12, "reached": 0.6}, "open", ["long run memorises"]),
        ({"lowest": 12, "short_lowest": 25}, "open", CRITERIA[2:]),
        ({"lowest": 12, "short": False}, "open", []),
    ],
)
def test_the_reading_follows_the_criteria(options, word, missed):
    row = reading(simulated(**options))
    assert row["reading"] == row["first reading"] == word
    assert set(missed) <= {name for name in CRITERIA if row[name] == "no"}
    if word == "possible":
        assert {row[name] for name in CRITERIA} == {"yes"}
    if not options.get("short", True):
        assert {row[name] for name in CRITERIA[2:]} == {"–"}, "without short runs there is nothing to say of them"


def test_dead_neurons_that_fire_again_are_no_memorising():
    """The sum turns in all short runs, the entropy per active neuron in none: the reading must say what that shows."""
    result = simulated(lowest=12, short_lowest=11)
    assert reading(result)["reading"] == "possible"
    fading = 80.0 - result.table["epoch"]
    reborn = replace(result, table=result.table.assign(dead_share=1 - result.table["binned_entropy"] / fading))
    row = reading(reborn)
    assert [name for name in CRITERIA if row[name] == "no"] == ["active neurons turn, too"]
    assert (row["first reading"], row["reading"]) == ("possible", "unlikely"), "by what was added afterwards"


def test_runs_that_failed_to_memorise_at_the_paper_s_rate():
    result = simulated()
    assert set(long_runs([result])["learning_rate"]) == {0.001}
    assert long_runs([result], "hurried").empty
    hurried = rows("hurried", "hurried", "mnist-10k", "random", 0, np.linspace(0.1, 0.7, 31), np.full(31, 50.0))
    runs = pd.concat([result.runs, result.runs.iloc[:1].assign(run="hurried", parts="hurried", learning_rate=0.01)])
    both = replace(result, table=pd.concat([result.table, hurried]), runs=runs)
    last = long_runs([result, both], "hurried").iloc[-1]
    assert (last["title"], last["epoch"], last["learning_rate"]) == ("MNIST", 30, 0.01)
    assert last["train_accuracy"] == pytest.approx(0.7)
    assert set(long_runs([both])["run"]) == {"long"}, "it is no long run that memorises"


def test_learning_beside_memorising_at_equal_accuracy():
    result = simulated(lowest=12, reached=0.95)
    assert set(learners(result)["run"]) == {f"true{seed}" for seed in range(4)}, "of the same images only"
    row = matched_table([result]).iloc[0]
    assert row["networks"] == 4
    assert row["learning"] == pytest.approx(41.5)
    assert row["memorising"] == pytest.approx(53), "three epochs after the turn"
    assert row["difference"] == pytest.approx(-11.5)
    assert row["low"] < -11.5
    assert row["high"] > -11.5
    never = matched_table([simulated(reached=0.5)]).iloc[0]
    assert never["networks"] == 0
    assert np.isnan([never["learning"], never["difference"], never["low"]]).all()


def test_data_sets_without_a_memorising_run_are_left_out():
    result = simulated()
    table = result.table[result.table["parts"] != "memorising"]
    without = Results("mnist", table, result.runs, {}, result.about, None)
    assert long_runs([without]).empty
    assert matched_table([without]).empty
    assert learners(without).empty


def test_the_figures_show_what_the_tables_hold():
    results = [simulated(), simulated(lowest=40, dataset="cifar10", short=False)]
    long, short = long_runs(results), random_networks(results)
    first = figures.course_figure(long, ENTROPIES, "train_accuracy").axes[0]
    dots = [line.get_xydata().tolist() for line in first.lines if line.get_marker() == "o"]
    assert dots == [[[pytest.approx(0.444), 50]]], "one of the two turns"
    marked = figures.course_figure(long, {"modularity": "Q"}, mark="binned_entropy").axes[0]
    assert [line.get_xydata().tolist() for line in marked.lines if line.get_marker() == "o"] == [[[12, 50]]]
    (panel,) = figures.short_figure(short, "binned_entropy", "entropy").axes
    assert sum(line.get_marker() == "o" for line in panel.lines) == 4
