"""Robustness of the verdicts: perturbed data and rules, and negative controls on simulated studies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nbutils.data.datasets import label_noise, title_of
from nbutils.drawing.display import INK, figure_style, in_figure
from nbutils.pages.figures import OUTCOMES
from nbutils.stats import bootstrap_interval, sign_flip
from nbutils.study.conclusions import GIVEN, held_fixed_table
from nbutils.study.hypotheses import (
    RULES,
    TESTS,
    Evidence,
    as_judged,
    evaluate_test,
    is_between,
    rows_of,
    saturation,
    verdict,
)
from nbutils.study.perturbations import PRIMARY, Perturbation, plan_perturbations, with_active
from nbutils.study.results import CONDITIONS, NOISE_LEVELS, Results, as_results
from nbutils.support.arguments import checked
from nbutils.support.checks import as_count, as_rng, is_among, shown

__all__ = [
    "SCENARIOS",
    "control_outcomes",
    "flip_map",
    "outcome_matrix",
    "perturbations",
    "reference_tests",
    "simulated_study",
]

DRAWS = 999
COLUMNS = (
    *("dataset", "hypothesis", "test", "kind", "perturbation", "detail", "estimate", "low", "high", "p"),
    *("outcome", "reference", "flipped", "verdict", "moved"),
)


@checked
def perturbations(results: Results) -> pd.DataFrame:
    """Every pre-specified test of one data set again, with one thing changed in every way that its tables allow.

    All outcomes, the pre-specified ones too, are judged by the p value as it is. A correction for many tests would mix
    what a perturbation does with what the correction does. Where the pre-specified test has too few runs, so has every
    perturbation; elsewhere one counts as having enough, though it may have left out half of them. Of those that leave
    out one network or one noise level in turn only the most harmful is kept: one that flips the outcome, or else the
    one that moves the estimate most.

    Args:
        results: of one data set.

    Returns:
        One row per test and perturbation: `dataset`, `hypothesis`, `test`, `kind`, `perturbation`, `detail` (what was
        left out), `estimate`, `low`, `high` (95 % interval), `p` (NaN where the interval judges alone), `outcome`,
        `reference` (outcome of the test as pre-specified), `flipped` (the two differ), `verdict` (of the hypothesis,
        with this outcome in place of the reference), `moved` (that verdict is another one). No row for a test that was
        not planned.

    References:
        Steegen, Tuerlinckx, Gelman and Vanpaemel (2016), doi:10.1177/1745691616658637.
    """
    results = as_judged(as_results(results))
    tests, rows, results = reference_tests(results), [], with_active(results)
    for test, base in tests.items():
        own = [e for e in tests.values() if e.hypothesis == base.hypothesis]
        for one, detail, evidence in _perturbed(test, base, rows_of(results, test)) if base.planned else ():
            judged = _judged(evidence, base.enough)
            word = verdict([judged if e.test == test else e for e in own])
            names = results.dataset, base.hypothesis, test, one.kind, one.name, detail
            numbers = judged.estimate, judged.low, judged.high, judged.p_value
            flipped, moved = judged.outcome != base.outcome, word != verdict(own)
            rows.append((*names, *numbers, judged.outcome, base.outcome, flipped, word, moved))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def reference_tests(results: Results) -> dict[str, Evidence]:
    """The pre-specified tests of one data set, by name, judged by the p value as it is."""
    if results.table.empty:
        return {}
    found, ceiling = {test: evaluate_test(test, rows_of(results, test)) for test in TESTS}, saturation(results)
    known = {test: replace(e, saturated=ceiling * (e.hypothesis == "H3")) for test, e in found.items() if e is not None}
    return {test: _judged(e, e.enough) for test, e in known.items()}


def outcome_matrix(table: pd.DataFrame) -> Figure:
    """Which perturbations flip which outcome: a row per perturbation, a column per data set.

    Each test begins with the row of its reference outcome. Colour and shape: outcome. Shaded: an outcome that is not
    the reference; framed: one that changes the verdict, too.

    Args:
        table: rows of :func:`perturbations`, best those of one hypothesis.

    Returns:
        The figure.

    Raises:
        ValueError: the table has no rows.
    """
    if table.empty:
        raise ValueError("table must have at least one row, received none")
    names = list(dict.fromkeys(table["dataset"]))
    reference = table.drop_duplicates(["dataset", "test"]).assign(
        perturbation="as pre-specified", flipped=False, moved=False
    )
    whole = pd.concat([reference.assign(outcome=reference["reference"]), table])
    rows = [(test, name) for test, own in whole.groupby("test") for name in ("", *dict.fromkeys(own["perturbation"]))]
    with figure_style():
        fig, ax = plt.subplots(figsize=(3.4 + 0.75 * len(names), 0.9 + 0.2 * len(rows)))
        for item in whole.itertuples():
            x, y = names.index(item.dataset), rows.index((item.test, item.perturbation))
            colour, marker, size = OUTCOMES[item.outcome]
            if item.flipped:
                edge = {"edgecolor": INK if item.moved else "none", "facecolor": f"{colour}38"}
                ax.add_patch(plt.Rectangle((x - 0.42, y - 0.46), 0.84, 0.92, lw=1.1, **edge))
            ax.scatter(x, y, marker=marker, s=size, color=colour, linewidths=0)
        labels = [name or test for test, name in rows]
        ax.set(yticks=range(len(rows)), xlim=(-0.6, len(names) - 0.4), ylim=(len(rows) - 0.4, -0.6))
        ax.set_yticklabels(labels, fontsize=8.5)
        for label, (_, name) in zip(ax.get_yticklabels(), rows, strict=True):
            label.set_fontweight("normal" if name else "bold")
        titles = [in_figure(title_of(name)) for name in names]
        ax.set_xticks(range(len(names)), titles, rotation=30, ha="left", fontsize=8.5)
        ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
        ax.grid(visible=False)
        ax.spines[["left", "bottom"]].set_visible(False)
        shown = [word for word in OUTCOMES if word in set(whole["outcome"])]
        handles = [
            Line2D([], [], ls="", color=OUTCOMES[word][0], marker=OUTCOMES[word][1], ms=6.5, mew=0, label=word)
            for word in shown
        ]
        fig.legend(handles=handles, loc="outside lower center", ncols=len(handles))
        plt.close(fig)
    return fig


def flip_map(table: pd.DataFrame) -> Figure:
    """Heat map of the share of perturbations that flip an outcome, by what they change.

    Args:
        table: rows of :func:`perturbations` of all data sets, with an outcome each.

    Returns:
        A row per kind of change, a column per hypothesis and data set; empty where there is no such perturbation.

    Raises:
        ValueError: there is no row.
    """
    if table.empty:
        raise ValueError("table must hold at least one row, received none")
    shares = table.pivot_table("flipped", "kind", ["hypothesis", "dataset"], aggfunc="mean", sort=False).astype(float)
    shares = shares.sort_index(axis=1, level=0, sort_remaining=False)
    with figure_style():
        fig, ax = plt.subplots(figsize=(7.6, 0.32 * len(shares) + 1.6))
        names = [in_figure(f"{hypothesis} {title_of(name)}") for hypothesis, name in shares.columns]
        look = {"vmin": 0, "vmax": 1, "cmap": "Oranges", "annot": True, "fmt": ".1f", "annot_kws": {"size": 8}}
        sns.heatmap(shares, ax=ax, xticklabels=names, **look)
        ax.set(xlabel="", ylabel="")
        ax.tick_params(axis="x", rotation=90)
        plt.close(fig)
    return fig


def _judged(found: Evidence, enough: bool) -> Evidence:
    return replace(found, adjusted=found.p_value, enough=enough)


def _perturbed(test: str, base: Evidence, rows: pd.DataFrame) -> Iterator[tuple[Perturbation, str, Evidence]]:
    """Each perturbation that can be made, what it left out, and what came out."""
    again = Perturbation("chance", f"{DRAWS} random draws, not 9,999")
    for one in [again, *plan_perturbations(test, rows, base.threshold)]:
        if found := evaluate_test(test, one.change(rows), draws=DRAWS, **one.options):
            yield one, "", replace(found, threshold=base.threshold if one.threshold is None else one.threshold)
    yield from _one_left_out(test, base, rows)
    if is_between(test):
        yield from _against_the_rest(base, rows)
        for row in held_fixed_table(rows, PRIMARY[base.hypothesis]).itertuples():
            found = replace(base, estimate=row.rho, low=row.low, high=row.high, p_value=float("nan"))
            yield Perturbation("held fixed", GIVEN[row.given]), "", found


def _one_left_out(test: str, base: Evidence, rows: pd.DataFrame) -> Iterator[tuple[Perturbation, str, Evidence]]:
    column, word = ("noise", "noise level") if is_between(test) else ("seed", "network")
    found = {k: evaluate_test(test, rows[rows[column] != k], draws=DRAWS) for k in sorted(rows[column].unique())}
    found = {k: e for k, e in found.items() if e is not None and e.planned}
    if len(found) > 1:
        harm = {
            k: (_judged(e, base.enough).outcome != base.outcome, abs(e.estimate - base.estimate))
            for k, e in found.items()
        }
        worst = max(found, key=harm.get)
        yield Perturbation("networks", f"any one {word} left out"), f"without {column} {worst:g}", found[worst]


def _against_the_rest(base: Evidence, rows: pd.DataFrame) -> Iterator[tuple[Perturbation, str, Evidence]]:
    """True labels against the mean of all other levels, in units of the measure, paired by seed."""
    last = rows[rows["epoch"] == rows["epoch"].max()]
    wide = last.pivot(index="seed", columns="noise", values=PRIMARY[base.hypothesis]).dropna()
    if 0.0 in wide and len(wide) > 1:
        beyond = wide[0.0] - wide.drop(columns=0.0).mean(axis=1)
        low, high = bootstrap_interval(beyond, np.random.default_rng(RULES.seed), level=RULES.level, draws=DRAWS)
        alternative = "greater" if base.direction > 0 else "less"
        p_value = sign_flip(beyond, np.random.default_rng(RULES.seed), alternative=alternative).p_value
        found = replace(base, estimate=float(beyond.mean()), low=low, high=high, p_value=p_value)
        yield Perturbation("statistic", "true labels against the rest"), "difference, not ρ", found


CONTROL_DRAWS = 499
MOST_SEEDS, MOST_EPOCHS = 1000, 10_000  # as of a study
SCENARIOS = {
    "performance": "modularity follows each network's test accuracy",
    "noise level": "modularity follows the level of label noise, whatever the accuracy",
    "nothing": "modularity is noise",
}

Break = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


@checked
def control_outcomes(results: Results, tries: int = 20) -> pd.DataFrame:
    """Negative controls: the pre-specified tests of one data set on tables in which what they look for was destroyed.

    Between networks: the accuracies of noise levels change places. Within a run: a network gets another's accuracies,
    or its epochs are shuffled. Both: noise in place of the measure. H1: in some networks, at random, what is compared
    changes places. All else stays; as in :func:`perturbations`, p values are not corrected.

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
        usual = None if table.empty else evaluate_test(test, table, draws=CONTROL_DRAWS)
        if usual is None or not usual.enough:
            continue
        for name, broken in _breaks(test).items():
            rng = np.random.default_rng([RULES.seed, place, *name.encode()])
            found = [evaluate_test(test, broken(table, rng), draws=CONTROL_DRAWS) for _ in range(tries)]
            outcomes = [replace(e, adjusted=e.p_value, enough=True).outcome for e in found if e is not None]
            rows.append((results.dataset, test, name, len(outcomes), *map(outcomes.count, ("passes", "opposite"))))
    return pd.DataFrame(rows, columns=["dataset", "test", "control", "tries", "passes", "opposite"])


