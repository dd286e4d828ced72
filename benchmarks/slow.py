"""One snapshot as one writes it at first: NumPy, networkx and scikit-learn, no concern for speed. The slow side."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
from sklearn.metrics import mutual_info_score


def firing(activations: np.ndarray) -> np.ndarray:
    """Top decile of each neuron's positive activations."""
    threshold = np.sort(activations, axis=0)[len(activations) - int(np.ceil(0.1 * len(activations)))]
    return (activations > 0) & (activations >= threshold)


def graph(fired: np.ndarray, density: float = 0.05) -> nx.Graph:
    """The heaviest pairs, with ties."""
    counts = fired.T.astype(float) @ fired
    pairs = np.sort(counts[np.triu_indices(len(counts), 1)])[::-1]
    threshold = max(1, pairs[int(np.ceil(round(density * len(pairs), 6))) - 1])
    kept = np.where(counts >= threshold, counts, 0)
    np.fill_diagonal(kept, 0)
    return nx.from_numpy_array(kept)


def communities(found: nx.Graph, seed: int) -> float:
    """Q of one search."""
    return nx.community.modularity(found, nx.community.louvain_communities(found, seed=seed))


def nulls(fired: np.ndarray, labels: np.ndarray, draws: int, rng: np.random.Generator) -> dict[str, float]:
    """Mean Q of both null models."""
    circular, within = [], []
    for draw in range(draws):
        shifted = np.stack([np.roll(column, rng.integers(len(fired))) for column in fired.T], axis=1)
        circular.append(communities(graph(shifted), draw))
        shuffled = fired.copy()
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            for neuron in range(fired.shape[1]):
                shuffled[members, neuron] = fired[rng.permutation(members), neuron]
        within.append(communities(graph(shuffled), draw))
    return {"null_circular": float(np.mean(circular)), "null_within": float(np.mean(within))}


def bits(states: Any) -> float:
    """Miller-Madow entropy of a list of states."""
    counts = np.array(list(Counter(states).values()))
    share = counts / counts.sum()
    return float(-(share * np.log2(share)).sum() + (len(counts) - 1) / (2 * counts.sum() * np.log(2)))


def entropies(fired: np.ndarray, labels: np.ndarray, last: np.ndarray) -> dict[str, float]:
    """The same entropies and baselines as `nbutils.measure_entropies`."""
    rows = [tuple(row) for row in fired[:, last]]
    correction = 1 / (2 * len(labels) * np.log(2))
    information = []
    for column in fired.T:
        seen = [len(set(column)), len(set(labels)), len(set(zip(column, labels, strict=True)))]
        plug_in = mutual_info_score(column, labels) / np.log(2)
        information.append(plug_in + correction * (seen[0] + seen[1] - seen[2] - 1))
    single = [bits(column) - correction * (len(set(column)) - 1) for column in fired.T]
    return {
        "pattern_entropy": bits(rows),
        "unique_patterns": sum(n == 1 for n in Counter(rows).values()) / len(rows),
        "class_conditional_entropy": sum(
            np.mean(labels == label) * bits([row for row, is_in in zip(rows, labels == label, strict=True) if is_in])
            for label in np.unique(labels)
        ),
        "firing_entropy": float(np.mean(single)),
        "mutual_information": float(np.mean(information)),
        "total_correlation": _total_correlation(fired),
    }


def _total_correlation(fired: np.ndarray, block: int = 6, blocks: int = 100) -> float:
    varying = fired[:, fired.any(axis=0) & ~fired.all(axis=0)]
    rng = np.random.default_rng(0)
    found = []
    for _ in range(blocks):
        members = rng.choice(varying.shape[1], block, replace=False)
        joint = bits([tuple(row) for row in varying[:, members]])
        found.append(sum(bits(varying[:, neuron]) for neuron in members) - joint)
    return float(np.mean(found))


def simple(activations: np.ndarray, labels: np.ndarray, bins: int = 10) -> dict[str, float]:
    """Binned entropy as in the paper, class selectivity, dead neurons."""
    binned, selective = [], []
    for column in activations.T:
        positive = column[column > 0]
        if len(positive) == 0:
            binned.append(0.0)
            selective.append(0.0)
            continue
        places = np.ceil(positive * (bins / column.max())).clip(1, bins)
        share = np.array(list(Counter(places).values())) / len(positive)
        binned.append(float(-(share * np.log2(share)).sum()))
        means = np.array([column[labels == label].mean(dtype=float) for label in np.unique(labels)])
        rest = (means.sum() - means.max()) / (len(means) - 1)
        selective.append((means.max() - rest) / (means.max() + rest))
    return {
        "binned_entropy": sum(binned),
        "class_selectivity": float(np.mean(selective)),
        "dead_share": float(np.mean(~(activations > 0).any(axis=0))),
    }


def snapshot(activations: np.ndarray, labels: np.ndarray, last: np.ndarray, draws: int) -> dict[str, float]:
    """Everything of one snapshot."""
    fired = firing(activations)
    whole = graph(fired)
    scores = [communities(whole, seed) for seed in range(5)]
    return {
        "modularity": float(np.median(scores)),
        **nulls(fired, labels, draws, np.random.default_rng(0)),
        **entropies(fired, labels, last),
        **simple(activations, labels),
    }
