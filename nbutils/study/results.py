"""What a study found, as tables: one row a run, one row a run and epoch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from nbutils.data.datasets import label_noise
from nbutils.runs.run import Run
from nbutils.study.extras import extra
from nbutils.support.arguments import checked
from nbutils.support.checks import as_frame, shown

__all__ = ["CONDITIONS", "NOISE_LEVELS", "PARTS", "Results", "Specimen", "labelled", "run_rows"]

CONDITIONS = ("true", "mixed:0.5", "random")
NOISE_LEVELS = ("true", "mixed:0.1", "mixed:0.25", "mixed:0.4", "mixed:0.5", "mixed:0.6", "mixed:0.75", "random")
# What a run is for; one run may serve several.
PARTS = {
    "conditions": "label conditions, all seeds",
    "noise": "levels of label noise, a few seeds each",
    "memorising": "random labels without dropout until they are learned",
    "hurried": "the same at the paper's learning rate, where that does not get there",
    "released": "trained on images from 0 to 255, as the paper's released code does",
}


@dataclass(frozen=True)
class Specimen:
    """One network whose firing can be looked at.

    Attributes:
        address: of its run.
        labels: label condition.
        seed: of the run.
        layers: hidden layer of every neuron, numbered from 1, shape (neurons,).
        probe_labels: true class of each probe example, shape (probe,).
        fired: activation pattern matrix after an epoch, boolean, shape (probe, neurons); 0 is untrained, -1 the last.
        tracked: identity of each neuron's community at every epoch, shape (epochs + 1, neurons), see
            :func:`nbutils.tracking.track_communities`.
    """

    address: str
    labels: str
    seed: int
    layers: np.ndarray
    probe_labels: np.ndarray
    fired: Callable[[int], np.ndarray] = field(repr=False)
    tracked: Callable[[], np.ndarray] = field(repr=False)

    @classmethod
    def of(cls, run: Run) -> Specimen:
        """The network of a stored run."""

        def tracked() -> np.ndarray:
            return extra(run, "evolution").arrays["tracked"]

        spec = run.spec
        return cls(run.address, spec.labels, spec.seed, run.layers, run.probe_labels, run.fired, tracked)


@checked
@dataclass(frozen=True)
class Results:
    """What a study found on one data set.

    Attributes:
        dataset: name of the data set.
        table: one row per run and epoch, `run` (address), `parts` (see `PARTS`), `dataset`, `labels`, `noise`, `seed`,
            the training history and the measures (see :func:`nbutils.study.measure_run.measure_run`).
        runs: one row per run, failed ones too, with its parameters, status and provenance.
        specimens: networks that can be looked at, by address of their run.
        about: what is known of the data, `title`, `classes`, `about`, `origin`, `version`.
        computed: how many runs had to be computed now; None where the results come from committed tables.
        extras: tables of what is measured on some runs only, by name, see :func:`nbutils.study.extras.extra`; each row
            begins with `run`.
    """

    dataset: str
    table: pd.DataFrame
    runs: pd.DataFrame
    specimens: Mapping[str, Callable[[], Specimen]]
    about: Mapping[str, Any]
    computed: int | None = 0
    extras: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def failed(self) -> pd.DataFrame:
        """Runs that failed, with their reason."""
        return self.runs.loc[self.runs["status"] == "failed", ["dataset", "labels", "seed", "reason"]]

    @property
    def commits(self) -> list[str]:
        """Commits at which the runs were made, sorted."""
        return sorted(set(self.runs["commit"]))

    @property
    def labels(self) -> list[str]:
        """Label conditions of the study, as many as have runs."""
        present = set(self.runs.loc[self.runs["parts"].str.contains("conditions"), "labels"])
        return [labels for labels in CONDITIONS if labels in present]

    def extra(self, name: str) -> pd.DataFrame:
        """Rows of an extra with what is known of their runs.

        Raises:
            ValueError: the study has no such extra; names those it has.
        """
        if name not in self.extras:
            raise ValueError(f"extra must be one of {', '.join(self.extras) or 'none'}, received {shown(name)}")
        words = ("parts", "dataset", "labels", "seed", "input_scale")
        as_frame(self.runs, words, "the runs of results", key=("run",))
        as_frame(self.extras[name], ("run",), f"the extra {name!r} of results")
        known = self.runs[["run", "parts", "dataset", "labels", "seed", "input_scale"]]
        return known.merge(self.extras[name], on="run", validate="one_to_many")

    def part(self, name: str) -> pd.DataFrame:
        """Rows of the runs that serve a part of the study.

        Raises:
            ValueError: there is no such part.
        """
        if name not in PARTS:
            raise ValueError(f"part must be one of {', '.join(PARTS)}, received {shown(name)}")
        if self.table.empty:
            return self.table
        as_frame(self.table, ("parts", "labels"), "the table of results")
        if not self.table[["parts", "labels"]].map(lambda word: isinstance(word, str)).all(axis=None):
            raise ValueError("the table of results must hold text in the columns 'parts' and 'labels'")
        return self.table[self.table["parts"].str.split().map(lambda parts: name in parts)]

    def conditions(self) -> pd.DataFrame:
        """Rows of the label conditions, all seeds; true labels first, random ones last."""
        rows = self.part("conditions")
        if len(rows) and (unknown := set(rows["labels"]) - set(CONDITIONS)):
            raise ValueError(f"conditions of results must be {', '.join(CONDITIONS)}, received {shown(min(unknown))}")
        return rows.iloc[np.argsort(rows["labels"].map(CONDITIONS.index).to_numpy(int), kind="stable")]

    def noise_grid(self) -> pd.DataFrame:
        """Rows of the eight label-noise levels, the same few seeds at every level; first and last epoch."""
        return self.part("noise")

    def run(self, labels: str = "true", seed: int | None = None) -> Specimen:
        """One finished network of the study: of that seed, or the first that can be looked at.

        Raises:
            ValueError: there is none.
        """
        as_frame(self.runs, ("run", "labels", "status", *(() if seed is None else ("seed",))), "the runs of results")
        fitting = self.runs["labels"] == labels
        if seed is not None:
            fitting &= self.runs["seed"] == seed
        for address in self.runs.loc[fitting & (self.runs["status"] == "done"), "run"]:
            if address in self.specimens:
                return self.specimens[address]()
        wanted = f"labels={labels!r}" + ("" if seed is None else f" and seed={seed!r}")
        raise ValueError(f"results have no finished run with {wanted}")


def as_results(results: Any, name: str = "results") -> Results:
    """Results of a study, and nothing else."""
    if not isinstance(results, Results):
        raise TypeError(f"{name} must be Results, such as read_archive() gives them, received {type(results).__name__}")
    return results


def as_studies(studies: Any, name: str = "studies") -> Sequence[Results]:
    """Results of several data sets, and nothing else."""
    if not isinstance(studies, list | tuple) or not all(isinstance(one, Results) for one in studies):
        raise TypeError(f"{name} must be a list of Results, received {type(studies).__name__} of something else")
    return studies


def labelled(table: pd.DataFrame, run: Run, parts: str) -> pd.DataFrame:
    """Rows of one run, with what it is and what it is for."""
    spec = run.spec
    named = {"run": run.address, "parts": parts, "dataset": spec.dataset, "labels": spec.labels}
    return table.assign(**named, noise=label_noise(spec.labels), seed=spec.seed)


def run_rows(run: Run, parts: str) -> dict[str, Any]:
    """One row of the table of runs."""
    origin = run.record["provenance"]
    return {
        "run": run.address,
        "parts": parts,
        **run.spec.model_dump(),
        "data_version": run.record["data"],
        "status": "failed" if run.failed else "done",
        "reason": run.failed,
        "seconds": run.record["seconds"],
        **{name: origin[name] for name in ("commit", "time", "machine")},
        "versions": json.dumps(origin["versions"], sort_keys=True),
        "processor": json.dumps(origin["processor"], sort_keys=True),
    }
