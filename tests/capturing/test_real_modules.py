"""Modules as people use them: what is captured equals what is computed by hand, or is refused in one sentence."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from nbutils.capturing.hooks import capture, capture_activations
from nbutils.cofiring import cofiring_counts
from nbutils.data.pictures import torchvision_datasets
from nbutils.runs.models import HIDDEN_LAYERS, build_model
from nbutils.watch import Watch, count_cofiring


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def captured(model: nn.Module, inputs, layers: str = "*", **options) -> dict[str, np.ndarray]:
    return capture_activations(model, inputs, layers, batch_size=8, **options)


def by_hand(values: torch.Tensor, over: tuple[int, ...] = ()) -> np.ndarray:
    """Averaged over positions or tokens; within rounding, for batches are of another size here."""
    values = values.detach().float()
    return pytest.approx((values.mean(dim=over) if over else values).numpy(), abs=2e-6)


def test_mlp():
    model, x = build_model("mlp:7-5", 6, 3), torch.randn(20, 6)
    hidden = torch.relu(functional.linear(x, model.hidden1.linear.weight, model.hidden1.linear.bias))
    assert captured(model, x)["hidden1.relu"] == by_hand(hidden)
    hidden = torch.relu(functional.linear(hidden, model.hidden2.linear.weight, model.hidden2.linear.bias))
    assert captured(model, x, HIDDEN_LAYERS)["hidden2.relu"] == by_hand(hidden)


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_convolutions_of_any_dimension(kind, size):
    """Positions are averaged, also of the three dimensions of Conv1d, which look like tokens."""
    conv, x = getattr(nn, f"{kind}{size}d")(2, 5, 3), torch.randn(20, 2, *[6, 7, 5][:size])
    found = captured(nn.Sequential(conv), x)["0"]
    assert found.shape == (20, 5)
    assert found == by_hand(conv(x), tuple(range(2, 2 + size)))


@pytest.mark.parametrize(
    "layer", [nn.BatchNorm1d(4), nn.InstanceNorm1d(4), nn.GroupNorm(2, 4), nn.MaxPool1d(2), nn.AdaptiveAvgPool1d(3)]
)
def test_norms_and_pools_of_three_dimensions_have_channels_first(layer):
    model, x = nn.Sequential(nn.Conv1d(2, 4, 3), layer), torch.randn(20, 2, 9)
    with torch.no_grad():
        expected = model.eval()(x)
    assert captured(model, x)["1"] == by_hand(expected, (2,))


def test_layer_norm_over_one_dimension_has_features_last():
    for norm in (nn.LayerNorm(5), nn.RMSNorm(5)):
        model, x = nn.Sequential(norm), torch.randn(20, 7, 5)
        assert captured(model, x)["0"] == by_hand(norm(x), (1,))
    both, x = nn.Sequential(nn.LayerNorm((7, 5))), torch.randn(20, 7, 5)
    with pytest.raises(ValueError, match=r"layer '0' \(LayerNorm\) gave shape \(8, 7, 5\), which may be"):
        captured(both, x)
    pictures = torch.randn(20, 3, 4, 5)
    norm = nn.LayerNorm((3, 4, 5))
    assert captured(nn.Sequential(norm), pictures)["0"] == by_hand(norm(pictures), (2, 3))


class ChannelNorm(nn.LayerNorm):
    """As in ConvNeXt: a layer norm over channels, which stay in second place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def test_a_subclass_with_a_forward_of_its_own_is_not_taken_for_its_parent():
    model, x = nn.Sequential(ChannelNorm(3)), torch.randn(20, 3, 4, 5)
    assert captured(model, x)["0"] == by_hand(model(x), (2, 3))


def test_a_linear_layer_on_pictures_with_features_last():
    """As in Swin transformers: (examples, height, width, features)."""
    model, x = nn.Sequential(nn.Linear(5, 6), nn.GELU()), torch.randn(20, 3, 4, 5)
    full = model[0](x)
    assert captured(model, x, "0")["0"] == by_hand(full, (1, 2))
    assert captured(model, x, "1", layout="features-last")["1"] == by_hand(functional.gelu(full), (1, 2))


