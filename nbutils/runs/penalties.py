"""Measures of firing that can be pushed up or down while a network trains: modularity, entropy, and their controls.

Training minimises cross-entropy - c * measure: a positive coefficient c raises the measure, a negative one lowers it.
A new one is a class with `__call__`, and a line in `PENALTIES`.

Firing is made soft, so that it has slopes: s = sigmoid((a - q) / (w d)), with q the least of a neuron's own strongest
tenth in the batch, d its standard deviation there and w = 0.25. It depends on where an activation lies among the
neuron's own, so that shrinking or stretching all of them changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import ceil, log
from typing import TYPE_CHECKING

from nbutils.runs.conditions import Number, Rule

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "BLOCK",
    "PENALTIES",
    "REFRESH",
    "block_firing_entropy",
    "cofiring_weights",
    "firing_modularity",
    "selectivity_of",
    "soft_firing",
    "soft_modularity",
]

SHARE, WIDTH = 0.1, 0.25  # of examples that fire; of a neuron's deviation, within which firing is soft
REFRESH = 50  # steps after which communities are looked for again
KEPT = 16  # batches that they are looked for in
GROUPS = 10  # of a random or a learned partition
BLOCK, BLOCKS = 6, 32  # neurons in a block, and blocks that are drawn for every batch
TINY = 1e-9
COEFFICIENT = Number("coefficient", -1000, 1000)


def soft_firing(activations: Tensor) -> Tensor:
    """Firing between 0 and 1, with slopes.

    s = sigmoid((a - q) / (0.25 d)), with q the least of the neuron's largest ceil(0.1 examples) activations and d its
    deviation: 0.5 or more exactly where :func:`nbutils.activations.firing` says that it fires.

    Args:
        activations: shape (examples, neurons), at least 2 examples.

    Returns:
        Shape (examples, neurons), in [0, 1]; 0.5 throughout for a neuron that is the same on all examples.

    Examples:
        >>> import torch
        >>> [round(float(s), 2) for s in soft_firing(torch.tensor([[0.0], [1.0], [5.0]]))]
        [0.0, 0.0, 0.5]
    """
    import torch

    threshold = activations.topk(ceil(SHARE * len(activations)), dim=0).values[-1]
    variance = (activations - activations.mean(dim=0)).square().mean(dim=0)  # ten times as fast as `var`
    deviation = variance.add(TINY**2).sqrt()
    return torch.sigmoid((activations - threshold) / (WIDTH * deviation))


def cofiring_weights(firing: Tensor) -> Tensor:
    """Weights between neurons: the positive part of the covariance of their firing, 0 with themselves.

    Args:
        firing: shape (examples, neurons).

    Returns:
        Shape (neurons, neurons), symmetric.

    Examples:
        >>> import torch
        >>> cofiring_weights(torch.tensor([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])).tolist()
        [[0.0, 0.25, 0.0], [0.25, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    centred = firing - firing.mean(dim=0)
    weights = (centred.T @ centred / len(firing)).clamp_min(0)
    return weights - weights.diagonal().diag()


def soft_modularity(weights: Tensor, partition: Tensor) -> Tensor:
    """Modularity of a partition that may be soft.

    Q = sum_c (w_c / 2m - (d_c / 2m)^2), with 2m all weight, w_c = sum_ij p_ic W_ij p_jc the weight inside community c
    and d_c = sum_i p_ic sum_j W_ij its degree. With one 1 in every row of p this is Newman's modularity.

    Args:
        weights: shape (neurons, neurons), symmetric, at least 0.
        partition: p, share of each neuron in each community, shape (neurons, communities), rows sum to 1.

    Returns:
        Q, at most 1; 0 for weights that are all 0.

    Examples:
        >>> import torch
        >>> cliques = torch.block_diag(torch.ones(3, 3), torch.ones(3, 3)) - torch.eye(6)
        >>> round(float(soft_modularity(cliques, torch.eye(2).repeat_interleave(3, 0))), 6)
        0.5

    References:
        Newman (2006), doi:10.1073/pnas.0601602103.
    """
    total = weights.sum() + TINY
    inside = (partition * (weights @ partition)).sum(dim=0) / total
    degree = (weights.sum(dim=1) @ partition) / total
    return (inside - degree**2).sum()


def firing_modularity(firing: Tensor, partition: Tensor) -> Tensor:
    """Modularity of soft firing, `soft_modularity(cofiring_weights(firing), partition)`, with slopes written out.

    With p_i the row of neuron i in the partition, s_c = d_c / 2m and w = sum_c w_c / 2m, the slope of Q in W_ij and
    W_ji together is 2 (p_i p_j - w - (p_i + p_j) s + 2 s s) / 2m. Same number, same slopes, in about half the time.

    Args:
        firing: shape (examples, neurons).
        partition: shape (neurons, communities), rows sum to 1; held fixed, it gets no slopes.

    Returns:
        Q, at most 1; 0 where no two neurons fire together more often than by chance.

    Examples:
        >>> import torch
        >>> firing = torch.tensor([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
        >>> round(float(firing_modularity(firing, torch.eye(2).repeat_interleave(2, 0))), 6)
        0.5

    References:
        Newman (2006), doi:10.1073/pnas.0601602103.
    """
    import torch

    with torch.no_grad():
        centred = firing - firing.mean(dim=0)
        weights = (centred.T @ centred).div_(len(firing)).clamp_min_(0).fill_diagonal_(0)
        degree = weights.sum(dim=1)
        total = degree.sum() + TINY
        inside = (partition * (weights @ partition)).sum() / total
        shares = degree @ partition / total
        quality = inside - shares.square().sum()
        each = shares.square().sum() - partition @ shares
        slopes = torch.addmm(each[:, None] + (each - inside), partition, partition.T).mul_(weights > 0)
        slopes = (centred @ slopes).mul_(2 / (total * len(firing)))
        slopes -= slopes.mean(dim=0)
    linear = (firing * slopes).sum()  # 0 with the line below, but for its slopes
    return quality + (linear - linear.detach())


def block_firing_entropy(firing: Tensor, blocks: Tensor) -> Tensor:
    """How much the patterns of blocks of neurons that fire softly differ between examples.

    Each neuron fires on an example with probability s, apart from the others given the example: the share of pattern b
    is p_b = mean over examples of prod_i s_i^b_i (1 - s_i)^(1 - b_i). Of its entropy -sum_b p_b log2 p_b the part is
    taken away that softness itself makes, mean over examples of sum_i h(s_i) with h the entropy of a coin: otherwise s
    of 0.5 everywhere would be the most random firing there is. What is left is the information that a pattern has on
    the example; where all s are 0 or 1 it is the entropy of the patterns themselves.

    Args:
        firing: s, shape (examples, neurons), in [0, 1].
        blocks: numbers of the neurons of each block, shape (blocks, size), int64.

    Returns:
        Bits, from 0 to the size of a block.

    Examples:
        >>> import torch
        >>> float(block_firing_entropy(torch.tensor([[0.0, 0.0], [1.0, 1.0]]), torch.tensor([[0, 1]])))
        1.0
    """
    own = firing.T.index_select(0, blocks.reshape(-1)).view(*blocks.shape, len(firing))
    half = blocks.shape[1] // 2  # a pattern is one of the first half and one of the second: their shares are a product
    shares = _patterns(own[:, :half]) @ _patterns(own[:, half:]).transpose(1, 2) / len(firing)
    softness = (_nats(own) + _nats(1 - own)).sum(dim=1).mean()
    return (_nats(shares).sum(dim=(1, 2)).mean() - softness) / log(2)


def _patterns(own: Tensor) -> Tensor:
    """Probability of every pattern of neurons, (blocks, neurons, examples) to (blocks, patterns, examples)."""
    import torch

    found = own.new_ones(len(own), 1, own.shape[2])
    for place in range(own.shape[1]):
        fires = own[:, place, None]
        found = torch.cat([found * (1 - fires), found * fires], dim=1)
    return found


def _nats(shares: Tensor) -> Tensor:
    """-p ln p, 0 for 0."""
    return -shares * shares.clamp_min(TINY).log()


def selectivity_of(activations: Tensor, labels: Tensor) -> Tensor:
    """Mean class selectivity of neurons over the classes of a batch.

    (m1 - m2) / (m1 + m2), with m1 a neuron's largest mean activation on a class and m2 its mean over the other classes.

    Args:
        activations: at least 0, shape (examples, neurons).
        labels: class per example, shape (examples,), int64.

    Returns:
        From 0 to 1; 0 where there is one class.

    Examples:
        >>> import torch
        >>> float(selectivity_of(torch.tensor([[3.0], [1.0]]), torch.tensor([0, 1])))
        0.5

    References:
        Leavitt and Morcos (2020), arXiv:2003.01262.
    """
    import torch

    classes, index = labels.unique(return_inverse=True)
    if len(classes) < 2:
        return activations.sum() * 0
    members = torch.nn.functional.one_hot(index, len(classes)).to(activations.dtype)
    means = (members.T @ activations) / members.sum(dim=0)[:, None]
    largest = means.max(dim=0).values
    others = (means.sum(dim=0) - largest) / (len(classes) - 1)
    return ((largest - others) / (largest + others + TINY)).mean()


class _Communities:
    """Modularity of communities that are looked for again every `REFRESH` steps, among the neurons of all layers."""

    def __init__(self, seed: int) -> None:
        self._seed, self._steps = seed, 0
        self._seen: deque[Tensor] = deque(maxlen=KEPT)
        self._partition: Tensor | None = None

    def __call__(self, layers: list[Tensor], _labels: Tensor) -> Tensor:
        import torch

        activations = torch.cat(layers, dim=1)
        firing = soft_firing(activations)
        self._seen.append((firing.detach() >= 0.5) & (activations.detach() > activations.detach().amin(dim=0)))
        if self._steps % REFRESH == 0:
            self._partition = self._find(activations)
        self._steps += 1
        return firing_modularity(firing, self._partition)

    def _find(self, like: Tensor) -> Tensor:
        import torch
        from torch.nn.functional import one_hot

        from nbutils.communities import detect_communities
        from nbutils.graphs import activation_pattern_graph

        graph = activation_pattern_graph(torch.cat(list(self._seen)).cpu().numpy())
        labels = torch.from_numpy(detect_communities(graph, seeds=1).labels).long()
        return one_hot(labels + 1)[:, 1:].to(like)  # a neuron without edges, -1, is in no community


class _Learned:
    """Modularity of a soft partition that itself climbs, one step for each of the network's."""

    def __init__(self, seed: int) -> None:
        self._seed, self._logits, self._climber = seed, None, None

    def __call__(self, layers: list[Tensor], _labels: Tensor) -> Tensor:
        import torch

        firing = soft_firing(torch.cat(layers, dim=1))
        weights = cofiring_weights(firing.detach())
        if self._logits is None:
            source = torch.Generator().manual_seed(self._seed)
            drawn = torch.randn(len(weights), GROUPS, generator=source).to(weights)
            self._logits = drawn.requires_grad_()
            self._climber = torch.optim.Adam([self._logits], 0.05, maximize=True)
        own = soft_modularity(weights, self._logits.softmax(dim=1))
        (self._logits.grad,) = torch.autograd.grad(own, [self._logits])
        self._climber.step()
        return firing_modularity(firing, self._logits.detach().softmax(dim=1))


class _Random:
    """Modularity of a partition that was drawn once: the same slopes in kind, towards groups that mean nothing."""

    def __init__(self, seed: int) -> None:
        self._seed, self._partition = seed, None

    def __call__(self, layers: list[Tensor], _labels: Tensor) -> Tensor:
        import torch

        firing = soft_firing(torch.cat(layers, dim=1))
        if self._partition is None:
            source = torch.Generator().manual_seed(self._seed)
            drawn = torch.randint(GROUPS, (firing.shape[1],), generator=source)
            self._partition = torch.nn.functional.one_hot(drawn, GROUPS).to(firing)
        return firing_modularity(firing, self._partition)


class _Entropy:
    """Entropy of blocks of six neurons of one layer, in bits; other blocks for every batch."""

    def __init__(self, seed: int) -> None:
        self._seed, self._source = seed, None

    def __call__(self, layers: list[Tensor], _labels: Tensor) -> Tensor:
        import torch

        self._source = self._source or torch.Generator().manual_seed(self._seed)
        found = []
        for layer in (one for one in layers if one.shape[1] >= BLOCK):
            drawn = torch.rand(BLOCKS, layer.shape[1], generator=self._source)
            blocks = drawn.topk(BLOCK, dim=1).indices.to(layer.device)
            found.append(block_firing_entropy(soft_firing(layer), blocks))
        return torch.stack(found).mean()


class _Selectivity:
    """Class selectivity, mean over layers."""

    def __init__(self, _seed: int) -> None:
        pass

    def __call__(self, layers: list[Tensor], labels: Tensor) -> Tensor:
        import torch

        return torch.stack([selectivity_of(layer, labels) for layer in layers]).mean()


class _Activity:
    """Logarithm of the mean size of activations: what firing that is relative to a neuron's own cannot see."""

    def __init__(self, _seed: int) -> None:
        pass

    def __call__(self, layers: list[Tensor], _labels: Tensor) -> Tensor:
        import torch

        return torch.log(torch.cat(layers, dim=1).abs().mean() + TINY)


# Each from a seed; called with the hidden layers' activations, (examples, neurons) each, and the labels of a batch.
PENALTIES: Mapping[str, Rule] = {
    "none": Rule(lambda _seed: None),
    "modularity": Rule(_Communities, (COEFFICIENT,)),
    "learned": Rule(_Learned, (COEFFICIENT,)),
    "entropy": Rule(_Entropy, (COEFFICIENT,)),
    "selectivity": Rule(_Selectivity, (COEFFICIENT,)),
    "activity": Rule(_Activity, (COEFFICIENT,)),
    "random": Rule(_Random, (COEFFICIENT,)),
}
