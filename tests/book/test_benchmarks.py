"""Benchmarks run and agree with what they are held against; how fast is for `make bench` to say."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from benchmarks.harness import Comparison, compare, table


def test_the_quick_benchmark_runs(root, tmp_path):
    command = [sys.executable, "-m", "benchmarks", "--quick", "--output", str(tmp_path / "latest.json")]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads((tmp_path / "latest.json").read_text())
    assert found.pop("_machine")["quick"] is True
    expected = "cofiring graph communities modularity snapshot_448 streaming capture_probe capture_every first notebook"
    for word in expected.split():
        assert any(name.startswith(word) for name in found), word
    for name, row in found.items():
        assert row["ours"] > 0, name
        assert row["ratio"] > 0, name
        assert name in done.stdout


def test_committed_figures_are_of_a_full_run(root):
    found = json.loads((root / "benchmarks/latest.json").read_text())
    machine = found.pop("_machine")
    assert machine["quick"] is False
    assert all(row["repeats"] >= 3 or row["unit"] == "MiB" for row in found.values())


def test_sides_are_measured_in_turn():
    calls = []
    sides = [lambda side=side: calls.append(side) or len(calls) for side in ("ours", "other")]
    found = compare("n", "a", *sides, unit="s", bar=("ratio at least", 1), repeats=3)
    assert calls == ["ours", "other", "other", "ours", "ours", "other"]
    assert (found.ours, found.other) == ([1.0, 4.0, 5.0], [2.0, 3.0, 6.0])


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
