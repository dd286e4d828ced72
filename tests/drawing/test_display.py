from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from nbutils.drawing.display import callout, figure_style, fold, say, show, show_table
from nbutils.drawing.figures import readable_width


@pytest.fixture
def figure():
    with figure_style():
        fig, ax = plt.subplots()
        ax.plot([0, 1], [0, 1], clip_on=True)
        ax.set_title("A & B <c>")
    plt.close(fig)
    return fig


def svg_of(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])


def test_a_figure_follows_the_page_and_speaks(figure):
    html = show(figure, "Caption with `code` & <tag>.", 'Alt "text".')._repr_html_()
    svg = svg_of(html)
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == 'Alt "text".'
    assert "currentColor" in html
    assert "#010203" not in html
    assert "Caption with <code>code</code> &amp; &lt;tag&gt;." in html
    assert "<metadata" not in html
    assert "DOCTYPE" not in html


def test_a_figure_is_shown_once_and_whole():
    """Pyplot forgets it, and what was drawn without a style has room for its labels."""
    axes = plt.figure().subplots()
    axes.set_yticks([0, 1], ["a long name of a measure", "another one"])
    assert plt.get_fignums()
    show(axes.figure, "Caption.", "Alt.")
    assert not plt.get_fignums()
    assert axes.get_tightbbox().x0 > -1, "in pixels"


def test_ids_are_unique_across_figures(figure):
    import re

    found = [set(re.findall(r' id="([^"]+)"', show(figure, f"c{i}", "a")._repr_html_())) for i in range(2)]
    assert found[0]
    assert not found[0] & found[1]
    for i, ids in enumerate(found):
        used = set(re.findall(r"#([\w-]+)\)", show(figure, f"c{i}", "a")._repr_html_()))
        assert used <= ids


def test_the_same_figure_gives_the_same_text(figure):
    assert show(figure, "c", "a").text == show(figure, "c", "a").text


@pytest.mark.parametrize(("caption", "alt"), [("", "alt"), ("caption", " ")])
def test_caption_and_alt_are_required(figure, caption, alt):
    with pytest.raises(ValueError, match="needs a caption and an alt text"):
        show(figure, caption, alt)


def test_tables_have_headers_no_index_and_dashes():
    table = pd.DataFrame({"a_name": ["x<y", "z"], "value": [1.23456, np.nan], "count": [3, 4]})
    html = show_table(table, "What.", digits=2)._repr_html_()
    assert html.count('<th scope="col"') == 3
    assert ">a name</th>" in html
    assert "<th></th>" not in html
    assert "x&lt;y" in html
    assert ">1.23<" in html
    assert ">–<" in html
    assert ">3<" in html


def test_large_whole_numbers_are_grouped():
    table = pd.DataFrame({"parameters": [269_722, 9_999], "name": ["12345", "x"]})
    html = show_table(table, "Counts.").text
    assert [f">{cell}<" in html for cell in ("269,722", "9999", "12345")] == [True] * 3


def test_numbers_and_apostrophes_are_typeset_and_code_is_not():
    text = say("The network's ρ: -0.25 (-0.50 to -0.00), 95 % of 3-4; `x = -1, 'it's', 5 %`; mlp:24-12.").text
    assert text == (
        "<p>The network’s ρ: −0.25 (−0.50 to 0.00), 95\u00a0% of 3-4; <code>x = -1, 'it's', 5 %</code>; mlp:24-12.</p>"
    )
    assert "<strong>The run’s ρ, −0.1</strong>" in callout("The run's ρ, -0.1", "x").text


def test_sentences_and_boxes_escape():
    assert say("**b** `c` <i>").text == "<p><strong>b</strong> <code>c</code> &lt;i&gt;</p>"
    assert "&lt;x&gt;" in callout("<x>", "text", "refuted").text
    assert repr(say("plain")) == "plain"


def test_small_letters_are_scrolled_not_shrunk(figure):
    figure.set_figwidth(7.6)
    assert "min-width:600px" in show(figure, "Caption.", "Alt.").text
    narrow, wide = (show(figure, "Caption.", "Alt.", min_width=width).text for width in (300, 5000))
    assert f"min-width:{readable_width(figure):.0f}px" in narrow, "no letter below nine pixels"
    assert 300 < readable_width(figure) < 600
    figure.axes[0].text(0.5, 0.5, "small", fontsize=7.6 * 72 * 9 / 650)
    assert "min-width:650px" in show(figure, "Caption.", "Alt.").text
    assert f"min-width:{figure.get_size_inches()[0] * 90:.0f}px" in wide, "never wider than the figure is"
    for axes in figure.axes:
        axes.set_axis_off()
    assert "min-width:0px" in show(figure, "Caption.", "Alt.").text, "a picture without letters fits any screen"


def test_folded_parts_open_with_a_click():
    table = show_table(pd.DataFrame({"a": [1]}), "Caption.")
    html = fold("Two <parts>", say("First."), table)
    tree = ElementTree.fromstring(html._repr_html_())
    assert (tree.tag, tree.get("open")) == ("details", None)
    assert [child.tag for child in tree] == ["summary", "p", "figure"]
    assert tree[0].text == "Two <parts>"
    assert repr(html).startswith("Two <parts>\nFirst.")
    assert '<details class="nb-fold" open>' in fold("Seen", say("x"), opened=True).text
    with pytest.raises(ValueError, match="summary must be a line that says what is folded away"):
        fold(" ", table)


def test_a_link_in_a_table_stays_whole_where_a_long_name_may_break():
    table = pd.DataFrame({"verdict": ["[supported](../mnist/h1_communities.html), row_of_words"]})
    text = show_table(table, "Verdicts.").text
    assert '<a href="../mnist/h1_communities.html">supported</a>' in text
    assert "row_<wbr>of_<wbr>words" in text
