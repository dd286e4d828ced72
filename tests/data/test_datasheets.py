from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from nbutils.data.catalogue import BUILT_IN, available
from nbutils.data.datasets import DATASETS, load_dataset
from nbutils.data.datasheets import (
    CONDITIONS,
    Datasheet,
    brightness_table,
    keep_datasheet,
    kept_files,
    label_conditions,
    read_datasheet,
    readable,
    simple_accuracies,
)
from nbutils.data.sources import SOURCES, data_folder

THERE = [name for name, source in SOURCES.items() if source.files(data_folder())]


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """No downloadable data set is there, and an attempt to download one is a failure."""

    def refuse(_folder):
        pytest.fail("a page must not download anything")

    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path / "none"))
    for name, source in SOURCES.items():
        monkeypatch.setitem(SOURCES, name, replace(source, fetch=refuse if source.fetch else None))
    return tmp_path / "none"


def test_what_is_there(no_data, tmp_path):
    assert [name for name in DATASETS if available(name)] == list(BUILT_IN)
    assert not available("mnist-2k@14")
    assert available(f"folder:{tmp_path}")
    assert not available("folder:/nowhere")
    with pytest.raises(ValueError, match="dataset must be one of"):
        available("mnsit")


@pytest.mark.parametrize("name", SOURCES)
def test_everything_is_known_without_the_files(name, no_data):
    assert kept_files(name), f"run `python -m nbutils data keep {name}`, and `make sums`"
    sheet, source = read_datasheet(name), SOURCES[name]
    assert sheet.data is None
    assert not no_data.exists()
    facts = sheet.facts().set_index("fact")["what is known"]
    assert list(facts.index) == [
        "what",
        "images",
        "one image",
        "classes",
        "version used",
        "split",
        "licence",
        "cite",
        *(["publisher"] if source.home else []),
        "to have it",
    ]
    assert source.licence == facts["licence"]
    assert source.citation == facts["cite"]
    assert source.advice in facts["to have it"]
    assert ("data verify" in facts["to have it"]) == (source.fetch is not None)
    assert "The files are not here" in facts["version used"]
    assert f"{sheet.counts[0].sum():,} for training" in facts["images"]
    assert len(sheet.class_table()) == len(sheet.classes) == int(facts["classes"])


@pytest.mark.parametrize("name", THERE)
def test_what_is_kept_is_what_the_files_give(name, monkeypatch, tmp_path):
    """Facts, statistics, samples and mean images; simple rules take longer, and are compared below."""
    there = read_datasheet(name)
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path))
    kept = read_datasheet(name)
    assert there.data is not None
    if kept.kept["version"] != there.data.version:
        pytest.skip(f"another copy of {name} is here than the one that was kept")
    assert (kept.classes, kept.image_shape) == (there.classes, there.image_shape)
    assert (there.counts == kept.counts).all()
    for measure in (brightness_table, Datasheet.class_brightness, lambda sheet: label_conditions(sheet, CONDITIONS)):
        pd.testing.assert_frame_equal(measure(kept), measure(there), rtol=1e-9)
    samples, means = kept.samples(), kept.means()
    assert means.train_pixels.shape[0] == len(kept.classes)
    assert (samples is not None) == SOURCES[name].passed_on
    if samples is not None and there.image_shape == (28, 28):  # small and grey: kept as they are
        for k in range(len(kept.classes)):
            first = there.data.train_pixels[there.data.train_true == k][:2]
            assert (samples.train_pixels[samples.train_true == k] == first).all()
        assert (means.train_pixels == there.means().train_pixels).all()


def test_kept_files_are_small_and_name_no_picture_that_may_not_be_passed_on(root):
    for name in SOURCES:
        assert kept_files(name), f"run `python -m nbutils data keep {name}`, and `make sums`"
        facts, pictures = (root / file for file in kept_files(name))
        assert facts.stat().st_size < 8_000
        assert pictures.stat().st_size < 16_000
    assert not SOURCES["cifar10"].passed_on


