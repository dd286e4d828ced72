"""Layers that are proposed are those that a person would name; captured as proposed, they are what they ought to be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from nbutils.capturing.hooks import capture_activations
from nbutils.capturing.proposals import propose_layers
from nbutils.data.pictures import torchvision_datasets
from nbutils.runs.models import build_model
from nbutils.watch import Watch


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def chosen(model: nn.Module, inputs) -> dict[str, tuple[int, str]]:
    return {one.name: (one.neurons, one.layout) for one in propose_layers(model, inputs) if one.chosen}


def captured(model: nn.Module, inputs) -> dict[str, np.ndarray]:
    """Activations of exactly the layers that are proposed, by the names that they are proposed by."""
    found = chosen(model, inputs)
    values = capture_activations(model, inputs, list(found), layout={name: word for name, (_, word) in found.items()})
    assert values.keys() == found.keys()
    return {name: values[name] for name in found}


def test_hidden_layers_of_an_mlp():
    found = chosen(build_model("mlp:7-5", 6, 3), torch.randn(20, 6))
    assert found == {"hidden1.relu": (7, "features-last"), "hidden2.relu": (5, "features-last")}


class Residual(nn.Module):
    """As in the published networks for CIFAR: activation functions are called, and so is what ends the network."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.linear = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = functional.relu(self.bn1(self.conv1(x)))
        second = functional.relu(self.bn2(self.conv2(first)) + first)
        return torch.softmax(self.linear(second.mean(dim=(2, 3))), dim=1)


def test_called_functions_of_a_residual_network():
    model, x = Residual().eval(), torch.randn(20, 3, 8, 8)
    assert chosen(model, x) == {"relu()": (8, "channels-first"), "relu()#2": (8, "channels-first")}
    assert [one.why for one in propose_layers(model, x)] == ["what relu makes of bn1", "what relu makes of bn2"]
    first = torch.relu(model.bn1(model.conv1(x)))
    second = torch.relu(model.bn2(model.conv2(first)) + first)
    found = captured(model, x)
    assert found["relu()"] == pytest.approx(first.mean(dim=(2, 3)).detach().numpy(), abs=1e-5)
    assert found["relu()#2"] == pytest.approx(second.mean(dim=(2, 3)).detach().numpy(), abs=1e-5)


def test_resnet18_of_torchvision():
    torchvision_datasets()
    from torchvision.models import resnet18

    model, images = resnet18(), torch.randn(4, 3, 32, 32)
    found = chosen(model, images)
    assert list(found)[:4] == ["relu", "layer1.0.relu", "layer1.0.relu#2", "layer1.1.relu"]
    assert len(found) == 17
    assert found["layer4.1.relu#2"] == (512, "channels-first")
    every = captured(model, images)  # names that are proposed can be asked for, one by one
    alone = capture_activations(model, images, "layer4.1.relu#2")
    assert list(alone) == ["layer4.1.relu#2"]
    assert (alone["layer4.1.relu#2"] == every["layer4.1.relu#2"]).all()
    assert Watch(model, images, layers=list(found)).layers == list(found)


def test_hidden_units_of_a_transformer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.Sequential(nn.Linear(5, 8), nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(48, 3))
    x = torch.randn(20, 6, 5)
    assert chosen(model, x) == {f"1.layers.{k}.relu()": (16, "features-last") for k in (0, 1)}
    part = model.eval()[1].layers[0]
    with torch.no_grad():
        tokens = model[0](x)
        after = part.norm1(tokens + part.self_attn(tokens, tokens, tokens)[0])
        expected = torch.relu(part.linear1(after)).mean(dim=1)
    assert captured(model, x)["1.layers.0.relu()"] == pytest.approx(expected.numpy(), abs=1e-5)


class Letters(nn.Module):
    """A recurrent network over token numbers, steps first or examples first."""

    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.letters, self.batch_first = nn.Embedding(11, 6), batch_first
        self.lstm, self.out = nn.LSTM(6, 9, batch_first=batch_first), nn.Linear(9, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = self.letters(x if self.batch_first else x.T)
        states = self.lstm(steps)[0]
        return self.out(states[:, -1] if self.batch_first else states[-1])


@pytest.mark.parametrize("batch_first", [True, False])
def test_recurrent_layers(batch_first):
    model, x = Letters(batch_first), torch.randint(11, (20, 5))
    assert chosen(model, x) == {"lstm": (9, "features-last")}
    steps = model.letters(x if batch_first else x.T)
    states = model.lstm(steps)[0].detach().mean(dim=1 if batch_first else 0)
    assert captured(model, x)["lstm"] == pytest.approx(states.numpy(), abs=1e-5)


def test_gates_outputs_and_single_neurons_are_left_out():
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.squeeze, self.one = nn.Conv2d(3, 8, 3), nn.Linear(8, 8), nn.Linear(8, 1)
            self.relu, self.sigmoid, self.out = nn.ReLU(), nn.Sigmoid(), nn.Linear(8, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.relu(self.conv(x))
            x = x * self.sigmoid(self.squeeze(x.mean(dim=(2, 3))))[:, :, None, None]
            x = x.mean(dim=(2, 3))
            return functional.relu(self.out(x * torch.relu(self.one(x))))

    reasons = {one.name: (one.chosen, one.why) for one in propose_layers(Gated(), torch.randn(20, 3, 8, 8))}
    assert reasons == {
        "relu": (True, "what ReLU makes of conv"),
        "sigmoid": (False, "a gate, beside other activation functions"),
        "relu()": (False, "has one neuron alone"),
        "relu()#2": (False, "what the model itself returns"),
    }


def test_a_network_of_sigmoids_has_neurons_and_one_without_activation_functions_its_layers():
    sigmoids = nn.Sequential(nn.Linear(4, 6), nn.Sigmoid(), nn.Linear(6, 2))
    assert chosen(sigmoids, torch.randn(20, 4)) == {"1": (6, "features-last")}
    linear = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2))
    assert chosen(linear, torch.randn(20, 4)) == {"0": (6, "features-last")}


