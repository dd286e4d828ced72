from __future__ import annotations

import numpy as np
import pytest
import torch

from nbutils.activations import above_least, activation_histogram, class_means, effective_rank, firing, firing_share
from nbutils.entropy import class_selectivity, dead_share


def test_positive_is_above_zero():
    assert firing([[-1.0, 0.0, 1e-9]], "positive").tolist() == [[False, False, True]]


@pytest.mark.parametrize(("examples", "expected"), [(30, 3), (10, 1), (11, 2), (1, 1), (2000, 200)])
def test_top_decile_fires_on_a_tenth_rounded_up(rng, examples, expected):
    fired = firing(rng.random((examples, 5)) + 0.1)
    assert fired.sum(axis=0).tolist() == [expected] * 5


def test_the_largest_activations_fire(rng):
    values = rng.random((200, 4))
    fired = firing(values, "top:0.25")
    for column, on in zip(values.T, fired.T, strict=True):
        assert column[on].min() > column[~on].max()
        assert on.sum() == 50


def test_dead_rare_constant_and_tied_neurons():
    values = np.zeros((100, 4))
    values[:3, 1] = 1.0  # positive on fewer than a tenth
    values[:, 2] = 5.0  # always the same
    values[:40, 3] = 2.0  # ties at the threshold
    assert firing(values).sum(axis=0).tolist() == [0, 3, 100, 40]


def test_negative_values_never_fire():
    assert not firing(np.full((20, 2), -3.0)).any()


def test_scale_does_not_matter_and_tensors_are_accepted(rng):
    values = np.maximum(rng.normal(size=(100, 6)), 0).astype(np.float32)
    assert (firing(values) == firing(values * 7)).all()
    assert (firing(torch.from_numpy(values)) == firing(values)).all()


@pytest.mark.parametrize("rule", ["top", "top:0", "top:1.5", "top:x", "median", "", None, 0.1])
def test_unknown_rules_are_named(rule):
    with pytest.raises(ValueError, match="rule must be 'top-decile', 'positive' or 'top:<share>'"):
        firing(np.ones((3, 2)), rule)


def test_shares():
    assert (firing_share("positive"), firing_share("top-decile"), firing_share("top:0.2")) == (None, 0.1, 0.2)


def test_nan_is_refused():
    with pytest.raises(ValueError, match="activations holds 1 NaN or infinite values, the first in neuron 1"):
        firing([[1.0, float("nan")]])


def test_class_means_and_selectivity_by_hand():
    means = class_means([[4.0, 1.0, 0.0], [2.0, 1.0, 0.0], [1.0, 1.0, 0.0]], [5, 5, 9])
    assert means.tolist() == [[3.0, 1.0, 0.0], [1.0, 1.0, 0.0]]
    assert class_selectivity(means).tolist() == [0.5, 0.0, 0.0]
    assert class_selectivity(means[:1]).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="non-negative"):
        class_selectivity([[-1.0], [1.0]])


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int64])
@pytest.mark.parametrize("bins", [1, 3, 10])
def test_histograms_are_numpy_s(rng, kind, bins):
    """Against the definition in plain NumPy, with dead, tiny, huge and constant neurons."""
    values = np.maximum(rng.normal(size=(300, 8)) * 100, 0).astype(kind)
    values[:, 0] = 0
    values[:, 1] = 7
    if kind in (np.float32, np.float64):
        values[:, 2] = np.finfo(kind).smallest_subnormal
        values[:, 3] = np.finfo(kind).max
    wide = values if kind in (np.float32, np.float64) else values.astype(np.float64)
    expected = np.zeros((bins, 8), int)
    with np.errstate(all="ignore"):
        places = np.clip(np.ceil(wide * (bins / wide.max(axis=0))) - 1, 0, bins - 1)
    for example, neuron in np.argwhere(wide > 0):
        expected[int(places[example, neuron]), neuron] += 1
    assert (activation_histogram(values, bins) == expected).all()
    assert (expected.sum(axis=0) == (values > 0).sum(axis=0)).all()


def test_dead_share():
    assert dead_share([[0, 0, 1], [0, 1, 0]]) == pytest.approx(1 / 3)
    assert dead_share(np.zeros((2, 0), bool)) == 0.0


@pytest.mark.parametrize("shape", [(50, 7), (7, 50), (20, 20)])
def test_effective_rank_is_that_of_the_singular_values(rng, shape):
    values = rng.random(shape)
    size = np.linalg.svd(values, compute_uv=False)
    shares = size / size.sum()
    assert effective_rank(values) == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))


def test_effective_rank_of_simple_matrices():
    assert effective_rank(np.eye(5)) == pytest.approx(5)
    assert effective_rank(np.ones((4, 3))) == pytest.approx(1)
    assert effective_rank(np.zeros((4, 3))) == 0.0
    with pytest.raises(ValueError, match="NaN"):
        effective_rank([[np.nan]])


def test_differences_beyond_the_type_are_counted_in_a_wider_one():
    half = np.array([[-6e4, 0], [6e4, 1]], np.float16)
    assert above_least(half).max() == pytest.approx(1.2e5, rel=1e-3)
    single = above_least(np.array([[-3e38], [3e38]], np.float32))
    assert single.dtype == np.float64
    assert single[1, 0] == pytest.approx(6e38, rel=1e-6)
    assert above_least(np.ones((2, 2), np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match="activations must span less than"):
        above_least([[-1.7e308], [1.7e308]])
