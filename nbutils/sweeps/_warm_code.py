"""Importing this module reads all code of the package, whose digests are then remembered.

The server process of a sweep imports it once, if a notebook computes with more than it takes to record a number.
"""

from __future__ import annotations

import nbutils
from nbutils.support.code import code_digest

code_digest(*(f"nbutils.{name}" for name in nbutils.__all__))
