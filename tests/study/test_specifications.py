from __future__ import annotations

import pytest

from nbutils.activations import firing_share
from nbutils.measures import MeasureSpec
from nbutils.study.hypotheses import RULES as VERDICT_RULES
from nbutils.study.specifications import FACTORS, PRIMARY_H2, PRIMARY_H3, Specification, specifications

ALL = specifications()
H2, H3 = ([one for one in ALL if one.hypothesis == hypothesis] for hypothesis in ("H2", "H3"))


def test_there_are_many_and_all_differ():
    assert len(ALL) >= 60
    assert len(H2) + len(H3) == len(ALL)
    assert len({one.label for one in ALL}) == len(ALL)
    assert len(set(ALL)) == len(ALL)
    assert specifications() == ALL


def test_one_primary_specification_for_each_hypothesis():
    assert [one for one in ALL if one.primary] == [PRIMARY_H2, PRIMARY_H3]
    measure = MeasureSpec()
    assert (PRIMARY_H2.graph, PRIMARY_H2.firing) == ("co-firing count", "top-decile")
    assert (PRIMARY_H2.share, PRIMARY_H2.resolution) == (measure.density, measure.resolution)
    assert (PRIMARY_H2.algorithm, PRIMARY_H2.null) == ("Leiden", "nothing")
    assert (PRIMARY_H3.measure, PRIMARY_H3.neurons) == ("pattern entropy", "last layer")
    assert (PRIMARY_H3.firing, PRIMARY_H3.correction) == ("top-decile", "Miller-Madow")
    assert VERDICT_RULES.level == 0.95  # that of the curve's intervals


@pytest.mark.parametrize("factor", ["graph", "share", "firing", "algorithm", "resolution", "neurons", "null"])
def test_every_choice_is_varied_alone_from_the_primary_one(factor):
    def others(one):
        return {k: v for k, v in vars(one).items() if k not in (factor, "primary")}

    changed = [one for one in H2 if others(one) == others(PRIMARY_H2) and not one.primary]
    assert changed
    assert all(getattr(one, factor) != getattr(PRIMARY_H2, factor) for one in changed)


@pytest.mark.parametrize("graph", ["co-firing count", "phi", "PPMI", "disparity", "adjacent layers", "within layers"])
def test_graphs_are_crossed_with_densities_and_rules(graph):
    found = [one for one in H2 if one.graph == graph]
    assert {one.share for one in found if one.firing == "top-decile"} == {0.02, 0.05, 0.1}
    assert {one.firing for one in found} >= {"top-decile", "positive"}


def test_the_papers_sizes_and_the_details_of_the_released_code():
    sizes = {round(one.share * 512) for one in H2 if one.graph == "paper's"}
    assert sizes == {13, 25, 50, 100}
    details = [one.details for one in H2 if one.graph == "released code's"]
    assert sorted(map(len, details)) == [1, 1, 1, 3]
    assert set(details[0]) == {detail for one in details for detail in one}


def test_all_entropies_are_there_with_their_signs():
    signs = {one.measure: one.predicted for one in H3}
    assert {m for m, sign in signs.items() if sign == 1} == {"mutual information", "total correlation"}
    assert {"pattern entropy", "class-conditional entropy", "firing entropy", "binned entropy, sum"} <= set(signs)
    assert {one.neurons for one in H3 if one.measure == "pattern entropy"} == {"first layer", "last layer"}
    assert all(one.predicted == 1 for one in H2)


def test_words_say_what_was_chosen():
    assert PRIMARY_H3.label == "H3 · pattern entropy · top 10 % · last layer · Miller-Madow"
    assert "13 of 512 neurons" in {one.choices.get("kept") for one in H2}
    for one in ALL:
        assert set(one.choices) <= set(FACTORS)
        assert all(one.choices.values())
        if one.firing:
            firing_share(one.firing)  # raises if there is no such rule


def test_unknown_choices_are_named():
    with pytest.raises(ValueError, match=r"graph must be one of .*phi.*; received 'psi'"):
        Specification("H2", "modularity", "psi", 0.05, "top-decile", "Leiden", 1.0, null="nothing")
    with pytest.raises(ValueError, match="measure must be modularity for H2 and an entropy for H3"):
        Specification("H3", "modularity")
    with pytest.raises(ValueError, match="a specification of H2 needs graph, algorithm and null"):
        Specification("H2", "modularity", "phi", 0.05, "top-decile")
