from __future__ import annotations

import pytest
import torch

from nbutils.runs.models import build_model, hidden_widths, parameter_count
from nbutils.runs.spec import RunSpec


def test_shapes_and_names():
    model = build_model("mlp:7-5", inputs=3, classes=2, dropout=0.1)
    assert model(torch.zeros(4, 3)).shape == (4, 2)
    assert [name for name, _ in model.named_children()] == ["hidden1", "hidden2", "output"]
    assert model.hidden2.linear.weight.shape == (5, 7)
    assert model.hidden1.dropout.p == 0.1
    assert not hasattr(build_model("mlp:7", 3, 2).hidden1, "dropout")


def test_number_of_parameters_by_hand():
    model = build_model("mlp:512-512", inputs=784, classes=10)
    assert sum(p.numel() for p in model.parameters()) == 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10


@pytest.mark.parametrize(
    "name", ["mlp", "mlp:", "mlp:0", "mlp:8-", "cnn:8", "mlp:8x4", "mlp:٣", "mlp:00", "mlp:8-0", "mlp:8\n", "", None, 8]
)
def test_unknown_models_are_named(name):
    with pytest.raises(ValueError, match="model must be 'mlp:' and the widths of its hidden layers"):
        hidden_widths(name)


@pytest.mark.parametrize(
    "name",
    [
        "mlp:9999999999",
        "mlp:100001",
        "mlp:" + "9" * 5000,
        "mlp:100000-100000",
        "mlp:" + "-".join(["1"] * 101),
    ],
)
def test_models_that_no_memory_holds_are_refused_by_name(name):
    words = "model must have at most 100 hidden layers of at most 100,000 neurons and at most 500,000,000 weights"
    for check in (hidden_widths, lambda model: RunSpec(model=model), lambda model: build_model(model, 4, 2)):
        with pytest.raises(ValueError, match=words) as caught:
            check(name)
        assert len(str(caught.value)) < 600


def test_weights_of_the_first_layer_count_too():
    assert hidden_widths("mlp:100000") == (100_000,)
    with pytest.raises(
        ValueError, match=r"at most 500,000,000 weights, received 'mlp:100000', which has 1,200,600,005"
    ):
        build_model("mlp:100000", 12_000, 5)
    with pytest.raises(ValueError, match="at most 500,000,000 weights"):
        parameter_count("mlp:100000", 12_000, 5)


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_bad_dropout_is_named(dropout):
    with pytest.raises(ValueError, match="dropout must be at least 0 and below 1"):
        build_model("mlp:4", 3, 2, dropout)


def test_glorot_as_keras_has_it():
    torch.manual_seed(0)
    first = build_model("mlp:300", 500, 10, initialisation="glorot")[0].linear
    bound = (6 / 800) ** 0.5
    assert float(first.bias.detach().abs().max()) == 0
    assert bound * 0.999 < float(first.weight.detach().abs().max()) <= bound
    assert float(first.weight.detach().var()) == pytest.approx(bound**2 / 3, rel=0.02)
    with pytest.raises(ValueError, match="initialisation must be one of pytorch, glorot, he, lecun, received 'xavier'"):
        build_model("mlp:3", 5, 10, initialisation="xavier")
