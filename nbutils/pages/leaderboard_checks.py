"""Attempts to refute the leaderboard: rho with accuracy again after every change, and what chance alone would leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from nbutils.drawing.display import figure_style, interval_text
from nbutils.evaluation.added import Added, added_variance
from nbutils.evaluation.ranking import correlation_within
from nbutils.evaluation.words import Estimate, cluster_correlation, inner_level, judge
from nbutils.pages.answering import OURS, Found
from nbutils.second.answers import FEWEST, sound, values_of
from nbutils.second.leaderboard import zoo_axes
from nbutils.second.networks import PARTS, Tables
from nbutils.second.questions import PROTOCOL, QUESTIONS
from nbutils.stats import correlation, counted_spearman, resampled_ranks, times_drawn

__all__ = [
    "BOARD",
    "FIXED",
    "GAP",
    "GROUPS",
    "HELD",
    "changes",
    "gain_over",
    "gains_table",
    "held_fixed",
    "kept_table",
    "moves_figure",
    "order_kept",
    "other_zoos",
    "permuted",
    "permuted_study",
    "probe_accuracy",
    "top_kept",
    "words",
    "words_table",
]

BOARD = "as on the board"
GAP = "accuracy minus training accuracy"
FIXED = " held fixed"  # end of the name of a change
HELD = {
    "examples": "training images",
    "learning_rate": "learning rate",
    "dropout": "dropout",
    "weight_decay": "weight decay",
    "batch_size": "batch size",
    "epochs": "epochs",
    "width": "width",
    "depth": "depth",
}
GROUPS: Mapping[str, list[str]] = {  # what the finding names -> its changes
    "the other seeds": ["first seed", "second seed"],
    "halves of the probe": ["first half of the probe", "second half of the probe"],
    "halves of the families": ["half of the families", "the other half"],
    "the better networks": ["better half of the networks"],
    "training images fixed": ["training images held fixed"],
    "learning rate fixed": ["learning rate held fixed"],
}
SHOWN = {  # changes of the heat map -> what it calls them
    "first half of the probe": "probe, first half",
    "second half of the probe": "probe, second half",
    "first seed": "first seed",
    "second seed": "second seed",
    "half of the families": "half of the families",
    "the other half": "the other half",
    **{f"{name}{FIXED}": f"{name} fixed" for name in HELD.values()},
    "better half of the networks": "better half",
    "training accuracy of 0.5 or more": "those that learned",
    "Pearson, log odds of accuracy": "Pearson, log odds",
    GAP: "gap to training",
}
ROWS = (
    *("linear_probe", "neural_collapse", "examples", "confidence", "train_accuracy", "train_loss", "neuron_spread"),
    *("total_correlation", "effective_rank", "mutual_information", "class_part", "remainder", *OURS),
)
BESIDE = {"paper": "the paper's network", "one loss": "one training loss"}  # zoos beside that of the board
LEARNED = 0.5  # training accuracy of a network that has learned something
WIDTH = 7.6  # inches


def changes(found: Found, kind: str = "small") -> pd.DataFrame:
    """Spearman's rho of every measurable measure with performance, again after each change.

    Args:
        found: a data set with a leaderboard.
        kind: which zoo.

    Returns:
        A row per measure and change, the board itself among them: `dataset`, `measure`, `called`, `change`, `rho`, and
        `board`, what rho was. The changes: halves of the probe, seeds, halves of the families; the families along each
        axis left out; each axis held fixed, see :func:`held_fixed`; the better half of the networks, and those that
        learned; and two other references, Pearson's correlation with the log odds of accuracy, and rho with accuracy
        minus training accuracy. Measures that were taken of some networks only are left out.
    """
    networks, _ = sound(found.tables, kind, "true")
    named = dict(zip(found.board["measure"], found.board["called"], strict=True))
    measures = list(found.board.loc[found.board["measurable"], "measure"])
    values = _parts(found.tables, networks, measures)
    whole, accuracy, axes = values["whole"], networks["accuracy"], zoo_axes(networks)
    rhos = {BOARD: _rhos(whole, accuracy)}
    rhos |= {f"{part} half of the probe": _rhos(values[part], accuracy) for part in PARTS[1:]}
    for name, rows in _subsets(networks).items():
        rhos[name] = _rhos(whole[rows], accuracy[rows])
    rhos |= {f"{HELD[axis]}{FIXED}": held_fixed(whole, accuracy, axes[axis]) for axis in axes}
    odds = (accuracy * networks["test_images"] + 0.5) / ((1 - accuracy) * networks["test_images"] + 0.5)
    rhos["Pearson, log odds of accuracy"] = whole.corrwith(np.log(odds))
    rhos[GAP] = _rhos(whole, accuracy - networks["train_accuracy"])
    table = pd.DataFrame(rhos).rename_axis("measure").reset_index()
    long = table.melt("measure", var_name="change", value_name="rho")
    long["board"] = long["measure"].map(rhos[BOARD])
    return long.assign(dataset=found.title, called=long["measure"].map(named))


def _parts(tables: Tables, networks: pd.DataFrame, measures: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Values on the whole probe and its halves; what needs no probe is the same on all three."""
    found = {part: values_of(tables, networks, measures, part).set_axis(networks.index) for part in PARTS}
    whole = found["whole"].dropna(axis=1)
    return {part: table[whole.columns].fillna(whole) for part, table in found.items()}


