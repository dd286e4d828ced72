from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from nbutils.capturing.batches import gather
from nbutils.capturing.hooks import capture_activations


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU())


@pytest.fixture
def x(rng) -> np.ndarray:
    return (9 * rng.random((20, 4))).astype(np.float32)


def expected(model: nn.Module, x: np.ndarray) -> np.ndarray:
    return pytest.approx(
        np.maximum(x @ model[0].weight.detach().numpy().T + model[0].bias.detach().numpy(), 0), abs=1e-4
    )


@pytest.mark.parametrize(
    "kind", [">f4", "f8", "f2", np.longdouble, "u1", "u2", "u4", "u8", "i1", ">i2", "i8", bool], ids=str
)
def test_arrays_of_any_real_dtype_are_cast_to_the_model_s(model, x, kind):
    given = x.astype(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = capture_activations(model, given)["1"]
    assert found.dtype == np.float32
    assert found == expected(model, given.astype(np.float32))


def test_arrays_in_any_order_of_memory_and_of_any_make(model, x):
    fixed = x.copy()
    fixed.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for given in (fixed, np.asfortranarray(x), x.tolist(), list(x), pd.DataFrame(x), torch.from_numpy(x)):
            assert capture_activations(model, given)["1"] == expected(model, x)
        assert capture_activations(model, x[::-1])["1"] == expected(model, x[::-1])


@pytest.mark.parametrize("size", [None, 1, 2, 3, 7, 20, 100])
@pytest.mark.parametrize("examples", [1, 2, 3, 20])
def test_any_number_of_examples_in_batches_of_any_size(model, x, examples, size):
    assert capture_activations(model, x[:examples], batch_size=size)["1"] == expected(model, x[:examples])


def test_loaders_and_other_batches(model, x):
    labels = torch.arange(20)
    pairs = TensorDataset(torch.from_numpy(x), labels)
    ways = [
        DataLoader(pairs, batch_size=7),
        DataLoader(TensorDataset(torch.from_numpy(x)), batch_size=1),
        DataLoader([{"input": row} for row in x], batch_size=6),
        (x[start : start + 8] for start in (0, 8, 16)),
        iter([(x[:3], "labels", None), [x[3:], "labels"]]),
        [(x[:13], labels[:13]), (x[13:], labels[13:])],
        [{"input": x}],
        iter([({"input": x}, labels)]),
    ]
    for given in ways:
        found = capture_activations(model, given, batch_size=5)
        assert found["1"] == expected(model, x), given


def test_several_inputs_by_position_and_by_name(rng):
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 5)

        def forward(self, x: torch.Tensor, mask: torch.Tensor, shift: torch.Tensor | None = None) -> torch.Tensor:
            assert mask.dtype == torch.bool, "it may be a mask"
            x = x * mask
            return self.linear(x if shift is None else x + shift)

    model, x, mask = Weighted(), rng.random((20, 4)), rng.random((20, 4)) < 0.5
    weight, bias = (values.detach().numpy() for values in model.parameters())
    ways = [(x, mask), {"mask": mask, "x": x}, iter([{"x": x, "mask": mask}]), DataLoader([((x, mask), 0)], None)]
    for given in ways:
        found = capture_activations(model, given, batch_size=6)["linear"]
        assert found == pytest.approx((x * mask) @ weight.T + bias, abs=1e-5)
    found = capture_activations(model, {"x": x, "mask": mask, "shift": 2 * x})["linear"]
    assert found == pytest.approx((x * mask + 2 * x) @ weight.T + bias, abs=1e-5)
    with pytest.raises(ValueError, match=r"inputs must hold arrays with equally many examples, received \[20, 3\]"):
        capture_activations(model, (x, mask[:3]))
    with pytest.raises(ValueError, match="prepare takes the model's only input"):
        capture_activations(model, (x, mask), prepare=lambda batch: batch)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((3, 4), complex), "inputs must hold real numbers, received dtype complex128"),
        (torch.ones(3, 4, dtype=torch.complex64), "inputs must hold real numbers, received dtype torch.complex64"),
        (np.full((3, 4), None), "inputs must hold numbers of one kind, received NoneType among them"),
        (np.ones((3, 4), "M8[s]"), "inputs must hold numbers, received dates"),
        ([["a", "b"]], "inputs must hold numbers, received text"),
        ("some text", "inputs must hold numbers, received text"),
        (None, "inputs must hold real numbers, received NoneType"),
        ([[1, 2, 3, 4], [1]], "inputs must be an array, a tensor or a nested list with rows of one length"),
        (np.ma.masked_array(np.ones((3, 4))), "inputs must not be a masked array"),
        (torch.eye(4).to_sparse(), "inputs must be a plain tensor, received a nested, sparse or quantised one"),
        (sp.csr_array(np.eye(4)), "inputs must be dense, received a sparse matrix"),
        (5.0, r"inputs must hold at least one example, received shape \(\)"),
        (np.ones((0, 4)), r"inputs must hold at least one example, received shape \(0, 4\)"),
        ({}, "inputs must name the model's arguments"),
        ({1: np.ones((3, 4))}, r"inputs must name the model's arguments, received the keys \[1\]"),
        ({"input": [["a"]]}, r"inputs\['input'\] must hold numbers, received text"),
        (TensorDataset(torch.ones(3, 4)), "inputs is a TensorDataset, which gives single examples; wrap it in a Data"),
        ([torch.ones(4), torch.ones(4)], "inputs is a list of tensors; stack them with torch.stack"),
        (iter([]), "inputs must hold at least one example, received no batch"),
        (iter([np.ones((3, 4)), np.ones((3, 4), complex)]), "batch 1 of inputs must hold real numbers"),
        (iter([[1.0, 2.0]]), "batch 0 of inputs must be a tensor or an array, .* received list"),
        (range(3), "batch 0 of inputs must be a tensor or an array, .* received int"),
    ],
)
def test_what_no_model_can_take_is_one_sentence(model, given, message):
    with pytest.raises(ValueError, match=message):
        capture_activations(model, given)
    assert model.training
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())


def test_batches_that_do_not_fit_together_are_not_gathered(x):
    assert (gather(iter([x[:3], torch.from_numpy(x[3:])])).args[0].numpy() == x).all()
    with pytest.raises(ValueError, match="batches of inputs must agree in shape"):
        gather(iter([x, x[:, :2]]))
    with pytest.raises(ValueError, match="batches of inputs must agree in shape"):
        gather(iter([{"a": x}, {"b": x}]))


def test_the_default_batch_follows_from_what_an_example_needs(model, x):
    """Up to 1,024 examples for small networks, few for large outputs."""
    sizes = []
    for wide in (model, nn.Sequential(nn.Linear(4, 1_000_000))):
        seen = []
        handle = wide.register_forward_hook(lambda _module, given, _output, seen=seen: seen.append(len(given[0])))
        capture_activations(wide, np.zeros((1500, 4), np.float32)[: 1500 if wide is model else 150])
        handle.remove()
        sizes.append(seen)
    assert sizes == [[2, 1024, 476], [2, 67, 67, 16]]
