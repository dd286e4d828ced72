"""What is left over in networks of the second study: rows of a real network, and answers on simulated truth."""

import json

import numpy as np
import pandas as pd
import pytest

from nbutils.experiments import left_over as module
from nbutils.experiments.designs import EXPERIMENTS
from nbutils.experiments.left_over import LEFT_QUESTIONS, left_answers, left_rows, left_tables, left_trials
from nbutils.experiments.trials import Trial
from nbutils.measures import class_cells
from nbutils.runs.looks import look_at
from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec
from nbutils.second.networks import read_tables
from nbutils.study.cases import compute_cases
from nbutils.support.files import project_folder
from nbutils.truth.remainders import left_over

COLUMNS = {"conditional", "left", "groups", "nothing", "by_class", "book_by_class", "left_first", "left_second"}


def test_rows_of_a_network_before_and_after_training(tmp_path):
    trial = Trial(RunSpec(model="mlp:64-32", epochs=5, every_epoch=False), "runs")
    after, before = left_rows(trial)
    assert set(after) >= COLUMNS
    assert (after["epoch"], before["epoch"]) == (5, 0)
    assert after["accuracy"] > 0.5 > before["accuracy"]
    look = look_at(run_once(trial.run), neurons=trial.size)
    again = left_over(look.fired, class_cells(look.labels, look.predicted), 0, 48)
    assert {name: after[name] for name in again} == again
    assert abs(after["nothing"]) < 0.02
    assert after["left_first"] == pytest.approx(after["left"], abs=0.1)
    (alone,) = left_rows(Trial(trial.run, "small", neurons=trial.size))
    assert alone == after | {"condition": "small"}


def test_too_few_neurons_have_no_value():
    (row,) = left_rows(Trial(RunSpec(model="mlp:8", epochs=1, every_epoch=False), "small", neurons=9))
    assert np.isnan([row["left"], row["nothing"], row["left_first"]]).all()
    assert row["active"] <= 8


def test_networks_that_are_alike_are_trained_side_by_side_with_the_same_rows(tmp_path, monkeypatch):
    trials = [Trial(RunSpec(model="mlp:16", epochs=1, seed=seed, every_epoch=False), "small") for seed in range(3)]
    alone = pd.DataFrame([row for one in trials for row in left_rows(one)])
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "other"))
    table = compute_cases(
        trials, tmp_path / "left.parquet", left_rows, jobs=1, together=EXPERIMENTS["left-over"].together
    )
    own = ["commit", "time", "seconds"]
    pd.testing.assert_frame_equal(table.drop(columns=own), alone.drop(columns=own))
    assert table["seconds"].nunique() == 1  # one training, shared


@pytest.fixture(scope="module")
def kmnist():
    return read_tables(project_folder("book/results/second") / "book/results/second/kmnist")


def simulated(study, of_accuracy: float, half_noise: float = 0.001) -> pd.DataFrame:
    """A table in which what is left over follows accuracy by so much, and rises by 0.1 with training."""
    rng, rows = np.random.default_rng(0), []
    accuracy = study.networks.set_index("settings")["accuracy"]
    for trial in left_trials(["kmnist"]):
        own = accuracy.get(module.settings_digest(trial.run), 0.9)
        left = 0.3 + of_accuracy * (own - accuracy.mean()) + rng.normal(0, 0.01)
        known = {"condition": trial.condition, "dataset": trial.run.dataset, "labels": "true", "reason": ""}
        known |= {"settings": trial.settings, "run": trial.settings, "accuracy": own, "degenerate": 0.0}
        known |= {"parameters": json.dumps(trial.run.model_dump()), "seed": trial.run.seed}
        for epoch in (trial.run.epochs, 0) if trial.condition == "runs" else (trial.run.epochs,):
            at = left - 0.1 * (epoch == 0) * (1 + rng.normal(0, 0.1))
            halves = {f"left_{part}": at + rng.normal(0, half_noise) for part in ("first", "second")}
            rows.append(known | {"epoch": epoch, "left": at, **halves})
    return pd.DataFrame(rows)


def words(table, study) -> dict[str, str]:
    answers = left_answers(table, {"kmnist": study})
    assert [one.question for one in answers] == list(LEFT_QUESTIONS)
    return {one.question.name: one.word for one in answers}


def test_words_follow_the_truth(kmnist):
    found = words(simulated(kmnist, of_accuracy=3.0), kmnist)
    assert found == dict.fromkeys((one.name for one in LEFT_QUESTIONS), "supported")
    found = words(simulated(kmnist, of_accuracy=0.0), kmnist)
    assert found["H2 left over, performance"] == found["H2 left over, added"] == "no association"
    assert found["H1 left over within classes"] == found["H1 left over, by training"] == "supported"
    found = words(simulated(kmnist, of_accuracy=-0.5), kmnist)
    assert found["H2 left over, performance"] == "contradicted"


def test_a_measure_that_two_halves_disagree_on_is_not_measurable(kmnist):
    found = words(simulated(kmnist, of_accuracy=0.5, half_noise=1.0), kmnist)
    assert found["H2 left over, performance"] == found["H2 left over, added"] == "not measurable"


def test_baselines_are_those_of_the_very_same_networks(kmnist):
    table = simulated(kmnist, of_accuracy=0.5)
    found = left_tables(table, "kmnist", kmnist)
    zoo = found.networks[found.networks["designs"] == "small"]
    assert len(zoo) == 336
    assert zoo["family"].nunique() == 56
    there = kmnist.networks.set_index("settings")
    run = RunSpec(**json.loads(zoo["parameters"].iloc[7]))
    same = there.loc[module.settings_digest(run)]
    wide = found.measures.query("part == 'whole' and epoch > 0").pivot(index="run", columns="measure", values="value")
    asked = kmnist.measures.query("run == @same.run and part == 'whole' and epoch > 0").set_index("measure")["value"]
    assert wide.loc[zoo["run"].iloc[7], "train_loss"] == asked["train_loss"]
    assert zoo["family"].iloc[7] == same["family"]
    alone = left_tables(table, "kmnist")
    assert set(alone.networks["designs"]) == {"runs"}
    assert len(alone.networks) == 10


def test_a_zoo_that_is_not_finished_is_not_told_of(kmnist):
    table = simulated(kmnist, of_accuracy=0.5)[:-1]
    assert [one.question.design for one in left_answers(table, {"kmnist": kmnist})] == ["runs", "runs"]


def test_failed_networks_are_left_out_and_counted(kmnist):
    table = simulated(kmnist, of_accuracy=0.5)
    table.loc[table["condition"] == "runs", "degenerate"] = 1.0
    answers = left_answers(table, {"kmnist": kmnist})
    assert (answers[0].word, answers[0].networks, answers[0].degenerate) == ("undecided", 0, 10)
