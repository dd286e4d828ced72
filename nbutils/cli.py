"""The command line: `python -m nbutils run | pages | data | study | replicate | measure | lesion | sweep | ...`."""

from __future__ import annotations

import argparse
import errno
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd

from nbutils.data.catalogue import BUILT_IN, available, check_files, parse_name
from nbutils.data.datasets import TITLES, load_dataset
from nbutils.data.datasheets import KEPT, keep_datasheet
from nbutils.data.sources import SOURCES, data_folder
from nbutils.support import machine
from nbutils.support.devices import DEVICES
from nbutils.support.files import replace_file
from nbutils.support.interrupts import ALL_KEPT, stopped
from nbutils.support.machine import default_jobs
from nbutils.support.messages import cut, is_plain, nearest, shown, told
from nbutils.support.needs import needed_for
from nbutils.support.progress import Reporter, duration
from nbutils.support.provenance import again_because
from nbutils.support.store import store_folder

if TYPE_CHECKING:
    from nbutils.study.study import Study, Task
    from nbutils.sweeps.execute import NotebookJob, Outcome
    from nbutils.sweeps.grid import Point, Sweep


def add_data_command(commands: argparse._SubParsersAction) -> None:
    """Add `data` to the command line."""
    data = commands.add_parser(
        "data",
        help="list the data sets: what is there, what is missing, what to do",
        description="List every data set with its files, where they are looked for (NBUTILS_DATA), and what to do "
        "about those that are missing.",
    )
    data.add_argument(
        "action",
        nargs="?",
        choices=["verify", "keep"],
        help="read all files again and check them; or write what the book shows of them where they are not",
    )
    data.add_argument("names", nargs="*", help="data sets to verify or keep (default: all that are there)")
    data.set_defaults(command=_data)


def _data(options: argparse.Namespace) -> int:
    return {"verify": _verify, "keep": _keep}[options.action](options.names) if options.action else _list()


def _keep(names: list[str]) -> int:
    if not KEPT.parent.is_dir():
        raise FileNotFoundError(f"data keep writes into {KEPT}; run it in the project's folder")
    for name in names or [name for name in SOURCES if available(name)]:
        print(f"{name}:", *keep_datasheet(name))
    return 0


def _list() -> int:
    rows, missing = [], []
    for name in BUILT_IN:
        if available(name):
            rows.append((name, TITLES[name], "ready", "in an installed package"))
        else:
            missing.append(f'  {name}: comes with a package: pip install ".[data]" in its folder')
            rows.append((name, TITLES[name], "missing", ""))
    for name, source in SOURCES.items():
        if files := source.files(data_folder()):
            rows.append((name, source.title, "ready", str(files[0])))
        else:
            download = "" if source.fetch is None else "is downloaded when first used; or "
            missing.append(f"  {name}: {download}put there {source.advice}")
            rows.append((name, source.title, "missing", ""))
    print(pd.DataFrame(rows, columns=["name", "title", "status", "where"]).to_string(index=False))
    print(f"\nFiles are looked for in {data_folder()} (NBUTILS_DATA names another folder).")
    print(
        "Your own pictures: --datasets folder:PATH, one folder per class; folder:PATH@32@grey resizes and greys them.\n"
        'Put quotes around a path with spaces, "folder:/my letters"; a slash ends a path that has an @: folder:a@b/@32.'
    )
    if missing:
        print("Missing:", *missing, sep="\n")
    return 0


def _verify(names: list[str]) -> int:
    """Exit code 0 if all are whole."""
    for name in names:
        parse_name(name)
    wanted = names or [name for name in (*BUILT_IN, *SOURCES) if available(name)]
    bad = 0
    for name in wanted:
        try:
            if name not in BUILT_IN:
                check_files(name)
            data = load_dataset(name)
        except (ValueError, OSError, ModuleNotFoundError) as error:
            bad += 1
            print(told(f"{name}: {error}"), file=sys.stderr)
            continue
        sides = [np.bincount(labels, minlength=len(data.classes)) for labels in (data.train_true, data.test_labels)]
        counts = " + ".join(f"{side.sum():,} ({side.min():,} to {side.max():,} a class)" for side in sides)
        print(f"{name}: whole; {counts} images of {'x'.join(map(str, data.image_shape))}, version {data.version}")
        print(f"  {data.origin}; licence: {data.licence or 'see the package'}")
    return int(bad > 0)


# Data sets of the studies that have tables, known without loading those.
DATASETS = ("mnist", "fashion-mnist", "cifar10", "plantvillage", "digits", "mnist-5k")


def add_study_command(commands: argparse._SubParsersAction) -> None:
    """Add `study` to the commands of `python -m nbutils`."""
    study = commands.add_parser(
        "study",
        help="compute a reference study and write its tables",
        description="Train and measure all runs of a reference study that the store lacks, then write its tables under "
        "book/results. It can be stopped at any time and goes on where it stopped.",
    )
    study.add_argument("dataset", nargs="?", choices=DATASETS, default="mnist", help="default: mnist")
    study.add_argument("--jobs", type=positive, help="processes (default: one per core)")
    study.add_argument("--root", type=Path, default=Path.cwd(), help="the project's folder (default: here)")
    study.add_argument("--into", type=Path, help="folder to write tables into (default: book/results)")
    how = study.add_mutually_exclusive_group()
    how.add_argument("--plan", action="store_true", help="only say what is missing and how long it would take")
    how.add_argument("--finished", action="store_true", help="compute nothing, write tables of the runs that are there")
    study.set_defaults(command=_study)


