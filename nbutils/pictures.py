"""Pictures in folders or in an archive, one folder per class, as one array of bytes."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

__all__ = ["Images", "Picture", "decode", "pictures_in_archive", "pictures_in_folder", "resized"]

PICTURE = re.compile(r"\.(jpe?g|png|bmp|webp)$", re.IGNORECASE)
MOST_PIXELS = 100_000_000  # of one picture; a small file can claim to hold far more
SPLITS = ("train", "test")


@dataclass(frozen=True)
class Images:
    """All images of a data set.

    Attributes:
        train: uint8, shape (examples, height, width) or (examples, height, width, 3).
        train_labels: class of each, int64, shape (examples,); `test` and `test_labels` likewise.
        classes: names of the classes.
        origin: which version of the data set this is, for a reader.
    """

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray
    classes: tuple[str, ...]
    origin: str


@dataclass(frozen=True)
class Picture:
    """One picture, not decoded yet.

    Attributes:
        split: "train", "test", or "" where the data set has no split of its own.
        label: name of its class.
        name: for messages and for a fixed order.
        content: the file.
    """

    split: str
    label: str
    name: str
    content: bytes


def pictures_in_folder(folder: Path) -> Iterator[Picture]:
    """Pictures under `train/<class>/` and `test/<class>/`, or under `<class>/` alone.

    Raises:
        ValueError: there is no picture, or only one of the two splits.
    """
    splits = [split for split in SPLITS if (folder / split).is_dir()]
    if len(splits) == 1:
        raise ValueError(f"{folder} has a folder {splits[0]!r} but not the other of 'train' and 'test'")
    found = False
    for split in splits or [""]:
        for group in sorted(path for path in (folder / split).iterdir() if path.is_dir()):
            for file in sorted(path for path in group.iterdir() if PICTURE.search(path.name)):
                found = True
                yield Picture(split, group.name, str(file.relative_to(folder)), file.read_bytes())
    if not found:
        raise ValueError(f"{folder} holds no pictures; they belong into one folder per class, .jpg or .png")


def pictures_in_archive(archive: Path) -> Iterator[Picture]:
    """Pictures under `.../train/<class>/` and `.../test/<class>/` in a .tar.xz file; nothing is unpacked.

    Raises:
        ValueError: the archive is damaged, or holds no such picture.
    """
    found = False
    try:
        with tarfile.open(archive, "r|xz") as content:
            for member in content:
                split, label = ("", "", *PurePosixPath(member.name).parts)[-3:-1]
                if member.isfile() and PICTURE.search(member.name) and split in SPLITS:
                    found = True
                    yield Picture(split, label, member.name, content.extractfile(member).read())
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ValueError(f"{archive} is damaged ({error}); replace it") from None
    if not found:
        raise ValueError(f"{archive} holds no pictures under train/<class>/ and test/<class>/")


def decode(
    pictures: Iterable[Picture], origin: str, size: int | None = None, colour: bool | None = None, seed: int = 0
) -> Images:
    """Decode pictures into arrays.

    Args:
        pictures: in any order; the arrays are ordered by name within each split.
        origin: see :class:`Images`.
        size: height and width to resize to, by area; None keeps them, and then all must be alike.
        colour: three channels (True) or one (False); None takes what the pictures have, and then all must be alike.
        seed: of the split where the pictures have none: a fifth of each class for the test.

    Returns:
        The :class:`Images`, classes sorted by name.

    Raises:
        ValueError: a picture cannot be read or differs in shape (it is named), there are fewer than two classes, or a
            class has no training picture.
    """
    rows = sorted(
        ((p.split, p.name.rpartition("/")[2], p.name, p.label, _pixels(p, size, colour)) for p in pictures),
        key=lambda row: row[:3],
    )
    first = rows[0]
    for row in rows:
        if row[4].shape != first[4].shape:
            a, b = ("x".join(map(str, r[4].shape)) for r in (row, first))
            raise ValueError(f"{row[2]} has shape {a}, {first[2]} has {b}; ask for one size, and for grey or colour")
    classes = tuple(sorted({row[3] for row in rows}))
    if len(classes) < 2:
        raise ValueError(f"there must be at least two classes, found {', '.join(classes)}")
    images, labels = np.stack([row[4] for row in rows]), np.array([classes.index(row[3]) for row in rows])
    test = np.array([row[0] == "test" for row in rows])
    if not first[0]:
        test = _fifth(labels, seed)
    missing = sorted(set(range(len(classes))) - set(labels[~test].tolist()))
    if missing:
        raise ValueError(f"class {classes[missing[0]]!r} has no training picture")
    return Images(images[~test], labels[~test], images[test], labels[test], classes, origin)


def resized(images: np.ndarray, size: int) -> np.ndarray:
    """Images with another height and width, by area.

    Examples:
        >>> resized(np.arange(4, dtype=np.uint8).reshape(1, 2, 2), 1).tolist()
        [[[2]]]
    """
    from PIL import Image

    return np.stack([np.asarray(Image.fromarray(image).resize((size, size), Image.Resampling.BOX)) for image in images])


def _fifth(labels: np.ndarray, seed: int) -> np.ndarray:
    """A fifth of each class, at least one of it where it has two."""
    rng, chosen = np.random.default_rng(seed), np.zeros(len(labels), bool)
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        chosen[members[: max(round(0.2 * len(members)), int(len(members) > 1))]] = True
    return chosen


def _pixels(picture: Picture, size: int | None, colour: bool | None) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(picture.content)) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"it claims {image.width} x {image.height} pixels")
            three = image.mode not in ("1", "L", "LA", "I", "I;16", "F") if colour is None else colour
            image = image.convert("RGB" if three else "L")
            if size is not None and image.size != (size, size):
                image = image.resize((size, size), Image.Resampling.BOX)
            return np.asarray(image)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError) as error:
        raise ValueError(f"{picture.name} cannot be read as a picture: {error}") from None
