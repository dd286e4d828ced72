"""Pictures in files as arrays: a folder per class, decoded without surprises."""

from __future__ import annotations

import io
import re
import tarfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

import numpy as np

from nbutils.support.needs import needed_for

if TYPE_CHECKING:
    from PIL.Image import Image as Opened

PICTURE = re.compile(r"\.(jpe?g|png|bmp|gif|tiff?|webp|p[bgpn]m)$", re.IGNORECASE)
FORMATS = ("JPEG", "PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM")  # Pillow knows more, and starts programs for some
RUBBISH = (
    *("__macosx", "@eadir", "$recycle.bin", "system volume information", "lost+found", "__pycache__"),
    *("thumbs.db", "ehthumbs.db", "desktop.ini"),
)
MOST_PIXELS = 100_000_000  # of one picture; a small file can claim to hold far more
MOST_BYTES = 2**30  # of one file
MOST_MEMORY = 4 * 2**30  # bytes of all pictures once decoded; putting them in order takes three times that
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


@dataclass(frozen=True)
class Listing:
    """What lies in a folder of pictures.

    Attributes:
        files: split, class and path of every picture.
        left_out: what is neither a picture of a class nor rubbish, relative to the folder.
    """

    files: tuple[tuple[str, str, Path], ...]
    left_out: tuple[str, ...]


def list_pictures(folder: Path) -> Listing:
    """Pictures under `train/<class>/` and `test/<class>/`, or under `<class>/` alone; opens none of them.

    Links are followed. What is left out: other files and folders in a class folder, pictures that lie in no class,
    folders beside `train` and `test`. Hidden names and rubbish do not count.

    Args:
        folder: where to look.

    Returns:
        The :class:`Listing`.

    Raises:
        ValueError: there is no picture, a class has none, one of the two splits is missing, a picture is no regular
            file, or something cannot be read; it is named.
    """
    try:
        return _listing(folder)
    except OSError as error:
        raise ValueError(f"{_legible(error.filename or folder)} cannot be read: {error.strerror or error}") from None


def _listing(folder: Path) -> Listing:
    splits = [split for split in SPLITS if (folder / split).is_dir()]
    if len(splits) == 1:
        raise ValueError(
            f"{folder} has a folder {splits[0]!r} but not the other of 'train' and 'test'; add it, or name "
            f"{folder / splits[0]} itself, of which a fifth is then held back for the test"
        )
    files: list[tuple[str, str, Path]] = []
    others = [path for path in _entries(folder) if path.name not in splits] if splits else []
    left_out = [path for path in others if path.is_dir() or PICTURE.search(path.name)]
    for split in splits or [""]:
        for group in _entries(folder / split):
            if group.is_dir():
                own, rest = _of_class(folder, group)
                files += [(split, group.name, path) for path in own]
                left_out += rest
            elif not group.exists():
                raise ValueError(f"{_within(folder, group)} is a broken link; remove it")
            elif PICTURE.search(group.name):
                left_out.append(group)
    if not files:
        raise ValueError(f"{folder} holds no pictures; they belong into one folder per class, such as cats/1.png")
    return Listing(tuple(files), tuple(_within(folder, path) for path in left_out))


def _of_class(folder: Path, group: Path) -> tuple[list[Path], list[Path]]:
    """The pictures of a class, at least one, and what else lies beside them."""
    name = _within(folder, group)
    if _legible(group.name) != group.name:
        raise ValueError(f"the name of class folder {name!r} is no valid Unicode; rename it")
    own, rest = [], []
    for path in _entries(group):
        if not PICTURE.search(path.name) or path.is_dir():
            rest.append(path)
        elif path.is_file():
            own.append(path)
        else:  # opening a pipe would wait for ever
            what = "a broken link" if path.is_symlink() else "a pipe, a socket or a device"
            raise ValueError(f"{_within(folder, path)} is no regular file but {what}; remove it")
    if not own:
        found = f" but {_such_as([_within(folder, path) for path in rest])}" if rest else ""
        raise ValueError(f"class folder {name} holds no pictures{found}; fill it or remove it")
    return own, rest


