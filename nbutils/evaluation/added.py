"""What a measure adds to others: variance of performance explained on networks that were not fitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from nbutils.evaluation.words import NAN, Estimate, inner_level
from nbutils.stats import LEAST_SPREAD, MOST_DRAWS, sign_flip
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_groups, as_rng, as_series, as_table, ordinary

PENALTIES = np.logspace(-3, 3, 7)  # of ridge regression on standardised columns, times the number of networks / 100


@checked
@dataclass(frozen=True)
class Added:
    """Variance explained out of sample, without and with a measure.

    Attributes:
        baselines: R2 of the baselines alone, at most 1; below 0 where they predict worse than the mean does.
        full: R2 of baselines and measure together.
        gain: full - baselines, with its intervals and the p value of "no gain".
    """

    baselines: float
    full: float
    gain: Estimate


def added_variance(
    performance: Any,
    baselines: Any,
    measure: Any,
    configuration: Any,
    rng: np.random.Generator | int,
    *,
    folds: int = 5,
    repeats: int = 5,
    level: float = 0.95,
    draws: int = 1999,
) -> Added:
    """Does a measure explain performance beyond baselines, on networks of configurations that were not fitted?

    R2 = 1 - sum (y - predicted)^2 / sum (y - mean of the fitted)^2, of ridge regressions on standardised columns, over
    networks left out fold by fold. A configuration lies in one fold as a whole. The penalty is chosen in the same way
    within the networks that are fitted (nested cross-validation), for baselines alone and for baselines and measure by
    itself; both meet the same folds. Only linear associations count: pass logarithms or ranks where those are meant.

    Intervals resample whole configurations with their errors of prediction, the p value flips the sign of each
    configuration's difference of squared errors. Both take the fitted models as given. A measure that
    knows nothing, beside baselines that do, costs a little out of sample: its gain comes out slightly below 0, and the
    test of "no gain" finds one there far less often than its level says.

    Args:
        performance: y, one value per network, shape (networks,).
        baselines: shape (networks, baselines), at least one column.
        measure: shape (networks,).
        configuration: what networks that differ by their seed only have in common, shape (networks,), numbers or text;
            at least twice as many different ones as folds.
        rng: source of randomness, a generator or a seed.
        folds: of both cross-validations, from 2 to 100.
        repeats: how many times configurations are dealt to folds, from 1 to 1,000; squared errors are averaged.
        level: confidence of the interval, in (0.5, 1); that of the inner one is 2 level - 1.
        draws: number of resamples and of sign patterns, from 1 to a million.

    Returns:
        An :class:`Added`; the p value of its gain is one-sided, for a gain. NaN throughout where all networks perform
        alike.

    Raises:
        ValueError: shapes disagree, values are not finite, too few configurations, or an option is out of range.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> loss, q = rng.normal(size=(2, 60))
        >>> found = added_variance(loss + q, loss[:, None], q, np.arange(60), 0)
        >>> 0.2 < found.baselines < 0.7, found.full > 0.95
        (True, True)

    References:
        Stone (1974), doi:10.1111/j.2517-6161.1974.tb00994.x; Cawley and Talbot (2010), "On over-fitting in model
        selection and subsequent selection bias in performance evaluation".
    """
    y, base = as_series(performance, "performance"), as_table(baselines, "baselines", "(networks, baselines)")
    m, groups, rng = as_series(measure, "measure"), as_groups(configuration, "configuration"), as_rng(rng)
    folds, repeats = as_count(folds, "folds", least=2, most=100), as_count(repeats, "repeats", most=1000)
    levels, draws = (level, inner_level(level)), as_count(draws, "draws", most=MOST_DRAWS)
    if not len(y) == len(base) == len(m) == len(groups) or not base.shape[1]:
        shapes = f"{y.shape}, {base.shape}, {m.shape}, {groups.shape}"
        raise ValueError(f"performance, baselines, measure, configuration must be one per network, received {shapes}")
    index = np.unique(groups, return_inverse=True)[1]
    if (count := int(index.max(initial=-1)) + 1) < 2 * folds:
        raise ValueError(f"configuration must take at least {2 * folds} values for {folds} folds, received {count}")
    if np.ptp(y) < LEAST_SPREAD:
        return Added(NAN, NAN, Estimate(NAN, NAN, NAN, (NAN, NAN)))
    outcome, columns = _standard(y[:, None])[:, 0], _standard(np.column_stack([base, m]))
    errors = np.zeros((3, len(y)))
    for _ in range(repeats):
        fold = _dealt(index, folds, rng)
        inner = {k: _dealt(index[fold != k], folds, rng) for k in range(folds)}
        widths = 0, base.shape[1], base.shape[1] + 1
        errors += [_left_out_errors(outcome, columns[:, :width], fold, inner) for width in widths]
    return _gain(np.array([np.bincount(index, row) for row in errors]), levels, draws, rng)


def _gain(errors: np.ndarray, levels: tuple[float, float], draws: int, rng: np.random.Generator) -> Added:
    """From squared errors of the mean, the baselines and all columns, summed by configuration: shape (3, ...)."""
    mean, without, full = errors.sum(axis=1)
    chosen = rng.multinomial(errors.shape[1], np.full(errors.shape[1], 1 / errors.shape[1]), size=draws)
    total, *resampled = (chosen @ row for row in errors)
    spread = (resampled[0] - resampled[1]) / total
    ends = [[float(end) for end in np.quantile(spread, [(1 - c) / 2, (1 + c) / 2])] for c in levels]
    test = sign_flip(errors[1] - errors[2], rng, flips=draws)
    gain = Estimate(float((without - full) / mean), *ends[0], tuple(ends[1]), test.p_value)
    return Added(float(1 - without / mean), float(1 - full / mean), gain)


def _standard(columns: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and deviation 1, so that none is too large to be squared; 0 for one that is constant."""
    columns = ordinary(columns - columns[0], axis=0)
    centred = columns - columns.mean(axis=0)
    scale = centred.std(axis=0)
    return np.where(scale > 0, centred / np.where(scale > 0, scale, 1), 0.0)


