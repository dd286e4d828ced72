"""Training conditions: each a way to train, held against another that differs from it in what its formula says.

A new one is an entry of `CONDITIONS`; what it says of itself stands on the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbutils.experiments.trials import Trial
from nbutils.runs.conditions import ACTIVATIONS
from nbutils.runs.spec import RunSpec

__all__ = ["CONDITIONS", "REFERENCE", "TARGETS", "Condition", "condition_trials"]

SEEDS = 8
REFERENCE: Mapping[str, Any] = {
    "model": "mlp:256-128",
    "epochs": 10,
    "batch_size": 32,
    "learning_rate": 0.001,
    "every_epoch": False,
}


@dataclass(frozen=True)
class Condition:
    """A way to train.

    Attributes:
        name: by which a table knows it.
        group: conditions that a page shows together.
        title: what a page calls it.
        formula: what it does, in symbols.
        about: what it does and what for, in one sentence.
        changes: parameters of a run that differ from those of `REFERENCE`.
        against: name of the condition that it is held against.
    """

    name: str
    group: str
    title: str
    formula: str
    about: str
    changes: Mapping[str, Any]
    against: str = "reference"


LONG, HELD, LONG_HELD = "forty epochs", "held back", "forty epochs, held back"
HE = "relu"  # the reference's units with the weights that fit them, which other units are held against
TITLES = {"leaky_relu": "leaky ReLU", "elu": "ELU", "selu": "SELU", "gelu": "GELU"}
FORMULAS = {
    "leaky_relu": "max(x, 0.01 x)",
    "elu": "x for x > 0, else exp(x) - 1",
    "selu": "1.0507 x for x > 0, else 1.7581 (exp(x) - 1)",
    "gelu": "x P(N(0, 1) <= x)",
    "tanh": "tanh x",
    "sigmoid": "1 / (1 + exp(-x))",
}
RANGES = {"he": "sqrt(6 / inputs)", "glorot": "sqrt(6 / (inputs + outputs))", "lecun": "sqrt(3 / inputs)"}


def _activations() -> list[Condition]:
    told = {name: FORMULAS.get(name, f"{one.module} of PyTorch") for name, one in ACTIVATIONS.items()}
    return [
        Condition(
            name,
            "activation function",
            TITLES.get(name, name),
            told[name],
            f"Hidden units give {told[name]}; weights start within {RANGES[one.initialisation]}, which keeps the "
            "size of signals for this function, as He initialisation does for ReLUs, against which it is held."
            + (" A unit fires by where it lies in its own distribution." if one.relative else "")
            + (" It fires where it is positive; outputs from -0.17 to 0 count as off." if name == "gelu" else ""),
            {"activation": name, "initialisation": one.initialisation},
            HE,
        )
        for name, one in ACTIVATIONS.items()
        if name != HE
    ]


def _initialisations() -> list[Condition]:
    titles = {"he": "He", "glorot": "Glorot", "lecun": "LeCun"}
    return [
        Condition(
            HE if name == "he" else f"start {name}",
            "initialisation",
            f"{title} initialisation",
            f"uniform within {RANGES[name]}",
            "Where weights start decides how large signals are in each layer before anything is learned.",
            {"initialisation": name},
        )
        for name, title in titles.items()
    ]


def _numbered(group: str, title: str, formula: str, about: str, name: str, values: Sequence[Any]) -> list[Condition]:
    """One parameter at several values."""
    return [Condition(f"{group} {value}", group, f"{title} {value}", formula, about, {name: value}) for value in values]


WATCHED = "A tenth of the training images is held back to be watched."
CONDITIONS: tuple[Condition, ...] = (
    Condition(
        "reference",
        "reference",
        "reference",
        "Adam, rate 0.001",
        "Two hidden layers of 256 and 128 ReLUs, batches of 32, ten epochs, inputs standardised, weights as PyTorch "
        "draws them; all else is held against it.",
        {},
    ),
    Condition(
        "power",
        "learning-rate schedule",
        "power schedule",
        "rate / (1 + t / s)^c, s = 2 epochs, c = 1",
        "The rate falls fast at first, then ever more slowly.",
        {"schedule": "power:2:1"},
    ),
    Condition(
        "exponential",
        "learning-rate schedule",
        "exponential schedule",
        "rate 0.1^(t / s), s = 5 epochs",
        "The rate falls to a tenth every five epochs.",
        {"schedule": "exponential:5"},
    ),
    Condition(
        "performance",
        "learning-rate schedule",
        "performance schedule",
        "rate / 3 when validation accuracy has not risen for 2 epochs",
        f"The rate falls when progress stalls. {WATCHED}",
        {"schedule": "performance:3:2", "validation": 0.1},
        HELD,
    ),
    Condition(
        HELD,
        "images held back",
        "a tenth held back",
        "nine tenths of the training images",
        f"{WATCHED} Nothing follows from it: what a performance schedule is held against.",
        {"schedule": f"performance:3:{REFERENCE['epochs']}", "validation": 0.1},  # it cannot stall for that long
    ),
    *_initialisations(),
    *_activations(),
    Condition(
        "norm before",
        "batch normalisation",
        "batch normalisation before the activation",
        "g (x - mean) / deviation + b, over the batch",
        "Inputs of every unit have the same mean and deviation in every batch, up to what it learns.",
        {"normalisation": "before"},
    ),
    Condition(
        "norm after",
        "batch normalisation",
        "batch normalisation after the activation",
        "g (x - mean) / deviation + b, over the batch",
        "Outputs of every unit have the same mean and deviation in every batch, up to what it learns.",
        {"normalisation": "after"},
    ),
    Condition(
        "clip value",
        "gradient clipping",
        "clipping by value",
        "every slope to [-0.01, 0.01]",
        "No single slope is larger than a limit; the direction of the step changes.",
        {"clipping": "value:0.01"},
    ),
    Condition(
        "clip norm",
        "gradient clipping",
        "clipping by norm",
        "slopes times min(1, 0.5 / norm)",
        "The vector of all slopes is made shorter where it is long; its direction stays.",
        {"clipping": "norm:0.5"},
    ),
    Condition(
        LONG,
        "length",
        "forty epochs",
        "40 epochs",
        "Four times as long.",
        {"epochs": 40},
    ),
    Condition(
        LONG_HELD,
        "images held back",
        "forty epochs, a tenth held back",
        "40 epochs, nine tenths of the training images",
        f"{WATCHED} Nothing follows from it: what early stopping is held against.",
        {"epochs": 40, "schedule": "performance:3:40", "validation": 0.1},
        LONG,
    ),
    Condition(
        "early stopping",
        "length",
        "early stopping",
        "at most 40 epochs, patience 3",
        f"Training ends after three epochs without higher validation accuracy; the best weights come back. {WATCHED}",
        {"epochs": 40, "patience": 3, "validation": 0.1},
        LONG_HELD,
    ),
    *_numbered(
        "dropout",
        "dropout",
        "each output 0 with probability p, else times 1 / (1 - p)",
        "In training, hidden outputs are left out at random, so that no unit can rely on another.",
        "dropout",
        (0.2, 0.5, 0.7),
    ),
    *_numbered(
        "l1", "L1 penalty", "loss + c sum |w|", "Every weight is pulled to 0 by the same force.", "l1", (1e-5, 1e-4)
    ),
    *_numbered(
        "l2", "L2 penalty", "loss + c / 2 sum w^2", "Weights are pulled to 0 the more the larger.", "l2", (1e-4, 1e-3)
    ),
    *_numbered(
        "weight decay",
        "weight decay",
        "w - rate c w before each step",
        "Weights shrink by a share in every step, apart from Adam's own slopes.",
        "weight_decay",
        (0.1, 1.0),
    ),
    Condition(
        "sgd",
        "optimiser",
        "SGD with momentum",
        "v = 0.9 v + slope; w - 0.05 v",
        "One rate for all weights, and a memory of earlier slopes.",
        {"optimiser": "sgd:0.9", "learning_rate": 0.05},
    ),
    Condition(
        "sam",
        "optimiser",
        "sharpness-aware minimisation",
        "slope at w + 0.05 slope / |slope|; then as SGD with momentum",
        "Slopes are taken where the loss is highest nearby, so that flat minima are found.",
        {"optimiser": "sam:0.05", "learning_rate": 0.05},
        "sgd",
    ),
    *_numbered(
        "learning rate",
        "learning rate",
        "rate",
        "How far each step goes.",
        "learning_rate",
        (0.0003, 0.003),
    ),
    *_numbered("batch", "batches of", "examples per step", "Fewer, quieter steps.", "batch_size", (128, 512)),
    *(
        Condition(
            f"layers {widths}",
            "width and depth",
            f"hidden layers {widths}",
            widths.replace("-", ", "),
            "Graphs are drawn down to half of its own neurons, so that densities are of the same kind.",
            {"model": f"mlp:{widths}"},
        )
        for widths in ("64-32", "1024-512", "256", "256-128-128-128")
    ),
)
# Data sets that conditions are tried on, and for each those that a network can start from.
TARGETS: Mapping[str, tuple[str, ...]] = {
    "mnist-10k": ("fashion-mnist-10k", "kmnist"),
    "fashion-mnist-10k": ("mnist-10k", "kmnist"),
    "cifar10-10k": (),
    "kmnist": ("mnist-10k", "fashion-mnist-10k"),
}
TRANSFER_ONLY = ("kmnist",)
FROZEN = 5  # epochs


def transfers(dataset: str) -> list[Condition]:
    """Conditions of networks that start from another data set.

    Examples:
        >>> [one.name for one in transfers("kmnist")][:2]
        ['from mnist-10k', 'from mnist-10k, frozen']
    """
    found = []
    for source in TARGETS.get(dataset, ()):
        found.append(
            Condition(
                f"from {source}",
                "transfer",
                f"hidden layers from {source}",
                "weights start where they ended there",
                "The network is trained on other images first; its hidden layers are taken over and go on learning.",
                {"start_from": source},
            )
        )
        found.append(
            Condition(
                f"from {source}, frozen",
                "transfer",
                f"hidden layers from {source}, frozen",
                f"last layer alone for {FROZEN} epochs; then with the last hidden one at a tenth of the rate",
                "What was learned on other images is kept: the first hidden layer never changes.",
                {"start_from": source, "frozen_epochs": FROZEN},
            )
        )
    return found


def conditions_of(dataset: str) -> list[Condition]:
    """All conditions that are tried on a data set."""
    usual = CONDITIONS[:1] if dataset in TRANSFER_ONLY else CONDITIONS
    return [*usual, *transfers(dataset)]


def condition_trials(datasets: Sequence[str] | None = None, seeds: int = SEEDS, **changes: Any) -> list[Trial]:
    """All networks of the experiment *training conditions*.

    Args:
        datasets: names of data sets; None takes those of `TARGETS`, the only ones that have others to start from.
        seeds: networks of each condition.
        **changes: parameters of a run that replace those of the reference.

    Returns:
        Seed by seed, so that what is finished early can already be compared.

    Examples:
        >>> trials = condition_trials(["kmnist"], seeds=1)
        >>> [one.condition for one in trials][:2], trials[0].size
        (['reference', 'from mnist-10k'], 192)
    """
    return [
        Trial(RunSpec(**{"dataset": dataset, "seed": seed, **REFERENCE, **changes, **one.changes}), one.name)
        for seed in range(seeds)
        for dataset in (TARGETS if datasets is None else datasets)
        for one in conditions_of(dataset)
    ]
