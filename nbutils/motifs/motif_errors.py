"""How well sparse units tell motifs: activations held against stamps, and predicted sequences against the target.

An activation is a unit that is not zero: a channel at a position of its layer, on an example. It stands for a window of
the input, which begins at `position * stride + offset` and is `field` long, in each dimension. It touches a stamp if
both have a place of the input in common: window and box overlap in every dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from nbutils.motifs.motif_batches import END, MotifBatch
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_labels, as_numpy

__all__ = [
    "Activations",
    "MotifErrors",
    "Touches",
    "activations_of",
    "best_assignment",
    "confusion_of",
    "edit_distance",
    "motif_errors",
    "sequence_accuracy",
    "touches_of",
]

CHUNK = 500_000  # pairs of an activation and a stamp of its example that are looked at together
NOBODY = -1  # where a channel has no motif, or an activation no stamp


@dataclass(frozen=True, eq=False)
class Activations:
    """Units that are not zero; checked when it is made.

    Attributes:
        example: row of the input, shape (activations,).
        channel: number of the channel, shape (activations,).
        position: place in the layer, shape (activations, dims).
        stride: places of the input from one position to the next; a number, or one for each dimension.
        offset: where the window of position 0 begins in the input, likewise; negative where a layer pads its input.
        field: length of the window, likewise; 1 is a point, the layer's receptive field is all that a unit can see.

    Raises:
        ValueError: shapes disagree, or a number is out of range; names the attribute.
    """

    example: np.ndarray
    channel: np.ndarray
    position: np.ndarray
    stride: int | tuple[int, ...] = 1
    offset: int | tuple[int, ...] = 0
    field: int | tuple[int, ...] = 1

    def __post_init__(self) -> None:
        """Turn every field into a plain array, or refuse it."""
        example = as_labels(self.example, None, "example")
        channel = as_labels(self.channel, len(example), "channel")
        position = as_numpy(self.position, "position")
        if position.ndim != 2 or len(position) != len(example):
            raise ValueError(f"position must have shape ({len(example)}, dims), received {position.shape}")
        position = as_labels(position.ravel(), None, "position").reshape(position.shape)
        if (channel < 0).any() or (position < 0).any():
            raise ValueError("channel and position must not be negative, received some that are")
        for name, values in {"example": example, "channel": channel, "position": position}.items():
            object.__setattr__(self, name, values)
        for name in ("stride", "offset", "field"):
            object.__setattr__(self, name, _for_each(getattr(self, name), position.shape[1], name))

    def windows(self) -> np.ndarray:
        """First and one past the last place of the input, shape (activations, dims, 2)."""
        start = self.position * self.stride + np.array(self.offset)
        return np.stack([start, start + self.field], axis=2)


def _for_each(value: Any, dims: int, name: str) -> tuple[int, ...]:
    numbers = as_labels(np.atleast_1d(as_numpy(value, name)), None, name)
    if len(numbers) not in (1, dims):
        raise ValueError(f"{name} must be a number, or {dims} of them, received {len(numbers)}")
    if name != "offset" and (numbers < 1).any():
        raise ValueError(f"{name} must be at least 1, received {numbers.min()}")
    return tuple(int(number) for number in np.broadcast_to(numbers, dims))


def activations_of(values: Any, stride: Any = 1, offset: Any = 0, field: Any = 1) -> Activations:
    """The units of a layer that are not zero.

    Args:
        values: outputs of a layer, shape (examples, channels, \\*positions).
        stride: see :class:`Activations`, as are `offset` and `field`.
        offset: of the window of position 0.
        field: length of the window.

    Examples:
        >>> found = activations_of([[[0, 0, 2.5], [0, 1, 0]]], stride=2)
        >>> found.channel, found.position.ravel(), found.windows()[:, 0].tolist()
        (array([0, 1]), array([2, 1]), [[4, 5], [2, 3]])
    """
    array = as_numpy(values, "values")
    if array.ndim < 3:
        raise ValueError(f"values must have shape (examples, channels, *positions), received {array.shape}")
    example, channel, *position = np.nonzero(array)
    return Activations(example, channel, np.stack(position, axis=1), stride, offset, field)


@dataclass(frozen=True, eq=False)
class Touches:
    """Which activations and stamps meet.

    Attributes:
        stamp: of each activation, the stamp that it is matched with, or -1 if it touches none. Of several that it
            touches, the one whose middle is nearest to the middle of its window; of equally near ones, the first.
        touched: whether any activation touches a stamp, shape (stamps,).
    """

    stamp: np.ndarray
    touched: np.ndarray


def touches_of(batch: MotifBatch, activations: Activations) -> Touches:
    """Match activations with stamps, see :class:`Touches`.

    Args:
        batch: with the true stamps.
        activations: on its examples, with as many dimensions as its inputs.

    Raises:
        ValueError: dimensions disagree, or an activation is of an example that the batch does not have.
    """
    dims, example = len(batch.space), activations.example
    if activations.position.shape[1] != dims:
        raise ValueError(f"position must have {dims} columns, as inputs have, received {activations.position.shape[1]}")
    if example.size and not 0 <= example.min() <= example.max() < len(batch):
        raise ValueError(
            f"example must hold rows from 0 to {len(batch) - 1}, received {example.min()}, {example.max()}"
        )
    first, last = (np.searchsorted(batch.example, example, side) for side in ("left", "right"))
    stamp, touched = np.full(len(example), NOBODY), np.zeros(len(batch.motif), bool)
    windows, pairs = activations.windows(), np.cumsum(last - first)
    edges = np.searchsorted(pairs, np.arange(0, pairs[-1] if len(pairs) else 0, CHUNK), "right")
    for low, high in pairwise([*edges, len(example)]):
        part = slice(low, high)
        _touch(batch.box, windows[part], first[part], last[part], stamp[part], touched)
    return Touches(stamp, touched)


def _touch(
    box: np.ndarray, windows: np.ndarray, first: np.ndarray, last: np.ndarray, stamp: np.ndarray, touched: np.ndarray
) -> None:
    """Write into `stamp` and `touched` what some activations meet; stamps `first` to `last` are of their examples."""
    count = last - first
    who = np.repeat(np.arange(len(count)), count)
    which = np.arange(len(who)) - np.repeat(np.cumsum(count) - count - first, count)
    window, own = windows[who], box[which]
    meets = ((window[..., 0] < own[..., 1]) & (own[..., 0] < window[..., 1])).all(axis=1)
    who, which = who[meets], which[meets]
    far = ((window[meets].sum(axis=2) - own[meets].sum(axis=2)) ** 2).sum(axis=1)
    touched[which] = True
    order = np.lexsort((which, far, who))
    someone, nearest = np.unique(who[order], return_index=True)
    stamp[someone] = which[order][nearest]


def confusion_of(
    batch: MotifBatch, activations: Activations, channels: int, motifs: int, touches: Touches | None = None
) -> np.ndarray:
    """How often an activation of a channel is matched with a stamp of a motif, shape (channels, motifs).

    Args:
        batch: with the true stamps.
        activations: on its examples.
        channels: of the layer.
        motifs: of the alphabet.
        touches: those of both, if they are known.

    Raises:
        ValueError: there are more channels or motifs than said.
    """
    channels, motifs = as_count(channels, "channels"), as_count(motifs, "motifs")
    channel, found = activations.channel, touches or touches_of(batch, activations)
    for name, numbers, most in (("channels", channel, channels), ("motifs", batch.motif, motifs)):
        if numbers.size and numbers.max() >= most:
            raise ValueError(f"{name} must be above {numbers.max()}, which occurs, received {most}")
    matched = found.stamp != NOBODY
    counts = np.zeros((channels, motifs), np.int64)
    np.add.at(counts, (channel[matched], batch.motif[found.stamp[matched]]), 1)
    return counts


def best_assignment(confusion: Any) -> np.ndarray:
    """The motif of each channel, so that most matched activations are of their channel's motif.

    No motif is given to two channels: with more channels than motifs, some have none (-1), and all that they say counts
    as wrong. The sum of confusion over assigned pairs is the largest possible (Hungarian algorithm).

    Args:
        confusion: counts, shape (channels, motifs), see :func:`confusion_of`.

    Returns:
        A motif or -1 for each channel, shape (channels,).

    Examples:
        >>> best_assignment([[0, 9], [8, 9], [1, 0]])
        array([ 1,  0, -1])
    """
    counts = as_numpy(confusion, "confusion")
    if counts.ndim != 2 or (counts < 0).any():
        raise ValueError(f"confusion must hold counts of shape (channels, motifs), received {counts.shape}")
    channel, motif = linear_sum_assignment(counts, maximize=True)
    assignment = np.full(len(counts), NOBODY)
    assignment[channel] = motif
    return assignment


@dataclass(frozen=True, eq=False)
class MotifErrors:
    """Errors of units that are held against known motifs; NaN where a share is one of nothing.

    Attributes:
        false_positive: FPE, share of activations that touch no stamp.
        false_negative: FNE, share of stamps that no activation touches.
        confusion: CE, share of matched activations whose channel is assigned another motif than that of their stamp.
        assignment: motif of each channel, or -1, shape (channels,).
        fitted_on: "these examples", or "other examples" where the assignment was given.
        activations: how many there are.
        stamps: how many there are.
    """

    false_positive: float
    false_negative: float
    confusion: float
    assignment: np.ndarray
    fitted_on: str
    activations: int
    stamps: int


@checked
def motif_errors(
    batch: MotifBatch, activations: Activations, channels: int, motifs: int, assignment: Any = None
) -> MotifErrors:
    """FPE, FNE and CE of activations against the true stamps.

    FPE = activations that touch no stamp / activations; FNE = stamps that no activation touches / stamps; CE = matched
    activations with assignment[channel] != motif of their stamp / matched activations.

    Args:
        batch: with the true stamps.
        activations: on its examples; its `stride`, `offset` and `field` say where they are in the input.
        channels: of the layer.
        motifs: of the alphabet.
        assignment: motif of each channel, or -1, from other examples (:func:`best_assignment`); None fits the best one
            to these examples, which flatters a layer when there are few.

    Raises:
        ValueError: shapes or numbers disagree; names the argument.

    Examples:
        A stamp of motif 1 and one of motif 0, both seen, and an activation beside them.

        >>> batch = MotifBatch(np.zeros((1, 9), np.uint8), [[1, 0]], [0, 0], [1, 0], [[[0, 3]], [[5, 8]]])
        >>> found = motif_errors(batch, Activations([0, 0, 0], [0, 1, 1], [[2], [6], [8]]), channels=2, motifs=2)
        >>> round(found.false_positive, 3), found.false_negative, found.confusion, found.assignment
        (0.333, 0.0, 0.0, array([1, 0]))

    References:
        Gupta, Bastani and Solar-Lezama (2023), arXiv:2302.01976, define the three errors. What touching means, and
        which of several touched stamps counts, is said in this module.
    """
    touches = touches_of(batch, activations)
    counts = confusion_of(batch, activations, channels, motifs, touches)
    given = assignment is not None
    chosen = _as_assignment(assignment, channels, motifs) if given else best_assignment(counts)
    right = counts[chosen != NOBODY, chosen[chosen != NOBODY]].sum()
    missed = int((touches.stamp == NOBODY).sum())
    return MotifErrors(
        false_positive=_share(missed, len(touches.stamp)),
        false_negative=_share(int((~touches.touched).sum()), len(touches.touched)),
        confusion=_share(int(counts.sum() - right), int(counts.sum())),
        assignment=chosen,
        fitted_on="other examples" if given else "these examples",
        activations=len(touches.stamp),
        stamps=len(touches.touched),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _as_assignment(assignment: Any, channels: int, motifs: int) -> np.ndarray:
    chosen = as_labels(assignment, channels, "assignment")
    if chosen.size and not NOBODY <= chosen.min() <= chosen.max() < motifs:
        raise ValueError(
            f"assignment must hold motifs from -1 to {motifs - 1}, received {chosen.min()}, {chosen.max()}"
        )
    return chosen


def edit_distance(one: Sequence[int], other: Sequence[int]) -> int:
    """Fewest words to insert, delete or replace to turn one sequence into the other (Levenshtein).

    Examples:
        >>> edit_distance([1, 2, 3], [2, 3, 4]), edit_distance([], [5, 5])
        (2, 2)
    """
    row = list(range(len(other) + 1))
    for i, mine in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, theirs in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (mine != theirs))
    return row[-1]


def sequence_accuracy(predicted: Any, true: Any) -> dict[str, float]:
    """How well predicted sequences match the target.

    exact = share of examples whose sequences are equal; edit = 1 - mean over examples of d / length of the longer of
    both, with d the edit distance (:func:`edit_distance`); two empty sequences have a distance of 0.

    Args:
        predicted: numbers of words, shape (examples, longest), filled with -1 after the last; may be longer or shorter
            than the target.
        true: the target, likewise.

    Returns:
        `exact` and `edit`, both from 0 to 1; NaN without examples.

    Raises:
        ValueError: shapes disagree, or -1 stands before a word.

    Examples:
        >>> sequence_accuracy([[1, 2, -1, -1], [1, 2, 3, 4]], [[1, 2, -1], [2, 3, 4]])
        {'exact': 0.5, 'edit': 0.875}

    References:
        Levenshtein (1966), Binary codes capable of correcting deletions, insertions and reversals, Soviet Physics
        Doklady 10, 707-710.
    """
    sides = [_as_words(predicted, "predicted"), _as_words(true, "true")]
    if len(sides[0]) != len(sides[1]):
        raise ValueError(f"predicted must have as many rows as true, {len(sides[1])}, received {len(sides[0])}")
    if not sides[0]:
        return {"exact": float("nan"), "edit": float("nan")}
    pairs = list(zip(*sides, strict=True))
    parts = [edit_distance(one, other) / max(len(one), len(other), 1) for one, other in pairs]
    exact = sum(one == other for one, other in pairs) / len(pairs)
    return {"exact": exact, "edit": 1 - sum(parts) / len(parts)}


def _as_words(sequences: Any, name: str) -> list[list[int]]:
    table = as_numpy(sequences, name)
    if table.ndim != 2:
        raise ValueError(f"{name} must have shape (examples, longest), received {table.shape}")
    rows = as_labels(table.ravel(), None, name).reshape(table.shape)
    ended = rows == END
    if (ended[:, :-1] & ~ended[:, 1:]).any():
        raise ValueError(f"{name} must be filled with {END} after the last word only")
    return [row[row != END].tolist() for row in rows]
