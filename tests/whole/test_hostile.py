"""Every public function that takes arrays or graphs, with arguments that nobody should pass.

What may come out: a defined value, or one sentence in a ValueError or TypeError that names the argument and was written
here. Nothing may crash, hang, warn, or take nonsense for numbers. The normal run tries a few cases of each argument,
always the same ones; NBUTILS_HOSTILE=200 tries 200 new ones of each function, see CONTRIBUTING.md.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import nbutils
from nbutils.measures import MeasureSpec
from nbutils.study.specifications import specifications

CASES = int(os.environ.get("NBUTILS_HOSTILE", "0"))
SECONDS = 120  # that no case may take, even on a machine that is busy with others
RNG = np.random.default_rng(5)
FIRED, CLASSES, LAYERS = RNG.random((40, 12)) < 0.3, np.arange(40) % 4, np.repeat([1, 2, 3], 4)
ACTIVE = np.maximum(RNG.standard_normal((40, 12)), 0)
WEIGHTS = np.triu(RNG.integers(0, 5, (12, 12)), 1).astype(float)
GRAPH, GROUPS = WEIGHTS + WEIGHTS.T, np.arange(12) % 3
GROUPINGS = np.stack([GROUPS, np.roll(GROUPS, 1), GROUPS])
SERIES, OTHER, TIME, RUNS = RNG.random(10), RNG.random(10), np.arange(10.0), RNG.random((4, 6))
LEVELS, QUICK = np.repeat([0.0, 0.1, 0.2, 0.3, 0.4], 2), MeasureSpec(seeds=1, null_draws=1)
COLUMN = pd.DataFrame({specifications()[0].label: SERIES})
FIRING = {"fired": FIRED}
LABELLED = FIRING | {"labels": CLASSES}
ACTIVATIONS = {"activations": ACTIVE}
SIGNED = {"preactivations": ACTIVE - 0.5}
PAIR = {"x": SERIES, "y": OTHER}
TWO = {"before": GROUPS, "after": np.roll(GROUPS, 1), "minimum": 0.3}
RANKED = {"measure": SERIES, "performance": OTHER, "axes": {"width": np.arange(10) % 2, "rate": np.arange(10) // 5}}
EVENTS = TWO | {"change": 0.1}

# A call of each function that works; one or two of its arguments are then replaced.
GOOD: dict[str, dict[str, Any]] = {
    "CofiringCounter": {"neurons": 12, "classes": 4},
    "active_entropy": {"counts": np.ones((5, 12))},
    "added_variance": {"performance": SERIES, "baselines": RUNS.T[:, :2].repeat(2, 0)[:10], "measure": OTHER}
    | {"configuration": TIME, "rng": 0, "folds": 2, "repeats": 1, "level": 0.9, "draws": 30},
    "activation_histogram": ACTIVATIONS | {"bins": 5},
    "activation_pattern_graph": FIRING | {"density": 0.2, "device": "cpu"},
    "against_chance": EVENTS | {"rng": 0, "draws": 3},
    "alluvial": {"tracked": GROUPINGS, "epochs": [0, 1, 2], "shown": [0, 2], "names": {0: "a"}},
    "selective_for": LABELLED | {"communities": GROUPS},
    "balanced_indices": {"labels": CLASSES, "size": 8},
    "between_conditions": {"measure": SERIES, "accuracy": OTHER, "condition": LEVELS, "rng": 0}
    | {"alternative": "greater", "draws": 30, "level": 0.9},
    "between_searches": {"seed_labels": GROUPINGS, "minimum": 0.3, "change": 0.1},
    "binned_entropy": ACTIVATIONS | {"bins": 5},
    "block_entropy": FIRING | {"block": 3, "seed": 0, "blocks": 4, "correction": None},
    "bootstrap_interval": {"values": SERIES, "rng": 0, "level": 0.9, "draws": 30},
    "circular_shift_null": FIRING | {"rng": 0},
    "class_agreement": LABELLED | {"communities": GROUPS},
    "class_cells": {"labels": CLASSES, "predicted": np.roll(CLASSES, 1)},
    "class_conditional_entropy": LABELLED | {"correction": None},
    "class_means": ACTIVATIONS | {"labels": CLASSES},
    "class_selectivity": {"means": ACTIVE},
    "cofiring_counts": FIRING | {"device": "cpu"},
    "cluster_correlation": {"measure": SERIES, "performance": OTHER, "configuration": LEVELS, "rng": 0}
    | {"level": 0.9, "draws": 30},
    "community_events": EVENTS,
    "compare_partitions": EVENTS,
    "conditional_information": RANKED | {"given": 2},
    "consensus_partition": {"seed_labels": GROUPINGS},
    "correlation": PAIR | {"method": "pearson"},
    "correlation_test": {"r": 0.4, "pairs": 10, "level": 0.9},
    "curve_test": {"values": COLUMN, "accuracies": OTHER, "noise": LEVELS, "rng": 0, "permutations": 20},
    "dead_share": FIRING,
    "detect_communities": {"graph": GRAPH, "resolution": 1.0, "seeds": 2},
    "detrended_correlation": PAIR | {"trend": TIME},
    "difference_correlation": PAIR | {"method": "pearson"},
    "disparity_graph": FIRING | {"alpha": 0.5, "density": 0.2},
    "effective_rank": ACTIVATIONS,
    "effective_sample_size": PAIR | {"lags": 2, "method": "pyper-peterman"},
    "equivalence_test": {"values": SERIES, "bound": 0.5, "level": 0.9},
    "evaluate": {"specification": specifications()[0]} | ACTIVATIONS | {"labels": CLASSES, "layers": LAYERS},
    "evaluate_all": ACTIVATIONS
    | {"labels": CLASSES, "layers": LAYERS, "histogram": np.ones((10, 12), int), "chosen": specifications()[:2]},
    "firing": ACTIVATIONS | {"rule": "top:0.2"},
    "firing_entropy": FIRING | {"correction": None},
    "flexibility": {"tracked": GROUPINGS},
    "granulated_kendall": RANKED | {"slack": 0},
    "graph_from_counts": {"counts": GRAPH, "density": 0.3},
    "graph_from_pairs": {"neurons": 4, "rows": [0, 1], "columns": [2, 3], "weights": [1.0, 2.0]},
    "graph_in_blocks": FIRING | {"density": 0.3, "jobs": 1, "blocks": 2},
    "half_probe_reliability": {"first": SERIES, "second": OTHER, "span": 2.0, "least": 0.8, "share": 0.05},
    "holm": {"p_values": [0.1, 0.2, 0.3]},
    "intraclass_correlation": {"ratings": RUNS},
    "kendall": {"measure": SERIES, "performance": OTHER},
    "layered_graph": FIRING | {"layers": LAYERS, "density": 0.3},
    "layer_spread": SIGNED | {"labels": CLASSES, "layers": LAYERS, "top": 2},
    "left_out_rise": {"series": RUNS, "window": 3},
    "linear_probe": ACTIVATIONS | {"labels": CLASSES, "folds": 2, "seed": 0},
    "manifold_geometry": ACTIVATIONS | {"labels": CLASSES, "directions": 4, "examples": 3, "seed": 0},
    "measure_communities": FIRING | {"spec": QUICK},
    "measure_entropies": LABELLED | {"last_layer": LAYERS == 3},
    "measure_active": LABELLED | {"rng": 0, "spec": QUICK},
    "measure_matched": FIRING | {"groups": CLASSES, "rng": 0, "neurons": 8, "spec": QUICK, "draws": 2},
    "measure_nulls": LABELLED | {"rng": 0, "spec": QUICK},
    "modularity": {"graph": GRAPH, "labels": GROUPS, "resolution": 1.0},
    "mutual_information": LABELLED | {"correction": None},
    "neural_collapse": ACTIVATIONS | {"labels": CLASSES},
    "neuron_spread": SIGNED | {"labels": CLASSES, "top": 3},
    "null_effects": {"values": COLUMN, "accuracies": OTHER, "noise": LEVELS, "draws": 20},
    "paper_graph": LABELLED | {"layers": LAYERS, "keep": 0.5},
    "partial_correlation": PAIR | {"given": TIME},
    "participation_ratio": ACTIVATIONS,
    "pattern_entropy": FIRING | {"correction": None},
    "pearson_graph": ACTIVATIONS | {"density": 0.2, "neighbours": 2},
    "phi_graph": FIRING | {"density": 0.2, "neighbours": 2},
    "ppmi_graph": FIRING | {"density": 0.2},
    "probe_indices": {"labels": CLASSES, "size": 8},
    "record": {"name": "x", "value": 1.0, "unit": "s", "low": 0.5, "high": 2.0},
    "released_entropy": ACTIVATIONS | {"bins": 4},
    "released_graph": ACTIVATIONS | {"labels": CLASSES, "layers": LAYERS, "keep": 0.5},
    "residual_correlation": {"measures": RUNS, "accuracies": RUNS[::-1], "rng": 0}
    | {"method": "pearson", "level": 0.9, "permutations": 30},
    "saturating_curve": {"time": TIME, "constant": 3.0},
    "search_alone": FIRING | {"density": 0.3, "seeds": 1, "repeats": 2},
    "session_permutation": {"measures": RUNS, "accuracies": RUNS[::-1], "rng": 0}
    | {"method": "pearson", "alternative": "less", "permutations": 30},
    "shuffled_classes": LABELLED | {"communities": GROUPS, "rng": 0, "draws": 2},
    "sign_errors": RANKED | {"noise": 0.1, "direction": 1, "slack": 0, "least": 1},
    "sign_flip": {"differences": SERIES, "rng": 0, "alternative": "less", "flips": 50},
    "specification_table": {"values": COLUMN, "accuracies": OTHER, "noise": LEVELS, "draws": 20},
    "subclass_selectivity": SIGNED | {"subclasses": CLASSES, "labels": CLASSES // 2, "top": 3},
    "subclass_silhouette": ACTIVATIONS | {"subclasses": CLASSES, "labels": CLASSES // 2, "layers": LAYERS, "top": 2},
    "t_interval": {"values": SERIES, "level": 0.9},
    "to_networkx": {"graph": GRAPH},
    "total_correlation": FIRING | {"block": 3, "seed": 0, "blocks": 4, "correction": None},
    "track_communities": {"partitions": GROUPINGS, "minimum": 0.3},
    "turning_point": {"values": SERIES, "epochs": TIME, "window": 3},
    "two_way_residuals": {"table": RUNS},
    "unique_share": FIRING,
    "well_defined_communities": {"graph": GRAPH, "labels": GROUPS},
    "when_reached": {"levels": SERIES, "values": OTHER, "targets": [0.2, 0.4]},
    "within_class_null": LABELLED | {"rng": 0},
    "within_layer_graph": FIRING | {"layers": LAYERS, "density": 0.3},
}
# Arguments for which a NaN, an infinity, a complex number or text has a meaning, or that may be left out.
NAN_IS_KNOWN = {
    ("holm", "p_values"),
    ("correlation_test", "r"),
    ("record", "value"),
    ("record", "low"),
    ("record", "high"),
}
NAN_IS_KNOWN |= {
    ("when_reached", "targets"),
    ("graph_from_counts", "counts"),
    ("record", "unit"),
    ("alluvial", "names"),
}
TEXT_IS_KNOWN = {("added_variance", "configuration"), ("cluster_correlation", "configuration")}
TEXT_IS_KNOWN |= {("between_conditions", "condition"), ("record", "name"), ("record", "value"), ("record", "unit")}
# Results that may be NaN, as their docstrings say.
MAY_BE_NAN = {"against_chance", "between_searches", "bootstrap_interval", "compare_partitions", "correlation", "holm"}
MAY_BE_NAN |= {"correlation_test", "detrended_correlation", "difference_correlation", "flexibility", "left_out_rise"}
MAY_BE_NAN |= {"measure_nulls", "partial_correlation", "search_alone", "shuffled_classes", "turning_point"}
MAY_BE_NAN |= {"class_agreement", "measure_matched", "neural_collapse", "added_variance", "conditional_information"}
MAY_BE_NAN |= {"when_reached", "equivalence_test", "granulated_kendall"}
MAY_BE_NAN |= {"half_probe_reliability", "kendall", "manifold_geometry", "t_interval"}


def damaged_sparse(change: str) -> Any:
    matrix = sp.csr_array(GRAPH)
    if change == "index":
        matrix.indices[3] = 10**6
    elif change == "negative index":
        matrix.indices[3] = -7
    elif change == "pointer":
        matrix.indptr[2] = 10**7
    elif change == "lengths":
        matrix.data = matrix.data[:-3]
    elif change == "coordinate":
        matrix = matrix.tocoo()
        matrix.coords[1][0] = 99
    return matrix


SCALARS = st.one_of(
    st.sampled_from([None, True, False, "", "abc", b"ab", 1j, object(), {}, {1}, (), [], [[]], [None], len, range(3)]),
    st.sampled_from([0, -1, 2**31, 2**63, 10**30, 10**400, 0.5, 1e-300, 1e308, np.nan, np.inf, -np.inf, -0.0]),
    st.sampled_from([[[1, 2], [3]], [[1, 0], [1, [0]]], [np.nan] * 10, ["a"] * 10, ["1"] * 40, ["x", "y"] * 6]),
    st.integers(-3, 10**10),
    st.floats(),
)
DTYPES = st.sampled_from([bool, np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32, np.float64, complex])
RAW = DTYPES.flatmap(
    lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=12))
)
GRAPHS = st.sampled_from(
    [
        nx.path_graph(4),
        sp.coo_array(np.ones(4)),
        sp.csr_array(GRAPH + 0j),
        sp.csr_array(np.triu(GRAPH)),
        sp.eye_array(12),
    ]
    + [damaged_sparse(change) for change in ("index", "negative index", "pointer", "lengths", "coordinate")]
    + [
        sp.csc_array(GRAPH),
        sp.lil_array(GRAPH),
        torch.tensor(GRAPH).to_sparse(),
        sp.csr_array((0, 0)),
        sp.csr_array((12, 12)),
    ]
)
ENTRIES = [np.nan, np.inf, -np.inf, -1.0, 0.5, 1e308, -1e308, 1e-310, 1e200, 2.0**60]


def changed(array: np.ndarray, way: str, number: int) -> Any:
    """An array as it should be, with one thing wrong, or held in another way."""
    plain = np.array(array, dtype=float)
    if way == "entry":
        if plain.size:
            plain.flat[number % plain.size] = ENTRIES[number % len(ENTRIES)]
        return plain
    if way == "scaled":
        with np.errstate(all="ignore"):
            return plain * [1e308, 1e-308, 5e-324, 1e150, -1.0, 0.0, 1e16, 1e99][number % 8]
    ways = {
        "shorter": lambda: plain[: len(plain) - 1 - number % 3],
        "none": lambda: plain[:0],
        "one": lambda: plain[:1],
        "axis": lambda: plain[None],
        "turned": lambda: plain.T,
        "narrow": lambda: plain[..., :0],
        "constant": lambda: np.full(plain.shape, float(number % 3)),
        "text": lambda: plain.astype(str),
        "complex": lambda: plain + 1j,
        "masked": lambda: np.ma.masked_array(plain, plain > plain.mean()),
        "object": lambda: plain.astype(object),
        "gaps": lambda: np.where(np.arange(plain.size).reshape(plain.shape) == number, None, plain.astype(object)),
        "big endian": lambda: plain.astype(">f8"),
        "half": lambda: plain.astype(np.float16),
        "long": lambda: plain.astype(np.longdouble) * np.longdouble("1e4000"),
        "tensor": lambda: torch.tensor(plain, requires_grad=True),
        "bfloat": lambda: torch.tensor(plain).bfloat16(),
        "table": lambda: pd.DataFrame(plain) if plain.ndim == 2 else pd.Series(plain, index=range(7, 7 + len(plain))),
        "sparse": lambda: sp.csr_array(plain) if plain.ndim == 2 else sp.coo_array(plain),
        "list": lambda: plain.tolist(),
        "negative": lambda: -1 - plain,
        "huge labels": lambda: plain.astype(np.int64) * 2**50,
        "unsigned": lambda: np.full(plain.shape, 2**64 - 1, np.uint64),
    }
    return ways[way]()


WAYS = ("entry", "entry", "scaled", "scaled", "shorter", "none", "one", "axis", "turned", "narrow", "constant", "text")
WAYS += (
    "complex",
    "masked",
    "object",
    "gaps",
    "big endian",
    "half",
    "long",
    "tensor",
    "bfloat",
    "table",
    "sparse",
    "list",
)
WAYS += ("negative", "huge labels", "unsigned")


def hostile(good: Any) -> st.SearchStrategy[Any]:
    """Anything at all, and things close to what is wanted."""
    wanted = isinstance(good, np.ndarray | list) and np.asarray(good).dtype.kind in "biuf"
    close = (
        st.builds(changed, st.just(np.asarray(good)), st.sampled_from(WAYS), st.integers(0, 500)) if wanted else SCALARS
    )
    return st.one_of(close, close, SCALARS, RAW, GRAPHS) if wanted else st.one_of(SCALARS, SCALARS, RAW)


@contextmanager
def no_hang() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise AssertionError(f"took more than {SECONDS} s")

    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def require_sentence(error: Exception, given: dict[str, Any]) -> None:
    """The error was raised here, on purpose, in one sentence that names the argument."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert Path(nbutils.__file__).parent in Path(last.filename).parents, f"comes out of {last.filename}"
    assert (last.line or "").startswith("raise "), f"was not meant: {last.line}"
    text = str(error)
    assert "\n" not in text
    assert len(text) < 500
    assert any(name in text for name in (*given, "probe")), f"names no argument: {text}"


