from __future__ import annotations

import io
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from nbutils.data.datasets import Dataset, load_dataset
from nbutils.data.datasheets import read_datasheet
from nbutils.pages.portraits import community_classes, sample_images

KEPT = Path(__file__).resolve().parents[2] / "book/results/datasets/plantvillage.json"
PLANTS = tuple(json.loads(KEPT.read_text("utf-8"))["classes"])


@pytest.fixture
def plants() -> Dataset:
    """Fifteen classes with long names in colour; image n of class k is k + 10 n in red, and class 4 has but one."""
    labels = np.array([k for k in range(15) for _ in range(1 if k == 4 else 3)])
    pixels = np.zeros((len(labels), 4, 5, 3), np.uint8)
    rank = np.array([np.sum(labels[:i] == k) for i, k in enumerate(labels)])
    pixels[..., 0] = (labels + 10 * rank)[:, None, None]
    flat = pixels.reshape(len(labels), -1)
    return replace(
        load_dataset("digits"), train_pixels=flat, train_true=labels, image_shape=(4, 5, 3), classes=PLANTS, levels=255
    )


def drawn(figure) -> list[tuple[str, list[np.ndarray]]]:
    """Names and pictures, as the figure holds them."""
    axes = [ax for ax in figure.axes if ax.images]
    return [(ax.get_title().replace("\n", " "), [np.asarray(i.get_array()) for i in ax.images]) for ax in axes]


def test_colour_images_with_long_names(plants):
    found = drawn(sample_images(plants, 2))
    assert len(found) == 15
    assert found[0][0] == "Pepper, bell: Bacterial spot"
    for k, (_, images) in enumerate(found):
        assert [image.shape for image in images] == [(4, 5, 3)] * (1 if k == 4 else 2)
        assert [image[0, 0].tolist() for image in images] == [[k + 10 * n, 0, 0] for n in range(len(images))]


def test_names_do_not_touch(plants):
    figure = sample_images(plants, 2)
    figure.savefig(io.BytesIO())  # which lays it out
    boxes = [ax.title.get_window_extent() for ax in figure.axes if ax.images]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert min(box.x0 for box in boxes) >= 0
    assert max(box.x1 for box in boxes) <= figure.bbox.width


def test_grey_images_are_whole(rng):
    data = load_dataset("digits")
    found = drawn(sample_images(data, 3))
    assert [name for name, _ in found] == list("0123456789")
    first = data.train_pixels[np.flatnonzero(data.train_true == 7)[2]]
    assert (found[7][1][2].ravel() == first).all()


def test_means_and_brightness_of_classes_by_hand(plants):
    """Classes of images whose red is k, k + 10 and k + 20, but of class 4 only the first."""
    sheet = replace(read_datasheet("digits"), data=plants, classes=PLANTS, image_shape=(4, 5, 3))
    found = drawn(sample_images(sheet.means(), 1))
    assert [images[0][0, 0, 0] for _, images in found] == [k if k == 4 else k + 10 for k in range(15)]
    bright = sheet.class_brightness()
    assert list(bright) == ["class", "5%", "25%", "50%", "75%", "95%"]
    expected = [[k] * 5 if k == 4 else [k + 1, k + 5, k + 10, k + 15, k + 19] for k in range(15)]
    assert bright.iloc[:, 1:].to_numpy() * 255 * 3 == pytest.approx(np.array(expected))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("names", [PLANTS, tuple("0123456789")])
def test_answers_of_communities_leave_room_for_the_names(rng, names):
    labels = np.arange(150) % len(names)
    figure = community_classes(rng.random((150, 6)) < 0.5, labels, np.array([0, 0, 1, 1, 2, -1]), names)
    figure.savefig(io.BytesIO(), format="svg")
    heat = figure.axes[0]
    rows = [text.get_text() for text in heat.get_yticklabels()]
    assert rows == ["1  (2 neurons)", "2  (2 neurons)", "3  (1 neuron)"]
    boxes = [text.get_window_extent() for text in heat.get_xticklabels()]
    assert all(left.x1 <= right.x0 for left, right in pairwise(boxes)), "names touch"
    assert heat.get_window_extent().height > 50


def test_where_nothing_fires_together_the_picture_says_so():
    figure = community_classes(np.zeros((20, 6), bool), np.arange(20) % 10, np.full(6, -1), tuple("0123456789"))
    assert [text.get_text() for text in figure.axes[0].texts] == ["no communities"]