def project_folder(given: Path) -> Path:
    """The folder that `--root` names.

    Raises:
        FileNotFoundError: there is none.
    """
    if not os.path.isdir(given):
        raise FileNotFoundError(f"--root must be the project's folder, received {str(given)!r}, which is no folder")
    return given.resolve()


def _study(options: argparse.Namespace) -> int:
    from nbutils.runs.run import made_elsewhere
    from nbutils.study.archive import (
        RESULTS,
        has_archive,
        read_archive,
        reference_study,
        reference_tasks,
        write_archive,
        write_sums,
    )
    from nbutils.study.study import about_data, collect, compute_missing, failures

    jobs = options.jobs or default_jobs()
    committed = (options.root.resolve() if options.into else project_folder(options.root)) / RESULTS
    folder = (options.into or committed).resolve() / options.dataset
    tasks = reference_tasks(options.dataset)
    missing = [task for task in tasks if not task.done]
    print(f"Study of {options.dataset}: {len(tasks)} runs, {len(missing)} to compute; store: {store_folder()}")
    if missing and not options.finished:
        for reason in again_because(made_elsewhere(task.run for task in missing)):
            print(reason)
        print(f"Time: {_forecast(committed / options.dataset, missing, jobs)}.", flush=True)
    if options.plan:
        return 0
    if options.finished:
        tasks = [task for task in tasks if task not in missing]
    elif missing:
        with Reporter(jobs) as progress:
            compute_missing(tasks, jobs, progress)
    if not tasks:
        raise ValueError(
            f"no run of the study of {options.dataset} is in the store; without --finished they are computed"
        )
    if has_archive(folder) and (held := len(read_archive(folder, options.dataset).runs)) > len(tasks):
        raise ValueError(
            f"the tables in {folder} hold {held} runs, more than the {len(tasks)} that are finished; name another "
            "folder with --into"
        )
    about = about_data(load_dataset(reference_study(options.dataset).dataset))
    write_archive(folder, collect(options.dataset, tasks, about, len(missing)))
    if folder.is_relative_to(committed):
        write_sums(committed)
    failed = failures(tasks)
    print(f"Tables of {len(tasks)} runs, {len(failed)} of them failed: {folder}")
    return 0


def add_replicate_command(commands: argparse._SubParsersAction) -> None:
    """Add `replicate` to the commands of `python -m nbutils`."""
    replicate = commands.add_parser(
        "replicate",
        help="put the questions of the second study to a data set, also one of your own",
        description="Train and measure the networks of the second study on a data set, and write tables, answers, a "
        "leaderboard of all measures, and one page. The rules are frozen; their digest stands on the page. It can be "
        "stopped at any time and goes on where it stopped.",
    )
    replicate.add_argument("dataset", help="a name, or folder:PATH with a folder per class or MNIST's four idx files")
    replicate.add_argument("--quick", action="store_true", help="a few small networks: shows that all works in minutes")
    replicate.add_argument(
        "--designs", nargs="+", metavar="DESIGN", help="runs, grid, memorising, small, paper, 'one loss'"
    )
    replicate.add_argument("--jobs", type=positive, help="processes (default: one per core)")
    replicate.add_argument("--into", type=Path, help="folder for all that is written (default: replication/<data set>)")
    replicate.add_argument(
        "--architecture", default="mlp", help="mlp (default), vgg, resnet or vit: of these fewer networks"
    )
    replicate.add_argument("--add", action="store_true", help="keep networks that the folder's tables hold as they are")
    replicate.add_argument("--plan", action="store_true", help="only say what is missing and how long it would take")
    replicate.set_defaults(command=_replicate)


def _replicate(options: argparse.Namespace) -> int:
    from nbutils.second.networks import networks_of
    from nbutils.second.questions import rules_digest
    from nbutils.second.replication import (
        folder_name,
        missing_networks,
        page_lacks,
        replicate,
        require_fit,
        second_tables,
        study_name,
        time_left,
    )
    from nbutils.second.zoo import zoo_digest
    from nbutils.sweeps.report import packaged_template, write_page

    data, jobs, kind = require_fit(options.dataset), options.jobs or default_jobs(), options.architecture
    networks = networks_of(options.dataset, options.quick, kind)
    named = study_name(folder_name(options.dataset), kind) + "-quick" * options.quick
    folder = options.into or Path("replication") / named
    print(f"Second study of {data.title}: {len(networks)} networks; rules {rules_digest()}, zoos {zoo_digest()}")
    print(f"Store: {store_folder()}")
    missing = missing_networks(options.dataset, folder, options.designs, options.add, kind, options.quick)
    left = time_left(missing, jobs)
    told = "minutes" if options.quick else "time unknown" if left != left else f"about {duration(left)}"
    print(f"Missing: {len(missing)} networks, {told} with {jobs} jobs.", flush=True)
    if options.plan:
        return 0
    folder.mkdir(parents=True, exist_ok=True)  # one that cannot be is known before anything is trained
    with Reporter(jobs, what="networks") as progress:
        tables = replicate(
            options.dataset, folder, options.designs, options.quick, options.add, jobs, progress, _flushed, kind
        )
    if lacking := page_lacks(tables):
        print(
            f"Tables: {folder}. A page also needs sound networks of {', '.join(lacking)} (three families of the zoo)."
        )
        return 0
    given = {"dataset": options.dataset, "tables": folder.resolve().as_posix(), "architecture": kind}
    title = f"Second study of {data.title}"
    page = write_page(packaged_template("answers.ipynb"), given, second_tables(folder), folder / "page.html", title)
    print(f"Page: {page}")
    return 0


