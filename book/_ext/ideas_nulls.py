"""Pictures of what the tests compare with: shifted and shuffled firing, permuted runs; and how neurons die."""

from __future__ import annotations

from typing import Any

import drawing
import numpy as np

import nbutils as nb
from nbutils.stats import pairwise_correlation

__all__ = [
    "dying_picture",
    "example_firing",
    "example_runs",
    "null_facts",
    "null_firing",
    "nulls_picture",
    "sessions_picture",
]

PER_CLASS, OWN, OTHER = 12, 5, 1  # images of each of two classes; on how many of either a neuron fires
TWINS = ((0, 1), (2, 3), (4, 5), (6, 7))


def example_firing() -> tuple[np.ndarray, np.ndarray]:
    """Firing of eight neurons on 24 images of two classes: four pairs of twins, which fire on the same images.

    Returns:
        Activation pattern matrix, shape (images, neurons), and the class of each image.
    """
    fired = np.zeros((2 * PER_CLASS, 2 * len(TWINS)), bool)
    for number, pair in enumerate(TWINS):
        kind, half = divmod(number, 2)
        own = PER_CLASS * kind + np.arange(OWN) + (OWN + 1) * half
        fired[np.append(own, PER_CLASS * (1 - kind) + 5 + half * 6)[:, None], pair] = True
    return fired, np.repeat([0, 1], PER_CLASS)


def null_firing(seed: int = 0) -> dict[str, np.ndarray]:
    """The example, and one draw of each null model; images stand in random order while they are shifted."""
    fired, labels = example_firing()
    order = np.random.default_rng(seed).permutation(len(fired))
    shifted = np.empty_like(fired)
    shifted[order] = nb.circular_shift_null(fired[order], seed)
    return {
        "The network": fired,
        "Circular shift": shifted,
        "Within-class shuffle": nb.within_class_null(fired, labels, seed),
    }


