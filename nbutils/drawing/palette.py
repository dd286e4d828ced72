"""One meaning, one colour, in all figures of the book: what each hue stands for.

Blue is what a figure is about: a network, or the measure of this book, where nothing else is told apart. There are more
meanings than hues that everybody can tell apart, so meanings of different kinds, which no figure shows together, share
hues. The eight hues are 20 or more apart in CIELAB for any two of them, also for people without one kind of cone, and
stand out from a white page and from a dark one.
"""

from __future__ import annotations

from collections.abc import Mapping

BLUE, ORANGE, GREEN, PURPLE = "#3860d6", "#cf8f1c", "#18ab60", "#80508c"
RED, SKY, PINK, GREY = "#bc1a16", "#5098ec", "#c88cbc", "#747468"
HUES = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY, PINK, GREY)
LINE = "#6b7280"  # of axes through 0, and of what frames

SUBJECT = BLUE  # what a figure is about; trained, where untrained stands beside it
UNTRAINED = ORANGE  # networks before training, and twins that never were trained
NOTHING = GREY  # null models, noise, controls, what is undecided

VERDICTS: Mapping[str, str] = {"supported": GREEN, "not supported": ORANGE, "refuted": RED, "inconclusive": GREY}
LABELS: Mapping[str, str] = {"true": SKY, "mixed:0.5": PURPLE, "random": PINK}
DATASETS: Mapping[str, str] = {
    "mnist": PURPLE,
    "fashion-mnist": ORANGE,
    "kmnist": PINK,
    "cifar10": RED,
    "plantvillage": GREEN,
    "digits": SKY,
    "mnist-5k": GREY,
}
# Column -> colour and marker, where several measures share a figure.
MEASURES: Mapping[str, tuple[str, str]] = {
    "modularity": (BLUE, "o"),
    "excess": (SKY, "s"),
    "remainder": (ORANGE, "^"),
    "left": (PINK, "v"),
    "accuracy": (RED, "^"),
    "train_accuracy": (ORANGE, "v"),
    "active_entropy": (PURPLE, "D"),
    "block_entropy": (GREEN, "v"),
}
FAMILIES = (ORANGE, RED, BLUE, GREEN, PURPLE, GREY, PINK)  # of measures, in the order of the registry's families
ERRORS: Mapping[str, tuple[str, str]] = {
    "false_positive": (SKY, "o"),
    "false_negative": (ORANGE, "s"),
    "confusion": (PURPLE, "^"),
}
SPARSITY: Mapping[str, str] = {"MT": BLUE, "ST": ORANGE, "L1": PINK, "KL": GREEN, "none": GREY}
RULES = ((BLUE, "o"), (ORANGE, "s"), (PINK, "^"), (GREY, "D"), (GREEN, "v"))  # of pruning, in their order
# Penalty -> colour and dashes; controls are grey.
PENALTIES: Mapping[str, tuple[str, str]] = {
    "modularity": (BLUE, "-"),
    "learned": (GREEN, "-"),
    "entropy": (PURPLE, "-"),
    "selectivity": (GREY, "--"),
    "activity": (GREY, ":"),
    "random": (GREY, "-."),
}
PREPARATIONS = (RED, ORANGE, GREEN, BLUE)  # of inputs: those that kill neurons first
SIZES = ("#9db8ee", BLUE, "#1c3472")  # an order, such as of training sets: light to dark
# Communities, the largest first; their numbers mean nothing. Beyond seven, names beside them tell them apart.
COMMUNITIES = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY, PINK, "#b39a1c", "#8a6d4f", "#7fae3c")
