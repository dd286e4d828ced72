"""The released code's quirks, switched on one by one: what each does to modularity, entropy and verdicts.

Every switch is read as a study of its own. Its rows get the columns that the hypotheses' tests expect, so that each
word follows from the same code as the book's verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from nbutils.arguments import checked
from nbutils.arrays import as_frame, shown
from nbutils.comparisons import naive_table
from nbutils.evidence import RULES, verdict
from nbutils.hypotheses import as_judged, collect_evidence
from nbutils.results import Results, as_results
from nbutils.specifications import specifications
from nbutils.stats import bootstrap_interval

__all__ = [
    "ENTROPY_MOVES",
    "PLAIN",
    "Q_MOVES",
    "SWITCHES",
    "UNCHANGED",
    "change_table",
    "shuffle_table",
    "switch_table",
    "switch_words",
    "switched",
]

PLAIN = "the paper's"  # every switch off
# What is switched on -> (part of the study whose networks it is measured on, variant of the extra "reconstruction").
SWITCHES = {
    PLAIN: ("conditions", "the paper's"),
    "edges of the last class": ("conditions", "edges of the last class"),
    "frequency as threshold": ("conditions", "frequency as threshold"),
    "index slips": ("conditions", "index slips"),
    "strict bins": ("conditions", "strict bins"),
    "trained on bytes": ("released", "the paper's"),
    "all but the bytes": ("conditions", "all of them"),
    "all five": ("released", "all of them"),
}
Q_MOVES, ENTROPY_MOVES = RULES.excess, 0.01  # a change of Q, and of entropy as a share of it, that counts
UNCHANGED = 0.01  # a change of Q under the within-class shuffle that does not count
WITHIN = "within-class shuffle"
TESTS = ("H1a null", "H1a untrained", "H1b", "H2a", "H3a")


@checked
def switched(results: Results) -> pd.DataFrame:
    """Rows of every switch, with the columns that the hypotheses' tests read.

    Args:
        results: of a data set on which the released code is rebuilt.

    Returns:
        One row per switch, network (true labels) and epoch: `switch`, `run`, `seed`, `epoch`, `modularity`,
        `null_circular` (NaN between the first and the last epoch), `well_defined`, `pattern_entropy` (here the
        paper's entropy of that variant, bits), `train_accuracy`, and `dataset`, `labels`, `parts` as
        :func:`nbutils.hypotheses.collect_evidence` wants them. In the order of `SWITCHES`.

    Raises:
        ValueError: the released code is not rebuilt on this data set, or a switch has no networks.

    Examples:
        >>> switched(Results("digits", pd.DataFrame(), pd.DataFrame(), {}, {}))
        Traceback (most recent call last):
        ValueError: results must hold the extra 'reconstruction', received those of 'digits' with no extras
    """
    if "reconstruction" not in as_results(results).extras:
        given = ", ".join(results.extras) or "no extras"
        raise ValueError(
            f"results must hold the extra 'reconstruction', received those of {results.dataset!r} with {given}"
        )
    as_frame(results.table, (), "the table of results", finite=("epoch", "train_accuracy"), key=("run", "epoch"))
    known = results.table[["run", "epoch", "train_accuracy"]]
    rows = results.extra("reconstruction").query("labels == 'true'").merge(known, on=["run", "epoch"])
    found = []
    for name, (part, variant) in SWITCHES.items():
        own = rows[rows["parts"].str.split().map(lambda parts, part=part: part in parts) & (rows["variant"] == variant)]
        if own.empty:
            raise ValueError(f"results must hold networks of part {part!r}, received none")
        found.append(own.assign(switch=name, parts="conditions"))
    columns = ["modularity", "null_circular", "well_defined", "pattern_entropy", "train_accuracy"]
    wide = pd.concat(found, ignore_index=True).rename(columns={"entropy": "pattern_entropy"})
    return wide[["switch", "run", "seed", "epoch", *columns, "dataset", "labels", "parts"]]


def as_switched(rows: Any, finite: Sequence[str] = (), numbers: Sequence[str] = ()) -> pd.DataFrame:
    """Rows of :func:`switched`, with at least these measures."""
    found = as_frame(rows, (), "rows", finite=("epoch", *finite), numbers=numbers, key=("switch", "seed", "epoch"))
    if unknown := [name for name in found["switch"].unique() if name not in SWITCHES]:
        raise ValueError(f"rows must hold switches of {', '.join(SWITCHES)}, received {shown(unknown[0])}")
    return found


@checked
def switch_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What every switch makes of modularity and entropy, means over networks.

    Args:
        rows: see :func:`switched`.

    Returns:
        One row per switch: `switch`; `Q untrained`, `Q trained`, `excess` (Q - Q of the circular-shift null, trained),
        `communities untrained`, `communities trained` (well-defined ones), `entropy untrained`, `entropy trained`
        (bits); and Pearson's r within a run with training accuracy, the untrained network included or not: `r of Q`,
        `r of Q, from epoch 1`, `r of entropy`, `r of entropy, from epoch 1` (0 for a constant series).
    """
    as_switched(
        rows, finite=("modularity", "pattern_entropy", "train_accuracy"), numbers=("null_circular", "well_defined")
    )
    found = []
    for name, own in rows.groupby("switch", sort=False):
        first, last = (own[own["epoch"] == epoch].mean(numeric_only=True) for epoch in (0, own["epoch"].max()))
        naive = naive_table(own, ["modularity", "pattern_entropy"])
        found.append(
            {
                "switch": name,
                "Q untrained": first["modularity"],
                "Q trained": last["modularity"],
                "excess": last["modularity"] - last["null_circular"],
                "communities untrained": first["well_defined"],
                "communities trained": last["well_defined"],
                "entropy untrained": first["pattern_entropy"],
                "entropy trained": last["pattern_entropy"],
                **{f"r of {what}": naive["r, all"][i] for i, what in enumerate(("Q", "entropy"))},
                **{f"r of {what}, from epoch 1": naive["r, trained"][i] for i, what in enumerate(("Q", "entropy"))},
            }
        )
    return pd.DataFrame(found)


@checked
def change_table(rows: pd.DataFrame) -> pd.DataFrame:
    """How far every switch moves final modularity and entropy, networks paired by seed with those of `PLAIN`.

    Args:
        rows: see :func:`switched`.

    Returns:
        One row per switch that is on: `switch`; `Q` (mean change), `Q low`, `Q high` (95 % interval over networks);
        `entropy`, `entropy low`, `entropy high`, the same as a share of the entropy without the switch (networks
        without any are left out); and `moves Q`, `moves entropy`: whether the whole interval lies beyond `Q_MOVES` or
        `ENTROPY_MOVES`, on either side.
    """
    as_switched(rows, finite=("modularity", "pattern_entropy"))
    if len(rows) and PLAIN not in set(rows["switch"]):
        raise ValueError(f"rows must hold the switch {PLAIN!r}, received {shown(list(rows['switch'].unique()))}")
    last = rows[rows["epoch"] == rows["epoch"].max()]
    wide = last.pivot(index="seed", columns="switch", values=["modularity", "pattern_entropy"])
    found = []
    for name in (switch for switch in rows["switch"].unique() if switch != PLAIN):
        row = {"switch": name}
        for what, measure, moves in (("Q", "modularity", Q_MOVES), ("entropy", "pattern_entropy", ENTROPY_MOVES)):
            plain, own = wide[measure, PLAIN], wide[measure, name]
            change = ((own - plain) / (plain.where(plain > 0) if what == "entropy" else 1)).dropna()
            low, high = bootstrap_interval(change, np.random.default_rng(RULES.seed))
            row |= {what: change.mean(), f"{what} low": low, f"{what} high": high}
            row[f"moves {what}"] = bool(low > moves or high < -moves)
        found.append(row)
    return pd.DataFrame(found)


@checked
def switch_words(rows: pd.DataFrame) -> pd.DataFrame:
    """The words that the book's rules give to every switch, as if it alone had been chosen.

    Each switch is a study of its own: its three p values are adjusted together, and those of other switches are not
    counted. H2b and H3b need networks trained with label noise, on which no switch was measured; so of H2 and H3 only
    the outcome within runs is given, and H1 alone gets its verdict.

    Args:
        rows: see :func:`switched`.

    Returns:
        One row per switch: `switch`, the outcome of H1a null, H1a untrained, H1b, H2a and H3a (see
        :attr:`nbutils.evidence.Evidence.outcome`; a test that needs two networks and has one reads "too few runs"), and
        `H1`, the verdict.
    """
    as_switched(rows, numbers=("modularity",))
    found = []
    for name, own in rows.groupby("switch", sort=False):
        study = Results(str(name), own, pd.DataFrame(), {}, {})
        tests = collect_evidence([as_judged(study, f"rows of the switch {name!r}")])
        outcomes = {test.test: test.outcome for test in tests}
        row = {"switch": name, **{test: outcomes.get(test, "too few runs") for test in TESTS}}
        found.append({**row, "H1": verdict([test for test in tests if test.hypothesis == "H1"])})
    return pd.DataFrame(found)


@checked
def shuffle_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What is left of Q when firing is shuffled, for this book's graph and for the paper's.

    Args:
        rows: of the extra "specifications", see :meth:`nbutils.results.Results.extra`.

    Returns:
        One row per graph: `graph`, `Q`, `circular shift` (Q when each neuron's firing is moved around all images),
        `within-class shuffle` (Q when it is shuffled among the images of each class), all means over networks; and
        `lost` (Q minus the within-class one, mean), `low`, `high` (95 % interval over networks); and `the shuffle`:
        "leaves Q" if that interval lies inside -`UNCHANGED` to `UNCHANGED`, "changes Q" if outside, else "undecided".
    """
    as_frame(rows, (), "rows", numbers=("value",), key=("run", "specification"))
    wide, found = rows.pivot(index="run", columns="specification", values="value"), []
    for name, graph in (("this book's", "co-firing count"), ("the paper's", "paper's")):
        above = {s.null: s.label for s in specifications() if s.graph == graph and s.null not in ("", "nothing")}
        plain = above[WITHIN].removesuffix(f" · {WITHIN}")
        as_frame(wide, (), "rows, one column per specification,", finite=(plain, *above.values()))
        whole = wide[plain]
        nulls = {null: (whole - wide[label]).mean() for null, label in above.items()}
        lost = wide[above[WITHIN]]
        low, high = bootstrap_interval(lost, np.random.default_rng(RULES.seed))
        row = {"graph": name, "Q": whole.mean(), **nulls, "lost": lost.mean(), "low": low, "high": high}
        found.append({**row, "the shuffle": _unchanged(low, high)})
    return pd.DataFrame(found)


def _unchanged(low: float, high: float) -> str:
    if -UNCHANGED < low <= high < UNCHANGED:
        return "leaves Q"
    return "changes Q" if low > UNCHANGED or high < -UNCHANGED else "undecided"
