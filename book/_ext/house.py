"""The house measured: rooms drawn from the code's imports, and the ten-point look (`make house`)."""

from __future__ import annotations

import ast
import json
import re
import statistics
import sys
import textwrap
from collections import Counter
from html import escape
from pathlib import Path

import nbutils

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "nbutils"
PICTURE = ROOT / "book/_static/house.svg"
LOOK = ROOT / "CONTRIBUTING.md"
START, END = "<!-- look: written by `make house` -->\n", "<!-- end of look -->"
CORE = "core"
ROOMS = (
    "cli",
    "pages",
    "sweeps",
    "own",
    "experiments",
    "truth",
    "motifs",
    "second",
    "study",
    "runs",
    "data",
    "evaluation",
    CORE,
    "capturing",
    "drawing",
    "support",
)  # from the top
SENTENCES = re.compile(r'Markdown\(f"""\n(.*?)"""', re.DOTALL)  # what a page says in words, written by code
WIDTH, LINE, CHARACTERS = 400, 17, 49  # of the picture; characters of a line, in the widest of common fonts
ALT = (
    "The rooms of nbutils as floors, from the command line at the top to support at the bottom, each with its files "
    "and the number of imports from each room below it"
)


def room_of(path: Path) -> str:
    """The room of a file of the package."""
    inside = path.relative_to(PACKAGE)
    if len(inside.parts) > 1:
        return inside.parts[0]
    return "cli" if inside.stem in ("cli", "__main__") else CORE


def files() -> dict[str, list[Path]]:
    """Files by room; those that only describe a room are left out."""
    found: dict[str, list[Path]] = {room: [] for room in ROOMS}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.stem != "__init__":
            found[room_of(path)].append(path)
    return found


def imports() -> Counter[tuple[str, str]]:
    """(room, room that it imports from) -> how many files of the second each file of the first imports, summed."""
    found: Counter[tuple[str, str]] = Counter()
    for room, paths in files().items():
        for path in paths:
            targets = set()
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE.name:
                    base = ROOT.joinpath(*(node.module or "").split("."))
                    inner = [base / f"{alias.name}.py" for alias in node.names]
                    targets |= {p for p in [base.with_suffix(".py"), *inner] if p.is_file()}
            found.update((room, room_of(target)) for target in targets)
    return found


def words_of(room: str) -> str:
    """What a room says of itself: the first paragraph of its docstring."""
    file = {CORE: PACKAGE / "__init__.py", "cli": PACKAGE / "cli.py"}.get(room, PACKAGE / room / "__init__.py")
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def picture() -> str:
    """Rooms as floors: what each is for, its files, and how many imports stand on which floor below.

    Plain SVG in the colour of the page around it, narrow enough for a phone; alone, it follows light and dark itself.
    """
    rooms, counts, top, drawn = files(), imports(), 0, []
    for room in ROOMS:
        below = [f"{lower} {counts[room, lower]}" for lower in ROOMS if lower != room and counts[room, lower]]
        parts = [
            (words_of(room).replace("`", ""), ""),
            (", ".join(path.stem for path in rooms[room]), ' font-family="monospace"'),
        ]
        parts += [("imports from " + ", ".join(below), ' font-style="italic" opacity=".8"')] if below else []
        lines = [(line, style) for text, style in parts for line in textwrap.wrap(text, CHARACTERS)]
        height = LINE * (len(lines) + 1) + 16
        box = 'rx="5" fill="currentColor" fill-opacity=".06" stroke="currentColor" stroke-opacity=".4"'
        drawn.append(f'<rect x="1" y="{top + 1}" width="{WIDTH - 2}" height="{height}" {box}/>')
        texts = [(room, ' font-weight="bold" font-size="15"'), *lines]
        for number, (line, style) in enumerate(texts):
            drawn.append(f'<text x="12" y="{top + 20 + LINE * number}"{style}>{escape(line)}</text>')
        top += height + 8
    alone = "<style>svg:root{color:#24292f}@media(prefers-color-scheme:dark){svg:root{color:#e6edf3}}</style>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" role="img" aria-label="{ALT}"'
    style = 'font-family="sans-serif" font-size="12.5" fill="currentColor" style="width:100%;max-width:36rem"'
    return "\n".join([f"{head} {style}>", alone, *drawn, "</svg>\n"])


def draw(target: Path = PICTURE) -> None:
    """Write the picture of the rooms."""
    target.write_text(picture(), "utf-8")


