"""The directive `picture` draws a picture in its place, from numbers computed then or kept in `pictures.json`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import explorer
import hero
import hero_figure
import ideas
import ideas_nulls
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

__all__ = ["PICTURES", "html_of"]


@cache
def measured() -> dict[str, Any]:
    """What `make pictures` has measured."""
    return json.loads(hero.FILE.read_text("utf-8"))


# Name -> HTML of the figure.
PICTURES: dict[str, Callable[[], str]] = {
    "hero": lambda: hero_figure.hero_html(measured()),
    "explorer": lambda: explorer.explorer_html(explorer.studies()),
    "density": lambda: hero_figure.density_html(measured()),
    "communities": ideas.communities_picture,
    "network": ideas.network_picture,
    "nulls": ideas_nulls.nulls_picture,
    "sessions": ideas_nulls.sessions_picture,
    "dying": lambda: ideas_nulls.dying_picture(measured()["dying"]),
}


def html_of(name: str) -> str:
    """A figure by its name.

    Raises:
        ValueError: there is no such picture.
    """
    if name not in PICTURES:
        raise ValueError(f"picture must be one of {', '.join(PICTURES)}, received {name!r}")
    return PICTURES[name]()


class Picture(SphinxDirective):
    """What stands in place of the directive `picture`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The figure, as it is."""
        try:
            html = html_of(self.arguments[0])
        except ValueError as error:
            raise self.error(str(error)) from error
        self.env.note_dependency(str(hero.FILE))
        return [nodes.raw("", html, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx entry point."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
