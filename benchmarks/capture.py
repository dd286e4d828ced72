"""What looking into a network costs: while it trains, batch by batch, and at the first snapshot of a new process."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

import nbutils as nb
from benchmarks.harness import Comparison, compare, run_script, seconds
from benchmarks.seeds import training_held, training_work
from nbutils.runs.models import HIDDEN_LAYERS, hidden_widths
from nbutils.support import loops
from nbutils.support.machine import compute_threads
from nbutils.watch import _Waiting


class Training:
    """A plain PyTorch loop over MNIST images, batch 32, fused Adam; one step at a time."""

    def __init__(self, model: str, examples: int) -> None:
        torch.set_num_threads(compute_threads())
        data = nb.load_dataset("mnist-5k")
        self.data = data
        index = np.random.default_rng(0).integers(len(data.train_inputs), size=examples)
        self.inputs, self.labels = (
            torch.from_numpy(data.train_inputs[index]),
            torch.from_numpy(data.train_labels[index]),
        )
        torch.manual_seed(0)
        self.model = nb.build_model(model, 784, 10)
        self.optimizer = torch.optim.Adam(self.model.parameters(), fused=True)
        self.place = 0

    def steps(self, count: int) -> None:
        """So many batches."""
        self.model.train()
        for _ in range(count):
            batch = slice(self.place, self.place + 32)
            self.place = (self.place + 32) % (len(self.inputs) // 32 * 32)
            loss = nn.functional.cross_entropy(self.model(self.inputs[batch]), self.labels[batch])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()


def training(quick: bool) -> list[Comparison]:
    """A probe snapshot every epoch, and counts of every batch."""
    examples = 640 if quick else 60_000
    run = Training("mlp:512-512", examples)
    probe = nb.probe_indices(run.data.train_true)
    watch = nb.Watch(run.model, run.data.train_inputs[probe], run.data.train_true[probe], HIDDEN_LAYERS)
    watch.snapshot()  # compiled code is loaded
    with_probe, without = [], []
    for _ in range(1 if quick else 3):  # both sides are of the same epoch, or the machine's noise would drown 3 %
        start = time.perf_counter()
        run.steps(examples // 32)
        without.append(time.perf_counter() - start)
        watch.snapshot()
        with_probe.append(time.perf_counter() - start)
    probing = Comparison(
        "capture_probe_overhead",
        f"an epoch of {examples:,} examples, 784-512-512-10, with a snapshot of the probe at its end, against without",
        "s",
        with_probe,
        without,
    )
    return [probing, *(_every_batch(model, quick) for model in ("mlp:256-128-64", "mlp:1024-1024"))]


def _every_batch(model: str, quick: bool) -> Comparison:
    run = Training(model, 8_192)
    steps = 128  # counters count every 64 batches of 32, so all of the cost is inside

    def counted(whole: bool = True) -> float:
        with nb.count_cofiring(run.model, HIDDEN_LAYERS) as counter:
            took = seconds(lambda: (run.steps(steps), counter.counts() if counter.neurons else None))
            assert counter.examples == 32 * steps or not whole
        return took

    counted()
    neurons = sum(hidden_widths(model))
    repeats = 1 if quick else 60 if neurons < 1_000 else 15
    found = compare(
        f"capture_every_batch_overhead_{neurons}",
        f"training with exact counts of every batch of 32, {model}, against without",
        counted,
        lambda: seconds(lambda: run.steps(steps)),
        unit="s",
        repeats=repeats,
        work=_every_batch_work(model, steps),
        held=training_held(model, 1),
    )
    # A profile that costs nothing while it measures: the same with less and less of the work left in.
    less = {
        "counts of pairs": (loops, "add_counts", lambda *_: None),
        "bits of what fires": (_Waiting, "_add", lambda *_: None),
    }
    took: dict[str, list[float]] = {what: [] for what in (*less, "all", "training")}
    for _ in range(max(3, repeats)):  # differences of single measurements would show what else the machine did
        for what, (owner, name, instead) in less.items():
            with patch.object(owner, name, instead):
                took[what].append(counted(whole=False))
        took["all"].append(counted())
        took["training"].append(seconds(lambda: run.steps(steps)))
    whole, fewer, least, plain = (median(took[what]) for what in ("all", *less, "training"))
    parts = {"training itself": plain, "Python around layers and passes": least - plain}
    return replace(found, parts=parts | {"bits of what fires": fewer - least, "counts of pairs": whole - fewer})


def _every_batch_work(model: str, steps: int) -> dict[str, float]:
    """Training, and beside it all outputs read once, and all pairs of neurons counted, 64 examples in a word."""
    work, neurons = training_work(model, 32 * steps), sum(hidden_widths(model))
    words = neurons * (neurons - 1) / 2 * (32 * steps / 64)
    return {"flops": work["flops"], "bytes": work["bytes"] + 4 * 32 * steps * neurons, "words": words}


STREAM = """
import hashlib, json, sys
import numpy as np
from benchmarks.memory import forget_peak, peak
from nbutils.cofiring import cofiring_counts
from nbutils.counter import CofiringCounter
examples, neurons, streaming = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "stream"
def batches():
    rng = np.random.default_rng(0)
    for _ in range(examples // 250):
        yield rng.standard_normal((250, neurons), dtype=np.float32)
warm = CofiringCounter()
warm.update(np.ones((1, 70), bool))
warm.counts()
cofiring_counts(np.ones((1, 70), bool))
before = forget_peak()
if streaming:
    counter = CofiringCounter()
    for batch in batches():
        counter.update(batch > 1)
    counts = counter.counts()
else:
    counts = cofiring_counts(np.concatenate(list(batches())) > 1)
print(json.dumps([peak() - before, hashlib.sha256(counts.tobytes()).hexdigest()]))
"""


def streaming(quick: bool) -> list[Comparison]:
    """Extra memory of counting over batches against storing all activations first."""
    examples, neurons = (5_000, 300) if quick else (60_000, 2_000)
    digests = set()

    def extra(side: str) -> float:
        value, digest = run_script(STREAM, examples, neurons, side)
        digests.add(digest)
        return value

    found = compare(
        f"streaming_{examples}x{neurons}_peak_mib",
        f"extra memory of the counts of {examples:,} examples of {neurons:,} neurons from batches, against from stored "
        "float32 activations",
        lambda: extra("stream"),
        lambda: extra("store"),
        unit="MiB",
        repeats=1,
        work={"MiB": 4 * neurons**2 / 2**20},
    )
    assert len(digests) == 1, "the same counts, bit for bit"
    return [found]


FIRST = """
import sys, time
start = time.perf_counter()
import numpy as np
import scipy.sparse
base = time.perf_counter()
fired = np.load(sys.argv[1])
if sys.argv[2] == "ours":
    import nbutils as nb
    nb.detect_communities(nb.activation_pattern_graph(fired)).modularity
else:
    from benchmarks import slow
    slow.communities(slow.graph(fired), 0)
print(time.perf_counter() - base)
"""


# Where the time of the first one goes where nothing was ever compiled.
FIRST_PARTS = """
import json, sys, time
import numpy as np
import scipy.sparse
fired, times = np.load(sys.argv[1]), [time.perf_counter()]
import nbutils as nb
from nbutils.support.ahead import wait_for_compiled
nb.detect_communities  # begins to compile in another process
import numba
times.append(time.perf_counter())
graph = nb.activation_pattern_graph(fired)
times.append(time.perf_counter())
wait_for_compiled("nbutils._leiden")
times.append(time.perf_counter())
nb.detect_communities(graph).modularity
times.append(time.perf_counter())
names = ("imports, numba's among them", "the graph, for which counting is compiled",
    "waiting for the search, compiled by another process", "loading the search, and searching")
print(json.dumps(dict(zip(names, np.diff(times).tolist()))))
"""


def first_snapshot(quick: bool) -> list[Comparison]:
    """From the start of a process, beyond importing NumPy and SciPy, to the first Q; compiled code is cached."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "fired.npy"
        np.save(file, rng.random((2_000, 448)) < 0.1)

        def first(side: str, cache: str | None = None) -> float:
            return run_script(FIRST, file, side, surroundings={} if cache is None else {"NUMBA_CACHE_DIR": cache})

        def compiling() -> float:
            with tempfile.TemporaryDirectory() as empty:
                return first("ours", empty)

        def compiling_parts() -> dict[str, float]:
            with tempfile.TemporaryDirectory() as empty:
                return run_script(FIRST_PARTS, file, surroundings={"NUMBA_CACHE_DIR": empty})

        first("ours")
        return [
            compare(
                "first_snapshot_s",
                "a new process's first graph and modularity (5 searches) at 448 neurons, beyond importing NumPy and "
                "SciPy, against networkx (1 search)",
                lambda: first("ours"),
                lambda: first("slow"),
                unit="s",
                repeats=1 if quick else 5,
            ),
            replace(
                compare(
                    "first_compilation_s",
                    "the same where nothing was ever compiled, against a process that finds it compiled",
                    compiling,
                    lambda: first("ours"),
                    unit="s",
                    repeats=1 if quick else 3,
                ),
                parts=compiling_parts(),
            ),
        ]
