"""Lines of tokens as in a formula, with fractions and powers; the target is the source that would typeset them.

Every token that leaves ink has one shape wherever it stands, in a numerator as on the line or in an exponent, so that
one unit can stand for it. Braces and the sign of a power leave none: what they say is told by places alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nbutils.motifs.glyphs import DIGITS, GLYPHS
from nbutils.motifs.motif_batches import END, MotifBatch, MotifTask

__all__ = ["TOKEN_LINES", "LineDraws", "Mark", "draw_lines", "lay_out", "render_lines"]

BAR = r"\frac"
SHAPES: dict[str, np.ndarray] = {**GLYPHS, BAR: np.ones((1, 7), np.uint8)}
ALPHABET = tuple(SHAPES)
WORDS = (*ALPHABET, "{", "}", "^")
NUMBER = {word: number for number, word in enumerate(WORDS)}
LETTERS, OPERATORS = "xy", "+="

SPACE = (20, 56)  # rows and columns
HEIGHT = 17  # rows of a fraction: two glyphs of seven, the bar, and a row on each side of it
ON_LINE, RAISED, NUMERATOR, AT_BAR, DENOMINATOR = 5, 1, 0, 8, 10  # first rows, from that of the fraction
TERMS = 3  # at most
WIDEST = TERMS * 12 + (TERMS - 1) * 6 - 1  # columns: terms of two glyphs, and operators between them
LONGEST = TERMS * 7 + TERMS - 1  # words, where all terms are fractions
KINDS = ("digit", "number", "letter", "power", "fraction", "fraction")  # each as likely
CHANCES, FLIPS = 2**16, round(0.02 * 2**16)  # 2 % of the pixels are flipped


@dataclass(frozen=True)
class Mark:
    """A word of a line, and where its ink begins; braces and `^` have no place.

    Attributes:
        word: the token.
        row: first row, from that of a fraction.
        column: first column, from that of the line.
    """

    word: str
    row: int | None = None
    column: int | None = None


@dataclass(frozen=True, eq=False)
class LineDraws:
    """All that is random about a number of lines, as whole numbers.

    Attributes:
        terms: of each line, 1 to 3, shape (lines,).
        kind: of each term, by number in `KINDS`, shape (lines, 3).
        digits: two for each term, shape (lines, 3, 2).
        letters: one for each term, by number, shape (lines, 3); in a fraction, below 2 of 4 puts it into the numerator.
        operators: after each term, by number, shape (lines, 3).
        corner: first row and column of each line, shape (lines, 2), column in 65,536ths of the room that is left.
        noise: a number below 65,536 for every pixel, shape (lines, rows, columns).
    """

    terms: np.ndarray
    kind: np.ndarray
    digits: np.ndarray
    letters: np.ndarray
    operators: np.ndarray
    corner: np.ndarray
    noise: np.ndarray


def draw_lines(rng: np.random.Generator, count: int) -> LineDraws:
    """All that is random about `count` lines."""
    rows = rng.integers(SPACE[0] - HEIGHT + 1, size=count)
    return LineDraws(
        terms=rng.integers(1, TERMS + 1, size=count),
        kind=rng.integers(len(KINDS), size=(count, TERMS)),
        digits=rng.integers(10, size=(count, TERMS, 2)),
        letters=rng.integers(2 * len(LETTERS), size=(count, TERMS)),
        operators=rng.integers(len(OPERATORS), size=(count, TERMS)),
        corner=np.stack([rows, rng.integers(CHANCES, size=count)], axis=1),
        noise=rng.integers(CHANCES, size=(count, *SPACE), dtype=np.uint16),
    )


def lay_out(draws: LineDraws, at: int) -> tuple[list[Mark], int]:
    """The marks of one line, in the order of its source, and how many columns it takes.

    Examples:
        >>> marks, width = lay_out(draw_lines(np.random.default_rng(0), 1), 0)
        >>> " ".join(mark.word for mark in marks), width
        ('y ^ 0 = 0 1', 29)
    """
    marks: list[Mark] = []
    column, terms = 0, int(draws.terms[at])
    for number in range(terms):
        digits = [DIGITS[k] for k in draws.digits[at, number]]
        term, width = _term(KINDS[draws.kind[at, number]], digits, int(draws.letters[at, number]), column)
        marks, column = marks + term, column + width
        if number < terms - 1:
            marks.append(Mark(OPERATORS[draws.operators[at, number]], ON_LINE, column))
            column += 6
    return marks, column - 1


def _term(kind: str, digits: list[str], drawn: int, column: int) -> tuple[list[Mark], int]:
    """The marks of a term, and the columns that it takes with the empty one after it."""
    letter = LETTERS[drawn % len(LETTERS)]
    if kind == "fraction":
        above, below = (letter, digits[0]) if drawn < len(LETTERS) else digits
        sides = [Mark(above, NUMERATOR, column + 1), Mark(below, DENOMINATOR, column + 1)]
        groups = [mark for side in sides for mark in (Mark("{"), side, Mark("}"))]
        return [Mark(BAR, AT_BAR, column), *groups], 8
    if kind == "power":
        return [Mark(letter, ON_LINE, column), Mark("^"), Mark(digits[0], RAISED, column + 6)], 12
    if kind == "number":
        return [Mark(digit, ON_LINE, column + 6 * k) for k, digit in enumerate(digits)], 12
    return [Mark(letter if kind == "letter" else digits[0], ON_LINE, column)], 6


def render_lines(draws: LineDraws) -> MotifBatch:
    """The pictures that draws describe; stamps of a line are in the order of its source."""
    inputs = np.zeros((len(draws.terms), *SPACE), bool)
    sequences = np.full((len(inputs), LONGEST), END, np.int8)
    example, motif, box = [], [], []
    for at in range(len(inputs)):
        marks, width = lay_out(draws, at)
        first, room = int(draws.corner[at, 0]), SPACE[1] - width + 1
        left = int(draws.corner[at, 1]) * room // CHANCES
        sequences[at, : len(marks)] = [NUMBER[mark.word] for mark in marks]
        for mark in marks:
            if mark.row is None or mark.column is None:
                continue
            shape, row, column = SHAPES[mark.word], first + mark.row, left + mark.column
            extent = [[row, row + shape.shape[0]], [column, column + shape.shape[1]]]
            inputs[at, slice(*extent[0]), slice(*extent[1])] |= shape.astype(bool)
            example.append(at)
            motif.append(NUMBER[mark.word])
            box.append(extent)
    inputs ^= draws.noise < FLIPS
    return MotifBatch(inputs.view(np.uint8), sequences, np.array(example), np.array(motif), np.array(box))


def _draw(rng: np.random.Generator, count: int) -> MotifBatch:
    return render_lines(draw_lines(rng, count))


TOKEN_LINES = MotifTask(
    "token_lines",
    "lines of tokens",
    "a line of tokens with fractions and powers, 20 x 56 pixels, 2 % of them flipped; the source that typesets it",
    ALPHABET,
    WORDS,
    SPACE,
    LONGEST,
    _draw,
)
