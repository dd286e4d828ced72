"""What a network that was trained with dropout does not know: dropout left on, many draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import entropy

from nbutils.support.checks import as_count

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Uncertainty", "monte_carlo_dropout", "predictive_entropy"]


@dataclass(frozen=True)
class Uncertainty:
    """Of every example, in bits.

    Attributes:
        total: entropy of the mean probabilities.
        disagreement: the part of it by which draws differ, their mutual information with the class; the rest is what
            every draw itself is unsure of.
    """

    total: np.ndarray
    disagreement: np.ndarray


def monte_carlo_dropout(model: nn.Module, inputs: np.ndarray, draws: int = 30, seed: int = 0) -> np.ndarray:
    """Probabilities of the classes with dropout left on, drawn many times.

    Only dropout is switched on; batch normalisation stays as in evaluation.

    Args:
        model: from inputs to logits, with at least one layer of dropout; it is left in evaluation mode.
        inputs: shape (examples, ...), float32.
        draws: from 1 to 10,000.
        seed: of the draws.

    Returns:
        Shape (draws, examples, classes), float64.

    Raises:
        ValueError: the model has no dropout, or `draws` is out of range.

    Examples:
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2))
        >>> monte_carlo_dropout(model, np.ones((4, 3), "f4"), draws=5).shape
        (5, 4, 2)

    References:
        Gal and Ghahramani (2016), arXiv:1506.02142.
    """
    import torch
    from torch import nn

    draws = as_count(draws, "draws", most=10_000)
    kinds = (nn.Dropout, nn.AlphaDropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.FeatureAlphaDropout)
    layers = [layer for layer in model.modules() if isinstance(layer, kinds) and layer.p > 0]
    if not layers:
        raise ValueError("model must have a layer of dropout, received one without")
    given = torch.from_numpy(np.ascontiguousarray(inputs)).to(next(model.parameters()).device)
    model.eval()
    try:
        for layer in layers:
            layer.train()
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(seed)
            found = [model(given).double().softmax(dim=1).cpu().numpy() for _ in range(draws)]
    finally:
        model.eval()
    return np.stack(found)


def predictive_entropy(draws: np.ndarray) -> Uncertainty:
    """Uncertainty of predictions, and the part of it by which draws differ.

    H(mean p) and H(mean p) - mean H(p), with H(p) = -sum_c p_c log2 p_c.

    Args:
        draws: probabilities, shape (draws, examples, classes).

    Returns:
        An :class:`Uncertainty`; values of shape (examples,), the disagreement at most the total.

    Examples:
        >>> found = predictive_entropy(np.array([[[1.0, 0.0]], [[0.0, 1.0]]]))  # two draws, each sure of another class
        >>> found.total.tolist(), found.disagreement.tolist()
        ([1.0], [1.0])

    References:
        Houlsby et al. (2011), arXiv:1112.5745.
    """
    shares = np.asarray(draws, dtype=np.float64)
    total = entropy(shares.mean(axis=0), base=2, axis=-1)
    return Uncertainty(total, np.clip(total - entropy(shares, base=2, axis=-1).mean(axis=0), 0, None))
