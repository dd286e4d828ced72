"""What the second study found, for a page: tables of one data set or of all, sentences of words, and their figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbutils.data.datasets import TITLES, load_dataset
from nbutils.drawing import palette
from nbutils.drawing.display import (
    INK,
    Html,
    callout,
    figure_style,
    fold,
    format_number,
    in_figure,
    interval_text,
    say,
    show,
    show_table,
)
from nbutils.drawing.points import Axis, Plot, Point, show_points
from nbutils.evaluation.words import Estimate
from nbutils.pages.figures import CONDITION_NAMES
from nbutils.second.answers import Answer, course, joint_answers, read_answers, sound, values_of
from nbutils.second.candidates import CANDIDATES, FAMILIES, NEEDS
from nbutils.second.leaderboard import BOARD, ONE_NUMBER, refutations, zoo_axes
from nbutils.second.networks import ARCHITECTURES, MLP, Tables, read_tables
from nbutils.second.questions import Question, rules_digest
from nbutils.second.replication import (
    OTHERS,
    RULES_COMMIT,
    RULES_TIME,
    SECOND,
    committed_second,
    split_study,
    study_name,
)
from nbutils.second.tasks import choose_epoch, tell_random_labels, tell_wrong_labels
from nbutils.second.zoo import zoo_digest
from nbutils.study.results import CONDITIONS
from nbutils.support.checks import shown
from nbutils.support.files import project_folder

__all__ = [
    "Found",
    "asked_again",
    "capital",
    "course_figure",
    "decisions",
    "digits_of",
    "excess_figure",
    "forest_figure",
    "memorising_rho",
    "open_all",
    "open_kind",
    "open_one",
    "questions_figure",
    "refuted",
    "settling_figure",
    "show_best",
    "show_findings",
    "show_memorising",
    "show_settling",
    "show_words",
    "show_worth",
    "spread_table",
    "worth_figure",
    "worth_plot",
    "zoo_figure",
]

WIDTH = 7.6  # inches
COLOURS = dict(zip(FAMILIES, palette.FAMILIES, strict=True))
WORD_COLOURS = {"supported": "supported", "contradicted": "refuted", "no association": "not supported"}
OURS = {
    "modularity": "modularity Q",
    "active_entropy": "binned entropy per active neuron",
    "block_entropy": "entropy of blocks of six",
}
LETTERS = dict(zip(OURS, "QEB", strict=True))  # in a figure full of dots
DECISIVE = ("mean", "rise", "rank", "added")
HYPOTHESES = {"H1": "communities", "H2": "modularity", "H3": "entropy"}


def digits_of(question: Question) -> int:
    """Decimals of an estimate: a gain of variance counts from 0.02 on, everything else from a tenth or so."""
    return 3 if question.statistic == "added" else 2


def capital(text: str) -> str:
    """A sentence with a capital at its beginning.

    Examples:
        >>> capital("by training: Q rises")
        'By training: Q rises'
    """
    return text[:1].upper() + text[1:]


def _kind(question: str) -> str:
    """What a question is about, without its hypothesis."""
    return question[len("H1") :].strip()


@dataclass(frozen=True)
class Found:
    """What the second study found on one data set.

    Attributes:
        dataset: its name; with that of the architecture where it is no fully connected network.
        title: what a page calls it.
        about: what the networks are.
        tables: see :class:`nbutils.second.networks.Tables`.
        answers: by name of the question, p values adjusted together with those of other data sets where there are any.
        board: the leaderboard, see :func:`nbutils.second.leaderboard.leaderboard`; without rows where there is no zoo.
    """

    dataset: str
    title: str
    about: str
    tables: Tables
    answers: Mapping[str, Answer]
    board: pd.DataFrame

    @property
    def designs(self) -> list[str]:
        """Designs of which there are networks."""
        return list(dict.fromkeys(word for words in self.tables.networks["designs"] for word in words.split("+")))

    @property
    def source(self) -> str:
        """Where the numbers come from, for captions and the end of a page."""
        rows = self.tables.networks.sort_values("time")
        commits = ", ".join(dict.fromkeys(rows["commit"]))
        first, last = (time[:16].replace("T", " ") for time in rows["time"].iloc[[0, -1]])
        return (
            f"{len(rows):,} networks, trained from {first} to {last} UTC, at commit {commits} in this order; "
            f"rules `{rules_digest()}`, fixed {RULES_TIME} in commit {RULES_COMMIT}; zoos `{zoo_digest()}`"
        )

    def finding(self, hypothesis: str, statistics: Sequence[str] = (), *, intervals: bool = False) -> str:
        """The answers to one hypothesis in a sentence made of their words, with their estimates.

        Args:
            hypothesis: "H1", "H2" or "H3".
            statistics: only of questions with these; none takes all.
            intervals: whether the estimates have theirs.
        """

        def number(of: Estimate, digits: int) -> str:
            short = f"({format_number(of.value, digits)})"
            return interval_text(of.value, of.low, of.high, digits) if intervals else short

        parts = [
            f"{_kind(answer.question.name)} **{answer.told}** {number(answer.estimate, digits_of(answer.question))}"
            for answer in self.answers.values()
            if answer.question.hypothesis == hypothesis and (answer.question.statistic in statistics or not statistics)
        ]
        return "; ".join(parts) + "." if parts else "not asked, for want of networks."

    def show_finding(self) -> Html:
        """The boxes that a page opens with: what decides, hypothesis by hypothesis."""
        boxes = []
        for hypothesis, about in HYPOTHESES.items():
            decides = [a for a in self.answers.values() if a.question.hypothesis == hypothesis]
            decides = [a for a in decides if a.question.statistic in DECISIVE]
            words = [a.word for a in decides if a.question.statistic in ("mean", "rank")]
            few = "" if all(a.enough for a in decides) else " There are too few networks for words."
            text = capital(self.finding(hypothesis, DECISIVE, intervals=True)) + few
            boxes.append(callout(f"{hypothesis} {about}", text, WORD_COLOURS.get(words[0] if words else "", "")))
        return Html("".join(box.text for box in boxes), "\n".join(map(repr, boxes)))

    def show_networks(self) -> Html:
        """How many networks of every design there are, how many of them are sound, and how well they perform."""
        rows = []
        for design in self.designs:
            good, left_out = sound(self.tables, design)
            failed = int((self.tables.networks["status"] == "failed")[self._of(design)].sum())
            low, high = (good["accuracy"].min(), good["accuracy"].max()) if len(good) else (np.nan, np.nan)
            rows.append((design, len(good) + left_out, left_out - failed, failed, low, high, good["dead"].median()))
        names = [
            "design",
            "networks",
            "degenerate",
            "failed",
            "lowest accuracy",
            "highest",
            "dead neurons (median share)",
        ]
        caption = f"{self.title}: {self.about}. Degenerate and failed ones decide nothing."
        return show_table(pd.DataFrame(rows, columns=names), caption, digits=2)

    def _of(self, design: str) -> pd.Series:
        return self.tables.networks["designs"].str.split("+").map(lambda words: design in words)

    def show_board(self, top: int = 0) -> Html:
        """The leaderboard: every measurable measure of this data set, the strongest association first.

        Args:
            top: how many to show, and with them those of `OURS`; 0 for all.
        """
        columns = {"called": "measure", "rho": "ρ", "low": "from", "high": "to", "adjusted": "p, adjusted"}
        columns |= {"granulated": "along axes", "gain": "gain", "detects": "detects", "reliability": "reliability"}
        best = self.board[self.board["measurable"]].reset_index(drop=True)
        kept = best[(best.index < top) | best["measure"].isin(OURS)] if top else best
        shown = kept[list(columns)].rename(columns=columns)
        shown.insert(0, "place", kept.index + 1)
        caption = f"Measures of {self.title}, {len(shown)} of the {len(best)} that can be measured."
        return show_table(shown, caption, digits=2, sortable=True)

    def show_answers(self, hypothesis: str) -> Html:
        """All answers to one hypothesis."""
        rows = [
            (
                _kind(answer.question.name),
                answer.told,
                interval_text(
                    *(answer.estimate.value, answer.estimate.low, answer.estimate.high), digits_of(answer.question)
                ),
                f"{answer.question.threshold:g}",
                format_number(answer.adjusted),
                answer.networks,
                "–" if answer.reliability is None else format_number(answer.reliability.whole, 3),
                "confirmatory" if answer.confirmatory else "exploratory",
            )
            for answer in self.answers.values()
            if answer.question.hypothesis == hypothesis
        ]
        names = ["question", "word", "estimate (95 %)", "threshold", "p, adjusted", "networks", "reliability", "data"]
        caption = f"Answers to {hypothesis} on {self.title}."
        ranges = any("statistic" in question for question, *_ in rows)
        caption += " Of the paper's statistic: mean and range over runs." if ranges else ""
        return show_table(pd.DataFrame(rows, columns=names), caption)


def spread_table(studies: Sequence[Found]) -> pd.DataFrame:
    """Mean and, in brackets, deviation of some measures over the zoo of each study that has one; a column each."""
    names = [*OURS, "excess", "remainder", "mean_activity", "dead_share"]
    called = {name: words for one in CANDIDATES for name, words in one.columns.items()}
    columns = {"measure": [called[name] for name in names]}
    for one in (one for one in studies if len(one.board)):
        networks, _ = sound(one.tables, "small", "true")
        values = values_of(one.tables, networks, names)
        columns[one.title] = [f"{values[name].mean():.2f} ({values[name].std():.2f})" for name in names]
    return pd.DataFrame(columns)


def open_one(dataset: str, tables: str = "", architecture: str = MLP) -> Found:
    """What is known of one data set.

    Args:
        dataset: its name.
        tables: folder with its tables; empty for the committed ones.
        architecture: see :func:`nbutils.second.networks.networks_of`.

    Raises:
        FileNotFoundError: there are none; says how to make them.
    """
    if tables:
        return _found(dataset, architecture, Path(tables), [Path(tables)])
    return open_all([study_name(dataset, architecture)], SECOND if architecture == MLP else OTHERS)[0]


def open_all(datasets: Sequence[str] = (), where: Path = SECOND) -> list[Found]:
    """What is known of data sets whose tables are committed; p values are adjusted over all of them, wherever they are.

    Args:
        datasets: their names; none takes all that are there.
        where: `SECOND`, or `OTHERS` for other architectures, whose names end in the architecture.

    Raises:
        ValueError: the tables of a data set are not committed; lists those that are.
    """
    root = project_folder(SECOND)
    every = [root / place / name for place in (SECOND, OTHERS) for name in committed_second(root, place)]
    there = committed_second(root, where)
    if unknown := [name for name in datasets if name not in there]:
        known = ", ".join(there) or "none"
        raise ValueError(f"tables of the second study are committed of {known}, received {shown(unknown[0])}")
    named = {name: split_study(name) if where == OTHERS else (name, MLP) for name in datasets or there}
    return [_found(*parts, root / where / name, every) for name, parts in named.items()]


def asked_again(dataset: str, hypothesis: str) -> str:
    """What the second study says about a hypothesis on a data set, for pages of the first; empty where it has nothing.

    Args:
        dataset: its name.
        hypothesis: "H1", "H2" or "H3".
    """
    if dataset not in committed_second(project_folder(SECOND)):
        return ""
    told = open_one(dataset).finding(hypothesis, DECISIVE)
    return f" The second study: {told}"


def open_kind(kind: str) -> list[Found]:
    """What is known of all architectures of a kind whose tables are committed, "convolutional" or "transformer"."""
    names = [
        name
        for name in committed_second(project_folder(SECOND), OTHERS)
        if ARCHITECTURES[split_study(name)[1]].kind == kind
    ]
    return open_all(names, OTHERS) if names else []


def _found(dataset: str, architecture: str, folder: Path, every: Sequence[Path]) -> Found:
    tables = read_tables(folder)
    answers = joint_answers([read_answers(path) for path in every])
    name, title = study_name(dataset, architecture), TITLES.get(dataset) or load_dataset(dataset).title
    own = {answer.question.name: answer for answer in answers if answer.dataset == name}
    board = pd.read_csv(folder / BOARD, float_precision="round_trip") if (folder / BOARD).is_file() else pd.DataFrame()
    if architecture == MLP:
        return Found(name, title, "fully connected ReLU networks on standardised inputs", tables, own, board)
    kind = ARCHITECTURES[architecture]
    return Found(name, f"{kind.title}, {title}", kind.about, tables, own, board)


def excess_figure(found: Found) -> Figure:
    """The two parts of what is modular beyond chance, before and after training, a dot for each network."""
    rows = found.tables.measures
    networks, _ = sound(found.tables, "runs", "true")
    rows = rows[(rows["part"] == "whole") & rows["run"].isin(networks["run"])]
    parts = {"excess": "Q beyond chance", "class_part": "class preference", "remainder": "remainder"}
    with figure_style():
        fig, ax = plt.subplots(figsize=(WIDTH, 2.6))
        for place, name in enumerate(parts):
            for trained, shift, colour in ((False, -0.13, palette.UNTRAINED), (True, 0.13, palette.SUBJECT)):
                values = rows.loc[(rows["measure"] == name) & ((rows["epoch"] > 0) == trained), "value"]
                jitter = np.linspace(-0.06, 0.06, max(len(values), 1))[: len(values)]
                label = ("trained" if trained else "untrained") if place == 0 else None
                ax.plot(place + shift + jitter, values, "o", ms=4, alpha=0.7, color=colour, label=label)
        ax.axhline(0, color=INK, lw=0.8)
        ax.set(xticks=range(3), xticklabels=list(parts.values()), ylabel="modularity")
        ax.legend(loc="upper right")
        plt.close(fig)
    return fig


def course_figure(found: Found, networks: pd.DataFrame) -> Figure:
    """Modularity, both entropies and training accuracy over the epochs of some networks."""
    panels = {**OURS, "train_accuracy": "training accuracy"}
    with figure_style():
        fig, axes = plt.subplots(1, 4, figsize=(WIDTH, 2.4))
        for ax, (name, called) in zip(axes, panels.items(), strict=True):
            values = course(found.tables, networks, name)
            epochs = np.arange(values.shape[1])
            ax.plot(epochs, values.T, color=palette.SUBJECT, lw=0.7, alpha=0.5)
            ax.plot(epochs, np.nanmean(values, axis=0), color=palette.SUBJECT, lw=2)
            ax.set(xlabel="epoch", title=called.replace(" per ", "\nper ").replace(" of ", "\nof "))
            ax.xaxis.get_major_locator().set_params(integer=True)
        plt.close(fig)
    return fig


def settling_figure(found: Found) -> Figure:
    """How far communities of an epoch agree with those of the one before, by label condition; a line is a network."""
    with figure_style():
        there = {labels: sound(found.tables, "runs", labels)[0] for labels in CONDITIONS}
        there = {labels: networks for labels, networks in there.items() if len(networks)}
        fig, axes = plt.subplots(1, len(there), figsize=(WIDTH, 2.4), sharey=True, squeeze=False)
        for ax, (labels, networks) in zip(axes[0], there.items(), strict=True):
            values = course(found.tables, networks, "agreement")
            epochs = np.arange(1, values.shape[1] + 1)
            ax.plot(epochs, values.T, color=palette.SUBJECT, lw=0.7, alpha=0.6)
            searches = course(found.tables, networks, "searches")
            for epoch, own in zip((0, len(epochs)), searches.T, strict=False):
                ax.plot(np.full(len(own), epoch), own, "s", ms=3.5, color=palette.GREY)
            ax.set(xlabel="epoch", title=CONDITION_NAMES[labels])
            ax.xaxis.get_major_locator().set_params(integer=True)
        axes[0, 0].set_ylabel("agreement (AMI)")
        plt.close(fig)
    return fig


def show_settling(found: Found) -> Html:
    """How far communities of successive epochs agree: mean agreement by label condition, and every network's curve."""
    rows = []
    for labels in CONDITIONS:
        networks, _ = sound(found.tables, "runs", labels)
        step, again = (course(found.tables, networks, name) for name in ("agreement", "searches"))
        ends = step[:, :1], step[:, -1:], again[:, -1:]
        rows.append((CONDITION_NAMES[labels], len(networks), *(np.mean(x) if x.size else np.nan for x in ends)))
    means = pd.DataFrame(rows, columns=["labels", "networks", "first step", "last step", "two searches at the end"])
    if means.dropna().empty:
        return say("These tables do not follow communities from epoch to epoch.")
    figure = show(
        settling_figure(found),
        f"Communities of successive epochs agree by {means.loc[0, 'last step']:.2f} (adjusted mutual information) "
        "at the end with true labels; grey: two searches of one graph.",
        "Curves over epochs, a panel for each kind of labels; grey squares at both ends.",
    )
    table = show_table(means, "Mean agreement over networks.", digits=2)
    return Html(table.text + figure.text, f"{table!r}\n{figure!r}")


