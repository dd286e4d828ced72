"""The Leiden algorithm, compiled: communities of a weighted graph that are connected and locally optimal.

Each level moves single nodes to where modularity grows most, refines every community into well-connected parts, and
goes on with those parts as nodes, until nothing moves.

References:
    Traag, Waltman and van Eck (2019), doi:10.1038/s41598-019-41695-z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nbutils.support.loops import loop

# How readily the refinement takes a part that is not the best one: gains count in this share of the node's strength.
RANDOMNESS = 0.01


class Level(NamedTuple):
    """The graph at one level: symmetric CSR without self-loops; strengths of nodes count what is inside them."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    strength: np.ndarray


@loop
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
    strength, total = np.zeros(nodes), 0.0
    member = np.empty(nodes, np.int64)  # node of the present level that each original node belongs to
    community = np.empty(nodes, np.int64)
    for node in range(nodes):
        for entry in range(indptr[node], indptr[node + 1]):
            strength[node] += data[entry]
        total += strength[node]
        member[node], community[node] = node, start[node]
    if total == 0:
        return community
    graph, rate = Level(indptr, indices, data, strength), resolution / total
    state = np.empty(1, np.uint64)
    state[0] = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x1234567)
    while True:
        _move(graph, rate, state, community)
        count = _renumber(community, community.size)
        if count == community.size:
            break
        part = _refine(graph, rate, state, community, count)
        parts = _renumber(part, part.size)
        if parts == part.size:  # nothing joined: go on with whole communities
            for node in range(part.size):
                part[node] = community[node]
            parts = count
        graph, community = _aggregate(graph, community, part, parts)
        for node in range(nodes):
            member[node] = part[member[node]]
    for node in range(nodes):
        member[node] = community[member[node]]
    return member


