"""Tables of the experiment on cause whose truth one knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from nbutils.experiments.causes import CONTROLS, PUSHED, cause_trials
from nbutils.second.elsewhere import CHOICES

START = {"modularity": 0.6, "block_entropy_top": 2.5, "class_selectivity": 0.5, "mean_activity": 0.4}


@pytest.fixture(scope="session")
def cause_world() -> Callable[..., pd.DataFrame]:
    """Makes a table of MNIST in which accuracy follows Q by `slope`, and a full dose of a control by `control`.

    A dose of 1 or more moves Q by `strong`, and entropy by three times as many bits; a random partition moves nothing.
    Other measures of Q see the share `seen` of every shift.
    """

    def made(
        slope: float = 0.0, control: float = 0.0, strong: float = 0.25, seen: float = 1.0, seeds: int = 10
    ) -> pd.DataFrame:
        rng, rows = np.random.default_rng(0), []
        luck = rng.normal(0.9, 0.02, seeds)
        for trial in cause_trials(["mnist-10k"], seeds):
            now, (pushed, _) = dict(START), PUSHED.get(trial.condition, (CONTROLS.get(trial.condition), 0))
            push = float(np.clip(np.nan_to_num(trial.dose), -1, 1))
            if pushed and trial.condition != "random":
                now[pushed] += push * strong * (3 if pushed == "block_entropy_top" else 1)
            shift = now["modularity"] - START["modularity"]
            gain = slope * shift + control * push * (trial.condition in CONTROLS)
            accuracy = luck[trial.run.seed] + gain + rng.normal(0, 0.002)
            now["modularity"] += rng.normal(0, 0.01)
            other = START["modularity"] + seen * (now["modularity"] - START["modularity"])
            each = {f"{kind}_{name}": other for name in CHOICES for kind in ("modularity", "excess")}
            each |= {"excess": now["modularity"], "class_part": 0.3, "remainder": now["modularity"] - 0.3}
            own = {"condition": trial.condition, "dose": trial.dose, "dataset": trial.run.dataset}
            own |= {"labels": trial.run.labels, "seed": trial.run.seed, "reason": "", "degenerate": 0.0}
            rows.append(own | now | each | {"accuracy": accuracy, "train_accuracy": accuracy, "calibration": 0.05})
        return pd.DataFrame(rows)

    return made
