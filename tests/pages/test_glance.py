from __future__ import annotations

import pandas as pd
import pytest

from nbutils.pages.landing import FIGURE, GLANCE_END, GLANCE_START, glance_text, write_glance
from nbutils.study.hypotheses import Evidence
from nbutils.study.results import Results

TESTS = [
    Evidence("digits", "true", "H1", "H1a null", "Q above its null", 0.5, 0.4, 0.6),
    Evidence("digits", "true", "H1", "H1b", "more communities", -0.5, -0.6, -0.4, p_value=0.9, adjusted=1.0),
    Evidence("digits", "random", "H1", "H1a null", "Q above its null", 0.9, 0.8, 1.0),
    Evidence("digits", "all", "H2", "H2b", "rank correlation", 0.25, 0.125, 0.375, p_value=0.01, adjusted=0.02),
    Evidence("digits", "all", "H3", "H3b", "rank correlation", *[float("nan")] * 3, planned=False),
    Evidence("digits", "true", "H3", "H3a", "own minus others", -0.25, -0.5, -0.125),
]


@pytest.fixture
def results() -> Results:
    runs = pd.DataFrame({"seed": [0, 1], "commit": ["abc", "abc"]})
    return Results("digits", pd.DataFrame(), runs, {}, {})


def test_each_verdict_comes_with_its_main_effect(results):
    text = glance_text([results], TESTS)
    row = next(line for line in text.splitlines() if line.startswith("| digits"))
    h1, h2, h3 = (cell.strip().replace("\xa0", " ") for cell in row.split("|")[2:5])
    assert h1 == "**refuted** (misses H1b): H1a null 0.50 (0.40 to 0.60)", "random labels do not decide"
    assert h2 == "**supported**: H2b 0.25 (0.12 to 0.38)"
    assert h3.startswith("**refuted** (misses H3a): H3a −0.25"), "a test that was not planned has no effect to show"
    assert "H1a null, Q above its null; H2b, rank correlation; H3a, own minus others." in text
    assert "2 networks, 2 per label condition and 5 per level of label noise; trained at commit `abc`." in text


def test_a_data_set_without_evidence_is_inconclusive(results):
    assert "| digits | **inconclusive** | **inconclusive** | **inconclusive** |" in glance_text([results], [])


def test_the_readme_is_rewritten_between_its_marks_only(results, tmp_path):
    (tmp_path / FIGURE.parent).mkdir(parents=True)
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{GLANCE_START}\nold\n{GLANCE_END}\nafter\n", "utf-8")
    write_glance(tmp_path, [results], TESTS)
    first = readme.read_text("utf-8")
    assert first.startswith(f"before\n{GLANCE_START}\n")
    assert first.endswith(f"{GLANCE_END}\nafter\n")
    assert "old" not in first
    assert "<svg" in (tmp_path / FIGURE).read_text("utf-8")
    write_glance(tmp_path, [results], TESTS)
    assert readme.read_text("utf-8") == first
    readme.write_text("nothing", "utf-8")
    with pytest.raises(ValueError, match=r"README\.md needs the two lines"):
        write_glance(tmp_path, [results], TESTS)
