"""The explorer of networks holds what the committed tables hold, and the page of changes what the changelog holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from nbutils.second.answers import course, sound, values_of

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "book/_static"
pytestmark = pytest.mark.slow(5)


@pytest.fixture(scope="module")
def html(explorer) -> str:
    return explorer.explorer_html(explorer.studies())


@pytest.fixture(scope="module")
def data(html) -> dict[str, Any]:
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', html)[1])


def groups_of(data, title: str) -> dict[str, dict[str, Any]]:
    return {one["title"]: one for each in data["sets"] if each["title"] == title for one in each["groups"]}


def test_numbers_survive_their_two_letters(explorer, rng):
    values = rng.normal(size=500)
    values[::7] = np.nan
    kept = explorer.encoded(values)
    found = explorer.decoded(kept)
    assert len(kept["v"]) == 1000
    np.testing.assert_array_equal(np.isnan(found), np.isnan(values))
    np.testing.assert_allclose(found, values, atol=(kept["hi"] - kept["lo"]) / 4000, equal_nan=True)
    assert explorer.decoded(explorer.encoded([2.5, 2.5])).tolist() == [2.5, 2.5]
    assert np.isnan(explorer.decoded(explorer.encoded([np.nan]))).all()


def test_dots_are_the_networks_of_the_tables(explorer, data):
    for one in explorer.studies():
        groups = groups_of(data, one.title)
        networks, _ = sound(one.tables, "small", "true")
        if networks.empty:
            assert "clean labels, many settings" not in groups
            continue
        group = groups["clean labels, many settings"]
        assert group["n"] == len(networks)
        accuracy = explorer.decoded(group["x"]["test accuracy"])
        np.testing.assert_allclose(accuracy, networks["accuracy"], atol=3e-4)
        values = values_of(one.tables, networks, ["modularity"])["modularity"]
        np.testing.assert_allclose(explorer.decoded(group["y"]["modularity Q"]), values, atol=5e-4)
        listed = one.board.set_index("measure").loc["modularity"]
        told = group["estimates"]["test accuracy"]["modularity Q"]
        numbers = [float(n.replace("−", "-")) for n in re.findall(r"−?\d\.\d+", told)]
        assert numbers == pytest.approx([listed["rho"], listed["low"], listed["high"]], abs=0.00501)
        assert numbers[0] == pytest.approx(stats.spearmanr(values, networks["accuracy"]).statistic, abs=0.00501)
        for setting in group["settings"]:
            column = next(key for key, words in explorer.SETTINGS.items() if words == setting["name"])
            levels = [setting["levels"][explorer.DIGITS.index(letter)] for letter in setting["v"]]
            shown = [f"{v:g}" if isinstance(v, float) else str(v).removeprefix("mlp:") for v in networks[column]]
            assert levels == shown


def test_lines_are_the_runs_of_the_tables(explorer, data):
    (kmnist,) = [one for one in explorer.studies() if one.title == "KMNIST"]
    group = groups_of(data, "KMNIST")["true labels, epoch by epoch"]
    networks, _ = sound(kmnist.tables, "runs", "true")
    q, accuracy = (course(kmnist.tables, networks, name) for name in ("modularity", "test_accuracy"))
    assert (group["n"], group["epochs"]) == q.shape
    np.testing.assert_allclose(explorer.decoded(group["y"]["modularity Q"]).reshape(q.shape), q, atol=5e-4)
    assert explorer.decoded(group["x"]["epoch"]).round(2).tolist() == list(range(21))
    change = stats.ttest_1samp(q[:, -1] - q[:, 0], 0).confidence_interval(0.95)
    told = group["estimates"]["epoch"]["modularity Q"]
    assert told.startswith(f"{(q[:, -1] - q[:, 0]).mean():.2f} (95\xa0% interval {change.low:.2f}")
    within = np.mean([stats.spearmanr(a[1:], b[1:]).statistic for a, b in zip(q, accuracy, strict=True)])
    assert group["estimates"]["test accuracy"]["modularity Q"].startswith(f"{within:.2f}".replace("-", "−"))


def test_a_grid_goes_along_its_noise(explorer, data):
    (kmnist,) = [one for one in explorer.studies() if one.title == "KMNIST"]
    group = groups_of(data, "KMNIST")["a grid of wrong labels"]
    networks, _ = sound(kmnist.tables, "grid")
    np.testing.assert_allclose(explorer.decoded(group["x"]["share of labels redrawn"]), networks["noise"], atol=3e-4)
    listed = kmnist.board.set_index("measure").loc["linear_probe"]
    told = group["estimates"]["share of labels redrawn"]["linear probe, last layer"]
    assert told.startswith(f"{listed['noise_rho']:.2f}".replace("-", "−"))


def test_what_cannot_be_measured_is_said(explorer, data):
    board = next(one.board for one in explorer.studies() if one.title == "KMNIST").set_index("measure")
    told = groups_of(data, "KMNIST")["clean labels, many settings"]["estimates"]["test accuracy"]
    for name, words in explorer.MEASURES.items():
        assert ("not measurable" in told[words]) != board.loc[name, "measurable"]


def test_degenerate_networks_are_counted(explorer, data):
    for one in explorer.studies():
        for design, labels, title in explorer.RUNS:
            networks, left_out = sound(one.tables, design, labels)
            group = groups_of(data, one.title).get(title)
            assert (group is None) == networks.empty
            if group:
                assert f"({left_out} degenerate left out)" in group["said"]["epoch"] or not left_out


def test_the_explorer_is_light_and_loads_nothing(data, html):
    assert len(json.dumps(data, ensure_ascii=False).encode()) < 300_000
    assert len(html.encode()) < 400_000
    assert not re.findall(r'(?:src|href)="(?!data:)', html)
    panels = re.findall(r'role="img" aria-label="([^"]+)"', html)
    assert len(panels) == sum(one["groups"][0]["kind"] == "dots" for one in data["sets"])
    assert all("networks, rank correlation" in alt and "interval" in alt for alt in panels)
    assert "```{picture} explorer" in (ROOT / "book/explore.md").read_text("utf-8")


def test_a_book_with_fewer_tables_has_a_smaller_explorer(explorer):
    fewer = [one for one in explorer.studies() if one.title in ("Digits (8×8)", "KMNIST")]
    html = explorer.explorer_html(fewer)
    assert html.count('class="nb-panel"') == 1
    rho = explorer.format_number(fewer[1].board.set_index("measure").loc["modularity", "rho"], 2)
    assert f"rank correlation with test accuracy is {rho} to {rho}" in html
    assert "is – to –" in explorer.explorer_html(fewer[:1]), "digits have no networks with many settings"
    assert "No tables of the second study are here." in explorer.explorer_html([])


def test_every_class_has_a_style(html):
    named = set(re.findall(r"\.(nb-[\w-]+)", (STATIC / "book.css").read_text("utf-8")))
    used = {kind for kinds in re.findall(r'class="([^"]+)"', html) for kind in kinds.split()}
    assert used - named <= {"mathjax_ignore"}


def test_ticks_are_round(explorer):
    assert explorer._ticks(np.array([0.41, 0.93])) == [0.4, 0.6, 0.8, 1.0]
    assert explorer._ticks(np.array([3.0, 3.0])) == [3.0, 4.0], "an axis has a length"


# --- what was found when


def test_the_page_of_changes_is_short_and_in_order():
    text = (ROOT / "book/changes.md").read_text("utf-8")
    words = re.findall(r"\w[\w'’-]*", re.sub(r"\]\([^)]*\)", "]", text))
    assert len(words) <= 700
    days = [int(day) for day in re.findall(r"\*\*(\d+) November", text)]
    assert days == sorted(days)
    rows = [int(day) for day in re.findall(r"^\| (\d+) November", text, re.MULTILINE)]
    assert rows == sorted(rows)
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if not target.startswith("pages/"):
            assert (ROOT / "book" / target).is_file()


def test_corrections_stand_in_the_changelog():
    """Words that were withdrawn are those that the changelog names."""
    changelog = " ".join((ROOT / "CHANGELOG.md").read_text("utf-8").split())
    for fact in (
        "MNIST, Fashion-MNIST and PlantVillage (not supported before) and CIFAR-10 (refuted before)",
        "not supported, instead of refuted, on CIFAR-10",
        'the reading is "unlikely" (MNIST: was "possible")',
        "KMNIST's communities beyond chance and by training are *undecided* by the frozen rule, its remainder and",
        "Standardised inputs do not keep neurons alive on MNIST, nor with random labels",
        "told the two seeds of a configuration apart by the place of their rows, not by their seed",
        "the published ResNet-20 as a whole is *among* nineteen untrained twins",
        '*no association* means "not seen by this statistic"',
    ):
        assert fact in changelog
