"""One network under many specifications, with everything computed once that several of them need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from nbutils.activations import activation_histogram, firing
from nbutils.arrays import as_activations, as_labels, as_numpy
from nbutils.communities import detect_communities, modularity
from nbutils.constructions import disparity_graph, pearson_graph, phi_graph, ppmi_graph
from nbutils.entropy import class_conditional_entropy, firing_entropy, histogram_entropy, pattern_entropy
from nbutils.graphs import activation_pattern_graph, to_networkx
from nbutils.information import mutual_information, total_correlation
from nbutils.layered import layered_graph, within_layer_graph
from nbutils.nulls import circular_shift_null, within_class_null
from nbutils.reconstruction import paper_graph, released_entropy, released_graph
from nbutils.specifications import PLUG_IN, QUIRKS, Specification, specifications

__all__ = ["evaluate", "evaluate_all"]

SEEDS = 5  # searches for communities per graph, as in the primary measures
NULL_DRAWS = 3
BINS = 10  # of the histogram that runs keep


def evaluate(specification: Specification, activations: Any, labels: Any, layers: Any, histogram: Any = None) -> float:
    """One network measured in one way.

    Args:
        specification: which way, see :func:`nbutils.specifications.specifications`.
        activations: of all hidden neurons over the probe set, shape (examples, neurons), finite, post-non-linearity.
        labels: class per example, shape (examples,), integers.
        layers: hidden layer per neuron, shape (neurons,), integers.
        histogram: of the activations over all training images, shape (10, neurons), as runs keep it; None takes the
            probe's own. Used by entropies of activation sizes in ten bins, except with strict edges.

    Returns:
        Modularity, dimensionless, for H2 (minus that of the null model where the specification says so); bits for H3.

    Raises:
        ValueError: shapes disagree, values are not finite, or there are no neurons.

    Examples:
        >>> active = np.kron(np.eye(2), np.ones((5, 20)))
        >>> evaluate(specifications()[0], active, np.repeat([0, 1], 5), np.ones(40, dtype=int))
        0.5
    """
    if not isinstance(specification, Specification):
        raise TypeError(f"specification must be a Specification, received {type(specification).__name__}")
    return evaluate_all(activations, labels, layers, histogram, chosen=(specification,))[specification.label]


def evaluate_all(
    activations: Any, labels: Any, layers: Any, histogram: Any = None, *, chosen: Sequence[Specification] | None = None
) -> dict[str, float]:
    """One network measured in many ways; firing and graphs are computed once and shared.

    Args:
        activations: see :func:`evaluate`.
        labels: see :func:`evaluate`.
        layers: see :func:`evaluate`.
        histogram: see :func:`evaluate`.
        chosen: the specifications; None means all of them.

    Returns:
        Value per specification, by its label.

    Raises:
        ValueError: shapes disagree, values are not finite, or there are no neurons.

    Examples:
        >>> active = np.kron(np.eye(2), np.ones((5, 20)))
        >>> values = evaluate_all(active, np.repeat([0, 1], 5), np.repeat([1, 2], 20), chosen=specifications()[:3])
        >>> len(values)
        3
    """
    wanted = specifications() if chosen is None else chosen
    if not isinstance(wanted, list | tuple) or not all(isinstance(one, Specification) for one in wanted):
        raise TypeError(f"chosen must be a list of Specifications, or None, received {type(wanted).__name__}")
    values = as_activations(activations)
    examples, neurons = values.shape
    if neurons == 0:
        raise ValueError(f"activations must have at least one neuron, received shape {values.shape}")
    network = _Network(
        values, as_labels(labels, examples), as_labels(layers, neurons, "layers"), _histogram(histogram, neurons)
    )
    return {one.label: (_modularity if one.hypothesis == "H2" else _entropy)(network, one) for one in wanted}


@dataclass
class _Network:
    """A network's activations, and what was computed from them so far."""

    activations: np.ndarray
    labels: np.ndarray
    layers: np.ndarray
    histogram: np.ndarray | None
    known: dict[tuple, Any] = field(default_factory=dict)

    def once(self, key: tuple, compute: Callable[[], Any]) -> Any:
        if key not in self.known:
            self.known[key] = compute()
        return self.known[key]

    def part(self, neurons: str) -> np.ndarray | slice:
        """Index of the neurons of a part; all of them without a copy."""
        if neurons == "all":
            return slice(None)
        return self.layers == (self.layers.min() if neurons == "first layer" else self.layers.max())

    def fired(self, rule: str, neurons: str) -> np.ndarray:
        whole = self.once(("fired", rule), lambda: firing(self.activations, rule))
        return self.once(("fired", rule, neurons), lambda: whole[:, self.part(neurons)])

    def graph(self, one: Specification) -> sp.csr_array:
        key = ("graph", one.graph, one.share, one.firing, one.neurons, one.quirks)
        return self.once(key, lambda: self.build(one, self.fired(one.firing, one.neurons) if one.firing else None))

    def build(self, one: Specification, fired: np.ndarray | None) -> sp.csr_array:
        """The graph of a specification, from its own firing or a null model's."""
        part = self.part(one.neurons)
        return BUILDERS[one.graph](fired, self.activations[:, part], self.labels, self.layers[part], one)


