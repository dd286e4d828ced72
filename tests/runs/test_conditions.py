"""Conditions of training: each does what its formula says, and what makes no sense together is refused."""

import re
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

from nbutils.activations import above_least, firing
from nbutils.data.datasets import hold_back, load_dataset
from nbutils.runs.conditions import ACTIVATIONS, CLIPPINGS, OPTIMISERS, SCHEDULES, raised, read_rule
from nbutils.runs.looks import RelativeLook, look_at
from nbutils.runs.models import build_model
from nbutils.runs.recording import record_runs
from nbutils.runs.run import run_once, run_together
from nbutils.runs.spec import CONDITIONS, RunSpec
from nbutils.runs.training import Single, TrainingSettings, train

STEPS = 10  # per epoch


def rates(schedule, epochs=3, metrics=()):
    """Learning rate of every step, as a training loop meets it."""
    single = Single(
        nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)), settings(schedule=schedule), steps=STEPS
    )
    found = []
    for epoch in range(epochs):
        for _ in range(STEPS):
            found.append(single._optimiser.param_groups[0]["lr"])
            single.step(torch.ones(1, 4, 2), torch.zeros(1, 4, dtype=torch.int64))
        single.end_epoch(metrics[epoch] if metrics else None)
    return np.array(found)


def settings(**more):
    return TrainingSettings(learning_rate=0.1, **more)


def test_schedules_follow_their_formulas():
    t = np.arange(3 * STEPS) / STEPS
    assert np.allclose(rates("constant"), 0.1)
    assert np.allclose(rates("power:2:1"), 0.1 / (1 + t / 2))
    assert np.allclose(rates("power:0.5:2"), 0.1 / (1 + t / 0.5) ** 2)
    assert np.allclose(rates("exponential:2"), 0.1 * 0.1 ** (t / 2))


def test_performance_divides_when_the_metric_stalls():
    found = rates("performance:4:2", epochs=6, metrics=(0.5, 0.6, 0.6, 0.55, 0.7, 0.7))[::STEPS]
    assert np.allclose(found, [0.1, 0.1, 0.1, 0.1, 0.025, 0.025])


def test_a_schedule_that_watches_needs_a_metric():
    data, model = load_dataset("digits"), build_model("mlp:4", 64, 10)
    with pytest.raises(ValueError, match="metric must be given for schedule 'performance:2:1'"):
        list(train([model], [data], TrainingSettings(schedule="performance:2:1"), [0]))


def test_clipping():
    weight = nn.Parameter(torch.zeros(2))
    for name, kept in (("none", [3.0, -4.0]), ("value:2", [2.0, -2.0]), ("norm:1", [0.6, -0.8])):
        weight.grad = torch.tensor([3.0, -4.0])
        rule, numbers = read_rule(name, CLIPPINGS, "clipping")
        rule.make([weight], *numbers)
        assert torch.allclose(weight.grad, torch.tensor(kept), atol=1e-5)


def test_sam_takes_slopes_uphill():
    """On (w - 3)^2 / 2 from 0: slope -3, climbs to -0.5, slope there -3.5."""
    weight = nn.Parameter(torch.tensor([0.0]))
    rule, numbers = read_rule("sam:0.5", OPTIMISERS, "optimiser")
    optimiser = rule.make([weight], 0.1, 0.0, *numbers)

    def slopes():
        optimiser.zero_grad()
        ((weight - 3) ** 2 / 2).sum().backward()

    slopes()
    with raised([weight], optimiser.radius):
        assert float(weight.detach()) == pytest.approx(-0.5)
        slopes()
    optimiser.step()
    assert float(weight.detach()) == pytest.approx(0.35)


def test_sgd_is_that_of_pytorch():
    data, model = load_dataset("digits", examples=64), build_model("mlp:4", 64, 10)
    twin = deepcopy(model)
    list(train([model], [data], settings(epochs=1, batch_size=64, optimiser="sgd:0.9"), [0]))
    loss = nn.functional.cross_entropy(twin(torch.from_numpy(data.train_inputs)), torch.from_numpy(data.train_labels))
    loss.backward()
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.allclose(ours, theirs - 0.1 * theirs.grad, atol=1e-6)


