"""One network measured, layer by layer and whole, with reference values beside every number."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from nbutils.capturing.batches import Feeder, as_batch, require_values
from nbutils.capturing.hooks import as_pattern, as_written, capture_activations, evaluating, wanted_layers
from nbutils.capturing.layouts import Layout
from nbutils.capturing.proposals import Proposal, propose_layers
from nbutils.communities import agreed_communities, detect_communities
from nbutils.data.datasets import probe_halves
from nbutils.graphs import activation_pattern_graph
from nbutils.measures import MeasureSpec, measure_matched
from nbutils.own.images import LEAST, TOKENS, as_inputs, expected, noise_like, shown_examples
from nbutils.own.models import as_module, draws_all, untrained_twin
from nbutils.runs.looks import AnyLook
from nbutils.second.candidates import CANDIDATES, Candidate
from nbutils.second.questions import PROTOCOL
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, is_among, shown
from nbutils.support.devices import resolve_device
from nbutils.support.files import replace_file
from nbutils.support.provenance import provenance
from nbutils.tracking import selective_for

__all__ = ["MEASURED", "WHOLE", "Measured", "measure"]

WHOLE = "whole network"
PARTS = ("whole", "first", "second")  # of the images: all of them, and two halves
GRAPH = MeasureSpec(density=PROTOCOL.density, seeds=1, null_draws=1)
FEWEST = 32  # active neurons without which a layer has no graph worth a number: a twentieth of its pairs is 25 edges
DRAWS = 5  # of neurons, where more are active than are compared
PER_LAYER = ("graph", "binned", "blocks", "firing", "classes")  # entries of the registry taken on every layer
LEFT_OUT = ("other_remainders",)  # takes three graphs of its own
WIDE = 2048  # neurons of the last layer, and as many of the others, that entries of these names and families look at
ON_SOME = ("agreement", "representation")
FEW = 200  # images of which halves differ by more than networks do
HELD = 2**31  # bytes of activations that are kept between the first look at all networks and their measures
MOST, MOST_TWINS = 10_000_000, 1000
APART = 210_604_693  # part of all seeds that are derived
DRAWN = 250  # neurons of the picture of the graph, at most
WORDS = ("above", "below", "among", "unknown")
# Columns of the table of a layer -> what a page calls them.
MEASURED = {name: words for one in CANDIDATES for name, words in one.columns.items()} | {
    "neurons": "neurons",
    "active": "active neurons",
    "compared": "neurons compared",
}


@dataclass(frozen=True)
class Measured:
    """What :func:`measure` found.

    Attributes:
        table: one row per layer (and the whole network) and measure: `layer`, `measure`, `called` (in words), `value`,
            `first` and `second` (the two halves of the images), `untrained_low` and `untrained_high` (over untrained
            twins and halves), `noise_low` and `noise_high` (the network itself on images of noise), and `word`: whether
            the value and both halves lie "above" or "below" all of these, or "among" them, or "unknown" where something
            is missing.
        neurons: one row per neuron: `layer`, `neuron` (number in its layer), `rate` (share of images on which it
            fires), `mean` activation, `community` in the graph of the whole network, of 4,096 active neurons at most
            (-1 where it has none), and with labels the class that community is `selective_for` and its `preference`.
        edges: of the graph of the whole network among at most 250 neurons: `first`, `second` (rows of `neurons`).
        costs: seconds and mebibytes of every entry of the registry.
        layers: the layers that were considered, see :class:`nbutils.capturing.proposals.Proposal`.
        about: what was measured, and how; `left_out` names references that could not be measured, and why;
            `never_above_0` how many neurons of which layer change with the image and never fire, for they are never
            above 0; `joined` is the share of pairs that the graph of the whole network joins, which is more than
            `density` where pairs are tied.
    """

    table: pd.DataFrame
    neurons: pd.DataFrame
    edges: pd.DataFrame
    costs: pd.DataFrame
    layers: pd.DataFrame
    about: dict[str, Any]

    def save(self, folder: Path | str) -> Path:
        """Write all tables into a folder, as Parquet, the first also as CSV, and `about.json`.

        Returns:
            The folder.
        """
        where = Path(folder)
        where.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            replace_file(where / f"{name}.parquet", getattr(self, name).to_parquet(index=False))
        replace_file(where / "table.csv", self.table.to_csv(index=False).encode())
        replace_file(where / "about.json", json.dumps(self.about, indent=1).encode())
        return where

    @classmethod
    def load(cls, folder: Path | str) -> Measured:
        """Read what :meth:`save` wrote.

        Raises:
            FileNotFoundError: a file is missing.
        """
        where = Path(folder)
        tables = {name: pd.read_parquet(where / f"{name}.parquet") for name in TABLES}
        return cls(**tables, about=json.loads((where / "about.json").read_text("utf-8")))

    @property
    def too_small(self) -> list[str]:
        """Layers without a graph, for too few of their neurons are active in one of the networks that are compared."""
        compared = self.table[self.table["measure"] == "compared"]
        return compared.loc[compared["value"] < FEWEST, "layer"].tolist()

    def wide(self, measures: Collection[str]) -> pd.DataFrame:
        """Values by layer: a row per layer in order, a column per measure."""
        rows = self.table[self.table["measure"].isin(measures)]
        wide = rows.pivot(index="layer", columns="measure", values="value")
        order = list(dict.fromkeys(self.table["layer"]))
        found = wide.reindex(index=order, columns=[name for name in measures if name in wide]).reset_index()
        return found.astype(dict.fromkeys(COUNTS & set(found), int))


COUNTS = {"neurons", "active", "compared"}
TABLES = ("table", "neurons", "edges", "costs", "layers")


@checked
def measure(
    model: nn.Module,
    images: Any,
    labels: Any = None,
    *,
    layers: Any = None,
    mean: Any = None,
    std: Any = None,
    examples: int = 2000,
    neurons: int = 512,
    twins: int = 5,
    factory: Callable[[], nn.Module] | None = None,
    reduce: str = "mean",
    layout: Any = "auto",
    device: str = "cpu",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Measured:
    """Communities, entropies and baselines of any network, with what untrained twins and noise would give.

    Every number is taken on all images and on two halves of them, on graphs of equally many active neurons; beside it
    stand the same number of twins that were never trained (see :func:`nbutils.own.models.untrained_twin`), and of
    the network on noise with the images' mean and deviation. A number is called above or below these references only if
    it and both halves are beyond all of them.

    Time and memory are bounded for wide networks: representations, and communities beside preferred classes, are those
    of at most 2,048 neurons of the last layer and as many of the others, drawn once and the same in all networks.

    Args:
        model: any PyTorch module; it is left as it was.
        images: shape (n, channels, height, width) or (n, features), bytes or numbers; see
            :func:`nbutils.own.images.as_inputs`. Of a file, those that are looked at alone are held in memory, see
            :class:`nbutils.own.images.StoredRows`.
        labels: class per image, integers, shape (n,); without them, what needs none is computed.
        layers: wildcards, see :func:`nbutils.capturing.hooks.capture`; None takes what
            :func:`nbutils.capturing.proposals.propose_layers` proposes.
        mean: per channel, of numbers from 0 to 1, as in training; `std` likewise.
        std: see there.
        examples: images looked at, at most, equally many of each class; from 20 on.
        neurons: how many active neurons graphs are drawn down to, at most; from 32 on.
        twins: untrained twins, from 1 to 1,000.
        factory: makes a fresh model of the kind without arguments, such as the model's class. Where it draws all
            weights at random, it makes the twins; else each layer draws its own by `reset_parameters`, which may differ
            from how the model began.
        reduce: "mean" or "max" over positions or tokens.
        layout: where a layer's type does not tell how its output is read, see
            :func:`nbutils.capturing.layouts.read_layers`.
        device: "cpu", "cuda" or "auto", where the network runs.
        seed: of all drawing.
        progress: called with (done, total) as networks are measured.

    Returns:
        A :class:`Measured`.

    Raises:
        ValueError: an argument does not fit (names it, and what was received), an activation is NaN (names the layer),
            nothing fires, or the images do not fit the model (says what its first layer takes).

    Examples:
        >>> model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 3))
        >>> found = measure(model, np.random.default_rng(0).normal(size=(60, 20)), examples=60, twins=1)
        >>> found.wide(["neurons", "active"]).to_dict("records")
        [{'layer': '1', 'neurons': 30, 'active': 30}, {'layer': 'whole network', 'neurons': 30, 'active': 30}]
    """
    if not is_among(reduce, ("mean", "max")):
        raise ValueError(f"reduce must be 'mean' or 'max', received {shown(reduce)}")
    examples, neurons = as_count(examples, "examples", LEAST, MOST), as_count(neurons, "neurons", FEWEST, MOST)
    twins, seed = as_count(twins, "twins", most=MOST_TWINS), as_count(seed, "seed", 0, 2**32)
    own = as_module(model)
    require_values(own)
    _require_finite(own)
    kept, classes, total = shown_examples(images, labels, examples)
    inputs, how = as_inputs(own, kept, mean, std)
    if bool((inputs == inputs[:1]).all()):
        raise ValueError(f"images must differ, received {len(inputs)} that are all alike")
    fresh = factory if factory is not None and draws_all(factory, own) else None
    where = resolve_device(device)
    before = next((one.device for one in own.parameters()), torch.device("cpu"))
    own.to(where)
    try:
        looker = Looker(looked_at(own, inputs, layers, layout), classes, reduce, layout, seed)
        names = [one.name for one in looker.proposed]
        networks: list[tuple[str, Callable[[], AnyLook]]] = [("own", lambda: looker.look(own, inputs))]
        networks += [
            (f"untrained {k}", lambda k=k: looker.look(untrained_twin(own, inputs, _apart(seed, k), fresh), inputs))
            for k in range(twins)
        ]
        networks.append(("noise", lambda: looker.look(own, noise_like(inputs, _apart(seed, twins)))))
        steps, compared = 2 * len(networks), dict[int, int]()
        held: dict[str, AnyLook] = {}
        left_out: dict[str, str] = {}
        for place, (name, make) in enumerate(networks):
            try:
                look = make()
            except (ValueError, RuntimeError) as error:
                if name == "own" or isinstance(error, torch.OutOfMemoryError):
                    raise
                left_out[name] = str(error)
                continue
            compared = _compared(look, compared, neurons)
            if name == "own" and not look.fired.any():
                raise ValueError("layers: no neuron of them fires on these images")
            if look.preactivations.nbytes * (len(held) + 1) <= HELD:
                held[name] = replace(look)  # without what was derived from it
            if progress:
                progress(place + 1, steps)
        networks = [one for one in networks if one[0] not in left_out]
        costs: dict[str, tuple[float, float]] = {}
        rows: list[tuple[str, str, str, str, float]] = []
        for place, (name, make) in enumerate(networks):
            look = held.pop(name) if name in held else make()
            rows += _taken(name, look, compared, names, classes, costs if name == "own" else None)
            if name == "own":
                found, edges, joined = _neurons(look, names, classes, seed)
                below = _never_above_0(look, names)
                accuracy, outputs = _accuracy(look, classes), look.logits.shape[1] if looker.scored else None
            if progress:
                progress(steps - len(networks) + place + 1, steps)
    finally:
        own.to(before)
    return Measured(
        table=_table(rows),
        neurons=found,
        edges=edges,
        costs=pd.DataFrame([(k, *v) for k, v in costs.items()], columns=["entry", "seconds", "mebibytes"]),
        layers=pd.DataFrame([{**vars(one), "shape": "x".join(map(str, one.shape))} for one in looker.considered]),
        about={
            "name": type(own).__name__,
            "weights": "as they were given",
            "data": "images that were given",
            "class_names": [] if classes is None else [str(k) for k in range(int(classes.max()) + 1)],
            "model": type(own).__name__,
            "parameters": sum(one.numel() for one in own.parameters()),
            "images": len(inputs),
            "of": total,
            "shape": list(inputs.shape[1:]),
            "inputs": how,
            "classes": 0 if classes is None else len(np.unique(classes)),
            "accuracy": accuracy,
            "unscored": _unscored(classes, outputs),
            "outputs": outputs,
            "left_out": left_out,
            "twins": sum(name.startswith("untrained") for name, _ in networks),
            "twins_made_by": "the factory" if fresh else "each layer's reset_parameters",
            "noise": _noise(inputs, how),
            "density": PROTOCOL.density,
            "joined": joined,
            "never_above_0": below,
            "seed": seed,
            "provenance": provenance(),
        },
    )


def _apart(seed: int, number: int) -> int:
    """A seed of a twin or of noise, which nobody would take for a model or its images by chance."""
    return int(np.random.SeedSequence([seed, number, APART]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _noise(inputs: torch.Tensor, how: str) -> str:
    if how == TOKENS:
        return "the same tokens, dealt anew over examples and positions"
    return f"normal noise with the mean and deviation of each {'feature' if inputs.ndim == 2 else 'channel'}"


def looked_at(model: nn.Module, inputs: torch.Tensor, layers: Any, layout: Layout) -> list[Proposal]:
    """Those that are looked at, in the order in which they run."""
    try:
        considered = propose_layers(model, inputs)
    except ValueError:
        if layers is None:
            raise
        considered = []
    except RuntimeError as error:
        raise ValueError(f"images do not fit the model: {error}; {expected(model)}") from error
    if layers is None:
        return considered
    try:
        wanted = wanted_layers(model, layers)
    except ValueError as error:  # names modules; functions that are called have names, too
        proposed = ", ".join(repr(one.name) for one in considered if one.chosen)
        raise ValueError(f"{error}; looked at if none are named: {proposed}" if proposed else str(error)) from None
    meant = [one for one in considered if one.name in wanted]
    seen = capture_activations(model, inputs[:3], layers, layout=_layouts(meant, layout))
    known = {one.name: one for one in considered}
    asked = [
        replace(known[name], chosen=True, why="asked for")
        if name in known
        else Proposal(name, "", (), values.shape[1], "auto", True, "asked for")
        for name, values in seen.items()
    ]
    order = {one.name: place for place, one in enumerate(considered)}
    return sorted(asked, key=lambda one: order.get(one.name, len(order)))


def _layouts(proposed: Sequence[Proposal], layout: Layout) -> Layout:
    """How outputs are read: as somebody said, and of called functions, as proposals know."""
    if not isinstance(layout, str) or layout != "auto":
        return layout
    own = {one.name: one.layout for one in proposed}
    return {as_pattern(name): word for name, word in own.items() if word != "auto"} or "auto"


class Looker:
    """Looks at networks of one architecture through the same images and labels."""

    def __init__(
        self, considered: list[Proposal], classes: np.ndarray | None, reduce: str, layout: Layout, seed: int
    ) -> None:
        self.considered = considered
        self.proposed = [one for one in considered if one.chosen]
        self.classes, self.reduce, self.seed = classes, reduce, seed
        self.layout = _layouts(self.proposed, layout)
        self.wanted = [as_pattern(one.name) for one in self.proposed]
        self.scored = False  # whether the network looked at last gave a row of scores for each example

    def look(self, model: nn.Module, inputs: torch.Tensor) -> AnyLook:
        try:
            seen = capture_activations(model, inputs, self.wanted, reduce=self.reduce, layout=self.layout)
        except RuntimeError as error:
            raise ValueError(f"images do not fit the model: {error}; {expected(model)}") from error
        parts = [seen[one.name] for one in self.proposed]
        logits = _outputs(model, inputs)
        self.scored = logits is not None
        examples = len(inputs)
        labels = np.zeros(examples, np.int64) if self.classes is None else self.classes
        return AnyLook(
            preactivations=np.hstack(parts),
            layers=np.repeat(np.arange(1, len(parts) + 1), [part.shape[1] for part in parts]),
            logits=np.zeros((examples, 1), np.float32) if logits is None else logits,
            labels=labels,
            inputs=np.empty((examples, 0), np.float32),
            weights=(),
            biases=(),
            trained_on=(np.empty((0, 0)), np.empty(0)),
            run={},
            neurons=FEWEST,
            seed=self.seed,
        )


def _outputs(model: nn.Module, inputs: torch.Tensor) -> np.ndarray | None:
    """What the model returns, or calls its logits, where that is one row of finite scores for each example."""
    kept: list[Any] = []

    def keep(_module: nn.Module, _given: Any, output: Any) -> None:
        if isinstance(output, Mapping):
            output = output.get("logits")
        elif not isinstance(output, torch.Tensor):
            output = getattr(output, "logits", output)
        kept.append(output[0] if isinstance(output, tuple | list) and output else output)

    feed, handle = Feeder(model), model.register_forward_hook(keep)
    try:
        with as_written(), evaluating(model), torch.no_grad():
            for part in inputs.split(256):
                feed(as_batch(part))
    finally:
        handle.remove()
    rows = [one for one in kept if isinstance(one, torch.Tensor) and one.ndim == 2 and one.shape[1] > 1]
    if len(rows) < len(kept):
        return None
    scores = torch.cat(rows).float().cpu().numpy()
    return scores if len(scores) == len(inputs) and np.isfinite(scores).all() else None


def _accuracy(look: AnyLook, classes: np.ndarray | None) -> float | None:
    """Share of images whose largest output is at their label, where there are as many outputs as classes or more."""
    return float((look.predicted == classes).mean()) if _is_scored(classes, look.logits.shape[1]) else None


def _is_scored(classes: np.ndarray | None, outputs: int) -> bool:
    """Whether labels number the outputs."""
    return classes is not None and int(classes.max()) < outputs


def _unscored(classes: np.ndarray | None, outputs: int | None) -> str:
    """Why there is no accuracy, though there are labels and more than one output."""
    if classes is None or outputs is None or outputs < 2 or _is_scored(classes, outputs):
        return ""
    return f"labels go up to {int(classes.max())}, and the outputs are numbered from 0 to {outputs - 1}"


def _require_finite(model: nn.Module) -> None:
    """Refuse weights that are NaN or infinite, which the layers after them would be blamed for."""
    for name, weights in model.named_parameters():
        if weights.is_floating_point() and (bad := int((~torch.isfinite(weights)).sum())):
            raise ValueError(f"model holds {bad} NaN or infinite weights in {name!r}; was its training sound?")


def _halves(look: AnyLook) -> Iterator[tuple[str, AnyLook]]:
    yield "whole", look
    for part, rows in zip(PARTS[1:], probe_halves(look.labels), strict=True):
        yield part, look.part(rows)


def _compared(look: AnyLook, before: dict[int, int], most: int) -> dict[int, int]:
    """How many neurons are compared, of every layer and (0) of the whole: as many as are active in every network."""
    found = dict(before)
    for _, part in _halves(look):
        active = part.fired.any(axis=0)
        for number in [0, *np.unique(look.layers)]:
            own = int(active.sum() if number == 0 else active[look.layers == number].sum())
            found[int(number)] = min(found.get(int(number), most), own)
    return found


def _narrow(look: AnyLook) -> AnyLook:
    """The same network with fewer neurons, where it has many; the same ones in all networks of one architecture."""
    rng, last = np.random.default_rng(look.seed), look.layers == look.layers.max()
    groups = [rng.permutation(np.flatnonzero(group))[:WIDE] for group in (last, ~last)]
    kept = np.sort(np.concatenate(groups))
    if len(kept) == len(look.layers):
        return look
    return replace(look, preactivations=look.preactivations[:, kept], layers=look.layers[kept])


def _taken(
    network: str,
    look: AnyLook,
    compared: dict[int, int],
    names: list[str],
    classes: np.ndarray | None,
    costs: dict[str, tuple[float, float]] | None,
) -> list[tuple[str, str, str, str, float]]:
    """Everything of one network: rows of (network, layer, part, measure, value)."""
    rows = []
    for part, seen in _halves(look):
        for number in (0, *range(1, len(names) + 1)):
            own = replace(seen, neurons=compared[0]) if number == 0 else seen.of_layer(number, compared[number])
            layer = WHOLE if number == 0 else names[number - 1]
            values, narrow = _counts(own), _narrow(own) if number == 0 else own
            for one in _entries(classes, seen.logits.shape[1], number == 0):
                timed = costs is not None and number == 0 and part == "whole"
                at = narrow if {one.name, one.family} & set(ON_SOME) else own
                values |= _with_cost(one, at, costs) if timed else _safely(one, at)
            rows += [(network, layer, part, name, value) for name, value in values.items()]
    return rows


def _counts(look: AnyLook) -> dict[str, float]:
    active = float(look.fired.any(axis=0).sum())
    return {"neurons": float(len(look.layers)), "active": active, "compared": float(look.neurons)}


def _entries(classes: np.ndarray | None, outputs: int, whole: bool) -> list[Candidate]:
    """Entries of the registry that can be taken here."""
    found = [one for one in CANDIDATES if one.needs != "training" and not one.costly and one.name not in LEFT_OUT]
    if classes is None:
        found = [one for one in found if one.needs != "labels" or one.name == "graph"]
    if not _is_scored(classes, outputs):
        found = [one for one in found if one.name != "accuracy"]
    if outputs < 2:
        found = [one for one in found if one.family != "outputs"]
    return [one for one in found if whole or one.name in PER_LAYER]


def _with_cost(one: Candidate, look: AnyLook, costs: dict[str, tuple[float, float]]) -> dict[str, float]:
    start = time.perf_counter()
    found = _safely(one, look)
    seconds = time.perf_counter() - start
    traced = tracemalloc.is_tracing()  # by the caller
    tracemalloc.start()  # in a second round, for it takes time of its own
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    _safely(one, look)
    peak = (tracemalloc.get_traced_memory()[1] - before) / 2**20
    if not traced:
        tracemalloc.stop()
    costs[one.name] = round(seconds, 4), round(peak, 3)
    return found


def _safely(one: Candidate, look: AnyLook) -> dict[str, float]:
    """An entry's values; NaN where it is not defined for this network and these images."""
    nothing = dict.fromkeys(one.columns, float("nan"))
    if one.name == "graph":
        return nothing | _graph(look)
    try:
        return {name: float(value) for name, value in one.take(look).items()}
    except ValueError:
        return nothing