def memorising_rho(found: Found) -> pd.DataFrame:
    """Rank correlation of each measure of `OURS` with training accuracy over epochs, by network that memorises."""
    networks, _ = sound(found.tables, "memorising")
    learned = pd.DataFrame(course(found.tables, networks, "train_accuracy", first=1).T)
    each = {name: pd.DataFrame(course(found.tables, networks, name, first=1).T) for name in OURS}
    return pd.DataFrame({name: values.corrwith(learned, method="spearman") for name, values in each.items()})


def show_memorising(found: Found) -> Html:
    """What happens while random labels are memorised: curves, and each measure's correlation within networks."""
    networks, _ = sound(found.tables, "memorising")
    if networks.empty:
        return say("These tables hold no networks that memorise random labels.")
    rho = memorising_rho(found)
    rows = [(called, *(rho[name].agg(how) for how in ("mean", "min", "max"))) for name, called in OURS.items()]
    epochs = networks["last_epoch"]
    least, most = int(epochs.min()), int(epochs.max())
    span = f"{least} epochs" if least == most else f"{least} to {most} epochs"
    caption = f"{len(networks)} networks that learn random labels, for {span}"
    figure = show(
        course_figure(found, networks),
        f"{caption}: curves over the epochs. Same tables.",
        "Four panels of curves over epochs: modularity, two entropies, training accuracy.",
    )
    columns = ["measure", "ρ with training accuracy, mean", "lowest", "highest"]
    table = show_table(
        pd.DataFrame(rows, columns=columns), "Within networks that learn random labels, trained epochs.", digits=2
    )
    return Html(figure.text + table.text, f"{figure!r}\n{table!r}")


