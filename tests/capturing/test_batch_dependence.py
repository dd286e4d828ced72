"""An example's activations are its own: the same beside any other examples, in any batch, every time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

from nbutils.capturing.hooks import capture, capture_activations
from nbutils.measures import MeasureSpec
from nbutils.watch import Watch, count_cofiring


class Does(nn.Module):
    """What a function does, as a layer."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def after(layer) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), layer if isinstance(layer, nn.Module) else Does(layer))


DEPENDENT = {
    "softmax": nn.Softmax(0),
    "batch norm": nn.BatchNorm1d(6, track_running_stats=False),
    "centred": lambda x: x - x.mean(0),
    "sum so far": lambda x: x.cumsum(0),
    "sum to come": lambda x: x.flip(0).cumsum(0).flip(0),
    "normalised": lambda x: functional.normalize(x, dim=0),
    "scaled": lambda x: x / x.abs().max(),
    "NaN alone in small batches": lambda x: x / (len(x) > 3),
    "by position": lambda x: x + torch.arange(len(x))[:, None],
    "one another": lambda x: x @ x.T,
    "attention over examples": lambda x: functional.scaled_dot_product_attention(x, x, x),
}


@pytest.mark.parametrize("kind", DEPENDENT)
@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7])
def test_layers_that_look_at_the_batch_are_refused(kind, batch_size):
    model, x = after(DEPENDENT[kind]), torch.randn(20, 4)
    x[0] /= 10  # what is scaled by the largest value sees others
    known = "layer '1' (gives an example other activations beside other examples|must have|holds)"
    if (kind, batch_size) == ("batch norm", 1):
        known = "model failed on inputs .* more than 1 value"
    with pytest.raises((ValueError, RuntimeError), match=known):
        capture_activations(model, x, batch_size=batch_size)


@pytest.mark.parametrize("examples", [2, 3, 4])
def test_few_examples_are_enough_and_layers_before_are_captured(examples):
    with pytest.raises(ValueError, match="layer '1' gives an example other activations beside other examples"):
        capture_activations(after(nn.Softmax(0)), torch.randn(examples, 4))
    assert capture_activations(after(nn.Softmax(0)), torch.randn(examples, 4), "0")["0"].shape == (examples, 6)


@pytest.mark.parametrize("batch_size", [None, 1, 5])
@pytest.mark.parametrize("layer", [lambda x: functional.dropout(x, 0.5), lambda x: x + torch.randn_like(x)])
def test_layers_that_draw_at_random_are_refused(layer, batch_size):
    with pytest.raises(
        ValueError, match="layer '1' gives the same examples other activations when they pass once more"
    ):
        capture_activations(after(layer), torch.randn(20, 4), batch_size=batch_size)


def test_layers_that_remember_are_refused():
    calls = []
    with pytest.raises(ValueError, match="nor remember what it saw"):
        capture_activations(after(lambda x: calls.append(1) or x * len(calls)), torch.randn(20, 4))


def test_loaders_and_watch_are_no_way_around():
    model, x = after(nn.Softmax(0)), torch.randn(20, 4)
    with pytest.raises(ValueError, match="beside other examples"):
        capture_activations(model, DataLoader(x, batch_size=5))
    with pytest.raises(ValueError, match="beside other examples"):
        Watch(model, x, layers="*", spec=MeasureSpec(seeds=1)).snapshot()


def test_what_is_asked_to_look_at_one_pass_does():
    model, x = after(nn.BatchNorm1d(6)), torch.randn(20, 4)
    with capture(model, "1") as seen, count_cofiring(model, "1") as counter:
        expected = model(x)
    assert torch.equal(seen["1"], expected)
    assert (np.diag(counter.counts()) == (expected > 0).sum(0).numpy()).all()


OWN = {
    "instance norm": nn.Sequential(nn.Conv2d(3, 8, 3), nn.InstanceNorm2d(8), nn.ReLU()),
    "large offset": nn.Sequential(nn.Conv2d(3, 8, 3), Does(lambda x: x + 1e4), nn.GroupNorm(2, 8)),
    "signs": nn.Sequential(nn.Conv2d(3, 64, 3), Does(torch.sign), nn.Conv2d(64, 8, 3)),
    "steps of 1/256": nn.Sequential(nn.Flatten(), nn.Linear(243, 512), Does(lambda x: (x * 256).round() / 256)),
    "half": nn.Sequential(nn.Flatten(), nn.Linear(243, 256), nn.ReLU(), nn.Linear(256, 10)).to(torch.bfloat16),
    "silent": nn.Sequential(nn.Flatten(), nn.Linear(243, 30), Does(lambda x: x * 0)),
    "deep": nn.Sequential(
        nn.Flatten(), nn.Linear(243, 64), *(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(40))
    ),
}


@pytest.mark.parametrize("kind", OWN)
@pytest.mark.parametrize("examples", [1, 2, 40])
def test_rounding_is_no_dependence(kind, examples):
    x = torch.randn(examples, 3, 9, 9)
    found = capture_activations(OWN[kind], x)
    assert all(len(rows) == examples for rows in found.values())


def test_autocast_rounds_coarsely():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Softmax(1), nn.LayerNorm(64)) for _ in range(6)))
    with torch.autocast("cpu", torch.bfloat16):
        assert len(capture_activations(model, torch.randn(100, 64))) == 18


def test_exported_programs_are_refused_and_unflattened_ones_captured():
    model, x = nn.Sequential(nn.Linear(4, 6), nn.ReLU()).eval(), torch.randn(20, 4)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("examples")},))
    for exported in (program.module(), nn.Sequential(program.module())):
        for look in (lambda m: capture_activations(m, x), lambda m: Watch(m, x), lambda m: capture(m).__enter__()):
            with pytest.raises(
                ValueError, match="model is an exported program, which runs without layers; pass the mod"
            ):
                look(exported)
        with pytest.raises(ValueError, match="exported program"), count_cofiring(exported):
            pass
    expected, found = capture_activations(model, x), capture_activations(torch.export.unflatten(program), x)
    assert all(np.array_equal(found[name], expected[name]) for name in ("0", "1"))


@pytest.mark.filterwarnings("ignore")
def test_quantised_modules_are_captured():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)).eval(), torch.randn(50, 4)
    expected = capture_activations(model, x)
    tools = torch.ao.quantization
    dynamic = tools.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    static = nn.Sequential(tools.QuantStub(), *model, tools.DeQuantStub()).eval()
    static.qconfig = tools.get_default_qconfig("fbgemm")
    prepared = tools.prepare(static)
    prepared(x)
    static = tools.convert(prepared)
    for quantised, names in ((dynamic, ["0", "1", "2"]), (static, ["1", "2", "3"])):
        found = capture_activations(quantised, x, names)
        for name, known in zip(names, "012", strict=True):
            assert np.abs(found[name] - expected[known]).max() < 0.03 * np.abs(expected[known]).max()
        with capture(quantised, names) as seen, count_cofiring(quantised, names) as counter:
            quantised.train()(x)
        assert (seen[names[1]].numpy() == found[names[1]]).all()
        fired = np.hstack([seen[name].numpy() for name in names]) > 0
        assert (counter.counts() == fired.T.astype(int) @ fired).all()
