"""Robustness of the verdicts: perturbed data and rules, and negative controls on simulated studies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from nbutils.stats import bootstrap_interval, sign_flip
from nbutils.study.conclusions import GIVEN, counted, held_fixed_table
from nbutils.study.hypotheses import RULES, TESTS, Evidence, as_judged, evaluate_test, is_between, rows_of, verdict
from nbutils.study.results import CONDITIONS, NOISE_LEVELS, Results, as_results
from nbutils.study.sceptic import PRIMARY, Attack, plan_attacks, with_living
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_frame, as_rng, is_among, shown
from nbutils.support.display import format_number

__all__ = [
    "WORLDS",
    "attacks",
    "control_outcomes",
    "control_shares",
    "flip_table",
    "kind_table",
    "made_up_study",
    "registered_tests",
    "survival",
    "survival_sentences",
]

DRAWS = 999
COLUMNS = (
    *("dataset", "hypothesis", "test", "kind", "attack", "detail", "estimate", "low", "high", "p"),
    *("outcome", "registered", "flipped", "verdict", "moved"),
)


@checked
def attacks(results: Results) -> pd.DataFrame:
    """Every registered test of one data set, attacked in every way that its tables allow.

    All outcomes, the registered one too, are judged by the p value as it is. A correction for many tests would mix what
    an attack does with what the correction does. Where the registered test has too few runs, so has every attack;
    elsewhere an attack counts as having enough, though it may have left out half of them. Of the attacks that leave
    out one network or one noise level in turn only the most harmful is kept: one that flips the outcome, or else the
    one that moves the estimate most.

    Args:
        results: of one data set.

    Returns:
        One row per test and attack: `dataset`, `hypothesis`, `test`, `kind`, `attack`, `detail` (what was left out),
        `estimate`, `low`, `high` (95 % interval), `p` (NaN where the interval judges alone), `outcome`, `registered`
        (outcome of the registered test), `flipped` (the two differ), `verdict` (of the hypothesis, with this outcome in
        place of the registered one), `moved` (that verdict is not the registered one). No row for a test that was not
        planned.

    References:
        Steegen, Tuerlinckx, Gelman and Vanpaemel (2016), doi:10.1177/1745691616658637.
    """
    results = as_judged(as_results(results))
    registered, rows, results = registered_tests(results), [], with_living(results)
    for test, base in registered.items():
        own = [e for e in registered.values() if e.hypothesis == base.hypothesis]
        found = _attacked(test, base, rows_of(results, test)) if base.planned else ()
        for attack, detail, evidence in found:
            judged = _judged(evidence, base.enough)
            word = verdict([judged if e.test == test else e for e in own])
            names = results.dataset, base.hypothesis, test, attack.kind, attack.name, detail
            numbers = judged.estimate, judged.low, judged.high, judged.p_value
            flipped, moved = judged.outcome != base.outcome, word != verdict(own)
            rows.append((*names, *numbers, judged.outcome, base.outcome, flipped, word, moved))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def registered_tests(results: Results) -> dict[str, Evidence]:
    """The registered tests of one data set, by name, judged by the p value as it is."""
    if results.table.empty:
        return {}
    found = {test: evaluate_test(test, rows_of(results, test)) for test in TESTS}
    return {test: _judged(e, e.enough) for test, e in found.items() if e is not None}


@checked
def survival(table: pd.DataFrame, by: str = "hypothesis") -> pd.DataFrame:
    """How many attacks leave an outcome as it was, and which do not.

    The share is no probability: attacks resemble each other, and some are harder than others. The word says more: an
    outcome is "firm" if no attack flips it, "fragile" if fewer networks or other random draws flip it, and else "hangs
    on a choice"; "no outcome" where too few runs leave nothing to attack.

    Args:
        table: rows of :func:`attacks`, of one or more data sets.
        by: "hypothesis" or "test".

    Returns:
        One row per data set and hypothesis, or test: `dataset`, `by`, `registered` (outcome of each test), `attacks`,
        `survived`, `share` (of attacks with the registered outcome; NaN if too few runs leave nothing to attack),
        `word`, `moved` (attacks that would change the verdict), `flips` (the attacks that flip an outcome, with what
        they make of it).

    Raises:
        ValueError: `by` is neither.
    """
    words = ("dataset", "hypothesis", "test", "kind", "attack", "detail", "outcome", "registered")
    table = as_frame(table, words, "table", truths=("flipped", "moved"))
    if by not in ("hypothesis", "test"):
        raise ValueError(f"by must be 'hypothesis' or 'test', received {shown(by)}")
    rows = []
    for (dataset, name), group in table.groupby(["dataset", by], sort=False):
        outcomes = group.drop_duplicates("test").set_index("test")["registered"]
        registered = outcomes.iloc[0] if by == "test" else ", ".join(f"{t} {word}" for t, word in outcomes.items())
        tried, survived = len(group), int((~group["flipped"]).sum())
        share = survived / tried if (outcomes != "too few runs").all() else np.nan
        word = _word(set(group.loc[group["flipped"], "kind"]), np.isnan(share))
        flips = "; ".join(_flip(row, by) for _, row in group[group["flipped"]].iterrows())
        rows.append((dataset, name, registered, tried, survived, share, word, int(group["moved"].sum()), flips))
    columns = ["dataset", by, "registered", "attacks", "survived", "share", "word", "moved", "flips"]
    return pd.DataFrame(rows, columns=columns)


def survival_sentences(table: pd.DataFrame) -> list[str]:
    """What became of each test, one sentence per test, and one for those without an outcome.

    Args:
        table: rows of :func:`attacks`, of one or more data sets.
    """
    found, tests = [], survival(table, "test")
    for test, group in tests.groupby("test", sort=False):
        parts = [
            f"{_part(row['survived'], row['attacks'])} on {row['dataset']} ({row['registered']}; {row['word']})"
            for _, row in group[group["share"].notna()].iterrows()
        ]
        words = f"The outcome of **{test}** survives {counted(parts)}." if parts else ""
        found += [words] if words else []
    missing = tests[tests["share"].isna()].groupby("dataset", sort=False)["test"].agg(list)
    places = [f"{name} ({counted(missed)})" for name, missed in missing.items()]
    return [*found, f"Too few networks for an outcome: {'; '.join(places)}."] if places else found


def flip_table(table: pd.DataFrame) -> pd.DataFrame:
    """The attacks that flip an outcome, with what they make of it.

    Args:
        table: rows of :func:`attacks`, of one or more data sets.

    Returns:
        One row per test and attack that flips the outcome on at least one data set, those that flip most first: `test`,
        `attack`, `flips` (on how many data sets, of those where the attack could be made and there is an outcome),
        `what becomes of it` (data set, what was left out, registered and new outcome, estimate with interval, and the
        hypothesis's verdict if it moves).
    """
    rows = []
    for (test, attack), group in table.groupby(["test", "attack"], sort=False):
        flipped = group[group["flipped"]]
        if len(flipped):
            words = "; ".join(_change(row) for _, row in flipped.iterrows())
            possible = int((group["registered"] != "too few runs").sum())
            rows.append((test, attack, f"{len(flipped)} of {possible}", words, len(flipped)))
    found = pd.DataFrame(rows, columns=["test", "attack", "flips", "what becomes of it", "count"])
    return found.sort_values(["test", "count"], ascending=[True, False], kind="stable").drop(columns="count")


def kind_table(table: pd.DataFrame) -> pd.DataFrame:
    """How many attacks flip an outcome, by what they change.

    Args:
        table: rows of :func:`attacks`, of one or more data sets.

    Returns:
        One row per kind: `kind` and, for each hypothesis, such as "3 of 12"; a dash where there is no such attack.
    """
    kinds, columns = list(dict.fromkeys(table["kind"])), list(dict.fromkeys(table["hypothesis"]))
    found = {key: f"{group.sum()} of {len(group)}" for key, group in table.groupby(["kind", "hypothesis"])["flipped"]}
    cells = {h: [found.get((kind, h), "–") for kind in kinds] for h in columns}
    return pd.DataFrame({"kind": kinds, **cells})


def _change(row: pd.Series) -> str:
    estimate, low, high = (format_number(row[name], 2) for name in ("estimate", "low", "high"))
    where = f"{row['dataset']}, {row['detail']}" if row["detail"] else row["dataset"]
    moved = f"; {row['hypothesis']} would be {row['verdict']}" if row["moved"] else ""
    return f"{where}: {row['registered']} → {row['outcome']} ({estimate}, {low} to {high}{moved})"


def _part(survived: int, attacks: int) -> str:
    return f"all {attacks} attacks" if survived == attacks else f"{survived} of {attacks} attacks"


def _word(kinds: set[str], empty: bool) -> str:
    if empty:
        return "no outcome"
    if not kinds:
        return "firm"
    return "fragile" if kinds & {"networks", "chance"} else "hangs on a choice"


def _judged(found: Evidence, enough: bool) -> Evidence:
    return replace(found, adjusted=found.p_value, enough=enough)


def _flip(row: pd.Series, by: str) -> str:
    name = row["attack"] if by == "test" else f"{row['test']}, {row['attack']}"
    return f"{name}{f' ({row.detail})' if row['detail'] else ''}: {row['outcome']}"


def _attacked(test: str, base: Evidence, rows: pd.DataFrame) -> Iterator[tuple[Attack, str, Evidence]]:
    """Each attack that can be made, what it left out, and what came out."""
    again = Attack("chance", f"{DRAWS} random draws, not 9,999")
    for attack in [again, *plan_attacks(test, rows, base.threshold)]:
        if found := evaluate_test(test, attack.change(rows), draws=DRAWS, **attack.options):
            limit = base.threshold if attack.threshold is None else attack.threshold
            yield attack, "", replace(found, threshold=limit)
    yield from _one_left_out(test, base, rows)
    if is_between(test):
        yield from _against_the_rest(base, rows)
        yield from _held_fixed(base, rows)


def _one_left_out(test: str, base: Evidence, rows: pd.DataFrame) -> Iterator[tuple[Attack, str, Evidence]]:
    column, word = ("noise", "noise level") if is_between(test) else ("seed", "network")
    found = {k: evaluate_test(test, rows[rows[column] != k], draws=DRAWS) for k in sorted(rows[column].unique())}
    found = {k: e for k, e in found.items() if e is not None and e.planned}
    if len(found) > 1:

        def harm(k: Any) -> tuple[bool, float]:
            return _judged(found[k], base.enough).outcome != base.outcome, abs(found[k].estimate - base.estimate)

        worst = max(found, key=harm)
        yield Attack("networks", f"any one {word} left out"), f"without {column} {worst:g}", found[worst]


def _against_the_rest(base: Evidence, rows: pd.DataFrame) -> Iterator[tuple[Attack, str, Evidence]]:
    """True labels against the mean of all other levels, in units of the measure, paired by seed."""
    last = rows[rows["epoch"] == rows["epoch"].max()]
    wide = last.pivot(index="seed", columns="noise", values=PRIMARY[base.hypothesis]).dropna()
    if 0.0 in wide and len(wide) > 1:
        beyond = wide[0.0] - wide.drop(columns=0.0).mean(axis=1)
        low, high = bootstrap_interval(beyond, np.random.default_rng(RULES.seed), level=RULES.level, draws=DRAWS)
        alternative = "greater" if base.direction > 0 else "less"
        p_value = sign_flip(beyond, np.random.default_rng(RULES.seed), alternative=alternative).p_value
        found = replace(base, estimate=float(beyond.mean()), low=low, high=high, p_value=p_value)
        yield Attack("statistic", "true labels against the rest"), "difference, not ρ", found


def _held_fixed(base: Evidence, rows: pd.DataFrame) -> Iterator[tuple[Attack, str, Evidence]]:
    for row in held_fixed_table(rows, PRIMARY[base.hypothesis]).itertuples():
        found = replace(base, estimate=row.rho, low=row.low, high=row.high, p_value=float("nan"))
        yield Attack("held fixed", GIVEN[row.given]), "", found


CONTROL_DRAWS = 499
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
    changes places. All else stays; as in :func:`nbutils.pages.robustness.attacks`, p values are not corrected.

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
        registered = None if table.empty else evaluate_test(test, table, draws=CONTROL_DRAWS)
        if registered is None or not registered.enough:
            continue
        for name, broken in _breaks(test).items():
            rng = np.random.default_rng([RULES.seed, place, *name.encode()])
            found = [evaluate_test(test, broken(table, rng), draws=CONTROL_DRAWS) for _ in range(tries)]
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
