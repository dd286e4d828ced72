"""Residual networks for CIFAR-10 with names of parameters as in Y. Idelbayev's collection of trained ones.

`python -m nbutils measure --model book/examples/resnets.py:resnet56` takes a file like this one: a function without
arguments that returns a PyTorch module. The architecture is that of He et al. (2016), arXiv:1512.03385, with shortcuts
that have no weights.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """Two convolutions and a way around them; where it narrows, new channels are 0."""

    def __init__(self, taken: int, given: int) -> None:
        super().__init__()
        self.stride, self.new = (1, 0) if taken == given else (2, (given - taken) // 2)
        self.conv1 = nn.Conv2d(taken, given, 3, self.stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(given)
        self.conv2 = nn.Conv2d(given, given, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(given)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The next block's channels."""
        inner = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        around = functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.new, self.new))
        return functional.relu(around + inner)


class ResNet(nn.Module):
    """Three stages of blocks with 16, 32 and 64 channels."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*(Block(16, 16) for _ in range(blocks)))
        self.layer2 = nn.Sequential(Block(16, 32), *(Block(32, 32) for _ in range(blocks - 1)))
        self.layer3 = nn.Sequential(Block(32, 64), *(Block(64, 64) for _ in range(blocks - 1)))
        self.linear = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of ten classes."""
        x = functional.relu(self.bn1(self.conv1(x)))
        return self.linear(self.layer3(self.layer2(self.layer1(x))).mean(dim=(2, 3)))


def resnet20() -> ResNet:
    """20 layers."""
    return ResNet(3)


def resnet56() -> ResNet:
    """56 layers."""
    return ResNet(9)
