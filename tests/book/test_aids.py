"""Words of the glossary, the foot of a page and what it leads to; tests/book/test_book.py looks at them as built."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import pytest
from docutils import nodes
from docutils.utils import new_document
from sphinx import addnodes


@pytest.fixture
def aids(root, monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(root / "book/_ext")
    sys.modules.pop("aids", None)
    import aids as module

    return module


def test_the_first_use_of_a_word_leads_to_its_meaning(aids):
    names = ("activation pattern graph", "activation", "firing")
    missing = {name: aids.Term(name, f"term-{name}", f"What {name} is.") for name in names}
    parts = aids._linked("Activation pattern graphs, activation, activations and misfiring.", missing, "g.html")
    links = [part for part in parts if isinstance(part, nodes.reference)]
    assert [link.astext() for link in links] == ["Activation pattern graphs", "activation"]
    assert links[0]["refuri"] == "g.html#term-activation pattern graph"
    assert links[1]["reftitle"] == "What activation is."
    assert (
        "".join(part.astext() for part in parts) == "Activation pattern graphs, activation, activations and misfiring."
    )
    assert list(missing) == ["firing"], "a part of a word is no use of it"
    assert aids._linked("Nothing here.", missing, "g.html") == []


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("over the epochs of a run, or of ten runs", "run"),
        ("Each network's runs end.", "runs"),
        ("A sweep runs one notebook.", None),
        ("The code that is run takes little run time.", None),
        ("They run; every run ends.", "run"),
    ],
)
def test_a_verb_is_not_taken_for_a_word_of_the_glossary(aids, text, linked):
    parts = aids._linked(text, {"run": aids.Term("run", "term-run", "One network, trained once.")}, "g.html")
    assert [part.astext() for part in parts if isinstance(part, nodes.reference)] == ([linked] if linked else [])
    assert "".join(part.astext() for part in parts) == (text if linked else "")


def test_prose_is_typeset_and_code_is_not(aids):
    tree = new_document("page")
    tree += nodes.paragraph("", "", nodes.Text("-0.5 in 95 % of 5 % cases "), nodes.literal("", "-1, 95 %"))
    aids.typeset_prose(None, tree, "page")
    assert tree.astext() == "−0.5 in 95\u00a0% of 5\u00a0% cases -1, 95 %"


def test_only_running_prose_is_linked(aids):
    tree = new_document("page")
    said = nodes.paragraph("", "", nodes.Text("said "), nodes.literal("", "code"), nodes.emphasis("", "stressed"))
    quoted = nodes.block_quote("", nodes.paragraph("", "", nodes.Text("quoted")))
    tree += [nodes.section("", nodes.title("", "a title"), said, quoted)]
    assert [text.astext() for text in aids._prose(tree)] == ["said ", "stressed"]


def test_meanings_are_cut_where_a_sentence_or_a_word_ends(aids):
    assert aids.shortened("Short  and\nplain.") == "Short and plain."
    sentence = "A sentence of some words. "
    assert aids.shortened(sentence * 40).endswith("words.")
    cut = aids.shortened("word " * 100)
    assert cut.endswith("word …")
    assert len(cut) <= aids.LONGEST + 2


def test_a_meaning_is_told_without_keys(aids):
    def key(domain: str, name: str) -> nodes.Element:
        return addnodes.pending_xref("", nodes.inline("", name), refdomain=domain)

    parts = (
        nodes.Text("In one "),
        key("std", "place"),
        nodes.Text(" "),
        key("cite", "who2030"),
        nodes.Text(", "),
        key("math", "q"),
    )
    meaning = nodes.definition(
        "", nodes.paragraph("", "", *parts, nodes.Text(" (above, "), key("math", "q"), nodes.Text(")."))
    )
    assert aids.spoken(meaning) == "In one place (above)."
    assert "who2030" in meaning.astext(), "the page keeps them"


def test_the_foot_cites_what_the_citation_file_says(aids, root):
    text = aids.bibtex(aids._citation(), aids.built_from())
    written = (root / "CITATION.cff").read_text("utf-8")
    for field in ("title", "version"):
        assert re.search(rf"^{field}: \"?(.*?)\"?$", written, re.MULTILINE)[1] in text
    assert text.count("{") == text.count("}")
    assert re.search(r"^  note = \{commit \S+, built on \d{4}-\d\d-\d\d\}", text, re.MULTILINE)
    assert re.fullmatch(r"Version \S+, commit \S+, built on \d{4}-\d\d-\d\d with .*PyTorch.*\.", aids.built_from())


@pytest.mark.parametrize(
    ("page", "source", "binder"),
    [
        ("book/pages/mnist/h2_modularity", "notebooks/h2_modularity.ipynb", True),
        ("book/methods/graph", "book/methods/graph.md", False),
    ],
)
def test_a_repository_switches_on_links_to_the_source(aids, root, page, source, binder):
    assert aids.source_links(page, {}) == ""
    links = aids.source_links(page, {"repository_url": "https://host.example/who/what/", "repository_branch": "dev"})
    assert f'href="https://host.example/who/what/blob/dev/{source}"' in links
    assert (root / source).is_file()
    assert ("mybinder.org/v2/gh/who/what/dev?urlpath=lab/tree/" in links) == binder
