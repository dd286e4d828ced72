"""What someone who doubts the answer on cause would ask of its table; none of it decides a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from nbutils.drawing.display import interval_text
from nbutils.evaluation.mediation import LEAST, Mediation, mediate
from nbutils.evaluation.words import ALPHA, equivalence_test, t_interval
from nbutils.experiments.causes import (
    CAUSE_RULES,
    COEFFICIENTS,
    CONTROLS,
    DIRECTIONS,
    PUSHED,
    REGULARISERS,
    CauseRules,
    cause_verdicts,
    chosen_dose,
    differences_at,
    dose_table,
)
from nbutils.experiments.effects import paired, sound_trials
from nbutils.second.elsewhere import CHOICES

__all__ = [
    "WAITING",
    "answer_table",
    "at_equal_training",
    "by_products",
    "changes_from_none",
    "control_effects",
    "farthest_at_equal_accuracy",
    "finished_seeds",
    "mediations",
    "moved_elsewhere",
    "plainly",
    "shares_elsewhere",
    "side_by_side",
    "spans",
    "told_elsewhere",
    "verdicts_so_far",
]

WAITING = "too few networks"
GROUP = ["dataset", "labels"]
# Pushed measure -> what a sentence calls it; verdict -> a sentence about measures and places.
CALLED = {
    "modularity": "modularity of communities",
    "learned": "modularity of a learned partition",
    "entropy": "entropy of firing",
}
SENTENCES = {
    "a cause": "Accuracy follows {} on {}, pushed up and down: a cause.",
    "a by-product": "Accuracy does not follow {} on {}, pushed up or down: a by-product.",
    "up: not moved; down: not moved": "No penalty moves {} far enough for an answer on {}.",
    WAITING: "Too few networks for an answer about {} on {}.",
}


def finished_seeds(table: pd.DataFrame) -> pd.Series:
    """Seeds of which every network of the design has been trained, sound or not, by data set and label condition.

    Args:
        table: of the experiment *cause*, which grows seed by seed.
    """
    design = 1 + len(REGULARISERS) + len((*PUSHED, *CONTROLS)) * len(COEFFICIENTS)
    return (table.groupby([*GROUP, "seed"], sort=False).size() >= design).groupby(level=GROUP, sort=False).sum()


def verdicts_so_far(table: pd.DataFrame, rules: CauseRules = CAUSE_RULES) -> pd.DataFrame:
    """Verdicts where there are networks enough for one, the words "too few networks" elsewhere.

    Args:
        table: of the experiment *cause*, which grows seed by seed.
        rules: its `least` is how many seeds must be finished.

    Returns:
        See :func:`nbutils.experiments.causes.cause_verdicts`; of data sets and label conditions that are not far
        enough, rows with `networks` (finished seeds) and no other number. They do not count when p values are
        corrected.
    """
    seeds, rows = finished_seeds(table), []
    if ready := [key for key, number in seeds.items() if number >= rules.least]:
        known = pd.MultiIndex.from_frame(table[GROUP]).isin(ready)
        rows = cause_verdicts(table[known], rules).to_dict("records")
    names = "dose", "moved", "effect", "low", "high", "p_value", "adjusted", "beyond", "beyond_low"
    nothing = dict.fromkeys((*names, "beyond_usual", "beyond_usual_low"), float("nan"))
    nothing |= {"best_control": "", "word": WAITING, "verdict": WAITING}
    rows += [
        dict(zip(GROUP, key, strict=True)) | {"penalty": name, "direction": way, "networks": number} | nothing
        for key, number in seeds.items()
        if key not in ready
        for name in PUSHED
        for way in DIRECTIONS
    ]
    return pd.DataFrame(rows)


def plainly(verdicts: pd.DataFrame, where: Mapping[tuple[str, str], str]) -> str:
    """The verdicts in sentences; measures that have the same verdict in the same places share one.

    Args:
        verdicts: see :func:`verdicts_so_far`.
        where: (data set, label condition) -> what a sentence calls them.

    Returns:
        Also, where there are gains with redrawn labels, how many of them count by rule 5.
    """
    shared: dict[tuple[str, str], list[str]] = {}
    for (penalty, verdict), own in verdicts.groupby(["penalty", "verdict"], sort=False):
        places = dict.fromkeys(where[row.dataset, row.labels] for row in own.itertuples())
        shared.setdefault((verdict, _listed([*places])), []).append(CALLED[penalty])
    told = [SENTENCES[v].format(_listed(names), at) for (v, at), names in shared.items() if v in SENTENCES]
    if other := [f"{_listed(names)} on {at} ({v})" for (v, at), names in shared.items() if v not in SENTENCES]:
        told.append(f"No verdict on {'; nor on '.join(other)}.")
    gains = verdicts[(verdicts["labels"] != "true") & (verdicts["low"] > 0) & (verdicts["adjusted"] <= ALPHA)]
    if count := len(gains):
        more = int((gains["beyond_usual_low"] > 0).sum())
        rest = "the rest is regularisation" if more < count else "none is mere regularisation"
        told.append(
            f"Of gains with redrawn labels, {more} of {count} exceed usual regularisers; {rest}."
            if more
            else "No gain with redrawn labels exceeds those of usual regularisers: all are regularisation."
        )
    return " ".join(told)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def answer_table(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Both directions of what is pushed side by side, as text.

    Args:
        verdicts: see :func:`verdicts_so_far`.

    Returns:
        One row per data set, label condition and pushed measure: effect on accuracy, interval and word `up` and `down`,
        and `verdict`, "none" where that is but both words.
    """
    told = [f"{interval_text(r.effect, r.low, r.high, 3)}, **{r.word}**" for r in verdicts.itertuples()]
    ways = {way: own["told"].to_numpy() for way, own in verdicts.assign(told=told).groupby("direction")}
    first = verdicts.loc[verdicts["direction"] == "up", [*GROUP, "penalty", "verdict"]].reset_index(drop=True)
    first["verdict"] = first["verdict"].where(first["verdict"].isin(list(SENTENCES)), "none")
    return first.assign(up=ways["up"], down=ways["down"])[[*GROUP, "penalty", "up", "down", "verdict"]]


