"""Committed tables of the reference study: what is in it, and how its tables are written and read."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from nbutils.data.datasets import label_noise
from nbutils.measures import MeasureSpec
from nbutils.study.extras import EXTRAS
from nbutils.study.results import CONDITIONS, Results, Specimen, as_results
from nbutils.study.study import Study, Task
from nbutils.support.arguments import checked
from nbutils.support.checks import as_frame, shown
from nbutils.support.files import is_file, read_parquet, replace_file

__all__ = [
    "REFERENCE",
    "RESULTS",
    "SMALL",
    "archive_digest",
    "archive_folder",
    "has_archive",
    "has_tables",
    "read_archive",
    "reference_study",
    "reference_tasks",
    "write_archive",
    "write_sums",
]

RESULTS = Path("book/results")
SUMS = "SHA256SUMS"  # beside all committed tables
NAMES = ("run", "parts", "dataset", "labels", "noise", "seed")  # what a row of the wide table takes from its run
FILES = ("runs.parquet", "measurements.parquet", "specimens.npz", "about.json")


@checked
def write_archive(folder: Path | str, results: Results) -> None:
    """Write the results of a study, each file whole or not at all.

    Args:
        folder: where they go.
        results: what a study found; the first network of every label condition is kept as a specimen.
    """
    table, folder = as_results(results).table, Path(folder)
    as_frame(table, (), "the table of results", key=("run", "epoch"))
    as_frame(results.runs, ("parts", "dataset", "labels", "seed", "status"), "the runs of results", key=("run",))
    as_frame(table, (), "the table of results", numbers=[name for name in table if name not in (*NAMES, "epoch")])
    measures = [name for name in table.columns if name not in (*NAMES, "epoch")]
    long = table.melt(["run", "epoch"], measures, "measure", "value").dropna(subset="value")
    long = long.sort_values(["run", "epoch", "measure"], ignore_index=True)
    long = long.astype({"run": "category", "measure": "category", "epoch": "int16", "value": "float64"})
    runs = results.runs.sort_values(["parts", "dataset", "labels", "seed"], ignore_index=True)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **_specimens(results))
    contents = {
        "runs.parquet": _parquet(runs),
        "measurements.parquet": _parquet(long),
        "specimens.npz": buffer.getvalue(),
        "about.json": (json.dumps(dict(results.about), indent=1, ensure_ascii=False) + "\n").encode(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise ValueError(f"folder {shown(str(folder), 150)} cannot be made: {type(error).__name__}") from None
    contents |= {f"{name}.parquet": _parquet(_compact(rows)) for name, rows in results.extras.items()}
    for name, content in contents.items():
        replace_file(folder / name, content)


def write_sums(results: Path) -> None:
    """Write down the SHA-256 sum of every committed file but texts, as `sha256sum --check` reads it."""
    files = [path for path in results.rglob("*") if path.is_file() and path.suffix != ".md" and path.name != SUMS]
    names = sorted(path.relative_to(results).as_posix() for path in files if not path.name.startswith("."))
    lines = [f"{hashlib.sha256((results / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    replace_file(results / SUMS, "".join(lines).encode())


@checked
def read_archive(folder: Path | str, dataset: str) -> Results:
    """Read committed tables.

    Args:
        folder: see :func:`write_archive`.
        dataset: what the study calls its data set.

    Returns:
        The :class:`nbutils.study.results.Results`, with `computed` None.

    Raises:
        FileNotFoundError: a file is missing; says how to make it.
        ValueError: a file is damaged; names it.
    """
    folder = Path(folder)
    missing = [name for name in FILES if not is_file(folder / name)]
    if missing:
        where, lacking, called = shown(str(folder), 150), ", ".join(missing), shown(dataset)[1:-1]
        raise FileNotFoundError(
            f"folder {where} has no {lacking}; run python -m nbutils study {called} in the project's folder"
        )
    found, others = {}, _extras(folder)
    for name in (*FILES, *others):
        try:
            found[name] = READERS[Path(name).suffix](folder / name)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{folder / name} is damaged: {error}") from None
    runs, long, arrays = found["runs.parquet"], found["measurements.parquet"], found["specimens.npz"]
    wide = long.pivot(index=["run", "epoch"], columns="measure", values="value").reset_index()
    wide.columns.name = None
    wide["run"] = wide["run"].astype(str)
    whole = set(runs.loc[runs["reason"] == "", "run"]) if "reason" in runs else set(runs["run"])
    if not whole <= set(wide["run"]) <= set(runs["run"]):
        raise ValueError(f"{folder} is damaged: {FILES[0]} and measurements.parquet are not of the same runs")
    named = runs.assign(noise=runs["labels"].map(label_noise))[list(NAMES)]
    # In the order of the table of runs, whatever order addresses have.
    table = named.merge(wide, on="run", validate="one_to_many").astype({"epoch": "int64"})
    addresses = sorted({key.partition("/")[0] for key in arrays})
    specimens = {address: partial(_specimen, runs, arrays, address) for address in addresses}
    extras = {Path(name).stem: found[name] for name in others}
    return Results(dataset, table, runs, specimens, found["about.json"], None, extras)


def archive_folder(dataset: str) -> Path:
    """Where the committed tables of a data set are, seen from the project's folder or from that of the notebooks."""
    return next((p for p in (RESULTS / dataset, Path("..") / RESULTS / dataset) if has_archive(p)), RESULTS / dataset)