def add_experiment_command(commands: argparse._SubParsersAction) -> None:
    """Add `experiment` to the commands of `python -m nbutils`."""
    experiment = commands.add_parser(
        "experiment",
        help="train networks under many conditions, with penalties, silenced, pruned or step by step",
        description="Train and measure the networks of an experiment, and write one table: conditions (ways to train, "
        "each against one reference) or cause (communities and entropy pushed up and down), with a row for each "
        "network; early (the first two epochs), with a row for each step; lesions (communities silenced, and sets "
        "of neurons that are alike), pushed (the same where modularity was pushed), noisy-lesions "
        "(the same where wrong labels were learned), class-groups (neurons by the "
        "class that they prefer) and partitions (groups found in other ways), with a row for each set; class-losses "
        "(what every class loses with a community), with a row for each class; "
        "pruning (weights removed by several rules, and the rest trained further), with a row for each state; "
        "left-over (what is left over within classes), with a row for each network before or after training; "
        "planted (tasks whose modules are known), with a row for each construction; sparse, sparse-places and "
        "sparse-full (units that may stand for motifs), with a row for each look; sparse-density (density imposed on "
        "maps that stay as they are), with a row for each density. The table is written "
        "while networks finish, and what it holds is kept: it can be stopped at any time and goes on where it stopped.",
    )
    known = (
        "conditions, cause, early, lesions, pushed, noisy-lesions, class-groups, class-losses, partitions, pruning, "
        "left-over, planted, sparse, sparse-places, sparse-density or sparse-full"
    )
    experiment.add_argument("experiment", help=known)
    experiment.add_argument("--datasets", nargs="+", metavar="NAME", help="default: those of the book")
    experiment.add_argument("--seeds", type=positive, help="networks of each condition or dose (default: the book's)")
    experiment.add_argument("--jobs", type=positive, help="processes (default: one per core)")
    experiment.add_argument("--into", type=Path, default=Path("experiments"), help="folder (default: experiments)")
    experiment.add_argument("--plan", action="store_true", help="only say what is missing and how long it would take")
    experiment.set_defaults(command=_experiment)


def _experiment(options: argparse.Namespace) -> int:
    from nbutils.experiments.designs import EXPERIMENTS, experiment_trials
    from nbutils.study.cases import compute_cases, missing_cases

    trials = experiment_trials(options.experiment, options.datasets, options.seeds)
    experiment = EXPERIMENTS[options.experiment]
    jobs = options.jobs or default_jobs()
    path = options.into / f"{options.experiment}.parquet"
    missing = missing_cases(trials, path)
    print(f"Experiment {options.experiment}: {len(trials)} networks; store: {store_folder()}")
    left = experiment.seconds(missing) / min(jobs, max(1, len(missing)))
    print(f"Missing: {len(missing)} networks, about {duration(left)} with {jobs} jobs.", flush=True)
    if options.plan:
        return 0
    options.into.mkdir(parents=True, exist_ok=True)
    with Reporter(jobs, what="networks") as progress:
        whole = experiment_trials(options.experiment)
        table = compute_cases(trials, path, experiment.rows, jobs, progress, whole, experiment.together)
    first = table.drop_duplicates("settings")  # a network as it was trained, before its other states
    failed, degenerate = int((first["reason"] != "").sum()), int((first["degenerate"] == 1).sum())
    print(f"Table: {path}: {len(first)} networks, {failed} failed, {degenerate} degenerate.")
    return 0


def add_measure_command(commands: argparse._SubParsersAction) -> None:
    """Add `measure` to the commands of `python -m nbutils`."""
    measure = commands.add_parser(
        "measure",
        help="measure a network of your own, with reference values beside every number",
        description="Communities, entropies and baselines of any PyTorch network, layer by layer, beside what "
        "untrained twins of it and images of noise give; as a table, as files, and as one page. The factory's code is "
        "run; files of weights and images are only read.",
    )
    measure.add_argument(
        "--model", required=True, help="package.module:factory, path/to/file.py:factory, or torchvision:resnet18"
    )
    measure.add_argument("--weights", type=Path, help=".safetensors, or a checkpoint of weights alone")
    measure.add_argument(
        "--data",
        required=True,
        help="a data set's name or folder:PATH, of which the test images are taken, or an .npz with images and perhaps "
        "labels, taken whole",
    )
    measure.add_argument("--mean", nargs="+", type=float, help="per channel, of values from 0 to 1, as in training")
    measure.add_argument("--std", nargs="+", type=float, help="likewise, the deviation")
    measure.add_argument("--layers", nargs="+", help='wildcards, "*relu()" for called functions (default: proposed)')
    measure.add_argument("--images", type=positive, default=2000, help="images looked at, at most (default: 2000)")
    measure.add_argument("--neurons", type=positive, default=512, help="graphs have at most so many (default: 512)")
    measure.add_argument("--twins", type=positive, default=5, help="untrained twins (default: 5)")
    measure.add_argument("--reduce", choices=["mean", "max"], default="mean", help="over positions (default: mean)")
    measure.add_argument("--no-labels", action="store_true", help="do as if the images had none")
    measure.add_argument("--device", choices=DEVICES, default="cpu", help="where the network runs (default: cpu)")
    measure.add_argument("--into", type=Path, help="folder for all that is written (default: measured/<model>)")
    measure.add_argument("--no-page", action="store_true", help="tables alone, without the page")
    measure.set_defaults(command=_measure, kept=NOTHING)


