"""Networks of the second study: trained side by side, measured on a held-out probe, and only once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import adjusted_mutual_info_score

from nbutils.activations import firing
from nbutils.communities import agreed_communities, detect_communities
from nbutils.data.datasets import held_out_probe, load_dataset, probe_halves
from nbutils.graphs import activation_pattern_graph
from nbutils.measures import class_cells, measure_matched
from nbutils.representations import manifold_geometry
from nbutils.runs.looks import look_at
from nbutils.runs.models import hidden_widths
from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec
from nbutils.second import networks as module
from nbutils.second.answers import joint_answers, read_answers, values_of
from nbutils.second.candidates import CANDIDATES, FAMILIES, NEEDS, ONE_NULL
from nbutils.second.networks import ARCHITECTURES, Network, compute, is_done, measured, networks_of, tables_of
from nbutils.second.questions import PROTOCOL
from nbutils.second.replication import conclude

SMALL = RunSpec(dataset="digits", model="mlp:24-16", epochs=2, preprocessing="standard")


def network(seed: int = 0, designs: tuple[str, ...] = ("runs", "grid"), **changes) -> Network:
    return Network(SMALL.model_copy(update={"seed": seed, **changes}), designs, neurons=20)


def test_probe_and_other_test_images_share_none():
    data = load_dataset("digits")
    probe, others = held_out_probe(data.test_labels)
    assert len(probe) == len(others) == 180
    assert not set(probe) & set(others)
    assert np.bincount(data.test_labels[probe]).min() >= 17
    first, again = probe_halves(data.test_labels[probe])
    assert not set(first) & set(again)
    counts = [np.bincount(data.test_labels[probe][half], minlength=10) for half in (first, again)]
    assert np.abs(counts[0] - counts[1]).max() <= 1


def test_a_look_is_what_pytorch_computes(own_store):
    run = run_once(SMALL)
    look, data, model = look_at(run), SMALL.data(), run.network()
    probe, others = held_out_probe(data.test_labels)
    inputs = torch.from_numpy(data.test_inputs[probe])
    with torch.no_grad():
        first = model[0].linear(inputs)
        second_ = model[1].linear(first.relu())
        logits = model.output(second_.relu()).numpy()
        right = model(torch.from_numpy(data.test_inputs[others])).argmax(dim=1).numpy() == data.test_labels[others]
    assert np.allclose(look.preactivations, np.hstack([first, second_]), atol=1e-5)
    assert np.allclose(look.logits, logits, atol=1e-5)
    assert look.run["other_accuracy"] == pytest.approx(right.mean())
    assert (look.fired == firing(look.activations)).all()
    assert (look.cells == class_cells(look.labels, look.predicted)).all()
    assert [weights.shape for weights in look.weights] == [(24, 64), (16, 24), (10, 16)]
    assert look.last.shape == (180, 16)
    trained = look_at(run, probe="training")
    assert (trained.fired == run.fired(-1)).all(), "the run's own probe and firing"
    half = look.part(np.arange(90))
    assert (half.fired == firing(look.activations[:90])).all(), "a half decides anew what fires"


def test_candidates_are_what_the_functions_say(own_store):
    own = replace(network(), costly=True)
    run = run_once(own.run)
    look, kept = look_at(run, neurons=20), measured(run, own)
    found = {
        (e, part, name): value
        for key, rows in kept["values"].items()
        if key not in module.SERIES
        for e, part, name, value in rows
    }
    matched = measure_matched(look.fired, look.cells, 0, 20, ONE_NULL, PROTOCOL.draws)
    assert found[2, "whole", "modularity"] == matched["modularity"]
    assert found[2, "whole", "excess"] == pytest.approx(matched["class_part"] + matched["remainder"])
    assert found[2, "whole", "probe_accuracy"] == (look.predicted == look.labels).mean()
    softmax = torch.softmax(torch.from_numpy(look.logits).double(), dim=1).max(dim=1).values.mean()
    assert found[2, "whole", "confidence"] == pytest.approx(float(softmax))
    first = look.activations[:, look.layers == 1]
    smallest = int(np.bincount(look.labels).min())
    geometry = manifold_geometry(first, look.labels, examples=min(40, smallest))
    assert found[2, "whole", "first_manifold_radius"] == geometry.radius
    assert found[2, "whole", "manifold_radius"] != geometry.radius, "that of the last layer"
    assert (0, "whole", "excess") in found, "the untrained network, on the same footing"
    columns = {name for one in CANDIDATES for name in one.columns}
    assert {name for (epoch, part, name) in found if epoch == 2 and part == "whole"} == columns
    halved = {name for one in CANDIDATES if one.by_halves for name in one.columns}
    assert {name for (epoch, part, name) in found if epoch == 2 and part == "second"} == halved
    assert all(one.family in FAMILIES and one.needs in NEEDS for one in CANDIDATES)


def test_a_series_has_every_epoch_and_both_halves(own_store):
    kept = measured(run_once(SMALL), network())
    rows = kept["values"]["series"]
    assert {(epoch, part) for epoch, part, _, _ in rows} == {(e, p) for e in range(3) for p in module.PARTS}
    assert {name for _, _, name, _ in rows} == {"modularity", "active_entropy", "block_entropy"}
    assert "series" not in measured(run_once(SMALL), network(designs=("grid",)))["values"] or "series" in kept["code"]


def test_steps_compare_the_communities_of_successive_epochs(own_store):
    """Beside scikit-learn's adjusted mutual information of the partitions, each a consensus of five searches."""
    run = run_once(SMALL)
    rows = {(epoch, name): value for epoch, _, name, value in measured(run, network())["values"]["steps"]}
    assert set(rows) == {(e, n) for e in (1, 2) for n in ("agreement", "overlap", "flexibility")} | {
        (e, "searches") for e in (0, 2)
    }
    graphs = [activation_pattern_graph(run.fired(epoch), 0.05) for epoch in (1, 2)]
    before, after = (agreed_communities(detect_communities(graph).seed_labels) for graph in graphs)
    both = (before >= 0) & (after >= 0)
    assert rows[2, "agreement"] == pytest.approx(adjusted_mutual_info_score(before[both], after[both]))