def _subsets(networks: pd.DataFrame) -> dict[str, pd.Series]:
    """Which networks each change keeps."""
    second = networks.sort_values("seed").groupby("configuration").cumcount().reindex(networks.index) > 0
    round_ = networks["family"] // networks["axis"].nunique()  # a family along each axis in every round
    found = {"first seed": ~second, "second seed": second}
    found |= {"half of the families": round_ % 2 == 0, "the other half": round_ % 2 == 1}
    for axis in HELD:
        found[f"families along {HELD[axis]} left out"] = networks["axis"] != axis
    found["better half of the networks"] = networks["accuracy"] >= networks["accuracy"].median()
    found["training accuracy of 0.5 or more"] = networks["train_accuracy"] >= LEARNED
    return {name: rows for name, rows in found.items() if rows.any()}  # some zoos have one seed only


def _rhos(values: pd.DataFrame, performance: pd.Series) -> pd.Series:
    """Spearman's rho of every column; NaN for one that is constant."""
    ranks = values.rank()
    return ranks.loc[:, ranks.nunique() > 1].corrwith(performance.rank()).reindex(values.columns)


def held_fixed(values: pd.DataFrame, performance: pd.Series, setting: pd.Series) -> pd.Series:
    """Mean over the values of a setting of Spearman's rho among networks that share it.

    Args:
        values: a column per measure, a row per network.
        performance: per network, same index.
        setting: per network, same index, such as its number of training images.

    Returns:
        One number per measure, in [-1, 1]; NaN for a measure that is constant within a value of the setting, as the
        setting itself is.

    Examples:
        >>> images, skill = pd.Series([1, 1, 1, 2, 2, 2]), pd.Series([1, 2, 3, 1, 2, 3])
        >>> values = pd.DataFrame({"skill": skill, "images": images})
        >>> held_fixed(values, 10 * images + skill, images).round(3).tolist()
        [1.0, nan]
    """
    return values.apply(lambda measure: correlation_within(measure, performance, setting))


def order_kept(rows: pd.DataFrame) -> float:
    """How far the order of measures by the size of rho agrees with that of the board: their rank correlation.

    Args:
        rows: of one change on one data set, see :func:`changes`; measures without rho are left out.

    Examples:
        >>> order_kept(pd.DataFrame({"board": [0.9, -0.8, 0.1], "rho": [-0.7, 0.6, 0.2]}))
        1.0
    """
    return float(rows["rho"].abs().corr(rows["board"].abs(), method="spearman"))


