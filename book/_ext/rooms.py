"""The API by rooms: the directive `rooms` documents all public files of the rooms it is given; no list is kept."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import house
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

INTRODUCED = ".. automodule:: {}\n   :no-index:\n"
DOCUMENTED = ".. automodule:: {}\n   :members:\n"
TITLES = {room: f"Room {room}" for room in house.ROOMS} | {house.CORE: "The core", "cli": "The command line"}


def api(rooms: Sequence[str]) -> str:
    """A page in Markdown: a part per room, its own words first, then its public files."""
    parts, found, package = [], house.files(), house.PACKAGE.name
    for room in rooms:
        if room not in TITLES:
            raise ValueError(f"a room must be one of {', '.join(TITLES)}, received {room!r}")
        parts.append(f"## {TITLES[room]}\n")
        if room != "cli":  # a room of one file
            parts.append(_rst(INTRODUCED.format(package if room == house.CORE else f"{package}.{room}")))
        names = [".".join(path.relative_to(house.ROOT).with_suffix("").parts) for path in found[room]]
        for name in (name for name in names if "._" not in name):  # such as `_leiden` and `__main__`: nobody else's
            parts.append(f"### {name}\n\n{_rst(DOCUMENTED.format(name))}")
    return "\n".join(parts)


def _rst(text: str) -> str:
    return f"```{{eval-rst}}\n{text}```\n"


class Rooms(SphinxDirective):
    """What stands in place of the directive `rooms`, whose arguments are names of rooms."""

    required_arguments = 1
    optional_arguments = len(TITLES)

    def run(self) -> list[nodes.Node]:
        """Documentation of the rooms."""
        return self.parse_text_to_nodes(api(self.arguments), allow_section_headings=True)


def plain_types(_app: Sphinx, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """Say `float` where an attribute is declared as `Annotated[float, Field(gt=0)]`: its own words tell the range."""
    for number, line in enumerate(lines):
        field, _, declared = line.partition(": ")
        if field.startswith(":vartype") and "Annotated[" in declared:
            tree = _Plain().visit(ast.parse(declared, mode="eval"))
            lines[number] = f"{field}: {ast.unparse(tree)}"


class _Plain(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        return node.slice.elts[0] if ast.unparse(node.value) == "Annotated" else node


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx entry point."""
    app.add_directive("rooms", Rooms)
    app.connect("autodoc-process-docstring", plain_types, priority=900)  # after napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
