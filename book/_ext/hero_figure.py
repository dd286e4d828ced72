"""The first page's picture and the graph whose density one can move, as HTML: still, and with what `hero.js` needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from typing import Any

import drawing
import numpy as np

__all__ = ["density_html", "hero_alt", "hero_caption", "hero_html", "pairs_of", "stage"]

WIDTH, HEIGHT, MARGIN = 560, 450, 12
# What the curves show, from the top of the table: key, words, class of the line in `book.css`.
CURVES = (
    ("accuracy", "test accuracy", "accuracy"),
    ("modularity", "Q, modularity", "modularity"),
    ("classes", "Q, shuffled within classes", "classes"),
    ("chance", "Q, by chance", "chance"),
)


def pairs_of(epoch: dict[str, Any], neurons: int) -> list[tuple[int, int]]:
    """Pairs of neurons that are drawn after an epoch, see `hero.strongest`."""
    return [divmod(int(number), neurons) for number in np.cumsum(epoch["pairs"])]


def hero_html(data: dict[str, Any]) -> str:
    """The figure: two still pictures, curves and a table; `hero.js` makes one that plays of them.

    Args:
        data: what `hero.hero_data` found.
    """
    first, last = data["epochs"][0], data["epochs"][-1]
    titles = ("Before training", f"After epoch {len(data['epochs']) - 1}")
    still = [
        drawing.panel(WIDTH, HEIGHT, stage(data, epoch, labelled=epoch is last), title=title)
        for title, epoch in zip(titles, (first, last), strict=True)
    ]
    kept = json.dumps({**data, "about": None, "sample": None}, separators=(",", ":"))
    side = f'<div class="nb-side">{curves(data["epochs"])}{_table(data["epochs"], titles)}</div>'
    more = f'{side}<script type="application/json">{kept}</script>'
    return drawing.figure("hero", still, hero_caption(data), hero_alt(data), more)


def hero_caption(data: dict[str, Any]) -> str:
    """What the picture says, in numbers of its data."""
    epochs, about = data["epochs"], data["about"]
    first, second, last = (epochs[n] for n in (0, 1, -1))
    best = max(range(len(epochs)), key=lambda n: epochs[n]["accuracy"])
    _require_finding(epochs)
    point = "The first epoch sorts the neurons by class; later ones add a little accuracy at best, and no modularity."
    return (
        f"<strong>{point}</strong> Modularity Q goes from {first['modularity']:.2f} to {second['modularity']:.2f} with "
        f"the first epoch, and falls to {last['modularity']:.2f} by epoch {len(epochs) - 1}, while test accuracy goes "
        f"from {first['accuracy']:.3f} over {second['accuracy']:.3f} to its best, {epochs[best]['accuracy']:.3f} after "
        f"epoch {best}. By chance Q would be {last['chance']:.2f} in the end; with firing shuffled within classes it "
        f"is {last['classes']:.2f}, no less than in the network itself. Every dot is one of the {len(data['layers'])} "
        f"hidden neurons of one network on {about['title']} ({about['model'].removeprefix('mlp:')} neurons, seed "
        f"{about['seed']}), a colour a community, grey no community or a small one; neurons stand where the "
        "communities of the last epoch put them, the digits say which classes make a community fire more than twice "
        f"as often as on average. Drawn are the {len(last['pairs'])} heaviest of {last['edges']:,} edges; Q is that of "
        "all. The row below holds neurons without an edge after the last epoch. One network is an illustration; the "
        f"answers below come from many. Source: run <code>{about['run']}</code>, commit "
        f"<code>{about['commit']}</code>; <code>make pictures</code> computes it again."
    )


def _require_finding(epochs: Sequence[dict[str, Any]]) -> None:
    """The caption is a sentence; it stands only as long as the numbers do.

    Raises:
        ValueError: they no longer say what the sentence says.
    """
    q, accuracy = ([epoch[key] for epoch in epochs] for key in ("modularity", "accuracy"))
    held = {
        "Q rises in the first epoch": q[1] > q[0],
        "Q falls afterwards": q[-1] < q[1],
        "accuracy rises further, by a little": 0 < max(accuracy) - accuracy[1] < 0.05,
        "class preference explains Q": epochs[-1]["classes"] >= q[-1] > epochs[-1]["chance"],
    }
    if wrong := [words for words, holds in held.items() if not holds]:
        raise ValueError(f"the caption of the first picture needs other words, it is not so that {', '.join(wrong)}")


def hero_alt(data: dict[str, Any]) -> str:
    """The data in words."""
    first, last = data["epochs"][0], data["epochs"][-1]
    groups = "; ".join(f"{group['neurons']} neurons, digits {_classes(group)}" for group in data["groups"])
    return (
        f"{len(data['layers'])} neurons as dots. Before training {first['communities']} communities, their colours "
        f"mixed over the picture; after epoch {len(data['epochs']) - 1} {last['communities']} communities, each a "
        f"cluster of one colour: {groups}. Modularity {first['modularity']:.2f} and {last['modularity']:.2f}, test "
        f"accuracy {first['accuracy']:.2f} and {last['accuracy']:.2f}."
    )


def _classes(group: dict[str, Any]) -> str:
    return " ".join(map(str, group["classes"]))


def _table(epochs: Sequence[dict[str, Any]], titles: Sequence[str]) -> str:
    """Numbers of the first and the last epoch; `hero.js` adds a column for the epoch that is shown."""
    head = "".join(f'<th scope="col" class="still">{escape(title)}</th>' for title in titles)
    rows = []
    for key, words, kind in CURVES:
        cells = "".join(f'<td class="still">{epoch[key]:.2f}</td>' for epoch in (epochs[0], epochs[-1]))
        stroke = drawing.line(0, 4, 26, 4, f"curve {kind}")
        mark = f'<svg viewBox="0 0 26 8" aria-hidden="true" focusable="false">{stroke}</svg>'
        rows.append(f'<tr data-key="{key}"><th scope="row">{mark} {escape(words)}</th>{cells}</tr>')
    return f'<table class="nb-read"><thead><tr><td></td>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def stage(data: dict[str, Any], epoch: dict[str, Any], *, labelled: bool) -> str:
    """Neurons at their places, in the colours of their communities, and the heaviest pairs."""
    x, y = (
        MARGIN + np.array(axis) * (side - 2 * MARGIN)
        for axis, side in zip(data["places"], (WIDTH, HEIGHT), strict=True)
    )
    colours, paths = epoch["colours"], {}
    for i, j in pairs_of(epoch, len(colours)):
        inside = colours[i] if colours[i] == colours[j] else -1
        paths.setdefault(inside, []).append(f"M{x[i]:.0f} {y[i]:.0f}L{x[j]:.0f} {y[j]:.0f}")
    edges = [f'<path class="edge {tone(c)}" d="{"".join(path)}"/>' for c, path in sorted(paths.items())]
    dots = [
        drawing.circle(round(a, 1), round(b, 1), 4 if c >= 0 else 2.5, f"neuron {tone(c)}")
        for a, b, c in zip(x, y, colours, strict=True)
    ]
    names = [_name(group) for group in data["groups"]] if labelled else []
    return "".join([*edges, *dots, *names])


def tone(colour: int) -> str:
    """Class of a colour in `book.css`."""
    return f"tone-{colour}" if colour >= 0 else "tone-none"


def _name(group: dict[str, Any]) -> str:
    x, y = (MARGIN + place * (side - 2 * MARGIN) for place, side in zip(group["place"], (WIDTH, HEIGHT), strict=True))
    return drawing.text(round(x), round(y) + 7, _classes(group), "name", size=20)


def curves(epochs: Sequence[dict[str, Any]]) -> str:
    """Accuracy, modularity and both null models over epochs, and a mark that `hero.js` moves."""
    width, height, left, right, top, bottom = 240, 160, 26, 8, 8, 32
    last = len(epochs) - 1
    x = [left + (width - left - right) * n / max(last, 1) for n in range(len(epochs))]

    def level(value: float) -> float:
        return top + (height - top - bottom) * (1 - value)

    parts = [drawing.line(x[-1], top, x[-1], level(0), "now", 2)]
    for value in (0, 0.5, 1):
        parts.append(drawing.line(left, level(value), width - right, level(value), "grid"))
        parts.append(drawing.text(left - 5, level(value) + 4, f"{value:g}", anchor="end", size=11))
    parts += [drawing.text(x[n], level(0) + 15, n, size=11) for n in sorted({0, last // 2, last})]
    parts.append(drawing.text((left + width - right) / 2, height - 2, "epoch", size=11))
    for key, _, kind in CURVES:
        points = " ".join(f"{a:.1f},{level(epoch[key]):.1f}" for a, epoch in zip(x, epochs, strict=True))
        parts.append(f'<polyline class="curve {kind}" points="{points}"/>')
    return drawing.panel(width, height, *parts)


def density_html(data: dict[str, Any]) -> str:
    """A few neurons of the network in a circle, and their graph at three densities; `hero.js` gives it a slider.

    Args:
        data: what `hero.hero_data` found.
    """
    sample = data["sample"]
    few = [next(found for found in sample["densities"] if found["percent"] == percent) for percent in (5, 15, 40)]
    panels = [
        drawing.panel(
            *(330, 352),
            _circle(sample, found),
            drawing.text(
                165, 348, f"{found['edges']} edges, {found['communities']} communities, Q {found['modularity']:.2f}"
            ),
            title=f"{found['percent']} % of pairs",
        )
        for found in few
    ]
    low, middle, high = few
    count = len(sample["neurons"])
    caption = (
        f"<strong>How high Q is depends on how many pairs become edges.</strong> {count} neurons of the network on the "
        "first page, drawn at random, after its last epoch; neighbours in the circle are of one community of the "
        f"whole network. With {low['percent']} % of their {count * (count - 1) // 2} pairs as edges Q is "
        f"{low['modularity']:.2f}, with {middle['percent']} % {middle['modularity']:.2f}, with {high['percent']} % "
        f"{high['modularity']:.2f}: the same firing each time. So Q means something only beside the Q of another graph "
        "of the same density. Colours are the communities found at that density, grey neurons have no edge. Source: "
        f"run <code>{data['about']['run']}</code>."
    )
    told = "; ".join(
        f"at {found['percent']} % {found['edges']} edges, {found['communities']} communities, modularity "
        f"{found['modularity']:.2f}"
        for found in few
    )
    kept = f'<script type="application/json">{json.dumps(sample, separators=(",", ":"))}</script>'
    return drawing.figure("density", panels, caption, f"{count} neurons in a circle with edges: {told}.", kept)


def _circle(sample: dict[str, Any], found: dict[str, Any]) -> str:
    count = len(sample["neurons"])
    turn = 2 * np.pi * np.arange(count) / count - np.pi / 2
    x, y = 165 + 135 * np.cos(turn), 165 + 135 * np.sin(turn)
    least = sorted(sample["counts"], reverse=True)[-(-found["percent"] * len(sample["counts"]) // 100) - 1]
    colours, parts = found["colours"], []
    for i, j, weight in zip(*np.triu_indices(count, 1), sample["counts"], strict=True):
        if weight >= max(least, 1):
            kind = tone(colours[i] if colours[i] == colours[j] else -1)
            parts.append(
                drawing.line(round(x[i], 1), round(y[i], 1), round(x[j], 1), round(y[j], 1), f"edge strong {kind}")
            )
    parts += [
        drawing.circle(round(a, 1), round(b, 1), 8, f"neuron {tone(c)}") for a, b, c in zip(x, y, colours, strict=True)
    ]
    return "".join(parts)