@pytest.mark.parametrize(("term", "extra"), [("l1", torch.sign), ("l2", lambda weight: weight)])
def test_shrinking_terms_reach_weights_only(term, extra):
    model = build_model("mlp:4", 3, 2)
    twin, inputs, labels = deepcopy(model), torch.randn(1, 8, 3), torch.zeros(1, 8, dtype=torch.int64)
    Single(model, settings(optimiser="sgd:0", **{term: 0.5})).step(inputs, labels)
    Single(twin, settings(optimiser="sgd:0")).step(inputs, labels)
    first, second = model.hidden1.linear, twin.hidden1.linear
    assert torch.equal(first.bias, second.bias)
    start = second.weight + 0.1 * second.weight.grad
    assert torch.allclose(first.weight, second.weight - 0.1 * 0.5 * extra(start), atol=1e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_and_its_initialisation_keep_signals_alive(name):
    torch.manual_seed(0)
    model = build_model("mlp:" + "-".join(["200"] * 6), 200, 10, 0.0, ACTIVATIONS[name].initialisation, name).eval()
    signal = torch.randn(500, 200)
    for block in list(model)[:-1]:
        signal = block(signal)
    assert 0.02 < float(signal.detach().std()) < 3
    assert type(getattr(model.hidden1, name)) is getattr(nn, ACTIVATIONS[name].module)


def test_batch_normalisation_stands_where_it_is_asked_for():
    before, after = (build_model("mlp:4", 3, 2, 0.1, normalisation=where) for where in ("before", "after"))
    assert list(dict(before.hidden1.named_children())) == ["linear", "norm", "relu", "dropout"]
    assert list(dict(after.hidden1.named_children())) == ["linear", "relu", "norm", "dropout"]


SENSELESS = {
    "activation and normalisation must be": {"model": "vgg:4", "normalisation": "before"},
    "dropout must be 0 with activation 'selu'": {"activation": "selu", "dropout": 0.1},
    "normalisation must be 'none' with activation 'selu'": {"activation": "selu", "normalisation": "after"},
    "weight_decay must be 0 with optimiser 'sgd:0.9'": {"optimiser": "sgd:0.9", "weight_decay": 0.1},
    "weight_decay and l2 both shrink": {"l2": 0.1, "weight_decay": 0.1},
    "validation must be above 0": {"patience": 2},
    "validation must be 0 where nothing": {"validation": 0.1},
    "patience must be None with stop_at": {"patience": 2, "validation": 0.1, "stop_at": 0.9},
    "frozen_epochs must be 0 without start_from": {"frozen_epochs": 1},
    "frozen_epochs must be at most epochs, 10": {"frozen_epochs": 11, "start_from": "mnist-5k"},
    "start_from must be another data set": {"start_from": "digits"},
    "penalty 'selectivity' needs": {"penalty": "selectivity:1", "activation": "tanh"},
    "penalty must be 'none' rather than": {"penalty": "modularity:0"},
    "schedule must be 'power:<epochs>:<exponent>', received 'power'": {"schedule": "power"},
    "schedule must have divisor from 1.01 to 1000": {"schedule": "performance:1:2"},
    "optimiser must be one of adam, sgd:<momentum>, sam:<radius>, received 'rmsprop'": {"optimiser": "rmsprop"},
    "clipping must be 'norm:<most>', received 'norm:nan'": {"clipping": "norm:nan"},
}


@pytest.mark.parametrize("sentence", SENSELESS)
def test_senseless_combinations_are_refused(sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        RunSpec(**SENSELESS[sentence])


def test_images_of_another_shape_cannot_be_started_from():
    with pytest.raises(ValueError, match=r"start_from must have images of \(8, 8\)"):
        run_once(RunSpec(start_from="mnist-5k", epochs=1, model="mlp:4"))


def test_what_is_left_as_it_is_has_no_place_among_the_parameters():
    assert not set(RunSpec().model_dump()) & set(CONDITIONS)
    changed = RunSpec(schedule="power:2.0:1", l1=0.1).model_dump()
    assert {name: changed[name] for name in set(changed) & set(CONDITIONS)} == {"schedule": "power:2:1", "l1": 0.1}
    assert RunSpec(**changed) == RunSpec(schedule="power:2:1", l1=0.1)


def test_images_held_back_are_not_trained_on():
    data = load_dataset("digits", labels="mixed:0.5")
    rest, held = hold_back(data, 0.25)
    assert len(rest.train_labels) + len(held.train_labels) == len(data.train_labels)
    assert len({image.tobytes() for image in rest.train_pixels} & {image.tobytes() for image in held.train_pixels}) <= 2
    assert np.bincount(held.train_true).min() >= len(held.train_true) // 10
    assert hold_back(data, 0)[0] is data
    with pytest.raises(ValueError, match=r"at least one image of 1,437, received 0\.0001"):
        hold_back(data, 0.0001)


def test_early_stopping_puts_the_best_weights_back():
    shared = {"model": "mlp:16", "validation": 0.2, "learning_rate": 0.02, "labels": "mixed:0.3"}
    run = run_once(RunSpec(epochs=12, patience=2, **shared))
    best = run.last_epoch
    assert 0 < best < 12
    assert [row["epoch"] for row in run.record["history"]] == list(range(best + 1))
    short = run_once(RunSpec(epochs=best, patience=50, **shared))  # its last epoch is its best: nothing is put back
    assert short.last_epoch == best
    for ours, theirs in zip(run.network().parameters(), short.network().parameters(), strict=True):
        assert torch.equal(ours, theirs)
    quiet = run_once(RunSpec(epochs=12, patience=2, every_epoch=False, **shared))
    assert [row["epoch"] for row in quiet.record["history"]] == [0, best]
    assert quiet.history.iloc[-1].equals(run.history.iloc[-1].rename(1))


def test_transfer_takes_hidden_layers_over_and_lets_the_top_go():
    base = run_once(RunSpec(dataset="digits", model="mlp:12-8", epochs=3))
    later = RunSpec(
        dataset="digits", labels="random", model="mlp:12-8", epochs=2, start_from="mnist-5k", frozen_epochs=1
    )
    start = base.store.arrays(base.address, "last_weights")
    ((found, arrays),) = record_runs([later], [start])
    first, last = arrays["first_weights"], arrays["last_weights"]
    assert not found["reason"]
    assert all(np.array_equal(first[name], start[name]) for name in start if name.startswith("hidden"))
    assert not np.array_equal(first["output.weight"], start["output.weight"])
    assert np.array_equal(last["hidden1.linear.weight"], start["hidden1.linear.weight"])
    assert not np.array_equal(last["hidden2.linear.weight"], start["hidden2.linear.weight"])
    ((failed, _),) = record_runs([later], [None])
    assert failed["reason"] == "start_from: the network on 'mnist-5k' failed"


@pytest.mark.parametrize("name", [name for name, one in ACTIVATIONS.items() if one.relative])
def test_firing_is_relative_where_units_can_be_negative(name):
    run = run_once(RunSpec(model="mlp:12", epochs=1, activation=name, every_epoch=False))
    look = look_at(run)
    assert isinstance(look, RelativeLook)
    assert (look.activations.min(axis=0) == 0).all()
    share = look.fired.mean(axis=0)
    assert ((share >= 0.1) & (share < 0.2)).all()  # a tenth, and ties
    before = (
        look.inputs @ run.network()[0].linear.weight.detach().numpy().T + run.network()[0].linear.bias.detach().numpy()
    )
    assert (look.positive == (before > 0)).mean() > 0.999
    assert 0.05 < run.fired(-1, "positive").mean() < 0.95


def test_a_gelu_fires_where_it_is_positive():
    """Its outputs rise again towards 0 for inputs far below 0: their order says nothing."""
    look = look_at(run_once(RunSpec(model="mlp:12", epochs=1, activation="gelu", every_epoch=False)))
    assert look.preactivations.min() < 0
    assert not look.fired[look.preactivations <= 0].any()
    assert np.array_equal(look.positive, look.preactivations > 0)


def test_above_least_leaves_the_order_alone():
    values = np.random.default_rng(0).normal(size=(50, 4))
    values[:, 3] = -2.0
    fired = firing(above_least(values), "top:0.2")
    assert (fired.sum(axis=0) == [10, 10, 10, 0]).all()
    assert np.array_equal(fired[:, :3], values[:, :3] >= np.sort(values[:, :3], axis=0)[-10])


def test_runs_with_conditions_are_trained_by_themselves():
    specs = [RunSpec(model="mlp:8", epochs=1, activation="tanh", seed=seed) for seed in (0, 1)]
    assert specs[0].alone
    assert not RunSpec().alone
    with pytest.raises(ValueError, match="are trained one at a time, received 2 side by side"):
        run_together(specs)


def test_a_schedule_can_be_added_with_a_function_and_a_line(monkeypatch):
    from nbutils.runs.conditions import EPOCHS, Rule, Schedule

    def cosine(optimiser, steps, epochs):
        return Schedule(torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * steps))

    monkeypatch.setitem(SCHEDULES, "cosine", Rule(cosine, (EPOCHS,)))
    t = np.arange(3 * STEPS) / STEPS
    assert np.allclose(rates("cosine:3"), 0.1 * (1 + np.cos(np.pi * t / 3)) / 2)
    assert RunSpec(schedule="cosine:3.0").schedule == "cosine:3"
