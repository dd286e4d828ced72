"""The second study of any data set in one command: what is refused, resumed, kept and written."""

from __future__ import annotations

import struct
import subprocess
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from nbutils.cli import main
from nbutils.data.datasets import load_dataset
from nbutils.data.sources import IDX_FILES
from nbutils.second import replication
from nbutils.second.answers import TABLE
from nbutils.second.leaderboard import BOARD
from nbutils.second.networks import is_done, networks_of, read_tables, settings_digest
from nbutils.second.questions import rules_digest
from nbutils.second.replication import (
    RULES_COMMIT,
    RULES_TIME,
    folder_name,
    forecast,
    page_lacks,
    replicate,
    require_fit,
    second_tables,
)
from nbutils.second.zoo import AXES, LEAST_IMAGES, zoo_digest, zoo_members


def write_idx(folder: Path, train: np.ndarray, labels: np.ndarray, test: np.ndarray, test_labels: np.ndarray) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in zip(IDX_FILES, (train, labels, test, test_labels), strict=True):
        head = b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
        (folder / name).write_bytes(head + array.astype(np.uint8).tobytes())
    return f"folder:{folder}"


@pytest.fixture
def by_hand(tmp_path, own_store, fresh_data) -> str:
    """The digits as somebody's own idx files."""
    data = load_dataset("digits")
    images = [pixels.reshape(-1, 8, 8) for pixels in (data.train_pixels, data.test_pixels)]
    return write_idx(tmp_path / "letters of mine", images[0], data.train_true, images[1], data.test_labels)


@pytest.fixture
def few(monkeypatch) -> None:
    """Of the quick study only some networks of every design."""
    original = networks_of

    def chosen(dataset: str, quick: bool = False, architecture: str = "mlp") -> list:
        networks = original(dataset, quick)
        true = [one for one in networks if "runs" in one.designs and one.run.labels == "true"]
        wrong = [one for one in networks if "runs" in one.designs and one.run.labels != "true" and one.run.seed == 0]
        return true + wrong + [one for one in networks if "small" in one.designs][:18:3]

    monkeypatch.setattr(replication, "networks_of", chosen)


@pytest.mark.slow(20)
def test_a_data_set_brought_by_hand(by_hand, few, tmp_path, monkeypatch, capsys):
    """Tables, answers, leaderboard and a page; what was interrupted goes on, what is there is not made again."""
    folder, said = tmp_path / "found", []
    cut, computed = replication.compute, []

    def interrupted(networks, *more):
        computed.append(len([one for one in networks if not is_done(one)]))
        if any("small" in one.designs for one in networks):
            raise KeyboardInterrupt
        return cut(networks, *more)

    with monkeypatch.context() as stopped:
        stopped.setattr(replication, "compute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            replicate(by_hand, folder, quick=True, jobs=1)
    assert computed == [5, 0, 6], "runs also serve the grid"
    assert len(read_tables(folder).networks) == 5, "tables of what was finished are there"
    monkeypatch.chdir(tmp_path)
    options = ["replicate", by_hand, "--quick", "--jobs", "1", "--into", str(folder)]
    assert main(options) == 0
    out = capsys.readouterr().out
    assert f"rules {rules_digest()}, zoos {zoo_digest()}" in out
    assert "runs: 5 networks, 0 to compute" in out
    assert "small: 6 networks, 6 to compute" in out
    tables = read_tables(folder)
    assert len(tables.networks) == 11
    answers, board = pd.read_csv(folder / TABLE), pd.read_csv(folder / BOARD)
    assert not answers["enough"].any(), "a quick study decides nothing"
    assert {"modularity", "linear_probe", "train_loss"} <= set(board["measure"])
    page = (folder / "page.html").read_text("utf-8")
    assert rules_digest() in page
    assert zoo_digest() in page
    assert page.count("<svg") >= 4
    assert not any(word in page for word in ('src="http', "<script", "supported</td>"))
    assert page_lacks(tables) == []
    fewer = replace(tables, networks=tables.networks[tables.networks["family"] < 2])
    assert page_lacks(fewer) == ["small"]
    with monkeypatch.context() as elsewhere:  # with another store, tables spare what they hold
        elsewhere.setenv("NBUTILS_STORE", str(tmp_path / "another store"))
        elsewhere.setattr(replication, "conclude", lambda *_: None)  # from the same tables, the same again
        before = {path.name: path.read_bytes() for path in second_tables(folder)}
        with pytest.raises(ValueError, match="hold 11 networks that the store lacks, and would be written over; --add"):
            replicate(by_hand, folder, ["grid"], quick=True, jobs=1)
        replicate(by_hand, folder, ["grid"], quick=True, add=True, jobs=1, say=said.append)
    assert said[0] == "grid: 0 networks, 0 to compute"
    assert {path.name: path.read_bytes() for path in second_tables(folder)} == before
    with pytest.raises(ValueError, match=r"are of other images \(version [0-9a-f]{12}\) than digits"):
        replicate("digits", folder, ["grid"], quick=True, add=True, jobs=1)


@pytest.mark.release
@pytest.mark.slow(10)
def test_costly_measures_are_added_to_networks_that_tables_hold_without_them(own_store, tmp_path, monkeypatch):
    plain = [one for one in networks_of("digits", quick=True) if "grid" in one.designs][:3]
    asked = [replace(plain[0], costly=True), *plain[1:]]
    monkeypatch.setattr(replication, "networks_of", lambda *_, **__: plain)
    first = replicate("digits", tmp_path, ["grid"], jobs=1)
    assert not first.costs["entry"].isin(replication.COSTLY).any()
    monkeypatch.setattr(replication, "networks_of", lambda *_, **__: asked)
    assert replication.missing_networks("digits", tmp_path, ["grid"], add=True) == asked[:1]
    said = []
    second = replicate("digits", tmp_path, ["grid"], add=True, jobs=1, say=said.append)
    assert said[0] == "grid: 1 networks, 1 to compute"
    assert sorted(second.networks["run"]) == sorted(first.networks["run"])
    assert set(second.costs.loc[second.costs["entry"].isin(replication.COSTLY), "run"]) == {
        row.run for row in second.networks.itertuples() if row.settings == settings_digest(asked[0].run)
    }
    columns = ["run", "epoch", "part", "measure"]
    both = first.measures.merge(second.measures, on=columns, suffixes=("", "_again"))
    assert len(both) == len(first.measures) < len(second.measures)
    assert both["value"].equals(both["value_again"])
    assert replication.missing_networks("digits", tmp_path, ["grid"], add=True) == []


@pytest.mark.slow(5)
def test_what_is_interrupted_within_a_design_goes_on_elsewhere(own_store, tmp_path, monkeypatch):
    plain = [one for one in networks_of("digits", quick=True) if "grid" in one.designs][:2]
    plain[1] = replace(plain[1], run=plain[1].run.model_copy(update={"batch_size": 16}))  # trained by itself
    monkeypatch.setattr(replication, "networks_of", lambda *_, **__: plain)

    def stop(finished, _missing):
        if finished:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replicate("digits", tmp_path / "found", ["grid"], jobs=1, progress=stop)
    held = read_tables(tmp_path / "found")
    assert len(held.networks) == 1
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "another store"))
    assert len(replication.missing_networks("digits", tmp_path / "found", ["grid"], add=True)) == 1
    whole = replicate("digits", tmp_path / "found", ["grid"], add=True, jobs=1)
    assert sorted(whole.networks["settings"]) == sorted(settings_digest(one.run) for one in plain)
    assert set(held.networks["run"]) < set(whole.networks["run"])


