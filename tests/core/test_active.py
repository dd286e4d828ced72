"""Communities of active neurons: what dead ones do to the registered graph, and not to this one."""

import numpy as np
import pytest

from nbutils.graphs import activation_pattern_graph
from nbutils.measures import MeasureSpec, measure_active, measure_communities


@pytest.fixture
def firing():
    """Four groups of ten neurons, each firing on its own class with some noise."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), 100)
    own = np.repeat(np.arange(4), 10)
    return rng.random((400, 40)) < np.where(labels[:, None] == own, 0.35, 0.05), labels


def test_dead_neurons_change_the_registered_graph_and_not_this_one(firing):
    fired, labels = firing
    padded = np.insert(fired, [0, 7, 7, 30, *[40] * 56], False, axis=1)
    assert padded.shape[1] == 100
    alone, among_dead = (measure_active(f, labels, np.random.default_rng(1)) for f in (fired, padded))
    assert alone == among_dead
    assert alone["active"] == 40
    assert measure_communities(padded)["modularity"] != measure_communities(fired)["modularity"]


def test_without_dead_neurons_it_is_the_registered_measure(firing):
    fired, labels = firing
    found = measure_active(fired, labels, np.random.default_rng(0), MeasureSpec(null_draws=2))
    assert measure_communities(fired).items() <= found.items()
    assert found["null_circular"] < found["modularity"]


def test_the_share_of_possible_pairs_grows_with_the_dead():
    """What the docstring states: density / (1 - d)^2."""
    fired = np.random.default_rng(0).random((5000, 200)) < 0.3
    padded = np.hstack([fired, np.zeros((5000, 300), dtype=bool)])
    graph = activation_pattern_graph(padded, 0.05)
    assert graph.nnz / (200 * 199) == pytest.approx(0.05 / (1 - 0.6) ** 2, rel=0.05)


@pytest.mark.parametrize("neurons", [0, 1])
def test_nothing_alive_is_zero(neurons):
    fired = np.zeros((6, 5), dtype=bool)
    fired[:2, :neurons] = True
    found = measure_active(fired, np.arange(6) % 2, np.random.default_rng(0))
    assert found.pop("active") == neurons
    assert set(found.values()) == {0}
