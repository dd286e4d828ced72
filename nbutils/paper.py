"""The paper's own graph and entropy, as its authors' released code describes them; details of that code are switches.

A reconstruction: the full text of the paper, its rule for communities and its tables are not public.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nbutils.activations import activation_histogram
from nbutils.entropy import histogram_entropy
from nbutils.graphs import graph_from_pairs
from nbutils.support.checks import as_activations, as_fired, as_labels, as_switch, require_share, share_count

SLIP = 2  # places by which the released code's indices are off


def paper_graph(fired: Any, labels: Any, layers: Any, keep: float = 50 / 512) -> sp.csr_array:
    """The paper's graph: within each class, the neurons of a layer that fire most often, joined by how often they do.

    For class c with E_c examples, f_c(i) is the share of them on which neuron i fires. Of every layer only the
    S = ceil(keep * width) neurons with the largest f_c stay (the lower index first among equals), and
    w_c(i, j) = (examples of class c on which both fire) / E_c joins each two of them. Layers are never joined. The
    classes' graphs are merged by union, their weights added: w(i, j) = sum_c w_c(i, j).

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; the paper's rule is `positive`, a > 0.
        labels: class per example, shape (examples,), integers.
        layers: hidden layer per neuron, shape (neurons,), integers.
        keep: share of each layer's neurons that is kept, in (0, 1]; the paper keeps 50 of 512.

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal, weights in (0, number of classes]. A
        neuron that no class keeps is isolated; where nothing fires together there are no edges.

    Raises:
        ValueError: shapes disagree, `fired` is not boolean, or `keep` is outside (0, 1].

    Examples:
        >>> fired = [[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 1, 1]]
        >>> paper_graph(fired, [0, 0, 1, 1], layers=[1, 1, 1], keep=2 / 3).toarray()
        array([[0. , 0.5, 0. ],
               [0.5, 0. , 1. ],
               [0. , 1. , 0. ]])

    References:
        Mostafa and Mondal (2021), arXiv:2106.04693.
    """
    return _merged(as_fired(fired), labels, layers, keep)


def released_graph(
    activations: Any,
    labels: Any,
    layers: Any,
    keep: float = 50 / 512,
    *,
    last_class_edges: bool = True,
    frequency_threshold: bool = True,
    index_slips: bool = True,
) -> sp.csr_array:
    """The paper's graph with implementation details of the released code, each of which can be switched off.

    With all three off it is :func:`paper_graph` of `activations > 0`.

    Args:
        activations: post-non-linearity values, shape (examples, neurons), finite.
        labels: class per example, shape (examples,), integers.
        layers: hidden layer per neuron, shape (neurons,), integers.
        keep: share of each layer's neurons that is kept, in (0, 1].
        last_class_edges: every class chooses its own neurons, but weighs their pairs on the examples of the last class
            (the one with the largest label).
        frequency_threshold: for the edges of class c neuron i counts as firing where a_i > f_c(i), so that an
            activation is compared with a frequency; neurons are still chosen by how often a_i > 0.
        index_slips: S + 2 neurons of each layer are taken as nodes, but edges are drawn among the first S - 2 of them
            only. This is our reading of the slips. All hidden neurons are nodes of our graphs anyway, so that what
            shows are the missing edges; with S <= 3 there are none.

    Returns:
        Symmetric CSR adjacency, float64, shape (neurons, neurons), zero diagonal, weights in (0, number of classes].

    Raises:
        ValueError: shapes disagree, values are not finite, `keep` is outside (0, 1], or a switch is no truth value.

    Examples:
        >>> values = [[0.4, 2.0, 0.0], [0.3, 3.0, 0.0], [0.0, 2.0, 0.2], [0.0, 1.5, 1.2]]
        >>> details = {"last_class_edges": False, "index_slips": False}
        >>> released_graph(values, [0, 0, 1, 1], [1, 1, 1], keep=2 / 3, **details).toarray()  # 0.4 and 0.2 fire no more
        array([[0. , 0. , 0. ],
               [0. , 0. , 0.5],
               [0. , 0.5, 0. ]])

    References:
        Mostafa and Mondal (2021), arXiv:2106.04693, as their later public code computes it.
    """
    return _merged(
        as_activations(activations),
        labels,
        layers,
        keep,
        last_class_edges=as_switch(last_class_edges, "last_class_edges"),
        frequency_threshold=as_switch(frequency_threshold, "frequency_threshold"),
        index_slips=as_switch(index_slips, "index_slips"),
    )


def released_entropy(activations: Any, bins: int = 10, *, strict_bins: bool = True) -> np.ndarray:
    """The paper's entropy with the strict bin edges of the released code: each neuron's maximum falls into no bin.

    As :func:`nbutils.entropy.binned_entropy`, but the last bin ends below max_i, so that every example on which neuron
    i is at its maximum is left out; the shares p_b are of the examples that are counted.

    Args:
        activations: post-non-linearity values, shape (examples, neurons), finite.
        bins: number of equal bins on (0, max_i), from 1 to 65,536.
        strict_bins: False counts the maximum in the last bin, as :func:`nbutils.entropy.binned_entropy` does.

    Returns:
        Bits per neuron, shape (neurons,), in [0, log2 bins]; 0 for a neuron that is never positive, or whose positive
        values are all equal. The network's entropy in the paper is their sum.

    Raises:
        ValueError: `activations` is not a finite matrix, `bins` is out of range, or `strict_bins` is no truth value.

    Examples:
        >>> released_entropy([[1.0], [3.0], [4.0]], bins=2).tolist()
        [1.0]
        >>> released_entropy([[1.0], [4.0], [4.0]], bins=2).tolist()
        [0.0]

    References:
        Mostafa and Mondal (2021), arXiv:2106.04693, as their later public code computes it.
    """
    values = as_activations(activations)
    counts = activation_histogram(values, bins)
    if as_switch(strict_bins, "strict_bins"):
        largest = values.max(axis=0)
        counts[-1] -= np.where(largest > 0, np.count_nonzero(values == largest, axis=0), 0)
    return histogram_entropy(counts)


def _merged(values: np.ndarray, labels: Any, layers: Any, keep: float, **switches: bool) -> sp.csr_array:
    """The classes' graphs, layer by layer, added up; `values` are real, or boolean."""
    share = require_share(keep, "keep")
    classes, layer = as_labels(labels, values.shape[0]), as_labels(layers, values.shape[1], "layers")
    images = [np.flatnonzero(classes == name) for name in np.unique(classes)]
    rates = np.stack([np.count_nonzero(values[own] > 0, axis=0) / own.size for own in images])
    found = [np.zeros((3, 0))]
    for name in np.unique(layer):
        members = np.flatnonzero(layer == name)
        weights = _layer_weights(values, images, rates, members, share_count(share, members.size), **switches)
        rows, columns = np.nonzero(weights)
        upper = rows < columns
        rows, columns = rows[upper], columns[upper]
        found.append(np.stack([members[rows], members[columns], weights[rows, columns]]))
    rows, columns, weights = np.concatenate(found, axis=1)
    order = np.lexsort((columns, rows))  # the neurons of a layer need not stand together
    return graph_from_pairs(values.shape[1], rows[order], columns[order], weights[order])


def _layer_weights(
    values: np.ndarray,
    images: list[np.ndarray],
    rates: np.ndarray,
    members: np.ndarray,
    size: int,
    *,
    last_class_edges: bool = False,
    frequency_threshold: bool = False,
    index_slips: bool = False,
) -> np.ndarray:
    """Added weights of all pairs of a layer, `size` of its neurons kept for each class; shape (width, width)."""
    joined = max(0, size - SLIP) if index_slips else size
    weights = np.zeros((members.size, members.size))
    for own, rate in zip(images, rates[:, members], strict=True):
        kept = np.argsort(-rate, kind="stable")[:joined]
        seen = values[np.ix_(images[-1] if last_class_edges else own, members[kept])]
        fires = (seen > (rate[kept] if frequency_threshold else 0)).astype(np.float32)
        # A product of zeros and ones is exact in float32 up to 16 million examples of a class.
        weights[np.ix_(kept, kept)] += (fires.T @ fires).astype(np.float64) / len(fires)
    return weights
