"""Parameters of notebooks: which a template has, what each may be, and sentences for what is wrong."""

from __future__ import annotations

import ast
import json
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model

from nbutils.data.catalogue import FOLDER, available, full_name, join_names, split_names
from nbutils.data.datasets import label_noise, load_dataset
from nbutils.data.datasheets import kept_files
from nbutils.runs.models import hidden_widths
from nbutils.runs.spec import checked_by, known_dataset
from nbutils.study.archive import REFERENCE, SMALL, archive_digest, archive_folder, has_archive, has_tables
from nbutils.study.study import Study
from nbutils.support.devices import resolve_device
from nbutils.support.files import file_digest
from nbutils.support.messages import one_sentence, sentences
from nbutils.support.text import cut, shown

__all__ = [
    "TEMPLATES",
    "DatasetPage",
    "HypothesisPage",
    "StartHere",
    "Synthesis",
    "WatchTraining",
    "check_kernel",
    "check_parameters",
    "data_versions",
    "listed",
    "nearest",
    "point_mistakes",
    "template_model",
    "with_full_names",
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


ANNOTATIONS = {"int": int, "float": float, "str": str, "bool": bool, "list": list, "dict": dict}


def template_model(notebook: Path) -> type[BaseModel]:
    """Model of a notebook's parameters.

    Args:
        notebook: path of the notebook. One of this project's templates has its declared model; any other gets one
            from its cell tagged `parameters`: names, and types by annotation or, failing that, by default value.

    Returns:
        A pydantic model that forbids other names; its name is the notebook's.

    Raises:
        ValueError: the notebook cannot be read, or has no cell tagged `parameters`.
    """
    _kernel_name(notebook)
    import papermill

    try:
        found = papermill.inspect_notebook(str(notebook))
    except Exception as error:  # papermill passes on whatever JSON, nbformat or its parser raise
        raise ValueError(f"{notebook.name} cannot be read as a notebook: {_first_line(error)}") from None
    own = TEMPLATES.get(notebook.stem)
    if own is not None and set(found) == set(own.model_fields):
        return own
    if not found:
        raise ValueError(
            f"{notebook.name} has no parameters that can be read; tag a cell of Python that assigns their defaults "
            "with 'parameters'"
        )
    if hidden := [name for name in found if name.startswith("_")]:
        raise ValueError(f"{notebook.name}: parameter {hidden[0]!r} must not begin with an underscore")
    fields: dict[str, Any] = {name: (_type(item), ...) for name, item in found.items()}
    fields = {name: (kind, None) for name, (kind, _) in fields.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a parameter may be called like a method of the model
            config = ConfigDict(extra="forbid", strict=True, protected_namespaces=())
            return create_model(notebook.stem, __config__=config, **fields)
    except (NameError, TypeError, PydanticUserError) as error:
        raise ValueError(
            f"{notebook.name} has a parameter of a name that is not possible: {_first_line(error)}"
        ) from None


def check_kernel(notebook: Path) -> None:
    """Refuse a notebook whose kernel is not installed here.

    Raises:
        ValueError: names the kernel, and those that there are.
    """
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    name, manager = _kernel_name(notebook), KernelSpecManager()
    try:
        manager.get_kernel_spec(name)
    except NoSuchKernel:
        there = ", ".join(sorted(manager.find_kernel_specs()))
        raise ValueError(f"{notebook.name} wants the kernel {shown(name)}; installed here: {there or 'none'}") from None


def _kernel_name(notebook: Path) -> str:
    """Name of a notebook's kernel, after a look at whether the file is a notebook at all."""
    try:
        content = json.loads(notebook.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{notebook.name} cannot be read as a notebook: {_first_line(error)}") from None
    if not isinstance(content, dict) or "nbformat" not in content:
        raise ValueError(f"{notebook.name} is no notebook: it has no 'nbformat'")
    if content["nbformat"] != 4:
        raise ValueError(
            f"{notebook.name} is a notebook of format {shown(content['nbformat'])}; open it in Jupyter and save it, "
            "which makes it format 4"
        )
    cells, about = content.get("cells"), content.get("metadata")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ValueError(f"{notebook.name} is no notebook: 'cells' must be a list of cells")
    spec = about.get("kernelspec") if isinstance(about, dict) else None
    name = spec.get("name") if isinstance(spec, dict) else None
    if not isinstance(name, str) or not name:
        raise ValueError(f"{notebook.name} names no kernel; open it in Jupyter, choose a kernel and save it")
    _check_cells(notebook, content)
    return name


def _check_cells(notebook: Path, content: dict[str, Any]) -> None:
    """Refuse cells that are none, and parameters in several places: the later ones would undo what is given."""
    import nbformat

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cells without an identifier, which get one
            cells = {**deepcopy(content), "metadata": {}}  # what is there besides is for the kernel
            nbformat.validate(nbformat.from_dict(cells), relax_add_props=True)
    except Exception as error:  # its own type, or whatever odd content makes it raise
        raise ValueError(f"{notebook.name} is no whole notebook: {cut(_first_line(error), 300)}") from None
    tagged = sum("parameters" in cell["metadata"].get("tags", []) for cell in content["cells"])
    if tagged > 1:
        raise ValueError(f"{notebook.name} has {tagged} cells tagged 'parameters'; it may have one")


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0].strip() if lines else type(error).__name__


def _type(parameter: Mapping[str, Any]) -> Any:
    """A parameter's type: as annotated, else wide enough for its default (a default of 1 admits 0.5)."""
    annotated = ANNOTATIONS.get(parameter["inferred_type_name"].split("[")[0])
    if annotated is not None:
        return annotated
    try:
        default = ast.literal_eval(parameter["default"])
    except (ValueError, SyntaxError):
        return Any
    if isinstance(default, bool | str | list | dict):
        return type(default)
    return int | float if isinstance(default, int | float) else Any


def point_mistakes(model: type[BaseModel], points: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with the points of a sweep, each mistake once, with the number of points that make it.

    Args:
        model: see :func:`template_model`.
        points: parameters, point by point.

    Returns:
        One sentence per mistake: which name, what is allowed, what was received, in how many points.
    """
    fields = model.model_fields
    found: Counter[str] = Counter()
    for point in points:
        for name in point:
            if name not in fields:
                takes = f"the notebook takes {', '.join(fields)}"
                found[f"{name}: no such parameter{nearest(name, fields)}; {takes}"] += 1
        found.update(_value_mistakes(model, {k: v for k, v in point.items() if k in fields}))
    return [f"{mistake} ({_share(count, len(points))})" for mistake, count in found.items()]


def _value_mistakes(model: type[BaseModel], values: dict[str, Any]) -> set[str]:
    try:
        model(**values)
    except ValidationError as error:
        return set(sentences(error))
    return set()


def _share(count: int, total: int) -> str:
    return f"in all {total} points" if count == total > 1 else f"in {count} of {total} points"


def with_full_names(model: type[BaseModel], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters in which folders of pictures have their absolute paths, for notebooks run in a folder of their own.

    Folders are looked for where the caller works, not beside the sweep file or the notebook.

    Args:
        model: see :func:`template_model`. In notebooks of one's own, every text that begins with "folder:" is a folder.
        parameters: of one point; wrong ones stay as they are.
    """
    if model in TEMPLATES.values():
        try:
            checked = model(**parameters)
        except ValidationError:
            return dict(parameters)  # to be told with all other mistakes
        named = [name for name, value in parameters.items() if isinstance(value, str) and FOLDER in value]
        return {**parameters, **{name: getattr(checked, name) for name in named}}
    return {name: _full(value) for name, value in parameters.items()}


def _full(value: Any) -> Any:
    if isinstance(value, list):
        return [_full(item) for item in value]
    return full_name(value) if isinstance(value, str) and value.startswith(FOLDER) else value


def data_versions(model: type[BaseModel], parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Versions of the data sets or committed tables that one of this project's templates reads; empty for others.

    A page about a data set also stands without it, so for such a page nothing is downloaded.

    Args:
        model: see :func:`template_model`.
        parameters: checked parameters.
    """
    if model not in TEMPLATES.values():
        return ()
    page = model(**parameters)
    if isinstance(page, DatasetPage) and not available(page.dataset):
        return (f"{page.dataset} as it is kept: {', '.join(map(file_digest, kept_files(page.dataset)))}",)
    studies = page.studies() or ({page.dataset: page} if hasattr(page, "dataset") else {})
    return tuple(
        f"{name} {archive_digest(archive_folder(name)) if study is None else load_dataset(name).version}"
        for name, study in sorted(studies.items())
    )