def zoo_figure(found: Found) -> Figure:
    """Performance over modularity and both entropies: a dot per network, shaded by the number of training images."""
    networks, _ = sound(found.tables, "small", "true")
    values = values_of(found.tables, networks, list(OURS)).set_axis(networks.index)
    images = zoo_axes(networks).get("examples", pd.Series(0, networks.index))
    shades = dict(zip(sorted(images.unique()), palette.SIZES, strict=False))
    with figure_style():
        fig, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.9), sharey=True)
        for ax, (name, called) in zip(axes, OURS.items(), strict=True):
            for number, colour in shades.items():
                own = images == number
                label = f"{int(number):,} training images"
                ax.plot(
                    values.loc[own, name],
                    networks.loc[own, "accuracy"],
                    "o",
                    ms=3,
                    alpha=0.75,
                    color=colour,
                    label=label,
                )
            ax.set(xlabel=called)
        axes[0].set_ylabel("accuracy on other test images")
        handles, labels = axes[0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=3)
        plt.close(fig)
    return fig


def worth_figure(boards: Sequence[Found]) -> Figure:
    """Every measure as a dot: how well it detects wrong labels against how well it ranks networks by performance.

    Args:
        boards: data sets, whose values are averaged.
    """
    every = pd.concat([found.board.assign(dataset=found.dataset) for found in boards])
    every["strength"] = every["rho"].abs()
    mean = every.groupby(["measure", "called", "family"])[["strength", "detects"]].mean().dropna().reset_index()
    with figure_style():
        fig, ax = plt.subplots(figsize=(WIDTH, 4.6))
        for family, rows in mean.groupby("family", sort=False):
            ax.plot(rows["strength"], rows["detects"], "o", ms=5, color=COLOURS[family], label=FAMILIES[family])
        named = mean[mean["measure"].isin([*OURS, "train_loss", "confidence", "mutual_information", "linear_probe"])]
        ends = dict.fromkeys((True, False), -np.inf)  # how far names reach so far, turned ones and level ones
        for row in named.sort_values("strength", ascending=False).itertuples():
            turned = row.detects > 0.9
            place = (280 * row.detects - 0.58 * 410 * row.strength) if turned else 280 * row.detects  # points
            ends[turned] = max(place, ends[turned] + 12)  # a line of names begins above the one before
            style = {"fontsize": 8.5, "weight": "bold" if row.measure in OURS else "normal"}
            style |= {"rotation": 30, "rotation_mode": "anchor"} if turned else {}
            text, above = in_figure(row.called.removesuffix(" (log)")), (4, 5 + ends[turned] - place)
            ax.annotate(text, (row.strength, row.detects), above, textcoords="offset points", **style)
        ax.set(
            xlabel="predicts performance: |ρ| over clean networks", ylabel="detects wrong labels: area under the curve"
        )
        ax.set(xlim=(0, 1.02), ylim=(0.45, 1.2), yticks=np.arange(0.5, 1.01, 0.1))
        fig.legend(loc="outside lower center", ncols=2, fontsize=8.5)
        plt.close(fig)
    return fig


