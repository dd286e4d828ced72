from __future__ import annotations

import csv
import io
import json
import re
from html import unescape
from html.parser import HTMLParser

import pytest

from nbutils.drawing.points import Axis, Plot, Point, points_csv, show_points

X, Y = Axis("epoch", 0, 4, (0, 2, 4)), Axis("Q", -1, 1, (-1, 0, 1))
POINTS = (
    Point(1, 0.5, "A: 0.50", "#111111", 0.25, 0.75),
    Point(3, -0.5, "B: −0.50 </script> <b>", "#222222"),
    Point(4, 0, "C: 0.00", "#111111"),
)


@pytest.fixture
def plot() -> Plot:
    return Plot(POINTS, X, Y, "Three points, Q from −0.5 to 0.5.")


class Balance(HTMLParser):
    """Elements that are opened and not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        self.wrong = self.wrong or self.open.pop() != tag


def told(html: str) -> list:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', html)[1])


def test_dots_and_intervals_lie_where_their_values_are(plot):
    html = plot.html
    assert re.findall(r'd="([^"]+)"[^>]*stroke="#111111" stroke-width="7"', html) == ["M250 250h.1M1000 500h.1"]
    assert re.findall(r'd="([^"]+)"[^>]*stroke="#222222" stroke-width="7"', html) == ["M750 750h.1"]
    assert re.findall(r'd="([^"]+)"[^>]*stroke="#111111" stroke-width="2"', html) == ["M250 375V125"]
    assert 'd="M0 1000h1000M0 500h1000M0 0h1000M0 0v1000M500 0v1000M1000 0v1000"' in html, "the grid"
    assert html.count('d="M0 500h1000"') == 1, "zero lies within"


def test_every_point_says_what_it_is(plot):
    assert told(plot.html) == [[250, 250, "A: 0.50"], [750, 750, "B: −0.50 </script> <b>"], [1000, 500, "C: 0.00"]]
    assert "<script" not in plot.still
    assert plot._repr_html_() == plot.html


def test_ticks_names_and_legend(plot):
    full = Plot(POINTS, X, Y, plot.alt, ((1, 0.5, "**A**"), (4, 0, "C")), legend=(("#111111", "first"),))
    html = full.html
    assert [float(top) for top in re.findall(r"right:0;top:([\d.]+)%", html)] == [100, 50, 0]
    assert re.findall(r'<span style="position:absolute;left:([\d.]+)%;transform[^>]*>([^<]+)', html) == [
        ("0", "0"), ("50", "2"), ("100", "4"),
    ]  # fmt: skip
    assert "left:25%;top:25%;transform:translate(0,-50%)" in html
    assert "left:100%;top:50%;transform:translate(-100%,-50%)" in html, "to the left of its place, within the plot"
    assert "<strong>A</strong>" in html
    assert "background:#111111" in html
    assert 'data-nearest="xy"' in html
    assert 'data-nearest="x"' in Plot(POINTS, Axis("all", 0, 4), Y, "Points.").html


def test_rows_hold_marks_at_the_points_that_belong_to_them():
    points = (Point(0, 0, "a", "#111111", rows=(1,)), Point(4, 0, "b", "#222222", rows=(1, 2)))
    html = Plot(points, X, Y, "Two points.", rows=(("graph", True), ("phi", False), ("PPMI", False))).html
    rows = re.findall(r'data-row="(\d)"[^>]*>([^<]+)</p><div class="nb-marks"[^>]*>(.*?)</div>', html)
    assert [(number, name) for number, name, _ in rows] == [("1", "phi"), ("2", "PPMI")]
    marks = [re.findall(r'd="([^"]+)" fill="none" stroke="(#\d+)"', drawn) for _, _, drawn in rows]
    assert marks == [[("M0 0v1000", "#111111"), ("M1000 0v1000", "#222222")], [("M1000 0v1000", "#222222")]]
    assert told(html) == [[0, 500, "a", [1]], [1000, 500, "b", [1, 2]]]
    assert '<p class="nb-head"' in html


def test_a_figure_of_several_plots_folds_all_but_the_first(plot):
    shown = show_points({("H2", "MNIST"): plot, ("H3", "a<b"): plot}, "Caption `x`.", ("hypothesis", "data set"))
    html = shown.text
    assert not Balance(html).open
    assert not Balance(html).wrong
    assert json.loads(unescape(re.search(r'data-choices="([^"]+)"', html)[1])) == ["hypothesis", "data set"]
    names = [json.loads(unescape(found)) for found in re.findall(r'data-name="([^"]+)"', html)]
    assert names == [["H2", "MNIST"], ["H3", "a<b"]]
    before, after = html.split("<details")
    assert before.count("nb-plot") == after.count("nb-plot") == 1
    assert "<code>x</code>" in html
    assert repr(shown) == "[figure: Caption `x`.]"
    assert "<details" not in show_points({(): plot}, "One.").text


def test_values_can_be_saved(plot):
    rows = list(csv.reader(io.StringIO(points_csv({("H2",): plot}, ["hypothesis"]))))
    assert rows[:3] == [
        ["hypothesis", "x", "y", "low", "high", "text"],
        ["H2", "1", "0.5", "0.25", "0.75", "A: 0.50"],
        ["H2", "3", "-0.5", "nan", "nan", "B: −0.50 </script> <b>"],
    ]
    assert 'download="a-figure.csv"' in show_points({(): plot}, "A figure.").text


def test_what_cannot_be_read_is_refused(plot):
    with pytest.raises(ValueError, match=r"a plot needs points and an alt text, received 0 points and 'x'"):
        Plot((), X, Y, "x")
    with pytest.raises(ValueError, match="a plot needs points and an alt text, received 3 points and ' '"):
        Plot(POINTS, X, Y, " ")
    with pytest.raises(ValueError, match="a figure needs plots and a caption, received 0 plots"):
        show_points({}, "x")
    with pytest.raises(ValueError, match="a figure needs plots and a caption, received 1 plots and ''"):
        show_points({(): plot}, "")
    with pytest.raises(ValueError, match=r"choices must name the parts of .*, received \['hypothesis'\]"):
        show_points({("H2", "MNIST"): plot}, "x", ["hypothesis"])
