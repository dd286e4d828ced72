"""Measures of firing as plain numbers: communities, nulls, entropies, single layers, the paper's graph, active neurons
alone.

`MEASURES` is the one list of what is measured on every network of the first study and of studies like it: what stands
there is a column of their tables, and what has a name there is shown with the baselines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field

from nbutils.cofiring import pack_firing
from nbutils.communities import detect_communities, well_defined_communities
from nbutils.entropy import (
    class_conditional_entropy,
    class_selectivity,
    dead_share,
    firing_entropy,
    histogram_entropy,
    mutual_information,
    pattern_entropy,
    total_correlation,
    unique_share,
)
from nbutils.graphs import activation_pattern_graph
from nbutils.nulls import circular_shift_null, within_class_null
from nbutils.paper import paper_graph
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_fired, as_labels, as_mask, as_rng
from nbutils.support.machine import in_threads
from nbutils.support.messages import Parameters


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


@checked
def measure_communities(fired: Any, spec: MeasureSpec | None = None) -> dict[str, float]:
    """Communities of one snapshot.

    Args:
        fired: activation pattern matrix of all hidden neurons, shape (examples, neurons), boolean.
        spec: density, resolution and seeds.

    Returns:
        `modularity` (median Q), `communities`, `well_defined` (counts of the best seed), `connected_share`
        (share of neurons with an edge).

    Examples:
        >>> fired = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
        >>> measure_communities(fired, MeasureSpec(density=0.4))["modularity"]
        0.5
    """
    spec = spec or MeasureSpec()
    graph = activation_pattern_graph(fired, spec.density)
    found = detect_communities(graph, spec.resolution, spec.seeds)
    return {
        "modularity": found.modularity,
        "communities": found.count,
        "well_defined": len(well_defined_communities(graph, found.labels)),
        "connected_share": found.connected_share,
    }


@checked
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
    packed, rng = pack_firing(fired), as_rng(rng)
    makers = {
        "null_circular": lambda source: circular_shift_null(packed, source),
        "null_within": lambda source: within_class_null(packed, labels, source),
    }

    def draw(name: str, source: np.random.Generator) -> float:
        graph = activation_pattern_graph(makers[name](source), spec.density)
        return detect_communities(graph, spec.resolution, seeds=1).modularity

    as_labels(labels, packed.examples)
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
    last = np.ascontiguousarray(fired[:, mask])
    return {
        "pattern_entropy": pattern_entropy(last),
        "unique_patterns": unique_share(last),
        "class_conditional_entropy": class_conditional_entropy(last, labels),
        "firing_entropy": float(firing_entropy(fired).mean()),
        "mutual_information": float(mutual_information(fired, labels).mean()),
        "total_correlation": total_correlation(fired),
    }


def measure_layers(fired: Any, labels: Any, layers: Any, density: float = 0.05, seeds: int = 5) -> dict[str, float]:
    """Modularity and entropy of each hidden layer alone.

    Args:
        fired: activation pattern matrix of all hidden neurons, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,).
        layers: hidden layer per neuron, shape (neurons,), integers.
        density: share of the layer's pairs kept as edges.
        seeds: searches for communities.

    Returns:
        For every layer l `modularity_layer<l>` (median Q), `pattern_entropy_layer<l>` (bits) and
        `mutual_information_layer<l>` (mean over its neurons, bits).

    Examples:
        >>> fired = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
        >>> found = measure_layers(fired, np.repeat([0, 1], 5), [1] * 6, density=0.4)
        >>> found["modularity_layer1"], found["pattern_entropy_layer1"] > 1
        (0.5, True)
    """
    matrix, found = as_fired(fired), {}
    layer_of = as_labels(layers, matrix.shape[1], "layers")
    for layer in np.unique(layer_of):
        own = matrix[:, layer_of == layer]
        graph = activation_pattern_graph(own, density)
        found[f"modularity_layer{layer}"] = detect_communities(graph, seeds=seeds).modularity
        found[f"pattern_entropy_layer{layer}"] = pattern_entropy(own)
        found[f"mutual_information_layer{layer}"] = float(mutual_information(own, labels).mean())
    return found


def measure_paper(positive: Any, labels: Any, layers: Any, density: float = 0.05, seeds: int = 5) -> dict[str, float]:
    """Measures with the paper's firing rule, a > 0: on our graph, on the paper's, and of the last layer's patterns.

    Args:
        positive: which activations are positive, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,).
        layers: hidden layer per neuron, shape (neurons,), integers.
        density: share of pairs kept as edges of our graph.
        seeds: searches for communities.

    Returns:
        `modularity_positive` (our graph), `modularity_paper` and `well_defined_paper` (the paper's graph),
        `pattern_entropy_positive` (bits) and `unique_patterns_positive` (last hidden layer).

    Raises:
        ValueError: shapes disagree, `positive` is not boolean, or there are no neurons.

    Examples:
        >>> positive = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
        >>> measure_paper(positive, np.repeat([0, 1], 5), [1] * 6)["unique_patterns_positive"]
        0.0
    """
    matrix = as_fired(positive)
    layer_of = as_labels(layers, matrix.shape[1], "layers")
    if not layer_of.size:
        raise ValueError(f"positive must have at least one neuron, received shape {matrix.shape}")
    last, graph = matrix[:, layer_of == layer_of.max()], paper_graph(matrix, labels, layer_of)
    found = detect_communities(graph, seeds=seeds)
    return {
        "modularity_positive": detect_communities(activation_pattern_graph(matrix, density), seeds=seeds).modularity,
        "modularity_paper": found.modularity,
        "well_defined_paper": len(well_defined_communities(graph, found.labels)),
        "pattern_entropy_positive": pattern_entropy(last),
        "unique_patterns_positive": unique_share(last),
    }


def measure_strength(fired: Any, positive: Any) -> dict[str, float]:
    """How much fires at all, and together: what a graph of the heaviest pairs must not be confused with.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        positive: which activations are positive, same shape.

    Returns:
        `mean_activity` (share of positive activations) and `mean_cofiring` (share of examples on which two neurons
        fire together, mean over all pairs).

    Examples:
        >>> measure_strength([[1, 1], [1, 0]], [[1, 1], [1, 1]])
        {'mean_activity': 1.0, 'mean_cofiring': 0.5}

    References:
        van den Heuvel et al. (2017), doi:10.1016/j.neuroimage.2017.02.005.
    """
    matrix, active = as_fired(fired), as_fired(positive, "positive")
    together = matrix.sum(axis=1, dtype=np.int64)
    pairs = matrix.shape[1] * (matrix.shape[1] - 1) / 2
    share = (together * (together - 1) / 2).mean() / pairs if pairs else 0.0
    return {"mean_activity": float(active.mean()) if active.size else 0.0, "mean_cofiring": float(share)}


SPEC = MeasureSpec(null_draws=5)
MOST_DRAWS = 10_000


def measure_active(
    fired: Any, labels: Any, rng: np.random.Generator | int, spec: MeasureSpec = SPEC
) -> dict[str, float]:
    """Communities and null models of the neurons that fire at least once.

    The heaviest 5 % of *all* pairs are a larger share of the pairs that can be joined at all the more neurons never
    fire: 5 % / (1 - d)^2 where a share d of them is dead. Here the share is of pairs of active neurons.

    Args:
        fired: activation pattern matrix of all hidden neurons, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,).
        rng: source of randomness: a generator, or a seed.
        spec: density, resolution, seeds and draws of the null models.

    Returns:
        `active` (how many neurons fire), and of their graph `modularity`, `communities`, `well_defined`,
        `connected_share`, `null_circular` and `null_within`, see :func:`nbutils.measures.measure_communities` and
        :func:`nbutils.measures.measure_nulls`. All 0 if none fires.

    Examples:
        >>> fired = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
        >>> dead = np.zeros((10, 20), dtype=bool)
        >>> found = measure_active(np.hstack([fired, dead]), np.repeat([0, 1], 5), np.random.default_rng(0))
        >>> found["active"], found["modularity"]
        (6, 0.5)
    """
    matrix, rng = as_fired(fired), as_rng(rng)
    classes = as_labels(labels, matrix.shape[0])
    own = matrix[:, matrix.any(axis=0)]
    return {
        "active": own.shape[1],
        **measure_communities(own, spec),
        **measure_nulls(own, classes, spec, rng),
    }


def class_cells(labels: Any, predicted: Any) -> np.ndarray:
    """Cells of true x predicted class: examples that are alike in what they show and in what the network makes of them.

    Args:
        labels: true class per example, shape (examples,), integers.
        predicted: class that the network predicts, shape (examples,), integers.

    Returns:
        Cell per example, shape (examples,), int64, numbered from 0 in order of true, then predicted class.

    Raises:
        ValueError: shapes disagree, or a class is not an integer.

    Examples:
        >>> class_cells([3, 3, 8, 3], [3, 8, 8, 3]).tolist()
        [0, 1, 2, 0]
    """
    true = as_labels(labels)
    pairs = np.stack([true, as_labels(predicted, true.size, "predicted")])
    return np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


@checked
def measure_matched(
    fired: Any,
    groups: Any,
    rng: np.random.Generator | int,
    neurons: int | None = None,
    spec: MeasureSpec = SPEC,
    draws: int = 20,
) -> dict[str, float]:
    """Modularity of active neurons at a given number of them, and how much of it class preference explains.

    Q - Q_circular = (Q_within - Q_circular) + (Q - Q_within): the class-preference part and the remainder. Q_within is
    of firing shuffled within groups of examples; with the true class as the group, misread images alone make a
    remainder, with cells of true x predicted class (:func:`class_cells`) they do not. Graphs of different sizes cannot
    be compared: of the neurons that fire, `neurons` are drawn, and the density is a share of *their* pairs.

    Args:
        fired: activation pattern matrix of all hidden neurons, shape (examples, neurons), boolean.
        groups: group per example within which firing is shuffled, shape (examples,), integers.
        rng: source of randomness: a generator, or a seed.
        neurons: how many of the active neurons are drawn, at least 1; None takes all of them, once.
        spec: density, resolution, seeds and draws of the null models.
        draws: how often neurons are drawn, from 1 to 10,000; everything is averaged over them.

    Returns:
        `active` (how many neurons fire), `neurons` (drawn), `modularity`, `communities`, `well_defined`,
        `connected_share`, `null_circular` and `null_within` as :func:`measure_active` gives them, `class_part` and
        `remainder`, `lone_groups` and `lone_examples` (share of the groups that hold one example, and of the examples
        in such groups, which no shuffling changes). What needs null models is NaN without draws of them.

    Raises:
        ValueError: shapes disagree, `fired` is not boolean, fewer neurons fire than are to be drawn, or a number is out
            of range.

    Examples:
        >>> fired = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
        >>> found = measure_matched(fired, np.repeat([0, 1], 5), rng=0, spec=MeasureSpec(density=0.4, null_draws=1))
        >>> found["modularity"], found["remainder"]  # nothing but class preference
        (0.5, 0.0)

    References:
        Size and modularity: Good, de Montjoye and Clauset (2010), doi:10.1103/PhysRevE.81.046106; shuffling within
        conditions: Amarasingham et al. (2012), doi:10.1152/jn.00633.2011.
    """
    matrix, source, draws = as_fired(fired), as_rng(rng), as_count(draws, "draws", most=MOST_DRAWS)
    own = matrix[:, matrix.any(axis=0)]
    active, cells = own.shape[1], as_labels(groups, len(matrix), "groups")
    size = active if neurons is None else as_count(neurons, "neurons")
    if size > active:
        raise ValueError(f"neurons must be at most the number of active neurons, {active}, received {size}")
    drawn = (
        [np.arange(active)] if size == active else [source.choice(active, size, replace=False) for _ in range(draws)]
    )
    found = [measure_active(own[:, np.sort(chosen)], cells, source, spec) for chosen in drawn]
    mean = {name: float(np.mean([one[name] for one in found])) for name in found[0] if name != "active"}
    members = np.unique(cells, return_counts=True)[1]
    return {
        "active": active,
        "neurons": size,
        **mean,
        "class_part": mean["null_within"] - mean["null_circular"],
        "remainder": mean["modularity"] - mean["null_within"],
        "lone_groups": float((members == 1).mean()),
        "lone_examples": float((members == 1).sum() / len(matrix)),
    }


@dataclass(frozen=True)
class Snapshot:
    """One network at one epoch, as measures see it.

    Attributes:
        fired: activation pattern matrix of all hidden neurons, shape (examples, neurons), boolean: on the strongest
            tenth of the examples, so that rates are nearly equal by design.
        positive: which activations are positive, the paper's rule, same shape.
        labels: class per example, shape (examples,).
        layers: hidden layer per neuron, numbered from 1, shape (neurons,).
        histogram: how many activations of a neuron fall into each bin, shape (neurons, bins).
        class_means: mean activation of every neuron by class, shape (classes, neurons).
        rng: source of randomness.
        spec: how firing is turned into numbers.
        ends: whether this is the first or the last epoch, at which costly measures are made.
    """

    fired: np.ndarray
    positive: np.ndarray
    labels: np.ndarray
    layers: np.ndarray
    histogram: np.ndarray
    class_means: np.ndarray
    rng: np.random.Generator
    spec: MeasureSpec
    ends: bool = True


@dataclass(frozen=True)
class Measure:
    """An entry of `MEASURES`.

    Attributes:
        columns: from a snapshot to values by column of the table of results.
        names: column -> what pages call it, for those that are shown with the baselines.
    """

    columns: Callable[[Snapshot], Mapping[str, float]]
    names: Mapping[str, str] = field(default_factory=dict)


MEASURES = (
    Measure(
        lambda at: measure_communities(at.fired, at.spec),
        {"modularity": "modularity Q (H2)", "well_defined": "well-defined communities"},
    ),
    Measure(lambda at: measure_nulls(at.fired, at.labels, _at_ends(at), at.rng)),
    Measure(
        lambda at: measure_entropies(at.fired, at.labels, at.layers == at.layers.max()),
        {
            "pattern_entropy": "pattern entropy, last layer (H3)",
            "mutual_information": "mutual information with the class",
            "total_correlation": "total correlation",
            "firing_entropy": "firing entropy per neuron",
            "class_conditional_entropy": "class-conditional pattern entropy",
        },
    ),
    Measure(
        lambda at: {"binned_entropy": float(histogram_entropy(at.histogram).sum())},
        {"binned_entropy": "binned entropy (the paper's)"},
    ),
    Measure(
        lambda at: {"class_selectivity": float(class_selectivity(at.class_means).mean())},
        {"class_selectivity": "class selectivity"},
    ),
    Measure(lambda at: {"dead_share": dead_share(at.positive)}, {"dead_share": "dead neurons"}),
    Measure(lambda at: measure_layers(at.fired, at.labels, at.layers, at.spec.density, at.spec.seeds)),
    Measure(
        lambda at: measure_paper(at.positive, at.labels, at.layers, at.spec.density, at.spec.seeds),
        {"modularity_paper": "modularity of the paper's graph"},
    ),
    Measure(
        lambda at: measure_strength(at.fired, at.positive),
        {"mean_activity": "mean activity", "mean_cofiring": "mean co-firing"},
    ),
    Measure(lambda at: {"agreement": _agreement(at.fired, at.spec) if at.ends else float("nan")}),
)


def _at_ends(at: Snapshot) -> MeasureSpec:
    return at.spec if at.ends else at.spec.model_copy(update={"null_draws": 0})


def _agreement(fired: np.ndarray, spec: MeasureSpec) -> float:
    return detect_communities(activation_pattern_graph(fired, spec.density), spec.resolution, spec.seeds).agreement


def measure_snapshot(at: Snapshot) -> dict[str, float]:
    """All `MEASURES` of a network at one epoch.

    Args:
        at: the :class:`Snapshot`.

    Returns:
        Values by column, in the order of `MEASURES`.

    Raises:
        ValueError: two measures give one column.

    Examples:
        >>> fired = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
        >>> counts, rng = np.ones((6, 4)), np.random.default_rng(0)
        >>> spec = MeasureSpec(density=0.4, null_draws=0)
        >>> at = Snapshot(fired, fired, np.repeat([0, 1], 5), np.ones(6, int), counts, np.eye(2, 6), rng, spec)
        >>> found = measure_snapshot(at)
        >>> found["modularity"], found["mean_activity"], found["class_selectivity"] * 6  # of 6 neurons, 2 are selective
        (0.5, 0.5, 2.0)
    """
    found: dict[str, float] = {}
    for measure in MEASURES:
        values = measure.columns(at)
        if twice := set(values) & set(found):
            raise ValueError(f"two measures give a column {min(twice)!r}; name it otherwise in MEASURES")
        found |= values
    return found
