"""Small networks that read pictures with known motifs: convolutions, a layer of motif channels, and a head that spells.

The target is a sequence alone, and all that the head sees of an input are the motif channels. Sizes are far below the
published ones (residual encoders, and attention over the whole map), so that a network trains in a minute on a
processor.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, ctc_loss, one_hot

from nbutils.motifs.motif_batches import END, MotifTask
from nbutils.motifs.sparse_settings import CONDITIONS, PLANS
from nbutils.runs.sparsity import SpatialSparsity
from nbutils.support.checks import shown

__all__ = ["MotifNetwork", "build_motif_network"]


class DenseUnits(nn.Module):
    """Batch normalisation and ReLU: motif channels that no threshold keeps sparse."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm, self.relu = nn.BatchNorm2d(channels), nn.ReLU()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Shape (examples, channels, height, width)."""
        return self.relu(self.norm(inputs))


class CircleOrder(nn.Module):
    """What follows a word around a circle, one channel at a time, in the same way for all channels.

    Of each channel it sees how strong it is, at which angle it stands from the word before and from the first one
    (cosine and sine, around the mean place of the channels, weighted by strength), how far it stands for either, and
    numbers of its own. Where a word is, is a mean over channels with weights that are learned.
    """

    def __init__(self, channels: int, words: int, hidden: int = 32, own: int = 8) -> None:
        super().__init__()
        self.words = words
        self.stands_for = nn.Parameter(0.4 * torch.randn(words + 1, channels))
        self.own = nn.Parameter(0.5 * torch.randn(channels, own))
        self.net = nn.Sequential(
            nn.Linear(8 + own, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2)
        )
        self.spelt = nn.Parameter(0.3 * torch.randn(channels, words))

    def forward(self, seen: torch.Tensor, before: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """Logits of the next word and, last, of the end, shape (examples, words + 1).

        Args:
            seen: strengths, rows and columns of channels, shape (examples, 3 * channels).
            before: number of the word before, shape (examples,); `words` at the beginning.
            first: number of the first word, likewise.
        """
        strength, row, column = seen.unflatten(-1, (3, -1)).unbind(dim=-2)
        share = strength / (strength.sum(dim=-1, keepdim=True) + 1e-6)
        places = torch.stack([one - (share * one).sum(dim=-1, keepdim=True) for one in (row, column)], dim=-1)
        directions = places / (places.norm(dim=-1, keepdim=True) + 1e-3)
        stands_for, known = self.stands_for.softmax(dim=1), [strength]
        for word in (before, first):
            weights = stands_for[word]
            there = (weights[..., None] * directions).sum(dim=1, keepdim=True)
            known += [(directions * there).sum(dim=-1), _turn(directions, there), weights]
        begins = (before == self.words).to(seen.dtype)[:, None].expand_as(strength)
        inputs = torch.stack([*known, begins], dim=-1)
        told = self.net(torch.cat([inputs, self.own.expand(len(seen), -1, -1)], dim=-1))
        return torch.cat([told[..., 0] @ self.spelt, told[..., 1].sum(dim=-1, keepdim=True)], dim=-1)


def _turn(directions: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Sine of the angle from other directions to these."""
    return directions[..., 0] * other[..., 1] - directions[..., 1] * other[..., 0]


class CircleHead(nn.Module):
    """Spells word by word: from how strong each channel is and where, the word before, and the first word.

    Where a channel is, is the mean of positions, weighted by squared activations. The logits of two nets add up: one
    sees all channels at once, the other each channel by itself (`CircleOrder`), which makes it easy to learn what an
    order around a circle is. After the last word comes the end. Where the map is cut into parts, a channel counts in
    each part as one of its own, and so can be in many places at once.
    """

    def __init__(self, channels: int, words: int, longest: int, parts: int = 1, hidden: int = 192) -> None:
        super().__init__()
        self.words, self.longest, self.parts = words, longest, parts
        channels *= parts**2
        self.net = nn.Sequential(
            nn.Linear(3 * channels + 2 * (words + 1), hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, words + 1),
        )
        self.order = CircleOrder(channels, words)

    def features(self, maps: torch.Tensor) -> torch.Tensor:
        """Strength and mean position of each channel in each part, shape (examples, 3 * channels * parts**2)."""
        axes = [torch.linspace(-1, 1, size, device=maps.device).tensor_split(self.parts) for size in maps.shape[2:]]
        found = []
        for band, rows in zip(maps.tensor_split(self.parts, dim=2), axes[0], strict=True):
            for part, columns in zip(band.tensor_split(self.parts, dim=3), axes[1], strict=True):
                weights = part.square()
                total = weights.sum(dim=(2, 3)) + 1e-6
                strongest = part.amax(dim=(2, 3))
                row, column = (weights.sum(dim=3) @ rows) / total, (weights.sum(dim=2) @ columns) / total
                found.append((strongest / (1 + strongest), row, column))
        return torch.cat([torch.cat(one, dim=1) for one in zip(*found, strict=True)], dim=1)

    def following(self, seen: torch.Tensor, before: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
        """Logits of the next word; the number after the last word is the beginning before, and the end after."""
        known = [one_hot(one, self.words + 1).to(seen.dtype) for one in (before, first)]
        together = self.net(torch.cat([seen, *known], dim=-1))
        each = self.order(seen.flatten(0, -2), before.flatten(), first.flatten())
        return together + each.view_as(together)

    def loss(self, maps: torch.Tensor, sequences: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of every next word, mean over words and the end, in nats."""
        seen, end = self.features(maps), self.words
        given = torch.cat([sequences, torch.full_like(sequences[:, :1], END)], dim=1)
        target = torch.where(given == END, end, given)
        before = torch.cat([torch.full_like(target[:, :1], end), target[:, :-1]], dim=1)
        first = torch.cat([torch.full_like(target[:, :1], end), target[:, :1].expand_as(target[:, 1:])], dim=1)
        counts = torch.ones_like(target, dtype=torch.bool)
        counts[:, 1:] = before[:, 1:] != end
        logits = self.following(seen[:, None].expand(-1, target.shape[1], -1), before, first)
        return cross_entropy(logits[counts], target[counts])

    def spell(self, maps: torch.Tensor) -> np.ndarray:
        """The likeliest word after each, shape (examples, longest)."""
        seen, end = self.features(maps), self.words
        before = first = torch.full((len(maps),), end, device=maps.device)
        found, over = [], torch.zeros_like(before, dtype=torch.bool)
        for place in range(self.longest):
            word = self.following(seen, before, first).argmax(dim=1)
            over = over | (word == end)
            found.append(torch.where(over, END, word))
            before, first = torch.where(over, end, word), word if place == 0 else first
        return torch.stack(found, dim=1).cpu().numpy()


class LineHead(nn.Module):
    """Spells along an axis: convolutions over columns of all channels, read by connectionist temporal classification.

    References:
        Graves et al. (2006), "Connectionist temporal classification", doi:10.1145/1143844.1143891.
    """

    def __init__(self, rows: int, words: int, along: int, outputs: int, hidden: int = 64) -> None:
        super().__init__()
        self.words, self.along, self.outputs = words, along, outputs
        self.net = nn.Sequential(
            nn.Conv1d(rows, hidden, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(hidden, hidden, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(hidden, outputs * (words + 1), 5, padding=2),
        )

    def _logits(self, maps: torch.Tensor) -> torch.Tensor:
        """Shape (examples, columns * outputs, words + 1); the last class is the blank."""
        columns = maps if self.along == 1 else maps.transpose(2, 3)
        found = self.net(columns.flatten(1, 2))
        count, _, length = found.shape
        return found.view(count, self.outputs, self.words + 1, length).permute(0, 3, 1, 2).flatten(1, 2)

    def loss(self, maps: torch.Tensor, sequences: torch.Tensor) -> torch.Tensor:
        """Mean over words of the loss, in nats; of a sequence that does not fit into the columns, nothing."""
        logits = self._logits(maps).log_softmax(dim=2).transpose(0, 1)
        lengths = (sequences != END).sum(dim=1)
        there = torch.full((len(maps),), len(logits))
        return ctc_loss(logits, sequences.clamp(min=0), there, lengths, blank=self.words, zero_infinity=True)

    def spell(self, maps: torch.Tensor) -> np.ndarray:
        """The likeliest class of each column, repetitions and blanks taken away, shape (examples, columns)."""
        likeliest = self._logits(maps).argmax(dim=2).cpu().numpy()
        found = np.full(likeliest.shape, END)
        for row, classes in enumerate(likeliest):
            kept = classes[np.diff(classes, prepend=-1) != 0]
            kept = kept[kept != self.words]
            found[row, : len(kept)] = kept
        return found


class MotifNetwork(nn.Module):
    """From inputs to motif channels, and from them to a sequence.

    Attributes:
        encoder: two convolutions, and one that mixes channels.
        units: the layer of motif channels, sparse or not.
        head: spells what they say.
    """

    def __init__(self, task: MotifTask, condition: str, density: float, parts: int = 1) -> None:
        super().__init__()
        plan, channels = PLANS[task.name], len(task.alphabet)
        padding = tuple(
            0 if size == kernel else kernel // 2 for size, kernel in zip(task.space, plan.kernel, strict=True)
        )
        self.encoder = nn.Sequential(
            nn.Conv2d(1, plan.width, plan.kernel, plan.stride, padding, bias=False),
            nn.BatchNorm2d(plan.width),
            nn.ReLU(),
            nn.Conv2d(plan.width, plan.width, plan.second, padding=tuple(one // 2 for one in plan.second), bias=False),
            nn.BatchNorm2d(plan.width),
            nn.ReLU(),
            nn.Conv2d(plan.width, channels, 1, bias=False),
        )
        sparse = {"MT": "channel", "ST": "global"}.get(condition)
        self.units = SpatialSparsity(channels, density, sparse) if sparse else DenseUnits(channels)
        with torch.no_grad():
            height, width = self.encoder.eval()(torch.zeros(1, 1, *task.space)).shape[2:]
        words = len(task.words)
        if plan.along is None:
            self.head = CircleHead(channels, words, task.longest, parts)
        else:
            rows = channels * (height if plan.along == 1 else width)
            self.head = LineHead(rows, words, plan.along, plan.words)

    def maps(self, inputs: torch.Tensor) -> torch.Tensor:
        """What motif channels give, shape (examples, channels, height, width)."""
        return self.units(self.encoder(inputs[:, None].float()))

    def forward(self, inputs: torch.Tensor) -> np.ndarray:
        """The sequences that are spelled."""
        return self.head.spell(self.maps(inputs))


def build_motif_network(task: MotifTask, condition: str, density: float, seed: int, parts: int = 1) -> MotifNetwork:
    """A network that is not trained yet.

    Args:
        task: one of `nbutils.motifs.tasks.TASKS`.
        condition: one of `CONDITIONS`.
        density: of sparse units; the others have none.
        seed: of its weights; the same for all conditions.
        parts: of each axis of the map, see :class:`nbutils.motifs.sparse_settings.SparseSettings`.

    Raises:
        ValueError: there is no plan for the task, or no such condition.

    Examples:
        >>> from nbutils.motifs.tasks import TASKS
        >>> task = TASKS["digit_circle_small"]
        >>> network = build_motif_network(task, "MT", density=0.1, seed=0).eval()
        >>> batch = task.sample(2, seed=0)
        >>> network.maps(torch.from_numpy(batch.inputs)).shape
        torch.Size([2, 10, 20, 20])
    """
    if task.name not in PLANS:
        raise ValueError(f"task must be one of {', '.join(PLANS)}, received {shown(task.name)}")
    if condition not in CONDITIONS:
        raise ValueError(f"condition must be one of {', '.join(CONDITIONS)}, received {shown(condition)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MotifNetwork(task, condition, density, parts)
