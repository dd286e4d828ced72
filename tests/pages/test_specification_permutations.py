from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbutils.data.datasets import load_dataset
from nbutils.pages.specification_curve import MEDIAN, SHARE, curve_test, grid_values, readings, specification_table
from nbutils.study.archive import read_archive, write_archive
from nbutils.study.results import NOISE_LEVELS
from nbutils.study.specifications import PRIMARY_H2, PRIMARY_H3, specifications
from nbutils.study.study import Study, about_data, collect, compute_missing

ALL = specifications()
H2 = [one.label for one in ALL if one.hypothesis == "H2"]
NOISE = np.repeat(np.linspace(0, 1, 5), 3)


def one(found: pd.DataFrame, statistic: str, hypothesis: str = "H2") -> pd.Series:
    (row,) = found[(found["statistic"] == statistic) & (found["hypothesis"] == hypothesis)].to_dict("records")
    return pd.Series(row)


def test_every_order_of_the_levels_is_tried_as_an_oracle_would(rng):
    """By brute force with SciPy's correlation, over all 24 orders of four levels."""
    noise, accuracy = np.repeat([0, 1, 2, 3], 2), rng.random(8)
    values = pd.DataFrame(rng.random((8, 5)), columns=H2[:5])
    blocks = accuracy.reshape(4, 2)
    curves = np.array(
        [
            [stats.spearmanr(values[label], blocks[list(order)].ravel()).statistic for label in values]
            for order in permutations(range(4))
        ]
    )
    found = curve_test(values, accuracy, noise, rng)
    for statistic, null in ((MEDIAN, np.median(curves, axis=1)), (SHARE, (curves > 0).mean(axis=1))):
        row, tails = one(found, statistic), [(null >= null[0] - 1e-12).mean(), (null <= null[0] + 1e-12).mean()]
        assert row["observed"] == pytest.approx(null[0])
        assert row["p"] == pytest.approx(min(1, 2 * min(tails)))
        assert row[["low", "high"]].tolist() == pytest.approx(np.quantile(null, [0.025, 0.975]).tolist())


def test_observed_is_the_curve_s_own(rng):
    """Whatever the order of the rows, and with unequal levels."""
    noise = np.array([0, 2, 1, 1, 3, 0, 2, 2, 3, 0])
    accuracy = rng.random(10)
    values = pd.DataFrame(rng.random((10, len(ALL))), columns=[s.label for s in ALL])
    table = specification_table(values, accuracy, noise, draws=9)
    found = curve_test(values, accuracy, noise, rng)
    for hypothesis, group in table.groupby("hypothesis"):
        effect = group["predicted"] * group["rho"]
        assert one(found, MEDIAN, hypothesis)["observed"] == pytest.approx(effect.median())
        assert one(found, SHARE, hypothesis)["observed"] == pytest.approx(group["agrees"].mean())


def test_measures_that_follow_accuracy_are_found_in_their_direction(rng):
    accuracy = 1 - NOISE
    values = {s.label: s.predicted * accuracy + rng.normal(0, 0.02, NOISE.size) for s in ALL}
    found = curve_test(pd.DataFrame(values), accuracy, NOISE, rng)
    assert (found["observed"] > 0.95).all()
    assert found.loc[found["statistic"] == MEDIAN, "p"].tolist() == pytest.approx([2 / 120] * 2)
    turned = curve_test(-pd.DataFrame(values), accuracy, NOISE, rng)
    assert turned.loc[turned["statistic"] == MEDIAN, "observed"].max() < -0.95
    assert turned.loc[turned["statistic"] == MEDIAN, "p"].tolist() == pytest.approx([2 / 120] * 2)


def test_agreement_that_comes_from_the_networks_alone_is_no_evidence(rng):
    """All specifications see the same accident: nearly all signs agree, yet the test errs at its level only."""
    noise, p, shares = np.repeat(np.arange(8), 3), [], []
    for _ in range(200):
        accident = rng.normal(size=8)[noise] + rng.normal(0, 0.3, noise.size)
        values = accident[:, None] + rng.normal(0, 0.3, (noise.size, 20))
        row = curve_test(pd.DataFrame(values, columns=H2[:20]), -noise, noise, rng, permutations=199)
        p.append(one(row, MEDIAN)["p"])
        shares.append(one(row, SHARE)["observed"])
    one_sided = np.mean((np.array(shares) <= 0.1) | (np.array(shares) >= 0.9))
    assert one_sided > 0.5
    assert 0.01 < np.mean(np.array(p) <= 0.05) < 0.09


