from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn

from nbutils.runs.models import build_model
from nbutils.runs.training import Stack


def models(count: int, widths: str = "mlp:20-12", dropout: float = 0.0) -> list[nn.Module]:
    torch.manual_seed(0)
    return [build_model(widths, 30, 4, dropout) for _ in range(count)]


def test_steps_are_those_of_autograd_and_adam():
    """Against the plain PyTorch loop, network by network, with batches of any size."""
    ours, plain = models(3), models(3)
    stack = Stack(ours, learning_rate=0.01)
    optimizers = [torch.optim.Adam(model.parameters(), lr=0.01) for model in plain]
    for size in (32, 7, 1, 64):
        inputs, labels = torch.randn(3, size, 30), torch.randint(0, 4, (3, size))
        stack.step(inputs, labels)
        for model, optimizer, x, y in zip(plain, optimizers, inputs, labels, strict=True):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for mine, theirs in zip(ours, plain, strict=True):
        for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
            assert torch.allclose(a, b, atol=2e-5), (a - b).abs().max()


def test_each_network_has_its_own_rate_and_decay_and_may_leave():
    """Against PyTorch's AdamW, network by network; a twin goes on where only one is left."""
    rates, decays, ours, plain = (0.01, 0.001, 0.01), (0.0, 0.3, 1.0), models(3), models(3)
    stack = Stack(ours, rates, decays)
    optimizers = [
        torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay)
        for model, rate, decay in zip(plain, rates, decays, strict=True)
    ]
    for there, kept in (([0, 1, 2], None), ([0, 1, 2], None), ([1, 2], [1, 2]), ([2], [1, 1]), ([2], None)):
        if kept:
            stack.keep(kept)
        inputs, labels = torch.randn(len(there), 16, 30), torch.randint(0, 4, (len(there), 16))
        twice = (lambda x: x.repeat(2, *[1] * (x.ndim - 1))) if len(there) == 1 else (lambda x: x)
        stack.step(twice(inputs), twice(labels))
        for number, x, y in zip(there, inputs, labels, strict=True):
            optimizers[number].zero_grad()
            nn.functional.cross_entropy(plain[number](x), y).backward()
            optimizers[number].step()
    for mine, theirs in zip(ours, plain, strict=True):
        for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
            assert torch.allclose(a, b, atol=2e-5), (a - b).abs().max()


def test_dropout_spares_and_scales_as_pytorch_does():
    model, plain = models(1, dropout=0.5)[0], models(1, dropout=0.5)[0]
    kept = [torch.rand(1, 16, width) >= 0.5 for width in (20, 12)]
    inputs, labels = torch.randn(1, 16, 30), torch.randint(0, 4, (1, 16))
    Stack([model, deepcopy(model)], 0.01).step(
        *(torch.cat([x, x]) for x in (inputs, labels)), [k.repeat(2, 1, 1) for k in kept]
    )
    hidden = inputs[0]
    for block, mask in zip(plain[:2], kept, strict=True):
        hidden = block.relu(block.linear(hidden)) * mask[0] / 0.5
    nn.functional.cross_entropy(plain[2](hidden), labels[0]).backward()
    optimizer = torch.optim.Adam(plain.parameters(), lr=0.01)
    optimizer.step()
    for a, b in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(a, b, atol=2e-5)


def test_models_are_views_and_stay_up_to_date():
    pair = models(2)
    first = deepcopy(pair[1].state_dict())
    stack = Stack(pair, 0.01)
    assert all((a == b).all() for a, b in zip(first.values(), pair[1].state_dict().values(), strict=True))
    stack.step(torch.randn(2, 8, 30), torch.zeros(2, 8, dtype=torch.int64))
    assert (pair[1][0].linear.weight == stack.weights[0][1]).all()
    assert (pair[1][0].linear.weight != first["hidden1.linear.weight"]).any()


class Odd(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(1, 1, 1)


@pytest.mark.parametrize(
    "model",
    [
        Odd(),
        nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.ReLU(), nn.Linear(4, 2)),
        nn.Sequential(nn.Linear(3, 4), nn.ReLU()),
        nn.Sequential(nn.Linear(3, 4, bias=False)),
    ],
)
def test_other_networks_are_refused(model):
    with pytest.raises(ValueError, match="a model must be Linear, ReLU, perhaps Dropout"):
        Stack([model], 0.01)


def test_networks_of_different_shape_are_refused():
    with pytest.raises(ValueError, match="must be alike, received 2 kinds"):
        Stack([*models(1), *models(1, "mlp:20-13")], 0.01)
