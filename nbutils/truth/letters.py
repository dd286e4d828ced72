"""Letters in the fonts that come with the figures' library: one picture, two independent labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from nbutils.support.checks import as_rng
from nbutils.support.needs import needed_for

__all__ = ["FACES", "GLYPHS", "SIDE", "glyph_images"]

GLYPHS = tuple("ABEGKMRSTX")
# Files of faces that differ clearly in stroke, slant, serifs or width.
FACES = (
    *("DejaVuSans.ttf", "DejaVuSans-BoldOblique.ttf", "DejaVuSerif.ttf", "DejaVuSansMono-Oblique.ttf"),
    *("STIXGeneralItalic.ttf", "STIXGeneralBol.ttf", "cmtt10.ttf", "cmss10.ttf"),
)
SIDE = 20  # pixels of a picture
SIZES = (15, 16, 17)  # points; cut of each picture is one of these
SHIFT, NOISE = 2, 0.1  # pixels either way; deviation of the noise of a pixel, of a white of 1


@lru_cache(maxsize=1)
def _templates() -> np.ndarray:
    """Every glyph in every face and size in the middle of its picture, shape (sizes, glyphs, faces, side, side)."""
    with needed_for("a picture of a letter"):
        import matplotlib
        from PIL import Image, ImageDraw, ImageFont
    folder = f"{matplotlib.get_data_path()}/fonts/ttf"
    found = np.zeros((len(SIZES), len(GLYPHS), len(FACES), SIDE, SIDE), np.float32)
    for a, size in enumerate(SIZES):
        for c, face in enumerate(FACES):
            font = ImageFont.truetype(f"{folder}/{face}", size)
            for b, glyph in enumerate(GLYPHS):
                picture = Image.new("L", (SIDE, SIDE))
                ImageDraw.Draw(picture).text((SIDE / 2, SIDE / 2), glyph, fill=255, font=font, anchor="mm")
                found[a, b, c] = np.asarray(picture, np.float32) / 255
    return found


def glyph_images(
    factors: Sequence[Sequence[int]] | np.ndarray, rng: np.random.Generator | int, copies: int = 1
) -> np.ndarray:
    """Pictures of letters, each somewhat moved, scaled and noisy.

    Args:
        factors: glyph and face of each picture, shape (copies * pictures, 2): numbers into `GLYPHS` and `FACES`.
        rng: source of randomness: a generator, or a seed.
        copies: of how many blocks of equal length, one after the other, pictures have size, shift and noise in common,
            so that picture i of each block differs in glyph or face alone.

    Returns:
        Grey values about 0 to 1, float32, shape (copies * pictures, side, side).

    Raises:
        ValueError: there is no such glyph or face, or blocks are not of equal length.

    Examples:
        >>> found = glyph_images([[0, 1], [3, 1]], rng=0, copies=2)
        >>> found.shape
        (2, 20, 20)
    """
    chosen, source = np.asarray(factors), as_rng(rng)
    if chosen.ndim != 2 or chosen.shape[1] != 2 or len(chosen) % copies:
        raise ValueError(f"factors must have shape (pictures, 2) in {copies} equal blocks, received {chosen.shape}")
    if chosen.size and (chosen.min() < 0 or (chosen.max(axis=0) >= (len(GLYPHS), len(FACES))).any()):
        raise ValueError(
            f"factors must be below {len(GLYPHS)} and {len(FACES)}, received {chosen.max(axis=0).tolist()}"
        )
    count = len(chosen) // copies
    size, shifts = source.integers(len(SIZES), size=count), source.integers(-SHIFT, SHIFT + 1, size=(count, 2))
    noise = source.normal(0, NOISE, (count, SIDE, SIDE)).astype(np.float32)
    size, shifts, noise = (np.concatenate([part] * copies) for part in (size, shifts, noise))
    plain = _templates()[size, chosen[:, 0], chosen[:, 1]]
    rows, columns = (np.arange(SIDE)[None] - shifts[:, [axis]] for axis in (0, 1))
    padded = np.pad(plain, ((0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT)))
    moved = padded[np.arange(len(plain))[:, None, None], rows[:, :, None] + SHIFT, columns[:, None, :] + SHIFT]
    return moved + noise
