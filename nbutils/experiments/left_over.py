"""What is left over within classes, in networks of the second study: is it there, made by training, worth anything?

The remainder of modularity can miss groups across classes; :func:`nbutils.truth.remainders.left_over` sees them. So the
questions of the second study are put to it, by the same rules, and answered by the same code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd

from nbutils.communities import agreed_communities, detect_communities
from nbutils.data.datasets import probe_halves
from nbutils.evaluation.words import ALPHA
from nbutils.experiments.effects import holm_adjusted
from nbutils.experiments.lesions import MLP
from nbutils.experiments.trials import Trial, is_degenerate, trial_facts
from nbutils.graphs import activation_pattern_graph
from nbutils.nulls import within_class_null
from nbutils.runs.looks import Look, look_at
from nbutils.runs.models import hidden_widths
from nbutils.runs.run import run_once
from nbutils.runs.spec import RunSpec
from nbutils.second.answers import Answer, answer_one, sound, values_of
from nbutils.second.networks import PARTS, Tables, settings_digest
from nbutils.second.questions import PROTOCOL, Question
from nbutils.second.zoo import Member, zoo_members
from nbutils.support.provenance import digest_of
from nbutils.tracking import class_agreement
from nbutils.truth.remainders import conditional_graph, left_over

__all__ = [
    "LEFT_QUESTIONS",
    "RUNS",
    "RUNS_ON",
    "ZOOS_ON",
    "left_answers",
    "left_digest",
    "left_pairs",
    "left_rows",
    "left_seconds",
    "left_tables",
    "left_trials",
    "left_values",
]

SEEDS = 10
# Data set, as the second study names it -> images that the networks with ten seeds are trained on.
RUNS_ON: Mapping[str, str] = {
    "kmnist": "kmnist",
    "fashion-mnist": "fashion-mnist-10k",
    "cifar10": "cifar10-10k",
    "mnist": "mnist-10k",
    "plantvillage": "plantvillage@32",
}
ZOOS_ON = ("kmnist", "fashion-mnist", "cifar10")  # the other two would take hours more
RUNS, ZOO = "runs", "small"  # conditions of trials, and names of designs
LEFT_QUESTIONS: tuple[Question, ...] = (
    Question(
        "H1 left over within classes",
        "Do neurons fire together in groups within true and predicted classes?",
        "left",
        RUNS,
        "mean",
        0.02,
        0.02,
        1,
        1.0,
    ),
    Question("H1 left over, by training", "Does training make it so?", "left", RUNS, "rise", 0.0, 0.05, 1, 1.0),
    Question(
        "H2 left over, performance",
        "Of two networks trained on true labels with other settings, does it tell which one is better?",
        "left",
        "zoo",
        "rank",
        0.2,
        0.2,
        1,
        1.0,
    ),
    Question(
        "H2 left over, added",
        "Does it explain performance beyond what cheaper measures explain?",
        "left",
        "zoo",
        "added",
        0.02,
        0.02,
        1,
        1.0,
    ),
)


def left_digest() -> str:
    """By which a page names the rules."""
    design = {"runs": dict(RUNS_ON), "seeds": SEEDS, "mlp": dict(MLP), "zoos": ZOOS_ON}
    return digest_of({"questions": [asdict(one) for one in LEFT_QUESTIONS], "alpha": ALPHA, **design})


def left_trials(datasets: Sequence[str] | None = None, seeds: int | None = None) -> list[Trial]:
    """All networks of the experiment *left-over*.

    Args:
        datasets: names of data sets; None takes those of the book.
        seeds: networks that differ by their seed on each; None takes ten, and the zoos as well.

    Returns:
        Networks with ten seeds (`condition` "runs"), then the members of the second study's zoos ("small").

    Examples:
        >>> trials = left_trials()
        >>> len(trials), trials[0].condition, trials[-1].condition
        (1058, 'runs', 'small')
    """
    names, count = RUNS_ON if datasets is None else datasets, SEEDS if seeds is None else seeds
    found = [
        Trial(RunSpec(**MLP, dataset=RUNS_ON.get(name, name), seed=seed), RUNS)
        for name in names
        for seed in range(count)
    ]
    for name in (one for one in names if one in ZOOS_ON and seeds is None):
        found += list(_zoo(name))
    return found


def _zoo(name: str) -> dict[Trial, Member]:
    """Members of a zoo by their trials, all graphs drawn down to half of the smallest network."""
    members = zoo_members(name, ZOO)
    size = min(round(PROTOCOL.matched * sum(hidden_widths(one.run.model))) for one in members)
    return {Trial(one.run, ZOO, neurons=size): one for one in members}


SECONDS = 9.0  # of one processor, about: to train a network, others beside it, and to look at it


def left_seconds(trials: Sequence[Trial]) -> float:
    """About how long trials take on one processor.

    Examples:
        >>> left_seconds(left_trials(["digits"], seeds=1)) > 4
        True
    """
    return SECONDS * len(trials)


def left_rows(trial: Trial) -> list[dict[str, Any]]:
    """The rows of a network: as it was trained, and of those that differ by their seed before training, too.

    Args:
        trial: one network.

    Returns:
        What :func:`nbutils.experiments.trials.trial_facts` says with each state, its `epoch`, `accuracy`, `degenerate`
        (as it was trained), and what :func:`left_values` gives of the probe and, as `left_first` and `left_second`, of
        its halves. A network whose training failed has one row.
    """
    run = run_once(trial.run)
    facts = trial_facts(run, trial)
    if run.failed:
        return [facts]
    looks = [look_at(run, neurons=trial.size)]
    looks += [look_at(run, 0, neurons=trial.size)] if trial.condition == RUNS else []
    found, degenerate = [], float(is_degenerate(looks[0]))
    for epoch, look in zip((run.last_epoch, 0), looks, strict=False):
        halves = zip(PARTS[1:], probe_halves(look.labels), strict=True)
        known = {"epoch": epoch, "accuracy": look.run["other_accuracy"], "degenerate": degenerate}
        known |= {f"left_{part}": _left(look.part(half))["left"] for part, half in halves}
        found.append(facts | known | left_values(look))
    return found


def left_values(look: Look) -> dict[str, float]:
    """What is left over within cells of true and predicted class.

    Args:
        look: see :func:`nbutils.runs.looks.look_at`.

    Returns:
        `conditional`, `left` and `groups`, see :func:`nbutils.truth.remainders.left_over`, NaN where fewer neurons fire
        than are drawn; `nothing`, what it says of firing that was shuffled within cells before; `active` neurons; and
        how far groups of them are those that prefer one class (adjusted mutual information): `by_class` on this graph,
        `book_by_class` on the book's.
    """
    active = look.fired.any(axis=0)
    fired = look.fired[:, active]
    graphs = conditional_graph(fired, look.cells, PROTOCOL.density), activation_pattern_graph(fired, PROTOCOL.density)
    groups = [agreed_communities(detect_communities(graph).seed_labels) for graph in graphs]
    agree = [class_agreement(fired, look.labels, one) for one in groups]
    known = {"active": int(active.sum()), "by_class": agree[0], "book_by_class": agree[1]}
    return {
        **_left(look),
        "nothing": _left(look, within_class_null(look.fired, look.cells, look.seed))["left"],
        **known,
    }


def _left(look: Look, fired: np.ndarray | None = None) -> dict[str, float]:
    own = look.fired if fired is None else fired
    if own.any(axis=0).sum() < look.neurons:
        return dict.fromkeys(("conditional", "left", "groups"), float("nan"))
    return left_over(own, look.cells, look.seed, look.neurons, PROTOCOL.density, PROTOCOL.draws)


def left_tables(table: pd.DataFrame, name: str, study: Tables | None = None) -> Tables:
    """The table of the experiment as tables of the second study, which answers the same kinds of questions.

    Args:
        table: of the experiment.
        name: of a data set, as the second study names it.
        study: its tables; what other measures say of members of its zoo is taken from there. None leaves the zoo out,
            and so does a table that holds only a part of it.

    Returns:
        Tables with the networks of this experiment alone, and `left` among their measures.
    """
    members = _zoo(name) if study is not None and name in ZOOS_ON else {}
    known = {trial.settings: member for trial, member in members.items()}
    if not set(known) <= set(table["settings"]):
        members, known = {}, {}
    own = (table["condition"] == RUNS) & (table["dataset"] == RUNS_ON.get(name, name))
    mine = table[own | table["settings"].isin(set(known))]
    last = mine.sort_values("epoch").drop_duplicates("settings", keep="last")
    family = [known[one].family if one in known else -1 for one in last["settings"]]
    status = np.where(last["reason"] == "", "done", "failed")
    networks = last.assign(designs=last["condition"], status=status, family=family)
    parts = dict(zip(PARTS, ("left", "left_first", "left_second"), strict=True))
    measures = [
        mine[["run", "epoch"]].assign(part=part, measure="left", value=mine[column]) for part, column in parts.items()
    ]
    if study is not None:
        addresses = {settings_digest(member.run): trial.settings for trial, member in members.items()}
        there = study.networks.set_index("run")["settings"].map(addresses).dropna()
        run = there.map(last.set_index("settings")["run"]).dropna()
        others = study.measures[study.measures["run"].isin(run.index)]
        measures.append(others.assign(run=others["run"].map(run)))
    return Tables(networks, pd.concat(measures, ignore_index=True), pd.DataFrame(), pd.DataFrame())


def left_pairs(table: pd.DataFrame, name: str, study: Tables) -> pd.DataFrame:
    """Sound members of a zoo: what is left over in each, and how well it performs.

    Args:
        table: of the experiment.
        name: of a data set, as the second study names it.
        study: its tables.

    Returns:
        One row per network: `left`, `accuracy`, `family`.
    """
    own = left_tables(table, name, study)
    rows, _ = sound(own, ZOO)
    return rows.assign(left=values_of(own, rows, ["left"]).to_numpy())[["left", "accuracy", "family"]]


def left_answers(table: pd.DataFrame, studies: Mapping[str, Tables]) -> list[Answer]:
    """All questions about what is left over, answered on every data set.

    Args:
        table: of the experiment.
        studies: tables of the second study by name of the data set.

    Returns:
        Answers by question, then data set; p values are those of t tests where means are asked for, and Holm's method
        corrects over all of them together.
    """
    tables = {name: left_tables(table, name, study) for name, study in studies.items()}
    there = {name: own for name, own in tables.items() if len(own.networks)}
    asked = [answer_one(name, own, question) for question in LEFT_QUESTIONS for name, own in there.items()]
    found = [one for one in asked if one is not None]
    adjusted = holm_adjusted(pd.Series([one.amended_p for one in found]))
    return [replace(one, adjusted=p, amended=p) for one, p in zip(found, adjusted, strict=True)]
