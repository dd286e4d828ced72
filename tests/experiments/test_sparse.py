"""Networks with motif channels, looked at: truths that one can check by hand, and rows of a small case."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from nbutils.experiments.sparse import density_cases, density_rows, full_cases, parted_cases, sparse_cases, sparse_rows
from nbutils.motifs.imposed_density import DENSITIES, impose_density
from nbutils.motifs.motif_units import community_values, look_at_units, place_units
from nbutils.motifs.sparse_settings import CONDITIONS, Schedule, SparseCase, SparseSettings
from nbutils.motifs.sparse_training import SparseTraining

SMALL = SparseSettings(samples=256, schedule=Schedule(every=64, fall=0.01, stop=0.2), batch=32, validation=32)


def test_conditions_of_a_seed_differ_in_nothing_else():
    cases = sparse_cases(["digit_circle_small"], seeds=2)
    assert [(one.training.seed, one.training.condition) for one in cases] == [
        (s, c) for s in (0, 1) for c in CONDITIONS
    ]
    alike = {replace(one.training, condition="none", penalty=0.0) for one in cases[:5]}
    assert len(alike) == 1
    assert len({one.settings for one in cases}) == 10


def test_the_full_size_has_the_published_schedule():
    first, *_ = cases = full_cases()
    assert len(cases) == len({one.settings for one in cases}) == 9
    schedule = first.training.schedule
    assert (schedule.every, schedule.fall, schedule.factor, schedule.start) == (20_000, 1e-7, 0.75, 0.5)


def test_other_tasks_are_refused():
    with pytest.raises(ValueError, match="datasets must be among digit_circle_small, token_lines, tone_lines"):
        sparse_cases(["mnist"])
    with pytest.raises(ValueError, match="datasets must be 'digit_circle', received 'mnist'"):
        full_cases(["mnist"])
    with pytest.raises(ValueError, match="datasets must be 'digit_circle_small', received 'mnist'"):
        parted_cases(["mnist"])
    with pytest.raises(ValueError, match="datasets must be among digit_circle_small"):
        density_cases(["mnist"])


def test_units_of_a_place_keep_every_strongest_activation():
    maps = np.random.default_rng(0).random((4, 3, 5, 7))
    found, channel, part = place_units(maps, (2, 3))
    assert found.shape == (4, 18)
    for one in range(3):
        assert np.array_equal(found[:, channel == one].max(axis=1), maps[:, one].max(axis=(1, 2)))
    assert part[channel == 1].tolist() == [0, 1, 2, 3, 4, 5]


def test_units_that_fire_alone_have_no_communities():
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        alone = rng.random((300, 40)), np.arange(40) % 4, np.arange(40) // 4, rng.integers(3, size=300)
        found.append(community_values(*alone, seed))
        parts = found[-1]["class_part"] + found[-1]["remainder"]
        assert found[-1]["excess"] == pytest.approx(parts)
        assert abs(found[-1]["block_entropy"] - found[-1]["block_entropy_null"]) < 0.05
    means = {name: np.mean([one[name] for one in found]) for name in ("excess", "ami_motif", "ami_part")}
    assert all(abs(value) < 0.09 for value in means.values()), "four standard errors of eight draws"


def test_units_that_never_fire_have_no_graph():
    silent = community_values(np.zeros((9, 8)), np.zeros(8), np.zeros(8), np.zeros(9, int), 0)
    assert np.isnan(silent["modularity"])
    assert silent["block_entropy"] == 0


def test_a_network_that_is_given_the_truth_makes_no_errors():
    """Maps with a single activation in the middle of each stamp, in the channel of its motif."""
    training = SparseTraining(SMALL)
    batches = [training.task.sample(40, seed) for seed in (1, 2)]
    perfect = []
    for batch in batches:
        maps = torch.zeros(40, 10, 20, 20)
        middle = batch.box.sum(axis=2) // 4
        maps[batch.example, (batch.motif + 3) % 10, middle[:, 0], middle[:, 1]] = 1.0
        perfect.append(maps)
    given = iter(perfect)
    training.network.maps = lambda _inputs: next(given)
    found = look_at_units(training, *batches)
    assert (found["false_positive"], found["false_negative"], found["confusion"]) == (0, 0, 0)
    assert found["counted"] == found["active"] == len(batches[1].motif) / (40 * 4000)


@pytest.mark.parametrize("condition", ["MT", "none"])
def test_rows(condition):
    case = SparseCase(replace(SMALL, condition=condition), looks=2)
    rows = sparse_rows(case)
    assert [(row["samples"], row["final"]) for row in rows] == [(0, 0), (128, 0), (256, 1)]
    assert {row["settings"] for row in rows} == {case.settings}
    assert [one["samples"] for one in json.loads(rows[-1]["trace"])] == [0, 64, 128, 192, 256]
    assert (rows[-1]["density"] < 0.5) if condition == "MT" else np.isnan(rows[-1]["density"])
    assert all(0 <= row["confusion"] <= 1 and row["reason"] == "" for row in rows)
    if condition == "none":
        assert 0.05 < rows[-1]["counted"] < 0.23, "the strongest fifth of a channel, or all where fewer are active"


def test_imposed_density_changes_nothing_but_density():
    """Only the strongest activations of each channel are kept, as they were; whatever is kept at one density is at a
    higher one."""
    maps = np.maximum(np.random.default_rng(0).normal(size=(20, 3, 6, 7)), 0)
    kept = [impose_density(maps, density) for density in (0.3, 0.1, 0.01)]
    for one, density in zip(kept, (0.3, 0.1, 0.01), strict=True):
        assert ((one > 0).mean(axis=(0, 2, 3)) == np.ceil(840 * density - 1e-9) / 840).all()
        assert np.isin(one[one > 0], maps).all()
    assert ((kept[1] > 0) <= (kept[0] > 0)).all()
    assert impose_density(maps, 0.9).tolist() == maps.tolist(), "a share above 0 that is smaller stays as it is"


def test_rows_of_imposed_densities():
    rows = density_rows(SparseCase(replace(SMALL, condition="none")))
    assert [(row["state"], row["density"]) for row in rows] == [
        (state, density) for state in ("before training", "trained") for density in DENSITIES
    ]
    for row in rows:
        assert row["counted"] <= row["density"] * 1.01
        assert row["excess"] == pytest.approx(row["class_part"] + row["remainder"], nan_ok=True)
    (row,) = density_rows(SparseCase(replace(SMALL, condition="none", rate=1e30)))
    assert row["reason"].startswith("training diverged")


def test_a_network_that_diverges_has_a_row():
    (row,) = sparse_rows(SparseCase(replace(SMALL, rate=1e30)))
    assert row["reason"].startswith("training diverged")
    assert row["degenerate"] == 1
