"""Pages about networks that somebody brought: one with layers, graph and references, or several over their depth."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from nbutils.capturing.proposals import RECURRENT
from nbutils.drawing.display import INK, Html, callout, figure_style, fold, format_number, show_table
from nbutils.drawing.palette import COMMUNITIES, GREY, NOTHING, SUBJECT, UNTRAINED
from nbutils.own.measure import COUNTS, FEW, FEWEST, MEASURED, WHOLE, Measured, measure
from nbutils.pages.answering import open_all, open_kind
from nbutils.pages.portraits import pulled_layout
from nbutils.pages.speed import costs_of_measuring, read_figures
from nbutils.second.answers import sound, values_of
from nbutils.second.candidates import CANDIDATES
from nbutils.support.checks import shown
from nbutils.support.files import project_folder, replace_file

__all__ = [
    "book_ranges",
    "by_depth",
    "costs_by_size",
    "depth_figure",
    "graph_figure",
    "kind_of",
    "layers_figure",
    "open_measured",
    "open_outside",
    "show_costs",
    "show_found",
    "show_layers",
    "show_outside",
    "show_references",
    "told_of_graph",
    "write_ranges",
]

REFERENCES = "chance, architecture and noise make"
GUESSED = "standardised over these images"  # how inputs are told that no mean and deviation were given for
KINDS = (("untrained", UNTRAINED, "untrained twins"), ("noise", NOTHING, "the network on noise"))
TITLES = {
    "excess": "Q beyond chance",
    "remainder": "remainder beyond classes",
    "active_entropy": "binned entropy (bits)",
}
OUTSIDE = Path("book/results/outside")
PANELS = {
    "excess": "Q beyond chance",
    "class_part": "class preference",
    "remainder": "remainder",
    "active_entropy": "binned entropy (bits)",
}
WORDS = {
    "above": "above every untrained twin and noise",
    "below": "below every untrained twin and noise",
    "unknown": "beside references that are not known",
}


def open_measured(folder: str = "") -> Measured:
    """What `python -m nbutils measure` wrote into a folder; without one, an example that is trained now, on digits."""
    if folder:
        return Measured.load(folder)
    from nbutils.data.datasets import load_dataset
    from nbutils.runs.run import run_once
    from nbutils.runs.spec import RunSpec

    run, data = run_once(RunSpec(model="mlp:128-64", epochs=10, dropout=0.0)), load_dataset("digits")
    inputs = run.spec.data().to_inputs(data.test_pixels)
    found = measure(run.network(-1), inputs, data.test_labels)
    told = {"name": "Example, 128 and 64 hidden neurons, trained on digits for ten epochs", "weights": "trained here"}
    found.about.update(told | {"data": f"test images of {data.title}", "class_names": list(data.classes)})
    return found


def row_of(found: Measured, measure_name: str, layer: str = WHOLE) -> pd.Series:
    """A row of the table; all NaN and "unknown" where there is none."""
    rows = found.table[(found.table["layer"] == layer) & (found.table["measure"] == measure_name)]
    nothing = pd.Series(np.nan, index=found.table.columns, dtype=object)
    nothing["word"] = "unknown"
    return rows.iloc[0] if len(rows) else nothing


def told_of_graph(found: Measured) -> str:
    """How far Q of the whole network lies beyond chance, and where among its references, in words."""
    excess = row_of(found, "excess")
    if not np.isfinite(excess["value"]):
        return f"Q is not known, for fewer than {FEWEST} neurons fire in every network compared"
    return f"Q lies {format_number(excess['value'], 2)} beyond chance, {WORDS.get(excess['word']) or _among(excess)}"


def _halves(row: pd.Series) -> str:
    """What a number is on two halves of the images, on which its word rests, too."""
    return f"halves of the images {' to '.join(format_number(end, 2) for end in sorted((row['first'], row['second'])))}"


def _among(row: pd.Series) -> str:
    """What a number is beyond that is not beyond all of its references."""
    own = row[["value", "first", "second"]].astype(float)
    beyond = {
        name: own.min() > row[f"{kind}_high"] or own.max() < row[f"{kind}_low"]
        for kind, name in (("untrained", "every untrained twin"), ("noise", "noise"))
    }
    clear, others = ([name for name in beyond if beyond[name] == is_so] for is_so in (True, False))
    if not clear:
        return "not beyond every untrained twin, nor noise"
    return f"beyond {clear[0]}, but not beyond {others[0]}" if others else "between untrained twins and noise"


def show_found(found: Measured) -> Html:
    """The box that the page opens with: whether the communities are more than references have, in plain words."""
    about = found.about
    excess, remainder = row_of(found, "excess"), row_of(found, "remainder")
    text = told_of_graph(found)
    ends = [excess[f"{kind}_{end}"] for kind in ("untrained", "noise") for end in ("low", "high")]
    beside = ""
    if np.isfinite(ends).all():
        spans = "twins {} to {}, noise {} to {}".format(*(format_number(end, 2) for end in ends))
        beside = f" ({_halves(excess)}, {spans})"
    if excess["word"] == "above":
        title = f"This network's communities are more than {REFERENCES}"
        text += f"{beside}; luck alone makes one network in {about['twins'] + 2} the highest."
        if about["classes"]:
            part = format_number(row_of(found, "class_part")["value"], 2)
            rest = format_number(remainder["value"], 2)
            text += f" Preference for the same classes makes {part} of it; {rest} is left beyond that."
    else:
        less = excess["word"] == "below"
        title = f"This network's communities are {'less than' if less else 'not shown to be more than'} {REFERENCES}"
        text += f"{beside}; luck alone makes one network in {about['twins'] + 2} the lowest." if less else f"{beside}."
    if about["images"] < FEW:
        text += f" Of fewer than {FEW} images halves differ by more than networks do: give more."
    if left_out := about.get("left_out"):
        text += f" Left out, for they could not be measured: {', '.join(left_out)}."
    accuracy = "" if about["accuracy"] is None else f" Accuracy on these images: {about['accuracy']:.3f}."
    if about.get("unscored"):
        accuracy = f" No accuracy: {about['unscored']}."
    if about["accuracy"] is not None and about.get("outputs", about["classes"]) > about["classes"]:
        accuracy += f" It has {about['outputs']:,} outputs, the labels {about['classes']} classes: are they the same?"
    if about["accuracy"] is not None and about.get("weights") and about["inputs"].startswith(GUESSED):
        accuracy += f" Inputs were {GUESSED}: if training prepared them otherwise, give --mean and --std."
    return callout(title, f"{text}{accuracy}", "supported" if excess["word"] == "above" else "inconclusive")


def show_layers(found: Measured) -> Html:
    """The layers that were considered, and why each was taken or not, folded."""
    columns = ["name", "kind", "neurons", "why"]
    table = show_table(found.layers[columns], "Layers in the order in which they run.", names=columns)
    return fold(f"{len(found.layers)} layer{'s'[: len(found.layers) > 1]}, in the order in which they run", table)


def layers_figure(found: Measured) -> Figure:
    """Three measures, layer by layer: dots with their halves, bars for what twins and noise give."""
    layers = list(dict.fromkeys(found.table["layer"]))
    with figure_style():
        fig, axes = plt.subplots(1, len(TITLES), figsize=(8.2, 0.26 * len(layers) + 1.4), sharey=True)
        places = np.arange(len(layers))
        for ax, (name, title) in zip(axes, TITLES.items(), strict=True):
            rows = found.table[found.table["measure"] == name].set_index("layer").reindex(layers)
            for offset, (kind, colour, label) in zip((-0.14, 0.14), KINDS, strict=True):
                ends = rows[f"{kind}_low"].to_numpy(float), rows[f"{kind}_high"].to_numpy(float)
                ax.hlines(places + offset, *ends, color=colour, lw=4, alpha=0.7, label=label)
            halves = rows["first"].to_numpy(float), rows["second"].to_numpy(float)
            ax.hlines(places, np.minimum(*halves), np.maximum(*halves), color=SUBJECT, lw=1.5)
            ax.plot(rows["value"].to_numpy(float), places, "o", ms=4.5, color=SUBJECT, label="this network")
            if name != "active_entropy":  # which is never negative, and far from 0
                ax.axvline(0, color=INK, lw=0.6)
            ax.set_title(title, fontsize=9.5)
        axes[0].set(yticks=places, yticklabels=layers)
        axes[0].set_ylim(len(layers) - 0.4, -0.6)  # the first on top, and no room to spare
        handles, labels = axes[0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=3)
        plt.close(fig)
    return fig


def graph_figure(found: Measured) -> Figure:
    """Neurons of the whole network as dots, those that fire together near each other, coloured by community."""
    graph = nx.Graph(list(found.edges.itertuples(index=False, name=None)))
    if not graph:
        with figure_style():
            fig, ax = plt.subplots(figsize=(7, 1))
            ax.text(0.5, 0.5, "No two neurons are joined.", ha="center")
            ax.set_axis_off()
            plt.close(fig)
        return fig
    places = pulled_layout(graph)
    sizes = found.neurons["community"].loc[found.neurons["community"] >= 0].value_counts()
    colours = {community: COMMUNITIES[place] for place, community in enumerate(sizes.index[: len(COMMUNITIES)])}
    with figure_style():
        fig, ax = plt.subplots(figsize=(7, 4.6))
        ends = [(places[first], places[second]) for first, second in graph.edges]
        ax.add_collection(LineCollection(ends, colors=GREY, linewidths=0.3, alpha=0.3, zorder=1))
        nodes = list(graph)
        shades = [colours.get(found.neurons["community"].iloc[node], GREY) for node in nodes]
        ax.scatter(*np.array([places[node] for node in nodes]).T, c=shades, s=16, zorder=2, lw=0)
        ax.set_axis_off()
        plt.close(fig)
    return fig


def show_references(found: Measured) -> Html:
    """The whole network beside twins, noise and, where some are of its kind, the committed networks of this book."""
    rows = found.table[(found.table["layer"] == WHOLE) & found.table["value"].notna()]
    rows = rows[~rows["measure"].isin(COUNTS)]

    def span(low: float, high: float) -> str:
        return f"{format_number(low, 3)} to {format_number(high, 3)}" if np.isfinite([low, high]).all() else "–"

    committed = _committed(found)
    table = pd.DataFrame(
        {
            "measure": rows["called"],
            "value": rows["value"],
            "halves": [span(*sorted(pair)) for pair in zip(rows["first"], rows["second"], strict=True)],
            "untrained": [span(*pair) for pair in zip(rows["untrained_low"], rows["untrained_high"], strict=True)],
            "on noise": [span(*pair) for pair in zip(rows["noise_low"], rows["noise_high"], strict=True)],
            "word": rows["word"],
        }
    )
    if committed:
        table.insert(5, "networks of this book", [span(*committed.get(n, (np.nan, np.nan))) for n in rows["measure"]])
    caption = "The whole network beside its references; ranges are from the smallest to the largest"
    return show_table(table, f"{caption}{', of networks of this book the middle 90 %' if committed else ''}.", 3)


def show_costs(found: Measured) -> Html:
    """Seconds and mebibytes of every entry of the registry, with what it gives."""
    known = set(found.table.loc[found.table["value"].notna(), "measure"])
    given = {one.name: ", ".join(one.columns.values()) for one in CANDIDATES if known & set(one.columns)}
    rows = found.costs[found.costs["entry"].isin(list(given))]
    table = rows.assign(entry=rows["entry"].map(given)).rename(columns={"entry": "measures"})
    return show_table(table, "Cost of each entry of the registry of measures.", 2)


def costs_by_size() -> pd.DataFrame:
    """What measuring takes by the number of neurons, as `make bench` wrote it; no row without the project's folder."""
    bars = project_folder(Path("benchmarks")) / "benchmarks/bars.yml"
    return costs_of_measuring(read_figures(bars) if bars.is_file() else {})


