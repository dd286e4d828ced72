"""Examples of tasks with known motifs as a reader sees and hears them: inputs with boxes, sounds, curves of errors."""

from __future__ import annotations

import io
import wave
from base64 import b64encode
from collections.abc import Sequence
from html import escape

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.signal import resample_poly

from nbutils.drawing.display import Html, figure_style, in_figure
from nbutils.drawing.palette import ERRORS, RED
from nbutils.motifs.motif_batches import MotifBatch, MotifTask
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_numpy

__all__ = ["errors_figure", "examples_figure", "sound", "wav"]

WIDTH = 7.6  # inches
NAMES = {"false_positive": "FPE", "false_negative": "FNE", "confusion": "CE"}
PLAYED = 8_000  # samples a second at least, of what every browser plays


@checked
def examples_figure(task: MotifTask, batch: MotifBatch, rows: Sequence[int], columns: int = 2) -> Figure:
    """Inputs with the true box of every motif, and the target above each.

    Args:
        task: whose inputs have two dimensions; those of sounds are shown with time to the right and low tones below.
        batch: its examples.
        rows: which of them.
        columns: panels side by side.

    Raises:
        ValueError: an example is not in the batch, or inputs do not have two dimensions.
    """
    columns, chosen = as_count(columns, "columns"), [as_count(row, "rows", 0, len(batch) - 1) for row in rows]
    if len(batch.space) != 2 or not chosen:
        raise ValueError(f"batch must have inputs of two dimensions and rows some number, received {batch.space}")
    sounds = batch.inputs.dtype == np.float32
    height, width = batch.space[::-1] if sounds else batch.space
    lines = -(-len(chosen) // columns)
    with figure_style():
        panel = WIDTH / columns * height / width + 0.35
        fig, axes = plt.subplots(lines, columns, figsize=(WIDTH, panel * lines), squeeze=False)
        for ax in axes.flat[len(chosen) :]:
            ax.set_axis_off()
        for ax, row in zip(axes.flat, chosen, strict=False):
            _draw(ax, task, batch, row, sounds)
        plt.close(fig)
    return fig


def _draw(ax: Axes, task: MotifTask, batch: MotifBatch, row: int, sounds: bool) -> None:
    image = batch.inputs[row].T if sounds else batch.inputs[row]
    ax.imshow(image, cmap="Greys", interpolation="none", origin="lower" if sounds else "upper")
    ax.set(xticks=[], yticks=[])
    ax.set_title(in_figure(task.spell(batch.sequences[row])), fontsize=8.5)
    for box in batch.box[batch.example == row]:
        (down, under), (left, right) = box[::-1] if sounds else box
        corner, size = (left - 0.5, down - 0.5), (right - left, under - down)
        ax.add_patch(Rectangle(corner, *size, fill=False, edgecolor=RED, lw=1.1))


@checked
def errors_figure(means: pd.DataFrame, label: str) -> Figure:
    """The three errors along something that was changed.

    Args:
        means: columns `false_positive`, `false_negative` and `confusion`; its index is what was changed.
        label: of the horizontal axis.
    """
    with figure_style():
        fig, ax = plt.subplots(figsize=(WIDTH, 2.9))
        for column, (colour, marker) in ERRORS.items():
            ax.plot(means.index, means[column], color=colour, marker=marker, ms=4, lw=1.6, label=NAMES[column])
        ax.set(xlabel=label, ylabel="error (share)", ylim=(-0.02, 1.02))
        ax.legend(frameon=False)
        plt.close(fig)
    return fig


def wav(samples: np.ndarray, rate: int) -> bytes:
    """A WAV file with one channel of 16 bits.

    Args:
        samples: shape (samples,), from -32,768 to 32,767.
        rate: samples a second; below 8,000, twice or more as many are put into the file, for browsers want so many.

    Raises:
        ValueError: `samples` has another shape or exceeds 16 bits.
    """
    array, rate = as_numpy(samples, "samples"), as_count(rate, "rate", 1, 192_000)
    if array.ndim != 1 or not array.size or np.abs(array.astype(float)).max() > 2**15 - 1:
        raise ValueError(f"samples must be numbers of 16 bits in a row, received shape {array.shape}")
    times = -(-PLAYED // rate)
    played = resample_poly(array.astype(float), times, 1) if times > 1 else array.astype(float)
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate * times)
        out.writeframes(played.round().clip(-(2**15), 2**15 - 1).astype("<i2").tobytes())
    return file.getvalue()


@checked
def sound(samples: np.ndarray, rate: int, caption: str) -> Html:
    """A sound to play on a page, which holds it: nothing is asked of any server.

    Args:
        samples: see :func:`wav`, as is `rate`.
        rate: samples a second.
        caption: what one hears, which is its label for those who use a screen reader, too.

    Raises:
        ValueError: the caption is empty, or see :func:`wav`.

    Examples:
        >>> sound(np.zeros(800, np.int16), 4000, "Silence, 0.2 s.")
        [sound: Silence, 0.2 s.]
    """
    if not caption.strip():
        raise ValueError("caption must say what one hears, received an empty one")
    told, data = escape(caption), b64encode(wav(samples, rate)).decode()
    player = f'<audio controls preload="metadata" aria-label="{told}" src="data:audio/wav;base64,{data}"></audio>'
    text = f'<figure class="nb-figure" style="margin:.5em 0">{player}<figcaption>{told}</figcaption></figure>'
    return Html(text, f"[sound: {caption}]")