def test_constant_measures_have_no_effect_and_no_sign(rng):
    found = curve_test(pd.DataFrame({PRIMARY_H2.label: np.ones(NOISE.size)}), 1 - NOISE, NOISE, rng)
    assert found["observed"].tolist() == [0, 0]
    assert found["p"].tolist() == [1, 1]


def test_many_levels_are_permuted_at_random(rng):
    noise = np.arange(12)
    found = curve_test(pd.DataFrame({PRIMARY_H3.label: noise}), -noise, noise, rng, permutations=99)
    assert one(found, MEDIAN, "H3")["p"] == pytest.approx(2 / 100)


def test_bad_input_is_refused(rng):
    values = pd.DataFrame({PRIMARY_H2.label: np.arange(15.0)})
    with pytest.raises(ValueError, match="columns of values must be labels of specifications"):
        curve_test(values.rename(columns={PRIMARY_H2.label: "Q"}), NOISE, NOISE, rng)
    with pytest.raises(ValueError, match="accuracies and noise must be one per row of values, 15"):
        curve_test(values, NOISE[:3], NOISE, rng)
    with pytest.raises(ValueError, match="noise must take at least 3 levels, received 1"):
        curve_test(values, NOISE, NOISE * 0, rng)
    with pytest.raises(ValueError, match="accuracies must be finite"):
        curve_test(values, NOISE * np.nan, NOISE, rng)
    with pytest.raises(ValueError, match="values must be finite"):
        curve_test(values * np.nan, NOISE, NOISE, rng)


def test_readings_follow_their_rule():
    def tests(median: float, agrees: float, p: float) -> pd.DataFrame:
        rows = [("H2", MEDIAN, median, -0.4, 0.4, p), ("H2", SHARE, agrees, 0.1, 0.9, 1.0)]
        return pd.DataFrame(rows, columns=["hypothesis", "statistic", "observed", "low", "high", "p"])

    cases = {
        "a": (tests(0.7, 0.9, 0.001), "holds"),
        "b": (tests(0.7, 0.89, 0.001), "depends"),
        "c": (tests(-0.7, 0.1, 0.001), "opposite"),
        "d": (tests(0.7, 1.0, 0.06), "not shown"),
    }
    found = readings({name: table for name, (table, _) in cases.items()}).set_index("dataset")
    assert found["reading"].to_dict() == {name: word for name, (_, word) in cases.items()}
    expected = stats.false_discovery_control([0.001, 0.001, 0.001, 0.06])
    assert found["adjusted"].tolist() == pytest.approx(expected.tolist())
    assert readings({"e": tests(0.7, 1.0, 0.05)})["reading"].tolist() == ["holds"]


def test_networks_of_the_grid_at_their_last_epoch(tmp_path):
    tasks = [
        replace(task, extras=("specifications",) if "noise" in task.parts else ())
        for task in Study(seeds=1, epochs=2, model="mlp:12-6").tasks()
    ]
    compute_missing(tasks, jobs=1)
    live = collect("digits", tasks, about_data(load_dataset("digits")), 0)
    write_archive(tmp_path / "digits", live)
    for results in (live, read_archive(tmp_path / "digits", "digits")):
        values, accuracies, noise = grid_values(results)
        assert values.columns.tolist() == [s.label for s in ALL]
        assert len(values) == len(accuracies) == len(NOISE_LEVELS)
        assert noise.tolist() == sorted(noise)
        table = results.table.set_index(["run", "epoch"])
        for run, accuracy in zip(values.index, accuracies, strict=True):
            assert table.loc[(run, 2), "test_accuracy"] == accuracy
            assert table.loc[(run, 2), "modularity"] == pytest.approx(values.loc[run, PRIMARY_H2.label])
            assert table.loc[(run, 2), "pattern_entropy"] == pytest.approx(values.loc[run, PRIMARY_H3.label])
    without = replace(live, table=live.table[live.table["parts"] == "conditions"])
    with pytest.raises(ValueError, match="results must have a grid of label noise, received those of 'digits'"):
        grid_values(without)
    with pytest.raises(ValueError, match="extra must be one of none, received 'specifications'"):
        grid_values(replace(live, extras={}))
