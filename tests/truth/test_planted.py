"""Planted tasks: what pictures, labels and swaps they have, and networks that learn them."""

import numpy as np
import pytest

from nbutils.truth.letters import FACES, GLYPHS, SHIFT, SIDE, glyph_images
from nbutils.truth.network import train_heads
from nbutils.truth.planted import TASKS, first_pixels, joined, planted_data

SMALL = {"dataset": "digits", "pictures": 60, "probe": 40}


def test_each_task_says_how_many_modules_it_has():
    assert {task.modules for task in TASKS.values() if task.role == "positive"} == {2}
    assert {task.modules for task in TASKS.values() if task.role == "negative"} == {1}
    for family in {task.family for task in TASKS.values()} - {""}:
        own = [task for task in TASKS.values() if task.family == family]
        assert {task.role for task in own} == {"positive", "negative"}
        assert len({(task.kind, task.overlap) for task in own}) == 1, "the same pictures"


def test_images_lie_side_by_side():
    first, second = np.full((2, 3, 4), 1.0), np.full((2, 3, 4), 2.0)
    both = joined(first, second)
    assert both.shape == (2, 3, 8)
    assert (both[..., :4] == 1).all()
    assert (both[..., 4:] == 2).all()
    half = joined(first, second, 0.5)
    assert half[0, 0].tolist() == [1, 1, 2, 2, 2, 2]


@pytest.mark.parametrize("which", [0, 1])
def test_a_swap_changes_one_image_and_not_the_other(which):
    _, probe = planted_data("independent", **SMALL)
    own = first_pixels(TASKS["independent"], "digits")
    assert own.sum() == 64
    changed = np.abs(probe.swapped[which] - probe.inputs) > 1e-6
    assert not changed[..., own if which else ~own].any()
    assert changed[..., ~own if which else own].any(axis=(0, 2)).all()


def test_inputs_are_standardised_by_the_training_pictures():
    train, probe = planted_data("independent", **SMALL)
    assert train.inputs.dtype == np.float32
    assert abs(train.inputs.mean()) < 1e-5
    assert train.inputs.std() == pytest.approx(1, abs=1e-5)
    assert probe.inputs.mean() != 0


def test_labels_are_independent_or_shared():
    train, _ = planted_data("independent", "digits", pictures=3000)
    counts = np.histogram2d(*train.factors.T, bins=10)[0]
    assert np.corrcoef(*train.factors.T)[0, 1] == pytest.approx(0, abs=0.06)
    assert counts.min() > 5
    train, _ = planted_data("shared", "digits", pictures=300)
    assert (train.factors[:, 0] == train.factors[:, 1]).all()
    halves = train.inputs.reshape(300, 8, 16)
    assert (halves[..., :8] != halves[..., 8:]).any(axis=(1, 2)).mean() > 0.95, "two images"


def test_a_seed_gives_the_same_pictures():
    one, two = (planted_data("overlap", seed=5, **SMALL)[1] for _ in range(2))
    assert np.array_equal(one.inputs, two.inputs)
    assert np.array_equal(one.swapped[1], two.swapped[1])
    assert not np.array_equal(one.inputs, planted_data("overlap", seed=6, **SMALL)[1].inputs)


def test_rows_and_columns_of_a_grid_are_independent():
    train, probe = planted_data("split", "digits", pictures=4000, probe=100)
    table = np.histogram2d(*train.factors.T, bins=3)[0] / 4000
    assert np.abs(table - 1 / 9).max() < 0.02
    assert len(probe.swapped) == 3, "row, column, and another picture of the same digit"


def test_a_letter_is_swapped_in_the_same_place():
    same = glyph_images([[2, 1], [2, 1]], rng=3, copies=2)
    assert np.array_equal(same[0], same[1])
    other = glyph_images([[2, 1], [2, 5]], rng=3, copies=2)
    assert np.abs(other[0] - other[1]).max() > 0.5


def test_letters_stay_in_their_pictures_and_fonts_differ():
    every = np.array([[g, f] for g in range(len(GLYPHS)) for f in range(len(FACES))])
    plain = np.mean([glyph_images(every, rng=seed) for seed in range(60)], axis=0)
    distance = ((plain[:, None] - plain[None]) ** 2).sum(axis=(2, 3))
    np.fill_diagonal(distance, np.inf)
    assert distance.min() > 0.3, "no letter in one font is that in another"
    assert plain[:, [0, -1]].max() < 0.3, "rows at the border are all but empty"
    assert plain.shape[1:] == (SIDE, SIDE)
    assert SHIFT < SIDE / 4


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"task": "indepedent"}, "task must be one of independent, none"),
        ({"dataset": "cifar"}, "dataset must be"),
        ({"pictures": 0}, "pictures must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_input_is_named(wrong, words):
    with pytest.raises(ValueError, match=words):
        planted_data(**{"task": "independent", **SMALL, **wrong})


def test_no_such_letter():
    with pytest.raises(ValueError, match="factors must be below 10 and 8"):
        glyph_images([[10, 0]], 0)
    with pytest.raises(ValueError, match="factors must have shape"):
        glyph_images([[1, 0]] * 3, 0, copies=2)


def test_halves_share_no_weight(rng):
    inputs = rng.normal(size=(200, 10)).astype(np.float32)
    targets = (inputs[:, [0, 9]] > 0).astype(int)
    first = np.arange(10) < 5
    network = train_heads(inputs, targets, 0, epochs=200, widths=(16, 8), first=first)
    assert (network.answers(inputs) == targets).mean() > 0.9
    moved = inputs.copy()
    moved[:, 5:] = rng.normal(size=(200, 5))
    before, after = network.hidden(inputs), network.hidden(moved)
    left = np.r_[0:8, 16:20]
    assert np.array_equal(before[:, left], after[:, left])
    assert (before != after)[:, np.r_[8:16, 20:24]].any()
    assert np.array_equal(network.answers(inputs)[:, 0], network.answers(moved)[:, 0])
    with pytest.raises(ValueError, match="targets must have two columns"):
        train_heads(inputs, targets[:, :1], 0, first=first)


def test_training_repeats_itself_and_tells_when_it_fails(rng):
    inputs = rng.normal(size=(100, 4)).astype(np.float32)
    targets = (inputs[:, :1] > 0).astype(int)
    one, two = (train_heads(inputs, targets, 3, epochs=2, widths=(8,)) for _ in range(2))
    assert np.array_equal(one.hidden(inputs), two.hidden(inputs))
    assert one.reason == ""
    inputs[0, 0] = np.nan
    assert train_heads(inputs, targets, 3, epochs=2, widths=(8,)).reason == "the loss was nan in epoch 1"


def test_hidden_neurons_are_those_of_a_layer_by_hand(rng):
    inputs = rng.normal(size=(30, 6)).astype(np.float32)
    network = train_heads(inputs, np.arange(30)[:, None] % 3, 1, epochs=0, widths=(5, 4))
    one = np.maximum(inputs @ network.weights[0].numpy().T + network.biases[0].numpy(), 0)
    two = np.maximum(one @ network.weights[1].numpy().T + network.biases[1].numpy(), 0)
    np.testing.assert_allclose(network.hidden(inputs), np.hstack([one, two]), atol=1e-5)
