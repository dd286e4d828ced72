"""The questions about sparse units, with rules that were fixed before the networks: differences, intervals, words."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbutils.drawing.display import interval_text
from nbutils.evaluation.words import Estimate, inner_level, judge, t_interval
from nbutils.experiments.effects import estimate_of, holm_adjusted, paired, paired_p_value
from nbutils.motifs.sparse_settings import PLANS
from nbutils.motifs.tasks import TASKS
from nbutils.study.cases import read_cases
from nbutils.support.files import is_file
from nbutils.support.provenance import digest_of
from nbutils.truth.power import Share, share_interval

__all__ = [
    "PUBLISHED",
    "SPARSE_RULES",
    "SparseRules",
    "confusion_share",
    "last_looks",
    "read_looks",
    "sound_networks",
    "sparse_verdicts",
    "told_effects",
    "told_words",
    "trace_table",
]

# Confusion error by condition, as published (nine seeds, DigitCircle of 100 x 100 pixels); of L1 the better end of a
# range.
PUBLISHED = {"MT": 0.0116, "ST": 0.222, "L1": 0.46}


@dataclass(frozen=True)
class SparseRules:
    """How it is decided what sparse units stand for; fixed before the networks of the experiment were trained.

    For every task:

    1. *Confusion*: CE of "ST", "L1", "KL" and "none" minus CE of "MT" at the last look, networks paired by seed, mean
       and t interval. *Supported* above `confusion`, *contradicted* below minus that, equivalence within it.
    2. *Communities*: of "MT", adjusted mutual information of communities with motifs at the last look minus that at
       the look before training, mean over networks; the same with `agreement`, predicted to rise.

    A network counts if it did not fail, is not degenerate and reads: edit accuracy of at least `reads` at the last
    look. Fewer than `least` pairs are *undecided*; where fewer than `least` networks with "MT" end within twice the
    density that they were to reach, the task is *not measurable*. p values of all these questions are adjusted together
    by Holm's method.

    Attributes:
        confusion: threshold and bound of the first question.
        agreement: of the second.
        reads: edit accuracy that a network needs.
        least: pairs.
        level: confidence of the intervals.
    """

    confusion: float = 0.05
    agreement: float = 0.1
    reads: float = 0.5
    least: int = 5
    level: float = 0.95

    @property
    def digest(self) -> str:
        """By which a page names the rules."""
        return digest_of(asdict(self))


SPARSE_RULES = SparseRules()
AGAINST = ("ST", "L1", "KL", "none")


def last_looks(table: pd.DataFrame) -> pd.DataFrame:
    """The last look at each network that did not fail.

    Args:
        table: of the experiment *sparse*.
    """
    return table[(table["final"] == 1) & (table["reason"] == "")]


def sound_networks(table: pd.DataFrame, rules: SparseRules = SPARSE_RULES) -> pd.DataFrame:
    """The last look at each network that counts.

    Args:
        table: of the experiment *sparse*.
        rules: how it is decided.
    """
    last = last_looks(table)
    return last[(last["degenerate"] == 0) & (last["test_edit"] >= rules.reads)]


def sparse_verdicts(table: pd.DataFrame, rules: SparseRules = SPARSE_RULES) -> pd.DataFrame:
    """Effects, intervals and words of all questions.

    Args:
        table: of the experiment *sparse*; it may lack networks.
        rules: how it is decided.

    Returns:
        One row per task and question: `task`, `question` ("confusion" or "communities"), `condition` (held against
        "MT", or "MT" itself), `networks`, `effect`, `low`, `high`, `inner_low`, `inner_high`, `p_value`, `adjusted`,
        `word`.
    """
    sound, rows = sound_networks(table, rules), []
    for task in dict.fromkeys(table["task"]):
        own = sound[sound["task"] == task]
        for condition in AGAINST:
            found = paired(own, condition, "MT", "confusion")
            rows.append({"task": task, "question": "confusion", "condition": condition, **_effect(found, rules)})
        risen = _risen(table[table["task"] == task], own)
        rows.append({"task": task, "question": "communities", "condition": "MT", **_effect(risen, rules)})
    names = ("task", "question", "condition", *_effect(np.array([]), rules))
    verdicts = pd.DataFrame(rows, columns=names)
    verdicts["adjusted"] = holm_adjusted(verdicts["p_value"])
    verdicts["word"] = [_word(row, _arrived(sound, row.task), rules) for row in verdicts.itertuples()]
    return verdicts


def _risen(table: pd.DataFrame, sound: pd.DataFrame) -> np.ndarray:
    own = sound[sound["condition"] == "MT"].set_index("settings")["ami_motif"]
    first = table[(table["samples"] == 0) & (table["final"] == 0)].set_index("settings")["ami_motif"]
    return (own - first.reindex(own.index)).dropna().to_numpy()


def _effect(found: np.ndarray, rules: SparseRules) -> dict[str, Any]:
    row: dict[str, Any] = {"networks": len(found), "effect": float(found.mean()) if len(found) else np.nan}
    enough = len(found) >= rules.least
    low, high = t_interval(found, rules.level) if enough else (np.nan, np.nan)
    inner = t_interval(found, inner_level(rules.level)) if enough else (np.nan, np.nan)
    row |= {"low": low, "high": high, "inner_low": inner[0], "inner_high": inner[1]}
    return row | {"p_value": paired_p_value(found) if enough else np.nan}


def _arrived(sound: pd.DataFrame, task: str) -> int:
    """Networks with a threshold for each channel that came within twice the density that they were to reach."""
    own = sound[(sound["task"] == task) & (sound["condition"] == "MT")]
    stops = [json.loads(text)["sparse"]["schedule"]["stop"] for text in own["parameters"]]
    return int((own["density"] <= 2 * np.array(stops)).sum())


def _word(row: Any, arrived: int, rules: SparseRules) -> str:
    if row.networks < rules.least:
        return "undecided"
    if arrived < rules.least:
        return "not measurable"
    estimate: Estimate = estimate_of(row)
    threshold = rules.confusion if row.question == "confusion" else rules.agreement
    return judge(estimate, threshold, direction=1, bound=threshold, adjusted=row.adjusted)


def trace_table(table: pd.DataFrame) -> pd.DataFrame:
    """Every check of every network: `task`, `condition`, `seed`, and what the trace holds.

    Args:
        table: of the experiment *sparse*.
    """
    parts = []
    for row in last_looks(table).itertuples():
        own = pd.DataFrame(json.loads(row.trace))
        parts.append(own.assign(task=row.task, condition=row.condition, seed=row.seed))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def told_effects(verdicts: pd.DataFrame) -> str:
    """Effects of a question in words, conditions of a task together that have the same word.

    Args:
        verdicts: rows of one question, see `sparse_verdicts`, with tasks as they are to be called.

    Examples:
        >>> row = {"condition": "none", "effect": 0.3, "low": np.nan, "high": np.nan, "word": "undecided"}
        >>> told_effects(pd.DataFrame([{"task": "lines", **row}, {"task": "lines", **row, "condition": "ST"}]))
        'on lines: nothing 0.30, ST 0.30, **undecided**'
    """
    parts = []
    for (task, word), own in verdicts.groupby(["task", "word"], sort=False):
        each = own.replace({"condition": {"none": "nothing"}}).itertuples()
        told = ", ".join(f"{row.condition} {interval_text(row.effect, row.low, row.high)}" for row in each)
        parts.append(f"on {task}: {told}, **{word}**")
    return "; ".join(parts) or "no network yet"


def told_words(verdicts: pd.DataFrame) -> str:
    """How often each word is said, most often first.

    Examples:
        >>> told_words(pd.DataFrame({"word": ["undecided", "supported", "undecided"]}))
        'undecided 2, supported 1'
    """
    return ", ".join(f"{word} {count}" for word, count in verdicts["word"].value_counts().items())


# What the page reads, so that it stands before the first network is trained.
COLUMNS = [
    "settings",
    "task",
    "condition",
    "seed",
    "parameters",
    "reason",
    "final",
    "samples",
    "density",
    "target",
    "accuracy",
    "edit",
    "loss",
    "false_positive",
    "false_negative",
    "confusion",
    "counted",
    "active",
    "silent",
    "exact",
    "test_edit",
    "modularity",
    "class_part",
    "remainder",
    "excess",
    "communities",
    "connected",
    "ami_motif",
    "ami_part",
    "block_entropy",
    "block_entropy_null",
    "trace",
    "degenerate",
]


def confusion_share(look: pd.Series, level: float = 0.95) -> Share:
    """The confusion error of one look as a share of its matched activations, with an exact interval.

    Activations are taken for independent witnesses; what another network of the same condition would give is not part
    of the interval.

    Args:
        look: row of a table of looks, `task` by its name.
        level: confidence of the interval.
    """
    from nbutils.motifs.motif_units import EXAMPLES  # loads PyTorch

    task, stride = TASKS[look["task"]], PLANS[look["task"]].stride
    places = [-(-size // step) for size, step in zip(task.space, stride, strict=True)]
    active = look["counted"] * EXAMPLES * len(task.alphabet) * np.prod(places)
    matched = round(active * (1 - look["false_positive"]))
    return share_interval(round(look["confusion"] * matched), matched, level)


def read_looks(path: Path) -> pd.DataFrame:
    """The table of the experiment, or one without rows where it has not been made yet.

    Args:
        path: of the table.

    Raises:
        ValueError: it is damaged.

    Examples:
        >>> len(read_looks(Path("missing.parquet")))
        0
    """
    return read_cases(path) if is_file(path) else pd.DataFrame(columns=COLUMNS)
