from __future__ import annotations

from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec
from nbutils.study.measure_run import partitions_of


def test_partitions_of_a_run(own_store):
    run = run_once(RunSpec(epochs=2, model="mlp:24"))
    found = partitions_of(run, density=0.1, seeds=2)
    assert found.shape == (3, 24)
    assert found.min() >= -1
    assert found.max() >= 1
