"""The second study of a data set: its networks, what is measured on each, and the tables of both.

One path for every data set, the book's or a reader's own: networks that differ by their seed, a grid of label noise,
networks that memorise random labels, and zoos; every measure on a held-out probe and on two halves of it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbutils.communities import detect_communities
from nbutils.data.catalogue import parse_name
from nbutils.data.datasets import label_noise, load_dataset, probe_halves
from nbutils.entropy import active_entropy, block_entropy
from nbutils.graphs import activation_pattern_graph
from nbutils.measures import MeasureSpec, measure_matched
from nbutils.runs.models import hidden_widths
from nbutils.runs.run import Run, run_address, run_once, run_together
from nbutils.runs.spec import RunSpec
from nbutils.second.candidates import CANDIDATES, Candidate
from nbutils.second.questions import PROTOCOL
from nbutils.second.zoo import LEAST_IMAGES, ZOOS, Member, zoo_members
from nbutils.study.extras import extra, extra_code
from nbutils.study.results import CONDITIONS, NOISE_LEVELS, run_rows
from nbutils.study.study import run_stacks, stacks
from nbutils.support.checks import shown
from nbutils.support.code import code_digest
from nbutils.support.files import is_file, read_parquet, replace_file
from nbutils.support.machine import default_jobs
from nbutils.support.provenance import digest_of, environment, provenance
from nbutils.support.store import Store

__all__ = [
    "ARCHITECTURES",
    "MLP",
    "Architecture",
    "Network",
    "Tables",
    "compute",
    "is_done",
    "networks_of",
    "read_tables",
    "settings_digest",
    "tables_of",
    "write_tables",
]

SEEDS, GRID_SEEDS, QUICK_SEEDS = 10, 5, 3
GRID_IMAGES = 10_000  # of a folder of one's own, at most; those of public data sets have names
PAPER = {"model": "mlp:512-512", "dropout": 0.02, "epochs": 20}
# Small data sets have a small network; the large ones a part of their images for the grid, as in the first study.
OWN: Mapping[str, Mapping[str, Any]] = {
    "digits": {"model": "mlp:256-128-64", "epochs": 10},
    "mnist-5k": {"model": "mlp:256-128-64", "epochs": 10},
}
# Random labels until they are memorised, on the images of the grid.
MEMORISING = {"labels": "random", "dropout": 0.0, "epochs": 200, "stop_at": 0.95}
# A quick study: these networks on a part of the images.
QUICK = {"model": "mlp:48-24", "epochs": 3, "examples": LEAST_IMAGES}
GRIDS = {"mnist": "mnist-10k", "fashion-mnist": "fashion-mnist-10k", "cifar10": "cifar10-10k"}
SIZED = {"plantvillage": "plantvillage@32"}  # at 64x64 nearly all weights would be in the first layer
ZOOS_OF = {
    "digits": (),
    "mnist-5k": (),
    "plantvillage": ("small", "one loss"),
    "cifar10": ("small", "one loss"),
}
OWN_ZOOS = ("small", "one loss")
PARTS = ("whole", "first", "second")  # of a probe: all of it, and two halves


@dataclass(frozen=True)
class Architecture:
    """A kind of network that the questions are put to beside fully connected ones; fewer networks, for they are slower.

    Attributes:
        title: what a page calls it.
        kind: "convolutional" or "transformer".
        model: of the runs and the grid.
        small: of a quick study.
        about: what it is, in words.
    """

    title: str
    kind: str
    model: str
    small: str
    about: str


ARCHITECTURES: Mapping[str, Architecture] = {
    "vgg": Architecture(
        "VGG-like network",
        "convolutional",
        "vgg:24-24-48-48-96-96",
        "vgg:8-16",
        "six 3x3 convolutions with batch normalisation in three stages; a neuron is a channel, averaged over positions",
    ),
    "resnet": Architecture(
        "ResNet-20",
        "convolutional",
        "resnet:20-16",
        "resnet:8-8",
        "the residual network of He et al. (2016) for CIFAR; a neuron is a channel after a ReLU, averaged over "
        "positions",
    ),
    "vit": Architecture(
        "Vision transformer",
        "transformer",
        "vit:64-4",
        "vit:32-2",
        "four blocks on patches of 4x4 pixels; a neuron is a hidden unit of a block's MLP, averaged over patches",
    ),
}
ARCHITECTURE_SEEDS, ARCHITECTURE_EPOCHS, ARCHITECTURE_IMAGES = 8, 12, 5000
ARCHITECTURE_LEVELS = ("true", "mixed:0.25", "mixed:0.5", "random")  # of the grid, each with `GRID_SEEDS` networks
MLP = "mlp"


@dataclass(frozen=True)
class Network:
    """One network of the study and what it is for.

    Attributes:
        run: its parameters.
        designs: "runs", "grid", "memorising", or a key of `nbutils.second.zoo.ZOOS`; one may serve two.
        family: in a zoo, else -1; `configuration` likewise.
        axis: along which the family goes, or "".
        configuration: number of its settings.
        neurons: how many neurons graphs are drawn down to.
        costly: whether costly measures are taken on it, too.
    """

    run: RunSpec
    designs: tuple[str, ...]
    neurons: int
    family: int = -1
    axis: str = ""
    configuration: int = -1
    costly: bool = False


def networks_of(dataset: str, quick: bool = False, architecture: str = MLP) -> list[Network]:
    """All networks of the second study of a data set.

    Args:
        dataset: its name.
        quick: a few small networks of every kind, which show that all works and decide nothing.
        architecture: "mlp", or key of `ARCHITECTURES`.

    Returns:
        Runs with all three label conditions, the grid of label noise, networks that memorise, and the zoos; of other
        architectures than the MLP fewer, and none that memorise.

    Raises:
        ValueError: no such data set or architecture, or a folder with too few images.

    Examples:
        >>> networks = networks_of("digits")
        >>> len(networks), networks[0].designs
        (60, ('runs', 'grid'))
    """
    if architecture != MLP:
        return _of_architecture(dataset, quick, architecture)
    own = parse_name(dataset).path is not None
    whole, grid = SIZED.get(dataset, dataset), GRIDS.get(dataset, SIZED.get(dataset, dataset))
    shared = {"preprocessing": "standard", **(QUICK if quick else OWN.get(dataset, PAPER))}
    part = {"examples": GRID_IMAGES} if own and len(load_dataset(dataset).train_true) > GRID_IMAGES else {}
    designs: dict[RunSpec, list[str]] = defaultdict(list)
    for labels in CONDITIONS:
        for seed in range(QUICK_SEEDS if quick else SEEDS):
            designs[RunSpec(dataset=whole, labels=labels, seed=seed, **shared)].append("runs")
    for labels in NOISE_LEVELS:
        for seed in range(1 if quick else GRID_SEEDS):
            designs[RunSpec(dataset=grid, labels=labels, seed=seed, **part | shared)].append("grid")
    for seed in () if quick else range(GRID_SEEDS):
        designs[RunSpec(dataset=grid, seed=seed, **part | shared | MEMORISING)].append("memorising")
    found = _for_all(designs)
    for kind in ("small",) if quick else ZOOS_OF.get(dataset, OWN_ZOOS if own else tuple(ZOOS)):
        members = zoo_members(dataset, kind, quick)
        neurons = min(_half(member.run) for member in members)
        chosen = _costly(members) if dataset == COSTLY_ON and kind == "small" and not quick else ()
        found += [Network(m.run, (kind,), neurons, m.family, m.axis, m.configuration, m in chosen) for m in members]
    return found


def _for_all(designs: Mapping[RunSpec, Sequence[str]]) -> list[Network]:
    return [Network(run, tuple(parts), _half(run)) for run, parts in designs.items()]


def _of_architecture(dataset: str, quick: bool, architecture: str) -> list[Network]:
    if architecture not in ARCHITECTURES:
        known = ", ".join([MLP, *ARCHITECTURES])
        raise ValueError(f"architecture must be one of {known}, received {shown(architecture)}")
    own, part = ARCHITECTURES[architecture], GRIDS.get(dataset, SIZED.get(dataset, dataset))
    shared: dict[str, Any] = {"dataset": part, "model": own.model, "epochs": ARCHITECTURE_EPOCHS}
    most, seeds = ARCHITECTURE_IMAGES, dict.fromkeys(ARCHITECTURE_LEVELS, GRID_SEEDS)
    seeds["true"] = ARCHITECTURE_SEEDS
    if quick:
        shared, most = {**shared, "model": own.small, "epochs": QUICK["epochs"]}, LEAST_IMAGES
        seeds = {labels: QUICK_SEEDS if labels == "true" else 1 for labels in ARCHITECTURE_LEVELS}
    if len(load_dataset(part).train_true) > most:
        shared["examples"] = most
    designs: dict[RunSpec, list[str]] = {}
    for labels, count in seeds.items():
        for seed in range(count):
            named = [name for name, there in (("runs", labels in CONDITIONS), ("grid", seed < GRID_SEEDS)) if there]
            designs[RunSpec(labels=labels, seed=seed, **shared)] = named
    members = zoo_members(part, architecture, quick)
    neurons = min(_half(member.run) for member in members)
    zoo = [Network(m.run, ("small",), neurons, m.family, m.axis, m.configuration) for m in members]
    return _for_all(designs) + zoo


# Weight masks and trees take a minute of a network and more: they are taken on one data set, on these families, and of
# every configuration on the first seed.
COSTLY_ON, COSTLY_FAMILIES = "kmnist", 24


def _costly(members: Sequence[Member]) -> list[Member]:
    first = {member.configuration: member for member in reversed(members) if member.family < COSTLY_FAMILIES}
    return list(first.values())


def _half(run: RunSpec) -> int:
    """How many neurons every sound network of this kind has active."""
    return round(PROTOCOL.matched * sum(hidden_widths(run.model)))


def is_done(network: Network) -> bool:
    """Whether the user's store holds a network (failed ones count) and all its measures."""
    where = run_address(network.run)
    record = Store("runs").read(where)
    if record is None:
        return False
    if record["reason"]:
        return True
    stored = Store("looks").read(_address(where, network.neurons)) or {"code": {}}
    return all(stored["code"].get(name) == code for name, code in _wanted(network).items())