def look() -> list[tuple[str, str, str, bool]]:
    """The ten-point look: (what, measured, what it should be, whether it is)."""
    cells = {path.stem: json.loads(path.read_text("utf-8"))["cells"] for path in _notebooks()}
    code = {name: [c for c in own if c["cell_type"] == "code"] for name, own in cells.items()}
    lengths = [n for own in code.values() for c in own if (n := len(code_lines(c)))]
    trees = {name: [ast.parse("".join(c["source"])) for c in own] for name, own in code.items()}
    classes = sum(isinstance(n, ast.ClassDef) for own in trees.values() for t in own for n in ast.walk(t))
    functions = [sum(isinstance(n, ast.FunctionDef) for t in own for n in ast.walk(t)) for own in trees.values()]
    words = {name: words_per_line(own) for name, own in cells.items()}
    hidden = {name: hidden_share(own) for name, own in cells.items()}
    answered = sum(opening_and_close(own) for own in cells.values())
    shows = [n for own in trees.values() for t in own for n in ast.walk(t) if _is_show(n)]
    bare = sum(len(call.args) + len(call.keywords) < 3 for call in shows)
    documented, public = documentation()
    p90 = function_length()
    room, most = max(((room, len(paths)) for room, paths in files().items()), key=lambda pair: pair[1])
    mirrored = [room for room in ROOMS if (ROOT / "tests" / room).is_dir()]
    strict = "-W -n --keep-going" in (ROOT / "Makefile").read_text("utf-8")
    long = sum(n > 20 for n in lengths) / len(lengths)
    sourced = sum("Where the numbers come from" in "".join(map(str, own)) for own in cells.values())
    return [
        ("code lines per cell, median; share over 20",
         f"{statistics.median(lengths):.0f}; {long:.0%}", "at most 6; under 5%",
         statistics.median(lengths) <= 6 and long < 0.05),
        ("classes on pages; functions on a page, most", f"{classes}; {max(functions)}", "0; at most 2",
         classes == 0 and max(functions) <= 2),
        ("words per line of code, hidden cells counted, least; share of code lines hidden, most",
         f"{min(words.values()):.1f} ({min(words, key=words.get)}); {max(hidden.values()):.0%} "
         f"({max(hidden, key=hidden.get)})", "at least 8; at most 40%",
         min(words.values()) >= 8 and max(hidden.values()) <= 0.4),
        ("pages that close by answering the questions they open with", f"{answered} of {len(cells)}", "all",
         answered == len(cells)),
        ("figures without caption or alt text", f"{bare} of {len(shows)}", "0", bare == 0),
        ("public functions of the core with meaning, shapes, errors and a runnable example",
         f"{documented} of {public}", "all", documented == public),
        ("lines of a function, 90th percentile; files in a room, most", f"{p90}; {most} ({room})", "at most 30; 18",
         p90 <= 30 and most <= 18),
        ("rooms with a folder of tests", f"{len(mirrored)} of {len(ROOMS)}", "all", len(mirrored) == len(ROOMS)),
        ("the book is built strictly, without a list of excused warnings", "yes" if strict else "no", "yes",
         strict),
        ("pages that say where their numbers come from", f"{sourced} of {len(cells)}", "all", sourced == len(cells)),
    ]  # fmt: skip


def code_lines(cell: dict) -> list[str]:
    """Lines of a cell that are neither blank nor only a comment."""
    return [line for line in "".join(cell["source"]).split("\n") if line.strip() and not line.strip().startswith("#")]


def argument(cells: list[dict]) -> list[dict]:
    """The code cells that a page reasons with: all but solutions of exercises."""
    return [c for c in cells if c["cell_type"] == "code" and "solution" not in _tags(c)]


def words_per_line(cells: list[dict]) -> float:
    """Words of prose for each line of code, hidden cells counted; sentences with numbers in them are prose."""
    prose = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
    told = [text for c in argument(cells) for text in SENTENCES.findall("".join(c["source"]))]
    words = re.findall(r"\w[\w'’-]*", " ".join([*prose, *(re.sub(r"\{.*?\}", "", text) for text in told)]))
    lines = sum(len(code_lines(c)) for c in argument(cells)) - sum(text.count("\n") for text in told)
    return len(words) / max(1, lines)


def hidden_share(cells: list[dict]) -> float:
    """Share of the code lines that a reader has to unfold."""
    code = argument(cells)
    hidden = sum(len(code_lines(c)) for c in code if {"hide-input", "hide-cell", "remove-input"} & _tags(c))
    return hidden / max(1, sum(len(code_lines(c)) for c in code))


def opening_and_close(cells: list[dict]) -> bool:
    """Whether a page opens with questions and closes with as many answers."""
    text = "\n\n".join("".join(c["source"]) for c in cells)  # code writes answers with numbers in them
    asked, told = (_bullets(text, heading) for heading in ("This page answers", "What this page answered"))
    return 0 < asked == told


def documentation() -> tuple[int, int]:
    """How many functions offered by the core and by capturing have a full docstring, and how many there are."""
    good = total = 0
    for path in files()[CORE] + files()["capturing"]:
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name in nbutils.__all__:
                text = ast.get_docstring(node) or ""
                total += 1
                good += all(part in text for part in ("Returns:", "Examples:")) or "Yields:" in text
    return good, total


def function_length() -> int:
    """Lines of the package's functions without their docstrings: 90th percentile."""
    lengths = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
                lengths.append(node.end_lineno - body[0].lineno + 1)
    return sorted(lengths)[int(0.9 * len(lengths))]


def look_text() -> str:
    """The look as a table in Markdown."""
    rows = [f"| {n} | {what} | {found} | {wanted} |" for n, (what, found, wanted, _) in enumerate(look(), 1)]
    return "\n".join(["", "| point | what | measured | should be |", "| --- | --- | --- | --- |", *rows, "", ""])


def _notebooks() -> list[Path]:
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def _tags(cell: dict) -> set[str]:
    return set(cell["metadata"].get("tags", []))


def _bullets(text: str, heading: str) -> int:
    """Bullets of the list that follows a heading."""
    after = text.rpartition(heading)[2] if heading in text else ""
    first = re.search(r"^- ", after, re.MULTILINE)
    listed = after[first.start() :] if first else ""
    return len(re.findall(r"^- ", re.split(r"\n\n(?!- )", listed, maxsplit=1)[0], re.MULTILINE))


def _is_show(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "show"


def main() -> int:
    """Draw the rooms and write the look into CONTRIBUTING.md; the exit code is 1 if a point is not as it should be."""
    draw()
    text = LOOK.read_text("utf-8")
    before, rest = text.split(START)
    LOOK.write_text(before + START + look_text() + END + rest.split(END)[1])
    points = look()
    for what, found, wanted, good in points:
        print(f"{'' if good else 'NOT as it should be:':20} {found:>40}  {what} (should be {wanted})")
    return 0 if all(good for *_, good in points) else 1


if __name__ == "__main__":
    sys.exit(main())
