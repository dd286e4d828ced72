"""What a figure shows, as a table: lines, dots, bars, intervals and cells of maps, in the units of its axes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

__all__ = ["figure_csv"]

MOST_ROWS, MOST_CELLS = 3000, 1500  # of a table that travels inside a page; of a map, above which it is a picture
HEAD = ("panel", "kind", "series", "x", "y")


def figure_csv(figure: Figure) -> str:
    """The values that a figure draws, one row each.

    Args:
        figure: as it is shown.

    Returns:
        CSV with the columns panel (its title, or its number), kind, series (as in the legend), x and y; a place with a
        name, such as a data set, is given by its name. An interval is two rows. Empty if nothing but pictures is
        drawn, or more than fits into a page.

    Examples:
        >>> axes = Figure().subplots()
        >>> lines = axes.plot([1, 2], [0.5, 0.25], label="Q")
        >>> print(figure_csv(axes.figure).replace("\\r", ""), end="")
        panel,kind,series,x,y
        1,line,Q,1,0.5
        1,line,Q,2,0.25
    """
    rows = []
    panels = [axes for axes in figure.axes if not hasattr(axes, "_colorbar")]
    for number, axes in enumerate(panels, 1):
        title = axes.get_title(loc="left") or axes.get_title() or str(number)
        rows += [(title, *row) for row in _rows(axes)]
        if len(rows) > MOST_ROWS:
            return ""
    if not rows:
        return ""
    buffer = io.StringIO()
    csv.writer(buffer).writerows([HEAD, *rows])
    return buffer.getvalue()


def _rows(axes: Axes) -> Iterator[tuple[Any, ...]]:
    names = _names(axes.xaxis), _names(axes.yaxis)
    for kind, series, values in _drawn(axes):
        for x, y in values:
            yield kind, series, _named(x, names[0]), _named(y, names[1])
    for image in axes.images:
        shown = np.asarray(image.get_array())
        if shown.ndim == 2 and shown.size <= MOST_CELLS and any(names):
            for (row, column), value in np.ndenumerate(shown):
                yield "cell", f"{float(value):.6g}", _named(column, names[0]), _named(row, names[1])


def _drawn(axes: Axes) -> Iterator[tuple[str, str, np.ndarray]]:
    """Kind, series and points of all that is drawn at places given by values, not by places on the page."""
    for line in axes.lines:
        if isinstance(line, Line2D) and line.get_transform() == axes.transData:
            yield "line" if line.get_linestyle() != "None" else "dot", _label(line), _numbers(line.get_xydata())
    for found in axes.collections:
        if isinstance(found, PathCollection):
            yield "dot", _label(found), _numbers(found.get_offsets())
        elif isinstance(found, LineCollection) and found.get_transform() == axes.transData:
            parts = [_numbers(part) for part in found.get_segments()]
            yield "interval", _label(found), np.concatenate(parts) if parts else np.empty((0, 2))
    for bars in axes.containers:
        if hasattr(bars, "patches") and (ends := [_end(bar, bars.orientation) for bar in bars.patches]):
            yield "bar", _label(bars), _numbers(ends)


def _end(bar: Any, orientation: str) -> tuple[float, float]:
    if orientation == "horizontal":
        return bar.get_x() + bar.get_width(), bar.get_y() + bar.get_height() / 2
    return bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height()


def _numbers(points: Any) -> np.ndarray:
    found = np.ma.filled(np.ma.asarray(points, dtype=float), np.nan).reshape(-1, 2)
    return found[np.isfinite(found).all(axis=1)]


def _label(artist: Any) -> str:
    label = str(artist.get_label() or "")
    return "" if label.startswith("_") else label


def _names(axis: Any) -> dict[float, str]:
    """Places of an axis that bear names instead of numbers."""
    texts = [text.get_text() for text in axis.get_ticklabels()]
    named = {place: text for place, text in zip(axis.get_ticklocs(), texts, strict=False) if text}
    return {} if all(_is_number(text) for text in named.values()) else named


def _is_number(text: str) -> bool:
    text = text.replace("−", "-").replace("%", "").strip()
    try:
        float(text)
    except ValueError:
        return text.startswith("$")  # powers of ten
    return True


def _named(value: float, names: dict[float, str]) -> str:
    return names.get(value) or f"{float(value):.6g}"