@checked
def simulated_study(
    scenario: str, rng: np.random.Generator | int, seeds: int = RULES.seeds, epochs: int = 6
) -> Results:
    """A study whose answer is known, to see what the tests make of it.

    Every network has a test and a training accuracy, which label noise lowers and chance shifts. Its modularity follows
    what the scenario says. Its pattern entropy is 8 - 10 Q, so that H3 is as true as H2. The untrained networks have no
    communities beyond the null, the trained ones have.

    Args:
        scenario: one of `SCENARIOS`.
        rng: source of randomness: a generator, or a seed.
        seeds: networks per label condition, at most 1,000; half as many at the other levels of label noise.
        epochs: trained epochs, at most 10,000.

    Returns:
        The results of a data set called "simulated".

    Raises:
        ValueError: there is no such scenario, or `seeds`, `epochs` or `rng` is out of range.

    Examples:
        >>> study = simulated_study("performance", np.random.default_rng(0))
        >>> round(evaluate_test("H2b", study.noise_grid()).estimate, 1)
        1.0
    """
    if not is_among(scenario, tuple(SCENARIOS)):
        raise ValueError(f"scenario must be one of {', '.join(SCENARIOS)}, received {shown(scenario)}")
    rng, seeds = as_rng(rng), as_count(seeds, "seeds", most=MOST_SEEDS)
    epochs = as_count(epochs, "epochs", most=MOST_EPOCHS)
    networks = [(n, s) for n in NOISE_LEVELS for s in range(seeds if n in CONDITIONS else seeds // 2)]
    table = pd.concat([_simulated(scenario, *one, epochs, rng) for one in networks], ignore_index=True)
    parts = pd.Series(np.where(table["labels"].isin(CONDITIONS), "conditions", ""))
    table = table.assign(dataset="simulated", parts=parts + np.where(table["seed"] < seeds // 2, " noise", ""))
    return Results("simulated", table, table[["labels", "parts"]], {}, {})


def _simulated(scenario: str, labels: str, seed: int, epochs: int, rng: np.random.Generator) -> pd.DataFrame:
    """One network of a simulated study, epoch by epoch."""
    noise, epoch = label_noise(labels), np.arange(epochs + 1)
    trained = epoch > 0
    shift = rng.normal(0, 0.03) + rng.normal(0, 0.03, (2, epochs + 1))
    accuracy, given = 0.1 + trained * (0.5 + 0.3 * epoch / epochs - 0.5 * noise) + shift
    follows = {
        "performance": 0.3 * accuracy,
        "noise level": trained * (0.3 - 0.2 * noise),
        "nothing": 0.2 * trained,
    }
    q = 0.3 + follows[scenario] + rng.normal(0, 0.002 if scenario == "performance" else 0.02, epochs + 1)
    known = {"labels": labels, "noise": noise, "seed": seed, "epoch": epoch, "modularity": q}
    known |= {"test_accuracy": accuracy, "train_accuracy": given, "train_loss": 1 - given}
    known |= {"pattern_entropy": 8 - 10 * q, "mean_cofiring": rng.normal(size=epochs + 1), "null_circular": 0.3}
    return pd.DataFrame(known | {"well_defined": 4 + 3 * trained + rng.integers(0, 2, epochs + 1)})


def _breaks(test: str) -> Mapping[str, Break]:
    """The negative controls of one test."""
    if test == "H1a null":
        return {"real and shuffled firing swapped": _swap_null}
    if test.startswith("H1"):
        return {"trained and untrained swapped": _swap_ends}
    column = PRIMARY[test[:2]]
    if is_between(test):
        return {"noise levels permuted": _permute_levels, "noise for the measure": partial(_noise, column)}
    return {
        "another network's accuracy": _permute_networks,
        "epochs shuffled": partial(_shuffled, column),
        "noise for the measure": partial(_noise, column),
    }


def _noise(column: str, rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return rows.assign(**{column: rng.normal(size=len(rows))})


def _shuffled(column: str, rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    trained = rows[rows["epoch"] > 0]
    return trained.assign(**{column: trained.groupby("seed")[column].transform(rng.permutation)})


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
