"""Plots of points of which each can be asked what it is, by pointer and by keyboard; plain HTML and SVG.

The script `explore.js` of the book makes them answer. Without it they stand still: in a notebook, on paper, without
scripts. Drawings stretch with the page, letters and the width of strokes do not.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from nbutils.drawing.display import Html, download_link, inline_html, typeset
from nbutils.drawing.palette import GREY
from nbutils.support.arguments import checked
from nbutils.support.checks import shown

__all__ = ["Axis", "Plot", "Point", "as_json", "points_csv", "show_points"]

NONE = float("nan")
GRID = "display:grid;grid-template-columns:var(--nb-left,3rem) minmax(0,1fr);column-gap:.5rem;align-items:center"


@dataclass(frozen=True)
class Axis:
    """One axis of a plot.

    Attributes:
        label: what it shows.
        low: value at its beginning.
        high: value at its end.
        ticks: values that are named, each with a line across the plot.

    Examples:
        >>> Axis("accuracy", 0.5, 1.0).place(0.75)
        500
    """

    label: str
    low: float
    high: float
    ticks: tuple[float, ...] = ()

    def place(self, value: float) -> int:
        """Where a value lies, in thousandths of the axis."""
        return round(1000 * (value - self.low) / (self.high - self.low))


@dataclass(frozen=True)
class Point:
    """One point of a plot, and what it says of itself.

    Attributes:
        x: its place.
        y: its value.
        text: its name, value and interval in words.
        colour: of its dot and its interval.
        low: lower end of its interval; NaN for none.
        high: upper end.
        rows: the rows below the plot that it belongs to, counted from 0.
    """

    x: float
    y: float
    text: str
    colour: str = GREY
    low: float = NONE
    high: float = NONE
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Plot:
    """Points between two axes.

    Attributes:
        points: in the order in which keys walk along them.
        x: axis to the right; where it has no ticks, a pointer chooses the nearest column, not the nearest dot.
        y: axis upwards.
        alt: what is drawn, for someone who cannot see it: units, how many, intervals.
        names: words beside a place: x, y, text.
        rows: below the plot, a row of marks for each choice: its name, and whether it is only a heading.
        legend: what colours mean: colour, words.
        size: of a dot, in pixels.

    Raises:
        ValueError: there is no point, or no alt text.
    """

    points: tuple[Point, ...]
    x: Axis
    y: Axis
    alt: str
    names: tuple[tuple[float, float, str], ...] = ()
    rows: tuple[tuple[str, bool], ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    size: float = 7

    def __post_init__(self) -> None:
        if not self.points or not self.alt.strip():
            raise ValueError(
                f"a plot needs points and an alt text, received {len(self.points)} points and {shown(self.alt)}"
            )

    @property
    def html(self) -> str:
        """The plot with what its points say."""
        return self._framed(f'<script type="application/json">{as_json(self._told())}</script>')

    @property
    def still(self) -> str:
        """The plot alone."""
        return self._framed("")

    def _framed(self, said: str) -> str:
        """The plot within its axes, and what is added at its end."""
        kind, label = ("nb-plot nb-rows" if self.rows else "nb-plot"), escape(self.alt, quote=True)
        area = 'class="nb-area" style="position:relative;height:15rem" role="img"'
        return (
            f'<div class="{kind}" data-nearest="{"xy" if self.x.ticks else "x"}" style="{GRID}">'
            f'<p class="nb-title" style="grid-column:1/-1;margin:.2rem 0">{inline_html(self.y.label)}</p>'
            f"{self._ticks(self.y, 'upright')}"
            f'<div {area} aria-label="{label}">{_stretched(self._drawn())}{self._words()}</div>'
            f"{self._ticks(self.x, 'level') if self.x.ticks else ''}"
            f'<p class="nb-along" style="grid-column:2;margin:0">{inline_html(self.x.label)}</p>'
            f"{self._legend()}{self._below()}{said}</div>"
        )

    def _repr_html_(self) -> str:
        return self.html

    def _drawn(self) -> str:
        """Lines of the grid, then intervals and dots, colour by colour."""
        x, y = self.x, self.y
        grid = [f"M0 {1000 - y.place(t)}h1000" for t in y.ticks] + [f"M{x.place(t)} 0v1000" for t in x.ticks]
        zero = [f"M0 {1000 - y.place(0)}h1000"] if y.low < 0 < y.high else []
        parts = [_stroke(grid, "currentColor", 1, opacity=0.16), _stroke(zero, "currentColor", 1, opacity=0.6)]
        for colour, own in self._by_colour().items():
            ends = [f"M{x.place(p.x)} {1000 - y.place(p.low)}V{1000 - y.place(p.high)}" for p in own if p.low <= p.high]
            dots = [f"M{x.place(p.x)} {1000 - y.place(p.y)}h.1" for p in own]
            parts += [_stroke(ends, colour, 2, opacity=0.5), _stroke(dots, colour, self.size, round_ends=True)]
        return "".join(parts)

    def _by_colour(self) -> dict[str, list[Point]]:
        colours = dict.fromkeys(point.colour for point in self.points)
        return {colour: [point for point in self.points if point.colour == colour] for colour in colours}

    def _words(self) -> str:
        """Names beside their places; those at the right stand to the left of theirs."""
        found = []
        for a, b, text in self.names:
            left, top = self.x.place(a) / 10, 100 - self.y.place(b) / 10
            turn = "translate(-100%,-50%)" if left > 60 else "translate(0,-50%)"
            place = f"position:absolute;left:{left:g}%;top:{top:g}%;transform:{turn};padding:0 .5rem"
            found.append(f'<span class="nb-word" style="{place}">{inline_html(text)}</span>')
        return "".join(found)

    def _legend(self) -> str:
        """What colours mean."""
        dot = "display:inline-block;width:.6rem;height:.6rem;border-radius:50%;margin:0 .35rem 0 0"
        found = [
            f'<span><i style="{dot};background:{colour}"></i>{inline_html(words)}</span>'
            for colour, words in self.legend
        ]
        style = "grid-column:1/-1;margin:.2rem 0;display:flex;flex-wrap:wrap;gap:.1rem 1rem"
        return f'<p class="nb-legend" style="{style}">{"".join(found)}</p>' if found else ""

    @staticmethod
    def _ticks(axis: Axis, way: str) -> str:
        """The named values of an axis, each at its place."""
        upright = way == "upright"
        turn, frame = ("translateY(-50%)", "height:100%") if upright else ("translateX(-50%)", "grid-column:2")
        found = []
        for tick in axis.ticks:
            place = f"right:0;top:{100 - axis.place(tick) / 10:g}%" if upright else f"left:{axis.place(tick) / 10:g}%"
            words = f"{tick:g}".replace("-", "−")
            found.append(f'<span style="position:absolute;{place};transform:{turn}">{words}</span>')
        style = f"position:relative;min-height:1.3em;{frame}"
        return f'<div class="nb-{way}" aria-hidden="true" style="{style}">{"".join(found)}</div>'

    def _below(self) -> str:
        """The rows of marks, at the places of the points that they belong to."""
        parts = []
        for number, (name, heading) in enumerate(self.rows):
            if heading:
                parts.append(f'<p class="nb-head" style="grid-column:1/-1;margin:0">{inline_html(name)}</p>')
                continue
            marks = [_stroke(["M0 500h1000"], "currentColor", 1, opacity=0.12)]
            for colour, own in self._by_colour().items():
                here = [f"M{self.x.place(p.x)} 0v1000" for p in own if number in p.rows]
                marks.append(_stroke(here, colour, 3))
            parts.append(
                f'<p class="nb-choice" data-row="{number}" style="margin:0">{inline_html(name)}</p>'
                f'<div class="nb-marks" style="height:.6rem">{_stretched("".join(marks))}</div>'
            )
        return "".join(parts)

    def _told(self) -> list[list[Any]]:
        """For the script: place, words and rows of every point."""
        return [
            [self.x.place(p.x), 1000 - self.y.place(p.y), typeset(p.text), *([p.rows] if self.rows else [])]
            for p in self.points
        ]


def _stretched(parts: str) -> str:
    """SVG that fills its place, however wide; strokes keep their width."""
    style = 'style="display:block;width:100%;height:100%;overflow:visible"'
    return f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" aria-hidden="true" {style}>{parts}</svg>'


def _stroke(path: Sequence[str], colour: str, width: float, *, opacity: float = 1, round_ends: bool = False) -> str:
    """Strokes of one colour; a very short one with round ends is a dot."""
    if not path:
        return ""
    more = f' stroke-opacity="{opacity:g}"' if opacity < 1 else ""
    more += ' style="stroke-linecap:round"' if round_ends else ""  # matplotlib's figures rule all strokes of a page
    look = f'fill="none" stroke="{colour}" stroke-width="{width:g}" vector-effect="non-scaling-stroke"{more}'
    return f'<path d="{"".join(path)}" {look}/>'


def as_json(data: Any) -> str:
    """JSON that may stand inside of a script.

    Examples:
        >>> print(as_json(["a</script>", 0.5]))
        ["a\\u003c/script>",0.5]
    """
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


@checked
def show_points(plots: Mapping[tuple[str, ...], Plot], caption: str, choices: Sequence[str] = ()) -> Html:
    """Plots of points as one figure, whose values a reader can save.

    The first is in sight, the others are folded; in the book one chooses between them.

    Args:
        plots: by what is chosen, such as ("H2", "MNIST").
        caption: what they show and where the numbers come from; may hold `code` in backticks.
        choices: what each part of those names is, such as "hypothesis" and "data set".

    Raises:
        ValueError: there is no plot or no caption, or a name has another number of parts than there are choices.

    Examples:
        >>> plot = Plot((Point(0, 0.5, "A: 0.50"),), Axis("epoch", 0, 1), Axis("Q", 0, 1), "One point at 0.5.")
        >>> show_points({(): plot}, "One point.")
        [figure: One point.]
    """
    if not plots or not caption.strip():
        raise ValueError(f"a figure needs plots and a caption, received {len(plots)} plots and {shown(caption)}")
    if wrong := [name for name in plots if len(name) != len(choices)]:
        raise ValueError(f"choices must name the parts of {shown(wrong[0])}, received {shown(list(choices))}")
    parts = []
    for name, plot in plots.items():
        title = f'<p class="nb-name"><strong>{inline_html(", ".join(name))}</strong></p>' if name else ""
        parts.append(f'<div class="nb-one" data-name="{escape(as_json(name), quote=True)}">{title}{plot.html}</div>')
    others = "".join(parts[1:])
    rest = f'<details class="nb-fold"><summary>The others</summary>{others}</details>' if others else ""
    values = download_link(points_csv(plots, choices), caption)
    return Html(
        f'<figure class="nb-figure nb-points mathjax_ignore" data-choices="{escape(as_json(choices), quote=True)}" '
        f'style="margin:.5em 0">{parts[0]}{rest}<figcaption>{inline_html(caption)} {values}</figcaption></figure>',
        f"[figure: {caption}]",
    )


def points_csv(plots: Mapping[tuple[str, ...], Plot], choices: Sequence[str]) -> str:
    """The values of plots, a row for each point."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow([*choices, "x", "y", "low", "high", "text"])
    for name, plot in plots.items():
        writer.writerows([*name, *(f"{v:.6g}" for v in (p.x, p.y, p.low, p.high)), p.text] for p in plot.points)
    return buffer.getvalue()
