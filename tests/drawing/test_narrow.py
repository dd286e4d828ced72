from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from nbutils.drawing.display import show
from nbutils.drawing.figures import (
    BELOW,
    LEAST,
    MOST,
    MOST_COLUMNS,
    MOST_NUMBERED,
    WIDTH,
    figure_csv,
    is_wide,
    restacked,
)


def grid(rows: int, columns: int, **options) -> Figure:
    figure = Figure(figsize=(3 * columns, 2 * rows))
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for number, ax in enumerate(axes.flat):
        ax.plot([0, 1], [number, number + 1], label="a line")
    for column, ax in enumerate(axes[0]):
        ax.set_title(f"column {column}", loc="left")
    axes[0, 0].set_ylabel("height")
    axes[-1, 0].set_xlabel("time")
    figure.legend(handles=axes[0, 0].lines, ncols=4)
    return figure


def entry_columns(legend: Legend) -> list:
    return legend._legend_handle_box.get_children()


def state(figure: Figure) -> list:
    found = [figure.get_size_inches().tolist(), [len(entry_columns(legend)) for legend in figure.legends]]
    for ax in figure.axes:
        place = ax.get_subplotspec()
        shown = [
            axis.get_tick_params().get(edge) for axis, edge in ((ax.xaxis, "labelbottom"), (ax.yaxis, "labelleft"))
        ]
        found.append((place.rowspan, place.colspan, ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left"), shown))
    return found


def test_panels_stand_below_one_another_with_all_that_they_shared():
    figure = grid(2, 3)
    with restacked(figure):
        assert figure.get_size_inches().tolist() == [WIDTH, 12]
        assert [ax.get_subplotspec().rowspan.start for ax in figure.axes] == [0, 1, 2, 3, 4, 5]
        assert {ax.get_ylabel() for ax in figure.axes[:3]} == {"height"}
        assert [ax.get_title(loc="left") for ax in figure.axes] == ["column 0", "column 1", "column 2"] * 2
        assert [ax.get_xlabel() for ax in figure.axes[3:]] == ["time", "", ""], "only what its own column shares"
        assert all(ax.yaxis.get_tick_params()["labelleft"] for ax in figure.axes)


@pytest.mark.parametrize(("title", "above"), [("", True), ("All of it", False)])
def test_a_legend_of_all_panels_is_read_before_them(title, above):
    figure = Figure(figsize=(9, 4), layout="constrained")
    panels = figure.subplots(2, 4)
    lines = [panels[0, 0].plot([1, 2])[0], panels[0, 0].plot([2, 1])[0]]
    legend = figure.legend(lines, ["one", "two"], loc=BELOW)
    if title:
        figure.suptitle(title)

    def top_and_bottom():
        figure.draw_without_rendering()
        box, first, last = (one.get_window_extent() for one in (legend, panels[0, 0], panels[1, 3]))
        return box.y0 > first.y1, box.y1 < last.y0

    before = figure.get_layout_engine().get()
    with restacked(figure):
        assert top_and_bottom() == (above, not above)
        assert figure.get_layout_engine().get()["h_pad"] > before["h_pad"], "a gap above the title of each panel"
    assert top_and_bottom() == (False, True)
    assert figure.get_layout_engine().get() == before


def test_a_place_that_is_left_empty_is_no_panel():
    """It would get the title of its column, and stand there as a gap."""
    figure = grid(2, 3)
    figure.axes[5].clear()
    figure.axes[5].set_axis_off()
    before = state(figure)
    with restacked(figure):
        assert figure.get_size_inches().tolist() == [WIDTH, 10]
        assert [ax.get_subplotspec().rowspan.start for ax in figure.axes] == [0, 1, 2, 3, 4, 4]
        assert figure.axes[5].get_title(loc="left") == ""
    assert state(figure) == before
    figure.axes[5].legend(handles=figure.axes[0].lines)
    with restacked(figure):
        assert figure.axes[5].get_subplotspec().rowspan.start == 5, "a legend is something"


@pytest.mark.parametrize(
    ("label", "across"), [("Q", 4), ("test accuracy", 2), ("norms and linear regions of the weights", 1)]
)
@pytest.mark.parametrize("panels", [1, 2])
def test_a_legend_is_as_narrow_as_the_phone(label, across, panels):
    figure = Figure(figsize=(8, 3), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, panels))
    handles = [axes[0].plot([0, 1], label=f"{label} {number}")[0] for number in range(4)]
    legend = figure.legend(handles=handles, loc="outside lower center", ncols=4)
    axes[0].set_xlabel("rank correlation of a measure with accuracy on other test images")
    before = state(figure)
    with restacked(figure):
        assert len(entry_columns(legend)) == across
        figure.draw_without_rendering()
        for shown in (legend.get_window_extent(), axes[0].xaxis.label.get_window_extent()):
            assert 0 <= shown.x0 < shown.x1 <= WIDTH * figure.dpi
    assert state(figure) == before


def fail_inside(figure: Figure, before: list) -> None:
    with restacked(figure):
        assert state(figure) != before
        raise RuntimeError("drawing failed")


def test_afterwards_all_is_as_before_also_after_an_error():
    figure = grid(2, 2)
    before = state(figure)
    with pytest.raises(RuntimeError, match="drawing"):
        fail_inside(figure, before)
    assert state(figure) == before


def test_twins_stay_together_and_scales_of_colours_with_their_panel():
    figure = Figure(figsize=(9, 2), layout="constrained")
    left, right = figure.subplots(1, 2)
    twin = left.twinx()
    image = right.imshow([[0, 1], [1, 0]])
    scale = figure.colorbar(image, ax=right)
    with restacked(figure):
        assert twin.get_subplotspec() == left.get_subplotspec() != right.get_subplotspec()
        figure.draw_without_rendering()
        beside, own = scale.ax.get_position(), right.get_position()
        assert own.y0 - 0.01 < beside.y0 < beside.y1 < own.y1 + 0.01


def test_sheets_of_small_pictures_and_narrow_figures_stay_as_they_are():
    assert not is_wide(grid(1, MOST + 1))
    assert not is_wide(Figure(figsize=(WIDTH, 3)))
    assert is_wide(grid(1, 2))
    sheet = grid(1, 2)
    for axes in sheet.axes:
        axes.set_axis_off()
    assert not is_wide(sheet)
    drawing = grid(1, 1)
    drawing.set_figwidth(2 * WIDTH)
    drawing.axes[0].set_axis_off()
    assert is_wide(drawing), "one picture, such as a graph, is drawn anew"


@pytest.mark.parametrize(("columns", "wide"), [(MOST_COLUMNS, True), (MOST_COLUMNS + 1, False)])
def test_maps_of_many_columns_stay_as_wide_as_they_are(columns, wide):
    figure = Figure(figsize=(8, 3))
    axes = figure.subplots()
    axes.imshow(np.zeros((2, columns)))
    axes.set_xticks(range(columns), [f"column {number}" for number in range(columns)])
    assert is_wide(figure) == wide


@pytest.mark.parametrize(("columns", "told"), [(MOST_NUMBERED, True), (MOST_NUMBERED + 1, False)])
def test_numbers_of_narrow_cells_are_left_out_on_a_phone(columns, told):
    figure = Figure(figsize=(8, 3))
    axes = figure.subplots()
    axes.imshow(np.zeros((2, columns)))
    axes.set_xticks(range(columns), [str(number) for number in range(columns)])
    number = axes.text(0, 0, "0.5")
    with restacked(figure):
        assert number.get_visible() == told
    assert number.get_visible()


def test_a_page_holds_both_and_no_name_twice():
    text = show(grid(1, 2), "A caption.", "Two lines.").text
    assert text.count("<svg") == 2
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids)) > 0
    wide, narrow = re.findall(r'viewBox="0 0 ([\d.]+)', text)
    assert float(wide) == 6 * 72
    assert float(narrow) == pytest.approx(WIDTH * 72)
    assert text.index("nb-wide") < text.index('nb-narrow" style="display:none"')


def test_letters_are_at_least_nine_pixels_on_a_phone():
    """343 pixels are left of 375 between margins; sizes in the picture are those of 72 units an inch."""
    text = show(grid(1, 3), "A caption.", "Three lines.").text
    narrow = text[text.index("nb-narrow") :]
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", narrow)]
    assert min(sizes) * 343 / (WIDTH * 72) >= 9


def test_small_letters_grow_on_a_phone_and_shrink_again():
    figure = Figure(figsize=(8, 2))
    left, _ = figure.subplots(1, 2)
    left.tick_params(labelsize=6)
    note = left.annotate("note", (0.5, 0.5), fontsize=5)
    title = left.set_title("title", fontsize=11)
    before = figure_csv(figure)
    with restacked(figure):
        figure.draw_without_rendering()
        sizes = [label.get_fontsize() for label in left.get_xticklabels()]
        assert {*sizes, note.get_fontsize(), title.get_fontsize()} == {LEAST, 11}
    figure.draw_without_rendering()
    assert {label.get_fontsize() for label in left.get_xticklabels()} == {6}
    assert (note.get_fontsize(), title.get_fontsize()) == (5, 11)
    assert figure_csv(figure) == before
