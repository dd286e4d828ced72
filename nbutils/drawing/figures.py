"""What a page makes of a matplotlib figure: one column for a phone, and a table of what it shows.

For a phone, panels that stood side by side stand below one another, and letters keep their size. The table holds lines,
dots, bars, intervals and cells of maps, in the units of the axes.
"""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection, QuadMesh
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.offsetbox import VPacker
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator

__all__ = ["WIDTH", "figure_csv", "is_lettered", "is_wide", "readable_width", "restacked"]

GAP = 0.1  # inches above and below panels that stand in one column
BELOW = "outside lower center"  # where a legend of all panels stands
WIDTH = 4.1  # inches; as wide as a phone shows at the size at which letters are drawn
WIDEST = 22  # letters of the name of an axis on one line, about as many as a phone shows below a panel
LEAST = 8.2  # points of a letter: 9 pixels on a phone
MOST_COLUMNS = 12  # of a map of cells, whose names and numbers a phone can show
MOST_NUMBERED = 8  # of a map whose cells are wide enough for their numbers
MOST = 12  # panels that can be read one after the other; more, such as small images, stay a sheet
MOST_ROWS, MOST_CELLS = 50_000, 1500  # of a table that travels inside a page; of a map, above which it is a picture
LEAST_PIXELS = 9  # of a letter on any screen
ASIDE = 0.4  # how far from the place of a name, a whole number, a dot may be moved and still bears it
HEAD = ("panel", "kind", "series", "x", "y")


def is_wide(figure: Figure) -> bool:
    """Whether a phone would shrink or clip a figure, and one column of panels can be read there.

    Sheets of pictures, and maps with more named columns than a phone can show, stay as wide as they are.

    Examples:
        >>> is_wide(Figure(figsize=(8, 3))), is_wide(Figure(figsize=(4, 3)))
        (True, False)
    """
    panels = _panels(figure)
    pictures = len(panels) > 1 and not any(axes.axison for axes in panels)
    columns = max(map(_named_columns, panels), default=0)
    wide = bool(figure.get_figwidth() > WIDTH + 0.5)
    return wide and len(panels) <= MOST and not pictures and columns <= MOST_COLUMNS


def is_lettered(figure: Figure) -> bool:
    """Whether a figure has letters, which become too small to read when it shrinks.

    Examples:
        >>> figure = Figure()
        >>> axes = figure.subplots()
        >>> before = is_lettered(figure)
        >>> axes.set_axis_off()
        >>> before, is_lettered(figure)
        (True, False)
    """
    own = (axes.axison or axes.texts or axes.get_legend() or axes.get_title() for axes in figure.axes)
    return any(own) or any(axes.get_title(loc="left") for axes in figure.axes) or bool(figure.legends or figure.texts)


def readable_width(figure: Figure) -> float:
    """Pixels below which the smallest letter of a figure would have less than nine; 0 for a figure without letters.

    Examples:
        >>> figure = Figure(figsize=(8, 3))
        >>> readable_width(figure)
        0.0
        >>> text = figure.text(0.5, 0.5, "Q", fontsize=8)
        >>> readable_width(figure)  # 8 inches of 72 points, each 9 / 8 pixels
        648.0
    """
    sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    return float(LEAST_PIXELS * 72 * figure.get_figwidth() / min(sizes, default=np.inf))


def _named_columns(axes: Axes) -> int:
    return len(axes.get_xticks()) if isinstance(axes.xaxis.get_major_locator(), FixedLocator) else 0


