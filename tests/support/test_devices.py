"""The code for devices is PyTorch's own whatever the device, so it is tested on the processor too."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from nbutils.activations import firing
from nbutils.cofiring import cofiring_counts, count_histogram, count_threshold, pack_firing, pairs_from
from nbutils.graphs import activation_pattern_graph
from nbutils.support import devices
from nbutils.support.devices import device_counts, device_histogram, device_pairs, resolve_device

HERE = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize(("examples", "neurons", "share"), [(1, 1, 1.0), (3, 70, 0.5), (300, 200, 0.1), (50, 9, 0.0)])
def test_counts_and_pairs_are_those_of_packed_bits(device, examples, neurons, share, monkeypatch):
    monkeypatch.setattr(devices, "STRIP", 37)  # several strips, the last one narrow
    monkeypatch.setattr(devices, "EXACT", 301)
    fired = np.random.default_rng(examples).random((examples, neurons)) < share
    assert (device_counts(fired, device) == cofiring_counts(fired)).all()
    packed = pack_firing(fired)
    for wanted in {1, neurons, neurons * (neurons - 1) // 2} - {0}:
        histogram = device_histogram(fired, device)
        assert (histogram == count_histogram(packed)).all()
        threshold = count_threshold(histogram, wanted)
        expected, found = pairs_from(packed, threshold), device_pairs(fired, threshold, device)
        assert all((a == b).all() and a.dtype == b.dtype for a, b in zip(found, expected, strict=True))


def test_sums_that_float32_cannot_hold_are_split(monkeypatch):
    monkeypatch.setattr(devices, "EXACT", 7)
    fired = np.random.default_rng(0).random((100, 12)) < 0.5
    assert (device_counts(fired, "cpu") == cofiring_counts(fired)).all()
    with pytest.raises(ValueError, match="fewer than 2\\*\\*24 examples on a device, received 100"):
        device_pairs(fired, 3, "cpu")
    with pytest.raises(ValueError, match="fewer than 2\\*\\*24 examples on a device, received 100"):
        device_histogram(fired, "cpu")


def test_names_of_devices():
    assert resolve_device("cpu") == "cpu"
    assert resolve_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(ValueError, match="device must be 'auto', 'cpu' or 'cuda', received 'gpu'"):
        resolve_device("gpu")
    with pytest.raises(ValueError, match="received 'tpu'"):
        activation_pattern_graph([[1, 1]], device="tpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_missing_device_is_named():
    for call in (resolve_device, lambda device: cofiring_counts([[1, 1]], device)):
        with pytest.raises(ValueError, match="PyTorch finds no CUDA device here; use 'cpu' or 'auto'"):
            call("cuda")


def test_a_device_is_asked_for_by_name(monkeypatch):
    """What a CUDA device would be given, computed here."""
    fired = firing(np.random.default_rng(1).standard_normal((200, 90)))
    expected = cofiring_counts(fired), activation_pattern_graph(fired)
    for module in ("cofiring", "graphs"):
        monkeypatch.setattr(f"nbutils.{module}.resolve_device", lambda _name: "cuda")
    monkeypatch.setattr("nbutils.cofiring.device_counts", lambda f, _where: device_counts(f, HERE[-1]))
    monkeypatch.setattr("nbutils.graphs.device_histogram", lambda f, _where: device_histogram(f, HERE[-1]))
    monkeypatch.setattr("nbutils.graphs.device_pairs", lambda f, least, _where: device_pairs(f, least, HERE[-1]))
    for given in (fired, pack_firing(fired)):
        assert (cofiring_counts(given, "cuda") == expected[0]).all()
        assert (activation_pattern_graph(given, device="cuda") != expected[1]).nnz == 0


def test_the_processor_needs_no_pytorch():
    code = "import sys, nbutils as nb; nb.activation_pattern_graph([[1, 1]]); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
