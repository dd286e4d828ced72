"""The page on networks from elsewhere: it reads what the command wrote, and says no more."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbutils.own.measure import WHOLE
from nbutils.pages import own_network
from nbutils.pages.own_network import row_of


def test_committed_networks_are_those_that_the_page_names():
    found = own_network.open_outside()
    assert list(found) == ["resnet20", "resnet56"]
    assert [one.about["parameters"] for one in found.values()] == [269722, 853018]  # as published
    for one in found.values():
        assert one.about["twins"] >= 19, "with fewer, luck alone is above too often"
        assert one.about["accuracy"] > 0.9, "else the images were given in another scale"


def test_layers_come_in_order_and_without_the_whole():
    one = own_network.open_outside()["resnet20"]
    layers = own_network.by_depth(one, "excess")
    assert list(layers["layer"]) == list(one.layers.loc[one.layers["chosen"], "name"])
    assert WHOLE not in set(layers["layer"])
    assert layers["depth"].iloc[[0, -1]].tolist() == [0, 1]


def test_the_box_counts_layers_above_and_known():
    found = own_network.open_outside()
    said = own_network.show_outside(found).text
    for name, one in found.items():
        rows = one.table[(one.table["measure"] == "excess") & (one.table["layer"] != WHOLE)]
        known = rows.dropna(subset=["first", "untrained_high", "noise_high"])
        above = known[["value", "first", "second"]].min(axis=1) > known[["untrained_high", "noise_high"]].max(axis=1)
        assert f"{above.sum()} of {len(known)} wide enough" in said
        assert f"{row_of(one, 'excess')['value']:.2f} beyond chance" in said
        assert name in said


def test_the_figure_draws_what_the_tables_hold():
    found = own_network.open_outside()
    axes = own_network.depth_figure(found).axes
    assert len(axes) == len(found) * len(own_network.PANELS)
    titles = [ax.get_title(loc="left") for ax in axes[: len(own_network.PANELS)]]
    assert titles == list(own_network.PANELS.values())
    layers = own_network.by_depth(found["resnet20"], "excess")
    drawn = axes[0].lines[0].get_ydata()
    assert np.allclose(drawn, layers["value"], equal_nan=True)
    assert len(axes[0].lines[1].get_xdata()) == (layers["word"] == "above").sum() > 0


def test_a_folder_without_networks_says_what_makes_one(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no network; run python -m nbutils measure --into"):
        own_network.open_outside(str(tmp_path))


def test_the_committed_neurons_are_those_of_the_layers():
    for one in own_network.open_outside().values():
        counts = one.neurons.groupby("layer").size()
        chosen = one.layers[one.layers["chosen"]].set_index("name")["neurons"]
        assert (counts.reindex(chosen.index) == chosen).all()
        active = pd.Series(one.neurons["rate"] > 0).sum()
        assert active == row_of(one, "active")["value"]
        assert stats.spearmanr(one.neurons["rate"], one.neurons["mean"]).statistic > 0, "what fires more is more active"