@contextmanager
def restacked(figure: Figure) -> Iterator[None]:
    """Inside, a figure is as wide as a phone, its panels in one column; what panels shared, each has then.

    A legend that stands below all panels (`BELOW`) stands above the column, unless a title does.

    Panels of nested grids stay where they are, and become narrower. Numbers in the cells of a map with many columns,
    which would run into each other, are left out; colours tell them.

    Args:
        figure: as before afterwards.

    Examples:
        >>> figure = Figure(figsize=(8, 2))
        >>> left, right = figure.subplots(1, 2, sharey=True)
        >>> with restacked(figure):
        ...     print(figure.get_size_inches().round(1), right.get_subplotspec().rowspan)
        [4.1 4. ] range(1, 2)
        >>> figure.get_size_inches(), right.get_subplotspec().rowspan
        (array([8., 2.]), range(0, 1))
    """
    panels, (width, height) = _panels(figure), figure.get_size_inches()
    grids = {panel.get_subplotspec().get_gridspec() for panel in panels}
    undo: list[Callable[[], object]] = [partial(figure.set_size_inches, width, height)]
    if len(grids) == 1 and len(panels) > 1:
        undo += _in_one_column(figure, panels, next(iter(grids)).get_height_ratios(), height)
        for legend in figure.legends:  # read before the panels, which fill several screens
            if legend._outside_loc == "lower" and not figure.get_suptitle():
                undo.append(partial(legend.set_loc, BELOW))
                legend.set_loc(BELOW.replace("lower", "upper"))
    else:
        figure.set_size_inches(WIDTH, height * (1 if len(panels) == 1 else WIDTH / width))
    for legend in [*figure.legends, *(axes.get_legend() for axes in panels)]:
        if legend is not None and legend.get_texts():
            undo.append(_in_fewer_columns(legend))
    for label in (panel.xaxis.label for panel in panels):
        if len(text := label.get_text()) > WIDEST:  # ends where the panel does: names of rows leave room on the left
            undo.append(partial(label.set, text=text, x=label.get_position()[0], ha=label.get_ha()))
            label.set(text="\n".join(textwrap.wrap(text, WIDEST)), x=1, ha="right")
    undo += _readable(figure)
    for panel in panels:
        if _named_columns(panel) > MOST_NUMBERED and (panel.images or panel.collections):
            for text in panel.texts:
                undo.append(partial(text.set_visible, text.get_visible()))
                text.set_visible(False)
    try:
        yield
    finally:
        for step in reversed(undo):
            step()


def _in_one_column(figure: Figure, panels: list[Axes], ratios: list[float], height: float) -> list[Callable]:
    """Put panels below one another; gives what undoes it."""
    inches = [height * sum(ratios[row] for row in panel.get_subplotspec().rowspan) / sum(ratios) for panel in panels]
    undo = _say_what_was_shared(panels)
    places = {panel.get_subplotspec(): number for number, panel in enumerate(panels)}
    column = GridSpec(len(panels), 1, figure=figure, height_ratios=inches)
    for axes in _placed(figure):  # those that lie on one another, such as twins, stay together
        undo.append(partial(axes.set_subplotspec, axes.get_subplotspec()))
        axes.set_subplotspec(column[places.get(axes.get_subplotspec(), len(panels) - 1)])  # empty ones are not seen
    figure.set_size_inches(WIDTH, sum(inches))
    if isinstance(engine := figure.get_layout_engine(), ConstrainedLayoutEngine):
        undo.append(partial(engine.set, h_pad=engine.get()["h_pad"]))
        engine.set(h_pad=GAP)  # a title stands closer to its own panel than to the one above
    return undo


