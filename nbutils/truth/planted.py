"""Planted tasks: pictures with two factors, and labels that ask for one of them, both, or one of them twice.

What should become a module of neurons is known from how the task is made, and swapping one factor while the other stays
says how far each neuron follows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nbutils.data.datasets import load_dataset
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, shown
from nbutils.truth.letters import FACES, GLYPHS, glyph_images

__all__ = ["TASKS", "Sample", "Task", "first_pixels", "joined", "planted_data"]

GRID = 3  # of nine digits in three rows and columns
LARGE = 20  # pixels from which on two by two are made one
SWAPS = 4  # draws of another factor for each picture


@dataclass(frozen=True)
class Task:
    """A task whose modules are known.

    Attributes:
        title: what pages call it.
        about: what pictures show, what is asked, and what should become a module.
        kind: "pairs" of images, "glyphs", or "grid", digits in rows and columns.
        heads: the factor that each head asks for, 0 or 1.
        modules: modules that the task plants.
        role: "positive" where two modules are planted, "negative" where there is no second one, "beside" where it is
            open how many there are.
        family: positive and negative tasks of one family have the same pictures; empty for what is shown beside.
        overlap: share of its width by which the second image of a pair covers the first.
        together: whether both images of a pair have the same label.
        apart: whether the network is wired as two that share nothing.
        trained: whether it is trained at all.
    """

    title: str
    about: str
    kind: str
    heads: tuple[int, ...]
    modules: int
    role: str
    family: str = ""
    overlap: float = 0.0
    together: bool = False
    apart: bool = False
    trained: bool = True


TASKS: Mapping[str, Task] = {
    "independent": Task(
        "two images, two labels",
        "Two digits side by side with independent labels, both asked for. One module for each image.",
        *("pairs", (0, 1), 2, "positive", "pairs"),
    ),
    "none": Task(
        "left label only",
        "The same pictures, and only the label of the left image asked for. No second module.",
        *("pairs", (0,), 1, "negative", "pairs"),
    ),
    "glyph-font": Task(
        "letter and font",
        "One picture of a letter in a font, both asked for. One module for each, in the same pixels.",
        *("glyphs", (0, 1), 2, "positive", "glyphs"),
    ),
    "glyph": Task(
        "letter only",
        "The same pictures, and only the letter asked for. No second module.",
        *("glyphs", (0,), 1, "negative", "glyphs"),
    ),
    "apart": Task(
        "wired apart",
        "Two images and two labels, in a network of two halves that share no weight: two modules by construction.",
        *("pairs", (0, 1), 2, "positive"),
        apart=True,
    ),
    "twice": Task(
        "one label twice",
        "The label of the left image asked for by two heads; the right one is irrelevant. One task twice, one module.",
        *("pairs", (0, 0), 1, "negative", "pairs"),
    ),
    "shared": Task(
        "two images, one label",
        "Two different images of the same label, both heads asked for it. Two inputs, one answer.",
        *("pairs", (0, 1), 2, "beside"),
        together=True,
    ),
    "overlap": Task(
        "overlapping images",
        "Two images that share half of their width, with independent labels, both asked for. Two modules, less apart.",
        *("pairs", (0, 1), 2, "positive"),
        overlap=0.5,
    ),
    "split": Task(
        "shared, then split",
        "One digit of nine in a grid of three by three; one head asks for its row, one for its column. The same early "
        "features, two answers.",
        *("grid", (0, 1), 2, "beside"),
    ),
    "untrained": Task(
        "untrained",
        "The pictures of two images and two labels, before any training. No module was learned.",
        *("pairs", (0, 1), 0, "beside"),
        trained=False,
    ),
}


@dataclass(frozen=True)
class Sample:
    """Pictures of a task.

    Attributes:
        inputs: as a network takes them, float32, shape (pictures, pixels).
        factors: both factors of each picture, shape (pictures, 2).
        swapped: the same pictures with another first factor, with another second one, and where a picture cannot be
            changed in part with another picture of the same factors; float32, shape (draws, pictures, pixels) each.
    """

    inputs: np.ndarray
    factors: np.ndarray
    swapped: tuple[np.ndarray, ...]


@lru_cache(maxsize=4)
def _images(dataset: str, train: bool) -> tuple[np.ndarray, np.ndarray]:
    """Images in [0, 1] and labels of one side of a data set; large images two by two pixels in one."""
    data = load_dataset(dataset)
    pixels, labels = (data.train_pixels, data.train_true) if train else (data.test_pixels, data.test_labels)
    if len(data.image_shape) != 2:
        raise ValueError(f"dataset must be of grey images, received {shown(dataset)}")
    height, width = data.image_shape
    found = pixels.reshape(-1, height, width).astype(np.float32) / data.levels
    if height >= LARGE and height % 2 == width % 2 == 0:
        found = found.reshape(-1, height // 2, 2, width // 2, 2).mean(axis=(2, 4))
    return found, labels


def joined(first: np.ndarray, second: np.ndarray, overlap: float = 0.0) -> np.ndarray:
    """Images side by side; where they overlap, the brighter pixel.

    Args:
        first: shape (..., height, width).
        second: the same shape.
        overlap: share of the width that both cover, from 0 to 1.

    Examples:
        >>> joined(np.array([[1, 2]]), np.array([[5, 1]]), 0.5).tolist()
        [[1, 5, 1]]
    """
    width = first.shape[-1]
    step = width - round(overlap * width)
    found = np.zeros((*first.shape[:-1], width + step), first.dtype)
    found[..., :width] = first
    found[..., step:] = np.maximum(found[..., step:], second)
    return found


def first_pixels(task: Task, dataset: str) -> np.ndarray:
    """Which pixels of a pair belong to its first image alone or in part, shape (pixels,), boolean."""
    example = _images(dataset, True)[0][:1]
    marks = joined(np.ones_like(example), np.zeros_like(example), task.overlap)
    return marks.ravel() > 0


@checked
def planted_data(
    task: str, dataset: str = "mnist", seed: int = 0, pictures: int = 20_000, probe: int = 2000
) -> tuple[Sample, Sample]:
    """Pictures to train with, and others to look at the network with; standardised by the mean and deviation of the
    first.

    Training pairs are made of training images, those of the probe of test images.

    Args:
        task: key of `TASKS`.
        dataset: grey images with ten labels, such as "mnist"; letters need none.
        seed: of all that is drawn.
        pictures: to train with.
        probe: to look at the network with.

    Returns:
        (training, probe); only the probe has `swapped`.

    Raises:
        ValueError: there is no such task or data set, or a number is out of range.

    Examples:
        >>> train, probe = planted_data("independent", "digits", pictures=50, probe=20)
        >>> train.inputs.shape, probe.swapped[0].shape  # two images of 8 by 8 pixels
        ((50, 128), (4, 20, 128))
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, received {shown(task)}")
    pictures, probe = as_count(pictures, "pictures"), as_count(probe, "probe")
    rng, make = np.random.default_rng([as_count(seed, "seed", 0), 19]), MAKERS[TASKS[task].kind]
    train, shown_ = make(TASKS[task], dataset, True, pictures, rng), make(TASKS[task], dataset, False, probe, rng)
    mean, deviation = train.inputs.mean(), train.inputs.std()

    def standard(values: np.ndarray) -> np.ndarray:
        return ((values - mean) / deviation).astype(np.float32)

    return (
        Sample(standard(train.inputs), train.factors, ()),
        Sample(standard(shown_.inputs), shown_.factors, tuple(standard(one) for one in shown_.swapped)),
    )


