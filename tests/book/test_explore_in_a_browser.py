"""Plots whose points say what they are, and the explorer of networks, in a real browser: pointer, keys, themes, phone.

Without a Chromium these tests are skipped, see `test_browser.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_core_python
import pandas as pd
import pytest

from nbutils.pages import answering
from nbutils.pages.specification_curve import grid_values, show_curves, specification_table
from nbutils.study.archive import read_archive

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "book/_static"
PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Plots</title>
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="{static}/book.css"><script src="{static}/explore.js"></script>
<style>* {{ box-sizing: border-box }} body {{ font: 17px DejaVu Sans; margin: 16px; max-width: 760px }}
figure {{ margin: 0 }}
html[data-theme=dark] body {{ background: #121212; color: #ced6dd; --pst-color-background: #121212 }}
a {{ color: inherit }}</style></head>
<body class="bd-content"><main><h1>Plots</h1>{body}</main></body></html>
"""
CURVES, BOARD, EXPLORER = "#curves", "#board", "#picture-explorer"
pytestmark = pytest.mark.slow(8)


@pytest.fixture(scope="module")
def figures(explorer) -> dict[str, str]:
    """The three figures, as their pages hold them."""
    results = [read_archive(ROOT / "book/results" / name, name) for name in ("mnist", "cifar10")]
    tables = {one.dataset: specification_table(*grid_values(one), draws=49) for one in results}
    every = pd.concat(tables, names=["dataset"]).reset_index("dataset")
    boards = [one for one in answering.open_all() if len(one.board)]
    return {
        "curves": show_curves(every, "Source: the committed tables.").text,
        "board": answering.show_worth(boards).text,
        "explorer": explorer.explorer_html(explorer.studies()),
    }


@pytest.fixture
def page(figures, tmp_path) -> Callable[..., Path]:
    """A page with figures, the style and the scripts of the book."""

    def write(*names: str, theme: str = "light") -> Path:
        body = "".join(f'<div id="{name}">{figures[name]}</div>' for name in names or figures)
        file = tmp_path / f"{theme}.html"
        file.write_text(PAGE.format(theme=theme, static=STATIC.as_uri(), body=body), "utf-8")
        return file

    return write


def told(shown: Any, where: str) -> str:
    return shown.tab.locator(f"{where} output.nb-told:visible").text_content()


def points(shown: Any, where: str) -> list[Any]:
    """What the points of the visible plot say."""
    return json.loads(shown.tab.locator(f"{where} .nb-one:not(.nb-off) .nb-plot script").first.text_content())


def test_arrow_keys_walk_along_the_curve(shown, page):
    shown.open(page("curves"))
    known = points(shown, CURVES)
    shown.tab.keyboard.press("Tab")
    assert shown.ask("document.activeElement.tagName") == "SELECT"
    shown.tab.keyboard.press("Tab")
    shown.tab.keyboard.press("Tab")
    assert shown.ask("document.activeElement.className") == "nb-area"
    assert told(shown, CURVES) == known[0][2], "the first one, once it is reached"
    for key, place in (("ArrowRight", 1), ("ArrowRight", 2), ("PageDown", 12), ("ArrowLeft", 11), ("End", -1)):
        shown.tab.keyboard.press(key)
        assert told(shown, CURVES) == known[place][2]
    shown.tab.keyboard.press("ArrowRight")
    assert told(shown, CURVES) == known[-1][2], "there is none after the last"
    shown.tab.keyboard.press("Home")
    assert told(shown, CURVES) == known[0][2]
    assert shown.trouble == []


def test_what_was_chosen_lights_up(shown, page):
    shown.open(page("curves"))
    shown.tab.locator(f"{CURVES} .nb-area:visible").focus()
    shown.tab.keyboard.press("PageDown")
    lit = shown.ask("[...document.querySelectorAll('.nb-one:not(.nb-off) .nb-choice.on')].map(p => p.textContent)")
    said = told(shown, CURVES)
    assert lit
    assert all(word in said for word in lit)
    number, effect = re.match(r"(\d+) of \d+[^:]*: effect (\S+) \(", said).groups()
    assert (int(number), -1 <= float(effect.replace("−", "-")) <= 1) == (11, True)


def test_a_pointer_chooses_the_nearest_column(shown, page):
    shown.open(page("curves"), height=1400)
    known, area = points(shown, CURVES), shown.tab.locator(f"{CURVES} .nb-area:visible").bounding_box()
    for place in (0, 20, len(known) - 1):
        x = area["x"] + known[place][0] / 1000 * area["width"]
        for y in (area["y"] + 5, area["y"] + area["height"] + 120):  # in the plot, and in the rows below it
            shown.tab.mouse.move(x, y)
            assert told(shown, CURVES) == known[place][2]
        band = shown.tab.locator(f"{CURVES} .nb-band.on:visible").bounding_box()
        assert band["x"] + band["width"] / 2 == pytest.approx(x, abs=1)
        assert band["y"] == pytest.approx(area["y"], abs=1.5)


