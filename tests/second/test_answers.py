"""The whole way from tables to words, on simulated studies whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nbutils.second.answers import NOTHING, answer_all, answer_one, course, sound, values_of
from nbutils.second.leaderboard import detection
from nbutils.second.networks import Tables, read_tables, write_tables
from nbutils.second.questions import PROTOCOL, QUESTIONS
from nbutils.second.zoo import AXES, zoo_members

ASKED = {question.name: question for question in QUESTIONS}
MEMBERS = zoo_members("digits")
MEASURES = ("modularity", "active_entropy", "block_entropy", *PROTOCOL.baselines)
EPOCHS = 12


def simulated(
    rng: np.random.Generator, q: float = 0.0, own: float = 0.0, run: float = 0.0, excess: float = 0.3
) -> Tables:
    """A study in which modularity follows performance by q, performance follows it beyond baselines by `own`.

    `run` is how strongly a run's departures in modularity and accuracy go together, `excess` what a trained network's
    modularity is above chance. Entropies have nothing to do with anything.
    """
    rows, measures, series = [], [], []
    effects = {axis: rng.normal(size=3) for axis in AXES}
    latent = np.array([sum(effects[a][list(AXES[a]).index(v)] for a, v in m.settings.items()) for m in MEMBERS])
    latent = latent / latent.std()
    family = rng.normal(size=len(MEMBERS))[[m.family for m in MEMBERS]]
    beyond = (family + rng.normal(size=len(MEMBERS))) / np.sqrt(2)
    accuracy = latent + own * beyond + 0.2 * rng.normal(size=len(MEMBERS))
    values = {name: rng.normal(size=len(MEMBERS)) for name in MEASURES}
    values["train_loss"] = -latent + 0.02 * rng.normal(size=len(MEMBERS))
    values["modularity"] = 0.5 + 0.1 * (q * latent + beyond)
    for number, member in enumerate(MEMBERS):
        rows.append(
            network(f"zoo{number}", "small", accuracy[number], member.family, member.axis, member.configuration)
        )
        for name in MEASURES:
            for part, error in (("whole", 0.0), ("first", 0.01), ("second", 0.01)):
                measures.append((f"zoo{number}", 5, part, name, values[name][number] + error * rng.normal()))
    drift = 1 - np.exp(-np.arange(EPOCHS) / 4)
    for seed in range(10):
        rows.append(network(f"run{seed}", "runs+grid", 0.9))
        shared, alone = rng.normal(size=(2, EPOCHS))
        level = rng.normal()
        for name in ("modularity", "active_entropy", "block_entropy"):
            bond = run if name == "modularity" else 0.0
            wave = bond * shared + np.sqrt(1 - bond**2) * (alone if name == "modularity" else rng.normal(size=EPOCHS))
            for part in ("whole", "first", "second"):
                seen = wave + 0.1 * rng.normal(size=EPOCHS)
                series += [(f"run{seed}", t, part, name, v) for t, v in enumerate(5 * drift + level + seen)]
        series += [(f"run{seed}", t, "whole", "train_accuracy", v) for t, v in enumerate(3 * drift + shared)]
        for epoch, value in ((0, 0.1), (EPOCHS, 0.1 + excess)):
            for name, own_value in (("excess", value), ("remainder", 0.005)):
                measures.append((f"run{seed}", epoch, "whole", name, own_value + 0.005 * rng.normal()))
    long = ["run", "epoch", "part", "measure", "value"]
    costs = pd.DataFrame([("zoo0", "graph", 0.1)], columns=["run", "entry", "seconds"])
    return Tables(pd.DataFrame(rows), pd.DataFrame(measures, columns=long), pd.DataFrame(series, columns=long), costs)


def network(run: str, designs: str, accuracy: float, family: int = -1, axis: str = "", configuration: int = -1) -> dict:
    fixed = {"status": "done", "degenerate": False, "labels": "true", "noise": 0.0, "accuracy": accuracy}
    return {"run": run, "designs": designs, "family": family, "axis": axis, "configuration": configuration, **fixed}


def words(tables: Tables, *names: str) -> dict[str, str]:
    asked = [ASKED[name] for name in names] or QUESTIONS
    return {answer.question.name: answer.word for answer in answer_all({"kmnist": tables}, asked)}


def test_without_any_effect_nothing_is_supported():
    found = words(simulated(np.random.default_rng(1), excess=0.0))
    assert found["H1 beyond chance"] == "supported", "untrained networks have some, too"
    assert found["H1 by training"] == "no association"
    assert found["H1 beyond class preference"] == "no association"
    assert found["H2 performance"] in ("no association", "undecided")
    assert found["H2 within runs"] in ("no association", "undecided")
    assert found["H2 added"] == "no association"
    assert found["H2 the paper's statistic, untrained included"] == "supported", (
        "all runs drift alike: that is no effect"
    )


def test_an_effect_through_performance_is_supported_and_its_reverse_contradicted():
    names = "H2 performance", "H2 within runs", "H1 by training", "H2 added"
    found = words(simulated(np.random.default_rng(2), q=2.0, run=0.9), *names)
    assert found["H2 performance"] == found["H2 within runs"] == found["H1 by training"] == "supported"
    assert found["H2 added"] == "no association", "training loss knows all of it"
    against = words(simulated(np.random.default_rng(2), q=-2.0, run=-0.9), *names[:2])
    assert against["H2 performance"] == against["H2 within runs"] == "contradicted"


def with_noise(tables: Tables, rng: np.random.Generator, slope: float) -> Tables:
    """The same study with a grid of eight shares of redrawn labels, five seeds each: accuracy falls with the share, and
    so does modularity, by `slope`."""
    rows, measures = [], []
    for number, (share, seed) in enumerate((share, seed) for share in np.linspace(0, 0.9, 8) for seed in range(5)):
        row = network(f"grid{number}", "grid", 1.0 - share + 0.02 * rng.normal())
        rows.append(row | {"noise": share, "labels": "noisy" if share else "true", "seed": seed})
        q = 0.5 - slope * share + 0.02 * rng.normal()
        measures.append((f"grid{number}", 5, "whole", "modularity", q))
    networks = pd.concat([tables.networks, pd.DataFrame(rows)], ignore_index=True)
    more = pd.DataFrame(measures, columns=tables.measures.columns)
    return replace(tables, networks=networks, measures=pd.concat([tables.measures, more], ignore_index=True))


def test_an_effect_through_noise_alone_detects_noise_and_is_no_word_about_performance():
    asked = "H2 performance", "H2 within runs", "H2 added"
    for number in range(3):
        rng = np.random.default_rng(20 + number)
        clean = simulated(rng)
        study = with_noise(clean, rng, slope=0.5)
        grid, _ = sound(study, "grid")
        naive = stats.spearmanr(
            values_of(study, grid, ["modularity"])["modularity"], grid["accuracy"], nan_policy="omit"
        )
        assert naive.statistic > 0.9, "who pools levels of noise would call it support"
        found = words(study, *asked)
        assert found == words(clean, *asked), "no network with wrong labels decides about performance"
        assert set(found.values()) <= {"no association", "undecided"}
        seen = detection(study, ["modularity"]).iloc[0]
        assert seen["noise_rho"] < -0.9
        assert seen["detects"] > 0.95
    blind = detection(with_noise(clean, rng, slope=0.0), ["modularity"]).iloc[0]
    assert blind["detects"] < 0.8, "without an effect it is close to a coin"


def test_what_cheaper_measures_do_not_know_is_added():
    found = words(simulated(np.random.default_rng(3), own=1.0), "H2 added", "H2 performance")
    assert found["H2 added"] == found["H2 performance"] == "supported"


def test_a_measure_that_cannot_vary_is_not_measurable_whatever_it_seems_to_say():
    tables = simulated(np.random.default_rng(4), q=2.0)
    flat = tables.measures["measure"] == "modularity"
    tables.measures.loc[flat, "value"] = 0.5 + 0.01 * (tables.measures.loc[flat, "value"] - 0.5)
    assert words(tables, "H2 performance")["H2 performance"] == "not measurable"
    noisy = simulated(np.random.default_rng(4), q=2.0)
    halves = (noisy.measures["measure"] == "modularity") & (noisy.measures["part"] != "whole")
    noisy.measures.loc[halves, "value"] += np.random.default_rng(0).normal(size=halves.sum())
    assert words(noisy, "H2 performance")["H2 performance"] == "not measurable"


def test_degenerate_and_failed_networks_decide_nothing():
    tables = simulated(np.random.default_rng(5), q=2.0)
    before = answer_one("kmnist", tables, ASKED["H2 performance"])
    wild = tables.networks.copy()
    chosen = wild.index[wild["designs"] == "small"][:30]
    wild.loc[chosen[:20], "degenerate"] = True
    wild.loc[chosen[20:], "status"] = "failed"
    wild.loc[chosen, "accuracy"] = -100.0
    after = answer_one("kmnist", replace(tables, networks=wild), ASKED["H2 performance"])
    assert (before.networks, before.degenerate) == (336, 0)
    assert (after.networks, after.degenerate) == (306, 30)
    assert after.estimate.value == pytest.approx(before.estimate.value, abs=0.05)
    wild.loc[wild.index[wild["designs"] == "small"][:150], "degenerate"] = True
    few = answer_one("kmnist", replace(tables, networks=wild), ASKED["H2 performance"])
    assert not few.enough
    assert replace(few, adjusted=0.0).word == "undecided"


def test_the_amended_p_value_of_a_mean_is_that_of_the_t_test_whose_interval_decides():
    tables = simulated(np.random.default_rng(7))
    answer = answer_one("kmnist", tables, ASKED["H1 beyond chance"])
    runs, _ = sound(tables, "runs", "true")
    values = values_of(tables, runs, ["excess"])["excess"]
    assert answer.amended_p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=1e-9)
    assert answer.estimate.p_value == 2 / 1024
    signs = answer_one("kmnist", tables, ASKED["H2 the paper's statistic, untrained included"])
    ranks = answer_one("kmnist", tables, ASKED["H2 performance"])
    assert [one.amended_p for one in (signs, ranks)] == [one.estimate.p_value for one in (signs, ranks)]
    assert np.isnan(replace(answer, estimate=NOTHING).amended_p)


def test_ten_runs_pass_the_correction_for_many_questions_only_by_the_amended_rule():
    """Forty data sets, each with a clear mean over ten runs: 2/1,024 times 40 is more than 0.05."""
    rng, asked = np.random.default_rng(8), [ASKED["H1 beyond chance"], ASKED["H1 beyond class preference"]]
    many = answer_all({f"folder:{k}": simulated(rng) for k in range(40)}, asked)
    chance = [answer for answer in many if answer.question is asked[0]]
    assert {answer.word for answer in chance} == {"undecided"}
    assert {answer.amended_word for answer in chance} == {"supported"}
    assert {answer.told for answer in chance} == {"undecided, amended: supported"}
    assert "supported" not in {answer.amended_word for answer in many if answer.question is asked[1]}
    assert all(answer.amended <= answer.adjusted + 1e-12 for answer in chance)


def test_a_value_that_is_not_defined_leaves_its_network_out():
    tables = simulated(np.random.default_rng(6))
    tables.measures.loc[
        tables.measures["run"].isin(["zoo3", "run2"]) & (tables.measures["part"] == "whole"), "value"
    ] = np.nan
    assert answer_one("kmnist", tables, ASKED["H2 performance"]).networks == 335
    assert answer_one("kmnist", tables, ASKED["H1 beyond chance"]).networks == 9


def test_confirmatory_questions_are_adjusted_by_themselves():
    tables = simulated(np.random.default_rng(7), q=2.0, run=0.9)
    quick = [question for question in QUESTIONS if question.design == "runs"]
    one = {answer.question.name: answer for answer in answer_all({"kmnist": tables}, quick)}
    both = {(a.dataset, a.question.name): a for a in answer_all({"kmnist": tables, "mnist": tables}, quick)}
    assert all(answer.confirmatory for answer in one.values())
    for name, answer in one.items():
        assert both["kmnist", name].adjusted == answer.adjusted or np.isnan(answer.adjusted)
        assert not both["mnist", name].confirmatory
    p = sorted(a.estimate.p_value for a in one.values() if np.isfinite(a.estimate.p_value))
    least = min(a.adjusted for a in one.values())
    assert least == pytest.approx(p[0] * len(p))


def test_a_study_without_a_zoo_answers_what_it_can():
    tables = simulated(np.random.default_rng(8))
    runs = replace(tables, networks=tables.networks[tables.networks["designs"] != "small"])
    names = set(words(runs, "H1 beyond chance", "H2 performance"))
    assert "H1 beyond chance" in names
    assert "H2 performance" not in names


def test_values_keep_the_order_of_networks(rng):
    tables = simulated(rng)
    networks, _ = sound(tables, "small", "true")
    shuffled = networks.sample(frac=1, random_state=0)
    values = values_of(tables, shuffled, ["modularity", "train_loss"])
    at = values_of(tables, networks, ["modularity"]).set_index(networks["run"])["modularity"]
    assert values["modularity"].tolist() == at.loc[shuffled["run"]].tolist()
    runs, _ = sound(tables, "runs")
    assert course(tables, runs, "train_accuracy", first=1).shape == (10, EPOCHS - 1)


def test_tables_come_back_as_they_were_written(tmp_path, rng):
    tables = simulated(rng)
    write_tables(tmp_path / "kmnist", tables)
    back = read_tables(tmp_path / "kmnist")
    names = "H1 by training", "H2 performance", "H2 within runs"
    assert words(back, *names) == words(tables, *names)
    again = {path.name: path.read_bytes() for path in (tmp_path / "kmnist").iterdir()}
    write_tables(tmp_path / "kmnist", back)
    assert {path.name: path.read_bytes() for path in (tmp_path / "kmnist").iterdir()} == again
    (tmp_path / "kmnist/series.parquet").write_bytes(b"no table")
    with pytest.raises(ValueError, match=r"series\.parquet is damaged"):
        read_tables(tmp_path / "kmnist")
    (tmp_path / "kmnist/series.parquet").unlink()
    with pytest.raises(FileNotFoundError, match="run python -m nbutils replicate kmnist in the project's folder"):
        read_tables(tmp_path / "kmnist")
