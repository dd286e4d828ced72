"""Sequences of made-up syllables: two gliding tones each, in noise; heard as a waveform, learnt from its spectrogram.

Waveforms follow from whole numbers by whole-number arithmetic and are the same on every machine. Spectrograms are
computed from them in floating point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.fft import rfft

from nbutils.motifs.motif_batches import BLOCK, END, MotifBatch, MotifTask, block_stream
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_numpy
from nbutils.support.loops import loop

__all__ = ["RATE", "SYLLABLES", "TONE_LINES", "ToneDraws", "draw_tones", "spectrogram", "syllable", "waveforms"]

RATE = 4_000  # samples a second
SAMPLES = 6_400  # of a waveform, 1.6 s
WINDOW, HOP = 128, 64  # samples of a frame, 32 ms, and from one to the next
FRAMES, BANDS = (SAMPLES - WINDOW) // HOP + 1, WINDOW // 2  # bands of 31.25 Hz, without the lowest
FEWEST, MOST = 2, 5  # syllables
SHORTEST, LONGEST = 600, 1_000  # samples of a syllable, 0.15 to 0.25 s
PAUSE = 160  # samples between two at least, and at both ends: no frame holds two of them
RAMP = 40  # samples over which a syllable swells and fades
NOISE = 4_000  # even noise from minus to plus this, in a waveform whose syllables reach 12,000
DETUNED = 30  # per mille by which an example's tones are higher or lower at most

# Hertz: of the lower tone at the beginning and the end of a syllable, and of the higher one.
SYLLABLES: dict[str, tuple[int, int, int, int]] = {
    "ba": (300, 700, 1_000, 1_100),
    "de": (400, 400, 1_700, 1_300),
    "fi": (300, 250, 1_450, 1_850),
    "go": (550, 300, 950, 700),
    "hu": (350, 350, 700, 700),
    "ka": (850, 600, 1_150, 1_550),
    "le": (250, 550, 1_300, 1_300),
    "mi": (250, 250, 1_800, 1_800),
    "no": (600, 600, 1_000, 1_000),
    "su": (750, 350, 1_650, 1_000),
}
ALPHABET = tuple(SYLLABLES)
TONES = np.array(list(SYLLABLES.values()), np.int64)
SHARES = (8_000, 4_000)  # amplitudes of both tones
STEPS, TURN = 2**12, 2**32  # of the table of sines, and of a phase, to a turn
SINE = np.array([round(2**15 * math.sin(2 * math.pi * step / STEPS)) for step in range(STEPS)], np.int64)


@dataclass(frozen=True, eq=False)
class ToneDraws:
    """All that is random about a number of waveforms, as whole numbers.

    Attributes:
        number: syllables of each, shape (waveforms,).
        syllable: which ones, shape (waveforms, 5), of which the first ones are used.
        length: samples of each syllable, likewise.
        loudness: per mille of the full amplitude, likewise.
        cuts: below 65,536, shape (waveforms, 5): the first n, sorted, share spare samples out over n + 1 pauses.
        detuned: per mille by which all tones are higher, shape (waveforms,).
        noise: of each sample, shape (waveforms, samples).
    """

    number: np.ndarray
    syllable: np.ndarray
    length: np.ndarray
    loudness: np.ndarray
    cuts: np.ndarray
    detuned: np.ndarray
    noise: np.ndarray


def draw_tones(rng: np.random.Generator, count: int) -> ToneDraws:
    """All that is random about `count` waveforms."""
    each = (count, MOST)
    return ToneDraws(
        number=rng.integers(FEWEST, MOST + 1, size=count),
        syllable=rng.integers(len(ALPHABET), size=each),
        length=rng.integers(SHORTEST, LONGEST + 1, size=each),
        loudness=rng.integers(600, 1_001, size=each),
        cuts=rng.integers(2**16, size=each),
        detuned=rng.integers(-DETUNED, DETUNED + 1, size=count),
        noise=rng.integers(-NOISE, NOISE + 1, size=(count, SAMPLES), dtype=np.int16),
    )


@checked
def syllable(number: int, length: int = 800, detuned: int = 0) -> np.ndarray:
    """One syllable without noise: two tones whose frequencies glide evenly from their first to their last.

    Args:
        number: of the syllable, 0 to 9.
        length: samples, from 100 to 6,400.
        detuned: per mille by which both tones are higher.

    Returns:
        Samples from -12,000 to 12,000, shape (length,), int64.

    Raises:
        ValueError: an argument is out of range.

    Examples:
        >>> syllable(3).shape, int(abs(syllable(3)).max()) <= 12_000
        ((800,), True)
    """
    number, length = as_count(number, "number", 0, len(ALPHABET) - 1), as_count(length, "length", 100, SAMPLES)
    return _syllable(number, length, as_count(detuned, "detuned", -DETUNED, DETUNED))


def _syllable(number: int, length: int, detuned: int) -> np.ndarray:
    wave = np.zeros(length, np.int64)
    _add_syllable(wave, TONES[number], detuned, 1000)
    return wave


@loop
def _add_syllable(wave: np.ndarray, tones: np.ndarray, detuned: int, loudness: int) -> None:
    """Add a syllable as long as `wave`, shape (samples,), with a loudness per mille, to it."""
    length = len(wave)
    lower, higher = 0, 0  # phases, 2^32 steps to a turn
    for time in range(length):
        if time:
            tempo = (1000 + detuned) * (TURN // RATE)
            lower += (tones[0] * length + (tones[1] - tones[0]) * time) * tempo // (1000 * length)
            higher += (tones[2] * length + (tones[3] - tones[2]) * time) * tempo // (1000 * length)
        both = SHARES[0] * SINE[(lower >> 20) & (STEPS - 1)] + SHARES[1] * SINE[(higher >> 20) & (STEPS - 1)]
        ramp = min(time, length - 1 - time, RAMP)
        wave[time] += (both * ramp // (RAMP * 2**15)) * loudness // 1000


def begins_of(draws: ToneDraws) -> np.ndarray:
    """First samples of syllables, shape (waveforms, 5); those beyond the number of a waveform are of no use."""
    used = np.arange(MOST) < draws.number[:, None]
    lengths = np.where(used, draws.length, 0)
    spare = SAMPLES - lengths.sum(axis=1) - (draws.number + 1) * PAUSE
    before = np.sort(np.where(used, draws.cuts, 2**16), axis=1) * (spare[:, None] + 1) // 2**16
    return before + lengths.cumsum(axis=1) - lengths + PAUSE * np.arange(1, MOST + 1)


def synthesise(draws: ToneDraws) -> np.ndarray:
    """The waveforms that draws describe, shape (waveforms, samples), int16."""
    waves, begins = draws.noise.astype(np.int64), begins_of(draws)
    for at, number in enumerate(draws.number):
        for place in range(number):
            begin = begins[at, place]
            own = waves[at, begin : begin + draws.length[at, place]]
            _add_syllable(own, TONES[draws.syllable[at, place]], draws.detuned[at], draws.loudness[at, place])
    return waves.astype(np.int16)


def spectrogram(waves: np.ndarray) -> np.ndarray:
    """Logarithm of the power in bands of frequency, frame by frame.

    log(1 + P / P_0) / 4, with P the squared magnitude of the Fourier transform of 128 samples under a Hann window, and
    P_0 its mean for the noise that waveforms hold: 0 is silence, noise lies about 0.2 and syllables about 1 to 2.

    Args:
        waves: shape (waveforms, samples), with at least 128 samples.

    Returns:
        Shape (waveforms, frames, 64), float32; the lowest of 65 frequencies, 0 Hz, is left out.

    Raises:
        ValueError: `waves` has another shape.
    """
    array = as_numpy(waves, "waves")
    if array.ndim != 2 or array.shape[1] < WINDOW:
        raise ValueError(f"waves must have shape (waveforms, samples), {WINDOW} or more, received {array.shape}")
    window = np.hanning(WINDOW + 1)[:-1].astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(array.astype(np.float32), WINDOW, axis=1)[:, ::HOP]
    found = rfft(frames * window, axis=2)[:, :, 1:]
    noise = np.float32(NOISE**2 / 3 * (window**2).sum())
    return np.log1p((found.real**2 + found.imag**2) / noise) / 4


def render_tones(draws: ToneDraws) -> MotifBatch:
    """Spectrograms of what draws describe; stamps of an example in the order of time.

    A box holds the frames that hear at least one sample of a syllable, and all bands.
    """
    used = np.arange(MOST) < draws.number[:, None]
    example, place = np.nonzero(used)
    begin = begins_of(draws)[used]
    end = begin + draws.length[example, place]
    frames = np.stack([(begin - WINDOW) // HOP + 1, np.minimum(-(-end // HOP), FRAMES)], axis=1).clip(0)
    box = np.stack([frames, np.broadcast_to([0, BANDS], frames.shape)], axis=1)
    sequences = np.where(used, draws.syllable, END).astype(np.int8)
    return MotifBatch(spectrogram(synthesise(draws)), sequences, example, draws.syllable[example, place], box)


@checked
def waveforms(count: int, seed: int) -> np.ndarray:
    """What one hears of the examples that `TASKS["tone_lines"].sample(count, seed)` gives.

    Args:
        count: examples, at least 1.
        seed: a whole number from 0.

    Returns:
        Shape (count, 6400), int16, at 4,000 samples a second.

    Raises:
        ValueError: `count` or `seed` is none of these.
    """
    blocks = range(-(-as_count(count, "count") // BLOCK))
    return np.concatenate([synthesise(draw_tones(block_stream(seed, number), BLOCK)) for number in blocks])[:count]


def _draw(rng: np.random.Generator, count: int) -> MotifBatch:
    return render_tones(draw_tones(rng, count))


TONE_LINES = MotifTask(
    "tone_lines",
    "lines of tones",
    "2 to 5 made-up syllables in noise, 1.6 s as a log spectrogram of 99 frames and 64 bands; the syllables in order",
    ALPHABET,
    ALPHABET,
    (FRAMES, BANDS),
    MOST,
    _draw,
)
