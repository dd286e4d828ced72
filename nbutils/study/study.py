"""A study: which runs answer H1, H2 and H3 on a data set, and their results as tables."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import pandas as pd
from pydantic import AfterValidator, ConfigDict, Field

from nbutils.data.datasets import Dataset, load_dataset
from nbutils.measures import MeasureSpec
from nbutils.runs.models import hidden_widths, parameter_count, stack_size
from nbutils.runs.run import Run, run_once, run_together
from nbutils.runs.spec import RunSpec, checked_by, known_dataset
from nbutils.study.extras import extra, has_extra
from nbutils.study.measure_run import is_measured, measure_run
from nbutils.study.results import CONDITIONS, NOISE_LEVELS, Results, Specimen, labelled, run_rows
from nbutils.support.devices import resolve_device
from nbutils.support.machine import default_jobs
from nbutils.support.messages import Parameters
from nbutils.support.workers import Lost, run_tasks

__all__ = ["Study", "Task", "about_data", "collect", "compute_missing", "failures", "stacks"]

NOISE_SEEDS = 5
SAVE_EVERY = 120  # seconds after which what grows is written again


@dataclass(frozen=True)
class Task:
    """One run and what is measured on it.

    Attributes:
        run: its parameters.
        measure: how it is measured.
        parts: what it is for, keys of `nbutils.study.results.PARTS` between spaces.
        extras: what else is measured, keys of `nbutils.study.extras.EXTRAS`.
    """

    run: RunSpec
    measure: MeasureSpec
    parts: str
    extras: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether the store holds all of it."""
        if not is_measured(self.run, self.measure):
            return False
        return all(has_extra(self.run, name) for name in self.extras) or bool(run_once(self.run).failed)


