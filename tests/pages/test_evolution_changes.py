from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nbutils.communities import agreed_communities, detect_communities
from nbutils.graphs import activation_pattern_graph
from nbutils.pages.evolution import event_rates, phases, search_alone, settling
from nbutils.tracking import KINDS, between_searches


def steps(rng, labels=("true", "random"), runs=4, last=9):
    """A made-up extra "evolution"."""
    rows = [(name, f"{name}{run}", epoch) for name in labels for run in range(runs) for epoch in range(1, last + 1)]
    table = pd.DataFrame(rows, columns=["labels", "run", "epoch"])
    counts = pd.DataFrame(rng.integers(0, 5, size=(len(table), len(KINDS))).astype(float), columns=[*KINDS])
    return table.join(counts).assign(agreement=rng.random(len(table)))


@pytest.mark.parametrize("last", [1, 2, 3, 4, 20])
def test_every_step_lies_in_one_part(last):
    found = phases(last)
    assert list(found) == list(range(1, last + 1))
    assert found[1] == "epochs 0–1"
    ends = [tuple(map(int, name.removeprefix("epochs ").split("–"))) for name in dict.fromkeys(found.values())]
    assert [start for start, _ in ends] == [0, *(end for _, end in ends[:-1])]
    assert ends[-1][1] == last
    for epoch, name in found.items():
        start, end = map(int, name.removeprefix("epochs ").split("–"))
        assert start < epoch <= end


def test_parts_of_the_reference_study():
    assert list(dict.fromkeys(phases(20).values())) == ["epochs 0–1", "epochs 1–3", "epochs 3–12", "epochs 12–20"]
    with pytest.raises(ValueError, match="last must be a whole number of at least 1, received 0"):
        phases(0)


def test_rates_are_means_over_networks_of_their_means(rng):
    table = steps(rng)
    found = event_rates(table, rng, draws=100).set_index(["labels", "phase", "kind"])
    assert len(found) == 2 * 4 * len(KINDS)
    own = table[(table["labels"] == "random") & table["epoch"].isin([2, 3])]
    assert found.loc[("random", "epochs 1–3", "merge"), "mean"] == pytest.approx(own["merge"].mean())
    assert (found["low"] <= found["mean"]).all()
    assert (found["mean"] <= found["high"]).all()
    assert set(found["networks"]) == {4}


def test_a_network_counts_once_however_many_epochs_it_has(rng):
    table = steps(rng, labels=("true",), runs=2, last=3).assign(split=lambda t: (t["run"] == "true0") * 1.0)
    table = table[(table["run"] == "true0") | (table["epoch"] != 3)]
    found = event_rates(table, rng, draws=100).set_index(["phase", "kind"])
    assert found.loc[("epochs 1–3", "split"), "mean"] == pytest.approx(1 / 2)


@pytest.mark.parametrize(
    ("shift", "reading"), [(-0.2, "still changing"), (0.2, "as still as the search"), (None, "cannot be told")]
)
def test_settling_compares_with_the_search(rng, shift, reading):
    table = steps(rng, labels=("true",), runs=8)
    wobble = np.tile([0.02, -0.02], 4) if shift is None else shift + rng.normal(scale=0.01, size=8)
    ends = table[table["epoch"] == 9]
    control = ends.assign(agreement=ends["agreement"] - wobble)
    found = settling(table, control, rng).iloc[0]
    assert found["reading"] == reading
    assert found["difference"] == pytest.approx(wobble.mean())
    assert found["last_step"] == pytest.approx(ends["agreement"].mean())
    assert found["first_step"] == pytest.approx(table.loc[table["epoch"] == 1, "agreement"].mean())
    assert found["low"] <= found["difference"] <= found["high"]


def test_settling_keeps_the_order_of_conditions_and_pairs_runs(rng):
    table = steps(rng, labels=("random", "true"))
    control = table.assign(agreement=table["agreement"]).sample(frac=1, random_state=0)
    found = settling(table, control, rng)
    assert found["labels"].tolist() == ["true", "random"]
    assert found["difference"].tolist() == [0, 0]
    alone = settling(table[table["run"] == "true0"], control, rng).iloc[0]
    assert alone["reading"] == "cannot be told"
    assert np.isnan(alone["low"])


def test_a_clear_graph_stands_still(rng):
    groups = np.repeat(rng.random((300, 4)) < 0.2, 8, axis=1)
    found = search_alone(groups, density=0.2, repeats=3)
    assert found["continuation"] == 4
    assert found["agreement"] == pytest.approx(1)


def test_search_alone_compares_what_several_searches_agree_on(rng):
    fired = rng.random((60, 40)) < 0.15
    graph = activation_pattern_graph(fired, 0.2)
    found = detect_communities(graph, seeds=6)
    expected = between_searches([agreed_communities(found.seed_labels[start : start + 3]) for start in (0, 3)])
    pd.testing.assert_series_equal(search_alone(fired, density=0.2, seeds=3, repeats=2), expected)
    single = search_alone(fired, density=0.2, seeds=1, repeats=6)
    pd.testing.assert_series_equal(single, between_searches(found.seed_labels))
    with pytest.raises(ValueError, match="repeats must be a whole number from 2 to 50, received 1"):
        search_alone(fired, seeds=3, repeats=1)
