"""What the pictures of networks show, measured (`make pictures`): communities over epochs, and how neurons die.

One network is trained (or read from the store), its graph is built after every epoch as everywhere in the book, and
what pages need to draw and tell of it goes into `book/_ext/pictures.json`, with the run's address and commit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy.optimize import linear_sum_assignment

import nbutils as nb

__all__ = ["FILE", "SPEC", "dying", "hero_data", "places", "recoloured", "sampled", "strongest", "write"]

FILE = Path(__file__).resolve().with_name("pictures.json")
SPEC = nb.RunSpec(dataset="mnist-5k", seed=0)
DENSITY, DRAWN, DRAWS = 0.05, 900, 20
COLOURS = 7  # of communities; smaller ones, and neurons without an edge, are grey
GREY = -1
OFTEN = 2  # times its mean rate: from there on a community fires often on a class
SAMPLE, PERCENT = 24, range(1, 41)  # neurons of the small graph, and its densities
DYING_STEPS, IMAGES = 30, 40  # of Adam; images whose pre-activations are kept


def hero_data(spec: nb.RunSpec = SPEC, drawn: int = DRAWN, draws: int = DRAWS) -> dict[str, Any]:
    """All that the picture shows and its caption says.

    Args:
        spec: the network.
        drawn: pairs that are drawn per epoch, the heaviest ones.
        draws: of the two null models.

    Returns:
        `about` (the run and how it was measured), `places` (x and y of every neuron, from 0 to 1), `layers`, `groups`
        (colour, classes and place of the communities after the last epoch), `epochs` (accuracy, modularity, its value
        under both nulls, and the pairs to draw) and `sample`, see :func:`sampled`.
    """
    run = nb.run_once(spec)
    data = nb.load_dataset(spec.dataset)
    labels = data.train_true[nb.probe_indices(data.train_true)]
    fired = [run.fired(epoch) for epoch in range(run.last_epoch + 1)]
    graphs = [nb.activation_pattern_graph(one, density=DENSITY) for one in fired]
    found = [nb.detect_communities(graph) for graph in graphs]
    last = found[-1].labels
    where = places(graphs[-1], last)
    epochs = []
    for epoch, (one, graph, communities) in enumerate(zip(fired, graphs, found, strict=True)):
        nulls = [nb.circular_shift_null(one, seed) for seed in range(draws)]
        within = [nb.within_class_null(one, labels, seed) for seed in range(draws)]
        epochs.append(
            {
                "accuracy": round(float(run.history["test_accuracy"][epoch]), 4),
                "modularity": round(nb.modularity(graph, communities.labels), 4),
                "chance": round(_mean_modularity(nulls), 4),
                "classes": round(_mean_modularity(within), 4),
                "communities": int(communities.labels.max() + 1),
                "edges": int(graph.nnz // 2),
                "colours": recoloured(communities.labels, last),
                "pairs": strongest(graph, drawn),
            }
        )
    about = {
        **{"title": data.title, **{name: getattr(spec, name) for name in ("dataset", "model", "seed")}},
        **{"run": run.address, "commit": run.record["provenance"]["commit"], "time": run.record["provenance"]["time"]},
        **{"density": DENSITY, "probe": len(labels), "draws": draws, "versions": run.record["provenance"]["versions"]},
    }
    return {
        "about": about,
        "places": [[round(float(x), 3) for x in axis] for axis in where.T],
        "layers": run.layers.tolist(),
        "groups": _groups(fired[-1], labels, last, where),
        "epochs": epochs,
        "sample": sampled(fired[-1], last, SAMPLE),
    }


def _mean_modularity(nulls: Sequence[np.ndarray]) -> float:
    graphs = [nb.activation_pattern_graph(null, density=DENSITY) for null in nulls]
    return float(np.mean([nb.detect_communities(graph, seeds=1).modularity for graph in graphs]))


def places(graph: Any, communities: np.ndarray, seed: int = 0) -> np.ndarray:
    """Where neurons stand: each community is a disc, related discs are near; neurons without an edge are a row below.

    Args:
        graph: activation pattern graph.
        communities: of its neurons; -1 where there is none.
        seed: of the layout of discs.

    Returns:
        Shape (neurons, 2), x from 0 to 1 and y from 0 to 1 downwards.
    """
    sizes = np.bincount(communities[communities >= 0])
    member = (communities[:, None] == np.arange(len(sizes))).astype(float)
    between = member.T @ (graph @ member)
    np.fill_diagonal(between, 0)
    related = nx.from_numpy_array(between / np.sqrt(np.outer(sizes, sizes)))
    start = nx.circular_layout(related)
    centres = nx.spring_layout(related, pos=start, seed=seed, iterations=200)
    centre = _apart(np.array([centres[one] for one in related]), np.sqrt(sizes))
    strength = np.asarray(graph.sum(axis=1)).ravel()
    found = np.zeros((len(communities), 2))
    for community in range(len(sizes)):
        inside = np.flatnonzero(communities == community)
        order = inside[np.argsort(-strength[inside], kind="stable")]
        turn = np.arange(len(order)) * np.pi * (3 - np.sqrt(5))
        radius = 0.86 * np.sqrt(np.arange(len(order)) + 0.5)
        found[order] = centre[community] + np.c_[np.cos(turn), np.sin(turn)] * radius[:, None]
    return _framed(found, communities >= 0)


def _apart(centres: np.ndarray, radii: np.ndarray, gap: float = 1.1) -> np.ndarray:
    """Centres of discs moved until no two of them touch, in a frame half again as wide as high."""
    centres = centres * np.array([1.5, 1]) * radii.sum()
    wanted = radii[:, None] + radii + gap
    for _ in range(2000):
        centres = centres * 0.995  # towards the middle
        between = centres[:, None] - centres
        distance = np.hypot(*between.transpose(2, 0, 1)) + 1e-9
        push = np.maximum(wanted - distance, 0) / 2
        np.fill_diagonal(push, 0)
        centres = centres + (between / distance[..., None] * push[..., None]).sum(axis=1)
    return centres


def _framed(found: np.ndarray, connected: np.ndarray) -> np.ndarray:
    """Coordinates from 0 to 1, and a row for neurons without an edge."""
    low, high = found[connected].min(axis=0), found[connected].max(axis=0)
    framed = (found - low) / (high - low)
    framed[:, 1] *= 0.9
    lonely = np.flatnonzero(~connected)
    framed[lonely] = np.c_[(np.arange(len(lonely)) + 0.5) / max(len(lonely), 1), np.full(len(lonely), 0.985)]
    return framed


def recoloured(communities: np.ndarray, last: np.ndarray) -> list[int]:
    """The colour of every neuron: that of the community after the last epoch with which its own shares most neurons.

    Args:
        communities: of one epoch, -1 for none.
        last: those after the last epoch.

    Returns:
        A number from 0 to 6 per neuron, or -1 (grey): no edge, or a community beyond the seven.

    Examples:
        >>> recoloured(np.array([1, 1, 0, -1]), np.array([0, 0, 1, 1]))
        [0, 0, 1, -1]
    """
    count = max(communities.max(), last.max()) + 1
    shared = np.array([[np.sum((communities == a) & (last == b)) for b in range(count)] for a in range(count)])
    chosen = linear_sum_assignment(-shared)[1]
    colours = np.append(np.where(chosen < COLOURS, chosen, GREY), GREY)
    return colours[communities].tolist()


def strongest(graph: Any, count: int) -> list[int]:
    """The heaviest pairs i < j of a graph as numbers i * neurons + j, rising, each less the one before it.

    Args:
        graph: sparse, symmetric.
        count: how many; of equal weights those of the first neurons.
    """
    upper = graph.tocoo()
    kept = upper.row < upper.col
    numbers = upper.row[kept].astype(np.int64) * graph.shape[0] + upper.col[kept]
    order = np.lexsort((numbers, -upper.data[kept]))[:count]
    return np.diff(np.sort(numbers[order]), prepend=0).tolist()


def _groups(fired: np.ndarray, labels: np.ndarray, communities: np.ndarray, where: np.ndarray) -> list[dict[str, Any]]:
    """Colour, size, classes and place of each coloured community."""
    table, kinds = nb.selective_for(fired, labels, np.where(communities < COLOURS, communities, -1)), np.unique(labels)
    return [
        {
            "colour": int(row.community),
            "neurons": int(row.neurons),
            "classes": [int(k) for k in kinds if table.loc[row.Index, k] > OFTEN] or [int(row.selective_for)],
            "place": [round(float(x), 3) for x in where[communities == row.community].mean(axis=0)],
        }
        for row in table[table["community"] >= 0].itertuples()
    ]


def sampled(fired: np.ndarray, communities: np.ndarray, count: int, seed: int = 0) -> dict[str, Any]:
    """A few neurons drawn at random, and their graph at every density.

    Args:
        fired: activation pattern matrix.
        communities: of all neurons, for the colours.
        count: neurons drawn, of those that have a coloured community.
        seed: of the draw.

    Returns:
        `neurons`, `colours` (of their communities in the whole network), `counts` (how often each pair i < j fires
        together, row by row) and `densities`: for each share of pairs edges, communities, their colours, and Q.
    """
    rng = np.random.default_rng(seed)
    known = np.flatnonzero((communities >= 0) & (communities < COLOURS))
    neurons = np.sort(rng.choice(known, count, replace=False))
    neurons = neurons[np.argsort(communities[neurons], kind="stable")]
    few = fired[:, neurons]
    together = few.T.astype(int) @ few
    densities = []
    for percent in PERCENT:
        graph = nb.activation_pattern_graph(few, density=percent / 100)
        found = nb.detect_communities(graph).labels
        densities.append(
            {
                "percent": percent,
                "edges": int(graph.nnz // 2),
                "communities": int(found.max() + 1),
                "labels": found.tolist(),
                "colours": recoloured(found, communities[neurons]),
                "modularity": round(nb.modularity(graph, found), 4),
            }
        )
    return {
        "neurons": neurons.tolist(),
        "colours": communities[neurons].tolist(),
        "counts": together[np.triu_indices(count, 1)].tolist(),
        "densities": densities,
    }


def dying(dataset: str = SPEC.dataset, steps: int = DYING_STEPS, images: int = IMAGES) -> dict[str, Any]:
    """The paper's network trained for a few steps on the same images, prepared in three ways.

    Args:
        dataset: of images with a dark background.
        steps: of Adam, batches of 32.
        images: whose pre-activations in one neuron are kept.

    Returns:
        `neuron`: the first one of the first layer that fires for most of the images at first, and is dead in the end
        with a white background; `ways`: preparation -> `dead`, share of the first layer's neurons that fire on none of
        1,000 images, after every step; `before` and `after`, the neuron's pre-activations.

    Raises:
        ValueError: no neuron sinks in so few steps.
    """
    data = nb.load_dataset(dataset)
    unit, standard = data.train_inputs, nb.load_dataset(dataset, preprocessing="standard").train_inputs
    ways = {"0 to 1, white background": 1 - unit, "0 to 1, black background": unit, "mean 0": standard}
    courses = {name: _first_layer(inputs, data, steps) for name, inputs in ways.items()}
    white = next(iter(courses.values()))
    sunk = ((white[0][:images] > 0).mean(axis=0) > 0.5) & (white[-1] <= 0).all(axis=0)
    if not sunk.any():
        raise ValueError(f"steps must be enough for a neuron to sink for every image, received {steps} on {dataset}")
    neuron = int(np.flatnonzero(sunk)[0])
    found = {
        name: {
            "dead": [round(float((z <= 0).all(axis=0).mean()), 4) for z in course],
            **{
                when: np.round(course[n][:images, neuron].astype(float), 3).tolist()
                for when, n in (("before", 0), ("after", -1))
            },
        }
        for name, course in courses.items()
    }
    return {"dataset": dataset, "title": data.title, "steps": steps, "neuron": neuron, "ways": found}


def _first_layer(inputs: np.ndarray, data: Any, steps: int) -> list[np.ndarray]:
    """Pre-activations of the first hidden layer for 1,000 images, before training and after every step."""
    import torch
    from torch.nn.functional import cross_entropy

    rng, images, labels = np.random.default_rng(0), torch.from_numpy(inputs), torch.from_numpy(data.train_labels)
    torch.manual_seed(0)
    network, seen = nb.build_model("mlp:512-512", inputs.shape[1], len(data.classes)), []
    optimiser = torch.optim.Adam(network.parameters(), lr=0.001)
    for step in range(steps + 1):
        seen.append(next(iter(nb.capture_activations(network, images[:1000], "hidden*.linear").values())))
        if step < steps:
            batch = rng.choice(len(labels), 32, replace=False)
            optimiser.zero_grad()
            cross_entropy(network(images[batch]), labels[batch]).backward()
            optimiser.step()
    return seen


def write(data: dict[str, Any], file: Path = FILE) -> None:
    """Keep what the picture needs, one line per epoch."""
    lines = json.dumps({**data, "epochs": None}, separators=(",", ":"))
    epochs = ",\n".join(json.dumps(epoch, separators=(",", ":")) for epoch in data["epochs"])
    file.write_text(lines.replace('"epochs":null', f'"epochs":[\n{epochs}\n]') + "\n", "utf-8")


if __name__ == "__main__":
    write({**hero_data(), "dying": dying()})
    print(f"Wrote {FILE.name}, {FILE.stat().st_size / 1000:.0f} kB.")
