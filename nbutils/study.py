"""A study: which runs answer H1, H2 and H3 on a data set, and their results as one table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import pandas as pd
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from nbutils.architectures import hidden_widths, parameter_count, stack_size
from nbutils.cores import default_jobs
from nbutils.datasets import label_noise, load_dataset
from nbutils.devices import resolve_device
from nbutils.measures import MeasureSpec, is_measured, measure_run
from nbutils.runs import Run, run_once, run_together
from nbutils.specs import RunSpec, checked_by, known_dataset
from nbutils.workers import Lost, run_tasks

__all__ = ["CONDITIONS", "NOISE_LEVELS", "Results", "Study", "Task", "compute_missing", "failures", "stacks"]

CONDITIONS = ("true", "mixed:0.5", "random")
NOISE_LEVELS = ("true", "mixed:0.1", "mixed:0.25", "mixed:0.4", "mixed:0.5", "mixed:0.6", "mixed:0.75", "random")
NOISE_SEEDS = 5


@dataclass(frozen=True)
class Task:
    """One run and how it is measured."""

    run: RunSpec
    measure: MeasureSpec


@dataclass(frozen=True)
class Results:
    """What a study found.

    Attributes:
        table: one row per run and epoch: `dataset`, `labels`, `noise`, `seed`, `run` (address), the training history
            and the measures (see :func:`nbutils.measures.measure_run`).
        runs: every run, failed ones too.
        computed: how many of them had to be computed now.
        noise_seeds: the seeds of the grid of label noise.
    """

    table: pd.DataFrame
    runs: tuple[Run, ...]
    computed: int
    noise_seeds: range = range(NOISE_SEEDS)

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.runs[0].spec.dataset

    @property
    def failed(self) -> pd.DataFrame:
        """Runs that failed, with their reason."""
        rows = [(r.spec.dataset, r.spec.labels, r.spec.seed, r.failed) for r in self.runs if r.failed]
        return pd.DataFrame(rows, columns=["dataset", "labels", "seed", "reason"])

    def conditions(self) -> pd.DataFrame:
        """Rows of the three label conditions, all seeds."""
        return self.table[self.table["labels"].isin(CONDITIONS)]

    def noise_grid(self) -> pd.DataFrame:
        """Rows of the eight label-noise levels, the same few seeds at every level; first and last epoch."""
        return self.table[self.table["labels"].isin(NOISE_LEVELS) & self.table["seed"].isin(self.noise_seeds)]

    def noise_runs(self) -> list[Run]:
        """The finished runs of the grid of label noise."""
        return [run for run in self.runs if run.spec.seed in self.noise_seeds and not run.failed]

    def run(self, labels: str = "true", seed: int | None = None) -> Run:
        """One finished run of the study: of that seed, or the first that did not fail."""
        for run in self.runs:
            if run.spec.labels == labels and seed in (None, run.spec.seed) and not run.failed:
                return run
        wanted = f"labels={labels!r}" + ("" if seed is None else f" and seed={seed!r}")
        raise ValueError(f"the study has no finished run with {wanted}")


class Study(BaseModel):
    """The runs of one data set: three label conditions with all seeds, and a grid of label noise with five.

    Attributes:
        dataset: name of the data set.
        seeds: networks per label condition.
        first_seed: seed of the first network; the others follow.
        epochs: passes over the training set.
        model: "mlp:<width>-<width>-...".
        density: share of neuron pairs kept as edges of the activation pattern graph.
        device: where networks train, see :func:`nbutils.devices.resolve_device`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    dataset: Annotated[str, AfterValidator(known_dataset)] = "digits"
    seeds: Annotated[int, Field(ge=1, le=1000)] = 10
    first_seed: Annotated[int, Field(ge=0, lt=2**31 - 1000)] = 0
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 10
    model: Annotated[str, checked_by(hidden_widths)] = "mlp:256-128-64"
    density: Annotated[float, Field(gt=0, le=1)] = 0.05
    device: Annotated[str, AfterValidator(resolve_device)] = "cpu"

    def tasks(self) -> list[Task]:
        """All runs: conditions first. Runs that only the noise grid needs are measured at both ends, without nulls."""
        full = MeasureSpec(density=self.density)
        seeds = range(self.first_seed, self.first_seed + self.seeds)
        found = [Task(self._run(labels, seed), full) for labels in CONDITIONS for seed in seeds]
        light = MeasureSpec(density=self.density, null_draws=0, every_epoch=False)
        grid = [labels for labels in NOISE_LEVELS if labels not in CONDITIONS]
        return found + [Task(self._run(labels, seed), light) for labels in grid for seed in seeds[:NOISE_SEEDS]]

    def _run(self, labels: str, seed: int) -> RunSpec:
        shared = {"dataset": self.dataset, "epochs": self.epochs, "model": self.model, "device": self.device}
        return RunSpec(labels=labels, seed=seed, **shared)

    def compute(self, jobs: int | None = None, progress: Callable[[int, int], None] | None = None) -> Results:
        """Results of all runs; trains and measures what the store lacks, reads the rest.

        Args:
            jobs: processes for missing runs; None means one per core.
            progress: called with (finished, missing) as missing runs finish.

        Returns:
            The :class:`Results`.
        """
        tasks = self.tasks()
        computed = compute_missing(tasks, jobs, progress)
        runs = [run_once(task.run) for task in tasks]
        frames = [_labelled(measure_run(run, task.measure), run) for run, task in zip(runs, tasks, strict=True)]
        noise_seeds = range(self.first_seed, self.first_seed + NOISE_SEEDS)
        return Results(pd.concat(frames, ignore_index=True), tuple(runs), computed, noise_seeds)