def test_networks_memorise_and_are_followed(own_store):
    own = [one for one in networks_of("digits") if "memorising" in one.designs]
    assert len(own) == module.GRID_SEEDS
    assert {(one.run.labels, one.run.dropout, one.run.stop_at) for one in own} == {("random", 0.0, 0.95)}
    small = network(designs=("memorising",), model="mlp:128-64", examples=400, **module.MEMORISING)
    compute([small], jobs=1)
    tables = tables_of([small])
    assert tables.networks["train_accuracy"].item() >= 0.95
    assert tables.networks["accuracy"].item() < 0.25, "there was nothing to learn"
    epochs = tables.networks["last_epoch"].item()
    assert set(tables.series.query("measure == 'modularity'")["epoch"]) == set(range(int(epochs) + 1))


def test_only_what_is_new_or_stale_is_measured_again(own_store, monkeypatch):
    own, taken, original = replace(network(designs=("small",)), costly=True), [], module._measure
    monkeypatch.setattr(module, "_measure", lambda run, one, names: taken.append(names) or original(run, one, names))
    with monkeypatch.context() as before:
        before.setattr(module, "CANDIDATES", CANDIDATES[:-1])
        assert compute([own], jobs=1) == 1
        assert compute([own], jobs=1) == 0
    assert not is_done(own)
    first = measured(run_once(own.run), own)["values"]
    assert is_done(own)
    assert taken == [[one.name for one in CANDIDATES[:-1]], [CANDIDATES[-1].name]]
    store = module.Store("looks")
    where = module._address(run_once(own.run).address, own.neurons)
    record = store.read(where)
    record["code"]["graph"] = "of another day"
    store.write(where, {key: value for key, value in record.items() if key != "files"}, replace=True)
    again = measured(run_once(own.run), own)["values"]
    assert taken[2:] == [["graph"]]
    assert again == first


