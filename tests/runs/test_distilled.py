"""Distilled trees: functions whose trees one knows, and scikit-learn's own pruning."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.tree import DecisionTreeClassifier

from nbutils.data.datasets import load_dataset
from nbutils.runs.distilled import _pruned, _settled, _Soft, prediction_tree, soft_tree


def certain(classes: np.ndarray) -> np.ndarray:
    """Logits of a network that is sure of its classes."""
    return 20 * np.eye(classes.max() + 1)[classes]


@pytest.fixture
def quarters(rng) -> tuple[np.ndarray, np.ndarray]:
    """Points of the plane, whose classes are its quarters."""
    points = rng.uniform(0.2, 1, (400, 2)) * rng.choice([-1, 1], (400, 2)) * [3, 1]
    return points, 2 * (points[:, 0] > 0) + (points[:, 1] > 0)


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images, and what a linear classifier says of them."""
    from sklearn.linear_model import LogisticRegression

    data = load_dataset("digits")
    model = LogisticRegression(max_iter=200).fit(data.train_inputs, data.train_true)
    return data.train_inputs, model.predict(data.train_inputs), data.test_inputs, model.predict(data.test_inputs)


def test_a_soft_tree_of_a_function_that_is_a_tree(quarters):
    points, classes = quarters
    found = soft_tree(points[:300], certain(classes[:300]), points[300:], certain(classes[300:]), depth=2)
    assert found.fidelity == 1
    assert sorted(found.predicted.tolist()) == [0, 1, 2, 3]
    assert found.use.sum() == pytest.approx(1)
    assert found.leaves == pytest.approx(np.exp(-(found.use * np.log(found.use)).sum()))
    assert found.leaves == pytest.approx(4, abs=0.2)
    assert found.depth == 2, "every leaf has a class of its own"


def test_a_tree_of_a_network_that_always_says_the_same_is_settled_at_its_root(quarters):
    points, _ = quarters
    same = np.tile([0.0, 9.0], (400, 1))
    found = soft_tree(points, same, points, same, depth=3, epochs=5)
    assert (found.fidelity, found.depth) == (1, 0)
    assert 1 <= found.leaves <= 8


def test_paths_are_products_of_decisions(rng):
    luck = torch.Generator().manual_seed(0)
    tree, inputs = _Soft(5, 3, 3, 2.0, luck), torch.from_numpy(rng.standard_normal((7, 5))).float()
    levels, decisions = tree._paths(inputs)
    assert [one.shape for one in levels] == [(7, 1), (7, 2), (7, 4), (7, 8)]
    filters, offsets = tree._filters.detach().numpy(), tree._offsets.detach().numpy()
    for example, leaf in ((0, 0), (3, 5), (6, 7)):
        node, chance = 0, 1.0
        for step in f"{leaf:03b}":
            right = 1 / (1 + np.exp(-2 * (inputs[example].numpy() @ filters[:, node] + offsets[node])))
            chance *= right if step == "1" else 1 - right
            node = 2 * node + 1 + int(step)
        assert levels[-1][example, leaf].item() == pytest.approx(chance, rel=1e-4)
    assert all(torch.allclose(one.sum(dim=1), torch.ones(7)) for one in levels)
    assert [one.shape[1] for one in decisions] == [1, 2, 4]


def test_the_targets_are_the_networks_probabilities():
    """A tree whose decisions cannot matter learns the mean of the outputs, not their most likely class."""
    inputs = np.zeros((200, 1))
    logits = np.tile(np.log([0.6, 0.3, 0.1]), (200, 1))
    luck = torch.Generator().manual_seed(0)
    tree = _Soft(1, 3, 1, 1.0, luck)
    tree.train(torch.from_numpy(inputs).float(), torch.softmax(torch.from_numpy(logits), 1).float(), 200, luck)
    assert torch.softmax(tree._leaves, dim=1).detach().numpy() == pytest.approx(
        np.tile([0.6, 0.3, 0.1], (2, 1)), abs=0.01
    )


def test_more_depth_says_more_of_a_network(digits):
    inputs, said, others, wanted = digits
    logits = [certain(one) for one in (said, wanted)]
    shallow, deep = (soft_tree(inputs, logits[0], others, logits[1], depth=d, epochs=20) for d in (2, 5))
    assert shallow.fidelity < deep.fidelity
    assert shallow.leaves <= 4 < deep.leaves
    assert deep.fidelity > 0.85
    assert 0 <= deep.depth <= 5


def test_a_seed_decides_a_soft_tree_and_nobody_elses_luck(quarters):
    points, classes = quarters
    torch.manual_seed(1)
    before = torch.rand(3)
    torch.manual_seed(1)
    first, again, other = (
        soft_tree(points, certain(classes), points, certain(classes), depth=3, epochs=3, seed=seed)
        for seed in (0, 0, 1)
    )
    assert (torch.rand(3) == before).all()
    assert (first.use == again.use).all()
    assert (first.use != other.use).any()


@pytest.mark.parametrize(
    ("used", "predicted", "depths"),
    [
        ([1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]),
        ([1, 1, 1, 1], [0, 0, 1, 2], [1, 1, 2, 2]),
        ([1, 0, 1, 0], [0, 5, 1, 5], [1, 1, 1, 1]),  # leaves without use do not count
        ([1, 0, 0, 0], [0, 1, 2, 3], [0, 0, 0, 0]),
    ],
)
def test_where_a_prediction_is_settled_by_hand(used, predicted, depths):
    assert _settled(np.array(used, bool), np.array(predicted)).tolist() == depths


