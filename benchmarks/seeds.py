"""Ten seeds of one network: side by side and in processes, against a plain PyTorch loop, one seed after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from scipy.stats import mannwhitneyu
from torch.nn.functional import cross_entropy

import nbutils as nb
from benchmarks.harness import Comparison, compare
from nbutils.data.datasets import Dataset
from nbutils.runs.models import hidden_widths, parameter_count, stack_size
from nbutils.runs.training import TrainingSettings, one_thread, train
from nbutils.support.machine import compute_threads, default_jobs
from nbutils.support.workers import Lost, run_tasks

SEEDS = 10


def seeds(quick: bool) -> list[Comparison]:
    """A small network and the paper's."""
    cases = [("seeds_small", "mlp:128-64", 2), ("seeds_paper", "mlp:512-512", 1)]
    return [_compare(*case, quick) for case in cases[: 1 if quick else None]]


def _compare(name: str, model: str, epochs: int, quick: bool) -> Comparison:
    examples = 320 if quick else 4_000
    given = model, range(SEEDS), examples, epochs, "cpu"
    about = (
        f"training {SEEDS} seeds of 784-{model.removeprefix('mlp:')}-10 for {epochs} epochs of {examples:,} examples, "
        f"against a plain PyTorch loop over seeds; Adam, batch 32, start of processes not counted"
    )
    return compare_training(
        name,
        about,
        partial(side_by_side, *given),
        partial(one_by_one, *given),
        repeats=1 if quick else 5 if epochs > 1 else 3,
        work=training_work(model, SEEDS * epochs * examples),
        held=training_held(model, _stacked(parameter_count(model, 784, 10), "cpu")),
    )


Trained = tuple[float, list[float]]  # seconds, and test accuracies


def compare_training(
    name: str,
    about: str,
    ours: Callable[[], Trained],
    other: Callable[[], Trained],
    repeats: int,
    work: dict[str, float],
    held: float,
) -> Comparison:
    """Two ways to train the same networks, whose accuracies must not differ by more than luck."""
    accuracies: dict[str, list[float]] = {}

    def timed(side: str, train_all: Callable[[], Trained]) -> float:
        took, accuracies[side] = train_all()
        return took

    sides = partial(timed, "ours", ours), partial(timed, "other", other)
    found = compare(name, about, *sides, unit="s", repeats=repeats, work=work, held=held)
    assert mannwhitneyu(accuracies["ours"], accuracies["other"]).pvalue > 0.001, accuracies
    return found


def training_work(model: str, examples: int) -> dict[str, float]:
    """Products forwards and backwards (none to the inputs), and bytes of weights, slopes and moments per step of 32.

    Of seven kinds of 4 bytes: weights, slopes and two moments are read, all but the slopes written. A core works on the
    same ones at every step, so most of these bytes come from a cache, and are counted at a cache's rate: see
    :func:`training_held`.
    """
    whole, first = parameter_count(model, 784, 10), 784 * hidden_widths(model)[0]
    return {"flops": examples * (6.0 * whole - 2 * first), "bytes": examples / 32 * whole * 28}


def training_held(model: str, networks: int) -> float:
    """Bytes of weights, slopes and two moments that a core has in use at every step: those of one stack of networks."""
    return 16.0 * parameter_count(model, 784, 10) * networks


def _stacked(parameters: int, device: str) -> int:
    """Networks that train as one stack: as many as are best, or as few as keep all cores busy."""
    jobs = default_jobs() if device == "cpu" else 1
    return min(stack_size(parameters, device), -(-SEEDS // jobs))


def side_by_side(model: str, numbers: range, examples: int, epochs: int, device: str) -> tuple[float, list[float]]:
    """Seconds from the first step of any worker to the last, and test accuracies: the way that studies train."""
    jobs = default_jobs() if device == "cpu" else 1
    size = _stacked(parameter_count(model, 784, 10), device)
    stacks = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    work = partial(_stack, model, examples, epochs, device)
    # Workers are warm when the clock starts, as the plain loop's process is.
    results = [result for _, result in run_tasks(work, stacks, jobs, preload=("nbutils.runs.recording",))]
    assert not any(isinstance(result, Lost) for result in results), results
    starts, ends, accuracies = zip(*results, strict=True)
    return max(ends) - min(starts), [value for values in accuracies for value in values]


def _stack(model: str, examples: int, epochs: int, device: str, numbers: range) -> tuple[float, float, list[float]]:
    data = _data(examples)
    with one_thread():
        _train(model, _data(64), 1, device, numbers)
        start = time.monotonic()
        models = _train(model, data, epochs, device, numbers)
        end = time.monotonic()
    return start, end, [_accuracy(one, data) for one in models]


def _train(model: str, data: Dataset, epochs: int, device: str, numbers: range) -> list[torch.nn.Module]:
    models = [_model(model, number, device) for number in numbers]
    for _ in train(models, [data] * len(models), TrainingSettings(epochs=epochs), list(numbers)):
        pass
    if device != "cpu":
        torch.cuda.synchronize()
    return models


def one_by_one(model: str, numbers: range, examples: int, epochs: int, device: str) -> tuple[float, list[float]]:
    """Seconds and test accuracies of the loop that one would write first, with PyTorch's own number of threads."""
    torch.set_num_threads(compute_threads())
    data = _data(examples)
    inputs = torch.from_numpy(data.train_inputs).to(device)
    labels = torch.from_numpy(data.train_labels).to(device)
    networks = [_model(model, number, device) for number in numbers]
    start = time.monotonic()
    for number, network in zip(numbers, networks, strict=True):
        optimizer = torch.optim.Adam(network.parameters())
        order = torch.Generator().manual_seed(number)
        for _ in range(epochs):
            for batch in torch.randperm(len(inputs), generator=order).to(device).split(32):
                loss = cross_entropy(network(inputs[batch]), labels[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.monotonic() - start, [_accuracy(network, data) for network in networks]


def _data(examples: int) -> Dataset:
    data = nb.load_dataset("mnist-5k")
    return replace(data, train_pixels=data.train_pixels[:examples], train_labels=data.train_labels[:examples])


def _model(model: str, number: int, device: str) -> torch.nn.Module:
    torch.manual_seed(number)
    return nb.build_model(model, 784, 10).to(device)


def _accuracy(model: torch.nn.Module, data: Dataset) -> float:
    logits = nb.capture_activations(model, data.test_inputs, "output")["output"]
    return float((logits.argmax(axis=1) == data.test_labels).mean())
