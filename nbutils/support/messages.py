"""Parameters that are checked as one: what is wrong with them is said in sentences, not in pydantic's paragraphs.

Text for a terminal: what would act on it is spelt out."""

from __future__ import annotations

import unicodedata
from typing import Any

from pydantic import BaseModel, ValidationError

LONGEST = 100  # characters of a received value in a message


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
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ValueError(one_sentence(error)) from None


def shown(value: Any) -> str:
    """A received value as a message shows it: cut off where it is long.

    Examples:
        >>> shown("ab"), len(shown("x" * 10_000))
        ("'ab'", 100)
    """
    try:
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python prints
        return "a number of thousands of digits"
    return cut(text)


def cut(text: Any, longest: int = LONGEST) -> str:
    """A text, cut off where it is long; what would act on a terminal is spelt out.

    Examples:
        >>> cut("short"), cut("\\x1b[2J")
        ('short', '\\\\x1b[2J')
    """
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(text))
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


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


LONGEST = 2000  # characters of a line of a message

# Control signs, signs that turn the direction of text, halves of character pairs, ends of lines and paragraphs.
ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
JOINERS = "\u200c\u200d"  # part of words in some scripts, and of some emoji


def is_plain(text: str) -> bool:
    """Whether a text can be printed as it is, on one line.

    Examples:
        >>> is_plain("my pictures/é 日本"), is_plain("a\\nb"), is_plain("\\x1b[2J")
        (True, False, False)
    """
    return not any(map(_acts, text))


def plain(text: str) -> str:
    """A text with everything spelt out that would act on a terminal, but for ends of lines.

    Examples:
        >>> plain("first\\nsecond \\x1b[2J")
        'first\\nsecond \\\\x1b[2J'
    """
    return "".join(ascii(sign)[1:-1] if sign != "\n" and _acts(sign) else sign for sign in text)


def told(message: object) -> str:
    """A message as :func:`plain` text, each line cut off where it is long.

    Examples:
        >>> told(ValueError("short")), len(told("x" * 100_000))
        ('short', 2000)
    """
    lines = plain(str(message)).splitlines()
    return "\n".join(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in lines)


def _acts(sign: str) -> bool:
    return unicodedata.category(sign) in ACTING and sign not in JOINERS
