"""The Leiden algorithm, compiled: communities of a weighted graph that are connected and locally optimal.

Each level moves single nodes to where modularity grows most, refines every community into well-connected parts, and
goes on with those parts as nodes, until nothing moves.

Compiled functions are given all the memory they work in: compiling whatever allocates takes longer than running it.

References:
    Traag, Waltman and van Eck (2019), doi:10.1038/s41598-019-41695-z.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from nbutils.support.loops import inner, loop

# How readily the refinement takes a part that is not the best one: gains count in this share of the node's strength.
RANDOMNESS = 0.01


class Level(NamedTuple):
    """The graph at one level: symmetric CSR without self-loops; strengths of nodes count what is inside them."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    strength: np.ndarray


def leiden(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, resolution: float, seed: int, start: np.ndarray
) -> np.ndarray:
    """One full pass of Leiden for modularity.

    Args:
        indptr, indices, data: symmetric CSR adjacency, float64, non-negative, zero diagonal.
        resolution: of modularity, above 0.
        seed: seed of the order in which nodes are visited, and of the refinement.
        start: community per node to begin with, numbered below the number of nodes; singletons are `arange`.

    Returns:
        Community per node, int64, in no particular numbering. Nodes without edges keep a community of their own.
    """
    nodes = indptr.size - 1
    community, member = np.array(start, np.int64), np.arange(nodes, dtype=np.int64)
    state = np.array([(int(seed) * 0x9E3779B97F4A7C15 + 0x1234567) % 2**64], np.uint64)
    # The levels above take turns, since each is made from the one below; memory that none needs is never touched.
    above = np.empty((2, nodes + 1), indptr.dtype), np.empty((2, indices.size), indices.dtype), np.empty((2, data.size))
    whole, real = np.empty((6, nodes + 1), np.int64), np.zeros((6, nodes + 1))
    _search(indptr, indices, data, float(resolution), state, community, member, *above, whole, real)
    return member


def compile_now() -> None:
    """Compile for graphs of SciPy's usual types, by searching one without nodes."""
    leiden(np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0), 1.0, 0, np.zeros(0, np.int64))


@loop
def _search(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    resolution: float,
    state: np.ndarray,
    community: np.ndarray,
    member: np.ndarray,
    above_indptr: np.ndarray,
    above_indices: np.ndarray,
    above_data: np.ndarray,
    whole: np.ndarray,
    real: np.ndarray,
) -> None:
    """The levels, from single nodes up; `member` is the node of the present level that each original node belongs to.

    Rows of `whole` and `real` are what each step works in; `weight` is 0 between uses.
    """
    part, order, size = whole[0], whole[1], whole[2]
    touched, names, free = whole[3], whole[4], whole[5]
    strength, weight, held = real[0], real[1], real[2]
    border, inside, chance = real[3], real[4], real[5]
    nodes, total, level = member.size, 0.0, 0
    for node in range(nodes):
        own = 0.0
        for entry in range(indptr[node], indptr[node + 1]):
            own += data[entry]
        strength[node] = own
        total += own
    graph = Level(indptr, indices, data, strength)
    rate = resolution / total if total > 0 else 0.0
    while total > 0:
        _move(nodes, graph, rate, state, community, order, size, touched, names, free, weight, held)
        count = _renumber(community, nodes, names)
        if count == nodes:
            break
        _refine(nodes, graph, rate, state, community, part, order, size, touched, weight, held, border, inside, chance)
        parts = _renumber(part, nodes, names)
        if parts == nodes:  # nothing joined: go on with whole communities
            for node in range(nodes):
                part[node] = community[node]
            parts = count
        above = Level(above_indptr[level % 2], above_indices[level % 2], above_data[level % 2], strength)
        _aggregate(nodes, graph, community, part, parts, above, order, touched, names, free, weight, held)
        graph = above
        nodes, level = parts, level + 1
        for node in range(member.size):
            member[node] = part[member[node]]
    for node in range(member.size):
        member[node] = community[member[node]]


