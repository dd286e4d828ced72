"""Experiments: designs that differ in what they say, tables that lose nothing, effects that are there when made so."""

import contextlib
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbutils.cli import main
from nbutils.experiments import trials as module
from nbutils.experiments.causes import (
    BASE,
    CAUSE_RULES,
    COEFFICIENTS,
    CONTROLS,
    LABELS,
    PUSHED,
    REGULARISERS,
    cause_trials,
)
from nbutils.experiments.conditions import (
    CONDITIONS,
    REFERENCE,
    TARGETS,
    Condition,
    condition_trials,
    conditions_of,
)
from nbutils.experiments.designs import EXPERIMENTS, experiment_trials
from nbutils.experiments.effects import condition_effects, paired, told_effects
from nbutils.experiments.trials import OUTCOMES, Trial, trial_row, trial_rows
from nbutils.runs.looks import look_at
from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec
from nbutils.second.candidates import CANDIDATES
from nbutils.stats import holm
from nbutils.study.cases import compute_cases, missing_cases, read_cases

SMALL = {"model": "mlp:24-16", "epochs": 2, "every_epoch": False}


def small(count=3, **more):
    return [Trial(RunSpec(**{**SMALL, **more, "seed": seed}), "reference") for seed in range(count)]


# Conditions that differ from what they are held against in more than one parameter, and why.
EXTRA = {
    "held back": {"schedule", "validation"},  # a schedule that never stalls: the images are held back for nothing
    "forty epochs, held back": {"schedule", "validation"},
    "early stopping": {"schedule", "patience"},  # that schedule, and patience instead
    "sgd": {"optimiser", "learning_rate"},  # its rate is one that fits it
}


def test_each_condition_changes_only_what_it_says():
    plain = RunSpec(**REFERENCE).model_dump()
    by_name = {one.name: one for one in CONDITIONS}
    assert len(by_name) == len(CONDITIONS)
    for one in CONDITIONS:
        changed = RunSpec(**{**REFERENCE, **one.changes}).model_dump()
        assert {key for key in {*plain, *changed} if plain.get(key) != changed.get(key)} == {
            name for name, value in one.changes.items() if value != plain.get(name, RunSpec.model_fields[name].default)
        }
        assert one.name == "reference" or changed != plain
        assert one.about.endswith(".")
        assert one.formula
        assert one.title
        other = RunSpec(**{**REFERENCE, **by_name[one.against].changes}).model_dump()
        differs = {key for key in {*other, *changed} if other.get(key) != changed.get(key)}
        if one.group == "activation function":  # each with the weights that fit it
            assert "activation" in differs <= {"activation", "initialisation"}
        elif one.name != "reference":
            assert len(differs) == 1 or differs <= EXTRA.get(one.name, set()), (one.name, differs)


def test_the_designs_are_as_large_as_they_must_be():
    found = condition_trials()
    assert len(found) == len(set(found)) == 8 * sum(len(conditions_of(name)) for name in TARGETS)
    assert len({one.run.seed for one in found}) >= 5
    doses = cause_trials()
    assert len(COEFFICIENTS) + 1 >= 9
    assert min(COEFFICIENTS) < 0 < max(COEFFICIENTS)
    each = len(REGULARISERS) + 1 + len(COEFFICIENTS) * (len(PUSHED) + len(CONTROLS))
    assert len(doses) == len({one.settings for one in doses}) == 10 * 3 * len(LABELS) * each
    assert {column for column, _ in PUSHED.values()} | set(CONTROLS.values()) == set(CAUSE_RULES.shift)
    assert set(CAUSE_RULES.shift) <= set(OUTCOMES)
    assert BASE["model"] == REFERENCE["model"]


def test_rules_have_a_digest_that_changes_with_them():
    assert CAUSE_RULES.digest != replace(CAUSE_RULES, threshold=0.02).digest
    assert CAUSE_RULES.digest != replace(CAUSE_RULES, shift={**CAUSE_RULES.shift, "modularity": 0.2}).digest


def test_an_experiment_is_known_by_name():
    assert set(EXPERIMENTS) == {
        "conditions",
        "cause",
        "early",
        "lesions",
        "pushed",
        "noisy-lesions",
        "class-groups",
        "class-losses",
        "partitions",
        "pruning",
        "left-over",
        "planted",
        "sparse",
        "sparse-places",
        "sparse-density",
        "sparse-full",
    }
    with pytest.raises(ValueError, match=r"experiment must be one of conditions, cause, .*, received 'casue'"):
        experiment_trials("casue")