def test_three_dimensions_of_an_unknown_kind_are_asked_about():
    x = torch.randn(20, 4, 6)
    model = nn.Sequential(nn.Conv1d(4, 5, 3), nn.ReLU())
    sentence = r"layer '1' \(ReLU\) gave shape \(8, 5, 4\), which may be .*layout='channels-first' or 'features-last'"
    with pytest.raises(ValueError, match=sentence):
        captured(model, x)
    with pytest.raises(ValueError, match="layout="), count_cofiring(model):
        model(x)
    with pytest.raises(ValueError, match="layout="):
        Watch(model, x, layers="*").snapshot()
    expected = torch.relu(model[0](x)).detach()
    for layout in ("channels-first", {"1": "channels-first"}):
        assert captured(model, x, layout=layout)["1"] == by_hand(expected, (2,))
        with count_cofiring(model, "1", 0.3, layout=layout) as counter:
            model(x)
        assert (counter.counts() == cofiring_counts(expected.mean(dim=2) > 0.3)).all()
        assert Watch(model, x, layers="1", layout=layout).snapshot()["modularity"] >= 0
    assert captured(model, x, layout="features-last")["0"].shape == (20, 5), "a convolution is known by its type"
    assert captured(model, x, "1", layout={"*": "features-last"})["1"] == by_hand(expected, (1,))
    assert captured(model, x, "0", layout={"*": "features-last"})["0"] == by_hand(model[0](x), (1,))


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (
            "nchw",
            "layout must be one of 'auto', .* 'steps-first', or a mapping .* received 'nchw'",
        ),
        (None, "received None"),
        ({"1": "last"}, "layout must be one of"),
        ({"conv*": "channels-first"}, r"layout names 'conv\*', which matches none of the layers '0', '1'"),
        ({3: "auto"}, "layout names 3"),
    ],
)
def test_bad_layouts_are_named_at_once(layout, message):
    model, x = nn.Sequential(nn.Linear(4, 5), nn.ReLU()), torch.randn(20, 4)
    with pytest.raises(ValueError, match=message):
        captured(model, x, layout=layout)
    with pytest.raises(ValueError, match=message):
        Watch(model, x, layers="*", layout=layout)
    with pytest.raises(ValueError, match=message), count_cofiring(model, layout=layout):
        pass


class Block(nn.Module):
    """A residual block in the manner of resnet18: nearly everything after the second norm works in place."""

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu1, self.relu2 = nn.ReLU(inplace=True), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.relu1(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x
        return self.relu2(out)


def parts_of(block: Block, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """What each layer of the block gives, without anything in place."""
    found = {"conv1": block.conv1(x)}
    found["bn1"] = block.bn1(found["conv1"])
    found["relu1"] = torch.relu(found["bn1"])
    found["conv2"] = block.conv2(found["relu1"])
    found["bn2"] = block.bn2(found["conv2"])
    found["relu2"] = torch.relu(found["bn2"] + x)
    return {name: values.detach() for name, values in found.items()}


def test_a_residual_block_that_works_in_place():
    block, x = Block(), torch.randn(20, 4, 6, 6)
    block(x)  # the norms have seen something
    expected = parts_of(block.eval(), x)
    assert expected["bn2"].min() < -0.5
    found = captured(block, x)
    assert list(found) == ["conv1", "bn1", "relu1", "relu2", "conv2", "bn2"]
    for name, values in expected.items():
        assert found[name] == by_hand(values, (2, 3)), name
    with capture(block) as seen:
        block(x)
    for name, values in expected.items():
        assert torch.allclose(seen[name], values, atol=1e-6), name


def test_counts_of_a_residual_block_that_works_in_place():
    block, x = Block(), torch.randn(20, 4, 6, 6)
    expected = parts_of(block, x)
    fired = np.hstack([expected[name].mean(dim=(2, 3)).numpy() > 0.1 for name in ("bn1", "relu2", "bn2")])
    with count_cofiring(block, "bn1 bn2 relu2", threshold=0.1) as counter:
        for _ in range(3):
            block(x)
    assert (counter.counts() == 3 * cofiring_counts(fired)).all()


def test_counts_of_resnet18():
    """A norm whose output the network changes in place in every pass."""
    torchvision_datasets()
    from torchvision.models import resnet18

    model, x = resnet18(num_classes=10), torch.randn(6, 3, 64, 64)
    with capture(model, "layer1.0.bn2 fc") as seen, count_cofiring(model, "layer1.0.bn2 fc") as counter:
        for _ in range(2):
            model(x)
    fired = np.hstack([seen["layer1.0.bn2"].mean(dim=(2, 3)) > 0, seen["fc"] > 0])
    assert (counter.counts() == 2 * cofiring_counts(fired)).all()


def test_two_dimensions_changed_in_place_and_the_caller_s_inputs_are_left_alone():
    model, x = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 5), nn.ReLU(inplace=True)), torch.randn(20, 4)
    before = x.clone()
    found = captured(model, x.numpy())
    assert (x == before).all()
    assert found["1"] == by_hand(functional.linear(before.relu(), model[1].weight, model[1].bias))
    assert found["1"].min() < 0