def archive_digest(folder: Path) -> str:
    """12 hexadecimal digits that change with any file of committed tables."""
    digest = hashlib.sha256()
    for name in (*FILES, *_extras(folder)):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:12]


def has_archive(folder: Path) -> bool:
    """Whether a folder holds committed tables."""
    return is_file(folder / FILES[0])


def _extras(folder: Path) -> list[str]:
    """Files of extras in a folder."""
    return [f"{name}.parquet" for name in EXTRAS if (folder / f"{name}.parquet").is_file()]


def _compact(rows: pd.DataFrame) -> pd.DataFrame:
    """Words that come again and again as categories, numbers that are whole as small ones."""
    words = [name for name in rows if rows[name].dtype == object]
    return rows.astype(dict.fromkeys(words, "category"))


def _specimens(results: Results) -> dict[str, np.ndarray]:
    """Firing of the first network of every condition, untrained and trained, as bits."""
    arrays, rows = {}, results.runs
    done = set(rows.loc[rows["status"] == "done", "labels"])
    for labels in (name for name in results.labels if name in done):
        found = results.run(labels)
        arrays[f"{found.address}/fired"] = np.stack([np.packbits(found.fired(epoch), axis=1) for epoch in (0, -1)])
        arrays[f"{found.address}/tracked"] = found.tracked().astype(np.int16)
        arrays[f"{found.address}/layers"] = found.layers.astype(np.int16)
        arrays[f"{found.address}/probe_labels"] = found.probe_labels.astype(np.int16)
    return arrays


def _specimen(runs: pd.DataFrame, arrays: dict[str, np.ndarray], address: str) -> Specimen:
    row = runs[runs["run"] == address].iloc[0]
    layers, packed = arrays[f"{address}/layers"], arrays[f"{address}/fired"]

    def fired(epoch: int) -> np.ndarray:
        if epoch not in (0, -1):
            raise ValueError(f"committed tables hold firing of epochs 0 and -1 (the last), received {epoch!r}")
        return np.unpackbits(packed[epoch], axis=1, count=len(layers)).astype(bool)

    labels = arrays[f"{address}/probe_labels"].astype(np.int64)
    tracked = arrays[f"{address}/tracked"].astype(np.int64)
    return Specimen(address, row["labels"], int(row["seed"]), layers.astype(np.int64), labels, fired, lambda: tracked)


def _parquet(table: pd.DataFrame) -> bytes:
    return table.to_parquet(index=False, compression="zstd")


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


READERS: dict[str, Callable[[Path], Any]] = {".parquet": read_parquet, ".npz": _arrays, ".json": _json}