BUILDERS: dict[str, Callable[..., sp.csr_array]] = {
    "co-firing count": lambda fired, values, labels, layers, one: activation_pattern_graph(fired, one.share),
    "phi": lambda fired, values, labels, layers, one: phi_graph(fired, one.share),
    "Pearson": lambda fired, values, labels, layers, one: pearson_graph(values, one.share),
    "PPMI": lambda fired, values, labels, layers, one: ppmi_graph(fired, one.share),
    "disparity": lambda fired, values, labels, layers, one: disparity_graph(fired, density=one.share),
    "disparity, alpha": lambda fired, values, labels, layers, one: disparity_graph(fired, alpha=one.share),
    "adjacent layers": lambda fired, values, labels, layers, one: layered_graph(fired, layers, one.share),
    "within layers": lambda fired, values, labels, layers, one: within_layer_graph(fired, layers, one.share),
    "paper's": lambda fired, values, labels, layers, one: paper_graph(fired, labels, layers, one.share),
    "released code's": lambda fired, values, labels, layers, one: released_graph(
        values, labels, layers, one.share, **{quirk: quirk in one.quirks for quirk in QUIRKS}
    ),
}


def _modularity(network: _Network, one: Specification) -> float:
    """Q, or Q - Q_null."""
    found = _score(network.graph(one), one, SEEDS)
    if one.null == "nothing":
        return found
    fired, rng = network.fired(one.firing, one.neurons), np.random.default_rng(0)
    drawn = []
    for _ in range(NULL_DRAWS):
        shuffled = (
            circular_shift_null(fired, rng)
            if one.null == "circular shift"
            else within_class_null(fired, network.labels, rng)
        )
        drawn.append(_score(network.build(one, shuffled), one, seeds=1))
    return found - float(np.mean(drawn))


def _score(graph: sp.csr_array, one: Specification, seeds: int) -> float:
    """Modularity of the communities that the algorithm finds, at the specification's resolution."""
    if one.algorithm == "Leiden":
        return detect_communities(graph, one.resolution, seeds).modularity
    import networkx

    nodes = to_networkx(graph)
    if one.algorithm == "Louvain":
        groups = networkx.community.louvain_communities(nodes, resolution=one.resolution, seed=0)
    else:
        groups = networkx.community.fast_label_propagation_communities(nodes, weight="weight", seed=0)
    labels = np.zeros(graph.shape[0], dtype=np.int64)
    for number, group in enumerate(groups):
        labels[list(group)] = number
    return modularity(graph, labels, one.resolution)


def _entropy(network: _Network, one: Specification) -> float:
    """Bits: of all neurons of the part together for patterns and sums, else per neuron or block."""
    if one.bins:
        return _binned(network, one)
    fired = network.fired(one.firing, one.neurons)
    way = None if one.correction == PLUG_IN else "miller-madow"
    measures = {
        "pattern entropy": lambda: pattern_entropy(fired, way),
        "class-conditional entropy": lambda: class_conditional_entropy(fired, network.labels, way),
        "firing entropy": lambda: float(firing_entropy(fired, way).mean()),
        "mutual information": lambda: float(mutual_information(fired, network.labels, way).mean()),
        "total correlation": lambda: total_correlation(fired, correction=way),
    }
    return measures[one.measure]()


def _binned(network: _Network, one: Specification) -> float:
    """The paper's entropy: summed over all neurons, or the mean over those that are ever active."""
    if one.measure.endswith("strict bins"):
        return float(released_entropy(network.activations, one.bins).sum())
    own = network.histogram if one.bins == BINS else None
    counts = activation_histogram(network.activations, one.bins) if own is None else own
    bits = histogram_entropy(counts)
    if one.measure.endswith("sum"):
        return float(bits.sum())
    live = counts.any(axis=0)
    return float(bits[live].mean()) if live.any() else 0.0


def _histogram(histogram: Any, neurons: int) -> np.ndarray | None:
    if histogram is None:
        return None
    counts = as_numpy(histogram, "histogram")
    if counts.shape != (BINS, neurons):
        raise ValueError(f"histogram must have shape ({BINS}, {neurons}), received {counts.shape}")
    if counts.size and not 0 <= counts.min() <= counts.max() < np.inf:
        raise ValueError("histogram must be finite counts >= 0, received others")
    return counts
