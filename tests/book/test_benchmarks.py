"""Benchmarks run and agree with what they are held against; how fast is for `make bench` to say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import GROUPS, main
from benchmarks.harness import Comparison, Curve, compare, run_python, run_script, table, write_json
from benchmarks.processor import slug
from benchmarks.rates import least
from nbutils.pages.speed import read_bars, read_figures
from nbutils.support import loops
from nbutils.support.machine import compute_threads


@pytest.mark.release
@pytest.mark.slow(60)
def test_the_quick_benchmark_runs(root, tmp_path):
    command = [sys.executable, "-m", "benchmarks", "--quick", "--output", str(tmp_path / "quick.json")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((tmp_path / "quick.json").read_text())
    assert found.pop("_machine")["quick"] is True
    assert all(rate > 1e6 for rate in found.pop("_rates").values())
    assert {curve["size"] for curve in found.pop("_growth").values()} == {"neurons", "examples"}
    expected = (
        "cofiring graph communities modularity snapshot_448 streaming capture_probe capture_every first notebook "
        "seeds_small zoo_small blocks"
    )
    for word in expected.split():
        assert any(name.startswith(word) for name in found), word
    parts = found["capture_every_batch_overhead_448"]["parts"]
    assert next(iter(parts)) == "training itself"
    assert 0 < parts["training itself"] == max(parts.values())
    for name, row in found.items():
        assert row["ours"] > 0, name
        assert row["ratio"] > 0, name
        assert name in done.stdout


@pytest.mark.slow(5)
def test_a_group_runs_and_says_what_it_ran_on_and_how_near_the_limit(tmp_path, capsys):
    """Before a release all groups do, see above."""
    file = tmp_path / "quick.json"
    assert main(["--quick", "--only", "cofiring", "--output", str(file)]) == 0
    said, found = capsys.readouterr().out, json.loads(file.read_text())
    machine, row = found["_machine"], found["cofiring_1000x2000"]
    for name in ("processor", "features", "path"):
        assert f": {machine[name]}\n" in said, name
    assert machine["path"] == loops.PATH
    assert row["share"] == pytest.approx(row["least"] / row["ours"], rel=1e-3)
    assert row["least"] == pytest.approx(row["work"]["words"] / found["_rates"]["words_per_s"], rel=1e-3)
    assert f"{row['share']:.0%}" in said


def test_a_quick_run_is_kept_only_where_it_is_asked_for(monkeypatch, capsys):
    monkeypatch.setitem(GROUPS, "gpu", lambda quick: [])
    assert main(["--quick", "--only", "gpu"]) == 0
    assert "written" not in capsys.readouterr().out


def test_committed_figures_are_of_full_runs(root):
    wanted = """cofiring_20000x2000 graph_20000x2000_peak_mib communities_448 communities_5000 communities_20000
        modularity_5000 snapshot_448 snapshot_1024 first_snapshot_s streaming_60000x2000_peak_mib capture_probe_overhead
        capture_every_batch_overhead_448 capture_every_batch_overhead_2048 seeds_small seeds_paper notebook_overhead"""
    processors = read_figures(root / "benchmarks/bars.yml")
    assert "x86-64-unnamed" in processors
    for name, found in processors.items():
        assert found.pop("_machine")["quick"] is False
        assert all(len(curve["sizes"]) >= 5 for curve in found.pop("_growth").values())
        found.pop("_rates")
        for figure, row in found.items():
            assert row["repeats"] >= 3 or row["unit"] == "MiB" or figure == "blocks_50000", (name, figure)
            assert row["share"] is None or row["share"] < 1.2, (name, figure, "beyond what the machine can do")
        assert set(wanted.split()) <= set(found), name


def test_every_figure_of_a_full_run_has_a_bar(root):
    bars = read_bars(root / "benchmarks/bars.yml")
    for found in read_figures(root / "benchmarks/bars.yml").values():
        assert {name for name in found if name[0] != "_" and not name.startswith("gpu")} <= set(bars)


@pytest.mark.parametrize(
    ("name", "kind", "features", "file"),
    [
        ("Intel(R) Xeon(R) CPU @ 2.80GHz (6/85/7)", "cascadelake", ("avx512f",), "intel-xeon-cascadelake-avx512"),
        ("AMD Ryzen 7 5800X 8-Core Processor (25/33/0)", "znver3", ("avx", "avx2"), "amd-ryzen-7-5800x-znver3-avx2"),
        ("Apple M1 (virtual)", "apple-m1", ("neon",), "apple-m1-virtual-apple-m1-neon"),
        ("../../etc/x y\n", "generic", (), "etc-x-y-generic-plain"),
    ],
)
def test_files_are_named_after_processors(name, kind, features, file):
    assert slug(name, kind, features) == file


def test_long_names_of_processors_make_short_names_of_files():
    assert len(slug("x " * 200, "y", ())) <= 80


def test_the_least_by_hand(monkeypatch):
    rates = {"words_per_s": 1e9, "bytes_per_s": 2e9, "flops_per_s": 1e10}
    one = Comparison("one", "a", "s", [4.0], [8.0], {"words": 1e9, "bytes": 2e9, "flops": 1e10})
    assert least(one, rates) == 3
    assert one.figures(3)["share"] == 0.75
    monkeypatch.setattr("benchmarks.rates.copying", lambda held, quick: {64.0: 4e9, 1e9: 1e9}[held])
    assert least(replace(one, held=64.0), rates) == 2.5, "in a cache, at the rate of a copy there"
    assert least(replace(one, held=1e9), rates) == 3, "never slower than main memory"
    assert least(replace(one, cores=1), rates) == pytest.approx(3 * compute_threads())
    assert least(replace(one, cores=10_000), rates) == 3, "no more cores than there are"
    assert least(replace(one, unit="MiB", work={"MiB": 7.0}), rates) == 7
    assert least(replace(one, work={}), rates) is None
    assert one.figures(None)["share"] is None


def test_sides_are_measured_in_turn():
    calls = []
    sides = [lambda side=side: calls.append(side) or len(calls) for side in ("ours", "other")]
    found = compare("n", "a", *sides, unit="s", repeats=3)
    assert calls == ["ours", "other", "other", "ours", "ours", "other"]
    assert (found.ours, found.other) == ([1.0, 4.0, 5.0], [2.0, 3.0, 6.0])


def test_scripts_run_elsewhere_and_give_a_value_or_their_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = "import json, os, sys, benchmarks; print(json.dumps([sys.argv[1:], os.environ['PLACE'], os.getpid()]))"
    words, place, process = run_script(script, 3, tmp_path, surroundings={"PLACE": "here"})
    assert (words, place) == (["3", str(tmp_path)], "here")
    assert process != os.getpid()
    assert run_python("-c", "import os; print(os.getcwd())", folder=tmp_path).strip() == str(tmp_path)
    with pytest.raises(RuntimeError, match=r"exit code 1\n(.|\n)*ZeroDivisionError: division by zero"):
        run_script("print(1 / 0)")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux keeps a peak that can be forgotten")
def test_the_peak_is_of_what_comes_after_it_was_forgotten():
    script = """