class Batches(nn.Module):
    """A recurrent layer with steps first, inside a model with examples first."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.steps, self.head = getattr(nn, kind)(3, 5), nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, _ = self.steps(x.transpose(0, 1))
        return self.head(out[-1])


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_of_both_layouts(kind):
    x = torch.randn(20, 7, 3)
    model = nn.Sequential(getattr(nn, kind)(3, 5, batch_first=True, bidirectional=True))
    assert captured(model, x)["0"] == by_hand(model[0](x)[0], (1,))
    turned = Batches(kind)
    expected = turned.steps(x.transpose(0, 1))[0].transpose(0, 1)
    found = captured(turned, x)
    assert found["steps"] == by_hand(expected, (1,))
    assert found["head"] == by_hand(turned.head(expected[:, -1]))
    with count_cofiring(turned, "steps") as counter:
        turned(x)
    assert (counter.counts() == cofiring_counts(expected.mean(dim=1).detach() > 0)).all()


@pytest.mark.parametrize("length", [7, 8, 20])
def test_layers_with_steps_first_are_refused_also_when_lengths_agree(length):
    """A batch of 8 with 8 steps, and a whole of 20 with 20, look right at first sight."""

    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 5)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x.transpose(0, 1)).transpose(0, 1)

    model, x = Turned(), torch.randn(20, length, 3)
    sentence = rf"layer 'linear' gave shape \({length}, 2, 5\) for a batch of 2 examples; its first dimension must be"
    for size in (None, 8, 20):
        with pytest.raises(ValueError, match=sentence):
            capture_activations(model, x, batch_size=size)
    with pytest.raises(ValueError, match="layer 'linear' gave shape"):
        Watch(model, x).snapshot()
    with pytest.raises(ValueError, match=r"layer 'linear' gave shape .* for a batch of"), count_cofiring(model):
        model(x)


def test_two_dimensions_turned_with_equal_lengths_are_refused():
    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.turned = nn.Identity()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.turned(x.T).T

    for examples in (1, 2, 3, 20):
        model, x = Turned(), torch.randn(examples, examples)
        with pytest.raises(ValueError, match="layer 'turned' gave shape"):
            capture_activations(model, x)
        with pytest.raises(ValueError, match="layer 'turned' gave shape"), count_cofiring(model):
            model(x)


def test_equal_lengths_by_chance_are_counted_and_training_is_not_disturbed():
    """One small pass shows that the first dimension is the batch; it leaves no trace."""
    model, x = nn.Sequential(nn.Linear(20, 20), nn.BatchNorm1d(20), nn.Dropout(), nn.ReLU()), torch.randn(20, 20)
    first = {name: values.clone() for name, values in model.state_dict().items()}
    torch.manual_seed(1)
    plain = model(x)
    state = {name: values.clone() for name, values in model.state_dict().items()}
    model.load_state_dict(first)
    torch.manual_seed(1)
    with capture(model) as seen, count_cofiring(model) as outer, count_cofiring(model, "3") as inner:
        assert (model(x) == plain).all()
        assert all((values == state[name]).all() for name, values in model.state_dict().items())
        fired = torch.cat(list(seen.values()), dim=1) > 0
    assert (outer.counts() == cofiring_counts(fired)).all()
    assert (inner.counts() == cofiring_counts(seen["3"] > 0)).all()
    assert all(part.training for part in model)


class Positions(nn.Module):
    """Adds an embedding of positions, which knows nothing of the examples."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(30, 6), nn.Embedding(length, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.tokens(x) + self.positions(torch.arange(x.shape[1]))


