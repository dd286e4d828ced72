"""What helps a reader on every page: words explained where they stand, and a foot that says what the page is of.

The first time a page uses a word of the glossary, the word leads there and shows its meaning when it is pointed at. The
foot names version, commit, date and libraries, and how to cite the book. With `repository_url` among the theme's
options in `_config.yml` it also leads to the page's source, to a form for mistakes, and to its notebook on Binder.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docutils import nodes
from pybtex.plugin import find_plugin, register_plugin
from ruamel.yaml import YAML
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment

from nbutils.drawing.display import typeset
from nbutils.support.provenance import provenance

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = "book/glossary"
UNTOUCHED = (GLOSSARY, "book/api", "book/references", "genindex")
# Words that are verbs, too, and what stands before one that is not: "a run", but "a sweep runs".
VERBS = ("run",)
BEFORE_A_NOUN = re.compile(
    r"(?:\b(?:a|the|this|one|five|ten|every|each|another|all|many|more|new|own|other|single|short|long|same|of|over"
    r"|between|within|across|from|per)|[’']s|\d)\s+$",
    re.IGNORECASE,
)
LONGEST = 320  # characters of a meaning that is shown beside the word
LETTER_BY_LETTER = (nodes.literal, nodes.literal_block, nodes.raw, nodes.math, nodes.math_block, nodes.comment)
QUIET = (
    nodes.reference,
    nodes.literal,
    nodes.title,
    nodes.math,
    nodes.table,
    nodes.term,
    nodes.block_quote,
    addnodes.desc,
)


@dataclass(frozen=True)
class Term:
    """A word of the glossary.

    Attributes:
        name: as it stands there.
        anchor: its place on that page.
        meaning: what it means, in plain text.
    """

    name: str
    anchor: str
    meaning: str


def note_terms(app: Sphinx, tree: nodes.document) -> None:
    """Give every word of the glossary a place that links and the search know."""
    if app.env.docname != GLOSSARY:
        return
    for term in tree.findall(nodes.term):
        anchor = f"term-{nodes.make_id(term.astext())}"
        term["ids"].append(anchor)
        app.env.get_domain("std")._note_term(term.astext(), anchor, location=term)


def glossary_terms(env: BuildEnvironment) -> list[Term]:
    """The words of the glossary, long ones first, so that *activation pattern graph* is not taken for *activation*."""
    if GLOSSARY not in env.found_docs:
        return []
    found = []
    for item in env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
        meaning = spoken(next(iter(item.findall(nodes.definition))))
        found += [Term(term.astext(), term["ids"][0], shortened(meaning)) for term in item.findall(nodes.term)]
    return sorted(found, key=lambda term: (-len(term.name), term.name))


def spoken(definition: nodes.Element) -> str:
    """The text of a meaning without the keys of what it cites and of equations."""
    definition = definition.deepcopy()
    for link in list(definition.findall(addnodes.pending_xref)):
        if link.get("refdomain") in ("cite", "math"):
            link.parent.remove(link)
    return re.sub(r"[ ,]+(?=[.,;:)]| \()", "", " ".join(definition.astext().split()))


def shortened(text: str) -> str:
    """The beginning of a text, up to the end of a sentence or a word."""
    text = " ".join(text.split())
    if len(text) <= LONGEST:
        return text
    kept = text[:LONGEST]
    return kept[: kept.rindex(". ") + 1] if ". " in kept else f"{kept[: kept.rindex(' ')]} …"


def link_terms(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Let the first use of every word of the glossary lead there."""
    if page.startswith(UNTOUCHED) or app.builder.format != "html":
        return
    missing = {term.name.lower(): term for term in glossary_terms(app.env)}
    if not missing:
        return
    where = app.builder.get_relative_uri(page, GLOSSARY)
    for text in list(_prose(tree)):
        if missing and (parts := list(_linked(text.astext(), missing, where))):
            text.parent.replace(text, parts)


def _prose(tree: nodes.document) -> Iterator[nodes.Text]:
    for paragraph in tree.findall(nodes.paragraph):
        for text in paragraph.findall(nodes.Text):
            above, quiet = text.parent, False
            while above is not None and not quiet:
                above, quiet = above.parent, isinstance(above, QUIET)
            if not quiet:
                yield text


def _linked(text: str, missing: dict[str, Term], where: str) -> list[nodes.Node]:
    """A text in parts, some of them links; none if it has no word that is still missing."""
    names = "|".join(re.escape(name) for name in missing)
    found, start = [], 0
    for match in re.finditer(rf"(?<![\w-])({names})(?:e?s)?(?![\w-])", text, re.IGNORECASE):
        if not _is_noun(text, match) or (term := missing.pop(match[1].lower(), None)) is None:
            continue
        link = nodes.reference("", "", internal=True, refuri=f"{where}#{term.anchor}", classes=["nb-term"])
        link["reftitle"] = term.meaning
        link += nodes.Text(match[0])
        found += [nodes.Text(text[start : match.start()]), link]
        start = match.end()
    return [*found, nodes.Text(text[start:])] if found else []


