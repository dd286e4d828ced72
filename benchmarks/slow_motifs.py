"""Pictures of digits on a circle as one writes them at first: one at a time, one digit at a time. The slow side."""

from __future__ import annotations

import math

import numpy as np

from nbutils.motifs.digit_circle import CircleDraws, CircleRules

Picture = tuple[np.ndarray, list[int], list[list[tuple[int, int]]]]


def picture(rules: CircleRules, draws: CircleDraws, at: int) -> Picture:
    """One picture, its target, and the box of each digit of the target."""
    height, width = rules.glyphs.shape[1:]
    before, after = (round(65536 * rate) for rate in (ink(rules) / 2, rules.after))
    image = np.zeros((rules.size, rules.size), np.uint8)
    image[draws.noise[0, at] < before] = 1
    stamps = []
    count = int(draws.number[at])
    cuts = [0, *sorted(draws.cuts[at, : count - 1].tolist())]
    for place in range(count):
        share = int(draws.start[at]) / 7680 + place / (2 * count) + cuts[place] / 7680
        down, right = (round(2**20 * f(2 * math.pi * share)) / 2**20 for f in (math.sin, math.cos))
        row, column = (
            int(centre) + math.floor(int(draws.radius[at]) * along + 0.5) + int(shift) - length // 2
            for centre, along, shift, length in zip(
                draws.centre[at], (down, right), draws.shift[at, place], (height, width), strict=True
            )
        )
        digit = int(draws.digits[at, place])
        for i in range(height):
            for j in range(width):
                if rules.glyphs[digit, i, j]:
                    image[row + i, column + j] = 1
        stamps.append((digit, [(row, row + height), (column, column + width)]))
    flipped = draws.noise[1, at] < after
    image[flipped] = 1 - image[flipped]
    while stamps[0][0] != min(digit for digit, _ in stamps):
        stamps.append(stamps.pop(0))
    return image, [digit for digit, _ in stamps], [box for _, box in stamps]


def ink(rules: CircleRules) -> float:
    """Mean share of a picture that is ink: mean number of digits times mean ink of one."""
    per_digit = [sum(int(value) for value in glyph.ravel()) for glyph in rules.glyphs]
    return (rules.fewest + rules.most) / 2 * sum(per_digit) / len(per_digit) / rules.size**2
