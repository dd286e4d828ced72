from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest
import torch

from nbutils.activations import class_means, firing
from nbutils.capturing.hooks import capture_activations
from nbutils.data.datasets import probe_indices
from nbutils.measures import MeasureSpec
from nbutils.runs.recording import record_runs
from nbutils.runs.run import run_address, run_once, run_together
from nbutils.runs.spec import RunSpec
from nbutils.runs.training import sharpness
from nbutils.runs.weights import margins
from nbutils.study.extras import extra, has_extra
from nbutils.study.measure_run import is_measured, measure_run
from nbutils.support.code import code_digest, definitions_behind
from nbutils.support.store import Store
from nbutils.sweeps.inventory import inventory, prune

SMALL = RunSpec(epochs=2, model="mlp:12-6", probe=300)


def test_every_parameter_changes_the_address():
    other = {
        "dataset": "mnist-5k",
        "labels": "random",
        "model": "mlp:12-7",
        "dropout": 0.1,
        "epochs": 3,
        "batch_size": 16,
        "learning_rate": 0.01,
        "weight_decay": 0.1,
        "examples": 640,
        "preprocessing": "unit",
        "initialisation": "glorot",
        "seed": 1,
        "probe": 299,
        "firing": "positive",
        "input_scale": 255.0,
        "stop_at": 0.9,
        "stop_loss": 0.1,
        "every_epoch": False,
        "checkpoints": True,
        "device": "cuda",
        "activation": "tanh",
        "normalisation": "before",
        "optimiser": "sgd:0.9",
        "schedule": "power:2:1",
        "clipping": "norm:1",
        "l1": 0.1,
        "l2": 0.1,
        "penalty": "modularity:1",
        "validation": 0.1,
        "patience": 3,
        "start_from": "mnist-5k",
        "frozen_epochs": 1,
        "sparsity": 0.1,
    }
    assert set(other) == set(RunSpec.model_fields)
    addresses = {run_address(SMALL.model_copy(update={k: v})) for k, v in other.items()}
    assert len(addresses | {run_address(SMALL)}) == len(other) + 1


def test_two_names_of_one_condition_are_one_run():
    for names in (("true", "mixed:0"), ("random", "mixed:1.0"), ("mixed:0.5", "mixed:0.50")):
        assert run_address(RunSpec(labels=names[0])) == run_address(RunSpec(labels=names[1]))


