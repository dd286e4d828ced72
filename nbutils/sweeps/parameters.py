"""Parameters of notebooks, declared once: in the notebook's own cell tagged `parameters`.

    ``seeds: int = 3  # networks per label condition; a verdict needs 10 [1 to 1000]``

A line says the name, the type, the default and, in words, the meaning. Brackets at the end of the comment say which
values are allowed: `[1 to 1000]`, both ends included; `[above 0, at most 1]`, also with `at least` and `below`;
`[live | tables]`, one of some words; or a word of `KINDS` such as `[data set]`, which means the same in every notebook.

Everything else follows: the model that checks values, the studies that a page reads, what its results depend on, and
what the book gives it.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PydanticUserError,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)

from nbutils.data.catalogue import FOLDER, available, full_name, join_names, parse_name, split_names
from nbutils.data.datasets import DATASETS, label_noise, load_dataset
from nbutils.data.datasheets import kept_files
from nbutils.runs.conditions import CLIPPINGS, OPTIMISERS, SCHEDULES, activation, rule_name
from nbutils.runs.models import hidden_widths
from nbutils.runs.penalties import PENALTIES
from nbutils.runs.spec import checked_by, known_dataset
from nbutils.study.archive import REFERENCE, SMALL, archive_digest, archive_folder, has_tables, reference_study
from nbutils.study.study import Study
from nbutils.support.devices import resolve_device
from nbutils.support.files import file_digest
from nbutils.support.messages import cut, is_plain, nearest, one_sentence, sentences, shown


def _some(names: str) -> str:
    if not names.strip():
        raise ValueError(f"must name at least one data set, received {names!r}")
    return names


def _one_of(name: str, choices: str) -> Callable[[Any], Any]:
    words = [word.strip() for word in choices.split("|")]

    def check(value: Any) -> Any:
        if str(value) not in words:
            known = f"{', '.join(map(repr, words[:-1]))} or {words[-1]!r}"
            raise ValueError(f"{name} must be {known}, received {shown(value)}")
        return value

    return check


def _known_datasets(names: str) -> str:
    return join_names(known_dataset(name) for name in split_names(names))


def _reference(name: str) -> str:
    if name not in REFERENCE:
        raise ValueError(f"dataset of a reference study must be one of {', '.join(REFERENCE)}, received {shown(name)}")
    return name


def _references(names: str) -> str:
    return join_names(_reference(name) for name in names.split())


def _small(names: str) -> str:
    for name in (given := names.split()):
        if name not in SMALL:
            raise ValueError(
                f"a study trained on other processors must be one of {', '.join(SMALL)}, received {shown(name)}"
            )
        if given.count(name) > 1:  # its networks would be counted as often
            raise ValueError(f"must name each study once, received {shown(names)}")
    return names


def _plain(path: str) -> str:
    if not is_plain(path):
        raise ValueError(f"a path must be free of control characters, received {shown(path)}")
    return path


@dataclass(frozen=True)
class Kind:
    """What a word in brackets allows.

    Attributes:
        checks: what pydantic checks, in this order.
        names: the data sets that a value names; None where it names none.
        reads: the data sets whose committed tables such a page may read, whatever `source` says; None for other pages.
        shared: whether the book gives such a page the data sets that it is about.
        here: whether the page cannot do without the images.
    """

    checks: tuple[Any, ...]
    names: Callable[[str], list[str]] | None = None
    reads: tuple[str, ...] | None = None
    shared: bool = True
    here: bool = True


KNOWN, NAMES = AfterValidator(known_dataset), AfterValidator(_known_datasets)
SOME, STUDIES = AfterValidator(_some), AfterValidator(_references)
GRIDS = tuple(name for name, study in REFERENCE.items() if study.grid != "")
WHENCE = "live | tables | mixed"  # where the networks of a study come from
RULES = {"optimiser": OPTIMISERS, "schedule": SCHEDULES, "clipping": CLIPPINGS, "penalty": PENALTIES}
# Words that mean the same in every notebook.
KINDS = {
    "data set": Kind((KNOWN,), lambda name: [name]),
    "data set or none": Kind((AfterValidator(lambda name: known_dataset(name) if name else name),), split_names),
    "data set, here or not": Kind((KNOWN,), lambda name: [name], here=False),
    "data sets, here or not": Kind((NAMES,), lambda names: split_names(names) or [*DATASETS], here=False),
    "data sets": Kind((SOME, NAMES), split_names),
    "data sets or none": Kind((NAMES,), split_names),
    "reference study": Kind((AfterValidator(_reference),), lambda name: [name], tuple(REFERENCE)),
    "reference studies": Kind((SOME, STUDIES), split_names, tuple(REFERENCE)),
    "reference studies with a grid": Kind((SOME, STUDIES), split_names, GRIDS),
    "small studies": Kind((SOME, AfterValidator(_small)), split_names, tuple(SMALL), shared=False),
    "labels": Kind((checked_by(label_noise),)),
    "model": Kind((checked_by(hidden_widths),)),
    "model or none": Kind((checked_by(lambda name: name and hidden_widths(name)),)),
    "activation": Kind((checked_by(activation),)),
    **{name: Kind((checked_by(partial(rule_name, rules=rules, called=name)),)) for name, rules in RULES.items()},
    "device": Kind((AfterValidator(resolve_device),)),
    "path": Kind((Field(min_length=1),)),
    "folder or none": Kind((AfterValidator(_plain),)),
    WHENCE: Kind((AfterValidator(_one_of("source", WHENCE)),)),
}
# Parameter of a page -> attribute of the study whose networks it decides.
TRAINED = {"density": "density", "seed": "first_seed", "device": "device", "seeds": "seeds", "epochs": "epochs"}
SMOKE = ("seeds", "epochs")  # whose defaults are smaller than what committed tables hold


class NotebookParameters(BaseModel):
    """Checked parameters of a notebook; each notebook has a model of its own, see :func:`template_model`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())

    def studies(self) -> dict[str, Study | None]:
        """The studies this page reads by data set, its own first; None stands for committed tables.

        A page that declares `source` reads what its parameters ask for: networks that are trained where they are
        missing ("live"), committed tables ("tables"), or tables of those very networks where there are any ("mixed").
        """
        named = [(kind, name) for field, kind in _kinds(type(self)) for name in _names(kind, getattr(self, field))]
        if not _has_source(type(self)):
            return {name: None for kind, name in named if kind.reads is not None}
        source = getattr(self, "source")  # noqa: B009 - declared by the notebook
        settings = {own: getattr(self, name) for name, own in TRAINED.items() if name in type(self).model_fields}
        if source == "tables":
            return dict.fromkeys(name for _, name in named)
        found: dict[str, Study | None] = {name: Study(dataset=name, **settings) for _, name in named}
        if source == "live":
            return found
        return {name: None if name in REFERENCE or has_tables(study) else study for name, study in found.items()}

    @model_validator(mode="after")
    def _as_the_tables_are(self, info: ValidationInfo) -> NotebookParameters:
        """Refuse what committed tables cannot follow: they are measured, and stay as they are."""
        fields = type(self).model_fields
        if not _has_source(type(self)):
            return self
        given = self.model_fields_set if info.context is None else info.context["given"]
        studies = NotebookParameters.studies(self)
        for name in (name for name, study in studies.items() if study is None):
            if name not in REFERENCE | SMALL:
                known = ", ".join([*SMALL, *REFERENCE])
                raise ValueError(
                    f"source: there are committed tables of {known}, received {shown(name)}; 'live' trains its networks"
                )
            held = reference_study(name)
            # Next to networks that are trained now, their number and epochs are meant for those.
            fixed = [p for p in TRAINED if p not in SMOKE or (p in given and not any(studies.values()))]
            for parameter in (p for p in fixed if p in fields):
                if (value := getattr(self, parameter)) != (there := getattr(held, TRAINED[parameter])):
                    raise ValueError(
                        f"{parameter}: the committed tables of {name} hold {parameter} = {there!r}, received "
                        f"{value!r}; source = 'live' trains and measures networks with it"
                    )
        return self


