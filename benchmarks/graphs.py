"""Co-firing, graphs, communities and whole snapshots, against what one would write without this project."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from statistics import median

import networkx as nx
import numpy as np
import scipy.sparse as sp

import nbutils as nb
from benchmarks import slow, strong
from benchmarks.harness import Comparison, compare, run_script, seconds
from nbutils.cofiring import cofiring_counts
from nbutils.support.checks import as_graph
from nbutils.support.machine import compute_threads

EDGE = 12  # bytes to read of an edge in a sparse matrix: its weight and its neuron
SEARCH = 4  # times that a search reads every edge at least: moving and refining, twice


def words(neurons: int, examples: int = 2_000) -> float:
    """Words of 64 examples to count for all pairs of some neurons."""
    return neurons * (neurons - 1) / 2 * -(-examples // 64)


def cofiring(quick: bool) -> list[Comparison]:
    """All pairs of 20,000 neurons over 2,000 examples."""
    import torch

    torch.set_num_threads(compute_threads())
    neurons, repeats = (1_000, 1) if quick else (20_000, 3)
    fired = np.random.default_rng(0).random((2_000, neurons)) < 0.1
    cofiring_counts(fired[:, :100])  # compiled code is loaded

    def product() -> torch.Tensor:
        single = torch.from_numpy(fired).float()
        return single.T @ single

    found = product()
    counts = cofiring_counts(fired)
    for start in range(0, neurons, 1_000):  # in blocks, for memory's sake
        assert (found[start : start + 1_000].numpy() == counts[start : start + 1_000]).all()
    del found, counts
    about = f"all pairs of {neurons:,} neurons over 2,000 examples, exact, against torch's float32 matrix product"
    run = compare(
        f"cofiring_{neurons}x2000",
        about,
        lambda: seconds(lambda: cofiring_counts(fired)),
        lambda: seconds(product),
        unit="s",
        repeats=repeats,
        work={"words": words(neurons)},
    )
    return [run, _peak(neurons)]


PEAK = """
import sys
import numpy as np
import nbutils as nb
from benchmarks.memory import forget_peak, peak
neurons, dense = int(sys.argv[1]), sys.argv[2] == "dense"
fired = np.random.default_rng(0).random((2_000, neurons), dtype=np.float32) < 0.1
nb.activation_pattern_graph(fired[:, :100])
before = forget_peak()
if dense:
    single = fired.astype(np.float32)
    graph = nb.graph_from_counts(single.T @ single)
else:
    graph = nb.activation_pattern_graph(fired)
print(peak() - before)
"""


def _peak(neurons: int) -> Comparison:
    """Extra memory from firing to graph; the dense side at a fifth of the neurons, times 25, or it would not fit."""
    return compare(
        f"graph_{neurons}x2000_peak_mib",
        f"extra memory from the firing of {neurons:,} neurons to the heaviest 5 % of pairs, against a dense matrix "
        "(measured at a fifth of the neurons, times 25)",
        lambda: run_script(PEAK, neurons, "packed"),
        lambda: 25 * run_script(PEAK, neurons // 5, "dense"),
        unit="MiB",
        repeats=1,
        work={"MiB": 0.05 * neurons * (neurons - 1) * EDGE / 2**20},
    )


def planted_graph(neurons: int, edges: int) -> sp.csr_array:
    """An activation pattern graph of neurons in 20 groups that fire together, with about so many edges."""
    rng = np.random.default_rng(0)
    events = rng.random((1_000, 20)) < 0.1
    fired = (events[:, rng.integers(20, size=neurons)] & (rng.random((1_000, neurons)) < 0.4)) | (
        rng.random((1_000, neurons)) < 0.08
    )
    return nb.activation_pattern_graph(fired, density=2 * edges / (neurons * (neurons - 1)))


def communities(quick: bool) -> list[Comparison]:
    """One search against networkx's Louvain, and modularity against networkx's."""
    sizes = {448: 5_000, 5_000: 60_000, 20_000: 300_000}
    found = []
    for neurons, edges in list(sizes.items())[: 1 if quick else None]:
        graph = planted_graph(neurons, edges)
        labels = nb.detect_communities(graph, seeds=1)
        partition: list[set[int]] = []

        def louvain(graph: sp.csr_array = graph, partition: list = partition) -> None:
            partition[:] = nx.community.louvain_communities(nb.to_networkx(graph), seed=0)

        found.append(
            compare(
                f"communities_{neurons}",
                f"one search over {graph.nnz // 2:,} edges, against networkx's Louvain with its graph built",
                lambda graph=graph: seconds(lambda: nb.detect_communities(graph, seeds=1)),
                lambda louvain=louvain: seconds(louvain),
                unit="s",
                repeats=1 if quick else 5 if neurons < 20_000 else 3,
                work={"bytes": float(SEARCH * graph.nnz * EDGE)},
                held=float(graph.nnz * EDGE),
            )
        )
        theirs = np.empty(neurons, dtype=int)
        for name, group in enumerate(partition):
            theirs[list(group)] = name
        assert labels.modularity >= nb.modularity(graph, theirs) - 1e-3, "at least as modular"
        if neurons == 5_000 or quick:
            found.append(_modularity(graph, theirs, partition, 1 if quick else 5))
    return found


def _modularity(graph: sp.csr_array, labels: np.ndarray, partition: list[set[int]], repeats: int) -> Comparison:
    other = nb.to_networkx(graph)
    assert abs(nx.community.modularity(other, partition) - nb.modularity(graph, labels)) < 1e-9
    checking = [seconds(lambda: as_graph(graph)) for _ in range(repeats)]
    found = compare(
        f"modularity_{graph.shape[0]}",
        f"modularity of one partition of {graph.nnz // 2:,} edges, against networkx on its own graph",
        lambda: seconds(lambda: nb.modularity(graph, labels)),
        lambda: seconds(lambda: nx.community.modularity(other, partition)),
        unit="s",
        repeats=repeats,
        work={"bytes": float(graph.nnz * EDGE)},
        held=float(graph.nnz * EDGE),
    )
    rest = median(found.ours) - median(checking)
    return replace(found, parts={"checking that the graph is one, and symmetric": median(checking), "adding up": rest})


def _trained(model: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Activations of a trained network's hidden neurons over its probe set, labels, and which are in the last layer."""
    from nbutils.runs.models import HIDDEN_LAYERS

    run = nb.run_once(nb.RunSpec(dataset="mnist-5k", model=model, epochs=3))
    data = run.spec.data()
    probe = nb.probe_indices(data.train_true)
    layers = nb.capture_activations(run.network(), data.train_inputs[probe], HIDDEN_LAYERS)
    return np.hstack(list(layers.values())), run.probe_labels, run.layers == run.layers.max()