def test_one_chooses_a_curve(shown, page):
    shown.open(page("curves"))
    hypothesis, dataset = (shown.tab.locator(f"{CURVES} select").nth(n) for n in (0, 1))
    for name in ("H2", "H3"):
        for title in ("MNIST", "CIFAR-10"):
            hypothesis.select_option(name)
            dataset.select_option(title)
            assert shown.tab.locator(".nb-one:visible").count() == 1
            assert shown.tab.locator(".nb-one:visible .nb-name").text_content() == f"{name}, {title}"
    dataset.focus()
    shown.tab.keyboard.press("ArrowUp")
    assert shown.tab.locator(".nb-one:visible .nb-name").text_content() == "H3, MNIST"


def test_dots_of_the_leaderboard_say_what_they_are(shown, page):
    shown.open(page("board"))
    known, area = points(shown, BOARD), shown.tab.locator(f"{BOARD} .nb-area").bounding_box()
    for x, y, said in known[:2]:
        shown.tab.mouse.move(area["x"] + x / 1000 * area["width"] + 2, area["y"] + y / 1000 * area["height"] - 2)
        assert told(shown, BOARD) == said
        ring = shown.tab.locator(f"{BOARD} .nb-ring.on").bounding_box()
        assert ring["x"] + ring["width"] / 2 == pytest.approx(area["x"] + x / 1000 * area["width"], abs=1.5)
    shown.tab.locator(f"{BOARD} .nb-area").focus()
    shown.tab.keyboard.press("Home")
    assert re.match(r"linear probe, last layer: place 1 of \d+; mean ρ", told(shown, BOARD))
    assert shown.trouble == []


def pick(select: Any, value: str) -> None:
    """Choose in a list, unless it holds nothing else."""
    if select.is_enabled():
        select.select_option(value)
    assert select.input_value() == value


@pytest.mark.parametrize("most", [1, pytest.param(None, marks=pytest.mark.release)], ids=["one measure", "all"])
def test_every_choice_of_the_explorer_is_drawn_and_said(most, shown, page):
    shown.open(page("explorer"))
    data = json.loads(shown.tab.locator(f"{EXPLORER} > script").text_content())
    selects = [shown.tab.locator(f"{EXPLORER} select").nth(n) for n in range(4)]
    for one in data["sets"]:
        selects[0].select_option(one["title"])
        for group in one["groups"]:
            pick(selects[1], group["title"])
            for measure in [*group["y"]][:most]:
                selects[2].select_option(measure)
                for along in group["x"]:
                    pick(selects[3], along)
                    said = shown.tab.locator(f"{EXPLORER} .nb-said").text_content()
                    assert said.startswith(f"{one['title']}, {group['title']}. {group['n']} ")
                    assert measure in said
                    assert group["estimates"][along][measure] in said
                    assert shown.tab.locator(".nb-live .nb-area").get_attribute("aria-label").startswith(said)
                    drawn = shown.ask("[...document.querySelectorAll('.nb-live path')].map(p => p.getAttribute('d'))")
                    assert not [d for d in drawn if "NaN" in d or "Infinity" in d]
                    if group["kind"] == "dots":
                        dots = sum(d.count("h.1") for d in drawn)
                        assert dots == sum(a != "__" for a in re.findall("..", group["y"][measure]["v"]))
                    else:
                        assert sum("L" in d for d in drawn) == group["n"] + 1, "runs and their mean"
    assert shown.trouble == []


def test_a_choice_stays_where_it_can(shown, page):
    shown.open(page("explorer"))
    selects = [shown.tab.locator(f"{EXPLORER} select").nth(n) for n in range(4)]
    assert selects[0].input_value() == "KMNIST"
    selects[2].select_option("entropy of blocks of six")
    selects[0].select_option("PlantVillage")
    assert selects[2].input_value() == "entropy of blocks of six"
    selects[1].select_option("true labels, epoch by epoch")
    assert [select.input_value() for select in selects[2:]] == ["entropy of blocks of six", "epoch"]
    selects[3].select_option("test accuracy")
    selects[1].select_option("clean labels, many settings")
    assert selects[3].is_disabled()
    selects[0].select_option("Digits (8×8)")
    assert selects[1].input_value() == "true labels, epoch by epoch", "the digits have no zoo"
    assert not selects[3].is_disabled()


