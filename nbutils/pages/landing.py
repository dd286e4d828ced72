"""What `make glance` writes: the answer on the landing page and in the README, and the verdicts of the first study."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import pandas as pd

from nbutils.drawing.display import INK, STYLE, format_number, in_markdown, interval_text
from nbutils.drawing.palette import GREY
from nbutils.evaluation.words import WORDS
from nbutils.pages.answering import NOTICED, Found, digits_of, noticing
from nbutils.pages.figures import forest
from nbutils.second.answers import Answer, sound
from nbutils.second.leaderboard import mean_rhos
from nbutils.study.conclusions import active_sentence, active_verdicts
from nbutils.study.hypotheses import MAIN_TESTS, Evidence, headline, is_prespecified
from nbutils.study.results import Results
from nbutils.study.study import NOISE_SEEDS
from nbutils.support.files import replace_file

__all__ = ["FIGURE", "PLACES", "answer_text", "check_place", "glance_text", "write_answer", "write_glance"]

START, END = "<!-- answer: written by `make glance` -->", "<!-- end of the answer -->"
PLACES = (Path("README.md"), Path("book/intro.md"))
BEYOND, CLASSES = "H1 beyond class preference", ", and as far as can be seen they are about classes"
# Question -> heading of its column.
MATRIX = {
    "H1 beyond chance": "H1: beyond chance",
    BEYOND: "H1: beyond classes",
    "H2 performance": "H2: performance",
    "H2 added": "H2: added",
    "H3 performance, binned entropy": "H3: binned entropy",
    "H3 performance, block entropy": "H3: block entropy",
}


def answer_text(found: Sequence[Found], left: Sequence[Answer] = ()) -> str:
    """Five plain sentences and the matrix in Markdown, markers included.

    Args:
        found: what the second study found, data set by data set; only those with a zoo are told of.
        left: what is left over within classes, see :func:`nbutils.pages.left_over.open_left`.
    """
    studies = [one for one in found if len(one.board)]
    if not studies:
        return "\n".join([START, "", "No data set has been studied yet.", "", END])
    return "\n".join([START, "", *_sentences(studies, left), "", *_matrix(studies), "", _source(studies), "", END])


SENTENCES = """\
1. **{headline_1}** On {names} the graph of a trained network is more modular than firing rates alone would make it,
   by {chance}. Training changes that by {training} ({training_words}). Once neurons that prefer the same true and
   predicted class are allowed for, {beyond} is left, beside {untrained} before training, by a statistic that can
   miss groups across classes{left}.
2. **{headline_2}** Among networks with clean labels and different settings, its rank correlation with accuracy is {q}
   ({q_words}); among those trained on as many images, {q_fixed} on average (asked afterwards){left_q}.
3. **{headline_3}** For the paper's binned entropy that correlation is {binned} ({binned_words}), for the joint entropy
   of neurons {blocks} ({blocks_words}).
4. **{headline_4}** Beyond cheap measures, modularity explains {added} more of the variance of performance
   ({added_words}), the entropies {entropies} ({entropies_words}); of all {count} measures the strongest is *{first}*,
   with a rank correlation of {strength}, and among networks trained on as many images *{second}*, with {fixed}.
