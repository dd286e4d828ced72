"""The parameters of a run, checked before anything starts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from nbutils.activations import firing_share
from nbutils.data.catalogue import full_name
from nbutils.data.datasets import PREPROCESSING, Dataset, hold_back, label_noise, load_dataset, probe_indices
from nbutils.runs.conditions import (
    ACTIVATIONS,
    CLIPPINGS,
    NORMALISATIONS,
    OPTIMISERS,
    SCHEDULES,
    read_rule,
    rule_name,
)
from nbutils.runs.models import INITIALISATIONS, hidden_widths, sparsity_misfit, takes_images
from nbutils.runs.penalties import PENALTIES
from nbutils.support.devices import resolve_device
from nbutils.support.messages import Parameters


def checked_by(check: Any) -> AfterValidator:
    """A validator that keeps a value as it is, after `check` had its chance to raise ValueError."""

    def accept(value: Any) -> Any:
        check(value)
        return value

    return AfterValidator(accept)


def _canonical(labels: str) -> str:
    """One name per condition: mixed:0 is true, mixed:1.0 is random, mixed:0.50 is mixed:0.5."""
    share = label_noise(labels)
    return {0.0: "true", 1.0: "random"}.get(share, f"mixed:{share:g}")


def known_dataset(name: str) -> str:
    """The name, if there is such a data set; that of a folder with its absolute path, for runs are made elsewhere."""
    return full_name(name)


def _named(rules: Any, called: str) -> AfterValidator:
    """A validator that gives a rule of training its one name."""
    return AfterValidator(lambda text: rule_name(text, rules, called))


class RunSpec(Parameters):
    """All parameters of a run.

    Attributes:
        dataset: name of the data set.
        labels: label condition: "true", "random", "mixed:<share>".
        model: "mlp:<width>-<width>-...".
        dropout: share of hidden outputs dropped in training.
        epochs: passes over the training set.
        batch_size: examples per step.
        learning_rate: of Adam.
        weight_decay: see :class:`nbutils.runs.training.TrainingSettings`.
        examples: training images, equally many of each class; None takes all of the data set.
        preprocessing: "standard", mean 0 and deviation 1 per channel, as one would train today; or "unit", inputs in
            [0, 1] as in the paper, of which many neurons die.
        initialisation: "pytorch", "glorot" (Keras), "he" or "lecun", see :func:`nbutils.runs.models.build_model`.
        seed: decides initialisation, order of examples, dropout and redrawn labels.
        probe: examples in the probe set; None means 2,000, or all training examples where there are fewer.
        firing: rule that turns activations into firing.
        input_scale: factor on the images in training only; capture always sees them from 0 to 1. 255 is what the
            paper's released code does.
        stop_at: training accuracy that ends training early; None trains all epochs.
        stop_loss: training loss, in nats, at or below which training ends early.
        every_epoch: record the network after every epoch; otherwise only before training and after the last.
        checkpoints: keep the weights after every epoch, not only the first and the last.
        device: what trains and captures: "cpu", "cuda", or "auto", which becomes one of them. Roundings differ between
            devices, so runs on different ones are different runs.
        activation: of an MLP's hidden layers, key of `nbutils.runs.conditions.ACTIVATIONS`.
        normalisation: batch normalisation of an MLP's hidden layers: "none", "before" or "after" the activation.
        optimiser: with `schedule`, `clipping`, `l1`, `l2` and `penalty` see
            :class:`nbutils.runs.training.TrainingSettings`.
        validation: share of the training images that is held back, for the schedule "performance" and for `patience`.
        patience: epochs without a rise of the accuracy on the images held back after which training ends, and the
            weights of the best epoch are put back; None trains all epochs.
        start_from: name of a data set on which the same run is trained first; its hidden layers are taken over.
        frozen_epochs: for so many epochs only the last layer learns; afterwards the last hidden layer, too, both at a
            tenth of the rate. 0 lets all layers learn from the start.
        sparsity: share of an MLP's hidden outputs that stay active, in (0, 1); 0 leaves ReLUs as they are. A sparse
            unit is active where it exceeds its threshold, see :class:`nbutils.runs.sparsity.SpatialSparsity`, and is 0
            elsewhere. By the book's firing rule ("top-decile") a unit fires on its strongest tenth of the images, and
            only where it is active: with a sparsity below 0.1 it fires wherever it is active, so that firing rates are
            the sparsity, and the rule "positive" says the same.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    dataset: Annotated[str, AfterValidator(known_dataset)] = "digits"
    labels: Annotated[str, AfterValidator(_canonical)] = "true"
    model: Annotated[str, checked_by(hidden_widths)] = "mlp:256-128-64"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 10
    batch_size: Annotated[int, Field(ge=1)] = 32
    learning_rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.001
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    examples: Annotated[int, Field(ge=1)] | None = None
    preprocessing: Literal[PREPROCESSING] = "standard"
    initialisation: Literal[INITIALISATIONS] = "pytorch"
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    probe: Annotated[int, Field(ge=2)] | None = None
    firing: Annotated[str, checked_by(firing_share)] = "top-decile"
    input_scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    stop_at: Annotated[float, Field(gt=0, le=1)] | None = None
    stop_loss: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    every_epoch: bool = True
    checkpoints: bool = False
    device: Annotated[str, AfterValidator(resolve_device)] = "cpu"
    activation: Literal[tuple(ACTIVATIONS)] = "relu"
    normalisation: Literal[NORMALISATIONS] = "none"
    optimiser: Annotated[str, _named(OPTIMISERS, "optimiser")] = "adam"
    schedule: Annotated[str, _named(SCHEDULES, "schedule")] = "constant"
    clipping: Annotated[str, _named(CLIPPINGS, "clipping")] = "none"
    l1: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    l2: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    penalty: Annotated[str, _named(PENALTIES, "penalty")] = "none"
    validation: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    patience: Annotated[int, Field(ge=1)] | None = None
    start_from: Annotated[str, AfterValidator(lambda name: known_dataset(name) if name else name)] = ""
    frozen_epochs: Annotated[int, Field(ge=0)] = 0
    sparsity: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)] = 0.0

    @model_validator(mode="after")
    def _scaled_or_standard(self) -> RunSpec:
        if self.preprocessing == "standard" and self.input_scale != 1:
            raise ValueError(f"input_scale must be 1 with preprocessing 'standard', received {self.input_scale:g}")
        return self

    @model_validator(mode="after")
    def _fit_together(self) -> RunSpec:
        """Conditions that make no sense together are refused with a sentence."""
        for wrong, sentence in self._misfits():
            if wrong:
                raise ValueError(sentence)
        return self

    def _misfits(self) -> list[tuple[bool, str]]:
        watches = read_rule(self.schedule, SCHEDULES, "schedule")[0]
        by_metric, pushed = watches is SCHEDULES["performance"], self.penalty.partition(":")[0]
        held, images = self.validation > 0, takes_images(self.model)
        own = (self.activation, self.normalisation) == ("relu", "none")
        unfit = sparsity_misfit(self.sparsity, self.model, self.activation, self.normalisation)
        return [
            (
                images and not own,
                f"activation and normalisation must be 'relu' and 'none' for model {self.model!r}, which has its own; "
                f"received {self.activation!r} and {self.normalisation!r}",
            ),
            (
                self.activation == "selu" and self.dropout > 0,
                "dropout must be 0 with activation 'selu', which keeps mean and deviation of its inputs only without "
                f"it; received {self.dropout:g}",
            ),
            (
                self.activation == "selu" and self.normalisation != "none",
                "normalisation must be 'none' with activation 'selu', which normalises by itself; received "
                f"{self.normalisation!r}",
            ),
            (
                self.weight_decay > 0 and self.optimiser != "adam",
                f"weight_decay must be 0 with optimiser {self.optimiser!r}, for it is AdamW's; use l2. Received "
                f"{self.weight_decay:g}",
            ),
            (
                self.weight_decay > 0 and self.l2 > 0,
                f"weight_decay and l2 both shrink weights; give one of them, received {self.weight_decay:g} and "
                f"{self.l2:g}",
            ),
            (
                (by_metric or self.patience is not None) and not held,
                "validation must be above 0, such as 0.1, for patience and for the schedule 'performance', which watch "
                "images that are held back; received 0",
            ),
            (
                held and not by_metric and self.patience is None,
                "validation must be 0 where nothing watches the images held back; ask for patience or for the schedule "
                f"'performance', received {self.validation:g}",
            ),
            (
                self.patience is not None and (self.stop_at is not None or self.stop_loss is not None),
                "patience must be None with stop_at or stop_loss: one rule ends training",
            ),
            (
                self.frozen_epochs > 0 and not self.start_from,
                f"frozen_epochs must be 0 without start_from: layers that learned nothing would be frozen; received "
                f"{self.frozen_epochs}",
            ),
            (
                self.frozen_epochs > self.epochs,
                f"frozen_epochs must be at most epochs, {self.epochs}, received {self.frozen_epochs}",
            ),
            (
                bool(self.start_from) and self.start_from == self.dataset,
                f"start_from must be another data set than dataset, received {self.start_from!r} for both",
            ),
            (
                pushed == "selectivity" and (self.activation != "relu" or self.model.startswith("vit:")),
                "penalty 'selectivity' needs activations that are never negative, of a ReLU; received activation "
                f"{self.activation!r} of model {self.model!r}",
            ),
            (
                pushed != "none" and float(self.penalty.partition(":")[2]) == 0,
                f"penalty must be 'none' rather than with coefficient 0, received {self.penalty!r}",
            ),
            (bool(unfit), unfit),
        ]

    @model_serializer(mode="wrap")
    def _without_unused(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Conditions that are left as they are have no place among the parameters: they came later than many runs."""
        return {
            name: value
            for name, value in plain(self).items()
            if name not in CONDITIONS or value != type(self).model_fields[name].default
        }

    @property
    def alone(self) -> bool:
        """Whether the run is trained by itself; others can be trained side by side, see :meth:`alike`."""
        unusual = any(getattr(self, name) != type(self).model_fields[name].default for name in CONDITIONS)
        return unusual or takes_images(self.model)

    def base(self) -> RunSpec:
        """The run that this one starts from: the same on the true labels of `start_from`, all layers from scratch."""
        return RunSpec(
            **{**self.model_dump(), "dataset": self.start_from, "labels": "true", "start_from": "", "frozen_epochs": 0}
        )

    def data(self) -> Dataset:
        """The data this run trains on, without the images that are held back."""
        return hold_back(self._whole(), self.validation)[0]

    def held_back(self) -> Dataset:
        """The training images that are held back, as `train_pixels` and `train_labels` of a data set."""
        return hold_back(self._whole(), self.validation)[1]

    def _whole(self) -> Dataset:
        return load_dataset(self.dataset, self.labels, self.seed, self.preprocessing, self.examples)

    def alike(self) -> RunSpec:
        """What this run shares with those that can be trained beside it.

        That is the kind of network, the images and how they are prepared, and the size of batches; and the number of
        images where that makes no whole batches.
        """
        shared = {"dataset", "model", "batch_size", "preprocessing", "input_scale", "device"}
        if (self.examples or 1) % self.batch_size:
            shared.add("examples")
        if self.alone:
            shared.update(CONDITIONS, ("epochs",))
        return RunSpec(**{name: getattr(self, name) for name in shared})

    def check(self) -> None:
        """Raise ValueError for what only the data can tell, such as a probe larger than the training set."""
        data = self.data()
        probe_indices(data.train_true, self.probe)
        if self.start_from:
            base = load_dataset(self.start_from)
            if base.image_shape != data.image_shape:
                raise ValueError(
                    f"start_from must have images of {data.image_shape} as dataset {self.dataset!r} has, received "
                    f"{self.start_from!r} with {base.image_shape}"
                )


# Parameters of a run that say how it is trained beyond Adam, ReLU and dropout.
CONDITIONS = (
    "activation",
    "normalisation",
    "optimiser",
    "schedule",
    "clipping",
    "l1",
    "l2",
    "penalty",
    "validation",
    "patience",
    "start_from",
    "frozen_epochs",
    "sparsity",
)
