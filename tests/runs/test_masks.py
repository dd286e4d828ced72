"""Weight masks: networks made of known modules, and masks that one can count by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from nbutils.runs.masks import ClassMasks, class_masks, mask_overlap, neuron_needs
from nbutils.tracking import compare_partitions

QUICK = {"steps": 150, "batch_size": 16, "strength": 1e-3}


@pytest.fixture(scope="module")
def modules() -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray, np.ndarray]:
    """Four classes, each with two inputs, two neurons in either hidden layer and an output of its own.

    A fifth output, of no class, is what the network says when all neurons are silent.
    """
    rng, block = np.random.default_rng(0), np.kron(np.eye(4), np.ones((2, 2)))
    weights = [block, block / 2, np.kron(np.eye(5, 4), np.ones((1, 2)))]
    labels = rng.permutation(np.repeat(np.arange(4), 30))
    inputs = np.kron(np.eye(4), np.ones((1, 2)))[labels] * rng.uniform(0.5, 1, (120, 8))
    return weights, [np.zeros(8), np.zeros(8), np.array([0, 0, 0, 0, 0.01])], inputs, labels


@pytest.fixture(scope="module")
def found(modules) -> ClassMasks:
    return class_masks(*modules, **QUICK)


def outputs(weights, biases, inputs, masks) -> np.ndarray:
    values = inputs
    for number, (weight, bias, mask) in enumerate(zip(weights, biases, masks, strict=True), 1):
        values = values @ (weight * mask).T + bias
        values = np.maximum(values, 0) if number < len(weights) else values
    return values


def test_modules_are_found(found):
    """Neurons are grouped by the class whose module they are, which communities would be compared with."""
    planted = np.tile(np.repeat(np.arange(4), 2), 2)
    placed = found.partition >= 0
    assert placed.sum() >= 12
    assert (found.partition[placed] == planted[placed]).all()
    assert compare_partitions(found.partition, planted)["agreement"] == pytest.approx(1)


def test_a_class_left_out_is_forgotten_and_others_are_not(found):
    assert (found.reference_accuracy == 1).all()
    own = np.eye(4, dtype=bool)
    assert (found.accuracy[~own] == 1).all()
    assert (found.accuracy[own] < 0.1).all()


def test_accuracies_are_those_of_the_masked_network(modules, found):
    weights, biases, inputs, labels = modules
    for row in range(5):
        masks = found.reference if row == 0 else [one[row - 1] for one in found.masks]
        right = outputs(weights, biases, inputs, masks).argmax(axis=1) == labels
        expected = found.reference_accuracy if row == 0 else found.accuracy[row - 1]
        assert [right[labels == k].mean() for k in range(4)] == pytest.approx(expected)


def test_weights_without_use_are_removed(modules, found):
    """Between modules weights are 0, and what they are multiplied with changes nothing."""
    weights = modules[0]
    for weight, reference, masks in zip(weights, found.reference, found.masks, strict=True):
        assert not reference[weight == 0].any()
        assert not masks[:, weight == 0].any()
        assert reference[weight > 0].mean() > 0.5


def test_the_output_layer_is_the_references(found):
    assert (found.masks[-1] == found.reference[-1]).all()
    assert [one.shape for one in found.masks] == [(4, 8, 8), (4, 8, 8), (4, 5, 8)]


def test_shares_and_overlaps_belong_to_the_masks(found):
    assert (found.overlap == mask_overlap(found.masks[:-1])).all()
    assert (found.needed == neuron_needs(found.reference, found.masks)).all()
    assert (found.overlap == found.overlap.T).all()
    assert (found.overlap.diagonal() == 1).all()
    assert ((found.partition < 0) == (found.needed == 0).all(axis=0)).all()


def test_a_seed_decides_all_whatever_the_number_of_threads(modules):
    before = torch.get_num_threads()
    try:
        one, two = [], []
        for threads, several in ((1, one), (2, two)):
            torch.set_num_threads(threads)
            several.append(class_masks(*modules, **QUICK, seed=3))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for first, second in zip((one[0].reference, one[0].masks), (two[0].reference, two[0].masks), strict=True):
        assert all((a == b).all() for a, b in zip(first, second, strict=True))
    other = class_masks(*modules, **QUICK | {"strength": 0.0}, seed=4)
    assert any((a != b).any() for a, b in zip(other.reference, one[0].reference, strict=True))


def test_nobody_elses_luck_is_touched(modules):
    torch.manual_seed(1)
    before = torch.rand(3)
    torch.manual_seed(1)
    class_masks(*modules, steps=1)
    assert (torch.rand(3) == before).all()


def test_a_stronger_pull_keeps_fewer_weights(modules):
    kept = [
        sum(one.sum() for one in class_masks(*modules, **QUICK | {"strength": strength}).reference)
        for strength in (1e-5, 1e-3, 10.0)
    ]
    assert kept[0] >= kept[1] > kept[2] == 0


def test_a_mask_is_drawn_with_the_probability_of_its_logit():
    """Kept when logit + logistic noise is above 0, as when the first of two Gumbel variables wins."""
    from nbutils.runs.masks import _Masked

    masked = _Masked([], [], torch.Generator().manual_seed(0))
    for logit in (-2.0, 0.0, 1.5):
        logits = torch.full((200_000,), logit, requires_grad=True)
        drawn = masked._drawn(logits)
        assert set(drawn.unique().tolist()) <= {0.0, 1.0}
        assert drawn.mean().item() == pytest.approx(1 / (1 + np.exp(-logit)), abs=0.005)
        gumbel = np.random.default_rng(0).gumbel(size=(2, 200_000))
        assert drawn.mean().item() == pytest.approx((logit + gumbel[0] > gumbel[1]).mean(), abs=0.005)
        drawn.sum().backward()
        noisy = 1 / (1 + np.exp(-(logit + gumbel[0] - gumbel[1])))
        assert logits.grad.mean().item() == pytest.approx((noisy * (1 - noisy)).mean(), abs=0.002)


def test_overlap_by_hand():
    masks = [np.array([[[1, 1], [0, 0]], [[1, 0], [1, 1]], [[0, 0], [0, 0]]], bool), np.ones((3, 1, 1), bool)]
    assert mask_overlap(masks) == pytest.approx(np.array([[1, 2 / 5, 1 / 3], [2 / 5, 1, 1 / 4], [1 / 3, 1 / 4, 1]]))
    assert (mask_overlap([np.zeros((2, 2, 2), bool)]) == 1).all()


def test_needs_by_hand():
    """Two hidden layers of two; the first neuron loses one of two weights in and one of two out."""
    first, second, last = (np.ones((2, 2), bool) for _ in range(3))
    masks = [np.array([[[0, 1], [1, 1]]], bool), np.array([[[0, 1], [1, 1]]], bool), np.zeros((1, 2, 2), bool)]
    assert neuron_needs([first, second, last], masks).tolist() == [[2 / 4, 0, 1 / 2, 0]]
    nothing = np.zeros((2, 2), bool)
    assert neuron_needs([nothing, nothing], [nothing[None], nothing[None]]).tolist() == [[0, 0]]


def test_tensors_of_a_network_are_welcome(modules):
    weights, biases, inputs, labels = modules
    layers = [nn.Linear(*weight.shape[::-1]) for weight in weights]
    for layer, weight, bias in zip(layers, weights, biases, strict=True):
        layer.weight.data, layer.bias.data = torch.from_numpy(weight).float(), torch.from_numpy(bias).float()
    own = [one.weight for one in layers], [one.bias for one in layers]
    same = class_masks(*own, torch.from_numpy(inputs), torch.from_numpy(labels), **QUICK)
    assert (same.partition == class_masks(*modules, **QUICK).partition).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"weights": [np.ones((4, 8))], "biases": [np.zeros(4)]}, "weights must have at least one hidden layer"),
        ({"biases": [np.zeros(8)] * 3}, r"biases must hold vectors of \[8, 8, 5\] numbers"),
        ({"inputs": np.ones((120, 7))}, r"inputs must have shape \(examples, 8\)"),
        ({"inputs": np.full((120, 8), 1e20)}, "weights, biases and inputs must give outputs within 1e"),
        ({"labels": np.zeros(120)}, "labels must hold at least two classes"),
        ({"labels": np.arange(120) % 6}, "labels must be from 0 to 4, an output each, received 0 to 5"),
        ({"steps": 0}, "steps must be a whole number from 1"),
        ({"batch_size": 0}, "batch_size must be a whole number from 1"),
        ({"strength": -1.0}, "strength must be a finite number of at least 0, received -1"),
        ({"seed": -1}, "seed must be a whole number from 0"),
    ],
)
def test_what_cannot_be_answered_is_refused(modules, change, sentence):
    good = dict(zip(("weights", "biases", "inputs", "labels"), modules, strict=True))
    with pytest.raises(ValueError, match=sentence):
        class_masks(**good | change)