def test_code_counts_but_comments_do_not(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def digest(text: str) -> str:
        name = f"some_module_{len(list(tmp_path.iterdir()))}"  # what was read of a module is remembered
        (tmp_path / f"{name}.py").write_text(text)
        return code_digest(name)

    first = digest('"""Doc."""\ndef f(x):\n    """What."""\n    return x + 1\n')
    assert digest('"""Other doc."""\n\n\ndef f(x):  # why\n    return (x + 1)\n') == first
    assert digest("import math\n\n\ndef f(x):\n    return x + 1\n") == first
    assert digest("def f(x):\n    return x + 2\n") != first
    body = "\n\n\ndef f(x, y):\n    return corr(x, y)\n"
    ranks = digest(f"from scipy.stats import spearmanr as corr{body}")
    assert digest(f"import math\nfrom scipy.stats import spearmanr as corr{body}") == ranks
    assert digest(f"from scipy.stats import kendalltau as corr{body}") != ranks, "another function by the same name"


def test_where_a_definition_lives_does_not_count(tmp_path, monkeypatch):
    """Moved to another module, or with other words in an error, a function is the same; what it uses counts."""
    monkeypatch.syspath_prepend(tmp_path)

    def digest(**texts: str) -> str:
        package = f"house_{len(list(tmp_path.iterdir()))}"
        (tmp_path / package).mkdir()
        for name, text in {"__init__": "", **texts}.items():
            (tmp_path / package / f"{name}.py").write_text(text.replace("house", package))
        monkeypatch.setattr("nbutils.support.code.PACKAGES", ("nbutils", package))
        return code_digest(f"{package}.use.f")

    helper = "def g(x):\n    if x < 0:\n        raise ValueError('{}')\n    return x + {}\n"
    alone = digest(use=f"{helper.format('no', 1)}\n\ndef f(x):\n    return g(x)\n\n\ndef unused():\n    return 1\n")
    apart = "from house.other import g\n\n\ndef f(x):\n    return g(x)\n"
    assert digest(other=helper.format("no", 1), use=apart) == alone
    assert digest(other=helper.format("not that", 1), use=apart) == alone
    assert digest(other=helper.format("no", 2), use=apart) != alone
    assert digest(other=helper.format("no", 1), use=apart + "\n\ndef more():\n    return 2\n") == alone


def test_editing_a_figure_never_retrains():
    for maker in ("nbutils.runs.recording.record_runs", "nbutils.study.measure_run._measure_epoch"):
        used = {module for module, _ in definitions_behind(maker)}
        assert not [module for module in used if module.split(".")[1] in ("pages", "sweeps", "cli")]
        assert not {"nbutils.drawing.display", "nbutils.study.hypotheses", "nbutils.stats"} & used
    used = definitions_behind("nbutils.runs.recording.record_runs")
    wanted = ("hooks.capture_activations", "runs.training.train", "runs.models.build_model", "loops.count_bins")
    assert {name.rpartition(".")[2] for name in wanted} <= {name for _, name in used}


def test_a_stored_run_is_what_the_network_does(own_store):
    run = run_once(SMALL)
    data = SMALL.data()
    for epoch in (0, -1):
        activations = np.hstack(list(capture_activations(run.network(epoch), data.train_inputs, "*.relu").values()))
        probe = probe_indices(data.train_true, 300)
        assert (run.fired(epoch) == firing(activations[probe])).all()
        assert (run.fired(epoch, "positive") == (activations[probe] > 0)).all()
        assert run.class_means(epoch) == pytest.approx(class_means(activations[probe], run.probe_labels), abs=1e-6)
        assert (run.histogram(epoch).sum(axis=0) == (activations > 0).sum(axis=0)).all()
    logits = capture_activations(run.network(), data.test_inputs, "output")["output"]
    assert (logits.argmax(1) == data.test_labels).mean() == run.history["test_accuracy"].iloc[-1]
    assert run.history["epoch"].tolist() == [0, 1, 2]
    first, last = (torch.cat([one.flatten() for one in run.network(epoch).parameters()]) for epoch in (0, -1))
    assert run.history["distance"].tolist()[::2] == pytest.approx([0, torch.dist(first, last).item()], rel=1e-5)
    norms = [first.norm().item(), last.norm().item()]
    assert run.history["parameter_norm"].tolist()[::2] == pytest.approx(norms, rel=1e-5)
    assert run.layers.tolist() == [1] * 12 + [2] * 6


def test_the_untrained_network_is_the_seed_s(own_store):
    run = run_once(SMALL)
    torch.manual_seed(SMALL.seed)
    from nbutils.runs.models import build_model

    fresh = build_model(SMALL.model, 64, 10)
    assert all(torch.equal(a, b) for a, b in zip(fresh.parameters(), run.network(0).parameters(), strict=True))


PRINT = """
import hashlib, sys, torch
from nbutils.runs.recording import record_runs
from nbutils.runs.spec import RunSpec
torch.set_num_threads(int(sys.argv[1]))
spec = RunSpec(epochs=2, model="mlp:12-6", probe=300, dropout=0.2, labels="mixed:0.5")
((summary, arrays),) = record_runs([spec])
digest = hashlib.sha256(repr(summary).encode())
for group in sorted(arrays):
    for name in sorted(arrays[group]):
        digest.update(arrays[group][name].tobytes())
print(digest.hexdigest())
"""


def test_same_parameters_give_the_same_bits_in_another_process(capsys, monkeypatch):
    command = [sys.executable, "-c", PRINT, "2"]
    there = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    monkeypatch.setattr(sys, "argv", ["", "1"])
    exec(PRINT, {})
    assert there == capsys.readouterr().out != ""


def test_a_run_is_trained_once(own_store, monkeypatch):
    first = run_once(SMALL)
    monkeypatch.setattr("nbutils.runs.recording.record_runs", lambda _spec: pytest.fail("trained again"))
    second = run_once(SMALL)
    assert second.record == first.record
    assert second.record["provenance"]["versions"]["torch"] == version("torch")
    assert {"commit", "device", "machine", "processor", "time", "versions"} == set(second.record["provenance"])


def test_two_processes_that_want_one_run_train_it_once(own_store):
    code = "import nbutils as nb; print(nb.run_once(nb.RunSpec(epochs=3)).record)"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = (p.communicate()[0] for p in both)
    assert first == second != ""
    assert len(Store("runs").addresses()) == 1


def test_a_damaged_run_is_made_again(own_store):
    run = run_once(SMALL)
    path = run.store.path(run.address) / "snapshots.npz"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(RuntimeWarning, match="damaged"):
        again = run_once(SMALL)
    assert again.fired(-1).shape == (300, 18)
    assert again.record["history"] == run.record["history"]


def test_divergence_is_recorded_and_stops_nothing(own_store):
    wild = SMALL.model_copy(update={"learning_rate": 1e30})
    run = run_once(wild)
    assert run.failed.startswith("training diverged: after epoch 1 layer")
    assert "learning_rate=1e+30" in run.failed
    assert len(run.history) == 1
    assert measure_run(run).empty
    assert is_measured(wild, MeasureSpec())
    assert run_once(wild).failed == run.failed


def test_a_probe_larger_than_the_data_is_refused_before_training(own_store, monkeypatch):
    monkeypatch.setattr("nbutils.runs.recording.record_runs", lambda _spec: pytest.fail("training started"))
    with pytest.raises(
        ValueError, match="probe must be from 1 to 1437, the number of training examples; received 5000"
    ):
        run_once(RunSpec(probe=5000))


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": -1},
        {"epochs": 2.5},
        {"seed": "1"},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"dropout": 1.0},
        {"batch_size": 0},
        {"dataset": "mnist5k"},
        {"labels": "shuffled"},
        {"model": "cnn"},
        {"firing": "top:7"},
        {"sedd": 1},
    ],
)
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RunSpec(**wrong)


