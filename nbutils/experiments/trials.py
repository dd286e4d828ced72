"""Trials of an experiment: networks with a condition, and what is measured on each.

A trial has one row of its table, or several where one network is looked at in more than one state. Tables grow as
`nbutils.study.cases` says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from nbutils.activations import class_means
from nbutils.data.catalogue import FOLDER
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
from nbutils.support.provenance import digest_of

__all__ = [
    "OUTCOMES",
    "Trial",
    "graph_outcomes",
    "is_degenerate",
    "measured",
    "outcomes",
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
        """Digest by which a table knows the trial; of pictures in a folder, their version is part of it."""
        folders = [name for name in (self.run.dataset, self.run.start_from) if name.startswith(FOLDER)]
        given = {"pictures": [load_dataset(name).version for name in folders]} if folders else {}
        return digest_of({"settings": settings_digest(self.run), "neurons": self.size, **given})

    @property
    def identity(self) -> dict[str, Any]:
        """By what a store knows the trial."""
        own = {"condition": self.condition, "dose": self.dose, "neurons": self.neurons}
        return {"run": run_address(self.run), **own}

    @property
    def size(self) -> int:
        """Neurons of every graph."""
        return self.neurons or round(PROTOCOL.matched * sum(hidden_widths(self.run.model)))


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