def compute(
    networks: Sequence[Network],
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    save: Callable[[], None] | None = None,
) -> int:
    """Train and measure what the store lacks, side by side where networks are alike; returns how many that were.

    Args:
        networks: see :func:`networks_of`.
        jobs: processes; None means one per core.
        progress: called with (finished, missing) as networks finish.
        save: called every few minutes while networks finish, and once at the end.

    Raises:
        RuntimeError: a stack of networks was cut off three times; what finished is kept.
    """
    missing, jobs = [one for one in networks if not is_done(one)], jobs or default_jobs()
    return run_stacks(_train_and_measure, stacks(missing, jobs), jobs, __name__, progress, save)


def _train_and_measure(stack: Sequence[Network]) -> None:
    for network, run in zip(stack, run_together([one.run for one in stack]), strict=True):
        if not run.failed:
            try:
                measured(run, network)
            except OSError:  # a damaged run was set aside: it is made again once
                measured(run_once(network.run), network)


def measured(run: Run, network: Network) -> dict[str, Any]:
    """What is measured on one network, computed once and kept; only what is new or stale is computed again.

    Args:
        run: the finished run.
        network: what it is for.

    Returns:
        The record: `facts` (accuracy on the other test images, dead neurons, whether it is degenerate), and `values` by
        entry of `CANDIDATES` (and "untrained", "series"): rows of (epoch, part of the probe, column, value), and the
        `seconds` of each.
    """
    store, where = Store("looks", run.store.folder.parent), _address(run.address, network.neurons)
    wanted, kept = _wanted(network), store.read(where)
    if kept is None or any(kept["code"].get(name) != code for name, code in wanted.items()):
        with store.lock(where):
            kept = store.read(where) or {"code": {}, "values": {}, "seconds": {}}
            stale = [name for name, code in wanted.items() if kept["code"].get(name) != code]
            values, seconds, facts = _measure(run, network, stale)
            fixed = {"run": run.address, "neurons": network.neurons, "environment": environment(), "facts": facts}
            kept = fixed | {
                "code": kept["code"] | {name: wanted[name] for name in stale},
                "values": kept["values"] | values,
                "seconds": kept["seconds"] | seconds,
                "provenance": provenance(),
            }
            store.write(where, kept, replace=True)
    return kept


