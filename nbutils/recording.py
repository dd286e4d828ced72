"""Making a run: train a network and record what its hidden neurons do before training and after every epoch."""

from __future__ import annotations

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
        settings = TrainingSettings(spec.epochs, spec.batch_size, spec.learning_rate)
        for epoch in train(model, data, settings, spec.seed):
            try:
                captured = capture_activations(model, data.train_inputs, f"{HIDDEN_LAYERS} output")
                state = _state(epoch, model, data, captured.pop("output"), first)
            except NonFiniteError as error:
                settings_text = f"dataset={spec.dataset}, labels={spec.labels}, learning_rate={spec.learning_rate:g}"
                reason = f"training diverged: after epoch {epoch} {error} ({settings_text})"
                break
            history.append(asdict(state))
            for name, values in _snapshot(np.hstack(list(captured.values())), probe, labels, spec.firing).items():
                snapshots.setdefault(name, []).append(values)
    stacked = {name: np.stack(values) for name, values in snapshots.items()}
    arrays = {
        "snapshots": {**stacked, "probe_labels": labels},
        "first_weights": first,
        "last_weights": _weights(model),
    }
    return {"history": history, "reason": reason}, arrays


def _weights(model: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: values.detach().numpy().copy() for name, values in model.state_dict().items()}


def _state(
    epoch: int, model: torch.nn.Module, data: Dataset, train_logits: np.ndarray, first: dict[str, np.ndarray]
) -> Epoch:
    test_logits = capture_activations(model, data.test_inputs, "output")["output"]
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