@inner
def _random(state: np.ndarray) -> int:
    """The next 64 random bits of a state of one word (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@inner
def _shuffle(state: np.ndarray, nodes: int, order: np.ndarray) -> None:
    """A random order of fewer than 2**32 nodes."""
    for node in range(nodes):
        order[node] = node
    for last in range(nodes - 1, 0, -1):
        other = np.int64(((_random(state) >> np.uint64(32)) * np.uint64(last + 1)) >> np.uint64(32))
        order[last], order[other] = order[other], order[last]


@inner
def _gather(
    graph: Level,
    node: int,
    names: np.ndarray,
    weight: np.ndarray,
    touched: np.ndarray,
    touches: int,
) -> int:
    """Add the weight from a node to each name among its neighbours; new names go to `touched`; returns its length."""
    for entry in range(np.uint64(graph.indptr[node]), np.uint64(graph.indptr[node + 1])):
        name = np.uint64(names[np.uint64(graph.indices[entry])])
        before = weight[name]
        touched[touches] = name
        touches += before == 0
        weight[name] = before + graph.data[entry]
    return touches


@inner
def _move(
    nodes: int,
    graph: Level,
    rate: float,
    state: np.ndarray,
    community: np.ndarray,
    queue: np.ndarray,
    size: np.ndarray,
    touched: np.ndarray,
    waiting: np.ndarray,
    empty: np.ndarray,
    weight: np.ndarray,
    held: np.ndarray,
) -> None:
    """Move nodes one by one, and whoever may want to follow, until no move raises modularity.

    `held` and `size` are the strength of each community and how many nodes it has, `weight` that of the edges from the
    present node to each community, and `empty` is a stack of unused names.
    """
    for node in range(nodes):
        held[node], size[node], waiting[node] = 0, 0, 1
    for node in range(nodes):
        held[community[node]] += graph.strength[node]
        size[community[node]] += 1
    empties = 0
    for name in range(nodes):
        empty[empties] = name
        empties += size[name] == 0
    _shuffle(state, nodes, queue)
    head, queued = 0, nodes
    while queued:
        node = queue[head]
        head = 0 if head + 1 == nodes else head + 1
        queued -= 1
        waiting[node] = 0
        own, old = graph.strength[node], community[node]
        touches = _gather(graph, node, community, weight, touched, np.int64(0))
        held[old] -= own
        best, gain = old, weight[old] - rate * own * held[old]
        for place in range(touches):
            name = touched[place]
            other = weight[name] - rate * own * held[name]
            if other > gain + 1e-12 * own:
                best, gain = name, other
        if gain < -1e-12 * own and size[old] > 1:  # better off alone
            empties -= 1
            best = empty[empties]
        held[best] += own
        if best != old:
            size[old] -= 1
            size[best] += 1
            if size[old] == 0:
                empty[empties] = old
                empties += 1
            community[node] = best
            for entry in range(np.uint64(graph.indptr[node]), np.uint64(graph.indptr[node + 1])):
                neighbour = np.uint64(graph.indices[entry])
                if community[neighbour] != best and not waiting[neighbour]:
                    waiting[neighbour] = 1
                    tail = head + queued
                    queue[tail - nodes if tail >= nodes else tail] = neighbour
                    queued += 1
        for place in range(touches):
            weight[touched[place]] = 0


@inner
def _refine(
    nodes: int,
    graph: Level,
    rate: float,
    state: np.ndarray,
    community: np.ndarray,
    part: np.ndarray,
    order: np.ndarray,
    size: np.ndarray,
    touched: np.ndarray,
    weight: np.ndarray,
    held: np.ndarray,
    border: np.ndarray,
    whole: np.ndarray,
    chance: np.ndarray,
) -> None:
    """Parts of each community: single nodes join parts that both fit them and are well connected to the rest.

    `whole` is the strength of each community, `held` and `size` that of each part and how many nodes it has, `border`
    the weight from each part to the rest of its community.
    """
    for node in range(nodes):
        part[node], held[node], size[node] = node, graph.strength[node], 1
        whole[node] = 0
    for node in range(nodes):
        own, rest = community[node], 0.0
        whole[own] += graph.strength[node]
        for entry in range(np.uint64(graph.indptr[node]), np.uint64(graph.indptr[node + 1])):
            rest += graph.data[entry] if community[np.uint64(graph.indices[entry])] == own else 0.0
        border[node] = rest
    _shuffle(state, nodes, order)
    for turn in range(nodes):
        node = order[turn]
        own, mine = community[node], graph.strength[node]
        if size[part[node]] > 1 or border[node] < rate * mine * (whole[own] - mine):
            continue
        touches = _gather(graph, node, part, weight, touched, np.int64(0))
        best, kept = 0.0, np.int64(0)
        for place in range(touches):
            name = touched[place]  # parts are named after one of their nodes
            gain = weight[name] - rate * mine * held[name] if community[name] == own else 0.0
            if gain > 0 and border[name] >= rate * held[name] * (whole[own] - held[name]):
                chance[kept] = gain
                touched[kept], touched[place] = name, touched[kept]
                best = max(best, gain)
                kept += 1
        if kept:
            name = touched[_draw(state, chance, kept, best, RANDOMNESS * mine)]
            border[name] += border[node] - 2 * weight[name]
            held[name] += mine
            size[name] += 1
            size[node] = 0
            part[node] = name
        for place in range(touches):
            weight[touched[place]] = 0


@inner
def _draw(state: np.ndarray, gains: np.ndarray, count: int, best: float, scale: float) -> int:
    """A place with probability proportional to exp(gain / scale)."""
    total = 0.0
    for place in range(count):
        gains[place] = math.exp((gains[place] - best) / scale)
        total += gains[place]
    point = total * (_random(state) >> np.uint64(11)) * 2.0**-53
    for place in range(count - 1):
        point -= gains[place]
        if point < 0:
            return place
    return count - 1


@inner
def _renumber(names: np.ndarray, nodes: int, number: np.ndarray) -> int:
    """Number the names of nodes from 0 in order of appearance, in place; returns how many there are."""
    count = 0
    for name in range(nodes):
        number[name] = -1
    for node in range(nodes):
        if number[names[node]] < 0:
            number[names[node]] = count
            count += 1
        names[node] = number[names[node]]
    return count


@inner
def _aggregate(
    nodes: int,
    graph: Level,
    community: np.ndarray,
    part: np.ndarray,
    parts: int,
    above: Level,
    members: np.ndarray,
    touched: np.ndarray,
    last: np.ndarray,
    groups: np.ndarray,
    weight: np.ndarray,
    held: np.ndarray,
) -> None:
    """The graph whose nodes are the parts, without self-loops; their strengths and communities replace the nodes'."""
    for name in range(parts):
        last[name], held[name] = 0, 0
    for node in range(nodes):
        last[part[node]] += 1
        held[part[node]] += graph.strength[node]
        groups[part[node]] = community[node]
    first = 0
    for name in range(parts):
        first, last[name] = first + last[name], first
        above.strength[name], community[name] = held[name], groups[name]
    for node in range(nodes):  # in this order within each part
        members[last[part[node]]] = node
        last[part[node]] += 1
    first, kept, above.indptr[0] = 0, 0, 0
    for name in range(parts):
        touches = np.int64(0)
        for at in range(first, last[name]):
            touches = _gather(graph, members[at], part, weight, touched, touches)
        first = last[name]
        for at in range(touches):
            if touched[at] != name:
                above.indices[kept], above.data[kept] = touched[at], weight[touched[at]]
                kept += 1
            weight[touched[at]] = 0
        above.indptr[name + 1] = kept
