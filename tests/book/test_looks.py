"""What a picky reader would stumble over, on every page of a built book: how numbers are printed, and cut letters."""

from __future__ import annotations

import html
import re
from pathlib import Path

PHONE = {"width": 375, "height": 740}
# What no page may print outside of code: why -> pattern.
STUMBLES = {
    "a hyphen for a minus sign": r"(?<![\w.)\]/:=+–-])-\d",
    "a zero with a sign": r"[-−]0(?:\.0+)?(?![\d.,])",
    "an interval without ends": r"\(–\s*to\s*–\)",
    "a value that is missing": r"\bnan\b",
    "a plural of one": r"(?<![\w.,])1 (?:networks|runs|seeds|epochs)\b",
    "a line that ends before %": r"\d %",
    "a condition as in code": r"\bmixed:0",
    "a formula of code": r"Q_null",
}
LETTERS = """
[...document.querySelectorAll('article .nb-narrow svg, article .nb-panels svg')].flatMap(svg => {
  const edge = svg.getBoundingClientRect();
  return edge.width ? [...svg.querySelectorAll('text')].filter(text => {
    const own = text.getBoundingClientRect();
    return own.width && (own.left < edge.left - 3 || own.right > edge.right + 3);
  }).map(text => text.textContent) : [];
})
"""


def printed(page: Path) -> str:
    """The words of a page, without code, formulas and what is hidden in attributes."""
    article = re.search(r'<article class="bd-article">(.*?)</article>', page.read_text("utf-8"), re.DOTALL)
    text = article[1] if article else ""
    quiet = r'<(pre|code|script|style|svg|output)\b.*?</\1>|<(?:span|div) class="math.*?</(?:span|div)>'
    return html.unescape(re.sub(r"<[^>]+>", "\n", re.sub(quiet, "·", text, flags=re.DOTALL)))


def pages_of(book) -> list[Path]:
    """All pages but the API."""
    every = (book.built / "html/book").rglob("*.html")
    return sorted(path for path in every if path.parent.name != "api" and path.stem != "api")


def test_numbers_and_names_are_printed_for_readers(book):
    found = {
        f"{page.parent.name}/{page.stem}: {why}": text[max(0, hit.start() - 30) : hit.end() + 30]
        for page in pages_of(book)
        if (text := printed(page))
        for why, pattern in STUMBLES.items()
        for hit in re.finditer(pattern, text)
    }
    assert found == {}


def test_no_letter_of_a_figure_is_cut_on_a_phone(book, browser):
    context = browser.new_context(viewport=PHONE, java_script_enabled=False)  # figures are cut by style sheets alone
    page, cut = context.new_page(), {}
    drawn = [path for path in pages_of(book) if re.search('class="[^"]*nb-(narrow|panels)', path.read_text("utf-8"))]
    assert drawn
    for path in drawn:
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('article details').forEach(one => { one.open = true })")
        cut |= {path.stem: letters} if (letters := page.evaluate(LETTERS)) else {}
    context.close()
    assert cut == {}
