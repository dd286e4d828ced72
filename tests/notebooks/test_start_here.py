"""The first page, executed with a network that cannot read images prepared otherwise than those it trained on."""

from __future__ import annotations


def test_the_network_is_shown_what_it_was_trained_on(own_store, execute_page):
    outcome = execute_page("start_here", model="mlp:24-12", epochs=10, sparsity=0.2, density=0.1)
    assert outcome.status == "done", outcome.reason
    found = {one["metric"]: one["value"] for one in outcome.measurements}
    assert found["connected_share"] > 0.5
    assert found["communities"] > 1