class Swish(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(1.702 * x)


class Gate(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x)


class Dense(nn.Module):
    """A layer with a weight and an activation function of its own."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(x @ self.weight)


class Flipped(nn.Module):
    """As in GPT-2: a linear layer that is no `Linear`."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


def test_modules_of_a_users_own_that_call_an_activation_function():
    model, x = nn.Sequential(nn.Linear(4, 6), Swish(), Dense(6, 5), Gate(), nn.Linear(5, 2)), torch.randn(20, 4)
    reasons = {one.name: (one.chosen, one.why) for one in propose_layers(model, x)}
    assert reasons == {
        "1": (True, "what Swish makes of 0"),
        "2": (True, "what Dense gives"),
        "3": (False, "a gate, beside other activation functions"),
    }
    hidden = model[0](x)
    expected = hidden * torch.sigmoid(1.702 * hidden)
    assert captured(model, x)["1"] == pytest.approx(expected.detach().numpy(), abs=1e-5)
    tokens = nn.Sequential(Flipped(4, 9), Swish(), Flipped(9, 4))
    assert chosen(tokens, torch.randn(20, 7, 4)) == {"1": (9, "features-last")}
    assert captured(tokens, torch.randn(20, 7, 4))["1"].shape == (20, 9)


class StepsFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16)
        self.embed, self.encoder = nn.Linear(5, 8), nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embed(x).transpose(0, 1)).mean(dim=0))


@pytest.mark.parametrize("steps", [2, 3, 6])
def test_transformers_with_steps_first(steps):
    """Whatever the number of steps, which may be that of the examples by chance."""
    model, x = StepsFirst().eval(), torch.randn(20, steps, 5)
    assert chosen(model, x) == {"encoder.layers.0.relu()": (16, "steps-first")}
    part = model.encoder.layers[0]
    with torch.no_grad():
        tokens = model.embed(x).transpose(0, 1)
        after = part.norm1(tokens + part.self_attn(tokens, tokens, tokens)[0])
        expected = torch.relu(part.linear1(after)).mean(dim=0)
    assert captured(model, x)["encoder.layers.0.relu()"] == pytest.approx(expected.numpy(), abs=1e-5)
    first = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    last = nn.Sequential(nn.Linear(5, 8), first, nn.Flatten(), nn.Linear(8 * steps, 3))
    assert chosen(last, x) == {"1.relu()": (16, "features-last")}


@pytest.mark.slow(15)
def test_transformers_of_hugging_face():
    torchvision_datasets()  # which it imports
    from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2ForSequenceClassification

    heads = {"num_attention_heads": 2, "num_hidden_layers": 2, "num_labels": 3}
    bert = BertConfig(vocab_size=50, hidden_size=32, intermediate_size=64, **heads)
    gpt = GPT2Config(vocab_size=50, hidden_size=32, pad_token_id=0, bos_token_id=1, eos_token_id=1, **heads)
    tokens = torch.randint(2, 50, (20, 7))
    for model, name, width in (
        (BertForSequenceClassification(bert), "bert.encoder.layer.{}.intermediate.intermediate_act_fn", 64),
        (GPT2ForSequenceClassification(gpt), "transformer.h.{}.mlp.act", 128),
    ):
        found = chosen(model, tokens)
        assert {name.format(layer): (width, "features-last") for layer in (0, 1)}.items() <= found.items()
        assert captured(model, tokens)[name.format(1)].shape == (20, width)


def test_what_cannot_be_read_is_said():
    class Odd(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x.transpose(1, 2) * 2).sum(dim=(1, 2))

    with pytest.raises(ValueError, match=r"no layer of the model can be proposed .*name some with layers"):
        propose_layers(nn.Sequential(Odd()), torch.randn(20, 4, 5))
    with pytest.raises(RuntimeError, match=r"model failed on inputs \(3, 9\) float32"):
        propose_layers(nn.Sequential(nn.Linear(4, 2)), torch.randn(20, 9))
