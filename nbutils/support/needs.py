"""Which extra brings a package that is not installed: one sentence in place of Python's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# What `pip install nbutils` alone does not bring, by the name under which it is imported.
EXTRAS = {
    **dict.fromkeys(("mlxtend", "torchvision"), "data"),
    **dict.fromkeys(("IPython", "matplotlib", "seaborn"), "figures"),
    **dict.fromkeys(("dask", "distributed", "ipykernel", "jupyter_client"), "sweeps"),
    **dict.fromkeys(("nbconvert", "nbformat", "papermill"), "sweeps"),
}


class MissingExtraError(ModuleNotFoundError):
    """A package of an extra is not installed; says what needs it and which extra brings it."""


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Inside, the import of a package that belongs to an extra and is not there says which extra that is.

    Args:
        what: for what it is needed, as a user would call it.

    Raises:
        ModuleNotFoundError: a package is missing; one of no extra is named as Python names it.

    Examples:
        >>> with needed_for("this"):  # doctest: +ELLIPSIS
        ...     raise ModuleNotFoundError(name="seaborn.palettes")
        Traceback (most recent call last):
            ...
        nbutils.support.needs.MissingExtraError: this needs seaborn, ... pip install ".[figures]" in its folder
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        sentence = f'{what} needs {package}, which is not installed: pip install ".[{EXTRAS[package]}]" in its folder'
        raise MissingExtraError(sentence, name=error.name) from None
