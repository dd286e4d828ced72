"""The experiment on planted modules: its networks, the rows of one, and the command."""

import json

import numpy as np
import pandas as pd
import pytest

from nbutils.cli import main
from nbutils.experiments.planted import STATES, PlantedCase, planted_cases, planted_rows
from nbutils.truth.detection import RESOLUTIONS, constructions
from nbutils.truth.network import WIDTHS
from nbutils.truth.planted import TASKS

SMALL = {"dataset": "digits", "pictures": 800, "probe": 200, "epochs": 3}


def test_twenty_networks_of_each_task():
    found = planted_cases()
    assert len(found) == len({one.settings for one in found}) == 20 * len(TASKS)
    assert [one.task for one in found[:11]] == ["independent"] * 10 + ["none"]
    assert {one.seed for one in found[:100]} == set(range(10))


@pytest.mark.slow(8)
def test_rows_of_a_network():
    case = PlantedCase("apart", **SMALL)
    table = pd.DataFrame(planted_rows(case))
    assert table["settings"].unique().tolist() == [case.settings]
    assert table["kind"].value_counts().to_dict() == {
        "construction": len(constructions()) * len(RESOLUTIONS),
        "state": len(STATES),
        "control": 3,
        "whole": 1,
    }
    whole = table.iloc[0]
    neurons = sum(WIDTHS)
    assert whole["first_sided"] * neurons == pytest.approx(neurons / 2, abs=8), "halves, but for dead neurons"
    assert whole[[f"depends_{k}" for k in range(1, 9)]].sum() == 0, "wired apart: all or nothing"
    assert whole["degenerate"] == 0
    states = table[table["kind"] == "state"].set_index("state")
    assert states.loc["shifted", "excess"] == pytest.approx(0, abs=0.05)
    assert states.loc["groups 1", "left"] > states.loc["groups 0.1", "left"]
    np.testing.assert_allclose(states["class_part"] + states["remainder"], states["excess"], atol=3e-5)
    json.dumps(planted_rows(PlantedCase("untrained", **SMALL))[0])


def test_a_network_that_fails_says_so(monkeypatch):
    monkeypatch.setattr("nbutils.truth.network.RATE", 1e30)
    (row,) = planted_rows(PlantedCase("none", **SMALL))
    assert row["reason"].startswith("the loss was ")
    assert (row["kind"], row["degenerate"]) == ("whole", 1.0)


def test_a_network_that_learns_nothing_is_degenerate():
    rows = planted_rows(PlantedCase("independent", **{**SMALL, "pictures": 40, "epochs": 0}))
    assert {row["degenerate"] for row in rows} == {1.0}
    assert not np.isnan(rows[0]["accuracy_1"])


def test_the_command_plans(tmp_path, capsys):
    assert main(["experiment", "planted", "--seeds", "1", "--into", str(tmp_path), "--plan"]) == 0
    assert f"Experiment planted: {len(TASKS)} networks" in capsys.readouterr().out
