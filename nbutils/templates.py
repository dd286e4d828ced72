"""What a notebook on disk may be given: the declared model of our own templates, an inferred one for any other."""

from __future__ import annotations

import ast
import json
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, PydanticUserError, ValidationError, create_model

from nbutils.archive import archive_digest, archive_folder
from nbutils.catalogue import FOLDER, available, full_name
from nbutils.datasets import load_dataset
from nbutils.parameters import TEMPLATES, DatasetPage, nearest
from nbutils.sentences import cut, sentences, shown

__all__ = ["check_kernel", "data_versions", "point_mistakes", "template_model", "with_full_names"]

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
        return (f"{page.dataset} is not here",)
    studies = page.studies() or ({page.dataset: page} if hasattr(page, "dataset") else {})
    return tuple(
        f"{name} {archive_digest(archive_folder(name)) if study is None else load_dataset(name).version}"
        for name, study in sorted(studies.items())
    )
