from __future__ import annotations

import json

import pytest

from nbutils.pages import speed


@pytest.fixture
def figures() -> dict:
    shared = {"unit": "s", "repeats": 3, "about": "a step", "spread": {"ratio": [3.0, 5.0]}, "overhead": -0.75}
    shared |= {"held": None, "cores": None, "least": None, "share": None, "commit": "abc", "work": {}}
    return {
        "_machine": {"cores": 2, "time": "2", "processor": "x", "features": "avx2", "path": "bytes", "commit": "abc"},
        "_rates": {"words_per_s": 1e9, "bytes_per_s": 2e9, "flops_per_s": 1e10},
        "_growth": {
            name: {"name": name, "about": "a step", "size": "neurons", "unit": "s", "bar": 2.1}
            | {"sizes": [1000, 2000, 4000], "values": [1.0, 4.0, 16.0], "exponent": 2.0}
            for name in ("graph_time", "communities_time")
        },
        "fast": shared | {"ours": 2.0, "other": 8.0, "ratio": 4.0},
        "costly": shared
        | {"ours": 1.2, "other": 1.0, "ratio": 0.83, "overhead": 0.2, "work": {"words": 1e8, "bytes": 2e8}}
        | {"held": 2.0**20, "least": 0.2, "share": 1 / 6},
        "big": shared
        | {
            "ours": 30.0,
            "other": 90.0,
            "ratio": 3.0,
            "unit": "MiB",
            "work": {"MiB": 15.0},
            "least": 15.0,
            "share": 0.5,
        },
        "blocks_100": shared | {"ours": 1.0, "other": 2.0, "ratio": 2.0, "work": {"words": 2e9}},
    }


BARS = {"fast": "ratio >= 4", "costly": "overhead <= 10%", "big": "ours <= 64 and share >= 60%", "gone": "ratio >= 1"}


def test_comparisons_in_words(figures):
    table = speed.comparisons(figures, BARS).set_index("figure")
    assert table.loc["fast", ["result", "bar", "met"]].tolist() == ["4× (3\xa0to\xa05)", "at least 4×", "yes"]
    assert table.loc["costly", ["result", "bar", "met"]].tolist() == ["+20.0%", "at most +10%", "no"]
    words = ["30\xa0MiB", "at most 64\xa0MiB and a share of at least 60%", "no"]
    assert table.loc["big", ["ours", "bar", "met"]].tolist() == words
    assert table.loc["blocks_100", ["bar", "met"]].tolist() == ["–", "–"]
    assert len(table) == 4


def test_limits_by_hand(figures):
    table = speed.against_limits(figures).set_index("figure")
    assert set(table.index) == {"costly", "big"}
    assert table.loc["costly", ["least", "measured"]].tolist() == ["200\xa0ms", "1.2\xa0s"]  # 1e8 / 1e9 + 2e8 / 2e9
    assert table.loc["costly", "has to be done"].endswith("200\xa0million bytes of memory, 1\xa0MiB in use")
    assert table.loc["big", ["least", "share"]].tolist() == ["15\xa0MiB", 0.5]


@pytest.mark.parametrize(
    ("bar", "row", "met"),
    [
        ("ours <= 0.3", {"ours": 0.3}, True),
        ("ours <= 0.3", {"ours": 0.31}, False),
        ("overhead <= 2%", {"overhead": 0.02}, True),
        ("ratio >= 6 and share >= 50%", {"ratio": 6.0, "share": 0.5}, True),
        ("ratio >= 6 and share >= 50%", {"ratio": 6.0, "share": 0.49}, False),
        ("ratio >= 6 and share >= 50%", {"ratio": 5.9, "share": 0.9}, False),
        ("ratio >= 5 or share >= 75%", {"ratio": 5.0, "share": 0.1}, True),
        ("ratio >= 5 or share >= 75%", {"ratio": 1.0, "share": 0.75}, True),
        ("ratio >= 5 or share >= 75%", {"ratio": 4.9, "share": None}, False),
        ("ratio >= 9 or ours <= 1 and share >= 50%", {"ratio": 1.0, "ours": 1.0, "share": 0.4}, False),
        ("ratio >= 9 or ours <= 1 and share >= 50%", {"ratio": 9.0, "ours": 2.0, "share": 0.4}, True),
    ],
)
def test_bars_by_hand(bar, row, met):
    assert speed.is_met(bar, row) is met


@pytest.mark.parametrize(
    "bar", ["", "ratio > 5", "speed >= 5", "ratio >= 5 and", "ratio >= five", "ratio >= 5 share >= 1"]
)
def test_what_is_no_bar(bar):
    with pytest.raises(ValueError, match="a bar must read like"):
        speed.is_met(bar, {"ratio": 9})