def _dealt(index: np.ndarray, folds: int, rng: np.random.Generator) -> np.ndarray:
    """A fold per network, the same for all of a configuration; equally many configurations in each, or nearly."""
    present, place = np.unique(index, return_inverse=True)
    return (rng.permutation(len(present)) % folds)[place]


def _left_out_errors(y: np.ndarray, x: np.ndarray, fold: np.ndarray, inner: dict[int, np.ndarray]) -> np.ndarray:
    """Squared error of each network, predicted from the other folds; without a column, by their mean."""
    found = np.empty(len(y))
    for k, within in inner.items():
        out = fold == k
        if x.shape[1]:
            known, loss = y[~out], np.zeros(len(PENALTIES))
            for i in range(len(inner)):
                loss += ((_predicted(x[~out], known, within == i) - known[within == i, None]) ** 2).sum(axis=0)
            best = int(loss.argmin())
            predicted = _predicted(x, y, out)[:, best]
        else:
            predicted = y[~out].mean()
        found[out] = (predicted - y[out]) ** 2
    return found


def _predicted(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> np.ndarray:
    """What is left out, predicted from the rest with every penalty: shape (left out, penalties)."""
    middle, scale = x[~out].mean(axis=0), x[~out].std(axis=0)
    z = (x - middle) / np.where(scale > 1e-9, scale, 1)
    fitted, mean = z[~out], y[~out].mean()  # columns of z have mean 0 there
    gram, moments, penalties = fitted.T @ fitted, fitted.T @ (y[~out] - mean), PENALTIES * len(fitted) / 100
    weights = [linalg.lapack.dposv(gram + penalty * np.eye(len(gram)), moments)[1] for penalty in penalties]
    return mean + z[out] @ np.transpose(weights)
