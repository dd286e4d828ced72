"""The parameters of a run, checked before anything starts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from nbutils.activations import firing_share
from nbutils.data.catalogue import full_name
from nbutils.data.datasets import PREPROCESSING, Dataset, label_noise, load_dataset, probe_indices
from nbutils.runs.models import INITIALISATIONS, hidden_widths
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
        initialisation: "pytorch" or "glorot" (Keras), see :func:`nbutils.runs.models.build_model`.
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

    @model_validator(mode="after")
    def _scaled_or_standard(self) -> RunSpec:
        if self.preprocessing == "standard" and self.input_scale != 1:
            raise ValueError(f"input_scale must be 1 with preprocessing 'standard', received {self.input_scale:g}")
        return self

    def data(self) -> Dataset:
        """The data this run trains on."""
        return load_dataset(self.dataset, self.labels, self.seed, self.preprocessing, self.examples)

    def alike(self) -> RunSpec:
        """What this run shares with those that can be trained beside it.

        That is the kind of network, the images and how they are prepared, and the size of batches; and the number of
        images where that makes no whole batches.
        """
        shared = {"dataset", "model", "batch_size", "preprocessing", "input_scale", "device"}
        if (self.examples or 1) % self.batch_size:
            shared.add("examples")
        return RunSpec(**{name: getattr(self, name) for name in shared})

    def check(self) -> None:
        """Raise ValueError for what only the data can tell, such as a probe larger than the training set."""
        data = load_dataset(self.dataset, examples=self.examples)
        probe_indices(data.train_true, self.probe)
