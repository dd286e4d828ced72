"""Arguments of public functions against their type hints: a wrong one ends in one sentence, before anything is done.

What holds arrays is hinted `Any` and checked by `nbutils.support.checks`; all else says in its hint what it is.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, wraps
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from nbutils.support.checks import is_real, is_whole, shown

Checked = TypeVar("Checked", bound=Callable[..., Any])
LISTS = (Sequence, Collection, list)


def checked(function: Checked) -> Checked:
    """A function, or a class, that looks at its arguments before it does anything.

    Every argument must fit its type hint (:func:`fits`), down to every item of a list or a mapping. Hints are read at
    the first call, so that decorating costs nothing when a module is imported.

    Args:
        function: with type hints; of a class, those of its `__init__`.

    Returns:
        The same, with the check in front.

    Examples:
        >>> @checked
        ... def twice(word: str, times: int = 2) -> str:
        ...     return word * times
        >>> twice("ab")
        'abab'
        >>> twice("ab", times=1.5)
        Traceback (most recent call last):
        TypeError: twice(): times must be of type int, received 1.5
    """
    if inspect.isclass(function):
        function.__init__ = _checked(function.__init__, function.__name__)
        return function
    return _checked(function, function.__name__)


def _checked(function: Callable[..., Any], name: str) -> Any:
    @cache
    def expected() -> tuple[inspect.Signature, dict[str, Any]]:
        # Without what it returns, whose type may be imported for type checkers only.
        given = types.SimpleNamespace(
            __annotations__={k: v for k, v in function.__annotations__.items() if k != "return"}
        )
        hints = get_type_hints(given, inspect.unwrap(function).__globals__)
        return inspect.signature(function), {key: hint for key, hint in hints.items() if hint is not Any}

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        signature, hints = expected()
        try:
            given = signature.bind(*args, **options).arguments
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        for key, hint in hints.items():
            if key in given:
                several = signature.parameters[key].kind is inspect.Parameter.VAR_POSITIONAL
                hint = tuple[hint, ...] if several else hint
                if not fits(given[key], hint):
                    raise TypeError(f"{name}(): {key} must be of type {named(hint)}, received {received(given[key])}")
        return function(*args, **options)

    return call


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what a type hint says.

    Whole numbers and numbers may be NumPy's, and a whole number is a number; truth values are neither. A list is any
    sequence but text, also a tuple, an array of one dimension or a column of a table; a collection may
    be a set or the keys of a mapping, too. All items are looked at.

    Args:
        value: anything.
        hint: a class, a union, `Any`, a list (`Sequence`, `Collection`, `list`), a tuple or a mapping of such.

    Examples:
        >>> fits(["a", "b"], Sequence[str]), fits("ab", Sequence[str]), fits({"a": 1}, Mapping[str, float])
        (True, False, True)
        >>> fits(np.int64(3), float), fits(True, int), fits(None, int | None)
        (True, False, True)
    """
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if hint is int:
        return is_whole(value)
    if hint is float:
        return is_real(value)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if origin in LISTS or hint in LISTS:
        return _is_list(value, sets=Collection in (origin, hint)) and all(fits(item, parts[0]) for item in value)
    if origin is tuple:
        several = parts[-1] is Ellipsis
        if not isinstance(value, tuple) or not (several or len(value) == len(parts)):
            return False
        return all(fits(v, h) for v, h in zip(value, parts[:1] * len(value) if several else parts, strict=True))
    if origin in (Mapping, dict):
        return isinstance(value, origin) and all(fits(k, parts[0]) and fits(v, parts[1]) for k, v in value.items())
    if origin is not None or hint is Callable:
        return callable(value) if (origin or hint) is Callable else isinstance(value, origin)
    return isinstance(value, hint)


def _is_list(value: Any, sets: bool) -> bool:
    if isinstance(value, str | bytes | bytearray) or (isinstance(value, Mapping) and not sets):
        return False
    if hasattr(value, "ndim"):
        return value.ndim == 1
    return isinstance(value, Collection if sets else Sequence)


def named(hint: Any) -> str:
    """A type hint as a message shows it: as it is written, without modules.

    Examples:
        >>> named(Sequence[str] | None), named(Mapping[str, float])
        ('Sequence[str] | None', 'Mapping[str, float]')
    """
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", inspect.formatannotation(hint))


def received(value: Any) -> str:
    """A value in an error: tables and arrays by their shapes, lists and mappings that are long by their lengths.

    Examples:
        >>> received(np.zeros((3, 2))), received("no"), received([1] * 999), received([])
        ('ndarray of shape (3, 2)', "'no'", 'list of 999 items', '[]')
    """
    if hasattr(value, "shape") and not isinstance(value, np.generic | type):
        return f"{type(value).__name__} of shape {shown(tuple(value.shape))}"
    if isinstance(value, Collection) and not isinstance(value, str | bytes) and len(value) > 5:
        return f"{type(value).__name__} of {len(value)} items"
    return shown(value)
