"""Pages of the second study: what they say is what the answers and leaderboards hold."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from nbutils.data.datasets import load_dataset
from nbutils.drawing.display import format_number, interval_text
from nbutils.evaluation.reliability import Reliability
from nbutils.evaluation.words import Estimate
from nbutils.experiments.left_over import LEFT_QUESTIONS
from nbutils.pages import answering, dying, landing
from nbutils.pages.answering import Found, decisions, memory, open_all, open_one, show_tasks
from nbutils.runs.models import build_model
from nbutils.second.answers import Answer, course, sound
from nbutils.second.candidates import CANDIDATES
from nbutils.second.networks import Tables, read_tables
from nbutils.second.questions import QUESTIONS, rules_digest
from nbutils.second.replication import OTHERS, RULES_COMMIT, SECOND
from nbutils.second.tasks import SERIES, USUAL
from nbutils.stats import holm

ROWS = {  # measure, what a page calls it, family, needs, rho with its interval, detects, cost
    "modularity": ("modularity Q", "communities", "labels", 0.05, -0.1, 0.2, 0.9, 1.0),
    "active_entropy": ("binned entropy per active neuron", "entropy", "images", -0.4, -0.6, -0.2, 0.7, 0.1),
    "block_entropy": ("entropy of blocks of six", "entropy", "images", -0.1, -0.3, 0.1, 0.6, 0.1),
    "linear_probe": ("linear probe, last layer", "representation", "labels", 0.9, 0.8, 0.95, 0.8, 2.0),
    "train_loss": ("training loss (log)", "training", "training", -0.3, -0.5, -0.1, 0.99, 0.0),
}


def board(sign: int = 1) -> pd.DataFrame:
    columns = ["measure", "called", "family", "needs", "rho", "low", "high", "detects", "seconds"]
    table = pd.DataFrame([(name, *row) for name, row in ROWS.items()], columns=columns)
    if sign < 0:
        table["rho"], table["low"], table["high"] = -table["rho"], -table["high"], -table["low"]
    more = {"measurable": True, "noise_rho": 0.5, "reliability": 0.9, "adjusted": 0.01, "granulated": 0.1, "gain": 0.0}
    fixed = table["rho"].where(table["measure"] != "linear_probe", 0.3 * table["rho"])
    return table.assign(**more, detects_low=table["detects"] - 0.05, images_fixed=fixed)


def found(dataset: str = "kmnist", value: float = 0.05, sign: int = 1) -> Found:
    """A data set on which every question has the same estimate."""
    estimate = Estimate(value, value - 0.01, value + 0.01, (value - 0.008, value + 0.008), 0.001)
    half = Reliability(0.9, 0.95, 0.4, "")
    answers = [Answer(dataset, q, estimate, half, 300, 2, True, 0.01, 0.01) for q in QUESTIONS]
    about = {"commit": "abc", "time": "2026-11-23T03:20:00", "labels": "true", "status": "done", "degenerate": False}
    networks = pd.DataFrame({"run": ["a", "b"], "designs": ["small", "runs"]}).assign(**about)
    networks = networks.assign(accuracy=[0.5, 0.9], family=[0, -1])
    zoo = [f"z{number}" for number in range(9)]
    more = pd.DataFrame({"run": zoo, "designs": "small", "family": range(1, 10)}).assign(**about)
    more["accuracy"] = np.linspace(0.5, 0.9, 9)
    rows = [("a", 0.5, "whole"), ("b", 0.25, "whole"), ("b", 0.75, "first")]  # before training
    before = pd.DataFrame(rows, columns=["run", "value", "part"]).assign(epoch=0, measure="remainder")
    probe = pd.DataFrame({"run": zoo, "value": [2, 1, 4, 3, 5, 7, 6, 8, 9]})  # but for three pairs in order: rho 0.95
    probe = probe.assign(part="whole", epoch=5, measure="linear_probe")
    none, measures = pd.DataFrame(), pd.concat([before, probe], ignore_index=True)
    tables = Tables(pd.concat([networks, more], ignore_index=True), measures, none, none)
    return Found(dataset, dataset.upper(), "networks", tables, {a.question.name: a for a in answers}, board(sign))


def test_a_finding_has_every_question_with_its_word():
    one = found()
    for hypothesis in ("H1", "H2", "H3"):
        said = one.finding(hypothesis)
        own = [answer for answer in one.answers.values() if answer.question.hypothesis == hypothesis]
        assert len(re.findall(r"\*\*(.+?)\*\* \(0\.050?\)", said)) == len(own)
    boxes = one.show_finding().text
    assert boxes.count("nb-callout") == 3
    assert "within runs" not in boxes, "the box holds what decides"
    few = replace(one, answers={name: replace(a, enough=False) for name, a in one.answers.items()})
    assert few.show_finding().text.count("too few networks") == 3
    assert rules_digest() in one.source
    assert RULES_COMMIT in one.source


def test_the_landing_page_counts_words_and_spans_estimates():
    studies = [found(value=0.05), found("mnist", value=-0.3), replace(found("digits"), board=pd.DataFrame())]
    text = landing.answer_text(studies)
    assert text.splitlines()[0] == landing.START
    assert text.splitlines()[-1] == landing.END
    assert len(re.findall(r"^\d\. \*\*", text, re.MULTILINE)) == 5
    assert "On KMNIST and MNIST the graph" in text, "without a zoo, a data set is not told of"
    text = " ".join(text.split(landing.START)[1].split())
    assert "correlation with accuracy is −0.30 to 0.05 (*contradicted* on 1, *no association* on 1 of 2); among" in text
    assert "those trained on as many images, 0.05 on average (asked afterwards)." in text
    assert "**Modularity is nowhere shown to tell which network performs better.**" in text
    assert "**One entropy or the other falls as performance rises on some data sets.**" in text
    assert "**Communities are there.**" in text, "beyond chance on one of two"
    assert "is left, beside 0.25 before training, by a statistic that can miss groups across" in text
    assert "Training changes that by −0.30 to 0.05 (" in text
    apart = [found(value=0.4), found("mnist", value=0.4)]
    low = replace(apart[1].answers[landing.BEYOND], estimate=found(value=0.0).answers[landing.BEYOND].estimate)
    apart[1] = replace(apart[1], answers=apart[1].answers | {landing.BEYOND: low})
    mostly = "**Communities are there, and follow classes; on KMNIST more than that is seen.**"
    assert mostly in landing.answer_text(apart)
    least = [replace(one, answers=one.answers | {landing.BEYOND: low}) for one in apart]
    assert "**Communities are there, and as far as can be seen they are about classes.**" in landing.answer_text(least)
    assert "strongest is *linear probe, last layer*, with a rank correlation of 0.95 (" in text
    assert "), and among networks trained on as many images *binned entropy per active neuron*, with −0.40" in text
    assert "**Modularity notices wrong labels.** The area" in text
    assert "is 0.90 for modularity on average, and 0.90 on KMNIST; of 5 measures that can be asked this 2 reach" in text
    rows = [line for line in landing.answer_text(studies).splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 2
    assert "**contradicted** −0.30" in rows[3]
    assert "22 networks" in text


def left_over(value: float) -> list[Answer]:
    estimate = Estimate(value, value - 0.01, value + 0.01, (value - 0.008, value + 0.008), 0.001)
    half = Reliability(0.9, 0.95, 0.4, "")
    return [Answer(name, q, estimate, half, 300, 2, True, 0.01, 0.01) for q in LEFT_QUESTIONS for name in "ab"]


def test_the_landing_page_says_what_is_left_over_within_classes():
    apart = [found(value=0.4), found("mnist", value=0.4)]
    text = " ".join(landing.answer_text(apart, left_over(0.3)).split())
    assert "**Communities are there, and follow classes, but not classes alone.**" in text
    assert (
        "can miss groups across classes. One of all that fires together within classes finds 0.30 in smaller "
        "networks (*supported* on 2 of 2)" in text
    )
    assert "and training changes that by 0.30 (*supported* on 2 of 2)." in text
    assert "(asked afterwards); of what is left over within classes, 0.30 (*supported* on 2 of 2)." in text
    none = " ".join(landing.answer_text(apart, left_over(0.0)).split())
    assert "not classes alone" not in none
    assert "finds 0.00 in smaller networks (*no association* on 2 of 2)" in none


def test_the_landing_page_names_where_wrong_labels_are_noticed_least():
    weak = board()
    weak.loc[weak["measure"] == "modularity", "detects"] = 0.7
    text = " ".join(landing.answer_text([found(), replace(found("mnist"), board=weak)]).split())
    assert "**Modularity notices wrong labels on some data sets.** The area" in text
    assert "is 0.80 for modularity on average, and 0.70 on MNIST; of 5 measures that can be asked this 1 reach" in text


def test_an_amended_word_stands_beside_the_first_one_where_they_differ():
    one = found(value=0.4)
    assert "amended:" not in landing.answer_text([one])
    name = "H1 beyond chance"
    late = {key: replace(one.answers[key], adjusted=0.06) for key in (name, "H1 by training")}
    told = replace(one, answers=one.answers | late)
    text = " ".join(landing.answer_text([told]).split())
    assert "(*undecided* on 1 of 1; amended: *supported* on 1)." in text
    assert "; amended: supported" in text
    assert "beyond chance **undecided, amended: supported** (0.40)" in told.finding("H1")
    assert "undecided, amended: supported" in told.show_answers("H1").text
    assert answering.show_words([told], "H1").text.count("undecided\u00a0●, amended: supported") == 2


def test_nothing_studied_is_said():
    assert "No data set has been studied yet." in landing.answer_text([])


def test_the_answer_is_written_between_its_marks(tmp_path):
    for place in landing.PLACES:
        (tmp_path / place).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / place).write_text(f"before\n{landing.START}\nold\n{landing.END}\nafter\n", "utf-8")
    landing.write_answer(tmp_path, [found()])
    first = (tmp_path / "README.md").read_text("utf-8")
    assert first.startswith(f"before\n{landing.START}\n")
    assert first.endswith(f"{landing.END}\nafter\n")
    assert "old" not in first
    landing.write_answer(tmp_path, [found()])
    assert (tmp_path / "README.md").read_text("utf-8") == first
    (tmp_path / "README.md").write_text("nothing", "utf-8")
    with pytest.raises(ValueError, match=r"README\.md needs the two lines"):
        landing.write_answer(tmp_path, [found()])


def test_a_decision_needs_one_sign_everywhere():
    both = pd.concat([found(name).board.assign(dataset=name) for name in ("A", "B")])
    table = decisions(both, least=0.2).set_index(["aim", "what you have"])
    performance, noise = table.loc["predict performance"], table.loc["detect wrong labels"]
    assert performance["use"].tolist() == [
        "training loss (log)",
        "binned entropy per active neuron",
        "linear probe, last layer",
    ]
    # The best that needs no more than is at hand: training images are not, where others are.
    assert noise["use"].tolist() == ["training loss (log)", "binned entropy per active neuron", "modularity Q"]
    assert performance["seconds"].tolist() == [0.0, 0.1, 2.0]
    same = table.loc["the same, with as many training images"]
    assert same["use"].tolist() == ["training loss (log)", *["binned entropy per active neuron"] * 2]
    torn = pd.concat([board().assign(dataset="A"), board(-1).assign(dataset="B")])
    assert decisions(torn, least=0.2)["use"].tolist()[:6] == ["none"] * 6
    assert decisions(both, least=0.99)["use"].tolist()[:6] == ["none"] * 6


def test_practical_tasks_of_one_data_set_and_of_two():
    """Which side means wrong labels is learned on other data sets: one alone has two tasks."""
    rng, names = np.random.default_rng(0), [*SERIES, *USUAL, "test_accuracy"]
    about = {"designs": "runs", "status": "done", "degenerate": False}
    networks = pd.DataFrame({"run": list("abcd"), "labels": ["true", "true", "random", "random"]}).assign(**about)
    rows = [
        (run, epoch, "whole", name, (name == "test_accuracy") * rng.random() + (name == "train_loss") * (run in "cd"))
        for run in "abcd"
        for epoch in range(7)
        for name in names
    ]
    series = pd.DataFrame(rows, columns=["run", "epoch", "part", "measure", "value"])
    studies = []
    for name in ("A", "B"):
        studies.append(
            replace(found(name), title=name, tables=Tables(networks, pd.DataFrame(), series, pd.DataFrame()))
        )
    boards = pd.concat([one.board.assign(dataset=one.title, detects_high=1.0) for one in studies])
    both, said = show_tasks(studies, boards)
    assert said.endswith("*Wrong labels:* training loss (log) (0.99); modularity Q 0.90.")
    assert "*Random labels, after five epochs:* training loss (1.00)" in said
    assert both.text.count("<table") == 4
    _, alone = show_tasks(studies[:1], boards[boards["dataset"] == "A"])
    assert "Wrong labels" not in alone
    assert alone.startswith("*Epoch:* best is ")


def test_every_measure_has_its_memory():
    found_memory = memory()
    assert set(found_memory.index) == {title for one in CANDIDATES for title in one.columns.values()}
    assert (found_memory >= 0).all(), "run python -m benchmarks.costs"
    free = {title for one in CANDIDATES if one.name in ("accuracy", "training") for title in one.columns.values()}
    assert (found_memory.drop(list(free)) > 0).all(), "only what is read or counted at once takes none"


def test_figures_show_every_measure(rng):
    one = found()
    dots = answering.worth_figure([one]).axes[0].lines
    assert sum(len(line.get_xdata()) for line in dots) == len(ROWS)
    forest = answering.forest_figure([one, found("mnist")]).axes[0]
    assert [text.get_text() for text in forest.get_yticklabels()][:3] == list(answering.OURS.values())
    assert len(forest.collections) == 2


def test_every_dot_of_the_leaderboard_says_place_values_and_intervals():
    turned = board(-1).assign(**{end: board(-1)[end] / 2 for end in ("rho", "low", "high")})
    turned.loc[turned["measure"] == "block_entropy", "measurable"] = False
    other = replace(found("mnist"), board=turned)
    plot = answering.worth_plot([found(), other])
    listed = pd.concat([one.board[one.board["measurable"]] for one in (found(), other)])
    mean = listed.groupby("called")[["rho", "detects"]].mean()
    order = mean["rho"].abs().sort_values(ascending=False, kind="stable")
    assert [point.text.partition(":")[0] for point in plot.points] == list(order.index)
    for place, point in enumerate(plot.points, 1):
        called, _, said = point.text.partition(":")
        own = listed[listed["called"] == called]
        assert f"place {place} of {len(order)}; mean ρ {format_number(mean.loc[called, 'rho'], 2)};" in said
        assert f"wrong labels {format_number(mean.loc[called, 'detects'], 2)}." in said
        for row in own.itertuples():
            assert interval_text(row.rho, row.low, row.high) in said
        assert (point.x, point.y) == pytest.approx((abs(own["rho"].mean()), own["detects"].mean()))
    letters = {text for *_, text in plot.names}
    assert letters <= {"**Q**", "**E**", "**B**"}
    text = answering.show_worth([found(), other]).text
    known = listed.dropna(subset="detects")
    clear = known.groupby("called").filter(lambda own: own["detects"].mean() >= 0.9).groupby("called")["noise_rho"]
    turned = sum(set(np.sign(own)) == {-1, 1} for _, own in clear)
    assert f"{len(clear)} of {len(plot.points)} measures detect wrong labels with an area of 0.9 or more" in text
    assert f"with {turned} of them the side that means wrong is not the same on every data set" in text


def test_the_leaderboard_counts_places_as_its_table_does():
    """The committed tables, whose page sorts by the size of the mean."""
    studies = [one for one in open_all() if len(one.board)]
    boards = pd.concat([one.board[one.board["measurable"]] for one in studies])
    order = boards.groupby("called")["rho"].mean().abs().sort_values(ascending=False).index
    for point in answering.worth_plot(studies).points:
        called, place = re.match(r"(.*?): place (\d+) of", point.text).groups()
        assert order[int(place) - 1] == called


def test_unknown_tables_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"tables of the second study are committed of .*, received 'nothing'"):
        open_all(["nothing"])
    with pytest.raises(FileNotFoundError, match=r"has no networks\.parquet; run python -m nbutils replicate"):
        open_one("kmnist", str(tmp_path))


def test_committed_tables_agree_with_their_answers(root: Path):
    """What is committed was concluded from the tables beside it."""
    for one in [*open_all(), *open_all(where=OTHERS)]:
        networks, _ = answering.sound(one.tables, "small", "true")
        if len(one.board):
            values = answering.values_of(one.tables, networks, ["modularity"])["modularity"]
            listed = one.board.set_index("measure").loc["modularity"]
            whole = np.isfinite(values.to_numpy())
            accuracy = networks["accuracy"].reset_index(drop=True)[whole]
            assert values[whole].corr(accuracy, method="spearman") == pytest.approx(listed["rho"])
            assert one.answers["H2 performance"].estimate.value == pytest.approx(listed["rho"])
            assert one.answers["H2 performance"].networks == whole.sum()


def test_other_architectures_are_told_by_kind_and_corrected_with_all_others():
    every = {kind: answering.open_kind(kind) for kind in ("convolutional", "transformer")}
    assert [one.dataset for one in every["transformer"]] == ["cifar10-vit"]
    assert "cifar10-vgg" in [one.dataset for one in every["convolutional"]]
    for one in (one for studies in every.values() for one in studies):
        assert one.title.endswith(", CIFAR-10")
        assert "a neuron is a" in one.show_networks().text
        assert not any(answer.confirmatory for answer in one.answers.values())
        named = one.board.set_index("measure")
        assert np.isfinite(named.loc["modularity", "gain"]), "a baseline that is defined nowhere is left out"
        again = open_one("cifar10", architecture=one.dataset.rpartition("-")[2])
        assert [a.told for a in again.answers.values()] == [a.told for a in one.answers.values()]
    pooled = [a for one in [*open_all(), *open_all(where=OTHERS)] for a in one.answers.values() if not a.confirmatory]
    p_values = [a.estimate.p_value for a in pooled]
    known = np.isfinite(p_values)
    adjusted = holm(np.array(p_values)[known])
    assert np.allclose(adjusted, np.array([a.adjusted for a in pooled])[known])
    said = answering.show_findings(every["transformer"]).text
    assert "Vision transformer, CIFAR-10: what the networks answer" in said


def test_dead_neurons_are_those_that_nothing_makes_positive(rng):
    network = build_model("mlp:6-4", 3, 2).eval()
    inputs = torch.from_numpy(rng.random((50, 3)).astype(np.float32))
    with torch.no_grad():
        network[0].linear.weight.abs_()
        network[0].linear.bias[:] = torch.tensor([-9.0, -9.0, 9.0, 9.0, 9.0, 9.0])
        network[1].linear.weight.zero_()
        network[1].linear.bias[:] = torch.tensor([-1.0, 1.0, 1.0, 1.0])
    assert dying.dead_by_layer(network, inputs) == [pytest.approx(2 / 6), 0.25]


def test_the_sum_of_mean_inputs_is_that_of_the_images():
    for name in ("digits", "mnist-5k"):
        assert dying.mean_sum(name) == pytest.approx(load_dataset(name).train_inputs.mean(axis=0).sum(), rel=1e-4)
    assert dying.mean_sum("plantvillage@32") == pytest.approx(dying.mean_sum("plantvillage") / 4), (
        "a quarter of the pixels"
    )


def test_both_studies_have_a_row_each():
    found = dying.both_studies()
    assert len(found) == 6
    assert found["shift of one step"].is_monotonic_increasing
    assert found["dead, inputs 0 to 1"].between(0, 1).all()
    networks = read_tables(SECOND / "mnist").networks
    for labels, column in (("true", "dead, standardised inputs"), ("random", "random labels, standardised")):
        dead = networks[(networks["designs"] == "runs") & (networks["labels"] == labels)]["dead"].mean()
        assert found.set_index("data set").loc["MNIST", column] == pytest.approx(dead)
    twice = dying.both_studies(rate=0.002)["shift of one step"]
    assert np.allclose(twice, 2 * found["shift of one step"])


def test_the_comparison_counts_words_and_marks_what_is_confirmatory():
    studies = [found(value=0.05), found("mnist", value=-0.3)]
    table = answering.show_words(studies, "H2").text
    assert table.count("●") == 1 + 5, "the caption's and KMNIST's, not MNIST's"
    figure = answering.questions_figure(studies, "H2")
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == [
        a.question.name[3:].replace(", ", ",\n") for a in studies[0].answers.values() if a.question.hypothesis == "H2"
    ] + [""]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["KMNIST", "MNIST"]


def test_the_board_s_box_says_where_ours_stand():
    said = answering.show_best([found(), found("mnist")]).text
    assert "linear probe, last layer (0.90); binned entropy per active neuron (−0.40)" in said
    assert "modularity Q 5, binned entropy per active neuron 2, entropy of blocks of six 4" in said
    assert "among 5" in said


def test_what_could_refute_the_board_is_tried_on_every_data_set():
    one = next(each for each in open_all() if each.dataset == "kmnist")
    table = answering.refuted([one])
    assert set(answering.OURS.values()) <= set(table["measure"])
    assert (table["smallest"] <= table["ρ"]).all()
    assert (table["ρ"] <= table["largest"]).all()
    listed = one.board.set_index("called")["rho"]
    assert np.allclose(table["ρ"], listed[table["measure"]])
    assert (table["by luck"] < 0.35).all()


def test_communities_settle_and_labels_are_memorised(root: Path):
    """On the digits' own tables: what is shown is what the series hold; without them a sentence stands there."""
    tables = read_tables(root / SECOND / "digits")
    one = replace(found("digits"), tables=tables)
    long, _ = sound(tables, "memorising")
    learned = pd.DataFrame(course(tables, long, "train_accuracy", first=1).T)
    q = pd.DataFrame(course(tables, long, "modularity", first=1).T)
    rho = answering.memorising_rho(one)
    assert list(rho.columns) == list(answering.OURS)
    assert np.allclose(rho["modularity"], [q[i].corr(learned[i], method="spearman") for i in q])
    text = answering.show_memorising(one).text
    assert len(long) == 5
    assert "<svg" in text
    assert f"{rho['modularity'].mean():.2f}".replace("-", "−") in text
    assert (learned.max() >= 0.95).all(), "all of them learned their labels"
    runs, _ = sound(tables, "runs", "true")
    step, searches = (course(tables, runs, name) for name in ("agreement", "searches"))
    assert step.shape == (10, 10)
    assert np.isfinite(step).all()
    assert (searches[:, -1] > 0.5).all()
    shown = answering.show_settling(one).text
    assert "<svg" in shown
    assert f"{step[:, -1].mean():.2f}" in shown
    early = replace(one, tables=replace(tables, networks=tables.networks[tables.networks["designs"] == "grid"]))
    assert "do not follow" in answering.show_settling(early).text
    assert "no networks" in answering.show_memorising(early).text


def test_a_folder_whose_name_ends_in_an_architecture_is_a_data_set(root: Path, tmp_path, monkeypatch):
    """Only what stands among other architectures has one in its name."""
    monkeypatch.setitem(answering.TITLES, "letters-vgg", "Letters")
    for table in (root / SECOND / "digits").iterdir():
        (tmp_path / table.name).write_bytes(table.read_bytes().replace(b"\ndigits,", b"\nletters-vgg,"))
    one = open_one("letters-vgg", str(tmp_path))
    assert (one.dataset, one.title) == ("letters-vgg", "Letters")
    assert one.about.startswith("fully connected")
    assert one.answers["H1 beyond chance"].networks == 10
