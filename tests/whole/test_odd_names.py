"""Names of classes, data sets and parameters are shown letter by letter: in figures, tables and Markdown."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from nbutils.data.datasets import Dataset, load_dataset
from nbutils.data.datasheets import Datasheet, read_datasheet, readable, simple_accuracies
from nbutils.drawing.display import callout, in_figure, in_markdown, say, show, show_table
from nbutils.pages.alluvial import alluvial
from nbutils.pages.evolution import short_name
from nbutils.pages.figures import forest
from nbutils.pages.portraits import community_classes, sample_images
from nbutils.study.hypotheses import Evidence
from nbutils.sweeps.sweep_figures import all_metrics, heat_maps, marginals, time_spent

NAMES = (
    "$5 and $10",
    "$x$",
    r"\frac{1}{2}",
    "a^b_c $",
    r"$\frac",
    "<b>&amp;",
    "p|q `r` **s**",
    "[t](u)",
    "100%",
    "é 日本",
)


@pytest.fixture
def data() -> Dataset:
    """Real digits under odd names."""
    return replace(load_dataset("digits"), classes=NAMES)


def sheet(data: Dataset) -> Datasheet:
    return replace(read_datasheet("digits"), data=data, classes=data.classes)


def texts(figure) -> list[str]:
    """All texts of a figure as a page shows them; it is really drawn and saved."""
    html = show(figure, "Caption.", "Alt.").text
    svg = ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])
    return ["".join(node.itertext()).strip() for node in svg.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.filterwarnings("ignore:Glyph")
def test_figures_of_classes(data):
    shown = [readable(name) for name in NAMES]
    fired = np.random.default_rng(0).random((100, 6)) < 0.5
    profile = community_classes(fired, np.arange(100) % 10, np.array([0, 0, 0, 1, 1, 1]), NAMES)
    assert set(shown) <= set(texts(profile))
    for figure in (sample_images(data), sample_images(sheet(data).means(), 1)):
        assert {"$5 and $10", "$x$", r"\frac{1}{2}", "<b>&amp;"} <= set(texts(figure))


def test_short_names_too(data):
    short = replace(data, classes=("$5", "$6", "$x$", *"0123456"))
    assert {"$5", "$6", "$x$"} <= set(texts(sample_images(short)))


@pytest.mark.filterwarnings("ignore:Glyph")
def test_figures_of_communities():
    figure = alluvial(np.array([[0, 0, 1, 1], [0, 0, 1, 1]]), [0, 1], names={0: NAMES[0], 1: NAMES[4]})
    assert {"$5 and $10 (2)", r"$\frac (2)"} <= set(texts(figure))


def test_figures_of_data_sets_and_sweeps():
    names = ["folder:/$a$", "folder:/$b$"]
    assert {"Folder $a$", "Folder $b$"} <= set(
        texts(forest([Evidence(name, "true", "H1", "T", "q", 0.5, 0.1, 0.9) for name in names]))
    )
    points = [(name, size, seed) for name in ("$a and $b", "$x$") for size in ("1", "$2$") for seed in (0, 1)]
    table = pd.DataFrame(points, columns=["$name$", "size", "seed"])
    table = table.assign(metric="cost in $ or $$", value=np.arange(8.0), text="", low=np.nan, high=np.nan, unit="")
    table = table.assign(status="done", reason="", seconds=1.0, commit="c", time="t", versions="{}")
    for place, (column, value) in enumerate({"run": range(8), "sweep": "s", "notebook": "n"}.items()):
        table.insert(place, column, value)
    for figure in (heat_maps(table), marginals(table), all_metrics(table, "$name$"), time_spent(table)):
        assert {"$a and $b", "$x$", "$name$"} <= set(texts(figure))


class Cells(HTMLParser):
    """Texts of the cells of a table as a browser shows them, and the formulas that a page would find in them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.pieces: list[str] = []
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.found.append("")

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)
        if self.found:
            self.found[-1] += data


def test_tables_show_names_letter_by_letter():
    names = [*NAMES, "two\nlines", "<script>alert(1)</script>", r"\(x\)", "$$x$$"]
    cells = Cells(show_table(pd.DataFrame({"class": names, "n": 1}), "Caption.", names=["class"]).text)
    assert cells.found[2::2] == names
    assert set(cells.tags) <= {
        "figure",
        "figcaption",
        "div",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "span",
        "wbr",
    }
    # MathJax looks for formulas within one element: no piece of text may hold both ends.
    assert not [piece for piece in cells.pieces if piece.count("$") > 1 or (piece.count("\\") and len(piece) > 1)]


def test_prose_with_dollars_is_no_formula():
    for html in (
        say("costs $5 or $10").text,
        callout("$5 or $10", "x").text,
        show_table(pd.DataFrame(), "$5, $10").text,
    ):
        cells = Cells(html)
        assert "$5" in "".join(cells.pieces)
        assert max(piece.count("$") for piece in cells.pieces) == 1


def test_the_hardest_class_has_its_name(data):
    table = simple_accuracies(data, 500)
    html = show_table(table, "Caption.", names=["hardest class"]).text
    column = list(table.columns).index("hardest class")
    assert Cells(html).found[column :: len(table.columns)][1:] == table["hardest class"].tolist()


@pytest.mark.parametrize("name", [*NAMES, "two\nlines", "a\\", "~~x~~", "# x", "_x_", "folder:/my letters"])
def test_markdown_cells_hold_one_name(name):
    """As GitHub and the book render a table."""
    text = f"| data set | verdict |\n| --- | --- |\n| {in_markdown(name)} | good |\n"
    html = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    cells = Cells(html)
    assert [cell.strip() for cell in cells.found] == ["data set", "verdict", " ".join(name.split()), "good"]
    assert set(cells.tags) == {"table", "thead", "tbody", "tr", "th", "td"}


def test_names_that_need_nothing_stay_as_they_are():
    for name in ("digits", "mnist-5k", "plantvillage@32"):
        assert in_markdown(name) == in_figure(name) == name


def test_signs_without_a_letter_become_spaces():
    assert readable("a\nb\x07c") == "a b c"
    assert short_name("a\n_b") == "a b"
