from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import nbutils
from nbutils.pages import reconstruction
from nbutils.pages.reconstruction import (
    ENTROPY_MOVES,
    PLAIN,
    Q_MOVES,
    SWITCHES,
    shuffle_table,
    switch_table,
    switch_words,
    switched,
)
from nbutils.study.extras import VARIANTS
from nbutils.study.hypotheses import RULES, collect_evidence, h1_evidence, verdict
from nbutils.study.results import Results
from nbutils.study.specifications import specifications

EPOCHS = 4
# Final Q of every variant; untrained it is 1/4, and about 1/8 under the null, always. All are sums of powers of 2, so
# that differences which should not vary do not.
FINAL = {
    "the paper's": 5 / 8,
    "edges of the last class": 1 / 2,
    "frequency as threshold": 5 / 8,
    "index slips": 1 / 8,
    "strict bins": 5 / 8,
    "all of them": 3 / 8,
}


def simulated(seeds: int = 10, follows: bool = True) -> Results:
    """A study whose Q, entropy and accuracy are what the tests say.

    Accuracy wiggles in each network by itself; Q and entropy follow it, or drift alike in all networks.
    """
    rng, runs, table, extra = np.random.default_rng(0), [], [], []
    for part, labels in (("conditions", "true"), ("conditions", "random"), ("released", "true")):
        for seed in rng.permutation(seeds):
            run = f"{part} {labels} {seed}"
            scale = 255.0 if part == "released" else 1.0
            named = {"run": run, "parts": part, "dataset": "mnist", "labels": labels, "seed": seed}
            runs.append({**named, "input_scale": scale, "status": "done"})
            wiggle = rng.permutation(EPOCHS + 1) / 128
            for epoch in range(EPOCHS + 1):
                table.append({**named, "noise": 0.0, "epoch": epoch, "train_accuracy": 0.5 + wiggle[epoch]})
                for variant, final in FINAL.items():
                    own = wiggle[epoch] if follows else epoch / 128
                    ends = epoch in (0, EPOCHS)
                    extra.append(
                        {
                            "run": run,
                            "epoch": epoch,
                            "variant": variant,
                            "modularity": (final if epoch else 1 / 4) + own,
                            "null_circular": 1 / 8 + own + seed / 1024 if ends else np.nan,
                            "well_defined": 2 + 3 * (epoch > 0 and variant != "index slips"),
                            "entropy": (100.0 - 5 * VARIANTS[variant][1]) * (2 if part == "released" else 1) - own,
                        }
                    )
    frames = {"reconstruction": pd.DataFrame(extra)}
    return Results("mnist", pd.DataFrame(table), pd.DataFrame(runs), {}, {}, extras=frames)


@pytest.fixture(scope="module")
def rows():
    return switched(simulated())


def test_every_switch_has_its_own_networks_and_variant(rows):
    assert list(rows["switch"].unique()) == list(SWITCHES)
    assert (rows.groupby("switch").size() == 10 * (EPOCHS + 1)).all()
    assert set(rows["labels"]) == {"true"}
    part = rows["run"].str.split().str[0]
    assert rows.groupby(part)["switch"].unique().map(set)["released"] == {"trained on bytes", "all five"}
    assert {variant for _, variant in SWITCHES.values()} == set(VARIANTS) == set(FINAL)


def test_the_table_says_what_was_put_in(rows):
    table = switch_table(rows).set_index("switch")
    wiggle = rows[(rows["switch"] == PLAIN)].set_index(["seed", "epoch"])["train_accuracy"] - 0.5
    start, end = (wiggle.xs(epoch, level="epoch").mean() for epoch in (0, EPOCHS))
    row = table.loc[PLAIN]
    assert row["Q untrained"] == pytest.approx(1 / 4 + start)
    assert row["Q trained"] == pytest.approx(5 / 8 + end)
    assert row["excess"] == pytest.approx(1 / 2 - 4.5 / 1024)
    assert row["entropy trained"] == pytest.approx(100 - end)
    assert (row["communities untrained"], row["communities trained"]) == (2, 5)
    assert row["r of Q, from epoch 1"] == pytest.approx(1)
    assert row["r of entropy"] == pytest.approx(-1)
    assert abs(row["r of Q"]) < 0.5, "the untrained network is in: its wiggle is not what sets it apart"
    assert table.loc["all five", "entropy trained"] == pytest.approx(190, abs=0.1)


