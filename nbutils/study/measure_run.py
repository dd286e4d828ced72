"""All measures of one run, one row per epoch, computed once and kept beside the run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from nbutils.communities import agreed_communities, detect_communities
from nbutils.graphs import activation_pattern_graph
from nbutils.measures import MeasureSpec, Snapshot, measure_snapshot
from nbutils.runs.run import Run, run_address
from nbutils.runs.spec import RunSpec
from nbutils.support.arguments import checked
from nbutils.support.code import code_digest
from nbutils.support.provenance import digest_of, environment, provenance
from nbutils.support.store import Store

__all__ = ["is_measured", "measure_code", "measure_run", "partitions_of"]

EARLY = (0, 1, 2, 3)  # epochs that every measurement includes


@checked
def measure_run(run: Run, spec: MeasureSpec | None = None, store: Store | None = None) -> pd.DataFrame:
    """All measures of a run, one row per measured epoch beside its training history; computed once and kept.

    Args:
        run: a finished run.
        spec: how to measure.
        store: where measures are kept; None means beside the runs.

    Returns:
        One row per measured epoch with the history's columns and those of `nbutils.measures.MEASURES`: what the
        functions of that module return, `binned_entropy` (bits, sum over neurons), `class_selectivity` (mean),
        `dead_share`, and `agreement` of the searches for communities (see
        :attr:`nbutils.communities.Communities.agreement`). Nulls and agreement are NaN except at the first and the last
        epoch. Empty for a failed run.

    Raises:
        OSError: the stored run is damaged; it has been set aside, so run it again.
    """
    if run.failed:
        return pd.DataFrame()
    spec = spec or MeasureSpec()
    store = store or Store("measures", run.store.folder.parent)
    determinants = _determinants(run.address, spec)
    where = digest_of(determinants)
    if (record := store.read(where)) is None:
        with store.lock(where):
            if (record := store.read(where)) is None:
                epochs = [e for e in run.history["epoch"] if spec.every_epoch or e in (*EARLY, run.last_epoch)]
                rows = [_measure_epoch(run, int(epoch), spec) for epoch in epochs]
                record = {**determinants, "rows": rows, "provenance": provenance()}
                store.write(where, record)
    return run.history.merge(pd.DataFrame(record["rows"]), on="epoch", validate="one_to_one")


def is_measured(spec: RunSpec, measure: MeasureSpec) -> bool:
    """Whether the user's store holds a run (failed ones count) and its measures."""
    where = run_address(spec)
    record = Store("runs").read(where)
    if record is None:
        return False
    return bool(record["reason"]) or Store("measures").read(digest_of(_determinants(where, measure))) is not None


def measure_code() -> str:
    """Digest of the code that measures."""
    return code_digest("nbutils.study.measure_run._measure_epoch")


def _determinants(run: str, spec: MeasureSpec) -> dict[str, Any]:
    return {"run": run, "measure": spec.model_dump(), "code": measure_code(), "environment": environment()}


def _measure_epoch(run: Run, epoch: int, spec: MeasureSpec) -> dict[str, float]:
    at = Snapshot(
        fired=run.fired(epoch),
        positive=run.fired(epoch, "positive"),
        labels=run.probe_labels,
        layers=run.layers,
        histogram=run.histogram(epoch),
        class_means=run.class_means(epoch),
        rng=np.random.default_rng([run.spec.seed, epoch]),
        spec=spec,
        ends=epoch in (0, run.last_epoch),
    )
    return {"epoch": epoch, **measure_snapshot(at)}


@checked
def partitions_of(run: Run, density: float = 0.05, seeds: int = 5) -> np.ndarray:
    """Communities of a run at every epoch, each the consensus of several searches.

    Groups of fewer than three neurons, which searches do not agree on, are no community here: they would come and go.

    Args:
        run: a finished run.
        density: share of neuron pairs kept as edges.
        seeds: searches per epoch, at least 1.

    Returns:
        Community per snapshot and neuron, shape (snapshots, neurons); -1 for a neuron in none.
    """
    graphs = (activation_pattern_graph(run.fired(int(epoch)), density) for epoch in run.history["epoch"])
    return np.array([agreed_communities(detect_communities(graph, seeds=seeds).seed_labels) for graph in graphs])
