from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from nbutils.entropy import mutual_information, total_correlation


def test_mutual_information_equals_scikit_learn(rng):
    labels = rng.integers(0, 6, 500)
    fired = rng.random((500, 8)) < 0.1 + 0.15 * (labels[:, None] % np.arange(1, 9))
    mine = mutual_information(fired, labels, correction=None)
    other = [mutual_info_score(labels, f) / np.log(2) for f in fired.T]
    assert mine == pytest.approx(other, abs=1e-12)


def test_correction_takes_the_bias_away(rng):
    labels = rng.integers(0, 10, 300)
    fired = rng.random((300, 400)) < 0.3
    plain, corrected = (mutual_information(fired, labels, c).mean() for c in (None, "miller-madow"))
    assert plain == pytest.approx(9 / (2 * 300 * np.log(2)), rel=0.15)  # (classes - 1)(states - 1) / (2 N ln 2)
    assert abs(corrected) < plain / 8


def test_no_information_in_constants_and_single_classes(rng):
    fired = rng.random((100, 3)) < 0.5
    fired[:, 0], fired[:, 1] = True, False
    assert mutual_information(fired, rng.integers(0, 3, 100))[:2] == pytest.approx([0, 0])
    assert mutual_information(fired, np.zeros(100, int)) == pytest.approx([0, 0, 0])


def test_total_correlation_of_copies_and_of_strangers(rng):
    one = rng.random((4000, 1)) < 0.5
    copies = np.repeat(one, 6, axis=1)
    assert total_correlation(copies, correction=None) == pytest.approx(5, abs=0.01)  # six bits said, one meant
    assert abs(total_correlation(rng.random((4000, 60)) < 0.5)) < 0.01


def test_total_correlation_by_hand():
    both = np.array([[1, 1], [1, 1], [0, 0], [0, 1]], dtype=bool)
    single = 1 + (-(0.75 * np.log2(0.75)) - 0.25 * np.log2(0.25))
    joint = -(0.5 * np.log2(0.5)) - 2 * 0.25 * np.log2(0.25)
    assert total_correlation(both, block=2, correction=None) == pytest.approx(single - joint)


def test_total_correlation_leaves_out_constants_and_is_reproducible(rng):
    fired = rng.random((200, 30)) < 0.3
    padded = np.hstack([fired, np.zeros((200, 5), bool), np.ones((200, 5), bool)])
    assert total_correlation(padded, seed=3) == total_correlation(fired, seed=3)
    assert total_correlation(np.ones((10, 4), bool)) == 0.0
    assert total_correlation(fired[:, :1]) == 0.0


@pytest.mark.parametrize("block", [1, 17, "6"])
def test_bad_block_is_named(block):
    with pytest.raises(ValueError, match="block must be a whole number from 2 to 16"):
        total_correlation(np.ones((3, 3), bool), block=block)