def test_token_numbers_stay_integers_and_positions_are_refused():
    model = Positions(9)
    ids = np.random.default_rng(0).integers(0, 30, (9, 9))
    for kind in (np.int64, np.int32, np.uint8, np.uint16):
        assert captured(model, ids.astype(kind), "tokens")["tokens"] == by_hand(
            model.tokens.weight[torch.from_numpy(ids)], (1,)
        )
    with pytest.raises(ValueError, match="layer 'positions' gave shape"):
        capture_activations(model, ids)
    with pytest.raises(ValueError, match="layer 'positions' gave shape"), count_cofiring(model, "positions"):
        model(torch.from_numpy(ids))


def test_an_embedding_bag():
    model, ids = nn.Sequential(nn.EmbeddingBag(30, 4)), torch.randint(0, 30, (20, 6))
    assert captured(model, ids)["0"] == by_hand(model[0].weight[ids].mean(dim=1))


@pytest.mark.parametrize("batch_first", [True, False])
def test_attention(batch_first):
    class Attends(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.head = nn.MultiheadAttention(6, 2, batch_first=batch_first), nn.Linear(6, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x if batch_first else x.transpose(0, 1)
            out = self.attention(x, x, x)[0]
            return self.head(out.mean(dim=1 if batch_first else 0))

    model, x = Attends(), torch.randn(20, 5, 6)
    parts = functional.linear(x, model.attention.in_proj_weight, model.attention.in_proj_bias).chunk(3, dim=-1)
    queries, keys, values = (part.unflatten(-1, (2, 3)).transpose(1, 2) for part in parts)
    mixed = torch.softmax(queries @ keys.mT / 3**0.5, dim=-1) @ values
    expected = model.attention.out_proj(mixed.transpose(1, 2).flatten(2))
    found = captured(model, x)
    assert list(found) == ["attention", "head"], "the projection inside never runs by itself"
    assert found["attention"] == by_hand(expected, (1,))


def test_a_transformer_layer_runs_its_parts_one_by_one():
    model = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
    x = torch.randn(20, 5, 6)
    found = captured(model, x, "linear1 norm2")
    first = model.norm1(x + model.self_attn(x, x, x)[0])
    hidden = model.linear1(first)
    assert found["linear1"] == by_hand(hidden, (1,))
    assert found["norm2"] == by_hand(model.norm2(first + model.linear2(hidden.relu())), (1,))


def test_a_transformer_with_a_mask_of_what_is_padding():
    """PyTorch has a short way here, through nested tensors, which hooks cannot follow."""

    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 1)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.encoder(x, src_key_padding_mask=mask)

    model, x, mask = Masked(), torch.randn(20, 5, 6), torch.arange(5).repeat(20, 1) > 2
    layer = model.encoder.layers[0]
    found = captured(model, (x, mask), "*.linear1")["encoder.layers.0.linear1"]
    first = layer.norm1(x + layer.self_attn(x, x, x, key_padding_mask=mask)[0])
    assert found == by_hand(layer.linear1(first), (1,))
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize("norm", [nn.utils.parametrizations.weight_norm, nn.utils.parametrizations.spectral_norm])
def test_weights_that_modules_compute_are_no_layers(norm):
    model, x = nn.Sequential(norm(nn.Linear(6, 4)), nn.ReLU()).eval(), torch.randn(20, 6)
    found = captured(model, x)
    assert list(found) == ["0", "1"]
    assert found["0"] == by_hand(functional.linear(x, model[0].weight, model[0].bias))


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_torchscript_is_refused():
    model, x = nn.Sequential(nn.Linear(6, 4)), torch.randn(20, 6)
    with pytest.raises(ValueError, match="model is TorchScript, which cannot be looked into"):
        captured(torch.jit.trace(model, x), x)


def test_shared_modules_and_shared_weights():
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.relu = nn.Linear(5, 5), nn.Linear(5, 5), nn.ReLU()
            self.second.weight = self.first.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.relu(self.second(self.relu(self.first(x))))

    model, x = Shared(), torch.randn(20, 5)
    hidden = model.first(x)
    found = captured(model, x, "first second")
    assert found["first"] == by_hand(hidden)
    assert found["second"] == by_hand(hidden.relu() @ model.first.weight.T + model.second.bias)
    assert captured(model, x, "relu")["relu"] == by_hand(hidden.relu())
    assert captured(model, x, "relu")["relu#2"] == by_hand(model.second(hidden.relu()).relu())
    sentence = "layer 'relu' ran twice in one forward pass; give each use a module"
    with pytest.raises(RuntimeError, match=sentence), count_cofiring(model):
        model(x)


def test_a_residual_network_as_published_uses_each_relu_twice():
    """torchvision's resnet18 changes in place what its only ReLU of a block gives, before and after the addition."""
    torchvision_datasets()
    from torchvision.models import resnet18

    model, x = resnet18(num_classes=10).eval(), torch.randn(6, 3, 32, 32)
    found = captured(model, x, "layer1.0.*")
    block = model.layer1[0]
    with torch.no_grad():
        stem = model.maxpool(model.relu(model.bn1(model.conv1(x))))
        inside = torch.relu(block.bn1(block.conv1(stem)))
        whole = torch.relu(block.bn2(block.conv2(inside)) + stem)
    assert found["layer1.0.relu"] == by_hand(inside, (2, 3))
    assert found["layer1.0.relu#2"] == by_hand(whole, (2, 3))
    assert [len(found), next(iter(found))] == [6, "layer1.0.conv1"]


def test_data_parallel_and_half_precision():
    model, x = build_model("mlp:7-5", 6, 3), torch.randn(20, 6)
    expected = captured(model, x, "hidden1.relu")["hidden1.relu"]
    both = captured(nn.DataParallel(model), x, "*hidden1.relu")
    assert list(both) == ["module.hidden1.relu"]
    assert (both["module.hidden1.relu"] == expected).all()
    for dtype, least in ((torch.bfloat16, 0.05), (torch.float16, 0.01)):
        own = build_model("mlp:7-5", 6, 3)
        own.load_state_dict(model.state_dict())
        low = captured(own.to(dtype), x, "hidden1.relu")["hidden1.relu"]
        assert low.dtype == np.float32
        assert low == pytest.approx(expected, abs=least)


def test_of_a_tuple_or_list_the_first_tensor_is_taken():
    class Several(nn.Module):
        def __init__(self, kind: type) -> None:
            super().__init__()
            self.kind = kind

        def forward(self, x: torch.Tensor):
            return self.kind((2 * x, "more"))

    x = torch.randn(20, 5)
    for kind in (tuple, list):
        assert captured(Several(kind), x)[""] == by_hand(2 * x)
        with capture(model := Several(kind)) as seen, count_cofiring(model) as counter:
            model(x)
        assert (seen[""] == 2 * x).all()
        assert (counter.counts() == cofiring_counts(x > 0)).all()
    with pytest.raises(RuntimeError, match="layer '' returned set, not a tensor"):
        captured(Several(set), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_models_of_other_precision_get_inputs_of_theirs(dtype):
    model, x = nn.Sequential(nn.Linear(5, 6), nn.ReLU()).to(dtype), torch.randn(20, 5)
    found = captured(model, x.numpy())
    assert found["1"].dtype == np.float32
    assert found["1"] == pytest.approx(model(x.to(dtype)).detach().float().numpy(), abs=1e-2)


@pytest.mark.parametrize("way", ["wrapped", "in place"])
def test_compiled_models(way):
    model, x = nn.Sequential(nn.Linear(5, 6), nn.ReLU()), torch.randn(20, 5)
    expected = torch.relu(functional.linear(x, model[0].weight, model[0].bias))
    if way == "wrapped":
        compiled = torch.compile(model, backend="eager")
    else:
        compiled = model
        model.compile(backend="eager")
    compiled(x)
    name = "_orig_mod.1" if way == "wrapped" else "1"
    assert captured(compiled, x, "*1")[name] == by_hand(expected)
    with capture(compiled, "*1") as seen, count_cofiring(compiled, "*1") as counter:
        compiled(x)
        compiled(x)
    assert torch.allclose(seen[name], expected)
    assert (counter.counts() == 2 * cofiring_counts(expected > 0)).all()
    assert torch.allclose(compiled(x), expected)


def test_frozen_batch_norm_stays_frozen():
    class Frozen(nn.Sequential):
        def train(self, mode: bool = True):
            super().train(mode)
            self[1].eval()
            return self

    for model in (
        nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU()),
        Frozen(nn.Linear(5, 6), nn.BatchNorm1d(6)),
    ):
        model.train()
        model[1].eval()
        x = torch.randn(20, 5)
        norm = model[1]
        norm.running_mean.uniform_()
        expected = (model[0](x) - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
        assert captured(model, x)["1"] == by_hand(expected)
        Watch(model, x, layers="1").snapshot()
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            captured(model, torch.randn(20, 4))
        assert model.training
        assert model[0].training
        assert not norm.training


def test_data_parallel():
    model, x = nn.Sequential(nn.Linear(5, 6), nn.ReLU()), torch.randn(20, 5)
    found = captured(nn.DataParallel(model), x)
    assert list(found) == ["module.0", "module.1"]
    assert found["module.1"] == by_hand(torch.relu(model[0](x)))


def test_lazy_layers():
    model, x = nn.Sequential(nn.LazyConv1d(5, 3), nn.Flatten(), nn.LazyLinear(4)), torch.randn(20, 3, 9)
    found = captured(model, x)
    assert found["0"] == by_hand(model[0](x), (2,))
    assert found["2"] == by_hand(model(x))


def test_examples_without_a_batch_dimension_are_refused():
    """PyTorch takes them for one example's channels or steps."""
    for model, x in (
        (nn.Sequential(nn.MaxPool2d(2)), torch.randn(20, 6, 6)),
        (nn.Sequential(nn.MaxPool1d(2)), torch.randn(20, 6)),
        (nn.Sequential(nn.LSTM(6, 4)), torch.randn(20, 6)),
    ):
        with pytest.raises(ValueError, match=r"layer '0' gave shape .* dimensions for a batch"):
            captured(model, x)
        with pytest.raises(ValueError, match=r"layer '0' gave shape .* dimensions for a batch"), count_cofiring(model):
            model(x)
    with pytest.raises(ValueError, match=r"layer '0' gave shape \(2,\); \(examples, neurons, ...\) is needed"):
        captured(nn.Sequential(nn.Flatten(0)), torch.randn(20, 1))


def test_neurons_whose_number_changes_are_refused():
    class Widening(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.max() < 1 else x.repeat(1, 2)

    x = torch.tensor([[0.5]] * 8 + [[2.0]] * 8)
    with pytest.raises(ValueError, match="layer '' must have 1 neurons as before, received 2"):
        captured(Widening(), x)


@pytest.mark.release
@pytest.mark.slow(20)
def test_resnet18_at_its_own_size_needs_little_memory():
    """The default batch follows from what one example needs."""
    code = """
import resource
import numpy as np, torch
from nbutils.data.pictures import torchvision_datasets
torchvision_datasets()
from torchvision.models import resnet18
import nbutils as nb
torch.manual_seed(0)
images = np.random.default_rng(0).integers(0, 256, (300, 3, 224, 224), dtype=np.uint8)
found = nb.capture_activations(resnet18(), images, "*conv* *bn* fc", prepare=lambda batch: batch / 255)
assert found["layer1.0.bn2"].shape == (300, 64) and found["fc"].shape == (300, 1000)
assert found["layer1.0.bn2"].min() < 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    assert float(done.stdout) < 2


class Told(nn.Module):
    """A layer with a name that runs a function."""

    def __init__(self, run) -> None:
        super().__init__()
        self.run = run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.run(x)


def test_four_dimensions_behind_a_linear_layer_are_asked_about():
    """As in ConvNeXt and Swin: channels go last, and what follows a `Linear` does not tell."""
    last, first = Told(lambda x: x.permute(0, 2, 3, 1)), Told(lambda x: x.permute(0, 3, 1, 2))
    model = nn.Sequential(nn.Conv2d(3, 4, 1), last, nn.LayerNorm(4), nn.Linear(4, 5), nn.GELU(), nn.Dropout(), first)
    model.append(nn.ReLU())
    x = torch.randn(20, 3, 6, 7)
    for layer in ("1", "4", "5", "6"):
        with pytest.raises(
            ValueError, match=rf"layer '{layer}' .* may be \(examples, channels, positions, \.\.\.\) or"
        ):
            captured(model, x, layer)
    with pytest.raises(ValueError, match=r"layer '4' .* say layout="), count_cofiring(model, "3 4"):
        model(x)
    assert captured(model, x, "0 2 3").keys() == {"0", "2", "3"}
    found = captured(model, x, layout={"6": "channels-first", "7": "channels-first", "*": "features-last"})
    model.eval()
    assert found["4"] == by_hand(model[:5](x), (1, 2))
    assert found["7"] == by_hand(model(x), (2, 3))
    plain = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Dropout(), nn.Conv2d(4, 5, 1), nn.GELU())
    assert captured(plain, x, "4")["4"] == by_hand(plain.eval()(x), (2, 3)), "convolutions ask nothing"


def test_a_model_that_fails_says_on_what():
    linear, ids = nn.Sequential(nn.Linear(6, 5)), nn.Sequential(nn.Embedding(3, 4))
    with pytest.raises(RuntimeError, match=r"model failed on inputs \(2, 7\) float32: mat1 and mat2") as caught:
        captured(linear, torch.randn(20, 7))
    assert isinstance(caught.value.__cause__, RuntimeError)
    with pytest.raises(RuntimeError, match=r"model failed on inputs \(2, 5\) int64: index out of range"):
        captured(ids, torch.full((20, 5), 7))
    with pytest.raises(RuntimeError, match=r"model failed on inputs y=\(2, 6\) float32: .*unexpected keyword"):
        captured(linear, {"y": torch.randn(20, 6)})
    with pytest.raises(RuntimeError, match="model failed on inputs NoneType: linear"):
        captured(linear, torch.randn(20, 6), prepare=lambda _: None)
    with pytest.raises(ValueError, match="prepare must be a function of a batch, or None, received 'x'"):
        captured(linear, torch.randn(20, 6), prepare="x")
    out_of_memory = nn.Sequential(Told(lambda _: (_ for _ in ()).throw(torch.OutOfMemoryError("full"))))
    with pytest.raises(torch.OutOfMemoryError, match=r"^full$"):
        captured(out_of_memory, torch.randn(20, 6))


def test_the_meta_device_holds_no_values():
    with pytest.raises(ValueError, match="model lies on the device 'meta'"):
        captured(nn.Sequential(nn.Linear(6, 5, device="meta")), torch.randn(20, 6))
    with pytest.raises(ValueError, match="inputs must hold values, received a tensor on the device 'meta'"):
        captured(nn.Sequential(nn.Linear(6, 5)), torch.empty(20, 6, device="meta"))


def test_batches_in_inference_mode_are_counted():
    """Tensors of inference mode have no version that would tell of changes in place."""
    model, x = (
        nn.Sequential(nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Hardtanh(0.2, 0.5, inplace=True)),
        torch.randn(20, 6),
    )
    with torch.inference_mode(), count_cofiring(model, threshold=0.25) as counter:
        for part in x.split(5):
            model(part)
    linear = model[0](x)
    parts = [linear, linear.relu(), linear.relu().clamp(0.2, 0.5)]
    assert (counter.counts() == cofiring_counts(torch.cat(parts, dim=1) > 0.25)).all()


def test_threads_that_capture_one_model_do_not_mix(rng):
    model = nn.Sequential(nn.Linear(6, 64), nn.Dropout(), nn.ReLU())
    inputs = [rng.standard_normal((40, 6)).astype(np.float32) for _ in range(6)]
    expected = [capture_activations(model, x, batch_size=2)["2"] for x in inputs]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda x: capture_activations(model, x, batch_size=2)["2"], inputs))
    assert all(map(np.array_equal, found, expected))
    assert model.training
