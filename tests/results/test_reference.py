"""Committed results are what the code computes: one run of each kind is made again and compared, row by row.

On the platform that made the tables every value must be the same to the last bit. Elsewhere roundings differ, and
training turns them into other networks: there accuracies must agree within 0.02 and modularity within 0.1.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nbutils.archive import RESULTS, has_archive, read_archive
from nbutils.catalogue import available
from nbutils.evidence import RULES
from nbutils.extras import extra
from nbutils.hypotheses import collect_evidence, evaluate_test, rows_of
from nbutils.measures import MeasureSpec, measure_run
from nbutils.provenance import provenance
from nbutils.reference import REFERENCE, SMALL, reference_tasks
from nbutils.results import PARTS
from nbutils.runs import run_once
from nbutils.specs import RunSpec

ROOT = Path(__file__).resolve().parents[2]
EPOCHS = 2  # epochs do not depend on how many follow, so the first ones can be compared alone
TOLERANCE = {"train_accuracy": 0.02, "test_accuracy": 0.02, "modularity": 0.1}
NAMES = (*REFERENCE, *SMALL)
KINDS = [(name, part) for name in NAMES for part in PARTS]


@pytest.fixture(scope="module")
def studies():
    names = [name for name in NAMES if has_archive(ROOT / RESULTS / name)]
    return {name: read_archive(ROOT / RESULTS / name, name) for name in names}


def first_run(studies, name: str, part: str) -> pd.Series:
    if name not in studies:
        pytest.skip(f"no tables of {name}")
    runs = studies[name].runs
    rows = runs[(runs["status"] == "done") & runs["parts"].str.split().map(lambda parts: part in parts)]
    if rows.empty:
        pytest.skip(f"the study of {name} has no run for {part}")
    if not available(rows["dataset"].iloc[0]):
        pytest.skip(f"the data of {name} are not here")
    return rows.iloc[0]


def spec_of(row: pd.Series, **changes) -> RunSpec:
    given = {name: row[name] for name in RunSpec.model_fields if pd.notna(row[name])}
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    whole = {name: int(plain[name]) for name in ("probe",) if name in plain}
    return RunSpec(**plain | whole | changes)


def is_this_platform(row: pd.Series) -> bool:
    now = provenance()
    return row["machine"] == now["machine"] and json.loads(row["versions"]) == json.loads(json.dumps(now["versions"]))


def compare(kept: pd.DataFrame, made: pd.DataFrame, exact: bool, keys: list[str]) -> None:
    """Columns that both have, row by row."""
    both = [name for name in made.columns if name in kept.columns and name != "run"]
    pair = [table[both].sort_values(keys, ignore_index=True) for table in (kept, made)]
    assert len(pair[0]) == len(pair[1]) > 0
    if exact:
        pd.testing.assert_frame_equal(*pair, check_dtype=False, check_categorical=False, check_exact=True)
    for name in TOLERANCE if not exact else ():
        if name in both:
            assert np.allclose(pair[0][name], pair[1][name], atol=TOLERANCE[name]), name


@pytest.mark.parametrize(("name", "part"), KINDS)
def test_the_first_epochs_of_a_run_of_each_kind(studies, name, part):
    row = first_run(studies, name, part)
    results, run = studies[name], run_once(spec_of(row, epochs=EPOCHS, stop_at=None))
    exact = is_this_platform(row)
    measured = measure_run(run, MeasureSpec(null_draws=0)).drop(columns=["null_circular", "null_within", "agreement"])
    kept = results.table[(results.table["run"] == row["run"]) & (results.table["epoch"] <= EPOCHS)]
    compare(kept, measured, exact, ["epoch"])
    for kind, keys in {"evolution": ["epoch"], "answers": ["epoch", "community"]}.items():
        if kind in results.extras and (results.extras[kind]["run"] == row["run"]).any() and exact:
            rows = results.extras[kind]
            rows = rows[(rows["run"] == row["run"]) & (rows["epoch"] <= EPOCHS)]
            compare(rows, extra(run, kind).rows, exact, keys)


def test_a_whole_run_with_its_specifications(studies):
    row = first_run(studies, "mnist", "noise")
    results, run = studies["mnist"], run_once(spec_of(row))
    exact = is_this_platform(row)
    light = next(task.measure for task in reference_tasks("mnist") if task.parts == "noise")
    compare(results.table[results.table["run"] == row["run"]], measure_run(run, light), exact, ["epoch"])
    if exact:
        assert run.address == row["run"]
        for kind, key in {"specifications": "specification", "living": "epoch"}.items():
            kept = results.extras[kind]
            compare(kept[kept["run"] == row["run"]], extra(run, kind).rows, exact, [key])


@pytest.mark.parametrize("name", NAMES)
def test_the_tables_hold_runs_of_the_study_and_say_where_they_come_from(studies, name):
    if name not in studies:
        pytest.skip(f"no tables of {name}")
    results = studies[name]
    planned = {(t.run.model_copy(update={"device": "cpu"}), t.parts) for t in reference_tasks(name)}
    assert {(spec_of(row), row["parts"]) for _, row in results.runs.iterrows()} <= planned
    assert results.runs["run"].is_unique
    assert set(results.table["run"]) == set(results.runs.loc[results.runs["status"] == "done", "run"])
    assert results.runs["commit"].str.fullmatch("[0-9a-f]{12}").all(), "every run was made at a commit, without changes"
    assert not results.table.duplicated(["run", "epoch"]).any()


def test_verdicts_follow_from_the_tables(studies):
    if not studies:
        pytest.skip("no tables")
    found = collect_evidence(list(studies.values()))
    assert {e.dataset for e in found} == set(studies)
    for name, results in studies.items():
        final = results.conditions().groupby("run").tail(1)
        gap = (final["modularity"] - final["null_circular"])[final["labels"] == "true"]
        (test,) = [e for e in found if (e.dataset, e.test, e.condition) == (name, "H1a null", "true")]
        assert test.estimate == pytest.approx(gap.mean())


def test_the_test_within_runs_sees_what_is_there(studies):
    """The threats to validity say so: training loss in the place of the measure passes wherever there are tables."""
    for name, results in studies.items():
        rows = rows_of(results, "H2a").assign(modularity=lambda table: -table["train_loss"])
        found = evaluate_test("H2a", rows, draws=999)
        assert found.p_value <= 0.002, name
        assert found.low > 0, name


def test_every_untrained_network_passes_h1a_null(studies):
    for name, results in studies.items():
        start = rows_of(results, "H1a null").query("epoch == 0")
        assert (start["modularity"] - start["null_circular"]).min() > RULES.excess, name


def test_tables_stay_small():
    size = sum(path.stat().st_size for path in (ROOT / RESULTS).rglob("*") if path.is_file())
    assert size < 20 * 2**20