def kept_table(table: pd.DataFrame) -> pd.DataFrame:
    """How far the order of measures after each change agrees with the board's: changes by data sets.

    Args:
        table: rows of :func:`changes` of all data sets, one below the other.
    """
    groups = table.groupby(["change", "dataset"], sort=False)[["rho", "board"]]
    return groups.apply(order_kept).unstack()


def top_kept(rows: pd.DataFrame, top: int = 5) -> int:
    """How many of the strongest measures on the board are among the strongest after a change.

    Args:
        rows: of one change on one data set, see :func:`changes`.
        top: how many are looked at.

    Examples:
        >>> top_kept(pd.DataFrame({"board": [0.9, -0.8, 0.1], "rho": [0.2, -0.7, 0.3]}), top=2)
        1
    """
    now, before = (rows[name].abs().nlargest(top).index for name in ("rho", "board"))
    return len(now.intersection(before))


def other_zoos(studies: Sequence[Found]) -> pd.DataFrame:
    """Spearman's rho of the hypotheses' measures with accuracy in the zoos beside that of the board.

    Args:
        studies: data sets with a leaderboard.

    Returns:
        One row per data set, zoo and measure, of zoos with three families or more: `networks` that are sound; rho on
        the `board`, and `rho` in that zoo with `low` and `high`, families resampled; and `order`, how far the order of
        all measures agrees with the board's, see :func:`order_kept`.
    """
    rows = []
    for one in studies:
        board = one.board[one.board["measurable"]].set_index("measure")["rho"]
        for kind, called in BESIDE.items():
            networks, _ = sound(one.tables, kind, "true")
            if networks["family"].nunique() < FEWEST:
                continue
            values = values_of(one.tables, networks, list(board.index)).set_axis(networks.index)
            rhos = _rhos(values.dropna(axis=1), networks["accuracy"]).reindex(board.index)
            known = {"data set": one.title, "zoo": called, "networks": len(networks)}
            known["order"] = order_kept(pd.DataFrame({"rho": rhos, "board": board}))
            for name in board.index.intersection(list(OURS)):
                own = networks[np.isfinite(values[name])]
                found = cluster_correlation(values.loc[own.index, name], own["accuracy"], own["family"], PROTOCOL.seed)
                numbers = {"board": board[name], "rho": found.value, "low": found.low, "high": found.high}
                rows.append({**known, "measure": OURS[name], **numbers})
    columns = ["data set", "zoo", "networks", "measure", "board", "rho", "low", "high", "order"]
    return pd.DataFrame(rows, columns=columns)


def missed_loss(studies: Sequence[Found], nats: float = 0.1) -> pd.DataFrame:
    """Networks of the zoo of one training loss that did not reach it, and modularity without them.

    Args:
        studies: data sets with a leaderboard.
        nats: the training loss that was asked for.

    Returns:
        One row per data set with that zoo: sound `networks`, how many `missed`, the `largest loss`, and Spearman's rho
        of modularity with accuracy for all and `without those`.
    """
    rows = []
    for one in (one for one in studies if "one loss" in one.designs):
        own, _ = sound(one.tables, "one loss", "true")
        near, accuracy = (own["train_loss"] <= nats).to_numpy(), own["accuracy"].to_numpy()
        q = values_of(one.tables, own, ["modularity"])["modularity"].to_numpy()
        rhos = correlation(q, accuracy), correlation(q[near], accuracy[near])
        rows.append((one.title, len(own), int((~near).sum()), own["train_loss"].max(), *rhos))
    names = ["data set", "networks", "missed", "largest loss", "ρ of modularity", "without those"]
    return pd.DataFrame(rows, columns=names)


