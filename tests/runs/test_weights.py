"""Norms, normalised margins and linear regions: truths by hand, and slower ways to the same numbers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from nbutils.runs.weights import (
    linear_regions,
    margins,
    normalised_margins,
    path_norm,
    regions_between,
    spectral_norms,
)


def network(rng: np.random.Generator, *widths: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    shapes = list(zip(widths[1:], widths[:-1], strict=True))
    return [rng.standard_normal(s) / np.sqrt(s[1]) for s in shapes], [0.3 * rng.standard_normal(s[0]) for s in shapes]


def as_module(weights: list[np.ndarray], biases: list[np.ndarray]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for weight, bias in zip(weights, biases, strict=True):
        linear = nn.Linear(*weight.shape[::-1]).double()
        linear.weight.data, linear.bias.data = torch.from_numpy(weight), torch.from_numpy(bias)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def sampled_regions(weights, biases, start, end, points) -> int:
    """Patterns of activity along the line, looked at point by point."""
    values, patterns = start + np.linspace(0, 1, points)[:, None] * (end - start), []
    for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
        values = np.maximum(values @ weight.T + bias, 0)
        patterns.append(values > 0)
    pattern = np.hstack(patterns)
    return 1 + int((pattern[1:] != pattern[:-1]).any(axis=1).sum())


def test_spectral_norms_stretch_as_much_as_power_iteration_finds(rng):
    weights, _ = network(rng, 7, 5, 3)
    for weight, found in zip(weights, spectral_norms(weights), strict=True):
        vector = np.ones(weight.shape[1])
        for _ in range(2000):
            vector = weight.T @ weight @ vector
            vector /= np.linalg.norm(vector)
        assert found == pytest.approx(np.linalg.norm(weight @ vector))


def test_orthogonal_layers_stretch_nothing(rng):
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    assert spectral_norms([turn, -3 * turn]) == pytest.approx([1, 3])


def test_path_norm_is_the_sum_over_all_paths(rng):
    weights, biases = network(rng, 3, 4, 2, 2)
    total = 0.0
    for way in product(range(3), range(4), range(2), range(2)):
        total += np.prod([weights[k][way[k + 1], way[k]] ** 2 for k in range(3)])
    assert path_norm(weights) == pytest.approx(np.sqrt(total))
    for first in range(3):  # paths that begin at a neuron of this layer, with its bias
        for way in product(*(range(len(b)) for b in biases[first:])):
            steps = [weights[k][way[k - first], way[k - first - 1]] ** 2 for k in range(first + 1, 3)]
            total += biases[first][way[0]] ** 2 * np.prod(steps)
    assert path_norm(weights, biases) == pytest.approx(np.sqrt(total))


def test_path_norm_and_function_stay_when_a_neuron_is_rescaled_and_spectral_norms_do_not(rng):
    weights, biases = network(rng, 3, 4, 2)
    inputs, changed = torch.from_numpy(rng.standard_normal((9, 3))), [one.copy() for one in weights]
    shifted = [one.copy() for one in biases]
    changed[0][1] *= 8
    shifted[0][1] *= 8
    changed[1][:, 1] /= 8
    assert torch.allclose(as_module(weights, biases)(inputs), as_module(changed, shifted)(inputs))
    assert path_norm(changed, shifted) == pytest.approx(path_norm(weights, biases))
    assert spectral_norms(changed).prod() != pytest.approx(spectral_norms(weights).prod(), rel=0.1)


def test_margins_grow_with_the_weights_and_normalised_ones_do_not(rng):
    weights, _ = network(rng, 5, 6, 3)
    inputs, labels = rng.standard_normal((20, 5)), rng.integers(0, 3, 20)

    def logits(scale):
        return np.maximum(inputs @ (scale * weights[0]).T, 0) @ (scale * weights[1]).T

    plain, doubled = ([scale * one for one in weights] for scale in (1, 2))
    assert margins(logits(2), labels) == pytest.approx(4 * margins(logits(1), labels))
    found = normalised_margins(logits(1), labels, plain)
    assert normalised_margins(logits(2), labels, doubled) == pytest.approx(found)
    others = np.where(np.eye(3, dtype=bool)[labels], -np.inf, logits(1)).max(axis=1)
    by_hand = (logits(1)[np.arange(20), labels] - others) / np.prod([np.linalg.svd(w)[1][0] for w in plain])
    assert found == pytest.approx(by_hand)


@pytest.mark.parametrize("depth", [1, 2, 5, 10])
def test_a_sawtooth_has_two_to_the_depth_pieces(depth):
    """Each pair of neurons folds the line: 2 relu(x) - 4 relu(x - 1/2) (Telgarsky 2015, arXiv:1509.08101)."""
    fold, shift = np.array([[2.0, -4.0]]), np.array([0.0, -0.5])
    first, again = np.ones((2, 1)), np.ones((2, 1)) @ fold
    weights, biases = [first, *[again] * (depth - 1), fold], [*[shift] * depth, np.zeros(1)]
    assert regions_between(weights, biases, [0.0], [1.0]) == 2**depth
    assert regions_between(weights, biases, [0.0], [0.5]) == 2 ** (depth - 1)


def test_one_layer_has_one_region_more_than_neurons_that_switch(rng):
    weights, biases = network(rng, 4, 30, 2)
    start, end = rng.standard_normal((2, 4)) * 3
    switched = ((weights[0] @ start + biases[0] > 0) != (weights[0] @ end + biases[0] > 0)).sum()
    assert switched >= 5
    assert regions_between(weights, biases, start, end) == 1 + switched


@pytest.mark.parametrize("widths", [(2, 6, 3), (3, 8, 8, 2), (5, 10, 10, 10, 4)])
def test_as_many_as_a_fine_comb_finds(rng, widths):
    weights, biases = network(rng, *widths)
    found = []
    for _ in range(10):
        start, end = rng.standard_normal((2, widths[0])) * 2
        exact = regions_between(weights, biases, start, end)
        coarse, fine = (sampled_regions(weights, biases, start, end, n) for n in (20, 400_001))
        assert coarse <= fine == exact == regions_between(weights, biases, end, start)
        found.append(exact)
    assert max(found) > 5


def test_the_network_is_linear_on_every_piece_and_on_nothing_longer(rng):
    """Cut at its kinks, found by bisection of second differences, the line has as many pieces."""
    weights, biases = network(rng, 2, 5, 5, 1)
    start, end = np.array([-3.0, 1.0]), np.array([2.0, -2.0])
    at = torch.from_numpy(start + np.linspace(0, 1, 200_001)[:, None] * (end - start))
    values = as_module(weights, biases)(at).detach().numpy()[:, 0]
    bent = np.abs(np.diff(values, 2)) > 1e-10
    kinks = int((bent[1:] & ~bent[:-1]).sum() + bent[0])  # a kink between two points bends two second differences
    assert regions_between(weights, biases, start, end) >= 1 + kinks > 3, "dead neurons behind may hide a kink"


def test_parts_of_a_line_add_up(rng):
    weights, biases = network(rng, 6, 12, 12, 3)
    start, end = rng.standard_normal((2, 6)) * 2
    middle = start + 0.37 * (end - start)
    halves = regions_between(weights, biases, start, middle) + regions_between(weights, biases, middle, end)
    assert halves == regions_between(weights, biases, start, end) + 1


def test_a_line_without_length_and_a_linear_network_have_one_region(rng):
    weights, biases = network(rng, 3, 8, 2)
    point = rng.standard_normal(3)
    assert regions_between(weights, biases, point, point) == 1
    assert regions_between(weights[:1], biases[:1], point, -point) == 1
    dead = [np.full(8, -100.0), biases[1]]
    assert regions_between(weights, dead, point, -point) == 1


def test_random_lines_are_lines_between_examples(rng):
    weights, biases = network(rng, 4, 9, 9, 2)
    inputs = rng.standard_normal((3, 4)) * 2
    possible = {
        regions_between(weights, biases, a, b) for a, b in ((inputs[i], inputs[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    }
    found = linear_regions(weights, biases, inputs, rng=1, lines=60)
    assert found.shape == (60,)
    assert set(found.tolist()) == possible
    assert (linear_regions(weights, biases, inputs, rng=1, lines=60) == found).all()


def test_tensors_are_welcome(rng):
    weights, biases = network(rng, 3, 4, 2)
    module = as_module(weights, biases)
    own = [one.weight for one in module[::2]], [one.bias for one in module[::2]]
    assert path_norm(*own) == pytest.approx(path_norm(weights, biases))
    assert regions_between(*own, np.zeros(3), np.ones(3)) == regions_between(weights, biases, np.zeros(3), np.ones(3))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: spectral_norms([]), "weights must be a list with one array per layer"),
        (lambda: spectral_norms([np.ones((2, 3)), np.ones((2, 3))]), "weights must fit together, received 2 outputs"),
        (lambda: path_norm([np.ones((2, 3))], [np.ones(3)]), r"biases must hold vectors of \[2\] numbers"),
        (lambda: path_norm([np.full((2, 2), 1e99)] * 5), "weights must have a path norm within"),
        (lambda: normalised_margins(np.ones((2, 3)), [0, 1], [np.ones((2, 3))]), "logits must have one column per"),
        (lambda: normalised_margins(np.ones((2, 3)), [0, 3], [np.ones((3, 3))]), "labels must be from 0 to 2"),
        (lambda: normalised_margins(np.ones((2, 2)), [0, 1], [np.zeros((2, 2))]), "weights must have a product"),
        (
            lambda: regions_between([np.ones((1, 1))] * 2, [[0.0]] * 2, [0.0, 1.0], [1.0]),
            r"start must have shape \(1,\)",
        ),
        (lambda: linear_regions([np.ones((1, 1))] * 2, [[0.0]] * 2, [[0.0]], 0), "inputs must have shape"),
        (lambda: regions_between([np.full((1, 1), 1e99)] * 6, [[1.0]] * 6, [0.0], [1e99]), "finite pre-activations"),
    ],
)
def test_what_cannot_be_answered_is_refused(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
