"""The shared form of tasks with known motifs: what it refuses, and that seeds decide everything."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from nbutils.motifs.tasks import TASKS, MotifBatch, join_batches, part_of_batch

GOOD = {
    "inputs": np.zeros((2, 6, 8), np.uint8),
    "sequences": [[3, -1], [0, 1]],
    "example": [0, 1, 1],
    "motif": [3, 0, 1],
    "box": [[[0, 6], [0, 8]], [[1, 2], [3, 4]], [[0, 2], [0, 2]]],
}


def same(one: MotifBatch, other: MotifBatch) -> bool:
    return all(np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(MotifBatch))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": np.zeros((2, 6, 8))}, "inputs must be uint8 or float32, received float64"),
        ({"inputs": np.zeros(2, np.uint8)}, r"inputs must have shape \(examples, \*space\), received \(2,\)"),
        ({"inputs": np.full((2, 6, 8), np.nan, np.float32)}, "inputs must be finite"),
        ({"sequences": [[3, -1]]}, r"sequences must have shape \(2, longest\), received \(1, 2\)"),
        ({"sequences": [[-1, 3], [0, 1]]}, "sequences must be filled with -1 after their last word only"),
        ({"sequences": [[3, -2], [0, 1]]}, "sequences must hold whole numbers from -1 to 127"),
        ({"sequences": [[np.nan, -1], [0, 1]]}, "sequences must be integers, received dtype float64"),
        ({"sequences": [[300, -1], [0, 1]]}, "sequences must hold whole numbers from -1 to 127"),
        ({"example": [0, 1, 2]}, "example must rise within 0 to 1"),
        ({"example": [1, 0, 1]}, "example must rise within 0 to 1"),
        ({"example": [0.0, 1.0, 1.0]}, "example must hold whole numbers, received float64"),
        ({"motif": [3, 0, -1]}, "motif must hold numbers from 0, received -1"),
        ({"motif": [3, 0]}, r"example must have shape \(2,\), received \(3,\)"),
        ({"box": np.zeros((3, 1, 2), int)}, r"box must have shape \(3, 2, 2\), received \(3, 1, 2\)"),
        ({"box": [[[0, 7], [0, 8]]] * 3}, r"box must hold extents that are not empty and lie within \(6, 8\)"),
        ({"box": [[[2, 2], [0, 8]]] * 3}, "box must hold extents that are not empty"),
        ({"box": [[[-1, 2], [0, 8]]] * 3}, "box must hold extents that are not empty"),
    ],
)
def test_a_batch_refuses_what_does_not_fit(change, words):
    MotifBatch(**GOOD)
    with pytest.raises(ValueError, match=words):
        MotifBatch(**{**GOOD, **change})


def test_examples_without_stamps_are_allowed():
    batch = MotifBatch(np.zeros((2, 5), np.float32), [[-1], [-1]], [], [], [])
    assert (len(batch), batch.box.shape, batch.lengths.tolist()) == (2, (0, 1, 2), [0, 0])


def test_parts_joined_are_the_whole():
    batch = MotifBatch(**GOOD)
    parts = [part_of_batch(batch, 0, 1), part_of_batch(batch, 1, 1), part_of_batch(batch, 1, 2)]
    assert [len(one.motif) for one in parts] == [1, 0, 2]
    assert same(join_batches(parts), batch)
    with pytest.raises(ValueError, match="stop must be a whole number from 0 to 2, received 3"):
        part_of_batch(batch, 0, 3)
    with pytest.raises(ValueError, match="batches must hold at least one"):
        join_batches([])


@pytest.mark.parametrize("name", list(TASKS))
def test_a_seed_decides_everything(name):
    task = TASKS[name]
    batch = task.sample(70, 5)
    assert same(batch, task.sample(70, 5))
    assert same(part_of_batch(task.sample(130, 5), 0, 70), batch), "a longer sample begins with a shorter one"
    other = task.sample(70, 6)
    assert (batch.inputs != other.inputs).reshape(70, -1).any(axis=1).all()
    assert len(np.unique(batch.inputs.reshape(70, -1), axis=0)) == 70, "no example twice"


@pytest.mark.parametrize("name", list(TASKS))
def test_a_task_is_what_it_says(name):
    task = TASKS[name]
    batch = task.sample(200, 0)
    assert task.name == name
    assert batch.space == task.space
    assert batch.sequences.shape == (200, task.longest)
    assert task.words[: len(task.alphabet)] == task.alphabet
    assert len(set(task.words)) == len(task.words)
    assert set(np.unique(batch.motif)) == set(range(len(task.alphabet))), "every motif occurs"
    assert set(np.unique(batch.sequences)) - {-1} == set(range(len(task.words))), "every word occurs"
    for row in range(20):
        told = [number for number in batch.sequences[row] if 0 <= number < len(task.alphabet)]
        assert sorted(told) == sorted(batch.motif[batch.example == row]), "as many stamps as words that have one"
        assert task.spell(batch.sequences[row]).split() == [task.words[n] for n in batch.sequences[row] if n >= 0]


@pytest.mark.parametrize(
    ("count", "seed", "words"),
    [
        (0, 0, "count must be a whole number of at least 1, received 0"),
        (3, -1, "seed must be a whole number from 0 to 9223372036854775807, received -1"),
        (2.5, 0, "count must be of type int, received 2.5"),
        (3, True, "seed must be of type int, received True"),
    ],
)
def test_a_task_refuses_what_is_no_count_or_seed(count, seed, words):
    with pytest.raises((TypeError, ValueError), match=words):
        TASKS["digit_circle_small"].sample(count, seed)
