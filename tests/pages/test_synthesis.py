from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbutils.pages.synthesis import ALL_LABELS, early_prediction
from nbutils.series import partial_correlation


def simulated(rng, conditions, runs, helpful):
    """Final accuracy hangs on early accuracy, and on an early measure if that is `helpful`."""
    rows = []
    for condition in range(conditions):
        for run in range(runs):
            early, measure = rng.normal(size=2)
            final = early + helpful * measure + 0.1 * rng.normal()
            shared = {"dataset": "d", "labels": f"mixed:{condition}", "run": f"{condition}-{run}"}
            rows.append({**shared, "epoch": 1, "q": measure + early, "test_accuracy": early})
            rows.append({**shared, "epoch": 9, "q": np.nan, "test_accuracy": final})
    return pd.DataFrame(rows)


def test_prediction_beyond_accuracy(rng):
    found = early_prediction(simulated(rng, 4, 15, helpful=1), ["q"], rng, draws=199)
    assert found["labels"].tolist() == [f"mixed:{k}" for k in range(4)] + [ALL_LABELS]
    assert (found["low"] > 0.3).all()
    assert found["runs"].tolist() == [15] * 4 + [60]
    useless = early_prediction(simulated(rng, 4, 15, helpful=0), ["q"], rng, draws=199).iloc[-1]
    assert useless["rho"] > 0.5  # it goes with early accuracy, hence with the final one
    assert useless["low"] < 0 < useless["high"]


def test_prediction_agrees_with_the_plain_partial_correlation(rng):
    table = simulated(rng, 1, 12, helpful=1)
    early, late = table[table["epoch"] == 1], table[table["epoch"] == 9]
    found = early_prediction(table, ["q"], rng, early=[1], draws=9).iloc[0]
    given = early["test_accuracy"].to_numpy()
    q, final = early["q"].to_numpy(), late["test_accuracy"].to_numpy()
    assert found["partial"] == pytest.approx(partial_correlation(q, final, given))
    assert found["rho"] == pytest.approx(stats.spearmanr(q, final).statistic)
    assert found["rho_outcome"] == pytest.approx(stats.spearmanr(given, final).statistic)


def test_prediction_counts_only_what_is_early_and_known(rng):
    table = simulated(rng, 1, 6, helpful=1)
    table.loc[table["run"].isin(["0-0", "0-1", "0-2"]) & (table["epoch"] == 1), "q"] = np.nan
    found = early_prediction(table, ["q"], rng, early=[1, 9], draws=9)
    assert found[["epoch", "runs"]].values.tolist() == [[1, 3]]
    assert np.isnan(found["partial"]).all()
    with pytest.raises(ValueError, match=r"columns \['modularity'\]"):
        early_prediction(table, ["modularity"], rng)
