"""Controls that must fail, and made-up studies whose answer is known: does the machinery of verdicts err?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from nbutils.arguments import checked
from nbutils.arrays import as_count, as_frame, as_rng, is_among, shown
from nbutils.evidence import RULES
from nbutils.hypotheses import TESTS, as_judged, evaluate_test, is_between, rows_of
from nbutils.results import CONDITIONS, NOISE_LEVELS, Results, as_results
from nbutils.sceptic import PRIMARY

__all__ = ["WORLDS", "control_outcomes", "control_shares", "made_up_study"]

DRAWS = 499
MOST_SEEDS, MOST_EPOCHS = 1000, 10_000  # as of a study
WORLDS = {
    "performance": "modularity follows each network's test accuracy",
    "noise level": "modularity follows the level of label noise, whatever the accuracy",
    "nothing": "modularity is noise",
}

Break = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


@checked
def control_outcomes(results: Results, tries: int = 20) -> pd.DataFrame:
    """The registered tests of one data set on tables in which what they look for was destroyed.

    Between networks: the accuracies of noise levels change places. Within a run: a network gets another's accuracies,
    or its epochs are shuffled. Both: noise in place of the measure. H1: in some networks, at random, what is compared
    changes places. All else stays; as in :func:`nbutils.robustness.attacks`, p values are not corrected.

    Args:
        results: of one data set.
        tries: how often each control is drawn, with fixed seeds.

    Returns:
        One row per test and control: `dataset`, `test`, `control`, `tries`, `passes`, `opposite` (how many have that
        outcome; opposite would count as a refutation). No row for a test that was not planned or has too few runs: it
        decides nothing.

    Raises:
        ValueError: `tries` is below 1.
    """
    results, tries, rows = as_judged(as_results(results)), as_count(tries, "tries"), []
    for place, test in enumerate(TESTS if len(results.table) else ()):
        table = rows_of(results, test)
        registered = None if table.empty else evaluate_test(test, table, draws=DRAWS)
        if registered is None or not registered.enough:
            continue
        for name, broken in _breaks(test).items():
            rng = np.random.default_rng([RULES.seed, place, *name.encode()])
            found = [evaluate_test(test, broken(table, rng), draws=DRAWS) for _ in range(tries)]
            outcomes = [replace(e, adjusted=e.p_value, enough=True).outcome for e in found if e is not None]
            rows.append((results.dataset, test, name, len(outcomes), *map(outcomes.count, ("passes", "opposite"))))
    return pd.DataFrame(rows, columns=["dataset", "test", "control", "tries", "passes", "opposite"])


@checked
def control_shares(table: pd.DataFrame) -> pd.DataFrame:
    """How often controls pass, over data sets and tests of one kind.

    Args:
        table: rows of :func:`control_outcomes`.

    Returns:
        One row per control: `control`, `tests` (which), `tries`, `passes` and `opposite` (shares), each with `low` and
        `high` (exact 95 % interval of a share, as if tries were independent).

    References:
        Clopper and Pearson (1934), doi:10.1093/biomet/26.4.404.
    """
    table = as_frame(table, ("control", "test"), "table", finite=("tries", "passes", "opposite"))
    counts = table[["passes", "opposite"]].sum(axis=1)
    if not (
        (table["tries"] >= 1) & (table[["passes", "opposite"]] >= 0).all(axis=1) & (counts <= table["tries"])
    ).all():
        raise ValueError("table must count at least one of `tries`, and no more that `passes` or are `opposite`")
    rows = []
    for name, group in table.groupby("control", sort=False):
        tries, tests = int(group["tries"].sum()), ", ".join(dict.fromkeys(group["test"]))
        cells = [name, tests, tries]
        for outcome in ("passes", "opposite"):
            count = int(group[outcome].sum())
            interval = binomtest(count, tries).proportion_ci(RULES.level)
            cells += [count / tries, float(interval.low), float(interval.high)]
        rows.append(cells)
    columns = ["passes", "passes low", "passes high", "opposite", "opposite low", "opposite high"]
    return pd.DataFrame(rows, columns=["control", "tests", "tries", *columns])


@checked
def made_up_study(world: str, rng: np.random.Generator | int, seeds: int = RULES.seeds, epochs: int = 6) -> Results:
    """A study whose answer is known, to see what the tests make of it.

    Every network has a test and a training accuracy, which label noise lowers and chance shifts. Its modularity follows
    what the world says. Its pattern entropy is 8 - 10 Q, so that H3 is as true as H2. The untrained networks have no
    communities beyond the null, the trained ones have.

    Args:
        world: one of `WORLDS`.
        rng: source of randomness: a generator, or a seed.
        seeds: networks per label condition, at most 1,000; half as many at the other levels of label noise.
        epochs: trained epochs, at most 10,000.

    Returns:
        The results of a data set called "made up".

    Raises:
        ValueError: there is no such world, or `seeds`, `epochs` or `rng` is out of range.

    Examples:
        >>> study = made_up_study("performance", np.random.default_rng(0))
        >>> round(evaluate_test("H2b", study.noise_grid()).estimate, 1)
        1.0
    """
    if not is_among(world, tuple(WORLDS)):
        raise ValueError(f"world must be one of {', '.join(WORLDS)}, received {shown(world)}")
    rng, seeds = as_rng(rng), as_count(seeds, "seeds", most=MOST_SEEDS)
    epochs = as_count(epochs, "epochs", most=MOST_EPOCHS)
    levels = {"true": 0.0, "random": 1.0}
    networks = [(n, s) for n in NOISE_LEVELS for s in range(seeds if n in CONDITIONS else seeds // 2)]
    rows = []
    for labels, seed in networks:
        noise = levels[labels] if labels in levels else float(labels.partition(":")[2])
        epoch, trained = np.arange(epochs + 1), np.arange(epochs + 1) > 0
        shift = rng.normal(0, 0.03) + rng.normal(0, 0.03, (2, epochs + 1))
        accuracy, given = 0.1 + trained * (0.5 + 0.3 * epoch / epochs - 0.5 * noise) + shift
        follows = {
            "performance": 0.3 * accuracy,
            "noise level": trained * (0.3 - 0.2 * noise),
            "nothing": 0.2 * trained,
        }
        q = 0.3 + follows[world] + rng.normal(0, 0.002 if world == "performance" else 0.02, epochs + 1)
        own = {"labels": labels, "noise": noise, "seed": seed, "epoch": epoch, "modularity": q}
        own |= {
            "test_accuracy": accuracy,
            "train_accuracy": given,
            "train_loss": 1 - given,
            "pattern_entropy": 8 - 10 * q,
        }
        own |= {"mean_cofiring": rng.normal(size=epochs + 1), "null_circular": 0.3}
        own |= {"well_defined": 4 + 3 * trained + rng.integers(0, 2, epochs + 1)}
        rows.append(pd.DataFrame(own))
    table = pd.concat(rows, ignore_index=True).assign(dataset="made up")
    parts = np.where(table["labels"].isin(CONDITIONS), "conditions", "")
    table["parts"] = pd.Series(parts) + np.where(table["seed"] < seeds // 2, " noise", "")
    return Results("made up", table, table[["labels", "parts"]], {}, {})


def _breaks(test: str) -> Mapping[str, Break]:
    """The controls of one test."""
    if test == "H1a null":
        return {"real and shuffled firing swapped": _swap_null}
    if test.startswith("H1"):
        return {"trained and untrained swapped": _swap_ends}
    column = PRIMARY[test[:2]]

    def noise(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        return rows.assign(**{column: rng.normal(size=len(rows))})

    def shuffled(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        trained = rows[rows["epoch"] > 0]
        return trained.assign(**{column: trained.groupby("seed")[column].transform(rng.permutation)})

    if is_between(test):
        return {"noise levels permuted": _permute_levels, "noise for the measure": noise}
    return {
        "another network's accuracy": _permute_networks,
        "epochs shuffled": shuffled,
        "noise for the measure": noise,
    }


def _permute_networks(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return _lent(rows, rng, "seed", ["epoch"], "train_accuracy")


def _permute_levels(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    last = rows[rows["epoch"] == rows["epoch"].max()]
    return _lent(last, rng, "noise", ["seed"], "test_accuracy")


def _lent(rows: pd.DataFrame, rng: np.random.Generator, owner: str, keys: list[str], column: str) -> pd.DataFrame:
    """A column taken from another owner, drawn at random; rows that have no counterpart there are left out."""
    owners = np.sort(rows[owner].unique())
    source = dict(zip(rng.permutation(owners), owners, strict=True))
    lent = rows[[owner, *keys, column]].assign(**{owner: rows[owner].map(source)})
    return rows.drop(columns=column).merge(lent, on=[owner, *keys])


def _swap_null(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    chosen = _half(rows, rng)
    real, null = rows["modularity"], rows["null_circular"]
    return rows.assign(modularity=real.where(~chosen, null), null_circular=null.where(~chosen, real))


def _swap_ends(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    last = rows["epoch"].max()
    ends = rows[rows["epoch"].isin([0, last])]
    return ends.assign(epoch=ends["epoch"].where(~_half(ends, rng), last - ends["epoch"]))


def _half(rows: pd.DataFrame, rng: np.random.Generator) -> pd.Series:
    """Whether a row belongs to a network that was chosen, each with probability one half."""
    seeds = rows["seed"].unique()
    return rows["seed"].isin(seeds[rng.random(len(seeds)) < 0.5])
