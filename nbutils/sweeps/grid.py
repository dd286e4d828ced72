"""Grids of parameters: from a file or from arguments, checked, counted before they are enumerated, and laid out in
folders.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from nbutils.support.messages import cut, nearest, one_sentence, sentences, shown
from nbutils.sweeps.execute import NotebookJob
from nbutils.sweeps.neighbours import neighbour_code
from nbutils.sweeps.parameters import (
    check_kernel,
    data_versions,
    derived_mistakes,
    listed,
    point_mistakes,
    template_model,
    with_full_names,
)

LARGEST = 100_000  # points; more is a slip of the pen
FARTHEST = 1e18  # ends of a range; beyond them, neighbouring numbers are the same


class Range(BaseModel):
    """Evenly spaced values, both ends included.

    Attributes:
        start: first value; written `from`.
        to: last value.
        step: distance between neighbours; or
        count: number of values.
        scale: "linear", or "log" for equal ratios (with `count`).
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    start: Annotated[int | float, Field(alias="from")]
    to: int | float
    step: Annotated[int | float, Field(gt=0)] | None = None
    count: Annotated[int, Field(ge=2, le=LARGEST)] | None = None
    scale: str = "linear"

    @model_validator(mode="after")
    def _one_spacing(self) -> Range:
        for name, number in (("from", self.start), ("to", self.to), ("step", self.step)):
            if number is not None and not -FARTHEST <= number <= FARTHEST:  # NaN is not either
                raise ValueError(
                    f"{name!r} of a range must be a number from -1e18 to 1e18, received {str(number)[:30]}"
                )
        if (self.step is None) == (self.count is None):
            raise ValueError("a range needs either 'step' or 'count'")
        if self.to <= self.start:
            raise ValueError(f"'to' must be greater than 'from', received from {self.start} to {self.to}")
        if self.scale not in ("linear", "log"):
            raise ValueError(f"'scale' must be linear or log, received {self.scale!r}")
        if self.scale == "log" and (self.count is None or self.start <= 0):
            raise ValueError("a log range needs 'count' and a 'from' above 0")
        if self.size > LARGEST:
            raise ValueError(f"a range may have at most {LARGEST} values, received {Decimal(self.size):.6g}")
        if self.step is not None:
            first, last, step = (Decimal(str(number)) for number in (self.start, self.to, self.step))
            if (last - first) % step:
                near = first + (last - first) // step * step
                raise ValueError(
                    f"'step' of a range must lead from 'from' to 'to', which {self.step} does not; say to: {near} or "
                    f"to: {near + step}"
                )
        return self

    @property
    def size(self) -> int:
        """Number of values."""
        if self.step is None:
            return self.count or 0
        return int((Decimal(str(self.to)) - Decimal(str(self.start))) / Decimal(str(self.step))) + 1

    def values(self) -> list[int | float]:
        """The values, free of binary rounding: a step of 0.1 gives 0.3, not 0.30000000000000004.

        Examples:
            >>> Range.model_validate({"from": 0.1, "to": 0.5, "step": 0.2}).values()
            [0.1, 0.3, 0.5]
            >>> Range.model_validate({"from": 1, "to": 100, "count": 3, "scale": "log"}).values()
            [1.0, 10.0, 100.0]
        """
        first, last = Decimal(str(self.start)), Decimal(str(self.to))
        if self.scale == "log":
            ratio = math.log(self.to / self.start) / (self.count - 1)
            return [float(f"{self.start * math.exp(i * ratio):.12g}") for i in range(self.count)]
        if self.step is not None:
            step = Decimal(str(self.step))
            found = [first + i * step for i in range(int((last - first) / step) + 1)]
        else:
            found = [first + i * (last - first) / (self.count - 1) for i in range(self.count)]
        whole = all(isinstance(x, int) for x in (self.start, self.to)) and all(x == int(x) for x in found)
        if self.step is not None:  # exact decimals
            return [int(x) if whole else float(x) for x in found]
        between = [int(x) if whole else float(f"{x:.12g}") for x in found[1:-1]]
        return [self.start if whole else float(self.start), *between, self.to if whole else float(self.to)]


