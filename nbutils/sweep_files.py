"""The YAML file that declares a sweep: what it may say, read without YAML's traps."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nbutils.grids import LARGEST, Range
from nbutils.parameters import nearest
from nbutils.sentences import one_sentence, sentences, shown

__all__ = ["SweepFile", "raise_mistakes", "read_sweep_file"]

LARGEST_FILE = 1_000_000  # bytes
MOST_VALUES = 200_000  # values, when all aliases are written out
LONGEST_NUMBER = 300  # characters of a number
DEEPEST = 12  # levels of lists and mappings
MOST_SHOWN = 20  # mistakes that are spelt out
LONGEST_TIMEOUT = 10_000_000  # seconds, four months
TEXT, MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("null", "bool", "int", "float", "str", "seq", "map", "merge")}
AMBIGUOUS = {"tag:yaml.org,2002:timestamp"}


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


class _Loader(yaml.SafeLoader):
    """YAML without one of its classic traps: 1e-3 read as text. The others are refused by :func:`_check`."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+"), list("-+.0123456789")
)


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
        loader = _Loader(path.read_bytes().decode("utf-8-sig"))
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, {})
        return loader.construct_document(node)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is not UTF-8 text: byte {error.start} is none of it") from None
    except _Refused as error:
        raise ValueError(f"{path.name}, line {error.mark.line + 1}: {error}") from None
    except yaml.MarkedYAMLError as error:
        where = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        said = ", ".join(filter(None, (error.context, error.problem)))
        hint = "; indent with spaces" if "'\\t'" in said else ""
        raise ValueError(f"{path.name} is not valid YAML: {where}{said}{hint}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(f"{path.name} is not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ValueError(f"{path.name} is nested more than {DEEPEST} levels deep") from None


class _Refused(Exception):  # noqa: N818 - becomes a ValueError with the file's name
    """YAML that could mean something, and may not be used in a sweep."""

    def __init__(self, node: yaml.Node, problem: str) -> None:
        super().__init__(problem)
        self.mark = node.start_mark


def _check(node: yaml.Node, known: dict[int, tuple[int, int] | None], depth: int = 1) -> tuple[int, int]:
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
        children: list[yaml.Node] = []
        if isinstance(node, yaml.ScalarNode):
            _check_scalar(node)
        elif isinstance(node, yaml.MappingNode):
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


def _check_keys(node: yaml.MappingNode) -> None:
    """Keys are text, each given once; `<<` merges another mapping."""
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _Refused(key, "a list or a mapping cannot be a key; keys are names")
        if key.tag not in (TEXT, MERGE):
            raise _Refused(key, f"{shown(key.value)} as a key is not text; quote it if it is a name")
        _check_scalar(key)
    for key, count in Counter(key.value for key, _ in node.value if key.tag != MERGE).items():
        if count > 1:
            raise _Refused(node, f"{shown(key)} is given {count} times")


def _check_scalar(node: yaml.ScalarNode) -> None:
    """Refuse words that YAML's versions read differently: dates, yes and no, 010, 1:30, 1_000."""
    text = node.value
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Refused(node, "text holds half of a character pair, which no file can store") from None
    if node.tag.endswith(":bool") and text.lower() not in ("true", "false"):
        raise _Refused(node, f"{text} means true or false to some readers of YAML only; write that, or quote it")
    if node.style is not None or node.tag == MERGE:
        if node.tag in AMBIGUOUS:
            raise _Refused(node, f"{node.tag.replace('tag:yaml.org,2002:', '!!')} is not allowed; use text")
        return
    if node.tag.endswith(":timestamp"):
        raise _Refused(node, f"{text} would be read as a date; quote it: '{text}'")
    number = node.tag.endswith((":int", ":float"))
    if (number and re.search("[:_]", text)) or re.fullmatch(r"[-+]?0[0-9_]+", text):
        raise _Refused(node, f"{shown(text)} is not the same to all readers of YAML; write it plainly, or quote it")
    if number and len(text) > LONGEST_NUMBER:
        raise _Refused(node, f"a number of {len(text)} characters is too long; {LONGEST_NUMBER} are allowed")
