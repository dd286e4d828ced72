"""Results at a glance: the verdicts and the effects, written by code into the README."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import pandas as pd

from nbutils.pages.figures import forest
from nbutils.study.conclusions import active_sentence, active_verdicts
from nbutils.study.hypotheses import MAIN_TESTS, Evidence, headline, is_prespecified
from nbutils.study.results import Results
from nbutils.study.study import NOISE_SEEDS
from nbutils.support.display import GREY, INK, STYLE, in_markdown

__all__ = ["FIGURE", "check_place", "glance_text", "write_glance"]

START, END = "<!-- results: written by `make glance` -->", "<!-- end of results -->"
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
        rows.append(f"| {in_markdown(result.dataset)} | {' | '.join(_cell(*head) for head in heads)} |")
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
    return "\n".join([START, "", *rows, "", "\n\n".join(paragraphs), "", END])


def _cell(word: str, misses: str, main: Evidence | None) -> str:
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
    if START not in text or END not in text:
        raise ValueError(f"README.md needs the two lines {START!r} and {END!r}")
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
    before, rest = text.split(START, 1)
    readme.write_text(before + glance_text(results, evidence) + rest.split(END, 1)[1], "utf-8")
    buffer = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": "glance", "svg.fonttype": "path"}):
        forest([e for e in evidence if is_prespecified(e)]).savefig(buffer, format="svg", metadata={"Date": None})
    (root / FIGURE).write_text(buffer.getvalue().replace(INK, GREY), "utf-8")
