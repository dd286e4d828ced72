"""Every code path of the compiled loops, on one machine: features of the processor are switched off, counts stay."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_features

from nbutils import activation_pattern_graph
from nbutils.cofiring import cofiring_counts, count_histogram, pack_firing, pairs_from
from nbutils.communities import detect_communities
from nbutils.counter import CofiringCounter
from nbutils.graphs import graph_in_blocks
from nbutils.nulls import circular_shift_null, within_class_null
from nbutils.support import loops

needs_x86 = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="the names of processors are those of x86-64"
)
# As numba is told to compile for them: none can count the ones of a vector of words in one instruction.
AVX2 = "+sse4.2,+avx,+avx2,+popcnt,+bmi,+bmi2,+fma"
PROCESSORS = {
    "skylake-avx512": f"{AVX2},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
    "haswell": AVX2,
    "x86-64": "",
}
NEURONS = (1, 63, 64, 65)
# Words and groups of words end among these: counts of 31 words, 1,984 examples, fit a byte, those of 32, 2,048, do not.
EXAMPLES = (1, 63, 64, 65, 1984, 1985, 2048, 4100)


def cases(examples: tuple[int, ...] = EXAMPLES, neurons: tuple[int, ...] = NEURONS) -> dict[str, np.ndarray]:
    """Activation pattern matrices that are random, empty, full, full but for one, and of neurons that alternate."""
    rng, found = np.random.default_rng(5), {}
    for many in examples:
        for wide in neurons:
            almost = np.ones((many, wide), bool)
            almost[many // 2, wide // 2] = False
            kinds = {
                "random": rng.random((many, wide)) < 0.3,
                "zeros": np.zeros((many, wide), bool),
                "ones": np.ones((many, wide), bool),
                "almost": almost,
                "stripes": (np.arange(many)[:, None] + np.arange(wide)) % 2 == 0,
            }
            found |= {f"{kind} {many}x{wide}": fired for kind, fired in kinds.items()}
    return found


def digest(*arrays: np.ndarray) -> str:
    """Of kinds, shapes and bytes."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.dtype.str} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def counted(fired: np.ndarray) -> dict[str, str]:
    """What the counting functions give."""
    counts, packed = cofiring_counts(fired), pack_firing(fired)
    counter = CofiringCounter()
    for part in np.array_split(fired, min(3, len(fired))):
        counter.update(part)
    half = max(1, int(counts.max()) // 2)
    return {
        "counts": digest(counts),
        "histogram": digest(count_histogram(packed)),
        "pairs": digest(*pairs_from(packed, half)),
        "heaviest": digest(*pairs_from(packed, max(1, int(counts.max())))),
        "counter": digest(np.asarray(counter.counts(), np.int64)),
    }


def built(fired: np.ndarray) -> dict[str, str]:
    """What graphs, null models and the search for communities give."""
    rng, labels = np.random.default_rng(1), np.arange(len(fired)) % 3
    graph = activation_pattern_graph(fired, 0.2)
    blocks = graph_in_blocks(fired, 0.2, blocks=3)
    found = detect_communities(graph)
    return {
        "graph": digest(graph.indptr, graph.indices, graph.data),
        "blocks": digest(blocks.indptr, blocks.indices, blocks.data),
        "communities": digest(np.asarray(found.seed_labels), np.asarray(found.labels), np.float64(found.modularity)),
        "shifted": digest(pack_firing(circular_shift_null(fired, rng)).words),
        "shuffled": digest(pack_firing(within_class_null(fired, labels, rng)).words),
    }


def planted() -> np.ndarray:
    """150 neurons in five groups that fire together, over 2,050 examples."""
    rng = np.random.default_rng(2)
    events, groups = rng.random((2_050, 5)) < 0.1, np.arange(150) % 5
    return (events[:, groups] & (rng.random((2_050, 150)) < 0.6)) | (rng.random((2_050, 150)) < 0.03)


def reference(fired: np.ndarray) -> dict[str, str]:
    """The same counts by whole numbers in NumPy."""
    whole = fired.astype(np.int64)
    counts = whole.T @ whole
    i, j = np.triu_indices(fired.shape[1], 1)
    pairs = counts[i, j]

    def heavy(threshold: int) -> str:
        kept = pairs >= max(1, threshold)
        return digest(i[kept].astype(np.int32), j[kept].astype(np.int32), pairs[kept].astype(np.uint32))

    return {
        "counts": digest(counts.astype(np.int32)),
        "histogram": digest(np.bincount(pairs, minlength=len(fired) + 1)),
        "pairs": heavy(int(counts.max()) // 2),
        "heaviest": heavy(int(counts.max())),
        "counter": digest(counts),
    }


def elsewhere(kind: str, work: str, folder: Path) -> dict:
    """What a process finds whose compiled code is made for another processor, and which path it took."""
    features = PROCESSORS[kind]
    if missing := set(features.split(",")) - {""} - set(get_host_cpu_features().flatten().split(",")):
        pytest.skip(f"this processor lacks {', '.join(sorted(missing))}")
    script = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_code_paths as here
from nbutils.support import loops
print(json.dumps([loops.PATH, {work}]))
"""
    surroundings = os.environ | {
        "NUMBA_CPU_NAME": kind,
        "NUMBA_CPU_FEATURES": features,
        "NUMBA_CACHE_DIR": str(folder / kind),
    }
    done = subprocess.run([sys.executable, "-c", script], env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]
    path, found = json.loads(done.stdout)
    assert path == "bytes in vectors", "none of them has AVX-512 VPOPCNTDQ"
    return found


def test_the_path_follows_from_the_processor():
    expected = "words of 64 bits in vectors" if "+avx512vpopcntdq" in loops.FEATURES.split(",") else "bytes in vectors"
    assert expected == loops.PATH


def test_this_processor_counts_like_whole_numbers_in_numpy():
    for name, fired in cases().items():
        assert counted(fired) == reference(fired), name


@needs_x86
@pytest.mark.slow(6)
def test_counts_are_the_same_where_no_feature_may_be_used(tmp_path):
    """The sizes at which words and groups of words end, on the processor that has the least."""
    work = "{name: here.digest(here.cofiring_counts(fired)) for name, fired in here.cases((65, 1985, 2048)).items()}"
    found = elsewhere("x86-64", work, tmp_path)
    assert found == {name: reference(fired)["counts"] for name, fired in cases((65, 1985, 2048)).items()}


@needs_x86
@pytest.mark.release
@pytest.mark.slow(30)
@pytest.mark.parametrize("kind", PROCESSORS)
def test_every_path_gives_the_same_bits(kind, tmp_path):
    work = "[{name: here.counted(fired) for name, fired in here.cases().items()}, here.built(here.planted())]"
    counts, graphs = elsewhere(kind, work, tmp_path)
    assert counts == {name: reference(fired) for name, fired in cases().items()}
    assert graphs == built(planted())
