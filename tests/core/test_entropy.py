from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy as scipy_entropy

from nbutils.activations import activation_histogram
from nbutils.entropy import (
    binned_entropy,
    class_conditional_entropy,
    entropy_bits,
    firing_entropy,
    histogram_entropy,
    pattern_entropy,
    unique_share,
)


def codes(bits: int) -> np.ndarray:
    return ((np.arange(2**bits)[:, None] >> np.arange(bits)) & 1).astype(bool)


@pytest.mark.parametrize("bits", [1, 3, 6, 9])
def test_uniform_patterns_have_as_many_bits_as_neurons(bits):
    assert pattern_entropy(codes(bits), correction=None) == pytest.approx(bits)


def test_constant_patterns_have_none():
    assert pattern_entropy(np.ones((50, 4), bool)) == 0.0
    assert pattern_entropy(np.zeros((50, 0), bool)) == 0.0
    assert pattern_entropy(np.ones((1, 4), bool)) == 0.0


def test_a_copied_neuron_adds_nothing(rng):
    fired = rng.random((300, 5)) < 0.3
    assert pattern_entropy(np.hstack([fired, fired])) == pattern_entropy(fired)


def test_miller_madow_adds_what_it_says(rng):
    fired = rng.random((300, 5)) < 0.3
    states = len(np.unique(fired, axis=0))
    extra = (states - 1) / (2 * 300 * np.log(2))
    assert pattern_entropy(fired) == pytest.approx(pattern_entropy(fired, correction=None) + extra)


def test_miller_madow_reduces_the_bias(rng):
    estimates = [pattern_entropy(rng.random((200, 5)) < 0.5, c) for c in (None, "miller-madow") for _ in range(200)]
    plain, corrected = np.mean(estimates[:200]), np.mean(estimates[200:])
    assert abs(corrected - 5) < abs(plain - 5) / 3


def test_pattern_entropy_equals_scipy(rng):
    fired = rng.random((400, 9)) < 0.2
    counts = np.unique(fired, axis=0, return_counts=True)[1]
    assert pattern_entropy(fired, correction=None) == pytest.approx(scipy_entropy(counts, base=2))


def test_firing_entropy_equals_scipy_and_is_zero_for_constants(rng):
    fired = rng.random((100, 6)) < 0.4
    fired[:, 0], fired[:, 1] = True, False
    rate = fired.mean(axis=0)
    assert firing_entropy(fired) == pytest.approx(scipy_entropy([rate, 1 - rate], base=2))
    assert firing_entropy(fired)[:2].tolist() == [0.0, 0.0]


def test_entropy_within_classes(rng):
    fired, labels = rng.random((400, 3)) < 0.5, rng.integers(0, 4, 400)
    parts = [pattern_entropy(fired[labels == k]) * np.mean(labels == k) for k in range(4)]
    assert class_conditional_entropy(fired, labels) == pytest.approx(sum(parts))
    assert class_conditional_entropy(fired, np.zeros(400, int)) == pytest.approx(pattern_entropy(fired))
    assert class_conditional_entropy(labels[:, None] == np.arange(4), labels) == 0.0


def test_knowing_the_class_never_adds_entropy(rng):
    fired, labels = rng.random((500, 4)) < 0.5, rng.integers(0, 5, 500)
    plain = pattern_entropy(fired, correction=None)
    assert class_conditional_entropy(fired, labels, correction=None) <= plain


def test_unique_share():
    assert unique_share(codes(3)) == 1.0
    assert unique_share(np.ones((4, 2), bool)) == 0.0


def test_binned_entropy_by_hand():
    # Max 10, bins of 2: values 1, 2 | 3 | 10 lie in bins 1, 1, 2, 5; zeros and negatives are left out.
    values = np.array([[1.0], [2.0], [3.0], [10.0], [0.0], [-5.0]])
    assert activation_histogram(values, bins=5)[:, 0].tolist() == [2, 1, 0, 0, 1]
    assert binned_entropy(values, bins=5)[0] == pytest.approx(1.5)


def test_binned_entropy_of_dead_constant_and_uniform_neurons():
    values = np.column_stack([np.zeros(100), np.full(100, 3.0), np.arange(1, 101)])
    assert binned_entropy(values, bins=10) == pytest.approx([0.0, 0.0, np.log2(10)])


def test_binned_entropy_does_not_depend_on_scale(rng):
    values = rng.gamma(1.0, size=(500, 8)).astype(np.float32)
    assert binned_entropy(values) == pytest.approx(binned_entropy(values * 4))
    assert (histogram_entropy(activation_histogram(values)) == binned_entropy(values)).all()


def test_histogram_counts_every_positive_activation(rng):
    values = np.maximum(rng.normal(size=(300, 7)), 0)
    assert (activation_histogram(values).sum(axis=0) == (values > 0).sum(axis=0)).all()


def test_tiny_activations_do_not_overflow():
    values = np.array([[1e-40], [5e-41], [0.0]], dtype=np.float32)
    assert activation_histogram(values, bins=2).sum() == 2


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="correction must be None or 'miller-madow', received 'jackknife'"):
        pattern_entropy(codes(2), correction="jackknife")
    with pytest.raises(ValueError, match="bins must be a whole number"):
        binned_entropy(np.ones((3, 2)), bins=0)
    with pytest.raises(ValueError, match="1 NaN or infinite values, the first in neuron 1"):
        binned_entropy(np.array([[1.0, np.inf]]))


def test_entropy_of_no_counts_is_zero():
    assert entropy_bits(np.zeros((3, 2))).tolist() == [0.0, 0.0]
