"""How large a tree must be to say what a network says: soft decision trees, and pruned trees of its predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_labels, as_table, is_number, require_share, shown

if TYPE_CHECKING:
    import torch
    from sklearn.tree import DecisionTreeClassifier

DEEPEST = 10  # of a soft tree; all of its 2^depth leaves are computed for every example
MOST_EPOCHS = 10_000
RATE = 0.01  # of Adam
BATCH = 64
BALANCE = 0.1  # strength of the penalty on inner nodes that send all examples one way; halved at every level
SMALLEST = 1e-6  # a share of examples, whose logarithm is taken
LARGEST = 1e15  # of inputs, so that single precision holds the squares of slopes
SHARPEST = 1e6


@checked
@dataclass(frozen=True)
class SoftTree:
    """A soft decision tree that imitates a network, in numbers.

    Attributes:
        fidelity: share of held-out examples of which it predicts what the network predicts.
        leaves: effective number of leaves in use, see :func:`soft_tree`.
        depth: mean number of decisions until the prediction is settled, see :func:`soft_tree`.
        use: share of held-out examples that end in each leaf, shape (leaves,).
        predicted: class that each leaf predicts, shape (leaves,).
    """

    fidelity: float
    leaves: float
    depth: float
    use: np.ndarray
    predicted: np.ndarray


@checked
@dataclass(frozen=True)
class PredictionTree:
    """A decision tree of a network's predictions, pruned step by step, in numbers.

    Attributes:
        leaves: of the smallest tree that is faithful enough; NaN where none is.
        depth: mean number of decisions of that tree on held-out examples; NaN where there is none.
        fidelity: share of held-out examples of which the whole tree predicts what the network predicts.
        path_leaves: leaves of each tree of the pruning path, the whole one first, the root alone last, shape (trees,).
        path_fidelity: their fidelity on held-out examples, shape (trees,).
    """

    leaves: float
    depth: float
    fidelity: float
    path_leaves: np.ndarray
    path_fidelity: np.ndarray


def soft_tree(
    inputs: Any,
    logits: Any,
    held_out: Any,
    held_out_logits: Any,
    depth: int = 5,
    epochs: int = 40,
    sharpness: float = 1.0,
    seed: int = 0,
) -> SoftTree:
    """Distil a network into a soft decision tree, and say how much of the tree is used.

    Inner node i of a full binary tree sends example x to the right with probability p_i = sigmoid(b (x . w_i + c_i)),
    b being `sharpness`; every leaf holds one distribution over the classes. Adam minimises the cross-entropy of the
    network's output probabilities under each leaf's distribution, weighted by the leaf's path probability, plus a
    penalty on inner nodes that send all examples one way: -0.1 / 2^d (log a + log(1 - a)) / 2 for a node at depth d,
    a being the share that it sends to the right among what reaches it, a running mean whose window doubles with d. An
    example gets the prediction of its most likely leaf.

    Leaves in use are counted by the entropy of u, the share of held-out examples in each leaf: exp(-sum u ln u). An
    example's prediction is settled at the node of its path below which all leaves in use predict one class.

    Args:
        inputs: as the network gets them, shape (examples, inputs), finite; the tree is trained on them.
        logits: what the network gives out for them, shape (examples, classes), at least two classes.
        held_out: other inputs, shape (held-out examples, inputs).
        held_out_logits: outputs for them, shape (held-out examples, classes).
        depth: decisions from root to leaf, from 1 to 10: 2^depth leaves.
        epochs: passes over the inputs, in batches of 64.
        sharpness: inverse temperature of decisions, above 0 and at most 1e6; larger ones make harder decisions.
        seed: of initial weights and order.

    Returns:
        :class:`SoftTree`, the same for the same seed; leaves from 1 to 2^depth, depth from 0 to `depth`. Depth 5 on
        2,000 images of 784 pixels takes a few seconds of one core.

    Raises:
        ValueError: shapes do not fit, a number is not finite or too large, or an option is out of range.

    Examples:
        >>> sides = np.repeat([[-1.0], [1.0]], 100, axis=0)
        >>> found = soft_tree(sides, 9 * np.hstack([-sides, sides]), sides, np.hstack([-sides, sides]), depth=1)
        >>> found.fidelity, round(found.leaves, 6), found.depth
        (1.0, 2.0, 1.0)

    References:
        Frosst and Hinton (2017), arXiv:1711.09784; the network's probabilities alone are the targets, and loss is
        weighted over leaves outside the logarithm of a leaf's distribution.
    """
    points, outputs = _as_examples(inputs, logits, "inputs", "logits")
    others, wanted = _as_examples(held_out, held_out_logits, "held_out", "held_out_logits")
    _require_alike(points, others, "held_out", "inputs")
    _require_alike(outputs, wanted, "held_out_logits", "logits")
    depth, epochs = as_count(depth, "depth", most=DEEPEST), as_count(epochs, "epochs", most=MOST_EPOCHS)
    if not is_number(sharpness) or not 0 < sharpness <= SHARPEST:
        raise ValueError(f"sharpness must be a number above 0 and at most {SHARPEST:g}, received {shown(sharpness)}")
    seed = as_count(seed, "seed", 0, 2**63 - 1)
    import torch

    from nbutils.runs.training import one_thread

    with one_thread():
        luck = torch.Generator().manual_seed(seed)
        tree = _Soft(points.shape[1], outputs.shape[1], depth, float(sharpness), luck)
        tree.train(_single(points), torch.softmax(torch.from_numpy(outputs), dim=1).float(), epochs, luck)
        ends, predicted = tree.ends(_single(others))
    use = np.bincount(ends, minlength=2**depth) / len(ends)
    entropy = -(use[use > 0] * np.log(use[use > 0])).sum()
    right = (predicted[ends] == wanted.argmax(axis=1)).mean()
    settled = _settled(use > 0, predicted)[ends].mean()
    return SoftTree(float(right), float(np.exp(entropy)), float(settled), use, predicted)


def prediction_tree(
    inputs: Any,
    predictions: Any,
    held_out: Any,
    held_out_predictions: Any,
    fidelity: float = 0.7,
    seed: int = 0,
) -> PredictionTree:
    """How many leaves a decision tree needs to predict what a network predicts.

    A tree is grown on the network's predictions until its leaves are pure (CART with Gini impurity), then pruned by its
    weakest link (cost complexity), down to the root. The smallest tree on this path counts that agrees with the network
    on the given share of held-out examples.

    Args:
        inputs: as the network gets them, shape (examples, inputs), finite; the tree is grown on them.
        predictions: class that the network predicts for each of them, shape (examples,), integers.
        held_out: other inputs, shape (held-out examples, inputs).
        held_out_predictions: predictions for them, shape (held-out examples,).
        fidelity: share of held-out examples on which tree and network must agree, above 0 and at most 1.
        seed: of the choice among equally good splits.

    Returns:
        :class:`PredictionTree`, with the number of leaves from 1 to that of the whole tree, or NaN. A tree on 2,000
        images of 784 pixels takes about a second of one core.

    Raises:
        ValueError: shapes do not fit, a number is not finite or too large, or an option is out of range.

    Examples:
        >>> line = np.arange(8.0)[:, None]
        >>> found = prediction_tree(line, [0, 0, 1, 1, 0, 0, 1, 1], line, [0, 0, 1, 1, 0, 0, 1, 1], fidelity=1.0)
        >>> found.leaves, found.depth, found.path_leaves.tolist()
        (4.0, 2.25, [4, 1])

    References:
        Breiman, Friedman, Olshen and Stone (1984), "Classification and Regression Trees": growing, and pruning by cost
        complexity; grown by scikit-learn. Trees of a network's predictions: Craven and Shavlik (1996), "Extracting
        tree-structured representations of trained networks".
    """
    points, own = _as_predicted(inputs, predictions, "inputs", "predictions")
    others, wanted = _as_predicted(held_out, held_out_predictions, "held_out", "held_out_predictions")
    _require_alike(points, others, "held_out", "inputs")
    least, seed = require_share(fidelity, "fidelity"), as_count(seed, "seed", 0, 2**32 - 1)
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(random_state=seed).fit(points, own)
    leaves, agreed, depths = _pruned(tree, others, wanted)
    enough = np.flatnonzero(agreed >= least - 1e-12)  # a share of examples is rounded
    smallest = enough[np.argmin(leaves[enough])] if enough.size else None
    found = (np.nan, np.nan) if smallest is None else (float(leaves[smallest]), float(depths[smallest]))
    return PredictionTree(*found, float(agreed[0]), leaves, agreed)


def _pruned(
    tree: DecisionTreeClassifier, inputs: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leaves, agreement and mean number of decisions of every tree of the pruning path, without growing it again."""
    grown = tree.tree_
    left, right = grown.children_left, grown.children_right
    risk = grown.impurity * grown.weighted_n_node_samples / grown.weighted_n_node_samples[0]
    answer = tree.classes_[grown.value[:, 0].argmax(axis=1)]
    parent = np.full(grown.node_count, -1)
    inner = np.flatnonzero(left >= 0)
    parent[left[inner]] = parent[right[inner]] = inner
    level = np.zeros(grown.node_count, np.int64)
    for node in range(1, grown.node_count):  # parents come first
        level[node] = level[parent[node]] + 1
    below, leaves, size = (
        np.where(left < 0, risk, 0.0),
        (left < 0).astype(np.int64),
        np.ones(grown.node_count, np.int64),
    )
    for node in range(grown.node_count - 1, 0, -1):
        below[parent[node]] += below[node]
        leaves[parent[node]] += leaves[node]
        size[parent[node]] += size[node]
    ways = tree.decision_path(inputs).tocsc()
    ends = tree.apply(inputs)
    said, steps = answer[ends].copy(), level[ends].copy()
    found = [(leaves[0], (said == wanted).mean(), steps.mean())]
    while inner.size:
        price = (risk[inner] - below[inner]) / (leaves[inner] - 1)
        weakest = inner[price.argmin()]
        gain, lost = risk[weakest] - below[weakest], leaves[weakest] - 1
        at = weakest
        while at >= 0:
            below[at] += gain
            leaves[at] -= lost
            at = parent[at]
        through = ways.indices[ways.indptr[weakest] : ways.indptr[weakest + 1]]
        said[through], steps[through] = answer[weakest], level[weakest]
        inner = inner[(inner < weakest) | (inner >= weakest + size[weakest])]  # a node's own follow it
        found.append((leaves[0], (said == wanted).mean(), steps.mean()))
    return tuple(np.array(column) for column in zip(*found, strict=True))


