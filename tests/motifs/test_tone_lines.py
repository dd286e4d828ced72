"""Syllables in noise: waveforms against SciPy's chirps, spectrograms against its own, and extents in time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import signal

from nbutils.motifs import tone_lines
from nbutils.motifs.tone_lines import (
    ALPHABET,
    BANDS,
    FRAMES,
    HOP,
    NOISE,
    PAUSE,
    RATE,
    SAMPLES,
    SYLLABLES,
    TONE_LINES,
    WINDOW,
    begins_of,
    draw_tones,
    render_tones,
    spectrogram,
    syllable,
    synthesise,
    waveforms,
)


@pytest.mark.parametrize("name", list(SYLLABLES))
def test_syllables_are_two_chirps(name):
    length, detuned = 900, 20
    time = np.arange(length) / RATE
    tones = np.array(SYLLABLES[name]) * (1 + detuned / 1000)
    expected = sum(
        share * signal.chirp(time, tones[2 * k], length / RATE, tones[2 * k + 1], phi=-90)
        for k, share in enumerate((8000, 4000))
    )
    ramp = np.minimum(np.minimum(np.arange(length), np.arange(length)[::-1]) / 40, 1)
    found = syllable(ALPHABET.index(name), length, detuned)
    # A sum of steps is not an integral: the phase of a glide is off by up to a twentieth of a turn.
    assert np.corrcoef(found, expected * ramp)[0, 1] > 0.9
    assert np.abs(found).max() <= 12_000
    assert found[[0, -1]].tolist() == [0, 0]


def test_steady_tones_are_exact():
    length = 800
    expected = sum(share * np.sin(2 * np.pi * hertz * np.arange(length) / RATE) for share, hertz in TWO)
    inner = slice(40, length - 40)
    assert np.abs(syllable(ALPHABET.index("no"), length) - expected)[inner].max() < 12_000 * 2 * np.pi / 4096 + 2


TWO = ((8000, 600), (4000, 1000))


def test_frequencies_stay_below_half_the_rate_and_syllables_differ():
    assert max(max(tones) for tones in SYLLABLES.values()) * 1.03 < RATE / 2
    shapes = np.stack([spectrogram(syllable(number)[None])[0] for number in range(10)])
    away = np.sqrt(((shapes[:, None] - shapes[None]) ** 2).sum(axis=(2, 3)))
    assert away[~np.eye(10, dtype=bool)].min() > 0.3 * np.sqrt((shapes**2).sum(axis=(1, 2))).mean()


def test_spectrograms_are_those_of_scipy():
    waves = waveforms(3, 0)
    window = signal.windows.hann(WINDOW, sym=False)
    options = {"window": window, "nperseg": WINDOW, "noverlap": WINDOW - HOP, "detrend": False, "mode": "magnitude"}
    *_, found = signal.spectrogram(waves.astype(float), scaling="spectrum", **options)
    power = (found * window.sum()).swapaxes(1, 2)[:, :, 1:] ** 2
    expected = np.log1p(power / (NOISE**2 / 3 * (window**2).sum())) / 4
    assert spectrogram(waves).shape == (3, FRAMES, BANDS)
    assert np.allclose(spectrogram(waves), expected, atol=1e-4)


def test_noise_alone_has_the_stated_power():
    draws = draw_tones(np.random.default_rng(0), 50)
    power = np.expm1(4 * spectrogram(draws.noise).astype(float))
    assert power[:, :, 2:-1].mean() == pytest.approx(1, rel=0.02)


def test_inputs_are_what_one_hears():
    batch = TONE_LINES.sample(70, 3)
    assert np.array_equal(batch.inputs, spectrogram(waveforms(70, 3)))
    assert np.array_equal(waveforms(3, 3), waveforms(70, 3)[:3])
    assert waveforms(2, 3).dtype == np.int16


def test_boxes_hold_all_that_a_syllable_changes():
    """Without one syllable, frames outside of its box are the same; those well within it are not."""
    draws = draw_tones(np.random.default_rng(1), 100)
    batch, number = render_tones(draws), draws.number
    for at in range(100):
        for place in range(number[at]):
            loudness = draws.loudness.copy()
            loudness[at, place] = 0
            without = replace(draws, loudness=loudness)
            one = {key: getattr(without, key)[at : at + 1] for key in draws.__dataclass_fields__}
            other = render_tones(tone_lines.ToneDraws(**one)).inputs[0]
            changed = (other != batch.inputs[at]).any(axis=1)
            begin, end = batch.box[batch.example == at][place, 0]
            assert not changed[:begin].any()
            assert not changed[end:].any()
            assert changed[begin + 1 : end - 1].all()


def test_syllables_keep_their_pauses_and_stay_inside():
    draws = draw_tones(np.random.default_rng(2), 400)
    gaps, begins = [], begins_of(draws)
    for at in range(400):
        number = draws.number[at]
        begin = begins[at, :number]
        end = begin + draws.length[at, :number]
        gaps += [*(begin - [0, *end[:-1]]), SAMPLES - end[-1]]
    assert PAUSE <= min(gaps) < PAUSE + 20
    batch = render_tones(draws)
    after = batch.box[1:, 0, 0] >= batch.box[:-1, 0, 1]
    assert after[np.diff(batch.example) == 0].all(), "no frame holds two syllables"
    assert (batch.box[:, 1] == [0, BANDS]).all()
    assert np.array_equal(batch.sequences[batch.sequences >= 0], batch.motif), "in the order of time"
    assert set(np.unique(batch.lengths)) == {2, 3, 4, 5}


def test_the_loudest_sum_fits_into_16_bits():
    assert 12_000 + NOISE < 2**15
    waves = synthesise(draw_tones(np.random.default_rng(3), 100))
    assert np.abs(waves.astype(int)).max() > 12_000


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: syllable(10), "number must be a whole number from 0 to 9, received 10"),
        (lambda: syllable(0, 50), "length must be a whole number from 100 to 6400, received 50"),
        (lambda: syllable(0, 800, 50), "detuned must be a whole number from -30 to 30, received 50"),
        (lambda: syllable("ba"), "number must be of type int, received 'ba'"),
        (lambda: spectrogram(np.zeros(500)), r"waves must have shape \(waveforms, samples\), 128 or more"),
        (lambda: waveforms(0, 0), "count must be a whole number of at least 1, received 0"),
        (lambda: waveforms(1, -1), "seed must be a whole number from 0"),
    ],
)
def test_what_is_no_sound_is_refused(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def test_sines_are_the_same_on_every_machine():
    exact = 2**15 * np.sin(2 * np.pi * np.arange(4096) / 4096)
    assert np.abs(exact - np.floor(exact) - 0.5).min() > 1e-6
    assert np.abs(tone_lines.SINE - exact).max() <= 0.5 + 1e-9
