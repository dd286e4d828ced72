"""Where tensors are computed with: this processor or a CUDA device; and co-firing counted on the latter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from nbutils.support.checks import as_count, as_fired, is_among, shown
from nbutils.support.machine import is_portable

if TYPE_CHECKING:
    import torch

DEVICES = ("auto", "cpu", "cuda")
STRIP = 4096  # neurons whose pairs with all others are held at once: 4096 x neurons x 4 bytes
EXACT = 1 << 24  # whole numbers up to here are exact in float32


def resolve_device(device: str) -> str:
    """The device that a name stands for: "cpu" or "cuda".

    Args:
        device: "cpu"; "cuda"; or "auto", which is CUDA where PyTorch finds a usable device, else the processor; in
            portable mode (see :mod:`nbutils.support.machine`) always the processor.

    Returns:
        "cpu" or "cuda". PyTorch is imported only where it has to be asked.

    Raises:
        ValueError: another name, or "cuda" without a usable device or in portable mode.

    Examples:
        >>> resolve_device("cpu")
        'cpu'
    """
    if not is_among(device, DEVICES):
        raise ValueError(f"device must be 'auto', 'cpu' or 'cuda', received {shown(device)}")
    if device == "cuda" and is_portable():
        raise ValueError("device is 'cuda', but in portable mode only the processor computes; use 'cpu' or 'auto'")
    if device == "cpu" or is_portable():
        return "cpu"
    import torch

    found = torch.cuda.is_available()
    if device == "cuda" and not found:
        raise ValueError("device is 'cuda', but PyTorch finds no CUDA device here; use 'cpu' or 'auto'")
    return "cuda" if found else "cpu"


def on_processor(tensor: torch.Tensor) -> bool:
    """Whether a tensor lies in this processor's own memory."""
    return tensor.device.type == "cpu"


def device_counts(fired: Any, device: str | torch.device) -> np.ndarray:
    """Co-firing counts by matrix products on a device; the same whole numbers as those of packed bits.

    A float32 product of zeros and ones is exact as long as no sum exceeds 2**24, also in TF32 arithmetic.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; a tensor may lie on the device already.
        device: a device that PyTorch knows.

    Returns:
        Counts, int32, shape (neurons, neurons), symmetric, exact.

    Examples:
        >>> device_counts([[1, 1, 0], [1, 0, 0]], "cpu").tolist()
        [[2, 1, 0], [1, 1, 0], [0, 0, 0]]
    """
    import torch

    ready = isinstance(fired, torch.Tensor) and fired.dtype == torch.bool and fired.ndim == 2 and len(fired) > 0
    matrix = (fired if ready else torch.from_numpy(as_fired(fired))).to(device)
    counts = torch.zeros(matrix.shape[1], matrix.shape[1], dtype=torch.int32, device=device)
    for part in matrix.split(EXACT):
        ones = part.float()
        counts += (ones.T @ ones).int()
    return counts.cpu().numpy()


def device_histogram(fired: Any, device: str) -> np.ndarray:
    """How many pairs fire together 0, 1, 2, ... times, as :func:`nbutils.cofiring.count_histogram`, on a device.

    Pairs are counted in strips, so that no N x N matrix is held.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; fewer than 2**24 examples.
        device: a name that PyTorch knows.

    Returns:
        Number of pairs, int64, shape (examples + 1,).

    Raises:
        ValueError: too many examples.

    Examples:
        >>> device_histogram([[1, 1, 0], [1, 1, 0]], "cpu").tolist()
        [2, 0, 1]
    """
    import torch

    ones = _ones(fired, device)
    histogram = torch.zeros(len(ones) + 1, dtype=torch.int64, device=device)
    for _, counts in _strips(ones):
        histogram += torch.bincount(counts[counts >= 0].long(), minlength=len(ones) + 1)
    return histogram.cpu().numpy()


def device_pairs(fired: Any, threshold: int, device: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs that fire together at least so often, as :func:`nbutils.cofiring.pairs_from`, on a device.

    Args:
        fired: activation pattern matrix, shape (examples, neurons), boolean; fewer than 2**24 examples.
        threshold: smallest count, at least 1.
        device: a name that PyTorch knows.

    Returns:
        (i, j, count) with i < j, sorted by i, then j.

    Raises:
        ValueError: too many examples.

    Examples:
        >>> [part.tolist() for part in device_pairs([[1, 1, 0], [1, 1, 1]], 2, "cpu")]
        [[0], [1], [2]]
    """
    import torch

    found, threshold = [], as_count(threshold, "threshold")
    for start, counts in _strips(_ones(fired, device)):
        rows, columns = torch.nonzero(counts >= threshold, as_tuple=True)
        found.append((rows + start, columns + start, counts[rows, columns]))
    rows, columns, weights = (torch.cat(parts).cpu().numpy() for parts in zip(*found, strict=True))
    return rows.astype(np.int32), columns.astype(np.int32), weights.astype(np.uint32)


def _ones(fired: Any, device: str) -> torch.Tensor:
    import torch

    matrix = as_fired(fired)
    if len(matrix) >= EXACT:
        raise ValueError(f"fired must have fewer than 2**24 examples on a device, received {len(matrix)}; use 'cpu'")
    return torch.from_numpy(matrix).to(device).float()


def _strips(ones: torch.Tensor) -> Iterator[tuple[int, torch.Tensor]]:
    """(first neuron, counts of some neurons with all from the first on); -1 where a pair is no pair or comes twice."""
    for start in range(0, ones.shape[1], STRIP):
        counts = ones[:, start : start + STRIP].T @ ones[:, start:]
        yield start, counts.triu(1) - counts.new_ones(counts.shape).tril()
