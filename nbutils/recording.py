"""Making runs: train networks side by side, record what their hidden neurons do before and after every epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from nbutils.activations import activation_histogram, class_means, firing
from nbutils.architectures import HIDDEN_LAYERS
from nbutils.datasets import Dataset, probe_indices
from nbutils.hooks import NonFiniteError, capture_activations
from nbutils.models import build_model
from nbutils.specs import RunSpec
from nbutils.training import Epoch, TrainingSettings, one_thread, score, train

__all__ = ["record_runs"]

Arrays = dict[str, dict[str, np.ndarray]]


def record_runs(specs: Sequence[RunSpec]) -> list[tuple[dict[str, Any], Arrays]]:
    """Train networks once, side by side, and record each.

    Args:
        specs: runs that differ in labels and seed only.

    Returns:
        (history and failure, arrays) of each: `{"history": one dict per epoch, "reason": ""}`, where `reason` says why
        recording stopped early; and the groups `snapshots`, `first_weights`, `last_weights`.

    Raises:
        ValueError: the runs differ in more.

    Examples:
        >>> ((summary, arrays),) = record_runs([RunSpec(epochs=1, model="mlp:8")])
        >>> [row["epoch"] for row in summary["history"]], arrays["snapshots"]["fired"].shape
        ([0, 1], (2, 1437, 1))
    """
    shared = specs[0]
    if len({spec.alike() for spec in specs}) != 1:
        raise ValueError("runs that are made together may differ in labels and seed only")
    with one_thread(), torch.random.fork_rng(devices=[]):
        recorders = [_Recorder(spec) for spec in specs]
        settings = TrainingSettings(shared.epochs, shared.batch_size, shared.learning_rate)
        models, data = [r.model for r in recorders], [r.data for r in recorders]
        for epoch in train(models, data, settings, [spec.seed for spec in specs]):
            for recorder in recorders:
                recorder.look(epoch)
            if all(recorder.reason for recorder in recorders):
                break
    return [recorder.result() for recorder in recorders]


class _Recorder:
    """One network, and what was seen of it so far."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec, self.data = spec, spec.data()
        self.probe = probe_indices(self.data.train_true, spec.probe)
        torch.manual_seed(spec.seed)
        model = build_model(spec.model, self.data.train_pixels.shape[1], len(self.data.classes), spec.dropout)
        self.model = model.to(spec.device)
        self.first = _weights(self.model)
        self.history: list[dict[str, Any]] = []
        self.reason = ""
        self.snapshots: dict[str, list[np.ndarray]] = {}

    def look(self, epoch: int) -> None:
        """Note the state of the network; once it has diverged, nothing more."""
        if self.reason:
            return
        try:
            captured = _capture(self.model, self.data, self.data.train_pixels, f"{HIDDEN_LAYERS} output")
            state = _state(epoch, self.model, self.data, captured.pop("output"), self.first)
        except NonFiniteError as error:
            given = f"dataset={self.spec.dataset}, labels={self.spec.labels}, learning_rate={self.spec.learning_rate:g}"
            self.reason = f"training diverged: after epoch {epoch} {error} ({given})"
            return
        self.history.append(asdict(state))
        activations, labels = np.hstack(list(captured.values())), self.data.train_true[self.probe]
        for name, values in _snapshot(activations, self.probe, labels, self.spec.firing).items():
            self.snapshots.setdefault(name, []).append(values)

    def result(self) -> tuple[dict[str, Any], Arrays]:
        """All that is stored."""
        stacked = {name: np.stack(values) for name, values in self.snapshots.items()}
        arrays = {
            "snapshots": {**stacked, "probe_labels": self.data.train_true[self.probe]},
            "first_weights": self.first,
            "last_weights": _weights(self.model),
        }
        return {"history": self.history, "reason": self.reason}, arrays


def _capture(model: torch.nn.Module, data: Dataset, pixels: np.ndarray, layers: str) -> dict[str, np.ndarray]:
    return capture_activations(model, pixels, layers, prepare=data.to_inputs)


def _weights(model: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: values.detach().cpu().numpy().copy() for name, values in model.state_dict().items()}


def _state(
    epoch: int, model: torch.nn.Module, data: Dataset, train_logits: np.ndarray, first: dict[str, np.ndarray]
) -> Epoch:
    test_logits = _capture(model, data, data.test_pixels, "output")["output"]
    train_loss, train_accuracy = score(train_logits, data.train_labels)
    test_loss, test_accuracy = score(test_logits, data.test_labels)
    now = np.concatenate([values.ravel() for values in _weights(model).values()]).astype(np.float64)
    start = np.concatenate([values.ravel() for values in first.values()])
    return Epoch(
        epoch=epoch,
        train_loss=train_loss,
        train_accuracy=train_accuracy,
        true_accuracy=score(train_logits, data.train_true)[1],
        test_loss=test_loss,
        test_accuracy=test_accuracy,
        parameter_norm=float(np.linalg.norm(now)),
        distance=float(np.linalg.norm(now - start)),
    )


def _snapshot(activations: np.ndarray, probe: np.ndarray, labels: np.ndarray, rule: str) -> dict[str, np.ndarray]:
    watched = activations[probe]
    return {
        "fired": np.packbits(firing(watched, rule), axis=1),
        "positive": np.packbits(firing(watched, "positive"), axis=1),
        "class_means": class_means(watched, labels).astype(np.float32),
        "histogram": activation_histogram(activations).astype(np.int32),
    }
