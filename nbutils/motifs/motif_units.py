"""What motif channels stand for: networks of the experiment *sparse* looked at while they are trained."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import torch
from sklearn.metrics import adjusted_mutual_info_score

from nbutils.activations import firing
from nbutils.communities import detect_communities
from nbutils.entropy import block_entropy
from nbutils.graphs import activation_pattern_graph
from nbutils.motifs.motif_batches import MotifBatch
from nbutils.motifs.motif_errors import (
    activations_of,
    best_assignment,
    confusion_of,
    motif_errors,
    sequence_accuracy,
)
from nbutils.motifs.sparse_settings import PLANS, SparseCase
from nbutils.motifs.sparse_training import SparseTraining, train_sparse
from nbutils.nulls import circular_shift_null, within_class_null
from nbutils.runs.sparsity import SpatialSparsity
from nbutils.support.code import code_digest
from nbutils.support.devices import resolve_device
from nbutils.support.provenance import digest_of, environment, provenance
from nbutils.support.store import store_folder

__all__ = ["EXAMPLES", "columns_of", "community_values", "look_at_units", "made_by", "place_units", "probes", "rows_of"]

ASSIGNED_ON, MEASURED_ON = 2**41, 2**42  # streams of examples that serve nothing else
EXAMPLES = 512  # of each
EDGES, DRAWS = 0.05, 3  # share of pairs that are edges; draws of each null model


def place_units(maps: np.ndarray, cells: tuple[int, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Units of which one can ask which fire together: a channel in a part of the picture, with its maximum there.

    Args:
        maps: motif channels, shape (examples, channels, height, width).
        cells: into how many parts height and width are cut.

    Returns:
        Activations, shape (examples, units), channel and part of each unit, shape (units,) each.

    Examples:
        >>> found, channel, part = place_units(np.arange(8.0).reshape(1, 2, 2, 2), (1, 2))
        >>> found.tolist(), channel.tolist(), part.tolist()
        ([[2.0, 3.0, 6.0, 7.0]], [0, 0, 1, 1], [0, 1, 0, 1])
    """
    rows = np.array_split(np.arange(maps.shape[2]), cells[0])
    columns = np.array_split(np.arange(maps.shape[3]), cells[1])
    parts = [maps[:, :, row[0] : row[-1] + 1, column[0] : column[-1] + 1] for row in rows for column in columns]
    found = np.stack([part.max(axis=(2, 3)) for part in parts], axis=2)
    channel, part = np.indices(found.shape[1:])
    return found.reshape(len(maps), -1), channel.ravel(), part.ravel()


def community_values(
    activations: np.ndarray,
    motif: np.ndarray,
    part: np.ndarray,
    labels: np.ndarray,
    seed: int,
    rule: str = "top-decile",
) -> dict[str, float]:
    """Communities of units that fire together on examples, held against what each unit stands for, and entropies.

    Args:
        activations: at least 0, shape (examples, units).
        motif: that the channel of each unit is assigned, or -1, shape (units,).
        part: of the picture in which it lies, likewise.
        labels: class of each example, for the null model within classes: the first word of its sequence.
        seed: of null models.
        rule: what counts as firing, see :func:`nbutils.activations.firing`.

    Returns:
        `modularity`, its parts `class_part` and `remainder`, `excess` (their sum), `communities`, `connected` (share of
        units with an edge), `ami_motif` and `ami_part` (adjusted mutual information of communities with both, over
        connected units), `block_entropy` and `block_entropy_null` (of firing shifted in a circle), in bits. Those of
        the graph are NaN where fewer than six units fire.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> group = np.repeat(np.arange(4), 5)
        >>> fired = (rng.integers(4, size=200)[:, None] == group) & (rng.random((200, 20)) < 0.9)
        >>> found = community_values(fired.astype(float), group, np.tile(np.arange(5), 4), np.zeros(200, int), seed=0)
        >>> found["ami_motif"], found["ami_part"] < 0.1, found["excess"] > 0.05
        (1.0, True, True)
    """
    fired, rng = firing(activations, rule), np.random.default_rng(seed)
    shifted = circular_shift_null(fired, rng)
    found = {"block_entropy": block_entropy(fired), "block_entropy_null": block_entropy(shifted)}
    names = ("modularity", "class_part", "remainder", "excess", "communities", "connected", "ami_motif", "ami_part")
    if fired.any(axis=0).sum() < 6:
        return found | dict.fromkeys(names, float("nan"))
    graph = activation_pattern_graph(fired, EDGES)
    own = detect_communities(graph, seeds=1)  # one search, as for the null models
    connected = np.diff(graph.indptr) > 0
    circular = np.mean([_modularity(circular_shift_null(fired, rng)) for _ in range(DRAWS)])
    within = np.mean([_modularity(within_class_null(fired, labels, rng)) for _ in range(DRAWS)])
    found |= {"class_part": within - circular, "remainder": own.modularity - within}
    found |= {"modularity": own.modularity, "excess": own.modularity - circular, "communities": own.count}
    for name, truth in (("ami_motif", motif), ("ami_part", part)):
        found[name] = adjusted_mutual_info_score(truth[connected], own.labels[connected])
    return {name: float(value) for name, value in (found | {"connected": connected.mean()}).items()}


def _modularity(fired: np.ndarray) -> float:
    return detect_communities(activation_pattern_graph(fired, EDGES), seeds=1).modularity


