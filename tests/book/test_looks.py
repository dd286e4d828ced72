"""What a picky reader would stumble over, on every page of a built book: how numbers are printed, and cut letters."""

from __future__ import annotations

import html
import re
from pathlib import Path

import nbformat

import nbutils as nb
from nbutils.sweeps import report

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


def test_a_page_by_itself_fits_on_a_phone_whatever_its_names(shown, tmp_path):
    name = "layers.of_a_module_with_a_name_that_nobody_can_say_in_one_breath.0"
    cells = [
        nbformat.v4.new_markdown_cell(f"# {name}\n\n> **At a glance.** {name}, `{name}`\n\n- `{name}`"),
        nbformat.v4.new_code_cell("", outputs=[shown_by(nb.callout(name, f"Found in {name}."), "finding")]),
    ]
    cells[1].metadata["tags"] = ["finding"]
    file = tmp_path / "page.html"
    file.write_text(report._html(nbformat.writes(nbformat.v4.new_notebook(cells=cells)), name), "utf-8")
    shown.open(file, width=PHONE["width"])
    assert shown.ask("document.scrollingElement.scrollWidth") <= PHONE["width"]
    text = shown.ask("document.body.innerText")
    assert 0 < text.find("Found in") < text.find("At a glance"), "the finding is right below the title"


def shown_by(result, text: str) -> nbformat.NotebookNode:
    """The output of a cell that shows a result."""
    return nbformat.v4.new_output("display_data", data={"text/html": result._repr_html_(), "text/plain": text})
