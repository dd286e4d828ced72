from __future__ import annotations

import pytest

from nbutils.pages.page import open_page
from nbutils.study.study import Study


@pytest.fixture
def tiny(monkeypatch):
    """Studies of very small networks, of which one diverges."""
    original = Study.run_spec

    def small(self, **given):
        spec = original(self, **given)
        wild = {"learning_rate": 1e30} if (spec.labels, spec.seed) == ("random", 0) else {}
        return spec.model_copy(update={"model": "mlp:8", "probe": 200, **wild})

    monkeypatch.setattr(Study, "run_spec", small)


def test_a_page_shows_failed_runs_and_judges_the_others(tiny, own_store, capsys):
    page = open_page("h1_communities", {"dataset": "digits", "seeds": 2, "epochs": 1, "jobs": 1})
    failures = page.show_failures().text
    assert "1 of 16 runs failed and are left out everywhere." in failures
    assert "training diverged: after epoch 1 layer" in failures
    assert "learning_rate=1e+30" in failures.replace("<wbr>", "")
    assert page.results.run("random").seed == 1
    assert "H1 on Digits (8×8): inconclusive" in page.show_verdict("H1", "Claim.").text
    assert page.show_tests("H1").text.count("too few runs") == 9
    assert "16 of 16 missing runs trained and measured" in capsys.readouterr().out


def test_sources_count_the_page_s_own_runs(tiny, own_store):
    first = open_page("h2_modularity", {"dataset": "digits", "seeds": 1, "epochs": 1, "jobs": 1})
    assert first.source().startswith("Source: 8 runs 8 computed now")
    (between,) = first.tests("H2")
    assert first.test("H2b") is between
    own = first.test("H2a")
    assert (own.effect, own.outcome) == ("–", "too few runs"), "one network has no other"
    second = open_page("synthesis", {"study": "digits", "seeds": 1, "epochs": 1, "jobs": 1})
    assert second.source().startswith("Source: 8 runs read from the store; trained at commit")
    assert "inconclusive" in second.show_verdicts().text


def test_a_wrong_value_stops_before_anything_is_computed(own_store):
    with pytest.raises(ValueError, match="h2_modularity: seeds: input should be a valid integer, received '3'"):
        open_page("h2_modularity", {"seeds": "3"})
    assert not own_store.exists()
