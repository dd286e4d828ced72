from __future__ import annotations

import pytest
import torch

from nbutils.architectures import hidden_widths
from nbutils.models import build_model


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


@pytest.mark.parametrize("name", ["mlp", "mlp:", "mlp:0", "mlp:8-", "cnn:8", "mlp:8x4", "", None, 8])
def test_unknown_models_are_named(name):
    with pytest.raises(ValueError, match="model must be 'mlp:' and the widths of its hidden layers"):
        hidden_widths(name)


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_bad_dropout_is_named(dropout):
    with pytest.raises(ValueError, match="dropout must be at least 0 and below 1"):
        build_model("mlp:4", 3, 2, dropout)
