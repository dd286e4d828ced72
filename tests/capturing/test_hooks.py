from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import nn

from nbutils.capturing.hooks import capture, capture_activations, matching_layers
from nbutils.capturing.layouts import NonFiniteError
from nbutils.runs.models import build_model


def test_the_nearest_spelling_of_a_wildcard_is_one():
    model = build_model("mlp:7-5", 6, 3)
    for asked, near in (("hiden1*", "hidden1*"), ("hidden2.rellu", "hidden2.relu"), ("*.rellu", "*.relu")):
        with pytest.raises(ValueError, match=rf"did you mean '{re.escape(near)}'\?"):
            matching_layers(model, asked)


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


def test_a_layer_used_twice_is_two_layers(rng):
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.relu(self.relu(x) - 1)

    x = rng.normal(size=(50, 3)).astype(np.float32)
    for size in (None, 7):
        found = capture_activations(Twice(), x, batch_size=size)
        assert list(found) == ["relu", "relu#2"]
        assert (found["relu"] == np.maximum(x, 0)).all()
        assert (found["relu#2"] == np.maximum(np.maximum(x, 0) - 1, 0)).all()
    model = Twice()
    with capture(model, "relu") as seen:
        model(torch.from_numpy(x))
        model(torch.from_numpy(x[:4]))
    assert {name: len(values) for name, values in seen.items()} == {"relu": 4, "relu#2": 4}


class Called(nn.Module):
    """Calls activation functions in every way, in its own code and in that of a part."""

    class Part(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(self.linear(x))

    def __init__(self) -> None:
        super().__init__()
        self.part, self.relu, self.conv = self.Part(), nn.ReLU(), nn.Conv2d(1, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.relu_(self.conv(x)).mean(dim=(2, 3))
        x = nn.functional.gelu(x)
        x = self.relu(x).relu()
        return self.part(x)


def test_called_activation_functions_are_layers(rng):
    torch.manual_seed(0)
    model, x = Called(), torch.from_numpy(rng.normal(size=(20, 1, 5, 5)).astype(np.float32))
    first = torch.relu(model.conv(x)).mean(dim=(2, 3)).detach()
    after = torch.relu(nn.functional.gelu(first))
    expected = {
        "relu()": first.numpy(),
        "gelu()": nn.functional.gelu(first).numpy(),
        "relu()#2": after.numpy(),
        "part.tanh()": torch.tanh(model.part.linear(after)).detach().numpy(),
    }
    for size in (None, 7):
        found = capture_activations(model, x, "*()", batch_size=size)
        assert list(found) == list(expected), "what a module calls inside is that module's own output"
        for name, values in found.items():
            assert values == pytest.approx(expected[name], abs=1e-6), name
    both = capture_activations(model, x, "part.* *.tanh() relu")
    assert list(both) == ["part.linear", "relu", "part.tanh()"]
    assert list(capture_activations(model, x)) == ["part.linear", "relu", "conv"], "unless asked for"
    with capture(model, "relu()") as seen:
        torch.relu(torch.zeros(3, 3))
        assert not seen, "outside of a pass nothing is noted"
        model(x)
        torch.relu(torch.zeros(3, 3))
    assert [tuple(values.shape) for values in seen.values()] == [(20, 4, 3, 3), (20, 4)]
    assert hooks_of(model) == 0
    with pytest.raises(ValueError, match=r"'\*silu\(\)' matches no activation function that the model calls"):
        capture_activations(model, x, "*silu()")
    with pytest.raises(ValueError, match=r"did you mean 'relu\(\)'\?\): 'relu\(\)', 'gelu\(\)', 'part.tanh\(\)'"):
        capture_activations(model, x, "rleu()")
    with pytest.raises(ValueError, match=r"did you mean '\*\.tanh\(\)'\?\)"):
        capture_activations(model, x, "*.tahn()")
    for asked, there in (
        ("relu()#2", ["relu()#2"]),
        ("relu()#1 gelu()", ["relu()", "gelu()"]),
        ("relu#1 relu()#*", ["relu", "relu()", "relu()#2"]),
    ):
        found = capture_activations(model, x, asked)
        assert list(found) == there, "what is asked for and nothing else"
        assert all(found[name] == pytest.approx(expected[name], abs=1e-6) for name in found if name in expected)
    for asked in ("relu()#3", "relu#2"):
        with pytest.raises(ValueError, match=rf"'{re.escape(asked)}' names a use that is not there"):
            capture_activations(model, x, asked)


def test_called_functions_of_unclear_layout_are_asked_about(rng):
    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.linear(x))

    model = Tokens()
    for shape in ((20, 6, 4), (20, 6, 5, 4)):
        x = torch.from_numpy(rng.normal(size=shape).astype(np.float32))
        with pytest.raises(ValueError, match=r"layer 'relu\(\)' \(a called function\) gave shape .* layout="):
            capture_activations(model, x, "relu()")
        found = capture_activations(model, x, "relu()", layout={"relu()": "features-last"})["relu()"]
        by_hand = torch.relu(model.linear(x)).detach().flatten(1, -2).mean(dim=1).numpy()
        assert found == pytest.approx(by_hand, abs=1e-6)


def test_a_layer_that_runs_more_often_in_one_pass_than_in_another_is_refused():
    class Varying(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.relu(self.relu(x)) if x[0, 0] > 0 else self.relu(x)

    inputs = np.repeat(np.array([[1], [0]], np.float32), 4, axis=0)
    with pytest.raises(RuntimeError, match="layer 'relu#2' ran in one forward pass and not in another"):
        capture_activations(Varying(), inputs, batch_size=4)


def test_no_match_names_the_nearest(model):
    with pytest.raises(ValueError, match=r"did you mean 'hidden1.relu'\?\): 'hidden1.linear'"):
        matching_layers(model, "hidden1.rellu")


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
