"""The shared form of a task with known motifs: inputs, what they spell, and where every motif lies.

A motif is a small pattern, such as a digit, that occurs in an input at some place; each occurrence is a stamp. A
network sees inputs and target sequences alone. Motifs and boxes are the truth that its units are held against later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_labels, as_numpy

__all__ = ["BLOCK", "END", "MotifBatch", "MotifTask", "block_stream", "in_blocks", "join_batches", "part_of_batch"]

END = -1  # fills sequences after their last word
BLOCK = 64  # examples that are drawn from one stream of random numbers
LARGEST_SEED = 2**63 - 1

Draw = Callable[[np.random.Generator, int], "MotifBatch"]


@dataclass(frozen=True, eq=False)
class MotifBatch:
    """Examples of a task with known motifs; checked when it is made.

    Attributes:
        inputs: shape (examples, \\*space), uint8 or float32.
        sequences: the target, shape (examples, longest), int8: numbers of words, then -1 up to the end of the row.
        example: of each stamp, the row of `inputs` in which it lies, shape (stamps,); never falling.
        motif: of each stamp, the number of its motif, shape (stamps,).
        box: of each stamp, first and one past the last position in each dimension of space, shape (stamps, dims, 2).

    Raises:
        ValueError: an array has another kind or shape, or a stamp lies outside of its input; names the attribute.

    Examples:
        >>> batch = MotifBatch(np.zeros((1, 8), np.uint8), [[3, -1]], [0], [3], [[[2, 5]]])
        >>> batch.space, batch.lengths.tolist(), batch.box.shape
        ((8,), [1], (1, 1, 2))
    """

    inputs: np.ndarray
    sequences: np.ndarray
    example: np.ndarray
    motif: np.ndarray
    box: np.ndarray

    def __post_init__(self) -> None:
        """Turn every field into a plain array, or refuse it."""
        for field in fields(self):
            object.__setattr__(self, field.name, as_numpy(getattr(self, field.name), field.name))
        _require_inputs(self.inputs)
        object.__setattr__(self, "sequences", _as_sequences(self.sequences, len(self.inputs)))
        for name in ("example", "motif", "box"):
            object.__setattr__(self, name, _as_whole(getattr(self, name), name))
        _require_stamps(self)

    @property
    def space(self) -> tuple[int, ...]:
        """Shape of one input."""
        return self.inputs.shape[1:]

    @property
    def lengths(self) -> np.ndarray:
        """Words of each sequence, shape (examples,)."""
        return (self.sequences != END).sum(axis=1)

    def __len__(self) -> int:
        """Number of examples."""
        return len(self.inputs)


def _require_inputs(inputs: np.ndarray) -> None:
    if inputs.ndim < 2 or 0 in inputs.shape[1:]:
        raise ValueError(f"inputs must have shape (examples, *space), received {inputs.shape}")
    if inputs.dtype not in (np.uint8, np.float32):
        raise ValueError(f"inputs must be uint8 or float32, received {inputs.dtype}")
    if inputs.dtype == np.float32 and not np.isfinite(inputs).all():
        raise ValueError("inputs must be finite, received NaN or an infinity")


def _as_sequences(sequences: np.ndarray, examples: int) -> np.ndarray:
    if sequences.ndim != 2 or len(sequences) != examples:
        raise ValueError(f"sequences must have shape ({examples}, longest), received {sequences.shape}")
    numbers = as_labels(sequences.ravel(), None, "sequences").reshape(sequences.shape)
    whole = numbers.astype(np.int8)
    if (whole != numbers).any() or (whole < END).any():
        raise ValueError(f"sequences must hold whole numbers from {END} to 127, received others")
    ended = whole == END
    if (ended[:, :-1] & ~ended[:, 1:]).any():
        raise ValueError(f"sequences must be filled with {END} after their last word only")
    return whole


def _as_whole(values: np.ndarray, name: str) -> np.ndarray:
    if values.size and (values.dtype.kind not in "iu"):
        raise ValueError(f"{name} must hold whole numbers, received {values.dtype}")
    return values.astype(np.int64)


def _require_stamps(batch: MotifBatch) -> None:
    stamps, dims = len(batch.motif), len(batch.space)
    for name, shape in {"motif": (stamps,), "example": (stamps,), "box": (stamps, dims, 2)}.items():
        if (values := getattr(batch, name)).shape != shape and not (values.size == stamps == 0):
            raise ValueError(f"{name} must have shape {shape}, received {values.shape}")
    if not stamps:
        object.__setattr__(batch, "box", np.empty((0, dims, 2), np.int64))
        return
    if batch.motif.min() < 0:
        raise ValueError(f"motif must hold numbers from 0, received {batch.motif.min()}")
    if batch.example[0] < 0 or batch.example[-1] >= len(batch.inputs) or (np.diff(batch.example) < 0).any():
        raise ValueError(f"example must rise within 0 to {len(batch.inputs) - 1}, received other rows or another order")
    start, stop = batch.box[..., 0], batch.box[..., 1]
    if (start < 0).any() or (start >= stop).any() or (stop > np.array(batch.space)).any():
        raise ValueError(f"box must hold extents that are not empty and lie within {batch.space}, received others")


def join_batches(batches: Sequence[MotifBatch]) -> MotifBatch:
    """Batches of one task, one after the other.

    Args:
        batches: at least one; their inputs and sequences have the same shapes but for the number of examples.

    Examples:
        >>> one = MotifBatch(np.zeros((1, 8), np.uint8), [[3, -1]], [0], [3], [[[2, 5]]])
        >>> join_batches([one, one]).example
        array([0, 1])
    """
    if not batches:
        raise ValueError("batches must hold at least one batch, received none")
    first = np.cumsum([0, *(len(one) for one in batches[:-1])])
    columns = {field.name: [getattr(one, field.name) for one in batches] for field in fields(MotifBatch)}
    columns["example"] = [one.example + start for one, start in zip(batches, first, strict=True)]
    return MotifBatch(**{name: np.concatenate(parts) for name, parts in columns.items()})


def part_of_batch(batch: MotifBatch, start: int, stop: int) -> MotifBatch:
    """Examples from `start` up to `stop`, with their stamps.

    Raises:
        ValueError: `start` and `stop` are not 0 <= start <= stop <= examples.

    Examples:
        >>> one = MotifBatch(np.zeros((2, 8), np.uint8), [[3], [4]], [0, 1], [3, 4], [[[2, 5]], [[0, 3]]])
        >>> part_of_batch(one, 1, 2).motif, part_of_batch(one, 1, 2).example
        (array([4]), array([0]))
    """
    stop = as_count(stop, "stop", 0, len(batch))
    start = as_count(start, "start", 0, stop)
    low, high = np.searchsorted(batch.example, [start, stop])
    return MotifBatch(
        batch.inputs[start:stop],
        batch.sequences[start:stop],
        batch.example[low:high] - start,
        batch.motif[low:high],
        batch.box[low:high],
    )


@dataclass(frozen=True)
class MotifTask:
    """A task whose motifs, and their places, are known.

    Attributes:
        name: by which code calls it.
        title: by which a page calls it.
        about: what inputs and target are, in one sentence.
        alphabet: names of the motifs, by number.
        words: names of what sequences are made of, by number; motifs come first, under their own numbers.
        space: shape of one input.
        longest: columns of the sequences.
        draw: a batch of so many examples, from a stream of random numbers.
    """

    name: str
    title: str
    about: str
    alphabet: tuple[str, ...]
    words: tuple[str, ...]
    space: tuple[int, ...]
    longest: int
    draw: Draw

    def sample(self, count: int, seed: int) -> MotifBatch:
        """So many examples, which follow from the seed alone.

        Examples come in blocks with a stream of random numbers each, so that a longer sample begins with a shorter one.
        All that is random is drawn as whole numbers, the same on every machine; float32 inputs that are computed from
        them may differ between machines in their last digits.

        Args:
            count: examples, at least 1.
            seed: a whole number from 0.

        Raises:
            ValueError: `count` or `seed` is none of these.
        """
        return in_blocks(self.draw, count, seed)

    def spell(self, sequence: Any) -> str:
        """A row of the target in words, with spaces between them."""
        return " ".join(self.words[number] for number in as_numpy(sequence, "sequence") if number != END)


@checked
def in_blocks(draw: Draw, count: int, seed: int) -> MotifBatch:
    """`count` examples, drawn in blocks of `BLOCK` from streams that follow from `seed` and the block's number.

    Args:
        draw: a batch of so many examples, from a generator.
        count: examples, at least 1.
        seed: a whole number from 0.

    Raises:
        ValueError: `count` or `seed` is none of these.
    """
    blocks = range(-(-as_count(count, "count") // BLOCK))
    return part_of_batch(join_batches([draw(block_stream(seed, number), BLOCK) for number in blocks]), 0, count)


def block_stream(seed: int, number: int) -> np.random.Generator:
    """The random numbers from which block `number` of a seed is drawn."""
    return np.random.default_rng([as_count(seed, "seed", 0, LARGEST_SEED), number])