def _address(run: str, neurons: int) -> str:
    return digest_of({"look": run, "neurons": neurons, "environment": environment()})


def _wanted(network: Network) -> dict[str, str]:
    """Digest of the code of everything that is measured on a network."""
    found = {one.name: one.code for one in CANDIDATES if network.costly or not one.costly}
    if "runs" in network.designs or "grid" in network.designs:
        found["untrained"] = found["graph"]
    if "runs" in network.designs:
        found["steps"] = code_digest(f"{__name__}._steps") + extra_code("evolution")
    if {"runs", "memorising"} & set(network.designs):
        found["series"] = code_digest(f"{__name__}._series")
    return found


SERIES = ("series", "steps")  # what is measured over the epochs, on the training probe


Rows = list[list[Any]]  # epoch, part of the probe, column, value; lists, as they come back from the store


def _measure(run: Run, network: Network, names: Sequence[str]) -> tuple[dict[str, Rows], dict[str, float], dict]:
    from nbutils.runs.looks import look_at

    looks = {"whole": look_at(run, neurons=network.neurons)}
    for part, half in zip(PARTS[1:], probe_halves(looks["whole"].labels), strict=True):
        looks[part] = looks["whole"].part(half)
    values: dict[str, Rows] = {}
    seconds: dict[str, float] = {}
    for one in (one for one in CANDIDATES if one.name in names):
        start = time.perf_counter()
        values[one.name] = _taken(one, looks["whole"], run.last_epoch, "whole")
        seconds[one.name] = round(time.perf_counter() - start, 4)
        for part in PARTS[1:] if one.by_halves else ():
            values[one.name] += _taken(one, looks[part], run.last_epoch, part)
    if "untrained" in names:
        before = look_at(run, 0, neurons=network.neurons)
        graph = next(one for one in CANDIDATES if one.name == "graph")
        halves = dict(zip(PARTS[1:], probe_halves(before.labels), strict=True))
        values["untrained"] = _taken(graph, before, 0, "whole")
        for part, half in halves.items():
            values["untrained"] += _taken(graph, before.part(half), 0, part)
    if "series" in names:
        values["series"] = _series(run, network.neurons)
    if "steps" in names:
        values["steps"] = _steps(run)
    return values, seconds, _facts(run, looks["whole"])


