"""The answer on the landing page and in the README: five sentences and a matrix of words, written by code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from nbutils.evaluation.words import WORDS
from nbutils.pages.answering import OURS, Found
from nbutils.support.display import format_number, in_markdown
from nbutils.support.files import replace_file

__all__ = ["PLACES", "answer_text", "write_answer"]

START, END = "<!-- answer: written by `make glance` -->", "<!-- end of the answer -->"
PLACES = (Path("README.md"), Path("book/intro.md"))
# Question -> heading of its column.
MATRIX = {
    "H1 beyond chance": "H1: beyond chance",
    "H1 beyond class preference": "H1: beyond classes",
    "H2 performance": "H2: performance",
    "H2 added": "H2: added",
    "H3 performance, binned entropy": "H3: binned entropy",
    "H3 performance, block entropy": "H3: block entropy",
}


def answer_text(found: Sequence[Found]) -> str:
    """Five plain sentences and the matrix in Markdown, markers included.

    Args:
        found: what the second study found, data set by data set; only those with a zoo are told of.
    """
    studies = [one for one in found if len(one.board)]
    if not studies:
        return "\n".join([START, "", "No data set has been studied yet.", "", END])
    return "\n".join([START, "", *_sentences(studies), "", *_matrix(studies), "", _source(studies), "", END])


SENTENCES = """\
1. **{headline_1}** On {names} the graph of a trained network is more modular than firing rates alone would make it,
   by {chance} ({chance_words}); once neurons that prefer the same true and predicted class are allowed for, {beyond}
   is left ({beyond_words}).
2. **{headline_2}** Among networks with clean labels and different settings, its rank correlation with accuracy is {q}
   ({q_words}).
3. **{headline_3}** For the paper's binned entropy that correlation is {binned} ({binned_words}), for the joint entropy
   of neurons {blocks} ({blocks_words}).
4. **{headline_4}** Modularity explains {added} more of the variance of performance than cheaper measures do
   ({added_words}); of all {count} measures the strongest is *{first}*, with a rank correlation of {strength}.
