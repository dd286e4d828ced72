from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from nbutils.experiments.control_sets import clustered, large_communities
from nbutils.experiments.designs import EXPERIMENTS
from nbutils.experiments.lesions import lesion_trials, set_differences
from nbutils.experiments.other_partitions import (
    PARTITION_QUESTIONS,
    PARTITION_RULES,
    USUAL,
    WAYS,
    against_usual,
    partition_rows,
    partition_table,
    partition_trials,
    partition_verdicts,
)
from nbutils.second.elsewhere import CHOICES
from nbutils.second.questions import PROTOCOL


@pytest.fixture(scope="module")
def rows():
    """Of one small network that was trained for it."""
    return pd.DataFrame(partition_rows(lesion_trials(["digits"], 1, epochs=4, model="mlp:96-48")[0]))


def test_clusters_are_those_of_scikit_learn(rng):
    """Ward's clusters of standardised firing; neurons that never fire are in none."""
    latent = rng.random((400, 4)) < 0.2
    fired = np.repeat(latent, 15, axis=1) ^ (rng.random((400, 60)) < 0.05)
    fired[:, [3, 50]] = False
    active = np.flatnonzero(fired.any(axis=0))
    values = (fired[:, active] - fired[:, active].mean(axis=0)) / fired[:, active].std(axis=0)
    for clusters in (2, 4, 7):
        labels = np.full(60, -1)
        for number, own in enumerate(clustered(fired, clusters, least=1)):
            labels[own] = number
        assert set(np.flatnonzero(labels < 0)) == {3, 50}
        theirs = AgglomerativeClustering(clusters, linkage="ward").fit_predict(values.T)
        assert adjusted_rand_score(theirs, labels[active]) == 1
    sizes = [len(own) for own in clustered(fired, 4, least=1)]
    assert sizes == sorted(sizes, reverse=True)
    assert [len(own) for own in clustered(fired, 4, least=15)] == [size for size in sizes if size >= 15]


def test_nothing_that_fires_is_in_no_cluster():
    assert clustered(np.zeros((5, 3), dtype=bool), 2, least=1) == []
    always = np.ones((5, 3), dtype=bool)
    assert [one.tolist() for one in clustered(always, 2, least=1)] == [[0, 1, 2]]


def test_resolution_makes_communities_smaller(rng):
    fired = np.repeat(rng.random((300, 6)) < 0.3, 20, axis=1) ^ (rng.random((300, 120)) < 0.1)
    counts = [len(large_communities(fired, 0.3, 3, resolution)) for resolution in (0.2, 1.0, 3.0)]
    assert counts == sorted(counts)
    assert counts[0] < counts[2]


def test_ways_are_the_choices_for_q_and_one_without_a_graph():
    assert set(WAYS) == {USUAL, *CHOICES, "tree"}
    assert {WAYS[name].title for name in CHOICES} == {one.title for one in CHOICES.values()}
    for name, choice in CHOICES.items():
        assert WAYS[name].find.keywords["density"] == choice.spec.density
        assert WAYS[name].find.keywords["resolution"] == choice.spec.resolution
        assert WAYS[name].training == choice.training
    assert WAYS[USUAL].find.keywords["density"] == PROTOCOL.density


def test_networks_are_the_fully_connected_ones_of_the_experiment_on_lesions():
    own = {one.settings for one in partition_trials()}
    assert own == {one.settings for one in lesion_trials() if one.condition == "none"}
    assert EXPERIMENTS["partitions"].rows is partition_rows


