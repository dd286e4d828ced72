"""Built pages without outside requests, without dead links, and in order for screen readers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from sphinx.application import Sphinx

LINKED = ("", "http", "https")
# What the theme and its extensions write -> what reads well. A name that is spoken holds the words that are seen, and
# the children of a list are its items.
REPAIRS = (
    ('<summary aria-label="Toggle hidden content">', "<summary>"),
    ('<div role="list" class="citation-list">', '<div role="list" class="citation-list" aria-label="References">'),
    (r'(<div class="citation" id="[^"]+") role="doc-biblioentry"', r'\1 role="listitem"'),
    (r'(<button class="btn search-button-field[^>]*?) title="Search" aria-label="Search"', r"\1"),
    (r'(<i class="theme-switch[^>]*?) +title="[^"]+"', r"\1"),
    (r">(Show|Hide) code cell content<", r">\1 the solution<"),
    (r">(Show|Hide) code cell source<", r">\1 the code<"),
)
INDEX = """<!DOCTYPE html>
<html lang="{language}">
<head><meta charset="utf-8"><title>{title}</title><meta http-equiv="refresh" content="0; url={first}"></head>
<body><main><h1>{title}</h1><p><a href="{first}">Open the book</a></p></main></body>
</html>
"""


def drop_remote_scripts(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Remove the live-code (thebe) scripts, which this book does not use, from every page."""
    scripts = context.get("script_files", [])
    context["script_files"] = [
        s for s in scripts if "thebe" not in str(getattr(s, "filename", s) or getattr(s, "attributes", ""))
    ]


def drop_dead_links(_app: Sphinx, tree: nodes.document) -> None:
    """Leave an address that no browser opens, such as `tcp://...` or `folder:at@32` in a docstring, as text."""
    for link in list(tree.findall(nodes.reference)):
        if urlsplit(link.get("refuri", "")).scheme not in LINKED:
            link.replace_self(link.children)


def repaired(page: str) -> str:
    """A built page with the repairs made; made again, they change nothing."""
    for found, better in REPAIRS:
        page = re.sub(found, better, page)
    return page


def finish(app: Sphinx, error: Exception | None) -> None:
    """Repair all pages, and make the first one a page that has a link where a browser does not follow by itself."""
    if error or app.builder.name != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        page = path.read_text("utf-8")
        if (better := repaired(page)) != page:
            path.write_text(better, "utf-8")
    index, first = Path(app.outdir) / "index.html", app.builder.get_target_uri(app.config.master_doc)
    if first != index.name:
        filled = {"language": app.config.language, "title": app.config.html_title or app.config.project, "first": first}
        index.write_text(INDEX.format(**filled), "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx entry point."""
    app.connect("html-page-context", drop_remote_scripts, priority=900)
    app.connect("doctree-read", drop_dead_links)
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
