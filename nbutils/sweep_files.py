"""The YAML file that declares a sweep: what it may say, read without YAML's traps."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nbutils.grids import Range
from nbutils.parameters import nearest, one_sentence, sentences

__all__ = ["SweepFile", "raise_mistakes", "read_sweep_file"]


def _axis(given: Any) -> list[Any] | Range:
    if isinstance(given, list):
        return given
    if not isinstance(given, dict):
        raise ValueError(f"must be a list or a range such as {{from: 1, to: 9, step: 2}}, received {given!r}")
    try:
        return Range.model_validate(given)
    except ValidationError as error:
        raise ValueError(f"{one_sentence(error)}, received {given!r}") from None


def _seed_axis(given: Any) -> list[Any] | Range:
    if isinstance(given, int) and not isinstance(given, bool):
        if given < 1:
            raise ValueError(f"must be at least 1, received {given!r}")
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
    timeout: Annotated[int | float, Field(gt=0)] | None = None


class _Loader(yaml.SafeLoader):
    """YAML without its two classic traps: keys given twice, and 1e-3 read as text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(key.value for key, _ in node.value)
        for key, count in keys.items():
            if count > 1 and key != "<<":
                raise yaml.constructor.ConstructorError(None, None, f"{key!r} is given {count} times", node.start_mark)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+"), list("-+.0123456789")
)


def read_sweep_file(path: Path) -> SweepFile:
    """Read a sweep file.

    Raises:
        ValueError: it is not YAML, or says what no sweep file may say; all mistakes at once.
    """
    try:
        content = yaml.load(path.read_text("utf-8"), _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} must be a mapping with 'notebook' and 'grid', received {type(content).__name__}")
    fields = list(SweepFile.model_fields)
    unknown = [key for key in content if key not in fields]
    mistakes = [f"unknown key {key!r}{nearest(str(key), fields)}; a sweep has {', '.join(fields)}" for key in unknown]
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
        raise ValueError(f"{count} in {path.name}:\n- " + "\n- ".join(mistakes))
