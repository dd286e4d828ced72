"""The sparse layer: equal to a slow reference, as dense as asked for, frozen in evaluation, an option of runs."""

import re
from math import floor

import numpy as np
import pytest
import torch
from safetensors.torch import load, save
from scipy.stats import binom
from torch import nn

from nbutils.runs.looks import look_at
from nbutils.runs.models import build_model, hidden_layers
from nbutils.runs.norms import module_path_norm
from nbutils.runs.run import run_once
from nbutils.runs.sparsity import SpatialSparsity, activation_rank, largest_of_rank
from nbutils.runs.spec import RunSpec
from nbutils.second.networks import settings_digest

SHAPES = {"vector": (), "1-d": (7,), "2-d": (5, 6)}


def batches(count, positions, channels=3, examples=11, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(examples, channels, *positions)).astype(np.float32) for _ in range(count)]


def by_hand(given, density, thresholds, least):
    """Thresholds and outputs, batch by batch, with all values kept and sorted."""
    channels = given[0].shape[1]
    rows = channels if thresholds == "channel" else 1
    t, waiting, outputs = np.zeros(rows), [], []
    for batch in given:
        values = np.moveaxis(batch, 1, 0).reshape(channels, -1)
        values = values if rows == channels else values.reshape(1, -1)
        due = values.shape[1] * density >= least
        held = values if due else np.hstack([*waiting, values])
        if due or held.shape[1] * density >= least:
            k = max(1, floor(held.shape[1] * density))
            t, waiting = 0.9 * t + 0.1 * np.sort(held, axis=1)[:, -k], []
        else:
            waiting = [held]
        outputs.append(np.maximum(batch - t.reshape(1, -1, *[1] * (batch.ndim - 2)), 0))
    return t, outputs


