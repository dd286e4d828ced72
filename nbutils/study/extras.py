"""What is measured on some runs only: how communities change, active neurons, specifications, the released code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from nbutils.communities import detect_communities, well_defined_communities
from nbutils.data.datasets import balanced_indices, probe_indices
from nbutils.measures import measure_active
from nbutils.paper import released_entropy, released_graph
from nbutils.runs.models import HIDDEN_LAYERS
from nbutils.runs.run import Run, run_address
from nbutils.runs.spec import RunSpec
from nbutils.study.measure_run import partitions_of
from nbutils.study.specifications import DETAILS, evaluate_all
from nbutils.support.code import code_digest
from nbutils.support.provenance import digest_of, environment, provenance
from nbutils.support.store import Store
from nbutils.tracking import compare_partitions, flexibility, selective_for, track_communities

__all__ = ["EXTRAS", "VARIANTS", "Found", "extra", "extra_code", "has_extra"]

IMAGES = 5_000  # of the training set, equally many of each class, on which the released code is rebuilt
NULL_DRAWS = 3
# Switches of the released code: those of the graph, and whether bins are strict.
VARIANTS: dict[str, tuple[tuple[str, ...], bool]] = {
    "the paper's": ((), False),
    "edges of the last class": (("last_class_edges",), False),
    "frequency as threshold": (("frequency_threshold",), False),
    "index slips": (("index_slips",), False),
    "strict bins": ((), True),
    "all of them": (DETAILS, True),
}


@dataclass(frozen=True)
class Found:
    """An extra of one run.

    Attributes:
        rows: one row per measured thing, as a table.
        arrays: arrays by name.
    """

    rows: pd.DataFrame
    arrays: dict[str, np.ndarray]


def extra(run: Run, name: str) -> Found:
    """An extra of a run, computed once and kept.

    Args:
        run: a finished run.
        name: key of `EXTRAS`.

    Returns:
        "evolution": per epoch from the second on, what :func:`nbutils.tracking.compare_partitions` says of it and the
        one before, and `flexibility`, the share of neurons that changed their community; array `tracked`, identity of
        each neuron's community at every epoch. "selectivity": per epoch and community its size, the class that it is
        selective for and how strongly. "active": before and after training, see
        :func:`nbutils.measures.measure_active`.
        "specifications": `specification` and `value` of the trained network, see
        :func:`nbutils.study.specifications.evaluate_all`. "reconstruction": per epoch and variant of the released code
        (`VARIANTS`) `modularity`, `null_circular`, `well_defined` and `entropy`; needs checkpoints.

    Raises:
        ValueError: there is no such extra, or the run failed.
    """
    if name not in EXTRAS:
        raise ValueError(f"extra must be one of {', '.join(EXTRAS)}, received {name!r}")
    if run.failed:
        raise ValueError(f"run {run.address} failed: {run.failed}")
    store, determinants = Store("extras", run.store.folder.parent), _determinants(run.address, name)
    where = digest_of(determinants)
    if (record := store.read(where)) is None:
        with store.lock(where):
            if (record := store.read(where)) is None:
                rows, arrays = EXTRAS[name](run)
                record = {**determinants, "rows": rows.to_dict("list"), "provenance": provenance()}
                store.write(where, record, arrays=arrays)
    return Found(pd.DataFrame(record["rows"]), store.arrays(where, "arrays"))


def has_extra(spec: RunSpec, name: str) -> bool:
    """Whether the user's store holds an extra of a run."""
    return Store("extras").read(digest_of(_determinants(run_address(spec), name))) is not None


def extra_code(name: str) -> str:
    """Digest of the code that makes an extra; empty where there is no such extra any more."""
    return code_digest(f"{__name__}.{EXTRAS[name].__name__}") if name in EXTRAS else ""


def _determinants(run: str, name: str) -> dict[str, Any]:
    return {"run": run, "extra": name, "code": extra_code(name), "environment": environment()}


Made = tuple[pd.DataFrame, dict[str, np.ndarray]]


