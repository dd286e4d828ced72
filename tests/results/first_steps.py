"""The first 20 steps of the reference study's first network on every data set, as numbers and as bits.

`python tests/results/first_steps.py` makes `book/results/processors/first_steps.json` again, in plain arithmetic and in
portable mode, and keeps what is there of emulated processors; with names of processors that `qemu-x86_64 -cpu help`
lists, it also adds them, on the smallest data set; with `work` it prints what this process computes.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[2] / "book/results/processors/first_steps.json"
IMAGES = 640  # 20 batches of 32
NAMES = ("digits", "mnist-5k", "mnist", "fashion-mnist", "cifar10", "plantvillage")


def first_steps(name: str) -> dict[str, Any]:
    """One pass of the study's first network over its first images."""
    import numpy as np
    import torch

    from nbutils.capturing.hooks import capture_activations
    from nbutils.data.datasets import load_dataset
    from nbutils.runs.models import build_model
    from nbutils.runs.training import TrainingSettings, one_thread, score, train
    from nbutils.study.archive import reference_tasks

    spec = reference_tasks(name)[0].run
    whole = load_dataset(spec.dataset, spec.labels, spec.seed)
    data = replace(whole, train_pixels=whole.train_pixels[:IMAGES], train_labels=whole.train_labels[:IMAGES])
    torch.manual_seed(spec.seed)
    model = build_model(spec.model, data.train_pixels.shape[1], len(data.classes), spec.dropout)

    def state() -> tuple[float, dict[str, np.ndarray], np.ndarray]:
        seen = capture_activations(model, data.train_pixels, prepare=data.to_inputs)
        weights = np.concatenate([p.detach().numpy().ravel() for p in model.parameters()])
        return score(seen["output"], data.train_labels)[0], seen, weights

    with one_thread():
        before, _, start = state()
        list(train([model], [data], TrainingSettings(1, spec.batch_size, spec.learning_rate), [spec.seed]))
        after, seen, end = state()
    bits = hashlib.sha256(end.tobytes() + b"".join(values.tobytes() for values in seen.values()))
    distance = float(np.sqrt(np.sum((end - start).astype(np.float64) ** 2)))
    return {
        "version": data.version,
        "start": hashlib.sha256(start.tobytes()).hexdigest()[:16],
        "loss": [before, after],
        "distance": distance,
        "bits": bits.hexdigest()[:16],
    }


def all_first_steps(names: tuple[str, ...] = NAMES) -> dict[str, Any]:
    """Of every data set, with where they were computed."""
    from nbutils.support.provenance import provenance

    return {"provenance": provenance(), "data": {name: first_steps(name) for name in names}}


def in_new_process(names: tuple[str, ...] = NAMES, before: tuple[str, ...] = (), **variables: str) -> dict[str, Any]:
    """The same in a process whose environment holds these variables, and no other limits of arithmetic.

    `before` are words before the command, such as an emulator.
    """
    from nbutils.support import machine

    clean = {k: v for k, v in os.environ.items() if k not in (*machine.settings(), machine.SWITCH)}
    command = [*before, sys.executable, str(Path(__file__)), "work", *names]
    done = subprocess.run(command, env=clean | variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def both_modes(names: tuple[str, ...] = NAMES, before: tuple[str, ...] = ()) -> dict[str, Any]:
    """In plain arithmetic and in portable mode."""
    return {"plain": in_new_process(names, before), "portable": in_new_process(names, before, NBUTILS_PORTABLE="1")}


if __name__ == "__main__":
    import nbutils  # noqa: F401 - before NumPy, for portable mode

    if sys.argv[1:2] == ["work"]:
        print(json.dumps(all_first_steps(tuple(sys.argv[2:]) or NAMES)))
    else:
        known = json.loads(FILE.read_text()) if FILE.exists() else {"emulated": {}}
        emulated = {cpu: both_modes(NAMES[:1], ("qemu-x86_64", "-cpu", cpu)) for cpu in sys.argv[1:]}
        found = {**both_modes(), "emulated": known["emulated"] | emulated}
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_text(json.dumps(found, indent=1) + "\n")
