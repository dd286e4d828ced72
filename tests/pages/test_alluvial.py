from __future__ import annotations

import numpy as np
import pytest

from nbutils.drawing.display import show
from nbutils.pages.alluvial import alluvial
from nbutils.tracking import (
    track_communities,
)


def partition(*sizes):
    """Labels in a row: (label, how many), ..."""
    return np.concatenate([np.full(size, label) for label, size in sizes])


def test_the_flow_draws_every_neuron_once_per_column():
    tracked = track_communities([partition((0, 4), (1, 5), (-1, 3)), partition((1, 4), (0, 6), (-1, 2))])
    figure = alluvial(tracked, [0, 3], names={0: "threes"})
    bars = [patch for patch in figure.axes[0].patches if hasattr(patch, "get_height")]
    assert sum(bar.get_height() for bar in bars) == 2 * 12
    texts = sorted(text.get_text() for text in figure.axes[0].texts)
    assert texts == ["1 (5)", "2 (4)", "2 (4)", "isolated (2)", "isolated (3)", "threes (6)"]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["0", "3"]
    html = show(figure, "c", "a")._repr_html_()
    assert "currentColor" in html
    assert "#010203" not in html


def test_the_flow_shows_chosen_epochs():
    table = np.zeros((4, 3), dtype=int)
    figure = alluvial(table, [0, 1, 2, 5], shown=[0, 5])
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["0", "5"]
    with pytest.raises(ValueError, match="shown must be at least two of the epochs"):
        alluvial(table, [0, 1, 2, 5], shown=[0, 4])
    with pytest.raises(ValueError, match="one value per snapshot, received 2 for 4"):
        alluvial(table, [0, 1])
