"""Candidate measures of performance, all on one footing: how each is taken from a look at a network, and what it needs.

A new one is a function of a :class:`nbutils.runs.looks.Look` and an entry in `CANDIDATES`: the next `replicate` takes
what it adds on networks that the store holds. Those that only committed tables hold would be trained again (without
`--add`), hours for a data set; until then tables and pages do not show it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from nbutils.activations import class_means, effective_rank, participation_ratio
from nbutils.communities import agreed_communities, detect_communities
from nbutils.data.datasets import probe_halves
from nbutils.entropy import (
    active_entropy,
    block_entropy,
    class_conditional_entropy,
    class_selectivity,
    dead_share,
    firing_entropy,
    histogram_entropy,
    mutual_information,
    pattern_entropy,
    total_correlation,
)
from nbutils.graphs import activation_pattern_graph
from nbutils.measures import MeasureSpec, measure_matched, measure_strength
from nbutils.representations import layer_spread, linear_probe, manifold_geometry, neural_collapse, neuron_spread
from nbutils.runs.distilled import prediction_tree, soft_tree
from nbutils.runs.looks import Look
from nbutils.runs.masks import class_masks
from nbutils.runs.weights import linear_regions, path_norm, spectral_norms
from nbutils.second.questions import PROTOCOL
from nbutils.support.code import code_digest
from nbutils.tracking import class_agreement, compare_partitions

__all__ = ["CANDIDATES", "FAMILIES", "NEEDS", "Candidate"]

FAMILIES = {
    "communities": "communities of the activation pattern graph",
    "entropy": "entropies of the activation pattern",
    "firing": "how much fires, for which class, and how much together",
    "representation": "geometry of the activations",
    "weights": "norms, distances and linear regions of the weights",
    "training": "what training itself says",
    "outputs": "what the outputs on the probe say",
}
# What somebody must have to take a measure, the least first.
NEEDS = {
    "training": "the network, its training images and their labels",
    "images": "the network, and other images without labels",
    "labels": "the network, and other images with labels",
}


@dataclass(frozen=True)
class Candidate:
    """Measures that are taken together.

    Attributes:
        take: a function of this module, from a look to values by column.
        family: key of `FAMILIES`.
        needs: key of `NEEDS`.
        columns: column -> what pages call it.
        costly: whether it is taken on a part of the small zoo only, see :func:`nbutils.second.networks.networks_of`.
    """

    take: Callable[[Look], Mapping[str, float]]
    family: str
    needs: str
    columns: Mapping[str, str]
    costly: bool = False

    @property
    def name(self) -> str:
        """By which its cost is known."""
        return self.take.__name__.strip("_")

    @property
    def code(self) -> str:
        """Digest of what it does, by which stored values are known to be stale."""
        return code_digest(f"{__name__}.{self.take.__name__}")

    @property
    def by_halves(self) -> bool:
        """Whether it depends on the images of the probe, so that two half probes can disagree."""
        return self.needs != "training"


LINES = 50  # between images of the probe, on which linear regions are counted
TINY = 1e-12  # smaller losses and distances have this one's logarithm
ONE_NULL = MeasureSpec(density=PROTOCOL.density, seeds=1, null_draws=1)
PER_CLASS = 40  # images, on which manifolds are measured: their geometry depends on how many there are
FOLDS = 3  # of the linear probe
MASK_STEPS = 150  # of each weight mask
NEARLY = 0.95  # of a tree's largest agreement with the network, which the smallest tree that counts must reach
SEARCHES = 5  # for communities that several searches agree on


def _graph(look: Look) -> dict[str, float]:
    return _matched(look, look.cells)


def _other_remainders(look: Look) -> dict[str, float]:
    """Within true classes; within predicted ones; within cells of both, cut in two by the winning logit."""
    winning, above = look.logits.max(axis=1), np.zeros(len(look.logits), np.int64)
    for cell in np.unique(look.cells):
        own = look.cells == cell
        above[own] = winning[own] > np.median(winning[own])
    groups = {"true": look.labels, "predicted": look.predicted, "confidence": 2 * look.cells + above}
    return {f"remainder_{name}": _matched(look, group)["remainder"] for name, group in groups.items()}


def _matched(look: Look, groups: np.ndarray) -> dict[str, float]:
    """Of the graph of the common number of neurons; NaN where fewer fire."""
    names = "modularity", "class_part", "remainder", "communities", "well_defined", "connected_share", "lone_examples"
    if look.fired.any(axis=0).sum() < look.neurons:
        return dict.fromkeys((*names, "excess"), float("nan"))
    found = measure_matched(look.fired, groups, look.seed, look.neurons, ONE_NULL, PROTOCOL.draws)
    return {**{name: found[name] for name in names}, "excess": found["modularity"] - found["null_circular"]}


def _agreement(look: Look) -> dict[str, float]:
    active, communities = _communities(look)
    return {"class_agreement": class_agreement(look.fired[:, active], look.labels, communities)}


def _communities(look: Look) -> tuple[np.ndarray, np.ndarray]:
    """Which neurons fire at all, and their communities."""
    active = look.fired.any(axis=0)
    graph = activation_pattern_graph(look.fired[:, active], PROTOCOL.density)
    return active, agreed_communities(detect_communities(graph, seeds=SEARCHES).seed_labels)


def _binned(look: Look) -> dict[str, float]:
    whole = float(histogram_entropy(look.histogram).sum())
    return {"active_entropy": active_entropy(look.histogram), "binned_entropy": whole}


def _blocks(look: Look) -> dict[str, float]:
    return {"block_entropy": block_entropy(look.positive), "block_entropy_top": block_entropy(look.fired)}


def _firing(look: Look) -> dict[str, float]:
    return {
        "firing_entropy": float(firing_entropy(look.positive).mean()),
        "pattern_entropy": pattern_entropy(look.last > 0),
        "dead_share": dead_share(look.positive),
        **measure_strength(look.fired, look.positive),
    }


def _within_classes(look: Look) -> dict[str, float]:
    return {"class_conditional_entropy": class_conditional_entropy(look.last > 0, look.labels)}


def _together(look: Look) -> dict[str, float]:
    return {"total_correlation": total_correlation(look.fired)}


def _classes(look: Look) -> dict[str, float]:
    means = class_means(look.activations, look.labels)
    selectivity = float(class_selectivity(means).mean()) if means.min() >= 0 else float("nan")  # not of a GELU
    return {
        "mutual_information": float(mutual_information(look.fired, look.labels).mean()),
        "class_selectivity": selectivity,
    }


def _collapse(look: Look) -> dict[str, float]:
    return {"neural_collapse": neural_collapse(look.last, look.labels)}


def _probe(look: Look) -> dict[str, float]:
    return {"linear_probe": linear_probe(look.last, look.labels, FOLDS)}


def _dimension(look: Look) -> dict[str, float]:
    return {"effective_rank": effective_rank(look.last), "participation_ratio": participation_ratio(look.last)}


def _manifolds(look: Look) -> dict[str, float]:
    return {f"manifold_{name}": value for name, value in _geometry(look.last, look.labels).items()}


def _first_manifolds(look: Look) -> dict[str, float]:
    first = look.activations[:, look.layers == look.layers.min()]
    return {f"first_manifold_{name}": value for name, value in _geometry(first, look.labels).items()}


def _geometry(layer: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    examples = min(PER_CLASS, int(np.unique_counts(labels).counts.min()))
    found = manifold_geometry(layer, labels, examples=examples)
    return {name: float(getattr(found, name)) for name in ("radius", "dimension", "capacity")}


def _neurons(look: Look) -> dict[str, float]:
    return {"neuron_spread": neuron_spread(look.preactivations, look.labels)}


def _layers(look: Look) -> dict[str, float]:
    return {"layer_spread": layer_spread(look.preactivations, look.labels, look.layers)}


def _norms(look: Look) -> dict[str, float]:
    if look.weights:
        spectral, paths = spectral_norms(look.weights), path_norm(look.weights, look.biases)
    else:
        from nbutils.runs.norms import module_path_norm, module_spectral_norms

        spectral, paths = module_spectral_norms(look.network), module_path_norm(look.network, look.inputs.shape[1])
    stretch = float(np.log(spectral).sum())
    return {
        "path_norm": float(np.log(paths)),
        "spectral_norm": stretch,
        "normalised_margin": float(look.run["margin"] / np.exp(stretch)),
        "distance": float(np.log(max(look.run["distance"], TINY))),
        "parameter_norm": float(np.log(look.run["parameter_norm"])),
    }


def _regions(look: Look) -> dict[str, float]:
    if not look.weights:  # activation regions are followed through fully connected layers only
        return {"linear_regions": float("nan")}
    found = linear_regions(look.weights, look.biases, look.inputs, look.seed, LINES)
    return {"linear_regions": float(found.mean())}


def _training(look: Look) -> dict[str, float]:
    return {
        "train_loss": float(np.log(max(look.run["train_loss"], TINY))),
        "train_accuracy": float(look.run["train_accuracy"]),
        "sharpness": float(look.run["sharpness"]),
        "epoch": float(look.run["epoch"]),
        "examples": float(np.log(look.run["examples"])),
    }


def _sharpness(look: Look) -> dict[str, float]:
    import torch

    from nbutils.runs.training import one_thread, worst_sharpness

    inputs, labels = map(torch.from_numpy, look.trained_on)
    with one_thread():
        return {"worst_sharpness": worst_sharpness(look.network, inputs, labels)}


def _masks(look: Look) -> dict[str, float]:
    """Trained on what the network itself predicts, so that they cannot learn from labels what it had not."""
    found = class_masks(look.weights, look.biases, look.inputs, look.predicted, MASK_STEPS, seed=look.seed)
    active, communities = _communities(look)
    pairs = ~np.eye(len(found.classes), dtype=bool)
    return {
        "mask_overlap": float(found.overlap[pairs].mean()),
        "mask_needs": float((found.partition >= 0).mean()),
        "mask_agreement": float(compare_partitions(communities, found.partition[active])["agreement"]),
    }


def _trees(look: Look) -> dict[str, float]:
    """Grown on one half of the probe, tried on the other."""
    grown, tried = probe_halves(look.labels)
    soft = soft_tree(look.inputs[grown], look.logits[grown], look.inputs[tried], look.logits[tried], seed=look.seed)
    hard = prediction_tree(
        look.inputs[grown], look.predicted[grown], look.inputs[tried], look.predicted[tried], seed=look.seed
    )
    enough = hard.path_fidelity >= NEARLY * hard.path_fidelity.max()
    return {
        "soft_tree_fidelity": soft.fidelity,
        "soft_tree_leaves": soft.leaves,
        "tree_fidelity": float(hard.path_fidelity.max()),
        "tree_leaves": float(np.log(hard.path_leaves[enough].min())),
    }


def _confidence(look: Look) -> dict[str, float]:
    """Mean of the largest softmax probability."""
    below = look.logits.astype(np.float64) - look.logits.max(axis=1, keepdims=True)
    return {"confidence": float((1 / np.exp(below).sum(axis=1)).mean())}


def _accuracy(look: Look) -> dict[str, float]:
    return {"probe_accuracy": float((look.predicted == look.labels).mean())}


CANDIDATES: tuple[Candidate, ...] = (
    Candidate(
        _graph,
        "communities",
        "labels",
        {
            "modularity": "modularity Q",
            "excess": "Q beyond chance",
            "class_part": "class-preference part of Q",
            "remainder": "remainder of Q beyond class preference",
            "communities": "communities",
            "well_defined": "well-defined communities",
            "connected_share": "share of neurons with an edge",
            "lone_examples": "images alone in their cell of true x predicted class",
        },
    ),
    Candidate(
        _other_remainders,
        "communities",
        "labels",
        {
            "remainder_true": "remainder within true classes",
            "remainder_predicted": "remainder within predicted classes",
            "remainder_confidence": "remainder within halves of cells by the winning logit",
        },
    ),
    Candidate(_agreement, "communities", "labels", {"class_agreement": "communities beside preferred classes (AMI)"}),
    Candidate(
        _binned,
        "entropy",
        "images",
        {"active_entropy": "binned entropy per active neuron", "binned_entropy": "binned entropy, sum over neurons"},
    ),
    Candidate(
        _blocks,
        "entropy",
        "images",
        {"block_entropy": "entropy of blocks of six", "block_entropy_top": "entropy of blocks of six, strongest tenth"},
    ),
    Candidate(
        _firing,
        "firing",
        "images",
        {
            "firing_entropy": "firing entropy per neuron",
            "pattern_entropy": "pattern entropy, last layer",
            "dead_share": "dead neurons",
            "mean_activity": "mean activity",
            "mean_cofiring": "mean co-firing",
        },
    ),
    Candidate(
        _within_classes, "entropy", "labels", {"class_conditional_entropy": "class-conditional entropy, last layer"}
    ),
    Candidate(_together, "entropy", "images", {"total_correlation": "total correlation"}),
    Candidate(
        _classes,
        "firing",
        "labels",
        {"mutual_information": "mutual information with the class", "class_selectivity": "class selectivity"},
    ),
    Candidate(_collapse, "representation", "labels", {"neural_collapse": "neural collapse (NC1)"}),
    Candidate(_probe, "representation", "labels", {"linear_probe": "linear probe, last layer"}),
    Candidate(
        _dimension,
        "representation",
        "images",
        {"effective_rank": "effective rank, last layer", "participation_ratio": "participation ratio, last layer"},
    ),
    Candidate(
        _manifolds,
        "representation",
        "labels",
        {
            "manifold_radius": "radius of class manifolds, last layer",
            "manifold_dimension": "dimension of class manifolds, last layer",
            "manifold_capacity": "capacity of class manifolds, last layer",
        },
    ),
    Candidate(
        _first_manifolds,
        "representation",
        "labels",
        {
            "first_manifold_radius": "radius of class manifolds, first layer",
            "first_manifold_dimension": "dimension of class manifolds, first layer",
            "first_manifold_capacity": "capacity of class manifolds, first layer",
        },
        costly=True,
    ),
    Candidate(_neurons, "representation", "labels", {"neuron_spread": "clusters inside classes, by neuron"}),
    Candidate(_layers, "representation", "labels", {"layer_spread": "clusters inside classes, by layer"}),
    Candidate(
        _norms,
        "weights",
        "training",
        {
            "path_norm": "path norm (log)",
            "spectral_norm": "product of spectral norms (log)",
            "normalised_margin": "normalised margin",
            "distance": "distance from initialisation (log)",
            "parameter_norm": "norm of all parameters (log)",
        },
    ),
    Candidate(_regions, "weights", "images", {"linear_regions": "linear regions between images"}),
    Candidate(
        _training,
        "training",
        "training",
        {
            "train_loss": "training loss (log)",
            "train_accuracy": "training accuracy",
            "sharpness": "sharpness, random",
            "epoch": "epochs trained",
            "examples": "training images (log)",
        },
    ),
    Candidate(_sharpness, "training", "training", {"worst_sharpness": "sharpness, worst case"}),
    Candidate(
        _masks,
        "weights",
        "images",
        {
            "mask_overlap": "overlap of the classes' weight masks",
            "mask_needs": "neurons with weights that one class alone needs",
            "mask_agreement": "communities beside the classes that need a neuron (AMI)",
        },
        costly=True,
    ),
    Candidate(
        _trees,
        "outputs",
        "images",
        {
            "soft_tree_fidelity": "agreement with a distilled soft tree",
            "soft_tree_leaves": "leaves in use of a distilled soft tree",
            "tree_fidelity": "agreement with a tree of the predictions",
            "tree_leaves": "leaves of a tree of the predictions (log)",
        },
        costly=True,
    ),
    Candidate(_confidence, "outputs", "images", {"confidence": "mean confidence on the probe"}),
    Candidate(_accuracy, "outputs", "labels", {"probe_accuracy": "accuracy on the probe"}),
)