def numbers_in(value: Any) -> Iterator[np.ndarray]:
    """All numbers of a result or argument, as arrays."""
    if sp.issparse(value):
        yield np.asarray(value.tocoo().data) if not hasattr(value, "indptr") else np.asarray(value.data)
    elif isinstance(value, pd.DataFrame | pd.Series):
        for column in value.items() if isinstance(value, pd.DataFrame) else [("", value)]:
            yield from numbers_in(column[1].to_numpy())
    elif isinstance(value, torch.Tensor):
        yield from numbers_in(value.detach().to_dense().double().numpy())
    elif isinstance(value, dict):
        yield from numbers_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from numbers_in(part)
    elif hasattr(value, "__dataclass_fields__"):
        yield from numbers_in([getattr(value, name) for name in value.__dataclass_fields__])
    elif isinstance(value, np.ndarray | float | int | complex | np.number) and not isinstance(value, bool):
        array = np.ma.getdata(value) if isinstance(value, np.ndarray) else np.asarray(value)
        if array.dtype.kind in "fc":
            yield array


def is_nonsense(value: Any) -> bool:
    """Whether there is a complex number, a NaN or an infinity in it."""
    return any(part.dtype.kind == "c" or not np.isfinite(part).all() for part in numbers_in(value))


def is_text(value: Any) -> bool:
    array = (
        value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object) if isinstance(value, list) else None
    )
    return array is not None and array.size > 0 and (array.dtype.kind == "U" or isinstance(array.flat[0], str))


@pytest.mark.parametrize("name", GOOD)
@settings(
    max_examples=CASES or 12,
    derandomize=not CASES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_defined_or_refused(name, data):
    good = GOOD[name]
    replaced = data.draw(st.lists(st.sampled_from(sorted(good)), min_size=1, max_size=2, unique=True))
    arguments = good | {argument: data.draw(hostile(good[argument]), label=argument) for argument in replaced}
    note(f"{name}({arguments})")
    with warnings.catch_warnings(), no_hang():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            found = getattr(nbutils, name)(**arguments)
        except (ValueError, TypeError) as error:
            require_sentence(error, good)
            return
    for argument in replaced:
        if (name, argument) not in NAN_IS_KNOWN:
            assert not is_nonsense(arguments[argument]), f"{argument} was accepted"
        if (name, argument) not in TEXT_IS_KNOWN:
            assert not is_text(arguments[argument]), f"{argument} was accepted"
    for part in numbers_in(found):
        assert part.dtype.kind != "c"
        assert not np.isinf(part).any()
        assert name in MAY_BE_NAN or np.isfinite(part).all()
