"""Layered layout of a directed graph, top to bottom: ranks, orders within ranks, positions.

After Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical system
structures" (1981): edges against the direction are reversed, long ones get a joint in each rank
between, joints and nodes are ordered by the mean position of their neighbours, then moved towards
it.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Layout", "layered"]

Edge = tuple[str, str]
Node = str | tuple[str, str, int]
"""A node by name, or a joint of an edge: the edge's ends and the joint's rank."""

_SWEEPS = 24


class Layout:
    """Positions: ``x`` and ``rank`` of each node; ``ways``, for each edge the ``(x, rank)`` of its
    source, its joints and its target."""

    def __init__(self, x: dict[Node, float], rank: dict[Node, int],
                 ways: dict[Edge, list[tuple[float, int]]]):
        self.x, self.rank, self.ways = x, rank, ways


def layered(edges: Sequence[Edge], widths: Mapping[str, float], last: Iterable[str] = (), *,
            gap: float = 14, joint: float = 10) -> Layout:
    """Return the layout of the graph of ``edges``, none of which is a self-loop.

    ``widths`` of the nodes; those in ``last`` are in the lowest rank. ``gap``: space between
    neighbours; ``joint``: width of a joint.
    """
    down = _without_circles(edges)
    rank: dict[Node, int] = {**_ranks(down, list(last))}
    chains: dict[Edge, list[Node]] = {}
    for source, target in down:
        inner: list[Node] = [(source, target, r)
                             for r in range(rank[source] + 1, rank[target])]
        rank |= {node: node[2] for node in inner}  # type: ignore[misc]
        chains[source, target] = [source, *inner, target]
    above: dict[Node, list[Node]] = {node: [] for node in rank}
    below: dict[Node, list[Node]] = {node: [] for node in rank}
    for chain in chains.values():
        for one, other in itertools.pairwise(chain):
            below[one].append(other)
            above[other].append(one)
    rows: list[list[Node]] = [[] for _ in range(max(rank.values()) + 1)]
    for node, r in rank.items():
        rows[r].append(node)
    _order(rows, above, below)
    size = {node: widths[node] if isinstance(node, str) else joint for node in rank}
    x = _places(rows, above, below, size, gap)
    ways = {}
    for source, target in edges:
        turned = (source, target) not in chains
        chain = chains[(target, source) if turned else (source, target)]
        way = [(x[node], rank[node]) for node in chain]
        ways[source, target] = way[::-1] if turned else way
    return Layout(x, rank, ways)


def _without_circles(edges: Sequence[Edge]) -> list[Edge]:
    """Return ``edges`` with the edges that close a cycle reversed, each pair of nodes once."""
    after: dict[str, list[str]] = {}
    for source, target in edges:
        after.setdefault(source, []).append(target)
        after.setdefault(target, [])
    back: set[Edge] = set()
    state: dict[str, int] = {}

    def visit(node: str) -> None:
        state[node] = 1
        for following in after[node]:
            if state.get(following) == 1:
                back.add((node, following))
            elif following not in state:
                visit(following)
        state[node] = 2

    for node in after:
        if node not in state:
            visit(node)
    return list(dict.fromkeys((t, s) if (s, t) in back else (s, t) for s, t in edges))


def _ranks(edges: list[Edge], last: list[str]) -> dict[str, int]:
    """Return each node's longest path from the top, with sources sunk towards their targets."""
    nodes = list(dict.fromkeys(node for edge in edges for node in edge))
    rank = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for source, target in edges:
            rank[target] = max(rank[target], rank[source] + 1)
    lowest = max(rank.values())
    rank |= dict.fromkeys(last, lowest)
    has_source = {target for _, target in edges}
    for _ in nodes:
        for node in nodes:
            targets = [rank[t] for s, t in edges if s == node]
            sources = [rank[s] for s, t in edges if t == node]
            # Move it down to its targets if that shortens more edges than it lengthens.
            if targets and node in has_source and len(targets) > len(sources):
                rank[node] = min(targets) - 1
    return rank


def _order(rows: list[list[Node]], above, below) -> None:
    best, fewest = [list(row) for row in rows], _crossings(rows, below)
    for sweep in range(_SWEEPS):
        towards, order = (above, rows[1:]) if sweep % 2 == 0 else (below, rows[-2::-1])
        for row in order:
            place = {node: k for other in rows for k, node in enumerate(other)}
            mean = {node: (sum(place[n] for n in towards[node]) / len(towards[node])
                           if towards[node] else place[node]) for node in row}
            row.sort(key=lambda node: mean[node])
        crossings = _crossings(rows, below)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    for row, kept in zip(rows, best):
        row[:] = kept


def _crossings(rows: list[list[Node]], below) -> int:
    count = 0
    for row, following in itertools.pairwise(rows):
        place = {node: k for k, node in enumerate(following)}
        ends = [place[n] for node in row for n in sorted(below[node], key=place.__getitem__)]
        count += sum(a > b for k, a in enumerate(ends) for b in ends[k + 1:])
    return count


def _places(rows: list[list[Node]], above, below, size, gap: float) -> dict[Node, float]:
    """Return the middle of each node: as near to its neighbours' mean as order and gaps allow."""
    x: dict[Node, float] = {}
    for row in rows:
        at = 0.0
        for node in row:
            x[node] = at + size[node] / 2
            at += size[node] + gap
    for sweep in range(4 * _SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = []
            for node in row:
                near = above[node] + below[node]
                # An edge's own neighbours weigh more at joints, which keeps edges straight.
                wanted.append(sum(x[n] for n in near) / len(near) if near else x[node])
            left, right = list(wanted), list(wanted)
            for k in range(1, len(row)):
                need = (size[row[k - 1]] + size[row[k]]) / 2 + gap
                left[k] = max(left[k], left[k - 1] + need)
            for k in range(len(row) - 2, -1, -1):
                need = (size[row[k]] + size[row[k + 1]]) / 2 + gap
                right[k] = min(right[k], right[k + 1] - need)
            for node, low, high in zip(row, left, right):
                x[node] = (low + high) / 2
    start = min(x[node] - size[node] / 2 for node in x)
    return {node: place - start for node, place in x.items()}
