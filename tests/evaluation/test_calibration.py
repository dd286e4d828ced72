"""Calibration error and likelihood against hand-computed cases and scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from nbutils.evaluation.calibration import calibration_error, negative_log_likelihood

RNG = np.random.default_rng(0)


def shares(examples=200, classes=4):
    raw = RNG.random((examples, classes)) ** 3
    return raw / raw.sum(axis=1, keepdims=True)


def test_two_bins_by_hand():
    """Three at 0.75, of which two are right; one at 1, which is wrong: 3/4 |2/3 - 3/4| + 1/4 |0 - 1|."""
    given = [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [1.0, 0.0]]
    assert calibration_error(given, [0, 0, 0, 1], bins=5) == pytest.approx(3 / 4 * (3 / 4 - 2 / 3) + 1 / 4)


def test_one_bin_is_the_gap_of_means():
    given, labels = shares(), RNG.integers(4, size=200)
    accuracy = (given.argmax(axis=1) == labels).mean()
    assert calibration_error(given, labels, bins=1) == pytest.approx(abs(accuracy - given.max(axis=1).mean()))


def test_a_network_that_is_right_as_often_as_it_says_is_calibrated():
    given = np.repeat(shares(40), 3000, axis=0)
    drawn = (RNG.random((len(given), 1)) < given.cumsum(axis=1)).argmax(axis=1)
    assert calibration_error(given, drawn) < 0.01
    assert calibration_error(given, (drawn + 1) % 4) > 0.3


def test_likelihood_is_that_of_scikit_learn():
    given, labels = shares(), RNG.integers(4, size=200)
    assert negative_log_likelihood(given, labels) == pytest.approx(log_loss(labels, given, labels=range(4)))
    assert negative_log_likelihood([[1.0, 0.0]], [1]) == pytest.approx(12 * np.log(10))


@pytest.mark.parametrize("take", [calibration_error, negative_log_likelihood])
@pytest.mark.parametrize(
    ("given", "labels", "sentence"),
    [
        ([0.5, 0.5], [0], r"probabilities must have shape \(examples, classes\), received \(2,\)"),
        ([[0.5, 0.6]], [0], "sum to 1"),
        ([[-0.5, 1.5]], [0], "at least 0"),
        ([[0.5, 0.5]], [2], "labels must be from 0 to 1, received 2"),
        ([[0.5, 0.5]], [0, 1], "labels"),
        ([[np.nan, 0.5]], [0], "probabilities must be"),
    ],
)
def test_what_is_no_probability_is_refused(take, given, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        take(given, labels)


def test_probabilities_may_be_tensors_but_not_masked():
    import torch

    shares = torch.tensor([[0.9, 0.1], [0.2, 0.8]], requires_grad=True)
    assert calibration_error(shares, [0, 1]) == pytest.approx(0.15)
    with pytest.raises(ValueError, match="probabilities must not be a masked array"):
        calibration_error(np.ma.masked_array([[0.9, 0.1]], [[True, False]]), [0])
    sure = negative_log_likelihood([[1.0, 0.0]], [0])
    assert sure == 0
    assert not np.signbit(sure)
