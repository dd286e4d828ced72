"""How much there is to read: the whole book, as `make book` makes it, without its API has at most 60,000 words."""

from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

MOST = 60_000
# Code, tables, drawings and the bibliography: looked up or looked at, not read.
NOT_READ = (
    "div.cell_input, div.highlight, summary:has(p.collapsed), table, svg, script, style, div.nb-plot, dl.citation"
)


def reading_words(page: str) -> int:
    """Words of headings, prose, captions and printed lines on a page."""
    article = BeautifulSoup(page, "html.parser").find("article")
    if article is None:
        return 0
    for part in article.select(f"{NOT_READ}, div.citation-list, .prev-next-area"):
        part.decompose()
    return len(article.get_text(" ").split())


def test_what_is_read_is_counted():
    page = """<nav>Not this</nav><article><h1>Two words</h1><p>and three more</p><table><tr><td>7</td></tr></table>
    <details><summary><p class="collapsed">Show the code</p></summary><div class="cell_input">x = 1</div></details>
    <details><summary>A fold</summary>inside</details><svg><text>axis</text></svg></article>"""
    assert reading_words(page) == 2 + 3 + 3
    assert reading_words("<p>no page</p>") == 0


@pytest.mark.release
@pytest.mark.parametrize("book", ["whole"], indirect=True)
def test_the_book_is_not_too_long(book):
    pages = [page for page in (book.built / "html/book").rglob("*.html") if page.parent.name != "api"]
    counts = {f"{page.parent.name}/{page.stem}": reading_words(page.read_text("utf-8")) for page in pages}
    assert len(counts) > 60
    assert sum(counts.values()) <= MOST, sorted(counts.items(), key=lambda one: -one[1])[:10]