def kind_of(model: type[BaseModel], name: str) -> Kind | None:
    """What the brackets of a parameter name, if it is a word of `KINDS`."""
    field = model.model_fields.get(name)
    extra = field.json_schema_extra if field is not None else None
    return KINDS[str(extra["kind"])] if isinstance(extra, dict) and "kind" in extra else None


def _kinds(model: type[BaseModel]) -> list[tuple[str, Kind]]:
    """Parameters whose kind is known; the one data set of a page before others."""
    found = [(name, kind) for name in model.model_fields if (kind := kind_of(model, name))]
    return sorted(found, key=lambda item: item[0] != "dataset")


def _has_source(model: type[BaseModel]) -> bool:
    return kind_of(model, "source") is KINDS[WHENCE]


def _names(kind: Kind, value: Any) -> list[str]:
    return kind.names(value) if kind.names and isinstance(value, str) else []


def template_file(name: str) -> Path:
    """A page's notebook: in the working folder, in its `notebooks`, or in those of the project that holds this code.

    Raises:
        ValueError: there is no such notebook; lists those that there are.
    """
    places = [Path(), Path("notebooks"), Path(__file__).parents[2] / "notebooks"]
    for place in places:
        if name == Path(name).name and os.path.isfile(place / f"{name}.ipynb"):
            return place / f"{name}.ipynb"
    known = sorted({path.stem for path in places[-1].glob("*.ipynb")})
    raise ValueError(
        f"template must be one of {', '.join(known) or 'none, as none is here'}, received {shown(name, 40)}"
    )