def _pairs(task: Task, dataset: str, train: bool, size: int, rng: np.random.Generator) -> Sample:
    images, labels = _images(dataset, train)
    first = rng.integers(len(images), size=size)
    second = _alike(labels, labels[first], rng) if task.together else rng.integers(len(images), size=size)
    inputs = joined(images[first], images[second], task.overlap).reshape(size, -1)
    factors = np.stack([labels[first], labels[second]], axis=1)
    if train:
        return Sample(inputs, factors, ())
    others = rng.integers(len(images), size=(2, SWAPS, size))
    swaps = [joined(images[others[0, k]], images[second], task.overlap) for k in range(SWAPS)]
    swaps += [joined(images[first], images[others[1, k]], task.overlap) for k in range(SWAPS)]
    both = np.stack(swaps).reshape(2, SWAPS, size, -1)
    return Sample(inputs, factors, (both[0], both[1]))


def _alike(labels: np.ndarray, wanted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """For each wanted label, a random image that has it."""
    found = np.empty(len(wanted), np.int64)
    for label in np.unique(wanted):
        places = wanted == label
        found[places] = rng.choice(np.flatnonzero(labels == label), places.sum())
    return found


def _glyphs(task: Task, dataset: str, train: bool, size: int, rng: np.random.Generator) -> Sample:
    many = np.array([len(GLYPHS), len(FACES)])
    factors = rng.integers(many, size=(size, 2))
    if train:
        return Sample(glyph_images(factors, rng).reshape(size, -1), factors, ())
    blocks = [factors]
    for which in (0, 1):
        for _ in range(SWAPS):
            other = factors.copy()
            other[:, which] = (other[:, which] + rng.integers(1, many[which], size)) % many[which]
            blocks.append(other)
    drawn = glyph_images(np.concatenate(blocks), rng, copies=len(blocks)).reshape(len(blocks), size, -1)
    return Sample(drawn[0], factors, (drawn[1 : 1 + SWAPS], drawn[1 + SWAPS :]))


def _grid(task: Task, dataset: str, train: bool, size: int, rng: np.random.Generator) -> Sample:
    images, labels = _images(dataset, train)
    chosen = rng.choice(np.flatnonzero(labels < GRID**2), size)
    factors = np.stack(np.divmod(labels[chosen], GRID), axis=1)
    if train:
        return Sample(images[chosen].reshape(size, -1), factors, ())

    def other(steps: tuple[int, int]) -> np.ndarray:
        """Pictures so many rows and columns on, at random from 1 where that is not 0."""
        moved = [(factors[:, k] + steps[k] * rng.integers(1, GRID, size)) % GRID for k in (0, 1)]
        return images[_alike(labels, GRID * moved[0] + moved[1], rng)].reshape(size, -1)

    swaps = tuple(np.stack([other(steps) for _ in range(SWAPS)]) for steps in ((1, 0), (0, 1), (0, 0)))
    return Sample(images[chosen].reshape(size, -1), factors, swaps)


MAKERS = {"pairs": _pairs, "glyphs": _glyphs, "grid": _grid}