@pytest.fixture
def changes_of(cells):
    """What the page's cells make of rows: changes against the paper's definition, by switch."""
    names = {"np": np, "pd": pd, "nb": nbutils, "PLAIN": PLAIN, "Q_MOVES": Q_MOVES, "ENTROPY_MOVES": ENTROPY_MOVES}
    return lambda rows: cells("reconstruction", "12", "12b", "13", rows=rows, **names)["changes"]


def test_changes_are_paired_by_seed(rows, changes_of):
    changes = changes_of(rows)
    assert list(changes.index) == list(SWITCHES)[1:]
    row = changes.loc["edges of the last class"]
    assert row[["Q", "Q low", "Q high"]].tolist() == [-1 / 8] * 3, "the same networks: no spread"
    assert (row["moves Q"], row["moves entropy"]) == (True, False)
    assert row["entropy"] == 0
    assert changes.loc["strict bins", "Q"] == 0
    assert changes.loc["strict bins", "entropy"] == pytest.approx(-0.05, abs=1e-3)
    assert changes.loc["trained on bytes", "entropy"] == pytest.approx(1, abs=1e-3)
    assert list(changes.index[changes["moves entropy"]]) == [
        *("strict bins", "trained on bytes", "all but the bytes", "all five")
    ]


def test_networks_without_entropy_have_no_relative_change(rows, changes_of):
    silent = rows.assign(pattern_entropy=rows["pattern_entropy"].where(rows["seed"] > 0, 0.0))
    assert changes_of(silent).loc["strict bins", "entropy"] == pytest.approx(-0.05, abs=1e-3)
    none = changes_of(rows.assign(pattern_entropy=0.0))
    assert none["entropy"].isna().all()
    assert not none["moves entropy"].any()


def test_words_follow_from_the_books_rules(rows):
    words = switch_words(rows).set_index("switch")
    assert words.loc[PLAIN].tolist() == ["passes"] * 5 + ["supported"]
    slips = words.loc["index slips"]
    assert slips[["H1a null", "H1a untrained", "H1b", "H1"]].tolist() == ["opposite", "opposite", "fails", "refuted"]
    assert slips["H2a"] == "passes"


def test_words_are_those_of_a_study_with_these_rows(rows):
    own = rows[rows["switch"] == "index slips"]
    found = {e.test: e.outcome for e in collect_evidence([Results("x", own, pd.DataFrame(), {}, {})])}
    assert switch_words(own).iloc[0][list(found)[:5]].to_dict() == {k: found[k] for k in list(found)[:5]}
    bare = h1_evidence(own, "true")
    assert verdict([replace(e, adjusted=3 * e.p_value) for e in bare]) == switch_words(own)["H1"].item()


def test_q_that_only_drifts_does_not_pass():
    words = switch_words(switched(simulated(follows=False))).set_index("switch")
    assert set(words["H2a"]) == set(words["H3a"]) == {"fails"}


@pytest.mark.parametrize("seeds", [1, RULES.seeds - 1])
def test_too_few_networks(seeds):
    words = switch_words(switched(simulated(seeds)))
    assert set(words.drop(columns=["switch", "H1"]).stack()) == {"too few runs"}
    assert set(words["H1"]) == {"inconclusive"}


def test_a_study_that_does_not_rebuild_the_code_is_refused():
    results = simulated(2)
    without = replace(results, extras={"selectivity": pd.DataFrame()})
    with pytest.raises(
        ValueError, match="must hold the extra 'reconstruction', received those of 'mnist' with selectivity"
    ):
        switched(without)
    plain = results.runs.assign(parts="conditions")
    with pytest.raises(ValueError, match="must hold networks of part 'released', received none"):
        switched(replace(results, runs=plain))


