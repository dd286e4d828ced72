"""Importing this module does the slow imports that every kernel and every execution of a notebook repeats.

The server process of a sweep imports it once; kernels are forked from it and start warm.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from nbutils.executions import notebook_code
from nbutils.provenance import provenance

__all__ = ["MODULES"]

MODULES = (
    "ipykernel.debugger",
    "ipykernel.ipkernel",
    "ipykernel.kernelapp",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "matplotlib_inline.config",
    "nbformat",
    "papermill",
    "tornado.platform.asyncio",
)

os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # matplotlib reads it when imported
_no_debugger = "debugpy" not in sys.modules
if _no_debugger:
    sys.modules["debugpy"] = None  # type: ignore[assignment]  # slow to import, and of no use without a person
for _name in MODULES:
    import_module(_name)
if _no_debugger:
    del sys.modules["debugpy"]

import_module("nbformat").validate(import_module("nbformat").v4.new_notebook())  # compiles the schema
notebook_code()  # so are digests and versions, which are remembered
provenance()
