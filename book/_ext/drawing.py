"""Small pictures in plain SVG for the prose: panels that stand side by side, one below the other on a phone.

A unit is a pixel, so that letters keep their size; colours are variables of `book.css`, which follow light and dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from nbutils.drawing.display import typeset

__all__ = ["arrow", "circle", "figure", "line", "lines", "panel", "rect", "text"]

SIZE = 12  # of letters, in pixels


def text(x: float, y: float, words: object, kind: str = "", *, anchor: str = "middle", size: float = SIZE) -> str:
    """Words at a place; `kind` names their classes in `book.css`."""
    place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size:g}"'
    return f"<text {place}{_kind(kind)}>{escape(str(words), quote=False)}</text>"


def lines(x: float, y: float, rows: Iterable[object], *, anchor: str = "start", step: float = 17) -> str:
    """Words in rows, one below the other."""
    return "".join(text(x, y + step * number, row, anchor=anchor) for number, row in enumerate(rows))


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "edge", width: float = 1) -> str:
    """A straight line."""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke-width="{width:g}"{_kind(kind)}/>'


def arrow(x1: float, y: float, x2: float, kind: str = "axis") -> str:
    """A level line with a head at its second end."""
    back = x2 - 6 if x2 > x1 else x2 + 6
    return line(x1, y, x2, y, kind) + line(back, y - 4, x2, y, kind) + line(back, y + 4, x2, y, kind)


def circle(x: float, y: float, radius: float, kind: str) -> str:
    """A disc."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}"{_kind(kind)}/>'


def rect(x: float, y: float, width: float, height: float, kind: str, shade: float | None = None) -> str:
    """A rectangle, its filling as opaque as `shade` says."""
    opacity = "" if shade is None else f' fill-opacity="{shade:.2f}"'
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{opacity}{_kind(kind)}/>'


def panel(width: float, height: float, *parts: str, title: str = "") -> str:
    """One picture, drawn at most a fifth larger than it is.

    Args:
        width: in pixels; three of 216 stand side by side, one of at most 330 fits a phone.
        height: of the drawing, without the title.
        parts: what is in it.
        title: one line above.
    """
    size = max(13, width / 23)  # letters of a wide drawing shrink with it
    above = size + 11 if title else 0
    heading = text(0, size + 1, title, "title", anchor="start", size=round(size)) if title else ""
    body = f'<g transform="translate(0 {above:.0f})">{"".join(parts)}</g>' if title else "".join(parts)
    style = f"max-width:{1.2 * width:g}px;flex-basis:{min(0.93 * width, 280):g}px"
    box = f'viewBox="0 0 {width:g} {height + above:.0f}" style="{style}"'
    return f'<svg {box} aria-hidden="true" focusable="false">{heading}{body}</svg>'


def figure(name: str, panels: Sequence[str], caption: str, alt: str, more: str = "") -> str:
    """Panels with their caption.

    Args:
        name: of the picture, which becomes the element's id.
        panels: see :func:`panel`.
        caption: its point first; HTML.
        alt: what it shows, for someone who cannot see it.
        more: HTML between picture and caption.

    Raises:
        ValueError: caption or alt text is empty.
    """
    if not caption.strip() or not alt.strip():
        raise ValueError(f"a picture needs a caption and an alt text, received {caption!r} and {alt!r}")
    shown = f'<div class="nb-panels" role="img" aria-label="{escape(alt, quote=True)}">{"".join(panels)}</div>'
    kind = "nb-figure nb-picture mathjax_ignore"
    return (
        f'<figure class="{kind}" id="picture-{name}">{shown}{more}<figcaption>{typeset(caption)}</figcaption></figure>'
    )


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
