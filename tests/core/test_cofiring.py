from __future__ import annotations

import numpy as np
import pytest
import torch

from nbutils.cofiring import cofiring_counts, count_histogram, count_threshold, pack_firing, pairs_from

# Around the sizes at which words (64 examples), word groups (2,048 examples) and tiles (64 neurons) end.
SHAPES = [(1, 1), (3, 2), (63, 64), (64, 63), (65, 65), (128, 129), (200, 5), (2047, 70), (2050, 130), (70, 300)]


def test_counts_equal_a_loop(rng):
    fired = rng.random((40, 7)) < 0.4
    counts = cofiring_counts(fired)
    for i in range(7):
        for j in range(7):
            assert counts[i, j] == sum(bool(a and b) for a, b in zip(fired[:, i], fired[:, j], strict=True))


def test_counts_are_exact_beyond_sixteen_bits():
    fired = np.ones((70_001, 3), dtype=bool)
    fired[0, 2] = False
    assert cofiring_counts(fired).tolist() == [[70_001, 70_001, 70_000], [70_001, 70_001, 70_000], [70_000] * 3]


def test_tensors_are_accepted(rng):
    fired = rng.random((30, 5)) < 0.5
    assert (cofiring_counts(torch.from_numpy(fired)) == cofiring_counts(fired)).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.9, 1.0])
def test_counts_equal_a_product(rng, shape, rate):
    fired = rng.random(shape) < rate
    assert (cofiring_counts(fired) == fired.T.astype(np.int64) @ fired).all()


@pytest.mark.parametrize("layout", ["C", "F", "view"])
def test_any_layout_is_packed_alike(rng, layout):
    fired = rng.random((130, 70)) < 0.3
    other = {"C": fired, "F": np.asfortranarray(fired), "view": np.repeat(fired, 2, axis=1)[:, ::2]}[layout]
    packed = pack_firing(other)
    assert (packed.neurons, packed.examples) == (70, 130)
    bits = np.unpackbits(packed.words[:70].view(np.uint8), axis=1, bitorder="little", count=130)
    assert (fired == bits.T).all()
    assert not packed.words[70:].any()


@pytest.mark.parametrize("shape", SHAPES)
def test_histogram_threshold_and_pairs_equal_those_of_a_sorted_list(rng, shape):
    fired = rng.random(shape) < 0.4
    counts = cofiring_counts(fired)
    i, j = np.triu_indices(shape[1], 1)
    pairs = counts[i, j]
    packed = pack_firing(fired)
    histogram = count_histogram(packed)
    assert (histogram == np.bincount(pairs, minlength=shape[0] + 1)).all()
    for wanted in {1, max(1, pairs.size // 20), max(1, pairs.size)}:
        threshold = count_threshold(histogram, wanted)
        assert threshold == max(1, np.sort(pairs)[::-1][wanted - 1] if pairs.size else 1)
        rows, columns, weights = pairs_from(packed, threshold)
        kept = pairs >= threshold
        assert (rows == i[kept]).all()
        assert (columns == j[kept]).all()
        assert (weights == pairs[kept]).all()


def test_strips_add_up_in_any_split(rng):
    packed = pack_firing(rng.random((100, 300)) < 0.3)
    halves = packed.strips[::2], packed.strips[1::2]
    assert (sum(count_histogram(packed, half) for half in halves) == count_histogram(packed)).all()
    parts = [pairs_from(packed, 12, [strip]) for strip in packed.strips]
    for whole, split in zip(pairs_from(packed, 12), zip(*parts, strict=True), strict=True):
        assert (whole == np.concatenate(split)).all()


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_threads_change_nothing(rng, threads, monkeypatch):
    fired = rng.random((100, 300)) < 0.3
    alone = cofiring_counts(fired)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    assert (cofiring_counts(fired) == alone).all()
