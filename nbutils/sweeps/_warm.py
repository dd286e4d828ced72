"""Importing this module does the slow imports that every kernel and every execution of a notebook repeats.

The server process of a sweep imports it once; kernels are forked from it and start warm.
"""

from __future__ import annotations

import os
import warnings
from importlib import import_module

from nbutils.support.code import code_digest
from nbutils.support.provenance import provenance
from nbutils.sweeps.lean import nbformat, without

MODULES = (
    "ipykernel.debugger",
    "ipykernel.ipkernel",
    "ipykernel.kernelapp",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "matplotlib_inline.config",
    "papermill",
    "psutil",  # with which a kernel looks for children when it ends
    "tornado.platform.asyncio",
)

# The server of processes tells users of children that it did not start itself, which a forked kernel is.
warnings.filterwarnings("ignore", message="forkserver: waitpid returned unexpected pid")
os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")  # matplotlib reads it when imported
with without("debugpy"):  # slow to import, and of no use without a person
    for _name in MODULES:
        import_module(_name)

nbformat.validate(nbformat.v4.new_notebook())  # compiles the schema
code_digest("nbutils.record")  # what every notebook uses; code that was read, digests and versions are remembered
provenance()