@pytest.mark.skipif("mnist" not in THERE, reason="MNIST is not here")
def test_what_is_kept_is_written_from_the_files(tmp_path, root):
    written = keep_datasheet("mnist", tmp_path)
    new, old = (json.loads(file.read_text("utf-8")) for file in (written[0], root / kept_files("mnist")[0]))
    for name, rows in new.pop("tables").items():
        pd.testing.assert_frame_equal(pd.DataFrame(rows), pd.DataFrame(old["tables"][name]), rtol=1e-9)
    assert new.items() <= old.items()
    with Image.open(written[1]) as new, Image.open(root / kept_files("mnist")[1]) as old:
        assert (np.asarray(new) == np.asarray(old)).all()
    with pytest.raises(ValueError, match=r"name must be a public data set, mnist, .*; received 'digits'"):
        keep_datasheet("digits", tmp_path)


def test_what_was_not_kept_is_not_known(no_data, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="examples must be 5000 where the images of mnist are not here"):
        simple_accuracies(read_datasheet("mnist"), 1000)
    assert label_conditions(read_datasheet("mnist"), ("mixed:0.3",), seed=1)["wrong, counted"].isna().all()
    with pytest.raises(FileNotFoundError, match="the files of mnist are not here"):
        keep_datasheet("mnist", tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="data set 'mnist' is not here, nor what is kept of it in book/results"):
        read_datasheet("mnist")


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_data_sets_say_who_made_them(name):
    facts = read_datasheet(name).facts().set_index("fact")["what is known"]
    assert load_dataset(name).version in facts["version used"]
    assert facts["licence"]
    assert "doi:" in facts["cite"]
    assert "nothing to do" in facts["to have it"]


def test_a_folder_of_one_s_own_has_facts_too(tmp_path, own_store):
    for place, count in (("cats", 10), ("wild_dogs", 5)):
        (tmp_path / "own" / place).mkdir(parents=True)
        for number in range(count):
            Image.new("L", (3, 2), number).save(tmp_path / "own" / place / f"{number}.png")
    sheet = read_datasheet(f"folder:{tmp_path / 'own'}")
    assert sheet.size == "2×3 pixels, grey: 6 numbers"
    assert sheet.class_table().to_numpy().tolist() == [["cats", 8, 2], ["wild dogs", 4, 1]]
    assert "not known" in sheet.facts()["what is known"].tolist()
    with pytest.raises(FileNotFoundError, match="there is no folder /nowhere"):
        read_datasheet("folder:/nowhere")


def test_readable_names():
    assert readable("Tomato___Spider_mites Two-spotted_spider_mite") == "Tomato: Spider mites Two-spotted spider mite"
    assert readable("7") == "7"


def test_label_conditions_agree_with_what_is_predicted():
    table = label_conditions(read_datasheet("mnist-5k"), ("true", "mixed:0.5", "random"))
    assert table["wrong, predicted"].tolist() == pytest.approx([0, 0.45, 0.9])
    assert table["wrong, counted"][0] == 0
    # Each of 4,000 labels is wrong with probability p, so the share varies by sqrt(p (1 - p) / 4000).
    spread = 4 * np.sqrt(0.45 * 0.55 / 4000)
    assert (table["wrong, counted"] - table["wrong, predicted"]).abs().max() < spread
    with pytest.raises(ValueError, match="labels must be"):
        label_conditions(read_datasheet("digits"), ("wrong",))


def test_label_conditions_without_files(no_data):
    table = label_conditions(read_datasheet("plantvillage"), ("random", "mixed:0.3"))
    assert table["wrong, predicted"].tolist() == pytest.approx([14 / 15, 0.3 * 14 / 15])
    assert table["wrong, counted"][0] == pytest.approx(14 / 15, abs=0.02)
    assert np.isnan(table["wrong, counted"][1])  # never counted
