from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbutils.data.datasets import load_dataset
from nbutils.study.archive import (
    FILES,
    REFERENCE,
    archive_digest,
    has_archive,
    read_archive,
    reference_tasks,
    write_archive,
)
from nbutils.study.extras import EXTRAS
from nbutils.study.hypotheses import collect_evidence
from nbutils.study.results import CONDITIONS, NOISE_LEVELS, PARTS
from nbutils.study.study import Study, about_data, collect, compute_missing

SMALL = Study(seeds=2, epochs=2, model="mlp:12-6")
ALONE = ("evolution", "selectivity", "reconstruction")


@pytest.fixture(scope="module")
def results():
    """A small study with every extra."""
    tasks = [
        replace(task, run=task.run.model_copy(update={"checkpoints": True}), extras=_extras(task.parts))
        for task in SMALL.tasks()
    ]
    compute_missing(tasks, jobs=1)
    return collect("digits", tasks, about_data(load_dataset("digits")), 0)


def _extras(parts: str) -> tuple[str, ...]:
    return (*(ALONE if "conditions" in parts else ()), *(("active", "specifications") if "noise" in parts else ()))


@pytest.fixture
def folder(results, tmp_path):
    write_archive(tmp_path / "digits", results)
    return tmp_path / "digits"


def test_tables_give_the_results_back(results, folder):
    back = read_archive(folder, "digits")
    order = ["run", "epoch"]
    before, after = (r.table.sort_values(order, ignore_index=True) for r in (results, back))
    assert set(before.columns) == set(after.columns)
    pd.testing.assert_frame_equal(before, after[before.columns], check_dtype=False, check_exact=True)
    runs = [r.runs.sort_values("run", ignore_index=True) for r in (results, back)]
    pd.testing.assert_frame_equal(*runs, check_dtype=False)
    assert back.computed is None
    assert set(back.extras) == set(results.extras) == set(EXTRAS)
    for name in EXTRAS:
        before, after = results.extras[name], back.extras[name]
        pd.testing.assert_frame_equal(before, after, check_dtype=False, check_categorical=False)
        assert set(back.extra(name)["run"]) <= set(back.runs["run"])
    assert back.about == json.loads(json.dumps(results.about))
    assert [e.estimate for e in collect_evidence([back])] == [e.estimate for e in collect_evidence([results])]


def test_specimens_fire_as_their_runs_do(results, folder):
    back = read_archive(folder, "digits")
    for labels in CONDITIONS:
        kept, made = back.run(labels), results.run(labels)
        assert kept.address == made.address
        assert (kept.layers == made.layers).all()
        assert (kept.probe_labels == made.probe_labels).all()
        assert (kept.tracked() == made.tracked()).all()
        for epoch in (0, -1):
            assert (kept.fired(epoch) == made.fired(epoch)).all()
    with pytest.raises(ValueError, match="epochs 0 and -1"):
        back.run("true").fired(1)
    with pytest.raises(ValueError, match="no finished run with labels='mixed:0\\.1'"):
        back.run("mixed:0.1")


def test_every_row_leads_to_a_run_with_its_origin(folder):
    back = read_archive(folder, "digits")
    assert set(back.table["run"]) == set(back.runs["run"])
    for column in ("commit", "time", "machine", "versions", "data_version", "seed", "status", "seconds"):
        assert back.runs[column].notna().all(), column
    assert "torch" in json.loads(back.runs["versions"].iloc[0])


def test_writing_again_changes_nothing(results, folder):
    before = archive_digest(folder)
    write_archive(folder, results)
    assert archive_digest(folder) == before
    write_archive(folder, read_archive(folder, "digits"))
    assert archive_digest(folder) == before


@pytest.mark.parametrize("name", FILES)
def test_missing_and_damaged_files_are_named(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=f"{name} is damaged"):
        read_archive(folder, "digits")
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"has no {name}; run python -m nbutils study digits"):
        read_archive(folder, "digits")


def test_whether_there_are_tables(folder, tmp_path):
    assert has_archive(folder)
    assert not has_archive(tmp_path)


@pytest.mark.parametrize("name", REFERENCE)
def test_the_reference_study_is_the_paper_s(name):
    tasks = reference_tasks(name)
    assert len({task.run for task in tasks}) == len(tasks)
    assert {part for task in tasks for part in task.parts.split()} <= set(PARTS)
    conditions = [t.run for t in tasks if t.parts == "conditions"]
    for labels in REFERENCE[name].conditions:
        assert sum(run.labels == labels for run in conditions) == 10
    facts = {(run.model, run.dropout, run.epochs, run.batch_size, run.learning_rate) for run in conditions}
    assert facts == {("mlp:512-512", 0.02, 20, 32, 0.001)}
    noise = [t.run for t in tasks if t.parts == "noise"]
    if REFERENCE[name].grid:
        assert {(run.labels, run.seed) for run in noise} == {(level, s) for level in NOISE_LEVELS for s in range(5)}
    (memorising,) = [t.run for t in tasks if t.parts == "memorising"]
    assert (memorising.labels, memorising.dropout, memorising.stop_at) == ("random", 0.0, 0.95)
    for hurried in (t.run for t in tasks if t.parts == "hurried"):
        assert (hurried.learning_rate, memorising.learning_rate) == (0.001, 0.0001)


def test_only_the_first_condition_keeps_checkpoints():
    tasks = reference_tasks("mnist")
    kept = {(t.parts, t.run.labels) for t in tasks if t.run.checkpoints}
    assert kept == {("conditions", "true"), ("released", "true")}
    assert np.all([t.run.input_scale == 255 for t in tasks if t.parts == "released"])


def test_tables_of_which_half_was_replaced_are_refused(folder):
    runs = pd.read_parquet(folder / "runs.parquet")
    runs.assign(run=[f"{number:016x}" for number in range(len(runs))]).to_parquet(folder / "runs.parquet")
    with pytest.raises(ValueError, match=r"is damaged: runs.parquet and measurements.parquet are not of the same runs"):
        read_archive(folder, "digits")
