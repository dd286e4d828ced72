"""The committed tables are what they were."""

from __future__ import annotations

import hashlib
import shutil

from nbutils.study.archive import RESULTS, SUMS, write_sums

RENEW = "if they were meant to change (`python -m nbutils study` renews the sums itself): make sums"


def test_committed_tables_are_what_they_were(root, tmp_path):
    """File by file, in a copy, so that nothing is renewed here."""
    kept = (root / RESULTS / SUMS).read_text("utf-8")
    shutil.copytree(root / RESULTS, tmp_path / "results")
    write_sums(tmp_path / "results")
    before, now = (set(text.splitlines()) for text in (kept, (tmp_path / "results" / SUMS).read_text("utf-8")))
    changed = sorted({line.split("  ", 1)[1] for line in before ^ now})
    assert not changed, f"changed, new or gone under {RESULTS}: {', '.join(changed)}; {RENEW}"


def test_sums_are_those_of_sha256sum(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one.parquet").write_bytes(b"abc")
    (tmp_path / "README.md").write_text("a text")
    for _ in range(2):
        write_sums(tmp_path)
        assert (tmp_path / SUMS).read_text() == f"{hashlib.sha256(b'abc').hexdigest()}  a/one.parquet\n"
