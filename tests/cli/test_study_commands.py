from __future__ import annotations

import shutil

import pytest

from nbutils.cli import DATASETS, main
from nbutils.study import archive
from nbutils.study.archive import REFERENCE, RESULTS, SMALL, SUMS, has_tables, read_archive
from nbutils.study.study import Study
from nbutils.support.store import Store
from nbutils.sweeps.parameters import check_parameters


@pytest.fixture
def small(monkeypatch, own_store):
    """A reference study of tiny networks on digits, in the place of PlantVillage's."""
    study = Study(dataset="digits", grid="", conditions=("true",), seeds=2, epochs=2, model="mlp:12-6")
    monkeypatch.setitem(REFERENCE, "plantvillage", study)
    monkeypatch.setattr(archive, "LONGEST", 3)


def test_data_sets_of_the_command_are_those_of_the_study():
    assert (*REFERENCE, *SMALL) == DATASETS


def test_a_study_is_planned_computed_and_resumed(small, tmp_path, capsys):
    options = ["study", "plantvillage", "--jobs", "1", "--root", str(tmp_path)]
    folder = tmp_path / RESULTS / "plantvillage"
    assert main([*options, "--plan"]) == 0
    said = capsys.readouterr().out
    assert "4 runs, 4 to compute" in said
    assert "Time: unknown, there are no tables to learn it from." in said
    assert main([*options, "--finished"]) == 2
    assert "no run of the study of plantvillage is in the store" in capsys.readouterr().err
    assert not folder.exists()
    assert main(options) == 0
    assert "Tables of 4 runs, 0 of them failed" in capsys.readouterr().out
    results = read_archive(folder, "plantvillage")
    assert sorted(results.runs["parts"]) == ["conditions", "conditions", "hurried", "memorising"]
    assert set(results.extras) == {"active", "evolution", "selectivity"}
    sums = (folder.parent / SUMS).read_text("utf-8")
    assert sum(line.endswith("  plantvillage/runs.parquet") for line in sums.splitlines()) == 1
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main([*options, "--finished"]) == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert main([*options, "--plan"]) == 0
    assert "0 to compute" in capsys.readouterr().out


def test_the_time_is_foretold_from_the_tables(small, tmp_path, monkeypatch, capsys):
    options = ["study", "plantvillage", "--jobs", "1", "--root", str(tmp_path)]
    assert main(options) == 0
    capsys.readouterr()
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "empty"))
    assert main([*options, "--plan"]) == 0
    assert "Time: about " in capsys.readouterr().out


def test_tables_of_a_small_study_spare_its_training(monkeypatch, own_store, tmp_path, capsys):
    study = Study(dataset="digits", seeds=2, epochs=2)
    monkeypatch.setitem(SMALL, "digits", study)
    monkeypatch.chdir(tmp_path)
    run = ["run", "--datasets", "digits", "--epochs", "2", "--jobs", "1", "--seeds"]
    assert not has_tables(study)
    assert main(["study", "digits", "--jobs", "1"]) == 0
    assert set(read_archive(tmp_path / RESULTS / "digits", "digits").runs["parts"]) == {"conditions noise", "noise"}
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "empty"))
    assert has_tables(study)
    assert main([*run, "2"]) == 0
    assert "those on digits are in the committed tables" in capsys.readouterr().out
    assert not (tmp_path / "empty/runs").exists()
    page = {"dataset": "digits", "epochs": 2, "seeds": 2}
    assert check_parameters("h1_communities", {**page, "source": "tables"}).studies() == {"digits": None}
    assert check_parameters("h1_communities", page).studies() == {"digits": study}
    with pytest.raises(ValueError, match="the committed tables of digits hold seeds = 2, received 1"):
        check_parameters("h1_communities", {**page, "source": "tables", "seeds": 1})
    other = check_parameters("h1_communities", {**page, "source": "mixed", "seeds": 1}).studies()
    assert other["digits"].seeds == 1, "tables of another study are not taken for it"


def test_wrong_names_are_refused(command):
    done = command("study", "minst")
    assert done.returncode == 2
    assert "invalid choice: 'minst'" in done.stderr


def test_finished_runs_never_take_the_place_of_more(small, tmp_path, capsys):
    options = ["study", "plantvillage", "--jobs", "1", "--root", str(tmp_path)]
    assert main(options) == 0
    folder = tmp_path / RESULTS / "plantvillage"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    store = Store("runs")
    for address in store.addresses()[1:]:
        shutil.rmtree(store.path(address))
    assert main([*options, "--finished"]) == 2
    assert "hold 4 runs, more than the 1 that are finished; name another folder with --into" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
