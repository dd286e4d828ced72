from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from pydantic import ValidationError

import nbutils.provenance
from nbutils.activations import class_means, firing
from nbutils.hooks import capture_activations
from nbutils.inventory import inventory, prune
from nbutils.measures import MeasureSpec, is_measured, measure_run
from nbutils.recording import record_run
from nbutils.runs import run_address, run_once
from nbutils.specs import RunSpec
from nbutils.store import Store

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
        "seed": 1,
        "probe": 299,
        "firing": "positive",
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
        (tmp_path / "some_module.py").write_text(text)
        nbutils.provenance.code_digest.cache_clear()
        return nbutils.provenance.code_digest("some_module")

    first = digest('"""Doc."""\ndef f(x):\n    """What."""\n    return x + 1\n')
    assert digest('"""Other doc."""\n\n\ndef f(x):  # why\n    return (x + 1)\n') == first
    assert digest("def f(x):\n    return x + 2\n") != first
    nbutils.provenance.code_digest.cache_clear()


def test_editing_a_figure_never_retrains():
    from nbutils import measures, runs

    for makers in (runs.MAKERS, measures.MAKERS):
        assert not {"figures", "display", "notebook", "hypotheses", "stats", "publish"} & set(makers)
    assert {"datasets", "architectures", "models", "training", "hooks", "activations", "recording"} == set(runs.MAKERS)


def test_a_stored_run_is_what_the_network_does(own_store):
    run = run_once(SMALL)
    data = SMALL.data()
    for epoch in (0, -1):
        activations = np.hstack(list(capture_activations(run.network(epoch), data.train_inputs, "*.relu").values()))
        from nbutils.datasets import probe_indices

        probe = probe_indices(data.train_true, 300)
        assert (run.fired(epoch) == firing(activations[probe])).all()
        assert (run.fired(epoch, "positive") == (activations[probe] > 0)).all()
        assert run.class_means(epoch) == pytest.approx(class_means(activations[probe], run.probe_labels), abs=1e-6)
        assert (run.histogram(epoch).sum(axis=0) == (activations > 0).sum(axis=0)).all()
    logits = capture_activations(run.network(), data.test_inputs, "output")["output"]
    assert (logits.argmax(1) == data.test_labels).mean() == run.history["test_accuracy"].iloc[-1]
    assert run.history["epoch"].tolist() == [0, 1, 2]
    assert run.history["distance"].iloc[0] == 0
    assert run.layers.tolist() == [1] * 12 + [2] * 6


def test_the_untrained_network_is_the_seed_s(own_store):
    run = run_once(SMALL)
    torch.manual_seed(SMALL.seed)
    from nbutils.models import build_model

    fresh = build_model(SMALL.model, 64, 10)
    assert all(torch.equal(a, b) for a, b in zip(fresh.parameters(), run.network(0).parameters(), strict=True))


PRINT = """
import hashlib, sys, torch
from nbutils.recording import record_run
from nbutils.specs import RunSpec
torch.set_num_threads(int(sys.argv[1]))
summary, arrays = record_run(RunSpec(epochs=2, model="mlp:12-6", probe=300, dropout=0.2, labels="mixed:0.5"))
digest = hashlib.sha256(repr(summary).encode())
for group in sorted(arrays):
    for name in sorted(arrays[group]):
        digest.update(arrays[group][name].tobytes())
print(digest.hexdigest())
"""


def test_same_parameters_give_the_same_bits_in_other_processes():
    found = [
        subprocess.run([sys.executable, "-c", PRINT, threads], capture_output=True, text=True, check=True).stdout
        for threads in ("1", "2")
    ]
    assert found[0] == found[1] != ""


def test_a_run_is_trained_once(own_store, monkeypatch):
    first = run_once(SMALL)
    monkeypatch.setattr("nbutils.recording.record_run", lambda _spec: pytest.fail("trained again"))
    second = run_once(SMALL)
    assert second.record == first.record
    assert second.record["provenance"]["versions"]["torch"] == torch.__version__
    assert {"commit", "device", "machine", "time", "versions"} == set(second.record["provenance"])


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
    monkeypatch.setattr("nbutils.recording.record_run", lambda _spec: pytest.fail("training started"))
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
    with pytest.raises(ValidationError, match=next(iter(wrong))):
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
    assert row["coverage"] == sum(d > 0 for _, d in graph.degree()) / 18
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
    monkeypatch.setattr("nbutils.measures._measure_epoch", lambda *_: pytest.fail("measured again"))
    second = measure_run(run)
    assert second.equals(first)
    assert first["null_circular"].isna().tolist() == [False, True, False]
    assert not first.drop(columns=["null_circular", "null_within"]).isna().any().any()


def test_measuring_the_ends_only(own_store):
    ends = measure_run(run_once(SMALL), MeasureSpec(null_draws=0, every_epoch=False))
    assert ends["epoch"].tolist() == [0, 2]
    assert ends["null_within"].isna().all()


def test_inventory_and_prune(own_store):
    run = run_once(SMALL)
    measure_run(run)
    table = inventory()
    assert table["run"].tolist() == [run.address]
    assert table["status"].tolist() == ["done"]
    assert inventory("mnist-5k").empty
    path = run.store.path(run.address) / "record.json"
    record = json.loads(path.read_text())
    old = "00" + run.address[2:]
    run.store.write(old, record)
    assert sorted(inventory()["status"]) == ["done", "outdated"]
    removed, size = prune()
    assert (removed, size > 0) == (1, True)
    assert inventory()["run"].tolist() == [run.address]
    assert is_measured(SMALL, MeasureSpec())


def test_recording_is_pure():
    first, second = record_run(SMALL), record_run(SMALL)
    assert first[0] == second[0]
