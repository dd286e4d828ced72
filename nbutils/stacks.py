"""Networks of one shape trained side by side: one product for all matrices of a layer, one update for all weights.

Small networks leave a processor idle between calls; five of them in one call do not. Each ends with the same bits,
whichever others stand beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

import torch
from torch import nn

__all__ = ["Stack"]

ALIGNED = 16  # numbers: libraries round alike only where every matrix begins at a multiple of 64 bytes


class Stack:
    """Fully connected ReLU networks of one shape; one step of Adam on cross-entropy for all of them at once.

    The models' parameters become views of the stack's, so that each model is up to date after every step.

    Args:
        models: made of `Linear`, `ReLU` and `Dropout` in sequence, the last layer linear; all alike, on one device.
        learning_rate: of Adam.

    Raises:
        ValueError: the models differ, or hold other layers.

    Examples:
        >>> models = [nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)) for _ in range(2)]
        >>> stack = Stack(models, learning_rate=0.001)
        >>> stack.step(torch.rand(2, 5, 3), torch.zeros(2, 5, dtype=torch.int64))
    """

    def __init__(self, models: Sequence[nn.Module], learning_rate: float) -> None:
        layers = [_layers(model) for model in models]
        kinds = {tuple((linear.weight.shape, dropout) for linear, dropout in one) for one in layers}
        if len(kinds) != 1:
            raise ValueError(f"models that are trained side by side must be alike, received {len(kinds)} kinds")
        self.dropout = [dropout for _, dropout in layers[0][:-1]]
        self.widths = [linear.out_features for linear, _ in layers[0][:-1]]
        shared = [[one[depth][0] for one in layers] for depth in range(len(layers[0]))]
        shapes = [(len(models), *p.shape) for same in shared for p in (same[0].weight, same[0].bias)]
        places = [shape[0] * _padded(prod(shape[1:])) for shape in shapes]
        first = next(models[0].parameters())
        values = torch.zeros(sum(places), dtype=first.dtype, device=first.device)
        slopes = torch.zeros_like(values)
        views = [_views(flat.split(places), shapes) for flat in (values, slopes)]
        for same, weights, biases in zip(shared, views[0][::2], views[0][1::2], strict=True):
            for number, linear in enumerate(same):
                for parameter, view in ((linear.weight, weights[number]), (linear.bias, biases[number])):
                    view.copy_(parameter.detach())
                    parameter.data = view
        self.weights, self.biases = views[0][::2], views[0][1::2]
        self._weight_slopes, self._bias_slopes = views[1][::2], views[1][1::2]
        everything = nn.Parameter(values)
        everything.grad = slopes
        self._adam = torch.optim.Adam([everything], lr=learning_rate, fused=True)

    @torch.no_grad()
    def step(self, inputs: torch.Tensor, labels: torch.Tensor, kept: Sequence[torch.Tensor] = ()) -> None:
        """One step of every network on its own batch.

        Batches are filled up to a multiple of 16 examples that do not count, so that every matrix is aligned.

        Args:
            inputs: shape (networks, batch, values).
            labels: classes, shape (networks, batch), int64.
            kept: which outputs of each hidden layer dropout spares, boolean, shape (networks, batch, width); needed
                where the models have dropout.
        """
        batch = labels.shape[1]
        inputs, labels, *kept = (_filled(part) for part in (inputs, labels, *kept))
        outputs = [inputs]
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            output = torch.baddbmm(bias[:, None], outputs[-1], weight.transpose(1, 2))
            if depth < len(self.dropout):
                output.relu_()
                if share := self.dropout[depth]:
                    output.mul_(kept[depth]).div_(1 - share)
            outputs.append(output)
        # Backwards: the slope of mean cross-entropy at the outputs is (softmax - one-hot) / batch.
        slope = torch.softmax(outputs.pop(), dim=2)
        slope.scatter_add_(2, labels[:, :, None], slope.new_full((*labels.shape, 1), -1.0))
        slope /= batch
        slope[:, batch:] = 0
        for depth in reversed(range(len(self.weights))):
            torch.bmm(slope.transpose(1, 2), outputs[depth], out=self._weight_slopes[depth])
            torch.sum(slope, dim=1, out=self._bias_slopes[depth])
            if depth:
                slope = torch.bmm(slope, self.weights[depth]).mul_(outputs[depth] > 0)
                if share := self.dropout[depth - 1]:
                    slope.div_(1 - share)
        self._adam.step()


def _layers(model: nn.Module) -> list[tuple[nn.Linear, float]]:
    """Linear layers in order, each with the dropout that follows it."""
    leaves = [module for module in model.modules() if not any(True for _ in module.children())]
    letters = "".join({nn.Linear: "L", nn.ReLU: "R", nn.Dropout: "D"}.get(type(leaf), "?") for leaf in leaves)
    if not re.fullmatch("(LRD?)*L", letters) or any(isinstance(x, nn.Linear) and x.bias is None for x in leaves):
        names = ", ".join(type(leaf).__name__ for leaf in leaves)
        raise ValueError(f"a model must be Linear, ReLU, perhaps Dropout, ..., Linear with biases; this has {names}")
    found = []
    for place, leaf in enumerate(leaves):
        if isinstance(leaf, nn.Linear):
            after = leaves[place + 2] if letters[place + 2 : place + 3] == "D" else None
            found.append((leaf, after.p if after else 0.0))
    return found


def _filled(part: torch.Tensor) -> torch.Tensor:
    """(networks, batch, ...) with zeros up to the next multiple of 16 examples."""
    missing = -part.shape[1] % ALIGNED
    return torch.cat([part, part.new_zeros(len(part), missing, *part.shape[2:])], dim=1) if missing else part


def _padded(size: int) -> int:
    return -(-size // ALIGNED) * ALIGNED


def _views(parts: Sequence[torch.Tensor], shapes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
    """Each part as (networks, ...), without the gaps that keep matrices aligned."""
    return [
        part.view(shape[0], -1)[:, : prod(shape[1:])].unflatten(1, shape[1:])
        for part, shape in zip(parts, shapes, strict=True)
    ]