def test_the_command_plans_computes_and_goes_on(tmp_path, capsys, monkeypatch):
    asked = [
        "experiment",
        "cause",
        "--datasets",
        "digits",
        "--seeds",
        "1",
        "--into",
        str(tmp_path / "mine"),
        "--jobs",
        "1",
    ]
    monkeypatch.setattr("nbutils.experiments.causes.COEFFICIENTS", (-1.0, 1.0))
    monkeypatch.setattr("nbutils.experiments.causes.LABELS", {"true": 1})
    monkeypatch.setattr("nbutils.experiments.causes.BASE", {**BASE, "model": "mlp:24-16"})
    assert main([*asked, "--plan"]) == 0
    assert "Missing: 17 networks, about" in capsys.readouterr().out
    assert not (tmp_path / "mine").exists()
    assert main(asked) == 0
    assert "cause.parquet: 17 networks, 0 failed" in capsys.readouterr().out
    table = read_cases(tmp_path / "mine" / "cause.parquet")
    assert set(table["condition"]) == {"none", *PUSHED, *CONTROLS, *REGULARISERS}
    assert main([*asked, "--plan"]) == 0
    assert "Missing: 0 networks" in capsys.readouterr().out
    for wrong, sentence in (
        (
            ["experiment", "causes"],
            f"must be one of {', '.join(EXPERIMENTS)}",
        ),
        (["experiment", "conditions", "--datasets", "nist"], "dataset must be one of"),
        (["experiment", "conditions", "--seeds", "0"], "--seeds"),
    ):
        with contextlib.suppress(SystemExit):
            assert main(wrong) == 2
        assert sentence in capsys.readouterr().err


def test_outcomes_are_those_of_the_registry():
    look = look_at(run_once(RunSpec(model="mlp:24-16", epochs=4, every_epoch=False)))
    found = module.outcomes(look)
    for candidate in CANDIDATES:
        columns = set(candidate.columns) & set(found) - {"communities"}
        values = candidate.take(look) if columns else {}
        for column in columns:
            assert found[column] == pytest.approx(values[column], abs=1e-12)
    assert found["excess"] == pytest.approx(found["class_part"] + found["remainder"])


def test_a_row_says_all_that_a_reader_needs():
    (trial,) = small(1, dropout=0.5)
    row = trial_row(trial)
    assert set(OUTCOMES) <= set(row)
    assert {"mc_accuracy", "mc_calibration", "mc_entropy", "mc_disagreement", "single_accuracy"} <= set(row)
    assert 0 < row["mc_disagreement"] < row["mc_entropy"] < np.log2(10)
    assert RunSpec(**json.loads(row["parameters"])) == trial.run
    assert row["commit"]
    run = run_once(trial.run)
    assert row["accuracy"] == look_at(run).run["other_accuracy"]


def test_a_table_keeps_what_it_holds_and_adds_what_is_missing(tmp_path, monkeypatch):
    path, design = tmp_path / "small.parquet", small(4)
    compute_cases(design[:2], path, trial_rows, jobs=1)
    first = read_cases(path)
    elsewhere = first.assign(machine="another", accuracy=0.125)  # computed on a machine whose store is not here
    elsewhere.to_parquet(path)
    assert missing_cases(design, path) == design[2:]
    made = []
    original = module.trial_row
    monkeypatch.setattr(module, "trial_row", lambda trial: made.append(trial) or original(trial))
    table = compute_cases(design, path, trial_rows, jobs=1)
    assert not set(made) & set(design[:2])
    assert table["settings"].tolist() == [one.settings for one in design]
    assert (table["machine"][:2] == "another").all()
    assert (table["accuracy"][:2] == 0.125).all()
    assert missing_cases(design, path) == []


def test_interrupted_work_is_in_the_table(tmp_path):
    path, design = tmp_path / "cut.parquet", small(3, learning_rate=0.002)

    def stop(finished, _wanted):
        if finished == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compute_cases(design, path, trial_rows, jobs=1, progress=stop)
    assert len(read_cases(path)) == 2
    assert len(compute_cases(design, path, trial_rows, jobs=1)) == 3


def test_part_of_a_design_is_added_to_its_table(tmp_path):
    path, design = tmp_path / "part.parquet", small(3)
    compute_cases(design[2:], path, trial_rows, jobs=1)
    with pytest.raises(ValueError, match="no part of this experiment"):
        compute_cases(design[:1], path, trial_rows, jobs=1)
    table = compute_cases(design[:1], path, trial_rows, jobs=1, design=design)
    assert table["settings"].tolist() == [design[0].settings, design[2].settings]