def _taken(one: Candidate, look: Any, epoch: int, part: str) -> Rows:
    return [[epoch, part, name, float(value)] for name, value in one.take(look).items()]


def _facts(run: Run, look: Any) -> dict[str, Any]:
    """Performance, and whether the network is degenerate."""
    last = run.record["history"][-1]
    chance, images = 1 / look.run["classes"], look.run["examples"]
    least = chance + PROTOCOL.above_chance * np.sqrt(chance * (1 - chance) / images)
    dead = look.dead
    return {
        "accuracy": look.run["other_accuracy"],
        "test_images": look.run["other_images"],
        "images": images,
        "last_epoch": run.last_epoch,
        "train_loss": last["train_loss"],
        "train_accuracy": last["train_accuracy"],
        "dead": dead,
        "degenerate": bool(dead > PROTOCOL.degenerate or last["train_accuracy"] <= least),
    }


NO_NULL = MeasureSpec(density=PROTOCOL.density, seeds=1, null_draws=0)


def _series(run: Run, neurons: int) -> Rows:
    """Q at the common number of neurons and both entropies over the epochs, on the training probe and its halves."""
    halves, found = probe_halves(run.probe_labels), []
    for row in run.record["history"]:
        epoch = row["epoch"]
        fired, positive = run.fired(epoch), run.fired(epoch, "positive")
        binned = [run.histogram(epoch), *run.half_histograms(epoch)]
        for part, chosen, counts in zip(PARTS, (slice(None), *halves), binned, strict=True):
            enough = fired[chosen].any(axis=0).sum() >= neurons
            cells = run.probe_labels[chosen]
            graph = (
                measure_matched(fired[chosen], cells, run.spec.seed, neurons, NO_NULL, PROTOCOL.draws) if enough else {}
            )
            found += [
                [epoch, part, "modularity", graph.get("modularity", float("nan"))],
                [epoch, part, "active_entropy", active_entropy(counts)],
                [epoch, part, "block_entropy", block_entropy(positive[chosen])],
            ]
    return found