KIND_NAMES = ("fully connected", "convolutional", "transformer")
RANGES = "ranges.json"  # beside the code that measures networks


def kind_of(found: Measured) -> str:
    """ "fully connected", "convolutional" or "transformer", by the shapes of its layers; "" for any other.

    A neuron is a unit in the first, a channel of maps in the second, a unit of tokens in the third.
    """
    chosen = found.layers[found.layers["chosen"]]
    dimensions = chosen["shape"].str.count("x")  # beside the neurons themselves
    last = chosen["layout"].isin(["features-last", "steps-first"])
    if (dimensions == 0).all():
        return "fully connected"
    if ((dimensions == 2) & ~last).any() and not (last & (dimensions > 0)).any():
        return "convolutional"
    tokens = ((dimensions == 1) & last).any() and not chosen["kind"].isin([one.__name__ for one in RECURRENT]).any()
    return "transformer" if tokens and not ((dimensions > 0) & ~last).any() else ""


def book_ranges() -> dict[str, dict[str, tuple[float, float]]]:
    """Middle 90 % of the clean networks of this book, by kind and measure, from the committed tables.

    They travel with the package, which is used where no tables are; `make glance` writes them.
    """
    found = {}
    for kind in KIND_NAMES:
        rows = []
        for one in open_all() if kind == KIND_NAMES[0] else open_kind(kind):
            networks, _ = sound(one.tables, "small", "true")
            rows.append(values_of(one.tables, networks, list(MEASURED)))
        known = {name: values.dropna() for name, values in pd.concat(rows).items()}
        found[kind] = {
            name: tuple(float(f"{end:.6g}") for end in np.quantile(values, (0.05, 0.95)))
            for name, values in known.items()
            if len(values)
        }
    return found


