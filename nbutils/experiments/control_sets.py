"""Sets of neurons to hold a community against: as large, and alike in what the community must not be confused with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from nbutils.communities import agreed_communities, detect_communities
from nbutils.graphs import activation_pattern_graph
from nbutils.tracking import members, selective_for

__all__ = [
    "clustered",
    "cut_alike",
    "large_communities",
    "nearest_set",
    "preferred_class",
    "random_set",
    "shared_share",
    "unit_pairs",
]

SEARCHES = 5  # for communities that several searches agree on


def large_communities(fired: np.ndarray, density: float, least: int, resolution: float = 1.0) -> list[np.ndarray]:
    """Communities of the neurons that fire, as several searches agree on them.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        density: share of pairs of active neurons that are edges, in (0, 1].
        least: neurons of a community, at least.
        resolution: above 1 favours small communities.

    Returns:
        Numbers of each community's neurons, rising; the largest community first.

    Examples:
        >>> fired = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
        >>> [one.tolist() for one in large_communities(fired, 0.4, least=3)]
        [[0, 1, 2], [3, 4, 5]]
    """
    active = np.flatnonzero(fired.any(axis=0))
    graph = activation_pattern_graph(fired[:, active], density)
    _, masks = members(agreed_communities(detect_communities(graph, resolution, SEARCHES).seed_labels))
    return [active[mask] for mask in masks if mask.sum() >= least]


def clustered(fired: np.ndarray, clusters: int, least: int) -> list[np.ndarray]:
    """Groups of the neurons that fire by hierarchical clustering, without a graph and without modularity.

    Ward's linkage of firing patterns that are standardised neuron by neuron, so that the squared distance of two
    neurons is in proportion to 1 minus their correlation.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        clusters: where the tree is cut; at most as many groups.
        least: neurons of a group, at least.

    Returns:
        Numbers of each group's neurons, rising; the largest group first.

    Examples:
        >>> fired = np.kron(np.eye(2, dtype=bool), np.ones((5, 3), dtype=bool))
        >>> [one.tolist() for one in clustered(fired, 2, least=3)]
        [[0, 1, 2], [3, 4, 5]]

    References:
        Ward (1963), doi:10.1080/01621459.1963.10500845; computed by SciPy.
    """
    active = np.flatnonzero(fired.any(axis=0))
    if len(active) < 2:
        return []
    values = fired[:, active] - fired[:, active].mean(axis=0)
    scale = values.std(axis=0)
    tree = linkage((values / np.where(scale > 0, scale, 1)).T, "ward")
    _, masks = members(fcluster(tree, clusters, "maxclust"))
    return [active[mask] for mask in masks if mask.sum() >= least]


def preferred_class(fired: np.ndarray, labels: np.ndarray, chosen: np.ndarray) -> int:
    """The class on which some neurons fire most.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean.
        labels: class per example, shape (examples,), integers.
        chosen: numbers of the neurons.

    Returns:
        The class, the smallest of tied ones; -1 where they never fire.

    Examples:
        >>> preferred_class(np.array([[1, 1, 0], [0, 0, 1]], dtype=bool), np.array([3, 8]), np.array([0, 1]))
        3
    """
    found = selective_for(fired[:, chosen], labels, np.zeros(len(chosen), dtype=np.int64))
    return int(found["selective_for"].iloc[0])


def shared_share(first: np.ndarray, second: np.ndarray) -> float:
    """Share of the neurons of two sets that are in both (Jaccard's index).

    Args:
        first: numbers of neurons, each once; `second` likewise.
        second: see there.

    Examples:
        >>> shared_share(np.array([1, 2, 3]), np.array([2, 3, 4]))
        0.5
    """
    both = len(np.intersect1d(first, second))
    return both / (len(first) + len(second) - both)


def random_set(chosen: np.ndarray, layers: np.ndarray, pool: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Neurons drawn at random, as many of each layer.

    Args:
        chosen: numbers of the neurons of a community.
        layers: layer of every neuron, shape (neurons,).
        pool: which neurons may be drawn, shape (neurons,), boolean; those of the community, too.
        rng: source of randomness.

    Examples:
        >>> random_set(np.array([0, 1]), np.array([1, 1, 2]), np.ones(3, dtype=bool), np.random.default_rng(0)).tolist()
        [0, 1]
    """
    drawn = [
        rng.choice(np.flatnonzero(pool & (layers == layer)), count, replace=False)
        for layer, count in zip(*np.unique(layers[chosen], return_counts=True), strict=True)
    ]
    return np.sort(np.concatenate(drawn))


def nearest_set(
    chosen: np.ndarray, layers: np.ndarray, pool: np.ndarray, values: np.ndarray, rng: np.random.Generator
) -> np.ndarray | None:
    """Neurons outside of a community that are most like its own, one for each, of the same layer.

    Values are standardised over the pool of a layer, and neurons paired one to one such that the sum of the distances
    is as small as possible.

    Args:
        chosen: numbers of the neurons of a community.
        layers: layer of every neuron, shape (neurons,).
        pool: which neurons may be drawn, shape (neurons,), boolean; those of the community are left out.
        values: what neurons must be alike in, shape (neurons, values).
        rng: decides between neurons that are equally near.

    Returns:
        As many neurons of each layer, rising; None where a layer has too few outside of the community.

    Examples:
        >>> rates, one = np.array([[0.1], [0.5], [0.12], [0.9]]), np.ones(4, dtype=int)
        >>> nearest_set(np.array([0]), one, one == 1, rates, np.random.default_rng(0)).tolist()
        [2]

    References:
        Crouse (2016), doi:10.1109/TAES.2016.140952, on the assignment; computed by SciPy.
    """
    found = []
    for layer in np.unique(layers[chosen]):
        own = chosen[layers[chosen] == layer]
        others = rng.permutation(np.setdiff1d(np.flatnonzero(pool & (layers == layer)), chosen))
        if len(others) < len(own):
            return None
        scale = values[pool & (layers == layer)].std(axis=0)
        scaled = values / np.where(scale > 0, scale, 1)
        found.append(others[linear_sum_assignment(cdist(scaled[own], scaled[others]))[1]])
    return np.sort(np.concatenate(found))


def cut_alike(
    first: np.ndarray, second: np.ndarray, rng: np.random.Generator, layers: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Two sets cut down at random to the size of the smaller.

    Args:
        first: numbers of neurons; `second` likewise.
        second: see there.
        rng: source of randomness.
        layers: layer of every neuron; with it, they are cut so in every layer, and end with as many neurons of each.

    Examples:
        >>> [len(one) for one in cut_alike(np.arange(5), np.arange(3), np.random.default_rng(0))]
        [3, 3]
    """
    sides: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for layer in (None,) if layers is None else np.unique(layers):
        parts = [one if layer is None else one[layers[one] == layer] for one in (first, second)]
        size = min(map(len, parts))
        for side, part in zip(sides, parts, strict=True):
            side.append(rng.choice(part, size, replace=False))
    return np.sort(np.concatenate(sides[0])), np.sort(np.concatenate(sides[1]))


def unit_pairs(
    means: np.ndarray,
    selectivity: np.ndarray,
    rates: np.ndarray,
    layers: np.ndarray,
    pool: np.ndarray,
    rng: np.random.Generator,
    near: int = 10,
    classes: Sequence[int] | None = None,
) -> dict[int, tuple[int, int]]:
    """The most selective neuron of every class, and the least selective of those of its layer nearest to it in rate.

    Args:
        means: mean activation by class, shape (classes, neurons); a neuron is of the class with the largest.
        selectivity: of every neuron, shape (neurons,).
        rates: share of examples on which a neuron is positive, shape (neurons,).
        layers: layer of every neuron, shape (neurons,).
        pool: which neurons count, shape (neurons,), boolean.
        rng: decides between neurons that are equally near.
        near: how many nearest neurons are considered, or as many as there are.
        classes: names of the classes; None numbers them from 0.

    Returns:
        By class (selective neuron, control); classes that no neuron prefers, or whose neuron is alone, are left out.

    Examples:
        >>> means, one = np.array([[3.0, 1, 1], [1, 1, 2]]), np.ones(3, dtype=int)
        >>> rng, same = np.random.default_rng(0), np.array([0.2, 0.2, 0.2])
        >>> unit_pairs(means, np.array([0.5, 0, 0.3]), same, one, one == 1, rng)
        {0: (0, 1), 1: (2, 1)}
    """
    found = {}
    for number, name in enumerate(range(len(means)) if classes is None else classes):
        of_class = np.flatnonzero(pool & (means.argmax(axis=0) == number) & (selectivity > 0))
        if not len(of_class):
            continue
        unit = of_class[selectivity[of_class].argmax()]
        others = rng.permutation(np.setdiff1d(np.flatnonzero(pool & (layers == layers[unit])), [unit]))
        nearest = others[np.argsort(np.abs(rates[others] - rates[unit]), kind="stable")[:near]]
        if len(nearest):
            found[int(name)] = int(unit), int(nearest[selectivity[nearest].argmin()])
    return found
