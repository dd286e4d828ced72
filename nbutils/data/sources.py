"""Public data sets: where their files lie, how they are read without executing code, and what is known of them."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from platformdirs import user_cache_path

from nbutils.data.pictures import (
    Images,
    decode,
    decode_folder,
    pictures_in_archive,
    resized,
    torchvision_datasets,
)

DIGITS = tuple("0123456789")
GARMENTS = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
LETTERS = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
# Training and test labels of MNIST are not quite even; those of the other two are.
MNIST_LABELS = (
    (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
)


def data_folder() -> Path:
    """Where data sets lie: the folder NBUTILS_DATA names, else `neuron-communities/data` in the user's cache."""
    named = os.environ.get("NBUTILS_DATA")
    return Path(named).expanduser() if named else user_cache_path("neuron-communities") / "data"


@dataclass(frozen=True)
class Source:
    """A public data set.

    Attributes:
        title: what a page calls it.
        about: what it holds and who made it.
        licence: as its publisher states it.
        citation: whom to cite.
        files: the files found under a folder; none where it is missing.
        read: from those files to images.
        fetch: downloads it into the folder; None where users must do it themselves.
        advice: which files belong into the folder, for those who put them there by hand.
        labels: known numbers of images of each class, training and test; None where they depend on the copy.
        home: address of its publisher.
        split: who divides it into training and test, and how.
        passed_on: whether its licence lets a few of its pictures be passed on, with whom to cite.
    """

    title: str
    about: str
    licence: str
    citation: str
    files: Callable[[Path], list[Path]]
    read: Callable[[list[Path]], Images]
    fetch: Callable[[Path], None] | None
    advice: str
    labels: tuple[tuple[int, ...], tuple[int, ...]] | None
    home: str = ""
    split: str = "the publisher's"
    passed_on: bool = False


