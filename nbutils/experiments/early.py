"""The first two epochs: networks that are looked at after every single step, and the rules of what comes first."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nbutils.activations import above_least, activation_histogram, firing
from nbutils.data.datasets import held_out_probe
from nbutils.entropy import active_entropy, block_entropy
from nbutils.experiments.trials import Trial
from nbutils.measures import MeasureSpec, measure_matched
from nbutils.runs.conditions import activation
from nbutils.runs.models import hidden_layers, hidden_widths, takes_images
from nbutils.runs.run import run_address
from nbutils.runs.spec import RunSpec
from nbutils.second.networks import ARCHITECTURE_IMAGES, ARCHITECTURES
from nbutils.second.questions import PROTOCOL
from nbutils.support.provenance import digest_of, provenance

if TYPE_CHECKING:
    import torch

__all__ = [
    "ASKED",
    "EARLY_RULES",
    "EarlyRules",
    "chance_steps",
    "early_probe",
    "early_rows",
    "early_seconds",
    "early_trials",
    "early_values",
    "step_count",
]

DATASETS = ("mnist-10k", "fashion-mnist-10k", "cifar10-10k")
SEEDS = 10
EPOCHS = 2
MLP: Mapping[str, Any] = {"model": "mlp:256-128", "batch_size": 128}
# The VGG-like network of the second study, on its data set.
VGG_ON = "cifar10-10k"
VGG: Mapping[str, Any] = {"model": ARCHITECTURES["vgg"].model, "batch_size": 32, "examples": ARCHITECTURE_IMAGES}
VGG_PROBE = 500  # images of the held-out probe, for a pass through convolutions is dear
DRAWS = PROTOCOL.draws  # of active neurons at every step, the same ones as long as the same neurons are active
LOOKS_BEYOND = 12  # steps at which a null model is drawn, too
# What is asked whether it comes first -> the sign with which H2 or H3 predicts that it goes with accuracy.
ASKED: Mapping[str, int] = {"modularity": 1, "active_entropy": -1, "block_entropy": -1}


@dataclass(frozen=True)
class EarlyRules:
    """How it is decided what comes first; fixed before these networks were looked at in this way.

    For every data set and kind of network, and for Q and both entropies:

    1. *Structure first.* The way of a series goes from the untrained network to the mean of the last `tail` of the
       steps. Its half-way step is the first one at which the running median of `window` values has gone at least `half`
       of it. A series whose way is shorter than `deviations` standard deviations of its last `tail` goes no way, and
       the network is left out. The effect is the mean over networks of log2(half-way step of the measure / of
       accuracy), with a t interval: *supported* below -`octaves`, *contradicted* above it, equivalence within it. With
       fewer than `least` of the networks left it is *not measurable*.
    2. *Leading.* Two-way residuals (means of steps and of runs removed) of measure and accuracy are correlated at lags
       of 1 to `lags` steps either way: mean correlation with the measure first minus mean correlation with accuracy
       first. p values by permuting the runs, intervals by resampling them; beyond `lead`, equivalence within `lead`.
       The sign that is predicted is that of `ASKED`: entropies that lead do so against accuracy.

    p values of all these tests are adjusted together by Holm's method.

    Attributes:
        half: share of the way.
        window: steps of a running median, odd.
        tail: share of the steps that are the end.
        deviations: how many of its end's deviations the way of a series must be long.
        octaves: threshold and bound of the first question, log2 of a ratio of steps.
        least: share of the networks that must be left.
        lags: largest lag, in steps.
        lead: threshold and bound of the second question, a difference of correlations.
        level: confidence of the intervals.
    """

    half: float = 0.5
    window: int = 5
    tail: float = 0.1
    deviations: float = 3.0
    octaves: float = 0.5
    least: float = 0.5
    lags: int = 10
    lead: float = 0.1
    level: float = 0.95

    @property
    def digest(self) -> str:
        """By which a page names the rules."""
        design = {"datasets": DATASETS, "seeds": SEEDS, "epochs": EPOCHS, "mlp": dict(MLP), "asked": dict(ASKED)}
        design |= {"vgg": dict(VGG), "vgg_on": VGG_ON, "vgg_probe": VGG_PROBE, "draws": DRAWS}
        return digest_of({**asdict(self), **design})


EARLY_RULES = EarlyRules()


def early_trials(datasets: Sequence[str] | None = None, seeds: int = SEEDS, **changes: Any) -> list[Trial]:
    """All networks of the experiment *early*.

    Args:
        datasets: names of data sets; None takes those of the book. The VGG-like network belongs to CIFAR-10.
        seeds: networks of each kind on each data set.
        **changes: parameters of a run that replace those of all.

    Returns:
        Seed by seed, fully connected networks ("256-128") first, then the VGG-like ones.

    Examples:
        >>> trials = early_trials(seeds=10)
        >>> len(trials), trials[0].condition, trials[-1].condition
        (40, '256-128', 'VGG-like')
    """
    names = DATASETS if datasets is None else datasets
    plan = [("256-128", MLP, dataset, seed) for seed in range(seeds) for dataset in names]
    plan += [("VGG-like", VGG, dataset, seed) for seed in range(seeds) for dataset in names]
    found = []
    for condition, own, dataset, seed in plan:
        if condition == "256-128" or dataset == VGG_ON:
            shared = {**own, "dataset": dataset, "epochs": EPOCHS, "every_epoch": False, "seed": seed}
            found.append(Trial(RunSpec(**{**shared, **changes}), condition))
    return found


def early_probe(labels: np.ndarray, model: str) -> np.ndarray:
    """Test images that a network is looked at with: the held-out probe, for convolutions a part of it.

    Args:
        labels: true label of every test image, shape (images,).
        model: name of the network; all but an MLP see the first 500 images of a seeded order of the probe.

    Returns:
        Indices of test images.

    Examples:
        >>> labels = np.repeat(np.arange(10), 200)
        >>> len(early_probe(labels, "mlp:8")), len(early_probe(labels, "vgg:8"))
        (1000, 500)
    """
    probe, _ = held_out_probe(labels)
    if not takes_images(model):
        return probe
    return np.random.default_rng(PROTOCOL.seed).permutation(probe)[:VGG_PROBE]


def step_count(run: RunSpec) -> int:
    """Steps of a run: batches of all its epochs.

    Examples:
        >>> step_count(RunSpec(epochs=2, batch_size=1000))  # the digits have 1,437 training images
        4
    """
    return run.epochs * -(-len(run.data().train_labels) // run.batch_size)


def chance_steps(last: int, count: int = LOOKS_BEYOND) -> list[int]:
    """Steps at which Q is held against a null model: 0, and about `count` more, evenly spaced on a logarithmic scale.

    Args:
        last: number of the last step, at least 1.
        count: how many, at most.

    Examples:
        >>> chance_steps(16, 5)
        [0, 1, 2, 4, 8, 16]
    """
    return [0, *np.unique(np.geomspace(1, last, count).round().astype(int)).tolist()]


def early_values(
    activations: np.ndarray, positive: np.ndarray, labels: np.ndarray, neurons: int, seed: int, beyond: bool = False
) -> dict[str, float]:
    """Communities and entropies of a network at one step.

    Args:
        activations: of all hidden neurons on the probe, at least 0, shape (images, neurons).
        positive: where the input of the activation function is positive, boolean, same shape.
        labels: true class of every image, shape (images,).
        neurons: how many active neurons every graph is drawn down to, as often as in the protocol; one search each.
        seed: of all drawing, the same at every step, so that steps differ by the network alone.
        beyond: whether a null model is drawn, too.

    Returns:
        `active` (neurons that fire), `modularity` and `communities` (means over draws, NaN where too few neurons are
        active), `excess` (Q minus that of firing shifted in a circle, NaN without a null model), `active_entropy` and
        `block_entropy`, in bits.

    Examples:
        >>> found = early_values(np.eye(20), np.eye(20) > 0, np.arange(20), neurons=10, seed=0)
        >>> found["active"], found["active_entropy"], found["modularity"]
        (20, 0.0, 0.0)
    """
    fired = firing(activations)
    active = int(fired.any(axis=0).sum())
    graph = dict.fromkeys(("modularity", "communities", "null_circular"), float("nan"))
    if active >= neurons:
        spec = MeasureSpec(density=PROTOCOL.density, seeds=1, null_draws=int(beyond))
        graph = measure_matched(fired, labels, seed, neurons, spec, DRAWS)
    return {
        "active": active,
        "modularity": graph["modularity"],
        "communities": graph["communities"],
        "excess": graph["modularity"] - graph["null_circular"],
        "active_entropy": active_entropy(activation_histogram(activations)),
        "block_entropy": block_entropy(positive),
    }


class _Watcher:
    """Looks at a network after every step, and notes what it sees and what that costs."""

    def __init__(self, trial: Trial) -> None:
        import torch

        self.trial, data = trial, trial.run.data()
        watched = early_probe(data.test_labels, trial.run.model)
        self.labels = data.test_labels[watched]
        self.images = torch.from_numpy(np.asarray(data.to_inputs(data.test_pixels[watched]), np.float32))
        self.beyond = set(chance_steps(step_count(trial.run)))
        self.rows: list[dict[str, Any]] = []
        self.reason, self.left = "", 0.0

    def __call__(self, model: torch.nn.Module, batch: tuple[torch.Tensor, torch.Tensor] | None) -> None:
        from nbutils.capturing.layouts import NonFiniteError

        came = time.perf_counter()
        if self.reason:
            return
        step = len(self.rows)
        try:
            row = {"step": step, **self._seen(model, step), "batch_loss": _loss(model, batch)}
        except NonFiniteError as error:
            self.reason = f"training diverged: after step {step} {error}"
            return
        # Between two looks there is nothing but a step of training.
        trained = came - self.left if batch else float("nan")
        self.left = time.perf_counter()
        self.rows.append({**row, "step_seconds": trained, "watch_seconds": self.left - came})

    def _seen(self, model: torch.nn.Module, step: int) -> dict[str, float]:
        from nbutils.capturing.hooks import capture_activations

        run = self.trial.run
        function, (hidden, layout) = activation(run.activation), hidden_layers(run.model, run.activation)
        seen = capture_activations(model, self.images, f"{hidden} output", layout=layout)
        right = seen.pop("output").argmax(axis=1) == self.labels
        given = np.hstack(list(seen.values()))
        activations = above_least(given) if function.relative else given
        beyond = step in self.beyond
        found = early_values(activations, given > function.on, self.labels, self.trial.size, run.seed, beyond)
        return {"accuracy": float(right.mean()), **found}


def _loss(model: torch.nn.Module, batch: tuple[torch.Tensor, torch.Tensor] | None) -> float:
    """Cross-entropy of the batch that was just learned from, in evaluation mode as all else; NaN before training."""
    import torch

    from nbutils.capturing.hooks import evaluating

    if batch is None:
        return float("nan")
    with evaluating(model), torch.no_grad():
        return torch.nn.functional.cross_entropy(model(batch[0]), batch[1]).item()


def early_rows(trial: Trial) -> list[dict[str, Any]]:
    """Train a network and look at it before training and after every step, on the held-out probe.

    Args:
        trial: one network.

    Returns:
        A row per step from 0, the untrained network: `condition`, `dataset`, `seed`, `run` (address of the run that has
        these weights), `settings`, `parameters` (JSON), `neurons` (of every graph), `probe` (images), `reason` of a
        failure, `step`, `accuracy`, what :func:`early_values` gives, `batch_loss` (nats, of the batch just learned
        from), `step_seconds` (of training alone) and `watch_seconds` (of this look), `degenerate` (whether more than
        half of the neurons never fire), `commit`, `time`, `machine`.

    Examples:
        >>> rows = early_rows(Trial(RunSpec(epochs=1, model="mlp:16", batch_size=500), "small"))
        >>> [row["step"] for row in rows], rows[0]["accuracy"] < rows[-1]["accuracy"]
        ([0, 1, 2, 3], True)
    """
    from threadpoolctl import threadpool_limits

    from nbutils.runs.recording import watch_training

    run, watcher, origin = trial.run, _Watcher(trial), provenance()
    with threadpool_limits(1):  # sums must not depend on how many cores there are
        watch_training(run, watcher)
    hidden = sum(hidden_widths(run.model))
    shared = {
        "condition": trial.condition,
        "dataset": run.dataset,
        "seed": run.seed,
        "run": run_address(run),
        "settings": trial.settings,
        "parameters": json.dumps(run.model_dump(), sort_keys=True),
        "neurons": trial.size,
        "probe": len(watcher.labels),
        "reason": watcher.reason,
    }
    made = {name: origin[name] for name in ("commit", "time", "machine")}
    return [
        {**shared, **row, "degenerate": float(1 - row["active"] / hidden > PROTOCOL.degenerate), **made}
        for row in watcher.rows
    ]


# Seconds of one processor, as they were on the machine that made the first table: of a look and its step.
LOOK, LOOK_AT_IMAGES = 0.1, 0.5


def early_seconds(trials: Sequence[Trial]) -> float:
    """About how long trials take on one processor; a guess by their steps.

    Examples:
        >>> 10 < early_seconds(early_trials(["mnist-10k"], seeds=1)) < 20
        True
    """
    return sum(step_count(one.run) * (LOOK_AT_IMAGES if takes_images(one.run.model) else LOOK) for one in trials)
