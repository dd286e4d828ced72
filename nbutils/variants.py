"""The same measures under other definitions: layer by layer, with the paper's firing rule, and on the paper's graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from nbutils.arrays import as_fired, as_labels
from nbutils.communities import detect_communities, well_defined_communities
from nbutils.entropy import pattern_entropy, unique_share
from nbutils.graphs import activation_pattern_graph
from nbutils.information import mutual_information
from nbutils.reconstruction import paper_graph

__all__ = ["measure_layers", "measure_paper", "measure_strength"]


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