def add_lesion_command(commands: argparse._SubParsersAction) -> None:
    """Add `lesion` to the commands of `python -m nbutils`."""
    lesion = commands.add_parser(
        "lesion",
        help="silence communities of a network of your own, and sets of neurons that are alike",
        description="Communities of any PyTorch network are found on half of the images and silenced on the other "
        "half, as in the experiment on lesions, beside sets that are as large and alike in layer, rate, selectivity or "
        "preferred class. One table, with a row per set. The factory's code is run; files are only read.",
    )
    lesion.add_argument("--model", required=True, help="as of the command measure; so are the next five")
    lesion.add_argument("--weights", type=Path)
    lesion.add_argument("--data", required=True, help="with labels")
    lesion.add_argument("--mean", nargs="+", type=float)
    lesion.add_argument("--std", nargs="+", type=float)
    lesion.add_argument("--layers", nargs="+")
    lesion.add_argument("--images", type=positive, default=2000, help="images looked at, at most (default: 2000)")
    lesion.add_argument("--draws", type=positive, default=5, help="random sets, and shuffles (default: 5)")
    lesion.add_argument("--into", type=Path, default=Path("lesions.parquet"), help="file (default: lesions.parquet)")
    lesion.set_defaults(command=_lesion, kept=NOTHING)


def _lesion(options: argparse.Namespace) -> int:
    from nbutils.own.images import load_images
    from nbutils.own.lesions import lesion
    from nbutils.own.models import load_factory, load_weights
    from nbutils.support.provenance import provenance

    _require_folder(options.into.parent)
    images = load_images(options.data)
    if images.labels is None:
        raise ValueError(f"data: {options.data} must hold labels, for effects are measured class by class")
    model = load_factory(options.model)()
    if options.weights:
        load_weights(model, options.weights)
    given = {name: getattr(options, name) for name in ("layers", "mean", "std", "draws")}
    with Reporter(1, what="sets") as progress:
        given |= {"examples": options.images, "progress": progress}
        table = _with_option("examples", "--images", lesion, model, images.values, images.labels, **given)
    origin = provenance()
    known = {"model": options.model, "weights": options.weights.name if options.weights else "", "data": images.source}
    table = table.assign(**known, **{name: origin[name] for name in ("commit", "time", "machine")})
    replace_file(options.into, table.to_parquet(index=False, compression="zstd"))
    zero = table[(table["silence"] == "zero") & (table["kind"] != "whole")]
    columns = ["size", "loss_preferred", "loss_others", "specificity"]
    print(f"{options.model}: accuracy {table['accuracy'].iloc[0]:.3f} on {table['images'].iloc[0]:,} images; means:")
    print(zero.groupby("kind", sort=False)[columns].mean().round(3).to_string())
    print(f"Table: {options.into}")
    return 0


def _with_option(argument: str, option: str, function: Callable[..., Any], *given: Any, **more: Any) -> Any:
    """What a function gives; where it refuses an argument, by the name of the option that people typed."""
    try:
        return function(*given, **more)
    except ValueError as error:
        raise ValueError(re.sub(rf"^{argument}\b", option, str(error))) from error


def _require_folder(folder: Path) -> None:
    """Refuse a place where no folder can be, without making one.

    Raises:
        ValueError: something else is there, or it cannot be written to.
    """
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    try:
        with tempfile.TemporaryDirectory(dir=there):  # which rights alone do not tell
            pass
    except OSError:
        raise ValueError(f"--into must lie in a folder that can be written to; {there} is none") from None


NOTHING = "nothing is written before the end"
SUMMARY = ("neurons", "active", "modularity", "excess", "class_part", "remainder", "communities", "active_entropy")


