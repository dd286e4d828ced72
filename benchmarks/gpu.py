"""The same work on a GPU against this machine's processor, where PyTorch finds one."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch

import nbutils as nb
from benchmarks.harness import Comparison, compare, seconds
from benchmarks.seeds import SEEDS, one_by_one, side_by_side
from nbutils.cofiring import cofiring_counts


def gpu(quick: bool) -> list[Comparison]:
    """Counts, a graph, capture, and ten seeds; each against the processor. Nothing without a GPU."""
    if not torch.cuda.is_available():
        print("gpu is left out: PyTorch finds no CUDA device", file=sys.stderr)
        return []
    chip, repeats = torch.cuda.get_device_name(), 1 if quick else 5
    neurons = 1_000 if quick else 20_000
    fired = np.random.default_rng(0).random((2_000, neurons)) < 0.1
    assert (cofiring_counts(fired, "cuda") == cofiring_counts(fired)).all()
    assert (nb.activation_pattern_graph(fired, device="cuda") != nb.activation_pattern_graph(fired)).nnz == 0
    sides = {
        f"gpu_cofiring_{neurons}x2000": lambda device: cofiring_counts(fired, device),
        f"gpu_graph_{neurons}x2000": lambda device: nb.activation_pattern_graph(fired, device=device),
    }
    found = [
        _compare(name, f"{name.split('_')[1]} on {chip}, against this processor", call, repeats)
        for name, call in sides.items()
    ]
    return [*found, _capture(chip, repeats), *(_seeds(chip, model, quick) for model in ("mlp:128-64", "mlp:512-512"))]


def _compare(name: str, about: str, call: Callable[[str], object], repeats: int) -> Comparison:
    return compare(
        name,
        about,
        lambda: seconds(lambda: call("cuda")),
        lambda: seconds(lambda: call("cpu")),
        unit="s",
        repeats=repeats,
    )


def _capture(chip: str, repeats: int) -> Comparison:
    """Activations agree to the roundings of float32 products (TF32 is off by default)."""
    inputs = nb.load_dataset("mnist-5k").train_inputs
    models = {device: nb.build_model("mlp:512-512", 784, 10) for device in ("cuda", "cpu")}
    models["cuda"].load_state_dict(models["cpu"].state_dict())
    models["cuda"].to("cuda")
    seen = {device: nb.capture_activations(model, inputs, "*.relu") for device, model in models.items()}
    for name in seen["cpu"]:
        assert np.allclose(seen["cpu"][name], seen["cuda"][name], atol=1e-4)
    return _compare(
        "gpu_capture",
        f"capture of 4,000 examples, 784-512-512-10, on {chip}, against this processor",
        lambda device: nb.capture_activations(models[device], inputs, "*.relu"),
        repeats,
    )


def _seeds(chip: str, model: str, quick: bool) -> Comparison:
    shape = (range(SEEDS), 320 if quick else 4_000, 1)
    return compare(
        f"gpu_seeds_{model.removeprefix('mlp:')}",
        f"{SEEDS} seeds of 784-{model.removeprefix('mlp:')}-10 side by side on {chip}, against a plain loop there",
        lambda: side_by_side(model, *shape, "cuda")[0],
        lambda: one_by_one(model, *shape, "cuda")[0],
        unit="s",
        repeats=1 if quick else 3,
    )
