"""Why neurons die: dead neurons by layer while a network trains, and in the networks of both studies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from nbutils.data.catalogue import parse_name
from nbutils.data.datasets import TITLES
from nbutils.data.datasheets import brightness_table, read_datasheet
from nbutils.drawing.display import figure_style
from nbutils.drawing.palette import PREPARATIONS
from nbutils.pages.answering import open_all
from nbutils.study.archive import REFERENCE, SMALL, archive_folder, has_archive, read_archive, reference_study
from nbutils.support.arguments import checked

__all__ = ["both_studies", "dead_by_layer", "dead_figure", "mean_sum"]

WIDTH = 7.6  # inches


def dead_by_layer(network: Any, inputs: Any) -> list[float]:
    """Share of neurons of each hidden layer that no input makes positive.

    Args:
        network: see :func:`nbutils.runs.models.build_model`.
        inputs: tensor, shape (examples, pixels).
    """
    from nbutils.capturing.hooks import capture_activations

    seen = capture_activations(network, inputs, "hidden*.linear")
    return [float((values <= 0).all(axis=0).mean()) for values in seen.values()]


@checked
def dead_figure(courses: Mapping[str, pd.DataFrame]) -> Figure:
    """Dead neurons over steps, one panel per layer.

    Args:
        courses: name of a preparation -> a row per step, a column per layer.
    """
    layers = list(next(iter(courses.values())))
    with figure_style():
        fig, axes = plt.subplots(1, len(layers), figsize=(WIDTH, 2.7), sharey=True, squeeze=False)
        for ax, layer in zip(axes[0], layers, strict=True):
            for (name, course), colour in zip(courses.items(), PREPARATIONS, strict=False):
                ax.plot(course[layer], color=colour, label=name, lw=1.8)
            ax.set(title=layer, xlabel="step", ylim=(-0.02, 1.02))
        axes[0][0].set_ylabel("dead neurons (share)")
        fig.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(fig)
    return fig


def mean_sum(dataset: str) -> float:
    """Sum over the values of an image of their mean brightness, from 0 to 1 each.

    Args:
        dataset: a data set whose images, or kept facts, are there.
    """
    asked = parse_name(dataset)
    sheet = read_datasheet(asked.base)
    height, width, *colours = sheet.image_shape
    pixels = height * width if asked.size is None else asked.size**2
    return float(pixels * (colours[0] if colours else 1) * brightness_table(sheet)["mean"].mean())


def both_studies(rate: float = 0.001) -> pd.DataFrame:
    """What one step of training can do, and how many neurons were dead after training, on every data set.

    Args:
        rate: learning rate of the first study.

    Returns:
        One row per data set of the first study whose tables are there: the shift of one step, the share of dead neurons
        after training with true labels on inputs from 0 to 1, and with standardised inputs in the second study (NaN
        where that has no tables); the same two with random labels.
    """
    second = {found.dataset: found for found in open_all()}
    rows = []
    for name in (*SMALL, *REFERENCE):
        if not has_archive(archive_folder(name)):
            continue
        table = read_archive(archive_folder(name), name).conditions()
        before = table[table["epoch"] == table["epoch"].max()].groupby("labels")["dead_share"].mean()
        after = pd.Series(dtype=float)
        if name in second:
            networks = second[name].tables.networks
            runs = networks[networks["designs"].map(lambda designs: "runs" in designs.split("+"))]
            after = runs.groupby("labels")["dead"].mean()
        shift = rate * mean_sum(reference_study(name).dataset)
        dead = (side.get(labels, np.nan) for labels in ("true", "random") for side in (before, after))
        rows.append((TITLES[name], shift, *dead))
    names = ["data set", "shift of one step", "dead, inputs 0 to 1", "dead, standardised inputs"]
    names += ["random labels, 0 to 1", "random labels, standardised"]
    return pd.DataFrame(rows, columns=names).sort_values("shift of one step", ignore_index=True)
