"""The house measured: rooms drawn from the code's imports, and the ten-point look (`make house`)."""

from __future__ import annotations

import ast
import json
import re
import statistics
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "nbutils"
PICTURE = ROOT / "book/_static/house.svg"
LOOK = ROOT / "CONTRIBUTING.md"
START, END = "<!-- look: written by `make house` -->\n", "<!-- end of look -->"
CORE = "core"
ROOMS = ("cli", "pages", "sweeps", "study", "runs", "data", CORE, "support")  # each stands on those after it


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


def draw(target: Path = PICTURE) -> None:
    """Rooms as floors, the files of each in it, and how many imports lead from floor to floor."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt
    from matplotlib.patches import FancyArrowPatch, Rectangle

    rooms, counts = files(), imports()
    colour = "#808890"
    with mpl.rc_context({"svg.hashsalt": "house", "svg.fonttype": "none", "font.family": "sans-serif"}):
        figure, axes = plt.subplots(figsize=(10, 7.5))
        for floor, room in enumerate(reversed(ROOMS)):
            axes.add_patch(Rectangle((0, floor), 10, 0.86, facecolor=colour, alpha=0.14, edgecolor=colour))
            axes.text(0.15, floor + 0.43, room, va="center", fontsize=12, fontweight="bold", color=colour)
            names, lines = [path.stem for path in rooms[room]], [""]
            for name in names:
                if len(lines[-1]) + len(name) > 74:
                    lines.append("")
                lines[-1] += f"{name}   "
            axes.text(1.9, floor + 0.43, "\n".join(lines), va="center", fontsize=8.5, color=colour)
        for (upper, lower), count in counts.items():
            if upper == lower:
                continue
            start, end = (len(ROOMS) - 1 - ROOMS.index(room) + 0.43 for room in (upper, lower))
            bend = -0.42 - 0.02 * (start - end)
            arrow = FancyArrowPatch(
                (10, start), (10, end), connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>", mutation_scale=9,
                linewidth=0.5 + count**0.5 / 3, color=colour, alpha=0.6,
            )  # fmt: skip
            axes.add_patch(arrow)
        axes.set(xlim=(-0.1, 13.4), ylim=(-0.1, len(ROOMS)))
        axes.axis("off")
        figure.savefig(target, transparent=True, bbox_inches="tight", metadata={"Date": None})
        plt.close(figure)


def look() -> list[tuple[str, str, str]]:
    """The ten-point look: (what, measured, what it should be)."""
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
    sourced = sum("Where the numbers come from" in "".join(map(str, own)) for own in cells.values())
    return [
        ("code lines per cell, median; share over 20",
         f"{statistics.median(lengths):.0f}; {sum(n > 20 for n in lengths) / len(lengths):.0%}", "at most 6; under 5%"),
        ("classes on pages; functions on a page, most", f"{classes}; {max(functions)}", "0; 2"),
        ("words per line of code, hidden cells counted, least; share of code lines hidden, most",
         f"{min(words.values()):.1f} ({min(words, key=words.get)}); {max(hidden.values()):.0%} "
         f"({max(hidden, key=hidden.get)})", "8; 40%"),
        ("pages that close by answering the questions they open with", f"{answered} of {len(cells)}", "all"),
        ("figures without caption or alt text", f"{bare} of {len(shows)}", "0"),
        ("public functions of the core with meaning, shapes, errors and a runnable example",
         f"{documented} of {public}", "all"),
        ("lines of a function, 90th percentile; files in a room, most", f"{p90}; {most} ({room})", "30; 17"),
        ("rooms with a folder of tests", f"{len(mirrored)} of {len(ROOMS)}", "all"),
        ("the book is built strictly, without a list of excused warnings", "yes" if strict else "no", "yes"),
        ("pages that say where their numbers come from", f"{sourced} of {len(cells)}", "all"),
    ]  # fmt: skip


def code_lines(cell: dict) -> list[str]:
    """Lines of a cell that are neither blank nor only a comment."""
    return [line for line in "".join(cell["source"]).split("\n") if line.strip() and not line.strip().startswith("#")]


def words_per_line(cells: list[dict]) -> float:
    """Words of prose for each line of code, hidden cells counted."""
    prose = " ".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return len(re.findall(r"\w[\w'’-]*", prose)) / max(
        1, sum(len(code_lines(c)) for c in cells if c["cell_type"] == "code")
    )


def hidden_share(cells: list[dict]) -> float:
    """Share of the code lines that a reader has to unfold."""
    code = [c for c in cells if c["cell_type"] == "code"]
    hidden = sum(len(code_lines(c)) for c in code if {"hide-input", "hide-cell", "remove-input"} & _tags(c))
    return hidden / max(1, sum(len(code_lines(c)) for c in code))


def opening_and_close(cells: list[dict]) -> bool:
    """Whether a page opens with questions and closes with as many answers."""
    text = "\n\n".join("".join(c["source"]) for c in cells)  # code writes answers with numbers in them
    asked, told = (_bullets(text, heading) for heading in ("This page answers", "What this page answered"))
    return 0 < asked == told


def documentation() -> tuple[int, int]:
    """How many public functions of the core have a full docstring, and how many there are."""
    good = total = 0
    for path in files()[CORE]:
        tree = ast.parse(path.read_text("utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
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
    rows = [f"| {n} | {what} | {found} | {wanted} |" for n, (what, found, wanted) in enumerate(look(), 1)]
    return "\n".join(["", "| | what | measured | should be |", "| --- | --- | --- | --- |", *rows, "", ""])


def _notebooks() -> list[Path]:
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def _tags(cell: dict) -> set[str]:
    return set(cell["metadata"].get("tags", []))


def _bullets(text: str, heading: str) -> int:
    """Bullets of the list that follows a heading."""
    after = text.rpartition(heading)[2] if heading in text else ""
    listed = after[after.index("- ") :] if "- " in after else ""
    return len(re.findall(r"^- ", re.split(r"\n\n(?!- )", listed, maxsplit=1)[0], re.MULTILINE))


def _is_show(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "show"


def main() -> None:
    """Draw the rooms and write the look into CONTRIBUTING.md."""
    draw()
    text = LOOK.read_text("utf-8")
    before, rest = text.split(START)
    LOOK.write_text(before + START + look_text() + END + rest.split(END)[1])
    print("\n".join(f"{found:>40}  {what} (should be {wanted})" for what, found, wanted in look()))


if __name__ == "__main__":
    sys.exit(main())
