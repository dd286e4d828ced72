"""What it costs to measure somebody's network, by how many neurons it has."""

from __future__ import annotations

from benchmarks.harness import Curve, run_script

ONE_SIZE = """
import json, sys, time
import numpy as np
import torch
from torch import nn
import nbutils as nb
from benchmarks.memory import forget_peak, peak
examples, neurons = int(sys.argv[1]), int(sys.argv[2])
rng, labels = np.random.default_rng(0), np.arange(examples) % 10
images = (rng.standard_normal((10, 64))[labels] + rng.standard_normal((examples, 64))).astype(np.float32)
def network(width):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
nb.measure(network(64), images[:100], labels[:100], twins=1)  # what is compiled is loaded
before, start = forget_peak(), time.perf_counter()
nb.measure(network(neurons), images, labels)
print(json.dumps([time.perf_counter() - start, max(peak() - before, 0.1)]))
"""


def own(quick: bool) -> list[Curve]:
    """`nb.measure` with its defaults on a network with one layer, five untrained twins and noise among it."""
    examples, sizes = (200, (100, 200)) if quick else (2_000, (1_000, 3_000, 10_000, 30_000, 100_000))
    found = [run_script(ONE_SIZE, examples, size) for size in sizes]
    about = f"nb.measure on {examples:,} images with five untrained twins"
    return [
        Curve("measure_time_neurons", about, "neurons", "s", sizes, [took for took, _ in found], 1.1),
        Curve("measure_memory_neurons", about, "neurons", "MiB", sizes, [extra for _, extra in found], 1.1),
    ]
