from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import NearestCentroid

from nbutils.data.datasets import load_dataset
from nbutils.data.datasheets import brightness_table, channel_means, simple_accuracies


def made(pixels: np.ndarray, labels: np.ndarray, shape: tuple[int, ...], classes: int, levels: int = 255):
    """A data set whose test images are its training images."""
    names = tuple(str(k) for k in range(classes))
    sides = {"train_pixels": pixels, "test_pixels": pixels, "train_true": labels, "test_labels": labels}
    return replace(load_dataset("digits"), **sides, image_shape=shape, classes=names, levels=levels)


def test_brightness_by_hand():
    image = np.array([[0, 255, 0, 255, 255, 0], [0, 255, 51, 0, 255, 0]], np.uint8)  # two pixels of red, green, blue
    table = brightness_table(made(image, np.array([0, 1]), (1, 2, 3), 2)).set_index("channel")
    assert list(table.index) == ["red", "green", "blue"]
    assert table.loc["red"].tolist() == pytest.approx([0.25, np.sqrt(3) / 4, 0.75, 0.25])
    assert table.loc["green"].tolist() == pytest.approx([1, 0, 0, 1])
    assert table.loc["blue"].tolist() == pytest.approx([0.05, np.sqrt(0.03 - 0.0225), 0.75, 0])


def test_brightness_is_numpy_s(monkeypatch):
    data = load_dataset("mnist-5k")
    monkeypatch.setattr("nbutils.data.datasheets.CHUNK", 999)
    row = brightness_table(data).iloc[0]
    assert row["mean"] == pytest.approx(data.train_inputs.mean(), rel=1e-5)
    assert row["standard deviation"] == pytest.approx(data.train_inputs.std(), rel=1e-4)
    assert row["black"] == (data.train_pixels == 0).mean()


def test_channel_means():
    assert channel_means(np.arange(12).reshape(2, 6), (1, 2, 3)).tolist() == [[1.5, 2.5, 3.5], [7.5, 8.5, 9.5]]
    with pytest.raises(ValueError, match=r"pixels must have 4 columns for image_shape, received \(2, 6\)"):
        channel_means(np.zeros((2, 6)), (2, 2))


def test_each_rule_sees_what_it_may_see():
    """Same light in other places; other light in the same places; colour only."""
    labels = np.repeat(np.arange(4), 50)
    place = np.repeat(np.eye(4, dtype=np.uint8), 50, axis=0)
    assert simple_accuracies(made(place, labels, (2, 2), 4, 1))["accuracy"].tolist() == [0.25, 0.25, 1, 1]
    light = np.repeat(np.arange(4, dtype=np.uint8), 50)[:, None] * np.full((1, 4), 80, np.uint8)
    assert simple_accuracies(made(light, labels, (2, 2), 4))["accuracy"].tolist() == [0.25, 1, 1, 1]
    tint = np.repeat(np.eye(3, dtype=np.uint8), 50, axis=0).repeat(2, axis=0).reshape(-1, 3)
    assert simple_accuracies(made(tint, np.repeat(np.arange(3), 100), (1, 1, 3), 3, 1))["accuracy"][1] == 1


def test_uneven_classes_are_weighed_both_ways(rng):
    labels = np.repeat([0, 1], [90, 10])
    row = simple_accuracies(made(rng.integers(256, size=(100, 4), dtype=np.uint8), labels, (2, 2), 2)).iloc[0]
    assert (row["accuracy"], row["mean over classes"]) == (0.9, 0.5)
    assert row["low"] < 0.9 < row["high"]


@pytest.mark.filterwarnings("ignore:self.within_class_std_dev_")  # pixels that are always black
def test_nearest_mean_is_scikit_learn_s():
    data = load_dataset("mnist-5k")
    row = simple_accuracies(data).set_index("rule").loc["nearest class mean"]
    guess = NearestCentroid().fit(data.train_inputs, data.train_true).predict(data.test_inputs)
    assert row["accuracy"] == (guess == data.test_labels).mean()
    assert row["mean over classes"] == pytest.approx(balanced_accuracy_score(data.test_labels, guess))
    assert row["hardest class"] == "5 (0.67)"


def test_too_few_examples_are_refused():
    data = load_dataset("digits")
    with pytest.raises(ValueError, match="examples must be from 1 to 1437"):
        simple_accuracies(data, 0)
    with pytest.raises(ValueError, match="examples must reach every one of 10 classes, received 9"):
        simple_accuracies(data, 9)