def md5(path: Path) -> str:
    """MD5 of a file, as publishers of these data sets state it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _idx_files(kind: str, splits: tuple[str, ...] = ("train", "t10k")) -> Callable[[Path], list[Path]]:
    def files(folder: Path) -> list[Path]:
        raw = folder / kind / "raw"
        stems = [f"{split}-{what}-ubyte" for split in splits for what in ("images-idx3", "labels-idx1")]
        found = [next((p for p in (raw / f"{stem}.gz", raw / stem) if p.is_file()), None) for stem in stems]
        return [] if None in found else found

    return files


def _read_idx(kind: str, classes: tuple[str, ...]) -> Callable[[list[Path]], Images]:
    """Through torchvision, which unpacks beside the archives: in a copy, for the folder may be read-only."""

    def read(files: list[Path]) -> Images:
        reader = getattr(torchvision_datasets(), kind)
        expected = dict(reader.resources)
        for file in files:
            if file.name in expected and md5(file) != expected[file.name]:
                raise ValueError(f"{file} is damaged: its MD5 is {md5(file)}, not {expected[file.name]}; replace it")
        with tempfile.TemporaryDirectory(prefix="nbutils-") as copy:
            raw = Path(copy) / kind / "raw"
            raw.mkdir(parents=True)
            for file in files:
                shutil.copyfile(file, raw / file.name)
            try:
                sides = [reader(copy, train=train, download=files[0].suffix == ".gz") for train in (True, False)]
            except (ValueError, RuntimeError, AssertionError, OSError, EOFError) as error:
                raise ValueError(f"{files[0].parent} cannot be read as {kind}: {error}") from None
        (train, train_labels), (test, test_labels) = ((s.data.numpy(), s.targets.numpy()) for s in sides)
        return Images(train, train_labels, test, test_labels, classes, "the publisher's own files")

    return read


def _idx(kind: str, classes: tuple[str, ...]) -> dict[str, Any]:
    """What data sets in the format of MNIST share."""

    def fetch(folder: Path) -> None:
        getattr(torchvision_datasets(), kind)(folder, download=True)

    advice = f"{kind}/raw/train-images-idx3-ubyte.gz and the three files that go with it"
    return {"files": _idx_files(kind), "read": _read_idx(kind, classes), "fetch": fetch, "advice": advice}


MOST_BYTES = 4 << 30  # that an idx file may promise
KMNIST_TRAIN, KMNIST_SEED = 6_000, 20210604  # of the 10,000 published test images, where only those are there


def _kmnist_files(folder: Path) -> list[Path]:
    """The whole set, or else the published test files."""
    return _idx_files("KMNIST")(folder) or _idx_files("KMNIST", ("t10k",))(folder)


def _read_kmnist(files: list[Path]) -> Images:
    if len(files) > 2:
        return _read_idx("KMNIST", LETTERS)(files)
    for file in files:
        published = dict(torchvision_datasets().KMNIST.resources).get(file.name)
        if published and md5(file) != published:
            raise ValueError(f"{file} is damaged: its MD5 is {md5(file)}, not {published}; replace it")
    pixels, labels = (read_idx(file) for file in files)
    if pixels.shape != (10_000, 28, 28) or np.bincount(labels.ravel()).tolist() != [1000] * 10:
        raise ValueError(
            f"{files[0].parent} must hold the 10,000 test images of KMNIST, 1,000 of each class, received "
            f"{pixels.shape} images and {labels.shape} labels"
        )
    from sklearn.model_selection import train_test_split

    sizes = {"train_size": KMNIST_TRAIN, "test_size": len(labels) - KMNIST_TRAIN, "random_state": KMNIST_SEED}
    train, test = train_test_split(np.arange(len(labels)), stratify=labels, **sizes)
    origin = "the publisher's test images only, divided by seed into 6,000 training and 4,000 test images"
    labels = labels.astype(np.int64)
    return Images(pixels[train], labels[train], pixels[test], labels[test], LETTERS, origin)


def read_idx(path: Path) -> np.ndarray:
    """Unsigned bytes in the format of MNIST's files, perhaps compressed with gzip.

    Args:
        path: the file; one whose name ends in .gz is unpacked, never beyond what its header promises.

    Returns:
        Array of uint8, shape as the header says.

    Raises:
        ValueError: the file is cut off, longer than its header says, or of another kind; it is named.
        OSError: it cannot be read.

    References:
        LeCun, "The MNIST database of handwritten digits", on the idx format.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            head = file.read(4)
            if len(head) < 4 or head[:3] != b"\0\0\x08" or not 1 <= head[3] <= 4:
                raise ValueError("it does not begin as an idx file of bytes does")
            sizes = file.read(4 * head[3])
            shape = tuple(np.frombuffer(sizes, ">u4").tolist()) if len(sizes) == 4 * head[3] else ()
            if not shape or prod(shape) > MOST_BYTES:
                raise ValueError(f"its header promises {shape}")
            content = file.read(prod(shape) + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise ValueError(f"{path} cannot be read as idx: {error}") from None
    if len(content) != prod(shape):
        raise ValueError(f"{path} cannot be read as idx: it holds {len(content):,} bytes or more, not {prod(shape):,}")
    return np.frombuffer(content, np.uint8).reshape(shape)


IDX_FILES = tuple(f"{split}-{what}-ubyte" for split in ("train", "t10k") for what in ("images-idx3", "labels-idx1"))


def idx_files_in(folder: Path) -> list[Path]:
    """The four files of somebody's own data set in the format and under the names of MNIST's; none where none is there.

    Args:
        folder: where they lie, each perhaps with ".gz" behind its name.

    Returns:
        Training images, training labels, test images, test labels.

    Raises:
        ValueError: only some of them are there; says which are missing.
    """
    places = [(folder / f"{name}.gz", folder / name) for name in IDX_FILES]
    found = [next((path for path in pair if path.is_file()), None) for pair in places]
    if missing := [name for name, path in zip(IDX_FILES, found, strict=True) if path is None]:
        if len(missing) == len(IDX_FILES):
            return []
        raise ValueError(f"{folder} has idx files, but lacks {', '.join(missing)} (each may end in .gz)")
    return [path for path in found if path is not None]


def read_own_idx(files: list[Path], origin: str, size: int | None = None) -> Images:
    """Somebody's own data set in the format of MNIST's files; classes are named by their labels.

    Args:
        files: see :func:`idx_files_in`.
        origin: see :class:`nbutils.data.pictures.Images`.
        size: height and width to resize to; None keeps them.

    Returns:
        The images, grey, or in colour where each has three values per pixel.

    Raises:
        ValueError: a file is damaged, images and labels do not fit together, there are fewer than two classes, or one
            has no training image; the file is named.
    """
    train, train_labels, test, test_labels = map(read_idx, files)
    for images, labels, file in ((train, train_labels, files[0]), (test, test_labels, files[2])):
        if not (images.ndim == 3 or (images.ndim == 4 and images.shape[3] == 3)) or not images.size:
            raise ValueError(
                f"{file} must hold images x height x width, or that x 3 for colour, received {images.shape}"
            )
        if labels.shape != images.shape[:1]:
            raise ValueError(f"{file} holds {len(images):,} images, but its labels have shape {labels.shape}")
    if train.shape[1:] != test.shape[1:]:
        raise ValueError(
            f"images of one shape are needed, {files[0]} has {train.shape[1:]}, {files[2]} {test.shape[1:]}"
        )
    classes = np.unique(np.concatenate([train_labels, test_labels]))
    if len(classes) < 2:
        raise ValueError(f"{files[1]} must hold labels of at least two classes, received {classes.tolist()}")
    if len(missing := np.setdiff1d(classes, train_labels)):
        raise ValueError(f"{files[1]} has no training image of class {missing[0]}")
    if size is not None:
        train, test, origin = resized(train, size), resized(test, size), f"{origin}, resized to {size}x{size}"
    numbers = [np.searchsorted(classes, labels).astype(np.int64) for labels in (train_labels, test_labels)]
    return Images(train, numbers[0], test, numbers[1], tuple(map(str, classes.tolist())), origin)


def _first_of(names: tuple[str, ...], places: tuple[str, ...]) -> Callable[[Path], list[Path]]:
    """Of some archives and unpacked folders (names without a suffix) the first one, in the first place that has any."""

    def files(folder: Path) -> list[Path]:
        paths = (folder / place / name for place in places for name in names)
        return [path for path in paths if (path.is_file() if path.suffix else path.is_dir())][:1]

    return files


def _read_cifar(files: list[Path]) -> Images:
    file = files[0]
    if file.name != "cifar-10-python.tar.gz":
        found = _pictures(file, "a copy as JPEG, not the original pixels")
        if set(found.classes) != set(THINGS):
            raise ValueError(f"{file} must hold the classes {', '.join(THINGS)}, found {', '.join(found.classes)}")
        return found
    expected = torchvision_datasets().CIFAR10.tgz_md5
    if md5(file) != expected:
        raise ValueError(f"{file} is damaged: its MD5 is {md5(file)}, not {expected}; replace it")
    return read_cifar_batches(file)


def _fetch_cifar(folder: Path) -> None:
    datasets = torchvision_datasets()
    official = datasets.CIFAR10
    try:
        datasets.utils.download_url(official.url, folder, official.filename, official.tgz_md5)
    except BaseException:
        (folder / official.filename).unlink(missing_ok=True)  # half an archive must not be taken for one
        raise


class _ArraysOnly(pickle.Unpickler):
    """Reads pickles that hold arrays, lists and numbers; everything else could execute code and is refused."""

    ALLOWED = frozenset(
        {("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")}
        | {(f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")}
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it wants {module}.{name}, which is no array")
        return super().find_class(module, name)


def read_cifar_batches(archive: Path) -> Images:
    """Images of CIFAR-10's official archive; its batches are pickles, and nothing but arrays is taken from them.

    Raises:
        ValueError: the archive is damaged, incomplete, or holds anything but arrays.
    """
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    found = {}
    try:
        with tarfile.open(archive, "r|gz") as content:
            for member in content:
                name = member.name.rpartition("/")[2]
                if member.isfile() and name in names:
                    batch = _ArraysOnly(io.BytesIO(content.extractfile(member).read()), encoding="bytes").load()
                    found[name] = (np.asarray(batch[b"data"], np.uint8), np.asarray(batch[b"labels"], np.int64))
    except (tarfile.TarError, pickle.UnpicklingError, EOFError, OSError, KeyError, TypeError) as error:
        raise ValueError(f"{archive} cannot be read as CIFAR-10: {error}") from None
    if missing := [name for name in names if name not in found]:
        raise ValueError(f"{archive} lacks {', '.join(missing)}")
    rows = [np.concatenate([found[name][side] for name in names[:-1]]) for side in (0, 1)]
    train, test = (pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1) for pixels in (rows[0], found["test_batch"][0]))
    return Images(train, rows[1], test, found["test_batch"][1], THINGS, "the publisher's own archive")


def _pictures(file: Path, origin: str) -> Images:
    return decode_folder(file, origin) if file.is_dir() else decode(pictures_in_archive(file), origin)


SOURCES = {
    "mnist": Source(
        title="MNIST",
        about="70,000 handwritten digits, 28x28 pixels, grey",
        licence="none stated by the publisher; commonly passed on as CC BY-SA 3.0",
        citation="LeCun, Bottou, Bengio and Haffner (1998), doi:10.1109/5.726791",
        **_idx("MNIST", DIGITS),
        labels=MNIST_LABELS,
        home="http://yann.lecun.com/exdb/mnist/",
        split="the publisher's; nobody wrote digits for both sides",
        passed_on=True,
    ),
    "fashion-mnist": Source(
        title="Fashion-MNIST",
        about="70,000 garments, 28x28 pixels, grey",
        licence="MIT, copyright 2017 Zalando SE",
        citation="Xiao, Rasul and Vollgraf (2017), arXiv:1708.07747",
        **_idx("FashionMNIST", GARMENTS),
        labels=((6000,) * 10, (1000,) * 10),
        home="https://github.com/zalandoresearch/fashion-mnist",
        passed_on=True,
    ),
    "kmnist": Source(
        title="KMNIST",
        about="cursive hiragana of ten kinds, written by hand, 28x28 pixels, grey",
        licence="CC BY-SA 4.0, created by CODH, adapted from Kuzushiji Dataset (created by NIJL and others)",
        citation="Clanuwat, Bober-Irizar, Kitamoto, Lamb, Yamamoto and Ha (2018), arXiv:1812.01718",
        **_idx("KMNIST", LETTERS) | {"files": _kmnist_files, "read": _read_kmnist},
        labels=None,
        home="https://github.com/rois-codh/kmnist",
        split="the publisher's; where only its 10,000 test images are there, those divided by a fixed seed",
        passed_on=True,
    ),
    "cifar10": Source(
        title="CIFAR-10",
        about="60,000 photographs of animals and vehicles, 32x32 pixels, colour",
        licence="none stated by the publisher, who asks to be cited",
        citation="Krizhevsky (2009), Learning Multiple Layers of Features from Tiny Images, University of Toronto",
        files=_first_of(("cifar-10-python.tar.gz", "cifar10-jpeg.tar.xz", "cifar10-jpeg"), (".", "CIFAR10")),
        read=_read_cifar,
        fetch=_fetch_cifar,
        advice="cifar-10-python.tar.gz, or a copy as JPEG: cifar10-jpeg/train/<class>/<number>.jpg and likewise test",
        labels=((5000,) * 10, (1000,) * 10),
        home="https://www.cs.toronto.edu/~kriz/cifar.html",
    ),
    "plantvillage": Source(
        title="PlantVillage",
        about="leaves of peppers, potatoes and tomatoes in 15 classes of health and disease, 64x64 pixels, colour",
        licence="CC BY-SA 3.0",
        citation="Mohanty, Hughes and Salathé (2016), doi:10.3389/fpls.2016.01419; Hughes, Salathé, arXiv:1511.08060",
        files=_first_of(("PlantVillage64.tar.xz", "PlantVillage64"), ("PlantVillage", ".")),
        read=lambda files: _pictures(files[0], "a subset of 15 classes, resized to 64x64"),
        fetch=None,
        advice="pictures of one size in PlantVillage/PlantVillage64/train/<class>/ and the same for test",
        labels=None,
        home="https://github.com/spMohanty/PlantVillage-Dataset",
        split=(
            "not the publisher's. In the copy that this project was written with, the last fifth of each series of "
            "photographs is the test side, so that photographs of one leaf do not stand on both; at most 700 training "
            "and 200 test images of a class were taken"
        ),
        passed_on=True,
    ),
}
