"""Making a run: train a network and record what its hidden neurons do before training and after every epoch."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from nbutils.activations import activation_histogram, class_means, firing
from nbutils.datasets import Dataset, probe_indices
from nbutils.hooks import capture_activations
from nbutils.models import HIDDEN_LAYERS, build_model
from nbutils.specs import RunSpec
from nbutils.training import DivergedError, TrainingSettings, one_thread, train

__all__ = ["record_run"]

Arrays = dict[str, dict[str, np.ndarray]]


def record_run(spec: RunSpec) -> tuple[dict[str, Any], Arrays]:
    """Train once and record.

    Args:
        spec: the run.

    Returns:
        (history and failure, arrays): `{"history": one dict per epoch, "reason": ""}`, where `reason` says why training
        stopped early; and the groups `snapshots`, `first_weights`, `last_weights`.

    Examples:
        >>> summary, arrays = record_run(RunSpec(epochs=1, model="mlp:8"))
        >>> [row["epoch"] for row in summary["history"]], arrays["snapshots"]["fired"].shape
        ([0, 1], (2, 1437, 1))
    """
    data = spec.data()
    probe = probe_indices(data.train_true, spec.probe)
    labels = data.train_true[probe]
    history: list[dict[str, Any]] = []
    reason = ""
    snapshots: dict[str, list[np.ndarray]] = {}
    with one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        model = build_model(spec.model, data.train_inputs.shape[1], len(data.classes), spec.dropout)
        first = _weights(model)
        try:
            for epoch in train(
                model, data, TrainingSettings(spec.epochs, spec.batch_size, spec.learning_rate), spec.seed
            ):
                for name, values in _snapshot(model, data, probe, labels, spec.firing).items():
                    snapshots.setdefault(name, []).append(values)
                history.append(asdict(epoch))
        except DivergedError as error:
            reason = f"{error} (dataset={spec.dataset}, labels={spec.labels}, learning_rate={spec.learning_rate:g})"
    stacked = {name: np.stack(values) for name, values in snapshots.items()}
    arrays = {
        "snapshots": {**stacked, "probe_labels": labels},
        "first_weights": first,
        "last_weights": _weights(model),
    }
    return {"history": history, "reason": reason}, arrays


def _weights(model: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: values.detach().numpy().copy() for name, values in model.state_dict().items()}


def _snapshot(
    model: torch.nn.Module, data: Dataset, probe: np.ndarray, labels: np.ndarray, rule: str
) -> dict[str, np.ndarray]:
    activations = np.hstack(list(capture_activations(model, data.train_inputs, HIDDEN_LAYERS).values()))
    watched = activations[probe]
    return {
        "fired": np.packbits(firing(watched, rule), axis=1),
        "positive": np.packbits(firing(watched, "positive"), axis=1),
        "class_means": class_means(watched, labels).astype(np.float32),
        "histogram": activation_histogram(activations).astype(np.int32),
    }