def axis_values(axis: Sequence[Any] | Range) -> list[Any]:
    """The values of an axis: a list as it is, a range spelt out."""
    return axis.values() if isinstance(axis, Range) else list(axis)


def grid_size(
    axes: Mapping[str, Sequence[Any] | Range], zipped: Iterable[Mapping[str, Sequence[Any] | Range]] = ()
) -> int:
    """How many points a grid has, by arithmetic: nothing is spelt out.

    Examples:
        >>> grid_size({"x": range(1000), "y": range(1000)}, [{"z": range(900)}])
        900000000
    """
    groups = [min(map(_length, group.values()), default=1) for group in zipped]
    return math.prod([*map(_length, axes.values()), *groups])


def _length(axis: Sequence[Any] | Range) -> int:
    return axis.size if isinstance(axis, Range) else len(axis)


def grid_points(
    axes: Mapping[str, Sequence[Any]], zipped: Iterable[Mapping[str, Sequence[Any]]] = ()
) -> list[dict[str, Any]]:
    """Every combination of the axes, the last axis fastest; zipped axes move together and count as one.

    Args:
        axes: values by name.
        zipped: groups of axes of equal length.

    Returns:
        One dictionary per point.

    Raises:
        ValueError: axes of a group differ in length.

    Examples:
        >>> grid_points({"x": [1, 2]}, [{"y": ["a", "b"], "z": [7, 8]}])[1]
        {'x': 1, 'y': 'b', 'z': 8}
    """
    steps = [[{name: value} for value in values] for name, values in axes.items()]
    for group in zipped:
        lengths = {name: len(values) for name, values in group.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"zipped axes must be equally long, received {lengths}")
        steps.append([dict(zip(group, row, strict=True)) for row in zip(*group.values(), strict=True)])
    return [{name: value for part in parts for name, value in part.items()} for parts in product(*steps)]


def is_excluded(point: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    """Whether a point matches every entry of an exclusion; a list in it means any of its values.

    Examples:
        >>> is_excluded({"x": 1, "y": 2}, {"x": [1, 3]}), is_excluded({"x": 1, "y": 2}, {"x": 1, "y": 9})
        (True, False)
    """
    return all(name in point and _matches(point[name], wanted) for name, wanted in rule.items())


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, list) and not isinstance(value, list):
        return any(_matches(value, one) for one in wanted)
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)  # True is 1 to Python


def says(text: str, value: Any) -> bool:
    """Whether a text from the command line means a value; numbers are compared as numbers.

    Examples:
        >>> says("0.020", 0.02), says("2e-2", 0.02), says("3.0", 3), says("true", True), says("0.020", "0.02")
        (True, True, True, True, False)
    """
    text = text.strip() if not isinstance(value, str) else text
    if str(value) == text:
        return True
    if value is None or isinstance(value, bool):
        return text.lower() == {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float) and (not text.isascii() or "_" in text):
        return False  # Python reads digits of all scripts, and underscores between them
    try:
        if isinstance(value, int):
            return Decimal(text) == value
        if isinstance(value, float):
            return float(text) == value or (math.isnan(value) and math.isnan(float(text)))
        if isinstance(value, list | dict):
            return json.loads(text) == value
    except (ValueError, ArithmeticError, RecursionError):  # what the text says is of another kind
        return False
    return False


LARGEST_FILE = 1_000_000  # bytes
MOST_VALUES = 200_000  # values, when all aliases are written out
LONGEST_NUMBER = 300  # characters of a number
DEEPEST = 12  # levels of lists and mappings
MOST_SHOWN = 20  # mistakes that are spelt out
LONGEST_TIMEOUT = 10_000_000  # seconds, four months
TEXT, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map", "merge")}
AMBIGUOUS = {"tag:yaml.org,2002:timestamp"}
# What YAML 1.1 reads otherwise than 1.2, which counts here: truth values; octal numbers, and those to the base 60.
SWITCH = re.compile("(?i:yes|no|on|off)")
OTHER_NUMBER = re.compile(r"[-+]?(0[0-9_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")


def _axis(given: Any) -> list[Any] | Range:
    if isinstance(given, list):
        return given
    if not isinstance(given, dict):
        raise ValueError(f"must be a list or a range such as {{from: 1, to: 9, step: 2}}, received {shown(given)}")
    try:
        return Range.model_validate(given)
    except ValidationError as error:
        said = one_sentence(error)
        raise ValueError(said if "received" in said else f"{said}, received {shown(given)}") from None