def check_parameters(
    template: str,
    values: Mapping[str, Any],
    given: Iterable[str] | None = None,
    model: type[NotebookParameters] | None = None,
) -> Any:
    """Parameters of a page as a checked object.

    Args:
        template: name of the notebook, such as "h2_modularity".
        values: names and values; only names that the notebook declares are read.
        given: names that were given on purpose, each of which must be known; None means all of `values`.
        model: what the notebook declares; None means that its file is read, see :func:`template_file`.

    Returns:
        The notebook's model, frozen.

    Raises:
        ValueError: unknown notebook, unknown name (with the nearest spelling), wrong type or value, or a value that
            the committed tables do not follow; one sentence.

    Examples:
        >>> check_parameters("synthesis", {"sedes": 3})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: synthesis has no parameter 'sedes' (did you mean 'seeds'?); it takes study, seeds, ...
    """
    model = model or template_model(template_file(template))
    fields, given = model.model_fields, set(values if given is None else given)
    for name in sorted(given - set(fields)):
        raise ValueError(f"{template} has no parameter {name!r}{nearest(name, fields)}; it takes {', '.join(fields)}")
    try:
        known = {name: value for name, value in values.items() if name in fields}
        return model.model_validate(known, context={"given": given})
    except ValidationError as error:
        raise ValueError(f"{template}: {one_sentence(error)}") from None


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
NUMBER = r"[-+]?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?"
RANGE = re.compile(
    rf"(?P<low>{NUMBER}) to (?P<high>{NUMBER})|(?P<word>above|at least|at most|below) (?P<bound>{NUMBER})"
)
BOUNDS = {"above": "gt", "at least": "ge", "at most": "le", "below": "lt"}
UNKNOWN = object()  # a default that only running the notebook can tell


@dataclass(frozen=True)
class _Declared:
    """One line of a cell of parameters."""

    annotation: str
    default: Any
    comment: str
    uses: frozenset[str] = frozenset()  # names from which a default is computed

    @property
    def brackets(self) -> str:
        found = re.search(r"\[([^\[\]]+)\]\s*$", self.comment)
        return " ".join(found[1].split()) if found else ""

    def kind(self) -> Any:
        """Its type: as annotated, else wide enough for its default (a default of 1 admits 0.5)."""
        if (annotated := _annotated(self.annotation)) is not None:
            return annotated
        if isinstance(self.default, bool | str | list | dict):
            return type(self.default)
        return int | float if isinstance(self.default, int | float) else Any

    def checks(self, name: str) -> tuple[Any, ...]:
        """What its brackets allow; words that are none of ours are a remark."""
        if (words := self.brackets) in KINDS:
            return (*KINDS[words].checks, Field(json_schema_extra={"kind": words}))
        if "|" in words:
            return (AfterValidator(_one_of(name, words)),)
        parts = [RANGE.fullmatch(part.strip()) for part in words.split(",")]
        if not any(parts):
            return ()
        if not all(parts):
            raise ValueError(f"the range [{words}] of {name!r} must be like [1 to 9] or [above 0, at most 1]")
        if self.kind() in (str, bool, list, dict):
            raise ValueError(f"{name!r} is no number, so the range [{words}] does not go with it")
        bounds: dict[str, Any] = {}
        for part in parts:
            bounds |= {"ge": part["low"], "le": part["high"]} if part["low"] else {BOUNDS[part["word"]]: part["bound"]}
        return (Field(**{bound: ast.literal_eval(number) for bound, number in bounds.items()}),)