def _graph(look: AnyLook) -> dict[str, float]:
    if look.neurons < FEWEST:
        return {}
    # Where all active neurons are compared, they are drawn once, and nulls must not hang on one draw of theirs.
    every = look.neurons == look.fired.any(axis=0).sum()
    spec = GRAPH.model_copy(update={"null_draws": DRAWS}) if every else GRAPH
    found = measure_matched(look.fired, look.cells, look.seed, look.neurons, spec, DRAWS)
    known = {name: found[name] for name in ("modularity", "communities", "well_defined", "connected_share")}
    known["excess"] = found["modularity"] - found["null_circular"]
    if look.cells.any():  # more than one cell
        known |= {name: found[name] for name in ("class_part", "remainder", "lone_examples")}
    return known


def _table(rows: list[tuple[str, str, str, str, float]]) -> pd.DataFrame:
    long = pd.DataFrame(rows, columns=["network", "layer", "part", "measure", "value"])
    order = long.loc[long["network"] == "own", ["layer", "measure"]].drop_duplicates()
    keys = ["layer", "measure"]
    own = long[long["network"] == "own"].pivot(index=keys, columns="part", values="value")
    found = own.rename(columns={"whole": "value"})[["value", "first", "second"]]
    for kind, members in (
        ("untrained", long["network"].str.startswith("untrained")),
        ("noise", long["network"] == "noise"),
    ):
        groups = long[members].groupby(keys)["value"]
        found[f"{kind}_low"], found[f"{kind}_high"] = groups.min(), groups.max()
        whole = (groups.count() == groups.size()).reindex(found.index, fill_value=False)
        found.loc[~whole.astype(bool), [f"{kind}_low", f"{kind}_high"]] = np.nan
    found = order.merge(found.reset_index(), on=keys)
    found["word"] = [_word(row) for row in found.itertuples()]
    found.insert(2, "called", found["measure"].map(MEASURED))
    first = found["layer"] == WHOLE  # which was measured first, and is told last
    return pd.concat([found[~first], found[first]], ignore_index=True)


