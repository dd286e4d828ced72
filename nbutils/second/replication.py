"""The second study of any data set in one go: networks that are missing, tables, answers and leaderboard.

The book's own tables are made by the same path as those of a reader's data set; rules and measures are the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from nbutils.data.catalogue import parse_name
from nbutils.data.datasets import Dataset, load_dataset
from nbutils.second.answers import FEWEST, TABLE, answer_all, answer_table, sound
from nbutils.second.candidates import CANDIDATES
from nbutils.second.leaderboard import BOARD, leaderboard
from nbutils.second.networks import (
    MLP,
    Network,
    Tables,
    compute,
    is_done,
    networks_of,
    read_tables,
    settings_digest,
    tables_of,
    write_tables,
)
from nbutils.second.questions import PROTOCOL
from nbutils.second.zoo import LEAST_IMAGES, ZOOS
from nbutils.support.arguments import checked
from nbutils.support.checks import shown
from nbutils.support.files import is_file, replace_file

__all__ = [
    "DESIGN_ORDER",
    "OTHERS",
    "RULES_COMMIT",
    "RULES_TIME",
    "SECOND",
    "committed_second",
    "folder_name",
    "forecast",
    "missing_networks",
    "page_lacks",
    "replicate",
    "require_fit",
    "second_tables",
    "split_study",
    "study_name",
    "time_left",
]

SLICE = 60  # sound networks that a question about the zoo of another architecture needs; said to be exploratory
SECOND = Path("book/results/second")
OTHERS = Path("book/results/architectures")  # of the same study, but other networks than fully connected ones
DESIGN_ORDER = ("runs", "grid", "memorising", *ZOOS)  # in which they are computed
RULES_COMMIT = "e87d438"  # fixed the questions, before any network that answers them
RULES_TIME = "2026-11-23 03:14"  # UTC, of that commit
LEAST_TEST = 20  # test images of every class: a half probe then has five
MOST_VALUES = 4096  # of an image; with more, nearly all weights would be in the first layer
MOST_SHARED = 0.1  # share of test images that may stand among the training images as well


def committed_second(root: Path, where: Path = SECOND) -> list[str]:
    """Data sets whose tables of the second study are committed, sorted; in `OTHERS` with the architecture."""
    return sorted(path.parent.name for path in (root / where).glob(f"*/{TABLE}"))


def folder_name(dataset: str) -> str:
    """Name of the folder for what is found on a data set: never a path.

    Examples:
        >>> folder_name("kmnist"), folder_name("folder:/my letters/../a@32")
        ('kmnist', 'folder-a')
    """
    asked = parse_name(dataset)
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", f"folder-{asked.path.name}" if asked.path else dataset)
    return plain.strip("-")[:80] or "folder"


def study_name(dataset: str, architecture: str = MLP) -> str:
    """What tables of a study are told apart by.

    Examples:
        >>> study_name("kmnist"), study_name("cifar10", "resnet")
        ('kmnist', 'cifar10-resnet')
    """
    return dataset if architecture == MLP else f"{dataset}-{architecture}"


def split_study(name: str) -> tuple[str, str]:
    """Data set and architecture of a study in `OTHERS`: undoes :func:`study_name`.

    Examples:
        >>> split_study("cifar10-resnet")
        ('cifar10', 'resnet')
    """
    dataset, _, architecture = name.rpartition("-")
    return dataset, architecture


@checked
def require_fit(dataset: str) -> Dataset:
    """Refuse a data set that the second study cannot use, before anything is trained.

    Args:
        dataset: its name.

    Returns:
        The data.

    Raises:
        ValueError: too few images, images too large or all alike, or test images that are training images too; says
            what is needed and what was found.
        FileNotFoundError: the data set is not there.

    Examples:
        >>> require_fit("digits").image_shape
        (8, 8)
    """
    data, called = load_dataset(dataset), f"dataset {shown(dataset, 300)}"
    if len(data.train_true) < LEAST_IMAGES:
        raise ValueError(f"{called} has {len(data.train_true):,} training images; at least {LEAST_IMAGES:,} are needed")
    counts = np.bincount(data.test_labels, minlength=len(data.classes))
    if counts.min() < LEAST_TEST:
        fewest = data.classes[int(counts.argmin())]
        raise ValueError(
            f"{called} has {counts.min()} test images of class {shown(fewest)}, at least {LEAST_TEST} are needed"
        )
    if (values := data.train_pixels.shape[1]) > MOST_VALUES and dataset != "plantvillage":  # which is taken at 32x32
        shape = "x".join(map(str, data.image_shape))
        raise ValueError(
            f"{called} has images of {shape}, {values:,} values each, at most {MOST_VALUES:,} are taken; "
            "put @32 behind its name to resize them to 32x32"
        )
    if (data.train_pixels == data.train_pixels[0]).all():
        raise ValueError(f"{called} has training images that are all alike")
    known = {hashlib.sha256(image.tobytes()).digest() for image in data.train_pixels}
    shared = np.mean([hashlib.sha256(image.tobytes()).digest() in known for image in data.test_pixels])
    if shared > MOST_SHARED:
        raise ValueError(f"{called} has test images of which {shared:.0%} are training images, too; separate them")
    return data


def forecast(networks: Sequence[Network], studies: Sequence[Tables]) -> float:
    """Seconds of one processor that networks will take, from what others of their design took; NaN if nobody knows.

    Training takes longer with more images, measuring does not. Networks of a kind (`mlp`, `vgg`, ...) and design that
    nobody has trained are taken for the mean of all designs of their kind, or of all kinds.

    Args:
        networks: those to come.
        studies: tables of finished studies, on the machine that made them.
    """
    if not studies:
        return float("nan")
    rows = []
    for tables in studies:
        made = tables.networks
        measuring = 2 * tables.costs.groupby("run")["seconds"].sum()  # the two halves cost as much as the whole
        kinds = {"kind": made["model"].map(_kind), "design": made["designs"].str.split("+").str[0]}
        spent = {"image": made["seconds"] / made["images"], "measuring": made["run"].map(measuring).fillna(0)}
        rows.append(pd.DataFrame(kinds | spent))
    table = pd.concat(rows)
    means = [table.groupby(by)[["image", "measuring"]].mean() for by in (["kind", "design"], "kind", lambda _: "any")]
    total = 0.0
    for one in networks:
        kind, images = _kind(one.run.model), one.run.examples or len(load_dataset(one.run.dataset).train_true)
        keys = zip(means, ((kind, one.designs[0]), kind, "any"), strict=True)
        known = next(mean.loc[key] for mean, key in keys if key in mean.index)
        total += images * known["image"] + known["measuring"]
    return float(total)


def _kind(model: str) -> str:
    return model.partition(":")[0]


def missing_networks(
    dataset: str, folder: Path, designs: Sequence[str] | None, add: bool, architecture: str = MLP, quick: bool = False
) -> list[Network]:
    """Networks that :func:`replicate` would train or measure, given the same."""
    networks = networks_of(dataset, quick, architecture)
    held = _held(folder, load_dataset(dataset), networks) if add else None
    there = _whole(held, networks)
    return [one for one in _lacked(networks, wanted_designs(networks, designs), there) if not is_done(one)]


COSTLY = {one.name for one in CANDIDATES if one.costly}


def _whole(held: Tables | None, networks: Sequence[Network]) -> set[str]:
    """Settings of networks that tables hold with all that is asked of them; some are asked for costly measures, too."""
    if held is None:
        return set()
    asked = {settings_digest(one.run) for one in networks if one.costly}
    taken = held.costs[held.costs["entry"].isin(COSTLY)].groupby("run", observed=True)["entry"].nunique()
    whole = held.networks["run"].map(taken).fillna(0) == len(COSTLY)
    return set(held.networks.loc[whole | ~held.networks["settings"].isin(asked), "settings"])


def _lacked(networks: Sequence[Network], designs: Sequence[str], there: set[str]) -> list[Network]:
    """Networks of some designs whose settings are not among those of tables."""
    chosen = set(designs)
    return [one for one in networks if chosen & set(one.designs) and settings_digest(one.run) not in there]


def time_left(missing: Sequence[Network], jobs: int) -> float:
    """Seconds until networks that are missing will be there, learned from the committed tables."""
    root = Path(__file__).parents[2]
    folders = [root / where / name for where in (SECOND, OTHERS) for name in committed_second(root, where)]
    studies = [read_tables(folder) for folder in folders]
    return forecast(missing, studies) / min(jobs, max(1, len(missing)))


def second_tables(folder: Path) -> list[Path]:
    """Files of a data set that a page reads, those that are there."""
    names = [*(f"{one.name}.parquet" for one in fields(Tables)), TABLE, BOARD]
    return [folder / name for name in names if is_file(folder / name)]


def replicate(
    dataset: str,
    folder: Path,
    designs: Sequence[str] | None = None,
    quick: bool = False,
    add: bool = False,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    say: Callable[[str], None] | None = None,
    architecture: str = MLP,
) -> Tables:
    """Train and measure what is missing, and write tables, answers and leaderboard of a data set.

    Every finished network is kept in the store, and tables are written while networks finish: what is interrupted goes
    on where it stopped, with `add` on another machine, too.

    Args:
        dataset: name of the data set, see :func:`require_fit`.
        folder: where tables go.
        designs: which of `DESIGN_ORDER`; None takes all that the data set has.
        quick: a few small networks, which show that all works and decide nothing.
        add: take networks that the tables in `folder` hold as they are there, whatever code and machine made them, and
            compute only those that they lack, or that lack costly measures there.
        jobs: processes; None means one per core.
        progress: called with (finished, missing) as networks of a design finish.
        say: called with a line on each step.
        architecture: see :func:`nbutils.second.networks.networks_of`.

    Returns:
        The tables.

    Raises:
        ValueError: the data do not fit, no such design, or the folder's tables are of other images, or would be lost.
    """
    data = require_fit(dataset)
    networks, say = networks_of(dataset, quick, architecture), say or (lambda _line: None)
    wanted = wanted_designs(networks, designs)
    held = _held(folder, data, networks)
    if not add and held is not None:
        _require_none_lost(folder, held, networks)
        held = None
    for design in wanted:
        there = _whole(held, networks)
        own = _lacked(networks, [design], there)
        missing = sum(not is_done(one) for one in own)
        say(f"{design}: {len(own)} networks, {missing} to compute")
        new = [one for one in networks if settings_digest(one.run) not in there]
        compute(own, jobs, progress, partial(_save, folder, held, new))
    say("answers and leaderboard")
    tables = read_tables(folder)  # in the order of the files, so that the same tables give the same last digit
    conclude(dataset, folder, tables, architecture)
    return tables


def _save(folder: Path, held: Tables | None, networks: Sequence[Network]) -> None:
    """Write the tables with what the store has by now."""
    found = tables_of(networks)
    if held is not None or len(found.networks):
        write_tables(folder, _joined(held, found))


def wanted_designs(networks: Sequence[Network], designs: Sequence[str] | None) -> list[str]:
    """Designs of a study in the order in which they are computed.

    Raises:
        ValueError: the study has no such design; lists those that it has.
    """
    there = [one for one in DESIGN_ORDER if any(one in network.designs for network in networks)]
    if unknown := [one for one in designs or () if one not in there]:
        raise ValueError(f"designs must be among {', '.join(there)}, received {shown(unknown[0])}")
    return [one for one in there if designs is None or one in designs]


def page_lacks(tables: Tables) -> list[str]:
    """Designs of which tables hold too few sound networks for a page: none of them, or three families of the zoo."""
    good = {design: sound(tables, design, "true")[0] for design in ("runs", "grid", "small")}
    return [name for name, rows in good.items() if rows.empty or (name == "small" and not _has_families(rows))]


def _has_families(zoo: pd.DataFrame) -> bool:
    return zoo["family"].nunique() >= FEWEST


def conclude(dataset: str, folder: Path, tables: Tables, architecture: str = MLP) -> None:
    """Write the answers of a data set, and its leaderboard where its zoo is large enough, beside its tables."""
    least = PROTOCOL.zoo if architecture == MLP else SLICE
    answers = answer_table(answer_all({study_name(dataset, architecture): tables}, zoo=least))
    replace_file(folder / TABLE, answers.to_csv(index=False).encode())
    if _has_families(sound(tables, "small", "true")[0]):
        replace_file(folder / BOARD, leaderboard(tables).to_csv(index=False).encode())


def _held(folder: Path, data: Dataset, networks: Sequence[Network]) -> Tables | None:
    """Tables of the folder, if there are any; of other images or of another study they are refused."""
    if not is_file(folder / "networks.parquet"):
        return None
    tables, versions = read_tables(folder), {load_dataset(one.run.dataset).version for one in networks}
    if other := set(tables.networks["data_version"]) - versions:
        raise ValueError(
            f"the tables in {folder} are of other images (version {min(other)}) than {data.name} (version "
            f"{data.version}); write into another folder"
        )
    part = set(map(settings_digest, (one.run for one in networks)))
    if foreign := int((~tables.networks["settings"].isin(part)).sum()):
        raise ValueError(
            f"the tables in {folder} hold {foreign} networks that are no part of this study, and would be lost; write "
            "into another folder"
        )
    return tables


def _require_none_lost(folder: Path, held: Tables, networks: Sequence[Network]) -> None:
    """Refuse to write over tables of networks that the store does not hold."""
    stored = {settings_digest(one.run) for one in networks if is_done(one)}
    if lost := len(set(held.networks["settings"]) - stored):
        raise ValueError(
            f"the tables in {folder} hold {lost} networks that the store lacks, and would be written over; --add keeps "
            "them, another folder or none computes all anew"
        )


def _of_runs(tables: Tables, runs: pd.Series) -> Tables:
    return Tables(**{name: table[table["run"].isin(set(runs))] for name, table in vars(tables).items()})


def _joined(held: Tables | None, found: Tables) -> Tables:
    if held is None:
        return found
    new = set(found.networks["settings"]) if len(found.networks) else set()
    held = _of_runs(held, held.networks.loc[~held.networks["settings"].isin(new), "run"])
    pairs = {name: (table, getattr(found, name)) for name, table in vars(held).items()}
    both = {name: [table for table in pair if len(table)] for name, pair in pairs.items()}
    return replace(held, **{name: _stacked(some) for name, some in both.items() if some})


def _stacked(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Rows of tables under each other; a column that is empty in one of them takes its type from another."""
    if len(tables) == 1:
        return tables[0].reset_index(drop=True)
    names = list(dict.fromkeys(name for table in tables for name in table))
    filled = [table.dropna(axis="columns", how="all") for table in tables]
    return pd.concat(filled, ignore_index=True).reindex(columns=names)
