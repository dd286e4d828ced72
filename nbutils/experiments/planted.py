"""The experiment *planted*: networks whose modules are known, and the rows of each in its table."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from nbutils.data.datasets import load_dataset
from nbutils.measures import MeasureSpec, measure_matched
from nbutils.nulls import circular_shift_null
from nbutils.second.questions import PROTOCOL
from nbutils.support.provenance import digest_of, provenance
from nbutils.truth.detection import CONDITIONAL, Subject, control_rows, detection_rows
from nbutils.truth.network import WIDTHS, Trained, train_heads
from nbutils.truth.planted import TASKS, Sample, first_pixels, planted_data
from nbutils.truth.remainders import joint_cells, plant_cofiring
from nbutils.truth.swaps import dependence, sides, swap_effect

__all__ = ["STATES", "PlantedCase", "planted_cases", "planted_rows", "planted_seconds"]

SEEDS, BLOCK = 20, 10  # of each task; so many of all tasks come before any more
SECONDS = 8.0  # of one processor, a network
BINS = 10  # of the histogram of dependence
DRAWS = 8  # of half of the neurons, for the book's measure
GROUPS = 8  # planted at random
ONE_NULL = MeasureSpec(density=PROTOCOL.density, seeds=1, null_draws=1)
# How firing is looked at -> (modules within which co-firing is planted, its strength); none is planted for "".
STATES = {
    "network": ("", 0.0),
    "second hidden": ("", 0.0),
    "shifted": ("", 0.0),
    "shuffled": ("sides", 0.0),
    "sides 0.1": ("sides", 0.1),
    "sides 0.3": ("sides", 0.3),
    "sides 1": ("sides", 1.0),
    "groups 0.1": ("groups", 0.1),
    "groups 0.3": ("groups", 0.3),
    "groups 1": ("groups", 1.0),
}


@dataclass(frozen=True)
class PlantedCase:
    """One network of the experiment.

    Attributes:
        task: key of `TASKS`.
        dataset: where images come from.
        seed: of pictures, weights and all that is drawn.
        pictures: to train with.
        probe: to look at the network with.
        epochs: passes over the pictures.
    """

    task: str
    dataset: str = "mnist"
    seed: int = 0
    pictures: int = 20_000
    probe: int = 2000
    epochs: int = 6

    @cached_property
    def settings(self) -> str:
        """Digest by which a table knows the network."""
        return digest_of(self.identity)

    @property
    def identity(self) -> dict[str, Any]:
        """By what a store knows the network."""
        images = "drawn" if TASKS[self.task].kind == "glyphs" else load_dataset(self.dataset).version
        return {**asdict(self), "images": images, "widths": list(WIDTHS)}

    @property
    def run(self) -> str:
        """Its name in a message."""
        return f"{self.task}, seed {self.seed}"


def planted_cases(datasets: Sequence[str] | None = None, seeds: int | None = None, **changes: Any) -> list[PlantedCase]:
    """All networks of the experiment *planted*, in blocks of ten seeds, within which the tasks that decide come first.

    Args:
        datasets: names of data sets of grey images; None takes MNIST.
        seeds: networks of each task; None takes twenty.
        **changes: other fields of every case.

    Examples:
        >>> found = planted_cases(seeds=2)
        >>> len(found), found[0].task, found[1].seed
        (20, 'independent', 1)
    """
    names, count = datasets or ("mnist",), SEEDS if seeds is None else seeds
    blocks = [range(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK)]
    each = product(names, blocks, TASKS)
    return [PlantedCase(task, name, seed, **changes) for name, block, task in each for seed in block]


def planted_seconds(cases: Sequence[Any]) -> float:
    """About how long networks take on one processor.

    Examples:
        >>> planted_seconds(planted_cases(seeds=1)) > 10
        True
    """
    return SECONDS * len(cases)


def planted_rows(case: PlantedCase) -> list[dict[str, Any]]:
    """The rows of a network: itself ("whole"), firing that is what it is or was changed ("state"), every construction
    ("construction") and partitions whose agreement is known ("control").

    Args:
        case: one network.

    Returns:
        `kind` of each row, what is known of the network, and of a sound one what `state_rows`,
        :func:`nbutils.truth.detection.detection_rows` and :func:`nbutils.truth.detection.control_rows` give. A network
        whose training failed has one row with the `reason`.
    """
    begun, task = time.perf_counter(), TASKS[case.task]
    train, probe = planted_data(case.task, case.dataset, case.seed, case.pictures, case.probe)
    heads, first = list(task.heads), first_pixels(task, case.dataset) if task.apart else None
    epochs = case.epochs if task.trained else 0
    network = train_heads(train.inputs, train.factors[:, heads], case.seed, epochs, WIDTHS, first)
    if network.reason:
        found = [{"kind": "whole", "degenerate": 1.0}]
    else:
        subject = _subject(network, probe, case.seed)
        whole = _whole(network, train, probe, heads, subject)
        whole["degenerate"] = float(task.trained and _is_degenerate(whole, subject, probe, heads))
        found = [{"kind": "whole"} | whole]
        found += [{"kind": "state"} | row for row in state_rows(subject, probe.factors, case.seed)]
        found += [{"kind": "construction"} | row for row in detection_rows(subject)]
        found += [{"kind": "control"} | row for row in control_rows(subject)]
        found = [row | {"degenerate": whole["degenerate"]} for row in found]
    facts = _facts(case, network.reason, time.perf_counter() - begun)
    return [facts | {name: _rounded(value) for name, value in row.items()} for row in found]


def _rounded(value: Any) -> Any:
    return round(float(value), 5) if isinstance(value, float | np.floating) else value


def _facts(case: PlantedCase, reason: str, seconds: float) -> dict[str, Any]:
    origin = provenance()
    return {
        **{name: getattr(case, name) for name in ("task", "dataset", "seed", "settings")},
        "parameters": json.dumps(case.identity, sort_keys=True),
        "reason": reason,
        "seconds": round(seconds, 2),
        **{name: origin[name] for name in ("commit", "time", "machine")},
    }


def _subject(network: Trained, probe: Sample, seed: int) -> Subject:
    activations = network.hidden(probe.inputs)
    effects = [swap_effect(activations, np.stack([network.hidden(one) for one in draws])) for draws in probe.swapped]
    if len(effects) == 3:  # what any other picture of the same factors changes is not theirs
        effects = [np.maximum(effect - effects[2], 0) for effect in effects[:2]]
    layers = np.repeat(np.arange(len(WIDTHS)) + 1, WIDTHS)
    rng = np.random.default_rng([seed, 20])
    return Subject(activations, joint_cells(probe.factors), layers, dependence(*effects), rng)


def _whole(network: Trained, train: Sample, probe: Sample, heads: list[int], subject: Subject) -> dict[str, float]:
    """Accuracy of both heads, and how neurons depend on the factors."""
    found: dict[str, float] = {}
    for name, sample in (("train_accuracy", train), ("accuracy", probe)):
        right = (network.answers(sample.inputs) == sample.factors[:, heads]).mean(axis=0)
        found |= {f"{name}_{k + 1}": float(value) for k, value in enumerate(right)}
    side, shares = sides(subject.shares), subject.shares[np.isfinite(subject.shares)]
    found |= {"first_sided": float((side == 0).mean()), "second_sided": float((side == 1).mean())}
    found |= {"dependence": float(shares.mean()), "dependence_sd": float(shares.std())}
    found["active"] = int((subject.activations > 0).any(axis=0).sum())
    counts = np.histogram(shares, BINS, (0, 1))[0]
    return found | {f"depends_{k}": int(count) for k, count in enumerate(counts)}


def _is_degenerate(whole: dict[str, float], subject: Subject, probe: Sample, heads: list[int]) -> bool:
    """Whether most neurons never fire, or a head answers no better than chance."""
    dead = 1 - whole["active"] / len(subject.layers)
    for k, factor in enumerate(heads):
        chance = 1 / len(np.unique(probe.factors[:, factor]))
        error = np.sqrt(chance * (1 - chance) / len(probe.factors))
        if whole[f"accuracy_{k + 1}"] - chance <= PROTOCOL.above_chance * error:
            return True
    return bool(dead > PROTOCOL.degenerate)


def state_rows(subject: Subject, factors: np.ndarray, seed: int) -> list[dict[str, Any]]:
    """The book's measure of firing as it is, and of firing that was changed in a known way.

    Args:
        subject: the network.
        factors: both factors of each picture, shape (pictures, 2).
        seed: of all that is drawn.

    Returns:
        One row per key of `STATES`: `state`, `modularity`, `excess`, `class_part`, `remainder` and `communities` at
        half of the neurons, as :func:`nbutils.measures.measure_matched` gives them, and `left`, Q of what is left over
        within cells minus that of the shuffle. Cells are those of both factors, for "second hidden" of the first alone.
    """
    fired, rng = subject.values("top-decile"), np.random.default_rng([seed, 21])
    modules = {"sides": (subject.shares > 0.5).astype(int), "groups": rng.permutation(fired.shape[1]) % GROUPS}
    found = []
    for state, (planted, strength) in STATES.items():
        firing = plant_cofiring(fired, subject.cells, modules[planted], strength, rng) if planted else fired
        if state == "shifted":
            firing = circular_shift_null(fired, rng)
        cells = factors[:, 0] if state == "second hidden" else subject.cells
        found.append({"state": state, **_book(firing, cells, rng), "left": _left(firing, cells, subject, rng)})
    return found


def _book(fired: np.ndarray, cells: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """The book's measure; NaN where too few neurons fire."""
    names, size = ("modularity", "class_part", "remainder", "communities"), round(PROTOCOL.matched * fired.shape[1])
    if fired.any(axis=0).sum() < size:
        return dict.fromkeys((*names, "excess"), float("nan"))
    found = measure_matched(fired, cells, rng, size, ONE_NULL, DRAWS)
    return {name: found[name] for name in names} | {"excess": found["modularity"] - found["null_circular"]}


def _left(fired: np.ndarray, cells: np.ndarray, subject: Subject, rng: np.random.Generator) -> float:
    """What is left over within cells, more modular than its shuffle by how much, at resolution 1."""
    changed = Subject(fired.astype(np.float32), cells, subject.layers, subject.shares, rng)
    changed.known["top-decile", "", 0] = fired
    return next(row["remainder"] for row in detection_rows(changed, [CONDITIONAL], resolutions=(1.0,)))
