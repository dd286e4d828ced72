"""This machine: how many jobs and threads it bears, its processor, and portable mode.

Portable mode gives the same bits on every x86-64 processor with AVX2 and FMA, at the price of speed. The libraries
under PyTorch and NumPy choose their instructions by processor, and sums of another width round
differently. With `NBUTILS_PORTABLE=1` they are told to choose alike everywhere. They read these settings while they
load, so the mode is set for a whole process: `python -m nbutils portable` prints the settings for any other command, as
in `env $(python -m nbutils portable) jupyter lab`.

This module imports nothing that portable mode has to come before.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

JOBS_VARIABLE = "NBUTILS_JOBS"
THREADS = "nbutils-compute"
# What a job is told about its share of the cores: compute threads, and jobs that it may start itself.
SHARE_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", JOBS_VARIABLE)


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_jobs() -> int:
    """How many jobs to run at once: this process's share of the machine (`NBUTILS_JOBS`), else one per usable core."""
    share = os.environ.get(JOBS_VARIABLE, "")
    return int(share) if share.isascii() and share.isdigit() and int(share) > 0 else usable_cores()


def threads_each(jobs: int) -> int:
    """Compute threads for each of some jobs, so that together they do not exceed the cores.

    Examples:
        >>> threads_each(10_000)
        1
    """
    return max(1, default_jobs() // jobs)


def compute_threads() -> int:
    """Threads that this process computes with: `OMP_NUM_THREADS`, as for PyTorch, else one per usable core."""
    share = os.environ.get("OMP_NUM_THREADS", "")
    return int(share) if share.isascii() and share.isdigit() and int(share) > 0 else usable_cores()


def in_threads(function: Callable[[Any], Any], items: Sequence[Any], worth: bool = True) -> list[Any]:
    """Results of a function that releases the GIL, in the order of the items, computed in several threads.

    A function that is itself run in such a thread computes in that one alone, and so does work that is not `worth` it:
    starting threads takes about a millisecond.

    Examples:
        >>> in_threads(abs, [-2, 1])
        [2, 1]
    """
    threads = min(compute_threads(), len(items))
    if threads <= 1 or not worth or threading.current_thread().name.startswith(THREADS):
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads, thread_name_prefix=THREADS) as pool:
        return list(pool.map(function, items))


SWITCH = "NBUTILS_PORTABLE"
NEEDED = ("avx2", "fma")
# Instruction sets by which numerical libraries choose their code, under the names that Linux gives them.
FEATURES = (
    *("sse4_2", "avx", "f16c", "fma", "avx2", "avx_vnni", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"),
    *("avx512_bf16", "avx512_fp16", "amx_tile", "asimd", "asimddp", "bf16", "sve", "sve2"),
)


def is_portable() -> bool:
    """Whether this process computes in portable mode.

    Raises:
        ValueError: `NBUTILS_PORTABLE` is neither 0 nor 1.
    """
    switch = os.environ.get(SWITCH, "")
    if switch not in ("", "0", "1"):
        raise ValueError(f"{SWITCH} must be 1 (on) or 0 (off), received {switch!r}")
    return switch == "1"


@cache
def settings() -> dict[str, str]:
    """Environment variables of portable mode.

    MKL takes one code path for processors of all makers; ATen, oneDNN and OpenBLAS that of AVX2; NumPy that of every
    processor.

    Examples:
        >>> settings()["MKL_CBWR"]
        'COMPATIBLE'
    """
    from importlib.metadata import version  # slow, and needed in this mode only

    numpy = tuple(int(part) for part in version("numpy").split(".")[:2])
    wide = "X86_V3,X86_V4" if numpy >= (2, 4) else "AVX2,FMA3,AVX512F,AVX512CD,AVX512_SKX"
    return {
        "MKL_CBWR": "COMPATIBLE",
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": f"{wide},AVX512_ICL,AVX512_SPR",
    }


def limits() -> dict[str, str]:
    """Variables set here, by portable mode or by hand, that keep libraries from some instruction sets."""
    return {name: os.environ[name] for name in (*settings(), "MKL_ENABLE_INSTRUCTIONS") if name in os.environ}


def start_portable() -> None:
    """In portable mode, put the settings into this process's environment, for the libraries that it is going to load.

    Raises:
        ValueError: `NBUTILS_PORTABLE` is neither 0 nor 1.
        RuntimeError: it is too late, a setting contradicts, or the processor has no AVX2.
        SystemExit: either of them, on the command line.
    """
    try:
        if is_portable():
            _set()
    except (RuntimeError, ValueError) as error:
        if sys.argv[:1] == ["-m"]:  # what Python puts there while `python -m nbutils` loads the package
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(2) from None
        raise


def _set() -> None:
    for name, value in settings().items():
        if (found := os.environ.get(name, value)) != value:
            raise RuntimeError(f"{SWITCH}=1 needs {name}={value}, but {name} is {found!r}; unset one of the two")
    missing = {name: value for name, value in settings().items() if name not in os.environ}
    loaded = [name for name in ("numpy", "torch") if name in sys.modules]
    if missing and loaded:
        raise RuntimeError(
            f"{SWITCH}=1 must come before {loaded[0]} is imported: import nbutils first, or start with "
            "env $(python -m nbutils portable) and then your command"
        )
    if not set(NEEDED) <= set(processor_features()):
        raise RuntimeError(f"{SWITCH}=1 needs Linux on an x86-64 processor with {' and '.join(NEEDED)}, not found here")
    os.environ.update(missing)


@cache
def processor() -> str:
    """Maker's name of this processor, with family, model and stepping where Linux tells them.

    Examples:
        >>> bool(processor())
        True
    """
    facts = _facts()
    name = facts.get("model name") or platform.processor() or platform.machine()
    numbers = [facts[key] for key in ("cpu family", "model", "stepping") if key in facts]
    return f"{name} ({'/'.join(numbers)})" if numbers else name


@cache
def processor_features() -> tuple[str, ...]:
    """Instruction sets of this processor that numerical libraries ask for; empty where the system does not tell."""
    facts = _facts()
    present = set((facts.get("flags") or facts.get("Features") or "").split())
    return tuple(name for name in FEATURES if name in present)


@cache
def _facts() -> dict[str, str]:
    """What Linux says about the first processor."""
    try:
        first = Path("/proc/cpuinfo").read_text("utf-8", "replace").partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}