def test_processors_side_by_side(figures):
    other = figures | {"fast": figures["fast"] | {"ratio": 3.9, "share": 0.125, "commit": "old"}}
    del other["big"]
    both = {"new": figures, "old": other}
    table = speed.side_by_side(both, BARS).set_index("figure")
    assert list(table.index) == ["fast", "costly", "big"], "a bar that nothing was held against is left out"
    assert table.loc["fast"].tolist() == ["at least 4×", "4×", "–", "yes", "abc", "3.9×", "12%", "no", "old"]
    assert table.loc["big", ["A", "A share", "A met"]].tolist() == ["30\xa0MiB", "50%", "no"]
    assert table.loc["big", ["B", "B share", "B met", "B commit"]].tolist() == ["–"] * 4
    unnamed = figures["_machine"] | {"features": "", "path": ""}
    named = speed.processors({"new": figures, "old": figures | {"_machine": unnamed}})
    assert named[""].tolist() == ["A", "B"]
    assert named["features"].tolist() == ["avx2", "not recorded"]
    assert named["words/s"].tolist() == ["1\xa0billion"] * 2


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


def test_ceiling_of_a_stack(figures):
    parts = {"products of matrices": 3.0, "Adam's update": 1.0, "drawing": 1.0}
    found = {"a": figures, "b": figures | {"zoo_small": {"ratio": 4.0, "parts": parts}}}
    assert speed.stack_ceiling(found) == (0.8, 5.0)
    with pytest.raises(ValueError, match="no processor has zoo_small"):
        speed.stack_ceiling({"a": figures})


def test_growth(figures):
    assert speed.growth_curves(figures)["exponent"].tolist() == [2.0, 2.0]
    titles = [ax.get_title(loc="left") for ax in speed.growth_figure(figures).axes]
    assert titles[:2] == ["graph: exponent 2.00", "search: exponent 2.00"]


def test_costs_of_measuring_are_those_measured_last(figures):
    assert speed.costs_of_measuring({"a": figures}).empty, "older figures have none"
    curve = {"sizes": [1000, 100_000], "values": [2.0, 400.0], "time": "1"}
    both = {f"measure_{what}_neurons": curve for what in ("time", "memory")}
    later = {name: curve | {"values": [3.0, 5000.0], "time": "2"} for name in both}
    known = {name: figures | {"_growth": curves} for name, curves in (("b", later), ("c", both))}
    found = speed.costs_of_measuring({"a": figures, **known})
    assert found[["neurons", "time", "memory"]].to_numpy().tolist() == [
        [1000, "3\xa0s", "3\xa0MiB"],
        [100_000, "5,000\xa0s", "5,000\xa0MiB"],
    ]
    assert set(found["processor"]) == {figures["_machine"]["processor"]}


def test_reading(figures, tmp_path, monkeypatch):
    bars = tmp_path / "bars.yml"
    bars.write_text("fast: ratio >= 4 # of a comment\nbig: ours <= 64\n")
    with pytest.raises(
        FileNotFoundError, match="no figures beside the bars, in results; measure them first: make bench"
    ):
        speed.read_figures(bars)
    folder = tmp_path / "results"
    folder.mkdir()
    older = figures | {"_machine": figures["_machine"] | {"time": "1"}}
    part = {name: value for name, value in figures.items() if name != "_growth"}
    part["_machine"] = figures["_machine"] | {"time": "3"}
    for name, content in (("a-part", part), ("b-old", older), ("c-new", figures)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    assert list(speed.read_figures(bars)) == ["c-new", "b-old", "a-part"], "full ones first, then the newest"
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert speed.read_figures("bars.yml")["c-new"] == figures
    assert speed.read_bars("bars.yml") == {"fast": "ratio >= 4", "big": "ours <= 64"}


def test_what_cannot_be_read(figures, tmp_path):
    bars, file = tmp_path / "bars.yml", tmp_path / "results/x.json"
    with pytest.raises(FileNotFoundError, match=r"no bars at .*bars\.yml; measure first: make bench"):
        speed.read_bars(bars)
    for content, message in (("a: [", "cannot be read"), ("a", "holds no bars"), ("a: ratio", "a bar must read like")):
        bars.write_text(content)
        with pytest.raises(ValueError, match=message):
            speed.read_bars(bars)
    file.parent.mkdir()
    file.write_text("{")
    with pytest.raises(ValueError, match=r"x\.json cannot be read"):
        speed.read_figures(bars)
    for content in ("[]", '{"_machine": {}}'):
        file.write_text(content)
        with pytest.raises(ValueError, match=r"x\.json holds no benchmark, it lacks"):
            speed.read_figures(bars)
    file.write_text(json.dumps({name: figures[name] for name in ("_machine", "_rates", "fast")}))
    with pytest.raises(ValueError, match="no full benchmark among x; run: make bench"):
        speed.read_figures(bars)
