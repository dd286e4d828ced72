"""Monte-Carlo dropout: what is switched on, and entropies that can be checked by hand."""

import numpy as np
import pytest
import torch
from torch import nn

from nbutils.runs.models import build_model
from nbutils.runs.uncertainty import monte_carlo_dropout, predictive_entropy

INPUTS = np.random.default_rng(0).normal(size=(30, 6)).astype("f4")


def test_draws_differ_by_dropout_alone():
    torch.manual_seed(0)
    model = build_model("mlp:12-8", 6, 3, 0.5, normalisation="before")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    first, again, other = (monte_carlo_dropout(model, INPUTS, 20, seed) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.std(axis=0).max() > 0.01
    assert np.allclose(first.sum(axis=2), 1)
    assert not model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())  # no statistics moved


def test_the_mean_of_many_draws_of_one_layer_is_known():
    """Two inputs of 1, weights +-2 ln 3 to one logit, each kept half of the time and then doubled."""
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(1, 2, bias=False))
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[np.log(3) / 2], [0.0]]))
    found = monte_carlo_dropout(model, np.ones((1, 1), "f4"), 4000)[:, 0, 0]
    assert set(np.round(found, 6)) == {0.5, 0.75}
    assert found.mean() == pytest.approx(0.625, abs=0.01)


def test_entropy_and_disagreement_by_hand():
    agree = np.tile([[0.5, 0.5]], (7, 1, 1))
    found = predictive_entropy(agree)
    assert (found.total, found.disagreement) == (1.0, 0.0)
    half = np.array([[[1.0, 0.0]], [[0.5, 0.5]]])  # mean (3/4, 1/4), one draw sure, one unsure
    whole = 3 / 4 * np.log2(4 / 3) + 1 / 4 * 2
    found = predictive_entropy(half)
    assert found.total == pytest.approx(whole)
    assert found.disagreement == pytest.approx(whole - 0.5)


def test_without_dropout_there_is_nothing_to_draw():
    with pytest.raises(ValueError, match="model must have a layer of dropout"):
        monte_carlo_dropout(build_model("mlp:4", 6, 3), INPUTS)
    with pytest.raises(ValueError, match="draws must be"):
        monte_carlo_dropout(build_model("mlp:4", 6, 3, 0.5), INPUTS, draws=0)
