"""Lesions: sets that are what they say, effects worked out by hand, verdicts on worlds whose truth is known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from torch import nn

from nbutils.cli import main
from nbutils.data.catalogue import available
from nbutils.drawing.display import interval_text
from nbutils.experiments.causes import cause_trials
from nbutils.experiments.control_sets import (
    cut_alike,
    large_communities,
    nearest_set,
    preferred_class,
    random_set,
    unit_pairs,
)
from nbutils.experiments.figures import class_losses_figure, sets_figure
from nbutils.experiments.lesions import (
    CLASS_QUESTIONS,
    KINDS,
    LESION_QUESTIONS,
    LESION_RULES,
    TITLES,
    VGG,
    LesionRules,
    class_group_trials,
    class_loss_matrix,
    lesion_trials,
    lesion_verdicts,
    network_flips,
    network_means,
    noisy_trials,
    pushed_effects,
    pushed_outcomes,
    pushed_trials,
    same_size_verdicts,
    set_differences,
    specificities,
    ways_to_silence,
)
from nbutils.experiments.silenced_sets import (
    Subject,
    class_group_rows,
    class_groups,
    class_loss_rows,
    class_losses,
    control_sets,
    lesion_rows,
    same_size_rows,
    set_rows,
)
from nbutils.own.lesions import lesion
from nbutils.own.measure import Looker, looked_at
from nbutils.second.networks import networks_of
from nbutils.stats import holm
from nbutils.study.cases import compute_cases

LAYERS = np.repeat([1, 2], [60, 40])
POOL = np.ones(100, dtype=bool)


def counts(chosen):
    return np.bincount(LAYERS[chosen], minlength=3)[1:].tolist()


def test_controls_have_as_many_neurons_of_each_layer(rng):
    chosen, values = np.array([3, 5, 8, 70, 71]), rng.normal(size=(100, 2))
    pool = POOL.copy()
    pool[[0, 99]] = False
    for _ in range(50):
        drawn = random_set(chosen, LAYERS, pool, rng)
        assert counts(drawn) == [3, 2]
        assert pool[drawn].all()
        assert len(set(drawn)) == 5
    near = nearest_set(chosen, LAYERS, pool, values, rng)
    assert counts(near) == [3, 2]
    assert pool[near].all()
    assert not set(near) & set(chosen)


def test_the_nearest_set_is_the_one_with_the_least_distance(rng):
    """Against all ways to choose: two of seven others, one for each neuron."""
    one, values, chosen = np.ones(9, dtype=int), rng.normal(size=(9, 2)), np.array([2, 6])
    found = nearest_set(chosen, one, one == 1, values, rng)
    scaled = values / values.std(axis=0)
    distance = np.linalg.norm(scaled[chosen][:, None] - scaled[None], axis=2)
    others = np.setdiff1d(np.arange(9), chosen)
    ways = [(distance[0, a] + distance[1, b], {a, b}) for a in others for b in others if a != b]
    assert set(found.tolist()) == min(ways, key=lambda way: way[0])[1]
    assert nearest_set(np.arange(6), one, one == 1, values, rng) is None


def test_equally_near_neurons_are_drawn(rng):
    one = np.ones(40, dtype=int)
    found = {tuple(nearest_set(np.array([0, 1]), one, one == 1, np.zeros((40, 1)), rng)) for _ in range(20)}
    assert len(found) > 10


def test_sets_are_cut_to_the_smaller_one(rng):
    first, second = np.arange(10, 30), np.r_[np.arange(50, 58), np.arange(60, 63)]
    for _ in range(20):
        a, b = cut_alike(first, second, rng)
        assert len(a) == len(b) == 11
        assert set(a) <= set(first)
        assert b.tolist() == second.tolist()
    a, b = cut_alike(np.arange(50, 80), second, rng, LAYERS)
    assert counts(a) == counts(b) == [8, 3]
    assert [len(one) for one in cut_alike(first, np.arange(60, 80), rng, LAYERS)] == [0, 0]


def test_planted_groups_are_communities_and_prefer_their_class(rng):
    labels = np.repeat(np.arange(4), 50)
    fired = np.kron(np.eye(4, dtype=bool), np.ones((50, 9), dtype=bool))
    fired &= rng.random(fired.shape) < 0.8
    fired = np.hstack([fired, np.zeros((200, 5), dtype=bool)])
    found = large_communities(fired, 0.2, least=8)
    assert sorted(one.tolist() for one in found) == [list(range(k, k + 9)) for k in (0, 9, 18, 27)]
    assert [preferred_class(fired, labels, one) for one in found] == [one[0] // 9 for one in found]
    assert large_communities(fired, 0.2, least=10) == []
    assert preferred_class(fired, labels, np.array([36, 37])) == -1


def test_a_unit_and_its_control(rng):
    means = np.array([[5.0, 4, 1, 1, 1], [1, 1, 1, 1, 1.5]])
    selectivity = np.array([0.6, 0.5, 0, 0, 0.2])
    rates = np.array([0.3, 0.9, 0.31, 0.32, 0.8])
    layers, pool = np.array([1, 1, 1, 2, 1]), np.ones(5, dtype=bool)
    assert unit_pairs(means, selectivity, rates, layers, pool, rng, near=1) == {0: (0, 2), 1: (4, 1)}
    assert unit_pairs(means, selectivity, rates, layers, pool, rng) == {0: (0, 2), 1: (4, 2)}
    pool[[0, 4]] = False
    assert unit_pairs(means, selectivity, rates, layers, pool, rng, classes=[3, 7]) == {3: (1, 2)}


def planted(idle=40):
    """Two modules of ten neurons, each all that its class is read from, and neurons that nobody reads."""
    model = nn.Sequential(nn.Linear(2 + idle, 20 + idle, bias=False), nn.ReLU(), nn.Linear(20 + idle, 2, bias=False))
    with torch.no_grad():
        model[0].weight.zero_()
        model[2].weight.zero_()
        for one in (0, 1):
            model[0].weight[10 * one : 10 * one + 10, one] = 1
            model[2].weight[one, 10 * one : 10 * one + 10] = 1
        model[0].weight[20:, 2:] = torch.eye(idle)
    rng = np.random.default_rng(0)
    labels = np.arange(2000) % 2
    images = rng.random((2000, 2 + idle)).astype(np.float32)
    images[np.arange(2000), labels] += 1
    images[np.arange(2000), 1 - labels] *= 0.1
    return model, images, labels


def planted_subject():
    model, images, labels = planted()
    inputs = torch.from_numpy(images)
    looker = Looker(looked_at(model, inputs, None, "auto"), labels, "mean", "auto", 0)
    return Subject(looker.look(model, inputs), ["1"], model, inputs, labels)


def test_silencing_a_planted_module_kills_its_class_alone():
    model, images, labels = planted()
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    found = lesion(model, images, labels, draws=3)
    zero = found[found["silence"] == "zero"].set_index("kind")
    assert found["accuracy"].iloc[0] == 1
    own = zero.loc[["community"]]
    assert set(own["preferred"]) == {0, 1}
    assert own["size"].tolist() == [10, 10]
    assert own[["loss_preferred", "loss_others", "specificity"]].to_numpy().tolist() == [[1, 0, 1]] * 2
    assert zero.loc["shuffle", "preferred"].tolist() == own["preferred"].tolist()
    assert zero.loc["random", "loss_others"].abs().max() == 0
    for name, value in model.state_dict().items():
        assert torch.equal(value, weights[name])


def test_idle_neurons_that_fire_together_are_a_community_that_hurts_nothing():
    """The opposite world: what fires together is not what the answer is read from."""
    model, images, labels = planted(idle=12)
    with torch.no_grad():
        model[0].weight[20:] = 0
        model[0].weight[20:, 2] = 1
    found = lesion(model, images, labels, draws=2)
    zero = found[(found["silence"] == "zero") & (found["kind"] == "community")]
    idle = zero[zero["size"] == 12]
    assert len(idle) == 1
    assert idle[["loss_preferred", "loss_others", "specificity"]].to_numpy().tolist() == [[0, 0, 0]]


def test_labels_that_are_no_outputs_are_refused():
    model, images, labels = planted()
    with pytest.raises(ValueError, match="labels must be numbers of the model's scores, of which there are 2"):
        lesion(model, images, labels + 1)
    with pytest.raises(ValueError, match="examples must be"):
        lesion(model, images, labels, examples=30)


@pytest.fixture(scope="module")
def small():
    return lesion_trials(["digits"], 1, epochs=4, model="mlp:96-48")[0]


def test_rows_of_a_network(small):
    table = pd.DataFrame(lesion_rows(small))
    assert table.groupby("settings").ngroups == 1
    first, rest = table.iloc[0], table.iloc[1:]
    assert first["kind"] == "whole"
    own = rest[(rest["kind"] == "community") & (rest["silence"] == "zero")]
    assert len(own) == first["communities"] > 3
    assert (own["size"] >= LESION_RULES.least).all()
    assert (rest["specificity"] - (rest["loss_preferred"] - rest["loss_others"])).abs().max() < 1e-12
    pairs = rest.pivot_table(index=["number", "silence"], columns="kind", values="size", sort=False)
    pairs = pairs[pairs["community"].notna()]
    for kind in ("random", "rate", "matched"):
        assert (pairs[kind].dropna() == pairs["community"][pairs[kind].notna()]).all()
    assert (pairs["cut"] == pairs["shuffle"]).all()
    assert (pairs["cut"] <= pairs["community"]).all()
    zero = rest[rest["silence"] == "zero"].set_index("kind")["draws"]
    assert zero["cut"].max() == LESION_RULES.draws
    assert zero["random"].unique().tolist() == [LESION_RULES.few]
    assert set(rest["kind"]) - set(KINDS) == {"cut by layer", "shuffle by layer"}
    again = pd.DataFrame(lesion_rows(small))
    pd.testing.assert_frame_equal(table, again)


def test_the_command_writes_rows_and_goes_on(tmp_path, small, capsys):
    path = tmp_path / "lesions.parquet"
    table = compute_cases([small], path, lesion_rows, jobs=1)
    assert len(table) > 30
    before = path.read_bytes()
    assert len(compute_cases([small], path, lesion_rows, jobs=1)) == len(table)
    assert path.read_bytes() == before
    assert (
        main(["experiment", "lesions", "--datasets", "digits", "--seeds", "2", "--into", str(tmp_path), "--plan"]) == 0
    )
    assert "Experiment lesions: 2 networks" in capsys.readouterr().out


def test_the_networks_are_those_of_other_experiments():
    own, others = lesion_trials(), {one.settings for one in cause_trials() if one.condition == "none"}
    assert all(one.settings in others for one in own if one.condition == "none")
    assert [sum(one.condition == name for one in own) for name in ("none", "vgg")] == [30, 8]
    seen = [one.run for one in networks_of("digits", architecture="vgg") if "runs" in one.designs]
    assert {name: seen[0].model_dump()[name] for name in ("model", "epochs")} == {
        k: VGG[k] for k in ("model", "epochs")
    }
    if available("cifar10"):
        named = [one.run for one in networks_of("cifar10", architecture="vgg") if "runs" in one.designs]
        true = [run for run in named if run.labels == "true"]
        assert true == [one.run for one in own if one.condition == "vgg"]


def test_a_digest_covers_rules_and_questions(monkeypatch):
    before = LESION_RULES.digest
    assert LesionRules(least=9).digest != before
    changed = {**LESION_QUESTIONS, "single units": LESION_QUESTIONS["beyond matched sets"]}
    monkeypatch.setattr("nbutils.experiments.lesions.LESION_QUESTIONS", changed)
    assert LESION_RULES.digest != before


def world(community=0.6, matched=0.1, shuffle=0.6, unit=0.05, control=0.0, noise=0.02, networks=10, seed=0):
    """Sets of networks with known effects; networks differ, and so do the sets of each."""
    rng, rows = np.random.default_rng(seed), []
    for number in range(networks):
        luck = rng.normal(0, 0.05)
        for name in range(7):
            ease = rng.normal(0, 0.05)
            for kind, value in (
                ("community", community),
                ("cut", community),
                ("matched", matched),
                ("shuffle", shuffle),
            ):
                value = value + luck + ease + rng.normal(0, noise)
                rows.append({"seed": number, "number": name, "kind": kind, "specificity": value})
        for name in range(10):
            for kind, value in (("unit", unit), ("unit control", control)):
                rows.append(
                    {"seed": number, "number": name, "kind": kind, "loss_preferred": value + rng.normal(0, 0.005)}
                )
    found = pd.DataFrame(rows)
    return found.assign(dataset="d", condition="none", silence="zero", reason="", degenerate=0.0)


def words(table, **options):
    return lesion_verdicts(table, **options).set_index("question")["word"].to_dict()


def test_communities_that_are_nothing_but_preference_are_told():
    assert words(world()) == {
        "beyond matched sets": "supported",
        "beyond class preference": "no association",
        "single units": "supported",
    }


def test_communities_that_are_more_and_units_that_are_nothing():
    assert words(world(shuffle=0.4, unit=0.001)) == {
        "beyond matched sets": "supported",
        "beyond class preference": "supported",
        "single units": "no association",
    }


def test_the_opposite_is_contradicted():
    found = words(world(community=0.2, matched=0.5, shuffle=0.5, unit=-0.05))
    assert set(found.values()) == {"contradicted"}


def test_noise_decides_nothing():
    assert words(world(community=0.3, matched=0.25, noise=0.5))["beyond matched sets"] == "undecided"
    assert set(words(world(networks=7)).values()) == {"undecided"}, "seven networks are too few"


def test_no_effect_is_seldom_called_one():
    found = [words(world(0.3, 0.3, 0.3, 0.0, noise=0.2, seed=seed)) for seed in range(25)]
    assert sum(word in ("supported", "contradicted") for one in found for word in one.values()) == 0


def test_a_verdict_is_a_t_test_over_networks_and_holm_over_all():
    table = world(community=0.16, matched=0.1)
    found = lesion_verdicts(table).set_index("question")
    wide = table.pivot_table(index=["seed", "number"], columns="kind", values="specificity")
    by_network = (wide["community"] - wide["matched"]).groupby("seed").mean()
    row = found.loc["beyond matched sets"]
    assert row["effect"] == pytest.approx(by_network.mean())
    assert row["p_value"] == pytest.approx(stats.ttest_1samp(by_network, 0).pvalue)
    low, high = stats.t.interval(0.95, 9, by_network.mean(), by_network.sem())
    assert row[["low", "high"]].tolist() == pytest.approx([low, high])
    assert found["adjusted"].tolist() == pytest.approx(holm(found["p_value"].tolist()))
    assert row["flips"] < 0.01
    assert row["sets"] == 70


def test_pushed_networks_are_held_against_those_of_the_same_seed():
    pushed = {"none": 0.6, "modularity:-3": 0.3, "modularity:0.1": 0.6}
    table = pd.concat([world(community=c, seed=n).assign(condition=k) for n, (k, c) in enumerate(pushed.items())])
    found = pushed_effects(table).set_index("dose")
    assert found["word"].to_dict() == {-3.0: "contradicted", 0.1: "no association"}
    wide = table.pivot_table(index=["condition", "seed", "number"], columns="kind", values="specificity")
    means = (wide["community"] - wide["matched"]).groupby(["condition", "seed"]).mean()
    paired = stats.ttest_rel(means["modularity:-3"], means["none"])
    assert found.loc[-3, "effect"] == pytest.approx((means["modularity:-3"] - means["none"]).mean())
    assert found.loc[-3, "p_value"] == pytest.approx(paired.pvalue)
    assert found["adjusted"].tolist() == pytest.approx(holm(found["p_value"].tolist()))
    swapped = pd.concat([table, table.assign(silence="mean", specificity=-table["specificity"])])
    assert pushed_effects(swapped).equals(pushed_effects(table))
    assert pushed_effects(swapped, silence="mean").set_index("dose")["effect"].tolist() == pytest.approx(
        -found["effect"]
    )
    few = table[(table["condition"] == "none") | (table["seed"] < 7)]
    assert pushed_effects(few)["word"].tolist() == ["undecided", "undecided"], "seven networks decide nothing"


def test_pushed_networks_are_those_of_the_experiment_on_cause():
    own, others = pushed_trials(), {one.settings for one in cause_trials()}
    assert {one.settings for one in own} < others
    assert len(own) == 3 * 10 * 11
    assert {one.condition for one in own if one.dose == 0} == {"none"}


def test_other_ways_to_silence_stand_beside_the_one_that_counts():
    table = pd.concat([world(), world(community=0.2, matched=0.5).assign(silence="mean")])
    found = ways_to_silence(table).set_index("question")
    words = {name: lesion_verdicts(table, silence=name).set_index("question")["word"] for name in ("zero", "mean")}
    assert words["zero"]["beyond matched sets"] != words["mean"]["beyond matched sets"]
    assert found.loc["beyond matched sets", "0"].endswith(words["zero"]["beyond matched sets"])
    assert found.loc["beyond matched sets", "mean"].endswith(words["mean"]["beyond matched sets"])


def test_sets_without_a_control_and_degenerate_networks_are_left_out():
    table = world()
    lone = (table["kind"] == "matched") & (table["number"] == 3)
    table = table[~lone]
    found = lesion_verdicts(table).set_index("question").loc["beyond matched sets"]
    assert (found["sets"], found["lacking"], found["networks"]) == (60, 10, 10)
    table.loc[table["seed"] == 0, ["degenerate", "specificity"]] = 1.0, -9.0
    found = lesion_verdicts(table).set_index("question").loc["beyond matched sets"]
    assert found["networks"] == 9
    assert found["effect"] == pytest.approx(0.5, abs=0.05)


def test_a_network_with_many_sets_counts_once():
    rows = world(networks=2)[lambda t: t["kind"].isin(["community", "matched"])].assign(specificity=0.0)
    rows.loc[(rows["kind"] == "community") & (rows["seed"] == 0), "specificity"] = 1.0
    rows = rows[~((rows["seed"] == 1) & (rows["number"] > 0))]
    means = network_means(set_differences(rows, LESION_QUESTIONS["beyond matched sets"]))
    assert means.tolist() == [1.0, 0.0]


def test_a_permutation_over_networks_is_exact_and_asks_about_one_class():
    """In a world where every community hurts its class by the same amount more, all signs agree: p is 2 / 2^n."""
    table = world(networks=8).assign(there=lambda rows: rows["specificity"])
    found = network_flips(table).set_index("question")
    assert list(found.index) == ["beyond matched sets", "beyond class preference", "its class"]
    assert found.loc["its class", "p_flips"] == 2 / 2**8
    assert found.loc["its class", "effect"] == found.loc["beyond matched sets", "effect"]
    other = table["kind"] == "matched"
    found = network_flips(table.assign(there=table["there"].mask(other, 0.9))).set_index("question")
    assert found.loc["its class", "high"] < 0 < found.loc["beyond matched sets", "low"]


def test_the_figure_has_a_panel_for_every_kind_of_network():
    table = pd.concat([world(), world().assign(dataset="e")])
    values = specificities(table, ["community", "matched"])
    assert len(values) == 40
    drawn = sets_figure(values, ["community", "matched"], {("d", "none"): "D", ("e", "none"): "E"})
    assert [ax.get_title(loc="left") or ax.get_title() for ax in drawn.axes] == ["D", "E"]


def test_a_community_is_held_against_its_counterpart(rng):
    """Of those of a shuffle that prefer the same class, the one that shares most with it; else none."""
    subject = planted_subject()
    wide = np.r_[0:4, 20:60]
    shuffles = [[(np.arange(10, 20), 1), (wide, 0), (np.arange(9), 0)], [(np.arange(10, 20), 1)]]
    sets = control_sets(subject, np.arange(10), 0, shuffles, rng)
    assert len(sets["shuffle"]) == len(sets["cut"]) == 1
    assert sets["shuffle"][0][0].tolist() == list(range(9))
    assert set(sets["cut"][0][0]) < set(range(10))
    assert {row["kind"] for row in set_rows(subject)} >= {"whole", "community", "cut", "shuffle", "unit"}


def test_what_every_class_loses_with_a_planted_community():
    """Each of two communities is all that one class is read from; what is lost is the same as in the other table."""
    subject = planted_subject()
    rows = pd.DataFrame(class_losses(subject)).assign(seed=0, reason="", degenerate=0.0)
    assert class_loss_matrix(rows).to_numpy().tolist() == [[1, 0], [0, 1]]
    assert (rows.groupby(["number", "kind"])["class"].nunique() == 2).all()
    known = pd.DataFrame(set_rows(subject)).query("silence == 'zero' and kind == 'community'").set_index("number")
    drawn = class_losses_figure({"planted": class_loss_matrix(rows).set_axis(["a", "b"])})
    assert drawn.axes[0].images[0].get_array().tolist() == [[1, 0], [0, 1]]
    own = rows[(rows["kind"] == "community") & (rows["class"] == rows["preferred"])].set_index("number")
    assert own["loss"].to_dict() == known["loss_preferred"].to_dict()


def test_losses_by_class_of_the_networks_of_the_experiment():
    trial = lesion_trials(["digits"], 1)[0]
    trial = replace(trial, run=trial.run.model_copy(update={"epochs": 2, "model": "mlp:96-48"}))
    table = pd.DataFrame(class_loss_rows(trial))
    assert {"accuracy", "degenerate", "loss", "preferred", "class"} <= set(table)
    assert table["loss"].between(-1, 1).all()


def test_class_groups_are_made_without_the_graph():
    """Planted neurons prefer their class by far; of those that nobody reads every one prefers one of both by chance."""
    subject = planted_subject()
    groups = [one for one in class_groups(subject) if "class group" in one[2]]
    members = [sets["class group"][0][0] for _, _, sets in groups]
    assert [name for name, _, _ in groups] == [0, 1]
    assert [set(range(10 * name, 10 * name + 10)) < set(own) for name, own in enumerate(members)] == [True, True]
    assert sorted(np.concatenate(members)) == list(range(60))
    means = [np.maximum(subject.look.activations, 0)[subject.look.labels == name].mean(axis=0) for name in (0, 1)]
    assert set(members[1]) == set(np.flatnonzero(means[1] > means[0]))
    rows = pd.DataFrame(set_rows(subject, made=class_groups)).query("silence == 'zero'").set_index("kind")
    assert rows.loc["class group", "specificity"].tolist() == [1, 1]
    for _, _, sets in groups:
        for matched, _ in sets.get("matched", []):
            assert not set(matched) & set(sets["class group"][0][0])


def test_communities_and_class_groups_are_cut_to_the_same_layers():
    trial = lesion_trials(["digits"], 1, epochs=4, model="mlp:96-48")[0]
    table = pd.DataFrame(class_group_rows(trial))
    zero = table[table["silence"] == "zero"]
    wide = zero.pivot_table(index="number", columns="kind", values=["size", "preferred", "draws", "shared"])
    both = wide.dropna(subset=[("size", "cut by layer")])
    assert len(both) > 3
    assert (both["size"]["cut by layer"] == both["size"]["class cut by layer"]).all()
    assert (both["size"]["cut by layer"] <= both["size"]["community"]).all()
    assert (both["preferred"]["cut by layer"] == both["preferred"]["class cut by layer"]).all()
    assert both["draws"]["cut by layer"].unique().tolist() == [LESION_RULES.draws]
    assert (both["shared"]["cut by layer"] == 1).all()
    assert (both["shared"]["class cut by layer"] < 1).any()
    groups = zero[zero["kind"] == "class group"]
    assert groups["number"].tolist() == groups["preferred"].tolist()
    assert len(groups) > 5
    assert (groups["size"] >= LESION_RULES.least).all()
    assert groups["size"].sum() <= 96 + 48
    assert table.equals(pd.DataFrame(class_group_rows(trial)))


def test_class_groups_are_judged_like_communities():
    names = {"community": "class group", "cut": "cut by layer", "shuffle": "class cut by layer"}
    table = world(community=0.4, shuffle=0.2).replace({"kind": names})
    extra = table[table["kind"] == "cut by layer"].assign(kind="community")
    found = lesion_verdicts(pd.concat([table, extra]), questions=CLASS_QUESTIONS).set_index("question")
    assert found["word"].to_dict() == {"class groups": "supported", "beyond class groups": "supported"}
    assert found["lacking"].tolist() == [0, 0]
    assert found.loc["beyond class groups", "effect"] == pytest.approx(0.2, abs=0.02)
    pushed = pd.concat([table, table.assign(condition="modularity:-3"), table.assign(dataset="e")])
    changes = pushed_effects(pushed, question=CLASS_QUESTIONS["class groups"])
    assert changes[["dataset", "dose", "word"]].to_numpy().tolist() == [["d", -3, "no association"]]


def test_class_groups_of_the_networks_of_both_experiments():
    own = class_group_trials()
    assert [one.condition for one in own[:39]] == ["none"] * 30 + ["vgg"] * 8 + ["modularity:-3"]
    assert {one.settings for one in own} == {one.settings for one in (*lesion_trials(), *pushed_trials())}


def test_networks_with_wrong_labels_are_those_of_the_experiment_on_cause():
    own = noisy_trials()
    assert len(own) == 30
    assert {one.run for one in own} <= {one.run for one in cause_trials() if one.condition == "none"}
    assert all((one.dataset, "noise") in TITLES for one in (trial.run for trial in own))


def test_what_is_away_is_gone_or_hidden_by_three_words():
    doses = [-5.0, -4.0, -3.0, -2.0, -1.0, 1.0]
    less, as_before, more = "contradicted", "no association", "supported"
    every = [
        [less, less, as_before, "undecided", less, less],  # communities
        [less, as_before, less, less, less, less],
        [less, less, less, less, more, less],
    ]
    rows = pd.DataFrame({"dose": doses, "effect": -0.5, "low": -0.6, "high": -0.4})
    q = pd.Series({**dict.fromkeys(doses[:5], 0.5), 0.0: 0.7, 1.0: 0.61})
    found = pushed_outcomes(*(rows.assign(word=words) for words in every), q)
    assert found["outcome"].tolist() == ["gone", "hidden", "hidden", "undecided", "hidden", ""]
    assert found["communities"].iloc[0] == f"{interval_text(-0.5, -0.6, -0.4)}, contradicted"
    assert found["coefficient"].tolist() == doses


def test_class_groups_of_two_networks_are_cut_to_the_same_layers():
    """Planted neurons are all that a class is read from, so that a share of them takes what the others do not give."""
    subject, other = planted_subject(), planted_subject()
    table = pd.DataFrame(same_size_rows(subject, other))
    assert sorted(table["kind"]) == ["same size"] * 2 + ["same size, unpushed"] * 2
    wide = table.pivot_table(index="number", columns="kind", values=["size", "specificity"])
    assert (wide["size"]["same size"] == wide["size"]["same size, unpushed"]).all()
    assert table["draws"].unique().tolist() == [LESION_RULES.draws]
    with torch.no_grad():
        other.network[2].weight.zero_()  # nothing is read any more, so nothing can be lost
    table = pd.DataFrame(same_size_rows(subject, Subject(other.look, ["1"], other.network, other.inputs, other.labels)))
    lost = table.groupby("kind")["specificity"].mean()
    assert lost["same size, unpushed"] == 0 < lost["same size"]


def test_a_pushed_network_is_held_against_its_own_seed_at_the_same_size():
    trial = pushed_trials(["digits"], 1)[1]
    trial = replace(trial, run=trial.run.model_copy(update={"epochs": 2, "model": "mlp:96-48"}))
    table = pd.DataFrame(class_group_rows(trial))
    same = table[table["kind"] == "same size"].set_index("number")
    unpushed = table[table["kind"] == "same size, unpushed"].set_index("number")
    assert len(same) > 3
    assert (same["size"] == unpushed["size"]).all()
    assert (same["size"] >= LESION_RULES.least).all()
    assert (same["specificity"] != unpushed["specificity"]).any()
    verdicts = same_size_verdicts(pd.concat([table.assign(seed=seed) for seed in range(8)]))
    assert verdicts[["dose", "networks"]].to_numpy().tolist() == [[-3, 8]]
    assert verdicts["effect"].item() == pytest.approx((same["specificity"] - unpushed["specificity"]).mean())