@pytest.mark.parametrize("positions", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("thresholds", ["channel", "global"])
@pytest.mark.parametrize(("density", "least"), [(0.5, 1), (0.3, 1), (0.05, 1), (0.013, 1), (0.05, 10), (0.007, 3)])
def test_equal_to_a_slow_reference(positions, thresholds, density, least):
    given = batches(40, positions)
    layer = SpatialSparsity(3, density, thresholds, normalise=False, least=least)
    t, outputs = by_hand(given, density, thresholds, least)
    for batch, wanted in zip(given, outputs, strict=True):
        assert np.allclose(layer(torch.from_numpy(batch)).numpy(), wanted, atol=1e-5)
    assert np.allclose(layer.threshold.numpy(), t, atol=1e-5)


@pytest.mark.parametrize("positions", SHAPES.values(), ids=SHAPES)
def test_batch_normalisation_comes_first(positions):
    layer, norm = SpatialSparsity(3, 0.2), nn.BatchNorm1d(3)
    plain = SpatialSparsity(3, 0.2, normalise=False)
    for batch in map(torch.from_numpy, batches(20, positions)):
        moved = 50 + 9 * batch
        before = norm(moved.flatten(2) if positions else moved).view(moved.shape)
        assert torch.allclose(layer(moved), plain(before), atol=1e-5)


@pytest.mark.parametrize(
    ("density", "thresholds"),
    [(0.5, "global"), (0.1, "channel"), (0.01, "global"), (1e-3, "channel"), (1e-4, "channel"), (1e-4, "global")],
)
def test_density_is_the_one_that_is_asked_for(density, thresholds):
    """On new examples, within the bounds of counting both them and the activations that thresholds rest on."""
    torch.manual_seed(0)
    layer, channels = SpatialSparsity(2, density, thresholds), 2
    size = max(64, round((5 / channels if thresholds == "global" else 5) / density))
    waits = size * (channels if thresholds == "global" else 1) * density < 10
    for _ in range(160 if waits else 80):  # 80 updates: of the beginning, 0.02 % is left
        layer(torch.randn(size, channels))
    count = max(10, floor(size * density))
    new = max(20_000, round(40 / density))
    active = [int((layer.eval()(torch.randn(new, channels)) > 0)[:, one].sum()) for one in range(channels)]
    # A mean of the last ten updates, each of `count` activations, is as sure as 19 times as many.
    spread = 4 * density * np.sqrt((1 - density) / (19 * count))
    low, high = density * (1 - 0.14) - spread, density + spread
    for one in active:
        assert binom.ppf(1e-4, new, low) <= one <= binom.ppf(1 - 1e-4, new, high)


def test_single_largest_values_mislead():
    """Why ten activations are collected: the mean of largest values is exceeded half as often as once in N."""
    torch.manual_seed(0)
    reached = {}
    for least in (1, 10):
        layer = SpatialSparsity(1, 0.01, normalise=False, least=least)
        for _ in range(1500):
            layer(torch.randn(100, 1))
        reached[least] = float((layer.eval()(torch.randn(200_000, 1)) > 0).float().mean())
    assert reached[1] < 0.0075 < 0.0085 < reached[10] < 0.0115


def test_rank():
    assert [activation_rank(n, 0.1) for n in (5, 19, 20, 29, 30)] == [1, 1, 2, 2, 3]
    assert all(activation_rank(100 * n, 0.29) == 29 * n for n in range(1, 50)), "no rounding loses an activation"


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("rank", [1, 64, 65, 200, 400])
def test_the_value_of_a_rank_is_that_of_sorted_rows(kind, rank):
    rows = torch.randn(3, 400, generator=torch.Generator().manual_seed(0)).to(kind)
    assert torch.equal(largest_of_rank(rows, rank).to(kind), rows.sort(dim=1, descending=True).values[:, rank - 1])


def test_evaluation_changes_nothing():
    layer = SpatialSparsity(3, 0.2)
    for batch in batches(10, (4,)):
        layer(torch.from_numpy(batch))
    before = {name: values.clone() for name, values in layer.eval().state_dict().items()}
    first = layer(torch.from_numpy(batches(1, (4,), seed=5)[0]))
    layer(torch.full((2, 3, 4), 1e6))
    assert all(torch.equal(values, before[name]) for name, values in layer.state_dict().items())
    assert torch.equal(layer(torch.from_numpy(batches(1, (4,), seed=5)[0])), first)


@pytest.mark.parametrize("thresholds", ["channel", "global"])
def test_slopes_are_those_of_a_threshold_that_is_given(thresholds):
    layer = SpatialSparsity(3, 0.3, thresholds).double()
    for batch in batches(10, (4,)):
        layer(torch.from_numpy(batch).double())
    inputs = torch.from_numpy(batches(1, (4,), seed=7)[0]).double().requires_grad_()
    assert torch.autograd.gradcheck(layer.eval(), inputs)
    plain = SpatialSparsity(3, 0.3, thresholds, normalise=False, least=1).double()
    given = torch.from_numpy(batches(1, (4,), seed=8)[0]).double().requires_grad_()
    output = plain(given)
    output.sum().backward()
    assert torch.equal(given.grad, (output > 0).double()), "1 where active, 0 elsewhere, nothing by the threshold"
    assert not plain.threshold.requires_grad


@pytest.mark.parametrize("density", [0.3, 0.011])
def test_training_resumes_exactly(density):
    """With values waiting for an update, too."""
    whole, first = SpatialSparsity(3, density), SpatialSparsity(3, density)
    given = [torch.from_numpy(batch) for batch in batches(60, (4,))]
    for batch in given:
        last = whole(batch)
    for batch in given[:31]:
        first(batch)
    assert (int(first.seen) > 0) == (density == 0.011)
    second = SpatialSparsity(3, 0.9)
    second.load_state_dict(load(save(first.state_dict())))
    assert second.density == density
    for batch in given[31:]:
        again = second(batch)
    assert torch.equal(last, again)
    assert all(torch.equal(values, whole.state_dict()[name]) for name, values in second.state_dict().items())


def test_another_density_forgets_what_waits():
    layer = SpatialSparsity(3, 0.011)
    layer(torch.from_numpy(batches(1, ())[0]))
    assert int(layer.seen) == 11
    layer.set_density(0.005)
    assert (layer.density, int(layer.seen)) == (0.005, 0)
    assert torch.isneginf(layer.pending).all()


@pytest.mark.parametrize("density", [0, 1, -0.1, 1.5, float("nan"), float("inf"), "0.1", None, True])
def test_densities_out_of_range_are_refused(density):
    with pytest.raises((ValueError, TypeError), match="density must be"):
        SpatialSparsity(3, density)
    with pytest.raises((ValueError, TypeError), match="density must be"):
        SpatialSparsity(3, 0.1).set_density(density)


@pytest.mark.parametrize("shape", [(3,), (4, 2), (2, 3, 4, 5, 6), (0, 3), (3, 4, 5)])
def test_inputs_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match=re.escape(f"received {shape}")):
        SpatialSparsity(3, 0.1)(torch.zeros(shape))


