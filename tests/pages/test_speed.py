from __future__ import annotations

import json

import pytest

from nbutils.pages import speed


@pytest.fixture
def figures() -> dict:
    shared = {"unit": "s", "repeats": 3, "about": "a step", "spread": {"ratio": [3.0, 5.0]}, "overhead": -0.75}
    return {
        "_machine": {"cores": 2},
        "_rates": {"words_per_s": 1e9, "bytes_per_s": 2e9, "flops_per_s": 1e10},
        "_growth": {
            name: {"name": name, "about": "a step", "size": "neurons", "unit": "s", "bar": 2.1}
            | {"sizes": [1000, 2000, 4000], "values": [1.0, 4.0, 16.0], "exponent": 2.0}
            for name in ("graph_time", "communities_time")
        },
        "fast": {"ours": 2.0, "other": 8.0, "ratio": 4.0, "bar": ["ratio at least", 4.0], "met": True, "work": {}}
        | shared,
        "costly": {"ours": 1.2, "other": 1.0, "ratio": 0.83, "bar": ["overhead at most", 0.1], "met": False}
        | shared
        | {"overhead": 0.2, "work": {"words": 1e8, "bytes": 2e8}},
        "big": {"ours": 30.0, "other": 90.0, "ratio": 3.0, "bar": ["ours at most", 64], "met": True}
        | shared
        | {"unit": "MiB", "work": {"MiB": 15.0}},
        "blocks_100": {"ours": 1.0, "other": 2.0, "ratio": 2.0, "bar": ["ratio at least", 1.5], "met": True}
        | shared
        | {"work": {"words": 2e9}},
    }


def test_comparisons_in_words(figures):
    table = speed.comparisons(figures).set_index("figure")
    assert table.loc["fast", "result"].replace("\xa0", " ") == "4× (3 to 5)"
    assert table.loc["costly", ["result", "bar", "met"]].tolist() == ["+20.0%", "at most +10%", "no"]
    assert table.loc["big", ["ours", "bar"]].tolist() == ["30\xa0MiB", "at most 64\xa0MiB"]
    assert len(table) == 4


def test_limits_by_hand(figures):
    table = speed.against_limits(figures).set_index("figure")
    assert "fast" not in table.index
    assert table.loc["costly", ["least", "measured"]].tolist() == ["200\xa0ms", "1.2\xa0s"]  # 1e8 / 1e9 + 2e8 / 2e9
    assert table.loc["costly", "times the least"] == pytest.approx(6)
    assert table.loc["big", ["least", "times the least"]].tolist() == ["15\xa0MiB", 2.0]


def test_larger_networks_by_hand(figures):
    table = speed.larger_networks(figures, [1_000_000], examples=640).set_index("neurons")
    row = table.loc[1_000_000]
    assert row["bits per worker (MiB)"] == pytest.approx(1e6 * 80 / 2**20)
    assert row["core seconds"] == pytest.approx(1e6 * (1e6 - 1) * 10 / 1e9)  # 2e9 words in 2 s by one process
    assert row["words counted"] == "10\xa0trillion"
    assert row["graph (GiB)"] == pytest.approx(5e8 * 24 / 2**30)
    assert row["density"] == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0000206, "s", "20.6 µs"),
        (1.5, "s", "1.5 s"),
        (0.727, "s per notebook", "727 ms per notebook"),
        (454.48, "MiB", "454 MiB"),
        (5e5, "", "500,000"),
        (3.2e13, "", "32 trillion"),
    ],
)
def test_quantities(value, unit, text):
    assert speed.quantity(value, unit).replace("\xa0", " ") == text


def test_growth(figures):
    assert speed.growth_curves(figures)["exponent"].tolist() == [2.0, 2.0]
    titles = [ax.get_title(loc="left") for ax in speed.growth_figure(figures).axes]
    assert titles[:2] == ["graph: exponent 2.00", "search: exponent 2.00"]


def test_reading(figures, tmp_path, monkeypatch):
    file = tmp_path / "latest.json"
    file.write_text(json.dumps(figures))
    assert speed.read_figures(file) == figures
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert speed.read_figures("latest.json") == figures
    with pytest.raises(FileNotFoundError, match=r"no figures at other\.json; measure them first: make bench"):
        speed.read_figures("other.json")
    file.write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        speed.read_figures(file)
    for content in ("[]", '{"_machine": {}, "_rates": {}}'):
        file.write_text(content)
        with pytest.raises(ValueError, match="holds no full benchmark, it lacks"):
            speed.read_figures(file)
