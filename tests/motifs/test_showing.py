"""What a reader sees and hears: boxes where stamps are, and a file that holds the waveform."""

from __future__ import annotations

import io
import re
import wave
from base64 import b64decode

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Rectangle

from nbutils.motifs.showing import errors_figure, examples_figure, sound, wav
from nbutils.motifs.tasks import TASKS
from nbutils.motifs.tone_lines import RATE, waveforms


@pytest.mark.parametrize("name", list(TASKS))
def test_every_stamp_has_its_box(name):
    task = TASKS[name]
    batch = task.sample(3, 0)
    figure = examples_figure(task, batch, [2, 0, 1])
    for ax, row in zip(figure.axes, [2, 0, 1], strict=False):
        assert ax.get_title("left") == task.spell(batch.sequences[row])
        found = [patch.get_bbox().extents + 0.5 for patch in ax.patches if isinstance(patch, Rectangle)]
        own = batch.box[batch.example == row]
        sides = own if name == "tone_lines" else own[:, ::-1]  # horizontal first
        assert np.allclose(np.array(found).reshape(-1, 2, 2), sides.swapaxes(1, 2))
    assert not figure.axes[3].axison


def test_a_sound_holds_the_waveform():
    samples = waveforms(1, 0)[0]
    text = sound(samples, RATE, 'Three syllables, "in noise".').text
    assert 'aria-label="Three syllables, &quot;in noise&quot;."' in text
    assert "http" not in text
    data = b64decode(re.search('base64,([^"]+)', text)[1])
    assert data == wav(samples, RATE)
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (2 * RATE, 1, 2)
        played = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert len(played) == 2 * len(samples)
    away = np.abs(played[::2].astype(int) - samples)
    assert away.max() <= 12_000 / 1_000, "every other sample is one of ours, to a thousandth"
    plain = wav(samples, 8000)
    assert np.array_equal(np.frombuffer(plain[44:], "<i2"), samples)


def test_curves_of_errors():
    means = pd.DataFrame({"false_positive": [0, 0.5], "false_negative": [1, 0.2], "confusion": [0.1, 0.3]})
    lines = errors_figure(means, "x").axes[0].lines
    assert [list(line.get_ydata()) for line in lines] == [means[column].tolist() for column in means]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sound(np.zeros(9), RATE, " "), "caption must say what one hears"),
        (lambda: wav(np.zeros((2, 9)), RATE), r"samples must be numbers of 16 bits in a row, received shape \(2, 9\)"),
        (lambda: wav(np.full(9, 40_000), RATE), "samples must be numbers of 16 bits"),
        (lambda: wav(np.zeros(9), 0), "rate must be a whole number from 1 to 192000, received 0"),
        (lambda: examples_figure(TASKS["tone_lines"], TASKS["tone_lines"].sample(2, 0), [2]), "rows must be a whole"),
        (lambda: examples_figure(TASKS["tone_lines"], TASKS["tone_lines"].sample(2, 0), []), "rows some number"),
    ],
)
def test_what_cannot_be_shown_is_refused(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()
