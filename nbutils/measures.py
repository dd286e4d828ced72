"""Everything the book measures on one run, one row per epoch, kept beside the run so that it is computed once."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import ConfigDict, Field

from nbutils.arguments import checked
from nbutils.arrays import as_fired, as_mask, as_rng
from nbutils.baselines import class_selectivity, dead_share
from nbutils.cofiring import pack_firing
from nbutils.communities import detect_communities, well_defined_communities
from nbutils.cores import in_threads
from nbutils.entropy import (
    class_conditional_entropy,
    firing_entropy,
    histogram_entropy,
    pattern_entropy,
    unique_share,
)
from nbutils.graphs import activation_pattern_graph
from nbutils.information import mutual_information, total_correlation
from nbutils.nulls import circular_shift_null, within_class_null
from nbutils.provenance import code_digest, digest_of, environment, provenance
from nbutils.runs import Run, run_address
from nbutils.sentences import Parameters
from nbutils.specs import RunSpec
from nbutils.store import Store
from nbutils.variants import measure_layers, measure_paper, measure_strength

__all__ = [
    "MeasureSpec",
    "is_measured",
    "measure_code",
    "measure_communities",
    "measure_entropies",
    "measure_nulls",
    "measure_run",
]

EARLY = (0, 1, 2, 3)
MAKERS = (
    *("bits", "edges", "logarithms", "leiden", "arrays", "devices", "cofiring", "graphs", "consensus", "communities"),
    *("reconstruction", "nulls", "entropy", "information", "baselines", "variants", "measures"),
)


class MeasureSpec(Parameters):
    """How firing is turned into numbers.

    Attributes:
        density: share of neuron pairs kept as edges.
        resolution: of modularity.
        seeds: searches for communities per graph.
        null_draws: draws of each null model, at the first and the last epoch; 0 leaves the nulls out.
        every_epoch: measure all snapshots; False measures the first four (epochs 0 to 3) and the last only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    density: Annotated[float, Field(gt=0, le=1)] = 0.05
    resolution: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    seeds: Annotated[int, Field(ge=1)] = 5
    null_draws: Annotated[int, Field(ge=0)] = 20
    every_epoch: bool = True


def measure_communities(fired: Any, spec: MeasureSpec | None = None) -> dict[str, float]:
    """Communities of one snapshot.

    Args:
        fired: activation pattern matrix of all hidden neurons, shape (examples, neurons), boolean.
        spec: density, resolution and seeds.

    Returns:
        `modularity` (median Q), `communities`, `well_defined` (counts of the best seed), `coverage` (share of neurons
        with an edge).

    Examples:
        >>> fired = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
        >>> measure_communities(fired, MeasureSpec(density=0.4))["modularity"]
        0.5
    """
    spec = _as_spec(spec)
    graph = activation_pattern_graph(fired, spec.density)
    found = detect_communities(graph, spec.resolution, spec.seeds)
    return {
        "modularity": found.modularity,
        "communities": found.count,
        "well_defined": len(well_defined_communities(graph, found.labels)),
        "coverage": found.coverage,
    }


def measure_nulls(fired: Any, labels: Any, spec: MeasureSpec, rng: np.random.Generator | int) -> dict[str, float]:
    """Mean modularity of the same firing under each null model, through the same graph and the same search.

    One search per draw: the mean over draws estimates what one search finds, as the median over seeds does for the real
    graph.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,).
        spec: density, resolution and number of draws.
        rng: source of randomness: a generator, or a seed.

    Returns:
        `null_circular` and `null_within`; NaN without draws.

    Examples:
        >>> fired = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
        >>> nulls = measure_nulls(fired, np.repeat([0, 1], 5), MeasureSpec(density=0.4), np.random.default_rng(0))
        >>> nulls["null_within"]  # these neurons are nothing but class detectors
        0.5
    """
    packed, spec, rng = pack_firing(fired), _as_spec(spec), as_rng(rng)
    makers = {
        "null_circular": lambda source: circular_shift_null(packed, source),
        "null_within": lambda source: within_class_null(packed, labels, source),
    }

    def draw(name: str, source: np.random.Generator) -> float:
        graph = activation_pattern_graph(makers[name](source), spec.density)
        return detect_communities(graph, spec.resolution, seeds=1).modularity

    if not spec.null_draws:
        return dict.fromkeys(makers, float("nan"))
    draws = [(name, source) for name in makers for source in rng.spawn(spec.null_draws)]
    scores = in_threads(lambda one: draw(*one), draws)
    return {name: float(np.mean([q for (n, _), q in zip(draws, scores, strict=True) if n == name])) for name in makers}


