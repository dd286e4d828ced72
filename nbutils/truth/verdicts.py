"""What a statistic can be trusted for: claims, thresholds and words, fixed before the networks that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from nbutils.evaluation.words import t_interval
from nbutils.support.provenance import digest_of
from nbutils.truth.planted import TASKS
from nbutils.truth.power import Area, Share, area_under_curve, exceeding

__all__ = [
    "CLAIMS",
    "PLANTED_RULES",
    "WORDS",
    "Claim",
    "PlantedRules",
    "area_table",
    "claim_scores",
    "claim_table",
    "found_table",
    "own_remainders",
    "sound",
    "word_of_areas",
    "word_of_rates",
]

WORDS = ("trusted", "not trusted", "undecided")
TWO = ("independent", "glyph-font")  # two planted modules
ONE = ("none", "twice", "glyph")  # the same pictures, no second module
TRAINED = tuple(name for name, task in TASKS.items() if task.trained)


@dataclass(frozen=True)
class Claim:
    """A statistic at a threshold, and where it should raise an alarm and where not.

    Attributes:
        asks: what an alarm is taken to say.
        statistic: column of the rows of kind "state".
        threshold: that it must exceed.
        positive: (state, tasks) in which what it says is true by construction.
        negative: (state, tasks) in which it is false by construction.
    """

    asks: str
    statistic: str
    threshold: float
    positive: tuple[str, tuple[str, ...]]
    negative: tuple[str, tuple[str, ...]]


GROUPED = "neurons fire in groups at all"
BEYOND = "neurons fire together beyond the classes: groups planted at random"
ALIGNED = "neurons fire together beyond the classes: groups planted along the sides"
HIDDEN = "neurons fire together beyond the class: a second label that is not known"
SECOND = "there is a second module"
CLAIMS: Mapping[str, Claim] = {
    "groups, Q beyond chance": Claim(GROUPED, "excess", 0.05, ("network", TRAINED), ("shifted", TRAINED)),
    "random groups, remainder": Claim(BEYOND, "remainder", 0.02, ("groups 0.3", TRAINED), ("shuffled", TRAINED)),
    "random groups, left over": Claim(BEYOND, "left", 0.02, ("groups 0.3", TRAINED), ("shuffled", TRAINED)),
    "sides, remainder": Claim(ALIGNED, "remainder", 0.02, ("sides 0.3", TWO), ("shuffled", TWO)),
    "sides, left over": Claim(ALIGNED, "left", 0.02, ("sides 0.3", TWO), ("shuffled", TWO)),
    "hidden label, remainder": Claim(HIDDEN, "remainder", 0.02, ("second hidden", TWO), ("shuffled", TWO)),
    "hidden label, left over": Claim(HIDDEN, "left", 0.02, ("second hidden", TWO), ("shuffled", TWO)),
    "second module, Q beyond chance": Claim(SECOND, "excess", 0.05, ("network", TWO), ("network", ONE)),
    "second module, remainder": Claim(SECOND, "remainder", 0.02, ("network", TWO), ("network", ONE)),
    "second module, left over": Claim(SECOND, "left", 0.02, ("network", TWO), ("network", ONE)),
}


@dataclass(frozen=True)
class PlantedRules:
    """How words are given; fixed before the networks.

    Attributes:
        power: share of alarms where something is, of which the interval must lie above.
        false: share of alarms where nothing is, of which the interval must lie below.
        area: area under the ROC curve, of which the interval must lie above.
        agreement: mean agreement with the planted modules, of which the interval must lie above.
        level: confidence of all intervals.
        networks: sound networks of a task without which it decides nothing.
        statistics: of every construction, that are asked to tell networks with a second module from those without.
    """

    power: float = 0.8
    false: float = 0.1
    area: float = 0.8
    agreement: float = 0.5
    level: float = 0.95
    networks: int = 8
    statistics: tuple[str, ...] = ("modularity", "excess", "remainder", "two")

    @property
    def digest(self) -> str:
        """By which a page names the rules."""
        claims = {name: asdict(one) for name, one in CLAIMS.items()}
        return digest_of({**asdict(self), "claims": claims, "tasks": {k: asdict(v) for k, v in TASKS.items()}})


PLANTED_RULES = PlantedRules()
KEYS = ["graph", "rule", "density", "layer", "resolution"]  # of a construction at a resolution


def sound(table: pd.DataFrame, rules: PlantedRules = PLANTED_RULES) -> pd.DataFrame:
    """Rows of networks that finished and are not degenerate, of tasks that have enough of them.

    A column `two` is added: minus the distance of the number of communities from two.
    """
    good = table[(table["reason"] == "") & (table["degenerate"] == 0)]
    count = good.groupby("task")["seed"].nunique()
    good = good[good["task"].isin(count.index[count >= rules.networks])]
    return good.assign(two=-(good["communities"] - 2).abs())


def word_of_rates(power: Share, false: Share, rules: PlantedRules = PLANTED_RULES) -> str:
    """The word for a statistic at a threshold.

    Examples:
        >>> from nbutils.truth.power import share_interval
        >>> word_of_rates(share_interval(40, 40), share_interval(0, 40))
        'trusted'
        >>> word_of_rates(share_interval(40, 40), share_interval(30, 40))
        'not trusted'
        >>> word_of_rates(share_interval(0, 0), share_interval(0, 40))
        'undecided'
    """
    if not power.networks or not false.networks:
        return WORDS[2]
    if power.low > rules.power and false.high < rules.false:
        return WORDS[0]
    return WORDS[1] if power.high < rules.power or false.low > rules.false else WORDS[2]


def word_of_areas(areas: Sequence[Area], rules: PlantedRules = PLANTED_RULES) -> str:
    """The word for a statistic that must tell networks apart in all families of pictures.

    Examples:
        >>> word_of_areas([Area(0.95, 0.9, 1.0), Area(0.9, 0.82, 0.95)]), word_of_areas([Area(0.5, 0.4, 0.6)])
        ('trusted', 'not trusted')
    """
    if any(one.high < rules.area for one in areas):
        return WORDS[1]
    return WORDS[0] if areas and all(one.low > rules.area for one in areas) else WORDS[2]


def claim_scores(table: pd.DataFrame, claim: Claim) -> tuple[np.ndarray, np.ndarray]:
    """Scores of a claim's statistic where it should raise an alarm, and where not.

    Args:
        table: rows of sound networks.
        claim: which statistic, and where.
    """
    own = table[table["kind"] == "state"]
    found = [
        own.loc[(own["state"] == state) & own["task"].isin(tasks), claim.statistic].dropna().to_numpy()
        for state, tasks in (claim.positive, claim.negative)
    ]
    return found[0], found[1]


def claim_table(table: pd.DataFrame, rules: PlantedRules = PLANTED_RULES) -> pd.DataFrame:
    """Power and false alarms of every claim at the book's thresholds, with its area and word.

    Args:
        table: of the experiment.
        rules: when a statistic is trusted.

    Returns:
        One row per key of `CLAIMS`: `claim`, `asks`, `statistic`, `threshold`; `power`, `false` and `area`, each with
        `_low` and `_high`; `positive` and `negative`, numbers of networks; `word`.
    """
    good, rows = sound(table, rules), []
    for name, claim in CLAIMS.items():
        there, absent = claim_scores(good, claim)
        shares = [exceeding(scores, claim.threshold, rules.level) for scores in (there, absent)]
        row: dict[str, Any] = {"claim": name, "asks": claim.asks, "statistic": claim.statistic}
        row |= {"threshold": claim.threshold, "positive": len(there), "negative": len(absent)}
        for word, one in zip(("power", "false"), shares, strict=True):
            row |= {word: one.value, f"{word}_low": one.low, f"{word}_high": one.high}
        if len(there) and len(absent):
            area = area_under_curve(there, absent, level=rules.level)
            row |= {"area": area.value, "area_low": area.low, "area_high": area.high}
        rows.append(row | {"word": word_of_rates(*shares, rules)})
    return pd.DataFrame(rows)


def area_table(
    table: pd.DataFrame, rules: PlantedRules = PLANTED_RULES, seeds: Sequence[int] | None = None
) -> pd.DataFrame:
    """How well every construction tells networks with a second module from those without, family by family.

    Args:
        table: of the experiment.
        rules: which statistics, and when one is trusted.
        seeds: of the networks that are looked at; None takes all.

    Returns:
        One row per construction, resolution and statistic: the area in each family with `_low` and `_high`, `least` of
        them, and the `word`.
    """
    rows, areas = [], dict[tuple[Any, ...], dict[str, Any]]()
    for key, family, statistic, *sides in construction_scores(table, rules.statistics, rules, seeds):
        own = areas.setdefault((*key, statistic), {})
        own[family] = area_under_curve(*sides, level=rules.level)
    families = dict.fromkeys(family for own in areas.values() for family in own)
    for key, own in areas.items():
        if len(own) == len(families):
            row = dict(zip([*KEYS, "statistic"], key, strict=True))
            for family, area in own.items():
                row |= {family: area.value, f"{family}_low": area.low, f"{family}_high": area.high}
            least = min(area.value for area in own.values())
            rows.append(row | {"least": least, "word": word_of_areas(list(own.values()), rules)})
    return pd.DataFrame(rows)


def construction_scores(
    table: pd.DataFrame,
    statistics: Sequence[str],
    rules: PlantedRules = PLANTED_RULES,
    seeds: Sequence[int] | None = None,
) -> Iterator[tuple[tuple[Any, ...], str, str, np.ndarray, np.ndarray]]:
    """What every construction says of networks with a second module and of those without.

    Args:
        table: of the experiment.
        statistics: columns.
        rules: which networks are sound.
        seeds: of the networks that are looked at; None takes all.

    Yields:
        (construction and resolution, values of `KEYS`; family of tasks; statistic; scores of networks with two modules;
        scores of those with one), where all are defined.
    """
    good = sound(table, rules)
    own = good[(good["kind"] == "construction") & (good["seed"].isin(seeds) if seeds is not None else True)]
    own = own.reset_index(drop=True)
    values = own[list(statistics)].to_numpy(float)
    families = [name for name in dict.fromkeys(task.family for task in TASKS.values()) if name]
    of_role = {
        (family, role): own["task"]
        .isin([n for n, t in TASKS.items() if (t.family, t.role) == (family, role)])
        .to_numpy()
        for family in families
        for role in ("positive", "negative")
    }
    for key, group in own.groupby(KEYS, sort=False):
        rows = group.index.to_numpy()
        for column, statistic in enumerate(statistics):
            for family in families:
                sides = [values[rows[of_role[family, role][rows]], column] for role in ("positive", "negative")]
                if all(len(side) and not np.isnan(side).any() for side in sides):
                    yield key, family, statistic, *sides


def found_table(
    table: pd.DataFrame, tasks: Sequence[str], column: str = "ami", rules: PlantedRules = PLANTED_RULES
) -> pd.DataFrame:
    """Mean agreement of every construction's communities with the planted modules, task by task.

    Args:
        table: of the experiment.
        tasks: with two modules.
        column: "ami" with sides, or "graded".
        rules: when modules count as found.

    Returns:
        One row per construction, resolution and task: `networks` with a value, `mean`, `low`, `high`, share of networks
        with exactly `two` communities, and the `word`; with fewer networks than the rules ask for it is undecided.
    """
    good, rows = sound(table, rules), []
    own = good[good["kind"].isin(["construction", "control"]) & good["task"].isin(tasks)]
    for key, group in own.groupby([*KEYS, "task"], sort=False, dropna=False):
        values = group[column].dropna().to_numpy()
        low, high = t_interval(values, rules.level)
        row = dict(zip([*KEYS, "task"], key, strict=True)) | {"networks": len(values), "low": low, "high": high}
        word = WORDS[0] if low > rules.agreement else WORDS[1] if high < rules.agreement else WORDS[2]
        row |= {"mean": values.mean() if len(values) else np.nan, "two": (group["two"] == 0).mean()}
        rows.append(row | {"word": word if len(values) >= rules.networks else WORDS[2]})
    return pd.DataFrame(rows)


def in_words(table: pd.DataFrame) -> pd.DataFrame:
    """A table of constructions as a page shows it: titles of tasks, and words for rules of firing and for layers."""
    rules = {"top-decile": "top 10 %"} | {f"top:{share:g}": f"top {100 * share:.0f} %" for share in (0.05, 0.2)}
    words = {"rule": table["rule"].replace(rules), "layer": table["layer"].map({0: "all", 1: "one by one"})}
    return table.assign(**words).rename(columns={name: task.title for name, task in TASKS.items()})


def own_remainders(table: pd.DataFrame, rules: PlantedRules = PLANTED_RULES) -> pd.DataFrame:
    """What the networks themselves have beyond the classes, task by task: by the book's remainder, and left over.

    Returns:
        One row per task: `networks`, and of `excess`, `remainder` and `left` the mean with `_low` and `_high`.
    """
    good, rows = sound(table, rules), []
    own = good[(good["kind"] == "state") & (good["state"] == "network")]
    for task, group in own.groupby("task", sort=False):
        row: dict[str, Any] = {"task": task, "networks": len(group)}
        for name in ("excess", "remainder", "left"):
            low, high = t_interval(group[name].dropna().to_numpy(), rules.level)
            row |= {name: group[name].mean(), f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return pd.DataFrame(rows)
