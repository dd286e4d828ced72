"""The zoo: networks trained on true labels whose performance differs for many reasons, family by family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nbutils.data.catalogue import parse_name
from nbutils.data.datasets import load_dataset
from nbutils.runs.spec import RunSpec
from nbutils.support.arguments import checked
from nbutils.support.checks import shown
from nbutils.support.provenance import digest_of

__all__ = ["AXES", "LEAST_IMAGES", "SLICES", "ZOOS", "Member", "Zoo", "zoo_digest", "zoo_members"]

# Numbers of images are multiples of the largest batch: networks that take whole batches can be trained side by side.
AXES: Mapping[str, tuple[Any, ...]] = {
    "examples": (640, 1920, 5760),
    "learning_rate": (0.0003, 0.001, 0.003),
    "dropout": (0.0, 0.2, 0.5),
    "weight_decay": (0.0, 0.1, 1.0),
    "batch_size": (16, 32, 128),
    "epochs": (5, 15, 45),
    "width": (256, 384, 512),
    "depth": (1, 2, 3),
}
SHAPE = ("width", "depth")
BATCH = max(AXES["batch_size"])
STEP = 3  # from one number of images to the next
LEAST_IMAGES = STEP**2 * BATCH  # training images without which a zoo cannot be made
# A quick zoo shows that all works: small networks that train for a moment. It decides nothing.
QUICK_CHANNELS = (16, 32, 48)
QUICK = {"epochs": (1, 2, 4), "width": (24, 36, 48), "examples": (BATCH, STEP * BATCH, LEAST_IMAGES)}


def _mlp(width: int, depth: int) -> str:
    return "mlp:" + "-".join(map(str, [width, width // 2, width // 2][:depth]))


def _vgg(width: int, depth: int) -> str:
    return "vgg:" + "-".join(str(width * 2**stage) for stage in range(3) for _ in range(depth))


def _resnet(width: int, depth: int) -> str:
    return f"resnet:{depth}-{width}"


def _vit(width: int, depth: int) -> str:
    return f"vit:{width}-{depth}"


@dataclass(frozen=True)
class Zoo:
    """How networks of a zoo differ.

    A *family* is a base, one value of every axis at random, and the networks that differ from it in one axis only.

    Attributes:
        axes: those along which families go; each family along one.
        families: along each axis.
        seeds: networks of every configuration.
        fixed: parameters of a run that all share.
        about: what it is, in words.
        values: of axes that go through others than those of `AXES`.
        model: name of the model of a width and a depth.
    """

    axes: tuple[str, ...]
    families: int
    seeds: int
    fixed: Mapping[str, Any]
    about: str
    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    model: Callable[[int, int], str] = _mlp

    @property
    def size(self) -> int:
        """Number of networks."""
        return len(self.axes) * self.families * 3 * self.seeds


ZOOS: Mapping[str, Zoo] = {
    "small": Zoo(tuple(AXES), 7, 2, {}, "one to three hidden layers, the first of 256 to 512 neurons"),
    "paper": Zoo(
        tuple(name for name in AXES if name not in SHAPE),
        3,
        2,
        {"model": "mlp:512-512"},
        "the paper's network, two hidden layers of 512 neurons",
    ),
    "one loss": Zoo(
        tuple(name for name in AXES if name != "epochs"),
        2,
        2,
        {"epochs": 100, "stop_loss": 0.1},
        "as the first, each trained until its training loss is at most 0.1 nats, for 100 epochs at most",
    ),
}
FEWER = (3, 8, 20)  # epochs: these networks take longer than an MLP
# Zoos of other architectures: smaller, for they answer at a tenth of the speed. One network of each configuration.
SLICES: Mapping[str, Zoo] = {
    "vgg": Zoo(
        tuple(AXES),
        3,
        1,
        {},
        "three stages of one to three convolutions, the first of 24 to 40 channels",
        {"epochs": FEWER, "width": (24, 32, 40)},
        _vgg,
    ),
    "resnet": Zoo(
        tuple(AXES),
        3,
        1,
        {},
        "8, 14 or 20 layers, the first stage of 12 to 20 channels",
        {"epochs": FEWER, "width": (12, 16, 20), "depth": (8, 14, 20)},
        _resnet,
    ),
    "vit": Zoo(
        tuple(AXES),
        3,
        1,
        {},
        "two to six blocks, tokens of 48 to 96 values",
        {"epochs": FEWER, "width": (48, 64, 96), "depth": (2, 4, 6)},
        _vit,
    ),
}
# A zoo of CIFAR-10 trains on images beyond the 10,000 that earlier networks and pilots were trained on.
POOLS = {"cifar10": "cifar10-10k-16k", "plantvillage": "plantvillage@32"}
SEED = 20261123  # of the random bases: the same configurations on every data set


@dataclass(frozen=True)
class Member:
    """One network of a zoo.

    Attributes:
        run: its parameters.
        family: number of its family.
        axis: along which the family goes.
        configuration: number of its settings; networks of one configuration differ by their seed only.
        settings: value of every axis.
    """

    run: RunSpec
    family: int
    axis: str
    configuration: int
    settings: Mapping[str, Any]


@checked
def zoo_members(dataset: str, kind: str = "small", quick: bool = False) -> list[Member]:
    """All networks of a zoo.

    Args:
        dataset: name of a data set. The numbers of training images shrink with one that has fewer than 5,760.
        kind: key of `ZOOS` or, of other architectures, of `SLICES`.
        quick: one family along each axis and one seed of each configuration, all of them small.

    Returns:
        The members; those of a family follow each other, and so do the seeds of a configuration.

    Raises:
        ValueError: no such zoo or data set, or one with too few training images.

    Examples:
        >>> members = zoo_members("digits", "paper")
        >>> len(members), members[0].run.model, len({m.family for m in members})
        (108, 'mlp:512-512', 18)
    """
    known = {**ZOOS, **SLICES}
    if kind not in known:
        raise ValueError(f"kind must be one of {', '.join(known)}, received {shown(kind)}")
    zoo, rng, found = known[kind], np.random.default_rng(SEED), []
    axes = {**AXES, **zoo.values}
    if quick:
        zoo = replace(zoo, families=1, seeds=1)
        axes |= QUICK if kind in ZOOS else {**QUICK, "width": QUICK_CHANNELS}
    asked = parse_name(dataset)
    if asked.path is not None or asked.thousands is not None:  # others have as many as the axes ask for
        axes["examples"] = _as_many_as_there_are(dataset, axes["examples"])
    for family in range(len(zoo.axes) * zoo.families):
        axis = zoo.axes[family % len(zoo.axes)]
        base = {name: values[rng.integers(len(values))] for name, values in axes.items()}
        for place, value in enumerate(axes[axis]):
            settings = {name: at for name, at in {**base, axis: value}.items() if name in zoo.axes}
            for seed in range(zoo.seeds):
                pool = POOLS.get(dataset, dataset)
                spec = _spec(pool, settings, zoo, zoo.seeds * family + seed)
                found.append(Member(spec, family, axis, 3 * family + place, settings))
    return found


def zoo_digest() -> str:
    """Digest of all axes, their values, families, seeds and models: 12 hexadecimal digits, the same for any data set.

    Examples:
        >>> len(zoo_digest())
        12
    """
    told: dict[str, Any] = {"axes": AXES, "seed": SEED, "pools": POOLS}
    for name, zoo in {**ZOOS, **SLICES}.items():
        values = {**AXES, **zoo.values}
        models = [zoo.model(width, depth) for width in values["width"] for depth in values["depth"]]
        told[name] = [zoo.axes, zoo.families, zoo.seeds, dict(zoo.fixed), dict(zoo.values), models]
    return digest_of(told)[:12]


def _as_many_as_there_are(dataset: str, wanted: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of training images in the same ratio, whole batches each, that a data set has."""
    there = len(load_dataset(dataset).train_true)
    if there < LEAST_IMAGES:
        raise ValueError(f"dataset {shown(dataset, 300)} has {there:,} training images; a zoo needs {LEAST_IMAGES:,}")
    fewest = min(wanted[0], there // LEAST_IMAGES * BATCH)
    return tuple(fewest * STEP**place for place in range(len(wanted)))


def _spec(dataset: str, settings: Mapping[str, Any], zoo: Zoo, seed: int) -> RunSpec:
    parse_name(dataset)
    own = {name: value for name, value in settings.items() if name not in SHAPE}
    if set(SHAPE) <= set(settings):
        own["model"] = zoo.model(settings["width"], settings["depth"])
    shared = {"dataset": dataset, "preprocessing": "standard", "every_epoch": False, "seed": seed}
    return RunSpec(**shared, **own, **zoo.fixed)