def changes_from_none(doses: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Doses with columns as differences from dose 0 of the same seed; NaN where that is missing.

    Args:
        doses: see :func:`nbutils.experiments.causes.dose_table`, `dataset` being anything that tells tables apart.
        columns: what is compared.
    """
    key = ["dataset", "condition", "seed"]
    changed, zero = doses.set_index(key), doses[doses["dose"] == 0].set_index(key)
    changed[[*columns]] -= zero[[*columns]].reindex(changed.index)
    return changed.reset_index()


def control_effects(table: pd.DataFrame, rules: CauseRules = CAUSE_RULES) -> pd.DataFrame:
    """Effects on test accuracy of controls, each at its own dose, and of usual regularisers.

    Args:
        table: of the experiment *cause*.
        rules: by which doses are chosen.

    Returns:
        One row per data set, label condition, control and direction, or regulariser: `dose` (NaN: not moved), `moved`,
        `networks`, `effect`, `low`, `high`, and whether two one-sided tests put it `within` the bound of the rules.
    """
    rows, numbers = [], ["dose", "moved", "networks", "effect", "low", "high", "within"]
    for key, part in sound_trials(table).groupby(GROUP, sort=False):
        doses = dose_table(part)
        for name, column in CONTROLS.items():
            for way in DIRECTIONS:
                dose = chosen_dose(doses, name, way, rules)
                effect = differences_at(doses, name, dose, "accuracy").to_numpy()
                moved = differences_at(doses, name, dose, column).mean()
                rows.append((*key, name, way, dose, moved, *_mean_and_ends(effect, rules)))
        for name in REGULARISERS:
            effect = paired(part, name, "none", "accuracy")
            rows.append((*key, name, "", np.nan, np.nan, *_mean_and_ends(effect, rules)))
    return pd.DataFrame(rows, columns=[*GROUP, "condition", "direction", *numbers])


def _mean_and_ends(effect: np.ndarray, rules: CauseRules) -> tuple[int, float, float, float, bool]:
    """How many, their mean, its interval, and whether it is equivalent to 0; NaN where they are too few."""
    if len(effect) < rules.least:
        return len(effect), np.nan, np.nan, np.nan, False
    _, (low, high) = equivalence_test(effect, rules.bound, rules.level)
    within = bool(-rules.bound < low <= high < rules.bound)
    return len(effect), float(effect.mean()), *t_interval(effect, rules.level), within


def at_equal_training(
    table: pd.DataFrame, usual: str = "dropout 0.3", slack: float = 0.02, rules: CauseRules = CAUSE_RULES
) -> pd.DataFrame:
    """Test accuracy beside that of a usual regulariser which fits the given labels as well.

    With wrong labels, whatever keeps a network from fitting them helps on the test. So a gain is one of *what* was
    pushed only if it is there among networks that fit their labels equally well.

    Args:
        table: of the experiment *cause*.
        usual: key of `REGULARISERS`.
        slack: of mean training accuracy.
        rules: level of the intervals, and how many pairs it takes.

    Returns:
        One row per data set, label condition and penalty, at the dose whose mean training accuracy is nearest to that
        of `usual`, where it lies within `slack`: `dose`, `networks` (pairs of a seed), `train_accuracy` and `accuracy`
        of the penalty, `usual_train` and `usual_accuracy`, and the `difference` in test accuracy (penalty minus usual)
        with `low` and `high`.
    """
    rows, both = [], ["train_accuracy", "accuracy"]
    for key, part in sound_trials(table).groupby(GROUP, sort=False):
        other = part[part["condition"] == usual].set_index("seed")[both]
        for name in (*PUSHED, *CONTROLS):
            own = part[part["condition"] == name]
            fits = own.groupby("dose").filter(lambda dose: len(dose) >= rules.least).groupby("dose")["train_accuracy"]
            gaps = (fits.mean() - other["train_accuracy"].mean()).abs()
            if gaps.empty or not gaps.min() <= slack:
                continue
            at = own[own["dose"] == gaps.idxmin()].set_index("seed")[both]
            pairs = at.join(other, rsuffix="_usual", how="inner")
            difference = (pairs["accuracy"] - pairs["accuracy_usual"]).to_numpy()
            if len(difference) >= rules.least:
                means = *pairs.mean(), difference.mean(), *t_interval(difference, rules.level)
                rows.append((*key, name, gaps.idxmin(), len(pairs), *means))
    names = [*both, "usual_train", "usual_accuracy", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=[*GROUP, "penalty", "dose", "networks", *names])


def farthest_at_equal_accuracy(table: pd.DataFrame, rules: CauseRules = CAUSE_RULES) -> pd.DataFrame:
    """How far a measure was pushed at doses whose accuracy is that of no penalty.

    A dose counts where the interval of two one-sided tests lies within -+ `bound`, at a level that is corrected for
    all doses of all pushed measures (Bonferroni); of those that count, the one that moves the measure farthest.

    Args:
        table: of the experiment *cause*.
        rules: bound of equivalence, level, and how many pairs it takes.

    Returns:
        One row per data set, label condition, pushed measure and direction: `dose` (NaN: there is none), `networks`,
        mean of the measure `before` and `after`, `effect` on accuracy with `low` and `high`.
    """
    rows = []
    for key, part in sound_trials(table).groupby(GROUP, sort=False):
        doses = dose_table(part)
        for name in PUSHED:
            rows += [(*key, name, way, *_farthest(doses, name, way, rules)) for way in DIRECTIONS]
    names = ["penalty", "direction", "dose", "networks", "before", "after", "effect", "low", "high"]
    return pd.DataFrame(rows, columns=[*GROUP, *names])


def _farthest(doses: pd.DataFrame, penalty: str, direction: str, rules: CauseRules) -> Sequence[float]:
    column, sign, found = PUSHED[penalty][0], DIRECTIONS[direction], []
    none = doses[(doses["condition"] == penalty) & (doses["dose"] == 0)].set_index("seed")[column]
    for dose in (one for one in COEFFICIENTS if sign * one > 0):
        effect, moved = (differences_at(doses, penalty, dose, name) for name in ("accuracy", column))
        if min(len(effect), len(moved)) < rules.least or sign * moved.mean() <= 0:
            continue
        low, high = _corrected(effect.to_numpy(), rules)
        if -rules.bound < low <= high < rules.bound:
            before = none[moved.index].mean()
            found.append((dose, len(effect), before, before + moved.mean(), effect.mean(), low, high))
    return max(found, key=lambda row: sign * (row[3] - row[2]), default=(np.nan, 0, *[np.nan] * 5))


def _corrected(effect: np.ndarray, rules: CauseRules) -> tuple[float, float]:
    """Interval of equivalence at a level that is corrected for all doses of all pushed measures."""
    level = 1 - (1 - rules.level) / (len(PUSHED) * len(COEFFICIENTS))
    return equivalence_test(effect, rules.bound, level)[1]


def by_products(table: pd.DataFrame, verdicts: pd.DataFrame, rules: CauseRules = CAUSE_RULES) -> pd.DataFrame:
    """Which by-products stay ones if their tests of equivalence are corrected as in `farthest_at_equal_accuracy`.

    Args:
        table: of the experiment *cause*.
        verdicts: see :func:`verdicts_so_far`.
        rules: bound of equivalence, and level.

    Returns:
        One row per data set, label condition and pushed measure called a by-product: `stays`, whether both directions
        are equivalent after the correction.
    """
    parts, rows = dict(list(sound_trials(table).groupby(GROUP))), []
    for key, both in verdicts[verdicts["verdict"] == "a by-product"].groupby([*GROUP, "penalty"], sort=False):
        doses = dose_table(parts[key[:2]])
        effects = [differences_at(doses, key[2], dose, "accuracy") for dose in both["dose"]]
        ends = np.array([_corrected(effect.to_numpy(), rules) for effect in effects])
        rows.append((*key, bool((np.abs(ends) < rules.bound).all())))
    return pd.DataFrame(rows, columns=[*GROUP, "penalty", "stays"])


def spans(far: pd.DataFrame, where: Mapping[tuple[str, str], str], penalty: str = "modularity") -> str:
    """From where to where a measure was pushed at equal accuracy, in words; "" where it was not.

    Args:
        far: see :func:`farthest_at_equal_accuracy`.
        where: (data set, label condition) -> what a sentence calls them.
        penalty: key of `PUSHED`.
    """
    told = []
    for key, own in far[far["penalty"] == penalty].dropna(subset="dose").groupby(GROUP, sort=False):
        ends, before = pd.concat([own["before"], own["after"]]), own["before"].mean()
        told.append(f"{where[key]} from {ends.min():.2f} to {ends.max():.2f} ({before:.2f} without a penalty)")
    return "; ".join(told)


SEEN = "as in the verdict"  # the choice by which doses were chosen
HALF = 0.5  # of a shift: what another measure must see


def moved_elsewhere(
    table: pd.DataFrame, chosen: pd.DataFrame, column: str = "modularity", level: float = CAUSE_RULES.level
) -> pd.DataFrame:
    """Is firing only hidden from the measure? By how much Q moves at a dose when it is measured in other ways.

    Args:
        table: of the experiment *cause*.
        chosen: rows with `dataset`, `labels`, `penalty`, `direction` and `dose`, such as verdicts; those without a
            dose, and of entropy, are left out.
        column: "modularity", or "excess" for Q beyond chance.
        level: confidence of the intervals.

    Returns:
        For each of them, a row per choice of `nbutils.second.elsewhere.CHOICES` and one for that of the
        verdict: `choice`, `networks`, mean `before`, by how much it `moved` with `low` and `high`.
    """
    columns = {SEEN: column} | {one.title: f"{column}_{name}" for name, one in CHOICES.items()}
    rows, parts = [], dict(list(sound_trials(table).groupby(GROUP)))
    for one in chosen.dropna(subset="dose").itertuples():
        if PUSHED[one.penalty][0] != "modularity":
            continue
        doses = dose_table(parts[one.dataset, one.labels])
        none = doses[(doses["condition"] == one.penalty) & (doses["dose"] == 0)].set_index("seed")
        for title, name in columns.items():
            moved = differences_at(doses, one.penalty, one.dose, name)
            numbers = len(moved), none[name][moved.index].mean(), moved.mean(), *t_interval(moved.to_numpy(), level)
            rows.append((one.dataset, one.labels, one.penalty, one.direction, one.dose, title, *numbers))
    names = ["penalty", "direction", "dose", "choice", "networks", "before", "moved", "low", "high"]
    return pd.DataFrame(rows, columns=[*GROUP, *names])


def side_by_side(moved: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Shifts as text, a row per choice, a column per label condition and direction.

    Args:
        moved: see :func:`moved_elsewhere`, of one data set and pushed measure.
        labels: label condition -> what a column calls it.

    Returns:
        `choice`, mean `before` (that of the first column), and the columns.
    """
    told = [interval_text(*ends) for ends in moved[["moved", "low", "high"]].to_numpy()]
    own = moved.assign(told=told, way=moved["labels"].map(labels) + ", " + moved["direction"])
    wide = own.pivot(index="choice", columns="way", values="told")[own["way"].unique()]
    return own.groupby("choice", sort=False)["before"].first().to_frame().join(wide).reset_index()


def shares_elsewhere(moved: pd.DataFrame, penalty: str = "modularity") -> pd.DataFrame:
    """What share of a shift of Q each other measure sees: 1 for all of it, 0 for none.

    Args:
        moved: see :func:`moved_elsewhere`.
        penalty: key of `PUSHED`.

    Returns:
        By choice: `least` and `most` share over doses, and the mean `before`; empty where nothing moved.
    """
    own, rank = moved[moved["penalty"] == penalty], [*GROUP, "direction", "dose"]
    seen = own[own["choice"] == SEEN].drop_duplicates(rank)[[*rank, "moved"]]
    both = own[own["choice"] != SEEN].merge(seen, on=rank, suffixes=("", "_seen"))
    shares = (both["moved"] / both["moved_seen"]).groupby(both["choice"], sort=False)
    before = both.groupby("choice", sort=False)["before"].mean()
    return pd.DataFrame({"least": shares.min(), "most": shares.max(), "before": before})


def told_elsewhere(shares: pd.DataFrame) -> str:
    """How many other measures see at least half of every shift, and which do not, in words.

    Args:
        shares: see :func:`shares_elsewhere`.
    """
    if shares.empty:
        return "no dose moves Q far enough yet"
    blind = shares[~(shares["least"] >= HALF)]
    told = f"{len(shares) - len(blind)} of {len(shares)} other measures see at least half of every shift"
    each = [f"{r.Index} ({r.least:.0%} to {r.most:.0%} of it; Q {r.before:.2f} before)" for r in blind.itertuples()]
    return f"{told}; not with {_listed(each)}" if each else told


def mediations(
    table: pd.DataFrame, verdicts: pd.DataFrame, draws: int = 2000
) -> Mapping[tuple[str, str, str, str], Mediation]:
    """How much of each effect goes through what is pushed, by `nbutils.evaluation.mediation.mediate`.

    Doses at which a network is degenerate or missing are left out.

    Args:
        table: of the experiment *cause*.
        verdicts: see :func:`verdicts_so_far`; rows without a dose, or of a dose that is left out, have no estimate.
        draws: resamples of seeds.

    Returns:
        (data set, label condition, pushed measure, direction) -> estimate.
    """
    found, parts = {}, dict(list(sound_trials(table).groupby(GROUP)))
    for one in verdicts.dropna(subset="dose").itertuples():
        doses = dose_table(parts[one.dataset, one.labels])
        own = doses[doses["condition"] == one.penalty]
        both = [own.pivot(index="seed", columns="dose", values=c) for c in (PUSHED[one.penalty][0], "accuracy")]
        whole = [dose for dose in both[0].columns if both[0][dose].notna().all()]
        if {0.0, one.dose} <= set(whole) and min(len(whole), len(both[0])) >= LEAST:
            places = whole.index(one.dose), whole.index(0.0)
            values = (wide[whole].to_numpy() for wide in both)
            found[one.dataset, one.labels, one.penalty, one.direction] = mediate(*values, *places, draws)
    return found