@loop
def _random(state: np.ndarray) -> int:
    """The next 64 random bits of a state of one word (splitmix64)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    bits = state[0]
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@loop
def _below(state: np.ndarray, limit: int) -> int:
    """A random whole number from 0 to limit - 1, for limits far below 2**32."""
    return np.int64(((_random(state) >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@loop
def _shuffled(state: np.ndarray, size: int) -> np.ndarray:
    order = np.empty(size, np.int64)
    for place in range(size):
        order[place] = place
    for last in range(size - 1, 0, -1):
        other = _below(state, last + 1)
        order[last], order[other] = order[other], order[last]
    return order


@loop
def _gather(graph: Level, node: int, names: np.ndarray, weight: np.ndarray, touched: np.ndarray, touches: int) -> int:
    """Add the weight from a node to each name among its neighbours; new names go to `touched`; returns its length."""
    for entry in range(np.uint64(graph.indptr[node]), np.uint64(graph.indptr[node + 1])):
        name = np.uint64(names[np.uint64(graph.indices[entry])])
        before = weight[name]
        touched[touches] = name
        touches += before == 0
        weight[name] = before + graph.data[entry]
    return touches


@loop
def _move(graph: Level, rate: float, state: np.ndarray, community: np.ndarray) -> None:
    """Move nodes one by one, and whoever may want to follow, until no move raises modularity."""
    nodes = community.size
    held, size = np.zeros(nodes), np.zeros(nodes, np.int64)  # strength of each community, and how many nodes it has
    for node in range(nodes):
        held[community[node]] += graph.strength[node]
        size[community[node]] += 1
    empties, empty = 0, np.empty(nodes, np.int64)  # a stack of unused numbers
    for name in range(nodes):
        empty[empties] = name
        empties += size[name] == 0
    queue, waiting = _shuffled(state, nodes), np.empty(nodes, np.bool_)
    for node in range(nodes):
        waiting[node] = True
    head, queued = 0, nodes
    weight = np.zeros(nodes)  # of the edges from the present node to each community
    touched = np.empty(nodes + 1, np.int64)
    while queued:
        node = queue[head]
        head = 0 if head + 1 == nodes else head + 1
        queued -= 1
        waiting[node] = False
        old, touches = community[node], _gather(graph, node, community, weight, touched, 0)
        held[old] -= graph.strength[node]
        best, gain = old, weight[old] - rate * graph.strength[node] * held[old]
        for place in range(touches):
            name = touched[place]
            other = weight[name] - rate * graph.strength[node] * held[name]
            if other > gain + 1e-12 * graph.strength[node]:
                best, gain = name, other
        if gain < -1e-12 * graph.strength[node] and size[old] > 1:  # better off alone
            empties -= 1
            best = empty[empties]
        held[best] += graph.strength[node]
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
                    waiting[neighbour] = True
                    tail = head + queued
                    queue[tail - nodes if tail >= nodes else tail] = neighbour
                    queued += 1
        for place in range(touches):
            weight[touched[place]] = 0


@loop
def _refine(graph: Level, rate: float, state: np.ndarray, community: np.ndarray, count: int) -> np.ndarray:
    """Parts of each community: single nodes join parts that both fit them and are well connected to the rest."""
    nodes = community.size
    whole = np.zeros(count)  # strength of each community
    for node in range(nodes):
        whole[community[node]] += graph.strength[node]
    border = np.zeros(nodes)  # weight from each part to the rest of its community
    for node in range(nodes):
        for entry in range(np.uint64(graph.indptr[node]), np.uint64(graph.indptr[node + 1])):
            inside = community[np.uint64(graph.indices[entry])] == community[node]
            border[node] += graph.data[entry] if inside else 0.0
    part, held, size = np.empty(nodes, np.int64), np.empty(nodes), np.empty(nodes, np.int64)
    for node in range(nodes):
        part[node], held[node], size[node] = node, graph.strength[node], 1
    weight, touched, chance = np.zeros(nodes), np.empty(nodes + 1, np.int64), np.empty(nodes)
    order = _shuffled(state, nodes)
    for turn in range(nodes):
        node = order[turn]
        own, mine = community[node], graph.strength[node]
        if size[part[node]] > 1 or border[node] < rate * mine * (whole[own] - mine):
            continue
        touches = _gather(graph, node, part, weight, touched, 0)
        best, kept = 0.0, 0
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
    return part


@loop
def _draw(state: np.ndarray, gains: np.ndarray, count: int, best: float, scale: float) -> int:
    """A place with probability proportional to exp(gain / scale)."""
    total = 0.0
    for place in range(count):
        gains[place] = np.exp((gains[place] - best) / scale)
        total += gains[place]
    point = total * (_random(state) >> np.uint64(11)) * 2.0**-53
    for place in range(count - 1):
        point -= gains[place]
        if point < 0:
            return place
    return count - 1


@loop
def _renumber(names: np.ndarray, limit: int) -> int:
    """Number names below a limit from 0 in order of appearance, in place; returns how many there are."""
    number, count = np.empty(limit, np.int64), 0
    for name in range(limit):
        number[name] = -1
    for place in range(names.size):
        if number[names[place]] < 0:
            number[names[place]] = count
            count += 1
        names[place] = number[names[place]]
    return count


@loop
def _aggregate(graph: Level, community: np.ndarray, part: np.ndarray, parts: int) -> tuple[Level, np.ndarray]:
    """The graph whose nodes are the parts, without self-loops, and the community of each part."""
    nodes, edges = part.size, graph.indptr[part.size]
    last, members, place = np.zeros(parts + 1, np.int64), np.empty(nodes, np.int64), np.empty(parts, np.int64)
    held, above = np.zeros(parts), np.empty(parts, np.int64)
    for node in range(nodes):
        last[part[node] + 1] += 1
        held[part[node]] += graph.strength[node]
        above[part[node]] = community[node]
    for name in range(parts):
        last[name + 1] += last[name]
        place[name] = last[name]
    for node in range(nodes):  # in this order within each part
        members[place[part[node]]] = node
        place[part[node]] += 1
    starts, ends, weights = (
        np.zeros(parts + 1, graph.indptr.dtype),
        np.empty(edges, graph.indices.dtype),
        np.empty(edges),
    )
    weight, touched, kept = np.zeros(parts), np.empty(parts + 1, np.int64), 0
    for name in range(parts):
        touches = 0
        for at in range(last[name], last[name + 1]):
            touches = _gather(graph, members[at], part, weight, touched, touches)
        for at in range(touches):
            if touched[at] != name:
                ends[kept], weights[kept] = touched[at], weight[touched[at]]
                kept += 1
            weight[touched[at]] = 0
        starts[name + 1] = kept
    return Level(starts, ends, weights, held), above
