"""The paper's released code rebuilt: an ablation of its implementation details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nbutils.drawing.display import INK, figure_style, interval_text
from nbutils.drawing.palette import BLUE, GREY, ORANGE, PURPLE
from nbutils.pages.figures import thin_lines
from nbutils.stats import bootstrap_interval
from nbutils.study.comparisons import naive_table
from nbutils.study.hypotheses import RULES, as_judged, collect_evidence, verdict
from nbutils.study.results import Results, as_results
from nbutils.study.specifications import specifications
from nbutils.support.arguments import checked
from nbutils.support.checks import as_frame, shown
from nbutils.sweeps.sweep_figures import panels

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
        :func:`nbutils.study.hypotheses.collect_evidence` wants them. In the order of `SWITCHES`.

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
    shown, found = {"Q": "modularity", "communities": "well_defined", "entropy": "pattern_entropy"}, []
    for name, own in rows.groupby("switch", sort=False):
        ends = own.groupby("epoch").mean(numeric_only=True).reindex([0, own["epoch"].max()])
        naive = naive_table(own, ["modularity", "pattern_entropy"])
        row = {}
        for what, measure in shown.items():
            row |= {f"{what} untrained": ends[measure].iloc[0], f"{what} trained": ends[measure].iloc[-1]}
        row["excess"] = (ends["modularity"] - ends["null_circular"]).iloc[-1]
        for k, what in enumerate(("Q", "entropy")):
            row |= {f"r of {what}": naive["r, all"][k], f"r of {what}, from epoch 1": naive["r, trained"][k]}
        found.append({"switch": name, **row})
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
        :attr:`nbutils.study.hypotheses.Evidence.outcome`; a test that needs two networks and has one reads "too few
        runs"), and `H1`, the verdict.
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
        rows: of the extra "specifications", see :meth:`nbutils.study.results.Results.extra`.

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
        inside, outside = -UNCHANGED < low <= high < UNCHANGED, low > UNCHANGED or high < -UNCHANGED
        word = "leaves Q" if inside else "changes Q" if outside else "undecided"
        row = {"graph": name, "Q": whole.mean(), **nulls, "lost": lost.mean(), "low": low, "high": high}
        found.append({**row, "the shuffle": word})
    return pd.DataFrame(found)


ACROSS = 4  # panels side by side


@checked
def modularity_panels(rows: pd.DataFrame) -> Figure:
    """Modularity over epochs, one panel per switch; thin lines are networks, grey marks the circular-shift null.

    Args:
        rows: see :func:`nbutils.pages.reconstruction.switched`.
    """
    if as_switched(rows, numbers=("modularity", "null_circular")).empty:
        raise ValueError("rows must hold at least one switch, received none")
    names = list(rows["switch"].unique())
    with panels(len(names), 2.15, ACROSS, sharex=True, sharey=True) as (fig, axes):
        for ax, name in zip(axes, names, strict=True):
            own = rows[rows["switch"] == name]
            colour = BLUE if name == PLAIN else PURPLE if name.startswith("all") else ORANGE
            thin_lines(ax, own.pivot(index="epoch", columns="seed", values="modularity"), colour)
            null = own.groupby("epoch")["null_circular"].mean().dropna()
            ax.plot(null.index, null, "D", color=GREY, ms=5, label="circular-shift null")
            ax.set_title(name, fontsize=9.5)
        for ax in axes[-ACROSS:]:
            ax.set_xlabel("epoch")
        fig.supylabel("modularity Q", size="medium")
        axes[0].set_ylim(bottom=min(0, axes[0].get_ylim()[0]))
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center")
    return fig


@checked
def published_panels(series: pd.DataFrame, ours: Mapping[str, pd.DataFrame]) -> Figure:
    """The published entropy beside ours: in bits, and as the change since the first epoch.

    Args:
        series: see :func:`nbutils.pages.reanalysis.read_series`.
        ours: see :func:`nbutils.pages.reconstruction.entropy_series`; may be empty.
    """
    if as_frame(series, (), "series", finite=("epoch", "entropy_bits"), key=("epoch",)).empty:
        raise ValueError("series must hold at least one epoch, received none")
    for name, wide in ours.items():
        as_frame(wide, (), f"ours[{name!r}]", finite=list(wide))
        if wide.empty or wide.index.has_duplicates or not wide.index.isin(series["epoch"]).any():
            raise ValueError(f"ours[{name!r}] must have one row per epoch, some of those of series, received others")
    published = series.set_index("epoch")[["entropy_bits"]]
    with figure_style():
        fig, axes = plt.subplots(1, 2, figsize=(7.4, 3.1))
        for ax, change in zip(axes, (False, True), strict=True):
            for (name, wide), colour in zip(ours.items(), (BLUE, ORANGE), strict=False):
                thin_lines(ax, wide - wide.iloc[0] if change else wide, colour, name)
            shown = published - published.iloc[0] if change else published
            ax.plot(shown.index, shown, "o", color=PURPLE, ms=4.5, label="published")
            ax.set(title="change since epoch 1 (bits)" if change else "network entropy (bits)", xlabel="epoch")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[1].axhline(0, color=INK, lw=0.8, alpha=0.5)
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(fig)
    return fig


TRAININGS = {"trained on 0 to 1": "conditions", "trained on bytes": "released"}  # -> part of the study
NEURONS = 1024  # hidden neurons of the network whose entropy is published


@checked
def entropy_series(results: Results) -> dict[str, pd.DataFrame]:
    """Network entropy in the paper's definition on all training images, of networks trained on 0 to 1 and on bytes.

    Args:
        results: of a data set.

    Returns:
        For each way of training, bits per epoch from 1 on and network: index `epoch`, one column per seed. Empty where
        networks do not have the `NEURONS` hidden neurons of the published one: a sum over neurons grows with them.
    """
    if len(as_results(results).run("true").layers) != NEURONS:
        return {}
    found = {}
    for name, part in TRAININGS.items():
        own = results.part(part).query("labels == 'true' and epoch > 0")
        if not own.empty:
            found[name] = own.pivot(index="epoch", columns="seed", values="binned_entropy")
    return found


def beside_published(published: pd.Series, ours: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """A published series beside the means of our networks.

    Args:
        published: bits by epoch.
        ours: see :func:`entropy_series`.

    Returns:
        One row per series, "published" first: `first`, `last` and `change` (bits), `distance` (root mean square, bits),
        `r` and `r of steps` (Pearson) with the published one, `inside` (share of epochs within our networks' range).
    """
    means = pd.DataFrame({"published": published, **{way: wide.mean(axis=1) for way, wide in ours.items()}}).dropna()
    beside = pd.DataFrame({"first": means.iloc[0], "last": means.iloc[-1]})
    beside["change"] = beside["last"] - beside["first"]
    beside["distance"] = means.sub(means["published"], axis=0).pow(2).mean() ** 0.5
    beside["r"] = means.corr()["published"]
    beside["r of steps"] = means.diff().corr()["published"]
    inside = {
        way: published.loc[wide.index].between(wide.min(axis=1), wide.max(axis=1)).mean() for way, wide in ours.items()
    }
    beside["inside"] = pd.Series(inside, dtype=float)
    return beside.rename_axis("series").reset_index()


def marked_words(words: pd.DataFrame, changes: pd.DataFrame) -> pd.DataFrame:
    """Words of every switch, bold where they differ from those without any, and what it changes.

    Args:
        words: a row per switch, outcomes in its columns.
        changes: a row per switch: `Q`, `entropy` (as a share), and the ends of their intervals, such as `Q low`.

    Returns:
        `words`, marked, with `change of Q` and `entropy, %`; a dash where nothing is switched.
    """
    marked = words.where(words.eq(words.loc[PLAIN]), "**" + words + "**")
    for name, told, factor in (("Q", "change of Q", 1), ("entropy", "entropy, %", 100)):
        limits = factor * changes[[name, f"{name} low", f"{name} high"]]
        marked[told] = limits.apply(lambda row: interval_text(*row), axis=1)
    return marked.fillna("–").rename(columns={"H1": "verdict on H1"}).reset_index()
