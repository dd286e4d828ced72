"""Measures that can be pushed: equal to the measures themselves where firing is hard, with slopes that are right."""

import networkx as nx
import numpy as np
import pytest
import torch

from nbutils.activations import class_means, firing
from nbutils.entropy import class_selectivity, pattern_entropy
from nbutils.graphs import activation_pattern_graph
from nbutils.runs.looks import look_at
from nbutils.runs.penalties import (
    PENALTIES,
    block_firing_entropy,
    cofiring_weights,
    firing_modularity,
    selectivity_of,
    soft_firing,
    soft_modularity,
)
from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec
from nbutils.second.candidates import CANDIDATES

RNG = np.random.default_rng(0)


SHARES = torch.from_numpy(RNG.dirichlet(np.ones(3), size=9))  # of nine neurons in three communities


def activations(examples=40, neurons=9):
    return torch.from_numpy(RNG.normal(size=(examples, neurons)))


def test_modularity_of_a_hard_partition_is_that_of_networkx():
    weights = cofiring_weights(soft_firing(activations()))
    labels = torch.from_numpy(RNG.integers(3, size=9))
    graph = nx.from_numpy_array(weights.numpy())
    groups = [set(np.flatnonzero(labels.numpy() == one)) for one in range(3)]
    ours = soft_modularity(weights, torch.nn.functional.one_hot(labels, 3).double())
    assert float(ours) == pytest.approx(nx.community.modularity(graph, groups), abs=1e-6)


def test_weights_are_the_positive_part_of_the_covariance():
    firing = soft_firing(activations())
    covariance = np.cov(firing.numpy().T, bias=True)
    np.fill_diagonal(covariance, 0)
    assert np.allclose(cofiring_weights(firing).numpy(), np.maximum(covariance, 0))


def test_modularity_of_firing_is_that_of_its_weights():
    firing = soft_firing(activations()).requires_grad_()
    slow, fast = soft_modularity(cofiring_weights(firing), SHARES), firing_modularity(firing, SHARES)
    assert fast.item() == pytest.approx(slow.item())
    slopes = [torch.autograd.grad(one, firing)[0] for one in (slow, fast)]
    assert torch.allclose(*slopes, atol=1e-12)
    assert slopes[0].abs().max() > 1e-4
    assert float(firing_modularity(torch.full((5, 9), 0.5), SHARES.float())) == 0


def test_soft_firing_cares_for_order_and_distance_not_for_size():
    values = activations()
    assert torch.allclose(soft_firing(values), soft_firing(7 * values - 3), atol=1e-9)
    assert np.array_equal((soft_firing(values.abs()) >= 0.5).numpy(), firing(values.abs().numpy()))
    assert torch.allclose((soft_firing(values) >= 0.5).double().mean(dim=0), torch.tensor(0.1).double())
    constant = torch.ones(20, 2, requires_grad=True)
    found = soft_firing(constant)
    assert torch.equal(found, torch.full((20, 2), 0.5))
    found.sum().backward()
    assert torch.isfinite(constant.grad).all()


def test_firing_that_is_soft_everywhere_has_no_entropy():
    blocks = torch.arange(6)[None]
    assert float(block_firing_entropy(torch.full((50, 6), 0.5), blocks)) == pytest.approx(0, abs=1e-5)


def test_entropy_of_hard_firing_is_that_of_patterns():
    fired = RNG.random((200, 12)) < 0.3
    blocks = torch.from_numpy(np.stack([RNG.permutation(12)[:6] for _ in range(5)]))
    theirs = np.mean([pattern_entropy(fired[:, block], None) for block in blocks.numpy()])
    assert float(block_firing_entropy(torch.from_numpy(fired).double(), blocks)) == pytest.approx(theirs)


def test_selectivity_is_that_of_the_whole_batch():
    values, labels = activations().abs(), RNG.integers(4, size=40)
    theirs = class_selectivity(class_means(values.numpy(), labels)).mean()
    assert float(selectivity_of(values, torch.from_numpy(labels))) == pytest.approx(theirs, abs=1e-8)
    assert float(selectivity_of(values, torch.zeros(40, dtype=torch.int64))) == 0