def test_a_tree_of_quarters_has_four_leaves(quarters):
    points, classes = quarters
    found = prediction_tree(points[:300], classes[:300], points[300:], classes[300:], fidelity=1.0)
    assert (found.leaves, found.depth, found.fidelity) == (4, 2, 1)
    assert found.path_leaves[[0, -1]].tolist() == [4, 1]
    assert (np.diff(found.path_fidelity) < 0).all()


def test_leaves_by_hand():
    """0000 | 11 | 2: the last cut lowers the risk by 4/21, those of the whole tree by 4/7 for two leaves more."""
    line, said = np.arange(7.0)[:, None], [0, 0, 0, 0, 1, 1, 2]
    found = prediction_tree(line, said, line, said, fidelity=6 / 7)
    assert found.path_leaves.tolist() == [3, 2, 1]
    assert found.path_fidelity == pytest.approx([1, 6 / 7, 4 / 7])
    assert (found.leaves, found.depth, found.fidelity) == (2, 1, 1)
    whole, root = (prediction_tree(line, said, line, said, fidelity=share) for share in (1.0, 0.5))
    assert (whole.leaves, whole.depth) == (3, pytest.approx(10 / 7))
    assert (root.leaves, root.depth) == (1, 0)


@pytest.mark.slow(2)
def test_pruning_is_scikit_learns(digits):
    """Trees grown again with a price per leaf are those of the path, image by image."""
    inputs, said, others, wanted = digits
    whole = DecisionTreeClassifier(random_state=0).fit(inputs, said)
    leaves, agreed, depths = _pruned(whole, others, wanted)
    prices = np.unique(whole.cost_complexity_pruning_path(inputs, said).ccp_alphas)
    assert leaves[0] == whole.get_n_leaves()
    assert leaves[-1] == 1
    for price in prices[np.linspace(1, len(prices) - 1, 6).astype(int)]:
        pruned = DecisionTreeClassifier(random_state=0, ccp_alpha=price * (1 + 1e-9)).fit(inputs, said)
        at = np.flatnonzero(leaves == pruned.get_n_leaves())
        assert at.size == 1
        assert agreed[at[0]] == pytest.approx((pruned.predict(others) == wanted).mean())
        decisions = np.asarray(pruned.decision_path(others).sum(axis=1)).mean() - 1
        assert depths[at[0]] == pytest.approx(decisions)


def test_no_tree_may_be_faithful_enough(digits, rng):
    inputs, said, others, wanted = digits
    found = prediction_tree(inputs, rng.permutation(said), others, wanted, fidelity=0.9)
    assert np.isnan([found.leaves, found.depth]).all()
    assert found.fidelity < 0.3
    faithful = prediction_tree(inputs, said, others, wanted, fidelity=0.7)
    assert 10 <= faithful.leaves < faithful.path_leaves[0]
    assert prediction_tree(inputs, said, others, wanted, fidelity=0.4).leaves < faithful.leaves


def test_one_prediction_needs_one_leaf(quarters):
    points, _ = quarters
    found = prediction_tree(points, np.full(400, 7), points, np.full(400, 7), fidelity=1.0)
    assert (found.leaves, found.depth, found.fidelity) == (1, 0, 1)


GOOD = {
    "soft_tree": (soft_tree, {"inputs": np.ones((6, 2)), "logits": np.ones((6, 3)), "held_out": np.ones((4, 2))}),
    "prediction_tree": (prediction_tree, {"inputs": np.ones((6, 2)), "predictions": np.ones(6)}),
}
GOOD["soft_tree"][1]["held_out_logits"] = np.ones((4, 3))
GOOD["prediction_tree"][1].update({"held_out": np.ones((4, 2)), "held_out_predictions": np.ones(4)})


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("soft_tree", {"logits": np.ones((5, 3))}, r"logits must have shape \(6, classes\)"),
        ("soft_tree", {"logits": np.ones((6, 1))}, r"logits must have shape \(6, classes\) with at least two"),
        ("soft_tree", {"held_out": np.ones((4, 3))}, "held_out must have the 2 columns of inputs, received 3"),
        ("soft_tree", {"held_out_logits": np.ones((4, 2))}, "held_out_logits must have the 3 columns of logits"),
        ("soft_tree", {"inputs": np.full((6, 2), 1e20)}, "inputs must lie within 1e"),
        ("soft_tree", {"depth": 11}, "depth must be a whole number from 1 to 10, received 11"),
        ("soft_tree", {"epochs": 0}, "epochs must be a whole number from 1"),
        ("soft_tree", {"sharpness": 0.0}, "sharpness must be a number above 0"),
        ("soft_tree", {"seed": -1}, "seed must be a whole number from 0"),
        ("prediction_tree", {"inputs": np.ones((0, 2))}, "inputs must have at least one example and one input"),
        ("prediction_tree", {"predictions": np.ones(5)}, r"predictions must have shape \(6,\)"),
        ("prediction_tree", {"held_out_predictions": np.ones(5)}, r"held_out_predictions must have shape \(4,\)"),
        ("prediction_tree", {"fidelity": 0.0}, "fidelity must be a number above 0 and at most 1"),
    ],
)
def test_what_cannot_be_answered_is_refused(name, change, sentence):
    function, good = GOOD[name]
    with pytest.raises(ValueError, match=sentence):
        function(**good | change)
