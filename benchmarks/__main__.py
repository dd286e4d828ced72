"""`python -m benchmarks`: run all comparisons, print the table, write `benchmarks/results/<processor>.json`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.capture import first_snapshot, streaming, training
from benchmarks.gpu import gpu
from benchmarks.graphs import cofiring, communities, snapshots
from benchmarks.growth import blocks, growth
from benchmarks.harness import Comparison, Curve, table, write_json
from benchmarks.motifs import motifs
from benchmarks.notebooks import notebook_overhead
from benchmarks.own import own
from benchmarks.processor import about, features, kind, slug
from benchmarks.rates import least, rates
from benchmarks.seeds import seeds
from benchmarks.zoo import zoo
from nbutils.pages.speed import read_bars
from nbutils.support.machine import processor, usable_cores
from nbutils.support.provenance import provenance

GROUPS: dict[str, Callable[[bool], Sequence[Comparison | Curve]]] = {
    "cofiring": cofiring,
    "communities": communities,
    "snapshots": snapshots,
    "streaming": streaming,
    "training": training,
    "seeds": seeds,
    "zoo": zoo,
    "blocks": blocks,
    "growth": growth,
    "own": own,
    "motifs": motifs,
    "gpu": gpu,
    "first": first_snapshot,
    "notebooks": notebook_overhead,
}


FOLDER = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen groups; the exit code is 0 even if a bar is missed: a slow machine is not a mistake."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="groups to measure anew (default: all)"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, one repeat, kept only with --output: does everything still run?",
    )
    parser.add_argument(
        "--output", type=Path, help="where the figures go (default: benchmarks/results/<processor>.json)"
    )
    options = parser.parse_args(arguments)
    here, output = about(), options.output
    if output is None and not options.quick:
        output = FOLDER / "results" / f"{slug(processor(), kind(), features())}.json"
    measured: list[Comparison | Curve] = []
    for name in options.only:
        print(f"{name} ...", end="", file=sys.stderr, flush=True)
        start = time.perf_counter()
        measured += GROUPS[name](options.quick)
        print(f" {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    found, curves = ([one for one in measured if isinstance(one, kind_)] for kind_ in (Comparison, Curve))
    best = rates(options.quick)
    leasts = {one.name: least(one, best, options.quick) for one in found}
    print("processor: {processor}\nfeatures: {features}\npairs are counted in: {path}".format(**here))
    print("best rates a second: " + ", ".join(f"{name} {rate:.3g}" for name, rate in best.items()))
    print(table(found, curves, leasts, read_bars(FOLDER / "bars.yml")))
    if output is not None:
        origin = provenance()
        machine = {**here, "cores": usable_cores(), "quick": options.quick}
        machine |= {name: origin[name] for name in ("commit", "versions", "time")}
        write_json(found, curves, machine, best, leasts, output)
        print(f"written to {output.relative_to(FOLDER.parent) if output.is_relative_to(FOLDER.parent) else output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