def _word(row: Any) -> str:
    references = [row.untrained_low, row.untrained_high, row.noise_low, row.noise_high]
    own = [row.value, row.first, row.second]
    if not np.isfinite(references + own).all():
        return "unknown"
    return "above" if min(own) > max(references) else "below" if max(own) < min(references) else "among"


def _never_above_0(look: AnyLook, names: list[str]) -> dict[str, int]:
    """How many neurons of a layer change with the image and are never above 0, where there are such."""
    values = look.preactivations
    found = ~look.fired.any(axis=0) & (values != values[:1]).any(axis=0)
    counts = {name: int(found[look.layers == number].sum()) for number, name in enumerate(names, start=1)}
    return {name: count for name, count in counts.items() if count}


def _neurons(
    look: AnyLook, names: list[str], classes: np.ndarray | None, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, float | None]:
    """Every neuron with its community in the graph of all active ones, edges of a picture of it, and pairs joined."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.permutation(np.flatnonzero(look.fired.any(axis=0)))[: 2 * WIDE])
    graph = activation_pattern_graph(look.fired[:, at], PROTOCOL.density)
    communities = np.full(len(look.layers), -1)
    communities[at] = agreed_communities(detect_communities(graph).seed_labels)
    table = pd.DataFrame(
        {
            "layer": [names[number - 1] for number in look.layers],
            "neuron": np.concatenate([np.arange((look.layers == k).sum()) for k in range(1, len(names) + 1)]),
            "rate": look.fired.mean(axis=0),
            "mean": look.activations.mean(axis=0),
            "community": communities,
        }
    )
    if classes is not None and (communities >= 0).any():
        told = selective_for(look.fired[:, communities >= 0], classes, communities[communities >= 0])
        table = table.merge(told[["community", "selective_for", "preference"]], on="community", how="left")
    shown_ones = np.sort(rng.permutation(len(at))[:DRAWN])
    drawn = graph[shown_ones][:, shown_ones].tocoo()
    upper = drawn.row < drawn.col
    ends = [at[shown_ones[side[upper]]] for side in (drawn.row, drawn.col)]
    pairs = len(at) * (len(at) - 1)
    return table, pd.DataFrame({"first": ends[0], "second": ends[1]}), graph.nnz / pairs if pairs else None
