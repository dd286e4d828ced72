"""The rules of the second study: the page says what the code does."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from nbutils.second import questions
from nbutils.second import zoo as zoos
from nbutils.second.questions import DESIGNS, FRESH, PROTOCOL, QUESTIONS, rules_digest
from nbutils.second.zoo import AXES, SHAPE, ZOOS, zoo_digest, zoo_members

PAGE = (Path(__file__).resolve().parents[2] / "book/hypotheses/rules.md").read_text("utf-8")
ROWS = {cells[0]: cells[1:] for cells in (re.findall(r"[^|]+", line) for line in PAGE.splitlines() if line[:2] == "| ")}
ROWS = {name.strip(): [cell.strip() for cell in cells if cell.strip()] for name, cells in ROWS.items()}


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ("H1 beyond chance", ["H1 beyond chance"]),
        ("H1 by training", ["H1 by training"]),
        ("H1 beyond class preference", ["H1 beyond class preference"]),
        ("H2, H3 the paper's statistic", [q.name for q in QUESTIONS if "the paper's statistic" in q.name]),
        ("H2, H3 within runs", [q.name for q in QUESTIONS if "within runs" in q.name]),
        ("H2, H3 performance", [q.name for q in QUESTIONS if "performance" in q.name]),
        ("H2, H3 added", [q.name for q in QUESTIONS if "added" in q.name]),
    ],
)
def test_thresholds_on_the_page_are_those_of_the_code(row, names):
    threshold = float(ROWS[row][-1])
    asked = [question for question in QUESTIONS if question.name in names]
    assert asked
    assert {question.threshold for question in asked} == {threshold}
    assert {question.design for question in asked} <= set(DESIGNS)


def test_every_question_is_on_the_page_once():
    assert len({question.name for question in QUESTIONS}) == len(QUESTIONS) == 3 + 5 * 3
    signs = {(q.hypothesis, q.direction) for q in QUESTIONS if q.statistic != "added"}
    assert signs == {("H1", 1), ("H2", 1), ("H3", -1)}, "the paper's signs"
    assert {q.measure for q in QUESTIONS if q.hypothesis == "H3"} == {"active_entropy", "block_entropy"}


@pytest.mark.parametrize(
    ("axis", "row"),
    [
        ("examples", "training images"),
        ("learning_rate", "learning rate"),
        ("dropout", "dropout"),
        ("weight_decay", "weight decay (AdamW)"),
        ("batch_size", "batch size"),
        ("epochs", "epochs"),
        ("width", "neurons of the first hidden layer"),
        ("depth", "hidden layers"),
    ],
)
def test_axes_on_the_page_are_those_of_the_code(axis, row):
    told = ROWS[row][0].partition(";")[0].replace(",", "") if axis == "examples" else ROWS[row][0].partition(";")[0]
    numbers = told.split() if axis == "examples" else told.split(",")
    assert [float(number) for number in numbers] == list(AXES[axis])


def test_numbers_of_the_protocol_stand_on_the_page():
    words = " ".join(PAGE.replace(" %", "%").split())
    for told in (
        f"**held-out probe** is {PROTOCOL.probe:,} test images",
        f"{PROTOCOL.draws} draws, averaged; the heaviest {PROTOCOL.density:.0%} of",
        f"Below {PROTOCOL.reliability}, or where its range over the networks is less than {PROTOCOL.spread:.0%} of",
        f"true labels, at least {PROTOCOL.runs} sound ones; a zoo needs {PROTOCOL.zoo}",
        f"the adjusted p value is at most {PROTOCOL.alpha}",
        f"the {PROTOCOL.level:.0%} interval lies wholly beyond",
        f"the {2 * PROTOCOL.level - 1:.0%} interval lies within",
    ):
        assert told in words, told
    sizes = {kind: zoo.size for kind, zoo in ZOOS.items()}
    assert (ROWS["zoo"][0], sizes["small"]) == ("336 networks with true labels, below", 336)
    assert ROWS["paper's zoo"][0].startswith(f"{sizes['paper']} networks of 512-512")
    assert ROWS["one loss"][0].startswith(f"{sizes['one loss']} networks, each trained to a training loss of 0.1 nats")
    assert {"kmnist", "plantvillage", "cifar10"} == set(FRESH)


def test_the_page_shows_three_tables_at_most():
    in_sight = re.sub(r"<details.*?</details>", "", PAGE, flags=re.DOTALL)
    assert len(re.findall(r"^\| ---", in_sight, re.MULTILINE)) <= 3
    assert PAGE.count("<details") == PAGE.count("</details>") == PAGE.count("<summary>")


def test_the_digest_changes_with_any_threshold(monkeypatch):
    before = rules_digest()
    monkeypatch.setattr(questions, "QUESTIONS", (replace(QUESTIONS[0], threshold=0.04), *QUESTIONS[1:]))
    assert rules_digest() != before
    monkeypatch.setattr(questions, "QUESTIONS", QUESTIONS)
    monkeypatch.setattr(questions, "PROTOCOL", replace(PROTOCOL, zoo=199))
    assert rules_digest() != before


def test_the_digest_of_the_zoos_changes_with_any_value(monkeypatch):
    found = {zoo_digest()}
    for name, value in (("AXES", {**AXES, "dropout": (0.0, 0.2, 0.4)}), ("SEED", 1)):
        with monkeypatch.context() as changed:
            changed.setattr(zoos, name, value)
            found.add(zoo_digest())
    monkeypatch.setattr(zoos, "ZOOS", {**ZOOS, "paper": replace(ZOOS["paper"], families=4)})
    found.add(zoo_digest())
    assert len(found) == 4


@pytest.mark.parametrize("kind", list(ZOOS))
def test_families_differ_in_one_axis_and_seeds_in_nothing(kind):
    zoo, members = ZOOS[kind], zoo_members("digits", kind)
    assert len(members) == zoo.size == len({member.run for member in members})
    assert len({member.configuration for member in members}) * zoo.seeds == zoo.size
    for family in range(len(zoo.axes) * zoo.families):
        own = [member for member in members if member.family == family]
        (axis,) = {member.axis for member in own}
        assert [member.settings[axis] for member in own] == [value for value in AXES[axis] for _ in range(zoo.seeds)]
        assert len({tuple(v for k, v in member.settings.items() if k != axis) for member in own}) == 1
    along = [member.axis for member in members]
    assert {axis: along.count(axis) for axis in zoo.axes} == dict.fromkeys(zoo.axes, 3 * zoo.families * zoo.seeds)
    again = zoo_members("mnist-5k", kind)
    assert [member.settings for member in again] == [member.settings for member in members]
    assert all(member.run.examples % 128 == 0 for member in members), "whole batches, whatever their size"


def test_shapes_of_networks_follow_width_and_depth():
    models = {(m.settings["width"], m.settings["depth"]): m.run.model for m in zoo_members("digits")}
    assert models[256, 1] == "mlp:256"
    assert models[512, 2] == "mlp:512-256"
    assert models[384, 3] == "mlp:384-192-192"
    assert set(SHAPE) == {"width", "depth"}
    assert {m.run.dataset for m in zoo_members("cifar10")} == {"cifar10-10k-16k"}


def test_another_kind_of_zoo_is_refused():
    with pytest.raises(
        ValueError, match="kind must be one of small, paper, one loss, vgg, resnet, vit, received 'large'"
    ):
        zoo_members("digits", "large")
