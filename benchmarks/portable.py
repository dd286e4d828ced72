"""What portable mode costs: the same training in both modes, in turn, each in a process of its own.

`python -m benchmarks.portable` writes `book/results/processors/cost.json`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from nbutils.support import machine
from nbutils.support.provenance import provenance

FILE = Path("book/results/processors/cost.json")
REPEATS = 3
NETWORKS = {  # what is trained: data set, model, epochs, networks side by side
    "five of 64-256-128-64-10 on digits": ("digits", "mlp:256-128-64", 12, 5),
    "five of 784-256-128-64-10 on mnist-5k": ("mnist-5k", "mlp:256-128-64", 2, 5),
}
WORK = """
import sys, time
import nbutils
from nbutils.data.datasets import load_dataset
from nbutils.runs.recording import record_runs
from nbutils.runs.spec import RunSpec
name, model, epochs, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
record_runs([RunSpec(dataset="digits", model="mlp:8", epochs=1)])  # loads and compiles
load_dataset(name)
start = time.process_time()
record_runs([RunSpec(dataset=name, model=model, epochs=epochs, seed=seed) for seed in range(seeds)])
print(time.process_time() - start)
"""


def seconds(network: tuple[str, str, int, int], mode: str) -> float:
    """Processor time of training in a new process; `mode` is "0" or "1"."""
    command = [sys.executable, "-c", WORK, *map(str, network)]
    environment = os.environ | {machine.SWITCH: mode, "OMP_NUM_THREADS": "1"}
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def origin() -> dict[str, str]:
    """Where a row comes from."""
    now = provenance()
    return {"processor": now["processor"]["name"], "commit": now["commit"], "time": now["time"]}


def main() -> None:
    """Measure all networks and write the table."""
    rows = []
    for name, network in NETWORKS.items():
        pairs = [(seconds(network, "0"), seconds(network, "1")) for _ in range(REPEATS + 1)][1:]
        ratios = [ours / plain for plain, ours in pairs]
        row = {"network": name, "plain": statistics.median(p for p, _ in pairs)}
        row |= {"portable": statistics.median(q for _, q in pairs), "ratio": statistics.median(ratios)}
        rows.append({**row, "least": min(ratios), "most": max(ratios), **origin()})
        print(rows[-1], flush=True)
    FILE.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
