"""Images of a user's own: from a data set, a folder or a file of arrays, and as a model takes them."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from nbutils.capturing.batches import Feeder, as_batch
from nbutils.capturing.hooks import as_written, evaluating
from nbutils.data.datasets import balanced_indices, load_dataset
from nbutils.support.checks import as_labels, as_numpy, shown

MOST_CLASSES = 100_000  # numbers from here on are no classes
FARTHEST = 1000  # from 0 that a value of an image may lie, as a network is shown it
LEAST = 20  # examples: a half probe then has ten
BLOCK = 2**20  # bytes of a file that are read at once
DAMAGE = (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError)


@dataclass(frozen=True)
class Images:
    """What a network is shown.

    Attributes:
        values: an array or, of a file, :class:`StoredRows`; uint8 or float, shape (examples, channels, height, width),
            (examples, features), or any other whose first dimension is the examples.
        labels: class per example, or None.
        classes: names of the classes; empty without labels.
        source: where they are from, in words.
    """

    values: np.ndarray | StoredRows
    labels: np.ndarray | None
    classes: tuple[str, ...]
    source: str


class StoredRows:
    """Rows of an array in a file `.npz`, of which only those that are asked for are held in memory.

    Attributes:
        path: the file.
        name: of the array.
        shape: of the whole array.
        dtype: of its values.

    Args:
        path: see there.
        name: see there.

    Raises:
        ValueError: the array is damaged, or one of Python objects, which are never read.
        KeyError: the file holds no array of that name.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     np.savez(f"{folder}/few.npz", images=np.arange(6).reshape(3, 2))
        ...     rows = StoredRows(Path(folder) / "few.npz", "images")
        ...     print(len(rows), rows[[0, 2]].tolist())
        3 [[0, 1], [4, 5]]
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        with zipfile.ZipFile(path) as archive, archive.open(self._member) as stored:
            self.shape, self._by_columns, self.dtype = self._header(stored)
            values = archive.getinfo(self._member).file_size - stored.tell()
        if not self.shape or values != self.dtype.itemsize * math.prod(self.shape):
            raise ValueError(f"{name} has shape {self.shape} and {values:,} bytes, which do not fit")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        """Some rows, by rising numbers; the array is read to its end, so that damage anywhere is noticed.

        Raises:
            ValueError: the file is damaged.
        """
        wanted = np.asarray(rows)
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self._member) as stored:
                if self._by_columns:  # rows lie strewn over the file
                    return np.lib.format.read_array(stored, allow_pickle=False)[wanted]
                return self._rows(stored, wanted)
        except DAMAGE as error:
            raise ValueError(f"data: {self.path} is damaged: {error}") from None

    @property
    def _member(self) -> str:
        return f"{self.name}.npy"

    @staticmethod
    def _header(stored: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
        first = np.lib.format.read_magic(stored) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(stored)
        if dtype.hasobject:
            raise ValueError("it holds Python objects, which are never read")
        return shape, by_columns and len(shape) > 1, dtype

    def _rows(self, stored: Any, wanted: np.ndarray) -> np.ndarray:
        self._header(stored)
        found = np.empty((len(wanted), *self.shape[1:]), self.dtype)
        size = self.dtype.itemsize * math.prod(self.shape[1:])
        many = max(1, BLOCK // max(1, size))
        for first in range(0, len(self), many):
            content = stored.read(min(many, len(self) - first) * size)
            part = np.frombuffer(content, self.dtype).reshape(-1, *self.shape[1:])
            here = slice(*np.searchsorted(wanted, (first, first + len(part))))
            found[here] = part[wanted[here] - first]
        stored.read()  # to the end, where the sum of all is compared
        return found


def load_images(name: str) -> Images:
    """Images by the name of a data set, a folder, or a file.

    Args:
        name: name of a data set, of which the test images are taken; `folder:PATH`, likewise; or a file `.npz` with
            `images`, shape (n, channels, height, width) or (n, features), uint8 or float, and perhaps `labels`, shape
            (n,). Nothing in the file is executed.

    Raises:
        FileNotFoundError: there is nothing of that name.
        ValueError: the file is damaged, or its arrays do not fit; says how.

    Examples:
        >>> load_images("digits").values.shape
        (360, 1, 8, 8)
    """
    if not name.lower().endswith(".npz"):
        if Path(name).suffix and not name.startswith("folder:"):
            raise ValueError(f"data: {shown(name, 300)} is no data set, no folder:PATH, and no file .npz")
        try:
            data = load_dataset(name)
        except ValueError as error:
            if not str(error).startswith("dataset must be"):
                raise
            raise ValueError(f"data: {error}; or give a file .npz") from None
        if len(data.test_labels) < LEAST:
            every = len(data.train_labels) + len(data.test_labels)
            raise ValueError(
                f"data: {shown(name, 300)} has {len(data.test_labels)} test images of {every:,}, and at least {LEAST} "
                "are needed; an .npz of images is taken whole"
            )
        height, width, *channels = data.image_shape
        pixels = data.test_pixels.reshape(-1, height, width, *(channels or [1])).transpose(0, 3, 1, 2)
        scaled = pixels if data.levels == 255 else (pixels * (255 / data.levels)).round().astype(np.uint8)
        return Images(np.ascontiguousarray(scaled), data.test_labels, data.classes, f"test images of {data.title}")
    path = Path(name).expanduser()
    if not path.is_file():
        raise FileNotFoundError(f"data: there is no file {path}")
    try:
        with zipfile.ZipFile(path) as content:
            names = [one.removesuffix(".npy") for one in content.namelist()]
        values = StoredRows(path, "images") if "images" in names else None
        with np.load(path, allow_pickle=False) as content:
            labels = content["labels"] if "labels" in names else None
    except DAMAGE as error:
        raise ValueError(f"data: {path} is damaged or no .npz of plain arrays: {error}") from None
    if values is None:
        raise ValueError(f"data: {path} must hold an array 'images', it holds {', '.join(names) or 'nothing'}")
    labels = None if labels is None else as_labels(labels)
    if labels is not None and len(labels) != len(values):
        raise ValueError(f"data: {path} holds {len(values)} images and {len(labels)} labels")
    most = -1 if labels is None else int(labels.max(initial=-1))
    if most >= MOST_CLASSES:
        raise ValueError(f"data: labels of {path} must be numbers of classes from 0 on, received {most:,}")
    return Images(values, labels, tuple(map(str, range(most + 1))), path.name)


def shown_examples(images: Any, labels: Any, examples: int) -> tuple[Any, np.ndarray | None, int]:
    """The examples that are looked at, with their labels.

    Args:
        images: an array, a tensor, nested lists or :class:`StoredRows`, examples first.
        labels: class per image, or None.
        examples: how many, at most.

    Returns:
        (images, labels or None, how many there were).

    Raises:
        ValueError: images of another kind, or as :func:`chosen_examples`.

    Examples:
        >>> values, labels, total = shown_examples(np.zeros((40, 3)), [0, 1] * 20, 20)
        >>> values.shape, labels.sum().item(), total
        ((20, 3), 10, 40)
    """
    plain = isinstance(images, torch.Tensor | StoredRows | list) or hasattr(images, "__array__")
    if not plain or not hasattr(images, "__len__"):
        raise ValueError(
            f"images must be an array or a tensor, received {type(images).__name__}; gather what a loader gives, as by "
            "torch.cat"
        )
    if isinstance(images, torch.Tensor) and images.layout != torch.strided:
        raise ValueError("images must be dense, received a sparse tensor; pass its to_dense()")
    classes = None if labels is None else as_labels(labels, name="labels")
    chosen = chosen_examples(len(images), classes, examples)
    kept = (images if isinstance(images, torch.Tensor | StoredRows) else np.asarray(images))[chosen]
    return kept, None if classes is None else classes[chosen], len(images)


def chosen_examples(total: int, labels: Any, examples: int) -> np.ndarray:
    """Which examples are looked at: equally many of each class, or evenly spaced where there are no labels.

    Raises:
        ValueError: too few, or labels that do not fit: of another length, below 0, of one class, or of too many.

    Examples:
        >>> chosen_examples(100, None, 20)[:3].tolist()
        [0, 5, 10]
    """
    if total < LEAST:
        raise ValueError(f"images must hold at least {LEAST} examples, received {total}")
    if labels is None:
        return np.linspace(0, total, min(examples, total), endpoint=False).astype(np.int64)
    if len(labels) != total:
        raise ValueError(f"labels must be one for each of {total} images, received {len(labels)}")
    if (classes := len(np.unique(labels))) < 2:
        raise ValueError("labels must hold at least two classes, received one; without labels, give none")
    if np.min(labels) < 0 or np.max(labels) >= MOST_CLASSES:
        odd = np.min(labels) if np.min(labels) < 0 else np.max(labels)
        raise ValueError(f"labels must be numbers of classes from 0 on, received {odd}")
    if 2 * classes > total:
        raise ValueError(f"labels must have two images of a class on average, received {classes} classes of {total}")
    return np.sort(balanced_indices(labels, min(examples, total), "examples"))


def as_inputs(
    model: nn.Module, values: Any, mean: Sequence[float] | None = None, std: Sequence[float] | None = None
) -> tuple[torch.Tensor, str]:
    """Images as a model takes them, and in words what was done to them.

    Bytes become numbers from 0 to 1. From numbers `mean` is taken and `std` divides, channel by channel; without them,
    bytes get mean 0 and deviation 1 over these images, and numbers stay as they are, unless they are images whose
    values lie 1,000 from 0. Where the model does not take
    images as they are, and has a `Linear` as wide as an image has values, they are laid out in a row. Whole numbers of
    tokens, shape (examples, tokens), stay as they are where the model has an embedding that takes them.

    Args:
        model: any PyTorch module.
        values: images, shape (examples, channels, ...) or (examples, features).
        mean: one number, or one per channel, in the unit of numbers from 0 to 1; `std` likewise.
        std: above 0.

    Raises:
        ValueError: values are no real numbers, `mean` and `std` do not fit, or are given for tokens, or numbers lie far
            outside of what networks are shown: of 0 to 1 where `mean` and `std` are given.
    """
    array = as_numpy(values, "images")
    if array.ndim < 2:
        raise ValueError(f"images must have shape (examples, channels, height, width), received {array.shape}")
    embeds = any(isinstance(one, nn.Embedding | nn.EmbeddingBag) for one in model.modules())
    if embeds and array.dtype.kind in "iu" and (array.ndim == 2 or array.dtype != np.uint8):
        tokens = torch.from_numpy(np.ascontiguousarray(array)).long()
        if _takes(model, tokens) or not _takes(model, tokens.float()):
            if mean is not None or std is not None:
                raise ValueError("mean and std are for images; the model takes these numbers for tokens")
            return tokens, TOKENS
    if not np.isfinite(array).all():
        raise ValueError(f"images hold {int((~np.isfinite(array)).sum())} NaN or infinite values")
    bytes_given = array.dtype == np.uint8
    numbers = array.astype(np.float32) / (255 if bytes_given else 1)
    if (mean is None) != (std is None):
        raise ValueError("mean and std go together; received one of them")
    if mean is not None:
        largest = float(np.abs(numbers).max())
        if largest > 2:
            raise ValueError(
                f"images range up to {largest:g}, but mean and std are for values from 0 to 1; pass bytes, or divide"
            )
        shift, scale = (_by_channel(one, numbers, name) for one, name in ((mean, "mean"), (std, "std")))
        if not (np.abs(shift) <= 1).all():
            raise ValueError(f"mean must be that of values from 0 to 1, received {shown(shift.ravel().tolist())}")
        if not ((scale > 0) & np.isfinite(scale)).all():
            raise ValueError(f"std must be above 0 and finite, received {shown(scale.ravel().tolist())}")
        numbers, how = (numbers - shift) / scale, "minus the mean and divided by the deviation that were given"
    elif bytes_given:
        over = (0, *range(2, numbers.ndim))
        spread = numbers.std(axis=over, keepdims=True)
        numbers = (numbers - numbers.mean(axis=over, keepdims=True)) / np.where(spread > 0, spread, 1)
        how = "standardised over these images, channel by channel; say mean and std as in training if they differ"
    else:
        low, high = float(numbers.min()), float(numbers.max())
        if numbers.ndim > 2 and max(-low, high) > FARTHEST:
            raise ValueError(
                f"images range from {low:g} to {high:g}, and numbers are shown to the model as they are; divide them, "
                "or pass bytes"
            )
        how = f"as they are, from {low:.3g} to {high:.3g}".replace("-", "−")
    inputs = torch.from_numpy(np.ascontiguousarray(numbers, dtype=np.float32))
    first = next((one for one in model.modules() if isinstance(one, WITH_WEIGHTS)), None)
    if isinstance(first, nn.Conv2d) and inputs.ndim == 3:
        raise ValueError(f"images have shape {tuple(inputs.shape)}; add the axis of channels: images[:, None]")
    wide = any(isinstance(one, nn.Linear) and one.in_features == inputs[0].numel() for one in model.modules())
    if wide and inputs.ndim > 2:
        row = inputs.flatten(1)
        # One dimension may be all of an image, which a `Linear` takes as it is, for positions of one feature each.
        alike = inputs.shape[-1] == row.shape[1] and _takes(model, row)
        if alike or (not _takes(model, inputs) and _takes(model, row)):
            return row, f"{how}; in a row"
    return inputs, how


def _takes(model: nn.Module, inputs: torch.Tensor) -> bool:
    """Whether a model runs on inputs, tried with three of them."""
    try:
        with as_written(), evaluating(model), torch.no_grad():
            Feeder(model)(as_batch(inputs[:3]))
    except RuntimeError:
        return False
    return True


TOKENS = "as they are, token numbers"
WITH_WEIGHTS = (
    *(nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
    *(nn.RNN, nn.LSTM, nn.GRU),
)


def _by_channel(given: Any, numbers: np.ndarray, name: str) -> np.ndarray:
    values = np.atleast_1d(np.asarray(given, dtype=np.float32))
    if values.shape not in ((1,), (numbers.shape[1],)):
        raise ValueError(f"{name} must be one number or {numbers.shape[1]}, one per channel, received {shown(given)}")
    return values.reshape(-1, *[1] * (numbers.ndim - 2))


def expected(model: nn.Module) -> str:
    """What a model's first layer with weights takes, in words.

    Examples:
        >>> expected(nn.Sequential(nn.Conv2d(3, 8, 3)))
        'its first layer with weights, 0 (Conv2d), takes 3 channels'
    """
    for name, one in model.named_modules():
        if isinstance(one, WITH_WEIGHTS):
            size = getattr(one, "in_channels", None) or getattr(one, "in_features", None) or one.input_size
            what = "channels" if hasattr(one, "in_channels") else "features"
            return f"its first layer with weights, {name or 'the model'} ({type(one).__name__}), takes {size} {what}"
    return "it has no layer that says what it takes"


def noise_like(inputs: torch.Tensor, seed: int) -> torch.Tensor:
    """Inputs without any content: normal noise with the mean and the deviation of each channel.

    Of whole numbers, such as those of tokens, the same ones dealt anew over examples and positions.

    Args:
        inputs: as a model takes them, shape (examples, channels, ...).
        seed: of the noise.

    Examples:
        >>> noise_like(torch.ones(4, 2), 0).tolist()[0]
        [1.0, 1.0]
    """
    source = torch.Generator().manual_seed(seed)
    if not inputs.is_floating_point():
        return inputs.flatten()[torch.randperm(inputs.numel(), generator=source)].reshape(inputs.shape)
    over = [0, *range(2, inputs.ndim)]
    mean, deviation = inputs.mean(dim=over, keepdim=True), inputs.std(dim=over, keepdim=True, correction=0)
    return mean + deviation * torch.randn(inputs.shape, generator=source)
