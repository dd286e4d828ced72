"""Networks that take images as images: convolutional ones and a vision transformer, small enough to be trained here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

HEAD = 16  # values of an attention head
PATCH = 4  # side of a patch, in pixels
HIDDEN = 2  # hidden units of a transformer's block for every value of a token
RANDOM = 0.02  # deviation of the first position values, as in Dosovitskiy et al. (2021)


class Pictures(nn.Module):
    """Rows of pixels as images: (examples, height * width * channels) to (examples, channels, height, width)."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = (*shape, 1)[:3]

    def forward(self, rows: Tensor) -> Tensor:
        """The images, channels first."""
        return rows.view(-1, *self.shape).permute(0, 3, 1, 2)


class Pooled(nn.Module):
    """Mean over all positions of a channel."""

    def forward(self, images: Tensor) -> Tensor:
        """(examples, channels, height, width) to (examples, channels)."""
        return images.mean(dim=(2, 3))


def _filters(taken: int, given: int, stride: int = 1) -> list[nn.Module]:
    """A 3x3 convolution and its batch normalisation, which has the bias."""
    return [nn.Conv2d(taken, given, 3, stride, 1, bias=False), nn.BatchNorm2d(given)]


class Unit(nn.Module):
    """Convolution, batch normalisation, ReLU; before a wider one, the largest of every 2x2 positions."""

    def __init__(self, taken: int, given: int, pooled: bool) -> None:
        super().__init__()
        self.pool = nn.MaxPool2d(2) if pooled else nn.Identity()
        self.conv, self.norm = _filters(taken, given)
        self.relu = nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        """Channels of the next layer."""
        return self.relu(self.norm(self.conv(self.pool(images))))


class Residual(nn.Module):
    """Two convolutions beside a way around them; where it narrows, every second position, new channels are 0."""

    def __init__(self, taken: int, given: int) -> None:
        super().__init__()
        self.stride, self.new = (1, 0) if taken == given else (2, given - taken)
        self.conv1, self.norm1 = _filters(taken, given, self.stride)
        self.relu1 = nn.ReLU()
        self.conv2, self.norm2 = _filters(given, given)
        self.relu2 = nn.ReLU()

    def forward(self, images: Tensor) -> Tensor:
        """Channels of the next block."""
        inner = self.norm2(self.conv2(self.relu1(self.norm1(self.conv1(images)))))
        if self.new:
            kept = images[:, :, :: self.stride, :: self.stride]
            images = nn.functional.pad(kept, (0, 0, 0, 0, 0, self.new))
        return self.relu2(images + inner)


class Block(nn.Module):
    """A block of a transformer: attention, then an MLP with one hidden layer, each beside a way around it."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, width // HEAD, dropout, batch_first=True)
        self.widen, self.gelu = nn.Linear(width, HIDDEN * width), nn.GELU()
        self.narrow, self.dropout = nn.Linear(HIDDEN * width, width), nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens of the next block, shape (examples, tokens, width)."""
        seen = self.norm1(tokens)
        tokens = tokens + self.dropout(self.attention(seen, seen, seen, need_weights=False)[0])
        return tokens + self.dropout(self.narrow(self.gelu(self.widen(self.norm2(tokens)))))


class Transformer(nn.Module):
    """A vision transformer: patches become tokens, blocks, the mean of the tokens, a linear layer."""

    def __init__(self, shape: tuple[int, ...], width: int, depth: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.pictures = Pictures(shape)
        channels, positions = self.pictures.shape[2], (shape[0] // PATCH) * (shape[1] // PATCH)
        self.patches = nn.Conv2d(channels, width, PATCH, PATCH)
        self.places = nn.Parameter(RANDOM * torch.randn(1, positions, width))
        self.blocks = nn.Sequential(*(Block(width, dropout) for _ in range(depth)))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, rows: Tensor) -> Tensor:
        """Scores of every class."""
        tokens = self.patches(self.pictures(rows)).flatten(2).transpose(1, 2) + self.places
        return self.output(self.norm(self.blocks(tokens)).mean(dim=1))


def plain_convolutions(
    shape: tuple[int, ...], channels: Sequence[int], classes: int, dropout: float = 0.0
) -> nn.Sequential:
    """A network of 3x3 convolutions in the manner of VGG, with batch normalisation.

    Args:
        shape: (height, width) or (height, width, channels) of an image.
        channels: of every convolution; before each that has more than the one before it, positions are halved.
        classes: number of outputs.
        dropout: share of the last layer's channels dropped in training.

    Returns:
        `unit1`, `unit2`, ..., each with `conv`, `norm` and `relu`; the mean over positions; `output`.

    References:
        Simonyan and Zisserman (2015), arXiv:1409.1556.
    """
    network, before = nn.Sequential(), (*shape, 1)[2]
    network.add_module("pictures", Pictures(shape))
    for number, width in enumerate(channels, 1):
        network.add_module(f"unit{number}", Unit(before, width, number > 1 and width > before))
        before = width
    return _with_head(network, before, classes, dropout)


def residual_convolutions(
    shape: tuple[int, ...], depth: int, width: int, classes: int, dropout: float = 0.0
) -> nn.Sequential:
    """A residual network for small images: three stages of blocks, each with half the positions and twice the channels.

    Args:
        shape: (height, width) or (height, width, channels) of an image.
        depth: layers with weights, 6 n + 2: the first, n blocks of two in each stage, the output.
        width: channels of the first stage.
        classes: number of outputs.
        dropout: share of the last layer's channels dropped in training.

    Returns:
        `unit`, `block1`, `block2`, ..., the mean over positions, `output`.

    References:
        He, Zhang, Ren and Sun (2016), arXiv:1512.03385, section 4.2, with shortcuts that have no weights (option A).
    """
    network, before = nn.Sequential(), width
    network.add_module("pictures", Pictures(shape))
    network.add_module("unit", Unit((*shape, 1)[2], width, False))
    for number in range((depth - 2) // 2):
        given = width * 2 ** (number // ((depth - 2) // 6))
        network.add_module(f"block{number + 1}", Residual(before, given))
        before = given
    return _with_head(network, before, classes, dropout)


def _with_head(network: nn.Sequential, channels: int, classes: int, dropout: float) -> nn.Sequential:
    network.add_module("mean", Pooled())
    if dropout:
        network.add_module("dropout", nn.Dropout(dropout))
    network.add_module("output", nn.Linear(channels, classes))
    return network


def vision_transformer(
    shape: tuple[int, ...], width: int, depth: int, classes: int, dropout: float = 0.0
) -> Transformer:
    """A small vision transformer on patches of 4x4 pixels.

    Args:
        shape: (height, width) or (height, width, channels) of an image, sides divisible by 4.
        width: values of a token, a multiple of 16; heads of 16 values each, hidden layers of twice as many units.
        depth: number of blocks.
        classes: number of outputs.
        dropout: share of what blocks add, and of attention, dropped in training.

    Returns:
        A network whose hidden units are `blocks.*.gelu`.

    References:
        Dosovitskiy et al. (2021), arXiv:2010.11929; normalisation before each part, and the mean of all tokens in place
        of a class token.
    """
    return Transformer(shape, width, depth, classes, dropout)