def write_ranges(root: Path) -> None:
    """Write :func:`book_ranges` into the package."""
    replace_file(root / "nbutils/own" / RANGES, (json.dumps(book_ranges(), indent=0) + "\n").encode())


def _committed(found: Measured) -> dict[str, tuple[float, float]]:
    """Ranges of the networks of this book that are of the same kind."""
    ranges = json.loads(files("nbutils.own").joinpath(RANGES).read_text("utf-8"))
    return {name: tuple(ends) for name, ends in ranges.get(kind_of(found), {}).items()}


def open_outside(tables: str = "") -> dict[str, Measured]:
    """What `python -m nbutils measure` found of networks from elsewhere, those with fewer neurons first.

    Args:
        tables: folder with a folder for each; empty for the committed ones.

    Raises:
        FileNotFoundError: there is none; says how to make one.
    """
    folder = Path(tables) if tables else project_folder(OUTSIDE) / OUTSIDE
    found = [Measured.load(path.parent) for path in sorted(folder.glob("*/table.parquet"))]
    if not found:
        raise FileNotFoundError(
            f"{shown(str(folder))} has no network; run python -m nbutils measure --into {folder}/NAME"
        )
    return {_called(one): one for one in sorted(found, key=lambda one: one.about["parameters"])}


def _called(found: Measured) -> str:
    """The factory's name, as in `file.py:factory`."""
    return str(found.about["name"]).rpartition(":")[2]


