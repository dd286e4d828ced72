"""Convolutional networks and transformers: shapes and sums by hand, norms against unrolled matrices, runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from nbutils.capturing.hooks import capture_activations
from nbutils.data.datasets import load_dataset
from nbutils.runs.architectures import Block, Residual
from nbutils.runs.looks import look_at
from nbutils.runs.models import build_model, hidden_layers, hidden_widths, parameter_count
from nbutils.runs.norms import _folded, module_path_norm, module_spectral_norms
from nbutils.runs.run import run_once, run_together
from nbutils.runs.spec import RunSpec
from nbutils.runs.training import Single, Stack, TrainingSettings, settle, train
from nbutils.runs.weights import path_norm, spectral_norms

KINDS = ("vgg:4-4-8-8", "resnet:8-4", "vit:16-2")


def lively(model: nn.Module) -> nn.Module:
    """In evaluation mode, with batch normalisation that does something."""
    for one in model.modules():
        if isinstance(one, nn.BatchNorm2d):
            one.running_mean.normal_()
            one.running_var.uniform_(0.5, 2)
            nn.init.uniform_(one.weight, 0.5, 2)
            nn.init.normal_(one.bias)
    return model.eval()


@pytest.mark.parametrize("model", KINDS)
def test_widths_are_those_of_what_is_captured(model):
    network = build_model(model, (8, 8, 3), 5)
    layers, layout = hidden_layers(model)
    seen = capture_activations(network, np.random.default_rng(0).random((6, 192), np.float32), layers, layout=layout)
    assert tuple(one.shape[1] for one in seen.values()) == hidden_widths(model)
    assert network(torch.zeros(2, 192)).shape == (2, 5)
    assert parameter_count(model, (8, 8, 3), 5) == sum(one.numel() for one in network.parameters())


def test_the_residual_network_of_the_paper_has_as_many_weights_as_published():
    assert round(parameter_count("resnet:20-16", (32, 32, 3), 10), -4) == 270_000  # 0.27 million, table 6
    assert round(parameter_count("resnet:56-16", (32, 32, 3), 10), -4) == 850_000


def test_images_are_read_as_they_are_stored():
    """Pixels are stored row by row, colours last; a convolution wants channels first."""
    image = torch.arange(2 * 3 * 3.0).view(1, 2, 3, 3)
    pictures = build_model("vgg:1", (2, 3, 3), 2).pictures
    assert torch.equal(pictures(image.reshape(1, -1))[0, 2], image[0, :, :, 2])
    assert build_model("vgg:1", (2, 3), 2).pictures(torch.zeros(4, 6)).shape == (4, 1, 2, 3)


def test_stages_halve_positions():
    network = build_model("vgg:2-2-4-8", (8, 8), 3)
    sides = []
    for unit in (network.unit1, network.unit2, network.unit3, network.unit4):
        unit.register_forward_hook(lambda _m, _i, output: sides.append(output.shape[-1]))
    network(torch.zeros(2, 64))
    assert sides == [8, 8, 4, 2]


def test_a_residual_block_by_hand():
    torch.manual_seed(0)
    block, x = lively(Residual(2, 4)), torch.randn(3, 2, 6, 6)
    inner = functional.relu(block.norm1(functional.conv2d(x, block.conv1.weight, None, 2, 1)))
    inner = block.norm2(functional.conv2d(inner, block.conv2.weight, None, 1, 1))
    around = torch.cat([x[:, :, ::2, ::2], torch.zeros(3, 2, 3, 3)], dim=1)
    assert torch.equal(block(x), functional.relu(inner + around))


def test_a_transformer_block_is_that_of_pytorch():
    torch.manual_seed(0)
    own = Block(32, 0.0).eval()
    theirs = nn.TransformerEncoderLayer(32, 2, 64, 0.0, "gelu", batch_first=True, norm_first=True).eval()
    pairs = [(own.attention, theirs.self_attn), (own.widen, theirs.linear1), (own.narrow, theirs.linear2)]
    for one, other in [*pairs, (own.norm1, theirs.norm1), (own.norm2, theirs.norm2)]:
        other.load_state_dict(one.state_dict())
    tokens = torch.randn(4, 9, 32)
    assert torch.allclose(own(tokens), theirs(tokens), atol=1e-6)


@pytest.mark.parametrize("model", KINDS)
def test_folding_leaves_the_function_as_it_is(model):
    torch.manual_seed(1)
    network, x = lively(build_model(model, (8, 8, 3), 5)), torch.randn(4, 192)
    folded = _folded(network)
    assert torch.allclose(folded(x), network(x), atol=1e-4)
    assert not any(isinstance(one, nn.BatchNorm2d) for one in folded.modules())


def test_norms_of_an_mlp_are_those_of_its_matrices():
    torch.manual_seed(2)
    network = build_model("mlp:7-5", 6, 3).eval()
    state = [one.detach().double().numpy() for one in network.state_dict().values()]
    assert module_path_norm(network, 6) == pytest.approx(path_norm(state[::2], state[1::2]))
    assert module_spectral_norms(network) == pytest.approx(spectral_norms(state[::2]))


def test_path_norm_of_convolutions_by_unrolling_them_into_matrices():
    """No pooling by maximum here: every layer is linear, so that images of single pixels give its matrix."""
    torch.manual_seed(3)
    network = lively(build_model("vgg:2-2", (3, 3, 2), 3)).double()
    folded = _folded(network)
    matrices, shifts = [], []
    for number, layer in enumerate([folded.unit1.conv, folded.unit2.conv]):
        zero = torch.zeros(1, 2, 3, 3).double()
        shift = layer(zero).flatten()
        columns = layer(torch.eye(18).double().view(18, 2, 3, 3)).flatten(1) - shift
        matrices.append(columns.T.detach().numpy())
        shifts.append(shift.detach().numpy())
        assert matrices[number].shape == (18, 18)
    mean = np.kron(np.eye(2), np.full((1, 9), 1 / 9))
    matrices.append(folded.output.weight.detach().numpy() @ mean)  # one linear map in evaluation, two sets of paths
    shifts.append(folded.output.bias.detach().numpy())
    squared = folded.output.weight.detach().numpy() ** 2 @ mean**2
    reached = np.ones(18)
    for matrix, shift in zip(matrices[:2], shifts[:2], strict=True):
        reached = matrix**2 @ reached + shift**2
    expected = math.sqrt((squared @ reached + shifts[2] ** 2).sum())
    assert module_path_norm(network, 18) == pytest.approx(expected)


def test_a_way_around_layers_is_a_path_of_weight_one():
    network = build_model("resnet:8-1", (4, 4), 2).eval()
    for name, one in network.named_parameters():
        nn.init.zeros_(one) if "conv" in name or "bias" in name else nn.init.ones_(one)
    network.unit.conv.weight.data[0, 0, 1, 1] = 1  # the first layer copies its input
    # 16 pixels go around all blocks, every second position is kept twice: 1 is left, on the first of four channels.
    scale = 1 / (1 + 1e-5)  # of a batch normalisation that has seen variance 1
    assert module_path_norm(network, 16) == pytest.approx(math.sqrt(2 * scale), rel=1e-6)


def test_attention_has_no_path_norm():
    assert math.isnan(module_path_norm(build_model("vit:16-1", (8, 8), 3).eval(), 64))
    assert len(module_spectral_norms(build_model("vit:16-1", (8, 8), 3).eval())) == 6


def test_settled_normalisation_knows_what_it_is_given():
    torch.manual_seed(4)
    network, x = build_model("vgg:4", (8, 8), 3), 3 + 2 * torch.randn(60, 64)
    settle(network, lambda chosen: x[chosen], 60, size=60)
    outputs = network.unit1.norm(network.unit1.conv(network.pictures(x)))
    assert outputs.mean(dim=(0, 2, 3)).abs().max() < 1e-5
    assert torch.allclose(outputs.var(dim=(0, 2, 3)), torch.ones(4), atol=1e-3)
    assert not network.training
    assert network.unit1.norm.momentum == 0.1


def test_a_single_step_is_that_of_a_stack():
    torch.manual_seed(5)
    one, other = (build_model("mlp:6", 9, 3) for _ in range(2))
    other.load_state_dict(one.state_dict())
    x, y = torch.randn(1, 16, 9), torch.randint(3, (1, 16))
    stack, single = Stack([one], 0.01, 0.1), Single(other, TrainingSettings(learning_rate=0.01, weight_decay=0.1))
    for _ in range(5):
        stack.step(x, y)
        with single.training([np.random.default_rng(0)]):
            single.step(x, y)
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_other_networks_are_trained_one_at_a_time():
    data, models = load_dataset("digits"), [build_model("vgg:2", (8, 8), 10) for _ in range(2)]
    with pytest.raises(ValueError, match=r"are trained one at a time, received 2 side by side"):
        next(train(models, [data] * 2, TrainingSettings(epochs=1), [0, 1]))


@pytest.mark.parametrize("model", KINDS)
def test_a_run_is_the_same_again_and_disturbs_nothing(model, tmp_path, monkeypatch):
    spec = RunSpec(model=model, epochs=2, examples=200, dropout=0.2, weight_decay=0.1)
    before = torch.random.get_rng_state()
    first = run_once(spec)
    assert torch.equal(before, torch.random.get_rng_state())
    monkeypatch.setenv("NBUTILS_STORE", str(tmp_path / "another"))
    second = run_once(spec)
    for epoch in (0, 2):
        assert np.array_equal(first.fired(epoch), second.fired(epoch))
    assert first.history.equals(second.history)
    assert first.history["train_loss"].iloc[-1] < first.history["train_loss"].iloc[0]
    assert len(first.layers) == sum(hidden_widths(model)) == first.fired(2).shape[1]
    x = torch.from_numpy(spec.data().test_inputs[:5])
    assert torch.equal(first.network()(x), second.network()(x))


def test_a_look_has_what_measures_need():
    run = run_once(RunSpec(model="resnet:8-4", epochs=1, examples=200))
    look = look_at(run)
    assert look.weights == ()
    assert look.activations.shape == (len(look.labels), sum(hidden_widths("resnet:8-4")))
    assert look.last.shape[1] == 16
    assert (look.activations >= 0).all()
    logits = look.network(torch.from_numpy(look.inputs)).detach().numpy()
    assert np.allclose(logits, look.logits, atol=1e-4)


def test_training_that_diverges_is_told_apart():
    run = run_once(RunSpec(model="vit:16-1", epochs=2, examples=100, learning_rate=1e30))
    assert run.failed.startswith("training diverged: after epoch")


def test_runs_of_one_kind_are_made_one_by_one():
    specs = [RunSpec(model="vgg:2", epochs=1, examples=100, seed=seed) for seed in (7, 8)]
    with pytest.raises(ValueError, match="one at a time"):
        run_together(specs)


@pytest.mark.parametrize(
    ("model", "inputs", "words"),
    [
        ("vgg:4", 64, r"inputs must be the shape of an image"),
        ("vit:16-1", (9, 8), r"sides divisible by 4 for 'vit:16-1', received 9x8"),
        ("vgg:1-2-4", (2, 2), r"at least 4 pixels on a side for 'vgg:1-2-4', received 2x2"),
        ("resnet:9-4", (8, 8), r"its depth 6 n \+ 2"),
        ("vit:20-1", (8, 8), r"a multiple of 16"),
        ("resnet:20", (8, 8), r"its depth 6 n \+ 2 and the channels"),
        ("vgg:0", (8, 8), r"the channels of its convolutions"),
        ("vgg:100000-100000", (8, 8), r"at most 500,000,000 weights"),
    ],
)
def test_what_cannot_be_built_is_said(model, inputs, words):
    with pytest.raises(ValueError, match=words):
        build_model(model, inputs, 3)