COFIRING = cofiring_weights(soft_firing(activations(40, 12)))


@pytest.mark.parametrize(
    "measure",
    [
        lambda values: soft_modularity(cofiring_weights(soft_firing(values)), torch.eye(3).double().repeat(3, 1)),
        lambda values: firing_modularity(soft_firing(values), SHARES),
        lambda values: soft_modularity(COFIRING, values.softmax(dim=1)),
        lambda values: block_firing_entropy(soft_firing(values), torch.arange(6).reshape(2, 3)),
        lambda values: selectivity_of(values.abs(), torch.arange(12) % 3),
        lambda values: PENALTIES["activity"].make(0)([values[:, :4], values[:, 4:]], torch.zeros(12)),
    ],
    ids=["modularity", "slopes of modularity", "soft partition", "entropy", "selectivity", "activity"],
)
def test_slopes_are_those_of_finite_differences(measure):
    assert torch.autograd.gradcheck(measure, activations(12).requires_grad_(), eps=1e-6, atol=1e-5)


def test_a_learned_partition_is_held_while_activations_move():
    penalty, values = PENALTIES["learned"].make(0), activations(12).requires_grad_()
    (slopes,) = torch.autograd.grad(penalty([values[:, :4], values[:, 4:]], torch.zeros(12)), values)
    held = penalty._logits.detach().softmax(dim=1)
    (away,) = torch.autograd.grad(firing_modularity(soft_firing(values), held), values)
    assert torch.allclose(slopes, away, atol=1e-12)
    assert torch.autograd.gradcheck(lambda moved: firing_modularity(soft_firing(moved), held), values, atol=1e-5)


def test_communities_are_looked_for_again():
    penalty, layers = PENALTIES["modularity"].make(0), [activations(128, 30).float()]
    for half in (slice(15), slice(15, 30)):
        layers[0][:, half] += 3 * activations(128, 1).float()
    first = float(penalty(layers, torch.zeros(128)))
    whole = activation_pattern_graph((soft_firing(layers[0]) > 0.5).numpy())
    assert whole.nnz
    assert penalty._partition.shape[0] == 30
    assert (penalty._partition.sum(dim=1) <= 1).all()
    assert penalty._partition.sum() >= 10
    before = penalty._partition
    for _ in range(50):
        penalty([activations(128, 30).float()], torch.zeros(128))
    assert penalty._partition is not before
    assert 0.05 < first <= 0.5  # among neurons with an edge


def test_a_learned_partition_climbs():
    penalty, groups = PENALTIES["learned"].make(0), torch.zeros(64, 20)
    groups[:32, :10], groups[32:, 10:] = 1, 1
    values = groups + 0.01 * torch.randn(64, 20, generator=torch.Generator().manual_seed(0))
    found = [float(penalty([values], torch.zeros(64))) for _ in range(200)]
    assert found[0] < 0.1
    assert found[-1] == pytest.approx(0.5, abs=0.05)


MOVED = {"modularity": "modularity", "learned": "modularity", "entropy": "block_entropy_top"}
MOVED |= {"selectivity": "class_selectivity", "activity": "mean"}


@pytest.mark.parametrize("name", MOVED)
def test_training_moves_what_is_pushed(name):
    strength = {"modularity": 1, "learned": 1, "entropy": 0.3, "selectivity": 0.3, "activity": 0.05}[name]
    found = {}
    for sign in (-1, 1):
        spec = RunSpec(
            model="mlp:48-32", epochs=20, batch_size=64, every_epoch=False, penalty=f"{name}:{sign * strength}"
        )
        run = run_once(spec)
        assert not run.failed
        look = look_at(run)
        takes = {column: candidate.take for candidate in CANDIDATES for column in candidate.columns}
        column = MOVED[name]
        found[sign] = float(look.activations.mean()) if column == "mean" else takes[column](look)[column]
        assert run.history["train_accuracy"].iloc[-1] > 0.5
    assert found[1] > found[-1] * 1.05
    assert found[1] > found[-1] + 0.02
