"""How networks with motif channels are made and trained: the plan of each task, the schedule of density, numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from nbutils.support.checks import as_count, is_number, shown
from nbutils.support.provenance import digest_of

__all__ = ["CONDITIONS", "PLANS", "Plan", "Schedule", "SparseCase", "SparseSettings", "adapt"]

# How the layer of motif channels is kept sparse: thresholds of each channel, or one for all; a penalty; or nothing.
CONDITIONS = ("MT", "ST", "L1", "KL", "none")


@dataclass(frozen=True)
class Plan:
    """What of a network follows from its task.

    Attributes:
        kernel: of the first convolution.
        stride: of the first convolution; a motif unit stands for so many places of the input.
        second: kernel of the second convolution.
        along: axis along which the sequence runs; None where it runs around a circle.
        words: outputs for each position along that axis.
        cells: into how many parts each axis of the map is cut where communities are looked for.
        width: channels before the motif channels.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    second: tuple[int, int]
    along: int | None
    words: int
    cells: tuple[int, int]
    width: int = 16

    def field(self, space: tuple[int, ...]) -> tuple[int, int]:
        """Places of the input that a motif unit stands for: as many as it is moved by, or the whole axis."""
        return tuple(
            size if size == kernel else step for size, kernel, step in zip(space, self.kernel, self.stride, strict=True)
        )


PLANS: Mapping[str, Plan] = {
    "digit_circle_small": Plan((7, 7), (2, 2), (3, 3), None, 1, (3, 3)),
    "digit_circle": Plan((11, 11), (2, 2), (3, 3), None, 1, (3, 3), 24),
    "token_lines": Plan((7, 7), (2, 2), (3, 3), 1, 2, (2, 5)),
    "tone_lines": Plan((9, 64), (2, 1), (5, 1), 0, 1, (9, 1)),
}


@dataclass(frozen=True)
class Schedule:
    """Adaptive sparsity: when density falls, and how far. The defaults are the published ones.

    Attributes:
        every: samples between two checks.
        fall: of the target, for each sample.
        factor: by which density is multiplied.
        start: density to begin with.
        stop: density below which it does not fall; 4.5e-5 is one active position for each digit of the published task.

    Raises:
        ValueError: a number is out of range.

    References:
        Gupta, Bastani and Solar-Lezama (2023), arXiv:2302.01976.
    """

    every: int = 20_000
    fall: float = 1e-7
    factor: float = 0.75
    start: float = 0.5
    stop: float = 4.5e-5

    def __post_init__(self) -> None:
        as_count(self.every, "every")
        if not is_number(self.fall) or not 0 <= self.fall <= 1:
            raise ValueError(f"fall must be from 0 to 1, received {shown(self.fall)}")
        for name in ("factor", "start", "stop"):
            if not is_number(value := getattr(self, name)) or not 0 < value < 1:
                raise ValueError(f"{name} must be above 0 and below 1, received {shown(value)}")
        if self.stop > self.start:
            raise ValueError(f"stop must be at most start, {self.start:g}, received {self.stop:g}")


def adapt(schedule: Schedule, density: float, target: float, accuracy: float) -> tuple[float, float]:
    """Density and target after a check.

    Args:
        schedule: its numbers.
        density: before it.
        target: accuracy that was to be exceeded, before it; 1 at the beginning.
        accuracy: on validation examples.

    Examples:
        >>> adapt(Schedule(), density=0.4, target=1.0, accuracy=0.9)
        (0.4, 0.998)
        >>> density, target = adapt(Schedule(), density=0.4, target=0.9, accuracy=0.95)
        >>> round(density, 6), target
        (0.3, 0.95)
    """
    target = target - schedule.fall * schedule.every
    if accuracy > target:
        density = max(schedule.stop, density * schedule.factor) if density > schedule.stop else density
    return density, max(target, accuracy)


@dataclass(frozen=True)
class SparseSettings:
    """How a network with motif channels is trained.

    Attributes:
        task: key of `nbutils.motifs.tasks.TASKS`.
        condition: "MT" (a threshold for each channel) or "ST" (one for all), with adaptive sparsity; "L1" or "KL", a
            penalty; or "none".
        seed: of weights and examples; the same for all conditions.
        samples: on which the network is trained, each seen once.
        schedule: of checks, and of density where it is adaptive.
        batch: examples of a step.
        rate: of Adam.
        penalty: coefficient. "L1" adds it times the sum of activations of an example, "KL" times the sum over channels
            of the Kullback-Leibler divergence, in nats, of a channel's rate from `schedule.stop`; its rate is the mean
            over examples and positions of tanh(activation).
        validation: examples on which accuracy is measured at a check.
        parts: into which the head on circles cuts each axis of the map; of each channel it sees one place in each part.

    Raises:
        ValueError: no such task or condition, or a number is out of range.
    """

    task: str = "digit_circle_small"
    condition: str = "MT"
    seed: int = 0
    samples: int = 100_000
    schedule: Schedule = Schedule()
    batch: int = 64
    rate: float = 3e-3
    penalty: float = 0.0
    validation: int = 256
    parts: int = 1

    def __post_init__(self) -> None:
        if self.task not in PLANS:
            raise ValueError(f"task must be one of {', '.join(PLANS)}, received {shown(self.task)}")
        if self.condition not in CONDITIONS:
            raise ValueError(f"condition must be one of {', '.join(CONDITIONS)}, received {shown(self.condition)}")
        as_count(self.seed, "seed", 0, 2**31 - 1)
        as_count(self.batch, "batch", 2)
        as_count(self.samples, "samples", self.batch)
        as_count(self.validation, "validation")
        as_count(self.parts, "parts", 1, 8)
        if self.parts > 1 and PLANS[self.task].along is not None:
            raise ValueError(f"parts must be 1 for {self.task}, whose head reads a line, received {self.parts}")
        for name in ("rate", "penalty"):
            if not is_number(value := getattr(self, name)) or value < 0 or (name == "rate" and value == 0):
                raise ValueError(f"{name} must be a finite number above 0, received {shown(value)}")
        if (self.penalty > 0) != (self.condition in ("L1", "KL")):
            raise ValueError(
                f"penalty must be above 0 for 'L1' and 'KL' and 0 for others, received {self.penalty:g} for "
                f"{self.condition!r}"
            )

    @property
    def identity(self) -> dict[str, Any]:
        """All of it, as JSON can hold it; `parts`, which older tables lack, only where there are some."""
        known = asdict(self)
        return known if self.parts > 1 else {name: value for name, value in known.items() if name != "parts"}


@dataclass(frozen=True)
class SparseCase:
    """A network with motif channels.

    Attributes:
        training: how it is trained.
        looks: times at which it is looked at, evenly spread over its checks, beside that before training.
    """

    training: SparseSettings
    looks: int = 8

    @property
    def settings(self) -> str:
        """Digest by which a table knows the network."""
        return digest_of(self.identity)

    @property
    def identity(self) -> dict[str, Any]:
        """By what a store knows it."""
        return {"sparse": self.training.identity, "looks": self.looks}
