"""Other defensible choices of graph, firing, communities and entropy, and their values on one network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from nbutils.activations import activation_histogram, firing, firing_share
from nbutils.communities import detect_communities, modularity
from nbutils.entropy import (
    class_conditional_entropy,
    firing_entropy,
    histogram_entropy,
    mutual_information,
    pattern_entropy,
    total_correlation,
)
from nbutils.graphs import (
    activation_pattern_graph,
    disparity_graph,
    layered_graph,
    pearson_graph,
    phi_graph,
    ppmi_graph,
    to_networkx,
    within_layer_graph,
)
from nbutils.nulls import circular_shift_null, within_class_null
from nbutils.paper import paper_graph, released_entropy, released_graph
from nbutils.support.arguments import checked
from nbutils.support.checks import as_activations, as_count, as_labels, as_numpy, is_number, shown

__all__ = ["FACTORS", "Specification", "evaluate", "evaluate_all", "specifications", "specified"]

# What can be chosen, and what it is called in a figure.
FACTORS = {
    "measure": "measure",
    "graph": "graph",
    "kept": "share kept",
    "firing": "rule of firing",
    "communities": "communities",
    "neurons": "neurons",
    "null": "null taken off",
    "correction": "estimate",
    "bins": "bins",
}
DENSITIES, RULES = (0.02, 0.05, 0.1), ("top:0.05", "top-decile", "top:0.2", "positive")
GRAPHS = ("phi", "PPMI", "disparity", "adjacent layers", "within layers")
WIDTH = 512  # of the paper's layers: its S neurons are given as a share of this
DETAILS = ("last_class_edges", "frequency_threshold", "index_slips")
PLUG_IN, CORRECTED = "plug-in", "Miller-Madow"
RULE_NAMES = {"top-decile": "top 10 %", "top:0.05": "top 5 %", "top:0.2": "top 20 %", "positive": "positive"}
ALLOWED = {
    "hypothesis": ("H2", "H3"),
    "measure": (
        *("modularity", "pattern entropy", "class-conditional entropy", "firing entropy", "mutual information"),
        *("total correlation", "binned entropy, sum", "binned entropy, mean of live neurons"),
        "binned entropy, strict bins",
    ),
    "graph": ("", "co-firing count", *GRAPHS, "disparity, alpha", "Pearson", "paper's", "released code's"),
    "algorithm": ("", "Leiden", "Louvain", "label propagation"),
    "neurons": ("all", "first layer", "last layer"),
    "null": ("", "nothing", "circular shift", "within-class shuffle"),
    "correction": ("", PLUG_IN, CORRECTED),
}
USUAL = ("all layers", "nothing")  # goes without saying
GAINS = ("mutual information", "total correlation")  # the more of these, the less entropy is left


@checked
@dataclass(frozen=True)
class Specification:
    """One way to turn a network's activations into the number that a hypothesis is about.

    Attributes:
        hypothesis: "H2" or "H3".
        measure: "modularity", or which entropy.
        graph: how pairs of neurons are weighed and chosen; empty for H3.
        share: of all pairs that may be joined for most graphs; of each layer's neurons for the paper's; the
            significance for "disparity, alpha"; 0 for H3.
        firing: rule of firing, see :func:`nbutils.activations.firing`; empty where activations are used as they are.
        algorithm: what finds communities: "Leiden", "Louvain" or "label propagation"; empty for H3.
        resolution: of modularity; 0 for H3.
        neurons: "all", "first layer" or "last layer".
        null: null model whose mean Q is taken off: "circular shift", "within-class shuffle", or "nothing"; empty for
            H3. A null needs a rule of firing.
        correction: "plug-in" or "Miller-Madow"; empty where there is nothing to correct.
        bins: bins of an entropy of activation sizes; 0 for others.
        details: switches of :func:`nbutils.paper.released_graph` that are on.
        primary: whether this is the specification that the verdict is about.

    Raises:
        ValueError: an attribute has a value that is not one of the above; names both.
    """

    hypothesis: str
    measure: str
    graph: str = ""
    share: float = 0.0
    firing: str = ""
    algorithm: str = ""
    resolution: float = 0.0
    neurons: str = "all"
    null: str = ""
    correction: str = ""
    bins: int = 0
    details: tuple[str, ...] = ()
    primary: bool = False

    def __post_init__(self) -> None:
        for name, allowed in ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}; received {shown(getattr(self, name))}")
        for name, most in (("share", 1.0), ("resolution", float("inf"))):
            value = getattr(self, name)
            if not is_number(value) or not 0 <= value <= most:
                words = "a finite number of at least 0" if np.isinf(most) else "a number from 0 to 1"
                raise ValueError(f"{name} must be {words}, received {shown(value)}")
        as_count(self.bins, "bins", 0)
        try:
            firing_share(self.firing or "positive")
        except ValueError as error:
            raise ValueError(f"firing: {error}") from None
        if unknown := [name for name in self.details if name not in DETAILS]:
            raise ValueError(f"details must be of {', '.join(DETAILS)}, received {shown(unknown[0])}")
        if (self.hypothesis == "H2") != (self.measure == "modularity"):
            raise ValueError(f"measure must be modularity for H2 and an entropy for H3, received {self.measure!r}")
        if self.hypothesis == "H2" and not (self.graph and self.algorithm and self.null):
            raise ValueError("a specification of H2 needs graph, algorithm and null")

    @property
    def predicted(self) -> int:
        """Sign that the hypothesis gives the relation with test accuracy.

        +1 for modularity; -1 for entropies; +1 for mutual information and total correlation, which are what entropy
        falls by once the class, or the other neurons, are known.
        """
        return 1 if self.hypothesis == "H2" or self.measure in GAINS else -1

    @property
    def choices(self) -> dict[str, str]:
        """What was chosen, for people; keys as in `FACTORS`, only those that apply."""
        words = {
            "measure": self.measure if self.hypothesis == "H3" else "",
            "graph": self.graph + (f", {self.details[0].replace('_', ' ')}" if len(self.details) == 1 else ""),
            "kept": self._kept,
            "firing": RULE_NAMES.get(self.firing, self.firing),
            "communities": self.algorithm + (f", resolution {self.resolution:g}" if self.algorithm == "Leiden" else ""),
            "neurons": "all layers" if self.neurons == "all" else self.neurons,
            "null": self.null,
            "correction": self.correction,
            "bins": f"{self.bins} bins" if self.bins else "",
        }
        return {factor: word for factor, word in words.items() if word}

    @property
    def label(self) -> str:
        """One line for people that no other specification has."""
        return " · ".join([self.hypothesis, *(word for word in self.choices.values() if word not in USUAL)])

    @property
    def _kept(self) -> str:
        if self.graph.startswith(("paper", "released")):
            return f"{self.share * WIDTH:.0f} of {WIDTH} neurons"
        if self.graph == "disparity, alpha":
            return f"alpha {self.share:g}"
        return f"{100 * self.share:g} % of pairs" if self.graph else ""


PRIMARY_H2 = Specification(
    *("H2", "modularity", "co-firing count", 0.05, "top-decile", "Leiden", 1.0), null="nothing", primary=True
)
PRIMARY_H3 = Specification(
    "H3", "pattern entropy", firing="top-decile", neurons="last layer", correction=CORRECTED, primary=True
)


def specifications() -> tuple[Specification, ...]:
    """Every specification of the curve: those of H2, then those of H3; each hypothesis has one primary one.

    Returns:
        Different specifications with different labels, always in the same order.

    Examples:
        >>> [s.label for s in specifications() if s.primary][0]
        'H2 · co-firing count · 5 % of pairs · top 10 % · Leiden, resolution 1'
        >>> len(specifications()) >= 60
        True

    References:
        Simonsohn, Simmons and Nelson (2020), doi:10.1038/s41562-020-0912-z; Steegen et al. (2016),
        doi:10.1177/1745691616658637.
    """
    found = [PRIMARY_H2, *_graphs(), *_searches(), *_papers(), PRIMARY_H3, *_sizes(), *_patterns(), *_neuron_wise()]
    return tuple(dict.fromkeys(found))


def specified(values: pd.DataFrame) -> dict[str, Specification]:
    """The specifications by their labels, once it is sure that a table has one finite column per specification.

    Args:
        values: one row per network, one column per specification, named by its label.

    Returns:
        All specifications, by label.

    Raises:
        TypeError: `values` is no table.
        ValueError: a column is no specification's label, or a value is not finite.

    Examples:
        >>> one = specifications()[0]
        >>> specified(pd.DataFrame({one.label: [0.5, 0.4]}))[one.label] == one
        True
    """
    if not isinstance(values, pd.DataFrame):
        raise TypeError(f"values must be a table, a column per specification, received {type(values).__name__}")
    known = {one.label: one for one in specifications()}
    if unknown := [name for name in values.columns if not isinstance(name, str) or name not in known]:
        raise ValueError(f"columns of values must be labels of specifications(), received {unknown[0]!r}")
    if values.columns.has_duplicates:
        raise ValueError("columns of values must differ, received one twice")
    numeric = all(kind.kind in "biuf" for kind in values.dtypes if isinstance(kind, np.dtype))
    if not numeric or not np.isfinite(values.to_numpy(dtype=float, na_value=np.nan)).all():
        raise ValueError("values must be finite, received one that is not")
    return known


def _but(**changes: object) -> Specification:
    """The primary specification of H2 with something else in it."""
    changed = replace(PRIMARY_H2, **changes)
    return replace(changed, primary=changed == PRIMARY_H2)


def _graphs() -> list[Specification]:
    """Graphs: all rules x densities for counts; densities, and one density of `positive`, for others; single layers."""
    counts = [_but(firing=rule, share=share) for rule, share in product(RULES, DENSITIES)]
    others = [_but(graph=graph, share=share) for graph, share in product(GRAPHS, DENSITIES)]
    positive = [_but(graph=graph, firing="positive") for graph in (*GRAPHS, "disparity, alpha")]
    pearson = [_but(graph="Pearson", firing="", share=share) for share in DENSITIES]
    single = [
        _but(neurons=part, firing=rule)
        for part, rule in product(("first layer", "last layer"), ("top-decile", "positive"))
    ]
    return [*counts, *others, _but(graph="disparity, alpha"), *positive, *pearson, *single]


def _searches() -> list[Specification]:
    """How communities are found, and what is taken off their modularity."""
    rules = ("top-decile", "positive")
    leiden = [_but(resolution=resolution, firing=rule) for resolution, rule in product((0.5, 2.0), rules)]
    louvain = [_but(algorithm="Louvain", firing=rule) for rule in rules]
    spread = [_but(algorithm="label propagation", firing=rule) for rule in rules]
    spread.append(_but(algorithm="label propagation", share=0.02))
    nulls = [
        _but(graph=graph, null=null)
        for graph, null in product(("co-firing count", "phi"), ("circular shift", "within-class shuffle"))
    ]
    return [*leiden, *louvain, *spread, *nulls]


def _papers() -> list[Specification]:
    """The paper's graph: sizes S, resolutions, another search and rule, nulls; and details of the released code."""
    paper = _but(graph="paper's", share=50 / WIDTH, firing="positive")
    released = replace(paper, graph="released code's", firing="")
    return [
        *(replace(paper, share=size / WIDTH) for size in (13, 25, 50, 100)),
        *(replace(paper, resolution=resolution) for resolution in (0.5, 2.0)),
        replace(paper, algorithm="label propagation"),
        replace(paper, firing="top-decile"),
        *(replace(paper, null=null) for null in ("circular shift", "within-class shuffle")),
        replace(released, details=DETAILS),
        *(replace(released, details=(detail,)) for detail in DETAILS),
    ]