def by_depth(found: Measured, measure: str) -> pd.DataFrame:
    """One measure of every single layer, in the order in which they run; `depth` goes from 0 to 1."""
    rows = found.table[(found.table["measure"] == measure) & (found.table["layer"] != WHOLE)]
    return rows.assign(depth=np.linspace(0, 1, len(rows))).reset_index(drop=True)


def show_outside(found: Mapping[str, Measured]) -> Html:
    """The box that the page opens with: of each network what the whole of it says, and how many layers agree."""
    parts = []
    for name, one in found.items():
        whole = {measure: row_of(one, measure) for measure in ("excess", "class_part", "remainder")}
        value, part, rest = (format_number(row["value"], 2) for row in whole.values())
        low, high = (format_number(whole["excess"][f"untrained_{end}"], 2) for end in ("low", "high"))
        layers = by_depth(one, "excess")
        known = layers[layers["word"] != "unknown"]
        parts.append(
            f"**{name}**: Q lies {value} beyond chance ({_halves(whole['excess'])}), "
            f"**{whole['excess']['word']}** {one.about['twins']} untrained "
            f"twins ({low} to {high}) and noise; class preference is {part} of it, the remainder {rest} "
            f"(**{whole['remainder']['word']}** its references). Layers above: {(known['word'] == 'above').sum()} of "
            f"{len(known)} wide enough to be measured."
        )
    words = {row_of(one, "excess")["word"] for one in found.values()}
    return callout("What the command says", " ".join(parts), "supported" if words == {"above"} else "inconclusive")


def depth_figure(found: Mapping[str, Measured]) -> Figure:
    """Four measures over depth, a row per network, with what twins and noise give; dots are layers above these."""
    with figure_style():
        size = (8.2, 2.1 * len(found) + 0.7)
        fig, axes = plt.subplots(len(found), len(PANELS), figsize=size, sharex=True, sharey="col", squeeze=False)
        for row, (name, one) in zip(axes, found.items(), strict=True):
            for ax, measure in zip(row, PANELS, strict=True):
                layers = by_depth(one, measure)
                for kind, colour, label in (("untrained", UNTRAINED, "untrained twins"), ("noise", NOTHING, "noise")):
                    ends = layers[f"{kind}_low"].to_numpy(float), layers[f"{kind}_high"].to_numpy(float)
                    ax.fill_between(layers["depth"], *ends, color=colour, alpha=0.3, lw=0, label=label)
                ax.plot(layers["depth"], layers["value"].astype(float), color=SUBJECT, lw=1.4, label=name)
                above = layers[layers["word"] == "above"]
                ax.plot(above["depth"], above["value"].astype(float), "o", ms=3.5, color=SUBJECT, label="above both")
                if measure != "active_entropy":  # which is never negative, and far from 0
                    ax.axhline(0, color=INK, lw=0.6)
                ax.set(xlim=(-0.02, 1.02), xticks=(0, 0.5, 1))
            row[0].set_ylabel(name)
        for ax, title in zip(axes[0], PANELS.values(), strict=True):
            ax.set_title(title, fontsize=9.5)
        for ax in axes[-1]:
            ax.set_xlabel("depth")
        handles, labels = axes[0, -1].get_legend_handles_labels()
        labels = ["the network" if label in found else label for label in labels]
        fig.legend(handles, labels, loc="outside lower center", ncols=4)
        plt.close(fig)
    return fig