def words(found: Found, axes: Sequence[str] = tuple(HELD), resamples: int = 200, kind: str = "small") -> pd.DataFrame:
    """The word of every question about performance with each setting held fixed, from its interval alone.

    Args:
        found: a data set with answers.
        axes: settings, keys of `HELD`.
        resamples: of whole families.
        kind: which zoo.

    Returns:
        A row per question and change (that of the answers first): `dataset`, `question`, `change`, `rho`, `low`, `high`
        and `word`. No p value is asked for, so that a word is "supported" or "contradicted" more easily than by the
        rules.
    """
    networks, _ = sound(found.tables, kind, "true")
    asked = [one for one in QUESTIONS if one.design == "zoo" and one.statistic == "rank"]
    values = values_of(found.tables, networks, [one.measure for one in asked]).set_axis(networks.index)
    estimates = {(one, BOARD): found.answers[one.name].estimate for one in asked}
    family = networks.groupby("family").ngroup().to_numpy()
    many = family.max() + 1
    chosen = np.random.default_rng(PROTOCOL.seed).integers(many, size=(resamples, many))
    counts = times_drawn(chosen, many)[family]
    for axis in axes:
        setting = zoo_axes(networks)[axis]
        best = held_fixed(values, networks["accuracy"], setting)
        for one in asked:
            drawn = _held_fast(values[one.measure].to_numpy(float), networks["accuracy"].to_numpy(), setting, counts)
            estimates[one, f"{HELD[axis]}{FIXED}"] = _estimate(best[one.measure], drawn)
    rows = []
    for (one, change), own in estimates.items():
        word = judge(own, one.threshold, direction=one.direction, bound=one.bound)
        rows.append((found.title, one.name.replace(" performance", ""), change, own.value, own.low, own.high, word))
    return pd.DataFrame(rows, columns=["dataset", "question", "change", "rho", "low", "high", "word"])


def words_table(found: pd.DataFrame) -> pd.DataFrame:
    """Word of every question on the board, and every other word that it gets with a setting held fixed.

    Args:
        found: see :func:`words`, of some data sets together.
    """
    rows = []
    for (dataset, question), own in found.groupby(["dataset", "question"], sort=False):
        first = own[own["change"] == BOARD].iloc[0]
        others = own[own["word"] != first["word"]].itertuples()
        told = [f"{row.change}: {row.word}, {interval_text(row.rho, row.low, row.high)}" for row in others]
        rows.append((dataset, question, first["rho"], first["word"], "; ".join(told) or "none"))
    return pd.DataFrame(rows, columns=["data set", "question", "ρ", "word", "other words"])


def _held_fast(measure: np.ndarray, performance: np.ndarray, setting: pd.Series, counts: np.ndarray) -> np.ndarray:
    """As :func:`held_fixed`, of one measure in every resample, over the values of the setting that it holds."""
    rows = [(setting == value).to_numpy() for value in setting.unique()]
    within = np.array([counted_spearman(measure[own], performance[own], counts[own]) for own in rows])
    there = np.array([counts[own].any(axis=0) for own in rows])
    return np.where(there, within, 0).sum(axis=0) / there.sum(axis=0)


def _estimate(value: float, drawn: np.ndarray) -> Estimate:
    ends = []
    for level in (PROTOCOL.level, inner_level(PROTOCOL.level)):
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
        ends.append((min(float(low), value), max(float(high), value)))
    return Estimate(float(value), *ends[0], ends[1])


def _unit(ranks: np.ndarray) -> np.ndarray:
    """Ranks along the last axis, centred and of length 1; 0 where all are equal."""
    ranks = ranks - ranks.mean(axis=-1, keepdims=True)
    length = np.sqrt((ranks * ranks).sum(axis=-1, keepdims=True))
    return ranks / np.where(length > 0, length, 1)


