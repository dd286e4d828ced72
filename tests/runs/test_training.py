from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from nbutils.data.datasets import load_dataset
from nbutils.runs.models import build_model
from nbutils.runs.training import TrainingSettings, one_thread, score, sharpness, train, worst_sharpness
from nbutils.runs.weights import margins


def trained(seed: int = 0, dropout: float = 0.0, **settings) -> np.ndarray:
    data = load_dataset("digits")
    torch.manual_seed(5)
    model = build_model("mlp:16", 64, 10, dropout)
    with one_thread():
        for _ in train([model], [data], TrainingSettings(epochs=2, **settings), [seed]):
            pass
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy()


def test_same_seed_same_network_bit_for_bit():
    for dropout in (0.0, 0.3):
        assert (trained(dropout=dropout) == trained(dropout=dropout)).all()
    assert (trained(seed=1) != trained(seed=2)).any()
    assert (trained(dropout=0.3, seed=1) != trained(dropout=0.3, seed=2)).any()


def test_the_caller_s_randomness_is_left_alone():
    torch.manual_seed(7)
    data, model = load_dataset("digits"), build_model("mlp:4", 64, 10, dropout=0.5)
    before = torch.get_rng_state()
    list(train([model], [data], TrainingSettings(epochs=1), seeds=[0]))
    assert (torch.get_rng_state() == before).all()


def test_one_step_of_adam_by_hand():
    data = load_dataset("digits")
    model = torch.nn.Linear(64, 10)
    first = model.weight.detach().clone()
    settings = TrainingSettings(epochs=1, batch_size=len(data.train_inputs), learning_rate=0.01)
    list(train([model], [data], settings, seeds=[0]))
    step = (model.weight.detach() - first).abs()
    # Adam's first step has length lr for every weight whose gradient is not tiny.
    assert step.max().item() == pytest.approx(0.01, rel=1e-3)
    assert (step[step > 0].median().item()) == pytest.approx(0.01, rel=0.05)


def test_training_learns():
    data, model = load_dataset("digits"), build_model("mlp:32", 64, 10)
    list(train([model], [data], TrainingSettings(epochs=8), seeds=[0]))
    logits = model(torch.from_numpy(data.test_inputs)).detach().numpy()
    assert score(logits, data.test_labels)[1] > 0.85


def test_score_by_hand():
    loss, accuracy = score(np.log(np.array([[0.5, 0.5], [0.9, 0.1]], dtype=np.float32)), np.array([0, 1]))
    assert loss == pytest.approx(-(np.log(0.5) + np.log(0.1)) / 2, rel=1e-6)
    assert accuracy == 0.5


def test_threads_are_restored():
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_what_does_not_fit_together_is_refused():
    data, settings = load_dataset("digits"), TrainingSettings(epochs=1)
    with pytest.raises(ValueError, match="received 2 models, 1 data sets, 2 settings and 2 seeds"):
        next(train([build_model("mlp:4", 64, 10)] * 2, [data], settings, [0, 1]))
    with pytest.raises(ValueError, match="received 0 models"):
        next(train([], [], settings, []))
    models, fewer = [build_model("mlp:4", 64, 10) for _ in range(2)], load_dataset("digits", examples=640)
    with pytest.raises(ValueError, match=r"must take whole batches, received \[640, 1437\] images and batches of 32"):
        next(train(models, [data, fewer], settings, [0, 1]))
    with pytest.raises(ValueError, match="must share how images are prepared"):
        next(train(models, [data, load_dataset("digits", preprocessing="standard")], settings, [0, 1]))
    with pytest.raises(ValueError, match=r"must share their batch_size, received \[16, 32\]"):
        next(train(models, [data] * 2, [settings, TrainingSettings(batch_size=16)], [0, 1]))


def test_margins_by_hand():
    logits = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, 5.0]], dtype="f4")
    assert margins(logits, np.array([0, 1])).tolist() == [1.0, -5.0]
    assert logits.tolist() == [[3.0, 1.0, 2.0], [0.0, 0.0, 5.0]]


def test_sharpness_of_two_weights_by_hand():
    """For one example of input 1, the loss is log(1 + exp(w_1 - w_0)): computed here from the same draws."""
    model = torch.nn.Linear(1, 2, bias=False)
    inputs, labels = torch.ones(1, 1), torch.zeros(1, dtype=torch.int64)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0], [-1.0]]))
    before = model.weight.clone()
    draws = torch.randn(3, 2, 1, generator=torch.Generator().manual_seed(0))
    shaken = model.weight.detach() * (1 + 0.2 * draws)
    rises = torch.nn.functional.softplus(shaken[:, 1, 0] - shaken[:, 0, 0]) - np.log1p(np.exp(-2.0))
    assert sharpness(model, inputs, labels) == pytest.approx(float(rises.mean()), abs=1e-6)
    assert (model.weight == before).all()
    with torch.no_grad():
        model.weight.zero_()
    assert sharpness(model, inputs, labels) == 0.0


def test_worst_sharpness_of_two_weights_by_hand():
    """The loss log(1 + exp(w_1 - w_0)) rises most where w_0 falls and w_1 rises by all they may."""
    model = torch.nn.Linear(1, 2, bias=False)
    inputs, labels = torch.ones(1, 1), torch.zeros(1, dtype=torch.int64)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0], [-1.0]]))
    before = model.weight.clone()
    expected = np.log1p(np.exp(-0.9 - 0.9)) - np.log1p(np.exp(-2.0))
    assert worst_sharpness(model, inputs, labels, share=0.1) == pytest.approx(expected, abs=1e-6)
    assert (model.weight == before).all()


def test_the_worst_disturbance_is_worse_than_random_ones():
    torch.manual_seed(0)
    data, model = load_dataset("digits"), build_model("mlp:16", 64, 10)
    list(train([model], [data], TrainingSettings(epochs=5), [0]))
    inputs, labels = torch.from_numpy(data.train_inputs), torch.from_numpy(data.train_labels)
    worst = worst_sharpness(model, inputs, labels, share=0.1)
    before = torch.nn.functional.cross_entropy(model(inputs), labels).item()
    for _ in range(20):
        with torch.no_grad():
            shaken = {n: v * (1 + 0.1 * torch.empty_like(v).uniform_(-1, 1)) for n, v in model.named_parameters()}
            loss = torch.nn.functional.cross_entropy(torch.func.functional_call(model, shaken, (inputs,)), labels)
        assert 0 <= loss.item() - before < worst or loss.item() < before


def test_training_on_brighter_images_is_training_on_scaled_pixels():
    data = load_dataset("digits")
    bright = replace(data, levels=8)
    twice = trained(input_scale=2.0)
    torch.manual_seed(5)
    model = build_model("mlp:16", 64, 10, 0.0)
    with one_thread():
        list(train([model], [bright], TrainingSettings(epochs=2), [0]))
    assert (torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy() == twice).all()
