"""DigitCircle: digits on a circle in a noisy picture; to be read clockwise, beginning with the smallest.

Every number that is random is a whole number, and places follow from them by whole-number arithmetic, so that a seed
gives the same pictures on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from nbutils.motifs.glyphs import BROAD_DIGITS, DIGITS, GLYPHS
from nbutils.motifs.motif_batches import END, MotifBatch, MotifTask

__all__ = ["DIGIT_CIRCLE", "LARGE", "SMALL", "SMALL_CIRCLE", "CircleDraws", "CircleRules", "draw_circles", "render"]

TURN = 7680  # steps of a whole turn; a multiple of 2 n for n digits, n from 2 to 6
UNIT = 2**20  # of sines, which are whole numbers
SINE = np.array([round(UNIT * math.sin(2 * math.pi * step / TURN)) for step in range(TURN)], np.int64)
CHANCES = 2**16  # of which a pixel's draw picks one


@dataclass(frozen=True, eq=False)
class CircleRules:
    """How pictures of digits on a circle are made.

    First, every pixel of an empty picture is flipped with half the mean share of ink; digits are then stamped (a pixel
    with ink is set, others stay); last, every pixel is flipped with probability `after`. Angles are drawn evenly from
    all that keep the gap: neighbours lie at least 1 / (2 n) of the turn apart, of n digits. Radius and centre are drawn
    evenly from those with which every stamp stays in the picture.

    Attributes:
        size: pixels on each side of a picture.
        glyphs: ink of the ten digits, shape (10, height, width).
        fewest: digits, at least.
        most: digits, at most.
        least_radius: of the circle, in pixels.
        most_radius: of the circle, in pixels.
        shift: pixels by which a stamp is moved at most, up or down and left or right.
        after: probability with which a pixel is flipped at the end.

    References:
        Gupta, Bastani and Solar-Lezama (2023), arXiv:2302.01976: 100 x 100 pixels, 3 to 6 distinct digits of ten,
        radius of at least 20, a shift of at most 3, the gap, half the mean ink before and 5 % after stamping. The
        shapes of the digits, the largest radius and the place of the centre are this project's own.
    """

    size: int
    glyphs: np.ndarray
    fewest: int
    most: int
    least_radius: int
    most_radius: int
    shift: int
    after: float = 0.05

    @property
    def mean_ink(self) -> float:
        """Expected share of pixels that stamps set, were none to overlap."""
        return (self.fewest + self.most) / 2 * float(self.glyphs.sum(axis=(1, 2)).mean()) / self.size**2

    @property
    def chances(self) -> tuple[int, int]:
        """Of 65,536 draws of a pixel, how many flip it before stamping, and after it."""
        return round(CHANCES * self.mean_ink / 2), round(CHANCES * self.after)


LARGE = CircleRules(100, np.stack(list(BROAD_DIGITS.values())), 3, 6, least_radius=20, most_radius=40, shift=3)
# Stamps have so little ink here that with 5 % of all pixels flipped, 100,000 pictures are too few to learn to read.
SMALL = CircleRules(40, np.stack([GLYPHS[name] for name in DIGITS]), 3, 4, 10, 15, shift=1, after=0.01)


@dataclass(frozen=True, eq=False)
class CircleDraws:
    """All that is random about a number of pictures, as whole numbers.

    Attributes:
        number: digits of each picture, shape (pictures,).
        digits: all ten in a random order, of which the first ones are used, shape (pictures, 10).
        start: steps of the first angle, shape (pictures,), of 7,680 to a turn.
        cuts: shape (pictures, most): the first n - 1, sorted, share half a turn out over the n gaps.
        radius: pixels, shape (pictures,).
        centre: row and column, shape (pictures, 2).
        shift: rows and columns by which stamps are moved, shape (pictures, most, 2).
        noise: a number below 65,536 for every pixel, before stamping and after it, shape (2, pictures, size, size).
    """

    number: np.ndarray
    digits: np.ndarray
    start: np.ndarray
    cuts: np.ndarray
    radius: np.ndarray
    centre: np.ndarray
    shift: np.ndarray
    noise: np.ndarray


def draw_circles(rules: CircleRules, rng: np.random.Generator, count: int) -> CircleDraws:
    """All that is random about `count` pictures."""
    size = np.array(rules.glyphs.shape[1:])
    radius = rng.integers(rules.least_radius, rules.most_radius + 1, size=count)
    reach = radius[:, None] + rules.shift
    low, high = reach + size // 2, rules.size - reach - (size - size // 2)
    return CircleDraws(
        number=rng.integers(rules.fewest, rules.most + 1, size=count),
        digits=rng.permuted(np.tile(np.arange(10), (count, 1)), axis=1),
        start=rng.integers(TURN, size=count),
        cuts=rng.integers(TURN // 2 + 1, size=(count, rules.most)),
        radius=radius,
        centre=rng.integers(low, high + 1),
        shift=rng.integers(-rules.shift, rules.shift + 1, size=(count, rules.most, 2)),
        noise=rng.integers(CHANCES, size=(2, count, rules.size, rules.size), dtype=np.uint16),
    )


def angles_of(draws: CircleDraws) -> np.ndarray:
    """Steps at which digits lie, clockwise from the first, shape (pictures, most); those beyond n are of no use.

    n - 1 cuts of half a turn make n parts of it, which are added to the n gaps of 1 / (2 n) that there are at least.
    """
    most = draws.cuts.shape[1]
    place, number = np.arange(most), draws.number[:, None]
    cuts = np.sort(np.where(place < number - 1, draws.cuts, TURN), axis=1)
    before = np.concatenate([np.zeros_like(number), cuts[:, :-1]], axis=1)
    return (draws.start[:, None] + place * (TURN // 2 // number) + before) % TURN


def render(rules: CircleRules, draws: CircleDraws) -> MotifBatch:
    """The pictures that draws describe, all at once; stamps of a picture are in the order of its target."""
    size = np.array(rules.glyphs.shape[1:])
    example, place = _in_order(draws)
    digit, angle = draws.digits[example, place], angles_of(draws)[example, place]
    turned = np.stack([SINE[angle], SINE[(angle + TURN // 4) % TURN]], axis=1)  # sine down, cosine to the right
    offset = (draws.radius[example, None] * turned + UNIT // 2) // UNIT
    corner = draws.centre[example] + offset + draws.shift[example, place] - size // 2

    before, after = rules.chances
    inputs = draws.noise[0] < before
    which, row, column = np.nonzero(rules.glyphs[digit])
    inputs[example[which], corner[which, 0] + row, corner[which, 1] + column] = True
    inputs ^= draws.noise[1] < after

    sequences = np.full((len(inputs), rules.most), END, np.int8)
    first = np.searchsorted(example, example)
    sequences[example, np.arange(len(example)) - first] = digit
    box = np.stack([corner, corner + size], axis=2)
    return MotifBatch(inputs.view(np.uint8), sequences, example, digit, box)


def _in_order(draws: CircleDraws) -> tuple[np.ndarray, np.ndarray]:
    """Picture and place of every digit; those of a picture clockwise, beginning with its smallest digit."""
    most = draws.cuts.shape[1]
    used = np.arange(most) < draws.number[:, None]
    smallest = np.where(used, draws.digits[:, :most], 10).argmin(axis=1)
    example, step = np.nonzero(used)
    return example, (smallest[example] + step) % draws.number[example]


def _draw(rules: CircleRules, rng: np.random.Generator, count: int) -> MotifBatch:
    return render(rules, draw_circles(rules, rng, count))


def _task(name: str, title: str, rules: CircleRules) -> MotifTask:
    words = tuple(DIGITS)
    pixels = f"{rules.size} x {rules.size} pixels"
    about = f"{rules.fewest} to {rules.most} digits on a circle, {pixels}; clockwise, beginning with the smallest"
    return MotifTask(name, title, about, words, words, (rules.size, rules.size), rules.most, partial(_draw, rules))


DIGIT_CIRCLE = _task("digit_circle", "digits on a large circle", LARGE)
SMALL_CIRCLE = _task("digit_circle_small", "digits on a circle", SMALL)