def worth_plot(boards: Sequence[Found]) -> Plot:
    """The dots of :func:`worth_figure` for measures that are measurable; each says its place, values and intervals.

    Args:
        boards: data sets, whose values are averaged. Places are by the size of mean rho, as on the leaderboard.
    """
    every = pd.concat([found.board.assign(title=found.title) for found in boards])
    every = every[every["measurable"]]
    mean = every.groupby(["measure", "called", "family"])[["rho", "detects"]].mean().reset_index()
    mean = mean.assign(strength=mean["rho"].abs()).sort_values("strength", ascending=False, ignore_index=True)
    intervals = {
        name: "; ".join(f"{row.title} {interval_text(row.rho, row.low, row.high)}" for row in own.itertuples())
        for name, own in every.groupby("measure", sort=False)
    }
    points = [
        Point(
            row.strength,
            row.detects,
            f"{row.called}: place {row.Index + 1} of {len(mean)}; mean ρ {format_number(row.rho, 2)}; wrong labels "
            f"{format_number(row.detects, 2)}. ρ by data set: {intervals[row.measure]}.",
            COLOURS[row.family],
        )
        for row in mean.dropna(subset=["strength", "detects"]).itertuples()
    ]
    ours = mean[mean["measure"].isin(LETTERS)].dropna(subset="detects")
    names = tuple((row.strength, row.detects, f"**{LETTERS[row.measure]}**") for row in ours.itertuples())
    legend = tuple((COLOURS[family], words) for family, words in FAMILIES.items() if family in set(mean["family"]))
    x = Axis("predicts performance: size of the mean ρ over clean networks", 0, 1, (0, 0.2, 0.4, 0.6, 0.8, 1))
    y = Axis("detects wrong labels: area under the curve", 0.45, 1.05, (0.5, 0.6, 0.7, 0.8, 0.9, 1))
    least, most = (mean[["detects", "strength"]].agg(end).map("{:.2f}".format) for end in ("min", "max"))
    alt = (
        f"{len(points)} measures, means over {len(boards)} data sets: area under the curve for wrong labels, "
        f"{least.detects} to {most.detects}, over the size of the rank correlation with accuracy, "
        f"{least.strength} to {most.strength}."
    )
    return Plot(tuple(points), x, y, alt, names, legend=legend, size=9)