def _entries(folder: Path) -> list[Path]:
    """What lies in a folder, without rubbish."""
    return sorted(path for path in folder.iterdir() if not _is_rubbish(path.name))


def _is_rubbish(name: str) -> bool:
    return name.startswith(".") or name.lower() in RUBBISH


def _within(folder: Path, path: Path) -> str:
    return _legible(path.relative_to(folder))


def _legible(path: Path | str) -> str:
    """A path that can be printed, whatever bytes it is made of."""
    return str(path).encode("utf-8", "replace").decode()


def _such_as(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"1 entry that is no picture of a class, {names[0]}"
    return f"{len(names)} entries that are no pictures of a class, such as {names[0]}"


def _content(file: Path, name: str) -> bytes:
    try:
        _require_size(name, file.stat().st_size)
        return file.read_bytes()
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror or error}") from None


def _require_size(name: str, size: int) -> None:
    if size > MOST_BYTES:
        raise ValueError(f"{name} is larger than a picture may be: {size:,} bytes, at most {MOST_BYTES:,}")


def decode_folder(folder: Path, origin: str, size: int | None = None, colour: bool | None = None) -> Images:
    """Decode the pictures of a folder; says in a warning and in the origin what is left out.

    Args:
        folder: see :func:`list_pictures`.
        origin: see :class:`Images`.
        size: see :func:`decode`.
        colour: see :func:`decode`.

    Returns:
        The :class:`Images`.

    Raises:
        ValueError: as :func:`list_pictures` and :func:`decode`.
    """
    listing = list_pictures(folder)
    if listing.left_out:
        said = f"without {_such_as(listing.left_out)}"
        warnings.warn(f"{_legible(folder)} is read {said}", UserWarning, stacklevel=2)
        origin = f"{origin}, {said}"
    named = ((split, label, _within(folder, file), file) for split, label, file in listing.files)
    pictures = (Picture(split, label, name, _content(file, name)) for split, label, name, file in named)
    return decode(pictures, origin, size, colour)


