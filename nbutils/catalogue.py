"""Data sets by name: found, decoded once, and kept as arrays that all processes share."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nbutils.pictures import Images, decode, pictures_in_folder, resized
from nbutils.provenance import code_digest
from nbutils.sources import SOURCES, data_folder
from nbutils.store import Store

__all__ = ["BUILT_IN", "Kept", "Name", "available", "check_files", "keep_images", "locate", "parse_name"]

BUILT_IN = ("digits", "mnist-5k")  # come with installed packages
FOLDER = "folder:"
MAKERS = ("nbutils.catalogue", "nbutils.pictures", "nbutils.sources", "nbutils.vision")
ARRAYS = ("train", "train_labels", "test", "test_labels")


@dataclass(frozen=True)
class Name:
    """What the name of a data set asks for.

    Attributes:
        base: name of a public data set, or "" for a folder.
        path: the folder, or None.
        size: height and width to resize to; None keeps them.
        colour: three channels, one, or (None) what the pictures have; only folders may choose.
        thousands: how many thousand training images to take; None takes all. Only public ones have fewer.
    """

    base: str
    path: Path | None
    size: int | None
    colour: bool | None
    thousands: int | None = None

    @property
    def whole(self) -> str:
        """Name of the same data set with all its training images."""
        name = f"{FOLDER}{self.path}" if self.path is not None else self.base
        size = "" if self.size is None else f"@{self.size}"
        return name + size + {None: "", True: "@colour", False: "@grey"}[self.colour]


@dataclass(frozen=True)
class Kept:
    """Images as they are kept.

    Attributes:
        images: arrays that are mapped from disk, so that processes share one copy in memory.
        version: first 12 hex digits of the SHA-256 of images, labels and class names.
    """

    images: Images
    version: str


def parse_name(name: str) -> Name:
    """Take the name of a data set apart.

    Args:
        name: a name of `BUILT_IN` or `SOURCES`; one of `SOURCES` may be followed by "-10k" for 10,000 training images,
            equally many of each class, and by "@" and a height and width, such as "plantvillage@32"; or "folder:PATH",
            which may be followed by "@32", "@grey", "@colour", or "@32@grey".

    Returns:
        A :class:`Name`.

    Raises:
        ValueError: no such data set; the message lists what there is.

    Examples:
        >>> parse_name("cifar10-10k@16")
        Name(base='cifar10', path=None, size=16, colour=None, thousands=10)
    """
    match = re.fullmatch(r"(folder:)?(.+?)(?:@(\d{1,4}))?(?:@(grey|colour))?", name) if isinstance(name, str) else None
    if match:
        is_folder, base, size, colour = match.groups()
        number = int(size) if size else None
        plain = base in BUILT_IN and not (size or colour)
        fewer = re.fullmatch(r"(.+)-([1-9]\d{0,3})k", base)
        if number != 0 and is_folder:
            return Name("", Path(base).expanduser(), number, None if colour is None else colour == "colour")
        if number != 0 and (plain or (base in SOURCES and not colour)):
            return Name(base, None, number, None)
        if number != 0 and fewer and fewer[1] in SOURCES and not colour:
            return Name(fewer[1], None, number, None, int(fewer[2]))
    known = ", ".join([*BUILT_IN, *SOURCES])
    raise ValueError(
        f"dataset must be one of {known}, the last {len(SOURCES)} perhaps with '-10k' for 10,000 training images and "
        f"'@32' for their size, or 'folder:PATH', received {name!r}"
    )


def available(name: str) -> bool:
    """Whether a data set is there; looks, and never downloads.

    Args:
        name: see :func:`parse_name`.

    Raises:
        ValueError: no such data set.

    Examples:
        >>> available("digits")
        True
    """
    asked = parse_name(name)
    if asked.path is not None:
        return asked.path.is_dir()
    return asked.base in BUILT_IN or bool(SOURCES[asked.base].files(data_folder()))


def locate(base: str) -> list[Path]:
    """Files of a public data set; downloaded where there are none and its publisher offers them.

    Raises:
        FileNotFoundError: they are not there and cannot be had; says where to put what.
    """
    source, folder = SOURCES[base], data_folder()
    if files := source.files(folder):
        return files
    reason = "it is not offered for download"
    if source.fetch is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            source.fetch(folder)
        except (OSError, RuntimeError, ValueError) as error:
            reason = f"the download failed: {error}"
        if files := source.files(folder):
            return files
    by_hand = f"Put there: {source.advice}; or set NBUTILS_DATA to the folder that has it"
    raise FileNotFoundError(f"data set {base!r} is not in {folder}, and {reason}. {by_hand}")


def keep_images(name: str) -> Kept:
    """Images of a data set that is not built in, decoded when they are first asked for.

    Args:
        name: see :func:`parse_name`.

    Returns:
        A :class:`Kept`.

    Raises:
        ValueError: a file is damaged or oddly shaped; it is named.
        FileNotFoundError: the data set is not there.
    """
    asked = parse_name(name)
    if asked.path is not None and not asked.path.is_dir():
        raise FileNotFoundError(f"dataset {name!r}: there is no folder {asked.path}")
    files = locate(asked.base) if asked.path is None else [asked.path]
    store, determinants = Store("data"), {"name": name, "files": _state(files), "code": code_digest(*MAKERS)}
    where = hashlib.sha256(json.dumps(determinants, sort_keys=True).encode()).hexdigest()[:16]
    if (record := store.read(where)) is None:
        with store.lock(where):
            if (record := store.read(where)) is None:
                images = _decode(asked, files)
                arrays = {part: np.ascontiguousarray(getattr(images, part)) for part in ARRAYS}
                facts = {"classes": images.classes, "origin": images.origin, "version": _version(images, arrays)}
                store.write(where, {**determinants, **facts}, plain=arrays)
                record = store.read(where)
    if record is None:
        raise OSError(f"data set {name} was written to {store.path(where)} but cannot be read back")
    arrays = {part: store.mapped(where, part) for part in ARRAYS}
    return Kept(Images(**arrays, classes=tuple(record["classes"]), origin=record["origin"]), record["version"])


def check_files(name: str) -> Kept:
    """Decode the files of a data set once more, and hold the result against what is kept.

    Args:
        name: see :func:`parse_name`.

    Returns:
        What was decoded just now.

    Raises:
        ValueError: a file is damaged, or gives other images than those that are kept.
        FileNotFoundError: the data set is not there.
    """
    asked, kept = parse_name(name), keep_images(name)
    images = _decode(asked, [asked.path] if asked.path else locate(asked.base))
    version = _version(images, {part: np.ascontiguousarray(getattr(images, part)) for part in ARRAYS})
    if version != kept.version:
        raise ValueError(f"{name} is kept as version {kept.version}, but its files give {version}; remove what is kept")
    return Kept(images, version)


def _decode(asked: Name, files: Sequence[Path]) -> Images:
    if asked.path is not None:
        return decode(pictures_in_folder(asked.path), f"the folder {asked.path.name}", asked.size, asked.colour)
    source = SOURCES[asked.base]
    images = source.read(list(files))
    classes = len(images.classes)
    counts = [np.bincount(labels, minlength=classes) for labels in (images.train_labels, images.test_labels)]
    if source.labels is not None and not all(map(np.array_equal, counts, source.labels)):
        found = " + ".join(str(count.sum()) for count in counts)
        raise ValueError(f"{files[0]} holds {found} images, not as many of each class as {source.title} has")
    if asked.size is None:
        return images
    origin = f"{images.origin}, resized to {asked.size}x{asked.size}"
    return replace(
        images, train=resized(images.train, asked.size), test=resized(images.test, asked.size), origin=origin
    )


def _version(images: Images, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps([*images.classes, *(arrays[part].shape for part in ARRAYS)]).encode())
    for part in ARRAYS:
        digest.update(arrays[part].tobytes())
    return digest.hexdigest()[:12]


def _state(files: Sequence[Path]) -> list[tuple[str, int, int]]:
    """Name, size and time of every file, so that a changed one is decoded again."""
    whole = [inner for file in files for inner in (sorted(file.rglob("*")) if file.is_dir() else [file])]
    return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in whole if file.is_file()]
