"""How results look on a page: figures that follow light and dark, tables, sentences with computed numbers.

Figures become inline SVG whose text takes the page's own colour, with a caption and a text for screen readers.
"""

from __future__ import annotations

import base64
import gzip
import io
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from hashlib import sha256
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbutils.drawing.figures import figure_csv, is_lettered, is_wide, readable_width, restacked
from nbutils.drawing.palette import VERDICTS
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, shown

MOST_PLAIN = 60_000  # bytes of values as they are; more are packed, to a third
MOST_TWICE = 200_000  # characters of a figure that a page can hold twice, for a desk and for a phone
THOUSANDS = 10_000  # from here on digits of a whole number are grouped
MOST_DIGITS, MOST_PIXELS = 17, 10_000  # a float has no more decimals to show; no screen is wider
HEADINGS = {"dataset": "data set", "rho": "ρ"}  # columns that tables of results have, as a page calls them
INK = "#010203"  # stands for "the page's text colour" until the figure is written
BETWEEN = "\u00a0to\u00a0"  # does not break
STYLE = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.16,
    "grid.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "figure.constrained_layout.use": True,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}


class Html:
    """A piece of HTML that notebooks and pages display as it is."""

    def __init__(self, text: str, plain: str = "") -> None:
        self.text, self.plain = text, plain

    def _repr_html_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.plain


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw figures inside in the book's style: no background, text in the page's colour.

    Examples:
        >>> with figure_style():
        ...     figure = Figure(figsize=(3, 2))
        ...     line = figure.subplots().plot([0, 1], [0.5, 0.7])
        >>> show(figure, "Accuracy over epochs.", "A line that rises.")
        [figure: A line that rises.]
    """
    with mpl.rc_context(STYLE):
        yield


@checked
def show(figure: Figure, caption: str, alt: str, *, min_width: int = 600, values: pd.DataFrame | None = None) -> Html:
    """A figure with its caption, for the end of a cell.

    Args:
        figure: drawn inside :func:`figure_style`; pyplot forgets it, so that a notebook shows it once.
        caption: what it shows and where the numbers come from; may hold `code` in backticks.
        alt: the same for someone who cannot see it.
        min_width: pixels below which a narrow screen scrolls rather than shrinks it; more where letters would have less
            than nine. A picture without letters always shrinks.
        values: what it draws, for download, where places on the page do not tell; else they are read off the figure.

    Returns:
        Something that notebooks display: inline SVG, readable on a phone by scrolling sideways, in light and dark.

    Raises:
        ValueError: caption or alt text is empty, or `min_width` is negative or above 10,000.
    """
    min_width = as_count(min_width, "min_width", 0, MOST_PIXELS)
    if not caption.strip() or not alt.strip():
        raise ValueError(f"a figure needs a caption and an alt text, received {shown(caption)} and {shown(alt)}")
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")  # else long labels are cut off
    own = figure_csv(figure) if values is None else values.to_csv(index=False)
    wide = _svg(figure, caption, alt, max(min_width, readable_width(figure)) if is_lettered(figure) else 0)
    narrow = ""
    if len(wide) < MOST_TWICE and is_wide(figure):
        with restacked(figure):
            narrow = _svg(figure, f"narrow: {caption}", alt, 0)
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close(figure)  # else a notebook shows it once more at the end of the cell, without a word
    scrolled = 'style="overflow-x:auto" tabindex="0" role="group" aria-label="Figure"'
    body = f'<div class="mathjax_ignore{" nb-wide" if narrow else ""}" {scrolled}>{wide}</div>'
    if narrow:  # hidden where no style sheet knows it
        body += f'<div class="mathjax_ignore nb-narrow" style="display:none">{narrow}</div>'
    data = f" {download_link(own, caption)}" if own else ""
    words = f"<figcaption>{inline_html(caption)}{data}</figcaption>"
    return Html(f'<figure class="nb-figure" style="margin:.5em 0">{body}{words}</figure>', f"[figure: {alt}]")


def _svg(figure: Figure, caption: str, alt: str, min_width: float) -> str:
    """A figure as inline SVG; what it refers to by name is named by caption and alt text."""
    buffer = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": sha256((caption + alt).encode()).hexdigest()[:8]}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    width = figure.get_size_inches()[0] * 72 * 1.25
    style = f"width:100%;max-width:{width:.0f}px;min-width:{min(width, min_width):.0f}px;height:auto;overflow:visible"
    return _clean_svg(buffer.getvalue(), escape(alt, quote=True), style)


def download_link(values: str, caption: str) -> str:
    """A link that saves the values of a figure; they travel inside the page, many of them packed."""
    name = re.sub(r"\W+", "-", caption.lower())[:40].strip("-") or "figure"
    inside, file, kind, words = values.encode(), f"{name}.csv", "text/csv;charset=utf-8", "CSV"
    if len(inside) > MOST_PLAIN:
        inside, file, kind, words = gzip.compress(inside, mtime=0), f"{file}.gz", "application/gzip", "CSV, gzip"
    link = f'download="{file}" href="data:{kind};base64,{base64.b64encode(inside).decode()}"'
    return f'<a class="nb-data" {link} aria-label="Values ({words}) of this figure">Values ({words})</a>'


@checked
def show_table(
    table: pd.DataFrame, caption: str, digits: int = 3, names: Collection[str] = (), *, sortable: bool = False
) -> Html:
    """A table with its caption; numbers to a fixed number of digits, missing ones as a dash.

    Args:
        table: its index is not shown.
        caption: what it holds.
        digits: decimals of floating-point columns.
        names: columns of names that others chose, such as classes; shown letter by letter, without `code` and links.
        sortable: in the book, a click on a heading sorts the rows by it.
    """
    digits, literal = as_count(digits, "digits", 0, MOST_DIGITS), [name in names for name in table.columns]

    def cell(value: Any, is_name: bool) -> str:
        if isinstance(value, float | np.floating):
            return format_number(value, digits)
        if isinstance(value, int | np.integer) and abs(value) >= THOUSANDS:
            return f"{value:,}"
        text = _escaped(str(value)) if is_name else inline_html(str(value))
        return re.sub(r"(?<=\w)_(?=\w)(?![^<]*>)", "_<wbr>", text)  # long names may break, links may not

    numeric = [pd.api.types.is_numeric_dtype(dtype) for dtype in table.dtypes]
    align = ["right" if n else "left" for n in numeric]
    headings = [HEADINGS.get(name, str(name).replace("_", " ")) for name in table.columns]
    head = "".join(
        f'<th scope="col" style="text-align:{a}">{_escaped(typeset(name))}</th>' if name else "<td></td>"
        for name, a in zip(headings, align, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align:{a}">{cell(v, n)}</td>' for v, a, n in zip(row, align, literal, strict=True))
        + "</tr>"
        for row in table.itertuples(index=False)
    )
    kind = "nb-table nb-sortable" if sortable else "nb-table"
    grid = f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    figure = f'<div style="overflow-x:auto" tabindex="0" role="group" aria-label="Table">{grid}</div>'
    words = f"<figcaption>{inline_html(caption)}</figcaption>"
    text = f'<figure class="nb-figure" style="margin:.5em 0">{words}{figure}</figure>'
    return Html(text, table.to_string(index=False))


def format_number(value: float, digits: int = 3) -> str:
    """A number for a reader: a dash if missing, "<0.001" rather than a "0.000" that is not zero.

    Examples:
        >>> format_number(0.0123), format_number(0.0001), format_number(float("nan"))
        ('0.012', '<0.001', '–')
    """
    if np.isnan(value):
        return "–"
    if 0 < value < 0.5 * 10**-digits:
        return f"<{10**-digits:.{digits}f}"
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


@checked
def interval_text(value: float, low: float, high: float, digits: int = 2) -> str:
    """An estimate and its interval, where it has one, for a table; breaks only between the two.

    On which side of 0 an end lies can be seen even where it rounds to 0: "<0.01" above, ">−0.01" below.

    Examples:
        >>> interval_text(-0.25, -0.5, 0.125)
        '−0.25 (−0.50\\xa0to\\xa00.12)'
        >>> interval_text(0.25, float("nan"), float("nan"))
        '0.25'
        >>> interval_text(-0.25, -0.5, -0.001)
        '−0.25 (−0.50\\xa0to\\xa0>−0.01)'
    """
    value, low, high, digits = float(value), float(low), float(high), as_count(digits, "digits", 0, MOST_DIGITS)
    if np.isnan([low, high]).all():
        return format_number(value, digits)
    least = 10**-digits
    limits = (f">−{least:.{digits}f}" if -0.5 * least < x < 0 else format_number(x, digits) for x in (low, high))
    return f"{format_number(value, digits)} ({BETWEEN.join(limits)})"


@checked
def say(text: str) -> Html:
    """A paragraph with computed numbers in it."""
    return Html(f"<p>{inline_html(text)}</p>", text)


@checked
def fold(summary: str, *parts: Html, opened: bool = False) -> Html:
    """Parts behind one line that a reader clicks to see them, such as a long table.

    Args:
        summary: the line; says what is behind it.
        parts: figures, tables, paragraphs.
        opened: whether they can be seen at first.

    Raises:
        ValueError: the line is empty.

    Examples:
        >>> fold("More", say("Here.")).text
        '<details class="nb-fold"><summary>More</summary><p>Here.</p></details>'
    """
    if not summary.strip():
        raise ValueError(f"summary must be a line that says what is folded away, received {shown(summary)}")
    body = "".join(part.text for part in parts)
    text = (
        f'<details class="nb-fold"{" open" if opened else ""}><summary>{inline_html(summary)}</summary>{body}</details>'
    )
    return Html(text, "\n".join([summary, *(repr(part) for part in parts)]))


@checked
def callout(title: str, text: str, word: str = "inconclusive") -> Html:
    """A box that nobody misses, such as a verdict."""
    colour = VERDICTS.get(word, VERDICTS["inconclusive"])
    style = f"border-left:5px solid {colour};padding:.6em 1em;margin:1em 0;background:{colour}1f;border-radius:4px"
    shown = f"<strong>{_escaped(typeset(title))}</strong><br>{inline_html(text)}"
    return Html(f'<div class="nb-callout" style="{style}">{shown}</div>', f"{title}: {text}")


def in_figure(text: object) -> str:
    """A text for a figure, letter by letter; matplotlib takes what stands between two dollar signs for a formula.

    Examples:
        >>> print(in_figure("$5 and $10"))
        \\$5 and \\$10
    """
    return str(text).replace("$", r"\$")


def in_markdown(text: object) -> str:
    r"""A text for a cell of a Markdown table, letter by letter and on one line.

    Examples:
        >>> print(in_markdown("mnist-5k"), in_markdown("a|b $5"))
        mnist-5k a\|b \$5
    """
    return re.sub(r"([\\`*_\[\]<>&|$~#])", r"\\\1", " ".join(str(text).split()))


def _escaped(text: str) -> str:
    """HTML of a text, in which no page takes a dollar sign or a backslash for the beginning of a formula."""
    return re.sub(r"[$\\]", r'<span class="mathjax_ignore">\g<0></span>', escape(text, quote=False))


def typeset(text: str) -> str:
    """A sentence as it is printed: minus signs, none before zero; apostrophes; no line between a number and its %.

    Examples:
        >>> print(typeset("The network's Q falls by -0.25 (-0.50 to -0.00) since 2026-11-23."))
        The network’s Q falls by −0.25 (−0.50 to 0.00) since 2026-11-23.
    """
    text = re.sub(r"(?<![\w.)\]/:=-])-(?=\d)", "−", text)
    text = re.sub(r"−(?=0(?:\.0+)?(?![\d.]))", "", text)
    text = re.sub(r"(?<=\w)'(?=\w)", "’", text)
    return re.sub(r"(?<=\d) %", "\u00a0%", text)


def inline_html(text: str) -> str:
    """HTML of a text with `code`, **bold** and links to other pages of the book."""
    parts = re.split(r"(`[^`]+`)", text)  # every second one is code, letter by letter
    text = "".join(part if place % 2 else typeset(part) for place, part in enumerate(parts))
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", _escaped(text))
    text = re.sub(r"\[([^\]]+)\]\(([\w./#-]+)\)", r'<a href="\2">\1</a>', text)  # to other pages, never out of the book
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)


def _clean_svg(svg: str, alt: str, style: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = svg.replace(INK, "currentColor")
    svg = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font-size: \1; font-family: inherit", svg)
    used = set(re.findall(r"#([\w.-]+)", svg))
    svg = re.sub(r' id="([\w.-]+)"', lambda m: m[0] if m[1] in used else "", svg)
    tag = re.match("<svg[^>]*", svg)[0]
    kept = re.sub(r' (?:width|height|version)="[^"]*"', "", tag)
    return f'{kept} role="img" aria-label="{alt}" style="{style}"{svg[len(tag) :]}'