def test_a_table_of_something_else_is_not_written_over(tmp_path):
    path = tmp_path / "other.parquet"
    compute_cases(small(1), path, trial_rows, jobs=1)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="holds 1 networks that are no part of this experiment"):
        compute_cases(small(1, epochs=1), path, trial_rows, jobs=1)
    assert path.read_bytes() == before
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(ValueError, match="is damaged"):
        compute_cases(small(1), path, trial_rows, jobs=1)
    with pytest.raises(FileNotFoundError, match="run python -m nbutils experiment gone"):
        read_cases(tmp_path / "gone.parquet")


def test_failed_and_degenerate_networks_are_told(tmp_path):
    path = tmp_path / "bad.parquet"
    design = [*small(1, learning_rate=1e30), *small(1, l1=10.0, seed=1)]
    table = compute_cases(design, path, trial_rows, jobs=1)
    assert "training diverged" in table["reason"][0]
    assert np.isnan(table["accuracy"][0])
    assert table["degenerate"][1] == 1


def made_up(effect, noise=0.01, seeds=8, seed=0):
    """A table in which one condition changes accuracy by a known effect, another by nothing; seeds share their luck."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(seeds):
        luck = rng.normal(0.8, 0.05)
        for name in ("reference", "sgd", "power"):
            value = luck + (effect if name == "sgd" else 0) + rng.normal(0, noise) * (name != "reference")
            rows.append({"dataset": "kmnist", "condition": name, "seed": number, "accuracy": value})
    return pd.DataFrame(rows).assign(reason="", degenerate=0.0)


def only(monkeypatch, *names):
    chosen = [one for one in CONDITIONS if one.name in names]
    monkeypatch.setattr("nbutils.experiments.effects.conditions_of", lambda _dataset: chosen)


def test_an_effect_is_found_beside_the_luck_of_seeds(monkeypatch):
    only(monkeypatch, "reference", "sgd", "power")
    found = condition_effects(made_up(0.05), ["accuracy"]).set_index("condition")
    assert found.loc["sgd", "low"] < 0.05 < found.loc["sgd", "high"]
    assert found.loc["sgd", "high"] - found.loc["sgd", "low"] < 0.03  # though accuracies differ by 0.05 between seeds
    assert found.loc["sgd", "adjusted"] < 0.001
    assert found["adjusted"].tolist() == pytest.approx(holm(found["p_value"].tolist()))
    assert found["networks"].tolist() == [8, 8]
    told = told_effects(found.reset_index())
    assert told.columns.tolist() == ["condition", "test accuracy"]
    assert told["test accuracy"].str.startswith("**").tolist() == (found["adjusted"] <= 0.05).tolist()


def test_no_effect_is_seldom_found(monkeypatch):
    only(monkeypatch, "reference", "sgd", "power")
    tables = [condition_effects(made_up(0.0, seed=seed), ["accuracy"]) for seed in range(200)]
    wrong = np.mean([(table["adjusted"] <= 0.05).any() for table in tables])
    covered = np.mean([((table["low"] < 0) & (table["high"] > 0)).mean() for table in tables])
    assert wrong < 0.09
    assert 0.92 < covered < 0.98


def test_degenerate_networks_decide_nothing(monkeypatch):
    only(monkeypatch, "reference", "sgd", "power")
    table = made_up(0.05)
    table.loc[(table["condition"] == "sgd") & (table["seed"] < 4), ["degenerate", "accuracy"]] = 1.0, 0.1
    found = condition_effects(table, ["accuracy"]).set_index("condition")
    assert found.loc["sgd", "networks"] == 4
    assert np.isnan(found.loc["sgd", "low"])
    assert found.loc["sgd", "effect"] == pytest.approx(0.05, abs=0.02)
    assert paired(table, "sgd", "reference", "accuracy").min() < -0.5  # would have been


def test_a_condition_is_an_entry(monkeypatch):
    new = Condition(
        "leaky late", "activation function", "leaky", "max(x, x / 100)", "Is new.", {"activation": "leaky_relu"}
    )
    monkeypatch.setattr("nbutils.experiments.conditions.CONDITIONS", (*CONDITIONS, new))
    found = [one for one in condition_trials(["mnist-10k"], seeds=1) if one.condition == "leaky late"]
    assert [one.run.activation for one in found] == ["leaky_relu"]


def test_a_case_named_twice_has_one_row(own_store, tmp_path):
    trials = small(2)
    assert missing_cases([*trials, *trials], tmp_path / "none.parquet") == trials
    compute_cases([*trials, *trials], tmp_path / "twice.parquet", trial_rows, jobs=1)
    assert len(read_cases(tmp_path / "twice.parquet")) == 2


def test_rows_of_a_folder_belong_to_the_pictures_that_it_held(write_pictures):
    trial = Trial(RunSpec(**{**SMALL, "dataset": write_pictures(0)}), "reference")
    before = trial.settings
    assert trial.settings == before
    write_pictures(1)
    assert trial.settings != before