5. **{headline_5}** The area under the curve for "a quarter or more of the labels are wrong" is {noise} for modularity
   on average, and {least} on {hardest}; of {tried} measures that can be asked this {many} reach {noticed} or more,
   {steady} of them in the same direction on every data set."""
# Opening of each sentence: where all data sets say "supported", where none does, where some do.
HEADLINES = {
    "q": (
        "Modularity tells which network performs better.",
        "Modularity is nowhere shown to tell which network performs better.",
        "Modularity tells which network performs better on some data sets.",
    ),
    "entropy": (
        "Entropy falls as performance rises.",
        "Between networks, entropy is nowhere shown to fall as performance rises.",
        "One entropy or the other falls as performance rises on some data sets.",
    ),
    "noise": (
        "Modularity notices wrong labels.",
        "Modularity is nowhere shown to notice wrong labels.",
        "Modularity notices wrong labels on some data sets.",
    ),
    "added": (
        "Both add to cheap measures.",
        "Neither is shown to add anything that matters to cheap measures.",
        "They add to cheap measures on some data sets.",
    ),
}


def _sentences(studies: Sequence[Found], left: Sequence[Answer]) -> list[str]:
    boards = pd.concat([one.board[one.board["measurable"]].assign(dataset=one.title) for one in studies])
    mean = boards.groupby("called")[["rho", "images_fixed", "detects"]].mean()
    (first, second), (clear, steady) = mean[["rho", "images_fixed"]].abs().idxmax(), noticing(boards)
    own = boards[boards["measure"] == "modularity"].set_index("dataset")["detects"].dropna()
    asked = {
        "chance": "H1 beyond chance",
        "training": "H1 by training",
        "beyond": BEYOND,
        "q": "H2 performance",
        "binned": "H3 performance, binned entropy",
        "blocks": "H3 performance, block entropy",
        "added": "H2 added",
        "entropies": "H3 added",
    }
    fixed = boards.loc[boards["measure"] == "modularity", "images_fixed"].dropna().tolist()
    fine = "added", "entropies"
    filled = {name: _span(studies, question, 3 if name in fine else 2) for name, question in asked.items()}
    filled |= {f"{name}_words": _words(studies, question) for name, question in asked.items()}
    before = [_untrained_remainder(one) for one in studies if BEYOND in one.answers]
    filled |= {
        "untrained": _from_to(before),
        "q_fixed": _from_to(fixed),
        "names": _names([one for one in studies if asked["chance"] in one.answers]),
        "count": str(len(mean)),
        "first": first,
        "second": second,
        "many": str(clear.sum()),
        "steady": str((clear & steady).sum()),
        "tried": str(mean["detects"].notna().sum()),
    }
    strongest = [one.board[one.board["called"] == first] for one in studies]
    strength = mean_rhos([one.tables for one in studies], strongest).loc[first]
    filled |= {"strength": interval_text(*strength[["mean", "low", "high"]]), "noticed": str(NOTICED)}
    filled["fixed"] = format_number(mean.loc[second, "images_fixed"], 2)
    least = format_number(own.min(), 2) if len(own) else "–"
    filled |= {"noise": format_number(own.mean(), 2), "least": least, "hardest": own.idxmin() if len(own) else "none"}
    filled |= _headlines(studies, own, left) | _left_over(left)
    return [SENTENCES.format(**filled)]


def _left_over(left: Sequence[Answer]) -> dict[str, str]:
    """What a statistic of all firing together within classes says, after the remainder and after modularity."""
    mean, rise, rank = ([a for a in left if a.question.statistic == kind] for kind in ("mean", "rise", "rank"))
    spans = [_from_to([a.estimate.value for a in some]) for some in (mean, rise, rank)]
    told = f". One of all that fires together within classes finds {spans[0]} in smaller networks ({_told(mean)}), and"
    told += f" training changes that by {spans[1]} ({_told(rise)})"
    ranks = f"; of what is left over within classes, {spans[2]} ({_told(rank)})"
    return {"left": told if mean else "", "left_q": ranks if rank else ""}


def _headlines(studies: Sequence[Found], noise: pd.Series, left: Sequence[Answer]) -> dict[str, str]:
    """What every sentence opens with, as the amended words have it."""
    told = [answer for one in studies for answer in one.answers.values()]
    words = {name: [a.amended_word for a in told if a.question.name == name] for name in MATRIX}
    words["H3 added"] = [a.amended_word for a in told if a.question.name.startswith("H3 added")]
    chance, beyond, q, added, binned, blocks = (words[name] for name in MATRIX)

    def chosen(kind: str, found: Sequence[str]) -> str:
        count = found.count("supported")
        return HEADLINES[kind][0 if count == len(found) > 0 else 1 if not count else 2]

    more = [one for one in studies if any(a.amended_word == "supported" for a in _answers([one], BEYOND))]
    seen = f", and follow classes; on {_names(more)} more than that is seen" if more else CLASSES
    over = {a.word for a in left if a.question.statistic == "mean"} == {"supported"}
    seen = ", and follow classes, but not classes alone" if over else seen
    there = 0 < chance.count("supported") == len(chance)
    return {
        "headline_1": f"Communities are there{seen if there and (over or len(more) < len(beyond)) else ''}.",
        "headline_2": chosen("q", q),
        "headline_3": chosen("entropy", binned + blocks),
        "headline_4": chosen("added", added + words["H3 added"]),
        "headline_5": chosen("noise", ["supported" if value >= NOTICED else "" for value in noise]),
    }


def _names(studies: Sequence[Found]) -> str:
    titles = [one.title for one in studies]
    return f"{', '.join(titles[:-1])} and {titles[-1]}" if len(titles) > 1 else "".join(titles)


def _answers(studies: Sequence[Found], question: str) -> list[Answer]:
    """Of all data sets, to a question by its name, or to all whose names begin so."""
    return [
        a for one in studies for name, a in one.answers.items() if name == question or name.startswith(f"{question},")
    ]


def _span(studies: Sequence[Found], question: str, digits: int = 2) -> str:
    """From the smallest to the largest estimate."""
    return _from_to([answer.estimate.value for answer in _answers(studies, question)], digits)


def _from_to(values: Sequence[float], digits: int = 2) -> str:
    ends = [format_number(end(values), digits) for end in (min, max) if values]
    return "–" if not ends else ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _untrained_remainder(one: Found) -> float:
    """Mean over the networks of its question, before training."""
    runs, _ = sound(one.tables, "runs", "true")
    rows = one.tables.measures.query("part == 'whole' and epoch == 0 and measure == 'remainder'")
    return float(rows.set_index("run")["value"].loc[runs["run"]].mean())


def _words(studies: Sequence[Found], question: str) -> str:
    return _told(_answers(studies, question))


def _told(answers: Sequence[Answer]) -> str:
    """How many data sets got which word, and where the amended rules have others, those too."""
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
    amended = f"; amended: {answer.amended_word}" if answer.amended_word != answer.word else ""
    found, mark = answer.estimate, "\u00a0●" if answer.confirmatory else ""
    told = interval_text(found.value, found.low, found.high, digits_of(answer.question))
    told = told.replace("\u00a0", " ")  # it may break, or six columns would not stand side by side
    return f"**{answer.word}**{mark} {told}{amended}"


def _source(studies: Sequence[Found]) -> str:
    networks = sum(len(one.tables.networks) for one in studies)
    commits = sorted({commit for one in studies for commit in one.tables.networks["commit"]})
    return (
        "Words by rules fixed beforehand, estimates with 95 % intervals; ● confirmatory, on images or networks "
        f"that were new when the rules were fixed, but for amended words. {networks:,} networks, trained at commit "
        f"{', '.join(f'`{commit}`' for commit in commits)}."
    )


def write_answer(root: Path, found: Sequence[Found], left: Sequence[Answer] = ()) -> None:
    """Put the answer into the README and the landing page.

    Args:
        root: the project's folder.
        found: see :func:`answer_text`.
        left: likewise.

    Raises:
        ValueError: a file has no place for it.
    """
    for place in PLACES:
        text = (root / place).read_text("utf-8")
        if START not in text or END not in text:
            raise ValueError(f"{place} needs the two lines {START!r} and {END!r}")
        before, rest = text.split(START, 1)
        replace_file(root / place, (before + answer_text(found, left) + rest.split(END, 1)[1]).encode())


GLANCE_START, GLANCE_END = "<!-- results: written by `make glance` -->", "<!-- end of results -->"
FIGURE = Path("book/_static/glance.svg")


def glance_text(results: Sequence[Results], evidence: Sequence[Evidence]) -> str:
    """The verdict table in Markdown, with where it comes from.

    Args:
        results: results of each data set.
        evidence: all tests of the study.

    Returns:
        Markdown between the two markers, markers included.
    """
    rows = ["| data set | H1 communities | H2 modularity | H3 entropy |", "| --- | --- | --- | --- |"]
    asked: dict[str, str] = {}  # what each main effect is
    for result in results:
        heads = [headline(evidence, result.dataset, hypothesis) for hypothesis in MAIN_TESTS]
        rows.append(f"| {in_markdown(result.dataset)} | {' | '.join(_verdict_cell(*head) for head in heads)} |")
        asked |= {main.test: main.question for _, _, main in heads if main}
    runs = pd.concat([result.runs[["seed", "commit"]] for result in results])
    commits = ", ".join(f"`{commit}`" for commit in sorted(set(runs["commit"])))
    source = (
        f"Each verdict with the tests it misses, its main effect and 95 % interval: "
        f"{'; '.join(f'{test}, {asked[test]}' for test in sorted(asked))}. {len(runs)} networks, "
        f"{runs['seed'].max() + 1} per label condition and {NOISE_SEEDS} per level of label noise; "
        f"trained at commit {commits}."
    )
    figure = f"![Effects of the pre-specified tests with intervals; grey where nothing can be measured]({FIGURE})"
    paragraphs = [figure, source, *filter(None, [active_sentence(active_verdicts(results, evidence))])]
    return "\n".join([GLANCE_START, "", *rows, "", "\n\n".join(paragraphs), "", GLANCE_END])


def _verdict_cell(word: str, misses: str, main: Evidence | None) -> str:
    """A verdict, the tests it misses, and its main effect."""
    effect = f": {main.test} {main.effect}" if main else ""
    return f"**{word}**{misses}{effect}"


def check_place(root: Path) -> None:
    """Refuse a folder whose README has no place for the results, before anything is computed for it.

    Raises:
        FileNotFoundError: there is no README, or no folder for the figure.
        ValueError: the README lacks the two lines.
    """
    text = (root / "README.md").read_text("utf-8")
    if GLANCE_START not in text or GLANCE_END not in text:
        raise ValueError(f"README.md needs the two lines {GLANCE_START!r} and {GLANCE_END!r}")
    if not (root / FIGURE).parent.is_dir():
        raise FileNotFoundError(f"{root} has no folder {FIGURE.parent}; run this command in the project's folder")


def write_glance(root: Path, results: Sequence[Results], evidence: Sequence[Evidence]) -> None:
    """Put verdicts and figure into the README.

    Args:
        root: the project's folder.
        results: results of each data set.
        evidence: all tests of the study.

    Raises:
        ValueError: the README has no place for them.
    """
    check_place(root)
    readme = root / "README.md"
    text = readme.read_text("utf-8")
    before, rest = text.split(GLANCE_START, 1)
    readme.write_text(before + glance_text(results, evidence) + rest.split(GLANCE_END, 1)[1], "utf-8")
    buffer = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": "glance", "svg.fonttype": "path"}):
        forest([e for e in evidence if is_prespecified(e)]).savefig(buffer, format="svg", metadata={"Date": None})
    (root / FIGURE).write_text(buffer.getvalue().replace(INK, GREY), "utf-8")