def _measure(options: argparse.Namespace) -> int:
    from nbutils.own.images import load_images
    from nbutils.own.measure import FEW, FEWEST, measure
    from nbutils.own.models import load_factory, load_weights

    name = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(options.model).name).strip("-")[:80] or "model"
    folder = options.into or Path("measured") / name
    _require_folder(folder)  # before anything is measured
    images, factory = load_images(options.data), load_factory(options.model)
    model = factory()
    if options.weights:
        load_weights(model, options.weights)
    print(f"{options.model}, {options.weights.name if options.weights else 'as the factory makes it'}; {images.source}")
    with Reporter(1, what="steps") as progress:
        found = _with_option(
            "examples",
            "--images",
            measure,
            model,
            images.values,
            None if options.no_labels else images.labels,
            layers=options.layers,
            mean=options.mean,
            std=options.std,
            examples=options.images,
            neurons=options.neurons,
            twins=options.twins,
            factory=factory,
            reduce=options.reduce,
            device=options.device,
            progress=progress,
        )
    about = found.about
    about |= {"name": options.model, "weights": options.weights.name if options.weights else "", "data": images.source}
    about["class_names"] = list(images.classes) if about["classes"] else []
    for left, reason in about["left_out"].items():
        print(f"Left out of the references: {left} ({reason})")
    chosen = found.layers[found.layers["chosen"]]
    print(f"Layers: {len(chosen)} of {len(found.layers)} considered.")
    for one in found.layers.itertuples():
        print(f"  {'+' if one.chosen else '-'} {one.name}: {one.neurons} neurons, {one.why}")
    for layer, count in about["never_above_0"].items():
        print(f"  {layer}: {count} neurons change with the image but are never above 0, and count as never firing")
    accuracy = about["accuracy"]
    told = "" if accuracy is None else f", accuracy {accuracy:.3f}"
    told += f"; no accuracy: {about['unscored']}" if about["unscored"] else ""
    if about["images"] < FEW:
        told += f"\nFewer than {FEW} images: halves of them differ by more than networks do"
    print(f"Images: {about['images']:,} of {about['of']:,}, {about['inputs']}{told}")
    print(found.wide(SUMMARY).round(3).to_string(index=False))
    if small := ", ".join(found.too_small):
        print(f"No graph (NaN), for fewer than {FEWEST} neurons are active in every network compared: {small}")
    whole = found.table[(found.table["layer"] == found.table["layer"].iloc[-1]) & (found.table["word"] != "unknown")]
    columns = ["called", "value", "untrained_low", "untrained_high", "noise_low", "noise_high", "word"]
    print(f"\nThe whole network beside its references:\n{whole[columns].round(3).to_string(index=False)}")
    if about["outputs"] is None:
        print("\nThe network gives no row of finite scores for each image: nothing is told of what it predicts.")
    elif about["classes"] and about["outputs"] != about["classes"]:
        print(
            f"\nThe network has {about['outputs']:,} outputs, the labels {about['classes']} classes: are they the same?"
        )
    for name in ("page.html", "page.ipynb"):  # of a network that was measured before
        (folder / name).unlink(missing_ok=True)
    print(f"Tables: {found.save(folder)}")
    options.kept = "the tables are written, the page is not"
    if not options.no_page:
        from nbutils.sweeps.report import packaged_template, write_page

        reads = [folder / "table.parquet", folder / "neurons.parquet", folder / "about.json"]
        given = {"tables": folder.resolve().as_posix()}
        title = f"Communities of {options.model}"
        print(f"Page: {write_page(packaged_template('own_network.ipynb'), given, reads, folder / 'page.html', title)}")
    return 0


def _flushed(line: str) -> None:
    print(line, flush=True)


def _forecast(folder: Path, missing: Sequence[Task], jobs: int) -> str:
    """How long missing runs will take, from what runs of their kind took when the committed tables were made."""
    from nbutils.study.archive import has_archive, read_archive

    if not has_archive(folder):
        return "unknown, there are no tables to learn it from"
    runs = read_archive(folder, folder.name).runs
    kinds = runs.groupby(["dataset", "parts"])["seconds"].mean()
    found = [kinds.get((task.run.dataset, task.parts)) for task in missing]
    known = [seconds for seconds in found if seconds is not None]
    if not known:
        return "unknown, the tables hold no runs of this kind"
    total = sum(known) * len(missing) / len(known) / min(jobs, len(missing))
    return f"about {duration(total)} with {jobs} jobs, as fast as the machine that made the tables"


WIDEST = 100_000  # characters of a line of a table
LARGEST_NUMBER = 10_000_000  # more processes, failures or seconds are a slip of the pen
SWEEP_FILES = (".yml", ".yaml")


