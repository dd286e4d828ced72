"""Networks with other settings: side by side and in processes, against a plain PyTorch loop, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch.nn.functional import cross_entropy

import nbutils as nb
from benchmarks.harness import Comparison, seconds
from benchmarks.seeds import compare_training, training_held, training_work
from nbutils.data.datasets import Dataset
from nbutils.runs import training
from nbutils.runs.models import parameter_count, stack_size
from nbutils.runs.training import Stack, TrainingSettings, one_thread, train
from nbutils.support.machine import compute_threads, default_jobs
from nbutils.support.workers import Lost, run_tasks

BATCH = 32
# Of each configuration one value of every axis is drawn.
AXES = {
    "examples": (640, 1280, 2560),
    "epochs": (1, 2, 3),
    "learning_rate": (0.0003, 0.001, 0.003),
    "weight_decay": (0.0, 0.1, 1.0),
    "dropout": (0.0, 0.2, 0.5),
}


@dataclass(frozen=True)
class Configuration:
    """What one network is trained with; its number is its seed."""

    number: int
    examples: int
    epochs: int
    learning_rate: float
    weight_decay: float
    dropout: float


def zoo(quick: bool) -> list[Comparison]:
    """Forty small networks, and twenty of the paper's."""
    cases = [("zoo_small", "mlp:256-128", 40), ("zoo_paper", "mlp:512-512", 20)]
    return [_compare(name, model, 6 if quick else count, quick) for name, model, count in cases[: 1 if quick else None]]


def configurations(count: int) -> list[Configuration]:
    """As many different settings, drawn at random but always the same."""
    rng = np.random.default_rng(0)
    return [Configuration(k, **{name: v[rng.integers(len(v))] for name, v in AXES.items()}) for k in range(count)]


def _compare(name: str, model: str, count: int, quick: bool) -> Comparison:
    chosen = configurations(count)
    about = (
        f"training {count} configurations of 784-{model.removeprefix('mlp:')}-10 that differ in images, epochs, rate, "
        "decay and dropout, against a plain PyTorch loop over them; AdamW, batch 32, start of processes not counted"
    )
    found = compare_training(
        name,
        about,
        partial(side_by_side, model, chosen),
        partial(one_by_one, model, chosen),
        repeats=1 if quick else 3,
        work=training_work(model, sum(one.examples * one.epochs for one in chosen)),
        held=training_held(model, _stacked(model, len(chosen))),
    )
    return replace(found, parts=_parts(model, chosen, 1 if quick else 5))


def side_by_side(model: str, chosen: Sequence[Configuration]) -> tuple[float, list[float]]:
    """Seconds from the first step of any worker to the last, and test accuracies: the way that the zoo is trained."""
    longest = sorted(chosen, key=lambda one: -one.epochs * one.examples)
    size = _stacked(model, len(chosen))
    stacks = [longest[start : start + size] for start in range(0, len(longest), size)]
    work = partial(_stack, model)
    # Workers are warm when the clock starts, as the plain loop's process is.
    results = [result for _, result in run_tasks(work, stacks, default_jobs(), preload=("nbutils.runs.recording",))]
    assert not any(isinstance(result, Lost) for result in results), results
    starts, ends, accuracies = zip(*results, strict=True)
    return max(ends) - min(starts), [value for values in accuracies for value in values]


def _stack(model: str, chosen: Sequence[Configuration]) -> tuple[float, float, list[float]]:
    with one_thread():
        _train(model, [replace(one, examples=64, epochs=1) for one in chosen])
        start = time.monotonic()
        models = _train(model, chosen)
        end = time.monotonic()
    return start, end, [_accuracy(one) for one in models]


def _stacked(model: str, networks: int) -> int:
    """Networks that train as one stack."""
    return min(stack_size(parameter_count(model, 784, 10)), -(-networks // default_jobs()))


def _parts(model: str, chosen: Sequence[Configuration], repeats: int) -> dict[str, float]:
    """Where the time of one stack in one process goes: the same with less and less of the work left in."""
    longest = sorted(chosen, key=lambda one: -one.epochs * one.examples)[: _stacked(model, len(chosen))]
    # By what is left out, in this order; arrays that were there before take the place of what would be made.
    known: dict[Any, Any] = {}

    def once(make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*given: Any) -> Any:
            key = make, given[-1].shape  # of the batch: networks leave the stack
            return known[key] if key in known else known.setdefault(key, make(*given))

        return made

    less = {
        "Adam's update of the weights": (training, "_adam", lambda *_: lambda: None),
        "what dropout drops: drawing it": (training, "_kept", once(training._kept)),
        "gathering images": (training._Images, "prepared", once(training._Images.prepared)),
        "products of matrices, forwards and backwards": (Stack, "step", lambda *_: None),
    }
    took: dict[str, list[float]] = {what: [] for what in ("all", *less)}
    with one_thread():
        for _ in range(repeats):
            with ExitStack() as without:
                took["all"].append(seconds(lambda: _train(model, longest)))
                for what, (owner, name, instead) in less.items():
                    known.clear()
                    without.enter_context(patch.object(owner, name, instead))
                    took[what].append(seconds(lambda: _train(model, longest)))
    times = [median(values) for values in took.values()]
    parts = {what: before - after for what, before, after in zip(less, times, times[1:], strict=False)}
    return {**parts, "Python around the steps, and making the networks": times[-1]}


def _train(model: str, chosen: Sequence[Configuration]) -> list[torch.nn.Module]:
    models = [_model(model, one) for one in chosen]
    data = [_data(one.examples) for one in chosen]
    settings = [TrainingSettings(one.epochs, BATCH, one.learning_rate, weight_decay=one.weight_decay) for one in chosen]
    for _ in train(models, data, settings, [one.number for one in chosen]):
        pass
    return models


def one_by_one(model: str, chosen: Sequence[Configuration]) -> tuple[float, list[float]]:
    """Seconds and test accuracies of the loop that one would write first, with PyTorch's own number of threads."""
    torch.set_num_threads(compute_threads())
    networks = [_model(model, one) for one in chosen]
    start = time.monotonic()
    for one, network in zip(chosen, networks, strict=True):
        data = _data(one.examples)
        inputs, labels = torch.from_numpy(data.train_inputs), torch.from_numpy(data.train_labels)
        optimizer = torch.optim.AdamW(network.parameters(), lr=one.learning_rate, weight_decay=one.weight_decay)
        order = torch.Generator().manual_seed(one.number)
        network.train()
        for _ in range(one.epochs):
            for batch in torch.randperm(len(inputs), generator=order).split(BATCH):
                loss = cross_entropy(network(inputs[batch]), labels[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    return time.monotonic() - start, [_accuracy(network) for network in networks]


def _data(examples: int) -> Dataset:
    return nb.load_dataset("mnist-5k", examples=examples)


def _model(model: str, one: Configuration) -> torch.nn.Module:
    torch.manual_seed(one.number)
    return nb.build_model(model, 784, 10, one.dropout)


def _accuracy(model: torch.nn.Module) -> float:
    data = nb.load_dataset("mnist-5k")
    logits = nb.capture_activations(model.eval(), data.test_inputs, "output")["output"]
    return float((logits.argmax(axis=1) == data.test_labels).mean())