def permuted(
    values: pd.DataFrame, performance: pd.Series, families: pd.Series, worlds: int, resamples: int = 500, seed: int = 0
) -> pd.DataFrame:
    """What would pass for an association if performance were permuted among families.

    Whole families swap the performance of their networks, so that networks of a family resemble each other as before
    and no measure knows anything. Families of another size than most are left out.

    Args:
        values: a column per measure, a row per network; what is not defined for all of them is left out.
        performance: per network, same index.
        families: per network, same index.
        worlds: how often it is permuted.
        resamples: of families, for the intervals; there are four times as many permutations for the p values.
        seed: of all draws.

    Returns:
        A row per world, the real one first (`real`): the share of measures whose 95 % interval lies beyond 0
        (`interval`), and beyond the threshold of 0.2 (`threshold`); whose p value is at most 0.05 (`p_value`), and
        still after the method of Benjamini and Hochberg (`adjusted`); and the largest rho in size (`largest`).
    """
    size = families.map(families.value_counts())
    kept = families[size == size.mode()[0]].sort_values(kind="stable")
    many = kept.nunique()
    blocks = values.loc[kept.index].dropna(axis=1).to_numpy().T.reshape(-1, many, len(kept) // many)
    own = performance[kept.index].to_numpy().reshape(many, -1)
    rng = np.random.default_rng(seed)
    picks = rng.integers(many, size=(resamples, many))
    orders = np.array([rng.permutation(many) for _ in range(4 * resamples)])
    counts = times_drawn(picks, many).repeat(blocks.shape[2], axis=0)
    mixes = [own, *(own[rng.permutation(many)] for _ in range(worlds))]
    drawn = _all_rhos(blocks.reshape(len(blocks), -1), np.reshape(mixes, (len(mixes), -1)), counts)
    means = _unit(stats.rankdata(blocks.mean(axis=2), axis=1))
    everything = _unit(stats.rankdata(blocks.reshape(len(blocks), -1), axis=1))
    rows = []
    for world, mixed in enumerate(mixes):
        rho = everything @ _unit(stats.rankdata(mixed.ravel()))
        low, high = np.quantile(drawn[:, :, world], [0.025, 0.975], axis=0)
        beyond = np.maximum(np.minimum(low, rho), -np.maximum(high, rho))  # how far an interval lies from 0
        mean = _unit(stats.rankdata(mixed.mean(axis=1)))
        luck = np.abs(means @ mean[orders].T) >= np.abs(means @ mean)[:, None] - 1e-12
        p = (luck.sum(axis=1) + 1) / (len(orders) + 1)
        found = [beyond > 0, beyond > 0.2, p <= 0.05, stats.false_discovery_control(p) <= 0.05]
        rows.append((world == 0, *(float(one.mean()) for one in found), float(np.abs(rho).max())))
    return pd.DataFrame(rows, columns=["real", "interval", "threshold", "p_value", "adjusted", "largest"])


def permuted_study(found: Found, worlds: int, kind: str = "small") -> pd.DataFrame:
    """:func:`permuted` of all measurable measures of a data set.

    Args:
        found: a data set with a leaderboard.
        worlds: how often performance is permuted among families.
        kind: which zoo.
    """
    networks, _ = sound(found.tables, kind, "true")
    measures = list(found.board.loc[found.board["measurable"], "measure"])
    values = values_of(found.tables, networks, measures).set_axis(networks.index)
    return permuted(values, networks["accuracy"], networks["family"], worlds)


def probe_accuracy(found: Found, kind: str = "small") -> float:
    """Spearman's rho of accuracy on the probe, which whoever has its labels can simply count, with performance.

    Args:
        found: a data set with a zoo.
        kind: which zoo.
    """
    networks, _ = sound(found.tables, kind, "true")
    values = values_of(found.tables, networks, ["probe_accuracy"]).set_axis(networks.index)
    return float(_rhos(values, networks["accuracy"])["probe_accuracy"])


def _all_rhos(first: np.ndarray, second: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Spearman's rho of all rows of two tables with each other in every resample: shape (resamples, first, second)."""
    ranked, others = (np.stack([_scaled(row, counts) for row in table]) for table in (first, second))
    return (counts * ranked).transpose(2, 0, 1) @ others.transpose(2, 1, 0)


def _scaled(row: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Ranks in every resample whose squares add up to 1, or 0 where all are equal: shape (networks, resamples)."""
    ranks = resampled_ranks(row, counts)
    length = np.sqrt((counts * ranks * ranks).sum(axis=0))
    return ranks / np.where(length > 0, length, 1)


def gain_over(found: Found, measure: str, baselines: Sequence[str], seed: int = 0, kind: str = "small") -> Added:
    """What a measure adds to other baselines than those of the rules; ranks, as in the rules, dealt to folds once.

    Args:
        found: a data set with a leaderboard.
        measure: column; taken out of the baselines.
        baselines: columns, at least one beside it.
        seed: by which families are dealt to folds.
        kind: which zoo.

    Returns:
        R2 without and with it, see :func:`nbutils.evaluation.added.added_variance`.
    """
    networks, _ = sound(found.tables, kind, "true")
    base = [name for name in baselines if name != measure]
    ranks = values_of(found.tables, networks, [*base, measure]).set_axis(networks.index).dropna().rank()
    own = networks.loc[ranks.index]
    accuracy = own["accuracy"].rank()
    options = {"folds": PROTOCOL.folds, "repeats": 1, "draws": 99}
    return added_variance(accuracy, ranks[base], ranks[measure], own["family"], seed, **options)


def gains_table(studies: Sequence[Found]) -> pd.DataFrame:
    """Gains in R2 of the hypotheses' measures and of the linear probe, beyond several sets of baselines.

    Args:
        studies: data sets with a leaderboard.

    Returns:
        One row per data set and measure: R2 of the nine baselines of the rules, the gain on the board, and the same
        with families dealt to other folds; without the number of training images; beyond training loss and that
        number alone; and with accuracy on the probe as a tenth baseline.
    """
    nine = PROTOCOL.baselines
    fewer = [name for name in nine if name != "examples"]
    sets, rows = {"without images": fewer, "loss and images only": ["train_loss", "examples"]}, []
    sets["with probe accuracy"] = [*nine, "probe_accuracy"]
    for one in studies:
        board = one.board.set_index("measure")
        for name in (*OURS, "linear_probe"):
            again = gain_over(one, name, nine, seed=1)
            row = {"data set": one.title, "measure": board["called"][name], "R² of the baselines": again.baselines}
            row |= {"gain, board": board["gain"][name], "other folds": again.gain.value}
            rows.append(row | {called: gain_over(one, name, chosen).gain.value for called, chosen in sets.items()})
    return pd.DataFrame(rows)


def moves_figure(table: pd.DataFrame, least: float) -> Figure:
    """A heat map: how far rho moves under every change, and on how many data sets its sign turns.

    Args:
        table: see :func:`changes`, of some data sets together.
        least: size of rho on the board from which on a turned sign counts.
    """
    measures, columns = list(ROWS), SHOWN
    rows = table[table["measure"].isin(measures) & table["change"].isin(list(columns))]
    turned = (np.sign(rows["rho"]) != np.sign(rows["board"])) & (rows["board"].abs() >= least) & rows["rho"].notna()
    rows = rows.assign(moved=(rows["rho"] - rows["board"]).abs(), turned=turned)
    each = rows.groupby(["measure", "change"])[["moved", "turned"]].agg({"moved": "mean", "turned": "sum"})
    moved, turns = (each[name].unstack().reindex(index=measures, columns=list(columns)) for name in each)
    named = dict(zip(rows["measure"], rows["called"], strict=True))
    with figure_style():
        fig, ax = plt.subplots(figsize=(WIDTH, 0.27 * len(measures) + 2.2))
        drawn = ax.imshow(moved, cmap="Blues", vmin=0, vmax=0.6, aspect="auto")
        ax.grid(visible=False)
        for row, column in zip(*np.nonzero(turns.fillna(0).to_numpy()), strict=True):
            dark = moved.iloc[row, column] > 0.3
            text = f"{turns.iloc[row, column]:.0f}"
            ax.text(column, row, text, ha="center", va="center", color="white" if dark else "#111111", fontsize=8.5)
        ax.set_xticks(range(len(columns)), list(columns.values()), rotation=45, ha="right", rotation_mode="anchor")
        ax.set_yticks(range(len(measures)), [named.get(name, name) for name in measures])
        fig.colorbar(drawn, ax=ax, label="mean change of ρ", shrink=0.8)
        plt.close(fig)
    return fig
