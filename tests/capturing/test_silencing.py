"""Silencing neurons: exactly those, in every kind of layer, for one pass, and no trace of it afterwards."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from nbutils.capturing.silencing import ClassAccuracy, Silence, by_layer, silenced
from nbutils.runs.models import build_model, hidden_layers


def hooks(model):
    return sum(len(one._forward_hooks) + len(one._forward_pre_hooks) for one in model.modules())


class Called(nn.Module):
    """A block that calls its activation functions twice, with a way around it."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        x = functional.relu(self.first(x))
        return functional.relu(x + self.second(x)).mean(dim=(2, 3))


@pytest.fixture(autouse=True)
def drawn():
    torch.manual_seed(0)


def test_a_silenced_unit_is_a_column_of_weights_set_to_0():
    model, x = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4)), torch.randn(7, 5)
    with torch.no_grad(), silenced(model, {"1": Silence(np.array([1, 4]))}):
        found = model(x)
    with torch.no_grad():
        model[2].weight[:, [1, 4]] = 0
        assert torch.allclose(found, model(x), atol=1e-6)


def test_another_value_is_what_later_layers_see():
    model, x = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4)), torch.randn(7, 5)
    with torch.no_grad():
        hidden = model[1](model[0](x))
        hidden[:, 2], hidden[:, 0] = 0.5, -3.0
        with silenced(model, {"1": Silence(np.array([2, 0]), np.array([0.5, -3.0]))}):
            assert torch.allclose(model(x), model[2](hidden), atol=1e-6)


def test_a_channel_is_silent_at_all_positions_and_around_a_block():
    model, x, channel = Called(), torch.randn(4, 2, 5, 5), Silence(np.array([1]))
    with torch.no_grad():
        one = functional.relu(model.first(x))
        late = functional.relu(one + model.second(one))
        late[:, 1] = 0
        one[:, 1] = 0
        early = functional.relu(one + model.second(one))
        for label, expected in (("relu()", early), ("relu()#2", late)):
            with silenced(model, {label: channel}):
                assert torch.allclose(model(x), expected.mean(dim=(2, 3)), atol=1e-6)


def test_features_of_a_transformer_are_its_last_dimension():
    model = build_model("vit:16-2", (8, 8), 3).eval()
    _, layout = hidden_layers("vit:16-2")
    seen, x = {}, torch.randn(3, 64)
    model.blocks[1].narrow.register_forward_pre_hook(lambda _module, given: seen.update(given=given[0]))
    with torch.no_grad(), silenced(model, {"blocks.1.gelu": Silence(np.array([31]))}, layout):
        model(x)
    assert (seen["given"][..., 31] == 0).all()
    assert (seen["given"][..., :31] != 0).any(dim=(0, 1)).all()


def test_no_hook_is_left_also_by_an_exception():
    model = nn.Sequential(nn.Linear(5, 6), nn.ReLU())
    before, x = hooks(model), torch.randn(20, 5)
    with pytest.raises(RuntimeError, match="failed"), silenced(model, {"1": Silence(np.array([0]))}):
        raise RuntimeError("the pass failed")
    assert hooks(model) == before
    with pytest.raises(ValueError, match="neurons of layer '1' must be from 0 to 5, received 6"), torch.no_grad():
        ClassAccuracy(model, x, np.arange(20) % 2)({"1": Silence(np.array([6]))})
    assert hooks(model) == before
    assert (model(x)[:, 0] != 0).any()


@pytest.mark.parametrize(
    ("silences", "words"),
    [
        ({"2": Silence(np.array([0]))}, "silences names '2', which is no layer of the model"),
        ({"1": Silence(np.array([-1]))}, "neurons of layer '1' must be from 0 to 5"),
    ],
)
def test_what_is_not_there_cannot_be_silenced(silences, words):
    model = nn.Sequential(nn.Linear(5, 6), nn.ReLU())
    with pytest.raises(ValueError, match=words), torch.no_grad(), silenced(model, silences):
        model(torch.randn(2, 5))


def test_a_layer_that_does_not_run_is_told():
    model = Called()
    with (
        torch.no_grad(),
        pytest.raises(RuntimeError, match="layer 'relu\\(\\)#3' did not run"),
        silenced(model, {"relu()#3": Silence(np.array([0]))}),
    ):
        model(torch.randn(2, 2, 5, 5))


def test_three_dimensions_without_a_layout_are_refused():
    model = nn.Sequential(nn.ReLU(), nn.Flatten())
    with pytest.raises(ValueError, match="layout="), torch.no_grad(), silenced(model, {"0": Silence(np.array([0]))}):
        model(torch.randn(2, 3, 4))


@pytest.mark.parametrize("name", ["mlp:12-8", "vgg:4-8", "resnet:8-4"])
def test_what_is_kept_between_passes_changes_no_number(name):
    """Whichever layer comes first, and in whatever order; the network run whole from its inputs is the oracle."""
    model, rng = build_model(name, (8, 8, 1), 3).eval(), np.random.default_rng(0)
    x, labels = torch.randn(60, 64), rng.integers(3, size=60)
    names = [one for one, module in model.named_modules() if isinstance(module, nn.ReLU)]
    accuracy = ClassAccuracy(model, x, labels, batch=25)
    for chosen in ([names[-1]], names[:1], names, [], names[-1:], names[:1]):
        silences = {one: Silence(rng.choice(4, 3, replace=False), rng.normal(size=3)) for one in chosen}
        with torch.no_grad(), silenced(model, silences):
            right = model(x).argmax(dim=1).numpy() == labels
        assert accuracy(silences).tolist() == pytest.approx([right[labels == one].mean() for one in range(3)])


def test_activations_in_place_spoil_nothing_that_is_kept():
    model = nn.Sequential(nn.Linear(5, 6), nn.ReLU(inplace=True), nn.Linear(6, 3)).eval()
    x, labels = torch.randn(30, 5), np.arange(30) % 3
    accuracy = ClassAccuracy(model, x, labels)
    whole = accuracy().tolist()
    accuracy({"1": Silence(np.arange(6))})
    accuracy({"1": Silence(np.arange(6), 1e6)})
    assert accuracy().tolist() == whole
    assert ClassAccuracy(model, x, labels)({"1": Silence(np.arange(0))}).tolist() == whole


def test_neurons_of_a_network_are_numbers_in_their_layers():
    layers, names = np.repeat([1, 2, 3], [4, 2, 3]), ["a", "b", "c"]
    values = np.arange(9.0)
    found = by_layer(np.array([8, 1, 4]), layers, names, values)
    assert {name: (one.neurons.tolist(), one.values.tolist()) for name, one in found.items()} == {
        "a": ([1], [1.0]),
        "b": ([0], [4.0]),
        "c": ([2], [8.0]),
    }