PAPER = {"model": "mlp:512-512", "dropout": 0.02, "epochs": 20}
# PlantVillage has too few images for a grid of its own, and at 64x64 nearly all weights would be in its first layer.
REFERENCE = {
    "mnist": Study(dataset="mnist", grid="mnist-10k", **PAPER),
    "fashion-mnist": Study(dataset="fashion-mnist", grid="fashion-mnist-10k", **PAPER),
    "cifar10": Study(dataset="cifar10", grid="cifar10-10k", conditions=("true",), **PAPER),
    "plantvillage": Study(dataset="plantvillage@32", grid="", conditions=("true",), **PAPER),
}
# What the book shows of small networks on small data; trained in minutes, by default with these very settings.
SMALL = {name: Study(dataset=name) for name in ("digits", "mnist-5k")}
RELEASED = "mnist"  # the data set on which the released code is taken apart
MEMORISED = 0.95  # training accuracy at which random labels count as learned
LONGEST = 500  # epochs
# Memorising runs, where the paper's learning rate is too high to learn random labels in that time or where that was not
# tried (CIFAR-10), take a lower one. PlantVillage's pictures differ so little that even then only some of them will do.
LOW, SOME = 0.0001, {"plantvillage": "plantvillage-2k@32"}
PATIENT, HURRIED = ("fashion-mnist", "cifar10", "plantvillage"), ("fashion-mnist", "plantvillage")


def reference_study(name: str) -> Study:
    """A study whose tables are kept with the book.

    Args:
        name: key of `REFERENCE`, a data set of the paper, or of `SMALL`.

    Returns:
        A :class:`nbutils.study.study.Study`.

    Raises:
        ValueError: no such reference study; lists what there is.

    Examples:
        >>> reference_study("mnist").model, reference_study("mnist").grid
        ('mlp:512-512', 'mnist-10k')
    """
    known = REFERENCE | SMALL
    if name not in known:
        raise ValueError(f"dataset of a reference study must be one of {', '.join(known)}, received {shown(name)}")
    return known[name]


def has_tables(study: Study) -> bool:
    """Whether committed tables hold exactly this study of a small data set, so that nothing need be trained.

    Args:
        study: of any data set and with any settings.
    """
    return SMALL.get(study.dataset) == study and has_archive(archive_folder(study.dataset))


@checked
def reference_tasks(name: str) -> list[Task]:
    """All runs of a reference study.

    Its conditions and its grid of label noise; on data sets of the paper also a run that memorises (and one that
    fails to, where the paper's learning rate is too high for it), and on MNIST networks trained as the paper's released
    code trains them.

    Args:
        name: key of `REFERENCE` or `SMALL`.

    Returns:
        The tasks; those of conditions and noise first.

    Examples:
        >>> tasks = reference_tasks("mnist")
        >>> [len([t for t in tasks if part in t.parts]) for part in ("conditions", "noise", "released")]
        [30, 40, 10]
    """
    study = reference_study(name)
    if name in SMALL:
        return study.tasks()
    tasks = [_with_extras(task, name == RELEASED) for task in study.tasks()]
    plain, light = MeasureSpec(density=study.density), MeasureSpec(density=study.density, null_draws=0)
    long = {"labels": "random", "seed": 0, "dropout": 0.0, "epochs": LONGEST, "stop_at": MEMORISED}
    memorising = study.run_spec(dataset=study.grid or study.dataset, **long)
    if name in HURRIED:
        tasks.append(Task(memorising, light, "hurried"))
    if name in PATIENT:
        few = SOME.get(name, memorising.dataset)
        memorising = memorising.model_copy(update={"learning_rate": LOW, "dataset": few})
    tasks.append(Task(memorising, light, "memorising"))
    if name == RELEASED:
        seeds = range(study.first_seed, study.first_seed + study.seeds)
        bright = [study.run_spec(labels="true", seed=seed, input_scale=255.0, checkpoints=True) for seed in seeds]
        tasks += [Task(run, plain, "released", ("reconstruction",)) for run in bright]
    return tasks


def _with_extras(task: Task, taken_apart: bool) -> Task:
    """The same task with what is measured beyond; and, where the released code is taken apart, with all weights."""
    if task.parts == "noise":
        return replace(task, extras=(*task.extras, "specifications"))
    if taken_apart and task.run.labels == CONDITIONS[0]:
        kept = task.run.model_copy(update={"checkpoints": True})
        return replace(task, run=kept, extras=(*task.extras, "evolution", "selectivity", "reconstruction"))
    return replace(task, extras=(*task.extras, "evolution", "selectivity"))