@pytest.mark.parametrize(
    ("lost", "word"),
    [
        ([0.0, 0.001, 0.002], "leaves Q"),
        ([0.2, 0.21, 0.22], "changes Q"),
        ([-0.2, -0.3, -0.4], "changes Q"),
        ([0.0, 0.05, 0.1], "undecided"),
        ([0.3], "undecided"),
    ],
)
def test_what_the_shuffle_leaves(lost, word):
    values = {s.label: [0.7] * len(lost) for s in specifications() if s.hypothesis == "H2"}
    for one in specifications():
        if one.null == "within-class shuffle":
            values[one.label] = lost
        elif one.null == "circular shift":
            values[one.label] = [0.5] * len(lost)
    runs = [str(i) for i in range(len(lost))]
    wide = pd.DataFrame(values, index=pd.Index(runs, name="run"))
    rows = wide.melt(ignore_index=False, var_name="specification").reset_index()
    for row in shuffle_table(rows).to_dict("records"):
        assert row["Q"] == pytest.approx(0.7)
        assert row["circular shift"] == pytest.approx(0.2)
        assert row["within-class shuffle"] == pytest.approx(0.7 - np.mean(lost))
        assert row["lost"] == pytest.approx(np.mean(lost))
        assert row["the shuffle"] == word


def test_figures_show_every_switch(rows):
    drawn = reconstruction.modularity_panels(rows)
    assert [ax.get_title(loc="left") for ax in drawn.axes] == list(SWITCHES)
    for ax, name in zip(drawn.axes, SWITCHES, strict=True):
        mean = rows[rows["switch"] == name].groupby("epoch")["modularity"].mean()
        *networks, curve, null = ax.lines
        assert len(networks) == 10
        assert curve.get_ydata() == pytest.approx(mean.to_numpy())
        assert null.get_xdata().tolist() == [0, EPOCHS]


def test_a_published_series_beside_ours():
    published = pd.Series([4.0, 3.0, 1.0], index=[1, 2, 3])
    ours = {"a way": pd.DataFrame({0: [5.0, 4.0, 2.0], 1: [3.0, 4.0, 2.0]}, index=[1, 2, 3])}
    rows = reconstruction.beside_published(published, ours).set_index("series")
    assert rows.loc["published", ["first", "last", "change", "distance"]].tolist() == [4, 1, -3, 0]
    assert rows.loc["a way", ["first", "last", "change"]].tolist() == [4, 2, -2]
    assert rows.loc["a way", "distance"] == pytest.approx(np.sqrt(2 / 3)), "0, 1 and 1 apart"
    assert rows.loc["a way", "r of steps"] == pytest.approx(1), "steps of -1 and -2 beside 0 and -2"
    assert rows.loc["a way", "inside"] == pytest.approx(1 / 3), "in the first epoch alone"
    alone = reconstruction.beside_published(published, {})
    assert alone["series"].tolist() == ["published"]


def test_words_that_differ_are_bold():
    words = pd.DataFrame({"H1": ["fails", "fails"], "H2a": ["fails", "passes"]}, index=[PLAIN, "index slips"])
    changes = pd.DataFrame(
        {
            "Q": [0.5],
            "Q low": [0.25],
            "Q high": [0.75],
            "entropy": [0.01],
            "entropy low": [0.0],
            "entropy high": [0.02],
        },
        index=["index slips"],
    )
    plain, slips = reconstruction.marked_words(words.rename_axis("switch"), changes).itertuples(index=False)
    assert plain == (PLAIN, "fails", "fails", "–", "–")
    assert slips[:3] == ("index slips", "fails", "**passes**")
    assert [text.split("\xa0")[0] for text in slips[3:]] == ["0.50 (0.25", "1.00 (0.00"]