class _Watcher:
    """Looks at a network at some of its checks; gives the others nothing."""

    def __init__(self, case: SparseCase) -> None:
        settings = case.training
        checks = -(-settings.samples // settings.schedule.every)
        self.case, self.at = case, set(np.linspace(0, checks, case.looks + 1).round().astype(int).tolist())
        self.batches: tuple[MotifBatch, ...] = ()

    def __call__(self, training: SparseTraining) -> dict[str, float]:
        if len(training.trace) - 1 not in self.at and not training.over:
            return {}
        self.batches = self.batches or probes(training)
        return look_at_units(training, *self.batches)


def probes(training: SparseTraining) -> tuple[MotifBatch, MotifBatch]:
    """Examples from which channels are assigned motifs, and others, on which all is measured."""
    assigned, measured = (
        training.task.sample(EXAMPLES, at + training.settings.seed) for at in (ASSIGNED_ON, MEASURED_ON)
    )
    return assigned, measured


@torch.no_grad()
def look_at_units(training: SparseTraining, assigned_on: MotifBatch, batch: MotifBatch) -> dict[str, float]:
    """What the motif channels of a network stand for, and their communities.

    Of units without thresholds only the strongest activations count, of each channel a share of `schedule.stop` over
    the examples that assignments come from: all conditions are compared at the density at which sparse ones end.

    Args:
        training: between two steps.
        assigned_on: examples from which each channel is assigned its motif.
        batch: others, on which all is measured.

    Returns:
        `false_positive`, `false_negative`, `confusion` (see `nbutils.motifs.motif_errors`), `counted` (share of units
        that count as active), `active` (share above 0), `silent` (share of channels that never count), `exact` and
        `test_edit` accuracy, and what :func:`community_values` gives.
    """
    network, plan = training.network, PLANS[training.task.name]
    maps = [network.maps(torch.from_numpy(one.inputs).to(training.device)) for one in (assigned_on, batch)]
    read = sequence_accuracy(network.head.spell(maps[1]), batch.sequences)
    both = [one.cpu().numpy() for one in maps]
    least = np.zeros((1, both[0].shape[1], 1, 1), np.float32)
    if not isinstance(network.units, SpatialSparsity):
        least = np.quantile(both[0], 1 - training.settings.schedule.stop, axis=(0, 2, 3), keepdims=True)
    first, counted = (np.where(one > least, one, 0) for one in both)
    channels, motifs = counted.shape[1], len(training.task.alphabet)
    where = {"stride": plan.stride, "field": plan.field(training.task.space)}
    assignment = best_assignment(confusion_of(assigned_on, activations_of(first, **where), channels, motifs))
    found = motif_errors(batch, activations_of(counted, **where), channels, motifs, assignment)
    units, channel, part = place_units(both[1], plan.cells)
    return {
        "false_positive": found.false_positive,
        "false_negative": found.false_negative,
        "confusion": found.confusion,
        "counted": float((counted > 0).mean()),
        "active": float((both[1] > 0).mean()),
        "silent": float(1 - (counted > 0).any(axis=(0, 2, 3)).mean()),
        "exact": read["exact"],
        "test_edit": read["edit"],
        **community_values(units, assignment[channel], part, batch.sequences[:, 0], training.settings.seed),
    }


def columns_of(case: SparseCase) -> dict[str, Any]:
    """What all rows of a network share: `settings`, `task`, `condition`, `seed` and `parameters` (JSON)."""
    own = case.training
    shared = {"settings": case.settings, "task": own.task, "condition": own.condition, "seed": own.seed}
    return shared | {"parameters": json.dumps(case.identity, sort_keys=True)}


def made_by() -> dict[str, str]:
    """The `commit`, `time` and `machine` of rows that are made now."""
    origin = provenance()
    return {name: origin[name] for name in ("commit", "time", "machine")}


def rows_of(case: SparseCase, device: str = "cpu", loaders: int = 0) -> list[dict[str, Any]]:
    """Train a network and look at it on the way; one that is cut off goes on from its last checkpoint.

    Args:
        case: one network.
        device: see :class:`nbutils.motifs.sparse_training.SparseTraining`, as are `loaders`.
        loaders: processes that draw examples.

    Returns:
        A row per look: `settings`, `task`, `condition`, `seed`, `parameters` (JSON), `reason` of a failure, `final` (1
        in the last row, 0 in others), `samples`, `density` (asked for; NaN of units without thresholds), `target`,
        `accuracy`, `edit` and `loss` as in the trace, what :func:`look_at_units` gives, `trace` (JSON of all checks, in
        the last row; "" in others), `degenerate` (whether more than half of the channels count nowhere), `seconds` (of
        this process, all of it in each row), `commit`, `time`, `machine`. Of a network that failed one row, without
        measures.
    """
    shared, made, began = columns_of(case), made_by(), time.perf_counter()
    if resolve_device(device) == "cuda":
        made["machine"] += f", {torch.cuda.get_device_name()}"
    known = {"case": case.identity, "code": code_digest(f"{__name__}.rows_of"), "environment": environment()}
    checkpoint = store_folder() / "sparse" / f"{digest_of(known)}.safetensors"
    try:
        trace = train_sparse(case.training, checkpoint, _Watcher(case), device=device, loaders=loaders).trace
    except FloatingPointError as error:
        failed = {**shared, "reason": str(error), "final": 1, "samples": 0, "trace": "", "degenerate": 1.0}
        return [{**failed, "seconds": time.perf_counter() - began, **made}]
    seconds = time.perf_counter() - began
    kept = [{name: row[name] for name in ("samples", "density", "target", "accuracy", "edit", "loss")} for row in trace]
    rows = [row for row in trace if "confusion" in row]
    for number, row in enumerate(rows):
        last = number == len(rows) - 1
        state = {"reason": "", "final": int(last), "trace": json.dumps(kept) if last else ""}
        rows[number] = {**shared, **state, **row, "degenerate": float(row["silent"] > 0.5), "seconds": seconds, **made}
    checkpoint.unlink(missing_ok=True)
    return rows