def whole(text: str) -> int:
    """A whole number in ASCII digits, for options; `int` takes digits of all scripts, blanks and underscores."""
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise argparse.ArgumentTypeError(f"must be a whole number, received {text[:100]!r}")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1 on, for options."""
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:30]) <= LARGEST_NUMBER:
        raise argparse.ArgumentTypeError(
            f"must be a whole number, at least 1 and at most {LARGEST_NUMBER:,}, received {text[:100]!r}"
        )
    return int(text)


def add_sweep_commands(commands: argparse._SubParsersAction) -> None:
    """Add `sweep`, `results` and `report` to the command line."""
    sweep = commands.add_parser(
        "sweep",
        help="run a notebook over a grid of parameters; run again to resume",
        description="Run a notebook once for every point of a grid of parameters, which a YAML file declares. "
        "Everything is checked before the first run; run the command again to resume. Results go to "
        "runs/<sweep>/results.parquet and .csv.",
    )
    sweep.add_argument("file", type=Path, help="the sweep, such as notebooks/sweeps/first.yml")
    sweep.add_argument("--jobs", type=positive, help="notebooks at the same time (default: one per core)")
    sweep.add_argument("--dry-run", action="store_true", help="check everything, list the points, run nothing")
    sweep.add_argument("--force", action="store_true", help="run finished points again")
    sweep.add_argument("--only", nargs="+", default=[], metavar="KEY=VALUE", help="only points with these values")
    sweep.add_argument("--max-failures", type=positive, metavar="N", help="stop when N points have failed")
    sweep.add_argument("--timeout", type=positive, metavar="S", help="seconds that one notebook may take")
    sweep.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler, or local-dask (default: no Dask)")
    sweep.set_defaults(command=_sweep)
    results = commands.add_parser(
        "results",
        help="show the measurements of a sweep",
        description="Print what the notebooks of a sweep measured, one row per point and metric: filtered, sorted, "
        "or as a table of two parameters.",
    )
    results.add_argument("file", type=Path, help="the sweep's .yml, or a results.parquet or .csv")
    results.add_argument("--where", nargs="+", default=[], metavar="COLUMN=VALUE", help="only these rows")
    results.add_argument("--sort", metavar="COLUMN", help="sort by a column")
    results.add_argument("--reverse", action="store_true", help="sort in falling order")
    results.add_argument("--pivot", nargs=2, metavar=("ROWS", "COLUMNS"), help="mean of a metric over two parameters")
    results.add_argument("--metric", help="only this metric; the one of the pivot")
    results.add_argument("--all", action="store_true", help="all columns")
    results.set_defaults(command=_results)
    report = commands.add_parser(
        "report",
        help="make a page of a sweep: runs/<sweep>/report.html and .ipynb",
        description="Make one page of a sweep that needs no network: its points, failures, metrics over parameters, "
        "and intervals over seeds.",
    )
    report.add_argument("file", type=Path, help="the sweep's .yml, or a results.parquet or .csv")
    report.add_argument("--metric", default="", help="the metric to begin with (default: the first)")
    report.set_defaults(command=_report)
    for command in (sweep, results, report):
        command.add_argument("--output", type=Path, default=Path("runs"), help="folder of all sweeps (default: runs)")


def _sweep(options: argparse.Namespace) -> int:
    from nbutils.sweeps.engine import run_notebooks, runner
    from nbutils.sweeps.grid import load_sweep
    from nbutils.sweeps.tables import ResultsTable

    every = load_sweep(options.file)
    sweep = every.only(options.only)
    folder = options.output / sweep.name
    jobs = sweep.jobs(options.timeout)
    points = dict(zip(jobs, sweep.points, strict=True))
    if options.dry_run:
        return _list_points(sweep, points)

    results = ResultsTable(every, folder)

    def deliver(job: NotebookJob, outcome: Outcome) -> None:
        _deliver(sweep.notebook, folder / points[job].folder, outcome)
        results.add(outcome)

    with runner(options.scheduler, options.jobs) as where:
        folder.mkdir(parents=True, exist_ok=True)  # one that cannot be is known before anything runs
        print(f"{_title(sweep)}: {where.about}; notebooks in {folder}", flush=True)
        try:
            found = run_notebooks(jobs, where, deliver, force=options.force, max_failures=options.max_failures)
        finally:
            results.add_kept()
            results.write()
    print(
        f"{found.finished} finished, {found.cached} cached, {len(found.failed)} failed, {found.left} not started; "
        f"table: {folder / 'results.parquet'} and .csv"
    )
    _mention_strangers(every, folder)
    return 0 if found.complete else 1


def _title(sweep: Sweep) -> str:
    count = len(sweep.points)
    return f"Sweep {sweep.name}: {count} point{'s'[: count > 1]} of {sweep.notebook.name}"


def _list_points(sweep: Sweep, points: dict[NotebookJob, Point]) -> int:
    from nbutils.sweeps.execute import kept

    print(f"{_title(sweep)}; nothing is run")
    states = []
    for job, point in points.items():
        found = kept(job.address)
        states.append("missing" if found is None else found.status)
        print(f"  {states[-1]:8} {cut(point.name, WIDEST)}")
    print(", ".join(f"{states.count(word)} {word}" for word in ("done", "failed", "missing")))
    return 0


def _deliver(template: Path, folder: Path, outcome: Outcome) -> None:
    """Put the executed notebook in its place; there is never a good one and a failed one at the same time."""
    from nbutils.sweeps.report import relinked

    done, failed = folder / template.name, folder / f"{template.stem}.failed.ipynb"
    wanted, other = (done, failed) if outcome.status == "done" else (failed, done)
    if outcome.notebook:
        replace_file(wanted, relinked(outcome.notebook, template.parent, folder).encode())
    other.unlink(missing_ok=True)


def _mention_strangers(sweep: Sweep, folder: Path) -> None:
    """Notebooks that a former version of the sweep left: kept, and not in the table."""
    own = {folder / point.folder for point in sweep.points}
    strangers = [p for p in folder.rglob(f"{sweep.notebook.stem}*.ipynb") if p.parent not in own]
    if strangers:
        print(
            f"{len(strangers)} notebooks in {folder} belong to no point of the sweep any more, such as {strangers[0]}"
        )


def _results(options: argparse.Namespace) -> int:
    from nbutils.sweeps.tables import check_metric, pivot, read_results, select

    if options.reverse and not options.sort:
        raise ValueError("--reverse is the order of --sort COLUMN, which is missing")
    table = read_results(_table_file(options))
    if options.metric is not None:
        check_metric(table, options.metric)
    table, whole = select(table, options.where, options.sort, options.reverse), not options.where
    runs = table.drop_duplicates("run")
    if options.pivot:
        print(told(pivot(table, *options.pivot, options.metric).to_string(float_format="{:.4g}".format), WIDEST))
        counts = pivot(table, *options.pivot, options.metric, "count")
        if counts.stack().nunique() > 1:
            print(f"\nRuns that these are means of:\n{told(counts.fillna(0).astype(int).to_string(), WIDEST)}")
    else:
        if options.metric is not None:
            table = select(table, [f"metric={options.metric}"])
        kept = table if options.all else _essential(table)
        rows = kept.to_string(index=False, na_rep="", float_format="{:.4g}".format) if len(kept) else "No rows."
        print(told(rows, WIDEST))
    count = runs["status"].value_counts()
    print(f"{len(table)} rows; {count.get('done', 0)} runs done, {count.get('failed', 0)} failed")
    if options.file.suffix in SWEEP_FILES:
        _compare_with_file(options.file, set(runs["run"]), whole)
    return 0


def _compare_with_file(file: Path, there: set[str], whole: bool) -> None:
    """Say which runs of a table are none of a sweep as its file and notebook are now, and how many it lacks."""
    from nbutils.sweeps.grid import load_sweep

    now = {job.address for job in load_sweep(file).jobs()}
    if others := len(there - now):
        print(
            f"{others} of these runs are none of the sweep as it is now: its file, its notebook, or what this reads "
            "was changed since, or another sweep of the same name wrote them"
        )
    if whole and (left := len(now - there)):
        print(f"{left} runs are not in the table yet; python -m nbutils sweep {cut(file)} goes on")


def _table_file(options: argparse.Namespace) -> Path:
    """The table that the file argument means: itself, or the one that the sweep of that file wrote."""
    from nbutils.sweeps.grid import load_sweep

    file: Path = options.file
    if file.suffix in SWEEP_FILES:
        file = options.output / load_sweep(file).name / "results.parquet"
    if not os.path.isfile(file):
        raise FileNotFoundError(
            f"no results at {cut(file)}; run the sweep first: python -m nbutils sweep {cut(options.file)}"
        )
    return file


def _essential(table: pd.DataFrame) -> pd.DataFrame:
    """Columns that differ between rows or say the result; `--all` shows the others."""
    hidden = {"run", "sweep", "notebook", "commit", "time", "versions"}
    told = {"metric", "value", "status", "seconds"}
    keep = [c for c in table if c in told or (c not in hidden and table[c].nunique(dropna=False) > 1)]
    return table[keep]


def _report(options: argparse.Namespace) -> int:
    from nbutils.sweeps.report import write_report

    page = write_report(_table_file(options), options.metric)
    print(f"Report: {page}")
    return 0


# What makes a path that was given a wrong argument.
WRONG_PATH = {errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP}


class _Parser(argparse.ArgumentParser):
    """Shows what it received as all other messages do: printable, and cut off where it is long."""

    def error(self, message: str) -> NoReturn:
        super().error(cut(message, 300))

    def parse_known_args(self, *given: Any, **more: Any) -> tuple[argparse.Namespace, list[str]]:
        """As always, but an unknown option that is near a known one is refused with that."""
        found, unknown = super().parse_known_args(*given, **more)
        for option in (word.partition("=")[0] for word in unknown if word.startswith("--")):
            if hint := nearest(option, self._option_string_actions):
                self.error(f"no option {option}{hint}")
        return found, unknown


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 for success, 1 for failed work, 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    try:
        _settle_folders(options)
        with needed_for(f"python -m nbutils {options.name}"):
            return int(options.command(options))
    except (ValueError, ModuleNotFoundError) as error:
        print(f"error: {told(error)}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read the output has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno in WRONG_PATH or isinstance(error, FileNotFoundError):
            print(f"error: {_path_error(error)}", file=sys.stderr)
            return 2
        hint = "free some space and start again; " if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else ""
        print(f"error: {told(error)}; {hint}{options.kept}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as reason:
        return stopped(reason, options.kept)


def _settle_folders(options: argparse.Namespace) -> None:
    """Refuse folders that cannot be shown or are none, before anything starts."""
    for name, value in vars(options).items():
        if isinstance(value, Path) and not is_plain(str(value)):
            raise ValueError(f"{name}: a path must be free of control characters, received {shown(str(value))}")
    for name in ("NBUTILS_DATA", "NBUTILS_STORE"):
        if not (given := os.environ.get(name)):
            continue
        path = os.path.abspath(os.path.expanduser(given))
        if not is_plain(path):
            raise ValueError(f"{name} must be a folder free of control characters, received {shown(given)}")
        if os.path.lexists(path) and not os.path.isdir(path):
            raise ValueError(f"{name} must be a folder, received {shown(given, 300)}, which is something else")
        os.environ[name] = path  # kernels and workers, which work elsewhere, look in the same place


def _path_error(error: OSError) -> str:
    """What is wrong with a path, as one sentence."""
    if error.filename is None or not error.strerror:
        return told(error)
    return f"{shown(str(error.filename), 300)}: {error.strerror[0].lower()}{error.strerror[1:]}"


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m nbutils", description="Train, measure and publish neuron communities.")
    parser.set_defaults(kept=ALL_KEPT)
    commands = parser.add_subparsers(required=True, metavar="command", dest="name")
    run = commands.add_parser(
        "run",
        help="train and measure all runs of a study that the store lacks",
        description="Train and measure the networks that the pages of data sets need and that neither the committed "
        "tables nor the store hold. It can be stopped at any time and goes on where it stopped.",
    )
    pages = commands.add_parser(
        "pages",
        help="execute the notebooks and put the pages under book/pages",
        description="Execute every notebook of the book with its parameters, each in a kernel of its own, and put "
        "the pages under book/pages. What has not changed is not executed again.",
    )
    glance = commands.add_parser(
        "glance",
        help="write the verdicts and their figure into README.md",
        description="Write the answers of both studies, computed from their tables, into README.md and the book's "
        "first page, draw the figure of the verdicts, and write the ranges of networks of this book.",
    )
    runs = commands.add_parser(
        "runs",
        help="list the runs in the store",
        description="List the trained networks in the store (NBUTILS_STORE), with what each was trained on and how "
        "much room it takes.",
    )
    add_sweep_commands(commands)
    add_data_command(commands)
    add_study_command(commands)
    add_replicate_command(commands)
    add_experiment_command(commands)
    add_measure_command(commands)
    add_lesion_command(commands)
    settings = commands.add_parser(
        "portable",
        help="print the environment of portable mode, for `env $(...) COMMAND`",
        description="Print the variables under which every x86-64 processor with AVX2 computes the same bits, such "
        "as for: env $(python -m nbutils portable) make study DATASET=mnist",
    )
    settings.set_defaults(command=_portable)
    for command in (run, pages, glance):
        command.add_argument("--datasets", nargs="+", default=["digits", "mnist-5k"], help="default: digits mnist-5k")
        command.add_argument("--seeds", type=whole, default=10, help="networks per label condition (default: 10)")
        command.add_argument("--epochs", type=whole, default=10, help="passes over the training set (default: 10)")
        command.add_argument("--jobs", type=positive, help="processes (default: one per core)")
        command.add_argument("--device", choices=DEVICES, default="cpu", help="where networks train (default: cpu)")
    for command in (pages, glance):
        command.add_argument("--root", type=Path, default=Path.cwd(), help="the project's folder (default: here)")
    pages.add_argument("--plan", action="store_true", help="only check that the book has a place for every page")
    runs.add_argument("--dataset", help="only this data set")
    runs.add_argument("--prune", action="store_true", help="remove what the present code and libraries would not use")
    run.set_defaults(command=_run)
    pages.set_defaults(command=_pages)
    glance.set_defaults(command=_glance)
    runs.set_defaults(command=_runs)
    return parser


def _run(options: argparse.Namespace) -> int:
    from nbutils.runs.run import made_elsewhere
    from nbutils.study.archive import has_tables
    from nbutils.study.study import compute_missing, failures

    jobs, studies = options.jobs or default_jobs(), _studies(options)
    tasks = [task for study in studies if not has_tables(study) for task in study.tasks()]
    for study in filter(has_tables, studies):
        print(f"Runs: those on {study.dataset} are in the committed tables.")
    if not tasks:
        return 0
    names = ", ".join(dict.fromkeys(task.run.dataset for task in tasks))
    print(f"Runs: {len(tasks)} on {names}; {jobs} jobs; store: {store_folder()}", flush=True)
    for reason in again_because(made_elsewhere(task.run for task in tasks)):
        print(reason, flush=True)
    with Reporter(jobs) as progress:
        missing = compute_missing(tasks, jobs, progress)
    failed = failures(tasks)
    print(f"Runs: {len(tasks) - missing} were there, {missing} computed, {len(failed)} failed.")
    for run in failed:
        print(f"  failed: {run.spec.dataset}, labels={run.spec.labels}, seed={run.spec.seed}: {run.failed}")
    return 0


def _pages(options: argparse.Namespace) -> int:
    from nbutils.pages.publish import book_toc, page_jobs, publish
    from nbutils.sweeps.engine import runner

    root = _project(options)
    jobs = page_jobs(root, options.datasets, options.seeds, options.epochs, options.device)
    if options.plan:
        return 0
    with runner(jobs=options.jobs) as where:
        found = publish(jobs, where)
    print(f"Pages: {found.cached} up to date, {found.finished} executed, {len(found.failed)} failed.")
    toc, text = root / "_build" / "toc.yml", json.dumps(book_toc(root, options.datasets), indent=1)
    toc.parent.mkdir(exist_ok=True)
    if not toc.exists() or toc.read_text("utf-8") != text:
        toc.write_text(text, "utf-8")
    return 0 if found.complete else 1


def _glance(options: argparse.Namespace) -> int:
    from nbutils.pages.answering import open_all
    from nbutils.pages.landing import check_place, write_answer, write_glance
    from nbutils.pages.left_over import open_left
    from nbutils.pages.own_network import write_ranges
    from nbutils.pages.publish import committed_studies
    from nbutils.study.archive import RESULTS, has_tables, read_archive
    from nbutils.study.hypotheses import collect_evidence

    root = _project(options)
    studies = _studies(options)
    check_place(root)
    live = [study for study in studies if not has_tables(study)]
    kept = [study.dataset for study in studies if has_tables(study)] + committed_studies(root)
    results = [read_archive(root / RESULTS / name, name) for name in kept]
    for study in live:
        with Reporter(options.jobs or default_jobs()) as progress:
            results.append(study.compute(options.jobs, progress))
    write_glance(root, results, collect_evidence(results))
    found = open_all()
    write_answer(root, found, open_left(found)[1])
    write_ranges(root)
    return 0


def _portable(_options: argparse.Namespace) -> int:
    print(*(f"{name}={value}" for name, value in {machine.SWITCH: "1", **machine.settings()}.items()))
    return 0


def _runs(options: argparse.Namespace) -> int:
    from nbutils.sweeps.inventory import inventory, prune

    if options.prune and options.dataset is not None:
        raise ValueError("--prune removes from the whole store; it does not go with --dataset")
    if options.prune:
        count, size = prune()
        print(f"Removed {count} results and left-overs, {size / 2**20:.1f} MiB.")
    table = inventory(options.dataset)
    print(table.to_string(index=False) if len(table) else "No runs yet.")
    print(f"{len(table)} runs, {table['MiB'].sum() if len(table) else 0:.1f} MiB in {store_folder()}")
    return 0


def _project(options: argparse.Namespace) -> Path:
    """The project's folder, which pages and verdicts belong into."""
    root = project_folder(options.root)
    if not (root / "_toc.yml").is_file():
        raise FileNotFoundError(
            f"{root} is not the project's folder (it has no _toc.yml); run this command there, or name it with --root"
        )
    return root


def _studies(options: argparse.Namespace) -> list[Study]:
    """The studies that the options ask for, checked."""
    from nbutils.study.study import Study

    settings = {"seeds": options.seeds, "epochs": options.epochs, "device": options.device}
    studies = [Study(dataset=name, **settings) for name in options.datasets]
    return list({study.dataset: study for study in studies}.values())
