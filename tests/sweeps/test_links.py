from __future__ import annotations

import nbformat

from nbutils.sweeps.report import relinked


def test_links_to_files_follow_and_others_stay(tmp_path):
    for name in ("notebooks", "book", "runs/s/x=1"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "book/page.md").touch()
    text = "[a](../book/page.md#part), [b](https://example.org), [c](missing.md), ![d](../book/page.md), [e](#here)"
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell("[x](y)")])
    target = tmp_path / "runs/s/x=1"
    found = nbformat.reads(relinked(nbformat.writes(page), tmp_path / "notebooks", target), as_version=4)
    expected = text.replace("../book/page.md", "../../../book/page.md")
    assert found.cells[0].source == expected
    assert (target / "../../../book/page.md").exists()
    assert found.cells[1].source == "[x](y)"
