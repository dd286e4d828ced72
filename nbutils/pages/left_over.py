"""What is left over within classes, for pages: the committed table, a figure, and a table of answers."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from nbutils.drawing.display import Html, format_number, interval_text, show, show_table
from nbutils.experiments.designs import TABLES
from nbutils.experiments.figures import left_figure
from nbutils.experiments.left_over import LEFT_QUESTIONS, RUNS, RUNS_ON, ZOOS_ON, left_answers, left_digest, left_pairs
from nbutils.pages.answering import Found, digits_of
from nbutils.second.answers import Answer
from nbutils.study.cases import read_cases
from nbutils.support.files import project_folder

__all__ = ["open_left", "show_left", "show_left_answers"]


def open_left(studies: Sequence[Found]) -> tuple[pd.DataFrame, list[Answer]]:
    """The committed table of what is left over within classes, and what it answers.

    Args:
        studies: what the second study found, data set by data set.

    Returns:
        (the table, answers on these data sets).
    """
    table = read_cases(project_folder(TABLES) / TABLES / "left-over.parquet")
    return table, left_answers(table, {one.dataset: one.tables for one in studies})


def show_left(table: pd.DataFrame, studies: Sequence[Found], answers: Sequence[Answer]) -> Html:
    """What is left over before and after training, and against accuracy over the networks of zoos.

    Args:
        table: of the experiment.
        studies: see :func:`open_left`.
        answers: likewise.
    """
    titles = {RUNS_ON[one.dataset]: one.title for one in studies if one.dataset in RUNS_ON}
    runs = table[(table["condition"] == RUNS) & table["dataset"].isin(list(titles))]
    runs = runs.assign(title=runs["dataset"].map(titles))
    ranks = {a.dataset: a.estimate.value for a in answers if a.question.statistic == "rank"}
    zoos = {one.title: left_pairs(table, one.dataset, one.tables) for one in studies if one.dataset in ranks}
    means = runs.groupby([runs["epoch"] > 0, "title"])["left"].mean()
    ends = {trained: f"{means[trained].min():.2f} to {means[trained].max():.2f}" for trained in (False, True)}
    told = "; ".join(f"{one.title} {format_number(ranks[one.dataset], 2)}" for one in studies if one.dataset in ranks)
    caption = f"Means before training {ends[False]}, after it {ends[True]}; the dashed line is the threshold. "
    agree = runs.groupby([runs["epoch"] > 0, "title"])["by_class"].mean()
    agree = [f"{agree[trained].min():.2f} to {agree[trained].max():.2f}" for trained in (False, True)]
    caption += f"AMI of its groups with those that prefer a class: {agree[0]}, then {agree[1]}. Of firing already "
    caption += f"shuffled, at most {runs['nothing'].abs().max():.2f} is left over. "
    caption += f"Rank correlation with accuracy in zoos: {told or 'none yet'}."
    waiting = [one.title for one in studies if one.dataset in ZOOS_ON and one.dataset not in ranks]
    caption += f" Not finished yet: {', '.join(waiting)}." if waiting else ""
    alt = f"Left: what is left over in networks of {len(titles)} data sets, before training and after it. "
    alt += f"Right: accuracy against it, {len(zoos)} zoos."
    return show(left_figure(runs, zoos, LEFT_QUESTIONS[0].threshold), caption, alt)


def show_left_answers(studies: Sequence[Found], answers: Sequence[Answer]) -> Html:
    """Every answer about what is left over, with its word.

    Args:
        studies: see :func:`open_left`.
        answers: likewise.
    """
    titles = {one.dataset: one.title for one in studies}
    rows = [
        {
            "asked": one.question.name[len("H1 ") :],
            "data set": titles[one.dataset],
            "networks": one.networks,
            "estimate": interval_text(one.estimate.value, one.estimate.low, one.estimate.high, digits_of(one.question)),
            "word": one.word,
        }
        for one in answers
    ]
    return show_table(pd.DataFrame(rows), f"Answers by the rules {left_digest()[:12]}.")
