"""Benchmarks run and agree with what they are held against; how fast is for `make bench` to say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.harness import Comparison, Curve, compare, run_python, run_script, table, write_json


@pytest.mark.release
@pytest.mark.slow(60)
def test_the_quick_benchmark_runs(root, tmp_path):
    command = [sys.executable, "-m", "benchmarks", "--quick", "--output", str(tmp_path / "latest.json")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((tmp_path / "latest.json").read_text())
    assert found.pop("_machine")["quick"] is True
    assert all(rate > 1e6 for rate in found.pop("_rates").values())
    assert {curve["size"] for curve in found.pop("_growth").values()} == {"neurons", "examples"}
    expected = (
        "cofiring graph communities modularity snapshot_448 streaming capture_probe capture_every first notebook "
        "seeds_small blocks"
    )
    for word in expected.split():
        assert any(name.startswith(word) for name in found), word
    for name, row in found.items():
        assert row["ours"] > 0, name
        assert row["ratio"] > 0, name
        assert name in done.stdout


def test_committed_figures_are_of_a_full_run(root):
    found = json.loads((root / "benchmarks/latest.json").read_text())
    assert found.pop("_machine")["quick"] is False
    assert all(len(curve["sizes"]) >= 5 for curve in found.pop("_growth").values())
    found.pop("_rates")
    assert all(row["repeats"] >= 3 or row["unit"] == "MiB" or name == "blocks_50000" for name, row in found.items())
    wanted = """cofiring_20000x2000 graph_20000x2000_peak_mib communities_448 communities_5000 communities_20000
        modularity_5000 snapshot_448 snapshot_1024 first_snapshot_s streaming_60000x2000_peak_mib capture_probe_overhead
        capture_every_batch_overhead_448 capture_every_batch_overhead_2048 seeds_small seeds_paper notebook_overhead"""
    assert set(wanted.split()) <= set(found)


def test_sides_are_measured_in_turn():
    calls = []
    sides = [lambda side=side: calls.append(side) or len(calls) for side in ("ours", "other")]
    found = compare("n", "a", *sides, unit="s", bar=("ratio at least", 1), repeats=3)
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
    file, machine = tmp_path / "latest.json", {"processor": "x", "cores": 2, "quick": False, "commit": "a", "time": "1"}
    one, two = (Comparison(n, "a", "s", [1.0], [2.0], ("ratio at least", 1)) for n in ("one", "two"))
    write_json([one, two], [], machine, {}, file)
    write_json([replace(two, ours=[0.5])], [], {**machine, "commit": "b", "time": "2"}, {}, file)
    found = json.loads(file.read_text())
    assert [(found[n]["commit"], found[n]["ratio"]) for n in ("one", "two")] == [("a", 2), ("b", 4)]
    write_json([one], [], {**machine, "cores": 3}, {}, file)
    assert "two" not in json.loads(file.read_text())


def test_bars():
    fast = Comparison("fast", "a", "s", [1.0, 2.0, 3.0], [8.0, 8.0, 8.0], ("ours at most", 2))
    slow = Comparison("slow", "a", "s", [2.0, 2.0, 2.0], [8.0, 6.0, 4.0], ("ratio at least", 4))
    assert fast.ratios == [8, 4, 8 / 3]
    assert fast.met
    assert not slow.met
    text = table([fast, slow])
    assert "ours at most 2: met" in text
    assert "ratio at least 4: MISSED" in text
    costly = Comparison("costly", "a", "s", [1.1, 1.2, 1.3], [1.0, 1.0, 1.0], ("overhead at most", 0.25))
    assert costly.overhead == pytest.approx(0.2)
    assert costly.met
    assert "overhead at most 0.25: met (20.0%)" in table([costly])


def test_our_searches_are_as_good_as_igraphs():
    pytest.importorskip("igraph")
    from benchmarks.quality import compare_quality

    found = compare_quality()
    assert len(found) == 5
    assert (found["ours - igraph"].abs() < 0.002).all()