5. **{headline_5}** The area under the curve for "a quarter or more of the labels are wrong" is {noise} for modularity;
   {many} of {count} measures reach {noticed} or more."""
# Opening of each sentence: where all data sets say "supported", where none does, where some do.
HEADLINES = {
    "q": (
        "Modularity tells which network performs better.",
        "Modularity is nowhere shown to tell which network performs better.",
        "Modularity tells which network performs better on some data sets.",
    ),
    "entropy": (
        "Entropy falls as performance rises.",
        "Entropy is nowhere shown to fall as performance rises.",
        "One entropy or the other falls as performance rises on some data sets.",
    ),
    "added": (
        "Both add to cheaper measures.",
        "Neither adds anything to cheaper measures that matters.",
        "They add to cheaper measures on some data sets.",
    ),
}
NOTICED = 0.9  # area under the curve from which on wrong labels count as noticed


def _sentences(studies: Sequence[Found]) -> list[str]:
    boards = pd.concat([one.board[one.board["measurable"]] for one in studies])
    mean = boards.groupby("called")[["rho", "detects"]].mean()
    first, many = mean["rho"].abs().idxmax(), int((mean["detects"] >= NOTICED).sum())
    noise = mean["detects"].get(OURS["modularity"], float("nan"))
    asked = {
        "chance": "H1 beyond chance",
        "beyond": "H1 beyond class preference",
        "q": "H2 performance",
        "binned": "H3 performance, binned entropy",
        "blocks": "H3 performance, block entropy",
        "added": "H2 added",
    }
    filled = {name: _span(studies, question, 3 if name == "added" else 2) for name, question in asked.items()}
    filled |= {f"{name}_words": _words(studies, question) for name, question in asked.items()}
    filled |= {
        "names": _names([one for one in studies if asked["chance"] in one.answers]),
        "count": str(len(mean)),
        "first": first,
        "many": str(many),
    }
    filled |= {"strength": format_number(mean.loc[first, "rho"], 2), "noticed": str(NOTICED)}
    filled |= {"noise": format_number(noise, 2), **_headlines(studies, noise)}
    return [SENTENCES.format(**filled)]


def _headlines(studies: Sequence[Found], noise: float) -> dict[str, str]:
    """What every sentence opens with, as the amended words have it."""
    told = [answer for one in studies for answer in one.answers.values()]
    words = {name: [a.amended_word for a in told if a.question.name == name] for name in MATRIX}
    words["H3 added"] = [a.amended_word for a in told if a.question.name.startswith("H3 added")]
    chance, beyond, q, added, binned, blocks = (words[name] for name in MATRIX)

    def chosen(kind: str, found: Sequence[str]) -> str:
        count = found.count("supported")
        return HEADLINES[kind][0 if count == len(found) else 1 if not count else 2]

    classes = 0 < chance.count("supported") == len(chance) and "supported" not in beyond
    return {
        "headline_1": "Communities are there, and they are about classes." if classes else "Communities are there.",
        "headline_2": chosen("q", q),
        "headline_3": chosen("entropy", binned + blocks),
        "headline_4": chosen("added", added + words["H3 added"]),
        "headline_5": f"Modularity {'notices' if noise >= NOTICED else 'does not surely notice'} wrong labels.",
    }


def _names(studies: Sequence[Found]) -> str:
    titles = [one.title for one in studies]
    return f"{', '.join(titles[:-1])} and {titles[-1]}" if len(titles) > 1 else "".join(titles)


def _values(studies: Sequence[Found], question: str) -> list[float]:
    return [one.answers[question].estimate.value for one in studies if question in one.answers]


def _span(studies: Sequence[Found], question: str, digits: int = 2) -> str:
    """From the smallest to the largest estimate."""
    ends = [format_number(end(values), digits) for end in (min, max) if (values := _values(studies, question))]
    return "–" if not ends else ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _words(studies: Sequence[Found], question: str) -> str:
    """How many data sets got which word, and where the amended rules have others, those too."""
    answers = [one.answers[question] for one in studies if question in one.answers]
    ways = [Counter(words) for words in ([a.word for a in answers], [a.amended_word for a in answers])]
    told = [", ".join(f"*{word}* on {way[word]}" for word in WORDS if way[word]) for way in ways]
    fixed = f"{told[0]} of {len(answers)}" if answers else "not asked yet"
    return fixed if ways[0] == ways[1] else f"{fixed}; amended: {told[1]}"


def _matrix(studies: Sequence[Found]) -> list[str]:
    rows = [f"| data set | {' | '.join(MATRIX.values())} |", f"| --- |{' --- |' * len(MATRIX)}"]
    for one in studies:
        cells = [_cell(one, question) for question in MATRIX]
        rows.append(f"| {in_markdown(one.title)} | {' | '.join(cells)} |")
    return rows


def _cell(one: Found, question: str) -> str:
    if question not in one.answers:
        return "–"
    answer = one.answers[question]
    digits = 3 if answer.question.statistic == "added" else 2
    amended = f" (amended: {answer.amended_word})" if answer.amended_word != answer.word else ""
    return f"**{answer.word}** {format_number(answer.estimate.value, digits)}{amended}"


def _source(studies: Sequence[Found]) -> str:
    networks = sum(len(one.tables.networks) for one in studies)
    commits = sorted({commit for one in studies for commit in one.tables.networks["commit"]})
    return (
        f"Estimates and words by rules fixed beforehand; {networks:,} networks, trained at commit "
        f"{', '.join(f'`{commit}`' for commit in commits)}."
    )


def write_answer(root: Path, found: Sequence[Found]) -> None:
    """Put the answer into the README and the landing page.

    Args:
        root: the project's folder.
        found: see :func:`answer_text`.

    Raises:
        ValueError: a file has no place for it.
    """
    for place in PLACES:
        text = (root / place).read_text("utf-8")
        if START not in text or END not in text:
            raise ValueError(f"{place} needs the two lines {START!r} and {END!r}")
        before, rest = text.split(START, 1)
        replace_file(root / place, (before + answer_text(found) + rest.split(END, 1)[1]).encode())
