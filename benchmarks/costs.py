"""What each measure of the second study costs in memory, on one of its networks.

`python -m benchmarks.costs` trains the network where the store has none, and writes
`book/results/second/memory.json`. Seconds stand in the tables of every network.
"""

from __future__ import annotations

import copy
import ctypes
import gc
import json
import multiprocessing
import os
import sys
from multiprocessing.queues import SimpleQueue
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before PyTorch: a forked process has none of its threads

from benchmarks.memory import forget_peak, peak
from nbutils.runs.looks import Look, look_at
from nbutils.runs.run import run_once
from nbutils.second.candidates import CANDIDATES, Candidate
from nbutils.second.networks import networks_of
from nbutils.support.provenance import provenance

FILE = Path("book/results/second/memory.json")
DATASET = "kmnist"


def most(one: Candidate, look: Look, queue: SimpleQueue) -> None:
    """Put down the MiB that an entry took at most the second time, beyond those in use before.

    The first time loads libraries, whose code is no memory of the measure that happens to need it first.
    """
    one.take(copy.copy(look))  # keeps to itself what a look remembers
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free goes back, or the second time would find it there
    before = forget_peak()
    one.take(look)
    queue.put(max(peak() - before, 0.0))


def main() -> None:
    """Measure every entry in a process of its own, forked from one that has looked at the network."""
    network = networks_of(DATASET)[0]
    run = run_once(network.run)
    look = look_at(run, neurons=network.neurons)
    CANDIDATES[0].take(look)  # what is compiled is loaded

    fork, found = multiprocessing.get_context("fork"), {}
    for one in CANDIDATES:
        queue = fork.SimpleQueue()
        child = fork.Process(target=most, args=(one, look, queue))
        child.start()
        child.join()
        if child.exitcode:
            raise RuntimeError(f"{one.name} ended with code {child.exitcode}")
        found[one.name] = round(queue.get(), 1)
        print(f"{one.name}: {found[one.name]:.1f} MiB", file=sys.stderr)
    now = provenance()
    told = {"dataset": DATASET, "model": network.run.model, "images": len(look.labels), "run": run.address}
    told |= {"processor": now["processor"]["name"], "commit": now["commit"], "time": now["time"]}
    FILE.write_text(json.dumps({**told, "mebibytes": found}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
