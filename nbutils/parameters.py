"""What each notebook template may be given: names, types and ranges, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from nbutils.architectures import hidden_widths
from nbutils.archive import archive_folder, has_archive
from nbutils.catalogue import join_names, split_names
from nbutils.datasets import label_noise
from nbutils.devices import resolve_device
from nbutils.reference import REFERENCE, SMALL, has_tables
from nbutils.sentences import cut, one_sentence, shown
from nbutils.specs import checked_by, known_dataset
from nbutils.study import Study

__all__ = [
    "TEMPLATES",
    "DatasetPage",
    "HypothesisPage",
    "StartHere",
    "Synthesis",
    "WatchTraining",
    "check_parameters",
    "listed",
    "nearest",
]


def _some(names: str) -> str:
    if not names.strip():
        raise ValueError(f"must name at least one data set, received {names!r}")
    return names


def _known_datasets(names: str) -> str:
    return join_names(known_dataset(name) for name in split_names(names))


def _known_source(source: str) -> str:
    if source not in ("live", "tables"):
        raise ValueError(f"source must be 'live' or 'tables', received {source!r}")
    return source


class _Page(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def studies(self) -> dict[str, Study | None]:
        """The studies this page reads by data set, its own first; None stands for committed tables."""
        return {}


class StartHere(_Page):
    """Parameters of `start_here`."""

    dataset: Annotated[str, AfterValidator(known_dataset)] = "digits"
    model: Annotated[str, checked_by(hidden_widths)] = "mlp:48-24"
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 10
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    density: Annotated[float, Field(gt=0, le=1)] = 0.05
    device: Annotated[str, AfterValidator(resolve_device)] = "cpu"


class WatchTraining(_Page):
    """Parameters of `watch_training`."""

    dataset: Annotated[str, AfterValidator(known_dataset)] = "mnist-5k"
    labels: Annotated[str, checked_by(label_noise)] = "true"
    model: Annotated[str, checked_by(hidden_widths)] = "mlp:256-128-64"
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 4
    snapshots: Annotated[int, Field(ge=1, le=1000)] = 5
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    density: Annotated[float, Field(gt=0, le=1)] = 0.05
    device: Annotated[str, AfterValidator(resolve_device)] = "cpu"


class _StudyPage(_Page):
    study: Annotated[str, AfterValidator(_known_datasets)] = ""
    seeds: Annotated[int, Field(ge=1, le=1000)] = 3
    seed: Annotated[int, Field(ge=0, lt=2**31 - 1000)] = 0
    epochs: Annotated[int, Field(ge=1, le=10_000)] = 10
    density: Annotated[float, Field(gt=0, le=1)] = 0.05
    device: Annotated[str, AfterValidator(resolve_device)] = "cpu"
    jobs: Annotated[int, Field(ge=0, le=1024)] = 0
    source: Annotated[str, AfterValidator(_known_source)] = "live"

    def _names(self) -> list[str]:
        return split_names(self.study)

    def studies(self) -> dict[str, Study | None]:
        shared = {"seeds": self.seeds, "first_seed": self.seed, "epochs": self.epochs}
        shared |= {"density": self.density, "device": self.device}
        found: dict[str, Study | None] = {name: Study(dataset=name, **shared) for name in self._names()}
        if self.source == "live":
            return found
        return {name: None if name in REFERENCE or has_tables(study) else study for name, study in found.items()}


class HypothesisPage(_StudyPage):
    """Parameters of `h1_communities`, `h2_modularity` and `h3_entropy`."""

    dataset: Annotated[str, AfterValidator(known_dataset)] = "digits"

    def _names(self) -> list[str]:
        return [self.dataset, *split_names(self.study)]


class Synthesis(_StudyPage):
    """Parameters of `synthesis` and `robustness`."""

    study: Annotated[str, AfterValidator(_some), AfterValidator(_known_datasets)] = "digits"


def _reference(name: str) -> str:
    if name not in REFERENCE:
        raise ValueError(f"dataset of a reference study must be one of {', '.join(REFERENCE)}, received {shown(name)}")
    return name


def _references(names: str) -> str:
    return join_names(_reference(name) for name in names.split())


class ReferencePage(_Page):
    """Parameters of `evolution` and `reconstruction`, which read the committed tables of one data set."""

    dataset: Annotated[str, AfterValidator(_reference)] = "mnist"

    def studies(self) -> dict[str, Study | None]:
        return {self.dataset: None}


class ReferencePages(_Page):
    """Parameters of `specification_curve` and `memorising`, which read the committed tables of several data sets."""

    study: Annotated[str, AfterValidator(_some), AfterValidator(_references)] = "mnist"

    def studies(self) -> dict[str, Study | None]:
        return dict.fromkeys(self.study.split())


class SweepReport(_Page):
    """Parameters of `sweep_report`."""

    results: Annotated[str, Field(min_length=1)] = "runs/first/results.parquet"
    metric: str = ""


class Speed(_Page):
    """Parameters of `speed`."""

    results: Annotated[str, Field(min_length=1)] = "benchmarks/latest.json"


def _small(names: str) -> str:
    for name in (given := names.split()):
        if name not in SMALL:
            raise ValueError(
                f"a study trained on other processors must be one of {', '.join(SMALL)}, received {shown(name)}"
            )
        if given.count(name) > 1:  # its networks would be counted as often
            raise ValueError(f"must name each study once, received {shown(names)}")
    return names


class Processors(_Page):
    """Parameters of `processors`, which reads tables that were made on other processors."""

    study: Annotated[str, AfterValidator(_some), AfterValidator(_small)] = "digits mnist-5k"

    def studies(self) -> dict[str, Study | None]:
        return {name: None for name in (*SMALL, *REFERENCE) if has_archive(archive_folder(name))}


class Reanalysis(_Page):
    """Parameters of `reanalysis`."""

    results: Annotated[str, Field(min_length=1)] = "book/results/published/mnist_entropy.csv"
    constant: Annotated[float, Field(ge=1, le=20)] = 4.0
    draws: Annotated[int, Field(ge=100, le=100_000)] = 300


class DatasetPage(_Page):
    """Parameters of `dataset`."""

    dataset: Annotated[str, AfterValidator(known_dataset)] = "digits"
    examples: Annotated[int, Field(ge=1)] = 5000


TEMPLATES: dict[str, type[_Page]] = {
    "start_here": StartHere,
    "watch_training": WatchTraining,
    "h1_communities": HypothesisPage,
    "h2_modularity": HypothesisPage,
    "h3_entropy": HypothesisPage,
    "synthesis": Synthesis,
    "robustness": Synthesis,
    "evolution": ReferencePage,
    "reconstruction": ReferencePage,
    "specification_curve": ReferencePages,
    "memorising": ReferencePages,
    "sweep_report": SweepReport,
    "speed": Speed,
    "reanalysis": Reanalysis,
    "dataset": DatasetPage,
    "processors": Processors,
}


def check_parameters(template: str, values: Mapping[str, Any], given: Iterable[str] | None = None) -> Any:
    """Parameters of a template as a checked object.

    Args:
        template: one of `TEMPLATES`.
        values: names and values; only names the template knows are read.
        given: names that were given on purpose, each of which must be known; None means all of `values`.

    Returns:
        The template's model, frozen.

    Raises:
        ValueError: unknown template, unknown name (with the nearest spelling), wrong type or value; one sentence.

    Examples:
        >>> check_parameters("synthesis", {"sedes": 3})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: synthesis has no parameter 'sedes' (did you mean 'seeds'?); it takes study, seeds, ...
    """
    if template not in TEMPLATES:
        raise ValueError(f"template must be one of {', '.join(TEMPLATES)}, received {shown(template)}")
    model = TEMPLATES[template]
    fields = model.model_fields
    for name in values if given is None else given:
        if name not in fields:
            raise ValueError(
                f"{template} has no parameter {name!r}{nearest(name, fields)}; it takes {', '.join(fields)}"
            )
    try:
        return model(**{name: value for name, value in values.items() if name in fields})
    except ValidationError as error:
        raise ValueError(f"{template}: {one_sentence(error)}") from None


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the nearest spelling, or nothing.

    Examples:
        >>> nearest("sedes", ["seeds", "epochs"])
        " (did you mean 'seeds'?)"
    """
    near = get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def listed(values: Iterable[Any], most: int = 10) -> str:
    """Different values as a message lists them: each once, the first ten.

    Examples:
        >>> listed([0.02, 0.05, 0.02]), listed(range(12))
        ('0.02, 0.05', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 others')
    """
    found = list(dict.fromkeys(str(value) for value in values))
    words = [cut(text) for text in found[:most]]
    return ", ".join(words + ([f"and {len(found) - most} others"] if len(found) > most else [])) or "nothing"
