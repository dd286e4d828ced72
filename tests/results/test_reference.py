"""Committed results are what the code computes, on any processor.

Measures of *stored* firing are equal to the last digit everywhere. Training rounds by processor, and roundings grow:
first steps agree within a stated tolerance, and networks that are trained again lie within the spread between seeds
that the tables show. Trained networks are compared bit for bit where the arithmetic is known to be the same: in
portable mode, and on the processor that the tables name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from first_steps import FILE, first_steps, in_new_process

from nbutils.data.catalogue import available
from nbutils.measures import (
    MeasureSpec,
    measure_communities,
    measure_entropies,
    measure_layers,
    measure_nulls,
)
from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec
from nbutils.runs.training import Epoch
from nbutils.study.archive import REFERENCE, RESULTS, SMALL, has_archive, read_archive, reference_tasks
from nbutils.study.extras import extra
from nbutils.study.hypotheses import RULES, collect_evidence, evaluate_test, rows_of
from nbutils.study.measure_run import measure_run
from nbutils.study.results import PARTS, Results
from nbutils.support import machine
from nbutils.support.provenance import arithmetic, provenance

ROOT = Path(__file__).resolve().parents[2]
EPOCHS = 2  # epochs do not depend on how many follow, so the first ones can be compared alone
UNTRAINED = 1e-3  # share of a value by which the loss, accuracy or norm of an untrained network may differ
ALONE = {"train_accuracy": 0.02, "test_accuracy": 0.02, "modularity": 0.2}  # of a network that has no seeds beside it
FLIPPED = 1e-4  # share of firing that rounding may decide before training
STATE = {field.name for field in fields(Epoch)}  # what is known of a network without its firing
COUNTS = ("communities", "well_defined", "well_defined_paper")
FEW = ("digits", "mnist-5k", "mnist")
AVX2 = set(machine.NEEDED) <= set(machine.processor_features())
# Stand for other processors: libraries that may not use all that this one has.
LIMITS = (
    {"ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "ONEDNN_MAX_CPU_ISA": "SSE41"},
    {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "AVX2"},
)
NAMES = (*REFERENCE, *SMALL)
# One network of each small study is trained again in every run of the tests, one of each kind before a release.
QUICK = [(name, "conditions") for name in SMALL]
RELEASE = [(name, part) for name in NAMES for part in PARTS if (name, part) not in QUICK]
pytestmark = pytest.mark.slow(4)
KINDS = [*QUICK, *(pytest.param(*kind, marks=pytest.mark.release) for kind in RELEASE)]


@pytest.fixture(scope="module")
def studies():
    names = [name for name in NAMES if has_archive(ROOT / RESULTS / name)]
    return {name: read_archive(ROOT / RESULTS / name, name) for name in names}


@pytest.fixture(scope="module")
def first_steps_file():
    return json.loads(FILE.read_text("utf-8"))


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
    # What was no parameter yet has its default, or the value that was built in.
    given = {name: row[name] for name in RunSpec.model_fields if name in row and pd.notna(row[name])}
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in given.items()}
    whole = {name: int(plain[name]) for name in ("probe",) if name in plain}
    return RunSpec(**{"preprocessing": "unit"} | plain | whole | changes)


def same_arithmetic(row: pd.Series) -> bool:
    """Whether this process rounds as the one that made a row: only then are trained networks the same bits."""
    now, made = arithmetic(), json.loads(row.get("processor") or "{}")
    if json.loads(row["versions"]) != provenance()["versions"]:
        return False
    return made == now or bool(made.get("portable") and now["portable"])


def paired(kept: pd.DataFrame, made: pd.DataFrame, keys: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Columns that both have, row by row."""
    both = [name for name in made.columns if name in kept.columns and name != "run"]
    pair = [table[both].sort_values(keys, ignore_index=True) for table in (kept, made)]
    assert len(pair[0]) == len(pair[1]) > 0
    return pair[0], pair[1]


def assert_same_bits(kept: pd.DataFrame, made: pd.DataFrame, keys: list[str]) -> None:
    pd.testing.assert_frame_equal(
        *paired(kept, made, keys), check_dtype=False, check_categorical=False, check_exact=True
    )


