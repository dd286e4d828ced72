"""The pictures one can touch, in a real browser: slider, play, keys, theme, phone, paper, and no script at all.

Without a Chromium these tests are skipped, see `test_browser.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import axe_core_python
import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "book/_static"
NAMES = ("hero", "communities", "network", "density", "dying", "nulls", "sessions")
PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Pictures</title>
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="{static}/book.css"><script src="{static}/hero.js"></script>
<style>* {{ box-sizing: border-box }} body {{ margin: 16px; max-width: 688px }} figure {{ margin: 0 }}
html[data-theme=dark] body {{ background: #121212; color: #ced6dd }}</style></head>
<body class="bd-content"><main><h1>Pictures</h1>{body}</main></body></html>
"""
DOTS = "[...document.querySelectorAll('#picture-{} .nb-live circle')]"
pytestmark = pytest.mark.slow(5)


@pytest.fixture(scope="module")
def pictures() -> Iterator:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "book/_ext")
        yield import_module("pictures")


@pytest.fixture
def page(pictures, tmp_path) -> Callable[..., Path]:
    """A page with pictures, the style and the script of the book."""

    def write(*names: str, theme: str = "light") -> Path:
        file = tmp_path / f"{theme}.html"
        body = "".join(map(pictures.html_of, names))
        file.write_text(PAGE.format(theme=theme, static=STATIC.as_uri(), body=body), "utf-8")
        return file

    return write


def told(shown, name: str = "hero") -> str:
    return shown.ask(f"document.querySelector('#picture-{name} output').textContent")


def test_the_slider_shows_every_epoch(shown, page, pictures):
    shown.open(page("hero"))
    for n, epoch in enumerate(pictures.measured()["epochs"]):
        shown.ask(f"(r => {{ r.value = {n}; r.dispatchEvent(new Event('input')) }})(document.querySelector('input'))")
        first = f"epoch {n} of 10" if n else "untrained"
        assert told(shown) == f"{first}, Q {epoch['modularity']:.2f}, test accuracy {epoch['accuracy']:.3f}"
        kinds = shown.ask(f"{DOTS.format('hero')}.map(dot => dot.className.baseVal)")
        assert kinds == [f"neuron tone-{c}" if c >= 0 else "neuron tone-none" for c in epoch["colours"]]
        assert shown.ask("[...document.querySelectorAll('.epoch')].findIndex(e => e.matches('.on'))") == n
        assert shown.ask("document.querySelectorAll('.epoch.on').length") == 1
        cells = shown.ask("[...document.querySelectorAll('td.shown')].map(cell => cell.textContent)")
        keys = ("modularity", "classes", "chance")
        assert cells == [f"{epoch['accuracy']:.3f}", *(f"{epoch[key]:.2f}" for key in keys)]
    drawn = shown.ask("[...document.querySelectorAll('.epoch')].map(e => e.outerHTML.split('M').length - 1)")
    assert drawn == [900] * 11
    assert shown.trouble == []


def test_play_goes_through_all_epochs_and_pauses(shown, page):
    shown.open(page("hero"))
    assert told(shown).startswith("epoch 10 of 10"), "the last one is shown at first"
    shown.ask("window.setInterval = (original => (call, wait) => original(call, wait / 20))(window.setInterval)")
    shown.ask(
        "window.seen = []; new MutationObserver(() => seen.push(document.querySelector('output').textContent))"
        ".observe(document.querySelector('output'), {childList: true}); 1"
    )
    label = shown.ask("(b => { b.click(); return b.textContent })(document.querySelector('button'))")
    assert label.endswith("Pause")
    shown.tab.wait_for_function("document.querySelector('button').textContent.endsWith('Play')")
    assert told(shown).startswith("epoch 10 of 10")
    seen = [int(n) for n in re.findall(r"epoch (\d+) of", " ".join(shown.ask("seen")))]
    assert seen == sorted(seen)
    assert seen[-1] == 10
    shown.ask("document.querySelector('button').click(); document.querySelector('button').click()")
    paused = told(shown)
    shown.ask("new Promise(done => setTimeout(done, 300))")
    assert told(shown) == paused
    assert paused.startswith("untrained")


def test_keys(shown, page):
    shown.open(page("hero", "density"), height=300)
    shown.ask("document.querySelector('#picture-hero .nb-live svg').focus({preventScroll: true})")
    shown.tab.keyboard.press("ArrowLeft")
    shown.tab.keyboard.press("ArrowLeft")
    assert told(shown).startswith("epoch 8 of 10")
    shown.tab.keyboard.press("ArrowRight")
    assert told(shown).startswith("epoch 9 of 10")
    shown.tab.keyboard.press("Space")
    assert shown.ask("document.querySelector('button').textContent").endswith("Pause")
    shown.tab.keyboard.press("ArrowLeft")
    assert shown.ask("document.querySelector('button').textContent").endswith("Play"), "a step pauses"
    assert told(shown).startswith("epoch 8 of 10")
    assert shown.ask("scrollY") == 0, "keys of the picture do not move the page"
    shown.tab.keyboard.press("Tab")
    assert shown.ask("document.activeElement.tagName") == "BUTTON"
    shown.tab.keyboard.press("Tab")
    assert shown.ask("document.activeElement.getAttribute('aria-label')") == "Epoch"
    shown.tab.keyboard.press("ArrowRight")
    assert told(shown).startswith("epoch 9 of 10"), "one step, not two"
    assert shown.ask("document.activeElement.getAttribute('aria-valuetext')") == "epoch 9 of 10"
    shown.ask("document.querySelector('#picture-density input').focus()")
    shown.tab.keyboard.press("ArrowRight")
    assert told(shown, "density").startswith("6 % of pairs")