import json
from benchmarks.memory import forget_peak, peak
large = bytearray(200 << 20)
del large
whole, before = peak(), forget_peak()
small = bytearray(50 << 20)
del small
print(json.dumps([whole, before, peak()]))
"""
    whole, before, later = run_script(script)
    assert 200 < whole < 300
    assert 45 < later - before < 60
    assert before < 100


def test_exponents():
    square = Curve("square", "a", "neurons", "s", (10, 20, 40), (3.0, 12.0, 48.0), 2.1)
    assert square.exponent == pytest.approx(2)
    assert "exponent 2.00, at most 2.1: met" in table([], [square])
    assert "at most 1.9: MISSED" in table([], [replace(square, bar=1.9)])


def test_groups_can_be_measured_anew(tmp_path):
    file, machine = tmp_path / "x.json", {"processor": "x", "cores": 2, "quick": False, "commit": "a", "time": "1"}
    one, two = (Comparison(n, "a", "s", [1.0], [2.0]) for n in ("one", "two"))
    write_json([one, two], [], machine, {}, {"one": 0.5}, file)
    write_json([replace(two, ours=[0.5])], [], {**machine, "commit": "b", "time": "2"}, {}, {}, file)
    found = json.loads(file.read_text())
    assert [(found[n]["commit"], found[n]["ratio"], found[n]["share"]) for n in ("one", "two")] == [
        ("a", 2, 0.5),
        ("b", 4, None),
    ]
    write_json([one], [], {**machine, "cores": 3}, {}, {}, file)
    assert "two" not in json.loads(file.read_text())


def test_bars():
    fast = Comparison("fast", "a", "s", [1.0, 2.0, 3.0], [8.0, 8.0, 8.0])
    slow = Comparison("slow", "a", "s", [2.0, 2.0, 2.0], [8.0, 6.0, 4.0])
    bars = {"fast": "ours <= 2", "slow": "ratio >= 4", "costly": "overhead <= 25%"}
    assert fast.ratios == [8, 4, 8 / 3]
    text = table([fast, slow, replace(slow, name="other")], bars=bars)
    assert "ours <= 2: met" in text
    assert "ratio >= 4: MISSED" in text
    assert "no bar" in text
    costly = Comparison("costly", "a", "s", [1.1, 1.2, 1.3], [1.0, 1.0, 1.0])
    assert costly.overhead == pytest.approx(0.2)
    assert "overhead <= 25%: met (20.0%)" in table([costly], bars=bars)
    near = table([slow], leasts={"slow": 1.5}, bars={"slow": "ratio >= 4 or share >= 75%"})
    assert " 75%  ratio >= 4 or share >= 75%: met" in near
    assert "MISSED" in table([slow], leasts={"slow": 1.4}, bars={"slow": "ratio >= 4 or share >= 75%"})


def test_our_searches_are_as_good_as_igraphs():
    pytest.importorskip("igraph")
    from benchmarks.quality import compare_quality

    found = compare_quality()
    assert len(found) == 5
    assert (found["ours - igraph"].abs() < 0.002).all()