def _steps(run: Run) -> Rows:
    """How far communities of successive epochs agree, and two searches of one graph, before training and after it."""
    found = [
        [int(row["epoch"]), "whole", name, float(row[name])]
        for _, row in extra(run, "evolution").rows.iterrows()
        for name in ("agreement", "overlap", "flexibility")
    ]
    for epoch in (0, run.last_epoch):
        searches = detect_communities(activation_pattern_graph(run.fired(epoch), PROTOCOL.density))
        found.append([epoch, "whole", "searches", searches.agreement])
    return found


@dataclass(frozen=True)
class Tables:
    """What the second study of a data set found.

    Attributes:
        networks: one row per network: `run` (address), `designs` (joined by "+"), family, axis and configuration in a
            zoo, all parameters and their digest (`settings`), performance, whether it is degenerate, and where and when
            it was made.
        measures: one row per network, epoch, part of the held-out probe and measure: `value`.
        series: one row per run, epoch, part of the training probe and measure: `value`; beside
            `train_accuracy` and other lines of the history, and of the step to that epoch `agreement`, `overlap` and
            `flexibility` of communities.
        costs: seconds of each entry of `CANDIDATES` per network.
    """

    networks: pd.DataFrame
    measures: pd.DataFrame
    series: pd.DataFrame
    costs: pd.DataFrame


LONG = ["run", "epoch", "part", "measure", "value"]
HISTORY = ("train_loss", "train_accuracy", "test_accuracy")


def settings_digest(run: RunSpec) -> str:
    """Digest of the parameters of a run alone: the same whatever code, data and machine it is made with."""
    return digest_of(run.model_dump())


def tables_of(networks: Sequence[Network]) -> Tables:
    """Tables of the networks that the store holds.

    Args:
        networks: see :func:`networks_of`; those that are not done are left out.
    """
    rows, measures, series, costs = [], [], [], []
    for network in filter(is_done, networks):
        run = run_once(network.run)
        own = {"family": network.family, "axis": network.axis, "configuration": network.configuration}
        found = {} if run.failed else measured(run, network)
        known = {**run_rows(run, "+".join(network.designs)), "settings": settings_digest(network.run)}
        rows.append(known | own | {"noise": label_noise(run.spec.labels)} | found.get("facts", {}))
        for name, values in found.get("values", {}).items():
            into = series if name in SERIES else measures
            into += [(run.address, *row) for row in values]
        costs += [(run.address, name, value) for name, value in found.get("seconds", {}).items()]
        if "series" in found.get("values", {}):
            series += [
                (run.address, row["epoch"], "whole", name, row[name])
                for row in run.record["history"]
                for name in HISTORY
            ]
    return Tables(
        pd.DataFrame(rows).rename(columns={"parts": "designs"}),
        pd.DataFrame(measures, columns=LONG),
        pd.DataFrame(series, columns=LONG),
        pd.DataFrame(costs, columns=["run", "entry", "seconds"]),
    )


def write_tables(folder: Path, tables: Tables) -> None:
    """Write the tables of a data set, each file whole or not at all.

    Args:
        folder: where they go, `<name>.parquet` each.
        tables: what was found.
    """
    for name, table in vars(tables).items():
        order = [column for column in ("designs", "run", "epoch", "part", "measure", "entry") if column in table]
        words = dict.fromkeys({"run", "part", "measure", "entry"} & set(table), "category")
        rows = table.sort_values(order, ignore_index=True).astype(words if name != "networks" else {})
        replace_file(folder / f"{name}.parquet", rows.to_parquet(index=False, compression="zstd"))


def read_tables(folder: Path) -> Tables:
    """Read the tables of a data set.

    Raises:
        FileNotFoundError: a table is missing; says how to make it.
        ValueError: a file is damaged; names it.
    """
    found = {}
    for name in (field.name for field in fields(Tables)):
        path = folder / f"{name}.parquet"
        if not is_file(path):
            command = f"python -m nbutils replicate {folder.name}"
            raise FileNotFoundError(f"folder {folder} has no {path.name}; run {command} in the project's folder")
        try:
            table = read_parquet(path)
        except (OSError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        found[name] = table.astype({column: str for column in ("run", "part", "measure", "entry") if column in table})
    return Tables(**found)
