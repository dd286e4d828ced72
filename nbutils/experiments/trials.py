"""Trials of an experiment: networks with a condition, what is measured on each, and the table of all.

A trial has one row of its table, or several where one network is looked at in more than one state.
A table is written while networks finish, and what it holds is kept whatever machine and code made it: an experiment
that is interrupted, or goes on elsewhere, trains only what its table lacks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax

from nbutils.activations import class_means
from nbutils.data.datasets import load_dataset
from nbutils.entropy import active_entropy, block_entropy, class_selectivity, mutual_information, total_correlation
from nbutils.evaluation.calibration import calibration_error, negative_log_likelihood
from nbutils.measures import MeasureSpec, measure_matched, measure_strength
from nbutils.runs.looks import Look, look_at
from nbutils.runs.models import hidden_widths
from nbutils.runs.run import Run, run_address, run_once
from nbutils.runs.spec import RunSpec
from nbutils.second.networks import settings_digest
from nbutils.second.questions import PROTOCOL
from nbutils.study.study import run_stacks
from nbutils.support.code import code_digest
from nbutils.support.files import is_file, read_parquet, replace_file
from nbutils.support.machine import default_jobs
from nbutils.support.provenance import digest_of, environment
from nbutils.support.store import Store

__all__ = [
    "OUTCOMES",
    "Rows",
    "Trial",
    "compute_trials",
    "graph_outcomes",
    "is_degenerate",
    "kept_rows",
    "measured",
    "missing_trials",
    "outcomes",
    "read_trials",
    "trial_facts",
    "trial_row",
    "trial_rows",
    "trial_seconds",
]

ONE_NULL = MeasureSpec(density=PROTOCOL.density, seeds=1, null_draws=1)
DRAWS = 30  # of Monte-Carlo dropout
# Column of a table -> what pages call it.
OUTCOMES: Mapping[str, str] = {
    "accuracy": "test accuracy",
    "train_accuracy": "training accuracy",
    "modularity": "modularity Q",
    "excess": "Q beyond chance",
    "class_part": "class-preference part of Q",
    "remainder": "remainder of Q",
    "communities": "communities",
    "active": "active neurons",
    "active_entropy": "binned entropy per active neuron",
    "block_entropy": "entropy of blocks of six",
    "block_entropy_top": "entropy of blocks of six, strongest tenth",
    "class_selectivity": "class selectivity",
    "mutual_information": "mutual information with the class",
    "total_correlation": "total correlation",
    "mean_activity": "mean activity",
    "calibration": "calibration error",
    "loss": "test loss",
}


@dataclass(frozen=True)
class Trial:
    """One network of an experiment.

    Attributes:
        run: its parameters.
        condition: what is done to it; networks of one condition on one data set differ by their seed.
        dose: how much of it; NaN where it has none.
        neurons: how many neurons graphs are drawn down to; 0 takes half of the network's.
    """

    run: RunSpec
    condition: str
    dose: float = float("nan")
    neurons: int = 0

    @property
    def settings(self) -> str:
        """Digest by which a table knows the trial."""
        return digest_of({"settings": settings_digest(self.run), "neurons": self.size})

    @property
    def size(self) -> int:
        """Neurons of every graph."""
        return self.neurons or round(PROTOCOL.matched * sum(hidden_widths(self.run.model)))


Rows = Callable[[Trial], list[dict[str, Any]]]


def outcomes(look: Look) -> dict[str, float]:
    """What is measured on the network of a trial, on the held-out probe.

    Args:
        look: see :func:`nbutils.runs.looks.look_at`.

    Returns:
        Values by column of `OUTCOMES`, but for `accuracy` and `train_accuracy`: those of the graph NaN where fewer
        neurons fire than it is drawn down to, selectivity NaN where a mean is negative.

    Examples:
        >>> from nbutils.runs.run import run_once
        >>> from nbutils.runs.spec import RunSpec
        >>> found = outcomes(look_at(run_once(RunSpec(epochs=1, model="mlp:16", every_epoch=False))))
        >>> 0 <= found["modularity"] <= 1, round(found["excess"] - found["class_part"] - found["remainder"], 9)
        (True, 0.0)
    """
    probabilities = softmax(look.logits.astype(np.float64), axis=1)
    fired, positive, means = look.fired, look.positive, class_means(look.activations, look.labels)
    return {
        **graph_outcomes(look),
        "active": int(fired.any(axis=0).sum()),
        "active_entropy": active_entropy(look.histogram),
        "block_entropy": block_entropy(positive),
        "block_entropy_top": block_entropy(fired),
        "class_selectivity": float(class_selectivity(means).mean()) if means.min() >= 0 else float("nan"),
        "mutual_information": float(mutual_information(fired, look.labels).mean()),
        "total_correlation": total_correlation(fired),
        "mean_activity": measure_strength(fired, positive)["mean_activity"],
        "calibration": calibration_error(probabilities, look.labels),
        "loss": negative_log_likelihood(probabilities, look.labels),
    }


def graph_outcomes(look: Look) -> dict[str, float]:
    """What of `OUTCOMES` is measured on the graph: Q, its parts, and how many communities there are.

    Args:
        look: see :func:`nbutils.runs.looks.look_at`.

    Returns:
        `modularity`, `class_part`, `remainder`, `communities` and `excess`, NaN where fewer neurons fire than the graph
        is drawn down to.
    """
    names = "modularity", "class_part", "remainder", "communities"
    if look.fired.any(axis=0).sum() < look.neurons:
        return dict.fromkeys((*names, "excess"), float("nan"))
    found = measure_matched(look.fired, look.cells, look.seed, look.neurons, ONE_NULL, PROTOCOL.draws)
    return {name: found[name] for name in names} | {"excess": found["modularity"] - found["null_circular"]}


def dropout_outcomes(look: Look) -> dict[str, float]:
    """What averaging over dropout changes: accuracy, calibration and uncertainty on the held-out probe.

    Args:
        look: at a network that was trained with dropout.

    Returns:
        `mc_accuracy`, `mc_calibration` and `mc_loss` of the mean of 30 draws, `single_accuracy` without dropout on the
        same images, `mc_entropy` of the mean in bits, and of it `mc_disagreement`, what draws differ by.
    """
    from nbutils.runs.uncertainty import monte_carlo_dropout, predictive_entropy

    draws = monte_carlo_dropout(look.network, look.inputs, DRAWS, look.seed)
    mean, entropy = draws.mean(axis=0), predictive_entropy(draws)
    return {
        "mc_accuracy": float((mean.argmax(axis=1) == look.labels).mean()),
        "single_accuracy": float((look.predicted == look.labels).mean()),
        "mc_calibration": calibration_error(mean, look.labels),
        "mc_loss": negative_log_likelihood(mean, look.labels),
        "mc_entropy": float(entropy.total.mean()),
        "mc_disagreement": float(entropy.disagreement.mean()),
    }


def trial_row(trial: Trial) -> dict[str, Any]:
    """The row of a network, trained where the store lacks it.

    Args:
        trial: one network.

    Returns:
        What :func:`trial_facts` says, `epoch` (the last), and of a network that did not fail what :func:`measured`
        gives.
    """
    run = run_once(trial.run)
    values = {} if run.failed else measured(look_at(run, neurons=trial.size)) | {"epoch": run.last_epoch}
    return trial_facts(run, trial) | values


def trial_rows(trial: Trial) -> list[dict[str, Any]]:
    """The one row of a network, see `trial_row`."""
    return [trial_row(trial)]


def trial_facts(run: Run, trial: Trial) -> dict[str, Any]:
    """What every row says of its network, whatever is measured on it.

    Args:
        run: a finished or failed run.
        trial: the trial that it belongs to.

    Returns:
        `condition`, `dose`, `dataset`, `labels`, `seed`, `run` (address), `settings`, `parameters` of the run as JSON,
        `neurons` of a graph, `reason` of a failure, `seconds`, `commit`, `time`, `machine`.
    """
    origin = run.record["provenance"]
    return {
        "condition": trial.condition,
        "dose": trial.dose,
        "dataset": trial.run.dataset,
        "labels": trial.run.labels,
        "seed": trial.run.seed,
        "run": run.address,
        "settings": trial.settings,
        "parameters": json.dumps(trial.run.model_dump(), sort_keys=True),
        "neurons": trial.size,
        "reason": run.failed,
        "seconds": run.record["seconds"],
        **{name: origin[name] for name in ("commit", "time", "machine")},
    }


def measured(look: Look) -> dict[str, float]:
    """What is measured on a network, and whether it is degenerate.

    Args:
        look: whose `run` holds `train_accuracy`, `train_loss` and `true_accuracy`.

    Returns:
        `accuracy` and what is in `OUTCOMES`, `train_loss`, `true_accuracy`, of a network with dropout what
        `dropout_outcomes` gives, and `degenerate`, 0 or 1.
    """
    found = {"accuracy": look.run["other_accuracy"]}
    found |= {name: float(look.run[name]) for name in ("train_accuracy", "train_loss", "true_accuracy")}
    found |= outcomes(look) | (dropout_outcomes(look) if look.run["dropout"] else {})
    return found | {"degenerate": float(is_degenerate(look))}


def is_degenerate(look: Look) -> bool:
    """Whether a network decides nothing: too many neurons never fire, or it has not learned its own training labels.

    Args:
        look: whose `run` holds `train_accuracy` and the number of training `examples`.
    """
    chance, images = 1 / len(np.unique(look.labels)), look.run["examples"]
    above = look.run["train_accuracy"] - chance > PROTOCOL.above_chance * np.sqrt(chance * (1 - chance) / images)
    return bool(look.dead > PROTOCOL.degenerate or not above)


def kept_rows(trial: Trial, rows: Rows = trial_rows) -> list[dict[str, Any]]:
    """Rows of a network, from the store if it has them and the code that makes them is still the same.

    Args:
        trial: one network.
        rows: what makes its rows, a function of a module: dictionaries of what JSON can hold, one per state that is
            looked at, with the trial's `settings` in each.
    """
    store, where, code = Store("trials"), _address(trial, rows), _code(rows)
    record = store.read(where)
    if record is None or record["code"] != code:
        with store.lock(where):
            record = {"code": code, "rows": rows(trial)}
            store.write(where, record, replace=True)
    return record["rows"]


def _address(trial: Trial, rows: Rows) -> str:
    own = {"run": run_address(trial.run), "condition": trial.condition, "dose": trial.dose, "neurons": trial.size}
    return digest_of({**own, "rows": _name(rows), "environment": environment()})


def _name(rows: Rows) -> str:
    return f"{rows.__module__}.{rows.__qualname__}"


def _code(rows: Rows) -> str:
    return code_digest(_name(rows))


# Seconds of one processor, as they were on the machine that made the first table: of a network, and of a million
# examples that it sees in training, without and with a penalty.
FIXED, MILLION, PUSHED = 2.5, 30.0, 60.0


def trial_seconds(trials: Sequence[Trial]) -> float:
    """About how long trials take on one processor; a guess by how much each trains.

    Examples:
        >>> 2 < trial_seconds([Trial(RunSpec(epochs=1), "reference")]) < 4
        True
    """
    total = 0.0
    for trial in trials:
        seen = trial.run.epochs * len(load_dataset(trial.run.dataset).train_true) / 1e6
        total += FIXED + seen * (PUSHED if trial.run.penalty != "none" else MILLION)
    return total


def missing_trials(trials: Sequence[Trial], path: Path) -> list[Trial]:
    """Trials that a table lacks.

    Args:
        trials: a design.
        path: the table; it need not be there.
    """
    there = set(read_trials(path)["settings"]) if is_file(path) else set()
    return [one for one in trials if one.settings not in there]


def compute_trials(
    trials: Sequence[Trial],
    path: Path,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    rows: Rows = trial_rows,
) -> pd.DataFrame:
    """Train and measure what a table lacks, and write it as networks finish.

    Args:
        trials: a design, in the order of importance.
        path: of the table. Rows of trials that are no part of the design are refused, not dropped.
        jobs: processes; None means one per core.
        progress: called with (finished, missing).
        rows: what makes the rows of a network, see :func:`kept_rows`; a table has all of them or none.

    Returns:
        The table.

    Raises:
        ValueError: the table is damaged, or holds rows that the design lacks.
        RuntimeError: a network was cut off three times; what finished is kept.
    """
    known, missing = {one.settings for one in trials}, missing_trials(trials, path)
    if is_file(path) and (foreign := set(read_trials(path)["settings"]) - known):
        raise ValueError(
            f"{path} holds {len(foreign)} networks that are no part of this experiment; write into another folder"
        )
    work, save = partial(_make, rows), partial(_write, trials, missing, path, rows)
    run_stacks(work, [(one,) for one in missing], jobs or default_jobs(), rows.__module__, progress, save)
    return read_trials(path)


def _make(rows: Rows, stack: Sequence[Trial]) -> None:
    for trial in stack:
        kept_rows(trial, rows)


def _is_there(trial: Trial, rows: Rows) -> bool:
    record = Store("trials").read(_address(trial, rows))
    return record is not None and record["code"] == _code(rows)


def _write(trials: Sequence[Trial], missing: Sequence[Trial], path: Path, rows: Rows) -> None:
    """The rows that were there, and of those that were missing what the store has by now; in the design's order."""
    there = [one for one in missing if _is_there(one, rows)]
    made = pd.DataFrame([row for one in there for row in kept_rows(one, rows)])
    if is_file(path):
        held = read_trials(path)
        made = pd.concat([held[~held["settings"].isin(set(made.get("settings", ())))], made], ignore_index=True)
    if made.empty:
        return
    place = {one.settings: number for number, one in enumerate(trials)}
    made = made.sort_values("settings", key=lambda column: column.map(place), kind="stable", ignore_index=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, made.to_parquet(index=False, compression="zstd"))


def read_trials(path: Path) -> pd.DataFrame:
    """Read a table of trials.

    Raises:
        FileNotFoundError: it is missing; says how to make it.
        ValueError: it is damaged.
    """
    if not is_file(path):
        raise FileNotFoundError(f"{path} is missing; run python -m nbutils experiment {path.stem}")
    try:
        return read_parquet(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
