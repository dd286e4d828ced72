"""Adaptive sparsity: the schedule step by step, networks that learn, and training that resumes with the same bits."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nbutils.motifs.motif_networks import CircleHead, CircleOrder, LineHead, build_motif_network
from nbutils.motifs.sparse_settings import CONDITIONS, PLANS, Schedule, SparseSettings, adapt
from nbutils.motifs.sparse_training import SparseTraining, _penalty, train_sparse
from nbutils.motifs.tasks import TASKS

QUICK = SparseSettings(samples=640, schedule=Schedule(every=128, fall=5e-3, stop=0.2), batch=32, validation=32)


def test_schedule_by_hand():
    """Every 20,000 samples the target falls by 0.002; density falls where it is exceeded; it rises to the accuracy."""
    schedule, density, target, found = Schedule(), 0.5, 1.0, []
    for accuracy in (0.5, 0.999, 0.998, 0.9965, 0.99, 0.995):
        density, target = adapt(schedule, density, target, accuracy)
        found.append((round(density, 6), round(target, 6)))
    assert found == [
        (0.5, 0.998),
        (0.375, 0.999),
        (0.28125, 0.998),
        (0.210938, 0.9965),
        (0.210938, 0.9945),
        (0.158203, 0.995),
    ]


def test_density_stops_where_it_is_told():
    schedule, density, steps = Schedule(fall=0, stop=4.5e-5), 0.5, 0
    while density > schedule.stop:
        density, _ = adapt(schedule, density, 0.5, 0.9)
        steps += 1
    assert steps == int(np.ceil(np.log(0.5 / 4.5e-5) / np.log(4 / 3))) == 33
    assert adapt(schedule, density, 0.5, 0.9) == (4.5e-5, 0.9)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"factor": 1}, "factor must be above 0 and below 1"),
        ({"start": 0}, "start must be above 0"),
        ({"stop": float("nan")}, "stop must be above 0"),
        ({"stop": 0.6}, "stop must be at most start, 0.5, received 0.6"),
        ({"fall": -1}, "fall must be from 0 to 1"),
        ({"every": 0}, "every must be"),
    ],
)
def test_wrong_schedules_are_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        Schedule(**wrong)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"task": "circles"}, "task must be one of digit_circle_small"),
        ({"condition": "L2"}, "condition must be one of MT, ST, L1, KL, none"),
        ({"penalty": 0.1}, "penalty must be above 0 for 'L1' and 'KL' and 0 for others, received 0.1 for 'MT'"),
        ({"condition": "KL"}, "penalty must be above 0 for 'L1' and 'KL'"),
        ({"rate": 0}, "rate must be"),
        ({"samples": 1}, "samples must be"),
        ({"seed": -1}, "seed must be"),
        ({"parts": 0}, "parts must be"),
        ({"task": "tone_lines", "parts": 2}, "parts must be 1 for tone_lines, whose head reads a line, received 2"),
    ],
)
def test_wrong_settings_are_refused(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        SparseSettings(**wrong)


def test_networks_begin_alike_in_all_conditions():
    task = TASKS["digit_circle_small"]
    states = [build_motif_network(task, condition, 0.5, seed=3).state_dict() for condition in CONDITIONS]
    for state in states[1:]:
        assert all(torch.equal(state[name], states[0][name]) for name in state if name.startswith(("encoder", "head")))


@pytest.mark.parametrize("name", [name for name in PLANS if name != "digit_circle"])
def test_units_stand_for_places_that_cover_the_input(name):
    task, plan = TASKS[name], PLANS[name]
    maps = build_motif_network(task, "MT", 0.5, 0).eval().maps(torch.from_numpy(task.sample(2, 0).inputs))
    assert maps.shape[1] == len(task.alphabet)
    for positions, size, step, field in zip(
        maps.shape[2:], task.space, plan.stride, plan.field(task.space), strict=True
    ):
        assert size <= (positions - 1) * step + field < size + step


def test_a_channel_is_in_one_place_or_in_one_of_each_part():
    """Two equal activations in opposite corners: their middle, or each where it is."""
    maps = torch.zeros(1, 1, 5, 5)
    maps[0, 0, 0, 0] = maps[0, 0, 4, 4] = 3.0
    whole = CircleHead(channels=1, words=3, longest=4).features(maps)
    assert whole.tolist() == [[0.75, 0, 0]]
    strength, row, column = CircleHead(1, 3, 4, parts=2).features(maps).unflatten(1, (3, 4)).unbind(1)
    assert strength.tolist() == [[0.75, 0, 0, 0.75]]
    assert torch.allclose(row, torch.tensor([[-1.0, 0, 0, 1]]), atol=1e-6)
    assert torch.allclose(column, row)


def test_the_head_that_sees_parts_learns_as_the_other_does():
    settings = {"samples": 256, "schedule": Schedule(every=128, stop=0.01), "validation": 8}
    training = SparseTraining(SparseSettings(**settings, parts=3))
    assert [training.to_next_check(), training.to_next_check()] == [128, 256]
    assert np.isfinite(training.table["loss"]).all()
    assert "parts" in SparseSettings(parts=3).identity
    assert "parts" not in SparseSettings().identity


def test_words_of_the_circle_are_spelled_one_after_the_other():
    """A net that says: after 2 comes 0, after 0 the end, and 2 at the beginning."""
    head = CircleHead(channels=1, words=3, longest=4, hidden=4)
    follows = {3: 2, 2: 0, 0: 3, 1: 1}

    def net(seen):
        before = seen[..., 3:7].argmax(dim=-1)
        return torch.eye(4)[torch.tensor([follows[i] for i in range(4)])[before]]

    head.net, head.order = torch.nn.Module(), torch.nn.Module()
    head.net.forward, head.order.forward = net, lambda seen, before, first: torch.zeros(len(seen), 4)
    assert head.spell(torch.rand(2, 1, 5, 5)).tolist() == [[2, 0, -1, -1]] * 2


def test_what_is_seen_of_channels_around_a_circle():
    """Channels at the right, the top and the left of a circle, of which the first one stands for word 0."""
    order = CircleOrder(channels=3, words=2)
    order.stands_for.data = torch.tensor([[50.0, 0, 0], [0, 50, 0], [0, 0, 0]])
    inputs = []
    order.net.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    places = torch.tensor([[0.5, 0.5, 0.5, 0, -0.75, 0, 0.5, 0, -0.5]])  # strengths, rows, columns
    logits = order(torch.cat([places, places]), torch.tensor([0, 2]), torch.tensor([1, 2]))
    assert logits.shape == (2, 3)
    seen = inputs[0][0, :, :8].detach()
    angle = np.arctan2(0.25, 0.5)  # of both lower channels, from the mean place, which lies a quarter above them
    assert torch.allclose(seen[:, 0], torch.full((3,), 0.5))
    assert np.allclose(seen[:, 1].numpy(), [1, -np.sin(angle), np.cos(np.pi - 2 * angle)], atol=0.01)
    assert np.allclose(seen[:, 2].numpy(), [0, -np.cos(angle), np.sin(np.pi - 2 * angle)], atol=0.01)
    assert torch.allclose(seen[:, 3], torch.tensor([1.0, 0, 0]))
    assert torch.allclose(seen[:, 6], torch.tensor([0.0, 1, 0]))
    assert inputs[0][:, :, 7].tolist() == [[0, 0, 0], [1, 1, 1]], "the second one begins"


def test_the_order_of_a_circle_does_not_depend_on_how_it_is_turned():
    torch.manual_seed(0)
    order = CircleOrder(channels=4, words=4)
    angles, before, first = np.array([0.3, 2.0, 3.5, 5.0]), torch.tensor([1]), torch.tensor([0])

    def seen(turned):
        places = [np.full(4, 0.5), np.sin(angles + turned), np.cos(angles + turned)]
        return order(torch.tensor(np.concatenate(places)[None], dtype=torch.float32), before, first)

    assert torch.allclose(seen(0.0), seen(1.3), atol=1e-6)
    assert (seen(0.0) - order(torch.rand(1, 12), before, first)).abs().max() > 1e-3


def test_place_of_a_channel():
    maps = torch.zeros(1, 2, 5, 5)
    maps[0, 0, 4, 0] = 3
    features = CircleHead(2, 3, 4).features(maps)
    assert torch.allclose(features, torch.tensor([[0.75, 0, 1, 0, -1, 0]]), atol=1e-5)


def test_lines_are_spelled_without_blanks_and_repetitions():
    head = LineHead(rows=1, words=2, along=1, outputs=1)
    said = torch.tensor([0, 0, 2, 0, 1, 1, 2, 2])
    head._logits = lambda maps: torch.eye(3)[said].expand(len(maps), -1, -1)
    assert head.spell(torch.zeros(2, 1, 1, 8))[1].tolist() == [0, 0, 1, -1, -1, -1, -1, -1]


def test_penalties_by_hand():
    maps = torch.zeros(2, 1, 1, 4)
    maps[0, 0, 0, 0], maps[1, 0, 0, 1] = 3.0, 1.0
    assert float(_penalty(maps, "L1", 0.1)) == 2.0
    rate = (np.tanh(3) + np.tanh(1)) / 8
    wanted = 0.1 * np.log(0.1 / rate) + 0.9 * np.log(0.9 / (1 - rate))
    assert float(_penalty(maps, "KL", 0.1)) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("condition", ["MT", "ST", "none"])
def test_training_resumes_with_the_same_bits(tmp_path, condition):
    settings = replace(QUICK, condition=condition)
    whole = train_sparse(settings, tmp_path / "whole.safetensors", lambda one: {"seen": one.samples}, save_every=2)

    def stop(training):
        if training.samples == 3 * 128:
            raise KeyboardInterrupt
        return {"seen": training.samples}

    path = tmp_path / "parts.safetensors"
    with pytest.raises(KeyboardInterrupt):
        train_sparse(settings, path, stop, save_every=2)
    torch.manual_seed(5)
    again = train_sparse(settings, path, lambda one: {"seen": one.samples}, save_every=2)
    assert path.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert again.table.equals(whole.table)
    assert again.table["seen"].tolist() == again.table["samples"].tolist() == [0, 128, 256, 384, 512, 640]
    assert (again.density < 0.5) == (condition != "none")


def test_the_trace_follows_the_schedule():
    table = train_sparse(QUICK).table
    density, target = 0.5, 1.0
    for row in table.iloc[1:].itertuples():
        density, target = adapt(QUICK.schedule, density, target, row.edit)
        assert (row.density, row.target) == (density, target)


def test_checkpoints_of_others_are_refused(tmp_path):
    path = tmp_path / "one.safetensors"
    training = SparseTraining(QUICK)
    training.save(path)
    with pytest.raises(ValueError, match="checkpoint of other settings"):
        SparseTraining(replace(QUICK, seed=1)).resume(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="is no checkpoint of sparse training"):
        SparseTraining(QUICK).resume(path)


@pytest.mark.release
def test_a_network_learns_to_read_syllables():
    """In a minute it reads nearly all; in seconds, it has begun to."""
    schedule = Schedule(every=4096, stop=7e-3)
    found = train_sparse(SparseSettings("tone_lines", "MT", 1000, 12_288, schedule, validation=64)).table
    assert found["edit"].iloc[0] < 0.3 < 0.5 < found["edit"].iloc[-1]


def test_training_that_diverges_says_so():
    with pytest.raises(FloatingPointError, match="training diverged: the loss is"):
        train_sparse(replace(QUICK, rate=1e30))
