from __future__ import annotations

import pytest

from nbutils.study.results import CONDITIONS, NOISE_LEVELS
from nbutils.study.study import NOISE_SEEDS, Study, compute_missing, failures, stacks

TINY = {"seeds": 1, "epochs": 1, "model": "mlp:8"}


def test_the_plan():
    tasks = Study(seeds=10).tasks()
    assert len(tasks) == len({t.run for t in tasks}) == 3 * 10 + 5 * NOISE_SEEDS
    assert {t.run.labels for t in tasks} == set(CONDITIONS) | set(NOISE_LEVELS)
    for level in NOISE_LEVELS:
        assert sum(t.run.labels == level and t.run.seed < NOISE_SEEDS for t in tasks) == NOISE_SEEDS
    assert all(t.measure.null_draws for t in tasks if t.run.labels in CONDITIONS)


def test_results_hold_all_runs_and_reuse_them(own_store):
    seen = []
    study = Study(**TINY)
    first = study.compute(jobs=2, progress=lambda done, total: seen.append((done, total)))
    assert first.computed == 8
    assert seen[0] == (0, 8)
    assert seen[-1] == (8, 8)
    second = study.compute()
    assert second.computed == 0
    assert second.table.equals(first.table)
    assert len(second.table) == 8 * 2
    assert set(second.conditions()["labels"]) == set(CONDITIONS)
    assert second.run("random").labels == "random"
    with pytest.raises(ValueError, match="no finished run with labels='true' and seed=9"):
        second.run("true", 9)
    assert second.failed.empty
    assert second.dataset == "digits"


def test_one_process_and_two_give_the_same_table(own_store, tmp_path, monkeypatch):
    first = Study(**TINY).compute(jobs=2).table
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "other"))
    assert Study(**TINY).compute(jobs=1).table.equals(first)


def test_a_failed_run_is_shown_and_stops_no_other(own_store, monkeypatch):
    original = Study.run_spec

    def wild(self, **given):
        spec = original(self, **given)
        return spec.model_copy(update={"learning_rate": 1e30}) if spec.labels == "random" else spec

    monkeypatch.setattr(Study, "run_spec", wild)
    results = Study(**TINY).compute(jobs=1)
    assert results.failed["labels"].tolist() == ["random"]
    assert "diverged" in results.failed["reason"].iloc[0]
    assert set(results.table["labels"]) == set(NOISE_LEVELS) - {"random"}
    assert len(failures(Study(**TINY).tasks())) == 1
    with pytest.raises(ValueError, match="no finished run with labels='random'"):
        results.run("random")


def test_a_study_can_begin_at_any_seed(own_store):
    results = Study(**TINY | {"seeds": 2, "first_seed": 7}).compute(jobs=1)
    assert set(results.runs["seed"]) == {7, 8}
    assert set(results.noise_grid()["labels"]) == set(NOISE_LEVELS)
    assert results.noise_grid()["run"].nunique() == 16
    assert compute_missing(Study(**TINY | {"seeds": 1, "first_seed": 8}).tasks()) == 0


def test_large_networks_get_processes_of_their_own():
    tasks = Study(seeds=10, dataset="mnist-5k", model="mlp:512-512").tasks()
    assert {len(stack) for stack in stacks(tasks, jobs=2)} == {1}
    small = Study(seeds=10, dataset="mnist-5k").tasks()
    found = stacks([*small, *tasks], jobs=2)
    assert [len(stack) for stack in found] == [5] * 11 + [1] * 55
    assert [task for stack in found for task in stack] == [*small, *tasks]


def test_nothing_missing_starts_nothing():
    assert compute_missing([]) == 0


def test_a_grid_on_a_smaller_version_shares_no_run():
    study = Study(dataset="mnist", grid="mnist-10k", conditions=("true",), seeds=10)
    tasks = study.tasks()
    assert [t.parts for t in tasks] == ["conditions"] * 10 + ["noise"] * 40
    assert {t.run.dataset for t in tasks[10:]} == {"mnist-10k"}
    assert [t.parts for t in Study(grid="", seeds=2).tasks()] == ["conditions"] * 6


def test_parts_of_the_results(own_store):
    results = Study(**TINY).compute(jobs=1)
    assert set(results.part("noise")["labels"]) == set(NOISE_LEVELS)
    assert results.part("memorising").empty
    assert results.labels == list(CONDITIONS)
    with pytest.raises(ValueError, match="part must be one of conditions"):
        results.part("nois")


def test_active_neurons_are_measured_alone_at_the_usual_density_only():
    assert {task.extras for task in Study().tasks()} == {("active",)}
    assert {task.extras for task in Study(density=0.1).tasks()} == {()}
