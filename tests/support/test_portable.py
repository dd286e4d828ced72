from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

from nbutils.support import machine
from nbutils.support.devices import resolve_device
from nbutils.support.provenance import arithmetic, environment

HERE = set(machine.NEEDED) <= set(machine.processor_features())
needs_avx2 = pytest.mark.skipif(not HERE, reason="portable mode needs AVX2 and FMA")
# Trains a small network for 20 steps, and prints what it becomes.
TRAIN = """
import nbutils, hashlib, json, torch
from dataclasses import replace
from nbutils.data.datasets import load_dataset
from nbutils.capturing.hooks import capture_activations
from nbutils.runs.models import build_model
from nbutils.support.provenance import arithmetic
from nbutils.runs.training import TrainingSettings, one_thread, train
data = load_dataset("digits")
data = replace(data, train_pixels=data.train_pixels[:640], train_labels=data.train_labels[:640])
torch.manual_seed(0)
model = build_model("mlp:37-16", 64, 10, 0.1)
with one_thread():
    list(train([model], [data], TrainingSettings(epochs=1), [0]))
    fired = capture_activations(model, data.to_inputs(data.train_pixels))
weights = b"".join(p.detach().numpy().tobytes() for p in [*model.parameters()])
values = b"".join(a.tobytes() for a in fired.values())
print(json.dumps({"bits": hashlib.sha256(weights + values).hexdigest(), "processor": arithmetic()}))
"""


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in (*machine.settings(), machine.SWITCH)}
    return subprocess.run([sys.executable, "-c", code], env=clean | variables, capture_output=True, text=True)


def result(code: str, **variables: str) -> dict:
    done = run(code, **variables)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_off_unless_asked_for(monkeypatch):
    for value, wanted in (("1", True), ("0", False), ("", False)):
        monkeypatch.setenv(machine.SWITCH, value)
        assert machine.is_portable() is wanted
        assert environment().get("portable", False) is wanted
        assert arithmetic()["portable"] is wanted
    monkeypatch.setenv(machine.SWITCH, "yes")
    with pytest.raises(ValueError, match=r"NBUTILS_PORTABLE must be 1 .* received 'yes'"):
        machine.is_portable()


@needs_avx2
@pytest.mark.release
def test_training_takes_other_instructions():
    code = "import nbutils, torch, json; print(json.dumps(torch.backends.cpu.get_cpu_capability()))"
    assert result(code, NBUTILS_PORTABLE="1") == "AVX2"
    ours, plain = result(TRAIN, NBUTILS_PORTABLE="1"), result(TRAIN)
    assert ours["processor"]["limits"] == machine.settings()
    assert plain["processor"]["limits"] == {}
    assert ours["bits"] != plain["bits"], "on this processor the mode would change nothing; is it in force?"


@needs_avx2
@pytest.mark.release
def test_started_either_way_the_bits_are_the_same():
    """By the switch alone, and by the settings that the command prints for any other program."""
    printed = subprocess.run([sys.executable, "-m", "nbutils", "portable"], capture_output=True, text=True, check=True)
    given = dict(word.split("=", 1) for word in shlex.split(printed.stdout))
    assert given == {machine.SWITCH: "1", **machine.settings()}
    assert result(TRAIN, NBUTILS_PORTABLE="1") == result("import numpy, torch" + TRAIN, **given)


def test_too_late_or_contradicted_ends_in_one_sentence():
    late = run("import numpy, nbutils", NBUTILS_PORTABLE="1")
    assert late.returncode == 1
    assert "must come before numpy is imported: import nbutils first" in late.stderr.splitlines()[-1]
    other = run("import nbutils", NBUTILS_PORTABLE="1", MKL_CBWR="AVX2")
    assert "NBUTILS_PORTABLE=1 needs MKL_CBWR=COMPATIBLE, but MKL_CBWR is 'AVX2'" in other.stderr.splitlines()[-1]


def test_the_command_line_says_it_in_one_line():
    wrong = os.environ | {machine.SWITCH: "on"}
    done = subprocess.run([sys.executable, "-m", "nbutils", "runs"], env=wrong, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "error: NBUTILS_PORTABLE must be 1 (on) or 0 (off), received 'on'\n")


def test_a_processor_that_lacks_what_it_needs_is_refused(monkeypatch):
    monkeypatch.setenv(machine.SWITCH, "1")
    for name, value in machine.settings().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(machine, "processor_features", lambda: ("sse4_2", "avx"))
    with pytest.raises(RuntimeError, match="needs Linux on an x86-64 processor with avx2 and fma"):
        machine.start_portable()


def test_a_gpu_is_not_portable(monkeypatch):
    monkeypatch.setenv(machine.SWITCH, "1")
    assert resolve_device("auto") == "cpu"
    with pytest.raises(ValueError, match="in portable mode only the processor computes"):
        resolve_device("cuda")


def test_the_processor_is_named():
    assert machine.processor()
    if sys.platform == "linux":
        assert machine.processor_features(), "Linux tells the instruction sets of every processor we know"
