"""Text for a terminal: what would act on it is spelt out."""

from __future__ import annotations

import unicodedata

__all__ = ["is_plain", "plain", "told"]

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
