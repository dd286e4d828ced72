"""Lines of tokens: the source can be read back from places alone, and boxes hold the ink."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nbutils.motifs.token_lines import (
    ALPHABET,
    FLIPS,
    KINDS,
    LONGEST,
    SHAPES,
    SPACE,
    TOKEN_LINES,
    WIDEST,
    LineDraws,
    draw_lines,
    lay_out,
    render_lines,
)


def quiet(seed: int, count: int) -> LineDraws:
    draws = draw_lines(np.random.default_rng(seed), count)
    return replace(draws, noise=np.full_like(draws.noise, 65535))


def read(motifs: list[int], boxes: np.ndarray) -> str:
    """The source of a line from where its glyphs are, as a reader does it: left to right, above and below a bar."""
    glyphs = sorted(zip([ALPHABET[k] for k in motifs], boxes.tolist(), strict=True), key=lambda one: one[1][1][0])
    bars = [box for name, box in glyphs if name == r"\frac"]
    baseline = max(
        [box[0][1] for name, box in glyphs if not any(inside(box, bar) for bar in bars)] or [0]
    )  # where the lowest glyph outside of fractions ends
    words = []
    for name, box in glyphs:
        if name == r"\frac":
            sides = sorted((b[0][0], n) for n, b in glyphs if n != name and inside(b, box))
            words.append(rf"\frac {{ {sides[0][1]} }} {{ {sides[1][1]} }}")
        elif not any(inside(box, bar) for bar in bars):
            words.append(name if box[0][1] == baseline else f"^ {name}")
    return " ".join(words)


def inside(box: list[list[int]], bar: list[list[int]]) -> bool:
    return bar[1][0] <= box[1][0] and box[1][1] <= bar[1][1]


def test_places_tell_the_source():
    batch = render_lines(quiet(0, 300))
    for at in range(300):
        own = batch.example == at
        assert read(batch.motif[own].tolist(), batch.box[own]) == TOKEN_LINES.spell(batch.sequences[at])


def test_a_line_by_hand():
    draws = LineDraws(
        terms=np.array([3]),
        kind=np.array([[KINDS.index(kind) for kind in ("fraction", "power", "number")]]),
        digits=np.array([[[1, 2], [3, 9], [4, 0]]]),
        letters=np.array([[3, 0, 0]]),
        operators=np.array([[0, 1, 0]]),
        corner=np.array([[2, 0]]),
        noise=np.full((1, *SPACE), 65535, np.uint16),
    )
    marks, width = lay_out(draws, 0)
    assert " ".join(mark.word for mark in marks) == r"\frac { 1 } { 2 } + x ^ 3 = 4 0"
    assert width == 8 + 6 + 12 + 6 + 11
    batch = render_lines(draws)
    assert batch.box[0].tolist() == [[10, 11], [0, 7]], "the bar"
    assert batch.box[1].tolist() == [[2, 9], [1, 6]], "the numerator"
    assert batch.box[2].tolist() == [[12, 19], [1, 6]], "the denominator"
    assert batch.box[5].tolist() == [[3, 10], [20, 25]], "the exponent"


def test_boxes_hold_the_ink_and_do_not_meet():
    batch = render_lines(quiet(1, 300))
    left, covered = batch.inputs.copy(), np.zeros(batch.inputs.shape, int)
    for at, motif, (rows, columns) in zip(batch.example, batch.motif, batch.box, strict=True):
        place = (at, slice(*rows), slice(*columns))
        assert np.array_equal(batch.inputs[place], SHAPES[ALPHABET[motif]])
        left[place] = 0
        covered[place] += 1
    assert not left.any()
    assert covered.max() == 1


def test_lines_use_the_room_there_is():
    batch = render_lines(quiet(2, 2000))
    assert batch.box.min(axis=(0, 2)).tolist() == [0, 0]
    assert batch.box[..., 1].max(axis=0).tolist() == list(SPACE)
    assert batch.lengths.max() == LONGEST
    assert SPACE[1] - WIDEST >= 0
    first = [batch.box[batch.example == at, 1, 0].min() for at in range(2000)]
    assert len(set(first)) > 30


def test_pixels_are_flipped_as_often_as_said():
    draws = draw_lines(np.random.default_rng(3), 500)
    noisy, clean = render_lines(draws).inputs, render_lines(replace(draws, noise=draws.noise | 65535)).inputs
    rate = (noisy != clean).mean()
    assert abs(rate - 0.02) < 5 * math.sqrt(0.02 / noisy.size) + 1 / 2**16
    assert abs(FLIPS / 2**16 - 0.02) < 1e-5


def test_shapes_differ_enough_to_be_told_apart():
    names = [name for name in ALPHABET if name != r"\frac"]
    for number, one in enumerate(names):
        assert all((SHAPES[one] != SHAPES[other]).sum() >= 3 for other in names[:number])
