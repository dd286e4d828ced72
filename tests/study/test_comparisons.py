from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nbutils.study.comparisons import between_run_table, naive_table, selectivity_share


@pytest.fixture
def table(rng) -> pd.DataFrame:
    rows = []
    for seed in range(4):
        for epoch in range(6):
            accuracy = 0.1 if epoch == 0 else 0.9 + 0.01 * epoch
            rows.append({"labels": "true", "seed": seed, "epoch": epoch, "train_accuracy": accuracy, "noise": seed / 4})
    frame = pd.DataFrame(rows)
    frame["modularity"] = (frame["epoch"] > 0) * 0.5 - 0.01 * frame["epoch"]  # jumps, then falls
    frame["null_circular"], frame["null_within"] = 0.1, (frame["modularity"] - 0.1) / 2 + 0.1
    return frame


def test_naive_table_shows_that_the_sign_can_flip(table):
    naive = naive_table(table, "modularity").set_index("predictor")
    row = naive.loc["modularity Q (H2)"]
    assert row["r, all"] > 0.9
    assert row["ρ, trained"] == pytest.approx(-1)
    assert naive.loc["trained or not", "r, all"] > 0.95
    assert np.isnan(naive.loc["trained or not", "ρ, trained"]), "it stands still"
    assert np.isnan(naive.loc["time alone", "ρ, given epoch"])


def test_selectivity_share_by_hand(table):
    share = selectivity_share(table)
    assert share["labels"].tolist() == ["true"]
    assert share["share"].tolist() == pytest.approx([0.5])


def test_between_run_table_orders_by_strength(rng):
    from nbutils.study.comparisons import BASELINES

    noise = np.repeat(np.linspace(0, 1, 8), 5)
    grid = pd.DataFrame({name: rng.normal(size=40) for name in BASELINES})
    grid = grid.assign(noise=noise, epoch=3, test_accuracy=1 - noise, total_correlation=-noise)
    found = between_run_table(grid, draws=100)
    assert found["measure"][0] == "total correlation"
    assert found["rho"][0] == pytest.approx(1)
    assert len(found) == len(BASELINES)