def _annotated(text: str) -> Any:
    """The type that an annotation names: one of `ANNOTATIONS`, or a union of some, with None or without."""
    with suppress(SyntaxError, ValueError):
        parts, waiting = [], [ast.parse(text.strip("'\""), mode="eval").body]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
                waiting += [node.right, node.left]
                continue
            if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Optional"):
                waiting += [ast.Constant(None), node.slice]
                continue
            parts.append(ast.unparse(node.value if isinstance(node, ast.Subscript) else node))
        kinds = [type(None) if part == "None" else ANNOTATIONS.get(part) for part in parts]
        if all(kind is not None for kind in kinds) and kinds != [type(None)]:
            return reduce(or_, kinds)
    return None


def derived_mistakes(notebook: Path, given: Collection[str]) -> list[str]:
    """Parameters from which the notebook's cell of parameters computes others, before they are set.

    What a sweep sets comes after that cell; the others would keep what the defaults give.

    Args:
        notebook: with a cell tagged "parameters".
        given: names of the parameters that a sweep sets.

    Returns:
        A sentence for each parameter that the sweep does not set, and whose default uses one that it sets.
    """
    cells = [cell for cell in _content(notebook)["cells"] if "parameters" in cell.get("metadata", {}).get("tags", [])]
    found = {name: one for cell in cells for name, one in _declared("".join(cell["source"])).items()}
    return [
        f"{name!r} is computed from {used[0]!r} in {notebook.name}'s cell of parameters, before the sweep sets it; "
        f"compute it in a later cell, or set {name!r} as well"
        for name, one in found.items()
        if name not in given and (used := sorted(one.uses & set(given)))
    ]


def _declared(source: str) -> dict[str, _Declared]:
    """What the lines of a cell declare; nothing if it is no Python."""
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()]
    found: dict[str, _Declared] = {}
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        tree = ast.parse("\n".join(lines))
        tokens = tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline)
        comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
        for node in tree.body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            annotation = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
            uses: frozenset[str] = frozenset()
            try:
                default = ast.literal_eval(node.value)
            except ValueError:
                default = UNKNOWN
                uses = frozenset(part.id for part in ast.walk(node.value) if isinstance(part, ast.Name))
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    comment = comments.get(node.end_lineno or 0, "")
                    found[target.id] = _Declared(annotation, default, comment, uses)
    return found


def model_of_cells(name: str, cells: Iterable[str]) -> type[NotebookParameters] | None:
    """Model of the parameters of a notebook that is running, from the cells that ran so far.

    Its cell of parameters is the first that only assigns defaults with annotations, or a later version of that cell.

    Args:
        name: of the notebook.
        cells: their text, in the order in which they ran.

    Returns:
        The model; None if no such cell ran.

    Examples:
        >>> model_of_cells("mine", ["import os", "shots: int = 3  # how many [1 to 9]"])(shots=2)
        mine(shots=2)
    """
    found: dict[str, _Declared] = {}
    for cell in cells:
        with suppress(SyntaxError, ValueError):
            nodes = ast.parse(cell).body
            if nodes and all(isinstance(node, ast.AnnAssign) and node.value is not None for node in nodes):
                declared = _declared(cell)
                found = declared if not found or set(found) & set(declared) else found
    return _model(name, found) if found else None


def injected_names(cells: Iterable[str]) -> set[str]:
    """Names that papermill's own cell assigns, of the cells that ran so far."""
    return {name for cell in cells if cell.lstrip().startswith("# Parameters") for name in _declared(cell)}


def _model(name: str, declared: Mapping[str, _Declared]) -> type[NotebookParameters]:
    if hidden := [parameter for parameter in declared if parameter.startswith("_")]:
        raise ValueError(f"{name}: parameter {hidden[0]!r} must not begin with an underscore")
    try:
        fields: dict[str, Any] = {}
        for parameter, one in declared.items():
            checks = one.checks(parameter)
            default = None if one.default is UNKNOWN else one.default
            fields[parameter] = (Annotated[(one.kind(), *checks)] if checks else one.kind(), default)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a parameter may be called like a method of the model
            return create_model(Path(name).stem, __base__=NotebookParameters, **fields)
    except (NameError, TypeError, PydanticUserError) as error:
        raise ValueError(f"{name} has a parameter that is not possible: {_first_line(error)}") from None


