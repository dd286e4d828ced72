"""Pictures with known motifs: all at once, against one at a time as one writes it at first."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Comparison, compare, seconds
from benchmarks.slow_motifs import picture
from nbutils.motifs.digit_circle import LARGE, draw_circles
from nbutils.motifs.tasks import TASKS


def one_by_one(count: int, seed: int) -> np.ndarray:
    """As many pictures of the large kind, each drawn and made by itself."""
    rng = np.random.default_rng(seed)
    return np.stack([picture(LARGE, draw_circles(LARGE, rng, 1), 0)[0] for _ in range(count)])


def motifs(quick: bool) -> list[Comparison]:
    """2,000 pictures of DigitCircle on one core; every second or less for them is 2,000 pictures a second or more."""
    count = 128 if quick else 2_000
    task = TASKS["digit_circle"]
    task.sample(64, 0)
    found = compare(
        "motifs_digit_circle",
        f"{count:,} pictures of DigitCircle, 100 x 100 pixels, with target and boxes: in blocks, and one by one",
        lambda: seconds(lambda: task.sample(count, 1)),
        lambda: seconds(lambda: one_by_one(count, 1)),
        unit="s",
        repeats=1 if quick else 7,
    )
    return [found]
