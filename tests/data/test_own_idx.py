"""Somebody's own data set in the format and under the names of MNIST's files."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

from nbutils.data.catalogue import check_files, keep_images
from nbutils.data.datasets import load_dataset
from nbutils.data.sources import IDX_FILES

TRAIN = np.arange(6 * 4 * 4, dtype=np.uint8).reshape(6, 4, 4)
TEST = TRAIN[::-1][:4].copy()
GIVEN = dict(zip(IDX_FILES, (TRAIN, np.array([7, 3] * 3), TEST, np.array([3, 7] * 2)), strict=True))


def write(folder: Path, zipped: bool = False, **changes: np.ndarray | bytes) -> str:
    """Four files, byte by byte as the format says; returns the name of the data set."""
    folder.mkdir(exist_ok=True)
    for name, array in GIVEN.items():
        given = changes.get(name.replace("-", "_"), array)
        if given is None:
            continue
        if isinstance(given, np.ndarray):
            head = b"\0\0\x08" + bytes([given.ndim]) + struct.pack(f">{given.ndim}I", *given.shape)
            given = head + given.astype(np.uint8).tobytes()
        (folder / (f"{name}.gz" if zipped else name)).write_bytes(gzip.compress(given) if zipped else given)
    return f"folder:{folder}"


@pytest.mark.parametrize("zipped", [False, True])
def test_images_and_labels_are_those_of_the_files(tmp_path, own_store, fresh_data, zipped):
    name = write(tmp_path / "mine", zipped)
    data = load_dataset(name)
    assert (data.train_pixels == TRAIN.reshape(6, 16)).all()
    assert (data.test_pixels == TEST.reshape(4, 16)).all()
    assert data.classes == ("3", "7"), "named by their labels"
    assert data.train_true.tolist() == [1, 0] * 3
    assert data.test_labels.tolist() == [0, 1] * 2
    assert data.origin == "idx files of the folder mine"
    check_files(name)


def test_colour_and_another_size(tmp_path, own_store, fresh_data):
    colours = np.repeat(TRAIN[..., None], 3, axis=3)
    name = write(tmp_path / "mine", train_images_idx3_ubyte=colours, t10k_images_idx3_ubyte=colours[:4])
    assert load_dataset(name).image_shape == (4, 4, 3)
    assert load_dataset(f"{name}@2").image_shape == (2, 2, 3)
    with pytest.raises(ValueError, match="leave out @colour and @grey"):
        keep_images(f"{name}@grey")


def test_a_changed_file_is_read_again(tmp_path, own_store, fresh_data):
    name = write(tmp_path / "mine")
    before = keep_images(name).version
    write(tmp_path / "mine", train_images_idx3_ubyte=255 - TRAIN)
    assert keep_images(name).version != before


WHITE = np.zeros((4, 5, 5), np.uint8)
MISTAKES = {
    "lacks t10k-labels-idx1-ubyte": {"t10k_labels_idx1_ubyte": None},
    "holds 6 images, but its labels have shape": {"train_labels_idx1_ubyte": np.array([1, 2])},
    "must hold images x height x width": {"train_images_idx3_ubyte": TRAIN.reshape(6, 16)},
    "images of one shape are needed": {"t10k_images_idx3_ubyte": WHITE},
    "no training image of class 3": {"train_labels_idx1_ubyte": np.array([7] * 6)},
    "it holds": {"train_images_idx3_ubyte": b"\0\0\x08\x03" + struct.pack(">3I", 6, 4, 4) + b"short"},
    "does not begin as an idx file": {"train_labels_idx1_ubyte": b"no idx at all"},
    "at least two classes": {"train_labels_idx1_ubyte": np.ones(6), "t10k_labels_idx1_ubyte": np.ones(4)},
}


@pytest.mark.parametrize("words", MISTAKES)
def test_what_does_not_fit_together_is_named(tmp_path, own_store, fresh_data, words):
    name = write(tmp_path / "mine", **MISTAKES[words])
    with pytest.raises(ValueError, match=words):
        load_dataset(name)
