"""Density imposed from outside on maps that stay as they are: what graphs and entropies owe to density alone."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from nbutils.motifs.motif_batches import MotifBatch
from nbutils.motifs.motif_errors import activations_of, best_assignment, confusion_of
from nbutils.motifs.motif_units import columns_of, community_values, made_by, place_units, probes
from nbutils.motifs.sparse_settings import PLANS, SparseCase
from nbutils.motifs.sparse_training import SparseTraining, train_sparse

__all__ = ["DENSITIES", "density_rows", "impose_density", "values_at_densities"]

DENSITIES = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)


def impose_density(maps: np.ndarray, density: float) -> np.ndarray:
    """Maps of which each channel keeps its strongest activations only, a share `density` of all.

    Args:
        maps: at least 0, shape (examples, channels, height, width).
        density: in (0, 1).

    Examples:
        >>> impose_density(np.arange(10.0).reshape(1, 1, 2, 5), 0.2).tolist()
        [[[[0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 8.0, 9.0]]]]
    """
    least = np.quantile(maps, 1 - density, axis=(0, 2, 3), keepdims=True, method="lower")
    return np.where(maps > least, maps, 0)


@torch.no_grad()
def values_at_densities(training: SparseTraining, assigned_on: MotifBatch, batch: MotifBatch) -> list[dict[str, float]]:
    """Communities and entropies of one network at every density, everything else the same.

    A unit, a channel in a part of the picture, fires on an example where it keeps any activation. Channels are assigned
    motifs once, at the density `schedule.stop`.

    Args:
        training: a network without thresholds.
        assigned_on: examples from which each channel is assigned its motif.
        batch: others, on which all is measured.

    Returns:
        For each of `DENSITIES`: `density`, `counted` (share of activations kept, smaller where fewer lie above 0), and
        what `nbutils.motifs.motif_units.community_values` gives.
    """
    plan, settings = PLANS[training.task.name], training.settings
    first, maps = (training.network.maps(torch.from_numpy(one.inputs)).numpy() for one in (assigned_on, batch))
    where = {"stride": plan.stride, "field": plan.field(training.task.space)}
    ends = activations_of(impose_density(first, settings.schedule.stop), **where)
    assignment = best_assignment(confusion_of(assigned_on, ends, maps.shape[1], len(training.task.alphabet)))
    found = []
    for density in DENSITIES:
        kept = impose_density(maps, density)
        units, channel, part = place_units(kept, plan.cells)
        truth = assignment[channel], part, batch.sequences[:, 0]
        values = community_values(units, *truth, settings.seed, rule="positive")
        found.append({"density": density, "counted": float((kept > 0).mean()), **values})
    return found


def density_rows(case: SparseCase) -> list[dict[str, Any]]:
    """A network before and after training, at every density.

    Args:
        case: one network without thresholds.

    Returns:
        A row per state and density: what `nbutils.motifs.motif_units.columns_of` and :func:`values_at_densities` give,
        `state` ("before training" or "trained"), `reason` of a failure, `degenerate` (0), `seconds` of this process,
        `commit`, `time`, `machine`. Of a network that failed one row, without measures.
    """
    shared, made, began = columns_of(case), made_by(), time.perf_counter()
    states = {"before training": SparseTraining(case.training)}
    try:
        states["trained"] = train_sparse(case.training)
    except FloatingPointError as error:
        return [{**shared, "reason": str(error), "degenerate": 1.0, "seconds": time.perf_counter() - began, **made}]
    examples = probes(states["trained"])
    rows = [
        {"state": state, **values} for state, one in states.items() for values in values_at_densities(one, *examples)
    ]
    ended = {"reason": "", "degenerate": 0.0, "seconds": time.perf_counter() - began, **made}
    return [shared | row | ended for row in rows]