def test_the_explorer_by_keyboard_alone(shown, page):
    shown.open(page("explorer"))
    shown.tab.keyboard.press("Tab")
    shown.tab.keyboard.press("Tab")
    shown.tab.keyboard.press("ArrowDown")
    shown.tab.keyboard.press("ArrowDown")
    assert "true labels, epoch by epoch. 10 runs" in shown.tab.locator(".nb-said").text_content()
    for _ in range(3):
        shown.tab.keyboard.press("Tab")
    assert shown.ask("document.activeElement.className") == "nb-area"
    shown.tab.keyboard.press("ArrowRight")
    assert told(shown, EXPLORER).startswith("Epoch 1: modularity Q 0.")
    assert "in the mean of 10 runs, from 0." in told(shown, EXPLORER)
    shown.tab.keyboard.press("End")
    assert told(shown, EXPLORER).startswith("Epoch 20: ")


def test_a_dot_says_how_its_network_was_trained(shown, page, explorer):
    shown.open(page("explorer"))
    shown.tab.locator(".nb-live .nb-area").focus()
    said = told(shown, EXPLORER)
    (kmnist,) = [one for one in explorer.studies() if one.title == "KMNIST"]
    networks, _ = explorer.sound(kmnist.tables, "small", "true")
    worst = networks.sort_values("accuracy").iloc[0]
    assert f"test accuracy {worst['accuracy']:.3g}" in said, "keys walk from the left"
    assert f"training images {worst['examples']:g}" in said
    assert f"layers {worst['model'].removeprefix('mlp:')}" in said
    assert f"learning rate {worst['learning_rate']:g}" in said


@pytest.mark.parametrize("width", [320, 390, 720, 1200])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_cut_and_letters_are_large_enough(shown, page, width, theme):
    shown.open(page(theme=theme), width=width, height=2000)
    assert shown.ask("document.documentElement.scrollWidth") <= width
    sizes = shown.ask(
        "[...document.querySelectorAll('.nb-plot :is(p, span, output), .nb-said')]"
        ".filter(e => e.offsetWidth && e.textContent).map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert len(sizes) > 90
    assert min(sizes) >= 10.5
    cut = shown.ask(
        "[...document.querySelectorAll('.nb-choice')]"
        ".filter(e => e.offsetWidth && e.scrollWidth > e.clientWidth + 1).length"
    )
    assert cut == 0


def test_text_of_the_plots_follows_the_theme(shown, page):
    inks = []
    for theme in ("light", "dark"):
        shown.open(page("board", theme=theme))
        inks.append(shown.ask("getComputedStyle(document.querySelector('.nb-plot .nb-title')).color"))
        grid = shown.ask("getComputedStyle(document.querySelector('.nb-area path')).stroke")
        assert grid == inks[-1]
    assert inks[0] != inks[1]


def test_paper_gets_every_curve_and_still_plots(shown, page, explorer):
    shown.open(page())
    shown.tab.emulate_media(media="print")
    assert shown.tab.locator(f"{CURVES} .nb-one:visible").count() == 4
    assert shown.tab.locator(f"{EXPLORER} .nb-panel:visible").count() == sum(
        len(one.board) > 0 for one in explorer.studies()
    )
    assert shown.tab.locator(".nb-live:visible, select:visible, .nb-told:visible").count() == 0


def test_without_scripts_the_first_plot_is_in_sight_and_the_others_folded(browser, page, explorer):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page().as_uri())
    assert tab.locator(f"{CURVES} .nb-one").count() == 4
    assert tab.locator(f"{CURVES} > figure > .nb-one:visible").count() == 1
    assert tab.locator(f"{CURVES} details").count() == 1
    assert tab.locator("select").count() == 0
    assert tab.locator(f"{EXPLORER} .nb-panel:visible").count() == sum(len(one.board) > 0 for one in explorer.studies())
    assert tab.locator(f"{BOARD} .nb-area").get_attribute("aria-label").startswith("44 measures")
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_wrong(shown, page, theme):
    shown.open(page(theme=theme))
    shown.tab.locator(f"{CURVES} .nb-area:visible").focus()
    shown.tab.add_script_tag(path=Path(axe_core_python.__file__).with_name("axe.min.js"))
    rules = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']}"
    found = shown.ask(
        f"async () => (await axe.run('main', {rules})).violations.map(v => v.id + ' ' + v.nodes[0].html.slice(0, 200))"
    )
    assert found == []


def test_pages_are_light(figures):
    for name, most in (("curves", 250_000), ("board", 60_000), ("explorer", 400_000)):
        assert len(figures[name].encode()) < most, name
    assert sum((STATIC / name).stat().st_size for name in ("explore.js", "book.css")) < 40_000