def _seed_axis(given: Any) -> list[Any] | Range:
    if isinstance(given, int) and not isinstance(given, bool):
        if not 1 <= given <= LARGEST:
            bound = "at least 1" if given < 1 else f"at most {LARGEST:,}, the number of points that a sweep may have"
            raise ValueError(f"must be {bound}, received {shown(given)}")
        return list(range(given))
    return _axis(given)


Axis = Annotated[Any, BeforeValidator(_axis)]


class SweepFile(BaseModel):
    """What a sweep file may say.

    Attributes:
        notebook: path of the notebook, relative to the sweep file.
        name: name of the sweep and of its folder; the file's name if missing.
        about: what the sweep is for.
        fixed: parameters that stay the same.
        grid: parameters that vary: a list, or a range (`{from: 1, to: 9, step: 2}`).
        zip: groups of parameters that vary together.
        exclude: combinations to leave out.
        seeds: values of the notebook's parameter `seed`: a list, a range, or a number n for 0 to n - 1.
        timeout: seconds that one notebook may take.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    notebook: str
    name: str = ""
    about: str = ""
    fixed: dict[str, Any] = {}
    grid: dict[str, Axis] = {}
    zip: list[dict[str, Axis]] = []
    exclude: list[dict[str, Any]] = []
    seeds: Annotated[Any, BeforeValidator(_seed_axis)] = None
    timeout: Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT)] | None = None


def read_sweep_file(path: Path) -> SweepFile:
    """Read a sweep file.

    Raises:
        ValueError: it is not YAML, or says what no sweep file may say; all mistakes at once.
    """
    content = _content(path)
    if content is None:
        raise ValueError(f"{path.name} is empty; a sweep is a mapping with 'notebook' and 'grid'")
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} must be a mapping with 'notebook' and 'grid', received {type(content).__name__}")
    fields = list(SweepFile.model_fields)
    unknown = [key for key in content if key not in fields]
    mistakes = [
        f"unknown key {shown(key)}{nearest(str(key), fields)}; a sweep has {', '.join(fields)}" for key in unknown
    ]
    try:
        found = SweepFile.model_validate({k: v for k, v in content.items() if k in fields})
    except ValidationError as error:
        found, mistakes = None, [*mistakes, *sentences(error)]
    raise_mistakes(path, mistakes)
    return found


def raise_mistakes(path: Path, mistakes: list[str]) -> None:
    """End with all mistakes in one message, if there are any."""
    if mistakes:
        count = f"{len(mistakes)} mistakes" if len(mistakes) > 1 else "a mistake"
        more = [f"and {len(mistakes) - MOST_SHOWN} more"] if len(mistakes) > MOST_SHOWN else []
        raise ValueError(f"{count} in {path.name}:\n- " + "\n- ".join([*mistakes[:MOST_SHOWN], *more]))


def _content(path: Path) -> Any:
    """What a YAML file says; sizes are checked before anything is built."""
    if (size := path.stat().st_size) > LARGEST_FILE:
        raise ValueError(f"{path.name} has {size:,} bytes; a sweep file may have {LARGEST_FILE:,}")
    try:
        reader = YAML(typ="safe", pure=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ReusedAnchorWarning)
            node = reader.compose(path.read_bytes().decode("utf-8-sig"))
        if node is None:
            return None
        _check(node, {})
        return reader.constructor.construct_document(node)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8 text: byte {error.start} is none of it") from None
    except _Refused as error:
        raise ValueError(f"{path.name}, line {error.mark.line + 1}: {error}") from None
    except MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        said = ", ".join(filter(None, (error.context, error.problem)))
        hint = "; indent with spaces" if "'\\t'" in said else ""
        raise ValueError(f"{path.name} is not valid YAML: {where}{said}{hint}") from None
    except (YAMLError, ReusedAnchorWarning, ValueError) as error:
        raise ValueError(f"{path.name} is not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError(f"{path.name} is nested more than {DEEPEST} levels deep") from None


class _Refused(Exception):  # noqa: N818 - becomes a ValueError with the file's name
    """YAML that could mean something, and may not be used in a sweep."""

    def __init__(self, node: Node, problem: str) -> None:
        super().__init__(problem)
        self.mark = node.start_mark


def _check(node: Node, known: dict[int, tuple[int, int] | None], depth: int = 1) -> tuple[int, int]:
    """Refuse what is ambiguous, or would explode; returns how many values a node has, and how many levels.

    Anchors let a node stand in many places; `known` has those that were looked at, None for one that is not finished.
    """
    if id(node) not in known:
        known[id(node)] = None
        if node.tag not in TAGS and node.tag not in AMBIGUOUS:
            raise _Refused(
                node,
                f"{node.tag.replace('tag:yaml.org,2002:', '!!')} is not allowed; a sweep file holds text, numbers, "
                "true, false, null, lists and mappings",
            )
        children: list[Node] = []
        if isinstance(node, ScalarNode):
            _check_scalar(node)
        elif isinstance(node, MappingNode):
            _check_keys(node)
            children = [value for _, value in node.value]
        else:
            children = node.value
        if depth >= DEEPEST and children:
            raise _Refused(node, f"is nested more than {DEEPEST} levels deep")
        found = [_check(child, known, depth + 1) for child in children]
        known[id(node)] = 1 + sum(n for n, _ in found), 1 + max((levels for _, levels in found), default=0)
    size = known[id(node)]
    if size is None:
        raise _Refused(node, "this value refers to itself")
    if size[0] > MOST_VALUES:
        raise _Refused(node, f"says more than {MOST_VALUES:,} values when its aliases are written out")
    if depth + size[1] - 1 > DEEPEST:
        raise _Refused(node, f"is nested more than {DEEPEST} levels deep")
    return size


def _check_keys(node: MappingNode) -> None:
    """Keys are text, each given once; `<<` merges another mapping."""
    for key, _ in node.value:
        if not isinstance(key, ScalarNode):
            raise _Refused(key, "a list or a mapping cannot be a key; keys are names")
        if key.tag not in (TEXT, MERGE) or (key.style is None and SWITCH.fullmatch(key.value)):
            raise _Refused(key, f"{shown(key.value)} as a key is not text; quote it if it is a name")
        _check_scalar(key)
    for key, count in Counter(key.value for key, _ in node.value if key.tag != MERGE).items():
        if count > 1:
            raise _Refused(node, f"{shown(key)} is given {count} times")


def _check_scalar(node: ScalarNode) -> None:
    """Refuse words that YAML's versions read differently: dates, yes and no, 010, 1:30, 1_000."""
    text = node.value
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Refused(node, "text holds half of a character pair, which no file can store") from None
    odd = node.tag.endswith(":bool") and text.lower() not in ("true", "false")
    if odd or (node.style is None and SWITCH.fullmatch(text)):
        raise _Refused(node, f"{text} means true or false to some readers of YAML only; write that, or quote it")
    if node.style is not None or node.tag == MERGE:
        if node.tag in AMBIGUOUS:
            raise _Refused(node, f"{node.tag.replace('tag:yaml.org,2002:', '!!')} is not allowed; use text")
        return
    if node.tag.endswith(":timestamp"):
        raise _Refused(node, f"{text} would be read as a date; quote it: '{text}'")
    number = node.tag.endswith((":int", ":float"))
    if (number and "_" in text) or OTHER_NUMBER.fullmatch(text):
        raise _Refused(node, f"{shown(text)} is not the same to all readers of YAML; write it plainly, or quote it")
    if number and len(text) > LONGEST_NUMBER:
        raise _Refused(node, f"a number of {len(text)} characters is too long; {LONGEST_NUMBER} are allowed")


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
        model, neighbours = template_model(self.notebook), neighbour_code(text, self.notebook.parent)
        return [
            NotebookJob(
                name=point.name,
                template=text,
                parameters=tuple(point.parameters.items()),
                folder=folder,
                inputs=(*data_versions(model, point.parameters), *neighbours),
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
        path: a YAML file, see :class:`nbutils.sweeps.grid.SweepFile`.

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
    mistakes += derived_mistakes(notebook, {name for point in points for name in point.parameters})
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
