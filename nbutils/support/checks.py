"""Checks at the door: every public function turns its arguments into plain arrays here.

A wrong argument ends in one sentence that names the argument, what was received and what is allowed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nbutils.support.messages import shown

if TYPE_CHECKING:
    import pandas as pd

WHOLE = 2**53  # whole numbers up to here are exact in float64
ORDINARY = 400  # powers of two within which squares and sums of many values neither overflow nor vanish
LARGEST = 1e100  # of a series: beyond, sums of cubes overflow
NUMBER_IT = "; number the classes with np.unique(..., return_inverse=True)[1]"


def as_numpy(values: Any, name: str = "values") -> np.ndarray:
    """An array of real numbers or truth values, from an array, a nested list, or a PyTorch tensor on any device."""
    array = _plain(values, name)
    if array.dtype.kind in "USM":
        raise ValueError(f"{name} must hold numbers, received {'dates' if array.dtype.kind == 'M' else 'text'}")
    if array.dtype.kind not in "biuf":
        what = type(values).__name__ if array.ndim == 0 else f"dtype {array.dtype}"
        raise ValueError(f"{name} must hold real numbers, received {what}")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # what float64 cannot hold becomes infinite, and is refused as such
            array = array.astype(np.float64)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _plain(values: Any, name: str) -> np.ndarray:
    """An array of any kind; numbers held as objects become numbers."""
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError(f"{name} must not be a masked array; fill what is masked, or leave it out")
    if sp.issparse(values):
        raise ValueError(f"{name} must be dense, received a sparse matrix; pass its toarray()")
    try:
        if hasattr(values, "detach"):
            values = values.detach()
            values = (values if str(values.layout) == "torch.strided" else values.to_dense()).cpu()
            if str(values.dtype) == "torch.bfloat16":  # which NumPy does not know
                values = values.float()
        array = np.asarray(values)
    except Exception:  # whatever an object's own conversion raises
        raise ValueError(
            f"{name} must be an array, a tensor or a nested list with rows of one length, "
            f"received {type(values).__name__} that is none"
        ) from None
    if array.dtype != object or array.ndim == 0:
        return array
    items = array.ravel()
    if items.size and all(isinstance(item, str) for item in items):
        return array.astype(str)
    if not all(isinstance(item, Real | np.bool_) for item in items):
        found = next(type(item).__name__ for item in items if not isinstance(item, Real | np.bool_))
        raise ValueError(f"{name} must hold numbers of one kind, received {found} among them")
    whole = items.size and all(isinstance(item, Integral | np.bool_) for item in items)
    try:
        return array.astype(np.int64 if whole else np.float64)
    except OverflowError:
        raise ValueError(f"{name} holds numbers too large for 64 bits") from None


def as_activations(activations: Any, name: str = "activations") -> np.ndarray:
    """Real, finite values of shape (examples, neurons) with at least one example."""
    array = _as_examples(activations, name)
    if array.dtype == bool:
        raise ValueError(f"{name} must hold numbers, received dtype {array.dtype}")
    if not np.isfinite(array).all():
        bad = ~np.isfinite(array)
        neuron = int(np.flatnonzero(bad.any(axis=0))[0])
        raise ValueError(f"{name} holds {int(bad.sum())} NaN or infinite values, the first in neuron {neuron}")
    return array


def _as_examples(values: Any, name: str) -> np.ndarray:
    array = as_numpy(values, name)
    if array.ndim != 2 or array.shape[0] == 0:
        raise ValueError(
            f"{name} must have shape (examples, neurons) with at least one example, received {array.shape}"
        )
    return array


def as_fired(fired: Any, name: str = "fired") -> np.ndarray:
    """A boolean activation pattern matrix of shape (examples, neurons); 0/1 numbers are accepted."""
    array = _as_examples(fired, name)
    return _as_truth(array, name, "; pass activations through firing() first")


def as_mask(mask: Any, length: int, name: str) -> np.ndarray:
    """Truth values of shape (length,); 0/1 numbers are accepted."""
    array = as_numpy(mask, name)
    if array.shape != (length,):
        raise ValueError(f"{name} must have shape ({length},), received {array.shape}")
    return _as_truth(array, name)


def _as_truth(array: np.ndarray, name: str, hint: str = "") -> np.ndarray:
    if array.dtype != bool:
        if not np.isin(array, (0, 1)).all():
            other = array[~np.isin(array, (0, 1))].flat[0]
            raise ValueError(f"{name} must be boolean (or 0 and 1), received {other}{hint}")
        array = array.astype(bool)
    return array


def as_labels(labels: Any, length: int | None = None, name: str = "labels") -> np.ndarray:
    """Integers (int64) of shape (length,); None takes any length."""
    plain = _plain(labels, name)
    if plain.dtype.kind in "US":
        raise ValueError(f"{name} must be integers, received text{NUMBER_IT}")
    array = as_numpy(plain, name)
    if array.ndim != 1 or length not in (None, array.size):
        raise ValueError(f"{name} must have shape ({'n' if length is None else length},), received {array.shape}")
    if array.dtype.kind == "f":
        array = array.astype(np.float64, copy=False)
        whole = np.isfinite(array) & (np.abs(array) <= WHOLE)
        if not whole.all() or (array != array.round()).any():
            raise ValueError(f"{name} must be integers, received dtype {array.dtype} with values that are none")
    elif array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} must be below 2**63, received {array.max()}")
    return array.astype(np.int64, copy=False)


def as_groups(groups: Any, name: str) -> np.ndarray:
    """What tells groups apart, shape (n,): finite numbers, or text."""
    array = _plain(groups, name)
    array = array if array.dtype.kind == "U" else as_numpy(array, name)
    if array.ndim != 1 or (array.dtype.kind == "f" and not np.isfinite(array).all()):
        raise ValueError(f"{name} must be finite numbers, or text, in a row; received shape {array.shape}")
    return array


def as_partitions(partitions: Any, name: str = "partitions") -> np.ndarray:
    """Integers of shape (snapshots, neurons), at least one snapshot; checked."""
    table = as_numpy(partitions, name)
    if table.ndim != 2 or not len(table):
        raise ValueError(f"{name} must have shape (snapshots, neurons), received {table.shape}")
    return as_labels(table.ravel(), None, name).reshape(table.shape)


def as_series(values: Any, name: str = "values") -> np.ndarray:
    """Finite numbers in a row, as floats."""
    return _as_finite(values, name, 1, "finite numbers in a row")


def as_table(values: Any, name: str, shape: str) -> np.ndarray:
    """Finite numbers in rows and columns, as floats."""
    return _as_finite(values, name, 2, f"finite, of shape {shape}")


def _as_finite(values: Any, name: str, dimensions: int, wanted: str) -> np.ndarray:
    array = as_numpy(values, name).astype(np.float64, copy=False)
    if array.ndim != dimensions:
        raise ValueError(f"{name} must be {wanted}, received shape {array.shape}")
    if bad := int((~np.isfinite(array)).sum()):
        raise ValueError(f"{name} must be {wanted}, received {bad} NaN or infinite values in shape {array.shape}")
    if (largest := np.abs(array).max(initial=0)) > LARGEST:
        raise ValueError(f"{name} must lie within {LARGEST:g} of 0, received {largest:g}; use another unit")
    return array


def as_graph(graph: Any, name: str = "graph") -> sp.csr_array:
    """A symmetric, non-negative CSR adjacency without self-loops, from a dense or SciPy sparse one."""
    matrix = _as_csr(graph, name)
    if not matrix.has_canonical_format or (matrix.nnz and not matrix.data.min()):
        matrix = matrix.copy()  # the caller's stays as it is
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    if matrix.nnz == 0:
        return matrix
    from nbutils.support import loops

    least, largest = matrix.data.min(), matrix.data.max()
    if not -np.inf < least <= largest < np.inf:
        raise ValueError(f"{name} holds NaN or infinite weights, or some beyond the range of float64")
    if least < 0:
        raise ValueError(f"{name} holds negative weights, the least {least:g}; weights must be >= 0")
    # Matrices of correlations are often off by one unit in the last place.
    flaw = loops.first_flaw(matrix.indptr, matrix.indices, matrix.data, 1e-12 * largest, matrix.indptr[:-1].copy())
    if flaw == loops.LOOP:
        raise ValueError(f"{name} has {int((matrix.diagonal() != 0).sum())} self-loops; set the diagonal to zero")
    if flaw == loops.ASYMMETRIC:
        raise ValueError(f"{name} must be symmetric")
    return matrix


def _as_csr(graph: Any, name: str) -> sp.csr_array:
    """A square matrix of float64 whose indices compiled code can trust."""
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        raise ValueError(f"{name} must be a matrix; pass networkx.to_scipy_sparse_array(...) of a networkx graph")
    source = graph if sp.issparse(graph) else as_numpy(graph, name)
    if source.ndim != 2 or source.shape[0] != source.shape[1]:
        raise ValueError(f"{name} must be square, received shape {source.shape}")
    if source.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, received dtype {source.dtype}")
    if not sp.issparse(source):
        return sp.csr_array(source.astype(np.float64, copy=False))
    try:
        _require_indices(source)
        matrix = sp.csr_array(source)
        _require_indices(matrix)  # of formats that are checked only now
    except (ValueError, TypeError, IndexError, AttributeError):
        raise ValueError(
            f"{name} is a damaged sparse matrix: its indices do not fit its shape {source.shape}"
        ) from None
    with np.errstate(over="ignore"):
        matrix = matrix.astype(np.float64, copy=False)
    parts = matrix.data, matrix.indices, matrix.indptr
    plain = [np.require(part, requirements="CW") for part in parts]  # mapped files are read-only, slices have gaps
    if all(one is other for one, other in zip(parts, plain, strict=True)):
        return matrix
    return sp.csr_array(tuple(plain), shape=matrix.shape)


def _require_indices(matrix: Any) -> None:
    """Refuse a sparse matrix whose indices lie outside of it; SciPy looks only when asked to."""
    if matrix.format in ("csr", "csc", "bsr"):
        if matrix.indices.dtype.kind != "i" or matrix.indptr.dtype.kind != "i":
            raise ValueError("indices are no integers")
        matrix.check_format(full_check=True)
    elif matrix.format == "coo":
        for index, length in zip(matrix.coords, matrix.shape, strict=True):
            if index.shape != matrix.data.shape or (index.size and not 0 <= index.min() <= index.max() < length):
                raise ValueError("an index lies outside")


def as_rng(rng: Any, name: str = "rng") -> np.random.Generator:
    """A source of randomness: a NumPy generator, or one made from a seed."""
    if isinstance(rng, np.random.Generator):
        return rng
    if not is_whole(rng) or rng < 0:
        raise ValueError(
            f"{name} must be a numpy.random.Generator or a seed, a whole number >= 0, received {shown(rng)}"
        )
    return np.random.default_rng(int(rng))


def as_count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """A whole number from `least` to `most`."""
    if is_whole(value) and least <= value <= (value if most is None else most):
        return int(value)
    bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
    raise ValueError(f"{name} must be a whole number {bounds}, received {shown(value)}")


def is_whole(value: Any) -> bool:
    """Whether something is a whole number, which truth values and spans of time are not."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.timedelta64)


