"""Names that every docstring example may use."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _example_names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["np"] = np
