"""Pruning: exactly so many weights, scores that can be computed by hand, and zeros that stay zeros."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from nbutils.data.datasets import load_dataset
from nbutils.runs import pruning as module
from nbutils.runs.models import build_model
from nbutils.runs.pruning import PRUNINGS, Pruning, pruned, retrained, surviving_shares, weight_scores
from nbutils.runs.training import TrainingSettings

DATA = load_dataset("digits")


@pytest.fixture
def network():
    torch.manual_seed(0)
    return build_model("mlp:24-16", (8, 8), 10).eval()


def scores_of(rule, network, seed=0):
    return weight_scores(rule, network, DATA.train_inputs, DATA.train_labels, seed)


def weights_of(network):
    return [part for part in network.parameters() if part.ndim > 1]


@pytest.mark.parametrize("rule", PRUNINGS)
def test_exactly_so_many_weights_are_pruned_and_no_bias(rule, network):
    before = {name: values.clone() for name, values in network.state_dict().items()}
    scores = scores_of(rule, network)
    total = sum(part.numel() for part in weights_of(network))
    for sparsity in (0.0, 1 / total, 0.5, 0.8, 0.9, 0.95, 0.98, 0.98123):
        cut = pruned(network, scores, sparsity)
        assert sum(int((part == 0).sum()) for part in weights_of(cut)) == round(sparsity * total)
        assert list(cut.state_dict()) == list(before)  # no parameter has moved or changed its name
        for name, values in cut.state_dict().items():
            kept = torch.equal(values[values != 0], before[name][values != 0])
            assert kept if name.endswith("weight") else torch.equal(values, before[name])
    assert all(torch.equal(values, before[name]) for name, values in network.state_dict().items())


@pytest.mark.parametrize("rule", PRUNINGS)
def test_what_is_pruned_has_the_smallest_scores(rule, network):
    scores = scores_of(rule, network)
    cut = pruned(network, scores, 0.9)
    gone = torch.cat([score[part == 0] for score, part in zip(scores, weights_of(cut), strict=True)])
    left = torch.cat([score[part != 0] for score, part in zip(scores, weights_of(cut), strict=True)])
    assert gone.max() <= left.min()
    fewer = pruned(network, scores, 0.5)
    for more, less in zip(weights_of(cut), weights_of(fewer), strict=True):
        assert not ((more != 0) & (less == 0)).any()  # what is left at 90 % was left at 50 %


def test_layer_adaptive_scores_by_hand():
    layer = nn.Linear(2, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, -2.0], [3.0, 0.0]]))
    scores = weight_scores("layer-adaptive", layer, np.ones((1, 2), "f4"), np.zeros(1, int))[0]
    # Squares 0, 1, 4, 9; each over itself and all larger: 0/14, 1/14, 4/13, 9/9.
    assert np.allclose(scores.numpy(), [[1 / 14, 4 / 13], [1.0, 0.0]])


def test_layer_adaptive_pruning_empties_no_layer():
    small = nn.Sequential(nn.Linear(40, 20), nn.ReLU(), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 2))
    with torch.no_grad():
        small[2].weight.mul_(1e-4)
    images, labels = np.random.default_rng(0).random((30, 40), "f4"), np.arange(30) % 2
    left = {}
    for rule in ("magnitude", "layer-adaptive"):
        cut = pruned(small, weight_scores(rule, small, images, labels), 0.9)
        left[rule] = [int((part != 0).sum()) for part in weights_of(cut)]
    assert left["magnitude"][1] == 0
    assert min(left["layer-adaptive"]) > 0


def test_a_layer_of_zeros_has_scores_of_zero(network):
    with torch.no_grad():
        network[1].linear.weight.zero_()
    assert not scores_of("layer-adaptive", network)[1].any()


def test_gradient_flow_is_the_change_of_the_norm_of_all_slopes(network):
    """Against central differences of half the squared norm in double precision."""
    network, rng = network.double(), np.random.default_rng(0)
    images, labels = DATA.train_inputs[:50].astype(float), DATA.train_labels[:50]
    scores = weight_scores("gradient flow", network, images, labels)

    def half_norm():
        loss = nn.functional.cross_entropy(network(torch.from_numpy(images)), torch.from_numpy(labels))
        return float(sum(part.square().sum() for part in torch.autograd.grad(loss, list(network.parameters()))) / 2)

    for weight, score in zip(weights_of(network), scores, strict=True):
        for _ in range(4):
            row, column = (int(rng.integers(size)) for size in weight.shape)
            at, step, found = weight[row, column].item(), 1e-6, []
            for shift in (step, -step):
                with torch.no_grad():
                    weight[row, column] = at + shift
                found.append(half_norm())
                with torch.no_grad():
                    weight[row, column] = at
            slope = (found[0] - found[1]) / (2 * step)
            assert score[row, column].item() == pytest.approx(abs(at * slope), rel=1e-4, abs=1e-9)


def test_lots_are_drawn_by_seed_alone(network):
    one, same, other = (scores_of("random", network, seed)[0] for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


SETTINGS = TrainingSettings(epochs=2, batch_size=64)


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        replace(SETTINGS, weight_decay=0.1),
        replace(SETTINGS, optimiser="sam:0.05", learning_rate=0.05, clipping="norm:1", l1=1e-4, l2=1e-3),
    ],
)
def test_what_is_pruned_stays_0_through_retraining(settings, network):
    cut = pruned(network, scores_of("magnitude", network), 0.9)
    before = {name: values.clone() for name, values in cut.state_dict().items()}
    more = retrained(cut, DATA, settings, seed=3)
    for name, values in more.state_dict().items():
        assert bool(((values == 0) == (before[name] == 0)).all())
        assert not torch.equal(values, before[name])
        assert torch.equal(cut.state_dict()[name], before[name])
    assert list(more.state_dict()) == list(before)
    assert not more.training
    assert type(more[0].linear) is nn.Linear
    again = retrained(cut, DATA, settings, seed=3)
    assert all(torch.equal(values, again.state_dict()[name]) for name, values in more.state_dict().items())


def test_retraining_helps(network):
    def accuracy(model):
        with torch.no_grad():
            return float((model(torch.from_numpy(DATA.test_inputs)).numpy().argmax(1) == DATA.test_labels).mean())

    cut = pruned(network, scores_of("magnitude", network), 0.5)
    assert accuracy(retrained(cut, DATA, replace(SETTINGS, epochs=5), 0)) > accuracy(cut) + 0.3


def test_retraining_without_zeros_is_training(network):
    """The mask of a whole network changes nothing: plain Adam on the same batches."""
    from copy import deepcopy

    from nbutils.runs.training import train

    plain, masked = deepcopy(network), retrained(network, DATA, SETTINGS, seed=5)
    list(train([plain], [DATA], SETTINGS, [5]))
    for one, other in zip(plain.parameters(), masked.parameters(), strict=True):
        assert torch.allclose(one, other, atol=2e-5)


def test_shares_of_weights_that_survive(network):
    assert surviving_shares(network).tolist() == [1.0] * 40
    cut = pruned(network, scores_of("random", network), 0.7)
    masks = [(part != 0).numpy() for part in weights_of(cut)]
    by_hand = [
        (sum(into[unit]) + sum(out[:, unit])) / (into.shape[1] + out.shape[0])
        for into, out in pairwise(masks)
        for unit in range(len(into))
    ]
    assert surviving_shares(cut).tolist() == pytest.approx(by_hand)


def test_a_rule_is_a_function_and_a_line(network, monkeypatch):
    """The one that the docstring of `weight_scores` shows."""

    def slope(seen):
        loss = nn.functional.cross_entropy(seen.network(seen.inputs), seen.labels)
        slopes = torch.autograd.grad(loss, seen.weights)
        return [(weight * one).detach().abs() for weight, one in zip(seen.weights, slopes, strict=True)]

    new = Pruning("slope", "|w g|", "Weights are kept without which the loss would change most.", slope)
    monkeypatch.setattr(module, "PRUNINGS", {**PRUNINGS, "slope": new})
    cut = pruned(network, scores_of("slope", network), 0.8)
    total = sum(part.numel() for part in weights_of(cut))
    assert sum(int((part == 0).sum()) for part in weights_of(cut)) == round(0.8 * total)


def test_each_rule_says_what_it_does():
    for one in PRUNINGS.values():
        assert one.title
        assert one.formula
        assert one.about.endswith(".")


def test_wrong_input_is_refused(network):
    scores = scores_of("magnitude", network)
    with pytest.raises(ValueError, match=r"rule must be one of magnitude, layer-adaptive, .* received 'size'"):
        scores_of("size", network)
    with pytest.raises(ValueError, match="network must have a linear layer or a convolution, received none"):
        scores_of("magnitude", nn.ReLU())
    for sparsity in (1.0, -0.1, float("nan"), "half"):
        with pytest.raises(ValueError, match="sparsity must be from 0 to below 1, received"):
            pruned(network, scores, sparsity)
    with pytest.raises(ValueError, match="scores must have the shapes of the weights"):
        pruned(network, scores[:2], 0.5)
    with pytest.raises(ValueError, match="network must have linear layers that follow one another, received"):
        surviving_shares(nn.Linear(3, 2))
    with torch.no_grad():
        network[0].linear.weight.fill_(float("inf"))
    with pytest.raises(ValueError, match="scores of rule 'gradient flow' must be finite numbers"):
        scores_of("gradient flow", network)
