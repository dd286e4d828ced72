"""The reference study: the paper's network on its data sets, with all seeds, nulls and noise levels a verdict needs."""

from __future__ import annotations

from dataclasses import replace

from nbutils.archive import archive_folder, has_archive
from nbutils.arguments import checked
from nbutils.arrays import shown
from nbutils.measures import MeasureSpec
from nbutils.results import CONDITIONS
from nbutils.study import Study, Task

__all__ = ["REFERENCE", "SMALL", "has_tables", "reference_study", "reference_tasks"]

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
        A :class:`nbutils.study.Study`.

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
        return replace(task, run=kept, extras=(*task.extras, "evolution", "answers", "reconstruction"))
    return replace(task, extras=(*task.extras, "evolution", "answers"))