def test_snapshots_know_their_limits(own_store):
    run = run_once(SMALL)
    with pytest.raises(ValueError, match="epoch must be from 0 to 2, or -1 for the last, received 3"):
        run.fired(3)
    with pytest.raises(ValueError, match="rule must be 'top-decile' or 'positive'"):
        run.fired(0, "top:0.5")
    with pytest.raises(ValueError, match="only the first"):
        run.network(1)


def test_measures_by_hand_outside_nbutils(own_store):
    """One snapshot's numbers, recomputed with networkx, scikit-learn and SciPy alone."""
    import networkx as nx
    from scipy.stats import entropy
    from sklearn.metrics import mutual_info_score

    run = run_once(SMALL)
    row = measure_run(run, MeasureSpec(null_draws=1)).set_index("epoch").loc[2]
    fired = run.fired(2)
    counts = fired.T.astype(int) @ fired.astype(int)
    pairs = sorted(((counts[i, j], i, j) for i in range(18) for j in range(i)), reverse=True)
    least = max(pairs[int(np.ceil(0.05 * len(pairs))) - 1][0], 1)
    graph = nx.Graph()
    graph.add_nodes_from(range(18))
    graph.add_weighted_edges_from((i, j, int(w)) for w, i, j in pairs if w >= least)
    assert row["connected_share"] == sum(d > 0 for _, d in graph.degree()) / 18
    best = max(nx.community.modularity(graph, nx.community.louvain_communities(graph, seed=s)) for s in range(20))
    assert row["modularity"] == pytest.approx(best, abs=0.02)
    last = fired[:, run.layers == 2]
    patterns = np.unique(last, axis=0, return_counts=True)[1]
    assert row["pattern_entropy"] == pytest.approx(entropy(patterns, base=2) + (len(patterns) - 1) / (600 * np.log(2)))
    assert row["unique_patterns"] == (patterns == 1).sum() / 300
    plain = [mutual_info_score(run.probe_labels, f) / np.log(2) for f in fired.T]
    states = [len(np.unique(f)) for f in fired.T]
    joint = [len(set(zip(run.probe_labels, f, strict=True))) for f in fired.T]
    bias = [(s - 1 + 9 - (j - 1)) / (600 * np.log(2)) for s, j in zip(states, joint, strict=True)]
    assert row["mutual_information"] == pytest.approx(np.mean(plain) + np.mean(bias))
    assert row["dead_share"] == np.mean(~run.fired(2, "positive").any(axis=0))


