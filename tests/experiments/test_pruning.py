"""Pruning: states of real networks, communities that are pruned together when made so, and words for made-up worlds."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from nbutils.cli import main
from nbutils.evaluation.words import t_interval
from nbutils.experiments import pruning as module
from nbutils.experiments.causes import cause_trials
from nbutils.experiments.figures import pruning_figure
from nbutils.experiments.pruning import (
    PRUNING_RULES,
    SPARSITIES,
    communities_of,
    pruning_changes,
    pruning_courses,
    pruning_rows,
    pruning_trials,
    pruning_verdicts,
    question_values,
    strata_of,
    together,
)
from nbutils.experiments.trials import OUTCOMES, Trial, graph_outcomes, trial_row
from nbutils.runs.looks import look_at
from nbutils.runs.pruning import PRUNINGS, pruned
from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec
from nbutils.stats import holm
from nbutils.study.cases import read_cases

SMALL = {"model": "mlp:24-16", "epochs": 3, "every_epoch": False}


@pytest.fixture(scope="module")
def rows():
    patch = pytest.MonkeyPatch()
    patch.setattr(module, "SPARSITIES", (0.5, 0.9))
    patch.setattr(module, "EPOCHS", 1)
    trial = Trial(RunSpec(**SMALL, seed=1), "none", 0.0)
    yield trial, pd.DataFrame(pruning_rows(trial))
    patch.undo()


def test_networks_are_those_of_the_experiment_on_cause():
    found = pruning_trials(["mnist-10k", "digits"])
    assert len(found) == 16
    assert {one.settings for one in found} <= {one.settings for one in cause_trials(["mnist-10k", "digits"])}
    assert {(one.run.labels, one.run.penalty, one.condition) for one in found} == {("true", "none", "none")}
    assert len(pruning_trials()) == 24


def test_rules_have_a_digest_that_changes_with_them(monkeypatch):
    assert PRUNING_RULES.digest != replace(PRUNING_RULES, sparsity=0.8).digest
    assert {PRUNING_RULES.sparsity, PRUNING_RULES.together} <= set(SPARSITIES)
    before = PRUNING_RULES.digest
    monkeypatch.setattr(module, "EPOCHS", 4)
    assert PRUNING_RULES.digest != before


def test_rules_are_those_of_the_book(root):
    text = (root / "book/hypotheses/rules.md").read_text("utf-8")
    assert "pruned to 50, 80, 90, 95 and 98 %" in text
    assert SPARSITIES == (0.5, 0.8, 0.9, 0.95, 0.98)
    assert "trained for five epochs more" in text
    assert module.EPOCHS == 5
    assert "after retraining at 90 %" in text
    assert PRUNING_RULES.sparsity == 0.9
    assert "at 80 % before retraining" in text
    assert PRUNING_RULES.together == 0.8


def test_a_network_has_a_row_for_every_state(rows):
    _, table = rows
    assert len(table) == 2 + len(PRUNINGS) * 2 * 2
    assert not table.duplicated(["rule", "sparsity", "stage"]).any()
    assert set(OUTCOMES) <= set(table)
    total = 64 * 24 + 24 * 16 + 16 * 10
    assert (table["weights"] == [round((1 - one) * total) for one in table["sparsity"]]).all()  # after retraining, too
    assert table["settings"].nunique() == table["run"].nunique() == 1
    cut = (table["rule"] != "none") & (table["stage"] == "before")
    assert table.loc[cut, "together"].between(0, 1).all()
    assert table.loc[~cut, ["together", "together_excess"]].isna().all(axis=None)


def test_the_first_row_is_the_network_as_it_was(rows):
    trial, table = rows
    first, known = table.iloc[0], trial_row(trial)
    for name in OUTCOMES:
        assert first[name] == pytest.approx(known[name], nan_ok=True), name
    assert first["degenerate"] == known["degenerate"]


def test_what_is_said_of_a_pruned_network_is_measured_on_it(rows):
    trial, table = rows
    run = run_once(trial.run)
    scores = [layer.weight.detach().abs() for layer in run.network().modules() if isinstance(layer, nn.Linear)]
    look = look_at(run, network=pruned(run.network(), scores, 0.5))
    own = table.query("rule == 'magnitude' and sparsity == 0.5 and stage == 'before'").iloc[0]
    assert own["accuracy"] == look.run["other_accuracy"]
    assert own["modularity"] == pytest.approx(graph_outcomes(look)["modularity"])
    assert (look.weights[0] == 0).sum() > 0
    assert "train_loss" not in look.run  # that was of another network
    assert own["tied"] == (look.fired.mean(axis=0) > 0.2).sum()


def test_neurons_without_inputs_are_told_apart(rows):
    """They fire on every image, so that every pair with one of them is among the heaviest."""
    trial, _ = rows
    network = run_once(trial.run).network()
    with torch.no_grad():
        network[0].linear.weight[:4] = 0
        network[0].linear.bias[:4] = 1
    row = module._row(run_once(trial.run), trial, network, module.Between(0.5, 0.25))
    assert row["tied"] >= 4
    assert row["modularity"] < row["modularity_untied"]
    assert row["together_excess"] == 0.25


def two_modules():
    """A look at a network of two modules that know nothing of each other; the weights of the second are tiny."""
    spec = RunSpec(**{**SMALL, "epochs": 1}, seed=0)
    run, rng = run_once(spec), np.random.default_rng(0)
    network, second = run.network(), [np.arange(24) >= 12, np.arange(16) >= 8]
    with torch.no_grad():
        for linear in (network[0].linear, network[1].linear, network[2]):
            linear.weight.copy_(torch.from_numpy(rng.choice([-1, 1], linear.weight.shape)))
        network[0].linear.weight[second[0]] *= 0.01
        network[1].linear.weight[np.ix_(*second[::-1])] *= 0.01
        network[1].linear.weight[np.ix_(second[1], ~second[0])] = 0
        network[1].linear.weight[np.ix_(~second[1], second[0])] = 0
        network[2].weight[:, second[1]] *= 0.01
    return network, look_at(run, network=network), np.concatenate(second).astype(int)


def test_a_module_of_tiny_weights_is_pruned_together():
    network, look, modules = two_modules()
    scores = [part.detach().abs() for part in network.parameters() if part.ndim > 1]
    first_module = sum(int((score > 0.5).sum()) for score in scores)
    cut = pruned(network, scores, 1 - first_module / sum(score.numel() for score in scores))
    look = replace(look, preactivations=np.ones_like(look.preactivations))  # all rates and selectivities alike
    found = together(cut, modules, look)
    assert found.share > 0.9
    assert found.excess > 0.85
    luck = np.random.default_rng(1)
    drawn = [together(cut, luck.permutation(modules), look, draws=50).excess for _ in range(20)]
    assert abs(np.mean(drawn)) < 0.03


def test_strata_are_of_layer_rate_and_selectivity(rows):
    trial, _ = rows
    look = look_at(run_once(trial.run))
    chosen = communities_of(look) >= 0
    strata = strata_of(look, chosen)
    assert strata.shape == (chosen.sum(), 3)
    assert strata[:, 0].tolist() == look.layers[chosen].tolist()
    rates = look.positive.mean(axis=0)[chosen]
    for layer in (1, 2):
        own = strata[:, 0] == layer
        assert set(strata[own, 1]) == {0, 1, 2, 3}
        assert rates[own][strata[own, 1] == 0].max() <= rates[own][strata[own, 1] == 3].min()
    assert (communities_of(look)[~look.fired.any(axis=0)] == -1).all()


def test_a_failed_network_has_one_row():
    (row,) = pruning_rows(Trial(RunSpec(**SMALL, learning_rate=1e30), "none", 0.0))
    assert "training diverged" in row["reason"]
    assert row["rule"] == "none"


def test_the_command_makes_a_table_and_goes_on(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("nbutils.experiments.causes.BASE", SMALL)
    monkeypatch.setattr("nbutils.experiments.causes.LABELS", {"true": 1})
    monkeypatch.setattr("nbutils.experiments.causes.COEFFICIENTS", ())
    monkeypatch.setattr(module, "SPARSITIES", (0.9,))
    asked = ["experiment", "pruning", "--datasets", "digits", "--jobs", "1", "--into", str(tmp_path / "mine")]
    asked += ["--seeds", "2"]
    assert main([*asked, "--plan"]) == 0
    assert "Missing: 2 networks, about" in capsys.readouterr().out
    assert main(asked) == 0
    assert "pruning.parquet: 2 networks, 0 failed" in capsys.readouterr().out
    table = read_cases(tmp_path / "mine" / "pruning.parquet")
    each = 2 + 2 * len(PRUNINGS)
    assert table["seed"].tolist() == [0] * each + [1] * each
    assert table.groupby("seed")["rule"].apply(tuple).nunique() == 1
    table[table["seed"] == 1].assign(machine="another").to_parquet(tmp_path / "mine" / "pruning.parquet")
    assert main(asked) == 0
    again = read_cases(tmp_path / "mine" / "pruning.parquet")
    assert again["seed"].tolist() == table["seed"].tolist()
    assert (again["machine"] == "another").sum() == each


NAMES = ("magnitude", "random")


def world(change=0.0, excess=0.0, noise=0.01, seeds=8, seed=0, datasets=("a", "b")):
    """Under the first rule Q changes by `change`, and eta^2 exceeds chance by `excess`; under the other they do not."""
    rng, made = np.random.default_rng(seed), []
    for dataset in datasets:
        for number in range(seeds):
            q = rng.normal(0.6, 0.05)
            shared = {"dataset": dataset, "seed": number, "reason": "", "degenerate": 0.0}
            made.append(shared | {"rule": "none", "sparsity": 0.0, "stage": "before", "modularity": q, "accuracy": 0.9})
            made.append(made[-1] | {"stage": "after"})
            for rule in NAMES:
                for sparsity in SPARSITIES:
                    for stage in ("before", "after"):
                        real = rule == "magnitude"
                        value = q + (change if real and (sparsity, stage) == (0.9, "after") else 0)
                        beyond = excess if real and (sparsity, stage) == (0.8, "before") else 0.3
                        if not real:
                            beyond = 0.0
                        made.append(
                            shared
                            | {
                                "rule": rule,
                                "sparsity": sparsity,
                                "stage": stage,
                                "modularity": value + rng.normal(0, noise),
                                "accuracy": 0.9 - sparsity / 10,
                                "together_excess": beyond + rng.normal(0, noise),
                            }
                        )
    return pd.DataFrame(made)


def words(table, question, rule="magnitude"):
    found = pruning_verdicts(table)
    return found[(found["question"] == question) & (found["rule"] == rule)]["word"].tolist()


@pytest.mark.parametrize(
    ("change", "word"),
    [(0.1, "supported"), (-0.1, "contradicted"), (0.0, "no association"), (0.05, "undecided")],
)
def test_a_change_of_modularity_gets_its_word(change, word):
    table = world(change=change)
    assert words(table, "modularity") == [word] * 2
    assert words(table, "modularity", "random") == ["no association"] * 2


@pytest.mark.parametrize(
    ("excess", "word"),
    [(0.2, "supported"), (-0.2, "contradicted"), (0.0, "no association"), (0.05, "undecided")],
)
def test_neurons_that_are_pruned_together_get_their_word(excess, word):
    table = world(excess=excess)
    assert words(table, "together") == [word] * 2
    assert words(table, "together", "random") == ["no association"] * 2


def test_a_verdict_rests_on_pairs_of_one_seed():
    table = world(change=0.1)
    own = table[table["dataset"] == "a"]
    values = question_values(own, "modularity", "magnitude")
    assert values.std() < 0.03  # though Q differs by 0.05 between seeds
    row = pruning_verdicts(table).iloc[0]
    assert (row["low"], row["high"]) == pytest.approx(t_interval(values.to_numpy()))
    found = pruning_verdicts(table)
    assert found["adjusted"].tolist() == pytest.approx(holm(found["p_value"].tolist()))
    assert len(found) == 2 * 2 * len(NAMES)


def test_degenerate_networks_decide_nothing():
    table = world(change=0.1, excess=0.2)
    cut = (table["rule"] == "magnitude") & (table["seed"] < 2)
    table.loc[cut, ["degenerate", "modularity"]] = 1.0, 9.0
    found = pruning_verdicts(table).set_index(["question", "dataset", "rule"])
    assert found.loc[("modularity", "a", "magnitude"), "networks"] == 6
    assert found.loc[("modularity", "a", "magnitude"), "word"] == "supported"
    assert found.loc[("together", "a", "magnitude"), "networks"] == 8  # it is about weights
    table.loc[(table["rule"] == "none") & (table["seed"] < 4), "degenerate"] = 1.0
    found = pruning_verdicts(table)
    assert set(found["networks"]) == {4}
    assert set(found["word"]) == {"undecided"}
    assert found["p_value"].isna().all()


def test_no_change_is_seldom_called_one():
    found = [pruning_verdicts(world(seed=seed, noise=0.1, excess=0.0)) for seed in range(60)]
    wrong = np.mean([table["word"].isin(["supported", "contradicted"]).any() for table in found])
    assert wrong < 0.09


def test_courses_begin_at_the_network_as_it_was():
    table = world(change=0.1)
    found = pruning_courses(table, ["accuracy", "modularity"])
    begins = found[(found["sparsity"] == 0) & (found["column"] == "modularity") & (found["dataset"] == "a")]
    own = table[(table["dataset"] == "a") & (table["rule"] == "none") & (table["stage"] == "before")]["modularity"]
    assert set(begins["rule"]) == set(NAMES)
    assert begins["mean"].tolist() == pytest.approx([own.mean()] * 4)
    assert len(found) == 2 * 2 * 2 * (1 + len(SPARSITIES)) * 2
    changes = pruning_changes(table, ["accuracy", "modularity"]).set_index(["dataset", "rule", "stage", "sparsity"])
    assert changes.loc[("a", "random", "before", 0.98), "accuracy"] == pytest.approx(-0.098)
    assert changes.loc[("b", "magnitude", "after", 0.9), "modularity"] == pytest.approx(0.1, abs=0.02)


def test_the_figure_draws_every_panel():
    courses = pruning_courses(world(), ["accuracy", "modularity"])
    drawn = pruning_figure(courses, {"accuracy": "accuracy", "modularity": "Q"}, {"a": "A", "b": "B"})
    assert len(drawn.axes) == 4
    assert [len(ax.containers) for ax in drawn.axes] == [4] * 4


def test_wrong_questions_are_refused():
    with pytest.raises(ValueError, match="question must be one of modularity, together, received 'entropy'"):
        question_values(world(), "entropy", "random")
