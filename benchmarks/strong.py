"""A snapshot's graphs and communities from the fastest libraries there are, plugged together: NumPy float32 and igraph.

igraph is under the GPL and only needed here: `pip install igraph`.
"""

from __future__ import annotations

import random

import numpy as np

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]


def graph_pairs(fired: np.ndarray, density: float = 0.05) -> Pairs:
    """(i, j, count) of the heaviest pairs, with ties."""
    single = fired.astype(np.float32)
    counts = single.T @ single
    i, j = np.triu_indices(len(counts), 1)
    pairs = counts[i, j]
    wanted = int(np.ceil(round(density * len(pairs), 6)))
    kept = pairs >= max(1, np.partition(pairs, len(pairs) - wanted)[len(pairs) - wanted])
    return i[kept], j[kept], pairs[kept]


def communities(neurons: int, pairs: Pairs, seed: int) -> float:
    """Q of one search of igraph's Leiden, two iterations, its default."""
    import igraph

    random.seed(seed)
    graph = igraph.Graph(n=neurons, edges=np.column_stack(pairs[:2]))
    weights = pairs[2].tolist()
    return graph.modularity(graph.community_leiden("modularity", weights=weights), weights=weights)


def snapshot(fired: np.ndarray, labels: np.ndarray, draws: int) -> dict[str, float]:
    """Q over five seeds and both nulls."""
    rng = np.random.default_rng(0)
    whole = graph_pairs(fired)
    examples, neurons = fired.shape
    rows = np.arange(examples)[:, None]
    circular, within = [], []
    for draw in range(draws):
        shifted = fired[(rows + rng.integers(examples, size=neurons)) % examples, np.arange(neurons)]
        circular.append(communities(neurons, graph_pairs(shifted), draw))
        shuffled = np.empty_like(fired)
        for label in np.unique(labels):
            shuffled[labels == label] = rng.permuted(fired[labels == label], axis=0)
        within.append(communities(neurons, graph_pairs(shuffled), draw))
    return {
        "modularity": float(np.median([communities(neurons, whole, seed) for seed in range(5)])),
        "null_circular": float(np.mean(circular)),
        "null_within": float(np.mean(within)),
    }
