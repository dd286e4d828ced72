from __future__ import annotations

import base64
import gzip
import io
import re

import numpy as np
import pandas as pd
import pytest
import seaborn
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from nbutils.drawing.display import show
from nbutils.drawing.figures import MOST_ROWS, figure_csv


def table(figure: Figure) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(figure_csv(figure)), dtype=str, keep_default_na=False)


def test_lines_dots_bars_and_intervals_are_told_by_kind_and_series():
    left, right = Figure(figsize=(8, 3)).subplots(1, 2)
    left.set_title("Q over epochs", loc="left")
    left.plot([0, 1], [0.5, np.nan], label="own")
    left.scatter([2], [0.25], label="other")
    left.axhline(0.3)
    left.errorbar([3], [0.5], yerr=[0.125], fmt="o", label="mean")
    right.barh([0, 1], [4, 5])
    right.set_yticks([0, 1], ["MNIST", "KMNIST"])
    found = [tuple(row) for row in table(left.figure).itertuples(index=False)]
    assert ("Q over epochs", "line", "own", "0", "0.5") in found
    assert ("Q over epochs", "dot", "other", "2", "0.25") in found
    assert ("Q over epochs", "dot", "", "3", "0.5") in found
    assert [row[4] for row in found if row[1] == "interval"] == ["0.375", "0.625"]
    assert [row[3:] for row in found if row[0] == "2"] == [("4", "MNIST"), ("5", "KMNIST")]
    assert len(found) == 7, "no line across the page, nothing missing"


def test_panels_that_share_an_axis_or_a_legend_share_its_names():
    figure = Figure()
    left, right = figure.subplots(1, 2, sharey=True)
    for panel in (left, right):
        panel.barh([0, 1], [4, 5])
    left.set_yticks([0, 1], ["MNIST", "KMNIST"])
    (own,) = left.plot([1, 2], [0, 1], color="C0")
    right.plot([1, 2], [0, 1], color="C0")
    right.fill_between([1, 2], [0, 0.5], [1, 1.5], color="C1", alpha=0.5)
    right.plot([3], [1], "o", color="C2")
    figure.legend([own, Patch(color="C1")], ["Q", "its band"])
    found = [tuple(row) for row in table(figure).itertuples(index=False)]
    assert [row[4] for row in found if row[1] == "bar"] == ["MNIST", "KMNIST"] * 2
    assert {row[:3] for row in found if row[1] == "line"} == {("1", "line", "Q"), ("2", "line", "Q")}
    assert {(row[3], row[4]) for row in found if row[1:3] == ("band", "its band")} == {
        *(("1", "MNIST"), ("1", "KMNIST"), ("2", "0.5"), ("2", "1.5"))
    }
    assert ("2", "dot", "", "3", "KMNIST") in found, "what no legend names has no name"


def test_dots_beside_their_row_bear_its_name_and_panels_their_column():
    figure = Figure()
    axes = figure.subplots(2, 2)
    axes[0, 0].set_title("MNIST")
    axes[0, 1].set_title("KMNIST")
    for row, name in enumerate(("Q", "entropy")):
        for panel in axes[row]:
            panel.set_ylabel(name)
            panel.set_yticks([0, 1], ["community", "random"])
            panel.scatter([0.5, 0.6], [0.18, 0.88])
    rows = table(figure)
    assert set(rows["panel"]) == {"MNIST: Q", "KMNIST: Q", "MNIST: entropy", "KMNIST: entropy"}
    assert rows["y"].tolist() == ["community", "random"] * 4


def test_cells_of_a_map_bear_the_names_of_its_rows():
    axes = Figure().subplots()
    axes.imshow([[0.25, 1], [2, 3]])
    axes.set_yticks([0, 1], ["Q", "entropy"])
    found = table(axes.figure)
    assert found["y"].tolist() == ["Q", "Q", "entropy", "entropy"]
    assert found["series"].tolist() == ["0.25", "1", "2", "3"]
    axes = Figure().subplots()
    seaborn.heatmap(pd.DataFrame([[1, 2.5], [np.nan, 4]], ["Q", "entropy"], ["MNIST", "KMNIST"]), ax=axes)
    found = table(axes.figure)
    assert found["x"].tolist() == ["MNIST", "KMNIST"] * 2
    assert found["y"].tolist() == ["Q", "Q", "entropy", "entropy"]
    assert found["series"].tolist() == ["1", "2.5", "", "4"]
    axes.clear()
    axes.imshow(np.zeros((28, 28)))
    assert figure_csv(axes.figure) == "", "a picture is no table"


def test_what_is_too_long_for_a_page_is_left_out():
    axes = Figure().subplots()
    axes.plot(np.arange(MOST_ROWS + 1))
    assert figure_csv(axes.figure) == ""
    assert "nb-data" not in show(axes.figure, "Long.", "A line.").text


def test_many_values_travel_packed():
    axes = Figure().subplots()
    axes.plot(np.arange(10_000) / 7)
    link = re.search(
        r'download="long\.csv\.gz" href="data:application/gzip;base64,([^"]+)"',
        show(axes.figure, "Long.", "A line.").text,
    )
    assert len(link[1]) < len(figure_csv(axes.figure)) / 3
    assert gzip.decompress(base64.b64decode(link[1])).decode() == figure_csv(axes.figure)
    found = pd.read_csv(io.BytesIO(base64.b64decode(link[1])), compression="gzip")
    assert found["y"].tolist() == pytest.approx((np.arange(10_000) / 7).tolist(), rel=1e-5)


@pytest.mark.parametrize("caption", ["Q of nets, 95 % intervals.", "…"])
def test_a_figure_offers_its_values(caption):
    axes = Figure().subplots()
    axes.plot([1, 2], [3, 4])
    text = show(axes.figure, caption, "A line.").text
    [(name, data)] = re.findall(r'download="([^"]+)" href="data:text/csv;charset=utf-8;base64,([^"]+)"', text)
    assert re.fullmatch(r"[\w-]+\.csv", name)
    assert base64.b64decode(data).decode() == figure_csv(axes.figure)
