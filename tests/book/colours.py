"""How far colours are apart, for everybody and for people without one kind of cone."""

from __future__ import annotations

import numpy as np

# What people without one kind of cone see, in linear RGB: Machado et al. (2009), doi:10.1109/TVCG.2009.113.
BLIND = {
    "nobody": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def linear(colour: str) -> np.ndarray:
    """RGB from 0 to 1, proportional to light."""
    value = np.array([int(colour[n : n + 2], 16) for n in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    """CIELAB, in which two colours 20 apart are told apart at a glance."""
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = matrix @ np.clip(light, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def apart(one: str, other: str, who: str = "nobody") -> float:
    """Distance of two colours in CIELAB, as somebody sees them who lacks a kind of cone."""
    first, second = (lab(np.array(BLIND[who]) @ linear(colour)) for colour in (one, other))
    return float(np.linalg.norm(first - second))


def contrast(one: str, other: str) -> float:
    """Ratio of the brightness of two colours, from 1 to 21 (WCAG 2)."""
    bright, dim = sorted((np.array([0.2126, 0.7152, 0.0722]) @ linear(colour) for colour in (one, other)), reverse=True)
    return float((bright + 0.05) / (dim + 0.05))