def _is_noun(text: str, match: re.Match) -> bool:
    """Whether a word of the glossary that may be a verb is none here, nor the first half of *run time*."""
    if match[1].lower() not in VERBS:
        return True
    return bool(BEFORE_A_NOUN.search(text[: match.start()])) and not text[match.end() :].startswith(" time")


def typeset_prose(_app: Sphinx, tree: nodes.document, _page: str) -> None:
    """Minus signs, and no end of a line between a number and its percent sign, as in what notebooks emit."""
    for text in list(tree.findall(nodes.Text)):
        if not isinstance(text.parent, LETTER_BY_LETTER) and (printed := typeset(text)) != text:
            text.parent.replace(text, nodes.Text(printed))


def again_with_the_glossary(_app: Sphinx, env: BuildEnvironment, _new: set, changed: set, _gone: set) -> list[str]:
    """All pages show words of the glossary, and are written again when it changes."""
    return sorted(env.found_docs) if GLOSSARY in changed else []


@cache
def built_from() -> str:
    """Version, commit, day and libraries of this build."""
    facts, about = provenance(), _citation()
    names = {"python": "Python", "torch": "PyTorch", "networkx": "networkx"}
    libraries = ", ".join(f"{name} {facts['versions'][key]}" for key, name in names.items())
    return f"Version {about['version']}, commit {facts['commit']}, built on {facts['time'][:10]} with {libraries}."


def _citation() -> dict[str, Any]:
    return YAML(typ="safe", pure=True).load((ROOT / "CITATION.cff").read_text("utf-8"))


def bibtex(about: dict[str, Any], built: str = "") -> str:
    """How to cite the book, from CITATION.cff, with a note of what it was built from."""
    authors = " and ".join(author.get("name") or f"{author['family-names']}" for author in about["authors"])
    fields = {
        "title": f"{{{about['title']}}}",
        "author": f"{{{authors}}}",
        "year": str(about["date-released"])[:4],
        "version": about["version"],
        **({"note": built.partition(", ")[2].partition(" with ")[0]} if built else {}),
    }
    lines = "".join(f",\n  {name} = {{{value}}}" for name, value in fields.items())
    return f"@software{{neuron_communities{lines}\n}}"


def source_links(page: str, options: dict[str, Any]) -> str:
    """Links to a page's source, to a form for mistakes, and to its notebook on Binder; none without a repository."""
    repository = str(options.get("repository_url") or "").rstrip("/")
    if not repository:
        return ""
    branch, path = options.get("repository_branch") or "main", source_of(page)
    found = {
        "Source of this page": f"{repository}/blob/{branch}/{path}",
        "Report a mistake": f"{repository}/issues/new?title={quote(f'Page {page}')}",
    }
    if path.endswith(".ipynb"):
        name = repository.partition("//")[2].partition("/")[2]
        found["Open on Binder"] = f"https://mybinder.org/v2/gh/{name}/{branch}?urlpath={quote(f'lab/tree/{path}')}"
    return " · ".join(f'<a href="{html.escape(link)}">{words}</a>' for words, link in found.items())


def source_of(page: str) -> str:
    """The file that a page is made of: a template for pages of the study, else its own."""
    if page.startswith("book/pages/"):
        return f"notebooks/{page.rpartition('/')[2]}.ipynb"
    return f"{page}.md"


def add_foot(app: Sphinx, page: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """The foot of a page."""
    to = context["pathto"]
    links = [f'<a href="{to(other)}">{name}</a>' for other, name in ((GLOSSARY, "Glossary"), ("genindex", "Index"))]
    links += [part] if (part := source_links(page, app.config.html_theme_options)) else []
    entry = html.escape(bibtex(_citation(), built_from()))
    cite = f"<details><summary>Cite this book</summary><pre>{entry}</pre></details>"
    context["theme_extra_footer"] = f'<div class="nb-foot"><p>{built_from()}</p><p>{" · ".join(links)}</p>{cite}</div>'


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx entry point."""
    # Citations ask for it hundreds of times, and looking through what is installed takes 5 ms.
    register_plugin("pybtex.backends", "plaintext", find_plugin("pybtex.backends", "plaintext"), force=True)
    StandardDomain.object_types["term"].attrs["searchprio"] = 1  # else the search does not know where a word stands
    app.connect("env-get-outdated", again_with_the_glossary)
    app.connect("doctree-read", note_terms)
    app.connect("doctree-resolved", typeset_prose)
    app.connect("doctree-resolved", link_terms)
    app.connect("html-page-context", add_foot)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
