"""An attempt to refute ourselves: every registered test again, with one thing changed at a time.

An attack changes the networks, the epochs, the null, the measure, the performance or the statistic (see
:mod:`nbutils.sceptic`), and keeps the rest of the test as :mod:`nbutils.hypotheses` has it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from nbutils.arguments import checked
from nbutils.arrays import as_frame, shown
from nbutils.conclusions import counted
from nbutils.confounds import GIVEN, held_fixed_table
from nbutils.display import format_number
from nbutils.evidence import RULES, Evidence, verdict
from nbutils.hypotheses import TESTS, as_judged, evaluate_test, is_between, rows_of
from nbutils.results import Results, as_results
from nbutils.sceptic import PRIMARY, Attack, plan_attacks, with_living
from nbutils.stats import bootstrap_interval, sign_flip

__all__ = ["attacks", "flip_table", "kind_table", "registered_tests", "survival", "survival_sentences"]

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