def test_tables_stand_under_each_other_without_a_warning():
    """A column that is empty in one of them has the type of the other, and one that is empty in both stays."""
    first = pd.DataFrame({"run": ["a"], "dropout": [0.5], "reason": [None], "labels": ["true"]})
    second = pd.DataFrame({"run": ["b"], "dropout": [np.nan], "reason": [None], "noise": [0.4]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = replication._stacked([first, second])
    assert list(both) == ["run", "dropout", "reason", "labels", "noise"]
    assert both["run"].tolist() == ["a", "b"]
    assert both["dropout"].dtype == both["noise"].dtype == float
    assert both["reason"].isna().all()


def blank(images: int, size: int = 8, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(256, size=(images, size, size), dtype=np.uint8)


def labels(images: int, classes: int = 2) -> np.ndarray:
    return np.arange(images) % classes


TRAIN, TEST = LEAST_IMAGES, 40
REFUSED = {
    "has 1,151 training images; at least 1,152": (
        blank(TRAIN - 1),
        labels(TRAIN - 1),
        blank(TEST, seed=1),
        labels(TEST),
    ),
    "has 19 test images of class '1', at least 20": (blank(TRAIN), labels(TRAIN), blank(39, seed=1), labels(39)),
    "images of 65x65, 4,225 values each, at most 4,096 are taken; put @32": (
        *(blank(TRAIN, 65), labels(TRAIN)),
        *(blank(TEST, 65, 1), labels(TEST)),
    ),
    "training images that are all alike": (
        *(np.zeros((TRAIN, 8, 8), np.uint8), labels(TRAIN)),
        *(blank(TEST), labels(TEST)),
    ),
    "test images of which 100% are training images": (
        *(blank(TRAIN), labels(TRAIN)),
        *(blank(TRAIN)[:TEST], labels(TEST)),
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_fit_is_refused_before_anything_is_trained(tmp_path, own_store, fresh_data, capsys, words):
    name = write_idx(tmp_path / "bad", *REFUSED[words])
    with pytest.raises(ValueError, match=r"^dataset 'folder:") as caught:
        require_fit(name)
    assert words in str(caught.value)
    assert main(["replicate", name]) == 2
    assert words in capsys.readouterr().err
    assert not (own_store / "runs").exists()


def test_refusals_of_the_command(tmp_path, own_store, root, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["replicate", "minst"]) == 2
    assert "dataset must be one of digits" in capsys.readouterr().err
    assert main(["replicate", "digits", "--designs", "zoo", "--plan"]) == 2
    assert "designs must be among runs, grid, memorising, received 'zoo'" in capsys.readouterr().err
    assert main(["replicate", "digits", "--plan"]) == 0
    out = capsys.readouterr().out
    assert "60 networks" in out
    assert "Missing: 60 networks, about " in out
    into = ["--into", str(root / "book/results/second/digits")]
    assert main(["replicate", "digits", "--plan", *into, "--designs", "grid"]) == 0
    assert "Missing: 40 networks, about " in capsys.readouterr().out, "all would be computed"
    assert main(["replicate", "digits", "--plan", *into, "--add"]) == 0
    kept = len(pd.read_parquet(root / "book/results/second/digits/networks.parquet"))
    assert f"Missing: {60 - kept} networks, " in capsys.readouterr().out, "the tables hold the others"
    assert main(["replicate", "digits", "--quick", "--plan", *into, "--add"]) == 2
    assert "no part of this study, and would be lost; write into another folder" in capsys.readouterr().err
    assert not list(tmp_path.glob("replication*")), "a plan writes nothing"


def test_names_of_folders_never_lead_elsewhere(tmp_path):
    for name in ("kmnist", "plantvillage@32", "folder:/", "folder:..", f"folder:{tmp_path}/a b/ü@64@grey"):
        found = folder_name(name)
        assert Path(found).name == found
        assert not found.startswith((".", "-"))


def test_a_small_folder_has_a_smaller_zoo(by_hand):
    there = {member.run.examples for member in zoo_members(by_hand)}
    assert there == {128, 384, 1152}
    assert {member.run.examples for member in zoo_members("mnist")} == set(AXES["examples"])
    assert {member.run.examples for member in zoo_members("mnist-2k")} == {128, 384, 1152}
    with pytest.raises(ValueError, match="dataset 'mnist-1k' has 1,000 training images; a zoo needs 1,152"):
        zoo_members("mnist-1k")
    folder = [one.run for one in networks_of(by_hand)]
    assert len(set(folder)) == len(folder)
    assert sum(run.every_epoch is False for run in folder) == 336 + 84


def test_a_folder_of_pictures_is_taken_too(tmp_path, own_store, fresh_data):
    rng = np.random.default_rng(0)
    for label in ("a", "b"):
        (tmp_path / "pictures" / label).mkdir(parents=True)
        for number in range(LEAST_IMAGES * 5 // 8 + 1):
            picture = Image.fromarray(rng.integers(256, size=(4, 4), dtype=np.uint8))
            picture.save(tmp_path / "pictures" / label / f"{number}.png")
    data = require_fit(f"folder:{tmp_path / 'pictures'}")
    assert len(data.train_true) >= LEAST_IMAGES


def test_time_is_learned_from_tables(by_hand, few):
    networks = [one for one in networks_of(by_hand, quick=True) if "small" in one.designs]
    assert np.isnan(forecast(networks, []))
    paper = replace(networks[0], designs=("paper",))
    images = networks[0].run.examples
    row = {"run": "a", "designs": "small", "seconds": 3.0, "model": "mlp:8", "images": images}
    costs = pd.DataFrame([("a", "graph", 1.0), ("a", "probe", 0.5)], columns=["run", "entry", "seconds"])
    none = pd.DataFrame()
    known = replication.Tables(pd.DataFrame([row]), none, none, costs)
    wanted = sum(3 * one.run.examples / images + 2 * 1.5 for one in networks)
    assert forecast(networks, [known]) == pytest.approx(wanted)
    assert forecast([replace(networks[0], designs=("small", "grid"))], [known]) == pytest.approx(6)
    assert forecast([paper], [known]) == pytest.approx(6), "no such network was trained: it is taken for the mean"
    many = replace(networks[0], run=networks[0].run.model_copy(update={"examples": 4 * images, "model": "vgg:8-8"}))
    assert forecast([many], [known]) == pytest.approx(4 * 3 + 2 * 1.5), "training takes longer, measuring does not"


def test_the_rules_are_those_of_their_commit(root, tmp_path):
    """What the pages call the commit that fixed them holds the same questions and numbers."""
    known = subprocess.run(
        ["git", "-C", str(root), "cat-file", "-e", f"{RULES_COMMIT}^{{commit}}"], capture_output=True
    )
    if known.returncode:
        pytest.skip("this is no clone with its history")
    old = f"{RULES_COMMIT}:nbutils/study/questions.py"  # where they lay then
    shown = subprocess.run(["git", "-C", str(root), "show", old], capture_output=True, text=True, check=True)
    variables: dict = {"__name__": "nbutils.second.questions"}
    source = shown.stdout.replace("from __future__ import annotations", "")
    exec(compile(source, "questions.py", "exec"), variables)
    assert variables["rules_digest"]() == rules_digest()
    made = subprocess.run(
        ["git", "-C", str(root), "log", "-1", "--format=%ct", RULES_COMMIT], capture_output=True, text=True, check=True
    )
    fixed = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(int(made.stdout)))
    assert fixed.replace("T", " ") == RULES_TIME
    for path in (root / replication.SECOND).glob("*/networks.parquet"):
        assert pd.read_parquet(path)["time"].min() > fixed, path
