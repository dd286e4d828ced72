"""`python -m benchmarks`: run all comparisons, print the table, write `benchmarks/latest.json`."""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.capture import first_snapshot, streaming, training
from benchmarks.gpu import gpu
from benchmarks.graphs import cofiring, communities, snapshots
from benchmarks.growth import blocks, growth
from benchmarks.harness import Comparison, Curve, table, write_json
from benchmarks.notebooks import notebook_overhead
from benchmarks.rates import rates
from benchmarks.seeds import seeds
from nbutils.support.machine import usable_cores
from nbutils.support.provenance import provenance

GROUPS: dict[str, Callable[[bool], Sequence[Comparison | Curve]]] = {
    "cofiring": cofiring,
    "communities": communities,
    "snapshots": snapshots,
    "streaming": streaming,
    "training": training,
    "seeds": seeds,
    "blocks": blocks,
    "growth": growth,
    "gpu": gpu,
    "first": first_snapshot,
    "notebooks": notebook_overhead,
}


def main() -> int:
    """Run the chosen groups; the exit code is 0 even if a bar is missed: a slow machine is not a mistake."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="groups to measure anew (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, one repeat: does everything still run?")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/latest.json"), help="where the figures go")
    options = parser.parse_args()
    measured: list[Comparison | Curve] = []
    for name in options.only:
        print(f"{name} ...", end="", file=sys.stderr, flush=True)
        start = time.perf_counter()
        measured += GROUPS[name](options.quick)
        print(f" {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    found, curves = ([one for one in measured if isinstance(one, kind)] for kind in (Comparison, Curve))
    print(table(found, curves))
    origin = provenance()
    machine = {"processor": platform.processor() or platform.machine(), "cores": usable_cores(), "quick": options.quick}
    machine |= {name: origin[name] for name in ("commit", "versions", "time")}
    write_json(found, curves, machine, rates(options.quick), options.output)
    print(f"written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
