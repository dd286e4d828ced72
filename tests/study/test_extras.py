from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest

from nbutils.capturing.hooks import capture_activations
from nbutils.communities import detect_communities
from nbutils.data.datasets import probe_indices
from nbutils.entropy import binned_entropy
from nbutils.paper import paper_graph, released_graph
from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec
from nbutils.study.extras import EXTRAS, VARIANTS, extra, has_extra
from nbutils.study.measure_run import partitions_of
from nbutils.study.specifications import evaluate_all
from nbutils.tracking import compare_partitions

SPEC = RunSpec(epochs=2, model="mlp:24-16", checkpoints=True)


@pytest.fixture(scope="module")
def run():
    return run_once(SPEC)


def activations(run, epoch: int) -> np.ndarray:
    seen = capture_activations(run.network(epoch), run.spec.data().train_inputs, "hidden*.relu")
    return np.hstack(list(seen.values()))


def test_extras_are_kept(run, monkeypatch):
    first = extra(run, "evolution")
    assert has_extra(SPEC, "evolution")
    monkeypatch.setitem(EXTRAS, "evolution", Mock(__name__="_evolution", side_effect=AssertionError("made again")))
    again = extra(run, "evolution")
    assert again.rows.equals(first.rows)
    assert (again.arrays["tracked"] == first.arrays["tracked"]).all()
    assert not has_extra(SPEC.model_copy(update={"seed": 99}), "evolution")


def test_evolution_compares_each_epoch_with_the_one_before(run):
    rows, partitions = extra(run, "evolution").rows, partitions_of(run)
    assert rows["epoch"].tolist() == [1, 2]
    wanted = compare_partitions(partitions[1], partitions[2])
    assert rows.iloc[1][wanted.index].to_dict() == pytest.approx(wanted.to_dict(), nan_ok=True)
    tracked = extra(run, "evolution").arrays["tracked"]
    both = (tracked[1] >= 0) & (tracked[2] >= 0)
    assert rows["flexibility"].iloc[1] == pytest.approx((tracked[1] != tracked[2])[both].mean())


def test_answers_name_the_class_that_a_community_fires_most_on(run):
    rows = extra(run, "selectivity").rows
    last = rows[rows["epoch"] == 2]
    tracked, fired = extra(run, "evolution").arrays["tracked"][2], run.fired(2)
    for row in last.itertuples():
        rates = [fired[run.probe_labels == k][:, tracked == row.community].mean() for k in range(10)]
        assert int(np.argmax(rates)) == row.selective_for
        assert row.neurons == (tracked == row.community).sum()


def test_specifications_are_those_of_the_trained_network(run):
    rows = extra(run, "specifications").rows.set_index("specification")["value"]
    chosen = probe_indices(run.spec.data().train_true)
    wanted = evaluate_all(activations(run, -1)[chosen], run.probe_labels, run.layers, run.histogram(-1))
    assert rows.to_dict() == pytest.approx(wanted, abs=1e-6)


def test_the_reconstruction_takes_the_paper_s_graph_apart(run):
    rows = extra(run, "reconstruction").rows
    assert list(rows.groupby("epoch").size()) == [len(VARIANTS)] * 3
    last = rows[rows["epoch"] == 2].set_index("variant")
    values, labels = activations(run, 2), run.spec.data().train_true
    plain, slipped = paper_graph(values > 0, labels, run.layers), released_graph(values, labels, run.layers)
    assert last.loc["the paper's", "modularity"] == pytest.approx(detect_communities(plain).modularity)
    assert last.loc["all of them", "modularity"] == pytest.approx(detect_communities(slipped).modularity)
    assert last.loc["the paper's", "entropy"] == pytest.approx(binned_entropy(values).sum(), rel=1e-6)
    assert last.loc["strict bins", "entropy"] != last.loc["the paper's", "entropy"]
    assert rows["null_circular"].notna().groupby(rows["epoch"]).all().tolist() == [True, False, True]


def test_wrong_names_and_failed_runs_are_refused(run, own_store):
    with pytest.raises(ValueError, match="extra must be one of evolution, selectivity"):
        extra(run, "evolutoin")
    failed = run_once(RunSpec(epochs=1, model="mlp:4", learning_rate=1e30))
    with pytest.raises(ValueError, match="failed: training diverged"):
        extra(failed, "evolution")