def template_model(notebook: Path) -> type[NotebookParameters]:
    """Model of a notebook's parameters, from its cell tagged `parameters`.

    Args:
        notebook: path of the notebook; types are as annotated or, failing that, as wide as the default values.

    Returns:
        A pydantic model that forbids other names; its name is the notebook's.

    Raises:
        ValueError: the notebook cannot be read, has no cell tagged `parameters`, or that declares a range that is none.
    """
    content = _content(notebook)
    language = _language(content["metadata"])
    if not language:
        raise ValueError(f"{notebook.name} cannot be read as a notebook: No language is named in its metadata")
    tagged = [cell for cell in content["cells"] if "parameters" in cell["metadata"].get("tags", [])]
    found = _declared("".join(tagged[0]["source"])) if tagged and language == "python" else {}
    if not found:
        raise ValueError(
            f"{notebook.name} has no parameters that can be read; tag a cell of Python that assigns their defaults "
            "with 'parameters'"
        )
    return _model(notebook.name, found)


def _language(about: Mapping[str, Any]) -> str:
    info = about.get("language_info")
    return str(about["kernelspec"].get("language") or (info.get("name") if isinstance(info, dict) else "") or "")


def check_kernel(notebook: Path) -> None:
    """Refuse a notebook whose kernel is not installed here.

    Raises:
        ValueError: names the kernel, and those that there are.
    """
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    name, manager = _content(notebook)["metadata"]["kernelspec"]["name"], KernelSpecManager()
    try:
        manager.get_kernel_spec(name)
    except NoSuchKernel:
        there = ", ".join(sorted(manager.find_kernel_specs()))
        raise ValueError(f"{notebook.name} wants the kernel {shown(name)}; installed here: {there or 'none'}") from None


def _content(notebook: Path) -> dict[str, Any]:
    """What a file says, after a look at whether it is a notebook at all, and one that names its kernel."""
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
    return content


def _check_cells(notebook: Path, content: dict[str, Any]) -> None:
    """Refuse cells that are none, and parameters in several places: the later ones would undo what is given."""
    from nbutils.sweeps.lean import nbformat

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
        model: see :func:`template_model`. Where it does not say which texts name data sets, every text that begins with
            "folder:" is a folder.
        parameters: of one point; wrong ones stay as they are.
    """
    try:
        checked = model(**parameters)
    except ValidationError:
        return dict(parameters)  # to be told with all other mistakes
    declared = {name for name, kind in _kinds(model) if kind.names and FOLDER in str(parameters.get(name))}
    return {k: getattr(checked, k) if k in declared else _full(value) for k, value in parameters.items()}


def _full(value: Any) -> Any:
    if isinstance(value, list):
        return [_full(item) for item in value]
    return full_name(value) if isinstance(value, str) and value.startswith(FOLDER) else value


def data_versions(model: type[BaseModel], parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Versions of the data sets or committed tables that a notebook declares to read; empty for others.

    A page about a data set also stands without it, so for such a page nothing is downloaded.

    Args:
        model: see :func:`template_model`.
        parameters: checked parameters.
    """
    page = model(**parameters)
    found = {
        name: archive_digest(archive_folder(name)) if study is None else load_dataset(name).version
        for name, study in NotebookParameters.studies(page).items()
    }
    for field, kind in _kinds(model):
        for name in _names(kind, getattr(page, field)):
            if name not in found and (kind.here or available(name)):
                found[name] = load_dataset(name).version
            elif name not in found:
                found[name] = f"as it is kept: {', '.join(map(file_digest, kept_files(name)))}"
    for name in filter(None, map(_folder, parameters.values())):
        if name not in found and available(name):
            found[name] = load_dataset(name).version
    return tuple(f"{name} {version}" for name, version in sorted(found.items()))


def _folder(value: Any) -> str:
    """A text that names pictures in a folder, also where the notebook does not say that it names data; else nothing."""
    with suppress(ValueError):
        if isinstance(value, str) and value.startswith(FOLDER) and parse_name(value).path:
            return value
    return ""
