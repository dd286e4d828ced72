"""A sweep: one notebook over a grid of parameters, declared in a YAML file and checked before anything starts."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nbutils.executions import NotebookJob
from nbutils.grids import LARGEST, axis_values, grid_points, grid_size, is_excluded, says
from nbutils.parameters import listed
from nbutils.sentences import cut, shown
from nbutils.sweep_files import SweepFile, raise_mistakes, read_sweep_file
from nbutils.templates import check_kernel, data_versions, point_mistakes, template_model, with_full_names

__all__ = ["Point", "Sweep", "load_sweep"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
LONGEST = 120  # characters of a folder name
LONGEST_PATH = 2000  # of all folder names of a point; systems allow 4096 for a whole path


@dataclass(frozen=True)
class Point:
    """One combination of parameters.

    Attributes:
        parameters: all that is given to the notebook; names of folders with their absolute paths.
        varied: those of them that vary in the sweep, in the order of the file, as written there.
    """

    parameters: dict[str, Any]
    varied: dict[str, Any]

    @property
    def name(self) -> str:
        """Its name for people, such as "density=0.05 seed=3"."""
        return " ".join(f"{k}={v}" for k, v in self.varied.items()) or "the only point"

    @property
    def folder(self) -> Path:
        """The folder of its notebook within that of the sweep, one `key=value` per level."""
        return Path(*(_folder_name(k, v) for k, v in self.varied.items()))


@dataclass(frozen=True)
class Sweep:
    """A checked sweep.

    Attributes:
        name: name of the sweep and of its folder.
        about: what it is for.
        file: the file that declares it.
        notebook: the notebook.
        points: all combinations.
        timeout: seconds that one notebook may take, or None.
    """

    name: str
    about: str
    file: Path
    notebook: Path
    points: tuple[Point, ...]
    timeout: float | None

    @property
    def axes(self) -> list[str]:
        """Names of the parameters that vary."""
        return list(dict.fromkeys(name for point in self.points for name in point.varied))

    def jobs(self, timeout: float | None = None) -> list[NotebookJob]:
        """One notebook per point; `timeout` takes the place of the file's."""
        text, folder = self.notebook.read_text("utf-8"), str(self.notebook.parent.resolve())
        model = template_model(self.notebook)
        return [
            NotebookJob(
                name=point.name,
                template=text,
                parameters=tuple(point.parameters.items()),
                folder=folder,
                inputs=data_versions(model, point.parameters),
                timeout=timeout or self.timeout,
            )
            for point in self.points
        ]

    def only(self, conditions: Sequence[str]) -> Sweep:
        """The sweep's points that meet every condition "key=value".

        Raises:
            ValueError: a condition names no parameter of the sweep, or nothing is left.
        """
        kept = list(self.points)
        for condition in conditions:
            key, equals, value = condition.partition("=")
            if not equals or not any(key in p.parameters for p in kept):
                names = ", ".join(dict.fromkeys(name for p in self.points for name in p.parameters))
                raise ValueError(f"--only must be key=value with a key of {names}; received {shown(condition)}")
            written = [{**p.parameters, **p.varied} for p in kept]  # names of folders as in the file
            fitting = [p for p, own in zip(kept, written, strict=True) if key in own and says(value, own[key])]
            if not fitting:
                there = listed(own[key] for own in written if key in own)
                raise ValueError(
                    f"--only {cut(' '.join(conditions))} leaves none of the {len(self.points)} points: "
                    f"{key} is {there}, received {shown(value)}"
                )
            kept = fitting
        return Sweep(self.name, self.about, self.file, self.notebook, tuple(kept), self.timeout)