def assert_close(kept: pd.DataFrame, made: pd.DataFrame, seeds: pd.DataFrame) -> None:
    """A network trained again lies among its seeds: no farther outside their range than twice its width.

    Before training, losses, accuracies and norms must all but agree; measures of firing may move, because an activation
    at its neuron's threshold may fall to either side. Of a kind with one network nobody knows the spread; there
    accuracy and modularity must come near the tables.
    """
    before, now = paired(kept, made, ["epoch"])
    numbers = [name for name in now.columns if name not in ("parts", "dataset", "labels", "noise", "seed", "epoch")]
    low, high = (seeds.groupby("epoch")[numbers].agg(end) for end in ("min", "max"))
    alone = seeds["run"].nunique() < 2
    for name in numbers:
        for epoch, old, new in zip(before["epoch"], before[name], now[name], strict=True):
            said = f"{name} at epoch {epoch}: {new}, in the tables {old}"
            if np.isnan(old) or np.isnan(new):
                assert np.isnan(old) == np.isnan(new), said
            elif epoch == 0 and name in STATE:
                assert new == pytest.approx(old, rel=UNTRAINED, abs=UNTRAINED), said
            elif alone:
                assert abs(new - old) <= ALONE.get(name, np.inf), said
            else:
                # Where seeds hardly differ, as where all patterns are unique: 1 % of the value, or one community.
                wide = max(2 * (high.loc[epoch, name] - low.loc[epoch, name]), 0.01 * abs(old), name in COUNTS)
                assert low.loc[epoch, name] - wide <= new <= high.loc[epoch, name] + wide, said


def kin(results: Results, row: pd.Series) -> pd.DataFrame:
    """Rows of the runs that differ from a run in their seed alone, its own among them."""
    same = [name for name in RunSpec.model_fields if name not in ("seed", "stop_at", "probe", "checkpoints")]
    same = [name for name in same if name in results.runs]  # others were no parameter yet
    runs = results.runs[(results.runs["status"] == "done") & (results.runs[same] == row[same]).all(axis=1)]
    return results.table[results.table["run"].isin(runs["run"])]


@pytest.mark.parametrize("name", [*SMALL, *(pytest.param(name, marks=pytest.mark.release) for name in REFERENCE)])
def test_measures_of_stored_firing_are_equal_to_the_last_digit(studies, name):
    """On every processor: what is measured on firing is made of whole numbers and of sums in a stated order.

    The small studies go through all of that code, under every condition; larger networks only take longer.
    """
    if name not in studies:
        pytest.skip(f"no tables of {name}")
    compared = compare_specimens(studies[name])
    assert compared >= 2 * 18, "of each condition's first network, before and after training"


