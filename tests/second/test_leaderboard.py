"""Every measure judged alike: on simulated zoos and grids whose truth is known, and against other libraries."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from nbutils.second import tasks
from nbutils.second.answers import answer_all, answer_table, joint_answers, read_answers
from nbutils.second.leaderboard import ALONG, detection, leaderboard, refutations, zoo_axes
from nbutils.second.networks import Tables
from nbutils.second.questions import PROTOCOL
from nbutils.second.tasks import EARLY, choose_epoch, tell_random_labels, tell_wrong_labels
from nbutils.second.zoo import AXES, SHAPE, zoo_members

MEMBERS = zoo_members("kmnist")
NOISE = (0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 1.0)
JUDGED = ("modularity", "class_selectivity", "linear_regions", "path_norm", "mutual_information", "excess")


@cache
def simulated() -> Tables:
    """Modularity follows the number of images only, selectivity performance, regions nothing; path norm the noise."""
    rng, rows, measures = np.random.default_rng(0), [], []
    images = np.log([member.run.examples for member in MEMBERS])
    rate = np.log([member.run.learning_rate for member in MEMBERS])
    accuracy = (
        0.5 + 0.05 * (images - images.mean()) + 0.05 * (rate - rate.mean()) + 0.005 * rng.normal(size=len(MEMBERS))
    )
    values = {"modularity": images, "class_selectivity": accuracy, "linear_regions": rng.normal(size=len(MEMBERS))}
    values |= {name: rng.normal(size=len(MEMBERS)) for name in {*PROTOCOL.baselines, "excess"} - set(values)}
    for number, member in enumerate(MEMBERS):
        known = {"family": member.family, "axis": member.axis, "configuration": member.configuration}
        rows.append({"run": f"zoo{number}", "designs": "small", **known, **_about(member.run, accuracy[number])})
        for name in values:
            error = 5.0 if name == "excess" else 1e-3
            for part in ("whole", "first", "second"):
                seen = values[name][number] + error * rng.normal() * (part != "whole")
                measures.append((f"zoo{number}", 5, part, name, seen))
    for number, (noise, seed) in enumerate((noise, seed) for noise in NOISE for seed in range(5)):
        rows.append({"run": f"grid{number}", "designs": "grid", **_about(MEMBERS[0].run, 0.9 - noise)})
        rows[-1] |= {"noise": noise, "seed": seed}
        for name in values:
            level = noise if name == "path_norm" else 0.3 * noise if name == "modularity" else 0.0
            measures.append((f"grid{number}", 5, "whole", name, level + 0.1 * rng.normal()))
    long = ["run", "epoch", "part", "measure", "value"]
    costs = pd.DataFrame([("zoo0", "graph", 0.5), ("zoo1", "graph", 1.5)], columns=["run", "entry", "seconds"])
    return Tables(pd.DataFrame(rows), pd.DataFrame(measures, columns=long), pd.DataFrame(columns=long), costs)


def _about(run, accuracy: float) -> dict:
    fixed = {"status": "done", "degenerate": False, "accuracy": accuracy, "test_images": 2000, "noise": 0.0}
    return {**run.model_dump(), **fixed}


@cache
def board() -> pd.DataFrame:
    return leaderboard(simulated(), measures=JUDGED).set_index("measure")


def test_axes_are_those_of_the_members():
    found = zoo_axes(pd.DataFrame([member.run.model_dump() for member in MEMBERS]))
    assert set(found) == set(AXES)
    for name in SHAPE:
        assert found[name].tolist() == [member.settings[name] for member in MEMBERS]


def test_what_follows_performance_comes_first_and_what_knows_one_axis_does_not_fool_the_others():
    found = board()
    assert found.index[0] == "class_selectivity"
    assert found.loc["class_selectivity", ["rho", "kendall", "granulated", "information"]].min() > 0.99
    assert found.loc["class_selectivity", "sign_error"] == 0
    q = found.loc["modularity"]
    assert q["rho"] > 0.5, "it knows the number of images, and that matters"
    assert q["granulated"] < 0.3, "along seven of eight axes it knows nothing"
    along = found.filter(like=ALONG)
    assert set(along) == {f"{ALONG}{axis}" for axis in AXES}
    assert np.allclose(along.mean(axis=1), found["granulated"])
    assert along.loc["modularity"].idxmax() == f"{ALONG}examples"
    assert along.loc["modularity", f"{ALONG}examples"] > 0.9
    assert q["information"] == pytest.approx(0, abs=0.02), "given the number of images, nothing is left"
    assert q["sign_error"] == 0.5, "a coin wherever something else changes"
    assert abs(q["worst_axis_kendall"]) < 1e-9
    assert abs(found.loc["linear_regions", "rho"]) < 0.2
    assert found.loc["linear_regions", "adjusted"] > 0.05
    assert found.loc["class_selectivity", "gain"] > 0.5
    assert found.loc["linear_regions", "gain_high"] < 0.02


def test_reliability_cost_and_false_discoveries():
    found = board()
    assert found.loc["class_selectivity", "reliability"] > 0.99
    assert not found.loc["excess", "measurable"], "its two halves disagree"
    assert found.loc["modularity", "seconds"] == 1.0, "the median"
    tested = found["p_value"]
    assert np.allclose(found["adjusted"], stats.false_discovery_control(tested))
    assert found["networks"].eq(len(MEMBERS)).all()


def test_detection_is_the_area_under_the_curve():
    found = detection(simulated(), JUDGED).set_index("measure")
    rows = simulated().measures
    grid = simulated().networks.query("designs == 'grid'").set_index("run")
    for name in ("path_norm", "modularity", "linear_regions"):
        own = rows[rows["run"].isin(grid.index) & (rows["measure"] == name)].set_index("run")["value"]
        noise = grid.loc[own.index, "noise"]
        area = roc_auc_score(noise >= 0.25, own)
        rho = stats.spearmanr(own, noise).statistic
        assert found.loc[name, "noise_rho"] == pytest.approx(rho)
        assert found.loc[name, "detects"] == pytest.approx(area if rho >= 0 else 1 - area)
        assert found.loc[name, "detects_low"] <= found.loc[name, "detects"] <= found.loc[name, "detects_high"]
    assert found.loc["path_norm", "detects"] > 0.95
    assert found.loc["linear_regions", "detects_low"] < 0.6


def test_changes_that_ought_not_to_matter():
    found = refutations(simulated(), ["modularity", "class_selectivity"], shuffles=50).set_index("change")
    assert found.loc["as on the board", "class_selectivity"] == pytest.approx(board().loc["class_selectivity", "rho"])
    assert found["class_selectivity"].drop("accuracies permuted, largest of 50").min() > 0.9
    fixed = [change for change in found.index if "training images only" in change]
    assert len(fixed) == 3
    assert found.loc[fixed, "modularity"].abs().max() == 0, "it knew nothing else"
    dropped = [change for change in found.index if "left out" in change]
    assert len(dropped) == len(AXES)
    assert found.loc[dropped, "networks"].eq(len(MEMBERS) * 7 // 8).all()
    halves = found.loc[[change for change in found.index if change.startswith("seed")], "networks"]
    assert halves.tolist() == [len(MEMBERS) // 2] * 2
    assert found.loc["accuracies permuted, largest of 50", "class_selectivity"] < 0.25


def test_a_seed_is_the_same_seed_in_whatever_order_networks_stand():
    """Committed tables are sorted by address, in which the seeds of a configuration come in any order."""
    tables = simulated()
    mixed = tables.networks.sample(frac=1, random_state=1).reset_index(drop=True)
    found = refutations(replace(tables, networks=mixed), ["path_norm"], shuffles=1).set_index("change")
    value = tables.measures.query("part == 'whole' and measure == 'path_norm'").set_index("run")["value"]
    zoo = tables.networks.query("designs == 'small'")
    for number in (0, 1):
        own = zoo[zoo["seed"] % 2 == number]
        rho = stats.spearmanr(value[own["run"]], own["accuracy"]).statistic
        assert found.loc[f"seed {number + 1} of each configuration", "path_norm"] == pytest.approx(rho)


def test_what_cannot_be_judged_is_refused():
    with pytest.raises(ValueError, match="measures must be columns of candidates, received 'luck'"):
        leaderboard(simulated(), measures=["luck"])
    with pytest.raises(ValueError, match="at least 3 families of sound networks, received 0"):
        leaderboard(simulated(), "paper")


def test_answers_come_back_from_their_table(tmp_path):
    found = answer_all({"kmnist": simulated()})
    answer_table(found).to_csv(tmp_path / "answers.csv", index=False)
    again = joint_answers([read_answers(tmp_path)])
    assert [one.word for one in again] == [one.word for one in found]
    assert [one.adjusted for one in again] == pytest.approx([one.adjusted for one in found], nan_ok=True)
    assert [one.reliability for one in again] == [one.reliability for one in found]
    twice = joint_answers([read_answers(tmp_path)] * 2)
    tested = [one.adjusted for one in again if one.adjusted < 0.5]
    assert tested
    assert max(one.adjusted for one in twice) >= max(tested), "more tests, larger p values"
    wrong = read_answers(tmp_path).assign(question="H9")
    with pytest.raises(ValueError, match="question must be one of the 18 that were asked, received 'H9'"):
        joint_answers([wrong])


def courses(**measures: list[list[float]]) -> Tables:
    """Two runs with true labels, then two with random ones; a row of each measure per run, from epoch 0 on."""
    rows = [
        {"run": f"r{number}", "designs": "runs", "labels": labels, "status": "done", "degenerate": False}
        for number, labels in enumerate(("true", "true", "random", "random"))
    ]
    series = [
        (f"r{number}", epoch, "whole", name, value)
        for name, values in measures.items()
        for number, row in enumerate(values)
        for epoch, value in enumerate(row)
    ]
    long = ["run", "epoch", "part", "measure", "value"]
    none = pd.DataFrame()
    return Tables(pd.DataFrame(rows), none, pd.DataFrame(series, columns=long), none)


def test_choosing_an_epoch_by_hand():
    same = [[0.0] * 4] * 4
    tables = courses(
        test_accuracy=[[0, 0.5, 0.9, 0.8], [0, 0.6, 0.7, 0.9], *same[2:]],
        modularity=[[0, 1, 3, 2], [0, 3, 1, 2], *same[2:]],
        active_entropy=same,
        block_entropy=[[9, 3, 2, 1], [9, 3, np.nan, 1], *same[2:]],
        train_loss=[[9, 3, 2, 1], [9, 3, 2, 1], *same[2:]],
        train_accuracy=same,
    )
    found = choose_epoch({"A": tables}).set_index("way")["A"]
    assert found["the last epoch"] == pytest.approx((0.1 + 0) / 2)
    assert found["largest modularity Q"] == pytest.approx((0 + 0.3) / 2)
    assert found["smallest modularity Q"] == pytest.approx((0.4 + 0.2) / 2)
    assert found["smallest entropy of blocks of six"] == pytest.approx(0.1), "only the run that has it at every epoch"
    assert found["smallest training loss"] == found["the last epoch"]
    assert found["any epoch, at random"] == pytest.approx((0.5 / 3 + (0.3 + 0.2) / 3) / 2)
    both = choose_epoch({"A": tables, "B": tables})
    assert both["mean"].is_monotonic_increasing
    assert (both["low"] <= both["mean"]).all()
    assert (both["mean"] <= both["high"]).all()
    last = both.set_index("way").loc["the last epoch"]
    assert (last["low"], last["high"]) == pytest.approx((0, 0.1)), "of two runs, drawn with replacement"


def test_telling_random_labels_by_hand():
    flat = [[0.0] * 4] * 4
    tables = courses(
        modularity=[[0, 3, 3, 3], [0, 4, 4, 4], [0, 1, 3.5, 9], [0, 2, 3.5, 9]],
        active_entropy=flat,
        block_entropy=[[0, 1, 1, np.nan], [0, 1, 1, np.nan], [0, 2, 0, 1], [0, 2, 0, 1]],
        train_loss=flat,
        train_accuracy=flat,
    )
    rows = tell_random_labels({"A": tables}).set_index(["measure", "epoch"])
    assert rows.loc["modularity Q", "area"].tolist()[:3] == [1.0, 0.5, 0.0]
    assert rows.loc["entropy of blocks of six", "area"].tolist()[:2] == [1.0, 0.0]
    assert np.isnan(rows.loc[("entropy of blocks of six", 3), "area"])
    assert rows.loc[("training loss", 1), "area"] == 0.5
    assert rows.loc[("modularity Q", 1), ["networks", "low", "high"]].tolist() == [2, 1, 1]
    assert rows.loc[("modularity Q", 2), ["low", "high"]].tolist() == [0, 1]
    assert rows.xs(EARLY[-1], level="epoch")["area"].isna().all(), "the series is shorter"
    tables.networks["degenerate"] = True
    assert tell_random_labels({"A": tables})["area"].equals(rows["area"].reset_index(drop=True)), "nobody knows early"
    tables.networks["labels"] = "true"
    assert tell_random_labels({"A": tables})["area"].isna().all()


def test_the_area_is_that_of_scipy(rng):
    first, second = rng.normal(0.5, 1, 9).round(1), rng.normal(0, 1, 12).round(1)  # with ties
    area, low, high = tasks._area(first, second)
    assert area == pytest.approx(stats.mannwhitneyu(first, second).statistic / (9 * 12))
    assert low < area < high


def test_telling_wrong_labels_learns_the_direction_elsewhere():
    rows = [("A", "q", -0.5, 0.9, 0.8, 1.0), ("B", "q", -0.6, 1.0, 1.0, 1.0), ("C", "q", 0.1, 0.6, 0.5, 0.8)]
    rows += [("A", "once", 0.5, 1.0, 1.0, 1.0), ("B", "once", np.nan, np.nan, np.nan, np.nan)]
    names = ["dataset", "measure", "noise_rho", "detects", "detects_low", "detects_high"]
    found = tell_wrong_labels(pd.DataFrame(rows, columns=names).assign(called="it"))
    assert found["measure"].tolist() == ["q"], "one data set teaches nothing"
    row = found.iloc[0]
    assert row["area"] == pytest.approx((0.9 + 1.0 + 0.4) / 3)
    assert row[["worst", "low", "high"]].tolist() == pytest.approx([0.4, 0.2, 0.5])