@pytest.mark.parametrize("wrong", [{"channels": 0}, {"thresholds": "row"}, {"least": 0}, {"normalise": 3}])
def test_other_wrong_arguments_are_refused(wrong):
    with pytest.raises((ValueError, TypeError), match=f"{next(iter(wrong))} must be"):
        SpatialSparsity(**{"channels": 3, "density": 0.1, **wrong})


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_thresholds_are_not_learned_from_what_is_no_number(bad):
    layer = SpatialSparsity(2, 0.3, normalise=False)
    layer(torch.randn(50, 2))
    before, batch = layer.threshold.clone(), torch.randn(50, 2)
    batch[3, 1] = bad
    assert not torch.isfinite(layer(batch)).all(), "so that whoever looks at the output sees it"
    assert torch.equal(layer.threshold, before)


def test_a_run_with_sparse_units():
    spec = RunSpec(model="mlp:64-32", epochs=10, sparsity=0.05, every_epoch=False)
    run = run_once(spec)
    assert not run.failed
    look = look_at(run, probe="training")
    assert 0.03 < look.positive.mean() < 0.07
    assert np.array_equal(look.fired, look.positive), "units that are active on 5 % fire wherever they are active"
    assert look.run["train_accuracy"] > 0.5, "hard, for few units say anything at all about an image"
    network = run.network()
    assert [network.hidden1.sparse.density, network.hidden1.sparse.channels] == [0.05, 64]
    assert spec.alone


def test_sparse_units_are_found_by_the_wildcard_of_hidden_layers():
    from nbutils.capturing.hooks import matching_layers

    network = build_model("mlp:8-4", 6, 3, 0.1, sparsity=0.25)
    assert matching_layers(network, hidden_layers("mlp:8-4")[0]) == ["hidden1.sparse.relu", "hidden2.sparse.relu"]
    assert list(dict(network.hidden1.named_children())) == ["linear", "sparse", "dropout"]


def test_thresholds_are_biases_of_the_path_norm():
    network = build_model("mlp:3", 2, 2, sparsity=0.25)
    network.hidden1.sparse.threshold.copy_(torch.tensor([0.5, 1.0, -2.0]))
    norm, linear = network.hidden1.sparse.norm, network.hidden1.linear
    norm.running_var.fill_(1 - norm.eps)
    biases = (linear.bias - network.hidden1.sparse.threshold).detach().double().numpy() ** 2
    hidden = (linear.weight.detach().double().numpy() ** 2).sum(axis=1) + biases
    last = network.output
    wanted = last.weight.detach().double().numpy() ** 2 @ hidden + last.bias.detach().double().numpy() ** 2
    assert module_path_norm(network, 2) == pytest.approx(np.sqrt(wanted.sum()), rel=1e-5)


SENSELESS = {
    "sparsity must be 0 for model 'vgg:4'": {"model": "vgg:4"},
    "sparsity must be 0 unless activation": {"activation": "tanh"},
    "received 0.1 with 'relu' and 'before'": {"normalisation": "before"},
}


@pytest.mark.parametrize("sentence", SENSELESS)
def test_senseless_combinations_are_refused(sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        RunSpec(sparsity=0.1, **SENSELESS[sentence])
    options = {"model": "mlp:4", **SENSELESS[sentence]}
    with pytest.raises(ValueError, match=re.escape(sentence)):
        build_model(options.pop("model"), (8, 8), 3, sparsity=0.1, **options)


@pytest.mark.parametrize("sparsity", [-0.1, 1.0, float("nan")])
def test_a_sparsity_out_of_range_is_refused(sparsity):
    with pytest.raises(ValueError, match="sparsity"):
        RunSpec(sparsity=sparsity)
    with pytest.raises(ValueError, match="sparsity must be at least 0 and below 1"):
        build_model("mlp:4", 3, 2, sparsity=sparsity)


def test_runs_without_sparse_units_are_named_as_before():
    assert "sparsity" not in RunSpec().model_dump()
    assert settings_digest(RunSpec()) == "e9da27ced01eabc1"
    assert RunSpec(sparsity=0.1).model_dump()["sparsity"] == 0.1
