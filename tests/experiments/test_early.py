"""The first two epochs: looks change nothing, half-way steps by hand, and simulated worlds get their words."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from nbutils.cli import main
from nbutils.experiments import early as module
from nbutils.experiments.designs import EXPERIMENTS
from nbutils.experiments.early import (
    ASKED,
    EARLY_RULES,
    chance_steps,
    early_probe,
    early_rows,
    early_seconds,
    early_trials,
    step_count,
)
from nbutils.experiments.figures import early_figure, leads_figure
from nbutils.experiments.leads import (
    early_verdicts,
    half_way_step,
    half_way_steps,
    lagged_correlations,
    lead_estimate,
)
from nbutils.experiments.trials import Trial, outcomes
from nbutils.measures import MeasureSpec, measure_matched
from nbutils.runs.looks import look_at
from nbutils.runs.recording import watch_training
from nbutils.runs.run import run_address, run_once
from nbutils.runs.spec import RunSpec
from nbutils.second.questions import PROTOCOL
from nbutils.stats import correlation, holm
from nbutils.study.cases import compute_cases, missing_cases, read_cases

SMALL = {"model": "mlp:24-16", "epochs": 2, "batch_size": 300, "every_epoch": False}
IMAGES = {"model": "vgg:4-8", "epochs": 2, "batch_size": 300, "every_epoch": False}


def small(count=1, **more):
    return [Trial(RunSpec(**{**SMALL, **more, "seed": seed}), "small") for seed in range(count)]


@pytest.fixture(scope="module")
def looked():
    (trial,) = small()
    return trial, pd.DataFrame(early_rows(trial))


@pytest.mark.parametrize("settings", [SMALL, IMAGES, {**SMALL, "dropout": 0.3}, {**SMALL, "activation": "tanh"}])
def test_a_network_that_is_watched_is_the_run(settings):
    spec, looks = RunSpec(**settings), []
    weights = watch_training(spec, lambda network, batch: looks.append((network.training, batch)))
    network = run_once(spec).network()
    assert set(weights) == set(network.state_dict())
    for name, values in network.state_dict().items():
        assert np.array_equal(weights[name], values.numpy()), name
    assert len(looks) == 1 + step_count(spec) == 11
    assert looks[0][1] is None
    assert [len(batch[1]) for _, batch in looks[1:]] == [300, 300, 300, 300, 237] * 2


def test_looks_change_no_weights(looked):
    trial, _ = looked
    watcher, network = module._Watcher(trial), run_once(trial.run).network()
    weights = watch_training(trial.run, watcher)
    assert all(np.array_equal(weights[name], values.numpy()) for name, values in network.state_dict().items())


def test_a_watched_run_may_not_end_early():
    with pytest.raises(ValueError, match=r"stop_at must be left as it is for a run that is watched, received 0\.9"):
        watch_training(RunSpec(stop_at=0.9), lambda *_: None)


def test_first_and_last_looks_are_those_of_the_run(looked):
    trial, rows = looked
    run = run_once(trial.run)
    for epoch, row in ((0, rows.iloc[0]), (-1, rows.iloc[-1])):
        look = look_at(run, epoch)
        found = outcomes(look)
        for name in ("active", "active_entropy", "block_entropy"):
            assert row[name] == pytest.approx(found[name], abs=1e-12), name
        spec = MeasureSpec(density=PROTOCOL.density, seeds=1, null_draws=0)
        graph = measure_matched(look.fired, look.labels, trial.run.seed, trial.size, spec, PROTOCOL.draws)
        assert row["modularity"] == pytest.approx(graph["modularity"], abs=1e-12)
        assert row["modularity"] == pytest.approx(found["modularity"], abs=1e-12)
        assert row["excess"] == pytest.approx(found["excess"], abs=0.1)  # other cells, so other draws of chance
        assert row["accuracy"] == (look.predicted == look.labels).mean()


def test_rows_say_all_that_a_reader_needs(looked):
    trial, rows = looked
    assert rows["step"].tolist() == list(range(11))
    assert (rows["run"] == run_address(trial.run)).all()
    assert (rows["settings"] == trial.settings).all()
    assert (rows["probe"] == 180).all()
    assert rows["batch_loss"].isna().tolist() == [True] + [False] * 10
    assert rows["step_seconds"].isna().tolist() == [True] + [False] * 10
    assert (rows["watch_seconds"] > 0).all()
    assert rows.loc[rows["excess"].notna(), "step"].tolist() == chance_steps(10)
    assert rows["commit"].notna().all()
    assert rows["batch_loss"].iloc[-1] < rows["batch_loss"].iloc[1]


def test_the_loss_is_of_the_batch_just_learned_from():
    spec, seen = RunSpec(**{**SMALL, "epochs": 1}), []

    def look(network, batch):
        if batch is not None:
            shares = np.exp(network(batch[0]).detach().numpy().astype(float))
            own = shares[np.arange(len(batch[1])), batch[1].numpy()] / shares.sum(axis=1)
            seen.append(-np.log(own).mean())

    watch_training(spec, look)
    rows = early_rows(Trial(spec, "small"))
    assert [row["batch_loss"] for row in rows[1:]] == pytest.approx(seen, rel=1e-5)


def test_the_design_is_that_of_the_rules():
    found = early_trials()
    counts = pd.Series([(one.condition, one.run.dataset) for one in found]).value_counts()
    assert counts.to_dict() == {
        ("256-128", "mnist-10k"): 10,
        ("256-128", "fashion-mnist-10k"): 10,
        ("256-128", "cifar10-10k"): 10,
        ("VGG-like", "cifar10-10k"): 10,
    }
    assert {(one.run.batch_size, one.run.examples, one.run.epochs) for one in found} == {(128, None, 2), (32, 5000, 2)}
    assert {one.size for one in found} == {192, 168}
    assert len({one.settings for one in found}) == len(found)
    rules = EARLY_RULES
    assert (rules.half, rules.window, rules.tail, rules.deviations) == (0.5, 5, 0.1, 3)
    assert (rules.octaves, rules.least, rules.lags, rules.lead) == (0.5, 0.5, 10, 0.1)
    assert rules.digest != replace(rules, lags=9).digest


def test_probes_are_held_out_and_the_same_for_all():
    labels = np.repeat(np.arange(10), 1000)
    whole, part = early_probe(labels, "mlp:256-128"), early_probe(labels, "vgg:4-8")
    assert len(whole) == 2000
    assert len(set(part)) == 500
    assert set(part) < set(whole)
    assert np.bincount(labels[part]).min() > 20
    assert np.array_equal(part, early_probe(labels, "vgg:24-24"))


def test_a_table_has_all_rows_of_a_network_or_none(tmp_path):
    path, design = tmp_path / "early.parquet", small(3, learning_rate=0.002)

    def stop(finished, _wanted):
        if finished == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compute_cases(design, path, early_rows, jobs=1, progress=stop)
    first = read_cases(path)
    assert first["settings"].value_counts().to_dict() == {one.settings: 11 for one in design[:2]}
    first.assign(machine="another").to_parquet(path)
    assert missing_cases(design, path) == design[2:]
    table = compute_cases(design, path, early_rows, jobs=1)
    assert table["settings"].drop_duplicates().tolist() == [one.settings for one in design]
    assert table["step"].tolist() == list(range(11)) * 3
    assert (table["machine"][:22] == "another").all()
    assert missing_cases(design, path) == []


def test_the_command_makes_a_table_with_a_row_for_each_step(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(module, "MLP", {"model": "mlp:16", "batch_size": 500})
    asked = ["experiment", "early", "--datasets", "digits", "--seeds", "2", "--jobs", "1", "--into", str(tmp_path)]
    assert main([*asked, "--plan"]) == 0
    assert "Missing: 2 networks" in capsys.readouterr().out
    assert main(asked) == 0
    assert "early.parquet: 2 networks, 0 failed" in capsys.readouterr().out
    assert read_cases(tmp_path / "early.parquet")["step"].tolist() == [*range(7)] * 2


def test_failed_networks_are_told_and_left_out(monkeypatch):
    bad = pd.DataFrame(early_rows(small(1, learning_rate=1e30)[0]))
    assert "training diverged: after step" in bad["reason"].iloc[0]
    assert len(bad) < 11
    good = [pd.DataFrame(early_rows(one)) for one in small(4)[1:]]
    table = pd.concat([bad, *good])
    assert half_way_steps(table)["seed"].tolist() == [1, 2, 3]
    assert set(early_verdicts(table, replace(EARLY_RULES, lags=2))["of"]) == {4}


def test_a_guess_of_seconds_grows_with_steps():
    one, two = (early_seconds(small(1, epochs=epochs)) for epochs in (1, 2))
    assert two == 2 * one > 0
    assert EXPERIMENTS["early"].seconds(small()) == two


def test_half_way_by_hand():
    jump = [0.0] * 5 + [1.0] * 20
    assert half_way_step(jump) == 5
    assert half_way_step([-x for x in jump]) == 5  # downwards is as good
    assert half_way_step(np.arange(21.0)) == 10  # the last two end at 19.5: half of it is 9.75
    assert half_way_step([0.0, *[1.0] * 20]) == 1
    spike = list(jump)
    spike[1] = 9.0  # a median of five does not see one value
    assert half_way_step(spike) == 5
    assert np.isnan(half_way_step([0.3] * 20))
    assert np.isnan(half_way_step([0.0, *[np.nan] * 20]))


def test_what_goes_no_way_has_no_half_way_step():
    end = np.tile([-0.1, 0.1], 5)  # deviation 0.1054 of the last tenth
    for level, goes in ((0.31, False), (0.33, True)):
        series = np.concatenate([[0.0], np.full(90, level), level + end])
        assert np.isfinite(half_way_step(series)) == goes


def test_bad_input_gets_a_sentence():
    with pytest.raises(ValueError, match="values must hold a value before training and after each step, received"):
        half_way_step([1.0])
    with pytest.raises(ValueError, match="measures must have at least 13 steps for lags up to 10, received 8"):
        lagged_correlations(np.zeros((3, 8)), np.zeros((3, 8)), 10)
    with pytest.raises(ValueError, match="measures and accuracies must both be"):
        lagged_correlations(np.zeros((3, 30)), np.zeros((2, 30)), 10)
    with pytest.raises(ValueError, match="lags"):
        lagged_correlations(np.zeros((3, 30)), np.zeros((3, 30)), 0)


def wander(rng, runs, steps, memory=0.8):
    """Series that remember what they were."""
    noise, series = rng.normal(size=(runs, steps)), np.zeros((runs, steps))
    for step in range(steps):
        series[:, step] = memory * series[:, step - 1] * (step > 0) + noise[:, step]
    return series


def test_lagged_correlations_are_those_of_an_independent_implementation(rng):
    q, a = wander(rng, 4, 40), wander(rng, 4, 40)
    found = lagged_correlations(q, a, 3)
    left = [x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean() for x in (q, a)]
    for lag in range(-3, 4):
        for i, j in ((0, 0), (2, 1)):
            pairs = [(left[0][i, t], left[1][j, t + lag]) for t in range(40) if 0 <= t + lag < 40]
            assert found[lag + 3, i, j] == pytest.approx(correlation(*zip(*pairs, strict=True), "pearson"), abs=1e-9)


@pytest.mark.slow(2)
def test_independent_runs_seldom_raise_a_false_alarm():
    found = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        drift = np.linspace(0, 30, 60)
        found.append(lead_estimate(wander(rng, 8, 60) + drift, wander(rng, 8, 60) - drift, seed))
    assert np.mean([one.p_value <= 0.05 for one in found]) < 0.1
    assert np.mean([one.low <= 0 <= one.high for one in found]) > 0.87


def world(octaves=0.0, lead=0, sign=1, coupling=1.0, moves=1.0, networks=10, steps=158, seed=0):
    """Networks whose measure is half-way `octaves` before accuracy, and runs ahead of it by `lead` steps."""
    rng, rows = np.random.default_rng(seed), []
    time = np.arange(steps + 1)
    for number in range(networks):
        own = wander(rng, 1, steps + 41)[0] * 0.02
        middle = 20 * 2 ** rng.normal(0, 0.05)
        course = {name: 1 - 2 ** (-time / (middle * 2**shift)) for name, shift in (("q", -octaves), ("a", 0))}
        ahead, noise = own[20 + lead : 20 + lead + steps + 1], wander(rng, 1, steps + 1)[0] * 0.02
        q = 0.3 + 0.5 * moves * course["q"] + sign * (coupling * ahead + (1 - coupling) * noise)
        a = 0.1 + 0.8 * course["a"] + own[20 : 20 + steps + 1]
        values = {"accuracy": a, "modularity": q, "active_entropy": q, "block_entropy": q}
        known = {"dataset": "d", "condition": "c", "seed": number, "reason": "", "step": time}
        rows.append(pd.DataFrame({**known, **values}))
    return pd.concat(rows, ignore_index=True)


def words(table, measure="modularity"):
    found = early_verdicts(table)
    return found[found["measure"] == measure].set_index("question")["word"].to_dict()


@pytest.mark.parametrize(
    ("octaves", "word"), [(1.2, "supported"), (-1.2, "contradicted"), (0.0, "no association"), (0.5, "undecided")]
)
def test_what_is_half_way_first_is_told(octaves, word):
    assert words(world(octaves, coupling=0.0))["structure first"] == word


@pytest.mark.parametrize(("lead", "word"), [(4, "supported"), (-4, "contradicted"), (0, "no association")])
def test_what_leads_is_told(lead, word):
    assert words(world(lead=lead))["leading"] == word


def test_entropies_lead_against_accuracy():
    found = world(lead=4, sign=-1)
    assert words(found, "active_entropy")["leading"] == "supported"
    assert words(found, "modularity")["leading"] == "contradicted"
    assert words(world(lead=4), "block_entropy")["leading"] == "contradicted"


def test_what_moves_nowhere_is_not_measurable():
    told = words(world(moves=0.0, coupling=0.0))
    assert told["structure first"] == "not measurable"
    half = pd.concat([world(1.2, networks=5), world(moves=0.0, networks=5).assign(seed=lambda t: t["seed"] + 5)])
    found = early_verdicts(half).iloc[0]
    assert (found["networks"], found["of"], found["word"] != "not measurable") == (5, 10, True)


def test_p_values_are_corrected_over_all_questions_and_data_sets():
    table = pd.concat([world(0.6, 2), world(seed=1).assign(dataset="e")])
    found = early_verdicts(table)
    assert len(found) == 2 * 2 * len(ASKED)
    assert found["adjusted"].tolist() == pytest.approx(holm(found["p_value"].tolist()))
    assert found["adjusted"].iloc[0] > found["p_value"].iloc[0]


@pytest.mark.slow(2)
def test_no_lead_is_seldom_called_one():
    found = [early_verdicts(world(coupling=0.0, steps=80, seed=seed)) for seed in range(30)]
    wrong = [
        table.loc[table["question"] == "leading", "word"].isin(["supported", "contradicted"]).any() for table in found
    ]
    assert np.mean(wrong) <= 0.1


def test_figures_show_every_kind_of_network():
    table = pd.concat([world(1.0, 3), world().assign(dataset="e", condition="f")]).assign(excess=0.25)
    courses, lines = early_figure(table), leads_figure(table, lags=4)
    titles = [[ax.get_title(loc="left") for ax in axes] for axes in (courses.axes[:2], lines.axes)]
    assert titles == [["d\nc", "e\nf"]] * 2
    assert len(courses.axes) == 6
    (first, *_) = lines.axes[0].get_lines()
    assert first.get_xdata().tolist() == list(range(-4, 5))
    assert first.get_ydata().argmax() - 4 == 3
