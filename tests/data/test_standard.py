"""Inputs with mean 0 and deviation 1, and parts of a training set."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from nbutils.data.catalogue import available
from nbutils.data.datasets import load_dataset


@pytest.mark.parametrize(("name", "channels"), [("digits", 1), ("cifar10-1k", 3)])
def test_every_channel_has_mean_0_and_deviation_1(name, channels):
    if not available(name):
        pytest.skip(f"{name} is not here")
    data = load_dataset(name, preprocessing="standard")
    inputs = data.train_inputs.reshape(-1, channels).astype(np.float64)
    assert data.train_inputs.dtype == np.float32
    assert np.abs(inputs.mean(axis=0)).max() < 1e-5
    assert np.abs(inputs.std(axis=0) - 1).max() < 1e-5
    plain = load_dataset(name).train_inputs.reshape(-1, channels).astype(np.float64)
    assert np.allclose(inputs, (plain - plain.mean(axis=0)) / plain.std(axis=0), atol=1e-5)


def test_test_images_and_tensors_are_prepared_likewise():
    data = load_dataset("digits", preprocessing="standard", examples=100)
    whole = load_dataset("digits", preprocessing="standard")
    assert (data.test_inputs == whole.test_inputs).all(), "by all training images of that name, not by a part of them"
    as_tensor = data.to_inputs(torch.from_numpy(data.test_pixels))
    assert (as_tensor.numpy() == data.test_inputs).all()
    assert np.abs(data.test_inputs.mean()) < 0.1 < np.abs(load_dataset("digits").test_inputs.mean())


def test_a_part_has_equally_many_of_each_class_and_is_part_of_a_larger_one():
    few, more = (load_dataset("digits", examples=count) for count in (50, 200))
    assert np.bincount(few.train_labels).tolist() == [5] * 10
    assert {one.tobytes() for one in few.train_pixels} <= {one.tobytes() for one in more.train_pixels}
    noisy = load_dataset("digits", "random", 3, examples=50)
    assert (noisy.train_true == few.train_true).all()
    assert noisy.train_pixels is few.train_pixels


def test_what_is_not_there_is_named():
    with pytest.raises(ValueError, match="preprocessing must be one of unit, standard, received 'whitened'"):
        load_dataset("digits", preprocessing="whitened")
    with pytest.raises(
        ValueError, match="examples must be from 1 to 1437, the number of training examples; received 2000"
    ):
        load_dataset("digits", examples=2000)
