"""A layer that lets only the strongest activations through: as many as a density says, over examples and positions."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, is_number, shown

__all__ = ["KEPT", "THRESHOLDS", "SpatialSparsity", "activation_rank"]

THRESHOLDS = ("channel", "global")  # one for each channel, or one for all
KEPT = 0.9  # share of a threshold that stays at an update


def activation_rank(values: int, density: float) -> int:
    """Rank of the activation at which a threshold is put: k = max(1, floor(values * density)), 1 the largest.

    Of values drawn independently from any one distribution, a further one exceeds the k-th largest of N with
    probability k / (N + 1). So k / N is the density that a threshold at the k-th largest keeps on *other* examples; on
    those that it was read from, k - 1 values lie strictly above it.

    Args:
        values: how many there are.
        density: share that is to stay active, above 0.

    Examples:
        >>> activation_rank(1000, 0.05), activation_rank(10, 0.29), activation_rank(10, 0.001)
        (50, 2, 1)
    """
    return max(1, int(values * density + 1e-9))  # 100 * 0.29 is a little less than 29


@checked
class SpatialSparsity(nn.Module):
    """Batch normalisation, then ReLU(x - t), with thresholds t that leave a share `density` of the outputs above 0.

    In training, q is the k-th largest value over examples and positions, k as :func:`activation_rank` says: of each
    channel, or of all channels together. Then t becomes 0.9 t + 0.1 q, and this t is used at once. It begins at 0 and
    is a running mean of about the last ten updates' q; after n updates the beginning still weighs 0.9^n, 1 % after 44.
    No gradient goes through t. In evaluation t is frozen.

    A q that rests on few activations is biased: the mean of the largest of N values is exceeded less often than once
    in N. While the values of a batch times the density are fewer than `least` activations, batches are therefore
    collected (the largest values of each are kept) until they are as many, and t is updated once for all of them. With
    the 10 of the default, what is reached lies up to 14 % below the density: floor takes up to a tenth of it, the mean
    of the k-th largest values half an activation. `least=1` updates as soon as one activation is due. A batch that
    holds a NaN or an infinite value leaves t as it is, and hands the NaN on.

    Args:
        channels: of the input, its second axis.
        density: share of outputs that are to be above 0, in (0, 1).
        thresholds: "channel", one for each channel, which must then all be active equally often; or "global", one for
            all.
        normalise: batch normalisation before the threshold; without it, one cannot know at which scale to look.
        least: activations that an update must rest on, from 1 to 10,000.

    Attributes:
        threshold: t, shape (channels,) or (1,); with the three below a buffer, so that training resumes exactly.
        share: the density, see :meth:`set_density`.
        pending: largest values of the batches that wait for an update, shape (thresholds, 2 * least), descending; -inf
            where there is none.
        seen: number of values per threshold that wait.

    Shape:
        (examples, channels), (examples, channels, positions) or (examples, channels, height, width); output likewise.

    Raises:
        ValueError: `density` is not above 0 and below 1, `thresholds` or a count is wrong, or an input has other axes.

    Examples:
        >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
        <...>
        >>> layer = SpatialSparsity(3, density=0.05)
        >>> for _ in range(100):
        ...     active = layer(torch.randn(64, 3, 10))
        >>> active = layer.eval()(torch.randn(10_000, 3, 10)) > 0
        >>> [round(one, 2) for one in active.float().mean(dim=(0, 2)).tolist()]
        [0.05, 0.05, 0.05]

    References:
        Gupta, Bastani and Solar-Lezama (2023), "Sparling: learning latent representations with extremely sparse
        activations", arXiv:2302.01976.
    """

    def __init__(
        self,
        channels: int,
        density: float,
        thresholds: str = "channel",
        normalise: bool = True,
        least: int = 10,
    ) -> None:
        super().__init__()
        if thresholds not in THRESHOLDS:
            raise ValueError(f"thresholds must be one of {', '.join(THRESHOLDS)}, received {shown(thresholds)}")
        self.channels, self.thresholds = as_count(channels, "channels"), thresholds
        self.least = as_count(least, "least", 1, 10_000)
        self.norm = nn.BatchNorm1d(channels) if normalise else nn.Identity()
        self.relu = nn.ReLU()
        rows = channels if thresholds == "channel" else 1
        self.register_buffer("threshold", torch.zeros(rows))
        self.register_buffer("share", torch.tensor(_as_density(density), dtype=torch.float64))
        self.register_buffer("pending", torch.full((rows, 2 * self.least), -torch.inf))
        self.register_buffer("seen", torch.tensor(0))

    @property
    def density(self) -> float:
        """Share of outputs that are to be above 0."""
        return float(self.share)

    def set_density(self, density: float) -> None:
        """Ask for another density; values that wait for an update are forgotten, for fewer of them would be due.

        Args:
            density: in (0, 1).
        """
        self.share.fill_(_as_density(density))
        self._forget()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """See the class."""
        if not 2 <= inputs.ndim <= 4 or inputs.shape[1] != self.channels or not inputs.numel():
            raise ValueError(
                f"inputs must have shape (examples, {self.channels}), with one or two axes of positions behind it or "
                f"none, received {tuple(inputs.shape)}"
            )
        flat = inputs.flatten(2) if inputs.ndim > 2 else inputs
        flat = self.norm(flat)
        if self.training:
            self._update(flat.detach())
        return self.relu(flat - self.threshold.view(-1, *[1] * (flat.ndim - 2))).view(inputs.shape)

    @torch.no_grad()
    def _update(self, values: torch.Tensor) -> None:
        rows = values.transpose(0, 1).reshape(len(self.threshold), -1)
        if not torch.isfinite(rows).all():
            return
        count, density = rows.shape[1], self.density
        if count * density + 1e-9 >= self.least:
            found = largest_of_rank(rows, activation_rank(count, density))
        else:
            self._collect(rows)
            count = int(self.seen)
            if count * density + 1e-9 < self.least:
                return
            found = self.pending[:, activation_rank(count, density) - 1]
        self.threshold.mul_(KEPT).add_(found, alpha=1 - KEPT)
        self._forget()

    def _collect(self, rows: torch.Tensor) -> None:
        """Fewer than 2 * least activations are due when an update comes, so that more need not be kept."""
        most = self.pending.shape[1]
        best = rows.topk(min(most, rows.shape[1]), dim=1).values
        self.pending.copy_(torch.cat([self.pending, best], dim=1).topk(most, dim=1).values)
        self.seen.add_(rows.shape[1])

    def _forget(self) -> None:
        self.pending.fill_(-torch.inf)
        self.seen.zero_()

    def extra_repr(self) -> str:
        """What PyTorch prints of the layer."""
        return f"{self.channels}, density={self.density:g}, thresholds={self.thresholds!r}, least={self.least}"


def largest_of_rank(rows: torch.Tensor, rank: int) -> torch.Tensor:
    """The value of a rank in each row, 1 the largest."""
    if rank <= 64:
        return rows.topk(rank, dim=1).values[:, -1]
    if rows.device.type != "cpu":  # where sorting is the faster of both
        return rows.sort(dim=1).values[:, -rank]
    values, place = (rows.float() if rows.dtype.itemsize < 4 else rows).numpy(), rows.shape[1] - rank
    return torch.from_numpy(np.partition(values, place, axis=1)[:, place].copy())


def _as_density(density: float) -> float:
    if not is_number(density) or not 0 < density < 1:
        raise ValueError(f"density must be above 0 and below 1, received {shown(density)}")
    return float(density)