def _evolution(run: Run) -> Made:
    partitions, epochs = partitions_of(run), run.history["epoch"].to_numpy()
    tracked = track_communities(partitions)
    rows = pd.DataFrame([compare_partitions(*pair) for pair in pairwise(partitions)])
    rows.insert(0, "epoch", epochs[1:])
    rows["flexibility"] = [float(np.nanmean(flexibility(np.stack(pair)))) for pair in pairwise(tracked)]
    return rows, {"tracked": tracked.astype(np.int16)}


def _selectivity(run: Run) -> Made:
    tracked, found = extra(run, "evolution").arrays["tracked"], []
    for epoch, communities in zip(run.history["epoch"], tracked, strict=True):
        table = selective_for(run.fired(int(epoch)), run.probe_labels, communities)
        found.append(table[["community", "neurons", "selective_for", "preference"]].assign(epoch=int(epoch)))
    return pd.concat(found, ignore_index=True), {}


def _active(run: Run) -> Made:
    rows = []
    for epoch in (0, run.last_epoch):
        found = measure_active(run.fired(epoch), run.probe_labels, np.random.default_rng([run.spec.seed, epoch]))
        rows.append({"epoch": epoch, **found})
    return pd.DataFrame(rows), {}


def _specifications(run: Run) -> Made:
    data = run.spec.data()
    probe = probe_indices(data.train_true, run.spec.probe)
    activations = _activations(run, -1, data.train_pixels[probe])
    values = evaluate_all(activations, run.probe_labels, run.layers, run.histogram(-1))
    return pd.DataFrame({"specification": list(values), "value": list(values.values())}), {}


def _reconstruction(run: Run) -> Made:
    data = run.spec.data()
    chosen = balanced_indices(data.train_true, min(IMAGES, len(data.train_true)))
    labels, rows, rng = data.train_true[chosen], [], np.random.default_rng(run.spec.seed)
    for epoch in range(run.last_epoch + 1):
        activations = _activations(run, epoch, data.train_pixels[chosen])
        ends = epoch in (0, run.last_epoch)
        shifted = [_shifted(activations, rng) for _ in range(NULL_DRAWS if ends else 0)]
        entropies = {strict: float(released_entropy(activations, strict_bins=strict).sum()) for strict in (False, True)}
        graphs = {
            details: _rebuilt(activations, labels, run.layers, details, shifted) for details, _ in VARIANTS.values()
        }
        rows += [
            {"epoch": epoch, "variant": variant, **graphs[details], "entropy": entropies[strict]}
            for variant, (details, strict) in VARIANTS.items()
        ]
    return pd.DataFrame(rows), {}


def _rebuilt(
    activations: np.ndarray, labels: np.ndarray, layers: np.ndarray, details: tuple[str, ...], nulls: list[np.ndarray]
) -> dict[str, float]:
    """The released code's graph with some of its details: modularity, that of its null, well-defined communities."""
    switches = {detail: detail in details for detail in DETAILS}
    graph = released_graph(activations, labels, layers, **switches)
    found = detect_communities(graph)
    drawn = [released_graph(null, labels, layers, **switches) for null in nulls]
    scores = [detect_communities(one, seeds=1).modularity for one in drawn]
    return {
        "modularity": found.modularity,
        "null_circular": float(np.mean(scores)) if scores else float("nan"),
        "well_defined": len(well_defined_communities(graph, found.labels)),
    }


def _activations(run: Run, epoch: int, pixels: np.ndarray) -> np.ndarray:
    from nbutils.capturing.hooks import capture_activations  # loads PyTorch, which reading a stored extra never needs
    from nbutils.runs.training import one_thread

    with one_thread():
        seen = capture_activations(run.network(epoch), pixels, HIDDEN_LAYERS, prepare=run.spec.data().to_inputs)
    return np.hstack(list(seen.values()))


def _shifted(activations: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each neuron's activations moved around the examples: the circular-shift null before firing is decided."""
    examples = len(activations)
    rows = (np.arange(examples)[:, None] + rng.integers(examples, size=activations.shape[1])) % examples
    return np.take_along_axis(activations, rows, axis=0)


EXTRAS: dict[str, Callable[[Run], Made]] = {
    "evolution": _evolution,
    "selectivity": _selectivity,
    "active": _active,
    "specifications": _specifications,
    "reconstruction": _reconstruction,
}