def compute_missing(
    tasks: Sequence[Task], jobs: int | None = None, progress: Callable[[int, int], None] | None = None
) -> int:
    """Train and measure the tasks that the store lacks; returns how many those were."""
    missing = [task for task in tasks if not is_measured(task.run, task.measure)]
    if missing and progress:
        progress(0, len(missing))
    # Starting worker processes costs a few seconds; a handful of runs is quicker here.
    jobs = 1 if len(missing) < 4 else jobs or default_jobs()
    finished = 0
    results = run_tasks(run_and_measure, stacks(missing, jobs), jobs, preload=(f"{__package__}.recording", __name__))
    for stack, result in results:
        if isinstance(result, Lost):
            raise RuntimeError(f"{stack[0].run}: {result.reason}; what finished is kept, try fewer jobs at once")
        finished += len(stack)
        if progress:
            progress(finished, len(missing))
    return len(missing)


def stacks(tasks: Sequence[Task], jobs: int) -> list[tuple[Task, ...]]:
    """Tasks whose networks are trained side by side: small networks of one kind, shared evenly among the jobs.

    Examples:
        >>> tasks = Study(seeds=10, model="mlp:8").tasks()
        >>> [len(stack) for stack in stacks(tasks, jobs=2)], [len(stack) for stack in stacks(tasks[:6], jobs=2)]
        ([5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5], [3, 3])
    """
    alike: dict[RunSpec, list[Task]] = defaultdict(list)
    for task in tasks:
        alike[task.run.alike()].append(task)
    found = []
    for spec, group in alike.items():
        data = load_dataset(spec.dataset)
        parameters = parameter_count(spec.model, data.train_pixels.shape[1], len(data.classes))
        size = min(stack_size(parameters, spec.device), -(-len(group) // jobs))
        found += [tuple(group[start : start + size]) for start in range(0, len(group), size)]
    return found


def failures(tasks: Sequence[Task]) -> list[Run]:
    """The runs of some finished tasks that failed."""
    return [run for run in (run_once(task.run) for task in tasks) if run.failed]


def run_and_measure(tasks: Sequence[Task]) -> None:
    """Make sure that runs of one stack and their measures are in the store; a damaged run is made again once."""
    for task, run in zip(tasks, run_together([task.run for task in tasks]), strict=True):
        try:
            measure_run(run, task.measure)
        except OSError:
            measure_run(run_once(task.run), task.measure)


def _labelled(table: pd.DataFrame, run: Run) -> pd.DataFrame:
    spec = run.spec
    named = {
        "dataset": spec.dataset,
        "labels": spec.labels,
        "noise": label_noise(spec.labels),
        "seed": spec.seed,
        "run": run.address,
    }
    return table.assign(**named)
