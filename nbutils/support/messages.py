"""Words in messages: on one line, not too long, with everything spelt out that would act on a terminal.

Wrong parameters of pydantic models end in sentences, too, not in its paragraphs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

LONGEST_VALUE, LONGEST = 60, 100  # characters of a received value, and of any other part of a message
LONGEST_LINE = 2000

# Control signs, signs that turn the direction of text, halves of character pairs, ends of lines and paragraphs.
ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
JOINERS = "\u200c\u200d"  # part of words in some scripts, and of some emoji


def shown(value: object, most: int = LONGEST_VALUE) -> str:
    """A received value as a message shows it.

    Examples:
        >>> shown("ab"), len(shown("x" * 10_000))
        ("'ab'", 60)
    """
    try:
        text = repr(value)
    except Exception:  # such as of a whole number with more than 4,300 digits
        text = f"a value of type {type(value).__name__}"
    return cut(" ".join(text.split()), most)


def cut(text: object, most: int = LONGEST) -> str:
    """A text on one line, cut off where it is long.

    Examples:
        >>> cut("short"), cut("\\x1b[2J"), cut("long", most=3)
        ('short', '\\\\x1b[2J', 'lo…')
    """
    text = "".join(ascii(sign)[1:-1] if _acts(sign) else sign for sign in str(text))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the nearest spelling, or nothing.

    Examples:
        >>> nearest("sedes", ["seeds", "epochs"])
        " (did you mean 'seeds'?)"
    """
    near = get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def is_plain(text: str) -> bool:
    """Whether a text can be printed as it is, on one line.

    Examples:
        >>> is_plain("my pictures/é 日本"), is_plain("a\\nb"), is_plain("\\x1b[2J")
        (True, False, False)
    """
    return not any(map(_acts, text))


def told(message: object, most: int = LONGEST_LINE) -> str:
    """Several lines for a terminal, each cut off where it is long.

    Examples:
        >>> told("first\\nsecond \\x1b[2J"), len(told("x" * 100_000))
        ('first\\nsecond \\\\x1b[2J', 2000)
    """
    return "\n".join(cut(line, most) for line in str(message).split("\n"))


def _acts(sign: str) -> bool:
    return unicodedata.category(sign) in ACTING and sign not in JOINERS


class Parameters(BaseModel):
    """A pydantic model whose wrong values end in one sentence.

    Raises:
        ValueError: values are missing, unknown, or wrong; names each and what was received.

    Examples:
        >>> class Length(Parameters):
        ...     metres: float
        >>> Length(metres="long")
        Traceback (most recent call last):
        ValueError: metres: input should be a valid number, unable to parse string as a number, received 'long'
    """

    def __init__(self, /, **values: Any) -> None:
        plain = {name: v.item() if type(v).__module__ == "numpy" and not v.shape else v for name, v in values.items()}
        try:
            super().__init__(**plain)
        except ValidationError as error:
            raise ValueError(one_sentence(error)) from None


def one_sentence(error: ValidationError) -> str:
    """What pydantic found wrong, as one sentence that names each argument and what was received."""
    return "; ".join(sentences(error))


def sentences(error: ValidationError) -> list[str]:
    """What pydantic found wrong, one sentence per argument."""
    parts, items = [], error.errors()
    numbers = {item["loc"][:-1] for item in items if item["loc"][1:] and item["loc"][-1] == "float"}
    for item in items:
        where = item["loc"]
        if where[:-1] in numbers and where[-1] in ("int", "float"):  # of "a number", said once
            if where[-1] == "int":
                continue
            where = where[:-1]
        name = ".".join(str(part) for part in where)
        message = item["msg"].removeprefix("Value error, ")
        if "received" not in message and name:
            message = f"{message[0].lower()}{message[1:]}, received {shown(item['input'])}"
        parts.append(message if message.startswith(name) else f"{name}: {message}")
    return parts