def snapshots(quick: bool) -> list[Comparison]:
    """Whole snapshots of trained networks."""
    draws = 2 if quick else 20
    spec = nb.MeasureSpec(null_draws=draws)

    def ours(activations: np.ndarray, labels: np.ndarray, last: np.ndarray) -> dict[str, float]:
        fired = nb.firing(activations)
        return {
            **nb.measure_communities(fired, spec),
            **nb.measure_nulls(fired, labels, spec, np.random.default_rng(0)),
            **nb.measure_entropies(fired, labels, last),
            **simple(activations, labels),
        }

    def simple(activations: np.ndarray, labels: np.ndarray) -> dict[str, float]:
        return {
            "binned_entropy": float(nb.binned_entropy(activations).sum()),
            "class_selectivity": float(nb.class_selectivity(nb.class_means(activations, labels)).mean()),
            "dead_share": nb.dead_share(nb.firing(activations, "positive")),
        }

    def parts(activations: np.ndarray, labels: np.ndarray, last: np.ndarray) -> dict[str, float]:
        fired = nb.firing(activations)
        steps = {
            "firing": lambda: nb.firing(activations),
            "the graph and its searches": lambda: nb.measure_communities(fired, spec),
            "graphs and searches of null models": lambda: nb.measure_nulls(
                fired, labels, spec, np.random.default_rng(0)
            ),
            "entropies of patterns, information": lambda: nb.measure_entropies(fired, labels, last),
            "entropy and selectivity of single neurons": lambda: simple(activations, labels),
        }
        return {what: median(seconds(step) for _ in range(1 if quick else 5)) for what, step in steps.items()}

    small = _trained("mlp:256-128-64")
    mine, theirs = ours(*small), slow.snapshot(*small, draws=1)
    for name in theirs:
        exact = name not in ("modularity", "null_circular", "null_within")
        assert abs(mine[name] - theirs[name]) < (1e-6 if exact else 0.02), (name, mine[name], theirs[name])
    found = [
        _snapshot(
            "snapshot_448",
            "NumPy, networkx and scikit-learn",
            quick,
            draws,
            lambda: ours(*small),
            lambda: slow.snapshot(*small, draws=draws),
            448,
            parts(*small),
        )
    ]
    if find_spec("igraph") is None:
        print(
            "snapshot_1024 is left out: it needs igraph (pip install -r benchmarks/requirements.txt)", file=sys.stderr
        )
        return found
    large = _trained("mlp:512-512")
    fired, labels = nb.firing(large[0]), large[1]
    mine, theirs = ours(*large), strong.snapshot(fired, labels, draws=1)
    assert all(abs(mine[name] - theirs[name]) < 0.02 for name in theirs), (mine, theirs)

    def strongest() -> None:
        matrix = nb.firing(large[0])
        strong.snapshot(matrix, labels, draws)
        nb.measure_entropies(matrix, labels, large[2])
        simple(large[0], labels)

    found.append(
        _snapshot(
            "snapshot_1024",
            "NumPy float32 with igraph's Leiden, entropies as ours",
            quick,
            draws,
            lambda: ours(*large),
            strongest,
            1_024,
            parts(*large),
        )
    )
    return found


def _snapshot(
    name: str,
    other: str,
    quick: bool,
    draws: int,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    neurons: int,
    parts: dict[str, float],
) -> Comparison:
    about = f"firing, graph, 5 searches, both nulls x {draws} draws, entropies and baselines, against {other}"
    graphs, searches = 1 + 2 * draws, 5 + 2 * draws
    edges = 0.05 * neurons * (neurons - 1)
    found = compare(
        name,
        about,
        lambda: seconds(ours),
        lambda: seconds(theirs),
        unit="s",
        repeats=1 if quick else 3,
        work={"words": graphs * words(neurons), "bytes": searches * SEARCH * edges * EDGE},  # counts may be kept
        held=edges * EDGE,
    )
    return replace(found, parts=parts)
