"""One meaning, one colour: hues that everybody can tell apart, and none beside the palette."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from colours import BLIND, apart, contrast

from nbutils.data.datasets import DATASETS
from nbutils.drawing import palette
from nbutils.motifs.sparse_settings import CONDITIONS
from nbutils.pages.answering import FAMILIES
from nbutils.pages.figures import CONDITION_NAMES

KINDS = {
    "verdicts": palette.VERDICTS,
    "labels": palette.LABELS,
    "data sets": palette.DATASETS,
    "measures": palette.MEASURES,
    "families": dict(enumerate(palette.FAMILIES)),
    "errors": palette.ERRORS,
    "sparsity": palette.SPARSITY,
    "rules": dict(enumerate(palette.RULES)),
    "penalties": palette.PENALTIES,
    "preparations": dict(enumerate(palette.PREPARATIONS)),
    "sizes": dict(enumerate(palette.SIZES)),
    "communities": dict(enumerate(palette.COMMUNITIES[:7])),
}


@pytest.mark.parametrize("who", BLIND)
def test_any_two_hues_can_be_told_apart(who):
    assert min(apart(*pair, who) for pair in combinations(palette.HUES, 2)) > 20


def test_hues_stand_out_from_white_and_from_dark():
    for hue in palette.HUES:
        assert contrast(hue, "#ffffff") >= 2.6
        assert contrast(hue, "#121212") >= 2.6


@pytest.mark.parametrize("who", BLIND)
@pytest.mark.parametrize("kind", KINDS)
def test_meanings_of_a_kind_differ_in_colour_or_mark(kind, who):
    looks = [(one, "") if isinstance(one, str) else one for one in KINDS[kind].values()]
    for (colour, mark), (other, sign) in combinations(looks, 2):
        assert mark != sign or apart(colour, other, who) > 20


def test_what_pages_show_most_has_colours_of_its_own():
    often = palette.SUBJECT, palette.UNTRAINED, palette.NOTHING, palette.LABELS["true"], palette.DATASETS["mnist"]
    assert len(set(often)) == len(often), "networks, untrained ones, nulls, true labels and MNIST are five meanings"


def test_every_meaning_has_a_colour():
    assert set(palette.DATASETS) == set(DATASETS)
    assert set(palette.LABELS) == set(CONDITION_NAMES)
    assert set(palette.SPARSITY) == set(CONDITIONS)
    assert len(palette.FAMILIES) == len(FAMILIES)


def test_no_colour_stands_beside_the_palette(root):
    allowed = {
        "drawing/palette.py": None,
        "drawing/display.py": {"#010203"},  # stands for the text of the page until a figure is written
        "pages/leaderboard_checks.py": {"#111111"},  # numbers on bright cells
    }
    for file in sorted((root / "nbutils").rglob("*.py")):
        name = file.relative_to(root / "nbutils").as_posix()
        own = set(re.findall(r"\"(#[0-9a-f]{6})\"", file.read_text("utf-8")))
        assert allowed.get(name, set()) is None or own <= allowed.get(name, set()), name


def test_the_explorer_s_script_has_the_same_colours(root):
    script = (root / "book/_static/explore.js").read_text("utf-8")
    blue = re.search(r"BLUE = \"(#\w+)\"", script)[1]
    listed = re.search(r"COLOURS = \[([^\]]*)\]", script)[1].replace("BLUE", f'"{blue}"')
    levels = palette.ORANGE, palette.BLUE, palette.GREEN, palette.PINK, palette.RED
    assert tuple(re.findall(r"#\w{6}", listed)) == levels