class _Soft:
    """A full binary tree of logistic decisions, its nodes level by level, with a distribution in every leaf."""

    def __init__(self, inputs: int, classes: int, depth: int, sharpness: float, luck: torch.Generator) -> None:
        import torch

        first = (2 * torch.rand(inputs, 2**depth - 1, generator=luck) - 1) / max(inputs, 1) ** 0.5
        self._depth, self._sharpness = depth, sharpness
        self._filters = first.requires_grad_()
        self._offsets = torch.zeros(2**depth - 1, requires_grad=True)
        self._leaves = torch.zeros(2**depth, classes, requires_grad=True)

    def train(self, inputs: torch.Tensor, targets: torch.Tensor, epochs: int, luck: torch.Generator) -> None:
        """Minimise the leaves' cross-entropy, weighted by path probability, and the penalty."""
        import torch

        optimiser = torch.optim.Adam([self._filters, self._offsets, self._leaves], lr=RATE)
        averages = [torch.zeros(2, 2**level) for level in range(self._depth)]
        for _ in range(epochs):
            for batch in torch.randperm(len(inputs), generator=luck).split(BATCH):
                levels, decisions = self._paths(inputs[batch])
                surprise = -targets[batch] @ torch.log_softmax(self._leaves, dim=1).T
                loss = (levels[-1] * surprise).sum(dim=1).mean()
                for level, (reached, right) in enumerate(zip(levels[:-1], decisions, strict=True)):
                    now = torch.stack([(reached * right).sum(dim=0), reached.sum(dim=0)])
                    sums = (1 - 0.5**level) * averages[level] + now
                    averages[level] = sums.detach()
                    share = (sums[0] / sums[1].clamp(min=SMALLEST)).clamp(SMALLEST, 1 - SMALLEST)
                    loss = loss - BALANCE * 0.5**level * (share.log() + (1 - share).log()).sum() / 2
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()

    def ends(self, inputs: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """The most likely leaf of every example, and what every leaf predicts."""
        likely = self._paths(inputs)[0][-1].argmax(dim=1)
        return likely.numpy(), self._leaves.argmax(dim=1).numpy()

    def _paths(self, inputs: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Probability of reaching each node, level by level down to the leaves, and of going right at inner ones."""
        import torch

        right = torch.sigmoid(self._sharpness * (inputs @ self._filters + self._offsets))
        levels, decisions = [torch.ones(len(inputs), 1)], []
        for level in range(self._depth):
            decisions.append(right[:, 2**level - 1 : 2 ** (level + 1) - 1])
            turns = torch.stack([1 - decisions[-1], decisions[-1]], dim=2)
            levels.append((levels[-1][:, :, None] * turns).flatten(1))
        return levels, decisions


def _settled(used: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Per leaf of a full tree, the decisions until all leaves in use that can still be reached predict one class."""
    depth = len(used).bit_length() - 1
    found = np.full(len(used), depth)
    for level in range(depth - 1, -1, -1):
        blocks = zip(*(one.reshape(2**level, -1) for one in (used, predicted)), strict=True)
        one_class = [len(set(said[there].tolist())) <= 1 for there, said in blocks]
        found[np.repeat(one_class, 2 ** (depth - level))] = level
    return found


def _as_examples(inputs: Any, logits: Any, name: str, other: str) -> tuple[np.ndarray, np.ndarray]:
    points, outputs = _as_inputs(inputs, name), as_table(logits, other, "(examples, classes)")
    if len(outputs) != len(points) or outputs.shape[1] < 2:
        wanted = f"({len(points)}, classes) with at least two classes"
        raise ValueError(f"{other} must have shape {wanted}, received {outputs.shape}")
    return points, outputs


def _as_predicted(inputs: Any, predictions: Any, name: str, other: str) -> tuple[np.ndarray, np.ndarray]:
    points = _as_inputs(inputs, name)
    return points, as_labels(predictions, len(points), other)


def _as_inputs(inputs: Any, name: str) -> np.ndarray:
    points = as_table(inputs, name, "(examples, inputs)")
    if not points.size:
        raise ValueError(f"{name} must have at least one example and one input, received shape {points.shape}")
    if (largest := np.abs(points).max()) > LARGEST:
        raise ValueError(f"{name} must lie within {LARGEST:g} of 0, received {largest:g}")
    return points


def _require_alike(first: np.ndarray, second: np.ndarray, name: str, other: str) -> None:
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"{name} must have the {first.shape[1]} columns of {other}, received {second.shape[1]}")


def _single(values: np.ndarray) -> torch.Tensor:
    import torch

    return torch.from_numpy(values).float()