def pictures_in_archive(archive: Path) -> Iterator[Picture]:
    """Pictures under `.../train/<class>/` and `.../test/<class>/` in a .tar.xz file; nothing is unpacked.

    Raises:
        ValueError: the archive is damaged, or holds no such picture.
    """
    found = False
    try:
        with tarfile.open(archive, "r|xz") as content:
            for member in content:
                split, label, file = ("", "", "", *PurePosixPath(member.name).parts)[-3:]
                if _is_rubbish(label) or _is_rubbish(file):
                    continue
                if member.isfile() and PICTURE.search(member.name) and split in SPLITS:
                    found = True
                    _require_size(member.name, member.size)
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
        ValueError: a picture cannot be read or differs in shape (it is named), all together take more than 4 GiB, there
            are fewer than two classes, two have names that only look different to a computer, a class has no training
            picture, or none is left for the test.
    """
    rows, memory = [], 0
    for p in pictures:
        pixels = _pixels(p, size, colour)
        rows.append((p.split, p.name.rpartition("/")[2], p.name, p.label, pixels))
        memory += pixels.nbytes
        if memory > MOST_MEMORY:
            most = f"{MOST_MEMORY / 2**30:.2g} GiB"
            raise ValueError(f"{len(rows):,} pictures, up to {p.name}, take more than {most}; ask for a smaller size")
    rows.sort(key=lambda row: row[:3])
    first = rows[0]
    for row in rows:
        if row[4].shape != first[4].shape:
            a, b = ("x".join(map(str, r[4].shape)) for r in (row, first))
            ask = "ask for one size, and for grey or colour: folder:PATH@32@grey"
            raise ValueError(f"{row[2]} has shape {a}, {first[2]} has {b}; {ask}")
    classes = tuple(sorted({row[3] for row in rows}))
    if len(classes) < 2:
        raise ValueError(f"there must be at least two classes, found {', '.join(classes)}")
    alike = Counter(normalize("NFC", name) for name in classes)
    if twice := next((name for name, count in alike.items() if count > 1), None):
        raise ValueError(f"class {twice!r} comes twice, written with other Unicode characters; merge its folders")
    images, labels = np.stack([row[4] for row in rows]), np.array([classes.index(row[3]) for row in rows])
    test = np.array([row[0] == "test" for row in rows])
    if not first[0]:
        test = _fifth(labels, seed)
    missing = sorted(set(range(len(classes))) - set(labels[~test].tolist()))
    if missing:
        raise ValueError(f"class {classes[missing[0]]!r} has no training picture")
    if not test.any():
        raise ValueError("no picture is left for the test; without a folder 'test' a class needs at least two pictures")
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
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(picture.content), formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"it claims {image.width} x {image.height} pixels, at most {MOST_PIXELS:,} are read")
            frames = getattr(image, "n_frames", 1)
            if frames > 1 and image.format != "MPO":  # telephones put a preview behind the photograph
                raise ValueError(f"it holds {frames} frames; save each as a picture of its own")
            ImageOps.exif_transpose(image, in_place=True)
            plain = _eight_bits(image)
            three = plain.mode not in ("1", "L") if colour is None else colour
            plain = plain.convert("RGB" if three else "L")
            if size is not None and plain.size != (size, size):
                plain = plain.resize((size, size), Image.Resampling.BOX)
            return np.asarray(plain)
    except UnidentifiedImageError:
        raise ValueError(f"{picture.name} cannot be read as a picture: it is none of {', '.join(FORMATS)}") from None
    except Exception as error:  # Pillow passes on whatever its many parsers raise on damaged files
        reason = error or type(error).__name__
        raise ValueError(f"{picture.name} cannot be read as a picture: {reason}") from None


def _eight_bits(image: Opened) -> Opened:
    """A picture with 256 levels from its darkest to its brightest possible value, and nothing transparent.

    Raises:
        ValueError: its mode does not say what its brightest value is.
    """
    from PIL import Image

    deep = image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM"))
    tags = getattr(image, "tag_v2", {})  # TIFF: bits of a value, and whether 0 is black
    if deep and tags.get(258, (16,)) == (16,) and tags.get(262, 1) == 1 and "transparency" not in image.info:
        return Image.fromarray(np.rint(np.asarray(image) / 257).astype(np.uint8))
    if deep or image.mode in ("I", "F"):
        raise ValueError(f"mode {image.mode} does not say which value is the brightest; save it with 8 or 16 bits")
    if image.has_transparency_data:
        colours = image.convert("RGBA")
        white = Image.new("RGBA", colours.size, "white")
        return Image.alpha_composite(white, colours).convert("L" if image.mode in ("1", "L", "LA", "La") else "RGB")
    return image


def torchvision_datasets() -> ModuleType:
    """The module `torchvision.datasets`.

    A torchvision that was built for CUDA describes operators that a CPU build of PyTorch lacks, and its import fails
    there, although data sets need none of them. These descriptions are left out while it is imported.

    Examples:
        >>> torchvision_datasets().MNIST.__name__
        'MNIST'
    """
    import torch

    describe = torch.library.register_fake

    def describe_if_there(operator: Any, *args: Any, **kwargs: Any) -> Any:
        if not str(operator).startswith("torchvision::"):
            return describe(operator, *args, **kwargs)

        def attempt(function: Callable[..., Any]) -> Callable[..., Any]:
            try:
                return describe(operator, *args, **kwargs)(function)
            except RuntimeError:
                return function

        return attempt

    torch.library.register_fake = describe_if_there
    try:
        with needed_for("this data set"):
            import torchvision.datasets
    finally:
        torch.library.register_fake = describe
    return torchvision.datasets