def test_measures_are_kept_and_complete(own_store, monkeypatch):
    run = run_once(SMALL)
    first = measure_run(run)
    monkeypatch.setattr("nbutils.study.measure_run._measure_epoch", lambda *_: pytest.fail("measured again"))
    second = measure_run(run)
    assert second.equals(first)
    assert first["null_circular"].isna().tolist() == [False, True, False]
    assert first["agreement"].isna().tolist() == [False, True, False]
    assert not first.drop(columns=["null_circular", "null_within", "agreement"]).isna().any().any()


def test_measuring_the_first_epochs_and_the_last(own_store):
    few = measure_run(run_once(SMALL.model_copy(update={"epochs": 6})), MeasureSpec(null_draws=0, every_epoch=False))
    assert few["epoch"].tolist() == [0, 1, 2, 3, 6]
    assert few["null_within"].isna().all()


def test_inventory_and_prune(own_store):
    run = run_once(SMALL)
    measure_run(run)
    extra(run, "evolution")
    table = inventory()
    assert table["run"].tolist() == [run.address]
    assert table["status"].tolist() == ["done"]
    assert inventory("mnist-5k").empty
    path = run.store.path(run.address) / "record.json"
    record = json.loads(path.read_text())
    old = "00" + run.address[2:]
    run.store.write(old, record)
    assert sorted(inventory()["status"]) == ["done", "outdated"]
    extras = Store("extras")
    (where,) = extras.addresses()
    extras.write("00" + where[2:], {**extras.read(where), "code": "of yesterday"})
    removed, size = prune()
    assert (removed, size > 0) == (2, True)
    assert has_extra(SMALL, "evolution")
    assert inventory()["run"].tolist() == [run.address]
    assert is_measured(SMALL, MeasureSpec())


def test_images_of_the_first_training_are_part_of_the_address(write_pictures, own_store):
    spec = RunSpec(epochs=1, model="mlp:8", start_from=write_pictures(0))
    before = run_address(spec)
    assert run_address(spec) == before
    write_pictures(1)
    assert run_address(spec) != before


def test_runs_whose_images_are_away_are_neither_judged_nor_removed(write_pictures, own_store, tmp_path, fresh_data):
    run = run_once(RunSpec(dataset=write_pictures(0), epochs=1, model="mlp:8", every_epoch=False))
    assert inventory()["status"].tolist() == ["done"]
    (tmp_path / "pictures").rename(tmp_path / "away")
    fresh_data()
    assert inventory()["status"].tolist() == ["no data"]
    assert prune()[0] == 0
    (tmp_path / "away").rename(tmp_path / "pictures")
    fresh_data()
    assert inventory().set_index("run")["status"].to_dict() == {run.address: "done"}


def test_recording_is_pure():
    first, second = record_runs([SMALL]), record_runs([SMALL])
    assert first[0][0] == second[0][0]


def stored(run) -> dict[str, np.ndarray]:
    groups = ("snapshots", "first_weights", "last_weights")
    return {f"{g}/{name}": values for g in groups for name, values in run.store.arrays(run.address, g).items()}


