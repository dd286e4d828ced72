"""`python -m benchmarks.quality`: Q of our Leiden against igraph's and leidenalg's, on five graphs.

Both are under the GPL, measured against and never required: `pip install -r benchmarks/requirements.txt`, best into an
environment of its own. One that is not installed is left out.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import scipy.sparse as sp

import nbutils as nb
from benchmarks.graphs import planted_graph

SEEDS = 20
Search = Callable[[sp.csr_array, float, int], np.ndarray]


def graphs() -> dict[str, sp.csr_array]:
    """Small and large, weighted and not, with communities and without."""
    pixels = nb.load_dataset("digits").train_pixels
    named = {
        "karate club": nx.karate_club_graph(),
        "Les Misérables": nx.les_miserables_graph(),
        "random": nx.gnp_random_graph(500, 0.05, seed=0),
    }
    return {
        **{name: sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float)) for name, graph in named.items()},
        "pixels of digits": nb.activation_pattern_graph(nb.firing(pixels), density=0.1),
        "planted in 5,000 neurons": planted_graph(5_000, 60_000),
    }


def of_igraph(graph: sp.csr_array, resolution: float, seed: int) -> np.ndarray:
    """One search of igraph's Leiden, two iterations as ours."""
    random.seed(seed)  # where igraph takes its chance from
    other, weights = _igraph(graph)
    return np.array(other.community_leiden("modularity", weights, resolution=resolution, n_iterations=2).membership)


def of_leidenalg(graph: sp.csr_array, resolution: float, seed: int) -> np.ndarray:
    """One search of leidenalg, two iterations as ours."""
    import leidenalg

    other, weights = _igraph(graph)
    kind, options = leidenalg.RBConfigurationVertexPartition, {"resolution_parameter": resolution}
    found = leidenalg.find_partition(other, kind, weights=weights, n_iterations=2, seed=seed, **options)
    return np.array(found.membership)


def compare_quality(resolution: float = 1.0) -> pd.DataFrame:
    """Mean Q over seeds of each search, and how far ours lies above the others; Q is computed by us throughout."""
    others: dict[str, Search] = {"igraph": of_igraph, "leidenalg": of_leidenalg}
    there = {name: search for name, search in others.items() if find_spec(name) is not None}
    rows = []
    for name, graph in graphs().items():
        row = {"graph": name, "neurons": graph.shape[0], "edges": graph.nnz // 2}
        row["ours"] = nb.detect_communities(graph, resolution, SEEDS).modularity_per_seed.mean()
        for other, search in there.items():
            found = [nb.modularity(graph, search(graph, resolution, seed), resolution) for seed in range(SEEDS)]
            row |= {other: np.mean(found), f"ours - {other}": row["ours"] - np.mean(found)}
        rows.append(row)
    return pd.DataFrame(rows)


def _igraph(graph: sp.csr_array) -> tuple[Any, list[float]]:
    import igraph

    upper = sp.triu(graph, 1).tocoo()
    return igraph.Graph(n=graph.shape[0], edges=np.column_stack(upper.coords)), upper.data.tolist()


if __name__ == "__main__":
    if not (find_spec("igraph") or find_spec("leidenalg")):
        sys.exit("neither igraph nor leidenalg is installed: pip install -r benchmarks/requirements.txt")
    for gamma in (1.0, 2.0):
        print(f"resolution {gamma:g}, mean Q of {SEEDS} searches")
        print(compare_quality(gamma).to_string(index=False, float_format="{:.5f}".format))
