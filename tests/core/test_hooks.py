from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from nbutils.hooks import capture, capture_activations, matching_layers
from nbutils.layouts import NonFiniteError
from nbutils.runs.models import build_model


def hooks_of(model: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


@pytest.fixture
def model() -> nn.Module:
    return build_model("mlp:6-4", inputs=5, classes=3, dropout=0.5)


def test_a_linear_layer_gives_x_times_w_plus_b(model, rng):
    x = rng.normal(size=(7, 5)).astype(np.float32)
    found = capture_activations(model, x, "hidden1.*")
    layer = model.hidden1.linear
    expected = x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    assert found["hidden1.linear"] == pytest.approx(expected, abs=1e-6)
    assert found["hidden1.relu"] == pytest.approx(np.maximum(expected, 0), abs=1e-6)


def test_wildcards_and_order(model):
    assert matching_layers(model, "hidden*.relu") == ["hidden1.relu", "hidden2.relu"]
    assert matching_layers(model, "output hidden2.*") == ["hidden2.linear", "hidden2.relu", "hidden2.dropout", "output"]
    assert len(matching_layers(model)) == 7
    assert matching_layers(nn.Linear(2, 2)) == [""]


def test_no_match_lists_the_layers(model):
    with pytest.raises(ValueError, match=r"layers='conv\*' matches none of the model's layers: 'hidden1.linear'"):
        matching_layers(model, "conv*")


def test_hooks_are_gone_afterwards_even_after_an_exception(model):
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"), capture(model):
        model(torch.zeros(1, 99))
    assert hooks_of(model) == 0
    with capture(model):
        assert hooks_of(model) > 0
    assert hooks_of(model) == 0


def test_batches_do_not_change_the_result(model, rng):
    x = rng.normal(size=(50, 5)).astype(np.float32)
    whole, parts = (capture_activations(model, x, "output", batch_size=n)["output"] for n in (50, 7))
    assert parts == pytest.approx(whole, abs=1e-6)


def test_the_model_keeps_its_mode_and_gets_no_gradient(model):
    model.train()
    first, second = (capture_activations(model, torch.ones(4, 5), "output")["output"] for _ in range(2))
    assert model.training
    assert (first == second).all()  # dropout was off
    assert all(p.grad is None for p in model.parameters())


def test_channels_and_tokens_are_neurons(rng):
    x = torch.from_numpy(rng.normal(size=(3, 2, 6, 6)).astype(np.float32))
    conv = nn.Sequential(nn.Conv2d(2, 4, 3))
    full = conv(x).detach().numpy()
    assert capture_activations(conv, x)["0"] == pytest.approx(full.mean(axis=(2, 3)), abs=1e-6)
    assert capture_activations(conv, x, reduce="max")["0"] == pytest.approx(full.max(axis=(2, 3)), abs=1e-6)
    tokens = torch.from_numpy(rng.normal(size=(3, 7, 5)).astype(np.float32))
    dense = nn.Sequential(nn.Linear(5, 2))
    assert capture_activations(dense, tokens)["0"] == pytest.approx(
        dense(tokens).detach().numpy().mean(axis=1), abs=1e-6
    )


def test_nan_names_the_layer(model):
    with torch.no_grad():
        model.hidden2.linear.bias[0] = float("nan")
    with pytest.raises(NonFiniteError, match=r"layer 'hidden2.linear' holds 4 NaN or infinite activations"):
        capture_activations(model, np.zeros((4, 5), np.float32))


def test_a_layer_used_twice_is_refused():
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.relu(self.relu(x))

    with pytest.raises(RuntimeError, match="layer 'relu' ran twice"):
        capture_activations(Twice(), np.zeros((2, 2), np.float32))


class Sometimes(nn.Module):
    """Skips its second layer where all inputs are zero."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Identity(), nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        return self.second(x) if x.any() else x


def test_a_layer_that_does_not_run_is_refused_in_every_batch():
    model = Sometimes()
    inputs = np.repeat(np.array([[1], [0]], np.float32), 3, axis=0)
    for rows in (inputs, inputs[3:]):
        with pytest.raises(RuntimeError, match="layer 'second' did not run in this forward pass"):
            capture_activations(model, rows, batch_size=3)
    assert capture_activations(model, inputs, "first", batch_size=3)["first"].tolist() == inputs.tolist()
    with capture(model) as seen:
        model(torch.ones(2, 1))
        model(torch.zeros(2, 1))
    assert list(seen) == ["first"]


def test_two_forward_passes_in_one_block_are_fine():
    for model in (nn.Sequential(nn.ReLU()), nn.ReLU()):
        with capture(model) as seen:
            model(torch.zeros(2, 3))
            model(torch.ones(2, 3))
        assert next(iter(seen.values())).tolist() == torch.ones(2, 3).tolist()


def test_a_layer_without_a_tensor_is_refused():
    class Wrapping(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"x": x}

    with pytest.raises(RuntimeError, match="layer '' returned dict, not a tensor"):
        capture_activations(Wrapping(), np.zeros((2, 4), np.float32))


@pytest.mark.parametrize("option", [{"batch_size": 0}, {"batch_size": 2.5}, {"reduce": "median"}])
def test_bad_options_are_named(model, option):
    with pytest.raises(ValueError, match=next(iter(option))):
        capture_activations(model, np.zeros((2, 5), np.float32), **option)
    with pytest.raises(ValueError, match="at least one example"):
        capture_activations(model, np.zeros((0, 5), np.float32))