NOTICED = 0.9  # area under the curve from which on wrong labels count as noticed


def noticing(boards: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Which measures notice wrong labels, by what pages call them, and which of all do so in one direction everywhere.

    Args:
        boards: rows of all leaderboards, only of measurable measures.

    Returns:
        (whether the mean area is `NOTICED` or more, whether the side that means wrong is the same on all data sets).
    """
    rows = boards.dropna(subset="noise_rho").groupby("called")
    return rows["detects"].mean() >= NOTICED, rows["noise_rho"].agg(lambda rho: rho.gt(0).nunique()) == 1


def show_worth(boards: Sequence[Found]) -> Html:
    """The figure of :func:`worth_plot` with its caption."""
    plot = worth_plot(boards)
    clear, steady = noticing(pd.concat([one.board[one.board["measurable"]] for one in boards]))
    letters = [f"**{LETTERS[name]}** {called}" for name, called in OURS.items()]
    caption = (
        f"{clear.sum()} of {len(plot.points)} measures detect wrong labels with an area of {NOTICED} or more; with "
        f"{(clear & ~steady).sum()} of them the side that means wrong is not the same on every data set. Means over "
        f"data sets; {', '.join(letters)}. Source: the tables of all data sets."
    )
    return show_points({(): plot}, caption)


def _asked(studies: Sequence[Found], hypothesis: str) -> list[str]:
    """Names of the questions of a hypothesis, as far as they were asked of these data sets."""
    return list(dict.fromkeys(name for one in studies for name in one.answers if name.startswith(hypothesis)))


def _is_told(answer: Answer) -> bool:
    """Whether there is a number to show."""
    return bool(np.isfinite(answer.estimate.value))


def questions_figure(studies: Sequence[Found], hypothesis: str) -> Figure:
    """Every question of a hypothesis: a panel each, with estimate and interval of every data set.

    Args:
        studies: data sets; those without any number have no row.
        hypothesis: "H1", "H2" or "H3".
    """
    studies = [one for one in studies if any(_is_told(one.answers[name]) for name in _asked([one], hypothesis))]
    asked = _asked(studies, hypothesis)
    across = min(3, len(asked))
    down = -(-len(asked) // across)
    with figure_style():
        size = (WIDTH, down * (0.24 * len(studies) + 1.25))
        fig, axes = plt.subplots(down, across, figsize=size, sharey=True, squeeze=False)
        for ax, name in zip(axes.flat, asked, strict=False):
            for place, one in enumerate(studies):
                if (answer := one.answers.get(name)) is not None and _is_told(answer):
                    colour = palette.VERDICTS[WORD_COLOURS.get(answer.word, "inconclusive")]
                    ax.hlines(place, answer.estimate.low, answer.estimate.high, color=colour, lw=1.6)
                    ax.plot(answer.estimate.value, place, "o" if answer.confirmatory else "D", ms=4.5, color=colour)
            question = next(one.answers[name].question for one in studies if name in one.answers)
            if question.threshold:
                ax.axvspan(-question.threshold, question.threshold, color=palette.GREY, alpha=0.14, lw=0)
            ax.axvline(0, color=INK, lw=0.8)
            ax.set(yticks=range(len(studies)), yticklabels=[one.title for one in studies])
            ax.set_title(_kind(name).replace(", ", ",\n"), fontsize=9.5)
            ax.margins(y=0.5 / max(len(studies), 1))
        for ax in list(axes.flat)[len(asked) :]:
            ax.set_axis_off()
        axes[0, 0].invert_yaxis()
        plt.close(fig)
    return fig


def show_words(studies: Sequence[Found], hypothesis: str) -> Html:
    """The word of every question of a hypothesis on every data set; confirmatory ones are marked."""
    rows = []
    for name in _asked(studies, hypothesis):
        told = [one.answers.get(name) for one in studies]
        cells = ["–" if a is None else a.told.replace(a.word, a.word + "\u00a0●" * a.confirmatory, 1) for a in told]
        rows.append([_kind(name), *cells])
    columns = ["question", *(one.title for one in studies)]
    marked = any("●" in cell for row in rows for cell in row)
    caption = f"Words of {hypothesis}; ● confirmatory." if marked else f"Words of {hypothesis}, all exploratory."
    return show_table(pd.DataFrame(rows, columns=columns), caption)


BESIDE = ("class_part", "remainder", "mutual_information", "confidence", "linear_probe", "train_loss", "effective_rank")


def forest_figure(boards: Sequence[Found]) -> Figure:
    """Spearman's rho with accuracy over clean networks and its interval: a row per measure, a colour per data set."""
    names = [*OURS, *BESIDE]
    called = {row.measure: row.called for found in boards for row in found.board.itertuples()}
    with figure_style():
        fig, ax = plt.subplots(figsize=(WIDTH, 0.42 * len(names) + 1))
        for number, found in enumerate(boards):
            colour = palette.DATASETS.get(found.dataset, palette.GREY)
            board = found.board.set_index("measure").reindex(names)
            place = np.arange(len(names)) + 0.14 * (number - (len(boards) - 1) / 2)
            ax.hlines(place, board["low"], board["high"], color=colour, lw=1.4)
            ax.plot(board["rho"], place, "o", ms=4, color=colour, label=found.title)
        ax.axvline(0, color=INK, lw=0.8)
        ax.set(yticks=range(len(names)), yticklabels=[called.get(name, name) for name in names], xlim=(-1, 1))
        ax.set(xlabel="Spearman's ρ with accuracy on other test images")
        ax.invert_yaxis()
        fig.legend(loc="outside lower center", ncols=4)
        plt.close(fig)
    return fig


AIMS = {
    "predict performance": "rho",
    "the same, with as many training images": "images_fixed",
    "detect wrong labels": "detects",
}


def decisions(boards: pd.DataFrame, least: float) -> pd.DataFrame:
    """The best measure for an aim and for what one has at hand.

    Args:
        boards: rows of all leaderboards, only of measurable measures.
        least: size of rho below which nothing is recommended.

    Returns:
        One row per aim and need: the measure that is strongest in the mean over data sets among those whose interval
        (where the number of training images is held fixed, whose rho) leaves out chance on the same side everywhere,
        with its strength and cost, or that there is none.
    """
    rows, sides = [], {"images_fixed": np.sign(boards["images_fixed"])}
    sides["rho"] = np.sign(boards["low"]) * (np.sign(boards["low"]) == np.sign(boards["high"]))
    sides["detects"] = (boards["detects_low"] > 0.5) * np.sign(boards["noise_rho"])
    for aim, column in AIMS.items():
        by_rho, side = column != "detects", sides[column]
        judged = boards.assign(side=side, strength=boards[column].abs()).dropna(subset=column)
        for need, about in NEEDS.items():
            # Who has labelled images can do without labels; who has other images need not have those of training.
            known = ["images", "labels"] if need == "labels" else [need]
            groups = judged[judged["needs"].isin(known)].groupby("called")
            steady = groups["side"].sum().abs() == judged["dataset"].nunique()
            strength = groups["strength"].mean()[steady]
            strength = strength[strength >= (least if by_rho else 0.5)]
            best = strength.idxmax() if len(strength) else "none"
            seconds = groups["seconds"].median().get(best, np.nan)
            rows.append((aim, about, best, strength.get(best, np.nan), seconds))
    return pd.DataFrame(rows, columns=["aim", "what you have", "use", "|ρ| or area, mean", "seconds"])


def memory() -> pd.Series:
    """MiB that each measure took on one network, by what pages call it, as `python -m benchmarks.costs` wrote them.

    NaN for a measure that was added since.
    """
    told = json.loads((project_folder(SECOND) / SECOND / "memory.json").read_text("utf-8"))["mebibytes"]
    return pd.Series({title: told.get(one.name, np.nan) for one in CANDIDATES for title in one.columns.values()})


def refuted(studies: Sequence[Found]) -> pd.DataFrame:
    """How far rho moves when one thing is changed that ought not to matter.

    Args:
        studies: data sets with a zoo.

    Returns:
        One row per measure of `OURS` and `BESIDE` and data set: rho on the board; its mean over networks with one
        number of training images at a time; the smallest and the largest under any change of the networks or the probe,
        the change that moves it most, and the largest in size by luck.
    """
    rows = []
    for found in studies:
        called = dict(zip(found.board["measure"], found.board["called"], strict=True))
        names = [name for name in (*OURS, *BESIDE) if name in called]
        table = refutations(found.tables, names).set_index("change")
        luck, tried = table.iloc[-1], table.iloc[:-1].drop(columns="networks")
        for name in names:
            own = tried[name].dropna()
            moved = (own - own.iloc[0]).abs().idxmax()
            fixed = own[own.index.str.endswith(ONE_NUMBER)].mean()
            ends = own.min(), own.max()
            rows.append((called[name], found.title, own.iloc[0], fixed, *ends, moved, luck[name]))
    names = ["measure", "data set", "ρ", "images fixed", "smallest", "largest", "moved most by", "by luck"]
    return pd.DataFrame(rows, columns=names)


def show_best(studies: Sequence[Found]) -> Html:
    """The box that the leaderboard opens with: the strongest measures, and where those of H2 and H3 stand."""
    boards = pd.concat([one.board[one.board["measurable"]] for one in studies])
    mean = boards.groupby("called")[["rho", "detects"]].mean()
    order = mean["rho"].abs().sort_values(ascending=False)
    best = "; ".join(f"{name} ({format_number(mean.loc[name, 'rho'], 2)})" for name in order.index[:3])
    ours = [name for name in OURS.values() if name in order.index]
    places = ", ".join(f"{name} {1 + order.index.get_loc(name)}" for name in ours)
    noise = ", ".join(f"{name} {format_number(mean.loc[name, 'detects'], 2)}" for name in ours)
    networks = sum(len(one.tables.networks) for one in studies)
    text = (
        f"Strongest with performance: {best}. Places of ours among {len(order)}: **{places}**. As detectors of wrong "
        f"labels (area under the curve): {noise}. {', '.join(one.title for one in studies)}; {networks:,} networks; "
        f"rules `{rules_digest()}`, fixed in commit {RULES_COMMIT}; zoos `{zoo_digest()}`."
    )
    return callout("What predicts performance, and what detects wrong labels", text)


def show_findings(studies: Sequence[Found]) -> Html:
    """The boxes that a page on some studies opens with: one each, with what decides, hypothesis by hypothesis."""
    boxes = []
    for one in studies:
        lines = [f"**{name}, {about}:** {one.finding(name, DECISIVE)}" for name, about in HYPOTHESES.items()]
        boxes.append(callout(f"{one.title}: what the networks answer", " ".join(lines)))
    return Html("".join(box.text for box in boxes), "\n".join(map(repr, boxes)))


def show_tasks(studies: Sequence[Found], boards: pd.DataFrame) -> tuple[Html, str]:
    """The practical tasks of `nbutils.second.tasks`: their tables, folded, and what is best in a sentence.

    Args:
        studies: data sets with runs and a grid of label noise.
        boards: rows of all leaderboards, with `dataset`.
    """

    def told(rows: pd.DataFrame, columns: Sequence[str], digits: int = 2) -> list[str]:
        return [interval_text(*one, digits) for one in rows[list(columns)].to_numpy()]

    named, kind = {one.title: one.tables for one in studies}, ["measure", "direction"]
    lost, early, wrong = choose_epoch(named), tell_random_labels(named), tell_wrong_labels(boards)
    lost = lost.assign(mean=told(lost, ["mean", "low", "high"], 4)).drop(columns=["low", "high"])
    by_epoch = early.pivot_table("area", kind, "epoch", sort=False).rename(columns="epoch {}".format)
    fifth = early[early["epoch"] == 5].reset_index(drop=True)
    by_epoch["data sets"] = fifth.groupby(kind)["area"].count()
    areas = fifth.assign(area=told(fifth, ["area", "low", "high"])).pivot(index=kind, columns="dataset", values="area")
    beside = wrong[(wrong.index < 5) | wrong["measure"].isin([*OURS, "train_loss", "train_accuracy"])]
    beside = beside.assign(worst=told(beside, ["worst", "low", "high"]))[["called", "datasets", "area", "worst"]]
    tables = (
        show_table(lost, "Test accuracy lost by choosing an epoch; mean with interval.", digits=4),
        show_table(
            by_epoch.reset_index(), "Random labels told early: area, mean over data sets where it is defined.", 2
        ),
        show_table(areas.reset_index(), "The same after five epochs, ten networks of either kind."),
        show_table(beside, "Wrong labels told: the best five, ours, and the usual.", digits=2),
    )
    known = fifth.groupby("measure")["area"].agg(["mean", "count"])
    mean = known.loc[known["count"] == len(named), "mean"].sort_values(ascending=False)
    q = known.loc["modularity Q"]
    few = f" on {q['count']:.0f} of {len(named)} data sets, for on the others runs with random labels lose most neurons"
    some = few if q["count"] < len(named) else ""
    best = "" if wrong.empty else f" *Wrong labels:* {wrong['called'][0]} ({wrong['area'][0]:.2f}); modularity Q "
    best += f"{wrong.set_index('measure')['area'].get('modularity', np.nan):.2f}." if best else ""
    sentence = (
        f"*Epoch:* best is {lost['way'][0]}, which loses {lost['mean'][0]}. *Random labels, after five epochs:* "
        f"{mean.index[0]} ({mean.iloc[0]:.2f}); modularity Q {q['mean']:.2f}{some}.{best}"
    )
    return fold("What each task is done with, and how well", *tables), sentence
