"""Parameters that are checked as one: what is wrong with them is said in sentences, not in pydantic's paragraphs."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from nbutils.support.text import shown


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