def null_facts(fired: np.ndarray, labels: np.ndarray) -> tuple[float, float, float]:
    """Means: images on which a neuron fires, those of them in its own class, images on which twins fire together."""
    own = np.repeat([0, 1], fired.shape[1] // 2)
    return (
        float(fired.sum(axis=0).mean()),
        float((fired & (labels[:, None] == own)).sum(axis=0).mean()),
        float(np.mean([(fired[:, i] & fired[:, j]).sum() for i, j in TWINS])),
    )


def nulls_picture() -> str:
    """Firing of a network, shifted, and shuffled within classes."""
    labels, draws = example_firing()[1], null_firing()
    facts = {name: null_facts(fired, labels) for name, fired in draws.items()}
    panels = []
    for name, fired in draws.items():
        images, own, twins = facts[name]
        rows = (
            f"a neuron fires on {images:g} images,",
            f"{own:.1f} of them in its own class;",
            f"partners fire together on {twins:.1f}",
        )
        panels.append(drawing.panel(216, 200, _raster(fired), drawing.lines(0, 156, rows), title=name))
    (_, _, real), (_, own_shifted, shifted), (_, own_shuffled, shuffled) = facts.values()
    caption = (
        "<strong>What a null model keeps, it explains.</strong> Eight neurons in four pairs on 24 images; the "
        "upper four neurons prefer class A, the lower four B. The <em>circular shift</em> turns every row by an amount "
        f"of its own: how often a neuron fires stays; class goes ({own_shifted:.1f} of {OWN + OTHER} images in its "
        f"own, where luck puts {(OWN + OTHER) / 2:g}), and so do partners ({shifted:.1f} of {real:.0f} images "
        f"together). The <em>within-class shuffle</em> deals every row anew inside each class: class stays "
        f"({own_shuffled:.0f} of {OWN + OTHER}), and partners keep the {shuffled:.1f} images that "
        "a common class brings them together on. What is beyond that is firing together for another reason than "
        "class. Firing is made up."
    )
    told = "; ".join(
        f"{name}: {own:.1f} images in the own class, partners together on {twins:.1f}"
        for name, (_, own, twins) in facts.items()
    )
    alt = (
        f"Three grids of firing, eight neurons by 24 images. {told}. Every neuron fires on {OWN + OTHER} images in all "
        "three."
    )
    return drawing.figure("nulls", panels, caption, alt)


def _raster(fired: np.ndarray) -> str:
    left, top, wide, high = 0, 18, 8.8, 14
    parts = [
        drawing.text(left + wide * PER_CLASS * (k + 0.5) + 3 * k, 10, f"class {'AB'[k]}", size=11) for k in range(2)
    ]
    for neuron, row in enumerate(fired.T):
        y = top + high * neuron + 3 * (neuron // 2)
        for image, on in enumerate(row):
            x = left + wide * image + 3 * (image >= PER_CLASS)
            parts.append(drawing.rect(x, y, wide - 1.2, high - 1.5, f"ink tone-{int(neuron >= 4)}" if on else "cell"))
    return "".join(parts)


RUNS, EPOCHS = 5, 12


def example_runs(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A measure and an accuracy of five runs over twelve epochs, made up: a common course, and something of their own.

    Returns:
        Two tables, shape (runs, epochs).
    """
    rng, course = np.random.default_rng(seed), 1 - np.exp(-np.arange(1, EPOCHS + 1) / 4)
    own = rng.normal(0, 0.06, (RUNS, EPOCHS))
    measure = 0.4 + 0.3 * course + own * 0.6 + rng.normal(0, 0.02, (RUNS, EPOCHS))
    return measure, 0.5 + 0.45 * course + own + rng.normal(0, 0.03, (RUNS, EPOCHS))


def sessions_picture() -> str:
    """Correlations of each run's measure with each run's accuracy, before and after the common course is taken out."""
    measure, accuracy = example_runs()
    raw = nb.session_permutation(measure, accuracy, 0)
    left = [nb.two_way_residuals(table) for table in (measure, accuracy)]
    rest = nb.session_permutation(*left, 0)
    panels = [
        drawing.panel(216, 236, _courses(measure, accuracy), title="Five runs"),
        drawing.panel(216, 236, _matrix(pairwise_correlation(measure, accuracy), raw), title="As they are"),
        drawing.panel(216, 236, _matrix(pairwise_correlation(*left), rest), title="Without the common course"),
    ]
    own, others = raw.statistic, _off(pairwise_correlation(measure, accuracy))
    own_rest, others_rest = rest.statistic, _off(pairwise_correlation(*left))
    caption = (
        "<strong>Only what belongs to one run can tell that its measure follows its accuracy.</strong> Rows: the "
        f"measure of run 1 to 5, columns: the accuracy of run 1 to 5, in the cells Spearman's ρ over {EPOCHS} epochs. "
        f"A run's measure goes with its own accuracy (outlined, mean {own:.2f}), but with that of any other run, too "
        f"({others:.2f}): all drift alike. In two-way residuals {own_rest:.2f} is left of the first and "
        f"{_minus(others_rest)} of the second. The p value is the share of the {rest_count()} ways to permute runs "
        f"whose mean is at least as large: {raw.p_value:.3f} and {rest.p_value:.3f}. The curves are made up."
    )
    alt = (
        f"Curves of five runs that rise alike; a table of 25 correlations between {own:.2f} on the diagonal and "
        f"{others:.2f} elsewhere on average; the same table of two-way residuals, {own_rest:.2f} on the diagonal and "
        f"{others_rest:.2f} elsewhere."
    )
    return drawing.figure("sessions", panels, caption, alt)


def rest_count() -> int:
    """How many orders five runs have."""
    return int(np.prod(range(1, RUNS + 1)))


def _off(table: np.ndarray) -> float:
    return float(table[~np.eye(len(table), dtype=bool)].mean())


def _minus(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _courses(measure: np.ndarray, accuracy: np.ndarray) -> str:
    x = np.linspace(4, 212, EPOCHS)
    parts = [drawing.text(108, 232, "epoch 1 to 12", size=11)]
    for row, (table, name) in enumerate(((accuracy, "accuracy"), (measure, "measure"))):
        top = 20 + 104 * row
        low, high = table.min(), table.max()
        parts += [drawing.text(0, top - 6, name, anchor="start"), drawing.line(0, top + 80, 216, top + 80, "axis")]
        for run in table:
            y = top + 78 - 76 * (run - low) / (high - low)
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
            parts.append(f'<polyline class="curve thin" points="{points}"/>')
    return "".join(parts)


def _matrix(table: np.ndarray, found: Any) -> str:
    """Positive values in one colour, negative ones in another and with their sign; the diagonal outlined."""
    left, top, wide, high = 18, 18, 39.6, 32
    parts = [drawing.text(left + wide * RUNS / 2, 10, "accuracy of run", size=11)]
    for i, row in enumerate(table):
        parts.append(drawing.text(left - 8, top + high * i + 20, i + 1, anchor="end", size=11))
        for j, value in enumerate(row):
            x, y = left + wide * j, top + high * i
            parts.append(
                drawing.rect(x, y, wide - 3, high - 3, f"ink tone-{0 if value >= 0 else 1}", 0.55 * abs(value))
            )
            parts.append(drawing.text(x + wide / 2 - 1, y + 19, _minus(value), size=11))
            if i == j:
                parts.append(drawing.rect(x - 1, y - 1, wide - 1, high - 1, "frame"))
    rows = (f"own run, mean: {_minus(found.statistic)}", f"p = {found.p_value:.3f}")
    return "".join(parts) + drawing.lines(left, top + high * RUNS + 20, rows)


def dying_picture(data: dict[str, Any]) -> str:
    """One neuron's pre-activations before and after a few steps, for three ways to prepare the same images.

    Args:
        data: what `hero.dying` found.
    """
    ways = data["ways"]
    every = [value for way in ways.values() for when in ("before", "after") for value in way[when]]
    panels = [
        drawing.panel(
            216, 186, _strips(way, (min(every), max(every)), data["steps"]), title=name[:1].upper() + name[1:]
        )
        for name, way in ways.items()
    ]
    white, black, centred = ways.values()
    count = len(white["before"])
    caption = (
        "<strong>Inputs that are all positive move a neuron for all images at once.</strong> One neuron's input to "
        f"its ReLU for {count} images of {data['title']} (a dot each), before training and after {data['steps']} steps "
        "of Adam; right of the line it fires. With a white background nearly all inputs are near 1, so all weights "
        "pull one way: the neuron sinks below 0 for every image, its gradient is 0, and it stays there. After these "
        f"steps {_dead(white)} of the first layer's neurons are dead, {_dead(black)} with a black background, where "
        f"most inputs are 0, and {_dead(centred)} with inputs of mean 0. Only the inputs differ. Network: mlp:512-512."
    )
    told = "; ".join(
        f"inputs {name}: it fires on {_fires(way['before'])} of {count} images before and {_fires(way['after'])} "
        f"after, {_dead(way)} of neurons dead"
        for name, way in ways.items()
    )
    return drawing.figure(
        "dying", panels, caption, f"Dots of one neuron's pre-activations in three panels. {told[0].upper()}{told[1:]}."
    )


def _dead(way: dict[str, Any]) -> str:
    return f"{way['dead'][-1]:.0%}".replace("%", " %")


def _fires(values: list[float]) -> int:
    return sum(value > 0 for value in values)


def _strips(way: dict[str, Any], ends: tuple[float, float], steps: int) -> str:
    low, high = ends

    def place(value: float) -> float:
        return 5 + 206 * (value - low) / (high - low)

    parts = [drawing.line(place(0), 6, place(0), 122, "frame", 1.5), drawing.text(place(0), 136, "0", size=11)]
    for row, (when, name) in enumerate((("before", "before training"), ("after", f"after {steps} steps"))):
        y = 34 + 62 * row
        parts += [drawing.text(0, y - 18, name, anchor="start", size=11), drawing.line(0, y + 20, 216, y + 20, "grid")]
        for number, value in enumerate(way[when]):
            kind = "neuron tone-0" if value > 0 else "hollow tone-1"
            parts.append(drawing.circle(round(place(value), 1), y - 8 + 6 * (number % 5), 3, kind))
    rows = (
        f"fires on {_fires(way['before'])}, then {_fires(way['after'])} of {len(way['after'])} images",
        f"dead neurons: {_dead(way)}",
    )
    return "".join(parts) + drawing.lines(0, 156, rows)
