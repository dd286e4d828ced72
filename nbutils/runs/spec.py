"""The parameters of a run, checked before anything starts."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from nbutils.activations import firing_share
from nbutils.data.catalogue import full_name
from nbutils.data.datasets import Dataset, label_noise, load_dataset, probe_indices
from nbutils.runs.models import hidden_widths
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
        seed: decides initialisation, order of examples, dropout and redrawn labels.
        probe: examples in the probe set; None means 2,000, or all training examples where there are fewer.
        firing: rule that turns activations into firing.
        input_scale: factor on the images in training only; capture always sees them from 0 to 1. 255 is what the
            paper's released code does.
        stop_at: training accuracy that ends training early; None trains all epochs.
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
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    probe: Annotated[int, Field(ge=1)] | None = None
    firing: Annotated[str, checked_by(firing_share)] = "top-decile"
    input_scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    stop_at: Annotated[float, Field(gt=0, le=1)] | None = None
    checkpoints: bool = False
    device: Annotated[str, AfterValidator(resolve_device)] = "cpu"

    def data(self) -> Dataset:
        """The data this run trains on."""
        return load_dataset(self.dataset, self.labels, self.seed)

    def alike(self) -> RunSpec:
        """What this run shares with those that can be trained beside it: all but labels and seed."""
        return self.model_copy(update={"labels": "true", "seed": 0})

    def check(self) -> None:
        """Raise ValueError for what only the data can tell, such as a probe larger than the training set."""
        probe_indices(load_dataset(self.dataset).train_true, self.probe)
