"""Compiling ahead: where nothing was ever compiled, another process compiles what this one needs a little later.

numba keeps what it compiled on disk, so this is for the first use after an installation. The other process ends when it
is done, when this one ends for whatever reason, and after a minute; without it this process compiles all by itself.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from nbutils.support.machine import default_jobs

_STARTED: dict[str, subprocess.Popen[bytes]] = {}
# The thread reads from a pipe that the system closes when the process at its other end is gone.
_SCRIPT = """
import os, sys, threading
def end():
    os.read(0, 1)
    os._exit(1)
threading.Thread(target=end, daemon=True).start()
limit = threading.Timer(60, os._exit, (1,))
limit.daemon = True
limit.start()
sys.path[:] = {path!r}
from {module} import compile_now
compile_now()
"""


def compile_ahead(module: str, function: str) -> None:
    """Begin to call `compile_now` of a module of this package in another process, unless its function is compiled.

    Not where one process alone should compute, in workers, and where compiled code is kept neither beside the source
    nor in `NUMBA_CACHE_DIR`.
    """
    if module in _STARTED or default_jobs() < 2 or not sys.executable or hasattr(sys, "frozen"):
        return
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return
    if (workers := sys.modules.get("multiprocessing")) and workers.parent_process():
        return
    if is_compiled(module, function) is not False:
        return
    script = _SCRIPT.format(path=sys.path, module=module)
    with suppress(OSError):  # no room for another process
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        _STARTED[module] = process = subprocess.Popen([sys.executable, "-c", script], **pipes)
        atexit.register(_end, process)


def is_compiled(module: str, function: str) -> bool | None:
    """Whether a function was compiled since its module was last written; None where that cannot be told."""
    source = Path(__file__).parents[1].joinpath(*module.split(".")[1:]).with_suffix(".py")
    name = f"{source.stem}.{function}-*.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    with suppress(OSError):
        if chosen := os.environ.get("NUMBA_CACHE_DIR"):
            found = Path(chosen).glob(f"*/{name}")
        elif os.access(source.parent, os.W_OK):
            found = (source.parent / "__pycache__").glob(name)
        else:
            return None
        written = source.stat().st_mtime
        return any(file.stat().st_mtime >= written for file in found)
    return None


def wait_for_compiled(module: str) -> None:
    """Return when the other process has compiled, or has given up; at once where there is none."""
    if process := _STARTED.get(module):
        process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
