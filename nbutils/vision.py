"""torchvision, also where its wheel was built for CUDA and PyTorch was not."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from nbutils.needs import needed_for

__all__ = ["torchvision_datasets"]


def torchvision_datasets() -> ModuleType:
    """The module `torchvision.datasets`.

    A torchvision that was built for CUDA describes operators that a CPU build of PyTorch lacks, and its import fails
    there, although data sets need none of them. These descriptions are left out while it is imported.

    Examples:
        >>> torchvision_datasets().MNIST.__name__
        'MNIST'
    """
    import torch

    describe = torch.library.register_fake

    def describe_if_there(operator: Any, *args: Any, **kwargs: Any) -> Any:
        if not str(operator).startswith("torchvision::"):
            return describe(operator, *args, **kwargs)

        def attempt(function: Callable[..., Any]) -> Callable[..., Any]:
            try:
                return describe(operator, *args, **kwargs)(function)
            except RuntimeError:
                return function

        return attempt

    torch.library.register_fake = describe_if_there
    try:
        with needed_for("this data set"):
            import torchvision.datasets
    finally:
        torch.library.register_fake = describe
    return torchvision.datasets