@pytest.mark.parametrize("changes", [{}, {"model": "mlp:37-21-5"}, {"dropout": 0.3}, {"model": "mlp:128-64"}])
def test_runs_made_together_are_those_made_alone(own_store, tmp_path, changes):
    """Bit for bit: own initialisation, order, dropout and labels, odd widths and a last batch that is not full."""
    labels = ("true", "random", "mixed:0.5", "true", "true", "random", "true")
    specs = [SMALL.model_copy(update={"seed": s, "labels": name, **changes}) for s, name in enumerate(labels)]
    together = run_together(specs)
    alone = [run_once(spec, Store("runs", tmp_path / "alone")) for spec in specs]
    pair = run_together(specs[3:5], Store("runs", tmp_path / "pair"))
    for one, other in [*zip(together, alone, strict=True), *zip(pair, together[3:5], strict=True)]:
        assert one.record["history"] == other.record["history"]
        a, b = stored(one), stored(other)
        assert a.keys() == b.keys()
        assert all(np.array_equal(a[name], b[name]) for name in a)
    assert len({run.fired(-1).tobytes() for run in together}) == len(specs)


VARIED = (
    {"epochs": 1, "dropout": 0.4, "examples": 640},
    {"epochs": 3, "learning_rate": 0.01, "initialisation": "glorot"},
    {"epochs": 2, "weight_decay": 0.5, "every_epoch": False},
    {"epochs": 9, "learning_rate": 0.01, "stop_loss": 1.5},
    {"epochs": 2, "dropout": 0.2, "weight_decay": 0.1, "labels": "random"},
)


@pytest.mark.parametrize("examples", [320, None])
def test_runs_with_other_settings_made_together_are_those_made_alone(own_store, tmp_path, examples):
    """Bit for bit: others finish earlier or later, drop other shares, and (in whole batches) see other images."""
    shared = SMALL.model_copy(update={"preprocessing": "standard", "examples": examples})
    specs = [shared.model_copy(update={"seed": s, **changes}) for s, changes in enumerate(VARIED)]
    if examples is None:
        specs = [spec.model_copy(update={"examples": None}) for spec in specs]
    together = run_together(specs)
    alone = [run_once(spec, Store("runs", tmp_path / "alone")) for spec in specs]
    for one, other in zip(together, alone, strict=True):
        assert one.record["history"] == other.record["history"]
        a, b = stored(one), stored(other)
        assert all(np.array_equal(a[name], b[name]) for name in a)
    assert [run.last_epoch for run in together[:3]] == [1, 3, 2]
    assert 1 < together[3].last_epoch < 9
    assert together[3].history["train_loss"].iloc[-1] <= 1.5 < together[3].history["train_loss"].iloc[-2]
    assert together[2].history["epoch"].tolist() == [0, 2]
    assert (together[2].fired(2) == together[2].fired(-1)).all()
    with pytest.raises(ValueError, match="epoch must be 0 or 2, or -1 for the last, received 1"):
        together[2].fired(1)


def test_a_network_that_ends_by_its_loss_ends_there_whatever_is_recorded(own_store):
    spec = SMALL.model_copy(update={"epochs": 9, "stop_loss": 1.0})
    full, ends = run_once(spec), run_once(spec.model_copy(update={"every_epoch": False}))
    assert ends.history["epoch"].tolist() == [0, full.last_epoch]
    assert (ends.fired(-1) == full.fired(-1)).all()


def test_only_missing_runs_are_trained(own_store, monkeypatch):
    specs = [SMALL.model_copy(update={"seed": s}) for s in range(4)]
    first = run_once(specs[2])
    from nbutils.runs import recording

    seen = []
    original = recording.record_runs
    monkeypatch.setattr(
        recording, "record_runs", lambda given, starts: seen.append(list(given)) or original(given, starts)
    )
    run = run_together([*specs, specs[0]])
    assert [run.spec for run in run] == [*specs, specs[0]]
    assert seen == [[specs[0], specs[1], specs[3]]]
    assert run[2].record == first.record
    with pytest.raises(ValueError, match="must have the same data set, kind of network and batches"):
        run_together([SMALL.model_copy(update={"seed": 9}), SMALL.model_copy(update={"batch_size": 16})])