def measure_entropies(fired: Any, labels: Any, last_layer: Any) -> dict[str, float]:
    """Entropies and simple baselines of one snapshot's firing.

    Args:
        fired: activation pattern matrix of all hidden neurons, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,).
        last_layer: which neurons form the last hidden layer, boolean, shape (neurons,); at least one neuron.

    Returns:
        `pattern_entropy` (last hidden layer's whole pattern, bits), `unique_patterns` (share of examples whose pattern
        no other example has: near 1 the entropy is saturated), `class_conditional_entropy` (last layer, bits),
        `firing_entropy`, `mutual_information` (means over neurons, bits), `total_correlation` (bits per block of 6).

    Raises:
        ValueError: shapes disagree, `fired` or `last_layer` is not boolean, or there is no neuron in the last layer.

    Examples:
        >>> fired = np.eye(4, dtype=bool)
        >>> measure_entropies(fired, [0, 0, 1, 1], [False, False, True, True])["unique_patterns"]
        0.5
    """
    fired = as_fired(fired)
    mask = as_mask(last_layer, fired.shape[1], "last_layer")
    if not mask.any():
        raise ValueError("last_layer must have at least one neuron, received none")
    last = fired[:, mask]
    return {
        "pattern_entropy": pattern_entropy(last),
        "unique_patterns": unique_share(last),
        "class_conditional_entropy": class_conditional_entropy(last, labels),
        "firing_entropy": float(firing_entropy(fired).mean()),
        "mutual_information": float(mutual_information(fired, labels).mean()),
        "total_correlation": total_correlation(fired),
    }


@checked
def measure_run(run: Run, spec: MeasureSpec | None = None, store: Store | None = None) -> pd.DataFrame:
    """All measures of a run, one row per measured epoch beside its training history; computed once and kept.

    Args:
        run: a finished run.
        spec: how to measure.
        store: where measures are kept; None means beside the runs.

    Returns:
        One row per measured epoch with the history's columns, the measures of the functions above and of
        :mod:`nbutils.variants`, and `binned_entropy` (bits, sum over neurons), `class_selectivity` (mean),
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
    return code_digest(*(f"nbutils.{name}" for name in MAKERS))


def _as_spec(spec: Any) -> MeasureSpec:
    if spec is not None and not isinstance(spec, MeasureSpec):
        raise TypeError(f"spec must be a MeasureSpec, received {type(spec).__name__}")
    return spec or MeasureSpec()


def _determinants(run: str, spec: MeasureSpec) -> dict[str, Any]:
    return {"run": run, "measure": spec.model_dump(), "code": measure_code(), "environment": environment()}


def _measure_epoch(run: Run, epoch: int, spec: MeasureSpec) -> dict[str, float]:
    fired, positive, labels = run.fired(epoch), run.fired(epoch, "positive"), run.probe_labels
    ends = epoch in (0, run.last_epoch)
    draws = spec.null_draws if ends else 0
    rng = np.random.default_rng([run.spec.seed, epoch])
    return {
        "epoch": epoch,
        **measure_communities(fired, spec),
        **measure_nulls(fired, labels, spec.model_copy(update={"null_draws": draws}), rng),
        **measure_entropies(fired, labels, run.layers == run.layers.max()),
        "binned_entropy": float(histogram_entropy(run.histogram(epoch)).sum()),
        "class_selectivity": float(class_selectivity(run.class_means(epoch)).mean()),
        "dead_share": dead_share(positive),
        **measure_layers(fired, labels, run.layers, spec.density, spec.seeds),
        **measure_paper(positive, labels, run.layers, spec.density, spec.seeds),
        **measure_strength(fired, positive),
        "agreement": _agreement(fired, spec) if ends else float("nan"),
    }


def _agreement(fired: np.ndarray, spec: MeasureSpec) -> float:
    return detect_communities(activation_pattern_graph(fired, spec.density), spec.resolution, spec.seeds).agreement
