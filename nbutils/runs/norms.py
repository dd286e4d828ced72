"""Norms of the weights of networks with convolutions, batch normalisation and ways around layers."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import nn

from nbutils.runs.architectures import Pictures, Pooled
from nbutils.runs.sparsity import SpatialSparsity

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


def module_spectral_norms(network: nn.Module) -> np.ndarray:
    """The largest singular value of every matrix of weights, with the batch normalisation behind it.

    In evaluation mode batch normalisation multiplies a channel by gamma / sqrt(variance + eps): with the layer before
    it that is one linear map. A convolution's kernel is read as a matrix (channels given, channels taken * positions).

    Args:
        network: any, in evaluation mode.

    Returns:
        One per matrix in the order of the modules, shape (matrices,).

    Examples:
        >>> layer = nn.Linear(2, 2, bias=False)
        >>> layer.weight.data = torch.tensor([[3.0, 0.0], [0.0, 1.0]])
        >>> module_spectral_norms(layer).tolist()
        [3.0]

    References:
        Kernels as matrices: Yoshida and Miyato (2017), arXiv:1705.10941.
    """
    found = [one for name, one in _folded(network).named_parameters() if "weight" in name and one.ndim > 1]
    return np.array([float(torch.linalg.matrix_norm(one.detach().double().flatten(1), 2)) for one in found])


def module_path_norm(network: nn.Module, pixels: int) -> float:
    """The l2 path norm of a network of convolutions, see :func:`nbutils.runs.weights.path_norm`.

    What the network of squared weights gives out for an input of ones: batch normalisation is part of the layer before
    it, a way around layers has weights of 1, a mean over n positions weights of 1 / n; of what is pooled by its
    maximum, the path that weighs most.

    Args:
        network: fully connected, or one of `nbutils.runs.architectures` without attention; in evaluation mode.
        pixels: number of values of an input.

    Returns:
        >= 0; NaN for a network with attention, whose paths have weights that depend on the input.

    Examples:
        >>> layer = nn.Linear(1, 2, bias=False)
        >>> layer.weight.data = torch.tensor([[3.0], [4.0]])
        >>> module_path_norm(layer, pixels=1)
        5.0
    """
    if any(isinstance(one, nn.MultiheadAttention) for one in network.modules()):
        return math.nan
    squared = _folded(network).double()
    with torch.no_grad():
        for one in squared.parameters():
            one.square_()
        for one in squared.modules():
            if isinstance(one, Pooled):
                one.register_forward_hook(lambda _one, given, mean: mean / given[0][0, 0].numel())
            elif isinstance(one, nn.Dropout):
                one.eval()
        return float(squared(torch.ones(1, pixels, dtype=torch.float64)).sum().sqrt())


def _folded(network: nn.Module) -> nn.Module:
    """A copy in which batch normalisation is part of the layer before it."""
    found = copy.deepcopy(network).eval().cpu()
    before: nn.Module | None = None
    for name, module in list(found.named_modules()):
        if isinstance(module, NORMS):
            if not isinstance(before, nn.Linear | nn.Conv2d):
                raise ValueError(f"batch normalisation {name!r} must follow a layer with weights")
            _fold(before, module)
            parent, _, own = name.rpartition(".")
            holder = found.get_submodule(parent)
            setattr(holder, own, nn.Identity())
            if isinstance(holder, SpatialSparsity):  # its thresholds are what the biases are lowered by
                _lower(before, holder)
        elif not any(True for _ in module.children()) and not isinstance(module, Pictures):
            before = module
    return found


def _fold(layer: nn.Linear | nn.Conv2d, norm: nn.Module) -> None:
    scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
    with torch.no_grad():
        shift = norm.bias - norm.running_mean * scale
        if layer.bias is not None:
            shift = shift + layer.bias * scale
        layer.weight.mul_(scale.view(-1, *[1] * (layer.weight.ndim - 1)))
        layer.bias = nn.Parameter(shift)


def _lower(layer: nn.Linear | nn.Conv2d, sparse: SpatialSparsity) -> None:
    with torch.no_grad():
        layer.bias.sub_(sparse.threshold)
        sparse.threshold.zero_()