def test_tables_hold_what_was_measured_and_what_failed(own_store):
    sound, wild = network(), network(seed=1, designs=("small",), learning_rate=1e30)
    compute([sound, wild], jobs=1)
    tables = tables_of([sound, wild, network(seed=2)])
    assert tables.networks["status"].tolist() == ["done", "failed"]
    assert tables.networks["designs"].tolist() == ["runs+grid", "small"]
    row = tables.networks.iloc[0]
    assert row["accuracy"] == look_at(run_once(sound.run)).run["other_accuracy"]
    assert not row["degenerate"]
    assert set(tables.measures["run"]) == {row["run"]}
    assert set(tables.series["measure"]) >= {"train_accuracy", "modularity"}
    assert (tables.costs["seconds"] >= 0).all()


def test_a_network_that_learned_nothing_is_degenerate(own_store):
    still = network(epochs=1, learning_rate=1e-9)
    compute([still], jobs=1)
    assert tables_of([still]).networks["degenerate"].item()


def test_the_study_of_every_data_set_is_whole():
    for name in ("digits", "mnist", "kmnist", "cifar10", "plantvillage"):
        networks = networks_of(name)
        assert len({one.run for one in networks}) == len(networks)
        count = {design: sum(design in one.designs for one in networks) for design in ("runs", "grid", "small")}
        assert count["runs"] == 30
        assert count["grid"] == 40
        assert all(one.run.preprocessing == "standard" for one in networks)
        assert all(one.neurons <= module._half(one.run) for one in networks)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_other_architectures_have_fewer_networks_and_the_same_designs(architecture):
    found = networks_of("digits", architecture=architecture)
    counts = {design: sum(design in one.designs for one in found) for design in ("runs", "grid", "small")}
    assert counts == {"runs": 8 + 5 + 5, "grid": 4 * 5, "small": 72}
    assert len({one.run for one in found}) == len(found) == 8 + 15 + 72
    zoo = [one for one in found if one.designs == ("small",)]
    assert len({one.family for one in zoo}) == 24
    assert {one.run.model.partition(":")[0] for one in found} == {architecture}
    assert all(one.neurons <= sum(hidden_widths(one.run.model)) / 2 for one in found)
    assert not any(one.costly for one in found)


def test_an_unknown_architecture_is_refused_by_name():
    with pytest.raises(ValueError, match="architecture must be one of mlp, vgg, resnet, vit, received 'rnn'"):
        networks_of("digits", architecture="rnn")


@pytest.mark.release
@pytest.mark.slow(25)
def test_other_architectures_take_the_same_way_to_answers(tmp_path):
    """A few small transformers, measured, answered and judged; measures that they lack are left out."""
    networks = [one for one in networks_of("digits", quick=True, architecture="vit") if "runs" in one.designs][:3]
    zoo = [one for one in networks_of("digits", quick=True, architecture="vit") if "small" in one.designs][:9]
    compute(networks + zoo, jobs=2)
    tables = tables_of(networks + zoo)
    assert set(tables.networks["status"]) == {"done"}
    values = values_of(tables, tables.networks, ["path_norm", "spectral_norm", "class_selectivity", "modularity"])
    assert values["path_norm"].isna().all()
    assert values["class_selectivity"].isna().all()
    assert values[["spectral_norm", "modularity"]].notna().all(axis=None)
    conclude("digits", tmp_path, tables, "vit")
    answers = read_answers(tmp_path)
    assert set(answers["dataset"]) == {"digits-vit"}
    assert answers.loc[answers["question"] == "H2 performance", "networks"].item() > 0
    assert not joint_answers([answers])[0].confirmatory