def load_sweep(path: Path | str) -> Sweep:
    """Read a sweep file and check every point against the notebook's parameters.

    Args:
        path: a YAML file, see :class:`nbutils.sweep_files.SweepFile`.

    Returns:
        The :class:`Sweep`.

    Raises:
        FileNotFoundError: no such file or notebook.
        ValueError: mistakes; the message lists all of them, one a line.
    """
    path = Path(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"no sweep file {cut(path)}")
    declared = read_sweep_file(path)
    name = declared.name or path.stem
    if not NAME.fullmatch(name):
        raise ValueError(f"{path.name}: name must be letters, digits, '.', '_' and '-', received {shown(name)}")
    notebook = path.parent / declared.notebook
    if not os.path.isfile(notebook) or notebook.suffix != ".ipynb":
        raise FileNotFoundError(
            f"{path.name}: notebook must be the path of an .ipynb file, received {shown(declared.notebook)}"
        )
    notebook = notebook.resolve()
    check_kernel(notebook)
    model = template_model(notebook)
    mistakes = _axis_mistakes(declared)
    points = [] if mistakes else _points(declared, mistakes)
    points = [Point(with_full_names(model, point.parameters), point.varied) for point in points]
    mistakes += point_mistakes(model, [point.parameters for point in points])
    folders = Counter(str(point.folder).casefold() for point in points)
    mistakes += [f"{folder}: {n} points would share this folder" for folder, n in folders.items() if n > 1]
    if (longest := max(map(len, folders), default=0)) > LONGEST_PATH:
        mistakes.append(f"{len(points[0].varied)} parameters that vary would make a path of {longest} characters")
    raise_mistakes(path, mistakes)
    return Sweep(name, declared.about, path, notebook, tuple(points), declared.timeout)


def _axis_mistakes(declared: SweepFile) -> list[str]:
    """Names given twice, empty axes, values given twice, zipped axes of different length."""
    axes = [*declared.grid.items(), *(item for group in declared.zip for item in group.items())]
    if declared.seeds is not None:
        axes.append(("seed", declared.seeds))
    names = Counter([*declared.fixed, *(name for name, _ in axes)])
    found = [f"{name}: is given {count} times" for name, count in names.items() if count > 1]
    zipped = {name for group in declared.zip for name in group}
    found += ["zip: a group names no parameter" for group in declared.zip if not group]
    size = grid_size(declared.grid, [*declared.zip, {} if declared.seeds is None else {"seed": declared.seeds}])
    if size > LARGEST:
        return [*found, f"asks for {size:,} points; a sweep may have {LARGEST:,}"]
    for name, axis in axes:
        values = axis_values(axis)
        if not values:
            found.append(f"{name}: has no values")
        times = Counter(_key(value) for value in values) if name not in zipped else {}
        twice = [value for value in {_key(value): value for value in values}.values() if times.get(_key(value), 0) > 1]
        found += [f"{name}: {shown(value)} is given twice" for value in twice]
    try:
        grid_points({}, [{k: axis_values(v) for k, v in group.items()} for group in declared.zip])
    except ValueError as error:
        found.append(f"zip: {error}")
    return found


def _key(value: Any) -> Any:
    """Something with a hash that equal values share."""
    return json.dumps(value, sort_keys=True) if isinstance(value, list | dict) else value


def _points(declared: SweepFile, mistakes: list[str]) -> list[Point]:
    """All points that are not excluded; an exclusion that excludes nothing is a mistake."""
    axes = {name: axis_values(axis) for name, axis in declared.grid.items()}
    zipped = [{name: axis_values(axis) for name, axis in group.items()} for group in declared.zip]
    if declared.seeds is not None:
        zipped.append({"seed": axis_values(declared.seeds)})  # last, so that seeds of one setting lie together
    everything = grid_points(axes, zipped)
    for rule in declared.exclude:
        if not any(is_excluded({**declared.fixed, **point}, rule) for point in everything):
            mistakes.append(f"exclude {rule}: matches no point")
    varied = [p for p in everything if not any(is_excluded({**declared.fixed, **p}, r) for r in declared.exclude)]
    if not varied:
        mistakes.append("no point is left; every combination is excluded")
    return [Point({**declared.fixed, **point}, point) for point in varied]


def _folder_name(key: str, value: Any) -> str:
    """`key=value`, percent-encoded: no value can leave the folder or merge with another."""
    name = f"{quote(key, safe='')}={quote(str(value), safe='+,')}"
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 17]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"