@pytest.mark.release
@pytest.mark.skipif(not AVX2, reason="portable mode needs AVX2 and FMA")
def test_measures_of_stored_firing_are_the_same_with_other_instructions():
    """In a process whose libraries may use no more than any processor of the last ten years has."""
    code = (
        "import nbutils, sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import test_reference as t; "
        "print(t.compare_specimens(t.read_archive(t.ROOT / t.RESULTS / 'digits', 'digits')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)],
        env=os.environ | machine.settings() | {machine.SWITCH: "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 6 * 21


def compare_specimens(results: Results) -> int:
    """Compare all that firing alone tells of the specimens with the tables; returns how many values were compared."""
    spec, compared = MeasureSpec(), 0
    for get in results.specimens.values():
        network = get()
        rows = results.table[results.table["run"] == network.address].sort_values("epoch")
        for place, row in ((0, rows.iloc[0]), (-1, rows.iloc[-1])):
            fired, labels, layers = network.fired(place), network.probe_labels, network.layers
            luck = np.random.default_rng([network.seed, int(row["epoch"])])
            found = {
                **measure_communities(fired, spec),
                **measure_nulls(fired, labels, spec, luck),
                **measure_entropies(fired, labels, layers == layers.max()),
                **measure_layers(fired, labels, layers, spec.density, spec.seeds),
            }
            assert found == {measure: row[measure] for measure in found}, (results.dataset, network.labels, place)
            compared += len(found)
    return compared


def test_first_steps_agree_on_every_processor(first_steps_file):
    """Twenty steps are too few for roundings to grow: the largest measured difference is 1e-5 of the value."""
    here = [name for name in FEW if available(name)]
    for name in here:
        assert_first_steps_agree(first_steps(name), first_steps_file["plain"]["data"][name])


@pytest.mark.release
@pytest.mark.parametrize("limits", LIMITS, ids=["old", "avx2"])
def test_first_steps_agree_with_other_instructions(limits, first_steps_file):
    for name, found in in_new_process(("digits",), **limits)["data"].items():
        assert_first_steps_agree(found, first_steps_file["plain"]["data"][name])


def assert_first_steps_agree(found: dict, kept: dict) -> None:
    assert found["version"] == kept["version"]
    assert found["loss"] == pytest.approx(kept["loss"], rel=1e-3)
    assert found["distance"] == pytest.approx(kept["distance"], rel=1e-3)


@pytest.mark.skipif(not AVX2, reason="portable mode needs AVX2 and FMA")
def test_first_steps_in_portable_mode_are_the_same_bits(first_steps_file):
    kept = first_steps_file["portable"]
    here = tuple(name for name in FEW if available(name))
    found = in_new_process(here, NBUTILS_PORTABLE="1")
    if found["provenance"]["versions"] != kept["provenance"]["versions"]:
        pytest.skip("the libraries are of other versions")
    assert found["data"] == {name: kept["data"][name] for name in here}
    for name, emulated in first_steps_file["emulated"].items():
        assert emulated["portable"]["data"]["digits"] == kept["data"]["digits"], name


@pytest.mark.parametrize(("name", "part"), KINDS)
def test_the_first_epochs_of_a_run_of_each_kind(studies, name, part):
    row = first_run(studies, name, part)
    results, run = studies[name], run_once(spec_of(row, epochs=EPOCHS, stop_at=None))
    measured = measure_run(run, MeasureSpec(null_draws=0)).drop(columns=["null_circular", "null_within", "agreement"])
    kept = results.table[(results.table["run"] == row["run"]) & (results.table["epoch"] <= EPOCHS)]
    if row["run"] in results.specimens:
        assert (run.fired(0) != results.specimens[row["run"]]().fired(0)).mean() <= FLIPPED
    if not same_arithmetic(row):
        assert_close(kept, measured, kin(results, row))
        return
    assert_same_bits(kept, measured, ["epoch"])
    for kind, keys in {"evolution": ["epoch"], "selectivity": ["epoch", "community"]}.items():
        if kind in results.extras and (results.extras[kind]["run"] == row["run"]).any():
            rows = results.extras[kind]
            rows = rows[(rows["run"] == row["run"]) & (rows["epoch"] <= EPOCHS)]
            assert_same_bits(rows, extra(run, kind).rows, keys)


@pytest.mark.release
def test_a_whole_run_with_its_specifications(studies):
    row = first_run(studies, "mnist", "noise")
    results, run = studies["mnist"], run_once(spec_of(row))
    light = next(task.measure for task in reference_tasks("mnist") if task.parts == "noise")
    kept, made = results.table[results.table["run"] == row["run"]], measure_run(run, light)
    if not same_arithmetic(row):
        assert_close(kept, made, kin(results, row))
        return
    assert_same_bits(kept, made, ["epoch"])
    for kind, key in {"specifications": "specification", "active": "epoch"}.items():
        rows = results.extras[kind]
        assert_same_bits(rows[rows["run"] == row["run"]], extra(run, kind).rows, [key])


@pytest.mark.release
@pytest.mark.skipif(not AVX2, reason="portable mode needs AVX2 and FMA")
@pytest.mark.parametrize("name", SMALL)
def test_whole_runs_in_portable_mode_are_the_same_bits(name, tmp_path):
    """One network of each kind, trained to the end and measured: every value of the committed tables of that mode."""
    folder = ROOT / RESULTS / "processors" / "portable"
    results = read_archive(folder / name, name)
    if not available(name):
        pytest.skip(f"the data of {name} are not here")
    code = (
        "import nbutils, sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import test_reference as t; "
        "print(t.compare_runs(t.read_archive(Path(sys.argv[2]), sys.argv[3])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent), str(folder / name), name],
        env=os.environ | {machine.SWITCH: "1", "NBUTILS_STORE": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    if done.stdout.strip() == "other versions":
        pytest.skip("the libraries are of other versions")
    assert int(done.stdout) == len(set(results.runs["parts"]))


def compare_runs(results: Results) -> int | str:
    """Train and measure the first run of each kind again, and compare all of its rows; returns how many runs."""
    tasks = {task.run: task for task in reference_tasks(results.dataset)}
    firsts = results.runs.groupby("parts", as_index=False).first()
    for _, row in firsts.iterrows():
        if not same_arithmetic(row):
            return "other versions"
        run = run_once(spec_of(row))
        kept = results.table[results.table["run"] == row["run"]]
        assert_same_bits(kept, measure_run(run, tasks[run.spec].measure), ["epoch"])
        rows = results.extras["active"]
        assert_same_bits(rows[rows["run"] == row["run"]], extra(run, "active").rows, ["epoch"])
    return len(firsts)


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
