from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nbutils.sweeps.sweep_figures import all_metrics, heat_maps, marginals, time_spent
from nbutils.sweeps.tables import axes_of, effects, marginal_means, one_metric


def table(**columns) -> pd.DataFrame:
    grid = pd.MultiIndex.from_product([[1, 2], ["a", "b", "c"], [0, 1]], names=["x", "y", "seed"]).to_frame(index=False)
    grid["value"] = 10.0 * grid["x"] + columns.pop("noise", 0)
    fixed = {"run": range(len(grid)), "sweep": "s", "notebook": "n", "metric": "m", "status": "done", "seconds": 1.0}
    fixed |= {"low": np.nan, "high": np.nan, "text": "", "unit": "", "reason": "", "commit": "c", "time": "t"}
    return grid.assign(**(fixed | {"versions": "{}"} | columns))


def test_axes_are_what_varies_and_seeds_are_replicates():
    assert axes_of(table()) == ["x", "y"]
    assert axes_of(table(y="a")) == ["x"]


def test_shares_are_those_of_an_analysis_of_variance(rng):
    measured = table(noise=rng.normal(size=12))
    found = effects(measured).set_index("parameter")
    values = measured["value"].to_numpy()
    for axis in ("x", "y"):
        groups = [values[measured[axis] == v] for v in measured[axis].unique()]
        between = sum(len(g) * (g.mean() - values.mean()) ** 2 for g in groups)
        assert found.loc[axis, "share"] == pytest.approx(between / ((values - values.mean()) ** 2).sum())
    assert found.index[0] == "x"
    assert found.loc["x", "highest"].endswith("at 2")


def test_a_metric_that_never_varies_has_no_shares():
    assert effects(table(value=1.0))["share"].isna().all()


def test_marginal_means():
    means = marginal_means(table(), "x")
    assert means["mean"].tolist() == [10, 20]
    assert means["runs"].tolist() == [6, 6]
    assert (means["low"] == means["mean"]).all()


def test_one_metric_takes_the_first_and_names_what_there_is():
    both = pd.concat([table(), table(metric="other")])
    assert set(one_metric(both)["metric"]) == {"m"}
    assert set(one_metric(both, "other")["metric"]) == {"other"}
    with pytest.raises(ValueError, match=r"one of m, other, received 'othr' \(did you mean 'other'\?\)"):
        one_metric(both, "othr")
    with pytest.raises(ValueError, match="no finished run recorded a number"):
        one_metric(table(status="failed"))


@pytest.mark.parametrize(
    "change", [{}, {"y": "a"}, {"x": 1, "y": "a"}, {"status": ["done"] * 11 + ["failed"]}, {"value": 1.0}]
)
def test_figures_stand_any_grid(change):
    results = table(**change)
    measured = one_metric(results)
    axis = (axes_of(results) or ["sweep"])[0]
    for figure in (heat_maps(measured), marginals(measured), all_metrics(results, axis), time_spent(results)):
        assert figure.axes
    legends = time_spent(results).legends  # only where some failed is there anything to tell apart
    assert [[t.get_text() for t in one.get_texts()] for one in legends] == [["done", "failed"]] * ("status" in change)


def test_heat_map_cells_are_means_over_seeds(rng):
    measured = table(noise=rng.normal(size=12))
    shown = heat_maps(measured).axes[0].collections[0].get_array().reshape(2, 3)
    expected = measured.pivot_table(index="x", columns="y", values="value").to_numpy()
    assert np.allclose(shown, expected)
