"""How far simple rules get on a data set: a floor under every accuracy that a network reaches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from nbutils.arguments import checked
from nbutils.datasets import Dataset
from nbutils.datasheets import readable
from nbutils.sampling import balanced_indices

__all__ = ["brightness_table", "channel_means", "simple_accuracies"]

COMMONEST, BRIGHTNESS, MEANS, LINEAR = (
    "always the commonest class",
    "brightness only",
    "nearest class mean",
    "logistic regression",
)
COMPONENTS = 64  # principal components that logistic regression sees; more take longer and gain little
CHUNK = 5000  # images at a time, so that a large data set never stands in memory as floating-point numbers


def channel_means(pixels: Any, image_shape: tuple[int, ...]) -> np.ndarray:
    """Mean brightness of each image, one number per channel, in the units of `pixels`.

    Args:
        pixels: shape (examples, height * width * channels), the channel last.
        image_shape: (height, width), or (height, width, channels).

    Returns:
        Shape (examples, 1) for grey images, (examples, 3) for colour.

    Raises:
        ValueError: the two shapes disagree.

    Examples:
        >>> channel_means(np.array([[0, 2, 4, 6]]), (2, 2)).tolist()
        [[3.0]]
    """
    rows = np.asarray(pixels)
    if rows.ndim != 2 or rows.shape[1] != np.prod(image_shape):
        raise ValueError(f"pixels must have {np.prod(image_shape)} columns for image_shape, received {rows.shape}")
    channels = image_shape[2] if len(image_shape) == 3 else 1
    return rows.reshape(len(rows), -1, channels).mean(axis=1)


@checked
def brightness_table(data: Dataset) -> pd.DataFrame:
    """Brightness of the training images' pixels, on the scale from 0 (black) to 1.

    Args:
        data: the data set.

    Returns:
        One row per channel: `channel`, `mean` and `standard deviation` over all pixels of all images, `black` and
        `brightest` (shares of pixels at 0 and at 1).

    Examples:
        >>> from nbutils.datasets import load_dataset
        >>> brightness_table(load_dataset("digits"))["channel"].tolist()
        ['grey']
    """
    names = ("red", "green", "blue") if len(data.image_shape) == 3 else ("grey",)
    counts = np.zeros((len(names), data.levels + 1), np.int64)
    for start in range(0, len(data.train_pixels), CHUNK):
        pixels = data.train_pixels[start : start + CHUNK].reshape(-1, len(names))
        counts += [np.bincount(pixels[:, c], minlength=data.levels + 1) for c in range(len(names))]
    shares, levels = counts / counts.sum(axis=1, keepdims=True), np.arange(data.levels + 1) / data.levels
    mean = shares @ levels
    columns = {"mean": mean, "standard deviation": np.sqrt(np.maximum(shares @ levels**2 - mean**2, 0))}
    return pd.DataFrame({"channel": names, **columns, "black": shares[:, 0], "brightest": shares[:, -1]})


@checked
def simple_accuracies(data: Dataset, examples: int = 5000) -> pd.DataFrame:
    """Test accuracy of four rules, from knowing nothing to weighing all pixels.

    In turn: always the class with most training images; logistic regression on the mean brightness of each channel
    (one number, or three for colour); the class whose mean image is nearest (Euclidean); logistic regression on the
    64 leading principal components of the pixels. All but the first learn from `examples` training images, equally
    many of each class as far as the classes allow; all are tested on every test image.

    Args:
        data: the data set.
        examples: training images to learn from; all of them where there are fewer.

    Returns:
        One row per rule: `rule`, `accuracy`, `low` and `high` (95 % Wilson interval over test images), `mean over
        classes` (accuracy with every class weighing the same), `hardest class` (with the share of it that was named);
        shares in [0, 1].

    Raises:
        ValueError: `examples` is below 1, or so few that a class has none.

    Examples:
        >>> from nbutils.datasets import load_dataset
        >>> table = simple_accuracies(load_dataset("digits"))
        >>> table["accuracy"].round(1).tolist()
        [0.1, 0.1, 0.9, 1.0]

    References:
        Wilson (1927), doi:10.1080/01621459.1927.10502953, for the interval.
    """
    from threadpoolctl import threadpool_limits

    few = balanced_indices(data.train_true, min(examples, len(data.train_true)), "examples")
    labels = data.train_true[few]
    if len(np.unique(labels)) < len(data.classes):
        raise ValueError(f"examples must reach every one of {len(data.classes)} classes, received {examples}")
    train, test = data.to_inputs(data.train_pixels[few]), data.test_inputs
    with threadpool_limits(1):  # the same bits on any number of cores, and quicker where others compute too
        guesses = {
            COMMONEST: np.full(len(test), np.bincount(data.train_true).argmax()),
            BRIGHTNESS: _by_brightness(train, labels, test, data.image_shape),
            MEANS: _nearest_mean(train, labels, test),
            LINEAR: _logistic(min(COMPONENTS, *train.shape)).fit(train, labels).predict(test),
        }
    table = pd.DataFrame([{"rule": rule, **_score(guess, data)} for rule, guess in guesses.items()])
    table.loc[table["rule"] == COMMONEST, "hardest class"] = "–"  # all but one
    return table


def _by_brightness(train: np.ndarray, labels: np.ndarray, test: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return _logistic().fit(channel_means(train, shape), labels).predict(channel_means(test, shape))


def _nearest_mean(train: np.ndarray, labels: np.ndarray, test: np.ndarray) -> np.ndarray:
    from sklearn.metrics import pairwise_distances_argmin

    return pairwise_distances_argmin(test, np.stack([train[labels == k].mean(axis=0) for k in np.unique(labels)]))


def _logistic(components: int | None = None) -> Any:
    from sklearn.decomposition import PCA
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # Components without variance, such as those of pixels that are always black, must not be scaled up.
    first = StandardScaler() if components is None else PCA(components, svd_solver="randomized", random_state=0)
    return make_pipeline(first, LogisticRegression(max_iter=1000, tol=1e-3))


def _score(guess: np.ndarray, data: Dataset) -> dict[str, Any]:
    from scipy.stats import binomtest

    right = guess == data.test_labels
    interval = binomtest(int(right.sum()), len(right)).proportion_ci(method="wilson")
    present = np.unique(data.test_labels)
    named = np.array([right[data.test_labels == k].mean() for k in present])
    hardest = f"{readable(data.classes[present[named.argmin()]])} ({named.min():.2f})"
    shares = {"accuracy": float(right.mean()), "low": interval.low, "high": interval.high}
    return {**shares, "mean over classes": float(named.mean()), "hardest class": hardest}
