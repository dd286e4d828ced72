from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nbutils.pages.evolution import (
    community_selectivity,
    event_panels,
    event_rates,
    selectivity_panels,
    stability,
)
from nbutils.pages.figures import CONDITION_NAMES
from nbutils.support.display import show
from nbutils.tracking import KINDS


def steps(rng, labels, last=6):
    rows = [(name, f"{name}{run}", epoch) for name in labels for run in range(3) for epoch in range(1, last + 1)]
    table = pd.DataFrame(rows, columns=["labels", "run", "epoch"])
    counts = pd.DataFrame(rng.integers(0, 5, size=(len(table), len(KINDS))).astype(float), columns=[*KINDS])
    return table.join(counts).assign(agreement=0.5, overlap=0.4, flexibility=rng.random(len(table)))


@pytest.mark.parametrize("labels", [["true"], ["random", "true"]])
def test_stability_has_a_line_per_network_and_the_control(rng, labels):
    evolution = steps(rng, labels)
    table = evolution.assign(agreement=np.where(evolution["epoch"].isin([1, 6]), 0.9, np.nan))
    figure = stability(evolution, table)
    grid = np.array(figure.axes).reshape(3, len(labels))
    assert [ax.get_title("left") for ax in grid[0]] == [CONDITION_NAMES[c] for c in sorted(labels, reverse=True)]
    for ax in grid[0]:
        *_, mean, control = ax.lines
        assert len(ax.lines) == 3 + 2
        assert mean.get_ydata().tolist() == [0.5] * 6
        assert control.get_xydata().tolist() == [[1, 0.9], [6, 0.9]]
    assert "currentColor" in show(figure, "c", "a")._repr_html_()


def test_events_stand_where_their_means_are(rng):
    rates = event_rates(steps(rng, ["true", "random"]), rng, draws=49)
    alone = {"true": pd.Series(dict(zip(KINDS, range(8), strict=True)) | {"overlap": 1.0})}
    figure = event_panels(rates, alone)
    true, random = figure.axes
    assert [text.get_text() for text in true.get_yticklabels()] == list(KINDS)
    means = rates[(rates["labels"] == "true") & (rates["phase"] == "epochs 0–1")]["mean"]
    assert true.lines[0].get_xdata().tolist() == pytest.approx(means.tolist())
    assert true.lines[-1].get_xdata().tolist() == list(range(8))
    assert len(random.lines) == len(true.lines) - 1, "no search was given"


def test_selectivity_shows_the_chance(rng):
    rows = [("true", "a", epoch, 5, kind, 0.5) for epoch in range(3) for kind in range(2)]
    table = pd.DataFrame(rows, columns=["labels", "run", "epoch", "neurons", "selective_for", "preference"])
    above, below = selectivity_panels(community_selectivity(table), 0.125).axes
    assert above.lines[-1].get_ydata() == [0.125, 0.125]
    assert below.lines[-1].get_ydata().tolist() == [2, 2, 2]
