"""Which processor figures are of: its maker's name and what it can do, never the name or the paths of a machine."""

from __future__ import annotations

import re

from llvmlite.binding import get_host_cpu_name
from numba import config

from nbutils.support import loops, machine

# Of llvmlite's names of features, those that counting and arithmetic ask for.
ASKED = "popcnt", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512vpopcntdq", "neon", "sve", "sve2"
WIDEST = {
    "avx512f": "avx512",
    "avx2": "avx2",
    "avx": "avx",
    "sve2": "sve2",
    "sve": "sve",
    "neon": "neon",
}  # best first
MARKS = r"\((?:r|tm|c)\)|@.*|\d+-core|\b(?:cpu|processor|with .*)\b"  # of makers' names: they tell nothing more


def features() -> tuple[str, ...]:
    """Features that compiled code here is made for: this processor's, or fewer if `NUMBA_CPU_FEATURES` says so."""
    present = set(loops.FEATURES.split(","))
    return tuple(name for name in ASKED if f"+{name}" in present)


def kind() -> str:
    """The kind of processor as compilers call it, such as `znver4` or `haswell`."""
    return config.CPU_NAME or get_host_cpu_name()


def about() -> dict[str, str]:
    """The processor's name, its features, and the path that counting takes on it."""
    name = f"{machine.processor()}, {kind()}"
    return {"processor": name, "features": " ".join(features()), "path": loops.PATH}


def slug(name: str, kind: str, features: tuple[str, ...]) -> str:
    """A name for files: of lower-case letters, digits and dashes only, and at most 80 of them.

    Args:
        name: its maker's name, as the system tells it; what stands in brackets at the end is left out.
        kind: see :func:`kind`.
        features: see :func:`features`; the widest vectors among them are named.

    Examples:
        >>> slug("AMD EPYC (25/17/1)", "znver4", ("avx2", "avx512f"))
        'amd-epyc-znver4-avx512'
        >>> slug("Intel(R) Xeon(R) CPU @ 2.20GHz (6/79/0)", "broadwell", ("avx", "avx2"))
        'intel-xeon-broadwell-avx2'
        >>> slug("aarch64", "neoverse-n1", ("neon",))
        'aarch64-neoverse-n1-neon'
    """
    plain = re.sub(MARKS, " ", re.sub(r"\([\d/]*\)$", "", name.lower()))
    widest = next((short for long, short in WIDEST.items() if long in features), "plain")
    return re.sub(r"[^a-z0-9]+", "-", f"{plain} {kind} {widest}".lower()).strip("-")[:80].strip("-")
