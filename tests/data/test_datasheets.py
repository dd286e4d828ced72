from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nbutils.data.catalogue import BUILT_IN, available
from nbutils.data.datasets import DATASETS, load_dataset
from nbutils.data.datasheets import label_conditions, read_datasheet, readable
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
        "publisher",
        "to have it",
    ]
    assert source.licence == facts["licence"]
    assert source.citation == facts["cite"]
    assert source.advice in facts["to have it"]
    assert ("data verify" in facts["to have it"]) == (source.fetch is not None)
    assert "not here" in facts["version used"]
    assert f"{sheet.counts[0].sum():,} for training" in facts["images"]
    assert len(sheet.class_table()) == len(sheet.classes) == int(facts["classes"])


@pytest.mark.parametrize("name", THERE)
def test_what_is_known_without_the_files_is_what_they_hold(name, monkeypatch, tmp_path):
    with_files = read_datasheet(name)
    monkeypatch.setenv("NBUTILS_DATA", str(tmp_path))
    without = read_datasheet(name)
    assert with_files.data is not None
    assert with_files.classes == without.classes
    assert with_files.image_shape == without.image_shape
    if SOURCES[name].labels or with_files.counts.sum() == without.counts.sum():
        assert (with_files.counts == without.counts).all()


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_data_sets_say_who_made_them(name):
    facts = read_datasheet(name).facts().set_index("fact")["what is known"]
    assert load_dataset(name).version in facts["version used"]
    assert facts["licence"]
    assert "doi:" in facts["cite"]
    assert "nothing to do" in facts["to have it"]


def test_a_folder_of_one_s_own_has_facts_too(tmp_path, own_store):
    from PIL import Image

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


def test_label_conditions_agree_with_what_is_foretold():
    table = label_conditions(read_datasheet("mnist-5k"), ("true", "mixed:0.5", "random"))
    assert table["wrong, foretold"].tolist() == pytest.approx([0, 0.45, 0.9])
    assert table["wrong, counted"][0] == 0
    # Each of 4,000 labels is wrong with probability p, so the share varies by sqrt(p (1 - p) / 4000).
    spread = 4 * np.sqrt(0.45 * 0.55 / 4000)
    assert (table["wrong, counted"] - table["wrong, foretold"]).abs().max() < spread
    with pytest.raises(ValueError, match="labels must be"):
        label_conditions(read_datasheet("digits"), ("wrong",))


def test_label_conditions_without_files(no_data):
    table = label_conditions(read_datasheet("plantvillage"), ("random",))
    assert table["wrong, foretold"].tolist() == pytest.approx([14 / 15])
    assert table["wrong, counted"].isna().all()