def as_switch(value: Any, name: str) -> bool:
    """A truth value."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, received {shown(value)}")
    return bool(value)


def is_real(value: Any) -> bool:
    """As :func:`is_number`, with NaN and the infinities."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool | np.timedelta64) and float(value) is not None
    except OverflowError:
        return False


def is_number(value: Any) -> bool:
    """Whether something is a single finite real number, which truth values and spans of time are not."""
    return is_real(value) and math.isfinite(value)


def is_among(value: Any, choices: Sequence[str | None]) -> bool:
    """Whether something is one of a few words, or None where that is one of them."""
    return (value is None or isinstance(value, str)) and value in choices


def require_share(value: float, name: str) -> float:
    """A share in (0, 1]."""
    if not is_number(value) or not 0 < value <= 1:
        raise ValueError(f"{name} must be a number above 0 and at most 1, received {shown(value)}")
    return float(value)


def require_level(value: float, name: str = "level") -> float:
    """A confidence in (0, 1)."""
    if not is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1, received {shown(value)}")
    return float(value)


def as_frame(
    table: Any,
    columns: Sequence[str],
    name: str,
    *,
    numbers: Sequence[str] = (),
    finite: Sequence[str] = (),
    truths: Sequence[str] = (),
    key: Sequence[str] = (),
) -> pd.DataFrame:
    """A pandas table with at least these columns: `numbers` are numeric (NaN is a gap), `finite` without gaps.

    `truths` hold truth values, and no two rows have the same `key`.
    What is returned has numbers where they were held as objects.
    """
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"{name} must be a pandas.DataFrame, received {type(table).__name__}")
    needed = list(dict.fromkeys([*columns, *numbers, *finite, *truths, *key]))
    if missing := [column for column in needed if column not in table]:
        found = shown(list(table.columns), 150)
        raise ValueError(f"{name} must have the columns {shown(missing, 150)}; it has {found}")
    if doubled := [column for column in needed if isinstance(table[column], pd.DataFrame)]:
        raise ValueError(f"{name} must have each column once, received {shown(doubled[0])} more than once")
    typed = [column for column in (*numbers, *finite, *truths) if table[column].dtype == object]
    if typed:  # what pandas.concat makes of numbers beside a table without rows
        table = table.copy()
        table[typed] = table[typed].infer_objects()
    for column in (*numbers, *finite):
        if len(table) and not pd.api.types.is_any_real_numeric_dtype(table[column]):
            raise ValueError(f"{name} must hold numbers in the column {column!r}, received {table[column].dtype}")
    for column in finite:
        if len(table) and not np.isfinite(table[column].to_numpy(dtype=np.float64, na_value=np.nan)).all():
            raise ValueError(f"{name} must be finite in the column {column!r}, received a gap or an infinity")
    if wrong := [column for column in truths if len(table) and table[column].dtype != bool]:
        raise ValueError(f"{name} must hold True or False in the column {wrong[0]!r}, received {table[wrong[0]].dtype}")
    if key and table.duplicated(list(key)).any():
        raise ValueError(f"{name} must have one row per {' and '.join(key)}, received several")
    return table


def share_after(text: Any, kind: str) -> float | None:
    """The number in "kind:number", such as "top:0.05"; None for anything else."""
    found = re.fullmatch(rf"{kind}:([0-9.eE+-]+)", text) if isinstance(text, str) else None
    try:
        return float(found[1]) if found else None
    except ValueError:  # such as 1e
        return None


def share_count(share: float, total: int) -> int:
    """How many of `total` a share is, rounded up; 10 % of 30 is 3, although 0.1 * 30 > 3 in floating point."""
    return min(total, max(1, int(np.ceil(round(share * total, 6)))))


def spare_exponent(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Powers of two to take out of values before they are squared; 0 for all that are neither huge nor tiny."""
    largest = np.abs(values).max(axis=axis, initial=0)
    exponent = np.frexp(largest)[1]
    return np.where(np.abs(exponent) > ORDINARY, exponent, 0)


def ordinary(values: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Values that can be squared and summed: huge and tiny ones times a power of two, all others as they are."""
    exponent = spare_exponent(values, axis)
    return np.ldexp(values, -exponent) if exponent.any() else values