def _in_fewer_columns(legend: Legend) -> Callable[[], object]:
    """Lay the entries of a legend out again in as many columns as are narrow enough for a phone; gives what undoes it.

    `Legend.set_ncols` only notes a number: entries keep the columns that they were given when the legend was made.
    """
    box = legend._legend_handle_box
    before, size = box.get_children(), legend.prop.get_size()
    entries = [entry for column in before for entry in column.get_children()]
    longest = max(len(text.get_text()) for text in legend.get_texts())
    fits = int(0.95 * WIDTH * 72 / (0.55 * size * longest + 4.5 * size))  # letters, and the mark with its space
    down = -(-len(entries) // max(1, min(fits, len(before))))
    look = {"pad": 0, "sep": before[0].sep, "align": before[0].align}
    box._children = [VPacker(children=entries[at : at + down], **look) for at in range(0, len(entries), down)]
    box.set_figure(legend.get_figure(root=True))
    return partial(setattr, box, "_children", before)


def _placed(figure: Figure) -> list[Axes]:
    """Axes with a place in a grid of their own: no scales of colours and no insets."""
    return [axes for axes in figure.axes if axes.get_subplotspec() is not None and not hasattr(axes, "_colorbar")]


def _panels(figure: Figure) -> list[Axes]:
    """The first axes of every place where something is drawn, in reading order."""
    found = {}
    for axes in _placed(figure):
        if axes.axison or axes.has_data() or axes.texts or axes.get_legend():
            found.setdefault(axes.get_subplotspec(), axes)
    return sorted(found.values(), key=lambda axes: (axes.get_subplotspec().num1, axes.get_subplotspec().num2))


def _readable(figure: Figure) -> list[Callable]:
    """Let no letter be smaller than a phone can show; gives what undoes it."""
    undo: list[Callable] = []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            size = axis.get_tick_params().get("labelsize")
            if isinstance(size, int | float) and size < LEAST:
                undo.append(partial(axis.set_tick_params, labelsize=size))
                axis.set_tick_params(labelsize=LEAST)
    for text in figure.findobj(Text):
        if text.get_text() and text.get_fontsize() < LEAST:
            undo.append(partial(text.set_fontsize, text.get_fontsize()))
            text.set_fontsize(LEAST)
    return undo


def _say_what_was_shared(panels: list[Axes]) -> list[Callable]:
    """Tick labels that stood at the edge of the figure only, and titles and names of axes that stood there once."""
    undo: list[Callable] = []
    titles: dict[range, str] = {}
    for panel in panels:
        place, own = panel.get_subplotspec().colspan, panel.get_title(loc="left") or panel.get_title()
        if not own and place in titles:
            undo.append(partial(panel.set_title, "", loc="left"))
            panel.set_title(titles[place], loc="left")
        titles.setdefault(place, own)
    for name, edge, span in (("x", "labelbottom", "colspan"), ("y", "labelleft", "rowspan")):
        groups = [(panel, getattr(panel, f"{name}axis"), getattr(panel.get_subplotspec(), span)) for panel in panels]
        for panel, axis, place in (group for group in groups if _shared(group[0], name)):
            undo.append(partial(panel.tick_params, **{edge: axis.get_tick_params().get(edge, True)}))
            panel.tick_params(**{edge: True})
            told = [other.get_label_text() for _, other, there in groups if there == place and other.get_label_text()]
            if told and not axis.get_label_text():
                undo.append(partial(axis.set_label_text, ""))
                axis.set_label_text(told[0])
    return undo


def _shared(panel: Axes, name: str) -> bool:
    """Whether other panels have the same axis."""
    grouper = panel.get_shared_x_axes() if name == "x" else panel.get_shared_y_axes()
    return len(grouper.get_siblings(panel)) > 1


def figure_csv(figure: Figure) -> str:
    """The values that a figure draws, one row each.

    Args:
        figure: as it is shown.

    Returns:
        CSV with the columns panel (its title or that of its column, with the name of its y axis where others have the
        same; or its number), kind, series (as in the legend), x and y; a place with a name, such as a data set, is
        given by its name, also where dots are moved aside a little. An interval is two rows, a band its corners.
        Empty if nothing but pictures is drawn, or more than fits into a page.

    Examples:
        >>> axes = Figure().subplots()
        >>> lines = axes.plot([1, 2], [0.5, 0.25], label="Q")
        >>> print(figure_csv(axes.figure).replace("\\r", ""), end="")
        panel,kind,series,x,y
        1,line,Q,1,0.5
        1,line,Q,2,0.25
    """
    rows, legend = [], _legend(figure)
    panels = [axes for axes in figure.axes if not hasattr(axes, "_colorbar")]
    for title, axes in zip(_titles(panels), panels, strict=True):
        rows += [(title, *row) for row in _rows(axes, legend)]
    if not 0 < len(rows) <= MOST_ROWS:
        return ""
    buffer = io.StringIO()
    csv.writer(buffer).writerows([HEAD, *rows])
    return buffer.getvalue()


def _titles(panels: Sequence[Axes]) -> list[str]:
    above: dict[Any, str] = {}
    found = []
    for axes in panels:
        place = axes.get_subplotspec()
        own = axes.get_title(loc="left") or axes.get_title()
        found.append(own or above.get(place and place.colspan, ""))
        if own:
            above.setdefault(place and place.colspan, own)
    told = [f"{title}: {axes.get_ylabel()}".strip(": ") for title, axes in zip(found, panels, strict=True)]
    found = [title if found.count(title) == 1 else more for title, more in zip(found, told, strict=True)]
    return [title if title and found.count(title) == 1 else str(n) for n, title in enumerate(found, 1)]


def _legend(figure: Figure) -> dict[str, str]:
    """What colours mean by legends that all panels share; a colour that means two things means nothing."""
    found: dict[str, set[str]] = {}
    for legend in figure.legends:
        for artist, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            found.setdefault(_colour(artist), set()).add(text.get_text())
    return {colour: texts.pop() for colour, texts in found.items() if colour and len(texts) == 1}


def _colour(artist: Any) -> str:
    """The one colour of what is drawn, without its transparency; "" where there are several."""
    name = "get_color" if isinstance(artist, Line2D | LineCollection) else "get_facecolor"
    colours = to_rgba_array(getattr(artist, name)()) if hasattr(artist, name) else np.empty((0, 4))
    return to_hex(colours[0]) if len(np.unique(colours[:, :3], axis=0)) == 1 else ""


def _rows(axes: Axes, legend: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    names = _names(axes.xaxis), _names(axes.yaxis)
    for kind, artist, values in _drawn(axes):
        series = _label(artist) or legend.get(_colour(artist), "")
        for x, y in values:
            yield kind, series, _named(x, names[0]), _named(y, names[1])
    meshes = [found for found in axes.collections if isinstance(found, QuadMesh)]
    for cells, middle in [(one, 0.0) for one in axes.images] + [(one, 0.5) for one in meshes]:
        shown = np.ma.filled(np.ma.asarray(cells.get_array(), dtype=float), np.nan)
        if shown.ndim == 2 and shown.size <= MOST_CELLS and any(names):
            for (row, column), value in np.ndenumerate(shown):
                at = _named(column + middle, names[0]), _named(row + middle, names[1])
                yield "cell", "" if np.isnan(value) else f"{value:.6g}", *at


def _drawn(axes: Axes) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Kind, artist and points of all that is drawn at places given by values, not by places on the page."""
    for line in axes.lines:
        if isinstance(line, Line2D) and line.get_transform() == axes.transData:
            yield "line" if line.get_linestyle() != "None" else "dot", line, _numbers(line.get_xydata())
    for found in axes.collections:
        if isinstance(found, PathCollection):
            yield "dot", found, _numbers(found.get_offsets())
        elif isinstance(found, LineCollection) and found.get_transform() == axes.transData:
            parts = [_numbers(part) for part in found.get_segments()]
            yield "interval", found, np.concatenate(parts) if parts else np.empty((0, 2))
        elif isinstance(found, PolyCollection) and found.get_transform() == axes.transData:
            yield from (("band", found, _numbers(path.vertices[:-1])) for path in found.get_paths())
    for bars in axes.containers:
        if hasattr(bars, "patches") and (ends := [_end(bar, bars.orientation) for bar in bars.patches]):
            yield "bar", bars, _numbers(ends)


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
    """Places of an axis that bear names instead of numbers; where it shows none, those of a panel that shares it."""
    panel = axis.axes
    grouper = panel.get_shared_x_axes() if axis.axis_name == "x" else panel.get_shared_y_axes()
    for other in (panel, *grouper.get_siblings(panel)):
        texts = [text.get_text() for text in getattr(other, f"{axis.axis_name}axis").get_ticklabels()]
        named = {place: text for place, text in zip(axis.get_ticklocs(), texts, strict=False) if text}
        if named:
            return {} if all(_is_number(text) for text in named.values()) else named
    return {}


def _is_number(text: str) -> bool:
    text = text.replace("−", "-").replace("%", "").strip()
    try:
        float(text)
    except ValueError:
        return text.startswith("$")  # powers of ten
    return True


def _named(value: float, names: dict[float, str]) -> str:
    near = round(value) if abs(value - round(value)) < ASIDE else value
    return names.get(value) or names.get(near) or f"{float(value):.6g}"
