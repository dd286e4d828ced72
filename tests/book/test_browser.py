"""The built book as readers meet it, in a real browser: by mouse and keyboard, light and dark, on a phone.

Without a Chromium (`python -m playwright install chromium`, or one of the system) these tests are skipped.
"""

from __future__ import annotations

import csv
import io
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import axe_core_python
import pandas as pd
import pytest
from playwright.sync_api import Page

DESK, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 740}
HEAVIEST = 1_500_000  # bytes of a page, besides scripts that pages share
AXE = Path(axe_core_python.__file__).with_name("axe.min.js")
VIOLATIONS = """
async (rules) => (await axe.run("#main-content", rules)).violations.map(v => v.id + " " + v.nodes[0].html)
"""
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}  # all that a theme can change
LEADERBOARD = "book/pages/summary/leaderboard.html"
EXPLORE = "book/explore.html"


class Quiet(SimpleHTTPRequestHandler):
    """A server of files that writes no log."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(book) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=book.built / "html")) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def page(browser, address) -> Iterator[Page]:
    context = browser.new_context(viewport=DESK, base_url=address)
    yield context.new_page()
    context.close()


FEW = ("intro", "glossary", "h2_modularity", "explore")  # of a small book, for what another test has seen


def some_pages(book, few: bool = False) -> list[str]:
    """All pages of a whole book, and one of each kind of a small one, or even fewer."""
    html = book.built / "html"
    every = sorted(str(path.relative_to(html)) for path in (html / "book").rglob("*.html"))
    if not book.small:
        return every
    wanted = ("intro", "glossary", "graph", "leaderboard", "h2_modularity", "explore")
    return [name for name in every if Path(name).stem in (FEW if few else wanted) and "/mnist/" not in name]


@pytest.mark.parametrize(("scheme", "rules"), [("light", {}), ("dark", COLOURS)], ids=["light", "dark"])
def test_nothing_is_asked_of_the_network_nothing_fails_and_axe_finds_nothing(book, browser, address, scheme, rules):
    context = browser.new_context(viewport=DESK, base_url=address, color_scheme=scheme)
    page, said, asked = context.new_page(), [], []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    found = {}
    for name in some_pages(book, few=scheme == "dark"):
        page.goto(name)
        page.add_script_tag(path=AXE)
        broken = page.evaluate(VIOLATIONS, {**rules, "resultTypes": ["violations"]})
        found |= {name: broken} if broken else {}
    assert found == {}
    assert said == []
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
    context.close()


def test_no_page_is_too_heavy_and_none_scrolls_sideways_on_a_phone(book, browser, address):
    context = browser.new_context(viewport=PHONE, base_url=address)
    page = context.new_page()
    for name in some_pages(book):
        assert (book.built / "html" / name).stat().st_size < HEAVIEST, name
        page.goto(name)
        width = page.evaluate("document.scrollingElement.scrollWidth")
        assert width <= PHONE["width"], f"{name} is {width} pixels wide"
    context.close()


def test_a_word_says_what_it_means_by_mouse_and_by_keyboard(page):
    page.goto("book/methods/graph.html")
    word, tip = page.locator("a.nb-term").first, page.locator("#nb-tip")
    assert tip.is_hidden()
    word.hover()
    assert tip.is_visible()
    meaning = tip.inner_text()
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    word.focus()
    assert tip.inner_text() == meaning
    assert word.get_attribute("aria-describedby") == "nb-tip"
    anchor = word.get_attribute("href").partition("#")[2]
    word.click()
    assert meaning[:40] in " ".join(page.locator(f"dt#{anchor} + dd").inner_text().split())


def test_the_search_finds_meanings_first(page):
    page.goto("search.html?q=modularity")
    page.wait_for_selector("#search-results li a")
    assert "glossary" in page.locator("#search-results li a").first.get_attribute("href")


SOUNDS = """
() => Promise.all([...document.querySelectorAll("audio")].map(async one => {
  one.muted = true;
  await one.play();
  one.pause();
  return one.duration;
}))
"""


def test_sounds_can_be_played(page):
    page.goto("book/pages/summary/motifs.html")
    lengths = page.evaluate(SOUNDS)
    assert lengths
    assert all(0.5 < seconds < 30 for seconds in lengths), lengths


def test_a_table_fades_where_it_goes_on(page):
    page.set_viewport_size(PHONE)
    page.goto("book/intro.html")
    table = page.locator(".pst-scrollable-table-container").first
    page.wait_for_function("document.querySelector('.pst-scrollable-table-container').matches('.nb-more')")
    table.evaluate("one => { one.scrollLeft = one.scrollWidth; }")
    page.wait_for_function("!document.querySelector('.pst-scrollable-table-container').matches('.nb-more')")


def test_the_theme_is_chosen_by_a_button_and_kept(page):
    page.goto("book/intro.html")
    button, theme = page.locator("button.theme-switch-button:visible").first, "document.documentElement.dataset.theme"
    seen = set()
    for _ in range(3):
        button.click()
        seen.add(page.evaluate(theme))
    assert seen == {"light", "dark"}
    kept = page.evaluate(theme)
    page.goto("book/glossary.html")
    assert page.evaluate(theme) == kept


def test_figures_stand_in_one_column_on_a_phone_with_letters_that_can_be_read(browser, address):
    context = browser.new_context(viewport=PHONE, base_url=address)
    page = context.new_page()
    page.goto(LEADERBOARD)
    wide, narrow = page.locator(".nb-wide"), page.locator(".nb-narrow")
    assert wide.count() == narrow.count() > 0
    assert not any(figure.is_visible() for figure in wide.all())
    assert all(figure.is_visible() for figure in narrow.all())
    heights = page.evaluate(
        "[...document.querySelectorAll('.nb-narrow svg, .nb-figure > div:not(.nb-wide) svg')]"
        ".flatMap(svg => { const scale = svg.getScreenCTM().a;"
        " return [...svg.querySelectorAll('text')].map(t => parseFloat(getComputedStyle(t).fontSize) * scale) })"
    )
    assert min(heights) >= 9
    page.set_viewport_size(DESK)
    assert wide.first.is_visible()
    assert not narrow.first.is_visible()
    context.close()


def test_a_figure_gives_its_values(page):
    page.goto(LEADERBOARD)
    with page.expect_download() as download:
        page.locator("figure:not(.nb-points) a.nb-data").first.click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text("utf-8"))))
    assert download.value.suggested_filename.endswith(".csv")
    assert len(rows) > 20
    assert set(rows[0]) == {"panel", "kind", "series", "x", "y"}
    with page.expect_download() as download:
        page.locator(".nb-points a.nb-data").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text("utf-8"))))
    assert list(rows[0]) == ["x", "y", "low", "high", "text"]
    assert rows[0]["text"].startswith("linear probe, last layer: place 1 of ")


def test_what_the_explorer_draws_can_be_saved(page):
    """Networks of a zoo with their settings, or runs over their epochs, as they are chosen."""
    page.goto(EXPLORE)
    networks, saved = page.locator(".nb-controls select").nth(1), []
    for chosen in ("clean labels, many settings", "true labels, epoch by epoch"):
        networks.select_option(chosen)
        with page.expect_download() as download:
            page.locator(".nb-explorer a.nb-data").click()
        saved.append(pd.read_csv(download.value.path()))
    zoo, runs = saved
    assert list(zoo)[:4] == ["network", "test accuracy", "modularity Q", "training images"]
    assert zoo["test accuracy"].between(0, 1).all()
    assert list(runs) == ["run", "epoch", "modularity Q"]
    assert f"{runs['run'].max()} runs" in page.locator(".nb-said").text_content()
    assert (runs.groupby("run")["epoch"].max() == runs["epoch"].max()).all()


def test_a_table_is_sorted_by_keyboard(page):
    page.goto(LEADERBOARD)
    table = page.locator("table.nb-sortable").first
    header = table.locator("th").nth(1)
    column = "rows => rows.map(row => parseFloat(row.cells[1].textContent.replace('−', '-'))).filter(x => !isNaN(x))"
    header.focus()
    page.keyboard.press("Enter")
    falling = table.locator("tbody tr").evaluate_all(column)
    page.keyboard.press("Enter")
    assert falling == sorted(falling, reverse=True)
    assert table.locator("tbody tr").evaluate_all(column) == sorted(falling)
    assert header.get_attribute("aria-sort") == "ascending"


def test_what_is_folded_is_printed(page):
    page.goto(LEADERBOARD)
    folded = page.locator("details:not([open])")
    before = folded.count()
    assert before > 0
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert folded.count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert folded.count() == before