def test_divergence_of_one_leaves_the_others_alone(own_store, tmp_path, monkeypatch):
    """One network of a stack is given a weight that is not a number."""
    from nbutils.runs import recording

    specs = [SMALL.model_copy(update={"seed": s}) for s in range(3)]
    alone = run_once(specs[2], Store("runs", tmp_path / "alone"))
    original = recording.build_model

    def sick(*arguments):
        model = original(*arguments)
        if torch.initial_seed() == 1:
            model[0].linear.weight.data[0, 0] = float("nan")
        return model

    monkeypatch.setattr(recording, "build_model", sick)
    run = run_together(specs)
    assert [bool(run.failed) for run in run] == [False, True, False]
    assert run[2].record["history"] == alone.record["history"]


def test_checkpoints_hold_the_network_of_every_epoch():
    spec = SMALL.model_copy(update={"checkpoints": True})
    run, plain = run_once(spec), run_once(SMALL)
    assert (run.fired(-1) == plain.fired(-1)).all()
    data = spec.data()
    probe = data.train_inputs[probe_indices(data.train_true, 300)]
    for epoch in range(3):
        seen = capture_activations(run.network(epoch), probe, "hidden*.relu")
        assert (firing(np.hstack(list(seen.values()))) == run.fired(epoch)).all()
    with pytest.raises(ValueError, match="epoch must be from 0 to 2"):
        run.network(3)
    with pytest.raises(ValueError, match="checkpoints=True"):
        plain.network(1)


def test_training_stops_once_the_training_set_is_learned():
    spec = SMALL.model_copy(update={"epochs": 30, "stop_at": 0.8})
    run, full = run_once(spec), run_once(SMALL.model_copy(update={"epochs": 30}))
    accuracy = full.history["train_accuracy"]
    assert run.last_epoch == int(np.argmax(accuracy >= 0.8)) < 30
    assert run.history.equals(full.history.iloc[: run.last_epoch + 1])
    nulls = measure_run(run, MeasureSpec(null_draws=1))["null_within"]
    assert np.flatnonzero(nulls.notna()).tolist() == [0, run.last_epoch]


def test_a_run_that_stops_early_is_the_same_beside_one_that_does_not():
    easy, hard = (SMALL.model_copy(update={"epochs": 12, "stop_at": 0.5, "labels": c}) for c in ("true", "random"))
    together, alone = record_runs([easy, hard]), record_runs([easy])
    assert len(together[1][0]["history"]) == 13 > len(together[0][0]["history"])
    assert together[0][0] == alone[0][0]
    last = [arrays["last_weights"]["output.weight"] for _, arrays in (together[0], alone[0])]
    assert (last[0] == last[1]).all()


def test_bright_training_is_captured_between_0_and_1():
    plain = SMALL.model_copy(update={"preprocessing": "unit"})
    spec = plain.model_copy(update={"input_scale": 16.0})
    run, data = run_once(spec), spec.data()
    assert (run.fired(0) == run_once(plain).fired(0)).all()  # untrained, the scale has had no effect yet
    network, inputs = run.network(-1), torch.from_numpy(data.test_inputs)
    right = [(network(x).argmax(dim=1).numpy() == data.test_labels).mean() for x in (inputs * 16, inputs)]
    assert run.history["test_accuracy"].iloc[-1] == pytest.approx(right[0]) != pytest.approx(right[1])
    probe = data.train_inputs[probe_indices(data.train_true, 300)]
    seen = capture_activations(network, probe, "hidden*.relu")
    assert (firing(np.hstack(list(seen.values()))) == run.fired(-1)).all()


def test_the_history_holds_margin_sharpness_and_rank():
    run, data = run_once(SMALL), SMALL.data()
    network = run.network(-1)
    with torch.no_grad():
        logits = network(torch.from_numpy(data.train_inputs)).numpy()
    probe = probe_indices(data.train_true, 300)
    last = run.history.iloc[-1]
    assert last["margin"] == pytest.approx(np.quantile(margins(logits, data.train_labels), 0.1), abs=1e-4)
    inputs, given = (torch.from_numpy(x[probe]) for x in (data.train_inputs, data.train_labels))
    assert last["sharpness"] == pytest.approx(sharpness(network, inputs, given), abs=1e-6)
    assert 1 <= last["effective_rank"] <= 6