def _sizes() -> list[Specification]:
    """The paper's entropy, of activation sizes."""
    total = Specification("H3", "binned entropy, sum", bins=10)
    return [
        *(replace(total, bins=bins) for bins in (5, 10, 20)),
        replace(total, measure="binned entropy, mean of live neurons"),
        replace(total, measure="binned entropy, strict bins"),
    ]


def _patterns() -> list[Specification]:
    """Entropy of whole patterns, with and without the class, per layer, rule and correction."""
    rules, ways = ("top-decile", "positive"), (CORRECTED, PLUG_IN)
    last = [replace(PRIMARY_H3, firing=rule, correction=way, primary=False) for rule, way in product(rules, ways)]
    last += [replace(PRIMARY_H3, firing=rule, primary=False) for rule in ("top:0.05", "top:0.2")]
    first = [replace(PRIMARY_H3, neurons="first layer", firing=rule, primary=False) for rule in rules]
    within = [replace(one, measure="class-conditional entropy") for one in (*last, *first)]
    return [one for one in (*last, *first, *within) if replace(one, primary=True) != PRIMARY_H3]


def _neuron_wise() -> list[Specification]:
    """What neurons, or blocks of six, say: firing entropy, mutual information with the class, total correlation."""
    parts, rules = ("all", "last layer"), ("top-decile", "positive")
    found = [
        Specification("H3", measure, firing=rule, neurons=part, correction=CORRECTED)
        for measure, part, rule in product(("firing entropy", *GAINS), parts, rules)
    ]
    return [*found, *(Specification("H3", gain, firing="top-decile", correction=PLUG_IN) for gain in GAINS)]


SEEDS = 5  # searches for communities per graph, as in the primary measures
NULL_DRAWS = 3
BINS = 10  # of the histogram that runs keep


def evaluate(specification: Specification, activations: Any, labels: Any, layers: Any, histogram: Any = None) -> float:
    """One network measured in one way.

    Args:
        specification: which way, see :func:`nbutils.study.specifications.specifications`.
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
        key = ("graph", one.graph, one.share, one.firing, one.neurons, one.details)
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
        values, labels, layers, one.share, **{detail: detail in one.details for detail in DETAILS}
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