def test_every_way_has_its_sets_and_controls(rows):
    zero = rows[rows["silence"] == "zero"]
    assert set(zero["way"]) == set(WAYS)
    assert set(zero["kind"]) == {"community", "matched", "cut", "shuffle", "cut by layer", "class cut by layer"}
    assert (zero.loc[zero["kind"] == "community", "size"] >= PARTITION_RULES.least).all()
    sizes = zero.pivot_table("size", ["way", "number"], "kind")
    for first, second in (("cut", "shuffle"), ("cut by layer", "class cut by layer")):
        both = sizes[[first, second]].dropna()
        assert len(both) > 10
        assert (both[first] == both[second]).all()
        assert (both[first] <= sizes.loc[both.index, "community"]).all()
    whole = rows[rows["kind"] == "whole"].set_index("way")["communities"]
    found = zero[zero["kind"] == "community"].groupby("way").size()
    assert (whole[found.index] == found).all()
    assert zero.loc[zero["kind"] == "cut", "draws"].max() <= PARTITION_RULES.draws
    assert rows.loc[(rows["kind"] == "cut") & (rows["silence"] == "mean"), "draws"].max() <= PARTITION_RULES.few


def test_the_usual_way_silences_the_communities_of_the_experiment_on_lesions(rows):
    from nbutils.experiments.silenced_sets import lesion_rows

    other = pd.DataFrame(lesion_rows(lesion_trials(["digits"], 1, epochs=4, model="mlp:96-48")[0]))
    name = ["kind", "number", "silence"]
    values = ["size", "preferred", "loss_preferred", "loss_others", "specificity"]
    own = rows[(rows["way"] == USUAL) & (rows["kind"] == "community")].set_index(name)[values]
    assert len(own) > 6
    pd.testing.assert_frame_equal(own, other[other["kind"] == "community"].set_index(name)[values])


def world(differences: dict[str, float], noise: float = 0.01) -> pd.DataFrame:
    """Ten networks with three groups each; community, cut and cut by layer exceed their controls by so much."""
    rng, kinds = np.random.default_rng(0), ["community", "matched", "cut", "shuffle"]
    kinds += ["cut by layer", "class cut by layer"]
    sets = [
        {"way": way, "seed": seed, "number": number, "kind": kind, "silence": "zero"}
        | {"specificity": 0.3 + (more if place % 2 == 0 else 0) + noise * rng.standard_normal()}
        for way, more in differences.items()
        for seed in range(10)
        for number in range(3)
        for place, kind in enumerate(kinds)
    ]
    whole = [
        {"way": way, "seed": seed, "number": -1, "kind": "whole", "silence": "", "communities": 3.0}
        for way in differences
        for seed in range(10)
    ]
    return pd.DataFrame(sets + whole).assign(dataset="d", condition="none", reason="", degenerate=0.0)


def test_words_are_given_way_by_way_and_held_against_the_usual_way():
    table = world(dict.fromkeys(WAYS, 0.2) | {"sparse": 0.0, "tree": -0.2})
    found = partition_verdicts(table)
    words = found.groupby("way")["word"].unique().map(list)
    assert words[USUAL] == words["fine"] == ["supported"]
    assert words["sparse"] == ["no association"]
    assert words["tree"] == ["contradicted"]
    assert set(found["communities"]) == {3}
    fate = against_usual(found)
    assert len(fate) == (len(WAYS) - 1) * len(PARTITION_QUESTIONS)
    assert fate["fine"].unique().tolist() == ["holds"]
    assert fate[["sparse", "tree"]].unique().tolist() == ["hangs"]
    # The mean over networks of the mean over sets, from the rows themselves.
    own = table[(table["way"] == "tree") & (table["kind"] != "whole")]
    wide = own.pivot_table("specificity", ["seed", "number"], "kind")
    by_hand = (wide["cut"] - wide["shuffle"]).groupby("seed").mean().mean()
    row = found[(found["way"] == "tree") & (found["question"] == "beyond class preference")]
    assert row["effect"].item() == pytest.approx(by_hand)
    assert len(set_differences(own, PARTITION_QUESTIONS["beyond class preference"])) == 30


def test_the_table_tells_ranges_and_counts_words():
    shown = partition_table(partition_verdicts(world(dict.fromkeys(WAYS, 0.2), noise=0.0001)))
    assert shown["found"].tolist() == [one.title for one in WAYS.values()]
    assert shown["groups"].tolist() == [3] * len(WAYS)
    assert shown["beyond matched sets"].str.fullmatch(r"0\.200; supported 1").all()