def test_every_density(shown, page, pictures):
    shown.open(page("density"))
    for found in pictures.measured()["sample"]["densities"]:
        shown.ask(
            "(r => "
            f"{{ r.value = {found['percent']}; r.dispatchEvent(new Event('input')) }})(document.querySelector('input'))"
        )
        words = f"{found['percent']} % of pairs, {found['edges']} edges, {found['communities']} communities, Q "
        start, _, q = told(shown, "density").rpartition(" ")
        assert f"{start} " == words
        assert abs(float(q) - found["modularity"]) < 0.0051, "computed by the script, not read"
        assert shown.ask("document.querySelectorAll('.nb-live .strong').length") == found["edges"]
    assert shown.trouble == []


def test_colours_follow_the_theme(shown, page):
    fills = []
    for theme in ("light", "dark"):
        shown.open(page("hero", theme=theme))
        shown.ask("new Promise(done => setTimeout(done, 50))")
        fills.append(
            shown.ask("getComputedStyle(document.querySelector('.nb-live .tone-0')).getPropertyValue('--tone').trim()")
        )
    shown.ask("document.documentElement.dataset.theme = 'light'")
    fills.append(
        shown.ask("getComputedStyle(document.querySelector('.nb-live .tone-0')).getPropertyValue('--tone').trim()")
    )
    style = (STATIC / "book.css").read_text("utf-8")
    light, dark = re.findall(r"--nb-c0: (#\w+)", style)
    assert fills == [light, dark, light]


@pytest.mark.parametrize(("wish", "seconds"), [("reduce", "0s"), ("no-preference", "0.6s")])
def test_motion_is_left_out_where_it_is_not_wanted(shown, page, wish, seconds):
    shown.open(page("hero"), reduced_motion=wish)
    for kind in (".epoch", ".neuron", ".name"):
        found = shown.ask(f"getComputedStyle(document.querySelector('.nb-live {kind}')).transitionDuration")
        assert found == seconds, kind


@pytest.mark.parametrize("width", [390, 720])
def test_letters_are_large_enough_and_nothing_is_cut(shown, page, width):
    shown.open(page(*NAMES), width=width, height=4000)
    texts = shown.ask(
        "[...document.querySelectorAll('svg text')].map(t => {"
        "const b = t.getBoundingClientRect(), s = t.ownerSVGElement.getBoundingClientRect();"
        "const size = parseFloat(getComputedStyle(t).fontSize) * (t.getScreenCTM() || {a: 0}).a;"
        "return [t.textContent, b.width, size, b.left >= s.left - 1 && b.right <= s.right + 1 && b.bottom <= "
        "s.bottom + 2]"
        "}).filter(t => t[1] > 0)"
    )
    assert len(texts) > 200
    assert [(text, size) for text, _, size, _ in texts if size < 9] == []
    assert [text for text, _, _, inside in texts if not inside] == []
    assert shown.ask("document.documentElement.scrollWidth") <= width


def test_paper_gets_the_still_pictures(shown, page):
    panels = "[...document.querySelectorAll('#picture-hero > .nb-panels > svg')]"
    seen = f"{panels}.map(s => s.getBoundingClientRect().width > 99)"
    live = "document.querySelector('.nb-live').getBoundingClientRect().width"
    shown.open(page("hero"))
    assert shown.ask(seen) == [False, False]
    shown.tab.emulate_media(media="print")
    assert shown.ask(seen) == [True, True]
    assert shown.ask(live) == 0


@pytest.mark.parametrize("width", [390, 720])
def test_letters_of_the_still_pictures_are_large_enough(shown, page, width):
    shown.open(page("hero", "density"), width=width, height=4000)
    shown.tab.emulate_media(media="print")
    letters = "[...document.querySelectorAll('.nb-panels text')]"
    sizes = shown.ask(f"{letters}.map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)")
    assert len(sizes) == 2 + 7 + 3 * 2
    assert min(sizes) >= 9


def test_without_scripts_the_still_pictures_stay(browser, page):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page("hero", "density").as_uri())
    assert tab.locator(".nb-live").count() == 0
    assert tab.locator(".nb-panels > svg:visible").count() == 2 + 3
    assert tab.locator(".nb-panels").first.get_attribute("aria-label").startswith("448 neurons")
    assert tab.locator("#picture-hero td.still:visible").count() == 2 * 4
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_wrong(shown, page, theme):
    shown.open(page(*NAMES, theme=theme))
    shown.tab.add_script_tag(path=Path(axe_core_python.__file__).with_name("axe.min.js"))
    rules = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']}"
    found = shown.ask(
        f"async () => (await axe.run('main', {rules})).violations.map(v => v.id + ' ' + v.nodes[0].html.slice(0, 200))"
    )
    assert found == []