class Study(Parameters):
    """The runs of one data set: some label conditions with all seeds, and a grid of label noise with five.

    Attributes:
        dataset: name of the data set.
        grid: data set of the grid of label noise, such as a smaller version; None means the same, "" no grid.
        conditions: label conditions.
        seeds: networks per label condition.
        first_seed: seed of the first network; the others follow.
        epochs: passes over the training set.
        model: "mlp:<width>-<width>-...".
        dropout: share of hidden outputs dropped in training.
        density: share of neuron pairs kept as edges of the activation pattern graph.
        device: where networks train, see :func:`nbutils.support.devices.resolve_device`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    dataset: Annotated[str, AfterValidator(known_dataset)] = "digits"
    grid: Annotated[str | None, AfterValidator(lambda name: known_dataset(name) if name else name)] = None
    conditions: tuple[str, ...] = CONDITIONS
    seeds: Annotated[int, Field(ge=1, le=1000)] = 10
    first_seed: Annotated[int, Field(ge=0, lt=2**31 - 1000)] = 0
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 10
    model: Annotated[str, checked_by(hidden_widths)] = "mlp:256-128-64"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    density: Annotated[float, Field(gt=0, le=1)] = 0.05
    device: Annotated[str, AfterValidator(resolve_device)] = "cpu"

    def tasks(self) -> list[Task]:
        """All runs: conditions first. Runs that only the noise grid needs are measured at both ends, without nulls.

        Active neurons are measured alone only at the usual density.
        """
        extras = ("active",) if self.density == MeasureSpec().density else ()
        full = MeasureSpec(density=self.density)
        light = MeasureSpec(density=self.density, null_draws=0, every_epoch=False)
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        grid = self.dataset if self.grid is None else self.grid
        noise = [(labels, seed) for labels in NOISE_LEVELS for seed in seeds[:NOISE_SEEDS]] if grid else []
        shared = set(noise) if grid == self.dataset else set()
        found = []
        for labels in self.conditions:
            for seed in seeds:
                parts = "conditions noise" if (labels, seed) in shared else "conditions"
                found.append(Task(self.run_spec(labels=labels, seed=seed), full, parts, extras))
        done = {(task.run.labels, task.run.seed) for task in found} if shared else set()
        alone = [cell for cell in noise if cell not in done]
        return found + [
            Task(self.run_spec(dataset=grid, labels=labels, seed=seed), light, "noise", extras)
            for labels, seed in alone
        ]

    def run_spec(self, **more: Any) -> RunSpec:
        """A run with the settings of this study, and others; inputs are those of the paper, in [0, 1]."""
        shared = ("dataset", "epochs", "model", "dropout", "device")
        return RunSpec(**{"preprocessing": "unit", **{name: getattr(self, name) for name in shared}, **more})

    def compute(self, jobs: int | None = None, progress: Callable[[int, int], None] | None = None) -> Results:
        """Results of all runs; trains and measures what the store lacks, reads the rest.

        Args:
            jobs: processes for missing runs; None means one per core.
            progress: called with (finished, missing) as missing runs finish.

        Returns:
            The :class:`nbutils.study.results.Results`.
        """
        tasks = self.tasks()
        computed = compute_missing(tasks, jobs, progress)
        return collect(self.dataset, tasks, about_data(load_dataset(self.dataset)), computed)


def collect(dataset: str, tasks: Sequence[Task], about: dict[str, Any], computed: int) -> Results:
    """Results of runs that the store has.

    Args:
        dataset: what the study calls its data set.
        tasks: its runs.
        about: see :func:`about_data`.
        computed: how many had to be computed now.

    Returns:
        The :class:`nbutils.study.results.Results`.
    """
    runs = [run_once(task.run) for task in tasks]
    frames = [labelled(measure_run(run, task.measure), run, task.parts) for run, task in zip(runs, tasks, strict=True)]
    return Results(
        dataset=dataset,
        extras=_extras(runs, tasks),
        table=pd.concat(frames, ignore_index=True),
        runs=pd.DataFrame([run_rows(run, task.parts) for run, task in zip(runs, tasks, strict=True)]),
        specimens={run.address: partial(Specimen.of, run) for run in runs if not run.failed},
        about=about,
        computed=computed,
    )


def _extras(runs: Sequence[Run], tasks: Sequence[Task]) -> dict[str, pd.DataFrame]:
    found = defaultdict(list)
    for run, task in zip(runs, tasks, strict=True):
        for name in () if run.failed else task.extras:
            rows = extra(run, name).rows
            rows.insert(0, "run", run.address)
            found[name].append(rows)
    return {name: pd.concat(tables, ignore_index=True) for name, tables in found.items()}


def about_data(data: Dataset) -> dict[str, Any]:
    """What a page says about the data of a study."""
    facts = {name: getattr(data, name) for name in ("name", "title", "classes", "about", "origin", "version")}
    return {**facts, "train": len(data.train_true), "test": len(data.test_labels)}


def compute_missing(
    tasks: Sequence[Task], jobs: int | None = None, progress: Callable[[int, int], None] | None = None
) -> int:
    """Train and measure the tasks that the store lacks; returns how many those were."""
    missing = [task for task in tasks if not task.done]
    # Starting worker processes costs a few seconds; a handful of runs is quicker here.
    jobs = 1 if len(missing) < 4 else jobs or default_jobs()
    return run_stacks(run_and_measure, stacks(missing, jobs), jobs, __name__, progress)


def run_stacks(
    work: Callable[[Any], Any],
    stacks: Sequence[Sequence[Any]],
    jobs: int,
    module: str,
    progress: Callable[[int, int], None] | None = None,
    save: Callable[[], None] | None = None,
) -> int:
    """Do a piece of work on stacks of networks in processes that have its module; returns how many networks those were.

    Args:
        work: done on every stack.
        stacks: of networks that are trained side by side.
        jobs: processes.
        module: of the work.
        progress: called with (finished, missing).
        save: called every few minutes while networks finish, and once at the end, also of what is interrupted.

    Raises:
        RuntimeError: a stack was cut off three times; what finished is kept.
    """
    missing, finished = sum(map(len, stacks)), 0
    if missing and progress:
        progress(0, missing)
    saved = time.monotonic()
    try:
        for stack, result in run_tasks(work, stacks, jobs, preload=("nbutils.runs.recording", module)):
            if isinstance(result, Lost):
                raise RuntimeError(f"{stack[0].run}: {result.reason}; what finished is kept, try fewer jobs at once")
            finished += len(stack)
            if progress:
                progress(finished, missing)
            if save and time.monotonic() - saved > SAVE_EVERY:
                save()
                saved = time.monotonic()
    finally:
        if save:
            save()
    return missing


def stacks(tasks: Sequence[Any], jobs: int) -> list[tuple[Any, ...]]:
    """Tasks whose networks are trained side by side: small networks of one kind, shared evenly among the jobs.

    Args:
        tasks: anything with the parameters of a `run`; those that take about as many steps come together.
        jobs: processes.

    Examples:
        >>> tasks = Study(seeds=10, model="mlp:8").tasks()
        >>> [len(stack) for stack in stacks(tasks, jobs=2)], [len(stack) for stack in stacks(tasks[:6], jobs=2)]
        ([5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5], [3, 3])
    """
    alike: dict[RunSpec, list[Any]] = defaultdict(list)
    for task in tasks:
        alike[task.run.alike()].append(task)
    found = []
    for spec, group in alike.items():
        data = load_dataset(spec.dataset)
        parameters = parameter_count(spec.model, data.image_shape, len(data.classes))
        size = 1 if spec.alone else min(stack_size(parameters, spec.device), -(-len(group) // jobs))
        group.sort(key=lambda task: -task.run.epochs * (task.run.examples or len(data.train_labels)))
        found += [tuple(group[start : start + size]) for start in range(0, len(group), size)]
    return found


def failures(tasks: Sequence[Task]) -> list[Run]:
    """The runs of some finished tasks that failed."""
    return [run for run in (run_once(task.run) for task in tasks) if run.failed]


def run_and_measure(tasks: Sequence[Task]) -> None:
    """Make sure that runs of one stack and their measures are in the store; a damaged run is made again once."""
    for task, run in zip(tasks, run_together([task.run for task in tasks]), strict=True):
        try:
            _measure(run, task)
        except OSError:
            _measure(run_once(task.run), task)


def _measure(run: Run, task: Task) -> None:
    measure_run(run, task.measure)
    for name in () if run.failed else task.extras:
        extra(run, name)
